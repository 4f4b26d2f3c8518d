"""The PFC watchdog's times are in the wrong order.

What it checks
    Polling is not slower than detection and restoration (error), and restoration is not shorter than
    detection (warning).

Why it breaks RDMA
    A watchdog that looks less often than it should detect cannot keep its promise, and devices refuse or
    change such values. One that restores faster than it detects lets a stuck queue flap: the storm is let
    in again before it could be seen.
    Source: SONiC YANG model of the PFC watchdog, and its CLI (restoration is twice detection by default).

Wrong
    pfc: {watchdog: {detect: 200ms, restore: 100ms, poll: 400ms}}

Right
    pfc: {watchdog: {detect: 200ms, restore: 400ms, poll: 100ms}}

When to waive it
    Never for the polling interval; a short restoration time is your choice.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import WatchdogWish


def _check(intent: IntentView) -> Iterator[Hit]:
    pfc = intent.wishes.pfc
    if pfc is None or pfc.watchdog is None or pfc.watchdog.mode != "set":
        return
    yield from _order(pfc.watchdog)


def _order(wish: WatchdogWish) -> Iterator[Hit]:
    for name in ("detect", "restore"):
        limit = getattr(wish, name)
        if wish.poll is not None and limit is not None and wish.poll.microseconds > limit.microseconds:
            yield Hit(
                setting="watchdog times",
                found=f"poll {wish.poll}, {name} {limit}",
                wanted=f"poll at most {limit}",
                message=f"{{where}}: the watchdog polls less often than it should {name}",
                help=f"set poll to {limit} or less, or leave it out",
                path=("pfc", "watchdog", "poll"),
                explains=("qos.watchdog.*",),
            )
            return
    detect, restore = wish.detect, wish.restore
    if detect is not None and restore is not None and restore.microseconds < detect.microseconds:
        yield Hit(
            setting="watchdog times",
            found=f"restore {restore}, detect {detect}",
            wanted=f"restore at least {detect}",
            message="{where}: the watchdog restores faster than it detects",
            help=f"set restore to {detect} or more (twice the detection time is usual)",
            severity=Severity.WARNING,
            path=("pfc", "watchdog", "restore"),
        )


RULE = IntentRule("FAB017", "watchdog-order", Severity.ERROR, "0.1", "intent", _check, plan=True)
