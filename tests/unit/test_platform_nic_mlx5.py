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
from rdma_fabric.platforms import _nic_mlx5_card as cards
from rdma_fabric.platforms import _nic_mlx5_knobs as knobs
from rdma_fabric.platforms import _nic_mlx5_nv as nv
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
    waiting,
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


def card_of(layer: NodeState | None) -> NicState:
    """The card behind eth0."""
    port = layer.port("eth0") if layer is not None else None
    assert port is not None
    return port.settings.nic


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

FIXTURES = sorted(path.stem for path in OBSERVE.glob("*.yaml") if path.stem not in ("small", "card"))


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
    # Samples that were not made with -a lack traffic classes, which a host's answer may not.
    found = reader.port_knobs(parts, "eth0")
    if case.get("short"):
        found |= reader.mlnx_qos(case["text"], every=False)
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
    found = [d.path for d in differences(default, shown) if not d.unknown and d.wanted is not UNKNOWN]
    assert found == []


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
    listed = {p: [f"{d:02d}," for d, q in enumerate(table) if q == p] for p in ("0", "3", "6")}
    points = "".join(
        f"\tprio:{p} dscp:{''.join(found[i : i + 8])}\n"
        for p, found in listed.items()
        for i in range(0, len(found), 8)
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


# ---------------------------------------------------------------- the card


CARD = yaml.safe_load((OBSERVE / "card.yaml").read_text("utf-8"))


def shown(name: str) -> list[Any]:
    return [pytest.param(one, id=f"{name}-{index}") for index, one in enumerate(CARD[name])]


def told(value: Any) -> Any:
    """As the fixture writes it."""
    if isinstance(value, dict):
        return {key: told(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    return plain(value)


@pytest.mark.parametrize("case", shown("ethtool"))
def test_ethtool_i(case: Any) -> None:
    assert told(cards.ethtool(Section(case["text"], case.get("status", 0), True))) == case["found"]


@pytest.mark.parametrize("case", shown("devlink"))
def test_devlink_info(case: Any) -> None:
    board, (running, stored) = cards.devlink_info(
        Section(case["text"], case.get("status", 0), True), "0000:1b:00.0"
    )
    assert told([board, running, stored]) == case["found"]
    assert cards.devlink_info(Section(), "0000:1b:00.0") == (UNMANAGED, (UNMANAGED, UNMANAGED))


@pytest.mark.parametrize("case", shown("devinfo"))
def test_ibv_devinfo(case: Any) -> None:
    assert cards.devinfo(Section(case["text"], case.get("status", 0), True)) == case["found"]


@pytest.mark.parametrize("name", ["gid_files", "show_gids"])
def test_gids(name: str) -> None:
    for case in CARD[name]:
        section = Section(case["text"].rstrip("\n"), case.get("status", 0), True)
        assert told(getattr(cards, name)(section, "eth0")) == case["found"], case["text"]


@pytest.mark.parametrize("case", shown("mlxconfig"))
def test_mlxconfig(case: Any) -> None:
    assert told(nv.query(case["text"])) == case["found"]


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("255", "255"),
        ("True(1)", "1"),
        ("_256KB(1)", "1"),
        ("per_mkey(0)", "0"),
        ("007", "7"),
        ("0x1F(31)", "31"),
        ("N/A", UNKNOWN),
        ("Array[0..7]", UNKNOWN),
        ("ETH", UNKNOWN),
        ("ETH(2", UNKNOWN),
        ("2)", UNKNOWN),
        ("-1", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_values_of_mlxconfig(word: str, number: object) -> None:
    assert nv.value(word) == number


@pytest.mark.parametrize(
    ("name", "bdf", "number"),
    [("p0", "0000:1b:00.1", 1), ("p1\n", "", 2), ("p0s1", "", 1), ("", "0000:1b:00.1", 2), ("eth", "", None)],
)
def test_the_number_of_a_port(name: str, bdf: str, number: int | None) -> None:
    assert nv.port_number(name, bdf) == number


DUMP = CARD["mlxconfig"][0]["text"].rstrip()
NV = {
    "bdf": ("0000:1b:00.0", 0),
    "number": ("p0", 0),
    "nvtool": ("mlxconfig", 0),
    "nv": (DUMP, 0),
    "driver": (CARD["ethtool"][0]["text"].rstrip(), 0),
    "devlink": (CARD["devlink"][0]["text"].replace("28.39.3560", "28.43.3608"), 0),
    "verbs": (CARD["devinfo"][0]["text"].rstrip(), 0),
    "gids": (CARD["gid_files"][0]["text"].rstrip(), 0),
}
ASKED = replace(HW, options=(("nv", "CNP_DSCP NUM_OF_VFS ROCE_CC_PRIO_MASK"),))


def nv_wish(**values: str) -> PortSettings:
    return PortSettings(nic=NicState(nv=tuple(sorted(values.items()))))


def nv_change(wish: PortSettings, hw: Hardware = ASKED, **parts: tuple[str, int]) -> Change:
    seen = PLATFORM.parse(answer({**BLANK, **NV, **parts}, hw), hw)
    return PLATFORM.change(seen, PLATFORM.realize(node(wish), hw).state, hw)


def test_the_card_of_a_port() -> None:
    seen = PLATFORM.parse(answer({**BLANK, **NV}, ASKED), ASKED)
    card, later = (card_of(layer) for layer in (seen.running, seen.stored))
    assert (card.board, card.part, card.firmware, card.driver) == (
        "MT_0000000838",
        "MCX755106AS-HEA_Ax",
        "28.43.3608",
        "24.10-1.1.4",
    )
    assert (card.link, card.rdma_mtu, card.gids) == ("ethernet", 1024, (3,))
    assert dict(card.nv)["ROCE_CC_PRIO_MASK"] == "255" and dict(later.nv)["ROCE_CC_PRIO_MASK"] == "8"
    assert card_of(seen.pending).nv == (("ROCE_CC_PRIO_MASK", "8"),)
    facts = dict(seen.facts)
    assert facts["nv eth0"] == "mlxconfig CNP_DSCP_P1 NUM_OF_VFS ROCE_CC_PRIO_MASK_P1"
    assert facts["bdf eth0"] == "0000:1b:00.0"
    assert seen.running.system.owners is UNMANAGED


def test_a_burned_firmware_that_does_not_run_is_told() -> None:
    seen = PLATFORM.parse(answer({**BLANK, **NV, "devlink": (CARD["devlink"][0]["text"], 0)}, HW), HW)
    # The programs disagree on what runs: none is believed.
    assert card_of(seen.running).firmware is UNKNOWN
    assert card_of(seen.stored).firmware == "28.43.3608"
    assert any("28.43.3608 is burned and waits for a reset, 28.39.3560 runs" in note for note in seen.notes)


def test_nv_settings_are_written_for_the_next_boot_only() -> None:
    found = nv_change(nv_wish(CNP_DSCP="48", NUM_OF_VFS="8", ROCE_CC_PRIO_MASK="8"))
    assert [item.path for item in found.differences] == [
        "ports.eth0.nic.nv.CNP_DSCP",
        "ports.eth0.nic.nv.NUM_OF_VFS",
    ]
    assert found.lines[-1] == "mlxconfig -d 0000:1b:00.0 -y set CNP_DSCP_P1=48 NUM_OF_VFS=8"
    calls = [step for step in found.commit if isinstance(step, Call)]
    pairs = ("eth0", "BDF=0000:1b:00.0", "CNP_DSCP=48", "NUM_OF_VFS=8")
    assert [call.argv for call in calls] == [(nv.PROGRAM, *pairs)]
    assert calls[0].unless == (nv.PROGRAM, "--check", *pairs)
    # The old next-boot value comes back, not the one that is in force.
    assert [call.argv for call in found.undo if isinstance(call, Call)] == [
        (nv.PROGRAM, "eth0", "BDF=0000:1b:00.0", "CNP_DSCP=4", "NUM_OF_VFS=0")
    ]
    assert found.level == Disturbs.NOTHING and found.undo_kind == "dead-man"
    assert "fwreset" not in repr(found)


def test_what_waits_for_a_reset_is_not_written_again() -> None:
    wish = nv_wish(ROCE_CC_PRIO_MASK="8")
    assert nv_change(wish).empty
    seen = PLATFORM.parse(answer({**BLANK, **NV}, ASKED), ASKED)
    wanted = PLATFORM.realize(node(wish), ASKED).state
    assert waiting(wanted, seen) == {"ports.eth0.nic.nv.ROCE_CC_PRIO_MASK"}
    # In force and not kept: the next reset would bring another value.
    kept = nv_change(nv_wish(ROCE_CC_PRIO_MASK="255"))
    assert kept.lines[-1].endswith("set ROCE_CC_PRIO_MASK_P1=255")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"nv": ("-E- Failed to open device", 3)}, ""),
        ({"nv": (DUMP.replace("Current", "Actual"), 0)}, ""),
        ({"number": ("", 1), "bdf": ("", 0)}, ""),
        ({"nv": (DUMP.replace("48                   4 ", "48  4  4 "), 0)}, ""),
        ({"nv": (DUMP.replace("CNP_DSCP_P1", "CNP_D_P1"), 0)}, "its card has no such setting"),
        ({"nv": (f"{DUMP}\nFailed to query some of the TLVs:".replace("CNP_DSCP_P1", "CNP_D_P1"), 0)}, ""),
    ],
)
def test_nv_settings_that_are_not_known_are_not_written(parts: dict[str, Any], reason: str) -> None:
    found = nv_change(nv_wish(CNP_DSCP="5"), **parts)
    assert [item.path for item in found.blocked] == ["ports.eth0.nic.nv.CNP_DSCP"]
    assert found.empty and dict(found.reasons).get("ports.eth0.nic.nv.CNP_DSCP", "") == reason


