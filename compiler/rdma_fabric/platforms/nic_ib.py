"""InfiniBand ports of a Linux host, whatever the HCA: what the subnet manager gave them, and IPoIB.

Read in-band at the host's own port (infiniband-diags 44.0: one text format for all vendors). P_Keys,
lanes and link state come from the subnet manager: they are compared and never written here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_vitals as vital
from rdma_fabric.platforms._contract import (
    Artifact,
    Call,
    Change,
    Dialect,
    Disturbance,
    Disturbs,
    Probe,
    Put,
    Realized,
    Step,
    Traits,
)
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._nic_ib_probes import probes
from rdma_fabric.platforms._shared import digest, integer
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    Difference,
    IbPort,
    Maybe,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    differences,
)
from rdma_fabric.templating import render_lines
from rdma_fabric.vitals import Vitals

_NIC: Final = "ib"
_FOLDER: Final = "/etc/fabric/ipoib"
_PROGRAM: Final = "/usr/local/sbin/fabric-ipoib"
_UNIT: Final = "/etc/systemd/system/fabric-ipoib@.service"
_WANTS: Final = "/etc/systemd/system/sys-subsystem-net-devices"
_OWN: Final = ("mode", "children")
"""Fields that a host sets itself."""
_MODE_SOURCE: Final = "Linux Documentation/infiniband/ipoib.rst: the interface is taken down and up"
_LANE_GBPS: Final[Mapping[str, float]] = {
    "2.5": 2.5,
    "5.0": 5,
    "10.0": 10,
    "14.0625": 14,
    "25.78125": 25,
    "53.125": 50,
    "106.25": 100,
    "212.5": 200,
}
"""Signal rate of one lane as smpquery prints it -> Gbit/s as people call it."""


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the templates of `nic_ib` may use."""

    words: str = ""
    folder: str = _FOLDER
    program: str = _PROGRAM
    wants: str = _WANTS
    name: str = ""
    mode: str = ""
    pkeys: tuple[str, ...] = ()
    set_mode: bool = False
    add: tuple[str, ...] = ()


