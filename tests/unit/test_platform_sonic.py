"""SONiC: read-back, realize, the updater's permissions, patches and steps. The circle is in tests/lab."""

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

from rdma_fabric.assets import folder
from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware, asic_of
from rdma_fabric.platforms import _sonic_gcu as gcu
from rdma_fabric.platforms import _sonic_read as read
from rdma_fabric.platforms._contract import Change, Disturbs, Send
from rdma_fabric.platforms._shared import expand
from rdma_fabric.platforms._sonic_patch import TEMPLATE, rows_text
from rdma_fabric.platforms.sonic import PLATFORM
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
    owned_part,
)
from tests.support.golden import Golden
from tests.support.sonic_steps import files, result_of, sent

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "sonic"
FIXTURES = sorted(OBSERVE.glob("*.yaml"))
MODEL = "ACS-SN5600"

# ---------------------------------------------------------------- small builders


def hardware(
    *ports: str | PortHardware, model: str = MODEL, version: str = "202411", **options: str
) -> Hardware:
    made = tuple(
        port if isinstance(port, PortHardware) else PortHardware(port, speed_gbps=400)
        for port in ports or ("Ethernet0", "Ethernet8")
    )
    return Hardware(("sonic",), model, version, made, asic_of(model), tuple(sorted(options.items())))


def dscp_map(default: int = 0, **classes: int) -> tuple[int, ...]:
    """dscp_map(0, d26=3): everything to 0 but 26 to 3."""
    special = {int(name[1:]): value for name, value in classes.items()}
    return tuple(special.get(dscp, default) for dscp in range(64))


RAMP = Ecn(Amount(150_000), Amount(1_500_000), 100.0)


def roce(lossless: tuple[int, ...] = (3,), ecn: Ecn = RAMP, **qos: Any) -> PortSettings:
    classes = tuple(
        ClassState(
            pfc_tx=p in lossless,
            pfc_rx=p in lossless,
            watchdog=p in lossless,
            ecn=ecn if p in lossless else UNMANAGED,
            headroom=None if p in lossless else UNMANAGED,
            share=Share("strict") if p == 6 else Share("dwrr", 50) if p in (0, 3) else UNMANAGED,
        )
        for p in range(8)
    )
    values: dict[str, Any] = {
        "trust": "dscp",
        "dscp_to_priority": dscp_map(d26=3, d48=6),
        "classes": classes,
        "watchdog": WatchdogTimers(200, 400, 100, "drop"),
        "dcbx": "none",
        "global_pause": False,
        "cable_m": 40,
    }
    return PortSettings(mtu=Mtu(ip=MTU_MAX), qos=QosState(**(values | qos)))


def with_class(one: PortSettings, priority: int, **values: Any) -> PortSettings:
    classes = list(one.qos.classes)
    classes[priority] = replace(classes[priority], **values)
    return replace(one, qos=replace(one.qos, classes=tuple(classes)))


def node(*settings: PortSettings, hw: Hardware) -> NodeState:
    """One setting for all ports, or one for each."""
    each = settings if len(settings) > 1 else settings * len(hw.ports)
    return NodeState(
        ports=tuple(PortState(port.name, port.kind, one) for port, one in zip(hw.ports, each, strict=True))
    )


def realized(*wishes: PortSettings, hw: Hardware) -> NodeState:
    return PLATFORM.realize(node(*wishes, hw=hw), hw).state


def seen_rows(rows: Mapping[str, Any], hw: Hardware, asic: str = "mellanox") -> Observation:
    """What a switch with this CONFIG_DB is seen as."""
    version = f"SONiC Software Version: SONiC.{hw.version}.1-abc\nHwSKU: {hw.model}\nASIC: {asic}\n"
    return PLATFORM.parse({read.VERSION: version, read.CONFIG: json.dumps(rows)}, hw)


def bare(hw: Hardware, **tables: Any) -> dict[str, Any]:
    """A CONFIG_DB without QoS; ports are up."""
    ports = {port.name: {"speed": "400000", "lanes": "1", "admin_status": "up"} for port in hw.ports}
    return {
        "DEVICE_METADATA": {"localhost": {"hwsku": hw.model, "hostname": "leaf01"}},
        "PORT": ports,
        "ACL_TABLE": {"FOREIGN": {"type": "L3", "ports": ["Ethernet0"]}},
        **tables,
    }


def reached(change: Change, rows: Mapping[str, Any], wanted: NodeState, hw: Hardware) -> dict[str, Any]:
    """The CONFIG_DB after the commit, having shown that it reads as wanted and keeps what is foreign."""
    made = result_of(change, rows)
    again = seen_rows(made, hw, asic="broadcom" if hw.model.startswith("Dell") else "mellanox")
    left = [item for item in differences(wanted, again.running) if not item.path.endswith("mtu.ip")]
    assert left == []
    assert made["ACL_TABLE"] == rows["ACL_TABLE"]
    return made


# ---------------------------------------------------------------- read-back


def plain(value: Any) -> Any:
    """A field as the fixtures write it."""
    if isinstance(value, Absent):
        return f"<{value.value}>"
    if isinstance(value, Ecn):
        return f"{value.kmin.value} to {value.kmax.value}, {value.pmax:g}%"
    if isinstance(value, Share):
        cap = f" {value.cap}" if isinstance(value.cap, int) else ""
        return ("strict" if value.scheduler == "strict" else f"dwrr {value.weight}") + cap
    return value.value if isinstance(value, Amount) else value


def map_pairs(text: str) -> dict[int, int]:
    groups = [group.split("=") for group in text.split()]
    return {code: int(to) for codes, to in groups for code in expand(codes)}


def same(found: Any, wanted: Any) -> bool:
    if isinstance(found, tuple):
        return map_pairs(str(wanted)) == dict(enumerate(found))
    return bool(plain(found) == wanted)


def field(port: PortState, path: str) -> Any:
    if path == "speed_gbps":
        return port.speed_gbps
    start: Any = port.settings
    return reduce(
        lambda value, name: value[int(name)] if name.isdigit() else getattr(value, name),
        path.split("."),
        start,
    )


def wrong(state: NodeState | None, expect: Mapping[str, Mapping[str, Any]]) -> list[str]:
    assert state is not None
    found = []
    for names, values in expect.items():
        for name in names.split():
            port = state.port(name)
            assert port is not None, name
            found += [
                f"{name} {path}: {plain(field(port, path))!r}, not {value!r}"
                for path, value in values.items()
                if not same(field(port, path), value)
            ]
    return found


def fixture(path: Path) -> tuple[dict[str, Any], Hardware]:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name, text in data.get("dscp_maps", {}).items():
        row = json.dumps({str(code): str(to) for code, to in map_pairs(text).items()})
        data["answers"][read.CONFIG] = data["answers"][read.CONFIG].replace(f'"@{name}@"', row)
    ports = []
    for name, values in data["ports"].items():
        facts: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        ports.append(PortHardware(name, **facts))
    return data, hardware(*ports, model=data["model"], version=data["version"])


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_read_back(path: Path) -> None:
    data, hw = fixture(path)
    seen = PLATFORM.parse(data["answers"], hw)
    assert wrong(seen.running, data["expect"]) == []
    for note in data["notes"]:
        assert any(found.startswith(note) for found in seen.notes), (note, seen.notes)
    assert [one for one in seen.notes if not any(one.startswith(note) for note in data["notes"])] == []
    facts = dict(seen.facts)
    facts.pop(read.BLOB)
    assert facts == data.get("facts", facts)
    assert [list(one) for one in seen.neighbours] == data.get("neighbours", [])
    assert seen.operational is False
    if "stored" in data:
        assert wrong(seen.stored, data["stored"]) == []
    else:
        assert seen.stored is None


