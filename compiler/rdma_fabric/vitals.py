"""What a node shows of its health at one moment: counters, addresses, lanes of its links.

Every platform that can be asked fills these types from device output; what a device does not show is
simply not there, never 0. Two of them with some seconds between are what `health` judges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal[
    "pause-rx", "pause-tx", "storms", "marks", "waits", "drops", "discards",
    "errors", "crc", "symbol", "fec", "down", "retries",
]  # fmt: skip
"""
pause-rx, pause-tx   PFC pause frames received and sent
storms               times that a watchdog found a queue stopped by pause
marks                packets that got an ECN mark (switch) or came with one (host)
waits                ticks that an InfiniBand port had data and no credit
drops                packets dropped in one class
discards             packets discarded on the port, whatever their class
errors, crc, symbol  frames received with any error, with a bad checksum; symbols that stayed wrong
fec                  codewords that FEC could not correct
down                 times that the link went down
retries              RDMA packets sent anew or received out of order
"""

ETHERNET: Final[tuple[Kind, ...]] = (
    "pause-rx", "pause-tx", "marks", "drops", "discards", "crc", "symbol", "fec",
)  # fmt: skip
"""Kinds that matter on a port of a RoCE network: one that is not shown is said to be not judged."""
INFINIBAND: Final[tuple[Kind, ...]] = ("errors", "symbol", "discards", "down")


@dataclass(frozen=True, slots=True)
class Count:
    """One counter of one port."""

    port: str
    kind: Kind
    value: int
    name: str
    """What the device calls it."""
    priority: int = -1
    """PFC priority; -1 where the counter is not of one."""
    queue: int = -1
    """Egress queue of the platform where the counter is of one; the state says which priority it serves."""
    ceiling: int = 0
    """Where it stops counting; 0 where it goes on."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """One node at one moment."""

    counts: tuple[Count, ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()
    """(port, IP address of its own that reaches beyond the link)."""
    lanes: tuple[tuple[str, int], ...] = ()
    """(InfiniBand port, lanes in use)."""

    def over(self, below: Vitals) -> Vitals:
        """Both; where the same kind is counted on the same port, this one's counters are taken."""
        own = {(one.port, one.kind) for one in self.counts}
        kept = tuple(one for one in below.counts if (one.port, one.kind) not in own)
        return Vitals(
            (*kept, *self.counts),
            tuple(dict.fromkeys((*below.addresses, *self.addresses))),
            tuple(dict.fromkeys((*below.lanes, *self.lanes))),
        )


def joined(parts: Iterable[Vitals]) -> Vitals:
    """All parts of a node; a later one knows its ports better."""
    found = Vitals()
    for part in parts:
        found = part.over(found)
    return found


@dataclass(frozen=True, slots=True)
class Ping:
    """A test of one path: packets of `size` bytes (IP header included) that nobody may split."""

    port: str
    address: str
    size: int
    tos: int = 0

    @property
    def payload(self) -> int:
        """Bytes behind the ICMP header (8 bytes) and that of IPv4 (20) or IPv6 (40)."""
        return self.size - (48 if ":" in self.address else 28)


@dataclass(frozen=True, slots=True)
class Pong:
    """What came back. `small` is asked only where no large packet came."""

    large: bool
    small: bool = False
    mtu: int = 0
    """That the host's own kernel, or a router, named as the limit; 0 for none."""
    trouble: str = ""
    """Why the test itself could not be made."""


@dataclass(frozen=True, slots=True)
class Load:
    """One end of a bandwidth test between two RDMA devices."""

    port: str
    device: str
    """RDMA device; "" leaves the choice to the program."""
    tcp: int
    """TCP port over which the two programs find each other."""
    seconds: int
    to: str = ""
    """Address of the other end; "" waits for it."""
    gid: int = -1
    """Index of the GID to use; -1 for none."""
    tos: int = -1
    """ToS byte that the program has to ask for; -1 where the NIC marks by itself."""
    cm: bool = False
    """Connect by RDMA-CM, whose own ToS counts."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of it: a number, or why there is none."""

    value: float = 0.0
    failed: str = ""
    """The program ran and failed."""
    trouble: str = ""
    """It could not be run."""
