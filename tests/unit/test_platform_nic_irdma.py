"""irdma ports: what is realized, read and changed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _nic_irdma_knobs as knobs
from rdma_fabric.platforms import _nic_irdma_read as reader
from rdma_fabric.platforms._contract import Call, Change, Disturbs, Put
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._nic_irdma_knobs import Apps, Kind
from rdma_fabric.platforms.linux import PLATFORM as LINUX
from rdma_fabric.platforms.nic_irdma import PLATFORM
from rdma_fabric.state import (
    FIRMWARE_AGENT,
    MTU_MAX,
    NOT_APPLICABLE,
    UNMANAGED,
    ClassState,
    Marking,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    SystemState,
    WatchdogTimers,
    differences,
    waiting,
)
from rdma_fabric.templating import render
from tests.unit.test_platform_nic_bnxt import SETTINGS, at, plain

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "nic_irdma"
PORT = PortHardware("ens8", nic="irdma", speed_gbps=100, rdma="rocep24s0f0", bdf="0000:18:00.0")
HW = Hardware(("linux", "nic_irdma"), ports=(PORT, PortHardware("eth0", nic="mlx5")))
FOUR = replace(HW, options=(("irdma_traffic_classes", "4"),))
INBOX = replace(HW, options=(("stack", "inbox"),))
HARDWARE = {"vendor": HW, "four": FOUR, "inbox": INBOX}
ROCE = SystemState(module_options=(("irdma.roce_ena", "1"),))

DSCP = tuple({26: 3, 48: 6}.get(point, 0) for point in range(64))
MAP = " ".join(f"{point}:{priority}" for point, priority in enumerate(DSCP))
OFF = ClassState(pfc_tx=False, pfc_rx=False, watchdog=False)
ON = ClassState(pfc_tx=True, pfc_rx=True, watchdog=True, share=Share("dwrr", 50))
CNP = replace(OFF, share=Share("strict"))
DEFAULT = replace(OFF, share=Share("dwrr", 50))


def classes(**by_priority: ClassState) -> tuple[ClassState, ...]:
    return tuple(by_priority.get(f"p{priority}", OFF) for priority in range(8))


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
    marking=Marking(104, 104, True, 48, 6, (3,), (3,)),
)


def by_tag(**more: Any) -> PortSettings:
    return replace(WISH, qos=replace(WISH.qos, trust="pcp", **more))


def node(wanted: PortSettings, system: SystemState = ROCE) -> NodeState:
    return NodeState(system, ports=(PortState("ens8", "physical", wanted),))


def realized(
    wanted: PortSettings, hw: Hardware = HW, system: SystemState = ROCE
) -> tuple[PortSettings, list[tuple[str, str]]]:
    found = PLATFORM.realize(node(wanted, system), hw)
    return found.state.ports[0].settings, [(str(f.severity), f.setting) for f in found.faults]


# ---------------------------------------------------------------- readers

FIXTURES = sorted(path.stem for path in OBSERVE.glob("*.yaml") if path.stem != "card")


@cache
def fixture(name: str) -> Any:
    return yaml.safe_load((OBSERVE / f"{name}.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", FIXTURES)
def test_read_back(name: str) -> None:
    case = fixture(name)
    parts = {f"{key} ens8": Section(text.rstrip("\n"), 0, True) for key, text in case["sections"].items()}
    parts["stack ens8"] = Section("vendor", 0, True)
    found = reader.port_knobs(parts, "ens8")
    assert found == case["knobs"]
    kind = reader.kind_of(parts, "ens8", Kind())
    shown = knobs.settings_of(found, kind)
    for path, expected in case["neutral"].items():
        assert plain(at(shown, path)) == expected, path
    assert reader.classes(parts, "ens8") == case["classes"]
    notes = " / ".join(reader.notes(parts, "ens8", kind, kind))
    assert [note for note in case["notes"] if note not in notes] == []
    assert bool(notes) == bool(case["notes"])


@pytest.mark.parametrize(
    ("text", "protocol"),
    [
        ("", "iwarp"),
        ("roce_ena=1 limits_sel=5", "roce"),
        ("limits_sel=5\nroce_ena=Y", "roce"),
        ("roce_ena=1\nroce_ena=0", "iwarp"),
        ("roce_port_cfg=3", ""),
        ("roce_port_cfg=2 roce_ena=1", "roce"),
    ],
)
def test_what_the_options_will_bring(text: str, protocol: str) -> None:
    assert reader.next_protocol({"options ens8": Section(text, 0, True)}, "ens8") == protocol


@given(st.text('prio_tcdscp[]{}":, 0123ets:onf-lldpagent', max_size=200))
@settings(max_examples=60)
def test_no_output_makes_a_reader_fail(text: str) -> None:
    for section in ("pfc", "ets", "app", "dcbx", "flags", "node", "cc", "tos", "options"):
        parts = {f"{section} ens8": Section(text, 0, True), "stack ens8": Section("inbox", 0, True)}
        knobs.settings_of(reader.port_knobs(parts, "ens8"), Kind())
        reader.notes(parts, "ens8", Kind(), Kind())
        reader.facts(parts, "ens8")


# ---------------------------------------------------------------- knobs


@pytest.mark.parametrize("hw", HARDWARE.values(), ids=HARDWARE)
@pytest.mark.parametrize("wish", [WISH, by_tag()], ids=["dscp", "pcp"])
def test_knobs_and_settings_are_one_thing(wish: PortSettings, hw: Hardware) -> None:
    """What is written for a realized state is what that state reads as."""
    wanted, _ = realized(wish, hw)
    kind = knobs.planned(hw)
    told = {"PROTO": "roce"} if kind.vendor else {}
    again = knobs.settings_of({**knobs.knobs_of(wanted, kind), **told}, kind)
    assert differences(node(wanted), node(again)) == ()


@pytest.mark.parametrize("hw", HARDWARE.values(), ids=HARDWARE)
def test_every_owned_field_has_a_knob(hw: Hardware) -> None:
    """A field that differs must lead to a key of the settings file, else it would never be repaired.

    Not the protocol of Intel's own driver: a module option decides that.
    """
    kind = knobs.planned(hw)
    wanted, _ = realized(WISH, hw)
    written = knobs.knobs_of(wanted, kind)
    for item in differences(wanted, knobs.settings_of({}, kind)):
        keys = knobs.keys_of(item.path, kind)
        if not (item.path == "marking.roce_v2" and kind.vendor):
            assert keys and set(keys) & set(written), item.path


@pytest.mark.parametrize(
    ("have", "wanted", "plan"),
    [
        ([], {26: 3, 0: 0}, Apps(("0:0", "26:3"), (), (), True)),
        ([(26, 3)], {26: 3}, Apps()),
        ([(26, 3), (48, 7)], {26: 3, 48: 6}, Apps((), ("48:7",), ("48:6",))),
        # The last entry that goes turns the port back: new ones come first where there are any.
        ([(26, 3)], {26: 4, 48: 6}, Apps(("48:6",), ("26:3",), ("26:4",))),
        ([(26, 3)], {26: 4}, Apps((), ("26:3",), ("26:4",), True)),
        ([(26, 3)], {}, Apps((), ("26:3",), (), True)),
        ([], {}, Apps()),
    ],
)
def test_an_entry_goes_before_its_successor(
    have: list[tuple[int, int]], wanted: dict[int, int], plan: Apps
) -> None:
    assert knobs.apps(have, [str(wanted.get(point, "-")) for point in range(64)]) == plan


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
    assert shares(found) == ["0:50", "1:0", "2:0", "3:50", "4:0", "5:0", "6:s", "7:0"]
    assert [c.pfc_tx for c in found.qos.classes] == [False] * 3 + [True] + [False] * 4
    assert found.qos.dscp_to_priority == DSCP and found.qos.trust == "dscp" and found.qos.dcbx == "none"
    assert (found.marking.np, found.marking.rp, found.marking.rdma_cm_tos) == (
        tuple(range(8)),
        tuple(range(8)),
        104,
    )
    assert (found.marking.cnp_dscp, found.marking.cnp_priority) == (NOT_APPLICABLE, NOT_APPLICABLE)
    assert faults == [
        ("note", "qos.watchdog.detect_ms"),
        ("note", "qos.watchdog.restore_ms"),
        ("note", "qos.watchdog.action"),
        ("note", "marking.cnp_dscp"),
        ("note", "marking.traffic_class"),
        ("note", "marking.np"),
        ("note", "marking.rp"),
    ]


def test_a_card_with_four_classes_has_no_priority_six() -> None:
    found, faults = realized(WISH, FOUR)
    assert shares(found) == ["0:50", "1:0", "2:0", "3:50", "-", "-", "-", "-"]
    assert found.qos.dscp_to_priority == tuple({26: 3}.get(point, 0) for point in range(64))
    assert ("warning", "qos.dscp_to_priority") in faults and ("warning", "qos.classes.6.share") in faults
    lossless = replace(
        WISH,
        qos=replace(
            WISH.qos,
            dscp_to_priority=tuple(5 if p == 3 else p for p in DSCP),
            classes=classes(p0=DEFAULT, p5=ON),
        ),
    )
    found, faults = realized(lossless, FOUR)
    assert not any(one.pfc_tx for one in found.qos.classes)
    assert ("error", "qos.classes.5.pfc_tx") in faults and ("error", "qos.dscp_to_priority") in faults


SHARES_TABLE: list[tuple[PortSettings, Hardware, list[str], list[str]]] = [
    # Nobody says a share: nothing to write.
    (
        replace(WISH, qos=replace(WISH.qos, classes=classes(p3=replace(ON, share=UNMANAGED)))),
        HW,
        ["-"] * 8,
        [],
    ),
    # Strict alone: what the driver would do itself, told as it is.
    (
        replace(WISH, qos=replace(WISH.qos, classes=classes(p6=CNP))),
        HW,
        ["0:100", "1:0", "2:0", "3:0", "4:0", "5:0", "6:s", "7:0"],
        [],
    ),
    # Weights are percentages that add up to 100.
    (
        replace(
            WISH, qos=replace(WISH.qos, classes=classes(p0=replace(OFF, share=Share("dwrr", 20)), p3=ON))
        ),
        HW,
        ["0:29", "1:0", "2:0", "3:71", "4:0", "5:0", "6:0", "7:0"],
        ["note", "note"],
    ),
    # By tag, eight classes.
    (by_tag(), HW, ["0:50", "1:0", "2:0", "3:50", "4:0", "5:0", "6:s", "7:0"], []),
    # By tag, four: one after the other, as they must be.
    (by_tag(), FOUR, ["0:50", "0:50", "0:50", "1:50", "0:50", "0:50", "2:s", "0:50"], []),
    (
        by_tag(classes=classes(p0=DEFAULT, p1=DEFAULT, p3=ON, p5=DEFAULT, p6=CNP)),
        FOUR,
        ["0:50", "3:25", "0:50", "1:25", "0:50", "0:50", "2:s", "0:50"],
        ["note", "note"],
    ),
]


@pytest.mark.parametrize(("wish", "hw", "found", "faults"), SHARES_TABLE)
def test_traffic_classes(wish: PortSettings, hw: Hardware, found: list[str], faults: list[str]) -> None:
    got, reported = realized(wish, hw)
    assert shares(got) == found
    assert [severity for severity, where in reported if where.endswith(".share")] == faults


def test_only_one_class_can_be_lossless() -> None:
    found, faults = realized(replace(WISH, qos=replace(WISH.qos, classes=classes(p2=ON, p3=ON))))
    assert [p for p, one in enumerate(found.qos.classes) if one.pfc_tx] == [3]
    assert ("error", "qos.classes") in faults


QOS_TABLE: list[tuple[dict[str, Any], str, Any, list[tuple[str, str]]]] = [
    ({"trust": "both"}, "trust", "dscp", [("note", "qos.trust")]),
    ({"trust": "port"}, "trust", NOT_APPLICABLE, [("warning", "qos.trust")]),
    ({"trust": "pcp"}, "dscp_to_priority", (0,) * 64, []),
    ({"pcp_to_priority": (0,) * 8}, "pcp_to_priority", tuple(range(8)), [("warning", "qos.pcp_to_priority")]),
    ({"trust": "dscp", "dcbx": "firmware"}, "dcbx", "none", [("warning", "qos.dcbx")]),
    ({"trust": "dscp", "dcbx": "ieee"}, "dcbx", "none", [("warning", "qos.dcbx")]),
    ({"dcbx": "firmware"}, "dcbx", "firmware", []),
    ({"cable_m": 5}, "cable_m", NOT_APPLICABLE, []),
]


@pytest.mark.parametrize(("fields", "name", "used", "faults"), QOS_TABLE)
def test_realize_qos(fields: dict[str, Any], name: str, used: Any, faults: list[tuple[str, str]]) -> None:
    got, reported = realized(PortSettings(qos=QosState(**fields)))
    assert (getattr(got.qos, name), reported) == (used, faults)


MARKING_TABLE: list[tuple[dict[str, Any], Hardware, str, Any, list[tuple[str, str]]]] = [
    ({"rdma_cm_tos": 106}, HW, "rdma_cm_tos", 104, []),
    ({"roce_v2": False}, INBOX, "roce_v2", True, [("warning", "marking.roce_v2")]),
    ({"np": (), "rp": ()}, HW, "np", (), []),
    ({"np": (3,), "rp": ()}, HW, "rp", tuple(range(8)), [("note", "marking.np"), ("warning", "marking.rp")]),
    ({"np": (3,)}, INBOX, "np", NOT_APPLICABLE, [("warning", "marking.np")]),
    ({"np": (), "rp": ()}, INBOX, "rp", NOT_APPLICABLE, []),
    ({"rp": NOT_APPLICABLE}, HW, "np", NOT_APPLICABLE, []),
    (
        {"parameters": (("rp_min_rate", "100"),)},
        HW,
        "parameters",
        (("rp_min_rate", NOT_APPLICABLE),),
        [("warning", "marking.parameters.rp_min_rate")],
    ),
]


@pytest.mark.parametrize(("fields", "hw", "name", "used", "faults"), MARKING_TABLE)
def test_realize_marking(
    fields: dict[str, Any], hw: Hardware, name: str, used: Any, faults: list[tuple[str, str]]
) -> None:
    got, reported = realized(PortSettings(marking=Marking(**fields)), hw)
    assert (getattr(got.marking, name), reported) == (used, faults)


def test_intels_driver_needs_its_option() -> None:
    """Without it its ports speak iWARP; the wish stays, so that drift tells."""
    found, faults = realized(PortSettings(marking=Marking(roce_v2=True)), HW, SystemState())
    assert found.marking.roce_v2 is True and faults == [("warning", "marking.roce_v2")]
    assert realized(PortSettings(marking=Marking(roce_v2=True)), INBOX, SystemState())[1] == []


def test_by_tag_the_kernel_chooses_the_priority_of_a_tos() -> None:
    """ToS 104 goes out on priority 2, 8 as well (Intel's irdma readme)."""
    assert ("warning", "marking.rdma_cm_tos") in realized(by_tag())[1]
    two = by_tag(classes=classes(p0=DEFAULT, p2=ON))
    assert ("warning", "marking.rdma_cm_tos") not in realized(two)[1]


@given(SETTINGS, st.sampled_from(list(HARDWARE.values())), st.booleans())
@settings(max_examples=200, deadline=None)
def test_realize_twice_is_realize_once(wish: PortSettings, hw: Hardware, option: bool) -> None:
    once = PLATFORM.realize(node(wish, ROCE if option else SystemState()), hw)
    twice = PLATFORM.realize(once.state, hw)
    assert twice.state == once.state
    assert [fault for fault in twice.faults if not fault.contradicts] == []


def test_ports_of_other_nics_are_left_alone() -> None:
    other = NodeState(ports=(PortState("eth0", settings=WISH),))
    assert PLATFORM.realize(other, HW).state == other


def test_the_largest_mtu() -> None:
    wish = NodeState(ports=(PortState("ens8", settings=PortSettings(Mtu(MTU_MAX))),))
    assert LINUX.realize(wish, HW).state.ports[0].settings.mtu.ip == 9702


# ---------------------------------------------------------------- parse and change

BLANK: dict[str, tuple[str, int]] = {
    "stack": ("vendor", 0),
    "rdma": ("rocep24s0f0", 0),
    "bdf": ("0000:18:00.0", 0),
    **{key: (text.rstrip("\n"), 0) for key, text in fixture("blank")["sections"].items()},
    "pause": ("Pause parameters for ens8:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\ton", 0),
    "node": ("1: CA", 0),
    "cc": ("0", 0),
    "options": ("roce_ena=1", 0),
    "conf": ("cat: /etc/fabric/qos/ens8.conf: No such file or directory", 1),
    "wants": ("", 1),
}
DONE: dict[str, Any] = {key: (text.rstrip("\n"), 0) for key, text in fixture("dscp")["sections"].items()}


def observe(hw: Hardware = HW, **parts: Any) -> Observation:
    rows = {**BLANK, "stack": ("inbox" if hw == INBOX else "vendor", 0), **parts}
    text = "".join(f"@@{name} ens8\n{body}\n@={status}\n" for name, (body, status) in rows.items())
    return PLATFORM.parse(dict.fromkeys(PLATFORM.questions(hw), text), hw)


def change(wish: PortSettings = WISH, hw: Hardware = HW, system: SystemState = ROCE, **parts: Any) -> Change:
    return PLATFORM.change(observe(hw, **parts), PLATFORM.realize(node(wish, system), hw).state, hw)


def commands(found: Change) -> tuple[str, ...]:
    return tuple(line for line in found.lines if not line.startswith(("/etc/", "systemctl")))


ETS = (
    "dcb ets set dev ens8 tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets"
    " tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0"
)
FOLDER = "/sys/kernel/config/irdma/rocep24s0f0"


def test_question_is_one_line_without_writing() -> None:
    (question,) = PLATFORM.questions(HW)
    assert "\n" not in question and "dcb -j app show dev" in question
    assert not any(
        word in question for word in ("set dev", " -A ", "app add", "--set-priv-flags", "param set")
    )
    assert PLATFORM.questions(replace(HW, ports=())) == ()


def test_change_of_a_blank_port() -> None:
    found = change()
    assert commands(found) == (
        "ethtool -A ens8 rx off tx off",
        f"dcb app add dev ens8 dscp-prio {MAP}",
        ETS,
        "dcb pfc set dev ens8 prio-pfc all:off 3:on",
        f"mkdir -p {FOLDER}",
        f"echo 1 > {FOLDER}/roce_dcqcn_enable",
        f"rmdir {FOLDER}",
        "cma_roce_tos -d rocep24s0f0 -p 1 -t 104",
    )
    conf = next(s.text or "" for s in found.commit if isinstance(s, Put) and s.path.endswith("ens8.conf"))
    assert "\nTRUST=dscp\n" in conf and "\nRDMA=rocep24s0f0\n" in conf and "PROTO" not in conf
    (undo,) = found.undo
    assert isinstance(undo, Call)
    assert {"TRUST=pcp", "PFC=0,0,0,0,0,0,0,0", "ECN=0", "PAUSE=on", "CMA_TOS=0"} <= set(undo.argv)
    assert not any(word.startswith("DSCP2PRIO") for word in undo.argv)
    assert found.level == Disturbs.PORT_BOUNCE and found.blocked == ()
    # Strict classes in DSCP mode: no source says that the card honours them.
    assert found.unverified == (ETS,)


def test_by_tag_the_map_of_priorities_is_written() -> None:
    found = change(by_tag())
    assert commands(found)[1] == f"{ETS} prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7"
    assert found.unverified == ()
    back = change(by_tag(), **DONE)
    assert commands(back)[:2] == (
        f"dcb app del dev ens8 dscp-prio {MAP}",
        f"{ETS} prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7",
    )
    assert "dcb pfc set dev ens8 prio-pfc all:off 3:on" in back.lines


def test_nothing_to_do() -> None:
    conf = "".join(f"{key}={value}\n" for key, value in knobs.knobs_of(realized(WISH)[0], Kind()).items())
    assert change(**DONE, conf=(conf, 0), wants=("yes", 0)).empty


def test_the_kernels_driver_changes_its_protocol_by_devlink() -> None:
    found = change(WISH, INBOX, **{**DONE, "node": ("4: RNIC", 0)})
    assert commands(found) == (
        "devlink dev param set pci/0000:18:00.0 name enable_iwarp value false cmode runtime",
        "devlink dev param set pci/0000:18:00.0 name enable_roce value true cmode runtime",
    )
    assert found.level == Disturbs.DRIVER_RELOAD
    (undo,) = found.undo
    assert isinstance(undo, Call) and "PROTO=iwarp" in undo.argv


def test_intels_driver_waits_for_its_option() -> None:
    iwarp: dict[str, Any] = {**DONE, "node": ("4: RNIC", 0)}
    path = "ports.ens8.marking.roce_v2"
    told = change(system=SystemState(), **iwarp, options=("", 0))
    assert [one.path for one in told.blocked] == [path]
    assert "roce_ena: 1" in dict(told.reasons)[path]
    assert change(**iwarp, options=("", 0)).blocked == ()
    wanted = PLATFORM.realize(node(WISH), HW).state
    assert path in waiting(wanted, observe(**iwarp))
    assert path not in waiting(wanted, observe(**iwarp, options=("", 0)))


@pytest.mark.parametrize(
    ("wish", "parts", "reason"),
    [
        (
            replace(WISH, qos=replace(WISH.qos, dcbx=UNMANAGED)),
            {"flags": ("fw-lldp-agent : on", 0), "dcbx": ("lld-managed ieee ", 0)},
            "--set-priv-flags ens8 fw-lldp-agent off",
        ),
        (WISH, {"ets": (fixture("four")["sections"]["ets"], 0)}, "irdma_traffic_classes: 4"),
        (WISH, {"stack": ("inbox", 0)}, "`stack: inbox`"),
    ],
)
def test_a_port_that_cannot_be_written_says_why(
    wish: PortSettings, parts: dict[str, Any], reason: str
) -> None:
    found = change(wish, **parts)
    assert commands(found) == () and any(reason in why for _, why in found.reasons)


def test_the_agent_in_the_firmware_goes_first() -> None:
    agent: dict[str, Any] = {"flags": ("fw-lldp-agent : on", 0), "dcbx": ("lld-managed ieee ", 0)}
    assert observe(**agent).running.system.owners == (FIRMWARE_AGENT.format("ens8"),)
    assert commands(change(**agent))[0] == "ethtool --set-priv-flags ens8 fw-lldp-agent off"
    back = change(PortSettings(qos=QosState(dcbx="firmware")), **DONE)
    assert commands(back) == (
        f"dcb app del dev ens8 dscp-prio {MAP}",
        "ethtool --set-priv-flags ens8 fw-lldp-agent on",
    )


def test_pause_comes_back_after_pfc_is_off() -> None:
    """The driver refuses it while PFC is on."""
    found = change(PortSettings(qos=QosState(global_pause=True, classes=classes())), **DONE)
    assert commands(found) == (
        "dcb pfc set dev ens8 prio-pfc all:off",
        "ethtool -A ens8 rx on tx on",
    )


def test_entries_that_are_missing_are_added_and_can_be_taken_back() -> None:
    rows = ",".join(
        f'[{point},{priority}," "]' for point, priority in enumerate(DSCP) if point not in (7, 48)
    )
    found = change(**{**DONE, "app": (f'{{"dscp_prio":[{rows}]}}', 0)})
    assert commands(found) == ("dcb app add dev ens8 dscp-prio 7:0 48:6",)
    (undo,) = found.undo
    assert isinstance(undo, Call)
    points = next(word for word in undo.argv if word.startswith("DSCP2PRIO=")).partition("=")[2].split(",")
    assert (points[7], points[48], points[26]) == ("-", "-", "3")


def test_what_is_not_understood_is_unknown() -> None:
    strange: dict[str, Any] = {key: ("something new", 0) for key in BLANK if key != "stack"}
    found = observe(**strange).running.ports[0].settings
    assert differences(PortSettings(WISH.mtu, WISH.qos, WISH.marking), found)
    assert all(item.unknown for item in differences(node(realized(WISH)[0]), node(found)))
    blocked = change(app=("Attribute read: Operation not supported", 1))
    assert {"ports.ens8.qos.trust", "ports.ens8.qos.dscp_to_priority"} <= {
        one.path for one in blocked.blocked
    }


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
    assert change(PortSettings(marking=Marking(np=(3,), rp=(3,)))).level == Disturbs.LOSS
    assert any("ice_dcbnl_devreset" in item.source for item in change().disturbs)
