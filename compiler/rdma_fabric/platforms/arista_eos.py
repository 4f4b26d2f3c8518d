"""Arista EOS 4.28 and newer: configuration sessions with a commit timer.

Settings are written as lines of the interface and of the node; a QoS profile of ours does not exist.
Facts and their sources: docs/platforms/arista_eos.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._arista_eos_read import QUESTIONS, SESSIONS, parse_answers
from rdma_fabric.platforms._arista_eos_realize import GLOBALS, realize_node
from rdma_fabric.platforms._arista_eos_vitals import QUESTIONS as VITALS
from rdma_fabric.platforms._arista_eos_vitals import vitals
from rdma_fabric.platforms._arista_eos_write import (
    UNVERIFIED,
    Before,
    EosLines,
    before_of,
    changed_lines,
    full_lines,
    held_by_profile,
)
from rdma_fabric.platforms._contract import (
    Artifact,
    Change,
    Dialect,
    Disturbance,
    Disturbs,
    Introduction,
    Platform,
    Realized,
    Send,
    Traits,
)
from rdma_fabric.platforms._shared import split_path, split_unknown
from rdma_fabric.state import (
    ClassState,
    Difference,
    NodeState,
    Observation,
    PortSettings,
    QosState,
    differences,
    value_or,
)
from rdma_fabric.templating import render_lines
from rdma_fabric.vitals import Vitals

TEMPLATE: Final = "arista_eos/config.j2"
_SESSION: Final = "fabric-@RUN@"

# A refusal is any line that starts with "% ", but for the answer to an abort of a session that is gone.
_ERRORS: Final = (
    r"(?m)^%(?! *(Cannot abort|.*[Ss]ession.*(not exist|not found|not pending|No such|unknown)))"
    r"|^\s*Maximum number of pending sessions has been reached"
)
_LIST: Final = "show configuration sessions detail"
# Anybody's commit that waits for its confirmation: EOS allows one timer. The state says so up to 4.31, from
# 4.32 the JSON names the session beside the list (napalm's driver reads both).
_TIMED: Final = r'\bpendingCommitTimer|"commitTimerSessionName":\s*"[^"]'
_TAKEN: Final = rf"(?m)^[ *]*fabric-\S+\s+pending|{_TIMED}"
_TWO_OF_US: Final = rf"(?m)^[ *]*fabric-\S+\s+pending\b[\s\S]*^[ *]*fabric-\S+\s+pending\b|{_TIMED}"
_LISTS: Final = (_LIST, SESSIONS)
_ABORT: Final = Send((f"configure session {_SESSION} abort",))
_SAVE: Final = Send(
    ("copy running-config startup-config",), expect="Copy completed successfully", timeout_s=120.0
)
_DEFAULTS: Final = PortSettings(
    qos=QosState(
        dscp_to_priority=tuple((1, 0, 2, 3, 4, 5, 6, 7)[dscp >> 3] for dscp in range(64)),
        pcp_to_priority=(1, 0, 2, 3, 4, 5, 6, 7),
        classes=(ClassState(pfc_tx=False, pfc_rx=False, ecn=None),) * 8,
        dcbx="none",
        global_pause=False,
    )
)


class AristaEos:
    """The platform; every method is pure."""

    name = "arista_eos"
    part: Literal["base", "nic", "service"] = "base"
    channel: Literal["cli", "files"] = "cli"
    dialect = Dialect(driver="arista_eos", errors=_ERRORS, enable=True, recover=(_ABORT,))
    traits = Traits(
        title="Arista EOS",
        introduction=Introduction(r"^Arista ", ("show hostname", r"^Hostname:\s+(\S+)")),
        evidence="documentation, recorded sessions and full configuration dumps; no device of our own",
        globals=GLOBALS,
        tested="the simulator, written from the same documents; real interface outputs; pyavd as judge",
        cannot=(
            "PFC in one direction",
            "headroom per priority, cable length",
            "ECN thresholds in percent or per colour",
            "trust of DSCP and 802.1p at once",
            "a watchdog for some no-drop priorities of a port and not for others",
            "different DSCP maps or watchdog timers on two ports of a switch",
            "settings of queue 7",
            "rate caps",
        ),
        defaults=_DEFAULTS,
        defaults_source="EOS manual, Quality of Service and DCBX; trust is DSCP on routed ports and 802.1p "
        "on switchports, so that the inventory alone does not tell it, nor the MTU",
    )

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """What a read-back will show, and what EOS cannot express."""
        return realize_node(wanted, hw)

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """One file with all lines that we own."""
        return (Artifact(TEMPLATE, "arista_eos.cfg"),)

    def context(self, wanted: NodeState, hw: Hardware) -> EosLines:
        """The lines of the full rendering."""
        return full_lines(wanted, hw)

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """Seven read-only commands, the same for any number of ports."""
        return QUESTIONS

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state of the ports in `hw`; never raises."""
        return parse_answers(answers, hw)

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """Eight read-only commands, the same for any number of ports."""
        return VITALS

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """Counters of the ports in `hw`."""
        return vitals(answers, hw)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """The session that leads from `seen` to `wanted`; only a save when the live state is right."""
        before = before_of(seen.running, seen.facts)
        repair, blocked = _repairable(seen, wanted, before)
        lines = _render(changed_lines(wanted, hw, before, repair))
        if lines:
            return _session(repair, blocked, lines, wanted)
        unsaved = _unsaved(seen, wanted)
        if unsaved:
            return Change(
                differences=unsaved,
                blocked=blocked,
                lines=_SAVE.lines,
                commit=(_SAVE,),
                save=(_SAVE,),
                expected=wanted,
            )
        return Change(differences=repair, blocked=blocked, expected=wanted)


