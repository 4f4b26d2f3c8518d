"""Reads a Linux host: answers of the shell questions of `linux` -> neutral state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _linux_boot as boot
from rdma_fabric.platforms import _linux_job as job
from rdma_fabric.platforms import _linux_links as links
from rdma_fabric.platforms import _linux_names as names
from rdma_fabric.platforms._contract import OURS
from rdma_fabric.platforms._host_files import File, Section, files, sections
from rdma_fabric.platforms._linux_boot import Setting
from rdma_fabric.platforms._linux_mtu import OWN, Persistence, own_rows, persistence
from rdma_fabric.platforms._linux_names import AGENTS, NOT_SET, PATHS, UNSET, Paths, sysctl_keys
from rdma_fabric.platforms._shared import digest
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    Maybe,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    SystemState,
)

T = TypeVar("T")
Texts = dict[str, Maybe[str]]
Flags = dict[str, Maybe[bool]]

OWNER = "owner"
"""Facts "owner PATH": why a node-wide setting cannot be kept or read, for people."""


def read(answer: str, hw: Hardware) -> Observation:
    """The observation of the base part, from all answers one after the other."""
    parts = sections(answer)
    node = Node(parts, hw)
    plans = persistence({name: one for name, one in parts.items() if name not in _OF_NODE}, hw)
    running_ports, stored_ports = _ports(parts, plans, hw)
    running, stored, pending = node.states()
    state, kept = NodeState(running, running_ports), NodeState(stored, stored_ports)
    return Observation(
        running=state,
        stored=kept,
        pending=NodeState(pending) if pending is not None else None,
        notes=(*node.notes(), *_mtu_notes(plans)),
        neighbours=_neighbours(parts.get("lldp", Section()), hw),
        facts=tuple(sorted({**node.facts(), **_port_facts(parts, plans, hw)}.items())),
        evidence=digest((state, kept)),
    )


_OF_NODE = frozenset(
    (
        *("kernel", "os", "model", "agents", "files", "lldp", "cmdline", "limits.d", "environment"),
        *("sysctl", "sysctl.d", "sysctl.conf", "modules", "modules-load.d", "modprobe.d", "options"),
        *("services", "units"),
    )
)
"""Sections about the node; all others are about its ports."""


# ---------------------------------------------------------------- node


@dataclass(frozen=True)
class Node:
    """The answers about the node. Each reader gives (running, stored) by name."""

    parts: Mapping[str, Section]
    hw: Hardware

    def section(self, name: str) -> Section:
        """A part of the answer; empty when it is not there."""
        return self.parts.get(name, Section())

    @cached_property
    def ours(self) -> Mapping[str, File]:
        """Our files, whole."""
        return files(self.section("files"))

    def states(self) -> tuple[SystemState, SystemState, SystemState | None]:
        """(running, stored, pending)."""
        live, kept = self._sysctl()
        loaded, at_boot = self._modules()
        options, options_kept = self._options()
        limits, limits_kept = self._limits()
        environment = self._environment()
        agents = self.section("agents")
        owners: Maybe[tuple[str, ...]] = _agents(agents) if agents.status in (0, 1) else UNKNOWN
        waiting = {key: value for key, value in options_kept.items() if _waits(value, options[key])}
        return (
            SystemState(
                _rows(live), _rows(loaded), _rows(options), _rows(limits), _rows(environment), owners
            ),
            SystemState(
                _rows(kept), _rows(at_boot), _rows(options_kept), _rows(limits_kept), _rows(environment)
            ),
            SystemState(module_options=_rows(waiting)) if waiting else None,
        )

    # -- sysctl

    @cached_property
    def sysctls(self) -> boot.Sysctls:
        """Assignments of all files that are read at boot."""
        last = boot.lines(self.section("sysctl.conf")).below(boot.UFW)
        return boot.sysctls(boot.joined(boot.lines(self.section("sysctl.d")), last))

    @cached_property
    def sysctl_names(self) -> tuple[str, ...]:
        """Keys that are read always, and those of our file."""
        own = (key for key, one in self.sysctls.explicit.items() if one.path == PATHS.sysctl)
        return tuple(sorted({*sysctl_keys(self.hw), *own}))

    @cached_property
    def sysctl_text(self) -> str:
        """What sysctl(8) said, of all questions that had keys."""
        return "\n".join(
            one.text for name, one in self.parts.items() if name == "sysctl" or name.startswith("sysctl ")
        )

    def _sysctl(self) -> tuple[Texts, Texts]:
        shown = File("", self.sysctl_text).pairs()
        found = boot.lines(self.section("sysctl.d"))
        live: Texts = {}
        kept: Texts = {}
        for key in self.sysctl_names:
            live[key] = boot.plain(shown[key]) if key in shown else UNKNOWN
            one = self.sysctls.get(key)
            kept[key] = UNKNOWN if found.unread or not found.asked else NOT_SET if one is None else one.value
        return live, kept

    # -- modules

    @cached_property
    def boot_modules(self) -> boot.Modules:
        """What modules-load.d, modprobe.d and the command line say of modules."""
        load, probe = boot.lines(self.section("modules-load.d")), boot.lines(self.section("modprobe.d"))
        return boot.modules(load, probe, self.section("cmdline").text)

    @cached_property
    def loaded(self) -> frozenset[str]:
        """Modules that are loaded or built in. Words only: a complaint of cut or ls is not a module."""
        return frozenset(line for line in self.section("modules").lines if re.fullmatch(r"\w+", line))

    def _own_modules(self) -> list[str]:
        return [name for name, one in self.boot_modules.listed.items() if one.path == PATHS.modules]

    def _modules(self) -> tuple[Flags, Flags]:
        listed, denied = (boot.lines(self.section(name)) for name in ("modules-load.d", "modprobe.d"))
        unread = listed.unread or denied.unread or not (listed.asked and denied.asked)
        live: Flags = {}
        kept: Flags = {}
        for name in sorted({*names.module_names(self.hw), *self._own_modules()}):
            # Without /proc/modules nothing was listed at all; not loaded is then not the same as not seen.
            live[name] = name in self.loaded if self.loaded else UNKNOWN
            kept[name] = UNKNOWN if unread else self.boot_modules.at_boot(name)
        return live, kept

    def _options(self) -> tuple[Texts, Texts]:
        """Live from /sys/module; of a module that is not loaded, what it will be loaded with."""
        shown = {
            key: boot.parameter(text) for key, text in File("", self.section("options").text).pairs().items()
        }
        found = boot.lines(self.section("modprobe.d"))
        own = {key for key, one in self.boot_modules.options.items() if one.path == PATHS.modprobe}
        live: Texts = {}
        kept: Texts = {}
        for key in sorted({*names.asked(self.hw, "module_options"), *own}):
            one = self.boot_modules.options.get(key)
            stored = NOT_SET if one is None else one.value
            unread = found.unread or not found.asked or self.boot_modules.hidden(key)
            kept[key] = UNKNOWN if unread else stored
            loaded = key.partition(".")[0] in self.loaded
            live[key] = shown.get(key, UNKNOWN) if loaded or not self.loaded else kept[key]
        return live, kept

    # -- limits

    @cached_property
    def login_limits(self) -> boot.Limits:
        """Limits of the next login."""
        return boot.limits(boot.lines(self.section("limits.d")))

    def _limits(self) -> tuple[Texts, Texts]:
        found = boot.lines(self.section("limits.d"))
        unread = bool(found.unread) or not found.asked
        own = {item for (item, _), one in self.login_limits.sides.items() if one.path == PATHS.limits}
        live: Texts = {}
        for name in sorted({*names.limit_names(self.hw), *own}):
            live[name] = UNKNOWN if unread else self.login_limits.get(name)[0]
        kept = dict(live)
        for unit in names.services(self.hw):
            now, later = self._service(unit)
            live |= now
            kept |= later
        return live, kept

    @cached_property
    def unit_lines(self) -> boot.Lines:
        """Lines about limits of all units that are asked for."""
        return boot.lines(self.section("units"))

    def service_files(self, unit: str) -> dict[str, Setting]:
        """What the unit's files say of its limits."""
        return boot.service_limits(self.unit_lines, unit)

    def _service(self, unit: str) -> tuple[Texts, Texts]:
        """Limits of a service: its process where it runs, else what its files say."""
        files_say = self.service_files(unit)
        rows = _after(self.section("services").lines, f"== {unit}")
        pid = next((row.partition("=")[2] for row in rows if row.startswith("MainPID=")), "")
        live: Texts = {}
        kept: Texts = {}
        for name in names.asked(self.hw, "limits"):
            of, _, item = name.rpartition(".")
            if of != unit or item not in boot.SERVICE_LIMITS:
                continue
            one = files_say.get(item)
            kept[name] = (one.value or UNKNOWN) if one else UNSET
            if not self.unit_lines.asked or self.unit_lines.unread:
                kept[name] = UNKNOWN
            live[name] = kept[name] if pid in ("", "0") else _process_limit(item, rows)
        return live, kept

    # -- environment, others

    def _environment(self) -> Texts:
        wanted = names.variables(self.hw)
        others = boot.lines(self.section("environment"))
        if not self.section("files").asked or not others.asked or others.unread:
            return dict.fromkeys(wanted, UNKNOWN)
        found: Texts = dict.fromkeys(wanted, UNSET)
        for path in (PATHS.nccl, PATHS.profile):
            file = self.ours.get(path)
            if file is not None and file.text is None:
                nccl = path == PATHS.nccl
                found.update({name: UNKNOWN for name in found if name.startswith("NCCL_") == nccl})
            elif file is not None:
                found.update({key: job.meant(key, job.unquoted(value)) for key, value in _pairs(file)})
        for name, one in self.exports.items():
            found[name] = job.meant(name, one.value) if one.value else UNKNOWN
        return found

    @cached_property
    def exports(self) -> Mapping[str, Setting]:
        """Variables of jobs that files of others set."""
        return job.exports(boot.lines(self.section("environment")))

    # -- who else

    def owned(self, group: str) -> tuple[str, ...]:
        """Names of one group that the intent or our files hold: only these concern us."""
        own = [line.partition("=")[0] for line in self._own_lines()]
        prefix = f"{group}."
        mine = {path.removeprefix(prefix) for path in own if path.startswith(prefix)}
        return tuple(sorted({*names.asked(self.hw, group), *mine}))

    def owners(self) -> dict[str, str]:
        """Path of a setting -> who else decides it, or why it cannot be read."""
        found: dict[str, str] = {}
        missing = re.findall(r"cannot stat /proc/sys/(\S+): No such", self.sysctl_text)
        absent = {boot.dotted(path) for path in missing}
        for key in self.owned("sysctl"):
            if key in absent:
                found[f"sysctl.{key}"] = "this kernel has no such key, or its module is not loaded"
            _other(found, f"sysctl.{key}", self.sysctls.get(key), PATHS.sysctl)
        for name in self.owned("modules"):
            denied = self.boot_modules.denied.get(name)
            if denied is not None:
                found[f"modules.{name}"] = f"second owner: {denied.place} keeps it from being loaded"
        for key in self.owned("module_options"):
            _other(found, f"module_options.{key}", self.boot_modules.options.get(key), PATHS.modprobe)
            if hidden := self.boot_modules.hidden(key):
                text = f"{hidden.place} goes on in its next line, which is not read: make it one line"
                found[f"module_options.{key}"] = text
            module = key.partition(".")[0]
            if module in self.loaded and f"{key}=" not in self.section("options").text:
                found[f"module_options.{key}"] = f"{module} is loaded and shows no parameter of that name"
        for name in self.owned("limits"):
            unit, _, item = name.rpartition(".")
            places = self.service_places(unit, item) if unit else self.login_limits.get(name)[1]
            for one in places:
                _other(found, f"limits.{name}", one, PATHS.service(unit) if unit else PATHS.limits)
        for name in self.owned("environment"):
            if name in self.exports:
                found[f"environment.{name}"] = _elsewhere(self.exports[name])
        return found

    def service_places(self, unit: str, item: str) -> tuple[Setting, ...]:
        """Where drop-ins of others set a limit of a service; its own file comes before all drop-ins."""
        one = self.service_files(unit).get(item)
        return (one,) if one is not None and "service.d/" in one.path else ()

    def notes(self) -> list[str]:
        """What an operator should know."""
        if not _OF_NODE & self.parts.keys():
            return ["the answer about the host was not understood"]
        found = [f"{path} is not ours and is left alone" for path in foreign(self.ours)]
        found += [f"{path.partition('.')[2]}: {text}" for path, text in sorted(self.owners().items())]
        found += self._by_hand()
        found += self._special_limits()
        if named := self.exports.get(job.CONF_FILE):
            found.append(f"{named.place} sets {job.CONF_FILE}: that file goes before {PATHS.nccl}")
        found += [f"{name} runs and may write NIC settings" for name in _agents(self.section("agents"))]
        return found

    def _by_hand(self) -> list[str]:
        """/etc/sysctl.conf: systemd reads it before our file or not at all, `sysctl --system` after it."""
        loose = boot.sysctls(boot.lines(self.section("sysctl.conf")).below("/etc/sysctl.conf"))
        found = []
        for key, one in sorted(loose.explicit.items()):
            own = self.sysctls.get(key)
            if own is not None and own.path == PATHS.sysctl and own.value != one.value:
                found.append(f"{one.place} sets {key} to {one.value}: `sysctl --system` puts that in force")
        return found

    def _special_limits(self) -> list[str]:
        """Lines for users and groups go before those for everybody, which ours are."""
        found = []
        for who, item, one in self.login_limits.special:
            value, places = self.login_limits.get(item)
            if value not in (UNSET, one.value) and any(place.path == PATHS.limits for place in places):
                found.append(f"{one.place} gives {who} another {item}: {one.value}")
        return found

    def facts(self) -> dict[str, str]:
        """What the host says it is, and what `change` must know of others' files."""
        release = File("", self.section("os").text).pairs()
        found = {f"{OWNER} {path}": text for path, text in self.owners().items()}
        kernel, model = self.section("kernel"), self.section("model")
        if kernel.ok:
            found["kernel"] = kernel.text.strip()
        if model.ok:
            found["model"] = model.text.strip()
        if "ID" in release:
            words = (release["ID"], release.get("VERSION_ID", ""))
            found["version"] = " ".join(word.strip('"') for word in words).strip()
        if paths := foreign(self.ours):
            found["foreign"] = " ".join(paths)
        if own := "\n".join(self._own_lines()):
            found[OURS] = own
        return found

    def _own_lines(self) -> Iterator[str]:
        """What our files hold, whatever others say of the same settings."""
        mine = {path: file for path, file in self.ours.items() if file.ours}
        for key, value in _pairs(mine.get(PATHS.sysctl)):
            yield f"sysctl.{boot.dotted(key)}={boot.plain(value)}"
        for name in self._own_modules() if PATHS.modules in mine else ():
            yield f"modules.{name}="
        probe = boot.modules(boot.Lines(), boot.lines(self.section("modprobe.d")).below(PATHS.modprobe))
        for key, one in probe.options.items() if PATHS.modprobe in mine else ():
            yield f"module_options.{key}={one.value}"
        limits = boot.limits(boot.lines(self.section("limits.d")).below(PATHS.limits))
        for item in sorted({item for item, _ in limits.sides}) if PATHS.limits in mine else ():
            yield f"limits.{item}={limits.get(item)[0]}"
        for unit in names.services(self.hw):
            lines = self.unit_lines.below(PATHS.service(unit))
            for item, one in boot.service_limits(lines, unit).items():
                yield f"limits.{unit}.{item}={one.value}"
        for path in (PATHS.nccl, PATHS.profile):
            for key, value in _pairs(mine.get(path)):
                yield f"environment.{key}={job.meant(key, job.unquoted(value))}"


