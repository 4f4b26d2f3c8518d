"""The subnet manager of an MLNX-OS switch: read from its running configuration, told and never written.

Lines: Subnet Manager page and SM Commands of MLNX-OS 3.10/3.11, worked example of public setup guides. How
the running configuration spells an MTU that nobody set, and an MTU of a partition other than Default, is not
confirmed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rdma_fabric.intent.models import DEFAULT_PKEY
from rdma_fabric.inventory.guids import normal
from rdma_fabric.inventory.subnets import member_order
from rdma_fabric.state import UNKNOWN, UNMANAGED, Maybe, Partition, Partitions, SmState
from rdma_fabric.templating import render_lines

FIELDS: Final = ("running", "priority", "routing", "both", "partitions")
"""What the configuration has of a subnet manager's state."""
_MTUS: Final[Mapping[str, int]] = {"256": 256, "512": 512, "1K": 1024, "2K": 2048, "4K": 4096}
_WORDS: Final[Mapping[int, str]] = {mtu: word for word, mtu in _MTUS.items()}
_DEFAULT_MTU: Final = 2048


@dataclass(frozen=True, slots=True)
class Row:
    """A partition as the switch's lines have it; `mtu`: "" without an IPoIB group."""

    name: str
    pkey: str
    default: bool
    mtu: str
    members: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Everything that the template of the subnet manager's lines may use."""

    sm: bool
    both: bool
    priority: str
    routing: str
    partitions: tuple[Row, ...]


def shown(found: Partitions) -> Partitions:
    """The partitions with what a switch can have of them."""
    return Partitions(tuple(map(_shown, found.rows)))


def _shown(one: Partition) -> Partition:
    return replace(
        one,
        mtu=one.mtu if one.ipoib else _DEFAULT_MTU,
        rate=UNMANAGED,
        sl=0,
        scope=UNMANAGED,
        members=tuple(member for member in one.members if member.startswith(("ALL=", "0x"))),
        groups=(),
        index0=False,
    )


def lines(sm: SmState) -> tuple[str, ...]:
    """The lines of a subnet manager's state."""
    partitions = sm.partitions.rows if isinstance(sm.partitions, Partitions) else ()
    context = Lines(
        sm=sm.running is True,
        both=sm.both is True,
        priority=str(sm.priority) if isinstance(sm.priority, int) else "",
        routing=",".join(sm.routing) if isinstance(sm.routing, tuple) else "",
        partitions=tuple(map(_row, partitions)),
    )
    return tuple(render_lines("nvidia_ib/sm.j2", context))


def _row(one: Partition) -> Row:
    members = (member.partition("=") for member in one.members)
    return Row(
        one.name,
        f"0x{one.pkey:x}",
        one.pkey == DEFAULT_PKEY,
        _WORDS.get(one.mtu, "") if one.ipoib else "",
        tuple((_pairs(who), kind) for who, _, kind in members),
    )


def _pairs(who: str) -> str:
    """GUIDs as eight pairs: every other spelling gives `% Invalid port GUID`."""
    return ":".join(re.findall("..", who.removeprefix("0x"))) if who.startswith("0x") else who


def told(wanted: SmState, seen: SmState) -> Iterator[str]:
    """Lines that whoever owns the switch would type to bring what is seen to what is wanted."""
    want, have = lines(wanted), lines(seen)
    partitions = {one.name for one in _rows(wanted)}
    for one in _rows(seen):
        if one.name not in partitions:
            yield f"no ib partition {one.name}"
    for line in have:
        words = line.split()
        if words[3:4] == ["member"] and words[2] in partitions and line not in want:
            yield f"no {' '.join(words[:5])}"
    yield from (line for line in want if line not in have)


def _rows(sm: SmState) -> tuple[Partition, ...]:
    return sm.partitions.rows if isinstance(sm.partitions, Partitions) else ()


# ---------------------------------------------------------------- read


@dataclass
class _Found:
    """One partition while its lines are read."""

    pkey: int = 0
    ipoib: bool = False
    mtu: int = _DEFAULT_MTU
    kind: str = "limited"
    members: dict[str, str] = field(default_factory=dict)


def read(text: str, running: Maybe[bool]) -> tuple[SmState, tuple[str, ...]]:
    """The subnet manager of `show running-config`, and what was not understood."""
    rows = [words for line in text.splitlines() if (words := line.split())[:1] == ["ib"]]
    rows = [words[:-1] if words[-1] == "force" else words for words in rows]
    if not any(words[1:2] == ["partition"] for words in rows):
        note = "the running configuration was not understood: it has no partition"
        return SmState(running, **dict.fromkeys(FIELDS[1:], UNKNOWN)), (note,)
    priorities = {words[4] for words in rows if words[1:2] == ["smnode"] and words[3:4] == ["sm-priority"]}
    engines = next((words[3:] for words in rows if words[1:3] == ["sm", "routing-engines"]), [])
    partitions, notes = _partitions(rows)
    number = next(iter(priorities), "")
    return (
        SmState(
            running=running,
            priority=int(number) if len(priorities) == 1 and number.isdigit() else UNKNOWN,
            routing=tuple(word for word in re.split(r"[,\s]+", " ".join(engines)) if word),
            both=["ib", "sm", "allow-both-pkeys"] in rows,
            partitions=partitions,
        ),
        notes,
    )


def _partitions(rows: Iterable[list[str]]) -> tuple[Maybe[Partitions], tuple[str, ...]]:
    found: dict[str, _Found] = {"Default": _Found(DEFAULT_PKEY)}
    for words in rows:
        if words[1] != "partition" or len(words) < 4:
            continue
        one = found.setdefault(words[2], _Found())
        if not _take(one, words[3], words[4:]):
            return UNKNOWN, (f"`{' '.join(words)}` was not understood",)
    nameless = [name for name, one in found.items() if not one.pkey]
    if nameless:
        return UNKNOWN, (f"partition {nameless[0]} has no P_Key in the running configuration",)
    made = [_partition(name, one) for name, one in found.items()]
    made.sort(key=lambda one: (one.pkey != DEFAULT_PKEY, one.pkey))
    return Partitions(tuple(made)), ()


def _take(one: _Found, key: str, values: list[str]) -> bool:
    """False for a line that says something else."""
    value = values[0] if values else ""
    if key == "pkey" and re.fullmatch(r"0x[0-9a-fA-F]{1,4}", value):
        one.pkey = int(value, 16) & DEFAULT_PKEY
    elif key == "ipoib" and not values:
        one.ipoib = True
    elif key == "mtu" and value in _MTUS:
        one.mtu = _MTUS[value]
    elif key == "defmember" and value in ("full", "limited", "both"):
        one.kind = value
    elif key == "member" and (value == "ALL" or normal(value)):
        one.members[normal(value) or value] = values[2] if values[1:2] == ["type"] and values[2:] else ""
    else:
        return False
    return True


def _partition(name: str, one: _Found) -> Partition:
    members = (f"{who}={kind or one.kind}" for who, kind in one.members.items())
    mtu = one.mtu if one.ipoib else _DEFAULT_MTU
    return Partition(name, one.pkey, one.ipoib, mtu, members=tuple(sorted(members, key=member_order)))
