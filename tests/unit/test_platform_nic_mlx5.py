"""mlx5 ports: what is realized, read and changed."""

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

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import _nic_mlx5_knobs as knobs
from rdma_fabric.platforms import _nic_mlx5_read as reader
from rdma_fabric.platforms._contract import Call, Change, Disturbs, Put
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms.nic_mlx5 import PLATFORM
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Absent,
    Amount,
    ClassState,
    Ecn,
    Marking,
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

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "nic_mlx5"
PORT = PortHardware("eth0", nic="mlx5", speed_gbps=400, rdma="mlx5_0", bdf="0000:1b:00.0")
HW = Hardware(("linux", "nic_mlx5"), ports=(PORT, PortHardware("eth9", nic="generic")))
INBOX = replace(HW, options=(("stack", "inbox"),))

DSCP = tuple({26: 3, 48: 6}.get(point, 0) for point in range(64))


def classes(**by_priority: ClassState) -> tuple[ClassState, ...]:
    off = ClassState(pfc_tx=False, pfc_rx=False, watchdog=False)
    return tuple(by_priority.get(f"p{priority}", off) for priority in range(8))


ON = ClassState(pfc_tx=True, pfc_rx=True, watchdog=True, share=Share("dwrr", 50))
WISH = PortSettings(
    qos=QosState(
        trust="dscp",
        dscp_to_priority=DSCP,
        classes=classes(
            p0=ClassState(pfc_tx=False, pfc_rx=False, share=Share("dwrr", 50)),
            p3=ON,
            p6=ClassState(pfc_tx=False, pfc_rx=False, share=Share("strict")),
        ),
        watchdog=WatchdogTimers(200, 400, UNMANAGED, "drop"),
        dcbx="none",
        global_pause=False,
        cable_m=20,
    ),
    marking=Marking(104, 104, True, 48, 6, (3,), (3,), (("np_min_time_between_cnps", "4"),)),
)


def node(settings: PortSettings) -> NodeState:
    return NodeState(ports=(PortState("eth0", "physical", settings),))


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

FIXTURES = sorted(path.stem for path in OBSERVE.glob("*.yaml") if path.stem != "small")


