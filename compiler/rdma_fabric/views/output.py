"""Where text goes: data on stdout, progress and complaints on stderr, colour only on a terminal."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

_CODES = {
    "error": "31;1",
    "warning": "33;1",
    "note": "36",
    "good": "32",
    "dim": "2",
    "bold": "1",
    "add": "32",
    "del": "31",
}


def count(number: int, word: str) -> str:
    """ "1 node", "2 nodes"."""
    return f"{number} {word}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Output:
    """How this run talks. `quiet` drops progress, `verbose` adds detail."""

    color: bool = False
    quiet: bool = False
    verbose: bool = False

    @classmethod
    def make(cls, *, no_color: bool, quiet: bool, verbose: bool) -> Output:
        """From the options and the environment (NO_COLOR, https://no-color.org)."""
        color = not no_color and not os.environ.get("NO_COLOR") and sys.stdout.isatty()
        return cls(color, quiet, verbose)

    def paint(self, text: str, style: str) -> str:
        """`text` in a style when colours are on."""
        code = _CODES.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and code else text

    def data(self, text: str) -> None:
        """To stdout."""
        print(text)

    def say(self, text: str) -> None:
        """Progress, to stderr; not when quiet."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def complain(self, text: str) -> None:
        """Trouble, to stderr; also when quiet."""
        print(text, file=sys.stderr, flush=True)
