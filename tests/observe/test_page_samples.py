"""Every sample of the reference pages of hosts is read, and one that is garbled blocks what it hides.

The samples are taken from the pages (`shared/reference`) when the test runs; what they say is written down in
`page_samples`. A sample that no table there names is a failure, and so is a name that no page has.
"""

from __future__ import annotations

import codecs
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import platform
from rdma_fabric.platforms import probes as probes_of
from rdma_fabric.platforms._contract import Change, Platform, Put
from rdma_fabric.state import (
    UNKNOWN,
    UNMANAGED,
    Absent,
    Amount,
    ClassState,
    Marking,
    Mtu,
    NicState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    WatchdogTimers,
)
from tests.judges import show_data
from tests.observe import page_samples as table
from tests.observe.page_samples import ELSEWHERE, ERRORS, OTHERS, READS, Place, Read
from tests.support import pages
from tests.support.linux_box import Box
from tests.support.local_check import Says

UNREAD = "unknown"
LINUX, MLX5, BNXT, IRDMA, GENERIC = map(
    platform, ("linux", "nic_mlx5", "nic_bnxt", "nic_irdma", "nic_generic")
)


@pytest.fixture(scope="session")
def printed(shared: Path) -> Mapping[Place, str]:
    """What the pages print: (page, anchor) -> text."""
    return {(one.page, one.anchor): one.text for one in pages.read(shared / "reference")}


# ---------------------------------------------------------------- the tables are complete


def test_every_sample_of_a_page_is_in_a_table(shared: Path) -> None:
    known = {one.place for one in READS} | {one.frame for one in READS} | {*ERRORS, *OTHERS, *ELSEWHERE}
    missing = [
        f"reference/{one.page}: a sample of {one.tool or 'something new'} at line {one.line} is read by no "
        f"parser: add it to tests/observe/page_samples.py ({one.anchor[:60]!r})"
        for one in pages.read(shared / "reference")
        if (one.tool or (one.fenced and one.page.startswith("host_linux_")))
        and (one.page, one.anchor) not in known
    ]
    assert missing == []


def test_every_name_of_the_tables_is_on_its_page(printed: Mapping[Place, str]) -> None:
    named = {one.place for one in READS} | {one.frame for one in READS if one.frame}
    named |= {*ERRORS, *OTHERS, *ELSEWHERE}
    assert sorted(named - set(printed)) == []
    tables = (ERRORS, OTHERS, ELSEWHERE, {one.place: one for one in READS})
    twice = [place for place in named if sum(place in one for one in tables) > 1]
    assert twice == []
    assert all(OTHERS.values()) and all(name in globals() for name in ELSEWHERE.values())


def test_a_new_sample_is_noticed() -> None:
    page = "# x\n\n```\n$ mlnx_qos -i eth0\nDCBX mode: OS controlled\n```\nprints `PFC enabled: 5`.\n"
    found = list(pages.samples("x.md", page))
    assert [(one.tool, one.line, one.fenced) for one in found] == [
        ("mlnx_qos", 4, True),
        ("niccli", 7, False),
    ]
    assert found[0].text == "DCBX mode: OS controlled"


# ---------------------------------------------------------------- hosts that answer

_OFF = ClassState(pfc_tx=False, pfc_rx=False, watchdog=False)


def _classes(**by_priority: ClassState) -> tuple[ClassState, ...]:
    return tuple(by_priority.get(f"p{priority}", _OFF) for priority in range(8))


WISH = PortSettings(
    qos=QosState(
        trust="dscp",
        dscp_to_priority=tuple({10: 4, 46: 5}.get(point, 0) for point in range(64)),
        classes=_classes(
            p0=replace(_OFF, share=Share("dwrr", 30)),
            p4=ClassState(pfc_tx=True, pfc_rx=True, watchdog=True, share=Share("dwrr", 70)),
            p5=replace(_OFF, share=Share("strict")),
        ),
        watchdog=WatchdogTimers(200, 400, UNMANAGED, "drop"),
        dcbx="none",
        global_pause=True,
        cable_m=50,
    ),
    marking=Marking(40, 40, False, 46, 5, (4,), (4,), (("rp_g", "7"), ("rp_init_cr", "1"))),
)
"""Nothing like what the samples say."""


