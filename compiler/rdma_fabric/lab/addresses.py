"""Loopback addresses and listening sockets for the nodes of a lab."""

from __future__ import annotations

import errno
import resource
import socket

from rdma_fabric.lab.fabric import LabError

_FILES_SPARE = 512


def address(number: int) -> str:
    """The loopback address of the n-th node (0..64,999): 127.66.0.1, .2, ..., 127.66.1.1, ..."""
    high, low = divmod(number, 250)
    return f"127.{66 + high // 250}.{high % 250}.{low + 1}"


def bind(count: int) -> list[socket.socket]:
    """One bound socket per node: own addresses and one port, else one address and own ports."""
    if count > 65_000:
        raise LabError(f"a lab holds at most 65,000 nodes, not {count}")
    for _ in range(20):
        try:
            return _bind_all(count)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            return [bound("127.0.0.1", 0) for _ in range(count)]
    raise LabError("found no port that is free on all loopback addresses")


def _bind_all(count: int) -> list[socket.socket]:
    found: list[socket.socket] = []
    try:
        for number in range(count):
            port = found[0].getsockname()[1] if found else 0
            found.append(bound(address(number), port))
    except OSError:
        for one in found:
            one.close()
        raise
    return found


def bound(host: str, port: int) -> socket.socket:
    """A bound, not yet listening socket."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def allow_files(nodes: int) -> None:
    """Raise the limit of open files: one listener per node, and room for connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * nodes + _FILES_SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < nodes + _FILES_SPARE:
            raise LabError(f"{nodes} nodes need {wanted} open files, the limit is {hard} (ulimit -Hn)")
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
