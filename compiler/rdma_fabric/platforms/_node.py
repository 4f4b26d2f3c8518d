"""A node put together from its parts: base, NICs, services. Memoised on the identity of settings."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _host_install as install
from rdma_fabric.platforms import _host_probes as local
from rdma_fabric.platforms._contract import (
    Artifact,
    Call,
    Change,
    Fault,
    HostPlatform,
    Platform,
    Probe,
    Put,
    Reaching,
    Realized,
    Vital,
)
from rdma_fabric.state import UNMANAGED, NodeState, Observation, Partitions, PortState, settled
from rdma_fabric.vitals import Vitals
from rdma_fabric.vitals import joined as joined_vitals

T = TypeVar("T")


@cache
def keys() -> tuple[str, ...]:
    """Names of all platform modules, sorted."""
    package = importlib.import_module("rdma_fabric.platforms")
    return tuple(sorted(info.name for info in pkgutil.iter_modules(package.__path__) if info.name[0] != "_"))


@cache
def platform(key: str) -> Platform:
    """The platform of that key; KeyError when there is none."""
    if key not in keys():
        raise KeyError(key)
    return cast(Platform, importlib.import_module(f"rdma_fabric.platforms.{key}").PLATFORM)


@cache
def bases() -> tuple[str, ...]:
    """Keys that a node's `platform` may name."""
    return tuple(key for key in keys() if platform(key).part == "base")


@cache
def nics() -> tuple[str, ...]:
    """Words that a port's `nic` may be."""
    return tuple(key.removeprefix("nic_") for key in keys() if platform(key).part == "nic")


def parts(hw: Hardware) -> tuple[Platform, ...]:
    """The node's platforms in order; unknown keys are left out (the loader has reported them)."""
    return tuple(platform(key) for key in hw.parts if key in keys())


class _Memo:
    """Results by the identity of a state and its hardware; holds both, so that no identity is reused."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], tuple[Any, Any, Realized]] = {}

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        key = (id(wanted), id(hw))
        if key not in self._found:
            self._found[key] = (wanted, hw, _realize(wanted, hw))
        return self._found[key][2]

    def forget(self) -> None:
        self._found.clear()


_MEMO = _Memo()


def realize(wanted: NodeState, hw: Hardware) -> Realized:
    """What a read-back of this node will show; every part in turn, each for its own fields."""
    return _MEMO.realize(wanted, hw)


def forget() -> None:
    """Drops what was remembered for states that are no longer used (a watcher that reads its inputs anew)."""
    _MEMO.forget()


def _realize(wanted: NodeState, hw: Hardware) -> Realized:
    faults: list[Fault] = []
    state = wanted
    for part in parts(hw):
        realized = part.realize(state, hw)
        state = realized.state
        faults.extend(realized.faults)
    return Realized(state, tuple(faults))


def questions(hw: Hardware) -> tuple[str, ...]:
    """All parts' read-only commands, each once, for one session."""
    found: dict[str, None] = {}
    for part in parts(hw):
        found.update(dict.fromkeys(part.questions(hw)))
    return (*found, local.question(hw)) if _is_host(hw) else tuple(found)


def parse(answers: Mapping[str, str], hw: Hardware) -> Observation:
    """One observation from all parts' answers; a later part's fields lie over an earlier one's."""
    found: Observation | None = None
    for part in parts(hw):
        seen = part.parse(answers, hw)
        found = seen if found is None else _overlay_observation(found, seen)
    assert found is not None
    own = local.facts(answers.get(local.question(hw), "")) if _is_host(hw) else {}
    return replace(found, facts=tuple(sorted({**dict(found.facts), **own}.items()))) if own else found


def vital_questions(hw: Hardware) -> tuple[str, ...]:
    """All parts' read-only commands about counters, each once, for one session."""
    found: dict[str, None] = {}
    for part in parts(hw):
        if isinstance(part, Vital):
            found.update(dict.fromkeys(part.vital_questions(hw)))
    return tuple(found)


def vitals(answers: Mapping[str, str], hw: Hardware) -> Vitals:
    """What all parts show; of two parts that count the same on one port the later one is taken."""
    return joined_vitals(part.vitals(answers, hw) for part in parts(hw) if isinstance(part, Vital))


def tester(hw: Hardware) -> Reaching | None:
    """The part of a node from which paths can be tested, or None."""
    return next((part for part in parts(hw) if isinstance(part, Reaching)), None)


def _is_host(hw: Hardware) -> bool:
    """True where programs of ours run."""
    return any(part.channel == "files" for part in parts(hw))


def _overlay_observation(below: Observation, above: Observation) -> Observation:
    digest = hashlib.sha256(f"{below.evidence}\n{above.evidence}".encode()).hexdigest()
    return Observation(
        running=_both_owners(below, above),
        stored=_overlay_layer(below.stored, above.stored),
        pending=_overlay_layer(below.pending, above.pending),
        operational=below.operational and above.operational,
        notes=tuple(dict.fromkeys((*below.notes, *above.notes))),
        neighbours=tuple(sorted({*below.neighbours, *above.neighbours})),
        buffers=(*below.buffers, *above.buffers),
        facts=tuple(sorted(dict((*below.facts, *above.facts)).items())),
        evidence=digest,
    )


