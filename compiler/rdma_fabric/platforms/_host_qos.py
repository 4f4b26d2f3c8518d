"""The settings file of a NIC port: what `fabric-qos` reads at boot, applies now and takes back.

All NIC parts say what they want of a port as `Knobs`, in the words of that file. The same words are
read from the device, so that running and stored state come from one conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms._contract import Artifact, Call, Change, Disturbance, Put, Step
from rdma_fabric.state import (
    UNKNOWN,
    Absent,
    Difference,
    Maybe,
    NodeState,
    Observation,
    PortSettings,
)

Knobs = Mapping[str, str]
"""KEY -> value as in the settings file; a key that is not there is not known or not wanted."""

UNREAD: Final = "?"
ECT0: Final = 2
"""Written into the two ECN bits below the DSCP, as NVIDIA's guides do (106 for DSCP 26): switches then
mark instead of drop also where the NIC does not set ECT by itself. Comparisons ignore these bits."""


NOT_LOADED: Final = "rdma_cm is not loaded"
"""Said by our question: then the values are those of a module just loaded."""
RDMA_CM_DEFAULTS: Final = {"CMA_TOS": "0", "CMA_MODE": "2"}
"""Linux 6.1 cma_configfs.c, cma.c."""


@dataclass(frozen=True, slots=True)
class Context:
    """For the shared script, unit and settings file."""

    program: str = host.QOS_PROGRAM
    folder: str = host.QOS_FOLDER
    rows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """For the shell questions: the ports as "name=name in units=RDMA device", or with "=PCI address" too."""

    words: str
    folder: str = host.QOS_FOLDER
    wants: str = "/etc/systemd/system/sys-subsystem-net-devices"
    not_loaded: str = NOT_LOADED

    @classmethod
    def of(cls, ports: Iterable[PortHardware], addresses: bool = False) -> Asked:
        """The ports of one NIC part."""
        return cls(
            " ".join(
                f'"{port.name}={host.unit_name(port.name)}={port.rdma}{f"={port.bdf}" if addresses else ""}"'
                for port in ports
            )
        )


def tos(value: Maybe[int | None]) -> str:
    """A ToS byte as it is written; "-1" for "not forced"."""
    if value is None:
        return "-1"
    return str(value | ECT0 if value else 0) if isinstance(value, int) else UNREAD


def read_tos(text: str) -> Maybe[int]:
    """A ToS byte as it compares: without the ECN bits."""
    return int(text) & 0xFC if text.strip().isdigit() else UNKNOWN


def rdma_cm(tos: host.Section, mode: host.Section) -> dict[str, str]:
    """`cma_roce_tos` prints the number, `cma_roce_mode` the words "RoCE v2" or "IB/RoCE v1"."""
    found: dict[str, str] = {}
    if tos.text.strip() == mode.text.strip() == NOT_LOADED:
        return dict(RDMA_CM_DEFAULTS)
    if tos.ok and tos.text.strip().isdigit():
        found["CMA_TOS"] = tos.text.strip()
    word = {"RoCE v2": "2", "IB/RoCE v1": "1"}.get(mode.text.strip())
    return {**found, "CMA_MODE": word} if mode.ok and word else found


def stored(conf: host.Section, link: host.Section, defaults: Knobs) -> Knobs:
    """What a reboot brings: the settings file where the unit is enabled, else the driver's defaults."""
    if not conf.asked:
        return {}
    if not (conf.ok and link.ok):
        return defaults
    return {**defaults, **host.File("", conf.text).pairs()}


def in_file(conf: host.Section) -> str:
    """The keys that a port's settings file holds, as a fact of the observation."""
    return " ".join(host.File("", conf.text).pairs()) if conf.ok else ""


def settings_file(port: str, rows: Mapping[str, str]) -> Put:
    """The settings file of one port."""
    text = Context(rows=tuple(rows.items()))
    return host.put(f"{host.QOS_FOLDER}/{port}.conf", "_shared/host/port.conf.j2", text)


_COMMON: Final = (
    (host.QOS_PROGRAM, "_shared/host/fabric-qos.sh.j2", 0o755),
    (host.QOS_UNIT, "_shared/host/fabric-qos@.service.j2", 0o644),
    (host.RDMA_UNIT, "_shared/host/fabric-rdma@.service.j2", 0o644),
    (host.RDMA_RULE, "_shared/host/fabric-rdma.rules.j2", 0o644),
)


def common_files() -> tuple[Put, ...]:
    """The program and what starts it for a netdev and for an RDMA device; all NIC parts share them."""
    return tuple(host.put(path, template, Context(), mode) for path, template, mode in _COMMON)


def common_artifacts() -> tuple[Artifact, ...]:
    """The same files for `compile`."""
    return tuple(
        Artifact(template, path.removeprefix("/"), mode, Context()) for path, template, mode in _COMMON
    )


