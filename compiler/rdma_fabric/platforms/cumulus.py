"""NVIDIA Cumulus Linux 5.5 and newer: NVUE revisions with a commit timer.

QoS is written as profiles of our ports; the RoCE macro is never used, and read where somebody else did.
Facts and their sources: docs/platforms/cumulus.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import (
    RUN,
    TIMER_S,
    Artifact,
    Change,
    Dialect,
    Disturbance,
    Disturbs,
    Introduction,
    Platform,
    Realized,
    Send,
    Step,
    Traits,
)
from rdma_fabric.platforms._cumulus_lines import NvueLines
from rdma_fabric.platforms._cumulus_profiles import Before, before_of
from rdma_fabric.platforms._cumulus_read import QUESTIONS, parse_answers
from rdma_fabric.platforms._cumulus_realize import GLOBALS, realize_node
from rdma_fabric.platforms._cumulus_switch import AUTO_SAVE
from rdma_fabric.platforms._cumulus_vitals import questions as vital_questions
from rdma_fabric.platforms._cumulus_vitals import vitals
from rdma_fabric.platforms._cumulus_write import (
    changed_lines,
    full_lines,
    kinds_of,
    unreadable,
)
from rdma_fabric.platforms._shared import split_path, split_unknown
from rdma_fabric.state import (
    Amount,
    ClassState,
    Difference,
    Ecn,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    QosState,
    differences,
)
from rdma_fabric.templating import render_lines
from rdma_fabric.vitals import Vitals

TEMPLATE: Final = "cumulus/config.j2"

_DEFAULTS: Final = PortSettings(
    mtu=Mtu(ip=9216),
    qos=QosState(
        trust="pcp",
        dscp_to_priority=tuple(dscp >> 3 for dscp in range(64)),
        pcp_to_priority=tuple(range(8)),
        classes=(
            ClassState(False, False, ecn=Ecn(Amount(150_000), Amount(1_500_000), 100.0)),
            *(ClassState(False, False, ecn=None),) * 7,
        ),
        dcbx="none",
        global_pause=False,
    ),
)
_ERRORS: Final = r"^Error\b|^Invalid config|command not found|^(Declined|Aborted) apply"
_NAME: Final = f"fabric-{RUN}"
"""Message of our apply in the list of revisions: it says whose apply waits."""
_LOCK: Final = f"/tmp/{_NAME}.lock"
_OTHERS: Final = rf"ls /tmp | grep '^fabric-[a-z0-9]*[.]lock$' | grep -v '^{_NAME}[.]lock$'"
_WAITS: Final = f"nv config revision | grep ' confirm .* {_NAME} *$'"
"""The line of our apply while its timer runs; nobody else's is ever confirmed or refused by us."""

# Every run makes a file of its own and looks for others after that: of two, at least one sees the other.
# The change is staged in the account's own candidate, so nobody may have staged anything there.
LOCK: Final[tuple[Step, ...]] = (
    Send((_OTHERS,), forbid=r"^fabric-", status=(0, 1)),
    Send(
        (
            "nv config diff | grep -q . &&"
            " echo 'staged: this account has a candidate of its own; apply it or run nv config detach'",
        ),
        forbid=r"^staged:",
        status=(0, 1),
    ),
    Send((f"echo 'fabric run {RUN}' > {_LOCK}",)),
    Send((f"{_OTHERS} && rm -f {_LOCK}",), forbid=r"^fabric-", status=(0, 1)),
)
UNLOCK: Final[tuple[Step, ...]] = (Send((f"rm -f {_LOCK}",)),)
_REFUSE: Final = Send((f"{_WAITS} && nv config apply --confirm-no",), status=(0, 1), timeout_s=300.0)
# Only a run that holds its lock has staged anything. A detached revision stays in NVUE's list, of which it
# keeps the last 100; to delete it needs its number, which only the answer of this line tells.
_DROP: Final = Send((f"ls {_LOCK} > /dev/null 2>&1 && nv config detach",), status=(0, 1, 2))
UNDO: Final[tuple[Step, ...]] = (_REFUSE, _DROP)
# A revision is made of what is applied when it is attached; what others apply after that, ours takes back.
_BASE: Final = Send(("nv config show -o json --color off",), keep="base")
_DIFF: Final = Send(("nv config diff",), expect=r"\S", status=(0, 1), keep="diff")
_SAVE: Final = Send(("nv config save",), timeout_s=120.0)


