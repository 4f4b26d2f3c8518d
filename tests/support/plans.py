"""A fabric whose devices are states in memory: plans and pushes without a platform or a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rdma_fabric import platforms
from rdma_fabric.hardware import Hardware
from rdma_fabric.inventory.types import Inventory
from rdma_fabric.plan.changes import Plan, Target, make_plan
from rdma_fabric.plan.disturb import Budget
from rdma_fabric.platforms._contract import Change, Dialect, Disturbance, Disturbs, Send
from rdma_fabric.push.reach import Job, Outcome
from rdma_fabric.resolve import Resolved
from rdma_fabric.settings import split_path
from rdma_fabric.state import NodeState, Observation, PortState, differences
from tests.support.inputs import CABLES, GROUPS, HOSTS, fabric

# Smaller numbers than `max`, so that growing and shrinking are plain to see.
INTENT = """\
version: 1
name: t
mtu: {switch: 9214, host: 9000}
classes:
  roce: {priority: 3, dscp: [26], lossless: true}
  default: {priority: 0, dscp: rest}
networks: {compute: {}, storage: {}}
"""


def ports_with(state: NodeState, edit: Callable[[PortState], PortState]) -> NodeState:
    """The state with every port edited."""
    return replace(state, ports=tuple(map(edit, state.ports)))


def mtu(state: NodeState, ip: Any, *ports: str) -> NodeState:
    """The state with this MTU on the ports (all when none is named)."""

    def edit(port: PortState) -> PortState:
        settings = replace(port.settings, mtu=replace(port.settings.mtu, ip=ip))
        return replace(port, settings=settings) if not ports or port.name in ports else port

    return ports_with(state, edit)


def pfc(state: NodeState, on: Iterable[int], *ports: str) -> NodeState:
    """The state with PFC on these priorities."""
    wanted = set(on)

    def edit(port: PortState) -> PortState:
        if ports and port.name not in ports:
            return port
        qos = port.settings.qos
        classes = tuple(
            replace(one, pfc_tx=index in wanted, pfc_rx=index in wanted)
            for index, one in enumerate(qos.classes)
        )
        return replace(port, settings=replace(port.settings, qos=replace(qos, classes=classes)))

    return ports_with(state, edit)


@dataclass
class Rules:
    """How the platform in memory disturbs and what it doubts."""

    pfc: Disturbs = Disturbs.PORT_BOUNCE
    mtu: Disturbs = Disturbs.NOTHING
    undo: Disturbs = Disturbs.NOTHING
    whole: bool = False
    """Disturbs the node, not single ports."""
    unverified: bool = False
    changes: int = 0

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """As a platform's `change`: one line per difference."""
        self.changes += 1
        found = differences(wanted, seen.running)
        writable = tuple(one for one in found if not one.unknown)
        lines = tuple(f"set {one.path} {one.wanted}" for one in writable)
        steps = (Send(lines),) if lines else ()
        return Change(
            differences=writable,
            blocked=tuple(one for one in found if one.unknown),
            lines=lines,
            stage=steps,
            undo=steps,
            undo_kind="device-timer" if steps else "none",
            disturbs=tuple(self._disturbs(one.path) for one in writable),
            undo_disturbs=(Disturbance(self.undo, (), "the undo", "test"),) if steps else (),
            unverified=lines[:1] if self.unverified else (),
            expected=wanted,
        )

    def _disturbs(self, path: str) -> Disturbance:
        port, setting = split_path(path)
        level = self.pfc if "pfc" in setting else self.mtu
        return Disturbance(level, () if self.whole else (port,), "a change of PFC", "test")


@dataclass
class Bench:
    """An inventory, wished states, and what the devices have."""

    resolved: Resolved
    rules: Rules
    devices: dict[str, NodeState]
    seen: dict[str, Observation] = field(default_factory=dict)

    @property
    def inventory(self) -> Inventory:
        return self.resolved.inventory

    def targets(self, *names: str) -> dict[str, Target]:
        shared: dict[int, Target] = {}
        plans = self.resolved.plans
        for name in names or plans:
            shared.setdefault(id(plans[name]), Target(plans[name].state, plans[name].hardware))
        return {name: shared[id(plans[name])] for name in names or plans}

    def observe(self) -> dict[str, Observation]:
        return {name: observed(state) for name, state in self.devices.items()} | self.seen

    def plan(self, *names: str, allow: Disturbs = Disturbs.NOTHING, drained: str = "", **more: Any) -> Plan:
        budget = Budget(allow, frozenset(drained.split()))
        return make_plan(
            self.inventory, self.targets(*names), self.observe(), inputs="i", budget=budget, **more
        )


def observed(state: NodeState, **more: Any) -> Observation:
    """An observation whose evidence is the state itself."""
    return Observation(state, evidence=str(hash(state)), **more)


def bench(
    folder: Path,
    patch: pytest.MonkeyPatch,
    intent: str = INTENT,
    *,
    hosts: str = HOSTS,
    groups: str = GROUPS,
    cables: str = CABLES,
) -> Bench:
    """A fabric of two leaves and four hosts on which everything is as wished."""
    resolved = fabric(folder, intent, hosts=hosts, groups=groups, cables=cables)
    rules = Rules()
    base = SimpleNamespace(channel="cli", dialect=Dialect("test", "error"))
    patch.setattr(platforms, "change", rules.change)
    patch.setattr(platforms, "platform", lambda _key: base)
    return Bench(resolved, rules, {name: plan.state for name, plan in resolved.plans.items()})


Answer = Callable[[Job], Outcome]


@dataclass
class MemoryReach:
    """Carries jobs out on the states of a bench. `script`: (phase, node) -> what happens instead."""

    bench: Bench
    script: Mapping[tuple[str, str], Outcome | BaseException] = field(default_factory=dict)
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    before: Callable[[str, tuple[str, ...]], None] | None = None
    """Called before each phase: looks at what is on disk by then."""
    saved: dict[str, NodeState] = field(default_factory=dict)

    def commit(self, jobs: Mapping[str, Job], run: str, timer_s: int) -> Mapping[str, Outcome]:
        return self._each("commit", jobs, self._commit)

    def _commit(self, job: Job) -> Outcome:
        self.saved[job.node] = self.bench.devices[job.node]
        assert job.change.expected is not None
        self.bench.devices[job.node] = platforms.overlay(self.saved[job.node], job.change.expected)
        return Outcome(True, observation=self.bench.observe()[job.node])

    def confirm(self, jobs: Mapping[str, Job], run: str) -> Mapping[str, Outcome]:
        return self._each("confirm", jobs, lambda job: Outcome(True))

    def undo(self, jobs: Mapping[str, Job], run: str) -> Mapping[str, Outcome]:
        return self._each("undo", jobs, self._undo)

    def _undo(self, job: Job) -> Outcome:
        self.bench.devices[job.node] = self.saved.get(job.node, self.bench.devices[job.node])
        return Outcome(True)

    def recover(self, jobs: Mapping[str, Job], run: str) -> Mapping[str, Outcome]:
        return self._each("recover", jobs, self._undo)

    def _each(self, phase: str, jobs: Mapping[str, Job], act: Answer) -> dict[str, Outcome]:
        self.calls.append((phase, tuple(jobs)))
        if self.before:
            self.before(phase, tuple(jobs))
        found = {}
        for name, job in jobs.items():
            told = self.script.get((phase, name))
            if isinstance(told, BaseException):
                raise told
            found[name] = told or act(job)
        return found
