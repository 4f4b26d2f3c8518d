"""What a Cumulus Linux switch makes of a wish: ceilings, roundings, and what it cannot express."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._contract import Fault, Realized
from rdma_fabric.platforms._cumulus_read import NO_QOS
from rdma_fabric.platforms._cumulus_tree import CONTROL, DEFAULT_SHARES, POLL_MS
from rdma_fabric.platforms._shared import (
    distinct,
    owned_ports,
    used_priorities,
    with_class,
    with_ports,
)
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

MTU_FLOOR, MTU_CEILING = 552, 9216
"""Help text of `nv set interface swp1 link mtu ?` (NVUE CLI page, 5.14)."""
_CABLE: Final = (1, 100_000)  # NVUE reference, QoS
_POLL: Final = (100, 5_000)  # What's New 5.6: `nv set qos pfc-watchdog polling-interval 100-5000`
_TIMES: Final = (1, 1_000)  # What's New 5.6: `nv set qos pfc-watchdog robustness 1-1000`
OLDEST: Final = (5, 5)
"""Profiles of ports are from 5.4 (NVUE reference), `nv config revision` from 5.5 (Config Commands)."""
_WATCHDOG_FROM: Final = (5, 6)
NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@dataclass
class _Wish:
    """Collects what one set of settings cannot have; the port's name is filled in later."""

    hw: Hardware
    port: PortHardware
    faults: list[Fault] = field(default_factory=list)

    def fault(
        self, severity: Severity, setting: str, wanted: object, used: object, reason: str, help: str = ""
    ) -> None:
        self.faults.append(Fault(severity, "", setting, str(wanted), str(used), reason, help))


def realize_node(wanted: NodeState, hw: Hardware) -> Realized:
    """The realized state and its faults; equal settings are worked on once."""
    made: dict[tuple[int, str, bool], tuple[PortSettings, tuple[Fault, ...]]] = {}
    settings: dict[str, PortSettings] = {}
    faults: list[Fault] = list(_too_old(hw))
    for port, one in owned_ports(wanted, hw):
        key = (id(port.settings), one.kind, _members_known(one, hw))
        if key not in made:
            made[key] = _settings(port.settings, one, hw)
        settings[port.name], found = made[key]
        faults += [replace(fault, port=port.name) for fault in found]
    agreed = _agree(settings, faults)
    return Realized(with_ports(wanted, agreed), tuple(faults))


def _too_old(hw: Hardware) -> tuple[Fault, ...]:
    if not hw.release() or hw.release() >= OLDEST:
        return ()
    reason = "profiles of single ports and the list of revisions are not there before Cumulus Linux 5.5"
    return (Fault(ERROR, "", "qos", f"version {hw.version}", "", reason, "upgrade the switch"),)


def _members_known(port: PortHardware, hw: Hardware) -> bool:
    """True when every member of a bond is a port of ours, so that it has QoS of its own."""
    return bool(port.members) and all(hw.port(name) for name in port.members)


def _settings(
    wanted: PortSettings, port: PortHardware, hw: Hardware
) -> tuple[PortSettings, tuple[Fault, ...]]:
    wish = _Wish(hw, port)
    mtu = _mtu(wish, wanted.mtu)
    qos = _qos(wish, wanted.qos) if port.kind == "physical" else _elsewhere(wish, wanted.qos)
    made = replace(wanted, mtu=mtu, qos=qos)
    return (wanted if made == wanted else made), tuple(wish.faults)


def _elsewhere(wish: _Wish, wanted: QosState) -> QosState:
    """QoS of bonds and VLAN interfaces is that of the physical ports below."""
    made: QosState = _not_here(wanted, NO_QOS)
    if wish.port.kind == "bond" and made != wanted and not _members_known(wish.port, wish.hw):
        wish.fault(
            WARNING,
            "qos",
            "QoS of a bond",
            "",
            "profiles and the watchdog belong to physical ports",
            "put the members of the bond into the network too",
        )
    return made


def _not_here(wanted: Any, absent: Any) -> Any:
    """The wish with every managed field not applicable."""
    if isinstance(wanted, QosState | WatchdogTimers | ClassState):
        names = wanted.__dataclass_fields__
        values = {name: _not_here(getattr(wanted, name), getattr(absent, name)) for name in names}
        return replace(wanted, **values)
    if isinstance(wanted, tuple) and wanted and isinstance(wanted[0], ClassState):
        return tuple(_not_here(one, none) for one, none in zip(wanted, absent, strict=True))
    return wanted if wanted is UNMANAGED else NOT_APPLICABLE


