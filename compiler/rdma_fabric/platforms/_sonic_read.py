"""SONiC's answers -> the neutral state. CONFIG_DB is what was configured; the tables show what works."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._shared import (
    UNKNOWN_MTU,
    UNKNOWN_QOS,
    digest,
    expand,
    integer,
    unknown_observation,
)
from rdma_fabric.platforms._sonic_show import (
    shown_facts,
    shown_neighbours,
    shown_pfc,
    shown_profiles,
    shown_storms,
    shown_watchdogs,
    table_rows,
)
from rdma_fabric.state import (
    DSCPS,
    NOT_APPLICABLE,
    PRIORITIES,
    UNKNOWN,
    UNMANAGED,
    Absent,
    Amount,
    Buffer,
    ClassState,
    Ecn,
    Maybe,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    Trust,
    WatchdogTimers,
)

Tables = Mapping[str, Mapping[str, Mapping[str, str]]]
"""CONFIG_DB: table -> key -> field -> text."""

CONFIG: Final = "sonic-cfggen -d --print-data"
STARTUP: Final = "sudo cat /etc/sonic/config_db.json"
VERSION: Final = "show version"
STATUS: Final = "show interfaces status"
PFC: Final = "show pfc priority"
WATCHDOG: Final = "show pfcwd config"
STORMS: Final = "show pfcwd stats"
ECN: Final = "show ecn"
NEIGHBOURS: Final = "show lldp table"
CHECKPOINTS: Final = "sudo config list-checkpoints"
BLOB: Final = "config_db"
"""Name of the fact that carries the rows of CONFIG_DB from which a patch is computed."""

DEFAULT_MTU: Final = 9100
_LAST: Final = 15
"""The last queue that a range may name: TCs go to 15 in the models, ports have fewer queues."""
SIZE_TABLE: Final[Mapping[str, str]] = {"physical": "PORT", "bond": "PORTCHANNEL", "svi": "VLAN"}
MAP_TABLES: Final = (
    "DSCP_TO_TC_MAP",
    "DOT1P_TO_TC_MAP",
    "TC_TO_QUEUE_MAP",
    "TC_TO_PRIORITY_GROUP_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
)
# Table -> fields that are read (None: all). Nothing else of CONFIG_DB is kept: it may hold secrets.
_KEPT: Final[Mapping[str, frozenset[str] | None]] = {
    "DEVICE_METADATA": frozenset({"hwsku", "buffer_model"}),
    "PORT": frozenset({"mtu", "pfc_asym", "admin_status"}),
    "PORTCHANNEL": frozenset({"mtu"}),
    "VLAN": frozenset({"mtu"}),
    **dict.fromkeys(MAP_TABLES),
    **dict.fromkeys(("PORT_QOS_MAP", "QUEUE", "SCHEDULER", "WRED_PROFILE", "PFC_WD", "CABLE_LENGTH")),
    **dict.fromkeys(("BUFFER_PG", "BUFFER_PROFILE")),
    "BUFFER_QUEUE": frozenset({"profile"}),
}
_GREEN_MARKS: Final = frozenset({"ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red"})
NO_CLASS: Final = ClassState(**{item.name: NOT_APPLICABLE for item in fields(ClassState)})
NO_QOS: Final = QosState(
    trust=NOT_APPLICABLE,
    dscp_to_priority=NOT_APPLICABLE,
    pcp_to_priority=NOT_APPLICABLE,
    classes=(NO_CLASS,) * len(PRIORITIES),
    watchdog=WatchdogTimers(**{item.name: NOT_APPLICABLE for item in fields(WatchdogTimers)}),
    dcbx=NOT_APPLICABLE,
    global_pause=NOT_APPLICABLE,
    cable_m=NOT_APPLICABLE,
)
"""Port channels, VLANs and subinterfaces: SONiC binds QoS to physical ports only."""


# ---------------------------------------------------------------- CONFIG_DB


def tables_of(text: str) -> Tables | None:
    """The rows that we use of a CONFIG_DB printed as JSON; None when it is no JSON object."""
    start = text.find("{")
    try:
        document = json.loads(text[start:]) if start >= 0 else None
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    return {table: _kept_rows(document[table], only) for table, only in _KEPT.items() if table in document}


def _kept_rows(rows: Any, only: frozenset[str] | None) -> Mapping[str, Mapping[str, str]]:
    return {
        key: {
            name: value
            for name, value in row.items()
            if isinstance(value, str) and name != "NULL" and (only is None or name in only)
        }
        for key, row in (rows.items() if isinstance(rows, dict) else ())
        if isinstance(row, dict)
    }


def row_of(tables: Tables, table: str, key: str) -> Mapping[str, str]:
    """One row, empty when there is none."""
    return tables.get(table, {}).get(key, {})


def reference(row: Mapping[str, str], name: str) -> str:
    """The name that a field refers to; images before 202111 wrote "[TABLE|NAME]"."""
    return row.get(name, "").strip("[]").rpartition("|")[2]


def covering(tables: Tables, table: str, port: str, number: int) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """(key, row) of the rows "port|N" and "port|N-M" that cover the queue or group, the exact one first."""
    rows = tables.get(table, {})
    keys = (f"{port}|{suffix}" for suffix in _suffixes(number))
    return tuple((key, rows[key]) for key in keys if key in rows)


@cache
def _suffixes(number: int) -> tuple[str, ...]:
    """3 -> ("3", "2-3", "3-4", ...): all spans that hold the number, the shortest first."""
    spans = [(low, high) for low in range(number + 1) for high in range(number, max(number, _LAST) + 1)]
    spans.sort(key=lambda ends: (ends[1] - ends[0], ends))
    return tuple(f"{low}-{high}" if low != high else f"{low}" for low, high in spans)


def span(text: str) -> tuple[int, ...]:
    """ "3-4" -> (3, 4); () for anything else."""
    return expand(text) if re.fullmatch(r"\d+(-\d+)?", text) else ()


def cable_row(tables: Tables, port: str) -> str:
    """The row of CABLE_LENGTH that knows the port, else the only row, else AZURE."""
    rows = tables.get("CABLE_LENGTH", {})
    holders = [name for name, row in rows.items() if port in row]
    return next(iter(holders or (list(rows) if len(rows) == 1 else [])), "AZURE")


# ---------------------------------------------------------------- one port's QoS


@dataclass(frozen=True, slots=True)
class _Port:
    """What is asked of CONFIG_DB for one port; `notes` takes what an operator should know."""

    tables: Tables
    name: str
    speed_gbps: int
    notes: list[str]

    @property
    def bindings(self) -> Mapping[str, str]:
        return row_of(self.tables, "PORT_QOS_MAP", self.name)

    def note(self, text: str) -> None:
        self.notes.append(f"{self.name}: {text}")

    def numbers(self, field: str) -> Maybe[tuple[int, ...]]:
        """A list of priorities ("3,4"); absent and empty are none."""
        text = self.bindings.get(field, "")
        if re.fullmatch(r"([0-7](,[0-7])*)?", text):
            return tuple(sorted({int(word) for word in text.split(",") if word}))
        self.note(f"PORT_QOS_MAP {field} {text!r} is not understood")
        return UNKNOWN

    def map(self, field: str, table: str) -> Maybe[dict[int, int]]:
        """A bound map; NOT_APPLICABLE when none is bound, UNKNOWN when it cannot be read."""
        name = reference(self.bindings, field)
        if not name:
            return NOT_APPLICABLE
        row = self.tables.get(table, {}).get(name)
        pairs = {integer(key): integer(value) for key, value in (row or {}).items()}
        if row is None or None in pairs or None in pairs.values():
            self.note(f"PORT_QOS_MAP {field} {name!r}: the map is missing or not understood")
            return UNKNOWN
        return {key: value for key, value in pairs.items() if key is not None and value is not None}

    def code_points(self, field: str, table: str, codes: range) -> Maybe[tuple[int, ...]]:
        """The bound map as a tuple; NOT_APPLICABLE when it does not say something about every code point."""
        pairs = self.map(field, table)
        if isinstance(pairs, Absent):
            return pairs
        if missing := [code for code in codes if code not in pairs]:
            # What the ASIC does with them is documented nowhere.
            self.note(f"{table} {reference(self.bindings, field)} leaves out {missing}")
            return NOT_APPLICABLE
        return tuple(pairs[code] for code in codes)


def read_qos(tables: Tables, port: PortHardware, speed_gbps: int, notes: list[str]) -> QosState:
    """QoS of one physical port as CONFIG_DB describes it."""
    view = _Port(tables, port.name, speed_gbps, notes)
    watch = row_of(tables, "PFC_WD", port.name)
    return QosState(
        trust=_trust(view),
        dscp_to_priority=view.code_points("dscp_to_tc_map", "DSCP_TO_TC_MAP", DSCPS),
        pcp_to_priority=view.code_points("dot1p_to_tc_map", "DOT1P_TO_TC_MAP", PRIORITIES),
        classes=_classes(view, bool(watch.get("detection_time"))),
        watchdog=WatchdogTimers(
            detect_ms=_milliseconds(view, watch, "detection_time"),
            restore_ms=_milliseconds(view, watch, "restoration_time"),
            poll_ms=_milliseconds(view, row_of(tables, "PFC_WD", "GLOBAL"), "POLL_INTERVAL"),
            action=watch.get("action", NOT_APPLICABLE),
        ),
        dcbx="none",
        global_pause=NOT_APPLICABLE,
        cable_m=_cable(view),
    )


def _trust(view: _Port) -> Trust:
    dscp = reference(view.bindings, "dscp_to_tc_map")
    pcp = reference(view.bindings, "dot1p_to_tc_map")
    if dscp and pcp:
        return "both"
    return "dscp" if dscp else "pcp" if pcp else "port"


def _milliseconds(view: _Port, row: Mapping[str, str], field: str) -> Maybe[int]:
    if field not in row:
        return NOT_APPLICABLE
    number = integer(row[field])
    if number is None:
        view.note(f"PFC_WD {field} {row[field]!r} is not understood")
        return UNKNOWN
    return number


def _cable(view: _Port) -> Maybe[int]:
    text = row_of(view.tables, "CABLE_LENGTH", cable_row(view.tables, view.name)).get(view.name)
    if text is None:
        return NOT_APPLICABLE
    if not re.fullmatch(r"\d+m", text):
        view.note(f"CABLE_LENGTH {text!r} is not understood")
        return UNKNOWN
    return int(text[:-1])


def _classes(view: _Port, guarded: bool) -> tuple[ClassState, ...]:
    enabled = view.numbers("pfc_enable")
    watched = view.numbers("pfcwd_sw_enable")
    queues = view.map("tc_to_queue_map", "TC_TO_QUEUE_MAP")
    groups = view.map("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP")
    sides = _pfc_sides(view, enabled)
    found = []
    for priority in PRIORITIES:
        queue = _target(queues, priority)
        group = _target(groups, priority)
        # An unbound map leaves the ASIC's own numbering; rows are looked up under the priority's number.
        number = priority if isinstance(queue, Absent) else queue
        ecn, share = _queue(view, number)
        if True in sides[priority]:
            _egress(view, priority, number)
        found.append(
            ClassState(
                pfc_tx=sides[priority][0],
                pfc_rx=sides[priority][1],
                watchdog=watched if isinstance(watched, Absent) else guarded and priority in watched,
                ecn=ecn,
                headroom=_headroom(view, priority if isinstance(group, Absent) else group),
                share=share,
                queue=queue,
                group=group,
            )
        )
    return tuple(found)


def _target(pairs: Maybe[dict[int, int]], priority: int) -> Maybe[int]:
    return pairs if isinstance(pairs, Absent) else pairs.get(priority, NOT_APPLICABLE)


def _pfc_sides(view: _Port, enabled: Maybe[tuple[int, ...]]) -> tuple[tuple[Maybe[bool], Maybe[bool]], ...]:
    """(sends pause, obeys pause) per priority.

    pfc_asym "on" makes the port obey pause on all priorities (swss portsorch sets the receive mask to
    0xff). A pause that stops another queue than the priority's own does not count as obeyed: without
    pfc_to_queue_map there is no map at all (SAI saiport.h: "Default no map").
    """
    if isinstance(enabled, Absent):
        return ((enabled, enabled),) * len(PRIORITIES)
    stops = view.map("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE")
    queues = view.map("tc_to_queue_map", "TC_TO_QUEUE_MAP")
    groups = view.map("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP")
    starts = view.map("pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP")
    everything = row_of(view.tables, "PORT", view.name).get("pfc_asym") == "on"
    sides: list[tuple[Maybe[bool], Maybe[bool]]] = []
    for priority in PRIORITIES:
        obeys: Maybe[bool] = everything or priority in enabled
        if obeys and isinstance(stops, Absent):
            obeys = UNKNOWN if stops is UNKNOWN else False
            if stops is NOT_APPLICABLE:
                view.note(f"received pause of priority {priority} stops no queue: no pfc_to_queue_map")
        elif obeys and not isinstance(stops, Absent):
            obeys = stops.get(priority) == (
                priority if isinstance(queues, Absent) else queues.get(priority, priority)
            )
        sends: Maybe[bool] = priority in enabled
        if sends and not isinstance(starts, Absent) and not isinstance(groups, Absent):
            sends = starts.get(priority) == groups.get(priority)
        sides.append((sends, obeys))
    return tuple(sides)


# ---------------------------------------------------------------- queues and groups


def _egress(view: _Port, priority: int, number: int) -> None:
    """Notes a paused priority whose egress queue has a lossy buffer: it drops all the same.

    Stock images give queues 3 and 4 the lossless egress profile and all others the lossy one
    (sonic-buildimage, files/build_templates/buffers_config.j2); buffermgrd makes ingress profiles only.
    """
    for _, row in covering(view.tables, "BUFFER_QUEUE", view.name, number)[:1]:
        profile = reference(row, "profile")
        pool = reference(row_of(view.tables, "BUFFER_PROFILE", profile), "pool")
        if "lossy" in (pool or profile):
            view.note(
                f"queue {number} of lossless priority {priority} has the lossy buffer profile {profile}"
            )


def _queue(view: _Port, number: int) -> tuple[Maybe[Ecn | None], Maybe[Share | None]]:
    merged: dict[str, str] = {}
    for _, row in reversed(covering(view.tables, "QUEUE", view.name, number)):
        merged.update(row)
    return _ecn(view, reference(merged, "wred_profile")), _share(view, reference(merged, "scheduler"))


def _ecn(view: _Port, name: str) -> Maybe[Ecn | None]:
    if not name:
        return None
    row = view.tables.get("WRED_PROFILE", {}).get(name)
    found = None if row is None else ramp(row)
    if row is None or found is UNKNOWN:
        view.note(f"WRED_PROFILE {name!r} is missing or not understood")
        return UNKNOWN
    return found


def ramp(row: Mapping[str, str]) -> Maybe[Ecn | None]:
    """The marking of green packets that a WRED profile describes; None when it marks none of them."""
    if row.get("ecn", "ecn_none") not in _GREEN_MARKS or row.get("wred_green_enable") != "true":
        return None
    green = _colour(row, "green")
    others = tuple(
        (name, *colour) for name in ("yellow", "red") if (colour := _colour(row, name)) is not None
    )
    return UNKNOWN if green is None else Ecn(*green, others=others or ())


def _colour(row: Mapping[str, str], name: str) -> tuple[Amount, Amount, float] | None:
    low = integer(row.get(f"{name}_min_threshold", ""))
    high = integer(row.get(f"{name}_max_threshold", ""))
    chance = integer(row.get(f"{name}_drop_probability", "100"))
    if low is None or high is None or chance is None:
        return None
    return Amount(low), Amount(high), float(chance)


def _share(view: _Port, name: str) -> Maybe[Share | None]:
    if not name:
        return None
    row = view.tables.get("SCHEDULER", {}).get(name)
    kind = None if row is None else row.get("type", "WRR")
    weight = integer((row or {}).get("weight", "1"))
    rate = integer((row or {}).get("pir", "0"))
    if row is None or kind not in ("DWRR", "STRICT") or weight is None or rate is None:
        # Round robin by packets is neither strict nor a share of bytes.
        view.note(f"SCHEDULER {name!r} ({kind or 'missing'}) is no strict or DWRR scheduler")
        return UNKNOWN
    line_rate = view.speed_gbps * 10**9 // 8
    cap = round(rate * 100 / line_rate) if rate and line_rate else UNKNOWN if rate else None
    return Share("strict", 0, cap) if kind == "STRICT" else Share("dwrr", weight, cap)


def _headroom(view: _Port, group: int) -> Maybe[Amount | None]:
    """Bytes of a profile written by hand; None for what buffermgrd computes (`pg_lossless_*`, "NULL")."""
    for _, row in covering(view.tables, "BUFFER_PG", view.name, group)[:1]:
        name = reference(row, "profile")
        profile = row_of(view.tables, "BUFFER_PROFILE", name)
        size = integer(profile.get("xoff", "0"))
        if name.startswith("pg_lossless_") or name == "NULL" or not size:
            return None
        return Amount(size)
    return None


def _buffers(tables: Tables, running: NodeState) -> Iterator[Buffer]:
    """Pause and resume points of lossless groups, also of those that buffermgrd computes.

    A dynamic threshold moves with the shared pool; the group resumes at max(xon, T - xon_offset)
    (sonic-net/SONiC doc/qos/dynamically-headroom-calculation.md).
    """
    for port in running.ports:
        for priority, one in enumerate(port.settings.qos.classes):
            if one.pfc_tx is not True:
                continue
            group = priority if isinstance(one.group, Absent) else one.group
            for _, row in covering(tables, "BUFFER_PG", port.name, group)[:1]:
                name = reference(row, "profile")
                profile = row_of(tables, "BUFFER_PROFILE", name)
                if "xoff" in profile:
                    yield Buffer(
                        port.name,
                        priority,
                        pause_at=_bytes(profile, "static_th") if "static_th" in profile else UNMANAGED,
                        resume_at=_bytes(profile, "xon"),
                        apart=_bytes(profile, "xon_offset"),
                        room=_bytes(profile, "xoff"),
                        name=name,
                    )


def _bytes(profile: Mapping[str, str], field: str) -> Maybe[int]:
    number = integer(profile.get(field, "0"))
    return UNKNOWN if number is None else number


# ---------------------------------------------------------------- the whole answer


def questions(hw: Hardware) -> tuple[str, ...]:
    """Everything that is asked of one switch, for one session."""
    return (
        VERSION,
        CONFIG,
        STATUS,
        *(kernel_mtu(port.name) for port in hw.ports if port.kind in ("svi", "vlan")),
        PFC,
        WATCHDOG,
        STORMS,
        ECN,
        NEIGHBOURS,
        CHECKPOINTS,
        STARTUP,
    )


def kernel_mtu(port: str) -> str:
    """The MTU that the kernel uses: APPL_DB may say another number for a VLAN (sonic-buildimage 27017)."""
    return f"cat /sys/class/net/{port}/mtu"


def parse(answers: Mapping[str, str], hw: Hardware) -> Observation:
    """The neutral state of the switch's ports."""
    facts = shown_facts(answers.get(VERSION, ""))
    notes = _warnings(answers)
    if facts.pop("asic_count", "1") != "1":
        notes.append("more than one ASIC: such switches are not supported")
        return replace(unknown_observation(hw, *notes), facts=tuple(sorted(facts.items())))
    shown = {row["Interface"]: row for row in table_rows(answers.get(STATUS, "")) if "Interface" in row}
    live = _Live(tables_of(answers.get(CONFIG, "")), shown, answers)
    if live.tables is None:
        notes.append(f"{CONFIG}: no JSON object")
    running = _node(live, hw, notes)
    startup = tables_of(answers.get(STARTUP, ""))
    notes += _disagreements(live.tables or {}, answers)
    if live.tables is not None:
        facts[BLOB] = json.dumps(live.tables, sort_keys=True, separators=(",", ":"))
    return Observation(
        running=running,
        stored=None if startup is None else _node(_Live(startup, {}, {}), hw, []),
        # Only sizes are read where they work; QoS is what CONFIG_DB asks for.
        operational=False,
        notes=tuple(dict.fromkeys(notes)),
        neighbours=shown_neighbours(answers.get(NEIGHBOURS, "")),
        buffers=tuple(_buffers(live.tables or {}, running)),
        facts=tuple(sorted(facts.items())),
        evidence=digest((running, _own_rows(live.tables or {}, hw))),
    )


