"""InfiniBand ports: what a host can judge of what its subnet manager gave it, and of IPoIB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_probes as common
from rdma_fabric.platforms._contract import Probe, Reading
from rdma_fabric.state import IbPort, NodeState, PortSettings

_NIC: Final = "ib"


def probes(wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
    """All fields of all InfiniBand ports that have a value."""
    found: list[Probe] = []
    for port in host.ports_of(hw, _NIC):
        state = wanted.port(port.name)
        if state is not None:
            found += _port(port, state.settings, state.settings.ib)
    return tuple(found)


def _port(port: PortHardware, settings: PortSettings, ib: IbPort) -> Iterator[Probe]:
    link = _smp(port, r"^LinkState:\.*(\w+)\s*$", "portinfo", "0", "1")
    if isinstance(ib.link, str):
        states = ("Initialize", "Init") if ib.link == "init" else (ib.link.capitalize(),)
        yield common.port_probe(port, "ib.link", settings, states, link)
    if isinstance(ib.mtu, int):
        mtu = _smp(port, r"^NeighborMTU:\.*(\d+)\s*$", "portinfo", "0", "1")
        yield common.port_probe(port, "ib.mtu", settings, (ib.mtu,), mtu)
    if isinstance(ib.pkeys, tuple):
        # Rows of eight; empty entries do not count.
        table = _smp(port, r"\b(0x(?!0000)[0-9a-f]{4})\b", "pkeys", "0", "1")
        keys = ",".join(f"0x{key:04x}" for key in sorted(ib.pkeys))
        yield common.port_probe(port, "ib.pkeys", settings, (keys,), table, how="set")
    if isinstance(ib.sl_to_vl, tuple):
        lanes = _smp(port, r"^ports:[^|\n]*((?:\|[ \t]*\d+[ \t]*){16})\|?\s*\Z", "sl2vl", "0")
        yield common.port_probe(
            port,
            "ib.sl_to_vl",
            settings,
            tuple(map(str, ib.sl_to_vl)),
            lanes,
            how="table",
        )
    if isinstance(ib.mode, str):
        mode = Reading(r"^(\w+)$", path=f"/sys/class/net/{port.name}/mode")
        yield common.port_probe(port, "ib.mode", settings, (ib.mode,), mode)
    for key in ib.children if isinstance(ib.children, tuple) else ():
        # More interfaces than those wished belong to somebody else. The kernel prints with or without bit 15.
        words = tuple(f"0x{word:04x}" for word in (key, key & 0x7FFF))
        pattern = rf"=({'|'.join(words)})$"
        there = Reading(pattern, path=f"/sys/class/net/{port.name}.*/pkey", none=f"no 0x{key:04x}")
        yield common.port_probe(port, "ib.children", settings, words, there)


def _smp(port: PortHardware, pattern: str, *what: str) -> Reading:
    """Asked in-band at the host's own port."""
    device = ("-C", "{device}", "-P", "1") if port.rdma else ()
    return Reading(pattern, ("smpquery", *device, "-D", *what))
