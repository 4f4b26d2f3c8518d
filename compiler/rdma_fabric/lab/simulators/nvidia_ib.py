"""A simulated NVIDIA InfiniBand switch with MLNX-OS: its own command line, not the subnet.

Facts: reference page nvidia_ib (sections 1 to 6). Every line acts at once; there is no candidate and no
timer. Where the page is silent or calls a form unverified, the stricter reading is taken: those forms are
unknown words (partition `rate`, `sl` and `scope`; a port's `mtu` and `op-vls`; `show interfaces ib`; the
resets of routing engines and of a priority; `force` after `no`; `end`), and every setting of the partition
Default asks without `force`. Taken though unverified: `no ib partition NAME mtu`, MTUs below 2K. Own
choices: texts of refusals but the two quoted ones, names of fields of `show version` (Onyx's). Not played:
the pager, NVOS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rdma_fabric.lab.simulators._contract import Device, DeviceFacts, Reply, Result, Session

SM_SECONDS: Final = 2.0
"""How long the subnet manager takes to start or stop after the command (the page: up to half a minute)."""
_CONFIRM: Final = "Type 'yes' to continue: "
_MTUS: Final = ("256", "512", "1K", "2K", "4K")
_GUID: Final = re.compile(r"([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2}")
_KINDS: Final = ("full", "limited", "both")
_ENGINES: Final = (
    *("minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp"),
)
_NEW_SHOW: Final = (3, 6, 8010)
"""Since this version `show ib partition` has colons."""
_SWITCHES: Final = {"babbling-policy": False, "accum-log-file": True}
"""Settings of the subnet manager that are on or off -> their default."""


class Refused(Exception):
    """The device does not take the line; the text is what it prints."""


@dataclass
class Partition:
    """One partition; `members` by GUID or ALL."""

    pkey: int
    ipoib: bool = False
    mtu: str = ""
    defmember: str = ""
    members: dict[str, str] = field(default_factory=dict)


@dataclass
class Config:
    """What `show running-config` prints, besides the foreign lines."""

    sm: bool = False
    both: bool = False
    switches: dict[str, bool] = field(default_factory=lambda: dict(_SWITCHES))
    engines: str = ""
    root_guids: list[str] = field(default_factory=list)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)
    down: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The lines in the order in which this module prints them."""
        rows = [*self.foreign]
        rows += [f"interface ib {ports} shutdown" for ports in _ranges(self.down)]
        for name, one in self.partitions.items():
            rows += _partition_rows(name, one)
        rows += ["ib sm allow-both-pkeys"] if self.both else []
        rows += [
            f"{'' if on else 'no '}ib sm {name}"
            for name, on in self.switches.items()
            if on != _SWITCHES[name]
        ]
        rows += [f"ib sm routing-engines {self.engines}"] if self.engines else []
        rows += [f"ib sm root-guid {guid}" for guid in self.root_guids]
        for name, node in self.nodes.items():
            if "priority" in node:
                rows.append(f"ib smnode {name} sm-priority {node['priority']}")
            if "enabled" in node:
                rows.append(f"ib smnode {name} {'enable' if node['enabled'] else 'disable'}")
        rows += ["ib sm"] if self.sm else []
        return "".join(f"   {row}\n" for row in rows)

    def dump(self) -> dict[str, Any]:
        """All of it as JSON data."""
        found = {key: value for key, value in vars(self).items() if key != "partitions"}
        return {**found, "partitions": {name: vars(one) for name, one in self.partitions.items()}}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Config:
        """Take back what `dump` gave."""
        rest = {key: value for key, value in data.items() if key != "partitions"}
        return cls(**rest, partitions={name: Partition(**one) for name, one in data["partitions"].items()})

    def copy(self) -> Config:
        """A copy that shares nothing."""
        made = Config.load(self.dump())
        made.nodes = {name: dict(node) for name, node in self.nodes.items()}
        made.root_guids, made.down, made.foreign = [*self.root_guids], [*self.down], [*self.foreign]
        made.switches = dict(self.switches)
        for name, one in self.partitions.items():
            made.partitions[name] = Partition(**{**vars(one), "members": dict(one.members)})
        return made


def _place(port: str) -> tuple[int, ...]:
    """The numbers of a port's name, for its order."""
    return tuple(int(number) for number in re.findall(r"\d+", port))


