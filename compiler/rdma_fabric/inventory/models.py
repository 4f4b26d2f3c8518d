"""What the inventory files may say: entries of hosts.yaml, groups.yaml and defaults.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rdma_fabric.intent.models import MtuNumber
from rdma_fabric.intent.quantities import Speed

NodeLife = Literal["planned", "active", "maintenance", "retired"]


def _text(value: Any) -> Any:
    """Versions and the like may be written without quotes: 4.32 and 202411 are texts to us."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[
    str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "number"]}), Field(max_length=200)
]


class Model(BaseModel):
    """Base of the inventory models: unknown keys are errors (free data goes under `vars`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pcie(Model):
    """Slot of a NIC."""

    generation: Annotated[int, Field(ge=1, le=7)]
    lanes: Literal[1, 2, 4, 8, 16, 32]


class PortData(Model):
    """One port, or a range of ports whose text values may hold ranges of the same length."""

    network: str | None = None
    """Absent: not a port of ours (management); never touched."""
    speed: Speed | None = None
    kind: Literal["physical", "bond", "svi", "vlan", "vf"] = "physical"
    nic: str | None = None
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
    vlan: Annotated[int, Field(ge=1, le=4094)] | None = None
    guid: Text | None = None
    lanes: Text | None = None
    alias: Text | None = None
    index: Text | None = None
    breakout: Annotated[int, Field(ge=1, le=16)] | None = None
    pcie: Pcie | None = None
    mtu: MtuNumber | None = None
    """IP MTU of this port, instead of the intent's."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Other settings of this port, by the intent's dotted keys."""


class NodeData(Model):
    """`data` of a host, a group or the defaults."""

    role: str | None = None
    model: Text | None = None
    version: Text | None = None
    state: NodeLife | None = None
    gpus: Annotated[int, Field(ge=0, le=1024)] | None = None
    rack: Text | None = None
    plane: Text | None = None
    stack: Literal["inbox", "ofed"] | None = None
    """Host NIC driver stack."""
    mtu_manager: Literal["netplan", "networkd", "networkmanager", "ifcfg", "ifupdown", "none"] | None = None
    mtu_max: Annotated[int, Field(ge=1500, le=65535)] | None = None
    """IP MTU ceiling of this model where it is not the platform's usual one."""
    options: dict[str, Text] = Field(default_factory=dict)
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
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    username: str | None = None
    platform: str | None = None
    groups: tuple[str, ...] = ()
    data: NodeData = NodeData()
    connection_options: dict[str, Any] = Field(default_factory=dict)
