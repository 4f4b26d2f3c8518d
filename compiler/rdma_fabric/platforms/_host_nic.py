"""What NIC parts with a library of their own share: loops over ports, their files, their observation.

A part is a word ("bnxt": the `nic` of its ports and the end of its library's name), a library template
with its context, and functions on one port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms._contract import Artifact, Change, Disturbance, Disturbs, Fault, Put, Realized
from rdma_fabric.platforms._shared import digest, with_ports
from rdma_fabric.state import (
    FIRMWARE_AGENT,
    NOT_APPLICABLE,
    PRIORITIES,
    UNMANAGED,
    ClassState,
    Marking,
    Maybe,
    NicState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    SystemState,
    WatchdogTimers,
)

Nv = tuple[tuple[str, Maybe[str]], ...]
NEW_CONNECTIONS: Final = "Linux 6.1 cma.c: read when a connection is made"


@dataclass(frozen=True, slots=True)
class Library:
    """Context of a library: the program that sources it, and the part's table of parameters."""

    program: str = host.QOS_PROGRAM
    parameters: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Nic:
    """One NIC part."""

    word: str
    template: str
    library: Library

    def put(self) -> Put:
        """The library file."""
        return host.put(f"{host.QOS_PROGRAM}-{self.word}", self.template, self.library)

    def artifacts(
        self,
        wanted: NodeState,
        hw: Hardware,
        knobs: Callable[[PortSettings, PortHardware], Mapping[str, str]],
    ) -> tuple[Artifact, ...]:
        """The program, what starts it, the library and one settings file per port that has any."""
        found = []
        for port in host.ports_of(hw, self.word):
            state = wanted.port(port.name)
            rows = knobs(state.settings, port) if state is not None else {}
            if rows:
                head = {"NIC": self.word, **({"RDMA": port.rdma} if port.rdma else {})}
                context = qos_file.Context(rows=tuple({**head, **rows}.items()))
                path = f"{host.QOS_FOLDER}/{port.name}.conf".removeprefix("/")
                found.append(Artifact("_shared/host/port.conf.j2", path, 0o644, context))
        put = self.put()
        library = Artifact(self.template, put.path.removeprefix("/"), put.mode, self.library)
        return (*qos_file.common_artifacts(), library, *found) if found else ()

    def realized(
        self,
        wanted: NodeState,
        hw: Hardware,
        one: Callable[[PortHardware, PortSettings, list[Fault]], PortSettings],
    ) -> Realized:
        """Every port of the part in turn; a bond or VLAN leaves QoS to the ports below it."""
        faults: list[Fault] = []
        found: dict[str, PortSettings] = {}
        for port in host.ports_of(hw, self.word):
            state = wanted.port(port.name)
            if state is not None:
                upper = port.kind in ("bond", "vlan", "svi")
                now = _upper(state.settings, port, hw, faults) if upper else one(port, state.settings, faults)
                if now != state.settings:
                    found[port.name] = now
        return Realized(with_ports(wanted, found) if found else wanted, tuple(faults))


def _upper(wanted: PortSettings, port: PortHardware, hw: Hardware, faults: list[Fault]) -> PortSettings:
    below = port.members or ((port.parent,) if port.parent else ())
    lossless = any(one.pfc_tx is True or one.pfc_rx is True for one in wanted.qos.classes)
    if lossless and not any(hw.port(name) is not None for name in below):
        fault = Fault(
            Severity.ERROR,
            port.name,
            "qos.classes",
            "a lossless class",
            "",
            f"PFC of {port.name} belongs to the ports below it, which no network names",
            f"name {', '.join(below) or 'its members'} with the same network in the inventory",
        )
        faults.append(fault)
    return replace(wanted, qos=QosState(), marking=Marking())


