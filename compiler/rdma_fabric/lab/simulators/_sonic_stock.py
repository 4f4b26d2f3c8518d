"""A freshly installed SONiC switch: HwSKU facts, headroom rows and the configuration it boots with.

Headroom rows are those of the HwSKUs' own pg_profile_lookup.ini (sonic-buildimage `device/`), the QoS
part is that of `files/build_templates/qos_config.j2` for a T0 switch: PFC on priorities 3 and 4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact
from rdma_fabric.lab.simulators._sonic_json import Config

DEFAULT_HWSKU = "ACS-SN5600"

_PLATFORMS = {
    "ACS-SN5600": "x86_64-nvidia_sn5600-r0",
    "Arista-7060X6-64PE-64x400G": "x86_64-arista_7060x6_64pe",
    "DellEMC-Z9664f-O64": "x86_64-dell_z9664f-r0",
}

_Rows = dict[tuple[str, str], tuple[int, int, int, int | None]]


def _rows(
    xon: int, offset: int | None, sizes: Iterable[tuple[str, tuple[int, int, int]]], fixed: int
) -> _Rows:
    """Rows of 5m, 40m and 300m by speed; `fixed` is the size where it does not grow with xoff."""
    return {
        (speed, cable): (fixed or xon + xoff, xon, xoff, offset)
        for speed, xoffs in sizes
        for cable, xoff in zip(("5m", "40m", "300m"), xoffs, strict=True)
    }


_SN5600 = _rows(
    19456,
    None,
    (
        ("10000", (45056, 46080, 56320)),
        ("25000", (48128, 52224, 76800)),
        ("40000", (57344, 62464, 101376)),
        ("50000", (63488, 69632, 118784)),
        ("100000", (113664, 126976, 225280)),
        ("200000", (131072, 157696, 355328)),
        ("400000", (231424, 283648, 677888)),
    ),
    fixed=0,
) | {
    ("800000", "5m"): (304128, 38912, 257024, None),
    ("800000", "40m"): (410624, 38912, 362496, None),
    ("800000", "300m"): (1198080, 38912, 1150976, None),
}
_Z9664F = _rows(
    9144,
    9144,
    (
        ("10000", (75438, 78740, 103378)),
        ("25000", (75438, 78740, 103378)),
        ("40000", (91694, 98298, 147574)),
        ("50000", (91694, 98298, 147574)),
        ("100000", (129032, 142240, 240538)),
        ("200000", (214122, 240792, 437134)),
        ("400000", (371348, 424434, 817372)),
    ),
    fixed=9144,
)
# Tomahawk 5 (Arista-7060X6-64PE-256x200G and 7060X6-64PE-O128S2): no 300m row
_TH5: _Rows = {
    **{(speed, cable): (18796, 0, 300990, 3556) for speed in ("100000", "200000") for cable in ("5m", "40m")},
    **{("400000", cable): (18796, 0, 612140, 3556) for cable in ("5m", "40m", "150m")},
}

# pools as the vendors' templates have them: Spectrum (Mellanox-SN4600C sample), Tomahawk (Dell sample)
_POOLS_MELLANOX: Config = {
    "ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "55058432", "xoff": "1712128"},
    "egress_lossless_pool": {"type": "egress", "mode": "dynamic", "size": "60817392"},
    "egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "55058432"},
}
_POOLS_OTHER: Config = {
    "ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "10875072", "xoff": "4194112"},
    "egress_lossless_pool": {"type": "egress", "mode": "static", "size": "15982720"},
    "egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "9243812"},
}
_PROFILES_MELLANOX: Config = {
    "ingress_lossless_profile": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "7"},
    "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"},
    "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "7"},
    "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "9216", "dynamic_th": "7"},
}
_PROFILES_OTHER: Config = {
    "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "static_th": "10875072"},
    "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "1518", "static_th": "15982720"},
    "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1518", "dynamic_th": "3"},
}


def hwsku_of(facts: DeviceFacts) -> str:
    """The HwSKU name: the model of the inventory."""
    return facts.model or DEFAULT_HWSKU


def asic_type_of(hwsku: str) -> str:
    """`asic_type` of the image that runs on a HwSKU."""
    vendor = hwsku.split("-")[0].lower()
    if vendor in ("acs", "mellanox", "nvidia"):
        return "mellanox"
    if vendor == "cisco":
        return "cisco-8000"
    return "marvell-teralynx" if vendor in ("marvell", "dbmvtx9180_64osfp") else "broadcom"


def platform_of(hwsku: str) -> str:
    """The platform name, as in `DEVICE_METADATA|localhost.platform`."""
    return _PLATFORMS.get(hwsku, f"x86_64-{hwsku.lower().replace('-', '_')}-r0")


def headroom_of(hwsku: str) -> _Rows:
    """(speed, cable) -> (size, xon, xoff, xon_offset) in bytes, as pg_profile_lookup.ini lists them.

    A HwSKU without a table of its own here gets that of the same vendor's newest ASIC.
    """
    if asic_type_of(hwsku) == "mellanox":
        return _SN5600
    return _TH5 if "7060x6" in hwsku.lower() else _Z9664F


def lookup_file(hwsku: str) -> bytes:
    """The text of pg_profile_lookup.ini."""
    lines = ["# PG lossless profiles.", "# speed cable size    xon  xoff    threshold xon_offset"]
    for (speed, cable), (size, xon, xoff, offset) in headroom_of(hwsku).items():
        columns = (speed, cable, str(size), str(xon), str(xoff), "0", "" if offset is None else str(offset))
        lines.append(" ".join(column.ljust(8) for column in columns).rstrip())
    return ("\n".join(lines) + "\n").encode()


def port_row(fact: PortFact, place: int) -> dict[str, str]:
    """The PORT row of one port; `place` (from 0) fills what the inventory leaves open."""
    lanes = fact.lanes or ",".join(str(place * 8 + lane + 1) for lane in range(8))
    speed = (fact.speed_gbps or 400) * 1000
    row = {
        "admin_status": "up" if fact.up else "down",
        "alias": fact.alias or f"etp{place + 1}",
        "index": str(fact.index or place + 1),
        "lanes": lanes,
        "mtu": "9100",
        "pfc_asym": "off",
        "speed": str(speed),
        "tpid": "0x8100",
    }
    if speed >= 100000:
        row["fec"] = "rs"
    if fact.peer_node:
        row["description"] = f"{fact.peer_node}:{fact.peer_port}"
    return row


def blank(facts: DeviceFacts, branch_name: str, qos: bool) -> Config:
    """The configuration of a freshly installed switch; `qos` renders the stock AZURE templates."""
    hwsku = hwsku_of(facts)
    config = _foreign(facts, hwsku, branch_name)
    config["PORT"] = {fact.name: port_row(fact, place) for place, fact in enumerate(facts.ports)}
    if qos and facts.ports:
        config.update(_qos(list(config["PORT"]), asic_type_of(hwsku)))
        config.update(_buffers(list(config["PORT"]), asic_type_of(hwsku)))
    return {name: rows for name, rows in config.items() if rows}


def _foreign(facts: DeviceFacts, hwsku: str, branch_name: str) -> Config:
    digest = hashlib.sha256(facts.name.encode()).hexdigest()
    mac = ":".join(["02", *(digest[i : i + 2] for i in range(0, 10, 2))])
    number = int(digest[10:14], 16)
    loopback = f"10.1.{number % 250}.{number // 250 % 250 + 1}"
    peer = f"10.0.{number % 250}.1"
    return {
        "ACL_RULE": {
            "SSH_ONLY|RULE_1": {"PACKET_ACTION": "ACCEPT", "PRIORITY": "9999", "SRC_IP": "192.0.2.0/24"},
            "SSH_ONLY|DEFAULT_RULE": {"ETHER_TYPE": "2048", "PACKET_ACTION": "DROP", "PRIORITY": "1"},
        },
        "ACL_TABLE": {
            "SSH_ONLY": {
                "policy_desc": "SSH_ONLY",
                "services": ["SSH"],
                "stage": "ingress",
                "type": "CTRLPLANE",
            }
        },
        "BGP_NEIGHBOR": {
            peer: {
                "admin_status": "up",
                "asn": "65200",
                "holdtime": "10",
                "keepalive": "3",
                "local_addr": f"10.0.{number % 250}.0",
                "name": "upstream",
            }
        },
        "DEVICE_METADATA": {
            "localhost": {
                "bgp_asn": "65100",
                "buffer_model": "traditional",
                "default_bgp_status": "up",
                "default_pfcwd_status": "disable",
                "docker_routing_config_mode": "separated",
                "hostname": facts.name,
                "hwsku": hwsku,
                "mac": mac,
                "platform": platform_of(hwsku),
                "type": "ToRRouter",
            }
        },
        "FEATURE": {
            name: {"auto_restart": "enabled", "state": "enabled"} for name in ("bgp", "lldp", "swss", "syncd")
        },
        "INTERFACE": (
            {facts.ports[-1].name: {}, f"{facts.ports[-1].name}|10.0.{number % 250}.0/31": {}}
            if facts.ports
            else {}
        ),
        "LOOPBACK_INTERFACE": {"Loopback0": {}, f"Loopback0|{loopback}/32": {}},
        "MGMT_INTERFACE": {f"eth0|192.0.2.{number % 200 + 10}/24": {"gwaddr": "192.0.2.1"}},
        "MGMT_PORT": {"eth0": {"admin_status": "up", "alias": "eth0", "description": "Management port"}},
        "NTP_SERVER": {"192.0.2.2": {"association_type": "server", "resolve_as": "192.0.2.2"}},
        "SYSLOG_SERVER": {"192.0.2.3": {"port": "514"}},
        "VERSIONS": {"DATABASE": {"VERSION": f"version_{branch_name}_01"}},
        "VLAN": {"Vlan1000": {"vlanid": "1000"}},
        "VLAN_INTERFACE": {"Vlan1000": {}, "Vlan1000|192.168.0.1/21": {}},
    }


def _qos(ports: list[str], asic_type: str) -> Config:
    special = {"3": "3", "4": "4", "5": "2", "8": "0", "46": "5", "48": "6"}
    same = {str(i): str(i) for i in range(8)}
    binding = {
        "dscp_to_tc_map": "AZURE",
        "pfc_enable": "3,4",
        "pfc_to_queue_map": "AZURE",
        "pfcwd_sw_enable": "3,4",
        "tc_to_pg_map": "AZURE",
        "tc_to_queue_map": "AZURE",
    }
    config: Config = {
        "DSCP_TO_TC_MAP": {"AZURE": {str(dscp): special.get(str(dscp), "1") for dscp in range(64)}},
        "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": dict(same)},
        "QUEUE": {f"{port}|{queue}": _queue(queue) for port in ports for queue in range(7)},
        "SCHEDULER": {
            "scheduler.0": {"type": "DWRR", "weight": "14"},
            "scheduler.1": {"type": "DWRR", "weight": "15"},
        },
        "TC_TO_PRIORITY_GROUP_MAP": {
            "AZURE": {"0": "0", "1": "0", "2": "0", "3": "3", "4": "4", "5": "0", "6": "0", "7": "7"}
        },
        "TC_TO_QUEUE_MAP": {"AZURE": dict(same)},
        "WRED_PROFILE": {"AZURE_LOSSLESS": _stock_wred()},
    }
    if asic_type == "mellanox":
        config["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"] = {"AZURE": {"3": "3", "4": "4"}}
        binding["pfc_to_pg_map"] = "AZURE"
    config["PORT_QOS_MAP"] = {
        "global": {"dscp_to_tc_map": "AZURE"},
        **{port: dict(binding) for port in ports},
    }
    return config


def _queue(queue: int) -> dict[str, str]:
    if queue in (3, 4):
        return {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}
    return {"scheduler": "scheduler.0"}


def _stock_wred() -> dict[str, str]:
    row = {"ecn": "ecn_all"}
    for colour in ("green", "yellow", "red"):
        row[f"wred_{colour}_enable"] = "true"
        row[f"{colour}_min_threshold"] = "1048576"
        row[f"{colour}_max_threshold"] = "2097152"
        row[f"{colour}_drop_probability"] = "5"
    return row


def _buffers(ports: list[str], asic_type: str) -> Config:
    mellanox = asic_type == "mellanox"
    pools, profiles = (_POOLS_MELLANOX, _PROFILES_MELLANOX) if mellanox else (_POOLS_OTHER, _PROFILES_OTHER)
    config: Config = {
        "BUFFER_PG": {f"{port}|0": {"profile": "ingress_lossy_profile"} for port in ports},
        "BUFFER_POOL": {name: dict(row) for name, row in pools.items()},
        "BUFFER_PROFILE": {name: dict(row) for name, row in profiles.items()},
        "BUFFER_QUEUE": {
            f"{port}|{queues}": {"profile": f"egress_{kind}_profile"}
            for port in ports
            for queues, kind in (("0-2", "lossy"), ("3-4", "lossless"), ("5-6", "lossy"))
        },
        "CABLE_LENGTH": {"AZURE": dict.fromkeys(ports, "5m")},
    }
    if mellanox:
        lossless = {"profile_list": "ingress_lossless_profile"}
        both = {"profile_list": "egress_lossless_profile,egress_lossy_profile"}
        config["BUFFER_PORT_INGRESS_PROFILE_LIST"] = {port: dict(lossless) for port in ports}
        config["BUFFER_PORT_EGRESS_PROFILE_LIST"] = {port: dict(both) for port in ports}
    return config
