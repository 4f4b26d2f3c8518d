"""Writable attributes of hardware that is not there, as sysfs, configfs and debugfs show them.

net/<if>/qos and ecn, infiniband/<ibdev>/tc (vendor stack of mlx5), config/rdma_cm, config/bnxt_re and
config/irdma, debug/mlx5/<bdf>/cc_params. A refusal is an OSError, which the writer's write(2) returns.
"""

from __future__ import annotations

import errno
import os

from . import store
from .driver import RDMA_DRIVERS, nic, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .store import Port, PortFacts

    Reader = Callable[[], str]
    Writer = Callable[[str], None]

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
# bnxt_re/configfs.c: written with %x, kept until `apply`.
_BNXT = (
    *("ecn_enable", "ecn_marking", "cc_mode", "disable_prio_vlan_tx", "roce_prio", "roce_dscp"),
    *("cnp_prio", "cnp_dscp", "advanced"),
)


class File:
    """An attribute; without a writer it is read-only."""

    def __init__(self, read: Reader, write: Writer | None = None) -> None:
        self.read, self.write = read, write


class Folder:
    """Names -> what is there; `make` and `drop` are what mkdir and rmdir do, where they are allowed."""

    def __init__(self, children: Callable[[], dict[str, Folder | File]] | None = None) -> None:
        self._static: dict[str, Folder | File] = {}
        self._children = children

    def add(self, name: str, node: Folder | File) -> None:
        """Put a child in."""
        self._static[name] = node

    def at(self, names: Sequence[str]) -> Folder:
        """A folder below, made if need be."""
        if not names:
            return self
        below = self._static.setdefault(names[0], Folder())
        assert isinstance(below, Folder)
        return below.at(names[1:])

    def children(self) -> dict[str, Folder | File]:
        """What is in the folder now."""
        return {**self._static, **(self._children() if self._children else {})}

    def make(self, name: str) -> None:
        """Mkdir."""
        raise refuse(errno.EPERM)

    def drop(self, name: str) -> None:
        """Rmdir."""
        raise refuse(errno.EPERM)


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
        if port["nic"] == "mlx5" and port["stack"] != "inbox":
            _qos(root.at(["net", port["netdev"], "qos"]), port)
            _ecn(root.at(["net", port["netdev"], "ecn"]), port)
            tclass = File(lambda p=port: _tclass(p), lambda text, p=port: _set_tclass(p, text))  # type: ignore[misc]
            root.at(["infiniband", port["ibdev"], "tc", "1"]).add("traffic_class", tclass)
        elif port["nic"] == "mlx5":
            folder = root.at(["debug", "mlx5", port["bdf"], "cc_params"])
            for name, ours in _DEBUG.items():
                folder.add(name, _number(port, ours))
    root.at(["debug"])
    root.add("config", Folder(lambda: _config(ports)))
    return root


def _config(ports: list[PortFacts]) -> dict[str, Folder | File]:
    """configfs: what the loaded modules register."""
    loaded = store.read(store.MODULES)
    found: dict[str, Folder | File] = {}
    devices = {p["ibdev"]: p for p in ports if p["ibdev"] and RDMA_DRIVERS.get(p["nic"]) in loaded}
    if "rdma_cm" in loaded:
        found["rdma_cm"] = Devices("rdma_cm", devices, _rdma_cm)
    for nic_kind, module, inside in (("bnxt", "bnxt_re", _bnxt), ("irdma", "irdma", _irdma)):
        own = {n: p for n, p in devices.items() if p["nic"] == nic_kind and p["stack"] != "inbox"}
        if module in loaded and own:
            found[module] = Devices(module, own, inside)
    return found


def _integer(text: str, most: int, base: int = 0) -> int:
    """A number as the kernel's kstrto* takes it, else EINVAL."""
    try:
        value = int(text.strip(), base)
    except ValueError as error:
        raise refuse(errno.EINVAL) from error
    if not 0 <= value <= most:
        raise refuse(errno.EINVAL)
    return value


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
        point, priority = _integer(words[0], 63, 10), _integer(words[1], 7, 10)
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
            values = [_integer(word, 1 << 31, 10) for word in text.strip().rstrip(",").split(",")]
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
        value = bool(_integer(text, 1))
        with store.port_state(netdev) as state:
            state[point][priority] = value  # type: ignore[literal-required]

    return File(read, write)


