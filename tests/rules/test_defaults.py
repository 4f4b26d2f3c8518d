"""What nobody configured: platforms' defaults are what their parsers report of a device as it is shipped."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rdma_fabric import platforms
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.lab.discovery import device_class
from rdma_fabric.lab.hosts import HostFacts, HostPort
from rdma_fabric.lab.planned import lab_nodes
from rdma_fabric.platforms._defaults import defaults
from rdma_fabric.settings import group_of
from rdma_fabric.state import UNMANAGED, NodeState, PortSettings, PortState, differences
from tests.lab import hostlab
from tests.seeded import catalogue, devices
from tests.seeded.judge import Base
from tests.support.golden import Golden

SWITCHES = ("leaf01", "leaf02", "leaf03", "leaf04")
"""One of each vendor (and a second SONiC model) in the seeded fabric `mixed`."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Base:
    return Base(catalogue.bases()["mixed"], tmp_path_factory.mktemp("mixed"))


def _state(ports: list[tuple[str, PortSettings]]) -> NodeState:
    return NodeState(ports=tuple(PortState(name, settings=one) for name, one in ports))


@pytest.mark.parametrize("name", SWITCHES)
def test_a_blank_switch_has_the_defaults(name: str, mixed: Base) -> None:
    facts = next(node.facts for node in lab_nodes(mixed.resolved.inventory) if node.facts.name == name)
    hw = mixed.resolved.plans[name].hardware
    blank = devices.Switch(name, hw, device_class(facts.platform)(facts, time.monotonic)).observe()
    wanted = platforms.platform(hw.base).traits.defaults
    assert wanted != PortSettings()
    found = differences(_state([(port.name, wanted) for port in hw.ports]), blank.running)
    assert found == ()


@pytest.mark.lab
@pytest.mark.parametrize("nic", ["mlx5", "generic"])
def test_a_blank_host_has_the_defaults(nic: str, tmp_path: Path) -> None:
    port = PortHardware("eth0", nic=nic, rdma="mlx5_0" if nic == "mlx5" else "rxe0", speed_gbps=100)
    hw = Hardware(("linux", f"nic_{nic}"), ports=(port,))
    wanted = defaults(hw.parts, port)
    assert wanted.marking.rdma_cm_tos == 0
    with hostlab.running(HostFacts("gpu01", (HostPort("eth0", nic=nic),)), tmp_path) as host:
        answers = {question: hostlab.said(host, question) for question in platforms.questions(hw)}
    seen = platforms.parse(answers, hw).running
    found = differences(_state([("eth0", wanted)]), seen)
    # Without RDMA hardware a generic port has no device whose marking could be read.
    assert [one.path for one in found if nic == "mlx5" or not one.unknown] == []


COLUMNS = (
    "mtu.ip",
    "qos.trust",
    "qos.dscp_to_priority",
    "qos.pfc",
    "marking.cnp_dscp",
    "marking.cnp_priority",
)
HEAD = """# Defaults

What a port has that nobody configured, as far as a source says it. `fabric check` takes these values where
the intent leaves a setting to the device and no device was asked (`--unset leaf01:classes`), and judges them
like values of the intent, but as a warning at most: somebody else may have set the device. With `--live` and
`--observed` the values that were read count. What is empty here is not judged.

Defaults disagree: that is why an intent should say what it needs. Written by `make golden` from the code.

"""
TAIL = """
Tools that set values of their own, which count when they are read (and then as any other value):

| tool | sets |
|---|---|
| NVIDIA NIC configuration operator, RoCE optimisation on | CNP DSCP 4; priority 3 without marking RoCE |
| Broadcom's setup script (`bnxt_setupcc.sh`) without `-c` | CNP priority 7 |
| Cumulus' `nv set qos roce` | DSCP n to priority n / 8: 24 to 31 are lossless, 48 to 55 are CNPs |
"""


def test_the_page_of_defaults(golden: Golden) -> None:
    titles = [group_of(key).title for key in COLUMNS]
    rows = [f"| platform | {' | '.join(titles)} | source |", "|---" * (len(COLUMNS) + 2) + "|"]
    for key in tuple(platforms.keys()):
        traits = platforms.platform(key).traits
        if traits.defaults == PortSettings():
            continue
        cells = [group_of(column).show(traits.defaults) for column in COLUMNS]
        shown = ["" if cell == UNMANAGED.value else cell for cell in cells]
        rows.append(f"| [`{key}`](platforms/{key}.md) | {' | '.join(shown)} | {traits.defaults_source} |")
    golden.at("..", "..", "docs").text("defaults.md", HEAD + "\n".join(rows) + "\n" + TAIL)


def test_every_default_has_its_source() -> None:
    for key in tuple(platforms.keys()):
        traits = platforms.platform(key).traits
        assert (traits.defaults == PortSettings()) == (not traits.defaults_source), key
