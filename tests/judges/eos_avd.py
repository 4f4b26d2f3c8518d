"""pyavd as a second renderer for EOS: Arista's own templates and schema, from the same wishes.

`structured` turns neutral wishes into AVD's structured config, `render` gives its text, `lines` makes
texts of different authors comparable: blocks instead of indentation, numbers instead of spellings.
"""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

Line: TypeAlias = tuple[tuple[str, ...], str]
"""The lines of the blocks around it (outermost first), and the line itself."""

_DSCP_MAP = re.compile(r"(?P<head>(?:no )?qos map dscp) (?P<codes>\d+(?: \d+)*)(?P<tail>(?: .*)?)")
_NUMBER = re.compile(r"(?<=\s)\d+(?:\.\d+)?(?=\s|$)")


def missing() -> str | None:
    """Return why this judge cannot run here, or None when it can."""
    return None if importlib.util.find_spec("pyavd") else "pyavd is not installed (test extra `dev`)"


# --- neutral wishes -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ecn:
    """Marking thresholds; `unit` is EOS's word: segments, bytes, kbytes, mbytes, milliseconds."""

    kmin: int
    kmax: int
    unit: str = "kbytes"
    probability: int | None = 100
    weight: int | None = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """One egress queue: strict priority or a share in percent; both unset leaves the scheduler alone."""

    strict: bool = False
    percent: int | None = None
    ecn: Ecn | None = None


@dataclass(frozen=True, slots=True)
class Watchdog:
    """Watchdog of the whole switch; times in milliseconds, None = not written."""

    detect: int | None = None
    restore: int | None = None
    poll: int | None = None
    action: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A `qos profile`; `lossless` holds the PFC priorities, empty = PFC stays unwritten."""

    trust: Literal["dscp", "cos", "disabled"] | None = None
    lossless: tuple[int, ...] = ()
    watchdog: bool = False
    queues: Mapping[int, Queue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Port:
    """One port; `mtu` in bytes as EOS counts; `lossless` and `trust` for ports without a profile."""

    mtu: int | None = None
    routed: bool = True
    profile: str | None = None
    trust: Literal["dscp", "cos", "disabled"] | None = None
    lossless: tuple[int, ...] = ()
    counted_queues: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Wishes:
    """What one EOS switch shall do for RoCE."""

    ports: Mapping[str, Port] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    dscp_to_class: Mapping[int, int] = field(default_factory=dict)
    class_to_queue: Mapping[int, int] = field(default_factory=dict)
    watchdog: Watchdog | None = None
    queue_word: Literal["uc-tx-queue", "tx-queue"] = "uc-tx-queue"


# --- wishes -> AVD structured config --------------------------------------------------------------


def structured(spec: Wishes) -> dict[str, Any]:
    """Return AVD's structured config (eos_cli_config_gen) of the wishes."""
    queues = spec.queue_word.replace("-", "_") + "s"
    config: dict[str, Any] = _without_empty(
        {
            "qos": {"map": {"dscp": _dscp_lines(spec), "traffic_class": _queue_lines(spec)}},
            "priority_flow_control": {"watchdog": _watchdog(spec.watchdog) if spec.watchdog else None},
            "qos_profiles": [_profile(name, one, queues) for name, one in spec.profiles.items()],
            "ethernet_interfaces": [_port(name, one, queues) for name, one in spec.ports.items()],
        }
    )
    return config


def _without_empty(value: Any) -> Any:
    """Drop None and what is left empty by it; False and 0 are wishes."""
    if isinstance(value, dict):
        kept = {key: _without_empty(child) for key, child in value.items()}
        return {key: child for key, child in kept.items() if child is not None and child not in ({}, [])}
    return [_without_empty(child) for child in value] if isinstance(value, list) else value


def _dscp_lines(spec: Wishes) -> list[str]:
    by_class: dict[int, list[int]] = defaultdict(list)
    for code, traffic_class in sorted(spec.dscp_to_class.items()):
        by_class[traffic_class].append(code)
    return [f"{' '.join(map(str, codes))} to traffic-class {one}" for one, codes in sorted(by_class.items())]


def _queue_lines(spec: Wishes) -> list[str]:
    # The target word is `tx-queue` also where the mode is `uc-tx-queue` (arista_eos.md, row d).
    return [f"{one} to tx-queue {queue}" for one, queue in sorted(spec.class_to_queue.items())]


