"""Marks and maps that must move together: a DSCP that hosts send, and the priority that it has on the way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rdma_fabric.inventory.ranges import collapse
from rdma_fabric.inventory.types import Inventory
from rdma_fabric.plan.disturb import IDLE_STATES
from rdma_fabric.settings import ranges
from rdma_fabric.state import Absent, Difference, NodeState, Observation

if TYPE_CHECKING:
    from rdma_fabric.plan.changes import PlanRow, Target
    from rdma_fabric.plan.disturb import Harm

_MARK: Final = re.compile(
    r"ports\..+\.marking\.(rdma_cm_tos|traffic_class)"
    r"|system\.environment\.(NCCL_IB_TC|NCCL_IB_FIFO_TC|UCX_IB_TRAFFIC_CLASS)"
)
_MAP: Final = re.compile(r"ports\..+\.qos\.dscp_to_priority")
_CLASSIFICATION: Final = re.compile(r"ports\..+\.qos\.(trust|dscp_to_priority)")

Move = tuple[int, int, int]
"""A DSCP, and the lossless priorities that it leaves and takes."""
Moves = tuple[tuple[str, Move], ...]


def hold_marks(
    rows: Mapping[str, PlanRow], harm: Harm, outside: Mapping[str, PlanRow] | None = None
) -> dict[str, PlanRow]:
    """The rows, with working hosts refused that would use a DSCP which a switch of their networks lacks.

    Such a step disturbs nothing by itself, but every connection made after it would be lossy on that node.
    `outside`: rows of switches that are not in the scope of the run (see `unwatched`).
    """
    nodes = harm.inventory.nodes
    behind = [name for name, row in rows.items() if not nodes[name].is_host and _stays(row)]
    behind += [name for name, row in (outside or {}).items() if _lacks(row)]
    if not behind:
        return dict(rows)
    where = _networks(harm.inventory, behind)
    who = collapse(behind) if len(behind) < 9 else f"{len(behind)} nodes"
    reason = (
        f"packets would be marked otherwise, and {who} would not take the new marks; "
        "change the DSCP maps there first, or in the same run"
    )
    return {
        name: replace(row, status="refused", reason=reason)
        if _marks(row) and not harm.idle(name) and where & _networks(harm.inventory, (name,))
        else row
        for name, row in rows.items()
    }


def unwatched(rows: Mapping[str, PlanRow], harm: Harm) -> tuple[str, ...]:
    """Switches beyond the scope of which must be known whether they take the marks that rows change."""
    inventory = harm.inventory
    hosts = [name for name, row in rows.items() if _marks(row) and not harm.idle(name)]
    where = _networks(inventory, hosts)
    return tuple(
        name
        for name, node in inventory.nodes.items()
        if name not in rows
        and not node.is_host
        and node.spec.state not in IDLE_STATES
        and where & _networks(inventory, (name,))
    )


def refuse_moves(rows: Mapping[str, PlanRow], found: Mapping[str, str]) -> dict[str, PlanRow]:
    """The rows, with those refused that are a break (see `moves`)."""
    refused = {name: replace(rows[name], status="refused", reason=text) for name, text in found.items()}
    return {**rows, **refused}


def moves(
    rows: Mapping[str, PlanRow],
    targets: Mapping[str, Target],
    observations: Mapping[str, Observation],
    harm: Harm,
    ask: Callable[[tuple[str, ...]], Mapping[str, Observation]] | None = None,
) -> dict[str, str]:
    """Node -> why its change is a break for hosts with workload; nodes without such a change are left out.

    A break is a DSCP that moves from one lossless priority to another under traffic: between two waves it
    has one priority at one hop and another at the next, and what one of them pauses the other sends on. No
    order of the nodes avoids that (docs/push.md, "Moving a priority"). A node that moves to what most of its
    network has already is repaired, which is none. `ask` reads neighbours that were not observed.
    """
    known: dict[int, Moves] = {}
    found = {name: ones for name in rows if (ones := _moves_of(rows[name], targets, observations, known))}
    busy = _busy(harm) if found else {}
    if not busy:
        return {}
    inventory = harm.inventory
    peers = {harm.peers[end].node for end in harm.peers if end.node in found}
    unseen = tuple(name for name in inventory.nodes if name in peers and name not in observations)
    seen = {**observations, **(ask(unseen) if ask is not None and unseen else {})}
    has = _maps(inventory, seen)
    told: dict[str, str] = {}
    for name, ones in found.items():
        ports = inventory.nodes[name].spec.ports
        broken = {
            move: working
            for port, move in ones
            if port in ports
            and (working := busy.get(ports[port].network or ""))
            and not _repair(has[ports[port].network or ""], move)
        }
        if broken:
            told[name] = _break(broken)
    return told


def _moves_of(
    row: PlanRow,
    targets: Mapping[str, Target],
    observations: Mapping[str, Observation],
    known: dict[int, Moves],
) -> Moves:
    """(port, DSCP with its old and new priority) of a row's change; `known`: of changes looked at before."""
    if row.status != "change" or row.change is None or not _any(_MAP, row.change.differences):
        return ()
    if id(row.change) not in known:
        known[id(row.change)] = tuple(_moved(targets[row.node].wanted, observations[row.node].running))
    return known[id(row.change)]


