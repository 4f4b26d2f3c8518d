"""A simulated NVIDIA InfiniBand switch with MLNX-OS: its own command line, not the subnet.

Facts: reference page nvidia_ib (sections 1 to 6). Every line acts at once; there is no candidate and no
timer. What the page marks as unverified and this module had to choose: `show interfaces ib status` is
refused as unknown, partition `rate`, `sl` and `scope` too, `show version` has Onyx's names of fields.
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
_ENGINES: Final = ("minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS")


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
    engines: str = ""
    root_guids: list[str] = field(default_factory=list)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)
    down: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The lines in the order in which this module prints them."""
        rows = [*self.foreign]
        rows += [f"interface ib {port} shutdown" for port in self.down]
        for name, one in self.partitions.items():
            rows += _partition_rows(name, one)
        rows += ["ib sm allow-both-pkeys"] if self.both else []
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
        for name, one in self.partitions.items():
            made.partitions[name] = Partition(**{**vars(one), "members": dict(one.members)})
        return made


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
    saved: Config = field(init=False)
    sm_since: float = field(default=-1e9)
    """When `ib sm` or `no ib sm` was given last."""

    def __post_init__(self) -> None:
        """Factory state: no subnet manager, the partition Default for everybody; plus the seed."""
        self.config = Config(foreign=[line.strip() for line in self.facts.seed])
        self.config.partitions["Default"] = Partition(0x7FFF, True, "", "", {"ALL": "full"})
        self.saved = self.config.copy()

    def open(self, user: str) -> Session:
        """A login starts in operator mode."""
        return IbSession(self)

    def execute(self, user: str, command: str) -> Result:
        """Lines one after the other in a session of their own."""
        session = IbSession(self)
        text = "".join(
            f"{found}\n" if found and not found.endswith("\n") else found
            for found in (session.run(line).text for line in command.splitlines())
        )
        return Result(text, "", 1 if text.startswith("%") else 0)

    def tick(self) -> None:
        """Nothing of this device waits for the clock but the subnet manager, which is looked at."""

    def reboot(self) -> None:
        """Come back with the saved configuration."""
        self.config = self.saved.copy()
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
        return {"config": self.config.dump(), "saved": self.saved.dump(), "sm_since": self.sm_since}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take back what `dump` gave."""
        self.config, self.saved = Config.load(data["config"]), Config.load(data["saved"])
        self.sm_since = data["sm_since"]

    @property
    def sm_shown(self) -> bool:
        """What `show ib sm` says: the command works with a delay."""
        settled = self.clock() - self.sm_since >= SM_SECONDS
        return self.config.sm if settled else not self.config.sm

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
        self.port = ""
        self.asked: Callable[[], None] | None = None
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
            "interface": f"{name} (config interface ib {self.port}) # ",
        }[self.mode]

    def run(self, line: str) -> Reply:
        """One typed line, or the answer to a question."""
        if self.asked is not None:
            action, self.asked = self.asked, None
            if line.strip() == "yes":
                action()
            return Reply()
        words = line.split()
        if not words:
            return Reply()
        if words[0] in ("exit", "quit") and self.mode in ("operator", "enable"):
            return Reply(close=True)
        try:
            return Reply(self._run(words))
        except Refused as refused:
            return Reply(f"{refused}\n")

    # -- modes

    def _run(self, words: list[str]) -> str:
        if words == ["exit"] or words == ["quit"]:
            self.mode = {"interface": "config", "config": "enable"}[self.mode]
        elif (words == ["end"] and self.mode in ("config", "interface")) or (
            words in (["enable"], ["en"]) and self.mode == "operator"
        ):
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
        elif words in (["write", "memory"], ["configuration", "write"]):
            if words[0] == "configuration" and self.mode != "config":
                raise Refused('% Unrecognized command "configuration".')
            self.device.saved = self.device.config.copy()
        elif words[:1] == ["reload"]:
            self.device.reboot()
        elif self.mode in ("config", "interface"):
            self._configure(words)
        else:
            raise Refused(f'% Unrecognized command "{words[0]}".')
        return ""

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
            return "initial (active)\n"
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
        """The format from 3.6.8010 on."""
        rows = []
        for name, one in self.device.config.partitions.items():
            if names and name not in names:
                continue
            rows += [f"{name}:", f"  PKey : 0x{one.pkey:04X}", f"  ipoib: {'yes' if one.ipoib else 'no'}"]
            rows += ["  members:"]
            rows += [f"    GUID='{who}' member='{kind}'" for who, kind in one.members.items()]
        if names and not rows:
            raise Refused(f"% Partition {names[0]} does not exist")
        return "".join(f"{row}\n" for row in rows)

    # -- configuration

    def _configure(self, words: list[str]) -> None:
        if self.mode == "interface" and words in (["shutdown"], ["no", "shutdown"]):
            self._shutdown(self.port, words[0] == "shutdown")
        elif words[:2] == ["interface", "ib"] and len(words) in (3, 4, 5):
            self._interface(words[2], words[3:])
        elif words[:1] == ["ib"] or words[:2] == ["no", "ib"]:
            self._ib(words[1:] if words[0] == "ib" else words[2:], words[0] == "no")
        else:
            raise Refused(f'% Unrecognized command "{words[0]}".')

    def _interface(self, port: str, rest: list[str]) -> None:
        if port not in {one.name.removeprefix("ib ").removeprefix("ib") for one in self.device.facts.ports}:
            raise Refused(f"% Invalid interface {port}")
        if not rest:
            self.mode, self.port = "interface", port
        elif rest in (["shutdown"], ["no", "shutdown"]):
            self._shutdown(port, rest[0] == "shutdown")
        else:
            raise Refused(f'% Unrecognized command "{rest[0]}".')

    def _shutdown(self, port: str, down: bool) -> None:
        found = [one for one in self.device.config.down if one != port]
        self.device.config.down = sorted([*found, port]) if down else found

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
        elif words[0] == "root-guid" and len(words) == 2 and re.fullmatch(r"0x[0-9a-f]{16}", words[1]):
            kept = [guid for guid in config.root_guids if guid != words[1]]
            config.root_guids = kept if no else [*kept, words[1]]
        elif words[0] in ("babbling-policy", "accum-log-file") and len(words) == 1:
            line = f"ib sm {words[0]}"
            config.foreign = [one for one in config.foreign if one not in (line, f"no {line}")]
            config.foreign.append(f"no {line}" if no else line)
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
        force = words[-1:] == ["force"]
        words = words[:-1] if force else words
        partitions = self.device.config.partitions
        if not no and words[:1] == ["pkey"] and len(words) == 2:
            self._create(name, words[1])
            return
        if name not in partitions:
            raise Refused(f"% Partition {name} does not exist")
        action = self._change(name, words, no)
        if name == "Default" and not force and (no or words[:1] in (["defmember"], ["ipoib"])):
            self.asked = action
        else:
            action()

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
        if key == "defmember" and (no or (len(rest) == 1 and rest[0] in _KINDS)):
            self._both(rest)
            return put(defmember="" if no else rest[0])
        if key == "ipoib" and not rest:
            return put(ipoib=not no)
        if key == "mtu" and (no or (len(rest) == 1 and rest[0] in _MTUS)):
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
        if len(words) == 3 and words[1] == "type" and words[2] in _KINDS:
            self._both(words[2:])
            return lambda: one.members.update({who: words[2]})
        raise Refused(f'% Unrecognized command "{words[-1]}".')

    def _both(self, words: list[str]) -> None:
        if words == ["both"] and not self.device.config.both:
            raise Refused("% both needs ib sm allow-both-pkeys")


DEVICE = IbSwitch

__all__ = ["DEVICE", "DeviceFacts", "IbSwitch"]
