"""Turns the answers of an EOS switch into the neutral state."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._arista_eos_config import (
    BRIDGED_MTU,
    DEFAULT_MTU,
    EosConfig,
    PortConfig,
    QueueConfig,
    long_name,
    read_config,
)
from rdma_fabric.platforms._shared import digest, expand, integer, unknown_observation, unknown_settings
from rdma_fabric.state import (
    NOT_APPLICABLE,
    PRIORITIES,
    UNKNOWN,
    Amount,
    ClassState,
    Ecn,
    Maybe,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    Trust,
    WatchdogTimers,
)

VERSION: Final = "show version | json | no-more"
RUNNING: Final = "show running-config all"
INTERFACES: Final = "show interfaces | json | no-more"
PFC: Final = "show priority-flow-control"
STARTUP: Final = "show startup-config"
SESSIONS: Final = "show configuration sessions detail | json | no-more"
LLDP: Final = "show lldp neighbors | json | no-more"
QUESTIONS: Final = (VERSION, RUNNING, INTERFACES, PFC, STARTUP, SESSIONS, LLDP)

QUEUE_COMMAND: Final = "queue-command"
OVERRIDE: Final = "override"
"""Facts named "override <port>" (or "override" for the node): configuration that is not in force now or
that stands above the node's values, so that a change has to take it away. Words separated by blanks."""

_SESSION = "fabric-"


def parse_answers(answers: Mapping[str, str], hw: Hardware) -> Observation:
    """The observation of an EOS switch; never raises."""
    text = answers.get(RUNNING, "")
    if not text.strip() or text.lstrip().startswith("%"):
        return unknown_observation(hw, f"{RUNNING}: no configuration in the answer")
    if not _whole(text):
        return unknown_observation(hw, f"{RUNNING}: the answer stops before the configuration's end")
    config = read_config(text)
    shown = _Shown.read(answers, config, hw)
    running = NodeState(ports=tuple(_port(config, port, shown, live=True) for port in hw.ports))
    stored = _stored(answers.get(STARTUP, ""), hw, shown)
    overrides = _overrides(config, hw)
    return Observation(
        running=running,
        stored=stored,
        operational=shown.operational,
        notes=(*shown.notes, *_notes(config, hw), *_session_notes(answers.get(SESSIONS, ""))),
        neighbours=_neighbours(answers.get(LLDP, "")),
        facts=tuple(sorted((*shown.facts, *overrides))),
        evidence=digest((running.ports, stored, overrides)),
    )


def _whole(text: str) -> bool:
    """True when nothing is cut off: EOS closes a configuration with a line `end` (recorded vEOS sessions)."""
    return text.rstrip().rpartition("\n")[2].strip() == "end"


# ---------------------------------------------------------------- what the device shows


@dataclass(frozen=True, slots=True)
class _Interface:
    """One entry of `show interfaces | json`."""

    mtu: int | None
    routed: bool
    speed_gbps: int
    up: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    """Operational answers; a part that was not understood is None and said in `notes`."""

    interfaces: Mapping[str, _Interface] | None
    pfc: Mapping[str, frozenset[int] | None] | None
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    operational: bool = True
    known: frozenset[str] = field(default_factory=frozenset)
    """Ports that exist, by any answer."""
    cell_bytes: int = 0
    """Size of one buffer segment; 0 where the ASIC table does not know it."""

    @classmethod
    def read(cls, answers: Mapping[str, str], config: EosConfig, hw: Hardware) -> _Shown:
        interfaces = _interfaces(answers.get(INTERFACES, ""))
        pfc = _pfc_table(answers.get(PFC, ""))
        notes = [
            f"{question}: not understood, the configuration is taken instead"
            for question, part in ((INTERFACES, interfaces), (PFC, pfc))
            if part is None
        ]
        return cls(
            interfaces=interfaces,
            pfc=pfc,
            facts=(*_version_facts(answers.get(VERSION, "")), *_queue_fact(config)),
            notes=tuple(notes),
            operational=not notes,
            known=frozenset(config.ports) | frozenset(interfaces or ()),
            cell_bytes=hw.asic.cell_bytes if hw.asic else 0,
        )


