"""Step 1: what grew between two reads, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rdma_fabric.checker.scopes import PortView
from rdma_fabric.findings import Finding, Place, Severity
from rdma_fabric.health.types import Gaps, Judgement, Metric, Scene, finding, in_service
from rdma_fabric.inventory.types import End
from rdma_fabric.vitals import ETHERNET, INFINIBAND, Count, Kind

_CLEARED: Final = "smaller than before: cleared, or the device restarted, between the reads"
_SOUND: Final = ("pause-rx", "pause-tx", "marks", "waits", "retries", "discards")
"""Kinds that grow in a sound fabric too: their rates are kept in the baseline."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One counter that grew."""

    count: Count
    by: int
    per_s: float
    priority: int
    """The PFC priority that it is about; -1 where nobody can say."""

    @property
    def text(self) -> str:
        """ "rx_crc_errors_phy +5 (0.5/s)"."""
        return f"{self.count.name} +{self.by} ({rate(self.per_s)})"


def rate(per_s: float) -> str:
    """ "12/s", "0.5/s"."""
    return f"{per_s:.0f}/s" if per_s >= 10 else f"{per_s:.2g}/s"


@dataclass
class _Port:
    """What one port says."""

    end: End
    view: PortView
    grown: list[Growth] = field(default_factory=list)
    lossless: frozenset[int] = frozenset()

    def of(self, *kinds: Kind) -> list[Growth]:
        return [one for one in self.grown if one.count.kind in kinds]


def judge(scene: Scene, pause_mark: int | None) -> Judgement:
    """Counters of all ports in a network that were read twice."""
    gaps = Gaps("counters")
    ports = {port.end: port for port in _ports(scene, gaps)}
    findings: list[Finding] = []
    for port in ports.values():
        findings += _Judge(scene, port, ports, pause_mark).findings()
    metrics = {
        f"{port.end} {kind}": Metric(grown, "/s", places=(Place(port.end.node, port.end.port),))
        for port in ports.values()
        for kind in _SOUND
        if (grown := sum(one.per_s for one in port.of(kind)))
    }
    return Judgement("counters", len(ports), tuple(findings), gaps.rows(), metrics)


def _ports(scene: Scene, gaps: Gaps) -> Iterator[_Port]:
    for name in scene.names:
        if name not in scene.first or name not in scene.second:
            continue
        first, second = scene.first[name], scene.second[name]
        before = {_key(one): one.value for one in first.vitals.counts}
        counts: dict[str, list[Count]] = {}
        for one in second.vitals.counts:
            counts.setdefault(one.port, []).append(one)
        for port, view in scene.judged.ports[name].items():
            if view.hw.kind == "physical":
                made = _Port(End(name, port), view, lossless=_lossless(view))
                _grow(made, counts.get(port, ()), before, second.at - first.at, gaps)
                if counts.get(port):
                    yield made


def _key(one: Count) -> tuple[object, ...]:
    return one.port, one.kind, one.name, one.priority, one.queue


def _lossless(view: PortView) -> frozenset[int]:
    return frozenset(one.priority for one in view.wishes.classes.values() if one.lossless)


def _grow(
    port: _Port, counts: Iterable[Count], before: Mapping[tuple[object, ...], int], seconds: float, gaps: Gaps
) -> None:
    place = Place(port.end.node, port.end.port)
    shown: set[str] = set()
    for one in counts:
        shown.add(one.kind)
        was = before.get(_key(one))
        if was is None:
            gaps.add(one.name, "shown by the second read only", place)
        elif one.value < was:
            gaps.add(one.name, _CLEARED, place)
        elif one.ceiling and one.value >= one.ceiling:
            gaps.add(one.name, f"full at {one.ceiling}: it counts again once somebody clears it", place)
        elif one.value > was:
            by = one.value - was
            port.grown.append(Growth(one, by, by / max(seconds, 0.001), _priority(one, port.view)))
    kinds = INFINIBAND if port.view.wishes.rdma.transport == "infiniband" else ETHERNET
    for kind in kinds:
        if kind not in shown and not (kind in ("crc", "symbol") and "errors" in shown):
            gaps.add(kind, "the device shows no such counter", place)


def _priority(one: Count, view: PortView) -> int:
    """A queue's counter belongs to the priority that it serves; where several do, to a lossless one first."""
    if one.priority >= 0 or one.queue < 0:
        return one.priority
    classes = view.state.qos.classes
    served = [
        priority
        for priority, state in enumerate(classes)
        if (state.queue if isinstance(state.queue, int) else priority) == one.queue
    ]
    lossless = _lossless(view)
    return next((priority for priority in served if priority in lossless), served[0] if served else -1)


