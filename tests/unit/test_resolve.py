"""Precedence, origins, what-if and sharing: from input files to wished states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric.findings import InputError, Position
from rdma_fabric.layers import make_layer, merge, remove, split_dotted
from rdma_fabric.resolve import PortPlan, Resolved
from rdma_fabric.state import MTU_MAX, UNMANAGED, Amount, ClassState, Ecn, Marking, QosState
from tests.support.inputs import GROUPS, HOSTS, INTENT, fabric
from tests.support.states import steady


def _port(found: Resolved, node: str = "gpu01", port: str = "eth0") -> PortPlan:
    return found.plans[node].ports[port]


def _mtu(found: Resolved, node: str = "gpu01", port: str = "eth0") -> Any:
    return _port(found, node, port).settings.mtu.ip


def _at(position: Position) -> tuple[str, int, int]:
    return Path(position.file).name, position.line, position.column


def _spot(text: str, word: str, nth: int = 0) -> tuple[int, int]:
    """Line and column of the nth `word`."""
    start = -1
    for _ in range(nth + 1):
        start = text.index(word, start + 1)
    return text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1


def _ladder(height: int) -> tuple[str, dict[str, str], list[tuple[str, str | None]]]:
    """The intent and inventory in which the first `height` steps of the precedence all set the host MTU."""
    intent = INTENT.replace("host: 9000", "host: 1001")
    groups, hosts, defaults = GROUPS, "leaf[01-02]: {groups: [leaf]}\n", ""
    if height > 1:
        intent = intent.replace("compute: {}", "compute: {mtu: {host: 1002}}")
    if height > 2:
        intent += "overrides:\n  - {where: role=host, set: {mtu.host: 1003}}\n"
    if height > 3:
        intent += "  - {where: 'gpu01,port=eth0', set: {mtu.host: 1004}}\n"
    if height > 4:
        defaults = "data: {set: {mtu.host: 1005}}\n"
    parent = "{set: {mtu.host: 1006}}" if height > 5 else "{}"
    weak = "{set: {mtu.host: 1007}}" if height > 6 else "{}"
    strong = "{set: {mtu: {host: 1008}}}" if height > 7 else "{}"
    groups += (
        f"parent: {{data: {parent}}}\nweak: {{groups: [parent], data: {weak}}}\nstrong: {{data: {strong}}}\n"
    )
    node = "set: {mtu.host: 1009}, " if height > 8 else ""
    port = "{set: {mtu.host: 1010}}" if height > 9 else "{}"
    port = "{set: {mtu.host: 1010}, mtu: 1011}" if height > 10 else port
    hosts += f"gpu01: {{groups: [strong, weak, gpu], data: {{{node}ports: {{eth0: {port}}}}}}}\n"
    hosts += "gpu[02-04]: {groups: [gpu]}\n"
    changes: list[tuple[str, str | None]] = [("mtu.host", "1900")] if height > 11 else []
    changes += [("gpu01:mtu.host", "1013")] if height > 12 else []
    changes += [("gpu01:eth0:mtu.host", "1014")] if height > 13 else []
    return intent, {"groups": groups, "hosts": hosts, "defaults": defaults}, changes


@pytest.mark.parametrize("height", range(1, 15))
def test_precedence_and_origin(height: int, tmp_path: Path) -> None:
    """Intent < network < overrides < defaults < groups (first strongest) < node < port < what-if there.

    A what-if without a node lies over intent and networks only: it does not win here.
    """
    intent, files, changes = _ladder(height)
    found = fabric(tmp_path, intent, *changes, **files)
    value = 1011 if height == 12 else 1000 + height
    assert _mtu(found) == value
    origin = _port(found).origins["mtu"]
    if height > 12:
        assert str(origin) == f"--set {changes[-1][0]}={value}"
        return
    name = (["fabric.yaml"] * 4 + ["defaults.yaml"] + ["groups.yaml"] * 3 + ["hosts.yaml"] * 3)[value - 1001]
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert _at(origin) == (name, *_spot(text, str(value)))


def test_what_if_lies_over_intent_and_network_below_overrides(tmp_path: Path) -> None:
    intent = INTENT.replace("compute: {}", "compute: {mtu: {host: 4200}}")
    found = fabric(tmp_path, intent, ("mtu.host", "5000"))
    assert _mtu(found) == 5000
    assert str(_port(found).origins["mtu"]) == "--set mtu.host=5000"
    more = "overrides:\n  - {where: gpu01, set: {mtu.host: 6000}}\n"
    found = fabric(tmp_path, intent + more, ("mtu.host", "5000"))
    assert (_mtu(found), _mtu(found, "gpu02")) == (6000, 5000)


def test_maps_merge_and_lists_replace(tmp_path: Path) -> None:
    intent = INTENT + (
        "hosts: {modules: [a, b], sysctl: {net.ipv4.x: 1, net.ipv4.y: 2}}\n"
        "overrides:\n"
        "  - {where: gpu01, set: {hosts.modules: [c], hosts.sysctl.net.ipv4.x: 9, classes.roce.dscp: [24]}}\n"
    )
    found = fabric(tmp_path, intent)
    system = found.plans["gpu01"].state.system
    assert system.modules == (("c", True),)
    assert system.sysctl == (("net.ipv4.x", "9"), ("net.ipv4.y", "2"))
    qos = _port(found).settings.qos
    assert isinstance(qos.dscp_to_priority, tuple)
    assert (qos.dscp_to_priority[24], qos.dscp_to_priority[26]) == (3, 0)
    assert _at(system.origins["sysctl"]) == ("fabric.yaml", *_spot(intent, "9, classes"))
    assert found.plans["gpu02"].state.system.modules == (("a", True), ("b", True))


def test_host_settings_of_ports_and_services(tmp_path: Path) -> None:
    """A dot in a port's name is written as a slash; what is asked for is named to the platform."""
    groups = GROUPS + (
        "      bond0: {kind: bond, members: [eth0, eth1], network: compute}\n"
        '      "bond0.100": {kind: vlan, parent: bond0, vlan: 100, network: compute}\n'
        '      "bond0.200": {kind: vlan, parent: bond0, vlan: 200, network: storage}\n'
    )
    intent = INTENT + (
        "hosts:\n  sysctl: {net.ipv4.conf.bond0/*.arp_ignore: 1, net.ipv4.conf.eth*.rp_filter: 2}\n"
        "  limits: {memlock: unlimited}\n  services: [slurmd.service, kubelet]\n"
        "  module_options: {mlx5_core: {prof_sel: 3}}\n"
    )
    plan = fabric(tmp_path, intent, groups=groups).plans["gpu01"]
    assert plan.state.system.sysctl == (
        ("net.ipv4.conf.bond0/100.arp_ignore", "1"),
        ("net.ipv4.conf.bond0/200.arp_ignore", "1"),
        *((f"net.ipv4.conf.eth{number}.rp_filter", "2") for number in range(3)),
    )
    limits = ("kubelet.memlock", "memlock", "slurmd.memlock")
    assert plan.state.system.limits == tuple((name, "unlimited") for name in limits)
    asked = plan.hardware.option("asked").split()
    assert {"sysctl.net.ipv4.conf.bond0/100.arp_ignore", "limits.kubelet.memlock"} < set(asked)
    assert "module_options.mlx5_core.prof_sel" in asked


