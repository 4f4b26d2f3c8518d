"""Linux: node-wide settings from what was seen to what is wanted, as whole files of ours and programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, TypeVar

from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _linux_boot as boot
from rdma_fabric.platforms._contract import OURS, Call, Change, Disturbance, Disturbs, Put, Step
from rdma_fabric.platforms._linux_names import NOT_SET, PATHS, UNSET, Paths
from rdma_fabric.platforms._linux_read import OWNER, owned_lines
from rdma_fabric.state import (
    UNKNOWN,
    UNMANAGED,
    Difference,
    Maybe,
    NodeState,
    Observation,
    SystemState,
    differences,
)
from rdma_fabric.templating import render_lines

T = TypeVar("T")
Pairs = tuple[tuple[str, str], ...]

_SYSCTL_SOURCE: Final = (
    "Linux Documentation/networking/ip-sysctl.rst: read when the next packet or connection needs it"
)
_GROUPS: Final = ("sysctl", "modules", "module_options", "limits", "environment")
_GONE: Final = (UNSET, NOT_SET)


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the templates of `linux` write. Pairs are sorted."""

    paths: Paths = PATHS
    sysctl: Pairs = ()
    modules: tuple[str, ...] = ()
    module_options: tuple[tuple[str, Pairs], ...] = ()
    limits: Pairs = ()
    services: tuple[tuple[str, Pairs], ...] = ()
    """Unit -> systemd's words for its limits and their values."""
    nccl: Pairs = ()
    profile: Pairs = ()
    netplan: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    networkd: tuple[tuple[str, int], ...] = ()
    """Name of a .network file, bytes."""
    networkmanager: tuple[tuple[str, int], ...] = ()
    unit: tuple[tuple[str, int, str], ...] = ()
    """Port, bytes, port below it that must be as large first."""
    mtu: int = 0
    """Of one networkd drop-in."""
    rows: Pairs = ()
    """Of one service's drop-in."""
    set_sysctl: tuple[str, ...] = ()
    load_modules: tuple[str, ...] = ()
    set_limits: tuple[tuple[str, str, str], ...] = ()
    """Unit, limit, value as prlimit(1) takes it."""
    set_mtu: tuple[tuple[str, int], ...] = ()


def files_context(system: SystemState) -> Context:
    """Node-wide settings as the templates want them; unset and unmanaged ones are not there."""
    options: dict[str, list[tuple[str, str]]] = {}
    for name, value in _kept(system.module_options):
        module, _, key = name.partition(".")
        options.setdefault(module, []).append((key, value))
    services: dict[str, list[tuple[str, str]]] = {}
    for name, value in _kept(system.limits):
        unit, _, item = name.rpartition(".")
        if unit:
            services.setdefault(unit, []).append(
                (boot.SERVICE_LIMITS[item][0], boot.service_value(item, value))
            )
    variables = [(name, value) for name, value in host.managed(system.environment) if value != UNSET]
    return Context(
        sysctl=tuple((key, value) for key, value in host.managed(system.sysctl) if value != NOT_SET),
        modules=tuple(name for name, value in host.managed(system.modules) if value is True),
        module_options=tuple((module, tuple(rows)) for module, rows in options.items()),
        limits=tuple((name, value) for name, value in _sides(system)),
        services=tuple((unit, tuple(rows)) for unit, rows in services.items()),
        nccl=tuple((name, value) for name, value in variables if name.startswith("NCCL_")),
        profile=tuple(
            (name, shlex.quote(value)) for name, value in variables if not name.startswith("NCCL_")
        ),
    )


def _kept(pairs: Iterable[tuple[str, Maybe[str]]]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in host.managed(pairs) if value not in _GONE)


def _sides(system: SystemState) -> Iterator[tuple[str, str]]:
    """("soft memlock", value) and ("hard memlock", value) of every limit of logins."""
    for name, value in _kept(system.limits):
        if "." not in name:
            soft, _, hard = value.partition("/")
            yield from (
                (f"{side} {name}", one) for side, one in (("soft", soft), ("hard", hard or soft)) if one
            )


@dataclass(frozen=True, slots=True)
class _Kind:
    """One file of ours: which settings it holds."""

    path: str
    template: str
    holds: object
    context: Context
    settings: tuple[str, ...]
    """Prefixes of paths below `system`."""


