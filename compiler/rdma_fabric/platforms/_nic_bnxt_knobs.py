"""bnxt: neutral settings of one port <-> knobs, the words of its settings file (see `_host_qos`).

Broadcom's layout is fixed: traffic class 0 carries everything else, 1 RoCE, 2 CNPs and strict traffic.
A dash in a list means that the port may have there what it likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _host_classes as table
from rdma_fabric.platforms._host_classes import DIGITS
from rdma_fabric.platforms._host_qos import RDMA_CM_DEFAULTS, UNREAD, Knobs, read_tos
from rdma_fabric.state import (
    DSCPS,
    NOT_APPLICABLE,
    PRIORITIES,
    UNKNOWN,
    Absent,
    Dcbx,
    Marking,
    Maybe,
    PortSettings,
    QosState,
    Trust,
    WatchdogTimers,
)

Where = Literal["configfs", "debugfs", "none"]
"""Where congestion control is set: files of the vendor's driver, of the kernel's from 6.15 on, nowhere."""

DEFAULT_TC, ROCE_TC, CNP_TC = 0, 1, 2
NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Kind:
    """What decides a port's recipe beside its name."""

    cc: Where = "configfs"
    profile: str = "1"
    """fw_service_prof_type_sup: "1" where firmware knows a service type for CNPs, "0" for older ones."""
    classes: int = 3
    """Traffic classes that the NVM profile gives ("MP 12" has 3, "MP 17" has 8)."""


def planned(hw: Hardware) -> Kind:
    """What the inventory says of the node's bnxt ports."""
    cc: Where = "none" if hw.option("stack") == "inbox" else "configfs"
    named = hw.option("bnxt_cc")
    cc = next((word for word in _WHERE if word == named), cc)
    profile = hw.option("bnxt_service_profile", "1")
    return Kind(
        cc, profile if profile in ("0", "1") else "1", 8 if hw.option("bnxt_traffic_classes") == "8" else 3
    )


_WHERE: Final[tuple[Where, ...]] = ("configfs", "debugfs", "none")

_GEN1: Final = (
    *("init_cp", "tr_update_mode", "tr_update_cyls", "fr_num_rtts", "ai_rate_incr", "red_rel_rtts_th"),
    *(
        "act_rel_cr_th",
        "cr_min_th",
        "bw_avg_weight",
        "act_cr_factor",
        "max_cp_cr_th",
        "cp_bias_en",
        "cp_bias",
    ),
    *("rtt_jitter_en", "lbytes_per_usec", "reset_cc_cr_th", "cr_width", "min_quota", "max_quota"),
    *("abs_max_quota", "tr_lb", "cr_prob_fac", "tr_prob_fac", "fair_cr_th", "red_div", "cnp_ratio_th"),
    *("exp_ai_rtts", "exp_crcp_ratio", "rt_en", "cp_exp_update_th", "ai_rtt_th1", "ai_rtt_th2", "cf_rtt_th"),
    *("sc_cr_th1", "sc_cr_th2", "l64B_per_rtt", "cc_ack_bytes", "reduce_cf_rtt_th", "rnd_no_red_en"),
    "act_cr_sh_cor_en",
)
PARAMETERS: Final = (
    ("np_min_time_between_cnps", "min_time_bet_cnp", ""),
    ("np_cnp_ecn", "cnp_ecn", ""),
    ("rp_g", "g", "run_avg_weight_g"),
    ("rp_init_cr", "init_cr", "init_cr"),
    ("rp_init_tr", "init_tr", "init_tr"),
    ("rp_inact_th", "inact_th", "inactivity_cp"),
    ("rp_rtt", "rtt", "rtt"),
    ("rp_nph_per_state", "nph_per_state", "num_phase_per_state"),
    ("rp_time_pph", "time_pph", ""),
    ("rp_pkts_pph", "pkts_pph", ""),
    ("rp_tcp_cp", "tcp_cp", "tcp_cp"),
    *((f"rp_{name}", name, "") for name in _GEN1),
)
"""(name, file below ports/1/cc in configfs, file below cc_config in debugfs): the driver's configfs.c
(233.x) and Linux 6.15 bnxt_re/debugfs.c. The first takes hexadecimal numbers only, the second both."""

OWN: Final = {
    "rp_roce_prio": "ROCE",
    "rp_roce_dscp": "ROCE_DSCP",
    "rp_ecn_marking": "MARK",
    "rp_cc_mode": "MODE",
}
"""Parameters that have a knob of their own: the recipe sets them, not only the intent."""
_NAMES: Final = {name for name, _, _ in PARAMETERS}
_FILES: Final = {file: name for name, file, _ in PARAMETERS}

