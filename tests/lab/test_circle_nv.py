"""The circle of NV settings: written for the next boot, in force after it, and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.lab.hosts import HostFacts, HostPort
from rdma_fabric.state import (
    NicState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    differences,
    owned_part,
    waiting,
)
from tests.lab.hostlab import run, running, said
from tests.lab.test_circle_linux import Lab

pytestmark = pytest.mark.lab

NAMES = ("ATS_ENABLED", "CNP_DSCP", "ROCE_CC_PRIO_MASK")
ADDRESSES = {"eth0": "0000:1b:00.0", "eth1": "0000:1b:00.1", "eth2": "0000:3b:00.0"}
WANTED = {"ATS_ENABLED": "1", "CNP_DSCP": "40", "ROCE_CC_PRIO_MASK": "8"}


def wish(names: tuple[str, ...] = ("eth0", "eth1"), **values: str) -> NodeState:
    nv = tuple(sorted({**WANTED, **values}.items()))
    return NodeState(ports=tuple(PortState(one, settings=PortSettings(nic=NicState(nv=nv))) for one in names))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """Two ports of one card, and a BlueField."""
    ports = (
        HostPort("eth0", bdf=ADDRESSES["eth0"], stack="ofed"),
        HostPort("eth1", bdf=ADDRESSES["eth1"], stack="ofed"),
        HostPort("eth2", bdf=ADDRESSES["eth2"], stack="ofed", traits=("bluefield",)),
    )
    hw = Hardware(
        ("linux", "nic_mlx5"),
        ports=tuple(
            PortHardware(name, speed_gbps=400, nic="mlx5", rdma=f"mlx5_{number}", bdf=bdf)
            for number, (name, bdf) in enumerate(ADDRESSES.items())
        ),
        options=(("nv", " ".join(NAMES)), ("stack", "ofed")),
    )
    with running(HostFacts("gpu01", ports), tmp_path) as host:
        yield Lab(host, hw)


def nv(seen: NodeState | None, port: str) -> dict[str, object]:
    state = seen.port(port) if seen is not None else None
    return {name: value for name, value in state.settings.nic.nv if name in NAMES} if state else {}


def paths(*names: str, ports: tuple[str, ...] = ("eth0", "eth1")) -> set[str]:
    return {f"ports.{port}.nic.nv.{name}" for port in ports for name in names}


def test_next_boot_first_then_in_force(lab: Lab) -> None:
    wanted, blank = lab.realize(wish()), lab.observe()
    assert nv(blank.running, "eth0") == nv(blank.stored, "eth0") and blank.pending is None
    change = lab.change(wanted)
    assert change.blocked == () and {one.path for one in change.differences} == paths(*NAMES)
    done = lab.drive(change, "apply")
    assert (done["failed"], done["refused"], done["changed"]) == (None, "", True), done

    seen = lab.observe()
    assert nv(seen.running, "eth0") == nv(blank.running, "eth0")
    assert nv(seen.stored, "eth0") == nv(seen.stored, "eth1") == WANTED
    assert waiting(wanted, seen) == paths(*NAMES)
    # Nothing is left to do until somebody resets the card.
    assert lab.change(wanted).empty
    assert lab.drive(change, "apply")["changed"] is False
    assert lab.drive(change, "confirm")["failed"] is None

    lab.host.reboot()
    after = lab.observe()
    assert differences(wanted, after.running) == differences(wanted, after.stored) == ()
    assert waiting(wanted, after) == frozenset() and lab.change(wanted).empty

    back = lab.realize(owned_part(blank.running, wanted))
    assert lab.drive(lab.change(back), "apply", "r2")["failed"] is None
    seen = lab.observe()
    assert nv(seen.running, "eth1") == WANTED and nv(seen.stored, "eth1") == nv(blank.running, "eth1")
    assert waiting(back, seen) == paths(*NAMES)


def test_undo_brings_the_old_next_boot_back(lab: Lab) -> None:
    said(lab.host, f"mlxconfig -d {ADDRESSES['eth0']} -y set CNP_DSCP_P1=12")
    before = lab.observe()
    assert nv(before.stored, "eth0")["CNP_DSCP"] == "12"
    change = lab.change(lab.realize(wish()))
    assert lab.drive(change, "apply")["failed"] is None
    assert nv(lab.observe().stored, "eth0") == WANTED
    assert lab.drive(change, "undo")["undone"]
    seen = lab.observe()
    assert nv(seen.stored, "eth0") == nv(before.stored, "eth0")
    assert nv(seen.stored, "eth1") == nv(before.stored, "eth1")
    files = run(lab.host, "find /etc/fabric /usr/local/sbin -type f -path '*nv*'")[1]
    assert files == ""


def test_the_lines_do_what_the_bundle_does(lab: Lab) -> None:
    change = lab.change(lab.realize(wish()))
    lines = [line for line in change.lines if line.startswith("mlxconfig ")]
    assert [line.split()[2] for line in lines] == [ADDRESSES["eth0"], ADDRESSES["eth1"]]
    for line in lines:
        said(lab.host, line)
    assert nv(lab.observe().stored, "eth0") == nv(lab.observe().stored, "eth1") == WANTED


def test_what_somebody_sets_for_the_next_boot_is_stored_drift(lab: Lab) -> None:
    wanted = lab.realize(wish())
    lab.to(wish())
    lab.host.reboot()
    lab.host.somebody(f"mlxconfig -d {ADDRESSES['eth0']} -y set ROCE_CC_PRIO_MASK_P2=0")
    seen = lab.observe()
    assert differences(wanted, seen.running) == ()
    assert {one.path for one in differences(wanted, seen.stored or NodeState())} == paths(
        "ROCE_CC_PRIO_MASK", ports=("eth1",)
    )
    assert lab.to(wish(), "r2").lines[-1].endswith("-y set ROCE_CC_PRIO_MASK_P2=8")


def test_a_card_without_the_setting_is_not_written(lab: Lab) -> None:
    hw = replace(lab.hw, options=(("nv", "NO_SUCH_SETTING"), ("stack", "ofed")))
    lab = Lab(lab.host, hw)
    nothing = PortSettings(nic=NicState(nv=(("NO_SUCH_SETTING", "1"),)))
    wanted = lab.realize(NodeState(ports=(PortState("eth0", settings=nothing),)))
    change = lab.change(wanted)
    assert change.empty
    assert dict(change.reasons) == {"ports.eth0.nic.nv.NO_SUCH_SETTING": "its card has no such setting"}


def test_the_card_itself(lab: Lab) -> None:
    seen: Observation = lab.observe()
    for name in ADDRESSES:
        state = seen.running.port(name)
        assert state is not None
        card = state.settings.nic
        assert card.link == "ethernet" and card.rdma_mtu == 1024
        for value in (card.firmware, card.board, card.driver, card.part):
            assert isinstance(value, str) and value
    owners = seen.running.system.owners
    assert isinstance(owners, tuple)
    assert [one for one in owners if "BlueField" in one] == ["BlueField in DPU mode (eth2)"]
