"""Observed ports -> the wishes that would make them so: the inverse of `resolve`, by majority.

What is inferred is checked by doing: the caller resolves and realizes the written intent and compares it
with what was observed. Nothing here needs to be complete for the result to be right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from rdma_fabric import settings
from rdma_fabric.state import (
    Absent,
    ClassState,
    Ecn,
    PortSettings,
    Share,
    WatchdogTimers,
    pfc_priorities,
)

T = TypeVar("T", bound=Hashable)
CONTROL_DSCP: Final = 56
"""CS7, network control (RFC 4594)."""
CNP_DSCPS: Final = (48,)
"""CS6: what NVIDIA's and Broadcom's guides give CNP, for fabrics whose hosts do not say."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One observed port."""

    node: str
    port: str
    host: bool
    speed_gbps: int
    settings: PortSettings
    own: str = ""
    """Node-wide settings that files of ours hold (fact OURS)."""


def usual(values: Iterable[T | Absent]) -> T | None:
    """The most frequent value that could be read; None when there is none. Ties go to the first seen."""
    counts = Counter(value for value in values if not isinstance(value, Absent))
    return counts.most_common(1)[0][0] if counts else None


def wishes(ports: Sequence[Seen]) -> dict[str, Any]:
    """The intent's keys that describe the majority of these ports; only what could be read."""
    hosts = [one for one in ports if one.host]
    switches = [one for one in ports if not one.host]
    found: dict[str, Any] = {}
    _put(found, ("mtu", "switch"), usual(one.settings.mtu.ip for one in switches))
    _put(found, ("mtu", "host"), usual(one.settings.mtu.ip for one in hosts))
    judge = switches or hosts  # switches show all of a class; a host has no ECN and no watchdog
    _put(found, ("trust",), usual(one.settings.qos.trust for one in judge))
    names = _names(judge, hosts)
    for name, one in _classes(judge, hosts, names).items():
        found.setdefault("classes", {})[name] = one
    _marking(found, switches, names)
    _pfc(found, judge, names)
    _dcqcn(found, hosts)
    return found


