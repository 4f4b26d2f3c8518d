"""Transport, observe and steps against the lab's simulated switches, with the platforms of the product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric import platforms
from rdma_fabric.inventory.load import load
from rdma_fabric.inventory.types import Inventory
from rdma_fabric.lab import fabric
from rdma_fabric.lab.discovery import device_class
from rdma_fabric.lab.fabric import LabNode
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact
from rdma_fabric.observe import Failure, observe, read
from rdma_fabric.platforms._contract import RUN, TIMER_HMS, TIMER_S, Change
from rdma_fabric.push.cli import StepsResult, run_steps
from rdma_fabric.resolve import Resolved, load_intent, resolve
from rdma_fabric.state import NodeState, Observation, differences
from rdma_fabric.transport import hostkeys
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.session import Session, open_session
from rdma_fabric.transport.targets import Target, targets

pytestmark = pytest.mark.lab

PASSWORD = "planted-Passw0rd"
TOKENS = {TIMER_S: "300", TIMER_HMS: "00:05:00"}
# Platform -> model, version, a port; two nodes of each are cabled to each other.
MADE = {
    "arista_eos": ("DCS-7060X6-64PE", "4.32.1F", "Ethernet1/1"),
    "sonic": ("ACS-SN5600", "202411", "Ethernet0"),
    "cumulus": ("SN5600", "5.14", "swp1"),
}
ROUTED = ("interface Ethernet1/1", "   no switchport")
INTENT = """
version: 1
name: two
rdma: {transport: rocev2, mtu: 4096}
mtu: {switch: 9100}
classes:
  roce: {priority: 3, dscp: [26], lossless: true}
  default: {priority: 0, dscp: rest}
