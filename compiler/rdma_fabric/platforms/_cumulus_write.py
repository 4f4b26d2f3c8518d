"""Turns differences into NVUE lines: one context type for the full rendering and for a change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._cumulus_lines import (
    Grouped,
    NvueLines,
    ecn_lines,
    ets_lines,
    map_lines,
    pfc_lines,
)
from rdma_fabric.platforms._cumulus_profiles import (
    NO_PFC,
    Assigned,
    Before,
    MarksOf,
    Want,
    assign,
    before_of_blank,
    ecn_content,
    ets_content,
    laid_over,
    map_content,
    owned_ramps,
    owned_shares,
    pfc_content,
    seen_shares,
    used_classes,
)
from rdma_fabric.platforms._cumulus_realize import intervals
from rdma_fabric.platforms._cumulus_switch import LINK_PAUSE
from rdma_fabric.platforms._cumulus_tree import (
    ECN,
    ETS,
    LOSSLESS_MODES,
    MAPPING,
    PFC,
    POLL_MS,
    ROBUSTNESS,
    PfcOf,
    gather,
)
from rdma_fabric.platforms._shared import distinct, owned_ports, split_path
from rdma_fabric.state import (
    Absent,
    Difference,
    NodeState,
    QosState,
    Share,
    differences,
)

HALF: Final = 50
"""Percent of the buffer for lossless and for lossy traffic (QoS page, "Flow Control Buffers")."""
_LOSSLESS, _LOSSY = "default-lossless", "default-lossy"


# ---------------------------------------------------------------- which ports and fields

_FIELDS: Final = {
    MAPPING: r"qos\.(trust|dscp_to_priority|pcp_to_priority)",
    PFC: r"qos\.(classes\.\d\.(pfc_[tr]x|headroom)|cable_m)",
    ECN: r"qos\.classes\.\d\.(ecn|queue)",
    ETS: r"qos\.classes\.\d\.(share|queue)",
    LINK_PAUSE: r"qos\.global_pause",
}
"""The fields that a profile of a kind carries; a moved queue takes ramp and share along."""
Changed = Mapping[str, frozenset[str]]
"""Port -> fields to write."""


def kinds_of(setting: str) -> tuple[str, ...]:
    """The kinds of profile that carry the field."""
    return tuple(kind for kind, pattern in _FIELDS.items() if re.fullmatch(pattern, setting))


@dataclass(frozen=True, slots=True)
class Plan:
    """The state of every owned physical port before and after, and what has to change."""

    before: Before
    wanted: Mapping[str, QosState]
    after: Mapping[str, QosState]
    changed: Changed
    full: bool = False

    def touched(self, kind: str) -> tuple[str, ...]:
        """Ports with a changed field of that kind. A moved queue alone writes neither ramp nor share."""
        found = (
            port for port, names in self.changed.items() if any(kind in kinds_of(name) for name in names)
        )
        name = {ECN: "ecn", ETS: "share"}.get(kind)
        if name is None:
            return tuple(found)
        return tuple(
            port
            for port in found
            if any(not isinstance(getattr(state, name), Absent) for state in self.wanted[port].classes)
        )


def full_lines(wanted: NodeState, hw: Hardware) -> NvueLines:
    """Everything we own on a switch that holds nothing of ours."""
    before = before_of_blank(wanted, hw)
    changed = {
        port.name: frozenset(item.path for item in differences(port.settings, before.ports[port.name]))
        for port, _ in owned_ports(wanted, hw)
    }
    return _lines(wanted, before, changed, full=True)


def changed_lines(wanted: NodeState, before: Before, repair: Iterable[Difference]) -> NvueLines:
    """The lines for these differences and no others."""
    names = [port.name for port in wanted.ports]
    changed: dict[str, set[str]] = {}
    for item in repair:
        port, setting = split_path(item.path, names)
        changed.setdefault(port, set()).add(setting)
    return _lines(wanted, before, {port: frozenset(found) for port, found in changed.items()}, full=False)


def unreadable(seen: QosState, wanted: QosState, kind: str) -> bool:
    """True when a profile of that kind cannot be written, because a part of it could not be read."""
    after = laid_over(seen, wanted)
    if kind == MAPPING:
        return map_content(after) is None
    if kind == PFC:
        return pfc_content(after) is None
    if kind == ECN:
        return ecn_content(after, wanted, seen) is None
    return kind == ETS and owned_shares(after, wanted) is None


def _lines(wanted: NodeState, before: Before, changed: Changed, full: bool) -> NvueLines:
    settings = {port.name: port.settings for port in wanted.ports}
    qos = {name: one.qos for name, one in settings.items() if name in before.ports}
    after = {name: laid_over(before.ports[name].qos, one) for name, one in qos.items()}
    plan = Plan(before, qos, after, changed, full)
    found = {kind: _assigned(plan, kind) for kind in _FIELDS}
    queues, queues_default = _queues(plan)
    pools, pools_default, doubtful = _pools(plan)
    poll, robustness = _timers(plan)
    ecn, ecn_removed = ecn_lines(found[ECN].profiles)
    ets, ets_removed = ets_lines(found[ETS].profiles)
    watched, unwatched = _watchdog(plan)
    return NvueLines(
        mappings=tuple(map_lines(one) for one in found[MAPPING].profiles),
        queues=queues,
        queues_default=queues_default,
        pools=pools,
        pools_default=pools_default,
        pfc=tuple(pfc_lines(one) for one in found[PFC].profiles),
        ecn=ecn,
        ecn_removed=ecn_removed,
        ets=ets,
        ets_removed=ets_removed,
        pauses=tuple(one.name for one in found[LINK_PAUSE].profiles),
        poll=poll,
        robustness=robustness,
        mtu=_grouped(
            {
                name: str(one.mtu.ip)
                for name, one in settings.items()
                if not isinstance(one.mtu.ip, Absent) and (full or "mtu.ip" in changed.get(name, ()))
            }
        ),
        dcbx=_grouped(_dcbx_words(plan)),
        attach=tuple(
            (kind, name, gather(ports)) for kind, one in found.items() for name, ports in one.attach
        ),
        detach=tuple((kind, gather(one.detach)) for kind, one in found.items() if one.detach),
        watched=watched,
        unwatched=unwatched,
        removed=tuple((kind, name) for kind, one in found.items() for name in one.removed),
        doubtful=(*doubtful, *_later_words(before)),
    )


_ECN_OFF: Final = r"nv set qos congestion-control \S+ traffic-class \S+ ecn disable"
_TLVS: Final = r"nv set interface \S+ lldp dcbx-\S+ \S+"


def _later_words(before: Before) -> tuple[str, ...]:
    """From 5.15 a page writes `ecn enabled` (NVUE reference), so `disable` may be refused there; TLVs
    have other words from 5.15 on, so that an unknown release leaves them open."""
    if not before.release:
        return _ECN_OFF, _TLVS
    return () if before.release < (5, 15) else (_ECN_OFF,)


def _grouped(values: Mapping[str, str]) -> Grouped:
    return tuple(
        (value, gather(name for name, one in values.items() if one == value))
        for value in dict.fromkeys(values.values())
    )


# ---------------------------------------------------------------- profiles


def _assigned(plan: Plan, kind: str) -> Assigned:
    make, seen, editable = _HOW[kind]
    wants = {port: make(plan, port) for port in plan.touched(kind)}

    def now(port: str) -> Any:
        settings = plan.before.ports.get(port)
        return seen(settings.qos) if settings else None

    return assign(wants, now, plan.before.users.get(kind, {}), editable)


def _want_map(plan: Plan, port: str) -> Want:
    content = map_content(plan.after[port])
    assert content is not None
    default, own = plan.before.defaults.mapping, plan.wanted[port]
    same = (
        (isinstance(own.trust, Absent) or content.trust == default.trust)
        and (isinstance(own.dscp_to_priority, Absent) or content.dscp == default.dscp)
        and (isinstance(own.pcp_to_priority, Absent) or content.pcp == default.pcp)
    )
    return Want(content, same)


def _want_pfc(plan: Plan, port: str) -> Want:
    """A port without PFC needs a profile only where `default-global` has PFC: both directions off."""
    content = pfc_content(plan.after[port])
    assert content is not None
    default = plan.before.defaults.pfc
    if content == NO_PFC and default.priorities:
        return Want(replace(default, tx=False, rx=False, headroom=None), False)
    return Want(content, content == default or not content.priorities)


def _pfc_editable(old: PfcOf, new: PfcOf) -> bool:
    """Not where hidden parts would come alive: priorities of a profile that is off, sizes set by hand."""
    return bool(old.priorities) and old.headroom is None


def _seen_ecn(qos: QosState) -> MarksOf | None:
    return ecn_content(qos, qos, qos)


def _want_ecn(plan: Plan, port: str) -> Want:
    seen, own, after = plan.before.ports[port].qos, plan.wanted[port], plan.after[port]
    content = ecn_content(after, own, seen)
    assert content is not None
    marks = plan.before.defaults.marks
    same = all(marks.get(tc) == ramp for tc, ramp in owned_ramps(after, own).items())
    if not content and not same:
        # A profile without classes says nothing; one class with marking off makes it exist.
        content = ((min(tc for tc, ramp in marks.items() if ramp is not None), None),)
    return Want(content, same)


def _want_ets(plan: Plan, port: str) -> Want:
    own, after = plan.wanted[port], plan.after[port]
    content, shares = ets_content(after, own), owned_shares(after, own)
    assert content is not None and shares is not None
    default = plan.before.defaults.shares
    same = all(default.get(tc) == share for tc, share in shares.items())
    # A class in use that `default-global` gives nothing would be starved.
    served = all(default.get(tc) != Share("dwrr", 0) for tc in used_classes(after, own))
    return Want(content, same and served)


def _want_pause(plan: Plan, port: str) -> Want:
    on = plan.wanted[port].global_pause is True
    return Want(on, not on)


def _always(old: Any, new: Any) -> bool:
    return True


_HOW: Final[
    Mapping[str, tuple[Callable[[Plan, str], Want], Callable[[QosState], Any], Callable[..., bool]]]
] = {
    MAPPING: (_want_map, map_content, _always),
    PFC: (_want_pfc, pfc_content, _pfc_editable),
    ECN: (_want_ecn, _seen_ecn, lambda old, new: bool(old)),
    ETS: (_want_ets, seen_shares, _always),
    LINK_PAUSE: (_want_pause, lambda qos: qos.global_pause is True, _always),
}
"""Kind -> (what a port needs, what its profile says now, whether a profile may be edited in place)."""


# ---------------------------------------------------------------- what exists once


def _queues(plan: Plan) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Traffic classes to write, and priorities whose own line goes."""
    found: dict[int, int] = {}
    for port, qos in plan.wanted.items():
        for priority, state in enumerate(qos.classes):
            if isinstance(state.queue, int) and (
                plan.full or f"qos.classes.{priority}.queue" in plan.changed.get(port, ())
            ):
                found.setdefault(priority, state.queue)
    default = plan.before.base.queues
    keep = {priority: tc for priority, tc in found.items() if plan.full or default[priority] != tc}
    return tuple(sorted(keep.items())), tuple(sorted(set(found) - set(keep)))


