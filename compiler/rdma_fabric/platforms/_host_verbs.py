"""RDMA MTU of a port: what netdev MTU gives which, and what `ibv_devinfo` shows.

Sources: Linux 6.1 include/rdma/ib_addr.h (iboe_get_mtu takes 96 bytes off), drivers/infiniband/sw/rxe
(rxe takes its own 80 off; measured on 6.1: 4160 gave 2048, 4176 gave 4096), libibverbs ibv_devinfo.
"""

from __future__ import annotations

import re
from typing import Final

from rdma_fabric.platforms._host_files import Section
from rdma_fabric.state import UNKNOWN, Maybe

KERNEL_OVERHEAD: Final = 96
"""Bytes that the kernel's helper reserves for headers; hardware drivers and RDMA-CM use it."""
RXE_OVERHEAD: Final = 80
_SIZES: Final = (4096, 2048, 1024, 512, 256)


def rdma_mtu(netdev: int, overhead: int = KERNEL_OVERHEAD) -> int:
    """Largest RDMA MTU in bytes that fits into a netdev MTU; 0 for none."""
    return next((size for size in _SIZES if size <= netdev - overhead), 0)


def active_mtu(section: Section) -> Maybe[int]:
    """active_mtu of port 1 of `ibv_devinfo -d DEVICE`: "4096 (5)"; the number and its code must agree."""
    ports = re.split(r"^\s+port:\s+(\d+)\s*$", section.text, flags=re.MULTILINE)
    found = re.findall(r"^\s+active_mtu:\s+(\d+) \((\d)\)\s*$", "".join(ports[2:3]), re.MULTILINE)
    if not section.ok or ports[1:2] != ["1"] or len(found) != 1:
        return UNKNOWN
    size, code = map(int, found[0])
    return size if size in _SIZES and size == 128 << code else UNKNOWN
