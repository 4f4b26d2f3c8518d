"""Counters of a simulated Cumulus Linux switch: parts of NVUE's trees, tables, and `ethtool`.

Sources: NVUE reference and QoS page of Cumulus Linux 5.x (tables, names), RoCE page (`qos roce counters`),
monitoring guide (JSON of `link stats`, names of `ethtool -S`), public scripts for an SN5600 (JSON of
`counters qos`: `tx-uc-buffer-discards` counts frames, which the table prints as if they were bytes;
`ecn-marked-frames`). Not confirmed: the JSON of `counters errors`, `drops` and `qos port-stats`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rdma_fabric.lab.hosttools.health import Health

from ._cumulus_config import Tree
from ._cumulus_qos import PRIORITIES

NONE = "n/a"


def of_port(health: Health, port: str, classes: Mapping[str, Tree]) -> Tree:
    """The tree `counters` of a port; `classes`: switch priority -> its traffic class."""
    lost, marked = (by_class(health, port, name, classes) for name in ("drop", "ecn"))
    total = sum(lost.values())
    received, crc, symbol = (health.count(port, name) for name in ("rx-discard", "crc", "symbol"))
    sent = health.count(port, "tx-discard")
    return {
        "drops": _two(
            {
                "ACL Drops": (0, NONE),
                "Buffer Drops": (received, NONE),
                "Non-Queue Drops": (NONE, sent),
                "Queue Drops": (NONE, total),
                "Total Drops": (received, sent + total),
            }
        ),
        "errors": _two(
            {
                "Alignment Errors": (0, NONE),
                "FCS Errors": (crc, NONE),
                "Jabber Errors": (0, NONE),
                "Length Errors": (0, NONE),
                "Oversize Errors": (0, NONE),
                "Symbol Errors": (symbol, NONE),
                "Total Errors": (crc + symbol, 0),
                "Undersize Errors": (0, NONE),
            }
        ),
        "qos": {
            "egress-queue-stats": {tc: _queue(lost[tc], marked[tc]) for tc in PRIORITIES},
            "ingress-buffer-stats": {
                group: {"rx-buffer-discards": 0, "rx-frames": 0, "rx-shared-buffer-discards": 0}
                for group in PRIORITIES
            },
            "pfc-stats": {sp: _pause(health, port, sp) for sp in PRIORITIES},
            "port-stats": _two(
                {
                    "ECN Marked Packets": (NONE, sum(marked.values())),
                    "MC Buffer Discards": (NONE, 0),
                    "Pause Frames": (0, 0),
                }
            ),
        },
    }


def by_class(health: Health, port: str, name: str, classes: Mapping[str, Tree]) -> dict[str, int]:
    """Counter per traffic class: the sum over the switch priorities that are mapped to it."""
    found = dict.fromkeys(PRIORITIES, 0)
    for priority in PRIORITIES:
        found[str(classes[priority]["traffic-class"])] += health.count(port, f"{name}:{priority}")
    return found


def _queue(lost: int, marked: int) -> Tree:
    return {
        "ecn-marked-frames": marked,
        "tx-bytes": 0,
        "tx-frames": 0,
        "tx-uc-buffer-discards": lost,
        "wred-discards": 0,
    }


def _pause(health: Health, port: str, priority: str) -> Tree:
    received, sent = (health.count(port, f"pfc-{way}:{priority}") for way in ("rx", "tx"))
    durations = {"rx-pause-duration": 0, "tx-pause-duration": 0}
    return {**durations, "rx-pause-frames": received, "tx-pause-frames": sent}


def _two(rows: Mapping[str, tuple[object, object]]) -> Tree:
    return {
        label.lower().replace(" ", "-"): {"receive": receive, "transmit": transmit}
        for label, (receive, transmit) in rows.items()
    }


def link_stats(health: Health, port: str) -> Tree:
    """`link stats`: the kernel's view of a port."""
    lost = health.count(port, "tx-discard") + health.total(port, "drop")
    return {
        "carrier-transitions": 1,
        "in-bytes": 0,
        "in-drops": health.count(port, "rx-discard"),
        "in-errors": health.count(port, "crc") + health.count(port, "symbol"),
        "in-pkts": 0,
        "out-bytes": 0,
        "out-drops": lost,
        "out-errors": 0,
        "out-pkts": 0,
    }


def roce(health: Health, port: str, lossless: Sequence[str]) -> Tree:
    """`qos roce counters`: pause of the lossless priorities, marks of all, drops of both."""
    pause = {
        way: sum(health.count(port, f"pfc-{way}:{priority}") for priority in lossless) for way in ("rx", "tx")
    }
    usage = dict.fromkeys(("buffer-max-usage", "buffer-usage", "pg-max-usage", "pg-usage"), "0 Bytes")
    queue = dict.fromkeys(("buffer-max-usage", "buffer-usage", "tc-max-usage", "tc-usage"), "0 Bytes")
    lost = sum(health.count(port, f"drop:{priority}") for priority in lossless)
    return {
        "rx-stats": {
            "rx-non-roce-stats": {
                **usage,
                "no-buffer-discard": health.count(port, "rx-discard"),
                "non-roce-bytes": "0 Bytes",
                "non-roce-packets": 0,
            },
            "rx-pfc-stats": {"pause-duration": 0, "pause-packets": pause["rx"]},
            "rx-roce-stats": {**usage, "no-buffer-discard": 0, "roce-bytes": "0 Bytes", "roce-packets": 0},
        },
        "tx-stats": {
            "tx-cnp-stats": {
                **queue,
                "cnp-bytes": "0 Bytes",
                "cnp-packets": 0,
                "unicast-no-buffer-discard": health.count(port, "drop:6") if "6" not in lossless else 0,
            },
            "tx-ecn-stats": {"ecn-marked-packets": health.total(port, "ecn")},
            "tx-pfc-stats": {"pause-duration": 0, "pause-packets": pause["tx"]},
            "tx-roce-stats": {
                **queue,
                "roce-bytes": "0 Bytes",
                "roce-packets": 0,
                "unicast-no-buffer-discard": lost,
            },
        },
    }