# ---------------------------------------------------------------- MTU


def _mtu(wish: _Wish, wanted: Mtu) -> Mtu:
    ip, frame = wanted.ip, wanted.frame
    if isinstance(ip, int):
        ip = _bounded_mtu(wish, ip)
    if not isinstance(frame, Absent):
        wish.fault(NOTE, "mtu.frame", frame, "", "link mtu counts the IP packet; there is no other number")
        frame = NOT_APPLICABLE
    return Mtu(ip, frame, wanted.enforced)


def _bounded_mtu(wish: _Wish, ip: int) -> int:
    if ip == MTU_MAX:
        return MTU_CEILING
    used = max(MTU_FLOOR, min(ip, MTU_CEILING))
    if used != ip:
        reason = f"link mtu takes {MTU_FLOOR} to {MTU_CEILING} bytes of IP packet"
        wish.fault(NOTE, "mtu.ip", ip, used, reason, "write `max` for the largest one")
    return used


# ---------------------------------------------------------------- QoS of one port


def _qos(wish: _Wish, wanted: QosState) -> QosState:
    qos = replace(
        wanted,
        dcbx=_dcbx(wish, wanted),
        classes=tuple(_class(wish, priority, state) for priority, state in enumerate(wanted.classes)),
    )
    qos = _directions(wish, qos)
    used = used_priorities(qos)
    for priority, state in enumerate(qos.classes):
        # Marking that is off must not follow from sharing another priority's traffic class either.
        if state.queue is UNMANAGED and (priority in used or state.ecn is None):
            qos = with_class(qos, priority, queue=priority)
    qos = _one_queue(wish, qos)
    qos = replace(_watchdog(wish, qos), cable_m=_cable(wish, qos))
    _pause(wish, qos)
    return _shares(wish, qos)


def _dcbx(wish: _Wish, wanted: QosState) -> Any:
    if wanted.dcbx in ("cee", "firmware"):
        reason = "Cumulus Linux advertises IEEE TLVs or none, and follows nobody"
        wish.fault(WARNING, "qos.dcbx", wanted.dcbx, "none", reason)
        return "none"
    return wanted.dcbx


def _class(wish: _Wish, priority: int, state: ClassState) -> ClassState:
    path = f"qos.classes.{priority}"
    headroom = state.headroom
    if isinstance(headroom, Amount):
        wish.fault(
            ERROR,
            f"{path}.headroom",
            f"{headroom.value} {headroom.unit}",
            "",
            "NVIDIA's pages disagree on whether xoff-threshold counts inside or beside port-buffer",
            "write headroom: auto; the switch computes it from the cable length",
        )
        headroom = NOT_APPLICABLE
    return replace(
        state,
        headroom=headroom,
        ecn=_ecn(wish, path, state.ecn),
        share=_share(wish, path, priority, state.share),
        group=UNMANAGED if state.group is UNMANAGED else NOT_APPLICABLE,
    )


def _ecn(wish: _Wish, path: str, wanted: Maybe[Ecn | None]) -> Maybe[Ecn | None]:
    if wanted is None or isinstance(wanted, Absent):
        return wanted
    path = f"{path}.ecn"
    low = _threshold(wish, f"{path}.kmin", wanted.kmin)
    high = _threshold(wish, f"{path}.kmax", wanted.kmax)
    if low is None or high is None:
        return NOT_APPLICABLE
    if low > high:
        wish.fault(ERROR, f"{path}.kmin", low, "", f"min-threshold is above max-threshold {high}")
        return NOT_APPLICABLE
    if low == high:
        wish.fault(NOTE, f"{path}.kmax", high, high + 1, "max-threshold stays above min-threshold")
        high += 1
    percent = min(max(int(wanted.pmax + 0.5), 1), 100)
    if percent != wanted.pmax:
        wish.fault(NOTE, f"{path}.pmax", f"{wanted.pmax}%", f"{percent}%", "whole percents from 1 to 100")
    others = wanted.others
    if not isinstance(others, Absent):
        wish.fault(NOTE, f"{path}.others", "per colour", "", "a traffic class has one ramp for all colours")
        others = NOT_APPLICABLE
    return Ecn(Amount(low), Amount(high), float(percent), others)


