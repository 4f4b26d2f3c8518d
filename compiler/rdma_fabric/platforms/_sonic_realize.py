"""What a SONiC switch makes of a wish: ceilings, ranges, roundings, and what it cannot express."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeVar

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._contract import Fault, Realized
from rdma_fabric.platforms._shared import owned_ports, used_priorities, with_ports
from rdma_fabric.platforms._sonic_gcu import branch_of
from rdma_fabric.state import (
    MTU_MAX,
    NOT_APPLICABLE,
    PRIORITIES,
    UNMANAGED,
    Absent,
    Amount,
    ClassState,
    Ecn,
    Maybe,
    Mtu,
    NodeState,
    PortSettings,
    QosState,
    Share,
    WatchdogTimers,
)

T = TypeVar("T")

MTU_CEILING: Final = 9216
MTU_FLOOR: Final = 68
"""sonic-port.yang: 68..9216."""
DETECT_MS: Final = (100, 5000)
RESTORE_MS: Final = (100, 60000)
"""sonic-pfcwd.yang, all branches."""
ACTIONS: Final = ("drop", "forward", "alert")
CABLES: Final = (5, 40, 300)
"""Metres; the lengths that most SKUs' pg_profile_lookup.ini lists. Option `cable_lengths` names others."""
NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


def poll_ms(branch: int) -> tuple[int, int]:
    """Least and greatest POLL_INTERVAL in milliseconds (sonic-pfcwd.yang; lowered in 202511)."""
    return (100, 1000) if branch >= 202511 else (100, 3000)


def dynamic_buffers(hw: Hardware) -> bool:
    """True when the inventory says that the switch computes headroom for any cable length."""
    return hw.option("buffer_model") == "dynamic"


@dataclass
class _Wish:
    """One set of settings on one kind of port; collects what it cannot have."""

    hw: Hardware
    port: PortHardware
    faults: list[Fault] = field(default_factory=list)

    def fault(
        self, severity: Severity, setting: str, wanted: object, used: object, reason: str, help: str = ""
    ) -> None:
        self.faults.append(Fault(severity, "", setting, str(wanted), str(used), reason, help))

    def within(self, setting: str, number: int, bounds: tuple[int, int], what: str) -> int:
        """The nearest number inside the bounds; a note when that is another one."""
        used = min(max(number, bounds[0]), bounds[1])
        if used != number:
            self.fault(NOTE, setting, number, used, f"{what} goes from {bounds[0]} to {bounds[1]}")
        return used


def realize_node(wanted: NodeState, hw: Hardware) -> Realized:
    """The realized state and its faults; equal settings on equal ports are worked on once."""
    made: dict[tuple[object, ...], tuple[PortSettings, tuple[Fault, ...]]] = {}
    settings: dict[str, PortSettings] = {}
    faults: list[Fault] = []
    for port, hardware in owned_ports(wanted, hw):
        key = (id(port.settings), hardware.kind, hardware.speed_gbps, bool(hardware.members))
        if key not in made:
            wish = _Wish(hw, hardware)
            made[key] = (_settings(wish, port.settings), tuple(wish.faults))
        settings[port.name], found = made[key]
        faults += [replace(fault, port=port.name) for fault in found]
    _one_poll(settings, faults)
    _inherited(settings, hw, faults)
    return Realized(with_ports(wanted, settings), tuple(faults))


def _settings(wish: _Wish, wanted: PortSettings) -> PortSettings:
    qos = _qos(wish, wanted.qos) if wish.port.kind == "physical" else not_here(wanted.qos)
    made = replace(wanted, mtu=_mtu(wish, wanted.mtu), qos=qos)
    return wanted if made == wanted else made


def not_here(wanted: T) -> T:
    """The wish with every managed field not applicable: QoS is bound to physical ports only."""
    if isinstance(wanted, QosState | WatchdogTimers | ClassState):
        values = {item.name: not_here(getattr(wanted, item.name)) for item in fields(wanted)}
        return replace(wanted, **values)
    if isinstance(wanted, tuple) and wanted and isinstance(wanted[0], ClassState):
        return tuple(not_here(one) for one in wanted)  # type: ignore[return-value]
    return wanted if wanted is UNMANAGED else NOT_APPLICABLE  # type: ignore[return-value]


# ---------------------------------------------------------------- MTU


def _mtu(wish: _Wish, wanted: Mtu) -> Mtu:
    ip, frame = wanted.ip, wanted.frame
    if not isinstance(ip, Absent):
        ip = MTU_CEILING if ip == MTU_MAX else wish.within("mtu.ip", ip, (MTU_FLOOR, MTU_CEILING), "the MTU")
    if not isinstance(frame, Absent):
        wish.fault(NOTE, "mtu.frame", frame, "", "SONiC counts the IP packet; the ASIC adds 22 bytes itself")
        frame = NOT_APPLICABLE
    return replace(wanted, ip=ip, frame=frame)


