"""Realistic config_db documents: what a SONiC switch holds before we touch it.

Ports come from SONiC's own port lists, QoS and buffers from what its own generator makes (both under
`shared/data/sonic`), the foreign tables are ours. All of it must be valid under SONiC's models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tests.judges.sonic_yang import SHARED, Branch

# Not `sonic_yang.ConfigDb`: tests change these documents.
Document: TypeAlias = dict[str, dict[str, dict[str, Any]]]

PAGE = SHARED / "reference" / "platforms" / "sonic.md"
PORT_LISTS = SHARED / "data" / "sonic" / "port_config"
_CONFIGS = SHARED / "data" / "sonic" / "config"
_QOS = "qos-dell6100.json"
# hwsku -> (asic_type of `show platform summary`, the generated buffer file of the nearest kin)
_HARDWARE = {
    "ACS-SN5600": ("mellanox", "buffers-mellanox4600c-t0.json"),
    "Arista-7060X6-64PE-64x400G": ("broadcom", "buffer-ft2-p64.json"),
    "DellEMC-Z9664f-O64": ("broadcom", "buffers-dell6100.json"),
}
_BUFFER_ROWS = {
    "BUFFER_PG": ("0",),
    "BUFFER_QUEUE": ("0-2", "3-4", "5-6", "5-7"),
}
# Mbit/s where the port list has no speed column (SN5600): 64 x 800G of eight lanes, one 25G service port.
_SPEED_OF_LANES = {8: "800000", 1: "25000"}
HWSKUS = tuple(_HARDWARE)


def missing() -> str | None:
    """Return why no base can be built here, or None when it can."""
    absent = [str(place) for place in (PAGE, PORT_LISTS, _CONFIGS) if not place.exists()]
    return f"SONiC reference data is absent ({', '.join(absent)})" if absent else None


def worked_example() -> Document:
    """Return section 5 of the reference page, with the 62 shortened DSCP entries written out."""
    section = PAGE.read_text(encoding="utf-8").split("\n## 5. ")[1].split("\n## 6. ")[0]
    document: Document = json.loads(section.split("```json\n")[1].split("```")[0])
    mapped = document["DSCP_TO_TC_MAP"]["ROCE"]
    document["DSCP_TO_TC_MAP"]["ROCE"] = {str(code): mapped.get(str(code), "0") for code in range(64)}
    return document


def sample_config_db() -> Document:
    """Return SONiC's own sample, a large configuration that touches every model of master."""
    document: Document = _load("sample_config_db.json")["SAMPLE_CONFIG_DB_JSON"]
    return document


def read_ports(ports_ini: Path) -> dict[str, dict[str, str]]:
    """Return the PORT table of a port_config.ini: name -> lanes, alias, index, speed (Mbit/s), fec."""
    lines = ports_ini.read_text(encoding="utf-8").splitlines()
    header = next(line for line in lines if re.match(r"#\s*name\s", line))
    columns = header.lstrip("# ").split()
    ports: dict[str, dict[str, str]] = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            row = dict(zip(columns, line.split(), strict=True))
            if "speed" not in row:
                row["speed"] = _SPEED_OF_LANES[len(row["lanes"].split(","))]
            ports[row.pop("name")] = row
    return ports


def realistic_base(ports_ini: Path, hwsku: str, branch: Branch) -> Document:
    """Return a whole config_db: device, ports, stock QoS and buffers, and foreign tables.

    Raises KeyError for a hwsku that is not in HWSKUS.
    """
    asic, buffers = _HARDWARE[hwsku]
    ports = {
        name: {**row, "mtu": "9100", "admin_status": "up"} for name, row in read_ports(ports_ini).items()
    }
    return {
        "DEVICE_METADATA": {"localhost": _device(hwsku, branch)},
        "PORT": ports,
        **_stock_qos(ports, asic, branch),
        **_stock_buffers(ports, _load(buffers)),
        **_watchdog(ports),
        **_foreign(list(ports)),
    }


def _load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((_CONFIGS / name).read_text(encoding="utf-8"))
    return document


def _device(hwsku: str, branch: Branch) -> dict[str, str]:
    device = {
        "hostname": "leaf01",
        "hwsku": hwsku,
        "platform": "x86_64-kvm_x86_64-r0",
        "mac": "02:00:00:00:00:01",
        "type": "ToRRouter",
        "bgp_asn": "65100",
        "buffer_model": "traditional",
        "docker_routing_config_mode": "separated",
        "default_bgp_status": "up",
    }
    # zebra_nexthop came after 202411: a field that older models refuse.
    return {**device, "zebra_nexthop": "enabled"} if branch == "master" else device


def _stock_qos(ports: Mapping[str, object], asic: str, branch: Branch) -> Document:
    stock = _load(_QOS)
    binding = dict(stock["PORT_QOS_MAP"]["Ethernet0"])
    queues = {key.split("|")[1]: row for key, row in stock["QUEUE"].items() if key.startswith("Ethernet0|")}
    qos: Document = {
        **stock,
        "QUEUE": {f"{port}|{queue}": dict(row) for port in ports for queue, row in queues.items()},
    }
    if asic == "mellanox":
        # The stock template emits this map for mellanox and barefoot only (sonic.md section 2, row d).
        qos["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"] = {"AZURE": {"3": "3", "4": "4"}}
        binding["pfc_to_pg_map"] = "AZURE"
    qos["PORT_QOS_MAP"] = {"global": {"dscp_to_tc_map": "AZURE"}, **{port: dict(binding) for port in ports}}
    if branch == "master":
        qos["TC_TO_DSCP_MAP"] = _load("qos-arista7050cx3-dualtor.json")["TC_TO_DSCP_MAP"]
    return qos


