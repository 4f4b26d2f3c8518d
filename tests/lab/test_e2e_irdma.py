"""Intel 800 Series NICs by the command line: what no source confirms, both drivers, the host's own check."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.lab import fabric as lab
from tests.support.fabrics import Fabric, lab_up, make

pytestmark = [pytest.mark.lab, pytest.mark.judge("linux-sandbox")]

CABLES = "gpu01,eth0,leaf01,Ethernet1/1,5\ngpu02,eth0,leaf01,Ethernet2/1,5\n"
HOSTS = ("gpu01", "gpu02")


@pytest.fixture
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    made = make(tmp_path_factory.mktemp("irdma"), {"leaf01": "arista_eos"}, hosts=HOSTS, cables=CABLES)
    mlx5 = '"eth[0-1]": {speed: 400G, network: compute, nic: mlx5, rdma: "mlx5_[0-1]", rail: "[0-1]"}'
    made.edit("groups.yaml", mlx5, '"eth0": {speed: 400G, network: compute, nic: irdma}')
    # The second host has Intel's own driver.
    made.edit("hosts.yaml", "gpu02: {groups: [gpu]", "gpu02: {groups: [gpu], data: {stack: ofed}")
    option = "overrides:\n  - {where: gpu02, set: {hosts.module_options: {irdma: {roce_ena: 1}}}}\n"
    made.edit("fabric.yaml", "networks:\n", f"{option}networks:\n")
    with lab_up(made, needs=HOSTS):
        yield made


def test_the_story_of_both_drivers(fabric: Fabric) -> None:
    # A strict class in DSCP mode: nobody says that the card honours it.
    first = fabric.apply(status=1)
    assert "unverified" in first.text and first.statuses["gpu01"] != "applied"

    found = fabric.apply("--accept-unverified", status=1)
    assert found.statuses["gpu01"] == "applied"
    # The kernel's driver takes no option; Intel's own one counts it after a reboot.
    assert found.statuses["gpu02"] == "pending-reset"
    pending = fabric.drift("--limit", "gpu02").drifts["gpu02"]
    assert ("pending", "eth0", "RoCE v2", "off", "on") in pending
    assert fabric.drift("--limit", "gpu01", status=0).drifts == {}
    assert "status 0" in fabric.somebody("gpu01", "fabric-check; echo status $?")

    lab.reboot(fabric.folder, "gpu02")
    fabric.apply("--accept-unverified", "--limit", "gpu02", status=0)
    assert fabric.drift("--limit", "gpu02", status=0).drifts == {}
    assert "status 0" in fabric.somebody("gpu02", "fabric-check; echo status $?")

    fabric.somebody("gpu01", "dcb pfc set dev eth0 prio-pfc all:off 4:on")
    fabric.write(defaults="data: {state: active}\n")
    assert fabric.drift("--limit", "gpu01", status=1).drifts == {
        "gpu01": [("running", "eth0", "PFC priorities", "4", "3")]
    }
    said = fabric.somebody("gpu01", "fabric-check; echo status $?")
    assert "eth0 PFC priorities: found 4, wanted 3" in said and "status 1" in said
    fabric.write(defaults="data: {state: planned}\n")
    fabric.apply("--limit", "gpu01", status=0)