networks: {compute: {}}
"""


@dataclass
class _Lab:
    directory: Path
    inventory: Inventory
    resolved: Resolved
    targets: dict[str, Target]
    secrets: Secrets

    def look(self, *names: str) -> dict[str, Observation | Failure]:
        return observe(names or self.targets, self.resolved.plans, self.targets, self.secrets)

    def wanted(self, name: str) -> NodeState:
        plan = self.resolved.plans[name]
        return platforms.realize(plan.state, plan.hardware).state

    def change(self, name: str, seen: Observation) -> Change:
        return platforms.change(seen, self.wanted(name), self.resolved.plans[name].hardware)

    def open(self, name: str) -> Session:
        base = self.resolved.plans[name].hardware.base
        return open_session(self.targets[name], platforms.platform(base).dialect, self.secrets)

    def steps(self, session: Session, change: Change, phase: str, run: str = "r1") -> StepsResult:
        dialect, steps = session.dialect, getattr(change, phase)
        tokens = TOKENS | {RUN: run}
        return run_steps(session, steps, tokens=tokens, errors=dialect.errors, status=dialect.status)


def _known(platform: str) -> bool:
    if platform not in platforms.bases():
        return False
    try:
        device_class(platform)
    except LookupError:
        return False
    return True


def _nodes() -> list[str]:
    return [f"{platform.split('_')[0]}{n}" for platform in MADE if _known(platform) for n in (1, 2)]


def _write(folder: Path) -> None:
    hosts, cables = [], ["a_node,a_port,b_node,b_port,length_m"]
    for platform, (model, version, port) in MADE.items():
        if not _known(platform):
            continue
        name = platform.split("_")[0]
        ports = f'ports: {{"{port}": {{speed: 400G, network: compute}}}}'
        data = f'role: leaf, model: {model}, version: "{version}", {ports}'
        hosts.append(f'"{name}[1-2]": {{platform: {platform}, data: {{{data}}}}}')
        cables.append(f"{name}1,{port},{name}2,{port},3")
    (folder / "hosts.yaml").write_text("\n".join(hosts) + "\n")
    (folder / "cables.csv").write_text("\n".join(cables) + "\n")
    (folder / "fabric.yaml").write_text(INTENT)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Lab]:
    folder = tmp_path_factory.mktemp("observe")
    _write(folder)
    inventory = load(folder, platforms.bases())
    resolved = resolve(*load_intent(folder / "fabric.yaml"), inventory)
    plans = []
    for name, node in inventory.nodes.items():
        spec = node.spec
        ports = tuple(PortFact(port.name, port.speed_gbps, "1,2,3,4") for port in spec.ports.values())
        seed = ROUTED if spec.platform == "arista_eos" else ()
        plans.append(LabNode(DeviceFacts(name, spec.platform, spec.model, spec.version, ports, seed)))
    fabric.up(folder, plans, password=PASSWORD)
    try:
        yield _Lab(
            folder, inventory, resolved, targets(inventory, inventory.nodes, folder, lab=True), Secrets({})
        )
    finally:
        fabric.down(folder)


@pytest.fixture(autouse=True)
def mended(lab: _Lab) -> Iterator[None]:
    yield
    for name in lab.targets:
        fabric.mend(lab.directory, name)


def _seen(found: Observation | Failure) -> Observation:
    assert isinstance(found, Observation), found
    return found


def test_every_switch_is_read_in_one_login(lab: _Lab) -> None:
    found = lab.look()
    assert list(found) == list(lab.targets) and len(found) >= 2
    for name, one in found.items():
        seen = _seen(one)
        missing = [item for item in differences(lab.wanted(name), seen.running) if item.unknown]
        assert not missing and seen.evidence and seen.facts
    status = fabric.status(lab.directory)
    assert status is not None and {node.logins for node in status.nodes.values()} == {1}


@pytest.mark.parametrize("name", _nodes())
def test_steps_bring_a_switch_to_the_intent(lab: _Lab, name: str) -> None:
    change = lab.change(name, _seen(lab.look(name)[name]))
    with lab.open(name) as session:
        for phase in ("lock", "stage", "commit"):
            result = lab.steps(session, change, phase)
            assert result.ok, (phase, result)
        seen = read(session, lab.resolved.plans[name].hardware)
        assert not differences(lab.wanted(name), seen.running)
        for phase in ("confirm", "save", "unlock"):
            result = lab.steps(session, change, phase)
            assert result.ok, (phase, result)
    after = _seen(lab.look(name)[name])
    assert lab.change(name, after).empty


@pytest.mark.parametrize("name", [name for name in _nodes() if name.startswith("arista")][:1])
def test_a_refused_line_is_told_and_undone(lab: _Lab, name: str) -> None:
    node = fabric.running(lab.directory, name)
    fabric.somebody(lab.directory, name, ["enable", "configure", "interface Ethernet1/1", "mtu 2000", "end"])
    assert fabric.running(lab.directory, name) != node
    change = lab.change(name, _seen(lab.look(name)[name]))
    fabric.break_(lab.directory, name, "refuse", "^mtu")
    with lab.open(name) as session:
        assert lab.steps(session, change, "lock", "r2").ok
        result = lab.steps(session, change, "stage", "r2")
        assert (result.kind, result.line) == ("refused", "mtu 9100") and result.text.startswith("%")
        assert lab.steps(session, change, "undo", "r2").ok
        fabric.mend(lab.directory, name)
        for phase in ("lock", "stage", "commit", "confirm"):
            assert lab.steps(session, change, phase, "r3").ok, phase
    assert fabric.running(lab.directory, name) == node


@pytest.mark.parametrize("name", _nodes()[::2])
def test_a_cut_session_is_closed_and_the_others_are_read(lab: _Lab, name: str) -> None:
    fabric.break_(lab.directory, name, "drop", ".", times=1)
    found = lab.look()
    failure = found.pop(name)
    assert isinstance(failure, Failure) and failure.kind == "closed"
    assert all(isinstance(one, Observation) for one in found.values())


def test_unreachable_nodes_are_rows_and_never_dropped(lab: _Lab) -> None:
    name = next(iter(lab.targets))
    fabric.break_(lab.directory, name, "unreachable")
    for _ in range(2):
        failure = lab.look()[name]
        assert isinstance(failure, Failure) and failure.kind == "unreachable"


def test_a_wrong_key_is_refused_and_scan_shows_the_right_one(lab: _Lab, tmp_path: Path) -> None:
    strict = {
        name: Target(
            name, one.host, one.port, one.username, one.key_files, known_hosts=(tmp_path / "known_hosts",)
        )
        for name, one in lab.targets.items()
    }
    found = observe(strict, lab.resolved.plans, strict, lab.secrets)
    assert {one.kind for one in found.values() if isinstance(one, Failure)} == {"hostkey"}
    presented = [one for one in hostkeys.scan(strict).values() if isinstance(one, hostkeys.Presented)]
    assert len(presented) == len(strict) and {one.state for one in presented} == {"unknown"}
    hostkeys.record(tmp_path / "known_hosts", presented)
    found = observe(strict, lab.resolved.plans, strict, lab.secrets)
    assert all(isinstance(one, Observation) for one in found.values())


def test_a_password_works_and_is_in_no_file_of_the_lab(
    lab: _Lab, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    by_password = {
        name: Target(name, one.host, one.port, "admin", known_hosts=one.known_hosts)
        for name, one in lab.targets.items()
    }
    secrets = Secrets({"FABRIC_PASSWORD": PASSWORD}, home=lab.directory)
    found = observe(by_password, lab.resolved.plans, by_password, secrets)
    assert all(isinstance(one, Observation) for one in found.values())
    told = capfd.readouterr()
    texts = [told.out, told.err, repr(found), *(record.getMessage() for record in caplog.records)]
    texts += [path.read_bytes().decode("latin-1") for path in lab.directory.rglob("*") if path.is_file()]
    assert len(texts) > 4 and not [text for text in texts if PASSWORD in text]
