"""Makes broken and harmless variants of an example fabric's files; deterministic, and knows nothing of us.

Every variant says which file it changes, on which lines, and what has to come of it.
"""

from __future__ import annotations

# Tables of lines to write into files: one case, one line.
# ruff: noqa: E501
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

FILES = ("fabric.yaml", "groups.yaml", "hosts.yaml", "defaults.yaml", "cables.csv")
YAML_FILES = FILES[:4]
MEGABYTES_10 = 10_000_000

Fate = Literal["refused", "same", "any"]
"""refused: exit 2; same: exit code and findings as without the change; any: all but a traceback."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed file. Where it is refused, findings stand on `lines` of it (0: the file as a whole)."""

    name: str
    file: str
    content: bytes = field(repr=False)
    fate: Fate
    lines: frozenset[int] = frozenset()
    elsewhere: tuple[str, ...] = ()
    """Files that refer to what the change took away; only unresolved references may be told there."""
    code: str = ""
    """One of the findings has this code."""
    says: str = ""
    """One of the findings has this in its message or help."""


Texts = Mapping[str, str]
REFERENCE_FILES: Mapping[str, tuple[str, ...]] = {
    "groups.yaml": ("groups.yaml", "hosts.yaml", "cables.csv"),
    "hosts.yaml": ("cables.csv",),
    "defaults.yaml": (),
    "fabric.yaml": (),
    "cables.csv": (),
}


def near(*numbers: int) -> frozenset[int]:
    """These lines and the ones beside them."""
    return frozenset(near for number in numbers for near in (number - 1, number, number + 1) if near > 0)


def _replaced(lines: list[str], number: int, line: str) -> bytes:
    return "\n".join([*lines[: number - 1], line, *lines[number:]]).encode()


