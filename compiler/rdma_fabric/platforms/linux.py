"""Linux as the base of a host: sysctl, modules, limits, job environment, and the MTU of fabric ports.

Facts: kernel documentation, systemd, netplan and NetworkManager manuals, and what was tried on a
6.18 kernel with Debian 12. NIC settings belong to the nic_* parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_vitals as vital
from rdma_fabric.platforms import _linux_find as find
from rdma_fabric.platforms import _linux_load as loads
from rdma_fabric.platforms import _linux_paths as paths
from rdma_fabric.platforms._contract import (
    Artifact,
    Change,
    Dialect,
    Probe,
    Realized,
    Traits,
)
from rdma_fabric.platforms._linux_ask import questions
from rdma_fabric.platforms._linux_managers import NETPLAN_KINDS, Persistence, drop_in
from rdma_fabric.platforms._linux_names import PATHS
from rdma_fabric.platforms._linux_probes import probes
from rdma_fabric.platforms._linux_read import read
from rdma_fabric.platforms._linux_realize import realize
from rdma_fabric.platforms._linux_write import Context, SystemChange, files_context
from rdma_fabric.platforms._linux_write_mtu import MtuChange, mtus, netplan_rows, unit_rows
from rdma_fabric.state import Mtu, NodeState, Observation, PortSettings
from rdma_fabric.vitals import Load, Loaded, Ping, Pong, Vitals

NETWORKD_FILE: Final = "networkd_file"
"""Node option: name of the .network file of a port, in which PORT stands for the port's name."""
_NETWORKD_FILE: Final = "10-PORT.network"


class Linux:
    """The base part of every host."""

    name = "linux"
    part: Literal["base"] = "base"
    channel: Literal["files"] = "files"
    dialect: Dialect = host.DIALECT
    traits = Traits(
        title="Linux host",
        introduction=find.INTRODUCTION,
        evidence="tried on a real kernel, over reboots: sysctl, modules, limits, MTU under netplan, "
        "networkd, NetworkManager and ifupdown",
        tested="real Linux sandboxes; Debian 12 in QEMU",
        cannot=(
            "unload a module",
            "reload a driver: module options count after a reboot, and the node is pending-reset until then",
            "change what a foreign file sets that is read after ours: it is named with file and line",
            "change the MTU of a bridge, or of a port in one",
        ),
        transports=("rocev2", "infiniband"),
        defaults=PortSettings(mtu=Mtu(ip=1500)),
        defaults_source="Linux 6.1 net/ethernet/eth.c (ether_setup)",
    )

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """MTU ceilings and what ports lie on, normal spelling of sysctls; modules are only ever loaded."""
        return realize(wanted, hw)

    # ------------------------------------------------------------ read

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """Shell scripts: the node's files, its live values, its ports and who manages them."""
        return questions(hw)

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state; running is operational."""
        return read("\n".join(answers.get(question, "") for question in self.questions(hw)), hw)

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        return vital.questions(hw.ports, "base")

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """Kernel counters and addresses of the ports."""
        return vital.base(answers, hw)

    def path_questions(self, pings: tuple[Ping, ...]) -> tuple[str, ...]:
        """Shell scripts that ping, all tests of a script at the same time."""
        return paths.questions(pings)

    def pongs(self, answers: Mapping[str, str], pings: tuple[Ping, ...]) -> tuple[Pong, ...]:
        """What came back."""
        return paths.pongs(answers, pings)

    def load_script(self, load: Load) -> str:
        """ib_write_bw of perftest."""
        return loads.write_bw(load)

    def loaded(self, answer: str) -> Loaded:
        """Its average."""
        return loads.bandwidth(answer)

    def program_script(self, command: str, limit_s: int) -> str:
        """A program for a limited time."""
        return loads.script(command, limit_s)

    def program_done(self, answer: str) -> Loaded:
        """The average bus bandwidth."""
        return loads.bus_bandwidth(answer)

    # ------------------------------------------------------------ write

    def context(self, wanted: NodeState, hw: Hardware) -> Context:
        """All settings of a realized state; MTUs by the node's mtu_manager, a unit of ours without one."""
        context = files_context(wanted.system)
        rows = mtus(wanted, hw)
        manager = hw.option("mtu_manager", "none")
        if manager == "netplan":
            kinds = {port.name: NETPLAN_KINDS.get(port.kind, "ethernets") for port in hw.ports}
            places = {name: Persistence("netplan", "netplan", f"{kinds[name]}/{name}") for name, _ in rows}
            return replace(context, netplan=netplan_rows(rows, places))
        if manager == "networkmanager":
            return replace(context, networkmanager=rows)
        context = replace(context, unit=unit_rows(rows, hw))
        if manager == "networkd":
            name = hw.option(NETWORKD_FILE, _NETWORKD_FILE)
            return replace(context, networkd=tuple((name.replace("PORT", port), mtu) for port, mtu in rows))
        return context

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """Files with node-wide settings, then those that keep the MTUs."""
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
        for unit, rows in context.services:
            path = PATHS.service(unit).removeprefix("/")
            found.append(Artifact("linux/service.conf.j2", path, context=Context(rows=rows)))
        for name, value in dict(context.networkd).items():
            found.append(
                Artifact(
                    "linux/networkd.conf.j2", drop_in(name).removeprefix("/"), context=Context(mtu=value)
                )
            )
        if context.netplan:
            found.append(Artifact("linux/netplan.yaml.j2", PATHS.netplan.removeprefix("/"), 0o600))
        if context.unit:
            found.append(Artifact("linux/fabric-mtu.sh.j2", PATHS.mtu_program.removeprefix("/"), 0o755))
        return tuple(found)

    def probes(self, wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
        """Node-wide settings, links and MTUs."""
        return probes(wanted, hw)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Whole files of ours, then the live values that differ."""
        system = SystemChange(seen, wanted.system).build()
        ports = MtuChange(seen, wanted, hw).build()
        steps = (*system.commit, *ports.commit)
        return Change(
            differences=system.differences + ports.differences,
            blocked=system.blocked + ports.blocked,
            reasons=system.reasons + ports.reasons,
            lines=system.lines + ports.lines,
            commit=steps,
            undo=(*ports.undo, *system.undo),
            undo_kind="dead-man" if steps else "none",
            disturbs=system.disturbs + ports.disturbs,
            undo_disturbs=system.disturbs + ports.disturbs,
            unverified=system.unverified + ports.unverified,
            expected=wanted if steps else None,
        )


PLATFORM = Linux()
