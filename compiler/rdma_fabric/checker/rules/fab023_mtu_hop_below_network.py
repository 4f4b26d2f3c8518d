"""A switch port further away carries less than the hosts of its network send.

What it checks
    Every switch port of a network (uplinks, spines, SVIs) against the largest IP MTU of the network's
    host ports.

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

from rdma_fabric.checker.scopes import Hit, NetworkRule, NetworkView, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import Absent, known


def _check(network: NetworkView) -> Iterator[tuple[PortView, Hit]]:
    sent = [
        view.state.mtu.ip
        for view, _ in network.ports
        if view.is_host and not isinstance(view.state.mtu.ip, Absent) and not _sends_too_much(view)
    ]
    if not sent:
        return
    largest = max(sent)
    for view, _ in network.ports:
        if view.is_host or view.state.mtu.ip is Absent.UNMANAGED or _enforces_nothing(view):
            continue
        carried = known(view.state.mtu.ip, "IP MTU")
        if carried < largest:
            yield view, _hit(network.name, carried, largest)


def _sends_too_much(host: PortView) -> bool:
    """A host above its own wish is itself to blame, not every hop around it."""
    return isinstance(host.wanted.mtu.ip, int) and known(host.state.mtu.ip) > host.wanted.mtu.ip


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
