"""The rows of CONFIG_DB that say what is wanted: names are chosen, texts are left to the template."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeVar

from rdma_fabric.hardware import PortHardware
from rdma_fabric.platforms._shared import integer
from rdma_fabric.platforms._sonic_context import (
    Binding,
    Cable,
    CodeMap,
    Colour,
    Direction,
    Group,
    Guard,
    Headroom,
    Queue,
    Ramp,
    Rows,
    Server,
    Size,
)
from rdma_fabric.platforms._sonic_gcu import TUNABLE_PROFILE, Op, permitted
from rdma_fabric.platforms._sonic_names import OWN, Chooser, by_content, numbered, queue_refs
from rdma_fabric.platforms._sonic_read import (
    SIZE_TABLE,
    Tables,
    cable_row,
    covering,
    ramp,
    reference,
    row_of,
    span,
)
from rdma_fabric.state import (
    DSCPS,
    PRIORITIES,
    Absent,
    Amount,
    ClassState,
    Ecn,
    PortSettings,
    PortState,
    Share,
)

C = TypeVar("C")
_CLASS_SELECTORS: Final = tuple(dscp >> 3 for dscp in DSCPS)
"""The map for a wish that trusts DSCP and names no map."""
_DETECT_MS: Final = 200  # `pfcwd start_default`; `config pfcwd start` restores after twice the time


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows to write, (table, key, field) to remove, and (port, queue) whose ranged rows are split first."""

    rows: Rows
    gone: frozenset[tuple[str, str, str]] = frozenset()
    split: frozenset[tuple[str, int]] = frozenset()
    guessed: frozenset[str] = frozenset()
    """Buffer profiles whose size and resume point no profile of the switch confirms."""


@dataclass(frozen=True, slots=True)
class Target:
    """One port whose aspects are to be written: as wanted, and as it is now where that is known."""

    hw: PortHardware
    wanted: PortSettings
    now: PortSettings
    aspects: frozenset[str]


@dataclass(frozen=True, slots=True)
class Switch:
    """What decides how a wish is written."""

    tables: Tables
    branch: int
    asic_type: str
    family: str
    dynamic: bool
    masters: frozenset[str] = frozenset()
    """Members of port channels: they take their MTU from it."""


def aspect_of(setting: str) -> str:
    """The group of fields that is written together: "mtu.ip" -> "mtu", "qos.classes.3.ecn" -> "ecn.3"."""
    words = setting.split(".")
    if words[0] == "mtu":
        return "mtu" if words[1:] == ["ip"] else ""
    if words[:2] == ["qos", "classes"]:
        return _CLASS_ASPECTS.get(words[3], f"{words[3]}.{words[2]}")
    return _QOS_ASPECTS.get(words[1], "")


_CLASS_ASPECTS: Final = {
    "pfc_tx": "pfc",
    "pfc_rx": "pfc",
    "watchdog": "watch",
    "queue": "queues",
    "group": "groups",
}
_QOS_ASPECTS: Final = {
    "trust": "trust",
    "dscp_to_priority": "trust",
    "pcp_to_priority": "trust",
    "watchdog": "watch",
    "cable_m": "cable",
}


def managed(port: PortState) -> frozenset[str]:
    """Aspects of which the state says anything: what the full rendering writes."""
    qos = port.settings.qos
    found: dict[str, tuple[object, ...]] = {
        "mtu": (port.settings.mtu.ip,),
        "trust": (qos.trust, qos.dscp_to_priority, qos.pcp_to_priority),
    }
    found["cable"] = (qos.cable_m,)
    found["pfc"] = tuple(side for one in qos.classes for side in (one.pfc_tx, one.pfc_rx))
    found["watch"] = tuple(one.watchdog for one in qos.classes)
    found["queues"] = tuple(one.queue for one in qos.classes)
    found["groups"] = tuple(one.group for one in qos.classes)
    for priority, one in enumerate(qos.classes):
        found[f"ecn.{priority}"] = (one.ecn,)
        found[f"share.{priority}"] = (one.share,)
        found[f"headroom.{priority}"] = (one.headroom,)
    return frozenset(name for name, values in found.items() if not all(isinstance(v, Absent) for v in values))


# ---------------------------------------------------------------- building


