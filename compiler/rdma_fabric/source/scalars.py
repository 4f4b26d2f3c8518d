"""What an unquoted YAML scalar means: YAML 1.2 core schema, and an error where readers disagree."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from rdma_fabric.findings import BadValue, shown

Scalar = str | int | float | bool | None

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_FIRST_OF_NUMBER = frozenset("0123456789+-.")
_LONGEST_INT = 40  # digits; a GUID has 16 hexadecimal ones


@lru_cache(maxsize=8192)
def resolve_plain(text: str) -> Scalar:
    """The value of an unquoted scalar; BadValue for yes/no/on/off, leading zeros and infinite numbers.

    The boolean switches of YAML 1.1: https://yaml.org/type/bool.html; the core schema: YAML 1.2.2, 10.3.2.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _FIRST_OF_NUMBER:
        return _number(text)
    meant = _SWITCHES.get(text.lower())
    if meant:
        raise BadValue(
            f"{text} is a boolean for some YAML readers and text for others",
            f'write {meant}, or "{text}" in quotes if it is text',
        )
    return text


def _number(text: str) -> Scalar:
    """A number, or the text itself when it only starts like one (1:20, 2027-01-31, 150KB)."""
    if _INT.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isfinite(number):
            return number
    elif not _NOT_FINITE.fullmatch(text):
        return text
    raise BadValue(f"{shown(text)} is no finite number", "write a number, or quote it if it is text")


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INT:
        raise BadValue(f"{shown(text)} is too long for a number", "quote it if it is text")
    if text[:2] in ("0o", "0x"):
        return int(text, 0)
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0":
        plain = text.replace(digits, digits.lstrip("0") or "0")
        octal = "text" if set(digits) & {"8", "9"} else str(int(text, 8))
        raise BadValue(
            f"{text} has a leading zero: {plain} for some YAML readers, {octal} for others (octal)",
            f'write {plain}, or "{text}" in quotes if it is text',
        )
    return int(text)