def _inherited(settings: dict[str, PortSettings], hw: Hardware, faults: list[Fault]) -> None:
    """Members of a port channel have its MTU, subinterfaces their port's; a VLAN may not exceed its ports."""
    masters = {member: port.name for port in hw.ports if port.kind == "bond" for member in port.members}
    for port in hw.ports:
        master = port.parent if port.kind == "vlan" else masters.get(port.name, "")
        if master in settings and port.name in settings:
            _take_mtu(settings, port.name, master, faults)
    for port in hw.ports:
        if port.kind == "svi" and port.name in settings:
            _check_members(settings, port, faults)


def _take_mtu(settings: dict[str, PortSettings], name: str, master: str, faults: list[Fault]) -> None:
    own, theirs = settings[name].mtu.ip, settings[master].mtu.ip
    if isinstance(own, Absent) or isinstance(theirs, Absent) or own == theirs:
        return
    reason = f"{name} has the MTU of {master}"
    faults.append(Fault(WARNING, name, "mtu.ip", str(own), str(theirs), reason))
    settings[name] = replace(settings[name], mtu=replace(settings[name].mtu, ip=theirs))


def _check_members(settings: dict[str, PortSettings], port: PortHardware, faults: list[Fault]) -> None:
    own = settings[port.name].mtu.ip
    for member in port.members:
        least = settings[member].mtu.ip if member in settings else UNMANAGED
        if isinstance(own, int) and isinstance(least, int) and least < own:
            reason = f"a VLAN's MTU must not exceed that of its port {member}"
            help = f"give {member} at least {own}"
            faults.append(Fault(WARNING, port.name, "mtu.ip", str(own), str(own), reason, help))


# ---------------------------------------------------------------- QoS of a port


def _qos(wish: _Wish, wanted: QosState) -> QosState:
    trust = wanted.trust
    if trust == "both":
        reason = "whether a port obeys both maps, and which first, depends on the ASIC"
        wish.fault(WARNING, "qos.trust", "both", "dscp", reason, "trust dscp: RoCE v2 is always IP")
        trust = "dscp"
    wanted = replace(
        wanted,
        trust=trust,
        dscp_to_priority=_unless(trust in ("pcp", "port"), wanted.dscp_to_priority),
        pcp_to_priority=_pcp(trust, wanted.pcp_to_priority),
    )
    classes = _classes(wish, wanted)
    return replace(
        wanted,
        classes=classes,
        watchdog=_timers(wish, wanted.watchdog, any(one.watchdog is True for one in classes)),
        dcbx=_dcbx(wish, wanted),
        global_pause=_global_pause(wish, wanted),
        cable_m=_cable(wish, wanted.cable_m),
    )


def _unless(gone: bool, value: Maybe[T]) -> Maybe[T]:
    """A managed map that is not bound cannot be read back."""
    return NOT_APPLICABLE if gone and value is not UNMANAGED else value


def _pcp(trust: object, value: Maybe[tuple[int, ...]]) -> Maybe[tuple[int, ...]]:
    if trust == "pcp":
        return tuple(PRIORITIES) if isinstance(value, Absent) else value
    return _unless(trust in ("dscp", "port"), value)


def _dcbx(wish: _Wish, wanted: QosState) -> Any:
    if isinstance(wanted.dcbx, Absent) or wanted.dcbx == "none":
        return wanted.dcbx
    reason = "SONiC has no DCBX"
    wish.fault(ERROR, "qos.dcbx", wanted.dcbx, "none", reason, "set pfc.dcbx: none for this network")
    return "none"


def _global_pause(wish: _Wish, wanted: QosState) -> Maybe[bool]:
    if wanted.global_pause is True:
        wish.fault(WARNING, "qos.global_pause", "on", "", "SONiC has no setting for 802.3x pause")
    return wanted.global_pause if wanted.global_pause is UNMANAGED else NOT_APPLICABLE


def _cable(wish: _Wish, metres: Maybe[int]) -> Maybe[int]:
    """Rounded up to a length of the SKU's table: buffermgrd makes no headroom for any other."""
    if isinstance(metres, Absent) or metres == 0 or dynamic_buffers(wish.hw):
        return metres
    listed = _cable_lengths(wish.hw)
    used = next((length for length in listed if length >= metres), None)
    help = "name the lengths of the SKU's pg_profile_lookup.ini in the node's data: cable_lengths"
    if used is None:
        reason = f"headroom is computed for {', '.join(map(str, listed))} m only; the port would be lossy"
        wish.fault(ERROR, "qos.cable_m", f"{metres} m", f"{listed[-1]} m", reason, help)
        return listed[-1]
    if used != metres:
        reason = "headroom is computed for listed lengths only; the next longer one is used"
        wish.fault(NOTE, "qos.cable_m", f"{metres} m", f"{used} m", reason, help)
    return used