def _busy(harm: Harm) -> dict[str, list[str]]:
    """Network -> hosts with a workload in it."""
    found: dict[str, list[str]] = {}
    for name, node in harm.inventory.nodes.items():
        if node.is_host and not harm.idle(name):
            for network in _networks(harm.inventory, (name,)):
                found.setdefault(network, []).append(name)
    return found


def _maps(inventory: Inventory, seen: Mapping[str, Observation]) -> dict[str, Counter[tuple[int, ...]]]:
    """Network -> DSCP map -> nodes that have it on a port of the network now."""
    found: dict[str, Counter[tuple[int, ...]]] = {}
    for name, one in seen.items():
        ports = inventory.nodes[name].spec.ports
        maps = {
            (network, port.settings.qos.dscp_to_priority)
            for port in one.running.ports
            if port.name in ports and (network := ports[port.name].network)
        }
        for network, table in maps:
            if not isinstance(table, Absent):
                found.setdefault(network, Counter())[table] += 1
    return found


def _repair(maps: Counter[tuple[int, ...]], move: Move) -> bool:
    """True when more nodes of the network have the new priority than the old one."""
    dscp, old, new = move
    count: Counter[int] = Counter()
    for table, nodes in maps.items():
        count[table[dscp]] += nodes
    return count[new] > count[old]


def _break(moved: Mapping[Move, list[str]]) -> str:
    old, new = min((old, new) for _, old, new in moved)
    dscps = sorted(dscp for dscp, *way in moved if way == [old, new])
    hosts = next(iter(moved.values()))
    who = collapse(hosts) if len(hosts) < 9 else f"{len(hosts)} hosts"
    return (
        f"DSCP {ranges(dscps)} would move from lossless priority {old} to {new} under the traffic of {who}; "
        "give the class a new DSCP, or drain these hosts (--assume-drained)"
    )


def _moved(wanted: NodeState, seen: NodeState) -> Iterator[tuple[str, Move]]:
    """DSCPs of each port with two lossless priorities: the one that it has now, and the one wanted."""
    before = {port.name: port.settings.qos for port in seen.ports}
    for port in wanted.ports:
        qos, old = port.settings.qos, before.get(port.name)
        if (
            old is None
            or isinstance(old.dscp_to_priority, Absent)
            or isinstance(qos.dscp_to_priority, Absent)
        ):
            continue
        for dscp, (was, will) in enumerate(zip(old.dscp_to_priority, qos.dscp_to_priority, strict=True)):
            if was != will and old.classes[was].pfc_rx is True and qos.classes[will].pfc_rx is True:
                yield port.name, (dscp, was, will)


def _networks(inventory: Inventory, names: Iterable[str]) -> set[str]:
    return {
        port.network for name in names for port in inventory.nodes[name].spec.ports.values() if port.network
    }


def _lacks(row: PlanRow) -> bool:
    """True when the row's node is known to have another DSCP map, or could not be asked for it."""
    if row.change is None:
        return row.status == "unreachable"
    return _any(_CLASSIFICATION, (*row.change.differences, *row.change.blocked))


def _stays(row: PlanRow) -> bool:
    """True when the row's DSCP map is not as wanted, and the plan does not change it."""
    if row.change is None:
        return row.status in ("unreachable", "rejected")
    left = row.change.blocked if row.status == "change" else (*row.change.differences, *row.change.blocked)
    return row.status in ("change", "refused", "unknown") and _any(_CLASSIFICATION, left)


def _marks(row: PlanRow) -> bool:
    """True when the row would make its node mark packets otherwise."""
    return row.status == "change" and row.change is not None and _any(_MARK, row.change.differences)


def _any(pattern: re.Pattern[str], found: Iterable[Difference]) -> bool:
    return any(pattern.fullmatch(one.path) for one in found)