def test_link_type_and_mode_of_a_card_are_only_compared() -> None:
    asked = replace(HW, options=(("nv", "INTERNAL_CPU_MODEL LINK_TYPE"),))
    found = nv_change(nv_wish(LINK_TYPE="IB", INTERNAL_CPU_MODEL="1"), asked)
    assert found.empty
    assert dict(found.reasons) == {
        "ports.eth0.nic.nv.LINK_TYPE": "the link type and mode of a card are only compared",
        "ports.eth0.nic.nv.INTERNAL_CPU_MODEL": "its card has no such setting",
    }
    assert nv_change(nv_wish(LINK_TYPE="ETH")).blocked == ()
    assert PLATFORM.artifacts(node(nv_wish(LINK_TYPE="2")), HW) == ()


def test_the_second_port_of_a_card_has_names_of_its_own() -> None:
    found = nv_change(nv_wish(CNP_DSCP="4"), number=("p1", 0), bdf=("0000:1b:00.1", 0))
    assert found.lines[-1] == "mlxconfig -d 0000:1b:00.1 -y set CNP_DSCP_P2=4"
    asked = replace(HW, options=(("nv", "LLDP_NB_DCBX"),))
    assert nv_change(nv_wish(LLDP_NB_DCBX="1"), asked, number=("p1", 0)).reasons
    assert not nv_change(nv_wish(LLDP_NB_DCBX="1"), asked, number=("p0", 0)).reasons