def _json(text: str) -> dict[str, Any] | None:
    """The JSON object of an answer, or None."""
    try:
        found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


_OPENING = re.compile(r"(?m)^(\S+) is (up|down|administratively down)")


def _interfaces_text(text: str) -> dict[str, _Interface] | None:
    """The text form of `show interfaces`, for devices that do not take `| json`."""
    openings = list(_OPENING.finditer(text))
    found = {}
    for number, opening in enumerate(openings):
        end = openings[number + 1].start() if number + 1 < len(openings) else len(text)
        block = text[opening.start() : end]
        mtu = re.search(r"(IP|Ethernet) MTU (\d+) bytes", block)
        speed = re.search(r"BW (\d+) kbit", block)
        found[long_name(opening[1])] = _Interface(
            mtu=int(mtu[2]) if mtu else None,
            routed=mtu is not None and mtu[1] == "IP",
            speed_gbps=int(speed[1]) // 10**6 if speed else 0,
            up=opening[2] == "up",
        )
    return found or None


def _interfaces(text: str) -> dict[str, _Interface] | None:
    found = _json(text)
    entries = found.get("interfaces") if found else None
    if not isinstance(entries, dict):
        return _interfaces_text(text)
    return {
        long_name(name): _Interface(
            mtu=entry["mtu"] if isinstance(entry.get("mtu"), int) else None,
            routed=entry.get("forwardingModel") == "routed",
            speed_gbps=int(entry.get("bandwidth") or 0) // 10**9,
            up=entry.get("interfaceStatus") == "connected" or entry.get("lineProtocolStatus") == "up",
        )
        for name, entry in entries.items()
        if isinstance(entry, dict)
    }


def _pfc_table(text: str) -> dict[str, frozenset[int] | None] | None:
    """Port -> priorities with PFC in force; None for a port whose row says that it is not active.

    The columns are cut where the line of dashes says: Port, Enabled, Priorities, Active, Note.
    """
    rows = text.splitlines()
    ruler = next((n for n, row in enumerate(rows) if re.fullmatch(r"\s*-{3,}( +-{3,}){3,}\s*", row)), None)
    if ruler is None or not rows[ruler - 1 : ruler] or "Priorities" not in rows[ruler - 1]:
        return None
    spans = [match.span() for match in re.finditer(r"-+", rows[ruler])]
    found: dict[str, frozenset[int] | None] = {}
    for row in rows[ruler + 1 :]:
        cells = [row[start:end].strip() for start, end in spans]
        if not re.match(r"[A-Z][A-Za-z-]*\d", cells[0]):
            continue
        if cells[1] not in ("Yes", "No") or cells[3] not in ("Yes", "No"):
            return None
        try:
            listed = frozenset(expand(cells[2])) if cells[2].strip("-") else frozenset()
        except ValueError:
            return None
        on = cells[1] == "Yes"
        found[long_name(cells[0])] = None if on and cells[3] == "No" else listed if on else frozenset()
    return found


def _version_facts(text: str) -> tuple[tuple[str, str], ...]:
    found = _json(text) or {}
    pairs = (("model", found.get("modelName")), ("version", found.get("version")))
    return tuple((name, value) for name, value in pairs if isinstance(value, str) and value)


def _queue_fact(config: EosConfig) -> tuple[tuple[str, str], ...]:
    """The word that opens a queue block, where the device itself uses only one."""
    commands = {word for port in config.ports.values() for word in port.commands}
    return ((QUEUE_COMMAND, commands.pop()),) if len(commands) == 1 else ()


def _neighbours(text: str) -> tuple[tuple[str, str, str], ...]:
    """JSON of `show lldp neighbors`, or its table (port, device, port, TTL)."""
    found = _json(text)
    rows: list[tuple[Any, ...]]
    if found is not None:
        entries = found.get("lldpNeighbors")
        rows = [
            (entry.get("port"), entry.get("neighborDevice"), entry.get("neighborPort"))
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict)
        ]
    else:
        rows = [
            match.groups() for match in re.finditer(r"(?m)^([A-Z][a-z]\d\S*)\s+(\S+)\s+(\S+)\s+\d+\s*$", text)
        ]
    return tuple(
        sorted((long_name(str(local)), str(device), str(port)) for local, device, port in rows if local)
    )


