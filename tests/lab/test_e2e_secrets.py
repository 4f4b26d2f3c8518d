"""Secrets and host keys on the lab, reached as real nodes are: by password, without --lab."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.lab import fabric as lab
from tests.support.fabrics import Fabric, Ran, lab_up, make

pytestmark = pytest.mark.lab

PASSWORD = "Pw-of-the-operator-4711"
PLANTED = {
    "arista_eos1": "$6$PlantedEos$Qm9iJ3NTZWNyZXQvMTIz",
    "sonic1": "PlantedCommunity4712",
    "cumulus1": "$6$PlantedCum$QWxpY2VzU2VjcmV0LzQ1Ng",
    "gpu01": "PlantedOnTheHost4713",
}
PLANT = {
    "arista_eos1": (
        "configure",
        f"username bob privilege 15 secret sha512 {PLANTED['arista_eos1']}",
        "snmp-server community PlantedSnmp4714 ro",
        "end",
        "copy running-config startup-config",
    ),
    "sonic1": (
        f"sonic-db-cli CONFIG_DB HSET 'SNMP_COMMUNITY|{PLANTED['sonic1']}' TYPE RO",
        "sudo config save -y",
    ),
    "cumulus1": (
        f"nv set system aaa user bob hashed-password '{PLANTED['cumulus1']}'",
        "nv config apply -y",
        "nv config save",
    ),
    "gpu01": (
        f"echo {PLANTED['gpu01']} > /etc/site-secret",
        "printf '# %s\\n' PlantedOnTheHost4713 >> /etc/systemd/network/20-eth0.network",
    ),
}
SPOIL = {
    "arista_eos1": ("configure", "interface Ethernet1/1", "qos trust cos", "end"),
    "sonic1": ("sudo config interface mtu Ethernet0 1500",),
    "cumulus1": ("nv set interface swp1 link mtu 1500", "nv config apply -y"),
    "gpu01": ("mlnx_qos -i eth0 --pfc 0,0,0,0,1,0,0,0",),
}
SECRETS = (PASSWORD, "PlantedSnmp4714", *PLANTED.values())
CABLES = (
    "arista_eos1,Ethernet4/1,sonic1,Ethernet24,5\n"
    "arista_eos1,Ethernet3/1,cumulus1,swp4,5\n"
    "gpu01,eth0,arista_eos1,Ethernet1/1,5\n"
    "gpu01,eth1,cumulus1,swp1,5\n"
)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    folder = tmp_path_factory.mktemp("secrets")
    switches = {"arista_eos1": "arista_eos", "sonic1": "sonic", "cumulus1": "cumulus"}
    made = make(folder / "fabric", switches, hosts=("gpu01",), cables=CABLES)
    home = folder / "home"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch, lab_up(made, password=PASSWORD):
        for name in ("SSH_AUTH_SOCK", "FABRIC_KEY_FILE", "FABRIC_PASSWORD_COMMAND", "FABRIC_USERNAME"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(home))
        for name, lines in PLANT.items():
            if name not in made.skipped():
                made.somebody(name, *lines)
        made.reached_as_real()
        yield made


@pytest.fixture
def nodes(fabric: Fabric) -> list[str]:
    """The nodes that this machine can play."""
    return [name for name in PLANT if name not in fabric.skipped()]


class Watch(threading.Thread):
    """Collects the argument lists of all processes, and the environments of Ansible's, while it runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[str] = set()
        self.environments: set[str] = set()
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.1):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    words = (folder / "cmdline").read_bytes().decode(errors="replace")
                    self.seen.add(words)
                    if "ansible" in words:
                        self.environments.add((folder / "environ").read_bytes().decode(errors="replace"))
                except OSError:
                    continue


def sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_socket()]