@pytest.mark.parametrize(
    ("name", "text", "used"),
    [
        ("CNP_DSCP", "48", "48"),
        ("CNP_DSCP", "0x30", "48"),
        ("CNP_DSCP", "64", None),
        ("ROCE_CC_PRIO_MASK", "256", None),
        ("ATS_ENABLED", "True", "1"),
        ("ATS_ENABLED", "1", "1"),
        ("LINK_TYPE", "ETH", "2"),
        ("LINK_TYPE", "ETH(2)", "2"),
        ("LLDP_NB_RX_MODE", "ALL", "2"),
        ("SOMETHING_NEW", "per_mkey(0)", "0"),
        ("SOMETHING_NEW", "fast", None),
        ("SOMETHING_NEW", "", None),
    ],
)
def test_nv_wishes_become_numbers(name: str, text: str, used: str | None) -> None:
    found, faults = realized(nv_wish(**{name: text}))
    assert dict(found.nic.nv) == {name: NOT_APPLICABLE if used is None else used}
    assert faults == ([("error", f"nic.nv.{name}")] if used is None else [])


def test_nv_settings_against_the_classes_are_told() -> None:
    wish = replace(WISH, nic=nv_wish(CNP_DSCP="4", CNP_802P_PRIO="3", ROCE_CC_PRIO_MASK="0x40").nic)
    found = PLATFORM.realize(node(wish), HW)
    told_ = [(f.setting, f.wanted, f.used) for f in found.faults if f.contradicts]
    assert told_ == [
        ("nic.nv.CNP_DSCP", "4", "48"),
        ("nic.nv.CNP_802P_PRIO", "3", "a priority without PFC"),
        ("nic.nv.ROCE_CC_PRIO_MASK", "64", "8"),
    ]
    assert dict(found.state.ports[0].settings.nic.nv)["CNP_DSCP"] == "4"
    agreeing = replace(WISH, nic=nv_wish(CNP_DSCP="48", CNP_802P_PRIO="6", ROCE_CC_PRIO_MASK="255").nic)
    assert not [f for f in PLATFORM.realize(node(agreeing), HW).faults if f.contradicts]


