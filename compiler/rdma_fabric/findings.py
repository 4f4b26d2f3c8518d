"""What every stage reports: a finding says where, what was found, what is wanted and what to do next.

Findings are values. Rules return them, the loader raises them in an `InputError`, views turn them into text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

_LONGEST_SLIP = 100  # characters; difflib's time grows with the square
_DIGITS = re.compile(r"([0-9]+)")

INPUT_CODES: dict[str, str] = {
    "file": "FAB001",
    "yaml-syntax": "FAB002",
    "yaml-duplicate-key": "FAB003",
    "yaml-implicit-type": "FAB004",
    "schema": "FAB005",
    "unknown-key": "FAB006",
    "csv": "FAB007",
    "reference": "FAB008",
}
"""Name -> code of what can be wrong with an input file; FAB009 is kept free for one more."""


class Severity(IntEnum):
    """How bad a finding is; members compare, `str()` gives the word that people read."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in an input file; line and column count from 1, line 0 means the file as a whole."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the fabric; empty strings mean "not narrowed down to that"."""

    node: str = ""
    port: str = ""
    link: str = ""
    network: str = ""

    def __str__(self) -> str:
        where = " ".join(word for word in (self.node, self.port) if word)
        if self.link and not where:
            where = f"link {self.link}"
        if self.network and not where:
            where = f"network {self.network}"
        return where


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause, told once: `message` is the headline without the code, `help` the next step."""

    code: str
    name: str
    severity: Severity
    places: tuple[Place, ...]
    setting: str
    found: str
    wanted: str
    peer: str
    position: Position | None
    help: str
    message: str
    reason: str = ""
    affected: tuple[str, ...] = ()
    count: int = 1
    waived: str = ""
    excerpt: str = field(default="", compare=False)
    """The source line with a caret below, where the finding comes from an input file."""

    def sort_key(self) -> tuple[object, ...]:
        """Reports are ordered by position, then by the nodes' natural order; no position comes last."""
        at = self.position
        where = (0, natural(at.file), at.line, at.column) if at else (1, natural(""), 0, 0)
        places = tuple((natural(p.node), natural(p.port), natural(p.link), p.network) for p in self.places)
        return (*where, places, self.code, self.setting, self.message)


class InputError(Exception):
    """The input cannot be used (exit code 2); carries every finding of the stage, in report order."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(sorted(set(findings), key=Finding.sort_key))
        super().__init__(self.findings)

    def __str__(self) -> str:
        return "\n".join(
            f"{one.position or '-'}: {one.code} {one.name}: {one.message}" for one in self.findings
        )


class BadValue(ValueError):
    """A value that the user wrote is wrong; `text` says why, `help` what to write instead."""

    def __init__(self, text: str, help: str) -> None:
        self.text, self.help = text, help
        super().__init__(text, help)

    def __str__(self) -> str:
        return f"{self.text}; {self.help}"


INPUT_DOCS: dict[str, str] = {
    "file": "A file cannot be read or written, or is not of the kind that the command needs.",
    "yaml-syntax": "The file is not YAML; the place is where reading stopped or an open construct began.",
    "yaml-duplicate-key": "A key stands twice in one map; most readers would silently keep the last.",
    "yaml-implicit-type": "A plain value that YAML readers disagree about (on, 026, a bare key): quote it.",
    "schema": "A value is not of the form that its key takes.",
    "unknown-key": "A key that no version of the schema has; usually a misspelling.",
    "csv": "A line of cables.csv is not a cable: wrong number of fields, ranges that do not zip, no metres.",
    "reference": "Something is named that does not exist: a node, port, group, platform, selector or fact.",
}
"""What the findings about input files mean; `fabric explain` prints them beside the rules."""


def input_finding(
    name: str,
    message: str,
    position: Position | None,
    help: str,
    *,
    setting: str = "",
    found: str = "",
    wanted: str = "",
    places: tuple[Place, ...] = (),
    excerpt: str = "",
) -> Finding:
    """An error about an input file; `name` is a key of INPUT_CODES."""
    return Finding(
        code=INPUT_CODES[name],
        name=name,
        severity=Severity.ERROR,
        places=places,
        setting=setting,
        found=found,
        wanted=wanted,
        peer="",
        position=position,
        help=help,
        message=message,
        excerpt=excerpt,
    )


def check_tuple(finding: Finding) -> tuple[str, tuple[str, ...], int]:
    """What tests compare: code, places as text, line (0 without a position)."""
    line = finding.position.line if finding.position else 0
    return finding.code, tuple(str(place) for place in finding.places), line


def natural(text: str) -> tuple[str, ...]:
    """Sort key in which leaf2 comes before leaf10 and leaf before leaf0; compare only with its own kind."""
    parts = _DIGITS.split(text)
    # A number sorts by its length first; the empty string after the last part sorts before every number.
    parts[1::2] = [chr(len(number)) + number for number in (digits.lstrip("0") for digits in parts[1::2])]
    return (*parts, "", text)


def shown(text: str, limit: int = 60) -> str:
    """`text` quoted and safe for a terminal: one line, at most `limit` characters, nothing invisible."""
    short = text if len(text) <= limit else text[: limit - 3] + "..."
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in short)
    return f"'{plain}'"


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The choice closest to `word`, or "" when none is close enough to be worth suggesting."""
    if len(word) > _LONGEST_SLIP:
        return ""
    by_lower: dict[str, str] = {}
    for choice in choices:
        by_lower.setdefault(choice.lower(), choice)
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else ""