def test_every_question_has_a_read_back() -> None:
    data, hw = fixture(OBSERVE / "worked_example.yaml")
    assert set(data["answers"]) == set(PLATFORM.questions(hw))
    data, hw = fixture(OBSERVE / "blank.yaml")
    assert set(data["answers"]) == set(PLATFORM.questions(hw))


def test_nothing_foreign_is_kept() -> None:
    data, hw = fixture(OBSERVE / "worked_example.yaml")
    assert "planted" in data["answers"][read.CONFIG]
    assert "planted" not in repr(PLATFORM.parse(data["answers"], hw))


@pytest.mark.parametrize("text", ["", "Traceback (most recent call last):\n", "{", "[]", '{"PORT": 3}'])
def test_nothing_usable_is_unknown(text: str) -> None:
    hw = hardware()
    seen = PLATFORM.parse({read.CONFIG: text}, hw)
    expect = {"Ethernet0 Ethernet8": {"mtu.ip": "<unknown>", "qos.classes.3.pfc_tx": "<unknown>"}}
    assert wrong(seen.running, expect) == []
    assert seen.notes
    change = PLATFORM.change(seen, realized(roce(), hw=hw), hw)
    assert change.empty and change.blocked and not change.differences


def test_a_paused_priority_with_a_lossy_egress_buffer_is_named() -> None:
    """Stock images make queues 3 and 4 lossless; PFC on another priority alone does not make its queue so."""
    hw = hardware()
    rows = bare(
        hw,
        BUFFER_PROFILE={
            "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "7"},
            "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "9216", "dynamic_th": "7"},
        },
        BUFFER_QUEUE={
            "Ethernet0|0-2": {"profile": "egress_lossy_profile"},
            "Ethernet0|3-4": {"profile": "egress_lossless_profile"},
            "Ethernet0|5-6": {"profile": "egress_lossy_profile"},
        },
        PORT_QOS_MAP={"Ethernet0": {"pfc_enable": "3,5", "pfc_to_queue_map": "X", "tc_to_queue_map": "X"}},
    )
    identity = {str(one): str(one) for one in range(8)}
    rows |= {"TC_TO_QUEUE_MAP": {"X": identity}, "MAP_PFC_PRIORITY_TO_QUEUE": {"X": identity}}
    told = [note for note in seen_rows(rows, hw).notes if "lossy" in note]
    assert told == [
        "Ethernet0: queue 5 of lossless priority 5 has the lossy buffer profile egress_lossy_profile"
    ]
    rows["BUFFER_QUEUE"]["Ethernet0|5"] = {"profile": "[BUFFER_PROFILE|egress_lossless_profile]"}
    assert [note for note in seen_rows(rows, hw).notes if "lossy" in note] == []


def test_more_than_one_asic_is_not_read() -> None:
    hw = hardware()
    version = "SONiC Software Version: SONiC.202411.1\nASIC Count: 3\n"
    seen = PLATFORM.parse({read.VERSION: version, read.CONFIG: json.dumps(bare(hw))}, hw)
    assert wrong(seen.running, {"Ethernet0": {"mtu.ip": "<unknown>"}}) == []
    assert "more than one ASIC" in " ".join(seen.notes)


@given(st.dictionaries(st.sampled_from(PLATFORM.questions(hardware())), st.text(max_size=200)))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_parse_never_raises(answers: dict[str, str]) -> None:
    PLATFORM.parse(answers, hardware())


_TEXTS = st.sampled_from(
    ["3", "3,4", "FABRIC", "40m", "AZURE", "", "x|y", "[A|B]", "NULL", "DWRR", "ecn_all", "-1"]
)
_ROWS = st.dictionaries(_TEXTS, st.one_of(_TEXTS, st.lists(_TEXTS), st.none()), max_size=4)
_KEYS = st.sampled_from(
    ["Ethernet0", "Ethernet0|3", "Ethernet0|3-4", "Ethernet0|4-3", "A|B|Ethernet0|3", "GLOBAL", "AZURE"]
)
_TABLES = st.sampled_from(
    sorted({*read.MAP_TABLES, "QUEUE", "PFC_WD", "PORT_QOS_MAP", "SCHEDULER", "WRED_PROFILE"})
)


@given(st.dictionaries(_TABLES, st.one_of(st.dictionaries(_KEYS, st.one_of(_ROWS, _TEXTS)), _TEXTS)))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_odd_rows_never_raise(tables: dict[str, Any]) -> None:
    hw = hardware()
    seen = seen_rows({**bare(hw), **tables}, hw)
    PLATFORM.change(seen, realized(roce(), hw=hw), hw)


def test_evidence_follows_own_settings_only() -> None:
    hw = hardware("Ethernet0")
    rows = bare(hw, QUEUE={"Ethernet0|3": {"scheduler": "a"}, "Ethernet40|3": {"scheduler": "a"}})
    one = seen_rows(rows, hw).evidence
    rows["QUEUE"]["Ethernet40|3"] = {"scheduler": "b"}
    rows["BUFFER_PG"] = {"Ethernet0|3": {"profile": "pg_lossless_400000_40m_profile"}}
    assert seen_rows(rows, hw).evidence == one
    rows["QUEUE"]["Ethernet0|3"] = {"scheduler": "b"}
    assert seen_rows(rows, hw).evidence != one


