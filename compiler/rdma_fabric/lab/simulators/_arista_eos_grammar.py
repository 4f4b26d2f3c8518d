"""Matches typed EOS lines against command patterns, with abbreviations, as the EOS parser does.

A pattern is a line of elements: `word`; `(name:a|b)` one of several words; `<name:68-65535>` a whole
number; `<name:0.01-60/2>` a number with at most two decimals; `<name:0-63>+` one or more numbers;
`{name}` any word; `{name...}` the rest of the line; `[...]` a part that may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Generic, TypeVar

INVALID = "% Invalid input"
INCOMPLETE = "% Incomplete command"
AMBIGUOUS = "% Ambiguous command"
PRIVILEGED = "% Invalid input (privileged mode required)"
UNAVAILABLE = "% Unavailable command (not supported on this hardware platform)"

_NUMBER = re.compile(r"\d+(\.\d+)?")
T = TypeVar("T")


class Refused(Exception):
    """The device does not accept a line; the text is what it prints."""


@dataclass(frozen=True, slots=True)
class Element:
    """One place of a pattern: words to choose from, a range of numbers, or anything."""

    name: str
    words: tuple[str, ...] = ()
    low: Decimal = Decimal(0)
    high: Decimal = Decimal(-1)
    decimals: int = 0
    many: bool = False
    rest: bool = False

    def takes(self, token: str) -> bool:
        """True when the token fits here as a value (words are compared elsewhere)."""
        if self.words:
            return False
        if self.low > self.high:
            return True
        if not _NUMBER.fullmatch(token) or len(token.partition(".")[2]) > self.decimals:
            return False
        return self.low <= Decimal(token) <= self.high


@dataclass(frozen=True, slots=True)
class Args:
    """What the elements of a matched pattern caught."""

    values: Mapping[str, tuple[str, ...]]

    def has(self, name: str) -> bool:
        """True when the part with that element was typed."""
        return name in self.values

    def word(self, name: str, missing: str = "") -> str:
        """The word, or the rest of the line."""
        return " ".join(self.values[name]) if name in self.values else missing

    def number(self, name: str) -> int:
        """The whole number."""
        return int(self.values[name][0])

    def maybe(self, name: str) -> int | None:
        """The whole number, or None when it was not typed."""
        return self.number(name) if name in self.values else None

    def decimal(self, name: str) -> Decimal:
        """The number."""
        return Decimal(self.values[name][0])

    def numbers(self, name: str) -> tuple[int, ...]:
        """All numbers of a list."""
        return tuple(int(value) for value in self.values[name])


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """A pattern and what it stands for."""

    elements: tuple[Element, ...]
    means: T


@dataclass(frozen=True, slots=True)
class _Thread(Generic[T]):
    """One rule, how far it has come, and what it caught."""

    rule: Rule[T]
    at: int
    caught: tuple[tuple[str, str], ...]

    def element(self) -> Element | None:
        return self.rule.elements[self.at] if self.at < len(self.rule.elements) else None


def rules(patterns: Iterable[tuple[str, T]]) -> tuple[Rule[T], ...]:
    """Rules for patterns; each `[...]` makes two."""
    return tuple(
        Rule(_elements(plain), means) for pattern, means in patterns for plain in _without_options(pattern)
    )


def match(line: str, table: Sequence[Rule[T]]) -> tuple[T, Args]:
    """The meaning of the first rule that takes the whole line; Refused as EOS would."""
    threads = [_Thread(rule, 0, ()) for rule in table]
    for token in line.split():
        threads = _step(threads, token)
    for thread in threads:
        ended = thread.at == len(thread.rule.elements)
        listed = bool(thread.caught) and _can_end(thread)
        if ended or listed:
            return thread.rule.means, Args(_gather(thread.caught))
    raise Refused(INCOMPLETE)


def _can_end(thread: _Thread[T]) -> bool:
    """True inside a list or rest that is the last element and has caught something."""
    element = thread.element()
    if element is None or thread.at != len(thread.rule.elements) - 1:
        return False
    return (element.many or element.rest) and thread.caught[-1][0] == element.name


def _step(threads: Sequence[_Thread[T]], token: str) -> list[_Thread[T]]:
    """The threads that take the token: exact words first, then abbreviations, then values."""
    exact: list[_Thread[T]] = []
    short: list[_Thread[T]] = []
    value: list[_Thread[T]] = []
    shortened: set[str] = set()
    for thread in _spread(threads):
        element = thread.element()
        if element is None:
            continue
        meant = _meant(element.words, token)
        if meant:
            moved = _take(thread, element, meant[0])
            (exact if meant[0].lower() == token.lower() else short).append(moved)
            shortened.update(meant)
        elif element.takes(token):
            value.append(_take(thread, element, token))
    if exact:
        return exact
    if len(shortened) > 1:
        raise Refused(AMBIGUOUS)
    if short or value:
        return short or value
    raise Refused(INVALID)


def _spread(threads: Sequence[_Thread[T]]) -> Iterator[_Thread[T]]:
    """Threads inside a list can also go on behind it."""
    for thread in threads:
        yield thread
        element = thread.element()
        if element is not None and element.many and thread.caught and thread.caught[-1][0] == element.name:
            yield _Thread(thread.rule, thread.at + 1, thread.caught)


def _meant(words: tuple[str, ...], token: str) -> list[str]:
    """The words that the token can mean: itself alone, or all that it begins."""
    low = token.lower()
    exact = [word for word in words if word.lower() == low]
    return exact or [word for word in words if word.lower().startswith(low)]


def _take(thread: _Thread[T], element: Element, text: str) -> _Thread[T]:
    caught = (*thread.caught, (element.name, text)) if element.name else thread.caught
    return _Thread(thread.rule, thread.at + (not (element.many or element.rest)), caught)


def _gather(caught: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    values: dict[str, tuple[str, ...]] = {}
    for name, text in caught:
        values[name] = (*values.get(name, ()), text)
    return values


def _without_options(pattern: str) -> Iterator[str]:
    """The pattern with and without its first `[...]`, and so on."""
    start = pattern.find("[")
    if start < 0:
        yield pattern
        return
    depth, end = 0, start
    for end in range(start, len(pattern)):
        depth += {"[": 1, "]": -1}.get(pattern[end], 0)
        if not depth:
            break
    for middle in (pattern[start + 1 : end], ""):
        yield from _without_options(pattern[:start] + middle + pattern[end + 1 :])


@cache
def _elements(pattern: str) -> tuple[Element, ...]:
    return tuple(_element(text) for text in pattern.split())


def _element(text: str) -> Element:
    if text.startswith("("):
        name, _, words = text[1:-1].partition(":")
        return Element(name, words=tuple(words.split("|")))
    if text.startswith("<"):
        many = text.endswith("+")
        name, _, span = text.rstrip("+")[1:-1].partition(":")
        span, _, decimals = span.partition("/")
        low, _, high = span.partition("-")
        return Element(name, (), Decimal(low), Decimal(high), int(decimals or 0), many)
    if text.startswith("{"):
        name = text[1:-1]
        return Element(name.removesuffix("..."), rest=name.endswith("..."))
    return Element("", words=(text,))
