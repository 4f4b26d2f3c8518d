"""Counters of an EOS switch.

Fields after the public tests of ANTA (interfaces.py) and recorded JSON of `show interfaces`; those of
`show interfaces phy detail` after one public program. A queue's counters name it "UC3" or "TC3"; multicast
queues (MC0) are numbered apart and carry no RoCE.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._arista_eos_read import INTERFACES
from rdma_fabric.vitals import Count, Kind, Vitals

PAUSE: Final = "show priority-flow-control counters | json | no-more"
MARKS: Final = "show qos interfaces ecn counters queue | json | no-more"
QUEUES: Final = "show interfaces counters queue detail | no-more"
STORMS: Final = "show priority-flow-control counters watchdog | json | no-more"
PHY: Final = "show interfaces phy detail | json | no-more"
ERRORS: Final = "show interfaces counters errors | json | no-more"
DISCARDS: Final = "show interfaces counters discards | json | no-more"
QUESTIONS: Final = (INTERFACES, ERRORS, DISCARDS, PAUSE, MARKS, QUEUES, STORMS, PHY)

_PORT: Final[tuple[tuple[str, str, tuple[tuple[str, Kind], ...]], ...]] = (
    (ERRORS, "interfaceErrorCounters", (("fcsErrors", "crc"), ("symbolErrors", "symbol"))),
    (DISCARDS, "interfaces", (("inDiscards", "discards"), ("outDiscards", "discards"))),
)
"""(command, its table, fields of a port)."""
_QUEUE: Final = re.compile(r"\s*(Et\S+)\s+(UC|TC)(\d)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*")
"""Port in its short form, queue, packets, bytes, dropped packets, dropped bytes."""


def vitals(answers: Mapping[str, str], hw: Hardware) -> Vitals:
    """Counters of the physical ports in `hw`; never raises."""
    names = {port.name for port in hw.ports if port.kind == "physical"}
    read = (
        *_changes(_json(answers.get(INTERFACES, ""))),
        *_tables(answers),
        *_pause(_json(answers.get(PAUSE, ""))),
        *_marks(_json(answers.get(MARKS, ""))),
        *_drops(answers.get(QUEUES, "")),
        *_storms(_json(answers.get(STORMS, "")), names),
        *_fec(_json(answers.get(PHY, ""))),
    )
    return Vitals(tuple(one for one in read if one.port in names))


def _json(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text[text.find("{") :]) if "{" in text else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _below(data: Any, *path: str) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _rows(data: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    rows = data.get(key)
    yield from rows.items() if isinstance(rows, dict) else ()


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _changes(data: Mapping[str, Any]) -> Iterator[Count]:
    for port, row in _rows(data, "interfaces"):
        value = _whole(_below(row, "interfaceCounters", "linkStatusChanges"))
        if value is not None:
            yield Count(port, "down", value, "linkStatusChanges")


def _tables(answers: Mapping[str, str]) -> Iterator[Count]:
    for command, table, fields in _PORT:
        for port, row in _rows(_json(answers.get(command, "")), table):
            for name, kind in fields:
                value = _whole(_below(row, name))
                if value is not None:
                    yield Count(port, kind, value, name)


def _pause(data: Mapping[str, Any]) -> Iterator[Count]:
    """All priorities together: this command does not split them."""
    fields: tuple[tuple[Kind, str], ...] = (("pause-rx", "rxFrames"), ("pause-tx", "txFrames"))
    for port, row in _rows(data, "interfaceCounters"):
        for kind, field in fields:
            value = _whole(_below(row, field))
            if value is not None:
                yield Count(port, kind, value, f"PFC {field}")


def _marks(data: Mapping[str, Any]) -> Iterator[Count]:
    """Values are texts: digits, or "-" for a queue that does not count."""
    for port, row in _rows(data, "intfQueueCounters"):
        queues = _below(row, "queueCounters")
        for queue, value in queues.items() if isinstance(queues, dict) else ():
            if str(queue).isdigit() and str(value).isdigit():
                yield Count(port, "marks", int(value), f"ECN counter of queue {queue}", queue=int(queue))


def _drops(text: str) -> Iterator[Count]:
    for line in text.splitlines():
        if row := _QUEUE.fullmatch(line):
            name = f"dropped packets of {row[2]}{row[3]}"
            port = re.sub(r"^Et(?=\d)", "Ethernet", row[1])
            yield Count(port, "drops", int(row[6]), name, queue=int(row[3]))


def _storms(data: Mapping[str, Any], names: set[str]) -> Iterator[Count]:
    """A port appears after its first event: until then it has none, where the answer was understood."""
    rows = data.get("interfaces")
    if not isinstance(rows, dict):
        return
    for port in sorted(names):
        queues = _below(rows, port, "txQueues")
        known = {queue: _whole(_below(row, "stuckCount")) for queue, row in (queues or {}).items()}
        for queue in "01234567":
            value = known.get(queue, 0)
            if value is not None:
                yield Count(port, "storms", value, f"watchdog stuckCount of queue {queue}", queue=int(queue))


def _fec(data: Mapping[str, Any]) -> Iterator[Count]:
    for port, row in _rows(data, "interfacePhyStatuses"):
        statuses = _below(row, "phyStatuses")
        for status in statuses if isinstance(statuses, list) else ():
            value = _whole(_below(status, "fec", "uncorrectedCodewords", "value"))
            if value is not None:
                yield Count(port, "fec", value, "FEC uncorrectedCodewords")
                break
