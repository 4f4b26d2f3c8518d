"""The program that carries out a bundle on a host, against a root folder of its own."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric.assets import playbooks
from rdma_fabric.platforms._contract import RUN, TIMER_HMS, TIMER_S, Call, Change, Put, Send, Step
from rdma_fabric.push.bundle import Mode, bundle, program

PROGRAM = playbooks() / "files" / "fabric_host.py"
_SPEC = importlib.util.spec_from_file_location("fabric_host", PROGRAM)
assert _SPEC is not None and _SPEC.loader is not None
MODULE: Any = importlib.util.module_from_spec(_SPEC)
sys.dont_write_bytecode, _WRITES = True, sys.dont_write_bytecode
_SPEC.loader.exec_module(MODULE)
sys.dont_write_bytecode = _WRITES
MARKED = "# managed by fabric\n"
CONF = "/etc/fabric/one.conf"


class Host:
    """A root folder; steps of tests write and read below `tmp`."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.folder = folder
        self.root.mkdir()

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text)
        self.path(name).chmod(mode)

    def live(self, name: str = "value") -> str:
        path = self.folder / name
        return path.read_text().strip() if path.exists() else ""

    def set(self, value: str, name: str = "value") -> tuple[str, ...]:
        """argv that makes a live value so."""
        return ("sh", "-c", 'echo "$1" > "$2"', "sh", value, str(self.folder / name))

    def has(self, value: str, name: str = "value") -> tuple[str, ...]:
        """argv that is true when the live value is so."""
        return ("grep", "-qx", value, str(self.folder / name))

    def drive(
        self, change: Change, mode: Mode, run: str = "r1", timer: int = 0, **more: Any
    ) -> dict[str, Any]:
        path = self.folder / "bundle.json"
        path.write_text(json.dumps({**bundle(change, run, timer, mode), **more}))
        return self.call(str(path))

    def call(self, *arguments: str) -> dict[str, Any]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = MODULE.main([*arguments, "--root", str(self.root)])
        found: dict[str, Any] = json.loads(printed.getvalue())
        bad = bool(found["refused"] or found["failed"] or found.get("undo_problems"))
        assert status == int(bad)
        return found

    @property
    def files(self) -> dict[str, str]:
        """Everything below /etc and /usr."""
        return {
            f"/{path.relative_to(self.root)}": path.read_text()
            for top in ("etc", "usr")
            for path in sorted((self.root / top).rglob("*"))
            if path.is_file() and not path.is_symlink()
        }


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def simple(host: Host, value: str = "new", *more: Step) -> Change:
    """One file, one live value, and the way back."""
    return Change(
        commit=(Put(CONF, f"{MARKED}{value}\n", 0o640), Call(host.set(value), unless=host.has(value)), *more),
        undo=(Call(host.set("old")),),
    )


# ---------------------------------------------------------------- the way of a change that goes well


def test_apply_and_confirm(host: Host) -> None:
    found = host.drive(simple(host), "apply")
    assert (found["changed"], found["pending"], found["failed"], found["refused"]) == (True, True, None, "")
    assert found["done"] == [f"put {CONF}", "call " + " ".join(host.set("new"))]
    assert host.path(CONF).read_text() == f"{MARKED}new\n" and host.live() == "new"
    assert stat.S_IMODE(host.path(CONF).stat().st_mode) == 0o640
    assert host.path("/run/fabric.lock").read_text().startswith("r1\n")
    confirmed = host.drive(simple(host), "confirm")
    assert (confirmed["changed"], confirmed["pending"], confirmed["failed"]) == (False, False, None)
    assert not host.path("/run/fabric.lock").exists()
    assert not host.path("/var/lib/fabric/pending.json").exists()
    assert set(host.files) == {CONF, "/usr/local/sbin/fabric-host"}
    # Nothing more to do, ever.
    for run in ("r1", "r2"):
        again = host.drive(simple(host), "apply", run)
        assert (again["changed"], again["pending"], again["done"]) == (False, False, [])
    assert host.drive(simple(host), "confirm")["changed"] is False


