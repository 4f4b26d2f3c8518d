"""What ports of NICs without a PFC watchdog, buffers or rate limits of their own show of a wish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import PortHardware
from rdma_fabric.platforms._contract import Fault
from rdma_fabric.platforms._host_nic import unowned
from rdma_fabric.platforms._shared import compact
from rdma_fabric.state import (
    NOT_APPLICABLE,
    PRIORITIES,
    Absent,
    ClassState,
    Maybe,
    PortSettings,
    QosState,
    Share,
    WatchdogTimers,
)

_TIMERS: Final = ("detect_ms", "restore_ms", "poll_ms", "action")


@dataclass
class PortRealize:
    """One port of such a NIC; what it cannot express is added to `faults`."""

    CARD: ClassVar[str]
    """As people say it: "a bnxt port"."""
    HEADROOM: ClassVar[str]
    """Why nobody sets its buffers."""
    LOSSLESS: ClassVar[str]
    """Why one class at most is lossless."""

    DRIVER: ClassVar[str]
    """Its RDMA driver."""

    port: PortHardware
    faults: list[Fault]

    def _fault(
        self, severity: Severity, setting: str, wanted: object, used: object, reason: str, help: str = ""
    ) -> None:
        self.faults.append(Fault(severity, self.port.name, setting, str(wanted), str(used), reason, help))

    def _pcp(self, wanted: QosState) -> Maybe[tuple[int, ...]]:
        table = wanted.pcp_to_priority
        if isinstance(table, Absent):
            return table
        if table != tuple(PRIORITIES):
            self._fault(
                Severity.WARNING,
                "qos.pcp_to_priority",
                ",".join(map(str, table)),
                "0,1,2,3,4,5,6,7",
                "the NIC takes the tag's value as the priority",
            )
        return tuple(PRIORITIES)

    def _timers(self, wanted: WatchdogTimers) -> WatchdogTimers:
        for name in _TIMERS:
            value = getattr(wanted, name)
            if not isinstance(value, Absent):
                self._fault(
                    Severity.NOTE, f"qos.watchdog.{name}", value, "", f"{self.CARD} has no PFC watchdog"
                )
        return WatchdogTimers(*(unowned(getattr(wanted, name)) for name in _TIMERS))

    def _one_lossless(self, wanted: tuple[ClassState, ...], roce: int | None) -> tuple[ClassState, ...]:
        """PFC of RoCE's priority alone, else of the first one."""
        found = lossless(wanted)
        if len(found) < 2:
            return wanted
        kept = roce if roce in found else found[0]
        self._fault(
            Severity.ERROR,
            "qos.classes",
            f"lossless priorities {compact(found)}",
            f"priority {kept}",
            self.LOSSLESS,
            "give the networks of these ports one lossless class",
        )
        return tuple(
            replace(item, pfc_tx=False, pfc_rx=False) if p in found and p != kept else item
            for p, item in enumerate(wanted)
        )

    def _class(self, priority: int, wanted: ClassState) -> ClassState:
        tx, rx = wanted.pfc_tx, wanted.pfc_rx
        if isinstance(tx, bool) and isinstance(rx, bool) and tx != rx:
            at = f"qos.classes.{priority}.pfc_tx" if not tx else f"qos.classes.{priority}.pfc_rx"
            self._fault(
                Severity.WARNING, at, "off", "on", f"PFC of {self.CARD} is on or off for both directions"
            )
            tx = rx = True
        if not (isinstance(wanted.headroom, Absent) or wanted.headroom is None):
            self._fault(
                Severity.WARNING,
                f"qos.classes.{priority}.headroom",
                wanted.headroom.value,
                "",
                self.HEADROOM,
            )
        return replace(
            wanted,
            pfc_tx=tx,
            pfc_rx=rx,
            watchdog=unowned(wanted.watchdog),
            ecn=unowned(wanted.ecn),
            headroom=unowned(wanted.headroom),
            group=unowned(wanted.group),
            share=self._capless(priority, wanted.share),
        )

    def _capless(self, priority: int, share: Maybe[Share | None]) -> Maybe[Share | None]:
        if not isinstance(share, Share) or isinstance(share.cap, Absent):
            return share
        if share.cap is not None:
            self._fault(
                Severity.WARNING,
                f"qos.classes.{priority}.share",
                f"at most {share.cap}%",
                "",
                "the driver has no rate limit per class",
            )
        return replace(share, cap=NOT_APPLICABLE)

    def _v2(self, wanted: Maybe[bool]) -> Maybe[bool]:
        if wanted is False:
            self._fault(Severity.WARNING, "marking.roce_v2", "v1", "v2", f"{self.DRIVER} speaks RoCE v2 only")
            return True
        return wanted

    def _traffic_class(self, wanted: Maybe[int | None]) -> Any:
        if isinstance(wanted, int):
            self._fault(
                Severity.NOTE,
                "marking.traffic_class",
                wanted,
                "",
                "the driver cannot force it: applications without RDMA-CM set their own (NCCL_IB_TC)",
            )
        return unowned(wanted)


def lossless(classes: Sequence[ClassState]) -> list[int]:
    """Priorities with PFC in either direction."""
    return [p for p, one in enumerate(classes) if one.pfc_tx is True or one.pfc_rx is True]


def marked(wanted: PortSettings) -> int | None:
    """Priority of the DSCP that the host marks RoCE with."""
    tos, table = wanted.marking.rdma_cm_tos, wanted.qos.dscp_to_priority
    if isinstance(tos, Absent) or isinstance(table, Absent) or not tos:
        return None
    return table[tos >> 2]


def is_table(classes: Sequence[ClassState]) -> bool:
    """True for classes that name their queues already, as a read-back or a realized state does."""
    queues = [one.queue for one in classes]
    return (
        any(isinstance(queue, int) for queue in queues)
        and all(queue is NOT_APPLICABLE or queue in PRIORITIES for queue in queues)
        and all(
            isinstance(one.share, Share) or (one.queue is NOT_APPLICABLE and one.share is NOT_APPLICABLE)
            for one in classes
        )
    )


def hundred(weights: Mapping[int, int | None]) -> dict[int, int]:
    """Percentages that add up to 100 and are never 0; who has no weight shares what is left."""
    known = sum(weight for weight in weights.values() if weight)
    missing = [queue for queue, weight in weights.items() if not weight]
    left = max(100 - known, 0)
    filled = {
        queue: weight or max(1, left // max(len(missing), 1)) for queue, weight in sorted(weights.items())
    }
    total = sum(filled.values())
    exact = {queue: weight * 100 / total for queue, weight in filled.items()}
    found = {queue: max(1, int(value)) for queue, value in exact.items()}
    rest = 100 - sum(found.values())
    order = sorted(found, key=lambda queue: (found[queue] - exact[queue], queue))
    for queue in order[: max(rest, 0)]:
        found[queue] += 1
    while rest < 0:
        largest = max(found, key=lambda queue: (found[queue], -queue))
        found[largest] -= 1
        rest += 1
    return found
