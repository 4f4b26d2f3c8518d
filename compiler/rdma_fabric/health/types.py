"""What `verify` works on, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from rdma_fabric.checker import Judged
from rdma_fabric.findings import Finding, Place, Position, Severity, health_check
from rdma_fabric.inventory.types import End, Inventory, Link
from rdma_fabric.observe import Sign
from rdma_fabric.state import Observation

Step = Literal["counters", "config", "speed", "sm", "mtu", "paths", "perftest", "nccl"]
STEPS: Final[tuple[Step, ...]] = ("counters", "config", "speed", "sm", "mtu", "paths")
"""In the order in which experts look; the tests that load the fabric run on request only."""
LOADS: Final[tuple[Step, ...]] = ("perftest", "nccl")
UNITS: Final[Mapping[Step, str]] = {
    "counters": "port",
    "config": "node",
    "speed": "cable",
    "sm": "subnet",
    "mtu": "port",
    "paths": "path",
    "perftest": "pair",
    "nccl": "run",
}
"""What a step counts."""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Something that a step had to judge and could not, for one reason at one or several places."""

    step: Step
    what: str
    why: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that is kept in the baseline."""

    value: float
    unit: str
    more_is_better: bool = False
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one step found: how many units it judged, and what it could not judge."""

    step: Step
    judged: int
    findings: tuple[Finding, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    skipped: str = ""
    """Why nothing of it was judged."""


@dataclass(frozen=True, slots=True)
class Health:
    """The whole verdict."""

    judgements: tuple[Judgement, ...]
    findings: tuple[Finding, ...]
    """Of all steps, waived where the intent says so; nodes that were not read among them."""
    nodes: int
    interval_s: float
    baseline: str = ""
    """When the baseline was saved that this was compared with."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The fabric, what was read of it, and which nodes are asked about."""

    judged: Judged
    """Built with the observations."""
    names: tuple[str, ...]
    first: Mapping[str, Sign]
    second: Mapping[str, Sign]
    cables: Mapping[End, tuple[End, Link]]

    @property
    def inventory(self) -> Inventory:
        """Nodes and cables."""
        return self.judged.inventory

    @property
    def observations(self) -> Mapping[str, Observation]:
        """What was read, by node."""
        return self.judged.observations

    def where(self, end: End) -> Position | None:
        """The line of the cable in the port, else of the port, else of the node."""
        found = self.cables.get(end)
        if found is not None and found[1].position is not None:
            return found[1].position
        node = self.inventory.nodes[end.node]
        port = node.spec.ports.get(end.port)
        return (port.position if port else None) or node.position

    def peer(self, end: End) -> str:
        """ "cabled to leaf01 Ethernet1/1"; "" where the plan has no cable."""
        found = self.cables.get(end)
        return f"cabled to {found[0]}" if found else ""


def in_service(state: str) -> bool:
    """Node states that count: a planned node is verified before it takes work."""
    return state in ("active", "planned")


def finding(
    name: str,
    places: Iterable[Place],
    message: str,
    *,
    found: str,
    wanted: str,
    help: str,
    setting: str = "",
    peer: str = "",
    reason: str = "",
    position: Position | None = None,
    severity: Severity | None = None,
    active: bool = True,
) -> Finding:
    """A finding of the check of that name; a node that is not `active` here yields a note."""
    check = health_check(name)
    assert check is not None
    level = check.severity if severity is None else severity
    where = tuple(places)
    return Finding(
        code=check.code,
        name=check.name,
        severity=level if active else Severity.NOTE,
        places=where,
        setting=setting or check.step,
        found=found,
        wanted=wanted,
        peer=peer,
        position=position,
        help=help,
        message=message,
        reason=reason,
        count=len(where),
    )


class Gaps:
    """Collects what could not be judged: one row per reason."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._rows: dict[tuple[str, str], dict[Place, None]] = {}

    def add(self, what: str, why: str, *places: Place) -> None:
        """One thing at some places."""
        self._rows.setdefault((what, why), {}).update(dict.fromkeys(places))

    def rows(self) -> tuple[Unjudged, ...]:
        """In the order in which the reasons came up."""
        return tuple(
            Unjudged(self._step, what, why, tuple(places)) for (what, why), places in self._rows.items()
        )
