"""What-ifs of the command line: alone, combined, and what is said about those that mean nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.cli import main
from rdma_fabric.findings import InputError
from rdma_fabric.resolve import Resolved
from rdma_fabric.what_if import split, without

FABRIC = """
version: 1
name: what-if
rdma: {transport: rocev2, mtu: 4096}
mtu: {switch: 9100, host: 9000}
classes:
  roce: {priority: 3, dscp: [26], lossless: true, bandwidth: 50%}
  default: {priority: 0, dscp: rest, bandwidth: 50%}
ecn: {400G: {kmin: 600KB, kmax: 2400KB}}
networks:
  compute: {}
  storage: {mtu: {host: 4200}}
"""
GROUPS = """
leaf:
  platform: arista_eos
  data:
    role: leaf
    model: DCS-7060X6-64PE
    version: "4.32.1F"
    ports:
      "Ethernet[1-2]/1": {speed: 400G, network: compute}
      "Ethernet[3-4]/1": {speed: 400G, network: storage}
      "Ethernet9/1": {speed: 400G}
gpu:
  platform: linux
  data:
    role: host
    ports:
      eth0: {nic: mlx5, speed: 400G, network: compute, rdma: mlx5_0}
      eth1: {nic: mlx5, speed: 400G, network: storage, rdma: mlx5_1}
