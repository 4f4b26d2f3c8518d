"""OpenSM's partitions.conf, read more strictly than OpenSM does.

OpenSM matches words by prefix, skips values that it does not like, and at a syntax error drops the whole
file and makes every port a full member of the default partition (osm_prtn_config.c, osm_prtn.c). Here each
of these is a problem with its line, and the result is what OpenSM makes of the text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rdma_fabric.intent.models import DEFAULT_PKEY, IB_RATES, MEMBER_WORDS, RDMA_MTUS
from rdma_fabric.inventory.guids import normal
from rdma_fabric.inventory.subnets import GROUP_WORDS, belongs, is_broadcast, member_order
from rdma_fabric.state import UNMANAGED, Maybe, Partition, Partitions

MTU_CODES: Final[Mapping[int, int]] = dict(enumerate(RDMA_MTUS, 1))
"""1=256, 2=512, 3=1024, 4=2048, 5=4096 (doc/partition-config.txt)."""
RATE_CODES: Final[Mapping[int, str]] = {code: rate for rate, code in IB_RATES.items()}
LINE_LIMIT: Final = 4094
"""Characters of a line that OpenSM reads at once; the rest would be taken for another line."""
NOT_AS_WRITTEN: Final = 0
"""MTU of a partition with a value that OpenSM skips or cannot realize: equal to no wish."""
_KINDS: Final = ("full", "both", "limited")
_FLAGS: Final = ("mtu", "rate", "scope", "Q_Key", "TClass", "sl", "FlowLabel", "ipoib", "defmember", "indx0")
"""In the order in which OpenSM tries them; but for the last one a prefix is enough for it."""
_LOST: Final = ("Q_Key", "TClass", "FlowLabel")
"""Flags that nothing here keeps."""
_MEMBERS: Final = ("NONE", "ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF")
"""In the order in which OpenSM tries them; a prefix is enough."""
_NAME_LIMIT: Final = 31
_SPACE: Final = " \t"
"""What OpenSM skips; a space of another kind is part of the word to it (run)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at a line (from 1) and column of the file, and what to write instead."""

    line: int
    column: int
    message: str
    help: str
    drops: bool = False
    """True: OpenSM drops the whole file for it."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the file says."""

    partitions: Partitions
    problems: tuple[Problem, ...] = ()

    @property
    def dropped(self) -> bool:
        """True when OpenSM does not use the file: every port is a full member of the default partition."""
        return any(one.drops for one in self.problems)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    line: int
    column: int

    @property
    def pair(self) -> tuple[str, str, str]:
        """(name, "=", value) without space around them."""
        name, sign, value = (part.strip(_SPACE) for part in self.text.partition("="))
        return name, sign, value


@dataclass
class _Rule:
    """One statement: words before the colon, words after it."""

    head: list[_Word] = field(default_factory=list)
    members: list[_Word] = field(default_factory=list)
    colon: bool = False
    header_line: int = 0


@dataclass
class _Merged:
    """All statements with one P_Key."""

    partition: Partition
    word: _Word
    said: dict[str, str] = field(default_factory=dict)
    """Member -> kind."""


def read_partitions(text: str) -> Read:
    """The partitions of a file, statements with one P_Key merged; problems in the order of their lines."""
    return _Reader(text).read()