def _pairs(file: File | None) -> Iterable[tuple[str, str]]:
    return file.pairs().items() if file is not None else ()


def owned_lines(text: str) -> SystemState:
    """The fact `ours` as a state."""
    found: dict[str, dict[str, Maybe[str]]] = {}
    modules: dict[str, Maybe[bool]] = {}
    for line in text.splitlines():
        path, _, value = line.partition("=")
        group, _, name = path.partition(".")
        if group == "modules":
            modules[name] = True
        else:
            found.setdefault(group, {})[name] = value
    others: dict[str, Any] = {group: _rows(rows) for group, rows in found.items()}
    return SystemState(modules=_rows(modules), **others)


def _waits(stored: Maybe[str], live: Maybe[str]) -> bool:
    """True for an option that the next load of its module changes."""
    return isinstance(stored, str) and isinstance(live, str) and stored not in (live, NOT_SET)


def _other(found: dict[str, str], path: str, one: Setting | None, ours: str) -> None:
    """Notes a line that wins over our file."""
    if one is None or one.path == ours:
        return
    if boot.later(one.path, ours):
        found.setdefault(path, _elsewhere(one))


def _elsewhere(one: Setting) -> str:
    return f"second owner: {one.place} sets it to {one.value or 'what is not understood'}"


def _after(rows: tuple[str, ...], head: str) -> list[str]:
    """The lines after a head, up to the next one."""
    if head not in rows:
        return []
    rest = rows[rows.index(head) + 1 :]
    end = next((at for at, row in enumerate(rest) if row.startswith("== ")), len(rest))
    return list(rest[:end])


