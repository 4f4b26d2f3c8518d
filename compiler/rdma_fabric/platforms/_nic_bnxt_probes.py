"""bnxt: what a host judges of its own ports, by a shell script that prints knobs (`nic_bnxt/read.sh.j2`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_classes as table
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_probes as common
from rdma_fabric.platforms._contract import Probe, Reading
from rdma_fabric.platforms._host_nic import Library
from rdma_fabric.platforms._nic_bnxt_knobs import NONE, OWN, PARAMETERS, Kind, planned
from rdma_fabric.state import Absent, Maybe, NodeState, PortSettings
from rdma_fabric.templating import render


def probes(wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
    """All fields of all bnxt ports that have a value."""
    found: list[Probe] = []
    for port in host.ports_of(hw, "bnxt"):
        state = wanted.port(port.name)
        if state is not None:
            one = _Port(port, state.settings, planned(hw))
            found += common.rdma_mtu(port, state.settings, host.NETDEV_BOUND)
            found += [*one.classification(), *one.classes(), *one.marking()]
            found += common.rdma_cm(port, state.settings)
    return tuple(found)


@cache
def _script() -> str:
    return render("nic_bnxt/read.sh.j2", Library(parameters=PARAMETERS))


class _Port:
    """The probes of one port."""

    def __init__(self, port: PortHardware, settings: PortSettings, kind: Kind) -> None:
        self.port, self.settings, self.qos, self.kind = port, settings, settings.qos, kind
        parameters = settings.marking.parameters
        self.values = {name: value for name, value in parameters if not isinstance(value, Absent)}
        asked = (name for name in self.values if name not in OWN)
        device = "{device}" if port.rdma else ""
        self.argv = (port.name, "{bdf}", device, " ".join(asked))

    def _told(self, key: str, words: str = r"[\w,]+") -> Reading:
        """One line of the script."""
        return Reading(rf"^{key} ({words})$", self.argv, _script())

    def _probe(self, key: str, accept: object, *readings: Reading, **more: object) -> Probe:
        accepted = accept if isinstance(accept, tuple) else (accept,)
        return common.port_probe(self.port, key, self.settings, accepted, *readings, **more)

    # -- how a packet gets its priority

    def classification(self) -> Iterator[Probe]:
        """Trust, DSCP map, who owns DCBX."""
        qos = self.qos
        if qos.trust in ("dscp", "pcp", "both"):
            if self.kind.cc == "configfs":
                tags = "off" if qos.trust == "dscp" else "on"
                yield self._probe("qos.trust", tags, self._told("VLAN0"))
            else:
                yield self._probe("qos.trust", qos.trust, self._told("ENTRIES"))
        if isinstance(qos.dscp_to_priority, tuple):
            points = tuple(map(str, qos.dscp_to_priority))
            yield self._probe("qos.dscp_to_priority", points, self._told("DSCP2PRIO"), how="table")
        if qos.dcbx in ("none", "firmware"):
            argv = ("dcb", "dcbx", "show", "dev", self.port.name)
            accept = "host" if qos.dcbx == "none" else "firmware"
            reading = Reading(r"\b(host)\b", argv, none="firmware", when=r"\S")
            yield self._probe("qos.dcbx", accept, reading)
        yield from common.global_pause(self.port, self.settings)

    # -- what each priority is given

    def classes(self) -> Iterator[Probe]:
        """PFC, then the traffic classes of all eight priorities."""
        told = map(self._told, ("PFC", *table.TABLE))
        yield from common.class_table(self.port, self.settings, *told)

    # -- what the port writes into its packets

    def marking(self) -> Iterator[Probe]:
        """DCQCN's one switch, what CNPs bear, parameters."""
        marking = self.settings.marking
        for role, roles in (("np", marking.np), ("rp", marking.rp)):
            if isinstance(roles, tuple):
                yield self._probe(f"marking.{role}", _list(roles), self._told("ROLES"))
        at = "CNP_PRIO" if self.kind.profile == "0" else "CNP_AT"
        numbers: tuple[tuple[str, str, Maybe[int]], ...] = (
            ("marking.cnp_dscp", "CNP_DSCP", marking.cnp_dscp),
            ("marking.cnp_priority", at, marking.cnp_priority),
        )
        for key, line, value in numbers:
            if isinstance(value, int):
                yield self._probe(key, value, self._told(line))
        for name, text in self.values.items():
            yield self._probe(f"marking.parameters.{name}", text, self._told(OWN.get(name, f"CC_{name}")))


def _list(roles: tuple[int, ...]) -> str:
    return ",".join(map(str, roles)) or NONE
