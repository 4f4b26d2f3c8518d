"""NVUE's object tree as plain values: reading JSON, spreading range keys, filling in what is not configured.

`nv config show` holds only what somebody configured; the defaults below are those of NVIDIA's pages: the
QoS page (5.14), the RoCE page, and the full applied tree of 5.5 in the guide "Running the Playbooks".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rdma_fabric.platforms._shared import expand, runs
from rdma_fabric.state import DSCPS, PRIORITIES, UNKNOWN, Absent, Amount, Ecn, Maybe, Share

Tree = Mapping[str, Any]

GLOBAL: Final = "default-global"
OURS: Final = re.compile(r"fabric-\d+")
"""Names of our profiles."""
MAPPING, PFC, ECN, ETS = "mapping", "pfc", "congestion-control", "egress-scheduler"
KINDS: Final = (MAPPING, PFC, ECN, ETS)
"""Objects of which a port may have a profile of its own (QoS page, "Port Groups"; from 5.4)."""
QUEUES: Final = "egress-queue-mapping"

DEFAULT_MTU: Final = 9216  # help text of `nv set interface swp1 link mtu`
DEFAULT_CABLE_M: Final = 10
ROCE_CABLE_M: Final = 100
DEFAULT_RAMP: Final = Ecn(Amount(150_000), Amount(1_500_000), 100.0)
POLL_MS, ROBUSTNESS = 100, 3
CONTROL: Final = (6, 7)
"""Traffic classes that are served strictly where nobody gives them a share: network control."""
_ON: Final = {"enable", "enabled", "on", "true"}
_OFF: Final = {"disable", "disabled", "off", "false"}


# ---------------------------------------------------------------- JSON


def read_json(text: str) -> Any:
    """The JSON value inside an answer, or None; text before and after it is skipped."""
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    end = max(text.rfind("}"), text.rfind("]"))
    if not starts or end < min(starts):
        return None
    try:
        return json.loads(text[min(starts) : end + 1])
    except ValueError:
        return None


def read_config(text: str) -> tuple[Tree, Tree] | None:
    """(header, tree) of `nv config show -o json`; None when it is not one.

    The answer is a list of a header and a set; older code also met the bare tree.
    """
    found = read_json(text)
    parts = found if isinstance(found, list) else [found]
    header: Tree = {}
    tree: dict[str, Any] | None = None
    for part in parts:
        if not isinstance(part, dict):
            return None
        header = branch(part, "header") or header
        body = part.get("set") if {"set", "header"} & set(part) else part
        if isinstance(body, dict):
            tree = merge(tree or {}, body)
    if tree is None:
        return (header, {}) if header else None
    return header, tree


def branch(tree: Any, *path: str) -> Tree:
    """The object at that path; {} where there is none."""
    for word in path:
        tree = tree.get(word) if isinstance(tree, Mapping) else None
    return tree if isinstance(tree, Mapping) else {}


def merge(below: Tree, above: Tree) -> dict[str, Any]:
    """Both trees; the second one's leaves win."""
    made = dict(below)
    for key, value in above.items():
        old = made.get(key)
        made[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return made


# ---------------------------------------------------------------- names and numbers as keys

_RANGE = re.compile(r"(.*?)(\d+)-(\d+)")
_MOST = 4096


def spread(names: str) -> tuple[str, ...]:
    """Interface names of a key: "swp1-2,swp5s0-1,6" -> swp1, swp2, swp5s0, swp5s1, swp5s6."""
    found: list[str] = []
    prefix = ""
    for word in filter(None, (part.strip() for part in names.split(","))):
        one = _RANGE.fullmatch(word)
        if one is None:
            found.append(prefix + word if word.isdigit() else word)
        else:
            prefix = one[1] or prefix
            first, last = int(one[2]), int(one[3])
            if not first <= last < first + _MOST:
                found.append(word)
                continue
            found += [f"{prefix}{number}" for number in range(first, last + 1)]
        if not word[0].isdigit():
            prefix = re.sub(r"\d+(-\d+)?$", "", word)
    return tuple(found)


def gather(names: Iterable[str]) -> str:
    """The names as NVUE takes and prints them: swp1, swp2, swp3, bond1 -> "bond1,swp1-3"."""
    groups: dict[str, set[int]] = {}
    plain: set[str] = set()
    for name in names:
        match = re.fullmatch(r"([^.]*?)(\d+)", name)
        if match is None or (match[2][0] == "0" and match[2] != "0"):
            plain.add(name)
        else:
            groups.setdefault(match[1], set()).add(int(match[2]))
    parts = [
        (prefix, f"{first}-{last}" if last > first else f"{first}")
        for prefix in sorted(groups, key=natural)
        for first, last in runs(groups[prefix])
    ]
    return ",".join([*(f"{prefix}{numbers}" for prefix, numbers in parts), *sorted(plain, key=natural)])


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key: swp2 before swp10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)


