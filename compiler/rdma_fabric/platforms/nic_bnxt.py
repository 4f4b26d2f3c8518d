"""Broadcom NetXtreme-E (driver bnxt: BCM574xx, 575xx "Thor", 576xx "Thor 2") on a Linux host.

QoS by iproute2's dcb, which Broadcom's own script takes by default since 236.x, else by niccli or
bnxtqos; congestion control by the vendor driver's configfs. Facts: the vendor's driver 233.x, its
bnxt_setupcc.sh 233.x and 236.x, Linux 6.1 and 6.15.
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
from rdma_fabric.platforms import _nic_bnxt_knobs as knobs
from rdma_fabric.platforms import _nic_bnxt_nv as nv
from rdma_fabric.platforms import _nic_bnxt_read as reader
from rdma_fabric.platforms._contract import Artifact, Change, Dialect, Disturbs, Probe, Realized, Traits
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._host_nic import Effect
from rdma_fabric.platforms._nic_bnxt_knobs import NONE, Kind
from rdma_fabric.platforms._nic_bnxt_lines import lines
from rdma_fabric.platforms._nic_bnxt_probes import probes
from rdma_fabric.platforms._nic_bnxt_realize import Realize
from rdma_fabric.platforms._node import joined
from rdma_fabric.state import (
    DSCPS,
    PRIORITIES,
    ClassState,
    Marking,
    NodeState,
    Observation,
    PortSettings,
    QosState,
)
from rdma_fabric.vitals import Vitals

_COUNTERS: Final[vital.Rows] = (
    (r"rx_pfc_ena_frames_pri([0-7])", "pause-rx"),
    (r"tx_pfc_ena_frames_pri([0-7])", "pause-tx"),
    (r"[rt]x_(?:stat_discard|total_discard_pkts)", "discards"),
    (r"rx_fcs_err_frames", "crc"),
    (r"rx_pcs_symbol_err", "symbol"),
    (r"link_down_events", "down"),
    (r"rx_ecn_marked_pkts", "marks"),
    (r"seq_err_naks_rcvd|to_retransmits|oos_drop_count", "retries"),
)
"""Linux bnxt_ethtool.c (bnxt_port_stats_arr, bnxt_port_stats_ext_arr) and bnxt_re hw_counters.c. What a
class dropped is counted by hardware queue (rx_discard_packets_cosN), whose priority nothing tells."""

_PART: Final = nic.Nic("bnxt", "nic_bnxt/bnxt.sh.j2", nic.Library(parameters=knobs.PARAMETERS))

_FOUR: Final = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_MAKE: Final = cards.Make(("bnxt_en",), firmware=_FOUR, device=_FOUR)
"""`ethtool -i` prints "233.2.82.0/pkg 233.2.83.0": the firmware, then the package that it came in."""
_DEFAULTS: Final = PortSettings(
    qos=QosState(
        dscp_to_priority=(0,) * len(DSCPS),
        pcp_to_priority=tuple(PRIORITIES),
        classes=(ClassState(pfc_tx=False, pfc_rx=False),) * len(PRIORITIES),
    ),
    marking=Marking(rdma_cm_tos=0, roce_v2=True),
)

_CLOSED: Final = (
    "Linux 6.1 bnxt.c, bnxt_dcb.c: bnxt_setup_mq_tc and bnxt_queue_remap close and open the netdev"
)
_PHY: Final = "Linux 6.1 bnxt.c: bnxt_hwrm_set_pause sets the link anew while pause is negotiated"
_LOSS: Final = "experience: packets on their way meet old and new settings"
_EFFECTS: Final = (
    Effect(
        Disturbs.PORT_BOUNCE, ("PFC", "PRIO_TC", "TSA", "TCBW"), "lossless or traffic classes change", _CLOSED
    ),
    Effect(Disturbs.PORT_BOUNCE, ("PAUSE",), "802.3x pause changes", _PHY),
    Effect(
        Disturbs.LOSS,
        ("ROCE", "DSCP2PRIO", "VLAN0", "ECN", "MARK", "MODE", "CNP_", "CC_"),
        "classification or congestion control changes",
        _LOSS,
    ),
    Effect(
        Disturbs.NOTHING,
        ("CMA_",),
        "new RDMA-CM connections are marked otherwise",
        nic.NEW_CONNECTIONS,
    ),
)
_FIRMWARE: Final = (
    "the card's firmware runs the LLDP agent and refuses every DCB setting; switch it off in its "
    "non-volatile memory (niccli nvm, options 155, 255, 269 and 270) and reboot"
)


class NicBnxt:
    """QoS and marking of bnxt ports; their MTU belongs to the base."""

    name = "nic_bnxt"
    part: Literal["nic"] = "nic"
    channel: Literal["files"] = "files"
    dialect: Dialect = host.DIALECT
    make = _MAKE
    traits = Traits(
        title="Broadcom NetXtreme-E / Thor (bnxt)",
        drivers=_MAKE.drivers,
        evidence="driver sources; the vendor's setup scripts; published outputs of niccli",
        tested="simulated tools in real Linux sandboxes",
        cannot=(
            "more than one lossless class, and more than one DSCP in it",
            "a PFC watchdog, PFC in one direction",
            "buffers, headroom, cable length: they follow from the class profile in non-volatile memory",
            "force the marking of traffic outside RDMA-CM",
            "rate limits per class",
            "who negotiates DCBX, which class profile the card has: options in non-volatile memory that no "
            "source spells",
            "reset a card: NV settings count after the next reboot; the node is pending-reset until then",
            "with the kernel's driver before Linux 6.15: DCQCN, and which DSCP CNPs bear",
        ),
        netdev_bound=host.NETDEV_BOUND,
        nv=True,
        defaults=_DEFAULTS,
        defaults_source="Linux 6.1 bnxt_dcb.c (ETS, PFC and APP entries begin empty), cma_configfs.c (ToS); "
        "trust and the marking of CNPs depend on driver and firmware",
    )

    # ------------------------------------------------------------ realize

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """Broadcom's table of traffic classes, one RoCE priority, one switch for DCQCN."""
        kind = knobs.planned(hw)
        return _PART.realized(
            wanted,
            hw,
            lambda port, settings, faults: replace(
                Realize(port, faults, kind).settings(settings), nic=nv.realize(settings.nic, port, faults)
            ),
        )

    # ------------------------------------------------------------ read

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        ports = host.ports_of(hw, _PART.word)
        asked = nv.Asked.named(ports, hw.option("nv").split())
        return (host.question("nic_bnxt/observe.sh.j2", asked),) if ports else ()

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state of bnxt ports; running is operational."""
        parts = host.sections("\n".join(answers.get(question, "") for question in self.questions(hw)))
        plan, seen = knobs.planned(hw), nic.Seen()
        for port in host.ports_of(hw, _PART.word):
            conf, link = parts.get(f"conf {port.name}", Section()), parts.get(f"wants {port.name}", Section())
            kind = _kind(parts, port, plan)
            live = reader.port_knobs(parts, port.name)
            # The firmware says who negotiates, now as at the next boot.
            dcbx = {key: live[key] for key in ("DCBX",) if key in live}
            now = knobs.settings_of(live, kind)
            boot = knobs.settings_of({**qos_file.stored(conf, link, knobs.DEFAULTS), **dcbx}, kind)
            card = cards.card(parts, port.name, _MAKE)
            options = nv.shown(parts, port.name, hw.option("nv").split())
            seen.add(port, now, boot, replace(card.state, nv=options.running), options.stored)
            seen.owners.update(reader.owners(parts, port.name))
            seen.notes += [*_notes(parts, port, kind, plan), *card.notes]
            seen.facts |= reader.facts(parts, port.name) | {
                f"cc {port.name}": kind.cc,
                f"profile {port.name}": reader.profile(parts, port.name) or "",
            }
        return seen.observation()

    # ------------------------------------------------------------ write

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script for all ports."""
        return vital.questions(host.ports_of(hw, _PART.word), "nic")

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """What the driver and the RDMA device count."""
        return vital.nic(answers, host.ports_of(hw, _PART.word), _COUNTERS)

    def context(self, wanted: NodeState, hw: Hardware) -> nic.Library:
        """For the library file; settings files have contexts of their own."""
        return _PART.library

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """The program, its unit, the bnxt library and one settings file per port."""
        kind = knobs.planned(hw)
        found = _PART.artifacts(wanted, hw, lambda settings, port: knobs.knobs_of(settings, kind))
        return (*found, *nv.artifacts(wanted, host.ports_of(hw, _PART.word)))

    def probes(self, wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
        """What a host judges by itself."""
        return probes(wanted, hw)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Settings files, then `fabric-qos PORT`, which writes only what differs; then the card's memory."""
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
            # A new map of priorities takes the entries away that were made for the old one.
            {"PRIO_TC": ("PFC", "ROCE", "DSCP2PRIO", "CNP_DSCP")},
        ).build()
        return joined(nic.with_blocked(change, kept), nv.change(seen, wanted, hw, _PART.word))


