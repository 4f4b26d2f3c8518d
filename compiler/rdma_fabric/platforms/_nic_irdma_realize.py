"""irdma: what a port shows once a wish is applied, and what it cannot express."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rdma_fabric.findings import Severity
from rdma_fabric.platforms._contract import Fault
from rdma_fabric.platforms._host_nic import unowned
from rdma_fabric.platforms._host_realize import PortRealize, hundred, is_table, lossless, marked
from rdma_fabric.platforms._nic_irdma_knobs import Kind
from rdma_fabric.platforms._shared import compact
from rdma_fabric.state import (
    DSCPS,
    NOT_APPLICABLE,
    PRIORITIES,
    UNMANAGED,
    Absent,
    ClassState,
    Marking,
    Maybe,
    PortSettings,
    QosState,
    Share,
)

OPTION: Final = "irdma.roce_ena"
_NEGOTIATED: Final = ("ieee", "cee", "firmware")
_BY_KERNEL: Final = {0: 0, 8: 2, 16: 6, 24: 4}
"""Two bits of a ToS byte -> the priority that the kernel sends it with (ip_tos2prio; Intel's readme)."""
_FEWER: Final = (
    "say irdma_traffic_classes: 8 in the node's data.options where `dcb ets show` tells ets-cap 8, "
    "or give the class a priority below 4 in the networks of these ports"
)


@dataclass
class Realize(PortRealize):
    """What one port will show; what it cannot express is added to `faults`."""

    CARD = "an irdma port"
    HEADROOM = "Intel documents no setting of the NIC's buffers"
    LOSSLESS = "one traffic class of an E800 port can have PFC"
    DRIVER = "irdma"

    kind: Kind
    options: Mapping[str, Maybe[str]]
    """Module options of the host that the intent sets."""
    by_tag: bool = False

    def settings(self, wanted: PortSettings) -> PortSettings:
        """What this port will show."""
        self.by_tag = wanted.qos.trust == "pcp"
        qos = self._qos(wanted)
        return replace(wanted, qos=qos, marking=self._marking(wanted.marking, qos))

    # -- QoS

    def _qos(self, wanted: PortSettings) -> QosState:
        qos = wanted.qos
        return replace(
            qos,
            trust=self._trust(qos.trust),
            dscp_to_priority=self._dscp(qos),
            pcp_to_priority=self._pcp(qos),
            classes=self._classes(wanted),
            watchdog=self._timers(qos.watchdog),
            dcbx=self._dcbx(qos),
            cable_m=unowned(qos.cable_m),
        )

    def _trust(self, wanted: Any) -> Any:
        if wanted == "port":
            self._fault(Severity.WARNING, "qos.trust", "port", "", "an E800 port trusts DSCP or the tag")
            return NOT_APPLICABLE
        if wanted == "both":
            reason = "an E800 port is in DSCP mode or in VLAN mode"
            self._fault(Severity.NOTE, "qos.trust", "both", "dscp", reason)
            return "dscp"
        return wanted

    def _dscp(self, wanted: QosState) -> Maybe[tuple[int, ...]]:
        points = wanted.dscp_to_priority
        if self.by_tag:
            return (0,) * len(DSCPS)
        if isinstance(points, Absent):
            return points
        beyond = sorted({priority for priority in points if priority >= self.kind.classes})
        if not beyond:
            return points
        own = [dscp for dscp in DSCPS if points[dscp] in beyond]
        paused = set(beyond) & set(lossless(wanted.classes))
        self._fault(
            Severity.ERROR if paused else Severity.WARNING,
            "qos.dscp_to_priority",
            f"DSCP {compact(own)} on priority {compact(beyond)}",
            "priority 0",
            f"the card has {self.kind.classes} traffic classes, and in DSCP mode a priority is its class",
            _FEWER,
        )
        return tuple(0 if priority in beyond else priority for priority in points)

    def _dcbx(self, wanted: QosState) -> Any:
        """Who negotiates is the firmware's agent, which refuses all of ours while it runs, or nobody."""
        own = wanted.trust in ("dscp", "pcp", "both") or lossless(wanted.classes)
        if wanted.dcbx not in _NEGOTIATED or (wanted.dcbx == "firmware" and not own):
            return wanted.dcbx
        self._fault(
            Severity.WARNING,
            "qos.dcbx",
            wanted.dcbx,
            "none",
            "the agent in the firmware is always willing and refuses what the host sets; lldpad is nobody's "
            "but its own",
            "say pfc: {dcbx: none} in the networks of these ports",
        )
        return "none"

    # -- classes

    def _classes(self, wanted: PortSettings) -> tuple[ClassState, ...]:
        one = self._one_lossless(wanted.qos.classes, marked(wanted))
        classes = tuple(self._class(priority, item) for priority, item in enumerate(one))
        if not self.by_tag:
            classes = tuple(self._reachable(priority, item) for priority, item in enumerate(classes))
        shared = any(isinstance(item.share, Share) for item in classes)
        if is_table(classes) or not shared:
            return classes
        return self._layout(classes)

    def _reachable(self, priority: int, item: ClassState) -> ClassState:
        """In DSCP mode nothing gets a priority that the card has no class for."""
        if priority < self.kind.classes:
            return item
        paused = item.pfc_tx is True or item.pfc_rx is True
        if paused or isinstance(item.share, Share):
            self._fault(
                Severity.ERROR if paused else Severity.WARNING,
                f"qos.classes.{priority}.{'pfc_tx' if paused else 'share'}",
                "on" if paused else _spelled(item.share),
                "",
                f"the card has {self.kind.classes} traffic classes, and in DSCP mode a priority is its class",
                _FEWER,
            )
        return replace(
            item,
            pfc_tx=False if item.pfc_tx is True else item.pfc_tx,
            pfc_rx=False if item.pfc_rx is True else item.pfc_rx,
            queue=unowned(item.queue),
            share=unowned(item.share),
        )

    def _layout(self, classes: tuple[ClassState, ...]) -> tuple[ClassState, ...]:
        queues = self._queues(classes)
        shares = self._shares(classes, queues)
        found = []
        for priority, item in enumerate(classes):
            queue = queues[priority]
            if queue is None:
                found.append(replace(item, queue=NOT_APPLICABLE, share=NOT_APPLICABLE))
                continue
            share = replace(shares[queue], cap=item.share.cap if isinstance(item.share, Share) else UNMANAGED)
            self._told(priority, item.share, share, queue)
            found.append(replace(item, queue=queue, share=share))
        return tuple(found)

    def _queues(self, classes: Sequence[ClassState]) -> list[int | None]:
        """Traffic class of every priority: its own, or, by tag with too few of them, one after the other."""
        if not self.by_tag:
            return [priority if priority < self.kind.classes else None for priority in PRIORITIES]
        if self.kind.classes == len(PRIORITIES):
            return list(PRIORITIES)
        free = iter(range(1, self.kind.classes))
        found: list[int | None] = [0] * len(PRIORITIES)
        paused = lossless(classes)
        for priority in sorted(PRIORITIES[1:], key=lambda one: (one not in paused, _rank(classes[one]), one)):
            if priority in paused or isinstance(classes[priority].share, Share):
                found[priority] = next(free, 0)
        return found

    def _shares(self, classes: Sequence[ClassState], queues: Sequence[int | None]) -> dict[int, Share]:
        """Of each class. Weights add up to 100, as the driver demands; a class without one has 0, which
        leaves it what the others do not use."""
        asked: dict[int, list[Share]] = {}
        for item, queue in zip(classes, queues, strict=True):
            if queue is not None:
                asked.setdefault(queue, []).extend([item.share] if isinstance(item.share, Share) else [])
        strict = {
            queue for queue, shares in asked.items() if any(one.scheduler == "strict" for one in shares)
        }
        weights = {
            queue: sum(one.weight for one in shares) for queue, shares in asked.items() if queue not in strict
        }
        heavy = {queue: weight for queue, weight in weights.items() if weight}
        if weights and not heavy:
            # The driver itself would put it there.
            heavy = {min(weights): 100}
        fair = hundred(heavy)
        return {
            queue: Share("strict") if queue in strict else Share("dwrr", fair.get(queue, 0))
            for queue in asked
        }

    def _told(self, priority: int, wish: Maybe[Share | None], used: Share, queue: int) -> None:
        if not isinstance(wish, Share) or (wish.scheduler, wish.weight) == (used.scheduler, used.weight):
            return
        if wish.scheduler == used.scheduler == "strict":
            return
        same = wish.scheduler == used.scheduler
        self._fault(
            Severity.NOTE if same else Severity.WARNING,
            f"qos.classes.{priority}.share",
            _spelled(wish),
            f"{_spelled(used)} of traffic class {queue}",
            "the percentages of its traffic classes add up to 100"
            if same
            else f"it shares traffic class {queue} with others",
        )

    # -- marking

    def _marking(self, wanted: Marking, qos: QosState) -> Marking:
        tos = wanted.rdma_cm_tos
        tos = tos & 0xFC if isinstance(tos, int) else tos
        if self.by_tag and isinstance(tos, int):
            self._by_kernel(tos, qos)
        if isinstance(wanted.cnp_dscp, int):
            self._fault(
                Severity.NOTE,
                "marking.cnp_dscp",
                wanted.cnp_dscp,
                "",
                "Intel documents no setting for it: see at a switch which DSCP the CNPs of these hosts bear",
            )
        return replace(
            wanted,
            rdma_cm_tos=tos,
            traffic_class=self._traffic_class(wanted.traffic_class),
            roce_v2=self._protocol(wanted.roce_v2),
            cnp_dscp=unowned(wanted.cnp_dscp),
            cnp_priority=unowned(wanted.cnp_priority),
            parameters=tuple((name, self._parameter(name, value)) for name, value in wanted.parameters),
            **self._roles(wanted),
        )

    def _by_kernel(self, tos: int, qos: QosState) -> None:
        paused, used = lossless(qos.classes), _BY_KERNEL[tos & 24]
        if paused and used not in paused:
            fault = Fault(
                Severity.WARNING,
                self.port.name,
                "marking.rdma_cm_tos",
                str(tos),
                f"one that the kernel sends on priority {paused[0]}",
                f"by tag the kernel sends it on priority {used}, which is lossy",
                "trust DSCP in the networks of these ports, or mark with ToS 8, 16 or 24 (priority 2, 6, 4)",
                contradicts=True,
            )
            self.faults.append(fault)

    def _protocol(self, wanted: Maybe[bool]) -> Maybe[bool]:
        used = self._v2(wanted)
        if used is True and self.kind.vendor and self.options.get(OPTION) not in ("1", "Y"):
            fault = Fault(
                Severity.WARNING,
                self.port.name,
                "marking.roce_v2",
                f"without module option {OPTION}",
                f"{OPTION} 1",
                "Intel's own irdma starts in iWARP mode unless the option is 1",
                "say hosts: {module_options: {irdma: {roce_ena: 1}}}, or stack: inbox in the node's data "
                "where the kernel's driver is in use",
                contradicts=True,
            )
            self.faults.append(fault)
        return used

    def _roles(self, wanted: Marking) -> dict[str, Maybe[tuple[int, ...]]]:
        """DCQCN: one switch for the whole RDMA device."""
        asked = {"np": wanted.np, "rp": wanted.rp}
        known = {name: one for name, one in asked.items() if not isinstance(one, Absent)}
        if not self.kind.vendor:
            for name, one in known.items():
                if one:
                    reason = "the kernel's driver has DCQCN switched off"
                    help = "install Intel's own irdma package where DCQCN is needed"
                    self._fault(Severity.WARNING, f"marking.{name}", compact(one), "", reason, help)
            return {name: unowned(one) for name, one in asked.items()}
        if not known:
            absent = wanted.np if wanted.np is not UNMANAGED else unowned(wanted.rp)
            return {"np": absent, "rp": absent}
        used = tuple(PRIORITIES) if any(known.values()) else ()
        for name, one in known.items():
            if one != used:
                self._fault(
                    Severity.NOTE if one else Severity.WARNING,
                    f"marking.{name}",
                    compact(one) if one else "off",
                    "all priorities" if used else "off",
                    "an E800 port has one switch for both roles of DCQCN, whatever the priority",
                )
        return {"np": used, "rp": used}

    def _parameter(self, name: str, value: Maybe[str]) -> Maybe[str]:
        if isinstance(value, Absent):
            return value
        self._fault(
            Severity.WARNING,
            f"marking.parameters.{name}",
            value,
            "",
            "numbers of DCQCN are options of Intel's module, for all its ports at once",
            "say them in hosts: {module_options: {irdma: {dcqcn_min_rate: ..., dcqcn_cc_cfg_valid: 1}}}",
        )
        return NOT_APPLICABLE


def _rank(item: ClassState) -> bool:
    return not (isinstance(item.share, Share) and item.share.scheduler == "strict")


def _spelled(share: object) -> str:
    if not isinstance(share, Share):
        return ""
    return "strict" if share.scheduler == "strict" else f"{share.weight}%"
