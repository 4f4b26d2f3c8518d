"""Wishes that reach nothing: which kinds of places read a key, and which places a layer gets to.

A wish that nobody reads looks right in the file. What is told here follows from the kind of place alone (a
switch has no host settings, an InfiniBand port no PFC), never from values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rdma_fabric.findings import Position
from rdma_fabric.layers import Layer, Path

NODE_WIDE: Final = (
    "modules",
    "module_options",
    "sysctl",
    "limits",
    "services",
    "environment",
    "nccl",
    "ucx",
    "local_check",
)
"""Host settings that a node has once, not per port."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A kind of place that wishes get to. `transport` "": the node as a whole."""

    is_host: bool
    transport: str = ""
    nic: str = ""
    kind: str = ""

    @property
    def roce(self) -> bool:
        """A port of a RoCE network."""
        return self.transport == "rocev2"

    @property
    def infiniband(self) -> bool:
        """A port of an InfiniBand network."""
        return self.transport == "infiniband"


@dataclass(frozen=True, slots=True)
class Idle:
    """One key of one layer that no place of the layer reads."""

    path: Path
    label: str
    readers: str
    """Who would read it, for people."""
    position: Position | None
    broad: bool
    """True: written for the whole fabric, where it may wait for nodes to come."""


@dataclass(slots=True)
class Reach:
    """Layers with the kinds of places that they get to."""

    _spots: dict[int, tuple[Layer, set[Spot]]] = field(default_factory=dict)

    def note(self, layers: Iterable[Layer], spot: Spot) -> None:
        """These layers get to a place of this kind."""
        for layer in layers:
            self._spots.setdefault(id(layer), (layer, set()))[1].add(spot)

    def idle(self) -> tuple[Idle, ...]:
        """Every key that nobody reads, once for each place in a file."""
        found: dict[tuple[object, Path], Idle] = {}
        for layer, spots in self._spots.values():
            for path, readers in _unread(layer.data, spots):
                if not _told(layer.label, path):
                    continue
                position = _position(layer, path)
                one = Idle(path, layer.label, readers, position, layer.label in _BROAD)
                found.setdefault((position or id(layer), path), one)
        return tuple(found.values())


_BROAD: Final = ("intent", "defaults")
_EVERYWHERE: Final = (("subnet_manager",), ("hosts", "ipoib"))
"""Keys that are told of the whole fabric too, besides those by kind of NIC. Others wait there for nodes."""
_IN_NETWORK: Final = (*_EVERYWHERE, ("hosts", "buffers"), ("hosts", "force_traffic_class"))
_IN_CLASS: Final = ("sl", "vl", "cap", "ecn", "pfc", "headroom")
"""The same of a network and its classes. What else belongs to RoCE has a rule of its own."""


def _told(label: str, path: Path) -> bool:
    """False for a key that may stand in so broad a place without anybody to read it."""
    by_nic = path[:1] == ("hosts",) and path[1] in _BY_NIC
    if label in _BROAD:
        return by_nic or path in _EVERYWHERE
    if label.startswith("network "):
        of_class = path[0] == "classes" and path[2:3] != () and path[2] in _IN_CLASS
        return by_nic or of_class or path in _IN_NETWORK
    return label != "absent"


def _position(layer: Layer, path: Path) -> Position | None:
    parts = path
    while parts and parts not in layer.positions:
        parts = parts[:-1]
    return layer.positions.get(parts)


_Reads = Callable[[Spot], bool]
_ROCE: Final = "ports of RoCE networks"
_ROCE_HOSTS: Final = "host ports of RoCE networks"
_ROCE_SWITCHES: Final = "switch ports of RoCE networks"
_FABRIC: Final = "InfiniBand networks"


def _on_hosts(spot: Spot) -> bool:
    return spot.is_host and spot.roce


def _on_switches(spot: Spot) -> bool:
    return not spot.is_host and spot.roce