def _number(port: PortFacts, name: str) -> File:
    netdev = port["netdev"]

    def write(text: str) -> None:
        value = _integer(text, _MOST.get(name, 0xFFFFFFFF))
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
    _put(port["netdev"], "tclass", -1 if word == "-1" else _integer(word, 255))


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
    tos = File(lambda: f"{_get(netdev)['tos']}\n", lambda text: _put(netdev, "tos", _integer(text, 255)))
    inside.add("default_roce_tos", tos)
    return folder


def _bnxt(port: PortFacts) -> Folder:
    """Values are read as hexadecimal and reach the hardware with `apply` only."""
    netdev, folder = port["netdev"], Folder()
    inside = folder.at(["ports", "1", "cc"])

    def staged(name: str) -> File:
        def write(text: str) -> None:
            most = {"cnp_dscp": 0x3F, "roce_dscp": 0x3F, "cc_mode": 1, "cnp_prio": 7, "roce_prio": 7}
            value = _integer(text, most.get(name, 1), 16)
            with store.port_state(netdev) as state:
                state["cc"][f"staged_{name}"] = value

        return File(lambda: f"0x{_get(netdev)['cc'].get(f'staged_{name}', 0):x}\n", write)

    def apply(text: str) -> None:
        _integer(text, 1, 16)
        with store.port_state(netdev) as state:
            for name in _BNXT:
                state["cc"][name] = state["cc"].get(f"staged_{name}", state["cc"].get(name, 0))

    def show() -> str:
        cc = _get(netdev)["cc"]
        words = ("Disabled", "Enabled")
        lines = [f"ecn status (ecn_enable)\t\t\t\t\t: {words[cc.get('ecn_enable', 0)]}"]
        lines.append(
            f"ecn marking (ecn_marking)\t\t\t\t\t: {('Not-ECT', 'ECT(0)')[cc.get('ecn_marking', 0)]}"
        )
        lines.append(
            f"congestion control mode (cc_mode)\t\t\t: {('DCQCN-D', 'DCQCN-P')[cc.get('cc_mode', 0)]}"
        )
        vlan = words[1 - cc.get("disable_prio_vlan_tx", 0)]
        lines.append(f"send priority vlan (VLAN 0)\t\t\t\t: {vlan}")
        lines += [f"roce prio (roce_prio)\t\t\t\t\t: {cc.get('roce_prio', 0)}"]
        lines += [f"roce dscp (roce_dscp)\t\t\t\t\t: {cc.get('roce_dscp', 0)}"]
        if cc.get("ecn_enable"):
            lines += [f"cnp prio (cnp_prio)\t\t\t\t: {cc.get('cnp_prio', 0)}"]
            lines += [f"cnp dscp (cnp_dscp)\t\t\t\t: {cc.get('cnp_dscp', 0)}"]
        return "\n".join(lines) + "\n"

    for name in _BNXT:
        inside.add(name, staged(name))
    inside.add("apply", File(show, apply))
    return folder


def _irdma(port: PortFacts) -> Folder:
    folder = Folder()
    for name in ("roce_dcqcn_enable", "roce_dctcp_enable", "roce_timely_enable"):

        def write(text: str, name: str = name) -> None:
            value = _integer(text, 1)
            with store.port_state(port["netdev"]) as state:
                state["cc"][name] = value

        reading = lambda name=name: f"{_get(port['netdev'])['cc'].get(name, 0)}\n"  # noqa: E731
        folder.add(name, File(reading, write))
    return folder


def walk(root: Folder, path: str) -> Folder | File:
    """What is at the path; ENOENT otherwise."""
    node: Folder | File = root
    for name in filter(None, path.split("/")):
        below = node.children().get(name) if isinstance(node, Folder) else None
        if below is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        node = below
    return node
