"""Linux: the MTU of fabric ports from what was seen to what is wanted, live and for the next boot."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _linux_links as links
from rdma_fabric.platforms import _linux_mtu as mtu
from rdma_fabric.platforms._contract import Call, Change, Disturbance, Disturbs, Put, Step
from rdma_fabric.platforms._linux_links import Link
from rdma_fabric.platforms._linux_managers import Persistence
from rdma_fabric.platforms._linux_mtu import Row
from rdma_fabric.platforms._linux_names import PATHS
from rdma_fabric.platforms._linux_write import Context
from rdma_fabric.state import Absent, Difference, Mtu, NodeState, Observation, PortSettings
from rdma_fabric.templating import render_lines

_SOURCE: Final = "experience: drivers reopen their rings when the MTU changes"
_FOLLOWS: Final = ("bond",)
"""Roles of a member whose master sets its MTU."""
_FREE: Final = ("vrf",)
"""Roles that leave the MTU alone."""
RELOAD_NETWORKMANAGER: Final = Call(
    ("nmcli", "general", "reload", "conf"), status=(0, 1, 2, 8, 127), late=True
)
"""It reads NetworkManager.conf anew and touches no connection. `systemctl reload` would also write
/etc/resolv.conf anew, over what somebody put there by hand (seen with NetworkManager 1.42, whose unit calls
Reload with all flags). Exit codes of nmcli(1): 1 unknown, 2 not known to it (before 1.22), 8 it does not
run; then the file counts from NetworkManager's next start on, as it does without nmcli (127)."""


def mtus(wanted: NodeState, hw: Hardware) -> tuple[tuple[str, int], ...]:
    """(port, bytes) of every port whose MTU is ours; members of a bond have no line of their own."""
    members = members_of(wanted, hw)
    return tuple(
        (port.name, port.settings.mtu.ip)
        for port in wanted.ports
        if hw.port(port.name) is not None
        and port.name not in members
        and not isinstance(port.settings.mtu.ip, Absent)
    )


def members_of(wanted: NodeState, hw: Hardware) -> dict[str, str]:
    """Member -> bond, for bonds whose MTU is ours."""
    found = {}
    for port in hw.ports:
        state = wanted.port(port.name)
        if port.kind == "bond" and state is not None and not isinstance(state.settings.mtu.ip, Absent):
            found.update(dict.fromkeys(port.members, port.name))
    return found


def netplan_rows(
    rows: Iterable[tuple[str, int]], plans: Mapping[str, Persistence], stay: Iterable[Row] = ()
) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """Netplan's kind ("ethernets") -> its (id, bytes), sorted; one definition may serve several ports."""
    found: dict[str, dict[str, int]] = {}
    for row in stay:
        if row.writer == "netplan":
            found.setdefault(row.place.partition("/")[0], {})[row.name] = row.mtu
    for port, value in rows:
        kind, _, ident = plans[port].place.partition("/")
        found.setdefault(kind, {})[ident] = value
    return tuple((kind, tuple(sorted(pairs.items()))) for kind, pairs in sorted(found.items()))


def unit_rows(rows: Iterable[tuple[str, int]], hw: Hardware) -> tuple[tuple[str, int, str], ...]:
    """(port, bytes, port of ours below it) for the unit's file."""
    listed = tuple(rows)
    names = dict(listed)
    below = {port.name: port.parent if port.parent in names else "" for port in hw.ports}
    return tuple((name, value, below.get(name, "")) for name, value in listed)


def depth(port: PortHardware | None, hw: Hardware) -> int:
    """How many ports of ours lie below: a VLAN on a bond has one."""
    seen: set[str] = set()
    while port is not None and port.parent and port.parent not in seen:
        seen.add(port.parent)
        port = hw.port(port.parent)
    return len(seen)