@dataclass
class SystemChange:
    """Node-wide settings: one file each, and what makes them work now."""

    seen: Observation
    wanted: SystemState
    reasons: dict[str, str] = field(default_factory=dict)

    def build(self) -> Change:
        """Files that are not as wanted, live sysctls, modules to load, limits of running services."""
        live = self._differences(self.seen.running.system)
        kept = self._differences(self.seen.stored.system) if self.seen.stored else ()
        kept = (*kept, *self._left_over())
        blocked = self._blocked(live, kept)
        live = tuple(item for item in live if item.path not in blocked)
        kept = tuple(item for item in kept if item.path not in blocked)
        later = {item.path for item in kept}
        # An option that is stored already waits for its module to be loaded anew.
        live = tuple(item for item in live if not _in(item, "module_options") or item.path in later)
        puts = self._files({item.path for item in (*live, *kept)})
        calls, lines, undo = self._calls(live)
        words = [_word(item.path) for item in (*live, *kept)]
        rows = tuple(row for step in puts for row in host.file_lines(step, words))
        if any(step.path.startswith("/etc/systemd/") for step in puts):
            calls.insert(0, host.RELOAD_UNITS)
        return Change(
            differences=host.merged(live, kept),
            blocked=tuple(blocked.values()),
            reasons=tuple(sorted((path, text) for path, text in self.reasons.items() if path in blocked)),
            lines=(*rows, *lines),
            commit=(*puts, *calls),
            undo=undo,
            disturbs=_node_disturbs(live),
        )

    def _differences(self, seen: SystemState) -> tuple[Difference, ...]:
        owned = replace(self.wanted, owners=UNMANAGED)
        found = host.wishes(differences(owned, seen, "system"))
        return tuple(item for item in found if item.wanted is not False)

    def _left_over(self) -> tuple[Difference, ...]:
        """Modules that our file lists and that were not loaded before the run that is taken back."""
        listed = dict(self._own.modules)
        return tuple(
            Difference(f"system.modules.{name}", False, True)
            for name, value in self.wanted.modules
            if value is UNMANAGED and name in listed
        )

    @cached_property
    def _own(self) -> SystemState:
        """What our files hold now."""
        return owned_lines(dict(self.seen.facts).get(OURS, ""))

    def _blocked(self, live: Iterable[Difference], kept: Iterable[Difference]) -> dict[str, Difference]:
        """What cannot be written: not read, somebody else's word, or somebody else's file at our path."""
        facts = dict(self.seen.facts)
        foreign = set(facts.get("foreign", "").split())
        at = {prefix: kind.path for kind in self._kinds(self.wanted) for prefix in kind.settings}
        found: dict[str, Difference] = {}
        for layer, item in (*(("live", one) for one in live), *(("kept", one) for one in kept)):
            name = item.path.removeprefix("system.")
            path = next((at[prefix] for prefix in at if name.startswith(prefix)), "")
            owner = facts.get(f"{OWNER} {name}", "")
            if path in foreign:
                self.reasons[item.path] = f"{path} is not ours"
            elif owner and (layer == "kept" or item.unknown):
                self.reasons[item.path] = owner
            elif not item.unknown:
                continue
            found.setdefault(item.path, item)
        return found

    def _kinds(self, system: SystemState) -> tuple[_Kind, ...]:
        """Our files in the order in which they are written."""
        all_of = files_context(system)
        units = dict.fromkeys((*dict(files_context(self._own).services), *dict(all_of.services)))
        return (
            _Kind(PATHS.sysctl, "sysctl.conf", all_of.sysctl, all_of, ("sysctl.",)),
            _Kind(PATHS.modules, "modules-load.conf", all_of.modules, all_of, ("modules.",)),
            _Kind(PATHS.modprobe, "modprobe.conf", all_of.module_options, all_of, ("module_options.",)),
            *(self._service(unit, dict(all_of.services).get(unit, ())) for unit in units),
            _Kind(PATHS.limits, "limits.conf", all_of.limits, all_of, ("limits.",)),
            _Kind(PATHS.nccl, "nccl.conf", all_of.nccl, all_of, ("environment.NCCL_",)),
            _Kind(PATHS.profile, "profile.sh", all_of.profile, all_of, ("environment.",)),
        )

    @staticmethod
    def _service(unit: str, rows: Pairs) -> _Kind:
        return _Kind(PATHS.service(unit), "service.conf", rows, Context(rows=rows), (f"limits.{unit}.",))

    def _files(self, paths: set[str]) -> list[Put]:
        """The files that hold a setting to be written; a file without settings goes."""
        names = {path.removeprefix("system.") for path in paths}
        puts: list[Put] = []
        for kind in self._kinds(self._merged()):
            mine = {name for name in names if name.startswith(kind.settings)}
            names -= mine
            if mine and kind.holds:
                puts.append(host.put(kind.path, f"linux/{kind.template}.j2", kind.context))
            elif mine:
                puts.append(Put(kind.path, None))
        return puts

    def _merged(self) -> SystemState:
        """Wanted settings over those that our files hold already; a setting nobody asks for stays."""
        blocked = {path.removeprefix("system.") for path in self.reasons}
        merged: dict[str, Any] = {}
        for group in _GROUPS:
            wanted = [
                (name, value)
                for name, value in getattr(self.wanted, group)
                if f"{group}.{name}" not in blocked
            ]
            merged[group] = _over(getattr(self._own, group), wanted)
        gone = {_name(item) for item in self._left_over()}
        merged["modules"] = tuple(row for row in merged["modules"] if row[0] not in gone)
        return SystemState(**merged)

    def _calls(self, live: Iterable[Difference]) -> tuple[list[Call], tuple[str, ...], tuple[Step, ...]]:
        """Programs that make it so now, their lines, and what takes them back."""
        live = tuple(live)
        names = {group: [_name(item) for item in live if _in(item, group)] for group in _GROUPS}
        values, limits = dict(self.wanted.sysctl), dict(self.wanted.limits)
        services = [name for name in names["limits"] if "." in name and limits[name] != UNSET]
        context = Context(
            set_sysctl=tuple(shlex.quote(f"{key}={values[key]}") for key in names["sysctl"]),
            load_modules=tuple(names["modules"]),
            set_limits=tuple(_limit_words(name, str(limits[name])) for name in services),
        )
        lines = render_lines("linux/commands.j2", context)
        count, first = len(names["sysctl"]), len(names["sysctl"]) + len(names["modules"])
        settings = [host.call(line) for line in lines[:count]]
        modules = [
            host.call(line, unless=_loaded(name))
            for line, name in zip(lines[count:first], names["modules"], strict=True)
        ]
        running = [
            Call(("sh", "-c", line), unless=_has_limit(*words))
            for line, words in zip(lines[first:], context.set_limits, strict=True)
        ]
        # Modules first: a key below net.* may exist only once its module is there.
        return [*modules, *settings, *running], lines, self._undo(names["sysctl"], services)

    def _undo(self, keys: Iterable[str], services: Iterable[str]) -> tuple[Step, ...]:
        before, limits = dict(self.seen.running.system.sysctl), dict(self.seen.running.system.limits)
        back: list[Step] = [
            Call(("sysctl", "-w", f"{key}={before[key]}")) for key in keys if isinstance(before.get(key), str)
        ]
        words = []
        for name in services:
            value = limits.get(name)
            if isinstance(value, str) and value != UNSET:
                words.append(_limit_words(name, value))
        lines = render_lines("linux/commands.j2", Context(set_limits=tuple(words)))
        return (*back, *(Call(("sh", "-c", line)) for line in lines))