_READERS: Final[Mapping[Path, tuple[_Reads, str]]] = {
    ("mtu", "switch"): (_on_switches, _ROCE_SWITCHES),
    ("mtu", "host"): (_on_hosts, _ROCE_HOSTS),
    ("mtu", "svi"): (lambda spot: spot.kind == "svi", "switch virtual interfaces"),
    ("trust",): (lambda spot: spot.roce, _ROCE),
    ("ecn",): (_on_switches, _ROCE_SWITCHES),
    ("pfc",): (lambda spot: spot.roce, _ROCE),
    ("pfc", "headroom"): (_on_switches, _ROCE_SWITCHES),
    ("dcqcn",): (lambda spot: spot.roce, _ROCE),
    ("classes", "*", "lossless"): (lambda spot: spot.roce, _ROCE),
    ("classes", "*", "cap"): (lambda spot: spot.roce, _ROCE),
    ("classes", "*", "pfc"): (lambda spot: spot.roce, _ROCE),
    ("classes", "*", "ecn"): (_on_switches, _ROCE_SWITCHES),
    ("classes", "*", "headroom"): (_on_switches, _ROCE_SWITCHES),
    ("classes", "*", "sl"): (lambda spot: spot.infiniband, _FABRIC),
    ("classes", "*", "vl"): (lambda spot: spot.infiniband, _FABRIC),
    **{("hosts", key): (lambda spot: spot.is_host, "hosts") for key in (*NODE_WIDE, "roce_class")},
    ("hosts", "buffers"): (_on_hosts, _ROCE_HOSTS),
    ("hosts", "force_traffic_class"): (_on_hosts, _ROCE_HOSTS),
    ("hosts", "ipoib"): (
        lambda spot: spot.is_host and spot.infiniband,
        "host ports of InfiniBand networks",
    ),
    ("topology", "dual_homed"): (lambda spot: spot.is_host, "hosts"),
    ("topology", "oversubscription"): (lambda spot: not spot.is_host, "switches"),
    ("subnet_manager",): (lambda spot: spot.infiniband, _FABRIC),
}
"""Key -> who reads it (resolve.py and the rules); keys that are not here count everywhere."""
_BY_NIC: Final = ("nv", "firmware", "drivers")
"""Tables of `hosts` by kind of NIC."""


def _unread(data: Mapping[str, Any], spots: set[Spot]) -> Iterator[tuple[Path, str]]:
    for path, value in _leaves(data, ()):
        if value is None or (value is False and path not in _OFF_COUNTS):
            continue
        if path[0] == "mtu" and len(data["mtu"]) > 2:
            path = ("mtu",)  # a port's own `mtu: 9000` stands for all three
        reads, readers = _reader(path)
        if reads is not None and not any(map(reads, spots)):
            yield path, readers


_OFF_COUNTS: Final = (("hosts", "force_traffic_class"), ("hosts", "local_check"))
"""Keys whose `false` is not what a place without them has anyway."""


def _reader(path: Path) -> tuple[_Reads | None, str]:
    """Of the key, or of the nearest one above it."""
    if path == ("mtu",):
        return (lambda spot: spot.roce), _ROCE
    if path[0] == "hosts" and len(path) > 2 and path[1] in _BY_NIC:
        return (lambda spot: spot.nic == path[2]), f"ports of RoCE networks with a NIC of kind {path[2]}"
    known = _starred(path)
    while known and known not in _READERS:
        known = known[:-1]
    return _READERS.get(known, (None, ""))


def _starred(path: Path) -> Path:
    return (path[0], "*", *path[2:]) if path[:1] == ("classes",) and path[1:] else path


def _leaves(data: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    """The keys that are set, as deep as somebody reads them apart."""
    for key, value in data.items():
        here = (*path, str(key))
        if isinstance(value, Mapping) and _starred(here) in _DEEPER:
            yield from _leaves(value, here)
        else:
            yield here, value


_DEEPER: Final = frozenset(
    [key[:length] for key in _READERS for length in range(1, len(key))]
    + [("hosts", name) for name in _BY_NIC]
)
