"""The transport has no platform in this version.

What it checks
    `rdma.transport` of every network is one that this version can compile: rocev2.

Why it breaks RDMA
    InfiniBand needs a subnet manager, partitions and rates instead of DSCP, PFC and ECN. Rendering RoCE
    settings for it would give a fabric that looks configured and never comes up.
    Source: InfiniBand Architecture Specification, volume 1, chapter 14 (subnet management).

Wrong
    rdma: {transport: infiniband, mtu: 4096}

Right
    rdma: {transport: rocev2, mtu: 4096}

When to waive it
    Never: leave InfiniBand networks out of the intent until a version can compile them.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity


def _check(intent: IntentView) -> Iterator[Hit]:
    if intent.wishes.rdma.transport == "rocev2":
        return
    yield Hit(
        setting="RDMA transport",
        found=intent.wishes.rdma.transport,
        wanted="rocev2",
        message="{where}: this version has no InfiniBand platform",
        help="leave this network out of the intent, or use a version that lists an InfiniBand platform",
        path=("rdma", "transport"),
    )


RULE = IntentRule("FAB020", "transport-not-supported", Severity.ERROR, "0.1", "intent", _check, plan=True)
