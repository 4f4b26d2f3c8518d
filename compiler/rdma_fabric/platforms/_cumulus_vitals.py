"""Counters of a Cumulus switch by NVUE.

Paths of 5.5 and newer (`counters qos ...`); before, the words stood the other way round. The members of
the JSON are those that the text form prints and that public collectors read; no page of NVIDIA shows the
JSON itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._cumulus_tree import branch, read_json, whole
from rdma_fabric.vitals import Count, Kind, Vitals

_PAUSE: Final[tuple[tuple[str, Kind], ...]] = (
    ("rx-pause-frames", "pause-rx"),
    ("tx-pause-frames", "pause-tx"),
)
_QUEUE: Final[tuple[tuple[str, Kind], ...]] = (
    ("ecn-marked-frames", "marks"),
    ("tx-uc-buffer-discards", "drops"),
    ("wred-discards", "drops"),
)
_LINK: Final[tuple[tuple[str, Kind], ...]] = (
    ("in-errors", "errors"),
    ("in-drops", "discards"),
    ("out-drops", "discards"),
    ("carrier-transitions", "down"),
)


def questions(hw: Hardware) -> tuple[str, ...]:
    """Two for every port: NVUE shows counters port by port."""
    ports = [port.name for port in hw.ports if port.kind == "physical"]
    return tuple(question for port in ports for question in (_stats(port), _counters(hw, port)))


def _stats(port: str) -> str:
    return f"nv show interface {port} link stats -o json"


def _counters(hw: Hardware, port: str) -> str:
    words = "qos counters" if () < hw.release() < (5, 5) else "counters qos"
    return f"nv show interface {port} {words} -o json"


def vitals(answers: Mapping[str, str], hw: Hardware) -> Vitals:
    """Counters of the physical ports in `hw`; never raises."""
    found: list[Count] = []
    for port in (port.name for port in hw.ports if port.kind == "physical"):
        found += _numbers(port, branch(read_json(answers.get(_stats(port), ""))), _LINK)
        tables = read_json(answers.get(_counters(hw, port), ""))
        for group, table in (("pfc-stats", _PAUSE), ("egress-queue-stats", _QUEUE)):
            for key, row in branch(tables, group).items():
                if str(key).isdigit() and isinstance(row, dict):
                    place = {"priority" if group == "pfc-stats" else "queue": int(key)}
                    found += _numbers(port, row, table, **place)
    return Vitals(tuple(found))


def _numbers(
    port: str, row: Mapping[str, Any], table: tuple[tuple[str, Kind], ...], **place: int
) -> Iterator[Count]:
    at = "".join(f" of {word} {number}" for word, number in place.items())
    for name, kind in table:
        value = whole(row.get(name))
        if value is not None:
            yield Count(port, kind, value, f"{name}{at}", **place)
