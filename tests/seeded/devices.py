"""Simulated switches that hold a sound configuration, and what an administrator does to them.

The lines are a person's, typed on the device; what they make of it is read back through the platform's own
questions and parser.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import yaml

from rdma_fabric import platforms
from rdma_fabric.hardware import Hardware
from rdma_fabric.lab.discovery import device_class
from rdma_fabric.lab.planned import lab_nodes
from rdma_fabric.lab.simulators._contract import Device, Reply, Session
from rdma_fabric.resolve import Resolved
from rdma_fabric.state import Observation
from tests.support.drive import Drive

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]\r?")
_USERS = {"sonic": "admin"}
_LOGIN = {"arista_eos": ("terminal width 511", "terminal length 0")}


class _Plain(Session):
    """A login without a terminal's escapes, which the product's driver takes away."""

    def __init__(self, inner: Session) -> None:
        self.inner = inner

    def prompt(self) -> str:
        return _ESCAPES.sub("", self.inner.prompt())

    def run(self, line: str) -> Reply:
        reply = self.inner.run(line)
        return replace(reply, text=_ESCAPES.sub("", reply.text))

    def closed(self) -> None:
        self.inner.closed()


class _Drive(Drive):
    @property
    def session(self) -> Session:
        if self._session is None:
            self._session = _Plain(self.device.open(self.user))
            for line in self.login:
                self._session.run(line)
            if self.platform.dialect.enable:
                self._session.run("enable")
        return self._session


@dataclass
class Switch:
    """One simulated switch that was brought to the intent."""

    name: str
    hw: Hardware
    device: Device
    sound: str = field(init=False)
    """The device's state as JSON."""

    def observe(self) -> Observation:
        """What a read-only session shows."""
        return self._drive().observe(self.hw)

    def after(self, lines: tuple[str, ...]) -> tuple[str, Observation]:
        """(what the device said, what it shows) after an administrator's lines; then it is sound again."""
        said = self.device.somebody(lines)
        found = self.observe()
        self.device.restore(json.loads(self.sound))
        return said, found

    def _drive(self) -> Drive:
        platform = self.hw.base
        return _Drive(
            self.device,
            platforms.platform(platform),
            user=_USERS.get(platform, "fabric"),
            login=_LOGIN.get(platform, ()),
        )


def switch(resolved: Resolved, name: str) -> Switch:
    """The switch of that name, blank, then brought to the intent as a push does it."""
    facts = next(node.facts for node in lab_nodes(resolved.inventory) if node.facts.name == name)
    plan = resolved.plans[name]
    made = Switch(name, plan.hardware, device_class(facts.platform)(facts, time.monotonic))
    made._drive().to(platforms.realize(plan.state, plan.hardware).state, plan.hardware)
    made.sound = json.dumps(made.device.dump())
    return made


@dataclass(frozen=True)
class Typed:
    """Lines with {port}, the setting that they spoil, and whether they spoil the whole node."""

    kind: str
    lines: tuple[str, ...]
    settings: tuple[str, ...]
    whole: bool = False


def _eos(kind: str, *lines: str, settings: str | tuple[str, ...], whole: bool = False) -> Typed:
    names = (settings,) if isinstance(settings, str) else settings
    at = () if whole else ("interface {port}",)
    return Typed(kind, ("configure", *at, *lines, "end"), names, whole)


def _sonic(kind: str, *lines: str, settings: str | tuple[str, ...], whole: bool = False) -> Typed:
    return Typed(kind, lines, (settings,) if isinstance(settings, str) else settings, whole)


def _db(command: str) -> str:
    return f"sonic-db-cli CONFIG_DB {command}"


def _nv(kind: str, *lines: str, settings: str | tuple[str, ...], whole: bool = False) -> Typed:
    names = (settings,) if isinstance(settings, str) else settings
    return Typed(kind, (*lines, "nv config apply -y"), names, whole)