def test_check_writes_nothing_and_is_honest(host: Host) -> None:
    before = host.files
    found = host.drive(simple(host), "check")
    assert found["changed"] and found["would"] == [f"put {CONF}", "call " + " ".join(host.set("new"))]
    assert host.files == before and host.live() == "" and not host.path("/var/lib/fabric").exists()
    host.drive(simple(host), "apply")
    host.drive(simple(host), "confirm")
    assert host.drive(simple(host), "check")["changed"] is False
    (host.folder / "value").write_text("drifted\n")
    assert host.drive(simple(host), "check")["would"] == ["call " + " ".join(host.set("new"))]
    # The mode of the playbook's --check goes before that of the bundle.
    path = host.folder / "bundle.json"
    path.write_text(json.dumps(bundle(simple(host), "r9", 60, "apply")))
    assert host.call(str(path), "--mode=check")["changed"] and host.live() == "drifted"


def test_the_same_apply_twice_changes_once(host: Host) -> None:
    host.drive(simple(host), "apply")
    again = host.drive(simple(host), "apply")
    assert (again["changed"], again["pending"]) == (False, True)
    host.drive(simple(host), "undo")
    assert host.live() == "old"


def test_a_call_without_a_test_goes_with_what_stands_before_it(host: Host) -> None:
    change = Change(commit=(Put(CONF, MARKED), Call(host.set("reloaded"))))
    assert host.drive(change, "apply")["done"][1:] == ["call " + " ".join(host.set("reloaded"))]
    host.drive(change, "confirm")
    (host.folder / "value").unlink()
    assert host.drive(change, "apply", "r2")["changed"] is False and host.live() == ""


def test_files_come_before_calls(host: Host) -> None:
    look = (
        "sh",
        "-c",
        'cat "$FABRIC_ROOT$1" > "$2"',
        "sh",
        "/etc/fabric/two.conf",
        str(host.folder / "value"),
    )
    change = Change(commit=(Call(look), Put(CONF, MARKED), Call(look), Put("/etc/fabric/two.conf", MARKED)))
    host.drive(change, "apply")
    assert host.live() == MARKED.strip()


def test_a_file_is_removed_and_comes_back(host: Host) -> None:
    host.write(CONF, f"{MARKED}before\n", 0o600)
    change = Change(commit=(Put(CONF, None),))
    assert host.drive(change, "apply")["changed"] and not host.path(CONF).exists()
    assert host.drive(change, "undo")["undone"]
    assert host.path(CONF).read_text() == f"{MARKED}before\n"
    assert stat.S_IMODE(host.path(CONF).stat().st_mode) == 0o600
    host.path(CONF).unlink()
    assert host.drive(change, "apply", "r2")["changed"] is False


# ---------------------------------------------------------------- refusals


def test_a_foreign_file_is_never_touched(host: Host) -> None:
    host.write(CONF, "somebody's\n")
    modes: tuple[Mode, ...] = ("check", "apply")
    for mode in modes:
        found = host.drive(simple(host), mode)
        assert CONF in found["refused"] and not found["changed"]
    assert host.files == {CONF: "somebody's\n"} and host.live() == ""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change(commit=(Put(CONF, "no mark\n"),)), "lacks the mark"),
        (Change(commit=(Put(CONF, MARKED), Put(CONF, MARKED + "x"))), "twice"),
    ],
)
def test_a_bad_bundle_is_refused(host: Host, change: Change, text: str) -> None:
    assert text in host.drive(change, "apply")["refused"]
    assert host.files == {}


def test_an_unknown_version_or_a_bundle_without_program_is_refused(host: Host) -> None:
    assert "version 9" in host.drive(simple(host), "apply", version=9)["refused"]
    assert "program" in host.drive(simple(host), "apply", program="")["refused"]
    host.write("/usr/local/sbin/fabric-host", "#!/bin/sh\n# somebody's\n")
    assert "/usr/local/sbin/fabric-host is not ours" in host.drive(simple(host), "apply")["refused"]


def test_two_runs_exclude_each_other(host: Host) -> None:
    host.drive(simple(host), "apply")
    found = host.drive(simple(host, "other"), "apply", "r2")
    assert found["refused"] == "/run/fabric.lock is held by run r1" and host.live() == "new"
    # A reboot takes the lock with it, but not what is pending.
    host.path("/run/fabric.lock").unlink()
    assert (
        host.drive(simple(host, "other"), "apply", "r2")["refused"] == "run r1 has an unconfirmed change here"
    )
    # Nor may the other run confirm or undo it.
    assert host.drive(simple(host), "confirm", "r2")["changed"] is False
    assert host.drive(simple(host), "undo", "r2")["undone"] is False
    assert host.live() == "new"
    host.drive(simple(host), "confirm")
    assert host.drive(simple(host, "other"), "apply", "r2")["changed"]


# ---------------------------------------------------------------- taking back