# ---------------------------------------------------------------- one port


def _port(config: EosConfig, port: PortHardware, shown: _Shown, live: bool) -> PortState:
    name = long_name(port.name)
    if name not in shown.known:
        return PortState(port.name, port.kind, unknown_settings(), speed_gbps=UNKNOWN)
    block = config.ports.get(name, PortConfig())
    entry = (shown.interfaces or {}).get(name)
    routed = _routed(config, block, port, entry if live else None)
    speed = entry.speed_gbps if entry else 0
    settings = PortSettings(mtu=_mtu(block, routed, entry if live else None))
    if port.kind in ("svi", "vlan"):
        settings = replace(settings, qos=NO_QOS)
    else:
        effective = _no_drop(config, block, name, shown, entry) if live else _configured(config, block)
        settings = replace(settings, qos=_qos(config, block, routed, effective, speed, shown.cell_bytes))
    return PortState(port.name, port.kind, settings, speed_gbps=speed or UNKNOWN)


NO_QOS: Final = QosState(
    trust=NOT_APPLICABLE,
    dscp_to_priority=NOT_APPLICABLE,
    pcp_to_priority=NOT_APPLICABLE,
    classes=(
        ClassState(
            pfc_tx=NOT_APPLICABLE,
            pfc_rx=NOT_APPLICABLE,
            watchdog=NOT_APPLICABLE,
            ecn=NOT_APPLICABLE,
            headroom=NOT_APPLICABLE,
            share=NOT_APPLICABLE,
            queue=NOT_APPLICABLE,
            group=NOT_APPLICABLE,
        ),
    )
    * len(PRIORITIES),
    watchdog=WatchdogTimers(NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE),
    dcbx=NOT_APPLICABLE,
    global_pause=NOT_APPLICABLE,
    cable_m=NOT_APPLICABLE,
)
"""VLAN interfaces and subinterfaces carry an MTU only; their packets use the parent's queues."""


def default_settings(port: PortHardware, routed: bool) -> PortSettings:
    """What a read-back shows of a port that nobody configured."""
    qos = NO_QOS
    if port.kind not in ("svi", "vlan"):
        qos = _qos(EosConfig({}), PortConfig(), routed, frozenset(), 0, 0)
    return PortSettings(mtu=_mtu(PortConfig(), routed, None), qos=qos)


def bridged(port: PortHardware) -> bool:
    """True for a port that the inventory puts into a VLAN itself: an access port."""
    return port.kind in ("physical", "bond") and port.vlan > 0


def _routed(config: EosConfig, block: PortConfig, port: PortHardware, entry: _Interface | None) -> bool:
    if entry is not None:
        return entry.routed
    if port.kind in ("svi", "vlan"):
        return True
    return config.routed_default if block.routed is None else block.routed


def _mtu(block: PortConfig, routed: bool, entry: _Interface | None) -> Mtu:
    """L3 MTU; a bridged port shows a fixed number that limits nothing."""
    if entry is not None:
        shown: Maybe[int] = UNKNOWN if entry.mtu is None else entry.mtu
    elif any(line.startswith("mtu ") for line in block.odd):
        shown = UNKNOWN
    elif routed:
        shown = DEFAULT_MTU if block.mtu is None else block.mtu
    else:
        shown = BRIDGED_MTU
    return Mtu(ip=shown, frame=NOT_APPLICABLE if routed else shown, enforced=routed)


def _configured(config: EosConfig, block: PortConfig) -> frozenset[int]:
    return block.no_drop if block.pfc and not config.all_off else frozenset()


