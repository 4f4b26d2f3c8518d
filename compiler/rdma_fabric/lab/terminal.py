"""What a device's terminal does with typed bytes: echo, line editing, line ends."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import Literal

Key = Literal["more", "line", "cancel", "end"]


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed last: a whole `line`, ^C (`cancel`), ^D on an empty line (`end`), or `more` to come.

    `echo` is what the terminal has to show for it.
    """

    key: Key
    echo: str
    line: str = ""


@dataclass
class Editor:
    """Turns the bytes of a client into lines and echo.

    `\\r`, `\\n` and `\\r\\n` end a line; backspace, ^U, ^W and ^C work; escape sequences (cursor
    keys, bracketed paste marks) and other control characters are swallowed.
    """

    echo: bool = True
    _line: list[str] = field(default_factory=list)
    _ahead: str = ""
    _after_return: bool = False
    _escape: str = ""
    _decode: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def feed(self, data: bytes) -> None:
        """Add bytes that arrived."""
        self._ahead += self._decode.decode(data)

    def next(self, secret: bool) -> Typed:
        """Consume typed characters up to the next event; `secret` input is not echoed."""
        shown: list[str] = []
        show = self.echo and not secret
        for at, char in enumerate(self._ahead):
            key = self._key(char, shown if show else [])
            if key == "more":
                continue
            self._ahead = self._ahead[at + 1 :]
            line, self._line = "".join(self._line), []
            if key != "end" and self.echo:
                shown.append("^C\r\n" if key == "cancel" else "\r\n")
            return Typed(key, "".join(shown), line)
        self._ahead = ""
        return Typed("more", "".join(shown))

    def _key(self, char: str, shown: list[str]) -> Key:
        """Apply one character to the line; what it shows is appended to `shown`."""
        after_return, self._after_return = self._after_return, char == "\r"
        if self._escape:
            self._continue_escape(char)
        elif char == "\x1b":
            self._escape = char
        elif char == "\n" and after_return:
            pass
        elif char in "\r\n":
            return "line"
        elif char == "\x03":
            return "cancel"
        elif char == "\x04":
            return "more" if self._line else "end"
        elif char in "\x08\x7f\x15\x17":
            self._erase(char, shown)
        elif char == "\t" or char >= " ":
            self._line.append(char)
            shown.append(char)
        return "more"

    def _erase(self, char: str, shown: list[str]) -> None:
        """Backspace takes one character, ^W the last word, ^U the line."""
        text = "".join(self._line)
        kept = {"\x15": "", "\x17": text.rstrip()[: text.rstrip().rfind(" ") + 1]}.get(char, text[:-1])
        shown.append("\b \b" * (len(text) - len(kept)))
        self._line = list(kept)

    def _continue_escape(self, char: str) -> None:
        """Swallow ESC, `[` or `O`, parameters and the final letter (ECMA-48, 5.4)."""
        if self._escape == "\x1b" and char in "[O":
            self._escape += char
        elif self._escape == "\x1b" or "@" <= char <= "~":
            self._escape = ""


def wire(text: str, terminal: bool) -> str:
    """Device text as sent: a terminal gets carriage returns."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if terminal else text


def ended(text: str) -> str:
    """The text with a newline at its end, if there is text."""
    return text if not text or text.endswith("\n") else f"{text}\n"