def test_origins_of_a_port_are_exact(tmp_path: Path) -> None:
    intent = INTENT.replace("compute: {}", "compute: {ecn: {any: {kmin: 1KB, kmax: 2KB}}}") + "trust: dscp\n"
    found = fabric(tmp_path, intent)
    origins = _port(found, "leaf01", "e1").origins
    wanted = {
        "mtu": "max",
        "qos.trust": "dscp\n",
        "qos.classes": "\n  roce",
        "qos.classes.3.ecn": "{kmin: 150KB",
        "qos.classes.3.share": "50%",
        "qos.classes.3.pfc": "true",
        "qos.watchdog": "{detect",
    }
    for name, word in wanted.items():
        spot = _spot(intent, word)
        if word.startswith("\n"):
            spot = (spot[0] + 1, 3)
        assert _at(origins[name]) == ("fabric.yaml", *spot), name
    storage = fabric(tmp_path, intent.replace("400G: {kmin: 150KB", "any: {kmin: 150KB"))
    at = _port(storage, "leaf01", "e1").origins["qos.classes.3.ecn"]
    assert _at(at)[1:] == _spot(intent, "{kmin: 1KB")


class TestWhatIf:
    """--set and --unset."""

    def test_unset_leaves_the_setting_to_the_device(self, tmp_path: Path) -> None:
        assert _mtu(fabric(tmp_path, INTENT, ("mtu.host", None))) is UNMANAGED
        found = fabric(tmp_path, INTENT, ("ecn", None))
        assert _port(found, "leaf01", "e1").settings.qos.classes[3].ecn is UNMANAGED
        found = fabric(tmp_path, INTENT, ("dcqcn", None))
        assert _port(found).settings.marking.np is UNMANAGED

    def test_unset_at_a_node_and_at_a_port(self, tmp_path: Path) -> None:
        found = fabric(tmp_path, INTENT, ("gpu01:mtu.host", None), ("gpu02:eth1:mtu.host", None))
        assert [_mtu(found, "gpu01", port) for port in ("eth0", "eth1", "eth2")] == [UNMANAGED] * 3
        assert [_mtu(found, "gpu02", port) for port in ("eth0", "eth1", "eth2")] == [9000, UNMANAGED, 9000]
        assert _mtu(found, "gpu03") == 9000

    def test_keys_with_dots_in_a_name(self, tmp_path: Path) -> None:
        intent = INTENT + "hosts: {sysctl: {net.ipv4.a: 1, net.ipv4.b: 2}}\n"
        found = fabric(
            tmp_path, intent, ("hosts.sysctl.net.ipv4.a", None), ("gpu01:hosts.sysctl.net.ipv4.b", "7")
        )
        assert found.plans["gpu01"].state.system.sysctl == (("net.ipv4.b", "7"),)
        assert found.plans["gpu02"].state.system.sysctl == (("net.ipv4.b", "2"),)

    def test_a_range_of_nodes(self, tmp_path: Path) -> None:
        found = fabric(tmp_path, INTENT, ("gpu[01-02]:mtu.host", "4200"))
        assert [_mtu(found, f"gpu0{n}") for n in (1, 2, 3)] == [4200, 4200, 9000]

    @pytest.mark.parametrize(
        ("change", "message", "help"),
        [
            (("gpu0x1:mtu.host", "1"), "there is no node gpu0x1", "did you mean gpu01?"),
            (("gpu01:eth9:mtu.host", "1"), "there is no port eth9 of gpu01", "did you mean eth2?"),
            (("gpu01:eth9:mtu.host", None), "there is no port eth9 of gpu01", "did you mean eth2?"),
            (("mtu.hots", None), "nothing sets mtu.hots", "write a key that is set"),
            (("gpu01:mtu.svi", None), "nothing sets mtu.svi", "write a key that is set"),
            (("gpu 01=x:mtu.host", "1"), "'01=x' is not fact=value", "known facts"),
            (("mtu.hots", "1"), "mtu has no key 'hots'", "did you mean host?"),
            (("mtu.host", "1"), "mtu.host: 1 is not an IP MTU", "write 68 to"),
            (("mtu.host", "[1"), "", ""),
        ],
    )
    def test_what_changes_nothing_is_a_mistake(
        self, change: tuple[str, str | None], message: str, help: str, tmp_path: Path
    ) -> None:
        with pytest.raises(InputError) as caught:
            fabric(tmp_path, INTENT, change)
        (one,) = caught.value.findings
        assert message in one.message
        assert help in one.help
        assert one.position is not None
        assert one.position.file.startswith("--unset" if change[1] is None else "--set")


