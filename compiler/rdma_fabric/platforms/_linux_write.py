"""Linux: from what was seen to what is wanted, as whole files of ours and programs to call."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _linux_mtu as mtu
from rdma_fabric.platforms._contract import Call, Change, Disturbance, Disturbs, Put, Step
from rdma_fabric.platforms._linux_mtu import Persistence
from rdma_fabric.platforms._linux_read import AGENTS, OPTION_MODULES, PATHS, UNSET, Paths
from rdma_fabric.state import (
    UNKNOWN,
    UNMANAGED,
    Absent,
    Difference,
    Maybe,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    SystemState,
    differences,
)
from rdma_fabric.templating import render_lines

T = TypeVar("T")
Pairs = tuple[tuple[str, str], ...]

_MTU_SOURCE: Final = "experience: drivers reopen their rings when the MTU changes"
_SYSCTL_SOURCE: Final = (
    "Linux Documentation/networking/ip-sysctl.rst: read when the next packet or connection needs it"
)


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the templates of `linux` may use. Pairs are sorted."""

    paths: Paths = PATHS
    names: str = ""
    sysctl_keys: tuple[str, ...] = ()
    option_modules: tuple[str, ...] = OPTION_MODULES
    agents: tuple[str, ...] = tuple(AGENTS)
    sysctl: Pairs = ()
    modules: tuple[str, ...] = ()
    module_options: tuple[tuple[str, Pairs], ...] = ()
    limits: Pairs = ()
    nccl: Pairs = ()
    profile: Pairs = ()
    netplan: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    networkmanager: tuple[tuple[str, int], ...] = ()
    unit: tuple[tuple[str, int], ...] = ()
    mtu: int = 0
    """Of one networkd drop-in."""
    set_sysctl: tuple[str, ...] = ()
    load_modules: tuple[str, ...] = ()
    set_mtu: tuple[tuple[str, int], ...] = ()


# ---------------------------------------------------------------- change: the node


def files_context(system: SystemState) -> Context:
    """Node-wide settings as the templates want them; unset and unmanaged ones are not there."""
    options: dict[str, list[tuple[str, str]]] = {}
    for name, value in host.managed(system.module_options):
        module, _, key = name.partition(".")
        options.setdefault(module, []).append((key, value))
    variables = [(name, value) for name, value in host.managed(system.environment) if value != UNSET]
    return Context(
        sysctl=tuple((key, value) for key, value in host.managed(system.sysctl) if value != UNSET),
        modules=tuple(name for name, value in host.managed(system.modules) if value is True),
        module_options=tuple((module, tuple(rows)) for module, rows in options.items()),
        limits=tuple((name, value) for name, value in host.managed(system.limits) if value != UNSET),
        nccl=tuple((name, value) for name, value in variables if name.startswith("NCCL_")),
        profile=tuple(
            (name, shlex.quote(value)) for name, value in variables if not name.startswith("NCCL_")
        ),
    )


