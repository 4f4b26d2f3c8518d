"""The fabric that is judged: realized wishes, with observed states laid over where there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric import platforms
from rdma_fabric.checker.graphs import Graph, graphs
from rdma_fabric.checker.scopes import NodeView, PortView
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.inventory.types import Inventory, Link
from rdma_fabric.platforms._defaults import defaults, over
from rdma_fabric.resolve import NodePlan, PortPlan, Resolved
from rdma_fabric.settings import group_of
from rdma_fabric.state import UNMANAGED, NodeState, Observation, PortSettings, PortState, differences, waiting

NETDEV_OVERHEAD = 96
"""Bytes that the kernel takes off a netdev MTU before it picks the RDMA MTU: GRH 40, UDP 8, BTH 12, XRC 4,
AtomicETH 28, ICRC 4 (Linux 6.1 include/rdma/ib_addr.h, iboe_get_mtu)."""
_RDMA_MTUS = (4096, 2048, 1024, 512, 256)


def rdma_mtu_in(netdev: int, overhead: int = NETDEV_OVERHEAD) -> int:
    """Largest RDMA MTU that fits into a netdev MTU, both in bytes; 0 for none."""
    return next((size for size in _RDMA_MTUS if size + overhead <= netdev), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Everything that rules may look at, by node name; equal nodes share their `NodeView`."""

    resolved: Resolved
    views: Mapping[str, NodeView]
    ports: Mapping[str, Mapping[str, PortView]]
    observations: Mapping[str, Observation]
    _graphs: dict[str, Graph] = field(default_factory=dict)

    @property
    def inventory(self) -> Inventory:
        """The nodes and cables."""
        return self.resolved.inventory

    def links(self) -> tuple[Link, ...]:
        """All cables."""
        return self.resolved.inventory.links

    def graphs(self) -> Mapping[str, Graph]:
        """Network -> its cables; computed once."""
        if not self._graphs:
            self._graphs.update(graphs(self))
        return self._graphs


def need_mtu(port: PortHardware, rdma_mtu: int) -> int:
    """IP MTU in bytes that this RDMA MTU needs: the NIC platform's bound, else the kernel helper's."""
    if port.nic and f"nic_{port.nic}" in set(platforms.keys()):
        bound = platforms.platform(f"nic_{port.nic}").traits.netdev_bound.get(rdma_mtu)
        if bound:
            return bound
    return rdma_mtu + NETDEV_OVERHEAD


def build(resolved: Resolved, observations: Mapping[str, Observation] | None = None) -> Judged:
    """Realizes every distinct node plan once and lays observations over."""
    return _Builder(resolved, observations or {}).run()


@dataclass
class _Builder:
    resolved: Resolved
    observations: Mapping[str, Observation]
    shared: dict[Any, tuple[NodeView, Mapping[str, PortView]]] = field(default_factory=dict)
    port_views: dict[Any, PortView] = field(default_factory=dict)

    def run(self) -> Judged:
        views: dict[str, NodeView] = {}
        ports: dict[str, Mapping[str, PortView]] = {}
        for name, plan in self.resolved.plans.items():
            node = self.resolved.inventory.nodes[name]
            seen = self.observations.get(name)
            key = (id(plan), id(seen) if seen else 0, node.spec.state)
            if key not in self.shared:
                self.shared[key] = self._node(plan, seen, node.is_host, name)
            views[name], ports[name] = self.shared[key]
        return Judged(self.resolved, views, ports, self.observations)

    def _node(
        self, plan: NodePlan, seen: Observation | None, is_host: bool, name: str
    ) -> tuple[NodeView, Mapping[str, PortView]]:
        hw = plan.hardware
        realized = platforms.realize(plan.state, hw)
        wanted = realized.state
        state = _lay_over(wanted, seen.running) if seen else wanted
        spec = self.resolved.inventory.nodes[name].spec
        view = NodeView(
            state=state,
            wanted=wanted,
            hw=hw,
            wishes=plan.wishes,
            port_wishes={port: one.wishes for port, one in plan.ports.items()},
            faults=realized.faults,
            observed=seen is not None,
            is_host=is_host,
            asked=plan.state,
            networks={port: spec.ports[port].network for port in plan.ports},
            need_mtu={port.name: need_mtu(port, plan.ports[port.name].wishes.rdma.mtu) for port in hw.ports},
            stored=_lay_over(wanted, seen.stored) if seen and seen.stored else None,
            waiting=waiting(wanted, seen) if seen else frozenset(),
            notes=seen.notes if seen else (),
            buffers=seen.buffers if seen else (),
            node_state=spec.state,
        )
        ports = {}
        for have, want in zip(state.ports, wanted.ports, strict=True):
            ports[want.name] = self._port(
                have,
                want,
                plan.ports[want.name],
                hw,
                is_host,
                spec.ports[want.name].network,
                seen is not None,
                spec.state,
            )
        return view, ports

    def _port(
        self,
        have: PortState,
        want: PortState,
        plan: PortPlan,
        hw: Hardware,
        is_host: bool,
        network: str,
        observed: bool,
        life: str,
    ) -> PortView:
        facts = hw.port(want.name)
        assert facts is not None
        alike = (facts.kind, facts.speed_gbps, facts.nic, facts.cable_m)
        settings: Any = id(have.settings) if have.settings is want.settings else have.settings
        key = (
            id(plan),
            id(want.settings),
            settings,
            have.speed_gbps,
            alike,
            hw.parts,
            is_host,
            network,
            observed,
            life,
        )
        if key not in self.port_views:
            rdma_mtu = plan.wishes.rdma.mtu
            roce = plan.wishes.rdma.transport == "rocev2"
            assumed = over(defaults(hw.parts, facts), have.settings) if roce else have.settings
            self.port_views[key] = PortView(
                state=have.settings,
                assumed=assumed,
                wanted=want.settings,
                wishes=plan.wishes,
                hw=facts,
                base=hw.base,
                is_host=is_host,
                network=network,
                observed=observed,
                speed_gbps=have.speed_gbps,
                need_mtu=need_mtu(facts, rdma_mtu),
                rdma_mtu=rdma_mtu,
                node_state=life,
                by_default=_by_default(assumed, have.settings),
            )
        return self.port_views[key]


def _by_default(assumed: PortSettings, state: PortSettings) -> frozenset[str]:
    """Keys of the settings that only a default gives."""
    found = differences(assumed, state, "s")
    return frozenset(group_of(one.path.removeprefix("s.")).key for one in found if one.found is UNMANAGED)


def _lay_over(wanted: NodeState, seen: NodeState) -> NodeState:
    """The observed state with exactly the wanted ports.

    What an observation leaves out (a hand-written file may hold two fields) stands as wished; a
    platform's `parse` leaves nothing out.
    """
    names = {port.name for port in wanted.ports}
    kept = NodeState(seen.system, tuple(port for port in seen.ports if port.name in names))
    return platforms.overlay(wanted, kept)
