"""Every line of every template matters: without it, some file or some change of the golden cases is another.

For each platform the files of all golden cases, and the changes between their states in every direction,
are taken as they are, and again with one line of one template gone. A line whose loss nobody notices is
either dead or untested.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pytest

from rdma_fabric import platforms, templating
from rdma_fabric.assets import templates
from rdma_fabric.checker import build
from rdma_fabric.cli.common import load
from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import Reaching, Vital
from rdma_fabric.state import NodeState, Observation, PortState
from rdma_fabric.vitals import Ping
from tests.support import mutant

CASES = sorted((Path(__file__).parents[1] / "golden").glob("*/input/fabric.yaml"))

QUIET = Path(__file__).parent / "template_lines_beyond_golden.txt"
"""Lines that need facts of a device (which tools a host has, what somebody configured) to be printed at all.
The platform's own unit and circle tests must fail without each of them: `make mutants` tries every one."""


@cache
def _nodes() -> dict[str, list[tuple[str, Hardware, list[NodeState]]]]:
    """Platform -> (node, hardware, realized states over the cases)."""
    states: dict[str, dict[str, tuple[Hardware, list[NodeState]]]] = {}
    for case in CASES:
        for name, view in build(load(case.parent)).views.items():
            for part in view.hw.parts:
                _, found = states.setdefault(part, {}).setdefault(name, (view.hw, []))
                found.append(view.wanted)
    return {
        part: [(name, hw, wanted) for name, (hw, wanted) in nodes.items()] for part, nodes in states.items()
    }


def _forget() -> None:
    """Drops everything that platforms remember of earlier renderings."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("rdma_fabric.platforms", "rdma_fabric.templating")):
            for value in vars(module).values():
                if callable(getattr(value, "cache_clear", None)) and value not in (
                    platforms.keys,
                    platforms.platform,
                ):
                    value.cache_clear()


def _everything(part: str) -> Iterator[Any]:
    """All that the templates of a platform produce for the golden cases."""
    seen: set[tuple[Any, ...]] = set()
    for _, hw, states in _nodes()[part]:
        key = (hw.parts, hw.model, hw.version, hw.options, len(hw.ports))
        if key in seen:
            continue
        seen.add(key)
        own = platforms.platform(part)
        yield own.questions(hw)
        yield from _health(own, hw)
        for wanted in states:
            for artifact in own.artifacts(wanted, hw):
                context = artifact.context if artifact.context is not None else own.context(wanted, hw)
                yield artifact.path, templating.render(artifact.template, context)
            yield getattr(own, "probes", lambda *_: ())(wanted, hw)
        for old in (*states, *map(_otherwise, states)):
            for new in states:
                change = own.change(Observation(old, old), new, hw)
                yield change.lines, change.stage, change.commit, change.undo, change.save


def _health(own: Any, hw: Hardware) -> Iterator[Any]:
    """What a platform is asked about its health, and what it is given to run."""
    if isinstance(own, Vital):
        yield own.vital_questions(hw)
    if isinstance(own, Reaching):
        yield own.path_questions((Ping("eth0", "192.0.2.1", 4192),))
        yield own.program_script("true", 5)


def _otherwise(state: NodeState) -> NodeState:
    """A device on which somebody else set nearly everything differently."""
    return replace(state, ports=tuple(map(_other_port, state.ports)))


def _other_port(port: PortState) -> PortState:
    qos, marking = port.settings.qos, port.settings.marking
    classes = tuple(
        replace(one, pfc_tx=not one.pfc_tx, pfc_rx=not one.pfc_rx, watchdog=not one.watchdog, ecn=None)
        for one in qos.classes
    )
    other = replace(
        qos,
        trust="dscp" if qos.trust == "pcp" else "pcp",
        classes=classes,
        dcbx="firmware" if port.settings.marking.roce_v2 is True else "ieee",
        global_pause=True,
        pcp_to_priority=tuple(reversed(range(8))),
    )
    marks = replace(marking, roce_v2=False, rdma_cm_tos=0, traffic_class=None, np=(), rp=())
    return replace(port, settings=replace(port.settings, qos=other, marking=marks))


def _unchanged(part: str, whole: list[Any]) -> bool:
    """True when all that is produced is as before; the first difference ends it."""
    try:
        return all(new == old for new, old in zip(_everything(part), whole, strict=True))
    except (jinja2.TemplateError, ValueError, LookupError, TypeError, AssertionError):
        return False


def _files(part: str) -> list[str]:
    top = templates()
    return sorted(path.relative_to(top).as_posix() for path in (top / part).rglob("*.j2"))


@pytest.mark.slow
@pytest.mark.parametrize("part", platforms.keys())
def test_every_line_of_the_templates_matters(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if part not in _nodes():
        pytest.fail(f"no golden case has {part}")
    top = templates()
    survivors = []
    original = templating._environment
    try:
        _forget()
        whole = list(_everything(part))
        for file in _files(part):
            lines = (top / file).read_text(encoding="utf-8").splitlines(keepends=True)
            for index, line in enumerate(lines):
                if _prints_nothing(line):
                    continue
                text = "".join(lines[:index] + lines[index + 1 :])
                _forget()
                monkeypatch.setattr(
                    templating, "_environment", lambda t=text, f=file: mutant.environment(original, f, t)
                )
                templating._template.cache_clear()
                if _unchanged(part, whole):
                    survivors.append(f"{file}:{index + 1}: {line.strip()}")
                monkeypatch.setattr(templating, "_environment", original)
    finally:
        monkeypatch.undo()
        _forget()
    quiet = set(QUIET.read_text(encoding="utf-8").splitlines())
    found = {_spelled(one) for one in survivors}
    if os.environ.get("FABRIC_WRITE_QUIET"):
        kept = {line for line in quiet if line and not line.startswith(f"{part}/")}
        QUIET.write_text("".join(f"{line}\n" for line in sorted(kept | found)), encoding="utf-8")
        return
    assert sorted(found - quiet) == []
    assert sorted(line for line in quiet if line.startswith(f"{part}/") and line not in found) == []


def _spelled(survivor: str) -> str:
    """ "sonic/x.j2: text" of "sonic/x.j2:12: text": numbers move, lines stay."""
    place, _, text = survivor.partition(": ")
    return f"{place.rpartition(':')[0]}: {text}"


def _prints_nothing(line: str) -> bool:
    """Blank lines, comments, and closing words, whose loss is a syntax error."""
    text = line.strip()
    return not text or text.startswith(("{#", "#", "{% end", "{%- end", "{% else", "{% import", "{% from"))
