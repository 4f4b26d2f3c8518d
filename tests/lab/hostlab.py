"""Sandboxes for the tests of hosts and their tools."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rdma_fabric.lab.hosts import Host, HostFacts, HostPort, Neighbor, available

GPU = HostFacts(
    "gpu01",
    (
        HostPort("ens1f0np0", address="192.0.2.1/31", neighbor=Neighbor("leaf01", "Ethernet1/1")),
        HostPort("ens2f0np0", neighbor=Neighbor("leaf02", "Ethernet1/1")),
        HostPort("ens3f0np0", stack="ofed"),
        HostPort("ens4np0", nic="bnxt", gbps=200, stack="ofed"),
        HostPort("ens5f0", nic="irdma", gbps=100),
        HostPort("ens6", nic="generic", gbps=25),
    ),
)
"""Two ports of mlx5 with the inbox stack, one with the vendor's, and one of each other NIC."""


@functools.cache
def why_not() -> str:
    return available()


@contextmanager
def running(facts: HostFacts, folder: Path) -> Iterator[Host]:
    if reason := why_not():
        pytest.skip(reason)
    host = Host(facts, folder / facts.name)
    host.start()
    try:
        yield host
    finally:
        host.stop()


def run(host: Host, command: str, stdin: str = "") -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command on the host."""
    done = subprocess.run(
        host.argv(command), input=stdin, capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout, done.stderr


def said(host: Host, command: str) -> str:
    """Standard output of a command that must succeed."""
    status, out, error = run(host, command)
    assert status == 0, f"{command}: {status}\n{out}{error}"
    return out


def power_on(host: Host) -> None:
    """NICs and flash as a factory-new machine has them; starting the host anew would be slower."""
    tools = "/var/lib/fabric-lab/tools"
    reset = f"import sys; sys.path.insert(0, '{tools}'); from hosttools import boot; boot.nics()"
    said(host, f'rm -f /var/lib/fabric-lab/flash.json; {host.python} -SEsc "{reset}"')
