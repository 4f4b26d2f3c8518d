"""A few senders are enough to push a queue beyond its ECN ramp.

What it checks
    Ramps in bytes of every port speed, against the fluid model of DCQCN: from how many equal flows into one
    port the marking probability that they need is above `pmax`. A note where that is below 32 (four hosts
    with eight GPUs each). Step marking (kmin = kmax) and networks without DCQCN are left out. The model has
    the paper's timers (55 us, 10 MB) and increase (40 Mbit/s, or `dcqcn.rp.rpg_ai_rate`); firmware differs.

Why it breaks RDMA
    Where the ramp cannot mark enough, the queue grows to kmax, where everything is marked, all senders fall
    at once, and the queue swings between empty and PFC.
    Source: DCQCN paper (SIGCOMM 2015) and "ECN or Delay" (CoNEXT 2016, doi 10.1145/2999572.2999593), sections
    on the fixed point; solved for small probabilities, which is on the safe side.

Wrong
    ecn: {40G: {kmin: 5KB, kmax: 200KB, pmax: 1%}}

Right
    ecn: {40G: {kmin: 50KB, kmax: 400KB, pmax: 20%}}

When to waive it
    It is a note. Where the fabric was tuned by measurement, the measurement counts.
"""

from collections.abc import Iterator
from typing import Final

from rdma_fabric.checker.rules._common import ecn_tables
from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import EcnThresholds, Wishes

SENDERS: Final = 32
_TIMER_S: Final = 55e-6
"""Rate increase timer and alpha timer (DCQCN paper, table 14)."""
_COUNTER_BYTES: Final = 10e6
_INCREASE_MBPS: Final = 40


def probability(flows: int, gbps: int, packet: int, increase_mbps: float = _INCREASE_MBPS) -> float:
    """The share of packets that must be marked so that this many equal flows share a link."""
    rate = gbps * 1e9 / 8 / packet
    increase = increase_mbps * 1e6 / 8 / packet
    balance = packet / _COUNTER_BYTES + flows / (_TIMER_S * rate)
    return float((increase * flows**2 * balance**2 / (_TIMER_S * rate**2)) ** (1 / 3))


def _check(intent: IntentView) -> Iterator[Hit]:
    wishes = intent.wishes
    if wishes.dcqcn is None or not wishes.dcqcn.enabled:
        return
    for path, table in ecn_tables(wishes):
        for gbps in intent.speeds_gbps:
            row = table.at(gbps)
            if row is None or not _has_ramp(row):
                continue
            fit = _most(wishes, gbps, row.pmax.value / 100)
            if fit < SENDERS:
                speed = f"{gbps}G" if f"{gbps}G" in table.root else "any"
                yield Hit(
                    setting="ECN pmax",
                    found=f"pmax {row.pmax} at {gbps}G",
                    wanted=f"a ramp for {SENDERS} senders",
                    message=f"{{where}}: more than {fit} senders into a {gbps}G port take it past kmax",
                    help="raise pmax",
                    path=(*path, speed, "pmax"),
                )


def _has_ramp(row: EcnThresholds) -> bool:
    sizes = row.kmin, row.kmax
    return row.mode == "set" and None not in sizes and row.kmin != row.kmax


def _most(wishes: Wishes, gbps: int, pmax: float) -> int:
    """The largest number of flows (at most SENDERS) that the ramp still holds."""
    parameters = wishes.dcqcn.rp if wishes.dcqcn else {}
    increase = parameters.get("rpg_ai_rate") or parameters.get("ai_rate") or _INCREASE_MBPS
    flows = range(1, SENDERS + 1)
    return max((n for n in flows if probability(n, gbps, wishes.rdma.mtu, increase) <= pmax), default=0)


RULE = IntentRule("FAB068", "ramp-left-early", Severity.NOTE, "0.1", "buffers", _check, plan=True)