def test_undo_brings_back_files_and_values(host: Host) -> None:
    host.write(CONF, f"{MARKED}before\n")
    host.write("/etc/other", "foreign\n")
    before = host.files
    host.drive(simple(host), "apply")
    found = host.drive(simple(host), "undo")
    assert (found["undone"], found["changed"], found["pending"]) == (True, True, False)
    assert host.live() == "old"
    assert {k: v for k, v in host.files.items() if "fabric-host" not in k} == before
    assert "undone by its run" in host.drive(simple(host), "confirm")["refused"]
    assert host.drive(simple(host), "undo")["undone"] is False


def test_a_failed_step_takes_everything_back(host: Host) -> None:
    bad = ("sh", "-c", "echo out; echo said why >&2; exit 3")
    found = host.drive(simple(host, "new", Call(bad), Call(host.set("late", "late"))), "apply")
    assert found["failed"] == {"step": " ".join(bad), "status": 3, "stdout": "out\n", "stderr": "said why\n"}
    assert (found["undone"], found["changed"], found["pending"]) == (True, False, False)
    assert host.live() == "old" and host.live("late") == "" and not host.path(CONF).exists()
    assert not host.path("/run/fabric.lock").exists()


def test_a_missing_program_and_a_hanging_one_are_failures(host: Host) -> None:
    found = host.drive(Change(commit=(Put(CONF, MARKED), Call(("/no/such", "x")))), "apply")
    assert found["failed"]["status"] == 127 and "No such file" in found["failed"]["stderr"]
    slow = Change(commit=(Put(CONF, MARKED), Call(("sleep", "30"), timeout_s=0.2)))
    found = host.drive(slow, "apply")
    assert found["failed"]["status"] == 124 and found["undone"]


def test_before_the_first_call_nothing_live_is_undone(host: Host) -> None:
    """A file that cannot be written is found before any program ran."""
    host.write("/etc/fabric/blocked", "")
    change = simple(host)
    change = Change(commit=(Put("/etc/fabric/blocked/x", MARKED), *change.commit), undo=change.undo)
    found = host.drive(change, "apply")
    assert found["failed"] and found["undone"] and host.live() == ""
    assert list(host.path("/etc/fabric").iterdir()) == [host.path("/etc/fabric/blocked")]


def test_a_shared_file_is_written_over_what_was_read_only(host: Host) -> None:
    """No mark is asked for: the file holds lines of others too."""
    path = "/etc/default/shared"
    host.write(path, "theirs=1\n")
    seen = hashlib.sha256(b"theirs=1").hexdigest()

    def put(text: str | None, was: str) -> dict[str, Any]:
        step = {"path": path, "text": text, "mode": 0o644, "owner": "root", "was": was}
        return {"steps": [{"put": step}]}

    stale = put("theirs=1\nours=1\n", hashlib.sha256(b"").hexdigest())
    assert "has changed since it was read" in host.drive(Change(), "apply", **stale)["refused"]
    fresh = put("theirs=1\nours=1\n", seen)
    assert host.drive(Change(), "apply", **fresh)["changed"]
    assert host.path(path).read_text() == "theirs=1\nours=1\n"
    assert host.drive(Change(), "apply", **fresh)["refused"] == ""
    assert host.drive(Change(), "undo")["undone"] and host.path(path).read_text() == "theirs=1\n"
    new = put("ours=1\n", hashlib.sha256(b"").hexdigest())
    host.path(path).unlink()
    assert host.drive(Change(), "apply", "r2", **new)["changed"]


def test_late_undo_steps_run_when_the_files_are_back(host: Host) -> None:
    host.write(CONF, f"{MARKED}before\n")
    script = 'tail -n 1 "$FABRIC_ROOT$1" >> "$2"'
    look = ("sh", "-c", script, "sh", CONF, str(host.folder / "seen"))
    plain = {"argv": list(look), "status": [0], "timeout_s": 60, "unless": []}
    host.drive(simple(host), "apply", undo=[{"call": {**plain, "late": True}}, {"call": plain}])
    assert host.drive(simple(host), "undo")["undone"]
    assert host.live("seen").splitlines() == ["new", "before"]


def test_what_could_not_be_taken_back_stays_pending_and_is_told(host: Host) -> None:
    change = Change(commit=simple(host).commit, undo=(Call(("false",)), Call(host.set("old"))))
    host.drive(change, "apply")
    found = host.drive(change, "undo")
    assert found["undone"] is False and found["pending"] and found["undo_problems"][0]["step"] == "false"
    # The rest came back all the same, and nobody else gets in before somebody looked.
    assert host.live() == "old" and not host.path(CONF).exists()
    assert host.drive(simple(host), "apply", "r2")["refused"]


