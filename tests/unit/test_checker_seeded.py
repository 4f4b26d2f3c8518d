"""One wrong value on one port of a sound, mixed fabric: that node and setting are named, and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.checker import build, check
from rdma_fabric.cli.common import load
from rdma_fabric.findings import Severity
from rdma_fabric.resolve import Resolved
from rdma_fabric.settings import group_of
from rdma_fabric.state import Absent, Amount, Ecn, NodeState, Observation, PortSettings, Share

FABRIC = Path(__file__).resolve().parents[2] / "inventory" / "demo"
# One port towards a host and one towards a spine of each kind of leaf, a spine's, a host's.
PORTS = (
    ("leaf01", 0),
    ("leaf01", -1),
    ("leaf02", 0),
    ("leaf02", -1),
    ("leaf03", 0),
    ("leaf03", -1),
    ("spine01", 0),
    ("gpu03", 0),
    ("gpu07", 1),
)
_OTHER = {"dscp": "pcp", "both": "pcp", "pcp": "port", "none": "firmware", "drop": "forward"}


def _variants(value: Any) -> Iterator[Any]:
    """Wrong values for a leaf field."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        # Four more is the next DSCP of a ToS byte, whose two lowest bits mean nothing here.
        yield value + 4
        if value:
            yield value // 2
    elif isinstance(value, str):
        yield _OTHER.get(value, f"{value}x")
    elif isinstance(value, Ecn):
        yield None
        yield replace(value, kmax=Amount(value.kmax.value + 1000))
    elif isinstance(value, Share):
        yield Share("dwrr", value.weight + 7) if value.scheduler == "dwrr" else Share("dwrr", 7)
    elif isinstance(value, tuple) and len(value) == 64:
        yield tuple(0 if dscp == 26 else priority for dscp, priority in enumerate(value))
        yield tuple(2 if dscp == 10 else priority for dscp, priority in enumerate(value))
    elif isinstance(value, tuple):
        yield ()


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for item in fields(value):
        if not item.compare:
            continue
        below = getattr(value, item.name)
        here = f"{path}.{item.name}" if path else item.name
        if isinstance(below, Absent) or below is None or item.name in ("parameters", "nv"):
            continue
        if isinstance(below, tuple) and below and is_dataclass(below[0]):
            for index, one in enumerate(below):
                yield from _leaves(one, f"{here}.{index}")
        elif is_dataclass(below) and not isinstance(below, Ecn | Share | Amount):
            yield from _leaves(below, here)
        else:
            yield here, below


def _put(value: Any, path: list[str], new: Any) -> Any:
    name, rest = path[0], path[1:]
    if name.isdigit():
        index = int(name)
        return (*value[:index], _put(value[index], rest, new), *value[index + 1 :])
    return replace(value, **{name: _put(getattr(value, name), rest, new) if rest else new})


@cache
def _resolved() -> Resolved:
    """The example with all nodes active: what a device has while it carries no workload is a note."""
    with tempfile.TemporaryDirectory() as folder:
        for file in FABRIC.iterdir():
            if file.is_file():
                text = file.read_text(encoding="utf-8").replace("state: planned", "state: active")
                (Path(folder) / file.name).write_text(text, encoding="utf-8")
        return load(Path(folder))


def _seeds(node: str, index: int) -> Iterator[tuple[str, str, PortSettings]]:
    state = build(_resolved()).views[node].wanted
    port = state.ports[index]
    for path, value in _leaves(port.settings):
        for new in _variants(value):
            yield port.name, path, _put(port.settings, path.split("."), new)


@pytest.mark.slow
@pytest.mark.parametrize(("node", "index"), PORTS)
def test_a_wrong_value_names_its_port_and_nothing_else(node: str, index: int) -> None:
    wanted = build(_resolved()).views[node].wanted
    wrong: list[str] = []
    count = 0
    for port, path, settings in _seeds(node, index):
        ports = tuple(replace(p, settings=settings) if p.name == port else p for p in wanted.ports)
        report = check(build(_resolved(), {node: Observation(NodeState(wanted.system, ports))}))
        found = [one for one in report.findings if one.severity is Severity.ERROR]
        named = [(str(place), one.setting) for one in found for place in one.places]
        count += 1
        if named != [(f"{node} {port}", group_of(path).title)] or report.rejected != (node,):
            wrong.append(f"{path} -> {[(one.code, one.message, one.found) for one in found]}")
    assert wrong == []
    assert count >= 8