@dataclass(frozen=True)
class Host:
    """One port with a NIC of one part, and what it answers whatever the sample."""

    platform: Platform
    port: PortHardware
    base: Mapping[str, str]

    def hardware(self, options: Mapping[str, str]) -> Hardware:
        """As the inventory has it."""
        return Hardware((self.platform.name,), ports=(self.port,), options=tuple(sorted(options.items())))

    def observe(self, sections: Mapping[str, tuple[str, int]], options: Mapping[str, str]) -> Observation:
        """The observation of an answer with these sections."""
        hw = self.hardware(options)
        whole = {name: (text, 0) for name, text in self.base.items()} | {"conf": ("", 1), "wants": ("", 1)}
        if options.get("stack") == "inbox":
            whole["stack"] = ("none" if self.platform is BNXT else "inbox", 0)
        text = "".join(
            f"@@{name} {self.port.name}\n{body}\n\n@={status}\n"
            for name, (body, status) in {**whole, **sections}.items()
        )
        return self.platform.parse({self.platform.questions(hw)[0]: text}, hw)

    def wanted(self, options: Mapping[str, str]) -> NodeState:
        """WISH as this part realizes it."""
        nv = tuple((name, "1") for name in options.get("nv", "").split())
        wish = replace(WISH, nic=NicState(nv=nv))
        state = NodeState(ports=(PortState(self.port.name, "physical", wish),))
        return self.platform.realize(state, self.hardware(options)).state

    def change(self, seen: Observation, options: Mapping[str, str]) -> Change:
        """What a push would do."""
        return self.platform.change(seen, self.wanted(options), self.hardware(options))


HOSTS: Mapping[str, Host] = {
    "nic_mlx5": Host(
        MLX5,
        PortHardware("eth0", nic="mlx5", speed_gbps=400, rdma="mlx5_0", bdf="0000:1b:00.0"),
        {"stack": "ofed", "rdma": "mlx5_0", "bdf": "0000:1b:00.0", "nvtool": "mlxconfig", "number": "p0"},
    ),
    "nic_bnxt": Host(
        BNXT,
        PortHardware("eth8", nic="bnxt", speed_gbps=400, rdma="bnxt_re0", bdf="0000:06:00.0"),
        {
            "device": "bnxt_re0",
            "stack": "configfs",
            "rdma": "bnxt_re0",
            "bdf": "0000:06:00.0",
            "tool": "niccli -i 1",
        },
    ),
    "nic_irdma": Host(
        IRDMA,
        PortHardware("ens8", nic="irdma", speed_gbps=100, rdma="rocep24s0f0", bdf="0000:18:00.0"),
        {"stack": "vendor", "rdma": "rocep24s0f0", "bdf": "0000:18:00.0"},
    ),
    "nic_generic": Host(
        GENERIC, PortHardware("eth1", nic="generic", rdma="rxe0"), {"rdma": "rxe0", "mtu": "9000"}
    ),
}


def _text(read: Read, printed: Mapping[Place, str]) -> str:
    texts = [printed[place] for place in (read.place, read.frame) if place is not None]
    return read.edit(*texts)


def _observed(read: Read, text: str, status: int = 0) -> Observation:
    beside = {name: (body, 0) for name, body in read.beside.items()}
    return HOSTS[read.part].observe({**beside, read.section: (text, status)}, read.options)


def _at(seen: Observation, port: str, path: str) -> Any:
    """One field as `page_samples` writes it."""
    layer = seen.stored if path.startswith("stored.") else seen.running
    state = layer.port(port) if layer is not None else None
    value: Any = state.settings if state is not None else UNKNOWN
    words = path.removeprefix("stored.").split(".")
    for word in words:
        if isinstance(value, tuple) and value and isinstance(value[0], tuple):
            value = dict(value).get(word, UNKNOWN)
        elif isinstance(value, tuple):
            value = value[int(word)] if word.isdigit() else UNKNOWN
        else:
            value = getattr(value, word)
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Absent):
        return value.value
    if isinstance(value, Amount):
        return value.value
    if isinstance(value, Share):
        return {"scheduler": value.scheduler, "weight": value.weight, "cap": _plain(value.cap)}
    return list(value) if isinstance(value, tuple) else value


