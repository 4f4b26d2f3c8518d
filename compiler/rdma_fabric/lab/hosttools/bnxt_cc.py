"""Congestion control of bnxt_re: configfs of Broadcom's own driver, debugfs of the kernel's.

Sources: Broadcom's `bnxt_re/configfs.c`, `main.c` and README.TXT (vendor facts, source B1 and B5); Linux
6.18 `drivers/infiniband/hw/bnxt_re/debugfs.c`. A file of configfs shows what is staged in the driver and
`apply` what is in the hardware; values are read as sscanf's %x does, so 48 is 0x48 and what follows the
digits is not looked at.
"""

from __future__ import annotations

import errno
import re

from . import store
from .driver import refuse
from .nodes import File, Folder, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import Port, PortFacts

ROCE_TC, CNP_TC = 1, 2
"""Traffic classes that the firmware gives to RoCE and CNP (README.TXT, DCB Settings)."""
_DSCP_FILES = ("roce_dscp", "cnp_dscp")
_MASKS = {"ecn_enable": 0xFF, "disable_prio_vlan_tx": 1, "roce_prio": 7, "cnp_prio": 7, "g": 0xFF}
_DEFAULTS = {"cc_mode": 1, "g": 8, "inact_th": 10000, "init_cr": 0xC8, "init_tr": 0x320, "rtt": 0x28}
# Files of a chip with congestion control generation 1 (Thor and later) whose values are mere numbers.
_PLAIN = (
    *("g", "init_cr", "inact_th", "init_tr", "rtt", "min_time_bet_cnp", "init_cp", "tr_update_mode"),
    *("tr_update_cyls", "fr_num_rtts", "ai_rate_incr", "red_rel_rtts_th", "act_rel_cr_th", "cr_min_th"),
    *("bw_avg_weight", "act_cr_factor", "max_cp_cr_th", "cp_bias_en", "cp_bias", "cnp_ecn"),
    *("rtt_jitter_en", "lbytes_per_usec", "reset_cc_cr_th", "cr_width", "min_quota", "max_quota"),
    *("abs_max_quota", "tr_lb", "cr_prob_fac", "tr_prob_fac", "fair_cr_th", "red_div", "cnp_ratio_th"),
    *("exp_ai_rtts", "exp_crcp_ratio", "rt_en", "cp_exp_update_th", "ai_rtt_th1", "ai_rtt_th2"),
    *("cf_rtt_th", "sc_cr_th1", "sc_cr_th2", "l64B_per_rtt", "cc_ack_bytes", "reduce_cf_rtt_th"),
    *("rnd_no_red_en", "act_cr_sh_cor_en"),
)
_FILES = (
    *("ecn_enable", "ecn_marking", "cc_mode", "disable_prio_vlan_tx", "roce_prio", "roce_dscp"),
    *("cnp_prio", "cnp_dscp", *_PLAIN),
)
# debugfs name -> ours; tx_queue can be neither read nor written.
_DEBUG = {
    "enable_cc": "ecn_enable",
    "run_avg_weight_g": "g",
    "num_phase_per_state": "nph_per_state",
    "init_cr": "init_cr",
    "init_tr": "init_tr",
    "tos_ecn": "ecn_marking",
    "tos_dscp": "roce_dscp",
    "alt_vlan_pcp": "cnp_prio",
    "alt_vlan_dscp": "cnp_dscp",
    "rtt": "rtt",
    "cc_mode": "cc_mode",
    "tcp_cp": "tcp_cp",
    "inactivity_cp": "inact_th",
}


def service_profile(port: PortFacts) -> bool:
    """True when the firmware knows service profile types and so owns CNP priority and RoCE priority."""
    return not store.trait(port, "no-service-profile")


def of_tc(state: Port, tc: int) -> int:
    """The priority that is in a traffic class (the last one, as the driver finds it), or -1."""
    return max((priority for priority in range(8) if state["prio_tc"][priority] == tc), default=-1)


def points(state: Port, priority: int) -> list[int]:
    """DSCPs that the hardware puts on a priority, in the order in which they were programmed."""
    return [dscp for dscp, owner in state["d2p"] if owner == priority]


def hardware(port: PortFacts, state: Port) -> dict[str, int]:
    """Values in force. With a service profile the firmware takes the last DSCP programmed for a class."""
    found = {**_DEFAULTS, **state["cc"]}
    if service_profile(port):
        for name, tc in (("roce", ROCE_TC), ("cnp", CNP_TC)):
            priority = of_tc(state, tc)
            known = points(state, priority) if priority >= 0 else []
            kept = found.get(f"{name}_dscp", 0)
            # One that the user chose through configfs stays while it is mapped (bnxt_re_reconfigure_dscp).
            found[f"{name}_dscp"] = kept if kept in known else known[-1] if known else 0
            found[f"{name}_prio"] = max(priority, 0)
    return found


