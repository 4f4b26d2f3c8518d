"""bnxt: the commands of a change as people read them; `fabric-qos` runs the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rdma_fabric.hardware import PortHardware
from rdma_fabric.platforms import _host_classes as table
from rdma_fabric.platforms import _nic_bnxt_knobs as knobs
from rdma_fabric.platforms._host_classes import ANY
from rdma_fabric.platforms._host_dcb import ROCE_PORT
from rdma_fabric.platforms._nic_bnxt_knobs import NONE, Apps
from rdma_fabric.templating import render_lines

_NO_PFC: Final = ",".join(["0"] * 8)
_FILES: Final = {
    "MARK": ("ecn_marking", "tos_ecn"),
    "ECN": ("ecn_enable", "enable_cc"),
    "MODE": ("cc_mode", "cc_mode"),
    "ROCE_DSCP": ("roce_dscp", "tos_dscp"),
    "CNP_PRIO": ("cnp_prio", "alt_vlan_pcp"),
    "CNP_DSCP": ("cnp_dscp", "alt_vlan_dscp"),
}
"""Knob -> its file in configfs and in debugfs."""
_DCB: Final = "_shared/host/dcb_write.j2"
_OLD: Final = "nic_bnxt/_old.j2"
_SWITCHES: Final = ("MARK", "ECN", "MODE")

Entry = tuple[str, str]
"""(selector, what the tool takes for it)."""


@dataclass(frozen=True, slots=True)
class Tool:
    """How the tool that answers for a port is called, and how it takes lists."""

    at: str
    words: str
    """Template with its commands."""
    count: int = 8
    """Traffic classes that it shows; only these are given to niccli."""

    @classmethod
    def of(cls, port: str, name: str, count: str) -> Tool:
        """By the fact "tool PORT" of an observation."""
        if name in ("", "dcb"):
            return cls(port, _DCB)
        words = "nic_bnxt/_qos.j2" if " --dev " in name else "nic_bnxt/_fed.j2" if " -dev " in name else _OLD
        return cls(name, words, int(count) if count.isdigit() else 3)

    @property
    def dcb(self) -> bool:
        """True for iproute2's dcb, which takes all entries at once."""
        return self.words == _DCB

    def table(self, words: str) -> str:
        """ "a,b" -> "0:a 1:b", or with commas."""
        return (" " if self.dcb else ",").join(
            f"{index}:{word}" for index, word in enumerate(words.split(","))
        )

    def card(self, words: str) -> str:
        """The same, as many as the card has."""
        return self.table(",".join(words.split(",")[: self.count]))

    def weights(self, tsa: str, bw: str) -> str:
        """All eight for dcb; niccli takes those of the ETS classes, in order."""
        pairs = list(zip(tsa.split(","), bw.split(","), strict=True))
        if self.dcb:
            return self.table(bw)
        return ",".join(weight for kind, weight in pairs[: self.count] if kind == "ets") or "100"

    def pfc(self, bits: str) -> str:
        """The priorities whose bit is set."""
        on = [str(index) for index, bit in enumerate(bits.split(",")) if bit == "1"]
        if self.dcb:
            return "".join(f" {priority}:on" for priority in on)
        return ",".join(on) or (NONE if self.words == _OLD else "0xFF")

    def entries(self, selector: str, rows: tuple[str, ...]) -> tuple[Entry, ...]:
        """ "26:3": as it is for dcb, as "3,5,26" for niccli."""
        if self.dcb:
            return ((selector, " ".join(rows)),) if rows else ()
        number = "5" if selector == "dscp-prio" else "3"
        return tuple(
            (selector, f"{priority},{number},{key}") for key, priority in (row.split(":") for row in rows)
        )


@dataclass(frozen=True, slots=True)
class Lines:
    """For the commands of one port; "" and () where nothing is to be written."""

    port: str
    device: str
    tool: Tool
    cc: str
    folder: str
    PAUSE: str = ""
    clear: str = ""
    """PFC of no priority, first: its priorities are about to change their class."""
    deleted: tuple[Entry, ...] = ()
    added: tuple[Entry, ...] = ()
    PRIO_TC: str = ""
    TSA: str = ""
    TCBW: str = ""
    PFC: str = ""
    files: tuple[tuple[str, str], ...] = ()
    """(file, value) of congestion control, in order."""
    CMA_MODE: str = ""
    CMA_TOS: str = ""


