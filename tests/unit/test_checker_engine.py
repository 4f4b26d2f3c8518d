"""Blame, causes, rejection and what is not judged, through the engine and on a fabric of a few nodes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.checker import Report, build, check, registry
from rdma_fabric.checker.blame import setting_key
from rdma_fabric.checker.scopes import AnyRule, FabricRule, Hit, LinkFacts, LinkRule, PortRule, PortView
from rdma_fabric.cli.common import load
from rdma_fabric.codec import load_observations
from rdma_fabric.findings import Finding, Place, Severity
from rdma_fabric.state import UNKNOWN, UNMANAGED, NotJudged
from tests.rules import harness

ROOT = Path(__file__).resolve().parents[2]
MTU_1500: Mapping[str, Any] = {"mtu": {"ip": 1500}}


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replaces all rules by the given ones."""

    def use(*rules: AnyRule) -> None:
        monkeypatch.setattr(registry, "rules", lambda: rules)

    return use


def _names(found: Iterable[Finding]) -> list[tuple[str, list[str]]]:
    return [(one.name, [str(place) for place in one.places]) for one in found if one.severity > Severity.NOTE]


def _report(folder: Path, **data: Any) -> Report:
    return harness.report(data, folder)


@pytest.mark.parametrize("folder", sorted((ROOT / "inventory").glob("*/fabric.yaml")), ids=str)
def test_example_fabrics_have_no_errors_and_no_warnings(folder: Path) -> None:
    report = check(build(load(folder.parent)))
    assert _names(report.findings) == []
    assert report.rejected == ()
    assert report.not_judged == ()


# ---------------------------------------------------------------- blame


def _pfc(*priorities: int) -> dict[str, Any]:
    on = {str(p): {"pfc_tx": p in priorities, "pfc_rx": p in priorities} for p in range(8)}
    return {"qos": {"classes": on}}


def test_the_end_that_differs_from_its_intent_is_blamed(tmp_path: Path) -> None:
    found = _report(tmp_path, observed={"leaf01": {"running": {"Ethernet2/1": _pfc(4)}}})
    assert _names(found.findings) == [("pfc-differs", ["leaf01 Ethernet2/1"])]
    assert found.rejected == ("leaf01",)
    assert set(found.affected) == {"gpu01", "gpu02", "gpu03", "gpu04", "spine01", "spine02"}
    assert found.affected["gpu02"] == ("leaf01",)


def test_the_odd_one_is_blamed_when_both_are_as_wished(tmp_path: Path) -> None:
    odd = 'overrides:\n  - {where: "gpu03", set: {pfc.enabled: false}}\n'
    found = _report(tmp_path, append={"fabric.yaml": odd})
    assert _names(found.findings) == [("pfc-differs", ["gpu03 eth0", "gpu03 eth1"])]


def test_both_ends_are_named_once_without_a_majority(tmp_path: Path) -> None:
    one_leaf = "a_node,a_port,b_node,b_port,length_m\nleaf01,Ethernet61/1,spine01,Ethernet1/1,40\n"
    lonely = {
        "hosts.yaml": {
            "spine[01-02]: {groups: [spine]}": "spine01: {groups: [spine]}",
            "leaf[01-02]: {groups: [leaf]}": "leaf01: {groups: [leaf]}",
            "gpu[01-04]: {groups: [gpu]}": "",
        },
        "cables.csv": {(harness.BASE / "cables.csv").read_text(encoding="utf-8"): one_leaf},
    }
    odd = 'overrides:\n  - {where: "spine01", set: {pfc.enabled: false}}\n'
    found = _report(tmp_path, edit=lonely, append={"fabric.yaml": odd})
    [one] = [one for one in found.findings if one.severity is Severity.ERROR]
    assert [str(place) for place in one.places] == ["leaf01 Ethernet61/1", "spine01 Ethernet1/1"]
    assert (one.found, one.wanted) == ("3 and none", "the same at both ends")
    assert found.rejected == ("leaf01", "spine01")


