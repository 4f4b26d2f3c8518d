"""Steps 2 to 5: what the first read shows of configuration, links, subnet managers and RDMA MTU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rdma_fabric.admit import LINK, UP
from rdma_fabric.drift import NodeDrift
from rdma_fabric.findings import Finding, Place, Severity
from rdma_fabric.health.types import Gaps, Judgement, Metric, Scene, finding, in_service
from rdma_fabric.inventory.subnets import Subnet
from rdma_fabric.inventory.types import End, Link
from rdma_fabric.state import UNKNOWN, SmState

_FROM_MANAGER = "ib."
"""Beginning of the keys of settings that a subnet manager gives to ports."""
_IN_BAND = ("ib.mode", "ib.children")
"""Those of them that a host sets itself."""


# ---------------------------------------------------------------- configuration


def config(scene: Scene, rows: Iterable[NodeDrift], managers: Judgement) -> Judgement:
    """Drift: equal deviations of several nodes are one finding. Not what follows from a lost manager."""
    gaps = Gaps("config")
    lost = {place.network for one in managers.findings for place in one.places if place.network}
    told = {place.node for one in managers.findings for place in one.places if place.node}
    found: dict[tuple[str, str, str, str, bool], list[Place]] = {}
    judged = 0
    for row in rows:
        if row.busy or row.skipped or row.failure:
            gaps.add("configuration", row.busy or row.skipped or "not read", Place(row.node))
            continue
        judged += 1
        for drift in row.drifts:
            one = drift.deviation
            if _follows(scene, row.node, one.port, one.key, lost, told):
                continue
            values = f"{one.found}{_later(drift.layer)}"
            key = (one.key, one.title, values, one.wanted, in_service(row.state))
            found.setdefault(key, []).append(Place(row.node, one.port))
        for one in row.unknown:
            gaps.add(one.title, "could not be read", Place(row.node, one.port))
    findings = tuple(_differs(scene, *key, places) for key, places in found.items())
    return Judgement("config", judged, findings, gaps.rows())


def _later(layer: str) -> str:
    return {"stored": " after a reboot", "pending": " until a reset of its device"}.get(layer, "")


def _follows(scene: Scene, node: str, port: str, key: str, lost: set[str], told: set[str]) -> bool:
    """True where step 4 has told it already: the manager itself, and what no port gets without one."""
    if not port:
        return key.startswith("sm.") and node in told
    spec = scene.inventory.nodes[node].spec.ports.get(port)
    given = key.startswith(_FROM_MANAGER) and key not in _IN_BAND
    return given and spec is not None and spec.network in lost


def _differs(
    scene: Scene, key: str, title: str, found: str, wanted: str, active: bool, places: list[Place]
) -> Finding:
    first = places[0]
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return finding(
        "not-as-intended",
        places,
        f"{first}{more}: {title} is not as intended",
        found=found,
        wanted=wanted,
        setting=key,
        help="`fabric diff` shows what `fabric apply` would do",
        position=scene.where(End(first.node, first.port)),
        active=active,
    )


# ---------------------------------------------------------------- links


def speed(scene: Scene) -> Judgement:
    """Both ends of every planned cable of the scope, where at least one was read."""
    gaps = Gaps("speed")
    findings: list[Finding] = []
    metrics: dict[str, Metric] = {}
    judged = 0
    asked = set(scene.names)
    for link in dict.fromkeys(link for _, link in scene.cables.values()):
        ends = [end for end in (link.a, link.b) if end.node in scene.observations]
        if not {link.a.node, link.b.node} & asked or not ends:
            continue
        known, down = _link(scene, ends, gaps, metrics)
        judged += bool(known or down)
        findings += _slow(scene, link, known) if not down else [_down(scene, link, down)]
    return Judgement("speed", judged, tuple(findings), gaps.rows(), metrics)


def _link(
    scene: Scene, ends: Iterable[End], gaps: Gaps, metrics: dict[str, Metric]
) -> tuple[dict[End, int], list[End]]:
    """(end -> its negotiated speed, ends that are down)."""
    known: dict[End, int] = {}
    down: list[End] = []
    for end in ends:
        seen = scene.observations[end.node]
        port = seen.running.port(end.port)
        found = port.speed_gbps if port else UNKNOWN
        if dict(seen.facts).get(f"{LINK}{end.port}", UP[0]) not in UP:
            down.append(end)
        elif isinstance(found, int) and found > 0:
            known[end] = found
            spec = scene.inventory.nodes[end.node].spec.ports.get(end.port)
            if spec is None or not spec.speed_gbps:  # with a plan, the plan is the mark
                metrics[f"{end} speed"] = Metric(float(found), "G", True, (Place(end.node, end.port),))
        else:
            why = "could not be read" if found is UNKNOWN else "a virtual port has none"
            gaps.add("speed", why, Place(end.node, end.port))
    return known, down


def _planned(scene: Scene, link: Link) -> int:
    """The lower one of both ends' speeds by the inventory; 0 where it has none."""
    ports = [scene.inventory.nodes[end.node].spec.ports.get(end.port) for end in (link.a, link.b)]
    return min((port.speed_gbps for port in ports if port and port.speed_gbps), default=0)


def _active(scene: Scene, link: Link) -> bool:
    return all(in_service(scene.inventory.nodes[end.node].spec.state) for end in (link.a, link.b))


