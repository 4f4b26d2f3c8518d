"""One end of a cable trusts DSCP, the other does not.

What it checks
    Whether a packet's DSCP decides its priority, on both ends of every cable. `both` counts as trusting
    DSCP.

Why it breaks RDMA
    RoCEv2 carries its class in the DSCP. A port that looks at 802.1p instead, or at nothing, puts every
    packet from that cable into its default priority: best effort, dropped under load.
    Source: SONiC QoS design (DSCP_TO_TC_MAP per port); Cumulus guide (layer 2 trust is the default).

Wrong
    overrides:
      - {where: "role=spine", set: {trust: pcp}}

Right
    trust: dscp

When to waive it
    For a cable on which all packets carry a VLAN tag and the other end maps 802.1p to the same classes.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import dscp_trusted
from rdma_fabric.checker.scopes import Hit, LinkFacts, LinkRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of
from rdma_fabric.state import NOT_APPLICABLE


def _check(a: PortView, b: PortView, facts: LinkFacts) -> Iterator[Hit]:
    if dscp_trusted(a.assumed.qos) == dscp_trusted(b.assumed.qos):
        return
    show = group_of("qos.trust").show
    maps = (a.assumed.qos.dscp_to_priority, b.assumed.qos.dscp_to_priority)
    yield Hit(
        setting="qos.trust",
        found=show(a.assumed),
        wanted=show(b.assumed),
        message="{where}: the ends of the cable trust different things",
        help="give both ends the same trust",
        rank=20,
        # Some ports have no map of a field that they do not trust.
        explains=("qos.dscp_to_priority",) if NOT_APPLICABLE in maps else (),
    )


RULE = LinkRule("FAB026", "trust-differs", Severity.ERROR, "0.1", "qos", _check)
