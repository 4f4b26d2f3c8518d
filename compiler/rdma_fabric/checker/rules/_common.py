"""What several rules ask of wishes and states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from rdma_fabric.intent.models import REST, EcnTable, TrafficClass, Wishes
from rdma_fabric.state import UNKNOWN, Maybe, NotJudged, QosState, known

Told = TypeVar("Told")

MANY: Final = 6
"""Names that a text lists before it counts the rest."""


def lossless_priorities(wishes: Wishes) -> tuple[int, ...]:
    """Priorities of the lossless classes, ascending."""
    return tuple(sorted({one.priority for one in wishes.classes.values() if one.lossless}))


def named_dscps(one: TrafficClass) -> tuple[int, ...]:
    """The code points that a class names, without `rest`."""
    return tuple(dscp for dscp in one.dscp if dscp != REST)


def ecn_tables(wishes: Wishes) -> Iterator[tuple[tuple[str, ...], EcnTable]]:
    """(path in the intent, table) of the default table and of each class's own."""
    if wishes.ecn is not None:
        yield ("ecn",), wishes.ecn
    for name, one in wishes.classes.items():
        if one.ecn is not None:
            yield ("classes", name, "ecn"), one.ecn


def dscp_trusted(qos: QosState) -> bool:
    """True when a packet's DSCP decides its priority; NotJudged when trust is absent."""
    return known(qos.trust, "trust") in ("dscp", "both")


def senders(qos: QosState) -> frozenset[int]:
    """Priorities for which the port sends pause."""
    return frozenset(p for p, one in enumerate(qos.classes) if known(one.pfc_tx, "PFC") is True)


def obeyers(qos: QosState) -> frozenset[int]:
    """Priorities for which the port obeys received pause."""
    return frozenset(p for p, one in enumerate(qos.classes) if known(one.pfc_rx, "PFC") is True)


def paused(qos: QosState) -> frozenset[int]:
    """Priorities with PFC in either direction."""
    return senders(qos) | obeyers(qos)


def apart(parts: Iterable[Iterable[Told]]) -> Iterator[Told]:
    """What all parts say; that one of them cannot be judged is told after the others."""
    missing: NotJudged | None = None
    for part in parts:
        try:
            yield from part
        except NotJudged as reason:
            missing = reason if missing is None or reason.absent is UNKNOWN else missing
    if missing is not None:
        raise missing


def read(value: Maybe[object]) -> bool:
    """True when the value is there."""
    try:
        known(value)
    except NotJudged:
        return False
    return True


def some(names: Iterable[str]) -> str:
    """Names with commas, the rest counted."""
    every = list(names)
    more = f" and {len(every) - MANY} more" if len(every) > MANY else ""
    return ", ".join(every[:MANY]) + more
