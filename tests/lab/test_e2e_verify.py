"""`fabric verify` on the lab: a sound fabric passes; every ailment is named, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from tests.support.fabrics import Fabric, Ran, lab_up, make

pytestmark = pytest.mark.lab

PROCESSES = "ps -e -o args="
HOSTS = ["gpu01", "gpu02", "gpu03"]
PLAN = (
    "gpu[01-03],eth0,eos1,Ethernet[1-3]/1,5\n"
    "gpu[01-03],eth1,cum1,swp[1-3],5\n"
    "eos1,Ethernet4/1,son1,Ethernet0,30\n"
    "cum1,swp4,son1,Ethernet8,30\n"
)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """Two rails on a leaf each, joined by a switch of a third platform; at the intent."""
    switches = {"eos1": "arista_eos", "cum1": "cumulus", "son1": "sonic"}
    found = make(tmp_path_factory.mktemp("verify") / "fabric", switches, hosts=HOSTS, cables=PLAN)
    with lab_up(found, needs=HOSTS):
        found.apply(status=0)
        yield found


@contextmanager
def ailing(fabric: Fabric, *breaks: tuple[str, ...]) -> Iterator[None]:
    """Ailments (node, kind, words ...) while the block runs."""
    for node, *words in breaks:
        fabric.run("lab", "break", node, *words, status=0)
    try:
        yield
    finally:
        for node, *_ in breaks:
            fabric.run("lab", "mend", node, status=0)


def verify(fabric: Fabric, *words: str, status: int) -> Ran:
    return fabric.json("verify", "--interval", "1s", *words, status=status)


def told(ran: Ran) -> dict[str, set[str]]:
    """Name of a finding -> its places; notes are left out."""
    found: dict[str, set[str]] = {}
    for one in ran.data["findings"]:
        if one["severity"] != "note":
            places = {f"{place['node']} {place['port']}".strip() for place in one["places"]}
            found.setdefault(one["name"], set()).update(places)
    return found


def step(ran: Ran, name: str) -> Any:
    return next(one for one in ran.data["steps"] if one["step"] == name)


def test_a_sound_fabric_passes_and_writes_nothing(fabric: Fabric) -> None:
    before = {name: fabric.running(name) for name in ("eos1", "cum1", "son1")}
    ran = verify(fabric, status=0)
    assert told(ran) == {}
    judged = {one["step"]: one["judged"] for one in ran.data["steps"]}
    assert judged == {"counters": 18, "config": 6, "speed": 8, "sm": 0, "mtu": 6, "paths": 6}
    assert step(ran, "paths")["not_judged"] == []
    missing = {
        (one["what"], place["node"]) for one in step(ran, "counters")["not_judged"] for place in one["places"]
    }
    assert {what for what, node in missing if node == "gpu01"} <= {"drops", "marks"}
    assert {name: fabric.running(name) for name in before} == before


def test_counters_that_grow_are_named_at_their_ports(fabric: Fabric) -> None:
    ailments = (
        ("eos1", "counter", "Ethernet1/1", "pfc-tx:3=200"),
        ("eos1", "counter", "Ethernet2/1", "crc=50"),
        ("cum1", "counter", "swp2", "drop:3=50"),
        ("son1", "counter", "Ethernet0", "fec-uncorrected=50"),
        ("gpu02", "counter", "eth1", "symbol=50"),
        ("gpu03", "counter", "eth0", "ecn:3=50"),
    )
    with ailing(fabric, *ailments):
        ran = verify(fabric, "--only", "counters", status=1)
    assert told(ran) == {
        "pause-grows": {"eos1 Ethernet1/1"},
        "frame-errors": {"eos1 Ethernet2/1", "son1 Ethernet0", "gpu02 eth1"},
        "lossless-drops": {"cum1 swp2"},
    }
    notes = [one for one in ran.data["findings"] if one["severity"] == "note"]
    assert [(one["name"], one["places"][0]["node"]) for one in notes] == [("congestion", "gpu03")]
    pause = next(one for one in ran.data["findings"] if one["name"] == "pause-grows")
    assert "/s)" in pause["found"]
    assert pause["peer"] == "cabled to gpu01 eth0"
    assert pause["position"]["file"].endswith("cables.csv")
    assert pause["position"]["line"] == 2


def test_growing_pause_alone_is_a_warning(fabric: Fabric) -> None:
    with ailing(fabric, ("eos1", "counter", "Ethernet1/1", "pfc-tx:3=200")):
        ran = verify(fabric, "--only", "counters", "--limit", "eos1", status=0)
    assert told(ran) == {"pause-grows": {"eos1 Ethernet1/1"}}


def test_a_slow_link_a_small_mtu_and_a_black_hole(fabric: Fabric) -> None:
    with ailing(
        fabric,
        ("son1", "speed", "Ethernet8", "100G"),
        ("gpu02", "active-mtu", "eth1", "1024"),
        ("eos1", "blackhole", "Ethernet3/1", "3000"),
    ):
        ran = verify(fabric, "--only", "config,speed,sm,mtu,paths", status=1)
    assert told(ran) == {
        "link-slow": {"cum1 swp4", "son1 Ethernet8"},
        "rdma-mtu-low": {"gpu02 eth1"},
        "path-mtu-low": {"gpu03 eth0"},
    }
    lost = next(one for one in ran.data["findings"] if one["name"] == "path-mtu-low")
    assert lost["peer"] == "cabled to eos1 Ethernet3/1"


def test_a_silent_node_fails_and_the_rest_is_judged(fabric: Fabric) -> None:
    with fabric.broken("gpu01", "unreachable"):
        ran = verify(fabric, "--only", "counters", status=1)
    assert told(ran) == {"node-not-read": {"gpu01"}}
    assert step(ran, "counters")["judged"] == 16


def test_bandwidth_is_measured_on_request_and_compared_with_a_baseline(fabric: Fabric) -> None:
    words = ("--only", "speed", "--perftest", "--limit", "gpu01,gpu02")
    ran = verify(fabric, *words, "--baseline", status=0)
    assert step(ran, "perftest")["judged"] == 2
    metrics = step(ran, "perftest")["metrics"]
    assert all(one["value"] > 360 for one in metrics.values())
    with ailing(fabric, ("eos1", "counter", "Ethernet1/1", "pfc-rx:3=24000")):
        ran = verify(fabric, *words, status=1)
    assert told(ran) == {"bandwidth-low": {"gpu01 eth0", "gpu02 eth0"}}
    assert ran.data["baseline"]
    assert "ib_write_bw" not in fabric.somebody("gpu01", PROCESSES)