def _threshold(wish: _Wish, path: str, wanted: Amount) -> int | None:
    """The threshold in bytes, None when NVUE cannot have it."""
    cell = wish.hw.asic.cell_bytes if wish.hw.asic else 0
    text = f"{wanted.value} {wanted.unit}"
    if wanted.unit == "percent":
        reason, help = "NVUE has no thresholds in percent of the queue", "write the threshold in bytes"
    elif wanted.unit != "bytes" and not cell:
        reason = "the size of a buffer cell of this model is not known"
        help = "write the threshold in bytes, or set the node's model"
    else:
        value = wanted.value if wanted.unit == "bytes" else wanted.value * cell
        if 0 <= value < 2**32:
            return value
        reason, help = "thresholds are 0 to 4294967295 bytes", ""
    wish.fault(ERROR, path, text, "", reason, help)
    return None


def _share(wish: _Wish, path: str, priority: int, wanted: Maybe[Share | None]) -> Maybe[Share | None]:
    if isinstance(wanted, Absent):
        return wanted
    if wanted is None:
        return DEFAULT_SHARES[priority]
    made = Share("strict") if wanted.scheduler == "strict" else Share("dwrr", max(wanted.weight, 0))
    if wanted.cap is not UNMANAGED:
        if isinstance(wanted.cap, int):
            wish.fault(WARNING, f"{path}.share.cap", f"{wanted.cap}%", "", "rate caps are not written")
        made = replace(made, cap=NOT_APPLICABLE)
    return made


def _directions(wish: _Wish, qos: QosState) -> QosState:
    """tx and rx are switches of a pfc profile, for all its priorities at once."""
    sides = {
        side: any(getattr(state, side) is True for state in qos.classes) for side in ("pfc_tx", "pfc_rx")
    }
    paused = [p for p, state in enumerate(qos.classes) if state.pfc_tx is True or state.pfc_rx is True]
    for priority in paused:
        for side, on in sides.items():
            if on and getattr(qos.classes[priority], side) is False:
                wish.fault(
                    ERROR,
                    f"qos.classes.{priority}.{side}",
                    "off",
                    "on",
                    "a port sends (or obeys) pause for all its PFC priorities or for none",
                    "give all lossless classes of the port the same directions",
                )
                qos = with_class(qos, priority, **{side: True})
    if len(paused) > 1:
        wish.fault(
            NOTE,
            "qos.pfc",
            ",".join(map(str, paused)),
            "one priority group",
            "a port has one lossless priority group: all PFC priorities share its buffer and headroom",
        )
    return qos


def _one_queue(wish: _Wish, qos: QosState) -> QosState:
    """Priorities in one traffic class have one ramp and one share; the lowest priority's is used."""
    for name in ("ecn", "share"):
        first: dict[int, tuple[int, Any]] = {}
        for priority, state in enumerate(qos.classes):
            queue, value = state.queue, getattr(state, name)
            if isinstance(queue, Absent) or isinstance(value, Absent):
                continue
            owner, used = first.setdefault(queue, (priority, value))
            if value != used:
                wish.fault(
                    ERROR,
                    f"qos.classes.{priority}.{name}",
                    "its own",
                    f"that of priority {owner}",
                    f"priorities {owner} and {priority} share traffic class {queue}",
                )
                qos = with_class(qos, priority, **{name: used})
    return qos


def _cable(wish: _Wish, qos: QosState) -> Maybe[int]:
    """The length is part of a pfc profile: a port without PFC has none."""
    wanted = qos.cable_m
    if isinstance(wanted, Absent):
        return wanted
    if not any(state.pfc_tx is True or state.pfc_rx is True for state in qos.classes):
        return NOT_APPLICABLE
    used = min(max(wanted, _CABLE[0]), _CABLE[1])
    if used != wanted:
        wish.fault(NOTE, "qos.cable_m", f"{wanted} m", f"{used} m", "cable-length takes 1 to 100000 m")
    return used


def _pause(wish: _Wish, qos: QosState) -> None:
    if qos.global_pause is True and any(s.pfc_tx is True or s.pfc_rx is True for s in qos.classes):
        reason = "link pause and PFC cannot be configured on the same port"
        wish.fault(ERROR, "qos.global_pause", "on", "", reason, "turn 802.3x pause off on lossless ports")


