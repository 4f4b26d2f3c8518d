"""Intel 800 Series Ethernet (E810, E82x, E830; drivers ice and irdma) on a Linux host.

QoS by iproute2's dcb, who negotiates by a flag of ethtool. Two RDMA stacks: Intel's own irdma package
("ofed" or any word but inbox) and the kernel's ("inbox"). Facts: Intel's irdma readme and 800 Series guides,
Linux 6.1 ice_dcb_nl.c, ice_dcb_lib.c, ice_devlink.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_card as cards
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_nic as nic
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import _host_vitals as vital
from rdma_fabric.platforms import _nic_irdma_knobs as knobs
from rdma_fabric.platforms import _nic_irdma_read as reader
from rdma_fabric.platforms._contract import Artifact, Change, Dialect, Disturbs, Probe, Realized, Traits
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._host_nic import Effect
from rdma_fabric.platforms._nic_irdma_knobs import IWARP, NO_ENTRY, ROCE, Kind
from rdma_fabric.platforms._nic_irdma_lines import lines, unverified
from rdma_fabric.platforms._nic_irdma_probes import probes
from rdma_fabric.platforms._nic_irdma_realize import OPTION, Realize
from rdma_fabric.state import (
    DSCPS,
    PRIORITIES,
    UNKNOWN,
    Absent,
    ClassState,
    Marking,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
)
from rdma_fabric.vitals import Vitals

_COUNTERS: Final[vital.Rows] = (
    (r"rx_priority_([0-7])_xoff\.nic", "pause-rx"),
    (r"tx_priority_([0-7])_xoff\.nic", "pause-tx"),
    (r"rx_dropped\.nic|tx_dropped_link_down\.nic", "discards"),
    (r"rx_crc_errors\.nic", "crc"),
    (r"illegal_bytes\.nic", "symbol"),
    (r"RxECNMrkd", "marks"),
)
"""Linux ice_ethtool.c (ice_gstrings_pf_stats, priority statistics) and irdma/hw.c (hw_counters)."""

_PART: Final = nic.Nic("irdma", "nic_irdma/irdma.sh.j2", nic.Library())
_MAKE: Final = cards.Make(("ice",), firmware=r"[0-9]+\.[0-9]+")
"""`ethtool -i` prints "4.40 0x8001c967 1.3534.0": the version of the NVM, its build, the option ROM's."""
_DEFAULTS: Final = PortSettings(
    qos=QosState(
        trust="pcp",
        dscp_to_priority=(0,) * len(DSCPS),
        pcp_to_priority=tuple(PRIORITIES),
        classes=(ClassState(pfc_tx=False, pfc_rx=False),) * len(PRIORITIES),
    ),
    marking=Marking(rdma_cm_tos=0),
)

_RESET: Final = (
    "Linux 6.1 ice_dcb_nl.c: ice_dcbnl_devreset closes and opens the netdev after every real change"
)
_EFFECTS: Final = (
    Effect(
        Disturbs.DRIVER_RELOAD,
        ("PROTO",),
        "the port's RDMA device is another one",
        "Linux 6.1 ice_devlink.c: the RDMA device is unplugged and plugged anew",
    ),
    Effect(
        Disturbs.PORT_BOUNCE,
        ("TRUST", "DSCP2PRIO", "PRIO_TC", "TSA", "TCBW", "PFC"),
        "DSCP map, lossless or traffic classes change",
        _RESET,
    ),
    Effect(
        Disturbs.PORT_BOUNCE,
        ("LLDP",),
        "the agent in the firmware starts or stops, and DCB begins anew",
        "experience: the driver sets its DCB defaults when the agent stops",
    ),
    Effect(
        Disturbs.PORT_BOUNCE,
        ("PAUSE",),
        "802.3x pause changes",
        "experience: the PHY is configured anew while pause is negotiated",
    ),
    Effect(
        Disturbs.LOSS,
        ("ECN",),
        "congestion control changes",
        "experience: packets on their way meet old and new settings",
    ),
    Effect(
        Disturbs.NOTHING,
        ("CMA_",),
        "new RDMA-CM connections are marked otherwise",
        nic.NEW_CONNECTIONS,
    ),
)
_AGENT: Final = (
    "the card's firmware runs the LLDP agent and refuses every DCB setting: say pfc: {dcbx: none} in the "
    "networks of this port, or `ethtool --set-priv-flags PORT fw-lldp-agent off`"
)
_BY_OPTION: Final = (
    "Intel's own irdma chooses the protocol when it is loaded: say hosts: {module_options: {irdma: "
    "{roce_ena: 1}}} and reboot the host"
)


