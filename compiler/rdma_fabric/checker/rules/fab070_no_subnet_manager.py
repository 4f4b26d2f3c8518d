"""An InfiniBand network has no subnet manager.

What it checks
    Every network with transport infiniband has at least one node in `subnet_manager.nodes`, and each of
    these nodes exists, is named once, is not retired, has a port in that network, manages no other network,
    and is what `owner` says: a switch (`switch`) or a host (the others). A warning says that a host with
    several ports in networks has none with a known GUID: OpenSM takes the first one that is up.

Why it breaks RDMA
    Without a subnet manager no port gets a LID or a route and none becomes active: nothing works at all.
    Source: InfiniBand Architecture Specification, volume 1, 14.4;
    k8snetworkplumbingwg/sriov-network-device-plugin issue 269 (ports stay in INIT with sm_lid 0).

Wrong
    rdma: {transport: infiniband}
    and no subnet_manager

Right
    subnet_manager:
      nodes: [{node: sm01, priority: 14}, {node: sm02, priority: 13}]

When to waive it
    While the subnet manager belongs to somebody whose nodes are not in this inventory.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity, did_you_mean


def _check(judged: Judged) -> Iterator[Hit]:
    for network, subnet in judged.resolved.subnets.items():
        merged = judged.resolved.managed[network]
        nodes = subnet.manager.nodes
        if all(_retired(judged, one.node) for one in nodes):
            yield Hit(
                setting="subnet manager",
                found="0",
                wanted="one master (standby allowed)",
                message=f"network {network} has no subnet manager: no LIDs, ports never become active",
                help="name its nodes in subnet_manager.nodes"
                + (" (those named are in state retired)" if nodes else ""),
                position=merged.position(("rdma", "transport")),
                places=(Place(network=network),),
            )
        for index, one in enumerate(nodes):
            if one.node in subnet.managers:
                yield from _taken(judged, network, one.node, index)
                yield from _unfit(judged, network, index)
                yield from _any_port(judged, network, index)
                continue
            known = one.node in judged.inventory.nodes
            near = "" if known else did_you_mean(one.node, judged.inventory.nodes)
            yield Hit(
                setting="subnet manager",
                found=one.node,
                wanted=f"a node with a port in network {network}",
                message=f"subnet manager {one.node} "
                + (f"has no port in network {network}" if known else "is not in the inventory"),
                help=f"did you mean {near}?" if near else f"give it a port with network: {network}",
                position=merged.position(("subnet_manager", "nodes", index, "node")),
                places=(Place(one.node) if known else Place(network=network),),
            )


def _taken(judged: Judged, network: str, name: str, index: int) -> Iterator[Hit]:
    """A manager that does not serve, or that another network has already."""
    first = next(one.network for one in judged.resolved.subnets.values() if name in one.managers)
    found, message = "", ""
    if _retired(judged, name):
        found, message = "retired", f"subnet manager {name} of network {network} is in state retired"
    elif first != network:
        found = f"manages {first}"
        message = f"subnet manager {name} of network {network} manages network {first} already"
    if message:
        yield Hit(
            setting="subnet manager",
            found=found,
            wanted="a node in service with this subnet alone",
            message=message,
            help="name another node in subnet_manager.nodes",
            severity=Severity.WARNING if found == "retired" else None,
            position=judged.resolved.managed[network].position(("subnet_manager", "nodes", index, "node")),
            places=(Place(name), Place(network=network)),
        )


def _unfit(judged: Judged, network: str, index: int) -> Iterator[Hit]:
    """A node that is named twice (only the last priority would count), or that nobody writes or reads."""
    manager = judged.resolved.subnets[network].manager
    name = manager.nodes[index].node
    host = judged.inventory.nodes[name].is_host
    found, wanted, message = "", "", ""
    if name in {one.node for one in manager.nodes[:index]}:
        found, wanted = f"{name} twice", "every node once"
        message = f"subnet manager {name} of network {network} is named twice: that is no standby"
    elif host == (manager.owner == "switch"):
        found, wanted = ("a host", "a switch") if host else ("a switch", "a host")
        message = f"subnet manager {name} is {found}, and owner {manager.owner} means one on {wanted}"
    if message:
        yield Hit(
            setting="subnet manager",
            found=found,
            wanted=wanted,
            message=message,
            help="correct subnet_manager.owner, or name another node",
            position=judged.resolved.managed[network].position(("subnet_manager", "nodes", index, "node")),
            places=(Place(name), Place(network=network)),
        )


def _any_port(judged: Judged, network: str, index: int) -> Iterator[Hit]:
    """A manager that takes whatever port is up first, on a host that has others."""
    subnet = judged.resolved.subnets[network]
    name = subnet.manager.nodes[index].node
    node = judged.inventory.nodes[name]
    ports = [port for port in node.spec.ports.values() if port.network]
    if isinstance(subnet.managers[name].guid, str) or not node.is_host or len(ports) < 2:
        return
    yield Hit(
        setting="subnet manager port",
        found="no GUID",
        wanted=f"the GUID of its port in network {network}",
        message=f"no GUID is known of the port of subnet manager {name}: OpenSM takes the first that is up",
        help="add it to guids.csv (node,port,guid)",
        severity=Severity.WARNING,
        position=judged.resolved.managed[network].position(("subnet_manager", "nodes", index, "node")),
        places=(Place(name), Place(network=network)),
    )


def _retired(judged: Judged, name: str) -> bool:
    node = judged.inventory.nodes.get(name)
    return node is not None and node.spec.state == "retired"


RULE = FabricRule("FAB070", "no-subnet-manager", Severity.ERROR, "0.1", "infiniband", _check, plan=True)
