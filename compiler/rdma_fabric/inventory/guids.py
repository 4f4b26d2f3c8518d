"""Reads guids.csv (node,port,guid): the InfiniBand GUIDs of ports, which are different on equal nodes.

All three columns may hold ranges of one length, as in cables.csv. A GUID has 16 hexadecimal digits;
0x and colons may be left out or written. The file is optional; a port's own `guid` counts as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rdma_fabric.findings import Finding, InputError, Position, did_you_mean, input_finding
from rdma_fabric.inventory.ranges import zip_ranges
from rdma_fabric.inventory.types import End, Node
from rdma_fabric.source import Table

FILE: Final = "guids.csv"
COLUMNS: Final = ("node", "port", "guid")


def normal(text: str) -> str:
    """A GUID as "0x" and 16 lower-case digits; "" for what is none."""
    plain = text.strip().lower().removeprefix("0x").replace(":", "")
    return f"0x{plain}" if re.fullmatch(r"[0-9a-f]{16}", plain) and int(plain, 16) else ""


def load_guids(nodes: Mapping[str, Node], table: Table | None) -> dict[End, str]:
    """GUID of every port that has one, from its own data and guids.csv. InputError holds every finding."""
    found: dict[End, str] = {}
    places: dict[str, Position | None] = {}
    findings: list[Finding] = []

    def take(end: End, text: str, position: Position | None) -> None:
        guid = normal(text)
        node = nodes.get(end.node)
        if node is None or end.port not in node.spec.ports:
            findings.append(_unknown(end, nodes, position))
        elif not guid:
            help = "write 16 hexadecimal digits, such as 0x0002c90300a1b2c3"
            findings.append(input_finding("reference", f"{text} is not a GUID", position, help, found=text))
        elif guid in places and found.get(end) != guid:
            help = f"every port has its own (the other is at {places[guid]})"
            findings.append(input_finding("reference", f"GUID {guid} is given twice", position, help))
        elif found.get(end, guid) != guid:
            help = "remove one of the two"
            findings.append(input_finding("reference", f"{end} has two GUIDs", position, help))
        else:
            found[end], places[guid] = guid, position

    for name, node in nodes.items():
        for port in node.spec.ports.values():
            if port.guid:
                take(End(name, port.name), port.guid, port.position)
    if table is not None:
        for row in table.rows:
            cells = [row.cells[table.columns.index(column)] for column in COLUMNS]
            try:
                rows = zip_ranges(*cells)
            except ValueError as error:
                help = getattr(error, "help", "") or "give every range the same length"
                position = table.position(row, "node")
                findings.append(
                    input_finding("csv", getattr(error, "text", "") or str(error), position, help)
                )
                continue
            for node_name, port_name, guid in rows:
                take(End(node_name, port_name), guid, table.position(row, "guid"))
    if findings:
        raise InputError(findings)
    return found


def _unknown(end: End, nodes: Mapping[str, Node], position: Position | None) -> Finding:
    if end.node in nodes:
        near = did_you_mean(end.port, nodes[end.node].spec.ports)
        message, otherwise = f"GUID of unknown port {end.port} of {end.node}", "add the port to hosts.yaml"
    else:
        near = did_you_mean(end.node, nodes)
        message, otherwise = f"GUID of unknown node {end.node}", "add the node to hosts.yaml"
    return input_finding("reference", message, position, f"did you mean {near}?" if near else otherwise)
