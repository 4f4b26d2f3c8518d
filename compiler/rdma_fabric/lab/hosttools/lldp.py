"""`lldpcli show neighbors`: the far ends of the cables, as the plan has them."""

from __future__ import annotations

import json
import sys

from . import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import Neighbor


def main(name: str, arguments: list[str]) -> int:
    """Run lldpcli."""
    return _lldpcli(arguments)


def neighbors() -> dict[str, Neighbor]:
    """Netdev -> neighbour, for links that are up."""
    found = dict(store.facts()["lldp"])
    found.update({port["netdev"]: port["neighbor"] for port in store.facts()["ports"] if port["neighbor"]})
    return {netdev: neighbor for netdev, neighbor in found.items() if store.carrier(netdev)}


def _lldpcli(arguments: list[str]) -> int:
    words, style = [], "plain"
    rest = iter(arguments)
    for word in rest:
        if word == "-f":
            style = next(rest, "plain")
        else:
            words.append(word)
    if len(words) < 2 or words[0] not in {"show"} or not "neighbors".startswith(words[1][:4]):
        sys.stderr.write("[WARN/lldpctl] unknown command from argument 1: `" + " ".join(words[:1]) + "`\n")
        return 1
    chosen = neighbors()
    if "ports" in words:
        names = words[words.index("ports") + 1].split(",")
        chosen = {netdev: neighbor for netdev, neighbor in chosen.items() if netdev in names}
    sys.stdout.write(_json(chosen) if style.startswith("json") else _text(chosen))
    return 0


def _json(neighbors: dict[str, Neighbor]) -> str:
    """lldpd prints an object where one interface has a neighbour, a list where several have."""
    rows = []
    for rid, (netdev, neighbor) in enumerate(neighbors.items(), 1):
        chassis = {neighbor["system"]: {"id": {"type": "mac", "value": neighbor["chassis"]}}}
        port = {"id": {"type": "ifname", "value": neighbor["port"]}, "ttl": "120"}
        if neighbor["description"]:
            port["descr"] = neighbor["description"]
        row = {"via": "LLDP", "rid": str(rid), "age": "0 day, 00:01:00", "chassis": chassis, "port": port}
        rows.append({netdev: row})
    inside: object = {} if not rows else {"interface": rows[0] if len(rows) == 1 else rows}
    return json.dumps({"lldp": inside}, indent=2) + "\n"


def _text(neighbors: dict[str, Neighbor]) -> str:
    bar = "-" * 79
    out = [bar, "LLDP neighbors:", bar]
    for rid, (netdev, neighbor) in enumerate(neighbors.items(), 1):
        out += [
            f"Interface:    {netdev}, via: LLDP, RID: {rid}, Time: 0 day, 00:01:00",
            "  Chassis:     ",
            f"    ChassisID:    mac {neighbor['chassis']}",
            f"    SysName:      {neighbor['system']}",
            "  Port:        ",
            f"    PortID:       ifname {neighbor['port']}",
            f"    PortDescr:    {neighbor['description']}",
            "    TTL:          120",
            bar,
        ]
    return "\n".join(out) + "\n"
