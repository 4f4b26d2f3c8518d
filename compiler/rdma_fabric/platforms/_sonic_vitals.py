"""Counters of a SONiC switch, from the tables of its `show` commands.

Columns are those of sonic-utilities' own tests (pfcstat, queuestat, wredstat, portstat, pfcwd); numbers
may hold commas, and "N/A" is a counter that the ASIC does not have. FEC_SYMBOL_ERR counts symbols before
correction and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._sonic_read import STORMS
from rdma_fabric.platforms._sonic_show import table_rows
from rdma_fabric.vitals import Count, Kind, Vitals

PAUSE: Final = "show pfc counters"
QUEUES: Final = "show queue counters"
MARKS: Final = "show queue wredcounters"
PORTS: Final = "show interfaces counters"
FEC: Final = "show interfaces counters fec-stats"
QUESTIONS: Final = (PORTS, PAUSE, QUEUES, MARKS, FEC, STORMS)

Row = Mapping[str, str]

_PORT: Final[tuple[tuple[str, Kind], ...]] = (
    ("RX_ERR", "errors"),
    ("RX_DRP", "discards"),
    ("TX_DRP", "discards"),
)


def vitals(answers: Mapping[str, str], hw: Hardware) -> Vitals:
    """Counters of the physical ports in `hw`; never raises."""
    names = {port.name for port in hw.ports if port.kind == "physical"}
    readers: tuple[tuple[str, Callable[[Row], Iterator[Count]]], ...] = (
        (PORTS, _ports),
        (PAUSE, _pause),
        (QUEUES, _drops),
        (MARKS, _marks),
        (FEC, _fec),
        (STORMS, _storms),
    )
    found = [
        count
        for question, read in readers
        for row in _rows(answers.get(question, ""))
        for count in read(row)
        if count.port in names
    ]
    return Vitals(tuple(found))


def _rows(text: str) -> Iterator[Row]:
    """Rows of all tables of an answer: some commands print one for every port."""
    for block in re.split(r"\n\s*\n", text.replace("\r", "")):
        yield from table_rows("\n" + block)


def _number(text: str) -> int | None:
    plain = text.replace(",", "")
    return int(plain) if plain.isdigit() else None


def _ports(row: Row) -> Iterator[Count]:
    for column, kind in _PORT:
        value = _number(row.get(column, ""))
        if value is not None:
            yield Count(row.get("IFACE", ""), kind, value, column)


def _pause(row: Row) -> Iterator[Count]:
    sides: tuple[tuple[str, Kind], ...] = (("Port Rx", "pause-rx"), ("Port Tx", "pause-tx"))
    for column, kind in sides:
        for priority in range(8) if column in row else ():
            value = _number(row.get(f"PFC{priority}", ""))
            if value is not None:
                yield Count(row[column], kind, value, f"{column} PFC{priority}", priority=priority)


def _queue(row: Row) -> int:
    """Of "UC3", "MC11"; multicast queues carry no RoCE and have numbers of their own."""
    match = re.fullmatch(r"(?:UC|ALL)(\d)", row.get("TxQ", ""))
    return int(match[1]) if match else -1


def _drops(row: Row) -> Iterator[Count]:
    queue, value = _queue(row), _number(row.get("Drop/pkts", ""))
    if queue >= 0 and value is not None:
        yield Count(row.get("Port", ""), "drops", value, f"Drop/pkts of {row['TxQ']}", queue=queue)


def _marks(row: Row) -> Iterator[Count]:
    queue, value = _queue(row), _number(row.get("EcnMarked/pkts", ""))
    if queue >= 0 and value is not None:
        yield Count(row.get("Port", ""), "marks", value, f"EcnMarked/pkts of {row['TxQ']}", queue=queue)


def _fec(row: Row) -> Iterator[Count]:
    value = _number(row.get("FEC_UNCORR", ""))
    if value is not None:
        yield Count(row.get("IFACE", ""), "fec", value, "FEC_UNCORR")


def _storms(row: Row) -> Iterator[Count]:
    at = re.fullmatch(r"(\S+):(\d)", row.get("QUEUE", ""))
    times = re.match(r"(\d+)/", row.get("STORM DETECTED/RESTORED", ""))
    if at and times:
        name = f"STORM DETECTED of queue {at[2]}"
        yield Count(at[1], "storms", int(times[1]), name, queue=int(at[2]))
