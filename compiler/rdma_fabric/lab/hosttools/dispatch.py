"""Runs the tool that the program was called as (`/usr/local/sbin/<tool>` links here)."""

from __future__ import annotations

import sys
from importlib import import_module

TOOLS = {
    "bnxt_setupcc.sh": "bnxt_script",
    "bnxtqos": "niccli",
    "cma_roce_mode": "rdma",
    "cma_roce_tos": "rdma",
    "dcb": "dcb",
    "devlink": "modules",
    "dmesg": "services",
    "ethtool": "ethtool",
    "flint": "mft",
    "ibdev2netdev": "rdma",
    "iblinkinfo": "ib",
    "ibnetdiscover": "ib",
    "ibstat": "ib",
    "ib_read_bw": "perftest",
    "ib_send_bw": "perftest",
    "ib_write_bw": "perftest",
    "ibv_devinfo": "rdma",
    "journalctl": "services",
    "lldpcli": "lldp",
    "lldptool": "lldpad",
    "lsmod": "modules",
    "mlnx_qos": "mlnx_qos",
    "mlxconfig": "mlxconfig",
    "mlxfwmanager": "mft",
    "mlxfwreset": "mft",
    "mlxprivhost": "mft",
    "modinfo": "modules",
    "modprobe": "modules",
    "mst": "mft",
    "mstconfig": "mlxconfig",
    "mstflint": "mft",
    "mstfwmanager": "mft",
    "mstfwreset": "mft",
    "mstprivhost": "mft",
    "netplan": "netplan",
    "networkctl": "network",
    "niccli": "niccli",
    "nmcli": "network",
    "opensm": "ib",
    "perfquery": "ib",
    "ping": "ping",
    "rdma": "rdma",
    "rmmod": "modules",
    "saquery": "ib",
    "show_gids": "rdma",
    "sminfo": "ib",
    "smpquery": "ib",
    "systemctl": "services",
    "systemd-run": "services",
    "udevadm": "network",
}
"""Tool -> module of this package that holds `main(name, arguments)`."""
VENDOR = {"bnxt_setupcc.sh": "bnxt", "bnxtqos": "bnxt", "niccli": "bnxt"}
"""Tool -> the kind of NIC whose vendor package brings it; the others are on every host."""
INTERNAL = {
    "ip": "iplink",
    "fabric-boot": "boot",
    "fabric-break": "faults",
    "fabric-health": "health",
    "fabric-ib": "ib",
    "fabric-init": "init",
    "fabric-sftp": "sftp",
}
"""Programs that the lab itself starts in a sandbox."""


def main(argv: list[str]) -> int:
    """Run the tool named by argv[0], or by argv[1] when called as `launch`; returns its exit status."""
    name, arguments = argv[0].rsplit("/", 1)[-1], argv[1:]
    if name == "launch":
        name, arguments = arguments[0], arguments[1:]
    module = TOOLS.get(name) or INTERNAL[name]
    status = import_module(f"{__package__}.{module}").main(name, arguments)
    sys.stdout.flush()
    return int(status)