@dataclass
class PortsChange:
    """From what was seen to what is wanted, for the ports of one NIC part."""

    nic: str
    seen: Observation
    wanted: NodeState
    hw: Hardware
    knobs: Callable[[PortSettings, PortHardware], dict[str, str]]
    """Settings -> knobs, in the order in which they are applied."""
    keys: Callable[[str], tuple[str, ...]]
    """Field path below the port -> the knobs that hold it."""
    lines: Callable[[PortHardware, Knobs, Knobs], tuple[str, ...]]
    """(port, knobs to write, knobs as seen) -> lines for people."""
    disturbs: Callable[[Mapping[str, tuple[str, ...]]], tuple[Disturbance, ...]]
    """Port -> its knobs that change now; gives the disturbances."""
    library: tuple[Put, ...] = ()
    losing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Knob -> others that lose their value when it changes, and must be taken back with it."""
    replaceable: Mapping[str, str] = field(default_factory=dict)
    """Field path -> knobs text to bring back (or ""), of fields that could not be read as a whole but are
    written as a whole: a write makes them known."""
    _ports: dict[str, _Port] = field(default_factory=dict)

    def build(self) -> Change:
        """Settings files of changed ports, then the program for each of them."""
        names = [port.name for port in host.ports_of(self.hw, self.nic)]
        mask = host.only(self.wanted, "nic", names)
        live = host.differing(mask, self.seen.running)
        kept = host.differing(mask, self.seen.stored)
        for name in names:
            port = self.hw.port(name)
            state = mask.port(name)
            if port is not None and state is not None:
                self._ports[name] = _Port(port, self.knobs(state.settings, port))
        blocked = self._judge(live, kept)
        changed = {name: port for name, port in self._ports.items() if port.live or port.kept}
        if not changed:
            return Change(blocked=blocked)
        return self._change(changed, blocked)

    def _judge(self, live: Iterable[Difference], kept: Iterable[Difference]) -> tuple[Difference, ...]:
        """Sort the differences to their ports; those that cannot be written come back."""
        blocked: list[Difference] = []
        live, kept = tuple(live), tuple(kept)
        for item in live:
            port, keys = self._of(item)
            unread = isinstance(item.found, Absent) and item.path not in self.replaceable
            if unread or not keys:
                port.stuck.update(keys)
                blocked.append(item)
        for group, found in (("live", live), ("kept", kept)):
            for item in found:
                port, keys = self._of(item)
                # A setting whose neighbours in the same command could not be read is not written either.
                if port.stuck & set(keys) or not keys:
                    blocked += [item] if group == "live" and item not in blocked else []
                    continue
                port.differences.setdefault(item.path, item)
                getattr(port, group).update(keys)
        return tuple(blocked)

    def _of(self, item: Difference) -> tuple[_Port, tuple[str, ...]]:
        rest = item.path.removeprefix("ports.")
        name = max((name for name in self._ports if rest.startswith(f"{name}.")), key=len)
        port = self._ports[name]
        return port, tuple(key for key in self.keys(rest[len(name) + 1 :]) if key in port.wanted)

    def _change(self, changed: Mapping[str, _Port], blocked: tuple[Difference, ...]) -> Change:
        puts: list[Put] = [*common_files(), *self.library]
        calls: list[Step] = [host.RELOAD_UNITS]
        undo: list[Step] = []
        lines: list[str] = []
        for name, port in changed.items():
            seen = self._seen(name, port.port)
            rows = {"NIC": self.nic} if self.library else {}
            rows |= {"RDMA": port.port.rdma} if port.port.rdma else {}
            rows |= self._rows(name, port)
            puts.append(settings_file(name, rows))
            line, enable = host.enable("fabric-qos", name)
            apply = (host.QOS_PROGRAM, name)
            # With the settings themselves: at that time the file may still be the old one.
            check = (host.QOS_PROGRAM, "--check", name, *(f"{key}={value}" for key, value in rows.items()))
            calls += [enable, Call(apply, unless=check, timeout_s=120.0)]
            now = {key: value for key, value in port.wanted.items() if key in port.live}
            changed_keys = [key for key in rows if key in port.live | port.kept]
            lines += [*host.file_lines(puts[-1], changed_keys), line, *self.lines(port.port, now, seen)]
            seen |= self._guessed(name)
            lost = [other for key in now for other in self.losing.get(key, ())]
            back = {key: seen[key] for key in seen if key in now or key in lost}
            back = {key: value for key, value in back.items() if value != UNREAD}
            if back:
                head = [f"{key}={rows[key]}" for key in ("NIC", "RDMA") if key in rows]
                undo.insert(0, Call((*apply, *head, *(f"{k}={v}" for k, v in back.items())), timeout_s=120.0))
        disturbs = self.disturbs(
            {name: tuple(k for k in port.wanted if k in port.live) for name, port in changed.items()}
        )
        return Change(
            differences=tuple(item for port in changed.values() for item in port.differences.values()),
            blocked=blocked,
            lines=tuple(lines),
            commit=(*puts, *calls),
            undo=tuple(undo),
            undo_kind="dead-man",
            disturbs=disturbs,
            undo_disturbs=disturbs,
            expected=self.wanted,
        )

    def _seen(self, name: str, port: PortHardware) -> dict[str, str]:
        state = self.seen.running.port(name)
        return self.knobs(state.settings, port) if state is not None else {}

    def _guessed(self, name: str) -> dict[str, str]:
        """What an undo brings back of fields that were not read as a whole."""
        found: dict[str, str] = {}
        for path, text in self.replaceable.items():
            if text and path.startswith(f"ports.{name}."):
                found |= dict.fromkeys(self.keys(path[len(f"ports.{name}.") :]), text)
        return found

    def _rows(self, name: str, port: _Port) -> dict[str, str]:
        """Wanted knobs; those that could not be judged stay as the file has them."""
        kept = self.seen.stored.port(name) if self.seen.stored else None
        in_file = dict(self.seen.facts).get(f"conf {name}", "").split()
        before = self.knobs(kept.settings, port.port) if kept is not None and in_file else {}
        rows = {}
        for key, value in port.wanted.items():
            if key not in port.stuck:
                rows[key] = value
            elif key in in_file and before.get(key, UNREAD) != UNREAD:
                rows[key] = before[key]
        return rows


@dataclass
class _Port:
    port: PortHardware
    wanted: dict[str, str]
    live: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    differences: dict[str, Difference] = field(default_factory=dict)
