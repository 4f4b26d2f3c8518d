"""mlx5: neutral settings of one port <-> knobs, the words of its settings file (see `_host_qos`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from rdma_fabric.hardware import PortHardware
from rdma_fabric.platforms._host_qos import RDMA_CM_DEFAULTS, UNREAD, Knobs, read_tos, tos
from rdma_fabric.state import (
    DSCPS,
    NOT_APPLICABLE,
    PRIORITIES,
    UNKNOWN,
    Absent,
    Amount,
    ClassState,
    Dcbx,
    Marking,
    Maybe,
    PortSettings,
    QosState,
    Share,
    Trust,
    WatchdogTimers,
)

PARAMETERS: Final = (
    ("np_cnp_dscp", "np", "cnp_dscp"),
    ("np_cnp_prio", "np", "cnp_802p_prio"),
    ("np_min_time_between_cnps", "np", "min_time_between_cnps"),
    ("rp_clamp_tgt_rate", "rp", "clamp_tgt_rate"),
    ("rp_clamp_tgt_rate_ati", "rp", "clamp_tgt_rate_after_time_inc"),
    ("rp_time_reset", "rp", "rpg_time_reset"),
    ("rp_byte_reset", "rp", "rpg_byte_reset"),
    ("rp_threshold", "rp", "rpg_threshold"),
    ("rp_max_rate", "rp", "rpg_max_rate"),
    ("rp_ai_rate", "rp", "rpg_ai_rate"),
    ("rp_hai_rate", "rp", "rpg_hai_rate"),
    ("rp_gd", "rp", "rpg_gd"),
    ("rp_min_dec_fac", "rp", "rpg_min_dec_fac"),
    ("rp_min_rate", "rp", "rpg_min_rate"),
    ("rp_rate_to_set_on_first_cnp", "rp", "rate_to_set_on_first_cnp"),
    ("rp_dce_tcp_g", "rp", "dce_tcp_g"),
    ("rp_dce_tcp_rtt", "rp", "dce_tcp_rtt"),
    ("rp_rate_reduce_monitor_period", "rp", "rate_reduce_monitor_period"),
    ("rp_initial_alpha_value", "rp", "initial_alpha_value"),
)
"""(name, role, file): the name is the file in debugfs cc_params of the inbox driver (Linux 6.1
mlx5_ib cong.c), the third the file below ecn/roce_<role> of the vendor driver (its en_sysfs.c)."""

PARAMETER_RANGES: Final = {
    "np_cnp_dscp": (0, 63),
    "np_cnp_prio": (0, 7),
    "rp_clamp_tgt_rate": (0, 1),
    "rp_clamp_tgt_rate_ati": (0, 1),
    "rp_min_dec_fac": (0, 100),
    "rp_dce_tcp_g": (0, 1023),
    "rp_dce_tcp_rtt": (1, 131071),
    "rp_initial_alpha_value": (1, 1023),
    "rp_min_rate": (1, 0),
}
"""(least, largest) where NVIDIA tells them (DCQCN CC parameters); a largest of 0 is the line rate, Mbit/s."""

_FILES: Final = {(role, file): name for name, role, file in PARAMETERS}
_NAMES: Final = {name for name, _, _ in PARAMETERS}
_OWN_FIELDS: Final = ("np_cnp_dscp", "np_cnp_prio")

DEFAULT_DSCP: Final = ",".join(str(dscp >> 3) for dscp in DSCPS)
"""The firmware's map (mlnx_qos setDefaultAppEntry)."""

DEFAULTS: Final[Knobs] = {
    "TRUST": "pcp",
    "DSCP2PRIO": DEFAULT_DSCP,
    "PRIO_TC": "1,0,2,3,4,5,6,7",
    "TSA": ",".join(["vendor"] * 8),
    "TCBW": ",".join(["0"] * 8),
    "RATELIMIT": ",".join(["0"] * 8),
    "PFC": ",".join(["0"] * 8),
    "CABLE": "7",
    "PRIO2BUFFER": ",".join(["0"] * 8),
    **RDMA_CM_DEFAULTS,
    "TCLASS": "-1",
}
"""After a driver load (Linux 6.1 en_dcbnl.c mlx5e_ets_init, port_buffer.c, cma_configfs.c).
PFC and trust may outlive it in the firmware; the reference says to assume that they are lost."""


