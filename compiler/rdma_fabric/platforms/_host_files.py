"""What all parts of a Linux host share: our files, one shell question, its framed answer, steps.

A host is read by POSIX shell scripts on one line that print one framed section per thing, so that
a host with many ports costs one or two round trips. It is changed by whole files of ours and by
programs, which the bundle on the host executes (channel "files").
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._contract import Call, Dialect, Put
from rdma_fabric.state import (
    Absent,
    Difference,
    NodeState,
    PortSettings,
    PortState,
    differences,
)
from rdma_fabric.templating import render, render_lines

MARK: Final = "managed by fabric"
"""Stands in the first two lines of every file of ours; a file without it is somebody else's."""

QOS_PROGRAM: Final = "/usr/local/sbin/fabric-qos"
QOS_UNIT: Final = "/etc/systemd/system/fabric-qos@.service"
QOS_FOLDER: Final = "/etc/fabric/qos"
RDMA_UNIT: Final = "/etc/systemd/system/fabric-rdma@.service"
RDMA_RULE: Final = "/etc/udev/rules.d/90-fabric-rdma.rules"

NETDEV_BOUND: Final[Mapping[int, int]] = {4096: 4192, 2048: 2144, 1024: 1120, 512: 608, 256: 352}
"""RDMA MTU -> least netdev MTU: the kernel's iboe_get_mtu takes 96 bytes off (Linux 6.1
include/rdma/ib_addr.h), which also covers rxe's own 80 (measured, reference soft_roce_qemu)."""

DIALECT: Final = Dialect(driver="linux", errors="", status=True)
"""A POSIX shell; exit codes tell, no text is an error by itself."""


# ---------------------------------------------------------------- questions


_WITH_RIGHTS: Final = (
    # sysctl and the tools of NICs are in folders that an ordinary account does not search on Debian.
    # The words of tools are read, and nmcli, sysctl and grep say them in the language of the account.
    "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL; "
    # netplan's files and RDMA-CM's configuration are root's; a push needs the same right to sudo.
    'if [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; '
    'then exec sudo -n sh -c "LC_ALL=C; export LC_ALL; $1"; fi; eval "$1"'
)
"""Runs its first argument, by sudo where an ordinary account may use it without a password."""


@lru_cache(maxsize=512)
def question(template: str, context: Any) -> str:
    """The template's shell script as one line for any login shell; it may hold no single quote."""
    script = " ".join(line.strip() for line in render_lines(template, context))
    if "'" in script:
        raise ValueError(f"{template} holds a single quote, which would end the quoted script")
    return f"sh -c '{_WITH_RIGHTS}' sh '{script}'"


