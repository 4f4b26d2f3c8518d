"""Settings as people speak of them: which fields belong together, and how a value is written.

Everything that reports (check, drift, diff, plans) groups field paths by `group_of` and writes values by
`Group.show`, so that one setting has one name and one spelling everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rdma_fabric.state import (
    UNKNOWN,
    Absent,
    Amount,
    Difference,
    Ecn,
    NodeState,
    Partition,
    Partitions,
    PortSettings,
    Share,
    pfc_priorities,
)


@dataclass(frozen=True, slots=True)
class Group:
    """One setting of a port (or of the node): its key in machine output and its name in text."""

    key: str
    title: str
    origin: str
    """Path in `PortState.origins` where its value was written."""
    show: Callable[[PortSettings], str]


def absent_text(value: Absent) -> str:
    """How an absence is written."""
    return {"unknown": "unknown (could not be read)"}.get(value.value, value.value)


def text(value: Any) -> str:
    """How one value is written."""
    if isinstance(value, Absent):
        return absent_text(value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Amount):
        return amount(value)
    if isinstance(value, Ecn):
        return _ecn(value)
    if isinstance(value, Share):
        cap = f" at most {value.cap}%" if isinstance(value.cap, int) else ""
        return ("strict" if value.scheduler == "strict" else f"dwrr {value.weight}") + cap
    if isinstance(value, Partitions):
        return "; ".join(map(partition, value.rows)) or "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value)


def partition(one: Partition, members: tuple[str, ...] = ()) -> str:
    """A partition in short: "compute 0x0010 ipoib mtu 4096 sl 1, 16 members"; `members` are told by name."""
    group = f" ipoib mtu {one.mtu}" if one.ipoib else ""
    rate = f" rate {one.rate}" if isinstance(one.rate, str) else ""
    scope = f" scope {one.scope}" if isinstance(one.scope, int) else ""
    names = f", among them {','.join(members)}" if members else ""
    count = f"{len(one.members)} member{'' if len(one.members) == 1 else 's'}"
    return f"{one.name} 0x{one.pkey:04x}{group}{rate} sl {one.sl}{scope}, {count}{names}"


def partition_texts(found: Partitions, wanted: Partitions) -> tuple[str, str]:
    """(found, wanted) with only those partitions that differ, and only the members that do."""

    def side(one: Partitions, other: Partitions) -> str:
        parts = []
        for row in one.rows:
            if row not in other.rows:
                beside = other.named(row.name)
                more = tuple(sorted(set(row.members) - set(beside.members))) if beside else ()
                parts.append(partition(row, more[:8]))
        gone = [row.name for row in other.rows if one.named(row.name) is None]
        return "; ".join([*parts, *(f"no {name}" for name in gone)]) or "the same"

    return side(found, wanted), side(wanted, found)


def _ecn(value: Ecn) -> str:
    """The ramp of green packets, then those of other colours where they are known."""
    others = () if isinstance(value.others, Absent) else value.others
    ramps = (("", value.kmin, value.kmax, value.pmax), *((f"; {one[0]} ", *one[1:]) for one in others))
    return "".join(f"{name}kmin {amount(a)} kmax {amount(b)} pmax {pmax:g}%" for name, a, b, pmax in ramps)


def amount(value: Amount) -> str:
    """Bytes in the largest unit that fits without rest, decimal ones first, else as they are."""
    if value.unit != "bytes":
        return f"{value.value}{'%' if value.unit == 'percent' else ' ' + value.unit}"
    for factor, unit in ((10**6, "MB"), (10**3, "KB"), (2**20, "MiB"), (2**10, "KiB")):
        if value.value and value.value % factor == 0:
            return f"{value.value // factor}{unit}"
    return f"{value.value}B"


def ranges(numbers: Iterable[int]) -> str:
    """ "0-25,27" of the numbers; "none" of nothing."""
    rows: list[list[int]] = []
    for number in sorted(numbers):
        if rows and number == rows[-1][1] + 1:
            rows[-1][1] = number
        else:
            rows.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in rows) or "none"


def dscp_map(table: Any) -> str:
    """ "26->3, 48->6, rest->0": the priority with most code points is the rest."""
    if isinstance(table, Absent):
        return absent_text(table)
    by_priority: dict[int, list[int]] = {}
    for dscp, priority in enumerate(table):
        by_priority.setdefault(priority, []).append(dscp)
    rest = max(by_priority, key=lambda priority: (len(by_priority[priority]), -priority))
    parts = [
        f"{ranges(found)}->{priority}" for priority, found in sorted(by_priority.items()) if priority != rest
    ]
    return ", ".join([*parts, f"rest->{rest}"])


def _pfc(settings: PortSettings) -> str:
    both = pfc_priorities(settings.qos)
    if isinstance(both, Absent):
        return absent_text(both)
    halves = [
        f"{priority} ({'send' if settings.qos.classes[priority].pfc_tx else 'receive'} only)"
        if settings.qos.classes[priority].pfc_tx != settings.qos.classes[priority].pfc_rx
        else str(priority)
        for priority in both
    ]
    return ",".join(halves) or "none"


def _class_set(field: str) -> Callable[[PortSettings], str]:
    def show(settings: PortSettings) -> str:
        values = [getattr(one, field) for one in settings.qos.classes]
        if any(value is UNKNOWN for value in values):
            return absent_text(UNKNOWN)
        if all(isinstance(value, Absent) for value in values):
            return absent_text(values[0])
        return ",".join(str(index) for index, value in enumerate(values) if value is True) or "none"

    return show


def _class_field(priority: int, field: str) -> Callable[[PortSettings], str]:
    return lambda settings: text(getattr(settings.qos.classes[priority], field))


def _field(part: str, name: str) -> Callable[[PortSettings], str]:
    return lambda settings: text(getattr(getattr(settings, part), name))


def _timer(name: str) -> Callable[[PortSettings], str]:
    def show(settings: PortSettings) -> str:
        value = getattr(settings.qos.watchdog, name)
        return f"{value}ms" if isinstance(value, int) else text(value)

    return show


_CLASS_TITLES = {
    "ecn": "ECN",
    "headroom": "headroom",
    "share": "scheduler",
    "queue": "queue",
    "group": "priority group",
}
_QOS_TITLES = {
    "trust": "trust",
    "pcp_to_priority": "802.1p map",
    "dcbx": "DCBX mode",
    "global_pause": "global pause",
    "cable_m": "cable length",
}
_MARKING_TITLES = {
    "rdma_cm_tos": "RDMA-CM ToS",
    "traffic_class": "RoCE traffic class",
    "roce_v2": "RoCE v2",
    "cnp_dscp": "CNP DSCP",
    "cnp_priority": "CNP priority",
    "np": "DCQCN notification point",
    "rp": "DCQCN reaction point",
}
_IB_TITLES = {
    "link": "link state",
    "mtu": "NeighborMTU",
    "pkeys": "P_Keys",
    "sl_to_vl": "SL-to-VL map",
    "vls": "lanes in operation",
    "vl_cap": "lanes of the port",
    "mode": "IPoIB mode",
    "children": "IPoIB P_Key interfaces",
}
_NIC_TITLES = {
    "board": "board",
    "part": "part number",
    "firmware": "firmware",
    "driver": "driver",
    "link": "link type",
    "rdma_mtu": "RDMA MTU",
    "gids": "RoCE v2 GIDs",
}
_TIMER_TITLES = {"detect_ms": "detect", "restore_ms": "restore", "poll_ms": "poll", "action": "action"}


@cache
def group_of(path: str) -> Group:
    """The setting that a field path below a port's settings ("qos.classes.3.pfc_tx") belongs to."""
    match = re.fullmatch(r"qos\.classes\.(\d)\.(\w+)", path)
    if match:
        return _class_group(int(match.group(1)), match.group(2))
    part, _, name = path.partition(".")
    if part == "mtu":
        titles = {"ip": "mtu", "frame": "frame mtu", "enforced": "mtu enforcement"}
        return Group(path, titles[name], "mtu", _field("mtu", name))
    if path == "qos.dscp_to_priority":
        return Group(path, "DSCP map", path, lambda settings: dscp_map(settings.qos.dscp_to_priority))
    if path in ("qos.pfc", "qos.guarded"):
        return _class_group(0, "pfc_tx" if path == "qos.pfc" else "watchdog")
    if path.startswith("qos.watchdog."):
        name = path.rpartition(".")[2]
        return Group(path, f"watchdog {_TIMER_TITLES[name]}", "qos.watchdog", _timer(name))
    if part == "qos":
        return Group(path, _QOS_TITLES[name], path, _field("qos", name))
    if path.startswith("marking.parameters."):
        key = path.removeprefix("marking.parameters.")
        return Group(
            path, f"DCQCN {key}", "marking.np", lambda s: text(dict(s.marking.parameters).get(key, UNKNOWN))
        )
    if path.startswith("nic.nv."):
        key = path.removeprefix("nic.nv.")
        return Group(path, f"NV {key}", "nic.nv", lambda s: text(dict(s.nic.nv).get(key, UNKNOWN)))
    if part == "nic":
        return Group(path, _NIC_TITLES[name], path, _field("nic", name))
    if part == "ib":
        show = _pkeys(name) if name in ("pkeys", "children") else _field("ib", name)
        return Group(path, _IB_TITLES[name], "ib", show)
    return Group(path, _MARKING_TITLES[name], path, _field("marking", name))


