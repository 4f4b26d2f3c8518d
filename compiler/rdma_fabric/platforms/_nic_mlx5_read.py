"""Reads an mlx5 port: output of mlnx_qos, dcb, ethtool, cma_roce_* and driver files -> knobs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms._host_dcb import APP, TSA, legal
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._host_qos import UNREAD
from rdma_fabric.platforms._nic_mlx5_knobs import DEFAULT_DSCP, PARAMETERS

Parts = Mapping[str, Section]


_EIGHT: Final = r"((?:\s+[0-7]){8})"
_ONCE: Final = (
    ("dcbx", re.compile(r"DCBX mode: (OS|Firmware) controlled")),
    ("trust", re.compile(r"Priority trust state: (dscp|pcp)")),
    ("cable", re.compile(r"Cable len: ([0-9]{1,5})")),
    (
        "sizes",
        re.compile(
            r"Receive buffer size \(bytes\): ((?:[0-9]{1,9},){8})(?:(?:max_buffer|total)_size=[0-9]+)?"
        ),
    ),
    ("head", re.compile(r"\s+priority" + r"\s+".join(["", *"01234567"]))),
    ("enabled", re.compile(r"\s+enabled((?:\s+[01]){8})")),
    ("buffer", re.compile(rf"\s+buffer{_EIGHT}")),
)
"""Lines that stand once in the print of mlnx_qos; a second one means that we do not know which is right."""
_POINTS: Final = re.compile(r"\s+prio:([0-7]) dscp:((?:[0-9][0-9],){1,8})")
_TC: Final = re.compile(
    r"tc: ([0-7]) ratelimit: (unlimited|[0-9]{1,7}\.[0-9] Gbps), "
    r"tsa: (?:(strict|vendor)|ets, bw: (100|[0-9]{1,2})%)"
)
_PRIORITY: Final = re.compile(r"\s+priority:\s+([0-7])")


def mlnx_qos(text: str, every: bool = True) -> dict[str, str]:
    """The print of `mlnx_qos -i PORT -a`; what is not understood leaves no knob.

    Layout of all releases up to mlnx-tools 26.07; a table with a line that none of them prints is unknown.
    Without -a (`every` False) traffic classes that serve no priority are not in it.
    """
    lines = [line.rstrip() for line in text.replace("\r", "").splitlines()]
    # The print ends with the traffic classes: a line at the end of anything else was cut off.
    once = _once(lines[:-1])
    found: dict[str, str] = {}
    if "dcbx" in once:
        found["DCBX"] = "os" if once["dcbx"] == "OS" else "fw"
    if "trust" in once:
        found["TRUST"] = once["trust"]
    table = dscp_points(text)
    if once.get("trust") == "dscp" and len(table) == 64:
        found["DSCP2PRIO"] = ",".join(table[point] for point in range(64))
    if "cable" in once:
        found["CABLE"] = once["cable"]
    for key, word in (("PFC", "enabled"), ("PRIO2BUFFER", "buffer")):
        if word in once and "head" in once:
            found[key] = ",".join(once[word].split())
    if "sizes" in once:
        found["BUFFERS"] = once["sizes"].strip(",")
    return found | _traffic_classes(lines, every)


def _once(lines: Iterable[str]) -> dict[str, str]:
    seen: dict[str, list[str]] = {}
    for line in lines:
        for name, pattern in _ONCE:
            if match := pattern.fullmatch(line):
                seen.setdefault(name, []).append(match[1] if pattern.groups else "")
    return {name: values[0] for name, values in seen.items() if len(values) == 1}


def dscp_points(text: str) -> dict[int, str]:
    """DSCP -> priority of the points that the print lists; {} when the list is not understood.

    With trust pcp there is no list. On the inbox stack points that nobody wrote since the driver was loaded
    are not in it, and hold what the firmware or somebody else put there (reference, trap 1).
    """
    lines = [line.rstrip() for line in text.replace("\r", "").splitlines()]
    if lines.count("dscp2prio mapping:") != 1:
        return {}
    found: dict[int, str] = {}
    for line in lines[lines.index("dscp2prio mapping:") + 1 :]:
        match = _POINTS.fullmatch(line)
        if match is None:
            # The list ends at a line that begins at the margin; anything else is a line that we do not know.
            return found if line[:1] not in ("", " ", "\t") else {}
        for point in filter(None, match[2].split(",")):
            if int(point) > 63 or int(point) in found:
                return {}
            found[int(point)] = match[1]
    # The print does not end with the list: it was cut off.
    return {}


def _traffic_classes(lines: Iterable[str], every: bool) -> dict[str, str]:
    """`tc: 0 ratelimit: unlimited, tsa: ets, bw: 50%`, each followed by its priorities, to the end."""
    prio_tc, tsa, weight, rate = ([UNREAD] * 8 for _ in range(4))
    tc: int | None = None
    for line in lines:
        if match := _TC.fullmatch(line):
            tc = int(match[1])
            if tsa[tc] != UNREAD:
                return {}
            tsa[tc] = match[3] or "ets"
            weight[tc] = match[4] or "0"
            rate[tc] = _rate(match[2])
        elif (match := _PRIORITY.fullmatch(line)) and tc is not None:
            if prio_tc[int(match[1])] != UNREAD:
                return {}
            prio_tc[int(match[1])] = str(tc)
        elif line and (tc is not None or line.startswith(("tc", "ets", "strict", "vendor", "unknown"))):
            return {}
    if every and UNREAD in (*tsa, *prio_tc):
        return {}
    rows = {"PRIO_TC": prio_tc, "TSA": tsa, "TCBW": weight, "RATELIMIT": rate}
    return {key: ",".join(words) for key, words in rows.items() if set(words) != {UNREAD}}


def _rate(text: str) -> str:
    """Whole Gbit/s; the settings file has no other."""
    if text == "unlimited":
        return "0"
    whole, _, rest = text.removesuffix(" Gbps").partition(".")
    return whole if rest == "0" and whole != "0" else UNREAD


def dcb(parts: Parts, port: str) -> dict[str, str]:
    """`dcb -j` (or without -j) of the objects pfc, ets, buffer, app and dcbx, where there is no mlnx_qos.

    Rate caps are left out: iproute2 converted their unit wrongly for years, and a number does not tell by
    which release it was printed (dcb_maxrate.c).
    """
    found: dict[str, str] = {}
    pfc, ets = _object(parts, f"pfc {port}"), _object(parts, f"ets {port}")
    buffer, app = _object(parts, f"buffer {port}"), _object(parts, f"app {port}")
    if bits := legal(pfc.get("prio_pfc"), bool, (False, True)):
        found["PFC"] = ",".join("1" if bit else "0" for bit in bits)
    if type(pfc.get("delay")) is int and 0 <= pfc["delay"] <= 65535:
        found["CABLE"] = str(pfc["delay"])
    tsa, queues = legal(ets.get("tc_tsa"), str, TSA), legal(ets.get("prio_tc"), int, range(8))
    weights = legal(ets.get("tc_bw"), int, range(101))
    if tsa and queues and weights:
        # The driver says 100% for every TC that is not ETS.
        pairs = zip(tsa, weights, strict=True)
        found["TSA"] = ",".join(tsa)
        found["TCBW"] = ",".join(str(weight) if one == "ets" else "0" for one, weight in pairs)
        found["PRIO_TC"] = ",".join(map(str, queues))
    if buffers := legal(buffer.get("prio_buffer"), int, range(8)):
        found["PRIO2BUFFER"] = ",".join(map(str, buffers))
    if sizes := legal(buffer.get("buffer_size"), int, range(2**31)):
        found["BUFFERS"] = ",".join(map(str, sizes))
    table = app_points(parts, port)
    if table is not None and _known_app(app):
        # The driver trusts DSCP exactly while there is such an entry (Linux 6.1 mlx5e_dcbnl_ieee_setapp).
        found["TRUST"] = "dscp" if table else "pcp"
        if len(table) == 64:
            found["DSCP2PRIO"] = ",".join(table[point] for point in range(64))
    return found | _dcbx(parts.get(f"dcbx {port}", Section()))


def _known_app(app: Mapping[str, Any]) -> bool:
    return set(app) <= set(APP)


def app_points(parts: Parts, port: str) -> dict[int, str] | None:
    """DSCP -> priority of the `app` entries; None when they could not be read.

    Entries are [dscp, priority] up to iproute2 6.4 and have a stray third item from 6.5 on.
    """
    section = parts.get(f"app {port}", Section())
    if not section.ok or _object_or_none(section) is None:
        return None
    entries = _object(parts, f"app {port}").get("dscp_prio", [])
    found: dict[int, str] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        items = entry[:2] if isinstance(entry, list) else ()
        point, priority = items if len(items) == 2 else (None, None)
        if type(point) is not int or type(priority) is not int or point in found:
            return None
        if not (0 <= point < 64 and 0 <= priority < 8):
            return None
        found[point] = str(priority)
    return found


def _dcbx(section: Section) -> dict[str, str]:
    """ "host ieee " or "cee ieee " (dcb_dcbx.c); mlx5 has the agent in firmware where there is no "host"."""
    words = section.text.split()
    if not section.ok or not words or not set(words) <= {"host", "lld-managed", "cee", "ieee", "static"}:
        return {}
    return {"DCBX": "os" if "host" in words else "fw"}


def _object(parts: Parts, name: str) -> Mapping[str, Any]:
    section = parts.get(name, Section())
    return (_object_or_none(section) or {}) if section.ok else {}


def _object_or_none(section: Section) -> Mapping[str, Any] | None:
    """The object that dcb printed, as JSON or as text; None when it is neither."""
    try:
        data = json.loads(section.text)
    except ValueError:
        return _dcb_text(section.text)
    return data if isinstance(data, dict) else None


def _dcb_text(text: str) -> Mapping[str, Any] | None:
    """ "prio-pfc 0:off 1:off ...", "willing off ets-cap 8", "dscp-prio AF31:3 48:6" as what -j says."""
    found: dict[str, Any] = {}
    if not text.strip():
        return None
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and ":" in words[1]:
            pairs = [word.partition(":") for word in words[1:]]
            values = [_text_value(value) for _, _, value in pairs]
            name = words[0].replace("-", "_")
            keys = [_dscp(key) if name == "dscp_prio" else _text_value(key) for key, _, _ in pairs]
            if name in found:
                return None
            if name.endswith("_prio"):
                found[name] = [list(pair) for pair in zip(keys, values, strict=True)]
            else:
                found[name] = values if keys == list(range(len(keys))) else None
        elif len(words) % 2 == 0:
            for key, value in zip(words[::2], words[1::2], strict=True):
                found[key.replace("-", "_")] = _text_value(value)
        else:
            return None
    return found


def _text_value(word: str) -> Any:
    number = word.isascii() and word.isdigit()
    return {"on": True, "off": False}.get(word, int(word) if number else word)


def _dscp(word: str) -> Any:
    """ "AF31", "CS6", "EF" or a number (iproute2 etc/rt_dsfield; RFC 2474, 2597, 3246)."""
    if match := re.fullmatch(r"AF([1-4])([1-3])", word):
        return 8 * int(match[1]) + 2 * int(match[2])
    if match := re.fullmatch(r"CS([0-7])", word):
        return 8 * int(match[1])
    return {"EF": 46, "default": 0, "LE": 1}.get(word, _text_value(word))


def pause(section: Section) -> dict[str, str]:
    """`ethtool -a`: RX and TX; Autonegotiate is always off on mlx5 and says nothing."""
    sides = re.findall(r"^(RX|TX):[ \t]+(on|off)[ \t]*$", section.text, re.MULTILINE)
    if not section.ok or sorted(side for side, _ in sides) != ["RX", "TX"]:
        return {}
    return {"PAUSE": "on" if "on" in {state for _, state in sides} else "off"}


def stall(section: Section) -> dict[str, str]:
    """`ethtool --get-tunable`: "pfc-prevention-tout: 200"; 65535 means auto, which is 100 ms."""
    values = re.findall(r"^pfc-prevention-tout:[ \t]*([0-9]{1,5})[ \t]*$", section.text, re.MULTILINE)
    if not section.ok or len(values) != 1:
        return {}
    return {"STALL": "100" if values[0] == "65535" else values[0]}


def ecn(section: Section) -> dict[str, str]:
    """The vendor driver's files as "roce_np/enable/3=1" and "roce_np/cnp_dscp=48"."""
    rows = host.File("", section.text).pairs() if section.asked else {}
    found: dict[str, str] = {}
    for role, key in (("np", "NP"), ("rp", "RP")):
        bits = [rows.get(f"roce_{role}/enable/{priority}", "") for priority in range(8)]
        if all(bit in ("0", "1") for bit in bits):
            found[key] = ",".join(str(priority) for priority, bit in enumerate(bits) if bit == "1") or "none"
    for name, role, file in PARAMETERS:
        value = rows.get(f"roce_{role}/{file}", "")
        if re.fullmatch(r"-?[0-9]+", value):
            found[f"CC_{name}"] = value
    return found