@dataclass
class _Reader:
    text: str
    problems: list[Problem] = field(default_factory=list)
    found: dict[int, _Merged] = field(default_factory=dict)

    def read(self) -> Read:
        for number, line in enumerate(self.text.split("\n"), 1):
            if len(line) > LINE_LIMIT:
                word = _Word("", number, LINE_LIMIT)
                self._bad(word, "the line is too long", "write members on lines of their own", drops=True)
        rules = 0
        for rule in self._rules():
            rules += 1
            self._rule(rule)
        if not rules:
            word = _Word("", 1, 1)
            self._bad(word, "no partition definition found", "write NAME=PKEY : MEMBERS ;", drops=True)
        for one in self.found.values():
            if not one.said and one.partition.pkey != DEFAULT_PKEY:
                message = f"{one.partition.name} has no members, so OpenSM does not make it"
                self._bad(one.word, message, "name its members after the colon")
        rows = [
            replace(one.partition, members=tuple(sorted(map("=".join, one.said.items()), key=member_order)))
            for one in self.found.values()
        ]
        rows.sort(key=lambda one: (one.pkey != DEFAULT_PKEY, one.pkey))
        problems = tuple(sorted(self.problems, key=lambda one: (one.line, one.column)))
        return Read(Partitions(tuple(rows)), problems)

    def _bad(self, word: _Word, message: str, help: str, *, drops: bool = False) -> None:
        self.problems.append(Problem(word.line, word.column, message, help, drops))

    # -- words

    def _rules(self) -> Iterator[_Rule]:
        rule = _Rule()
        begun = False
        for number, line in enumerate(self.text.split("\n"), 1):
            rest = line.partition("#")[0]
            if odd := re.search(r"[\0\r]", rest):
                # To OpenSM a carriage return is a word; a NUL drops the file or ends it (run).
                what = "a NUL character" if odd.group() == "\0" else "a carriage return (Windows line end)"
                if all(one.message != what for one in self.problems):  # mostly every line has one
                    at = _Word("", number, odd.start() + 1)
                    self._bad(at, what, "end lines with a line feed", drops=True)
                rest = re.sub(r"[\0\r]", " ", rest)
            column = 1
            for piece in re.split(r"([:;,])", self._hide(rest)):
                word = _Word(
                    piece.replace("\0", ":").strip(_SPACE),
                    number,
                    column + len(piece) - len(piece.lstrip(_SPACE)),
                )
                column += len(piece)
                if piece == ":" and not rule.colon:
                    rule.colon = True
                elif piece == ":":
                    self._bad(word, "a second colon", "write one, before the members", drops=True)
                elif piece == "," and not begun:
                    # A name to OpenSM: it drops the file, or takes the next free P_Key (run).
                    self._bad(word, "a comma at the start of a statement", "remove it", drops=True)
                elif piece == ";":
                    if not any(one.line == number for one in (*rule.head, *rule.members)):
                        # What is left of an earlier line in OpenSM's buffer becomes a statement (run).
                        self._bad(
                            word, "a semicolon at the start of a line", "write it behind a word", drops=True
                        )
                    if begun:
                        yield rule
                    rule, begun = _Rule(), False
                elif piece != "," and word.text:
                    begun = True
                    rule.header_line = rule.header_line or number
                    (rule.members if rule.colon else rule.head).append(word)
                    if not rule.colon and number != rule.header_line:
                        message = "the words before the colon stand on two lines"
                        self._bad(word, message, "write them on one", drops=True)
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
            help = "write NAME=PKEY, FLAGS : MEMBERS ;"
            self._bad(rule.head[0], "no partition definition found", help, drops=True)
            return
        if not rule.head:
            self._bad(rule.members[0], "a partition without a name", "write NAME=PKEY before the colon")
            return
        before = len(self.problems)
        name, pkey = self._name(rule.head[0])
        one = Partition(name, pkey)
        default = "limited"
        for word in rule.head[1:]:
            flag, _, value = word.pair
            flag = self._known(word, flag, _FLAGS)
            if flag == "defmember":
                if value in _KINDS:
                    default = value
                else:
                    self._bad(word, f"defmember={value}", f"write one of {', '.join(_KINDS)}")
                    default = next((kind for kind in _KINDS if value and kind.startswith(value)), default)
            else:
                one = self._flag(one, word, flag, value)
        said = self._members(rule, one, default)
        if any(not problem.drops for problem in self.problems[before:]):
            one = replace(one, mtu=NOT_AS_WRITTEN)
        if pkey:
            self._add(rule.head[0], replace(one, groups=tuple(sorted(set(said.groups)))), said.members)

    def _name(self, word: _Word) -> tuple[str, int]:
        name, sign, text = word.pair
        if not sign and name[:1].isdigit():
            name, sign, text = "", "=", name
        if not sign and name == "Default":
            return name, DEFAULT_PKEY  # OpenSM has made it by then, and finds it by its name
        if re.search(r"[^!-~]", name) or len(name) > _NAME_LIMIT:
            self._bad(word, f"{name!r} is not a name", f"write at most {_NAME_LIMIT} letters and digits")
        number = _number(text)
        if number is None:
            # Without a number OpenSM takes the next one that is free.
            help = "write NAME=0x0001 to NAME=0x7fff"
            self._bad(word, f"{text or word.text} is not a P_Key", help, drops=bool(sign))
            return name, 0
        if number & DEFAULT_PKEY == 0 or number > 0xFFFF:
            self._bad(word, f"{text} is not a P_Key", "write NAME=0x0001 to NAME=0x7fff")
            return name, number & DEFAULT_PKEY
        if number & 0x8000:
            self._bad(word, f"{text} holds the membership bit", f"write 0x{number & DEFAULT_PKEY:04x}")
        return name or f"0x{number & DEFAULT_PKEY:04x}", number & DEFAULT_PKEY

    def _known(self, word: _Word, text: str, words: tuple[str, ...]) -> str:
        """The word of the list that OpenSM takes the text for; "" for none."""
        if text in words:
            return text
        meant = next((one for one in words if text and one != "indx0" and one.startswith(text)), "")
        if meant:
            self._bad(word, f"{text} counts as {meant}", f"write {meant}")
        return meant

    def _flag(self, one: Partition, word: _Word, flag: str, value: str) -> Partition:
        number = _number(value)
        if flag == "ipoib":
            if value:
                self._bad(word, f"{word.text} is not a flag", "write ipoib")
            return replace(one, ipoib=True)
        if flag == "indx0":
            return replace(one, index0=True)
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
            if not isinstance(one.scope, int) and number is not None and 1 <= number <= 15:
                return replace(one, scope=number)
            self._bad(word, f"scope={value} is not a scope", "write one of 1 to 15 (2 = link-local)")
        elif flag in _LOST:
            self._bad(word, f"{flag} cannot be kept", "leave it to OpenSM's default")
        else:
            self._bad(word, f"{word.text} is not a flag", f"known: {', '.join(_FLAGS)}")
        return one

    # -- members

    def _members(self, rule: _Rule, one: Partition, default: str) -> _Said:
        said = _Said()
        for word in rule.members:
            who, sign, kind = word.pair
            if word.line == said.line:
                self._bad(
                    word,
                    f"OpenSM ignores {word.text} after a group on the same line",
                    "write it on a line of its own",
                )
            elif who == "mgid":
                said.line = word.line
                if group := self._group(word, one, kind):
                    said.groups.append(group)
            elif who := self._who(word, who):
                said.members.append((who, self._kind(word, kind) if sign else default, word))
        return said

    def _group(self, word: _Word, one: Partition, text: str) -> str:
        """The group's GID; "" for the broadcast group, and for one that OpenSM does not make."""
        try:
            found = ipaddress.IPv6Address(text)
        except ValueError:
            found = ipaddress.IPv6Address(0)
        if not found.is_multicast:
            self._bad(word, f"{text} is not a multicast GID", "write one such as ff12:401b::1")
            return ""
        if not belongs(str(found), one.pkey):
            self._bad(word, f"{text} belongs to another P_Key", "write it with 0 in place of the P_Key")
            return ""
        return "" if one.ipoib and is_broadcast(str(found)) else str(found)

    def _who(self, word: _Word, who: str) -> str:
        guid = (normal(who) if who.lower().startswith("0x") else "") or _short_guid(who)
        if guid:
            return guid
        meant = self._known(word, who, _MEMBERS)
        if not meant:
            help = f"write 0x and 16 digits, or {', '.join(MEMBER_WORDS)}"
            self._bad(word, f"bad PortGUID {who}", help, drops=True)
        return "" if meant == "NONE" else meant

    def _kind(self, word: _Word, kind: str) -> str:
        if kind in _KINDS:
            return kind
        self._bad(word, word.text, f"write one of {', '.join(_KINDS)}")
        return next((one for one in _KINDS if kind and one.startswith(kind)), "limited")

    # -- statements with one P_Key

    def _add(self, word: _Word, one: Partition, members: list[tuple[str, str, _Word]]) -> None:
        merged = self.found.get(one.pkey)
        if merged is None:
            merged = self.found[one.pkey] = _Merged(one, word)
        else:
            merged.partition = self._both(word, merged.partition, one)
        for who, kind, at in members:
            self._say(merged.said, who, kind, at)

    def _both(self, word: _Word, old: Partition, new: Partition) -> Partition:
        """Two statements about one partition: the group of the first that has one, the later SL."""
        first = new if new.ipoib and not old.ipoib else old
        other = new.ipoib and old.ipoib and (old.mtu, old.rate, old.scope) != (new.mtu, new.rate, new.scope)
        if other or old.sl != new.sl:
            message = f"{old.name} has other values in another statement"
            self._bad(word, message, "write all statements of a partition alike")
        bad = NOT_AS_WRITTEN in (old.mtu, new.mtu) or other
        return replace(
            first,
            name=old.name,
            sl=new.sl,
            mtu=NOT_AS_WRITTEN if bad else first.mtu,
            ipoib=old.ipoib or new.ipoib,
            groups=tuple(
                sorted({one for one in (*old.groups, *new.groups) if not (first.ipoib and is_broadcast(one))})
            ),
            index0=old.index0 or new.index0,
        )

    def _say(self, said: dict[str, str], who: str, kind: str, word: _Word) -> None:
        """OpenSM lets a later word overwrite what it covers: only the last one counts."""
        covered = [one for one in said if one == who or _covers(who, one)]
        if any(said[one] != kind for one in covered):
            names = ", ".join(covered[:4])
            self._bad(word, f"{word.text} overwrites what was said of {names}", "say it once, groups first")
        elif said.get("SELF", kind) != kind and who not in MEMBER_WORDS:
            # If it is the manager's own port, this counts; the order of our files has SELF last.
            self._bad(word, f"{word.text} stands behind SELF={said['SELF']}", "name SELF last")
        for one in covered:
            del said[one]
        said[who] = kind


@dataclass
class _Said:
    """What stands after a colon. `line`: the line of the last group."""

    members: list[tuple[str, str, _Word]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    line: int = 0


def _covers(word: str, other: str) -> bool:
    """True when the ports of `other` are among those of a word said later."""
    if word == "ALL":
        return True
    return word == "ALL_CAS" and other not in GROUP_WORDS


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
