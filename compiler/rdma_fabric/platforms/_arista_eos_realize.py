"""What an EOS switch makes of a wish: ceilings, roundings, and what it cannot express."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._arista_eos_config import BRIDGED_MTU
from rdma_fabric.platforms._arista_eos_read import NO_QOS, bridged
from rdma_fabric.platforms._arista_eos_write import RESERVED
from rdma_fabric.platforms._contract import Fault, Realized
from rdma_fabric.platforms._shared import (
    distinct,
    integer,
    owned_ports,
    used_priorities,
    with_class,
    with_ports,
)
from rdma_fabric.state import (
    MTU_MAX,
    NOT_APPLICABLE,
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

MTU_CEILING: Final = 9214
"""AVD's fabric default; the true ceiling is per platform (a virtual EOS has 9194): option `mtu_max`."""
MTU_FLOOR: Final = 68  # AVD's schema, netlab
_THRESHOLD_MAX: Final = 4294967294  # Arista's OpenConfig deviations, EOS 4.36.1F
NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@dataclass
class _Wish:
    """Collects what one set of settings cannot have; the port's name is filled in later."""

    hw: Hardware
    faults: list[Fault] = field(default_factory=list)

    def fault(
        self, severity: Severity, setting: str, wanted: object, used: object, reason: str, help: str = ""
    ) -> None:
        self.faults.append(Fault(severity, "", setting, str(wanted), str(used), reason, help))


def realize_node(wanted: NodeState, hw: Hardware) -> Realized:
    """The realized state and its faults; equal settings are worked on once."""
    made: dict[tuple[int, str, bool], tuple[PortSettings, tuple[Fault, ...]]] = {}
    settings: dict[str, PortSettings] = {}
    faults: list[Fault] = []
    for port, one in owned_ports(wanted, hw):
        key = (id(port.settings), one.kind, bridged(one))
        if key not in made:
            made[key] = _settings(port.settings, one, hw)
        settings[port.name], found = made[key]
        faults += [replace(fault, port=port.name) for fault in found]
    agreed = _agree(settings, faults)
    return Realized(with_ports(wanted, agreed), tuple(faults))


def _settings(
    wanted: PortSettings, port: PortHardware, hw: Hardware
) -> tuple[PortSettings, tuple[Fault, ...]]:
    wish = _Wish(hw)
    mtu = _mtu(wish, wanted.mtu, port)
    qos = _not_here(wanted.qos, NO_QOS) if port.kind in ("svi", "vlan") else _qos(wish, wanted.qos)
    made = replace(wanted, mtu=mtu, qos=qos)
    return (wanted if made == wanted else made), tuple(wish.faults)


def _not_here(wanted: Any, absent: Any) -> Any:
    """The wish with every managed field not applicable: a VLAN's packets use the parent's queues."""
    if isinstance(wanted, QosState | WatchdogTimers | ClassState):
        names = wanted.__dataclass_fields__
        values = {name: _not_here(getattr(wanted, name), getattr(absent, name)) for name in names}
        return replace(wanted, **values)
    if isinstance(wanted, tuple) and wanted and isinstance(wanted[0], ClassState):
        return tuple(_not_here(one, none) for one, none in zip(wanted, absent, strict=True))
    return wanted if wanted is UNMANAGED else NOT_APPLICABLE


# ---------------------------------------------------------------- MTU


def _mtu(wish: _Wish, wanted: Mtu, port: PortHardware) -> Mtu:
    ip, enforced = wanted.ip, wanted.enforced
    if isinstance(ip, int):
        if bridged(port):
            if ip not in (BRIDGED_MTU, MTU_MAX):
                wish.fault(
                    NOTE,
                    "mtu.ip",
                    ip,
                    BRIDGED_MTU,
                    "a bridged port has no MTU line; it shows a fixed number and routed interfaces limit",
                    "set the MTU on the VLAN interface",
                )
            ip, enforced = BRIDGED_MTU, False
        else:
            ip = _bounded_mtu(wish, ip)
    frame = wanted.frame
    if not isinstance(frame, Absent):
        wish.fault(NOTE, "mtu.frame", frame, "", "EOS counts the IP packet; most models have no L2 MTU line")
        frame = NOT_APPLICABLE
    return Mtu(ip, frame, enforced)


