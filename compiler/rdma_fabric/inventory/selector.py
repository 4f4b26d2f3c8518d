"""Selectors: `--limit`, `where`, partition members. One small language for all of them.

    leaf01,leaf02        names, globs and ranges; any of them
    role=leaf            a fact; `|` between values: role=leaf|spine; globs allowed
    role!=host           not
    leaf*,role=leaf,network=storage     every fact must hold, and one of the names

Facts: name, role, platform, state, model, version, group, plane, rack (node) and port, network, speed,
rail, nic, kind (port).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rdma_fabric.findings import did_you_mean
from rdma_fabric.inventory.ranges import expand
from rdma_fabric.inventory.types import Node, Port

NODE_FACTS = ("name", "role", "platform", "state", "model", "version", "group", "plane", "rack")
PORT_FACTS = ("port", "network", "speed", "rail", "nic", "kind")


@dataclass(frozen=True, slots=True)
class Term:
    """One `fact=value|value`; `wanted` False for `!=`."""

    fact: str
    values: tuple[str, ...]
    wanted: bool = True

    def holds(self, found: Iterable[str]) -> bool:
        """True when one of the found texts matches one of the values (or none, for `!=`)."""
        hit = any(fnmatchcase(text, value) for text in found for value in self.values)
        return hit == self.wanted


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed selector; empty selects everything."""

    text: str
    names: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()

    @property
    def by_name(self) -> bool:
        """True when the answer depends on the node's name."""
        return bool(self.names) or any(term.fact == "name" for term in self.terms)

    @property
    def by_port(self) -> bool:
        """True when the answer depends on the port."""
        return any(term.fact in PORT_FACTS for term in self.terms)

    def node(self, node: Node) -> bool:
        """True when the node's own facts fit (port facts are left out)."""
        if self.names and not any(fnmatchcase(node.name, name) for name in self.names):
            return False
        return all(term.holds(_node_fact(node, term.fact)) for term in self.terms if term.fact in NODE_FACTS)

    def port(self, port: Port) -> bool:
        """True when the port facts fit."""
        return all(term.holds(_port_fact(port, term.fact)) for term in self.terms if term.fact in PORT_FACTS)


def parse(text: str) -> Selector:
    """The selector, or ValueError with what is wrong and what may be written."""
    names: list[str] = []
    terms: list[Term] = []
    for word in re.split(r"[,\s]+(?![^\[]*\])", text.strip()):
        if not word:
            continue
        match = re.fullmatch(r"([a-z_]+)(!?=)(.+)", word)
        if match:
            terms.append(_term(match.group(1), match.group(2) == "=", match.group(3)))
        elif re.fullmatch(r"[A-Za-z0-9._:/*?\[\]!-]+", word):
            names.extend(_names(word))
        else:
            raise ValueError(f"{word!r} is neither a node name nor fact=value")
    return Selector(text, tuple(names), tuple(terms))


def _term(fact: str, wanted: bool, values: str) -> Term:
    if fact not in NODE_FACTS + PORT_FACTS:
        near = did_you_mean(fact, NODE_FACTS + PORT_FACTS)
        raise ValueError(
            f"unknown fact {fact!r}"
            + (f", did you mean {near}?" if near else f"; known: {', '.join(NODE_FACTS + PORT_FACTS)}")
        )
    return Term(fact, tuple(values.split("|")), wanted)


def _names(word: str) -> tuple[str, ...]:
    if re.search(r"\[\d+-\d+", word) and not re.search(r"[*?]", word):
        return expand(word)
    return (word,)


def _node_fact(node: Node, fact: str) -> tuple[str, ...]:
    spec = node.spec
    values = {
        "name": node.name,
        "role": spec.role,
        "platform": spec.platform,
        "state": spec.state,
        "model": spec.model,
        "version": spec.version,
        "plane": spec.plane,
        "rack": spec.rack,
    }
    return spec.groups if fact == "group" else (values[fact],)


def _port_fact(port: Port, fact: str) -> tuple[str, ...]:
    values = {
        "port": port.name,
        "network": port.network,
        "speed": f"{port.speed_gbps}G",
        "rail": port.rail,
        "nic": port.nic,
        "kind": port.kind,
    }
    return (values[fact],)