PFC, GUARDED = "PFC priorities", "watchdog priorities"
TYPED: Mapping[str, tuple[Typed, ...]] = {
    "arista_eos": (
        _eos("mtu", "no switchport", "mtu 1500", settings="mtu"),
        _eos("mtu between need and hosts", "no switchport", "mtu 8000", settings="mtu"),
        _eos("no trust", "no qos trust", settings="trust"),
        _eos("other trust", "qos trust cos", settings="trust"),
        _eos("no pfc priority", "no priority-flow-control priority 3", settings=(PFC, GUARDED)),
        _eos("no pfc", "no priority-flow-control", settings=(PFC, GUARDED)),
        _eos("more pfc", "priority-flow-control priority 5 no-drop", settings=(PFC, GUARDED)),
        _eos("no watchdog", "no priority-flow-control pause watchdog", settings=GUARDED),
        _eos("no ecn", "uc-tx-queue 3", "no random-detect ecn minimum-threshold", settings="priority 3 ECN"),
        _eos(
            "other ecn",
            "uc-tx-queue 3",
            "random-detect ecn minimum-threshold 50 kbytes maximum-threshold 90 kbytes max-mark-probability 7"
            " weight 0",
            settings="priority 3 ECN",
        ),
        _eos("other share", "uc-tx-queue 3", "bandwidth percent 10", settings="priority 3 scheduler"),
        _eos("global pause", "flowcontrol receive on", settings="global pause"),
        _eos("dcbx", "dcbx mode ieee", settings="DCBX mode"),
        _eos("roce best effort", "qos map dscp 26 to traffic-class 0", settings="DSCP map", whole=True),
        _eos("cnps lossless", "qos map dscp 48 to traffic-class 3", settings="DSCP map", whole=True),
        _eos(
            "slow watchdog",
            "priority-flow-control pause watchdog default timeout 2",
            settings="watchdog detect",
            whole=True,
        ),
        _eos("pfc off everywhere", "priority-flow-control all off", settings=(PFC, GUARDED), whole=True),
    ),
    "sonic": (
        _sonic("mtu", "sudo config interface mtu {port} 1500", settings="mtu"),
        _sonic("mtu between need and hosts", "sudo config interface mtu {port} 8000", settings="mtu"),
        _sonic(
            "no pfc priority",
            "sudo config interface pfc priority {port} 3 off",
            settings=(PFC, GUARDED),
        ),
        _sonic("no trust", _db("HDEL 'PORT_QOS_MAP|{port}' dscp_to_tc_map"), settings=("trust", "DSCP map")),
        _sonic("vendor's map", _db("HSET 'PORT_QOS_MAP|{port}' dscp_to_tc_map AZURE"), settings="DSCP map"),
        _sonic("more pfc", _db("HSET 'PORT_QOS_MAP|{port}' pfc_enable 3,4"), settings=(PFC, GUARDED)),
        _sonic(
            "no watchdog",
            _db("DEL 'PFC_WD|{port}'"),
            settings=(GUARDED, "watchdog detect", "watchdog restore", "watchdog action"),
        ),
        _sonic("slow watchdog", _db("HSET 'PFC_WD|{port}' detection_time 1000"), settings="watchdog detect"),
        _sonic("other watchdog", _db("HSET 'PORT_QOS_MAP|{port}' pfcwd_sw_enable 4"), settings=GUARDED),
        _sonic("no ecn", _db("HDEL 'QUEUE|{port}|3' wred_profile"), settings="priority 3 ECN"),
        _sonic("long cable", _db("HSET 'CABLE_LENGTH|AZURE' {port} 300m"), settings="cable length"),
        _sonic(
            "resumes above its pause",
            _db("HDEL 'BUFFER_PROFILE|pg_lossless_400000_5m_profile' dynamic_th"),
            _db("HSET 'BUFFER_PROFILE|pg_lossless_400000_5m_profile' static_th 15000 xon 18432"),
            settings="resume point of priority 3",
            whole=True,
        ),
        _sonic(
            "no room behind the pause",
            _db("HSET 'BUFFER_PROFILE|pg_lossless_400000_5m_profile' xoff 9216"),
            settings="priority 3 headroom",
            whole=True,
        ),
        _sonic("roce best effort", _db("HSET 'DSCP_TO_TC_MAP|FABRIC' 26 0"), settings="DSCP map", whole=True),
        _sonic(
            "other ecn",
            _db("HSET 'WRED_PROFILE|FABRIC' green_min_threshold 2000000"),
            settings="priority 3 ECN",
            whole=True,
        ),
        _sonic(
            "other share",
            _db("HSET 'SCHEDULER|FABRIC.3' weight 5"),
            settings="priority 3 scheduler",
            whole=True,
        ),
    ),
    "cumulus": (
        _nv("mtu", "nv set interface {port} link mtu 1500", settings="mtu"),
        _nv("mtu between need and hosts", "nv set interface {port} link mtu 8000", settings="mtu"),
        _nv("no map", "nv unset interface {port} qos mapping", settings=("trust", "DSCP map")),
        _nv(
            "no pfc",
            "nv set interface {port} qos pfc-watchdog state disable",
            "nv unset interface {port} qos pfc",
            settings=(PFC, GUARDED, "cable length"),
        ),
        _nv("no ecn", "nv unset interface {port} qos congestion-control", settings="ECN"),
        _nv("no scheduler", "nv unset interface {port} qos egress-scheduler", settings="scheduler"),
        _nv("no watchdog", "nv set interface {port} qos pfc-watchdog state disable", settings=GUARDED),
        _nv(
            "roce best effort",
            "nv set qos mapping fabric-1 dscp 26 switch-priority 0",
            settings="DSCP map",
            whole=True,
        ),
        _nv(
            "cnps lossless",
            "nv set qos mapping fabric-1 dscp 48 switch-priority 3",
            settings="DSCP map",
            whole=True,
        ),
        _nv(
            "other trust", "nv set qos mapping fabric-1 trust l2", settings=("trust", "DSCP map"), whole=True
        ),
        _nv(
            "other ecn",
            "nv set qos congestion-control fabric-1 traffic-class 3 min-threshold 2000000",
            settings="priority 3 ECN",
            whole=True,
        ),
        _nv("more pfc", "nv set qos pfc fabric-1 switch-priority 5", settings=(PFC, GUARDED), whole=True),
        _nv("no pause sent", "nv set qos pfc fabric-1 tx disable", settings=PFC, whole=True),
        _nv("long cable", "nv set qos pfc fabric-1 cable-length 300", settings="cable length", whole=True),
        _nv(
            "never resumes",
            "nv set qos pfc fabric-1 xon-threshold 12000",
            settings="resume point of priority 3",
            whole=True,
        ),
        _nv("slow watchdog", "nv set qos pfc-watchdog robustness 8", settings="watchdog detect", whole=True),
    ),
}
"""What can be typed, by platform."""


