"""Linux: what a host can judge of its own sysctls, modules, limits, job environment, MTUs and links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms._contract import Probe, Reading
from rdma_fabric.platforms._host_probes import port_probe
from rdma_fabric.platforms._linux_boot import SERVICE_LIMITS, UNLIMITED
from rdma_fabric.platforms._linux_job import PLACES, meant
from rdma_fabric.platforms._linux_names import AGENTS, PATHS, UNSET
from rdma_fabric.state import Absent, NodeState, SystemState
from rdma_fabric.templating import render

_LETTERS = {"1": "Y", "0": "N"}
"""A module parameter of type bool is shown as a letter (Linux kernel/params.c, param_get_bool)."""
_LIMIT_FILES = "/etc/security/limits.conf /etc/security/limits.d/*.conf"
"""In the order of pam_limits(8)."""


_AFTER_OURS = ("/etc/profile.d/[g-z]*.sh", "/etc/bash.bashrc", "/etc/bashrc")
"""Files that a login reads after our own of /etc/profile.d."""


def probes(wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
    """The node, then its ports in their order."""
    found = list(_system(wanted.system))
    for port in hw.ports:
        state = wanted.port(port.name)
        if state is not None:
            found += _link(port)
            if not isinstance(state.settings.mtu.ip, Absent):
                path = f"/sys/class/net/{port.name}/mtu"
                reading = Reading(r"^(\d+)$", path=path)
                found.append(port_probe(port, "mtu.ip", state.settings, (state.settings.mtu.ip,), reading))
    return tuple(found)


def _link(port: PortHardware) -> Iterator[Probe]:
    """Up, and as fast as the plan says. Some virtual devices tell neither: "unknown", -1 or an error."""
    if port.nic == "ib":
        return  # the netdev is IPoIB, which nobody need use; the part of the NIC judges the link
    root = f"/sys/class/net/{port.name}"
    state = Reading(r"^(\w+)$", path=f"{root}/operstate")
    help = "look at the cable, the optics and the switch port"
    yield Probe(port.name, "link", "link", "up", ("up", "unknown"), (state,), help=help)
    if port.speed_gbps and port.kind in ("physical", "vf"):
        speed = Reading(r"^([1-9]\d*)$", path=f"{root}/speed")
        mbps = str(port.speed_gbps * 1000)
        yield Probe(port.name, "speed", "speed in Mb/s", mbps, (mbps,), (speed,), help=help, must=False)


# ---------------------------------------------------------------- the node


def _system(wanted: SystemState) -> Iterator[Probe]:
    keys = [key for key, value in host.managed(wanted.sysctl) if value != UNSET]
    shown = ("sysctl", "-e", *keys)
    for key, value in host.managed(wanted.sysctl):
        if value != UNSET:
            yield _node(f"sysctl.{key}", value, Reading(rf"^{re.escape(key)} = (.*)$", shown))
    for name, value in host.managed(wanted.modules):
        if value is True:
            yield _module(name)
    for name, value in host.managed(wanted.module_options):
        yield _option(name, value)
    for name, value in host.managed(wanted.limits):
        if value != UNSET:
            yield from _limit(name, value)
    for name, value in host.managed(wanted.environment):
        if value != UNSET:
            yield _variable(name, value)
    yield _agents()


def _node(key: str, value: str, reading: Reading, *also: str) -> Probe:
    """One setting of the node, named as drift names it."""
    group, _, name = key.partition(".")
    title = f"{_TITLES.get(group, group)} {name}"
    return Probe("", key, title, value, (" ".join(value.split()), *also), (reading,))


_TITLES = {"module_options": "module option"}


def _module(name: str) -> Probe:
    """Loaded, or built into the kernel: some of those are listed in modules.builtin alone."""
    listed = Reading(rf"^({name}) ", path="/proc/modules")
    there = Reading(rf"/({name})$", names=f"/sys/module/{name}")
    spelled = name.replace("_", "[-_]")
    built = Reading(rf"/({spelled})[.]ko", path="/lib/modules/{kernel}/modules.builtin", none="off")
    words = (name, name.replace("_", "-"))
    return Probe("", f"modules.{name}", f"module {name}", "on", words, (listed, there, built))


def _option(name: str, value: str) -> Probe:
    """A module that is not loaded has no parameters: then it is the module that is missing."""
    module, _, key = name.partition(".")
    reading = Reading(r"\A(.*)$", path=f"/sys/module/{module}/parameters/{key}")
    one = _node(f"module_options.{name}", value, reading, *filter(None, [_LETTERS.get(value)]))
    return replace(one, must=False)


def _limit(name: str, value: str) -> Iterator[Probe]:
    """Both sides. Of services from the process, of logins from the files that the next one reads."""
    unit, _, item = name.rpartition(".")
    soft, _, hard = value.partition("/")
    if unit:
        yield _service_limit(unit, item, soft, hard or soft)
        return
    for side, number in (("soft", soft), ("hard", hard or soft)):
        pattern = rf"^[ \t]*\*[ \t]+(?:{side}|-)[ \t]+{re.escape(item)}[ \t]+(\S+)"
        reading = Reading(pattern, path=_LIMIT_FILES, none="not set")
        words = (number, "infinity", "-1") if number == UNLIMITED else (number,)
        yield Probe("", f"limits.{name}", f"limit {name}", value, words, (reading,), "last")


def _service_limit(unit: str, item: str, soft: str, hard: str) -> Probe:
    """A service that does not run has no limits yet."""
    _, scale, title = SERVICE_LIMITS[item]
    sides = [side if side == UNLIMITED else str(int(side) * scale) for side in (soft, hard)]
    script = render("_shared/host/service_limits.sh.j2", None)
    reading = Reading(rf"^{title} +(\S+ +\S+)", (unit,), script)
    key, value = f"limits.{unit}.{item}", soft if soft == hard else f"{soft}/{hard}"
    return Probe("", key, f"limit {unit}.{item}", value, (" ".join(sides),), (reading,), must=False)


def _variable(name: str, value: str) -> Probe:
    """What the next login gets: a file of others that wins over ours, else ours."""
    own = PATHS.nccl if name.startswith("NCCL_") else PATHS.profile
    others = " ".join(PLACES if own == PATHS.nccl else _AFTER_OURS)
    # In any quotes, and with a comment behind it, as drift reads it.
    assigned = rf"""^[ \t]*(?:export[ \t]+)?{name}=["']?(.*?)["']?[ \t]*(?:[ \t]#.*)?$"""
    readings = (Reading(assigned, path=others), Reading(assigned, path=own, none="not set"))
    values = {value}
    if value.isdigit():  # of a ToS byte the two ECN bits do not count
        values = {number for number in map(str, range(256)) if meant(name, number) == value} or values
    texts = (text for one in (value, *sorted(values)) for text in (one, shlex.quote(one).strip("'")))
    words = tuple(dict.fromkeys(texts))
    key = f"environment.{name}"
    return Probe("", key, f"environment {name}", value, words, readings, "last")


def _agents() -> Probe:
    """Programs that write the same NIC settings, by the 15 characters that the kernel keeps of a name."""
    pattern = rf"^({'|'.join(map(re.escape, AGENTS))})\s*$"
    reading = Reading(pattern, ("ps", "-e", "-o", "comm="), none="none")
    help = "stop and disable it, or let it not manage the fabric's ports"
    return Probe("", "owners", "other agents", "none", ("none",), (reading,), "set", help=help)