def test_a_vf_has_no_card_of_its_own() -> None:
    hw = replace(HW, ports=(replace(PORT, kind="vf"),))
    wish = NodeState(ports=(PortState("eth0", "vf", nv_wish(CNP_DSCP="4")),))
    assert PLATFORM.realize(wish, hw).state.ports[0].settings.nic == NicState()
    seen = PLATFORM.parse(answer({**BLANK, **NV}, hw), hw)
    assert seen.running.ports[0].settings.nic == NicState()


DPU = (
    "        INTERNAL_CPU_MODEL    EMBEDDED_CPU(1)  EMBEDDED_CPU(1)  EMBEDDED_CPU(1)\n"
    "        INTERNAL_CPU_OFFLOAD_ENGINE    ENABLED(0)  ENABLED(0)  ENABLED(0)\n"
)


@pytest.mark.parametrize(
    ("parts", "owners"),
    [
        ({"nv": (DUMP + "\n" + DPU, 0)}, ("BlueField in DPU mode (eth0)",)),
        ({"nv": (DUMP + "\n" + DPU.replace("ENABLED(0)", "DISABLED(1)"), 0)}, UNMANAGED),
        (
            {
                "nv": (
                    DUMP.replace(
                        "False(0)             False(0)             False(0)", "x(0) x(0) x(1)"
                    ).replace("OFF(0)               OFF(0)               OFF(0)", "x(0) x(0) ALL(2)"),
                    0,
                )
            },
            ("LLDP agent in the firmware of eth0",),
        ),
        (
            {"qos": ("****** WARNING: lldpad service is running and may overwrite your settings ******", 0)},
            ("lldpad",),
        ),
    ],
)
def test_who_else_writes_is_named(parts: dict[str, tuple[str, int]], owners: Any) -> None:
    assert PLATFORM.parse(answer({**BLANK, **NV, **parts}, HW), HW).running.system.owners == owners


@pytest.mark.parametrize(
    ("parts", "note"),
    [
        ({"nv": (DUMP.replace("CNP_DSCP_P1", "CNP_D_P1"), 0)}, "its card has no NV setting CNP_DSCP"),
        ({"rdma": ("mlx5_3", 0)}, "its RDMA device is mlx5_3, the inventory says mlx5_0"),
        ({"driver": ("driver: ice\nversion: 1\n", 0)}, "its driver is ice, not mlx5_core"),
        (
            {
                "roce": (
                    '{"param":{"pci/0000:1b:00.0":[{"name":"enable_roce","values":[{"value":false}]}]}}',
                    0,
                )
            },
            "RoCE is switched off",
        ),
        (
            {
                "pcie": (
                    "current_link_speed=16.0 GT/s PCIe\nmax_link_speed=32.0 GT/s PCIe\n"
                    "current_link_width=8\nmax_link_width=16",
                    0,
                )
            },
            "its PCIe link runs at 16 GT/s x8, its card can 32 GT/s x16",
        ),
    ],
)
def test_notes_about_the_card(parts: dict[str, tuple[str, int]], note: str) -> None:
    notes = PLATFORM.parse(answer({**BLANK, **NV, **parts}, ASKED), ASKED).notes
    assert any(note in one for one in notes), notes


