"""Counters and speeds of a simulated EOS switch, in text and JSON.

Sources: reference page arista_eos, section 3 (PFC, ECN and queue counters); public ANTA 1.6 test data
for the JSON of errors, discards, queues and phy; public captures for the text of errors and of `show
interfaces status` (ntc-templates). Not confirmed: the text of discards, the columns of phy beside the
words of its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rdma_fabric.lab.simulators._arista_eos_config import Queue, short
from rdma_fabric.lab.simulators._arista_eos_show import Shown, View

_MEDIA = {25: "25GBASE-CR", 50: "50GBASE-CR", 100: "100GBASE-CR4", 200: "200GBASE-CR4", 400: "400GBASE-CR8"}
# What a queue counts about the packets it lost besides their number: one full RDMA packet each.
_PACKET = 4096 + 58


def by_queue(view: View, port: str, name: str) -> list[int]:
    """Counter of the eight transmit queues: the sum over the priorities that are mapped to each."""
    found = [0] * 8
    for priority in range(8):
        found[view.config.queues[priority]] += view.health.count(port, f"{name}:{priority}")
    return found


def pfc(view: View) -> Shown:
    """`show priority-flow-control counters`: no split by priority in this command."""
    rows = {
        name: (view.health.total(name, "pfc-rx"), view.health.total(name, "pfc-tx"))
        for name in view.config.hardware.ports
    }
    lines = [f"{'Port':14}{'RxPfc':>14}{'TxPfc':>14}"]
    lines += [f"{short(name):14}{rx:14}{tx:14}" for name, (rx, tx) in rows.items()]
    data = {name: {"rxFrames": rx, "txFrames": tx} for name, (rx, tx) in rows.items()}
    return Shown(lines, {"interfaceCounters": data})


def ecn(view: View, only: str = "") -> Shown:
    """`show qos interfaces [NAME] ecn counters queue`: strings; `-` for queues that do not count."""
    data = {}
    for name in view.ethernets(only):
        qos, word = view.effective(name), view.config.hardware.queue_word
        marked = by_queue(view, name, "ecn")
        counted = {n for n in range(8) if qos.queues.get((word, n), Queue()).count}
        data[name] = {"queueCounters": {str(n): str(marked[n]) if n in counted else "-" for n in range(8)}}
    lines = ["Port           TxQ    ECN Marked Packets", "-------------- ----- --------------------"]
    lines += [
        f"{short(name):14} {number:5} {value:>20}"
        for name, found in data.items()
        for number, value in found["queueCounters"].items()
    ]
    return Shown(lines, {"intfQueueCounters": data})


def queues(view: View) -> Shown:
    """`show interfaces counters queue detail`: what queues lost; no packet is counted, as none flows."""
    lines = ["Port       TxQ        Counter/pkts        Counter/bytes          Drop/pkts         Drop/bytes"]
    lines.append(
        "---------- ----- ------------------ -------------------- ------------------ ------------------"
    )
    prefix = "UC" if view.config.hardware.queue_word == "uc-tx-queue" else "VOQ"
    data = {}
    for name in view.config.hardware.ports:
        lost = by_queue(view, name, "drop")
        lines += [
            f"{short(name):10} {prefix}{n:<4} {0:17} {0:20} {lost[n]:18} {lost[n] * _PACKET:18}"
            for n in range(8)
        ]
        data[name] = {"ucastQueues": {"trafficClasses": {f"TC{n}": _class(lost[n]) for n in range(8)}}}
    return Shown(lines, {"egressQueueCounters": {"interfaces": data}})


def _class(lost: int) -> dict[str, Any]:
    found = {"enqueuedPackets": 0, "enqueuedBytes": 0, "droppedPackets": lost, "droppedBytes": lost * _PACKET}
    return {"dropPrecedences": {"DP0": found}}


def error_counts(view: View, name: str) -> dict[str, int]:
    """JSON of a port's errors; the sum `inErrors` leaves symbol errors out, as public captures show."""
    fcs = view.health.count(name, "crc")
    return {
        "inErrors": fcs,
        "frameTooLongs": 0,
        "outErrors": 0,
        "frameTooShorts": 0,
        "fcsErrors": fcs,
        "alignmentErrors": 0,
        "symbolErrors": view.health.count(name, "symbol"),
    }


def errors(view: View, only: str = "") -> Shown:
    """`show interfaces [NAME] counters errors`."""
    data = {name: error_counts(view, name) for name in view.ethernets(only)}
    heads = ("FCS", "Align", "Symbol", "Rx", "Runts", "Giants", "Tx")
    lines = [_columns("Port", heads)]
    for name, one in data.items():
        received = (one["fcsErrors"], one["alignmentErrors"], one["symbolErrors"], one["inErrors"])
        lines.append(_columns(short(name), (*received, one["frameTooShorts"], one["frameTooLongs"], 0)))
    return Shown(lines, {"interfaceErrorCounters": data})


