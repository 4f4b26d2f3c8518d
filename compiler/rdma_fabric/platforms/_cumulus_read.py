"""Turns the answers of a Cumulus Linux switch into the neutral state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._cumulus_switch import (
    INTERFACES,
    LIVE,
    WATCHDOG,
    Content,
    Live,
    Switch,
)
from rdma_fabric.platforms._cumulus_tree import (
    DEFAULT_CABLE_M,
    DEFAULT_MTU,
    FACTORY,
    GLOBAL,
    PFC,
    POLL_MS,
    ROBUSTNESS,
    Tree,
    branch,
    flag,
    natural,
    read_config,
    read_json,
    whole,
)
from rdma_fabric.platforms._shared import UNKNOWN_QOS, digest, unknown_observation, unknown_settings
from rdma_fabric.state import (
    NOT_APPLICABLE,
    PRIORITIES,
    UNKNOWN,
    UNMANAGED,
    Absent,
    Buffer,
    ClassState,
    Dcbx,
    Maybe,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Trust,
    WatchdogTimers,
)

CONFIG: Final = "nv config show -o json --color off"
STARTUP: Final = "nv config show -r startup -o json --color off"
REVISIONS: Final = "nv config revision -o json"
LLDP: Final = "nv show interface lldp -o json"
QUESTIONS: Final = (CONFIG, STARTUP, INTERFACES, *LIVE.values(), WATCHDOG, REVISIONS, LLDP)

_TRUST: Final[dict[str, Trust]] = {"l2": "pcp", "l3": "dscp", "both": "both", "port": "port"}
_TLVS: Final = ("dcbx-pfc-tlv", "dcbx-ets-config-tlv", "dcbx-ets-recomm-tlv")


def parse_answers(answers: Mapping[str, str], hw: Hardware) -> Observation:
    """The observation of a switch; never raises."""
    config = read_config(answers.get(CONFIG, ""))
    if config is None:
        return unknown_observation(hw, f"{CONFIG}: no configuration in the answer")
    header, tree = config
    live = Live.read(answers)
    switch = Switch.read(tree, header, live)
    running = NodeState(switch.system, tuple(_port(switch, port, live) for port in hw.ports))
    stored = _stored(answers.get(STARTUP, ""), hw, live)
    facts = switch.facts(header)
    hidden = switch.hidden(hw)
    return Observation(
        running=running,
        stored=stored,
        operational=not (live.missing or hidden),
        notes=(*live.notes, *hidden, *switch.notes(hw), *_revision_notes(answers.get(REVISIONS, ""))),
        neighbours=_neighbours(answers.get(LLDP, "")),
        buffers=tuple(_buffers(switch, running)),
        facts=facts,
        evidence=digest(
            (running, stored, tuple(fact for fact in facts if fact[0] not in ("model", "version")))
        ),
    )


def _buffers(switch: Switch, running: NodeState) -> Iterator[Buffer]:
    """Pause and resume points of a pfc profile; `xon-threshold` counts down from `xoff-threshold`."""
    for port in running.ports:
        profile = switch.names(port.name).get(PFC, GLOBAL)
        raw = switch.raw(PFC, profile)
        pause, delta = whole(raw.get("xoff-threshold")), whole(raw.get("xon-threshold"))
        if pause is None or delta is None:
            continue
        for priority, one in enumerate(port.settings.qos.classes):
            if one.pfc_tx is True:
                yield Buffer(port.name, priority, pause_at=pause, resume_at=pause - delta, name=profile)


# ---------------------------------------------------------------- one port


def _port(switch: Switch, port: PortHardware, live: Live | None) -> PortState:
    shown = branch(live.ports, port.name) if live else {}
    if live and live.ports and port.name not in live.ports and port.name not in switch.ports:
        return PortState(port.name, port.kind, unknown_settings(), speed_gbps=UNKNOWN)
    speed = _speed(branch(shown, "link").get("speed"))
    settings = PortSettings(mtu=_mtu(branch(switch.ports, port.name), shown), qos=_qos(switch, port))
    return PortState(port.name, port.kind, settings, speed_gbps=speed)


def _speed(value: Any) -> Maybe[int]:
    """ "400G" -> 400."""
    text = str(value).upper()
    return int(text[:-1]) if text[-1:] == "G" and text[:-1].isdigit() else UNKNOWN


def _mtu(configured: Tree, shown: Tree) -> Mtu:
    value = branch(shown, "link").get("mtu")
    if value is None:
        value = branch(configured, "link").get("mtu", DEFAULT_MTU)
    number = whole(value)
    return Mtu(ip=UNKNOWN if number is None else number, frame=NOT_APPLICABLE, enforced=True)


_NO_CLASS = ClassState(*(NOT_APPLICABLE,) * 8)
NO_QOS: Final = QosState(
    trust=NOT_APPLICABLE,
    dscp_to_priority=NOT_APPLICABLE,
    pcp_to_priority=NOT_APPLICABLE,
    classes=(_NO_CLASS,) * len(PRIORITIES),
    watchdog=WatchdogTimers(NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE),
    dcbx=NOT_APPLICABLE,
    global_pause=NOT_APPLICABLE,
    cable_m=NOT_APPLICABLE,
)
"""Bonds, VLAN interfaces and subinterfaces carry an MTU only; QoS belongs to the physical ports."""


def _qos(switch: Switch, port: PortHardware) -> QosState:
    if port.kind != "physical":
        return NO_QOS
    configured = branch(switch.ports, port.name)
    if switch.base is None:
        return replace(UNKNOWN_QOS, dcbx=_dcbx(configured), global_pause=switch.paused(port.name))
    content = switch.content(switch.names(port.name))
    return qos_of(
        content,
        switch.queues,
        switch.watched(port.name),
        timers=switch.timers(),
        dcbx=_dcbx(configured),
        global_pause=switch.paused(port.name),
    )


def qos_of(
    content: Content,
    queues: Maybe[tuple[int, ...]],
    watched: Maybe[bool],
    timers: WatchdogTimers,
    dcbx: Maybe[Dcbx] = "none",
    global_pause: Maybe[bool] = False,
) -> QosState:
    """The neutral QoS of a port whose profiles say `content`."""
    mapping, pfc = content.mapping, content.pfc
    return QosState(
        trust=mapping.trust if isinstance(mapping.trust, Absent) else _TRUST[mapping.trust],
        dscp_to_priority=mapping.dscp,
        pcp_to_priority=mapping.pcp,
        classes=tuple(_class(content, queues, watched, priority) for priority in PRIORITIES),
        watchdog=timers,
        dcbx=dcbx,
        global_pause=global_pause,
        cable_m=pfc.cable_m if pfc.priorities else DEFAULT_CABLE_M,
    )


def _class(
    content: Content, queues: Maybe[tuple[int, ...]], watched: Maybe[bool], priority: int
) -> ClassState:
    pfc = content.pfc
    listed: Maybe[bool] = UNKNOWN if isinstance(pfc.priorities, Absent) else priority in pfc.priorities
    tx, rx = _both(listed, pfc.tx), _both(listed, pfc.rx)
    paused: Maybe[bool] = True if True in (tx, rx) else UNKNOWN if UNKNOWN in (tx, rx) else False
    if isinstance(queues, Absent):
        queue: Maybe[int] = UNKNOWN
        ecn, share = UNKNOWN, UNKNOWN
    else:
        queue = queues[priority]
        ecn, share = content.marks.get(queue), content.shares[queue]  # type: ignore[assignment]
    return ClassState(
        pfc_tx=tx,
        pfc_rx=rx,
        watchdog=_both(paused, watched),
        ecn=ecn,
        headroom=pfc.headroom if paused else None,
        share=share,
        queue=queue,
        group=NOT_APPLICABLE,
    )


def _both(one: Maybe[bool], other: Maybe[bool]) -> Maybe[bool]:
    """Logical and; False wins over UNKNOWN."""
    if one is False or other is False:
        return False
    return UNKNOWN if UNKNOWN in (one, other) else True


def _dcbx(configured: Tree) -> Maybe[Dcbx]:
    """DCBX TLVs are only advertised; the switch itself never follows a peer."""
    lldp = branch(configured, "lldp")
    flags = [flag(lldp.get(name), False) for name in _TLVS]
    return "ieee" if True in flags else UNKNOWN if UNKNOWN in flags else "none"


def default_settings(port: PortHardware) -> PortSettings:
    """What a read-back shows of a port on a switch that nobody configured."""
    mtu = Mtu(DEFAULT_MTU, NOT_APPLICABLE, True)
    if port.kind != "physical":
        return PortSettings(mtu, NO_QOS)
    content = Content(FACTORY.mapping, FACTORY.pfc, FACTORY.marks, FACTORY.shares)
    timers = WatchdogTimers(POLL_MS * ROBUSTNESS, NOT_APPLICABLE, POLL_MS, "drop")
    return PortSettings(mtu, qos_of(content, FACTORY.queues, False, timers))


# ---------------------------------------------------------------- stored, revisions, neighbours


def _stored(text: str, hw: Hardware, live: Live) -> NodeState | None:
    """What a reboot brings back; None where the startup configuration could not be read."""
    found = read_config(text)
    if found is None:
        return None
    header, tree = found
    switch = Switch.read(tree, header, Live())
    ports = []
    for port in hw.ports:
        if live.ports and port.name not in live.ports:
            ports.append(PortState(port.name, port.kind, unknown_settings(), speed_gbps=UNKNOWN))
        else:
            ports.append(replace(_port(switch, port, None), speed_gbps=UNMANAGED))
    return NodeState(switch.system, tuple(ports))


def _revision_notes(text: str) -> tuple[str, ...]:
    """Revisions that wait: for their confirmation, or for somebody to apply them."""
    found = read_json(text)
    if not isinstance(found, dict):
        return ()
    notes = []
    staged = 0
    for number, entry in sorted(found.items(), key=lambda item: natural(str(item[0]))):
        state = str(branch(entry).get("state", ""))
        if state == "confirm":
            message = str(branch(entry).get("message", "")).strip()
            notes.append(
                f"revision {number} waits for its confirmation" + (f" ({message})" if message else "")
            )
        staged += state == "pending"
    if staged:
        notes.append(f"{staged} revision{'s are' if staged > 1 else ' is'} staged and not applied")
    return tuple(notes)


def _neighbours(text: str) -> tuple[tuple[str, str, str], ...]:
    """<port>.lldp.neighbor.<name>.port.name; the name of the key is the neighbour's system name."""
    found = read_json(text)
    rows = []
    for port, entry in (found if isinstance(found, dict) else {}).items():
        for name, one in branch(entry, "lldp", "neighbor").items():
            system = branch(one, "chassis").get("system-name", name)
            remote = branch(one, "port").get("name", "")
            rows.append((str(port), str(system), str(remote)))
    return tuple(sorted(rows))