def _put(into: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if value is None:
        return
    for key in path[:-1]:
        into = into.setdefault(key, {})
    into[path[-1]] = value


# -- classes


@dataclass(frozen=True, slots=True)
class _Names:
    """What every priority in use is called."""

    by_priority: Mapping[int, str]
    lossless: frozenset[int]
    default: int
    dscps: Mapping[int, tuple[int, ...]]
    cnp: int | None
    """Priority of congestion notifications."""
    cnp_dscp: int | None

    def of(self, priority: int) -> str:
        """ "" for a priority that is not in use."""
        return self.by_priority.get(priority, "")


def _names(judge: Sequence[Seen], hosts: Sequence[Seen]) -> _Names:
    table = usual(one.settings.qos.dscp_to_priority for one in judge)
    lossless = frozenset(usual(pfc_priorities(one.settings.qos) for one in judge) or ())
    dscps: dict[int, list[int]] = defaultdict(list)
    for dscp, priority in enumerate(table or ()):
        dscps[priority].append(dscp)
    default = max(dscps, key=lambda one: len(dscps[one])) if dscps else 0
    cnp_dscp = usual(one.settings.marking.cnp_dscp for one in hosts)
    if cnp_dscp is None and table and not lossless & {table[48]} and table[48] != default:
        cnp_dscp = CNP_DSCPS[0]
    cnp = table[cnp_dscp] if table and cnp_dscp is not None else None
    names: dict[int, str] = {}
    for priority in sorted({*dscps, *lossless, default}):
        names[priority] = _name(priority, names, lossless, default, cnp, dscps)
    kept = {priority: tuple(found) for priority, found in dscps.items()}
    return _Names(names, lossless, default, kept, cnp, cnp_dscp)


def _name(
    priority: int,
    taken: Mapping[int, str],
    lossless: frozenset[int],
    default: int,
    cnp: int | None,
    dscps: Mapping[int, list[int]],
) -> str:
    if priority in lossless:
        return "roce" if "roce" not in taken.values() else f"roce{priority}"
    if priority == default:
        return "default"
    if priority == cnp:
        return "cnp"
    if dscps.get(priority) == [CONTROL_DSCP]:
        return "control"
    return f"class{priority}"


def _classes(judge: Sequence[Seen], hosts: Sequence[Seen], names: _Names) -> dict[str, dict[str, Any]]:
    """One class per priority in use; of the lossless ones the hosts' own comes first."""
    tos = usual(one.settings.marking.rdma_cm_tos for one in hosts)
    roce = tos >> 2 if tos is not None else None
    order = sorted(
        names.by_priority, key=lambda p: (p not in names.lossless, roce not in names.dscps.get(p, ()), p)
    )
    found = {}
    for priority in order:
        name = names.of(priority)
        one: dict[str, Any] = {"priority": priority}
        one |= _dscp(priority, names, roce if priority in names.lossless else names.cnp_dscp)
        if priority in names.lossless:
            one["lossless"] = True
        share = usual(_share(seen.settings.qos.classes[priority]) for seen in judge)
        if isinstance(share, Share):
            one |= (
                {"scheduler": "strict"} if share.scheduler == "strict" else {"bandwidth": f"{share.weight}%"}
            )
            one |= {"cap": f"{share.cap}%"} if isinstance(share.cap, int) and share.cap else {}
        found[name] = one
    if names.cnp is not None and names.of(names.cnp) != "cnp" and "cnp" not in found:
        found["cnp"] = {"priority": names.cnp, "dscp": [names.cnp_dscp]}
        _without(found[names.of(names.cnp)], names.cnp_dscp)
    return found


def _dscp(priority: int, names: _Names, first: int | None) -> dict[str, Any]:
    """The DSCPs of a priority; `first` leads, since hosts mark with the first one."""
    if priority == names.default:
        return {"dscp": "rest"}
    dscps = sorted(names.dscps.get(priority, ()), key=lambda dscp: (dscp != first, dscp))
    return {"dscp": _ranges(dscps)} if dscps else {}


def _without(one: dict[str, Any], dscp: int | None) -> None:
    if isinstance(one.get("dscp"), list) and dscp in one["dscp"] and len(one["dscp"]) > 1:
        one["dscp"] = [other for other in one["dscp"] if other != dscp]


def _ranges(dscps: Sequence[int]) -> list[int | str]:
    """Runs of three and more as "24-31"; the first stays alone, so that it stays first."""
    found: list[int | str] = list(dscps[:1])
    runs: list[list[int]] = []
    for dscp in dscps[1:]:
        if runs and dscp == runs[-1][-1] + 1:
            runs[-1].append(dscp)
        else:
            runs.append([dscp])
    for run in runs:
        found += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else run
    return found


def _share(one: ClassState) -> Share | Absent | None:
    return one.share


# -- ECN


def _marking(found: dict[str, Any], switches: Sequence[Seen], names: _Names) -> None:
    """Ramps by port speed: of all lossless classes at once where they are equal, else by class."""
    tables = {
        name: table
        for priority, name in names.by_priority.items()
        if (table := _ramps(switches, priority)) and name in found.get("classes", {})
    }
    lossless = [names.of(one) for one in names.lossless if names.of(one)]
    shared = [tables.get(name) for name in lossless]
    if shared and shared[0] and all(one == shared[0] for one in shared):
        found["ecn"] = shared[0]
    for name, table in tables.items():
        if not (name in lossless and found.get("ecn") == table):
            found["classes"][name]["ecn"] = table


def _ramps(switches: Sequence[Seen], priority: int) -> dict[str, Any]:
    by_speed: dict[str, list[Ecn | Absent | None]] = defaultdict(list)
    for one in switches:
        speed = f"{one.speed_gbps}G" if one.speed_gbps else "any"
        by_speed[speed].append(one.settings.qos.classes[priority].ecn)
    rows = {}
    for speed, values in sorted(by_speed.items(), key=lambda item: int(item[0].rstrip("Gany") or 0)):
        ramp = usual(values)
        if isinstance(ramp, Ecn) and ramp.kmin.unit in ("bytes", "percent"):
            kmin, kmax = (settings.amount(one) for one in (ramp.kmin, ramp.kmax))
            rows[speed] = {"kmin": kmin, "kmax": kmax, "pmax": f"{ramp.pmax:g}%"}
    return rows


# -- PFC


def _pfc(found: dict[str, Any], judge: Sequence[Seen], names: _Names) -> None:
    if not names.lossless:
        return
    found["pfc"] = {}
    _put(found["pfc"], ("dcbx",), _dcbx(judge))
    on = usual(one.settings.qos.classes[min(names.lossless)].watchdog for one in judge if not one.host)
    if on:
        timers = [one.settings.qos.watchdog for one in judge if not one.host]
        found["pfc"]["watchdog"] = _watchdog(timers) or "device"
    for priority in names.lossless:
        name = names.of(priority)
        sides = usual(
            (one.settings.qos.classes[priority].pfc_tx, one.settings.qos.classes[priority].pfc_rx)
            for one in judge
        )
        if sides in ((True, False), (False, True)) and name in found.get("classes", {}):
            found["classes"][name]["pfc"] = {"tx": sides[0], "rx": sides[1]}
    if not found["pfc"]:
        del found["pfc"]


def _dcbx(judge: Sequence[Seen]) -> str | None:
    found = usual(one.settings.qos.dcbx for one in judge)
    return None if found == "firmware" else found


def _watchdog(timers: Sequence[WatchdogTimers]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, name in (("detect", "detect_ms"), ("restore", "restore_ms"), ("poll", "poll_ms")):
        value = usual(getattr(one, name) for one in timers)
        found |= {key: f"{value}ms"} if value else {}
    action = usual(one.action for one in timers)
    return found | ({"action": action} if action else {})


# -- hosts


def _dcqcn(found: dict[str, Any], hosts: Sequence[Seen]) -> None:
    points = usual(one.settings.marking.rp for one in hosts)
    if points is not None:
        found["dcqcn"] = {"enabled": bool(points)}
    forced = usual(one.settings.marking.traffic_class for one in hosts)
    marked = usual(one.settings.marking.rdma_cm_tos for one in hosts)
    if marked is not None and forced is None:
        found["hosts"] = {"force_traffic_class": False}


_WHOLE: Final = ("sysctl", "module_options", "limits", "environment")
"""Keys of `hosts` that are maps of their own."""
_FLAGS: Final = {
    "nccl": ("NCCL_IB_TC", "NCCL_IB_SL", "NCCL_IB_HCA"),
    "ucx": ("UCX_IB_TRAFFIC_CLASS", "UCX_IB_SL", "UCX_NET_DEVICES"),
}
"""Key of `hosts` -> variables that it gives from classes and ports (intent/job.py)."""


def of_hosts(ports: Sequence[Seen]) -> dict[str, Any]:
    """Keys of `hosts` that hold for whole nodes: what files of ours hold on more than half of the hosts.

    Of other files nobody can tell what is meant. Whoever adopts begins by looking, hence no local check.
    """
    nodes: dict[str, list[Seen]] = defaultdict(list)
    for one in ports:
        if one.host:
            nodes[one.node].append(one)
    if not nodes:
        return {}
    found: dict[str, Any] = {"local_check": False}
    lines = Counter(line for held in nodes.values() for line in _own_lines(held))
    for line in sorted(line for line, number in lines.items() if number * 2 > len(nodes)):
        setting, _, value = line.partition("=")
        group, _, name = setting.partition(".")
        if group == "modules":
            found.setdefault(group, []).append(name)
        elif group == "module_options":
            _put(found, (group, *name.split(".", 1)), _plain(value))
        elif group in _WHOLE:
            _put(found, (group, name), _plain(value))
    return found


def _own_lines(ports: Sequence[Seen]) -> Iterator[str]:
    """What one host's files hold; a kernel setting that all its ports have alike, once with `*`."""
    names = [one.port.replace(".", "/") for one in ports]
    lines = ports[0].own.splitlines()
    starred: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        for name in names:
            if line.startswith("sysctl.") and f".{name}." in line:
                starred[line.replace(f".{name}.", ".*.", 1)].add(line)
    whole = {star: found for star, found in starred.items() if len(found) == len(names)}
    yield from whole
    yield from sorted(set(lines) - {line for found in whole.values() for line in found})


def by_flag(flag: str, hosts: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a flag (nccl, ucx) in place of the variables that it gives; as it is without them."""
    environment = hosts.get("environment", {})
    if not any(name in environment for name in _FLAGS[flag]):
        return dict(hosts)
    rest = {name: value for name, value in environment.items() if name not in _FLAGS[flag]}
    found = {key: value for key, value in hosts.items() if key != "environment"} | {flag: True}
    return found | ({"environment": rest} if rest else {})


def _plain(value: str) -> str | int:
    """A number as a number, where it would be written the same."""
    return int(value) if value.isdecimal() and str(int(value)) == value else value


# -- differences between two sets of wishes


def leaves(data: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Path -> value of everything in a nested map; lists, ramps and tables of hosts count as a whole."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping) and value and "kmin" not in value and key not in _WHOLE:
            found |= leaves(value, (*path, str(key)))
        else:
            found[(*path, str(key))] = value
    return found