@dataclass
class MtuChange:
    """The MTU of every fabric port: live, and in the file of whoever keeps it."""

    seen: Observation
    wanted: NodeState
    hw: Hardware
    plans: dict[str, Persistence] = field(init=False)
    links: dict[str, Link] = field(init=False)
    members: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        facts = dict(self.seen.facts)
        names = [port.name for port in self.hw.ports]
        self.plans = {name: Persistence.of(facts.get(f"mtu {name}", "?")) for name in names}
        self.links = {name: Link.of(facts.get(f"{links.NETDEV}{name}", "")) for name in names}
        self.members = members_of(self.wanted, self.hw)

    def build(self) -> Change:
        """Files first, then the live values."""
        mask = NodeState(
            ports=tuple(
                replace(port, settings=PortSettings(Mtu(ip=port.settings.mtu.ip)))
                for port in host.only(self.wanted, "mtu", self.plans).ports
            )
        )
        live = host.differing(mask, self.seen.running)
        kept = host.differing(mask, self.seen.stored)
        blocked, reasons = self._blocked(live, kept)
        live = tuple(item for item in live if item.path not in blocked)
        kept = tuple(item for item in kept if item.path not in blocked)
        change = self._change(live, kept, {_port(item) for item in blocked.values()})
        return replace(change, blocked=tuple(blocked.values()), reasons=tuple(sorted(reasons.items())))

    # -- what is left alone

    def _blocked(
        self, live: tuple[Difference, ...], kept: tuple[Difference, ...]
    ) -> tuple[dict[str, Difference], dict[str, str]]:
        """(differences that are not written, why); a port is written live and stored, or not at all."""
        blocked = {item.path: item for item in live if item.unknown}
        reasons: dict[str, str] = {}
        clashes = mtu.clash(
            (self.plans[name].place, value)
            for name, value in mtus(self.wanted, self.hw)
            if self.plans[name].writer in ("netplan", "networkd")
        )
        for item in (*live, *kept):
            name = _port(item)
            why = self._why_not(name, int(item.wanted))
            if not why and item in kept:
                why = self.plans[name].why_not
                if not why and self.plans[name].place in clashes:
                    why = f"{self.plans[name].place} serves ports with different wishes"
            if why or item.unknown:
                blocked.setdefault(item.path, item)
            if why and item.path not in reasons:
                reasons[item.path] = why
        self._with_others(blocked, reasons, (*live, *kept))
        return blocked, {path: why for path, why in reasons.items() if path in blocked}

    def _why_not(self, name: str, value: int) -> str:
        """Why the port's MTU cannot become that; "" when it can."""
        one = self.links[name]
        carried = links.carries_us(name, dict(self.seen.facts).get(links.SESSION, ""), self.hw)
        if carried:
            return carried
        if one.kind in ("bridge", "openvswitch"):
            return f"it is a {one.kind}, which is never touched"
        if one.largest and value > one.largest:
            return f"its driver takes at most {one.largest}: set mtu_max in the node's data"
        if value < one.smallest:
            return f"its driver takes at least {one.smallest}"
        return self._above(name, one) or self._below(name, one, value)

    def _above(self, name: str, one: Link) -> str:
        """What the port belongs to decides its MTU, or would change with it."""
        if not one.master or one.role in _FREE:
            return ""
        if one.role in _FOLLOWS:
            if self.members.get(name) == one.master:
                return ""
            return f"it is a member of {one.master}, whose MTU counts: list it there as a member, kind: bond"
        return (
            f"it is a port of {one.role or 'a device'} {one.master}, which would follow and is never touched"
        )

    def _below(self, name: str, one: Link, value: int) -> str:
        """A VLAN or VF is at most as large as what it lies on, which may not be ours."""
        port = self.hw.port(name)
        below = one.below or (port.parent if port is not None else "")
        ours = dict(mtus(self.wanted, self.hw))
        if not below or below in ours or below in self.members or value <= one.below_mtu or not one.below_mtu:
            return ""
        return (
            f"it lies on {below}, which has {one.below_mtu} and is not ours: put it into the inventory first"
        )

    def _with_others(
        self, blocked: dict[str, Difference], reasons: dict[str, str], items: Iterable[Difference]
    ) -> None:
        """A member goes with its bond, and nothing outgrows what it lies on."""
        ports = {_port(item): item for item in items}
        pairs = [pair for row in self.members.items() for pair in (row, row[::-1])]
        pairs += [
            (port.parent, port.name)
            for port in sorted(self.hw.ports, key=lambda port: depth(port, self.hw))
            if port.name in ports and int(ports[port.name].wanted) > self.links[port.name].below_mtu
        ]
        told = -1
        while told != len(blocked):  # a bond that stays keeps its other members, and what lies on it
            told = len(blocked)
            for one, other in pairs:
                item, why = ports.get(other), reasons.get(f"ports.{one}.mtu.ip", "")
                if item is not None and f"ports.{one}.mtu.ip" in blocked and item.path not in blocked:
                    blocked[item.path] = item
                    reasons[item.path] = f"{one} is left alone" + (f": {why}" if why else "")

    # -- what is written

    def _change(
        self, live: tuple[Difference, ...], kept: tuple[Difference, ...], blocked: set[str]
    ) -> Change:
        # A port whose MTU cannot be kept is not changed now either: it would come back wrong.
        steps = self._files({_port(item) for item in (*live, *kept)}, blocked)
        data = [step for step in steps if isinstance(step, Put) and step.path.startswith("/etc/")]
        rows = tuple(row for step in data if "/system/" not in step.path for row in host.file_lines(step))
        moves = self._moves(live)
        set_mtu = tuple((_port(item), int(item.wanted)) for item in moves)
        lines = render_lines("linux/commands.j2", Context(set_mtu=set_mtu))
        calls = tuple(host.call(line, _has_mtu(*row)) for line, row in zip(lines, set_mtu, strict=True))
        undo: list[Step] = [
            Call(("ip", "link", "set", "dev", _port(item), "mtu", str(item.found)))
            for item in reversed(moves)
        ]
        if RELOAD_NETWORKMANAGER in steps:
            undo.append(RELOAD_NETWORKMANAGER)
        ports = tuple(_port(item) for item in live)
        return Change(
            differences=host.merged(live, kept),
            lines=(*rows, *lines),
            commit=(*steps, *calls),
            undo=tuple(undo),
            disturbs=(Disturbance(Disturbs.LOSS, ports, "the MTU changes", _SOURCE),) if ports else (),
        )

    def _moves(self, live: Iterable[Difference]) -> tuple[Difference, ...]:
        """One by one: what shrinks from the top down, then what grows from the bottom up.

        The kernel refuses a VLAN above its parent. Members whose bond moves are moved by it.
        """
        items = tuple(live)
        bonds = {_port(item) for item in items}
        single = [item for item in items if self.members.get(_port(item)) not in bonds]
        level = {name: depth(self.hw.port(name), self.hw) for name in bonds}
        down = [item for item in single if int(item.wanted) < int(item.found)]
        up = [item for item in single if item not in down]
        down.sort(key=lambda item: -level[_port(item)])
        up.sort(key=lambda item: level[_port(item)])
        return (*down, *up)

    def _files(self, changed: set[str], blocked: set[str]) -> list[Put | Call]:
        """The file of every manager that keeps a changed port, with all ports it keeps."""
        steps: list[Put | Call] = []
        rows = [(name, value) for name, value in mtus(self.wanted, self.hw) if name not in blocked]
        by = {
            writer: tuple((name, value) for name, value in rows if self.plans[name].writer == writer)
            for writer in ("netplan", "networkd", "networkmanager", "unit")
        }
        stay = self._stay({name for name, _ in rows})
        used = {self.plans[self.members.get(name, name)].writer for name in changed}
        if "netplan" in used:
            context = Context(netplan=netplan_rows(by["netplan"], self.plans, stay))
            steps.append(host.put(PATHS.netplan, "linux/netplan.yaml.j2", context, 0o600))
            steps.append(Call(("netplan", "generate")))
        if "networkd" in used:
            places = sorted({(self.plans[name].place, value) for name, value in by["networkd"]})
            steps += [networkd_file(place, value) for place, value in places]
        if "networkmanager" in used:
            left = tuple((row.name, row.mtu) for row in stay if row.writer == "networkmanager")
            context = Context(networkmanager=(*by["networkmanager"], *left))
            steps.append(host.put(PATHS.networkmanager, "linux/networkmanager.conf.j2", context))
            steps.append(RELOAD_NETWORKMANAGER)
        if used & {"unit", "networkd"}:
            # networkd reads its files when it starts: until then our unit serves a reloaded driver too.
            mine = [row for row in rows if self.plans[row[0]].writer in ("unit", "networkd")]
            steps += self._unit(mine, [row for row in stay if row.writer == "unit"])
        return steps

    def _stay(self, written: Container[str]) -> tuple[Row, ...]:
        """What our files hold of ports that are left alone, or that nobody asks for any more."""
        places = {self.plans[name].place for name in self.plans if name in written}
        return tuple(
            row
            for row in mtu.rows_of(dict(self.seen.facts).get(mtu.OWN, ""))
            if row.name not in written and row.name not in self.members and row.place not in places
        )

    def _unit(self, rows: Iterable[tuple[str, int]], stay: Iterable[Row]) -> list[Put | Call]:
        wanted = unit_rows(rows, self.hw)
        context = Context(unit=(*wanted, *((row.name, row.mtu, row.below) for row in stay)))
        return [
            host.put(PATHS.mtu_program, "linux/fabric-mtu.sh.j2", context, 0o755),
            host.put(PATHS.mtu_unit, "linux/fabric-mtu@.service.j2", context),
            host.put(PATHS.mtu, "linux/mtu.conf.j2", context),
            host.RELOAD_UNITS,
            *(host.enable("fabric-mtu", name)[1] for name, _, _ in wanted),
        ]


def activation(wanted: NodeState, hw: Hardware) -> tuple[Call, ...]:
    """The live MTU of every port that is ours, from the bottom up; each call tests for itself."""
    rows = sorted(mtus(wanted, hw), key=lambda row: depth(hw.port(row[0]), hw))
    lines = render_lines("linux/commands.j2", Context(set_mtu=tuple(rows)))
    return tuple(host.call(line, _has_mtu(*row)) for line, row in zip(lines, rows, strict=True))


def networkd_file(place: str, value: int) -> Put:
    """Our drop-in for one .network file."""
    return host.put(mtu.drop_in(place), "linux/networkd.conf.j2", Context(mtu=value))


def _port(item: Difference) -> str:
    return item.path.removeprefix("ports.").removesuffix(".mtu.ip")


def _has_mtu(port: str, value: int) -> tuple[str, ...]:
    """A read-only test that exits 0 when the port has that MTU."""
    return ("sh", "-c", 'ip -o link show dev "$1" | grep -q " mtu $2 "', "sh", port, str(value))