@dataclass
class _Judge:
    scene: Scene
    port: _Port
    ports: Mapping[End, _Port]
    pause_mark: int | None

    def findings(self) -> Iterator[Finding]:
        """Worst first."""
        yield from self._errors()
        yield from self._drops()
        yield from self._storms()
        yield from self._simple(
            "link-flapped",
            ("down",),
            "the link went down",
            "look at both ends' logs, the cable, its plugs",
        )
        yield from self._pause()
        yield from self._discards()
        yield from self._simple(
            "retries-grow",
            ("retries",),
            "RDMA packets were lost or came out of order",
            "look for drops on their way; with adaptive routing out-of-order packets are normal",
        )
        yield from self._congestion()

    def _one(
        self,
        name: str,
        grown: list[Growth],
        what: str,
        help: str,
        *,
        wanted: str = "no growth",
        severity: Severity | None = None,
        reason: str = "",
    ) -> Finding:
        end = self.port.end
        return finding(
            name,
            [Place(end.node, end.port)],
            f"{end}: {what}",
            found="; ".join(one.text for one in grown),
            wanted=wanted,
            help=help,
            peer=self.scene.peer(end),
            reason=reason,
            setting=", ".join(dict.fromkeys(one.count.kind for one in grown)),
            position=self.scene.where(end),
            severity=severity,
            active=in_service(self.port.view.node_state),
        )

    def _simple(self, name: str, kinds: tuple[Kind, ...], what: str, help: str) -> Iterator[Finding]:
        if grown := self.port.of(*kinds):
            yield self._one(name, grown, what, help)

    def _errors(self) -> Iterator[Finding]:
        """The total stands for its parts only where these did not grow."""
        grown = self.port.of("crc", "symbol", "fec") or self.port.of("errors")
        if grown:
            help = "clean or replace the cable and transceivers; the sender is the other end"
            yield self._one("frame-errors", grown, "broken frames arrive", help)

    def _drops(self) -> Iterator[Finding]:
        lossless = [one for one in self.port.of("drops") if one.priority in self.port.lossless]
        if lossless:
            names = ", ".join(sorted({str(one.priority) for one in lossless}))
            yield self._one(
                "lossless-drops",
                lossless,
                f"packets of lossless priority {names} were dropped",
                "compare PFC, headroom and cable length of both ends: `fabric check --live`",
            )

    def _congestion(self) -> Iterator[Finding]:
        """What a fabric without fault does under load: marks, waits, drops in classes that may drop."""
        lossy = [
            one
            for one in self.port.of("drops")
            if one.priority >= 0 and one.priority not in self.port.lossless
        ]
        if grown := [*self.port.of("marks", "waits"), *lossy]:
            yield self._one("congestion", grown, "congestion", "none, unless it is steady")

    def _storms(self) -> Iterator[Finding]:
        if grown := self.port.of("storms"):
            help = "find who pauses: the other end, or what is behind it"
            yield self._one("pause-storm", grown, "the PFC watchdog found a stopped queue", help)

    def _pause(self) -> Iterator[Finding]:
        """Pause that a port sends says that it is full; what it receives is told where nobody sends it."""
        sent = self.port.of("pause-tx")
        far = self.scene.cables.get(self.port.end)
        sender = self.ports.get(far[0]) if far else None
        received = [] if sender and sender.of("pause-tx") else self.port.of("pause-rx")
        for grown, what in ((sent, "sends PFC pause"), (received, "is paused by the other end")):
            if grown:
                too_much = self.pause_mark is not None and any(one.per_s >= self.pause_mark for one in grown)
                help = (
                    "look at what is behind this port: a slow receiver, or a link narrower than planned"
                    if grown is sent
                    else "look at the other end and at what is behind it"
                )
                yield self._one(
                    "pause-grows",
                    grown,
                    what,
                    help,
                    wanted="no growth" if self.pause_mark is None else f"below {self.pause_mark}/s",
                    severity=Severity.ERROR if too_much else None,
                )

    def _discards(self) -> Iterator[Finding]:
        """What classes dropped is in the port's number, too; an InfiniBand port may not discard at all.

        The two are read one after the other, so that they may differ while they grow: only more than twice
        as many says that something else was discarded.
        """
        drops = self.port.of("drops")
        grown = [*self.port.of("discards"), *(one for one in drops if one.priority < 0)]
        told = sum(one.by for one in drops if one.priority >= 0)
        if sum(one.by for one in grown) > 2 * told:
            strict = self.port.view.wishes.rdma.transport == "infiniband"
            yield self._one(
                "discards-grow",
                grown,
                "packets are discarded",
                "see which class they are of; in a class without PFC bursts may cost packets",
                severity=Severity.ERROR if strict else None,
            )
