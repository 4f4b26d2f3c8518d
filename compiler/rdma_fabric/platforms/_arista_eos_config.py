"""Reads EOS configuration text (running, running with defaults, startup) into plain values.

Sources are named as on Arista's pages: the EOS manual chapters "Quality of Service" and "DCBX and
Flow Control", AVD's schema, and `show running-config all` dumps of 7260CX and 7260CX3 (4.19 to 4.22).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Final

from rdma_fabric.platforms._shared import Line, expand, indented, starting
from rdma_fabric.state import DSCPS, PRIORITIES

# EOS manual, "Default DSCP to traffic class map": 0-7 go to class 1 and 8-15 to class 0 on every family.
_BY_TENS: Final = (1, 0, 2, 3, 4, 5, 6, 7)
DEFAULT_DSCP: Final = tuple(_BY_TENS[dscp // 8] for dscp in DSCPS)
DEFAULT_PCP: Final = _BY_TENS
DEFAULT_MTU: Final = 1500
BRIDGED_MTU: Final = 9214
"""What a bridged port shows in `show interfaces`, whatever is configured."""

_SHORT: Final = {"Et": "Ethernet", "Po": "Port-Channel", "Vl": "Vlan", "Ma": "Management"}
_MAP = re.compile(r"qos map (dscp|cos|traffic-class) ([\d ,-]+?) to (traffic-class|tx-queue) (\d)\b")
_PFC = "priority-flow-control"
_WATCHDOG = f"{_PFC} pause watchdog"
ACTIONS: Final = {"drop": "drop", "errdisable": "errdisable", "notify-only": "notify"}


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """One transmit queue: strict priority is the default of every queue; `ecn` holds the line's words."""

    strict: bool = True
    percent: int = 0
    ecn: tuple[str, ...] = ()
    drops: bool = False
    """`random-detect drop`: packets are dropped early, also those of a lossless class."""


@dataclass(frozen=True, slots=True)
class PortConfig:
    """One interface block, a service profile on it already read through."""

    routed: bool | None = None
    mtu: int | None = None
    trust: str = ""
    """dscp, cos, port (no trust) or "" (the default of the port's mode)."""
    pfc: bool = False
    no_drop: frozenset[int] = frozenset()
    watchdog: bool = True
    timer: tuple[int, int, int] | None = None
    """(detect, poll, restore) in ms, poll 0 = automatic; None: the node's timers."""
    action: str = ""
    pause: bool = False
    dcbx: str = "none"
    queues: Mapping[int, QueueConfig] = field(default_factory=dict)
    profile: str = ""
    held: frozenset[str] = frozenset()
    """What the profile sets and a line of the port cannot take away, as settings: "trust", "pfc-5", "share-3"
    and "ecn-3" (queue numbers for the last two)."""
    commands: frozenset[str] = frozenset()
    """Words that open a queue block on this port: tx-queue, uc-tx-queue."""
    odd: tuple[str, ...] = ()
    """Lines of ours that were not understood."""


@dataclass(frozen=True, slots=True)
class EosConfig:
    """One configuration text. Timers in ms, 0 where the text sets none."""

    ports: Mapping[str, PortConfig]
    dscp: tuple[int, ...] = DEFAULT_DSCP
    pcp: tuple[int, ...] = DEFAULT_PCP
    queues: tuple[int, ...] = tuple(PRIORITIES)
    """Transmit queue of each traffic class."""
    detect_ms: int = 0
    restore_ms: int = 0
    poll_ms: int = 0
    action: str = "errdisable"
    force_drop: bool = False
    all_off: bool = False
    routed_default: bool = False
    odd: tuple[str, ...] = ()


def long_name(name: str) -> str:
    """ "Et1/1" -> "Ethernet1/1"; full names are returned as they are."""
    match = re.fullmatch(r"([A-Za-z-]+?)(\d[\d/.]*)", name)
    return f"{_SHORT.get(match.group(1), match.group(1))}{match.group(2)}" if match else name


def milliseconds(seconds: str) -> int:
    """ "0.2" -> 200; ValueError for anything that is not a number of seconds."""
    try:
        return int(Decimal(seconds) * 1000)
    except InvalidOperation as problem:
        raise ValueError(seconds) from problem


def read_config(text: str) -> EosConfig:
    """Values of a configuration text; what it does not set has EOS's default."""
    lines = indented(text)
    profiles = {line.text.partition(" profile ")[2]: line.below for line in starting(lines, "qos", "profile")}
    ports = {}
    for line in starting(lines, "interface"):
        name = long_name("".join(line.text.split()[1:]))
        ports[name] = _read_port(line.below, profiles)
    return _read_globals(lines, ports)


