"""InfiniBand subnets: what the subnet manager of a network is to have, and what each port gets from it.

A network with transport infiniband is one subnet. Selectors of partition members become port GUIDs
here, so that everything below this (states, files, checks) sees ports and never selectors.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from rdma_fabric.findings import did_you_mean
from rdma_fabric.intent import models
from rdma_fabric.intent.models import DEFAULT_PKEY, MEMBER_WORDS, Ipoib, SubnetManager, TrafficClass, Wishes
from rdma_fabric.inventory.guids import normal
from rdma_fabric.inventory.selector import parse
from rdma_fabric.inventory.types import End, Inventory, Node
from rdma_fabric.state import UNMANAGED, IbPort, Maybe, Partition, Partitions, SmState

FULL: Final = 0x8000
"""Membership bit of a P_Key on the wire."""
DROP: Final = 15
"""Entry of the SL-to-VL map that discards the service level."""
_LANES: Final = (1, 2, 4, 8, 15)
"""Numbers of data lanes that a port can operate (InfiniBand Architecture 14.2.5.6, OperationalVLs)."""


GROUP_WORDS: Final = tuple(word for word in MEMBER_WORDS if word != "SELF")
NO_PARTITIONS: Final = Partitions()


@dataclass(frozen=True, slots=True, eq=False)
class Trouble:
    """Members that are not what they seem: `path` below the intent's subnet_manager."""

    path: tuple[str | int, ...]
    message: str
    help: str
    certain: bool = True
    """False: it may be meant so."""
    name: str = ""
    """The partition, where a file has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Subnet:
    """One network with transport infiniband, resolved."""

    network: str
    wishes: Wishes
    managers: Mapping[str, SmState]
    """Node -> the subnet manager that it is to run."""
    ports: Mapping[End, IbPort]
    """Every host port of the network; equal ones are one object."""
    guids: Mapping[End, str]
    """Of all ports of the network that have one."""
    switches: frozenset[str]
    partitions: Partitions = NO_PARTITIONS
    troubles: tuple[Trouble, ...] = ()

    @property
    def manager(self) -> SubnetManager:
        """The intent's subnet manager; an empty one when the intent has none."""
        return self.wishes.subnet_manager or SubnetManager()


def subnet(network: str, wishes: Wishes, inventory: Inventory, given: Partitions | None = None) -> Subnet:
    """The subnet of a network whose merged wishes ask for InfiniBand; `given`: partitions of a file."""
    return _Builder(network, wishes, inventory, given).build()