def _ranges(ports: list[str]) -> list[str]:
    """Neighbouring ports as `1/1-1/4`, which is how this CLI family prints them."""
    found: list[list[str]] = []
    for port in sorted(ports, key=_place):
        last = _place(found[-1][-1]) if found else ()
        if last and _place(port) == (*last[:-1], last[-1] + 1):
            found[-1].append(port)
        else:
            found.append([port])
    return [group[0] if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in found]


def _partition_rows(name: str, one: Partition) -> list[str]:
    rows = [f"ib partition {name} pkey 0x{one.pkey:x} force"]
    rows += [f"ib partition {name} defmember {one.defmember} force"] if one.defmember else []
    rows += [f"ib partition {name} ipoib force"] if one.ipoib else []
    rows += [f"ib partition {name} mtu {one.mtu} force"] if one.mtu else []
    rows += [f"ib partition {name} member {who} type {kind} force" for who, kind in one.members.items()]
    return rows


@dataclass
class IbSwitch(Device):
    """The switch: running and saved configuration, and the subnet manager's process."""

    config: Config = field(init=False)
    stored: dict[str, Config] = field(init=False)
    """Configuration files by name."""
    active: str = "initial"
    """The file that is loaded at boot."""
    sm_since: float = field(default=-1e9)
    """When `ib sm` or `no ib sm` was given last."""

    def __post_init__(self) -> None:
        """Factory state: no subnet manager, the partition Default for everybody; plus the seed."""
        self.config = Config(foreign=[line.strip() for line in self.facts.seed])
        self.config.partitions["Default"] = Partition(0x7FFF, True, "", "", {"ALL": "full"})
        self.stored = {self.active: self.config.copy()}

    @property
    def version(self) -> tuple[int, ...]:
        """The release as numbers."""
        return _place(self.facts.version or "3.11.3006")

    def open(self, user: str) -> Session:
        """A login starts in operator mode."""
        return IbSession(self)

    def execute(self, user: str, command: str) -> Result:
        """Lines one after the other in a session of their own."""
        session = IbSession(self)
        text = "".join(session.run(line).text for line in command.splitlines())
        return Result(text, "", 1 if any(line.startswith("%") for line in text.splitlines()) else 0)

    def tick(self) -> None:
        """Nothing of this device waits for the clock but the subnet manager, which is looked at."""

    def reboot(self) -> None:
        """Come back with the active configuration file."""
        self.config = self.stored[self.active].copy()
        self.sm_since = -1e9

    def refusal(self, line: str) -> str:
        """What the CLI says to a word that it does not know."""
        return f'% Unrecognized command "{line.split()[0] if line.split() else ""}".'

    def commits(self, line: str) -> bool:
        """There is no candidate."""
        return False

    def somebody(self, lines: tuple[str, ...]) -> str:
        """Another administrator, already in configuration mode."""
        session = IbSession(self, mode="config")
        return "".join(session.run(line).text for line in lines)

    def running(self) -> str:
        """The running configuration."""
        return self.config.text()

    def dump(self) -> dict[str, Any]:
        """Running, saved, and what the process does."""
        stored = {name: config.dump() for name, config in self.stored.items()}
        running = {"config": self.config.dump(), "sm_since": self.sm_since}
        return {**running, "stored": stored, "active": self.active}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take back what `dump` gave."""
        self.config = Config.load(data["config"]).copy()
        self.stored = {name: Config.load(config).copy() for name, config in data["stored"].items()}
        self.active, self.sm_since = data["active"], data["sm_since"]

    @property
    def sm_shown(self) -> bool:
        """What `show ib sm` says: the command works with a delay."""
        settled = self.clock() - self.sm_since >= SM_SECONDS
        return self.config.sm if settled else not self.config.sm

    def load(self, name: str) -> None:
        """`configuration switch-to NAME`: another file becomes active and is in force."""
        if name not in self.stored:
            raise Refused(f"% Configuration file {name} does not exist")
        self.active = name
        self.reboot()

    def set_sm(self, on: bool) -> None:
        """`ib sm` and `no ib sm`."""
        if self.config.sm != on:
            self.config.sm = on
            self.sm_since = self.clock()


class IbSession(Session):
    """One login: operator, enable and configuration mode, and the mode of an interface."""

    def __init__(self, device: IbSwitch, mode: str = "operator") -> None:
        self.device = device
        self.mode = mode
        self.ports: tuple[str, ...] = ()
        self.asked: Callable[[], bool] | None = None
        """What a yes does; True when the session ends with it."""
        self.banner = "NVIDIA MLNX-OS Switch Management\n\n"

    def prompt(self) -> str:
        """`leaf01 [standalone: master] (config) #`."""
        if self.asked is not None:
            return _CONFIRM
        name = f"{self.device.facts.name} [standalone: master]"
        return {
            "operator": f"{name} > ",
            "enable": f"{name} # ",
            "config": f"{name} (config) # ",
            "interface": f"{name} (config interface ib {'-'.join(self.ports)}) # ",
        }[self.mode]

    def run(self, line: str) -> Reply:
        """One typed line, or the answer to a question."""
        if self.asked is not None:
            action, self.asked = self.asked, None
            return Reply(close=line.strip() == "yes" and action())
        words = line.split()
        if not words:
            return Reply()
        if words[0] in ("exit", "quit") and self.mode in ("operator", "enable"):
            return Reply(close=True)
        if words == ["reload", "noconfirm"] and self.mode != "operator":
            self.device.reboot()
            return Reply(close=True)
        try:
            return Reply(self._run(words))
        except Refused as refused:
            return Reply(f"{refused}\n")

    # -- modes

    def _run(self, words: list[str]) -> str:
        if words == ["exit"] or words == ["quit"]:
            self.mode = {"interface": "config", "config": "enable"}[self.mode]
        elif words in (["enable"], ["en"]) and self.mode == "operator":
            self.mode = "enable"
        elif words[0] == "disable" and self.mode == "enable":
            self.mode = "operator"
        elif (
            len(words) == 2 and words[0] in ("configure", "config") and words[1] in ("terminal", "term", "t")
        ):
            if self.mode == "operator":
                raise Refused(f'% Unrecognized command "{words[0]}".')
            self.mode = "config"
        elif words == ["no", "cli", "session", "paging", "enable"] or words[:2] == ["terminal", "length"]:
            return ""
        elif words[0] == "show":
            return self._show(words[1:])
        elif self.mode == "operator":
            raise Refused(f'% Unrecognized command "{words[0]}".')
        elif words == ["write", "memory"]:
            self.device.stored[self.device.active] = self.device.config.copy()
        elif words[0] == "configuration":
            self._files(words[1:])
        elif words == ["reload"]:
            self.asked = self._reload
        elif self.mode in ("config", "interface"):
            self._configure(words)
        else:
            raise Refused(f'% Unrecognized command "{words[0]}".')
        return ""

    def _reload(self) -> bool:
        self.device.reboot()
        return True

    def _files(self, words: list[str]) -> None:
        """`configuration write [to NAME [no-switch]]` and `configuration switch-to NAME`."""
        device = self.device
        if self.mode != "config":
            raise Refused('% Unrecognized command "configuration".')
        if words == ["write"]:
            if device.version[:2] == (3, 6):  # operator report: there only `write memory` worked
                raise Refused('% Unrecognized command "write".')
            device.stored[device.active] = device.config.copy()
        elif words[:2] == ["write", "to"] and (len(words) == 3 or words[3:] == ["no-switch"]):
            device.stored[words[2]] = device.config.copy()
            device.active = device.active if words[3:] else words[2]
        elif words[:1] == ["switch-to"] and len(words) == 2:
            device.load(words[1])
        else:
            raise Refused(f'% Unrecognized command "{words[0] if words else "configuration"}".')

    # -- show

    def _show(self, words: list[str]) -> str:
        device, config = self.device, self.device.config
        if words == ["version"]:
            model = device.facts.model or "MQM8700"
            return (
                "Product name:      MLNX-OS\n"
                f"Product release:   {device.facts.version or '3.11.3006'}\n"
                f"Product model:     {model}\n"
            )
        if words[:1] == ["ib"] and self.mode == "operator":
            raise Refused('% Unrecognized command "ib".')
        if words == ["ib", "sm"]:
            return "enable\n" if device.sm_shown else "disable\n"
        if words[:2] == ["ib", "smnode"] and len(words) == 4:
            return self._show_node(words[2], words[3])
        if words == ["ib", "sm", "version"]:
            return "OpenSM4.8.1\n"
        if words == ["ib", "sm", "routing-info"]:
            return f"{config.engines.split(',')[0] or 'minhop'}\n"
        if words[:2] == ["ib", "partition"] and len(words) <= 3:
            return self._show_partitions(words[2:])
        if words in (["running-config"], ["configuration", "running"]):
            if self.mode == "operator":
                raise Refused('% Unrecognized command "running-config".')
            return config.text()
        if words == ["configuration", "files"]:
            names = sorted(device.stored)
            return "".join(f"{name}{' (active)' if name == device.active else ''}\n" for name in names)
        raise Refused(f'% Unrecognized command "{words[0] if words else "show"}".')

    def _show_node(self, name: str, what: str) -> str:
        device = self.device
        enabled = bool(device.config.nodes.get(name, {}).get("enabled"))
        if what == "sm-running":
            return "active\n" if device.sm_shown and enabled else "not active\n"
        if what == "sm-state":
            return "enable\n" if enabled else "disable\n"
        if what == "sm-licensed":
            return "active\n"
        raise Refused(f'% Unrecognized command "{what}".')

    def _show_partitions(self, names: list[str]) -> str:
        """With colons from 3.6.8010 on; before, the name line is indented and values use `=`."""
        rows: list[str] = []
        new = self.device.version >= _NEW_SHOW
        for name, one in self.device.config.partitions.items():
            if names and name not in names:
                continue
            ipoib = "yes" if one.ipoib else "no"
            if new:
                rows += [f"{name}:", f"  PKey : 0x{one.pkey:04X}", f"  ipoib: {ipoib}", "  members:"]
            else:
                rows += [f"  {name}", f"    PKey  = 0x{one.pkey:04X}", f"    ipoib = {ipoib}", "    members"]
            indent = "    " if new else "      "
            rows += [f"{indent}GUID='{who}' member='{kind}'" for who, kind in one.members.items()]
        if names and not rows:
            raise Refused(f"% Partition {names[0]} does not exist")
        return "".join(f"{row}\n" for row in rows)

    # -- configuration

    def _configure(self, words: list[str]) -> None:
        if self.mode == "interface" and words in (["shutdown"], ["no", "shutdown"]):
            self._shutdown(self._between(self.ports), words[0] == "shutdown")
        elif words[:2] == ["interface", "ib"] and len(words) in (3, 4, 5):
            self._interface(words[2], words[3:])
        elif words[:1] == ["ib"] or words[:2] == ["no", "ib"]:
            self._ib(words[1:] if words[0] == "ib" else words[2:], words[0] == "no")
        else:
            raise Refused(f'% Unrecognized command "{words[0]}".')

    def _interface(self, name: str, rest: list[str]) -> None:
        ends = tuple(name.split("-"))
        found = self._between(ends)
        if not found:
            raise Refused(f"% Invalid interface {name}")
        if not rest:
            self.mode, self.ports = "interface", ends
        elif rest in (["shutdown"], ["no", "shutdown"]) and len(ends) == 1:  # some versions refuse a range
            self._shutdown(found, rest[0] == "shutdown")
        else:
            raise Refused(f'% Unrecognized command "{rest[0]}".')

    def _between(self, ends: tuple[str, ...]) -> list[str]:
        """The ports of a name or of a range, whose ends must exist; nothing for others."""
        known = sorted(
            (one.name.removeprefix("ib ").removeprefix("ib") for one in self.device.facts.ports), key=_place
        )
        if len(ends) > 2 or not set(ends) <= set(known):
            return []
        return known[known.index(ends[0]) : known.index(ends[-1]) + 1]

    def _shutdown(self, ports: list[str], down: bool) -> None:
        found = [one for one in self.device.config.down if one not in ports]
        self.device.config.down = sorted([*found, *ports], key=_place) if down else found

    def _ib(self, words: list[str], no: bool) -> None:
        if words == ["sm"]:
            self.device.set_sm(not no)
        elif words[:1] == ["sm"]:
            self._sm(words[1:], no)
        elif words[:1] == ["smnode"] and len(words) >= 2:
            self._smnode(words[1], words[2:], no)
        elif words[:1] == ["partition"] and len(words) >= 2:
            self._partition(words[1], words[2:], no)
        else:
            raise Refused(f'% Unrecognized command "{words[0] if words else "ib"}".')

    def _sm(self, words: list[str], no: bool) -> None:
        config = self.device.config
        if words == ["allow-both-pkeys"]:
            config.both = not no
        elif words[0] == "routing-engines" and not no and len(words) == 2:
            unknown = [one for one in words[1].split(",") if one not in _ENGINES]
            if unknown:
                raise Refused(f"% Invalid routing engine {unknown[0]}")
            config.engines = words[1]
        elif words[0] == "root-guid" and len(words) == 2 and re.fullmatch(r"0x[0-9a-fA-F]{16}", words[1]):
            kept = [guid for guid in config.root_guids if guid != words[1]]
            config.root_guids = kept if no else [*kept, words[1]]
        elif words[0] in _SWITCHES and len(words) == 1:
            config.switches[words[0]] = not no
        else:
            raise Refused(f'% Unrecognized command "{words[0]}".')

    def _smnode(self, name: str, words: list[str], no: bool) -> None:
        nodes = self.device.config.nodes
        if no and not words:
            nodes.pop(name, None)
        elif words in (["enable"], ["disable"]) and not no:
            nodes.setdefault(name, {})["enabled"] = words[0] == "enable"
        elif words[:1] == ["sm-priority"] and len(words) == 2 and not no:
            if not words[1].isdigit() or int(words[1]) > 15:
                raise Refused(f"% Invalid SM priority {words[1]}")
            nodes.setdefault(name, {})["priority"] = int(words[1])
        else:
            raise Refused(f'% Unrecognized command "{words[0] if words else name}".')

    def _partition(self, name: str, words: list[str], no: bool) -> None:
        force = words[-1:] == ["force"] and not no
        words = words[:-1] if force else words
        partitions = self.device.config.partitions
        if not no and words[:1] == ["pkey"] and len(words) == 2:
            self._create(name, words[1])
            return
        if name not in partitions:
            raise Refused(f"% Partition {name} does not exist")
        action = self._change(name, words, no)

        def act() -> bool:
            action()
            return False

        if name == "Default" and not force:
            self.asked = act
        else:
            act()

    def _create(self, name: str, text: str) -> None:
        partitions = self.device.config.partitions
        if not re.fullmatch(r"0x[0-9a-fA-F]{1,4}", text) or not 0x2 <= int(text, 16) <= 0x7FFF:
            raise Refused(f"% Invalid pkey {text}")
        pkey = int(text, 16)
        if name == "Default" and pkey != 0x7FFF:
            raise Refused("% The pkey of the Default partition cannot be changed")
        if any(one.pkey == pkey for other, one in partitions.items() if other != name):
            raise Refused(f"% pkey {text} is already in use")
        if name in partitions:
            partitions[name].pkey = pkey
        else:
            partitions[name] = Partition(pkey)

    def _change(self, name: str, words: list[str], no: bool) -> Callable[[], None]:
        partitions = self.device.config.partitions
        one = partitions[name]
        key, rest = (words[0] if words else ""), words[1:]

        def put(**values: Any) -> Callable[[], None]:
            return lambda: vars(one).update(values)

        if not key and no:
            return lambda: vars(self.device.config).update(
                partitions={other: kept for other, kept in partitions.items() if other != name}
            )
        if key == "defmember" and (not rest if no else rest in ([kind] for kind in _KINDS)):
            self._both(rest)
            return put(defmember="" if no else rest[0])
        if key == "ipoib" and not rest:
            return put(ipoib=not no)
        if key == "mtu" and (not rest if no else rest in ([size] for size in _MTUS)):
            return put(mtu="" if no else rest[0])
        if key == "member" and rest:
            return self._member(one, rest, no)
        raise Refused(f'% Unrecognized command "{(rest or words or [name])[0]}".')

    def _member(self, one: Partition, words: list[str], no: bool) -> Callable[[], None]:
        who = words[0]
        if who != "ALL" and not _GUID.fullmatch(who):
            raise Refused("% Invalid port GUID")
        if no and len(words) == 1:
            return lambda: vars(one).update(members={k: v for k, v in one.members.items() if k != who})
        if not no and len(words) == 3 and words[1] == "type" and words[2] in _KINDS:
            self._both(words[2:])
            return lambda: one.members.update({who: words[2]})
        raise Refused(f'% Unrecognized command "{words[-1]}".')

    def _both(self, words: list[str]) -> None:
        if words == ["both"] and not self.device.config.both:
            raise Refused("% both needs ib sm allow-both-pkeys")


DEVICE = IbSwitch

__all__ = ["DEVICE", "DeviceFacts", "IbSwitch"]