def lines(
    port: PortHardware, now: Mapping[str, str], before: Mapping[str, str], facts: Mapping[str, str]
) -> tuple[str, ...]:
    """The commands that `fabric-qos` will run for these knobs."""
    name, now = port.name, _differing(now, before)
    plain: dict[str, Any] = {
        key: value for key, value in now.items() if key in ("PAUSE", "CMA_MODE", "CMA_TOS")
    }
    cc = facts.get(f"cc {name}", "configfs")
    device = facts.get(f"rdma {name}", "") or port.rdma or "RDMA_DEVICE"
    bdf = facts.get(f"bdf {name}", "") or port.bdf or "BDF"
    below = f"config/bnxt_re/{device}/ports/1/cc" if cc == "configfs" else f"debug/bnxt_re/{bdf}/cc_config"
    tool = Tool.of(name, facts.get(f"tool {name}", ""), facts.get(f"classes {name}", ""))
    context = Lines(
        port=name,
        device=device,
        tool=tool,
        cc=cc,
        folder=f"/sys/kernel/{below}",
        files=_files(cc, facts.get(f"profile {name}", ""), now, before),
        **plain,
        **_classes(tool, _pairs(facts.get(f"app {name}", "")), _roce(facts, name), now, before),
    )
    return render_lines("nic_bnxt/lines.j2", context)


def _differing(now: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Knobs that are not so already: several fields may share one, and not all of them differ."""
    wrong = {key for key, value in now.items() if table.blurred(value, before.get(key, "")) != value}
    ets = {"PRIO_TC", "TSA", "TCBW"}
    return {key: value for key, value in now.items() if key in wrong or (key in ets and wrong & ets)}


def _pairs(text: str) -> list[tuple[int, int]]:
    return [(int(key), int(priority)) for key, priority in (word.split(":") for word in text.split())]


def _roce(facts: Mapping[str, str], port: str) -> tuple[str, ...]:
    found = _pairs(facts.get(f"udp {port}", ""))
    return tuple(f"{key}:{priority}" for key, priority in sorted(found) if key == ROCE_PORT)


def _classes(
    tool: Tool,
    dscps: list[tuple[int, int]],
    roce: tuple[str, ...],
    now: Mapping[str, str],
    before: Mapping[str, str],
) -> dict[str, Any]:
    """ETS, PFC and APP entries: old entries go before the map of priorities changes, new ones come after."""
    remap = "PRIO_TC" in now and now["PRIO_TC"] != table.blurred(now["PRIO_TC"], before.get("PRIO_TC", ""))
    want = now.get("ROCE", before.get("ROCE", "") if remap else "")
    plan = _apps(dscps, now, before, remap)
    found: dict[str, Any] = {
        "deleted": tool.entries("dscp-prio", plan.delete)
        + (tool.entries("dgram-port-prio", roce) if want else ()),
        "added": (tool.entries("dgram-port-prio", (f"{ROCE_PORT}:{want}",)) if want not in ("", NONE) else ())
        + tool.entries("dscp-prio", plan.add)
        + tool.entries("dscp-prio", plan.last),
    }
    if "PRIO_TC" in now:
        blank = {"PRIO_TC": "0", "TSA": "strict", "TCBW": "0"}
        found |= {key: now[key].replace(ANY, word) for key, word in blank.items()}
    have = before.get("PFC", "")
    clear = remap and have not in ("", _NO_PFC)
    pfc = now.get("PFC", have if clear else "")
    return {**found, "clear": _NO_PFC if clear else "", "PFC": "" if clear and pfc == _NO_PFC else pfc}


def _apps(
    dscps: list[tuple[int, int]], now: Mapping[str, str], before: Mapping[str, str], remap: bool
) -> Apps:
    cnp = now.get("CNP_DSCP", before.get("CNP_DSCP", ""))
    target = now.get("DSCP2PRIO", before.get("DSCP2PRIO", "") if remap else "")
    if not target:
        return Apps()
    if not remap:
        return knobs.apps(dscps, target.split(","), cnp)
    fresh = knobs.apps([], target.split(","), cnp)
    return Apps(tuple(f"{dscp}:{priority}" for dscp, priority in sorted(dscps)), fresh.add, fresh.last)


def _files(
    cc: str, profile: str, now: Mapping[str, str], before: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Files of congestion control with their values, in the order of Broadcom's script."""
    column = 1 if cc == "debugfs" else 0
    tags = [("disable_prio_vlan_tx", "1" if now["VLAN0"] == "off" else "0")] if "VLAN0" in now else []
    named = [
        (row[column + 1], now[f"CC_{row[0]}"])
        for row in knobs.PARAMETERS
        if f"CC_{row[0]}" in now and row[column + 1]
    ]
    own = [key for key in _FILES if key in now]
    if not (tags or own or named):
        return ()
    points: list[tuple[str, str]] = []
    if profile == "0" and cc == "configfs":
        # `apply` clears the hardware's DSCP table and writes RoCE's and the CNPs' entries anew.
        roce = now.get("ROCE", before.get("ROCE", ""))
        points = [("roce_prio", roce)] if roce.isdigit() else []
        own = [key for key in _FILES if key in now or (key in before and key not in _SWITCHES)]
    switches = [(_FILES[key][column], now[key]) for key in own if key in _SWITCHES]
    points += [
        (_FILES[key][column], now.get(key, before.get(key, ""))) for key in own if key not in _SWITCHES
    ]
    rows = [*tags, *switches, *points, *named]
    return tuple((name, value if cc == "debugfs" else hex(int(value))) for name, value in rows)
