"""A port cannot carry the RDMA MTU.

What it checks
    The IP MTU of every port in a network (host port, switch port, SVI, bond) against what the intent's
    RDMA MTU needs. On a host the bound belongs to the NIC: the kernel takes 96 bytes of headers off the
    netdev MTU and rounds down to 256, 512, 1024, 2048 or 4096, so RDMA MTU 4096 needs 4192. Where a host
    was read, also the RDMA MTU that its device uses.

Why it breaks RDMA
    The smaller MTU wins silently: a netdev MTU of 1500 gives path MTU 1024, and of 4096 gives 2048. Two
    hosts that differ may hang or end jobs with local length errors (NVIDIA/nccl issue 1524); a switch hop
    that is too small drops the frames without any error at the ends.
    Source: Linux 6.1 include/rdma/ib_addr.h (iboe_get_mtu).

Wrong
    rdma: {mtu: 4096}
    mtu: {switch: max, host: 4096}

Right
    rdma: {mtu: 4096}
    mtu: {switch: max, host: 9000}

When to waive it
    For a port whose traffic never uses RDMA, until it is moved to a network of its own.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import rdma_mtu_in
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import known


def _check(port: PortView) -> Iterator[Hit]:
    if port.wishes.rdma.transport != "rocev2":
        return
    found = known(port.assumed.mtu.ip, "IP MTU")
    if found >= port.need_mtu:
        yield from _in_force(port, found)
        return
    reached = rdma_mtu_in(found, port.need_mtu - port.rdma_mtu)
    yield Hit(
        setting="mtu.ip",
        found=f"IP MTU {found} ({f'RDMA MTU {reached}' if reached else 'no RDMA MTU fits'})",
        wanted=f"at least {port.need_mtu}",
        message=f"{{where}} cannot carry RDMA MTU {port.rdma_mtu}",
        help=f"set its MTU to {port.need_mtu} or more, or remove what lowers it below the intent's value",
        rank=20,
    )


def _in_force(port: PortView, ip: int) -> Iterator[Hit]:
    """The device takes its RDMA MTU from the netdev below it, and may not have done so."""
    used = port.state.nic.rdma_mtu
    if isinstance(used, int) and used < port.rdma_mtu:
        yield Hit(
            setting="nic.rdma_mtu",
            found=f"RDMA MTU {used} in force (IP MTU {ip})",
            wanted=f"RDMA MTU {port.rdma_mtu}",
            message=f"{{where}} uses RDMA MTU {used} although its IP MTU has room for {port.rdma_mtu}",
            help="compare active_mtu and max_mtu in ibv_devinfo; the MTU of what the port lies on counts too",
            rank=19,
        )


RULE = PortRule("FAB021", "mtu-below-rdma", Severity.ERROR, "0.1", "mtu", _check)
