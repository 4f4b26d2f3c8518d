"""Writable attributes of hardware that is not there, as sysfs, configfs and debugfs show them.

net/<if>/qos and ecn, infiniband/<ibdev>/tc (vendor stack of mlx5) and counters, config/rdma_cm,
config/bnxt_re and config/irdma, debug/mlx5/<bdf>/cc_params. A refusal is an OSError, which the
writer's write(2) returns.
"""

from __future__ import annotations

import errno

from . import bnxt_cc, counting, store
from .driver import RDMA_DRIVERS, nic, refuse
from .nodes import File, Folder, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .nodes import Reader, Writer
    from .store import Port, PortFacts

_CC_FACTORY = {
    "cnp_dscp": 48,
    "cnp_802p_prio": 6,
    "min_time_between_cnps": 4,
    "rpg_time_reset": 300,
    "rpg_byte_reset": 32767,
    "rpg_threshold": 1,
    "rpg_max_rate": 0,
    "rpg_ai_rate": 5,
    "rpg_hai_rate": 50,
    "rpg_gd": 11,
    "rpg_min_dec_fac": 50,
    "rpg_min_rate": 1,
    "rate_to_set_on_first_cnp": 0,
    "dce_tcp_g": 1019,
    "dce_tcp_rtt": 1,
    "rate_reduce_monitor_period": 4,
    "initial_alpha_value": 1023,
    "clamp_tgt_rate": 0,
    "clamp_tgt_rate_after_time_inc": 1,
}
_NP = ("cnp_dscp", "cnp_802p_prio", "min_time_between_cnps")
_MOST = {"cnp_dscp": 63, "cnp_802p_prio": 7, "rpg_min_dec_fac": 100, "initial_alpha_value": 1023}
# debugfs name -> our name (Linux 6.1 mlx5 cong.c).
_DEBUG = {
    "np_cnp_dscp": "cnp_dscp",
    "np_cnp_prio": "cnp_802p_prio",
    "np_min_time_between_cnps": "min_time_between_cnps",
    "rp_time_reset": "rpg_time_reset",
    "rp_byte_reset": "rpg_byte_reset",
    "rp_threshold": "rpg_threshold",
    "rp_max_rate": "rpg_max_rate",
    "rp_ai_rate": "rpg_ai_rate",
    "rp_hai_rate": "rpg_hai_rate",
    "rp_gd": "rpg_gd",
    "rp_min_dec_fac": "rpg_min_dec_fac",
    "rp_min_rate": "rpg_min_rate",
    "rp_rate_to_set_on_first_cnp": "rate_to_set_on_first_cnp",
    "rp_dce_tcp_g": "dce_tcp_g",
    "rp_dce_tcp_rtt": "dce_tcp_rtt",
    "rp_rate_reduce_monitor_period": "rate_reduce_monitor_period",
    "rp_initial_alpha_value": "initial_alpha_value",
    "rp_clamp_tgt_rate": "clamp_tgt_rate",
    "rp_clamp_tgt_rate_ati": "clamp_tgt_rate_after_time_inc",
}


class Devices(Folder):
    """A configfs subsystem: a folder per RDMA device, which users make and remove."""

    def __init__(
        self, group: str, known: dict[str, PortFacts], inside: Callable[[PortFacts], Folder]
    ) -> None:
        super().__init__()
        self._group, self._known, self._inside = group, known, inside

    def children(self) -> dict[str, Folder | File]:
        """The device folders that exist."""
        found: dict[str, Folder | File] = {}
        states = store.read(store.NIC)
        for name, port in self._known.items():
            if self._group in states[port["netdev"]]["configured"]:
                found[name] = self._inside(port)
        return found

    def make(self, name: str) -> None:
        """A name that is no RDMA device is refused with ENODEV (cma_configfs.c)."""
        if name not in self._known:
            raise refuse(errno.ENODEV)
        self._mark(name, present=True)

    def drop(self, name: str) -> None:
        """The folder goes with its attributes; the values stay in the device."""
        self._mark(name, present=False)

    def _mark(self, name: str, present: bool) -> None:
        with store.port_state(self._known[name]["netdev"]) as state:
            groups = [group for group in state["configured"] if group != self._group]
            state["configured"] = [*groups, self._group] if present else groups