def _slow(scene: Scene, link: Link, known: Mapping[End, int]) -> Iterator[Finding]:
    planned = _planned(scene, link)
    slow = {end: found for end, found in known.items() if found < planned}
    if not slow:
        return
    lanes = {end: _lanes(scene, end) for end in slow}
    shown = [f"{end}: {found}G{lanes[end]}" for end, found in slow.items()]
    ends = list(slow)
    peer = f"the other end, {({link.a, link.b} - set(ends)).pop()}" if len(ends) == 1 else ""
    yield finding(
        "link-slow",
        [Place(end.node, end.port) for end in ends],
        f"the link {link} is slower than planned",
        found="; ".join(shown),
        wanted=f"{planned}G",
        help="check cable, transceivers, FEC, lanes and breakout of both ends, or correct the inventory",
        peer=peer,
        position=scene.where(link.a),
        active=_active(scene, link),
    )


def _lanes(scene: Scene, end: End) -> str:
    sign = scene.first.get(end.node)
    lanes = dict(sign.vitals.lanes).get(end.port) if sign else None
    return f" ({lanes}X)" if lanes else ""


def _down(scene: Scene, link: Link, down: list[End]) -> Finding:
    return finding(
        "link-down",
        [Place(end.node, end.port) for end in down],
        f"the link {link} is down",
        found="; ".join(f"{end}: down" for end in down),
        wanted="up",
        help="check the cable, and whether one end is shut down",
        position=scene.where(link.a),
        active=_active(scene, link),
    )


# ---------------------------------------------------------------- subnet managers


def managers(scene: Scene) -> Judgement:
    """One master and a standby per subnet, as its own nodes tell."""
    gaps = Gaps("sm")
    findings: list[Finding] = []
    judged = 0
    for subnet in scene.judged.resolved.subnets.values():
        if not set(subnet.managers) & set(scene.names):
            if not subnet.managers:
                why = "the inventory has none of its managers"
                gaps.add("subnet manager", why, Place(network=subnet.network))
            continue
        seen = {
            name: scene.observations[name].running.system.sm
            for name in subnet.managers
            if name in scene.observations
        }
        blind = [name for name, sm in seen.items() if sm.running is UNKNOWN and sm.role is UNKNOWN]
        for name in (*blind, *(name for name in subnet.managers if name not in seen)):
            gaps.add("subnet manager", "could not be read", Place(name))
        judged += bool(len(seen) > len(blind))
        findings += _subnet(scene, subnet, seen, complete=len(seen) - len(blind) == len(subnet.managers))
    return Judgement("sm", judged, tuple(findings), gaps.rows())


def _subnet(scene: Scene, subnet: Subnet, seen: Mapping[str, SmState], complete: bool) -> Iterator[Finding]:
    masters = [name for name, sm in seen.items() if sm.role == "master"]
    stopped = [name for name, sm in seen.items() if sm.running is False]
    ready = [name for name, sm in seen.items() if sm.role == "standby"]
    if len(masters) > 1:
        yield _manager(
            scene,
            subnet,
            masters,
            f"network {subnet.network} has {len(masters)} masters",
            f"masters {', '.join(masters)}",
            "look for a lost link between the two, or a second sm_key",
        )
    elif not masters and complete:
        yield _manager(
            scene,
            subnet,
            stopped or list(seen),
            f"network {subnet.network} has no master: no port gets a new LID or path",
            f"no subnet manager runs on {', '.join(stopped)}" if stopped else "no master",
            "start it: `fabric apply`, and look at its log",
            lost=True,
        )
    elif masters and len(subnet.managers) > 1 and complete and not ready:
        missing = [name for name in seen if name not in masters]
        yield _manager(
            scene,
            subnet,
            missing,
            f"network {subnet.network} has no standby: the next failure of {masters[0]} leaves it without "
            "a subnet manager",
            "no standby",
            "start it: `fabric apply`, and look at its log",
            severity=Severity.WARNING,
        )


def _manager(
    scene: Scene,
    subnet: Subnet,
    names: list[str],
    message: str,
    found: str,
    help: str,
    *,
    lost: bool = False,
    severity: Severity | None = None,
) -> Finding:
    network = subnet.network if lost else ""
    return finding(
        "manager-missing",
        [Place(name, network=network) for name in names],
        message,
        found=found,
        wanted="one master" if severity is None else "one standby",
        help=help,
        reason="what its ports have not been given is not told one by one" if lost else "",
        position=scene.inventory.nodes[names[0]].position,
        severity=severity,
        active=any(in_service(scene.inventory.nodes[name].spec.state) for name in names),
    )


# ---------------------------------------------------------------- RDMA MTU


def rdma_mtu(scene: Scene) -> Judgement:
    """active_mtu (on InfiniBand NeighborMTU) of every host port against the intent."""
    gaps = Gaps("mtu")
    findings: list[Finding] = []
    judged = 0
    for name in scene.names:
        if name not in scene.observations:
            continue
        for port, view in scene.judged.ports[name].items():
            if not view.is_host or view.hw.kind != "physical":
                continue
            ib = view.wishes.rdma.transport == "infiniband"
            found = view.state.ib.mtu if ib else view.state.nic.rdma_mtu
            if not isinstance(found, int):
                gaps.add("active_mtu", f"{found.value}", Place(name, port))
                continue
            judged += 1
            if found < view.rdma_mtu:
                findings.append(_low(scene, End(name, port), found, view.rdma_mtu))
    return Judgement("mtu", judged, tuple(findings), gaps.rows())


def _low(scene: Scene, end: End, found: int, wanted: int) -> Finding:
    return finding(
        "rdma-mtu-low",
        [Place(end.node, end.port)],
        f"{end}: its RDMA device uses an MTU of {found}",
        found=f"active_mtu {found}",
        wanted=f"{wanted} (rdma.mtu)",
        help="compare active_mtu and max_mtu in `ibv_devinfo`; the MTU of what the port lies on counts too",
        peer=scene.peer(end),
        position=scene.where(end),
        active=in_service(scene.inventory.nodes[end.node].spec.state),
    )
