"""Names of rows: which row of a table says what a port or queue wants, and who else uses it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Final, Generic, TypeVar

from rdma_fabric.platforms._sonic_read import Tables, reference, span

C = TypeVar("C", bound=Hashable)
S = TypeVar("S", bound=Hashable)

OWN: Final = "FABRIC"
"""Names of our rows start with it; such a row is ours to change and, when nothing refers to it, to remove."""


@dataclass
class Chooser(Generic[S, C]):
    """Finds a row for every content that slots want, changing or adding as few rows as possible.

    A row that other slots use too is never changed. A binding is changed only when it must be: the
    updater takes the port down for it, while a change inside the row keeps the port up.
    """

    rows: Mapping[str, Mapping[str, str]]
    refs: Mapping[S, str]
    """Which row every slot of the switch uses now, foreign slots included."""
    matches: Callable[[Mapping[str, str], C], bool]
    editable: Callable[[str, Mapping[str, str], C], bool]
    edited: dict[str, C] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def name(self, content: C, slots: list[S], fresh: Iterable[str]) -> str:
        """The row's name for these slots; `edited` says which rows must be written."""
        bound = list(dict.fromkeys(self.refs[slot] for slot in slots if slot in self.refs))
        own = [name for name in self.rows if name.startswith(OWN)]
        for name in chain(bound, own, self.rows):
            if name in self.rows and name not in self.edited and self.matches(self.rows[name], content):
                self.kept.add(name)
                return name
        for name in bound:
            if self._free(name, slots) and self.editable(name, self.rows[name], content):
                self.edited[name] = content
                return name
        name = next(name for name in fresh if name not in self.rows and name not in self.edited)
        self.edited[name] = content
        return name

    def _free(self, name: str, slots: list[S]) -> bool:
        used = {slot for slot, bound in self.refs.items() if bound == name}
        return name in self.rows and name not in self.edited and name not in self.kept and used <= set(slots)


def numbered(base: str, separator: str) -> Iterator[str]:
    """FABRIC, FABRIC_2, FABRIC_3 ..."""
    yield base
    for number in count(2):
        yield f"{base}{separator}{number}"


def by_content(wants: Mapping[S, tuple[Hashable, C]]) -> dict[tuple[Hashable, C], list[S]]:
    """(group, content) -> slots, in order of appearance."""
    found: dict[tuple[Hashable, C], list[S]] = {}
    for slot, want in wants.items():
        found.setdefault(want, []).append(slot)
    return found


def queue_refs(tables: Tables, name: str) -> dict[tuple[str, int], str]:
    """(port, queue) -> the row that its field `name` refers to; keys of other shapes count as users too."""
    found: dict[tuple[str, int], str] = {}
    for key, row in sorted(tables.get("QUEUE", {}).items(), key=lambda item: -len(item[0])):
        port, _, numbers = key.rpartition("|")
        if name in row:
            for queue in span(numbers) or (-1,):
                found[(port or key, queue)] = reference(row, name)
    return found