class NicIb:
    """InfiniBand ports of hosts."""

    name = "nic_ib"
    part: Literal["nic"] = "nic"
    channel: Literal["files"] = "files"
    dialect: Dialect = host.DIALECT
    traits = Traits(
        title="InfiniBand port of a host",
        evidence="infiniband-diags 44.0 against real OpenSM on ibsim; IPoIB by the kernel's documentation",
        tested="real OpenSM on ibsim; IPoIB P_Key interfaces by their steps only",
        cannot=("P_Keys, lanes, link state: the subnet manager gives them", "remove a P_Key interface"),
        transports=("infiniband",),
    )

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """Nothing is rounded; NeighborMTU is what both ends can do and is not wished."""
        return Realized(wanted)

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        ports = host.ports_of(hw, _NIC)
        if not ports:
            return ()
        words = " ".join(
            shlex.quote(f"{port.name}={host.unit_name(port.name)}={port.rdma}") for port in ports
        )
        return (host.question("nic_ib/observe.sh.j2", Context(words=words)),)

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """What the port has; `stored` differs in what we set only."""
        parts = host.sections("\n".join(answers.get(question, "") for question in self.questions(hw)))
        live, kept, notes = [], [], list[str]()
        neighbours: list[tuple[str, str, str]] = []
        for port in host.ports_of(hw, _NIC):
            sections = _Sections(parts, port.name)
            ib, speed = _read(sections)
            live.append(PortState(port.name, port.kind, PortSettings(ib=ib), speed))
            mode, children = _stored(sections["conf"], sections["wants"])
            boot = replace(ib, mode=mode, children=children)
            kept.append(PortState(port.name, port.kind, PortSettings(ib=boot), speed))
            if not sections["port"].ok:
                notes.append(f"{port.name}: {_why(sections['port'])}")
            neighbours += _peer(port, sections)
        state = NodeState(ports=tuple(live))
        return Observation(
            running=state,
            stored=NodeState(ports=tuple(kept)),
            notes=tuple(notes),
            neighbours=tuple(neighbours),
            evidence=digest(
                [(port.name, port.settings.ib.mode, port.settings.ib.children) for port in (*live, *kept)]
            ),
        )

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        return vital.questions(host.ports_of(hw, _NIC), "ib")

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """PortCounters and lanes of the ports."""
        return vital.infiniband(answers, host.ports_of(hw, _NIC))

    def context(self, wanted: NodeState, hw: Hardware) -> Context:
        """For the program and its unit."""
        return Context()

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """IPoIB's program, unit and one settings file per port, where the intent has any."""
        found = [
            Artifact("nic_ib/port.conf.j2", f"{_FOLDER}/{port.name}.conf".removeprefix("/"), 0o644, context)
            for port in host.ports_of(hw, _NIC)
            if (context := _settings(port, wanted)) is not None
        ]
        if not found:
            return ()
        return (
            Artifact("nic_ib/fabric-ipoib.sh.j2", _PROGRAM.removeprefix("/"), 0o755),
            Artifact("nic_ib/fabric-ipoib@.service.j2", _UNIT.removeprefix("/")),
            *found,
        )

    def probes(self, wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
        """What the subnet manager gave the ports, and IPoIB."""
        return probes(wanted, hw)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Settings files and `fabric-ipoib PORT`."""
        found: list[Difference] = []
        blocked: list[Difference] = []
        steps: list[Step] = []
        undo: list[Step] = []
        lines: list[str] = []
        bounced = []
        for port in host.ports_of(hw, _NIC):
            one = _PortChange(port, seen, wanted)
            blocked += one.blocked
            if one.differences:
                found += one.differences
                steps += one.steps()
                undo[:0] = one.undo()
                lines += one.lines()
                bounced += [port.name] if one.bounces else []
        if not steps:
            return Change(blocked=tuple(blocked))
        common: list[Step] = [
            host.put(_PROGRAM, "nic_ib/fabric-ipoib.sh.j2", Context(), 0o755),
            host.put(_UNIT, "nic_ib/fabric-ipoib@.service.j2", Context()),
        ]
        disturbs = (
            (Disturbance(Disturbs.LOSS, tuple(bounced), "the IPoIB mode changes", _MODE_SOURCE),)
            if bounced
            else ()
        )
        return Change(
            differences=tuple(found),
            blocked=tuple(blocked),
            lines=tuple(lines),
            commit=(*common, *steps),
            undo=tuple(undo),
            undo_kind="dead-man",
            disturbs=disturbs,
            undo_disturbs=disturbs,
            expected=wanted,
        )


# ---------------------------------------------------------------- read


@dataclass(frozen=True, slots=True)
class _Sections:
    parts: Mapping[str, Section]
    port: str

    def __getitem__(self, name: str) -> Section:
        return self.parts.get(f"{name} {self.port}", host.NOT_ASKED)


def _why(section: Section) -> str:
    said = [line for line in section.lines if line.strip()]
    return f"its InfiniBand port does not answer ({said[-1].strip()[:120] if said else 'no answer'})"


def _fields(section: Section) -> dict[str, str]:
    """`Name:....value` lines."""
    rows = (re.fullmatch(r"(\w[\w ]*):\.*(.*)", line.strip()) for line in section.lines)
    return {row.group(1): row.group(2).strip() for row in rows if row}


def _read(sections: _Sections) -> tuple[IbPort, Maybe[int]]:
    info = _fields(sections["port"])
    if not sections["port"].ok or "LinkState" not in info:
        return IbPort(**dict.fromkeys(IbPort.__dataclass_fields__, UNKNOWN)), UNKNOWN
    link = info["LinkState"].lower()
    mode = sections["mode"].text.strip()
    return (
        IbPort(
            link="init" if link.startswith("init") else link,
            mtu=_mtu(info, sections["adapter"]),
            pkeys=_pkeys(sections["keys"]),
            sl_to_vl=_lanes(sections["lanes"]),
            vls=_number_of_lanes(info.get("OperVLs", "")),
            vl_cap=_number_of_lanes(info.get("VLCap", "")),
            mode=mode if mode in ("datagram", "connected") else UNKNOWN,
            children=_children(sections["children"]),
        ),
        _speed(info),
    )


def _mtu(info: Mapping[str, str], adapter: Section) -> Maybe[int]:
    """NeighborMTU; simulated adapters (ibsim) cannot have more than 2048, which says nothing."""
    if re.search(r"CA type:\s*simulator", adapter.text):
        return NOT_APPLICABLE
    number = integer(info.get("NeighborMTU", ""))
    return UNKNOWN if number is None else number


def _speed(info: Mapping[str, str]) -> Maybe[int]:
    """Gbit/s of the link: lanes times the rate of one."""
    if not info.get("LinkState", "").startswith(("Active", "Armed", "Init")):
        return UNKNOWN
    width = re.match(r"(\d+)X", info.get("LinkWidthActive", ""))
    rates = (info.get("LinkSpeedExtActive", ""), info.get("LinkSpeedActive", ""))
    words = [rate.partition(" ")[0] for rate in rates]
    lane = next((_LANE_GBPS[word] for word in words if word in _LANE_GBPS), None)
    return UNKNOWN if width is None or lane is None else round(int(width.group(1)) * lane)


def _pkeys(section: Section) -> Maybe[tuple[int, ...]]:
    if not section.ok:
        return UNKNOWN
    words = [word for line in section.lines if re.match(r"\s*\d+:", line) for word in line.split()[1:]]
    found = {int(word, 16) for word in words if re.fullmatch(r"0x[0-9a-fA-F]{4}", word)}
    return tuple(sorted(found - {0}))


def _lanes(section: Section) -> Maybe[tuple[int, ...]]:
    rows = [line for line in section.lines if line.startswith("ports:")]
    lanes = re.findall(r"\|\s*(\d+)", rows[-1]) if rows else []
    return tuple(map(int, lanes)) if len(lanes) == 16 else UNKNOWN


def _number_of_lanes(text: str) -> Maybe[int]:
    """Data lanes of "VL0" or "VL0-7"."""
    match = re.fullmatch(r"VL0(?:-(\d+))?", text)
    return int(match[1] or 0) + 1 if match else UNKNOWN


def _children(section: Section) -> Maybe[tuple[int, ...]]:
    if not section.ok:
        return UNKNOWN
    found = {int(word, 16) for word in section.text.split() if re.fullmatch(r"0x[0-9a-fA-F]{1,4}", word)}
    return tuple(sorted(key | 0x8000 for key in found))


def _stored(conf: Section, wants: Section) -> tuple[str, tuple[int, ...]]:
    """What our file brings back at boot; without it the interface comes up in datagram mode."""
    if not conf.ok or wants.text.strip() != "yes":
        return "datagram", ()
    rows = dict(line.split("=", 1) for line in conf.lines if "=" in line and not line.startswith("#"))
    keys = rows.get("PKEYS", "").strip('"').split()
    return rows.get("MODE") or "datagram", tuple(sorted(int(key, 16) for key in keys))


def _peer(port: PortHardware, sections: _Sections) -> Iterable[tuple[str, str, str]]:
    name = _fields(sections["peer"]).get("Node Description", "")
    at = _fields(sections["at"]).get("LocalPort", "")
    if name and at:
        # Switches say "MF0;leaf1:MQM8700/U1", adapters "gpu01 mlx5_0".
        yield port.name, re.split(r"[:\s]", name.rpartition(";")[2])[0], at


# ---------------------------------------------------------------- change


def _settings(port: PortHardware, wanted: NodeState) -> Context | None:
    """The settings file of a port; None when the intent owns nothing of it."""
    state = wanted.port(port.name)
    if state is None:
        return None
    ib = state.settings.ib
    mode = ib.mode if isinstance(ib.mode, str) else ""
    keys = tuple(f"0x{key:04x}" for key in ib.children) if isinstance(ib.children, tuple) else ()
    owned = isinstance(ib.mode, str) or isinstance(ib.children, tuple)
    return Context(name=port.name, mode=mode, pkeys=keys) if owned else None


class _PortChange:
    def __init__(self, port: PortHardware, seen: Observation, wanted: NodeState) -> None:
        self.port = port
        self.context = _settings(port, wanted)
        self.before = self._of(seen.running)
        self.boot = self._of(seen.stored)
        state = wanted.port(port.name)
        own = IbPort(**{name: getattr(state.settings.ib, name) for name in _OWN}) if state else IbPort()
        live, kept = (self._compare(own, one) for one in (self.before, self.boot))
        self.blocked = tuple(item for item in live if item.unknown)
        stuck = {item.path for item in self.blocked}
        live = tuple(item for item in live if item.path not in stuck)
        kept = tuple(item for item in kept if item.path not in stuck)
        self.live = {item.path.rpartition(".")[2] for item in live}
        self.differences = host.merged(live, kept)

    def _of(self, state: NodeState | None) -> IbPort:
        port = state.port(self.port.name) if state else None
        return port.settings.ib if port else IbPort()

    def _compare(self, own: IbPort, seen: IbPort) -> tuple[Difference, ...]:
        found = differences(own, seen, f"ports.{self.port.name}.ib")
        return tuple(item for item in host.wishes(found) if not self._more(item))

    @staticmethod
    def _more(item: Difference) -> bool:
        """Interfaces beyond those that are wished belong to somebody else."""
        return (
            item.path.endswith(".children")
            and isinstance(item.found, tuple)
            and set(item.wanted) <= set(item.found)
        )

    @property
    def bounces(self) -> bool:
        return "mode" in self.live

    def _commands(self) -> Context:
        assert self.context is not None
        have = self.before.children if isinstance(self.before.children, tuple) else ()
        missing = [key for key in self.context.pkeys if int(key, 16) not in have]
        add = tuple(missing) if "children" in self.live else ()
        return replace(self.context, set_mode="mode" in self.live, add=add)

    def steps(self) -> tuple[Step, ...]:
        assert self.context is not None
        _, enable = host.enable("fabric-ipoib", self.port.name)
        path = f"{_FOLDER}/{self.port.name}.conf"
        return (
            host.put(path, "nic_ib/port.conf.j2", self.context),
            host.RELOAD_UNITS,
            enable,
            Call((_PROGRAM, self.port.name)),
        )

    def lines(self) -> tuple[str, ...]:
        put = self.steps()[0]
        assert isinstance(put, Put)
        return (*host.file_lines(put), *render_lines("nic_ib/commands.j2", self._commands()))

    def undo(self) -> tuple[Step, ...]:
        found: list[Step] = []
        commands = self._commands()
        for key in commands.add:
            found.append(Call(("ip", "link", "del", f"{self.port.name}.{key[2:]}"), status=(0, 1)))
        if commands.set_mode and isinstance(self.before.mode, str):
            back = replace(commands, mode=self.before.mode, add=())
            found += [host.call(line) for line in render_lines("nic_ib/commands.j2", back)]
        return tuple(found)


PLATFORM = NicIb()
