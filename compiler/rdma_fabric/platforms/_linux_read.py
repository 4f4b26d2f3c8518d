"""Reads a Linux host: answers of the two shell questions of `linux` -> neutral state."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._host_files import File, Section, files, sections
from rdma_fabric.platforms._linux_mtu import Persistence, persistence
from rdma_fabric.platforms._shared import digest, integer
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Maybe,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    SystemState,
)


@dataclass(frozen=True, slots=True)
class Paths:
    """Files of ours on every Linux host."""

    sysctl: str = "/etc/sysctl.d/90-fabric.conf"
    modules: str = "/etc/modules-load.d/90-fabric.conf"
    modprobe: str = "/etc/modprobe.d/90-fabric.conf"
    limits: str = "/etc/security/limits.d/90-fabric.conf"
    nccl: str = "/etc/nccl.conf"
    profile: str = "/etc/profile.d/fabric-rdma.sh"
    netplan: str = "/etc/netplan/90-fabric.yaml"
    networkmanager: str = "/etc/NetworkManager/conf.d/90-fabric.conf"
    mtu: str = "/etc/fabric/mtu.conf"
    mtu_program: str = "/usr/local/sbin/fabric-mtu"
    mtu_unit: str = "/etc/systemd/system/fabric-mtu@.service"

    @property
    def all_system(self) -> tuple[str, ...]:
        """Those that hold node-wide settings."""
        return (self.sysctl, self.modules, self.modprobe, self.limits, self.nccl, self.profile)

    @property
    def all_mtu(self) -> tuple[str, ...]:
        """Those that hold MTUs (networkd's drop-ins are read with networkd's own files)."""
        return (self.netplan, self.networkmanager, self.mtu)


PATHS: Final = Paths()

_CONF: Final = ("arp_ignore", "arp_announce", "arp_filter", "rp_filter")
_SYSCTL: Final = (
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.ip_forward",
    "net.ipv4.neigh.default.gc_thresh1",
    "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.core.optmem_max",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.default_qdisc",
    "net.core.somaxconn",
    "vm.max_map_count",
    "vm.zone_reclaim_mode",
    "vm.swappiness",
    "vm.nr_hugepages",
    "kernel.numa_balancing",
    "kernel.shmmax",
    "fs.file-max",
)
"""Keys that RDMA guides set; others are read once they are in our file (reference host_linux_common 2.3)."""

_MODULES: Final = (
    "ib_core",
    "ib_uverbs",
    "ib_umad",
    "ib_cm",
    "ib_ipoib",
    "rdma_cm",
    "rdma_ucm",
    "rdma_rxe",
    "siw",
    "iw_cm",
    "mlx5_core",
    "mlx5_ib",
    "mlx4_ib",
    "bnxt_en",
    "bnxt_re",
    "irdma",
    "nvidia_peermem",
    "nvme_rdma",
    "xprtrdma",
    "svcrdma",
    "configfs",
)
OPTION_MODULES: Final = (
    "ib_core",
    "ib_uverbs",
    "rdma_cm",
    "rdma_rxe",
    "mlx5_core",
    "mlx5_ib",
    "bnxt_re",
    "irdma",
)
AGENTS: Final = {
    "lldpad": "lldpad",
    "dcbd": "dcbd",
    "fcoemon": "fcoemon",
    "nic-configurati": "nic-configuration-daemon",
}
"""Programs that write the same NIC settings, by the 15 characters that the kernel keeps of a name."""
_LIMITS: Final = ("memlock", "nofile", "nproc", "stack", "core")
_ENVIRONMENT: Final = (
    "NCCL_IB_TC",
    "NCCL_IB_FIFO_TC",
    "NCCL_IB_SL",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_TIMEOUT",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_ROCE_VERSION_NUM",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_SOCKET_IFNAME",
    "NCCL_DEBUG",
    "UCX_IB_TRAFFIC_CLASS",
    "UCX_IB_GID_INDEX",
    "UCX_IB_SL",
    "UCX_NET_DEVICES",
    "UCX_TLS",
)
UNSET: Final = ""
"""A variable, limit or stored sysctl that no file of ours sets."""


def sysctl_keys(hw: Hardware) -> tuple[str, ...]:
    """Keys that are always read."""
    names = ("all", "default", *(port.name.replace(".", "/") for port in hw.ports))
    return (*_SYSCTL, *(f"net.ipv4.conf.{name}.{key}" for name in names for key in _CONF))


def read(system: str, ports: str, hw: Hardware) -> Observation:
    """The observation of the base part."""
    node, per_port = sections(system), sections(ports)
    ours = files(node.get("ours", Section()))
    plans = persistence(per_port, hw)
    running_ports, stored_ports = _ports(per_port, plans, hw)
    running, stored, pending = _system(node, ours, hw)
    notes = [*_notes(node, ours), *_mtu_notes(plans)]
    state, kept = NodeState(running, running_ports), NodeState(stored, stored_ports)
    return Observation(
        running=state,
        stored=kept,
        pending=NodeState(pending) if pending is not None else None,
        notes=tuple(notes),
        neighbours=_neighbours(node.get("lldp", Section()), hw),
        facts=_facts(node, ours, plans),
        evidence=digest((state, kept)),
    )


# ---------------------------------------------------------------- node


def _system(
    node: Mapping[str, Section], ours: Mapping[str, File], hw: Hardware
) -> tuple[SystemState, SystemState, SystemState | None]:
    """(running, stored, pending)."""
    live, kept = _sysctl(node, ours, hw)
    loaded, at_boot = _modules(node, ours)
    options_live, options_kept = _options(node, ours)
    limits, environment = _limits(node, ours), _environment(node, ours)
    agents = node.get("agents", Section())
    owners: Maybe[tuple[str, ...]] = _agents(agents) if agents.status in (0, 1) else UNKNOWN
    waiting = tuple((key, value) for key, value in options_kept if dict(options_live).get(key) != value)
    return (
        SystemState(live, loaded, options_live, limits, environment, owners),
        SystemState(kept, at_boot, options_kept, limits, environment),
        SystemState(module_options=waiting) if waiting else None,
    )


def _agents(section: Section) -> tuple[str, ...]:
    return tuple(AGENTS[line.strip()] for line in section.lines if line.strip() in AGENTS)


def normal(value: str) -> str:
    """A sysctl or module option as it compares: single blanks, Y and N as 1 and 0."""
    words = " ".join(value.split())
    return {"Y": "1", "N": "0"}.get(words, words)


def _sysctl(
    node: Mapping[str, Section], ours: Mapping[str, File], hw: Hardware
) -> tuple[tuple[tuple[str, Maybe[str]], ...], tuple[tuple[str, Maybe[str]], ...]]:
    section = node.get("sysctl", Section())
    shown = File("", section.text).pairs()
    file = ours.get(PATHS.sysctl)
    own = {key: normal(value) for key, value in file.pairs().items()} if file else {}
    unread = not section.asked or (file is not None and file.text is None)
    live: dict[str, Maybe[str]] = {}
    kept: dict[str, Maybe[str]] = {}
    later = overrides(node)
    for key in (*sysctl_keys(hw), *own):
        live[key] = normal(shown[key]) if key in shown else UNKNOWN
        kept[key] = UNKNOWN if unread else later[key][1] if key in later else own.get(key, UNSET)
    return tuple(sorted(live.items())), tuple(sorted(kept.items()))


def overrides(node: Mapping[str, Section]) -> dict[str, tuple[str, str]]:
    """Keys that a file read after ours sets: key -> (path, value), the last one wins."""
    found: dict[str, tuple[str, str]] = {}
    printed = files(node.get("later", Section()))
    for path in sorted(printed, key=lambda item: (item == "/etc/sysctl.conf", item.rpartition("/")[2])):
        for key, value in printed[path].pairs().items():
            found[_dotted(key.lstrip("-"))] = (path, normal(value))
    return found


def _dotted(key: str) -> str:
    """sysctl.d(5): where "/" comes first it separates, and a dot then belongs to a name."""
    first = re.search(r"[./]", key)
    return key.translate(str.maketrans("/.", "./")) if first and first.group() == "/" else key


def _modules(
    node: Mapping[str, Section], ours: Mapping[str, File]
) -> tuple[tuple[tuple[str, Maybe[bool]], ...], tuple[tuple[str, Maybe[bool]], ...]]:
    section = node.get("modules", Section())
    # Words only: a complaint of cut or ls is not a module.
    there = {line for line in section.lines if re.fullmatch(r"\w+", line)}
    file = ours.get(PATHS.modules)
    own = (
        {line.strip() for line in (file.text or "").splitlines() if line.strip()[:1] not in ("", "#")}
        if file
        else ()
    )
    names = sorted({*_MODULES, *own})
    live: tuple[tuple[str, Maybe[bool]], ...]
    # Without /proc/modules nothing was listed at all; not loaded is then not the same as not seen.
    live = tuple((name, name in there if there else UNKNOWN) for name in names)
    unread = not section.asked or (file is not None and file.text is None)
    return live, tuple((name, UNKNOWN if unread else name in own) for name in names)


def _options(
    node: Mapping[str, Section], ours: Mapping[str, File]
) -> tuple[tuple[tuple[str, Maybe[str]], ...], tuple[tuple[str, Maybe[str]], ...]]:
    """Live values from /sys/module, kept ones from our file; only loaded modules have live values."""
    shown = {
        key: normal(value) for key, value in File("", node.get("options", Section()).text).pairs().items()
    }
    own: dict[str, str] = {}
    file = ours.get(PATHS.modprobe)
    for line in (file.text or "").splitlines() if file else ():
        words = line.split()
        if words[:1] == ["options"]:
            pairs = (word.partition("=") for word in words[2:])
            own.update({f"{words[1]}.{key}": normal(value) for key, _, value in pairs})
    live: dict[str, Maybe[str]] = dict(shown)
    for key in own:
        live.setdefault(key, UNKNOWN)
    return tuple(sorted(live.items())), tuple(sorted(own.items()))


def _limits(node: Mapping[str, Section], ours: Mapping[str, File]) -> tuple[tuple[str, Maybe[str]], ...]:
    """From our file: a limit counts for the next login. Both `soft` and `hard` must be there."""
    file = ours.get(PATHS.limits)
    if "ours" not in node or (file is not None and file.text is None):
        return tuple((name, UNKNOWN) for name in _LIMITS)
    rows = [line.split() for line in (file.text or "").splitlines()] if file else []
    sides = {(row[2], row[1]): row[3] for row in rows if len(row) == 4 and row[0] == "*"}
    found: dict[str, Maybe[str]] = dict.fromkeys(_LIMITS, UNSET)
    for name, _ in sides:
        soft, hard = sides.get((name, "soft"), UNSET), sides.get((name, "hard"), UNSET)
        found[name] = soft if soft == hard else f"{soft}/{hard}"
    return tuple(sorted(found.items()))


def _environment(node: Mapping[str, Section], ours: Mapping[str, File]) -> tuple[tuple[str, Maybe[str]], ...]:
    if "ours" not in node:
        return tuple((name, UNKNOWN) for name in _ENVIRONMENT)
    found: dict[str, Maybe[str]] = dict.fromkeys(_ENVIRONMENT, UNSET)
    for path in (PATHS.nccl, PATHS.profile):
        file = ours.get(path)
        if file is not None and file.text is None:
            prefix = path == PATHS.nccl
            found.update({name: UNKNOWN for name in found if name.startswith("NCCL_") == prefix})
        elif file is not None:
            found.update({key: _unquoted(value) for key, value in file.pairs().items()})
    return tuple(sorted(found.items()))


def _unquoted(value: str) -> str:
    try:
        words = shlex.split(value)
    except ValueError:
        return value
    return words[0] if len(words) == 1 else value


def _notes(node: Mapping[str, Section], ours: Mapping[str, File]) -> list[str]:
    own = ours.get(PATHS.sysctl)
    keys = own.pairs() if own else {}
    found = [f"{path} is not ours and is left alone" for path in foreign(ours)]
    for key, (path, value) in sorted(overrides(node).items()):
        if key in keys and normal(keys[key]) != value:
            found.append(f"{path} sets {key} to {value} after our file")
    found += [f"{name} runs and may write NIC settings" for name in _agents(node.get("agents", Section()))]
    if not node:
        found.append("the answer about the host was not understood")
    return found


def foreign(ours: Mapping[str, File]) -> tuple[str, ...]:
    """Files at a path of ours without our mark."""
    return tuple(sorted(path for path, file in ours.items() if file.text is not None and not file.ours))


def _facts(
    node: Mapping[str, Section], ours: Mapping[str, File], plans: Mapping[str, Persistence]
) -> tuple[tuple[str, str], ...]:
    release = File("", node.get("os", Section()).text).pairs()
    found = {f"mtu {port}": plan.text() for port, plan in plans.items()}
    kernel, model = node.get("kernel", Section()), node.get("model", Section())
    if kernel.ok:
        found["kernel"] = kernel.text.strip()
    if model.ok:
        found["model"] = model.text.strip()
    if "ID" in release:
        words = (release["ID"], release.get("VERSION_ID", ""))
        found["version"] = " ".join(word.strip('"') for word in words).strip()
    if paths := foreign(ours):
        found["foreign"] = " ".join(paths)
    own = ours.get(PATHS.sysctl)
    if own is not None:
        taken = {key for key in own.pairs() if key in overrides(node)}
        if taken:
            found["overridden"] = " ".join(sorted(taken))
    return tuple(sorted(found.items()))


def _neighbours(section: Section, hw: Hardware) -> tuple[tuple[str, str, str], ...]:
    """`lldpcli show neighbors`: a block per port with SysName and PortID (lldpd(8))."""
    if not section.ok:
        return ()
    found = []
    for block in re.split(r"^(?=Interface:)", section.text, flags=re.MULTILINE):
        local = re.match(r"Interface:\s+(\S+?),", block)
        system = re.search(r"^\s+SysName:\s+(\S.*?)\s*$", block, re.MULTILINE)
        remote = re.search(r"^\s+PortID:\s+(?:ifname|local)\s+(\S+)", block, re.MULTILINE)
        remote = remote or re.search(r"^\s+PortDescr:[ \t]+(\S+)", block, re.MULTILINE)
        if local and system and hw.port(local.group(1)) is not None:
            found.append((local.group(1), system.group(1), remote.group(1) if remote else ""))
    return tuple(sorted(found))


# ---------------------------------------------------------------- ports


def _ports(
    parts: Mapping[str, Section], plans: Mapping[str, Persistence], hw: Hardware
) -> tuple[tuple[PortState, ...], tuple[PortState, ...]]:
    live, kept = [], []
    for port in hw.ports:
        mtu, speed = _link(port, parts)
        settings = PortSettings(Mtu(mtu, NOT_APPLICABLE, NOT_APPLICABLE))
        live.append(PortState(port.name, port.kind, settings, speed))
        stored = PortSettings(Mtu(plans[port.name].stored, NOT_APPLICABLE, NOT_APPLICABLE))
        kept.append(PortState(port.name, port.kind, stored))
    return tuple(live), tuple(kept)


def _link(port: PortHardware, parts: Mapping[str, Section]) -> tuple[Maybe[int], Maybe[int]]:
    link = one_link(parts.get(f"link {port.name}", Section()))
    mtu = link.get("mtu")
    kind = link["linkinfo"].get("info_kind", "") if isinstance(link.get("linkinfo"), dict) else ""
    shown = integer(parts.get(f"speed {port.name}", Section()).text)
    speed: Maybe[int] = UNKNOWN if shown is None or shown <= 0 else shown // 1000
    # A virtual netdev has no line rate, whatever number it shows.
    return mtu if isinstance(mtu, int) else UNKNOWN, UNMANAGED if kind in ("veth", "dummy") else speed


def one_link(section: Section) -> Mapping[str, Any]:
    """`ip -j link show dev PORT`: its one object; empty when it is not that."""
    text = section.text.strip()
    start = text.find("[")
    try:
        data = json.loads(text[start:]) if start >= 0 else None
    except ValueError:
        return plain_link(text)
    first = data[0] if isinstance(data, list) and data else None
    return first if isinstance(first, dict) else plain_link(text)


def plain_link(text: str) -> Mapping[str, Any]:
    """`ip link show` without JSON (busybox has none): its mtu."""
    match = re.search(r"^\d+: (\S+?)(?:@\S+)?: <[^>]*> mtu (\d+)\b", text, re.MULTILINE)
    return {"ifname": match.group(1), "mtu": int(match.group(2))} if match else {}


def _mtu_notes(plans: Mapping[str, Persistence]) -> list[str]:
    found = [
        f"{port}: who keeps its MTU is unclear: {plan.problem}"
        for port, plan in plans.items()
        if plan.problem
    ]
    found += [f"{port}: its MTU is set by {plan.foreign}" for port, plan in plans.items() if plan.foreign]
    return found
