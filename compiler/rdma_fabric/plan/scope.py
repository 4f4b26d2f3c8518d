"""Which nodes a plan is about, and what each is to become."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rdma_fabric import platforms
from rdma_fabric.checker import Judged, Report
from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware
from rdma_fabric.plan.applied import Left, left, tidy
from rdma_fabric.plan.changes import PlanRow, Target
from rdma_fabric.state import NodeState

SKIPPED_STATES = frozenset({"maintenance", "retired"})


@dataclass(frozen=True, slots=True)
class Scope:
    """Nodes to push with their targets, rows that are decided already, and settings left behind."""

    targets: Mapping[str, Target]
    fixed: tuple[PlanRow, ...]
    left: tuple[Left, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Nodes that must be observed."""
        return tuple(self.targets)


@dataclass
class _Scoper:
    """Equal nodes with one record share one target. Keys are identities of objects that the caller holds."""

    targets: dict[Any, Target] = field(default_factory=dict)
    behind: dict[Any, tuple[Left, ...]] = field(default_factory=dict)

    def target(self, wanted: NodeState, hw: Hardware, applied: NodeState | None) -> Target:
        key = (id(wanted), id(hw), id(applied))
        if key not in self.targets:
            tidied = tidy(wanted, applied)
            state = wanted if tidied is wanted else platforms.realize(tidied, hw).state
            self.targets[key] = Target(state, hw)
        return self.targets[key]

    def left(self, name: str, wanted: NodeState, applied: NodeState | None) -> Iterator[Left]:
        key = (id(wanted), id(applied))
        if key not in self.behind:
            self.behind[key] = left(name, wanted, applied)
        return (replace(one, node=name) for one in self.behind[key])


def make_scope(
    judged: Judged,
    report: Report,
    names: Iterable[str],
    *,
    include: Collection[str] = (),
    applied: Mapping[str, NodeState] | None = None,
) -> Scope:
    """Rejected nodes and those in maintenance or retired (unless included) get their rows here."""
    applied = applied or {}
    scoper = _Scoper()
    targets: dict[str, Target] = {}
    fixed: list[PlanRow] = []
    behind: list[Left] = []
    why = _reasons(report)
    for name in names:
        state = judged.inventory.nodes[name].spec.state
        view = judged.views[name]
        if state in SKIPPED_STATES and state not in include:
            fixed.append(PlanRow(name, "skipped", f"is in state {state}; --include {state} takes it along"))
        elif name in report.rejected:
            fixed.append(PlanRow(name, "rejected", why.get(name, "the intent has errors")))
        else:
            targets[name] = scoper.target(view.wanted, view.hw, applied.get(name))
            behind.extend(scoper.left(name, targets[name].wanted, applied.get(name)))
    return Scope(targets, tuple(fixed), tuple(behind))


def _reasons(report: Report) -> dict[str, str]:
    """Node -> its first error."""
    found: dict[str, str] = {}
    for one in report.findings:
        if one.severity is Severity.ERROR and not one.waived:
            for place in one.places:
                if place.node:
                    found.setdefault(place.node, f"{one.code} {one.name}: {one.message}")
    return found