"""
HOSTS = """
leaf01: {groups: [leaf], hostname: 192.0.2.1}
gpu[01-02]: {groups: [gpu], hostname: "192.0.2.[11-12]"}
"""
CABLES = """a_node,a_port,b_node,b_port,length_m
gpu[01-02],eth0,leaf01,Ethernet[1-2]/1,5
gpu[01-02],eth1,leaf01,Ethernet[3-4]/1,5
"""
CABLE = "gpu01:eth0 - leaf01:Ethernet1/1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"fabric.yaml": FABRIC, "groups.yaml": GROUPS, "hosts.yaml": HOSTS, "cables.csv": CABLES}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def _resolved(folder: Path, *words: str) -> Resolved:
    """Words as on the command line: --set is left out, what is taken out begins with a minus."""
    from rdma_fabric.cli.common import load
    from rdma_fabric.what_if import WhatIf

    return load(folder, tuple(WhatIf(one[1:], None) if one[0] == "-" else split(one) for one in words))


def _mtu(resolved: Resolved, node: str, port: str) -> Any:
    return resolved.plans[node].ports[port].settings.mtu.ip


def _wrong(folder: Path, *words: str) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        _resolved(folder, *words)
    assert all(one.position is not None and one.position.line == 0 for one in caught.value.findings)
    return [(one.message, one.help) for one in caught.value.findings]


def test_the_intent(folder: Path) -> None:
    found = _resolved(folder, "mtu.host=8000")
    # As of old it lies over intent and networks.
    assert [_mtu(found, "gpu01", port) for port in ("eth0", "eth1")] == [8000, 8000]


def test_a_network(folder: Path) -> None:
    found = _resolved(folder, "networks.compute.mtu.host=4300")
    assert [_mtu(found, "gpu01", port) for port in ("eth0", "eth1")] == [4300, 4200]
    found = _resolved(folder, "networks.storage={mtu: {host: 5000}, rdma: {mtu: 2048}}")
    assert _mtu(found, "gpu01", "eth1") == 5000
    assert found.plans["gpu01"].ports["eth1"].wishes.rdma.mtu == 2048
    assert found.plans["gpu01"].ports["eth0"].wishes.rdma.mtu == 4096


def test_a_network_without_a_key_has_the_intents(folder: Path) -> None:
    assert _mtu(_resolved(folder, "-networks.storage.mtu.host"), "gpu01", "eth1") == 9000
    assert _mtu(_resolved(folder, "-networks.storage"), "gpu01", "eth1") == 9000


def test_of_intent_and_network_the_later_one_holds(folder: Path) -> None:
    found = _resolved(folder, "mtu.host=8000", "networks.storage.mtu.host=7000")
    assert [_mtu(found, "gpu01", port) for port in ("eth0", "eth1")] == [8000, 7000]
    found = _resolved(folder, "networks.storage.mtu.host=7000", "mtu.host=8000")
    assert [_mtu(found, "gpu01", port) for port in ("eth0", "eth1")] == [8000, 8000]


@pytest.mark.parametrize("who", ["gpu[01-02]", "gpu*", "role=host", "group=gpu"])
def test_nodes(who: str, folder: Path) -> None:
    found = _resolved(folder, f"{who}:mtu.host=6000")
    assert {_mtu(found, node, port) for node in ("gpu01", "gpu02") for port in ("eth0", "eth1")} == {6000}


def test_a_port(folder: Path) -> None:
    found = _resolved(folder, "gpu01:eth0:mtu.host=6000", "leaf01:Ethernet[1-2]/1:mtu=7000")
    assert [_mtu(found, "gpu01", port) for port in ("eth0", "eth1")] == [6000, 4200]
    assert [_mtu(found, "leaf01", f"Ethernet{n}/1") for n in (1, 2, 3)] == [7000, 7000, 9100]


@pytest.mark.parametrize("cable", [CABLE, "leaf01 Ethernet1/1 - gpu01 eth0"])
def test_both_ends_of_a_cable(cable: str, folder: Path) -> None:
    found = _resolved(folder, f"{cable}:mtu=5000")
    assert [_mtu(found, *end) for end in (("gpu01", "eth0"), ("leaf01", "Ethernet1/1"))] == [5000, 5000]
    assert _mtu(found, "leaf01", "Ethernet2/1") == 9100


def test_the_cable_itself(folder: Path) -> None:
    found = _resolved(folder, f"{CABLE}:length_m=250", f"{CABLE}:speed=100G")
    assert [link.length_m for link in found.inventory.links] == [250, 5, 5, 5]
    for node, port in (("gpu01", "eth0"), ("leaf01", "Ethernet1/1")):
        facts = found.plans[node].hardware.port(port)
        assert facts is not None and (facts.speed_gbps, facts.cable_m) == (100, 250)
    other = found.plans["gpu02"].hardware.port("eth0")
    assert other is not None and (other.speed_gbps, other.cable_m) == (400, 5)


def test_a_cable_of_unknown_length_and_none_at_all(folder: Path) -> None:
    found = _resolved(folder, f"-{CABLE}:length_m")
    assert [link.length_m for link in found.inventory.links] == [None, 5, 5, 5]
    found = _resolved(folder, f"-{CABLE}", "-gpu02 eth0 - leaf01 Ethernet2/1")
    assert [link.a.port for link in found.inventory.links] == ["eth1", "eth1"]


def test_all_at_once(folder: Path) -> None:
    found = _resolved(
        folder,
        "mtu.switch=9000",
        "networks.storage.mtu.host=8500",
        "gpu02:eth1:mtu.host=8400",
        "-ecn",
        f"-{CABLE}",
    )
    mtus = [_mtu(found, "leaf01", "Ethernet1/1"), *(_mtu(found, f"gpu0{n}", "eth1") for n in (1, 2))]
    assert mtus == [9000, 8500, 8400]
    assert found.plans["leaf01"].wishes.ecn is None
    assert len(found.inventory.links) == 3


@pytest.mark.parametrize(
    ("word", "message", "help"),
    [
        ("networks.storge.mtu.host=1", "there is no network 'storge'", "did you mean networks.storage?"),
        ("networks.x=1", "there is no network 'x'", "networks are compute, storage"),
        ("networks=1", "it names no network", "networks are compute, storage"),
        ("networks.storage=1", "networks.storage is a map of settings", "write networks.storage.KEY=VALUE"),
        ("mtu=4200", "mtu holds further keys", "write one of mtu.switch, mtu.host, mtu.svi"),
        ("gpu01:mtu=4200", "mtu holds further keys", "write one of mtu.switch"),
        ("mut.host=4200", "there is no setting 'mut.host'", "did you mean mtu?"),
        ("name=x", "there is no setting 'name'", "settings begin with classes, dcqcn"),
        ("=3", "it names no key", "write KEY=VALUE, networks.NAME.KEY=VALUE, NODE:KEY=VALUE"),
        (":mtu.host=1500", "it names no node", "write KEY=VALUE"),
        ("gpu01::mtu.host=1500", "it names no port", "write KEY=VALUE"),
        ("gpu1:mtu.host=1500", "there is no node gpu1", "did you mean gpu01?"),
        ("gpu01:eth7:mtu.host=1500", "there is no port eth7 of gpu01", "did you mean eth1?"),
        ("leaf01:Ethernet9/1:mtu=1500", "port Ethernet9/1 of leaf01 is in no network", "give it a network"),
        ("role=gpu:mtu.host=1500", "there is no node role=gpu", "see hosts.yaml"),
        (
            "gpu01:eth0:hosts.nccl=true",
            "hosts.nccl holds for whole nodes, not for a port",
            "set it at the top",
        ),
        (
            "networks.compute.hosts.nccl=true",
            "hosts.nccl holds for whole nodes, not for a network",
            "set it at",
        ),
        ("mtu.host=[1", "the list that starts with [ is not closed", "write [one, two]"),
        ("mtu.hots=1", "mtu has no key 'hots'", "did you mean host?"),
        ("gpu01:eth0 - leaf01:Ethernet2/1:speed=100G", "there is no cable", "gpu01 eth0 is cabled to leaf01"),
        ("gpu01:eth0 - leaf09:Ethernet2/1:speed=100G", "there is no node leaf09", "did you mean leaf01?"),
        ("gpu01 - leaf01:Ethernet2/1:speed=100G", "'gpu01' is not the end of a cable", "write NODE:PORT"),
        (f"{CABLE}=3", "it names no key", "write 'NODE:PORT - NODE:PORT:KEY=VALUE'"),
        (f"{CABLE}:lengthm=3", "there is no setting 'lengthm'", "did you mean length_m?"),
        (f"{CABLE}:length_m=-3", "'-3' is not a length", "write metres"),
        (f"{CABLE}:speed=401G", "'401G' is not a speed", "use one of"),
        ("-mtu.svi", "nothing sets mtu.svi", "write a key that is set"),
        ("-networks.compute.mtu", "nothing sets mtu in network compute", "write a key that is set"),
        ("-gpu01:classes.cnp", "nothing sets classes.cnp", "write a key that is set"),
    ],
)
def test_what_means_nothing_is_told(word: str, message: str, help: str, folder: Path) -> None:
    ((text, told),) = _wrong(folder, word)
    assert message in text
    assert help in told


def test_every_mistake_is_told(folder: Path) -> None:
    found = _wrong(folder, "gpu09:mtu.host=9000", "networks.x.mtu.host=9000", "mtu.hots=1", "mtu.host=8000")
    assert {message for message, _ in found} == {
        "there is no node gpu09",
        "there is no network 'x'",
        "mtu has no key 'hots'",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [("storage", "--set needs KEY=VALUE"), ("gpu01:eth0:mtu=", "--set has no value"), ("role=leaf", "")],
)
def test_what_is_no_key_and_value(text: str, message: str) -> None:
    if not message:
        assert split(text).key == "role"  # a key that no intent has, told when it is looked up
        return
    with pytest.raises(InputError) as caught:
        split(text)
    (one,) = caught.value.findings
    assert message in one.message
    assert "networks.NAME.KEY=VALUE" in one.help or "--unset gpu01:eth0:mtu" in one.help


def test_a_value_may_hold_equal_signs_and_colons() -> None:
    assert split("hosts.environment={A: b=c}").text == "{A: b=c}"
    assert split("role=leaf|spine:ecn.400G={kmin: 1MB, kmax: 2MB}").key == "role=leaf|spine:ecn.400G"


def test_without() -> None:
    assert without({"a": {"b": 1, "c": 2}}, ("a", "b")) == {"a": {"c": 2}}
    assert without({"a": 1}, ("a", "b")) is None
    assert without({"a": 1}, ("b",)) is None
    assert without({"a": 1}, ()) == {}


def test_from_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", str(folder), "--format", "json", "--set", "networks.storage.mtu.host=1500"]
    assert main(words) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    errors = [one for one in found if one["severity"] == "error"]
    assert {place["port"] for one in errors for place in one["places"]} == {"eth1"}
    assert errors[0]["position"]["file"] == "--set networks.storage.mtu.host=1500"
