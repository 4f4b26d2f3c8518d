"""bnxt: what a port shows once a wish is applied, and what it cannot express."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rdma_fabric.findings import Severity
from rdma_fabric.platforms import _nic_bnxt_knobs as knobs
from rdma_fabric.platforms._host_nic import unowned
from rdma_fabric.platforms._host_realize import PortRealize, hundred, is_table, lossless, marked
from rdma_fabric.platforms._nic_bnxt_knobs import CNP_TC, DEFAULT_TC, NONE, OWN, ROCE_TC, Kind
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

_HALF: Final = 50
"""RoCE's part where nobody says one: the default of Broadcom's bnxt_setupcc.sh (-b)."""


@dataclass
class Realize(PortRealize):
    """What one port will show; what it cannot express is added to `faults`."""

    CARD = "a bnxt port"
    HEADROOM = "the NIC's buffers follow from the class profile in its non-volatile memory"
    LOSSLESS = "a bnxt port has one RoCE priority, and only its traffic class is lossless"
    DRIVER = "bnxt_re"

    kind: Kind

    def settings(self, wanted: PortSettings) -> PortSettings:
        """What this port will show."""
        roce = self._roce(wanted)
        cnp = _cnp(wanted)
        qos = self._qos(wanted.qos, wanted.marking, roce, cnp)
        marking = self._marking(wanted.marking, qos, roce)
        return replace(wanted, qos=qos, marking=marking)

    # -- which priorities mean what

    def _roce(self, wanted: PortSettings) -> int | None:
        """The one priority of RoCE: as recorded, else the lossless one, else that of the marked DSCP."""
        recorded = dict(wanted.marking.parameters).get("rp_roce_prio")
        if isinstance(recorded, str) and (recorded == NONE or recorded in map(str, PRIORITIES)):
            return None if recorded == NONE else int(recorded)
        at = marked(wanted)
        found = lossless(wanted.qos.classes)
        if at in found:
            return at
        return found[0] if found else at

    # -- QoS

    def _qos(self, wanted: QosState, marking: Marking, roce: int | None, cnp: int | None) -> QosState:
        return replace(
            wanted,
            trust=self._trust(wanted.trust),
            dscp_to_priority=self._dscp(wanted, marking, roce),
            pcp_to_priority=self._pcp(wanted),
            classes=self._classes(wanted, roce, cnp),
            watchdog=self._timers(wanted.watchdog),
            dcbx=self._dcbx(wanted.dcbx),
            cable_m=unowned(wanted.cable_m),
        )

    def _trust(self, wanted: Any) -> Any:
        if wanted == "port":
            self._fault(Severity.WARNING, "qos.trust", "port", "", "a bnxt port trusts DSCP and tags")
            return NOT_APPLICABLE
        if wanted == "both" and self.kind.cc != "configfs":
            self._fault(
                Severity.NOTE,
                "qos.trust",
                "both",
                "dscp",
                "only the vendor's driver can be told to send tags",
            )
            return "dscp"
        return wanted

    def _dscp(self, wanted: QosState, marking: Marking, roce: int | None) -> Maybe[tuple[int, ...]]:
        table = wanted.dscp_to_priority
        if wanted.trust == "pcp":
            # Without entries every DSCP counts as 0, and only tags tell priorities.
            return (0,) * len(DSCPS)
        if isinstance(table, Absent):
            return table
        tos, cnp = marking.rdma_cm_tos, marking.cnp_dscp
        if roce:
            own = tos >> 2 if isinstance(tos, int) else -1
            reason = (
                "the RoCE class of a bnxt port takes one DSCP; packets with the others count as priority 0"
            )
            table = self._one_dscp(table, roce, own, reason)
        if self.kind.cc == "none" and isinstance(cnp, int) and table[cnp] not in (0, roce):
            reason = (
                "firmware takes the last DSCP of this class for CNPs, and this driver does not show which"
            )
            table = self._one_dscp(table, table[cnp], cnp, reason)
        return table

    def _one_dscp(self, table: tuple[int, ...], priority: int, own: int, reason: str) -> tuple[int, ...]:
        points = [dscp for dscp in DSCPS if table[dscp] == priority]
        if len(points) < 2:
            return table
        kept = own if own in points else points[0]
        self._fault(
            Severity.WARNING,
            "qos.dscp_to_priority",
            f"DSCP {compact(points)} on priority {priority}",
            f"DSCP {kept}",
            reason,
            "give the class one DSCP in the networks of these ports",
        )
        return tuple(0 if dscp in points and dscp != kept else table[dscp] for dscp in DSCPS)

    def _dcbx(self, wanted: Any) -> Any:
        if wanted in ("ieee", "cee", "firmware"):
            self._fault(
                Severity.WARNING,
                "qos.dcbx",
                wanted,
                "",
                "who negotiates is set in the card's non-volatile memory, not at run time",
            )
            return NOT_APPLICABLE
        return wanted

    # -- classes

    def _classes(self, wanted: QosState, roce: int | None, cnp: int | None) -> tuple[ClassState, ...]:
        one = self._one_lossless(wanted.classes, roce)
        classes = tuple(self._class(priority, item) for priority, item in enumerate(one))
        if is_table(classes):
            return classes
        shared = any(item.share is None or isinstance(item.share, Share) for item in one)
        # The driver refuses PFC before there is a table (Linux 6.1 bnxt_dcb.c).
        if not shared and (roce is None or all(isinstance(item.pfc_tx, Absent) for item in one)):
            return classes
        default = wanted.dscp_to_priority[0] if isinstance(wanted.dscp_to_priority, tuple) else 0
        return self._layout(classes, roce, cnp, default)

    def _layout(
        self, classes: tuple[ClassState, ...], roce: int | None, cnp: int | None, default: int
    ) -> tuple[ClassState, ...]:
        """Broadcom's table: everything in class 0, RoCE in 1, CNPs and strict traffic in 2."""
        queues = self._queues(classes, roce, cnp, default)
        shares = self._shares(classes, queues, roce)
        found = []
        for priority, item in enumerate(classes):
            queue = queues[priority]
            if queue is None:
                found.append(replace(item, queue=NOT_APPLICABLE, share=NOT_APPLICABLE))
                continue
            share = replace(shares[queue], cap=_cap(item.share))
            self._told(priority, item.share, share, queue)
            found.append(replace(item, queue=queue, share=share))
        return tuple(found)

    def _queues(
        self, classes: Sequence[ClassState], roce: int | None, cnp: int | None, default: int
    ) -> list[int | None]:
        """Traffic class of every priority; None: firmware gives it a queue of its own."""
        queues: list[int | None] = [DEFAULT_TC] * len(classes)
        free = iter(range(CNP_TC + 1, self.kind.classes))
        # Where nobody can tell firmware which DSCP its CNPs bear, their class is theirs alone.
        shared = self.kind.cc != "none"
        for priority, item in enumerate(classes):
            strict = isinstance(item.share, Share) and item.share.scheduler == "strict"
            if priority == roce:
                queues[priority] = ROCE_TC
            elif priority == cnp and self.kind.profile == "0":
                queues[priority] = None
            elif (priority == cnp or (strict and shared)) and self.kind.profile == "1" and roce is not None:
                queues[priority] = CNP_TC
            elif isinstance(item.share, Share) and not strict and priority != default:
                queues[priority] = next(free, DEFAULT_TC)
        return queues

    def _shares(
        self, classes: Sequence[ClassState], queues: Sequence[int | None], roce: int | None
    ) -> dict[int, Share]:
        """Of each class in use. Weights add up to 100 and none is 0: the driver refuses to starve one."""
        asked: dict[int, list[Share]] = {}
        for item, queue in zip(classes, queues, strict=True):
            if queue is not None:
                asked.setdefault(queue, []).extend([item.share] if isinstance(item.share, Share) else [])
        strict = {
            queue
            for queue, shares in asked.items()
            if queue != DEFAULT_TC
            and (any(one.scheduler == "strict" for one in shares) or (queue == CNP_TC and not shares))
        }
        if roce is None and not any(shares for shares in asked.values()):
            return {queue: Share("strict") for queue in asked}
        if roce is None and all(one.scheduler == "strict" for one in asked.get(DEFAULT_TC, ())):
            strict.add(DEFAULT_TC)
        weights = {
            queue: sum(one.weight for one in shares) or None
            for queue, shares in asked.items()
            if queue not in strict
        }
        if ROCE_TC in weights and not any(weights.values()):
            self._fault(
                Severity.NOTE,
                "qos.classes",
                "no bandwidth",
                f"RoCE {_HALF}%, the rest {100 - _HALF}%",
                "a bnxt port needs a table of bandwidth; this is the default of Broadcom's own script",
            )
        fair = hundred(weights)
        return {queue: Share("strict") if queue in strict else Share("dwrr", fair[queue]) for queue in asked}

    def _told(self, priority: int, wish: Maybe[Share | None], used: Share, queue: int) -> None:
        if not isinstance(wish, Share):
            return
        at = f"qos.classes.{priority}.share"
        if wish.scheduler != used.scheduler:
            self._fault(
                Severity.WARNING,
                at,
                "strict" if wish.scheduler == "strict" else f"{wish.weight}%",
                f"{used.weight}%" if used.scheduler == "dwrr" else "strict",
                f"it shares traffic class {queue} with others",
            )
        elif wish.scheduler == "dwrr" and wish.weight != used.weight:
            self._fault(
                Severity.NOTE,
                at,
                f"{wish.weight}",
                f"{used.weight}% of traffic class {queue}",
                "the NIC shares bandwidth between its traffic classes, in percentages that add up to 100",
            )

    # -- marking

    def _marking(self, wanted: Marking, qos: QosState, roce: int | None) -> Marking:
        tos = wanted.rdma_cm_tos
        on = self._roles(wanted, roce)
        found = replace(
            wanted,
            rdma_cm_tos=tos & 0xFC if isinstance(tos, int) else tos,
            traffic_class=self._traffic_class(wanted.traffic_class),
            roce_v2=self._v2(wanted.roce_v2),
            np=on,
            rp=on,
            parameters=self._parameters(wanted, qos, roce, on),
        )
        return self._nowhere(found) if self.kind.cc == "none" else self._cnps(found, qos)

    def _roles(self, wanted: Marking, roce: int | None) -> Maybe[tuple[int, ...]]:
        """DCQCN of the port: both roles, for RoCE as a whole."""
        asked = [one for one in (wanted.np, wanted.rp) if not isinstance(one, Absent)]
        if not asked:
            return wanted.np if wanted.np is not UNMANAGED else unowned(wanted.rp)
        used: tuple[int, ...] = (roce or 0,) if any(asked) else ()
        for name, one in (("np", wanted.np), ("rp", wanted.rp)):
            if not isinstance(one, Absent) and bool(one) != bool(used):
                self._fault(
                    Severity.WARNING,
                    f"marking.{name}",
                    "off",
                    "on",
                    "a bnxt port has one switch for both roles of DCQCN",
                )
            elif not isinstance(one, Absent) and one != used:
                self._fault(
                    Severity.NOTE,
                    f"marking.{name}",
                    f"priority {', '.join(map(str, one))}",
                    f"priority {used[0]}",
                    "DCQCN of a bnxt port follows its one RoCE priority",
                )
        return used

    def _cnps(self, wanted: Marking, qos: QosState) -> Marking:
        """With the service profile, firmware takes the CNPs' DSCP from the map, which must lead to them."""
        if self.kind.profile == "0" or self.kind.cc == "none":
            return wanted
        dscp, wish, table = wanted.cnp_dscp, wanted.cnp_priority, qos.dscp_to_priority
        if isinstance(dscp, Absent) or isinstance(table, Absent):
            return replace(wanted, cnp_priority=unowned(wish))
        priority = table[dscp]
        if not priority or qos.classes[priority].queue != CNP_TC:
            # DSCP 0 is what a card says that was never told one.
            if dscp:
                self._fault(
                    Severity.WARNING,
                    "marking.cnp_dscp",
                    dscp,
                    "",
                    f"the port maps DSCP {dscp} to priority {priority}, which is not in the class of CNPs",
                    "trust DSCP, and give CNPs a priority that is neither 0 nor RoCE's",
                )
            return replace(wanted, cnp_dscp=NOT_APPLICABLE, cnp_priority=unowned(wish))
        if isinstance(wish, int) and wish != priority:
            self._fault(
                Severity.WARNING,
                "marking.cnp_priority",
                wish,
                priority,
                f"CNPs get the priority that the port maps DSCP {dscp} to",
            )
        return replace(wanted, cnp_priority=wish if isinstance(wish, Absent) else priority)

    def _parameters(
        self, wanted: Marking, qos: QosState, roce: int | None, on: Maybe[tuple[int, ...]]
    ) -> tuple[tuple[str, Maybe[str]], ...]:
        """Those of the intent, and what belongs to Broadcom's recipe."""
        found: dict[str, Maybe[str]] = dict(self._recipe(wanted, qos, roce, on))
        for name, value in wanted.parameters:
            neutral = knobs.neutral_parameter(name, self.kind)
            text = self._value(name, value) if neutral else ""
            if not text and not isinstance(value, Absent):
                self._fault(
                    Severity.WARNING,
                    f"marking.parameters.{name}",
                    value,
                    "",
                    "bnxt takes no such number"
                    if neutral
                    else "its driver has no DCQCN parameter of that name",
                    "" if neutral else f"its names are {', '.join(knobs.names(self.kind))}",
                )
            found[neutral or name] = text or (value if isinstance(value, Absent) else NOT_APPLICABLE)
        if self.kind.cc == "none":
            kept = ("rp_roce_prio",)
            return tuple(sorted((name, v if name in kept else unowned(v)) for name, v in found.items()))
        return tuple(sorted(found.items()))

    @staticmethod
    def _value(name: str, value: Maybe[str]) -> str:
        if not isinstance(value, str) or value.startswith("-"):
            return ""
        return NONE if value == NONE and OWN.get(name) == "ROCE" else knobs.number(value)

    def _recipe(
        self, wanted: Marking, qos: QosState, roce: int | None, on: Maybe[tuple[int, ...]]
    ) -> Mapping[str, Maybe[str]]:
        found: dict[str, Maybe[str]] = {}
        if roce is not None and not isinstance(qos.classes[roce].pfc_tx, Absent):
            found["rp_roce_prio"] = str(roce)
        if isinstance(on, Absent):
            return found
        found["rp_ecn_marking"] = "1" if on else "0"
        if on:
            found["rp_cc_mode"] = "1"
        tos = wanted.rdma_cm_tos
        if self.kind.profile == "0" and isinstance(tos, int):
            found["rp_roce_dscp"] = str(tos >> 2)
        return found

    def _nowhere(self, wanted: Marking) -> Marking:
        """A driver whose congestion control has no files at all."""
        for name in ("np", "rp"):
            value = getattr(wanted, name)
            if not isinstance(value, Absent):
                self._fault(
                    Severity.NOTE if value else Severity.WARNING,
                    f"marking.{name}",
                    ",".join(map(str, value)) or "off",
                    "",
                    "the kernel's driver has no switch for DCQCN; firmware has it on",
                    "from Linux 6.15 on it has: say bnxt_cc: debugfs in the node's data.options",
                )
        if isinstance(wanted.cnp_dscp, int):
            self._fault(
                Severity.NOTE,
                "marking.cnp_dscp",
                wanted.cnp_dscp,
                "",
                "the kernel's driver does not show it; firmware takes the last DSCP of traffic class 2",
            )
        return replace(
            wanted,
            np=unowned(wanted.np),
            rp=unowned(wanted.rp),
            cnp_dscp=unowned(wanted.cnp_dscp),
            cnp_priority=unowned(wanted.cnp_priority),
        )


def _cnp(wanted: PortSettings) -> int | None:
    """Priority of the CNPs: the one that is said, else that of their DSCP."""
    marking, table = wanted.marking, wanted.qos.dscp_to_priority
    if isinstance(marking.cnp_priority, int):
        return marking.cnp_priority if marking.cnp_priority in PRIORITIES else None
    if isinstance(marking.cnp_dscp, int) and not isinstance(table, Absent):
        return table[marking.cnp_dscp]
    return None


def _cap(share: Maybe[Share | None]) -> Maybe[int | None]:
    return share.cap if isinstance(share, Share) else UNMANAGED
