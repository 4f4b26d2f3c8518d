"""Linux: what a read-back will show of a wish, and what a host cannot do.

Sources: Linux net/8021q/vlan_dev.c (vlan_dev_change_mtu refuses more than the parent has),
drivers/net/bonding/bond_main.c (bond_change_mtu sets every member), `ip -d link` (maxmtu).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _linux_boot as boot
from rdma_fabric.platforms._contract import Fault, Realized
from rdma_fabric.platforms._linux_job import meant
from rdma_fabric.platforms._linux_names import UNSET
from rdma_fabric.platforms._shared import with_ports
from rdma_fabric.state import (
    MTU_MAX,
    NOT_APPLICABLE,
    UNMANAGED,
    Absent,
    Maybe,
    NodeState,
    SystemState,
)

_LARGEST: Final = {"mlx5": 9978, "bnxt": 9500, "irdma": 9702}
"""Netdev ceilings by NIC: mlx5_core takes frames of 10000 bytes less its 22 bytes of headers
(`ip -d link` shows maxmtu 9978; experience); BNXT_MAX_MTU of Linux 6.1 bnxt.h;
ICE_MAX_MTU of Linux 6.1 ice.h: frames of 9728 bytes less 26 of Ethernet, FCS and two VLAN tags."""
_LIKELY: Final = 9000
"""What "max" means on a NIC whose ceiling nobody told us; a larger number is taken as given."""
_KERNEL_LARGEST: Final = 65535
"""veth: 68..65535 (tried)."""

Pairs = tuple[tuple[str, Maybe[str]], ...]


def realize(wanted: NodeState, hw: Hardware) -> Realized:
    """The state that a read-back will show, and what cannot be had."""
    faults: list[Fault] = []
    mtus = _Mtus(wanted, hw, faults).build()
    settings = {
        port.name: replace(port.settings, mtu=replace(port.settings.mtu, ip=mtus[port.name]))
        for port in wanted.ports
        if port.name in mtus and mtus[port.name] != port.settings.mtu.ip
    }
    system = _system(wanted.system, faults)
    state = with_ports(wanted, settings) if settings else wanted
    return Realized(state if system == wanted.system else replace(state, system=system), tuple(faults))


# ---------------------------------------------------------------- MTU


class _Mtus:
    """The MTU of every port: below its ceiling, a member as its bond, nothing above what it lies on."""

    def __init__(self, wanted: NodeState, hw: Hardware, faults: list[Fault]) -> None:
        self.hw, self.faults = hw, faults
        self.wishes = {port.name: port.settings.mtu.ip for port in wanted.ports if hw.port(port.name)}
        self.found: dict[str, Maybe[int]] = {}

    def build(self) -> dict[str, Maybe[int]]:
        """Bytes by port; absences stay."""
        for port in self.hw.ports:
            if port.name in self.wishes:
                self._port(port)
        for bond in self.hw.ports:
            if bond.kind == "bond" and isinstance(self.found.get(bond.name), int):
                self._members(bond)
        return self.found

    def _port(self, port: PortHardware) -> None:
        """What lies below goes first; a circle of parents ends at its first port."""
        if port.name in self.found:
            return
        self.found[port.name] = wish = self.wishes[port.name]
        if isinstance(wish, Absent):
            return
        ceiling, why = self._ceiling(port)
        if wish == MTU_MAX:
            self.found[port.name] = ceiling or _LIKELY
        elif wish > (ceiling or _KERNEL_LARGEST):
            self._fault(port.name, wish, ceiling or _KERNEL_LARGEST, why)

    def _ceiling(self, port: PortHardware) -> tuple[int, str]:
        """(bytes, why); 0 where nobody knows one."""
        below = self.hw.port(port.parent) if port.parent else None
        if port.kind == "vlan" and below is not None:
            own = self._nic(below)
        elif port.kind == "bond":
            own = min(
                filter(None, (self._nic(self._at(name)) for name in port.members)), default=self._nic(port)
            )
        else:
            own = self._nic(port)
        largest, why = own, f"its NIC takes at most {own or _KERNEL_LARGEST}"
        if below is not None and below.name in self.wishes:
            self._port(below)
            parent = self.found[below.name]
            if isinstance(parent, int) and (not largest or parent < largest):
                return parent, f"it lies on {below.name}, which has {parent}"
        return largest, why

    def _at(self, name: str) -> PortHardware:
        return self.hw.port(name) or PortHardware(name)

    def _nic(self, port: PortHardware) -> int:
        return int(self.hw.option("mtu_max") or 0) or _LARGEST.get(port.nic, 0)

    def _members(self, bond: PortHardware) -> None:
        value = self.found[bond.name]
        for name in bond.members:
            wish = self.found.get(name)
            if isinstance(wish, int) and isinstance(value, int) and wish != value:
                self._fault(name, wish, value, f"it is a member of {bond.name}, which gives it its own MTU")

    def _fault(self, port: str, wish: int, used: int, why: str) -> None:
        self.found[port] = used
        self.faults.append(Fault(Severity.NOTE, port, "mtu.ip", str(wish), str(used), why))


# ---------------------------------------------------------------- the node


def _system(wanted: SystemState, faults: list[Fault]) -> SystemState:
    options = {_option(name): _text(value, boot.parameter) for name, value in wanted.module_options}
    sysctl = {boot.dotted(key): _text(value, boot.plain) for key, value in wanted.sysctl}
    environment = tuple((name, _text(one, partial(meant, name))) for name, one in wanted.environment)
    return replace(
        wanted,
        sysctl=tuple(sorted(sysctl.items())),
        modules=_modules(wanted, faults),
        module_options=tuple(sorted(options.items())),
        limits=_limits(wanted.limits, faults),
        environment=environment,
    )


def _text(value: Maybe[str], spell: Callable[[str], str]) -> Maybe[str]:
    return value if isinstance(value, Absent) else spell(value)


def _option(name: str) -> str:
    module, _, key = name.partition(".")
    return f"{boot.under(module)}.{key}"


def _modules(wanted: SystemState, faults: list[Fault]) -> tuple[tuple[str, Maybe[bool]], ...]:
    found: dict[str, Maybe[bool]] = {}
    for name, value in wanted.modules:
        if value is False:
            faults.append(
                Fault(
                    Severity.NOTE,
                    "",
                    f"modules.{name}",
                    "not loaded",
                    "",
                    "a running host does not unload modules",
                    "reboot the host once the module is no longer asked for",
                )
            )
        found[boot.under(name)] = UNMANAGED if value is False else value
    return tuple(sorted(found.items()))


def _limits(wanted: Pairs, faults: list[Fault]) -> Pairs:
    """Three words mean no limit; a service knows some limits only, and numbers."""
    found: dict[str, Maybe[str]] = {}
    for name, value in wanted:
        unit, _, item = name.rpartition(".")
        if isinstance(value, Absent) or value == UNSET:
            found[name] = value
            continue
        found[name] = plain = "/".join(dict.fromkeys(map(boot.limit, value.split("/"))))
        reason = ""
        if unit and item not in boot.SERVICE_LIMITS:
            reason = f"limits of services are {', '.join(boot.SERVICE_LIMITS)}"
        elif unit and not all(side == boot.UNLIMITED or side.isdigit() for side in plain.split("/")):
            reason = "a limit of a service is a number or unlimited"
        if reason:
            found[name] = NOT_APPLICABLE
            faults.append(
                Fault(Severity.ERROR, "", f"limits.{name}", value, "", reason, "correct hosts.limits")
            )
    return tuple(sorted(found.items()))
