"""`nv show` of the Cumulus Linux simulator: operational trees, JSON and the tables of the documentation.

Table shapes come from the RoCE and QoS pages of Cumulus Linux 5.14 and the NVUE reference. "KB" and
"MB" are 1024-based, as in NVIDIA's own numbers (150000 B is printed as 146.48 KB).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.lab.hosttools.health import Health

from . import _cumulus_counters as counters
from ._contract import DeviceFacts, PortFact
from ._cumulus_config import Tree, at, branch, interface_type, merged
from ._cumulus_counters import size
from ._cumulus_qos import (
    LOSSLESS_MODES,
    PRIORITIES,
    applied_tree,
    known_interfaces,
    port_lossless,
    port_profile,
    qos_tree,
    roce_mode,
    switch_word,
)
from ._cumulus_schema import Node, Refused, Version, natural, schema

_SETS = {
    "switch-priority",
    "multicast-switch-priority",
    "traffic-class",
    "priority-group",
    "dscp",
    "pcp",
    "ingress-pool",
    "egress-pool",
    "ingress-service-pool",
    "egress-service-pool",
    "address",
    "gateway",
    "member",
    "domain",
    "udp-port",
    "neighbor",
    "state",
    "user",
    "rule",
    "acl",
    "status",
    "vlan",
}
_BYTES = {"min-threshold", "max-threshold", "xoff-threshold", "xon-threshold", "port-buffer"}
_TEXTS = {
    "cable-length": "Cable Length (in meters)",
    "port-buffer": "Port Buffer (in bytes)",
    "rx": "PFC Rx State",
    "tx": "PFC Tx State",
    "xoff-threshold": "Xoff Threshold (in bytes)",
    "xon-threshold": "Xon Threshold (in bytes)",
    "[switch-priority]": "Collection of switch priorities.",
    "ecn": "Early Congestion Notification State",
    "max-threshold": "Maximum Threshold (in bytes)",
    "min-threshold": "Minimum Threshold (in bytes)",
    "probability": "Probability",
    "red": "Random Early Detection State",
    "port-default-sp": "Port Default Switch Priority",
    "trust": "Port Trust configuration",
    "switch-priority": "Internal Switch Priority",
    "traffic-class": "Traffic Class",
}


@dataclass(frozen=True, slots=True)
class View:
    """One device and one of its configurations, as `nv show` sees them."""

    facts: DeviceFacts
    version: Version
    config: Tree
    uptime: float
    health: Health = field(default_factory=Health)

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the front ports."""
        return tuple(port.name for port in self.facts.ports)

    def full(self) -> Tree:
        """The configuration with every default, as configured words and numbers."""
        return applied_tree(self.config, self.version, ("eth0", "lo", *self.ports))

    def applied(self) -> Tree:
        """The same as `nv show` prints it: watchdog `enabled`, its interval as a duration."""
        tree = _printed_interval(self.full())
        tree["interface"] = {name: _printed_watchdog(body) for name, body in tree["interface"].items()}
        return tree

    def operational(self) -> Tree:
        """The state of the system; interface trees carry their QoS view."""
        qos = qos_tree(self.config, self.version)
        qos["roce"] = roce_status(self.config, self.version, qos)
        qos = _printed_interval({"qos": qos})["qos"]
        names = {"eth0", "lo", *self.ports, *branch(self.config, "interface")}
        existing = known_interfaces(self.config, self.ports)
        shown = {name for name in names if name in existing or interface_type(name) not in ("swp", "eth")}
        return {
            "qos": qos,
            "interface": {name: self._interface(name, qos) for name in shown},
            "system": self._system(),
            "platform": self._platform(),
        }

    def port(self, name: str) -> PortFact | None:
        """The inventory's facts about a front port."""
        return next((port for port in self.facts.ports if port.name == name), None)

    def _system(self) -> Tree:
        release = f"{self.facts.version or '5.14'}"
        release = release if release.count(".") == 2 else f"{release}.0"
        tree = applied_tree(self.config, self.version, ())["system"]
        return {
            "build": f"Cumulus Linux {release}",
            "hostname": at(self.config, "system", "hostname") or "cumulus",
            "product-name": "Cumulus Linux",
            "product-release": release,
            "timezone": at(self.config, "system", "timezone") or "Etc/UTC",
            "uptime": _duration(float(int(self.uptime))),
            "config": tree["config"],
            "forwarding": tree["forwarding"],
        }

    def _platform(self) -> Tree:
        return {
            "asic-vendor": "Mellanox",
            "product-name": self.facts.model or "VX",
            "system-memory": "31.00 GB",
        }

    def _interface(self, name: str, qos: Tree) -> Tree:
        fact = self.port(name)
        applied = branch(self.config, "interface", name)
        default_mtu = {"eth": 1500, "loopback": 65536}.get(interface_type(name), 9216)
        up = fact.up if fact else True
        if "down" in branch(applied, "link", "state"):
            up = False
        link: Tree = {
            "admin-status": "down" if "down" in branch(applied, "link", "state") else "up",
            "mtu": at(applied, "link", "mtu") or default_mtu,
            "oper-status": "up" if up else "down",
            "state": {"up": {}} if up else {"down": {}},
        }
        if fact and fact.speed_gbps:
            link["speed"] = f"{self.health.gbps(name, fact.speed_gbps)}G"
        tree: Tree = {"link": link, "type": applied.get("type") or interface_type(name) or "swp"}
        for key in ("description", "ip", "ipv4", "ipv6", "vrf"):
            if key in applied:
                tree[key] = applied[key]
        if tree["type"] == "swp":
            tree["lldp"] = self._lldp(fact, applied, up)
            tree["qos"] = port_qos(self, name, qos)
            classes = qos["egress-queue-mapping"]["default-global"]["switch-priority"]
            tree["counters"] = counters.of_port(self.health, name, classes)
            link["stats"] = counters.link_stats(self.health, name)
            tree["router"] = branch(applied, "router") or {
                "adaptive-routing": dict([switch_word(self.version, False)])
            }
        return tree

    def _lldp(self, fact: PortFact | None, applied: Tree, up: bool) -> Tree:
        tree: Tree = dict(branch(applied, "lldp"))
        if fact and up and fact.peer_node:
            tree["neighbor"] = {
                fact.peer_node: {
                    "chassis": {"system-name": fact.peer_node},
                    "port": {"description": "", "name": fact.peer_port, "type": "ifname"},
                }
            }
        return tree