DEFAULTS: Final[Knobs] = {
    "PRIO_TC": ",".join(["0"] * 8),
    "TSA": ",".join(["strict"] * 8),
    "TCBW": ",".join(["0"] * 8),
    "PFC": ",".join(["0"] * 8),
    "ROCE": NONE,
    "DSCP2PRIO": ",".join(["0"] * 64),
    **RDMA_CM_DEFAULTS,
}
"""After a driver load: ETS, PFC and APP entries are heap copies of the driver (Linux 6.1 bnxt_dcb.c).
Congestion control then has the firmware's values, which nobody lists."""


def names(kind: Kind) -> tuple[str, ...]:
    """Parameters that the port's driver has a file for."""
    return tuple(name for name, _, debug in PARAMETERS if debug or kind.cc != "debugfs")


def neutral_parameter(name: str, kind: Kind) -> str:
    """The name of a parameter in the neutral state, also by its file's name; "" where bnxt has none."""
    role, _, rest = name.partition("_")
    if name not in _NAMES and name not in OWN:
        name = _FILES.get(rest, "") if role in ("np", "rp") else ""
    return name if name in OWN or name in names(kind) else ""


def number(text: str) -> str:
    """A number as it is compared: decimal, from decimal or 0x; "" for anything else."""
    try:
        return str(int(text, 0))
    except ValueError:
        return ""


# ---------------------------------------------------------------- settings -> knobs


def knobs_of(settings: PortSettings, kind: Kind) -> dict[str, str]:
    """What to write for these settings, in the order of writing; unmanaged and unknown ones are not there."""
    qos = settings.qos
    found: dict[str, str] = {}
    if isinstance(qos.global_pause, bool):
        found["PAUSE"] = "on" if qos.global_pause else "off"
    found |= table.knobs(qos.classes)
    parameters = dict(settings.marking.parameters)
    roce = parameters.get("rp_roce_prio")
    if isinstance(roce, str):
        found["ROCE"] = roce
    if not isinstance(qos.dscp_to_priority, Absent):
        found["DSCP2PRIO"] = ",".join(map(str, qos.dscp_to_priority))
    if kind.cc == "configfs" and qos.trust in ("dscp", "pcp", "both"):
        found["VLAN0"] = "off" if qos.trust == "dscp" else "on"
    return found | _marking(settings.marking, kind)


def _marking(marking: Marking, kind: Kind) -> dict[str, str]:
    found: dict[str, str] = {}
    parameters = dict(marking.parameters)
    if kind.cc != "none":
        if not isinstance(marking.np, Absent):
            found["ECN"] = "1" if marking.np else "0"
        found |= {key: str(parameters[name]) for name, key in OWN.items() if _is_own(parameters, name)}
        if kind.profile == "0" and isinstance(marking.cnp_priority, int):
            found["CNP_PRIO"] = str(marking.cnp_priority)
        if isinstance(marking.cnp_dscp, int):
            found["CNP_DSCP"] = str(marking.cnp_dscp)
        rest = (item for item in marking.parameters if item[0] not in OWN)
        found |= {f"CC_{name}": value for name, value in rest if isinstance(value, str)}
    if isinstance(marking.roce_v2, bool):
        found["CMA_MODE"] = "2" if marking.roce_v2 else "1"
    if isinstance(marking.rdma_cm_tos, int):
        # Without ECN bits, as Broadcom's script writes it: the NIC itself marks by ecn_marking.
        found["CMA_TOS"] = str(marking.rdma_cm_tos & 0xFC)
    return found


def _is_own(parameters: dict[str, Maybe[str]], name: str) -> bool:
    return name != "rp_roce_prio" and isinstance(parameters.get(name), str)


def keys_of(path: str, kind: Kind) -> tuple[str, ...]:
    """The knobs that hold a field, by its path below the port."""
    fixed = {
        "qos.trust": ("VLAN0",) if kind.cc == "configfs" else ("DSCP2PRIO",),
        "qos.dscp_to_priority": ("DSCP2PRIO",),
        "qos.global_pause": ("PAUSE",),
        "marking.rdma_cm_tos": ("CMA_TOS",),
        "marking.roce_v2": ("CMA_MODE",),
        "marking.cnp_dscp": ("CNP_DSCP",),
        # With the service profile, CNPs have the priority that their DSCP is mapped to.
        "marking.cnp_priority": ("CNP_PRIO",) if kind.profile == "0" else ("DSCP2PRIO",),
        "marking.np": ("ECN",),
        "marking.rp": ("ECN",),
    }
    if path.startswith("marking.parameters."):
        name = path.removeprefix("marking.parameters.")
        return (OWN.get(name, f"CC_{name}"),)
    if path.startswith("qos.classes."):
        return table.keys_of(path.rpartition(".")[2])
    return fixed.get(path, ())


# ---------------------------------------------------------------- knobs -> settings


def settings_of(knobs: Knobs, kind: Kind) -> PortSettings:
    """The settings that these knobs mean; what is not there or not understood is UNKNOWN."""
    return _settings(tuple(sorted(knobs.items())), kind)


