"""One end of a cable pauses a priority that the other end does not stop.

What it checks
    The priorities for which one end sends pause are among those that the other end obeys, in both
    directions. Sets are compared, not spellings; a host that only receives pause is legal.

Why it breaks RDMA
    A pause that nobody obeys is no pause: the buffer overflows and the lossless class drops. RDMA then
    retries whole messages, and throughput falls to a fraction.
    Source: IEEE 802.1Qbb; SONiC mgmt issue 17298; NVIDIA/nccl issue 2383.

Wrong
    overrides:
      - {where: "role=host", set: {classes.roce.priority: 5}}

Right
    classes:
      roce: {priority: 3, dscp: [26], lossless: true}

When to waive it
    For a cable on which no lossless traffic runs.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import obeyers, senders
from rdma_fabric.checker.scopes import Hit, LinkFacts, LinkRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of, ranges


def _check(a: PortView, b: PortView, facts: LinkFacts) -> Iterator[Hit]:
    lost = (senders(a.assumed.qos) - obeyers(b.assumed.qos)) | (
        senders(b.assumed.qos) - obeyers(a.assumed.qos)
    )
    if not lost:
        return
    paused = f"priority {ranges(lost)} is" if len(lost) == 1 else f"priorities {ranges(lost)} are"
    show = group_of("qos.pfc").show
    yield Hit(
        setting="qos.pfc",
        found=show(a.assumed),
        wanted=show(b.assumed),
        message=f"{{where}}: {paused} paused at one end of the cable only",
        help="give both ends the same PFC priorities",
        rank=20,
    )


RULE = LinkRule("FAB028", "pfc-differs", Severity.ERROR, "0.1", "pfc", _check)
