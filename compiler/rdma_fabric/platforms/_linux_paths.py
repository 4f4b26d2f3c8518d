"""Path MTU between hosts by `ping -M do`: large packets that nobody may split, small ones where none came.

Exit status of iputils' ping: 0 an answer, 1 none, 2 any other trouble (ping(8)). What a router or the
host's own kernel says of the limit is in its text ("mtu=1500", "mtu = 1500"). Packets carry the ToS of
RoCE (-Q), where ping takes it, so that they go through its queues. With an address as target ping asks no
name server (ping(8), -H).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.vitals import Ping, Pong

_AT_ONCE: Final = 16
"""Tests of one question: they run at the same time."""
_REFUSED: Final = re.compile(
    r"(?i)invalid option|unrecognized option|bad interface|unknown iface|usage:|permi"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Context of the question."""

    pings: tuple[Ping, ...]


def questions(pings: tuple[Ping, ...]) -> tuple[str, ...]:
    """One script for every 16 tests."""
    return tuple(
        host.question("linux/paths.sh.j2", Asked(pings[at : at + _AT_ONCE]))
        for at in range(0, len(pings), _AT_ONCE)
    )


def pongs(answers: Mapping[str, str], pings: tuple[Ping, ...]) -> tuple[Pong, ...]:
    """One for each test, in their order."""
    parts = host.sections("\n".join(answers.get(question, "") for question in questions(pings)))
    return tuple(_pong(parts.get(f"path {one.port} {one.address}", host.NOT_ASKED)) for one in pings)


def _pong(section: Section) -> Pong:
    if section.ok:
        return Pong(large=True, small=True)
    if not section.asked:
        return Pong(large=False, trouble="the host did not say what came of it")
    if section.status == 127:
        return Pong(large=False, trouble="the host has no ping")
    mtu = re.search(r"mtu ?= ?(\d+)", section.text)
    answered = section.text.rstrip().endswith("small=0")
    if not answered and not mtu and (odd := _REFUSED.search(section.text)):
        line = next((row for row in section.lines if odd[0] in row), odd[0])
        return Pong(large=False, trouble=f"ping could not be run: {line.strip()[:120]}")
    return Pong(large=False, small=answered, mtu=int(mtu[1]) if mtu else 0)