def _no_drop(
    config: EosConfig, block: PortConfig, name: str, shown: _Shown, entry: _Interface | None
) -> frozenset[int]:
    """Priorities with PFC in force: what the device says, else what is configured."""
    configured = _configured(config, block)
    if shown.pfc is None or name not in shown.pfc:
        return configured
    listed = shown.pfc[name]
    if listed is None:  # enabled, not active: normal while the link is down
        return frozenset() if entry is not None and entry.up else configured
    return listed


def _qos(
    config: EosConfig,
    block: PortConfig,
    routed: bool,
    no_drop: frozenset[int],
    speed_gbps: int,
    cell_bytes: int,
) -> QosState:
    return QosState(
        trust=_trust(block, routed),
        dscp_to_priority=UNKNOWN if any(" dscp " in line for line in config.odd) else config.dscp,
        pcp_to_priority=UNKNOWN if any(" cos " in line for line in config.odd) else config.pcp,
        classes=tuple(
            _class(config, block, priority, no_drop, speed_gbps, cell_bytes) for priority in PRIORITIES
        ),
        watchdog=_timers(config, block),
        dcbx=block.dcbx if block.dcbx in ("none", "ieee", "cee") else UNKNOWN,  # type: ignore[arg-type]
        global_pause=block.pause,
        cable_m=NOT_APPLICABLE,
    )


def _trust(block: PortConfig, routed: bool) -> Maybe[Trust]:
    """EOS manual: the default is DSCP on routed ports and CoS on switchports."""
    words: dict[str, Trust] = {"dscp": "dscp", "cos": "pcp", "port": "port", "": "dscp" if routed else "pcp"}
    return words.get(block.trust, UNKNOWN)