# ---------------------------------------------------------------- realize

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
OTHERS = (("red", Amount(1), Amount(2), 5.4), ("yellow", Amount(3), Amount(4), 5.0))
REALIZE: list[tuple[str, PortSettings, dict[str, Any], list[tuple[Severity, str]]]] = [
    ("max", roce(), {"mtu.ip": 9216, "qos.global_pause": "<not applicable>", "qos.dcbx": "none"}, []),
    ("mtu above", replace(roce(), mtu=Mtu(9217)), {"mtu.ip": 9216}, [(NOTE, "mtu.ip")]),
    ("mtu below", replace(roce(), mtu=Mtu(60)), {"mtu.ip": 68}, [(NOTE, "mtu.ip")]),
    ("mtu plain", replace(roce(), mtu=Mtu(4200)), {"mtu.ip": 4200}, []),
    ("frame", replace(roce(), mtu=Mtu(frame=9216)), {"mtu.frame": "<not applicable>"}, [(NOTE, "mtu.frame")]),
    (
        "queues and groups",
        roce((3, 4)),
        {
            f"qos.classes.{p}.{name}": value
            for p, queue, group in (
                (0, 0, 0),
                (3, 3, 3),
                (4, 4, 4),
                (6, 6, 0),
                (5, "<unmanaged>", "<unmanaged>"),
            )
            for name, value in (("queue", queue), ("group", group))
        },
        [],
    ),
    (
        "lossless zero",
        roce((0,)),
        {"qos.classes.0.group": 0, "qos.classes.6.group": 1},
        [(WARNING, "qos.classes.0.group")],
    ),
    ("trust both", roce(trust="both"), {"qos.trust": "dscp"}, [(WARNING, "qos.trust")]),
    (
        "trust pcp",
        roce(trust="pcp"),
        {
            "qos.trust": "pcp",
            "qos.pcp_to_priority": "0=0 1=1 2=2 3=3 4=4 5=5 6=6 7=7",
            "qos.dscp_to_priority": "<not applicable>",
        },
        [],
    ),
    ("trust port", roce(trust="port"), {"qos.dscp_to_priority": "<not applicable>"}, []),
    ("dcbx", roce(dcbx="ieee"), {"qos.dcbx": "none"}, [(ERROR, "qos.dcbx")]),
    (
        "pause",
        roce(global_pause=True),
        {"qos.global_pause": "<not applicable>"},
        [(WARNING, "qos.global_pause")],
    ),
    (
        "one direction",
        with_class(roce(), 3, pfc_tx=False),
        {"qos.classes.3.pfc_tx": True, "qos.classes.3.pfc_rx": True, "qos.classes.3.group": 3},
        [(ERROR, "qos.classes.3.pfc_rx")],
    ),
    (
        "obey all, send three",
        reduce(lambda one, p: with_class(one, p, pfc_rx=True), range(8), roce()),
        {"qos.classes.0.pfc_rx": True, "qos.classes.0.pfc_tx": False, "qos.classes.3.pfc_tx": True},
        [],
    ),
    (
        "watchdog without pfc",
        with_class(roce(), 5, watchdog=True),
        {"qos.classes.5.watchdog": False},
        [(WARNING, "qos.classes.5.watchdog")],
    ),
    (
        "times",
        roce(watchdog=WatchdogTimers(50, 70000, 5000, "errdisable")),
        {
            "qos.watchdog.detect_ms": 100,
            "qos.watchdog.restore_ms": 60000,
            "qos.watchdog.poll_ms": 100,
            "qos.watchdog.action": "drop",
        },
        [
            (NOTE, "qos.watchdog.detect_ms"),
            (NOTE, "qos.watchdog.restore_ms"),
            (NOTE, "qos.watchdog.poll_ms"),
            (WARNING, "qos.watchdog.action"),
            (NOTE, "qos.watchdog.poll_ms"),
        ],
    ),
    (
        "poll within times",
        roce(watchdog=WatchdogTimers(3000, 4000, 2000, "notify")),
        {"qos.watchdog.poll_ms": 2000, "qos.watchdog.action": "alert"},
        [(NOTE, "qos.watchdog.action")],
    ),
    ("times left open", roce(watchdog=WatchdogTimers()), {"qos.watchdog.detect_ms": "<unmanaged>"}, []),
    ("cable between", roce(cable_m=15), {"qos.cable_m": 40}, [(NOTE, "qos.cable_m")]),
    ("cable listed", roce(cable_m=300), {"qos.cable_m": 300}, []),
    ("cable none", roce(cable_m=0), {"qos.cable_m": 0}, []),
    ("cable too long", roce(cable_m=301), {"qos.cable_m": 300}, [(ERROR, "qos.cable_m")]),
    (
        "cells",  # Spectrum-4: 192 bytes
        roce(ecn=Ecn(Amount(1000, "cells"), Amount(2000, "cells"), 12.6)),
        {"qos.classes.3.ecn": "192000 to 384000, 13%"},
        [(NOTE, "qos.classes.3.ecn")],
    ),
    (
        "percent",
        roce(ecn=Ecn(Amount(10, "percent"), Amount(20))),
        {"qos.classes.3.ecn": "<not applicable>"},
        [(ERROR, "qos.classes.3.ecn")],
    ),
    (
        "small chance",
        roce(ecn=Ecn(Amount(1), Amount(1), 0.1)),
        {"qos.classes.3.ecn": "1 to 1, 1%"},
        [(NOTE, "qos.classes.3.ecn")],
    ),
    ("no chance", roce(ecn=Ecn(Amount(1), Amount(2), 0.0)), {"qos.classes.3.ecn": "1 to 2, 0%"}, []),
    (
        "inverted",
        roce(ecn=Ecn(Amount(2), Amount(1))),
        {"qos.classes.3.ecn": "<not applicable>"},
        [(ERROR, "qos.classes.3.ecn")],
    ),
    ("colours", roce(ecn=Ecn(Amount(1), Amount(2), 5.0, OTHERS)), {}, [(NOTE, "qos.classes.3.ecn")]),
    (
        "weights",
        with_class(with_class(roce(), 3, share=Share("dwrr", 101)), 0, share=Share("dwrr", 0)),
        {"qos.classes.3.share": "dwrr 100", "qos.classes.0.share": "dwrr 1"},
        [(NOTE, "qos.classes.0.share"), (NOTE, "qos.classes.3.share")],
    ),
    ("cap", with_class(roce(), 6, share=Share("strict", 0, 40)), {"qos.classes.6.share": "strict 40"}, []),
    ("strict weight", with_class(roce(), 6, share=Share("strict", 9)), {"qos.classes.6.share": "strict"}, []),
    ("headroom", with_class(roce(), 3, headroom=Amount(10, "cells")), {"qos.classes.3.headroom": 1920}, []),
    (
        "headroom percent",
        with_class(roce(), 3, headroom=Amount(10, "percent")),
        {"qos.classes.3.headroom": "<not applicable>"},
        [(ERROR, "qos.classes.3.headroom")],
    ),
]


@pytest.mark.parametrize(("name", "wish", "expect", "faults"), REALIZE, ids=[row[0] for row in REALIZE])
def test_realize(
    name: str, wish: PortSettings, expect: dict[str, Any], faults: list[tuple[Severity, str]]
) -> None:
    hw = hardware("Ethernet0")
    made = PLATFORM.realize(node(wish, hw=hw), hw)
    assert wrong(made.state, {"Ethernet0": expect}) == []
    assert [(fault.severity, fault.setting) for fault in made.faults] == faults
    assert all(fault.port == "Ethernet0" and fault.reason for fault in made.faults)
    assert PLATFORM.realize(made.state, hw).state == made.state


def test_colours_are_sorted_and_rounded() -> None:
    hw = hardware("Ethernet0")
    port = realized(roce(ecn=Ecn(Amount(1), Amount(2), 5.0, OTHERS)), hw=hw).ports[0]
    ecn = port.settings.qos.classes[3].ecn
    assert isinstance(ecn, Ecn)
    assert ecn.others == (("yellow", Amount(3), Amount(4), 5.0), ("red", Amount(1), Amount(2), 5.0))


@pytest.mark.parametrize(
    ("version", "poll"), [("202411", 3000), ("202511", 1000), ("master", 1000), ("", 1000)]
)
def test_poll_ceiling_follows_the_branch(version: str, poll: int) -> None:
    hw = hardware("Ethernet0", version=version)
    wish = roce(watchdog=WatchdogTimers(5000, 6000, 4000, "drop"))
    assert realized(wish, hw=hw).ports[0].settings.qos.watchdog.poll_ms == poll


def test_one_poll_interval_serves_all_ports() -> None:
    hw = hardware()
    slow, fast = (roce(watchdog=WatchdogTimers(ms, 2 * ms, ms)) for ms in (400, 200))
    made = PLATFORM.realize(node(slow, fast, hw=hw), hw)
    assert [port.settings.qos.watchdog.poll_ms for port in made.state.ports] == [200, 200]
    assert [(fault.port, fault.setting) for fault in made.faults] == [("Ethernet0", "qos.watchdog.poll_ms")]
    assert "qos.watchdog.poll_ms" in PLATFORM.traits.globals


def test_cable_lengths_of_the_node() -> None:
    wish = roce(cable_m=41)
    listed = hardware("Ethernet0", cable_lengths="5m, 50m,100m")
    assert realized(wish, hw=listed).ports[0].settings.qos.cable_m == 50
    dynamic = hardware("Ethernet0", buffer_model="dynamic")
    assert realized(wish, hw=dynamic).ports[0].settings.qos.cable_m == 41


