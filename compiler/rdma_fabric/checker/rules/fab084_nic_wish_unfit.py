"""What the intent asks of a NIC does not fit the rest of it, or the card.

What it checks
    Non-volatile settings that work against the classes (another CNP DSCP, DCQCN off on a lossless priority);
    kinds of NIC in `hosts.nv`, `hosts.firmware` and `hosts.drivers` that do not exist, or whose settings
    nobody writes. On observed ports: the card's link type, now and after its next reset, is that of the
    network.

Why it breaks RDMA
    Such a wish is carried out, or ignored, and looks right in the file: CNPs leave with a DSCP that switches
    treat as best effort, or after the next reboot the port is an InfiniBand port and gone.
    Source: NVIDIA mlxconfig (LINK_TYPE, CNP_DSCP, ROCE_CC_PRIO_MASK); the NIC configuration operator's
    default CNP DSCP of 4.

Wrong
    classes: {cnp: {priority: 6, dscp: [48]}}
    CNP_DSCP: 4 in hosts.nv

Right
    CNP_DSCP: 48 in hosts.nv

When to waive it
    While switches and cards are moved to another CNP DSCP.
"""

from collections.abc import Iterator, Mapping

from rdma_fabric import platforms
from rdma_fabric.checker.blame import setting_key
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import Wishes
from rdma_fabric.settings import group_of
from rdma_fabric.state import NodeState

_LINKS = {"rocev2": "ethernet", "infiniband": "infiniband"}


def _check(node: NodeView) -> Iterator[Hit]:
    if not node.is_host:
        return
    yield from _contradictions(node)
    for wishes in {id(one): one for one in (node.wishes, *node.port_wishes.values())}.values():
        yield from _names(wishes)
    if node.observed:
        yield from _links(node, node.state, "now")
        if node.stored is not None:
            yield from _links(node, node.stored, "after its next reset")


def _contradictions(node: NodeView) -> Iterator[Hit]:
    for fault in node.faults:
        if fault.contradicts:
            key = setting_key(fault.setting) or fault.setting
            yield Hit(
                setting=f"{fault.port}|{key}",
                found=fault.wanted,
                wanted=fault.used,
                message=f"{{where}}: {group_of(key).title} {fault.wanted}: {fault.reason}",
                help=fault.help,
                severity=fault.severity,
            )


def _names(wishes: Wishes) -> Iterator[Hit]:
    hosts = wishes.hosts
    kinds = set(platforms.nics())
    written = {one for one in kinds if platforms.platform(f"nic_{one}").traits.nv}
    tables: tuple[tuple[str, Mapping[str, object], set[str]], ...] = (
        ("hosts.nv", hosts.nv, written),
        ("hosts.firmware", hosts.firmware, kinds),
        ("hosts.drivers", hosts.drivers, kinds),
    )
    for key, table, legal in tables:
        for kind in sorted(set(table) - legal):
            yield Hit(
                setting=f"{key}.{kind}",
                found=kind,
                wanted=f"one of {', '.join(sorted(legal))}",
                message=f"{{where}}: {key}: no NIC of kind {kind} takes it",
                help=f"correct {key}.{kind}, or remove it",
            )


def _links(node: NodeView, state: NodeState, when: str) -> Iterator[Hit]:
    for port in state.ports:
        wanted = _LINKS[node.port_wishes[port.name].rdma.transport]
        found = port.settings.nic.link
        if isinstance(found, str) and found != wanted:
            yield Hit(
                setting=f"{port.name}|nic.link",
                found=f"{found} {when}",
                wanted=wanted,
                message=f"{{where}}: its card is set to {found}",
                help="set the card's link type by the vendor's tool and reset it, or correct the network",
                rank=1 if when == "now" else 0,
            )


RULE = NodeRule("FAB084", "nic-wish-unfit", Severity.ERROR, "0.1", "capability", _check, plan=True)
