"""Profiles of ports: what each must say, and which name says it.

Settings of a port are written as profiles of that port, never as `default-global`, so that ports outside
of our networks keep what they have ("Configurations with a profile override the global settings", QoS
page, "Port Groups"). Profiles are named fabric-1, fabric-2, ... per kind; ports with equal settings share
one, and a change edits a profile in place where nobody else uses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rdma_fabric.hardware import Hardware, release
from rdma_fabric.platforms._cumulus_read import default_settings
from rdma_fabric.platforms._cumulus_switch import (
    DEFAULTS,
    LINK_PAUSE,
    PAUSE_ALL,
    POOLS,
    PROFILE,
    ROCE,
    WATCHED,
    Content,
    Live,
    Switch,
)
from rdma_fabric.platforms._cumulus_tree import (
    CONTROL,
    FACTORY,
    KINDS,
    OURS,
    Defaults,
    MapOf,
    PfcOf,
    defaults_of,
    natural,
    spread,
)
from rdma_fabric.platforms._shared import owned_ports, used_priorities
from rdma_fabric.state import (
    NOT_APPLICABLE,
    PRIORITIES,
    UNMANAGED,
    Absent,
    Amount,
    ClassState,
    Ecn,
    NodeState,
    PortSettings,
    QosState,
    Share,
    WatchdogTimers,
)

ALL_KINDS: Final = (*KINDS, LINK_PAUSE)
NO_PFC: Final = PfcOf()
MarksOf = tuple[tuple[int, Ecn | None], ...]
"""(traffic class, ramp; None = listed with marking off), ascending."""
SharesOf = tuple[Share | None, ...]
"""Index = traffic class; None = not listed: best effort."""

_FACTORY: Final = Content(FACTORY.mapping, FACTORY.pfc, FACTORY.marks, FACTORY.shares)
_TRUST: Final = {"pcp": "l2", "dscp": "l3", "both": "both", "port": "port"}


# ---------------------------------------------------------------- what is there


@dataclass(frozen=True, slots=True)
class Before:
    """What is there before the lines."""

    ports: Mapping[str, PortSettings]
    users: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Kind -> profile -> the ports that use it, also ports that are not ours."""
    mode: str = ""
    base: Defaults = FACTORY
    defaults: Content = _FACTORY
    """What `default-global` says."""
    pools: Mapping[str, int] = field(default_factory=dict)
    """Configured memory-percent by traffic pool."""
    watched: frozenset[str] = frozenset()
    """Ports whose watchdog is on and idle."""
    paused_by_all: bool = False
    release: tuple[int, ...] = ()


def before_of(state: NodeState, facts: Sequence[tuple[str, str]], hw: Hardware) -> Before:
    """What an observation says."""
    known = dict(facts)
    users: dict[str, dict[str, tuple[str, ...]]] = {kind: {} for kind in ALL_KINDS}
    for name, ports in facts:
        if name.startswith(f"{PROFILE} "):
            _, kind, profile = name.split(" ", 2)
            users.setdefault(kind, {})[profile] = spread(ports)
    mode = known.get(ROCE, "")
    base = defaults_of(mode) or FACTORY
    raw = json.loads(known.get(DEFAULTS, "{}"))
    tree = {"qos": {kind: {"default-global": value} for kind, value in raw.items()}}
    switch = Switch(tree, {}, mode, base, (), Live())
    pools = [pair.partition("=") for pair in known.get(POOLS, "").split()]
    return Before(
        ports={port.name: port.settings for port in state.ports},
        users=users,
        mode=mode,
        base=base,
        defaults=switch.content({}),
        pools={name: int(percent) for name, _, percent in pools},
        watched=frozenset(spread(known.get(WATCHED, ""))),
        paused_by_all=PAUSE_ALL in known,
        release=release(known.get("version", "")) or hw.release(),
    )


def before_of_blank(wanted: NodeState, hw: Hardware) -> Before:
    """A switch on which nobody configured anything of ours."""
    ports = {port.name: default_settings(one) for port, one in owned_ports(wanted, hw)}
    return Before(ports, {kind: {} for kind in ALL_KINDS}, release=hw.release())


