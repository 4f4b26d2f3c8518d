"""Step 6: do packets as large as RDMA needs arrive, and where do they not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rdma_fabric.findings import Finding, Place
from rdma_fabric.health.pairs import Path, addresses
from rdma_fabric.health.types import Gaps, Judgement, Scene, finding, in_service
from rdma_fabric.inventory.types import End
from rdma_fabric.vitals import Ping, Pong

SHOWN: Final = 4
"""Paths that a finding names."""


@dataclass(frozen=True, slots=True)
class Test:
    """One ping of one path."""

    path: Path
    ping: Ping


def tests(scene: Scene, chosen: Iterable[Path], gaps: Gaps) -> tuple[Test, ...]:
    """IPv4 and IPv6 where both ends have an address of it; as large as the needier end wants."""
    found: list[Test] = []
    for path in chosen:
        views = [scene.judged.ports[end.node][end.port] for end in (path.a, path.b)]
        size = max(view.need_mtu for view in views)
        marking = views[0].wanted.marking
        tos = next(
            (value for value in (marking.traffic_class, marking.rdma_cm_tos) if isinstance(value, int)), 0
        )
        both = {":" in one for one in addresses(scene, path.a)}
        there = [one for one in addresses(scene, path.b) if (":" in one) in both]
        found += [Test(path, Ping(path.a.port, address, size, tos & 0xFC)) for address in there]
        if not there:
            gaps.add("path", "its ends have no address of one IP version", _place(path.a), _place(path.b))
    return tuple(found)


def _place(end: End) -> Place:
    return Place(end.node, end.port)


def judge(scene: Scene, results: Mapping[Test, Pong], gaps: Gaps) -> Judgement:
    """Blames the end that fails with everybody, else the way between two leaves."""
    done = {test: pong for test, pong in results.items() if not pong.trouble}
    for test, pong in results.items():
        if pong.trouble:
            gaps.add("path", pong.trouble, _place(test.path.a))
    findings: list[Finding] = []
    for name in ("path-mtu-low", "path-silent"):
        low = name == "path-mtu-low"
        bad = [test for test, pong in done.items() if not pong.large and pong.small == low]
        well = [test.path for test, pong in done.items() if pong.large or (pong.small and not low)]
        good = {end for path in well for end in (path.a, path.b)}
        findings += _Blame(scene, name, done, good).findings(bad)
    return Judgement("paths", len({test.path for test in done}), tuple(findings), gaps.rows())


@dataclass
class _Blame:
    scene: Scene
    name: str
    results: Mapping[Test, Pong]
    good: set[End]
    """Ends that some path works for."""

    def findings(self, bad: Iterable[Test]) -> Iterator[Finding]:
        rows: dict[tuple[Place, ...], list[Test]] = {}
        for test in bad:
            rows.setdefault(self._places(test), []).append(test)
        for places, tests in self._whole_leaves(rows).items():
            yield self._finding(places, tests)

    def _places(self, test: Test) -> tuple[Place, ...]:
        ends = (test.path.a, test.path.b)
        limit = self.results[test].mtu
        told = [end for end in ends if limit and self._own_mtu(end) == limit]
        if told:
            return (_place(told[0]),)
        low = [end for end in ends if 0 < self._own_mtu(end) < test.ping.size]
        suspects = low or [end for end in ends if end not in self.good]
        if suspects:
            return tuple(map(_place, suspects))
        leaves = tuple(dict.fromkeys(leaf for leaf in test.path.leaves if leaf))
        return tuple(map(Place, leaves)) or tuple(map(_place, ends))

    def _own_mtu(self, end: End) -> int:
        found = self.scene.judged.ports[end.node][end.port].state.mtu.ip
        return found if isinstance(found, int) else 0

    def _whole_leaves(self, rows: dict[tuple[Place, ...], list[Test]]) -> dict[tuple[Place, ...], list[Test]]:
        """Where no host port of a leaf works and there are several, the leaf is the cause."""
        hosts: dict[str, set[Place]] = {}
        for test in self.results:
            for end, leaf in zip((test.path.a, test.path.b), test.path.leaves, strict=True):
                hosts.setdefault(leaf, set()).add(_place(end))
        guilty = {place for places in rows for place in places}
        lost = {leaf for leaf, ports in hosts.items() if leaf and len(ports) > 1 and ports <= guilty}
        found: dict[tuple[Place, ...], list[Test]] = {}
        for places, tests in rows.items():
            named = [next((Place(leaf) for leaf in lost if one in hosts[leaf]), one) for one in places]
            found.setdefault(tuple(dict.fromkeys(named)), []).extend(tests)
        return found

    def _finding(self, places: tuple[Place, ...], tests: list[Test]) -> Finding:
        first = tests[0]
        shown = [f"{test.path.a} -> {test.path.b} ({test.ping.address})" for test in tests[:SHOWN]]
        more = f"; {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
        told = sorted({self.results[test].mtu for test in tests} - {0})
        low = self.name == "path-mtu-low"
        where = " and ".join(map(str, places))
        end = End(places[0].node, places[0].port)
        large = f"an answer to {first.ping.size} bytes that nobody may split (rdma.mtu)"
        return finding(
            self.name,
            places,
            f"{where}: packets of {first.ping.size} bytes are lost, small ones are not"
            if low
            else f"{where}: no answer to a small ping",
            found="; ".join(shown) + more + (f"; told: MTU {told[0]}" if told else ""),
            wanted=large if low else "an answer",
            help="compare the MTU of every hop (`fabric check --live`): ports, SVIs, tunnels, QoS classes"
            if low
            else "see whether ICMP is filtered, and the routes of both hosts",
            peer=self.scene.peer(end) if end.port else "",
            position=self.scene.where(end),
            active=all(in_service(self.scene.inventory.nodes[one.node].spec.state) for one in places),
        )