def _bounded_mtu(wish: _Wish, ip: int) -> int:
    ceiling = integer(wish.hw.option("mtu_max")) or MTU_CEILING
    if ip == MTU_MAX:
        return ceiling
    used = max(MTU_FLOOR, min(ip, ceiling))
    if used != ip:
        wish.fault(
            NOTE,
            "mtu.ip",
            ip,
            used,
            f"EOS takes {MTU_FLOOR} to {ceiling} bytes of IP packet",
            f"write `max`, or set mtu_max of the node if its ceiling is not {ceiling}",
        )
    return used


# ---------------------------------------------------------------- QoS of one port


def _qos(wish: _Wish, wanted: QosState) -> QosState:
    qos = replace(
        wanted,
        trust=_trust(wish, wanted),
        dcbx=_dcbx(wish, wanted),
        cable_m=UNMANAGED if wanted.cable_m is UNMANAGED else NOT_APPLICABLE,
        classes=tuple(
            _class(wish, priority, state, wanted.classes) for priority, state in enumerate(wanted.classes)
        ),
    )
    qos = _watchdog(wish, qos)
    for priority in used_priorities(qos):
        # A recorded state brings its own queue numbers back.
        if qos.classes[priority].queue is UNMANAGED:
            qos = with_class(qos, priority, queue=priority)
    _strict_below_shared(wish, qos)
    return qos


def _trust(wish: _Wish, wanted: QosState) -> Any:
    if wanted.trust == "both":
        wish.fault(
            WARNING,
            "qos.trust",
            "both",
            "dscp",
            "a port trusts DSCP or 802.1p, not both; RoCEv2 carries a DSCP",
            "write trust dscp for this port",
        )
        return "dscp"
    return wanted.trust


def _dcbx(wish: _Wish, wanted: QosState) -> Any:
    if wanted.dcbx == "firmware":
        wish.fault(WARNING, "qos.dcbx", "firmware", "none", "only NICs have a DCBX agent in firmware")
        return "none"
    return wanted.dcbx


def _class(wish: _Wish, priority: int, state: ClassState, classes: tuple[ClassState, ...]) -> ClassState:
    path = f"qos.classes.{priority}"
    tx, rx = state.pfc_tx, state.pfc_rx
    if isinstance(tx, bool) and isinstance(rx, bool) and tx != rx:
        wish.fault(
            ERROR,
            f"{path}.pfc_{'tx' if tx else 'rx'}",
            "one direction",
            "both directions",
            "EOS sends and obeys pause for a priority, or neither",
            "ask for both directions, or for no PFC on this port",
        )
        tx = rx = True
    headroom = state.headroom
    if isinstance(headroom, Amount):
        wish.fault(
            ERROR,
            f"{path}.headroom",
            f"{headroom.value} {headroom.unit}",
            "",
            "EOS has headroom lines for a whole MMU profile only, not for one priority of a port",
            "write headroom: auto, or keep an MMU profile by hand",
        )
        headroom = NOT_APPLICABLE
    return replace(
        state,
        pfc_tx=tx,
        pfc_rx=rx,
        headroom=headroom,
        ecn=_ecn(wish, path, priority, state.ecn),
        share=_share(wish, path, priority, state.share),
        group=UNMANAGED if state.group is UNMANAGED else NOT_APPLICABLE,
    )


def _reserved(wish: _Wish, path: str, wanted: object) -> Absent:
    wish.fault(
        WARNING,
        path,
        wanted,
        "",
        f"EOS keeps queue {RESERVED} for control traffic and does not let it be set",
        "use another priority for this class",
    )
    return NOT_APPLICABLE


def _share(wish: _Wish, path: str, priority: int, wanted: Maybe[Share | None]) -> Maybe[Share | None]:
    if isinstance(wanted, Absent):
        return wanted
    if wanted is None or wanted.scheduler == "strict":
        made = Share("strict")
    elif priority == RESERVED:
        return _reserved(wish, f"{path}.share", f"{wanted.weight}%")
    else:
        weight = min(max(wanted.weight, 0), 100)
        if weight != wanted.weight:
            wish.fault(ERROR, f"{path}.share", wanted.weight, weight, "bandwidth percent takes 1 to 100")
        made = Share("dwrr", weight)
    if wanted is not None and wanted.cap is not UNMANAGED:
        if isinstance(wanted.cap, int):
            wish.fault(WARNING, f"{path}.share.cap", f"{wanted.cap}%", "", "rate caps are not written on EOS")
        made = replace(made, cap=NOT_APPLICABLE)
    return made


