"""What a reboot brings back is not what runs now.

What it checks
    The stored configuration of observed nodes against the intent and the running state. Stored right but
    live wrong is an error: the device holds the value and does not use it. Live right but not stored is a
    warning: the next reboot loses it.

Why it breaks RDMA
    A node that is right today and wrong after its next reboot fails long after the change that caused it.
    And a value that is stored but not in force makes every look into the configuration a lie.
    Source: SONiC buildimage issue 27017; SONiC swss pull 4525.

Wrong
    a VLAN interface with MTU 8996 in the stored configuration and 9100 in the kernel

Right
    stored and running configuration equal to the intent

When to waive it
    While a change is tried out and is to vanish at the next reboot.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import Deviation, deviations
from rdma_fabric.state import NodeState, differences


def _check(node: NodeView) -> Iterator[Hit]:
    if node.stored is None:
        return
    live, stored = _off(node, node.state), _off(node, node.stored)
    for key, one in live.items():
        if key not in stored and not one.unknown:
            yield _hit(one, f"operational {one.found} (stored {one.wanted})", live=True)
    for key, one in stored.items():
        if key not in live and not one.unknown:
            yield _hit(one, f"stored {one.found} (running {one.wanted})", live=False)


def _off(node: NodeView, state: NodeState) -> dict[tuple[str, str], Deviation]:
    found = deviations(differences(node.wanted, state), node.wanted, state)
    return {(one.port, one.key): one for one in found}


def _hit(one: Deviation, found: str, *, live: bool) -> Hit:
    return Hit(
        setting=f"{one.port}|{one.key}",
        found=found,
        wanted=one.wanted,
        message=f"{{where}}: {one.title}: "
        + ("stored as wanted, but not in force" if live else "in force as wanted, but not stored"),
        reason="stored and operational values differ",
        help="run `fabric apply` for this node" + ("" if live else ", which saves it"),
        severity=Severity.ERROR if live else Severity.WARNING,
        # A rule that says what the wrong value does to RDMA is told instead; the plain difference is not.
        rank=2 if live else 0,
    )


RULE = NodeRule("FAB049", "stored-differs", Severity.ERROR, "0.1", "observed", _check)