def tree() -> Folder:
    """All attributes of this host."""
    root = Folder()
    ports = store.facts()["ports"]
    for port in ports:
        counting.attributes(root, port)
        if port["nic"] == "mlx5" and port["stack"] != "inbox":
            tclass = File(lambda p=port: _tclass(p), lambda text, p=port: _set_tclass(p, text))  # type: ignore[misc]
            root.at(["infiniband", port["ibdev"], "tc", "1"]).add("traffic_class", tclass)
        if port["nic"] == "mlx5" and port["stack"] != "inbox" and not port["parent"]:
            _qos(root.at(["net", port["netdev"], "qos"]), port)
            _ecn(root.at(["net", port["netdev"], "ecn"]), port)
    root.add("debug", Folder(lambda: _debug(ports)))
    root.add("config", Folder(lambda: _config(ports)))
    return root


def _debug(ports: list[PortFacts]) -> dict[str, Folder | File]:
    """debugfs: what the loaded RDMA drivers show; the vendor's mlx5 has sysfs files instead."""
    loaded = store.read(store.MODULES)
    found: dict[str, Folder | File] = {}
    inbox = [port for port in ports if port["nic"] == "mlx5" and port["stack"] == "inbox"]
    if "mlx5_ib" in loaded and inbox:
        mlx5 = Folder()
        for port in inbox:
            for name, ours in _DEBUG.items():
                mlx5.at([port["bdf"], "cc_params"]).add(name, _number(port, ours))
        found["mlx5"] = mlx5
    bnxt = [port for port in ports if port["nic"] == "bnxt" and port["ibdev"]]
    if "bnxt_re" in loaded and bnxt:
        found["bnxt_re"] = bnxt_cc.debugfs(bnxt)
    return found


def _config(ports: list[PortFacts]) -> dict[str, Folder | File]:
    """configfs: what the loaded modules register."""
    loaded = store.read(store.MODULES)
    found: dict[str, Folder | File] = {}
    devices = {p["ibdev"]: p for p in ports if p["ibdev"] and RDMA_DRIVERS.get(p["nic"]) in loaded}
    if "rdma_cm" in loaded:
        found["rdma_cm"] = Devices("rdma_cm", devices, _rdma_cm)
    for nic_kind, module, inside in (("bnxt", "bnxt_re", bnxt_cc.configfs), ("irdma", "irdma", _irdma)):
        own = {n: p for n, p in devices.items() if p["nic"] == nic_kind and p["stack"] != "inbox"}
        if module in loaded and own:
            found[module] = Devices(module, own, inside)
    return found


# --- net/<if>/qos ---


def _qos(folder: Folder, port: PortFacts) -> None:
    netdev = port["netdev"]

    def trust(text: str) -> None:
        if text.strip() not in {"pcp", "dscp"}:
            raise refuse(errno.EINVAL)
        _put(netdev, "trust", text.strip())

    def dscp(text: str) -> None:
        words = text.split()
        if len(words) != 2:
            raise refuse(errno.EINVAL)
        point, priority = integer(words[0], 63, 10), integer(words[1], 7, 10)
        with store.port_state(netdev) as state:
            state["dscp"][point] = priority

    def rates(text: str) -> None:
        try:
            values = [int(float(word)) for word in text.split()]
        except ValueError as error:
            raise refuse(errno.EINVAL) from error
        if len(values) != 8:
            raise refuse(errno.EINVAL)
        _put(netdev, "rate_kbps", values)

    def buffers(key: str) -> Writer:
        def write(text: str) -> None:
            values = [integer(word, 1 << 31, 10) for word in text.strip().rstrip(",").split(",")]
            if len(values) != 8:
                raise refuse(errno.EINVAL)
            with store.port_state(netdev) as state:
                prio, sizes = state["prio2buffer"], state["buffer_size"]
                nic(port, state).set_buffer(*((values, sizes) if key == "prio2buffer" else (prio, values)))

        return write

    def rows(key: str, head: str, indent: str = "\t") -> Reader:
        def read() -> str:
            values: list[int] = _get(netdev)[key]  # type: ignore[literal-required]
            return head + "".join(f"{indent}{index}\t{value}\n" for index, value in enumerate(values))

        return read

    folder.add("trust", File(lambda: f"{_get(netdev)['trust']}\n", trust))
    folder.add("dscp2prio", File(rows("dscp", "\tdscp\tprio\n"), dscp))
    folder.add("prio2buffer", File(rows("prio2buffer", "\tpriority\tbuffer\n"), buffers("prio2buffer")))
    sizes = rows("buffer_size", "max_buffer_size=262016\n", "")
    folder.add("buffer_size", File(sizes, buffers("buffer_size")))
    folder.add("maxrate", File(lambda: " ".join(map(str, _get(netdev)["rate_kbps"])) + "\n", rates))


