"""The shell questions of a Linux host. One line each: short enough for a terminal's line buffer (4096)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _linux_names as names
from rdma_fabric.platforms._linux_names import AGENTS, PATHS, Paths

_KEYS: Final = 1600
"""Characters of sysctl keys in one question."""
_PORTS: Final = 320
"""Characters of port names in one question."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that the questions may use."""

    paths: Paths = PATHS
    names: str = ""
    sysctl_keys: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    option_modules: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    agents: tuple[str, ...] = tuple(AGENTS)


@lru_cache(maxsize=4096)
def questions(hw: Hardware) -> tuple[str, ...]:
    """The node's files, live values (keys in as many questions as they need), ports and their managers."""
    node = Asked(
        modules=names.module_names(hw), option_modules=names.option_modules(hw), services=names.services(hw)
    )
    first, *more = [tuple(keys) for keys in _chunks(names.sysctl_keys(hw), _KEYS)]
    found = [
        host.question("linux/observe_system.sh.j2", node),
        host.question("linux/observe_live.sh.j2", replace(node, sysctl_keys=first)),
    ]
    found += [host.question("linux/observe_sysctl.sh.j2", Asked(sysctl_keys=keys)) for keys in more]
    for ports in _chunks((port.name for port in hw.ports), _PORTS):
        asked = Asked(names=" ".join(ports))
        found.append(host.question("linux/observe_ports.sh.j2", asked))
        found.append(host.question("linux/observe_managers.sh.j2", asked))
    return tuple(found)


def _chunks(words: Iterable[str], size: int) -> Iterator[list[str]]:
    """The words in lists that are not longer than `size` when joined by blanks."""
    chunk: list[str] = []
    for word in words:
        if chunk and sum(map(len, chunk)) + len(chunk) + len(word) > size:
            yield chunk
            chunk = []
        chunk.append(word)
    if chunk:
        yield chunk