def laid_over(below: Any, above: Any) -> Any:
    """`above` where it is managed, else `below`; parts of QoS and classes one by one."""
    if above is UNMANAGED or above is NOT_APPLICABLE:
        return below
    if isinstance(above, QosState | ClassState | WatchdogTimers) and type(above) is type(below):
        names = above.__dataclass_fields__
        return replace(
            above, **{name: laid_over(getattr(below, name), getattr(above, name)) for name in names}
        )
    if isinstance(above, tuple) and above and isinstance(above[0], ClassState):
        return tuple(laid_over(old, new) for old, new in zip(below, above, strict=True))
    return above


# ---------------------------------------------------------------- what a profile must say


@dataclass(frozen=True, slots=True)
class Want:
    """What one port needs of a kind. `default`: `default-global` says all of it already."""

    content: Hashable
    default: bool


def map_content(qos: QosState) -> MapOf | None:
    """The mapping of a port; None when a part is not known."""
    if isinstance(qos.trust, Absent) or isinstance(qos.dscp_to_priority, Absent):
        return None
    if isinstance(qos.pcp_to_priority, Absent):
        return None
    return MapOf(_TRUST[qos.trust], qos.dscp_to_priority, qos.pcp_to_priority)


def pfc_content(qos: QosState) -> PfcOf | None:
    """PFC of a port, NO_PFC where no priority has any; None when a part is not known."""
    sides = [(state.pfc_tx, state.pfc_rx) for state in qos.classes]
    if any(isinstance(side, Absent) for pair in sides for side in pair):
        return None
    paused = tuple(priority for priority, (tx, rx) in enumerate(sides) if tx or rx)
    if not paused:
        return NO_PFC
    if isinstance(qos.cable_m, Absent):
        return None
    by_hand = (qos.classes[priority].headroom for priority in paused)
    headroom = next((amount for amount in by_hand if isinstance(amount, Amount)), None)
    tx, rx = any(tx for tx, _ in sides), any(rx for _, rx in sides)
    return PfcOf(paused, tx, rx, qos.cable_m, headroom)


def ecn_content(qos: QosState, owned: QosState, seen: QosState) -> MarksOf | None:
    """Ramps by traffic class; what `owned` manages wins where priorities share a class.

    A ramp that nobody owns stays with its traffic class, it does not follow a priority to another one.
    None when a queue, or the ramp of a class that nobody owns, is not known.
    """
    found: dict[int, tuple[bool, Ecn | None]] = {}
    for state, own, old in zip(qos.classes, owned.classes, seen.classes, strict=True):
        if isinstance(state.queue, Absent) or isinstance(state.ecn, Absent):
            return None
        managed = not isinstance(own.ecn, Absent)
        ramp = state.ecn if managed or state.queue == old.queue else None
        before = found.get(state.queue)
        if before is None or (managed and not before[0]):
            found[state.queue] = (managed, ramp and replace(ramp, others=UNMANAGED))
    return tuple((tc, ramp) for tc, (_, ramp) in sorted(found.items()) if ramp is not None)


def owned_ramps(qos: QosState, owned: QosState) -> dict[int, Ecn | None]:
    """Traffic class -> ramp, only what `owned` manages."""
    found: dict[int, Ecn | None] = {}
    for state, own in zip(qos.classes, owned.classes, strict=True):
        if isinstance(state.queue, int) and not isinstance(own.ecn, Absent):
            found.setdefault(state.queue, own.ecn and replace(own.ecn, others=UNMANAGED))
    return found


def owned_shares(qos: QosState, owned: QosState) -> dict[int, Share] | None:
    """Traffic class -> share that `owned` manages; None when a queue is not known."""
    found: dict[int, Share] = {}
    for state, own in zip(qos.classes, owned.classes, strict=True):
        if isinstance(state.queue, Absent):
            return None
        if isinstance(own.share, Share):
            found.setdefault(state.queue, Share(own.share.scheduler, own.share.weight))
    return found


def used_classes(qos: QosState, owned: QosState) -> frozenset[int]:
    """Traffic classes of the priorities in use."""
    queues = (qos.classes[priority].queue for priority in used_priorities(owned))
    return frozenset(queue for queue in queues if isinstance(queue, int))