# ---------------------------------------------------------------- what the samples say

_NAMES = [one.name for one in READS]


@pytest.mark.parametrize("read", READS, ids=_NAMES)
def test_a_sample_says_what_the_page_says(read: Read, printed: Mapping[Place, str]) -> None:
    seen = _observed(read, _text(read, printed))
    port = HOSTS[read.part].port.name
    assert {path: _at(seen, port, path) for path in read.found} == dict(read.found)
    assert [note for note in read.notes if note not in " / ".join(seen.notes)] == []
    assert dict(read.facts).items() <= dict(seen.facts).items()
    assert read.found or read.facts


@pytest.mark.parametrize("read", READS, ids=_NAMES)
def test_what_a_sample_says_can_be_written(read: Read, printed: Mapping[Place, str]) -> None:
    """Else a garbled one that blocks a write would prove nothing."""
    host = HOSTS[read.part]
    seen = _observed(read, _text(read, printed))
    blocked = {item.path for item in host.change(seen, read.options).blocked if item.unknown}
    said = {f"ports.{host.port.name}.{path}" for path, value in read.found.items() if value != UNREAD}
    assert sorted(blocked & said) == []


# ---------------------------------------------------------------- garbled samples

_OTHER_ERRORS = (
    "sh: 1: {}: not found",
    "Segmentation fault (core dumped)",
    "Traceback (most recent call last):\n  File \"/usr/bin/x\", line 1, in <module>\nTypeError: 'int'",
    "Permission denied",
    "Error: 3",
    "",
    "{}",
    "[]",
    "null",
)


def _cuts(text: str) -> Iterator[str]:
    yield from (text[:end] for end in range(1, len(text)))


def _columns(text: str) -> Iterator[str]:
    """A column more on every line, then on one line after the other; JSON: an item more in its lists."""
    lines = text.split("\n")
    for word in ("99", "new", "new: 1"):
        yield "\n".join(f"{line} {word}" if line.strip() else line for line in lines)
        for index, line in enumerate(lines):
            if line.strip():
                yield "\n".join((*lines[:index], f"{line} {word}", *lines[index + 1 :]))
    if text.startswith("{"):
        for match in re.finditer(r"\](?=[,}\]])", text):
            yield f"{text[: match.start()]},1{text[match.start() :]}"
            yield f'{text[: match.start()]},"new"{text[match.start() :]}'


def _dropped_lines(text: str) -> Iterator[str]:
    """Lines of another release in place of one, or between two."""
    lines = text.split("\n")
    for index in range(len(lines)):
        for other in ("???", "\tnew setting: 3", "         New: 5"):
            yield "\n".join((*lines[:index], other, *lines[index + 1 :]))
            yield "\n".join((*lines[:index], other, *lines[index:]))


def _other_words(text: str) -> Iterator[str]:
    """Another language, another format: nothing of it may be taken for a value."""
    yield codecs.encode(text, "rot13")
    yield json.dumps({"output": text.split("\n")})
    yield json.dumps([text])
    yield "\n".join(f"| {line} |" for line in text.split("\n"))
    yield "\n".join(f"<row>{line}</row>" for line in text.split("\n"))
    yield repr(text.split("\n"))


def _other_spelling(text: str) -> Iterator[str]:
    """Close to it: not understood, or understood rightly."""
    yield text.upper()
    yield text.swapcase()
    yield re.sub(r"[ \t]+", ";", text)
    yield re.sub(r"(\d)", r"\1.0", text)
    yield re.sub(r"(?<![\w.])\d+(?![\w.])", lambda match: hex(int(match[0])), text)
    yield text.replace(":", " =")
    yield f"{text}\n{text}"