@dataclass
class SystemChange:
    """Node-wide settings: one file each, and what makes them work now."""

    seen: Observation
    wanted: SystemState

    def build(self) -> Change:
        """Files that are not as wanted, live sysctls, modules to load."""
        live = self._differences(self.seen.running.system)
        kept = self._differences(self.seen.stored.system) if self.seen.stored else ()
        # What is not yet read (a key that nobody set before) may be written: our file then makes it read.
        new = {item.path for item in live if item.unknown and not self._listed(item.path)}
        overridden = set(dict(self.seen.facts).get("overridden", "").split())
        blocked = [item for item in live if item.unknown and item.path not in new]
        stuck = {item.path for item in blocked}
        kept = tuple(
            item
            for item in kept
            if item.path not in stuck and item.path.removeprefix("system.sysctl.") not in overridden
        )
        live = tuple(item for item in live if item.path not in stuck)
        changed = {item.path for item in (*live, *kept)}
        puts, foreign = self._files(changed)
        blocked += foreign
        refused = {item.path for item in foreign}
        live = tuple(item for item in live if item.path not in refused)
        calls, lines, undo = self._calls(live)
        names = [_word(path) for path in changed]
        rows = tuple(row for step in puts for row in host.file_lines(step, names))
        return Change(
            differences=host.merged(live, (item for item in kept if item.path not in refused)),
            blocked=tuple(blocked),
            lines=(*rows, *lines),
            commit=(*puts, *calls),
            undo=undo,
            disturbs=_node_disturbs(live),
        )

    def _differences(self, seen: SystemState) -> tuple[Difference, ...]:
        owned = replace(self.wanted, owners=UNMANAGED)
        found = host.wishes(differences(owned, seen, "system"))
        return tuple(item for item in found if item.wanted is not False)

    def _listed(self, path: str) -> bool:
        """True when the read-back names the setting, even if it could not tell its value."""
        group, _, name = path.removeprefix("system.").partition(".")
        return name in dict(getattr(self.seen.running.system, group))

    def _files(self, paths: set[str]) -> tuple[list[Put], list[Difference]]:
        """Files to write; differences that a foreign file at our path makes impossible."""
        context = files_context(self._merged())
        foreign = set(dict(self.seen.facts).get("foreign", "").split())
        puts: list[Put] = []
        blocked: list[Difference] = []
        for group, path, template, holds in (
            ("sysctl", PATHS.sysctl, "sysctl.conf", context.sysctl),
            ("modules", PATHS.modules, "modules-load.conf", context.modules),
            ("module_options", PATHS.modprobe, "modprobe.conf", context.module_options),
            ("limits", PATHS.limits, "limits.conf", context.limits),
            ("environment.NCCL_", PATHS.nccl, "nccl.conf", context.nccl),
            ("environment.", PATHS.profile, "profile.sh", context.profile),
        ):
            mine = {item for item in paths if self._group(item) == group}
            if not mine:
                continue
            if path in foreign:
                blocked += [Difference(item, self._value(item), UNKNOWN) for item in sorted(mine)]
            elif holds:
                puts.append(host.put(path, f"linux/{template}.j2", context))
            else:
                puts.append(Put(path, None))
        return puts, blocked

    @staticmethod
    def _group(path: str) -> str:
        group, _, name = path.removeprefix("system.").partition(".")
        if group != "environment":
            return group
        return "environment.NCCL_" if name.startswith("NCCL_") else "environment."

    def _value(self, path: str) -> object:
        group, _, name = path.removeprefix("system.").partition(".")
        return dict(getattr(self.wanted, group)).get(name, UNKNOWN)

    def _merged(self) -> SystemState:
        """Wanted settings over those that our files hold already; a setting nobody asks for stays."""
        kept = self.seen.stored.system if self.seen.stored else SystemState()
        new = self.wanted
        return SystemState(
            sysctl=_over(kept.sysctl, new.sysctl),
            modules=_over(kept.modules, new.modules),
            module_options=_over(kept.module_options, new.module_options),
            limits=_over(kept.limits, new.limits),
            environment=_over(kept.environment, new.environment),
        )

    def _calls(self, live: Iterable[Difference]) -> tuple[list[Call], tuple[str, ...], tuple[Step, ...]]:
        """Programs that make it so now, their lines, and what takes them back."""
        before = dict(self.seen.running.system.sysctl)
        keys = [item.path.removeprefix("system.sysctl.") for item in live if _in(item, "sysctl")]
        values = dict(self.wanted.sysctl)
        modules = tuple(item.path.removeprefix("system.modules.") for item in live if _in(item, "modules"))
        lines = render_lines(
            "linux/commands.j2",
            Context(
                set_sysctl=tuple(shlex.quote(f"{key}={values[key]}") for key in keys), load_modules=modules
            ),
        )
        calls = [host.call(line) for line in lines[: len(keys)]]
        calls += [
            host.call(line, unless=_loaded(name))
            for line, name in zip(lines[len(keys) :], modules, strict=True)
        ]
        undo = tuple(
            Call(("sysctl", "-w", f"{key}={before[key]}"))
            for key in keys
            if isinstance(before.get(key, UNKNOWN), str)
        )
        # Modules first: a key below net.* may exist only once its module is there.
        return [*calls[len(keys) :], *calls[: len(keys)]], lines, undo