def _process_limit(item: str, rows: list[str]) -> Maybe[str]:
    """/proc/PID/limits: name, soft and hard limit, unit; several blanks apart."""
    title = boot.SERVICE_LIMITS[item][2]
    for row in rows:
        words = row.removeprefix(title).split()
        if row.startswith(title) and len(words) >= 2:
            return boot.from_service(item, f"{words[0]}:{words[1]}") or UNKNOWN
    return UNKNOWN


def _rows(found: Mapping[str, T]) -> tuple[tuple[str, T], ...]:
    return tuple(sorted(found.items()))


def _agents(section: Section) -> tuple[str, ...]:
    return tuple(AGENTS[line.strip()] for line in section.lines if line.strip() in AGENTS)


def foreign(ours: Mapping[str, File]) -> tuple[str, ...]:
    """Files at a path of ours without our mark."""
    return tuple(sorted(path for path, file in ours.items() if file.text is not None and not file.ours))


def _neighbours(section: Section, hw: Hardware) -> tuple[tuple[str, str, str], ...]:
    """`lldpcli show neighbors`: a block per port with SysName and PortID (lldpd(8))."""
    if not section.ok:
        return ()
    found = []
    for block in re.split(r"^(?=Interface:)", section.text, flags=re.MULTILINE):
        local = re.match(r"Interface:\s+(\S+?),", block)
        system = re.search(r"^\s+SysName:\s+(\S.*?)\s*$", block, re.MULTILINE)
        remote = re.search(r"^\s+PortID:\s+(?:ifname|local)\s+(\S+)", block, re.MULTILINE)
        remote = remote or re.search(r"^\s+PortDescr:[ \t]+(\S+)", block, re.MULTILINE)
        if local and system and hw.port(local.group(1)) is not None:
            found.append((local.group(1), system.group(1), remote.group(1) if remote else ""))
    return tuple(sorted(found))