def _read(netdev: str) -> Port:
    state: Port = store.read(store.NIC)[netdev]
    return state


def _hexadecimal(text: str) -> int:
    found = re.match(r"\s*(?:0[xX])?([0-9a-fA-F]+)", text)
    if not found:  # the driver would use whatever lay in its memory
        raise refuse(errno.EINVAL)
    return int(found[1], 16)


# --- configfs ---


def configfs(port: PortFacts) -> Folder:
    """What appears when somebody makes a folder of this device's name in configfs bnxt_re."""
    folder = Folder()
    inside = folder.at(["ports", "1", "cc"])
    for name in _FILES:
        inside.add(name, _staged(port, name))
    inside.add("advanced", _advanced(port))
    inside.add("apply", File(lambda: _show(port), lambda text: _apply(port, text)))
    return folder


def _staged(port: PortFacts, name: str) -> File:
    def read() -> str:
        state = _read(port["netdev"])
        default = hardware(port, state).get(name, 0)
        return f"0x{state['staged'].get(name, default):x}\n"

    def write(text: str) -> None:
        value = _hexadecimal(text)
        with store.port_state(port["netdev"]) as state:
            _check(port, state, name, value)
            state["staged"][name] = value & _MASKS.get(name, 0xFFFFFFFF)
            if name not in state["touched"]:
                state["touched"].append(name)

    return File(read, write)


def _check(port: PortFacts, state: Port, name: str, value: int) -> None:
    """What the driver refuses: values out of range, and what the firmware owns."""
    most = {"cc_mode": 1, "ecn_marking": 2, "roce_dscp": 0x3F, "cnp_dscp": 0x3F}
    if value > most.get(name, 0xFFFFFFFF):
        raise refuse(errno.EINVAL)
    if not service_profile(port):
        return
    if name in {"roce_prio", "cnp_prio"}:
        raise refuse(errno.EINVAL)
    if name in _DSCP_FILES:
        priority = of_tc(state, ROCE_TC if name == "roce_dscp" else CNP_TC)
        if priority < 0 or value not in points(state, priority):
            raise refuse(errno.EINVAL)


def _advanced(port: PortFacts) -> File:
    """Takes effect at once: whether `apply` also lists the round trip time."""

    def write(text: str) -> None:
        value = int(_hexadecimal(text) > 0)
        with store.port_state(port["netdev"]) as state:
            state["staged"]["advanced"] = value

    return File(lambda: f"0x{_read(port['netdev'])['staged'].get('advanced', 0):x}\n", write)


def _apply(port: PortFacts, text: str) -> None:
    """1 brings what was written into the hardware; any other number forgets that it was written."""
    value = _hexadecimal(text)
    with store.port_state(port["netdev"]) as state:
        touched, state["touched"] = list(state["touched"]), []
        if value == 1 and touched:
            if not service_profile(port) and touched != ["disable_prio_vlan_tx"]:
                touched = _program_dscp(state, touched)
            state["cc"].update({name: state["staged"][name] for name in touched})


def _program_dscp(state: Port, touched: list[str]) -> list[str]:
    """Without a service profile the driver empties the DSCP table and puts in what was just written.

    With congestion control off there is no CNP class. Returns the names that go on to the hardware.
    """
    values = {**state["cc"], **state["staged"]}
    state["d2p"] = []
    if not values.get("ecn_enable"):
        state["staged"].update(cnp_dscp=0, cnp_prio=0)
        state["cc"].update(cnp_dscp=0, cnp_prio=0)
        touched = [name for name in touched if name not in {"cnp_dscp", "cnp_prio"}]
    if set(touched) & set(_DSCP_FILES):
        if set(touched) & {"roce_dscp", "roce_prio"}:
            state["d2p"].append([values.get("roce_dscp", 0), values.get("roce_prio", 0)])
        if set(touched) & {"cnp_dscp", "cnp_prio"}:
            state["d2p"].append([values.get("cnp_dscp", 0), values.get("cnp_prio", 0)])
    return touched


