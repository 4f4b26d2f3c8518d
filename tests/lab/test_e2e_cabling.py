"""The cable plan against LLDP and negotiated speeds: the lab is cabled by one plan and judged by another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from tests.support.fabrics import CABLES, Fabric, lab_up, make

pytestmark = pytest.mark.lab

HOSTS = ["gpu01", "gpu02"]
PLAN = (
    "gpu[01-02],eth0,eos1,Ethernet[1-2]/1,5\n"
    'gpu[01-02],eth1,son1,"Ethernet[0,8]",5\n'
    "eos1,Ethernet4/1,son1,Ethernet24,30\n"
    "cum1,swp1,eos1,Ethernet3/1,30\n"
    "cum1,swp2,son1,Ethernet16,30\n"
)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """A switch of every platform and two hosts with two rails, cabled as planned and at the intent."""
    switches = {"eos1": "arista_eos", "son1": "sonic", "cum1": "cumulus"}
    found = make(tmp_path_factory.mktemp("cabling") / "fabric", switches, hosts=HOSTS, cables=PLAN)
    with lab_up(found, needs=HOSTS):
        found.apply(status=0)
        yield found


@contextmanager
def _planned(fabric: Fabric, name: str, old: str, new: str) -> Iterator[None]:
    """Another plan while the block runs; the cables stay where they are."""
    path = fabric.folder / name
    text = path.read_text("utf-8")
    fabric.edit(name, old, new)
    try:
        yield
    finally:
        path.write_text(text, "utf-8")


def _found(fabric: Fabric, code: str) -> list[dict[str, Any]]:
    data = fabric.json("check", "--live").data
    return [one for one in data["findings"] if one["code"] == code]


def _places(one: dict[str, Any]) -> set[str]:
    return {f"{place['node']} {place['port']}" for place in one["places"]}


def test_as_planned(fabric: Fabric) -> None:
    """No alarm but the one of the cable between the two leaves, which this lab has on purpose."""
    data = fabric.json("check", "--live", status=0).data
    assert [one["code"] for one in data["findings"] if one["severity"] != "note"] == ["FAB059"]


def test_swapped_cables(fabric: Fabric) -> None:
    swapped = CABLES + "gpu01,eth0,eos1,Ethernet2/1,5\ngpu02,eth0,eos1,Ethernet1/1,5\n"
    with _planned(fabric, "cables.csv", CABLES + PLAN.splitlines()[0] + "\n", swapped):
        [one] = _found(fabric, "FAB063")
    assert "two cables are swapped" in one["message"]
    assert _places(one) == {"gpu01 eth0", "gpu02 eth0", "eos1 Ethernet1/1", "eos1 Ethernet2/1"}


def test_a_cable_on_the_wrong_rail(fabric: Fabric) -> None:
    """The host's two cables changed places: each is now on the other rail's switch."""
    rows = PLAN.splitlines()
    crossed = (
        "gpu01,eth1,eos1,Ethernet1/1,5\ngpu01,eth0,son1,Ethernet0,5\n"
        "gpu02,eth0,eos1,Ethernet2/1,5\ngpu02,eth1,son1,Ethernet8,5\n"
    )
    with _planned(fabric, "cables.csv", f"{rows[0]}\n{rows[1]}\n", crossed):
        [one] = _found(fabric, "FAB063")
    assert _places(one) == {"gpu01 eth0", "gpu01 eth1", "eos1 Ethernet1/1", "son1 Ethernet0"}


def test_a_missing_link(fabric: Fabric) -> None:
    rows = PLAN.splitlines()
    with _planned(fabric, "cables.csv", f"{rows[4]}\n", f"{rows[4]}\ncum1,swp3,cum1,swp4,5\n"):
        found = _found(fabric, "FAB063")
    assert [(_places(one), one["found"]) for one in found] == [({"cum1 swp3", "cum1 swp4"}, "no neighbour")]


def test_a_cable_that_nobody_planned(fabric: Fabric) -> None:
    rows = PLAN.splitlines()
    with _planned(fabric, "cables.csv", f"{rows[2]}\n", ""):
        [one] = _found(fabric, "FAB063")
    assert "does not have" in one["message"]
    assert _places(one) == {"eos1 Ethernet4/1", "son1 Ethernet24"}


def test_a_link_at_less_than_its_speed(fabric: Fabric) -> None:
    """Planned at 800G, both ends negotiated 400G."""
    ports = '"swp1": {speed: 400G', '"Ethernet3/1": {speed: 400G'
    with (
        _planned(fabric, "groups.yaml", ports[0], ports[0].replace("400", "800")),
        _planned(fabric, "groups.yaml", ports[1], ports[1].replace("400", "800")),
    ):
        found = _found(fabric, "FAB038")
    assert [(_places(one), one["found"], one["wanted"]) for one in found] == [
        ({"cum1 swp1", "eos1 Ethernet3/1"}, "400G", "800G")
    ]