def test_port_kinds_inherit() -> None:
    hw = hardware(
        PortHardware("PortChannel1", "bond", members=("Ethernet0",)),
        "Ethernet0",
        PortHardware("Ethernet8.100", "vlan", parent="Ethernet8"),
        PortHardware("Vlan100", "svi", members=("Ethernet8",)),
        "Ethernet8",
    )
    sizes = (9000, 9216, 9216, 9100, 4200)
    wishes = [replace(roce(), mtu=Mtu(size)) for size in sizes]
    made = PLATFORM.realize(node(*wishes, hw=hw), hw)
    assert [port.settings.mtu.ip for port in made.state.ports] == [9000, 9000, 4200, 9100, 4200]
    assert [(fault.severity, fault.port) for fault in made.faults] == [
        (WARNING, "Ethernet0"),
        (WARNING, "Ethernet8.100"),
        (WARNING, "Vlan100"),
    ]
    kinds = {port.name: port.settings.qos.trust for port in made.state.ports}
    assert kinds["Ethernet0"] == "dscp" and kinds["Vlan100"] is NOT_APPLICABLE
    assert kinds["PortChannel1"] is NOT_APPLICABLE


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from([UNMANAGED, NOT_APPLICABLE]), values)


AMOUNTS = st.builds(Amount, st.integers(0, 10**7), st.sampled_from(["bytes", "percent", "cells", "segments"]))
CLASSES = st.builds(
    ClassState,
    pfc_tx=maybe(st.booleans()),
    pfc_rx=maybe(st.booleans()),
    watchdog=maybe(st.booleans()),
    ecn=maybe(st.one_of(st.none(), st.builds(Ecn, AMOUNTS, AMOUNTS, st.floats(0, 100)))),
    headroom=maybe(st.one_of(st.none(), AMOUNTS)),
    share=maybe(
        st.one_of(
            st.none(),
            st.builds(
                Share, st.sampled_from(["strict", "dwrr"]), st.integers(0, 200), maybe(st.integers(0, 200))
            ),
        )
    ),
)
MAPS = st.sampled_from([dscp_map(), dscp_map(d26=3), dscp_map(1, d26=4, d48=6)])
SETTINGS = st.builds(
    PortSettings,
    mtu=st.builds(
        Mtu, maybe(st.sampled_from([1, 1500, 9000, 9216, 20000, MTU_MAX])), maybe(st.integers(0, 9999))
    ),
    qos=st.builds(
        QosState,
        trust=maybe(st.sampled_from(["dscp", "pcp", "both", "port"])),
        dscp_to_priority=maybe(MAPS),
        pcp_to_priority=maybe(MAPS.map(lambda numbers: numbers[:8])),
        classes=st.tuples(*[CLASSES] * 8),
        watchdog=st.builds(
            WatchdogTimers,
            *[maybe(st.integers(1, 99999))] * 3,
            maybe(st.sampled_from(["drop", "forward", "alert", "errdisable", "notify"])),
        ),
        dcbx=maybe(st.sampled_from(["none", "ieee", "cee", "firmware"])),
        global_pause=maybe(st.booleans()),
        cable_m=maybe(st.integers(0, 500)),
    ),
)


@given(SETTINGS, SETTINGS)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_realize_is_idempotent_and_writable(first: PortSettings, second: PortSettings) -> None:
    hw = hardware()
    state = PLATFORM.realize(node(first, second, hw=hw), hw).state
    assert PLATFORM.realize(state, hw).state == state
    change = PLATFORM.change(seen_rows(bare(hw), hw), state, hw)
    if not change.blocked:
        result = seen_rows(result_of(change, bare(hw)), hw)
        assert differences(state, result.running) == ()


# ---------------------------------------------------------------- what the updater permits


def op(kind: gcu.Kind, table: str, key: str = "", field: str = "", value: object = "x") -> gcu.Op:
    return gcu.Op(kind, table, key, field, None if kind == "remove" else value, "old")


WATCH = {"action": "drop", "detection_time": "200", "restoration_time": "400"}
PERMITTED: list[tuple[gcu.Op, int, str, bool]] = [
    (op("add", "PFC_WD", "Ethernet0", value=WATCH), 202305, "spc4", True),
    (op("add", "PFC_WD", "Ethernet0", value={**WATCH, "pfc_stat_history": "enable"}), 202411, "spc4", False),
    (op("replace", "PFC_WD", "Ethernet0", "detection_time"), 202411, "th5", True),
    (op("replace", "PFC_WD", "Ethernet0", "detection_time"), 202305, "th5", False),
    (op("replace", "PFC_WD", "Ethernet0", "detection_time"), gcu.MASTER, "", False),
    (op("remove", "PFC_WD", "Ethernet0"), 202411, "spc1", True),
    (op("add", "PFC_WD", value={"Ethernet0": WATCH}), gcu.MASTER, "spc4", False),
    (op("remove", "PFC_WD"), 202411, "spc4", True),
    (op("replace", "PFC_WD", "GLOBAL", "POLL_INTERVAL"), 202411, "spc4", True),
    (op("remove", "PFC_WD", "GLOBAL", "POLL_INTERVAL"), gcu.MASTER, "spc4", False),
    (op("add", "PFC_WD", "GLOBAL", value={"POLL_INTERVAL": "100"}), gcu.MASTER, "spc4", False),
    (op("remove", "PFC_WD", "GLOBAL"), gcu.MASTER, "spc4", False),
    (op("replace", "WRED_PROFILE", "AZURE_LOSSLESS", "green_min_threshold"), 202305, "td3", True),
    (op("replace", "WRED_PROFILE", "AZURE_LOSSLESS", "yellow_min_threshold"), 202505, "td3", False),
    (op("replace", "WRED_PROFILE", "FABRIC", "green_min_threshold"), 202411, "td3", False),
    (op("replace", "WRED_PROFILE", "FABRIC", "green_min_threshold"), 202505, "td3", True),
    (op("replace", "WRED_PROFILE", "FABRIC", "green_min_threshold"), 202505, "", False),
    (op("add", "WRED_PROFILE", "FABRIC", value={}), 202505, "spc4", False),
    (op("add", "WRED_PROFILE", "FABRIC", value={}), 202511, "", True),
    (op("add", "BUFFER_PROFILE", "FABRIC", value={}), 202505, "spc4", False),
    (op("add", "BUFFER_PROFILE", "FABRIC", value={}), 202511, "", True),
    (op("replace", "BUFFER_PROFILE", "FABRIC", "size"), 202511, "spc4", False),
    (op("replace", "BUFFER_POOL", "ingress_lossless_pool", "size"), 202511, "spc4", False),
    (op("add", "QUEUE", "Ethernet0|3", value={}), 202305, "", True),
    (op("replace", "PORT_QOS_MAP", "Ethernet0", "pfc_enable"), 202305, "", True),
]


@pytest.mark.parametrize(("what", "branch", "asic", "expected"), PERMITTED)
def test_permissions(what: gcu.Op, branch: int, asic: str, expected: bool) -> None:
    assert gcu.permitted(what, branch, asic) is expected


@pytest.mark.parametrize(
    ("asic_type", "sku", "branch", "expected"),
    [
        ("mellanox", "ACS-SN5600", 202305, "spc4"),
        ("mellanox", "acs-sn5600", 202305, "spc4"),
        ("mellanox", "ACS-SN5600-X", 202305, ""),
        ("mellanox", "Mellanox-SN4280-O8C80", 202411, ""),
        ("mellanox", "Mellanox-SN4280-O8C80", 202505, "spc3"),
        ("broadcom", "Arista-7060X6-64PE-64x400G", 202305, ""),
        ("broadcom", "Arista-7060X6-64PE-64x400G", 202411, "th5"),
        ("broadcom", "DellEMC-Z9664f-O64", gcu.MASTER, ""),
        ("cisco-8000", "anything", 202305, "cisco-8000"),
        ("marvell-teralynx", "anything", 202505, ""),
        ("marvell-teralynx", "anything", 202511, "marvell-teralynx"),
        ("", "ACS-SN5600", 202411, ""),
    ],
)
def test_families(asic_type: str, sku: str, branch: int, expected: str) -> None:
    assert gcu.family(asic_type, sku, branch) == expected


