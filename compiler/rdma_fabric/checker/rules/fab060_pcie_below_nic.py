"""The PCIe slot is slower than its NIC.

What it checks
    Where the inventory gives `pcie: {generation, lanes}`: the slot's bandwidth after line coding (8b/10b up
    to generation 2, 128b/130b up to 5, 236 of 256 bytes of a flit from 6 on) against the port's speed.

Why it breaks RDMA
    The NIC cannot empty its receive buffer: it pauses the switch although no receiver is slow, and PFC
    carries the congestion of one wrong slot into the fabric.
    Source: PCI-SIG PCI Express Base Specification (rates per lane); Guo et al., "RDMA over Commodity Ethernet
    at Scale" (SIGCOMM 2016), section 4.4 (slow-receiver symptom).

Wrong
    eth0: {speed: 400G, pcie: {generation: 4, lanes: 8}}

Right
    eth0: {speed: 400G, pcie: {generation: 5, lanes: 16}}

When to waive it
    For a port that is meant to run below its speed.
"""

from collections.abc import Iterator
from typing import Final

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity

LANE_GBPS: Final = {1: 2.0, 2: 4.0, 3: 7.877, 4: 15.754, 5: 31.508, 6: 59.0, 7: 118.0}
"""Gbit/s of one lane after line coding, by PCIe generation."""


def _check(judged: Judged) -> Iterator[Hit]:
    for name in judged.views:
        for port in judged.inventory.nodes[name].spec.ports.values():
            if not port.network or port.pcie is None or not port.speed_gbps:
                continue
            generation, lanes = port.pcie
            slot = LANE_GBPS[generation] * lanes
            if slot < port.speed_gbps:
                yield Hit(
                    setting="PCIe",
                    found=f"generation {generation} x{lanes} ({slot:.0f} Gbit/s)",
                    wanted=f"at least {port.speed_gbps} Gbit/s",
                    message="{where}: the PCIe slot is slower than the NIC",
                    help="use another slot, or correct the inventory",
                    position=port.position,
                    places=(Place(name, port.name),),
                )


RULE = FabricRule("FAB060", "pcie-below-nic", Severity.WARNING, "0.1", "inventory", _check, plan=True)