@dataclass
class Seen:
    """An observation as it grows port by port."""

    live: list[PortState] = field(default_factory=list)
    kept: list[PortState] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)
    pending: list[PortState] = field(default_factory=list)

    def add(
        self, port: PortHardware, now: PortSettings, boot: PortSettings, card: NicState, later: Nv = ()
    ) -> None:
        """Running and stored settings of one port, the card behind it, and what its memory holds."""
        now, boot = replace(now, nic=card), replace(boot, nic=replace(card, nv=later, **_OF_NOW))
        have = dict(card.nv)
        waits = tuple(
            (name, value)
            for name, value in later
            if isinstance(value, str) and isinstance(have.get(name), str) and have[name] != value
        )
        if waits and port.kind == "physical":
            self.pending.append(PortState(port.name, port.kind, PortSettings(nic=NicState(nv=waits))))
        self.live.append(PortState(port.name, port.kind, _by_kind(now, port)))
        self.kept.append(PortState(port.name, port.kind, _by_kind(boot, port)))
        if now.qos.dcbx == "firmware":
            self.owners.add(FIRMWARE_AGENT.format(port.name))

    def observation(self) -> Observation:
        """What was read of all ports."""
        system = SystemState(owners=tuple(sorted(self.owners)) or UNMANAGED)
        return Observation(
            running=NodeState(system, tuple(self.live)),
            stored=NodeState(ports=tuple(self.kept)),
            pending=NodeState(ports=tuple(self.pending)) if self.pending else None,
            notes=tuple(self.notes),
            facts=tuple(sorted(self.facts.items())),
            evidence=digest([_written(port) for port in (*self.live, *self.kept)]),
        )


_OF_NOW: Final[Mapping[str, Any]] = {"rdma_mtu": UNMANAGED, "gids": UNMANAGED}
"""What only a running port has."""


def _written(port: PortState) -> PortState:
    """What is written; addresses and versions that a card shows may change between a plan and its push."""
    return replace(port, settings=replace(port.settings, nic=NicState(nv=port.settings.nic.nv)))


def _by_kind(settings: PortSettings, port: PortHardware) -> PortSettings:
    """A bond, VLAN or SVI has no QoS of its own."""
    if port.kind == "physical":
        return settings
    if port.kind == "vf":
        return replace(settings, nic=NicState())
    return PortSettings(qos=_NO_QOS, marking=host.all_fields(Marking, NOT_APPLICABLE))


def _no_qos() -> QosState:
    plain: QosState = host.all_fields(QosState, NOT_APPLICABLE)
    return replace(
        plain,
        classes=(host.all_fields(ClassState, NOT_APPLICABLE),) * len(PRIORITIES),
        watchdog=host.all_fields(WatchdogTimers, NOT_APPLICABLE),
    )


_NO_QOS: Final = _no_qos()


def unowned(value: Any) -> Any:
    """NOT_APPLICABLE for every wish; UNMANAGED stays."""
    return UNMANAGED if value is UNMANAGED else NOT_APPLICABLE


# ---------------------------------------------------------------- changes


@dataclass(frozen=True, slots=True)
class Effect:
    """Knobs whose change does something to the port; keys match by how they begin."""

    level: Disturbs
    keys: tuple[str, ...]
    what: str
    source: str


def disturbances(
    effects: Iterable[Effect], changed: Mapping[str, tuple[str, ...]]
) -> tuple[Disturbance, ...]:
    """Port -> its changed knobs, as disturbances."""
    found = []
    for effect in effects:
        ports = tuple(p for p, have in changed.items() if any(k.startswith(effect.keys) for k in have))
        if ports:
            found.append(Disturbance(effect.level, ports, effect.what, effect.source))
    return tuple(found)


def held_back(
    seen: Observation, wanted: NodeState, hw: Hardware, word: str, obstacles: Mapping[str, str]
) -> tuple[Hardware, Change]:
    """(hardware without the ports that an obstacle keeps us from writing, what is blocked there and why)."""
    if not obstacles:
        return hw, Change()
    mask = host.only(wanted, "nic", obstacles)
    found = host.differing(mask, seen.running)
    reasons = []
    for item in found:
        port = next(name for name in obstacles if item.path.startswith(f"ports.{name}."))
        if not item.unknown:
            reasons.append((item.path, obstacles[port]))
    free = tuple(port for port in hw.ports if port.nic != word or port.name not in obstacles)
    return replace(hw, ports=free), Change(blocked=found, reasons=tuple(reasons))


def with_blocked(change: Change, kept: Change) -> Change:
    """The change, and what was held back of it."""
    if not kept.blocked:
        return change
    return replace(change, blocked=change.blocked + kept.blocked, reasons=change.reasons + kept.reasons)