def _cable_lengths(hw: Hardware) -> tuple[int, ...]:
    words = hw.option("cable_lengths").replace("m", " ").replace(",", " ").split()
    return tuple(sorted(int(word) for word in words if word.isdigit())) or CABLES


# ---------------------------------------------------------------- watchdog


def _timers(wish: _Wish, wanted: WatchdogTimers, guarded: bool) -> WatchdogTimers:
    """A port without a guarded priority has no row in PFC_WD, and so no times."""
    if not guarded:
        wanted = replace(not_here(wanted), poll_ms=wanted.poll_ms)
    branch = branch_of(wish.hw.version)
    detect, restore, poll = wanted.detect_ms, wanted.restore_ms, wanted.poll_ms
    if not isinstance(detect, Absent):
        detect = wish.within("qos.watchdog.detect_ms", detect, DETECT_MS, "detection time (ms)")
    if not isinstance(restore, Absent):
        restore = wish.within("qos.watchdog.restore_ms", restore, RESTORE_MS, "restoration time (ms)")
    if not isinstance(poll, Absent):
        poll = wish.within("qos.watchdog.poll_ms", poll, poll_ms(branch), "the poll interval (ms)")
    return WatchdogTimers(detect, restore, poll, _action(wish, wanted.action))


def _action(wish: _Wish, action: Maybe[str]) -> Maybe[str]:
    if isinstance(action, Absent) or action in ACTIONS:
        return action
    used = "alert" if action == "notify" else "drop"
    severity = NOTE if action == "notify" else WARNING
    wish.fault(severity, "qos.watchdog.action", action, used, f"actions are {', '.join(ACTIONS)}")
    return used


def _one_poll(settings: dict[str, PortSettings], faults: list[Fault]) -> None:
    """PFC_WD|GLOBAL is one for the switch, and no time of a port may be shorter than it."""
    timers = {name: one.qos.watchdog for name, one in settings.items()}
    polls = [one.poll_ms for one in timers.values() if isinstance(one.poll_ms, int)]
    times = [ms for one in timers.values() for ms in (one.detect_ms, one.restore_ms) if isinstance(ms, int)]
    if not polls:
        return
    used = min((*polls, *times))
    for name, one in timers.items():
        if isinstance(one.poll_ms, Absent) or one.poll_ms == used:
            continue
        reason = "one poll interval serves all ports and may not exceed any detection or restoration time"
        faults.append(Fault(NOTE, name, "qos.watchdog.poll_ms", str(one.poll_ms), str(used), reason))
        qos = replace(settings[name].qos, watchdog=replace(one, poll_ms=used))
        settings[name] = replace(settings[name], qos=qos)


# ---------------------------------------------------------------- classes


def _classes(wish: _Wish, wanted: QosState) -> tuple[ClassState, ...]:
    used = set(used_priorities(wanted))
    if not isinstance(wanted.pcp_to_priority, Absent):
        used |= set(wanted.pcp_to_priority)
    sides = _sides(wish, wanted)
    groups = _groups(wish, wanted, tuple(tx for tx, _ in sides))
    return tuple(
        replace(
            one,
            pfc_tx=sides[priority][0],
            pfc_rx=sides[priority][1],
            watchdog=_watched(wish, priority, one, sides[priority][0]),
            ecn=_ecn(wish, f"qos.classes.{priority}.ecn", one.ecn),
            share=_share(wish, f"qos.classes.{priority}.share", one.share),
            headroom=_headroom(wish, f"qos.classes.{priority}.headroom", one.headroom, sides[priority][0]),
            queue=priority if priority in used else one.queue,
            group=groups[priority] if priority in used else one.group,
        )
        for priority, one in enumerate(wanted.classes)
    )


def _groups(wish: _Wish, wanted: QosState, sends: tuple[Maybe[bool], ...]) -> tuple[Maybe[int], ...]:
    """A lossless priority has a priority group of its own number, all others share one (stock layout)."""
    if any(isinstance(tx, Absent) for tx in sends):
        return tuple(one.group for one in wanted.classes)
    lossless = tuple(priority for priority, tx in enumerate(sends) if tx is True)
    shared = next((group for group in PRIORITIES if group not in lossless), 0)
    if 0 in lossless:
        reason = "group 0 carries all lossy traffic in SONiC's stock buffers"
        wish.fault(WARNING, "qos.classes.0.group", 0, 0, reason, "use another priority for lossless traffic")
    return tuple(priority if priority in lossless else shared for priority in PRIORITIES)