def _pools(plan: Plan) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...], tuple[str, ...]]:
    """(pools to set, pools to reset, doubtful lines).

    PFC and link pause need a lossless pool; one that is there stays as it is. With the last such port
    goes a pool that has exactly our numbers.
    """
    before = plan.before
    touched = plan.touched(PFC) + plan.touched(LINK_PAUSE)
    after = {name: pfc_content(qos) for name, qos in plan.after.items()}
    paused = any(content not in (None, NO_PFC) for content in after.values()) or any(
        qos.global_pause is True for qos in plan.after.values()
    )
    lossless = before.mode in LOSSLESS_MODES or any("lossless" in name for name in before.pools)
    if paused and touched and not lossless:
        others = sum(percent for name, percent in before.pools.items() if name != _LOSSY)
        lossy = min(before.pools.get(_LOSSY, 100), max(100 - HALF - others, 1))
        doubtful = (r"nv set qos traffic-pool .*",) if before.mode else ()
        sizes = [(_LOSSLESS, HALF)]
        if before.pools.get(_LOSSY) != lossy:
            sizes.append((_LOSSY, lossy))
        return tuple(sizes), (), doubtful
    ours = dict(before.pools) == {_LOSSLESS: HALF, _LOSSY: HALF}
    if touched and not paused and ours and not before.mode and not _foreign_pause(plan):
        return (), (_LOSSLESS, _LOSSY), ()
    return (), (), ()


