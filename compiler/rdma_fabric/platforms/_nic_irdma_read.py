"""Reads an irdma port: output of dcb and ethtool, the RDMA device's and the driver's files -> knobs."""

from __future__ import annotations

import re
from typing import Final

from rdma_fabric.platforms import _host_dcb as dcb
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import _nic_irdma_knobs as knobs
from rdma_fabric.platforms._host_dcb import Entries, Parts
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._nic_irdma_knobs import IWARP, NO_ENTRY, ROCE, Kind

_NODES: Final = {"1: CA": ROCE, "4: RNIC": IWARP}
"""node_type of an RDMA device (Linux drivers/infiniband/core/sysfs.c)."""


def entries(parts: Parts, port: str) -> Entries | None:
    """DSCP entries of a port; None for what is not understood. A port without any prints {}."""
    data = dcb.apps(parts.get(f"app {port}", Section()))
    return None if data is None else dcb.entries(data, "dscp_prio", 63)


def classes(parts: Parts, port: str) -> int | None:
    """Traffic classes that the card has, as the driver tells them."""
    cap = dcb.table(parts, f"ets {port}").get("ets_cap")
    return cap if isinstance(cap, int) and not isinstance(cap, bool) and cap > 0 else None


def _qos(parts: Parts, port: str) -> dict[str, str]:
    found = dcb.pfc(dcb.table(parts, f"pfc {port}")) | dcb.ets(dcb.table(parts, f"ets {port}"))
    points = entries(parts, port)
    if points is None:
        return found
    count = classes(parts, port)
    if points and count is not None and "PRIO_TC" in found:
        queues = found["PRIO_TC"].split(",")
        found["PRIO_TC"] = ",".join([*queues[:count], *[NO_ENTRY] * (len(queues) - count)])
    return found | {"TRUST": "dscp" if points else "pcp", "DSCP2PRIO": knobs.in_map(points)}


def agent(parts: Parts, port: str) -> str:
    """on or off: the LLDP agent in the firmware, by its flag; "" where that and the DCBX mode disagree."""
    section = parts.get(f"flags {port}", Section())
    flags = re.findall(r"^fw-lldp-agent\s*:\s*(on|off)\s*$", section.text, re.MULTILINE)
    told = {"host": "off", "firmware": "on"}.get(
        dcb.dcbx(parts.get(f"dcbx {port}", Section())).get("DCBX", ""), ""
    )
    if not section.ok or len(flags) != 1:
        return told
    return flags[0] if told in ("", flags[0]) else ""


def port_knobs(parts: Parts, port: str) -> dict[str, str]:
    """Everything that one port showed."""
    found = _qos(parts, port) | dcb.pause(parts.get(f"pause {port}", Section()))
    if word := agent(parts, port):
        found["LLDP"] = word
    if word := protocol(parts, port):
        found["PROTO"] = word
    switch = parts.get(f"cc {port}", Section())
    if switch.ok and switch.text.strip() in ("0", "1"):
        found["ECN"] = switch.text.strip()
    tos = parts.get(f"tos {port}", Section())
    return found | {key: value for key, value in qos_file.rdma_cm(tos, tos).items() if key == "CMA_TOS"}


def protocol(parts: Parts, port: str) -> str:
    """roce or iwarp: what the port's RDMA device is; "" where there is none."""
    section = parts.get(f"node {port}", Section())
    return _NODES.get(section.text.strip(), "") if section.ok else ""


def next_protocol(parts: Parts, port: str) -> str:
    """roce or iwarp: what Intel's module options bring when it is loaded anew; "" where they do not tell.

    With `roce_port_cfg`, a bitmap of ports, it depends on the port's number.
    """
    section = parts.get(f"options {port}", Section())
    if not section.ok:
        return ""
    found = dict(re.findall(r"(?:^|\s)(roce_ena|roce_port_cfg)=(\S+)", section.text))
    if "roce_ena" not in found and "roce_port_cfg" in found:
        return ""
    return ROCE if found.get("roce_ena", "0") in ("1", "Y", "y") else IWARP


def kind_of(parts: Parts, port: str, plan: Kind) -> Kind:
    """What the host has; what it does not tell is taken from the inventory."""
    word = parts.get(f"stack {port}", Section()).text.strip()
    vendor = word == "vendor" if word in ("vendor", "inbox") else plan.vendor
    return Kind(vendor, classes(parts, port) or plan.classes)


def notes(parts: Parts, port: str, kind: Kind, plan: Kind) -> list[str]:
    """What an operator should know of the port."""
    if not parts.get(f"stack {port}", Section()).ok:
        return [f"{port}: the answer about its NIC was not understood"]
    found = []
    if kind.vendor != plan.vendor:
        have, want = ("vendor", "inbox") if kind.vendor else ("inbox", "vendor")
        found.append(
            f"{port}: its driver is the {'one of Intel' if kind.vendor else 'kernel'}'s, the inventory says "
            f"{want}; write `stack: {have}` in the node's data"
        )
    if kind.classes != plan.classes:
        found.append(
            f"{port}: its card has {kind.classes} traffic classes, the inventory says {plan.classes}; "
            f"write `irdma_traffic_classes: {kind.classes}` in the node's data.options"
        )
    return [*found, *_state(parts, port)]


def _state(parts: Parts, port: str) -> list[str]:
    found = []
    points = entries(parts, port) or ()
    missing = 64 - len({dscp for dscp, _ in points})
    if points and missing:
        found.append(
            f"{port}: {missing} DSCPs have no entry; what they count as depends on what they had before"
        )
    found += [f"{port}: DSCP {key} has more than one priority" for key in dcb.doubled(points)]
    if protocol(parts, port) == IWARP:
        found.append(f"{port}: its RDMA device speaks iWARP, not RoCE v2")
    if parts.get(f"flags {port}", Section()).ok and not agent(parts, port):
        found.append(f"{port}: its flag fw-lldp-agent and its DCBX mode say different things")
    return found


def facts(parts: Parts, port: str) -> dict[str, str]:
    """RDMA device, address, classes and entries of a port, as the lines and obstacles need them."""
    found: dict[str, str] = {}
    for word in ("rdma", "bdf"):
        section = parts.get(f"{word} {port}", Section())
        if section.ok and section.text.strip():
            found[f"{word} {port}"] = section.text.strip()
    if points := entries(parts, port):
        found[f"app {port}"] = " ".join(f"{dscp}:{priority}" for dscp, priority in points)
    if keys := qos_file.in_file(parts.get(f"conf {port}", Section())):
        found[f"conf {port}"] = keys
    return found