@dataclass(frozen=True, slots=True)
class Check:
    """A kind of finding of `fabric verify`; `step` is the one that makes it, `doc` what it means."""

    code: str
    name: str
    severity: Severity
    step: str
    doc: str


_HEALTH: tuple[tuple[str, Severity, str, str], ...] = (
    ("node-not-read", Severity.ERROR, "reading", "A node did not answer: nothing is known of its health."),
    (
        "frame-errors",
        Severity.ERROR,
        "counters",
        "A port received broken frames, symbols or FEC codewords between two reads: cable, transceiver, "
        "dirt, or the sender at the other end.",
    ),
    (
        "lossless-drops",
        Severity.ERROR,
        "counters",
        "Packets of a lossless class were dropped: PFC did not stop the sender in time (headroom, cable "
        "length, a neighbour without PFC), or packets came without their mark.",
    ),
    (
        "pause-storm",
        Severity.ERROR,
        "counters",
        "A watchdog found a queue stopped by pause for too long, and dropped or forwarded what waited there.",
    ),
    ("link-flapped", Severity.ERROR, "counters", "A link went down between two reads."),
    (
        "pause-grows",
        Severity.WARNING,
        "counters",
        "A port sends PFC pause: something behind it is full. Bursts are normal under load, a steady rate is "
        "congestion or a slow receiver. Above `verify.pause` of the intent it is an error.",
    ),
    (
        "discards-grow",
        Severity.WARNING,
        "counters",
        "A port discards packets and does not say of which class.",
    ),
    (
        "retries-grow",
        Severity.WARNING,
        "counters",
        "RDMA packets are sent anew or come out of order: loss somewhere on their way, or adaptive routing.",
    ),
    ("congestion", Severity.NOTE, "counters", "ECN marks, or InfiniBand ports that wait for credits."),
    ("not-as-intended", Severity.ERROR, "config", "A setting is not as the intent wants it: `fabric drift`."),
    ("link-slow", Severity.ERROR, "speed", "A link came up with less speed or fewer lanes than planned."),
    ("link-down", Severity.ERROR, "speed", "A planned link is down."),
    (
        "manager-missing",
        Severity.ERROR,
        "sm",
        "An InfiniBand subnet does not have exactly one master, or (a warning) no standby is ready.",
    ),
    (
        "rdma-mtu-low",
        Severity.ERROR,
        "mtu",
        "The active_mtu of an RDMA device is below rdma.mtu of the intent.",
    ),
    (
        "path-mtu-low",
        Severity.ERROR,
        "paths",
        "Packets as large as RDMA needs do not arrive although small ones do: a hop drops them in silence.",
    ),
    ("path-silent", Severity.ERROR, "paths", "A host does not answer a small ping of another one."),
    ("bandwidth-low", Severity.ERROR, "perftest", "A pair of hosts is below the intent's pass mark."),
    ("collective-low", Severity.ERROR, "nccl", "nccl-tests are below the intent's pass mark, or failed."),
    (
        "worse-than-baseline",
        Severity.WARNING,
        "baseline",
        "Something got worse since the baseline.",
    ),
)
HEALTH: tuple[Check, ...] = tuple(Check(f"FAB{101 + number}", *row) for number, row in enumerate(_HEALTH))
"""What `verify` can find; codes follow the order, so new ones go to the end."""


def health_check(word: str) -> Check | None:
    """The check of that code or name."""
    return next((one for one in HEALTH if word in (one.code, one.code.lower(), one.name)), None)
