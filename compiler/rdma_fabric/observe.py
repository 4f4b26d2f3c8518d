"""Reads nodes: one read-only session each, many at once; only the parsed states are kept."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from rdma_fabric import codec, platforms
from rdma_fabric.hardware import Hardware
from rdma_fabric.resolve import NodePlan
from rdma_fabric.state import NodeState, Observation
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import Failure, TransportError
from rdma_fabric.transport.fleet import WORKERS, on_each
from rdma_fabric.transport.session import Session, open_session
from rdma_fabric.transport.targets import Target
from rdma_fabric.vitals import Vitals

__all__ = ["Failure", "Seen", "Sign", "ask", "observe", "observe_vitals", "read", "read_vitals"]


@dataclass(frozen=True, slots=True)
class Sign:
    """What a node counted, and when it said so (seconds of a clock that only goes forward)."""

    vitals: Vitals
    at: float


@dataclass(frozen=True, slots=True)
class Seen:
    """State and counters of one node, read in one session."""

    observation: Observation
    sign: Sign


def observe(
    names: Iterable[str],
    plans: Mapping[str, NodePlan],
    targets: Mapping[str, Target],
    secrets: Secrets,
    *,
    workers: int = WORKERS,
    done: Callable[[str], None] | None = None,
) -> dict[str, Observation | Failure]:
    """The states of `names`, or why there is none; `done` is told every node that answered (any thread)."""
    shared = _Shared()

    def look(target: Target) -> Observation:
        plan = _plan(target, plans)
        dialect = platforms.platform(plan.hardware.base).dialect
        with open_session(target, dialect, secrets) as session:
            answers = _answers(session, plan.hardware)
        found = shared.of(_parsed(answers, plan.hardware))
        if done is not None:
            done(target.name)
        return found

    return on_each(names, targets, look, secrets, workers=workers)


def observe_vitals(
    names: Iterable[str],
    plans: Mapping[str, NodePlan],
    targets: Mapping[str, Target],
    secrets: Secrets,
    *,
    workers: int = WORKERS,
) -> dict[str, Seen | Failure]:
    """States and counters of `names`, both in one session each."""
    shared = _Shared()

    def look(target: Target) -> Seen:
        plan = _plan(target, plans)
        hardware = plan.hardware
        questions = dict.fromkeys((*platforms.questions(hardware), *platforms.vital_questions(hardware)))
        with open_session(target, platforms.platform(hardware.base).dialect, secrets) as session:
            answers = session.ask(questions)
        sign = Sign(platforms.vitals(answers, hardware), time.monotonic())
        return Seen(shared.of(_parsed(answers, hardware)), sign)

    return on_each(names, targets, look, secrets, workers=workers)


def read_vitals(
    names: Iterable[str],
    plans: Mapping[str, NodePlan],
    targets: Mapping[str, Target],
    secrets: Secrets,
    *,
    workers: int = WORKERS,
) -> dict[str, Sign | Failure]:
    """Counters of `names` alone: the second read."""

    def look(target: Target) -> Sign:
        hardware = _plan(target, plans).hardware
        with open_session(target, platforms.platform(hardware.base).dialect, secrets) as session:
            answers = session.ask(platforms.vital_questions(hardware))
        return Sign(platforms.vitals(answers, hardware), time.monotonic())

    return on_each(names, targets, look, secrets, workers=workers)


def ask(
    questions: Mapping[str, tuple[str, ...]],
    plans: Mapping[str, NodePlan],
    targets: Mapping[str, Target],
    secrets: Secrets,
    *,
    workers: int = WORKERS,
    timeout_s: float = 60.0,
) -> dict[str, Mapping[str, str] | Failure]:
    """The answers of every node to questions of its own, in one session each."""

    def look(target: Target) -> Mapping[str, str]:
        dialect = platforms.platform(_plan(target, plans).hardware.base).dialect
        with open_session(target, dialect, secrets) as session:
            return session.ask(questions[target.name], timeout_s=timeout_s)

    return on_each(questions, targets, look, secrets, workers=workers)


def _plan(target: Target, plans: Mapping[str, NodePlan]) -> NodePlan:
    plan = plans.get(target.name)
    if plan is None:
        raise TransportError("refused", "the node is not part of the intent's fabric")
    return plan


def read(session: Session, hardware: Hardware) -> Observation:
    """The state of one node over a session that is open: the read-back after a push."""
    return _parsed(_answers(session, hardware), hardware)


def _answers(session: Session, hardware: Hardware) -> Mapping[str, str]:
    return session.ask(platforms.questions(hardware))


def _parsed(answers: Mapping[str, str], hardware: Hardware) -> Observation:
    found = platforms.parse(answers, hardware)
    return found if found.evidence else replace(found, evidence=_digest(found))


def _digest(found: Observation) -> str:
    """A digest of the states of all layers, for platforms that give none of their own."""
    layers = [codec.to_json(layer) for layer in (found.running, found.stored, found.pending)]
    return hashlib.sha256(json.dumps(layers, sort_keys=True).encode()).hexdigest()


class _Shared:
    """One object for equal states, so that thousands of equal hosts cost one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[NodeState, NodeState] = {}

    def of(self, found: Observation) -> Observation:
        with self._lock:
            layers = [
                layer and self._states.setdefault(layer, layer)
                for layer in (found.running, found.stored, found.pending)
            ]
        running, stored, pending = layers
        assert running is not None
        return replace(found, running=running, stored=stored, pending=pending)
