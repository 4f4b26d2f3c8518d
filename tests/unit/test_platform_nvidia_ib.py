"""Managed InfiniBand switches: the one line that is ours, what is read, and what is told only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _nvidia_ib_sm as manager
from rdma_fabric.platforms._contract import Change, Disturbs, Send
from rdma_fabric.platforms.nvidia_ib import PLATFORM
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    NodeState,
    Observation,
    Partition,
    Partitions,
    SmState,
    SystemState,
    differences,
)
from rdma_fabric.templating import render
from tests.unit.test_platform_opensm import WANTED

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "nvidia_ib"
HW = Hardware(("nvidia_ib",), ports=(PortHardware("1/1"), PortHardware("1/2")))
OFF, ON = SmState(running=False), SmState(running=True)


def _state(sm: SmState) -> NodeState:
    return NodeState(SystemState(sm=sm))


def _change(wanted: SmState, seen: SmState) -> Change:
    return PLATFORM.change(Observation(_state(seen), None), _state(wanted), HW)


def _typed(steps: tuple[object, ...]) -> list[str]:
    return [line for step in steps if isinstance(step, Send) for line in step.lines]


@pytest.mark.parametrize("path", sorted(OBSERVE.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_the_switch_says(path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(case["answers"]) == set(PLATFORM.questions(HW))
    seen = PLATFORM.parse(case["answers"], HW)
    running = seen.running.system.sm.running
    assert (running if isinstance(running, bool) else running.name.lower()) == case["expect"]["running"]
    assert list(seen.notes) == case["notes"] and dict(seen.facts) == case["facts"]
    assert [port.name for port in seen.running.ports] == ["1/1", "1/2"]
    assert seen.stored is None, "what a reboot brings is not shown"


@pytest.mark.parametrize("text", ["", "enable\ndisable", "enabled", "% Unrecognized command"])
def test_another_answer_is_unknown(text: str) -> None:
    seen = PLATFORM.parse({"show ib sm": text}, HW)
    assert seen.running.system.sm.running is UNKNOWN
    change = PLATFORM.change(seen, _state(OFF), HW)
    assert change.empty and [one.path for one in change.blocked] == ["system.sm.running"]


@given(st.sampled_from([OFF, ON, SmState(), WANTED, replace(WANTED, running=UNMANAGED)]))
@settings(derandomize=True, max_examples=20)
def test_realize_is_idempotent(sm: SmState) -> None:
    first = PLATFORM.realize(_state(sm), HW)
    again = PLATFORM.realize(first.state, HW)
    assert again.state == first.state
    assert first.state.system.sm.running == sm.running


def test_what_a_switch_cannot_show_is_told() -> None:
    found = PLATFORM.realize(_state(WANTED), HW)
    assert [(one.severity, one.setting) for one in found.faults] == [(Severity.NOTE, "sm")]
    sm = found.state.system.sm
    assert (sm.priority, sm.partitions, sm.lids) == (NOT_APPLICABLE,) * 3 and sm.lmc is UNMANAGED
    assert PLATFORM.realize(_state(OFF), HW).faults == ()


def test_a_second_manager_is_switched_off_and_that_is_saved() -> None:
    change = _change(OFF, ON)
    assert change.lines == ("no ib sm",) and change.level == Disturbs.LOSS
    assert _typed(change.commit) == ["configure terminal", "no ib sm", "exit"]
    assert _typed(change.save) == ["configure terminal", "configuration write", "exit"]
    assert _typed(change.undo) == ["configure terminal", "ib sm", "exit"]


def test_full_rendering_and_change_are_one() -> None:
    wanted = PLATFORM.realize(_state(OFF), HW).state
    (artifact,) = PLATFORM.artifacts(wanted, HW)
    text = render(artifact.template, PLATFORM.context(wanted, HW))
    assert tuple(text.splitlines()) == _change(OFF, ON).lines
    assert PLATFORM.artifacts(_state(SmState()), HW) == ()


def test_nothing_to_do() -> None:
    assert _change(OFF, OFF) == _change(SmState(), ON) == Change()


def test_a_manager_on_the_switch_is_told_and_never_written() -> None:
    """`owner: switch`."""
    wanted = PLATFORM.realize(_state(WANTED), HW).state
    change = PLATFORM.change(Observation(_state(OFF), None), wanted, HW)
    assert change.empty and change.lines == ("switch: ib sm",)
    assert dict(change.reasons) == {
        "system.sm.running": "the subnet manager of a switch is read and never written"
    }
    assert PLATFORM.artifacts(wanted, HW) == ()
    assert differences(_state(replace(ON)), _state(OFF))[0].path == "system.sm.running"


# -- the subnet manager of the switch

OWN = replace(HW, options=(("sm_owner", "switch"),))
EXAMPLE = """
ib partition Default mtu 4K force
ib partition Default defmember full force
ib partition Default ipoib force
ib partition Default member ALL type full force
ib partition gpua pkey 0x2 force
   ib partition gpua ipoib force
