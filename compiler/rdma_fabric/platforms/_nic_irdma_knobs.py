"""irdma: neutral settings of one port <-> knobs, the words of its settings file (see `_host_qos`).

A port is in one of two modes: by tag ("pcp") or by DSCP. Its first DSCP entry turns it to the second, the
last one that goes turns it back. In DSCP mode a priority is its traffic class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _host_classes as table
from rdma_fabric.platforms._host_classes import ANY
from rdma_fabric.platforms._host_qos import RDMA_CM_DEFAULTS, UNREAD, Knobs, read_tos
from rdma_fabric.state import (
    DSCPS,
    NOT_APPLICABLE,
    PRIORITIES,
    UNKNOWN,
    Absent,
    Dcbx,
    Marking,
    Maybe,
    PortSettings,
    QosState,
    Trust,
    WatchdogTimers,
)

ROCE, IWARP = "roce", "iwarp"
NO_ENTRY: Final = ANY
"""In DSCP2PRIO, of a DSCP that has no entry."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What decides a port's recipe beside its name."""

    vendor: bool = True
    """Intel's own irdma package: RoCE by a module option, DCQCN by configfs. The kernel's has neither."""
    classes: int = 8
    """Traffic classes of the card."""


def planned(hw: Hardware) -> Kind:
    """What the inventory says of the node's irdma ports."""
    return Kind(hw.option("stack") != "inbox", 4 if hw.option("irdma_traffic_classes") == "4" else 8)


DEFAULTS: Final[Knobs] = {
    "TRUST": "pcp",
    "PRIO_TC": ",".join(["0"] * 8),
    "TSA": ",".join(["ets"] + ["strict"] * 7),
    "TCBW": ",".join(["100"] + ["0"] * 7),
    "PFC": ",".join(["0"] * 8),
    "CMA_TOS": RDMA_CM_DEFAULTS["CMA_TOS"],
}
"""After a driver load (Linux 6.1 ice_dcb_lib.c, ice_dcb_sw_dflt_cfg; cma_configfs.c)."""
VENDOR_DEFAULTS: Final[Knobs] = {**DEFAULTS, "ECN": "0"}
"""Intel's irdma readme: all three RoCE algorithms are off."""
INBOX_DEFAULTS: Final[Knobs] = {**DEFAULTS, "PROTO": ROCE}
"""Linux ice_idc.c, ice_init_rdma: rdma_mode begins with RoCE v2."""


# ---------------------------------------------------------------- settings -> knobs


def knobs_of(settings: PortSettings, kind: Kind) -> dict[str, str]:
    """What to write for these settings, in the order of writing; unmanaged and unknown ones are not there."""
    qos, marking = settings.qos, settings.marking
    found: dict[str, str] = {}
    if isinstance(marking.roce_v2, bool) and not kind.vendor:
        found["PROTO"] = ROCE if marking.roce_v2 else IWARP
    if qos.dcbx in ("none", "firmware"):
        found["LLDP"] = "off" if qos.dcbx == "none" else "on"
    if isinstance(qos.global_pause, bool):
        found["PAUSE"] = "on" if qos.global_pause else "off"
    if qos.trust in ("dscp", "pcp"):
        found["TRUST"] = str(qos.trust)
    if not isinstance(qos.dscp_to_priority, Absent) and qos.trust != "pcp":
        found["DSCP2PRIO"] = ",".join(map(str, qos.dscp_to_priority))
    found |= table.knobs(qos.classes)
    if kind.vendor and not isinstance(marking.np, Absent):
        found["ECN"] = "1" if marking.np else "0"
    if isinstance(marking.rdma_cm_tos, int):
        # Without ECN bits, as Intel's readme has it: 4 times the DSCP.
        found["CMA_TOS"] = str(marking.rdma_cm_tos & 0xFC)
    return found


def keys_of(path: str, kind: Kind) -> tuple[str, ...]:
    """The knobs that hold a field, by its path below the port."""
    if path.startswith("qos.classes."):
        return table.keys_of(path.rpartition(".")[2])
    fixed = {
        "qos.trust": ("TRUST", "DSCP2PRIO"),
        "qos.dscp_to_priority": ("DSCP2PRIO", "TRUST"),
        "qos.dcbx": ("LLDP",),
        "qos.global_pause": ("PAUSE",),
        "marking.rdma_cm_tos": ("CMA_TOS",),
        "marking.np": ("ECN",),
        "marking.rp": ("ECN",),
        "marking.roce_v2": () if kind.vendor else ("PROTO",),
    }
    return fixed.get(path, ())


