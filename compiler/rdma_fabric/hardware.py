"""Facts of a node's hardware that decide what its platform can express: model, version, ASIC, ports.

Filled from the inventory and from `data/asics.csv`. Equal nodes share one object, so nothing here
names a node or an address.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

PortKind = Literal["physical", "bond", "svi", "vlan", "vf"]


@dataclass(frozen=True, slots=True)
class Asic:
    """One row of the ASIC table; sizes in bytes, 0 where no source gives a number."""

    name: str
    vendor: str
    models: tuple[str, ...]
    buffer_bytes: int
    cell_bytes: int
    max_speed_gbps: int
    max_lossless_classes: int
    max_mtu: int
    source: str


@dataclass(frozen=True, slots=True)
class PortHardware:
    """One port in a network. `rdma` is the RDMA device, `bdf` the PCI address, `members` of a bond."""

    name: str
    kind: PortKind = "physical"
    speed_gbps: int = 0
    nic: str = ""
    rdma: str = ""
    bdf: str = ""
    parent: str = ""
    members: tuple[str, ...] = ()
    vlan: int = 0
    cable_m: int | None = None
    """Length of the cable in the port; None where the plan does not know it."""
    assumed_m: int = 0
    """What is taken for it in judgements where the plan does not know it; 0 without a cable."""
    rail: str = ""
    """Of a host's port."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """One node. `parts` are platform keys: the base first, then NIC parts, then services, sorted."""

    parts: tuple[str, ...]
    model: str = ""
    version: str = ""
    ports: tuple[PortHardware, ...] = ()
    asic: Asic | None = None
    options: tuple[tuple[str, str], ...] = ()
    """Plain node data that a platform reads by name (mtu_manager, stack, ...), sorted."""

    @property
    def base(self) -> str:
        """Platform key of the base part."""
        return self.parts[0]

    def port(self, name: str) -> PortHardware | None:
        """The port of that name, or None."""
        return next((port for port in self.ports if port.name == name), None)

    def option(self, name: str, default: str = "") -> str:
        """The node option of that name."""
        return dict(self.options).get(name, default)

    def release(self) -> tuple[int, ...]:
        """Version as numbers to compare: "4.32.1F" -> (4, 32, 1), "202411" -> (202411,); () when unknown."""
        return release(self.version)


@cache
def release(version: str) -> tuple[int, ...]:
    """Leading dotted numbers of a version text; "master" sorts above every number."""
    if version.strip().lower() == "master":
        return (10**9,)
    match = re.match(r"\D*(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


@cache
def asics() -> tuple[Asic, ...]:
    """The ASIC table that ships with the package (sources are in its rows)."""
    text = resources.files("rdma_fabric.data").joinpath("asics.csv").read_text(encoding="utf-8")
    return tuple(_asic(row) for row in csv.DictReader(text.splitlines()))


def _asic(row: dict[str, str]) -> Asic:
    return Asic(
        name=row["asic"],
        vendor=row["vendor"],
        models=tuple(filter(None, (model.strip() for model in row["switch_models"].split(";")))),
        buffer_bytes=_number(row["buffer_bytes"]),
        cell_bytes=_number(row["cell_bytes"]),
        max_speed_gbps=_number(row["max_speed"].rstrip("G")),
        max_lossless_classes=_number(row["max_lossless_classes"]),
        max_mtu=_number(row["max_mtu"]),
        source=row["source_url"],
    )


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0


@cache
def _words() -> tuple[tuple[str, Asic], ...]:
    """(model word, row): "Arista 7060X6-64PE" -> "7060x6-64pe", "Dell Z9664F-ON" -> "z9664f"."""
    found = []
    for row in asics():
        for name in row.models:
            words = [word for word in name.split("(")[0].split() if re.search(r"\d", word) and len(word) > 4]
            found += [(word.lower().removesuffix("-on"), row) for word in words[-1:]]
    return tuple(sorted(found, key=lambda item: -len(item[0])))


@cache
def asic_of(model: str) -> Asic | None:
    """The ASIC of a switch model or hardware SKU: the longest model word of the table inside its name."""
    plain = model.lower()
    return next((row for word, row in _words() if word in plain), None)