def interfaces(tree: Tree) -> dict[str, Tree]:
    """Interface name -> its settings; one port may be spread over several range keys."""
    found: dict[str, Tree] = {}
    for names, settings in branch(tree, "interface").items():
        if isinstance(settings, Mapping):
            for name in spread(names):
                found[name] = merge(found.get(name, {}), settings)
    return found


def by_number(tree: Any, limit: int) -> dict[int, Any]:
    """Numbered members of a set or map, ranges spread; ValueError when a key is no number below `limit`."""
    found: dict[int, Any] = {}
    items: Iterator[tuple[Any, Any]]
    if isinstance(tree, Mapping):
        items = iter(tree.items())
    elif isinstance(tree, list):
        items = iter((key, {}) for key in tree)
    else:
        items = iter(((tree, {}),))
    for key, value in items:
        for number in expand(str(key)):
            if not 0 <= number < limit:
                raise ValueError(key)
            old = found.get(number)
            found[number] = (
                merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
            )
    return found


def whole(value: Any) -> int | None:
    """9216, "9216" and "150000 B" are whole numbers; "146.48 KB" is rounded by the device and none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    match = re.fullmatch(r"\s*(\d+)(?: B(?:ytes)?)?\s*", value) if isinstance(value, str) else None
    return int(match[1]) if match else None


def flag(value: Any, default: bool) -> Maybe[bool]:
    """enable, enabled, on / disable, disabled, off; the default where nothing is set."""
    if value is None:
        return default
    word = str(value).lower()
    return True if word in _ON else False if word in _OFF else UNKNOWN


def milliseconds(value: Any) -> int | None:
    """100, "100 ms" or "0:00:00.100000" (public acceptance script) as milliseconds."""
    number = whole(value)
    if number is not None:
        return number
    text = str(value)
    match = re.fullmatch(r"(\d+):(\d+):(\d+)(?:\.(\d+))?", text)
    if match:
        seconds = (int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])
        return seconds * 1000 + int((match[4] or "0").ljust(6, "0")[:6]) // 1000
    match = re.fullmatch(r"(\d+) ?ms", text)
    return int(match[1]) if match else None


# ---------------------------------------------------------------- what a profile says


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping profile: what is trusted, and the switch priority of each code point."""

    trust: Maybe[str] = "l2"
    dscp: Maybe[tuple[int, ...]] = tuple(dscp // 8 for dscp in DSCPS)
    pcp: Maybe[tuple[int, ...]] = tuple(PRIORITIES)


@dataclass(frozen=True, slots=True)
class PfcOf:
    """A pfc profile; no priorities = no PFC. `headroom` is bytes written by hand, None = computed."""

    priorities: Maybe[tuple[int, ...]] = ()
    tx: Maybe[bool] = True
    rx: Maybe[bool] = True
    cable_m: Maybe[int] = DEFAULT_CABLE_M
    headroom: Maybe[Amount | None] = None


Marks = Mapping[int, Maybe[Ecn | None]]
"""Traffic class -> ramp; None = listed with marking off; not in the map = no marking."""
Shares = Mapping[int, Maybe[Share]]
"""Traffic class -> share, all eight."""

DEFAULT_MARKS: Final[Marks] = {0: DEFAULT_RAMP}
DEFAULT_SHARES: Final[Shares] = {tc: Share("dwrr", 13 if tc % 2 else 12) for tc in PRIORITIES}
IDLE: Final[Shares] = {tc: Share("dwrr", 0) for tc in PRIORITIES}
"""A scheduler profile without entries: best effort (QoS page, "list2")."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What `default-global` says where nothing is configured: the factory's values or a RoCE macro's."""

    mapping: MapOf = MapOf()
    pfc: PfcOf = PfcOf()
    marks: Marks = None  # type: ignore[assignment]
    shares: Shares = None  # type: ignore[assignment]
    queues: tuple[int, ...] = tuple(PRIORITIES)


FACTORY: Final = Defaults(marks=DEFAULT_MARKS, shares=DEFAULT_SHARES)
_ROCE = Defaults(
    mapping=MapOf("both"),
    pfc=PfcOf((3,), cable_m=ROCE_CABLE_M),
    marks={0: DEFAULT_RAMP, 3: DEFAULT_RAMP},
    shares={**IDLE, 0: Share("dwrr", 50), 3: Share("dwrr", 50), 6: Share("strict")},
    queues=(0, 0, 0, 3, 0, 0, 6, 0),
)
_LOSSY = Defaults(_ROCE.mapping, PfcOf(cable_m=ROCE_CABLE_M), _ROCE.marks, _ROCE.shares, _ROCE.queues)
_MACROS: Final = {"": FACTORY, "lossless": _ROCE, "lossless-single-ipool": _ROCE, "lossy": _LOSSY}
LOSSLESS_MODES: Final = ("lossless", "lossless-single-ipool")


def roce_mode(tree: Tree, release: tuple[int, ...]) -> str:
    """The mode of `nv set qos roce` where it is on, else "".

    The switch is `enable: on` up to 5.14 and `state: enabled` from 5.15; without the switch the mode alone
    is enough up to 5.14 (RoCE page; What's New 5.15).
    """
    qos = branch(tree, "qos")
    if "roce" not in qos:
        return ""
    roce = branch(qos, "roce")
    switch = roce.get("state", roce.get("enable"))
    on = flag(switch, not release or release < (5, 15))
    if on is False:
        return ""
    return str(roce.get("mode", "lossless"))


def defaults_of(mode: str) -> Defaults | None:
    """Values under a RoCE mode ("" = off); None for a mode that no table describes in full."""
    return _MACROS.get(mode)


def read_mapping(raw: Tree, base: MapOf = FACTORY.mapping) -> MapOf:
    """A mapping profile; code points that it does not list keep the default (QoS page, "Trust DSCP")."""
    trust: Maybe[str] = str(raw.get("trust", base.trust))
    if trust not in ("l2", "l3", "both", "port"):
        trust = UNKNOWN
    return MapOf(
        trust,
        _points(raw.get("dscp", {}), base.dscp, len(DSCPS)),
        _points(raw.get("pcp", {}), base.pcp, len(PRIORITIES)),
    )


def _points(raw: Any, base: Maybe[tuple[int, ...]], count: int) -> Maybe[tuple[int, ...]]:
    if isinstance(base, Absent):
        return base
    made = list(base)
    try:
        for point, value in by_number(raw, count).items():
            made[point] = _member(value, "switch-priority")
    except ValueError:
        return UNKNOWN
    return tuple(made)


def _member(value: Any, name: str) -> int:
    """A number 0 to 7 of an entry; ValueError otherwise."""
    number = whole(branch(value).get(name))
    if number is None or number not in PRIORITIES:
        raise ValueError(value)
    return number


def read_pfc(raw: Tree, base: PfcOf = FACTORY.pfc, by_hand: Tree | None = None) -> PfcOf:
    """A pfc profile; a configured set of priorities replaces the default one (RoCE page, "Change").

    `by_hand`: the configured part alone, because a read-back of the whole shows computed buffer sizes too.
    """
    priorities = base.priorities
    if "switch-priority" in raw:
        try:
            priorities = tuple(sorted(by_number(raw["switch-priority"], len(PRIORITIES))))
        except ValueError:
            priorities = UNKNOWN
    cable: Maybe[int] = base.cable_m
    if "cable-length" in raw:
        cable = _or_unknown(whole(raw["cable-length"]))
    rx = flag(raw.get("rx"), base.rx is True)
    tx = flag(raw.get("tx"), base.tx is True)
    return PfcOf(priorities, tx, rx, cable, _headroom(raw if by_hand is None else by_hand))


def _or_unknown(value: int | None) -> Maybe[int]:
    return UNKNOWN if value is None else value


BUFFER_SIZES: Final = ("port-buffer", "xoff-threshold", "xon-threshold")


def _headroom(raw: Tree) -> Maybe[Amount | None]:
    """port-buffer + xoff-threshold (NVUE reference, QoS; defaults 25000 and 10000) where one is written."""
    if "port-buffer" not in raw and "xoff-threshold" not in raw:
        return None
    buffer, xoff = whole(raw.get("port-buffer", 25_000)), whole(raw.get("xoff-threshold", 10_000))
    return UNKNOWN if buffer is None or xoff is None else Amount(buffer + xoff)


def read_marks(raw: Tree, base: Marks, live: Tree | None = None) -> Marks:
    """Ramps by traffic class: those that the device lists, else those configured, else the default's.

    A configured list takes the default's place (QoS page: after 4, 5 and 7 are set, 0 is gone). Under the
    macro no page says so: what is not listed there is UNKNOWN until the device lists it.
    """
    try:
        configured = by_number(raw.get("traffic-class", {}), len(PRIORITIES))
        listed = None if live is None else by_number(live.get("traffic-class", {}), len(PRIORITIES))
    except ValueError:
        return dict.fromkeys(PRIORITIES, UNKNOWN)
    if listed is not None:
        return {tc: _ramp(entry, configured.get(tc, {}), base.get(tc)) for tc, entry in listed.items()}
    if not configured:
        return base
    made: dict[int, Maybe[Ecn | None]] = {}
    if len(base) > 1:
        made = dict.fromkeys(base, UNKNOWN)
    return made | {tc: _ramp(entry, {}, base.get(tc)) for tc, entry in configured.items()}


def _ramp(entry: Any, configured: Any, base: Maybe[Ecn | None]) -> Maybe[Ecn | None]:
    old = base if isinstance(base, Ecn) else DEFAULT_RAMP
    on = flag(branch(entry).get("ecn", branch(configured).get("ecn")), True)
    if on is not True:
        return None if on is False else UNKNOWN

    def number(name: str, default: int) -> int | None:
        shown = whole(branch(entry).get(name))
        return whole(branch(configured).get(name, default)) if shown is None else shown

    low, high = number("min-threshold", old.kmin.value), number("max-threshold", old.kmax.value)
    chance = number("probability", int(old.pmax))
    if low is None or high is None or chance is None:
        return UNKNOWN
    return Ecn(Amount(low), Amount(high), float(chance))


def read_shares(raw: Tree, base: Shares, live: Tree | None = None) -> Shares:
    """Shares of the eight traffic classes.

    Whether some entries in `default-global` end the 12/13 of the others is not documented: these are
    UNKNOWN until the device lists them. In a named profile they are best effort (QoS page, "list2").
    """
    try:
        configured = by_number(raw.get("traffic-class", {}), len(PRIORITIES))
        listed = {} if live is None else by_number(live.get("traffic-class", {}), len(PRIORITIES))
    except ValueError:
        return dict.fromkeys(PRIORITIES, UNKNOWN)
    made: dict[int, Maybe[Share]] = dict(base)
    if configured and base is DEFAULT_SHARES:
        made = dict.fromkeys(PRIORITIES, UNKNOWN)
    for tc, entry in (configured | listed).items():
        made[tc] = _share(branch(entry), branch(configured.get(tc, {})), base[tc])
    return made


def _share(entry: Tree, configured: Tree, base: Maybe[Share]) -> Maybe[Share]:
    old = base if isinstance(base, Share) else Share("dwrr", 0)
    mode = str(entry.get("mode", configured.get("mode", old.scheduler)))
    if mode == "strict":
        return Share("strict")
    percent = whole(entry.get("bw-percent", configured.get("bw-percent", old.weight)))
    return UNKNOWN if mode != "dwrr" or percent is None else Share("dwrr", percent)


def read_queues(raw: Tree, base: Sequence[int]) -> Maybe[tuple[int, ...]]:
    """Traffic class of each switch priority."""
    made = list(base)
    try:
        for priority, value in by_number(raw.get("switch-priority", {}), len(PRIORITIES)).items():
            made[priority] = _member(value, "traffic-class")
    except ValueError:
        return UNKNOWN
    return tuple(made)