@lru_cache(maxsize=4096)
def _settings(rows: tuple[tuple[str, str], ...], kind: Kind) -> PortSettings:
    knobs = dict(rows)
    dscp = table.numbers(knobs.get("DSCP2PRIO", ""), len(DSCPS))
    qos = QosState(
        trust=_trust(knobs, dscp, kind),
        dscp_to_priority=dscp,
        # A tag's value is the priority; there is no table for it.
        pcp_to_priority=tuple(PRIORITIES) if "DSCP2PRIO" in knobs else UNKNOWN,
        classes=table.read(knobs),
        watchdog=WatchdogTimers(*[NOT_APPLICABLE] * 4),
        dcbx=_DCBX.get(knobs.get("DCBX", ""), UNKNOWN),
        global_pause={"on": True, "off": False}.get(knobs.get("PAUSE", ""), UNKNOWN),
        cable_m=NOT_APPLICABLE,
    )
    return PortSettings(qos=qos, marking=_read_marking(knobs, dscp, kind))


_DCBX: Final[dict[str, Dcbx]] = {"host": "none", "firmware": "firmware"}


def _trust(knobs: Knobs, dscp: Maybe[tuple[int, ...]], kind: Kind) -> Maybe[Trust]:
    """By DSCP alone, or also by the VLAN-0 tags that the driver can be told to send and expect."""
    if kind.cc != "configfs":
        return UNKNOWN if isinstance(dscp, Absent) else "dscp" if any(dscp) else "pcp"
    tags = knobs.get("VLAN0")
    if tags == "off":
        return "dscp"
    if tags != "on" or isinstance(dscp, Absent):
        return UNKNOWN
    return "both" if any(dscp) else "pcp"


def _read_marking(knobs: Knobs, dscp: Maybe[tuple[int, ...]], kind: Kind) -> Marking:
    roce, ecn = knobs.get("ROCE", ""), knobs.get("ECN", "")
    roles: Maybe[tuple[int, ...]] = () if ecn == "0" else UNKNOWN
    if ecn == "1" and (roce == NONE or roce in DIGITS):
        # Without a RoCE priority, RoCE travels on priority 0.
        roles = (0 if roce == NONE else int(roce),)
    cnp = _one(knobs, "CNP_DSCP")
    if kind.profile == "0":
        priority = _one(knobs, "CNP_PRIO")
    else:
        both = isinstance(cnp, int) and not isinstance(dscp, Absent)
        priority = dscp[cnp] if both and isinstance(cnp, int) and not isinstance(dscp, Absent) else UNKNOWN
    nowhere = kind.cc == "none"
    return Marking(
        rdma_cm_tos=read_tos(knobs.get("CMA_TOS", "")),
        traffic_class=NOT_APPLICABLE,
        roce_v2={"2": True, "1": False}.get(knobs.get("CMA_MODE", ""), UNKNOWN),
        cnp_dscp=NOT_APPLICABLE if nowhere else cnp,
        cnp_priority=NOT_APPLICABLE if nowhere else priority,
        np=NOT_APPLICABLE if nowhere else roles,
        rp=NOT_APPLICABLE if nowhere else roles,
        parameters=tuple(sorted(_read_parameters(knobs).items())),
    )


def _one(knobs: Knobs, key: str) -> Maybe[int]:
    text = knobs.get(key, "")
    return int(text) if text.isdigit() else UNKNOWN


def _read_parameters(knobs: Knobs) -> dict[str, Maybe[str]]:
    found: dict[str, Maybe[str]] = {name: knobs[key] for name, key in OWN.items() if key in knobs}
    named = {key.removeprefix("CC_"): value for key, value in knobs.items() if key.startswith("CC_")}
    return found | {name: value for name, value in named.items() if name in _NAMES}


# ---------------------------------------------------------------- what changes


@dataclass(frozen=True, slots=True)
class Apps:
    """DSCP entries to take away and to add, as "DSCP:PRIORITY"; `last` is the CNPs' one."""

    delete: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


def apps(have: Iterable[tuple[int, int]], wanted: Sequence[str], cnp: str) -> Apps:
    """From entries to a map. The driver keeps both entries of a DSCP, so the old one goes first; firmware
    takes the entry that was added last to the CNPs' class as theirs, so that one is put last anew."""
    entries = sorted(have)
    gone = [(dscp, priority) for dscp, priority in entries if wanted[dscp] != str(priority)]
    new = [
        (dscp, int(word))
        for dscp, word in enumerate(wanted)
        if word not in ("0", UNREAD) and (dscp, int(word)) not in entries
    ]
    last: list[tuple[int, int]] = []
    if cnp.isdigit() and int(cnp) < len(wanted) and wanted[int(cnp)] not in ("0", UNREAD):
        own = (int(cnp), int(wanted[int(cnp)]))
        if (gone or new) and own in entries:
            gone.append(own)
        if gone or new:
            last, new = [own], [item for item in new if item != own]
    return Apps(_words(gone), _words(new), _words(last))


def _words(pairs: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(f"{dscp}:{priority}" for dscp, priority in pairs)
