"""The neutral state: what a node's RDMA settings are, wanted or observed, on any platform.

`resolve` fills these types from the intent, every platform's `parse` fills the same types from
device output, and everything after that (checks, drift, plans) compares two values of one type.
A field holds a value or one of three absences (`Absent`). Nothing here names a node, an address or
a moment, so that equal nodes share one object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final, Literal, TypeVar, Union

from rdma_fabric.findings import Position

PRIORITIES: Final = range(8)
"""PFC priorities = 802.1p values; never a queue number, which is local to a platform."""
DSCPS: Final = range(64)
MTU_MAX: Final = 65536
"""The wish "as large as the platform can": `realize` puts the platform's ceiling, without a fault."""


class Absent(Enum):
    """Why a field has no value."""

    UNKNOWN = "unknown"
    """Could not be read: equal to nothing, never "off"; blocks writing the field."""
    NOT_APPLICABLE = "not applicable"
    """This platform has no such thing."""
    UNMANAGED = "unmanaged"
    """Left to the device; never drift."""


UNKNOWN: Final = Absent.UNKNOWN
NOT_APPLICABLE: Final = Absent.NOT_APPLICABLE
UNMANAGED: Final = Absent.UNMANAGED

T = TypeVar("T")
Maybe = Union[T, Absent]  # noqa: UP007 (a generic alias needs Union on 3.11)


class NotJudged(Exception):
    """A rule asked for a value that is absent; the engine records "not judged"."""

    def __init__(self, absent: Absent, what: str = "") -> None:
        super().__init__(f"{what or 'value'} is {absent.value}")
        self.absent = absent
        self.what = what


def known(value: Maybe[T], what: str = "") -> T:
    """The value, or `NotJudged` when it is absent."""
    if isinstance(value, Absent):
        raise NotJudged(value, what)
    return value


def value_or(value: Maybe[T], default: T) -> T:
    """The value, or `default` when it is absent for any reason."""
    return default if isinstance(value, Absent) else value


@dataclass(frozen=True, slots=True)
class Amount:
    """A buffer amount. Cells and segments become bytes in the platform's `realize`."""

    value: int
    unit: Literal["bytes", "percent", "cells", "segments"] = "bytes"


@dataclass(frozen=True, slots=True)
class Ecn:
    """Marking ramp of one queue: nothing below kmin, pmax percent at kmax, everything above."""

    kmin: Amount
    kmax: Amount
    pmax: float = 100.0
    """Percent, 0 to 100."""
    others: Maybe[tuple[tuple[str, Amount, Amount, float], ...]] = UNMANAGED
    """(colour, kmin, kmax, pmax) for yellow and red where the intent owns them; green is kmin/kmax."""


@dataclass(frozen=True, slots=True)
class Share:
    """How a queue is served. `weight` is percent or relative, 0 for strict; `cap` is percent of line rate."""

    scheduler: Literal["strict", "dwrr"]
    weight: int = 0
    cap: Maybe[int | None] = UNMANAGED


@dataclass(frozen=True, slots=True)
class ClassState:
    """Settings of one priority (0 to 7) on one port."""

    pfc_tx: Maybe[bool] = UNMANAGED
    """We send pause for this priority."""
    pfc_rx: Maybe[bool] = UNMANAGED
    """We obey received pause for this priority."""
    watchdog: Maybe[bool] = UNMANAGED
    """A PFC storm watchdog guards this priority's queue."""
    ecn: Maybe[Ecn | None] = UNMANAGED
    """None: no marking."""
    headroom: Maybe[Amount | None] = UNMANAGED
    """Bytes written by hand; None: computed by the device."""
    share: Maybe[Share | None] = UNMANAGED
    """None: the device's default scheduling."""
    queue: Maybe[int] = UNMANAGED
    """Platform-local egress queue (traffic class) that serves this priority."""
    group: Maybe[int] = UNMANAGED
    """Platform-local ingress priority group or receive buffer of this priority."""