# ---------------------------------------------------------------- knobs -> settings


def settings_of(knobs: Knobs, kind: Kind) -> PortSettings:
    """The settings that these knobs mean; what is not there or not understood is UNKNOWN."""
    return _settings(tuple(sorted(knobs.items())), kind)


_TRUST: Final[dict[str, Trust]] = {"dscp": "dscp", "pcp": "pcp"}
_DCBX: Final[dict[str, Dcbx]] = {"off": "none", "on": "firmware"}


@lru_cache(maxsize=4096)
def _settings(rows: tuple[tuple[str, str], ...], kind: Kind) -> PortSettings:
    knobs = dict(rows)
    trust = _TRUST.get(knobs.get("TRUST", ""), UNKNOWN)
    qos = QosState(
        trust=trust,
        # By tag, a DSCP gives no priority.
        dscp_to_priority=(0,) * len(DSCPS)
        if trust == "pcp"
        else table.numbers(knobs.get("DSCP2PRIO", ""), len(DSCPS)),
        # A tag's value is the priority; there is no table for it.
        pcp_to_priority=UNKNOWN if isinstance(trust, Absent) else tuple(PRIORITIES),
        classes=table.read(knobs),
        watchdog=WatchdogTimers(*[NOT_APPLICABLE] * 4),
        dcbx=_DCBX.get(knobs.get("LLDP", ""), UNKNOWN),
        global_pause={"on": True, "off": False}.get(knobs.get("PAUSE", ""), UNKNOWN),
        cable_m=NOT_APPLICABLE,
    )
    return PortSettings(qos=qos, marking=_marking(knobs, kind))


def _marking(knobs: Knobs, kind: Kind) -> Marking:
    # One switch for the whole RDMA device, whatever the priority.
    roles: Maybe[tuple[int, ...]] = {"0": (), "1": tuple(PRIORITIES)}.get(knobs.get("ECN", ""), UNKNOWN)
    return Marking(
        rdma_cm_tos=read_tos(knobs.get("CMA_TOS", "")),
        traffic_class=NOT_APPLICABLE,
        roce_v2={ROCE: True, IWARP: False}.get(knobs.get("PROTO", ""), UNKNOWN),
        cnp_dscp=NOT_APPLICABLE,
        cnp_priority=NOT_APPLICABLE,
        np=roles if kind.vendor else NOT_APPLICABLE,
        rp=roles if kind.vendor else NOT_APPLICABLE,
    )


# ---------------------------------------------------------------- what changes


@dataclass(frozen=True, slots=True)
class Apps:
    """DSCP entries as "DSCP:PRIORITY" to add, to take away and to add then; the driver refuses a second entry
    of a DSCP (ice_dcb_nl.c). `resets`: the port leaves its mode on the way, and its classes begin anew."""

    first: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    resets: bool = False


def apps(have: Iterable[tuple[int, int]], wanted: Sequence[str]) -> Apps:
    """From entries to a map, in which `NO_ENTRY` is none."""
    entries = sorted(have)
    taken = {dscp for dscp, _ in entries}
    kept = {dscp for dscp, priority in entries if wanted[dscp] == str(priority)}
    gone = [(dscp, priority) for dscp, priority in entries if wanted[dscp] != str(priority)]
    new = [(dscp, word) for dscp, word in enumerate(wanted) if word in table.DIGITS and dscp not in kept]
    first = [(dscp, word) for dscp, word in new if dscp not in taken]
    fresh = [(dscp, word) for dscp, word in new if dscp in taken]
    resets = not (entries and (kept or first))
    return Apps(_words(first), _words(gone), _words(fresh), resets and bool(entries or new))


def _words(pairs: Iterable[tuple[int, object]]) -> tuple[str, ...]:
    return tuple(f"{dscp}:{priority}" for dscp, priority in pairs)


def entries_of(text: str) -> tuple[tuple[int, int], ...]:
    """ "26:3 48:6" as pairs."""
    return tuple((int(key), int(value)) for key, value in (word.split(":") for word in text.split()))


def in_map(found: Iterable[tuple[int, int]]) -> str:
    """DSCP2PRIO of entries; a DSCP with two of them cannot be told."""
    row = [NO_ENTRY] * len(DSCPS)
    for dscp, priority in found:
        row[dscp] = str(priority) if row[dscp] == NO_ENTRY else UNREAD
    return ",".join(row)
