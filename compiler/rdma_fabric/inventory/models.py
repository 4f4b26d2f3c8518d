"""What the inventory files may say: entries of hosts.yaml, groups.yaml and defaults.yaml."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rdma_fabric.findings import BadValue, shown
from rdma_fabric.intent.models import MtuNumber
from rdma_fabric.intent.quantities import Speed
from rdma_fabric.inventory.ranges import check_name

NodeLife = Literal["planned", "active", "maintenance", "retired"]


def _text(value: Any) -> Any:
    """Whole numbers may be written without quotes (202411); 5.10 may not, since YAML makes it 5.1."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _word(value: Any) -> Any:
    """A name by which selectors find nodes and ports: the alphabet of node and port names."""
    text = _text(value)
    return check_name(text) if isinstance(text, str) else text


def _fact(value: Any) -> Any:
    """What a device says of itself (model, version): no control characters, quotes or look-alikes."""
    text = _text(value)
    odd = _ODD.search(text) if isinstance(text, str) else None
    if odd:
        help = "start with a letter or digit, then letters, digits, spaces and . , _ : / + ( ) @ # = ~ -"
        raise BadValue(f"{shown(text)} holds the character U+{ord(odd.group()):04X}", help)
    return text


_ODD = re.compile(r"^[^A-Za-z0-9]|[^A-Za-z0-9 .,_:/+()@#=~-]")
_TEXT_SCHEMA = WithJsonSchema({"type": ["string", "integer"]})
Text = Annotated[str, BeforeValidator(_text), _TEXT_SCHEMA, Field(max_length=200)]
Word = Annotated[str, BeforeValidator(_word), _TEXT_SCHEMA]
Fact = Annotated[str, BeforeValidator(_fact), _TEXT_SCHEMA, Field(min_length=1, max_length=200)]


class Model(BaseModel):
    """Base of the inventory models: unknown keys are errors (free data goes under `vars`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pcie(Model):
    """Slot of a NIC."""

    generation: Annotated[int, Field(strict=True, ge=1, le=7)]
    lanes: Literal[1, 2, 4, 8, 16, 32]


class PortData(Model):
    """One port, or a range of ports whose text values may hold ranges of the same length."""

    network: Word | None = None
    """Absent: not a port of ours (management); never touched."""
    speed: Speed | None = None
    kind: Literal["physical", "bond", "svi", "vlan", "vf"] = "physical"
    nic: Word | None = None
    rdma: Text | None = None
    """RDMA device name (mlx5_0)."""
    bdf: Text | None = None
    """PCI address."""
    rail: Text | None = None
    plane: Text | None = None
    parent: Text | None = None
    """VLAN or VF: the port below."""
    members: tuple[str, ...] = ()
    """Bond: its member ports."""
    vlan: Annotated[int, Field(strict=True, ge=1, le=4094)] | None = None
    guid: Annotated[str, Field(max_length=200)] | None = None
    """In quotes: YAML reads 0x7cfe900300a0b0c0 as a number."""
    lanes: Text | None = None
    alias: Text | None = None
    index: Text | None = None
    breakout: Annotated[int, Field(strict=True, ge=1, le=16)] | None = None
    pcie: Pcie | None = None
    mtu: MtuNumber | None = None
    """IP MTU of this port, instead of the intent's."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Other settings of this port, by the intent's dotted keys."""


class NodeData(Model):
    """`data` of a host, a group or the defaults."""

    role: Word | None = None
    model: Fact | None = None
    version: Fact | None = None
    state: NodeLife | None = None
    gpus: Annotated[int, Field(strict=True, ge=0, le=1024)] | None = None
    rack: Word | None = None
    plane: Word | None = None
    stack: Literal["inbox", "ofed"] | None = None
    """Host NIC driver stack."""
    mtu_manager: Literal["netplan", "networkd", "networkmanager", "ifcfg", "ifupdown", "none"] | None = None
    mtu_max: Annotated[int, Field(strict=True, ge=1500, le=65535)] | None = None
    """IP MTU ceiling of this model where it is not the platform's usual one."""
    options: dict[Word, Fact] = Field(default_factory=dict)
    """Further facts that a platform reads by name (its page lists them)."""
    ports: dict[str, PortData] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict)
    """Settings of this group or node, by the intent's dotted keys."""
    lab_seed: tuple[str, ...] = ()
    """Foreign configuration lines that the embedded lab starts this device with."""
    vars: dict[str, Any] = Field(default_factory=dict)
    """Anything else; not read by us."""


class Entry(Model):
    """One entry of hosts.yaml, groups.yaml or defaults.yaml: nornir's keys."""

    hostname: Text | None = None
    port: Annotated[int, Field(strict=True, ge=1, le=65535)] | None = None
    username: Fact | None = None
    platform: Word | None = None
    groups: tuple[str, ...] = ()
    data: NodeData = NodeData()
    connection_options: dict[str, dict[str, Any]] = Field(default_factory=dict)
