"""An ECN profile does not exist, or not for this port speed.

What it checks
    Every `profile: NAME` of an ECN table is a published source that `fabric` carries, and it has a ramp for
    the speeds of the switch ports that use it.

Why it breaks RDMA
    Thresholds are what DCQCN is tuned by. A name that means nothing would leave the device's default in
    place: often no marking at all. There is no silent default.
    Source: the table of published thresholds, data/thresholds.csv, names the document of each row.

Wrong
    ecn: {400G: {profile: best}}

Right
    ecn: {400G: {kmin: 600KB, kmax: 2400KB, pmax: 100%}}

When to waive it
    Never: write the numbers.
"""

from collections.abc import Iterator

from rdma_fabric import thresholds
from rdma_fabric.checker.rules._common import ecn_tables, some
from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity, did_you_mean
from rdma_fabric.intent.models import EcnThresholds


def _check(intent: IntentView) -> Iterator[Hit]:
    for path, table in ecn_tables(intent.wishes):
        for speed, row in table.root.items():
            if row.profile and (row.kmin is None or row.kmax is None):
                used = tuple(gbps for gbps in intent.speeds_gbps if table.at(gbps) is row)
                yield from _row(row, speed, (*path, speed, "profile"), used)


def _row(row: EcnThresholds, speed: str, path: tuple[str, ...], used: tuple[int, ...]) -> Iterator[Hit]:
    names = thresholds.names()
    if row.profile not in names:
        near = did_you_mean(row.profile, names)
        yield _hit(row, path, f"one of {some(names)}", f"did you mean {near}?" if near else "")
        return
    missing = [f"{gbps}G" for gbps in used if thresholds.find(row.profile, gbps) is None]
    if missing:
        yield _hit(row, path, f"a profile with a ramp for {', '.join(missing)}", "")


def _hit(row: EcnThresholds, path: tuple[str, ...], wanted: str, help: str) -> Hit:
    return Hit(
        setting="ECN profile",
        found=row.profile,
        wanted=wanted,
        message=f"{{where}}: the ECN profile {row.profile} gives no ramp",
        help=help or "write kmin, kmax and pmax themselves",
        path=path,
    )


RULE = IntentRule("FAB019", "profile-unknown", Severity.ERROR, "0.1", "intent", _check, plan=True)
