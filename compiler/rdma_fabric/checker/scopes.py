"""What rules see and say. The engine calls a rule once per distinct input and adds the places.

A rule returns `Hit`s. It may raise `NotJudged` (through `known`) when a value is absent: the engine
records "not judged" and goes on. Rules never walk the fabric and never know a node's name, except those
of scope `FabricRule`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rdma_fabric.findings import Place, Position, Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.intent.models import Waiver, Wishes
from rdma_fabric.layers import Merged
from rdma_fabric.platforms._contract import Fault
from rdma_fabric.state import Buffer, NodeState, PortSettings

if TYPE_CHECKING:
    from rdma_fabric.checker.fabric import Judged


@dataclass(frozen=True, slots=True)
class Hit:
    """One breach, without places.

    `message`, `help` and `wanted` may hold `{where}` (the place) and `{peer}` (the other end). `setting` is
    a setting key (settings.Group.key) or free text for things that are no port setting.
    """

    setting: str
    found: str
    wanted: str
    message: str
    help: str = ""
    reason: str = ""
    end: Literal["a", "b", "both", ""] = ""
    """Link rules: the end that is wrong; "both": `found` tells of both ends; "" (with `found` what end a has
    and `wanted` what end b has): the engine blames."""
    severity: Severity | None = None
    """None: the rule's own."""
    rank: int = 0
    """Of several hits on one setting of one port the highest rank is told: one cause is one finding."""
    path: tuple[str | int, ...] = ()
    """Intent rules: where in the intent."""
    position: Position | None = None
    places: tuple[Place, ...] = ()
    """Fabric rules: where."""
    explains: tuple[str, ...] = ()
    """Setting keys (also with stars) whose findings at the same port, node or wishes follow from this."""


@dataclass(frozen=True, slots=True, eq=False)
class IntentView:
    """One distinct set of merged wishes (the fabric's, a network's, an override's result)."""

    wishes: Wishes
    speeds_gbps: tuple[int, ...]
    """Speeds of the switch ports that these wishes reach, sorted."""


@dataclass(frozen=True, slots=True, eq=False)
class PortView:
    """One distinct port: what it has (`state`), what it should have (`wanted`), and its facts."""

    state: PortSettings
    assumed: PortSettings
    """`state`, with the platform's default where intent and observation say nothing."""
    wanted: PortSettings
    wishes: Wishes
    hw: PortHardware
    base: str
    """Platform key, for wording only."""
    is_host: bool
    network: str
    observed: bool
    speed_gbps: object
    """Negotiated speed where observed (int or an absence), else the planned one."""
    need_mtu: int
    """IP MTU in bytes that the RDMA MTU of the intent needs on this port's NIC or on any hop."""
    rdma_mtu: int
    node_state: str = "active"
    by_default: frozenset[str] = frozenset()
    """Setting keys whose value in `assumed` is the platform's default."""


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """The cable between two ports."""

    length_m: float | None
    a_speed_gbps: int
    b_speed_gbps: int


@dataclass(frozen=True, slots=True, eq=False)
class NodeView:
    """One distinct node: state, realized wish, hardware, platform faults."""

    state: NodeState
    wanted: NodeState
    hw: Hardware
    wishes: Wishes
    port_wishes: Mapping[str, Wishes]
    faults: tuple[Fault, ...]
    observed: bool
    is_host: bool
    asked: NodeState
    """The wish before `realize`."""
    networks: Mapping[str, str]
    """Port -> its network."""
    need_mtu: Mapping[str, int]
    """Port -> IP MTU in bytes that its RDMA MTU needs."""
    stored: NodeState | None = None
    """What a reboot brings back, where it was observed."""
    waiting: frozenset[str] = frozenset()
    """Paths of settings that are written and wait for a reset."""
    notes: tuple[str, ...] = ()
    """What the observation says beyond the settings."""
    buffers: tuple[Buffer, ...] = ()
    """Pause and resume points as observed."""
    node_state: str = "active"


@dataclass(frozen=True, slots=True, eq=False)
class NetworkView:
    """All distinct ports of one network with their number."""

    name: str
    ports: tuple[tuple[PortView, int], ...]
    sends: int = 0
    """Largest IP MTU of a host port that is not above its wish and that its own cable carries; 0 without."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Common to all rules; `doc` is the module's docstring."""

    code: str
    name: str
    severity: Severity
    since: str
    family: str
    plan: bool = field(default=False, kw_only=True)
    """True: judges what is planned, so that a node which is not active yet is judged as severely."""


@dataclass(frozen=True, slots=True)
class IntentRule(Rule):
    """Judges merged wishes."""

    check: Callable[[IntentView], Iterable[Hit]]
    transports: tuple[str, ...] = field(default=("rocev2",), kw_only=True)
    """Wishes of networks with another transport inherit settings that mean nothing there."""


@dataclass(frozen=True, slots=True)
class NodeRule(Rule):
    """Judges one node."""

    check: Callable[[NodeView], Iterable[Hit]]
    ports: bool = False
    """True: a hit's `setting` is "PORT|key" and belongs to that port."""


@dataclass(frozen=True, slots=True)
class PortRule(Rule):
    """Judges one port."""

    check: Callable[[PortView], Iterable[Hit]]


@dataclass(frozen=True, slots=True)
class LinkRule(Rule):
    """Judges the two ends of a cable; called in one order only."""

    check: Callable[[PortView, PortView, LinkFacts], Iterable[Hit]]


@dataclass(frozen=True, slots=True)
class PathRule(Rule):
    """Judges a walk host -> leaf (in, out) -> next switch (in): the ports passed, in order.

    `end` of a hit is not used; the hop is given by `hop`, an index into the path.
    """

    check: Callable[[tuple[PortView, ...]], Iterable[tuple[int, Hit]]]


@dataclass(frozen=True, slots=True)
class NetworkRule(Rule):
    """Judges all ports of a network together; a hit is given with the port view that it concerns."""

    check: Callable[[NetworkView], Iterable[tuple[PortView, Hit]]]


@dataclass(frozen=True, slots=True)
class FabricRule(Rule):
    """Judges the whole: nodes, cables, addresses. Hits carry their places and positions."""

    check: Callable[[Judged], Iterable[Hit]]


@dataclass(frozen=True, slots=True)
class WaiverView:
    """One waiver: whether its rule exists (`near`: the closest name), has expired, and how much it covers."""

    waiver: Waiver
    exists: bool
    near: str
    expired: bool
    covered: int
    others: tuple[str, ...] = ()
    """Settings of the rule's findings at its place that its own `setting` leaves out."""


@dataclass(frozen=True, slots=True)
class WaiverRule(Rule):
    """Judges one waiver after all other rules."""

    check: Callable[[WaiverView], Iterable[Hit]]


AnyRule = IntentRule | NodeRule | PortRule | LinkRule | PathRule | NetworkRule | FabricRule | WaiverRule


@dataclass(slots=True)
class Origin:
    """Where the wishes of an `IntentView` come from, for positions and places."""

    merged: Merged
    networks: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
