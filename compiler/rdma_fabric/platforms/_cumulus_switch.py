"""One configuration tree of a switch, with what the device shows of it laid over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rdma_fabric.hardware import Hardware, release
from rdma_fabric.platforms._cumulus_tree import (
    BUFFER_SIZES,
    ECN,
    ETS,
    FACTORY,
    GLOBAL,
    IDLE,
    KINDS,
    MAPPING,
    OURS,
    PFC,
    POLL_MS,
    QUEUES,
    ROBUSTNESS,
    Defaults,
    MapOf,
    Marks,
    PfcOf,
    Shares,
    Tree,
    branch,
    defaults_of,
    flag,
    gather,
    interfaces,
    merge,
    milliseconds,
    natural,
    read_json,
    read_mapping,
    read_marks,
    read_pfc,
    read_queues,
    read_shares,
    roce_mode,
    whole,
)
from rdma_fabric.state import NOT_APPLICABLE, UNKNOWN, Maybe, SystemState, WatchdogTimers

INTERFACES: Final = "nv show interface -o json"
LIVE: Final = {kind: f"nv show qos {kind} -o json" for kind in (*KINDS, QUEUES)}
WATCHDOG: Final = "nv show qos pfc-watchdog -o json"

PROFILE: Final = "profile"
"""Facts named "profile <kind> <name>": the ports that use it, or "" for one of ours that nobody uses."""
DEFAULTS: Final = "default-global"
"""The fact that holds `default-global` as JSON where it is not the factory's."""
LINK_PAUSE: Final = "link-pause"
ROCE, POOLS, AUTO_SAVE = "roce", "traffic-pools", "auto-save"
PAUSE_ALL: Final = "link-pause-of-all"
WATCHED: Final = "idle-watchdog"
"""Ports whose watchdog is on and has nothing to guard: it wakes up with PFC."""
# ---------------------------------------------------------------- what the device shows