def _pkeys(name: str) -> Callable[[PortSettings], str]:
    """P_Keys in hexadecimal, as every tool of InfiniBand writes them."""

    def show(settings: PortSettings) -> str:
        value = getattr(settings.ib, name)
        return text(tuple(f"0x{key:04x}" for key in value)) if isinstance(value, tuple) else text(value)

    return show


def _class_group(priority: int, field: str) -> Group:
    if field in ("pfc_tx", "pfc_rx"):
        return Group("qos.pfc", "PFC priorities", "qos.pfc", _pfc)
    if field == "watchdog":
        return Group("qos.guarded", "watchdog priorities", "qos.watchdog", _class_set("watchdog"))
    path = f"qos.classes.{priority}.{field}"
    return Group(path, f"priority {priority} {_CLASS_TITLES[field]}", path, _class_field(priority, field))


@dataclass(frozen=True, slots=True)
class Deviation:
    """One setting of a node that is not as wanted; `port` is "" for node-wide settings."""

    port: str
    key: str
    title: str
    found: str
    wanted: str
    unknown: bool
    paths: tuple[str, ...]

    @property
    def setting(self) -> str:
        """As in reports: "eth2 PFC priorities"."""
        return f"{self.port} {self.title}" if self.port else self.title


_PORT_PATH = re.compile(r"ports\.(.+?)\.((?:mtu|qos|marking|ib|nic)(?:\..+)?)")