@cache
def fixture(name: str) -> Any:
    return yaml.safe_load((OBSERVE / f"{name}.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", FIXTURES)
def test_read_back(name: str) -> None:
    case = fixture(name)
    if case["reader"] == "mlnx_qos":
        parts = {"qos eth0": Section(case["text"], 0, True)}
    else:
        status = case.get("status", 0)
        parts = {f"{key} eth0": Section(text, status, True) for key, text in case["sections"].items()}
    found = reader.port_knobs(parts, "eth0")
    assert found == case["knobs"]
    settings = knobs.settings_of(found, PORT, "ofed")
    for path, expected in case["neutral"].items():
        assert plain(at(settings, path)) == expected, path
    notes = " / ".join(reader.notes(parts, "eth0"))
    assert [note for note in case.get("notes", []) if note not in notes] == []
    assert bool(notes) == bool(case.get("notes", []))


@pytest.mark.parametrize("row", fixture("small")["rows"], ids=lambda row: f"{row[0]} {row[1][:20]!r}")
def test_small_read_backs(row: list[Any]) -> None:
    name, text, status, expected = row
    assert getattr(reader, name)(Section(text.rstrip("\n"), status, True)) == expected


@pytest.mark.parametrize("row", fixture("small")["cma"], ids=lambda row: repr(row[0][:30]))
def test_rdma_cm_read_backs(row: list[Any]) -> None:
    tos, mode = (Section(row[i].rstrip("\n"), row[i + 1], True) for i in (0, 2))
    assert qos_file.rdma_cm(tos, mode) == row[4]


@pytest.mark.parametrize("reader_name", ["pause", "stall", "tclass", "ecn", "debugfs"])
def test_what_was_not_asked_is_not_known(reader_name: str) -> None:
    assert getattr(reader, reader_name)(Section()) == {}


@given(st.text("tc: 0123456789,priortysalbwg%.unlimtedGbps\tDCBXmode\n", max_size=200))
@settings(max_examples=60)
def test_no_output_makes_a_reader_fail(text: str) -> None:
    knobs.settings_of(reader.mlnx_qos(text), PORT, "ofed")


# ---------------------------------------------------------------- knobs


@pytest.mark.parametrize("stack", ["ofed", "inbox"])
def test_knobs_and_settings_are_one_thing(stack: str) -> None:
    """What is written for a realized state is what that state reads as."""
    hw = INBOX if stack == "inbox" else HW
    wanted, _ = realized(WISH, hw)
    again = knobs.settings_of(knobs.knobs_of(wanted, PORT), PORT, stack)
    assert differences(node(wanted), node(again)) == ()


def test_the_driver_defaults_read_as_a_blank_port() -> None:
    printed = BLANK["qos"][0]
    shown = knobs.settings_of(
        {**reader.mlnx_qos(printed), **qos_file.RDMA_CM_DEFAULTS, "TCLASS": "-1"}, PORT, "ofed"
    )
    default = knobs.settings_of(knobs.DEFAULTS, PORT, "ofed")
    # DCBX mode is the firmware's choice; what a tool did not print is on neither side.
    assert [d.path for d in differences(default, shown) if not d.unknown] == ["qos.dcbx"]


@pytest.mark.parametrize(
    ("name", "neutral"),
    [
        ("np_min_time_between_cnps", "np_min_time_between_cnps"),
        ("rp_ai_rate", "rp_ai_rate"),
        ("rp_rpg_ai_rate", "rp_ai_rate"),
        ("rp_clamp_tgt_rate_after_time_inc", "rp_clamp_tgt_rate_ati"),
        ("np_cnp_802p_prio", "np_cnp_prio"),
        ("rp_nonsense", ""),
    ],
)
def test_parameters_go_by_both_drivers_names(name: str, neutral: str) -> None:
    assert knobs.neutral_parameter(name) == neutral


def test_every_owned_field_has_a_knob() -> None:
    """A field that differs must lead to a key of the settings file, else it would never be repaired."""
    wanted, _ = realized(
        replace(WISH, qos=replace(WISH.qos, classes=tuple(replace(c, group=0) for c in WISH.qos.classes)))
    )
    unknown = knobs.settings_of({}, PORT, "ofed")
    written = knobs.knobs_of(wanted, PORT)
    for item in differences(wanted, unknown):
        keys = knobs.keys_of(item.path)
        assert keys and set(keys) & set(written), item.path


# ---------------------------------------------------------------- realize


def test_realize_the_worked_example() -> None:
    found, faults = realized(WISH)
    assert found.qos.trust == "dscp" and found.qos.dscp_to_priority == DSCP
    assert [plain(c.share)["weight"] for c in found.qos.classes] == [50, 0, 0, 50, 0, 0, 0, 0]
    assert [c.queue for c in found.qos.classes] == list(range(8))
    assert [c.pfc_tx for c in found.qos.classes] == [False] * 3 + [True] + [False] * 4
    assert {c.watchdog for c in found.qos.classes} == {NOT_APPLICABLE, UNMANAGED}
    assert found.qos.watchdog == WatchdogTimers(200, NOT_APPLICABLE, UNMANAGED, NOT_APPLICABLE)
    assert found.marking.np == (3,) and found.marking.traffic_class == 104
    assert faults == [("note", "qos.watchdog.restore_ms"), ("note", "qos.watchdog.action")]


QOS_TABLE: list[tuple[dict[str, Any], str, Any, list[tuple[str, str]]]] = [
    ({"trust": "both"}, "trust", "dscp", [("note", "qos.trust")]),
    ({"trust": "port"}, "trust", NOT_APPLICABLE, [("warning", "qos.trust")]),
    ({"trust": "pcp", "dscp_to_priority": DSCP}, "dscp_to_priority", NOT_APPLICABLE, []),
    ({"trust": "pcp", "pcp_to_priority": tuple(range(8))}, "pcp_to_priority", tuple(range(8)), []),
    (
        {"trust": "pcp", "pcp_to_priority": (0, 0, 2, 3, 4, 5, 6, 7)},
        "pcp_to_priority",
        tuple(range(8)),
        [("warning", "qos.pcp_to_priority")],
    ),
    ({"dcbx": "ieee"}, "dcbx", "firmware", [("note", "qos.dcbx")]),
    ({"dcbx": "firmware"}, "dcbx", "firmware", []),
    ({"cable_m": 1000}, "cable_m", 999, [("note", "qos.cable_m")]),
    ({"cable_m": 0}, "cable_m", 1, [("note", "qos.cable_m")]),
    ({"cable_m": 999}, "cable_m", 999, []),
    ({"watchdog": WatchdogTimers(79)}, "watchdog.detect_ms", 80, [("note", "qos.watchdog.detect_ms")]),
    ({"watchdog": WatchdogTimers(8001)}, "watchdog.detect_ms", 8000, [("note", "qos.watchdog.detect_ms")]),
    ({"watchdog": WatchdogTimers(0)}, "watchdog.detect_ms", 0, []),
    ({"watchdog": WatchdogTimers(80)}, "watchdog.detect_ms", 80, []),
]


@pytest.mark.parametrize(("wish", "field", "used", "faults"), QOS_TABLE)
def test_realize_qos(wish: dict[str, Any], field: str, used: Any, faults: list[tuple[str, str]]) -> None:
    found, reported = realized(PortSettings(qos=QosState(**wish)))
    assert at(found.qos, field) == used
    assert reported == faults


CLASS_TABLE: list[tuple[ClassState, dict[str, Any], list[str]]] = [
    (ClassState(pfc_tx=False, pfc_rx=True), {"pfc_tx": True, "pfc_rx": True}, ["warning"]),
    (ClassState(ecn=Ecn(Amount(1), Amount(2))), {"ecn": NOT_APPLICABLE}, []),
    (ClassState(ecn=None, watchdog=True), {"ecn": NOT_APPLICABLE, "watchdog": NOT_APPLICABLE}, []),
    (ClassState(headroom=Amount(100000)), {"headroom": NOT_APPLICABLE}, ["warning"]),
    (ClassState(headroom=None), {"headroom": NOT_APPLICABLE}, []),
    (ClassState(), {"queue": UNMANAGED, "share": UNMANAGED, "group": UNMANAGED}, []),
    (ClassState(share=Share("strict", 0, 10)), {"share": Share("strict", 0, 10), "queue": 3}, []),
    (ClassState(share=None), {"share": None, "queue": 3}, []),
]


@pytest.mark.parametrize(("wish", "used", "faults"), CLASS_TABLE)
def test_realize_classes(wish: ClassState, used: dict[str, Any], faults: list[str]) -> None:
    found, reported = realized(
        PortSettings(qos=QosState(classes=(ClassState(),) * 3 + (wish,) + (ClassState(),) * 4))
    )
    assert {name: getattr(found.qos.classes[3], name) for name in used} == used
    assert [severity for severity, _ in reported] == faults


@pytest.mark.parametrize(
    ("weights", "realized_weights"),
    [
        ({0: 50, 3: 50}, {0: 50, 3: 50}),
        ({0: 1, 3: 1, 5: 1}, {0: 34, 3: 33, 5: 33}),
        ({0: 10, 3: 30}, {0: 25, 3: 75}),
        ({0: 99, 3: 2}, {0: 98, 3: 2}),
        ({0: 0}, {0: 100}),
    ],
)
def test_weights_add_up_to_a_hundred(weights: dict[int, int], realized_weights: dict[int, int]) -> None:
    wish = tuple(
        ClassState(share=Share("dwrr", weights[p])) if p in weights else ClassState() for p in range(8)
    )
    found, faults = realized(PortSettings(qos=QosState(classes=wish)))
    got = [one.share.weight for one in found.qos.classes if isinstance(one.share, Share)]
    assert sum(got) == 100
    assert {p: got[p] for p in realized_weights} == realized_weights
    assert bool(faults) == (weights != realized_weights)


def test_a_cap_is_whole_gigabits() -> None:
    wish = PortSettings(qos=QosState(classes=classes(p6=ClassState(share=Share("strict", 0, 10)))))
    found, faults = realized(wish)
    assert found.qos.classes[6].share == Share("strict", 0, 10) and faults == []
    assert knobs.knobs_of(found, PORT)["RATELIMIT"] == "-,-,-,-,-,-,40,-"
    slow = replace(PORT, speed_gbps=25)
    assert [f.setting for f in PLATFORM.realize(node(wish), replace(HW, ports=(slow,))).faults] == [
        "qos.classes.6.share"
    ]
    without = PLATFORM.realize(node(wish), replace(HW, ports=(replace(PORT, speed_gbps=0),)))
    assert [f.severity for f in without.faults] == [Severity.WARNING]


def test_the_inbox_driver_has_less() -> None:
    found, faults = realized(WISH, INBOX)
    assert (found.marking.np, found.marking.rp, found.marking.traffic_class) == (NOT_APPLICABLE,) * 3
    assert (found.marking.cnp_dscp, found.marking.rdma_cm_tos) == (48, 104)
    assert [one for one in faults if one[1].startswith("marking")] == [
        ("note", "marking.traffic_class"),
        ("note", "marking.np"),
        ("note", "marking.rp"),
    ]
    off = replace(WISH, marking=replace(WISH.marking, np=(), rp=()))
    assert ("warning", "marking.np") in realized(off, INBOX)[1]


def test_unknown_parameters_are_dropped_aloud() -> None:
    wish = PortSettings(marking=Marking(parameters=(("rp_magic", "1"), ("rp_rpg_ai_rate", "10"))))
    found, faults = realized(wish)
    assert found.marking.parameters == (("rp_ai_rate", "10"), ("rp_magic", NOT_APPLICABLE))
    assert faults == [("warning", "marking.parameters.rp_magic")]


def test_the_tos_byte_counts_without_its_ecn_bits() -> None:
    found, _ = realized(PortSettings(marking=Marking(rdma_cm_tos=106, traffic_class=105)))
    assert (found.marking.rdma_cm_tos, found.marking.traffic_class) == (104, 104)
    assert knobs.knobs_of(found, PORT) == {"TCLASS": "106", "CMA_TOS": "106"}
    for text in ("104", "105", "106", "107"):
        assert qos_file.read_tos(text) == 104
    assert qos_file.tos(0) == "0" and qos_file.tos(None) == "-1"


@pytest.mark.parametrize(
    ("members", "named", "faults"), [(("eth0",), True, []), (("eth8",), False, ["error"])]
)
def test_pfc_of_a_bond_belongs_to_its_members(
    members: tuple[str, ...], named: bool, faults: list[str]
) -> None:
    bond = PortHardware("bond0", "bond", nic="mlx5", members=members)
    hw = replace(HW, ports=(PORT, bond))
    wish = NodeState(ports=(PortState("bond0", "bond", WISH),))
    found = PLATFORM.realize(wish, hw)
    assert [str(f.severity) for f in found.faults] == faults
    assert found.state.ports[0].settings == PortSettings()


def test_ports_of_other_nics_are_left_alone() -> None:
    other = NodeState(ports=(PortState("eth9", "physical", WISH),))
    assert PLATFORM.realize(other, HW).state is other


ABSENT = st.sampled_from([UNMANAGED, UNKNOWN, NOT_APPLICABLE])
SHARES = st.one_of(
    ABSENT,
    st.none(),
    st.builds(Share, st.just("strict"), st.just(0), st.sampled_from([UNMANAGED, None, 7, 50])),
    st.builds(Share, st.just("dwrr"), st.integers(0, 100), st.sampled_from([UNMANAGED, None, 33])),
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
SETTINGS = st.builds(
    PortSettings,
    qos=st.builds(
        QosState,
        trust=st.one_of(ABSENT, st.sampled_from(["dscp", "pcp", "both", "port"])),
        dscp_to_priority=st.one_of(ABSENT, st.just(DSCP)),
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
        parameters=st.sampled_from([(), (("rp_rpg_ai_rate", "5"),), (("np_x", "1"),)]),
    ),
)


@given(SETTINGS, st.sampled_from(["", "ofed", "inbox"]))
@settings(max_examples=150, deadline=None)
def test_realize_twice_is_realize_once(wish: PortSettings, stack: str) -> None:
    hw = replace(HW, options=(("stack", stack),) if stack else ())
    once = PLATFORM.realize(node(wish), hw)
    twice = PLATFORM.realize(once.state, hw)
    assert twice.state == once.state
    assert twice.faults == ()


# ---------------------------------------------------------------- parse and change


def answer(parts: Mapping[str, tuple[str, int]], hw: Hardware = HW) -> dict[str, str]:
    text = "".join(f"@@{name} eth0\n{body}\n@={status}\n" for name, (body, status) in parts.items())
    return dict.fromkeys(PLATFORM.questions(hw), text)


ECN_BLANK = "\n".join(f"roce_{role}/enable/{p}=1" for role in ("np", "rp") for p in range(8))
BLANK: dict[str, tuple[str, int]] = {
    "stack": ("ofed", 0),
    "rdma": ("mlx5_0", 0),
    "qos": (fixture("mlnx_qos_blank")["text"].replace("10.0 Gbps", "unlimited").rstrip(), 0),
    "pause": ("Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton", 0),
    "stall": ("pfc-prevention-tout: 0", 0),
    "ecn": (f"{ECN_BLANK}\nroce_np/cnp_dscp=48\nroce_np/cnp_802p_prio=6\nroce_np/min_time_between_cnps=4", 0),
    "tclass": ("", 0),
    "tos": ("0", 0),
    "mode": ("RoCE v2", 0),
    "conf": ("cat: /etc/fabric/qos/eth0.conf: No such file or directory", 1),
    "wants": ("", 1),
}


def observe(hw: Hardware = HW, **parts: tuple[str, int]) -> Observation:
    return PLATFORM.parse(answer({**BLANK, **parts}, hw), hw)


def change(settings: PortSettings = WISH, hw: Hardware = HW, **parts: tuple[str, int]) -> Change:
    return PLATFORM.change(observe(hw, **parts), PLATFORM.realize(node(settings), hw).state, hw)


def test_question_is_one_line_without_writing() -> None:
    (question,) = PLATFORM.questions(HW)
    assert "\n" not in question and len(question) < 4000 and question.count("'") == 4
    for word in ("--pfc", "--trust", "--set-tunable", "ethtool -A", "dcb pfc set", "-t ", "-m "):
        assert word not in question
    assert PLATFORM.questions(replace(HW, ports=())) == ()


def test_a_blank_port() -> None:
    found = observe()
    settings = found.running.ports[0].settings
    assert (settings.qos.trust, settings.qos.dcbx, settings.qos.cable_m) == ("pcp", "none", 7)
    assert settings.marking.np == tuple(range(8)) and settings.marking.traffic_class is None
    assert settings.marking.cnp_dscp == 48 and settings.qos.global_pause is True
    assert found.stored is not None
    boot = found.stored.ports[0].settings
    assert boot.qos.trust == "pcp" and boot.qos.global_pause is UNKNOWN
    assert dict(found.facts) == {"rdma eth0": "mlx5_0", "stack eth0": "ofed"}
    assert found.notes == () and len(found.evidence) == 64


def test_another_stack_than_the_inventory_says_is_told() -> None:
    (note,) = observe(stack=("inbox", 0)).notes
    assert note.startswith("eth0: ") and "write `stack: inbox`" in note


@pytest.mark.parametrize("text", ["", "bash: sh: command not found", "@@qos eth0\nhalf"])
def test_what_is_not_understood_is_unknown(text: str) -> None:
    found = PLATFORM.parse(dict.fromkeys(PLATFORM.questions(HW), text), HW)
    wanted, _ = realized(WISH)
    assert found.notes
    assert all(item.unknown for item in differences(wanted, found.running.ports[0].settings))
    assert PLATFORM.change(found, node(wanted), HW).empty


WORKED_LINES = (
    "ethtool -A eth0 rx off tx off",
    "mlnx_qos -i eth0 --trust dscp",
    "mlnx_qos -i eth0 " + " ".join(f"--dscp2prio set,{d},{p}" for d, p in enumerate(DSCP)),
    "mlnx_qos -i eth0 --prio_tc 0,1,2,3,4,5,6,7 --tsa ets,ets,ets,ets,ets,ets,strict,ets"
    " --tcbw 50,0,0,50,0,0,0,0",
    "mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0",
    "mlnx_qos -i eth0 --cable_len=20",
    "ethtool --set-tunable eth0 pfc-prevention-tout 200",
    *(f"echo 0 > /sys/class/net/eth0/ecn/roce_np/enable/{p}" for p in (0, 1, 2, 4, 5, 6, 7)),
    *(f"echo 0 > /sys/class/net/eth0/ecn/roce_rp/enable/{p}" for p in (0, 1, 2, 4, 5, 6, 7)),
    "echo 106 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class",
    "cma_roce_tos -d mlx5_0 -p 1 -t 106",
)


def commands(found: Change) -> tuple[str, ...]:
    return tuple(line for line in found.lines if not line.startswith(("/etc/", "systemctl")))


def test_change_of_a_blank_port() -> None:
    found = change()
    assert commands(found) == WORKED_LINES
    conf = next(s for s in found.commit if isinstance(s, Put) and s.path == "/etc/fabric/qos/eth0.conf")
    assert conf.text is not None and "\nPFC=0,0,0,1,0,0,0,0\n" in conf.text and "RDMA=mlx5_0" in conf.text
    apply = [step for step in found.commit if isinstance(step, Call) and step.argv[0].endswith("fabric-qos")]
    assert [step.argv for step in apply] == [("/usr/local/sbin/fabric-qos", "eth0")]
    assert apply[0].unless[:3] == ("/usr/local/sbin/fabric-qos", "--check", "eth0")
    (undo,) = found.undo
    assert isinstance(undo, Call) and {"PFC=0,0,0,0,0,0,0,0", "TRUST=pcp", "PAUSE=on", "CMA_TOS=0"} <= set(
        undo.argv
    )
    assert found.level == Disturbs.PORT_BOUNCE and found.unverified == () and found.blocked == ()


def test_lines_of_the_inbox_driver_without_mlnx_qos() -> None:
    blank = fixture("dcb")["sections"]
    parts = {name: (text.replace("true", "false"), 0) for name, text in blank.items()}
    base = {key: value for key, value in BLANK.items() if key not in ("qos", "ecn", "tclass")}
    base |= {"stack": ("inbox", 0), "cc": ("np_cnp_dscp=47\nnp_cnp_prio=6\nnp_min_time_between_cnps=4", 0)}
    seen = PLATFORM.parse(answer({**base, **parts, "app": ("{}", 0)}, INBOX), INBOX)
    found = PLATFORM.change(seen, PLATFORM.realize(node(WISH), INBOX).state, INBOX)
    assert commands(found) == (
        "ethtool -A eth0 rx off tx off",
        "dcb app add dev eth0 dscp-prio " + " ".join(f"{d}:{p}" for d, p in enumerate(DSCP)),
        "dcb pfc set dev eth0 prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off",
        "ethtool --set-tunable eth0 pfc-prevention-tout 200",
        "echo 48 > /sys/kernel/debug/mlx5/0000:1b:00.0/cc_params/np_cnp_dscp",
        "cma_roce_tos -d mlx5_0 -p 1 -t 106",
    )


def conf_of(found: Change) -> str:
    return next(s.text or "" for s in found.commit if isinstance(s, Put) and s.path.endswith("eth0.conf"))


def test_only_what_differs_is_written() -> None:
    first = change()
    done = {**BLANK, "conf": (conf_of(first).rstrip(), 0), "wants": ("yes", 0)}
    shown = reader_text(first)
    seen = PLATFORM.parse(answer({**done, **shown}), HW)
    wanted = PLATFORM.realize(node(WISH), HW).state
    assert differences(wanted, seen.running) == () and differences(wanted, seen.stored) == ()
    assert PLATFORM.change(seen, wanted, HW).empty
    # Somebody turns PFC off: one command, and the settings file is as it was.
    text = shown["qos"][0].replace("enabled     0   0   0   1", "enabled     0   0   0   0")
    again = PLATFORM.change(PLATFORM.parse(answer({**done, **shown, "qos": (text, 0)}), HW), wanted, HW)
    assert commands(again) == ("mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0",)
    assert [item.path for item in again.differences] == [
        "ports.eth0.qos.classes.3.pfc_tx",
        "ports.eth0.qos.classes.3.pfc_rx",
    ]
    assert conf_of(again) == conf_of(first)
    # Live is right, the unit was disabled: saved without touching the port.
    lost = PLATFORM.change(PLATFORM.parse(answer({**done, **shown, "wants": ("", 1)}), HW), wanted, HW)
    assert not lost.empty and commands(lost) == () and lost.level == Disturbs.NOTHING and lost.undo == ()


def weight(tsa: str, bw: str) -> str:
    return f", bw: {bw}%" if tsa == "ets" else ""


def reader_text(found: Change) -> dict[str, tuple[str, int]]:
    """What the tools print once the settings file of a change is in force."""
    rows = dict(line.split("=", 1) for line in conf_of(found).splitlines() if "=" in line)
    table = rows["DSCP2PRIO"].split(",")
    points = "".join(
        f"\tprio:{p} dscp:{','.join(f'{d:02d}' for d, q in enumerate(table) if q == p)},\n"
        for p in ("0", "3", "6")
    )
    tcs = "".join(
        f"tc: {tc} ratelimit: unlimited, tsa: {tsa}{weight(tsa, bw)}\n\t priority:  {tc}\n"
        for tc, (tsa, bw) in enumerate(zip(rows["TSA"].split(","), rows["TCBW"].split(","), strict=True))
    )
    qos = (
        f"DCBX mode: OS controlled\nPriority trust state: dscp\ndscp2prio mapping:\n{points}Cable len: 20\n"
        f"PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     "
        f"{'   '.join(rows['PFC'].split(','))}   \n{tcs}"
    )
    enable = "\n".join(f"roce_{r}/enable/{p}={int(p == 3)}" for r in ("np", "rp") for p in range(8))
    cnp = "roce_np/cnp_dscp=48\nroce_np/cnp_802p_prio=6\nroce_np/min_time_between_cnps=4"
    return {
        "qos": (qos, 0),
        "pause": ("Autonegotiate:\toff\nRX:\t\toff\nTX:\t\toff", 0),
        "stall": ("pfc-prevention-tout: 200", 0),
        "ecn": (f"{enable}\n{cnp}", 0),
        "tclass": ("Global tclass=104", 0),
        "tos": ("106", 0),
    }


def test_unreadable_settings_are_not_written_and_stay_in_the_file() -> None:
    first = change()
    conf = conf_of(first).replace("STALL=200", "STALL=300")
    found = change(
        WISH,
        stall=("netlink error: Operation not supported", 1),
        conf=(conf.rstrip(), 0),
        wants=("yes", 0),
    )
    assert [item.path for item in found.blocked] == ["ports.eth0.qos.watchdog.detect_ms"]
    assert not any("pfc-prevention-tout" in line for line in found.lines)
    assert "STALL=300" in conf_of(found)
    bare = change(WISH, stall=("netlink error: Operation not supported", 1))
    assert "STALL" not in conf_of(bare) and bare.blocked


def test_half_of_a_command_that_cannot_be_read_blocks_all_of_it() -> None:
    """PFC is one bitmap, ETS one table: neither is written when a part of it is not known."""
    text = BLANK["qos"][0].replace("tc: 4 ratelimit: unlimited, tsa: vendor", "tc: 4 tsa: ???")
    found = change(qos=(text, 0))
    assert not any("--tsa" in line for line in found.lines) and "TSA" not in conf_of(found)
    assert any(item.path == "ports.eth0.qos.classes.4.share" for item in found.blocked)


def test_a_stack_that_is_not_as_planned_is_blocked_and_seen() -> None:
    base = {key: value for key, value in BLANK.items() if key not in ("ecn", "tclass")}
    seen = PLATFORM.parse(answer({**base, "stack": ("inbox", 0), "cc": (CC, 0)}), HW)
    found = PLATFORM.change(seen, PLATFORM.realize(node(WISH), HW).state, HW)
    paths = {item.path for item in found.blocked}
    assert paths == {f"ports.eth0.marking.{name}" for name in ("np", "rp", "traffic_class")}
    assert not any("NP=" in line for line in conf_of(found).splitlines())


CC = "np_cnp_dscp=48\nnp_cnp_prio=6\nnp_min_time_between_cnps=4"


def test_back_to_what_was_recorded() -> None:
    first = change()
    wanted = PLATFORM.realize(node(WISH), HW).state
    before = owned_part(observe().running, wanted)
    done = {**BLANK, "conf": (conf_of(first).rstrip(), 0), "wants": ("yes", 0), **reader_text(first)}
    back = PLATFORM.change(PLATFORM.parse(answer(done), HW), before, HW)
    rows = dict(line.split("=", 1) for line in conf_of(back).splitlines() if "=" in line)
    assert {
        key: rows[key] for key in ("TRUST", "PFC", "TSA", "CABLE", "NP", "TCLASS", "CMA_TOS", "PAUSE")
    } == {
        "TRUST": "pcp",
        "PFC": "0,0,0,0,0,0,0,0",
        "TSA": ",".join(["vendor"] * 8),
        "CABLE": "7",
        "NP": "0,1,2,3,4,5,6,7",
        "TCLASS": "-1",
        "CMA_TOS": "0",
        "PAUSE": "on",
    }
    assert "echo tclass=-1 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class" in back.lines
    assert "mlnx_qos -i eth0 --trust pcp" in back.lines
    assert not any("--dscp2prio" in line for line in back.lines)


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
    marking_only = PortSettings(marking=Marking(rdma_cm_tos=104))
    assert change(marking_only).level == Disturbs.NOTHING
    assert change(PortSettings(qos=QosState(trust="dscp"))).level == Disturbs.LOSS
    assert change(PortSettings(qos=QosState(cable_m=30))).level == Disturbs.PORT_BOUNCE
    sources = {item.source for item in change().disturbs}
    assert any("mlx5_toggle_port_link" in source for source in sources)
