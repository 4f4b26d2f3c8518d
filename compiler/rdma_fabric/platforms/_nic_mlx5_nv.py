"""mlx5: non-volatile (NV) settings, which mlxconfig writes and the next reset of the card brings into force.

Nothing here resets a card. Names are mlxconfig's without the number of the port (`_P1`): a port's settings
are those with its own number, or those of the whole card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms._contract import Artifact, Call, Change, Disturbance, Disturbs, Fault, Put
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    Absent,
    Difference,
    Maybe,
    NicState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
)

PROGRAM: Final = "/usr/local/sbin/fabric-nv-mlx5"
FOLDER: Final = "/etc/fabric/nv"

_BIT: Final = {"false": "0", "true": "1"}
_PER_PORT: Final[Mapping[str, Mapping[str, str]]] = {
    "ROCE_CC_PRIO_MASK": {},
    "CNP_DSCP": {},
    "CNP_802P_PRIO": {},
    "MIN_TIME_BETWEEN_CNPS": {},
    "CLAMP_TGT_RATE": _BIT,
    "CLAMP_TGT_RATE_AFTER_TIME_INC": _BIT,
    "RPG_TIME_RESET": {},
    "RPG_BYTE_RESET": {},
    "RPG_THRESHOLD": {},
    "RPG_MAX_RATE": {},
    "RPG_AI_RATE": {},
    "RPG_HAI_RATE": {},
    "RPG_GD": {},
    "RPG_MIN_DEC_FAC": {},
    "RPG_MIN_RATE": {},
    "RATE_TO_SET_ON_FIRST_CNP": {},
    "DCE_TCP_G": {},
    "DCE_TCP_RTT": {},
    "RATE_REDUCE_MONITOR_PERIOD": {},
    "INITIAL_ALPHA_VALUE": {},
    "ROCE_RTT_RESP_DSCP": {},
    "ROCE_RTT_RESP_DSCP_MODE": {},
    "LLDP_NB_DCBX": _BIT,
    "LLDP_NB_RX_MODE": {"off": "0", "all": "2"},
    "LLDP_NB_TX_MODE": {"off": "0", "all": "2"},
    "DCBX_IEEE": _BIT,
    "DCBX_CEE": _BIT,
    "DCBX_WILLING": _BIT,
    "KEEP_ETH_LINK_UP": _BIT,
    "LINK_TYPE": {"ib": "1", "eth": "2", "vpi": "3"},
}
_PER_CARD: Final[Mapping[str, Mapping[str, str]]] = {
    "SRIOV_EN": _BIT,
    "NUM_OF_VFS": {},
    "ATS_ENABLED": _BIT,
    "ADVANCED_PCI_SETTINGS": _BIT,
    "MAX_ACC_OUT_READ": {},
    "PCI_WR_ORDERING": {},
    "ROCE_ADAPTIVE_ROUTING_EN": _BIT,
    "USER_PROGRAMMABLE_CC": _BIT,
    "INTERNAL_CPU_MODEL": {},
    "INTERNAL_CPU_OFFLOAD_ENGINE": {},
    "INTERNAL_CPU_PAGE_SUPPLIER": {},
    "INTERNAL_CPU_ESWITCH_MANAGER": {},
    "INTERNAL_CPU_IB_VPORT0": {},
}
NAMES: Final[Mapping[str, Mapping[str, str]]] = {**_PER_PORT, **_PER_CARD}
"""Settings that are always read -> mlxconfig's words and their numbers. Names and words: public query dumps
and NVIDIA's list of non-volatile configurations; what is not here is asked for when the intent names it."""
_LIMITS: Final[Mapping[str, int]] = {"CNP_DSCP": 63, "CNP_802P_PRIO": 7, "ROCE_CC_PRIO_MASK": 255}
_NEVER: Final = ("LINK_TYPE", "INTERNAL_CPU_")
"""Another link type or mode of the card takes its ports away: compared, never written."""
_NOTHING: Final = "mlxconfig writes what the next reset brings; the card works on as it is"


@dataclass(frozen=True, slots=True)
class Context:
    """For the program and its settings files."""

    program: str = PROGRAM
    folder: str = FOLDER
    rows: tuple[tuple[str, str], ...] = ()


# ---------------------------------------------------------------- read