# ---------------------------------------------------------------- globals


def _read_globals(lines: Iterable[Line], ports: Mapping[str, PortConfig]) -> EosConfig:
    maps = {"dscp": list(DEFAULT_DSCP), "cos": list(DEFAULT_PCP), "traffic-class": list(PRIORITIES)}
    found: dict[str, int] = {}
    action, force, off, routed = "errdisable", False, False, False
    odd: list[str] = []
    for line in lines:
        text = line.text
        if text.startswith("qos map "):
            _read_map(text, maps, odd)
        elif text.startswith(f"{_WATCHDOG} default "):
            _read_default(text, found, odd)
        elif text.startswith(f"{_WATCHDOG} action "):
            action = ACTIONS.get(text.split()[-1], action)
        force |= text == f"{_WATCHDOG} override action drop"
        off |= text == f"{_PFC} all off"
        routed |= text == "switchport default mode routed"
    return EosConfig(
        ports=ports,
        dscp=tuple(maps["dscp"]),
        pcp=tuple(maps["cos"]),
        queues=tuple(maps["traffic-class"]),
        detect_ms=found.get("timeout", 0),
        restore_ms=found.get("recovery-time", 0),
        poll_ms=found.get("polling-interval", 0),
        action=action,
        force_drop=force,
        all_off=off,
        routed_default=routed,
        odd=tuple(odd),
    )


def _read_map(text: str, maps: dict[str, list[int]], odd: list[str]) -> None:
    """qos map dscp|cos <points> to traffic-class <n>; qos map traffic-class <n> to tx-queue <q>."""
    match = _MAP.match(text)
    if match is None:
        # Other maps exist (traffic class to DSCP, CoS or EXP rewrite): not ours.
        if re.match(r"qos map (dscp|cos) .* to traffic-class\b", text):
            odd.append(text)
        return
    kind, points, target, value = match.groups()
    if (kind == "traffic-class") != (target == "tx-queue"):
        return
    try:
        numbers = expand(points)
    except ValueError:
        odd.append(text)
        return
    for point in numbers:
        if point < len(maps[kind]):
            maps[kind][point] = int(value)


def _read_default(text: str, found: dict[str, int], odd: list[str]) -> None:
    word, _, value = text.removeprefix(f"{_WATCHDOG} default ").partition(" ")
    try:
        found[word] = milliseconds(value.split()[0])
    except (ValueError, IndexError):
        odd.append(text)


# ---------------------------------------------------------------- one port

# Lines that `show running-config all` prints for what nobody configured: a service profile wins over them.
_DEFAULT_LINE = re.compile(
    r"no priority-flow-control( on)?|no priority-flow-control priority \d.*"
    r"|priority-flow-control pause watchdog|no priority-flow-control pause watchdog port (action|timer)"
    r"|qos trust dscp|default qos trust"
    r"|priority strict|no bandwidth percent|no random-detect ecn.*"
)


def _read_port(lines: tuple[Line, ...], profiles: Mapping[str, tuple[Line, ...]]) -> PortConfig:
    profile = next(
        (line.text.split()[1] for line in starting(lines, "service-profile") if " " in line.text), ""
    )
    reader = _PortReader(profile=profile)
    reader.read(profiles.get(profile, ()), keep_defaults=True)
    held = _held(reader.done())
    reader.read(lines, keep_defaults=not profile)
    return replace(reader.done(), held=held)


def _held(profile: PortConfig) -> frozenset[str]:
    """What a profile alone sets away from EOS's defaults."""
    queues = profile.queues.items()
    return frozenset(
        [
            *(["trust"] if profile.trust in ("cos", "port") else []),
            *(f"pfc-{priority}" for priority in (profile.no_drop if profile.pfc else ())),
            *(f"share-{number}" for number, queue in queues if not queue.strict),
            *(f"ecn-{number}" for number, queue in queues if queue.ecn),
        ]
    )


