"""Merged hits -> findings: equal ones at several places become one, with the places written short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from rdma_fabric.checker.blame import setting_key
from rdma_fabric.findings import Finding, Place, Position, natural
from rdma_fabric.inventory.ranges import collapse
from rdma_fabric.settings import group_of

if TYPE_CHECKING:
    from rdma_fabric.checker.causes import Raw
    from rdma_fabric.checker.fabric import Judged

SHOWN_PLACES = 6
"""Ports that a headline names before it counts the rest."""


def grouped(raw: Iterable[Raw], judged: Judged) -> list[Finding]:
    """One finding per rule, setting, values and position; places in natural order."""
    rank = {name: number for number, name in enumerate(judged.views)}
    told: dict[int, tuple[Any, ...]] = {}
    rows: dict[Any, list[Raw]] = {}
    for one in raw:
        hit = one.hit
        key = told.get(id(hit))
        if key is None:
            key = told[id(hit)] = (one.rule.code, hit.setting, hit.found, hit.wanted, hit.message)
        # Both ends of a cable, several places of one hit, and the nodes of one intent are told together.
        together = bool(one.cable) or len(hit.places) > 1 or one.wishes
        kind = "together" if together else _kind(one, judged)
        where = None if _unwritten(one, judged) else one.position
        rows.setdefault((key, where, one.severity, kind), []).append(one)
    return [_finding(same, rank) for same in rows.values()]


def _unwritten(one: Raw, judged: Judged) -> bool:
    """True where a setting is written nowhere: its place's own line says nothing that another's does not."""
    node = judged.inventory.nodes.get(one.place.node)
    if node is None or one.cable or one.hit.position is not None or one.position is None:
        return False
    port = node.spec.ports.get(one.place.port)
    return one.position in (node.position, port.position if port else None)


def _kind(one: Raw, judged: Judged) -> Any:
    """Only places of one kind share a finding: hosts with hosts, switches with switches."""
    view = judged.views.get(one.place.node)
    return (view.is_host, view.hw.parts[0]) if view else None


_natural = cache(natural)


def _finding(rows: list[Raw], rank: Mapping[str, int]) -> Finding:
    rows = sorted(
        rows,
        key=lambda one: (rank.get(one.place.node, -1), _natural(one.place.port), one.place.network),
    )
    places = tuple(dict.fromkeys(one.place for one in rows if one.place != Place()))
    first = rows[0]
    hit = first.hit
    peers = tuple(dict.fromkeys(one.peer for one in rows if one.peer))
    others = tuple(dict.fromkeys(one.other for one in rows if one.other))
    values = {"where": places_text(places), "peer": _and_more(others) or "its peer"}
    return Finding(
        code=first.rule.code,
        name=first.rule.name,
        severity=first.severity,
        places=places,
        setting=title(hit.setting),
        found=hit.found,
        wanted=_fill(hit.wanted, values),
        peer=_and_more(peers),
        position=first.position,
        help=_fill(hit.help, values),
        message=_fill(hit.message, values),
        reason=hit.reason,
        count=max(1, len(places)),
    )


def _and_more(texts: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return f"{texts[0]} (and {len(texts) - 1} more)" if len(texts) > 1 else "".join(texts)


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def title(setting: str) -> str:
    """The name of a setting in reports."""
    return group_of(setting).title if setting_key(setting) else setting


def places_text(places: Sequence[Place]) -> str:
    """ "gpu07 eth2", "gpu[01-08] eth[0-1]", "leaf01 (12 ports)", "network compute", "the fabric"."""
    nodes = list(dict.fromkeys(place.node for place in places if place.node))
    if not nodes:
        return ", ".join(dict.fromkeys(map(str, places))) or "the fabric"
    ports = list(dict.fromkeys(place.port for place in places if place.port))
    short = collapse(nodes)
    if not ports:
        return short
    if len(places) == len(nodes) * len(ports) and len(collapse(ports)) <= 60:
        return f"{short} {collapse(ports)}"
    if len(places) <= SHOWN_PLACES:
        return ", ".join(str(place) for place in places)
    return f"{short} ({len(places)} ports)"


__all__ = ["Position", "grouped", "places_text", "title"]
