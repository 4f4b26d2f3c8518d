"""Quantities as people write them, with units: 150KB, 64KiB, 200ms, 50%, 400G, 250cells.

Four small value classes and `Threshold`, which is one of four kinds of amount. `parse` is strict: one
spelling per unit, no unit guessed. Each class is also a pydantic type with a JSON Schema pattern. `str()`
gives the shortest spelling that parses back to the same value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from rdma_fabric.findings import BadValue, shown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)(.*)", re.DOTALL)
_LONGEST = 18  # characters; keeps every product exact in the 28 digits of Decimal
_SIZE_UNITS = "B, KB (1000), KiB (1024), MB, MiB, GB, GiB"

_SIZES = {"B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
_SIZE_SLIPS = {
    "K": "KB (1000) or KiB (1024)",
    "KB": "KB (1000) or KiB (1024)",
    "KIB": "KiB (1024)",
    "KBYTE": "KB (1000) or KiB (1024)",
    "M": "MB (1000000) or MiB (1048576)",
    "MB": "MB (1000000) or MiB (1048576)",
    "MIB": "MiB (1048576)",
    "G": "GB or GiB",
    "GB": "GB or GiB",
    "GIB": "GiB",
    "B": "B",
    "BYTE": "B",
    "BYTES": "B",
}
_DURATIONS = {"us": 1, "ms": 10**3, "s": 10**6}
_DURATION_SLIPS = {
    "US": "us", "USEC": "us", "MS": "ms", "MSEC": "ms", "S": "s", "SEC": "s",
    "M": "ms, or minutes as seconds (5 minutes = 300s)", "MIN": "minutes as seconds (5 minutes = 300s)",
    "H": "hours as seconds (1 hour = 3600s)",
}  # fmt: skip
_COUNTS: dict[str, Literal["cells", "segments"]] = {"cells": "cells", "segments": "segments"}
_COUNT_SLIPS = {
    "CELL": "cells",
    "CELLS": "cells",
    "SEGMENT": "segments",
    "SEGMENTS": "segments",
    "SEG": "segments",
}


def _split(value: object, what: str, example: str) -> tuple[Decimal, str]:
    """The number and the unit of what the user wrote; refuses plain numbers, signs, spaces and odd digits."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadValue(f"{_name(value)} is not a {what}", f"write for example {example}")
    text = value if isinstance(value, str) else str(value)
    if text.startswith(("-", "+")):
        raise BadValue(f"{shown(text)} has a sign", f"a {what} is zero or more, for example {example}")
    match = _NUMBER.fullmatch(text)
    if not match or len(text) > _LONGEST:
        raise BadValue(f"{shown(text)} is not a {what}", f"write a number and a unit, for example {example}")
    number, unit = match.groups()
    if unit != unit.strip():
        raise BadValue(f"{shown(text)} has a space in it", f"write {shown(''.join(text.split()))}")
    return Decimal(number), unit


def _name(value: object) -> str:
    """A value that is no text, in the words of YAML."""
    if value is None:
        return "an empty value"
    if isinstance(value, bool):
        return str(value).lower()
    return (
        "a list"
        if isinstance(value, list)
        else "a map"
        if isinstance(value, dict)
        else str(type(value).__name__)
    )


def _unknown_unit(text: object, what: str, unit: str, slips: dict[str, str], units: str) -> BadValue:
    """The error for a missing or misspelt unit; names the unit that was probably meant."""
    if not unit:
        return BadValue(f"{text} has no unit", f"a {what} needs one of {units}")
    meant = slips.get(unit.upper().replace("\u039c", "U"))  # the capital of the micro sign
    help = f"did you mean {meant}?" if meant else f"use one of {units}"
    return BadValue(f"{shown(str(text))} has the unknown unit {shown(unit)}", help)


def _whole(number: Decimal, factor: int, text: object, smallest: str) -> int:
    """`number` times `factor`, when that is a whole number of the smallest unit."""
    product = number * factor
    if product != product.to_integral_value():
        raise BadValue(f"{text} is not a whole number of {smallest}", "use a smaller unit")
    return int(product)


def _shortest(value: int, units: dict[str, int]) -> str:
    """The shortest spelling of `value` with a whole number and one of `units`."""
    spellings = [f"{value // factor}{unit}" for unit, factor in units.items() if value % factor == 0]
    return min(spellings, key=len)


