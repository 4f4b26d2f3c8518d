"""irdma: what a host judges of its own ports, by a script that prints knobs (`nic_irdma/read.sh.j2`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_classes as table
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_probes as common
from rdma_fabric.platforms._contract import Probe, Reading
from rdma_fabric.platforms._nic_irdma_knobs import IWARP, ROCE, Kind, planned
from rdma_fabric.state import UNMANAGED, NodeState, PortSettings
from rdma_fabric.templating import render


def probes(wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
    """All fields of all irdma ports that have a value."""
    found: list[Probe] = []
    for port in host.ports_of(hw, "irdma"):
        state = wanted.port(port.name)
        if state is not None and port.kind not in ("bond", "vlan", "svi"):
            one = _Port(port, state.settings, planned(hw))
            # irdma's active_mtu takes no headers off, as connections by RDMA-CM do: the netdev's MTU tells.
            found += common.rdma_mtu(replace(port, rdma=""), state.settings, host.NETDEV_BOUND)
            found += [*one.classification(), *one.classes(), *one.marking()]
    return tuple(found)


@cache
def _script() -> str:
    return render("nic_irdma/read.sh.j2", None)


class _Port:
    """The probes of one port."""

    def __init__(self, port: PortHardware, settings: PortSettings, kind: Kind) -> None:
        self.port, self.settings, self.qos, self.kind = port, settings, settings.qos, kind
        self.argv = (port.name, "{device}" if port.rdma else "")

    def _told(self, key: str) -> Reading:
        """One line of the script."""
        return Reading(rf"^{key} ([\w,-]+)$", self.argv, _script())

    def _probe(self, key: str, accept: object, *readings: Reading, **more: object) -> Probe:
        accepted = accept if isinstance(accept, tuple) else (accept,)
        return common.port_probe(self.port, key, self.settings, accepted, *readings, **more)

    def classification(self) -> Iterator[Probe]:
        """Mode, DSCP map, the firmware's agent, 802.3x pause."""
        qos = self.qos
        if qos.trust in ("dscp", "pcp"):
            yield self._probe("qos.trust", qos.trust, self._told("TRUST"))
        if isinstance(qos.dscp_to_priority, tuple):
            points = tuple(map(str, qos.dscp_to_priority))
            yield self._probe("qos.dscp_to_priority", points, self._told("DSCP2PRIO"), how="table")
        if qos.dcbx in ("none", "firmware"):
            yield self._probe("qos.dcbx", "off" if qos.dcbx == "none" else "on", self._told("LLDP"))
        yield from common.global_pause(self.port, self.settings)

    def classes(self) -> Iterator[Probe]:
        """PFC, then the traffic classes of all eight priorities."""
        yield from common.class_table(self.port, self.settings, *map(self._told, ("PFC", *table.TABLE)))

    def marking(self) -> Iterator[Probe]:
        """Protocol, DCQCN's one switch, ToS of RDMA-CM."""
        marking = self.settings.marking
        if isinstance(marking.roce_v2, bool):
            yield self._probe("marking.roce_v2", ROCE if marking.roce_v2 else IWARP, self._told("PROTO"))
        for role in ("np", "rp"):
            on = getattr(marking, role)
            if isinstance(on, tuple):
                yield self._probe(f"marking.{role}", "1" if on else "0", self._told("ECN"))
        yield from common.rdma_cm(
            self.port, replace(self.settings, marking=replace(marking, roce_v2=UNMANAGED))
        )
