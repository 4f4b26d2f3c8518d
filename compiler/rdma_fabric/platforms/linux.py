"""Linux as the base of a host: sysctl, modules, limits, job environment, and the MTU of fabric ports.

Facts: kernel documentation, systemd, netplan and NetworkManager manuals, and what was tried on a
6.18 kernel with Debian 12. NIC settings belong to the nic_* parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _linux_find as find
from rdma_fabric.platforms._contract import (
    Artifact,
    Change,
    Dialect,
    Fault,
    Realized,
    Traits,
)
from rdma_fabric.platforms._linux_mtu import Persistence
from rdma_fabric.platforms._linux_read import PATHS, normal, read, sysctl_keys
from rdma_fabric.platforms._linux_write import (
    Context,
    MtuChange,
    SystemChange,
    files_context,
    mtus,
    netplan_rows,
)
from rdma_fabric.platforms._shared import with_ports
from rdma_fabric.state import (
    MTU_MAX,
    UNMANAGED,
    Absent,
    Maybe,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    SystemState,
)

_LARGEST: Final = {"mlx5": 9978}
"""Netdev ceilings by NIC: mlx5_core takes frames of 10000 bytes less its 22 bytes of headers
(`ip -d link` shows maxmtu 9978; experience)."""
_LIKELY: Final = 9000
"""What "max" means on a NIC whose ceiling nobody told us; a larger number is taken as given."""
_KERNEL_LARGEST: Final = 65535
"""veth: 68..65535 (tried)."""


class Linux:
    """The base part of every host."""

    name = "linux"
    part: Literal["base"] = "base"
    channel: Literal["files"] = "files"
    dialect: Dialect = host.DIALECT
    traits = Traits(
        title="Linux host",
        introduction=find.INTRODUCTION,
        evidence="tried on a real kernel: sysctl, MTU, netplan, systemd units; NetworkManager by its manual",
        tested="real Linux sandboxes",
        cannot=(
            "unload a module",
            "reload a driver: module options count after a reboot, and the node is pending-reset until then",
            "change an MTU that a foreign file of the network manager sets",
            "limits of systemd services (limits.d reaches logins only)",
        ),
        transports=("rocev2", "infiniband"),
    )

    # ------------------------------------------------------------ realize

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """MTU ceilings, normal spelling of sysctls; modules are only ever loaded."""
        faults: list[Fault] = []
        settings: dict[str, PortSettings] = {}
        for port in wanted.ports:
            known = hw.port(port.name)
            if known is not None:
                one = _realize_mtu(port.settings.mtu, known, hw, faults)
                if one != port.settings.mtu:
                    settings[port.name] = replace(port.settings, mtu=one)
        system = _realize_system(wanted.system, faults)
        state = with_ports(wanted, settings) if settings else wanted
        return Realized(state if system == wanted.system else replace(state, system=system), tuple(faults))

    # ------------------------------------------------------------ read

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """Two shell scripts: the node, and its ports."""
        context = Context(names=" ".join(f'"{port.name}"' for port in hw.ports), sysctl_keys=sysctl_keys(hw))
        return (
            host.question("linux/observe_system.sh.j2", context),
            host.question("linux/observe_ports.sh.j2", context),
        )

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state; running is operational."""
        system, ports = self.questions(hw)
        return read(answers.get(system, ""), answers.get(ports, ""), hw)

    # ------------------------------------------------------------ write

    def context(self, wanted: NodeState, hw: Hardware) -> Context:
        """All settings of a realized state; MTUs by the node's mtu_manager, a unit of ours without one."""
        context = files_context(wanted.system)
        rows = mtus(wanted, hw)
        manager = hw.option("mtu_manager", "none")
        if manager == "netplan":
            kinds = {
                port.name: {"bond": "bonds", "vlan": "vlans"}.get(port.kind, "ethernets") for port in hw.ports
            }
            places = {name: Persistence("netplan", "netplan", f"{kinds[name]}/{name}") for name, _ in rows}
            return replace(context, netplan=netplan_rows(rows, places))
        if manager == "networkmanager":
            return replace(context, networkmanager=rows)
        return replace(context, unit=rows)

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """Files with node-wide settings, then the one that keeps the MTUs."""
        context = self.context(wanted, hw)
        found = [
            Artifact(f"linux/{template}", path.removeprefix("/"))
            for template, path, used in (
                ("sysctl.conf.j2", PATHS.sysctl, context.sysctl),
                ("modules-load.conf.j2", PATHS.modules, context.modules),
                ("modprobe.conf.j2", PATHS.modprobe, context.module_options),
                ("limits.conf.j2", PATHS.limits, context.limits),
                ("nccl.conf.j2", PATHS.nccl, context.nccl),
                ("profile.sh.j2", PATHS.profile, context.profile),
                ("networkmanager.conf.j2", PATHS.networkmanager, context.networkmanager),
                ("mtu.conf.j2", PATHS.mtu, context.unit),
                ("fabric-mtu@.service.j2", PATHS.mtu_unit, context.unit),
            )
            if used
        ]
        if context.netplan:
            found.append(Artifact("linux/netplan.yaml.j2", PATHS.netplan.removeprefix("/"), 0o600))
        if context.unit:
            found.append(Artifact("linux/fabric-mtu.sh.j2", PATHS.mtu_program.removeprefix("/"), 0o755))
        return tuple(found)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Whole files of ours, then the live values that differ."""
        system = SystemChange(seen, wanted.system).build()
        ports = MtuChange(seen, wanted, hw).build()
        steps = (*system.commit, *ports.commit)
        return Change(
            differences=system.differences + ports.differences,
            blocked=system.blocked + ports.blocked,
            lines=system.lines + ports.lines,
            commit=steps,
            undo=(*ports.undo, *system.undo),
            undo_kind="dead-man" if steps else "none",
            disturbs=system.disturbs + ports.disturbs,
            undo_disturbs=system.disturbs + ports.disturbs,
            unverified=system.unverified + ports.unverified,
            expected=wanted if steps else None,
        )


# ---------------------------------------------------------------- realize


def _realize_mtu(wanted: Mtu, port: PortHardware, hw: Hardware, faults: list[Fault]) -> Mtu:
    ceiling = int(hw.option("mtu_max") or 0) or _LARGEST.get(port.nic, 0)
    value = wanted.ip
    if isinstance(value, Absent):
        return wanted
    if value == MTU_MAX:
        return replace(wanted, ip=ceiling or _LIKELY)
    if value > (ceiling or _KERNEL_LARGEST):
        largest = ceiling or _KERNEL_LARGEST
        faults.append(
            Fault(
                Severity.NOTE,
                port.name,
                "mtu.ip",
                str(value),
                str(largest),
                f"its NIC takes at most {largest}",
            )
        )
        return replace(wanted, ip=largest)
    return wanted


def _realize_system(wanted: SystemState, faults: list[Fault]) -> SystemState:
    modules: list[tuple[str, Maybe[bool]]] = []
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
        modules.append((name.replace("-", "_"), UNMANAGED if value is False else value))
    return replace(
        wanted,
        sysctl=_normal(wanted.sysctl),
        modules=tuple(modules),
        module_options=_normal(wanted.module_options),
    )


def _normal(pairs: tuple[tuple[str, Maybe[str]], ...]) -> tuple[tuple[str, Maybe[str]], ...]:
    return tuple((key, value if isinstance(value, Absent) else normal(value)) for key, value in pairs)


PLATFORM = Linux()