def neutral_parameter(name: str) -> str:
    """The name of a DCQCN parameter in the neutral state; "" for one that mlx5 does not have."""
    role, _, rest = name.partition("_")
    if name in _NAMES:
        return name
    return _FILES.get((role, rest), "")


# ---------------------------------------------------------------- settings -> knobs


def knobs_of(settings: PortSettings, port: PortHardware) -> dict[str, str]:
    """What to write for these settings, in the order of writing; unmanaged and unknown ones are not there."""
    qos, marking = settings.qos, settings.marking
    found: dict[str, str] = {}
    if isinstance(qos.global_pause, bool):
        found["PAUSE"] = "on" if qos.global_pause else "off"
    if qos.dcbx in ("none", "firmware"):
        found["DCBX"] = "os" if qos.dcbx == "none" else "fw"
    if qos.trust in ("dscp", "pcp"):
        found["TRUST"] = str(qos.trust)
    if not isinstance(qos.dscp_to_priority, Absent):
        found["DSCP2PRIO"] = ",".join(map(str, qos.dscp_to_priority))
    found |= _ets(qos.classes, port.speed_gbps)
    pfc = [one.pfc_tx for one in qos.classes]
    if all(isinstance(bit, bool) for bit in pfc):
        found["PFC"] = ",".join("1" if bit is True else "0" for bit in pfc)
    found |= _buffers(qos.classes)
    if isinstance(qos.cable_m, int):
        found["CABLE"] = str(qos.cable_m)
    if isinstance(qos.watchdog.detect_ms, int):
        found["STALL"] = str(qos.watchdog.detect_ms)
    return found | _marking(marking)


def _buffers(classes: Sequence[ClassState]) -> dict[str, str]:
    """Receive buffer of every priority, and the size of every buffer where it is given."""
    groups = [one.group for one in classes if isinstance(one.group, int)]
    if len(groups) != len(classes):
        return {}
    found = {"PRIO2BUFFER": ",".join(map(str, groups))}
    sizes = {(one.group, one.headroom.value) for one in classes if isinstance(one.headroom, Amount)}
    if {group for group, _ in sizes} == set(groups) and len(sizes) == len(set(groups)):
        table = dict(sizes)
        found["BUFFERS"] = ",".join(str(table.get(buffer, 0)) for buffer in PRIORITIES)
    return found


def _ets(classes: Sequence[ClassState], speed: int) -> dict[str, str]:
    """All eight traffic classes in one go: the driver checks the sum of the whole table."""
    shares = [one.share for one in classes]
    if not all(share is None or isinstance(share, Share) for share in shares):
        return {}
    queues = [one.queue if isinstance(one.queue, int) else index for index, one in enumerate(classes)]
    tsa = ["vendor" if all(share is None for share in shares) else "ets"] * 8
    weight, rate = ["0"] * 8, ["-"] * 8
    for priority in reversed(PRIORITIES):
        share, queue = shares[priority], queues[priority]
        if share is None:
            tsa[queue], weight[queue] = "vendor", "0"
        elif isinstance(share, Share):
            tsa[queue] = "strict" if share.scheduler == "strict" else "ets"
            weight[queue] = str(share.weight) if tsa[queue] == "ets" else "0"
            if not isinstance(share.cap, Absent):
                rate[queue] = str(gbps(share.cap, speed))
    found = {"PRIO_TC": ",".join(map(str, queues)), "TSA": ",".join(tsa), "TCBW": ",".join(weight)}
    return found if set(rate) == {"-"} else {**found, "RATELIMIT": ",".join(rate)}


def gbps(cap: int | None, speed: int) -> int:
    """A cap in percent of line rate as whole Gb/s, 0 for none: `mlnx_qos --ratelimit` knows no fractions."""
    return 0 if cap is None else max(1, round(speed * cap / 100))


def _marking(marking: Marking) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, roles in (("NP", marking.np), ("RP", marking.rp)):
        if not isinstance(roles, Absent):
            found[key] = ",".join(map(str, roles)) or "none"
    if isinstance(marking.cnp_dscp, int):
        found["CC_np_cnp_dscp"] = str(marking.cnp_dscp)
    if isinstance(marking.cnp_priority, int):
        found["CC_np_cnp_prio"] = str(marking.cnp_priority)
    found |= {f"CC_{name}": value for name, value in marking.parameters if isinstance(value, str)}
    if not isinstance(marking.traffic_class, Absent):
        found["TCLASS"] = tos(marking.traffic_class)
    if isinstance(marking.roce_v2, bool):
        found["CMA_MODE"] = "2" if marking.roce_v2 else "1"
    if isinstance(marking.rdma_cm_tos, int):
        found["CMA_TOS"] = tos(marking.rdma_cm_tos)
    return found


