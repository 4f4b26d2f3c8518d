"""NV settings by the command line: set in the intent, written, pending until somebody resets the host."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.lab import fabric as lab
from tests.support.fabrics import Fabric, lab_up, make

pytestmark = [pytest.mark.lab, pytest.mark.judge("linux-sandbox")]

CABLES = "gpu01,eth0,leaf01,Ethernet1/1,5\ngpu01,eth1,leaf02,Ethernet1/1,5\n"
NV = "  nv: {mlx5: {ATS_ENABLED: true, ROCE_CC_PRIO_MASK: 8}}\n"
NAMES = ("NV ATS_ENABLED", "NV ROCE_CC_PRIO_MASK")
PENDING = {("pending", port, name) for port in ("eth0", "eth1") for name in NAMES}


@pytest.fixture
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    leaves = {"leaf01": "arista_eos", "leaf02": "arista_eos"}
    made = make(tmp_path_factory.mktemp("nv"), leaves, hosts=("gpu01",), cables=CABLES)
    made.edit("fabric.yaml", "  nccl: true\n", f"  nccl: true\n{NV}")
    with lab_up(made, needs=("gpu01",)):
        yield made


def card(fabric: Fabric, port: str = "eth0") -> tuple[str, str]:
    """ATS_ENABLED of the card behind a port: in force, after its next reset."""
    bdf = f"$(basename $(readlink -f /sys/class/net/{port}/device))"
    said = fabric.somebody("gpu01", f"mlxconfig -d {bdf} -e query ATS_ENABLED")
    ((now, later),) = re.findall(r"ATS_ENABLED\s+\S+\s+(\S+)\s+(\S+)", said)
    return str(now), str(later)


def waits(fabric: Fabric) -> set[tuple[str, str, str]]:
    found = fabric.drift("--limit", "gpu01").drifts.get("gpu01", [])
    return {(layer, port, setting) for layer, port, setting, _, _ in found}


def checked(fabric: Fabric) -> str:
    return fabric.somebody("gpu01", "fabric-check; echo status $?")


def test_it_counts_after_a_reset_that_somebody_else_makes(fabric: Fabric) -> None:
    before = card(fabric)
    assert before[0] == before[1] == "False(0)"
    first = fabric.apply(status=1)
    assert first.statuses == {"gpu01": "pending-reset", "leaf01": "applied", "leaf02": "applied"}
    assert "after a reset" in first.rows["gpu01"]["detail"]
    settings = {one["setting"] for one in first.rows["gpu01"]["settings"]}
    assert {"eth0 NV ATS_ENABLED", "eth1 NV ROCE_CC_PRIO_MASK"} <= settings
    assert card(fabric) == ("False(0)", "True(1)")

    # Nothing is left to write; what is pending is told as such by drift, the plan and the host itself.
    fabric.write(defaults="data: {state: active}\n")
    fabric.drift("--limit", "gpu01", status=1)
    assert waits(fabric) == PENDING
    again = fabric.apply("--limit", "gpu01", status=1)
    assert again.statuses == {"gpu01": "pending-reset"} and "after a reset" in again.rows["gpu01"]["detail"]
    said = checked(fabric)
    assert "eth0 NV ATS_ENABLED: found 0 now, 1 after a reset, wanted 1" in said and "status 1" in said

    # A driver that is loaded anew resets no card, and neither does fabric.
    fabric.run("lab", "break", "gpu01", "reload", "eth0", status=0)
    assert card(fabric) == ("False(0)", "True(1)") and waits(fabric) >= PENDING
    assert not [
        line for line in fabric.lines("gpu01") if re.search("mlxfwreset|reboot|mlxconfig.* reset", line)
    ]

    lab.reboot(fabric.folder, "gpu01")
    assert card(fabric) == ("True(1)", "True(1)")
    fabric.apply("--limit", "gpu01", status=0)
    assert waits(fabric) == set() and "status 0" in checked(fabric)

    # Somebody sets another next boot: stored drift, repaired without a reset, since it is still in force.
    fabric.run("lab", "break", "gpu01", "nv", "eth0", "ATS_ENABLED=0", status=0)
    assert waits(fabric) == {("stored", "eth0", NAMES[0])}
    assert "eth0 NV ATS_ENABLED: found 1 now, 0 after a reset, wanted 1" in checked(fabric)
    found = fabric.apply("--limit", "gpu01", status=0)
    assert found.statuses == {"gpu01": "applied"} and card(fabric) == ("True(1)", "True(1)")


def test_taken_back_before_it_counts(fabric: Fabric) -> None:
    run = fabric.apply(status=1).data["run"]
    assert card(fabric) == ("False(0)", "True(1)")
    undone = fabric.rollback(run, "--limit", "gpu01", status=0)
    assert undone.statuses == {"gpu01": "applied"}
    assert card(fabric) == ("False(0)", "False(0)")