class Garble:
    """What may become of the values of one sample when its text is garbled."""

    def __init__(self, read: Read) -> None:
        self.read, self.host = read, HOSTS[read.part]
        self.said = {path: value for path, value in read.found.items() if value != UNREAD}
        self._judged: set[frozenset[str]] = set()

    def lost(self, text: str, status: int = 0, gone: str = UNREAD) -> frozenset[str]:
        """Fields that the text does not tell any more, or that it says are not there (`gone`); no field may
        have another value."""
        seen = _observed(self.read, text, status)
        found = {path: _at(seen, self.host.port.name, path) for path in self.said}
        wrong = {p: value for p, value in found.items() if value not in (self.said[p], UNREAD, gone)}
        assert wrong == {}, text
        lost = frozenset(path for path, value in found.items() if value in (UNREAD, gone))
        if lost not in self._judged:
            self._judged.add(lost)
            self._blocks(seen, lost, text)
        return lost

    def _blocks(self, seen: Observation, lost: frozenset[str], text: str) -> None:
        """Every wish for a field that is lost is blocked, and not among what is written."""
        change = self.host.change(seen, self.read.options)
        blocked = {item.path for item in change.blocked if isinstance(item.found, Absent)}
        written = {item.path for item in change.differences}
        for path in lost:
            field = f"ports.{self.host.port.name}.{path.removeprefix('stored.')}"
            if self._wished(path):
                assert field in blocked, (field, text)
            assert field not in written, (field, text)
        rows = _settings_file(change)
        for path in lost:
            assert not (_KEYS.get(_kind(path), frozenset()) & set(rows)), (path, text)

    def _wished(self, path: str) -> bool:
        wanted = self.host.wanted(self.read.options)
        value = _at(Observation(running=wanted, stored=wanted), self.host.port.name, path)
        names = {absent.value for absent in Absent}
        # The firmware's agent is no setting that mlx5's or bnxt's programs write there.
        return not (isinstance(value, str) and value in names) and not path.startswith(_NOT_WRITTEN)


_NOT_WRITTEN = ("nic.firmware", "nic.driver", "nic.board", "nic.rdma_mtu", "nic.gids")
_KEYS: Mapping[str, frozenset[str]] = {
    "pfc_tx": frozenset({"PFC"}),
    "pfc_rx": frozenset({"PFC"}),
    "share": frozenset({"PRIO_TC", "TSA", "TCBW"}),
    "queue": frozenset({"PRIO_TC", "TSA", "TCBW"}),
    "trust": frozenset({"TRUST"}),
    "global_pause": frozenset({"PAUSE"}),
    "cable_m": frozenset({"CABLE"}),
    "dscp_to_priority": frozenset({"DSCP2PRIO"}),
    "rdma_cm_tos": frozenset({"CMA_TOS"}),
    "roce_v2": frozenset({"CMA_MODE"}),
    "traffic_class": frozenset({"TCLASS"}),
    "cnp_dscp": frozenset({"CNP_DSCP"}),
}
"""Field -> the words of a port's settings file (docs/platforms) that would write it."""


def _kind(path: str) -> str:
    return path.rpartition(".")[2]


def _settings_file(change: Change) -> Mapping[str, str]:
    texts = [
        step.text or ""
        for step in change.commit
        if isinstance(step, Put) and step.path.startswith("/etc/fabric/qos/")
    ]
    rows = [line.partition("=") for text in texts for line in text.splitlines() if not line.startswith("#")]
    return {key: value for key, _, value in rows}


_WITH_AN_END = [one for one in READS if not one.one_number and not one.no_end]


@pytest.mark.slow
@pytest.mark.parametrize("read", _WITH_AN_END, ids=[one.name for one in _WITH_AN_END])
def test_half_of_a_sample(read: Read, printed: Mapping[Place, str]) -> None:
    """Cut at every place: never another value, and of its beginning nothing at all."""
    garble, text = Garble(read), _text(read, printed)
    lost = [garble.lost(cut, gone=read.gone or UNREAD) for cut in _cuts(text)]
    assert not lost or lost[0] == frozenset(garble.said)


@pytest.mark.slow
@pytest.mark.parametrize("read", READS, ids=_NAMES)
def test_a_sample_with_something_new_in_it(read: Read, printed: Mapping[Place, str]) -> None:
    garble, text = Garble(read), _text(read, printed)
    for other in (*_columns(text), *_dropped_lines(text), *_other_spelling(text)):
        garble.lost(other)