def _timers(config: EosConfig, block: PortConfig) -> WatchdogTimers:
    """A port's own timers stand above the node's; 0 ms = none set, EOS uses its own."""
    if any("timer" in line for line in block.odd):
        return WatchdogTimers(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    words = [line.split()[4] for line in config.odd if line.startswith("priority-flow-control")]
    detect, poll, restore = block.timer or (config.detect_ms, config.poll_ms, config.restore_ms)
    return WatchdogTimers(
        detect_ms=UNKNOWN if "timeout" in words and not block.timer else detect,
        restore_ms=UNKNOWN if "recovery-time" in words and not block.timer else restore,
        poll_ms=UNKNOWN if "polling-interval" in words and not block.timer else poll,
        action="drop" if config.force_drop else block.action or config.action,
    )


def _class(
    config: EosConfig,
    block: PortConfig,
    priority: int,
    no_drop: frozenset[int],
    speed_gbps: int,
    cell_bytes: int,
) -> ClassState:
    """The traffic class has the priority's number; its queue comes from the map."""
    on = priority in no_drop
    number = config.queues[priority]
    queue = block.queues.get(number, QueueConfig())
    share: Maybe[Share | None] = Share("strict") if queue.strict else Share("dwrr", queue.percent)
    if any(line.startswith("bandwidth percent") for line in block.odd):
        share = UNKNOWN
    return ClassState(
        pfc_tx=on,
        pfc_rx=on,
        watchdog=on and block.watchdog,
        ecn=_ecn(queue.ecn, speed_gbps, cell_bytes),
        headroom=None,
        share=share,
        queue=number,
        group=NOT_APPLICABLE,
    )


def _ecn(words: tuple[str, ...], speed_gbps: int, cell_bytes: int) -> Maybe[Ecn | None]:
    """minimum-threshold <n> <unit> maximum-threshold <n> <unit> [max-mark-probability <n>] [weight <n>]"""
    if not words:
        return None
    try:
        low = words.index("minimum-threshold")
        high = words.index("maximum-threshold")
        kmin = _amount(words[low + 1], words[low + 2], speed_gbps, cell_bytes)
        kmax = _amount(words[high + 1], words[high + 2], speed_gbps, cell_bytes)
        chance = words[words.index("max-mark-probability") + 1] if "max-mark-probability" in words else "100"
    except (ValueError, IndexError):
        return UNKNOWN
    percent = integer(chance)
    if kmin is None or kmax is None or percent is None:
        return UNKNOWN
    return Ecn(kmin, kmax, float(percent))


_BYTES: Final = {"bytes": 1, "kbytes": 1000, "mbytes": 10**6}


def _amount(number: str, unit: str, speed_gbps: int, cell_bytes: int) -> Amount | None:
    """Bytes of a threshold; times are counted at line rate."""
    value = integer(number)
    if value is None:
        return None
    if unit in _BYTES:
        return Amount(value * _BYTES[unit])
    if unit == "segments":
        return Amount(value * cell_bytes) if cell_bytes else Amount(value, "segments")
    per_ms = {"milliseconds": 1, "microseconds": 1000}.get(unit)
    if per_ms and speed_gbps:
        return Amount(value * speed_gbps * 125_000 // per_ms)
    return None


# ---------------------------------------------------------------- stored, overrides, notes


def _stored(text: str, hw: Hardware, shown: _Shown) -> NodeState | None:
    """What a reboot brings back; None where the startup configuration could not be read."""
    if not _whole(text):
        return None
    config = read_config(text)
    return NodeState(ports=tuple(_port(config, port, shown, live=False) for port in hw.ports))


def _overrides(config: EosConfig, hw: Hardware) -> tuple[tuple[str, str], ...]:
    """Facts about configuration that the neutral state cannot show but a change has to know."""
    node = [word for word, on in (("all-off", config.all_off), ("force-drop", config.force_drop)) if on]
    found = [(OVERRIDE, " ".join(node))] if node else []
    for port in hw.ports:
        block = config.ports.get(long_name(port.name), PortConfig())
        hidden = block.no_drop if config.all_off or not block.pfc else frozenset()
        words = [f"no-drop-{priority}" for priority in sorted(hidden)]
        words += ["timer"] if block.timer else []
        words += ["action"] if block.action else []
        words += [] if block.watchdog else ["unwatched"]
        words += [f"profile-{word}" for word in sorted(block.held)]
        if words:
            found.append((f"{OVERRIDE} {port.name}", " ".join(words)))
    return tuple(sorted(found))


def _notes(config: EosConfig, hw: Hardware) -> tuple[str, ...]:
    notes = [f"not understood: {line}" for line in config.odd]
    if config.all_off:
        notes.append("priority-flow-control all off: PFC is off on every port, whatever the ports say")
    profiles: dict[str, int] = {}
    for port in hw.ports:
        block = config.ports.get(long_name(port.name), PortConfig())
        notes += [f"{port.name}: not understood: {line}" for line in block.odd]
        notes += [
            f"{port.name}: queue {queue} of lossless priority {priority} has random-detect drop"
            for priority, queue in enumerate(config.queues)
            if priority in block.no_drop and block.queues.get(queue, QueueConfig()).drops
        ]
        if block.profile:
            profiles[block.profile] = profiles.get(block.profile, 0) + 1
    notes += [
        f"service-profile {name} on {count} port{'s' * (count != 1)}: settings are read through it, lines"
        " on the port are written beside it and cannot take away what it sets"
        for name, count in sorted(profiles.items())
    ]
    return tuple(notes)


def _session_notes(text: str) -> tuple[str, ...]:
    """Candidates that wait: up to 4.31 the state says so, from 4.32 the timer stands beside the list."""
    found = _json(text)
    if found is None:
        return ()
    sessions = found.get("sessions")
    states = {
        name: str(entry.get("state", ""))
        for name, entry in (sessions.items() if isinstance(sessions, dict) else ())
        if isinstance(entry, dict)
    }
    timed = found.get("commitTimerSessionName")
    notes = []
    for name, state in sorted(states.items()):
        if name == timed or "pendingCommitTimer" in state:
            notes.append(f"configuration session {name} waits for its confirmation")
        elif state.startswith("pending"):
            whose = "an earlier run" if name.startswith(_SESSION) else "somebody else"
            notes.append(f"configuration session {name} of {whose} is pending")
    if timed and timed not in states:
        notes.append(f"configuration session {timed} waits for its confirmation")
    return tuple(notes)