def ets_content(qos: QosState, owned: QosState) -> SharesOf | None:
    """Shares of all traffic classes when `owned` manages some.

    The classes that nobody gave a share divide what is left of 100 %. Where nothing is left, those in
    use and the two of network control are strict, as without a share they would be starved; the others
    stay best effort, so that a stray packet cannot outrun the lossless class.
    """
    found = owned_shares(qos, owned)
    if found is None:
        return None
    rest = 100 - sum(share.weight for share in found.values() if share.scheduler == "dwrr")
    open_classes = [tc for tc in PRIORITIES if tc not in found]
    each = rest // len(open_classes) if open_classes else 0
    used = used_classes(qos, owned).union(CONTROL)
    made: list[Share | None] = []
    for tc in PRIORITIES:
        if tc in found:
            made.append(found[tc] if found[tc].scheduler == "strict" or found[tc].weight else None)
        elif each >= 1:
            made.append(Share("dwrr", each))
        else:
            made.append(Share("strict") if tc in used else None)
    return tuple(made)


def seen_shares(qos: QosState) -> SharesOf | None:
    """Shares by traffic class; None when one is not known, or shown by no priority."""
    found: dict[int, Share] = {}
    for state in qos.classes:
        if isinstance(state.queue, Absent) or not isinstance(state.share, Share):
            return None
        found.setdefault(state.queue, state.share)
    if len(found) < len(PRIORITIES):
        return None
    shares = [found[tc] for tc in PRIORITIES]
    return tuple(share if share.scheduler == "strict" or share.weight else None for share in shares)


# ---------------------------------------------------------------- which name says it


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile to write; `old` is what it says now, None when it is new."""

    name: str
    content: Any
    old: Any = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """The profiles of one kind after the change."""

    profiles: tuple[Profile, ...] = ()
    attach: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(profile, ports)."""
    detach: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def assign(
    wants: Mapping[str, Want],
    seen: Callable[[str], Hashable | None],
    users: Mapping[str, tuple[str, ...]],
    editable: Callable[[Any, Any], bool],
) -> Assigned:
    """A profile for every port that needs one.

    In this order: one of ours that says it already, one of ours that only these ports use (edited in
    place where `editable(old, new)`), a new one. Ours that nobody uses any more are removed.
    """
    if not wants:
        return Assigned()
    at = {port: name for name, ports in users.items() for port in ports}
    ours = {name: ports for name, ports in users.items() if OURS.fullmatch(name)}
    groups: dict[Hashable, list[str]] = {}
    for port, want in wants.items():
        if not want.default:
            groups.setdefault(want.content, []).append(port)
    pick = _Pick(wants, seen, ours, editable)
    after = {port: name for port, name in at.items() if port not in wants}
    attach: dict[str, list[str]] = {}
    for content, ports in groups.items():
        name = pick.name(content, ports)
        after |= dict.fromkeys(ports, name)
        moved = [port for port in ports if at.get(port) != name]
        if moved:
            attach.setdefault(name, []).extend(moved)
    return Assigned(
        profiles=tuple(pick.profiles),
        attach=tuple((name, tuple(ports)) for name, ports in attach.items()),
        detach=tuple(port for port, want in wants.items() if want.default and port in at),
        removed=tuple(name for name in sorted(ours, key=natural) if name not in set(after.values())),
    )


@dataclass
class _Pick:
    """Chooses names, remembers which profiles have to be written."""

    wants: Mapping[str, Want]
    seen: Callable[[str], Hashable | None]
    ours: Mapping[str, tuple[str, ...]]
    editable: Callable[[Any, Any], bool]
    profiles: list[Profile] = field(default_factory=list)

    def name(self, content: Hashable, ports: Sequence[str]) -> str:
        for name in sorted(self.ours, key=natural):
            staying = [port for port in self.ours[name] if port not in self.wants]
            if any(self.seen(port) == content for port in staying):
                return name
        edited = self._in_place(content, frozenset(ports))
        if edited is not None:
            self.profiles.append(edited)
            return edited.name
        taken = {profile.name for profile in self.profiles} | set(self.ours)
        number = next(n for n in range(1, len(taken) + 2) if f"fabric-{n}" not in taken)
        self.profiles.append(Profile(f"fabric-{number}", content))
        return f"fabric-{number}"

    def _in_place(self, content: Hashable, ports: frozenset[str]) -> Profile | None:
        fit = [
            name
            for name in sorted(self.ours, key=natural)
            if self.ours[name] and ports.issuperset(self.ours[name])
        ]
        for name in sorted(fit, key=lambda name: -len(self.ours[name])):
            old = self.seen(self.ours[name][0])
            if old is not None and self.editable(old, content):
                return Profile(name, content, old)
        return None
