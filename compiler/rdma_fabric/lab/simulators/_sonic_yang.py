"""What SONiC's YANG models accept in the tables of RoCE, per release branch.

Ranges, patterns, references and must rules are those of sonic-buildimage `src/sonic-yang-models`
(branches 202305, 202411 and master); tests compare this file with the models. What the models let
through although it is wrong (a queue index "foo", a table without a model) is let through here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rdma_fabric.lab.simulators._sonic_json import Config

MASTER = 999999
NEW_LIBYANG = 202511  # branches up to 202505 use libyang 1.0: other error texts

_MODELS = """
AAA ACL_RULE ACL_TABLE ACL_TABLE_TYPE ASIC_SENSORS AUTO_TECHSUPPORT AUTO_TECHSUPPORT_FEATURE
BANNER_MESSAGE BGP_AGGREGATE_ADDRESS BGP_ALLOWED_PREFIXES BGP_BBR BGP_DEVICE_GLOBAL BGP_GLOBALS
BGP_GLOBALS_AF BGP_GLOBALS_AF_AGGREGATE_ADDR BGP_GLOBALS_AF_NETWORK BGP_GLOBALS_LISTEN_PREFIX
BGP_INTERNAL_NEIGHBOR BGP_MONITORS BGP_NEIGHBOR BGP_NEIGHBOR_AF BGP_PEER_GROUP BGP_PEER_GROUP_AF
BGP_PEER_RANGE BGP_SENTINELS BGP_VOQ_CHASSIS_NEIGHBOR BMP BREAKOUT_CFG BUFFER_PG BUFFER_POOL
BUFFER_PORT_EGRESS_PROFILE_LIST BUFFER_PORT_INGRESS_PROFILE_LIST BUFFER_PROFILE BUFFER_QUEUE
CABLE_LENGTH CHASSIS_MODULE CONSOLE_PORT CONSOLE_SWITCH COPP_GROUP COPP_TRAP CRM DASH_HA_GLOBAL_CONFIG
DASH_VNET DEBUG_COUNTER DEBUG_COUNTER_DROP_REASON DEBUG_DROP_MONITOR DEFAULT_LOSSLESS_BUFFER_PARAMETER
DEVICE_METADATA DEVICE_NEIGHBOR DEVICE_NEIGHBOR_METADATA DHCPV4_RELAY DHCP_RELAY DHCP_SERVER
DHCP_SERVER_IPV4 DHCP_SERVER_IPV4_CUSTOMIZED_OPTIONS DHCP_SERVER_IPV4_PORT DHCP_SERVER_IPV4_RANGE
DNS_NAMESERVER DNS_OPTIONS DOT1P_TO_TC_MAP DPU DPUS DSCP_TO_FC_MAP DSCP_TO_TC_MAP EVPN_ETHERNET_SEGMENT
EVPN_MH_GLOBAL EXP_TO_FC_MAP FABRIC_MONITOR FABRIC_PORT FEATURE FG_NHG FG_NHG_MEMBER FG_NHG_PREFIX FIPS
FLEX_COUNTER_TABLE FLOW_COUNTER_ROUTE_PATTERN GNMI GNMI_CLIENT_CERT GRPCCLIENT HEARTBEAT
HIGH_FREQUENCY_TELEMETRY_GROUP HIGH_FREQUENCY_TELEMETRY_PROFILE INTERFACE KDUMP KUBERNETES_MASTER LDAP
LDAP_SERVER LEAK_CONTROL_POLICY LLDP LLDP_PORT LOGGER LOOPBACK_INTERFACE LOSSLESS_TRAFFIC_PATTERN
MACSEC_PROFILE MAC_MOVE_GUARD MAP_PFC_PRIORITY_TO_QUEUE MCLAG_DOMAIN MCLAG_INTERFACE MCLAG_UNIQUE_IP
MEMORY_STATISTICS MGMT_INTERFACE MGMT_PORT MGMT_VRF_CONFIG MID_PLANE_BRIDGE MIRROR_SESSION
MPLS_TC_TO_TC_MAP MUX_CABLE MUX_LINKMGR NAT_BINDINGS NAT_GLOBAL NAT_POOL NEIGH NTP NTP_SERVER
NVGRE_TUNNEL NVGRE_TUNNEL_MAP PASSW_HARDENING PBH_HASH PBH_HASH_FIELD PBH_RULE PBH_TABLE PEER_SWITCH
PFC_PRIORITY_TO_PRIORITY_GROUP_MAP PFC_WD POLICER PORT PORTCHANNEL PORTCHANNEL_INTERFACE
PORTCHANNEL_MEMBER PORT_QOS_MAP PORT_STORM_CONTROL PREFIX PREFIX_LIST PREFIX_SET QUEUE RADIUS
RADIUS_SERVER REMOTE_DPU RESTAPI ROUTE_MAP ROUTE_MAP_SET ROUTE_REDISTRIBUTE SAG SCHEDULER SERIAL_CONSOLE
SFLOW SFLOW_COLLECTOR SFLOW_SESSION SNMP SNMP_COMMUNITY SNMP_USER SRV6_MY_LOCATORS SRV6_MY_SIDS
SSH_SERVER STATIC_NAPT STATIC_NAT STATIC_ROUTE STORMOND_CONFIG STP STP_PORT STP_VLAN STP_VLAN_PORT
SUBNET_DECAP SUPPRESS_ASIC_SDK_HEALTH_EVENT SWITCH_FAST_LINKUP SWITCH_HASH SWITCH_TRIMMING SYSLOG_CONFIG
SYSLOG_CONFIG_FEATURE SYSLOG_SERVER SYSTEM_DEFAULTS SYSTEM_PORT TACPLUS TACPLUS_SERVER TC_TO_DSCP_MAP
TC_TO_PRIORITY_GROUP_MAP TC_TO_QUEUE_MAP TELEMETRY TELEMETRY_CLIENT TUNNEL VDPU VERSIONS VLAN
VLAN_INTERFACE VLAN_MEMBER VLAN_SUB_INTERFACE VNET VNET_ROUTE VNET_ROUTE_TUNNEL VOQ_INBAND_INTERFACE VRF
VXLAN_EVPN_NVO VXLAN_TUNNEL VXLAN_TUNNEL_MAP WARM_RESTART WRED_PROFILE XCVRD_LOG ZTP
"""
TABLES_WITH_MODEL = frozenset(_MODELS.split())
"""Tables of the master models (names as in their sample configuration)."""


class YangError(Exception):
    """The configuration does not satisfy the models."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Type of one field or key part; `refs` are tables of which a key (or `words`) must exist."""

    low: int | None = None
    high: int | None = None
    pattern: str = ""
    words: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    message: str = ""
    many: bool = False
    since: int = 0
    until: int = MASTER


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one table; `entries` is (key leaf, value leaf) where a row is a map."""

    keys: tuple[Leaf, ...]
    leaves: Mapping[str, Leaf | tuple[Leaf, ...]] = field(default_factory=dict)
    entries: tuple[Leaf, Leaf | tuple[Leaf, ...]] | None = None
    mandatory: tuple[str, ...] = ()
    exact: bool = True


def _number(low: int, high: int, message: str = "", since: int = 0, until: int = MASTER) -> Leaf:
    return Leaf(low=low, high=high, message=message, since=since, until=until)


def _words(text: str, since: int = 0) -> Leaf:
    return Leaf(words=tuple(text.split()), since=since)


def _of(*tables: str, words: str = "", many: bool = False, since: int = 0) -> Leaf:
    return Leaf(refs=tables, words=tuple(words.split()), many=many, since=since)


_U64 = _number(0, 2**64 - 1)
_U32 = _number(0, 2**32 - 1)
_U16 = _number(0, 2**16 - 1)
_ANY = Leaf(pattern=r"(.|\n)*")
_TEXT = Leaf(pattern=r"(.|\n){1,128}")
_NAME = Leaf(pattern=r"[a-zA-Z0-9]{1}([-a-zA-Z0-9_]{0,31})")
_TRUE = _words("true false")
_ONOFF = Leaf(pattern="on|off")
_PORT = _of("PORT")
_TC = _number(0, 15, "Invalid Traffic Class")
_DSCP = Leaf(pattern="6[0-3]|[1-5][0-9]?|[0-9]?", message="Invalid DSCP")
_PG = Leaf(pattern="[0-7]?", message="Invalid Priority Group")
_PFC = Leaf(pattern="[0-7]?", message="Invalid pfc priority")
_QUEUE = Leaf(pattern="[0-7]?", message="Invalid queue index")
_PFC_SET = (
    Leaf(pattern="[0-7](,[0-7])*", until=202505),
    Leaf(pattern="([0-7](,[0-7])*)?", since=202511),
)
_NOT_GLOBAL = "../ifname != 'GLOBAL'"
_PROFILES = Table(keys=(_PORT,), leaves={"profile_list": _of("BUFFER_PROFILE", many=True)})
_COLOURS = ("green", "yellow", "red")
_WRED: dict[str, Leaf] = {
    **{f"{colour}_{bound}_threshold": _U64 for colour in _COLOURS for bound in ("min", "max")},
    **{f"{colour}_drop_probability": _number(0, 100) for colour in _COLOURS},
    **{f"wred_{colour}_enable": _TRUE for colour in _COLOURS},
    "ecn": _words(
        "ecn_none ecn_green ecn_yellow ecn_red ecn_green_yellow ecn_green_red ecn_yellow_red ecn_all"
    ),
}
_PORT_LEAVES: dict[str, Leaf | tuple[Leaf, ...]] = {
    **dict.fromkeys(("alias", "lanes", "asic_port_name", "interface_type", "adv_interface_types"), _TEXT),
    **dict.fromkeys(("description", "adv_speeds", "tx_power", "laser_freq", "macsec", "tpid"), _ANY),
    **{name: Leaf(pattern=".{1,16}", since=202405) for name in ("core_id", "core_port_id", "num_voq")},
    "speed": (_number(1, 800000, until=202505), _number(1, 1600000, since=202511)),
    "mtu": _number(68, 9216),
    "index": _U16,
    "subport": _number(0, 8),
    "admin_status": _words("up down"),
    "fec": (Leaf(pattern="rs|fc|none", until=202311), Leaf(pattern="rs|fc|none|auto", since=202405)),
    "link_training": _ONOFF,
    "autoneg": _ONOFF,
    "pfc_asym": _ONOFF,
    "role": (
        Leaf(pattern="Ext|Int|Inb|Rec", until=202311),
        Leaf(pattern="Ext|Int|Inb|Rec|Dpc", since=202405),
    ),
    "dom_polling": _words("enabled disabled"),
    "mux_cable": _TRUE,
    "mode": _words("routed access trunk", since=202405),
    "dhcp_rate_limit": Leaf(low=0, high=2**32 - 1, since=202405),
    "fast_linkup": Leaf(words=("true", "false"), since=202511),
}
_SCHEDULER: dict[str, Leaf] = {
    "type": _words("DWRR WRR STRICT"),
    "weight": _number(1, 100),
    "priority": _number(0, 9),
    "meter_type": _words("packets bytes"),
    "cir": _U64,
    "pir": _U64,
    "cbs": _U32,
    "pbs": _U32,
}
_BUFFER_PROFILE: dict[str, Leaf] = {
    **dict.fromkeys(("static_th", "size", "xon_offset", "xon", "xoff"), _U64),
    "dynamic_th": _number(-8, 7),
    "pool": _of("BUFFER_POOL"),
    "headroom_type": _words("static dynamic"),
    "packet_discard_action": _words("drop trim", since=202505),
}


def _map_of(key: Leaf, value: Leaf | tuple[Leaf, ...]) -> Table:
    return Table(keys=(_NAME,), entries=(key, value))


TABLES: dict[str, Table] = {
    "PORT": Table(keys=(_TEXT,), leaves=_PORT_LEAVES, mandatory=("lanes", "speed")),
    "VLAN": Table(
        keys=(Leaf(pattern="Vlan([0-9]{1,3}|[1-3][0-9]{3}|[4][0][0-8][0-9]|[4][0][9][0-4])"),),
        leaves={"mtu": _number(1, 9216)},
        exact=False,
    ),
    "PORTCHANNEL": Table(
        keys=(Leaf(pattern="PortChannel[0-9]{1,4}"),), leaves={"mtu": _number(1, 9216)}, exact=False
    ),
    "DSCP_TO_TC_MAP": _map_of(_DSCP, _TC),
    "DOT1P_TO_TC_MAP": _map_of(Leaf(pattern="[0-7]?", message="Invalid DOT1P"), _TC),
    "TC_TO_QUEUE_MAP": _map_of(
        _TC,
        (
            Leaf(pattern="[0-7]?", message="Invalid queue index", until=202405),
            Leaf(pattern="[0-9]?", message="Invalid queue index", since=202411),
        ),
    ),
    "TC_TO_PRIORITY_GROUP_MAP": _map_of(_TC, _PG),
    "TC_TO_DSCP_MAP": _map_of(_TC, _DSCP),
    "MAP_PFC_PRIORITY_TO_QUEUE": _map_of(_PFC, _QUEUE),
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": _map_of(_PFC, _PG),
    "CABLE_LENGTH": _map_of(_PORT, Leaf(pattern="[0-9]+m", message="Invalid cable length.")),
    "SCHEDULER": Table(keys=(_ANY,), leaves=_SCHEDULER),
    "WRED_PROFILE": Table(keys=(_NAME,), leaves=_WRED),
    "QUEUE": Table(
        keys=(_of("PORT", words="CPU"), _ANY),
        leaves={"scheduler": _of("SCHEDULER"), "wred_profile": _of("WRED_PROFILE")},
    ),
    "PORT_QOS_MAP": Table(
        keys=(_of("PORT", words="global"),),
        leaves={
            "dscp_to_tc_map": _of("DSCP_TO_TC_MAP"),
            "dot1p_to_tc_map": _of("DOT1P_TO_TC_MAP"),
            "tc_to_queue_map": _of("TC_TO_QUEUE_MAP"),
            "tc_to_pg_map": _of("TC_TO_PRIORITY_GROUP_MAP"),
            "tc_to_dscp_map": _of("TC_TO_DSCP_MAP", since=202311),
            "pfc_to_queue_map": _of("MAP_PFC_PRIORITY_TO_QUEUE"),
            "pfc_to_pg_map": _of("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"),
            "scheduler": _of("SCHEDULER"),
            "pfc_enable": _PFC_SET,
            "pfcwd_sw_enable": _PFC_SET,
        },
    ),
    "PFC_WD": Table(
        keys=(_of("PORT", words="GLOBAL"),),
        leaves={
            "action": _words("drop forward alert"),
            "detection_time": _number(100, 5000),
            "restoration_time": _number(100, 60000),
            "pfc_stat_history": Leaf(
                pattern="enable|disable",
                message="pfc_stat_history must be either enable or disable",
                since=202511,
            ),
            "POLL_INTERVAL": (_number(100, 3000, until=202505), _number(100, 1000, since=202511)),
        },
    ),
    "BUFFER_POOL": Table(
        keys=(_ANY,),
        leaves={
            "type": (
                Leaf(words=("ingress", "egress"), until=202305),
                _words("ingress egress both", since=202311),
            ),
            "mode": _words("static dynamic"),
            "size": _U64,
            "xoff": _U64,
            "percentage": Leaf(low=0, high=255, since=202311),
        },
        mandatory=("type", "mode"),
    ),
    "BUFFER_PROFILE": Table(keys=(_ANY,), leaves=_BUFFER_PROFILE, mandatory=("size", "pool")),
    "BUFFER_PG": Table(
        keys=(_PORT, Leaf(pattern="[0-7]((-)[0-7])?", message="Invalid Buffer PG number")),
        leaves={"profile": _of("BUFFER_PROFILE", words="NULL")},
    ),
    "BUFFER_QUEUE": Table(
        keys=(_PORT, Leaf(pattern="(1[0-5]|[0-9])((-)(1[0-5]|[0-9]))?", message="Invalid Q-index")),
        leaves={"profile": _of("BUFFER_PROFILE")},
    ),
    "BUFFER_PORT_INGRESS_PROFILE_LIST": _PROFILES,
    "BUFFER_PORT_EGRESS_PROFILE_LIST": _PROFILES,
    "LOSSLESS_TRAFFIC_PATTERN": Table(
        keys=(_NAME,),
        leaves={
            "mtu": _number(1, 9216, "Invaild MTU which should be in [1, 9216]."),
            "small_packet_percentage": _number(
                0, 100, "Invalid small packets percentage which should be in [0, 100]."
            ),
        },
        mandatory=("mtu", "small_packet_percentage"),
    ),
    "DEFAULT_LOSSLESS_BUFFER_PARAMETER": Table(
        keys=(_NAME,),
        leaves={
            "default_dynamic_th": _number(
                -8, 7, "Invalid default dynamic_th which should be a number in the range [-8, 7]."
            ),
            "over_subscribe_ratio": _U16,
        },
        mandatory=("default_dynamic_th",),
    ),
    "VLAN_MEMBER": Table(keys=(_of("VLAN"), _of("PORT", "PORTCHANNEL")), exact=False),
    "PORTCHANNEL_MEMBER": Table(keys=(_of("PORTCHANNEL"), _PORT), exact=False),
}


def validate(config: Config, branch: int) -> None:
    """Pass, or raise YangError with the text that the updater prints after `Error: `."""
    for name, rows in config.items():
        table = TABLES.get(name)
        if table is None:
            continue
        if not isinstance(rows, dict):
            raise YangError(f"Data Loading Failed\nTable {name} is not an object")
        for key, row in rows.items():
            _check_row(config, branch, name, table, key, row)
    for rule in (_poll_interval, _wred_order, _scheduler_rates, _pool_percentage, _lanes):
        for problem in rule(config):
            raise YangError(_failed(problem, branch))


def _failed(text: str, branch: int) -> str:
    return f"Data Loading Failed\n{text}" if branch < NEW_LIBYANG else f"Data Loading Failed:{text}"


def _check_row(config: Config, branch: int, name: str, table: Table, key: str, row: object) -> None:
    if not isinstance(row, dict):
        raise YangError(_failed(f"All Keys are not parsed in {name}\ndict_keys(['{key}'])", branch))
    parts = key.split("|")
    if len(parts) != len(table.keys):
        raise YangError(_failed(f"All Keys are not parsed in {name}\ndict_keys(['{key}'])", branch))
    for part, leaf in zip(parts, table.keys, strict=True):
        _check_value(config, branch, name, leaf, part)
    if table.entries:
        for entry, value in row.items():
            _check_value(config, branch, entry, table.entries[0], entry)
            _check_value(config, branch, entry, pick(table.entries[1], branch) or _ANY, value)
        return
    for leaf_name, value in row.items():
        found = pick(table.leaves.get(leaf_name), branch)
        if found is not None:
            _check_value(config, branch, leaf_name, found, value)
        elif table.exact:
            text = (
                f"All Keys are not parsed in {name}\ndict_keys(['{key}'])\nexceptionList:[\"'{leaf_name}'\"]"
            )
            raise YangError(_failed(text, branch))
    for leaf_name in table.mandatory:
        if leaf_name not in row:
            old = f'Missing required element "{leaf_name}" in "{name}_LIST".'
            new = f'Mandatory node "{leaf_name}" instance does not exist.'
            raise YangError(_failed(old if branch < NEW_LIBYANG else new, branch))


def pick(leaf: Leaf | tuple[Leaf, ...] | None, branch: int) -> Leaf | None:
    """The type that a field has on a branch; None where the branch does not know the field."""
    choices = leaf if isinstance(leaf, tuple) else (leaf,) if leaf else ()
    return next((one for one in choices if one.since <= branch <= one.until), None)


def _check_value(config: Config, branch: int, name: str, leaf: Leaf, value: object) -> None:
    if isinstance(value, list):
        values = value
    else:
        values = str(value).split(",") if leaf.many and value != "" else [value]
    for one in values:
        if isinstance(one, dict | list) or one is None:
            raise YangError(_failed(f'Invalid value "{one}" in "{name}" element.', branch))
        text = str(one).lower() if isinstance(one, bool) else str(one)
        problem = _problem(config, branch, name, leaf, text)
        if problem:
            raise YangError(_failed(leaf.message or problem, branch))


def _problem(config: Config, branch: int, name: str, leaf: Leaf, text: str) -> str:
    old = branch < NEW_LIBYANG
    if leaf.low is not None and leaf.high is not None:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            return (
                f'Invalid value "{text}" in "{name}" element.' if old else f'Invalid number value "{text}".'
            )
        if leaf.low <= int(text) <= leaf.high:
            return ""
        span = f"{leaf.low}..{leaf.high}"
        if old:
            return f'Value "{text}" does not satisfy the constraint "{span}" (range, length, or pattern).'
        return f'Unsatisfied range - value "{text}" is out of the allowed range.'
    if leaf.pattern:
        if re.fullmatch(leaf.pattern, text):
            return ""
        if old:
            span = leaf.pattern
            return f'Value "{text}" does not satisfy the constraint "{span}" (range, length, or pattern).'
        return f'Unsatisfied pattern - "{text}" does not conform to "{leaf.pattern}".'
    if text in leaf.words or any(text in config.get(table, {}) for table in leaf.refs):
        return ""
    if leaf.refs:
        model = leaf.refs[0].lower().replace("_", "-")
        path = f"/sonic-{model}:sonic-{model}/{leaf.refs[0]}/{leaf.refs[0]}_LIST/name"
        if old:
            return f'Leafref "{path}" of value "{text}" points to a non-existing leaf.'
        return f'Invalid leafref value "{text}" - no target instance "{path}" with the same value.'
    return f'Invalid value "{text}" in "{name}" element.' if old else f'Invalid enumeration value "{text}".'


def _poll_interval(config: Config) -> Iterator[str]:
    rows = config.get("PFC_WD", {})
    has_global = "GLOBAL" in rows
    for key, row in rows.items():
        if key != "GLOBAL" and "POLL_INTERVAL" in row:
            yield "Must condition \"../ifname = 'GLOBAL'\" not satisfied."
        for name in ("action", "detection_time", "restoration_time", "pfc_stat_history"):
            if key == "GLOBAL" and name in row:
                yield f'Must condition "{_NOT_GLOBAL}" not satisfied.'
        for name in ("detection_time", "restoration_time"):
            if key == "GLOBAL" or name not in row or not has_global:
                continue
            # XPath: a comparison with a leaf that does not exist is false
            poll = rows["GLOBAL"].get("POLL_INTERVAL")
            if poll is None or int(row[name]) < int(poll):
                yield f"{name} must be greater than or equal to POLL_INTERVAL"


def _wred_order(config: Config) -> Iterator[str]:
    for row in config.get("WRED_PROFILE", {}).values():
        for colour in _COLOURS:
            top, bottom = row.get(f"{colour}_max_threshold"), row.get(f"{colour}_min_threshold")
            if top is not None and (bottom is None or int(top) < int(bottom)):
                yield f"{colour.capitalize()} max threshold must be greater than or equal to min threshold"


def _scheduler_rates(config: Config) -> Iterator[str]:
    for row in config.get("SCHEDULER", {}).values():
        rate = {name: int(row[name]) for name in ("cir", "pir", "cbs", "pbs") if name in row}
        for name, base in (("pir", "cir"), ("cbs", "cir"), ("pbs", "pir")):
            if name in rate and not rate.get(base):
                yield f"{name} can't be configured without {base}."
        if "pir" in rate and rate["pir"] < rate.get("cir", 0):
            yield "pir must be greater than or equal to cir"
        if "pbs" in rate and rate["pbs"] < rate.get("cbs", 0):
            yield "pbs must be greater than or equal to cbs"


def _pool_percentage(config: Config) -> Iterator[str]:
    model = config.get("DEVICE_METADATA", {}).get("localhost", {}).get("buffer_model")
    for row in config.get("BUFFER_POOL", {}).values():
        if "percentage" in row and "size" in row:
            yield "Percentage should not be configured along with size"
        if "percentage" in row and model != "dynamic":
            yield "Percentage must be configured in dynamic buffer model"


def _lanes(config: Config) -> Iterator[str]:
    used: dict[str, str] = {}
    for port, row in config.get("PORT", {}).items():
        for lane in (part.strip() for part in row.get("lanes", "").split(",")):
            if not lane:
                yield f"PORT '{port}' has an empty lane"
            elif not lane.isdigit():
                yield f"PORT '{port}' has an invalid lane '{lane}'"
            elif lane in used:
                yield f"'{lane}' lane is used multiple times in PORT: {{'{port}', '{used[lane]}'}}"
            used[lane] = port