@pytest.mark.parametrize("read", READS, ids=_NAMES)
def test_a_sample_in_other_words(read: Read, printed: Mapping[Place, str]) -> None:
    garble, text = Garble(read), _text(read, printed)
    for other in _other_words(text):
        assert other == text or garble.lost(other) == frozenset(garble.said), other


@pytest.mark.parametrize("read", READS, ids=_NAMES)
def test_an_error_in_place_of_a_sample(read: Read, printed: Mapping[Place, str]) -> None:
    """With the exit code of an error and, as some tools do, with that of success."""
    garble, text = Garble(read), _text(read, printed)
    texts = [printed[place] for place, where in ERRORS.items() if (read.part, read.section) in where]
    for error in (*texts, *_OTHER_ERRORS):
        assert garble.lost(error, 1) == frozenset(garble.said), error
        if error != _NOTHING.get(read.section):
            assert garble.lost(error) == frozenset(garble.said), error
    assert garble.lost(text, 1) == frozenset(garble.said), "text beside an error is no answer"


_NOTHING = {"tclass": "", "app": "{}"}
"""Answers of their own: no class is forced, there is no entry."""


def test_every_error_of_the_pages_stands_for_an_answer() -> None:
    asked = {(one.part, one.section) for one in READS}
    # mlx5's driver, irdma's flags and dcb on every NIC have samples too.
    assert [(place, where) for place, where in ERRORS.items() if not set(where) <= asked | _NO_SAMPLE] == []


_NO_SAMPLE = {("nic_bnxt", "pause")}
"""Asked like mlx5's and read by irdma's reader; its own fixtures are in tests/observe/nic_bnxt."""


# ---------------------------------------------------------------- the same by the host itself

_DCB = ("pfc", "ets", "buffer", "app")
_PROGRAMS: Mapping[tuple[str, str], str] = {
    ("nic_mlx5", "qos"): "mlnx_qos -i eth0 -a",
    **{("nic_mlx5", name): f"dcb -j {name} show dev eth0" for name in _DCB},
    ("nic_mlx5", "dcbx"): "dcb dcbx show dev eth0",
    ("nic_mlx5", "pause"): "ethtool -a eth0",
    ("nic_irdma", "pause"): "ethtool -a ens8",
    ("nic_mlx5", "verbs"): "ibv_devinfo -d mlx5_0",
    ("nic_bnxt", "verbs"): "ibv_devinfo -d bnxt_re0",
    ("nic_generic", "verbs"): "ibv_devinfo -d rxe0",
}
"""Who prints a sample on the host, where the local check reads it by patterns of its own."""
_LOCAL = [one for one in READS if (one.part, one.section) in _PROGRAMS]


@dataclass(frozen=True)
class Verdict:
    """What the local check says, by field; a table counts as one."""

    wrong: Mapping[str, frozenset[str]]
    unread: frozenset[str]
    asked: frozenset[str]

    @property
    def right(self) -> frozenset[str]:
        """Fields that are as wanted."""
        return self.asked - self.unread - frozenset(self.wrong)


def _judged(read: Read, wanted: PortState, text: str, folder: Path) -> Verdict:
    host = HOSTS[read.part]
    probes = tuple(
        one
        for one in probes_of(NodeState(ports=(wanted,)), host.hardware(read.options))
        if (one.key == "nic.rdma_mtu") is (read.section == "verbs")
    )
    netdev = folder / f"sys/class/net/{host.port.name}"
    netdev.mkdir(parents=True, exist_ok=True)
    (netdev / "mtu").write_text("9000\n", "utf-8")
    wrong, unread = Says({_PROGRAMS[read.part, read.section]: text}).rows(probes, folder)
    found: dict[str, set[str]] = {}
    for row in wrong:
        found.setdefault(_table(row["key"]), set()).add(f"{row['setting']} {row['found']}")
    return Verdict(
        {key: frozenset(values) for key, values in found.items()},
        frozenset(_table(row["key"]) for row in unread),
        frozenset(_table(one.key) for one in probes),
    )


def _table(key: str) -> str:
    return re.sub(r"classes\.(?:\d|\{at\})", "classes", key)