def test_equal_findings_at_many_places_are_one(tmp_path: Path) -> None:
    nodes = {f"gpu0{number}": {"running": {"eth0": MTU_1500}} for number in (1, 2, 4)}
    found = _report(tmp_path, observed=nodes)
    [one] = [one for one in found.findings if one.severity is Severity.ERROR]
    assert one.message == "gpu[01-02,04] eth0 cannot carry RDMA MTU 4096"
    assert one.peer.endswith("(and 2 more)")
    assert one.count == 3


def test_values_that_agree_in_meaning_are_no_difference(tmp_path: Path) -> None:
    table = [3 if dscp == 26 else 6 if dscp == 50 else 0 for dscp in range(64)]
    same = {"qos": {"dscp_to_priority": table, "trust": "dscp"}, "mtu": {"ip": 9214}}
    found = _report(tmp_path, observed={"leaf01": {"running": {"Ethernet1/1": same}}})
    assert _names(found.findings) == []


# ---------------------------------------------------------------- one cause


def _port_rule(code: str, hits: Mapping[str, Hit]) -> PortRule:
    def judge(port: PortView) -> Iterator[Hit]:
        if port.hw.name in hits:
            yield hits[port.hw.name]

    return PortRule(code, f"rule-{code[-1]}", Severity.ERROR, "0.1", "test", judge)


def _hit(setting: str, **more: Any) -> Hit:
    return Hit(setting, "a", "b", f"{{where}} {setting}", **more)


def test_of_two_hits_on_one_setting_the_higher_rank_is_told(only: Any, tmp_path: Path) -> None:
    only(
        _port_rule("FAB801", {"eth0": _hit("mtu.ip", rank=1)}),
        _port_rule("FAB802", {"eth0": _hit("mtu.ip", rank=2)}),
        _port_rule("FAB803", {"eth0": _hit("mtu.ip", rank=9, severity=Severity.WARNING)}),
    )
    assert {one.code for one in _report(tmp_path).findings} == {"FAB802"}


def test_what_another_finding_explains_is_dropped(only: Any, tmp_path: Path) -> None:
    only(
        _port_rule("FAB801", {"eth0": _hit("qos.trust", explains=("qos.classes.*.ecn",))}),
        _port_rule("FAB802", {"eth0": _hit("qos.classes.3.ecn.kmin"), "eth1": _hit("qos.classes.3.ecn")}),
    )
    found = _report(tmp_path).findings
    assert {(one.code, place.port) for one in found for place in one.places} == {
        ("FAB801", "eth0"),
        ("FAB802", "eth1"),
    }


def test_the_ends_of_a_cable_stand_and_fall_together(only: Any, tmp_path: Path) -> None:
    def judge(a: PortView, b: PortView, facts: LinkFacts) -> Iterator[Hit]:
        if {a.hw.name, b.hw.name} & {"eth0", "eth1"}:
            yield _hit("mtu.ip", end="both")

    link = LinkRule("FAB801", "rule-1", Severity.ERROR, "0.1", "test", judge)
    only(link, _port_rule("FAB802", {"eth0": _hit("mtu.ip", rank=5)}))
    found = _report(tmp_path).findings
    places = {(one.code, place.node, place.port) for one in found for place in one.places}
    assert {node for code, node, _ in places if code == "FAB801"} == {
        "gpu01", "gpu02", "gpu03", "gpu04", "leaf02",
    }  # fmt: skip
    assert {port for code, _, port in places if code == "FAB802"} == {"eth0"}


# ---------------------------------------------------------------- not judged


def test_a_value_that_was_not_read_is_reported_as_not_judged(only: Any, tmp_path: Path) -> None:
    def judge(port: PortView) -> Iterator[Hit]:
        yield _hit("mtu.ip")
        raise NotJudged(UNKNOWN if port.is_host else UNMANAGED, "IP MTU")

    only(PortRule("FAB801", "rule-1", Severity.ERROR, "0.1", "test", judge))
    report = _report(tmp_path)
    assert {reason for _, reason, _ in report.not_judged} == {"IP MTU is unknown"}
    assert report.findings, "what was said before counts"


def test_unknown_is_neither_equal_nor_different(tmp_path: Path) -> None:
    unread = {"mtu": {"ip": "@unknown"}, "qos": {"trust": "@unknown", "dscp_to_priority": "@unknown"}}
    report = _report(tmp_path, observed={"leaf01": {"running": {"Ethernet1/1": unread}}})
    assert _names(report.findings) == []
    assert {code for code, _, _ in report.not_judged} >= {"FAB021", "FAB022", "FAB025", "FAB026"}
    assert [one.name for one in report.findings if one.name == "not-read"] == ["not-read"]


