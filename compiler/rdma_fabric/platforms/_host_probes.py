"""What all parts of a Linux host share for the local check: probes of ports, the check file, its program.

The check file holds one probe a line and nothing of the node itself, so that equal hosts have equal files.
`fabric-check` (playbooks/files) reads it on the host.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

from rdma_fabric.assets import playbooks
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms._contract import Artifact, Change, Probe, Put, Reading
from rdma_fabric.settings import group_of
from rdma_fabric.state import (
    Absent,
    ClassState,
    NodeState,
    Observation,
    PortSettings,
    Share,
    pfc_priorities,
)
from rdma_fabric.templating import render

FILE: Final = "/etc/fabric/check.json"
PROGRAM: Final = "/usr/local/sbin/fabric-check"
_TEMPLATE: Final = "_shared/host/check.json.j2"
FACT: Final = "local check"
"""Fact of an observation: SHA-256 of the check file and of its program, "-" for one that is not there."""
LINK: Final = "link "
"""Facts "link PORT": the kernel's word for the state of a port's link (operstates.rst)."""
ACCOUNT: Final = "account"
"""Fact of an observation: who asked; root where the login may become root."""
DCB_DCBX: Final = r"(?:lld-managed|cee|ieee|static)"
"""Words of `dcb dcbx show` after "host" (iproute2 dcb_dcbx.c)."""
NO_DSCPS: Final = r'\A\s*\{\s*(?:\}|"(?:ethtype|default|stream_port|dgram_port|port|pcp)_prio":[^{}]*\})\s*\Z'
"""`dcb -j app show` of a port without an entry for a DSCP; other text tells nothing of them."""
RDMA_MTU: Final = ("nic.rdma_mtu", "RDMA MTU")
"""(key, title) of a value that nobody wishes by itself: it follows from the netdev MTU."""


@dataclass(frozen=True, slots=True)
class Context:
    """For the check file's template."""

    scripts: tuple[str, ...]
    """Name and text of every shell script, as JSON."""
    probes: tuple[str, ...]


def port_probe(
    port: PortHardware,
    key: str,
    settings: PortSettings,
    accept: Iterable[object],
    *readings: Reading,
    **more: Any,
) -> Probe:
    """A probe of one setting, named and told as `drift` does."""
    group = group_of(key)
    return Probe(
        port.name,
        group.key,
        group.title,
        group.show(settings),
        tuple(map(str, accept)),
        readings,
        device=port.rdma,
        **more,
    )


def for_each(one: Probe, field: str) -> Probe:
    """A table over the eight priorities: every place that is wrong is told by its own name."""
    return replace(
        one,
        key=f"qos.classes.{{at}}.{field}",
        title=one.title.replace("priority 0", "priority {at}"),
        wanted="",
    )


def global_pause(port: PortHardware, settings: PortSettings) -> Iterator[Probe]:
    """802.3x pause, whatever the NIC: it is on when either side is."""
    wanted = settings.qos.global_pause
    if isinstance(wanted, bool):
        sides = ("on", "off") if wanted else ("off",)
        accepted = [
            f"RX: {one} TX: {two}" for one in sides for two in sides if wanted is ("on" in (one, two))
        ]
        side = r"[ \t]+(?:on|off)[ \t]*"
        reading = Reading(rf"^(RX:{side}\nTX:{side})$", ("ethtool", "-a", port.name))
        yield port_probe(port, "qos.global_pause", settings, accepted, reading)


def class_table(
    port: PortHardware, settings: PortSettings, pfc: Reading, queues: Reading, tsa: Reading, weights: Reading
) -> Iterator[Probe]:
    """PFC, then the traffic classes of all eight priorities as dcb tells them."""
    on = pfc_priorities(settings.qos)
    if not isinstance(on, Absent):
        text = ",".join(map(str, on)) or "none"
        yield port_probe(port, "qos.pfc", settings, (text,), pfc, how="bits")
    rows: tuple[tuple[str, Callable[[ClassState], str], Reading], ...] = (
        ("queue", _queue, queues),
        ("share", _scheduler, tsa),
        ("share", _weight, weights),
    )
    for field, right, reading in rows:
        accept = tuple(map(right, settings.qos.classes))
        if any(accept):
            one = port_probe(port, f"qos.classes.0.{field}", settings, accept, reading, how="table")
            yield for_each(one, field)


def _queue(one: ClassState) -> str:
    return str(one.queue) if isinstance(one.queue, int) else ""


def _scheduler(one: ClassState) -> str:
    """As dcb writes it; "" where nobody asks."""
    if not isinstance(one.share, Share):
        return ""
    return "strict" if one.share.scheduler == "strict" else "ets"


def _weight(one: ClassState) -> str:
    return str(one.share.weight) if isinstance(one.share, Share) and _scheduler(one) == "ets" else ""


def rdma_cm(port: PortHardware, settings: PortSettings) -> tuple[Probe, ...]:
    """ToS and RoCE version of RDMA-CM connections, whatever the NIC. The two ECN bits do not count."""
    marking = settings.marking
    found = []
    told = Reading("", ("{device}",), render("_shared/host/cma_read.sh.j2", None))
    if isinstance(marking.rdma_cm_tos, int):
        tos = marking.rdma_cm_tos & 0xFC
        reading = replace(told, pattern=r"^tos (\d+)$")
        found.append(port_probe(port, "marking.rdma_cm_tos", settings, range(tos, tos + 4), reading))
    if isinstance(marking.roce_v2, bool):
        word = "RoCE v2" if marking.roce_v2 else "IB/RoCE v1"
        reading = replace(told, pattern=r"^mode (.+)$")
        found.append(port_probe(port, "marking.roce_v2", settings, (word,), reading))
    return tuple(found)