@pytest.mark.parametrize(
    ("text", "branch"),
    [
        ("SONiC.202411.17-5f2c", 202411),
        ("20230531.22", 202305),
        ("202505", 202505),
        ("master.1-abc", gcu.MASTER),
        ("", gcu.MASTER),
    ],
)
def test_branches(text: str, branch: int) -> None:
    assert gcu.branch_of(text) == branch


# ---------------------------------------------------------------- patches


def change_of(rows: Mapping[str, Any], wanted: NodeState, hw: Hardware, asic: str = "mellanox") -> Change:
    return PLATFORM.change(seen_rows(rows, hw, asic), wanted, hw)


@pytest.mark.parametrize("model", ["ACS-SN5600", "DellEMC-Z9664f-O64"])
@pytest.mark.parametrize("version", ["202305", "202411", "202505", "202511", "master"])
def test_blank_switch_reaches_the_wish_and_goes_back(version: str, model: str) -> None:
    hw = hardware(version=version, model=model)
    asic = "broadcom" if model.startswith("Dell") else "mellanox"
    wanted, rows = realized(roce((3, 4)), hw=hw), bare(hw)
    before = seen_rows(rows, hw, asic)
    change = PLATFORM.change(before, wanted, hw)
    after = reached(change, rows, wanted, hw)
    back = change_of(after, owned_part(before.running, wanted), hw, asic)
    start = result_of(back, after)
    assert differences(owned_part(before.running, wanted), seen_rows(start, hw, asic).running) == ()
    # Identity maps stay bound: nothing was bound before, and nothing is not a value that can be written.
    assert not {"QUEUE", "SCHEDULER", "DSCP_TO_TC_MAP"} & set(start)
    # Before 202505 our profile has a name of SONiC's, and is left without users.
    assert set(start.get("WRED_PROFILE", ())) == (
        {"AZURE_LOSSLESS"} if gcu.branch_of(version) < 202505 else set()
    )
    assert start["PFC_WD"] == {"GLOBAL": {"POLL_INTERVAL": "100"}}


@pytest.mark.parametrize(
    ("version", "model", "loaded"),
    [
        ("202305", "ACS-SN5600", {"first.json": ["WRED_PROFILE"], "late.json": ["PFC_WD"]}),
        ("202505", "ACS-SN5600", {"first.json": ["WRED_PROFILE"], "late.json": ["PFC_WD"]}),
        ("202511", "ACS-SN5600", {"late.json": ["PFC_WD"]}),
        ("master", "DellEMC-Z9664f-O64", {"late.json": ["PFC_WD"]}),
    ],
)
def test_what_the_updater_refuses_is_loaded(version: str, model: str, loaded: dict[str, list[str]]) -> None:
    hw = hardware(version=version, model=model)
    change = change_of(bare(hw), realized(roce(), hw=hw), hw, "broadcom" if "Dell" in model else "mellanox")
    held = files(change)
    assert {name: sorted(held[name]) for name in ("first.json", "late.json") if name in held} == loaded
    patched = {one["path"].split("/")[1] for one in held["patch.json"]}
    assert patched.isdisjoint({table for tables in loaded.values() for table in tables})


def stock(hw: Hardware, **watch: Any) -> dict[str, Any]:
    """SONiC's own QoS on our ports and on one that is not ours."""
    names = [*(port.name for port in hw.ports), "Ethernet96"]
    identity = {str(p): str(p) for p in range(8)}
    profile = {
        f"{c}_{k}": v
        for c in ("green", "yellow", "red")
        for k, v in (("min_threshold", "1048576"), ("max_threshold", "2097152"), ("drop_probability", "5"))
    }
    profile |= {"ecn": "ecn_all", **{f"wred_{c}_enable": "true" for c in ("green", "yellow", "red")}}
    binding = dict.fromkeys(
        ("dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map"), "AZURE"
    )
    rows = bare(
        hw,
        DSCP_TO_TC_MAP={"AZURE": {str(d): "1" for d in range(64)}},
        TC_TO_QUEUE_MAP={"AZURE": identity},
        TC_TO_PRIORITY_GROUP_MAP={"AZURE": {**dict.fromkeys(identity, "0"), "3": "3", "4": "4"}},
        MAP_PFC_PRIORITY_TO_QUEUE={"AZURE": identity},
        SCHEDULER={"scheduler.1": {"type": "DWRR", "weight": "15"}},
        WRED_PROFILE={"AZURE_LOSSLESS": profile},
        PORT_QOS_MAP={name: {**binding, "pfc_enable": "3", "pfcwd_sw_enable": "3"} for name in names},
        QUEUE={
            f"{name}|{q}": {
                "scheduler": "scheduler.1",
                **({"wred_profile": "AZURE_LOSSLESS"} if q == 3 else {}),
            }
            for name in names
            for q in (0, 3)
        },
        CABLE_LENGTH={"AZURE": dict.fromkeys(names, "40m")},
    )
    rows["PORT"]["Ethernet96"] = {"speed": "400000", "admin_status": "up"}
    return {**rows, **watch}


def ecn_only(*ramps: Ecn) -> list[PortSettings]:
    """A wish for the marking of priority 3 and nothing else."""
    return [with_class(PortSettings(), 3, ecn=ramp) for ramp in ramps]


