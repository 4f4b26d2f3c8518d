"""NVIDIA ConnectX-5 and later, BlueField (driver mlx5) on a Linux host: QoS and marking of its ports.

Two stacks: "inbox" (distribution kernel) and "ofed" (vendor driver, with ecn/ and tc/ files). Facts:
Linux 6.1 drivers, mlnx-tools, the vendor driver's sysfs source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import _nic_mlx5_knobs as knobs
from rdma_fabric.platforms import _nic_mlx5_read as reader
from rdma_fabric.platforms._contract import (
    Artifact,
    Change,
    Dialect,
    Disturbance,
    Disturbs,
    Fault,
    Put,
    Realized,
    Traits,
)
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._shared import digest, with_ports
from rdma_fabric.state import (
    NOT_APPLICABLE,
    PRIORITIES,
    UNMANAGED,
    Absent,
    ClassState,
    Marking,
    Maybe,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    WatchdogTimers,
)
from rdma_fabric.templating import render_lines

_NIC: Final = "mlx5"
_LIBRARY: Final = f"{host.QOS_PROGRAM}-{_NIC}"
_STALL_MS: Final = range(80, 8001)
"""Linux 6.1 en_ethtool.c mlx5e_set_pfc_prevention_tout; 0 turns it off."""
_CABLE_M: Final = range(1, 1000)
"""Linux 6.1 en_dcbnl.c: other lengths are ignored in silence."""

_BOUNCE: Final = "Linux 6.1 en_dcbnl.c: a changed PFC bitmap calls mlx5_toggle_port_link"
_BUFFER: Final = "experience: receive buffers are carved anew"
_LOSS: Final = "experience: packets on their way meet old and new settings"
_NEW: Final = "Linux 6.1 cma.c: read when a connection is made"


@dataclass(frozen=True, slots=True)
class Library:
    """For the part of `fabric-qos` that knows mlx5."""

    program: str = host.QOS_PROGRAM
    parameters: tuple[tuple[str, str, str], ...] = knobs.PARAMETERS


@dataclass(frozen=True, slots=True)
class Lines:
    """For the commands of one port as people read them; "" where nothing is to be written."""

    port: str
    device: str
    bdf: str
    tool: str
    stack: str
    roles: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    parameters: tuple[tuple[str, str, str, str], ...] = ()
    dscp: str = ""
    PAUSE: str = ""
    DCBX: str = ""
    TRUST: str = ""
    PRIO_TC: str = ""
    TSA: str = ""
    TCBW: str = ""
    RATELIMIT: str = ""
    PFC: str = ""
    PRIO2BUFFER: str = ""
    CABLE: str = ""
    STALL: str = ""
    TCLASS: str = ""
    CMA_MODE: str = ""
    CMA_TOS: str = ""

    @staticmethod
    def numbered(words: str) -> str:
        """ "a,b" -> "0:a 1:b", as dcb takes lists."""
        return " ".join(f"{index}:{word}" for index, word in enumerate(words.split(",")))

    @staticmethod
    def switched(bits: str) -> str:
        """ "0,1" -> "0:off 1:on"."""
        return Lines.numbered(",".join("on" if bit == "1" else "off" for bit in bits.split(",")))


class NicMlx5:
    """QoS and marking of mlx5 ports; their MTU belongs to the base."""

    name = "nic_mlx5"
    part: Literal["nic"] = "nic"
    channel: Literal["files"] = "files"
    dialect: Dialect = host.DIALECT
    traits = Traits(
        title="NVIDIA ConnectX / BlueField (mlx5)",
        evidence="driver and tool sources; tool outputs made with the real programs",
        tested="simulated tools in real Linux sandboxes",
        cannot=(
            "a PFC watchdog per queue: only how long the NIC itself may send pause (80 to 8000 ms)",
            "PFC in one direction",
            "mark ECN: switches do; the host only reacts",
            "set buffer sizes or thresholds",
            "on the inbox stack: DCQCN per priority and a forced traffic class",
            "firmware (NV) values",
        ),
        netdev_bound=host.NETDEV_BOUND,
    )

    # ------------------------------------------------------------ realize

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """All eight traffic classes, both directions of PFC, the timers that the NIC has."""
        faults: list[Fault] = []
        found: dict[str, PortSettings] = {}
        for port in host.ports_of(hw, _NIC):
            state = wanted.port(port.name)
            if state is not None:
                one = _Realize(port, hw, faults).settings(state.settings)
                if one != state.settings:
                    found[port.name] = one
        return Realized(with_ports(wanted, found) if found else wanted, tuple(faults))

    # ------------------------------------------------------------ read

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        ports = host.ports_of(hw, _NIC)
        return (host.question("nic_mlx5/observe.sh.j2", qos_file.Asked.of(ports)),) if ports else ()

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state of mlx5 ports; running is operational."""
        parts = host.sections("\n".join(answers.get(question, "") for question in self.questions(hw)))
        live, kept, notes = [], [], []
        facts: dict[str, str] = {}
        for port in host.ports_of(hw, _NIC):
            stack = parts.get(f"stack {port.name}", Section()).text.strip() or hw.option("stack", "ofed")
            conf, link = parts.get(f"conf {port.name}", Section()), parts.get(f"wants {port.name}", Section())
            now = knobs.settings_of(reader.port_knobs(parts, port.name), port, stack)
            boot = knobs.settings_of(qos_file.stored(conf, link, knobs.DEFAULTS), port, stack)
            live.append(PortState(port.name, port.kind, _by_kind(now, port)))
            kept.append(PortState(port.name, port.kind, _by_kind(boot, port)))
            notes += reader.notes(parts, port.name)
            facts |= _facts(parts, port, stack)
            if not parts.get(f"stack {port.name}", Section()).ok:
                notes.append(f"{port.name}: the answer about its NIC was not understood")
        state = NodeState(ports=tuple(live))
        return Observation(
            running=state,
            stored=NodeState(ports=tuple(kept)),
            notes=tuple(notes),
            facts=tuple(sorted(facts.items())),
            evidence=digest((state, kept)),
        )

    # ------------------------------------------------------------ write

    def context(self, wanted: NodeState, hw: Hardware) -> Library:
        """For the library file; settings files have contexts of their own."""
        return Library()

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """The program, its unit, the mlx5 library and one settings file per port."""
        found = [_artifact(step, template) for step, template in _files()]
        for port in host.ports_of(hw, _NIC):
            state = wanted.port(port.name)
            rows = knobs.knobs_of(state.settings, port) if state is not None else {}
            if rows:
                head = {"NIC": _NIC, **({"RDMA": port.rdma} if port.rdma else {})}
                context = qos_file.Context(rows=tuple({**head, **rows}.items()))
                path = f"{host.QOS_FOLDER}/{port.name}.conf".removeprefix("/")
                found.append(Artifact("_shared/host/port.conf.j2", path, 0o644, context))
        return tuple(found) if len(found) > len(_files()) else ()

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Settings files, then `fabric-qos PORT`, which writes only what differs."""
        facts = dict(seen.facts)
        return qos_file.PortsChange(
            _NIC,
            seen,
            wanted,
            hw,
            knobs.knobs_of,
            knobs.keys_of,
            lambda port, now, before: _lines(port, now, before, facts),
            _disturbs,
            (_library(),),
            # Leaving trust dscp deletes the map (mlnx_qos --trust pcp, dcb app flush).
            {"TRUST": ("DSCP2PRIO",)},
        ).build()


def _library() -> Put:
    return host.put(_LIBRARY, "nic_mlx5/mlx5.sh.j2", Library())


def _files() -> tuple[tuple[Put, str], ...]:
    program, unit = qos_file.common_files()
    return (
        (program, "_shared/host/fabric-qos.sh.j2"),
        (unit, "_shared/host/fabric-qos@.service.j2"),
        (_library(), "nic_mlx5/mlx5.sh.j2"),
    )


def _artifact(step: Put, template: str) -> Artifact:
    context: Any = Library() if template.startswith("nic_") else qos_file.Context()
    return Artifact(template, step.path.removeprefix("/"), step.mode, context)


def _facts(parts: Mapping[str, Section], port: PortHardware, stack: str) -> dict[str, str]:
    found = {f"stack {port.name}": stack}
    device, firmware = (
        parts.get(f"rdma {port.name}", Section()),
        parts.get(f"firmware {port.name}", Section()),
    )
    if device.ok and device.text.strip():
        found[f"rdma {port.name}"] = device.text.strip()
    if firmware.ok:
        found[f"firmware {port.name}"] = firmware.text.strip()
    if keys := qos_file.in_file(parts.get(f"conf {port.name}", Section())):
        found[f"conf {port.name}"] = keys
    if not parts.get(f"qos {port.name}", Section()).asked:
        found[f"tool {port.name}"] = "dcb"
    return found


def _lines(
    port: PortHardware, now: Mapping[str, str], before: Mapping[str, str], facts: Mapping[str, str]
) -> tuple[str, ...]:
    """The commands that `fabric-qos` will run for these knobs."""
    tool = facts.get(f"tool {port.name}", "mlnx_qos")
    plain = {key: value for key, value in now.items() if key in Lines.__dataclass_fields__}
    dscp = now.get("DSCP2PRIO", "").split(",") if now.get("TRUST") != "pcp" else []
    option = "--dscp2prio set,{},{}" if tool == "mlnx_qos" else "{}:{}"
    files = {name: (role, file) for name, role, file in knobs.PARAMETERS}
    context = Lines(
        port=port.name,
        device=facts.get(f"rdma {port.name}", "") or port.rdma or "RDMA_DEVICE",
        bdf=port.bdf or "BDF",
        tool=tool,
        stack=facts.get(f"stack {port.name}", "ofed"),
        roles=tuple(
            _role(role, now[key], before.get(key, ""))
            for role, key in (("np", "NP"), ("rp", "RP"))
            if key in now
        ),
        parameters=tuple(
            (key[3:], *files[key[3:]], value) for key, value in now.items() if key.startswith("CC_")
        ),
        dscp=" ".join(option.format(point, priority) for point, priority in enumerate(dscp) if priority),
        **plain,
    )
    return render_lines("nic_mlx5/lines.j2", context)


def _role(role: str, wanted: str, before: str) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    new = {int(word) for word in wanted.split(",") if word.isdigit()}
    old = {int(word) for word in before.split(",") if word.isdigit()}
    return role, tuple(sorted(new - old)), tuple(sorted(old - new))


def _disturbs(changed: Mapping[str, tuple[str, ...]]) -> tuple[Disturbance, ...]:
    """By knob: what the driver does with the port."""
    table = (
        (Disturbs.PORT_BOUNCE, ("PFC",), "the PFC set changes", _BOUNCE),
        (Disturbs.PORT_BOUNCE, ("PRIO2BUFFER", "CABLE"), "receive buffers change", _BUFFER),
        (
            Disturbs.LOSS,
            (
                "PAUSE",
                "DCBX",
                "TRUST",
                "DSCP2PRIO",
                "PRIO_TC",
                "RATELIMIT",
                "STALL",
                "NP",
                "RP",
                "CC_",
                "TCLASS",
            ),
            "classification or scheduling changes",
            _LOSS,
        ),
        (Disturbs.NOTHING, ("CMA_TOS", "CMA_MODE"), "new RDMA-CM connections are marked otherwise", _NEW),
    )
    found = []
    for level, keys, what, source in table:
        ports = tuple(port for port, have in changed.items() if any(key.startswith(keys) for key in have))
        if ports:
            found.append(Disturbance(level, ports, what, source))
    return tuple(found)


def _by_kind(settings: PortSettings, port: PortHardware) -> PortSettings:
    """A bond, VLAN or SVI has no QoS of its own."""
    if port.kind in ("physical", "vf"):
        return settings
    return PortSettings(_NO_MTU, _no_qos(), host.all_fields(Marking, NOT_APPLICABLE))


_NO_MTU: Final = PortSettings().mtu


def _no_qos() -> QosState:
    none = host.all_fields(ClassState, NOT_APPLICABLE)
    timers = host.all_fields(WatchdogTimers, NOT_APPLICABLE)
    plain: QosState = host.all_fields(QosState, NOT_APPLICABLE)
    return replace(plain, classes=(none,) * len(PRIORITIES), watchdog=timers)


# ---------------------------------------------------------------- realize


@dataclass
class _Realize:
    port: PortHardware
    hw: Hardware
    faults: list[Fault]

    def settings(self, wanted: PortSettings) -> PortSettings:
        """What this port will show."""
        if self.port.kind in ("bond", "vlan", "svi"):
            return self._upper(wanted)
        return replace(wanted, qos=self._qos(wanted.qos), marking=self._marking(wanted.marking))

    def _fault(
        self, severity: Severity, setting: str, wanted: object, used: object, reason: str, help: str = ""
    ) -> None:
        self.faults.append(Fault(severity, self.port.name, setting, str(wanted), str(used), reason, help))

    def _upper(self, wanted: PortSettings) -> PortSettings:
        """Bonds and VLANs: QoS belongs to the physical ports below."""
        below = self.port.members or ((self.port.parent,) if self.port.parent else ())
        lossless = any(one.pfc_tx is True or one.pfc_rx is True for one in wanted.qos.classes)
        if lossless and not any(self.hw.port(name) is not None for name in below):
            self._fault(
                Severity.ERROR,
                "qos.classes",
                "a lossless class",
                "",
                f"PFC of {self.port.name} belongs to the ports below it, which no network names",
                f"name {', '.join(below) or 'its members'} with the same network in the inventory",
            )
        return PortSettings(mtu=wanted.mtu)

    # -- QoS

    def _qos(self, wanted: QosState) -> QosState:
        return replace(
            wanted,
            trust=self._trust(wanted.trust),
            dscp_to_priority=NOT_APPLICABLE if wanted.trust == "pcp" else wanted.dscp_to_priority,
            pcp_to_priority=self._pcp(wanted),
            classes=self._classes(wanted.classes),
            watchdog=self._timers(wanted.watchdog),
            dcbx=self._dcbx(wanted.dcbx),
            cable_m=self._cable(wanted.cable_m),
        )

    def _trust(self, wanted: Any) -> Any:
        if wanted == "both":
            self._fault(
                Severity.NOTE, "qos.trust", "both", "dscp", "an mlx5 port trusts DSCP or the tag, not both"
            )
            return "dscp"
        if wanted == "port":
            self._fault(Severity.WARNING, "qos.trust", "port", "", "an mlx5 port trusts DSCP or the tag")
            return NOT_APPLICABLE
        return wanted

    def _pcp(self, wanted: QosState) -> Maybe[tuple[int, ...]]:
        table = wanted.pcp_to_priority
        if isinstance(table, Absent) or wanted.trust != "pcp":
            return table if isinstance(table, Absent) else NOT_APPLICABLE
        if table != tuple(PRIORITIES):
            self._fault(
                Severity.WARNING,
                "qos.pcp_to_priority",
                ",".join(map(str, table)),
                "0,1,2,3,4,5,6,7",
                "the NIC takes the tag's value as the priority",
            )
        return tuple(PRIORITIES)

    def _dcbx(self, wanted: Any) -> Any:
        if wanted in ("ieee", "cee"):
            self._fault(
                Severity.NOTE,
                "qos.dcbx",
                wanted,
                "firmware",
                "the NIC's firmware negotiates, which also needs LLDP_NB_DCBX in its NV settings",
            )
            return "firmware"
        return wanted

    def _cable(self, wanted: Maybe[int]) -> Maybe[int]:
        if isinstance(wanted, Absent) or wanted in _CABLE_M:
            return wanted
        used = min(max(wanted, _CABLE_M[0]), _CABLE_M[-1])
        self._fault(Severity.NOTE, "qos.cable_m", wanted, used, "the driver takes 1 to 999 metres")
        return used

    def _timers(self, wanted: WatchdogTimers) -> WatchdogTimers:
        detect = wanted.detect_ms
        if isinstance(detect, int) and detect and detect not in _STALL_MS:
            used = min(max(detect, _STALL_MS[0]), _STALL_MS[-1])
            self._fault(
                Severity.NOTE,
                "qos.watchdog.detect_ms",
                detect,
                used,
                "pfc-prevention-tout takes 80 to 8000 ms",
            )
            detect = used
        for name in ("restore_ms", "poll_ms", "action"):
            value = getattr(wanted, name)
            if not isinstance(value, Absent):
                self._fault(
                    Severity.NOTE,
                    f"qos.watchdog.{name}",
                    value,
                    "",
                    "a NIC has no watchdog per queue; it only limits how long it may send pause itself",
                )
        return WatchdogTimers(
            detect, *(_none(getattr(wanted, n)) for n in ("restore_ms", "poll_ms", "action"))
        )

    def _classes(self, wanted: tuple[ClassState, ...]) -> tuple[ClassState, ...]:
        shares = self._shares(wanted)
        return tuple(self._class(index, one, shares) for index, one in enumerate(wanted))

    def _class(self, index: int, wanted: ClassState, shares: list[Share | None] | None) -> ClassState:
        tx, rx = wanted.pfc_tx, wanted.pfc_rx
        if isinstance(tx, bool) and isinstance(rx, bool) and tx != rx:
            at = f"qos.classes.{index}.pfc_tx" if not tx else f"qos.classes.{index}.pfc_rx"
            self._fault(
                Severity.WARNING, at, "off", "on", "PFC of an mlx5 port is on or off for both directions"
            )
            tx = rx = True
        if isinstance(wanted.headroom, Absent) or wanted.headroom is None:
            headroom = _none(wanted.headroom)
        else:
            self._fault(
                Severity.WARNING,
                f"qos.classes.{index}.headroom",
                wanted.headroom.value,
                "",
                "the NIC sizes its buffers from cable length and MTU",
            )
            headroom = NOT_APPLICABLE
        return replace(
            wanted,
            pfc_tx=tx,
            pfc_rx=rx,
            watchdog=_none(wanted.watchdog),
            ecn=_none(wanted.ecn),
            headroom=headroom,
            share=wanted.share if shares is None else shares[index],
            queue=wanted.queue if shares is None else self._queue(index, wanted.queue),
        )

    def _queue(self, index: int, wanted: Maybe[int]) -> Maybe[int]:
        return wanted if isinstance(wanted, int) and wanted in PRIORITIES else index

    def _shares(self, wanted: tuple[ClassState, ...]) -> list[Share | None] | None:
        """All eight: the driver checks the table as a whole."""
        capped = [self._capped(index, one) for index, one in enumerate(wanted)]
        shares = knobs.normal_shares(capped)
        for index, (one, share) in enumerate(zip(capped, shares or (), strict=False)):
            wish = one.share
            if isinstance(wish, Share) and share is not None and wish.scheduler == "dwrr":
                if wish.weight == share.weight:
                    continue
                self._fault(
                    Severity.NOTE,
                    f"qos.classes.{index}.share",
                    f"{wish.weight}",
                    f"{share.weight}%",
                    "weights of an mlx5 port are percentages that add up to 100",
                )
        return shares

    def _capped(self, index: int, one: ClassState) -> ClassState:
        share = one.share
        if not isinstance(share, Share) or not isinstance(share.cap, int):
            return one
        speed = self.port.speed_gbps
        if not speed:
            self._fault(
                Severity.WARNING,
                f"qos.classes.{index}.share",
                f"at most {share.cap}%",
                "",
                "the NIC wants Gb/s and the inventory gives no speed for the port",
            )
            return replace(one, share=replace(share, cap=UNMANAGED))
        used = round(knobs.gbps(share.cap, speed) * 100 / speed)
        if used != share.cap:
            self._fault(
                Severity.NOTE,
                f"qos.classes.{index}.share",
                f"at most {share.cap}%",
                f"{used}%",
                "rate limits are whole Gb/s",
            )
        return replace(one, share=replace(share, cap=used))

    # -- marking

    def _marking(self, wanted: Marking) -> Marking:
        found = replace(
            wanted,
            rdma_cm_tos=_dscp_only(wanted.rdma_cm_tos),
            traffic_class=_dscp_only(wanted.traffic_class),
            parameters=self._parameters(wanted.parameters),
        )
        return self._inbox(found) if self.hw.option("stack") == "inbox" else found

    def _inbox(self, wanted: Marking) -> Marking:
        """The distribution's driver has no files for these (reference, trap 12)."""
        if isinstance(wanted.traffic_class, int):
            self._fault(
                Severity.NOTE,
                "marking.traffic_class",
                wanted.traffic_class,
                "",
                "the inbox driver cannot force it: applications without RDMA-CM set their own (NCCL_IB_TC)",
            )
        for name in ("np", "rp"):
            value = getattr(wanted, name)
            if not isinstance(value, Absent):
                self._fault(
                    Severity.NOTE if value else Severity.WARNING,
                    f"marking.{name}",
                    ",".join(map(str, value)) or "off",
                    "",
                    "the inbox driver cannot switch DCQCN per priority; firmware has it on for all (NV "
                    "ROCE_CC_PRIO_MASK)",
                )
        return replace(
            wanted,
            traffic_class=_none(wanted.traffic_class),
            np=_none(wanted.np),
            rp=_none(wanted.rp),
        )

    def _parameters(self, wanted: Iterable[tuple[str, Maybe[str]]]) -> tuple[tuple[str, Maybe[str]], ...]:
        found: dict[str, Maybe[str]] = {}
        for name, value in wanted:
            neutral = knobs.neutral_parameter(name)
            if not neutral and value is not NOT_APPLICABLE:
                self._fault(
                    Severity.WARNING,
                    f"marking.parameters.{name}",
                    value,
                    "",
                    "mlx5 has no DCQCN parameter of that name",
                    f"its names are {', '.join(name for name, _, _ in knobs.PARAMETERS)}",
                )
            found[neutral or name] = value if neutral else NOT_APPLICABLE
        return tuple(sorted(found.items()))


def _none(value: Any) -> Any:
    """NOT_APPLICABLE for every wish; UNMANAGED stays."""
    return UNMANAGED if value is UNMANAGED else NOT_APPLICABLE


def _dscp_only(value: Any) -> Any:
    """A ToS byte without its ECN bits, as it is compared."""
    return value & 0xFC if isinstance(value, int) else value


PLATFORM = NicMlx5()