def _printed_interval(tree: Tree) -> Tree:
    interval = at(tree, "qos", "pfc-watchdog", "polling-interval")
    if interval is None:
        return tree
    # Public acceptance script no. 24422812816: 100 ms is printed as 0:00:00.100000.
    return merged(tree, {"qos": {"pfc-watchdog": {"polling-interval": _duration(int(interval) / 1000)}}})


def _printed_watchdog(body: Tree) -> Tree:
    state = at(body, "qos", "pfc-watchdog", "state")
    if state is None:
        return body
    return merged(body, {"qos": {"pfc-watchdog": {"state": f"{state}d"}}})


def _duration(seconds: float) -> str:
    whole = int(seconds)
    text = f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    micro = round((seconds - whole) * 1_000_000)
    return f"{text}.{micro:06d}" if micro else text


def programmed(number: int, model: str) -> int:
    """The threshold the ASIC really holds: 150000 gives 156672, on Spectrum-4 and later 159744.

    Both documented pairs (RoCE page, note on Spectrum-4 and -5) are the next multiple of 9216 and
    of 12288 bytes; the step is computed from them.
    """
    step = 12288 if model.startswith("SN5") else 9216
    return -(-number // step) * step


def port_qos(view: View, name: str, qos: Tree) -> Tree:
    """The operational QoS of one port: profiles resolved, thresholds as programmed, sizes in KB."""
    config = view.config
    pfc = port_profile(config, qos, name, "pfc")
    lossless = port_lossless(config, qos, name)
    queues = qos["egress-queue-mapping"]["default-global"]["switch-priority"]
    classes = sorted({str(queues[sp]["traffic-class"]) for sp in lossless})
    ecn = port_profile(config, qos, name, "congestion-control")["traffic-class"]
    tree: Tree = {
        "buffer": {"ingress-priority-group": _priority_groups(pfc, lossless)},
        "congestion-control": {
            "traffic-class": {
                number: {
                    **entry,
                    "max-threshold": size(programmed(entry["max-threshold"], view.facts.model)),
                    "min-threshold": size(programmed(entry["min-threshold"], view.facts.model)),
                }
                for number, entry in ecn.items()
            }
        },
        "egress-queue-mapping": qos["egress-queue-mapping"]["default-global"],
        "egress-scheduler": port_profile(config, qos, name, "egress-scheduler"),
        "mapping": port_profile(config, qos, name, "mapping"),
        "pfc": _port_pfc(pfc, lossless),
        "roce": {
            "status": _port_roce(view, name, qos),
            "counters": counters.roce(view.health, name, lossless) if roce_mode(config, view.version) else {},
        },
    }
    if view.version >= (5, 6):
        on = at(config, "interface", name, "qos", "pfc-watchdog", "state") == "enable"
        tree["pfc-watchdog"] = {"state": "enabled" if on else "disabled"}
        if on:
            tree["pfc-watchdog"]["status"] = {
                number: {"deadlock-count": 0, "status": "OK"} for number in classes
            }
    return tree


def _port_pfc(pfc: Tree, lossless: tuple[str, ...]) -> Tree:
    if not lossless:
        return {"rx": "disable", "tx": "disable"}
    sizes = {key: size(value) if key in _BYTES else value for key, value in pfc.items()}
    return {**sizes, "switch-priority": {sp: {} for sp in lossless}}


def _priority_groups(pfc: Tree, lossless: tuple[str, ...]) -> Tree:
    entry: Tree = {"mode": "DYNAMIC", "reserved-size": "0 Bytes", "current-usage": "0 Bytes"}
    groups: Tree = {
        "0": {**entry, "pool-id": 2, "lossy-lossless": "Lossy", "xoff-th": "0 Bytes", "hr": "18.98 KB"}
    }
    if lossless:
        # QoS reference: headroom = port-buffer + xoff-threshold.
        room = int(pfc["port-buffer"]) + int(pfc["xoff-threshold"])
        groups["1"] = {
            **entry,
            "pool-id": 3,
            "lossy-lossless": "Lossless",
            "xoff-th": size(int(pfc["xoff-threshold"])),
            "hr": size(room),
        }
    return groups


def _lldp_app(mode: str) -> Tree:
    if mode == "lossy-multi-tc":
        return {}
    return {"lldp-app-tlv": {"priority": 3, "protocol-id": 4791, "selector": "UDP"}}


def roce_status(config: Tree, version: Version, qos: Tree) -> Tree:
    """Operational `qos roce`: sizes with unit, lists as comma strings."""
    mode = roce_mode(config, version)
    if not mode:
        return {}
    pfc = branch(qos, "pfc", "default-global")
    priorities = ",".join(sorted(branch(pfc, "switch-priority")))
    ecn = qos["congestion-control"]["default-global"]["traffic-class"]
    marked = [number for number, entry in ecn.items() if entry["ecn"] == "enable"]
    first = ecn.get("3") or ecn[min(ecn)]
    trust = {"l2": "pcp", "l3": "dscp", "both": "pcp,dscp", "port": "port"}
    tree: Tree = {
        "mode": mode,
        "pfc": {"pfc-priority": priorities or "-"},
        "congestion-control": {
            "congestion-mode": "ECN",
            "enabled-tc": ",".join(marked),
            "min-threshold": size(first["min-threshold"]),
            "max-threshold": size(first["max-threshold"]),
            "probability": first["probability"],
        },
        "trust": {"trust-mode": trust[qos["mapping"]["default-global"]["trust"]]},
        **_lldp_app(mode),
    }
    if priorities:
        tree["pfc"] |= {
            "rx-enabled": f"{pfc['rx']}d",
            "tx-enabled": f"{pfc['tx']}d",
            "cable-length": pfc["cable-length"],
        }
    tree |= {"prio-map": _prio_map(qos), "tc-map": _tc_map(qos), "pool-map": _pool_map(mode, qos)}
    return tree


def _prio_map(qos: Tree) -> Tree:
    mapping = qos["mapping"]["default-global"]
    rows: Tree = {}
    for number in PRIORITIES:
        codes = [
            code for code, entry in branch(mapping, "dscp").items() if entry["switch-priority"] == int(number)
        ]
        pcps = [code for code, entry in mapping["pcp"].items() if entry["switch-priority"] == int(number)]
        rows[number] = {
            "pcp": ",".join(sorted(pcps)) or "-",
            "dscp": ",".join(sorted(codes, key=natural)) or "-",
            "switch-prio": int(number),
        }
    return rows


def _weight(entry: Tree, strict: str) -> str:
    return strict if entry["mode"] == "strict" else f"DWRR-{entry['bw-percent']}%"


def _tc_map(qos: Tree) -> Tree:
    queues = qos["egress-queue-mapping"]["default-global"]["switch-priority"]
    weights = qos["egress-scheduler"]["default-global"]["traffic-class"]
    return {
        number: {
            "switch-prio": int(number),
            "traffic-class": queues[number]["traffic-class"],
            "scheduler-weight": _weight(weights[str(queues[number]["traffic-class"])], "strict-priority"),
        }
        for number in PRIORITIES
    }


def _pool_map(mode: str, qos: Tree) -> Tree:
    queues = qos["egress-queue-mapping"]["default-global"]["switch-priority"]
    pfc = sorted(branch(qos, "pfc", "default-global", "switch-priority"))
    shielded = {str(queues[sp]["traffic-class"]) for sp in pfc}
    others = sorted({str(entry["traffic-class"]) for entry in queues.values()} - shielded)
    lossy = qos["traffic-pool"].get("default-lossy", {})
    share = f"{lossy.get('memory-percent', 0)}%"
    lossy_sps = ",".join(sorted(branch(lossy, "switch-priority")))

    def pool(name: str, percent: str, priorities: str, classes: Iterable[str]) -> Tree:
        return {
            "name": name,
            "mode": "Dynamic",
            "size": percent,
            "switch-priorities": priorities,
            "traffic-class": ",".join(classes) or "-",
        }

    rows = {"0": pool("lossy-default-ingress", share, lossy_sps or "-", ())}
    if mode == "lossless":
        lossless = qos["traffic-pool"].get("roce-lossless") or {}
        rows["1"] = pool("roce-reserved-ingress", f"{lossless.get('memory-percent', 0)}%", ",".join(pfc), ())
    rows["2"] = pool("lossy-default-egress", share, "-", others)
    if mode in LOSSLESS_MODES:
        rows["3"] = pool("roce-reserved-egress", "inf", "-", sorted(shielded))
    return rows


def _port_roce(view: View, name: str, qos: Tree) -> Tree:
    tree = roce_status(view.config, view.version, qos)
    if not tree:
        return {}
    ecn = port_profile(view.config, qos, name, "congestion-control")["traffic-class"]
    first = ecn.get("3") or ecn[min(ecn)]
    pfc = port_profile(view.config, qos, name, "pfc")
    lossless = port_lossless(view.config, qos, name)
    status = {key: value for key, value in tree.items() if key not in ("prio-map", "tc-map", "pool-map")}
    status["congestion-control"] = {
        **tree["congestion-control"],
        "congestion-mode": "ecn, absolute",
        "enabled-tc": ",".join(number for number, entry in ecn.items() if entry["ecn"] == "enable"),
        "max-threshold": size(programmed(first["max-threshold"], view.facts.model)),
        "min-threshold": size(programmed(first["min-threshold"], view.facts.model)),
        "probability": first["probability"],
    }
    words = {"enable": "yes", "disable": "no"}
    status["pfc"] = {"pfc-priority": ",".join(lossless) or "-"}
    if lossless:
        status["pfc"] |= {"rx-enabled": words[pfc["rx"]], "tx-enabled": words[pfc["tx"]]}
    return status


# --- Selecting -----------------------------------------------------------------------------------


def canonical(words: list[str], version: Version, trees: Sequence[Tree]) -> list[str]:
    """The full names behind (abbreviated) words of `nv show`; raises Refused for unknown ones."""
    node: Node | None = schema(version)
    here: list[Any] = list(trees)
    names: list[str] = []
    for word in words:
        keys = {key for tree in here if isinstance(tree, dict) for key in tree}
        literals = set(node.children) if node else set()
        name = _match(word, keys, literals, node, [*names, word])
        names.append(name)
        here = [tree.get(name, {}) if isinstance(tree, dict) else {} for tree in here]
        node = (node.item or node.children.get(name)) if node else None
    return names


def _match(word: str, keys: set[str], literals: set[str], node: Node | None, command: list[str]) -> str:
    if word in keys or word in literals:
        return word
    if node is not None and node.item is not None:
        raise Refused("Error: The requested item does not exist.")
    found = sorted(name for name in keys | literals if name.startswith(word))
    if len(found) == 1:
        return found[0]
    if found:
        lines = [f"  show {' '.join([*command[:-1], name])}" for name in found]
        raise Refused("\n".join(["Error: Ambiguous Command:", *lines]))
    raise Refused(f"Error: Invalid Command: show {' '.join(command)}")


# --- Tables --------------------------------------------------------------------------------------


def grid(
    headers: Sequence[str], rows: Iterable[Sequence[object]], indent: int = 0, least: Sequence[int] = ()
) -> list[str]:
    """A table with a dashed line under its headers; `least` are minimal widths."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(headers, *cells, strict=True)]
    widths = [max(pair) for pair in zip(widths, least or [0] * len(widths), strict=True)]
    lines = [list(headers), ["-" * width for width in widths], *cells]
    return [
        (
            " " * indent + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _titled(title: str, lines: list[str]) -> list[str]:
    return ["", title, "=" * (len(title) + 3), *lines]


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in _BYTES and isinstance(value, int):
        return f"{value} B"
    return str(value)


def _rows(columns: Sequence[Any], depth: int = 0) -> list[list[str]]:
    """Rows (name, one cell per column) of nested trees; sets print one `[name]` row per member."""
    keys: list[str] = []
    for tree in columns:
        keys += [key for key in (tree if isinstance(tree, dict) else {}) if key not in keys]
    simple, nested, sets = [], [], []
    for key in keys:
        values = [tree.get(key) if isinstance(tree, dict) else None for tree in columns]
        if not any(isinstance(value, dict) for value in values):
            simple.append([" " * depth + key, *(_cell(key, value) for value in values)])
        elif key in _SETS:
            members = sorted({name for value in values for name in value or {}}, key=natural)
            sets += [
                [f"{' ' * depth}[{key}]", *(name if name in (value or {}) else "" for value in values)]
                for name in members
            ]
        else:
            nested += [[" " * depth + key, *("" for _ in columns)], *_rows(values, depth + 2)]
    return [*simple, *nested, *sets]


def state_table(
    headers: Sequence[str], columns: Sequence[Any], described: bool = False, width: int = 0
) -> list[str]:
    """The `operational  applied` table of a tree, with descriptions where the docs show them."""
    rows = _rows(columns)
    if not rows:
        return ["No Data"]
    if described:
        rows = [[*row, _TEXTS.get(row[0].strip(), "")] for row in rows]
        headers = [*headers, "description"]
    return grid(["", *headers], rows, least=[width, *(0 for _ in headers)])


def table(names: list[str], view: View, headers: Sequence[str], columns: Sequence[Tree]) -> list[str]:
    """The table form of one `nv show` command."""
    values = [at(tree, *names) if names else tree for tree in columns]
    if names and names[-1] in _SETS and isinstance(values[0], dict) and any(values[0].values()):
        return _members_table(names[-1], values[0])
    if names[:1] == ["qos"] and len(names) > 1:
        lines = _qos_table(names[1:], view, headers, values)
        if lines is not None:
            return lines
    if names == ["interface"]:
        return _interfaces_table(values[0])
    if names[:1] == ["interface"] and len(names) > 2:
        lines = _port_table(names[2:], headers, values)
        if lines is not None:
            return lines
    return state_table(headers, values)


def _members_table(name: str, members: Tree) -> list[str]:
    """One line per id of a collection, one column per leaf of its members."""
    bodies = [body for body in members.values() if isinstance(body, dict)]
    fields = sorted({key for body in bodies for key, value in body.items() if not isinstance(value, dict)})
    rows = [
        (number, *(_cell(field, at(members[number], field)) for field in fields))
        for number in sorted(members, key=natural)
    ]
    return grid((name, *fields), rows)


def _qos_table(
    names: list[str], view: View, headers: Sequence[str], values: Sequence[Any]
) -> list[str] | None:
    first: Tree = next((tree for tree in values if tree), {})
    if names == ["roce"]:
        return _roce_table(view, headers, values)
    if len(names) == 2 and names[0] in ("egress-queue-mapping", "egress-scheduler", "congestion-control"):
        empty = grid(["", *headers, "description"], [], least=[2, *(0 for _ in headers), 0])
        return [*empty, *_profile_table(names[0], first)]
    if names[0] in ("pfc", "congestion-control", "mapping", "egress-queue-mapping") and len(names) >= 2:
        if names[0] == "mapping" and len(names) == 2:
            simple = [{key: at(tree or {}, key) for key in ("port-default-sp", "trust")} for tree in values]
            return [*state_table(headers, simple, True), *_mapping_tables(first)]
        ordered = [dict(sorted((tree or {}).items())) for tree in values]
        return state_table(headers, ordered, True)
    return None


def _profile_table(kind: str, tree: Tree) -> list[str]:
    if kind == "egress-queue-mapping":
        rows = [(sp, entry["traffic-class"]) for sp, entry in branch(tree, "switch-priority").items()]
        return _titled("SP->TC mapping configuration", grid(("switch-priority", "traffic-class"), rows, 4))
    if kind == "egress-scheduler":
        weights = [
            (number, entry["mode"], entry.get("bw-percent", ""))
            for number, entry in branch(tree, "traffic-class").items()
        ]
        return _titled(
            "TC->DWRR weight configuration", grid(("traffic-class", "mode", "bw-percent"), weights, 4)
        )
    return _titled("ECN Configurations", _ecn_grid(branch(tree, "traffic-class")))


def _ecn_grid(classes: Tree) -> list[str]:
    headers = ("traffic-class", "ECN", "RED", "Min Th", "Max Th", "Probability")
    rows = [
        (
            number,
            entry["ecn"],
            entry["red"],
            _cell("min-threshold", entry["min-threshold"]),
            _cell("max-threshold", entry["max-threshold"]),
            entry["probability"],
        )
        for number, entry in classes.items()
    ]
    return grid(headers, rows, 4)


def _mapping_tables(tree: Tree) -> list[str]:
    lines: list[str] = []
    for name in ("pcp", "dscp"):
        if name in tree:
            codes = sorted(tree[name].items(), key=lambda item: natural(item[0]))
            rows = [(code, entry["switch-priority"]) for code, entry in codes]
            lines += _titled(
                f"{name.upper()}->SP mapping configuration", grid((name, "switch-priority"), rows, 4)
            )
    return lines


def _roce_table(view: View, headers: Sequence[str], values: Sequence[Any]) -> list[str]:
    maps = ("prio-map", "tc-map", "pool-map")
    status: Tree = next((tree for tree in values if tree and "pool-map" in tree), {})
    columns = [{key: value for key, value in (tree or {}).items() if key not in maps} for tree in values]
    name = switch_word(view.version, True)[0]
    ordered: list[Tree] = []
    for tree in columns:
        # The switch comes first, without an operational value.
        ordered.append({name: tree.get(name), "mode": tree.get("mode"), **tree})
    lines = state_table(headers, ordered)
    if not status:
        return [line for line in lines if not line.startswith("mode")]
    titles = (
        ("RoCE PCP/DSCP->SP mapping configurations", "prio-map", ("pcp", "dscp", "switch-prio")),
        (
            "RoCE SP->TC mapping and ETS configurations",
            "tc-map",
            ("switch-prio", "traffic-class", "scheduler-weight"),
        ),
        ("RoCE pool config", "pool-map", ("name", "mode", "size", "switch-priorities", "traffic-class")),
    )
    for title, key, fields in titles:
        rows = [(number, *(entry[field] for field in fields)) for number, entry in status[key].items()]
        body = [("   " + line) if line.strip() else line for line in grid(("", *fields), rows, 1)]
        lines += _titled(title, body)
    return [*lines, "", "Exception List", "=" * 17, "No Data"]


def _interfaces_table(tree: Tree) -> list[str]:
    headers = (
        "Interface",
        "Admin Status",
        "Oper Status",
        "Speed",
        "MTU",
        "Type",
        "Remote Host",
        "Remote Port",
    )
    rows = []
    for name in sorted(tree, key=natural):
        body = tree[name]
        link = branch(body, "link")
        peer: tuple[str, Tree] = next(iter(branch(body, "lldp", "neighbor").items()), ("", {}))
        rows.append(
            (
                name,
                link.get("admin-status", ""),
                link.get("oper-status", ""),
                link.get("speed", ""),
                link.get("mtu", ""),
                body.get("type", ""),
                peer[0],
                at(peer[1], "port", "name") or "",
            )
        )
    return grid(headers, rows)


def _port_table(names: list[str], headers: Sequence[str], values: Sequence[Any]) -> list[str] | None:
    if names == ["qos", "pfc-watchdog"]:
        simple = [{"state": (tree or {}).get("state")} for tree in values]
        lines = state_table(headers, simple, width=15)
        status = branch(values[0] or {}, "status")
        if not status:
            return lines
        rows = [(number, entry["status"], entry["deadlock-count"]) for number, entry in status.items()]
        body = grid(("traffic-class", "status", "deadlock-count"), rows, 4, (0, 8, 0))
        return [*lines, "", "PFC WD Status", "=" * 27, *body]
    if names == ["qos", "congestion-control"] and values[0]:
        return _titled("ECN configuration", _ecn_grid(values[0]["traffic-class"]))[1:]
    if names == ["counters", "qos"] and values[0]:
        lines = []
        for part, title in counters.TITLES.items():
            heads, cells = counters.table(part, values[0][part], inside=True)
            lines += _titled(title, grid(heads, cells, 4))
        return lines[1:]
    if names[0] == "counters" and len(names) > 1 and values[0]:
        return grid(*counters.table(names[-1], values[0]))
    if names == ["link", "stats"] and values[0]:
        shown = [
            {key: size(n) if key.endswith("bytes") else n for key, n in (tree or {}).items()}
            for tree in values
        ]
        return state_table(headers, shown)
    if names[-1] == "ingress-priority-group":
        entries: Tree = values[0] or {}
        fields = list(next(iter(entries.values()), {}))
        rows = [(number, *(entry[field] for field in fields)) for number, entry in entries.items()]
        return grid(("priority-group", *fields), rows)
    return None
