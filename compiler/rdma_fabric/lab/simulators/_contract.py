"""What the lab's SSH listener asks of a simulated switch.

A simulator is a pure, synchronous state machine: text in, text out, time from the given clock.
The listener owns sockets, SSH, echo, and the breaks that work on whole lines (refuse, ignore,
drop, hold); a simulator owns its grammar, its configuration trees and its error texts.
Simulators are written from the vendor facts, never from this project's templates or parsers, and
must refuse what the real device would refuse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.lab.hosttools.health import Health

Clock = Callable[[], float]
"""Seconds, monotonic; tests pass a clock that they move by hand."""


@dataclass(frozen=True, slots=True)
class PortFact:
    """One port of the simulated device, as the inventory plans it."""

    name: str
    speed_gbps: int = 0
    lanes: str = ""
    alias: str = ""
    index: int = 0
    peer_node: str = ""
    peer_port: str = ""
    up: bool = True


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the device is; `seed` holds foreign configuration lines in the device's own format."""

    name: str
    platform: str
    model: str = ""
    version: str = ""
    ports: tuple[PortFact, ...] = ()
    seed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer to one interactive line; `close` ends the session after the text was sent."""

    text: str = ""
    close: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """Answer to one command on an exec channel."""

    stdout: str = ""
    stderr: str = ""
    status: int = 0


@dataclass(frozen=True, slots=True)
class Passage:
    """What a port lets through, in bytes of whole IP packets; 0 = no limit that is known.

    `takes` from the wire and `sends` to it; `answers`: a layer-3 port, which tells a sender that its packet
    is too large (or fragments it) where a layer-2 port loses it; `hole`: larger ones are lost without a word.
    """

    up: bool = True
    takes: int = 0
    sends: int = 0
    answers: bool = False
    address: str = ""
    hole: int = 0


class Session(ABC):
    """One login. The listener sends `banner`, then `prompt()`, then one `run` per line typed."""

    banner: str = ""
    echo: bool = True

    @abstractmethod
    def prompt(self) -> str:
        """The prompt as the device prints it now, without a leading newline."""

    @abstractmethod
    def run(self, line: str) -> Reply:
        """Execute one typed line (without its newline); text uses "\\n" line ends."""

    def secret(self) -> bool:
        """True while the device waits for a password: the listener must not echo."""
        return False

    def closed(self) -> None:
        """The connection is gone (also when it was cut): release locks the device would release."""
        return


@dataclass
class Device(ABC):
    """One simulated switch. All state must fit in `dump()` so that a lab survives a restart."""

    facts: DeviceFacts
    clock: Clock
    files: dict[str, bytes] = field(default_factory=dict)
    """Files by absolute path, served and filled by SFTP where the platform has a shell."""
    health: Health = field(default_factory=Health)
    """What the ports have counted and what ails them; the lab sets it, a device alone is sound and new."""

    @abstractmethod
    def open(self, user: str) -> Session:
        """A new interactive session."""

    @abstractmethod
    def execute(self, user: str, command: str) -> Result:
        """One command on an exec channel."""

    @abstractmethod
    def tick(self) -> None:
        """Let timers that are due fire (commit timers, detached jobs). Called often."""

    def passage(self, port: str) -> Passage:
        """What a port lets through by its running configuration; black holes are the lab's business."""
        return Passage()

    @abstractmethod
    def reboot(self) -> None:
        """Lose what was not saved, drop pending candidates and timers, come back up."""

    @abstractmethod
    def refusal(self, line: str) -> str:
        """The device's own error text for a line that it does not accept."""

    @abstractmethod
    def commits(self, line: str) -> bool:
        """True for the line that makes a candidate live (where the break `hold` stops)."""

    @abstractmethod
    def somebody(self, lines: tuple[str, ...]) -> str:
        """Another administrator changes the running configuration by these lines; returns output.

        Lines are typed as a person would on this device, from exec mode or the shell, and take
        effect at once (entering and leaving configuration mode is part of the lines).
        """

    @abstractmethod
    def running(self) -> str:
        """The whole running configuration as text, for assertions that nothing foreign moved."""

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """All state as JSON data (running, startup, candidates, checkpoints, timers, counters)."""

    @abstractmethod
    def restore(self, data: Mapping[str, Any]) -> None:
        """Take back what `dump` gave."""
