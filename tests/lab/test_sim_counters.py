"""Counters that grow with the clock, and slow links: what simulated switches print of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rdma_fabric.lab.ailments import Ailment
from rdma_fabric.lab.breaks import BreakError
from rdma_fabric.lab.hosttools.health import COUNTERS, Health, history
from rdma_fabric.lab.simulators._contract import Device, DeviceFacts, PortFact
from rdma_fabric.lab.simulators.arista_eos import EosDevice
from rdma_fabric.lab.simulators.cumulus import Cumulus
from rdma_fabric.lab.simulators.sonic import SonicDevice

ROCE = (
    "queue-monitor length",
    "interface Ethernet1/1",
    "no switchport",
    "uc-tx-queue 3",
    "random-detect ecn count",
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


# --- the ledger ---


def test_a_counter_is_what_it_was_plus_rate_times_seconds(clock: Clock) -> None:
    health = Health("leaf01", clock, worn=True)
    base = health.count("swp1", "pfc-rx:3")
    assert base == history("leaf01", "swp1", "pfc-rx:3") > 0
    health.grow("swp1", "pfc-rx:3", 50.0)
    assert health.count("swp1", "pfc-rx:3") == base
    clock.now += 10
    assert health.count("swp1", "pfc-rx:3") == base + 500
    health.grow("swp1", "pfc-rx:3", 0.5)
    clock.now += 10
    assert health.count("swp1", "pfc-rx:3") == base + 505
    health.settle()
    clock.now += 1000
    assert health.count("swp1", "pfc-rx:3") == base + 505


def test_a_sound_used_port_has_a_history_and_does_not_move(clock: Clock) -> None:
    health = Health("leaf01", clock, worn=True)
    before = {name: health.count("swp1", name) for name in COUNTERS}
    assert before["crc"] > 0 and before["ecn:3"] > 0 and before["pfc-rx:0"] == before["drop:3"] == 0
    clock.now += 3600
    assert {name: health.count("swp1", name) for name in COUNTERS} == before
    assert before != {name: Health("leaf02", clock, worn=True).count("swp1", name) for name in COUNTERS}


def test_a_power_cycle_starts_at_zero_and_what_is_broken_goes_on(clock: Clock) -> None:
    health = Health("leaf01", clock, worn=True)
    health.grow("swp1", "crc", 2.0)
    clock.now += 50
    health.restart()
    assert health.count("swp1", "crc") == health.count("swp1", "pfc-rx:3") == 0
    clock.now += 3
    assert health.count("swp1", "crc") == 6


def test_state_passes_to_another_clock(clock: Clock) -> None:
    health = Health("leaf01", clock, worn=True)
    health.grow("swp1", "crc", 1.0)
    other = Clock()
    other.now = clock.now + 5000
    reader = Health(clock=other)
    reader.load(json.loads(json.dumps(health.to_json(behind=5000.0))))
    clock.now, other.now = clock.now + 7, other.now + 7
    assert reader.count("swp1", "crc") == health.count("swp1", "crc") == history("leaf01", "swp1", "crc") + 7


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("counter", ("p",), "write counter PORT NAME=RATE"),
        ("counter", ("p", "crc"), "write counter PORT NAME=RATE"),
        ("counter", ("p", "pfc-rx:8=1"), "there is no counter 'pfc-rx:8'"),
        ("counter", ("p", "pfc-rx=1"), "there is no counter 'pfc-rx'"),
        ("counter", ("p", "crc=-1"), "'-1' is not a rate per second"),
        ("speed", ("p", "fast"), "'fast' is not a speed such as 100G"),
        ("active-mtu", ("p", "1500"), "1500 is no RDMA MTU"),
        ("blackhole", ("p", "0"), "'0' is not a number of bytes"),
        ("blackhole", ("p",), "write blackhole PORT BYTES"),
    ],
)
def test_words_that_do_not_fit(kind: str, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BreakError) as error:
        Ailment.of(kind, words)
    assert str(error.value).startswith(said)


def test_words_that_fit() -> None:
    assert Ailment.of("counter", ("Ethernet1", "ecn:3=2.5")) == Ailment("counter", "Ethernet1", "ecn:3", 2.5)
    assert Ailment.of("speed", ("swp1", "100g")) == Ailment("speed", "swp1", "", 100.0)
    assert Ailment.of("blackhole", ("swp1", "4000")).value == 4000


# --- EOS ---


def eos(clock: Clock) -> tuple[EosDevice, Callable[[str], str]]:
    facts = DeviceFacts(
        "leaf01",
        "arista_eos",
        "DCS-7060X6-64PE",
        "4.32",
        (PortFact("Ethernet1/1", 400), PortFact("Ethernet2/1", 400)),
    )
    device = EosDevice(facts, clock, health=Health("leaf01", clock))
    session = device.open("admin")
    session.run("enable")
    return device, lambda line: session.run(line).text


def grown(device: Device, clock: Clock, port: str) -> None:
    """Every counter grows for ten seconds, each with a rate of its own."""
    for rate, name in enumerate(("pfc-rx:3", "pfc-tx:3", "pfc-rx:4", "ecn:3", "drop:3"), 1):
        device.health.grow(port, name, rate)
    for rate, name in enumerate(("rx-discard", "tx-discard", "crc", "symbol", "fec-uncorrected"), 10):
        device.health.grow(port, name, rate)
    clock.now += 10


def test_eos_counters(clock: Clock) -> None:
    device, run = eos(clock)
    for line in ("configure", "interface Ethernet1/1", "uc-tx-queue 3", "random-detect ecn count", "end"):
        assert run(line) == ""
    grown(device, clock, "Ethernet1/1")

    def ask(line: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run(f"{line} | json"))
        return found

    pfc = ask("show priority-flow-control counters")["interfaceCounters"]
    assert pfc == {
        "Ethernet1/1": {"rxFrames": 40, "txFrames": 20},
        "Ethernet2/1": {"rxFrames": 0, "txFrames": 0},
    }
    assert ask("show qos interfaces ecn counters queue")["intfQueueCounters"]["Ethernet1/1"] == {
        "queueCounters": {str(n): "40" if n == 3 else "-" for n in range(8)}
    }
    errors = ask("show interfaces counters errors")["interfaceErrorCounters"]["Ethernet1/1"]
    assert (errors["fcsErrors"], errors["symbolErrors"], errors["inErrors"]) == (120, 130, 120)
    discards = ask("show interfaces counters discards")
    assert discards["interfaces"]["Ethernet1/1"] == {"inDiscards": 100, "outDiscards": 160}
    assert discards["inDiscardsTotal"] == 100 and discards["outDiscardsTotal"] == 160
    phy = json.loads(run("show interfaces Ethernet1/1 phy detail | json"))["interfacePhyStatuses"]
    assert list(phy) == ["Ethernet1/1"]
    assert phy["Ethernet1/1"]["phyStatuses"][0]["fec"]["uncorrectedCodewords"]["value"] == 140
    queues = json.loads(run("show interfaces counters queue detail | json"))["egressQueueCounters"][
        "interfaces"
    ]
    lost = queues["Ethernet1/1"]["ucastQueues"]["trafficClasses"]["TC3"]["dropPrecedences"]["DP0"]
    assert lost["droppedPackets"] == 50
    own = json.loads(run("show interfaces Ethernet1/1 | json"))["interfaces"]["Ethernet1/1"]
    assert own["interfaceCounters"]["inputErrorsDetail"]["fcsErrors"] == 120


def test_eos_counters_in_text(clock: Clock) -> None:
    device, run = eos(clock)
    grown(device, clock, "Ethernet1/1")
    assert run("show priority-flow-control counters").splitlines()[1].split() == ["Et1/1", "40", "20"]
    head, row, *_ = run("show interfaces counters errors").splitlines()
    # Head and width of columns as in public captures.
    assert head == "Port               FCS    Align   Symbol       Rx    Runts   Giants       Tx"
    assert row == "Et1/1              120        0      130      120        0        0        0"
    rows = [line.split() for line in run("show interfaces counters discards").splitlines()]
    assert ["Et1/1", "100", "160"] in rows and ["Totals", "100", "160"] in rows
    text = run("show interfaces Ethernet1/1 phy detail")
    assert [line.split()[-1] for line in text.splitlines() if "uncorrected codewords" in line] == ["140"]
    queue = [line.split() for line in run("show interfaces counters queue detail").splitlines()]
    assert ["Et1/1", "UC3", "0", "0", "50", str(50 * 4154)] in queue


def test_eos_link_that_came_up_slow(clock: Clock) -> None:
    device, run = eos(clock)
    device.health.speeds["Ethernet1/1"] = 100
    rows = run("show interfaces status").splitlines()
    assert rows[0] == "Port       Name                   Status       Vlan        Duplex  Speed Type"
    assert [row.split()[-2] for row in rows[1:]] == ["100G", "400G"]
    shown = json.loads(run("show interfaces status | json"))["interfaceStatuses"]
    assert [shown[name]["bandwidth"] for name in shown] == [100_000_000_000, 400_000_000_000]
    assert "BW 100000000 kbit" in run("show interfaces Ethernet1/1")
    assert "Full-duplex, 100Gb/s" in run("show interfaces Ethernet1/1")


def test_eos_knows_no_other_counters(clock: Clock) -> None:
    _, run = eos(clock)
    assert run("show interfaces counters error-log").startswith("% Invalid input")
    assert run("show priority-flow-control counters errors").startswith("% Invalid input")


# --- SONiC ---


def sonic(clock: Clock, version: str = "202505") -> tuple[SonicDevice, Callable[[str], str]]:
    ports = tuple(
        PortFact(
            f"Ethernet{8 * n}",
            400,
            lanes=",".join(str(8 * n + lane) for lane in range(8)),
            alias=f"etp{n + 1}",
        )
        for n in range(2)
    )
    device = SonicDevice(
        DeviceFacts("leaf01", "sonic", "ACS-SN5600", version, ports), clock, health=Health("l", clock)
    )

    def run(line: str) -> str:
        result = device.execute("admin", line)
        assert not result.status, result.stderr
        return result.stdout

    return device, run


def test_sonic_counters(clock: Clock) -> None:
    device, run = sonic(clock)
    grown(device, clock, "Ethernet0")
    clock.now += 990
    assert run("show pfc counters") == (
        "  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7\n"
        "---------  ------  ------  ------  ------  ------  ------  ------  ------\n"
        "Ethernet0       0       0       0   1,000   3,000       0       0       0\n"
        "Ethernet8       0       0       0       0       0       0       0       0\n"
        "\n"
        "  Port Tx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7\n"
        "---------  ------  ------  ------  ------  ------  ------  ------  ------\n"
        "Ethernet0       0       0       0   2,000       0       0       0       0\n"
        "Ethernet8       0       0       0       0       0       0       0       0\n"
    )
    assert run("show interfaces counters errors").splitlines()[:3] == [
        "    IFACE    STATE    RX_ERR    RX_DRP    RX_OVR    TX_ERR    TX_DRP    TX_OVR",
        "---------  -------  --------  --------  --------  --------  --------  --------",
        "Ethernet0        U    12,000    10,000         0         0    16,000         0".replace(
            " D ", " U "
        ),
    ]
    head = run("show interfaces counters").splitlines()[0].split()
    assert head[:8] == ["IFACE", "STATE", "RX_OK", "RX_BPS", "RX_UTIL", "RX_ERR", "RX_DRP", "RX_OVR"]
    fec = json.loads(run("show interfaces counters fec-stats -j"))["Ethernet0"]
    assert (fec["FEC_UNCORR"], fec["FEC_SYMBOL_ERR"]) == ("14,000", "13,000")


def test_sonic_queue_counters(clock: Clock) -> None:
    device, run = sonic(clock)
    grown(device, clock, "Ethernet0")
    head, _, *rows = run("show queue counters Ethernet0").splitlines()
    assert head == "     Port    TxQ    Counter/pkts    Counter/bytes    Drop/pkts    Drop/bytes"
    assert rows[3].split() == ["Ethernet0", "UC3", "0", "0", "50", str(50 * 4154)]
    shown = json.loads(run("show queue counters --json"))
    assert shown["Ethernet0"]["UC3"]["droppacket"] == "50" and shown["Ethernet8"]["UC3"]["droppacket"] == "0"
    wred = run("show queue wredcounters Ethernet0").splitlines()
    assert wred[0].split() == [
        "Port",
        "TxQ",
        "WredDrp/pkts",
        "WredDrp/bytes",
        "EcnMarked/pkts",
        "EcnMarked/bytes",
    ]
    assert wred[5].split() == ["Ethernet0", "UC3", "0", "0", "40", str(40 * 4154)]
    assert (
        json.loads(run("show queue wredcounters --json Ethernet0"))["Ethernet0"]["UC3"]["ecnmarkedpacket"]
        == "40"
    )
    assert (
        device.execute("admin", "show queue counters Ethernet99").stdout == "Port doesn't exist! Ethernet99\n"
    )


def test_sonic_counters_db(clock: Clock) -> None:
    device, run = sonic(clock)
    grown(device, clock, "Ethernet0")
    oid = run("sonic-db-cli COUNTERS_DB HGET COUNTERS_PORT_NAME_MAP Ethernet0").strip()
    assert oid.startswith("oid:0x1")
    for field, value in (
        ("SAI_PORT_STAT_PFC_3_RX_PKTS", "10"),
        ("SAI_PORT_STAT_IF_OUT_DISCARDS", "160"),
        ("SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES", "140"),
    ):
        assert run(f"sonic-db-cli COUNTERS_DB HGET COUNTERS:{oid} {field}") == f"{value}\n"
    queue = run("redis-cli -n 2 HGET COUNTERS_QUEUE_NAME_MAP Ethernet0:3").strip()
    assert run(f"redis-cli -n 2 HGET COUNTERS:{queue} SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS") == "40\n"


def test_sonic_branches_before_the_wred_statistics(clock: Clock) -> None:
    device, run = sonic(clock, "202411")
    assert "No such command" in device.execute("admin", "show queue wredcounters").stderr
    queue = run("redis-cli -n 2 HGET COUNTERS_QUEUE_NAME_MAP Ethernet0:3").strip()
    assert run(f"redis-cli -n 2 HGET COUNTERS:{queue} SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS") == "\n"


def test_sonic_link_that_came_up_slow(clock: Clock) -> None:
    device, run = sonic(clock)
    device.health.speeds["Ethernet0"] = 100
    rows = [line.split() for line in run("show interfaces status").splitlines()[2:]]
    assert [row[2] for row in rows] == ["100G", "400G"]
    assert run('sonic-db-cli STATE_DB HGET "PORT_TABLE|Ethernet0" speed') == "100000\n"
    assert run('sonic-db-cli CONFIG_DB HGET "PORT|Ethernet0" speed') == "400000\n"


# --- Cumulus ---


def cumulus(clock: Clock) -> tuple[Cumulus, Callable[[str], str]]:
    seed = ("nv set qos roce", "nv set qos roce enable on")
    facts = DeviceFacts(
        "leaf01", "cumulus", "SN5600", "5.14", (PortFact("swp1", 400), PortFact("swp2", 400)), seed
    )
    device = Cumulus(facts, clock, health=Health("leaf01", clock))

    def run(line: str) -> str:
        result = device.execute("cumulus", line)
        assert not result.status, result.stderr
        return result.stdout

    return device, run


def test_cumulus_counters(clock: Clock) -> None:
    device, run = cumulus(clock)
    grown(device, clock, "swp1")
    found = json.loads(run("nv show interface swp1 counters qos -o json"))
    assert (
        found["pfc-stats"]["3"]["rx-pause-frames"] == 10 and found["pfc-stats"]["3"]["tx-pause-frames"] == 20
    )
    queue = found["egress-queue-stats"]["3"]
    assert (queue["ecn-marked-frames"], queue["tx-uc-buffer-discards"]) == (40, 50)
    stats = json.loads(run("nv show interface swp1 link stats -o json"))
    assert (stats["in-errors"], stats["in-drops"], stats["out-drops"]) == (250, 100, 160)
    roce = json.loads(run("nv show interface swp1 qos roce counters -o json"))
    assert roce["tx-stats"]["tx-ecn-stats"] == {"ecn-marked-packets": 40}
    assert roce["rx-stats"]["rx-pfc-stats"]["pause-packets"] == 10
    assert roce["tx-stats"]["tx-roce-stats"]["unicast-no-buffer-discard"] == 50


def test_cumulus_tables_are_those_of_the_reference(clock: Clock) -> None:
    device, run = cumulus(clock)
    assert run("nv show interface swp1 counters errors").splitlines() == [
        "Counter           Receive  Transmit",
        "----------------  -------  --------",
        "Alignment Errors  0        n/a",
        "FCS Errors        0        n/a",
        "Jabber Errors     0        n/a",
        "Length Errors     0        n/a",
        "Oversize Errors   0        n/a",
        "Symbol Errors     0        n/a",
        "Total Errors      0        0",
        "Undersize Errors  0        n/a",
    ]
    assert run("nv show interface swp1 counters drops").splitlines() == [
        "Counter          Receive  Transmit",
        "---------------  -------  --------",
        "ACL Drops        0        n/a",
        "Buffer Drops     0        n/a",
        "Non-Queue Drops  n/a      0",
        "Queue Drops      n/a      0",
        "Total Drops      0        0",
    ]
    assert run("nv show interface swp1 counters qos port-stats").splitlines() == [
        "Counter             Receive  Transmit",
        "------------------  -------  --------",
        "ECN Marked Packets  n/a      0",
        "MC Buffer Discards  n/a      0",
        "Pause Frames        0        0",
    ]
    grown(device, clock, "swp1")
    rows = run("nv show interface swp1 counters qos pfc-stats").splitlines()
    assert (
        rows[0] == "switch-priority  rx-pause-frames  rx-pause-duration  tx-pause-frames  tx-pause-duration"
    )
    assert rows[5].split() == ["3", "10", "0", "20", "0"]
    whole = run("nv show interface swp1 counters qos").splitlines()
    assert whole[:3] == [
        "Ingress Buffer Statistics",
        "============================",
        "    priority-group  rx-frames  rx-buffer-discards  rx-shared-buffer-discards",
    ]
    assert ["ecn-marked-packets", "n/a", "40"] in [line.split() for line in whole]


def test_cumulus_ethtool(clock: Clock) -> None:
    device, run = cumulus(clock)
    grown(device, clock, "swp1")
    device.health.speeds["swp1"] = 100
    numbers = dict(line.strip().split(": ") for line in run("sudo ethtool -S swp1").splitlines()[1:])
    assert numbers["HwIfInPfc3Pkt"] == "10" and numbers["HwIfOutPfc3Pkt"] == "20"
    assert numbers["HwIfInErrors"] == "250" and numbers["HwIfOutQDrops"] == "50"
    assert "Speed: 100000Mb/s" in run("ethtool swp1") and "Speed: 400000Mb/s" in run("ethtool swp2")
    assert json.loads(run("nv show interface swp1 link -o json"))["speed"] == "100G"
    assert device.execute("cumulus", "ethtool -S swp9").stderr == "netlink error: No such device\n"
    assert device.execute("cumulus", "ethtool -K swp1").status == 1