def port_rows(rows: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {
        table: {k: v for k, v in entries.items() if k.split("|")[0] == name}
        for table, entries in rows.items()
    }


def test_profile_of_foreign_queues_is_not_touched() -> None:
    hw = hardware()
    rows = stock(hw)
    wanted = realized(*ecn_only(RAMP, RAMP), hw=hw)
    change = change_of(rows, wanted, hw)
    after = reached(change, rows, wanted, hw)
    assert after["WRED_PROFILE"]["AZURE_LOSSLESS"] == rows["WRED_PROFILE"]["AZURE_LOSSLESS"]
    assert after["QUEUE"]["Ethernet0|3"] == {"scheduler": "scheduler.1", "wred_profile": "FABRIC"}
    assert port_rows(after, "Ethernet96") == port_rows(rows, "Ethernet96")
    assert change.level is Disturbs.PORT_BOUNCE
    assert change.disturbs[0].ports == ("Ethernet0", "Ethernet8")


def test_own_profile_is_tuned_without_a_flap_where_the_updater_allows_it() -> None:
    hw = hardware()
    rows = stock(hw)
    for table in ("PORT_QOS_MAP", "QUEUE"):
        rows[table] = {key: row for key, row in rows[table].items() if not key.startswith("Ethernet96")}
    change = change_of(rows, realized(*ecn_only(RAMP, RAMP), hw=hw), hw)
    assert change.lines == (
        "WRED_PROFILE|AZURE_LOSSLESS green_drop_probability: 5 -> 100",
        "WRED_PROFILE|AZURE_LOSSLESS green_max_threshold: 2097152 -> 1500000",
        "WRED_PROFILE|AZURE_LOSSLESS green_min_threshold: 1048576 -> 150000",
    )
    assert change.disturbs == () and change.level is Disturbs.NOTHING
    assert files(change)["patch.json"] == [
        {"op": "replace", "path": f"/WRED_PROFILE/AZURE_LOSSLESS/green_{name}", "value": value}
        for name, value in (
            ("drop_probability", "100"),
            ("max_threshold", "1500000"),
            ("min_threshold", "150000"),
        )
    ]


def fabric_ecn(hw: Hardware, first: str, second: str) -> dict[str, Any]:
    """Our own profiles after a day 0: one for each port."""
    rows = stock(hw)
    for name, profile in (("Ethernet0", first), ("Ethernet8", second)):
        rows["WRED_PROFILE"][profile] = dict(rows["WRED_PROFILE"]["AZURE_LOSSLESS"])
        rows["QUEUE"][f"{name}|3"]["wred_profile"] = profile
    return rows


@pytest.mark.parametrize(
    ("version", "model", "tuned"),
    [
        ("202411", MODEL, False),
        ("202505", MODEL, True),
        ("202505", "Unknown-SKU", False),
        ("202511", "Unknown-SKU", True),
    ],
)
def test_where_our_profile_may_be_tuned(version: str, model: str, tuned: bool) -> None:
    hw = hardware(version=version, model=model)
    rows = fabric_ecn(hw, "FABRIC_3_400G", "FABRIC_3_400G")
    wanted = realized(*ecn_only(RAMP, RAMP), hw=hw)
    change = change_of(rows, wanted, hw)
    after = reached(change, rows, wanted, hw)
    bound = after["QUEUE"]["Ethernet0|3"]["wred_profile"]
    assert (bound == "FABRIC_3_400G") is tuned
    assert (change.level is Disturbs.NOTHING) is tuned
    # The profile that nothing uses any more is gone, by the updater or directly.
    assert ("FABRIC_3_400G" in after["WRED_PROFILE"]) is tuned
    if tuned:
        assert after["WRED_PROFILE"][bound]["yellow_min_threshold"] == "1048576", "not ours to change"


def test_two_ramps_need_two_profiles() -> None:
    hw = hardware(
        PortHardware("Ethernet0", speed_gbps=400), PortHardware("Ethernet8", speed_gbps=100), version="master"
    )
    other = Ecn(Amount(50_000), Amount(500_000), 50.0)
    rows = bare(hw)
    wanted = realized(*ecn_only(RAMP, other), hw=hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert sorted(after["WRED_PROFILE"]) == ["FABRIC_3_100G", "FABRIC_3_400G"]
    old = replace(hw, version="202411")
    after = reached(change_of(rows, wanted, old), rows, wanted, old)
    assert sorted(after["WRED_PROFILE"]) == ["AZURE_LOSSLESS", "FABRIC"]


def test_two_networks_have_two_maps() -> None:
    hw = hardware()
    storage = roce(dscp_to_priority=dscp_map(d24=3, d48=6))
    wanted, rows = realized(roce(), storage, hw=hw), bare(hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert sorted(after["DSCP_TO_TC_MAP"]) == ["FABRIC", "FABRIC_2"]
    moved = realized(roce(), roce(), hw=hw)
    change = change_of(after, moved, hw)
    final = reached(change, after, moved, hw)
    assert sorted(final["DSCP_TO_TC_MAP"]) == ["FABRIC"]
    assert change.lines == (
        "PORT_QOS_MAP|Ethernet8 dscp_to_tc_map: FABRIC_2 -> FABRIC",
        "DSCP_TO_TC_MAP|FABRIC_2: 0-23,25-47,49-63=0 24=3 48=6 -> none",
    )


def test_code_point_moves_inside_the_map() -> None:
    hw = hardware()
    rows = bare(hw)
    first = realized(roce(), hw=hw)
    after = reached(change_of(rows, first, hw), rows, first, hw)
    second = realized(roce(dscp_to_priority=dscp_map(d26=3, d24=3, d48=6)), hw=hw)
    change = change_of(after, second, hw)
    assert change.lines == ("DSCP_TO_TC_MAP|FABRIC 24: 0 -> 3",)
    assert [(item.level, item.ports) for item in change.disturbs] == [
        (Disturbs.LOSS, ("Ethernet0", "Ethernet8"))
    ]


def test_priority_moves_with_a_running_watchdog() -> None:
    hw = hardware()
    rows = bare(hw)
    first = realized(roce(), hw=hw)
    after = reached(change_of(rows, first, hw), rows, first, hw)
    second = realized(roce((4,), dscp_to_priority=dscp_map(d26=4, d48=6)), hw=hw)
    change = change_of(after, second, hw)
    final = reached(change, after, second, hw)
    assert final["PFC_WD"] == after["PFC_WD"]
    assert final["PORT_QOS_MAP"]["Ethernet0"]["pfcwd_sw_enable"] == "4"
    # The watchdog does not follow the lossless set (swss 842): its rows go and come again.
    lines = sent(change.commit)
    position = [number for number, line in enumerate(lines) if " DEL 'PFC_WD|Ethernet" in line]
    assert len(position) == 2 and position[0] > lines.index(
        next(line for line in lines if "apply-patch /" in line)
    )
    assert files(change)["late.json"] == {
        "PFC_WD": {name: after["PFC_WD"][name] for name in ("Ethernet0", "Ethernet8")}
    }


def test_poll_interval_that_forbids_the_wished_times_is_lowered() -> None:
    hw = hardware()
    rows = stock(hw, PFC_WD={"GLOBAL": {"POLL_INTERVAL": "400"}})
    wish = roce(watchdog=WatchdogTimers(200, 400, UNMANAGED, "drop"))
    wanted = realized(wish, hw=hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert after["PFC_WD"]["GLOBAL"] == {"POLL_INTERVAL": "200"}


def test_watchdog_with_the_device_defaults() -> None:
    hw = hardware()
    wish = roce(watchdog=WatchdogTimers())
    wanted, rows = realized(wish, hw=hw), bare(hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert after["PFC_WD"]["Ethernet0"] == WATCH
    rows = stock(hw, PFC_WD={"GLOBAL": {"POLL_INTERVAL": "400"}})
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert after["PFC_WD"]["Ethernet0"] == {
        "action": "drop",
        "detection_time": "400",
        "restoration_time": "800",
    }


def test_ranged_queue_rows_are_split() -> None:
    hw = hardware("Ethernet0")
    rows = stock(hw)
    rows["QUEUE"] = {"Ethernet0|3-4": {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}}
    wanted = realized(*ecn_only(RAMP), hw=hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert after["QUEUE"]["Ethernet0|4"] == {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}
    assert after["QUEUE"]["Ethernet0|3"]["scheduler"] == "scheduler.1"
    assert "Ethernet0|3-4" not in after["QUEUE"]


def test_asymmetric_pfc_and_back() -> None:
    hw = hardware("Ethernet0")
    both = reduce(lambda one, p: with_class(one, p, pfc_rx=True), range(8), roce())
    wanted, rows = realized(both, hw=hw), bare(hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert after["PORT"]["Ethernet0"]["pfc_asym"] == "on"
    assert after["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] == "3"
    back = realized(roce(), hw=hw)
    assert reached(change_of(after, back, hw), after, back, hw)["PORT"]["Ethernet0"]["pfc_asym"] == "off"


def test_no_priority_is_an_absent_field() -> None:
    """Up to 202411 the model refuses an empty list."""
    hw = hardware("Ethernet0")
    rows = stock(hw)
    wanted = realized(roce(()), hw=hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert {"pfc_enable", "pfcwd_sw_enable"}.isdisjoint(after["PORT_QOS_MAP"]["Ethernet0"])


def test_trust_of_the_frame_and_of_the_port() -> None:
    hw = hardware("Ethernet0")
    rows = stock(hw)
    pcp = realized(roce(trust="pcp"), hw=hw)
    after = reached(change_of(rows, pcp, hw), rows, pcp, hw)
    assert after["PORT_QOS_MAP"]["Ethernet0"]["dot1p_to_tc_map"] == "FABRIC"
    assert "dscp_to_tc_map" not in after["PORT_QOS_MAP"]["Ethernet0"]
    none = realized(roce(trust="port"), hw=hw)
    final = reached(change_of(after, none, hw), after, none, hw)
    assert "dot1p_to_tc_map" not in final["PORT_QOS_MAP"]["Ethernet0"] and "DOT1P_TO_TC_MAP" not in final
    mapless = realized(PortSettings(qos=QosState(trust="dscp")), hw=hw)
    last = reached(change_of(final, mapless, hw), final, mapless, hw)
    assert last["DSCP_TO_TC_MAP"]["FABRIC"]["26"] == "3"


def test_headroom_by_hand_takes_the_other_numbers_from_the_switch() -> None:
    hw = hardware("Ethernet0", version="master")
    wish = with_class(roce(), 3, headroom=Amount(400_000))
    wanted = realized(wish, hw=hw)
    computed = {
        "pool": "ingress_lossless_pool",
        "size": "1270",
        "xon": "0",
        "xoff": "190500",
        "dynamic_th": "-2",
        "xon_offset": "2540",
    }
    name = "pg_lossless_400000_40m_profile"
    rows = bare(hw, BUFFER_PROFILE={name: computed}, BUFFER_PG={"Ethernet0|3-4": {"profile": name}})
    change = change_of(rows, wanted, hw)
    after = reached(change, rows, wanted, hw)
    assert after["BUFFER_PROFILE"]["FABRIC_3_400G"] == {**computed, "xoff": "400000"}
    assert after["BUFFER_PG"] == {
        "Ethernet0|3": {"profile": "FABRIC_3_400G"},
        "Ethernet0|4": {"profile": name},
    }
    assert change.unverified == ()
    back = realized(roce(), hw=hw)
    final = reached(change_of(after, back, hw), after, back, hw)
    assert final["BUFFER_PG"]["Ethernet0|3"] == {"profile": name}
    assert list(final["BUFFER_PROFILE"]) == [name]


def test_headroom_by_hand_without_a_sample_is_marked() -> None:
    hw = hardware("Ethernet0", version="202411")
    wanted, rows = realized(with_class(roce(), 3, headroom=Amount(400_000)), hw=hw), bare(hw)
    change = change_of(rows, wanted, hw)
    after = reached(change, rows, wanted, hw)
    assert after["BUFFER_PROFILE"]["FABRIC_3_400G"]["size"] == "418432"
    assert len(change.unverified) == 5 and set(change.unverified) < set(change.lines)
    assert "BUFFER_PROFILE" in files(change)["first.json"]


@pytest.mark.parametrize(("model", "left"), [("traditional", None), ("dynamic", {"profile": "NULL"})])
def test_group_goes_back_to_the_switch(model: str, left: dict[str, str] | None) -> None:
    hw = hardware("Ethernet0", version="master")
    hand = {"pool": "ingress_lossless_pool", "size": "1270", "xon": "0", "xoff": "190500", "dynamic_th": "0"}
    rows = stock(hw)
    rows["DEVICE_METADATA"]["localhost"]["buffer_model"] = model
    rows |= {
        "BUFFER_PROFILE": {"FABRIC_3_400G": hand},
        "BUFFER_PG": {"Ethernet0|3": {"profile": "FABRIC_3_400G"}},
    }
    wanted = realized(roce(), hw=hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert after.get("BUFFER_PG", {}).get("Ethernet0|3") == left
    assert "BUFFER_PROFILE" not in after


def test_named_colours_of_an_old_profile_follow_the_wish() -> None:
    for version, kept in (("202505", False), ("202511", True)):
        hw = hardware(version=version)
        rows = fabric_ecn(hw, "FABRIC_3_400G", "FABRIC_3_400G")
        ramp = replace(RAMP, others=(("yellow", Amount(1000), Amount(2000), 5.0),))
        wanted = realized(*ecn_only(ramp, ramp), hw=hw)
        change = change_of(rows, wanted, hw)
        made = reached(change, rows, wanted, hw)
        bound = made["WRED_PROFILE"][made["QUEUE"]["Ethernet0|3"]["wred_profile"]]
        assert (bound["yellow_min_threshold"], bound["yellow_max_threshold"]) == ("1000", "2000")
        assert bound["red_min_threshold"] == bound["green_min_threshold"] == "150000"
        assert (made["QUEUE"]["Ethernet0|3"]["wred_profile"] == "FABRIC_3_400G") is kept


def test_dynamic_model_asks_for_headroom() -> None:
    hw = hardware("Ethernet0")
    rows = bare(hw)
    rows["DEVICE_METADATA"]["localhost"]["buffer_model"] = "dynamic"
    rows["BUFFER_PG"] = {
        "Ethernet0|5": {"profile": "NULL"},
        "Ethernet0|0": {"profile": "ingress_lossy_profile"},
    }
    wanted = realized(roce(), hw=hw)
    after = reached(change_of(rows, wanted, hw), rows, wanted, hw)
    assert after["BUFFER_PG"] == {
        "Ethernet0|3": {"profile": "NULL"},
        "Ethernet0|0": {"profile": "ingress_lossy_profile"},
    }


def test_port_channels_and_vlans_have_an_mtu_only() -> None:
    hw = hardware(
        PortHardware("PortChannel1", "bond", members=("Ethernet0",)),
        "Ethernet0",
        PortHardware("Vlan100", "svi"),
    )
    rows = bare(hw, PORTCHANNEL={"PortChannel1": {"admin_status": "up"}}, VLAN={"Vlan100": {"vlanid": "100"}})
    wanted = realized(PortSettings(mtu=Mtu(9000)), hw=hw)
    change = change_of(rows, wanted, hw)
    assert change.lines == (
        "PORTCHANNEL|PortChannel1 mtu: none -> 9000",
        "VLAN|Vlan100 mtu: none -> 9000",
    )
    # The member's own number follows its port channel and cannot be written.
    assert [item.path for item in change.blocked] == ["ports.Ethernet0.mtu.ip"]


def test_port_that_is_down_is_not_disturbed() -> None:
    hw = hardware()
    rows = stock(hw)
    rows["PORT"]["Ethernet8"]["admin_status"] = "down"
    change = change_of(rows, realized(roce(), hw=hw), hw)
    assert {port for item in change.disturbs for port in item.ports} == {"Ethernet0"}
    assert change.disturbs[0].source == gcu.PATCH_SORTER
    assert change.undo_disturbs == change.disturbs


def test_unknown_fields_block_what_is_written_with_them() -> None:
    hw = hardware("Ethernet0")
    rows = stock(hw)
    rows["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = "3-4"
    change = change_of(rows, realized(roce(), hw=hw), hw)
    assert {item.path.split(".")[-1] for item in change.blocked} == {"pfc_tx", "pfc_rx"}
    assert not any("pfc_enable" in line for line in change.lines)
    assert any("dscp_to_tc_map" in line for line in change.lines)


def test_only_a_save_is_left() -> None:
    hw = hardware("Ethernet0")
    wanted, rows = realized(roce(), hw=hw), bare(hw)
    live = json.dumps(reached(change_of(rows, wanted, hw), rows, wanted, hw))
    answers = {read.CONFIG: live, read.STARTUP: json.dumps(rows), read.STATUS: STATUS_9216}
    change = PLATFORM.change(PLATFORM.parse(answers, hw), wanted, hw)
    assert sent(change.commit) == ["sudo config save -y"] == list(change.lines) and not change.empty
    assert change.differences and change.disturbs == ()
    saved = PLATFORM.parse({**answers, read.STARTUP: live}, hw)
    assert PLATFORM.change(saved, wanted, hw).empty


STATUS_9216 = """\
  Interface    Lanes    Speed    MTU
-----------  -------  -------  -----
  Ethernet0        1     400G   9216
"""


def test_change_between_two_wishes_without_a_device() -> None:
    """`diff --base`: the old wish stands in for what was seen."""
    hw = hardware(version="master")
    old = Observation(realized(roce(), hw=hw))
    change = PLATFORM.change(old, realized(roce(ecn=Ecn(Amount(200_000), Amount(1_500_000))), hw=hw), hw)
    assert change.lines == ("WRED_PROFILE|FABRIC_3_400G green_min_threshold: 150000 -> 200000",)
    assert PLATFORM.change(old, realized(roce(), hw=hw), hw).empty


def test_full_rendering_and_change_reach_the_same_state() -> None:
    for version in ("202411", "202511"):
        hw = hardware(version=version)
        wanted, rows = realized(roce((3, 4)), hw=hw), bare(hw)
        merged: dict[str, Any] = json.loads(json.dumps(rows))
        for table, entries in rows_text(PLATFORM.context(wanted, hw)).items():
            for key, row in entries.items():
                merged.setdefault(table, {}).setdefault(key, {}).update(row)
        assert differences(wanted, seen_rows(merged, hw).running) == ()
        changed = reached(change_of(rows, wanted, hw), rows, wanted, hw)
        for table in ("PORT",):
            for row in merged[table].values():
                row.pop("pfc_asym", None)
        assert changed == merged


# ---------------------------------------------------------------- steps


def test_transaction_of_a_plain_patch() -> None:
    hw = hardware("Ethernet0")
    change = change_of(stock(hw), realized(PortSettings(mtu=Mtu(9000)), hw=hw), hw)
    assert change.lines == ("PORT|Ethernet0 mtu: none -> 9000",)
    assert list(files(change)) == ["patch.json", "reverse.json", "undo.sh"]
    assert sent(change.lock) == [
        "mkdir /run/lock/fabric && echo 'fabric run @RUN@' > /run/lock/fabric/owner"
        " || ! cat /run/lock/fabric/owner"
    ]
    patch, reverse = (f"/run/lock/fabric/@RUN@.{name}.json" for name in ("patch", "reverse"))
    assert sent(change.stage) == [f"sudo config apply-patch -d {patch}"]
    assert [step.keep for step in change.stage if isinstance(step, Send)] == ["diff"]
    assert sent(change.commit) == [
        "sudo config checkpoint fabric-@RUN@",
        "sudo systemd-run --on-active=@TIMER_S@ --unit=fabric-@RUN@ /bin/sh /run/lock/fabric/@RUN@.undo.sh",
        f"sudo config apply-patch {patch}",
    ]
    assert sent(change.confirm) == [
        "sudo systemctl stop fabric-@RUN@.timer",
        "sudo rm /run/lock/fabric/@RUN@.undo.sh",
        "sudo config delete-checkpoint fabric-@RUN@",
    ]
    assert sent(change.save) == ["sudo config save -y"]
    assert sent(change.undo) == [
        "sudo systemctl stop fabric-@RUN@.timer",
        f"sudo config apply-patch {reverse} || sudo config rollback fabric-@RUN@",
        "sudo config delete-checkpoint fabric-@RUN@",
    ]
    assert files(change)["reverse.json"] == [{"op": "remove", "path": "/PORT/Ethernet0/mtu"}]
    assert files(change)["undo.sh"].splitlines() == [
        line.replace("sudo ", "") for line in sent(change.undo)[1:]
    ]
    assert sent(change.unlock) == ["sudo rm -rf /run/lock/fabric"]
    assert change.undo_kind == "device-timer"
    assert change.expected is not None


def test_transaction_with_direct_rows() -> None:
    hw = hardware("Ethernet0", version="202305")
    rows = bare(hw)
    wanted = realized(roce(), hw=hw)
    change = change_of(rows, wanted, hw)
    words = [re.sub(r"/run/lock/fabric/@RUN@\.|fabric-@RUN@", "", line) for line in sent(change.commit)]
    assert words == [
        "sudo config load -y first.json",
        "sudo config apply-patch -d patch.json",
        "sudo config checkpoint ",
        "sudo systemd-run --on-active=@TIMER_S@ --unit= /bin/sh undo.sh",
        "sudo config apply-patch patch.json",
        "sudo config load -y late.json",
    ]
    undone = [
        "sonic-db-cli CONFIG_DB DEL 'PFC_WD|Ethernet0'",
        "sonic-db-cli CONFIG_DB DEL 'PFC_WD|GLOBAL'",
        "config apply-patch /run/lock/fabric/@RUN@.reverse.json || config rollback fabric-@RUN@",
        "sonic-db-cli CONFIG_DB DEL 'WRED_PROFILE|AZURE_LOSSLESS'",
        "config delete-checkpoint fabric-@RUN@",
    ]
    assert files(change)["undo.sh"].splitlines() == undone
    assert [line.replace("sudo ", "") for line in sent(change.undo)[1:]] == undone
    # The patch cannot be checked before what it refers to is loaded.
    assert sent(change.stage) == []


def test_output_is_stable_and_names_no_node() -> None:
    hw = hardware()
    one, two = (change_of(stock(hw), realized(roce(), hw=hw), hw) for _ in range(2))
    assert one == two
    assert "leaf01" not in repr(replace(one, expected=None))


# ---------------------------------------------------------------- the template


def rich() -> tuple[NodeState, Hardware]:
    """Everything that the template can print."""
    hw = hardware(
        PortHardware("Ethernet0", speed_gbps=400),
        PortHardware("Ethernet8", speed_gbps=100),
        PortHardware("PortChannel1", "bond"),
        PortHardware("Vlan100", "svi"),
        version="master",
    )
    first = with_class(roce((3, 4)), 6, share=Share("strict", 0, 40))
    first = with_class(
        first,
        3,
        headroom=Amount(400_000),
        ecn=replace(RAMP, others=(("yellow", Amount(9), Amount(10), 5.0),)),
    )
    second = reduce(lambda one, p: with_class(one, p, pfc_rx=True), range(8), roce(trust="pcp"))
    return realized(first, second, replace(roce(), mtu=Mtu(9000)), replace(roce(), mtu=Mtu(8996)), hw=hw), hw


def test_full_rendering(golden: Golden) -> None:
    state, hw = rich()
    context = replace(
        PLATFORM.context(state, hw),
        headrooms=tuple(replace(one, xon_offset=2540) for one in PLATFORM.context(state, hw).headrooms),
    )
    text = json.dumps(rows_text(context), indent=1, sort_keys=True) + "\n"
    golden.at("..", "observe", "sonic").text("full_rendering.json", text)


def test_every_line_of_the_template_counts() -> None:
    from jinja2 import Environment, StrictUndefined

    state, hw = rich()
    context = PLATFORM.context(state, hw)
    context = replace(context, headrooms=tuple(replace(one, xon_offset=2540) for one in context.headrooms))
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.do"]
    )
    lines = (folder("templates") / TEMPLATE).read_text(encoding="utf-8").splitlines(keepends=True)
    whole = environment.from_string("".join(lines)).render(c=context)
    checked = 0
    for number, line in enumerate(lines):
        if line.startswith("{% do"):
            shorter = environment.from_string("".join(lines[:number] + lines[number + 1 :]))
            assert shorter.render(c=context) != whole, line
            checked += 1
    assert checked > 20


def test_unknown_is_never_written() -> None:
    hw = hardware("Ethernet0")
    seen = seen_rows(stock(hw), hw)
    unread = with_class(roce(), 3, ecn=UNKNOWN)
    change = PLATFORM.change(seen, node(unread, hw=hw), hw)
    assert [item.path for item in change.blocked if item.wanted is UNKNOWN] == [
        "ports.Ethernet0.qos.classes.3.ecn"
    ]
    assert not any("wred_profile" in line for line in change.lines)