def build(switch: Switch, targets: Iterable[Target]) -> Plan:
    """The rows that make the targets' aspects as wanted, against what the switch holds now."""
    work = _Build(switch, tuple(targets))
    work.sizes()
    work.trust()
    work.class_maps()
    work.pfc()
    work.queues()
    work.buffers()
    work.watchdogs()
    return work.plan()


class _Build:
    """One use: each step adds rows and removals."""

    def __init__(self, switch: Switch, targets: tuple[Target, ...]) -> None:
        self._switch = switch
        self._tables = switch.tables
        self._targets = targets
        self._bindings: dict[str, dict[str, object]] = {}
        self._sizes: list[Size] = []
        self._directions: list[Direction] = []
        self._maps: list[CodeMap] = []
        self._servers: list[Server] = []
        self._ramps: list[Ramp] = []
        self._queues: dict[tuple[str, int], dict[str, str]] = {}
        self._cables: list[Cable] = []
        self._headrooms: list[Headroom] = []
        self._groups: list[Group] = []
        self._guards: list[Guard] = []
        self._poll = 0
        self._gone: set[tuple[str, str, str]] = set()
        self._guessed: set[str] = set()

    def plan(self) -> Plan:
        """What the steps found."""
        touched = {(port, queue) for port, queue in self._queues}
        touched |= {_slot(key) for table, key, _ in self._gone if table == "QUEUE"}
        rows = Rows(
            tuple(self._sizes),
            tuple(self._directions),
            tuple(self._maps),
            tuple(self._servers),
            tuple(self._ramps),
            tuple(Binding(port, **fields) for port, fields in self._bindings.items()),  # type: ignore[arg-type]
            tuple(Queue(port, queue, **fields) for (port, queue), fields in self._queues.items()),
            tuple(self._cables),
            tuple(self._headrooms),
            tuple(self._groups),
            tuple(self._guards),
            self._poll,
        )
        return Plan(rows, frozenset(self._gone), frozenset(touched), frozenset(self._guessed))

    def _with(self, aspect: str) -> Iterator[Target]:
        return (target for target in self._targets if aspect in target.aspects)

    def _bind(self, port: str, column: str, field_name: str, value: object) -> None:
        """Write a field of PORT_QOS_MAP, or remove it when the value is empty."""
        if value:
            self._bindings.setdefault(port, {})[column] = value
        elif field_name in row_of(self._tables, "PORT_QOS_MAP", port):
            self._gone.add(("PORT_QOS_MAP", port, field_name))

    # ------------------------------------------------------------ sizes and cables

    def sizes(self) -> None:
        """MTU of ports, port channels and VLANs; cable lengths."""
        for target in self._with("mtu"):
            mtu, table = target.wanted.mtu.ip, SIZE_TABLE.get(target.hw.kind)
            if isinstance(mtu, int) and table and target.hw.name not in self._switch.masters:
                self._sizes.append(Size(table, target.hw.name, mtu))
        for target in self._with("cable"):
            metres = target.wanted.qos.cable_m
            if isinstance(metres, int):
                row = cable_row(self._tables, target.hw.name)
                self._cables.append(Cable(row, target.hw.name, metres))

    # ------------------------------------------------------------ maps

    def trust(self) -> None:
        """Binding a map is the trust in it."""
        dscp: dict[str, tuple[int, ...]] = {}
        pcp: dict[str, tuple[int, ...]] = {}
        for target in self._with("trust"):
            qos, port = target.wanted.qos, target.hw.name
            trust = _known(qos.trust, target.now.qos.trust, "port")
            bound = "dscp_to_tc_map" in row_of(self._tables, "PORT_QOS_MAP", port)
            if isinstance(qos.dscp_to_priority, tuple):
                dscp[port] = qos.dscp_to_priority
            elif qos.trust == "dscp" and not bound:
                dscp[port] = _CLASS_SELECTORS
            if isinstance(qos.pcp_to_priority, tuple):
                pcp[port] = qos.pcp_to_priority
            if trust in ("pcp", "port") and not isinstance(qos.trust, Absent):
                self._bind(port, "dscp", "dscp_to_tc_map", "")
            if trust in ("dscp", "port") and not isinstance(qos.trust, Absent):
                self._bind(port, "pcp", "dot1p_to_tc_map", "")
        self._map_all("DSCP_TO_TC_MAP", "dscp", "dscp_to_tc_map", dscp)
        self._map_all("DOT1P_TO_TC_MAP", "pcp", "dot1p_to_tc_map", pcp)

    def class_maps(self) -> None:
        """Traffic class = priority; queue and group by number."""
        queues = {target.hw.name: _queue_numbers(target) for target in self._with("queues")}
        groups = {target.hw.name: _group_numbers(target) for target in self._with("groups")}
        self._map_all("TC_TO_QUEUE_MAP", "queues", "tc_to_queue_map", queues)
        self._map_all("TC_TO_PRIORITY_GROUP_MAP", "groups", "tc_to_pg_map", groups)

    def pfc(self) -> None:
        """Which priorities pause, and what a pause stops."""
        stops: dict[str, tuple[int, ...]] = {}
        starts: dict[str, tuple[int, ...]] = {}
        with_groups = self._switch.asic_type in ("mellanox", "barefoot")
        for target in self._with("pfc"):
            port = target.hw.name
            sends = _on(target, lambda one: one.pfc_tx)
            obeys = _on(target, lambda one: one.pfc_rx)
            self._bind(port, "pfc", "pfc_enable", sends)
            self._direction(target, obeys == tuple(PRIORITIES) != sends)
            if sends or obeys:
                stops[port] = _queue_numbers(target)
                if with_groups:
                    numbers = _group_numbers(target)
                    starts[port] = tuple(numbers[p] if p in sends else -1 for p in PRIORITIES)
            else:
                self._unbind_own(port, "pauses", "pfc_to_queue_map")
                self._unbind_own(port, "starts", "pfc_to_pg_map")
        self._map_all("MAP_PFC_PRIORITY_TO_QUEUE", "pauses", "pfc_to_queue_map", stops)
        self._map_all("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "starts", "pfc_to_pg_map", starts)

    def _direction(self, target: Target, asymmetric: bool) -> None:
        now = row_of(self._tables, "PORT", target.hw.name)
        if asymmetric or not now or now.get("pfc_asym", "off") != "off":
            self._directions.append(Direction(target.hw.name, asymmetric))

    def _unbind_own(self, port: str, column: str, field_name: str) -> None:
        if reference(row_of(self._tables, "PORT_QOS_MAP", port), field_name).startswith(OWN):
            self._bind(port, column, field_name, "")

    def _map_all(self, table: str, column: str, name: str, wants: Mapping[str, tuple[int, ...]]) -> None:
        """Bind every port to a map with its numbers (-1: the code point is left out)."""
        rows = self._tables.get("PORT_QOS_MAP", {})
        chooser: Chooser[str, tuple[int, ...]] = Chooser(
            rows=self._tables.get(table, {}),
            refs={port: reference(row, name) for port, row in rows.items() if name in row},
            matches=lambda row, numbers: dict(row) == {str(k): str(v) for k, v in _pairs(numbers)},
            editable=lambda row_name, _row, _numbers: row_name.startswith(OWN),
        )
        for (_, numbers), ports in by_content({port: (0, want) for port, want in wants.items()}).items():
            chosen = chooser.name(numbers, ports, numbered(OWN, "_"))
            for port in ports:
                self._bind(port, column, name, chosen)
        self._maps += [CodeMap(table, key, _pairs(numbers)) for key, numbers in chooser.edited.items()]

    # ------------------------------------------------------------ queues

    def queues(self) -> None:
        """Schedulers and marking profiles of the queues."""
        shares: dict[tuple[str, int], tuple[Hashable, Server]] = {}
        ramps: dict[tuple[str, int], tuple[Hashable, Ecn]] = {}
        for target in self._targets:
            for priority in PRIORITIES:
                slot = (target.hw.name, _queue_numbers(target)[priority])
                one = target.wanted.qos.classes[priority]
                if f"share.{priority}" in target.aspects:
                    if isinstance(one.share, Share):
                        shares[slot] = (slot[1], _server(one.share, target.hw.speed_gbps))
                    elif one.share is None:
                        self._drop(slot, "scheduler")
                if f"ecn.{priority}" in target.aspects:
                    if isinstance(one.ecn, Ecn):
                        ramps[slot] = (self._ramp_group(slot[1], target.hw.speed_gbps), one.ecn)
                    elif one.ecn is None:
                        self._drop(slot, "wred_profile")
        self._choose_servers(shares)
        self._choose_ramps(ramps)

    def _drop(self, slot: tuple[str, int], name: str) -> None:
        if any(name in row for _, row in covering(self._tables, "QUEUE", *slot)):
            self._gone.add(("QUEUE", f"{slot[0]}|{slot[1]}", name))

    def _choose_servers(self, wants: Mapping[tuple[str, int], tuple[Hashable, Server]]) -> None:
        chooser: Chooser[tuple[str, int], Server] = Chooser(
            rows=self._tables.get("SCHEDULER", {}),
            refs=queue_refs(self._tables, "scheduler"),
            matches=_same_server,
            editable=lambda name, _row, _content: name.startswith(OWN),
        )
        for (queue, content), slots in by_content(wants).items():
            chosen = chooser.name(content, slots, numbered(f"{OWN}.{queue}", "."))
            for slot in slots:
                self._queues.setdefault(slot, {})["scheduler"] = chosen
        self._servers += [
            Server(name, one.strict, one.weight, one.cap) for name, one in chooser.edited.items()
        ]

    def _ramp_group(self, queue: int, speed_gbps: int) -> str:
        """Before 202505 one profile serves all queues with the same ramp: only one name can be tuned."""
        if self._switch.branch < 202505:
            return OWN
        return f"{OWN}_{queue}_{speed_gbps}G" if speed_gbps else f"{OWN}_{queue}"

    def _choose_ramps(self, wants: Mapping[tuple[str, int], tuple[Hashable, Ecn]]) -> None:
        rows = self._tables.get("WRED_PROFILE", {})
        chooser: Chooser[tuple[str, int], Ecn] = Chooser(
            rows=rows,
            refs=queue_refs(self._tables, "wred_profile"),
            matches=_same_ramp,
            editable=self._can_tune,
        )
        tunable = [TUNABLE_PROFILE] if self._switch.branch < 202505 else []
        for (group, content), slots in by_content(wants).items():
            chosen = chooser.name(content, slots, chain(tunable, numbered(str(group), "_")))
            for slot in slots:
                self._queues.setdefault(slot, {})["ramp"] = chosen
        self._ramps += [
            Ramp(name, _colours(one, whole=name not in rows)) for name, one in chooser.edited.items()
        ]

    def _can_tune(self, name: str, row: Mapping[str, str], wanted: Ecn) -> bool:
        """True when the updater lets us turn the profile into what is wanted."""
        if self._switch.branch >= 202511:
            return name.startswith(OWN)
        now = ramp(row)
        if not isinstance(now, Ecn) or not (name.startswith(OWN) or name == TUNABLE_PROFILE):
            return False
        if not isinstance(wanted.others, Absent) and wanted.others != now.others:
            return False
        names = ("green_min_threshold", "green_max_threshold", "green_drop_probability")
        return all(
            key in row
            and permitted(
                Op("replace", "WRED_PROFILE", name, key, "", ""), self._switch.branch, self._switch.family
            )
            for key in names
        )

    # ------------------------------------------------------------ buffers

    def buffers(self) -> None:
        """Headroom by hand, and groups whose headroom the switch computes (dynamic model)."""
        wants: dict[tuple[str, int], tuple[Hashable, Headroom]] = {}
        for target in self._targets:
            groups = _group_numbers(target)
            for priority in PRIORITIES:
                if f"headroom.{priority}" not in target.aspects:
                    continue
                amount = target.wanted.qos.classes[priority].headroom
                slot = (target.hw.name, groups[priority])
                if isinstance(amount, Amount):
                    speed = target.hw.speed_gbps
                    wants[slot] = (f"{OWN}_{slot[1]}_{speed}G", self._profile(target, amount.value))
                elif amount is None:
                    self._compute(target, slot)
            if "pfc" in target.aspects and self._switch.dynamic:
                self._dynamic(target, groups)
        self._choose_headrooms(wants)

    def _choose_headrooms(self, wants: Mapping[tuple[str, int], tuple[Hashable, Headroom]]) -> None:
        rows = self._tables.get("BUFFER_PROFILE", {})
        refs = {
            (port, number): reference(row, "profile")
            for key, row in self._tables.get("BUFFER_PG", {}).items()
            for port, _, numbers in (key.rpartition("|"),)
            for number in span(numbers)
        }
        chooser: Chooser[tuple[str, int], Headroom] = Chooser(
            rows=rows,
            refs=refs,
            matches=lambda row, one: (
                not row.get("headroom_type") and row.get("xoff") == str(one.xoff) and "xon" in row
            ),
            # The updater changes single fields of a profile only; size and xoff belong together.
            editable=lambda _name, _row, _content: False,
        )
        for (base, content), slots in by_content(wants).items():
            chosen = chooser.name(content, slots, numbered(str(base), "_"))
            for port, number in slots:
                self._split_group(port, number)
                self._groups.append(Group(port, number, chosen))
        for name, one in chooser.edited.items():
            fields = (one.pool, one.size, one.xon, one.xoff, one.threshold, one.xon_offset)
            self._headrooms.append(Headroom(name, *fields))
            if not one.name:
                self._guessed.add(name)

    def _profile(self, target: Target, xoff: int) -> Headroom:
        """The other numbers come from the profile that the switch computed for this port, or any port.

        Without one: the resume point and size that most shipped tables use (18432, xon + xoff).
        `name` tells whether a profile was found.
        """
        profiles = self._tables.get("BUFFER_PROFILE", {})
        computed = {name: row for name, row in profiles.items() if name.startswith("pg_lossless_")}
        speed = f"pg_lossless_{target.hw.speed_gbps * 1000}_"
        names = sorted(computed, key=lambda name: (not name.startswith(speed), name))
        row = computed[names[0]] if names else {}
        now = {key: number for key, value in row.items() if (number := integer(value)) is not None}
        xon = now.get("xon", 18432)
        size = xon + xoff
        if row and now.get("size", 0) != xon + now.get("xoff", 0):
            size = now.get("size", size)
        pool = row.get("pool", "ingress_lossless_pool").strip("[]").rpartition("|")[2]
        found = names[0] if names else ""
        return Headroom(found, pool, size, xon, xoff, now.get("dynamic_th", 0), now.get("xon_offset", 0))

    def _compute(self, target: Target, slot: tuple[str, int]) -> None:
        """Give a group with a profile by hand back to the switch."""
        for key, row in covering(self._tables, "BUFFER_PG", *slot)[:1]:
            name = reference(row, "profile")
            if not name or name == "NULL" or name.startswith("pg_lossless_"):
                return
            metres = _known(target.wanted.qos.cable_m, target.now.qos.cable_m, 0)
            computed = f"pg_lossless_{target.hw.speed_gbps * 1000}_{metres}m_profile"
            if self._switch.dynamic:
                computed = "NULL"
            if computed == "NULL" or computed in self._tables.get("BUFFER_PROFILE", {}):
                self._groups.append(Group(slot[0], slot[1], computed))
            elif int(row_of(self._tables, "BUFFER_PROFILE", name).get("xoff", "0") or 0):
                self._gone.add(("BUFFER_PG", key, ""))

    def _dynamic(self, target: Target, groups: tuple[int, ...]) -> None:
        port = target.hw.name
        lossless = {groups[p] for p in _on(target, lambda one: one.pfc_tx)}
        for number in sorted(lossless):
            if not covering(self._tables, "BUFFER_PG", port, number):
                self._groups.append(Group(port, number, "NULL"))
        for key, row in self._tables.get("BUFFER_PG", {}).items():
            name, _, numbers = key.rpartition("|")
            if name == port and reference(row, "profile") == "NULL" and lossless.isdisjoint(span(numbers)):
                self._gone.add(("BUFFER_PG", key, ""))

    def _split_group(self, port: str, number: int) -> None:
        """A ranged row beside a single one would give the group two profiles."""
        for key, row in covering(self._tables, "BUFFER_PG", port, number):
            members = span(key.rpartition("|")[2])
            if len(members) > 1:
                self._gone.add(("BUFFER_PG", key, ""))
                profile = reference(row, "profile")
                self._groups += [Group(port, other, profile) for other in members if other != number]

    # ------------------------------------------------------------ watchdog

    def watchdogs(self) -> None:
        """PFC_WD rows, pfcwd_sw_enable, and a poll interval that suits them."""
        now = row_of(self._tables, "PFC_WD", "GLOBAL").get("POLL_INTERVAL", "")
        polls: list[int] = []
        for target in self._with("watch"):
            watched = _on(target, lambda one: one.watchdog)
            if watched:
                self._bind(target.hw.name, "watched", "pfcwd_sw_enable", watched)
                self._guards.append(self._guard(target, int(now) if now.isdigit() else 0))
            else:
                self._unguard(target)
            poll = target.wanted.qos.watchdog.poll_ms
            polls += [poll] if isinstance(poll, int) else []
        times = [ms for guard in self._guards for ms in (guard.detect, guard.restore)]
        if polls:
            self._poll = min(polls)
        elif times and now.isdigit() and int(now) > min(times):
            # The model refuses times below the poll interval (sonic-pfcwd.yang).
            self._poll = min(times)
        if now == str(self._poll):
            self._poll = 0

    def _unguard(self, target: Target) -> None:
        """Without its row a port has no watchdog; pfcwd_sw_enable follows pfc_enable, as in stock files."""
        port = target.hw.name
        if port in self._tables.get("PFC_WD", {}):
            self._gone.add(("PFC_WD", port, ""))
        if "pfcwd_sw_enable" in row_of(self._tables, "PORT_QOS_MAP", port):
            self._bind(port, "watched", "pfcwd_sw_enable", _on(target, lambda one: one.pfc_tx))

    def _guard(self, target: Target, poll: int) -> Guard:
        wanted, now = target.wanted.qos.watchdog, target.now.qos.watchdog
        detect = _known(wanted.detect_ms, now.detect_ms, max(_DETECT_MS, poll))
        restore = _known(wanted.restore_ms, now.restore_ms, 2 * detect)
        return Guard(target.hw.name, _known(wanted.action, now.action, "drop"), detect, restore)


# ---------------------------------------------------------------- small helpers


def _known(wanted: object, now: object, default: C) -> C:
    """The wanted value, else today's, else the default."""
    for value in (wanted, now):
        if not isinstance(value, Absent):
            return value  # type: ignore[return-value]
    return default


def _on(target: Target, side: Callable[[ClassState], object]) -> tuple[int, ...]:
    """Priorities whose field is on; what the wish leaves open stays as it is."""
    pairs = zip(target.wanted.qos.classes, target.now.qos.classes, strict=True)
    return tuple(p for p, (wanted, now) in enumerate(pairs) if _known(side(wanted), side(now), False) is True)


def _queue_numbers(target: Target) -> tuple[int, ...]:
    pairs = zip(target.wanted.qos.classes, target.now.qos.classes, strict=True)
    return tuple(_known(wanted.queue, now.queue, p) for p, (wanted, now) in enumerate(pairs))


def _group_numbers(target: Target) -> tuple[int, ...]:
    """Groups of all priorities; what nobody uses shares the group of the lossy ones."""
    lossless = _on(target, lambda one: one.pfc_tx)
    shared = next((group for group in PRIORITIES if group not in lossless), 0)
    pairs = zip(target.wanted.qos.classes, target.now.qos.classes, strict=True)
    return tuple(
        _known(wanted.group, now.group, p if p in lossless else shared)
        for p, (wanted, now) in enumerate(pairs)
    )


def _pairs(numbers: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple((code, number) for code, number in enumerate(numbers) if number >= 0)


def _server(share: Share, speed_gbps: int) -> Server:
    cap = share.cap if isinstance(share.cap, int) else 0
    return Server("", share.scheduler == "strict", share.weight, cap * speed_gbps * 10**9 // 8 // 100)


def _same_server(row: Mapping[str, str], one: Server) -> bool:
    kind = "STRICT" if one.strict else "DWRR"
    weight = one.strict or row.get("weight", "1") == str(one.weight)
    rates = (row.get("pir", "0"), row.get("cir", "0")) == (str(one.cap), "1" if one.cap else "0")
    return row.get("type") == kind and weight and rates


def _same_ramp(row: Mapping[str, str], wanted: Ecn) -> bool:
    now = ramp(row)
    if not isinstance(now, Ecn) or (now.kmin, now.kmax, now.pmax) != (wanted.kmin, wanted.kmax, wanted.pmax):
        return False
    return isinstance(wanted.others, Absent) or wanted.others == now.others


def _colours(one: Ecn, whole: bool) -> tuple[Colour, ...]:
    """Green, and the others where they are wanted or the profile is new: then as green."""
    rows = [("green", one.kmin, one.kmax, one.pmax)]
    wanted = {} if isinstance(one.others, Absent) else {name: rest for name, *rest in one.others}
    for name in ("yellow", "red"):
        low, high, percent = wanted.get(name, (one.kmin, one.kmax, one.pmax))
        if whole or name in wanted:
            rows.append((name, low, high, percent))  # type: ignore[arg-type]
    return tuple(Colour(name, low.value, high.value, round(percent)) for name, low, high, percent in rows)


def _slot(key: str) -> tuple[str, int]:
    port, _, number = key.rpartition("|")
    return port, int(number)