@dataclass
class _Builder:
    network: str
    wishes: Wishes
    inventory: Inventory
    given: Partitions | None = None
    troubles: list[Trouble] = field(default_factory=list)
    shared: dict[tuple[int, ...], IbPort] = field(default_factory=dict)

    def build(self) -> Subnet:
        ends = tuple(self._ends())
        guids = {end: self.inventory.guids[end] for end in ends if end in self.inventory.guids}
        manager = self.wishes.subnet_manager
        if manager is None:
            bare = {end: IbPort(link="active") for end in ends if self._is_host(end)}
            return Subnet(self.network, self.wishes, {}, bare, guids, self._switches(ends))
        partitions = Partitions(
            tuple(
                sorted(self._partitions(manager, ends), key=lambda one: (one.pkey != DEFAULT_PKEY, one.pkey))
            )
        )
        own = {guids[end] for end in self._sm_ends(manager, ends) if end in guids}
        hosts = [end for end in ends if self._is_host(end)]
        ports = {end: self._port(manager, partitions, guids.get(end, ""), own) for end in hosts}
        managers = self._managers(manager, partitions, ends, guids)
        return Subnet(
            self.network,
            self.wishes,
            managers,
            ports,
            guids,
            self._switches(ends),
            partitions,
            tuple(self.troubles),
        )

    # -- ports

    def _ends(self) -> Iterable[End]:
        for name, node in self.inventory.nodes.items():
            for port in node.spec.ports.values():
                if port.network == self.network and port.kind == "physical":
                    yield End(name, port.name)

    def _node(self, end: End) -> Node:
        return self.inventory.nodes[end.node]

    def _is_host(self, end: End) -> bool:
        return self._node(end).is_host

    def _switches(self, ends: Iterable[End]) -> frozenset[str]:
        return frozenset(end.node for end in ends if not self._is_host(end))

    def _sm_ends(self, manager: SubnetManager, ends: Iterable[End]) -> tuple[End, ...]:
        """The port of each subnet manager: its first one in this network."""
        first: dict[str, End] = {}
        for end in ends:
            first.setdefault(end.node, end)
        return tuple(first[one.node] for one in manager.nodes if one.node in first)

    def _port(self, manager: SubnetManager, partitions: Partitions, guid: str, own: set[str]) -> IbPort:
        keys = port_keys(partitions, guid, own) if guid and manager.nodes else ()
        if len(manager.nodes) > 1 and guid in own and keys != port_keys(partitions, guid, ()):
            keys = ()  # SELF is the port of whoever is master
        if keys not in self.shared:
            self.shared[keys] = IbPort(
                link="active",
                pkeys=keys or UNMANAGED,
                sl_to_vl=sl_to_vl(self.wishes) if manager.nodes else UNMANAGED,
            )
        return self.shared[keys]

    # -- partitions

    def _partitions(self, manager: SubnetManager, ends: tuple[End, ...]) -> Iterable[Partition]:
        default_sl = self._default_sl()
        given = self.given.rows if self.given is not None else ()
        for row in given:
            self._strangers(row, manager.partitions_file, ends)
        yield from given
        said = {one.pkey for one in manager.partitions} | {one.pkey for one in given}
        if DEFAULT_PKEY not in said:
            # Without this rule OpenSM makes every port a limited member of the default partition.
            members: tuple[str, ...] = ("ALL=full", "ALL_SWITCHES=full", "SELF=full")
            if self.given is not None:
                help = "write Default=0x7fff, ipoib, mtu=5 : ALL=full, ALL_SWITCHES=full, SELF=full ;"
                message = f"{manager.partitions_file} has no rule for the partition Default"
                self.troubles.append(Trouble(("partitions_file",), message, help))
            yield Partition(
                "Default", DEFAULT_PKEY, True, self.wishes.rdma.mtu, UNMANAGED, default_sl, UNMANAGED, members
            )
        for index, one in enumerate(manager.partitions):
            members = self._said(one, index, ends)
            yield Partition(
                one.name,
                one.pkey,
                one.ipoib,
                one.mtu,
                UNMANAGED if one.rate is None else one.rate,
                default_sl if one.sl is None else one.sl,
                UNMANAGED if one.scope is None else one.scope,
                members,
                tuple(sorted(group for group in one.groups if not (one.ipoib and is_broadcast(group)))),
                one.index0,
            )

    def _strangers(self, one: Partition, file: str, ends: tuple[End, ...]) -> None:
        """Members of a file's partition that are no ports of this network."""
        here = {self.inventory.guids[end] for end in ends if end in self.inventory.guids}
        guids = (member.partition("=")[0] for member in one.members)
        odd = [guid for guid in guids if guid not in MEMBER_WORDS and guid not in here]
        if odd:
            more = f" and {len(odd) - 1} more" if odd[1:] else ""
            message = f"no port of network {self.network} has GUID {odd[0]}{more} ({file})"
            help = "correct it, or add the port to guids.csv"
            self.troubles.append(Trouble(("partitions_file",), message, help, False, one.name))

    def _default_sl(self) -> int:
        """Of the class that takes the rest; 0 without one."""
        levels = ib_classes(self.wishes)
        rest = (one.sl for one in levels.values() if models.REST in one.dscp)
        return next(rest, 0) or 0

    def _said(self, one: models.Partition, index: int, ends: tuple[End, ...]) -> tuple[str, ...]:
        """Every member once, in the order in which OpenSM shall read them."""
        said: dict[str, tuple[str, str]] = {}
        found = False
        for kind, texts in one.members.items():
            for position, text in enumerate(texts):
                found = True
                path: tuple[str | int, ...] = ("partitions", index, "members", kind, position)
                for who in self._who(text, path, ends):
                    before, by = said.setdefault(who, (kind, text))
                    if before != kind:
                        name = self.known.get(who, who)
                        message = f"{name} is {before} member by {by!r} and {kind} member by {text!r}"
                        self._complain(path, message, "name every port in one kind (OpenSM takes the last)")
        if not found and one.pkey != DEFAULT_PKEY:
            self._complain(("partitions", index, "members"), "it has no members", "add members, or remove it")
        for position, group in enumerate(one.groups):
            if not belongs(group, one.pkey):
                path = ("partitions", index, "groups", position)
                self._complain(
                    path, f"group {group} belongs to another P_Key", "write it with 0 in place of the P_Key"
                )
        return tuple(sorted((f"{who}={kind}" for who, (kind, _) in said.items()), key=member_order))

    def _complain(
        self, path: tuple[str | int, ...], message: str, help: str, *, certain: bool = True
    ) -> None:
        """Once for each place: a selector may fit thousands of ports."""
        if all(one.path != path for one in self.troubles):
            self.troubles.append(Trouble(path, message, help, certain))

    @cached_property
    def known(self) -> Mapping[str, End]:
        """GUID -> its port, of the whole inventory."""
        return {guid: end for end, guid in self.inventory.guids.items()}

    def _who(self, text: str, path: tuple[str | int, ...], ends: tuple[End, ...]) -> Iterable[str]:
        if text in MEMBER_WORDS:
            return (text,)
        if guid := normal(text):
            if guid not in self.known:
                near = did_you_mean(guid, self.known)
                help = f"did you mean {near} of {self.known[near]}?" if near else "add it to guids.csv"
                self._complain(path, f"no port of the inventory has GUID {guid}", help, certain=False)
            elif self.known[guid] not in ends:
                message = f"{guid} is {self.known[guid]}, which is no port of network {self.network}"
                self._complain(path, message, "name ports of this network only")
            return (guid,)
        if re.match(r"0[xX]|([0-9a-fA-F]{2}:)", text):
            message = f"{text} is not a GUID"
            self._complain(path, message, "write 16 hexadecimal digits, such as 0x0002c90300a1b2c3")
            return ()
        if not re.search(r"[^,\s]", text):  # to a selector that is everything
            self._complain(path, "a member without text", "name the members; ALL means every port")
            return ()
        try:
            selector = parse(text)
        except ValueError as error:
            help = "write a selector (role=host), a port GUID, or " + ", ".join(MEMBER_WORDS)
            self._complain(path, str(error), getattr(error, "help", "") or help)
            return ()
        found = []
        for end in ends:
            node = self._node(end)
            if node.is_host and selector.node(node) and selector.port(node.spec.ports[end.port]):
                found.append(end)
        if not found:
            self._complain(path, f"{text} selects no host port of this network", "correct the selector")
        without = [end for end in found if end not in self.inventory.guids]
        if without:
            names = ", ".join(map(str, without[:4])) + (
                f" and {len(without) - 4} more" if without[4:] else ""
            )
            self._complain(path, f"no GUID is known of {names}", "add it to guids.csv (node,port,guid)")
        return tuple(self.inventory.guids[end] for end in found if end in self.inventory.guids)

    # -- managers

    def _managers(
        self, manager: SubnetManager, partitions: Partitions, ends: tuple[End, ...], guids: Mapping[End, str]
    ) -> dict[str, SmState]:
        where = {end.node: end for end in self._sm_ends(manager, ends)}
        master = self._master(manager, where, guids)
        lanes = self._lanes(manager)
        high, low = arbitration(self.wishes)
        found = {}
        for one in manager.nodes:
            end = where.get(one.node)
            if end is None:
                continue  # a rule tells that this node has no port in the network
            role: Maybe[str] = UNMANAGED
            if master and self.inventory.nodes[one.node].spec.state != "retired":
                role = "master" if one.node == master else "standby"
            found[one.node] = SmState(
                running=True,
                role=role,
                loaded=True,
                lids=True,
                guid=guids.get(end, UNMANAGED),
                priority=one.priority,
                lmc=UNMANAGED if manager.lmc is None else manager.lmc,
                routing=manager.routing or UNMANAGED,
                lfts=manager.lfts_file or UNMANAGED,
                both=True if _both(partitions) else UNMANAGED,
                vls=lanes,
                sl_to_vl=sl_to_vl(self.wishes),
                high_limit=manager.high_limit if lanes is not UNMANAGED else UNMANAGED,
                high=high,
                low=low,
                levels=self._levels(partitions) if lanes is not UNMANAGED else UNMANAGED,
                partitions=partitions,
            )
        return found

    def _master(self, manager: SubnetManager, where: Mapping[str, End], guids: Mapping[End, str]) -> str:
        """The node whose manager all others leave the subnet to; "" where that cannot be told.

        Priority decides, then the lower GUID (osm_helper.h, osm_sm_is_greater_than).
        """
        here = [
            one
            for one in manager.nodes
            if one.node in where and self.inventory.nodes[one.node].spec.state != "retired"
        ]
        best = max((one.priority for one in here), default=0)
        tied = [one.node for one in here if one.priority == best]
        if not tied or (len(tied) > 1 and any(where[name] not in guids for name in tied)):
            return ""
        first = min(tied, key=lambda name: guids.get(where[name], ""))
        # One that is being worked on may run or not.
        return "" if self.inventory.nodes[first].spec.state == "maintenance" else first

    def _lanes(self, manager: SubnetManager) -> Maybe[int]:
        used = [vl for _, vl in lanes_of(self.wishes)]
        if not used:
            return UNMANAGED
        return manager.vls or next(count for count in _LANES if count > max(used))

    def _levels(self, partitions: Partitions) -> tuple[str, ...]:
        """Partitions with a service level of their own, then the rest."""
        rest = self._default_sl()
        own = [one for one in partitions.rows if one.sl != rest]
        # No line "ipoib, pkey": OpenSM drops the whole policy where such a partition has less than two full
        # members (run), and `any` holds IPoIB's paths too.
        return (*(f"any, pkey 0x{one.pkey:04x}: {one.sl}" for one in own), f"default: {rest}")


