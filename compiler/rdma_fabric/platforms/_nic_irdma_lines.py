"""irdma: the commands of a change as people read them; `fabric-qos` runs the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.hardware import PortHardware
from rdma_fabric.platforms import _host_classes as table
from rdma_fabric.platforms import _nic_irdma_knobs as knobs
from rdma_fabric.platforms._host_classes import ANY, TABLE
from rdma_fabric.platforms._nic_irdma_knobs import IWARP, NO_ENTRY, ROCE, Apps
from rdma_fabric.state import DSCPS
from rdma_fabric.templating import render_lines


@dataclass(frozen=True, slots=True)
class Lines:
    """For the commands of one port; "" and () where nothing is to be written."""

    port: str
    bdf: str
    device: str
    protocol: tuple[tuple[str, str], ...] = ()
    """(what devlink calls it, value), in order: the kernel refuses both at once."""
    leave: str = ""
    """Entries that go before the agent in the firmware starts: it refuses to in DSCP mode."""
    LLDP: str = ""
    PAUSE: str = ""
    first: str = ""
    gone: str = ""
    fresh: str = ""
    PRIO_TC: str = ""
    TSA: str = ""
    TCBW: str = ""
    PFC: str = ""
    on: str = ""
    ECN: str = ""
    CMA_TOS: str = ""


@dataclass
class _Port:
    """Knobs to write, knobs as they are, and the entries that the port has."""

    now: Mapping[str, str]
    before: Mapping[str, str]
    entries: tuple[tuple[int, int], ...]
    found: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> dict[str, Any]:
        """Of `Lines`, what is written."""
        changed = {key for key, value in self.now.items() if self._differs(key, value)}
        self.found = {key: self.now[key] for key in ("LLDP", "PAUSE", "ECN", "CMA_TOS") if key in changed}
        if "PROTO" in changed:
            other = IWARP if self.now["PROTO"] == ROCE else ROCE
            self.found["protocol"] = ((other, "false"), (self.now["PROTO"], "true"))
        if self.found.get("LLDP") == "on":
            return {**self.found, "leave": " ".join(f"{dscp}:{priority}" for dscp, priority in self.entries)}
        apps = self._apps(changed)
        rows = {key: " ".join(getattr(apps, key)) for key in ("first", "gone", "fresh")}
        self.found |= {key: text for key, text in rows.items() if text}
        self._classes(changed, apps.resets)
        return self.found

    def _differs(self, key: str, value: str) -> bool:
        return table.blurred(value, self.before.get(key, "")) != value

    def _apps(self, changed: set[str]) -> Apps:
        if self.now.get("TRUST") == "pcp":
            return knobs.apps(self.entries, [NO_ENTRY] * len(DSCPS))
        if not changed & {"TRUST", "DSCP2PRIO"}:
            return Apps()
        # The first entry, whichever it is, turns the port to DSCP mode.
        wanted = self.now.get("DSCP2PRIO", ",".join(["0", *[NO_ENTRY] * (len(DSCPS) - 1)]))
        return knobs.apps(self.entries, wanted.split(","))

    def _classes(self, changed: set[str], resets: bool) -> None:
        have = {**self.before, **self.now}
        if (resets or changed & set(TABLE)) and all(key in have for key in TABLE):
            keys = TABLE if have.get("TRUST", "pcp") == "pcp" else TABLE[1:]
            self.found |= {key: _numbered(have[key]) for key in keys}
        if (resets or "PFC" in changed) and "PFC" in have:
            on = [priority for priority, bit in enumerate(have["PFC"].split(",")) if bit == "1"]
            self.found |= {"PFC": have["PFC"], "on": "".join(f" {priority}:on" for priority in on)}


def _numbered(words: str) -> str:
    """ "a,b,-" -> "0:a 1:b", as dcb takes lists; it leaves the others as they are."""
    return " ".join(f"{index}:{word}" for index, word in enumerate(words.split(",")) if word != ANY)


def lines(
    port: PortHardware, now: Mapping[str, str], before: Mapping[str, str], facts: Mapping[str, str]
) -> tuple[str, ...]:
    """The commands that `fabric-qos` will run for these knobs."""
    name = port.name
    context = Lines(
        port=name,
        bdf=facts.get(f"bdf {name}", "") or port.bdf or "BDF",
        device=facts.get(f"rdma {name}", "") or port.rdma or "RDMA_DEVICE",
        **_Port(now, before, knobs.entries_of(facts.get(f"app {name}", ""))).lines(),
    )
    return render_lines("nic_irdma/lines.j2", context)


def unverified(found: tuple[str, ...]) -> tuple[str, ...]:
    """Lines whose effect no source confirms: strict classes of a port in DSCP mode."""
    return tuple(
        line
        for line in found
        if line.startswith("dcb ets set ") and ":strict" in line and " prio-tc " not in line
    )
