"""OpenSM's partitions.conf, read more strictly than OpenSM does.

OpenSM matches flags by prefix, skips values that it does not like, and at a syntax error drops the whole
file and makes every port a full member of the default partition (osm_prtn_config.c). Here each of
these is a problem with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rdma_fabric.intent.models import DEFAULT_PKEY, IB_RATES, MEMBER_WORDS, RDMA_MTUS
from rdma_fabric.inventory.guids import normal
from rdma_fabric.inventory.subnets import member_order
from rdma_fabric.state import UNMANAGED, Maybe, Partition, Partitions

MTU_CODES: Final[Mapping[int, int]] = dict(enumerate(RDMA_MTUS, 1))
"""1=256, 2=512, 3=1024, 4=2048, 5=4096 (doc/partition-config.txt)."""
RATE_CODES: Final[Mapping[int, str]] = {code: rate for rate, code in IB_RATES.items()}
LINE_LIMIT: Final = 4094
"""Characters of a line that OpenSM reads at once; the rest would be taken for another line."""
_KINDS: Final = ("full", "limited", "both")
_FLAGS: Final = ("ipoib", "mtu", "rate", "sl", "scope", "defmember", "indx0", "Q_Key", "TClass", "FlowLabel")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at a line (from 1) and column of the file, and what to write instead."""

    line: int
    column: int
    message: str
    help: str


@dataclass(frozen=True, slots=True)
class Read:
    """What the file says. `groups`: lines that list multicast groups, which partitions do not show."""

    partitions: Partitions
    problems: tuple[Problem, ...] = ()
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    line: int
    column: int


@dataclass
class _Rule:
    """One statement: words before the colon, words after it."""

    head: list[_Word] = field(default_factory=list)
    members: list[_Word] = field(default_factory=list)
    colon: bool = False
    header_line: int = 0


def read_partitions(text: str) -> Read:
    """The partitions of a file, statements with one P_Key merged; problems in the order of their lines."""
    return _Reader(text).read()