def _weights(qos: QosState) -> dict[int, int]:
    """Traffic class -> weight of its managed share, 0 for strict."""
    return {
        state.queue: state.share.weight
        for state in qos.classes
        if isinstance(state.share, Share) and not isinstance(state.queue, Absent)
    }


def _shares(wish: _Wish, qos: QosState) -> QosState:
    """bw-percent of a port adds up to 100 at most; larger weights are scaled down."""
    weights = _weights(qos)
    total = sum(weights.values())
    if total > 100:
        qos = _scaled(wish, qos, weights, total)
    _unserved(wish, qos)
    return qos


def _scaled(wish: _Wish, qos: QosState, weights: dict[int, int], total: int) -> QosState:
    scaled = {queue: max(weight * 100 // total, 1) if weight else 0 for queue, weight in weights.items()}
    while sum(scaled.values()) > 100:
        scaled[max(scaled, key=lambda queue: scaled[queue])] -= 1
    wish.fault(
        NOTE,
        "qos.share",
        "+".join(str(weight) for weight in weights.values() if weight),
        "+".join(str(scaled[queue]) for queue, weight in weights.items() if weight),
        "the shares of a port are percents and add up to 100 at most",
    )
    for priority, state in enumerate(qos.classes):
        if isinstance(state.share, Share) and not isinstance(state.queue, Absent):
            qos = with_class(qos, priority, share=replace(state.share, weight=scaled[state.queue]))
    return qos


def _unserved(wish: _Wish, qos: QosState) -> None:
    """A class in use without a share is strict where nothing is left of 100 %; 6 and 7 always may be."""
    weights = _weights(qos)
    if not weights or 100 - sum(weights.values()) >= len(PRIORITIES) - len(weights):
        return
    for priority in used_priorities(qos):
        state = qos.classes[priority]
        if state.share is UNMANAGED and state.queue not in (*weights, *CONTROL):
            wish.fault(
                WARNING,
                f"qos.classes.{priority}.share",
                "no share",
                "strict",
                "the other classes have all of the 100 percent, and without a share it would be starved",
                "give the class a bandwidth",
            )


# ---------------------------------------------------------------- watchdog


def _watchdog(wish: _Wish, qos: QosState) -> QosState:
    """One switch per port that guards every lossless traffic class; timers of the whole node."""
    old = bool(wish.hw.release()) and wish.hw.release() < _WATCHDOG_FROM
    paused = [p for p, state in enumerate(qos.classes) if state.pfc_tx is True or state.pfc_rx is True]
    guarded = not old and any(qos.classes[priority].watchdog is True for priority in paused)
    if old and any(state.watchdog is True for state in qos.classes):
        wish.fault(WARNING, "qos.watchdog", "on", "", "the PFC watchdog is there from Cumulus Linux 5.6")
    for priority, state in enumerate(qos.classes):
        if not isinstance(state.watchdog, bool):
            continue
        unowned = isinstance(state.pfc_tx, Absent) and isinstance(state.pfc_rx, Absent)
        used: Maybe[bool] = UNMANAGED if unowned else guarded and priority in paused
        if state.watchdog != used and not old:
            wish.fault(
                NOTE,
                f"qos.classes.{priority}.watchdog",
                "on" if state.watchdog else "off",
                "" if unowned else "on" if used else "off",
                "the watchdog of a port guards all its PFC priorities and nothing else",
            )
        qos = with_class(qos, priority, watchdog=used)
    if old:
        return replace(qos, watchdog=_not_here(qos.watchdog, NO_QOS.watchdog))
    return replace(qos, watchdog=_timers(wish, qos.watchdog))


def _timers(wish: _Wish, wanted: WatchdogTimers) -> WatchdogTimers:
    poll, detect = wanted.poll_ms, wanted.detect_ms
    if not isinstance(poll, Absent):
        used = min(max(poll, _POLL[0]), _POLL[1])
        if used != poll:
            _timer_fault(wish, "poll_ms", poll, used, "polling-interval takes 100 to 5000 ms")
        poll = used
    if not isinstance(detect, Absent):
        step, times = intervals(detect, poll)
        if step * times != detect:
            reason = f"detection takes a whole number of polling intervals, here {times} x {step} ms"
            _timer_fault(wish, "detect_ms", detect, step * times, reason)
        detect = step * times
    restore = wanted.restore_ms
    if not isinstance(restore, Absent):
        reason = "the queue comes back after one polling interval without pause frames"
        wish.fault(NOTE, "qos.watchdog.restore_ms", f"{restore} ms", "", reason)
        restore = NOT_APPLICABLE
    action = wanted.action
    if not isinstance(action, Absent) and action != "drop":
        wish.fault(NOTE, "qos.watchdog.action", action, "drop", "the watchdog drops, nothing else")
        action = "drop"
    return WatchdogTimers(detect, restore, poll, action)


def _timer_fault(wish: _Wish, name: str, wanted: int, used: int, reason: str) -> None:
    wish.fault(NOTE, f"qos.watchdog.{name}", f"{wanted} ms", f"{used} ms", reason)


def intervals(detect_ms: int, poll_ms: Maybe[int]) -> tuple[int, int]:
    """(polling-interval, robustness) whose product is nearest to the detection time.

    Of equally near ones the shortest interval is taken: 100 ms, the default, wherever it is exact.
    """
    if not isinstance(poll_ms, Absent):
        return poll_ms, _times(detect_ms, poll_ms)
    shortest = min(max(POLL_MS, -(-detect_ms // _TIMES[1])), _POLL[1])
    steps = range(shortest, min(max(detect_ms, shortest), _POLL[1]) + 1)
    step = min(steps, key=lambda step: (abs(step * _times(detect_ms, step) - detect_ms), step))
    return step, _times(detect_ms, step)


def _times(detect_ms: int, step: int) -> int:
    return min(max((detect_ms + step // 2) // step, _TIMES[0]), _TIMES[1])


# ---------------------------------------------------------------- what exists once per node

_Get = Callable[[QosState], Any]
_Set = Callable[[QosState, Any], QosState]


def _timer_field(name: str) -> tuple[str, _Get, _Set]:
    return (
        f"qos.watchdog.{name}",
        lambda qos: getattr(qos.watchdog, name),
        lambda qos, value: replace(qos, watchdog=replace(qos.watchdog, **{name: value})),
    )


def _queue_field(priority: int) -> tuple[str, _Get, _Set]:
    return (
        f"qos.classes.{priority}.queue",
        lambda qos: qos.classes[priority].queue,
        lambda qos, value: with_class(qos, priority, queue=value),
    )


_GLOBALS: Final[tuple[tuple[str, _Get, _Set], ...]] = (
    *(_queue_field(priority) for priority in PRIORITIES),
    _timer_field("poll_ms"),
    _timer_field("detect_ms"),
)
GLOBALS: Final = tuple(path for path, _, _ in _GLOBALS)
"""Fields that a switch has once; trust, maps, PFC, ECN and shares are profiles of ports."""


def _agree(settings: dict[str, PortSettings], faults: list[Fault]) -> dict[str, PortSettings]:
    """The same values on all ports of the node for what exists once; the first port's where they differ."""
    for path, get, put in _GLOBALS:
        values = distinct(get(one.qos) for one in settings.values())
        if len(values) < 2:
            continue
        ports = [next(n for n, one in settings.items() if get(one.qos) == value) for value in values]
        wanted = "; ".join(f"{value} on {port}" for value, port in zip(values, ports, strict=True))
        reason = "a Cumulus Linux switch has this setting once for all ports"
        help = "give the networks of this switch the same value"
        faults.append(Fault(ERROR, "", path, wanted, str(values[0]), reason, help))
        settings = {
            name: one if isinstance(get(one.qos), Absent) else replace(one, qos=put(one.qos, values[0]))
            for name, one in settings.items()
        }
    return _agree_detection(settings, faults)


def _agree_detection(settings: dict[str, PortSettings], faults: list[Fault]) -> dict[str, PortSettings]:
    """A polling interval that one port asks for also divides the detection time of the others."""
    polls = distinct(one.qos.watchdog.poll_ms for one in settings.values())
    detects = distinct(one.qos.watchdog.detect_ms for one in settings.values())
    if not polls or not detects:
        return settings
    used = polls[0] * _times(detects[0], polls[0])
    if used == detects[0]:
        return settings
    reason = f"detection takes a whole number of polling intervals of {polls[0]} ms"
    faults.append(Fault(NOTE, "", "qos.watchdog.detect_ms", f"{detects[0]} ms", f"{used} ms", reason))
    return {
        name: one
        if isinstance(one.qos.watchdog.detect_ms, Absent)
        else replace(one, qos=replace(one.qos, watchdog=replace(one.qos.watchdog, detect_ms=used)))
        for name, one in settings.items()
    }