@dataclass(frozen=True, slots=True)
class _Live:
    """One layer: CONFIG_DB, and what `show interfaces status` and the kernel say where they were asked."""

    tables: Tables | None
    shown: Mapping[str, Mapping[str, str]]
    answers: Mapping[str, str]


def _node(live: _Live, hw: Hardware, notes: list[str]) -> NodeState:
    """Equal settings of several ports are one object."""
    shared: dict[PortSettings, PortSettings] = {}
    ports = (_port(live, port, notes) for port in hw.ports)
    return NodeState(
        ports=tuple(replace(port, settings=shared.setdefault(port.settings, port.settings)) for port in ports)
    )


def _port(live: _Live, port: PortHardware, notes: list[str]) -> PortState:
    speed = integer(live.shown.get(port.name, {}).get("Speed", "").removesuffix("G"))
    row = _config_row(live.tables, port)
    if row is None:
        notes.append(f"{port.name}: not in {SIZE_TABLE.get(port.kind, 'PORT')} of CONFIG_DB")
        qos = UNKNOWN_QOS if port.kind == "physical" else NO_QOS
    elif port.kind == "physical":
        qos = read_qos(live.tables or {}, port, speed or port.speed_gbps, notes)
    else:
        qos = NO_QOS
    settings = PortSettings(_mtu(live, port, row, notes), qos)
    return PortState(port.name, port.kind, settings, speed_gbps=UNKNOWN if speed is None else speed)