def _sides(wish: _Wish, wanted: QosState) -> tuple[tuple[Maybe[bool], Maybe[bool]], ...]:
    """PFC works in both directions, or (pfc_asym) is obeyed on all eight priorities."""
    sides = tuple((one.pfc_tx, one.pfc_rx) for one in wanted.classes)
    if all(rx is True for _, rx in sides):
        return sides
    found: list[tuple[Maybe[bool], Maybe[bool]]] = []
    for priority, (tx, rx) in enumerate(sides):
        if isinstance(tx, Absent) and isinstance(rx, bool):
            tx = rx  # owning one direction is owning both
        elif isinstance(rx, Absent) and isinstance(tx, bool):
            rx = tx
        if isinstance(tx, Absent) or isinstance(rx, Absent) or tx == rx:
            found.append((tx, rx))
            continue
        setting = f"qos.classes.{priority}.pfc_{'rx' if rx else 'tx'}"
        reason = "PFC of a priority is on or off in both directions"
        wish.fault(ERROR, setting, "one direction only", "both directions", reason)
        found.append((True, True))
    return tuple(found)


def _watched(wish: _Wish, priority: int, one: ClassState, lossless: Maybe[bool]) -> Maybe[bool]:
    if one.watchdog is True and lossless is False:
        reason = "the watchdog guards priorities with PFC only"
        wish.fault(WARNING, f"qos.classes.{priority}.watchdog", "on", "off", reason)
        return False
    return one.watchdog


def _bytes(wish: _Wish, setting: str, amount: Amount) -> Amount | None:
    if amount.unit == "bytes":
        return amount
    cell = wish.hw.asic.cell_bytes if wish.hw.asic else 0
    if amount.unit == "cells" and cell:
        return Amount(amount.value * cell)
    reason = "SONiC takes bytes" + ("; the cell size of this model is not known" * (amount.unit == "cells"))
    wish.fault(ERROR, setting, f"{amount.value} {amount.unit}", "", reason, "write the number of bytes")
    return None


def _ecn(wish: _Wish, setting: str, wanted: Maybe[Ecn | None]) -> Maybe[Ecn | None]:
    if wanted is None or isinstance(wanted, Absent):
        return wanted
    green = _ramp(wish, setting, wanted.kmin, wanted.kmax, wanted.pmax)
    if green is None:
        return NOT_APPLICABLE
    others = wanted.others
    if not isinstance(others, Absent):
        rows = {name: _ramp(wish, setting, low, high, percent) for name, low, high, percent in others}
        # Owning one colour is owning the profile: what is not named marks as green does.
        others = tuple((name, *(rows.get(name) or green)) for name in ("yellow", "red"))
    return Ecn(*green, others=others)


def _ramp(
    wish: _Wish, setting: str, low: Amount, high: Amount, percent: float
) -> tuple[Amount, Amount, float] | None:
    least, most = _bytes(wish, setting, low), _bytes(wish, setting, high)
    if least is None or most is None:
        return None
    if least.value > most.value:
        reason = "the updater refuses a maximum below the minimum"
        wish.fault(ERROR, setting, f"{least.value} to {most.value} bytes", "", reason)
        return None
    chance = min(100, max(1, round(percent))) if percent > 0 else 0
    if chance != percent:
        wish.fault(NOTE, setting, f"{percent:g}%", f"{chance}%", "the probability is a whole percentage")
    return least, most, float(chance)


def _share(wish: _Wish, setting: str, wanted: Maybe[Share | None]) -> Maybe[Share | None]:
    if wanted is None or isinstance(wanted, Absent):
        return wanted
    weight = 0 if wanted.scheduler == "strict" else wish.within(setting, wanted.weight, (1, 100), "a weight")
    cap = wanted.cap
    if isinstance(cap, int):
        if not wish.port.speed_gbps:
            wish.fault(WARNING, setting, f"cap {cap}%", "", "a cap is bytes per second: the speed is unknown")
            cap = UNMANAGED
        else:
            cap = wish.within(setting, cap, (1, 100), "a cap (percent of the line rate)")
    return Share(wanted.scheduler, weight, cap)


def _headroom(
    wish: _Wish, setting: str, wanted: Maybe[Amount | None], sends: Maybe[bool]
) -> Maybe[Amount | None]:
    if wanted is None or isinstance(wanted, Absent):
        return wanted
    if sends is not True:
        reason = "headroom belongs to a priority with PFC; all others share one group"
        wish.fault(WARNING, setting, f"{wanted.value} {wanted.unit}", "", reason)
        return NOT_APPLICABLE
    made = _bytes(wish, setting, wanted)
    return NOT_APPLICABLE if made is None else made
