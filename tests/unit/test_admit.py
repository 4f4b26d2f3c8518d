"""Admission: what counts against a node, what does not, and what could not be judged."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric import platforms
from rdma_fabric.admit import Verdict, around, judge
from rdma_fabric.cli import main
from rdma_fabric.cli.common import load
from rdma_fabric.resolve import Resolved
from rdma_fabric.state import UNKNOWN, NodeState, Observation, PortSettings
from rdma_fabric.views.admit_text import admit_json, admit_text
from rdma_fabric.views.output import Output

DEMO = Path(__file__).resolve().parents[2] / "inventory" / "demo"
HOST = "gpu01"


@cache
def fabric() -> Resolved:
    return load(DEMO)


def as_wished() -> dict[str, Observation]:
    """Every node has what the intent wants."""
    found = {}
    for name, plan in fabric().plans.items():
        state = platforms.realize(plan.state, plan.hardware).state
        found[name] = Observation(state, state)
    return found


def cables() -> Any:
    return around(fabric().inventory, (HOST,))


def far() -> tuple[str, str]:
    """(node, port) at the other end of the host's first cable."""
    end = next(iter(cables()[HOST].values()))
    return end.node, end.port


def with_port(seen: Observation, port: str, **parts: Any) -> Observation:
    """The observation in which one port has other settings."""

    def changed(state: NodeState) -> NodeState:
        ports = tuple(
            replace(one, settings=_settings(one.settings, parts)) if one.name == port else one
            for one in state.ports
        )
        return replace(state, ports=ports)

    return replace(seen, running=changed(seen.running), stored=seen.stored and changed(seen.stored))


def _settings(settings: PortSettings, parts: dict[str, Any]) -> PortSettings:
    return replace(
        settings, **{name: replace(getattr(settings, name), **more) for name, more in parts.items()}
    )


def verdict(seen: dict[str, Observation], failures: dict[str, str] | None = None, **more: Any) -> Verdict:
    (one,) = judge(fabric(), cables(), seen, failures or {}, **more)
    return one


def test_as_wished_it_is_admitted() -> None:
    found = verdict(as_wished())
    assert (found.word, found.findings, found.unknown) == ("admit", (), ())
    assert set(found.neighbours) == {end.node for end in cables()[HOST].values()}


def test_its_own_fault_refuses() -> None:
    seen = as_wished()
    port = next(iter(cables()[HOST])).port
    seen[HOST] = with_port(seen[HOST], port, mtu={"ip": 1500})
    found = verdict(seen)
    assert found.word == "refuse"
    assert all(place.node in (HOST, far()[0]) for one in found.findings for place in one.places)


def test_a_fault_at_the_other_end_of_its_cable_refuses() -> None:
    node, port = far()
    seen = as_wished()
    seen[node] = with_port(seen[node], port, qos={"trust": "pcp"})
    assert verdict(seen).word == "refuse"


def test_a_fault_elsewhere_at_its_neighbour_does_not() -> None:
    node, port = far()
    seen = as_wished()
    mine = {end.port for end in cables()[HOST].values() if end.node == node}
    peers = fabric().inventory.peers()
    other = next(
        end.port for end, (peer, _) in peers.items() if end.node == node and peer.node not in (HOST,)
        and fabric().inventory.nodes[peer.node].is_host and end.port not in mine
    )  # fmt: skip
    seen[node] = with_port(seen[node], other, mtu={"ip": 1500})
    assert verdict(seen).word == "admit", port


def test_an_agent_refuses_although_it_is_a_warning() -> None:
    seen = as_wished()
    system = replace(seen[HOST].running.system, owners=("lldpad",))
    seen[HOST] = replace(seen[HOST], running=replace(seen[HOST].running, system=system))
    found = verdict(seen)
    assert found.word == "refuse" and found.findings[0].code == "FAB050"


@pytest.mark.parametrize(("state", "word"), [("up", "admit"), ("unknown", "admit"), ("down", "refuse")])
def test_a_link_that_is_not_up_refuses(state: str, word: str) -> None:
    seen = as_wished()
    port = next(iter(cables()[HOST])).port
    seen[HOST] = replace(seen[HOST], facts=((f"link {port}", state),))
    found = verdict(seen)
    assert found.word == word and found.down == (() if word == "admit" else (port,))


def test_what_could_not_be_read_is_unknown_and_wrong_goes_before() -> None:
    node, port = far()
    seen = as_wished()
    seen[node] = with_port(seen[node], port, qos={"trust": UNKNOWN})
    found = verdict(seen)
    assert found.word == "unknown"
    assert [(one.node, one.port) for one in found.unknown] == [(node, port)]
    seen[HOST] = with_port(seen[HOST], next(iter(cables()[HOST])).port, mtu={"ip": 1500})
    assert verdict(seen).word == "refuse"


@pytest.mark.parametrize("which", ["node", "neighbour"])
def test_without_an_answer_nobody_knows(which: str) -> None:
    name = HOST if which == "node" else far()[0]
    seen = as_wished()
    del seen[name]
    found = verdict(seen, {name: "unreachable: connection refused"})
    assert found.word == "unknown"
    assert [(one.node, one.why) for one in found.unknown] == [(name, "unreachable: connection refused")]


def test_a_node_that_is_not_in_service_yet_is_judged_as_if_it_were() -> None:
    resolved = fabric()
    nodes = {
        name: replace(node, spec=replace(node.spec, state="planned"))
        for name, node in resolved.inventory.nodes.items()
    }
    planned = replace(resolved, inventory=replace(resolved.inventory, nodes=nodes))
    seen = as_wished()
    seen[HOST] = with_port(seen[HOST], next(iter(cables()[HOST])).port, mtu={"ip": 1500})
    (found,) = judge(planned, cables(), seen, {})
    assert found.word == "refuse"


def test_text_and_json() -> None:
    node, port = far()
    seen = as_wished()
    seen[node] = with_port(seen[node], port, qos={"trust": "pcp"})
    verdicts = (verdict(as_wished()), verdict(seen), verdict(seen, {HOST: "auth: refused"}))
    text = admit_text(verdicts, Output())
    assert text.startswith(f"{HOST}: admitted\n{HOST}: refused\n")
    assert text.endswith("3 nodes: 1 admitted, 2 refused") and f"{HOST}: auth: refused" in text
    assert '"admitted": false' in admit_json(verdicts)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["admit", "-C", str(DEMO)], "name a node, or give --limit"),
        (["admit", "gpu99", str(DEMO)], "there is no node gpu99"),
        (["admit", HOST, str(DEMO), "--lab"], "no lab is up"),
    ],
)
def test_what_cannot_be_asked(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert told in said.out + said.err
