"""mlx5: what a port shows once a wish is applied, and what it cannot express."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _nic_mlx5_knobs as knobs
from rdma_fabric.platforms import _nic_mlx5_nv as nv
from rdma_fabric.platforms._contract import Fault
from rdma_fabric.state import (
    NOT_APPLICABLE,
    PRIORITIES,
    UNMANAGED,
    Absent,
    Amount,
    ClassState,
    Marking,
    Maybe,
    NicState,
    PortSettings,
    QosState,
    Share,
    WatchdogTimers,
)

_STALL_MS: Final = range(80, 8001)
"""Linux 6.1 en_ethtool.c mlx5e_set_pfc_prevention_tout; 0 turns it off."""
_CABLE_M: Final = range(1, 1000)
"""Linux 6.1 en_dcbnl.c: other lengths are ignored in silence."""
_DEFAULT_CABLE_M: Final = 7
_CELL: Final = 128
_LARGEST_MTU: Final = 9978
"""Linux 6.1 port_buffer.c, port_buffer.h; the netdev's own maximum."""


@dataclass
class Realize:
    """What one port will show; what it cannot express is added to `faults`."""

    port: PortHardware
    hw: Hardware
    faults: list[Fault]
    mtu: int = 0
    cable: int = 0

    def settings(self, wanted: PortSettings) -> PortSettings:
        """What this port will show."""
        self.mtu = wanted.mtu.ip if isinstance(wanted.mtu.ip, int) else 0
        cable = wanted.qos.cable_m
        self.cable = (
            min(max(cable, _CABLE_M[0]), _CABLE_M[-1]) if isinstance(cable, int) else _DEFAULT_CABLE_M
        )
        if self.port.kind in ("bond", "vlan", "svi"):
            return self._upper(wanted)
        found = replace(
            wanted,
            qos=self._qos(wanted.qos),
            marking=self._marking(wanted.marking),
            nic=self._nic(wanted),
        )
        self._contradictions(found)
        return found

    def _nic(self, wanted: PortSettings) -> NicState:
        """NV settings belong to the card, which a VF has no part in."""
        if self.port.kind != "physical":
            return replace(wanted.nic, nv=())
        return nv.realize(wanted.nic, self.port, self.faults)

    def _contradictions(self, found: PortSettings) -> None:
        """NV settings that work against the classes: written as wished, and told."""
        for name, value, used, reason in nv.contradictions(found):
            help = f"set hosts.nv.mlx5.{name} to {used}, or leave it out"
            setting = f"nic.nv.{name}"
            fault = Fault(Severity.WARNING, self.port.name, setting, value, used, reason, help, True)
            self.faults.append(fault)

    def _fault(
        self, severity: Severity, setting: str, wanted: object, used: object, reason: str, help: str = ""
    ) -> None:
        self.faults.append(Fault(severity, self.port.name, setting, str(wanted), str(used), reason, help))

    def _upper(self, wanted: PortSettings) -> PortSettings:
        """Bonds and VLANs: QoS belongs to the physical ports below."""
        below = self.port.members or ((self.port.parent,) if self.port.parent else ())
        lossless = any(one.pfc_tx is True or one.pfc_rx is True for one in wanted.qos.classes)
        if lossless and not any(self.hw.port(name) is not None for name in below):
            self._fault(
                Severity.ERROR,
                "qos.classes",
                "a lossless class",
                "",
                f"PFC of {self.port.name} belongs to the ports below it, which no network names",
                f"name {', '.join(below) or 'its members'} with the same network in the inventory",
            )
        return PortSettings(mtu=wanted.mtu)

    # -- QoS

    def _qos(self, wanted: QosState) -> QosState:
        return replace(
            wanted,
            trust=self._trust(wanted.trust),
            dscp_to_priority=NOT_APPLICABLE if wanted.trust == "pcp" else wanted.dscp_to_priority,
            pcp_to_priority=self._pcp(wanted),
            classes=self._classes(wanted.classes),
            watchdog=self._timers(wanted.watchdog),
            dcbx=self._dcbx(wanted.dcbx),
            cable_m=self._cable(wanted.cable_m),
        )

    def _trust(self, wanted: Any) -> Any:
        if wanted == "both":
            self._fault(
                Severity.NOTE, "qos.trust", "both", "dscp", "an mlx5 port trusts DSCP or the tag, not both"
            )
            return "dscp"
        if wanted == "port":
            self._fault(Severity.WARNING, "qos.trust", "port", "", "an mlx5 port trusts DSCP or the tag")
            return NOT_APPLICABLE
        return wanted

    def _pcp(self, wanted: QosState) -> Maybe[tuple[int, ...]]:
        table = wanted.pcp_to_priority
        if isinstance(table, Absent) or wanted.trust != "pcp":
            return table if isinstance(table, Absent) else NOT_APPLICABLE
        if table != tuple(PRIORITIES):
            self._fault(
                Severity.WARNING,
                "qos.pcp_to_priority",
                ",".join(map(str, table)),
                "0,1,2,3,4,5,6,7",
                "the NIC takes the tag's value as the priority",
            )
        return tuple(PRIORITIES)

    def _dcbx(self, wanted: Any) -> Any:
        if wanted in ("ieee", "cee"):
            self._fault(
                Severity.NOTE,
                "qos.dcbx",
                wanted,
                "firmware",
                "the NIC's firmware negotiates, which also needs LLDP_NB_DCBX in its NV settings",
            )
            return "firmware"
        return wanted

    def _cable(self, wanted: Maybe[int]) -> Maybe[int]:
        if isinstance(wanted, Absent) or wanted in _CABLE_M:
            return wanted
        used = min(max(wanted, _CABLE_M[0]), _CABLE_M[-1])
        self._fault(Severity.NOTE, "qos.cable_m", wanted, used, "the driver takes 1 to 999 metres")
        return used

    def _timers(self, wanted: WatchdogTimers) -> WatchdogTimers:
        detect = wanted.detect_ms
        if isinstance(detect, int) and detect and detect not in _STALL_MS:
            used = min(max(detect, _STALL_MS[0]), _STALL_MS[-1])
            self._fault(
                Severity.NOTE,
                "qos.watchdog.detect_ms",
                detect,
                used,
                "pfc-prevention-tout takes 80 to 8000 ms",
            )
            detect = used
        for name in ("restore_ms", "poll_ms", "action"):
            value = getattr(wanted, name)
            if not isinstance(value, Absent):
                self._fault(
                    Severity.NOTE,
                    f"qos.watchdog.{name}",
                    value,
                    "",
                    "a NIC has no watchdog per queue; it only limits how long it may send pause itself",
                )
        return WatchdogTimers(
            detect, *(_none(getattr(wanted, n)) for n in ("restore_ms", "poll_ms", "action"))
        )

    def _classes(self, wanted: tuple[ClassState, ...]) -> tuple[ClassState, ...]:
        shares = self._shares(wanted)
        before = len(self.faults)
        self._all_buffers(wanted)
        found = tuple(self._class(index, one, shares) for index, one in enumerate(wanted))
        if any(one.severity is Severity.ERROR for one in self.faults[before:]):
            none = NOT_APPLICABLE
            found = tuple(replace(one, headroom=_none(one.headroom), group=none) for one in found)
        return found

    def _all_buffers(self, wanted: tuple[ClassState, ...]) -> None:
        """Sizes are written for all buffers at once; one without a size would have none."""
        sized = {one.group for one in wanted if isinstance(one.headroom, Amount)}
        bare = {one.group for one in wanted if isinstance(one.group, int)} - sized
        if sized - {*Absent} and bare:
            self._fault(
                Severity.ERROR,
                "qos.classes",
                "receive buffers by hand",
                "",
                f"buffer {min(bare)} has no size: the card's buffers are given all or none",
                "give the class with `dscp: rest` a size in hosts.buffers too",
            )

    def _class(self, index: int, wanted: ClassState, shares: list[Share | None] | None) -> ClassState:
        tx, rx = wanted.pfc_tx, wanted.pfc_rx
        if isinstance(tx, bool) and isinstance(rx, bool) and tx != rx:
            at = f"qos.classes.{index}.pfc_tx" if not tx else f"qos.classes.{index}.pfc_rx"
            self._fault(
                Severity.WARNING, at, "off", "on", "PFC of an mlx5 port is on or off for both directions"
            )
            tx = rx = True
        if isinstance(wanted.headroom, Absent) or wanted.headroom is None:
            headroom: Maybe[Amount | None] = _none(wanted.headroom)
        elif isinstance(wanted.group, int):
            headroom = self._buffer(index, wanted.headroom, tx is True)
        else:
            self._fault(
                Severity.WARNING,
                f"qos.classes.{index}.headroom",
                wanted.headroom.value,
                "",
                "the NIC sizes its buffers from cable length and MTU, unless hosts.buffers gives all of them",
            )
            headroom = NOT_APPLICABLE
        return replace(
            wanted,
            pfc_tx=tx,
            pfc_rx=rx,
            watchdog=_none(wanted.watchdog),
            ecn=_none(wanted.ecn),
            headroom=headroom,
            share=wanted.share if shares is None else shares[index],
            queue=wanted.queue if shares is None else self._queue(index, wanted.queue),
        )

    def _buffer(self, index: int, wanted: Amount, lossless: bool) -> Amount:
        """Whole cells; a lossless buffer must hold what comes after the pause."""
        used = Amount(-(-wanted.value // _CELL) * _CELL)
        if used != wanted:
            reason = f"the card's buffers are cells of {_CELL} bytes"
            self._fault(Severity.NOTE, f"qos.classes.{index}.headroom", wanted.value, used.value, reason)
        least = self._least_buffer() if lossless else 0
        if used.value < least:
            self._fault(
                Severity.ERROR,
                f"qos.classes.{index}.headroom",
                f"{used.value} bytes",
                "",
                f"the driver refuses a lossless buffer below {least} bytes at this speed, cable and MTU",
                f"set hosts.buffers of the class to {least}B or more",
            )
        return used

    def _least_buffer(self) -> int:
        """xoff size and one largest frame (Linux 6.1 mlx5 port_buffer.c, integers as there); 0 when the speed
        or the MTU is not known."""
        speed, mtu = self.port.speed_gbps, self.mtu
        if not speed or not mtu:
            return 0
        xoff = (301 + 216 * self.cable // 100) * max(speed, 40) + 272 * mtu // 100
        return xoff + _LARGEST_MTU + _CELL

    def _queue(self, index: int, wanted: Maybe[int]) -> Maybe[int]:
        return wanted if isinstance(wanted, int) and wanted in PRIORITIES else index

    def _shares(self, wanted: tuple[ClassState, ...]) -> list[Share | None] | None:
        """All eight: the driver checks the table as a whole."""
        capped = [self._capped(index, one) for index, one in enumerate(wanted)]
        shares = knobs.normal_shares(capped)
        for index, (one, share) in enumerate(zip(capped, shares or (), strict=False)):
            wish = one.share
            if isinstance(wish, Share) and share is not None and wish.scheduler == "dwrr":
                if wish.weight == share.weight:
                    continue
                self._fault(
                    Severity.NOTE,
                    f"qos.classes.{index}.share",
                    f"{wish.weight}",
                    f"{share.weight}%",
                    "weights of an mlx5 port are percentages that add up to 100",
                )
        return shares

    def _capped(self, index: int, one: ClassState) -> ClassState:
        share = one.share
        if not isinstance(share, Share) or not isinstance(share.cap, int):
            return one
        speed = self.port.speed_gbps
        if not speed:
            self._fault(
                Severity.WARNING,
                f"qos.classes.{index}.share",
                f"at most {share.cap}%",
                "",
                "the NIC wants Gb/s and the inventory gives no speed for the port",
            )
            return replace(one, share=replace(share, cap=UNMANAGED))
        used = round(knobs.gbps(share.cap, speed) * 100 / speed)
        if used != share.cap:
            self._fault(
                Severity.NOTE,
                f"qos.classes.{index}.share",
                f"at most {share.cap}%",
                f"{used}%",
                "rate limits are whole Gb/s",
            )
        return replace(one, share=replace(share, cap=used))

    # -- marking

    def _marking(self, wanted: Marking) -> Marking:
        found = replace(
            wanted,
            rdma_cm_tos=_dscp_only(wanted.rdma_cm_tos),
            traffic_class=_dscp_only(wanted.traffic_class),
            parameters=self._parameters(wanted.parameters),
        )
        return self._inbox(found) if self.hw.option("stack") == "inbox" else found

    def _inbox(self, wanted: Marking) -> Marking:
        """The distribution's driver has no files for these (reference, trap 12)."""
        if isinstance(wanted.traffic_class, int):
            self._fault(
                Severity.NOTE,
                "marking.traffic_class",
                wanted.traffic_class,
                "",
                "the inbox driver cannot force it: applications without RDMA-CM set their own (NCCL_IB_TC)",
            )
        for name in ("np", "rp"):
            value = getattr(wanted, name)
            if not isinstance(value, Absent):
                self._fault(
                    Severity.NOTE if value else Severity.WARNING,
                    f"marking.{name}",
                    ",".join(map(str, value)) or "off",
                    "",
                    "the inbox driver cannot switch DCQCN per priority; firmware has it on for all (NV "
                    "ROCE_CC_PRIO_MASK)",
                )
        return replace(
            wanted,
            traffic_class=_none(wanted.traffic_class),
            np=_none(wanted.np),
            rp=_none(wanted.rp),
        )

    def _parameters(self, wanted: Iterable[tuple[str, Maybe[str]]]) -> tuple[tuple[str, Maybe[str]], ...]:
        found: dict[str, Maybe[str]] = {}
        for name, value in wanted:
            neutral = knobs.neutral_parameter(name)
            if not neutral and value is not NOT_APPLICABLE:
                self._fault(
                    Severity.WARNING,
                    f"marking.parameters.{name}",
                    value,
                    "",
                    "mlx5 has no DCQCN parameter of that name",
                    f"its names are {', '.join(name for name, _, _ in knobs.PARAMETERS)}",
                )
            found[neutral or name] = self._ranged(neutral, value) if neutral else NOT_APPLICABLE
        return tuple(sorted(found.items()))

    def _ranged(self, name: str, value: Maybe[str]) -> Maybe[str]:
        """The nearest value that the card takes."""
        least, largest = knobs.PARAMETER_RANGES.get(name, (0, 2**32 - 1))
        largest = largest or self.port.speed_gbps * 1000 or 2**32 - 1
        if not isinstance(value, str) or not value.isdigit() or least <= int(value) <= largest:
            return value
        used = str(min(max(int(value), least), largest))
        reason = f"the card takes {least} to {largest} for it"
        self._fault(Severity.NOTE, f"marking.parameters.{name}", value, used, reason)
        return used


def _none(value: Any) -> Any:
    """NOT_APPLICABLE for every wish; UNMANAGED stays."""
    return UNMANAGED if value is UNMANAGED else NOT_APPLICABLE


def _dscp_only(value: Any) -> Any:
    """A ToS byte without its ECN bits, as it is compared."""
    return value & 0xFC if isinstance(value, int) else value
