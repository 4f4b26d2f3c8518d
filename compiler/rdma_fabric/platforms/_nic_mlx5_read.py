"""Reads an mlx5 port: output of mlnx_qos, dcb, ethtool, cma_roce_* and driver files -> knobs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._host_qos import UNREAD
from rdma_fabric.platforms._nic_mlx5_knobs import DEFAULT_DSCP, PARAMETERS

Parts = Mapping[str, Section]


def mlnx_qos(text: str) -> dict[str, str]:
    """The print of `mlnx_qos -i PORT`, with or without -a; lines that are not there leave no knob."""
    found: dict[str, str] = {}
    if match := re.search(r"^DCBX mode: (OS|Firmware) controlled\s*$", text, re.MULTILINE):
        found["DCBX"] = "os" if match.group(1) == "OS" else "fw"
    if match := re.search(r"^Priority trust state: (dscp|pcp)\s*$", text, re.MULTILINE):
        found["TRUST"] = match.group(1)
        found["DSCP2PRIO"] = _dscp_map(text)
    if match := re.search(r"^Cable len: (\d+)\s*$", text, re.MULTILINE):
        found["CABLE"] = match.group(1)
    for key, word in (("PFC", "enabled"), ("PRIO2BUFFER", "buffer")):
        if match := re.search(rf"^\s+{word}((?:\s+\d+){{8}})\s*$", text, re.MULTILINE):
            found[key] = ",".join(match.group(1).split())
    return found | _traffic_classes(text)


def _dscp_map(text: str) -> str:
    """The 64 points. Those that are not listed follow the firmware's map (DSCP / 8): with trust pcp the
    block is missing, and after one single `dcb app add` the others are hidden (reference, trap 1)."""
    table = DEFAULT_DSCP.split(",")
    for priority, points in re.findall(r"^\s+prio:([0-7]) dscp:([\d,]+)\s*$", text, re.MULTILINE):
        for point in filter(None, points.split(",")):
            if int(point) < 64:
                table[int(point)] = priority
    return ",".join(table)


def _traffic_classes(text: str) -> dict[str, str]:
    """`tc: 0 ratelimit: unlimited, tsa: ets, bw: 50%`, each followed by its priorities."""
    prio_tc, tsa, weight, rate = ([UNREAD] * 8 for _ in range(4))
    tc: int | None = None
    for line in text.splitlines():
        if line.startswith("tc: "):
            match = re.match(
                r"tc: ([0-7]) (?:ratelimit: (unlimited|[\d.]+ Gbps), )?tsa: (\w+)(?:, bw: (\d+)%)?\s*$", line
            )
            tc = int(match.group(1)) if match else None
            if match and tc is not None:
                tsa[tc] = match.group(3)
                weight[tc] = match.group(4) or "0" if tsa[tc] == "ets" else "0"
                if match.group(2):
                    limit = match.group(2).removesuffix(" Gbps")
                    rate[tc] = "0" if limit == "unlimited" else str(round(float(limit)))
        elif tc is not None and (match := re.match(r"\s+priority:\s+([0-7])\s*$", line)):
            prio_tc[int(match.group(1))] = str(tc)
    rows = {"PRIO_TC": prio_tc, "TSA": tsa, "TCBW": weight, "RATELIMIT": rate}
    return {key: ",".join(words) for key, words in rows.items() if set(words) != {UNREAD}}


def dcb(parts: Parts, port: str) -> dict[str, str]:
    """`dcb -j` of the objects pfc, ets, buffer and app, where there is no mlnx_qos."""
    found: dict[str, str] = {}
    pfc, ets = _json(parts, f"pfc {port}"), _json(parts, f"ets {port}")
    buffer, app = _json(parts, f"buffer {port}"), _json(parts, f"app {port}")
    if _eight(pfc.get("prio_pfc")):
        found["PFC"] = ",".join("1" if bit else "0" for bit in pfc["prio_pfc"])
    if isinstance(pfc.get("delay"), int):
        found["CABLE"] = str(pfc["delay"])
    if all(_eight(ets.get(key)) for key in ("tc_tsa", "tc_bw", "prio_tc")):
        pairs = zip(ets["tc_tsa"], ets["tc_bw"], strict=True)
        found["TSA"] = ",".join(map(str, ets["tc_tsa"]))
        # The driver says 100% for every TC that is not ETS.
        found["TCBW"] = ",".join(str(weight) if tsa == "ets" else "0" for tsa, weight in pairs)
        found["PRIO_TC"] = ",".join(map(str, ets["prio_tc"]))
    if _eight(buffer.get("prio_buffer")):
        found["PRIO2BUFFER"] = ",".join(map(str, buffer["prio_buffer"]))
    if parts.get(f"app {port}", Section()).ok:
        found |= _app(app)
    mode = parts.get(f"dcbx {port}", Section())
    if mode.ok and mode.text.strip():
        found["DCBX"] = "os" if "host" in mode.text.split() else "fw"
    return found


def _app(app: Mapping[str, Any]) -> dict[str, str]:
    """Entries are [dscp, priority] up to iproute2 6.4 and have a stray third item from 6.5 on."""
    table = DEFAULT_DSCP.split(",")
    entries = app.get("dscp_prio", [])
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, list) and len(entry) >= 2 and isinstance(entry[0], int) and 0 <= entry[0] < 64:
            table[entry[0]] = str(entry[1])
    # The driver trusts DSCP exactly while there is such an entry (Linux 6.1 mlx5e_dcbnl_ieee_setapp).
    return {"TRUST": "dscp" if entries else "pcp", "DSCP2PRIO": ",".join(table)}


def _eight(value: object) -> bool:
    return isinstance(value, list) and len(value) == 8


def _json(parts: Parts, name: str) -> Mapping[str, Any]:
    section = parts.get(name, Section())
    try:
        data = json.loads(section.text) if section.ok else None
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def pause(section: Section) -> dict[str, str]:
    """`ethtool -a`: RX and TX; Autonegotiate is always off on mlx5 and says nothing."""
    sides = re.findall(r"^(RX|TX):\s+(on|off)\s*$", section.text, re.MULTILINE)
    if not section.ok or len(sides) != 2:
        return {}
    return {"PAUSE": "on" if "on" in {state for _, state in sides} else "off"}


def stall(section: Section) -> dict[str, str]:
    """`ethtool --get-tunable`: "pfc-prevention-tout: 200"; 65535 means auto, which is 100 ms."""
    match = re.search(r"^pfc-prevention-tout:\s*(\d+)\s*$", section.text, re.MULTILINE)
    if not section.ok or match is None:
        return {}
    return {"STALL": "100" if match.group(1) == "65535" else match.group(1)}


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
        if re.fullmatch(r"-?\d+", value):
            found[f"CC_{name}"] = value
    return found


def debugfs(section: Section) -> dict[str, str]:
    """The inbox driver's cc_params as "np_cnp_dscp=48"."""
    rows = host.File("", section.text).pairs() if section.asked else {}
    return {
        f"CC_{name}": rows[name] for name, _, _ in PARAMETERS if re.fullmatch(r"-?\d+", rows.get(name, ""))
    }