class TestAbsent:
    """Settings that left the intent and are reset on the devices."""

    PLAIN = INTENT.replace("dcqcn: true\n", "")

    def test_resets(self, tmp_path: Path) -> None:
        intent = self.PLAIN.replace("ecn: {400G: {kmin: 150KB, kmax: 1500KB, pmax: 100%}}\n", "")
        intent = intent.replace("pfc: {watchdog: {detect: 200ms, restore: 400ms, action: drop}}", "pfc: {}")
        before = fabric(tmp_path, intent)
        leaf = _port(before, "leaf01", "e1").settings.qos.classes[3]
        assert (leaf.ecn, leaf.watchdog) == (UNMANAGED, UNMANAGED)
        assert _port(before).settings.marking.np is UNMANAGED
        intent += "absent: [ecn, pfc.watchdog, dcqcn]\n"
        found = fabric(tmp_path, intent)
        leaf = _port(found, "leaf01", "e1").settings.qos.classes[3]
        assert (leaf.ecn, leaf.watchdog) == (None, False)
        assert (_port(found).settings.marking.np, _port(found).settings.marking.rp) == ((), ())
        at = _port(found, "leaf01", "e1").origins["qos.classes.3.ecn"]
        assert _at(at) == ("fabric.yaml", *_spot(intent, "ecn, pfc"))

    def test_a_class_that_went(self, tmp_path: Path) -> None:
        found = fabric(tmp_path, INTENT + "absent: [classes.scavenger]\n")
        unused = _port(found, "leaf01", "e1").settings.qos.classes[1]
        assert (unused.ecn, unused.share) == (None, None)

    def test_marking_of_one_class(self, tmp_path: Path) -> None:
        found = fabric(tmp_path, INTENT + "absent: [classes.default.ecn]\n")
        assert _port(found, "leaf01", "e1").settings.qos.classes[0].ecn is None

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            ("dcqcn", "dcqcn is absent and set"),
            ("classes.roce", "classes.roce is absent and set"),
            ("mtu.host", "mtu.host cannot be reset"),
            ("classes.gone.ecn", "the intent has no class gone"),
        ],
    )
    def test_what_cannot_be_absent(self, key: str, message: str, tmp_path: Path) -> None:
        intent = INTENT + f"absent: [{key}]\n"
        with pytest.raises(InputError) as caught:
            fabric(tmp_path, intent)
        (one,) = caught.value.findings
        assert one.message == message
        assert one.position is not None
        assert _at(one.position) == ("fabric.yaml", *_spot(intent, key, intent.count(key) - 1))


