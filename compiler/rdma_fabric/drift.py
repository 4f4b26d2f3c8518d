"""Observed against wanted, layer by layer: what drifted, what would not survive a reboot, what is unknown."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rdma_fabric.checker.fabric import rdma_mtu_in
from rdma_fabric.inventory.types import Inventory
from rdma_fabric.plan.changes import Target
from rdma_fabric.settings import Deviation, deviations
from rdma_fabric.state import NodeState, Observation, differences, waiting

Layer = Literal["running", "stored", "pending"]
Word = Literal["clean", "drift", "unknown", "stale", "note", "busy", "skipped"]
"""State of a node. stale: not read by the last try; busy: in the scope of a run that is going on; note:
not as wanted, but not in state active."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One setting of one node that is not as wanted.

    layer running: works wrongly now; stored: works rightly now but a reboot brings back `found`;
    pending: works wrongly now, is written, and waits for a reset of its device.
    """

    layer: Layer
    deviation: Deviation


@dataclass(frozen=True, slots=True)
class NodeDrift:
    """One node: its drifts, notes of the observation, or why it could not be read."""

    node: str
    state: str
    """Node state: drift outside active is a note."""
    drifts: tuple[Drift, ...] = ()
    unknown: tuple[Deviation, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""
    skipped: str = ""
    busy: str = ""
    """In the scope of a run that is going on: what it has now is on its way, and says nothing."""
    effects: tuple[str, ...] = ()
    """What follows from the drifts and is no setting of its own."""

    @property
    def counts(self) -> bool:
        """True when this node makes the fabric not clean; outside state active everything is a note."""
        if self.skipped or self.busy or self.state != "active":
            return False
        return bool(self.failure or self.unknown or self.drifts)

    @property
    def word(self) -> Word:
        """The node in one word."""
        if self.busy:
            return "busy"
        if self.skipped:
            return "skipped"
        if self.failure:
            return "stale"
        if not self.counts:
            return "note" if self.drifts or self.unknown else "clean"
        return "drift" if self.drifts else "unknown"


def find_drift(
    inventory: Inventory,
    targets: Mapping[str, Target],
    observations: Mapping[str, Observation],
    failures: Mapping[str, str],
    skipped: Mapping[str, str],
    busy: Mapping[str, str] | None = None,
) -> tuple[NodeDrift, ...]:
    """One entry per node of the scope, in inventory order. `busy`: node -> what is going on there."""
    cache: dict[Any, tuple[tuple[Drift, ...], tuple[Deviation, ...]]] = {}
    rows = []
    for name, node in inventory.nodes.items():
        life = node.spec.state
        if name in skipped:
            rows.append(NodeDrift(name, life, skipped=skipped[name]))
        elif busy and name in busy and name in targets:
            rows.append(NodeDrift(name, life, busy=busy[name]))
        elif name in failures:
            rows.append(NodeDrift(name, life, failure=failures[name]))
        elif name in targets:
            seen = observations[name]
            key = (id(targets[name]), seen.running, seen.stored, seen.pending)
            if key not in cache:
                cache[key] = _compare(targets[name].wanted, seen)
            found, unknown = cache[key]
            effects = tuple(_effects(targets[name].wanted, seen.running))
            rows.append(NodeDrift(name, life, found, unknown, seen.notes, effects=effects))
    return tuple(rows)


def _effects(wanted: NodeState, seen: NodeState) -> Iterator[str]:
    """What a netdev MTU that drifted does to the RDMA MTU, as the device tells it."""
    have = {port.name: port.settings for port in seen.ports}
    for port in wanted.ports:
        if port.name not in have:
            continue
        wish, now, used = port.settings.mtu.ip, have[port.name].mtu.ip, have[port.name].nic.rdma_mtu
        if isinstance(wish, int) and isinstance(used, int) and now != wish and used < rdma_mtu_in(wish):
            what = f"RDMA MTU {used} instead of {rdma_mtu_in(wish)}"
            yield f"{port.name}: {what}, because the netdev MTU is {now}"


def _compare(wanted: NodeState, seen: Observation) -> tuple[tuple[Drift, ...], tuple[Deviation, ...]]:
    now = deviations(differences(wanted, seen.running), wanted, seen.running)
    written = waiting(wanted, seen)
    drifts = [
        Drift("pending" if written.issuperset(one.paths) else "running", one)
        for one in now
        if not one.unknown
    ]
    live = {(one.port, one.key) for one in now}
    drifts.extend(Drift("stored", one) for one in lost(wanted, seen, live))
    return tuple(drifts), tuple(one for one in now if one.unknown)


def lost(wanted: NodeState, seen: Observation, live: Container[tuple[str, str]]) -> tuple[Deviation, ...]:
    """What works as wanted and comes back from a reboot as something else. `live`: all other (port, key)."""
    if seen.stored is None:
        return ()
    later = deviations(differences(wanted, seen.stored), wanted, seen.stored)
    return tuple(one for one in later if not one.unknown and (one.port, one.key) not in live)


def clean(rows: Iterable[NodeDrift]) -> bool:
    """True when no node drifted and every node was read."""
    return not any(row.counts for row in rows)
