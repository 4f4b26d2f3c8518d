"""The PFC watchdog guards other priorities than PFC pauses.

What it checks
    Where the intent asks for a watchdog: the priorities that it guards are those with PFC.

Why it breaks RDMA
    A storm on an unguarded lossless priority stops everything behind it for as long as it lasts. A watchdog
    on a lossy priority does nothing but look reassuring.
    Source: SONiC swss issue 842; SONiC buildimage pull 689.

Wrong
    PFC on priorities 3 and 4, watchdog on 0 and 1

Right
    pfc: {watchdog: {detect: 200ms, restore: 400ms}}, which guards every lossless priority

When to waive it
    Never: switch the watchdog off in the intent if it is not wanted.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import paused
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of, ranges
from rdma_fabric.state import UNKNOWN, NotJudged, QosState


def _check(port: PortView) -> Iterator[Hit]:
    wished = {one.watchdog for one in port.wanted.qos.classes}
    if True not in wished:
        return
    guarded = _guarded(port.state.qos)
    if guarded in (paused(port.state.qos), _guarded(port.wanted.qos)):
        return
    yield Hit(
        setting="qos.guarded",
        found=group_of("qos.guarded").show(port.state),
        wanted=ranges(_guarded(port.wanted.qos)),
        message="{where}: the watchdog guards other priorities than PFC pauses",
        reason="it guards queues that are not lossless, or misses those that are",
        help="let the watchdog guard every lossless priority, and nothing else",
        rank=20,
    )


def _guarded(qos: QosState) -> frozenset[int]:
    if any(one.watchdog is UNKNOWN for one in qos.classes):
        raise NotJudged(UNKNOWN, "watchdog priorities")
    return frozenset(priority for priority, one in enumerate(qos.classes) if one.watchdog is True)


RULE = PortRule("FAB034", "watchdog-priorities", Severity.ERROR, "0.1", "pfc", _check)
