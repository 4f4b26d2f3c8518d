"""Names with ranges: leaf[01-08], Ethernet[1-64]/1, gpu[1-4,7]; expanding, zipping, and the way back.

Every name that leaves this module is plain ASCII of a small alphabet, so that it can stand in a device line,
a path or a report without quoting.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from rdma_fabric.findings import BadValue, natural, shown

NAME_LIMIT = 64
"""Longest name; Linux allows host names of 64 characters (HOST_NAME_MAX), no port name comes near."""
COUNT_LIMIT = 100_000
"""Most names that one text may stand for: a slip such as [1-1000000] ends here, not in memory."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
_ODD = re.compile(r"[^A-Za-z0-9._:/-]")
_PART = re.compile(r"\[([^\[\]]*)\]")
_ITEM = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_DIGITS = re.compile(r"([0-9]+)")


def check_name(name: str, *, longest: int = NAME_LIMIT) -> str:
    """`name`, when it is a legal name of a node or port; else BadValue that names the character."""
    if not name:
        raise BadValue("the name is empty", "give it a name")
    if len(name) > longest:
        raise BadValue(f"{shown(name)} has {len(name)} characters", f"use at most {longest}")
    if not _NAME.fullmatch(name):
        raise _odd_name(name)
    return name


def check_node_name(name: str) -> str:
    """`name`, when it is legal for a node: as `check_name`, without / and :, since it names a folder too."""
    check_name(name)
    for odd in "/:":
        if odd in name:
            raise BadValue(
                f"{shown(name)} contains {odd}", "a node name is letters, digits, '.', '_' and '-'"
            )
    return name


def _odd_name(name: str) -> BadValue:
    """Why `name` is not a name: the first character that may not be there, with its code point."""
    odd = _ODD.search(name)
    if odd is None:
        return BadValue(f"{shown(name)} starts with {shown(name[0])}", "start it with a letter or a digit")
    char = odd.group()
    what = f"U+{ord(char):04X} {unicodedata.name(char, 'control character')}"
    text = f"{shown(name)} has {what} at character {odd.start() + 1}"
    return BadValue(text, "use ASCII letters, digits, '.', '_', ':', '/' and '-' only")


def expand(text: str, *, longest: int = NAME_LIMIT) -> tuple[str, ...]:
    """The names that `text` stands for, left range slowest: a[1-2]b[3-4] gives a1b3 a1b4 a2b3 a2b4."""
    if "[" not in text and "]" not in text:
        return (check_name(text, longest=longest),)
    parts = _PART.split(text)
    stray = next((part for part in parts[::2] if "[" in part or "]" in part), None)
    if stray is not None:
        raise _unbalanced(text)
    fields = [_numbers(part, text) if index % 2 else (part,) for index, part in enumerate(parts)]
    count = math.prod(len(field) for field in fields)
    if count > COUNT_LIMIT:
        raise BadValue(f"{shown(text)} stands for {count} names", f"at most {COUNT_LIMIT} in one range")
    names = tuple(map("".join, itertools.product(*fields)))
    check_name("".join(field[0] for field in fields), longest=len(text))
    check_name("".join(max(field, key=len) for field in fields), longest=longest)
    if len(set(names)) != count:
        twice = next(name for name, other in itertools.pairwise(sorted(names)) if name == other)
        raise BadValue(f"{shown(text)} gives {shown(twice)} twice", "let the ranges not overlap")
    return names


def _unbalanced(text: str) -> BadValue:
    """Why the brackets of `text` do not pair."""
    depth = 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if depth > 1:
            return BadValue(f"{shown(text)} has a range inside a range", "write [1-4,7], not nested brackets")
        if depth < 0:
            return BadValue(f"{shown(text)} has a ] without a [", "write a range as [01-08]")
    return BadValue(f"{shown(text)} has a [ without a ]", "write a range as [01-08]")