def _word(path: str) -> str:
    """The word by which a setting stands in its file: the name, or an option without its module."""
    group, _, name = path.removeprefix("system.").partition(".")
    return name.partition(".")[2] if group == "module_options" else name


def _loaded(name: str) -> tuple[str, ...]:
    """A read-only test that exits 0 when the module is loaded or built in."""
    script = 'grep -q "^$1 " /proc/modules || test -d "${FABRIC_SYSROOT:-}/sys/module/$1"'
    return ("sh", "-c", script, "sh", name)


def _in(item: Difference, group: str) -> bool:
    return item.path.startswith(f"system.{group}.")


def _over(
    below: tuple[tuple[str, Maybe[T]], ...], above: tuple[tuple[str, Maybe[T]], ...]
) -> tuple[tuple[str, Maybe[T]], ...]:
    """Both as one list, `above` winning where it has a value; UNSET and absences are left out."""
    found = {**dict(host.managed(below)), **dict(host.managed(above))}
    return tuple((name, value) for name, value in sorted(found.items()) if value != UNSET)


def _node_disturbs(live: Iterable[Difference]) -> tuple[Disturbance, ...]:
    groups = {item.path.split(".")[1] for item in live}
    found = []
    if "sysctl" in groups:
        found.append(Disturbance(Disturbs.NOTHING, ("",), "sysctl values change", _SYSCTL_SOURCE))
    if "modules" in groups:
        found.append(Disturbance(Disturbs.NOTHING, ("",), "modules are loaded", "experience"))
    return tuple(found)


# ---------------------------------------------------------------- change: MTUs


def mtus(wanted: NodeState, hw: Hardware) -> tuple[tuple[str, int], ...]:
    """(port, bytes) of every port whose MTU is ours."""
    return tuple(
        (port.name, port.settings.mtu.ip)
        for port in wanted.ports
        if hw.port(port.name) is not None and not isinstance(port.settings.mtu.ip, Absent)
    )


def netplan_rows(
    rows: Iterable[tuple[str, int]], plans: Mapping[str, Persistence]
) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """Netplan's kind ("ethernets") -> its (id, bytes), sorted."""
    found: dict[str, list[tuple[str, int]]] = {}
    for port, value in rows:
        kind, _, ident = plans[port].place.partition("/")
        found.setdefault(kind, []).append((ident, value))
    return tuple((kind, tuple(sorted(pairs))) for kind, pairs in sorted(found.items()))


