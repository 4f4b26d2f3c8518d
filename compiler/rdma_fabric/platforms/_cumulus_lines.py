"""The context of the template, and the lines that lead from one content of a profile to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rdma_fabric.platforms._cumulus_profiles import Profile, SharesOf
from rdma_fabric.platforms._cumulus_tree import FACTORY, MapOf, PfcOf
from rdma_fabric.platforms._shared import by_priority
from rdma_fabric.state import PRIORITIES, Absent, Ecn, Share

Grouped = tuple[tuple[str, str], ...]
"""(value, ports as NVUE takes them)."""


@dataclass(frozen=True, slots=True)
class MapLines:
    """One mapping profile; empty fields print nothing."""

    name: str
    trust: str = ""
    dscp: tuple[tuple[str, int], ...] = ()
    """(code points, switch priority)."""
    pcp: tuple[tuple[str, int], ...] = ()
    untrusted: bool = False
    """Say which priority a port gets that trusts nothing."""


@dataclass(frozen=True, slots=True)
class PfcLines:
    """One pfc profile."""

    name: str
    on: str = ""
    off: tuple[int, ...] = ()
    tx: str = ""
    rx: str = ""
    cable_m: int | None = None


@dataclass(frozen=True, slots=True)
class EcnLines:
    """Some traffic classes of a congestion-control profile; None prints nothing."""

    name: str
    classes: str
    low: int | None = None
    high: int | None = None
    chance: int | None = None
    off: bool = False
    """List the class with marking off."""


@dataclass(frozen=True, slots=True)
class EtsLines:
    """Some traffic classes of an egress-scheduler profile."""

    name: str
    classes: str
    mode: str = ""
    percent: int | None = None


@dataclass(frozen=True, slots=True)
class NvueLines:
    """All lines of one rendering, in the order in which they are typed: define, attach, remove."""

    mappings: tuple[MapLines, ...] = ()
    queues: tuple[tuple[int, int], ...] = ()
    """(switch priority, traffic class)."""
    queues_default: tuple[int, ...] = ()
    pools: tuple[tuple[str, int], ...] = ()
    pools_default: tuple[str, ...] = ()
    pfc: tuple[PfcLines, ...] = ()
    ecn: tuple[EcnLines, ...] = ()
    ecn_removed: tuple[tuple[str, int], ...] = ()
    """(profile, traffic class)."""
    ets: tuple[EtsLines, ...] = ()
    ets_removed: tuple[tuple[str, int], ...] = ()
    pauses: tuple[str, ...] = ()
    """link-pause profiles."""
    poll: str = ""
    """polling-interval in ms; "default" removes it."""
    robustness: str = ""
    mtu: Grouped = ()
    dcbx: Grouped = ()
    """(word of the TLVs, ports)."""
    attach: tuple[tuple[str, str, str], ...] = ()
    """(kind, profile, ports)."""
    detach: tuple[tuple[str, str], ...] = ()
    """(kind, ports)."""
    unwatched: str = ""
    watched: str = ""
    removed: tuple[tuple[str, str], ...] = ()
    """(kind, profile)."""
    doubtful: tuple[str, ...] = ()
    """Regular expressions of lines that no source confirms on this switch."""


def map_lines(profile: Profile) -> MapLines:
    """What a mapping profile must be told; all 64 code points of a new one that trusts DSCP."""
    new, old = profile.content, profile.old
    assert isinstance(new, MapOf)
    if old is None:
        plain = new.trust in ("l2", "port") and new.dscp == FACTORY.mapping.dscp
        tagged = new.pcp != FACTORY.mapping.pcp
        old = MapOf("", new.dscp if plain else None, None if tagged else new.pcp)  # type: ignore[arg-type]
    return MapLines(
        profile.name,
        trust=str(new.trust) if new.trust != old.trust else "",
        dscp=_moved(new.dscp, old.dscp),
        pcp=_moved(new.pcp, old.pcp),
        untrusted=new.trust == "port" and old.trust != "port",
    )


def _moved(new: Any, old: Any) -> tuple[tuple[str, int], ...]:
    """(code points, priority) of what differs; everything where there is no old map."""
    found = []
    for priority, points in by_priority(new).items():
        moved = [point for point in points if old is None or old[point] != priority]
        if moved:
            found.append((",".join(map(str, moved)), priority))
    return tuple(found)


def pfc_lines(profile: Profile) -> PfcLines:
    """What a pfc profile must be told: priorities are added before others go."""
    new, old = profile.content, profile.old
    assert isinstance(new, PfcOf) and not isinstance(new.priorities, Absent)
    before = () if old is None else old.priorities
    on = [priority for priority in new.priorities if priority not in before]
    return PfcLines(
        profile.name,
        on=",".join(map(str, on)),
        off=tuple(priority for priority in before if priority not in new.priorities),
        tx=_word(new.tx) if old is None or old.tx != new.tx else "",
        rx=_word(new.rx) if old is None or old.rx != new.rx else "",
        cable_m=new.cable_m if old is None or old.cable_m != new.cable_m else None,  # type: ignore[arg-type]
    )


def _word(on: Any) -> str:
    return "enable" if on else "disable"


def ecn_lines(profiles: Iterable[Profile]) -> tuple[tuple[EcnLines, ...], tuple[tuple[str, int], ...]]:
    """(ramps to write, (profile, traffic class) to remove)."""
    lines: list[EcnLines] = []
    removed: list[tuple[str, int]] = []
    for profile in profiles:
        new, old = dict(profile.content), dict(profile.old or ())
        removed += [(profile.name, tc) for tc in old if tc not in new]
        groups: dict[EcnLines, list[int]] = {}
        for tc, ramp in new.items():
            line = _ramp_lines(profile.name, ramp, old.get(tc))
            if line is not None:
                groups.setdefault(line, []).append(tc)
        lines += [replace(line, classes=",".join(map(str, tcs))) for line, tcs in groups.items()]
    return tuple(lines), tuple(removed)


def _ramp_lines(name: str, new: Ecn | None, old: Ecn | None) -> EcnLines | None:
    if new is None:
        return EcnLines(name, "", off=True)
    if new == old:
        return None
    low, high, chance = new.kmin.value, new.kmax.value, int(new.pmax)
    return EcnLines(
        name,
        "",
        low=None if old and old.kmin.value == low else low,
        high=None if old and old.kmax.value == high else high,
        chance=None if old and int(old.pmax) == chance else chance,
    )


def ets_lines(
    profiles: Iterable[Profile],
) -> tuple[tuple[EtsLines, ...], tuple[tuple[str, int], ...]]:
    """(shares to write, (profile, traffic class) to remove before).

    A class that leaves round robin is removed first, so that no percent is left behind it.
    """
    lines: list[EtsLines] = []
    removed: list[tuple[str, int]] = []
    for profile in profiles:
        new: SharesOf = profile.content
        old: SharesOf = profile.old or (None,) * len(PRIORITIES)
        groups: dict[EtsLines, list[int]] = {}
        for tc in PRIORITIES:
            share, before = new[tc], old[tc]
            if share == before:
                continue
            if before is not None and (share is None or share.scheduler == "strict"):
                removed.append((profile.name, tc))
            if share is not None:
                groups.setdefault(_share_lines(profile.name, share, before), []).append(tc)
        lines += [replace(line, classes=",".join(map(str, tcs))) for line, tcs in groups.items()]
    return tuple(lines), tuple(removed)


def _share_lines(name: str, share: Share, before: Share | None) -> EtsLines:
    same = before is not None and before.scheduler == share.scheduler
    return EtsLines(
        name,
        "",
        mode="" if same else share.scheduler,
        percent=share.weight if share.scheduler == "dwrr" else None,
    )