@dataclass(frozen=True, slots=True)
class WatchdogTimers:
    """PFC watchdog timing of a port; milliseconds."""

    detect_ms: Maybe[int] = UNMANAGED
    restore_ms: Maybe[int] = UNMANAGED
    poll_ms: Maybe[int] = UNMANAGED
    action: Maybe[str] = UNMANAGED
    """drop, forward, alert, errdisable, notify."""


Trust = Literal["dscp", "pcp", "both", "port"]
Dcbx = Literal["none", "ieee", "cee", "firmware"]


@dataclass(frozen=True, slots=True)
class QosState:
    """QoS of one port: how a packet gets its priority, and what each priority is given."""

    trust: Maybe[Trust] = UNMANAGED
    dscp_to_priority: Maybe[tuple[int, ...]] = UNMANAGED
    """64 priorities, index = DSCP."""
    pcp_to_priority: Maybe[tuple[int, ...]] = UNMANAGED
    """8 priorities, index = 802.1p value of the frame."""
    classes: tuple[ClassState, ...] = (ClassState(),) * 8
    """8 entries, index = priority."""
    watchdog: WatchdogTimers = WatchdogTimers()
    dcbx: Maybe[Dcbx] = UNMANAGED
    """Who may change PFC by protocol: none = only us; firmware = the NIC's agent."""
    global_pause: Maybe[bool] = UNMANAGED
    """802.3x pause, which must be off where PFC is on."""
    cable_m: Maybe[int] = UNMANAGED
    """Cable length in metres handed to the device for its headroom."""


@dataclass(frozen=True, slots=True)
class Mtu:
    """Sizes in bytes: `ip` counts the L3 packet, `frame` what the platform's own L2 number counts."""

    ip: Maybe[int] = UNMANAGED
    frame: Maybe[int] = UNMANAGED
    enforced: Maybe[bool] = UNMANAGED
    """False: the number is shown but larger frames pass (bridged ports of some platforms)."""


@dataclass(frozen=True, slots=True)
class Marking:
    """What a host writes into its own packets, and its DCQCN roles."""

    rdma_cm_tos: Maybe[int] = UNMANAGED
    """ToS byte of RDMA-CM connections (DSCP << 2)."""
    traffic_class: Maybe[int | None] = UNMANAGED
    """ToS byte that the NIC forces on all RoCE traffic; None: not forced."""
    roce_v2: Maybe[bool] = UNMANAGED
    cnp_dscp: Maybe[int] = UNMANAGED
    cnp_priority: Maybe[int] = UNMANAGED
    np: Maybe[tuple[int, ...]] = UNMANAGED
    """Priorities on which the notification point (CNP sender) is on."""
    rp: Maybe[tuple[int, ...]] = UNMANAGED
    """Priorities on which the reaction point (rate limiter) is on."""
    parameters: tuple[tuple[str, Maybe[str]], ...] = ()
    """DCQCN parameters by their vendor-neutral names (np_..., rp_...), sorted."""


@dataclass(frozen=True, slots=True)
class IbPort:
    """InfiniBand values of one port. All but `mode` and `children` are given by the subnet manager."""

    link: Maybe[str] = UNMANAGED
    """Logical state: active, armed, init, down."""
    mtu: Maybe[int] = UNMANAGED
    """NeighborMTU in bytes; what both ends of the cable can do, nobody sets it."""
    pkeys: Maybe[tuple[int, ...]] = UNMANAGED
    """P_Key table without empty entries, sorted; bit 15 = full member."""
    sl_to_vl: Maybe[tuple[int, ...]] = UNMANAGED
    """16 virtual lanes, index = service level; 15 = drop."""
    mode: Maybe[str] = UNMANAGED
    """IPoIB mode: datagram or connected."""
    children: Maybe[tuple[int, ...]] = UNMANAGED
    """P_Keys (with bit 15) that have an IPoIB interface of their own, sorted."""
    vls: Maybe[int] = UNMANAGED
    """Data lanes that its link operates (OperVLs): what both ends can do and the subnet manager allows."""
    vl_cap: Maybe[int] = UNMANAGED
    """Data lanes that the port itself can do (VLCap)."""


