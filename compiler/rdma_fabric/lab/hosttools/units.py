"""Unit files of systemd: finding, reading, enabling and running them."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH103, PTH110, PTH112, PTH113, PTH123, PTH208

from __future__ import annotations

import os
import shlex
import subprocess

from . import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ETC = "/etc/systemd/system"
PATHS = (ETC, "/run/systemd/system")
JOURNAL = f"{store.RUN}/journal"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "FABRIC_SYSROOT": store.RUN,
}
BUILT_IN = {
    "ssh.service": "active",
    "systemd-journald.service": "active",
    "systemd-udevd.service": "active",
    "systemd-sysctl.service": "active",
    "systemd-modules-load.service": "active",
    "systemd-networkd.service": "inactive",
    "NetworkManager.service": "inactive",
    "networking.service": "inactive",
    "lldpd.service": "active",
    "lldpad.service": "inactive",
    "openibd.service": "inactive",
    "rdma-hw.target": "active",
    "multi-user.target": "active",
    "network-online.target": "active",
}
"""Units that come with the host, and what they are after boot."""


def network_manager() -> str:
    """The unit of what manages this host's interfaces."""
    known = {"ifupdown": "networking.service", "NetworkManager": "NetworkManager.service"}
    return known.get(store.facts()["manager"], "systemd-networkd.service")


def full(name: str) -> str:
    """A unit's name with its type; services may be named without."""
    types = (".service", ".timer", ".target", ".device", ".socket", ".mount", ".path")
    return name if name.endswith(types) else f"{name}.service"


def template(unit: str) -> tuple[str, str]:
    """The file that holds the unit, and its instance: `a@b.service` is in `a@.service`."""
    stem, dot, kind = unit.rpartition(".")
    if "@" not in stem:
        return unit, ""
    prefix, _, instance = stem.partition("@")
    return f"{prefix}@{dot}{kind}", instance


def path(unit: str) -> str:
    """Where the unit's file is, or nothing."""
    for name in (unit, template(unit)[0]):
        for folder in PATHS:
            if os.path.isfile(f"{folder}/{name}"):
                return f"{folder}/{name}"
    return ""


def text(unit: str) -> str:
    """The unit's file followed by its drop-ins."""
    parts = [store.slurp(path(unit))]
    for name in {unit, template(unit)[0]}:
        for folder in PATHS:
            drop_ins = f"{folder}/{name}.d"
            if os.path.isdir(drop_ins):
                parts += [
                    store.slurp(f"{drop_ins}/{conf}")
                    for conf in sorted(os.listdir(drop_ins))
                    if conf.endswith(".conf")
                ]
    return "\n".join(parts)


class Unit:
    """A parsed unit; values are lists, as directives may repeat (an empty one clears)."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source, self.instance = name, source, template(name)[1]
        self.values: dict[tuple[str, str], list[str]] = {}
        section = ""
        for line in source.replace("\\\n", " ").splitlines():
            line = line.strip()
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
            elif line and line[0] not in "#;" and "=" in line:
                key, _, value = line.partition("=")
                slot = self.values.setdefault((section, key.strip()), [])
                slot.append(self._expand(value.strip())) if value.strip() else slot.clear()

    def _expand(self, value: str) -> str:
        out, rest = "", value
        while "%" in rest:
            before, _, after = rest.partition("%")
            known = {
                "i": self.instance,
                "I": self.instance,
                "n": self.name,
                "N": self.name.rpartition(".")[0],
            }
            known |= {"%": "%", "H": os.uname().nodename, "p": self.name.partition("@")[0]}
            out += before + known.get(after[:1], f"%{after[:1]}")
            rest = after[1:]
        return out + rest

    def words(self, section: str, key: str) -> list[str]:
        """All words of a directive."""
        return [word for value in self.values.get((section, key), ()) for word in value.split()]

    def one(self, section: str, key: str, default: str = "") -> str:
        """The last value of a directive."""
        return (self.values.get((section, key)) or [default])[-1]

    def lines(self, key: str) -> list[str]:
        """Command lines of a service."""
        return self.values.get(("Service", key), [])


def load(name: str, state: dict[str, Any]) -> Unit:
    """The unit as systemd has it in memory: a file changed since needs `daemon-reload`."""
    loaded = state.setdefault("(loaded)", {})
    return Unit(name, loaded.setdefault(name, text(name)))


def missing_device(unit: Unit) -> str:
    """A device that the unit is bound to and that is not there, or nothing."""
    prefix = "sys-subsystem-net-devices-"
    for bound in unit.words("Unit", "BindsTo") + unit.words("Unit", "Requires"):
        if bound.startswith(prefix) and bound.endswith(".device"):
            netdev = bound[len(prefix) : -len(".device")].replace("\\x2d", "-")
            if not os.path.exists(f"/sys/class/net/{netdev}"):
                return bound
    return ""


def escape(name: str) -> str:
    """A name as part of a unit's name (systemd-escape, names of netdevs)."""
    return name.replace("-", "\\x2d")