@dataclass
class _PortReader:
    """Collects the lines of one interface, a profile's first."""

    profile: str
    values: dict[str, str] = field(default_factory=dict)
    no_drop: set[int] = field(default_factory=set)
    flows: dict[str, bool] = field(default_factory=dict)
    queues: dict[int, dict[str, str]] = field(default_factory=dict)
    commands: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)

    def read(self, lines: Iterable[Line], keep_defaults: bool) -> None:
        for line in lines:
            if not keep_defaults and _DEFAULT_LINE.fullmatch(line.text):
                continue
            if line.below or line.text.split()[0].endswith("tx-queue"):
                self._queue(line, keep_defaults)
            else:
                self._line(line.text)

    def _line(self, text: str) -> None:
        words = text.split()
        on = words[0] not in ("no", "default")
        rest = words if on else words[1:]
        if not rest:
            return
        if rest[0] == _PFC:
            self._pfc(rest[1:], on)
        elif rest[:2] == ["qos", "trust"]:
            self.values["trust"] = rest[2] if on and len(rest) > 2 else "port" if words[0] == "no" else ""
        elif rest[0] == "flowcontrol" and len(rest) > 1:
            self.flows[rest[1]] = on and rest[-1] not in ("off", rest[1])
        elif rest[:2] == ["dcbx", "mode"]:
            self.values["dcbx"] = rest[2] if on and len(rest) > 2 else "none"
        elif rest[0] == "mtu":
            self.values["mtu"] = rest[1] if on and len(rest) > 1 else ""
        elif rest == ["switchport"]:
            self.values["routed"] = "" if on else "yes"

    def _pfc(self, rest: list[str], on: bool) -> None:
        """Lines that start with priority-flow-control, without that word."""
        if rest in ([], ["on"], ["mode", "on"]):  # "mode on" is the spelling of old EOS
            self.values["pfc"] = "on" if on else ""
        elif rest[0] == "priority" and len(rest) > 1 and rest[1].isdigit():
            (self.no_drop.add if on and rest[-1] == "no-drop" else self.no_drop.discard)(int(rest[1]))
        elif rest == ["pause", "watchdog"]:
            self.values["watchdog"] = "on" if on else "off"
        elif rest[:4] == ["pause", "watchdog", "port", "action"]:
            self.values["action"] = rest[-1] if on else ""
        elif rest[:4] == ["pause", "watchdog", "port", "timer"]:
            self.values["timer"] = " ".join(rest[4:]) if on else ""

    def _queue(self, line: Line, keep_defaults: bool) -> None:
        words = line.text.split()
        if words[0] not in ("tx-queue", "uc-tx-queue") or len(words) < 2 or not words[1].isdigit():
            return
        self.commands.add(words[0])
        queue = self.queues.setdefault(int(words[1]), {})
        for item in line.below:
            text = item.text
            if not keep_defaults and _DEFAULT_LINE.fullmatch(text):
                continue
            plain = text.removeprefix("no ")
            if plain == "priority" or text == "priority strict":
                queue["strict"] = "" if text != plain else "yes"
            elif plain.startswith("bandwidth percent"):
                queue["percent"] = plain.split()[-1] if text == plain else "0"
            elif plain.startswith("random-detect ecn") and not plain.endswith(" count"):
                queue["ecn"] = plain.removeprefix("random-detect ecn") if text == plain else ""
            elif plain.startswith("random-detect drop"):
                queue["drops"] = "yes" if text == plain else ""

    def done(self) -> PortConfig:
        values = self.values
        routed = values.get("routed")
        return PortConfig(
            routed=None if routed is None else bool(routed),
            mtu=self._number("mtu", values.get("mtu", "")),
            trust=values.get("trust", ""),
            pfc=bool(values.get("pfc")),
            no_drop=frozenset(self.no_drop),
            watchdog=values.get("watchdog") != "off",
            timer=self._timer(values.get("timer", "")),
            action=ACTIONS.get(values.get("action", ""), ""),
            pause=any(self.flows.values()),
            dcbx=values.get("dcbx", "none"),
            queues={
                number: QueueConfig(
                    strict=bool(queue.get("strict", "yes")),
                    percent=self._number("bandwidth percent", queue.get("percent", "0")) or 0,
                    ecn=tuple(queue.get("ecn", "").split()),
                    drops=bool(queue.get("drops")),
                )
                for number, queue in sorted(self.queues.items())
            },
            profile=self.profile,
            commands=frozenset(self.commands),
            odd=tuple(self.odd),
        )

    def _number(self, what: str, text: str) -> int | None:
        if text and not text.isdigit():
            self.odd.append(f"{what} {text}")
        return int(text) if text.isdigit() else None

    def _timer(self, text: str) -> tuple[int, int, int] | None:
        """timeout <s> polling-interval <s or auto> recovery-time <s> [forced]"""
        if not text:
            return None
        words = text.split()
        pairs = dict(zip(words[::2], words[1::2], strict=False))
        try:
            poll = pairs["polling-interval"]
            return (
                milliseconds(pairs["timeout"]),
                0 if poll == "auto" else milliseconds(poll),
                milliseconds(pairs["recovery-time"]),
            )
        except (KeyError, ValueError):
            self.odd.append(f"{_WATCHDOG} port timer {text}")
            return None