def _ecn(wish: _Wish, path: str, priority: int, wanted: Maybe[Ecn | None]) -> Maybe[Ecn | None]:
    if wanted is None or isinstance(wanted, Absent):
        return wanted
    path = f"{path}.ecn"
    if priority == RESERVED:
        return _reserved(wish, path, "marking")
    kmin = _threshold(wish, f"{path}.kmin", wanted.kmin)
    kmax = _threshold(wish, f"{path}.kmax", wanted.kmax)
    if kmin is None or kmax is None:
        return NOT_APPLICABLE
    # One unit for both numbers; AVD and Arista's model take whole percents from 1 to 100.
    percent = min(max(int(wanted.pmax + 0.5), 1), 100)
    if percent != wanted.pmax:
        wish.fault(NOTE, f"{path}.pmax", f"{wanted.pmax}%", f"{percent}%", "whole percents from 1 to 100")
    others = wanted.others
    if not isinstance(others, Absent):
        wish.fault(NOTE, f"{path}.others", "per colour", "", "an EOS queue has one ramp for all colours")
        others = NOT_APPLICABLE
    return Ecn(kmin, kmax, float(percent), others)


def _threshold(wish: _Wish, path: str, wanted: Amount) -> Amount | None:
    """The threshold in bytes, None when EOS cannot have it."""
    cell = wish.hw.asic.cell_bytes if wish.hw.asic else 0
    if wanted.unit in ("cells", "segments") and not cell:
        wish.fault(
            ERROR,
            path,
            f"{wanted.value} {wanted.unit}",
            "",
            "the size of a buffer cell of this model is not known",
            "write the threshold in bytes, or set the node's model",
        )
        return None
    if wanted.unit == "percent":
        wish.fault(
            ERROR,
            path,
            f"{wanted.value}%",
            "",
            "EOS has no thresholds in percent of the queue",
            "write the threshold in bytes",
        )
        return None
    value = wanted.value if wanted.unit == "bytes" else wanted.value * cell
    if not 0 <= value <= _THRESHOLD_MAX:
        wish.fault(ERROR, path, value, "", f"EOS takes 0 to {_THRESHOLD_MAX}")
        return None
    return Amount(value)


def _strict_below_shared(wish: _Wish, qos: QosState) -> None:
    """A strict queue below a round-robin one is served round robin (EOS manual, transmit queues)."""
    shared = [
        p for p, s in enumerate(qos.classes) if isinstance(s.share, Share) and s.share.scheduler == "dwrr"
    ]
    for priority, state in enumerate(qos.classes):
        above = [other for other in shared if other > priority]
        if above and isinstance(state.share, Share) and state.share.scheduler == "strict":
            wish.fault(
                WARNING,
                f"qos.classes.{priority}.share",
                "strict",
                "round robin",
                f"queue {above[0]} above it is round robin, so EOS serves queue {priority} round robin too",
                "give strict classes the higher priorities",
            )


# ---------------------------------------------------------------- watchdog

_ACTIONS: Final = {"drop": "drop", "errdisable": "errdisable", "notify": "notify", "alert": "notify"}


def _watchdog(wish: _Wish, qos: QosState) -> QosState:
    """One switch per port that guards every no-drop priority; timers in steps that EOS can write."""
    lossless = [p for p, s in enumerate(qos.classes) if s.pfc_tx is True or s.pfc_rx is True]
    guarded = any(qos.classes[priority].watchdog is True for priority in lossless)
    for priority, state in enumerate(qos.classes):
        wanted = state.watchdog
        if not isinstance(wanted, bool):
            continue
        unowned = isinstance(state.pfc_tx, Absent) and isinstance(state.pfc_rx, Absent)
        used: Maybe[bool] = UNMANAGED if unowned else guarded and priority in lossless
        if wanted != used:
            wish.fault(
                NOTE,
                f"qos.classes.{priority}.watchdog",
                "on" if wanted else "off",
                "" if unowned else "on" if used else "off",
                "the watchdog of a port guards all its no-drop priorities and nothing else",
            )
            qos = with_class(qos, priority, watchdog=used)
    timers = qos.watchdog
    return replace(
        qos,
        watchdog=WatchdogTimers(
            detect_ms=_timer(wish, "detect_ms", timers.detect_ms, 10, 60_000, 10),
            restore_ms=_timer(wish, "restore_ms", timers.restore_ms, 10, 60_000, 10),
            poll_ms=_timer(wish, "poll_ms", timers.poll_ms, 5, 30_000, 1),
            action=_action(wish, timers.action, guarded),
        ),
    )


