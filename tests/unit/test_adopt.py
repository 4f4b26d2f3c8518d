"""Adopting: lists of addresses, cables from LLDP, and the intent that is found again from its own result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from rdma_fabric import platforms
from rdma_fabric.adopt.fit import Adopted, fit, with_facts, write
from rdma_fabric.adopt.infer import leaves, usual
from rdma_fabric.adopt.layout import Layout, flow, layout
from rdma_fabric.adopt.sources import Candidate, platform_of, read_candidates
from rdma_fabric.adopt.survey import Surveyed, cabling
from rdma_fabric.cli.common import load
from rdma_fabric.findings import InputError
from rdma_fabric.platforms._contract import OURS, FoundPort
from rdma_fabric.resolve import Resolved
from rdma_fabric.source import parse_yaml
from rdma_fabric.state import UNKNOWN, NodeState, Observation, SystemState

ROOT = Path(__file__).parents[2]
FOUND_AGAIN = [
    ROOT / "inventory/demo",
    ROOT / "inventory/gpu-pod",
    ROOT / "tests/golden/roce-and-cnp/input",
    ROOT / "tests/golden/two-lossless-step-marking/input",
]


# -- sources


def _list(tmp_path: Path, text: str) -> tuple[Candidate, ...]:
    path = tmp_path / "list.txt"
    path.write_text(text, "utf-8")
    return tuple(replace(one, position=None) for one in read_candidates(path))


def test_a_list_of_addresses(tmp_path: Path) -> None:
    found = _list(tmp_path, "# all\n192.0.2.1\n192.0.2.2 sonic\n2001:db8::3 arista_eos leaf03  # a comment\n")
    assert found == (
        Candidate("192.0.2.1"),
        Candidate("192.0.2.2", "sonic"),
        Candidate("2001:db8::3", "arista_eos", "leaf03"),
    )


def test_a_table(tmp_path: Path) -> None:
    found = _list(tmp_path, "name,address,port\nleaf01,192.0.2.1,2222\n,192.0.2.2,\n")
    assert found == (Candidate("192.0.2.1", "", "leaf01", 2222), Candidate("192.0.2.2"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no node"),
        ("not/an/address\n", "is not an address"),
        ("192.0.2.1 vax\n", "is no platform of ours"),
        ("192.0.2.1 sonic leaf01 more\n", "is too much"),
        ("address,colour\n192.0.2.1,red\n", "the column colour is unknown"),
        ("address,port\n192.0.2.1,x\n", "is not a port"),
        ("address,name\n192.0.2.1,a b\n", "a b"),
    ],
)
def test_lists_that_are_wrong(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        _list(tmp_path, text)
    assert said in str(raised.value)


def test_nornirs_files(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(
        "leaf01: {hostname: 192.0.2.1, groups: [eos]}\n"
        "leaf02: {hostname: 192.0.2.2, platform: linux, port: 2222}\n"
    )
    (tmp_path / "groups.yaml").write_text("eos: {platform: eos, groups: [all]}\nall: {username: ops}\n")
    found = read_candidates(tmp_path)
    assert [(one.name, one.address, one.platform, one.port, one.username) for one in found] == [
        ("leaf01", "192.0.2.1", "arista_eos", 22, "ops"),
        ("leaf02", "192.0.2.2", "linux", 2222, ""),
    ]


def test_platforms_by_other_names() -> None:
    assert [platform_of(one) for one in ("arista_eos", "eos", "sonic", "vax", "")] == [
        "arista_eos",
        "arista_eos",
        "sonic",
        "",
        "",
    ]


# -- cables


def _node(name: str, platform: str, *ports: FoundPort) -> Surveyed:
    return Surveyed(Candidate("192.0.2.1", platform, name), name, platform, "", "", ports)


def test_cables_where_one_end_is_silent_or_tells_its_mac() -> None:
    nodes = {
        "gpu01": _node(
            "gpu01",
            "linux",
            FoundPort("eth0", mac="02:00:00:00:00:01"),
            FoundPort("eth1", mac="02:00:00:00:00:02"),
        ),
        "leaf01": _node(
            "leaf01",
            "sonic",
            FoundPort("Ethernet0", neighbour=("gpu01.example.com", "02:00:00:00:00:01")),
            FoundPort("Ethernet4", neighbour=("GPU01", "eth1")),
            FoundPort("Ethernet8", neighbour=("core", "Eth1")),
        ),
    }
    found = cabling(nodes)
    assert found.links == (
        ("leaf01", "Ethernet0", "gpu01", "eth0"),
        ("leaf01", "Ethernet4", "gpu01", "eth1"),
    )
    assert found.notes == ("leaf01 Ethernet8: its neighbour core is not adopted",)


def test_a_port_with_two_neighbours_is_told() -> None:
    nodes = {
        "a": _node("a", "sonic", FoundPort("Ethernet0", neighbour=("b", "Ethernet0"))),
        "b": _node("b", "sonic", FoundPort("Ethernet0", neighbour=("c", "Ethernet0"))),
        "c": _node("c", "sonic", FoundPort("Ethernet0", neighbour=("b", "Ethernet0"))),
    }
    assert any("LLDP names both" in note for note in cabling(nodes).notes)


# -- layout


def test_text_that_another_reader_might_take_otherwise_is_quoted() -> None:
    value = {"a": ["yes", "09", "026", "1:20", "x: y", "50%", "150KB", "mlx5_[0-1]", True, 3]}
    line = flow(value)
    assert parse_yaml(f"v: {line}\n".encode(), "x").data["v"] == value
    assert "50%" in line and '"yes"' in line


# -- found again


def _surveyed(resolved: Resolved) -> dict[str, Surveyed]:
    """Nodes as LLDP and the hosts themselves would tell of the planned cables."""
    peers = {end: (other.node, other.port) for end, (other, _) in resolved.inventory.peers().items()}
    found = {}
    for name, node in resolved.inventory.nodes.items():
        ports = tuple(
            FoundPort(
                port.name, _driver(port.nic), port.rdma, "", port.speed_gbps if node.is_host else 0, peer
            )
            for port in node.spec.ports.values()
            for end, peer in peers.items()
            if (end.node, end.port) == (name, port.name)
        )
        spec = node.spec
        found[name] = Surveyed(
            Candidate(node.hostname, spec.platform, name),
            name,
            spec.platform,
            spec.model,
            spec.version,
            ports,
        )
    return found


def _driver(nic: str) -> str:
    drivers = platforms.platform(f"nic_{nic}").traits.drivers if nic else ()
    return drivers[0] if drivers else ""


def _cabled(state: NodeState, names: set[str]) -> Observation:
    return Observation(NodeState(state.system, tuple(port for port in state.ports if port.name in names)))


def _own_files(system: SystemState) -> str:
    """What our files on a host hold, as the host part tells it."""
    rows = [f"modules.{name}=" for name, on in system.modules if on]
    for group in ("sysctl", "module_options", "limits", "environment"):
        rows += [f"{group}.{name}={value}" for name, value in getattr(system, group)]
    return "\n".join(rows)


def _adopt(
    folder: Path,
    tmp_path: Path,
    change: dict[str, NodeState] | None = None,
    lost: Mapping[str, NodeState] = MappingProxyType({}),
) -> tuple[Adopted, Layout]:
    """`change` and `lost`: node -> what runs, and what a reboot brings, where not as intended."""
    resolved = load(folder)
    nodes = _surveyed(resolved)
    found = layout(nodes, cabling(nodes))
    seen = {}
    for name, plan in resolved.plans.items():
        state = (change or {}).get(name) or platforms.realize(plan.state, plan.hardware).state
        stack = plan.hardware.option("stack")
        observed = _cabled(state, set(found.ports[name]))
        facts = {"stack eth0": stack, OURS: _own_files(state.system)}
        kept = lost.get(name, observed.running)
        seen[name] = replace(observed, stored=kept, facts=tuple(item for item in facts.items() if item[1]))
    found = with_facts(found, seen)
    write(tmp_path, found.files() | {"fabric.yaml": "version: 1\nname: adopted\n"})
    inventory = load(tmp_path).inventory
    return fit("adopted", found, inventory, seen), found


@pytest.mark.parametrize("folder", FOUND_AGAIN, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_intent_is_found_again_from_its_own_result(folder: Path, tmp_path: Path) -> None:
    adopted, _ = _adopt(folder, tmp_path)
    assert {name: [one.setting for one in rows] for name, rows in adopted.deviants.items()} == {}
    assert adopted.left == ()
    (tmp_path / "fabric.yaml").write_text(adopted.intent, "utf-8")
    own = [
        {
            name: set(_own_files(platforms.realize(plan.state, plan.hardware).state.system).splitlines())
            for name, plan in load(each).plans.items()
        }
        for each in (folder, tmp_path)
    ]
    hosts = [lines for lines in own[0].values() if lines]
    common = set.intersection(*hosts) if hosts else set()
    for name, lines in own[0].items():
        assert not lines or common <= own[1][name]


def _broken(folder: Path) -> Iterator[tuple[str, NodeState]]:
    for number, (name, plan) in enumerate(load(folder).plans.items()):
        if number in (1, 4, 9):
            state = platforms.realize(plan.state, plan.hardware).state
            port = state.ports[0]
            settings = replace(port.settings, mtu=replace(port.settings.mtu, ip=1500))
            yield name, replace(state, ports=(replace(port, settings=settings), *state.ports[1:]))


def test_three_deviants_are_named_and_change_nothing(tmp_path: Path) -> None:
    folder = ROOT / "inventory/gpu-pod"
    sound, _ = _adopt(folder, tmp_path / "sound")
    broken = dict(_broken(folder))
    adopted, _ = _adopt(folder, tmp_path / "broken", broken)
    assert adopted.intent == sound.intent
    assert {name: [one.title for one in rows] for name, rows in adopted.deviants.items()} == {
        name: ["mtu"] for name in broken
    }


def test_what_a_reboot_changes_is_told_and_no_deviation(tmp_path: Path) -> None:
    folder = ROOT / "inventory/demo"
    plan = load(folder).plans["gpu03"]
    state = platforms.realize(plan.state, plan.hardware).state
    port = state.ports[0]
    other = replace(port.settings, mtu=replace(port.settings.mtu, ip=1500))
    kept = replace(state, ports=(replace(port, settings=other), *state.ports[1:]))
    adopted, _ = _adopt(folder, tmp_path, lost={"gpu03": kept})
    assert adopted.deviants == {} and adopted.lost == {"gpu03": (f"{port.name} mtu",)}


def test_a_line_in_a_file_that_is_no_value_of_the_intent_voids_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        globals(), "_own_files", lambda system: "sysctl.Not A Key=1" if system.modules else ""
    )
    adopted, _ = _adopt(ROOT / "inventory/demo", tmp_path)
    assert "Not A Key" not in adopted.intent and adopted.deviants == {}
    (tmp_path / "fabric.yaml").write_text(adopted.intent, "utf-8")
    assert load(tmp_path).plans


def test_settings_of_whole_hosts(tmp_path: Path) -> None:
    """Two hosts of eight have another value: deviants; what our file holds on most is the intent."""
    folder = ROOT / "inventory/demo"
    change = {}
    for name in ("gpu02", "gpu05"):
        plan = load(folder).plans[name]
        state = platforms.realize(plan.state, plan.hardware).state
        sysctl = tuple((key, "0" if key.endswith("tcp_ecn") else value) for key, value in state.system.sysctl)
        change[name] = replace(state, system=replace(state.system, sysctl=sysctl))
    adopted, _ = _adopt(folder, tmp_path, change)
    assert {name: [one.title for one in rows] for name, rows in adopted.deviants.items()} == {
        name: ["sysctl net.ipv4.tcp_ecn"] for name in change
    }
    assert "net.ipv4.tcp_ecn: 1" in adopted.intent and "local_check: false" in adopted.intent


def test_what_a_role_has_becomes_an_override(tmp_path: Path) -> None:
    folder = ROOT / "inventory/gpu-pod"
    change = {}
    for name, plan in load(folder).plans.items():
        if name.startswith("spine"):
            state = platforms.realize(plan.state, plan.hardware).state
            ports = tuple(
                replace(port, settings=replace(port.settings, mtu=replace(port.settings.mtu, ip=4200)))
                for port in state.ports
            )
            change[name] = replace(state, ports=ports)
    adopted, _ = _adopt(folder, tmp_path, change)
    assert "overrides:" in adopted.intent
    assert "role=spine" in adopted.intent
    assert "mtu.switch: 4200" in adopted.intent


def test_roles_and_networks(tmp_path: Path) -> None:
    _, found = _adopt(ROOT / "inventory/gpu-pod", tmp_path)
    assert {role for name, role in found.roles.items() if name.startswith("gpu")} == {"host"}
    assert {role for name, role in found.roles.items() if name.startswith("spine")} == {"spine"}
    networks = {place.network for ports in found.ports.values() for place in ports.values()}
    assert networks == {"compute", "network2"}


def test_small_helpers() -> None:
    assert usual([UNKNOWN, 1, 2, 2]) == 2
    assert usual([UNKNOWN]) is None
    assert leaves({"a": {"b": 1}, "c": [2]}) == {("a", "b"): 1, ("c",): [2]}
