"""One plan: for every node in scope its change or the reason why there is none, and the waves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rdma_fabric import platforms
from rdma_fabric.hardware import Hardware
from rdma_fabric.inventory.ranges import collapse
from rdma_fabric.inventory.types import Inventory
from rdma_fabric.plan.disturb import Budget, Harm
from rdma_fabric.plan.marks import hold_marks, moves, refuse_moves, unwatched
from rdma_fabric.plan.waves import Direction, arrange, direction
from rdma_fabric.platforms._contract import Change, Disturbance
from rdma_fabric.settings import Deviation, deviations
from rdma_fabric.state import Difference, NodeState, Observation, waiting

Status = Literal[
    "change",
    "unchanged",
    "pending-reset",
    "rejected",
    "refused",
    "unknown",
    "unreachable",
    "skipped",
    "not-planned",
]
"""refused: disturbs more than allowed, holds unverified lines, or the account may not write; unknown: could
not be read well enough; pending-reset: all is written, and something of it counts only after a reset."""
ROOT = "root"
"""Fact "account" of a node that may be changed, where its platform tells the account at all."""


AFTER_RESET = "some values take effect after a reset"


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One node of the scope."""

    node: str
    status: Status
    reason: str = ""
    change: Change | None = None
    deviations: tuple[Deviation, ...] = ()
    direction: Direction = "neutral"
    felt_by: tuple[str, ...] = ()
    wave: int = 0
    """From 1; 0 for nodes that are not pushed."""
    channel: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a push would do. `inputs`: digest of all input files; `seen`: digest of each node's state."""

    inputs: str
    seen: Mapping[str, str]
    rows: tuple[PlanRow, ...]
    waves: tuple[tuple[str, ...], ...]
    _by_node: Mapping[str, PlanRow] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_node", {row.node: row for row in self.rows})

    def row(self, node: str) -> PlanRow | None:
        """The node's row."""
        return self._by_node.get(node)

    @property
    def empty(self) -> bool:
        """True when no node would be written."""
        return not self.waves


@dataclass(frozen=True, slots=True)
class Target:
    """What one node is to become: a realized (or recorded) state and its hardware."""

    wanted: NodeState
    hardware: Hardware


Ask = Callable[[tuple[str, ...]], tuple[Mapping[str, Target], Mapping[str, Observation]]]
"""Reads nodes: what each is to become, and what was seen of those that answered."""


@dataclass
class _Planner:
    inventory: Inventory
    budget: Budget
    accept_unverified: bool
    shared: dict[Any, tuple[Change, tuple[Deviation, ...]]] = field(default_factory=dict)
    harm: Harm = field(init=False)

    def __post_init__(self) -> None:
        self.harm = Harm(self.inventory, self.budget)

    def row(self, name: str, seen: Observation, target: Target) -> PlanRow:
        change, found = self._change(seen, target)
        channel = platforms.platform(target.hardware.base).channel
        felt = self.harm.felt_by(name, change)
        values: dict[str, Any] = {
            "change": change,
            "deviations": found,
            "direction": direction(change.differences),
            "felt_by": felt,
            "channel": channel,
        }
        if change.empty:
            if change.blocked:
                return PlanRow(name, "unknown", _blocked(change, seen), **values)
            if waiting(target.wanted, seen):
                return PlanRow(name, "pending-reset", AFTER_RESET, **values)
            return PlanRow(name, "unchanged", **values)
        account = dict(seen.facts).get("account", ROOT)
        if account != ROOT:
            return PlanRow(name, "refused", _no_right(account), **values)
        worst = self.harm.too_much(name, change)
        if worst is not None:
            return PlanRow(name, "refused", _disturbs(worst, felt, name), **values)
        if change.unverified and not self.accept_unverified:
            reason = (
                f"holds a line that no source confirms: {change.unverified[0]} (--accept-unverified sends it)"
            )
            return PlanRow(name, "refused", reason, **values)
        return PlanRow(name, "change", _blocked(change, seen) if change.blocked else "", **values)

    def _change(self, seen: Observation, target: Target) -> tuple[Change, tuple[Deviation, ...]]:
        """Equal observations of equal nodes share one change."""
        key = (
            seen.running,
            seen.stored,
            seen.pending,
            seen.evidence,
            seen.facts,
            id(target.wanted),
            id(target.hardware),
        )
        found = self.shared.get(key)
        if found is None:
            change = platforms.change(seen, target.wanted, target.hardware)
            change = platforms.with_local_check(change, seen, target.wanted, target.hardware)
            rows = tuple(map(_stored, deviations(_all(change), target.wanted, seen.running)))
            found = self.shared[key] = (change, rows)
        return found


