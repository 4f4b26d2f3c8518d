"""Any other RDMA NIC on a Linux host, also Soft-RoCE: RDMA-CM marking only.

MTU and modules belong to the base. What the NIC does with priorities is not known to us: a lossless
class on such a port stands on nothing that we could set or check.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_probes as local
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import _host_verbs as verbs
from rdma_fabric.platforms._contract import (
    Artifact,
    Change,
    Dialect,
    Disturbance,
    Disturbs,
    Fault,
    Probe,
    Realized,
    Traits,
)
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._shared import digest, integer, with_ports
from rdma_fabric.state import (
    NOT_APPLICABLE,
    PRIORITIES,
    UNKNOWN,
    UNMANAGED,
    Absent,
    ClassState,
    Marking,
    Maybe,
    NicState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    WatchdogTimers,
)
from rdma_fabric.templating import render_lines

_NIC: Final = "generic"
_NEW: Final = "Linux 6.1 cma.c: read when a connection is made"


@dataclass(frozen=True, slots=True)
class Lines:
    """For the commands of one port as people read them."""

    device: str
    CMA_MODE: str = ""
    CMA_TOS: str = ""


class NicGeneric:
    """RDMA-CM marking of ports whose NIC has no part of its own."""

    name = "nic_generic"
    part: Literal["nic"] = "nic"
    channel: Literal["files"] = "files"
    dialect: Dialect = host.DIALECT
    traits = Traits(
        title="Any RDMA NIC, Soft-RoCE",
        evidence="kernel sources; MTU rule measured with Soft-RoCE on a real kernel",
        tested="real Linux sandboxes; Soft-RoCE in QEMU",
        cannot=("PFC, trust, DSCP map, scheduling, DCQCN", "force the marking of traffic outside RDMA-CM"),
        netdev_bound=host.NETDEV_BOUND,
        defaults=PortSettings(marking=Marking(rdma_cm_tos=0, roce_v2=True)),
        defaults_source="Linux 6.1 cma_configfs.c",
    )

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """Only RDMA-CM marking remains."""
        faults: list[Fault] = []
        found: dict[str, PortSettings] = {}
        for port in host.ports_of(hw, _NIC):
            state = wanted.port(port.name)
            if state is not None:
                one = _realize(state.settings, port, faults)
                if one != state.settings:
                    found[port.name] = one
        return Realized(with_ports(wanted, found) if found else wanted, tuple(faults))

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        ports = host.ports_of(hw, _NIC)
        return (host.question("nic_generic/observe.sh.j2", qos_file.Asked.of(ports)),) if ports else ()

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """RDMA-CM marking of the ports."""
        parts = host.sections("\n".join(answers.get(question, "") for question in self.questions(hw)))
        live, kept, notes = [], [], []
        facts: dict[str, str] = {}
        for port in host.ports_of(hw, _NIC):
            sections = {name: parts.get(f"{name} {port.name}", Section()) for name in _ASKED}
            boot = qos_file.stored(sections["conf"], sections["wants"], qos_file.RDMA_CM_DEFAULTS)
            now = qos_file.rdma_cm(sections["tos"], sections["mode"])
            mtu = verbs.active_mtu(sections["verbs"])
            live.append(PortState(port.name, port.kind, replace(_settings(now), nic=_nic(mtu))))
            kept.append(PortState(port.name, port.kind, _settings(boot)))
            if sections["rdma"].text.strip():
                facts[f"rdma {port.name}"] = sections["rdma"].text.strip()
            if keys := qos_file.in_file(sections["conf"]):
                facts[f"conf {port.name}"] = keys
            if not sections["rdma"].asked:
                notes.append(f"{port.name}: the answer about its NIC was not understood")
            notes += _notes(port, sections, mtu)
        state = NodeState(ports=tuple(live))
        return Observation(
            running=state,
            stored=NodeState(ports=tuple(kept)),
            notes=tuple(notes),
            facts=tuple(sorted(facts.items())),
            evidence=digest((state, kept)),
        )

    def context(self, wanted: NodeState, hw: Hardware) -> qos_file.Context:
        """For the shared program and unit."""
        return qos_file.Context()

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """The program, what starts it and one settings file per port that has any."""
        found = []
        for port in host.ports_of(hw, _NIC):
            state = wanted.port(port.name)
            rows = _knobs(state.settings, port) if state is not None else {}
            if rows:
                context = qos_file.Context(rows=tuple({**_head(port), **rows}.items()))
                path = f"{host.QOS_FOLDER}/{port.name}.conf".removeprefix("/")
                found.append(Artifact("_shared/host/port.conf.j2", path, 0o644, context))
        return (*qos_file.common_artifacts(), *found) if found else ()

    def probes(self, wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
        """RDMA MTU and RDMA-CM marking of the ports."""
        return local.rdma_ports(host.ports_of(hw, _NIC), wanted, self.traits.netdev_bound)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Settings files, then `fabric-qos PORT`."""
        facts = dict(seen.facts)
        return qos_file.PortsChange(
            _NIC,
            seen,
            wanted,
            hw,
            _knobs,
            lambda path: _KEYS.get(path, ()),
            lambda port, now, before: _lines(port, now, facts),
            _disturbs,
        ).build()


