"""The configuration of a simulated EOS switch: a tree of values, and how EOS prints it.

Facts: reference page arista_eos, sections 2, 3 and 5 (defaults, order inside blocks, `all` form).
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from rdma_fabric.lab.simulators._contract import DeviceFacts

# DSCP 0-7 -> class 1, 8-15 -> class 0, then eight code points per class; CoS 0 and 1 swap the same way.
DSCP_DEFAULT = {dscp: {0: 1, 1: 0}.get(dscp // 8, dscp // 8) for dscp in range(64)}
COS_DEFAULT = {cos: {0: 1, 1: 0}.get(cos, cos) for cos in range(8)}
QUEUE_DEFAULT = {traffic_class: traffic_class for traffic_class in range(8)}
MTU_DEFAULT = 1500
BRIDGED_MTU = 9214

Family = Literal["xgs", "dnx", "virtual"]
Trust = Literal["default", "dscp", "cos", "off"]


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the model decides: queue keyword, MTU ceiling, families of commands, physical ports."""

    model: str
    version: str
    family: Family
    queue_word: str
    mtu_ceiling: int
    ports: tuple[str, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers, for comparisons."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])


def hardware(facts: DeviceFacts) -> Hardware:
    """The hardware of a model; a virtual EOS has the lower ceiling 9194 and no PFC or ECN."""
    model = facts.model or "DCS-7060X6-64PE"
    plain = model.upper().removeprefix("DCS-")
    version = facts.version or "4.32.2F"
    version = f"{version}.0F" if re.fullmatch(r"\d+\.\d+", version) else version
    ports = tuple(port.name for port in facts.ports)
    if "VEOS" in plain or "CEOS" in plain:
        return Hardware(model, version, "virtual", "tx-queue", 9194, ports)
    if plain.startswith(("7280", "7500", "7800", "7020")):
        return Hardware(model, version, "dnx", "tx-queue", 9214, ports)
    word = "uc-tx-queue" if plain.startswith(("7060", "7050")) else "tx-queue"
    return Hardware(model, version, "xgs", word, 9214, ports)


@dataclass(slots=True)
class Ecn:
    """ECN thresholds of a queue; both in the same unit."""

    minimum: int
    maximum: int
    unit: str
    probability: int | None = None
    weight: int | None = None

    def line(self) -> str:
        """As EOS prints it."""
        text = (
            f"random-detect ecn minimum-threshold {self.minimum} {self.unit}"
            f" maximum-threshold {self.maximum} {self.unit}"
        )
        if self.probability is not None:
            text += f" max-mark-probability {self.probability}"
        return text if self.weight is None else f"{text} weight {self.weight}"


@dataclass(slots=True)
class Queue:
    """One transmit queue; strict is the default of every queue."""

    strict: bool = True
    percent: int | None = None
    guaranteed: str = ""
    shape: str = ""
    ecn: Ecn | None = None
    count: bool = False
    drop: dict[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """What differs from the default, in the order of EOS: priority, bandwidth, shape, random-detect."""
        if not self.strict:
            yield "no priority"
        if self.percent is not None:
            yield f"bandwidth percent {self.percent}"
        if self.guaranteed:
            yield f"bandwidth guaranteed {self.guaranteed}"
        if self.shape:
            yield f"shape rate {self.shape}"
        if self.ecn is not None:
            yield self.ecn.line()
        if self.count:
            yield "random-detect ecn count"
        for _, text in sorted(self.drop.items()):
            yield f"random-detect drop {text}"

    def all_lines(self) -> Iterator[str]:
        """With defaults: bandwidth lines change places with the priority line, as real dumps do."""
        yield "priority strict" if self.strict else "no priority"
        yield "no bandwidth percent" if self.percent is None else f"bandwidth percent {self.percent}"
        rates = [
            f"bandwidth guaranteed {self.guaranteed}" if self.guaranteed else "no bandwidth guaranteed",
            f"shape rate {self.shape}" if self.shape else "no shape rate",
        ]
        yield from reversed(rates) if self.strict else rates
        yield self.ecn.line() if self.ecn else "no random-detect ecn minimum-threshold"
        yield "random-detect ecn count" if self.count else "no random-detect ecn count"
        dropped = [f"random-detect drop {text}" for _, text in sorted(self.drop.items())]
        yield from dropped or ["no random-detect drop"]


@dataclass(slots=True)
class Qos:
    """QoS values that an interface and a qos profile both have."""

    trust: Trust = "default"
    cos: int = 0
    dscp: int = 0
    shape: str = ""
    pfc: bool = False
    no_drop: set[int] = field(default_factory=set)
    watchdog: bool = True
    watchdog_action: str = ""
    watchdog_timer: str = ""
    queues: dict[tuple[str, int], Queue] = field(default_factory=dict)

    def queue(self, word: str, number: int) -> Queue:
        """The queue, made at its defaults when it was never touched."""
        return self.queues.setdefault((word, number), Queue())

    def lines(self) -> Iterator[str]:
        """What differs from the defaults, queues left out."""
        if self.trust != "default":
            yield "no qos trust" if self.trust == "off" else f"qos trust {self.trust}"
        if self.cos:
            yield f"qos cos {self.cos}"
        if self.dscp:
            yield f"qos dscp {self.dscp}"
        if self.shape:
            yield f"shape rate {self.shape}"
        if self.pfc:
            yield "priority-flow-control on"
        if not self.watchdog:
            yield "no priority-flow-control pause watchdog"
        for priority in sorted(self.no_drop):
            yield f"priority-flow-control priority {priority} no-drop"
        if self.watchdog_action:
            yield f"priority-flow-control pause watchdog port action {self.watchdog_action}"
        if self.watchdog_timer:
            yield f"priority-flow-control pause watchdog port timer {self.watchdog_timer}"

    def all_lines(self, routed: bool) -> Iterator[str]:
        """With defaults; a default routed port shows its trust, a default switchport does not."""
        default = "qos trust dscp" if routed else "default qos trust"
        yield {"default": default, "off": "no qos trust"}.get(self.trust, f"qos trust {self.trust}")
        yield f"qos cos {self.cos}"
        yield f"qos dscp {self.dscp}"
        yield f"shape rate {self.shape}" if self.shape else "no shape rate"
        yield "priority-flow-control on" if self.pfc else "no priority-flow-control"
        yield ("" if self.watchdog else "no ") + "priority-flow-control pause watchdog"
        for priority in range(8):
            line = f"priority-flow-control priority {priority}"
            yield f"{line} no-drop" if priority in self.no_drop else f"no {line}"
        for what, value in (("action", self.watchdog_action), ("timer", self.watchdog_timer)):
            line = f"priority-flow-control pause watchdog port {what}"
            yield f"{line} {value}" if value else f"no {line}"

    def queue_blocks(self) -> Iterator[str]:
        """The blocks of queues that differ from their defaults, as lines below this block."""
        for (word, number), queue in sorted(self.queues.items()):
            lines = list(queue.lines())
            if lines:
                yield from ("!", f"{word} {number}", *(f"   {line}" for line in lines))

    def all_queue_blocks(self, word: str) -> Iterator[str]:
        """The blocks of all eight queues with defaults."""
        for number in range(8):
            queue = self.queues.get((word, number), Queue())
            yield from ("!", f"{word} {number}", *(f"   {line}" for line in queue.all_lines()))


@dataclass(slots=True)
class Interface:
    """One interface; `foreign` are (rank, line) that this lab keeps without knowing their meaning."""

    name: str
    qos: Qos = field(default_factory=Qos)
    mtu: int | None = None
    l2_mtu: int | None = None
    l2_mru: int | None = None
    routed: bool | None = None
    flow: dict[str, str] = field(default_factory=dict)
    dcbx: str = ""
    lldp_transmit: bool = True
    lldp_receive: bool = True
    profile: str = ""
    foreign: list[tuple[int, str]] = field(default_factory=list)

    @property
    def physical(self) -> bool:
        """True for Ethernet ports, which exist whether they are configured or not."""
        return self.name.startswith("Ethernet")

    @property
    def switchable(self) -> bool:
        """True for ports that can be switchports."""
        return self.name.startswith(("Ethernet", "Port-Channel"))

    def foreign_value(self, start: str) -> str:
        """The rest of the first foreign line that starts so."""
        for _, line in self.foreign:
            if line == start or line.startswith(f"{start} "):
                return line.removeprefix(start).strip() or start
        return ""

    def lines(self, default_routed: bool) -> list[str]:
        """What differs from the defaults, in EOS's order."""
        ranked = list(self.foreign)
        if self.mtu is not None:
            ranked.append((3, f"mtu {self.mtu}"))
        if self.dcbx:
            ranked.append((5, f"dcbx mode {self.dcbx}"))
        ranked += [
            (6, f"flowcontrol {way} {state}") for way, state in sorted(self.flow.items(), reverse=True)
        ]
        ranked += [
            (7, f"l2 {word} {value}")
            for word, value in (("mtu", self.l2_mtu), ("mru", self.l2_mru))
            if value is not None
        ]
        if self.routed is not None and self.routed != default_routed:
            ranked.append((11, "no switchport" if self.routed else "switchport"))
        ranked += [
            (12, f"no lldp {way}")
            for way, state in (("transmit", self.lldp_transmit), ("receive", self.lldp_receive))
            if not state
        ]
        ranked += [(20, line) for line in self.qos.lines()]
        if self.profile:
            ranked.append((21, f"service-profile {self.profile}"))
        found = [line for _, line in sorted(ranked, key=lambda pair: pair[0])]
        return found + list(self.qos.queue_blocks())

    def all_lines(self, default_routed: bool, hw: Hardware) -> list[str]:
        """The same with defaults, in the shape of `show running-config all`."""
        routed = self.is_routed(default_routed)
        ranked = list(self.foreign)
        ranked.append((3, f"mtu {MTU_DEFAULT if self.mtu is None else self.mtu}"))
        if self.switchable:
            ranked.append((5, f"dcbx mode {self.dcbx}" if self.dcbx else "no dcbx mode"))
            for way in ("send", "receive"):
                value = self.flow.get(way)
                ranked.append((6, f"flowcontrol {way} {value}" if value else f"no flowcontrol {way}"))
            ranked.append((7, "no l2 mtu" if self.l2_mtu is None else f"l2 mtu {self.l2_mtu}"))
            ranked.append((11, "no switchport" if routed else "switchport"))
        if self.switchable or self.name.startswith("Management"):
            ranked.append((12, ("" if self.lldp_transmit else "no ") + "lldp transmit"))
            ranked.append((12, ("" if self.lldp_receive else "no ") + "lldp receive"))
        if self.switchable:
            ranked += [(20, line) for line in self.qos.all_lines(routed)]
            if self.profile:
                ranked.append((21, f"service-profile {self.profile}"))
        found = [line for _, line in sorted(ranked, key=lambda pair: pair[0])]
        return found + (list(self.qos.all_queue_blocks(hw.queue_word)) if self.switchable else [])

    def is_routed(self, default_routed: bool) -> bool:
        """True for a port that routes."""
        if not self.switchable:
            return True
        return default_routed if self.routed is None else self.routed


@dataclass(slots=True)
class Block:
    """A foreign block: its header, its lines, and blocks below it."""

    header: str
    rank: int
    label: str
    lines: list[str] = field(default_factory=list)
    below: dict[str, Block] = field(default_factory=dict)

    def text(self) -> Iterator[str]:
        """Header and indented content; blocks below are set apart by `!`."""
        yield self.header
        yield from (f"   {line}" for line in self.lines)
        for block in self.below.values():
            yield "   !"
            yield from (f"   {line}" for line in block.text())


@dataclass(slots=True)
class Trident:
    """A `platform trident mmu queue profile` block: setting -> value."""

    values: dict[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Egress lines first, then ingress lines."""
        yield from (f"{key} {value}" for key, value in sorted(self.values.items()))


@dataclass(slots=True)
class Watchdog:
    """The global PFC watchdog; times in seconds, None is the device's own choice."""

    timeout: Decimal | None = None
    recovery: Decimal | None = None
    polling: Decimal | None = None
    action: str = "errdisable"
    forced_drop: bool = False

    def lines(self) -> Iterator[str]:
        """What differs from the defaults; EOS prints its own form of a number."""
        line = "priority-flow-control pause watchdog"
        if self.action != "errdisable":
            yield f"{line} action {self.action}"
        if self.timeout is not None:
            yield f"{line} default timeout {self.timeout:.2f}"
        if self.polling is not None:
            yield f"{line} default polling-interval {self.polling:.3f}"
        if self.recovery is not None:
            yield f"{line} default recovery-time {self.recovery:.2f}"
        if self.forced_drop:
            yield f"{line} override action drop"


# Where sections of our own stand among the foreign ranks of `_arista_eos_foreign`.
RANK_QOS = 30
RANK_VLAN = 60
RANK_INTERFACES = 70


@dataclass(slots=True)
class Config:
    """One whole configuration (running, startup, a session's, a checkpoint's)."""

    hardware: Hardware
    foreign: list[tuple[int, str]] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)
    banners: dict[str, list[str]] = field(default_factory=dict)
    dscp: dict[int, int] = field(default_factory=lambda: dict(DSCP_DEFAULT))
    dscp_precedence: dict[int, int] = field(default_factory=dict)
    cos: dict[int, int] = field(default_factory=lambda: dict(COS_DEFAULT))
    queues: dict[int, int] = field(default_factory=lambda: dict(QUEUE_DEFAULT))
    network_qos: dict[int, int] = field(default_factory=dict)
    non_ect: str = ""
    ecn_counters: bool = False
    pfc_off: bool = False
    watchdog: Watchdog = field(default_factory=Watchdog)
    trident: dict[str, Trident] = field(default_factory=dict)
    trident_applied: str = ""
    headroom_pool: str = ""
    lldp: bool = True
    default_routed: bool = False
    profiles: dict[str, Qos] = field(default_factory=dict)
    interfaces: dict[str, Interface] = field(default_factory=dict)

    def clone(self) -> Config:
        """An independent copy."""
        copy: Config = pickle.loads(pickle.dumps(self, -1))
        return copy

    def interface(self, name: str) -> Interface:
        """The interface, made at its defaults when it was never touched."""
        return self.interfaces.setdefault(name, Interface(name))

    def names(self) -> list[str]:
        """All interfaces that exist, in EOS's order."""
        there = {*self.hardware.ports, "Management1", *self.interfaces}
        return sorted(there, key=port_order)

    @property
    def hostname(self) -> str:
        """The configured name."""
        return next(
            (line.split()[1] for _, line in self.foreign if line.startswith("hostname ")), "localhost"
        )

    def lines(self, everything: bool = False) -> list[str]:
        """The running-config without its header; sections are set apart by `!`."""
        sections = sorted(self._sections(everything), key=lambda section: section[0])
        return [line for _, lines in sections if lines for line in ("!", *lines)] + ["!", "end"]

    def text(self) -> str:
        """`lines` as one text."""
        return "\n".join(self.lines()) + "\n"

    def _sections(self, everything: bool) -> Iterator[tuple[int, list[str]]]:
        for rank in sorted({rank for rank, _ in self.foreign}):
            yield rank, [line for found, line in self.foreign if found == rank]
        for block in self.blocks.values():
            yield block.rank, list(block.text())
        for kind, lines in sorted(self.banners.items()):
            yield 95, [f"banner {kind}", *lines, "EOF"]
        if self.default_routed:
            yield 1, ["switchport default mode routed"]
        if self.ecn_counters:
            yield 0, ["hardware counter feature ecn out"]
        if not self.lldp or everything:
            yield 29, ["lldp run" if self.lldp else "no lldp run"]
        yield from self._platform()
        yield RANK_QOS, list(self._maps(everything))
        yield RANK_QOS + 1, list(self._flow_control(everything))
        for name, profile in sorted(self.profiles.items()):
            lines = [*profile.lines(), *profile.queue_blocks()]
            yield RANK_QOS + 2, [f"qos profile {name}", *(f"   {line}" for line in lines)]
        yield from self._interfaces(everything)

    def _platform(self) -> Iterator[tuple[int, list[str]]]:
        for name, profile in sorted(self.trident.items()):
            header = f"platform trident mmu queue profile {name}"
            yield RANK_QOS - 2, [header, *(f"   {line}" for line in profile.lines())]
        lines = [
            f"platform sand qos map traffic-class {number} to network-qos {value}"
            for number, value in sorted(self.network_qos.items())
        ]
        if self.trident_applied:
            lines.append(f"platform trident mmu queue profile {self.trident_applied} apply")
        if self.headroom_pool:
            lines.append(f"platform trident mmu headroom-pool limit {self.headroom_pool}")
        yield RANK_QOS - 1, lines

    def _maps(self, everything: bool) -> Iterator[str]:
        """One line per traffic class; without `all`, code points at their default are left out."""
        if self.non_ect:
            yield self.non_ect
        for cos, number in sorted(self.cos.items()):
            if everything or COS_DEFAULT[cos] != number:
                yield f"qos map cos {cos} to traffic-class {number}"
        for (number, precedence), group in self._dscp_groups(everything):
            line = f"qos map dscp {' '.join(map(str, group))} to traffic-class {number}"
            yield line if precedence is None else f"{line} drop-precedence {precedence}"
        for number, queue in sorted(self.queues.items()):
            if (everything or QUEUE_DEFAULT[number] != queue) and number != 7:
                yield f"qos map traffic-class {number} to tx-queue {queue}"

    def _dscp_groups(self, everything: bool) -> Iterable[tuple[tuple[int, int | None], list[int]]]:
        groups: dict[tuple[int, int | None], list[int]] = {}
        for dscp, number in sorted(self.dscp.items()):
            precedence = self.dscp_precedence.get(dscp)
            if everything or DSCP_DEFAULT[dscp] != number or precedence is not None:
                groups.setdefault((number, precedence), []).append(dscp)
        return sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or 0))

    def _flow_control(self, everything: bool) -> Iterator[str]:
        if self.pfc_off or everything:
            yield ("" if self.pfc_off else "no ") + "priority-flow-control all off"
        yield from self.watchdog.lines()

    def _interfaces(self, everything: bool) -> Iterator[tuple[int, list[str]]]:
        for name in self.names():
            port = self.interfaces.get(name) or Interface(name)
            if everything:
                lines = port.all_lines(self.default_routed, self.hardware)
            else:
                lines = port.lines(self.default_routed)
            yield RANK_INTERFACES, [f"interface {name}", *(f"   {line}" for line in lines)]


def port_order(name: str) -> tuple[str, list[int]]:
    """Port-Channels, Ethernets, Loopbacks, Management, Vlans, Vxlan; each by number."""
    kind = re.match(r"[A-Za-z-]+", name)
    numbers = [int(part) for part in re.findall(r"\d+", name)]
    word = kind[0] if kind else name
    return ("" if word == "Port-Channel" else word), numbers


def short(name: str) -> str:
    """The short form that prompts and tables use: Et1/1, Ma1, Vl10, Lo0, Po1, Vx1."""
    kind = re.match(r"[A-Za-z-]+", name)
    word = kind[0] if kind else name
    letters = {"Ethernet": "Et", "Management": "Ma", "Vlan": "Vl", "Loopback": "Lo", "Port-Channel": "Po"}
    return letters.get(word, word[:2]) + name[len(word) :]
