"""Cumulus Linux: read-back, realize, lines and steps. The circle with the simulator is in tests/lab."""
# ruff: noqa: E501 (device lines are quoted whole)

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware, asic_of
from rdma_fabric.platforms._contract import Change, Disturbs, Send
from rdma_fabric.platforms._cumulus_realize import intervals
from rdma_fabric.platforms._cumulus_tree import gather, milliseconds, read_config, spread, whole
from rdma_fabric.platforms._shared import expand
from rdma_fabric.platforms.cumulus import PLATFORM, TEMPLATE
from rdma_fabric.state import (
    MTU_MAX,
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Absent,
    Amount,
    ClassState,
    Ecn,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    WatchdogTimers,
    differences,
    known,
)
from rdma_fabric.templating import render_lines

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "cumulus"
FIXTURES = sorted(OBSERVE.glob("*.yaml"))
MODEL = "SN5600"
CONFIG = "nv config show -o json --color off"
STARTUP = "nv config show -r startup -o json --color off"
NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR

# ---------------------------------------------------------------- small builders


def hardware(*ports: str, model: str = MODEL, version: str = "5.14", **options: str) -> Hardware:
    return Hardware(
        ("cumulus",),
        model=model,
        version=version,
        ports=tuple(PortHardware(name) for name in ports or ("swp1", "swp2")),
        asic=asic_of(model),
        options=tuple(sorted(options.items())),
    )


def node(one: PortSettings, *names: str) -> NodeState:
    return NodeState(ports=tuple(PortState(name, settings=one) for name in names or ("swp1", "swp2")))


def two(first: PortSettings, second: PortSettings) -> NodeState:
    return NodeState(ports=(PortState("swp1", settings=first), PortState("swp2", settings=second)))


def dscp_map(default: int, **classes: int) -> tuple[int, ...]:
    """dscp_map(0, d26=3): everything to 0 but 26 to 3."""
    special = {int(name[1:]): value for name, value in classes.items()}
    return tuple(special.get(dscp, default) for dscp in range(64))


RAMP = Ecn(Amount(150_000), Amount(1_500_000), 100.0)


def roce(lossless: tuple[int, ...] = (3,), **qos: Any) -> PortSettings:
    classes = tuple(
        ClassState(
            pfc_tx=p in lossless,
            pfc_rx=p in lossless,
            watchdog=p in lossless,
            ecn=RAMP if p in lossless else None if p in (0, 6) else UNMANAGED,
            headroom=None,
            share=Share("strict") if p == 6 else Share("dwrr", 50) if p in (0, 3) else UNMANAGED,
        )
        for p in range(8)
    )
    values: dict[str, Any] = {
        "trust": "dscp",
        "dscp_to_priority": dscp_map(0, d26=3, d48=6),
        "classes": classes,
        "watchdog": WatchdogTimers(200, UNMANAGED, UNMANAGED, "drop"),
        "dcbx": "none",
        "global_pause": False,
        "cable_m": 15,
    }
    return PortSettings(mtu=Mtu(ip=MTU_MAX), qos=QosState(**(values | qos)))


def with_class(one: PortSettings, priority: int, **values: Any) -> PortSettings:
    classes = list(one.qos.classes)
    classes[priority] = replace(classes[priority], **values)
    return replace(one, qos=replace(one.qos, classes=tuple(classes)))


def realized(one: PortSettings, hw: Hardware, *names: str) -> NodeState:
    return PLATFORM.realize(node(one, *names), hw).state


# ---------------------------------------------------------------- read-back


def plain(value: Any) -> Any:
    """A field as the fixtures write it."""
    if isinstance(value, Absent):
        return f"<{value.value}>"
    if isinstance(value, Amount):
        return f"{value.value} {value.unit}"
    if isinstance(value, Ecn):
        low, high = value.kmin, value.kmax
        return f"{low.value} {low.unit} to {high.value} {high.unit}, {value.pmax:g}%"
    if isinstance(value, Share):
        return "strict" if value.scheduler == "strict" else f"dwrr {value.weight}"
    return value


def same(found: Any, wanted: Any) -> bool:
    if isinstance(found, tuple):  # a map: "0-25:0 26:3"
        groups = [group.split(":") for group in str(wanted).split()]
        return {point: int(to) for points, to in groups for point in expand(points)} == dict(enumerate(found))
    return bool(plain(found) == wanted)


def field(port: PortState, path: str) -> Any:
    start: Any = port if path == "speed_gbps" else port.settings
    return reduce(
        lambda value, name: value[int(name)] if name.isdigit() else getattr(value, name),
        path.split("."),
        start,
    )


def wrong(state: NodeState | None, expect: Mapping[str, Mapping[str, Any]]) -> list[str]:
    assert state is not None
    found = []
    for names, fields in expect.items():
        for name in names.split():
            port = state.port(name)
            assert port is not None, name
            found += [
                f"{name} {path}: {plain(field(port, path))!r}, not {value!r}"
                for path, value in fields.items()
                if not same(field(port, path), value)
            ]
    return found


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_read_back(path: Path) -> None:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    hw = hardware(*data["ports"], model=data["model"], version="")
    assert set(data["answers"]) <= set(PLATFORM.questions(hw))
    seen = PLATFORM.parse(data["answers"], hw)
    assert wrong(seen.running, data["expect"]) == []
    assert seen.operational is data["operational"]
    for note in data["notes"]:
        assert any(note in found for found in seen.notes), (note, seen.notes)
    assert [one for one in seen.notes if not any(note in one for note in data["notes"])] == []
    owners = seen.running.system.owners
    assert ([] if isinstance(owners, Absent) else list(owners)) == data.get("owners", [])
    if "facts" in data:
        assert dict(seen.facts) == data["facts"]
    assert [list(one) for one in seen.neighbours] == data.get("neighbours", [])
    if "stored" in data:
        assert wrong(seen.stored, data["stored"]) == []
    else:
        assert seen.stored is None


@pytest.mark.parametrize(
    "text", ["", "  \n", "Error: Invalid Command: config show", "[]", "{]", '["set"]', "3"]
)
def test_nothing_usable_is_unknown(text: str) -> None:
    hw = hardware()
    seen = PLATFORM.parse({CONFIG: text}, hw)
    unknown = {"mtu.ip": "<unknown>", "qos.classes.3.pfc_tx": "<unknown>"}
    assert wrong(seen.running, {"swp1 swp2": unknown}) == []
    assert seen.notes
    change = PLATFORM.change(seen, realized(roce(), hw), hw)
    assert change.empty and change.blocked and not change.differences and not change.lines


@given(st.dictionaries(st.sampled_from(PLATFORM.questions(hardware())), st.text(max_size=120)))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_parse_never_raises(answers: dict[str, str]) -> None:
    PLATFORM.parse(answers, hardware())


_WORDS = st.sampled_from(
    [
        "set",
        "header",
        "version",
        "qos",
        "interface",
        "swp1",
        "swp1-2",
        "link",
        "mtu",
        "mapping",
        "pfc",
        "congestion-control",
        "egress-scheduler",
        "egress-queue-mapping",
        "traffic-class",
        "switch-priority",
        "dscp",
        "pcp",
        "trust",
        "roce",
        "enable",
        "state",
        "mode",
        "profile",
        "default-global",
        "fabric-1",
        "pfc-watchdog",
        "polling-interval",
        "traffic-pool",
        "memory-percent",
        "link-pause",
        "lldp",
        "neighbor",
        "bw-percent",
        "3",
        "0-7",
        "on",
        "off",
        "lossless",
        "l3",
    ]
)
_LEAVES = st.one_of(_WORDS, st.integers(-5, 10_000), st.none(), st.booleans(), st.floats(allow_nan=False))
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.dictionaries(_WORDS, inner), st.lists(inner, max_size=2)),
    max_leaves=30,
)


