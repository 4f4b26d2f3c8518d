"""Selectors: `--limit`, `where`, partition members. One small language for all of them.

    leaf01,leaf[02-04]   names, ranges and globs (spine*, leaf0?); any of them
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

from rdma_fabric.findings import BadValue, did_you_mean, shown
from rdma_fabric.inventory.ranges import expand
from rdma_fabric.inventory.types import Node, Port

NODE_FACTS = ("name", "role", "platform", "state", "model", "version", "group", "plane", "rack")
PORT_FACTS = ("port", "network", "speed", "rail", "nic", "kind")
FACTS = NODE_FACTS + PORT_FACTS


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
    names: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()

    @property
    def by_port(self) -> bool:
        """True when the answer depends on the port."""
        return any(term.fact in PORT_FACTS for term in self.terms)

    def node(self, node: Node) -> bool:
        """True when the node's own facts fit (port facts are left out)."""
        named = node.name in self.names or any(fnmatchcase(node.name, glob) for glob in self.globs)
        if not named and (self.names or self.globs):
            return False
        return all(term.holds(_node_fact(node, term.fact)) for term in self.terms if term.fact in NODE_FACTS)

    def port(self, port: Port) -> bool:
        """True when the port facts fit."""
        return all(term.holds(_port_fact(port, term.fact)) for term in self.terms if term.fact in PORT_FACTS)

    def selects(self, node: Node) -> bool:
        """True when the node's facts fit, and port facts, where asked for, those of a port in a network."""
        if not self.node(node):
            return False
        return not self.by_port or any(self.port(one) for one in node.spec.ports.values() if one.network)


def parse(text: str) -> Selector:
    """The selector, or BadValue with what is wrong and what may be written."""
    names: list[str] = []
    globs: list[str] = []
    terms: list[Term] = []
    for word in re.split(r"[,\s]+(?![^\[]*\])", text.strip()):
        if not word:
            continue
        match = re.fullmatch(r"([a-z_]+)(!?=)(.+)", word)
        if match:
            terms.append(_term(match.group(1), match.group(2) == "=", match.group(3)))
        elif _GLOB.search(word) and _GLOB_WORD.fullmatch(word):
            if _RANGE.search(word):
                raise BadValue(
                    f"{shown(word)} holds a range and a wildcard", "write two names, one with each"
                )
            globs.append(word)
        elif "=" in word:
            raise BadValue(f"{shown(word)} is not fact=value", f"known facts: {', '.join(FACTS)}")
        else:
            names.extend(expand(word))
    return Selector(text, frozenset(names), tuple(globs), tuple(terms))


_GLOB = re.compile(r"[*?]|\[[^\]]*[^0-9,\]-]")
"""A wildcard, or a bracket that holds more than a range of numbers."""
_GLOB_WORD = re.compile(r"[A-Za-z0-9._:/*?\[\]!-]+")
_RANGE = re.compile(r"\[\d+[-,][\d,-]*\]")


def _term(fact: str, wanted: bool, values: str) -> Term:
    if fact not in FACTS:
        near = did_you_mean(fact, FACTS)
        help = f"did you mean {near}?" if near else f"known facts: {', '.join(FACTS)}"
        raise BadValue(f"unknown fact {shown(fact)}", help)
    return Term(fact, tuple(values.split("|")), wanted)


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