def _show(port: PortFacts) -> str:
    """`apply` read back; labels and tabs are the driver's."""
    state = _read(port["netdev"])
    cc = hardware(port, state)
    lines = [
        ("ecn status (ecn_enable)\t\t\t\t\t", ("Disabled", "Enabled")[bool(cc.get("ecn_enable"))]),
        ("ecn marking (ecn_marking)\t\t\t\t", ("Not-ECT", "ECT(1)", "ECT(0)")[cc.get("ecn_marking", 0)]),
        ("congestion control mode (cc_mode)\t\t\t", ("DCQCN-D", "DCQCN-P")[cc["cc_mode"]]),
        ("send priority vlan (VLAN 0)\t\t\t\t", _vlan(state, cc)),
        ("running avg. weight(g)\t\t\t\t\t", str(cc["g"])),
        ("inactivity threshold (inact_th)\t\t\t\t", f"{cc['inact_th']} usec"),
        ("initial current rate (init_cr)\t\t\t\t", f"{cc['init_cr']:#x}"),
        ("initial target rate (init_tr)\t\t\t\t", f"{cc['init_tr']:#x}"),
    ]
    if state["staged"].get("advanced"):
        lines.append(("round trip time (rtt)\t\t\t\t\t", f"{cc['rtt']} usec"))
    lines.append(("cnp header ecn status (cnp_ecn)\t\t\t\t", ("Not-ECT", "ECT(1)")[bool(cc.get("cnp_ecn"))]))
    lines += _classes(port, state, cc)
    return "".join(f"{label}: {value}\n" for label, value in lines)


def _vlan(state: Port, cc: dict[str, int]) -> str:
    """The null VLAN tag is sent once RoCE has a priority, unless that was switched off."""
    has_priority = any(entry[0] == 3 and entry[2] == 4791 for entry in state["apps"])
    return "Enabled" if has_priority and not cc.get("disable_prio_vlan_tx") else "Disabled"


def _classes(port: PortFacts, state: Port, cc: dict[str, int]) -> list[tuple[str, str]]:
    """roce_* while a priority is in RoCE's class, cnp_* while congestion control is on as well."""
    lines = []
    roce, cnp = of_tc(state, ROCE_TC), of_tc(state, CNP_TC)
    if roce >= 0:
        lines.append(("roce prio (roce_prio)\t\t\t\t\t", str(roce)))
        lines.append(("roce dscp (roce_dscp)\t\t\t\t\t", str(cc.get("roce_dscp", 0))))
    if not service_profile(port):
        cnp = cc.get("cnp_prio", cnp)
    if cc.get("ecn_enable") and cnp >= 0:
        lines.append(("cnp prio (cnp_prio)\t\t\t\t\t", str(cnp)))
        lines.append(("cnp dscp (cnp_dscp)\t\t\t\t\t", str(cc.get("cnp_dscp", 0))))
    return lines


# --- debugfs ---


def debugfs(ports: list[PortFacts]) -> Folder:
    """/sys/kernel/debug/bnxt_re: by RDMA device with Broadcom's driver, by PCI function with the kernel's."""
    root = Folder()
    for port in ports:
        if port["stack"] == "inbox":
            _kernel_folder(root.at([port["bdf"]]), port)
        else:
            _vendor_folder(root.at([port["ibdev"]]), port)
    return root


def _kernel_folder(folder: Folder, port: PortFacts) -> None:
    info = f"Info:\nDevice Name\t\t: {port['ibdev']}\nPD Watermark\t\t: 0\n"
    folder.add("info", File(lambda: info))
    for name in (*_DEBUG, "tx_queue"):
        folder.at(["cc_config"]).add(name, _debug(port, name))


def _vendor_folder(folder: Folder, port: PortFacts) -> None:
    folder.add("info", File(lambda: _vendor_info(port)))


def _vendor_info(port: PortFacts) -> str:
    up = "UP" if store.carrier(port["netdev"]) else "DOWN"
    return (
        f"bnxt_re debug info:\n=====[ IBDEV {port['ibdev']} ]=============================\n"
        f"\tlink state: {up}\n\tMax QP:\t\t65537\n"
        f"\tfw_service_prof_type_sup : {int(service_profile(port))}\n"
    )


def _debug(port: PortFacts, name: str) -> File:
    """Decimal out, any base in, and into the hardware at once; at most 15 characters."""

    def read() -> str:
        if name not in _DEBUG:
            raise refuse(errno.EINVAL)
        return f"{hardware(port, _read(port['netdev'])).get(_DEBUG[name], 0)}\n"

    def write(text: str) -> None:
        if len(text) > 15:
            raise refuse(errno.EINVAL)
        value = integer(text, 0xFFFFFFFF)
        if name not in _DEBUG:
            raise refuse(errno.EOPNOTSUPP)
        with store.port_state(port["netdev"]) as state:
            state["cc"][_DEBUG[name]] = value

    return File(read, write)