class NicIrdma:
    """QoS and marking of ports of the 800 Series; their MTU belongs to the base."""

    name = "nic_irdma"
    part: Literal["nic"] = "nic"
    channel: Literal["files"] = "files"
    dialect: Dialect = host.DIALECT
    make = _MAKE
    traits = Traits(
        title="Intel E810 / E830 / E82x (ice, irdma)",
        drivers=("ice", "irdma"),
        evidence="driver sources; Intel's readme and guides; no device of our own",
        tested="simulated tools in real Linux sandboxes",
        cannot=(
            "more than one lossless class",
            "more classes than the card has; in DSCP mode a priority is its traffic class",
            "trust of DSCP and 802.1p at once",
            "a PFC watchdog, PFC in one direction, buffers, headroom, cable length, rate limits per class",
            "which DSCP and priority CNPs bear: Intel documents no setting",
            "DCQCN per priority or per role: one switch; its numbers are options of the module",
            "force the marking of traffic outside RDMA-CM",
            "DCBX by negotiation: the agent in the firmware refuses what the host sets",
            "with Intel's own driver: the protocol of a port (iWARP unless roce_ena is 1); it counts after a "
            "reboot",
            "with the kernel's driver: DCQCN",
        ),
        netdev_bound=host.NETDEV_BOUND,
        defaults=_DEFAULTS,
        defaults_source="Linux 6.1 ice_dcb_lib.c, ice_dcb_sw_dflt_cfg (VLAN mode, all in class 0, no PFC), "
        "cma_configfs.c (ToS); who negotiates is in the card's NVM; Intel's own irdma speaks iWARP, the "
        "kernel's RoCE v2",
    )

    # ------------------------------------------------------------ realize

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """One mode and one lossless class per port, a class per priority, one switch for DCQCN."""
        kind, options = knobs.planned(hw), dict(wanted.system.module_options)
        return _PART.realized(
            wanted,
            hw,
            lambda port, settings, faults: Realize(port, faults, kind, options).settings(settings),
        )

    # ------------------------------------------------------------ read

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        ports = host.ports_of(hw, _PART.word)
        return (host.question("nic_irdma/observe.sh.j2", qos_file.Asked.of(ports)),) if ports else ()

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state of irdma ports; running is operational."""
        parts = host.sections("\n".join(answers.get(question, "") for question in self.questions(hw)))
        plan, seen, waiting = knobs.planned(hw), nic.Seen(), list[PortState]()
        for port in host.ports_of(hw, _PART.word):
            conf, link = parts.get(f"conf {port.name}", Section()), parts.get(f"wants {port.name}", Section())
            kind = reader.kind_of(parts, port.name, plan)
            live = reader.port_knobs(parts, port.name)
            stored = qos_file.stored(conf, link, _defaults(kind))
            kept = {**stored, **_kept(parts, port, live, kind)}
            now, boot = knobs.settings_of(live, kind), knobs.settings_of(kept, kind)
            card = cards.card(parts, port.name, _MAKE)
            seen.add(port, now, boot, card.state)
            seen.notes += [*reader.notes(parts, port.name, kind, plan), *_device(parts, port), *card.notes]
            seen.facts |= reader.facts(parts, port.name) | {
                f"classes {port.name}": str(kind.classes),
                f"stack {port.name}": "vendor" if kind.vendor else "inbox",
            }
            if kind.vendor and (live.get("PROTO"), kept.get("PROTO")) == (IWARP, ROCE):
                waiting.append(PortState(port.name, port.kind, PortSettings(marking=Marking(roce_v2=True))))
        pending = NodeState(ports=tuple(waiting)) if waiting else None
        return replace(seen.observation(), pending=pending)

    # ------------------------------------------------------------ write

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        return vital.questions(host.ports_of(hw, "irdma"), "nic")

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """What the driver and the RDMA device count."""
        return vital.nic(answers, host.ports_of(hw, "irdma"), _COUNTERS)

    def context(self, wanted: NodeState, hw: Hardware) -> nic.Library:
        """For the library file; settings files have contexts of their own."""
        return _PART.library

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """The program, its unit, the irdma library and one settings file per port."""
        kind = knobs.planned(hw)
        return _PART.artifacts(wanted, hw, lambda settings, port: knobs.knobs_of(settings, kind))

    def probes(self, wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
        """What a host judges by itself."""
        return probes(wanted, hw)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Settings files, then `fabric-qos PORT`, which writes only what differs."""
        kind, facts = knobs.planned(hw), dict(seen.facts)
        free, kept = nic.held_back(seen, wanted, hw, _PART.word, _obstacles(seen, wanted, hw, kind))
        change = qos_file.PortsChange(
            _PART.word,
            seen,
            wanted,
            free,
            lambda settings, port: knobs.knobs_of(settings, kind),
            lambda path: knobs.keys_of(path, kind),
            lambda port, now, before: lines(port, now, before, facts),
            lambda changed: nic.disturbances(_EFFECTS, changed),
            (_PART.put(),),
            # Another mode begins with classes of the driver's own.
            {"TRUST": ("DSCP2PRIO", "PRIO_TC", "TSA", "TCBW", "PFC")},
            _replaceable(seen, free),
        ).build()
        change = _by_option(nic.with_blocked(change, kept), seen, wanted)
        return replace(change, unverified=unverified(change.lines))


