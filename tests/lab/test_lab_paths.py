"""Packets through the lab's cables: which way, which MTUs, black holes, and `ping` on hosts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.lab import asking, channels, fabric, paths
from rdma_fabric.lab.fabric import LabNode
from rdma_fabric.lab.hosttools import perftest
from rdma_fabric.lab.hosttools import ping as tool
from rdma_fabric.lab.paths import Fate, Step
from rdma_fabric.lab.planned import lab_nodes
from rdma_fabric.lab.simulators._contract import DeviceFacts, Passage, PortFact
from rdma_fabric.lab.simulators.arista_eos import EosDevice
from rdma_fabric.lab.simulators.cumulus import Cumulus
from rdma_fabric.lab.simulators.sonic import SonicDevice
from tests.lab.hostlab import why_not
from tests.support.fabrics import REPOSITORY


def cable(a_port: str, b_node: str, b_port: str) -> PortFact:
    return PortFact(a_port, 400, peer_node=b_node, peer_port=b_port)


NODES = [
    LabNode(DeviceFacts("a", "linux", ports=(cable("e0", "leaf1", "p1"),)), "host"),
    LabNode(
        DeviceFacts("b", "linux", ports=(cable("e0", "leaf2", "p1"), cable("e1", "leaf1", "p9"))), "host"
    ),
    *(
        LabNode(
            DeviceFacts(
                f"leaf{n}",
                "toy",
                ports=(
                    cable("p1", "ab"[n - 1], "e0"),
                    *(cable(f"up{m}", f"spine{m}", f"p{n}") for m in (1, 2)),
                    *([cable("p9", "b", "e1")] if n == 1 else []),
                ),
            )
        )
        for n in (1, 2)
    ),
    *(
        LabNode(
            DeviceFacts(f"spine{m}", "toy", ports=tuple(cable(f"p{n}", f"leaf{n}", f"up{m}") for n in (1, 2)))
        )
        for m in (1, 2)
    ),
]
TRANSIT = frozenset({"leaf1", "leaf2", "spine1", "spine2"})


def way(
    target: tuple[str, str] = ("b", "e0"), down: tuple[tuple[str, str], ...] = (), key: str = "x"
) -> list[str]:
    steps = paths.way(("a", "e0"), target, paths.cables(NODES), TRANSIT, lambda port: port not in down, key)
    return [f"{step.out[0]}.{step.out[1]}" for step in steps]


def test_the_way_is_a_shortest_one_and_the_same_for_a_pair() -> None:
    assert way(("b", "e1")) == ["a.e0", "leaf1.p9"]
    found = way()
    assert found == way() and len(found) == 4 and found[0] == "a.e0" and found[-1] == "leaf2.p1"
    assert {way(key=str(key))[1] for key in range(20)} == {"leaf1.up1", "leaf1.up2"}


def test_a_link_that_is_down_at_either_end_is_no_way() -> None:
    assert {way(down=(("spine1", "p1"),), key=str(key))[1] for key in range(20)} == {"leaf1.up2"}
    assert {way(down=(("leaf2", "up2"),), key=str(key))[1] for key in range(20)} == {"leaf1.up1"}
    assert way(down=(("spine1", "p1"), ("spine2", "p2"))) == []
    assert way(down=(("b", "e0"),)) == way(("nobody", "e0")) == []


def fate(size: int, fragile: bool = True, /, **changed: Passage) -> Fate:
    """Over leaf1 and leaf2, whose ports are layer 3 with 9214; `changed`: name_port -> passage."""
    steps = (
        Step(("a", "e0"), ("leaf1", "p1")),
        Step(("leaf1", "up1"), ("leaf2", "up1")),
        Step(("leaf2", "p1"), ("b", "e0")),
    )
    usual = Passage(sends=9214, answers=True, address="192.0.2.1")

    def passage(port: tuple[str, str]) -> Passage:
        default = Passage(takes=9000, sends=9000) if port[0] in "ab" else usual
        return changed.get("_".join(port), default)

    return paths.carry(steps, size, passage, fragile)


def test_what_fits_arrives() -> None:
    assert fate(9000) == Fate(True, routed=2)
    assert fate(9001) == Fate(False)  # the receiver's MTU


def test_layer_3_answers_and_layer_2_is_silent() -> None:
    routed = Passage(sends=1500, answers=True, address="192.0.2.7")
    assert fate(1500, leaf2_p1=routed).arrived
    assert fate(1501, leaf2_p1=routed) == Fate(False, 1500, "192.0.2.1", 1)
    assert fate(1501, False, leaf2_p1=routed).arrived
    assert fate(1501, leaf2_p1=Passage(sends=1500)) == Fate(False)
    assert fate(1501, leaf2_up1=Passage(takes=1500, sends=1500, answers=True)) == Fate(
        False
    )  # not taken from the wire


def test_black_holes_are_silent_in_both_directions() -> None:
    for port in ("leaf1_up1", "leaf2_up1"):
        holed = Passage(sends=9214, answers=True, hole=4000)
        assert fate(4000, True, **{port: holed}).arrived and fate(4001, True, **{port: holed}) == Fate(False)


def test_the_way_back_is_the_same_cables() -> None:
    steps = (Step(("a", "e0"), ("l", "p1")), Step(("l", "p2"), ("b", "e0")))
    assert paths.back(steps) == (Step(("b", "e0"), ("l", "p2")), Step(("l", "p1"), ("a", "e0")))


# --- addresses ---


def test_every_fabric_port_of_a_host_has_addresses_of_its_network() -> None:
    from rdma_fabric.cli.common import load

    nodes = lab_nodes(load(REPOSITORY / "inventory" / "mixed").inventory)
    ports = {
        (node.facts.name, port): fields
        for node in nodes
        for port, fields in node.host.get("ports", {}).items()
        if fields["nic"] != "ib"
    }
    for key, pattern in (("address", r"10\.2\d\d\.\d+\.\d+/16"), ("address6", r"fd00:2\d\d::[0-9a-f]+/64")):
        given = [fields[key] for fields in ports.values() if key in fields]
        assert given and len(set(given)) == len(given)
        assert all(re.fullmatch(pattern, text) for text in given)
    networks = {fields["address"].split(".")[1] for fields in ports.values() if "address" in fields}
    assert networks <= {"200", "201", "202", "203"}
    over_ib = [f for node in nodes for f in node.host.get("ports", {}).values() if f["nic"] == "ib"]
    assert over_ib and not any("address" in fields for fields in over_ib)


# --- what the simulators say of their ports ---


def test_passages_of_eos() -> None:
    ports = tuple(PortFact(f"Ethernet{n}/1", 400) for n in (1, 2, 3))
    device = EosDevice(DeviceFacts("l", "arista_eos", "DCS-7060X6-64PE", "4.32", ports), lambda: 0.0)
    device.somebody(
        (
            *("configure", "interface Ethernet1/1", "no switchport", "mtu 9214", "ip address 192.0.2.0/31"),
            *("interface Ethernet2/1", "no switchport", "interface Ethernet3/1", "shutdown", "end"),
        )
    )
    assert device.passage("Ethernet1/1") == Passage(True, 0, 9214, True, "192.0.2.0")
    assert device.passage("Ethernet2/1") == Passage(True, 0, 1500, True)
    assert device.passage("Ethernet3/1") == Passage(False, 0, 9214, False)  # bridged


def test_passages_of_sonic() -> None:
    ports = tuple(PortFact(f"Ethernet{8 * n}", 400, lanes=str(n), alias=f"etp{n}") for n in (0, 1))
    device = SonicDevice(DeviceFacts("l", "sonic", "ACS-SN5600", "202411", ports), lambda: 0.0)
    first = device.passage("Ethernet0")
    assert (first.up, first.takes, first.sends) == (True, 9100, 9100)
    device.somebody(("sonic-db-cli CONFIG_DB HSET 'PORT|Ethernet8' mtu 4000 admin_status down",))
    assert device.passage("Ethernet8").sends == 4000 and not device.passage("Ethernet8").up
    assert device.passage("Ethernet99") == Passage(up=False)


def test_passages_of_cumulus() -> None:
    seed = (
        *("nv set interface swp1 link mtu 4000", "nv set interface swp2 link state down"),
        *("nv set interface swp1 ip address 192.0.2.9/31",),
    )
    facts = DeviceFacts(
        "l", "cumulus", "SN5600", "5.14", (PortFact("swp1", 400), PortFact("swp2", 400)), seed
    )
    device = Cumulus(facts, lambda: 0.0)
    assert device.passage("swp1") == Passage(True, 4000, 4000, True, "192.0.2.9")
    assert device.passage("swp2") == Passage(False, 9216, 9216, True)


# --- what the lab answers to the tools, without sandboxes ---


class _Desk:
    """A host that is up, with one address; what `asking` needs of a sandbox."""

    def __init__(self, address: str, mtu: int = 9000) -> None:
        self.address, self.mtu = address, mtu

    def argv(self, command: str | None, user: str = "root") -> list[str]:
        link = {"ifname": "ens1", "flags": ["UP"], "addr_info": [{"local": self.address}]}
        return ["/bin/echo", json.dumps([link])]

    def files(self, path: str) -> bytes:
        return b"1\n" if path.endswith("/carrier") else f"{self.mtu}\n".encode()


def around(leaf_mtu: int = 9214) -> tuple[asking.Fabric, dict[str, Any]]:
    """gpu01 ens1 - leaf01 - ens1 gpu02, with a real simulator between."""
    seed = tuple(
        line for n in (1, 2) for line in (f"interface Ethernet{n}/1", "no switchport", f"mtu {leaf_mtu}")
    )
    ports = tuple(cable(f"Ethernet{n}/1", f"gpu0{n}", "ens1") for n in (1, 2))
    plans = [LabNode(DeviceFacts("leaf01", "arista_eos", "DCS-7060X6-64PE", "4.32", ports, seed))]
    for n in (1, 2):
        facts = DeviceFacts(f"gpu0{n}", "linux", ports=(cable("ens1", "leaf01", f"Ethernet{n}/1"),))
        plans.append(LabNode(facts, "host", host={"ports": {"ens1": {"address": f"10.200.0.{n}/16"}}}))
    nodes: dict[str, Any] = {}
    for plan in plans:
        name = plan.facts.name
        node = channels.Node(name, plan, cast("Any", None), cast("Any", None), lambda: 0.0)
        if plan.kind == "host":
            node.host = cast("Any", _Desk(f"10.200.0.{name[-1]}"))
        nodes[name] = node
    return asking.Fabric(plans, nodes), nodes


def packet(fabric_: asking.Fabric, size: int, to: str = "10.200.0.2", version: int = 4) -> dict[str, Any]:
    request = {"port": "ens1", "to": to, "size": size, "fragile": True, "version": version}
    return dict(asyncio.run(fabric_.packet("gpu01", request)))


def test_the_lab_says_what_becomes_of_a_packet() -> None:
    found, nodes = around()
    assert packet(found, 4192)["arrived"] and packet(found, 4192)["routed"] == 1
    assert packet(found, 4192, "10.200.0.9") == {}
    nodes["leaf01"].health.blackholes["Ethernet1/1"] = 4000
    assert packet(found, 4000)["arrived"] and not packet(found, 4001).get("arrived")
    smaller, _ = around(1500)
    said = {"arrived": False, "mtu": 1500, "answerer": "192.0.0.8", "routed": 0}
    assert packet(smaller, 1501) == said and packet(smaller, 1501, version=6)["answerer"] == "fe80::1"


def bandwidth(found: asking.Fabric, mtu: int = 4096) -> tuple[float, float]:
    """What the client and the server of a measurement are told."""

    async def meet() -> tuple[float, float]:
        near, far = ({"port": "ens1", "mtu": size} for size in (4096, mtu))
        request = {"tool": "ib_write_bw", "tcp": 18515}
        assert (
            await found.connect("gpu01", {**request, "to": "10.200.0.2", "end": near}) == {}
        )  # nobody waits
        server = asyncio.create_task(found.serve("gpu02", {**request, "end": far}))
        await asyncio.sleep(0)
        assert await found.connect("gpu01", {**request, "tcp": 18516, "to": "10.200.0.2", "end": near}) == {}
        client = await found.connect("gpu01", {**request, "to": "10.200.0.2", "end": near})
        served = await server
        assert (client["end"], served["end"]) == (far, near)
        return client["gbps"], served["gbps"]

    return asyncio.run(meet())


def test_bandwidth_is_that_of_the_slowest_link_less_headers_and_pauses() -> None:
    found, nodes = around()
    whole = 400 * 4096 / (4096 + 98)
    assert bandwidth(found)[0] == bandwidth(found)[1] == pytest.approx(whole)
    assert bandwidth(found, 1024)[0] == pytest.approx(400 * 1024 / 1122)
    nodes["leaf01"].health.speeds["Ethernet2/1"] = 100
    assert bandwidth(found)[0] == pytest.approx(whole / 4)
    nodes["leaf01"].health.grow("Ethernet1/1", "pfc-rx:3", 100_000)
    assert bandwidth(found)[0] == pytest.approx(whole / 8)
    nodes["leaf01"].health.grow("Ethernet1/1", "pfc-rx:3", 10_000_000)
    assert bandwidth(found)[0] == pytest.approx(whole / 4 * 0.05)
    nodes["leaf01"].health.blackholes["Ethernet1/1"] = 4100
    assert bandwidth(found) == (0.0, 0.0)


def test_the_table_of_perftest() -> None:
    options = dict(perftest._DEFAULTS, iterations="5000", gbits="yes")
    assert perftest._row(options, 65536, 390.65) == (
        " 65536      5000             391.43             390.65 \t\t   0.745106\n"
    )
    # 390.65 Gbit/s are 46,569.11 MiB/s; the peak is not measured with -D.
    timed = {**options, "duration": "10"}
    del timed["gbits"]
    assert perftest._row(timed, 65536, 390.65).split() == ["65536", "7451057", "0.00", "46569.11", "0.745106"]
    assert perftest._row(options, 2, 390.65).split()[3:] == ["0.16", "10.000000"]


@pytest.mark.parametrize(
    ("count", "received", "errors", "said"),
    [
        (3, 0, 0, "3 packets transmitted, 0 received, 100% packet loss, time 2020ms\n\n"),
        (3, 0, 3, "3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2020ms\n\n"),
        (
            3,
            2,
            0,
            "3 packets transmitted, 2 received, 33.3333% packet loss, time 2020ms\nrtt min/avg/max/mdev = ",
        ),
    ],
)
def test_the_last_lines_of_ping(
    capsys: pytest.CaptureFixture[str], count: int, received: int, errors: int, said: str
) -> None:
    tool._finish("192.0.2.1", "192.0.2.2", count, received, errors)
    assert capsys.readouterr().out.startswith(f"\n--- 192.0.2.1 ping statistics ---\n{said}")


def test_options_of_ping_stand_alone_and_together() -> None:
    options, target = tool._parse(["-qc3", "-M", "do", "-s4164", "-I", "ens1", "192.0.2.1"])
    assert target == "192.0.2.1"
    assert options == {"q": "", "c": "3", "M": "do", "s": "4164", "I": "ens1"}
    with pytest.raises(tool.Stop, match="option requires an argument -- 's'"):
        tool._parse(["192.0.2.1", "-s"])


# --- ping on hosts ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """gpu01 ens1 - leaf01 (EOS, routed) - leaf02 (Cumulus, routed) - ens1 gpu02; ens2 is cabled straight."""
    if reason := why_not():
        pytest.skip(reason)
    path = tmp_path_factory.mktemp("paths")
    eos = ("Ethernet1/1", "Ethernet2/1")
    seed = tuple(line for port in eos for line in (f"interface {port}", "no switchport", "mtu 9214"))
    nodes = [
        LabNode(
            DeviceFacts(
                "leaf01",
                "arista_eos",
                "DCS-7060X6-64PE",
                "4.32",
                (cable("Ethernet1/1", "gpu01", "ens1"), cable("Ethernet2/1", "leaf02", "swp2")),
                (*seed, "interface Ethernet1/1", "ip address 10.200.255.1/16"),
            )
        ),
        LabNode(
            DeviceFacts(
                "leaf02",
                "cumulus",
                "SN5600",
                "5.14",
                (cable("swp1", "gpu02", "ens1"), cable("swp2", "leaf01", "Ethernet2/1")),
            )
        ),
    ]
    for number, other in ((1, 2), (2, 1)):
        ports = (
            cable("ens1", f"leaf0{number}", ("Ethernet1/1", "swp1")[number - 1]),
            cable("ens2", f"gpu0{other}", "ens2"),
        )
        plan = {
            "ens1": {"nic": "mlx5", "address": f"10.200.0.{number}/16", "address6": f"fd00:200::{number}/64"},
            "ens2": {"nic": "bnxt", "address": f"10.201.0.{number}/16"},
        }
        nodes.append(
            LabNode(DeviceFacts(f"gpu0{number}", "linux", ports=ports), "host", host={"ports": plan})
        )
    fabric.up(path, nodes)
    try:
        for name in ("gpu01", "gpu02"):
            fabric.somebody(path, name, ["ip link set ens1 mtu 9000; ip link set ens2 mtu 9000"])
        yield path
    finally:
        fabric.down(path)


@pytest.fixture
def sound(folder: Path) -> Iterator[Path]:
    yield folder
    for name in ("leaf01", "leaf02"):
        fabric.mend(folder, name)


def ping(folder: Path, words: str) -> tuple[int, str]:
    text = fabric.somebody(folder, "gpu01", [f"ping {words}; echo status $?"])
    body, _, status = text.rpartition("status ")
    return int(status), body


@pytest.mark.lab
def test_a_whole_answer(sound: Path) -> None:
    status, text = ping(sound, "-M do -s 4164 -c 2 -I ens1 10.200.0.2")
    assert status == 0
    shape = (
        r"PING 10\.200\.0\.2 \(10\.200\.0\.2\) from 10\.200\.0\.1 ens1: 4164\(4192\) bytes of data\.\n"
        r"4172 bytes from 10\.200\.0\.2: icmp_seq=1 ttl=62 time=0\.\d{3} ms\n"
        r"4172 bytes from 10\.200\.0\.2: icmp_seq=2 ttl=62 time=0\.\d{3} ms\n\n"
        r"--- 10\.200\.0\.2 ping statistics ---\n"
        r"2 packets transmitted, 2 received, 0% packet loss, time \d+ms\n"
        r"rtt min/avg/max/mdev = 0\.\d{3}/0\.\d{3}/0\.\d{3}/0\.\d{3} ms\n"
    )
    assert re.fullmatch(shape, text), text


@pytest.mark.lab
def test_a_black_hole_is_silent_above_its_size(sound: Path) -> None:
    fabric.ail(sound, "leaf02", "blackhole", ["swp2", "4000"])
    assert ping(sound, "-M do -s 3972 -c 1 -I ens1 10.200.0.2")[0] == 0
    status, text = ping(sound, "-M do -s 3973 -c 3 -I ens1 10.200.0.2")
    assert status == 1
    assert text.endswith("3 packets transmitted, 0 received, 100% packet loss, time 2020ms\n\n")
    assert "From" not in text
    fabric.mend(sound, "leaf02", "blackhole")
    assert ping(sound, "-M do -s 3973 -c 1 -I ens1 10.200.0.2")[0] == 0


@pytest.mark.lab
def test_a_router_with_a_smaller_mtu_answers_and_the_kernel_remembers(sound: Path) -> None:
    lines = ["configure", "interface Ethernet2/1", "mtu 1500", "end"]
    fabric.somebody(sound, "leaf01", lines)
    try:
        status, text = ping(sound, "-M do -s 1473 -c 3 -I ens1 10.200.0.2")
        assert status == 1
        assert "From 10.200.255.1 icmp_seq=1 Frag needed and DF set (mtu = 1500)\n" in text
        assert text.count("ping: local error: message too long, mtu=1500\n") == 2
        assert "3 packets transmitted, 0 received, +3 errors, 100% packet loss" in text
        assert ping(sound, "-M do -s 1472 -c 1 -I ens1 10.200.0.2")[0] == 0
        assert ping(sound, "-s 4000 -c 1 -I ens1 10.200.0.2")[0] == 0  # fragments
        status, text = ping(sound, "-M do -s 1453 -c 1 -I ens1 fd00:200::2")
        assert status == 1 and "icmp_seq=1 Packet too big: mtu=1500\n" in text
    finally:
        fabric.somebody(sound, "leaf01", [*lines[:2], "mtu 9214", "end"])


@pytest.mark.lab
def test_a_switch_that_takes_less_is_silent(sound: Path) -> None:
    fabric.somebody(sound, "leaf02", ["nv set interface swp2 link mtu 4000", "nv config apply -y"])
    try:
        assert ping(sound, "-M do -s 3972 -c 1 -I ens1 10.200.0.2")[0] == 0
        assert ping(sound, "-M do -s 3973 -c 1 -I ens1 10.200.0.2")[0] == 1
    finally:
        fabric.somebody(sound, "leaf02", ["nv unset interface swp2 link mtu", "nv config apply -y"])


@pytest.mark.lab
def test_ipv6(sound: Path) -> None:
    status, text = ping(sound, "-M do -s 4144 -c 1 -I ens1 fd00:200::2")
    if "unreachable" in text:
        pytest.skip("this machine's sandboxes have no IPv6")
    assert status == 0
    assert text.startswith(
        "PING fd00:200::2(fd00:200::2) from fd00:200::1 ens1: 4144 data bytes\n4152 bytes from fd00"
    )


@pytest.mark.lab
def test_the_sender_and_the_receiver_have_mtus_too(sound: Path) -> None:
    status, text = ping(sound, "-M do -s 8973 -c 2 -I ens1 10.200.0.2")
    assert status == 1 and text.count("ping: local error: message too long, mtu=9000\n") == 2
    fabric.somebody(sound, "gpu02", ["ip link set ens1 mtu 4000"])
    try:
        assert ping(sound, "-M do -s 3973 -c 1 -I ens1 10.200.0.2")[0] == 1
    finally:
        fabric.somebody(sound, "gpu02", ["ip link set ens1 mtu 9000"])


@pytest.mark.lab
def test_links_that_are_down(sound: Path) -> None:
    fabric.somebody(sound, "leaf01", ["configure", "interface Ethernet2/1", "shutdown", "end"])
    try:
        assert ping(sound, "-c 1 -I ens1 10.200.0.2")[0] == 1
    finally:
        fabric.somebody(sound, "leaf01", ["configure", "interface Ethernet2/1", "no shutdown", "end"])
    assert ping(sound, "-c 1 -I ens1 10.200.0.2")[0] == 0


@pytest.mark.lab
def test_a_cable_from_host_to_host_and_no_way_between_networks(sound: Path) -> None:
    assert ping(sound, "-M do -s 4164 -c 1 -I ens2 10.201.0.2")[0] == 0
    status, text = ping(sound, "-M do -c 1 -I ens1 10.200.0.77")
    assert status == 1 and text.endswith("1 packets transmitted, 0 received, 100% packet loss, time 0ms\n\n")


@pytest.mark.lab
@pytest.mark.parametrize(
    ("words", "said", "wanted"),
    [
        ("-c 1 -I ens9 10.200.0.2", "ping: unknown iface: ens9\n", 2),
        ("-c 1 gpu02", "ping: gpu02: Name or service not known\n", 2),
        ("-c 1 203.0.113.9", "ping: connect: Network is unreachable\n", 2),
        ("-M never -c 1 10.200.0.2", "ping: invalid -M argument: never\n", 2),
        ("-s 65508 -c 1 10.200.0.2", "ping: packet size 65508 is too large. Maximum is 65507\n", 2),
        ("-c 0 10.200.0.2", "ping: invalid argument: '0': out of range", 2),
        ("-Z 10.200.0.2", "ping: invalid option -- 'Z'\n", 2),
        ("-c 1", "ping: usage error: Destination address required\n", 1),
    ],
)
def test_what_ping_refuses(sound: Path, words: str, said: str, wanted: int) -> None:
    status, text = ping(sound, words)
    assert (status, text[: len(said)]) == (wanted, said)


# --- perftest ---


def measure(folder: Path) -> tuple[int, str, str]:
    """Status and output of the client on gpu01, and what its server on gpu02 said."""
    command = "ib_write_bw -d mlx5_0 --report_gbits"
    server = f"({command} > /tmp/bw 2>&1; echo status $? >> /tmp/bw)"
    start = f"rm -f /tmp/bw; {server} > /dev/null 2>&1 < /dev/null &"
    fabric.somebody(folder, "gpu02", [start])
    again = f"{command} 10.200.0.2 > /tmp/bw 2>&1; s=$?; grep -q 'connect to' /tmp/bw"
    lines = f"for i in $(seq 50); do {again} || break; sleep 0.1; done; cat /tmp/bw; echo status $s"
    body, _, status = fabric.somebody(folder, "gpu01", [lines]).rpartition("status ")
    ended = "for i in $(seq 50); do grep -q ^status /tmp/bw && break; sleep 0.1; done; cat /tmp/bw"
    return int(status), body, fabric.somebody(folder, "gpu02", [ended])


def average(text: str) -> float:
    found = re.search(r"^ 65536 +5000 +([\d.]+) +([\d.]+)\s+([\d.]+)\n-+\n", text, re.MULTILINE)
    assert found, text
    return float(found[2])


@pytest.mark.lab
def test_measured_bandwidth_follows_the_links(sound: Path) -> None:
    status, text, far = measure(sound)
    assert status == 0 and far.endswith("status 0\n")
    assert average(text) == average(far) == pytest.approx(400 * 4096 / 4194, abs=0.01)
    for line in (
        "                    RDMA_Write BW Test",
        " Dual-port       : OFF\t\tDevice         : mlx5_0",
        " Mtu             : 4096[B]",
        " Link type       : Ethernet",
        " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:200:00:02",
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
    ):
        assert f"{line}\n" in text, text
    assert "* Waiting for client to connect... *" in far
    fabric.ail(sound, "leaf01", "speed", ["Ethernet2/1", "100G"])
    fabric.ail(sound, "leaf01", "counter", ["Ethernet1/1", "pfc-rx:3=100000"])
    assert average(measure(sound)[1]) == pytest.approx(50 * 4096 / 4194, abs=0.01)


@pytest.mark.lab
def test_bandwidth_where_rdma_packets_do_not_pass(sound: Path) -> None:
    fabric.ail(sound, "leaf02", "blackhole", ["swp2", "4100"])
    status, text, far = measure(sound)
    assert status == 1 and " Failed status 12: wr_id 0 syndrom 0x81\n" in text
    assert far.endswith("status 1\n")
    fabric.ail(sound, "gpu02", "active-mtu", ["ens1", "2048"])
    status, text, _ = measure(sound)
    assert status == 0 and " Mtu             : 2048[B]\n" in text
    fabric.mend(sound, "gpu02")


@pytest.mark.lab
def test_what_perftest_refuses(sound: Path) -> None:
    def client(words: str) -> str:
        return fabric.somebody(sound, "gpu01", [f"ib_write_bw {words}; echo status $?"])

    assert client("-d mlx5_0 10.200.0.2").endswith(
        "Couldn't connect to 10.200.0.2:18515\n Unable to init the socket connection\nstatus 1\n"
    )
    assert client("-d mlx5_9 10.200.0.2").endswith(
        "IB device mlx5_9 not found\n Unable to find the Infiniband/RoCE device\nstatus 1\n"
    )
    assert " Invalid Command or flag." in client("--frob 10.200.0.2")
