"""Every entry of hosts.yaml has its own settings, however many there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdma_fabric.inventory.load import _Loader, _Source, load
from rdma_fabric.inventory.models import Entry
from rdma_fabric.source import parse_yaml, validate

HOSTS = 60


def test_an_entrys_settings_are_its_own(tmp_path: Path) -> None:
    rows = [
        f"h{n:02}: {{platform: linux, data: {{role: host, set: {{mtu.host: {4200 + n}}}}}}}"
        if n % 3
        else f"h{n:02}: {{platform: linux, data: {{role: host}}}}"
        for n in range(HOSTS)
    ]
    (tmp_path / "hosts.yaml").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "cables.csv").write_text("a_node,a_port,b_node,b_port,length_m\n", encoding="utf-8")
    nodes = load(tmp_path, ("linux",)).nodes
    found = [[layer.data for layer in node.spec.layers] for node in nodes.values()]
    assert found == [[{"mtu": {"host": 4200 + n}}] if n % 3 else [] for n in range(HOSTS)]


@pytest.mark.parametrize(
    "rows",
    ["a_node,a_port,b_node,b_port\nh1,e0,h2,e0\n", "a_node,a_port,b_node,b_port,length_m\nh1,e0,h2,e0,\n"],
)
def test_a_cable_of_unknown_length(rows: str, tmp_path: Path) -> None:
    ports = "{platform: linux, data: {role: host, ports: {e0: {network: compute, speed: 100G}}}}"
    (tmp_path / "hosts.yaml").write_text(f"h1: {ports}\nh2: {ports}\n", encoding="utf-8")
    (tmp_path / "cables.csv").write_text(rows, encoding="utf-8")
    assert [link.length_m for link in load(tmp_path, ("linux",)).links] == [None]


def test_connections_fall_back_attribute_by_attribute(tmp_path: Path) -> None:
    """As in nornir: a port of the node does not hide the key of its group; extras are one attribute."""
    (tmp_path / "defaults.yaml").write_text("connection_options: {netmiko: {username: ops}}\n", "utf-8")
    (tmp_path / "groups.yaml").write_text(
        "gpu: {platform: linux, connection_options: {netmiko: {extras: {key_file: ~/gpu}}}}\n", "utf-8"
    )
    (tmp_path / "hosts.yaml").write_text(
        "h1: {groups: [gpu], connection_options: {netmiko: {port: 2222, extras: null}}}\n"
        "h2: {groups: [gpu], connection_options: {netmiko: {extras: {key_file: ~/own}}}}\n",
        "utf-8",
    )
    (tmp_path / "cables.csv").write_text("a_node,a_port,b_node,b_port,length_m\n", encoding="utf-8")
    found = [node.spec.connection_options["netmiko"] for node in load(tmp_path, ("linux",)).nodes.values()]
    assert found == [
        {"username": "ops", "extras": {"key_file": "~/gpu"}, "port": 2222},
        {"username": "ops", "extras": {"key_file": "~/own"}},
    ]


def test_an_entry_that_is_gone_leaves_nothing_behind(tmp_path: Path) -> None:
    text = "".join(
        f"h{n}: {{data: {{set: {{mtu.host: {4200 + n}}}}}}}\n"
        if n % 2
        else f"h{n}: {{data: {{role: host}}}}\n"
        for n in range(HOSTS)
    )
    document = parse_yaml(text.encode(), "hosts.yaml")
    entries = [validate(Entry, document, (f"h{n}",)) for n in range(HOSTS)]
    loader = _Loader(tmp_path, ("linux",))
    for n, entry in enumerate(entries):
        # Nothing keeps the source, so the next one may stand at the same address in memory.
        found = loader._layers(_Source(entry, document, f"h{n}", f"node h{n}"))
        assert [layer.data for layer in found] == ([{"mtu": {"host": 4200 + n}}] if n % 2 else [])