def _kind(parts: Mapping[str, Section], port: PortHardware, plan: Kind) -> Kind:
    """What the host has; what it does not tell is taken from the inventory."""
    return replace(
        plan,
        cc=reader.where(parts, port.name) or plan.cc,
        profile=reader.profile(parts, port.name) or plan.profile,
    )


def _notes(parts: Mapping[str, Section], port: PortHardware, kind: Kind, plan: Kind) -> list[str]:
    found = reader.notes(parts, port.name)
    if not parts.get(f"stack {port.name}", Section()).ok:
        found.append(f"{port.name}: the answer about its NIC was not understood")
        return found
    if kind.cc != plan.cc and plan.cc != NONE:
        found.append(
            f"{port.name}: congestion control is in {kind.cc}, the inventory says {plan.cc}; "
            f"write `bnxt_cc: {kind.cc}` in the node's data.options"
        )
    if kind.cc == "configfs" and reader.profile(parts, port.name) is None:
        found.append(
            f"{port.name}: its service profile could not be read from debugfs and is taken as {plan.profile}"
        )
    device = parts.get(f"rdma {port.name}", Section()).text.strip()
    if port.rdma and device and device != port.rdma:
        found.append(f"{port.name}: its RDMA device is {device}, the inventory says {port.rdma}")
    if not parts.get(f"tool {port.name}", Section()).text.strip():
        found.append(f"{port.name}: neither dcb, niccli nor bnxtqos answers for it")
    return found


def _obstacles(seen: Observation, wanted: NodeState, hw: Hardware, kind: Kind) -> dict[str, str]:
    """Port -> why nothing of it can be written now."""
    facts, found = dict(seen.facts), {}
    for port in host.ports_of(hw, _PART.word):
        have, want = seen.running.port(port.name), wanted.port(port.name)
        if have is None or want is None:
            continue
        profile = facts.get(f"profile {port.name}", "")
        count = facts.get(f"classes {port.name}", "")
        top = max((one.queue for one in want.settings.qos.classes if isinstance(one.queue, int)), default=0)
        if have.settings.qos.dcbx == "firmware":
            found[port.name] = _FIRMWARE
        elif profile and profile != kind.profile:
            found[port.name] = (
                f"its firmware has service profile {profile}, the inventory says {kind.profile}: write "
                f"`bnxt_service_profile: {profile}` in the node's data.options"
            )
        elif count and top >= int(count):
            found[port.name] = (
                f"its card has {count} traffic classes and {top + 1} are needed: choose a RoCE profile in "
                "its non-volatile memory and reboot"
            )
    return found


PLATFORM = NicBnxt()
