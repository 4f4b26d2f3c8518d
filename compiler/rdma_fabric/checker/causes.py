"""One cause is one finding: what only follows from something else that rules say is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rdma_fabric.checker.blame import matches
from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import AnyRule, Hit
from rdma_fabric.findings import Place, Position, Severity


@dataclass(slots=True, eq=False)
class Raw:
    """A hit at one place, before merging. Not frozen, as there may be a million of them; never changed."""

    rule: AnyRule
    hit: Hit
    place: Place
    severity: Severity
    peer: str = ""
    """What the other end and the majority have."""
    other: str = ""
    """The other end's name."""
    position: Position | None = None
    cable: str = ""
    """Set on the two hits of a cable whose both ends are named: they stand and fall together."""
    wishes: int = 0
    """Identity of the wishes that an intent rule judged."""

    @property
    def weight(self) -> tuple[Severity, int]:
        """The heavier of two hits on one thing is told."""
        return self.severity, self.hit.rank


def reduce(raw: Iterable[Raw], judged: Judged) -> list[Raw]:
    """Per setting of a port the heaviest hit, without those that another hit explains."""
    everything = list(raw)
    rest = [one for one in everything if not one.place.node]
    best: dict[tuple[str, str, str], Raw] = {}
    lost: list[Raw] = []
    explained = _Explained(everything, judged)
    for one in everything:
        if not one.place.node:
            continue
        if explained.covers(one):
            lost.append(one)
            continue
        key = (one.place.node, one.place.port, one.hit.setting)
        old = best.get(key)
        if old is None or one.weight > old.weight:
            best[key] = one
            lost += [old] if old else []
        else:
            lost.append(one)
    return [*rest, *_whole(best.values(), lost)]


def _whole(kept: Iterable[Raw], lost: Iterable[Raw]) -> Iterator[Raw]:
    """Without the second end of a cable whose first end has a better explanation."""
    gone = {_pair(one) for one in lost if one.cable}
    told = list(kept)
    both: dict[tuple[str, str, str], int] = {}
    for one in told:
        if one.cable:
            both[_pair(one)] = both.get(_pair(one), 0) + 1
    return (one for one in told if not one.cable or _pair(one) not in gone or both[_pair(one)] == 2)


def _pair(one: Raw) -> tuple[str, str, str]:
    return one.rule.code, one.cable, one.hit.setting


class _Explained:
    """What hits with `explains` cover: their port, their node, or all ports with their wishes."""

    def __init__(self, raw: Iterable[Raw], judged: Judged) -> None:
        self._judged = judged
        self._by_place: dict[tuple[str, str], list[Raw]] = {}
        self._by_wishes: dict[int, list[Raw]] = {}
        for one in raw:
            if not one.hit.explains:
                continue
            if one.place.node:
                self._by_place.setdefault((one.place.node, one.place.port), []).append(one)
            elif one.wishes:
                self._by_wishes.setdefault(one.wishes, []).append(one)

    def covers(self, one: Raw) -> bool:
        """True when a hit of another rule explains this one, which is not more severe."""
        if not self._by_place and not self._by_wishes:
            return False
        node, port = one.place.node, one.place.port
        near = [*self._by_place.get((node, port), ()), *(self._by_place.get((node, ""), ()) if port else ())]
        near += self._of_wishes(node, port)
        return any(
            other is not one
            and other.rule is not one.rule
            and matches(one.hit.setting, other.hit.explains)
            and other.severity >= one.severity
            for other in near
        )

    def _of_wishes(self, node: str, port: str) -> Iterator[Raw]:
        view = self._judged.views.get(node)
        if view is None or not self._by_wishes:
            return
        wishes = [view.port_wishes[port]] if port in view.port_wishes else view.port_wishes.values()
        for key in {id(one) for one in wishes}:
            yield from self._by_wishes.get(key, ())