@dataclass(frozen=True, slots=True)
class Shown:
    """The NV settings of one port by their names without its number."""

    running: tuple[tuple[str, Maybe[str]], ...] = ()
    stored: tuple[tuple[str, Maybe[str]], ...] = ()
    literal: tuple[str, ...] = ()
    """Names that the intent asks for, as mlxconfig has them."""
    missing: tuple[str, ...] = ()
    """Those that the card does not have."""
    complete: bool = False
    """Everything that the card has was shown: what is not there does not exist."""
    tool_missing: bool = False

    @property
    def pending(self) -> tuple[tuple[str, str], ...]:
        """What a reset will change."""
        now = dict(self.running)
        return tuple(
            (name, value) for name, value in self.stored if isinstance(value, str) and now[name] != value
        )


def shown(section: Section, port: int | None, asked: Iterable[str]) -> Shown:
    """`mlxconfig -d BDF -e query` for one port of the card."""
    wanted = sorted(set(asked))
    unread = tuple((name, UNKNOWN) for name in wanted)
    rows = query(section.text) if section.ok and port is not None else None
    if rows is None:
        return Shown(unread, unread, tool_missing=bool(wanted) and not section.asked)
    running: dict[str, Maybe[str]] = {}
    stored: dict[str, Maybe[str]] = {}
    literal, missing = [], []
    complete = _whole(section.text)
    for name in sorted({*NAMES, *wanted}):
        own = next((one for one in (f"{name}_P{port}", name) if one in rows), "")
        if own:
            running[name], stored[name] = rows[own]
            literal += [own] if name in wanted else []
        elif name in wanted:
            running[name] = stored[name] = NOT_APPLICABLE if complete else UNKNOWN
            missing += [name] if complete else []
    return Shown(tuple(running.items()), tuple(stored.items()), tuple(literal), tuple(missing), complete)


def query(text: str) -> dict[str, tuple[Maybe[str], Maybe[str]]] | None:
    """Name -> (current, next boot) of one device; None for an output that is not understood.

    mstflint mlxcfg_ui.cpp: "*" marks a next value that differs, "RO" one that cannot be set; columns are
    padded, and one blank parts them where a value is too long.
    """
    head = re.findall(r"^Configurations:[ \t]+(.*?)[ \t]*$", text, re.MULTILINE)
    if len(head) != 1 or head[0].split() != ["Default", "Current", "Next", "Boot"]:
        return None
    found: dict[str, tuple[Maybe[str], Maybe[str]]] = {}
    lines = text.partition("Configurations:")[2].splitlines()[1:]
    for index, line in enumerate(lines):
        words = line.split()
        marked = bool(words) and words[0] in ("*", "RO", "*RO")
        if marked:
            words = words[1:]
        if not words or not re.fullmatch(r"[A-Z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+", words[0]):
            continue
        values = (value(words[2]), value(words[3])) if len(words) == 4 else (UNKNOWN, UNKNOWN)
        cut = index == len(lines) - 1 and isinstance(values[0], str) and values[0] != values[1]
        if cut and not marked:
            values = (values[0], UNKNOWN)  # another value would bear a mark: the last number was cut off
        found[words[0]] = (UNKNOWN, UNKNOWN) if words[0] in found else values
    return found or None


def _whole(text: str) -> bool:
    """True where every line is a row or mstflint's own words; else one that is missed may be there."""
    for line in text.partition("Configurations:")[2].splitlines()[1:]:
        words = line.split()
        if words and words[0] in ("*", "RO", "*RO"):
            words = words[1:]
        prose = line.startswith(("The '*' shows", "The 'RO' shows"))
        # Columns are 20 wide, and a longer word touches the next one: NAME  DEFAULT(0)DEFAULT(0)DEFAULT(0)
        cells = re.findall(r"[^\s()]*\(\d+\)|[^\s()]+", " ".join(words[1:]))
        if words and not prose and (len(cells) < 3 or not re.fullmatch(r"[A-Z]\w+", words[0])):
            return False
    return "Failed to query" not in text


def value(word: str) -> Maybe[str]:
    """ "True(1)" and "1" are "1"; arrays, bytes and "N/A" are UNKNOWN."""
    match = re.fullmatch(r"(?:[A-Za-z0-9_./-]+\()?([0-9]{1,10})\)?", word)
    if match is None or word.count("(") != word.count(")") or int(match[1]) >= 2**32:
        return UNKNOWN
    return str(int(match[1]))


def port_number(name: str, bdf: str) -> int | None:
    """The port's number in mlxconfig's names: one more than in "p0" (phys_port_name), else than the PCI
    function (Linux mlx5_get_dev_index); None when neither is known."""
    match = re.match(r"p(\d+)", name.strip())
    if match:
        return int(match[1]) + 1
    return int(bdf[-1]) + 1 if bdf else None


# ---------------------------------------------------------------- realize