# ---------------------------------------------------------------- hosts


@cache
def _recorded() -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(Path(__file__).with_name("host.answers").read_text("utf-8"))
    return found


@dataclass(frozen=True)
class Edit:
    """One place of a host's answers that shows something else: the answer, what stands there, the new."""

    kind: str
    part: str
    """system, link or nic."""
    old: str
    new: str
    settings: tuple[str, ...]
    severity: str = "error"


def host(hw: Hardware, edit: Edit | None = None, port: str = "") -> Observation:
    """What a host with mlx5 ports shows, edited for one port (or for the node)."""
    texts = dict(_recorded())

    def part(name: str, of: str = "") -> str:
        text = texts[name]
        if edit is not None and edit.part == name and of in ("", port):
            assert edit.old in text, f"{edit.kind}: {edit.old!r} is not in the recorded answer"
            text = text.replace(edit.old, edit.new)
        return text

    nics = "".join(_filled(part("nic", one.name), one.name, one.rdma) for one in hw.ports)
    links = "".join(_filled(part("link", one.name), one.name, one.rdma) for one in hw.ports)
    files = texts["files"]
    for name in ("networkd", "drop-ins"):
        rows = "".join(_filled(part(name, one.name), one.name, one.rdma) + "\n" for one in hw.ports)
        files = files.replace(f"{{{name}}}", rows)
    (cards,) = platforms.platform("nic_mlx5").questions(hw)
    answers = {platforms.questions(hw)[0]: part("system") + links + files, cards: nics}
    return platforms.parse(answers, hw)