@dataclass
class _Reader:
    text: str
    problems: list[Problem] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    found: dict[int, Partition] = field(default_factory=dict)

    def read(self) -> Read:
        for number, line in enumerate(self.text.split("\n"), 1):
            if len(line) > LINE_LIMIT:
                self._bad(
                    _Word("", number, LINE_LIMIT),
                    "the line is too long",
                    "write members on lines of their own",
                )
        rules = 0
        for rule in self._rules():
            rules += 1
            self._rule(rule)
        if not rules:
            self._bad(_Word("", 1, 1), "no partition definition found", "write NAME=PKEY : MEMBERS ;")
        rows = sorted(self.found.values(), key=lambda one: (one.pkey != DEFAULT_PKEY, one.pkey))
        problems = tuple(sorted(self.problems, key=lambda one: (one.line, one.column)))
        return Read(Partitions(tuple(rows)), problems, tuple(self.groups))

    def _bad(self, word: _Word, message: str, help: str) -> None:
        self.problems.append(Problem(word.line, word.column, message, help))

    # -- words

    def _rules(self) -> Iterator[_Rule]:
        rule = _Rule()
        begun = False
        for number, line in enumerate(self.text.split("\n"), 1):
            rest = line.partition("#")[0]
            at = 0
            for piece in re.split(r"([:;,])", self._hide(rest)):
                word = _Word(
                    piece.replace("\0", ":").strip(), number, at + 1 + len(piece) - len(piece.lstrip())
                )
                at += len(piece)
                if piece == ":" and not rule.colon:
                    rule.colon = True
                elif piece == ";":
                    if begun:
                        yield rule
                    rule, begun = _Rule(), False
                elif piece not in (":", ",") and word.text:
                    begun = True
                    rule.header_line = rule.header_line or number
                    (rule.members if rule.colon else rule.head).append(word)
                    if not rule.colon and number != rule.header_line:
                        self._bad(word, "the words before the colon stand on two lines", "write them on one")
        if begun:
            self._bad(
                (rule.members or rule.head)[-1], "the last statement does not end", "end it with a semicolon"
            )
            yield rule

    def _hide(self, line: str) -> str:
        """Colons inside a group address (mgid=ff12:401b::1) are no separators."""
        return re.sub(
            r"(mgid\s*=\s*)([0-9a-fA-F:]+)", lambda m: m.group(1) + m.group(2).replace(":", "\0"), line
        )

    # -- statements

    def _rule(self, rule: _Rule) -> None:
        if not rule.colon:
            self._bad(rule.head[0], "no partition definition found", "write NAME=PKEY, FLAGS : MEMBERS ;")
            return
        if not rule.head:
            self._bad(rule.members[0], "a partition without a name", "write NAME=PKEY before the colon")
            return
        name, pkey = self._name(rule.head[0])
        one = Partition(name, pkey)
        default = "limited"
        for word in rule.head[1:]:
            flag, _, value = (part.strip() for part in word.text.partition("="))
            if flag == "defmember":
                if value in _KINDS:
                    default = value
                else:
                    self._bad(word, f"defmember={value}", f"write one of {', '.join(_KINDS)}")
            else:
                one = self._flag(one, word, flag, value)
        members = [self._member(word, default) for word in rule.members]
        self._add(replace(one, members=tuple(member for member in members if member)))

    def _name(self, word: _Word) -> tuple[str, int]:
        name, sign, text = (part.strip() for part in word.text.partition("="))
        if not sign and name[:1].isdigit():
            name, text = "", name
        number = _number(text)
        if number is None or not 1 <= number & 0x7FFF <= 0x7FFF or number > 0xFFFF:
            self._bad(word, f"{text or word.text} is not a P_Key", "write NAME=0x0001 to NAME=0x7fff")
            return name, 0
        if number & 0x8000:
            self._bad(word, f"{text} holds the membership bit", f"write 0x{number & 0x7FFF:04x}")
        return name or f"0x{number & 0x7FFF:04x}", number & 0x7FFF

    def _flag(self, one: Partition, word: _Word, flag: str, value: str) -> Partition:
        number = _number(value)
        if flag == "ipoib" and not value:
            return replace(one, ipoib=True)
        if flag == "mtu":
            if number is not None and number in MTU_CODES:
                return replace(one, mtu=MTU_CODES[number])
            code = next((code for code, mtu in MTU_CODES.items() if mtu == number), 5)
            self._bad(word, f"mtu={value} is not a code", f"write mtu={code}: {_codes(MTU_CODES)}")
        elif flag == "rate":
            if number is not None and number in RATE_CODES:
                return replace(one, rate=RATE_CODES[number])
            self._bad(word, f"rate={value} is not a code", "the codes are in doc/partition-config.txt")
        elif flag == "sl":
            if number is not None and 0 <= number <= 15:
                return replace(one, sl=number)
            self._bad(word, f"sl={value} is not a service level", "write 0 to 15")
        elif flag == "scope":
            if number is not None and 1 <= number <= 15:
                return replace(one, scope=number)
            self._bad(word, f"scope={value} is not a scope", "write 1 to 15 (2 = link-local)")
        elif flag not in _FLAGS or (flag in ("ipoib", "indx0") and value):
            self._bad(word, f"{word.text} is not a flag", f"known: {', '.join(_FLAGS)}")
        return one

    def _member(self, word: _Word, default: str) -> str:
        who, sign, kind = (part.strip() for part in word.text.partition("="))
        if who == "mgid":
            self.groups.append(word.line)
            return ""
        if who in [flag for flag in _FLAGS if flag not in ("defmember",)] and self.groups[-1:] == [word.line]:
            return ""  # flags of the group that the line lists
        guid = normal(who) if who.lower().startswith("0x") else ""
        if who not in MEMBER_WORDS and not guid and not _short_guid(who):
            self._bad(word, f"bad PortGUID {who}", f"write 0x and 16 digits, or {', '.join(MEMBER_WORDS)}")
            return ""
        if sign and kind not in _KINDS:
            self._bad(word, f"{who}={kind}", f"write one of {', '.join(_KINDS)}")
            return ""
        return f"{guid or _short_guid(who) or who}={kind if sign else default}"

    def _add(self, one: Partition) -> None:
        if not one.pkey:
            return
        old = self.found.get(one.pkey)
        if old is not None:
            said = {**_by_who(old.members), **_by_who(one.members)}
            members = tuple(f"{who}={kind}" for who, kind in said.items())
            first, second = (old, one) if old.ipoib or not one.ipoib else (one, old)
            one = replace(first, name=old.name, ipoib=first.ipoib or second.ipoib, members=members)
        self.found[one.pkey] = replace(one, members=tuple(sorted(one.members, key=member_order)))


def _by_who(members: tuple[str, ...]) -> dict[str, str]:
    return dict(member.split("=", 1) for member in members)


def _number(text: str) -> int | None:
    """A number as strtoul takes it: decimal, 0x, or octal with a leading 0."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        return int(text, 16)
    if re.fullmatch(r"0[0-7]+", text):
        return int(text, 8)
    return int(text) if re.fullmatch(r"\d+", text) else None


def _short_guid(text: str) -> str:
    """A GUID with leading zeros left out, in full; "" for what is none."""
    number = _number(text)
    return f"0x{number:016x}" if number and number < 1 << 64 else ""


def _codes(table: Mapping[int, int]) -> str:
    return ", ".join(f"{code}={value}" for code, value in table.items())


def code_of_mtu(mtu: int) -> int:
    """The code of an MTU in bytes."""
    return {value: code for code, value in MTU_CODES.items()}[mtu]


def code_of_rate(rate: Maybe[str]) -> int:
    """The code of a rate; 0 where none is wished."""
    return 0 if rate is UNMANAGED or not isinstance(rate, str) else IB_RATES[rate]
