"""Turns differences into EOS lines: one context type for the full rendering and for a change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._arista_eos_config import DEFAULT_DSCP, DEFAULT_MTU, DEFAULT_PCP
from rdma_fabric.platforms._arista_eos_read import OVERRIDE, QUEUE_COMMAND, bridged, default_settings
from rdma_fabric.platforms._shared import by_priority, distinct, owned_ports, split_path, used_priorities
from rdma_fabric.state import (
    PRIORITIES,
    Absent,
    ClassState,
    Difference,
    Ecn,
    NodeState,
    PortSettings,
    Share,
    differences,
)

RESERVED: Final = 7
"""EOS binds traffic class 7 and queue 7 together and keeps them for control traffic; no line may remap it."""

# Lines whose spelling or effect no source confirmed (docs/platforms/arista_eos.md, "Not confirmed").
UNVERIFIED: Final = re.compile(
    r"no priority-flow-control all off"
    r"|no priority-flow-control pause watchdog"
    r"|no priority-flow-control pause watchdog default \S+"
    r"|no priority-flow-control pause watchdog override action drop"
    r"|flowcontrol (send|receive) on"
    r"|dcbx mode cee"
)


@dataclass(frozen=True, slots=True)
class QueueLines:
    """One queue block. Empty words write nothing; "default" writes the form that removes a line."""

    command: str
    number: int
    scheduler: str = ""
    """strict or shared."""
    percent: str = ""
    ecn: Ecn | None = None
    ecn_off: str = ""
    """The words that remove marking on this release."""

    @property
    def empty(self) -> bool:
        """True when the block would hold no line."""
        return not (self.scheduler or self.percent or self.ecn or self.ecn_off)

    @property
    def thresholds(self) -> tuple[int, int, str]:
        """(minimum, maximum, unit): both numbers share one unit."""
        assert self.ecn is not None
        low, high = self.ecn.kmin, self.ecn.kmax
        if low.unit == "segments":
            return low.value, high.value, "segments"
        if low.value % 1000 == 0 and high.value % 1000 == 0:
            return low.value // 1000, high.value // 1000, "kbytes"
        return low.value, high.value, "bytes"


@dataclass(frozen=True, slots=True)
class PortLines:
    """One interface block."""

    name: str
    mtu: str = ""
    dcbx: str = ""
    pause: str = ""
    """off or on."""
    trust: str = ""
    """dscp, cos or none."""
    pfc: str = ""
    """on or off."""
    watchdog: str = ""
    """on or off."""
    no_drop: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()
    port_action: bool = False
    """Take the port's own watchdog action away."""
    port_timer: bool = False
    """Take the port's own watchdog timers away."""
    queues: tuple[QueueLines, ...] = ()

    @property
    def empty(self) -> bool:
        """True when the block would hold no line."""
        return not any(getattr(self, item.name) for item in fields(self) if item.name != "name")


@dataclass(frozen=True, slots=True)
class EosLines:
    """All lines of one rendering. Timers are seconds as EOS takes them, "default" removes one."""

    dscp: tuple[tuple[int, str], ...] = ()
    """(traffic class, code points separated by blanks)."""
    pcp: tuple[tuple[int, str], ...] = ()
    queues: tuple[tuple[int, int], ...] = ()
    """(traffic class, transmit queue)."""
    all_off: bool = False
    """Take `priority-flow-control all off` away."""
    timers: tuple[tuple[str, str], ...] = ()
    """(timeout | recovery-time | polling-interval, seconds)."""
    action: str = ""
    force_drop: bool = False
    """Take the forced drop action away."""
    ports: tuple[PortLines, ...] = ()


@dataclass(frozen=True, slots=True)
class Before:
    """What is there before the lines: settings by port, and what stands above the node's values."""

    ports: Mapping[str, PortSettings]
    overrides: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Port ("" = the node) -> words of the read-back's override facts."""
    command: str = ""
    """The device's own word for a queue block; "" when it does not tell."""


def before_of(state: NodeState, facts: Sequence[tuple[str, str]]) -> Before:
    """What an observation says."""
    return Before(
        ports={port.name: port.settings for port in state.ports},
        overrides={
            name.removeprefix(OVERRIDE).strip(): frozenset(words.split())
            for name, words in facts
            if name.split()[0] == OVERRIDE
        },
        command=dict(facts).get(QUEUE_COMMAND, ""),
    )