def test_a_host_without_the_tools() -> None:
    parts = {key: value for key, value in {**BLANK, **NV}.items() if key not in ("nv", "nvtool")}
    seen = PLATFORM.parse(answer(parts, ASKED), ASKED)
    assert any("neither mlxconfig nor mstconfig" in note for note in seen.notes)
    assert dict(seen.running.ports[0].settings.nic.nv) == dict.fromkeys(
        ("CNP_DSCP", "NUM_OF_VFS", "ROCE_CC_PRIO_MASK"), UNKNOWN
    )
    assert not any("mlxconfig" in note for note in PLATFORM.parse(answer(parts, HW), HW).notes)


def test_versions_and_addresses_are_no_evidence() -> None:
    """What may change between a plan and its push without being ours does not stop the push."""
    first = PLATFORM.parse(answer({**BLANK, **NV}, ASKED), ASKED)
    other = {"verbs": (CARD["devinfo"][1]["text"], 0), "gids": ("", 1), "devlink": ("", 1)}
    assert PLATFORM.parse(answer({**BLANK, **NV, **other}, ASKED), ASKED).evidence == first.evidence
    moved = {"nv": (DUMP.replace("CNP_DSCP_P1                                 48 ", "CNP_DSCP_P1  48 "), 0)}
    assert PLATFORM.parse(answer({**BLANK, **NV, **moved}, ASKED), ASKED).evidence == first.evidence
    changed = {"nv": (DUMP.replace("255                  8 ", "255                  9 "), 0)}
    assert PLATFORM.parse(answer({**BLANK, **NV, **changed}, ASKED), ASKED).evidence != first.evidence


# ---------------------------------------------------------------- receive buffers


def buffered(rest: int, own: int, **more: Any) -> PortSettings:
    """Priority 3 in a lossless buffer of its own."""
    found = tuple(
        replace(
            one, group=int(priority == 3), headroom=Amount(own if priority == 3 else rest), share=UNMANAGED
        )
        for priority, one in enumerate(classes(p3=ON))
    )
    return PortSettings(Mtu(ip=more.get("mtu", 4200)), QosState(classes=found, cable_m=more.get("cable", 5)))


def test_buffers_are_written_as_sizes_and_a_map() -> None:
    found, faults = realized(buffered(130944, 150016))
    assert faults == []
    assert [one.headroom for one in found.qos.classes][2:4] == [Amount(130944), Amount(150016)]
    written = knobs.knobs_of(found, PORT)
    assert (written["PRIO2BUFFER"], written["BUFFERS"]) == ("0,0,0,1,0,0,0,0", "130944,150016,0,0,0,0,0,0")
    again = knobs.settings_of(written, PORT, "ofed")
    assert [one.headroom for one in again.qos.classes] == [one.headroom for one in found.qos.classes]


def test_buffers_are_whole_cells() -> None:
    found, faults = realized(buffered(131000, 150016))
    assert found.qos.classes[0].headroom == Amount(131072)
    assert faults == [("note", f"qos.classes.{p}.headroom") for p in range(8) if p != 3]
    assert realized(found)[1] == []


@pytest.mark.parametrize(
    ("own", "mtu", "cable", "speed", "fits"),
    [
        # (301 + 216 * 20 / 100) * 400 + 272 * 9216 / 100 = 162667 (reference), one frame and a cell more.
        (172928, 9216, 20, 400, True),
        (172672, 9216, 20, 400, False),
        (32768, 1500, 5, 25, True),
        (1280, 9216, 20, 0, True),
    ],
)
def test_a_lossless_buffer_holds_what_comes_after_the_pause(
    own: int, mtu: int, cable: int, speed: int, fits: bool
) -> None:
    hw = replace(HW, ports=(replace(PORT, speed_gbps=speed),))
    _, faults = realized(buffered(12800, own, mtu=mtu, cable=cable), hw)
    assert faults == ([] if fits else [("error", "qos.classes.3.headroom")])


def test_buffers_that_nobody_gave_are_left_to_the_card() -> None:
    found, _ = realized(WISH)
    assert "BUFFERS" not in knobs.knobs_of(found, PORT)
    # A map whose sizes are not all known is brought back without them.
    half = replace(
        found, qos=replace(found.qos, classes=tuple(replace(c, group=0) for c in found.qos.classes))
    )
    assert knobs.knobs_of(half, PORT)["PRIO2BUFFER"] == "0,0,0,0,0,0,0,0"
    assert "BUFFERS" not in knobs.knobs_of(half, PORT)


