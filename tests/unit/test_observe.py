"""Observing with a platform made for this test: one session, rows for all, equal states shared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric import observe as observing
from rdma_fabric import platforms
from rdma_fabric.hardware import Hardware
from rdma_fabric.observe import Failure, observe
from rdma_fabric.platforms._contract import Dialect
from rdma_fabric.resolve import NodePlan
from rdma_fabric.state import Mtu, NodeState, Observation, PortSettings, PortState
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.session import open_session
from rdma_fabric.transport.targets import Target
from rdma_fabric.vitals import Count, Vitals
from tests.support.ssh_server import Server, run_with_sh

HARDWARE = Hardware(("toy",))


class _Toy:
    """Reads one number; fails on demand."""

    dialect = Dialect("", "", status=True)
    evidence = ""

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        return ("echo 9000", "echo two words; echo warn >&2")

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        assert answers["echo two words; echo warn >&2"] == "two words\n"
        port = PortState("eth0", settings=PortSettings(mtu=Mtu(ip=int(answers["echo 9000"]))))
        return Observation(NodeState(ports=(port,)), evidence=self.evidence)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> _Toy:
    made = _Toy()
    monkeypatch.setattr(platforms, "platform", lambda key: made)
    monkeypatch.setattr(platforms, "questions", made.questions)
    monkeypatch.setattr(platforms, "parse", made.parse)
    return made


def _plans(*names: str) -> dict[str, NodePlan]:
    plan = object.__new__(NodePlan)
    object.__setattr__(plan, "hardware", HARDWARE)
    return dict.fromkeys(names, plan)


def _secrets() -> Secrets:
    return Secrets({"FABRIC_PASSWORD": "Sesame-42"}, home=Path("/nonexistent"))


def test_nodes_are_read_and_equal_states_are_one_object(toy: _Toy, tmp_path: Path) -> None:
    names = ("n1", "n2", "n3")
    told: list[str] = []
    with Server(run_with_sh) as server:
        nodes = {name: server.target(tmp_path, name) for name in names}
        found = observe(names, _plans(*names), nodes, _secrets(), done=told.append)
        assert server.connections == 3
    states = [one.running for one in found.values() if isinstance(one, Observation)]
    assert len(states) == 3 and states[0].ports[0].settings.mtu.ip == 9000
    assert states[0] is states[1] is states[2]
    assert sorted(told) == list(names)


def test_state_and_counters_come_in_one_session(
    toy: _Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What both ask is asked once; the second read asks for counters alone."""
    asked: list[tuple[str, ...]] = []

    def vitals(answers: Mapping[str, str], hw: Hardware) -> Vitals:
        asked.append(tuple(answers))
        return Vitals((Count("eth0", "crc", int(answers["echo 9000"]), "crc"),))

    monkeypatch.setattr(platforms, "vital_questions", lambda hw: ("echo 9000", "echo more"))
    monkeypatch.setattr(platforms, "vitals", vitals)
    with Server(run_with_sh) as server:
        nodes = {"n1": server.target(tmp_path, "n1")}
        first = observing.observe_vitals(["n1"], _plans("n1"), nodes, _secrets())["n1"]
        assert server.connections == 1
        second = observing.read_vitals(["n1", "n2"], _plans("n1"), nodes, _secrets())
        answers = observing.ask({"n1": ("echo hello",)}, _plans("n1"), nodes, _secrets())
    assert isinstance(first, observing.Seen)
    assert first.observation.running.ports[0].settings.mtu.ip == 9000
    assert first.sign.vitals.counts[0].value == 9000
    assert asked == [("echo 9000", "echo two words; echo warn >&2", "echo more"), ("echo 9000", "echo more")]
    assert isinstance(second["n1"], observing.Sign)
    assert second["n1"].at > first.sign.at
    assert isinstance(second["n2"], Failure)
    assert answers == {"n1": {"echo hello": "hello\n"}}


def test_the_digest_is_the_platforms_or_made_of_the_states(toy: _Toy, tmp_path: Path) -> None:
    with Server(run_with_sh) as server:
        nodes = {"n1": server.target(tmp_path, "n1")}
        first = observe(["n1"], _plans("n1"), nodes, _secrets())["n1"]
        again = observe(["n1"], _plans("n1"), nodes, _secrets())["n1"]
        toy.evidence = "its own"
        own = observe(["n1"], _plans("n1"), nodes, _secrets())["n1"]
    assert isinstance(first, Observation) and isinstance(again, Observation) and isinstance(own, Observation)
    assert len(first.evidence) == 64 and first.evidence == again.evidence and own.evidence == "its own"


def test_every_node_that_was_not_read_has_a_failure(toy: _Toy, tmp_path: Path) -> None:
    with Server(run_with_sh) as server:
        nodes: dict[str, Target] = {
            "n1": server.target(tmp_path, "n1"),
            "stranger": server.target(tmp_path, "stranger"),
            "down": Target("down", "127.0.0.1", 1),
        }
        found = observe(["n1", "stranger", "down", "lost"], _plans("n1", "down", "lost"), nodes, _secrets())
    assert isinstance(found["n1"], Observation)
    kinds = {name: one.kind for name, one in found.items() if isinstance(one, Failure)}
    assert kinds == {"stranger": "refused", "down": "unreachable", "lost": "unreachable"}
    assert list(found) == ["n1", "stranger", "down", "lost"]


def test_a_parser_that_breaks_costs_one_node(
    toy: _Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(answers: Mapping[str, str], hw: Hardware) -> Observation:
        raise KeyError("mtu")

    monkeypatch.setattr(platforms, "parse", parse)
    with Server(run_with_sh) as server:
        found = observe(["n1"], _plans("n1"), {"n1": server.target(tmp_path, "n1")}, _secrets())
    assert found["n1"] == Failure("n1", "internal", "KeyError: 'mtu'")


def test_read_is_the_same_over_an_open_session(toy: _Toy, tmp_path: Path) -> None:
    with (
        Server(run_with_sh) as server,
        open_session(server.target(tmp_path), toy.dialect, _secrets()) as session,
    ):
        found = observing.read(session, HARDWARE)
    assert found.running.ports[0].name == "eth0" and found.evidence
