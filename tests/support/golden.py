"""Expected outputs as files: compare with a unified diff, or write anew on `--update-golden`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

_MAX_DIFF_LINES = 200


@dataclass(frozen=True, slots=True)
class Golden:
    """A folder of expected outputs; paths are relative to it."""

    root: Path
    update: bool = False

    def at(self, *parts: str) -> Golden:
        """The same for a sub-folder; `at("..", "errors")` leads to a neighbour."""
        return Golden(self.root.joinpath(*parts).resolve(), self.update)

    def text(self, path: str, actual: str) -> None:
        """Fails with a diff unless the file holds exactly `actual`."""
        self._settle({path: actual})

    def tree(self, folder: str, actual: Mapping[str, str]) -> None:
        """Fails unless `folder` holds exactly these files (relative path -> text), no more and no fewer."""
        top = self.root / folder
        stale = {
            f"{folder}/{name}"
            for file in top.rglob("*")
            if file.is_file() and (name := file.relative_to(top).as_posix()) not in actual
        }
        self._settle({f"{folder}/{name}": text for name, text in actual.items()}, frozenset(stale))

    def _settle(self, actual: Mapping[str, str], stale: frozenset[str] = frozenset()) -> None:
        if self.update:
            self._write(actual, stale)
            return
        wrong = [diff for path, text in sorted(actual.items()) if (diff := self._difference(path, text))]
        wrong += [f"{path}: expected, but not produced" for path in sorted(stale)]
        if wrong:
            wrong.append("If this is meant: make golden, then read the git diff.")
            pytest.fail("\n".join(wrong), pytrace=False)

    def _write(self, actual: Mapping[str, str], stale: frozenset[str]) -> None:
        for path in stale:
            (self.root / path).unlink()
        for path, text in actual.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())

    def _difference(self, path: str, actual: str) -> str:
        file = self.root / path
        if not file.is_file():
            return f"{path}: produced, but not expected"
        # Bytes, because universal newlines would hide a carriage return.
        expected = file.read_bytes().decode()
        if expected == actual:
            return ""
        diff = list(
            difflib.unified_diff(
                expected.splitlines(keepends=True),
                actual.splitlines(keepends=True),
                f"expected {path}",
                f"produced {path}",
            )
        )
        shown = [line if line.endswith("\n") else f"{line}\n\\ no newline at end\n" for line in diff]
        if len(shown) > _MAX_DIFF_LINES:
            shown[_MAX_DIFF_LINES:] = [f"... and {len(shown) - _MAX_DIFF_LINES} more lines of difference\n"]
        return "".join(shown)