def _lines(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """(number, line, all lines) of every line that says something."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line, lines


def _code_lines(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """The same without lines that are only a comment."""
    return (one for one in _lines(text) if not one[1].lstrip().startswith("#"))


def _span(line: str) -> int:
    """Length of the line without a comment at its end."""
    found = re.search(r"\s#", line)
    return found.start() if found else len(line)


# -- nothing changes


def harmless_files(texts: Texts) -> Iterator[Mutant]:
    """Another encoding, other line ends, comments and empty lines: the same fabric."""
    for file, text in texts.items():
        body = text.rstrip("\n")
        variants = {
            "byte order mark": b"\xef\xbb\xbf" + text.encode(),
            "CRLF": text.replace("\n", "\r\n").encode(),
            "CR": text.replace("\n", "\r").encode(),
            "CRLF and byte order mark": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
            "no newline at the end": body.encode(),
            "empty lines at the end": (text + "\n\n\n").encode(),
            "comment at the end": (text + "# the end, ümlauts and 26: [ { \" ' \n").encode(),
            "comment on top": ("# on: [top\n" + text).encode(),
            "empty lines between": text.replace("\n", "\n\n").encode(),
            "spaces at line ends": text.replace("\n", "   \n").encode(),
            "a megabyte of comments": (text + ("# " + "x" * 97 + "\n") * 10_000).encode(),
        }
        if file in YAML_FILES:
            variants |= {
                "document start": ("---\n" + text).encode(),
                "document end": (text + "...\n").encode(),
                "YAML directive": ("%YAML 1.2\n---\n" + text).encode(),
                "comments at line ends": re.sub(r"(?m)(?<!#)$", "   # a comment", body).encode(),
                "two spaces after colons": re.sub(r": (?=\S)", ":  ", text).encode(),
            }
        for name, content in variants.items():
            yield Mutant(f"{file}: {name}", file, content, "same")


SAME_TEXT: Mapping[str, tuple[tuple[str, str], ...]] = {
    "fabric.yaml": (
        ("name: demo", 'name: "demo"'),
        ("name: demo", "name: 'demo'"),
        ("version: 1", '"version": 1'),
        ("version: 1", "version: 0x1"),
        ("priority: 3", "priority: 0o3"),
        ("priority: 3", "priority: +3"),
        ("lossless: true", "lossless: TRUE"),
        ("lossless: true", '"lossless": True'),
        ("dscp: [26]", "dscp: 26"),
        ("dscp: [26]", 'dscp: ["26-26"]'),
        ("dscp: [26]", "dscp: [0x1A]"),
        ("dscp: [26]", "dscp: [26,]"),
        ("dscp: [26]", "dscp: [ 26 ]"),
        ("150KB", "0.15MB"),
        ("1500KB", "1.5MB"),
        ("150KB", '"150KB"'),
        ("150KB", "150000B"),
        ("detect: 200ms", "detect: 0.2s"),
        ("detect: 200ms", "detect: 200000us"),
        ("pmax: 100%", "pmax: 100.0%"),
        ("bandwidth: 50%", 'bandwidth: "50%"'),
        ("dcbx: none", "dcbx: false"),
        ("dcbx: none", '"dcbx": "none"'),
        ("dcbx: none", "dcbx: 'off'"),
        ("dcqcn: {enabled: true}", "dcqcn: true"),
        ("dcqcn: {enabled: true}", "dcqcn:\n  enabled: true"),
        ("dcqcn: {enabled: true}", "dcqcn: {\n  enabled: true\n}"),
        ("headroom: auto", "headroom: null"),
        ("net.ipv4.tcp_ecn: 1", 'net.ipv4.tcp_ecn: "1"'),
        ("limits: {memlock: unlimited}", 'limits: {"memlock": "unlimited"}'),
        ("compute: {}", "compute: {mtu: {}}"),
        ("networks:\n  compute: {}", "networks: {compute: {}}"),
        ("mtu: {switch: max, host:", 'mtu: {"switch": "max", host:'),
        ("pfc:\n", "waivers: []\noverrides: []\nabsent: []\npfc:\n"),
        ("{priority: 3, dscp: [26], lossless: true, bandwidth: 50%}", "&roce {priority: 3, dscp: [26], lossless: true, bandwidth: 50%}"),
        (
            "  roce:    {priority: 3, dscp: [26], lossless: true, bandwidth: 50%}",
            "  roce:\n    bandwidth: 50%\n    lossless: true\n    dscp:\n      - 26\n    priority: 3",
        ),
        ("[ib_core, ib_uverbs, rdma_cm, rdma_ucm]", "\n    - ib_core\n    - ib_uverbs\n    - rdma_cm\n    - rdma_ucm"),
        ("[ib_core, ib_uverbs, rdma_cm, rdma_ucm]", "[rdma_ucm, ib_uverbs, rdma_cm, ib_core]"),
        ("400G: {kmin: 600KB, kmax: 2400KB, pmax: 100%}", "400G: {pmax: 100%, kmax: 2400KB, kmin: 600KB}"),
        (
            "  100G: {kmin: 150KB, kmax: 1500KB, pmax: 100%}\n  400G: {kmin: 600KB, kmax: 2400KB, pmax: 100%}",
            "  100G: &ramp {kmin: 150KB, kmax: 1500KB, pmax: 100%}\n  400G: {<<: *ramp, kmin: 600KB, kmax: 2400KB}",
        ),
        (
            "  100G: {kmin: 150KB, kmax: 1500KB, pmax: 100%}\n  400G: {kmin: 600KB, kmax: 2400KB, pmax: 100%}",
            "  100G: {kmin: 150KB, kmax: 1500KB, pmax: &full 100%}\n  400G: {kmin: 600KB, kmax: 2400KB, pmax: *full}",
        ),
    ),
    "groups.yaml": (
        ("gpus: 2", "gpus: 0x2"),
        ('version: "4.32.1F"', "version: 4.32.1F"),
        ('version: "202411"', "version: 202411"),
        ("groups: [leaf]", 'groups: ["leaf"]'),
        ("groups: [leaf]", "groups:\n    - leaf"),
        ("data: {role: leaf}", "data:\n    role: leaf"),
        ("data: {role: leaf}", "data: &leaf {role: leaf}"),
        ("data: {role: leaf}", "data: {role: leaf, vars: {site: [1, 2, {x: on the roof}], ümlaut: yes please}}"),
        ("leaf:\n", "nobody: {data: {role: ghost, gpus: 9}}\nleaf:\n"),
        ("leaf:\n", "nothing:\nleaf:\n"),
        ("{speed: 400G, network: compute, nic: mlx5", "{network: compute, speed: 400G, nic: mlx5"),
        ('"eth[0-1]": {speed: 400G, network: compute, nic: mlx5, rdma: "mlx5_[0-1]", rail: "[0-1]"}',
         'eth0: {speed: 400G, network: compute, nic: mlx5, rdma: mlx5_0, rail: 0}\n'
         '      eth1: {speed: 400G, network: compute, nic: mlx5, rdma: mlx5_1, rail: 1}'),
        ('"Ethernet[1-8]/1": {speed: 400G, network: compute}',
         '"Ethernet[1-8]/1": &port {speed: 400G}\n      "Ethernet[1-4,5-8]/1": {<<: *port, network: compute}'),
    ),
    "hosts.yaml": (
        ("hostname: 192.0.2.11}", 'hostname: "192.0.2.11"}'),
        ("groups: [leaf_eos]", 'groups: ["leaf_eos"]'),
        ("leaf01: {groups: [leaf_eos], hostname: 192.0.2.11}", "leaf01:\n  groups: [leaf_eos]\n  hostname: 192.0.2.11"),
        ('spine[01-02]: {groups: [spine], hostname: "192.0.2.[1-2]"}',
         'spine01: {groups: [spine], hostname: 192.0.2.1}\nspine02: {groups: [spine], hostname: 192.0.2.2}'),
        ("spine[01-02]:", '"spine[01-02]":'),
        ("gpu[01-08]:", '"gpu[01,02,03-07,08]":'),
        ("groups: [leaf_eos]", "groups: [leaf_eos, leaf]"),
    ),
    "defaults.yaml": (
        ("data: {state: planned}", "data:\n  state: planned"),
        ("data: {state: planned}", 'data: {"state": "planned"}'),
        ("data: {state: planned}", "data: {state: planned, vars: {any: thing}}"),
        ("data: {state: planned}", "username: admin\ndata: {state: planned}"),
    ),
    "cables.csv": (
        (",5\n", ",5.0\n"),
        (",5\n", ", 5 \n"),
        (",5\n", ',"5"\n'),
        (",5\n", ",5e0\n"),
        (",eth0,", ", eth0 ,"),
        (",eth0,", ',"eth0",'),
        ("a_node,a_port,b_node,b_port,length_m", "a_node, a_port, b_node, b_port, length_m"),
        ("a_node,a_port,b_node,b_port,length_m", '"a_node","a_port","b_node","b_port","length_m"'),
        ("gpu[01-04],eth0,leaf01,Ethernet[1-4]/1,5", "leaf01,Ethernet[1-4]/1,gpu[01-04],eth0,5"),
        ("gpu[01-04],eth0,leaf01,Ethernet[1-4]/1,5",
         "gpu[01-02],eth0,leaf01,Ethernet[1-2]/1,5\ngpu[03-04],eth0,leaf01,Ethernet[3-4]/1,5"),
        ("gpu[01-04],eth0,leaf01,Ethernet[1-4]/1,5", "# a comment\n\ngpu[01-04],eth0,leaf01,Ethernet[1-4]/1,5"),
    ),
}  # fmt: skip


def harmless_texts(texts: Texts) -> Iterator[Mutant]:
    """Other spellings of the same values: quotes, styles, units, order, anchors, ranges written out."""
    for file, pairs in SAME_TEXT.items():
        for old, new in pairs:
            assert old in texts[file], old
            content = (
                texts[file].replace(old, new, 1) if not old.startswith(",") else texts[file].replace(old, new)
            )
            yield Mutant(f"{file}: {old!r} as {new!r}", file, content.encode(), "same")


# -- characters


CHARACTERS = {
    "null": "\0", "bell": "\a", "escape": "\x1b", "delete": "\x7f", "next line": "\x85", "form feed": "\f",
    "vertical tab": "\v", "zero width space": "\u200b", "right-to-left override": "\u202e",
    "line separator": "\u2028", "word joiner": "\u2060", "isolate": "\u2066", "byte order mark": "\ufeff",
    "no character": "\uffff",
}  # fmt: skip


def invisible_characters(texts: Texts) -> Iterator[Mutant]:
    """One character that nobody sees, in code and in comments."""
    rows = [(file, *one) for file, text in texts.items() for one in _lines(text)]
    chooser = random.Random(1)
    for name, char in CHARACTERS.items():
        for file, number, line, lines in chooser.sample(rows, 4):
            at = chooser.randint(1, len(line))
            content = _replaced(lines, number, line[:at] + char + line[at:])
            says = f"U+{ord(char):04X}"
            yield Mutant(f"{file}:{number}: {name}", file, content, "refused", frozenset({number}), says=says)


def wrong_bytes(texts: Texts) -> Iterator[Mutant]:
    """What is not UTF-8."""
    chooser = random.Random(2)
    for file, text in texts.items():
        for byte in (b"\xe4", b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"):
            at = chooser.randrange(len(text))
            number = text.count("\n", 0, at) + 1
            content = text[:at].encode() + byte + text[at:].encode()
            yield Mutant(f"{file}:{number}: {byte!r}", file, content, "refused", frozenset({number}))
        for encoding in ("utf-16", "utf-16-be", "utf-32"):
            lines = frozenset({0, 1})
            yield Mutant(f"{file}: {encoding}", file, text.encode(encoding), "refused", lines)


def tabs(texts: Texts) -> Iterator[Mutant]:
    """A tab where YAML wants spaces, or between fields."""
    for file in YAML_FILES:
        for number, line, lines in _code_lines(texts[file]):
            spaces = len(line) - len(line.lstrip(" "))
            if spaces:
                for name, new in (
                    ("all", "\t"),
                    ("one more", line[:spaces] + "\t"),
                    ("first", "\t" + line[1:spaces]),
                ):
                    content = _replaced(lines, number, new + line[spaces:])
                    yield Mutant(
                        f"{file}:{number}: tab, {name}", file, content, "refused", near(number), says="tab"
                    )
    text = texts["cables.csv"]
    yield Mutant(
        "cables.csv: tabs", "cables.csv", text.replace(",", "\t").encode(), "refused", near(1), says="tabs"
    )


LOOK_ALIKE = str.maketrans({"a": "а", "e": "е", "o": "о", "p": "р", "c": "с", "1": "１", "-": "‐"})


def look_alikes(texts: Texts) -> Iterator[Mutant]:
    """Letters of other alphabets in every name of the files: node, group, port, fact, class, setting, value."""
    words = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
    chooser = random.Random(3)
    for file, text in texts.items():
        for number, line, lines in _code_lines(text):
            found = [m for m in words.finditer(line, 0, _span(line)) if m[0].translate(LOOK_ALIKE) != m[0]]
            for match in chooser.sample(found, min(2, len(found))):
                word = match[0].translate(LOOK_ALIKE)
                content = _replaced(lines, number, line[: match.start()] + word + line[match.end() :])
                name = f"{file}:{number}: {match[0]} from other alphabets"
                yield Mutant(name, file, content, "refused", near(number), REFERENCE_FILES[file])


LONG = "leaf01" * 20
NAMES = (
    "leaf01\\nreload", "leaf01\\r", "leaf01\\treload", "leaf01; reload", "leaf 01", "leaf01|x", "../leaf01", "-leaf01",
    "leaf01`id`", "$(id)", "lеaf01", "leaf\\u0661", "leaf[01-99999999]", "leaf[1", "leaf]1[", "leaf[2-1]", "",
    LONG, "leaf01\\x00", "leaf01\\e[31m", "leaf01\\u202e", "\\U0001F600", "leaf[1-2", "%s{{x}}", "leaf01'",
    "leaf01\\\"", "<b>", "*", "leaf01,leaf02", "#leaf",
)  # fmt: skip
"""In double quotes: what may not be a name, since it would reach a device line, a path or a report."""


def names(texts: Texts) -> Iterator[Mutant]:
    """Bad names of nodes, ports, groups' texts and classes."""
    places = (
        ("hosts.yaml", "leaf01:", '"{}":'),
        ("hosts.yaml", "hostname: 192.0.2.11", 'hostname: "{}"'),
        ("groups.yaml", '"Ethernet[1-8]/1":', '"{}":'),
        ("groups.yaml", 'rail: "[0-1]"', 'rail: "{}"'),
        ("groups.yaml", "model: DCS-7060X6-64PE", 'model: "{}"'),
        ("groups.yaml", "role: spine", 'role: "{}"'),
        ("groups.yaml", "network: compute", 'network: "{}"'),
        ("fabric.yaml", "name: demo", 'name: "{}"'),
        ("fabric.yaml", "roce:    {", '"{}": {{'),
        ("fabric.yaml", "ib_core", '"{}"'),
        ("fabric.yaml", "net.ipv4.tcp_ecn: 1", '"{}": 1'),
        ("fabric.yaml", "memlock: ", '"{}": '),
        ("fabric.yaml", "  compute: {}", '  "{}": {{}}'),
    )
    for file, old, new in places:
        number = texts[file][: texts[file].index(old)].count("\n") + 1
        for bad in NAMES:
            content = texts[file].replace(old, new.format(bad), 1).encode()
            fate: Fate = "any" if _fits(old, bad) else "refused"
            name = f"{file}:{number}: {old!r} named {bad!r}"
            yield Mutant(name, file, content, fate, near(number), REFERENCE_FILES[file])


def _fits(place: str, bad: str) -> bool:
    """True for what this place may hold, though a name may not: DNS names are long, models have spaces."""
    if place.startswith("hostname"):
        return bad == LONG
    return place.startswith("model") and bool(re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9 .,/]*", bad))


# -- structure


def duplicate_keys(texts: Texts) -> Iterator[Mutant]:
    """A line twice, and a key twice inside {...}."""
    for file in YAML_FILES:
        for number, line, lines in _code_lines(texts[file]):
            content = _replaced(lines, number, f"{line}\n{line}")
            twice = frozenset({number, number + 1})
            yield Mutant(f"{file}:{number}: twice", file, content, "refused", twice, code="FAB003")
            if flow := re.search(r"\{([a-z_]+): [^,{}\[\]]+, ", line):
                content = _replaced(lines, number, line.replace("{", "{" + flow[1] + ": null, ", 1))
                lone = frozenset({number})
                yield Mutant(
                    f"{file}:{number}: {flow[1]} twice", file, content, "refused", lone, code="FAB003"
                )


SCHEMA_KEYS = frozenset(
    [
        "version",
        "name",
        "rdma",
        "transport",
        "mtu",
        "switch",
        "host",
        "classes",
        "priority",
        "dscp",
        "lossless",
        "bandwidth",
        "scheduler",
        "ecn",
        "kmin",
        "kmax",
        "pmax",
        "pfc",
        "watchdog",
        "detect",
        "restore",
        "action",
        "headroom",
        "dcbx",
        "dcqcn",
        "enabled",
        "hosts",
        "modules",
        "sysctl",
        "limits",
        "nccl",
        "networks",
        "platform",
        "data",
        "role",
        "model",
        "ports",
        "speed",
        "network",
        "groups",
        "gpus",
        "stack",
        "mtu_manager",
        "nic",
        "rdma",
        "rail",
        "hostname",
        "state",
    ]
)


def misspelt_keys(texts: Texts) -> Iterator[Mutant]:
    """Every key of the schema with two letters changed places or one lost: unknown, with the right one named."""
    for file in YAML_FILES:
        for number, line, lines in _code_lines(texts[file]):
            for match in re.finditer(r"(?<![\w.])([a-z_]+):(?=[ ]|$)", line[: _span(line)]):
                key = match[1]
                if key not in SCHEMA_KEYS or (file, key) in {
                    ("groups.yaml", "leaf"),
                    ("fabric.yaml", "default"),
                }:
                    continue
                for wrong in {key[:-2] + key[-1] + key[-2], key + "s", key[0] + key[2:]} - {
                    key,
                    "ports",
                    "group",
                }:
                    if len(wrong) > 2 and wrong not in SCHEMA_KEYS:
                        content = _replaced(
                            lines, number, line[: match.start()] + wrong + line[match.end(1) :]
                        )
                        yield Mutant(
                            f"{file}:{number}: {key} as {wrong}", file, content, "refused", near(number),
                            code="FAB006" if key not in ("version", "name") else "", says=f"{key}",
                        )  # fmt: skip


def colons(texts: Texts) -> Iterator[Mutant]:
    """The colon of a key gone, doubled, or without its space."""
    for file in YAML_FILES:
        for number, line, lines in _code_lines(texts[file]):
            at = line.index(": ") if ": " in line[: _span(line)] else line.rindex(":", 0, _span(line))
            for name, new in (("gone", " "), ("doubled", "::"), ("semicolon", ";"), ("equals", " =")):
                content = _replaced(lines, number, line[:at] + new + line[at + 1 :])
                open_ = near(number) | _opened(lines, number)
                yield Mutant(
                    f"{file}:{number}: colon {name}", file, content, "refused", open_, REFERENCE_FILES[file]
                )


def indentation(texts: Texts) -> Iterator[Mutant]:
    """A line one space deeper or less deep: refused there, or the same where nobody is beside it."""
    for file in YAML_FILES:
        for number, line, lines in _code_lines(texts[file]):
            spaces = len(line) - len(line.lstrip())
            for name, new in (("deeper", " " + line), ("less deep", line[1:]), ("no-break", "\u00a0" + line)):
                if name == "less deep" and not spaces:
                    continue
                fate: Fate = "refused" if name == "no-break" else "any"
                where = near(number, number + 1) | _opened(lines, number)
                yield Mutant(
                    f"{file}:{number}: {name}",
                    file,
                    _replaced(lines, number, new),
                    fate,
                    where,
                    REFERENCE_FILES[file],
                )


def _opened(lines: list[str], number: int) -> frozenset[int]:
    """Lines of the keys in which line `number` stands, and of the first key: the constructs left open."""
    found = set()
    depth = len(lines[number - 1]) - len(lines[number - 1].lstrip())
    for above in range(number - 1, 0, -1):
        line = lines[above - 1]
        spaces = len(line) - len(line.lstrip())
        if line.strip() and not line.lstrip().startswith("#") and spaces < depth:
            depth = spaces
            found.add(above)
    first = next(n for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#"))
    return frozenset(found | {first})


def brackets(texts: Texts) -> Iterator[Mutant]:
    """Every bracket and quote of the files left out, and some put in."""
    for file, text in texts.items():
        for number, line, lines in _code_lines(text):
            for match in re.finditer(r"[\[\]{}\"]", line[: _span(line)]):
                at = match.start()
                content = _replaced(lines, number, line[:at] + line[at + 1 :])
                name = f"{file}:{number}:{at + 1}: without {match[0]}"
                where = near(number) | (_opened(lines, number) if file in YAML_FILES else frozenset())
                yield Mutant(name, file, content, "refused", where, REFERENCE_FILES[file])
        if file in YAML_FILES:
            yield from _put_in(file, text)


def _put_in(file: str, text: str) -> Iterator[Mutant]:
    for number, line, lines in _code_lines(text):
        at = line.find(": ") + 2 if ": " in line[: _span(line)] else _span(line)
        for char in "[{\"'}],&*!|@`%?":
            content = _replaced(lines, number, line[:at] + char + line[at:])
            where = near(number) | _opened(lines, number)
            name = f"{file}:{number}:{at + 1}: with {char}"
            yield Mutant(
                name,
                file,
                content,
                "refused" if char in "[{}]*!@`%&," else "any",
                where,
                REFERENCE_FILES[file],
            )


def truncations(texts: Texts) -> Iterator[Mutant]:
    """Files that end anywhere."""
    chooser = random.Random(4)
    for file, text in texts.items():
        for at in sorted(chooser.sample(range(1, len(text) - 1), min(30, len(text) - 2))):
            content = text[:at]
            lines = content.split("\n")
            last = max((n for n, line in enumerate(lines, 1) if line.strip()), default=1)
            opened = _opened(lines, last) if any(_code_lines(content)) else frozenset({0})
            where = near(last, len(lines)) | opened
            yield Mutant(
                f"{file}: cut after {at}", file, content.encode(), "any", where, REFERENCE_FILES[file]
            )


def wrong_kinds(texts: Texts) -> Iterator[Mutant]:
    """A list, a map, a number, a text or nothing where something else is wanted."""
    keys = {
        "fabric.yaml": [
            "rdma",
            "mtu",
            "classes",
            "ecn",
            "pfc",
            "dcqcn",
            "hosts",
            "networks",
            "version",
            "name",
        ],
        "groups.yaml": ["spine", "gpu"],
        "hosts.yaml": ["leaf01"],
        "defaults.yaml": ["data"],
    }
    for file, names_ in keys.items():
        for key in names_:
            for value in ("[]", "[1, 2]", "3", "text", "{}", "{x: 1}", "[{x: 1}]", "null", "", "true"):
                if _fits_kind(key, value):
                    continue
                content, number = _with_value(texts[file], key, value)
                where = near(number) | (frozenset({1, 2}) if key in ("name", "version") else frozenset())
                yield Mutant(
                    f"{file}:{number}: {key}: {value}", file, content, "refused", where, REFERENCE_FILES[file]
                )
    for file in YAML_FILES:
        for whole in ("[]", "- a\n- b\n", "text\n", "3\n", "null\n", "{}\n", "[{}]\n", "--- 1\n--- 2\n"):
            if (file, whole) in (("groups.yaml", "{}\n"), ("defaults.yaml", "{}\n")):
                continue
            first = frozenset({0, 1, 2})
            yield Mutant(
                f"{file}: only {whole!r}", file, whole.encode(), "refused", first, REFERENCE_FILES[file]
            )


def _fits_kind(key: str, value: str) -> bool:
    empty = {"": True, "null": True, "{}": True}
    return (
        (key in ("rdma", "mtu", "classes", "hosts", "networks") and value == "{}")
        or (key in ("pfc", "ecn", "dcqcn", "spine", "gpu", "leaf01", "data") and value in empty)
        or (key == "dcqcn" and value == "true")
        or (key == "name" and value == "text")
    )


def _with_value(text: str, key: str, value: str) -> tuple[bytes, int]:
    """The file with one top-level key set to `value`, and its line."""
    lines = text.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{key}:"))
    end = next(
        (n for n in range(start + 1, len(lines)) if lines[n] and not lines[n].startswith(" ")), len(lines)
    )
    return "\n".join([*lines[:start], f"{key}: {value}", *lines[end:]]).encode(), start + 1


# -- values

WHOLE = ("026", "1:20", "-1", "3.5", "9" * 30, "9" * 60, "1e400", ".nan", ".inf", "yes", "No", "on", "OFF", "null", "''",
         "[3]", "{a: 3}", '"x"', "three", "true", "0x", "0xFG", "1_000", "٣", "３", "3 4", "!!int 3", "&a", "*a")  # fmt: skip
SIZES = ("150kb", "150Kb", "150K", "150 KB", "150", "-150KB", "9999999999999KB", "150KBB", "KB", "1.5.0KB", "1e3KB", "yes",
         "[150KB]", "150Kib", "١٥٠KB", "0x96KB", "101%", "-1%", "null")  # fmt: skip
PERCENTS = ("50", "101%", "-1%", "50 %", "0.5", "half", "[50%]", "yes", "1e2%", "5O%", "50%%")
TIMES = (
    "200",
    "200MS",
    "200Ms",
    "-200ms",
    "200 ms",
    "200min",
    "2e2ms",
    "99999999999s",
    "ms",
    "off",
    "[200ms]",
    "0.0.2s",
)
SPEEDS = (
    "400",
    "400g",
    "400GB",
    "400Gbps",
    "0G",
    "-400G",
    "401G",
    "4OOG",
    "99999999999G",
    "yes",
    "[400G]",
    "",
)
BOOLEANS = (
    "yes",
    "no",
    "on",
    "off",
    "Yes",
    "ON",
    "y es",
    "1",
    "0",
    '"true"',
    "null",
    "truе",
    "[true]",
    "tru",
    "",
)
WORDS = ("", "''", "1", "true", "yes", "[x]", "{x: y}", "nonesuch", '"x\\ny"', "Ｘ")


VALUES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("fabric.yaml", "version: ", "1", (*WHOLE, "2", "0")),
    ("fabric.yaml", "mtu: ", "4096", (*WHOLE, "4095", "9000", "0")),
    ("fabric.yaml", "host: ", "9000", (*(one for one in WHOLE if one != "null"), "67", "65536", "0", "Max")),
    ("fabric.yaml", "switch: ", "max", ("maximum", "min", "yes", "0", "-1", "9" * 30, "[max]", "''")),
    ("fabric.yaml", "priority: ", "3", (*WHOLE, "8", "7.0")),
    ("fabric.yaml", "dscp: [", "26", (*(one for one in WHOLE if one not in ("[3]",)), "64", '"26-"', '"30-24"', '"1-64"')),
    ("fabric.yaml", "lossless: ", "true", BOOLEANS),
    ("fabric.yaml", "bandwidth: ", "50%", PERCENTS),
    ("fabric.yaml", "scheduler: ", "strict", WORDS),
    ("fabric.yaml", "dscp: ", "rest", ("Rest", "all", "yes", "''", "{}")),
    ("fabric.yaml", "\n  ", "100G", ("100", "100g", "0G", "101G", "fast", "true", "[100G]", "1e2G", "'100 G'")),
    ("fabric.yaml", "kmin: ", "150KB", SIZES),
    ("fabric.yaml", "pmax: ", "100%", PERCENTS),
    ("fabric.yaml", "detect: ", "200ms", TIMES),
    ("fabric.yaml", "action: ", "drop", WORDS),
    ("fabric.yaml", "headroom: ", "auto", ("automatic", "150", "-1KB", "yes", "[auto]", "''", "0x1KB")),
    ("fabric.yaml", "dcbx: ", "none", ("yes", "on", "off", "''", "[none]", "willing", "no")),
    ("fabric.yaml", "enabled: ", "true", BOOLEANS),
    ("fabric.yaml", "nccl: ", "true", BOOLEANS),
    ("fabric.yaml", "arp_ignore: ", "1", ("[1]", "{x: 1}", "null", "yes", "026", '"1\\n2"', "９", "&a", "1e400", '"\\u202e1"')),
    ("fabric.yaml", "memlock: ", "unlimited", ("[x]", "null", '"a\\tb"', '"a\\rb"', "ünlimited", "off")),
    ("fabric.yaml", "transport: ", "rocev2", (*WORDS, "RoCEv2", "roce", "ib")),
    ("groups.yaml", "platform: ", "arista_eos", (*(one for one in WORDS if one != ""), "arista", "eos", "Arista_EOS")),
    ("groups.yaml", "gpus: ", "2", (*(one for one in WHOLE if one not in ("null",)), "1025")),
    ("groups.yaml", "speed: ", "400G", SPEEDS[:-1]),
    ("groups.yaml", "stack: ", "inbox", (*WORDS[1:], "Inbox")),
    ("groups.yaml", "mtu_manager: ", "networkd", (*WORDS[1:], "systemd-networkd")),
    ("groups.yaml", 'version: ', '"4.32.1F"', ("4.30", "true", "[4]", '"4\\n5"', "yes", "{}", '"４"', "1e3")),
    ("groups.yaml", "groups: [", "leaf", ("laef", "1", "null", "yes", "[leaf]", '"leaf\\n"', "leaf_eos", "*leaf")),
    ("groups.yaml", 'rdma: ', '"mlx5_[0-1]"', ('"mlx5_[0-2]"', '"mlx5_[0-"', '"mlx5_[1-0]"', '"a b"', "mlx5_[0-1]", "[mlx5_0]")),
    ("hosts.yaml", "hostname: ", "192.0.2.11", ('"192.0.2.[11-12]"', '"a b"', "true", "[x]", "192.0", '"a;b"', "''")),
    ("hosts.yaml", 'hostname: ', '"192.0.2.[1-2]"', ('"192.0.2.[1-3]"', '"192.0.2.[1-"', "192.0.2.[1-2]", '"192.0.2.[2-1]"')),
    ("hosts.yaml", "\n", "leaf02", ("leaf01", "1", "true", "null", "yes", "[leaf02]", "leaf[1", '"leaf[01-02]"', "? leaf02")),
    ("hosts.yaml", "groups: [", "leaf_eos", ("leaf_eso", "1", "yes", "[x]", "leaf_eos, nobody")),
    ("defaults.yaml", "state: ", "planned", (*(one for one in WORDS if one != ""), "Planned", "retire")),
)  # fmt: skip
"""File, what stands before the value, the value, and what it must not be replaced with."""


def wrong_values(texts: Texts) -> Iterator[Mutant]:
    """Wrong units, cases, signs, sizes, spellings and kinds of every sort of value."""
    for file, before, old, values in VALUES:
        for number, name, content in _put(file, texts[file], before, old, values):
            where = near(number) | (frozenset({1, 2}) if number < 5 else frozenset())
            yield Mutant(name, file, content, "refused", where, REFERENCE_FILES[file])


def _put(
    file: str, text: str, before: str, old: str, values: Iterable[str]
) -> Iterator[tuple[int, str, bytes]]:
    """(line, name, content) with each of `values` in the place of the first `old` that follows `before`."""
    at = text.index(before + old) + len(before)
    number = text.count("\n", 0, at) + 1
    for value in values:
        name = f"{file}:{number}: {before.strip()} {old} as {value}"
        yield number, name, (text[:at] + value + text[at + len(old) :]).encode()


LEGAL: Mapping[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "fabric.yaml": (
        ("host: ", "9000", ("68", "1500", "65535", "max", "null", "4096")),
        ("switch: ", "max", ("68", "65535", "null", "9214")),
        ("mtu: ", "4096", ("256", "512", "1024", "2048")),
        ("priority: ", "3", ("0", "1", "6", "7")),
        ("dscp: [", "26", ("0", "63", "48", "26, 26", '"0-63"', '"24-31", 26', "")),
        ("lossless: ", "true", ("false",)),
        ("bandwidth: ", "50%", ("0%", "100%", "1%", "0.0001%", "33.333%", "null")),
        (
            "kmin: ",
            "150KB",
            ("0KB", "0B", "1B", "1GB", "50%", "100%", "1500KB", "1501KB", "1cells", "99segments"),
        ),
        ("pmax: ", "100%", ("0%", "0.1%", "1%")),
        ("detect: ", "200ms", ("1ms", "1us", "0.5ms", "24s", "null", "1000s")),
        ("restore: ", "400ms", ("1ms", "100ms", "0ms", "null")),
        ("\n  ", "100G", ("1G", "800G", "1600G", "any")),
        ("headroom: ", "auto", ("1B", "100KB", "900MB", "0B")),
        ("action: ", "drop", ("forward", "alert", "errdisable", "notify", "null")),
        (
            "watchdog: ",
            "{detect: 200ms, restore: 400ms, action: drop}",
            ("false", "device", "true", "{}", "null"),
        ),
        (
            "dcqcn: ",
            "{enabled: true}",
            ("false", "{enabled: false}", "{np: {min_time_between_cnps: 4}}", "null"),
        ),
    ),
    "groups.yaml": (
        ("gpus: ", "2", ("0", "1024")),
        ("speed: ", "400G", ("1G", "800G", "100G")),
        ("groups: [", "leaf", ("", "leaf, leaf", "gpu, leaf")),
        ("model: ", "DCS-7060X6-64PE", ("nonesuch", "7", "null")),
    ),
    "hosts.yaml": (
        (
            "groups: [",
            "leaf_eos",
            ("leaf_eos, leaf_sonic", "leaf_sonic, leaf_eos", "leaf_eos, gpu", "leaf_eos, spine"),
        ),
        ("hostname: ", "192.0.2.11", ("192.0.2.12", "leaf01.example.net", "2001:db8::1", "null")),
    ),
    "cables.csv": (
        ("leaf01,Ethernet[1-4]/1,", "5", ("", "0.001", "100000", "1e3", "007")),
        ("eth0,", "leaf01", ("leaf01 ",)),
    ),
}


def legal_values(texts: Texts) -> Iterator[Mutant]:
    """Zero, the ends of ranges, conflicting groups: whatever the rules say, no trouble of ours."""
    for file, rows in LEGAL.items():
        for before, old, values in rows:
            for number, name, content in _put(file, texts[file], before, old, values):
                yield Mutant(name, file, content, "any", near(number), REFERENCE_FILES[file])


# -- keys, aliases, cables, files


MORE: tuple[tuple[str, str, str, Fate, int], ...] = (
    # unknown keys, keys in the wrong place, overrides, waivers, aliases
    ("fabric.yaml", "colour: blue\n", "unknown key", "refused", 1),
    ("fabric.yaml", "mtux: {host: 9000}\n", "unknown key", "refused", 1),
    ("fabric.yaml", "leaf01: {}\n", "key of another file", "refused", 1),
    ("fabric.yaml", "1: 2\n", "a number as key", "refused", 1),
    ("fabric.yaml", "true: 2\n", "a boolean as key", "refused", 1),
    ("fabric.yaml", "? [a]\n: b\n", "a list as key", "refused", 1),
    ("fabric.yaml", ": x\n", "no key", "refused", 1),
    ("fabric.yaml", "overrides:\n  - {where: role=nobody, set: {mtu.host: 4200}}\n", "override of nobody", "any", 2),
    ("fabric.yaml", "overrides:\n  - {where: leaf99, set: {mtu.host: 4200}}\n", "override of no node", "any", 2),
    ("fabric.yaml", "overrides:\n  - {where: roel=leaf, set: {mtu.host: 4200}}\n", "unknown fact", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: '[', set: {mtu.host: 4200}}\n", "odd selector", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: 'leaf[2-1]', set: {mtu.host: 4200}}\n", "odd range", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: 'leaf;reload', set: {mtu.host: 4200}}\n", "odd name", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: {mtu.hots: 4200}}\n", "unknown key below", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: {mtu: 4200}}\n", "number for map", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: {ecn.400G.kmax: 3mb}}\n", "unit below", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: {mtu: {host: 1500}, mtu.host: 9000}}\n", "twice", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: {'': 1}}\n", "empty key", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: {.: 1}}\n", "dot", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: {mtu..host: 1}}\n", "two dots", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: {networks.x: {}}}\n", "not for nodes", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf, set: []}\n", "list for map", "refused", 2),
    ("fabric.yaml", "overrides:\n  - {where: role=leaf}\n", "nothing set", "refused", 2),
    ("fabric.yaml", "overrides: {where: role=leaf, set: {}}\n", "map for list", "refused", 1),
    ("fabric.yaml", "overrides:\n  - {where: '', set: {mtu.host: 9000}}\n", "everybody", "any", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB021, node: gpu01, until: 2020-02-30, reason: none}\n", "no such day", "refused", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB021, node: gpu01, until: 1.1.2027, reason: none}\n", "other date", "refused", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB021, node: gpu01, until: 20270131, reason: none}\n", "a number", "refused", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB021, until: 2027-01-31, reason: all of them}\n", "everywhere", "refused", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB021, node: gpu01, until: 2027-01-31}\n", "no reason", "refused", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB021, node: gpu01, until: 2027-01-31, reason: \"a\\nb c\"}\n", "lines", "refused", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB999, node: gpu01, until: 2099-01-31, reason: no such rule}\n", "rule", "any", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB021, node: nobody, until: 2099-01-31, reason: no such node}\n", "node", "any", 2),
    ("fabric.yaml", "waivers:\n  - {rule: FAB021, node: gpu01, until: 2001-01-31, reason: long over}\n", "expired", "any", 2),
    ("fabric.yaml", "x: &x {<<: *x}\n", "alias of itself", "refused", 1),
    ("fabric.yaml", "x: *nowhere\n", "alias of nothing", "refused", 1),
    ("fabric.yaml", "x: &x 1\n", "an anchor nobody wants", "refused", 1),
    ("fabric.yaml", "<<: {mtu: {host: 9000}}\n", "merge of what is there", "same", 1),
    ("fabric.yaml", "<<: [1]\n", "merge of a number", "refused", 1),
    ("fabric.yaml", "trust: &t dscp\n", "an anchor", "same", 1),
    ("fabric.yaml", "trust: !!str dscp\n", "a tag", "refused", 1),
    ("fabric.yaml", "trust: !!python/object/apply:os.system [true]\n", "a program", "refused", 1),
    ("fabric.yaml", "absent: pfc.watchdog\n", "text for list", "refused", 1),
    ("fabric.yaml", "absent: [pfc.watchdgo]\n", "unknown setting", "refused", 1),
    ("fabric.yaml", "rollout: {timer: 5}\n", "no unit", "refused", 1),
    ("fabric.yaml", "rollout: {parallel: 0}\n", "none at a time", "refused", 1),
    ("fabric.yaml", "subnet_manager: {nodes: [{node: x, priority: 16}]}\n", "priority", "refused", 1),
    ("fabric.yaml", "subnet_manager: {partitions: [{name: a, pkey: 0x8001}]}\n", "pkey", "refused", 1),
    ("fabric.yaml", "subnet_manager: {routing: [\"ftree\\nx\"]}\n", "lines in a name", "refused", 1),
    ("fabric.yaml", "deep: " + "[" * 5_000 + "]" * 5_000 + "\n", "too deep", "refused", 1),
    ("fabric.yaml", "deep: " + "{a: " * 5_000 + "\n", "too deep and open", "refused", 1),
    ("fabric.yaml", "long: " + "x" * 1_000_000 + "\n", "a long line", "refused", 1),
    ("fabric.yaml", "n" * 1_000_000 + ": x\n", "a long key", "refused", 1),
    ("groups.yaml", "leaf_new: {groups: [leaf_new]}\n", "group in itself", "any", 1),
    ("groups.yaml", "a: {groups: [b]}\nb: {groups: [a]}\n", "groups in a ring", "any", 2),
    ("groups.yaml", "leaf_new: {data: {set: {mtu.hots: 1}}}\n", "nobody's setting", "any", 1),
    ("groups.yaml", "leaf_new: {data: {ports: {eth0: {sped: 400G}}}}\n", "unknown key", "refused", 1),
    ("groups.yaml", "leaf_new: {password: secret}\n", "a secret", "refused", 1),
    ("hosts.yaml", "leaf01: {groups: [leaf_eos]}\n", "a node twice", "refused", 1),
    ("hosts.yaml", "leaf[01-02]: {groups: [leaf_eos]}\n", "nodes twice", "refused", 1),
    ("hosts.yaml", "leaf09: {}\n", "no platform", "refused", 1),
    ("hosts.yaml", "leaf09:\n", "nothing said", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [nobody]}\n", "unknown group", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: leaf_eos}\n", "text for list", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [[leaf_eos]]}\n", "list in list", "refused", 1),
    ("hosts.yaml", "leaf[09-1009]: {groups: [leaf_eos], hostname: 192.0.2.1}\n", "unequal digits", "refused", 1),
    ("hosts.yaml", "leaf[1000-9999]: {groups: [leaf_eos]}\n", "many nodes", "any", 1),
    ("hosts.yaml", "leaf[1000-999999]: {groups: [leaf_eos]}\n", "too many nodes", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [leaf_eos], port: 99999}\n", "no such port", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [leaf_eos], data: {ports: {eth0: {vlan: 5000}}}}\n", "vlan", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [leaf_eos], data: {ports: {eth0: {members: ['x[2-1]']}}}}\n", "range", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [leaf_eos], data: {ports: {'eth[0-1]': {rail: '[0-2]'}}}}\n", "zip", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [leaf_eos], data: {set: {mtu.host: 67}}}\n", "value in set", "any", 1),
    ("hosts.yaml", "leaf09: {groups: [gpu], data: {set: {pfc.watchdog.detect: 5}}}\n", "unit in set", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [gpu], data: {set: {pfc.watchdgo.detect: 5}}}\n", "key in set", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [gpu], data: {options: {x: \"a\\nb\"}}}\n", "lines in an option", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [gpu], username: \"a\\nb\"}\n", "lines in a name", "refused", 1),
    ("hosts.yaml", "leaf09: {groups: [gpu], username: \"\u0430dmin\"}\n", "look-alike user", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01\n", "two fields short", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,5,6\n", "a field more", "refused", 1),
    ("cables.csv", "gpu99,eth0,leaf01,Ethernet1/1,5\n", "unknown node", "refused", 1),
    ("cables.csv", "gpu01,eth9,leaf01,Ethernet1/1,5\n", "unknown port", "refused", 1),
    ("cables.csv", "gpu[01-04],eth0,leaf01,Ethernet[1-3]/1,5\n", "unequal ranges", "refused", 1),
    ("cables.csv", "gpu[04-01],eth0,leaf01,Ethernet[1-4]/1,5\n", "reversed range", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,5m\n", "a unit", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,-5\n", "negative", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,0\n", "zero", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,nan\n", "not a number", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,1e9\n", "to the moon", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,٥\n", "other digits", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,5_0\n", "underscore", "refused", 1),
    ("cables.csv", "gpu01,,leaf01,Ethernet1/1,5\n", "empty field", "refused", 1),
    ("cables.csv", ",,,,\n", "empty fields", "refused", 1),
    ("cables.csv", "gpu01,eth0,\"leaf01,Ethernet1/1,5\n", "open quote", "refused", 1),
    ("cables.csv", "gpu01,eth0,le\"af01,Ethernet1/1,5\n", "stray quote", "refused", 1),
    ("cables.csv", "gpu01;eth0;leaf01;Ethernet1/1;5\n", "semicolons", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01;reload,Ethernet1/1,5\n", "a command", "refused", 1),
    ("cables.csv", "gpu01,eth0,lеaf01,Ethernet1/1,5\n", "look-alike", "refused", 1),
    ("cables.csv", "gpu01,eth0,gpu01,eth0,5\n", "a port to itself", "any", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,5\n", "a cable twice", "any", 1),
    ("cables.csv", "a_node,a_port,b_node,b_port,length_m\n", "header twice", "refused", 1),
    ("cables.csv", "gpu01,eth0,leaf01,Ethernet1/1,5\n" * 20_000, "a cable 20,000 times", "any", 20_000),
    ("cables.csv", "x," * 500_000 + "\n", "a line of a million characters", "refused", 1),
)  # fmt: skip
"""File, lines to put at its end, what that is, what has to come of it, and how many lines it is."""


def more_lines(texts: Texts) -> Iterator[Mutant]:
    """One entry more: unknown, doubled, in the wrong place, too much."""
    for file, text, name, fate, count in MORE:
        first = texts[file].count("\n") + 1
        lines = frozenset(range(first - 1, first + count + 1))
        content = (texts[file] + text).encode()
        yield Mutant(f"{file}: {name}", file, content, fate, lines, REFERENCE_FILES[file])


def cable_headers(texts: Texts) -> Iterator[Mutant]:
    """Another first line."""
    _, _, rest = texts["cables.csv"].partition("\n")
    headers = (
        "", "a,b,c,d,e", "a_node,a_port,b_node,b_port", "a_node;a_port;b_node;b_port;length_m", "a_node,a_port,b_node,length_m",
        "a_node,a_port,b_node,b_port,length", "a_node,a_port,b_node,b_port,length_m,colour", "a_node,a_node,b_node,b_port,length_m",
        "A_NODE,A_PORT,B_NODE,B_PORT,LENGTH_M", "a_node,a_port,b_node,b_port,length_m,", '"a_node,a_port', "# a_node,a_port,b_node",
        "a_node,a_port,b_node,b_port,length_m,length_m", "a_node|a_port|b_node|b_port|length_m",
    )  # fmt: skip
    for header in headers:
        content = (header + "\n" + rest).encode()
        yield Mutant(f"cables.csv: header {header!r}", "cables.csv", content, "refused", near(1, 2))
    yield Mutant("cables.csv: empty", "cables.csv", b"", "refused", frozenset({0, 1}))
    yield Mutant("cables.csv: only comments", "cables.csv", b"# none\n\n", "refused", near(1))


def huge_files(texts: Texts) -> Iterator[Mutant]:
    """10 MB and more: refused in time, in few words, or read."""
    size = MEGABYTES_10
    comment = "# " + "y" * 97 + "\n"
    yield Mutant(
        "fabric.yaml: 10 MB of comments",
        "fabric.yaml",
        (texts["fabric.yaml"] + comment * (size // 100)).encode(),
        "same",
    )
    last = frozenset(range(1, size))
    for file, text, fate in (
        ("fabric.yaml", "x: [" + "1, " * (size // 30) + "]\n", "refused"),
        ("fabric.yaml", "x: '" + "y" * size + "'\n", "refused"),
        ("fabric.yaml", "".join(f"x{n}: 1\n" for n in range(100_000)), "refused"),
        ("hosts.yaml", "".join(f"node{n}: {{}}\n" for n in range(50_000)), "refused"),
        ("cables.csv", "gpu99,eth0,leaf01,Ethernet1/1,5\n" * 100_000, "refused"),
        ("cables.csv", "x\n" * (size // 4), "refused"),
    ):
        content = (texts[file] + text).encode()
        yield Mutant(f"{file}: {len(content)} bytes", file, content, fate, last, REFERENCE_FILES[file])  # type: ignore[arg-type]
    for file in FILES:
        content = (texts[file] + comment * (2 * size // 100 + 1)).encode()
        yield Mutant(
            f"{file}: more than 20 MB",
            file,
            content,
            "refused",
            frozenset({0}),
            REFERENCE_FILES[file],
            says="20 MB",
        )
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))
    content = (texts["fabric.yaml"] + "a0: &a0 x\n" + levels).encode()
    lines = frozenset(range(37, 99))
    yield Mutant("fabric.yaml: aliases of aliases", "fabric.yaml", content, "refused", lines, says="alias")


FAMILIES = (
    harmless_files, harmless_texts, invisible_characters, wrong_bytes, tabs, look_alikes, names, duplicate_keys,
    misspelt_keys, colons, indentation, brackets, truncations, wrong_kinds, wrong_values, legal_values, more_lines,
    cable_headers, huge_files,
)  # fmt: skip