@pytest.mark.parametrize("read", _LOCAL, ids=[one.name for one in _LOCAL])
def test_the_local_check_reads_the_same(read: Read, printed: Mapping[Place, str], tmp_path: Path) -> None:
    """What the parser reads is right to the local check; garbled, it is the same or could not be judged.

    Not cut off: a program that was ended says so by its exit code, and is not believed.
    """
    text = _text(read, printed)
    port = _observed(read, text).running.ports[0]
    told = replace(port, settings=replace(port.settings, mtu=Mtu(ip=9000)))
    whole = _judged(read, told, text, tmp_path)
    assert whole.right and not whole.wrong and not whole.unread
    for other in (*_columns(text), *_dropped_lines(text), *tuple(_other_spelling(text))[:-1]):
        assert _judged(read, told, other, tmp_path).wrong == {}, other
    wish = HOSTS[read.part].wanted(read.options).ports[0]
    wanted = replace(wish, settings=replace(wish.settings, mtu=Mtu(ip=1500)))
    whole = _judged(read, wanted, text, tmp_path)
    for other in (*_other_words(text), *_OTHER_ERRORS):
        if text not in other and other != _NOTHING.get(read.section):
            found = _judged(read, wanted, other, tmp_path)
            assert found.right <= (whole.right if read.section == "verbs" else frozenset()), other
            assert all(whole.wrong.get(key) == value for key, value in found.wrong.items()), other


_SCRIPTED: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("nic_bnxt", "qos"): {
        "PFC": "0,0,0,1,0,0,0,0",
        "PRIO_TC": "0,0,0,1,0,0,0,2",
        "TSA": "ets,ets,ets,ets,ets,ets,ets,strict",
        "TCBW": "50,50,50,50,50,50,50,0",
        "ROCE": "3",
        "DSCP2PRIO": ",".join(map(str, table.VENDOR_MAP)),
        "ENTRIES": "dscp",
    },
    **{(part, "pfc"): {"PFC": "0,0,0,1,0,0,0,0"} for part in ("nic_bnxt", "nic_irdma")},
    **{
        (part, "ets"): {
            "PRIO_TC": "0,1,2,3,4,5,6,7",
            "TSA": "ets,ets,ets,ets,ets,ets,strict,ets",
            "TCBW": "50,0,0,50,0,0,0,0",
        }
        for part in ("nic_bnxt", "nic_irdma")
    },
    ("nic_irdma", "flags"): {"LLDP": "off"},
    ("nic_irdma", "app"): {"TRUST": "dscp"},
    ("nic_bnxt", "app"): {"ENTRIES": "dscp", "DSCP2PRIO": ",".join(map(str, table.MAP)), "ROCE": "none"},
    ("nic_bnxt", "cc"): {
        "VLAN0": "off",
        "MARK": "1",
        "MODE": "1",
        "ROCE_DSCP": "26",
        "CNP_PRIO": "6",
        "CNP_DSCP": "48",
        "CC_rp_g": "8",
        "CC_rp_init_cr": "200",
    },
}
"""What the scripts of the local check print of a sample, as lines "KEY VALUE"; a table by priority."""
_VARIANTS = ("PFC enabled: none", "dgram-port-prio")
"""They say something else; the parser is tested with them."""
_BY_SCRIPT = [one for one in READS if (one.part, one.section) in _SCRIPTED and one.place[1] not in _VARIANTS]
_STUB = """#!/bin/sh
case "$*" in
"pfc show dev "*) [ ! -f {0}/qos ] ;;
"-N app show dev "*) cat {0}/app ;;
"-j "*) cat {0}/$2 ;;
"--dev "*" qos --ets --show") cat {0}/qos ;;
"--show-priv-flags "*) cat {0}/flags ;;
*) exit 1 ;;
esac
"""