@dataclass(frozen=True, slots=True)
class Live:
    """Operational answers; what was not understood is absent and listed in `missing`."""

    ports: Mapping[str, Tree] = field(default_factory=dict)
    objects: Mapping[str, Tree] = field(default_factory=dict)
    """Kind -> profile -> its object."""
    watchdog: Tree = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @classmethod
    def read(cls, answers: Mapping[str, str]) -> Live:
        missing = []
        objects: dict[str, Tree] = {}
        for kind, question in LIVE.items():
            found = read_json(answers.get(question, ""))
            # An object without profiles (pfc on an untouched switch) is printed as {}.
            if isinstance(found, dict) and all(isinstance(item, dict) for item in found.values()):
                objects[kind] = found
            else:
                missing.append(question)
        ports = read_json(answers.get(INTERFACES, ""))
        watchdog = read_json(answers.get(WATCHDOG, ""))
        if not isinstance(ports, dict) or not ports:
            missing.append(INTERFACES)
        if not isinstance(watchdog, dict):
            missing.append(WATCHDOG)
        return cls(
            ports=ports if isinstance(ports, dict) else {},
            objects=objects,
            watchdog=watchdog if isinstance(watchdog, dict) else {},
            missing=tuple(missing),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for each answer that is taken from the configuration instead."""
        return tuple(
            f"{question}: not understood, the configuration is taken instead" for question in self.missing
        )


# ---------------------------------------------------------------- one configuration tree


@dataclass(frozen=True, slots=True)
class Content:
    """What all profiles of one port say."""

    mapping: MapOf
    pfc: PfcOf
    marks: Marks
    shares: Shares


@dataclass(frozen=True, slots=True)
class Switch:
    """One configuration tree, with what the device says of it laid over."""

    tree: Tree
    ports: Mapping[str, Tree]
    mode: str
    base: Defaults | None
    """None: a RoCE mode that is not described in full."""
    release: tuple[int, ...]
    live: Live
    queues: Maybe[tuple[int, ...]] = UNKNOWN

    @classmethod
    def read(cls, tree: Tree, header: Tree, live: Live) -> Switch:
        version = release(str(header.get("version", "")))
        mode = roce_mode(tree, version)
        base = defaults_of(mode)
        made = cls(tree, interfaces(tree), mode, base, version, live)
        if base is None:
            return made
        return replace(made, queues=read_queues(made.raw(QUEUES, GLOBAL), base.queues))

    # -- objects

    def configured(self, kind: str, name: str) -> Tree:
        """The profile as configured."""
        return branch(self.tree, "qos", kind, name)

    def shown(self, kind: str, name: str) -> Tree | None:
        """The profile as the device shows it."""
        profiles = self.live.objects.get(kind, {})
        return branch(profiles, name) if name in profiles else None

    def raw(self, kind: str, name: str) -> Tree:
        """The configured profile under the shown one."""
        shown = self.shown(kind, name) or {}
        return merge(self.configured(kind, name), _exact(shown))

    def content(self, names: Mapping[str, str]) -> Content:
        """What the profiles of these names say; `default-global` where a kind is not named."""
        assert self.base is not None
        named = {kind: names.get(kind, GLOBAL) for kind in KINDS}
        own = {kind: name != GLOBAL for kind, name in named.items()}
        return Content(
            mapping=read_mapping(
                self.raw(MAPPING, named[MAPPING]), FACTORY.mapping if own[MAPPING] else self.base.mapping
            ),
            pfc=read_pfc(
                self.raw(PFC, named[PFC]),
                FACTORY.pfc if own[PFC] else self.base.pfc,
                self.configured(PFC, named[PFC]),
            ),
            marks=read_marks(
                self.configured(ECN, named[ECN]),
                {} if own[ECN] else self.base.marks,
                self.shown(ECN, named[ECN]),
            ),
            shares=read_shares(
                self.configured(ETS, named[ETS]),
                IDLE if own[ETS] else self.base.shares,
                self.shown(ETS, named[ETS]),
            ),
        )

    def names(self, port: str) -> dict[str, str]:
        """Kind -> profile of a port, for the kinds that have one."""
        qos = branch(self.ports, port, "qos")
        found = {kind: branch(qos, kind).get("profile") for kind in (*KINDS, LINK_PAUSE)}
        return {kind: str(name) for kind, name in found.items() if name and name != GLOBAL}

    # -- the node

    @property
    def system(self) -> SystemState:
        """A RoCE macro writes the same settings for all ports: a second owner."""
        return SystemState(owners=(f"nv set qos roce ({self.mode})",) if self.mode else ())

    @property
    def auto_save(self) -> bool:
        """True when an apply survives a reboot by itself; the default from 5.9 on."""
        config = branch(self.tree, "system", "config", "auto-save")
        return flag(config.get("state", config.get("enable")), self.release >= (5, 9)) is True

    def timers(self) -> WatchdogTimers:
        """Detection takes `robustness` polling intervals; the queue comes back by itself."""
        configured = branch(self.tree, "qos", "pfc-watchdog")
        shown = self.live.watchdog
        poll = milliseconds(shown.get("polling-interval", configured.get("polling-interval", POLL_MS)))
        times = whole(shown.get("robustness", configured.get("robustness", ROBUSTNESS)))
        return WatchdogTimers(
            detect_ms=UNKNOWN if poll is None or times is None else poll * times,
            restore_ms=NOT_APPLICABLE,
            poll_ms=UNKNOWN if poll is None else poll,
            action="drop",
        )

    def paused(self, port: str) -> Maybe[bool]:
        """802.3x pause in either direction, by a profile of the port or of all ports."""
        name = str(branch(self.ports, port, "qos", LINK_PAUSE).get("profile", GLOBAL))
        profiles = branch(self.tree, "qos", LINK_PAUSE)
        if name not in profiles:
            return False
        rx, tx = flag(branch(profiles, name).get("rx"), True), flag(branch(profiles, name).get("tx"), True)
        if rx is True or tx is True:
            return True
        return UNKNOWN if UNKNOWN in (rx, tx) else False

    # -- facts and notes

    def facts(self, header: Tree) -> tuple[tuple[str, str], ...]:
        """What a change has to know beside the state."""
        model, version = str(header.get("model", "")), str(header.get("version", ""))
        found = {
            "model": model,
            "version": version.removeprefix("Cumulus Linux ").strip(),
            AUTO_SAVE: "on" if self.auto_save else "off",
            ROCE: self.mode,
            POOLS: self._pools(),
            PAUSE_ALL: GLOBAL if GLOBAL in branch(self.tree, "qos", LINK_PAUSE) else "",
            WATCHED: self._idle(),
            DEFAULTS: self._defaults(),
        }
        facts = [(name, value) for name, value in found.items() if value]
        return tuple(sorted([*facts, *self._profiles()]))

    def watched(self, port: str) -> Maybe[bool]:
        """The switch of the port; without a word for the state it is on (QoS page, "PFC Watchdog")."""
        qos = branch(self.ports, port, "qos")
        if "pfc-watchdog" not in qos:
            return False
        return flag(branch(qos, "pfc-watchdog").get("state"), True)

    def _idle(self) -> str:
        if self.base is None:
            return ""
        watched = [port for port in sorted(self.ports, key=natural) if self.watched(port) is True]
        return gather(port for port in watched if not self.content(self.names(port)).pfc.priorities)

    def _pools(self) -> str:
        pools = branch(self.tree, "qos", "traffic-pool")
        sizes = {name: whole(branch(pools, name).get("memory-percent")) for name in pools}
        return " ".join(f"{name}={size}" for name, size in sorted(sizes.items()) if size is not None)

    def _defaults(self) -> str:
        """`default-global` as configured and shown, where factory and macro do not explain it."""
        if self.base is None:
            return ""
        base = Content(self.base.mapping, self.base.pfc, self.base.marks, self.base.shares)
        if self.content({}) == base:
            return ""
        found = {kind: self.raw(kind, GLOBAL) for kind in KINDS}
        sizes = branch(self.configured(PFC, GLOBAL))
        computed = [name for name in BUFFER_SIZES if name not in sizes]
        found[PFC] = {name: value for name, value in found[PFC].items() if name not in computed}
        return json.dumps({kind: raw for kind, raw in found.items() if raw}, sort_keys=True)

    def _profiles(self) -> list[tuple[str, str]]:
        used: dict[tuple[str, str], list[str]] = {}
        for kind in (*KINDS, LINK_PAUSE):
            for name in branch(self.tree, "qos", kind):
                if OURS.fullmatch(name):
                    used[kind, name] = []
        for port in sorted(self.ports, key=natural):
            for kind, name in self.names(port).items():
                used.setdefault((kind, name), []).append(port)
        return [(f"{PROFILE} {kind} {name}", gather(ports)) for (kind, name), ports in used.items()]

    def hidden(self, hw: Hardware) -> tuple[str, ...]:
        """Profiles of our ports that the configuration holds and the device does not show."""
        used = {(kind, name) for port in hw.ports for kind, name in self.names(port.name).items()}
        return tuple(
            f"{LIVE[kind]}: {name} is not shown, the configuration is taken instead"
            for kind, name in sorted(used)
            if name not in self.live.objects.get(kind, {name: {}})
        )

    def notes(self, hw: Hardware) -> tuple[str, ...]:
        """What an operator should know of this configuration."""
        notes = []
        if self.base is None:
            notes.append(f"nv set qos roce mode {self.mode}: not understood, QoS is unknown")
        elif self.mode:
            notes.append(f"nv set qos roce ({self.mode}) is on: it sets QoS of every port without a profile")
        foreign = sorted(
            {
                f"{kind} {name}"
                for port in hw.ports
                for kind, name in self.names(port.name).items()
                if not OURS.fullmatch(name)
            }
        )
        notes += [
            f"profile {one} is not ours: settings are read through it, ours take its place" for one in foreign
        ]
        return tuple(notes)


def _exact(tree: Tree) -> Tree:
    """The shown object without values that the device rounded for reading ("146.48 KB")."""
    made: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            made[key] = _exact(value)
        elif not (isinstance(value, str) and value[:1].isdigit() and whole(value) is None):
            made[key] = value
    return made