def debugfs(section: Section) -> dict[str, str]:
    """The inbox driver's cc_params as "np_cnp_dscp=48"."""
    rows = host.File("", section.text).pairs() if section.asked else {}
    return {
        f"CC_{name}": rows[name] for name, _, _ in PARAMETERS if re.fullmatch(r"-?[0-9]+", rows.get(name, ""))
    }


def tclass(section: Section) -> dict[str, str]:
    """`Global tclass=106`, further lines are rules; an empty file means that nothing is forced."""
    if not section.ok:
        return {}
    match = re.fullmatch(r"Global tclass=([0-9]{1,3})", section.text.strip().split("\n")[0].rstrip())
    if match and int(match[1]) < 256:
        return {"TCLASS": match[1]}
    return {} if section.text.strip() else {"TCLASS": "-1"}


def port_knobs(parts: Parts, port: str) -> dict[str, str]:
    """Everything that one port showed."""
    section = parts.get(f"qos {port}", Section())
    found = mlnx_qos(section.text) if section.ok else dcb(parts, port)
    found |= pause(parts.get(f"pause {port}", Section())) | stall(parts.get(f"stall {port}", Section()))
    found |= ecn(parts.get(f"ecn {port}", Section())) | debugfs(parts.get(f"cc {port}", Section()))
    found |= tclass(parts.get(f"tclass {port}", Section()))
    return found | qos_file.rdma_cm(parts.get(f"tos {port}", Section()), parts.get(f"mode {port}", Section()))