def _no_right(account: str) -> str:
    return (
        f"{account} may read this host and not change it: it cannot become root (sudo -n); "
        "give it the right to, without a password, or log in as another account"
    )


def _all(change: Change) -> tuple[Difference, ...]:
    return (*change.differences, *change.blocked)


def _stored(one: Deviation) -> Deviation:
    """A setting that works as wanted now and is in the change all the same would not survive a reboot."""
    if one.found != one.wanted:
        return one
    # Unknown here is the stored value alone: what runs was read, and is as wanted.
    later = "unknown after a reboot" if one.unknown else "not stored"
    return replace(one, found=f"{one.found}, {later}")


def _blocked(change: Change, seen: Observation) -> str:
    parts = []
    told = dict(change.reasons)
    unread = sorted({one.path for one in change.blocked if one.path not in told})
    if unread:
        notes = f" ({seen.notes[0]})" if seen.notes and not told else ""
        parts.append(f"could not read {_some(unread)}{notes}")
    for reason in dict.fromkeys(told.values()):
        parts.append(f"{_some(sorted(path for path, why in told.items() if why == reason))}: {reason}")
    return f"{'; '.join(parts[:3])}; these are not written"


def _outside(planner: _Planner, names: tuple[str, ...], ask: Ask | None) -> dict[str, PlanRow]:
    """Rows of nodes that the run does not touch."""
    if ask is None or not names:
        return {}
    targets, seen = ask(names)
    return {
        name: planner.row(name, seen[name], targets[name])
        if name in seen and name in targets
        else PlanRow(name, "unreachable")
        for name in names
    }


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more


def _disturbs(worst: Disturbance, felt: tuple[str, ...], node: str) -> str:
    ports = collapse([port for port in worst.ports if port]) or "the node"
    by = ", ".join(name for name in felt[:4] if name != node)
    at = f", felt by {by}" if by else ""
    drained = ",".join((node, *(name for name in felt if name != node))) if len(felt) < 8 else node
    return (
        f"{worst.what} ({ports}) is {worst.level} on a node with workload{at}; "
        f"drain it and say --assume-drained {drained}, or --allow {worst.level}"
    )


def make_plan(
    inventory: Inventory,
    targets: Mapping[str, Target],
    observations: Mapping[str, Observation],
    *,
    inputs: str,
    budget: Budget,
    fixed: Iterable[PlanRow] = (),
    accept_unverified: bool = False,
    held: bool = True,
    ask: Ask | None = None,
) -> Plan:
    """The plan for the nodes of `targets`; `fixed` are rows decided before (rejected, skipped ...).

    `held`: hosts keep their marks while a switch would not take new ones, and no DSCP changes its lossless
    priority under a workload. `ask` reads switches beyond the scope where that depends on them.
    """
    planner = _Planner(inventory, budget, accept_unverified)
    rows = {row.node: row for row in fixed}
    for name, target in targets.items():
        if name not in rows:
            rows[name] = planner.row(name, observations[name], target)
    if held:
        look = (lambda names: ask(names)[1]) if ask is not None else None
        rows = refuse_moves(rows, moves(rows, targets, observations, planner.harm, look))
        others = unwatched(rows, planner.harm) if ask is not None else ()
        rows = hold_marks(rows, planner.harm, _outside(planner, others, ask))
    ready = {name: row.direction for name, row in rows.items() if row.status == "change"}
    felt = {name: frozenset(rows[name].felt_by) for name in ready}
    turns = {name: one.turn for name in ready if (one := rows[name].change) is not None and one.turn[0]}
    waves = arrange(ready, inventory, felt, turns)
    numbers = {name: index for index, wave in enumerate(waves, 1) for name in wave}
    placed = tuple(replace(rows[name], wave=numbers.get(name, 0)) for name in inventory.nodes if name in rows)
    seen = {name: observations[name].evidence for name in targets if name in observations}
    return Plan(inputs, seen, placed, waves)
