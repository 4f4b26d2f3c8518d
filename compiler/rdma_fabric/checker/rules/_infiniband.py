"""What the InfiniBand rules ask of a subnet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rdma_fabric.findings import Place, Position

if TYPE_CHECKING:
    from rdma_fabric.checker.fabric import Judged
    from rdma_fabric.inventory.subnets import Subnet
    from rdma_fabric.inventory.types import End
    from rdma_fabric.state import IbPort


def subnets(judged: Judged) -> Iterator[Subnet]:
    """The InfiniBand networks."""
    yield from judged.resolved.subnets.values()


def where(judged: Judged, subnet: Subnet, *path: str | int) -> Position | None:
    """Where a key of the network's subnet manager (or, with "..", of its wishes) was written."""
    keys = path[1:] if path[:1] == ("..",) else ("subnet_manager", *path)
    return judged.resolved.managed[subnet.network].position(keys)


def network(subnet: Subnet) -> tuple[Place, ...]:
    """The network as the place of a finding."""
    return (Place(network=subnet.network),)


def hosts(judged: Judged, subnet: Subnet) -> Iterator[tuple[End, IbPort]]:
    """Every host port of the subnet with what it has."""
    for end in subnet.ports:
        view = judged.ports.get(end.node, {}).get(end.port)
        if view is not None:
            yield end, view.state.ib


def index_of(subnet: Subnet, name: str) -> int:
    """Index of a partition in the intent; -1 for one that the intent does not write."""
    names = [one.name for one in subnet.manager.partitions]
    return names.index(name) if name in names else -1