def test_buffers_are_given_all_or_none() -> None:
    wish = buffered(130944, 150016)
    rest = tuple(
        one if priority == 3 else replace(one, headroom=UNMANAGED)
        for priority, one in enumerate(wish.qos.classes)
    )
    _, faults = realized(replace(wish, qos=replace(wish.qos, classes=rest)))
    assert faults == [("error", "qos.classes")]


def test_a_change_of_buffers() -> None:
    found = change(buffered(130944, 150016))
    assert "mlnx_qos -i eth0 --buffer_size 130944,150016,0,0,0,0,0,0" in found.lines
    assert "mlnx_qos -i eth0 --prio2buffer 0,0,0,1,0,0,0,0" in found.lines
    assert found.level == Disturbs.PORT_BOUNCE
    (undo,) = found.undo
    assert isinstance(undo, Call) and "BUFFERS=262016,0,0,0,0,0,0,0" in undo.argv
    lost = change(buffered(130944, 150016), qos=(BLANK["qos"][0].replace("Receive", "Recieve"), 0))
    assert {item.path.rpartition(".")[2] for item in lost.blocked} >= {"headroom"}
    assert "BUFFERS" not in conf_of(lost)


# ---------------------------------------------------------------- maps that are not known as a whole


PARTIAL = BLANK["qos"][0].replace(
    "Priority trust state: pcp", "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:5 dscp:26,"
)


def test_a_map_of_which_a_part_is_hidden_is_written_as_a_whole() -> None:
    """`dcb app add` of one DSCP hides the others (reference, trap 1)."""
    only_map = PortSettings(qos=QosState(trust="dscp", dscp_to_priority=DSCP))
    found = change(only_map, qos=(PARTIAL, 0))
    assert found.blocked == ()
    # Trust itself is right, and not stored.
    assert [(item.path, item.found) for item in found.differences] == [
        ("ports.eth0.qos.dscp_to_priority", UNKNOWN),
        ("ports.eth0.qos.trust", "pcp"),
    ]
    assert commands(found)[0].startswith("mlnx_qos -i eth0 --dscp2prio set,")
    (undo,) = found.undo
    assert isinstance(undo, Call)
    back = dict(word.split("=") for word in undo.argv[2:])["DSCP2PRIO"].split(",")
    assert (back[26], back[25], back[63]) == ("5", "3", "7")
    # A map like the firmware's is no proof either: deleted points have priority 0.
    likely = tuple(5 if point == 26 else point >> 3 for point in range(64))
    same = change(PortSettings(qos=QosState(trust="dscp", dscp_to_priority=likely)), qos=(PARTIAL, 0))
    assert same.differences[0].path == "ports.eth0.qos.dscp_to_priority"


def test_with_trust_pcp_there_is_no_map_to_compare() -> None:
    found = change(PortSettings(qos=QosState(trust="dscp", dscp_to_priority=DSCP)))
    assert found.blocked == () and len(found.differences) == 2
    (undo,) = found.undo
    assert isinstance(undo, Call) and undo.argv[2:] == ("NIC=mlx5", "RDMA=mlx5_0", "TRUST=pcp")
    lost = change(
        PortSettings(qos=QosState(dscp_to_priority=DSCP)),
        qos=(BLANK["qos"][0].replace("state: pcp", "state: both"), 0),
    )
    assert [item.path for item in lost.blocked] == ["ports.eth0.qos.dscp_to_priority"]


@pytest.mark.parametrize(
    ("name", "value", "used", "severity"),
    [
        ("rp_initial_alpha_value", "0", "1", "note"),
        ("rp_initial_alpha_value", "1023", "1023", ""),
        ("rp_dce_tcp_g", "1024", "1023", "note"),
        ("rp_min_dec_fac", "101", "100", "note"),
        ("rp_min_rate", "500000", "400000", "note"),
        ("rp_ai_rate", "4294967295", "4294967295", ""),
    ],
)
def test_parameters_stay_in_their_range(name: str, value: str, used: str, severity: str) -> None:
    found, faults = realized(PortSettings(marking=Marking(parameters=((name, value),))))
    assert dict(found.marking.parameters)[name] == used
    assert [level for level, _ in faults] == ([severity] if severity else [])