class Cumulus:
    """The platform; every method is pure."""

    name = "cumulus"
    part: Literal["base", "nic", "service"] = "base"
    channel: Literal["cli", "files"] = "cli"
    dialect = Dialect(driver="linux", errors=_ERRORS, status=True, recover=(*UNDO, *UNLOCK))
    traits = Traits(
        title="NVIDIA Cumulus Linux",
        introduction=Introduction(r"^ID=\"?cumulus-linux"),
        evidence="documentation, full configuration trees and field configurations; no device of our own",
        globals=GLOBALS,
        tested="the simulator, written from the same documents",
        cannot=(
            "PFC directions that differ between the lossless classes of a port",
            "headroom in bytes, ECN thresholds in percent or per colour",
            "a watchdog for some lossless classes of a port and not for others",
            "watchdog timers that differ between ports, a restore time, another action than drop",
            "another traffic class for a priority on one port only",
            "QoS of a bond as such: its members carry it",
            "rate caps",
        ),
        defaults=_DEFAULTS,
        defaults_source="NVIDIA's full applied tree of 5.5 (trust l2, PCP n to priority n, no PFC, link "
        "pause off); QoS page (DSCP n to n / 8 where trusted, ECN on traffic class 0); help text of link mtu",
    )

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """What a read-back will show, and what NVUE cannot express."""
        return realize_node(wanted, hw)

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """One file of `nv set` lines, to be typed or given to `nv config patch`."""
        return (Artifact(TEMPLATE, "cumulus.nv"),)

    def context(self, wanted: NodeState, hw: Hardware) -> NvueLines:
        """The lines of the full rendering."""
        return full_lines(wanted, hw)

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """Read-only commands, the same for any number of ports."""
        return QUESTIONS

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state of the ports in `hw`; never raises."""
        return parse_answers(answers, hw)

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """Two commands for every port."""
        return vital_questions(hw)

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """Counters of the ports in `hw`."""
        return vitals(answers, hw)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """The revision that leads from `seen` to `wanted`; only a save when the live state is right."""
        before = before_of(seen.running, seen.facts, hw)
        repair, blocked = _repairable(seen, wanted, before)
        context = changed_lines(wanted, before, repair)
        lines = render_lines(TEMPLATE, context)
        saves = () if dict(seen.facts).get(AUTO_SAVE) == "on" else (_SAVE,)
        if lines:
            return _revision(repair, blocked, lines, context, saves, wanted)
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


def _repairable(
    seen: Observation, wanted: NodeState, before: Before
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """(what lines can repair, what they cannot).

    A profile holds several fields: where one of them could not be read, none is written. Link pause that
    is configured for all ports is not ours to take away; buffer sizes by hand (a recorded state may have
    some) are not written.
    """
    repair, unknown = split_unknown(differences(wanted, seen.running))
    settings = {port.name: port.settings.qos for port in wanted.ports}
    stuck: list[Difference] = []
    for item in repair:
        port, setting = split_path(item.path, settings)
        known = port in before.ports and setting != "mtu.enforced"
        paused = setting == "qos.global_pause" and before.paused_by_all
        kinds = kinds_of(setting) if known else ()
        hidden = any(unreadable(before.ports[port].qos, settings[port], kind) for kind in kinds)
        sized = setting.endswith(".headroom") and isinstance(item.wanted, Amount)
        if not known or paused or hidden or sized:
            stuck.append(item)
    return tuple(item for item in repair if item not in stuck), (*unknown, *stuck)


def _unsaved(seen: Observation, wanted: NodeState) -> tuple[Difference, ...]:
    """Fields that are right now and wrong after a reboot."""
    if seen.stored is None:
        return ()
    live = {item.path for item in differences(wanted, seen.running)}
    found = differences(wanted, seen.stored)
    return tuple(item for item in found if not item.unknown and item.path not in live)


def _revision(
    repair: tuple[Difference, ...],
    blocked: tuple[Difference, ...],
    lines: tuple[str, ...],
    context: NvueLines,
    saves: tuple[Send, ...],
    wanted: NodeState,
) -> Change:
    """Attach a revision made of what is applied, fill it, diff; apply with a timer; confirm; save."""
    disturbs = _disturbs(repair, [port.name for port in wanted.ports])
    doubtful = [re.compile(pattern) for pattern in context.doubtful]
    return Change(
        differences=repair,
        blocked=blocked,
        lines=lines,
        lock=LOCK,
        stage=(_BASE, Send(("nv config attach applied -y",)), Send(lines), _DIFF),
        commit=(
            Send(
                (f"nv config apply --confirm {TIMER_S}s -y -m {_NAME}",),
                expect=r"^applied",
                forbid=r"(?i)\bfailed\b",
                timeout_s=300.0,
            ),
        ),
        confirm=(
            Send((f"{_WAITS} && nv config apply --confirm-yes",), timeout_s=120.0),
            Send((_WAITS,), status=(1,)),
        ),
        save=saves,
        undo=UNDO,
        unlock=UNLOCK,
        undo_kind="device-timer",
        disturbs=disturbs,
        undo_disturbs=disturbs,
        unverified=tuple(line for line in lines if any(one.fullmatch(line) for one in doubtful)),
        expected=wanted,
    )


_PAGE: Final = 'Cumulus Linux, Quality of Service, "switchd and QoS"'
# switchd takes most of QoS by a reload without loss; buffers, PFC and pause may lose packets for a moment
# on any port, and so does qos_infra.conf, where the traffic classes of priorities are written. A reload that
# itself loses nothing still moves marked traffic to another priority, maybe one that nobody pauses.
_HARM: Final = (
    (r"qos\.(classes\.\d\.(pfc_[tr]x|headroom)|cable_m)", "", "PFC or its buffers are set anew", _PAGE),
    (r"qos\.classes\.\d\.queue", "", "a class moves to another queue", _PAGE),
    (r"qos\.global_pause", "", "link pause is set anew", _PAGE),
    (r"qos\.(trust|(dscp|pcp)_to_priority)", "port", "packets move to another priority", "experience"),
    (r"mtu\.ip", "port", "the MTU changes", "experience"),
)


def _disturbs(repair: tuple[Difference, ...], names: list[str]) -> tuple[Disturbance, ...]:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for item in repair:
        port, setting = split_path(item.path, names)
        for pattern, where, what, source in _HARM:
            if re.fullmatch(pattern, setting):
                found.setdefault((what, source), {})[port if where else ""] = None
    return tuple(
        Disturbance(Disturbs.LOSS, tuple(ports), what, source)
        for (what, source), ports in sorted(found.items())
    )


PLATFORM: Platform = Cumulus()
