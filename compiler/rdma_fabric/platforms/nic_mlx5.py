"""NVIDIA ConnectX-5 and later, BlueField (driver mlx5) on a Linux host: QoS and marking of its ports.

Two stacks: "inbox" (distribution kernel) and "ofed" (vendor driver, with ecn/ and tc/ files). Facts:
Linux 6.1 drivers, mlnx-tools, the vendor driver's sysfs source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import _host_vitals as vital
from rdma_fabric.platforms import _nic_mlx5_card as cards
from rdma_fabric.platforms import _nic_mlx5_knobs as knobs
from rdma_fabric.platforms import _nic_mlx5_nv as nv
from rdma_fabric.platforms import _nic_mlx5_read as reader
from rdma_fabric.platforms._contract import (
    Artifact,
    Change,
    Dialect,
    Disturbance,
    Disturbs,
    Fault,
    Probe,
    Put,
    Realized,
    Traits,
)
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._nic_mlx5_probes import probes
from rdma_fabric.platforms._nic_mlx5_realize import Realize
from rdma_fabric.platforms._node import joined
from rdma_fabric.platforms._shared import digest, with_ports
from rdma_fabric.state import (
    NOT_APPLICABLE,
    PRIORITIES,
    UNMANAGED,
    ClassState,
    Marking,
    NicState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    SystemState,
    WatchdogTimers,
)
from rdma_fabric.templating import render_lines
from rdma_fabric.vitals import Vitals

_NIC: Final = "mlx5"
_COUNTERS: Final[vital.Rows] = (
    (r"rx_prio([0-7])_pause", "pause-rx"),
    (r"tx_prio([0-7])_pause", "pause-tx"),
    (r"rx_prio([0-7])_discards", "drops"),
    (r"[rt]x_discards_phy", "discards"),
    (r"rx_crc_errors_phy", "crc"),
    (r"rx_symbol_err(?:ors)?_phy", "symbol"),
    (r"link_down_events_phy", "down"),
    (r"np_ecn_marked_roce_packets", "marks"),
    (r"packet_seq_err|out_of_sequence|local_ack_timeout_err", "retries"),
    (r"rx_icrc_encapsulated", "crc"),
)
"""Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst; hw_counters:
"Understanding mlx5 Linux Counters and Status Parameters". Older drivers say rx_symbol_errors_phy."""
_DEFAULTS: Final = PortSettings(
    qos=QosState(
        trust="pcp",
        pcp_to_priority=tuple(PRIORITIES),
        classes=(ClassState(pfc_tx=False, pfc_rx=False),) * 8,
    ),
    marking=Marking(rdma_cm_tos=0, roce_v2=True, cnp_dscp=48, cnp_priority=6),
)
_LIBRARY: Final = f"{host.QOS_PROGRAM}-{_NIC}"

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
    BUFFERS: str = ""
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
        drivers=("mlx5_core",),
        evidence="driver and tool sources; tool outputs made with the real programs",
        tested="simulated tools in real Linux sandboxes",
        cannot=(
            "a PFC watchdog per queue: only how long the NIC itself may send pause (80 to 8000 ms)",
            "PFC in one direction",
            "mark ECN: switches do; the host only reacts",
            "set thresholds of buffers: the driver computes them from cable length and MTU",
            "on the inbox stack: DCQCN per priority and a forced traffic class",
            "reset a card: NV settings count after its next reset; the node is pending-reset until then",
            "change the link type of a card, or the mode of a BlueField; burn firmware",
        ),
        netdev_bound=host.NETDEV_BOUND,
        nv=True,
        defaults=_DEFAULTS,
        defaults_source="mlnx-tools mlnx_qos and Linux 6.1 en_dcbnl.c (trust, PFC); public dumps of "
        "mlxconfig (CNP_DSCP 48, CNP_802P_PRIO 6); Linux 6.1 cma_configfs.c (ToS)",
    )

    # ------------------------------------------------------------ realize

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """All eight traffic classes, both directions of PFC, the timers that the NIC has."""
        faults: list[Fault] = []
        found: dict[str, PortSettings] = {}
        for port in host.ports_of(hw, _NIC):
            state = wanted.port(port.name)
            if state is not None:
                one = Realize(port, hw, faults).settings(state.settings)
                if one != state.settings:
                    found[port.name] = one
        return Realized(with_ports(wanted, found) if found else wanted, tuple(faults))

    # ------------------------------------------------------------ read

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        ports = host.ports_of(hw, _NIC)
        asked = qos_file.Asked.of(ports, addresses=True)
        return (host.question("nic_mlx5/observe.sh.j2", asked),) if ports else ()

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state of mlx5 ports; running is operational."""
        parts = host.sections("\n".join(answers.get(question, "") for question in self.questions(hw)))
        asked = hw.option("nv").split()
        live, kept, notes, waiting = [], [], [], []
        owners: set[str] = set()
        facts: dict[str, str] = {}
        for port in host.ports_of(hw, _NIC):
            stack = parts.get(f"stack {port.name}", Section()).text.strip() or hw.option("stack", "ofed")
            conf, link = parts.get(f"conf {port.name}", Section()), parts.get(f"wants {port.name}", Section())
            card = cards.card(parts, port.name, asked)
            now = knobs.settings_of(reader.port_knobs(parts, port.name), port, stack)
            boot = knobs.settings_of(qos_file.stored(conf, link, knobs.DEFAULTS), port, stack)
            now, boot = replace(now, nic=card.running), replace(boot, nic=card.stored)
            live.append(PortState(port.name, port.kind, _by_kind(now, port)))
            kept.append(PortState(port.name, port.kind, _by_kind(boot, port)))
            waiting.append((port, card.pending if port.kind == "physical" else ()))
            notes += [*reader.notes(parts, port.name), *card.notes]
            owners.update((*reader.owners(parts, port.name), *card.owners))
            facts |= dict(card.facts)
            if stack != (wish := hw.option("stack", "ofed")):
                notes.append(
                    f"{port.name}: its driver is of the {stack} stack, the inventory says {wish}; "
                    f"write `stack: {stack}` in the node's data"
                )
            facts |= _facts(parts, port, stack)
            device = facts.get(f"rdma {port.name}", "")
            if port.rdma and device and device != port.rdma:
                notes.append(f"{port.name}: its RDMA device is {device}, the inventory says {port.rdma}")
            if not parts.get(f"stack {port.name}", Section()).ok:
                notes.append(f"{port.name}: the answer about its NIC was not understood")
        system = SystemState(owners=tuple(sorted(owners)) or UNMANAGED)
        state, stored = NodeState(system, tuple(live)), NodeState(ports=tuple(kept))
        return Observation(
            running=state,
            stored=stored,
            pending=nv.layers(waiting),
            notes=tuple(notes),
            facts=tuple(sorted(facts.items())),
            evidence=digest((_written(state), _written(stored))),
        )

    # ------------------------------------------------------------ write

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        return vital.questions(host.ports_of(hw, _NIC), "nic")

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """What the driver and the RDMA device count."""
        return vital.nic(answers, host.ports_of(hw, _NIC), _COUNTERS)

    def context(self, wanted: NodeState, hw: Hardware) -> Library:
        """For the library file; settings files have contexts of their own."""
        return Library()

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """The program, what starts it, the mlx5 library and one settings file per port."""
        found = []
        for port in host.ports_of(hw, _NIC):
            state = wanted.port(port.name)
            rows = knobs.knobs_of(state.settings, port) if state is not None else {}
            if rows:
                head = {"NIC": _NIC, **({"RDMA": port.rdma} if port.rdma else {})}
                context = qos_file.Context(rows=tuple({**head, **rows}.items()))
                path = f"{host.QOS_FOLDER}/{port.name}.conf".removeprefix("/")
                found.append(Artifact("_shared/host/port.conf.j2", path, 0o644, context))
        ports = host.ports_of(hw, _NIC)
        if found:
            library = Artifact("nic_mlx5/mlx5.sh.j2", _LIBRARY.removeprefix("/"), 0o644, Library())
            found = [*qos_file.common_artifacts(), library, *found]
        return (*found, *nv.artifacts(wanted, ports))

    def probes(self, wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
        """QoS and marking of the ports."""
        return probes(wanted, hw)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Settings files, then `fabric-qos PORT`, which writes only what differs."""
        facts = dict(seen.facts)
        ports = host.ports_of(hw, _NIC)
        qos = qos_file.PortsChange(
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
            _replaceable(seen, ports),
        ).build()
        return joined(qos, nv.NvChange(seen, wanted, hw, ports).build())


def _written(state: NodeState) -> NodeState:
    """What is written; addresses and versions that a card shows may change between a plan and its push."""
    ports = tuple(
        replace(port, settings=replace(port.settings, nic=NicState(nv=port.settings.nic.nv)))
        for port in state.ports
    )
    return NodeState(ports=ports)


def _replaceable(seen: Observation, ports: Iterable[PortHardware]) -> dict[str, str]:
    """DSCP maps that are not known as a whole, and are written as a whole: all 64 points."""
    facts = dict(seen.facts)
    found = {}
    for port in ports:
        state = seen.running.port(port.name)
        guess = facts.get(f"dscp {port.name}", "")
        if state is not None and (guess or state.settings.qos.trust == "pcp"):
            found[f"ports.{port.name}.qos.dscp_to_priority"] = guess
    return found


def _library() -> Put:
    return host.put(_LIBRARY, "nic_mlx5/mlx5.sh.j2", Library())


def _facts(parts: Mapping[str, Section], port: PortHardware, stack: str) -> dict[str, str]:
    found = {f"stack {port.name}": stack}
    device = parts.get(f"rdma {port.name}", Section())
    if device.ok and device.text.strip():
        found[f"rdma {port.name}"] = device.text.strip()
    if keys := qos_file.in_file(parts.get(f"conf {port.name}", Section())):
        found[f"conf {port.name}"] = keys
    if not parts.get(f"qos {port.name}", Section()).asked:
        found[f"tool {port.name}"] = "dcb"
    if guess := reader.partial_map(parts, port.name):
        found[f"dscp {port.name}"] = guess
    return found


def _lines(
    port: PortHardware, now: Mapping[str, str], before: Mapping[str, str], facts: Mapping[str, str]
) -> tuple[str, ...]:
    """The commands that `fabric-qos` will run for these knobs."""
    tool = facts.get(f"tool {port.name}", "mlnx_qos")
    plain = {key: value for key, value in now.items() if key in Lines.__dataclass_fields__}
    if "RATELIMIT" in plain:
        plain["RATELIMIT"] = _kept(plain["RATELIMIT"], before.get("RATELIMIT", ""))
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


def _kept(wanted: str, before: str) -> str:
    """A list in which "-" keeps what the port has."""
    have = before.split(",")
    pairs = enumerate(wanted.split(","))
    return ",".join(have[index] if word == "-" and len(have) == 8 else word for index, word in pairs)


def _role(role: str, wanted: str, before: str) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    new = {int(word) for word in wanted.split(",") if word.isdigit()}
    old = {int(word) for word in before.split(",") if word.isdigit()}
    return role, tuple(sorted(new - old)), tuple(sorted(old - new))


def _disturbs(changed: Mapping[str, tuple[str, ...]]) -> tuple[Disturbance, ...]:
    """By knob: what the driver does with the port."""
    table = (
        (Disturbs.PORT_BOUNCE, ("PFC",), "the PFC set changes", _BOUNCE),
        (Disturbs.PORT_BOUNCE, ("PRIO2BUFFER", "BUFFERS", "CABLE"), "receive buffers change", _BUFFER),
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
        return settings if port.kind == "physical" else replace(settings, nic=NicState())
    return PortSettings(_NO_MTU, _no_qos(), host.all_fields(Marking, NOT_APPLICABLE))


_NO_MTU: Final = PortSettings().mtu


def _no_qos() -> QosState:
    none = host.all_fields(ClassState, NOT_APPLICABLE)
    timers = host.all_fields(WatchdogTimers, NOT_APPLICABLE)
    plain: QosState = host.all_fields(QosState, NOT_APPLICABLE)
    return replace(plain, classes=(none,) * len(PRIORITIES), watchdog=timers)


PLATFORM = NicMlx5()