_ASKED: Final = ("rdma", "tos", "mode", "conf", "wants", "verbs", "mtu")
_KEYS: Final = {"marking.rdma_cm_tos": ("CMA_TOS",), "marking.roce_v2": ("CMA_MODE",)}


def _head(port: PortHardware) -> dict[str, str]:
    return {"RDMA": port.rdma} if port.rdma else {}


def _lines(port: PortHardware, now: Mapping[str, str], facts: Mapping[str, str]) -> tuple[str, ...]:
    device = facts.get(f"rdma {port.name}", "") or port.rdma or "RDMA_DEVICE"
    return render_lines(
        "nic_generic/lines.j2", Lines(device, now.get("CMA_MODE", ""), now.get("CMA_TOS", ""))
    )


def _disturbs(changed: Mapping[str, tuple[str, ...]]) -> tuple[Disturbance, ...]:
    ports = tuple(port for port, keys in changed.items() if keys)
    what = "new RDMA-CM connections are marked otherwise"
    return (Disturbance(Disturbs.NOTHING, ports, what, _NEW),) if ports else ()


def _nic(mtu: Maybe[int]) -> NicState:
    nothing: NicState = host.all_fields(NicState, NOT_APPLICABLE)
    return replace(nothing, nv=(), rdma_mtu=mtu)


def _notes(port: PortHardware, parts: Mapping[str, Section], mtu: Maybe[int]) -> list[str]:
    """An RDMA device that is not there, or that does not use what the netdev has room for."""
    device, netdev = parts["rdma"].text.strip(), integer(parts["mtu"].text)
    if _NO_DEVICE in parts["verbs"].text:
        help = f"`rdma link add {device} type rxe netdev {port.name}` makes one of Soft-RoCE"
        return [f"{port.name}: there is no RDMA device {device}; {help}"]
    room = verbs.rdma_mtu(netdev) if netdev else 0
    if isinstance(mtu, int) and mtu < room:
        return [f"{port.name}: RDMA MTU {mtu}, although its netdev MTU {netdev} has room for {room}"]
    return []


_NO_DEVICE: Final = "wasn't found"
"""libibverbs examples/devinfo.c: "IB device 'rxe0' wasn't found"."""


def _knobs(settings: PortSettings, port: PortHardware) -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(settings.marking.roce_v2, bool):
        found["CMA_MODE"] = "2" if settings.marking.roce_v2 else "1"
    if isinstance(settings.marking.rdma_cm_tos, int):
        found["CMA_TOS"] = qos_file.tos(settings.marking.rdma_cm_tos)
    return found


def _settings(knobs: Mapping[str, str]) -> PortSettings:
    marking: Marking = host.all_fields(Marking, NOT_APPLICABLE)
    mode = {"2": True, "1": False}.get(knobs.get("CMA_MODE", ""), UNKNOWN)
    return PortSettings(
        qos=_NO_QOS,
        marking=replace(
            marking,
            rdma_cm_tos=qos_file.read_tos(knobs.get("CMA_TOS", "")),
            roce_v2=mode,
            parameters=(),
        ),
    )