def deviations(found: Iterable[Difference], wanted: NodeState, seen: NodeState) -> tuple[Deviation, ...]:
    """Differences of one node, gathered by setting, in their order."""
    rows: dict[tuple[str, str], list[Difference]] = {}
    for one in found:
        port, path = split_path(one.path)
        key = group_of(path).key if port else path
        rows.setdefault((port, key), []).append(one)
    want = {port.name: port.settings for port in wanted.ports}
    have = {port.name: port.settings for port in seen.ports}
    return tuple(_deviation(port, key, same, want, have) for (port, key), same in rows.items())


def split_path(path: str) -> tuple[str, str]:
    """("eth2", "qos.trust") of "ports.eth2.qos.trust"; ("", "sysctl.k") of "system.sysctl.k"."""
    match = _PORT_PATH.fullmatch(path)
    if match:
        return match.group(1), match.group(2)
    return "", path.removeprefix("system.")


def _deviation(
    port: str,
    key: str,
    rows: list[Difference],
    wanted: Mapping[str, PortSettings],
    seen: Mapping[str, PortSettings],
) -> Deviation:
    paths = tuple(one.path for one in rows)
    unknown = all(one.unknown for one in rows)
    if not port:
        kind, _, name = key.partition(".")
        title = f"{_SYSTEM_TITLES.get(kind, kind)} {_SM_TITLES.get(name, name) if kind == 'sm' else name}"
        found, want = rows[0].found, rows[0].wanted
        texts = text(found), text(want)
        if isinstance(found, Partitions) and isinstance(want, Partitions):
            texts = partition_texts(found, want)
        return Deviation("", key, title.strip(), *texts, unknown, paths)
    group = group_of(split_path(paths[0])[1])
    have = group.show(seen[port]) if port in seen else "port not found"
    return Deviation(port, key, group.title, have, group.show(wanted[port]), unknown, paths)


_SYSTEM_TITLES = {
    "module_options": "module option",
    "modules": "module",
    "limits": "limit",
    "sm": "subnet manager",
}
_SM_TITLES = {
    "loaded": "files loaded",
    "lids": "LIDs as the subnet has them",
    "guid": "port",
    "lfts": "file of routes",
    "both": "full and limited membership at once",
    "vls": "data lanes",
    "sl_to_vl": "SL-to-VL map",
    "high_limit": "high-priority limit",
    "high": "high-priority lanes",
    "low": "low-priority lanes",
    "levels": "service levels",
}


__all__ = [
    "Deviation",
    "Group",
    "amount",
    "deviations",
    "dscp_map",
    "group_of",
    "ranges",
    "split_path",
    "text",
]
