"""Strategies for states, built from the dataclass fields: a field that is added is tested at once."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, Literal

from hypothesis import settings
from hypothesis import strategies as st

from rdma_fabric.findings import Position
from rdma_fabric.state import Absent, NodeState, Observation, PortSettings, PortState

steady = settings(derandomize=True, deadline=None, max_examples=25)

LENGTHS = {"classes": 8, "dscp_to_priority": 64, "pcp_to_priority": 8}
NAMES = st.sampled_from(["eth0", "eth1.100", "Ethernet1/1", "swp1s0", "a", "net.ipv4.tcp_ecn"])
TEXTS = st.sampled_from(["0", "1", "auto", "@unknown", "@@", "unlimited", "", "a b", "\u00e9"])


def of(kind: Any, *, absent: bool = True, name: str = "") -> st.SearchStrategy[Any]:
    """Values of a type as the state's fields have them; without `absent` no field is left out."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kinds = [one for one in args if absent or one is not Absent]
        return st.one_of(*(of(one, absent=absent, name=name) for one in kinds))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return _tuples(args, absent=absent, name=name)
    if is_dataclass(kind):
        return _objects(kind, absent=absent)
    return _scalars(kind)


def _scalars(kind: Any) -> st.SearchStrategy[Any]:
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXTS,
        int: st.integers(0, 7),
        float: st.sampled_from([0.0, 0.5, 7.0, 100.0]),
        bool: st.booleans(),
        type(None): st.none(),
        Absent: st.sampled_from(Absent),
        Position: st.none(),
    }
    return plain[kind]


def _tuples(args: tuple[Any, ...], *, absent: bool, name: str) -> st.SearchStrategy[Any]:
    if len(args) != 2 or args[1] is not Ellipsis:
        return st.tuples(*(of(one, absent=absent) for one in args))
    inner = typing.get_args(args[0])
    if typing.get_origin(args[0]) is tuple and len(inner) == 2:
        values = of(inner[1], absent=absent)
        return st.dictionaries(NAMES, values, max_size=3).map(lambda found: tuple(sorted(found.items())))
    if args[0] is PortState:
        settings_of = of(PortSettings, absent=absent)
        return st.dictionaries(NAMES, settings_of, max_size=2).map(
            lambda found: tuple(PortState(port, settings=one) for port, one in sorted(found.items()))
        )
    items = of(args[0], absent=absent)
    if name in LENGTHS:
        return st.tuples(items, items, st.integers(0, LENGTHS[name] - 1)).map(
            lambda found: tuple(found[index == found[2]] for index in range(LENGTHS[name]))
        )
    return st.lists(items, max_size=3).map(tuple)


def _objects(kind: Any, *, absent: bool) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    values = {
        item.name: of(hints[item.name], absent=absent, name=item.name)
        for item in fields(kind)
        if item.compare
    }
    return st.builds(kind, **values)


node_states: st.SearchStrategy[NodeState] = of(NodeState)
full_states: st.SearchStrategy[NodeState] = of(NodeState, absent=False)
observations: st.SearchStrategy[Observation] = of(Observation)
