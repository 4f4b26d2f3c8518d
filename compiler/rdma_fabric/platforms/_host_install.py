"""From compiled files alone to a host that works by them: for images and hosts that install by themselves.

Nobody has looked at the host, so every call says by a test of its own whether it is needed. The files are
those of `compile`; the calls are those of `change`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms._contract import Call
from rdma_fabric.platforms._linux_names import PATHS
from rdma_fabric.platforms._linux_write import activation as of_node
from rdma_fabric.platforms._linux_write_mtu import RELOAD_NETWORKMANAGER
from rdma_fabric.platforms._linux_write_mtu import activation as of_mtus
from rdma_fabric.state import NodeState

_UNITS: Final = "/etc/systemd/system/"
_IPOIB: Final = ("/etc/fabric/ipoib/", "fabric-ipoib", "/usr/local/sbin/fabric-ipoib")
_NV: Final = ("/etc/fabric/nv/", "/usr/local/sbin/fabric-nv")


def activation(files: Mapping[str, str], wanted: NodeState, hw: Hardware) -> tuple[Call, ...]:
    """What makes these files (path -> text) work now; in the order of `change`."""
    found: list[Call] = list(of_node(wanted.system))
    if any(path.startswith(_UNITS) for path in files):
        found.append(host.RELOAD_UNITS)
    if PATHS.netplan in files:
        found.append(Call(("netplan", "generate")))
    if PATHS.networkmanager in files:
        found.append(RELOAD_NETWORKMANAGER)
    if PATHS.mtu in files:
        found += _enabled("fabric-mtu", _ports_of(files[PATHS.mtu]))
    found += of_mtus(wanted, hw)
    for port, text in _settings(files, f"{host.QOS_FOLDER}/"):
        found += _enabled("fabric-qos", (port,))
        test = (host.QOS_PROGRAM, "--check", port, *_pairs(text))
        found.append(Call((host.QOS_PROGRAM, port), unless=test, timeout_s=120.0))
    folder, program = _NV
    for port, text in _settings(files, folder):
        words = (port, *_pairs(text))
        name = next(path for path in files if path.startswith(program))
        found.append(Call((name, *words), unless=(name, "--check", *words), timeout_s=120.0))
    folder, unit, program = _IPOIB
    for port, _ in _settings(files, folder):
        found += (*_enabled(unit, (port,)), Call((program, port)))
    return tuple(found)


def _settings(files: Mapping[str, str], folder: str) -> Iterator[tuple[str, str]]:
    """(port, text) of the settings files in a folder."""
    for path, text in files.items():
        if path.startswith(folder) and path.endswith(".conf"):
            yield path.removeprefix(folder).removesuffix(".conf"), text


def _pairs(text: str) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in host.File("", text).pairs().items())


def _ports_of(text: str) -> tuple[str, ...]:
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return tuple(row[0] for row in rows if row)


def _enabled(unit: str, ports: Iterable[str]) -> tuple[Call, ...]:
    return tuple(host.enable(unit, port)[1] for port in ports)
