"""mlx5: what a host can judge of its own ports, by mlnx_qos or dcb, ethtool and the driver's files.

Patterns of tool output are those of `_nic_mlx5_read`; a value that no tool of the host tells stays unjudged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_probes as common
from rdma_fabric.platforms._contract import Probe, Reading
from rdma_fabric.platforms._nic_mlx5_knobs import PARAMETERS, gbps
from rdma_fabric.state import (
    Absent,
    Amount,
    ClassState,
    Maybe,
    NodeState,
    PortSettings,
    Share,
    pfc_priorities,
)
from rdma_fabric.templating import render

_NIC: Final = "mlx5"
_RESET: Final = "NV settings count after a reset of the card, which nobody makes but you"
_PRIORITIES_OF_TC: Final = r"[^\n]*(?P<at>(?:\n[ \t]+priority:[ \t]+\d)*)"
"""What follows the values of a traffic class in the print of mlnx_qos: the priorities that it serves."""


def probes(wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
    """All fields of all mlx5 ports that have a value."""
    found: list[Probe] = []
    for port in host.ports_of(hw, _NIC):
        state = wanted.port(port.name)
        if state is not None:
            one = _Port(port, state.settings)
            found += common.rdma_mtu(port, state.settings, host.NETDEV_BOUND)
            found += [*one.classification(), *one.classes(), *one.ethtool(), *one.dcqcn(), *one.memory()]
            found += common.rdma_cm(port, state.settings)
    return tuple(found)


@cache
def _nv_script() -> str:
    return render("nic_mlx5/read_nv.sh.j2", None)


class _Port:
    """The probes of one port."""

    def __init__(self, port: PortHardware, settings: PortSettings) -> None:
        self.port, self.settings, self.qos = port, settings, settings.qos

    def _probe(self, key: str, accept: object, *readings: Reading, **more: object) -> Probe:
        accepted = accept if isinstance(accept, tuple) else (accept,)
        return common.port_probe(self.port, key, self.settings, accepted, *readings, **more)

    def _mlnx(self, pattern: str, none: str = "", when: str = "") -> Reading:
        return Reading(pattern, ("mlnx_qos", "-i", self.port.name, "-a"), none=none, when=when)

    def _dcb(
        self, thing: str, pattern: str, none: str = "", when: str = "", places: tuple[int, ...] = ()
    ) -> Reading:
        """`dcb` without its words of JSON where `thing` is "dcbx", which is plain text."""
        json = () if thing == "dcbx" else ("-j",)
        argv = ("dcb", *json, thing, "show", "dev", self.port.name)
        return Reading(pattern, argv, none=none, when=when, places=places)

    # -- how a packet gets its priority

    def classification(self) -> Iterator[Probe]:
        """Trust, DSCP map, who owns DCBX."""
        qos = self.qos
        if qos.trust in ("dscp", "pcp"):
            # The driver trusts DSCP exactly while there is an entry (Linux 6.1 mlx5e_dcbnl_ieee_setapp).
            entry = self._dcb("app", r'"(dscp)_prio":\s*\[\s*\[', none="pcp", when=common.NO_DSCPS)
            yield self._probe(
                "qos.trust", qos.trust, self._mlnx(r"^Priority trust state: (dscp|pcp)\s*$"), entry
            )
        if isinstance(qos.dscp_to_priority, tuple):
            # With trust pcp there is no map, and the probe of trust has told it.
            row = r"^\s+prio:(?P<value>\d) dscp:(?P<at>[\d,]+)"
            listed = self._mlnx(row, none="no map", when=r"^Priority trust state: pcp\s*$")
            # Of the three kinds of entries those for TCP and UDP ports have numbers with more digits.
            pair = r"\[\s*(?P<at>\d{1,2})\s*,\s*(?P<value>[0-7])\s*[,\]]"
            entries = self._dcb("app", pair, none="no map", when=common.NO_DSCPS)
            points = tuple(map(str, qos.dscp_to_priority))
            yield self._probe("qos.dscp_to_priority", points, listed, entries, how="table")
        if qos.dcbx in ("none", "firmware"):
            accept = ("OS", "host") if qos.dcbx == "none" else ("Firmware", "firmware")
            words = rf"{common.DCB_DCBX}(?: {common.DCB_DCBX})*\s*\Z"
            mode = self._dcb("dcbx", rf"\A(host)(?: {words}|\s*\Z)", none="firmware", when=rf"\A{words}")
            shown = self._mlnx(r"^DCBX mode: (OS|Firmware) controlled\s*$")
            yield self._probe("qos.dcbx", accept, shown, mode)

    # -- what each priority is given

    def classes(self) -> Iterator[Probe]:
        """PFC, then what the traffic classes and buffers of all eight priorities are."""
        on = pfc_priorities(self.qos)
        if not isinstance(on, Absent):
            text = ",".join(map(str, on)) or "none"
            rows = self._mlnx(r"^\s+enabled((?:[ \t]+\d+){8})\s*$")
            bits = self._dcb("pfc", _eight("prio_pfc", "true|false"))
            yield self._probe("qos.pfc", text, rows, bits, how="bits")
        yield from self._each(
            "queue",
            lambda one: str(one.queue) if isinstance(one.queue, int) else "",
            self._mlnx(rf"^tc: (?P<value>\d){_PRIORITIES_OF_TC}"),
            self._dcb("ets", _eight("prio_tc", "[0-7]")),
        )
        queues = self._queues()
        yield from self._each(
            "share",
            _scheduler,
            self._mlnx(rf"^tc: \d (?:ratelimit: [^,]*, )?tsa: (?P<value>\w+){_PRIORITIES_OF_TC}"),
            self._dcb("ets", _eight("tc_tsa", '"[a-z]+"'), places=queues),
        )
        yield from self._each(
            "share",
            lambda one: (
                str(one.share.weight) if _scheduler(one) == "ets" and isinstance(one.share, Share) else ""
            ),
            self._mlnx(
                rf"^tc: \d [^\n]*tsa: ets, bw: (?P<value>\d+)%{_PRIORITIES_OF_TC}", none="no TC has one"
            ),
            self._dcb("ets", _eight("tc_bw", r"\d{1,3}"), places=queues),
        )
        yield from self._each(
            "share",
            self._cap,
            self._mlnx(rf"^tc: \d ratelimit: (?P<value>unlimited|\d+){_PRIORITIES_OF_TC}"),
        )
        yield from self._each(
            "group",
            lambda one: str(one.group) if isinstance(one.group, int) else "",
            self._mlnx(r"^\s+buffer((?:[ \t]+\d+){8})\s*$"),
            self._dcb("buffer", _eight("prio_buffer", "[0-7]")),
        )

        yield from self._buffers()

    def _buffers(self) -> Iterator[Probe]:
        """Sizes of receive buffers that the intent gives, told for every priority of a buffer."""
        groups = tuple(one.group for one in self.qos.classes if isinstance(one.group, int))
        if len(groups) != len(self.qos.classes):
            return
        sizes = r"^Receive buffer size \(bytes\):[ \t]*((?:\d+,){8})"
        readings = (self._mlnx(sizes), self._dcb("buffer", _eight("buffer_size", r"\d+")))
        yield from self._each(
            "headroom",
            lambda one: str(one.headroom.value) if isinstance(one.headroom, Amount) else "",
            *(replace(one, source=groups) for one in readings),
        )

    def memory(self) -> Iterator[Probe]:
        """NV settings: right is what is in force and stays so after the next reset."""
        pairs = [(name, one) for name, one in self.settings.nic.nv if isinstance(one, str)]
        argv = (self.port.name, "{bdf}", *(name for name, _ in pairs))
        for name, wish in pairs:
            reading = Reading(rf"^{name} (.+)$", argv, _nv_script())
            yield self._probe(f"nic.nv.{name}", wish, reading, help=_RESET)

    def _each(self, field: str, right: Callable[[ClassState], str], *readings: Reading) -> Iterator[Probe]:
        """One probe for all eight priorities, told one by one; none where no priority has a wish."""
        accept = tuple(map(right, self.qos.classes))
        if any(accept):
            one = self._probe(f"qos.classes.0.{field}", accept, *readings, how="table")
            yield common.for_each(one, field)

    def _queues(self) -> tuple[int, ...]:
        """Priority of every traffic class, since dcb lists by traffic class."""
        found = list(range(8))
        for priority, one in enumerate(self.qos.classes):
            if isinstance(one.queue, int):
                found[one.queue] = priority
        return tuple(found)

    def _cap(self, one: ClassState) -> str:
        if not isinstance(one.share, Share) or isinstance(one.share.cap, Absent):
            return ""
        return "unlimited" if one.share.cap is None else str(gbps(one.share.cap, self.port.speed_gbps))

    def ethtool(self) -> Iterator[Probe]:
        """Global pause, stall time, cable length."""
        qos = self.qos
        yield from common.global_pause(self.port, self.settings)
        if isinstance(qos.cable_m, int):
            length = self._mlnx(r"^Cable len: (\d+)\s*$")
            yield self._probe(
                "qos.cable_m", qos.cable_m, length, self._dcb("pfc", r'"delay":\s*(\d+)\s*[,}]')
            )
        if isinstance(qos.watchdog.detect_ms, int):
            argv = ("ethtool", "--get-tunable", self.port.name, "pfc-prevention-tout")
            reading = Reading(r"^pfc-prevention-tout:\s*(\d+)\s*$", argv)
            # 65535 means auto, which is 100 ms.
            accept = (str(qos.watchdog.detect_ms), *(("65535",) if qos.watchdog.detect_ms == 100 else ()))
            yield self._probe("qos.watchdog.detect_ms", accept, reading)

    # -- what the port writes into its packets

    def dcqcn(self) -> Iterator[Probe]:
        """Roles per priority, parameters, forced traffic class."""
        marking = self.settings.marking
        for role, roles in (("np", marking.np), ("rp", marking.rp)):
            if isinstance(roles, tuple):
                path = f"/sys/class/net/{self.port.name}/ecn/roce_{role}/enable/*"
                reading = Reading(r"/(?P<at>\d)=(?P<value>\d)$", path=path)
                text = ",".join(map(str, roles)) or "none"
                yield self._probe(f"marking.{role}", text, reading, how="bits")
        files = {name: (role, file) for name, role, file in PARAMETERS}
        values: list[tuple[str, str, Maybe[str | int]]] = [
            ("marking.cnp_dscp", "np_cnp_dscp", marking.cnp_dscp),
            ("marking.cnp_priority", "np_cnp_prio", marking.cnp_priority),
        ]
        values += [(f"marking.parameters.{name}", name, value) for name, value in marking.parameters]
        for key, name, value in values:
            if not isinstance(value, Absent) and name in files:
                role, file = files[name]
                vendor = f"/sys/class/net/{self.port.name}/ecn/roce_{role}/{file}"
                inbox = f"/sys/kernel/debug/mlx5/{{bdf}}/cc_params/{name}"
                readings = (Reading(r"^(-?\d+)$", path=vendor), Reading(r"^(-?\d+)$", path=inbox))
                yield self._probe(key, value, *readings)
        if not isinstance(marking.traffic_class, Absent):
            forced = marking.traffic_class
            tos = ("-1",) if forced is None else tuple(map(str, range(forced & 0xFC, (forced & 0xFC) + 4)))
            path = "/sys/class/infiniband/{device}/tc/1/traffic_class"
            reading = Reading(r"\AGlobal tclass=(\d+)\s*$", path=path, none="-1", when=r"\A\s*\Z")
            yield self._probe("marking.traffic_class", tos, reading)


def _eight(name: str, item: str) -> str:
    """A list of dcb's JSON with as many items as there are priorities."""
    return rf'"{name}":\s*\[((?:\s*(?:{item})\s*,?){{8}})\]'


def _scheduler(one: ClassState) -> str:
    """As mlnx_qos and dcb write it; "" where nobody asks."""
    if one.share is None:
        return "vendor"
    if not isinstance(one.share, Share):
        return ""
    return "strict" if one.share.scheduler == "strict" else "ets"