def _in_folders(owner: str) -> list[str]:
    """Units that are linked below an owner's `.wants` and `.requires`."""
    found = []
    for ending in (".wants", ".requires"):
        folder = f"{ETC}/{owner}{ending}"
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        found += [name for name in names if path(name)]
    return found


def wanted_by(netdev: str) -> list[str]:
    """Units that are enabled for the netdev's device."""
    return _in_folders(f"sys-subsystem-net-devices-{escape(netdev)}.device")


def bound_to(netdev: str) -> list[str]:
    """Units known to run that stop when the netdev goes."""
    device = f"sys-subsystem-net-devices-{escape(netdev)}.device"
    names = [name for name in store.read(store.UNITS) if "(" not in name and path(name)]
    return [name for name in names if device in Unit(name, text(name)).words("Unit", "BindsTo")]


def wanted(more: list[str] | None = None) -> list[str]:
    """Units that are enabled for targets and present devices, and more, in the order of their After=."""
    found: dict[str, Unit] = {name: Unit(name, text(name)) for name in map(full, more or []) if path(name)}
    for folder in sorted(os.listdir(ETC)):
        if not folder.endswith((".wants", ".requires")):
            continue
        owner = folder.rpartition(".")[0]
        if owner.endswith(".device") and missing_device(Unit("", f"[Unit]\nBindsTo={owner}\n")):
            continue
        for name in sorted(os.listdir(f"{ETC}/{folder}")):
            if path(name):
                found[name] = Unit(name, text(name))
    ordered: list[str] = []
    for name in found:
        _after(name, found, ordered, set())
    return ordered


def _after(name: str, found: dict[str, Unit], ordered: list[str], seen: set[str]) -> None:
    if name in ordered or name in seen:
        return
    seen.add(name)
    earlier_ones = [other for other, unit in found.items() if name in unit.words("Unit", "Before")]
    for earlier in found[name].words("Unit", "After") + earlier_ones:
        if earlier in found:
            _after(earlier, found, ordered, seen)
    ordered.append(name)


def run(unit: Unit) -> tuple[str, int]:
    """Start a service as its file says; returns its new state and, while it runs, its process."""
    kind = unit.one("Service", "Type", "simple")
    if unit.one("Unit", "ConditionPathExists"):
        condition = unit.one("Unit", "ConditionPathExists")
        if os.path.exists(condition.lstrip("!")) == condition.startswith("!"):
            return "inactive", 0
    for line in unit.lines("ExecStartPre"):
        if not _step(unit, line):
            return "failed", 0
    commands = unit.lines("ExecStart")
    if kind == "oneshot":
        for line in commands:
            if not _step(unit, line):
                return "failed", 0
    else:
        for line in commands[:1]:
            process = _launch(unit, line)
            if process is None:
                return "failed", 0
            return "active", process.pid
    for line in unit.lines("ExecStartPost"):
        if not _step(unit, line):
            return "failed", 0
    remains = unit.one("Service", "RemainAfterExit", "no").lower() in {"yes", "true", "1", "on"}
    return ("active" if remains else "inactive"), 0


def halt(unit: Unit) -> None:
    """Run what stops the service."""
    for line in unit.lines("ExecStop"):
        _step(unit, line)


def _environment(unit: Unit) -> dict[str, str]:
    found = dict(ENVIRONMENT)
    for name in unit.words("Service", "EnvironmentFile"):
        for line in store.slurp(name.lstrip("-")).splitlines():
            if "=" in line and not line.lstrip().startswith("#"):
                key, _, value = line.partition("=")
                found[key.strip()] = value.strip().strip("\"'")
    for value in unit.values.get(("Service", "Environment"), ()):
        found.update(word.partition("=")[::2] for word in shlex.split(value) if "=" in word)
    return found


def _launch(unit: Unit, line: str) -> subprocess.Popen[bytes] | None:
    """Start one command; its output goes to the unit's journal. None when it cannot be executed."""
    command = line.lstrip("@-:+!")
    os.makedirs(JOURNAL, exist_ok=True)
    with open(f"{JOURNAL}/{unit.name}", "ab") as journal:
        try:
            return subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.DEVNULL,
                stdout=journal,
                stderr=journal,
                env=_environment(unit),
                cwd=unit.one("Service", "WorkingDirectory", "/").lstrip("-") or "/",
                start_new_session=True,
            )
        except OSError as error:
            journal.write(f"{unit.name}: Failed at step EXEC spawning {command}: {error.strerror}\n".encode())
            return None


def _step(unit: Unit, line: str) -> bool:
    """Run one command to its end; a leading `-` forgives."""
    process = _launch(unit, line)
    status = 203 if process is None else process.wait()
    return status == 0 or "-" in line[: len(line) - len(line.lstrip("@-:+!"))]