def with_ipoib(port: IbPort, ipoib: Ipoib | None, partitions: Partitions) -> IbPort:
    """The port with its host's own wishes for IPoIB."""
    if ipoib is None:
        return port
    groups = {one.pkey for one in partitions.rows if one.ipoib} - {DEFAULT_PKEY}
    keys = port.pkeys if isinstance(port.pkeys, tuple) else ()
    children = {key | FULL for key in keys if key & DEFAULT_PKEY in groups}
    return replace(
        port,
        mode=ipoib.mode or UNMANAGED,
        children=tuple(sorted(children)) if ipoib.interfaces else UNMANAGED,
    )


def _both(partitions: Partitions) -> bool:
    return any(member.endswith("=both") for one in partitions.rows for member in one.members)


def member_order(member: str) -> tuple[int, str]:
    """Groups of ports first, single ports next, SELF last: OpenSM lets a later word overwrite."""
    who = member.partition("=")[0]
    return (2 if who == "SELF" else 0 if who in MEMBER_WORDS else 1), member


def kind_in(one: Partition, guid: str, own: Collection[str]) -> str:
    """full, limited, both, or "" for a port that is no member; what was said last counts.

    Whatever the rules say, OpenSM first makes every port a limited member of the default partition and its
    own port a full one (osm_prtn.c, prtn_make_default).
    """
    mine = guid in own
    words = {"ALL", "ALL_CAS", guid, *(("SELF",) if mine else ())}
    kind = "" if one.pkey != DEFAULT_PKEY else "full" if mine else "limited"
    for member in one.members:
        who, _, said = member.partition("=")
        kind = said if who in words else kind
    return kind


