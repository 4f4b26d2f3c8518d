"""Small pure helpers that several platforms use; nothing here knows a vendor."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.state import (
    PRIORITIES,
    UNKNOWN,
    Absent,
    ClassState,
    Difference,
    Maybe,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    WatchdogTimers,
)

T = TypeVar("T")

UNKNOWN_CLASS = ClassState(**{item.name: UNKNOWN for item in fields(ClassState)})
UNKNOWN_QOS = QosState(
    trust=UNKNOWN,
    dscp_to_priority=UNKNOWN,
    pcp_to_priority=UNKNOWN,
    classes=(UNKNOWN_CLASS,) * len(PRIORITIES),
    watchdog=WatchdogTimers(**{item.name: UNKNOWN for item in fields(WatchdogTimers)}),
    dcbx=UNKNOWN,
    global_pause=UNKNOWN,
    cable_m=UNKNOWN,
)
UNKNOWN_MTU = Mtu(ip=UNKNOWN, frame=UNKNOWN, enforced=UNKNOWN)


# ---------------------------------------------------------------- numbers and lists


def compact(numbers: Iterable[int], separator: str = ",", dash: str = "-") -> str:
    """Sorted numbers as ranges: (0, 1, 2, 5) -> "0-2,5"; two neighbours are a range too."""
    return separator.join(
        str(first) if first == last else f"{first}{dash}{last}" for first, last in runs(numbers)
    )


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(first, last) of every run of consecutive numbers, ascending."""
    first: int | None = None
    last = -1
    for number in sorted(set(numbers)):
        if first is None:
            first = number
        elif number != last + 1:
            yield first, last
            first = number
        last = number
    if first is not None:
        yield first, last


def expand(text: str) -> tuple[int, ...]:
    """ "0-2,5 7" -> (0, 1, 2, 5, 7), ascending; ValueError for anything that is not such a list."""
    found: set[int] = set()
    for word in re.split(r"\s*,\s*|\s+", text.strip()):
        first, dash, last = word.partition("-")
        found.update(range(int(first), int(last if dash else first) + 1))
    return tuple(sorted(found))


def integer(text: str) -> int | None:
    """The whole number that the text is, or None."""
    return int(text) if re.fullmatch(r"-?\d+", text.strip()) else None


# ---------------------------------------------------------------- maps and classes


def by_priority(priorities: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Code points of each priority that has any: index -> value becomes value -> indexes, ascending."""
    return {
        priority: tuple(index for index, value in enumerate(priorities) if value == priority)
        for priority in sorted(set(priorities))
    }


def used_priorities(qos: QosState) -> tuple[int, ...]:
    """Priorities in use: with a DSCP, PFC, an ECN ramp or a share that somebody asked for."""
    mapped = () if isinstance(qos.dscp_to_priority, Absent) else set(qos.dscp_to_priority)
    return tuple(
        priority
        for priority, state in enumerate(qos.classes)
        if priority in mapped
        or state.pfc_tx is True
        or state.pfc_rx is True
        or not (state.ecn is None or isinstance(state.ecn, Absent))
        or not (state.share is None or isinstance(state.share, Absent))
    )


def with_class(qos: QosState, priority: int, **values: Any) -> QosState:
    """The same QoS with some fields of one priority replaced."""
    changed = replace(qos.classes[priority], **values)
    return replace(qos, classes=(*qos.classes[:priority], changed, *qos.classes[priority + 1 :]))


def merge(value: Maybe[T], default: Maybe[T]) -> Maybe[T]:
    """The value, or the default where the value is UNMANAGED."""
    return default if value is Absent.UNMANAGED else value


# ---------------------------------------------------------------- ports


def owned_ports(state: NodeState, hw: Hardware) -> tuple[tuple[PortState, PortHardware], ...]:
    """Ports of the state that the hardware has too, in the state's order."""
    known = {port.name: port for port in hw.ports}
    return tuple((port, known[port.name]) for port in state.ports if port.name in known)


def with_ports(state: NodeState, settings: Mapping[str, PortSettings]) -> NodeState:
    """The same node with new settings for the named ports."""
    return replace(
        state,
        ports=tuple(
            replace(port, settings=settings[port.name]) if port.name in settings else port
            for port in state.ports
        ),
    )


def distinct(values: Iterable[Maybe[T]]) -> tuple[T, ...]:
    """The different managed values in order of appearance; absences are left out."""
    found: list[T] = []
    for value in values:
        if not isinstance(value, Absent) and value not in found:
            found.append(value)
    return tuple(found)


def split_path(path: str, ports: Iterable[str]) -> tuple[str, str]:
    """ "ports.Ethernet1/1.qos.trust" -> ("Ethernet1/1", "qos.trust"); the port is "" for a node's field.

    Port names may hold dots themselves ("swp1.100"), hence the list of names.
    """
    rest = path.removeprefix("ports.")
    if rest != path:
        for name in sorted(ports, key=len, reverse=True):
            if rest.startswith(f"{name}."):
                return name, rest[len(name) + 1 :]
    return "", path


def split_unknown(
    found: Iterable[Difference],
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """(what can be repaired, what is blocked because it could not be read)."""
    both = tuple(found)
    return tuple(d for d in both if not d.unknown), tuple(d for d in both if d.unknown)


# ---------------------------------------------------------------- observations


def unknown_settings() -> PortSettings:
    """Settings of a switch port that could not be read; marking belongs to hosts and stays unmanaged."""
    return PortSettings(UNKNOWN_MTU, UNKNOWN_QOS)


def unknown_observation(hw: Hardware, *notes: str) -> Observation:
    """What is known of a node that answered nothing usable: its ports, all fields UNKNOWN."""
    settings = unknown_settings()
    ports = tuple(PortState(port.name, port.kind, settings, speed_gbps=UNKNOWN) for port in hw.ports)
    return Observation(NodeState(ports=ports), notes=notes, evidence=digest(ports))


def canonical(value: Any) -> Any:
    """The value as plain JSON data: dataclasses become objects, absences their words."""
    if isinstance(value, Absent):
        return f"<{value.value}>"
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: canonical(getattr(value, item.name)) for item in fields(value) if item.compare}
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((canonical(item) for item in value), key=repr)
    return value


def digest(value: Any) -> str:
    """sha256 of the canonical form of any value made of dataclasses, mappings, lists and scalars."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- indented configuration


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an indented configuration with the lines below it."""

    text: str
    below: tuple[Line, ...] = ()

    def find(self, *words: str) -> Line | None:
        """The first line below that starts with these words (whole words), or None."""
        return next(iter(self.all(*words)), None)

    def all(self, *words: str) -> tuple[Line, ...]:
        """Every line below that starts with these words."""
        return starting(self.below, *words)


def starting(lines: Iterable[Line], *words: str) -> tuple[Line, ...]:
    """Those lines of one level that start with these words."""
    return tuple(line for line in lines if tuple(line.text.split()[: len(words)]) == words)


def indented(text: str, comment: str = "!") -> tuple[Line, ...]:
    """Top-level lines of a configuration whose blocks are shown by leading blanks."""
    rows = [
        (len(row) - len(row.lstrip()), row.strip())
        for row in text.splitlines()
        if row.strip() and not row.lstrip().startswith(comment)
    ]
    return _level(rows, 0, len(rows))


def _level(rows: Sequence[tuple[int, str]], start: int, end: int) -> tuple[Line, ...]:
    found = []
    while start < end:
        depth, text = rows[start]
        stop = start + 1
        while stop < end and rows[stop][0] > depth:
            stop += 1
        found.append(Line(text, _level(rows, start + 1, stop)))
        start = stop
    return tuple(found)