def before_of_blank(wanted: NodeState, hw: Hardware) -> Before:
    """A device on which nobody configured anything of ours; ports as the inventory wires them."""
    made = {(kind, flag): default_settings(kind, not flag) for kind, flag in _kinds(wanted, hw)}
    return Before({port.name: made[_plain(one), bridged(one)] for port, one in owned_ports(wanted, hw)})


def _kinds(wanted: NodeState, hw: Hardware) -> set[tuple[PortHardware, bool]]:
    return {(_plain(one), bridged(one)) for _, one in owned_ports(wanted, hw)}


def _plain(port: PortHardware) -> PortHardware:
    return PortHardware("", port.kind)


def held_by_profile(setting: str, wanted: object, queue: int, marks: frozenset[str]) -> bool:
    """True where the wish is EOS's default and a service profile on the port sets something else.

    A line of the port that says the default is the same as no line: the profile goes on.
    """
    name = setting.rpartition(".")[2]
    if name == "trust":
        return wanted == "dscp" and "profile-trust" in marks
    if name in ("pfc_tx", "pfc_rx"):
        return wanted is False and f"profile-pfc-{setting.split('.')[2]}" in marks
    if name == "share":
        return wanted == Share("strict") and f"profile-share-{queue}" in marks
    return name == "ecn" and wanted is None and f"profile-ecn-{queue}" in marks


# ---------------------------------------------------------------- everything


def full_lines(wanted: NodeState, hw: Hardware) -> EosLines:
    """Everything we own on a device that holds nothing of ours; maps, trust and MTU are always written."""
    before = before_of_blank(wanted, hw)
    changed: dict[str, set[str]] = {}
    for port, one in owned_ports(wanted, hw):
        found = differences(port.settings, before.ports[port.name])
        names = {item.path for item in found}
        if not isinstance(port.settings.mtu.ip, Absent) and not bridged(one):
            names.add("mtu.ip")
        if not isinstance(port.settings.qos.trust, Absent):
            names.add("qos.trust")
        changed[port.name] = names
    return _lines(wanted, hw, before, changed, full=True)


def changed_lines(wanted: NodeState, hw: Hardware, before: Before, repair: Iterable[Difference]) -> EosLines:
    """The lines for these differences and no others."""
    names = [port.name for port in wanted.ports]
    changed: dict[str, set[str]] = {}
    for item in repair:
        port, setting = split_path(item.path, names)
        changed.setdefault(port, set()).add(setting)
    return _lines(wanted, hw, before, changed, full=False)


def _lines(
    wanted: NodeState, hw: Hardware, before: Before, changed: Mapping[str, set[str]], full: bool
) -> EosLines:
    touched = {name for names in changed.values() for name in names}
    owned = [port.settings for port, _ in owned_ports(wanted, hw)]
    dscp = _map(owned, before, "dscp_to_priority", DEFAULT_DSCP, touched, full)
    pcp = _map(owned, before, "pcp_to_priority", DEFAULT_PCP, touched, full)
    make = _PortWriter(before, before.command or queue_command(hw), hw.release())
    ports = tuple(make.port(port.name, port.settings, changed.get(port.name, set())) for port in wanted.ports)
    node = before.overrides.get("", frozenset())
    pfc = any(re.fullmatch(r"qos\.classes\.\d\.pfc_[tr]x", name) for name in touched)
    action = next(iter(distinct(item.qos.watchdog.action for item in owned)), "")
    return EosLines(
        dscp=dscp,
        pcp=pcp,
        queues=_queues(owned, touched, bool(dscp or pcp)),
        all_off="all-off" in node and pfc and any(item.pfc == "on" for item in ports),
        timers=_timers(owned, touched, any(item.port_timer for item in ports)),
        action=_ACTION_WORDS.get(action, "") if "qos.watchdog.action" in touched else "",
        force_drop="force-drop" in node and "qos.watchdog.action" in touched and action != "drop",
        ports=tuple(item for item in ports if not item.empty),
    )


_ACTION_WORDS: Final = {"drop": "drop", "errdisable": "errdisable", "notify": "notify-only"}