def rdma_mtu(port: PortHardware, settings: PortSettings, bound: Mapping[int, int]) -> tuple[Probe, ...]:
    """The RDMA MTU that the wanted netdev MTU gives: as the device tells it, else by the NIC's bound."""
    steps = tuple(sorted((least, str(size)) for size, least in bound.items()))
    mtu = settings.mtu.ip
    reached = [step for step in steps if isinstance(mtu, int) and step[0] <= mtu]
    if not reached:
        return ()
    least, size = reached[-1]
    key, title = RDMA_MTU
    shown = Reading(r"^\s+active_mtu:\s+(\d+) \(\d\)\s*$", ("ibv_devinfo", "-d", "{device}"))
    netdev = Reading(r"^(\d+)$", path=f"/sys/class/net/{port.name}/mtu", none="none", steps=steps)
    readings = (shown, netdev) if port.rdma else (netdev,)
    told = f"the netdev MTU must be {least} or more"
    return (Probe(port.name, key, title, size, (size,), readings, device=port.rdma, help=told),)


def rdma_ports(
    ports: Iterable[PortHardware], wanted: NodeState, bound: Mapping[int, int]
) -> tuple[Probe, ...]:
    """RDMA MTU and RDMA-CM marking of the ports, which every RDMA NIC has."""
    found: list[Probe] = []
    for port in ports:
        state = wanted.port(port.name)
        if state is not None:
            found += (*rdma_mtu(port, state.settings, bound), *rdma_cm(port, state.settings))
    return tuple(found)


# ---------------------------------------------------------------- what a host has


@dataclass(frozen=True, slots=True)
class Asked:
    """For the question about our own files."""

    ports: tuple[str, ...] = ()
    files: tuple[str, ...] = (FILE, PROGRAM)


def question(hw: Hardware) -> str:
    """One shell script for any host: our files, the account, and the links of its ports."""
    ports = tuple(port.name for port in hw.ports if port.nic != "ib")
    return host.question("_shared/host/observe_own.sh.j2", Asked(ports))


def facts(answer: str) -> dict[str, str]:
    """What the answer to `question` says; nothing where it was not understood."""
    parts = host.sections(answer)
    found = {}
    account, digests = (parts.get(name, host.NOT_ASKED) for name in ("account", "local_check"))
    if account.ok and len(account.text.split()) == 1:
        found[ACCOUNT] = account.text.strip()
    for line in parts.get("link", host.NOT_ASKED).lines:
        port, _, state = line.partition(" ")
        if state.isalpha():
            found[f"{LINK}{port}"] = state
    words = digests.text.split()
    if digests.ok and len(words) == len(Asked().files):
        found[FACT] = " ".join(words)
    return found


# ---------------------------------------------------------------- files


def artifacts(probes: Iterable[Probe]) -> tuple[Artifact, ...]:
    """The check file; () where there is nothing to judge."""
    probes = tuple(probes)
    if not probes:
        return ()
    scripts = dict.fromkeys(one.script for probe in probes for one in probe.readings if one.script)
    named = tuple(f"{json.dumps(_name(text))}: {json.dumps(text)}" for text in scripts)
    context = Context(named, tuple(map(_row, probes)))
    return (Artifact(_TEMPLATE, FILE.removeprefix("/"), 0o644, context, derived=True),)


def puts(probes: Iterable[Probe]) -> tuple[Put, ...]:
    """The check file and the program that reads it."""
    found = [Put(f"/{one.path}", render(one.template, one.context), one.mode) for one in artifacts(probes)]
    return (*found, Put(PROGRAM, program(), 0o755)) if found else ()


def installed(change: Change, seen: Observation, wanted: NodeState, probes: Iterable[Probe]) -> Change:
    """The change, and the files of the local check where the node has others.

    Where nobody could tell what the node has they come along with a change that is made anyway.
    """
    have = dict(seen.facts).get(FACT, "")
    own = puts(probes)
    digests = " ".join(hashlib.sha256((one.text or "").encode()).hexdigest() for one in own)
    if not own or have == digests or (not have and change.empty):
        return change
    return replace(
        change,
        lines=(*change.lines, f"{FILE}: what {PROGRAM} compares"),
        commit=(*change.commit, *own),
        undo_kind="dead-man",
        expected=change.expected or wanted,
    )


@cache
def program() -> str:
    """Text of the program that judges a host by its check file."""
    return (playbooks() / "files" / "fabric_check.py").read_text(encoding="utf-8")


@lru_cache(maxsize=4096)
def _row(probe: Probe) -> str:
    """One probe as one line of JSON; what is empty is left out."""
    data: dict[str, Any] = {
        "port": probe.port,
        "setting": probe.title,
        "key": probe.key,
        "wanted": probe.wanted,
        "accept": probe.accept,
        "how": probe.how if probe.how != "text" else "",
        "device": probe.device,
        "help": probe.help,
        "optional": not probe.must,
        "readings": [_reading(one) for one in probe.readings],
    }
    return json.dumps({key: value for key, value in data.items() if value})


def _reading(one: Reading) -> dict[str, Any]:
    data = {name: getattr(one, name) for name in one.__dataclass_fields__}
    data["script"] = _name(one.script) if one.script else ""
    return {name: value for name, value in data.items() if value}


def _name(script: str) -> str:
    """By its text, so that the same script has the same name on all hosts."""
    return hashlib.sha256(script.encode()).hexdigest()[:8]