def _seconds(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else _plain(Decimal(milliseconds) / 1000)


def _watchdog(wish: Watchdog) -> dict[str, Any]:
    return {
        "timeout": _seconds(wish.detect),
        "recovery_time": _seconds(wish.restore),
        "polling_interval": _seconds(wish.poll),
        "action": wish.action,
    }


def _flow_control(lossless: tuple[int, ...], *, watchdog: bool = False) -> dict[str, Any]:
    priorities = [{"priority": priority, "no_drop": True} for priority in sorted(lossless)]
    return {
        "enabled": True if lossless else None,
        "priorities": priorities,
        "watchdog": {"enabled": True} if watchdog else None,
    }


def _profile(name: str, wish: Profile, queues: str) -> dict[str, Any]:
    return {
        "name": name,
        "trust": wish.trust,
        "priority_flow_control": _flow_control(wish.lossless, watchdog=wish.watchdog),
        queues: [_queue(number, one) for number, one in sorted(wish.queues.items())],
    }


def _queue(number: int, wish: Queue) -> dict[str, Any]:
    # A share works only on a queue that is not strict, and strict is the default (row i).
    priority = "priority strict" if wish.strict else "no priority" if wish.percent is not None else None
    return {
        "id": number,
        "priority": priority,
        "bandwidth_percent": wish.percent,
        "random_detect": {"ecn": {"threshold": _threshold(wish.ecn) if wish.ecn else None}},
    }


def _threshold(ecn: Ecn) -> dict[str, Any]:
    return {
        "units": ecn.unit,
        "min": ecn.kmin,
        "max": ecn.kmax,
        "max_probability": ecn.probability,
        "weight": ecn.weight,
    }


def _port(name: str, wish: Port, queues: str) -> dict[str, Any]:
    counted = [{"id": queue, "random_detect": {"ecn": {"count": True}}} for queue in wish.counted_queues]
    return {
        "name": name,
        "mtu": wish.mtu,
        "switchport": {"enabled": False} if wish.routed else None,
        "service_profile": wish.profile,
        "qos": {"trust": wish.trust},
        "priority_flow_control": _flow_control(wish.lossless),
        queues: counted,
    }


# --- AVD's verdict and text -----------------------------------------------------------------------


class SchemaViolation(Exception):
    """AVD's schema refuses the structured config; the text lists why."""


def validate(structured_config: Mapping[str, Any]) -> list[str]:
    """Return what AVD's schema refuses, as `path: message` (empty = valid)."""
    import pyavd

    result = pyavd.validate_structured_config(dict(structured_config)).validation_result
    return [f"{'.'.join(map(str, one.path))}: {one.message}" for one in result.violations]


def render(structured_config: Mapping[str, Any]) -> str:
    """Return EOS configuration text; raises SchemaViolation for what `validate` refuses."""
    import pyavd

    violations = validate(structured_config)
    if violations:
        raise SchemaViolation("; ".join(violations))
    data = pyavd.validate_structured_config(dict(structured_config)).validated_data
    return str(pyavd.get_device_config(data))


# --- comparing texts ------------------------------------------------------------------------------


def lines(text: str) -> set[Line]:
    """Return every line with the blocks that it stands in; order, `!` and spelling of numbers are gone."""
    found: set[Line] = set()
    blocks: list[tuple[int, str]] = []
    for raw in text.splitlines():
        words = raw.split()
        if not words or words[0].startswith("!"):
            continue
        indent = len(raw) - len(raw.lstrip())
        while blocks and blocks[-1][0] >= indent:
            blocks.pop()
        path = tuple(block for _, block in blocks)
        line = " ".join(words)
        found.update((path, one) for one in _meanings(line))
        blocks.append((indent, line))
    return found


def _meanings(line: str) -> Iterator[str]:
    """Yield the line in one spelling; a DSCP list becomes one line for each code point."""
    mapped = _DSCP_MAP.fullmatch(line)
    if mapped:
        for code in mapped["codes"].split():
            yield f"{mapped['head']} {int(code)}{mapped['tail']}"
    elif "priority-flow-control pause watchdog" in line:
        yield _NUMBER.sub(lambda number: _plain(Decimal(number[0])), line)
    else:
        yield line


def _plain(number: Decimal) -> str:
    """0.20 -> 0.2, 1.000 -> 1, 10 -> 10 (Decimal.normalize alone would print 1E+1)."""
    return format(number.normalize(), "f")


def differences(ours: str, theirs: str) -> list[str]:
    """Return the lines that only one of two texts has, `-` ours, `+` theirs, with their blocks."""
    mine, other = lines(ours), lines(theirs)
    only = [("-", line) for line in mine - other] + [("+", line) for line in other - mine]
    return [f"{sign} {' / '.join((*path, line))}" for sign, (path, line) in sorted(only)]