class TestMistakes:
    """Where a merged setting is not valid, the place where it was written is told."""

    def test_an_unused_network_is_read_too(self, tmp_path: Path) -> None:
        intent = INTENT.replace("storage: {}", "storage: {}, backup: {mtu: {hots: 9000}}")
        with pytest.raises(InputError, match=r"fabric.yaml:\d+:\d+: .*networks|mtu has no key 'hots'"):
            fabric(tmp_path, intent)

    def test_the_excerpt_is_of_the_right_file(self, tmp_path: Path) -> None:
        hosts = HOSTS.replace("{groups: [gpu]}", "{groups: [gpu], data: {set: {mtu.host: 12}}}")
        with pytest.raises(InputError) as caught:
            fabric(tmp_path, hosts=hosts)
        (one,) = caught.value.findings
        assert one.position is not None
        assert _at(one.position) == ("hosts.yaml", *_spot(hosts, "12}"))
        assert "switch: max" not in one.excerpt

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("compute: {}", "compute: {hosts: {sysctl: {net.ipv4.x: 1}}}"),
            (
                "networks:",
                "overrides: [{where: port=eth0, set: {hosts.sysctl.net.ipv4.x: 1}}]\nnetworks:",
            ),
        ],
    )
    def test_node_wide_settings_below_a_node_are_refused(self, old: str, new: str, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"hosts\.sysctl holds for whole nodes"):
            fabric(tmp_path, INTENT.replace(old, new))

    def test_an_unknown_roce_class(self, tmp_path: Path) -> None:
        intent = INTENT + "hosts: {roce_class: rose}\n"
        with pytest.raises(InputError) as caught:
            fabric(tmp_path, intent)
        (one,) = caught.value.findings
        assert (one.message, one.help, one.found) == ("there is no class rose", "did you mean roce?", "rose")
        assert one.position is not None and _at(one.position) == ("fabric.yaml", *_spot(intent, "rose"))
        for node, wrong in (("gpu01", True), ("leaf01", False)):
            change = (f"{node}:hosts.roce_class", "bulk")
            if wrong:
                with pytest.raises(InputError, match="there is no class bulk"):
                    fabric(tmp_path, INTENT, change)
            else:  # a switch marks nothing
                fabric(tmp_path, INTENT, change)

    def test_bad_selectors(self, tmp_path: Path) -> None:
        intent = INTENT + "overrides:\n  - {where: rloe=leaf, set: {mtu.switch: 1500}}\n"
        with pytest.raises(InputError) as caught:
            fabric(tmp_path, intent)
        (one,) = caught.value.findings
        assert (one.message, one.help) == ("unknown fact 'rloe'", "did you mean role?")

    def test_overrides_that_select_nothing_are_kept_for_the_report(self, tmp_path: Path) -> None:
        more = (
            "overrides:\n  - {where: gpu09, set: {mtu.host: 1500}}\n"
            "  - {where: network=backup, set: {mtu.host: 1500}}\n"
            "  - {where: network=storage, set: {mtu.host: 4200}}\n"
        )
        found = fabric(tmp_path, INTENT + more)
        assert [one.where for one, _ in found.unused] == ["gpu09", "network=backup"]
        assert (_mtu(found), _mtu(found, port="eth2")) == (9000, 4200)


