"""Files of ours on a Linux host, and the names of the node-wide settings that are read there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._linux_boot import dotted, under


@dataclass(frozen=True, slots=True)
class Paths:
    """Files of ours on every Linux host.

    Where the last file wins, ours sort behind numbers, so that they win over files of distributions.
    """

    sysctl: str = "/etc/sysctl.d/zz-fabric.conf"
    modules: str = "/etc/modules-load.d/90-fabric.conf"
    modprobe: str = "/etc/modprobe.d/zz-fabric.conf"
    limits: str = "/etc/security/limits.d/zz-fabric.conf"
    nccl: str = "/etc/nccl.conf"
    profile: str = "/etc/profile.d/fabric-rdma.sh"
    netplan: str = "/etc/netplan/zz-fabric.yaml"
    networkmanager: str = "/etc/NetworkManager/conf.d/zz-fabric.conf"
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

    @staticmethod
    def service(unit: str) -> str:
        """The drop-in with the limits of one service."""
        return f"/etc/systemd/system/{unit}.service.d/{DROP_IN}"


DROP_IN: Final = "zz-fabric.conf"
PATHS: Final = Paths()
UNSET: Final = ""
"""A variable or limit that no file sets."""
NOT_SET: Final = "not set"
"""A sysctl that no file sets at boot; an empty text is a value that some of them may have."""

_CONF: Final = ("arp_ignore", "arp_announce", "arp_filter", "rp_filter")
_SYSCTL: Final = (
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.ip_forward",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.core.optmem_max",
    "net.core.netdev_max_backlog",
    "net.core.default_qdisc",
    "net.core.somaxconn",
    "vm.max_map_count",
    "vm.zone_reclaim_mode",
    "vm.swappiness",
    "kernel.numa_balancing",
)
"""Keys that RDMA guides set, but those that follow a machine's size (reference host_linux_common 2.3)."""

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
    "NCCL_IB_PKEY",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_DISABLE",
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

ASKED: Final = "asked"
"""Node option: settings that the intent names, "sysctl.KEY modules.NAME ...", which must be read."""


def asked(hw: Hardware, group: str) -> tuple[str, ...]:
    """Names of one group of node-wide settings that the intent owns, as the kernel spells them."""
    prefix = f"{group}."
    found = (word.removeprefix(prefix) for word in hw.option(ASKED).split() if word.startswith(prefix))
    return tuple(sorted({spelled(group, name) for name in found}))


def spelled(group: str, name: str) -> str:
    """A setting's name as the kernel shows it."""
    if group == "sysctl":
        return dotted(name)
    return under(name) if group in ("modules", "module_options") else name


def sysctl_keys(hw: Hardware) -> tuple[str, ...]:
    """Keys that are always read."""
    usual = (*_SYSCTL, *(f"net.ipv4.conf.{name}.{key}" for name in ("all", "default") for key in _CONF))
    return tuple(dict.fromkeys((*usual, *asked(hw, "sysctl"))))


def module_names(hw: Hardware) -> tuple[str, ...]:
    """Modules that are always looked for."""
    return tuple(sorted({*_MODULES, *asked(hw, "modules")}))


def option_modules(hw: Hardware) -> tuple[str, ...]:
    """Modules whose parameters are read."""
    return tuple(sorted({name.partition(".")[0] for name in asked(hw, "module_options")}))


def limit_names(hw: Hardware) -> tuple[str, ...]:
    """Limits of logins that are always read."""
    return tuple(sorted({*_LIMITS, *(name for name in asked(hw, "limits") if "." not in name)}))


def services(hw: Hardware) -> tuple[str, ...]:
    """Units whose limits the intent owns."""
    return tuple(sorted({name.rpartition(".")[0] for name in asked(hw, "limits") if "." in name}))


def variables(hw: Hardware) -> tuple[str, ...]:
    """Variables of the job environment that are always read."""
    return tuple(sorted({*_ENVIRONMENT, *asked(hw, "environment")}))