def _numbers(inside: str, text: str) -> tuple[str, ...]:
    """The numbers of one bracket, as text with their zeros."""
    if not inside:
        raise BadValue(f"{shown(text)} has an empty range", "write numbers, as in [01-08]")
    items = [_item(item, text) for item in inside.split(",")]
    written = [number for item in items for number in item]
    padded = any(len(number) > 1 and number[0] == "0" for number in written)
    if padded and len({len(number) for number in written}) > 1:
        help = "write every number of a range with the same number of digits, as in [01-08]"
        raise BadValue(f"{shown(text)} pads [{inside}] unequally", help)
    total = sum(int(last) - int(first) + 1 for first, last in items)
    if total > COUNT_LIMIT:
        raise BadValue(
            f"{shown(text)} stands for {total} names or more", f"at most {COUNT_LIMIT} in one range"
        )
    width = len(written[0]) if padded else 0
    return tuple(f"{n:0{width}d}" for first, last in items for n in range(int(first), int(last) + 1))


def _item(item: str, text: str) -> tuple[str, str]:
    """First and last number of one item such as 01-08 or 7."""
    match = _ITEM.fullmatch(item)
    if not match:
        help = "a range is numbers only, as in [01-08] or [1-4,7]; no letters, steps or spaces"
        raise BadValue(f"{shown(text)} has {shown(item)} in a range", help)
    first, last = match[1], match[2] or match[1]
    if int(last) < int(first):
        raise BadValue(f"{shown(text)} has a reversed range [{item}]", f"write [{last}-{first}]")
    return first, last


def zip_ranges(*texts: str, longest: int = NAME_LIMIT) -> tuple[tuple[str, ...], ...]:
    """Rows of names taken side by side; each text gives the same count or one name, which repeats."""
    columns = [expand(text, longest=longest) for text in texts]
    counts = {len(column) for column in columns} - {1}
    if len(counts) > 1:
        told = ", ".join(f"{text} gives {len(names)}" for text, names in zip(texts, columns, strict=True))
        raise BadValue(f"the ranges do not pair: {told}", "give each side the same count, or one name")
    rows = max(map(len, columns), default=0)
    return tuple(zip(*(names * rows if len(names) == 1 else names for names in columns), strict=True))


def collapse(names: Iterable[str]) -> str:
    """The names as ranges in natural order, for reports: leaf[01-08]; texts that share no form stay apart."""
    rows = [tuple(_DIGITS.split(name)) for name in sorted(set(names), key=natural)]
    deepest = max((len(row) for row in rows), default=0)
    for field in range(deepest - 2, 0, -2):
        rows = list(_merge(rows, field))
    return ",".join("".join(row) for row in rows)


def _merge(rows: Sequence[tuple[str, ...]], field: int) -> Iterator[tuple[str, ...]]:
    """Rows that differ in `field` only become one row with a range in its place; shorter rows pass."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for row in rows:
        groups.setdefault((row[:field], row[field + 1 :]), []).extend(row[field : field + 1])
    for (before, after), numbers in groups.items():
        if not numbers:
            yield before
        for merged in _by_width(numbers):
            yield (*before, merged, *after)


def _by_width(numbers: Sequence[str]) -> Iterator[str]:
    """One range text per way of padding; unpadded numbers join a padded range of their width."""
    widths = {len(number) for number in numbers if len(number) > 1 and number[0] == "0"}
    groups: dict[int, list[str]] = {}
    for number in numbers:
        groups.setdefault(len(number) if len(number) in widths else 0, []).append(number)
    for width, group in groups.items():
        yield _bracket(sorted(map(int, group)), width)


def _bracket(numbers: Sequence[int], width: int) -> str:
    """Sorted numbers as [01-04,07], or the bare number when there is one."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    text = ",".join("-".join(f"{number:0{width}d}" for number in run) for run in runs)
    return text if len(numbers) == 1 else f"[{text}]"
