"""What a change may disturb: the budget, nodes without workload, and what a change does to its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rdma_fabric.inventory.types import End, Inventory
from rdma_fabric.platforms._contract import Change, Disturbance, Disturbs

IDLE_STATES = frozenset({"planned", "maintenance", "retired"})
"""Node states in which a node carries no workload."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be disturbed: `allow` on any node, everything on nodes that are `drained`."""

    allow: Disturbs = Disturbs.NOTHING
    drained: frozenset[str] = frozenset()


@dataclass(slots=True)
class Harm:
    """Answers who would be disturbed by a change of a node, and whether the budget covers it."""

    inventory: Inventory
    budget: Budget
    peers: Mapping[End, End] = field(init=False)

    def __post_init__(self) -> None:
        self.peers = {end: other for end, (other, _) in self.inventory.peers().items()}

    def idle(self, node: str) -> bool:
        """True when the node carries no workload: by its state, or said to be drained."""
        return node in self.budget.drained or self.inventory.nodes[node].spec.state in IDLE_STATES

    def too_much(self, node: str, change: Change) -> Disturbance | None:
        """The worst disturbance of the change or its undo that nobody allowed; None when there is none."""
        open_ = [one for one in self._all(change) if one.level > self.budget.allow and self._felt(node, one)]
        return max(open_, key=lambda one: one.level, default=None)

    def felt_by(self, node: str, change: Change) -> tuple[str, ...]:
        """Working nodes that would notice: the node itself, and what is cabled to its disturbed ports."""
        found: dict[str, None] = {}
        for one in self._all(change):
            for name in self._workers(node, one):
                found[name] = None
        return tuple(found)

    @staticmethod
    def _all(change: Change) -> tuple[Disturbance, ...]:
        return tuple(one for one in (*change.disturbs, *change.undo_disturbs) if one.level > Disturbs.NOTHING)

    def _felt(self, node: str, one: Disturbance) -> bool:
        return any(True for _ in self._workers(node, one))

    def _workers(self, node: str, one: Disturbance) -> Iterator[str]:
        """An idle node is free to disturb; so is a port of a working switch whose other end is idle.

        A switch that is disturbed as a whole is felt by everything cabled to it.
        """
        if self.idle(node):
            return
        spec = self.inventory.nodes[node]
        ports = [port for port in one.ports if port]
        if not ports or spec.is_host:
            yield node
        if spec.is_host:
            return
        for port in ports or spec.spec.ports:
            other = self.peers.get(End(node, port))
            if other is not None and not self.idle(other.node):
                yield other.node
            elif other is None and ports:
                yield node