def _map(
    owned: Sequence[PortSettings],
    before: Before,
    name: str,
    default: tuple[int, ...],
    touched: set[str],
    full: bool,
) -> tuple[tuple[int, str], ...]:
    """Code points to write by traffic class; only those that differ, or all in a full rendering."""
    found = distinct(getattr(settings.qos, name) for settings in owned)
    if not found or not (full or f"qos.{name}" in touched):
        return ()
    wanted: tuple[int, ...] = found[0]
    seen = distinct(getattr(settings.qos, name) for settings in before.ports.values())
    old = seen[0] if seen and not full else None
    return tuple(
        (priority, " ".join(map(str, points)))
        for priority, points in (
            (priority, [point for point in points if old is None or old[point] != priority])
            for priority, points in by_priority(wanted).items()
        )
        if points
    )


def _queues(owned: Sequence[PortSettings], touched: set[str], mapped: bool) -> tuple[tuple[int, int], ...]:
    """Traffic class -> queue: what differs, and every used class when code points are mapped.

    EOS's default map is confirmed for classes 0 and 3 only, so no used class relies on it.
    """
    found: dict[int, int] = {}
    for settings in dict.fromkeys(owned):
        used = used_priorities(settings.qos)
        for priority, state in enumerate(settings.qos.classes):
            if isinstance(state.queue, Absent) or priority == RESERVED:
                continue
            if (mapped and priority in used) or f"qos.classes.{priority}.queue" in touched:
                found.setdefault(priority, state.queue)
    return tuple(sorted(found.items()))


_TIMER_WORDS: Final = (
    ("detect_ms", "timeout"),
    ("restore_ms", "recovery-time"),
    ("poll_ms", "polling-interval"),
)


def _timers(owned: Sequence[PortSettings], touched: set[str], released: bool) -> tuple[tuple[str, str], ...]:
    """The node's timers; all of them when a port falls back to them."""
    found = []
    for name, word in _TIMER_WORDS:
        values = distinct(getattr(settings.qos.watchdog, name) for settings in owned)
        if values and (released or f"qos.watchdog.{name}" in touched):
            found.append((word, seconds(values[0])))
    return tuple(found)


def seconds(milliseconds: int) -> str:
    """200 -> "0.2"; 0 -> "default"."""
    if milliseconds == 0:
        return "default"
    return f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")


def queue_command(hw: Hardware) -> str:
    """tx-queue on Jericho and its family, uc-tx-queue on Trident and Tomahawk; `queue_command` overrides."""
    asked = hw.option("queue_command")
    if asked:
        return asked
    name = hw.asic.name if hw.asic else ""
    deep = re.match(r"(Jericho|Qumran|Arad)", name) or re.search(
        r"\b7(02|28|50|80)[0-9]\w*R|\b78\d\d", hw.model
    )
    return "tx-queue" if deep else "uc-tx-queue"


# ---------------------------------------------------------------- one port


@dataclass(frozen=True, slots=True)
class _PortWriter:
    before: Before
    command: str
    release: tuple[int, ...]

    def port(self, name: str, wanted: PortSettings, changed: set[str]) -> PortLines:
        """The lines of one port for the changed fields."""
        if not changed:
            return PortLines(name)
        seen = self.before.ports.get(name, PortSettings())
        marks = self.before.overrides.get(name, frozenset())
        qos = wanted.qos
        on, off = _priorities(wanted, seen, marks, changed)
        pfc = bool(changed & _names("pfc_tx", "pfc_rx"))
        timers = any(f"qos.watchdog.{field}" in changed for field, _ in _TIMER_WORDS)
        return PortLines(
            name=name,
            mtu=_mtu_word(wanted) if "mtu.ip" in changed else "",
            dcbx=str(qos.dcbx) if "qos.dcbx" in changed else "",
            pause=("on" if qos.global_pause is True else "off") if "qos.global_pause" in changed else "",
            trust=_TRUST_WORDS.get(str(qos.trust), "") if "qos.trust" in changed else "",
            pfc=_pfc_word(wanted, seen, off) if pfc else "",
            watchdog=_watchdog_word(wanted, marks, changed, pfc),
            no_drop=on if pfc else (),
            drop=off if pfc else (),
            port_action="action" in marks and "qos.watchdog.action" in changed,
            port_timer="timer" in marks and timers,
            queues=self._queues(wanted, seen, changed),
        )

    def _queues(self, wanted: PortSettings, seen: PortSettings, changed: set[str]) -> tuple[QueueLines, ...]:
        found: dict[int, QueueLines] = {}
        for priority, state in enumerate(wanted.qos.classes):
            old = seen.qos.classes[priority]
            moved = f"qos.classes.{priority}.queue" in changed
            number = priority if isinstance(state.queue, Absent) else state.queue
            block = self._queue(
                number,
                state,
                # The new queue of a class that moves may hold anything: write all that is owned.
                ClassState() if moved else old,
                share=moved or f"qos.classes.{priority}.share" in changed,
                ecn=moved or f"qos.classes.{priority}.ecn" in changed,
            )
            if not block.empty:
                found.setdefault(number, block)
        return tuple(block for _, block in sorted(found.items()))

    def _queue(self, number: int, state: ClassState, old: ClassState, share: bool, ecn: bool) -> QueueLines:
        scheduler, percent = "", ""
        if share and isinstance(state.share, Share):
            before = old.share if isinstance(old.share, Share) else None
            scheduler, percent = _share_words(state.share, before)
        off = "ecn" if self.release and self.release < (4, 21) else "ecn minimum-threshold"
        return QueueLines(
            command=self.command,
            number=number,
            scheduler=scheduler,
            percent=percent,
            ecn=state.ecn if ecn and isinstance(state.ecn, Ecn) else None,
            ecn_off=off if ecn and state.ecn is None else "",
        )


