"""Building blocks of simulated attribute trees: files that read and write, folders, and numbers.

A refusal is an OSError, which the writer's write(2) returns.
"""

from __future__ import annotations

import errno
import os

from .driver import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Reader = Callable[[], str]
    Writer = Callable[[str], None]


class File:
    """An attribute; without a writer it is read-only."""

    def __init__(self, read: Reader, write: Writer | None = None) -> None:
        self.read, self.write = read, write


class Folder:
    """Names -> what is there; `make` and `drop` are what mkdir and rmdir do, where they are allowed."""

    def __init__(self, children: Callable[[], dict[str, Folder | File]] | None = None) -> None:
        self._static: dict[str, Folder | File] = {}
        self._children = children

    def add(self, name: str, node: Folder | File) -> None:
        """Put a child in."""
        self._static[name] = node

    def at(self, names: Sequence[str]) -> Folder:
        """A folder below, made if need be."""
        if not names:
            return self
        below = self._static.setdefault(names[0], Folder())
        assert isinstance(below, Folder)
        return below.at(names[1:])

    def children(self) -> dict[str, Folder | File]:
        """What is in the folder now."""
        return {**self._static, **(self._children() if self._children else {})}

    def make(self, name: str) -> None:
        """Mkdir."""
        raise refuse(errno.EPERM)

    def drop(self, name: str) -> None:
        """Rmdir."""
        raise refuse(errno.EPERM)


def integer(text: str, most: int, base: int = 0) -> int:
    """A number as the kernel's kstrto* takes it, else EINVAL."""
    try:
        value = int(text.strip(), base)
    except ValueError as error:
        raise refuse(errno.EINVAL) from error
    if not 0 <= value <= most:
        raise refuse(errno.EINVAL)
    return value


def walk(root: Folder, path: str) -> Folder | File:
    """What is at the path; ENOENT otherwise."""
    node: Folder | File = root
    for name in filter(None, path.split("/")):
        below = node.children().get(name) if isinstance(node, Folder) else None
        if below is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        node = below
    return node
