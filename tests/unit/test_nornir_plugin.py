"""nornir both ways: our nodes for nornir, and other inventory plug-ins read into our types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nornir import InitNornir
from nornir.core.inventory import ConnectionOptions, Defaults, Group, Groups, Host, Hosts, ParentGroups
from nornir.core.inventory import Inventory as NornirInventory
from nornir.core.plugins.inventory import InventoryPluginRegister

from rdma_fabric.findings import InputError
from rdma_fabric.inventory import nornir_plugin
from rdma_fabric.inventory.load import load
from rdma_fabric.inventory.nornir_plugin import Row, read_nornir, rows

PLATFORMS = ("sonic", "linux")

HOSTS = """
leaf[01-02]: {groups: [leaf], hostname: "192.0.2.[11-12]"}
gpu01: {platform: linux, username: ops, port: 2022, data: {role: host, ports: {eth0: {speed: 400G}}}}
"""
GROUPS = """
leaf:
  platform: sonic
  data: {role: leaf, version: 202411, ports: {Ethernet0: {speed: 400G, network: compute}}}
"""
CABLES = "a_node,a_port,b_node,b_port,length_m\ngpu01,eth0,leaf01,Ethernet0,3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    (tmp_path / "groups.yaml").write_text(GROUPS)
    (tmp_path / "cables.csv").write_text(CABLES)
    return tmp_path


class _Other:
    """An inventory plug-in of somebody else; `made` is what it gives."""

    made: NornirInventory | Exception

    def __init__(self, **options: Any) -> None:
        self.options = options

    def load(self) -> NornirInventory:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


@pytest.fixture
def other() -> Iterator[type[_Other]]:
    InventoryPluginRegister.register("SomebodysInventory", _Other)
    yield _Other
    InventoryPluginRegister.deregister("SomebodysInventory")


def _config(folder: Path, text: str = "inventory: {plugin: SomebodysInventory}\n") -> Path:
    path = folder / "nornir.yaml"
    path.write_text(text)
    return path


def _refusal(path: Path) -> InputError:
    with pytest.raises(InputError) as error:
        read_nornir(path, PLATFORMS)
    return error.value


# --- ours for nornir


def test_our_inventory_runs_in_nornir(folder: Path) -> None:
    nornir_plugin.register()
    nornir_plugin.register()
    options = {"inventory": load(folder, PLATFORMS)}
    nornir = InitNornir(
        inventory={"plugin": "rdma_fabric", "options": options},
        runner={"plugin": "serial"},
        logging={"enabled": False},
    )
    assert list(nornir.inventory.hosts) == ["gpu01", "leaf01", "leaf02"]
    leaf = nornir.inventory.hosts["leaf02"]
    assert (leaf.hostname, leaf.port, leaf.platform, leaf["role"]) == ("192.0.2.12", 22, "sonic", "leaf")
    gpu = nornir.inventory.hosts["gpu01"]
    assert (gpu.username, gpu.port, gpu.password) == ("ops", 2022, None)
    assert list(nornir.filter(filter_func=lambda host: host.has_parent_group("leaf")).inventory.hosts) == [
        "leaf01",
        "leaf02",
    ]


def test_rows_keep_the_order_of_the_names(folder: Path) -> None:
    inventory = load(folder, PLATFORMS)
    assert [row.name for row in rows(inventory, ["leaf02", "gpu01"])] == ["leaf02", "gpu01"]
    assert rows(inventory)[0] == Row(
        "gpu01",
        "gpu01",
        2022,
        "ops",
        "linux",
        (),
        {"role": "host", "state": "active", "model": "", "version": ""},
    )


# --- others for us


def test_nornirs_own_inventory_is_read_as_ours(folder: Path) -> None:
    wanted = load(folder, PLATFORMS)
    (folder / "simple.yaml").write_text(
        "leaf01: {groups: [leaf], hostname: 192.0.2.11}\n"
        "leaf02: {groups: [leaf], hostname: 192.0.2.12}\n" + HOSTS.splitlines()[2] + "\n"
    )
    options = f'{{host_file: "{folder}/simple.yaml", group_file: "{folder}/groups.yaml"}}'
    path = _config(folder, f"inventory: {{plugin: SimpleInventory, options: {options}}}\n")
    found = read_nornir(path, PLATFORMS)
    assert list(found.nodes) == list(wanted.nodes)
    for name, node in found.nodes.items():
        spec, ours = node.spec, wanted.nodes[name].spec
        assert (node.hostname, spec.platform, spec.role, spec.version, spec.groups) == (
            wanted.nodes[name].hostname,
            ours.platform,
            ours.role,
            ours.version,
            ours.groups,
        )
        assert [(port.name, port.speed_gbps, port.network) for port in spec.ports.values()] == [
            (port.name, port.speed_gbps, port.network) for port in ours.ports.values()
        ]
        assert str(spec.position) == f"{path} (SimpleInventory)"
    assert [str(link) for link in found.links] == ["gpu01 eth0 - leaf01 Ethernet0"]


def _made() -> NornirInventory:
    group = Group("tor", platform="community-sonic", data={"site": {"name": "x"}, "ports": {}})
    extras = {"conn_timeout": 5, "secret": "hunter2", "passphrase": "hunter2"}
    host = Host(
        "leaf01",
        hostname="192.0.2.11",
        password="hunter2",
        groups=ParentGroups([group]),
        data={
            "role": {"id": 3, "slug": "leaf", "name": "Leaf"},
            "custom_fields": {"version": 202411, "model": None, "other": 1},
            "interfaces": [1],
            "rack": {"display": "none"},
        },
        connection_options={"netmiko": ConnectionOptions(port=2022, password="hunter2", extras=extras)},
    )
    return NornirInventory(
        Hosts({"leaf01": host}), Groups({"tor": group}), Defaults(username="ops", data={"state": "planned"})
    )


def test_foreign_facts_are_taken_where_they_are_ours(folder: Path, other: type[_Other]) -> None:
    other.made = _made()
    (folder / "cables.csv").write_text(CABLES.splitlines()[0] + "\n")
    text = "inventory: {plugin: SomebodysInventory}\nplatforms: {community-sonic: sonic}\n"
    spec = read_nornir(_config(folder, text), PLATFORMS).nodes["leaf01"].spec
    assert (spec.platform, spec.role, spec.version, spec.state) == ("sonic", "leaf", "202411", "planned")
    assert (spec.username, spec.groups) == ("ops", ("tor",))
    assert spec.connection_options == {"netmiko": {"port": 2022, "extras": {"conn_timeout": 5}}}
    assert "hunter2" not in repr(spec)


def test_bad_values_are_findings_of_the_plug_in(folder: Path, other: type[_Other]) -> None:
    other.made = _made()
    other.made.hosts["leaf01"].data["ports"] = {"Ethernet0": {"speed": "fast", "colour": "red"}}
    found = _refusal(_config(folder)).findings
    assert {(one.name, str(one.position)) for one in found} >= {
        ("unknown-key", f"{folder}/nornir.yaml (SomebodysInventory)"),
        ("schema", f"{folder}/nornir.yaml (SomebodysInventory)"),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inventory: {plugin: NoSuchInventory}\n", "NoSuchInventory"),
        ("inventory: {plugin: SomebodysInventory, options: {a: 1}, other: 2}\n", "other"),
        ("plugin: SomebodysInventory\n", "inventory"),
    ],
)
def test_a_wrong_configuration_is_a_finding(folder: Path, other: type[_Other], text: str, words: str) -> None:
    assert words in str(_refusal(_config(folder, text)))


def test_a_plug_in_that_fails_is_a_finding(folder: Path, other: type[_Other]) -> None:
    other.made = ConnectionError("netbox does not answer")
    error = _refusal(_config(folder))
    assert "SomebodysInventory failed: ConnectionError: netbox does not answer" in str(error)
    assert error.findings[0].help