def _columns(first: str, cells: Sequence[object]) -> str:
    return f"{first:13}" + "".join(f"{cell:>9}" for cell in cells)


def discard_counts(view: View, name: str) -> dict[str, int]:
    """JSON of a port's discards; those on egress include what its queues lost."""
    lost = view.health.count(name, "tx-discard") + view.health.total(name, "drop")
    return {"outDiscards": lost, "inDiscards": view.health.count(name, "rx-discard")}


def discards(view: View, only: str = "") -> Shown:
    """`show interfaces [NAME] counters discards`."""
    data = {name: discard_counts(view, name) for name in view.ethernets(only)}
    sums = {way: sum(one[way] for one in data.values()) for way in ("inDiscards", "outDiscards")}
    lines = [f"{'Port':10}{'InDiscards':>20}{'OutDiscards':>20}"]
    lines += [f"{short(name):10}{one['inDiscards']:20}{one['outDiscards']:20}" for name, one in data.items()]
    lines += [f"{'---------':10}{'----------':>20}{'-----------':>20}"]
    lines += [f"{'Totals':10}{sums['inDiscards']:20}{sums['outDiscards']:20}"]
    totals = {"inDiscardsTotal": sums["inDiscards"], "outDiscardsTotal": sums["outDiscards"]}
    return Shown(lines, {**totals, "interfaces": data})


def phy(view: View, only: str = "") -> Shown:
    """`show interfaces [NAME] phy detail`: the link and what FEC did on it."""
    lines: list[str] = []
    data = {}
    for name in view.ethernets(only):
        bad = view.health.count(name, "fec-uncorrected")
        up = view.up(name)
        lines += [
            name,
            "  Current State",
            *_rows(
                ("PHY state", "linkUp" if up else "linkDown"), ("Interface state", "up" if up else "down")
            ),
            *_rows(("Forward Error Correction", "Reed-Solomon"), ("Reed-Solomon codeword size", 544)),
            *_rows(("FEC alignment lock", "aligned" if up else "unaligned")),
            *_rows(("FEC corrected codewords", 0), ("FEC uncorrected codewords", bad)),
        ]
        data[name] = {"phyStatuses": [_phy_status(view, bad, up)], "interfaceState": {}, "macFaults": {}}
    return Shown(lines, {"interfacePhyStatuses": data})


def _rows(*rows: tuple[str, object]) -> list[str]:
    return [f"    {label:40} {value}" for label, value in rows]


def _phy_status(view: View, bad: int, up: bool) -> dict[str, Any]:
    def counted(value: object, changes: int = 0) -> dict[str, Any]:
        return {"value": value, "changes": changes, "lastChange": 0.0}

    return {
        "description": {"phyChipName": view.config.hardware.model, "location": "line"},
        "fec": {
            "encoding": "reedSolomon",
            "correctedCodewords": counted(0),
            "uncorrectedCodewords": counted(bad, bad),
        },
        "preFecBer": {"value": 1e-9 if bad else 1e-12},
        "phyState": counted("linkUp" if up else "linkDown", 1),
    }


def status(view: View, only: str = "") -> Shown:
    """`show interfaces [NAME] status`: the speed is the one that the link came up with."""
    lines = ["Port       Name                   Status       Vlan        Duplex  Speed Type"]
    data = {}
    for name in view.ethernets(only):
        port, gbps = view.port(name), view.gbps(name)
        state = (
            "disabled" if port.foreign_value("shutdown") else "connected" if view.up(name) else "notconnect"
        )
        routed = port.is_routed(view.config.default_routed)
        media = _MEDIA.get(view.fact(name).speed_gbps, "unknown")
        text = port.foreign_value("description")
        cells = f"{short(name):10} {text[:22]:22} {state:12} {'routed' if routed else '1':11}"
        lines.append(f"{cells} {'full':6} {f'{gbps}G' if gbps else 'auto':>6} {media}")
        vlan = {"interfaceMode": "routed", "interfaceForwardingModel": "routed"}
        if not routed:
            vlan = {"interfaceMode": "bridged", "interfaceForwardingModel": "bridged", "vlanId": "1"}
        data[name] = {
            "description": text,
            "linkStatus": state,
            "lineProtocolStatus": "up" if view.up(name) else "down",
            "vlanInformation": vlan,
            "duplex": "duplexFull",
            "autoNegotiateActive": False,
            "bandwidth": gbps * 1_000_000_000,
            "interfaceType": media,
        }
    return Shown(lines, {"interfaceStatuses": data})