# ---------------------------------------------------------------- rejection


def test_an_error_of_an_override_rejects_only_those_that_it_reaches(tmp_path: Path) -> None:
    wrong = 'overrides:\n  - {where: "leaf02", set: {ecn.400G.kmin: 9MB}}\n'
    report = _report(tmp_path, append={"fabric.yaml": wrong})
    assert _names(report.findings) == [("ecn-inverted", ["leaf02"])]
    assert report.rejected == ("leaf02",)


def test_a_waived_error_rejects_nobody(tmp_path: Path) -> None:
    waiver = "waivers:\n  - {rule: FAB021, node: gpu0*, until: 2026-06-30, reason: cable swap}\n"
    seen = {"gpu01": {"running": {"eth0": MTU_1500}}}
    report = _report(tmp_path, append={"fabric.yaml": waiver}, observed=seen)
    assert report.rejected == ()
    assert report.worst() is Severity.NOTE
    late = harness.report(
        {"append": {"fabric.yaml": waiver}, "observed": seen, "today": datetime.date(2026, 7, 1)}, tmp_path
    )
    assert late.rejected == ("gpu01",)
    assert {one.name for one in late.findings if one.severity is Severity.ERROR} == {
        "mtu-below-rdma",
        "waiver-expired",
    }


@pytest.mark.parametrize("pattern", ["gpu[01-02]", "gpu0[12]"])
def test_a_waiver_of_some_places_splits_the_finding(tmp_path: Path, pattern: str) -> None:
    waiver = f"waivers:\n  - {{rule: FAB021, node: '{pattern}', until: 2026-06-30, reason: cable swap}}\n"
    seen = {name: {"running": {"eth0": MTU_1500}} for name in ("gpu01", "gpu02", "gpu03")}
    report = _report(tmp_path, append={"fabric.yaml": waiver}, observed=seen)
    told = {bool(one.waived): one.message for one in report.findings if one.name == "mtu-below-rdma"}
    assert told == {
        True: "gpu[01-02] eth0 cannot carry RDMA MTU 4096",
        False: "gpu03 eth0 cannot carry RDMA MTU 4096",
    }
    assert report.rejected == ("gpu03",)


def test_a_finding_about_the_whole_fabric_has_no_place(only: Any, tmp_path: Path) -> None:
    only(FabricRule("FAB801", "rule-1", Severity.ERROR, "0.1", "test", lambda judged: [_hit("x")], plan=True))
    [one] = _report(tmp_path).findings
    assert one.places == () and one.count == 1
    assert one.message == "the fabric x"


def test_settings_in_notes_only_while_a_node_carries_no_workload(tmp_path: Path) -> None:
    planned = {
        "hosts.yaml": {
            "leaf[01-02]: {groups: [leaf]}": "leaf[01-02]: {groups: [leaf], data: {state: planned}}"
        }
    }
    blank = {"qos": {"trust": "port", "dscp_to_priority": [0] * 64} | _pfc()["qos"], **MTU_1500}
    ports = {f"Ethernet{number}/1": blank for number in (1, 2, 3, 4, 61, 62)}
    report = _report(tmp_path, edit=planned, observed={"leaf01": {"running": ports}})
    assert _names(report.findings) == []
    assert report.rejected == ()
    assert {place.node for one in report.findings for place in one.places if one.code == "FAB023"} <= {
        "leaf01"
    }


def test_an_error_of_the_plan_stays_one_on_a_planned_node(tmp_path: Path) -> None:
    planned = {
        "hosts.yaml": {"gpu[01-04]: {groups: [gpu]}": "gpu[01-04]: {groups: [gpu], data: {state: planned}}"}
    }
    small = {"fabric.yaml": {"host: 9000": "host: 1500"}}
    report = _report(tmp_path, edit=planned | small)
    assert {one.name for one in report.findings if one.severity is Severity.ERROR} == {"mtu-below-rdma"}


# ---------------------------------------------------------------- a headroom written by hand