def _render(context: EosLines) -> tuple[str, ...]:
    return tuple(line for line in render_lines(TEMPLATE, context) if line.strip() != "!")


def _bridged(seen: NodeState | None) -> frozenset[str]:
    """Ports whose MTU line has no effect because they are bridged."""
    ports = seen.ports if seen else ()
    return frozenset(port.name for port in ports if port.settings.mtu.enforced is False)


def _repairable(
    seen: Observation, wanted: NodeState, before: Before
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """(what lines can repair, what they cannot).

    Lines cannot repair fields that were not read, the MTU of a bridged port, and what a foreign
    service profile sets.
    """
    repair, blocked = split_unknown(differences(wanted, seen.running))
    flat = _bridged(seen.running)
    ports = {port.name: port.settings for port in wanted.ports}
    stuck = []
    for item in repair:
        port, setting = split_path(item.path, ports)
        marks = before.overrides.get(port, frozenset())
        mode = setting == "mtu.enforced" or (setting == "mtu.ip" and port in flat)
        if mode or (marks and held_by_profile(setting, item.wanted, _queue(ports[port], setting), marks)):
            stuck.append(item)
    return tuple(item for item in repair if item not in stuck), (*blocked, *stuck)


def _queue(settings: PortSettings, setting: str) -> int:
    """The queue number that a class's setting is about; -1 for other settings."""
    match = re.match(r"qos\.classes\.(\d)", setting)
    if match is None:
        return -1
    return value_or(settings.qos.classes[int(match[1])].queue, int(match[1]))


def _unsaved(seen: Observation, wanted: NodeState) -> tuple[Difference, ...]:
    """Fields that are right now and wrong after a reboot."""
    if seen.stored is None:
        return ()
    flat = _bridged(seen.running)
    names = [port.name for port in wanted.ports]
    live = {item.path for item in differences(wanted, seen.running)}
    found = []
    for item in differences(wanted, seen.stored):
        port, setting = split_path(item.path, names)
        if not (item.unknown or item.path in live or (setting.startswith("mtu.") and port in flat)):
            found.append(item)
    return tuple(found)


def _session(
    repair: tuple[Difference, ...], blocked: tuple[Difference, ...], lines: tuple[str, ...], wanted: NodeState
) -> Change:
    """Open, fill, diff; commit with a timer; confirm; save.

    A session is a snapshot of the running configuration, and its commit takes back what others changed
    since. So the configuration before it, and the diff after it, are asked again right before the commit.
    """
    disturbs = _disturbs(repair, [port.name for port in wanted.ports])
    typed = tuple(line.strip() for line in lines)
    return Change(
        differences=repair,
        blocked=blocked,
        lines=lines,
        lock=(Send(_LISTS, forbid=_TAKEN),),
        stage=(
            Send(("show running-config",), keep="base"),
            Send((f"configure session {_SESSION}", *typed, "end")),
            Send(_LISTS, forbid=_TWO_OF_US),
            Send((f"show session-config named {_SESSION} diffs",), keep="diff"),
        ),
        commit=(Send((f"configure session {_SESSION} commit timer @TIMER_HMS@",)),),
        # A confirm prints nothing; a timer that still runs would take the change back.
        confirm=(Send((f"configure session {_SESSION} commit",)), Send(_LISTS, forbid=_TIMED)),
        save=(_SAVE,),
        undo=(_ABORT,),
        undo_kind="device-timer",
        disturbs=disturbs,
        undo_disturbs=disturbs,
        unverified=tuple(line for line in lines if UNVERIFIED.fullmatch(line.strip())),
        expected=wanted,
    )


# What a change of a field does to traffic. The documents that we read are silent: DESIGN's default.
_HARM: Final = (
    (r"qos\.classes\.\d\.pfc_[tr]x", Disturbs.PORT_BOUNCE, "PFC of a priority goes on or off"),
    (r"mtu\.ip", Disturbs.LOSS, "the MTU changes"),
    (r"qos\.(dscp|pcp)_to_priority", Disturbs.LOSS, "packets move to another queue"),
    (r"qos\.classes\.\d\.queue", Disturbs.LOSS, "a class moves to another queue"),
    (r"qos\.trust", Disturbs.LOSS, "packets move to another queue"),
    (r"qos\.classes\.\d\.(ecn|share)", Disturbs.LOSS, "a queue is set anew"),
    (r"qos\.(watchdog\..*|classes\.\d\.watchdog)", Disturbs.LOSS, "the PFC watchdog is set anew"),
    (r"qos\.(dcbx|global_pause)", Disturbs.LOSS, "flow control is set anew"),
)
_NODE_WIDE: Final = re.compile(r"qos\.(dscp_to_priority|pcp_to_priority|watchdog\..*|classes\.\d\.queue)")


def _disturbs(repair: tuple[Difference, ...], names: list[str]) -> tuple[Disturbance, ...]:
    found: dict[tuple[Disturbs, str], dict[str, None]] = {}
    for item in repair:
        port, setting = split_path(item.path, names)
        for pattern, level, what in _HARM:
            if re.fullmatch(pattern, setting):
                where = "" if _NODE_WIDE.fullmatch(setting) else port
                found.setdefault((level, what), {})[where] = None
                break
    return tuple(
        Disturbance(level, ("",) if "" in ports else tuple(ports), what, "experience")
        for (level, what), ports in sorted(found.items(), key=lambda item: (-item[0][0], item[0][1]))
    )


PLATFORM: Platform = AristaEos()