def test_a_run_that_died_while_writing_is_taken_back_by_its_next_apply(host: Host) -> None:
    host.drive(simple(host), "apply")
    path = host.path("/var/lib/fabric/pending.json")
    pending = json.loads(path.read_text())
    path.write_text(json.dumps({**pending, "phase": "writing"}))
    found = host.drive(simple(host, "newer"), "apply")
    assert found["changed"] and host.live() == "newer"
    host.drive(simple(host, "newer"), "undo")
    assert host.live() == "old" and not host.path(CONF).exists()


def test_recover_is_for_the_run_that_died(host: Host) -> None:
    host.drive(simple(host), "apply")
    assert host.drive(simple(host), "recover", "r2")["undone"] is False
    assert host.drive(simple(host), "recover")["undone"] is True
    assert host.live() == "old"


# ---------------------------------------------------------------- dead-man


def wait(condition: Any, seconds: float = 8.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_without_a_confirmation_it_takes_itself_back(host: Host) -> None:
    found = host.drive(simple(host), "apply", timer=1)
    assert found["deadman"] == "child" and host.live() == "new"
    assert wait(lambda: not host.path("/run/fabric.lock").exists())
    assert host.live() == "old" and not host.path("/var/lib/fabric/pending.json").exists()
    assert not host.path(CONF).exists()
    refused = host.drive(simple(host), "confirm")["refused"]
    assert "no confirmation came" in refused and "settings from before" in refused


def test_a_dead_man_that_could_not_take_all_back_tries_again(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the program that it needs, which goes when it has done its work."""
    monkeypatch.setattr(MODULE, "AGAIN_S", (1,))
    tool = "/usr/local/sbin/fabric-tool"
    text = f"#!/bin/sh\n{MARKED}test -e {host.folder}/mended && echo old > {host.folder}/value\n"
    commit = (Put(CONF, f"{MARKED}new\n"), Put(tool, text, 0o755), Call(host.set("new")))
    host.drive(Change(commit=commit, undo=(Call((tool,)),)), "apply", timer=600)
    found = host.call("recover", "--run", "r1")
    assert found["pending"] and found["undo_problems"][0]["step"] == tool
    assert not host.path(CONF).exists() and host.path(tool).exists() and host.live() == "new"
    (host.folder / "mended").mkdir()
    assert wait(lambda: not host.path("/run/fabric.lock").exists())
    assert host.live() == "old" and not host.path(tool).exists()
    assert not host.path("/var/lib/fabric/pending.json").exists()


def test_the_tries_of_a_dead_man_end(systemd: Host) -> None:
    change = Change(commit=simple(systemd).commit, undo=(Call(("false",)),))
    systemd.drive(change, "apply", timer=300)
    for _ in range(5):
        systemd.call("recover", "--run", "r1")
    armed = [line.split()[1:3] for line in systemd.live("called").splitlines() if "systemd-run" in line]
    assert armed == [
        ["--unit=fabric-undo-r1", "--on-active=300s"],
        ["--unit=fabric-undo-r1-1", "--on-active=60s"],
        ["--unit=fabric-undo-r1-2", "--on-active=300s"],
        ["--unit=fabric-undo-r1-3", "--on-active=1800s"],
    ]


def test_a_confirmation_ends_the_dead_man(host: Host) -> None:
    host.drive(simple(host), "apply", timer=60)
    pid = json.loads(host.path("/var/lib/fabric/pending.json").read_text())["deadman"]["pid"]
    assert Path(f"/proc/{pid}").exists()
    host.drive(simple(host), "confirm")
    assert wait(lambda: not _alive(pid))
    assert host.live() == "new"


def _alive(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.fixture
def systemd(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose systemd notes what it is told."""
    host.path("/run/systemd/system").mkdir(parents=True)
    tools = host.folder / "bin"
    tools.mkdir()
    for name in ("systemd-run", "systemctl"):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\necho "{name} $*" >> {host.folder}/called\n')
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return host


def test_with_systemd_the_timer_is_its(systemd: Host) -> None:
    found = systemd.drive(simple(systemd), "apply", timer=300)
    assert found["deadman"] == "systemd"
    (called,) = systemd.live("called").splitlines()
    assert called.startswith("systemd-run --unit=fabric-undo-r1 --on-active=300s")
    assert called.endswith(f"recover --run r1 --root {systemd.root}")
    systemd.drive(simple(systemd), "confirm")
    assert "systemctl stop fabric-undo-r1.timer" in systemd.live("called")


def test_a_boot_does_not_wait_for_the_timer_that_waits_for_it(systemd: Host) -> None:
    """A timer is ordered after sysinit.target, and sysinit.target after the unit that asks for the timer."""
    systemd.drive(simple(systemd), "apply", timer=300)
    systemd.call("recover", "--boot")
    *_, called = systemd.live("called").splitlines()
    assert called.startswith("systemd-run --unit=fabric-undo-r1 --on-active=30s --no-block")
    dead_man = json.loads(systemd.path("/var/lib/fabric/pending.json").read_text())["deadman"]
    assert dead_man == {"by": "systemd", "unit": "fabric-undo-r1"}


def test_a_reboot_in_between_brings_the_files_back(host: Host) -> None:
    host.write(CONF, f"{MARKED}before\n")
    host.drive(simple(host), "apply", timer=600)
    unit = host.path("/etc/systemd/system/fabric-recover.service").read_text()
    assert "ExecStart=/usr/local/sbin/fabric-host recover --boot" in unit and "managed by fabric" in unit
    assert host.path("/etc/systemd/system/sysinit.target.wants/fabric-recover.service").is_symlink()
    pid = json.loads(host.path("/var/lib/fabric/pending.json").read_text())["deadman"]["pid"]
    os.kill(pid, 15)
    host.path("/run/fabric.lock").unlink()
    (host.folder / "value").write_text("from boot\n")
    # What the unit runs: the program that was installed with the change.
    installed = host.path("/usr/local/sbin/fabric-host")
    done = subprocess.run(
        [sys.executable, str(installed), "recover", "--boot", "--root", str(host.root)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found["undone"], found["pending"], found["undo_problems"]) == (False, True, [])
    # Files are back before anything reads them; what is live follows once the devices are there.
    assert host.path(CONF).read_text() == f"{MARKED}before\n"
    assert host.live() == "from boot"
    assert host.drive(simple(host), "apply", "r2")["refused"] == "run r1 has an unconfirmed change here"
    later = json.loads(host.path("/var/lib/fabric/pending.json").read_text())["deadman"]["pid"]
    assert _alive(later)
    assert host.call("recover", "--run", "r1")["undone"] is True
    assert wait(lambda: not _alive(later)) and host.live() == "old"
    assert not host.path("/etc/systemd/system/fabric-recover.service").exists()
    assert "no confirmation came" in host.drive(simple(host), "confirm")["refused"]
    assert host.call("recover", "--boot")["changed"] is False


# ---------------------------------------------------------------- files that are none, disks that are full


def test_a_link_or_a_folder_at_our_path_is_somebody_elses(host: Host) -> None:
    """A rename over a link loses it, and no way back knows where it led; also where it leads nowhere."""
    path = host.path(CONF)
    path.parent.mkdir(parents=True)
    host.write("/etc/ours", f"{MARKED}new\n")
    for target in ("/nowhere", str(host.path("/etc/ours"))):
        path.symlink_to(target)
        for mode in ("check", "apply"):
            assert host.drive(simple(host), mode)["refused"] == f"{CONF} is not ours (it is a link)"
        assert str(path.readlink()) == target
        path.unlink()
    path.mkdir()
    assert host.drive(simple(host), "apply")["refused"] == f"{CONF} is not ours (it is no plain file)"
    assert host.live() == "" and not host.path("/run/fabric.lock").exists()


def test_a_shared_file_that_is_a_link_is_refused(host: Host) -> None:
    host.write("/etc/real", "theirs=1\n")
    host.path("/etc/shared").symlink_to(host.path("/etc/real"))
    step = {"path": "/etc/shared", "text": "ours=1\n", "mode": 0o644, "owner": "root"}
    step["was"] = hashlib.sha256(b"theirs=1").hexdigest()
    assert "is a link" in host.drive(Change(), "apply", steps=[{"put": step}])["refused"]
    assert host.path("/etc/shared").is_symlink()


@pytest.mark.parametrize("blocked", ["/etc/systemd", "/usr/local", "/var/lib"])
def test_where_no_dead_man_can_be_kept_nothing_begins(blocked: str, host: Host) -> None:
    """A root file system that is full or read-only: said in the result, and the next run is not shut out."""
    host.write(blocked, "a file where a folder must be\n")
    for run in ("r1", "r2"):
        found = host.drive(simple(host), "apply", run)
        assert found["failed"]["stderr"] and not found["pending"] and not found["changed"]
    assert host.live() == "" and not host.path(CONF).exists()
    assert not host.path("/run/fabric.lock").exists()


def test_a_record_that_is_cut_off_is_told(host: Host) -> None:
    host.write("/var/lib/fabric/pending.json", '{"run": "r0", "ima')
    assert "pending.json cannot be understood" in host.drive(simple(host), "apply")["refused"]
    assert host.live() == ""


def test_a_full_disk_leaves_no_scraps(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(MODULE.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        MODULE.Files(str(host.root)).write(CONF, b"x")
    assert list(host.path(CONF).parent.iterdir()) == []
    found = host.drive(simple(host), "apply")
    assert "No space left" in found["failed"]["stderr"] and host.live() == ""


def test_what_a_run_could_not_take_back_is_not_forgotten_by_its_next_apply(host: Host) -> None:
    """A new record would hold the half-written state as the one to go back to."""
    host.write(CONF, f"{MARKED}before\n")
    change = Change(commit=simple(host).commit, undo=(Call(("false",)),))
    host.drive(change, "apply")
    record = host.path("/var/lib/fabric/pending.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "phase": "writing"}))
    kept = json.loads(record.read_text())["images"]
    found = host.drive(simple(host, "newer"), "apply")
    assert found["failed"] and found["pending"] and found["undo_problems"][0]["step"] == "false"
    assert json.loads(record.read_text())["images"] == kept and host.live() == "new"


def test_files_that_a_boot_cannot_bring_back_are_tried_again(systemd: Host) -> None:
    systemd.write(CONF, f"{MARKED}before\n")
    systemd.drive(simple(systemd), "apply", timer=300)
    folder = systemd.path(CONF).parent
    shutil.rmtree(folder)
    folder.write_text("in the way\n")
    assert systemd.call("recover", "--boot")["undo_problems"]
    assert "--on-active=30s --no-block" in systemd.live("called").splitlines()[-1]
    folder.unlink()
    assert systemd.call("recover", "--run", "r1")["undone"]
    assert systemd.path(CONF).read_text() == f"{MARKED}before\n"


def test_a_program_that_cannot_die_is_not_waited_for(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that a driver holds survives SIGKILL; the way back must not hang on it."""
    monkeypatch.setattr(MODULE, "GRACE_S", 0.1)
    stuck = Call(("sh", "-c", "setsid sleep 20 & wait"), timeout_s=0.2)
    began = time.monotonic()
    found = host.drive(Change(commit=(Put(CONF, MARKED), stuck)), "apply")
    assert found["failed"]["status"] == 124 and found["undone"] and time.monotonic() - began < 10


# ---------------------------------------------------------------- what only the host knows


@pytest.fixture
def sysctl(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose sysctl(8) keeps values in files k-KEY, and whose kernel takes no value above 9."""
    tools = host.folder / "bin"
    tools.mkdir()
    script = (
        f"#!/bin/sh\ncd {host.folder}\n"
        'if [ "$1" = -n ]; then cat "k-$2" 2>/dev/null || exit 255; exit; fi\n'
        'echo "$2" >> written; case "${2#*=}" in ??*) exit 0;; esac; echo "${2#*=}" > "k-${2%%=*}"\n'
    )
    (tools / "sysctl").write_text(script)
    (tools / "sysctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    (host.folder / "k-net.a").write_text("4096\t1 2\n")
    (host.folder / "k-net.b").write_text("0\n")
    return host


def test_a_sysctl_is_compared_and_its_value_kept(sysctl: Host) -> None:
    change = Change(
        commit=(Call(("sysctl", "-w", "net.a=0x1000 1 2")), Call(("sysctl", "-w", "net.b=1"))),
    )
    found = sysctl.drive(change, "apply")
    assert found["done"] == ["call sysctl -w net.b=1"]
    sysctl.drive(change, "undo")
    assert sysctl.live("written").splitlines() == ["net.b=1", "net.b=0"]


def test_a_sysctl_that_the_kernel_does_not_take_is_a_failure(sysctl: Host) -> None:
    """A sysctl(8) that says it is done is not believed: the kernel shows another value."""
    change = Change(commit=(Put(CONF, MARKED), Call(("sysctl", "-w", "net.b=77"))))
    found = install(sysctl, change)
    assert found["failed"]["stderr"] == "the kernel did not take it: it shows 0" and found["undone"]
    assert sysctl.live("k-net.b") == "0" and not sysctl.path(CONF).exists()


def test_a_unit_that_was_enabled_by_us_is_disabled_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = host.folder / "bin"
    tools.mkdir()
    (tools / "systemctl").write_text(f'#!/bin/sh\necho "$*" >> {host.folder}/called\n')
    (tools / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    change = Change(commit=(Call(("systemctl", "enable", "x.service"), unless=("false",)),))
    host.drive(change, "apply")
    host.drive(change, "undo")
    assert host.live("called").splitlines() == ["enable x.service", "disable --no-reload x.service"]
    already = Change(commit=(Call(("systemctl", "enable", "x.service"), unless=("true",)),))
    assert host.drive(already, "apply", "r2")["changed"] is False


# ---------------------------------------------------------------- the bundle


def test_bundle_holds_the_change_with_its_tokens_filled() -> None:
    change = Change(
        lock=(Call(("lock", RUN)),),
        stage=(Put(f"/etc/{RUN}", f"{MARKED}{TIMER_S} {TIMER_HMS}\n", 0o600),),
        commit=(Call(("a",), status=(0, 2), timeout_s=5.0, unless=("t", RUN)), Call(("a",)), Call(("a",))),
        confirm=(Call(("c",)),),
        save=(Call(("s",)),),
        unlock=(Call(("u",)),),
        undo=(Call(("back", RUN)),),
    )
    found = bundle(change, "r7", 3725, "apply")
    plain = {"status": [0], "timeout_s": 60.0, "unless": []}
    put = {"path": "/etc/r7", "text": f"{MARKED}3725 01:02:05\n", "mode": 0o600, "owner": "root"}
    assert found["steps"] == [
        {"call": {"argv": ["lock", "r7"], **plain}},
        {"put": put},
        {"call": {"argv": ["a"], "status": [0, 2], "timeout_s": 5.0, "unless": ["t", "r7"]}},
        {"call": {"argv": ["a"], **plain}},
        {"call": {"argv": ["a"], **plain}},
    ]
    assert [step["call"]["argv"] for step in found["confirm"]] == [["c"], ["s"], ["u"]]
    assert found["undo"] == [{"call": {"argv": ["back", "r7"], **plain}}]
    assert (found["version"], found["run"], found["timer_s"], found["mode"]) == (1, "r7", 3725, "apply")
    assert found["program"] == PROGRAM.read_text("utf-8") == program()
    assert json.loads(json.dumps(found)) == found
    assert bundle(change, "r7", 3725, "apply") == found


def test_a_host_has_no_command_line() -> None:
    with pytest.raises(ValueError, match="configure"):
        bundle(Change(commit=(Send(("configure",)),)), "r1", 60, "apply")


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8"])
def test_the_program_keeps_to_old_python(version: str) -> None:
    """Only syntax: `ast` knows the grammars of old versions."""
    minor = int(version.split(".")[1])
    tree = ast.parse(program(), feature_version=(3, minor))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.NamedExpr)]


def test_the_program_runs_from_the_bundle_as_the_playbook_starts_it(host: Host) -> None:
    play = yaml.safe_load((playbooks() / "host.yml").read_text("utf-8"))[0]
    start = play["vars"]["fabric_start"]
    path = host.folder / "b.json"
    path.write_text(json.dumps(bundle(simple(host), "r1", 0, "apply")))
    result = host.folder / "b.json.result"
    done = subprocess.run(
        [sys.executable, "-c", start, str(path), f"--result={result}", "--mode=", "--root", str(host.root)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["changed"] and json.loads(result.read_text()) == json.loads(done.stdout)
    tasks = [task for block in play["tasks"] for task in (*block.get("block", ()), *block.get("always", ()))]
    assert len(tasks) == 3


# ---------------------------------------------------------------- without a controller


def install(host: Host, change: Change, *words: str) -> dict[str, Any]:
    """A bundle that the host installs by itself; `--root` of tests would be that of an image."""
    path = host.folder / "bundle.json"
    path.write_text(json.dumps(bundle(change, "install", 0, "apply")))
    options = MODULE.Host(str(host.root))
    dry, offline = "--check" in words, "--offline" in words
    found: dict[str, Any] = options.install(json.loads(path.read_text()), offline, dry)
    return found


def test_install_is_apply_and_confirm_in_one(host: Host) -> None:
    assert install(host, simple(host), "--check")["changed"] and host.live() == ""
    found = install(host, simple(host))
    assert found["changed"] and found["done"] == [f"put {CONF}", "call " + " ".join(host.set("new"))]
    assert host.live() == "new" and host.path("/usr/local/sbin/fabric-host").exists()
    for left in ("/run/fabric.lock", "/var/lib/fabric/pending.json"):
        assert not host.path(left).exists()
    again = install(host, simple(host))
    assert (again["changed"], again.get("done", [])) == (False, [])


def test_a_newer_bundle_after_an_installation_that_was_killed_before_it_said_so(host: Host) -> None:
    host.drive(simple(host, "old bundle"), "apply", "install")
    found = install(host, simple(host, "newer"))
    assert found["changed"] and host.live() == "newer"
    assert host.path(CONF).read_text() == f"{MARKED}newer\n"
    assert not host.path("/var/lib/fabric/pending.json").exists()


def test_install_takes_back_what_fails(host: Host) -> None:
    host.write(CONF, f"{MARKED}before\n")
    found = install(host, simple(host, "new", Call(("false",), unless=("false",))))
    assert found["failed"]["step"] == "false" and found["undone"]
    assert host.path(CONF).read_text() == f"{MARKED}before\n"


def test_install_leaves_the_change_of_a_controller_alone(host: Host) -> None:
    host.drive(simple(host), "apply", "r7")
    with pytest.raises(MODULE.Refused, match="r7"):
        install(host, simple(host, "other"))
    assert host.live() == "new"


def test_install_files_only(host: Host) -> None:
    link = "/etc/systemd/system/sys-subsystem-net-devices-eth0.device.wants/fabric-qos@eth0.service"
    enable = Call(("systemctl", "enable", "fabric-qos@eth0.service"), unless=("test", "-L", link))
    change = simple(host, "new", enable)
    unit = "/etc/systemd/system/fabric-qos@.service"
    assert install(host, change, "--offline", "--check")["changed"] and host.files == {}
    found = install(host, change, "--offline")
    assert found["done"] == [f"put {CONF}", f"link {link}", "put /usr/local/sbin/fabric-host"]
    assert host.live() == "" and str(host.path(link).readlink()) == unit
    assert install(host, change, "--offline")["changed"] is False


def test_install_files_only_takes_back_what_fails(host: Host) -> None:
    host.write(CONF, f"{MARKED}before\n")
    host.path("/etc/other").parent.mkdir(parents=True, exist_ok=True)
    host.path("/etc/other").write_text("in the way of a folder\n")
    link = "/etc/other/fabric-qos@eth0.service"
    enable = Call(("systemctl", "enable", "fabric-qos@eth0.service"), unless=("test", "-L", link))
    found = install(host, simple(host, "new", enable), "--offline")
    assert found["failed"]["step"] == "write files" and found["undone"] and not found["changed"]
    assert host.path(CONF).read_text() == f"{MARKED}before\n"


def test_install_files_only_leaves_the_change_of_a_controller_alone(host: Host) -> None:
    host.drive(simple(host), "apply", "r7")
    with pytest.raises(MODULE.Refused, match="r7"):
        install(host, simple(host, "other"), "--offline")


def test_install_does_not_follow_a_link_out_of_the_image(host: Host) -> None:
    outside = host.folder / "outside"
    outside.mkdir()
    folder = host.path(CONF).parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.symlink_to(outside)
    with pytest.raises(MODULE.Refused, match="leads out of it"):
        install(host, simple(host), "--offline")
    assert list(outside.iterdir()) == []


def test_install_says_what_is_no_bundle(host: Host) -> None:
    found = host.call("install", str(host.folder / "gone.json"))
    assert "is no bundle" in found["refused"]


# ---------------------------------------------------------------- a bundle that comes too late


def test_a_run_that_was_given_up_does_not_begin(host: Host) -> None:
    """The controller died while the bundle was on its way; the next one has recovered the host."""
    assert host.call("recover", "--run", "r1")["changed"] is False
    late = host.drive(simple(host), "apply", "r1")
    assert "given up" in late["refused"] and host.live() == ""
    assert host.drive(simple(host), "apply", "r2")["changed"] is True


def test_recovering_a_confirmed_run_changes_nothing(host: Host) -> None:
    host.drive(simple(host), "apply", "r1")
    host.drive(simple(host), "confirm", "r1")
    host.call("recover", "--run", "r1")
    assert host.drive(simple(host), "apply", "r1")["refused"] == "" and host.live() == "new"
