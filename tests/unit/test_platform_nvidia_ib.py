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
from rdma_fabric.platforms._contract import Change, Disturbs, Send
from rdma_fabric.platforms.nvidia_ib import PLATFORM
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    NodeState,
    Observation,
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
    assert (sm.priority, sm.partitions) == (NOT_APPLICABLE,) * 2 and sm.lmc is UNMANAGED
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
