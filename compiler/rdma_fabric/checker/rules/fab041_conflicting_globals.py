"""Two networks on one node want different values for something that the node has only once.

What it checks
    Settings that a platform has once per node (such as a DSCP map or the watchdog's times): all ports of
    the node ask for the same value.

Why it breaks RDMA
    The device keeps one value, usually the one written last: the other network runs with a map that was
    not meant for it, and its lossless class is best effort on this node.
    Source: the platform's page in docs/platforms ("exists once per node").

Wrong
    networks:
      compute: {classes: {roce: {priority: 3, dscp: [26], lossless: true}}}
      storage: {classes: {roce: {priority: 4, dscp: [26], lossless: true}}}

Right
    networks:
      compute: {classes: {roce: {priority: 3, dscp: [26], lossless: true}}}
      storage: {classes: {block: {priority: 4, dscp: [34], lossless: true}}}

When to waive it
    Never: give the networks one map with all classes, or keep them on different switches.
"""

from collections.abc import Iterator
from typing import Any

from rdma_fabric import platforms
from rdma_fabric.checker.rules._common import some
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of
from rdma_fabric.state import Absent, NodeState, PortState


def _check(node: NodeView) -> Iterator[Hit]:
    for path, ports in _globals(node):
        told = any(
            fault.setting == path and not fault.port and fault.severity is Severity.ERROR
            for fault in node.faults
        )
        if told or len(_values(node.wanted, path, ports)) > 1:
            yield _hit(node, path, ports)


def _globals(node: NodeView) -> Iterator[tuple[str, frozenset[str]]]:
    """(field path, ports that share it) of every part of the node."""
    for part in platforms.parts(node.hw):
        names = frozenset(
            port.name for port in node.hw.ports if part.part == "base" or f"nic_{port.nic}" == part.name
        )
        for path in part.traits.globals:
            yield path, names


def _values(state: NodeState, path: str, ports: frozenset[str]) -> dict[Any, list[str]]:
    """Value -> ports that have it; absences want nothing."""
    found: dict[Any, list[str]] = {}
    for port in state.ports:
        if port.name in ports:
            value = _value(port, path)
            if not isinstance(value, Absent):
                found.setdefault(value, []).append(port.name)
    return found


def _value(port: PortState, path: str) -> Any:
    value: Any = port.settings
    for name in path.split("."):
        value = value[int(name)] if name.isdigit() else getattr(value, name)
    return value


def _hit(node: NodeView, path: str, ports: frozenset[str]) -> Hit:
    group = group_of(path)
    asked = _values(node.asked, path, ports)
    texts = []
    for names in asked.values():
        port = next(port for port in node.asked.ports if port.name == names[0])
        where = {node.networks[name] for name in names}
        other = {node.networks[name] for rest in asked.values() if rest is not names for name in rest}
        whose = some(names) if where & other else f"network {' and '.join(sorted(where))}"
        texts.append(f"{group.show(port.settings)} for {whose}")
    return Hit(
        setting=f"|{path}",
        found="; ".join(texts),
        wanted="one value for the whole node",
        message=f"{{where}} has one {group.title} for all ports, but different ones are asked for",
        help="give the networks of this node the same value, or keep them on different nodes",
        rank=40,
        explains=(path, "qos.trust") if path == "qos.dscp_to_priority" else (path,),
    )


RULE = NodeRule("FAB041", "conflicting-globals", Severity.ERROR, "0.1", "capability", _check, plan=True)