FIRMWARE_AGENT: Final = "LLDP agent in the firmware of {}"
"""An owner of a node's settings, with the port's name: it takes PFC and ETS from the switch by DCBX."""


@dataclass(frozen=True, slots=True)
class NicState:
    """The card behind a host's port. Only `nv` is wished; the rest is what the card and its driver say."""

    nv: tuple[tuple[str, Maybe[str]], ...] = ()
    """Non-volatile settings by their vendor's names without the port's number, numbers in place of words,
    sorted. running: in force since the last reset; stored: what the next reset brings."""
    board: Maybe[str] = UNMANAGED
    """Identifier of the firmware's parameter set (PSID)."""
    part: Maybe[str] = UNMANAGED
    """Part number."""
    firmware: Maybe[str] = UNMANAGED
    driver: Maybe[str] = UNMANAGED
    """Version of the kernel driver."""
    link: Maybe[str] = UNMANAGED
    """ethernet or infiniband, where the card can be either."""
    rdma_mtu: Maybe[int] = UNMANAGED
    """Bytes that one RDMA packet carries now (active_mtu)."""
    gids: Maybe[tuple[int, ...]] = UNMANAGED
    """Indexes of the GIDs for RoCE v2 over the port's own addresses, ascending."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of an InfiniBand subnet as the subnet manager has it."""

    name: str
    pkey: int
    """15 bits, without the membership bit."""
    ipoib: bool = False
    mtu: int = 2048
    """Of its IPoIB broadcast group, bytes."""
    rate: Maybe[str] = UNMANAGED
    """Gbit/s of its IPoIB broadcast group ("2.5", "100")."""
    sl: int = 0
    scope: Maybe[int] = UNMANAGED
    members: tuple[str, ...] = ()
    """"WHO=full", "WHO=limited", "WHO=both", sorted; WHO is a port GUID (0x and 16 digits), ALL, ALL_CAS,
    ALL_SWITCHES, ALL_ROUTERS or SELF."""
    groups: tuple[str, ...] = ()
    """Multicast GIDs besides the broadcast group, sorted."""
    index0: bool = False
    """Its P_Key is at index 0 of every member port."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """All partitions of a subnet, sorted by P_Key; compared as a whole, since one too many is a hole."""

    rows: tuple[Partition, ...] = ()

    def named(self, name: str) -> Partition | None:
        """The partition of that name, or None."""
        return next((one for one in self.rows if one.name == name), None)


@dataclass(frozen=True, slots=True)
class SmState:
    """The subnet manager of a node."""

    running: Maybe[bool] = UNMANAGED
    role: Maybe[str] = UNMANAGED
    """master or standby; follows from the priorities of all subnet managers, nobody sets it."""
    loaded: Maybe[bool] = UNMANAGED
    """The running process has read its files as they are now."""
    lids: Maybe[bool] = UNMANAGED
    """Its own table of LIDs has every port of the subnet as it is now: what it would give out as master."""
    guid: Maybe[str] = UNMANAGED
    """Port that it manages the subnet through."""
    priority: Maybe[int] = UNMANAGED
    lmc: Maybe[int] = UNMANAGED
    routing: Maybe[tuple[str, ...]] = UNMANAGED
    lfts: Maybe[str] = UNMANAGED
    """The file on the manager that routing engine `file` takes its forwarding tables from."""
    both: Maybe[bool] = UNMANAGED
    """A port may be full and limited member of one partition."""
    vls: Maybe[int] = UNMANAGED
    """Data virtual lanes in use: 1, 2, 4, 8 or 15."""
    sl_to_vl: Maybe[tuple[int, ...]] = UNMANAGED
    high_limit: Maybe[int] = UNMANAGED
    """4 KB units that the high-priority lanes may send before the others get a turn."""
    high: Maybe[tuple[str, ...]] = UNMANAGED
    """"LANE:WEIGHT" of the high-priority arbitration table; weight in 64-byte units."""
    low: Maybe[tuple[str, ...]] = UNMANAGED
    levels: Maybe[tuple[str, ...]] = UNMANAGED
    """Which traffic gets which service level, first match wins: "any, pkey 0x0010: 1", "default: 0"."""
    partitions: Maybe[Partitions] = UNMANAGED


@dataclass(frozen=True, slots=True)
class PortSettings:
    """All settings of one port; a few hundred distinct values in a fabric, shared."""

    mtu: Mtu = Mtu()
    qos: QosState = QosState()
    marking: Marking = Marking()
    ib: IbPort = IbPort()
    nic: NicState = NicState()


def _not_read(cls: Any, **given: Any) -> Any:
    return cls(**{item.name: given.get(item.name, UNKNOWN) for item in fields(cls)})


NOT_READ: Final = PortSettings(
    mtu=_not_read(Mtu),
    qos=_not_read(
        QosState, classes=(_not_read(ClassState),) * len(PRIORITIES), watchdog=_not_read(WatchdogTimers)
    ),
    marking=_not_read(Marking, parameters=()),
    ib=_not_read(IbPort),
    nic=_not_read(NicState, nv=()),
)
"""Settings of a port of which nothing could be read: every field is UNKNOWN."""

Origins = Mapping[str, Position]
"""Field path below the settings ("mtu", "qos.trust") -> where its value was written."""
NO_ORIGINS: Final[Origins] = {}


@dataclass(frozen=True, slots=True)
class PortState:
    """One port of a node. `speed_gbps` is the negotiated (observed) or planned speed."""

    name: str
    kind: Literal["physical", "bond", "svi", "vlan", "vf"] = "physical"
    settings: PortSettings = PortSettings()
    speed_gbps: Maybe[int] = UNMANAGED
    origins: Origins = field(default_factory=dict, compare=False, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class SystemState:
    """Node-wide settings. Each pair is (name, value); names sorted; only named keys are owned."""

    sysctl: tuple[tuple[str, Maybe[str]], ...] = ()
    modules: tuple[tuple[str, Maybe[bool]], ...] = ()
    """Kernel module -> loaded now and at boot."""
    module_options: tuple[tuple[str, Maybe[str]], ...] = ()
    """"module.parameter" -> value."""
    limits: tuple[tuple[str, Maybe[str]], ...] = ()
    """User limits, e.g. memlock -> unlimited."""
    environment: tuple[tuple[str, Maybe[str]], ...] = ()
    """NCCL / UCX variables of the node's job environment."""
    owners: Maybe[tuple[str, ...]] = UNMANAGED
    """Other agents found that write the same settings (lldpad, an operator, a macro)."""
    sm: SmState = SmState()
    origins: Origins = field(default_factory=dict, compare=False, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node without its name."""

    system: SystemState = SystemState()
    ports: tuple[PortState, ...] = ()

    def port(self, name: str) -> PortState | None:
        """The port of that name, or None."""
        return next((port for port in self.ports if port.name == name), None)


@dataclass(frozen=True, slots=True)
class Buffer:
    """When one priority of one port pauses its sender and lets it go on, in bytes, as the device has it.

    Read and judged, never wished: devices compute these numbers.
    """

    port: str
    priority: int
    pause_at: Maybe[int] = UNMANAGED
    """What has to wait before pause is sent; UNMANAGED where that moves with the shared pool."""
    resume_at: Maybe[int] = UNMANAGED
    """At or below this much the sender may go on."""
    apart: Maybe[int] = UNMANAGED
    """How far below the point of pause the sender may go on; the larger of the two points counts."""
    room: Maybe[int] = UNMANAGED
    """What can still arrive after the pause: the headroom."""
    name: str = ""
    """What the device calls it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one read-only session found. `stored` and `pending` are None where there is no such layer.

    `running` is what works now (operational where the device can show it), `stored` what a reboot
    brings back, `pending` what waits for a commit or a reset.
    """

    running: NodeState
    stored: NodeState | None = None
    pending: NodeState | None = None
    operational: bool = True
    """False: `running` was read from configuration only."""
    notes: tuple[str, ...] = ()
    """Things an operator should know (another session pending, a second owner, output not understood)."""
    neighbours: tuple[tuple[str, str, str], ...] = ()
    """LLDP: (local port, remote system name, remote port)."""
    facts: tuple[tuple[str, str], ...] = ()
    """What the device says it is: ("model", ...), ("version", ...); sorted."""
    evidence: str = ""
    """Digest of the own settings as read, to notice a change between plan and push."""
    buffers: tuple[Buffer, ...] = ()
    """Of lossless priorities, where the device shows them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not as wanted. `path` is dotted: ports.<name>.qos.trust, system.sysctl.<key>."""

    path: str
    wanted: Any
    found: Any

    @property
    def unknown(self) -> bool:
        """True when the field could not be read: it is neither equal nor different."""
        return self.found is UNKNOWN


def differences(wanted: Any, seen: Any, path: str = "") -> tuple[Difference, ...]:
    """Every owned field of `wanted` that `seen` does not match, in field order.

    UNMANAGED and NOT_APPLICABLE in `wanted` own nothing. Pair lists (sysctl ...) are compared by
    name, ports by name; what is owned of a name or port that `seen` does not have is UNKNOWN.
    """
    if wanted is seen:
        return ()
    return tuple(_walk(wanted, seen, path))


def _walk(wanted: Any, seen: Any, path: str) -> Iterator[Difference]:
    if wanted is UNMANAGED or wanted is NOT_APPLICABLE or wanted is seen:
        return
    if wanted == () and isinstance(seen, tuple) and (_pairs(seen) or is_dataclass(seen[0])):
        return
    if isinstance(seen, Absent) or type(wanted) is not type(seen) or not _nested(wanted):
        if wanted != seen or isinstance(seen, Absent):
            yield from _leaf(wanted, seen, path)
        return
    if isinstance(wanted, tuple):
        yield from _walk_tuple(wanted, seen, path)
        return
    for item in fields(wanted):
        if item.compare:
            yield from _walk(
                getattr(wanted, item.name),
                getattr(seen, item.name),
                f"{path}.{item.name}" if path else item.name,
            )


_LEAVES = (Amount, Ecn, Share, Partitions)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, _LEAVES)


def _nested(value: Any) -> bool:
    """True for values that are compared part by part: structures, pair lists, ports, classes."""
    if isinstance(value, _LEAVES):
        return False
    if isinstance(value, tuple):
        return bool(value) and (is_dataclass(value[0]) or _pairs(value))
    return is_dataclass(value)


def _pairs(value: tuple[Any, ...]) -> bool:
    return all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in value)


def _leaf(wanted: Any, seen: Any, path: str) -> Iterator[Difference]:
    """A difference for a leaf; of Ecn and Share only the owned parts count."""
    if isinstance(wanted, _LEAVES) and type(wanted) is type(seen):
        parts = [(getattr(wanted, item.name), getattr(seen, item.name)) for item in fields(wanted)]
        wrong = [have for want, have in parts if not isinstance(want, Absent) and want != have]
        if not wrong:
            return
        if all(have is UNKNOWN for have in wrong):
            seen = UNKNOWN
    yield Difference(path, wanted, seen)


def _walk_tuple(wanted: tuple[Any, ...], seen: tuple[Any, ...], path: str) -> Iterator[Difference]:
    if isinstance(wanted[0], PortState):
        by_name = {port.name: port for port in seen}
        for port in wanted:
            yield from _walk_port(port, by_name.get(port.name), f"{path}.{port.name}" if path else port.name)
    elif is_dataclass(wanted[0]):
        for index, item in enumerate(wanted):
            yield from _walk(item, seen[index], f"{path}.{index}")
    else:
        yield from _walk_pairs(wanted, seen, path)


def _walk_port(wanted: PortState, seen: PortState | None, path: str) -> Iterator[Difference]:
    yield from _walk(wanted.settings, NOT_READ if seen is None else seen.settings, path)


def _walk_pairs(wanted: tuple[Any, ...], seen: tuple[Any, ...], path: str) -> Iterator[Difference]:
    found = dict(seen)
    for name, value in wanted:
        yield from _walk(value, found.get(name, UNKNOWN), f"{path}.{name}")


def waiting(wanted: NodeState, seen: Observation) -> frozenset[str]:
    """Paths that are not as wanted now and will be after the reset that they wait for."""
    if seen.pending is None:
        return frozenset()
    now = {one.path for one in differences(wanted, seen.running)}
    return frozenset(now - {one.path for one in differences(wanted, seen.pending)})


def pfc_priorities(qos: QosState) -> Maybe[tuple[int, ...]]:
    """Priorities with PFC in either direction; an absence when one of the eight is absent."""
    on: list[int] = []
    for priority, state in enumerate(qos.classes):
        for side in (state.pfc_tx, state.pfc_rx):
            if isinstance(side, Absent):
                return side
        if state.pfc_tx or state.pfc_rx:
            on.append(priority)
    return tuple(on)


def owned_part(seen: NodeState, wanted: NodeState) -> NodeState:
    """What `seen` has in the fields that `wanted` owns; everything else UNMANAGED.

    This is what a journal records before a change: only settings of ours, nothing foreign.
    """
    ports = {port.name: port for port in seen.ports}
    kept = []
    for port in wanted.ports:
        have = ports.get(port.name)
        if have is not None:
            kept.append(PortState(port.name, port.kind, _mask(have.settings, port.settings), UNMANAGED))
    return NodeState(_mask(seen.system, wanted.system), tuple(kept))


def _mask(seen: Any, wanted: Any) -> Any:
    if wanted is UNMANAGED or wanted is NOT_APPLICABLE or seen is NOT_APPLICABLE:
        return UNMANAGED
    if is_dataclass(wanted) and not isinstance(wanted, _LEAVES) and type(seen) is type(wanted):
        values = {
            item.name: _mask(getattr(seen, item.name), getattr(wanted, item.name))
            for item in fields(wanted)
            if item.compare
        }
        return type(wanted)(**values)  # type: ignore[misc]
    if isinstance(wanted, tuple) and wanted and is_dataclass(wanted[0]):
        return tuple(_mask(have, want) for have, want in zip(seen, wanted, strict=True))
    if _is_leaf(wanted) and type(seen) is type(wanted):
        dropped = [item.name for item in fields(wanted) if getattr(wanted, item.name) is UNMANAGED]
        return replace(seen, **dict.fromkeys(dropped, UNMANAGED)) if dropped else seen
    if wanted == () and isinstance(seen, tuple) and (not seen or _pairs(seen)):
        return ()
    if isinstance(wanted, tuple) and isinstance(seen, tuple) and wanted and _pairs(wanted):
        found = dict(seen)
        return tuple((name, _mask(found.get(name, UNKNOWN), value)) for name, value in wanted)
    return seen


def settled(state: NodeState) -> NodeState:
    """The state without what other nodes decide: P_Keys of a host, which manager is master, LIDs.

    A node's own change is proved without it; drift and checks look at all of it.
    """
    given = dict.fromkeys(("link", "mtu", "pkeys", "sl_to_vl", "vls", "vl_cap"), UNMANAGED)
    plain = IbPort()
    ports = tuple(
        port
        if port.settings.ib == plain
        else replace(port, settings=replace(port.settings, ib=replace(port.settings.ib, **given)))
        for port in state.ports
    )
    sm = state.system.sm
    loaded = UNMANAGED if sm.loaded is False else sm.loaded  # nobody wishes files to be left unread
    sm = replace(sm, role=UNMANAGED, loaded=loaded, lids=UNMANAGED)
    if sm == state.system.sm:
        return state if ports == state.ports else replace(state, ports=ports)
    return replace(state, system=replace(state.system, sm=sm), ports=ports)


def forget_unknown(state: NodeState) -> NodeState:
    """The state with every UNKNOWN field UNMANAGED: what could not be read is not brought back."""
    result = _forget(state)
    assert isinstance(result, NodeState)
    return result


def _forget(value: Any) -> Any:
    if value is UNKNOWN:
        return UNMANAGED
    if is_dataclass(value) and not isinstance(value, type):
        kept = {item.name: _forget(getattr(value, item.name)) for item in fields(value) if item.compare}
        return type(value)(**kept)
    if isinstance(value, tuple):
        return tuple(_forget(one) for one in value)
    return value