def _no_qos() -> QosState:
    plain: QosState = host.all_fields(QosState, NOT_APPLICABLE)
    return replace(
        plain,
        classes=(host.all_fields(ClassState, NOT_APPLICABLE),) * len(PRIORITIES),
        watchdog=host.all_fields(WatchdogTimers, NOT_APPLICABLE),
    )


_NO_QOS: Final = _no_qos()


# ---------------------------------------------------------------- realize


def _realize(wanted: PortSettings, port: PortHardware, faults: list[Fault]) -> PortSettings:
    lossless = [
        index for index, one in enumerate(wanted.qos.classes) if one.pfc_tx is True or one.pfc_rx is True
    ]
    if lossless:
        faults.append(
            Fault(
                Severity.WARNING,
                port.name,
                "qos.classes",
                f"lossless priority {', '.join(map(str, lossless))}",
                "",
                "only MTU, RDMA-CM marking and modules of this NIC are managed: PFC is not set here",
                "set PFC and the DSCP map by the NIC's own tools, or name its family (nic: mlx5)",
            )
        )
    marking = wanted.marking
    if not port.rdma and (_is_wish(marking.rdma_cm_tos) or _is_wish(marking.roce_v2)):
        faults.append(
            Fault(
                Severity.NOTE,
                port.name,
                "marking.rdma_cm_tos",
                "the RoCE class",
                "",
                "the inventory names no RDMA device for the port, so only its MTU is managed",
                "add rdma: NAME to the port (`rdma link` shows it)",
            )
        )
    if isinstance(marking.traffic_class, int):
        faults.append(
            Fault(
                Severity.NOTE,
                port.name,
                "marking.traffic_class",
                str(marking.traffic_class),
                "",
                "only mlx5's vendor driver can force it: applications without RDMA-CM set their own",
            )
        )
    return replace(
        wanted,
        qos=_dropped(wanted.qos),
        marking=_only_cm(marking, bool(port.rdma)),
        nic=replace(wanted.nic, nv=_no_nv(wanted.nic, port, faults)),
    )


def _no_nv(wanted: NicState, port: PortHardware, faults: list[Fault]) -> tuple[tuple[str, Maybe[str]], ...]:
    """Non-volatile settings are a vendor's own; no tool of a vendor is known here."""
    names = [name for name, value in wanted.nv if not isinstance(value, Absent)]
    if names:
        reason = "how this NIC keeps non-volatile settings is not known"
        help = "name the port's NIC family (nic: mlx5), or set them by the vendor's own tool"
        faults.append(Fault(Severity.WARNING, port.name, "nic.nv", ", ".join(names), "", reason, help))
    return tuple((name, _none(value)) for name, value in wanted.nv)


def _is_wish(value: object) -> bool:
    """True for a value, which would have to be written."""
    return not isinstance(value, Absent)


def _only_cm(wanted: Marking, device: bool) -> Marking:
    tos = wanted.rdma_cm_tos if device else _none(wanted.rdma_cm_tos)
    return replace(
        wanted,
        rdma_cm_tos=tos & 0xFC if isinstance(tos, int) else tos,
        roce_v2=wanted.roce_v2 if device else _none(wanted.roce_v2),
        parameters=tuple((name, NOT_APPLICABLE) for name, _ in wanted.parameters),
        **{
            name: _none(getattr(wanted, name))
            for name in ("traffic_class", "cnp_dscp", "cnp_priority", "np", "rp")
        },
    )


def _dropped(value: Any) -> Any:
    """Every wish below becomes NOT_APPLICABLE; UNMANAGED stays."""
    if isinstance(value, QosState | ClassState | WatchdogTimers):
        names = value.__dataclass_fields__
        return replace(value, **{name: _dropped(getattr(value, name)) for name in names})
    if isinstance(value, tuple) and value and isinstance(value[0], ClassState):
        return tuple(_dropped(item) for item in value)
    return _none(value)


def _none(value: Any) -> Any:
    return UNMANAGED if value is UNMANAGED else NOT_APPLICABLE


PLATFORM = NicGeneric()