def realize(wanted: NicState, port: PortHardware, faults: list[Fault]) -> NicState:
    """Numbers in place of words; what no card of this kind can take is dropped with a fault."""
    if not wanted.nv:
        return wanted
    found: list[tuple[str, Maybe[str]]] = []
    for name, text in wanted.nv:
        used = _number(name, text) if isinstance(text, str) else text
        if used is None:
            faults.append(_refused(port.name, name, str(text)))
            used = NOT_APPLICABLE
        found.append((name, used))
    return replace(wanted, nv=tuple(found))


def _number(name: str, text: str) -> str | None:
    """The number that mlxconfig has for a value; None when it is none, or out of range."""
    word = text.strip().lower()
    bare = NAMES.get(name, {}).get(word) or _BIT.get(word)
    if bare is None:
        match = re.fullmatch(r"0x[0-9a-f]+|\d+|[a-z0-9_./-]+\((\d+)\)", word)
        if match is None:
            return None
        bare = str(int(match[1] or word, 0 if word.startswith("0x") else 10))
    return bare if int(bare) <= _LIMITS.get(name, 2**32 - 1) else None


def _refused(port: str, name: str, text: str) -> Fault:
    limit = f" up to {_LIMITS[name]}" if name in _LIMITS else ""
    return Fault(
        Severity.ERROR,
        port,
        f"nic.nv.{name}",
        text,
        "",
        f"mlxconfig takes a number{limit} for it",
        "write the number that `mlxconfig -e query` shows, for ETH(2) the 2",
    )


# ---------------------------------------------------------------- write


def artifacts(wanted: NodeState, ports: Iterable[PortHardware]) -> tuple[Artifact, ...]:
    """The program and a settings file for every port that has NV settings."""
    files = [
        Artifact(
            "_shared/host/port.conf.j2",
            f"{FOLDER}/{port.name}.conf".removeprefix("/"),
            0o644,
            Context(rows=(*_head(port), *rows)),
        )
        for port in ports
        if (rows := _rows(wanted.port(port.name)))
    ]
    program = Artifact("nic_mlx5/fabric-nv.sh.j2", PROGRAM.removeprefix("/"), 0o755, Context())
    return (program, *files) if files else ()


def _head(port: PortHardware) -> tuple[tuple[str, str], ...]:
    return (("BDF", port.bdf),) if port.bdf else ()


def _rows(state: PortState | None) -> tuple[tuple[str, str], ...]:
    """NAME=VALUE of a port's settings file."""
    pairs = state.settings.nic.nv if state is not None else ()
    return tuple((name, one) for name, one in pairs if isinstance(one, str) and not name.startswith(_NEVER))