def _defaults(kind: Kind) -> qos_file.Knobs:
    return knobs.VENDOR_DEFAULTS if kind.vendor else knobs.INBOX_DEFAULTS


def _kept(
    parts: Mapping[str, Section], port: PortHardware, live: qos_file.Knobs, kind: Kind
) -> dict[str, str]:
    """What a reboot brings whatever the settings file says: the agent's flag is in the NVM, and Intel's own
    driver looks at its options."""
    found = {"LLDP": live["LLDP"]} if "LLDP" in live else {}
    if kind.vendor and (word := reader.next_protocol(parts, port.name)):
        found["PROTO"] = word
    return found


def _device(parts: Mapping[str, Section], port: PortHardware) -> list[str]:
    device = parts.get(f"rdma {port.name}", Section()).text.strip()
    if port.rdma and device and device != port.rdma:
        return [f"{port.name}: its RDMA device is {device}, the inventory says {port.rdma}"]
    return []


def _obstacles(seen: Observation, wanted: NodeState, hw: Hardware, kind: Kind) -> dict[str, str]:
    """Port -> why nothing of it can be written now."""
    facts, found = dict(seen.facts), {}
    for port in host.ports_of(hw, _PART.word):
        have, want = seen.running.port(port.name), wanted.port(port.name)
        if have is None or want is None:
            continue
        stack, count = facts.get(f"stack {port.name}", ""), facts.get(f"classes {port.name}", "")
        planned = "vendor" if kind.vendor else "inbox"
        if have.settings.qos.dcbx == "firmware" and want.settings.qos.dcbx != "none":
            found[port.name] = _AGENT.replace("PORT", port.name)
        elif count and count != str(kind.classes):
            found[port.name] = (
                f"its card has {count} traffic classes, the inventory says {kind.classes}: write "
                f"`irdma_traffic_classes: {count}` in the node's data.options"
            )
        elif stack and stack != planned:
            found[port.name] = (
                f"its driver is of another stack than the inventory says: write `stack: {stack}` in the "
                "node's data"
            )
    return found


def _replaceable(seen: Observation, hw: Hardware) -> dict[str, str]:
    """DSCP maps with points that have no entry: known by their entries, and written as a whole."""
    facts = dict(seen.facts)
    found = {}
    for port in host.ports_of(hw, _PART.word):
        points = knobs.in_map(knobs.entries_of(facts.get(f"app {port.name}", "")))
        state = seen.running.port(port.name)
        unknown = state is not None and state.settings.qos.dscp_to_priority is UNKNOWN
        if unknown and NO_ENTRY in points and qos_file.UNREAD not in points and points.strip("-,"):
            found[f"ports.{port.name}.qos.dscp_to_priority"] = points
    return found


def _by_option(change: Change, seen: Observation, wanted: NodeState) -> Change:
    """A protocol that Intel's driver chooses by its options is not written here: it waits for a reboot where
    they are right or about to be, else it is told."""
    mine = {one.path for one in change.blocked if one.path.endswith(".marking.roce_v2")}
    mine = {path for path in mine if not isinstance(_found(change, path), Absent)}
    if not mine:
        return change
    option = dict(wanted.system.module_options).get(OPTION)
    if option in ("1", "Y"):
        return replace(change, blocked=tuple(one for one in change.blocked if one.path not in mine))
    told = {path for path, _ in change.reasons}
    reasons = tuple((path, _BY_OPTION) for path in sorted(mine - told))
    return replace(change, reasons=change.reasons + reasons)


def _found(change: Change, path: str) -> object:
    return next(one.found for one in change.blocked if one.path == path)


PLATFORM = NicIrdma()
