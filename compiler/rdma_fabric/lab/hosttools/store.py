"""The files that hold a lab host's hardware: what it is, what it remembers, what is lost at reboot."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH115, PTH123

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager

TYPE_CHECKING = False  # typing costs 15 ms at each start of a tool
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypedDict

    class Neighbor(TypedDict):
        """What LLDP says about the other end of a cable."""

        system: str
        port: str
        description: str
        chassis: str

    class PortFacts(TypedDict):
        """One fabric port; `gbps` is its speed, `stack` is "inbox", or anything else for the vendor's.

        `traits`: words or key=value that make this hardware differ from a usual one (`lab.hosts`).
        `parent`: the netdev whose virtual function it is.
        """

        netdev: str
        parent: str
        nic: str
        ibdev: str
        bdf: str
        gbps: int
        stack: str
        traits: list[str]
        address: str
        address6: str
        mac: str
        wire: str
        neighbor: Neighbor | None

    class Facts(TypedDict):
        """The whole host, as the lab wrote it."""

        name: str
        kernel: str
        iproute: str
        niccli: str
        mft: str
        manager: str
        stacked: bool
        management: str
        management_address: str
        services: list[str]
        lldp: dict[str, Neighbor]
        ports: list[PortFacts]
        ib: dict[str, dict[str, str]]
        """Netdev of an InfiniBand port -> its ibdev, guid, and adapter (its name in ibsim)."""

    class Port(TypedDict):
        """Volatile state of one port. Lists of eight are by priority, traffic class or buffer.

        `cc` are congestion control values in force, `staged` those that wait for an apply (bnxt), and
        `touched` their names; `d2p` is bnxt's DSCP table in hardware, newest entry last.
        """

        trust: str
        dscp: list[int]
        apps: list[list[int]]
        prio_tc: list[int]
        tsa: list[str]
        bw: list[int]
        ets_set: bool
        pfc: list[bool]
        cable: int
        prio2buffer: list[int]
        buffer_size: list[int]
        manual_buffer: bool
        dcbx: int
        rate_kbps: list[int]
        pause: list[bool]
        rings: list[int]
        pfc_timeout_ms: int
        priv_flags: dict[str, bool]
        devlink: dict[str, bool]
        rdma: bool
        tos: int
        mode: str
        tclass: int
        np: list[bool]
        rp: list[bool]
        cc: dict[str, int]
        staged: dict[str, int]
        touched: list[str]
        d2p: list[list[int]]
        configured: list[str]
        bounces: int
        counters: dict[str, int]


HOME = "/var/lib/fabric-lab"
RUN = "/run/fabric-lab"
FACTS = f"{HOME}/facts.json"
FLASH = f"{HOME}/flash.json"
LAB = f"{HOME}/lab.sock"
"""The lab listens here (`hosttools.asking`)."""
HEALTH = f"{HOME}/health.json"
"""Written by the lab: `hosttools.health`."""
NIC = f"{RUN}/nic.json"
LINKS = f"{RUN}/links.json"
MODULES = f"{RUN}/modules.json"
UNITS = f"{RUN}/units.json"
KERNEL_LOG = f"{RUN}/kernel.log"
WIRE = f"{RUN}/wire"
ATTRIBUTES = f"{RUN}/attributes"


def facts() -> Facts:
    """What this host is."""
    with open(FACTS) as file:
        loaded: Facts = json.load(file)
    return loaded


def port_facts(netdev: str) -> PortFacts | None:
    """The fabric port with this netdev name, or None."""
    return next((port for port in facts()["ports"] if port["netdev"] == netdev), None)


def trait(port: PortFacts, name: str) -> str:
    """Value of a trait of the port, "yes" for a plain word, or nothing."""
    for word in port["traits"]:
        key, equals, value = word.partition("=")
        if key == name:
            return value if equals else "yes"
    return ""


@contextmanager
def opened(path: str) -> Iterator[dict[str, Any]]:
    """The content of a state file, held against others and written back when it changed.

    Written back also when the caller was refused half-way: what it did before stays, as in hardware.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        text = os.read(handle, os.fstat(handle).st_size)
        content: dict[str, Any] = json.loads(text) if text else {}
        try:
            yield content
        finally:
            after = json.dumps(content).encode()
            if after != text:
                os.pwrite(handle, after, 0)
                os.ftruncate(handle, len(after))
    finally:
        os.close(handle)


def read(path: str) -> dict[str, Any]:
    """The content of a state file."""
    with opened(path) as content:
        return content


@contextmanager
def port_state(netdev: str) -> Iterator[Port]:
    """The state of one port, written back on leaving; KeyError for other netdevs."""
    with opened(NIC) as ports:
        port: Port = ports[netdev]
        yield port


def log(text: str) -> None:
    """Add a line to the kernel log of this host (what `dmesg` prints)."""
    import time

    with open(KERNEL_LOG, "a") as file:
        file.write(f"[{time.monotonic():12.6f}] {text}\n")


def slurp(path: str) -> str:
    """The text of a file, or nothing when it cannot be read."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def mtu(netdev: str) -> int:
    """The live MTU of a netdev of this sandbox; 0 when there is none."""
    return int(slurp(f"/sys/class/net/{netdev}/mtu") or 0)


def carrier(netdev: str) -> bool:
    """True while the netdev is up and has a link."""
    return slurp(f"/sys/class/net/{netdev}/carrier").strip() == "1"


def master(netdev: str) -> str:
    """The bond (or bridge) that has the netdev as a member, or nothing."""
    try:
        return os.readlink(f"/sys/devices/virtual/net/{netdev}/master").rpartition("/")[2]
    except OSError:
        return ""
