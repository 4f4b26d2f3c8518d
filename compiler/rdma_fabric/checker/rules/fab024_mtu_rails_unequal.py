"""The ports of one host in one network have different MTUs.

What it checks
    The wished IP MTU of all ports of a host that are in the same network.

Why it breaks RDMA
    A collective uses all rails of a host at once. Queue pairs over the smaller port get a smaller path MTU
    or different segment sizes, so one rail lags and all wait for it.
    Source: NVIDIA/nccl issue 1524 (hosts whose interfaces differ in MTU).

Wrong
    gpu01: {data: {ports: {"eth0": {mtu: 9000}, "eth1": {mtu: 4200}}}}

Right
    mtu: {host: 9000}

When to waive it
    While the ports of a host are moved to another MTU one after the other.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity


def _check(node: NodeView) -> Iterator[Hit]:
    if not node.is_host:
        return
    by_network: dict[str, dict[str, int]] = {}
    for port in node.wanted.ports:
        mtu = port.settings.mtu.ip
        if port.kind == "physical" and isinstance(mtu, int) and mtu >= node.need_mtu[port.name]:
            by_network.setdefault(node.networks[port.name], {})[port.name] = mtu
    for network, found in by_network.items():
        yield from _odd(network, found, node)


def _odd(network: str, found: dict[str, int], node: NodeView) -> Iterator[Hit]:
    counts = Counter(found.values())
    if len(counts) < 2:
        return
    # Of two ports, the one with the node's own wish is right.
    usual = max(counts, key=lambda mtu: (counts[mtu], mtu == node.wishes.mtu.host, mtu))
    for name, mtu in found.items():
        if mtu != usual:
            yield Hit(
                setting=f"{name}|mtu.ip",
                found=f"IP MTU {mtu}",
                wanted=f"{usual}, as {counts[usual]} other port(s) of the host in network {network}",
                message="{where}: the rails of the host differ in MTU",
                help="give all ports of the host in this network one MTU",
                rank=5,
            )


RULE = NodeRule("FAB024", "mtu-rails-unequal", Severity.WARNING, "0.1", "mtu", _check, plan=True)