def activation(wanted: SystemState) -> tuple[Call, ...]:
    """What makes all settings work now, for a host that nobody has looked at; each call tests for itself."""
    live = [
        Difference(f"system.{group}.{name}", value, UNKNOWN)
        for group in _GROUPS
        for name, value in host.managed(getattr(wanted, group))
        if value and value not in _GONE
    ]
    calls, _, _ = SystemChange(Observation(NodeState()), wanted)._calls(live)
    return tuple(calls)


def _word(path: str) -> str:
    """The word by which a setting stands in its file: the name, an option without its module, a limit's."""
    group, _, name = path.removeprefix("system.").partition(".")
    if group == "module_options":
        return name.partition(".")[2]
    if group == "limits" and "." in name:
        return boot.SERVICE_LIMITS[name.rpartition(".")[2]][0]
    return name


def _name(item: Difference) -> str:
    return item.path.removeprefix("system.").partition(".")[2]


def _in(item: Difference, group: str) -> bool:
    return item.path.startswith(f"system.{group}.")


def _loaded(name: str) -> tuple[str, ...]:
    """A read-only test that exits 0 when the module is loaded or built in."""
    script = (
        'grep -qs "^$1 " /proc/modules || test -d "${FABRIC_SYSROOT:-}/sys/module/$1" || '
        'tr - _ <"/lib/modules/$(uname -r)/modules.builtin" 2>/dev/null | grep -q "/$1[.]ko"'
    )
    return ("sh", "-c", script, "sh", name)


def _limit_words(name: str, value: str) -> tuple[str, str, str]:
    """(unit, limit, value) as prlimit(1) takes them; it says unlimited where systemd says infinity."""
    unit, _, item = name.rpartition(".")
    given = boot.service_value(item, value).replace("infinity", boot.UNLIMITED)
    return unit, item, given if ":" in given else f"{given}:{given}"


def _has_limit(unit: str, item: str, value: str) -> tuple[str, ...]:
    """A read-only test that exits 0 when the service does not run or its process has the limit."""
    soft, _, hard = value.partition(":")
    script = (
        'p="$(systemctl show -p MainPID "$1.service" | cut -d= -f2)"; [ "${p:-0}" = 0 ] || '
        'grep -q "^$2  *$3  *$4  *" "/proc/$p/limits"'
    )
    return ("sh", "-c", script, "sh", unit, boot.SERVICE_LIMITS[item][2], soft, hard)


def _over(
    below: Iterable[tuple[str, Maybe[T]]], above: Iterable[tuple[str, Maybe[T]]]
) -> tuple[tuple[str, Maybe[T]], ...]:
    """Both as one list, `above` winning where it has a value; what is not set is not there."""
    found = {**dict(host.managed(below)), **dict(host.managed(above))}
    return tuple((name, value) for name, value in sorted(found.items()) if value != NOT_SET)


def _node_disturbs(live: Iterable[Difference]) -> tuple[Disturbance, ...]:
    groups = {item.path.split(".")[1] for item in live}
    found = []
    if "sysctl" in groups:
        found.append(Disturbance(Disturbs.NOTHING, ("",), "sysctl values change", _SYSCTL_SOURCE))
    if "modules" in groups:
        found.append(Disturbance(Disturbs.NOTHING, ("",), "modules are loaded", "experience"))
    return tuple(found)
