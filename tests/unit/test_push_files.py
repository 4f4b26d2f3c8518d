"""Hosts through Ansible: how it logs in, what is read from its events, and the shell lines around it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import Change, Dialect
from rdma_fabric.push import files
from rdma_fabric.push.files import FilePusher
from rdma_fabric.push.journal import Play
from rdma_fabric.push.reach import Job
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.targets import Target


@pytest.mark.parametrize(
    ("script", "status"),
    [(None, 0), ("#!/bin/sh\nexit 0\n", 0), ("#!/bin/sh\nexit 3\n", 3)],
    ids=["never installed", "confirmed", "refused"],
)
def test_confirm(script: str | None, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "fabric-host"
    if script is not None:
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setattr(files, "PROGRAM", str(program))
    monkeypatch.setattr(files, "_as_root", lambda command: command)
    assert subprocess.run(["sh", "-c", files.confirm_line("none")], check=False).returncode == status


# ---------------------------------------------------------------- the way of Ansible is ours


def home(folder: Path, *keys: str) -> Path:
    (folder / ".ssh").mkdir(parents=True)
    for name in keys:
        (folder / ".ssh" / name).write_text("x", encoding="utf-8")
    return folder


def variables(target: Target, folder: Path, **environment: str) -> dict[str, Any]:
    secrets = Secrets(environment, home=folder)
    return FilePusher({"gpu07": target}, secrets, folder)._host("gpu07", "/bundle", "r1")


def options(found: dict[str, Any]) -> list[str]:
    """The options of ssh, sftp and scp."""
    import shlex

    words = shlex.split(found["ansible_ssh_common_args"])
    assert words[:2] == ["-F", "none"] and words[2::2] == ["-o"] * len(words[3::2])
    return words[3::2]


def test_all_usual_keys_are_tried(tmp_path: Path) -> None:
    here = home(tmp_path / "home", "id_ed25519", "id_rsa")
    target = Target("gpu07", "192.0.2.7", 2222, "ops", known_hosts=(tmp_path / "a b", tmp_path / "c"))
    found = variables(target, here)
    said = options(found)
    assert [word for word in said if word.startswith("IdentityFile")] == [
        f'IdentityFile="{here}/.ssh/id_ed25519"',
        f'IdentityFile="{here}/.ssh/id_rsa"',
    ]
    assert "IdentitiesOnly=yes" in said and "BatchMode=yes" in said and "StrictHostKeyChecking=yes" in said
    assert f'UserKnownHostsFile="{tmp_path}/a b" "{tmp_path}/c"' in said
    assert "GlobalKnownHostsFile=/dev/null" in said and not any("Proxy" in word for word in said)
    assert (found["ansible_host"], found["ansible_port"], found["ansible_user"]) == ("192.0.2.7", 2222, "ops")
    assert found["fabric_become"] is True


def test_the_agent_and_a_named_key(tmp_path: Path) -> None:
    here = home(tmp_path / "home", "id_rsa")
    target = Target("gpu07", "192.0.2.7", username="root")
    found = variables(target, here, SSH_AUTH_SOCK="/run/agent", FABRIC_KEY_FILE="/keys/all")
    assert "IdentitiesOnly=no" in options(found) and 'IdentityFile="/keys/all"' in options(found)
    assert found["fabric_become"] is False
    own = Target("gpu07", "192.0.2.7", username="root", key_files=("/keys/storage",))
    said = options(variables(own, here, SSH_AUTH_SOCK="/run/agent", FABRIC_KEY_FILE="/keys/all"))
    assert "IdentitiesOnly=yes" in said and 'IdentityFile="/keys/storage"' in said
    assert 'IdentityFile="/keys/all"' not in said


def test_jump_hosts(tmp_path: Path) -> None:
    here = home(tmp_path / "home", "id_rsa")
    config = tmp_path / "config"
    config.write_text("Host *\n  ProxyCommand relay --load=50%% %h %p\n", encoding="utf-8")
    target = Target("gpu07", "192.0.2.7", 2222, connection_options={"ssh_config_file": str(config)})
    assert "ProxyCommand=relay --load=50%% 192.0.2.7 2222" in options(variables(target, here))


def job(name: str) -> Job:
    return Job(name, Change(), Hardware(("x",)), Dialect("", ""), "files", "")


@pytest.mark.parametrize(
    ("config", "keys", "told"),
    [(None, (), "logs in by key"), ("gone", ("id_rsa",), "SSH configuration")],
)
def test_what_cannot_work_is_told_before_anything_is_tried(
    config: str | None, keys: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    more = {"ssh_config_file": str(tmp_path / config)} if config else {}
    target = Target("gpu07", "192.0.2.7", connection_options=more)
    pusher = FilePusher({"gpu07": target}, Secrets({}, home=home(tmp_path / "home", *keys)), tmp_path)
    outcome = pusher.push({"gpu07": job("gpu07")}, "r1", 60)["gpu07"]
    assert not outcome.ok and outcome.untouched and told in outcome.text
    assert list(tmp_path.glob("ansible-*")) == []


# ---------------------------------------------------------------- what Ansible says


def test_its_own_count() -> None:
    stats = {
        "ok": {"a": 3, "b": 3, "c": 1},
        "dark": {"d": 1},
        "changed": {"a": 1, "b": 0},
        "failures": {"c": 1},
    }
    events: list[dict[str, Any]] = [
        {"event": "playbook_on_start"},
        {"event": "playbook_on_stats", "event_data": stats},
    ]
    assert files._play(events) == Play(4, 1)
    assert files._play([]) == Play(0, 0)


def test_a_program_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files, "RUN_S", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        files._guarded([sys.executable, "-c", "import time; time.sleep(600)"], {}, (str(tmp_path / "x"),))


def test_a_guarded_program_says_what_it_says(tmp_path: Path) -> None:
    said = files._guarded(["sh", "-c", "echo out; echo err >&2"], {}, (str(tmp_path / "x"),))
    assert said == ("out\n", "err\n")