class _Quantity:
    """Makes a value class a pydantic type: text in, the value out, text again when serialised."""

    __slots__ = ()
    _PATTERN: ClassVar[str]
    _EXAMPLES: ClassVar[tuple[str, ...]]
    _ZERO: ClassVar[bool] = True

    @classmethod
    def parse(cls, value: object) -> Self:
        raise NotImplementedError

    @classmethod
    def _accept(cls, value: object) -> Self:
        return value if isinstance(value, cls) else cls.parse(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._accept, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        text: dict[str, Any] = {"type": "string", "pattern": cls._PATTERN}
        schema = {"anyOf": [text, {"const": 0}]} if cls._ZERO else text
        return {**schema, "title": cls.__name__, "examples": list(cls._EXAMPLES)}


@dataclass(frozen=True, slots=True, order=True)
class Size(_Quantity):
    """Memory in bytes, at most 1 TiB: 150KB = 150,000, 64KiB = 65,536, 1500B; 0 needs no unit."""

    bytes: int

    _PATTERN = r"^[0-9]+(\.[0-9]+)?(B|KB|KiB|MB|MiB|GB|GiB)$"
    _EXAMPLES = ("150KB", "64KiB", "3MB", "1500B")
    LIMIT: ClassVar[int] = 2**40

    @classmethod
    def parse(cls, value: object) -> Self:
        """The size that `value` spells; BadValue says what to write instead."""
        number, unit = _split(value, "size", "150KB")
        if not unit and number == 0:
            return cls(0)
        if unit not in _SIZES:
            raise _unknown_unit(value, "size", unit, _SIZE_SLIPS, _SIZE_UNITS)
        size = _whole(number, _SIZES[unit], value, "bytes")
        if size > cls.LIMIT:
            raise BadValue(f"{value} is more than 1024GiB", "no device has such a buffer: check the unit")
        return cls(size)

    def __str__(self) -> str:
        return _shortest(self.bytes, _SIZES)


@dataclass(frozen=True, slots=True, order=True)
class Duration(_Quantity):
    """A time in whole microseconds, at most 30 days: 200ms, 55us, 3s; 0 needs no unit."""

    microseconds: int

    _PATTERN = r"^[0-9]+(\.[0-9]+)?(us|ms|s)$"
    _EXAMPLES = ("200ms", "55us", "3s")
    LIMIT: ClassVar[int] = 30 * 86_400 * 10**6

    @classmethod
    def parse(cls, value: object) -> Self:
        """The duration that `value` spells; BadValue says what to write instead."""
        number, unit = _split(value, "duration", "200ms")
        if not unit and number == 0:
            return cls(0)
        if unit not in _DURATIONS:
            raise _unknown_unit(value, "duration", unit, _DURATION_SLIPS, "us, ms, s")
        time = _whole(number, _DURATIONS[unit], value, "microseconds")
        if time > cls.LIMIT:
            raise BadValue(f"{value} is more than 30 days", "check the unit")
        return cls(time)

    @property
    def milliseconds(self) -> float:
        """The same time in milliseconds, for devices that count so."""
        return self.microseconds / 1000

    @property
    def seconds(self) -> float:
        """The same time in seconds."""
        return self.microseconds / 10**6

    def __str__(self) -> str:
        return _shortest(self.microseconds, _DURATIONS)


@dataclass(frozen=True, slots=True, order=True)
class Percent(_Quantity):
    """A share of 0% to 100% with up to 4 decimals; `AnyPercent` is for shares that may be above."""

    value: float

    _PATTERN = r"^[0-9]+(\.[0-9]{1,4})?%$"
    _EXAMPLES = ("50%", "7%", "0.5%")

    @classmethod
    def parse(cls, value: object, limit: int = 100) -> Self:
        """The share that `value` spells, at most `limit` percent; BadValue says what to write instead."""
        number, unit = _split(value, "percentage", "50%")
        if not unit and number == 0:
            return cls(0.0)
        if unit != "%":
            raise BadValue(f"{shown(str(value))} is not a percentage", f"write {number.normalize():f}%")
        if number > limit:
            raise BadValue(f"{value} is more than {limit}%", f"use a share between 0% and {limit}%")
        if number != number.quantize(Decimal("0.0001")):
            raise BadValue(f"{value} has more than 4 decimals", "round it")
        return cls(float(number))

    def __str__(self) -> str:
        text = f"{self.value:.4f}".rstrip("0").rstrip(".")
        return f"{text}%"


@dataclass(frozen=True, slots=True)
class _UpTo:
    """Marks a Percent field whose value may be above 100%."""

    limit: int

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        def accept(value: object) -> Percent:
            return value if isinstance(value, Percent) else Percent.parse(value, self.limit)

        return core_schema.no_info_plain_validator_function(
            accept, serialization=core_schema.to_string_ser_schema()
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return Percent.__get_pydantic_json_schema__(schema, handler)


AnyPercent = Annotated[Percent, _UpTo(10_000)]
"""A pydantic type: a Percent that may be above 100% (at most 10,000%), such as an oversubscription."""


@dataclass(frozen=True, slots=True, order=True)
class Ratio(_Quantity):
    """Bandwidth below to bandwidth above, "3:1"; each number at most 1000."""

    below: float
    above: float

    _PATTERN = r"^[0-9]+(\.[0-9]+)?:[0-9]+(\.[0-9]+)?$"
    _EXAMPLES = ("1:1", "3:1")
    _ZERO = False

    @classmethod
    def parse(cls, value: object) -> Self:
        """The ratio that `value` spells; BadValue says what to write instead."""
        if not isinstance(value, str) or not re.fullmatch(cls._PATTERN, value):
            raise BadValue(f"{shown(str(value))} is not a ratio", 'write it in quotes, for example "3:1"')
        below, above = (float(part) for part in value.split(":"))
        if not (0 < below <= 1000 and 0 < above <= 1000):
            raise BadValue(f"{value} has a number outside of 1 to 1000", 'write for example "3:1"')
        return cls(below, above)

    @property
    def value(self) -> float:
        """Below divided by above."""
        return self.below / self.above

    def __str__(self) -> str:
        return f"{self.below:g}:{self.above:g}"


@dataclass(frozen=True, slots=True, order=True)
class Speed(_Quantity):
    """The speed of a port or link in Gb/s: 10G, 25G, 40G, 50G, 100G, 200G, 400G, 800G, 1600G."""

    gbps: int

    _PATTERN = r"^(10|25|40|50|100|200|400|800|1600)G$"
    _EXAMPLES = ("100G", "400G")
    _ZERO = False
    ALL: ClassVar[tuple[int, ...]] = (10, 25, 40, 50, 100, 200, 400, 800, 1600)

    @classmethod
    def parse(cls, value: object) -> Self:
        """The speed that `value` spells; BadValue says what to write instead."""
        number, unit = _split(value, "speed", "400G")
        if unit == "G" and number in cls.ALL:
            return cls(int(number))
        meant = cls._meant(number, unit.upper())
        if meant:
            raise BadValue(f"{shown(str(value))} is not written as a speed", f"write {meant}G")
        speeds = ", ".join(f"{gbps}G" for gbps in cls.ALL)
        raise BadValue(f"{shown(str(value))} is not a speed", f"use one of {speeds}")

    @classmethod
    def _meant(cls, number: Decimal, unit: str) -> int:
        """The speed in Gb/s that a misspelling such as 400, 400000M, 0.4T or 400GE stands for, else 0."""
        factor = {"M": Decimal("0.001"), "T": Decimal(1000)}.get(unit[:1], Decimal(1))
        if unit[:1] not in ("", "M", "G", "T") or unit[1:] not in (
            "",
            "E",
            "B",
            "BPS",
            "BIT",
            "BIT/S",
            "B/S",
            "BASE",
        ):
            return 0
        gbps = number * factor
        plain_mbps = number / 1000  # a bare 400000 is what ethtool and config_db mean by 400G
        return next((one for one in cls.ALL if gbps == one or (not unit and plain_mbps == one)), 0)

    def __str__(self) -> str:
        return f"{self.gbps}G"


@dataclass(frozen=True, slots=True)
class Threshold(_Quantity):
    """A queue threshold: bytes (150KB), percent of the queue (55%), 250cells or 120segments.

    No order is defined: amounts in different units compare only once a platform has turned them into bytes.
    """

    value: int
    unit: Literal["bytes", "percent", "cells", "segments"]

    _PATTERN = r"^[0-9]+((\.[0-9]+)?(B|KB|KiB|MB|MiB|GB|GiB)|%|cells|segments)$"
    _EXAMPLES = ("150KB", "55%", "250cells", "120segments")
    LIMIT: ClassVar[int] = 10**9

    @classmethod
    def parse(cls, value: object) -> Self:
        """The threshold that `value` spells; BadValue says what to write instead."""
        number, unit = _split(value, "threshold", "150KB, 55% or 250cells")
        if unit == "%":
            share = Percent.parse(value).value
            if share != int(share):
                raise BadValue(f"{value} is not a whole percentage", f"write {round(share)}%")
            return cls(int(share), "percent")
        count_unit = _COUNTS.get(unit)
        if count_unit is None:
            if unit in _SIZES or (not unit and number == 0):
                return cls(Size.parse(value).bytes, "bytes")
            slips, units = _SIZE_SLIPS | _COUNT_SLIPS, f"{_SIZE_UNITS}, %, cells, segments"
            raise _unknown_unit(value, "threshold", unit, slips, units)
        if number != number.to_integral_value() or number > cls.LIMIT:
            raise BadValue(
                f"{value} is not a number of {unit}", f"write a whole number, at most {cls.LIMIT}{unit}"
            )
        return cls(int(number), count_unit)

    def __str__(self) -> str:
        if self.unit == "bytes":
            return str(Size(self.value))
        return f"{self.value}%" if self.unit == "percent" else f"{self.value}{self.unit}"
