"""What the ports of a node have counted and what ails them: the same for simulators and for sandboxes.

Times are seconds of one clock. A counter is what it was, plus its rate times the seconds since a fault began.
Lean: tools in a sandbox load it at each start.
"""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

PER_PRIORITY = ("pfc-rx", "pfc-tx", "ecn", "drop")
"""Counters with a priority (`pfc-rx:3`): PFC frames received and sent, packets marked, lost on egress."""
PER_PORT = ("rx-discard", "tx-discard", "crc", "symbol", "fec-uncorrected")
"""Counters of a whole port."""
COUNTERS = (*(f"{name}:{priority}" for name in PER_PRIORITY for priority in range(8)), *PER_PORT)
# How much history a used and sound port shows at most; PFC and marks belong to the usual lossless priority.
_HISTORY = {
    **{f"{name}:3": 90_000 for name in ("pfc-rx", "pfc-tx", "ecn")},
    "drop:0": 900,
    "rx-discard": 300,
    "tx-discard": 300,
    "crc": 20,
    "symbol": 9,
    "fec-uncorrected": 4,
}


def history(node: str, port: str, name: str) -> int:
    """What a used port has counted before the lab began, the same in every lab."""
    most = _HISTORY.get(name, 0)
    return 1 + zlib.crc32(f"{node} {port} {name}".encode()) % most if most else 0


class Health:
    """Counters and ailments of one node's ports. `worn`: the counters start with a history, not at 0."""

    def __init__(self, node: str = "", clock: Callable[[], float] = lambda: 0.0, worn: bool = False) -> None:
        self.node, self.clock, self.worn = node, clock, worn
        self.rates: dict[str, dict[str, list[float]]] = {}
        """Port -> counter -> counted by faults so far, rate per second, since when."""
        self.speeds: dict[str, int] = {}
        """Port -> Gbit/s that the link came up with, where it is not the planned speed."""
        self.active_mtus: dict[str, int] = {}
        """Port of a host -> RDMA MTU in bytes, where it is not what the netdev's MTU gives."""
        self.blackholes: dict[str, int] = {}
        """Port -> largest IP packet in bytes that passes; larger ones are lost without a word."""

    def count(self, port: str, name: str) -> int:
        """Value of a counter now."""
        base = history(self.node, port, name) if self.worn else 0
        counted, rate, since = self.rates.get(port, {}).get(name, (0.0, 0.0, 0.0))
        return base + int(counted + rate * max(0.0, self.clock() - since))

    def total(self, port: str, name: str) -> int:
        """Sum over all priorities of a counter such as `pfc-rx`."""
        return sum(self.count(port, f"{name}:{priority}") for priority in range(8))

    def rate(self, port: str, name: str) -> float:
        """How much a counter grows per second."""
        return self.rates.get(port, {}).get(name, (0.0, 0.0, 0.0))[1]

    def grow(self, port: str, name: str, rate: float) -> None:
        """From now on the counter grows by `rate` per second; 0 ends it, and the counter stays as it is."""
        now = self.clock()
        counted, old, since = self.rates.get(port, {}).get(name, (0.0, 0.0, now))
        self.rates.setdefault(port, {})[name] = [counted + old * max(0.0, now - since), rate, now]

    def gbps(self, port: str, planned: int) -> int:
        """Speed that the link came up with."""
        return self.speeds.get(port, planned)

    def settle(self) -> None:
        """Every counter stays as it is."""
        for port, counters in self.rates.items():
            for name in counters:
                self.grow(port, name, 0.0)

    def restart(self) -> None:
        """The device was switched off and on: counters start at 0, what is broken goes on."""
        self.worn = False
        for counters in self.rates.values():
            for name, (_, rate, _) in counters.items():
                counters[name] = [0.0, rate, self.clock()]

    def to_json(self, behind: float = 0.0) -> dict[str, Any]:
        """All of it as JSON data; `behind`: seconds to add for a reader whose clock is ahead of ours."""
        rates = {
            port: {name: [counted, rate, since + behind] for name, (counted, rate, since) in counters.items()}
            for port, counters in self.rates.items()
        }
        more = {"speeds": self.speeds, "active_mtus": self.active_mtus, "blackholes": self.blackholes}
        return {"node": self.node, "worn": self.worn, "rates": rates, **more}

    def load(self, data: Mapping[str, Any]) -> None:
        """Take back what `to_json` gave."""
        self.node, self.worn = data["node"], data["worn"]
        self.rates = {port: dict(counters) for port, counters in data["rates"].items()}
        self.speeds, self.active_mtus = dict(data["speeds"]), dict(data["active_mtus"])
        self.blackholes = dict(data["blackholes"])


def main(name: str, arguments: list[str]) -> int:
    """`fabric-health`: the lab has written anew; files that hold a speed follow."""
    from . import sysfs

    sysfs.speeds()
    return 0


def here() -> Health:
    """The health of this sandbox's ports, as the lab has written it; sound and new where it has not."""
    import json
    import time

    from . import store

    found = Health(clock=time.monotonic)
    text = store.slurp(store.HEALTH)
    if text:
        found.load(json.loads(text))
    return found