def _timer(wish: _Wish, name: str, wanted: Maybe[int], low: int, high: int, step: int) -> Maybe[int]:
    """AVD's schema: 0.01 to 60 s with two decimals, polling 0.005 to 30 s with three."""
    if isinstance(wanted, Absent) or wanted == 0:
        return wanted
    used = min(max((wanted + step // 2) // step * step, low), high)
    if used != wanted:
        wish.fault(
            NOTE,
            f"qos.watchdog.{name}",
            f"{wanted} ms",
            f"{used} ms",
            f"EOS takes {low} to {high} ms in steps of {step} ms",
        )
    return used


def _action(wish: _Wish, wanted: Maybe[str], guarded: bool) -> Maybe[str]:
    """drop unless asked otherwise: EOS's own default takes the whole port down (err-disable)."""
    if wanted is UNMANAGED:
        return "drop" if guarded else UNMANAGED
    if isinstance(wanted, Absent):
        return wanted
    used = _ACTIONS.get(wanted, "drop")
    if used != wanted:
        wish.fault(NOTE, "qos.watchdog.action", wanted, used, "EOS has drop, errdisable and notify-only")
    return used


# ---------------------------------------------------------------- what exists once per node

_Get = Callable[[QosState], Any]
_Set = Callable[[QosState, Any], QosState]


def _timer_field(name: str) -> tuple[str, _Get, _Set]:
    return (
        f"qos.watchdog.{name}",
        lambda qos: getattr(qos.watchdog, name),
        lambda qos, value: replace(qos, watchdog=replace(qos.watchdog, **{name: value})),
    )


def _map_field(name: str) -> tuple[str, _Get, _Set]:
    return f"qos.{name}", lambda qos: getattr(qos, name), lambda qos, value: replace(qos, **{name: value})


_GLOBALS: Final[tuple[tuple[str, _Get, _Set], ...]] = (
    _map_field("dscp_to_priority"),
    _map_field("pcp_to_priority"),
    _timer_field("detect_ms"),
    _timer_field("restore_ms"),
    _timer_field("poll_ms"),
    _timer_field("action"),
)
GLOBALS: Final = tuple(path for path, _, _ in _GLOBALS)
"""Fields that an EOS node has once."""


def _agree(settings: dict[str, PortSettings], faults: list[Fault]) -> dict[str, PortSettings]:
    """The same values on all ports of the node for what exists once; the first port's where they differ."""
    for path, get, put in _GLOBALS:
        values = distinct(get(one.qos) for one in settings.values())
        if len(values) < 2:
            continue
        faults.append(_conflict(path, get, values, settings))
        settings = {
            name: one if isinstance(get(one.qos), Absent) else replace(one, qos=put(one.qos, values[0]))
            for name, one in settings.items()
        }
    return _agree_poll(settings, faults)


def _conflict(path: str, get: _Get, values: tuple[Any, ...], settings: dict[str, PortSettings]) -> Fault:
    ports = {index: [n for n, one in settings.items() if get(one.qos) == v] for index, v in enumerate(values)}
    if isinstance(values[0], tuple):
        point = next(n for n, (a, b) in enumerate(zip(values[0], values[1], strict=True)) if a != b)
        texts = [f"{point} -> {value[point]}" for value in values]
    else:
        texts = [str(value) for value in values]
    wanted = "; ".join(f"{text} on {ports[index][0]}" for index, text in enumerate(texts))
    return Fault(
        ERROR,
        "",
        path,
        wanted,
        texts[0],
        "an EOS switch has this setting once for all ports",
        "give the networks of this switch the same value",
    )


def _agree_poll(settings: dict[str, PortSettings], faults: list[Fault]) -> dict[str, PortSettings]:
    """EOS manual: polling at most half of the shorter timer, else EOS picks its own and warns."""
    polls = distinct(one.qos.watchdog.poll_ms for one in settings.values())
    timers = [
        value
        for name in ("detect_ms", "restore_ms")
        for value in distinct(getattr(one.qos.watchdog, name) for one in settings.values())
        if value
    ]
    if not polls or not timers or polls[0] <= min(timers) // 2:
        return settings
    used = max(min(timers) // 2, 5)
    faults.append(
        Fault(
            NOTE,
            "",
            "qos.watchdog.poll_ms",
            f"{polls[0]} ms",
            f"{used} ms",
            "EOS polls at most at half of the shorter of detect and restore",
        )
    )
    return {
        name: one
        if isinstance(one.qos.watchdog.poll_ms, Absent)
        else replace(one, qos=replace(one.qos, watchdog=replace(one.qos.watchdog, poll_ms=used)))
        for name, one in settings.items()
    }