def _config_row(tables: Tables | None, port: PortHardware) -> Mapping[str, str] | None:
    if tables is None:
        return None
    if port.kind == "vlan":
        return row_of(tables, "PORT", port.parent)
    return tables.get(SIZE_TABLE.get(port.kind, "PORT"), {}).get(port.name)


def _mtu(live: _Live, port: PortHardware, row: Mapping[str, str] | None, notes: list[str]) -> Mtu:
    shown = live.shown.get(port.name, {}).get("MTU", "")
    if not shown and port.kind in ("svi", "vlan"):
        shown = live.answers.get(kernel_mtu(port.name), "").strip()
    number = integer(shown)
    if number is None and row is not None:
        number = integer(row.get("mtu", str(DEFAULT_MTU)))
        if live.answers:
            notes.append(f"{port.name}: the MTU in use was not shown; the configured one is taken")
    if number is None:
        return UNKNOWN_MTU
    return Mtu(ip=number, frame=NOT_APPLICABLE, enforced=True)


def _warnings(answers: Mapping[str, str]) -> list[str]:
    """What another run or the watchdog did."""
    notes = [
        f"{queue}: the PFC watchdog holds this queue stopped"
        for queue in shown_storms(answers.get(STORMS, ""))
    ]
    pending = re.findall(r'"(fabric-[a-z0-9]+)"', answers.get(CHECKPOINTS, ""))
    return notes + [f"checkpoint {name}: a change that was not confirmed" for name in sorted(pending)]