# --- tables ---

_HEADS = {
    "egress-queue-stats": (
        "traffic-class",
        ("tx-frames", "tx-bytes", "tx-uc-buffer-discards", "wred-discards", "ecn-marked-frames"),
    ),
    "ingress-buffer-stats": (
        "priority-group",
        ("rx-frames", "rx-buffer-discards", "rx-shared-buffer-discards"),
    ),
    "pfc-stats": (
        "switch-priority",
        ("rx-pause-frames", "rx-pause-duration", "tx-pause-frames", "tx-pause-duration"),
    ),
}
_SIZED = {"tx-bytes", "tx-uc-buffer-discards", "rx-buffer-discards", "rx-shared-buffer-discards"}
TITLES = {
    "ingress-buffer-stats": "Ingress Buffer Statistics",
    "egress-queue-stats": "Egress Queue Statistics",
    "pfc-stats": "PFC Statistics",
    "port-stats": "Qos Port Statistics",
}
"""Parts of `counters qos` in the order of its table -> their titles there."""
_UPPER = {"acl", "fcs", "ecn", "mc"}


def table(name: str, tree: Tree, inside: bool = False) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Headers and rows of one kind of counters; `inside` the table of all of QoS its names are plain."""
    if name in _HEADS:
        first, fields = _HEADS[name]
        rows: list[tuple[object, ...]] = [
            (number, *(size(entry[field]) if field in _SIZED else entry[field] for field in fields))
            for number, entry in tree.items()
        ]
        return (first, *fields), rows
    rows = [
        (label if inside else _label(label), entry["receive"], entry["transmit"])
        for label, entry in tree.items()
    ]
    return ("Counter", "Receive", "Transmit"), rows


def _label(name: str) -> str:
    return " ".join(
        word.upper() if word in _UPPER else word.capitalize() for word in name.split("-")
    ).replace("Non Queue", "Non-Queue")


def size(number: int) -> str:
    """A number as the tables print bytes, units of 1024."""
    if number < 1024:
        return f"{number} Bytes"
    if number < 1024**2:
        return f"{number / 1024:.2f} KB"
    return f"{number / 1024**2:.2f} MB" if number < 1024**3 else f"{number / 1024**3:.2f} GB"


# --- ethtool ---


def ethtool_statistics(health: Health, port: str) -> str:
    """`ethtool -S`: `switchd`'s names (tables of the monitoring guide and of NetQ)."""
    received, crc, symbol = (health.count(port, name) for name in ("rx-discard", "crc", "symbol"))
    lost = health.total(port, "drop")
    numbers: dict[str, int] = dict.fromkeys(
        (
            *("HwIfInOctets", "HwIfInUcastPkts", "HwIfInBcastPkts", "HwIfInMcastPkts"),
            *("HwIfOutOctets", "HwIfOutUcastPkts", "HwIfOutMcastPkts", "HwIfOutBcastPkts"),
        ),
        0,
    )
    numbers |= {"HwIfInDiscards": received, "HwIfInL3Drops": 0, "HwIfInBufferDrops": received}
    numbers |= {"HwIfInAclDrops": 0, "HwIfInDot3LengthErrors": 0, "HwIfInErrors": crc + symbol}
    numbers |= dict.fromkeys(("SoftInErrors", "SoftInDrops", "SoftInFrameErrors"), 0)
    numbers |= {"HwIfOutDiscards": lost + health.count(port, "tx-discard"), "HwIfOutErrors": 0}
    numbers |= {"HwIfOutQDrops": lost, "HwIfOutNonQDrops": health.count(port, "tx-discard")}
    numbers |= dict.fromkeys(("SoftOutErrors", "SoftOutDrops", "SoftOutTxFifoFull", "HwIfOutQLen"), 0)
    numbers |= {"HwIfInDot3FrameErrors": crc}
    for way, name in (("In", "pfc-rx"), ("Out", "pfc-tx")):
        numbers[f"HwIf{way}PausePkt"] = 0
        for priority in PRIORITIES:
            numbers[f"HwIf{way}Pfc{priority}Pkt"] = health.count(port, f"{name}:{priority}")
    return "NIC statistics:\n" + "".join(f"     {name}: {number}\n" for name, number in numbers.items())


def ethtool_settings(port: str, gbps: int, up: bool) -> str:
    """`ethtool PORT`: speed and link."""
    speed = f"{gbps * 1000}Mb/s" if up else "Unknown!"
    return (
        f"Settings for {port}:\n\tSpeed: {speed}\n\tDuplex: {'Full' if up else 'Unknown! (255)'}\n"
        f"\tAuto-negotiation: off\n\tPort: FIBRE\n\tPHYAD: 0\n\tTransceiver: external\n"
        f"\tLink detected: {'yes' if up else 'no'}\n"
    )