@dataclass
class NvChange:
    """From what was seen to what is wanted, for the NV settings of all mlx5 ports."""

    seen: Observation
    wanted: NodeState
    hw: Hardware
    ports: tuple[PortHardware, ...]
    blocked: list[Difference] = field(default_factory=list)
    reasons: list[tuple[str, str]] = field(default_factory=list)
    found: list[Difference] = field(default_factory=list)

    def build(self) -> Change:
        """Settings files of changed ports, then the program for each of them."""
        steps: list[Put | Call] = []
        undo: list[Call] = []
        lines: list[str] = []
        changed: list[str] = []
        for port in self.ports:
            rows = self._to_write(port)
            if not rows:
                continue
            changed.append(port.name)
            pairs = tuple(f"{name}={wish}" for name, wish, _ in rows)
            steps += [self._file(port), self._call(port, pairs)]
            back = tuple(f"{name}={old}" for name, _, old in rows)
            undo.insert(0, Call((PROGRAM, port.name, *self._words(port), *back), timeout_s=120.0))
            lines += [f"{FOLDER}/{port.name}.conf: {pair}" for pair in pairs]
            lines.append(self._line(port, rows))
        if not steps:
            return Change(blocked=tuple(self.blocked), reasons=tuple(self.reasons))
        quiet = Disturbance(Disturbs.NOTHING, tuple(changed), "NV settings change", _NOTHING)
        program = host.put(PROGRAM, "nic_mlx5/fabric-nv.sh.j2", Context(), 0o755)
        return Change(
            differences=tuple(self.found),
            blocked=tuple(self.blocked),
            reasons=tuple(self.reasons),
            lines=tuple(lines),
            commit=(program, *steps),
            undo=tuple(undo),
            undo_kind="dead-man",
            disturbs=(quiet,),
            undo_disturbs=(quiet,),
            expected=self.wanted,
        )

    def _to_write(self, port: PortHardware) -> list[tuple[str, str, str]]:
        """(name, wanted, what the next reset would bring) of what is to be written."""
        now, later = self._nv(self.seen.running, port), self._nv(self.seen.stored, port)
        found = []
        for name, wish in self._nv(self.wanted, port).items():
            if not isinstance(wish, str):
                continue
            have, next_ = now.get(name, UNKNOWN), later.get(name, UNKNOWN)
            item = Difference(f"ports.{port.name}.nic.nv.{name}", wish, have if have != wish else next_)
            if isinstance(have, Absent) or isinstance(next_, Absent):
                lost = have if isinstance(have, Absent) else next_
                self._block(replace(item, found=lost), "its card has no such setting", lost is NOT_APPLICABLE)
            elif name.startswith(_NEVER):
                if have != wish or next_ != wish:
                    self._block(item, "the link type and mode of a card are only compared", True)
            elif next_ != wish:
                self.found.append(item)
                found.append((name, wish, next_))
        return found

    def _block(self, item: Difference, reason: str, read: bool) -> None:
        self.blocked.append(item)
        if read:
            self.reasons.append((item.path, reason))

    @staticmethod
    def _nv(state: NodeState | None, port: PortHardware) -> dict[str, Maybe[str]]:
        one = state.port(port.name) if state is not None else None
        return dict(one.settings.nic.nv) if one is not None else {}

    def _file(self, port: PortHardware) -> Put:
        rows = _rows(self.wanted.port(port.name))
        return host.put(
            f"{FOLDER}/{port.name}.conf", "_shared/host/port.conf.j2", Context(rows=(*_head(port), *rows))
        )

    def _words(self, port: PortHardware) -> tuple[str, ...]:
        return tuple("=".join(one) for one in _head(port))

    def _call(self, port: PortHardware, pairs: tuple[str, ...]) -> Call:
        # With the settings themselves: the file also holds those that are blocked.
        words = (port.name, *self._words(port), *pairs)
        return Call((PROGRAM, *words), unless=(PROGRAM, "--check", *words), timeout_s=120.0)

    def _line(self, port: PortHardware, rows: Iterable[tuple[str, str, str]]) -> str:
        """The command as people would type it."""
        facts = dict(self.seen.facts)
        tool, *literal = facts.get(f"nv {port.name}", "mlxconfig").split()
        bdf = facts.get(f"bdf {port.name}", "") or port.bdf or "BDF"
        number = port_number("", bdf if bdf != "BDF" else "") or 1
        words = [f"{_literal(name, number, literal)}={wish}" for name, wish, _ in rows]
        return f"{tool} -d {bdf} -y set {' '.join(words)}"


def _literal(name: str, number: int, known: Iterable[str]) -> str:
    own = next((one for one in known if re.fullmatch(rf"{name}(?:_P\d+)?", one)), "")
    return own or (f"{name}_P{number}" if name in _PER_PORT else name)


def layers(ports: Iterable[tuple[PortHardware, tuple[tuple[str, str], ...]]]) -> NodeState | None:
    """The pending layer: per port what a reset will change; None when nothing waits."""
    found = tuple(
        PortState(port.name, port.kind, PortSettings(nic=NicState(nv=pairs)))
        for port, pairs in ports
        if pairs
    )
    return NodeState(ports=found) if found else None


def contradictions(wanted: PortSettings) -> Iterator[tuple[str, str, str, str]]:
    """(setting, its value, what the classes say, why) of NV settings that work against the classes."""
    nv = {name: int(one) for name, one in wanted.nic.nv if isinstance(one, str)}
    marking = wanted.marking
    dscp = nv.get("CNP_DSCP")
    if dscp is not None and isinstance(marking.cnp_dscp, int) and dscp != marking.cnp_dscp:
        yield "CNP_DSCP", str(dscp), str(marking.cnp_dscp), "the CNP class has another DSCP"
    lossless = {p for p, one in enumerate(wanted.qos.classes) if one.pfc_tx is True or one.pfc_rx is True}
    if nv.get("CNP_802P_PRIO") in lossless:
        priority = nv["CNP_802P_PRIO"]
        yield "CNP_802P_PRIO", str(priority), "a priority without PFC", "CNPs would be paused"
    mask = nv.get("ROCE_CC_PRIO_MASK")
    for role in (marking.np, marking.rp):
        if mask is not None and not isinstance(role, Absent):
            lost = [priority for priority in role if not mask >> priority & 1]
            if lost:
                wish = str(sum(1 << priority for priority in role))
                yield "ROCE_CC_PRIO_MASK", str(mask), wish, "DCQCN is wished on a priority that it leaves out"
                return