def _filled(text: str, port: str, rdma: str) -> str:
    return text.replace("{port}", port).replace("{rdma}", rdma)


EDITS: tuple[Edit, ...] = (
    Edit("mtu", "link", '"mtu":9000', '"mtu":1500', ("mtu",)),
    Edit("mtu a little lower", "link", '"mtu":9000', '"mtu":8900', ("mtu",)),
    Edit("trust", "nic", "trust state: dscp", "trust state: pcp", ("trust",)),
    Edit("roce best effort", "nic", "prio:3 dscp:26", "prio:0 dscp:26", ("DSCP map",)),
    Edit("cnps lossless", "nic", "prio:6 dscp:48", "prio:3 dscp:48", ("DSCP map",)),
    Edit("no pfc", "nic", "enabled     0   0   0   1", "enabled     0   0   0   0", (PFC, GUARDED)),
    Edit("more pfc", "nic", "enabled     0   0   0   1   0", "enabled     0   0   0   1   1", (PFC, GUARDED)),
    Edit("firmware", "nic", "DCBX mode: OS controlled", "DCBX mode: Firmware controlled", ("DCBX mode",)),
    Edit("global pause", "nic", "RX:\t\toff", "RX:\t\ton", ("global pause",)),
    Edit("cnp dscp", "nic", "\nnp_cnp_dscp=48\nnp_cnp_prio", "\nnp_cnp_dscp=4\nnp_cnp_prio", ("CNP DSCP",)),
    Edit("cnp priority", "nic", "\nnp_cnp_prio=6", "\nnp_cnp_prio=7", ("CNP priority",)),
    Edit("dscp as a byte", "nic", "@@tos {port}\n106", "@@tos {port}\n26", ("RDMA-CM ToS",)),
    Edit("not marked", "nic", "@@tos {port}\n106", "@@tos {port}\n0", ("RDMA-CM ToS",)),
    Edit("roce v1", "nic", "RoCE v2", "IB/RoCE v1", ("RoCE v2",)),
    Edit(
        "other share",
        "nic",
        "tc: 3 ratelimit: unlimited, tsa: ets, bw: 50%",
        "tc: 3 ratelimit: unlimited, tsa: ets, bw: 20%",
        ("priority 3 scheduler",),
    ),
    Edit("other cable", "nic", "Cable len: 5", "Cable len: 300", ("cable length",)),
    Edit(
        "no stall guard",
        "nic",
        "pfc-prevention-tout: 200",
        "pfc-prevention-tout: 0",
        ("watchdog detect", GUARDED),
    ),
    Edit(
        "kernel setting",
        "system",
        "net.ipv4.conf.all.arp_ignore = 1\n",
        "net.ipv4.conf.all.arp_ignore = 0\n",
        ("arp_ignore",),
    ),
    Edit("module", "system", "rdma_cm\nrdma_ucm\n\n@", "rdma_cm\n\n@", ("modules.rdma_ucm",)),
    Edit("job environment", "system", "NCCL_IB_TC=104", "NCCL_IB_TC=26", ("NCCL_IB_TC",)),
    Edit("limit", "system", "memlock unlimited", "memlock 65536", ("memlock",)),
    Edit("agent", "system", "@@agents\n\n@=1", "@@agents\nlldpad\n\n@=0", ("owners",), "warning"),
)
"""What can be edited in a host's answers."""