class TestSharing:
    """Work is done per distinct wish, not per node."""

    def test_equal_nodes_are_one(self, tmp_path: Path) -> None:
        found = fabric(tmp_path)
        assert len({id(found.plans[f"gpu0{n}"]) for n in range(1, 5)}) == 1
        gpu = found.plans["gpu01"].ports
        assert gpu["eth0"] is gpu["eth1"]

    def test_a_named_override_splits_only_that_node(self, tmp_path: Path) -> None:
        found = fabric(tmp_path, INTENT + "overrides:\n  - {where: gpu02, set: {mtu.host: 4200}}\n")
        plans = [id(found.plans[f"gpu0{n}"]) for n in range(1, 5)]
        assert len({*plans}) == 2
        assert plans.count(plans[1]) == 1

    def test_cables_of_another_length_split(self, tmp_path: Path) -> None:
        cables = (
            "a_node,a_port,b_node,b_port,length_m\ngpu[01-03],eth0,leaf01,e[1-3],5\ngpu04,eth0,leaf01,e4,80\n"
        )
        found = fabric(tmp_path, cables=cables)
        assert len({id(plan) for name, plan in found.plans.items() if name.startswith("gpu")}) == 2
        assert _port(found, "leaf01", "e4").settings.qos.cable_m == 80

    def test_two_thousand_hosts_stay_a_few_objects(self, tmp_path: Path) -> None:
        hosts = "leaf[001-063]: {groups: [leaf]}\ngpu[0001-2000]: {groups: [gpu]}\n"
        cables = "a_node,a_port,b_node,b_port,length_m\n" + "".join(
            f"gpu[{32 * n + 1:04d}-{32 * n + 32:04d}],eth0,leaf{n + 1:03d},e[1-32],5\n" for n in range(62)
        )
        groups = GROUPS.replace("e[1-4]", "e[1-32]")
        found = fabric(tmp_path, hosts=hosts, groups=groups, cables=cables)
        assert len(found.plans) == 2063
        assert len({id(plan) for plan in found.plans.values()}) == 4
        assert len({id(port) for plan in found.plans.values() for port in plan.ports.values()}) == 5