# ---------------------------------------------------------------- ports


def _ports(
    parts: Mapping[str, Section], plans: Mapping[str, Persistence], hw: Hardware
) -> tuple[tuple[PortState, ...], tuple[PortState, ...]]:
    live, kept = [], []
    for port in hw.ports:
        mtu, speed = links.live(port, parts)
        settings = PortSettings(Mtu(mtu, NOT_APPLICABLE, NOT_APPLICABLE))
        live.append(PortState(port.name, port.kind, settings, speed))
        stored = PortSettings(Mtu(plans[port.name].stored, NOT_APPLICABLE, NOT_APPLICABLE))
        kept.append(PortState(port.name, port.kind, stored))
    return tuple(live), tuple(kept)


def _port_facts(
    parts: Mapping[str, Section], plans: Mapping[str, Persistence], hw: Hardware
) -> dict[str, str]:
    found = {f"mtu {port}": plan.text() for port, plan in plans.items()}
    for port in hw.ports:
        one = links.link(
            parts.get(f"link {port.name}", Section()), parts.get(f"below {port.name}", Section())
        )
        found[f"{links.NETDEV}{port.name}"] = one.text()
    if own := own_rows(parts, hw):
        found[OWN] = own
    carried = links.session(parts.get("session", Section()))
    return {**found, links.SESSION: carried} if carried else found


def _mtu_notes(plans: Mapping[str, Persistence]) -> list[str]:
    found = [
        f"{port}: who keeps its MTU is unclear: {plan.problem}"
        for port, plan in plans.items()
        if plan.problem
    ]
    found += [f"{port}: its MTU is set by {plan.foreign}" for port, plan in plans.items() if plan.foreign]
    return found


__all__ = ["AGENTS", "OWNER", "PATHS", "UNSET", "Paths", "foreign", "read", "sysctl_keys"]