@dataclass
class MtuChange:
    """The MTU of every fabric port: live, and in the file of whoever keeps it."""

    seen: Observation
    wanted: NodeState
    hw: Hardware

    def build(self) -> Change:
        """Files first, then the live values."""
        names = [port.name for port in self.hw.ports]
        mask = NodeState(
            ports=tuple(
                replace(port, settings=PortSettings(Mtu(ip=port.settings.mtu.ip)))
                for port in host.only(self.wanted, "mtu", names).ports
            )
        )
        live = host.differing(mask, self.seen.running)
        kept = host.differing(mask, self.seen.stored)
        plans = self._plans()
        blocked = {item.path: item for item in live if item.unknown}
        for item in kept:
            plan = plans[_port(item)]
            if item.unknown or not plan.writer or plan.foreign:
                blocked[item.path] = item
        clash = mtu.clash((plan.place, value) for plan, value in self._with(plans, "networkd"))
        if clash:
            blocked.update({item.path: item for item in kept if plans[_port(item)].writer == "networkd"})
        live = tuple(item for item in live if item.path not in blocked)
        kept = tuple(item for item in kept if item.path not in blocked)
        return self._change(live, kept, tuple(blocked.values()), plans)

    def _plans(self) -> dict[str, Persistence]:
        facts = dict(self.seen.facts)
        return {port.name: Persistence.of(facts.get(f"mtu {port.name}", "?")) for port in self.hw.ports}

    def _with(self, plans: Mapping[str, Persistence], writer: str) -> list[tuple[Persistence, int]]:
        return [
            (plans[name], value) for name, value in mtus(self.wanted, self.hw) if plans[name].writer == writer
        ]

    def _change(
        self,
        live: tuple[Difference, ...],
        kept: tuple[Difference, ...],
        blocked: tuple[Difference, ...],
        plans: Mapping[str, Persistence],
    ) -> Change:
        # A port whose MTU cannot be kept is not changed now either: it would come back wrong.
        steps = self._files(
            {_port(item) for item in (*live, *kept)}, {_port(item) for item in blocked}, plans
        )
        data = [step for step in steps if isinstance(step, Put) and step.path.startswith("/etc/")]
        rows = tuple(row for step in data if "/system/" not in step.path for row in host.file_lines(step))
        set_mtu = tuple((_port(item), int(item.wanted)) for item in live)
        lines = render_lines("linux/commands.j2", Context(set_mtu=set_mtu))
        calls = tuple(host.call(line, _has_mtu(*row)) for line, row in zip(lines, set_mtu, strict=True))
        undo = tuple(
            Call(("ip", "link", "set", "dev", _port(item), "mtu", str(item.found))) for item in reversed(live)
        )
        ports = tuple(name for name, _ in set_mtu)
        return Change(
            differences=host.merged(live, kept),
            blocked=blocked,
            lines=(*rows, *lines),
            commit=(*steps, *calls),
            undo=undo,
            disturbs=(Disturbance(Disturbs.LOSS, ports, "the MTU changes", _MTU_SOURCE),) if ports else (),
        )

    def _files(
        self, changed: set[str], blocked: set[str], plans: Mapping[str, Persistence]
    ) -> list[Put | Call]:
        """The file of every manager that keeps a changed port, with all ports it keeps."""
        steps: list[Put | Call] = []
        rows = [(name, value) for name, value in mtus(self.wanted, self.hw) if name not in blocked]
        by = {
            writer: tuple((name, value) for name, value in rows if plans[name].writer == writer)
            for writer in ("netplan", "networkd", "networkmanager", "unit")
        }
        used = {plans[name].writer for name in changed}
        if "netplan" in used:
            context = Context(netplan=netplan_rows(by["netplan"], plans))
            steps.append(host.put(PATHS.netplan, "linux/netplan.yaml.j2", context, 0o600))
            steps.append(Call(("netplan", "generate")))
        if "networkd" in used:
            places = sorted({(plans[name].place, value) for name, value in by["networkd"]})
            steps += [
                host.put(mtu.drop_in(place), "linux/networkd.conf.j2", Context(mtu=value))
                for place, value in places
            ]
        if "networkmanager" in used:
            context = Context(networkmanager=by["networkmanager"])
            steps.append(host.put(PATHS.networkmanager, "linux/networkmanager.conf.j2", context))
        if "unit" in used:
            steps += self._unit(by["unit"])
        return steps

    @staticmethod
    def _unit(rows: tuple[tuple[str, int], ...]) -> list[Put | Call]:
        context = Context(unit=rows)
        return [
            host.put(PATHS.mtu_program, "linux/fabric-mtu.sh.j2", context, 0o755),
            host.put(PATHS.mtu_unit, "linux/fabric-mtu@.service.j2", context),
            host.put(PATHS.mtu, "linux/mtu.conf.j2", context),
            host.RELOAD_UNITS,
            *(host.enable("fabric-mtu", name)[1] for name, _ in rows),
        ]


def _port(item: Difference) -> str:
    return item.path.removeprefix("ports.").removesuffix(".mtu.ip")


def _has_mtu(port: str, value: int) -> tuple[str, ...]:
    """A read-only test that exits 0 when the port has that MTU."""
    return ("sh", "-c", 'ip -o link show dev "$1" | grep -q " mtu $2 "', "sh", port, str(value))
