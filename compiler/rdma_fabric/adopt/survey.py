"""Asks nodes of which only the address is known: platform, name, ports and neighbours. Read-only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rdma_fabric import platforms
from rdma_fabric.adopt.sources import Candidate
from rdma_fabric.findings import BadValue
from rdma_fabric.hardware import Hardware
from rdma_fabric.inventory.ranges import check_node_name
from rdma_fabric.platforms._contract import INTRODUCE, Dialect, FoundPort, Introduction
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import Failure, TransportError
from rdma_fabric.transport.fleet import on_each
from rdma_fabric.transport.session import Session, open_session
from rdma_fabric.transport.targets import Target

ANYBODY: Final = Dialect("generic", "", status=True)
"""Every command is an exec request of its own, which both shells and switch CLIs answer."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A node as it introduces itself."""

    candidate: Candidate
    name: str
    platform: str
    model: str
    version: str
    ports: tuple[FoundPort, ...]
    """Ports with a device behind them, or of switches those with a neighbour."""


def survey(
    candidates: Iterable[Candidate], known_hosts: Iterable[Path], secrets: Secrets, *, workers: int
) -> dict[str, Surveyed | Failure]:
    """Address (with its port) -> what answers there, or why nothing does."""
    by_label = {label(one): one for one in candidates}
    known = tuple(known_hosts)
    targets = {name: _target(name, one, known) for name, one in by_label.items()}

    def look(target: Target) -> Surveyed:
        return _look(by_label[target.name], target, secrets)

    return on_each(by_label, targets, look, secrets, workers=workers)


def label(one: Candidate) -> str:
    """What a candidate is called before its name is known."""
    return one.name or (one.address if one.port == 22 else f"{one.address}:{one.port}")


def _target(name: str, one: Candidate, known: tuple[Path, ...]) -> Target:
    keys = (one.key_file,) if one.key_file else ()
    return Target(name, one.address, one.port, one.username, keys, known)


def _look(candidate: Candidate, target: Target, secrets: Secrets) -> Surveyed:
    key, name = candidate.platform, candidate.name
    ports: tuple[FoundPort, ...] = ()
    introduced = platforms.platform(key).traits.introduction if key else None
    if not key or not name or (introduced and introduced.ports):
        with open_session(target, ANYBODY, secrets) as session:
            if not key:
                key = _recognise(session)
                introduced = platforms.platform(key).traits.introduction
            if introduced is not None:
                name = name or _own_name(session, introduced)
                if introduced.read is not None:
                    ports = introduced.read(session.run(introduced.ports).text)
    if not name:
        raise TransportError("refused", "it does not tell its name: give it in the list")
    hardware = Hardware((key,))
    with open_session(target, platforms.platform(key).dialect, secrets) as session:
        seen = platforms.parse(session.ask(platforms.questions(hardware)), hardware)
    facts = dict(seen.facts)
    if introduced is None or introduced.read is None:
        ports = tuple(FoundPort(local, neighbour=(system, port)) for local, system, port in seen.neighbours)
    return Surveyed(
        replace(candidate, name=name), name, key, facts.get("model", ""), facts.get("version", ""), ports
    )


def _recognise(session: Session) -> str:
    answers = [session.run(line).text for line in INTRODUCE]
    for key in platforms.bases():
        introduced = platforms.platform(key).traits.introduction
        if introduced and any(re.search(introduced.known_by, text, re.MULTILINE) for text in answers):
            return key
    known = ", ".join(platforms.bases())
    raise TransportError("refused", f"its platform is not recognised: give it in the list, one of {known}")


def _own_name(session: Session, introduced: Introduction) -> str:
    command, pattern = introduced.name
    found = re.search(pattern, session.run(command).text, re.MULTILINE)
    name = found[1].split(".")[0] if found else ""
    try:
        return check_node_name(name) if name else ""
    except BadValue as error:
        raise TransportError("refused", f"its name is not usable: {error.text}") from None


# -- cables


@dataclass(frozen=True, slots=True)
class Cabling:
    """Cables between nodes that were read, and what LLDP says beyond that."""

    links: tuple[tuple[str, str, str, str], ...]
    """(node, port, node, port), in natural order."""
    notes: tuple[str, ...]


def cabling(nodes: Mapping[str, Surveyed]) -> Cabling:
    """Joins what both ends say; an end that speaks no LLDP is believed to be where the other says."""
    told = _Claims(nodes)
    links: dict[frozenset[tuple[str, str]], tuple[str, str, str, str]] = {}
    ends: dict[tuple[str, str], tuple[str, str]] = {}
    notes: list[str] = []
    for name, node in nodes.items():
        for port in node.ports:
            far = told.far_end(name, port)
            if far is None:
                if port.neighbour[0]:
                    notes.append(f"{name} {port.name}: its neighbour {port.neighbour[0]} is not adopted")
                continue
            near = (name, port.name)
            for a, b in ((near, far), (far, near)):
                if ends.setdefault(a, b) != b:
                    notes.append(
                        f"{a[0]} {a[1]}: LLDP names both {ends[a][0]} {ends[a][1]} and {b[0]} {b[1]}"
                    )
            links.setdefault(frozenset((near, far)), (*near, *far))
    return Cabling(tuple(links.values()), tuple(dict.fromkeys(notes)))


class _Claims:
    def __init__(self, nodes: Mapping[str, Surveyed]) -> None:
        self.nodes = nodes
        self.short = {name.split(".")[0].lower(): name for name in nodes}
        self.macs = {
            port.mac: (name, port.name) for name, one in nodes.items() for port in one.ports if port.mac
        }

    def node(self, system: str) -> str:
        return self.short.get(system.split(".")[0].lower(), "")

    def far_end(self, name: str, port: FoundPort) -> tuple[str, str] | None:
        """The port at the other end, by its name, its MAC address, or by what it says of us itself."""
        system, there = port.neighbour
        if there.lower() in self.macs:
            return self.macs[there.lower()]
        other = self.node(system)
        if not other:
            return None
        ports = {one.name: one for one in self.nodes[other].ports}
        if there in ports:
            return other, there
        back = [
            one.name
            for one in ports.values()
            if self.node(one.neighbour[0]) == name and one.neighbour[1] in (port.name, port.mac)
        ]
        if len(back) == 1:
            return other, back[0]
        return (other, there) if there and not ports else None
