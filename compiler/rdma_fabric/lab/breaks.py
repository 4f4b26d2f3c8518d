"""Faults of a node: those between a client and it, and those that befall a host itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

KINDS = ("refuse", "ignore", "drop", "hold", "unreachable", "slow")
MISHAPS = {
    "mtu": "PORT [BYTES]",
    "pfc": "PORT",
    "trust": "PORT",
    "ecn": "PORT",
    "flap": "PORT",
    "reload": "PORT",
    "module": "NAME",
    "lldpad": "[PORT]",
    "nv": "PORT NAME=VALUE",
    "firmware": "PORT VERSION",
    "sysctl": "KEY=VALUE",
    "forget": "FILE",
}
"""Kind of a mishap -> its words; those in brackets may be left out."""
_NEED_PATTERN = ("refuse", "ignore", "drop")
_MAY_COME_AFTER = ("drop", "hold")
_ORDER = ("slow", "hold", "drop", "refuse", "ignore")
_COMPOUND = re.compile(r"(for|while|until|if|case|select|function)\b|[({]")


class BreakError(ValueError):
    """A break that cannot be; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Break:
    """One fault of a node.

    refuse       the node answers a matching line with its own refusal text and does not run it
    ignore       the node accepts a matching line, answers nothing and does not run it
    drop         the connection is cut when a matching line arrives (`after`: when it was run)
    hold         a matching line waits for `release` (`after`: it runs, its answer waits); without
                 a pattern: the line that makes a candidate live
    unreachable  connections are refused, open ones are cut
    slow         every answer comes `seconds` later

    Patterns are regular expressions, searched in one line; `times` > 0 limits how often it works.
    """

    kind: str
    pattern: str = ""
    seconds: float = 0.0
    after: bool = False
    times: int = 0

    def __post_init__(self) -> None:
        """Raise BreakError where the parts do not fit together."""
        if self.kind not in KINDS:
            raise BreakError(f"unknown break '{self.kind}': use one of {', '.join((*KINDS, *MISHAPS))}")
        if self.kind in _NEED_PATTERN and not self.pattern:
            raise BreakError(f"{self.kind} needs a regular expression")
        if self.kind in ("unreachable", "slow") and self.pattern:
            raise BreakError(f"{self.kind} works on the whole node and takes no regular expression")
        if (self.kind == "slow") != (self.seconds > 0):
            raise BreakError("slow, and only slow, needs a number of seconds above 0")
        if self.after and self.kind not in _MAY_COME_AFTER:
            raise BreakError(f"only {' and '.join(_MAY_COME_AFTER)} can come after the line was run")
        if self.times < 0:
            raise BreakError("the number of times cannot be negative")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise BreakError(f"'{self.pattern}' is not a regular expression: {error}") from error

    def hits(self, line: str, commits: bool) -> bool:
        """True when this fault works on the line; `commits`: the line makes a candidate live."""
        if self.kind == "unreachable":
            return False
        if self.kind == "hold" and not self.pattern:
            return commits
        return re.search(self.pattern, line) is not None

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Break:
        """Take back what `to_json` gave."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Mishap:
    """What befalls a host once, behind our back; nothing takes it away but setting it right.

    mtu          somebody sets a port's MTU by hand (4096 unless told otherwise), without storing it
    pfc          PFC of a port is off live; what is stored stays
    trust        a port loses its DSCP entries and so trusts PCP
    ecn          congestion control of a port is off live
    flap         the link of a port goes down and up
    reload       the driver of a port is loaded anew: settings that live in it are lost
    module       somebody unloads a kernel module
    lldpad       the LLDP daemon starts and takes DCB of a port, or of all
    nv           somebody writes a firmware parameter that waits for the next reset
    firmware     a port's adapter runs another firmware version
    sysctl       a package drops a file into /etc/sysctl.d that overrides a key, and loads it
    forget       a file is gone, while the live settings stay
    """

    kind: str
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise BreakError where the words do not fit the kind."""
        usage = MISHAPS[self.kind].split()
        needed = [word for word in usage if not word.startswith("[")]
        fits = len(needed) <= len(self.words) <= len(usage)
        if not fits or ("=" in usage[-1] and not self.words[-1].partition("=")[2]):
            raise BreakError(f"write {' '.join((self.kind, *usage))}")


@dataclass(slots=True)
class Breaks:
    """The faults in force on one node."""

    _uses: list[list[Any]] = field(default_factory=list)

    def add(self, fault: Break) -> None:
        """Put one more fault in force."""
        self._uses.append([fault, fault.times])

    def remove(self, kind: str = "") -> None:
        """End the faults of one kind, or all."""
        self._uses = [use for use in self._uses if kind and use[0].kind != kind]

    def active(self) -> tuple[Break, ...]:
        """The faults in force, oldest first."""
        return tuple(use[0] for use in self._uses)

    def has(self, kind: str) -> bool:
        """True when a fault of that kind is in force."""
        return any(fault.kind == kind for fault in self.active())

    def hit(self, line: str, commits: bool) -> bool:
        """True when any fault works on the line (nothing is used up)."""
        return any(fault.hits(line, commits) for fault in self.active())

    def take(self, line: str, commits: bool) -> tuple[Break, ...]:
        """The faults that work on the line, in the order in which they act; counts them as used."""
        taken = []
        for use in list(self._uses):
            if not use[0].hits(line, commits):
                continue
            taken.append(use[0])
            if use[1]:
                use[1] -= 1
                if not use[1]:
                    self._uses.remove(use)
        return tuple(sorted(taken, key=lambda fault: _ORDER.index(fault.kind)))


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a command line, the operator before it, and whether a fault works on it."""

    joint: str
    text: str
    broken: bool


def parts(command: str, broken: Callable[[str], bool]) -> tuple[Part, ...]:
    """The command cut at `;`, `&&`, `||` and newlines so that each broken piece stands alone.

    Sound pieces that follow each other stay together as typed. A command that cannot be cut without
    knowing the shell (here-documents, compound commands, open quotes) is one piece.
    """
    joined: list[Part] = []
    for joint, text in _cut(command):
        part = Part(joint, text.strip(), broken(text.strip()))
        last = joined[-1] if joined else None
        if last is not None and not last.broken and not part.broken:
            joined[-1] = Part(last.joint, f"{last.text}{_spaced(joint)}{part.text}", False)
        else:
            joined.append(part)
    return tuple(joined)


def _spaced(joint: str) -> str:
    return joint if joint == "\n" else f"{';' if joint == ';' else ' ' + joint} "


def _cut(command: str) -> list[tuple[str, str]]:
    """(operator before, text) for each piece, quotes and backslashes respected."""
    pieces: list[tuple[str, str]] = []
    joint, start, at, quote = "", 0, 0, ""
    while at < len(command):
        char = command[at]
        if char == "\\" and quote != "'":
            at += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif found := next((mark for mark in ("&&", "||", ";", "\n") if command.startswith(mark, at)), ""):
            pieces.append((joint, command[start:at]))
            joint, start = found, at + len(found)
            at = start
            continue
        at += 1
    pieces.append((joint, command[start:]))
    kept = [(joint, text) for joint, text in pieces if text.strip()]
    whole = quote or "<<" in command or any(_COMPOUND.match(text.strip()) for _, text in kept)
    return [("", command)] if whole or not kept else kept