ib partition gpua mtu 4K
ib partition gpua member ALL type limited force
ib partition gpua member 00:02:c9:03:00:00:00:01 type full force
ib sm routing-engines ftree,updn
ib smnode leaf01 sm-priority 14
ib smnode leaf01 enable
ib sm
username admin password 7 not-of-interest
"""
"""The worked example of the page, with a member by its GUID and two engines."""
MANAGER = SmState(
    running=True,
    role="master",
    priority=14,
    routing=("ftree", "updn"),
    partitions=Partitions(
        (
            Partition("Default", 0x7FFF, True, 4096, members=("ALL=full", "ALL_SWITCHES=full", "SELF=full")),
            Partition("gpua", 2, True, 4096, "200", 1, members=("ALL=limited", "0x0002c90300000001=full")),
        )
    ),
)


def _own(text: str, sm: str = "enable") -> Observation:
    return PLATFORM.parse({"show ib sm": sm, "show running-config": text}, OWN)


def _told(text: str, wanted: SmState = MANAGER, sm: str = "enable") -> Change:
    return PLATFORM.change(_own(text, sm), PLATFORM.realize(_state(wanted), OWN).state, OWN)


def test_the_worked_example_is_as_wanted() -> None:
    seen = _own(EXAMPLE)
    assert seen.notes == () and _told(EXAMPLE) == Change()
    assert "show running-config" in PLATFORM.questions(OWN)
    assert "show running-config" not in PLATFORM.questions(HW)
    realized = PLATFORM.realize(_state(MANAGER), OWN)
    assert PLATFORM.realize(realized.state, OWN).state == realized.state
    assert realized.state.system.sm.role == NOT_APPLICABLE
    assert [one.severity for one in realized.faults] == [Severity.NOTE]


@pytest.mark.parametrize(
    ("old", "new", "path", "told"),
    [
        ("Default mtu 4K force", "Default mtu 2K force", "partitions", "ib partition Default mtu 4K force"),
        ("ib partition Default mtu 4K force\n", "", "partitions", "ib partition Default mtu 4K force"),
        ("   ib partition gpua ipoib force\n", "", "partitions", "ib partition gpua ipoib force"),
        ("gpua pkey 0x2", "gpua pkey 0x3", "partitions", "ib partition gpua pkey 0x2 force"),
        (
            "00:02:c9:03:00:00:00:01 type full",
            "00:02:c9:03:00:00:00:01 type limited",
            "partitions",
            "ib partition gpua member 00:02:c9:03:00:00:00:01 type full force",
        ),
        (
            "00:02:c9:03:00:00:00:01 type full",
            "00:02:c9:03:00:00:00:09 type full",
            "partitions",
            "no ib partition gpua member 00:02:c9:03:00:00:00:09",
        ),
        ("ftree,updn", "updn", "routing", "ib sm routing-engines ftree,updn"),
        ("sm-priority 14", "sm-priority 3", "priority", "ib smnode HOSTNAME sm-priority 14"),
        (
            "ib sm routing-engines",
            "ib partition old pkey 0x9 force\nib sm routing-engines",
            "partitions",
            "no ib partition old",
        ),
    ],
)
def test_what_the_owner_is_to_type(old: str, new: str, path: str, told: str) -> None:
    assert EXAMPLE.count(old) == 1
    change = _told(EXAMPLE.replace(old, new))
    assert change.empty and [one.path for one in change.blocked] == [f"system.sm.{path}"]
    assert f"switch: {told}" in change.lines
    assert set(dict(change.reasons)) == {f"system.sm.{path}"}


def test_all_lines_of_a_manager() -> None:
    wanted = PLATFORM.realize(_state(replace(MANAGER, both=True)), OWN).state.system.sm
    red = Partition("red", 3, members=("0x0002c90300000002=both",))
    assert isinstance(wanted.partitions, Partitions)
    wanted = replace(wanted, partitions=Partitions((*wanted.partitions.rows, red)))
    assert manager.lines(wanted) == (
        "ib sm allow-both-pkeys",
        "ib partition Default ipoib force",
        "ib partition Default mtu 4K force",
        "ib partition Default member ALL type full force",
        "ib partition gpua pkey 0x2 force",
        "ib partition gpua ipoib force",
        "ib partition gpua mtu 4K force",
        "ib partition gpua member ALL type limited force",
        "ib partition gpua member 00:02:c9:03:00:00:00:01 type full force",
        "ib partition red pkey 0x3 force",
        "ib partition red member 00:02:c9:03:00:00:00:02 type both force",
        "ib sm routing-engines ftree,updn",
        "ib smnode HOSTNAME sm-priority 14",
        "ib smnode HOSTNAME enable",
        "ib sm",
    )
    assert manager.lines(SmState()) == ()


def test_a_manager_that_is_off_is_told() -> None:
    change = _told(EXAMPLE, sm="disable")
    assert change.empty and change.lines == ("switch: ib sm",)


def test_both_keys_of_a_partition() -> None:
    both = replace(MANAGER, both=True)
    assert _told(EXAMPLE, both).lines == ("switch: ib sm allow-both-pkeys",)
    assert _told(f"{EXAMPLE}ib sm allow-both-pkeys\n", both) == Change()


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", "it has no partition"),
        ("% Unrecognized command", "it has no partition"),
        (EXAMPLE.replace("ib partition gpua pkey 0x2 force\n", ""), "partition gpua has no P_Key"),
        (f"{EXAMPLE}ib partition gpua rate 7\n", "`ib partition gpua rate 7` was not understood"),
        (EXAMPLE.replace("mtu 4K force", "mtu 4096 force"), "mtu 4096` was not understood"),
        (EXAMPLE.replace("member ALL type limited", "member SELF type limited"), "was not understood"),
    ],
)
def test_lines_that_are_not_known_leave_it_unknown(text: str, note: str) -> None:
    seen = _own(text)
    assert seen.running.system.sm.partitions is UNKNOWN and note in seen.notes[0]
    change = _told(text)
    assert change.empty and any(one.unknown for one in change.blocked)


def test_membership_that_is_not_written_is_the_default_of_its_partition() -> None:
    text = EXAMPLE.replace("member ALL type full force", "member ALL force")
    assert _told(text) == Change()
    assert _told(text.replace("defmember full", "defmember limited")).lines == (
        "switch: no ib partition Default member ALL",
        "switch: ib partition Default member ALL type full force",
    )


def test_several_nodes_priorities_are_nobodys() -> None:
    seen = _own(f"{EXAMPLE}ib smnode leaf02 sm-priority 13\n")
    assert seen.running.system.sm.priority is UNKNOWN
