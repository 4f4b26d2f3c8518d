"""The PFC watchdog may take congestion for a storm.

What it checks
    The detection time of every switch port with a watchdog, against ten times what its own buffer takes to
    drain at the speed of the port (buffer size of the ASIC; the hops behind it come on top).

Why it breaks RDMA
    A pause frame lasts for a fraction of a millisecond; longer pauses are refreshed ones, and a full buffer
    further down may refresh them for as long as it drains. A watchdog that is faster drops the packets of a
    fabric that is only busy.
    Source: IEEE 802.1Qbb (65535 quanta of 512 bits); buffer sizes in the ASIC table; the factor is ours.

Wrong
    pfc: {watchdog: {detect: 10ms}}      # a 25G port of a switch with 113 MB drains it in 36 ms

Right
    pfc: {watchdog: {detect: 400ms, restore: 800ms}}

When to waive it
    It is a note. Some jobs rather lose packets early than stand still.
"""

from collections.abc import Iterator
from typing import Final

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity

_FACTOR: Final = 10


def _check(node: NodeView) -> Iterator[Hit]:
    asic = node.hw.asic
    if node.is_host or asic is None or not asic.buffer_bytes:
        return
    for port in node.state.ports:
        facts = node.hw.port(port.name)
        detect = port.settings.qos.watchdog.detect_ms
        guarded = any(one.watchdog is True for one in port.settings.qos.classes)
        if facts is None or not facts.speed_gbps or not guarded or not isinstance(detect, int):
            continue
        drain_ms = asic.buffer_bytes * 8 / (facts.speed_gbps * 1e6)
        if detect < _FACTOR * drain_ms:
            yield Hit(
                setting=f"{port.name}|qos.watchdog.detect_ms",
                found=f"{detect} ms",
                wanted=f"at least {_FACTOR * drain_ms:.0f} ms at {facts.speed_gbps}G ({asic.name})",
                message="{where}: the watchdog may take congestion for a storm",
                help="detect later on slow ports, by an override (speed=25G)",
                rank=-1,
            )


RULE = NodeRule("FAB069", "watchdog-hasty", Severity.NOTE, "0.1", "buffers", _check, ports=True, plan=True)