def _overlay_layer(below: NodeState | None, above: NodeState | None) -> NodeState | None:
    if below is None or above is None:
        return below if above is None else above
    return overlay(below, above)


def overlay(below: NodeState, above: NodeState) -> NodeState:
    """`above` where it says anything, else `below`; ports by name."""
    extra = {port.name: port for port in above.ports}
    ports = [_overlay_port(port, extra.pop(port.name, None)) for port in below.ports]
    return NodeState(_overlay(below.system, above.system), (*ports, *extra.values()))


def _both_owners(below: Observation, above: Observation) -> NodeState:
    """The running state; of other agents every part finds its own."""
    state = overlay(below.running, above.running)
    first, second = below.running.system.owners, above.running.system.owners
    if isinstance(first, tuple) and isinstance(second, tuple):
        owners = tuple(sorted({*first, *second}))
        return replace(state, system=replace(state.system, owners=owners))
    return state


def _overlay_port(below: PortState, above: PortState | None) -> PortState:
    if above is None:
        return below
    speed = below.speed_gbps if above.speed_gbps is UNMANAGED else above.speed_gbps
    return replace(below, settings=_overlay(below.settings, above.settings), speed_gbps=speed)


def _overlay(below: T, above: T) -> T:
    if above is UNMANAGED or above is below:
        return below
    if isinstance(above, Partitions):
        return above
    if above == () and isinstance(below, tuple) and _pairs(below):
        return below
    if is_dataclass(above) and type(above) is type(below):
        values = {
            item.name: _overlay(getattr(below, item.name), getattr(above, item.name))
            for item in fields(above)
            if item.compare
        }
        return cast(T, replace(cast(Any, below), **values))
    if isinstance(above, tuple) and above and is_dataclass(above[0]) and isinstance(below, tuple):
        return cast(T, tuple(_overlay(b, a) for b, a in zip(below, above, strict=True)))
    if isinstance(above, tuple) and isinstance(below, tuple) and _pairs(above) and _pairs(below):
        return cast(T, tuple(sorted((dict(below) | dict(above)).items())))
    return above


def _pairs(value: tuple[Any, ...]) -> bool:
    return bool(value) and all(isinstance(item, tuple) and len(item) == 2 for item in value)


def artifacts(wanted: NodeState, hw: Hardware) -> Iterator[tuple[Platform, Artifact]]:
    """All parts' files of a realized state, then those of the local check."""
    for part in parts(hw):
        for artifact in part.artifacts(wanted, hw):
            yield part, artifact
    for artifact in local.artifacts(_kept(wanted, hw)):
        yield parts(hw)[0], artifact


def probes(wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
    """What the node can judge by itself of a realized state; () where nothing of ours runs on it."""
    hosts = (part for part in parts(hw) if isinstance(part, HostPlatform))
    return tuple(probe for part in hosts for probe in part.probes(wanted, hw))


def _kept(wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
    """What the node's own check file asks; () where the intent wants none."""
    return () if hw.option("local_check") == "off" else probes(wanted, hw)


def local_check(wanted: NodeState, hw: Hardware) -> tuple[Put, ...]:
    """The files of the local check; () where nothing of ours runs, or no such check is wanted."""
    return local.puts(_kept(wanted, hw))


def activation(files: Mapping[str, str], wanted: NodeState, hw: Hardware) -> tuple[Call, ...]:
    """What makes the compiled files (path -> text) of a host work now; every call tests for itself."""
    return install.activation(files, wanted, hw)


def with_local_check(change: Change, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
    """The change, and the files of the local check where the node has others."""
    return local.installed(change, seen, wanted, _kept(wanted, hw))


def change(seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
    """One change from all parts, in their order; undo runs the other way round."""
    found: Change | None = None
    for part in parts(hw):
        one = part.change(seen, wanted, hw)
        found = one if found is None else joined(found, one)
    assert found is not None
    return found if found.expected is None else replace(found, expected=settled(found.expected))


def joined(first: Change, second: Change) -> Change:
    """Two changes of one node as one; undo runs the other way round."""
    told = first.lines + second.lines
    if second.empty:
        return replace(
            first,
            lines=told,
            differences=_unique(first.differences, second.differences),
            blocked=_unique(first.blocked, second.blocked),
            reasons=_unique(first.reasons, second.reasons),
        )
    if first.empty:
        return replace(
            second,
            lines=told,
            differences=_unique(first.differences, second.differences),
            blocked=_unique(first.blocked, second.blocked),
            reasons=_unique(first.reasons, second.reasons),
        )
    forward = {
        name: getattr(first, name) + getattr(second, name)
        for name in (
            "lines",
            "lock",
            "stage",
            "commit",
            "confirm",
            "save",
            "disturbs",
            "undo_disturbs",
            "unverified",
        )
    }
    return replace(
        first,
        differences=_unique(first.differences, second.differences),
        blocked=_unique(first.blocked, second.blocked),
        reasons=_unique(first.reasons, second.reasons),
        undo=second.undo + first.undo,
        unlock=second.unlock + first.unlock,
        undo_kind=first.undo_kind if first.undo_kind != "none" else second.undo_kind,
        expected=second.expected or first.expected,
        turn=max(first.turn, second.turn),
        **forward,
    )


def _unique(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    found: list[T] = list(first)
    found.extend(item for item in second if item not in found)
    return tuple(found)