def keys_of(path: str) -> tuple[str, ...]:
    """The knobs that hold a field, by its path below the port."""
    fixed = {
        "qos.trust": ("TRUST",),
        "qos.dscp_to_priority": ("DSCP2PRIO",),
        "qos.dcbx": ("DCBX",),
        "qos.global_pause": ("PAUSE",),
        "qos.cable_m": ("CABLE",),
        "qos.watchdog.detect_ms": ("STALL",),
        "marking.rdma_cm_tos": ("CMA_TOS",),
        "marking.traffic_class": ("TCLASS",),
        "marking.roce_v2": ("CMA_MODE",),
        "marking.cnp_dscp": ("CC_np_cnp_dscp",),
        "marking.cnp_priority": ("CC_np_cnp_prio",),
        "marking.np": ("NP",),
        "marking.rp": ("RP",),
    }
    if path.startswith("marking.parameters."):
        return (f"CC_{path.removeprefix('marking.parameters.')}",)
    if path.startswith("qos.classes."):
        return {
            "pfc_tx": ("PFC",),
            "pfc_rx": ("PFC",),
            "share": ("PRIO_TC", "TSA", "TCBW", "RATELIMIT"),
            "queue": ("PRIO_TC", "TSA", "TCBW"),
            "group": ("PRIO2BUFFER", "BUFFERS"),
            "headroom": ("PRIO2BUFFER", "BUFFERS"),
        }.get(path.rpartition(".")[2], ())
    return fixed.get(path, ())


# ---------------------------------------------------------------- knobs -> settings


def settings_of(knobs: Knobs, port: PortHardware, stack: str) -> PortSettings:
    """The settings that these knobs mean; what is not there or not understood is UNKNOWN."""
    return _settings(tuple(sorted(knobs.items())), port.speed_gbps, stack)


@lru_cache(maxsize=4096)
def _settings(rows: tuple[tuple[str, str], ...], speed: int, stack: str) -> PortSettings:
    knobs = dict(rows)
    trust = _word(knobs, "TRUST", ("dscp", "pcp"))
    qos = QosState(
        trust=trust,
        # With trust pcp there is no such map in force, and the tools list none.
        dscp_to_priority=NOT_APPLICABLE if trust == "pcp" else _numbers(knobs, "DSCP2PRIO", 64),
        # With trust pcp the tag's value is the priority; there is no table for it.
        pcp_to_priority=tuple(PRIORITIES) if "TRUST" in knobs else UNKNOWN,
        classes=_classes(knobs, speed),
        watchdog=WatchdogTimers(_number(knobs, "STALL"), NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE),
        dcbx=_dcbx(knobs),
        global_pause={"on": True, "off": False}.get(knobs.get("PAUSE", ""), UNKNOWN),
        cable_m=_number(knobs, "CABLE"),
    )
    return PortSettings(qos=qos, marking=_read_marking(knobs, stack))


def _word(knobs: Knobs, key: str, legal: tuple[Trust, ...]) -> Maybe[Trust]:
    return next((word for word in legal if knobs.get(key) == word), UNKNOWN)


def _dcbx(knobs: Knobs) -> Maybe[Dcbx]:
    value = knobs.get("DCBX")
    return "none" if value == "os" else "firmware" if value == "fw" else UNKNOWN


def _number(knobs: Knobs, key: str) -> Maybe[int]:
    text = knobs.get(key, "")
    return int(text) if text.isdigit() else UNKNOWN


def _numbers(knobs: Knobs, key: str, count: int) -> Maybe[tuple[int, ...]]:
    words = knobs.get(key, "").split(",")
    return (
        tuple(map(int, words)) if len(words) == count and all(word.isdigit() for word in words) else UNKNOWN
    )


def _list(knobs: Knobs, key: str) -> list[str]:
    words = knobs.get(key, "").split(",")
    return words if len(words) == 8 else [UNREAD] * 8