@given(_TREES, _TREES)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_parse_survives_any_tree(config: Any, shown: Any) -> None:
    hw = hardware()
    answers = {CONFIG: json.dumps([{"set": config}]), STARTUP: json.dumps(config)}
    answers |= {question: json.dumps(shown) for question in PLATFORM.questions(hw)[2:]}
    seen = PLATFORM.parse(answers, hw)
    PLATFORM.change(seen, realized(roce(), hw), hw)


@given(
    _TREES,
    st.sampled_from(
        [
            "mapping",
            "pfc",
            "congestion-control",
            "egress-scheduler",
            "egress-queue-mapping",
            "link-pause",
            "pfc-watchdog",
            "traffic-pool",
            "roce",
        ]
    ),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_parse_survives_any_object(tree: Any, kind: str) -> None:
    hw = hardware()
    config = {"set": {"interface": {"swp1": {"qos": {kind: tree}}}, "qos": {kind: {"default-global": tree}}}}
    seen = PLATFORM.parse(
        {CONFIG: json.dumps(config), f"nv show qos {kind} -o json": json.dumps({"default-global": tree})}, hw
    )
    PLATFORM.change(seen, realized(roce(), hw), hw)


def config_of(*commands: str, version: str = "5.14.0") -> str:
    """`nv config show -o json` of a switch with swp1-8 and these `nv set` lines."""
    tree: dict[str, Any] = {"interface": {"swp1-8": {"type": "swp"}}}
    for command in commands:
        words = command.removeprefix("nv set ").split()
        below = tree
        for word in words[:-2]:
            below = below.setdefault(word, {})
        value: Any = int(words[-1]) if words[-1].isdigit() else words[-1]
        if words[-2] == "switch-priority" and "pfc" in words:
            below.setdefault(words[-2], {})[words[-1]] = {}
        else:
            below[words[-2]] = value
    return json.dumps([{"header": {"version": f"Cumulus Linux {version}"}}, {"set": tree}])


def seen_config(text: str, hw: Hardware, stored: str = "") -> Observation:
    return PLATFORM.parse({CONFIG: text, STARTUP: stored}, hw)


def test_evidence_follows_own_settings_only() -> None:
    hw = hardware()
    one = seen_config(config_of(), hw)
    foreign = seen_config(
        config_of("nv set system hostname leaf07", "nv set interface swp3 link mtu 4000"), hw
    )
    moved = seen_config(config_of("nv set interface swp1 link mtu 9000"), hw)
    shared = seen_config(config_of("nv set interface swp7 qos pfc profile fabric-1"), hw)
    assert one.evidence == foreign.evidence
    assert len({one.evidence, moved.evidence, shared.evidence}) == 3


def test_secrets_stay_in_the_answer() -> None:
    text = config_of(
        "nv set system aaa user cumulus hashed-password $6$planted$hash",
        "nv set qos roce mode lossless",
        "nv set qos pfc default-global cable-length 7",
    )
    seen = seen_config(text, hardware(), text)
    assert "planted" not in repr(seen)


def test_names_are_spread_and_gathered() -> None:
    assert spread("swp1-2,5-6") == ("swp1", "swp2", "swp5", "swp6")
    assert spread("eth0,swp19-22") == ("eth0", "swp19", "swp20", "swp21", "swp22")
    assert spread("swp1s0-3,bond1") == ("swp1s0", "swp1s1", "swp1s2", "swp1s3", "bond1")
    assert spread("br_default") == ("br_default",)
    assert spread("vlan10-4094000") == ("vlan10-4094000",)
    assert spread("peerlink.4094") == ("peerlink.4094",)
    assert spread("") == ()
    assert (
        gather(("swp10", "swp2", "swp1", "swp3", "bond1", "swp1s1", "swp1s0", "swp1.100"))
        == "bond1,swp1-3,swp10,swp1s0-1,swp1.100"
    )


@given(
    st.sets(
        st.sampled_from(
            [f"swp{n}" for n in range(20)]
            + [f"swp1s{n}" for n in range(9)]
            + ["eth0", "vlan10", "br_default", "swp1.7"]
        )
    )
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_gathered_names_spread_to_themselves(names: set[str]) -> None:
    assert sorted(spread(gather(names))) == sorted(names)


def test_numbers_of_the_device() -> None:
    assert [
        whole(value) for value in (9216, "9216", "150000 B", 50.0, "146.48 KB", "1.43 MB", True, None)
    ] == [9216, 9216, 150000, 50, None, None, None, None]
    assert [milliseconds(value) for value in (100, "0:00:00.100000", "0:00:05", "200 ms", "soon")] == [
        100,
        100,
        5000,
        200,
        None,
    ]


def test_bare_tree_is_read_too() -> None:
    assert read_config('{"interface": {"swp1": {}}}') == ({}, {"interface": {"swp1": {}}})
    assert read_config('[{"header": {"version": "x"}}]') == ({"version": "x"}, {})


# ---------------------------------------------------------------- realize

REALIZE: list[tuple[str, PortSettings, dict[str, Any], list[tuple[Severity, str]]]] = [
    ("max", roce(), {"mtu.ip": 9216, "qos.cable_m": 15}, []),
    ("mtu above", replace(roce(), mtu=Mtu(9300)), {"mtu.ip": 9216}, [(NOTE, "mtu.ip")]),
    ("mtu below", replace(roce(), mtu=Mtu(500)), {"mtu.ip": 552}, [(NOTE, "mtu.ip")]),
    ("mtu plain", replace(roce(), mtu=Mtu(4200)), {"mtu.ip": 4200}, []),
    ("frame", replace(roce(), mtu=Mtu(frame=9216)), {"mtu.frame": "<not applicable>"}, [(NOTE, "mtu.frame")]),
    ("queue of a class without marking", with_class(roce(), 5, ecn=None), {"qos.classes.5.queue": 5}, []),
    ("queues", roce(), {f"qos.classes.{p}.queue": q for p, q in ((0, 0), (3, 3), (6, 6), (5, "<unmanaged>"))}, []),
    ("recorded queues", with_class(roce(), 6, queue=0, share=Share("dwrr", 50), ecn=None), {"qos.classes.6.queue": 0}, []),
    ("trust both", roce(trust="both"), {"qos.trust": "both"}, []),
    ("trust port", roce(trust="port"), {"qos.trust": "port"}, []),
    ("dcbx ieee", roce(dcbx="ieee"), {"qos.dcbx": "ieee"}, []),
    ("dcbx firmware", roce(dcbx="firmware"), {"qos.dcbx": "none"}, [(WARNING, "qos.dcbx")]),
    ("dcbx cee", roce(dcbx="cee"), {"qos.dcbx": "none"}, [(WARNING, "qos.dcbx")]),
    ("receive only", with_class(roce(), 3, pfc_tx=False), {"qos.classes.3.pfc_tx": False, "qos.classes.3.pfc_rx": True}, []),
    (
        "two directions",
        with_class(roce((3, 4)), 4, pfc_tx=False, share=Share("strict")),
        {"qos.classes.4.pfc_tx": True},
        [(ERROR, "qos.classes.4.pfc_tx"), (NOTE, "qos.pfc")],
    ),
    ("two lossless", with_class(roce((3, 4)), 4, share=Share("strict")), {"qos.classes.4.watchdog": True}, [(NOTE, "qos.pfc")]),
    ("lossless without a share", roce((3, 4)), {"qos.classes.4.share": "<unmanaged>"}, [(NOTE, "qos.pfc"), (WARNING, "qos.classes.4.share")]),
    ("control without a share", roce(dscp_to_priority=dscp_map(0, d26=3, d56=7)), {"qos.classes.7.share": "<unmanaged>"}, []),
    (
        "headroom",
        with_class(roce(), 3, headroom=Amount(50000)),
        {"qos.classes.3.headroom": "<not applicable>"},
        [(ERROR, "qos.classes.3.headroom")],
    ),
    (
        "percent thresholds",
        with_class(roce(), 3, ecn=Ecn(Amount(10, "percent"), Amount(20, "percent"))),
        {"qos.classes.3.ecn": "<not applicable>"},
        [(ERROR, "qos.classes.3.ecn.kmin"), (ERROR, "qos.classes.3.ecn.kmax")],
    ),
    ("cells", with_class(roce(), 3, ecn=Ecn(Amount(1000, "cells"), Amount(2000, "segments"))), {"qos.classes.3.ecn": "192000 bytes to 384000 bytes, 100%"}, []),
    ("step", with_class(roce(), 3, ecn=Ecn(Amount(1000), Amount(1000))), {"qos.classes.3.ecn": "1000 bytes to 1001 bytes, 100%"}, [(NOTE, "qos.classes.3.ecn.kmax")]),
    ("inverted", with_class(roce(), 3, ecn=Ecn(Amount(2000), Amount(1000))), {"qos.classes.3.ecn": "<not applicable>"}, [(ERROR, "qos.classes.3.ecn.kmin")]),
    ("probability", with_class(roce(), 3, ecn=Ecn(Amount(1), Amount(2), 0.2)), {"qos.classes.3.ecn": "1 bytes to 2 bytes, 1%"}, [(NOTE, "qos.classes.3.ecn.pmax")]),
    (
        "colours",
        with_class(roce(), 3, ecn=Ecn(Amount(1), Amount(2), 5.0, (("yellow", Amount(1), Amount(2), 5.0),))),
        {"qos.classes.3.ecn.others": "<not applicable>"},
        [(NOTE, "qos.classes.3.ecn.others")],
    ),
    ("too large", with_class(roce(), 3, ecn=Ecn(Amount(1), Amount(2**32))), {"qos.classes.3.ecn": "<not applicable>"}, [(ERROR, "qos.classes.3.ecn.kmax")]),
    ("default share", with_class(with_class(roce(), 3, share=None), 0, share=None), {"qos.classes.3.share": "dwrr 13", "qos.classes.0.share": "dwrr 12"}, []),
    ("rate cap", with_class(roce(), 6, share=Share("strict", 0, 40)), {"qos.classes.6.share.cap": "<not applicable>"}, [(WARNING, "qos.classes.6.share.cap")]),
    ("weights", with_class(with_class(roce(), 3, share=Share("dwrr", 300)), 0, share=Share("dwrr", 100)), {"qos.classes.3.share": "dwrr 75", "qos.classes.0.share": "dwrr 25"}, [(NOTE, "qos.share")]),
    ("tiny weights", with_class(with_class(roce(), 3, share=Share("dwrr", 1000)), 0, share=Share("dwrr", 1)), {"qos.classes.3.share": "dwrr 99", "qos.classes.0.share": "dwrr 1"}, [(NOTE, "qos.share"), ]),
    ("cable", roce(cable_m=200_000), {"qos.cable_m": 100_000}, [(NOTE, "qos.cable_m")]),
    ("cable without pfc", roce(()), {"qos.cable_m": "<not applicable>"}, []),
    ("pause and pfc", roce(global_pause=True), {"qos.global_pause": True}, [(ERROR, "qos.global_pause")]),
    ("half guarded", with_class(with_class(roce((3, 4)), 4, share=Share("strict")), 4, watchdog=False), {"qos.classes.4.watchdog": True}, [(NOTE, "qos.pfc"), (NOTE, "qos.classes.4.watchdog")]),
    ("guard without pfc", with_class(roce(), 5, watchdog=True), {"qos.classes.5.watchdog": False}, [(NOTE, "qos.classes.5.watchdog")]),
    (
        "timers",
        roce(watchdog=WatchdogTimers(250, 400, 120, "forward")),
        {"qos.watchdog.detect_ms": 240, "qos.watchdog.restore_ms": "<not applicable>", "qos.watchdog.poll_ms": 120, "qos.watchdog.action": "drop"},
        [(NOTE, "qos.watchdog.detect_ms"), (NOTE, "qos.watchdog.restore_ms"), (NOTE, "qos.watchdog.action")],
    ),
    ("poll range", roce(watchdog=WatchdogTimers(poll_ms=50)), {"qos.watchdog.poll_ms": 100}, [(NOTE, "qos.watchdog.poll_ms")]),
    ("short detection", roce(watchdog=WatchdogTimers(40)), {"qos.watchdog.detect_ms": 100}, [(NOTE, "qos.watchdog.detect_ms")]),
    ("odd detection", roce(watchdog=WatchdogTimers(250)), {"qos.watchdog.detect_ms": 250, "qos.watchdog.poll_ms": "<unmanaged>"}, []),
    ("one queue, two ramps", with_class(with_class(roce(), 6, share=UNMANAGED), 6, queue=3), {"qos.classes.6.ecn": "150000 bytes to 1500000 bytes, 100%"}, [(ERROR, "qos.classes.6.ecn")]),
    ("nothing wished", PortSettings(), {"mtu.ip": "<unmanaged>", "qos.trust": "<unmanaged>", "qos.classes.0.queue": "<unmanaged>"}, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wish", "expect", "faults"), [row[1:] for row in REALIZE], ids=[row[0] for row in REALIZE]
)
def test_realize(wish: PortSettings, expect: dict[str, Any], faults: list[tuple[Severity, str]]) -> None:
    made = PLATFORM.realize(node(wish, "swp1"), hardware())
    assert wrong(made.state, {"swp1": expect}) == []
    assert [(fault.severity, fault.setting) for fault in made.faults] == faults
    assert all(fault.port == "swp1" and fault.reason for fault in made.faults)


def test_bonds_and_vlans_carry_an_mtu_only() -> None:
    ports = (
        PortHardware("swp1"),
        PortHardware("bond1", kind="bond", members=("swp1",)),
        PortHardware("bond2", kind="bond", members=("swp8",)),
        PortHardware("vlan100", kind="svi", vlan=100),
    )
    hw = replace(hardware(), ports=ports)
    made = PLATFORM.realize(node(roce(), "swp1", "bond1", "bond2", "vlan100"), hw)
    nothing = {
        "mtu.ip": 9216,
        "qos.trust": "<not applicable>",
        "qos.classes.3.pfc_tx": "<not applicable>",
        "qos.classes.5.share": "<unmanaged>",
    }
    assert wrong(made.state, {"bond1 bond2 vlan100": nothing, "swp1": {"qos.trust": "dscp"}}) == []
    assert [(f.severity, f.port, f.setting) for f in made.faults] == [(WARNING, "bond2", "qos")]
    assert PLATFORM.realize(node(PortSettings(mtu=Mtu(9000)), "bond2"), hw).faults == ()
    seen = seen_config(config_of("nv set interface bond1 link mtu 9000"), hw)
    assert wrong(seen.running, {"bond1": {"mtu.ip": 9000, "qos.trust": "<not applicable>"}}) == []
    change = PLATFORM.change(seen, made.state, hw)
    assert "nv set interface bond1 link mtu 9216" in change.lines
    assert not [line for line in change.lines if "bond" in line and "mtu" not in line]


@pytest.mark.parametrize(
    ("version", "faults"),
    [("5.4", [(ERROR, "qos")]), ("5.5", [(WARNING, "qos.watchdog")]), ("5.6", []), ("", [])],
)
def test_versions(version: str, faults: list[tuple[Severity, str]]) -> None:
    made = PLATFORM.realize(node(roce(), "swp1"), hardware("swp1", version=version))
    assert [(f.severity, f.setting) for f in made.faults][: len(faults) or 1] == faults
    if version == "5.5":
        none = {"qos.classes.3.watchdog": False, "qos.watchdog.detect_ms": "<not applicable>"}
        assert wrong(made.state, {"swp1": none}) == []


@pytest.mark.parametrize(
    ("second", "setting", "wanted"),
    [
        (roce(watchdog=WatchdogTimers(300, UNMANAGED, UNMANAGED, "drop")), "qos.watchdog.detect_ms", "200 on swp1; 300 on swp2"),
        (with_class(roce(), 6, queue=5), "qos.classes.6.queue", "6 on swp1; 5 on swp2"),
    ],
)  # fmt: skip
def test_two_wishes_for_one_node_setting_are_an_error(
    second: PortSettings, setting: str, wanted: str
) -> None:
    made = PLATFORM.realize(two(roce(), second), hardware())
    assert [(f.severity, f.port, f.setting, f.wanted) for f in made.faults] == [(ERROR, "", setting, wanted)]
    assert setting in PLATFORM.traits.globals
    assert PLATFORM.realize(made.state, hardware()).faults == ()


def test_maps_pfc_ramps_and_shares_may_differ_between_ports() -> None:
    other = with_class(
        roce((4,), trust="both", cable_m=300, dscp_to_priority=dscp_map(0, d26=4)), 4, share=Share("dwrr", 50)
    )
    other = with_class(other, 3, share=UNMANAGED)
    assert PLATFORM.realize(two(roce(), other), hardware()).faults == ()


def test_a_polling_interval_of_one_port_divides_the_detection_of_another() -> None:
    wish = two(roce(watchdog=WatchdogTimers(250)), roce(watchdog=WatchdogTimers(poll_ms=100)))
    made = PLATFORM.realize(wish, hardware())
    assert wrong(made.state, {"swp1": {"qos.watchdog.detect_ms": 300}}) == []
    assert [(f.severity, f.setting, f.used) for f in made.faults] == [
        (NOTE, "qos.watchdog.detect_ms", "300 ms")
    ]


@pytest.mark.parametrize(
    ("detect", "poll", "found"),
    [
        (200, UNMANAGED, (100, 2)), (300, UNMANAGED, (100, 3)), (250, UNMANAGED, (125, 2)),
        (130, UNMANAGED, (130, 1)), (211, UNMANAGED, (211, 1)), (921, UNMANAGED, (307, 3)), (10, UNMANAGED, (100, 1)),
        (600, 200, (200, 3)), (650, 200, (200, 3)), (10_000_000, UNMANAGED, (5000, 1000)),
        (500_000, UNMANAGED, (500, 1000)),
    ],
)  # fmt: skip
def test_intervals(detect: int, poll: Any, found: tuple[int, int]) -> None:
    assert intervals(detect, poll) == found


# ---------------------------------------------------------------- any wish


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(UNMANAGED), values)


AMOUNTS = st.builds(Amount, st.integers(0, 2**33), st.sampled_from(["bytes", "bytes", "cells", "percent"]))
RAMPS = st.builds(Ecn, AMOUNTS, AMOUNTS, st.floats(0, 100, allow_nan=False))
SHARES = st.one_of(
    st.just(Share("strict")),
    st.builds(Share, st.just("dwrr"), st.integers(0, 120), maybe(st.one_of(st.none(), st.integers(1, 100)))),
)
CLASSES = st.builds(
    ClassState,
    pfc_tx=maybe(st.booleans()),
    pfc_rx=maybe(st.booleans()),
    watchdog=maybe(st.booleans()),
    ecn=maybe(st.one_of(st.none(), RAMPS)),
    headroom=maybe(st.one_of(st.none(), st.just(Amount(9)))),
    share=maybe(st.one_of(st.none(), SHARES)),
)
WISHES = st.builds(
    PortSettings,
    mtu=st.builds(Mtu, ip=maybe(st.one_of(st.just(MTU_MAX), st.integers(60, 9300)))),
    qos=st.builds(
        QosState,
        trust=maybe(st.sampled_from(["dscp", "pcp", "both", "port"])),
        dscp_to_priority=maybe(st.tuples(*[st.integers(0, 7)] * 64)),
        pcp_to_priority=maybe(st.tuples(*[st.integers(0, 7)] * 8)),
        classes=st.tuples(*[CLASSES] * 8),
        watchdog=st.builds(
            WatchdogTimers,
            detect_ms=maybe(st.integers(0, 70_000)),
            restore_ms=maybe(st.integers(0, 70_000)),
            poll_ms=maybe(st.integers(0, 6_000)),
            action=maybe(st.sampled_from(["drop", "forward", "alert"])),
        ),
        dcbx=maybe(st.sampled_from(["none", "ieee", "cee", "firmware"])),
        global_pause=maybe(st.booleans()),
        cable_m=maybe(st.integers(1, 300)),
    ),
)
NODES = st.builds(two, WISHES, WISHES)


@given(NODES)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_realize_is_idempotent(wish: NodeState) -> None:
    once = PLATFORM.realize(wish, hardware())
    again = PLATFORM.realize(once.state, hardware())
    assert again.state == once.state
    assert set(again.faults) <= set(once.faults)


# ---------------------------------------------------------------- change

ALL_BUT = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63"
FIRST = f"""\
nv set qos mapping fabric-1 trust l3
nv set qos mapping fabric-1 dscp {ALL_BUT} switch-priority 0
nv set qos mapping fabric-1 dscp 26 switch-priority 3
nv set qos mapping fabric-1 dscp 48 switch-priority 6
nv set qos traffic-pool default-lossless memory-percent 50
nv set qos traffic-pool default-lossy memory-percent 50
nv set qos pfc fabric-1 switch-priority 3
nv set qos pfc fabric-1 tx enable
nv set qos pfc fabric-1 rx enable
nv set qos pfc fabric-1 cable-length 15
nv set qos congestion-control fabric-1 traffic-class 3 min-threshold 150000
nv set qos congestion-control fabric-1 traffic-class 3 max-threshold 1500000
nv set qos congestion-control fabric-1 traffic-class 3 probability 100
nv set qos egress-scheduler fabric-1 traffic-class 0,3 mode dwrr
nv set qos egress-scheduler fabric-1 traffic-class 0,3 bw-percent 50
nv set qos egress-scheduler fabric-1 traffic-class 6,7 mode strict
nv set qos pfc-watchdog robustness 2
nv set interface swp1-2 qos mapping profile fabric-1
nv set interface swp1-2 qos pfc profile fabric-1
nv set interface swp1-2 qos congestion-control profile fabric-1
nv set interface swp1-2 qos egress-scheduler profile fabric-1
nv set interface swp1-2 qos pfc-watchdog state enable
"""
AT_INTENT = tuple(FIRST.splitlines())


def at_intent(*edits: tuple[str, str], more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The lines of a switch at the intent, with edits."""
    text = FIRST
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return (*text.splitlines(), *more)


CHANGES: list[tuple[str, tuple[str, ...], NodeState, str, tuple[str, ...]]] = [
    ("first", (), node(roce()), FIRST, ()),
    ("none", AT_INTENT, node(roce()), "", ()),
    ("mtu", at_intent(more=("nv set interface swp2 link mtu 1500",)), node(roce()), "nv set interface swp2 link mtu 9216\n", ()),
    ("trust", at_intent(("trust l3", "trust both")), node(roce()), "nv set qos mapping fabric-1 trust l3\n", ()),
    ("trust port", AT_INTENT, node(roce(trust="port")), "nv set qos mapping fabric-1 trust port\nnv set qos mapping fabric-1 port-default-sp 0\n", ()),
    ("one dscp", AT_INTENT, node(roce(dscp_to_priority=dscp_map(0, d26=3, d24=3, d48=6))), "nv set qos mapping fabric-1 dscp 24 switch-priority 3\n", ()),
    ("pcp", AT_INTENT, node(roce(pcp_to_priority=(0, 0, 2, 3, 4, 5, 6, 7))), "nv set qos mapping fabric-1 pcp 1 switch-priority 0\n", ()),
    (
        "one port trusts pcp: a profile of its own",
        AT_INTENT,
        two(roce(trust="pcp", pcp_to_priority=(0, 0, 0, 3, 0, 0, 6, 0)), roce()),
        "nv set qos mapping fabric-2 trust l2\n"
        f"nv set qos mapping fabric-2 dscp {ALL_BUT} switch-priority 0\n"
        "nv set qos mapping fabric-2 dscp 26 switch-priority 3\n"
        "nv set qos mapping fabric-2 dscp 48 switch-priority 6\n"
        "nv set qos mapping fabric-2 pcp 0,1,2,4,5,7 switch-priority 0\n"
        "nv set qos mapping fabric-2 pcp 3 switch-priority 3\n"
        "nv set qos mapping fabric-2 pcp 6 switch-priority 6\n"
        "nv set interface swp1 qos mapping profile fabric-2\n",
        (),
    ),
    (
        "one port lost its profile: back to the one that is there",
        at_intent(("swp1-2 qos pfc profile", "swp1 qos pfc profile"), ("swp1-2 qos pfc-watchdog", "swp1 qos pfc-watchdog")),
        node(roce()),
        "nv set interface swp2 qos pfc profile fabric-1\nnv set interface swp2 qos pfc-watchdog state enable\n",
        (),
    ),
    (
        "a profile that foreign ports use is not edited",
        at_intent(("pfc fabric-1 switch-priority 3", "pfc fabric-1 switch-priority 5"), more=("nv set interface swp7 qos pfc profile fabric-1",)),
        node(roce()),
        "nv set qos pfc fabric-2 switch-priority 3\nnv set qos pfc fabric-2 tx enable\nnv set qos pfc fabric-2 rx enable\n"
        "nv set qos pfc fabric-2 cable-length 15\nnv set interface swp1-2 qos pfc profile fabric-2\n",
        (),
    ),
    (
        "priority moves: set before remove",
        AT_INTENT,
        node(with_class(with_class(roce((4,), dscp_to_priority=dscp_map(0, d26=4, d48=6)), 3, share=UNMANAGED, ecn=None), 4, share=Share("dwrr", 50))),
        "nv set qos mapping fabric-1 dscp 26 switch-priority 4\n"
        "nv set qos pfc fabric-1 switch-priority 4\n"
        "nv unset qos pfc fabric-1 switch-priority 3\n"
        "nv set qos congestion-control fabric-1 traffic-class 4 min-threshold 150000\n"
        "nv set qos congestion-control fabric-1 traffic-class 4 max-threshold 1500000\n"
        "nv set qos congestion-control fabric-1 traffic-class 4 probability 100\n"
        "nv unset qos congestion-control fabric-1 traffic-class 3\n"
        "nv unset qos egress-scheduler fabric-1 traffic-class 3\n"
        "nv set qos egress-scheduler fabric-1 traffic-class 4 mode dwrr\n"
        "nv set qos egress-scheduler fabric-1 traffic-class 4 bw-percent 50\n",
        (),
    ),
    (
        "pfc off: profile, watchdog and pool go",
        AT_INTENT,
        node(with_class(roce(()), 3, ecn=RAMP)),
        "nv unset interface swp1-2 qos pfc-watchdog\nnv unset interface swp1-2 qos pfc profile\nnv unset qos pfc fabric-1\n"
        "nv unset qos traffic-pool default-lossless\nnv unset qos traffic-pool default-lossy\n",
        (),
    ),
    (
        "pfc off on one port: the pool stays",
        AT_INTENT,
        two(with_class(roce(()), 3, ecn=RAMP), roce()),
        "nv unset interface swp1 qos pfc-watchdog\nnv unset interface swp1 qos pfc profile\n",
        (),
    ),
    (
        "pfc off, a foreign port has some: the pool stays",
        at_intent(more=("nv set qos pfc mine switch-priority 5", "nv set interface swp8 qos pfc profile mine")),
        node(with_class(roce(()), 3, ecn=RAMP)),
        "nv unset interface swp1-2 qos pfc-watchdog\nnv unset interface swp1-2 qos pfc profile\nnv unset qos pfc fabric-1\n",
        (),
    ),
    (
        "pool of other size stays",
        tuple(line for line in at_intent(("default-lossless memory-percent 50", "default-lossless memory-percent 30")) if " pfc" not in line),
        node(roce()),
        "nv set qos pfc fabric-1 switch-priority 3\nnv set qos pfc fabric-1 tx enable\nnv set qos pfc fabric-1 rx enable\n"
        "nv set qos pfc fabric-1 cable-length 15\nnv set qos pfc-watchdog robustness 2\n"
        "nv set interface swp1-2 qos pfc profile fabric-1\nnv set interface swp1-2 qos pfc-watchdog state enable\n",
        (),
    ),
    ("receive only", AT_INTENT, node(with_class(roce(), 3, pfc_tx=False)), "nv set qos pfc fabric-1 tx disable\n", ()),
    ("cable", AT_INTENT, node(roce(cable_m=300)), "nv set qos pfc fabric-1 cable-length 300\n", ()),
    ("a threshold", AT_INTENT, node(with_class(roce(), 3, ecn=Ecn(Amount(150_000), Amount(3_000_000)))), "nv set qos congestion-control fabric-1 traffic-class 3 max-threshold 3000000\n", ()),
    (
        "thresholds of one port",
        AT_INTENT,
        two(roce(), with_class(roce(), 3, ecn=Ecn(Amount(800_000), Amount(3_200_000), 20.0))),
        "nv set qos congestion-control fabric-2 traffic-class 3 min-threshold 800000\n"
        "nv set qos congestion-control fabric-2 traffic-class 3 max-threshold 3200000\n"
        "nv set qos congestion-control fabric-2 traffic-class 3 probability 20\n"
        "nv set interface swp2 qos congestion-control profile fabric-2\n",
        (),
    ),
    (
        "no marking anywhere, where the default has some",
        (),
        node(PortSettings(qos=QosState(classes=tuple(ClassState(ecn=None) for _ in range(8))))),
        "nv set qos congestion-control fabric-1 traffic-class 0 ecn disable\nnv set interface swp1-2 qos congestion-control profile fabric-1\n",
        (),
    ),
    (
        "a class that nobody owns keeps its ramp",
        (),
        node(PortSettings(qos=with_class(PortSettings(), 3, ecn=RAMP).qos)),
        "nv set qos congestion-control fabric-1 traffic-class 0,3 min-threshold 150000\n"
        "nv set qos congestion-control fabric-1 traffic-class 0,3 max-threshold 1500000\n"
        "nv set qos congestion-control fabric-1 traffic-class 0,3 probability 100\n"
        "nv set interface swp1-2 qos congestion-control profile fabric-1\n",
        (),
    ),
    (
        "what is left of 100 percent is divided",
        (),
        node(PortSettings(qos=with_class(with_class(PortSettings(), 3, share=Share("dwrr", 50)), 0, share=Share("dwrr", 20)).qos)),
        "nv set qos egress-scheduler fabric-1 traffic-class 0 mode dwrr\nnv set qos egress-scheduler fabric-1 traffic-class 0 bw-percent 20\n"
        "nv set qos egress-scheduler fabric-1 traffic-class 1,2,4,5,6,7 mode dwrr\nnv set qos egress-scheduler fabric-1 traffic-class 1,2,4,5,6,7 bw-percent 5\n"
        "nv set qos egress-scheduler fabric-1 traffic-class 3 mode dwrr\nnv set qos egress-scheduler fabric-1 traffic-class 3 bw-percent 50\n"
        "nv set interface swp1-2 qos egress-scheduler profile fabric-1\n",
        (),
    ),
    ("shares", AT_INTENT, node(with_class(with_class(roce(), 3, share=Share("dwrr", 60)), 0, share=Share("dwrr", 40))), "nv set qos egress-scheduler fabric-1 traffic-class 0 bw-percent 40\nnv set qos egress-scheduler fabric-1 traffic-class 3 bw-percent 60\n", ()),
    (
        "round robin to strict leaves no percent behind",
        AT_INTENT,
        node(with_class(roce(), 0, share=Share("strict"))),
        "nv unset qos egress-scheduler fabric-1 traffic-class 0\n"
        "nv set qos egress-scheduler fabric-1 traffic-class 0 mode strict\n"
        "nv set qos egress-scheduler fabric-1 traffic-class 1,2,4,5,7 mode dwrr\nnv set qos egress-scheduler fabric-1 traffic-class 1,2,4,5,7 bw-percent 10\n",
        (),
    ),
    ("timers", AT_INTENT, node(roce(watchdog=WatchdogTimers(600, UNMANAGED, 200, "drop"))), "nv set qos pfc-watchdog polling-interval 200\nnv unset qos pfc-watchdog robustness\n", ()),
    ("timers back to the default", at_intent(more=("nv set qos pfc-watchdog polling-interval 200",)), node(roce(watchdog=WatchdogTimers(300))), "nv unset qos pfc-watchdog polling-interval\nnv unset qos pfc-watchdog robustness\n", ()),
    ("interval stays where detection is a multiple of it", at_intent(more=("nv set qos pfc-watchdog polling-interval 200",)), node(roce(watchdog=WatchdogTimers(800))), "nv set qos pfc-watchdog robustness 4\n", ()),
    ("watchdog off", AT_INTENT, node(with_class(roce(), 3, watchdog=False)), "nv unset interface swp1-2 qos pfc-watchdog\n", ()),
    (
        "idle watchdog does not wake up",
        ("nv set interface swp1-2 qos pfc-watchdog state enable",),
        node(PortSettings(qos=with_class(PortSettings(qos=QosState(classes=tuple(ClassState(pfc_tx=False, pfc_rx=False) for _ in range(8)))), 3, pfc_tx=True, pfc_rx=True, watchdog=False).qos)),
        "nv set qos traffic-pool default-lossless memory-percent 50\nnv set qos traffic-pool default-lossy memory-percent 50\n"
        "nv set qos pfc fabric-1 switch-priority 3\nnv set qos pfc fabric-1 tx enable\nnv set qos pfc fabric-1 rx enable\nnv set qos pfc fabric-1 cable-length 10\n"
        "nv unset interface swp1-2 qos pfc-watchdog\nnv set interface swp1-2 qos pfc profile fabric-1\n",
        (),
    ),
    (
        "pause and dcbx off",
        at_intent(more=("nv set qos link-pause pp rx enable", "nv set interface swp2 qos link-pause profile pp", "nv set interface swp1 lldp dcbx-pfc-tlv on")),
        node(roce()),
        "nv set interface swp1 lldp dcbx-pfc-tlv off\nnv set interface swp1 lldp dcbx-ets-config-tlv off\nnv set interface swp1 lldp dcbx-ets-recomm-tlv off\n"
        "nv unset interface swp2 qos link-pause profile\n",
        (),
    ),
    (
        "pause on",
        (),
        node(PortSettings(qos=QosState(global_pause=True))),
        "nv set qos traffic-pool default-lossless memory-percent 50\nnv set qos traffic-pool default-lossy memory-percent 50\n"
        "nv set qos link-pause fabric-1 tx enable\nnv set qos link-pause fabric-1 rx enable\nnv set interface swp1-2 qos link-pause profile fabric-1\n",
        (),
    ),
    (
        "queue back to its own class",
        at_intent(more=("nv set qos egress-queue-mapping default-global switch-priority 6 traffic-class 0",)),
        node(roce()),
        # Class 6 was nobody's, so its entry in the profile was not shown: the profile is made anew.
        "nv unset qos egress-queue-mapping default-global switch-priority 6\n"
        "nv set qos egress-scheduler fabric-2 traffic-class 0,3 mode dwrr\nnv set qos egress-scheduler fabric-2 traffic-class 0,3 bw-percent 50\n"
        "nv set qos egress-scheduler fabric-2 traffic-class 6,7 mode strict\n"
        "nv set interface swp1-2 qos egress-scheduler profile fabric-2\nnv unset qos egress-scheduler fabric-1\n",
        (),
    ),
    (
        "unused profiles of ours go with the next change of their kind",
        at_intent(("trust l3", "trust both"), more=("nv set qos mapping fabric-9 trust l3", "nv set qos pfc fabric-9 rx enable")),
        node(roce()),
        "nv set qos mapping fabric-1 trust l3\nnv unset qos mapping fabric-9\n",
        (),
    ),
    (
        "macro: profiles over it, it stays",
        ("nv set qos roce mode lossless",),
        node(roce(cable_m=100)),
        "nv set qos mapping fabric-1 trust l3\n"
        f"nv set qos mapping fabric-1 dscp {ALL_BUT} switch-priority 0\n"
        "nv set qos mapping fabric-1 dscp 26 switch-priority 3\nnv set qos mapping fabric-1 dscp 48 switch-priority 6\n"
        "nv set qos congestion-control fabric-1 traffic-class 3 min-threshold 150000\n"
        "nv set qos congestion-control fabric-1 traffic-class 3 max-threshold 1500000\n"
        "nv set qos congestion-control fabric-1 traffic-class 3 probability 100\n"
        "nv set qos pfc-watchdog robustness 2\n"
        "nv set interface swp1-2 qos mapping profile fabric-1\nnv set interface swp1-2 qos congestion-control profile fabric-1\n"
        "nv set interface swp1-2 qos pfc-watchdog state enable\n",
        (),
    ),
    (
        "macro: no PFC on these ports",
        ("nv set qos roce mode lossless",),
        node(PortSettings(qos=QosState(classes=tuple(ClassState(pfc_tx=False, pfc_rx=False) for _ in range(8))))),
        "nv set qos pfc fabric-1 switch-priority 3\nnv set qos pfc fabric-1 tx disable\nnv set qos pfc fabric-1 rx disable\n"
        "nv set qos pfc fabric-1 cable-length 100\nnv set interface swp1-2 qos pfc profile fabric-1\n",
        (),
    ),
    (
        "lossy macro: nobody says how a lossless pool stands beside it",
        ("nv set qos roce mode lossy",),
        node(PortSettings(qos=QosState(classes=tuple(ClassState(pfc_tx=p == 3, pfc_rx=p == 3) for p in range(8))))),
        "nv set qos traffic-pool default-lossless memory-percent 50\nnv set qos traffic-pool default-lossy memory-percent 50\n"
        "nv set qos pfc fabric-1 switch-priority 3\nnv set qos pfc fabric-1 tx enable\nnv set qos pfc fabric-1 rx enable\n"
        "nv set qos pfc fabric-1 cable-length 10\nnv set interface swp1-2 qos pfc profile fabric-1\n",
        ("nv set qos traffic-pool default-lossless memory-percent 50", "nv set qos traffic-pool default-lossy memory-percent 50"),
    ),
    (
        "other lossy pools keep their part",
        ("nv set qos traffic-pool mc-lossy memory-percent 30", "nv set qos traffic-pool default-lossy memory-percent 70"),
        node(PortSettings(qos=QosState(classes=tuple(ClassState(pfc_tx=p == 3, pfc_rx=p == 3) for p in range(8))))),
        "nv set qos traffic-pool default-lossless memory-percent 50\nnv set qos traffic-pool default-lossy memory-percent 20\n"
        "nv set qos pfc fabric-1 switch-priority 3\nnv set qos pfc fabric-1 tx enable\nnv set qos pfc fabric-1 rx enable\n"
        "nv set qos pfc fabric-1 cable-length 10\nnv set interface swp1-2 qos pfc profile fabric-1\n",
        (),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "wish", "lines", "unverified"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_change_lines(
    before: tuple[str, ...], wish: NodeState, lines: str, unverified: tuple[str, ...]
) -> None:
    hw = hardware()
    seen = seen_config(expanded(before), hw)
    change = PLATFORM.change(seen, PLATFORM.realize(wish, hw).state, hw)
    assert "".join(f"{line}\n" for line in change.lines) == lines
    assert change.unverified == unverified
    assert not change.blocked
    assert bool(change.lines) is not change.empty


def expanded(commands: tuple[str, ...]) -> str:
    """The configuration of these lines: lists in ids become single ids, as NVUE keeps them."""
    single = []
    for command in commands:
        match = re.search(
            r" (dscp|pcp|traffic-class) ([\d,]+) (switch-priority|mode|bw-percent|m\w+-threshold|probability|ecn) ",
            command,
        )
        numbers = match[2].split(",") if match else [""]
        for number in numbers:
            single.append(
                command
                if match is None
                else command.replace(f" {match[1]} {match[2]} ", f" {match[1]} {number} ")
            )
    return config_of(*single)


def test_full_rendering_is_the_change_from_blank() -> None:
    hw = hardware()
    want = realized(roce(), hw)
    full = render_lines(TEMPLATE, PLATFORM.context(want, hw))
    extra = {
        "nv set interface swp1-2 link mtu 9216",
        "nv set qos pfc-watchdog polling-interval 100",
        "nv set qos egress-queue-mapping default-global switch-priority 0 traffic-class 0",
        "nv set qos egress-queue-mapping default-global switch-priority 3 traffic-class 3",
        "nv set qos egress-queue-mapping default-global switch-priority 6 traffic-class 6",
    }
    assert [line for line in full if line not in extra] == list(AT_INTENT)
    assert extra <= set(full)
    assert differences(want, seen_config(expanded(full), hw).running) == ()


@given(NODES)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_full_rendering_reads_back_as_realized(wish: NodeState) -> None:
    hw = hardware()
    want = PLATFORM.realize(wish, hw).state
    seen = seen_config(expanded(render_lines(TEMPLATE, PLATFORM.context(want, hw))), hw)
    assert differences(want, seen.running) == ()


@given(NODES, NODES)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_change_from_anything_to_anything(first: NodeState, second: NodeState) -> None:
    """Only fields that differ are in the change, and nothing is lost: repaired or blocked."""
    hw = hardware()
    have = PLATFORM.realize(first, hw).state
    seen = seen_config(expanded(render_lines(TEMPLATE, PLATFORM.context(have, hw))), hw)
    want = PLATFORM.realize(second, hw).state
    change = PLATFORM.change(seen, want, hw)
    assert set(change.differences) | set(change.blocked) == set(differences(want, seen.running))
    assert bool(change.differences) or not change.lines


WORDS = [("5.14.0", "on", "off"), ("5.15.0", "enabled", "disabled")]


@pytest.mark.parametrize(("version", "on", "off"), WORDS)
def test_words_of_releases(version: str, on: str, off: str) -> None:
    hw = hardware()
    blank = seen_config(config_of(version=version), hw)
    change = PLATFORM.change(blank, node(PortSettings(qos=QosState(dcbx="ieee"))), hw)
    assert change.lines[0] == f"nv set interface swp1-2 lldp dcbx-pfc-tlv {on}"
    advertising = seen_config(
        config_of(f"nv set interface swp1-2 lldp dcbx-pfc-tlv {on}", version=version), hw
    )
    assert wrong(advertising.running, {"swp1": {"qos.dcbx": "ieee"}}) == []
    change = PLATFORM.change(advertising, node(PortSettings(qos=QosState(dcbx="none"))), hw)
    assert change.lines[0] == f"nv set interface swp1-2 lldp dcbx-pfc-tlv {off}"
    silent = node(PortSettings(qos=QosState(classes=tuple(ClassState(ecn=None) for _ in range(8)))))
    disable = "nv set qos congestion-control fabric-1 traffic-class 0 ecn disable"
    assert PLATFORM.change(blank, silent, hw).unverified == (() if off == "off" else (disable,))


def test_an_unknown_release_leaves_words_open() -> None:
    hw = hardware(version="")
    seen = PLATFORM.parse({CONFIG: json.dumps([{"set": {"interface": {"swp1-2": {"type": "swp"}}}}])}, hw)
    change = PLATFORM.change(seen, node(PortSettings(qos=QosState(dcbx="ieee"))), hw)
    assert len(change.lines) == 3 and change.unverified == change.lines


def test_what_cannot_be_written_is_blocked() -> None:
    hw = hardware()
    everywhere = seen_config(config_of("nv set qos link-pause default-global rx enable"), hw)
    change = PLATFORM.change(everywhere, node(PortSettings(qos=QosState(global_pause=False))), hw)
    assert change.empty and [item.path for item in change.blocked] == [
        "ports.swp1.qos.global_pause",
        "ports.swp2.qos.global_pause",
    ]
    recorded = node(PortSettings(qos=with_class(PortSettings(), 3, headroom=Amount(40_000)).qos))
    change = PLATFORM.change(seen_config(config_of(), hw), recorded, hw)
    assert change.empty and next(item.path for item in change.blocked) == "ports.swp1.qos.classes.3.headroom"


def test_a_profile_is_not_written_with_a_part_that_could_not_be_read() -> None:
    hw = hardware("swp1")
    seen = seen_config(
        config_of("nv set qos mapping default-global dscp 99 switch-priority 1".replace(" 1", " 1")), hw
    )
    broken = seen_config(
        json.dumps(
            [
                {
                    "set": {
                        "interface": {"swp1": {}},
                        "qos": {"mapping": {"default-global": {"dscp": {"all": {}}}}},
                    }
                }
            ]
        ),
        hw,
    )
    for one in (seen, broken):
        assert (
            wrong(
                one.running,
                {"swp1": {"qos.trust": "pcp", "qos.dscp_to_priority": "<unknown>"}} if one is broken else {},
            )
            == []
        )
    change = PLATFORM.change(broken, node(PortSettings(qos=QosState(trust="dscp")), "swp1"), hw)
    assert change.empty
    assert [item.path for item in change.blocked] == ["ports.swp1.qos.trust"]


def test_profiles_with_sizes_by_hand_are_replaced_not_edited() -> None:
    hw = hardware("swp1")
    seen = seen_config(
        config_of(
            "nv set qos pfc fabric-1 switch-priority 3", "nv set qos pfc fabric-1 port-buffer 40000",
            "nv set interface swp1 qos pfc profile fabric-1", "nv set qos traffic-pool default-lossless memory-percent 50",
        ),
        hw,
    )  # fmt: skip
    change = PLATFORM.change(seen, realized(roce(), hw, "swp1"), hw)
    assert "nv set interface swp1 qos pfc profile fabric-2" in change.lines
    assert "nv unset qos pfc fabric-1" in change.lines


# ---------------------------------------------------------------- steps


def first_change() -> Change:
    hw = hardware()
    return PLATFORM.change(seen_config(config_of(), hw), realized(roce(), hw), hw)


def test_steps_of_a_change() -> None:
    change = first_change()
    base, attach, lines, diff = change.stage
    assert isinstance(base, Send) and base.keep == "base"
    assert isinstance(attach, Send) and attach.lines == ("nv config attach applied -y",)
    assert isinstance(lines, Send) and lines.lines == change.lines == AT_INTENT
    assert isinstance(diff, Send) and (diff.keep, diff.status) == ("diff", (0, 1))
    (commit,) = change.commit
    assert isinstance(commit, Send) and commit.lines == (
        "nv config apply --confirm @TIMER_S@s -y -m fabric-@RUN@",
    )
    assert change.undo_kind == "device-timer"
    assert change.save == ()
    assert change.expected is not None
    texts = [
        line
        for step in (*change.lock, *change.stage, *change.confirm, *change.undo)
        if isinstance(step, Send)
        for line in step.lines
    ]
    assert not [line for line in texts if "config replace" in line]
    assert PLATFORM.dialect.recover == (*change.undo, *change.unlock)


@pytest.mark.parametrize(
    ("version", "commands", "saves"),
    [
        ("5.8.0", (), True),
        ("5.9.0", (), False),
        ("5.8.0", ("nv set system config auto-save enable on",), False),
        ("5.14.0", ("nv set system config auto-save enable off",), True),
        ("5.15.0", ("nv set system config auto-save state disabled",), True),
    ],
)
def test_saved_where_the_switch_does_not(version: str, commands: tuple[str, ...], saves: bool) -> None:
    hw = hardware()
    change = PLATFORM.change(seen_config(config_of(*commands, version=version), hw), realized(roce(), hw), hw)
    assert [step.lines for step in change.save if isinstance(step, Send)] == (
        [("nv config save",)] if saves else []
    )


def test_live_right_and_stored_wrong_is_saved() -> None:
    hw = hardware()
    want = realized(roce(), hw)
    seen = seen_config(expanded(AT_INTENT), hw, stored=config_of())
    change = PLATFORM.change(seen, want, hw)
    assert change.lines == ("nv config save",)
    assert not change.empty and not change.stage and change.differences
    same_stored = seen_config(expanded(AT_INTENT), hw, stored=expanded(AT_INTENT))
    assert PLATFORM.change(same_stored, want, hw).empty


def test_disturbances_name_their_source() -> None:
    moved, one = sorted(first_change().disturbs, key=lambda item: "" in item.ports)
    assert (one.level, one.ports) == (Disturbs.LOSS, ("",))
    assert "Quality of Service" in one.source
    assert (moved.level, moved.ports, moved.source) == (Disturbs.LOSS, ("swp1", "swp2"), "experience")
    hw = hardware()
    at = seen_config(expanded(AT_INTENT), hw)
    hitless = PLATFORM.change(at, realized(with_class(roce(), 3, ecn=Ecn(Amount(1), Amount(2))), hw), hw)
    assert hitless.lines and hitless.disturbs == ()
    smaller = PLATFORM.change(at, realized(replace(roce(), mtu=Mtu(4200)), hw), hw)
    assert [(one.ports, one.source) for one in smaller.disturbs] == [(("swp1", "swp2"), "experience")]


def test_marked_traffic_that_changes_its_priority_is_disturbed() -> None:
    """A DSCP that leaves the lossless priority under a running job is loss, however softly it is loaded."""
    hw = hardware()
    at = seen_config(expanded(AT_INTENT), hw)
    points = list(known(roce().qos.dscp_to_priority))
    points[24], points[26] = points[26], points[24]
    for other in (roce(dscp_to_priority=tuple(points)), roce(trust="both")):
        (one,) = PLATFORM.change(at, realized(other, hw), hw).disturbs
        assert (one.level, one.ports) == (Disturbs.LOSS, ("swp1", "swp2"))


ERRORS = [
    ("Error: Invalid Command: set qos rocee", True),
    ("Error: Ambiguous Command:\n  set interface\n  show interface", True),
    ("-bash: y: command not found", True),
    ("Invalid config [rev_id: 2]\n  swp99 does not exist", True),
    ("Declined apply after warnings", True),
    ("Aborted apply after warnings", True),
    ("created [rev_id: 2]", False),
    ("applied_and_saved [rev_id: 2]", False),
    ("- set:\n    interface:\n      swp1:\n        description: Error budget", False),
]


@pytest.mark.parametrize(("text", "refused"), ERRORS)
def test_error_pattern(text: str, refused: bool) -> None:
    assert bool(re.search(PLATFORM.dialect.errors, text, re.MULTILINE)) is refused


def test_absences_of_a_blank_switch() -> None:
    """Every field is read or declared not to exist."""
    (port,) = seen_config(config_of(), hardware("swp1")).running.ports
    found = [str(item.path) for item in differences(filled(UNKNOWN), port.settings) if item.found is UNKNOWN]
    assert found == []
    assert port.settings.qos.classes[0].group is NOT_APPLICABLE


def filled(value: Any) -> PortSettings:
    one = ClassState(*(value,) * 8)
    qos = QosState(value, value, value, (one,) * 8, WatchdogTimers(*(value,) * 4), value, value, value)
    return PortSettings(Mtu(value, value, value), qos)
