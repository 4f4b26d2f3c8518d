"""bnxt: options of a card's non-volatile memory, which `niccli nvm` writes and a reboot brings into force.

niccli shows one value, that of the memory. What is in force is told otherwise: RDMA by its device, the other
options by a note in /run of what our own program changed since the boot. Nothing here resets a card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms._contract import Artifact, Call, Change, Disturbance, Disturbs, Fault, Put
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.state import (
    UNKNOWN,
    Absent,
    Difference,
    Maybe,
    NicState,
    NodeState,
    Observation,
)
from rdma_fabric.templating import render_lines

PROGRAM: Final = "/usr/local/sbin/fabric-nv-bnxt"
FOLDER: Final = "/etc/fabric/nv"
NOTES: Final = "/run/fabric/nv"
_TEMPLATE: Final = "nic_bnxt/fabric-nv.sh.j2"


@dataclass(frozen=True, slots=True)
class Option:
    """One option: per function of the card (`-scope`) or for all of it, its words, its largest number."""

    scoped: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    top: int = 1


_BIT: Final = {"false": "0", "true": "1", "disabled": "0", "enabled": "1"}
OPTIONS: Final[Mapping[str, Option]] = {
    "SUPPORT_RDMA": Option(True, _BIT),
    "PERFORMANCE_PROFILE": Option(False, {"default": "0", "roce": "1"}),
    "PCIE_RELAXED_ORDERING": Option(False, _BIT),
    "ENABLE_SRIOV": Option(False, _BIT),
    "NUMBER_OF_VFS_PER_PF": Option(True, {}, 65535),
}
"""By their names in an intent: AMD's and Google's guides call niccli with these, with and without a scope."""
RDMA: Final = "SUPPORT_RDMA"
_NOTHING: Final = "niccli nvm writes what the next reboot brings; the card works on as it is"


@dataclass(frozen=True, slots=True)
class Context:
    """For the program, its settings files, and the line that people see."""

    program: str = PROGRAM
    folder: str = FOLDER
    notes: str = NOTES
    scoped: tuple[str, ...] = tuple(name for name, one in OPTIONS.items() if one.scoped)
    words: tuple[tuple[str, str], ...] = tuple(
        sorted({pair for one in OPTIONS.values() for pair in one.words.items()})
    )
    rows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """For one command as people type it: how niccli is called, an option, its value, the card's function."""

    form: str
    name: str
    value: str
    function: str


# ---------------------------------------------------------------- read


@dataclass(frozen=True, slots=True)
class Asked(qos_file.Asked):
    """For the question: the options to ask for as "name=1" with a scope, "name=" without."""

    options: str = f"{RDMA.lower()}=1"
    always: bool = False
    """Also of a port that has an RDMA device."""
    notes: str = NOTES

    @classmethod
    def named(cls, ports: Iterable[PortHardware], names: Iterable[str]) -> Asked:
        """The ports, and the options that the intent names."""
        asked = sorted(set(names) & set(OPTIONS))
        words = " ".join(f"{name.lower()}={1 if OPTIONS[name].scoped else ''}" for name in asked)
        base = cls.of(ports)
        return cls(base.words, options=words, always=True) if asked else cls(base.words)


def value(name: str, text: str) -> Maybe[str]:
    """What `niccli ... nvm -getoption NAME` prints as NAME = VALUE, as a number."""
    found = re.findall(rf"^\s*{name}\s*[=:]\s*(\S+)\s*$", text, re.MULTILINE | re.IGNORECASE)
    return _number(name, found[0]) or UNKNOWN if len(found) == 1 else UNKNOWN


def _number(name: str, word: str) -> str | None:
    """The number of a word or number; None where the option has no such value."""
    one = OPTIONS.get(name, Option())
    text = one.words.get(word.strip().lower(), word.strip())
    try:
        number = int(text, 0)
    except ValueError:
        return None
    return str(number) if 0 <= number <= one.top else None


@dataclass(frozen=True, slots=True)
class Shown:
    """The options of one port that the intent names: in force, and after the next reboot."""

    running: tuple[tuple[str, Maybe[str]], ...] = ()
    stored: tuple[tuple[str, Maybe[str]], ...] = ()


def shown(parts: Mapping[str, Section], port: str, asked: Iterable[str]) -> Shown:
    """What the port showed of the options that the intent names."""
    notes = host.File("", parts.get(f"nvnotes {port}", Section()).text).pairs()
    running: dict[str, Maybe[str]] = {}
    stored: dict[str, Maybe[str]] = {}
    for name in sorted(set(asked) & set(OPTIONS)):
        section = parts.get(f"nv {name.lower()} {port}", Section())
        stored[name] = value(name, section.text) if section.ok else UNKNOWN
        running[name] = _rdma(parts, port) if name == RDMA else UNKNOWN
        if running[name] is UNKNOWN:
            before = _number(name, notes[name]) if name in notes else None
            running[name] = before or stored[name]
    return Shown(tuple(running.items()), tuple(stored.items()))


def _rdma(parts: Mapping[str, Section], port: str) -> Maybe[str]:
    """RDMA is in force where the port has an RDMA device; without one only if the driver is there."""
    device, driver = (parts.get(f"{word} {port}", Section()) for word in ("device", "bnxt_re"))
    if device.ok and device.text.strip():
        return "1"
    return "0" if device.asked and driver.ok else UNKNOWN