def _classes(knobs: Knobs, speed: int) -> tuple[ClassState, ...]:
    pfc, buffers, sizes = (_list(knobs, key) for key in ("PFC", "PRIO2BUFFER", "BUFFERS"))
    queues, tsa = _list(knobs, "PRIO_TC"), _list(knobs, "TSA")
    weight, rate = _list(knobs, "TCBW"), _list(knobs, "RATELIMIT")
    found = []
    for priority in PRIORITIES:
        bit: Maybe[bool] = {"1": True, "0": False}.get(pfc[priority], UNKNOWN)
        queue: Maybe[int] = int(queues[priority]) if queues[priority] in "01234567" else UNKNOWN
        group: Maybe[int] = int(buffers[priority]) if buffers[priority] in "01234567" else UNKNOWN
        size = sizes[group] if isinstance(group, int) else UNREAD
        share: Maybe[Share | None] = UNKNOWN
        if isinstance(queue, int):
            share = _share(tsa[queue], weight[queue], _cap(rate[queue], speed))
        found.append(
            ClassState(
                pfc_tx=bit,
                pfc_rx=bit,
                watchdog=NOT_APPLICABLE,
                ecn=NOT_APPLICABLE,
                headroom=Amount(int(size)) if size.isdigit() else UNKNOWN,
                share=share,
                queue=queue,
                group=group,
            )
        )
    return tuple(found)


def _share(tsa: str, weight: str, cap: Maybe[int | None]) -> Maybe[Share | None]:
    if tsa == "vendor":
        return None
    if tsa == "strict":
        return Share("strict", 0, cap)
    return Share("dwrr", int(weight), cap) if tsa == "ets" and weight.isdigit() else UNKNOWN


def _cap(rate: str, speed: int) -> Maybe[int | None]:
    if rate == "0":
        return None
    return round(int(rate) * 100 / speed) if rate.isdigit() and speed else UNKNOWN


def _roles(knobs: Knobs, key: str) -> Maybe[tuple[int, ...]]:
    text = knobs.get(key, "")
    if text == "none":
        return ()
    words = text.split(",")
    return tuple(map(int, words)) if all(word.isdigit() for word in words) else UNKNOWN


def _read_marking(knobs: Knobs, stack: str) -> Marking:
    inbox = stack == "inbox"
    tclass = knobs.get("TCLASS", "")
    forced: Maybe[int | None] = None if tclass == "-1" else read_tos(tclass)
    return Marking(
        rdma_cm_tos=read_tos(knobs.get("CMA_TOS", "")),
        traffic_class=NOT_APPLICABLE if inbox else forced,
        roce_v2={"2": True, "1": False}.get(knobs.get("CMA_MODE", ""), UNKNOWN),
        cnp_dscp=_number(knobs, "CC_np_cnp_dscp"),
        cnp_priority=_number(knobs, "CC_np_cnp_prio"),
        np=NOT_APPLICABLE if inbox else _roles(knobs, "NP"),
        rp=NOT_APPLICABLE if inbox else _roles(knobs, "RP"),
        parameters=tuple(
            (name, knobs.get(f"CC_{name}", UNKNOWN)) for name in sorted(_NAMES) if name not in _OWN_FIELDS
        ),
    )


def normal_shares(classes: Iterable[ClassState]) -> list[Share | None] | None:
    """All eight shares as the port will show them; None when none is managed.

    Weights of dwrr classes are made to add up to 100, which the driver demands ("BW sum is illegal");
    a priority that nobody gave a share is served after the weighted ones (ETS with 0%).
    """
    shares = [one.share for one in classes]
    if all(isinstance(share, Absent) for share in shares):
        return None
    if all(share is None or isinstance(share, Absent) for share in shares):
        return [None] * 8
    filled = [Share("dwrr", 0) if isinstance(share, Absent) else share for share in shares]
    weights = [share.weight if share is not None and share.scheduler == "dwrr" else -1 for share in filled]
    total = sum(weight for weight in weights if weight > 0)
    fair = _hundred(weights, total)
    return [
        Share("strict", 0, share.cap)
        if share is not None and share.scheduler == "strict"
        else None
        if share is None
        else Share("dwrr", fair[index], share.cap)
        for index, share in enumerate(filled)
    ]


def _hundred(weights: Sequence[int], total: int) -> list[int]:
    """Weights scaled to a sum of 100 by the largest remainder; -1 stays out."""
    taking = [index for index, weight in enumerate(weights) if weight >= 0]
    if total == 0:
        return [100 if taking and index == taking[0] else 0 for index in range(len(weights))]
    exact = [max(weight, 0) * 100 / total for weight in weights]
    found = [int(value) for value in exact]
    for index in sorted(taking, key=lambda i: (found[i] - exact[i], i))[: 100 - sum(found)]:
        found[index] += 1
    return found