@dataclass(frozen=True, slots=True)
class Section:
    """Output and exit code of one thing that was asked; `asked` is False when it is not in the answer."""

    text: str = ""
    status: int = -1
    asked: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the output that are not empty."""
        return tuple(line for line in self.text.splitlines() if line.strip())

    @property
    def ok(self) -> bool:
        """True when the command was there and succeeded."""
        return self.asked and self.status == 0


NOT_ASKED: Final = Section()


def sections(answer: str) -> dict[str, Section]:
    """The framed parts of an answer by name; a part that was cut off is not there."""
    found: dict[str, Section] = {}
    name, body = "", list[str]()
    for line in answer.replace("\r\n", "\n").split("\n"):
        if line.startswith("@@"):
            name, body = line[2:].strip(), []
        elif line.startswith("@=") and name and re.fullmatch(r"@=\d+", line.strip()):
            found[name] = Section("\n".join(body).rstrip("\n"), int(line.strip()[2:]), True)
            name = ""
        else:
            body.append(line)
    return found


@dataclass(frozen=True, slots=True)
class File:
    """One file of the host as the question printed it; `text` is None when it may not be read."""

    path: str
    text: str | None

    @property
    def ours(self) -> bool:
        """True when the file bears our mark."""
        return self.text is not None and any(MARK in line for line in self.text.splitlines()[:2])

    def pairs(self, separator: str = "=") -> dict[str, str]:
        """KEY=VALUE lines; comments and `export` are left out."""
        found: dict[str, str] = {}
        for line in (self.text or "").splitlines():
            key, sign, value = line.strip().removeprefix("export ").partition(separator)
            if sign and not key.startswith(("#", ";")):
                found[key.strip()] = value.strip()
        return found


def files(section: Section) -> dict[str, File]:
    """Files that a section prints, each after a line "==PATH"."""
    found: dict[str, File] = {}
    path, body = "", list[str]()
    for line in (*section.text.splitlines(), "=="):
        if line.startswith("=="):
            if path:
                rows = [row for row in body if row.strip()]
                refused = len(rows) == 1 and re.match(r"(cat|grep|sed): .*[Pp]ermission denied", rows[0])
                found[path] = File(path, None if refused else "\n".join(body))
            path, body = line[2:].strip(), []
        else:
            body.append(line)
    return found


# ---------------------------------------------------------------- steps


def put(path: str, template: str, context: Any, mode: int = 0o644) -> Put:
    """A whole file of ours from its template."""
    return Put(path, render(template, context), mode)


def call(line: str, unless: tuple[str, ...] = (), timeout_s: float = 60.0) -> Call:
    """One rendered command line as a program call, without a shell."""
    return Call(tuple(shlex.split(line)), unless=unless, timeout_s=timeout_s)


def file_lines(step: Put, names: Iterable[str] = ()) -> tuple[str, ...]:
    """A data file for people: its path with every line, or with those that hold one of the names."""
    if step.text is None:
        return (f"rm {step.path}",)
    rows = [row.strip() for row in step.text.splitlines() if row.strip() and not row.strip().startswith("#")]
    words = "|".join(map(re.escape, names))
    wanted = re.compile(rf"(?<![\w.])(?:{words})(?![\w.])" if words else "")
    return tuple(f"{step.path}: {row}" for row in rows if wanted.search(row))


@cache
def unit_name(text: str) -> str:
    """A port's name as systemd writes it inside a unit's name: "-" and other signs become \\x2d
    (systemd-escape(1))."""
    found = ""
    for index, sign in enumerate(text):
        if sign == "/":
            found += "-"
        elif (sign.isascii() and sign.isalnum()) or sign in ":_" or (sign == "." and index):
            found += sign
        else:
            found += "".join(f"\\x{byte:02x}" for byte in sign.encode())
    return found


def unit_link(unit: str, port: str) -> str:
    """The link that enables template unit `unit` ("fabric-qos") for a port."""
    name = unit_name(port)
    return f"/etc/systemd/system/sys-subsystem-net-devices-{name}.device.wants/{unit}@{name}.service"


def enable(unit: str, port: str) -> tuple[str, Call]:
    """(line for people, step) that starts a template unit whenever the port appears."""
    name = f"{unit}@{unit_name(port)}.service"
    argv = ("systemctl", "enable", name)
    link = unit_link(unit, port)
    return shlex.join(argv), Call(argv, unless=("test", "-L", link), timeout_s=180.0)


RELOAD_UNITS: Final = Call(("systemctl", "daemon-reload"), status=(0, 1), timeout_s=180.0)
"""Exit code 1: systemd is not the first process, as in a container, and there is nothing to reload."""


# ---------------------------------------------------------------- states


def ports_of(hw: Hardware, nic: str) -> tuple[PortHardware, ...]:
    """Ports in a network that have this NIC."""
    return tuple(port for port in hw.ports if port.nic == nic)


def only(state: NodeState, part: str, names: Iterable[str]) -> NodeState:
    """Just the fields of the named ports that a part owns: "mtu", or "nic" for QoS and marking."""
    wanted = set(names)
    return NodeState(
        ports=tuple(
            PortState(port.name, port.kind, _only(port.settings, part))
            for port in state.ports
            if port.name in wanted
        )
    )


def _only(settings: PortSettings, part: str) -> PortSettings:
    if part == "mtu":
        return PortSettings(mtu=settings.mtu)
    return PortSettings(qos=settings.qos, marking=settings.marking)


def wishes(found: Iterable[Difference]) -> tuple[Difference, ...]:
    """Differences whose wanted side is a value (a recorded state may hold absences)."""
    return tuple(item for item in found if not isinstance(item.wanted, Absent))


def differing(wanted: NodeState, seen: NodeState | None) -> tuple[Difference, ...]:
    """Differences of the ports' settings that can be wished for; none when no port or no layer is given."""
    return wishes(differences(wanted, seen)) if wanted.ports and seen is not None else ()


def merged(*groups: Iterable[Difference]) -> tuple[Difference, ...]:
    """Differences by path, the first group's first."""
    found: dict[str, Difference] = {}
    for group in groups:
        for item in group:
            found.setdefault(item.path, item)
    return tuple(found.values())


def all_fields(kind: type, value: Any) -> Any:
    """An instance of a flat state class with the same absence in every field."""
    return kind(**{item.name: value for item in fields(kind) if item.compare})


def managed(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Those pairs that have a value."""
    for name, value in pairs:
        if not isinstance(value, Absent):
            yield name, value