@pytest.fixture
def artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of Ansible's folders, made right before they are removed."""
    kept = tmp_path / "kept"

    class Spied(tempfile.TemporaryDirectory):  # type: ignore[type-arg]
        def __exit__(self, *arguments: Any) -> None:
            shutil.copytree(self.name, kept / Path(self.name).name, ignore=sockets)
            super().__exit__(*arguments)

    monkeypatch.setattr("rdma_fabric.push.files.tempfile.TemporaryDirectory", Spied)
    return kept


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file below a folder but the file systems of lab hosts, which are the devices themselves."""
    for path in folder.rglob("*"):
        if path.is_file() and "lab/hosts" not in path.as_posix() and not path.is_symlink():
            yield path, path.read_bytes().decode(errors="replace")


@pytest.mark.judge("linux-sandbox")
def test_secrets_are_nowhere(
    fabric: Fabric, nodes: list[str], tmp_path: Path, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "gpu01" not in nodes:
        pytest.skip(f"this machine cannot play hosts: {fabric.skipped()['gpu01']}")
    known = fabric.folder / "known_hosts"
    shutil.copy(lab.known_hosts(fabric.folder), known)
    refused = fabric.run("observe", "-o", "-", "--limit", "sonic1", status=2)
    assert "auth" in refused.err
    monkeypatch.setenv("FABRIC_PASSWORD", PASSWORD)
    watch = Watch()
    watch.start()
    said: list[Ran] = []

    def run(*words: str, status: int | None = 0) -> None:
        said.append(fabric.run(*words, status=status))

    run("apply", "--yes", "-v")
    for name, lines in SPOIL.items():
        fabric.somebody(name, *lines)
    run("check", "--live", "-v", "--format", "json", status=None)
    run("drift", "-v")
    run("diff", "--stage", "-v", "-o", str(tmp_path / "plan.json"))
    run("observe", "-o", str(tmp_path / "observed.json"))
    with fabric.broken("arista_eos1", "refuse", "qos trust"):
        run("apply", "--yes", "-v", status=1)
    run("apply", "--yes", "-v", "--format", "json")
    run("rollback", "--yes", "-v", "--limit", "arista_eos1")
    run("runs", "-v")
    watch.ended.set()
    watch.join()
    monkeypatch.delenv("FABRIC_PASSWORD")
    for secret in SECRETS:
        for one in said:
            assert secret not in one.text
        for words in watch.seen:
            assert secret not in words
        for folder in (fabric.folder, tmp_path):
            for path, text in texts(folder):
                assert secret not in text, f"{secret} is in {path}"
    # The watch and the copies saw what they should.
    assert any("ansible" in words for words in watch.seen)
    assert watch.environments and not any(PASSWORD in one for one in watch.environments)
    assert list(artifacts.glob("*/artifacts/*/job_events/*.json"))
    assert any((fabric.folder / ".fabric" / "runs").rglob("journal.jsonl"))
    for name in nodes:
        device = fabric.somebody(name, "cat /etc/site-secret") if name == "gpu01" else fabric.running(name)
        assert PLANTED[name] in device


def test_host_keys(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FABRIC_PASSWORD", PASSWORD)
    known = fabric.folder / "known_hosts"
    known.unlink(missing_ok=True)
    limit = ("--limit", "arista_eos1,sonic1")
    for command in (("drift",), ("observe", "-o", "-"), ("apply", "--yes")):
        refused = fabric.run(*command, *limit, status=1 if command[0] == "apply" else 2)
        assert "fabric hostkeys" in refused.text
    asked = fabric.run("hostkeys", *limit, status=1)
    assert asked.out.count("SHA256:") == 2 and asked.out.count("unknown") == 2
    assert not known.exists()
    fabric.run("hostkeys", *limit, "--yes", status=0)
    assert len(known.read_text().splitlines()) == 2
    fabric.run("observe", "-o", "-", *limit, status=0)
    assert fabric.run("hostkeys", *limit, status=0).out.count("known") == 2
    # Another node's key in its place: somebody else answers there.
    eos, sonic = known.read_text().splitlines()
    swapped = [" ".join([eos.split()[0], *sonic.split()[1:]]), " ".join([sonic.split()[0], *eos.split()[1:]])]
    known.write_text("\n".join(swapped) + "\n")
    logins = len(fabric.lines("sonic1"))
    changed = fabric.run("apply", "--yes", "--format", "json", *limit, status=1)
    assert changed.statuses == {"arista_eos1": "unreachable", "sonic1": "unreachable"}
    assert all("key" in row["detail"] for row in changed.rows.values())
    assert len(fabric.lines("sonic1")) == logins
    assert fabric.run("hostkeys", *limit, status=1).out.count("changed") == 2


@pytest.mark.judge("linux-sandbox")
def test_an_unknown_host_key_of_a_host(fabric: Fabric, nodes: list[str]) -> None:
    if "gpu01" not in nodes:
        pytest.skip(f"this machine cannot play hosts: {fabric.skipped()['gpu01']}")
    (fabric.folder / "known_hosts").unlink(missing_ok=True)
    found = fabric.run("apply", "--yes", "--format", "json", "--limit", "gpu01", status=1)
    assert found.statuses == {"gpu01": "unreachable"} and "hostkeys" in found.rows["gpu01"]["detail"]
