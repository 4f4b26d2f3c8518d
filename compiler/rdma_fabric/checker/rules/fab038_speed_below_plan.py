"""A link came up slower than planned.

What it checks
    The negotiated speed of observed ports against the lower one of both ends' planned speeds.

Why it breaks RDMA
    The slow rail holds up every collective, and thresholds and headroom that were chosen for the planned
    speed do not fit. Usual causes are a bad cable, missing FEC or lanes, or a breakout on one end.
    Source: SONiC and NVIDIA operation guides (auto-negotiation falls back to a common speed).

Wrong
    eth2 at 200G where the inventory says 400G

Right
    the cable or transceiver replaced, or the inventory corrected: {"eth2": {speed: 200G}}

When to waive it
    While a replacement part is on its way.
"""

from collections.abc import Iterator
from typing import Literal

from rdma_fabric.checker.scopes import Hit, LinkFacts, LinkRule, PortView
from rdma_fabric.findings import Severity


def _check(a: PortView, b: PortView, facts: LinkFacts) -> Iterator[Hit]:
    planned = min(filter(None, (facts.a_speed_gbps, facts.b_speed_gbps)), default=0)
    slow = {"a": _slow(a, planned), "b": _slow(b, planned)}
    sides = [side for side, speed in slow.items() if speed]
    if not sides:
        return
    end: Literal["a", "b", "both"] = "both" if len(sides) == 2 else "a" if sides == ["a"] else "b"
    yield Hit(
        setting="speed",
        found=f"{slow[sides[0]]}G",
        wanted=f"{planned}G",
        message="{where}: the link is slower than planned",
        help="check the cable, the transceivers and FEC, or correct the speed in the inventory",
        end=end,
    )


def _slow(port: PortView, planned: int) -> int:
    """The negotiated speed when it is below plan, else 0; a link that is down has no speed."""
    speed = port.speed_gbps
    return speed if port.observed and isinstance(speed, int) and 0 < speed < planned else 0


RULE = LinkRule("FAB038", "speed-below-plan", Severity.WARNING, "0.1", "observed", _check)
