"""Traffic classes of a port with a DCB driver: PRIO_TC, TSA, TCBW and PFC of its settings file <-> classes.

A dash in a list means that the port may have there what it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rdma_fabric.platforms._host_qos import UNREAD, Knobs
from rdma_fabric.state import NOT_APPLICABLE, PRIORITIES, UNKNOWN, ClassState, Maybe, Share

ANY: Final = "-"
DIGITS: Final = tuple("01234567")
TABLE: Final = ("PRIO_TC", "TSA", "TCBW")
"""Written in one go: the driver checks them together."""


def knobs(classes: Sequence[ClassState]) -> dict[str, str]:
    """PFC and the table of traffic classes, as far as they are known."""
    found = table(classes)
    bits = [one.pfc_tx for one in classes]
    if all(isinstance(bit, bool) for bit in bits):
        found["PFC"] = ",".join("1" if bit is True else "0" for bit in bits)
    return found


def table(classes: Sequence[ClassState]) -> dict[str, str]:
    """The whole table in one go, as the driver checks it; a class that serves nobody is anything."""
    queues = [one.queue for one in classes]
    if not any(isinstance(queue, int) for queue in queues):
        return {}
    tsa, weight = [ANY] * 8, [ANY] * 8
    for priority in reversed(PRIORITIES):
        share, queue = classes[priority].share, queues[priority]
        if isinstance(queue, int) and isinstance(share, Share):
            strict = share.scheduler == "strict"
            tsa[queue], weight[queue] = ("strict", "0") if strict else ("ets", str(share.weight))
    if set(tsa) == {ANY}:
        return {}
    prio_tc = ",".join(str(queue) if isinstance(queue, int) else ANY for queue in queues)
    return {"PRIO_TC": prio_tc, "TSA": ",".join(tsa), "TCBW": ",".join(weight)}


def keys_of(field: str) -> tuple[str, ...]:
    """The knobs that hold a field of a class."""
    return {"pfc_tx": ("PFC",), "pfc_rx": ("PFC",), "share": TABLE, "queue": TABLE}.get(field, ())


def numbers(text: str, count: int) -> Maybe[tuple[int, ...]]:
    """A list of that many numbers; UNKNOWN for anything else."""
    words = text.split(",")
    return tuple(map(int, words)) if len(words) == count and all(map(str.isdigit, words)) else UNKNOWN


def _list(knobs: Knobs, key: str) -> list[str]:
    words = knobs.get(key, "").split(",")
    return words if len(words) == 8 else [UNREAD] * 8


def read(knobs: Knobs) -> tuple[ClassState, ...]:
    """The eight classes that these knobs mean."""
    pfc, queues = _list(knobs, "PFC"), _list(knobs, "PRIO_TC")
    tsa, weight = _list(knobs, "TSA"), _list(knobs, "TCBW")
    found = []
    for priority in PRIORITIES:
        bit: Maybe[bool] = {"1": True, "0": False}.get(pfc[priority], UNKNOWN)
        queue: Maybe[int] = int(queues[priority]) if queues[priority] in DIGITS else UNKNOWN
        share: Maybe[Share | None] = UNKNOWN
        if isinstance(queue, int):
            share = _share(tsa[queue], weight[queue])
        elif queues[priority] == ANY:
            queue = share = NOT_APPLICABLE
        found.append(
            ClassState(
                pfc_tx=bit,
                pfc_rx=bit,
                watchdog=NOT_APPLICABLE,
                ecn=NOT_APPLICABLE,
                headroom=NOT_APPLICABLE,
                share=share,
                queue=queue,
                group=NOT_APPLICABLE,
            )
        )
    return tuple(found)


def _share(tsa: str, weight: str) -> Maybe[Share | None]:
    """Rate limits are not read: no DCB call shows them."""
    if tsa == "strict":
        return Share("strict", 0, NOT_APPLICABLE)
    return Share("dwrr", int(weight), NOT_APPLICABLE) if tsa == "ets" and weight.isdigit() else UNKNOWN


def blurred(wanted: str, have: str) -> str:
    """A list with dashes where the wanted one does not mind."""
    pairs = zip(wanted.split(","), have.split(","), strict=False)
    return ",".join(ANY if want == ANY else word for want, word in pairs)
