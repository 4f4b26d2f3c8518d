"""Where a node is reached and as whom."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rdma_fabric.findings import InputError, Position, input_finding
from rdma_fabric.inventory.types import Inventory, Node

KNOWN_HOSTS = "known_hosts"
OPTIONS = "netmiko"
"""The key of `connection_options` that we read, as nornir's netmiko plug-in does."""


@dataclass(frozen=True, slots=True)
class Target:
    """How to reach one node. `username` "" and `key_files` () leave the choice to the secrets."""

    name: str
    host: str
    port: int = 22
    username: str = ""
    key_files: tuple[str, ...] = ()
    known_hosts: tuple[Path, ...] = ()
    connection_options: Mapping[str, Any] = field(default_factory=dict)
    """`extras` of the inventory's connection options: conn_timeout, banner_timeout, auth_timeout,
    read_timeout_override ..."""
    groups: tuple[str, ...] = ()

    def seconds(self, option: str, default: float) -> float:
        """A time among the connection options."""
        value = self.connection_options.get(option, default)
        return float(value) if isinstance(value, int | float) and value > 0 else default

    def __str__(self) -> str:
        return f"{self.host} port {self.port}"


def targets(
    inventory: Inventory, names: Collection[str], directory: Path, lab: bool = False
) -> dict[str, Target]:
    """The targets of `names`, in their order; in a lab, nodes that it does not play are left out.

    InputError when no lab is up.
    """
    if lab:
        return _lab_targets(names, directory / ".fabric" / "lab", inventory)
    known = (Path.home() / ".ssh" / KNOWN_HOSTS, directory / KNOWN_HOSTS)
    return {name: _target(inventory.nodes[name], known) for name in names}


def _target(node: Node, known: tuple[Path, ...]) -> Target:
    """nornir's order: the options of the connection, then the host's own values, then defaults."""
    options = node.spec.connection_options.get(OPTIONS) or {}
    extras = options.get("extras") or {}
    key = extras.get("key_file")
    return Target(
        name=node.name,
        host=str(options.get("hostname") or node.hostname or node.name),
        port=int(options.get("port") or node.spec.ssh_port or 22),
        username=str(options.get("username") or node.spec.username),
        key_files=(str(key),) if key else (),
        known_hosts=known,
        connection_options=extras,
        groups=node.spec.groups,
    )


def _lab_targets(names: Collection[str], state: Path, inventory: Inventory) -> dict[str, Target]:
    try:
        nodes = json.loads((state / "nodes.json").read_text())
    except FileNotFoundError:
        text, help = (
            f"no lab is up in {state.parents[1]}",
            "start one with `fabric lab up`, or leave --lab out",
        )
        raise InputError([input_finding("file", text, Position("--lab", 0, 0), help)]) from None
    return {
        name: Target(
            name=name,
            host=nodes[name]["host"],
            port=nodes[name]["port"],
            username=nodes[name]["username"],
            key_files=(nodes[name]["key_file"],),
            known_hosts=(state / KNOWN_HOSTS,),
            groups=inventory.nodes[name].spec.groups if name in inventory.nodes else (),
        )
        for name in names
        if name in nodes
    }