# ---------------------------------------------------------------- realize


def realize(wanted: NicState, port: PortHardware, faults: list[Fault]) -> NicState:
    """Numbers in place of words; what nobody says how to write is dropped with a fault."""
    if port.kind != "physical":
        # They belong to the card, which a VF has no part in.
        return replace(wanted, nv=()) if wanted.nv else wanted
    found: list[tuple[str, Maybe[str]]] = []
    for name, text in wanted.nv:
        used = _number(name, text) if isinstance(text, str) and name in OPTIONS else None
        if not isinstance(text, str):
            found.append((name, text))
        elif used is not None:
            found.append((name, used))
        else:
            faults.append(_refused(port.name, name, text))
    return replace(wanted, nv=tuple(found)) if wanted.nv else wanted


def _refused(port: str, name: str, text: str) -> Fault:
    known = name in OPTIONS
    legal = sorted(OPTIONS[name].words) if known else []
    top = OPTIONS[name].top if known else 0
    return Fault(
        Severity.ERROR,
        port,
        f"nic.nv.{name}",
        text,
        "",
        f"{name.lower()} takes {' or '.join(legal) or f'0 to {top}'}"
        if known
        else "no source says how niccli takes this option",
        "" if known else f"set it by niccli; fabric writes {', '.join(OPTIONS)}",
    )


# ---------------------------------------------------------------- write


def artifacts(wanted: NodeState, ports: Iterable[PortHardware]) -> tuple[Artifact, ...]:
    """The program and a settings file for every port that has options."""
    files = [
        Artifact(
            "_shared/host/port.conf.j2",
            f"{FOLDER}/{port.name}.conf".removeprefix("/"),
            0o644,
            Context(rows=(*_head(port), *rows.items())),
        )
        for port in ports
        if (rows := _rows(wanted, port))
    ]
    return (Artifact(_TEMPLATE, PROGRAM.removeprefix("/"), 0o755, Context()), *files) if files else ()


def _head(port: PortHardware) -> tuple[tuple[str, str], ...]:
    return (("BDF", port.bdf),) if port.bdf else ()


def _rows(state: NodeState | None, port: PortHardware) -> dict[str, str]:
    one = state.port(port.name) if state is not None else None
    pairs = one.settings.nic.nv if one is not None else ()
    return {name: text for name, text in pairs if isinstance(text, str)}


def change(seen: Observation, wanted: NodeState, hw: Hardware, word: str) -> Change:
    """Settings files of changed ports, then the program for each of them; the undo is the old value."""
    steps: list[Put | Call] = []
    undo: list[Call] = []
    lines: list[str] = []
    found: list[Difference] = []
    blocked: list[Difference] = []
    changed: list[str] = []
    for port in host.ports_of(hw, word):
        rows = _rows(wanted, port)
        later = dict(_nv(seen.stored, port))
        now = dict(_nv(seen.running, port))
        wrong = {}
        for name, wish in rows.items():
            have = later.get(name, UNKNOWN)
            item = Difference(f"ports.{port.name}.nic.nv.{name}", wish, have)
            if isinstance(have, Absent):
                blocked.append(item)
            elif have != wish:
                running = now.get(name, UNKNOWN)
                found.append(replace(item, found=running if running != wish else have))
                wrong[name] = have
        if not wrong:
            continue
        changed.append(port.name)
        words = (port.name, *("=".join(one) for one in _head(port)))
        pairs = tuple(f"{name}={rows[name]}" for name in wrong)
        steps += [
            host.put(
                f"{FOLDER}/{port.name}.conf",
                "_shared/host/port.conf.j2",
                Context(rows=(*_head(port), *rows.items())),
            ),
            Call((PROGRAM, *words, *pairs), unless=(PROGRAM, "--check", *words, *pairs), timeout_s=120.0),
        ]
        old = (f"{name}={text}" for name, text in wrong.items())
        undo.insert(0, Call((PROGRAM, *words, *old), timeout_s=120.0))
        lines += [f"{FOLDER}/{port.name}.conf: {pair}" for pair in pairs]
        lines += [_line(port, name, rows[name], dict(seen.facts)) for name in wrong]
    if not steps:
        return Change(blocked=tuple(blocked))
    quiet = Disturbance(Disturbs.NOTHING, tuple(changed), "options in non-volatile memory change", _NOTHING)
    return Change(
        differences=tuple(found),
        blocked=tuple(blocked),
        lines=tuple(lines),
        commit=(host.put(PROGRAM, _TEMPLATE, Context(), 0o755), *steps),
        undo=tuple(undo),
        undo_kind="dead-man",
        disturbs=(quiet,),
        undo_disturbs=(quiet,),
        expected=wanted,
    )


def _nv(state: NodeState | None, port: PortHardware) -> tuple[tuple[str, Maybe[str]], ...]:
    one = state.port(port.name) if state is not None else None
    return one.settings.nic.nv if one is not None else ()


def _line(port: PortHardware, name: str, text: str, facts: Mapping[str, str]) -> str:
    """The command as people would type it."""
    bdf = facts.get(f"bdf {port.name}", "") or port.bdf or "BDF"
    form = facts.get(f"nvform {port.name}", "") or f"--dev {bdf}"
    function = bdf.rpartition(".")[2] if OPTIONS[name].scoped else ""
    (line,) = render_lines("nic_bnxt/nvline.j2", Line(form, name.lower(), text, function))
    return line