def _foreign_pause(plan: Plan) -> bool:
    """True when a port that is not ours, or all ports, may need the lossless pool."""
    before = plan.before
    users = [
        port for kind in (PFC, LINK_PAUSE) for ports in before.users.get(kind, {}).values() for port in ports
    ]
    return (
        before.paused_by_all
        or bool(before.defaults.pfc.priorities)
        or any(port not in plan.after for port in users)
    )


def _timers(plan: Plan) -> tuple[str, str]:
    """(polling-interval, robustness); "" where a line changes nothing."""
    names = {name for found in plan.changed.values() for name in found}
    if not plan.full and not names & {"qos.watchdog.detect_ms", "qos.watchdog.poll_ms"}:
        return "", ""
    polls = distinct(qos.watchdog.poll_ms for qos in plan.wanted.values())
    detects = distinct(qos.watchdog.detect_ms for qos in plan.wanted.values())
    seen = [settings.qos.watchdog for settings in plan.before.ports.values()]
    old_poll = next(iter(distinct(one.poll_ms for one in seen)), POLL_MS)
    old_detect = next(iter(distinct(one.detect_ms for one in seen)), POLL_MS * ROBUSTNESS)
    old_times = old_detect // old_poll if old_poll else ROBUSTNESS
    if detects:
        poll, times = intervals(detects[0], next(iter(polls), _kept(detects[0], old_poll)))
    elif polls:
        poll, times = polls[0], old_times
    else:
        return "", ""
    if plan.full:
        return str(poll), str(times)
    return (
        "" if poll == old_poll else "default" if poll == POLL_MS else str(poll),
        "" if times == old_times else "default" if times == ROBUSTNESS else str(times),
    )