_NO_RULE: Final = Partition("Default", DEFAULT_PKEY)
_NO_FILE: Final = Partition("Default", DEFAULT_PKEY, members=("ALL=full",))


def port_keys(partitions: Partitions, guid: str, own: Collection[str]) -> tuple[int, ...]:
    """The P_Key table of a host port, sorted."""
    rows = partitions.rows or (_NO_FILE,)
    if all(one.pkey != DEFAULT_PKEY for one in rows):
        rows = (_NO_RULE, *rows)
    keys: list[int] = []
    for one in rows:
        kind = kind_in(one, guid, own)
        if kind in ("full", "both"):
            keys.append(one.pkey | FULL)
        if kind in ("limited", "both"):
            keys.append(one.pkey)
    return tuple(sorted(keys))


def is_broadcast(mgid: str) -> bool:
    """True for the IPv4 broadcast group of IPoIB, of any partition and scope (RFC 4391, section 4)."""
    words = ipaddress.IPv6Address(mgid).exploded.split(":")
    return words[0].startswith("ff1") and words[1] == "401b" and words[3:] == ["0000"] * 3 + ["ffff"] * 2


def belongs(mgid: str, pkey: int) -> bool:
    """True when OpenSM makes this group in that partition: IP groups hold 0 or the full P_Key of it
    (osm_prtn_config.c, ip_mgroup_pkey_ok)."""
    words = ipaddress.IPv6Address(mgid).exploded.split(":")
    return words[1] not in ("401b", "601b") or int(words[2], 16) in (0, pkey | FULL) or is_broadcast(mgid)


