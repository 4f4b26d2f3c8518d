"""State of one simulated SONiC switch and the daemons that follow CONFIG_DB.

buffermgrd (traditional model) and portmgrd follow sonic-swss `cfgmgr/`: profiles and priority groups
are written back into CONFIG_DB and never cleaned up on a port that stays up; a value that the ASIC
would refuse stays in CONFIG_DB and never reaches APPL_DB.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.lab.hosttools.health import Health
from rdma_fabric.lab.simulators import _sonic_json as js
from rdma_fabric.lab.simulators._contract import Clock, DeviceFacts
from rdma_fabric.lab.simulators._sonic_gcu import BACKEND_TABLES, Box, Outcome
from rdma_fabric.lab.simulators._sonic_json import Config
from rdma_fabric.lab.simulators._sonic_stock import (
    asic_type_of,
    blank,
    headroom_of,
    hwsku_of,
    lookup_file,
    platform_of,
)
from rdma_fabric.lab.simulators._sonic_yang import MASTER, NEW_LIBYANG

STARTUP = "/etc/sonic/config_db.json"
CHECKPOINTS = "/etc/sonic/checkpoints"
CHECKPOINT_END = ".cp.json"
_SPEEDS = (10000, 25000, 40000, 50000, 100000, 200000, 400000, 800000)


@dataclass(slots=True)
class Timer:
    """A transient systemd timer: runs `argv` as root at `due` (seconds of the device's clock)."""

    unit: str
    due: float
    argv: tuple[str, ...]
    collect: bool = False


@dataclass(slots=True)
class Storm:
    """Watchdog statistics of one queue."""

    detected: int = 0
    restored: int = 0
    stormed: bool = False


def branch_number(version: str) -> int:
    """202411 of "202411.12"; master and whatever else has no branch is the newest."""
    found = re.search(r"20\d{4}", version)
    return int(found.group()) if found else MASTER


def normal(row: Mapping[str, object]) -> dict[str, Any]:
    """A row as redis keeps it: text, or a list of texts."""
    return {
        name: [str(one) for one in value] if isinstance(value, list) else str(value)
        for name, value in row.items()
        if not (name == "NULL" and value == "NULL")
    }


def normal_config(config: Config) -> Config:
    """A configuration as redis keeps it: no empty tables, text values."""
    return {name: {key: normal(row) for key, row in rows.items()} for name, rows in config.items() if rows}


@dataclass
class Switch:
    """All state behind the shell; `files` is the dictionary that SFTP serves too."""

    facts: DeviceFacts
    clock: Clock
    files: dict[str, bytes]
    running: Config = field(default_factory=dict)
    applied: dict[str, dict[str, str]] = field(default_factory=dict)
    flaps: dict[str, int] = field(default_factory=dict)
    pfc_seen: dict[str, str] = field(default_factory=dict)
    cable_seen: dict[str, str] = field(default_factory=dict)
    storms: dict[str, Storm] = field(default_factory=dict)
    timers: list[Timer] = field(default_factory=list)
    failed_units: list[str] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)
    syslog: list[str] = field(default_factory=list)
    health: Health = field(default_factory=Health)

    @property
    def branch(self) -> int:
        """Release branch as a number; master is the highest."""
        return branch_number(self.facts.version)

    @property
    def branch_name(self) -> str:
        """`202411` or `master`."""
        return "master" if self.branch == MASTER else str(self.branch)

    @property
    def hwsku(self) -> str:
        """HwSKU of CONFIG_DB, as the tools read it."""
        row = self.running.get("DEVICE_METADATA", {}).get("localhost", {})
        return str(row.get("hwsku") or hwsku_of(self.facts))

    @property
    def hostname(self) -> str:
        """Host name of CONFIG_DB (hostcfgd sets it)."""
        row = self.running.get("DEVICE_METADATA", {}).get("localhost", {})
        return str(row.get("hostname") or self.facts.name)

    @property
    def asic_type(self) -> str:
        """`asic_type` of the installed image."""
        return asic_type_of(hwsku_of(self.facts))

    def box(self) -> Box:
        """The facts that the updater's validators ask for."""
        speeds, fecs = {}, {}
        for fact in self.facts.ports:
            top = max((fact.speed_gbps or 400) * 1000, 100000)
            speeds[fact.name] = ",".join(str(speed) for speed in _SPEEDS if speed <= top)
            fecs[fact.name] = "none,rs,fc" if self.branch < 202405 else "none,rs,fc,auto"
        return Box(self.branch, self.hwsku, self.asic_type, speeds, fecs)

    def install(self, seed: str, qos: bool) -> Config:
        """Start as a freshly installed switch; `seed` is JSON that is merged; returns the result."""
        config = blank(self.facts, self.branch_name, qos)
        if seed:
            merge(config, json.loads(seed))
        self.files[STARTUP] = dump_json(js.ordered(normal_config(config)))
        base = f"/usr/share/sonic/device/{platform_of(hwsku_of(self.facts))}/{hwsku_of(self.facts)}"
        self.files[f"{base}/pg_profile_lookup.ini"] = lookup_file(hwsku_of(self.facts))
        self.files["/etc/sonic/sonic_version.yml"] = self._version_file()
        self.boot()
        self.flaps.clear()
        self.files[STARTUP] = dump_json(js.ordered(self.running))
        return self.running

    def _version_file(self) -> bytes:
        return (
            f"---\nbuild_version: '{self.build_version}'\nasic_type: {self.asic_type}\n"
            "commit_id: '5f2c1a9d0'\nbranch: '" + self.branch_name + "'\nrelease: 'none'\n"
        ).encode()

    @property
    def build_version(self) -> str:
        """Version text of the image, without the leading `SONiC.`."""
        version = self.facts.version or "master"
        return version if "." in version else f"{version}.1000017-5f2c1a9d0"

    def boot(self) -> None:
        """Load the startup file into an empty CONFIG_DB and let the daemons start from nothing."""
        try:
            config = json.loads(self.files.get(STARTUP, b""))
        except ValueError:
            config = blank(self.facts, self.branch_name, qos=True)
        self.replace_all(config)

    def replace_all(self, config: Config) -> None:
        """Flush CONFIG_DB, load a configuration and restart the daemons: all links bounce."""
        for port, row in self.running.get("PORT", {}).items():
            if row.get("admin_status", "down") == "up":
                self.flaps[port] = self.flaps.get(port, 0) + 1
        self.running = {}
        self.applied.clear()
        self.pfc_seen.clear()
        self.cable_seen.clear()
        self.storms.clear()
        self.settle(normal_config(config))

    def settle(self, new: Config) -> None:
        """Write a configuration to CONFIG_DB and let the daemons follow the difference."""
        old, self.running = self.running, new
        self._ports(old)
        self._buffers(old)

    def merge(self, config: Config) -> None:
        """`config load`: add and change rows field by field; never deletes."""
        new = deepcopy(self.running)
        merge(new, normal_config(config))
        self.settle(new)

    def set_row(self, table: str, key: str, row: Mapping[str, object] | None) -> None:
        """Set or delete one row, as ConfigDBConnector does; the last row takes the table along."""
        new = deepcopy(self.running)
        if row is None:
            new.get(table, {}).pop(key, None)
            if table in new and not new[table]:
                del new[table]
        else:
            new.setdefault(table, {})[key] = normal(row)
        self.settle(new)

    def change_row(self, table: str, key: str, values: Mapping[str, str]) -> None:
        """Change fields of one row and keep the others (mod_entry)."""
        self.set_row(table, key, {**self.running.get(table, {}).get(key, {}), **values})

    def run_outcome(self, outcome: Outcome) -> bool:
        """Carry out what the updater planned; False when CONFIG_DB does not show it afterwards."""
        old = self.running
        down = deepcopy(old)
        for port in outcome.flaps:
            down["PORT"][port]["admin_status"] = "down"
        if outcome.flaps:
            # a copy: the daemons write rows back, and those are no part of the updater's steps
            self.settle(deepcopy(down))
        held = deepcopy(outcome.target)
        for port in outcome.flaps:
            if port in held.get("PORT", {}):
                held["PORT"][port]["admin_status"] = "down"
        self.settle(_onto(self.running, down, held))
        if outcome.flaps:
            self.settle(_onto(self.running, held, outcome.target))
        return without_backend(self.running) == without_backend(outcome.target)

    def _ports(self, old: Config) -> None:
        ports = self.running.get("PORT", {})
        before = old.get("PORT", {})
        for port in [port for port in self.applied if port not in ports]:
            del self.applied[port]
        for port, row in ports.items():
            was = before.get(port, {}).get("admin_status", "down")
            now = row.get("admin_status", "down")
            if was == "up" and now != "up":
                self.flaps[port] = self.flaps.get(port, 0) + 1
            if port in self.applied and before.get(port) == row:
                continue
            self.applied[port] = {**self.applied.get(port, {}), **self._port_state(port, row)}

    def _port_state(self, port: str, row: Mapping[str, str]) -> dict[str, str]:
        """Fields that reach APPL_DB; portsorch logs and skips what it cannot program."""
        state = {"mtu": "9100", "admin_status": "down", **row}
        if not state["mtu"].isdigit() or not 68 <= int(state["mtu"]) <= 9216:
            self.log(
                "ERR", "swss#orchagent", f":- doPortTask: Failed to set port {port} MTU to {state['mtu']}"
            )
            del state["mtu"]
        if state.get("pfc_asym", "off") not in ("on", "off"):
            self.log("ERR", "swss#orchagent", f":- parsePortPfcAsym: invalid value for {port}")
            del state["pfc_asym"]
        known = {fact.name: fact for fact in self.facts.ports}
        lit = port in known and known[port].up
        up = state["admin_status"] == "up" and lit
        return {**state, "oper_status": "up" if up else "down"}

    def _buffers(self, old: Config) -> None:
        """buffermgrd: lossless profiles and priority groups of the traditional buffer model."""
        metadata = self.running.get("DEVICE_METADATA", {}).get("localhost", {})
        if metadata.get("buffer_model") == "dynamic":
            return
        cables: dict[str, str] = {}
        for rows in self.running.get("CABLE_LENGTH", {}).values():
            cables.update(rows)
        for port, row in self.running.get("PORT", {}).items():
            qos = self.running.get("PORT_QOS_MAP", {}).get(port, {})
            event = old.get("PORT", {}).get(port) != row
            if port in cables and self.cable_seen.get(port) != cables[port]:
                self.cable_seen[port] = cables[port]
                # before sonic-swss pull 4004 a new length waits for the next event of the port
                event = event or self.branch >= 202505
            if "pfc_enable" in qos and self.pfc_seen.get(port) != qos["pfc_enable"]:
                self.pfc_seen[port] = qos["pfc_enable"]
                event = True
            if event and port in self.pfc_seen and port in self.cable_seen:
                self._lossless(port, row)

    def _lossless(self, port: str, row: Mapping[str, str]) -> None:
        speed, cable = row.get("speed", ""), self.cable_seen[port]
        if cable == "0m":
            return
        name = f"pg_lossless_{speed}_{cable}_profile"
        groups = ranges(self.pfc_seen[port])
        rows = self.running.get("BUFFER_PG", {})
        if row.get("admin_status", "down") == "down" and self.asic_type == "mellanox":
            for group in groups:
                if rows.get(f"{port}|{group}", {}).get("profile") == name:
                    del rows[f"{port}|{group}"]
            return
        found = headroom_of(self.hwsku).get((speed, cable))
        if found is None:
            self.log(
                "ERR",
                "swss#buffermgrd",
                f":- doSpeedUpdateTask: Unable to create/update PG profile for port {port}. "
                f"No PG profile configured for speed {speed} and cable length {cable}",
            )
            return
        mode = self.running.get("BUFFER_POOL", {}).get("ingress_lossless_pool", {}).get("mode")
        if not mode or not groups:
            return
        size, xon, xoff, offset = found
        profile = {"pool": "ingress_lossless_pool", "size": str(size), "xoff": str(xoff), "xon": str(xon)}
        if offset is not None:
            profile["xon_offset"] = str(offset)
        self.running.setdefault("BUFFER_PROFILE", {}).setdefault(name, {**profile, f"{mode}_th": "0"})
        for group in groups:
            self.running.setdefault("BUFFER_PG", {})[f"{port}|{group}"] = {"profile": name}

    def log(self, level: str, source: str, text: str) -> None:
        """One syslog line, kept in /var/log/syslog."""
        self.syslog.append(f"{self.hostname} {level} {source}: {text}")
        self.files["/var/log/syslog"] = ("\n".join(self.syslog) + "\n").encode()

    def checkpoint_path(self, name: str) -> str:
        """The file of a checkpoint."""
        return f"{CHECKPOINTS}/{name}{CHECKPOINT_END}"

    def new_libyang(self) -> bool:
        """True on branches with libyang 3 and its texts."""
        return self.branch >= NEW_LIBYANG


