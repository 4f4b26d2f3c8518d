"""LLDP shows another neighbour than the cable plan.

What it checks
    What observed nodes learned by LLDP about the far end of their ports, against cables.csv: another node of
    the inventory, another port of the right one, two cables that are swapped (told once, with all ends that
    show it), a cable between two ports of the fabric that the plan does not have (warning), and a planned
    cable of which neither end sees a neighbour although both see others (warning). Where rails are numbered
    it says when the cable crosses them. A name that no node has is a note, since a device may call itself
    otherwise; a node that shows no neighbour at all says nothing.

Why it breaks RDMA
    Everything that is computed from the plan is then wrong for this cable: headroom, rails, the order and
    the drained hosts of a rollout. A swapped pair of cables also crosses rails.
    Source: IEEE 802.1AB (what LLDP tells of the far end); experience (two swapped cables look sound apart).

Wrong
    leaf01# show lldp neighbors: Ethernet1/1 gpu02 eth0      # planned: gpu01 eth0

Right
    leaf01# show lldp neighbors: Ethernet1/1 gpu01 eth0

When to waive it
    While cables are moved and the plan is corrected afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.types import End, Link, Port

SETTING = "LLDP neighbour"
_HELP = "correct the cable, or the cable plan"


@dataclass(frozen=True, slots=True)
class _Claim:
    """What one port shows; `node` is "" for a system that no node is called after."""

    node: str
    system: str
    port: str

    def __str__(self) -> str:
        return f"{self.node or self.system} {self.port}".strip()


def _check(judged: Judged) -> Iterator[Hit]:
    claims = _claims(judged)
    if not claims:
        return
    cables = judged.inventory.peers()
    speaking = {at.node for at, one in claims.items() if one.node and at in cables}
    wrong = {at: one for at, one in claims.items() if at in cables and not _right(judged, cables[at][0], one)}
    told: set[Link] = set()
    for at in wrong:
        _, link = cables[at]
        if link not in told:
            other = _swapped(judged, at, wrong, cables)
            told |= {link} if other is None else {link, other}
            yield from _wrong(judged, link, wrong) if other is None else [_pair(judged, link, other, wrong)]
    yield from _unplanned(judged, claims, cables)
    yield from _missing(judged, claims, speaking)


def _claims(judged: Judged) -> dict[End, _Claim]:
    """Ports in a network -> what LLDP shows there."""
    nodes = {_plain(name): name for name in judged.inventory.nodes}
    return {
        End(name, port): _Claim(nodes.get(_plain(system), ""), system, far)
        for name, seen in judged.observations.items()
        if name in judged.ports
        for port, system, far in seen.neighbours
        if port in judged.ports[name]
    }


def _plain(name: str) -> str:
    """Devices add their domain, and some change the case."""
    return name.partition(".")[0].lower()


def _far(judged: Judged, claim: _Claim) -> End | None:
    """The port that is meant; None where the node is not ours or the port is told in other words."""
    if not claim.node:
        return None
    ports = judged.inventory.nodes[claim.node].spec.ports
    names = {alias: one.name for one in ports.values() for alias in (one.name, one.alias) if alias}
    return End(claim.node, names[claim.port]) if claim.port in names else None


def _right(judged: Judged, planned: End, claim: _Claim) -> bool:
    far = _far(judged, claim)
    return claim.node == planned.node and (far is None or far == planned)


def _swapped(
    judged: Judged, at: End, wrong: dict[End, _Claim], cables: dict[End, tuple[End, Link]]
) -> Link | None:
    """The cable that changed places with that of `at`: two ends at least show it, and none denies it."""
    peer, link = cables[at]
    far = _far(judged, wrong[at])
    if far is None or far not in cables or cables[far][1] is link:
        return None
    there, other = cables[far]
    swapped = {at: far, far: at, peer: there, there: peer}
    shown = [end for end in swapped if end in wrong]
    agree = all(_far(judged, wrong[end]) == swapped[end] for end in shown)
    return other if agree and len(shown) > 1 else None


def _pair(judged: Judged, link: Link, other: Link, wrong: dict[End, _Claim]) -> Hit:
    ends = [end for end in (link.a, link.b, other.a, other.b) if end in wrong]
    crossed = next((text for end in ends if (text := _rails(judged, end, wrong[end]))), "")
    return Hit(
        setting=SETTING,
        found="; ".join(f"{end} sees {wrong[end]}" for end in ends),
        wanted=f"{link}; {other}",
        message=f"{{where}}: two cables are swapped: {link}, and {other}{crossed}",
        help=_HELP,
        position=link.position,
        places=tuple(Place(end.node, end.port) for end in ends),
    )


def _wrong(judged: Judged, link: Link, wrong: dict[End, _Claim]) -> Iterator[Hit]:
    """The ends of one planned cable, each with what it shows."""
    for at, peer in ((link.a, link.b), (link.b, link.a)):
        if at in wrong:
            crossed = _rails(judged, at, wrong[at])
            yield Hit(
                setting=SETTING,
                found=str(wrong[at]),
                wanted=str(peer),
                message=f"{{where}}: LLDP shows another neighbour than the cable plan{crossed}",
                help=_HELP,
                severity=None if wrong[at].node else Severity.NOTE,
                position=link.position,
                places=(Place(at.node, at.port),),
            )


def _rails(judged: Judged, at: End, claim: _Claim) -> str:
    """Says when the cable joins a host's port to a switch that the plan gives another rail."""
    far = _far(judged, claim)
    if far is None:
        return ""
    host, switch = (at, far) if judged.inventory.nodes[at.node].is_host else (far, at)
    rail = _port(judged, host).rail
    planned = {
        _port(judged, peer).rail
        for end, (peer, _) in judged.inventory.peers().items()
        if end.node == switch.node and judged.inventory.nodes[peer.node].is_host
    } - {""}
    if not rail or not planned or rail in planned:
        return ""
    return (
        f" and crosses rails: {host} is rail {rail}, {switch.node} is for rail {', '.join(sorted(planned))}"
    )


def _port(judged: Judged, end: End) -> Port:
    return judged.inventory.nodes[end.node].spec.ports[end.port]


def _unplanned(
    judged: Judged, claims: dict[End, _Claim], cables: dict[End, tuple[End, Link]]
) -> Iterator[Hit]:
    told: set[End] = set()
    for at, claim in claims.items():
        far = _far(judged, claim)
        if at in cables or far is None or far in cables or at in told:
            continue
        told |= {at, far}
        yield Hit(
            setting=SETTING,
            found=str(claim),
            wanted="no cable",
            message="{where}: LLDP shows a cable that the plan does not have",
            help="add it to cables.csv, or take it out",
            severity=Severity.WARNING,
            position=_port(judged, at).position,
            places=tuple(Place(end.node, end.port) for end in (at, far)),
        )


def _missing(judged: Judged, claims: dict[End, _Claim], speaking: set[str]) -> Iterator[Hit]:
    for link in judged.inventory.links:
        ends = (link.a, link.b)
        if {link.a.node, link.b.node} <= speaking and not any(end in claims for end in ends):
            if any(end.port not in judged.ports.get(end.node, {}) for end in ends):
                continue
            yield Hit(
                setting=SETTING,
                found="no neighbour",
                wanted=str(link),
                message="{where}: neither end of a planned cable sees a neighbour",
                help="plug the cable in, or see why the link is down",
                severity=Severity.WARNING,
                position=link.position,
                places=tuple(Place(end.node, end.port) for end in ends),
            )


RULE = FabricRule("FAB063", "neighbour-differs", Severity.ERROR, "0.1", "observed", _check)