class TestMeaning:
    """What a wish becomes on a host and on a switch."""

    def test_host(self, tmp_path: Path) -> None:
        marking = _port(fabric(tmp_path)).settings.marking
        assert marking == Marking(104, 104, True, 48, 6, (3,), (3,))

    def test_switch(self, tmp_path: Path) -> None:
        found = fabric(tmp_path)
        settings = _port(found, "leaf01", "e1").settings
        assert settings.mtu.ip == MTU_MAX
        assert settings.marking == Marking()
        classes = settings.qos.classes
        assert classes[3].ecn == Ecn(Amount(150_000), Amount(1_500_000))
        assert [index for index, one in enumerate(classes) if one.pfc_tx] == [3]
        assert (settings.qos.global_pause, settings.qos.cable_m) == (False, 5)
        assert classes[1] == ClassState(False, False, False)

    def test_ports_of_no_network_are_not_ours(self, tmp_path: Path) -> None:
        groups = GROUPS + 'mgmt: {data: {ports: {ma1: {speed: 10G}, "e1": {network: null}}}}\n'
        found = fabric(tmp_path, groups=groups, hosts=HOSTS.replace("[leaf]", "[mgmt, leaf]"))
        assert set(found.plans["leaf01"].ports) == {"e2", "e3", "e4"}

    def test_no_classes_leave_qos_alone(self, tmp_path: Path) -> None:
        found = fabric(tmp_path, "version: 1\nname: t\nmtu: {host: 9000}\n")
        assert _port(found).settings.qos == QosState()
        assert _mtu(found, "leaf01", "e1") is UNMANAGED


NESTED = st.recursive(
    st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MAPS = st.dictionaries(st.sampled_from("abc"), NESTED, max_size=3)


def _over(old: Any, new: Any) -> Any:
    """The merge as its definition says it: maps merge, all else replaces."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {key: _over(old.get(key), new[key]) if key in new else old[key] for key in {**old, **new}}


def _leaves(data: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    found = {path: data}
    for key, value in items:
        found |= _leaves(value, (*path, str(key)))
    return found


@steady
@given(st.lists(MAPS, min_size=1, max_size=4))
def test_every_value_of_a_merge_knows_who_wrote_it(fragments: list[dict[str, Any]]) -> None:
    layers = [
        make_layer(data, lambda _path, at=index: Position("f", at + 1, 1), (), str(index))
        for index, data in enumerate(fragments)
    ]
    merged = merge(layers)
    expected: Any = {}
    for data in fragments:
        expected = _over(expected, data)
    assert merged.data == expected
    values = _leaves(merged.data)
    assert {path for path in merged.positions if path} == {path for path in values if path}
    for path, value in values.items():
        if path and not isinstance(value, dict):
            writer = merged.positions[path].line - 1
            assert _leaves(fragments[writer])[path] == value
            later = [_leaves(one).get(path, ...) for one in fragments[writer + 1 :]]
            assert all(one is ... or isinstance(one, dict) for one in later) or value == later[-1]


@steady
@given(MAPS)
def test_what_is_removed_is_gone_with_its_positions(data: dict[str, Any]) -> None:
    merged = merge([make_layer(data, lambda _path: Position("f", 1, 1), (), "x")])
    assert remove(merged, ("a",)) == ("a" in data)
    assert "a" not in merged.data
    assert not [path for path in merged.positions if path[0] == "a"]
    assert not remove(merged, ("b", "zz"))


def test_dotted_keys() -> None:
    assert split_dotted("ecn.400G.kmax") == ("ecn", "400G", "kmax")
    assert split_dotted("hosts.sysctl.net.ipv4.tcp_ecn") == ("hosts", "sysctl", "net.ipv4.tcp_ecn")
    assert split_dotted("hosts.sysctl") == ("hosts", "sysctl")
    with pytest.raises(ValueError, match="set twice"):
        make_layer({"a.b": 1, "a": {"b": 2}}, lambda _path: None, (), "x")
    with pytest.raises(ValueError, match="set below"):
        make_layer({"a": 1, "a.b": 2}, lambda _path: None, (), "x")