def partial_map(parts: Parts, port: str) -> str:
    """The likely map where a DSCP-trusting port lists some of its 64 points only; "" else.

    Points that nobody wrote follow the firmware's map, DSCP / 8; those that somebody deleted have priority 0,
    and nothing tells the two apart (Linux 6.1 en_dcbnl.c). So this brings a port back, and is never compared.
    """
    section = parts.get(f"qos {port}", Section())
    found = dscp_points(section.text) if section.ok else app_points(parts, port)
    if not found or len(found) == 64:
        return ""
    table = {point: str(priority) for point, priority in enumerate(DEFAULT_DSCP.split(","))} | found
    return ",".join(table[point] for point in range(64))


def notes(parts: Parts, port: str) -> list[str]:
    """What an operator should know of the port."""
    text = parts.get(f"qos {port}", Section()).text
    found = []
    if "lldpad service is running" in text:
        found.append(f"{port}: lldpad is running and may overwrite its settings")
    if "Firmware controlled" in text:
        found.append(f"{port}: DCBX runs in firmware and may overwrite its PFC and ETS settings")
    if partial_map(parts, port):
        listed = dscp_points(text) or app_points(parts, port) or {}
        found.append(f"{port}: lists {len(listed)} of 64 DSCPs; what it does with the others is not known")
    return found


def owners(parts: Parts, port: str) -> list[str]:
    """Programs that mlnx_qos itself warns of."""
    warned = "lldpad service is running" in parts.get(f"qos {port}", Section()).text
    return ["lldpad"] if warned else []