def _get(netdev: str) -> Port:
    port: Port = store.read(store.NIC)[netdev]
    return port


def _put(netdev: str, key: str, value: object) -> None:
    with store.port_state(netdev) as state:
        state[key] = value  # type: ignore[literal-required]


# --- net/<if>/ecn, debugfs ---


def _ecn(folder: Folder, port: PortFacts) -> None:
    for point in ("np", "rp"):
        enable = folder.at([f"roce_{point}", "enable"])
        for priority in range(8):
            enable.add(str(priority), _enable(port["netdev"], point, priority))
    for name in _CC_FACTORY:
        folder.at(["roce_np" if name in _NP else "roce_rp"]).add(name, _number(port, name))


def _enable(netdev: str, point: str, priority: int) -> File:
    def read() -> str:
        return f"{int(_get(netdev)[point][priority])}\n"  # type: ignore[literal-required]

    def write(text: str) -> None:
        value = bool(integer(text, 1))
        with store.port_state(netdev) as state:
            state[point][priority] = value  # type: ignore[literal-required]

    return File(read, write)


def _number(port: PortFacts, name: str) -> File:
    netdev = port["netdev"]

    def write(text: str) -> None:
        value = integer(text, _MOST.get(name, 0xFFFFFFFF))
        with store.port_state(netdev) as state:
            state["cc"][name] = value

    return File(lambda: f"{_get(netdev)['cc'].get(name, _CC_FACTORY[name])}\n", write)


# --- infiniband/<ibdev>/tc ---


def _tclass(port: PortFacts) -> str:
    value = _get(port["netdev"])["tclass"]
    return "" if value < 0 else f"Global tclass={value}\n"


def _set_tclass(port: PortFacts, text: str) -> None:
    """A number, or `tclass=<number>`; -1 clears."""
    word = text.strip().removeprefix("tclass=")
    _put(port["netdev"], "tclass", -1 if word == "-1" else integer(word, 255))


# --- configfs ---


def _rdma_cm(port: PortFacts) -> Folder:
    netdev, folder = port["netdev"], Folder()

    def mode(text: str) -> None:
        name = text.rstrip("\n")
        if name not in {"RoCE v2", "IB/RoCE v1"} or (name != "RoCE v2" and port["nic"] != "mlx5"):
            raise refuse(errno.EINVAL)
        _put(netdev, "mode", name)

    inside = folder.at(["ports", "1"])
    inside.add("default_roce_mode", File(lambda: f"{_get(netdev)['mode']}\n", mode))
    tos = File(lambda: f"{_get(netdev)['tos']}\n", lambda text: _put(netdev, "tos", integer(text, 255)))
    inside.add("default_roce_tos", tos)
    return folder


def _irdma(port: PortFacts) -> Folder:
    folder = Folder()
    kinds = ("dcqcn", "dctcp", "timely")
    for name in (f"{protocol}_{kind}_enable" for protocol in ("roce", "iw") for kind in kinds):

        def write(text: str, name: str = name) -> None:
            value = integer(text, 1)
            with store.port_state(port["netdev"]) as state:
                state["cc"][name] = value

        reading = lambda name=name: f"{_get(port['netdev'])['cc'].get(name, 0)}\n"  # noqa: E731
        folder.add(name, File(reading, write))
    return folder
