"""bnxt ports: what is realized, read and changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_dcb as dcb
from rdma_fabric.platforms import _nic_bnxt_knobs as knobs
from rdma_fabric.platforms import _nic_bnxt_nv as nv
from rdma_fabric.platforms import _nic_bnxt_read as reader
from rdma_fabric.platforms._contract import Call, Change, Disturbs, Put
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._nic_bnxt_knobs import Apps, Kind
from rdma_fabric.platforms.linux import PLATFORM as LINUX
from rdma_fabric.platforms.nic_bnxt import PLATFORM
from rdma_fabric.state import (
    FIRMWARE_AGENT,
    MTU_MAX,
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Absent,
    Amount,
    ClassState,
    Ecn,
    Marking,
    Mtu,
    NicState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    WatchdogTimers,
    differences,
    owned_part,
)
from rdma_fabric.templating import render

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "nic_bnxt"
PORT = PortHardware("eth8", nic="bnxt", speed_gbps=200, rdma="bnxt_re0", bdf="0000:06:00.0")
HW = Hardware(("linux", "nic_bnxt"), ports=(PORT, PortHardware("eth0", nic="mlx5")))
OLD_FIRMWARE = replace(HW, options=(("bnxt_service_profile", "0"),))
EIGHT = replace(HW, options=(("bnxt_traffic_classes", "8"),))
INBOX = replace(HW, options=(("stack", "inbox"),))
DEBUGFS = replace(HW, options=(("bnxt_cc", "debugfs"), ("stack", "inbox")))

DSCP = tuple({26: 3, 48: 6}.get(point, 0) for point in range(64))
OFF = ClassState(pfc_tx=False, pfc_rx=False, watchdog=False)


def classes(**by_priority: ClassState) -> tuple[ClassState, ...]:
    return tuple(by_priority.get(f"p{priority}", OFF) for priority in range(8))


ON = ClassState(pfc_tx=True, pfc_rx=True, watchdog=True, share=Share("dwrr", 50))
CNP = replace(OFF, share=Share("strict"))
DEFAULT = replace(OFF, share=Share("dwrr", 50))
WISH = PortSettings(
    qos=QosState(
        trust="dscp",
        dscp_to_priority=DSCP,
        classes=classes(p0=DEFAULT, p3=ON, p6=CNP),
        watchdog=WatchdogTimers(200, 400, UNMANAGED, "drop"),
        dcbx="none",
        global_pause=False,
        cable_m=20,
    ),
    marking=Marking(104, 104, True, 48, 6, (3,), (3,), (("np_min_time_between_cnps", "4"),)),
)


def node(settings: PortSettings) -> NodeState:
    return NodeState(ports=(PortState("eth8", "physical", settings),))


def realized(settings: PortSettings, hw: Hardware = HW) -> tuple[PortSettings, list[tuple[str, str]]]:
    found = PLATFORM.realize(node(settings), hw)
    return found.state.ports[0].settings, [(str(f.severity), f.setting) for f in found.faults]


def plain(value: Any) -> Any:
    """As the fixtures write it."""
    if isinstance(value, Absent):
        return value.value
    if isinstance(value, Share):
        return {"scheduler": value.scheduler, "weight": value.weight, "cap": plain(value.cap)}
    return list(value) if isinstance(value, tuple) else value


def at(settings: Any, path: str) -> Any:
    for word in path.split("."):
        settings = settings[int(word)] if word.isdigit() else getattr(settings, word)
    return settings


# ---------------------------------------------------------------- readers

FIXTURES = sorted(path.stem for path in OBSERVE.glob("*.yaml") if path.stem not in ("card", "small"))


@cache
def fixture(name: str) -> Any:
    return yaml.safe_load((OBSERVE / f"{name}.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", FIXTURES)
def test_read_back(name: str) -> None:
    case = fixture(name)
    status = case.get("status", 0)
    parts = {
        f"{key} eth8": Section(text.rstrip("\n"), status, True) for key, text in case["sections"].items()
    }
    found = reader.port_knobs(parts, "eth8")
    assert found == case["knobs"]
    shown = knobs.settings_of(found, Kind())
    for path, expected in case["neutral"].items():
        if expected != "unread":
            assert plain(at(shown, path)) == expected, path
    assert reader.traffic_classes(parts, "eth8") == case.get("classes")
    notes = " / ".join(reader.notes(parts, "eth8"))
    assert [note for note in case.get("notes", []) if note not in notes] == []
    assert bool(notes) == bool(case.get("notes", []))


@pytest.mark.parametrize("row", fixture("small")["rows"], ids=lambda row: f"{row[0]} {row[1][:20]!r}")
def test_small_read_backs(row: list[Any]) -> None:
    name, text, status, expected = row
    assert getattr(dcb, name)(Section(text.rstrip("\n"), status, True)) == expected


@pytest.mark.parametrize("row", fixture("small")["profile"], ids=lambda row: repr(row[0][:30]))
def test_service_profile(row: list[Any]) -> None:
    assert reader.profile({"profile eth8": Section(row[0].rstrip("\n"), 0, True)}, "eth8") == row[1]


@pytest.mark.parametrize("row", fixture("small")["option"], ids=lambda row: repr(row[1][:30]))
def test_options_of_the_card(row: list[Any]) -> None:
    assert nv.value(row[0], row[1]) == (UNKNOWN if row[2] is None else row[2])


@given(st.text("PRIOMATSCBandwidth:%0123 ets\nIEEE 8021QAZ PFC TLV: enabled: none APP#Sel", max_size=200))
@settings(max_examples=60)
def test_no_output_makes_a_reader_fail(text: str) -> None:
    for section in ("qos", "cc", "cc_debug", "pfc", "ets", "app", "dcbx", "cosq", "dscps", "vendor"):
        parts = {f"{section} eth8": Section(text, 0, True), "qos eth8": Section(text, 0, True)}
        knobs.settings_of(reader.port_knobs(parts, "eth8"), Kind())
        reader.notes(parts, "eth8")
        reader.facts(parts, "eth8")


# ---------------------------------------------------------------- knobs


@pytest.mark.parametrize(
    "hw", [HW, OLD_FIRMWARE, EIGHT, INBOX, DEBUGFS], ids=["1", "0", "8", "inbox", "debug"]
)
def test_knobs_and_settings_are_one_thing(hw: Hardware) -> None:
    """What is written for a realized state is what that state reads as."""
    wanted, _ = realized(WISH, hw)
    kind = knobs.planned(hw)
    again = knobs.settings_of({**knobs.knobs_of(wanted, kind), "DCBX": "host"}, kind)
    assert differences(node(wanted), node(again)) == ()


def test_the_driver_defaults_read_as_a_blank_port() -> None:
    default = knobs.settings_of(knobs.DEFAULTS, Kind())
    shown = knobs.settings_of(reader.qos(fixture("niccli_blank")["sections"]["qos"]), Kind())
    assert [d.path for d in differences(default.qos, shown.qos) if not d.unknown] == []


@pytest.mark.parametrize(
    ("name", "neutral", "debugfs"),
    [
        ("np_min_time_between_cnps", "np_min_time_between_cnps", ""),
        ("np_min_time_bet_cnp", "np_min_time_between_cnps", ""),
        ("rp_g", "rp_g", "rp_g"),
        ("rp_inact_th", "rp_inact_th", "rp_inact_th"),
        ("rp_ai_rate_incr", "rp_ai_rate_incr", ""),
        ("rp_cc_mode", "rp_cc_mode", "rp_cc_mode"),
        ("rp_rpg_ai_rate", "", ""),
        ("g", "", ""),
    ],
)
def test_parameters_go_by_their_files_names(name: str, neutral: str, debugfs: str) -> None:
    assert knobs.neutral_parameter(name, Kind()) == neutral
    assert knobs.neutral_parameter(name, Kind("debugfs")) == debugfs


@pytest.mark.parametrize("hw", [HW, OLD_FIRMWARE, INBOX, DEBUGFS], ids=["1", "0", "inbox", "debug"])
def test_every_owned_field_has_a_knob(hw: Hardware) -> None:
    """A field that differs must lead to a key of the settings file, else it would never be repaired.

    Not who negotiates: the firmware's memory decides that.
    """
    kind = knobs.planned(hw)
    wanted, _ = realized(WISH, hw)
    unknown = knobs.settings_of({"DCBX": "host"}, kind)
    written = knobs.knobs_of(wanted, kind)
    for item in differences(wanted, unknown):
        keys = knobs.keys_of(item.path, kind)
        assert keys and set(keys) & set(written), item.path


@pytest.mark.parametrize(
    ("have", "wanted", "cnp", "plan"),
    [
        ([], {26: 3, 48: 6}, "48", Apps((), ("26:3",), ("48:6",))),
        ([], {26: 3, 48: 6}, "", Apps((), ("26:3", "48:6"), ())),
        ([(26, 3), (48, 6)], {26: 3, 48: 6}, "48", Apps()),
        ([(26, 3), (48, 7)], {26: 3, 48: 6}, "48", Apps(("48:7",), (), ("48:6",))),
        ([(26, 3), (48, 6)], {26: 3, 48: 6, 54: 6}, "48", Apps(("48:6",), ("54:6",), ("48:6",))),
        ([(26, 3), (26, 4), (48, 6)], {26: 3, 48: 6}, "48", Apps(("26:4", "48:6"), (), ("48:6",))),
        ([(10, 0), (26, 3)], {}, "48", Apps(("26:3",), (), ())),
        ([(26, 3)], {26: 4, 48: 0}, "48", Apps(("26:3",), ("26:4",), ())),
    ],
)
def test_the_cnps_entry_comes_last(
    have: list[tuple[int, int]], wanted: dict[int, int], cnp: str, plan: Apps
) -> None:
    assert knobs.apps(have, [str(wanted.get(point, 0)) for point in range(64)], cnp) == plan


# ---------------------------------------------------------------- realize


def shares(found: PortSettings) -> list[str]:
    return [
        f"{one.queue}:{one.share.weight if one.share.scheduler == 'dwrr' else 's'}"
        if isinstance(one.share, Share)
        else "-"
        for one in found.qos.classes
    ]


def test_realize_the_worked_example() -> None:
    found, faults = realized(WISH)
    assert shares(found) == ["0:50", "0:50", "0:50", "1:50", "0:50", "0:50", "2:s", "0:50"]
    assert [c.pfc_tx for c in found.qos.classes] == [False] * 3 + [True] + [False] * 4
    assert found.qos.dscp_to_priority == DSCP and found.qos.trust == "dscp"
    assert (found.marking.np, found.marking.rp, found.marking.cnp_priority) == ((3,), (3,), 6)
    assert dict(found.marking.parameters) == {
        "np_min_time_between_cnps": "4",
        "rp_cc_mode": "1",
        "rp_ecn_marking": "1",
        "rp_roce_prio": "3",
    }
    assert faults == [
        ("note", "qos.watchdog.detect_ms"),
        ("note", "qos.watchdog.restore_ms"),
        ("note", "qos.watchdog.action"),
        ("note", "marking.traffic_class"),
    ]


def test_old_firmware_gives_cnps_a_queue_of_its_own() -> None:
    found, _ = realized(WISH, OLD_FIRMWARE)
    assert shares(found)[6] == "-" and found.qos.classes[6].queue is NOT_APPLICABLE
    assert dict(found.marking.parameters)["rp_roce_dscp"] == "26"
    assert found.marking.cnp_priority == 6
    rows = knobs.knobs_of(found, knobs.planned(OLD_FIRMWARE))
    assert (rows["PRIO_TC"], rows["TSA"]) == ("0,0,0,1,0,0,-,0", "ets,ets,-,-,-,-,-,-")
    assert (rows["ROCE_DSCP"], rows["CNP_PRIO"], rows["CNP_DSCP"]) == ("26", "6", "48")


def test_the_kernel_driver_cannot_say_everything() -> None:
    found, faults = realized(WISH, INBOX)
    marking = found.marking
    assert (marking.np, marking.cnp_dscp, marking.cnp_priority) == (NOT_APPLICABLE,) * 3
    assert dict(marking.parameters) == {
        "np_min_time_between_cnps": NOT_APPLICABLE,
        "rp_cc_mode": NOT_APPLICABLE,
        "rp_ecn_marking": NOT_APPLICABLE,
        "rp_roce_prio": "3",
    }
    assert {"ECN", "CNP_DSCP", "VLAN0", "MARK"} & set(knobs.knobs_of(found, knobs.planned(INBOX))) == set()
    assert ("note", "marking.np") in faults and ("note", "marking.cnp_dscp") in faults
    off = replace(WISH, marking=replace(WISH.marking, np=(), rp=()))
    assert ("warning", "marking.np") in realized(off, INBOX)[1]
    newer, faults = realized(WISH, DEBUGFS)
    assert newer.marking.np == (3,) and newer.marking.cnp_dscp == 48
    assert ("warning", "marking.parameters.np_min_time_between_cnps") in faults


SHARES_TABLE: list[tuple[dict[str, ClassState], Hardware, list[str], list[str]]] = [
    # Nobody says a share: Broadcom's default.
    (
        {"p3": replace(ON, share=UNMANAGED)},
        HW,
        ["0:50"] * 3 + ["1:50"] + ["0:50"] * 2 + ["2:s", "0:50"],
        ["note"],
    ),
    # RoCE alone says one.
    (
        {"p3": replace(ON, share=Share("dwrr", 70))},
        HW,
        ["0:30"] * 3 + ["1:70"] + ["0:30"] * 2 + ["2:s", "0:30"],
        [],
    ),
    # Classes that share traffic class 0 add up.
    (
        {"p0": replace(OFF, share=Share("dwrr", 20)), "p1": replace(OFF, share=Share("dwrr", 20)), "p3": ON},
        HW,
        ["0:44", "0:44", "0:44", "1:56", "0:44", "0:44", "2:s", "0:44"],
        ["note", "note", "note"],
    ),
    # With eight traffic classes each has its own.
    (
        {"p0": replace(OFF, share=Share("dwrr", 30)), "p1": replace(OFF, share=Share("dwrr", 20)), "p3": ON},
        EIGHT,
        ["0:30", "3:20", "0:30", "1:50", "0:30", "0:30", "2:s", "0:30"],
        [],
    ),
    # A further strict class goes with the CNPs, a weighted one of theirs is strict then.
    (
        {"p0": DEFAULT, "p3": ON, "p6": replace(OFF, share=Share("dwrr", 5)), "p7": CNP},
        HW,
        ["0:50"] * 3 + ["1:50"] + ["0:50"] * 2 + ["2:s", "2:s"],
        ["warning"],
    ),
    # CNPs with a weight of their own.
    (
        {
            "p0": replace(OFF, share=Share("dwrr", 45)),
            "p3": replace(ON, share=Share("dwrr", 45)),
            "p6": replace(OFF, share=Share("dwrr", 10)),
        },
        HW,
        ["0:45"] * 3 + ["1:45"] + ["0:45"] * 2 + ["2:10", "0:45"],
        [],
    ),
    # Strict RoCE, strict everything else that is not theirs.
    (
        {"p0": CNP, "p3": replace(ON, share=Share("strict"))},
        HW,
        ["2:s"] + ["0:100"] * 2 + ["1:s"] + ["0:100"] * 2 + ["2:s", "0:100"],
        [],
    ),
    # Weights are no percentages; none becomes 0.
    (
        {"p0": replace(OFF, share=Share("dwrr", 1)), "p3": replace(ON, share=Share("dwrr", 999))},
        HW,
        ["0:1"] * 3 + ["1:99"] + ["0:1"] * 2 + ["2:s", "0:1"],
        ["note"],
    ),
]


@pytest.mark.parametrize(("given_classes", "hw", "found", "faults"), SHARES_TABLE)
def test_traffic_classes(
    given_classes: dict[str, ClassState], hw: Hardware, found: list[str], faults: list[str]
) -> None:
    wish = replace(WISH, qos=replace(WISH.qos, classes=classes(**given_classes), watchdog=WatchdogTimers()))
    got, reported = realized(wish, hw)
    assert shares(got) == found
    assert [severity for severity, at in reported if at.startswith("qos")] == faults


def test_only_one_class_can_be_lossless() -> None:
    wish = replace(WISH, qos=replace(WISH.qos, classes=classes(p2=ON, p3=ON)))
    found, faults = realized(wish)
    assert [p for p, one in enumerate(found.qos.classes) if one.pfc_tx] == [3]
    assert ("error", "qos.classes") in faults


def test_a_lossy_roce_class_has_its_traffic_class_too() -> None:
    wish = replace(
        WISH, qos=replace(WISH.qos, classes=classes(p0=DEFAULT, p3=replace(ON, pfc_tx=False, pfc_rx=False)))
    )
    found, _ = realized(wish)
    assert shares(found)[3] == "1:50" and not any(one.pfc_tx for one in found.qos.classes)
    assert dict(found.marking.parameters)["rp_roce_prio"] == "3"


def test_the_roce_class_takes_one_dscp() -> None:
    many = tuple(3 if point in (24, 25, 26, 27) else DSCP[point] for point in range(64))
    found, faults = realized(replace(WISH, qos=replace(WISH.qos, dscp_to_priority=many)))
    assert found.qos.dscp_to_priority == DSCP
    assert ("warning", "qos.dscp_to_priority") in faults


def test_a_driver_that_shows_no_cnps_gets_a_class_for_them_alone() -> None:
    many = tuple({26: 3, 48: 6, 50: 6, 56: 7}.get(point, 0) for point in range(64))
    qos = replace(WISH.qos, dscp_to_priority=many, classes=classes(p0=DEFAULT, p3=ON, p6=CNP, p7=CNP))
    found, faults = realized(replace(WISH, qos=qos), INBOX)
    assert found.qos.dscp_to_priority[48:57] == (6, 0, 0, 0, 0, 0, 0, 0, 7)  # type: ignore[index]
    assert shares(found)[6:] == ["2:s", "0:50"]
    assert ("warning", "qos.dscp_to_priority") in faults and ("warning", "qos.classes.7.share") in faults
    with_files, _ = realized(replace(WISH, qos=qos))
    assert with_files.qos.dscp_to_priority == many and shares(with_files)[6:] == ["2:s", "2:s"]


QOS_TABLE: list[tuple[dict[str, Any], Hardware, str, Any, list[tuple[str, str]]]] = [
    ({"trust": "both"}, HW, "trust", "both", []),
    ({"trust": "both"}, INBOX, "trust", "dscp", [("note", "qos.trust")]),
    ({"trust": "port"}, HW, "trust", NOT_APPLICABLE, [("warning", "qos.trust")]),
    ({"trust": "pcp"}, HW, "dscp_to_priority", (0,) * 64, []),
    ({"pcp_to_priority": tuple(range(8))}, HW, "pcp_to_priority", tuple(range(8)), []),
    (
        {"pcp_to_priority": (0, 0, 2, 3, 4, 5, 6, 7)},
        HW,
        "pcp_to_priority",
        tuple(range(8)),
        [("warning", "qos.pcp_to_priority")],
    ),
    ({"dcbx": "ieee"}, HW, "dcbx", NOT_APPLICABLE, [("warning", "qos.dcbx")]),
    ({"dcbx": "none"}, HW, "dcbx", "none", []),
    ({"cable_m": 10}, HW, "cable_m", NOT_APPLICABLE, []),
    (
        {"watchdog": WatchdogTimers(200)},
        HW,
        "watchdog.detect_ms",
        NOT_APPLICABLE,
        [("note", "qos.watchdog.detect_ms")],
    ),
]


@pytest.mark.parametrize(("wish", "hw", "field", "used", "faults"), QOS_TABLE)
def test_realize_qos(
    wish: dict[str, Any], hw: Hardware, field: str, used: Any, faults: list[tuple[str, str]]
) -> None:
    found, reported = realized(PortSettings(qos=QosState(**wish)), hw)
    assert at(found.qos, field) == used
    assert reported == faults


CLASS_TABLE: list[tuple[ClassState, dict[str, Any], list[str]]] = [
    (ClassState(pfc_tx=False, pfc_rx=True), {"pfc_tx": True, "pfc_rx": True}, ["warning", "note"]),
    (ClassState(ecn=Ecn(Amount(1), Amount(2))), {"ecn": NOT_APPLICABLE}, []),
    (ClassState(ecn=None, watchdog=True), {"ecn": NOT_APPLICABLE, "watchdog": NOT_APPLICABLE}, []),
    (ClassState(headroom=Amount(100000)), {"headroom": NOT_APPLICABLE}, ["warning"]),
    (ClassState(headroom=None, group=3), {"headroom": NOT_APPLICABLE, "group": NOT_APPLICABLE}, []),
    (ClassState(), {"queue": UNMANAGED, "share": UNMANAGED, "group": UNMANAGED}, []),
    (ClassState(share=Share("strict", 0, 10)), {"share": Share("strict", 0, NOT_APPLICABLE)}, ["warning"]),
    (ClassState(share=Share("dwrr", 100, None)), {"share": Share("dwrr", 100, NOT_APPLICABLE)}, []),
    (ClassState(share=None), {"share": Share("strict"), "queue": 0}, []),
]


@pytest.mark.parametrize(("wish", "used", "faults"), CLASS_TABLE)
def test_realize_classes(wish: ClassState, used: dict[str, Any], faults: list[str]) -> None:
    found, reported = realized(
        PortSettings(qos=QosState(classes=(ClassState(),) * 2 + (wish,) + (ClassState(),) * 5))
    )
    assert {name: getattr(found.qos.classes[2], name) for name in used} == used
    assert [severity for severity, _ in reported] == faults


MARKING_TABLE: list[tuple[Marking, str, Any, list[tuple[str, str]]]] = [
    (Marking(rdma_cm_tos=106), "rdma_cm_tos", 104, []),
    (Marking(traffic_class=104), "traffic_class", NOT_APPLICABLE, [("note", "marking.traffic_class")]),
    (Marking(traffic_class=None), "traffic_class", NOT_APPLICABLE, []),
    (Marking(roce_v2=False), "roce_v2", True, [("warning", "marking.roce_v2")]),
    (Marking(np=(3,)), "rp", (0,), [("note", "marking.np")]),
    (Marking(np=(), rp=(0,)), "np", (0,), [("warning", "marking.np")]),
    (Marking(np=(), rp=()), "parameters", (("rp_ecn_marking", "0"),), []),
    (Marking(parameters=(("rp_g", "0x10"),)), "parameters", (("rp_g", "16"),), []),
    (
        Marking(parameters=(("rp_g", "some"),)),
        "parameters",
        (("rp_g", NOT_APPLICABLE),),
        [("warning", "marking.parameters.rp_g")],
    ),
    (
        Marking(parameters=(("rp_x", "1"),)),
        "parameters",
        (("rp_x", NOT_APPLICABLE),),
        [("warning", "marking.parameters.rp_x")],
    ),
]


@pytest.mark.parametrize(("wish", "field", "used", "faults"), MARKING_TABLE)
def test_realize_marking(wish: Marking, field: str, used: Any, faults: list[tuple[str, str]]) -> None:
    found, reported = realized(PortSettings(marking=wish))
    assert getattr(found.marking, field) == used
    assert reported == faults


@pytest.mark.parametrize(
    ("dscp", "priority", "found", "faults"),
    [
        (48, 6, (48, 6), []),
        (48, 5, (48, 6), [("warning", "marking.cnp_priority")]),
        (10, 6, (NOT_APPLICABLE, NOT_APPLICABLE), [("warning", "marking.cnp_dscp")]),
        (26, 3, (NOT_APPLICABLE, NOT_APPLICABLE), [("warning", "marking.cnp_dscp")]),
        (0, 0, (NOT_APPLICABLE, NOT_APPLICABLE), []),
    ],
)
def test_the_map_tells_what_cnps_get(
    dscp: int, priority: int, found: tuple[Any, Any], faults: list[tuple[str, str]]
) -> None:
    wish = replace(WISH.marking, cnp_dscp=dscp, cnp_priority=priority, traffic_class=UNMANAGED)
    qos = replace(WISH.qos, watchdog=WatchdogTimers())
    got, reported = realized(replace(WISH, qos=qos, marking=wish))
    assert (got.marking.cnp_dscp, got.marking.cnp_priority) == found
    assert [one for one in reported if one[1].startswith("marking")] == faults


@pytest.mark.parametrize(
    ("members", "named", "faults"), [(("eth8",), True, []), (("eth5",), False, ["error"])]
)
def test_pfc_of_a_bond_belongs_to_its_members(
    members: tuple[str, ...], named: bool, faults: list[str]
) -> None:
    hw = replace(HW, ports=(PORT, PortHardware("bond0", "bond", nic="bnxt", members=members)))
    found = PLATFORM.realize(NodeState(ports=(PortState("bond0", "bond", WISH),)), hw)
    assert [str(f.severity) for f in found.faults] == faults
    assert found.state.ports[0].settings == PortSettings()


def test_ports_of_other_nics_are_left_alone() -> None:
    other = NodeState(ports=(PortState("eth0", "physical", WISH),))
    assert PLATFORM.realize(other, HW).state is other


ABSENT = st.sampled_from([UNMANAGED, UNKNOWN, NOT_APPLICABLE])
SHARES = st.one_of(
    ABSENT,
    st.none(),
    st.builds(Share, st.just("strict"), st.just(0), st.sampled_from([UNMANAGED, None, 7])),
    st.builds(Share, st.just("dwrr"), st.integers(0, 120), st.sampled_from([UNMANAGED, None, 33])),
)
BITS = st.one_of(ABSENT, st.booleans())
CLASSES = st.builds(
    ClassState,
    pfc_tx=BITS,
    pfc_rx=BITS,
    watchdog=BITS,
    ecn=st.one_of(ABSENT, st.none(), st.just(Ecn(Amount(1), Amount(2)))),
    headroom=st.one_of(ABSENT, st.none(), st.just(Amount(9))),
    share=SHARES,
    queue=st.one_of(ABSENT, st.integers(0, 9)),
    group=st.one_of(ABSENT, st.integers(0, 7)),
)
NUMBERS = st.one_of(ABSENT, st.integers(0, 9000))
ROLES = st.one_of(ABSENT, st.sampled_from([(), (3,), (3, 4)]))
PARAMETERS = st.sampled_from(
    [
        (),
        (("rp_g", "5"), ("rp_roce_prio", "none")),
        (("np_x", "1"), ("rp_roce_prio", "4")),
        (("rp_cc_mode", UNKNOWN), ("rp_ecn_marking", "0"), ("rp_roce_prio", "nine")),
    ]
)
SETTINGS = st.builds(
    PortSettings,
    qos=st.builds(
        QosState,
        trust=st.one_of(ABSENT, st.sampled_from(["dscp", "pcp", "both", "port"])),
        dscp_to_priority=st.one_of(ABSENT, st.just(DSCP), st.just(tuple(d >> 3 for d in range(64)))),
        pcp_to_priority=st.one_of(ABSENT, st.just(tuple(range(8))), st.just((0,) * 8)),
        classes=st.tuples(*[CLASSES] * 8),
        watchdog=st.builds(WatchdogTimers, NUMBERS, NUMBERS, NUMBERS, st.one_of(ABSENT, st.just("drop"))),
        dcbx=st.one_of(ABSENT, st.sampled_from(["none", "ieee", "cee", "firmware"])),
        global_pause=BITS,
        cable_m=NUMBERS,
    ),
    marking=st.builds(
        Marking,
        rdma_cm_tos=st.one_of(ABSENT, st.integers(0, 255)),
        traffic_class=st.one_of(ABSENT, st.none(), st.integers(0, 255)),
        roce_v2=BITS,
        cnp_dscp=st.one_of(ABSENT, st.integers(0, 63)),
        cnp_priority=st.one_of(ABSENT, st.integers(0, 7)),
        np=ROLES,
        rp=ROLES,
        parameters=PARAMETERS,
    ),
)


@given(SETTINGS, st.sampled_from([HW, OLD_FIRMWARE, EIGHT, INBOX, DEBUGFS]))
@settings(max_examples=200, deadline=None)
def test_realize_twice_is_realize_once(wish: PortSettings, hw: Hardware) -> None:
    once = PLATFORM.realize(node(wish), hw)
    twice = PLATFORM.realize(once.state, hw)
    assert twice.state == once.state
    assert twice.faults == ()


# ---------------------------------------------------------------- parse and change

CONFIGFS_BLANK = (
    "cc_mode=0x1\ncnp_dscp=0x0\ncnp_prio=0x0\ndisable_prio_vlan_tx=0x1\necn_enable=0x0\necn_marking=0x0\n"
    "min_time_bet_cnp=0x0\nroce_dscp=0x0\napply\n"
    "ecn status (ecn_enable)\t: Disabled\necn marking (ecn_marking)\t: Not-ECT\n"
    "congestion control mode (cc_mode)\t: DCQCN-P\nsend priority vlan (VLAN 0)\t: Disabled"
)
VERBS = (
    "hca_id:\tbnxt_re0\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t233.2.77.9\n"
    "\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
    "\t\t\tactive_mtu:\t\t4096 (5)\n\t\t\tlink_layer:\t\tEthernet\n"
)
ETS_BLANK = (
    '{"ets_cap":3,"tc_bw":[0,0,0,0,0,0,0,0],"tc_tsa":["strict","strict","strict","strict","strict","strict",'
    '"strict","strict"],"prio_tc":[0,0,0,0,0,0,0,0]}'
)
BLANK: dict[str, tuple[str, int]] = {
    "stack": ("configfs", 0),
    "rdma": ("bnxt_re0", 0),
    "bdf": ("0000:06:00.0", 0),
    "tool": ("dcb", 0),
    "pfc": ('{"pfc_cap":2,"prio_pfc":[false,false,false,false,false,false,false,false]}', 0),
    "ets": (ETS_BLANK, 0),
    "app": ("{}", 0),
    "dcbx": ("host ieee ", 0),
    "pause": ("Pause parameters for eth8:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton", 0),
    "profile": ("\tfw_service_prof_type_sup : 1", 0),
    "cc": (CONFIGFS_BLANK, 0),
    "tos": ("0", 0),
    "mode": ("RoCE v2", 0),
    "driver": (
        "driver: bnxt_en\nversion: 1.10.3-233.0.152.2\nfirmware-version: 233.2.77.9/pkg 233.2.78.0\n",
        0,
    ),
    "verbs": (VERBS, 0),
    "gids": ("types/3:RoCE v2\nndevs/3:eth8\ngids/3:0000:0000:0000:0000:0000:ffff:c000:0201\n", 0),
    "conf": ("cat: /etc/fabric/qos/eth8.conf: No such file or directory", 1),
    "wants": ("", 1),
}


def answer(parts: Mapping[str, tuple[str, int]], hw: Hardware = HW) -> dict[str, str]:
    text = "".join(f"@@{name} eth8\n{body}\n@={status}\n" for name, (body, status) in parts.items())
    return dict.fromkeys(PLATFORM.questions(hw), text)


def observe(hw: Hardware = HW, **parts: tuple[str, int]) -> Observation:
    return PLATFORM.parse(answer({**BLANK, **parts}, hw), hw)


def change(settings: PortSettings = WISH, hw: Hardware = HW, **parts: tuple[str, int]) -> Change:
    return PLATFORM.change(observe(hw, **parts), PLATFORM.realize(node(settings), hw).state, hw)


def commands(found: Change) -> tuple[str, ...]:
    return tuple(line for line in found.lines if not line.startswith(("/etc/", "systemctl")))


def conf_of(found: Change) -> str:
    return next(s.text or "" for s in found.commit if isinstance(s, Put) and s.path.endswith("eth8.conf"))


def test_question_is_one_line_without_writing() -> None:
    (question,) = PLATFORM.questions(HW)
    assert "\n" not in question and len(question) < 5000 and question.count("'") == 4
    for word in ("pfc set", "app add", "ets set", "ethtool -A", "setoption", "-enable", '> "$f', "0x1"):
        assert word not in question
    assert PLATFORM.questions(replace(HW, ports=())) == ()


def test_a_blank_port() -> None:
    found = observe()
    shown = found.running.ports[0].settings
    assert (shown.qos.trust, shown.qos.dcbx, shown.qos.global_pause) == ("dscp", "none", True)
    assert shown.qos.dscp_to_priority == (0,) * 64
    assert (shown.marking.np, shown.marking.cnp_dscp, shown.marking.cnp_priority) == ((), 0, 0)
    assert dict(shown.marking.parameters)["rp_roce_prio"] == "none"
    assert found.stored is not None
    boot = found.stored.ports[0].settings
    assert boot.qos.classes[3].pfc_tx is False and boot.marking.np is UNKNOWN
    assert shown.nic == NicState(
        (), UNMANAGED, UNMANAGED, "233.2.77.9", "1.10.3-233.0.152.2", "ethernet", 4096, (3,)
    )
    assert found.running.system.owners is UNMANAGED
    facts = dict(found.facts)
    assert (facts["tool eth8"], facts["classes eth8"], facts["profile eth8"]) == ("dcb", "3", "1")
    assert found.notes == () and len(found.evidence) == 64


@pytest.mark.parametrize("text", ["", "bash: sh: command not found", "@@pfc eth8\nhalf"])
def test_what_is_not_understood_is_unknown(text: str) -> None:
    found = PLATFORM.parse(dict.fromkeys(PLATFORM.questions(HW), text), HW)
    wanted, _ = realized(WISH)
    assert found.notes
    assert all(item.unknown for item in differences(wanted, found.running.ports[0].settings))
    assert PLATFORM.change(found, node(wanted), HW).empty


@pytest.mark.parametrize(
    ("parts", "note"),
    [
        ({"stack": ("none", 0)}, "congestion control is in none, the inventory says configfs"),
        ({"profile": ("grep: No such file", 2)}, "service profile could not be read"),
        ({"tool": ("", 0)}, "neither dcb, niccli nor bnxtqos answers"),
        ({"vendor": ("ENABLE_FC=1\nFC_MODE=3\n", 0)}, "bnxt_re_conf programs the port again"),
        ({"vendor": ("# nothing is said, which means 1\n", 0)}, "bnxt_re_conf programs the port again"),
        ({"rdma": ("bnxt_re7", 0)}, "its RDMA device is bnxt_re7, the inventory says bnxt_re0"),
        ({"driver": ("driver: ice\nversion: 6.1\n", 0)}, "its driver is ice, not bnxt_en"),
        ({"device": ("", 0), "nv support_rdma": ("support_rdma = False\n", 0)}, "support_rdma is off"),
    ],
)
def test_notes_of_an_observation(parts: dict[str, tuple[str, int]], note: str) -> None:
    assert any(note in one for one in observe(HW, **parts).notes)


def test_a_vendor_package_that_does_nothing_is_nobody() -> None:
    found = observe(HW, vendor=("ENABLE_FC=0\n", 0), **{"nv support_rdma": ("support_rdma = True", 0)})
    assert found.notes == () and found.running.system.owners is UNMANAGED


def test_who_else_writes_the_port() -> None:
    found = observe(HW, vendor=("ENABLE_FC=1\n", 0), dcbx=("lld-managed ieee ", 0))
    assert found.running.system.owners == (FIRMWARE_AGENT.format("eth8"), "bnxt_re_conf")


CC = "/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc"
WORKED_LINES = (
    "ethtool -A eth8 rx off tx off",
    "dcb ets set dev eth8 tc-tsa 0:ets 1:ets 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict"
    " tc-bw 0:50 1:50 2:0 3:0 4:0 5:0 6:0 7:0 prio-tc 0:0 1:0 2:0 3:1 4:0 5:0 6:2 7:0",
    "dcb pfc set dev eth8 prio-pfc all:off 3:on",
    "dcb app add dev eth8 dgram-port-prio 4791:3",
    "dcb app add dev eth8 dscp-prio 26:3",
    "dcb app add dev eth8 dscp-prio 48:6",
    "mkdir -p /sys/kernel/config/bnxt_re/bnxt_re0",
    f"echo -n 0x1 > {CC}/ecn_marking",
    f"echo -n 0x1 > {CC}/ecn_enable",
    f"echo -n 0x30 > {CC}/cnp_dscp",
    f"echo -n 0x4 > {CC}/min_time_bet_cnp",
    f"echo -n 0x1 > {CC}/apply",
    "rmdir /sys/kernel/config/bnxt_re/bnxt_re0",
    "cma_roce_tos -d bnxt_re0 -p 1 -t 104",
)


def test_change_of_a_blank_port() -> None:
    found = change()
    assert commands(found) == WORKED_LINES
    conf = conf_of(found)
    assert "\nPFC=0,0,0,1,0,0,0,0\n" in conf and "RDMA=bnxt_re0" in conf and "\nROCE=3\n" in conf
    apply = [step for step in found.commit if isinstance(step, Call) and step.argv[0].endswith("fabric-qos")]
    assert [step.argv for step in apply] == [("/usr/local/sbin/fabric-qos", "eth8")]
    assert apply[0].unless[:3] == ("/usr/local/sbin/fabric-qos", "--check", "eth8")
    (undo,) = found.undo
    assert isinstance(undo, Call)
    assert {"PFC=0,0,0,0,0,0,0,0", "ROCE=none", "ECN=0", "PAUSE=on", "CMA_TOS=0", "MARK=0"} <= set(undo.argv)
    assert found.level == Disturbs.PORT_BOUNCE and found.unverified == () and found.blocked == ()


def test_lines_for_old_firmware_write_all_points_before_apply() -> None:
    found = change(WISH, OLD_FIRMWARE, profile=("fw_service_prof_type_sup : 0", 0))
    assert commands(found)[-10:-1] == (
        f"echo -n 0x1 > {CC}/ecn_marking",
        f"echo -n 0x1 > {CC}/ecn_enable",
        f"echo -n 0x3 > {CC}/roce_prio",
        f"echo -n 0x1a > {CC}/roce_dscp",
        f"echo -n 0x6 > {CC}/cnp_prio",
        f"echo -n 0x30 > {CC}/cnp_dscp",
        f"echo -n 0x4 > {CC}/min_time_bet_cnp",
        f"echo -n 0x1 > {CC}/apply",
        "rmdir /sys/kernel/config/bnxt_re/bnxt_re0",
    )
    assert "prio-tc 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0" in commands(found)[1]


def test_lines_of_the_kernels_driver() -> None:
    base = {key: value for key, value in BLANK.items() if key != "cc"}
    shown = {**base, "stack": ("debugfs", 0), "cc_debug": (DEBUG_BLANK, 0)}
    seen = PLATFORM.parse(answer(shown, DEBUGFS), DEBUGFS)
    found = PLATFORM.change(seen, PLATFORM.realize(node(WISH), DEBUGFS).state, DEBUGFS)
    debug = "/sys/kernel/debug/bnxt_re/0000:06:00.0/cc_config"
    assert commands(found)[6:] == (
        f"echo -n 1 > {debug}/tos_ecn",
        f"echo -n 1 > {debug}/enable_cc",
        f"echo -n 48 > {debug}/alt_vlan_dscp",
        "cma_roce_tos -d bnxt_re0 -p 1 -t 104",
    )


DEBUG_BLANK = (
    "alt_vlan_dscp=0\nalt_vlan_pcp=0\ncc_mode=1\nenable_cc=0\nrun_avg_weight_g=8\ntos_dscp=0\ntos_ecn=0"
)

QOS_BLANK = fixture("niccli_blank")["sections"]["qos"].rstrip()
WITHOUT_DCBX = replace(WISH, qos=replace(WISH.qos, dcbx=UNMANAGED))


@pytest.mark.parametrize(
    ("tool", "lines"),
    [
        (
            "niccli --dev 0000:06:00.0",
            (
                "niccli --dev 0000:06:00.0 qos --ets --tsa 0:ets,1:ets,2:strict"
                " --up2tc 0:0,1:0,2:0,3:1,4:0,5:0,6:2,7:0 --tcbw 50,50",
                "niccli --dev 0000:06:00.0 qos --pfc --enable 3",
                "niccli --dev 0000:06:00.0 qos --apptlv --add --app 3,3,4791",
                "niccli --dev 0000:06:00.0 qos --apptlv --add --app 3,5,26",
                "niccli --dev 0000:06:00.0 qos --apptlv --add --app 6,5,48",
            ),
        ),
        (
            "niccli -dev 0000:06:00.0",
            (
                "echo ets -tsa 0:ets,1:ets,2:strict -up2tc 0:0,1:0,2:0,3:1,4:0,5:0,6:2,7:0 -tcbw 50,50"
                " | niccli -dev 0000:06:00.0",
                "echo pfc -enable 3 | niccli -dev 0000:06:00.0",
                "echo apptlv -add -app 3,3,4791 | niccli -dev 0000:06:00.0",
                "echo apptlv -add -app 3,5,26 | niccli -dev 0000:06:00.0",
                "echo apptlv -add -app 6,5,48 | niccli -dev 0000:06:00.0",
            ),
        ),
        (
            "niccli -i 1",
            (
                "niccli -i 1 set_ets tsa=0:ets,1:ets,2:strict priority2tc=0:0,1:0,2:0,3:1,4:0,5:0,6:2,7:0"
                " tcbw=50,50",
                "niccli -i 1 set_pfc enabled=3",
                "niccli -i 1 set_apptlv app=3,3,4791",
                "niccli -i 1 set_apptlv app=3,5,26",
                "niccli -i 1 set_apptlv app=6,5,48",
            ),
        ),
    ],
)
def test_lines_of_broadcoms_tools(tool: str, lines: tuple[str, ...]) -> None:
    base = {key: value for key, value in BLANK.items() if key not in ("pfc", "ets", "app", "dcbx")}
    shown = {**base, "tool": (tool, 0), "qos": (QOS_BLANK, 0)}
    wanted = PLATFORM.realize(node(WITHOUT_DCBX), HW).state
    found = PLATFORM.change(PLATFORM.parse(answer(shown), HW), wanted, HW)
    assert commands(found)[1:6] == lines
    assert found.blocked == ()


def test_without_dcb_nobody_tells_who_negotiates() -> None:
    base = {key: value for key, value in BLANK.items() if key not in ("pfc", "ets", "app", "dcbx")}
    shown = {**base, "tool": ("niccli -i 1", 0), "qos": (QOS_BLANK, 0)}
    found = PLATFORM.change(PLATFORM.parse(answer(shown), HW), PLATFORM.realize(node(WISH), HW).state, HW)
    assert [item.path for item in found.blocked] == ["ports.eth8.qos.dcbx"]


def test_the_largest_mtu() -> None:
    port = PortState("eth8", settings=PortSettings(mtu=Mtu(ip=MTU_MAX)))
    assert LINUX.realize(NodeState(ports=(port,)), HW).state.ports[0].settings.mtu.ip == 9500


def test_a_port_of_the_first_roce() -> None:
    assert "cma_roce_mode -d bnxt_re0 -p 1 -m 2" in commands(change(mode=("IB/RoCE v1", 0)))


def shown_after(dscp: str = '[[26,3," "],[48,6," "]]', roce: str = "3") -> dict[str, tuple[str, int]]:
    """What the tools print once the worked example is in force."""
    ets = (
        '{"ets_cap":3,"tc_bw":[50,50,0,0,0,0,0,0],"tc_tsa":["ets","ets","strict","strict","strict","strict",'
        '"strict","strict"],"prio_tc":[0,0,0,1,0,0,2,0]}'
    )
    cc = (
        "cc_mode=0x1\ncnp_dscp=0x30\ndisable_prio_vlan_tx=0x1\necn_enable=0x1\necn_marking=0x1\n"
        "min_time_bet_cnp=0x4\napply\n"
        "ecn status (ecn_enable)\t: Enabled\necn marking (ecn_marking)\t: ECT(1)\n"
        "congestion control mode (cc_mode)\t: DCQCN-P\nsend priority vlan (VLAN 0)\t: Disabled\n"
        "cnp prio (cnp_prio)\t: 6\ncnp dscp (cnp_dscp)\t: 48"
    )
    return {
        "pfc": ('{"prio_pfc":[false,false,false,true,false,false,false,false]}', 0),
        "ets": (ets, 0),
        "app": (f'{{"dscp_prio":{dscp},"dgram_port_prio":[[4791,{roce}]]}}', 0),
        "pause": ("Autonegotiate:\toff\nRX:\t\toff\nTX:\t\toff", 0),
        "cc": (cc, 0),
        "tos": ("104", 0),
    }


def test_only_what_differs_is_written() -> None:
    first = change()
    done = {**BLANK, **shown_after(), "conf": (conf_of(first).rstrip(), 0), "wants": ("yes", 0)}
    wanted = PLATFORM.realize(node(WISH), HW).state
    seen = PLATFORM.parse(answer(done), HW)
    assert differences(wanted, seen.running) == () and differences(wanted, seen.stored) == ()
    assert PLATFORM.change(seen, wanted, HW).empty
    # Somebody turns PFC off: one command, and the settings file is as it was.
    again = PLATFORM.change(PLATFORM.parse(answer({**done, "pfc": BLANK["pfc"]}), HW), wanted, HW)
    assert commands(again) == ("dcb pfc set dev eth8 prio-pfc all:off 3:on",)
    assert conf_of(again) == conf_of(first)
    # Somebody takes RoCE's priority away, which no other field shows.
    gone = '{"dscp_prio":[[26,3],[48,6]]}'
    again = PLATFORM.change(PLATFORM.parse(answer({**done, "app": (gone, 0)}), HW), wanted, HW)
    assert commands(again) == ("dcb app add dev eth8 dgram-port-prio 4791:3",)
    assert {d.path for d in again.differences} == {
        "ports.eth8.marking.parameters.rp_roce_prio",
        "ports.eth8.marking.np",
        "ports.eth8.marking.rp",
    }
    # Live is right, the unit was disabled: saved without touching the port.
    lost = PLATFORM.change(PLATFORM.parse(answer({**done, "wants": ("", 1)}), HW), wanted, HW)
    assert not lost.empty and commands(lost) == () and lost.level == Disturbs.NOTHING and lost.undo == ()


def test_the_vendors_default_becomes_ours() -> None:
    """CNPs on priority 7: old entries go before the map of priorities changes, and all come back after it."""
    vendor = shown_after('[[26,3," "],[48,7," "]]')
    vendor["ets"] = (vendor["ets"][0].replace("0,0,0,1,0,0,2,0", "0,0,0,1,0,0,0,2"), 0)
    found = change(WISH, HW, **vendor)
    assert commands(found) == (
        "dcb pfc set dev eth8 prio-pfc all:off",
        "dcb app del dev eth8 dscp-prio 26:3 48:7",
        "dcb app del dev eth8 dgram-port-prio 4791:3",
        "dcb ets set dev eth8 tc-tsa 0:ets 1:ets 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict"
        " tc-bw 0:50 1:50 2:0 3:0 4:0 5:0 6:0 7:0 prio-tc 0:0 1:0 2:0 3:1 4:0 5:0 6:2 7:0",
        "dcb pfc set dev eth8 prio-pfc all:off 3:on",
        "dcb app add dev eth8 dgram-port-prio 4791:3",
        "dcb app add dev eth8 dscp-prio 26:3",
        "dcb app add dev eth8 dscp-prio 48:6",
    )
    (undo,) = found.undo
    assert isinstance(undo, Call)
    assert {"PFC=0,0,0,1,0,0,0,0", "ROCE=3", "PRIO_TC=0,0,0,1,0,0,0,2"} <= set(undo.argv)


def test_unreadable_settings_are_not_written_and_stay_in_the_file() -> None:
    conf = conf_of(change()).replace("PAUSE=off", "PAUSE=on")
    unread = {"pause": ("netlink error: Operation not supported", 1)}
    found = change(WISH, HW, **unread, conf=(conf.rstrip(), 0), wants=("yes", 0))
    assert [item.path for item in found.blocked] == ["ports.eth8.qos.global_pause"]
    assert not any("ethtool -A" in line for line in found.lines)
    assert "PAUSE=on" in conf_of(found)
    bare = change(WISH, HW, **unread)
    assert "PAUSE" not in conf_of(bare) and bare.blocked


def test_half_of_a_table_that_cannot_be_read_blocks_all_of_it() -> None:
    text = BLANK["ets"][0].replace(
        '"strict","strict","strict","strict"', '"strict","strict","cbs","strict"', 1
    )
    text = text.replace('"prio_tc":[0,0,0,0,0,0,0,0]', '"prio_tc":[0,0,2,0,0,0,0,0]')
    found = change(ets=(text, 0))
    assert not any("ets set" in line for line in found.lines) and "TSA" not in conf_of(found)
    assert any(item.path == "ports.eth8.qos.classes.2.share" for item in found.blocked)


def test_two_priorities_of_one_dscp_block_the_map() -> None:
    found = change(app=('{"dscp_prio":[[48,6],[48,7]]}', 0))
    assert any(item.path == "ports.eth8.qos.dscp_to_priority" for item in found.blocked)
    assert not any("dscp-prio" in line for line in found.lines)


OBSTACLES = [
    ({"dcbx": ("lld-managed ieee ", 0)}, "firmware runs the LLDP agent"),
    ({"profile": ("fw_service_prof_type_sup : 0", 0)}, "bnxt_service_profile: 0"),
    (
        {"ets": (BLANK["ets"][0].replace('"ets_cap":3', '"ets_cap":2'), 0)},
        "has 2 traffic classes and 3 are needed",
    ),
]


@pytest.mark.parametrize(("parts", "reason"), OBSTACLES, ids=["firmware", "profile", "classes"])
def test_a_port_that_cannot_be_written_says_why(parts: dict[str, tuple[str, int]], reason: str) -> None:
    found = change(WISH, HW, **parts)
    assert found.empty and found.blocked
    assert {path for path, _ in found.reasons} == {item.path for item in found.blocked}
    assert all(reason in why for _, why in found.reasons)


def test_the_other_ports_go_on() -> None:
    second = replace(PORT, name="eth9", rdma="bnxt_re1")
    hw = replace(HW, ports=(*HW.ports, second))
    text = "".join(answer({**BLANK, "dcbx": ("lld-managed ieee ", 0)}, hw).values())
    more = "".join(f"@@{name} eth9\n{body}\n@={status}\n" for name, (body, status) in BLANK.items())
    seen = PLATFORM.parse(dict.fromkeys(PLATFORM.questions(hw), text + more), hw)
    wish = NodeState(ports=tuple(PortState(name, "physical", WISH) for name in ("eth8", "eth9")))
    found = PLATFORM.change(seen, PLATFORM.realize(wish, hw).state, hw)
    assert found.blocked and not any(" eth8 " in line for line in found.lines)
    assert "dcb pfc set dev eth9 prio-pfc all:off 3:on" in found.lines


def test_back_to_what_was_recorded() -> None:
    first = change()
    wanted = PLATFORM.realize(node(WISH), HW).state
    before = owned_part(observe().running, wanted)
    done = {**BLANK, **shown_after(), "conf": (conf_of(first).rstrip(), 0), "wants": ("yes", 0)}
    back = PLATFORM.change(PLATFORM.parse(answer(done), HW), PLATFORM.realize(before, HW).state, HW)
    rows = dict(line.split("=", 1) for line in conf_of(back).splitlines() if "=" in line)
    assert {
        key: rows[key] for key in ("PFC", "TSA", "PRIO_TC", "ROCE", "ECN", "MARK", "CMA_TOS", "PAUSE")
    } == {
        "PFC": "0,0,0,0,0,0,0,0",
        "TSA": "strict,-,-,-,-,-,-,-",
        "PRIO_TC": "0,0,0,0,0,0,0,0",
        "ROCE": "none",
        "ECN": "0",
        "MARK": "0",
        "CMA_TOS": "0",
        "PAUSE": "on",
    }
    assert commands(back)[:5] == (
        "ethtool -A eth8 rx on tx on",
        "dcb pfc set dev eth8 prio-pfc all:off",
        "dcb app del dev eth8 dscp-prio 26:3 48:6",
        "dcb app del dev eth8 dgram-port-prio 4791:3",
        "dcb ets set dev eth8 tc-tsa 0:strict 1:strict 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict"
        " tc-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 prio-tc 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0",
    )


def test_the_full_rendering_holds_the_same_files() -> None:
    wanted = PLATFORM.realize(node(WISH), HW).state
    context = PLATFORM.context(wanted, HW)
    rendered = {
        f"/{item.path}": (render(item.template, item.context or context), item.mode)
        for item in PLATFORM.artifacts(wanted, HW)
    }
    assert rendered == {s.path: (s.text, s.mode) for s in change().commit if isinstance(s, Put)}
    assert PLATFORM.artifacts(node(PortSettings()), HW) == ()


def test_disturbances_follow_what_changes() -> None:
    assert change(PortSettings(marking=Marking(rdma_cm_tos=104))).level == Disturbs.NOTHING
    assert change(PortSettings(qos=QosState(trust="both"))).level == Disturbs.LOSS
    assert change(PortSettings(qos=QosState(global_pause=False))).level == Disturbs.PORT_BOUNCE
    sources = {item.source for item in change().disturbs}
    assert any("bnxt_queue_remap" in source for source in sources)
