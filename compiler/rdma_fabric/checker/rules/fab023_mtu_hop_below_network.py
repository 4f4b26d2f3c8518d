"""A switch port further away carries less than the hosts of its network send.

What it checks
    Every switch port of a network (uplinks, spines, SVIs) against the largest IP MTU of those host ports
    of the network that are not above their own wish and that their own cable carries.

Why it breaks RDMA
    Hosts of one network send to each other over any of its hops. One uplink that is too small drops the
    large packets of those flows only whose hash picks it: some pairs of hosts fail, others do not.
    Source: MinIO MemKV guide for RoCEv2 ("MTU must match on every hop").

Wrong
    overrides:
      - {where: "role=spine", set: {mtu.switch: 4200}}     # hosts have 9000

Right
    mtu: {switch: max, host: 9000}

When to waive it
    For a port that no traffic of this network's hosts passes.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import apart
from rdma_fabric.checker.scopes import Hit, NetworkRule, NetworkView, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import Absent, known


def _check(network: NetworkView) -> Iterator[tuple[PortView, Hit]]:
    yield from apart(_port(network, view) for view, _ in network.ports)


def _port(network: NetworkView, view: PortView) -> Iterator[tuple[PortView, Hit]]:
    if view.is_host or view.assumed.mtu.ip is Absent.UNMANAGED or _enforces_nothing(view):
        return
    carried = known(view.assumed.mtu.ip, "IP MTU")
    if carried < network.sends:
        yield view, _hit(network.name, carried, network.sends)


def _enforces_nothing(view: PortView) -> bool:
    return view.state.mtu.enforced is False


def _hit(network: str, carried: int, largest: int) -> Hit:
    return Hit(
        setting="mtu.ip",
        found=f"IP MTU {carried}",
        wanted=f"at least {largest} (host ports of network {network})",
        message=f"{{where}} carries less than the hosts of network {network} send",
        help=f"set its MTU to {largest} or more, or lower the hosts'",
        rank=25,
    )


RULE = NetworkRule("FAB023", "mtu-hop-below-network", Severity.ERROR, "0.1", "mtu", _check)