def _printed_lines(read: Read, text: str, folder: Path) -> dict[str, str]:
    """What the script of the local check says where the tools print this text."""
    host, said = HOSTS[read.part], folder / "said"
    said.mkdir(exist_ok=True)
    for tool in ("dcb", "niccli", "ethtool"):
        (folder / tool).write_text(_STUB.format(said), "utf-8")
        (folder / tool).chmod(0o755)
    if read.section == "cc" and text:
        files, _, applied = text.partition("\napply\n")
        place = folder / "sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc"
        place.mkdir(parents=True, exist_ok=True)
        for row in (*files.split("\n"), f"apply={applied}"):
            name, _, value = row.partition("=")
            (place / name).write_text(f"{value if name != 'apply' else applied}\n", "utf-8")
    elif text:
        (said / read.section).write_text(f"{text}\n", "utf-8")
    wanted, hw = host.wanted(read.options), host.hardware(read.options)
    readings = [one for probe in probes_of(wanted, hw) for one in probe.readings]
    reading = next(one for one in readings if "read_port" in one.script)
    words = {"{bdf}": host.port.bdf, "{device}": host.port.rdma}
    done = subprocess.run(
        ["sh", "-c", reading.script, "sh", *(words.get(word, word) for word in reading.argv)],
        env={"PATH": f"{folder}:/usr/bin:/bin", "FABRIC_SYSROOT": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    rows = (line.partition(" ") for line in done.stdout.splitlines())
    return {key: value for key, _, value in rows}


def _plain_apps(text: str) -> str:
    """The page's entries as `dcb -N app show` has them, which shells read more easily than JSON."""
    if not text.startswith('{"dscp_prio":'):
        return text
    rows = (
        f"{name.replace('_', '-')} {' '.join(f'{entry[0]}:{entry[1]}' for entry in entries)} "
        for name, entries in json.loads(text).items()
    )
    return "\n".join(rows)


@pytest.mark.slow
@pytest.mark.parametrize("read", _BY_SCRIPT, ids=[one.name for one in _BY_SCRIPT])
def test_the_hosts_script_reads_the_same(read: Read, printed: Mapping[Place, str], tmp_path: Path) -> None:
    """The shell that a host is given for its own check, and that its program writes by."""
    text, right = _text(read, printed), _SCRIPTED[read.part, read.section]
    text = _plain_apps(text) if read.section == "app" else text
    whole = _printed_lines(read, text, tmp_path)
    assert {key: whole.get(key) for key in right} == dict(right)
    columns, others = (
        tuple(_columns(text)),
        (*_OTHER_ERRORS, *_other_words(text), *tuple(_dropped_lines(text))[::7]),
    )
    if read.section == "cc":
        # A file of the kernel's: it is read as a whole or not at all.
        others = ()
    for other in (*others, *columns[:: len(columns) // 9 or 1]):
        if not other and read.section == "app":
            continue  # a port without entries
        found = _printed_lines(read, other, tmp_path)
        told = {key: value for key, value in found.items() if key in right}
        assert told.items() <= right.items(), other
    if read.section == "cc":
        (tmp_path / "sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc/apply").unlink()
        assert not set(_printed_lines(read, "", tmp_path)) & set(right)


# ---------------------------------------------------------------- samples that are read in ways of their own


@cache
def _slot() -> str:
    """The shell function that finds niccli's number of a card, out of the question."""
    question = BNXT.questions(HOSTS["nic_bnxt"].hardware({}))[0]
    match = re.search(r"slot\(\) \{.*?exit \}\"; \};", question)
    assert match is not None
    return match[0]


def _number(text: str, bdf: str, folder: Path) -> str:
    (folder / "list").write_text(f"{text}\n", "utf-8")
    script = f'niccli() {{ cat "{folder}/list"; }}\n{_slot()}\nslot {bdf}'
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False).stdout.strip()


@pytest.mark.parametrize("place", [place for place, test in ELSEWHERE.items() if test == "test_cards_number"])
def test_cards_number(place: Place, printed: Mapping[Place, str], tmp_path: Path) -> None:
    """`niccli --list`: the number of the card at a PCI address, on the host itself."""
    text = printed[place].replace("<mac>", "00:00:5E:00:53:01").replace("<fw>", "231.2.63.0")
    assert _number(text, "0000:06:00.0", tmp_path) == "1"
    second = re.sub(r"^1 ?", "12 ", text).replace("0000:06:00.0", "0000:E6:00.0")
    assert _number(f"{text}\n{second}", "0000:e6:00.0", tmp_path) == "12"
    for other in (text.split("0000:06")[0], text.replace(")", ""), "No devices found", ""):
        assert _number(other, "0000:06:00.0", tmp_path) == "", other


def test_a_lossy_class_is_told(printed: Mapping[Place, str]) -> None:
    """`niccli ... qos --ingress --cosq --show`: PFC of a class that the hardware serves as lossy."""
    head, qos = printed[table.BNXT, "TC State Mode"], printed[table.GET_QOS]
    lossy = "its traffic class 1 is lossy"
    for mode, told in (("Lossy", True), ("Lossless", False), ("Verlustfrei", False)):
        rows = f"{head}\n  0  Enabled  Lossy\n  1  Enabled  {mode}"
        seen = HOSTS["nic_bnxt"].observe({"qos": (qos, 0), "cosq": (rows, 0)}, {})
        assert (lossy in " ".join(seen.notes)) is told, mode


_NETDEV = Hardware(("linux",), ports=(PortHardware("v1", speed_gbps=100),))


def _mtu(text: str, hw: Hardware = _NETDEV, status: int = 0) -> Any:
    name = hw.ports[0].name
    state = Box(parts={f"link {name}": (text, status)}).observe(hw).running.port(name)
    return state.settings.mtu.ip if state is not None else UNKNOWN


def test_a_netdev(printed: Mapping[Place, str]) -> None:
    """`ip -d -j link show dev`: MTU and ceiling; garbled, the MTU is unknown and is not written."""
    text = next(text for place, text in printed.items() if ELSEWHERE.get(place) == "test_a_netdev")
    seen = Box(parts={"link v1": text}).observe(_NETDEV)
    assert _mtu(text) == 9216 and dict(seen.facts)["netdev v1"].startswith("65535|68|veth|")
    wanted = NodeState(ports=(PortState("v1", "physical", PortSettings(mtu=Mtu(ip=4200))),))
    assert "ports.v1.mtu.ip" in {item.path for item in LINUX.change(seen, wanted, _NETDEV).differences}
    for other in (*_cuts(text), *_other_words(text), *_OTHER_ERRORS):
        found = _mtu(other)
        assert found is UNKNOWN, other
    blank = Box(parts={"link v1": text[: len(text) // 2]}).observe(_NETDEV)
    change = LINUX.change(blank, wanted, _NETDEV)
    assert "ports.v1.mtu.ip" in {item.path for item in change.blocked if item.unknown}
    assert change.differences == ()


def test_netdevs_without_json(shared: Path) -> None:
    """`ip link show` of an iproute2 or busybox without JSON: real prints of shared/data/show."""
    blocks = 0
    for output in show_data.outputs("linux"):
        if output.command != "ip link show":
            continue
        for block in re.split(r"^(?=\d+: )", output.text(), flags=re.MULTILINE):
            match = re.match(r"\d+: ([^:@]+)[:@]", block)
            if match is None:
                continue
            hw = Hardware(("linux",), ports=(PortHardware(match[1]),))
            assert _mtu(block, hw) == output.interfaces[match[1]].ip_mtu, block
            blocks += 1
    assert blocks > 5


def test_a_missing_sysctl(printed: Mapping[Place, str]) -> None:
    """The complaint about one key makes that key unknown, and no other."""
    text = printed[table.COMMON, "sysctl: cannot stat /proc/sys/net/core/nope: No such file or directory"]
    hw = replace(_NETDEV, options=(("sysctl", "net.core.nope net.ipv4.tcp_ecn"),))
    box = Box(parts={"sysctl": (f"{text}\nnet.ipv4.tcp_ecn = 2", 1)})
    live = dict(box.observe(hw).running.system.sysctl)
    assert live["net.ipv4.tcp_ecn"] == "2" and live.get("net.core.nope", UNKNOWN) is UNKNOWN
    wanted = NodeState(
        system=replace(NodeState().system, sysctl=(("net.core.nope", "1"), ("net.ipv4.tcp_ecn", "1")))
    )
    change = LINUX.change(box.observe(hw), wanted, hw)
    assert [item.path for item in change.blocked] == ["system.sysctl.net.core.nope"]