# -- service levels and lanes


def ib_classes(wishes: Wishes) -> dict[str, TrafficClass]:
    """The classes that an InfiniBand network has: those with a service level, in order of it."""
    found = {name: one for name, one in wishes.classes.items() if one.sl is not None}
    return dict(sorted(found.items(), key=lambda item: item[1].sl or 0))


def lanes_of(wishes: Wishes) -> tuple[tuple[TrafficClass, int], ...]:
    """(class, its virtual lane); lanes that nobody wrote are counted from 0."""
    return tuple(
        (one, position if one.vl is None else one.vl)
        for position, one in enumerate(ib_classes(wishes).values())
    )


def sl_to_vl(wishes: Wishes) -> Maybe[tuple[int, ...]]:
    """16 lanes; a service level without a class uses the lowest one's. UNMANAGED without classes."""
    rows = lanes_of(wishes)
    if not rows:
        return UNMANAGED
    table = [rows[0][1]] * 16
    for one, vl in rows:
        table[one.sl or 0] = vl
    return tuple(table)


_WEIGHTS: Final = (64, 128, 192)
"""Weights that keep whole 4 KB packets together (64-byte units, at most 255)."""


def arbitration(wishes: Wishes) -> tuple[Maybe[tuple[str, ...]], Maybe[tuple[str, ...]]]:
    """(high, low) tables: strict classes are high; the others share by weight. UNMANAGED without classes."""
    rows = lanes_of(wishes)
    if not rows:
        return UNMANAGED, UNMANAGED
    strict = sorted({vl for one, vl in rows if one.scheduler == "strict"})
    shares = _shares([(one, vl) for one, vl in rows if one.scheduler != "strict"])
    high = [f"{vl}:{_WEIGHTS[0]}" for vl in strict]
    # A lane that is in no table never sends: low holds every lane, with the least weight.
    bare = [row for vl, row in zip(strict, high, strict=True) if vl not in shares]
    low = []
    for vl, left in _units(shares, _TABLE - len(bare)).items():
        while left > 0:
            step = min(left, len(_WEIGHTS))
            low.append(f"{vl}:{_WEIGHTS[step - 1]}")
            left -= step
    return tuple(high) or (f"{rows[0][1]}:0",), tuple(low + bare)


def _shares(rows: Sequence[tuple[TrafficClass, int]]) -> dict[int, float]:
    """Lane -> percent of its classes, in order of the lanes.

    Classes without `bandwidth` have what is left, by `weight`. Nobody has nothing: a lane without weight
    never sends.
    """
    left = max(100 - sum(one.bandwidth.value for one, _ in rows if one.bandwidth is not None), _LEAST)
    weights = sum(one.weight or 1 for one, _ in rows if one.bandwidth is None)
    found: dict[int, float] = {}
    for one, vl in sorted(rows, key=lambda row: row[1]):
        part = left * (one.weight or 1) / weights if one.bandwidth is None else one.bandwidth.value
        found[vl] = found.get(vl, 0) + max(float(part), _LEAST)
    return found


_LEAST: Final = 1.0
"""Percent that a class has at least."""


def _units(shares: Mapping[int, float], room: int) -> dict[int, int]:
    """Percent by lane as small whole numbers in nearly the same proportion (60 and 40 -> 3 and 2).

    A port cuts a table that is longer than its own, and the lanes at its end never send (run): shares that
    are too far apart for the room come as near as it allows.
    """
    if not shares:
        return {}
    least, asked = min(shares.values()), sum(shares.values())
    room = max(room, len(shares))
    totals = range(room * len(_WEIGHTS), 0, -1)
    best: tuple[float, dict[int, int]] | None = None
    for scale in (*range(1, 7), *(total * least / asked for total in totals)):
        if scale < 1 and best is not None:
            break
        units = {vl: max(1, round(share / least * scale)) for vl, share in shares.items()}
        if sum(-(-one // len(_WEIGHTS)) for one in units.values()) > room:
            continue
        total = sum(units.values())
        error = max(abs(units[vl] / total - share / asked) for vl, share in shares.items())
        if best is None or error < best[0] - 0.005:
            best = error, units
    assert best is not None  # one unit each has room
    return best[1]


_TABLE: Final = 8
"""Entries of an arbitration table that every port has (smpquery vlarb shows LowCap and HighCap)."""
