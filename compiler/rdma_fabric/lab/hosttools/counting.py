"""Which counters of which NIC show what `health` knows: `ethtool -S`, FEC, and files of the RDMA device.

Names: Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`, `bnxt_ethtool.c`
and `bnxt_re/hw_counters.c`, `ice_ethtool.c`, and the vendor facts. Not confirmed: that a RoCE port's
`counters/symbol_error`, `port_rcv_errors` and `port_xmit_discards` move with the Ethernet port's errors.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110, PTH211

from __future__ import annotations

import os

from . import health, store
from .nodes import File, Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .health import Health
    from .store import PortFacts

_ETHTOOL = {
    "mlx5": {
        "rx_discards_phy": ("rx-discard",),
        "tx_discards_phy": ("tx-discard", "drop"),
        "rx_crc_errors_phy": ("crc",),
        "rx_symbol_err_phy": ("symbol",),
        "rx_ecn_mark": ("ecn",),
        **{f"rx_prio{p}_pause": (f"pfc-rx:{p}",) for p in range(8)},
        **{f"tx_prio{p}_pause": (f"pfc-tx:{p}",) for p in range(8)},
    },
    "bnxt": {
        "rx_total_discard_pkts": ("rx-discard",),
        "tx_total_discard_pkts": ("tx-discard", "drop"),
        "rx_fcs_err_frames": ("crc",),
        "rx_pcs_symbol_err": ("symbol",),
        "rx_fec_uncorrectable_blocks": ("fec-uncorrected",),
        **{f"rx_pfc_ena_frames_pri{p}": (f"pfc-rx:{p}",) for p in range(8)},
        **{f"tx_pfc_ena_frames_pri{p}": (f"pfc-tx:{p}",) for p in range(8)},
    },
    "irdma": {
        "rx_dropped.nic": ("rx-discard",),
        "tx_dropped_link_down.nic": ("tx-discard", "drop"),
        "rx_crc_errors.nic": ("crc",),
        "illegal_bytes.nic": ("symbol",),
        **{f"rx_priority_{p}_xoff.nic": (f"pfc-rx:{p}",) for p in range(8)},
        **{f"tx_priority_{p}_xoff.nic": (f"pfc-tx:{p}",) for p in range(8)},
    },
}
"""NIC -> counter of `ethtool -S` -> what it adds up; a name without its priority is the sum of all."""
_PORT_COUNTERS = {
    "symbol_error": ("symbol",),
    "port_rcv_errors": ("crc",),
    "port_xmit_discards": ("tx-discard", "drop"),
    **dict.fromkeys(
        (
            *("link_error_recovery", "link_downed", "port_rcv_remote_physical_errors"),
            *("port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_rcv_constraint_errors"),
            *("local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped"),
            *("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets", "port_xmit_wait"),
        ),
        (),
    ),
}
"""`counters/` of an RDMA port (kernel: `drivers/infiniband/core/sysfs.c`)."""
_HW_COUNTERS = {
    "mlx5": {
        "np_ecn_marked_roce_packets": ("ecn",),
        **dict.fromkeys(("np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "out_of_sequence"), ()),
        **dict.fromkeys(("packet_seq_err", "local_ack_timeout_err", "out_of_buffer", "roce_adp_retrans"), ()),
        **dict.fromkeys(("rnr_nak_retry_err", "implied_nak_seq_err", "rx_icrc_encapsulated"), ()),
    },
    "bnxt": {
        "rx_ecn_marked_pkts": ("ecn",),
        **dict.fromkeys(("tx_cnp_pkts", "rx_cnp_pkts", "rx_roce_discards", "tx_roce_discards"), ()),
        **dict.fromkeys(("to_retransmits", "seq_err_naks_rcvd", "rx_out_of_sequence"), ()),
    },
    "irdma": {
        "RxECNMrkd": ("ecn",),
        **dict.fromkeys(("cnpSent", "cnpHandled", "cnpIgnored", "RetransSegs"), ()),
    },
}
"""`hw_counters/`: of the port, but of the device with irdma (vendor facts)."""


def _value(found: Health, netdev: str, names: tuple[str, ...]) -> int:
    return sum(
        found.total(netdev, name) if name in health.PER_PRIORITY else found.count(netdev, name)
        for name in names
    )


def ethtool(port: PortFacts) -> dict[str, int]:
    """Counters of `ethtool -S` that health knows of."""
    found = health.here()
    return {
        counter: _value(found, port["netdev"], names)
        for counter, names in _ETHTOOL.get(port["nic"], {}).items()
    }


def fec(port: PortFacts) -> int:
    """Code words that FEC could not correct."""
    return health.here().count(port["netdev"], "fec-uncorrected")


def pauses(netdev: str, way: str) -> list[int]:
    """PFC frames per priority; `way`: rx or tx."""
    found = health.here()
    return [found.count(netdev, f"pfc-{way}:{priority}") for priority in range(8)]


def _files(netdev: str, table: dict[str, tuple[str, ...]]) -> Folder:
    folder = Folder()
    for counter, names in table.items():
        folder.add(counter, File(lambda names=names: f"{_value(health.here(), netdev, names)}\n"))  # type: ignore[misc]
    return folder


def _tables(port: PortFacts) -> dict[str, dict[str, tuple[str, ...]]]:
    return {"counters": _PORT_COUNTERS, "hw_counters": _HW_COUNTERS[port["nic"]]}


def attributes(root: Folder, port: PortFacts) -> None:
    """Put the folders of an RDMA device's counters into the tree of attributes, below its name."""
    if port["ibdev"] and port["nic"] in _HW_COUNTERS:
        folder = root.at(["infiniband", port["ibdev"]])
        for name, table in _tables(port).items():
            folder.add(name, _files(port["netdev"], table))


def show(port: PortFacts, device: str) -> None:
    """Link the folders where the kernel has them; without attributes there are none."""
    source = f"{store.ATTRIBUTES}/infiniband/{port['ibdev']}"
    if port["nic"] not in _HW_COUNTERS or not os.path.exists(f"{source}/counters"):
        return
    where = {"counters": f"{device}/ports/1", "hw_counters": f"{device}/ports/1"}
    if port["nic"] == "irdma":
        where["hw_counters"] = device
    for name, folder in where.items():
        if not os.path.lexists(f"{folder}/{name}"):
            os.symlink(f"{source}/{name}", f"{folder}/{name}")
