"""Which ports a Linux host has, for a fabric that nobody has described yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rdma_fabric.platforms._contract import FoundPort, Introduction

FIND: Final = """S="${FABRIC_SYSROOT:-}"
for d in "$S"/sys/class/net/*; do
[ -e "$d/device" ] || continue
i=${d##*/}; driver=$(readlink "$d/device/driver"); rdma=$(ls "$d/device/infiniband" 2>/dev/null | head -n 1)
mac=$(cat "$d/address" 2>/dev/null || cat "/sys/class/net/$i/address" 2>/dev/null)
echo "port $i driver=${driver##*/} rdma=$rdma mac=$mac speed=$(cat "$d/speed" 2>/dev/null)"
done
echo "ssh ${SSH_CONNECTION:-}"
ip -o addr show 2>/dev/null
lldpcli show neighbors 2>/dev/null || lldpctl 2>/dev/null"""
"""Interfaces with a device behind them (sysfs-class-net of the kernel's ABI documentation), and LLDP."""

_PORT: Final = re.compile(r"^port (\S+) driver=(\S*) rdma=(\S*) mac=(\S*) speed=(-?\d*)$", re.MULTILINE)


def found_ports(answer: str) -> tuple[FoundPort, ...]:
    """Ports by name; the one that carries the session is left out, it is the host's management."""
    session = _session(answer)
    peers = {local: (system, port) for local, system, port in _neighbours(answer)}
    found = []
    for name, driver, rdma, mac, speed in _PORT.findall(answer):
        if name != session:
            gbps = max(0, int(speed or 0)) // 1000
            found.append(FoundPort(name, driver, rdma, mac.lower(), gbps, peers.get(name, ("", ""))))
    return tuple(found)


def _session(answer: str) -> str:
    """The interface that has the address which the session came in by (SSH_CONNECTION of sshd(8))."""
    words = re.search(r"^ssh \S+ \d+ (\S+) \d+", answer, re.MULTILINE)
    if not words:
        return ""
    line = re.search(rf"^\d+: (\S+)\s+inet6? {re.escape(words[1])}/", answer, re.MULTILINE)
    return line[1] if line else ""


def _neighbours(text: str) -> Iterator[tuple[str, str, str]]:
    """`lldpcli show neighbors`: a block per port with SysName and PortID (lldpd(8))."""
    for block in re.split(r"^(?=Interface:)", text, flags=re.MULTILINE):
        local = re.match(r"Interface:\s+(\S+?),", block)
        system = re.search(r"^\s+SysName:\s+(\S.*?)\s*$", block, re.MULTILINE)
        remote = re.search(r"^\s+PortID:\s+(?:ifname|local|mac)\s+(\S+)", block, re.MULTILINE)
        if local and system:
            yield local[1], system[1], remote[1] if remote else ""


INTRODUCTION: Final = Introduction(r'^ID=(?!"?cumulus-linux)', ports=FIND, read=found_ports)
"""os-release(5); the other bases that are Linux underneath have an ID or a `show version` of their own."""