def _disagreements(tables: Tables, answers: Mapping[str, str]) -> list[str]:
    """Places where two answers of one session differ: somebody is changing the switch."""
    return [
        f"{place} changed while it was read: {first or 'none'}, then {second or 'none'}"
        for place, first, second in _compared(tables, answers)
        if first != second
    ]


def _compared(tables: Tables, answers: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for port, priorities in shown_pfc(answers.get(PFC, "")).items():
        row = row_of(tables, "PORT_QOS_MAP", port)
        yield f"PORT_QOS_MAP|{port} pfc_enable", row.get("pfc_enable", ""), priorities
    shown = {
        "PFC_WD": shown_watchdogs(answers.get(WATCHDOG, "")),
        "WRED_PROFILE": shown_profiles(answers.get(ECN, "")),
    }
    for table, rows in shown.items():
        for key, row in rows.items():
            for name, value in row.items():
                yield f"{table}|{key} {name}", row_of(tables, table, key).get(name, value), value


def _own_rows(tables: Tables, hw: Hardware) -> Tables:
    """Rows of our ports and names, without what buffermgrd writes back (swss 3418)."""
    ports = {port.name for port in hw.ports}
    found = {
        table: {
            key: row
            for key, row in rows.items()
            if (key.partition("|")[0] in ports and not table.startswith("BUFFER_"))
            or key.startswith("FABRIC")
        }
        for table, rows in tables.items()
        if table not in ("PORT", "DEVICE_METADATA")
    }
    return {table: rows for table, rows in found.items() if rows}