def _kept(detect_ms: int, poll_ms: int) -> Any:
    """The polling interval that is there, where the detection time is a multiple of it."""
    step, times = intervals(detect_ms, poll_ms)
    return step if step * times == detect_ms else intervals(detect_ms, Absent.UNMANAGED)[0]


# ---------------------------------------------------------------- switches of a port


def _watchdog(plan: Plan) -> tuple[str, str]:
    """(ports to guard, ports to guard no more). A port without PFC cannot be guarded."""
    on, off = [], []
    for port in dict.fromkeys((*plan.touched(PFC), *_with(plan, r"qos\.classes\.\d\.watchdog"))):
        after, wanted = plan.after[port], plan.wanted[port]
        paused = [p for p, state in enumerate(after.classes) if state.pfc_tx is True or state.pfc_rx is True]
        now = any(state.watchdog is True for state in plan.before.ports[port].qos.classes)
        there = now or port in plan.before.watched
        asked = {wanted.classes[priority].watchdog for priority in paused}
        want = True in asked or (False not in asked and now and bool(paused))
        if want and not there:
            on.append(port)
        elif there and not want and (now or False in asked):
            off.append(port)
    return gather(on), gather(off)


def _with(plan: Plan, pattern: str) -> tuple[str, ...]:
    return tuple(
        port for port, names in plan.changed.items() if any(re.fullmatch(pattern, name) for name in names)
    )


def _dcbx_words(plan: Plan) -> dict[str, str]:
    """Port -> word of its TLVs; the words changed in 5.15 (What's New 5.15)."""
    words = ("on", "off") if plan.before.release < (5, 15) else ("enabled", "disabled")
    found = {}
    for port, qos in plan.wanted.items():
        if "qos.dcbx" in plan.changed.get(port, ()):
            found[port] = words[0] if qos.dcbx == "ieee" else words[1]
    return found