def _names(*classes: str) -> set[str]:
    return {f"qos.classes.{priority}.{name}" for priority in PRIORITIES for name in classes}


def _mtu_word(wanted: PortSettings) -> str:
    return "default" if wanted.mtu.ip == DEFAULT_MTU else str(wanted.mtu.ip)


_TRUST_WORDS: Final = {"dscp": "dscp", "pcp": "cos", "port": "none"}


def _paused(state: ClassState) -> bool:
    return state.pfc_tx is True or state.pfc_rx is True


def _owned(state: ClassState) -> bool:
    return not (isinstance(state.pfc_tx, Absent) and isinstance(state.pfc_rx, Absent))


def _priorities(
    wanted: PortSettings, seen: PortSettings, marks: frozenset[str], changed: set[str]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(priorities to make no-drop, priorities to make drop) on this port.

    A priority that is no-drop in the configuration while PFC is off ("no-drop-4") would come alive
    when PFC goes on: it counts as there.
    """
    on, off = [], []
    for priority, state in enumerate(wanted.qos.classes):
        asked = not changed.isdisjoint(f"qos.classes.{priority}.{name}" for name in ("pfc_tx", "pfc_rx"))
        now = _paused(seen.qos.classes[priority])
        if _paused(state):
            on += [priority] if asked and not now else []
        elif _owned(state) and ((asked and now) or f"no-drop-{priority}" in marks):
            off.append(priority)
    return tuple(on), tuple(off)


def _pfc_word(wanted: PortSettings, seen: PortSettings, off: tuple[int, ...]) -> str:
    """on or off for the port as a whole; "" where it stays as it is."""
    now = {priority for priority, old in enumerate(seen.qos.classes) if _paused(old)}
    left = now.difference(off) or any(_paused(state) for state in wanted.qos.classes)
    if left:
        return "" if now else "on"
    return "off"


def _watchdog_word(wanted: PortSettings, marks: frozenset[str], changed: set[str], pfc: bool) -> str:
    """The watchdog is one switch per port, on by default, that matters only where PFC is on."""
    guarded = [state for state in wanted.qos.classes if _paused(state)]
    touched = pfc or bool(changed & _names("watchdog"))
    if not guarded or not touched:
        return ""
    if any(state.watchdog is True for state in guarded):
        return "on" if changed & _names("watchdog") else ""
    if any(state.watchdog is False for state in guarded):
        return "" if "unwatched" in marks else "off"
    return ""


def _share_words(wanted: Share, before: Share | None) -> tuple[str, str]:
    """(scheduler, percent): only the words that change something."""
    same = before is not None and before.scheduler == wanted.scheduler
    if wanted.scheduler == "strict":
        shared = before is None or before.weight > 0
        return "" if same else "strict", "default" if shared else ""
    percent = str(wanted.weight) if wanted.weight else "default"
    unchanged = before is not None and before.weight == wanted.weight
    return "" if same else "shared", "" if unchanged else percent