def merge(target: Config, source: Config) -> None:
    """Merge rows field by field into a configuration."""
    for name, rows in source.items():
        for key, row in rows.items():
            target.setdefault(name, {}).setdefault(key, {}).update(row)


def without_backend(config: Config) -> Config:
    """The configuration without the tables that daemons write, as the updater compares it."""
    return {name: rows for name, rows in config.items() if name not in BACKEND_TABLES}


def _onto(running: Config, old: Config, new: Config) -> Config:
    """Rows that differ between old and new, written over what is running now."""
    result = deepcopy(running)
    for name in old.keys() | new.keys():
        before, after = old.get(name, {}), new.get(name, {})
        for key in before.keys() | after.keys():
            if before.get(key) == after.get(key):
                continue
            if key in after:
                result.setdefault(name, {})[key] = normal(after[key])
            else:
                result.get(name, {}).pop(key, None)
        if name in result and not result[name]:
            del result[name]
    return result


def ranges(listed: str) -> list[str]:
    """Priority groups of a `pfc_enable` list as buffermgrd writes them: "3,4" is ["3-4"]."""
    groups: list[list[int]] = []
    for number in sorted({int(part) for part in listed.split(",") if part.strip().isdigit()}):
        if groups and groups[-1][-1] == number - 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return [str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups]


def dump_json(data: object) -> bytes:
    """JSON as SONiC's tools write it to files."""
    return json.dumps(data, indent=4).encode()
