"""The verdict of `check` or `verify` as one value, whichever format it is written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rdma_fabric.checker.registry import Documented
from rdma_fabric.findings import Check, Finding, Place, Position, Severity

_WAIVED = re.compile(r"until (\d{4}-\d{2}-\d{2}): (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the input files lie: reports name them relative to the repository that holds them."""

    root: Path
    """The git work tree around the fabric's folder, else that folder; absolute."""
    folder: str = ""
    """The fabric's folder relative to `root`, with / between; empty when it is the root."""

    def path(self, file: str) -> str:
        """`file` (a Position's, relative to the working directory) relative to the root; "" when outside."""
        given = Path(file)
        try:
            # The parent only: a file that is a link is reviewed under the name that it has in the repository.
            found = (given.parent.resolve() / given.name).relative_to(self.root)
        except (ValueError, OSError, RuntimeError):  # RuntimeError: a loop of links
            return ""
        return found.as_posix()

    def at(self, position: Position | None) -> str:
        """The position with the file's name relative to the root; as it is when outside."""
        path = self.path(position.file) if position else ""
        return str(replace(position, file=path)) if position and path else str(position or "")

    @property
    def intent(self) -> str:
        """The intent file, which stands for the fabric where a finding has no place in a file."""
        return f"{self.folder}/fabric.yaml" if self.folder else "fabric.yaml"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a command found. Without `loaded` the input could not be used and only its findings count."""

    findings: tuple[Finding, ...]
    source: Source
    fabric: str = ""
    """Name of the intent."""
    nodes: int = 0
    rejected: tuple[str, ...] = ()
    rejected_short: str = ""
    """The same as ranges: leaf[01-04]."""
    affected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    not_judged: tuple[tuple[str, str, int], ...] = ()
    rules: tuple[Documented, ...] = ()
    strict: bool = False
    loaded: bool = True
    command: str = "check"
    """The command that found it."""
    checks: tuple[Check, ...] = ()
    """What it can find besides `rules`."""

    @property
    def counts(self) -> dict[Severity, int]:
        """Findings that are not waived, by severity, worst first."""
        return {
            severity: sum(1 for one in self.findings if one.severity is severity and not one.waived)
            for severity in sorted(Severity, reverse=True)
        }

    @property
    def waived(self) -> tuple[Finding, ...]:
        """Findings that a waiver in force accepts."""
        return tuple(one for one in self.findings if one.waived)

    def fails(self, one: Finding) -> bool:
        """True when this finding makes the exit code 1 (or 2)."""
        return not one.waived and one.severity >= (Severity.WARNING if self.strict else Severity.ERROR)


def waiver_parts(waived: str) -> tuple[str, str]:
    """End date and reason of a finding's `waived`."""
    match = _WAIVED.fullmatch(waived)
    return (match[1], match[2]) if match else ("", waived)


def where(place: Place) -> str:
    """A place in words; the whole fabric when it says nothing."""
    return str(place) or "the fabric"


def sections(doc: str) -> dict[str, str]:
    """A rule's documentation as heading -> text; the first line has the heading ""."""
    title, _, rest = doc.strip().partition("\n")
    found = {"": title.strip()}
    heading = ""
    for line in rest.splitlines():
        if line and not line[0].isspace():
            heading = line.strip()
            found[heading] = ""
        elif heading:
            found[heading] += line.removeprefix("    ") + "\n"
    return {key: text.strip("\n") for key, text in found.items()}


def details(one: Finding) -> list[tuple[str, str]]:
    """(word, text) of all that a finding says beside its headline."""
    values = (
        ("setting", one.setting if one.places and one.setting not in one.message else ""),
        ("found", one.found),
        ("wanted", one.wanted),
        ("peer", one.peer),
        ("why", one.reason),
        ("waived", one.waived),
        ("help", one.help),
    )
    return [(word, text) for word, text in values if text]


__all__ = ["Source", "Verdict", "details", "sections", "waiver_parts", "where"]