def tclass(section: Section) -> dict[str, str]:
    """`Global tclass=106`, further lines are rules; an empty file means that nothing is forced."""
    if not section.ok:
        return {}
    match = re.match(r"Global tclass=(\d+)\s*$", section.text.strip().split("\n")[0])
    if match:
        return {"TCLASS": match.group(1)}
    return {} if section.text.strip() else {"TCLASS": "-1"}


def port_knobs(parts: Parts, port: str) -> dict[str, str]:
    """Everything that one port showed."""
    section = parts.get(f"qos {port}", Section())
    found = mlnx_qos(section.text) if section.ok else dcb(parts, port)
    found |= pause(parts.get(f"pause {port}", Section())) | stall(parts.get(f"stall {port}", Section()))
    found |= ecn(parts.get(f"ecn {port}", Section())) | debugfs(parts.get(f"cc {port}", Section()))
    found |= tclass(parts.get(f"tclass {port}", Section()))
    return found | qos_file.rdma_cm(parts.get(f"tos {port}", Section()), parts.get(f"mode {port}", Section()))


def notes(parts: Parts, port: str) -> list[str]:
    """What an operator should know of the port."""
    text = parts.get(f"qos {port}", Section()).text
    found = []
    if "lldpad service is running" in text:
        found.append(f"{port}: lldpad is running and may overwrite its settings")
    if "Firmware controlled" in text:
        found.append(f"{port}: DCBX runs in firmware and may overwrite its PFC and ETS settings")
    if "Priority trust state: dscp" in text:
        listed = re.findall(r"dscp:([\d,]+)", text)
        count = sum(len(list(filter(None, points.split(",")))) for points in listed)
        if count < 64:
            found.append(f"{port}: shows {count} of 64 DSCP entries; the others are taken as DSCP / 8")
    return found
