"""Nodes, ports and links as the rest of the product sees them; frozen, shared between equal nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.findings import Position
from rdma_fabric.hardware import PortKind
from rdma_fabric.layers import Layer


@dataclass(frozen=True, slots=True, eq=False)
class Port:
    """One port of a node's specification."""

    name: str
    kind: PortKind = "physical"
    network: str = ""
    speed_gbps: int = 0
    nic: str = ""
    rdma: str = ""
    bdf: str = ""
    rail: str = ""
    plane: str = ""
    parent: str = ""
    members: tuple[str, ...] = ()
    vlan: int = 0
    guid: str = ""
    lanes: str = ""
    alias: str = ""
    index: int = 0
    breakout: int = 0
    pcie: tuple[int, int] | None = None
    """(generation, lanes)."""
    layers: tuple[Layer, ...] = ()
    """Port settings, weakest first."""
    position: Position | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """All of a node but its name and address; one object for all nodes of one entry."""

    platform: str
    role: str = ""
    state: str = "active"
    model: str = ""
    version: str = ""
    gpus: int = 0
    plane: str = ""
    rack: str = ""
    groups: tuple[str, ...] = ()
    ports: Mapping[str, Port] = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()
    """Group and node settings, weakest first."""
    options: tuple[tuple[str, str], ...] = ()
    lab_seed: tuple[str, ...] = ()
    username: str = ""
    ssh_port: int = 0
    connection_options: Mapping[str, Any] = field(default_factory=dict)
    position: Position | None = None
    positions: Mapping[str, Position] = field(default_factory=dict)
    """"model", "version", "state", "platform", "hostname" ... -> where it was written."""


@dataclass(frozen=True, slots=True)
class Node:
    """One switch or host."""

    name: str
    hostname: str
    spec: Spec
    position: Position | None = None
    """Its own entry; `spec.position` is that of the first node that shares the specification."""

    @property
    def is_host(self) -> bool:
        """True for a machine that runs jobs or services, False for a switch."""
        return self.spec.role in ("host", "sm") or any(port.nic for port in self.spec.ports.values())


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable."""

    node: str
    port: str

    def __str__(self) -> str:
        return f"{self.node} {self.port}"


@dataclass(frozen=True, slots=True)
class Link:
    """One cable between two ports; length in metres, None where the plan does not know it."""

    a: End
    b: End
    length_m: float | None = None
    position: Position | None = None

    def __str__(self) -> str:
        return f"{self.a} - {self.b}"


@dataclass(frozen=True, slots=True, eq=False)
class Inventory:
    """All nodes by name, in natural order, and all cables."""

    nodes: Mapping[str, Node]
    links: tuple[Link, ...]
    guids: Mapping[End, str] = field(default_factory=dict)
    """InfiniBand port GUIDs, "0x" and 16 digits, from guids.csv or the port's own data."""

    def peers(self) -> dict[End, tuple[End, Link]]:
        """Each cabled end -> (other end, cable); a port in two cables keeps the first."""
        found: dict[End, tuple[End, Link]] = {}
        for link in self.links:
            found.setdefault(link.a, (link.b, link))
            found.setdefault(link.b, (link.a, link))
        return found