def _stock_buffers(ports: Mapping[str, object], stock: Document) -> Document:
    buffers: Document = {
        "BUFFER_POOL": stock["BUFFER_POOL"],
        "BUFFER_PROFILE": stock["BUFFER_PROFILE"],
        "CABLE_LENGTH": {"AZURE": dict.fromkeys(ports, "40m")},
    }
    for table, ranges in _BUFFER_ROWS.items():
        rows = {part: _in_use(stock[table], part) for part in ranges}
        buffers[table] = {
            f"{port}|{part}": dict(row) for port in ports for part, row in rows.items() if row is not None
        }
    for table in ("BUFFER_PORT_INGRESS_PROFILE_LIST", "BUFFER_PORT_EGRESS_PROFILE_LIST"):
        if table in stock:
            row = next(row for row in stock[table].values() if "zero" not in row["profile_list"])
            buffers[table] = {port: dict(row) for port in ports}
    return buffers


def _in_use(rows: Mapping[str, Mapping[str, str]], part: str) -> Mapping[str, str] | None:
    """Return the row that stock ports in use have for this group or queue range (not the zero profile)."""
    fitting = (row for key, row in rows.items() if key.split("|")[1] == part)
    return next((row for row in fitting if "zero" not in row["profile"]), None)


def _watchdog(ports: Mapping[str, object]) -> Document:
    """Return what `pfcwd start_default` leaves: 200 ms scaled by (ports - 1) / 32 + 1, like the others."""
    scaled = str(200 * ((len(ports) - 1) // 32 + 1))
    row = {"action": "drop", "detection_time": scaled, "restoration_time": scaled}
    return {"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": scaled}, **{port: dict(row) for port in ports}}}


def _foreign(ports: list[str]) -> Document:
    """Return tables that are not ours: they must come through a change byte-equal."""
    access, bond, routed = ports[-4:-2], ports[-2:], ports[:-4]
    interfaces: dict[str, dict[str, Any]] = {}
    neighbours: dict[str, dict[str, Any]] = {}
    for number, port in enumerate(routed):
        local, peer = f"10.0.{number}.0", f"10.0.{number}.1"
        interfaces |= {port: {}, f"{port}|{local}/31": {}}
        neighbours[peer] = {"asn": str(65200 + number), "local_addr": local, "name": f"spine{number:02}"}
    return {
        "INTERFACE": interfaces,
        "BGP_NEIGHBOR": neighbours,
        "LOOPBACK_INTERFACE": {"Loopback0": {}, "Loopback0|192.0.2.1/32": {}},
        "VLAN": {"Vlan100": {"vlanid": "100", "admin_status": "up", "dhcp_servers": ["198.51.100.5"]}},
        "VLAN_MEMBER": {f"Vlan100|{port}": {"tagging_mode": "untagged"} for port in access},
        "VLAN_INTERFACE": {"Vlan100": {}, "Vlan100|198.51.100.1/24": {}},
        "PORTCHANNEL": {"PortChannel1": {"admin_status": "up", "min_links": "1", "lacp_key": "auto"}},
        "PORTCHANNEL_MEMBER": {f"PortChannel1|{port}": {} for port in bond},
        "PORTCHANNEL_INTERFACE": {"PortChannel1": {}, "PortChannel1|203.0.113.0/31": {}},
        **_foreign_services(access),
    }


def _foreign_services(access: list[str]) -> Document:
    deny = {"PRIORITY": "10", "PACKET_ACTION": "DROP", "SRC_IP": "198.51.100.0/24", "L4_DST_PORT": "23"}
    allow = {"PRIORITY": "5", "PACKET_ACTION": "FORWARD", "SRC_IP": "198.51.100.0/24"}
    return {
        "ACL_TABLE": {
            "TENANT-IN": {"type": "L3", "policy_desc": "no telnet", "ports": access, "stage": "ingress"}
        },
        "ACL_RULE": {"TENANT-IN|NO_TELNET": deny, "TENANT-IN|REST": allow},
        "MGMT_INTERFACE": {"eth0|192.0.2.11/24": {"gwaddr": "192.0.2.254"}},
        "SYSLOG_SERVER": {"192.0.2.200": {"source": "192.0.2.11", "port": "514"}},
        "NTP_SERVER": {"192.0.2.201": {}},
        "SNMP_COMMUNITY": {"planted-community": {"TYPE": "RO"}},
        "FEATURE": {"lldp": {"state": "enabled", "auto_restart": "enabled"}},
        "SWITCH_HASH": {"GLOBAL": {"ecmp_hash": ["SRC_IP", "DST_IP", "L4_SRC_PORT", "L4_DST_PORT"]}},
        "LLDP": {"GLOBAL": {"hello_time": "30", "multiplier": "4"}},
    }