_HEADROOM = {
    "fabric.yaml": """\
version: 1
name: headroom
mtu: {switch: 9100}
classes:
  roce: {priority: 3, dscp: [26], lossless: true}
  default: {priority: 0, dscp: rest}
ecn: {any: {kmin: 150KB, kmax: 1500KB}}
pfc: {headroom: SIZE}
""",
    "hosts.yaml": """\
leaf[01-02]:
  platform: sonic
  data:
    {role: leaf, model: ACS-SN5600, version: "202411", ports: {Ethernet0: {speed: 400G, network: compute}}}
""",
    "cables.csv": "a_node,a_port,b_node,b_port,length_m\nleaf01,Ethernet0,leaf02,Ethernet0,40\n",
}


@pytest.mark.parametrize(
    ("model", "severity"), [("AS9516-32D", Severity.WARNING), ("SN9999", Severity.NOTE), ("SN5600", None)]
)
def test_without_a_shipped_value_the_formula_decides(
    model: str, severity: Severity | None, tmp_path: Path
) -> None:
    """With the sender's reaction time 96476 bytes at 400G and 40 m; without the ASIC only a note."""
    size = "96475B" if severity else "110KB"
    for name, text in _HEADROOM.items():
        text = text.replace("SIZE", size).replace("ACS-SN5600", model)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = [one for one in check(build(load(tmp_path))).findings if one.code == "FAB042"]
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all("at least 96476 bytes" in one.wanted for one in found)


@pytest.mark.parametrize(
    ("size", "severity", "bound"),
    [
        # Two largest frames and the cable: 9216 + 4192 + 2 * 5 ns/m * 40 m * 400 Gbit/s / 8.
        ("33407B", Severity.ERROR, 33408),
        # The least that is shipped for Spectrum-4 at 400G and 40 m.
        ("33408B", Severity.WARNING, 104448),
        ("104447B", Severity.WARNING, 104448),
        ("104448B", None, 0),
        ("auto", None, 0),
    ],
)
def test_bounds_of_a_headroom(size: str, severity: Severity | None, bound: int, tmp_path: Path) -> None:
    for name, text in _HEADROOM.items():
        (tmp_path / name).write_text(text.replace("SIZE", size), encoding="utf-8")
    found = [one for one in check(build(load(tmp_path))).findings if one.code == "FAB042"]
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all(one.wanted.startswith(f"at least {bound} bytes") for one in found)


# ---------------------------------------------------------------- small parts


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("qos.classes.3.pfc_tx", "qos.pfc"),
        ("qos.classes.3.ecn.kmin", "qos.classes.3.ecn"),
        ("qos.classes.3.share.cap", "qos.classes.3.share"),
        ("mtu.ip", "mtu.ip"),
        ("marking.parameters.np_cnp_dscp", "marking.parameters.np_cnp_dscp"),
        ("speed", ""),
        ("sysctl.net.ipv4.tcp_ecn", ""),
    ],
)
def test_setting_keys(setting: str, key: str) -> None:
    assert setting_key(setting) == key


def test_a_report_is_the_same_every_time(tmp_path: Path) -> None:
    nodes = {
        "leaf01": {"running": {"Ethernet1/1": {**_pfc(4), **MTU_1500}}},
        "gpu03": {"running": {"eth1": MTU_1500}},
    }
    first = _report(tmp_path, observed=nodes)
    again = _report(tmp_path, observed=dict(reversed(nodes.items())))
    assert first.findings == again.findings
    assert [one.severity for one in first.findings] == sorted(
        (one.severity for one in first.findings), reverse=True
    )


def test_equal_observations_are_judged_once(tmp_path: Path) -> None:
    harness.report({}, tmp_path)
    nodes = {name: harness.observation({"running": {"eth0": MTU_1500}}) for name in ("gpu01", "gpu02")}
    seen = load_observations(json.dumps({"version": 1, "nodes": nodes}), "observed.json")
    judged = build(load(tmp_path), seen)
    assert judged.ports["gpu01"]["eth0"] is judged.ports["gpu02"]["eth0"]
    assert judged.ports["gpu03"] is judged.ports["gpu04"]
    assert Place("gpu01", "eth0") != Place("gpu02", "eth0")
