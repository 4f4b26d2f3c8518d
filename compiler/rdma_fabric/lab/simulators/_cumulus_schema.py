"""The NVUE object schema of the Cumulus Linux simulator: paths, ids, values, versions, abbreviations.

The syntax table is written in the style of the "New Commands" lists of Cumulus Linux What's New
pages: literal words, `<kind>` for an identifier, and at the end `(a|b)`, `1-100` or `=kind` for a
value. `@5.4-5.14` at the end of a line limits it to releases. What the table does not hold is refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

Version = tuple[int, int]
Leaf = int | str

SYNTAX = """
qos roce enable (on|off) @-5.14
qos roce state (enabled|disabled) @5.15-
qos roce mode (lossy|lossless) @-5.7
qos roce mode (lossy|lossless|lossless-single-ipool) @5.8-5.12
qos roce mode (lossy|lossless|lossless-single-ipool|lossy-multi-tc) @5.13-
qos roce cable-length 1-100000 @-5.3
qos mapping <profile> trust (l2|l3|port|both)
qos mapping <profile> port-default-sp 0-7
qos mapping <profile> pcp <pcp> switch-priority 0-7
qos mapping <profile> dscp <dscp> switch-priority 0-7
qos remark <profile> rewrite (l2|l3|both)
qos remark <profile> switch-priority <sp> pcp 0-7
qos remark <profile> switch-priority <sp> dscp 0-63
qos egress-queue-mapping <global> switch-priority <one-sp> traffic-class 0-7
qos egress-scheduler <profile> traffic-class <tc> mode (dwrr|strict)
qos egress-scheduler <profile> traffic-class <tc> bw-percent 1-100
qos egress-shaper <profile> port-max-rate 0-2147483647
qos egress-shaper <profile> traffic-class <tc> min-rate 0-2147483647
qos egress-shaper <profile> traffic-class <tc> max-rate 0-2147483647
qos congestion-control <profile> traffic-class <tc> ecn (enable|disable)
qos congestion-control <profile> traffic-class <tc> red (enable|disable)
qos congestion-control <profile> traffic-class <tc> min-threshold =bytes
qos congestion-control <profile> traffic-class <tc> max-threshold =bytes
qos congestion-control <profile> traffic-class <tc> probability 1-100
qos pfc <profile> switch-priority <sp>
qos pfc <profile> tx (enable|disable)
qos pfc <profile> rx (enable|disable)
qos pfc <profile> cable-length 1-100000 @5.4-
qos pfc <profile> port-buffer =bytes
qos pfc <profile> xoff-threshold =bytes
qos pfc <profile> xon-threshold =bytes
qos link-pause <profile> tx (enable|disable)
qos link-pause <profile> rx (enable|disable)
qos link-pause <profile> cable-length 1-100000
qos link-pause <profile> port-buffer =bytes
qos link-pause <profile> xoff-threshold =bytes
qos link-pause <profile> xon-threshold =bytes
qos pfc-watchdog polling-interval 100-5000 @5.6-
qos pfc-watchdog robustness 1-1000 @5.6-
qos traffic-pool <pool> memory-percent 1-100
qos traffic-pool <pool> switch-priority <sp>
qos advance-buffer-config <global> ingress-lossy-buffer priority-group <group> switch-priority <sp>
qos advance-buffer-config <global> ingress-lossy-buffer priority-group <group> name =word
qos advance-buffer-config <global> ingress-lossy-buffer priority-group <group> headroom =bytes @5.10-
qos advance-buffer-config <global> ingress-lossy-buffer priority-group <group> {REGION}
qos advance-buffer-config <global> ingress-lossless-buffer service-pool =pool-number
qos advance-buffer-config <global> ingress-lossless-buffer shared-alpha {ALPHA}
qos advance-buffer-config <global> ingress-lossless-buffer shared-bytes =bytes
qos advance-buffer-config <global> egress-lossless-buffer {REGION}
qos advance-buffer-config <global> egress-lossy-buffer traffic-class <tc16> {REGION}
qos advance-buffer-config <global> egress-lossy-buffer multicast-switch-priority <sp> {REGION}
qos advance-buffer-config <global> egress-lossy-buffer multicast-port reserved =bytes
qos advance-buffer-config <global> egress-lossy-buffer multicast-port shared-bytes =bytes
qos advance-buffer-config <global> ingress-mgmt-buffer headroom =bytes @5.10-
qos advance-buffer-config <global> ingress-mgmt-buffer {REGION} @5.10-
qos advance-buffer-config <global> egress-mgmt-buffer {REGION} @5.10-
qos advance-buffer-config <global> ingress-pool <pool-number> {POOL} @-5.10
qos advance-buffer-config <global> egress-pool <pool-number> {POOL} @-5.10
qos advance-buffer-config <global> ingress-service-pool <pool-number> {POOL} @5.11-
qos advance-buffer-config <global> egress-service-pool <pool-number> {POOL} @5.11-
interface <interface> type (swp|eth|loopback|bond|svi|sub|peerlink|tunnel)
interface <interface> description =text
interface <interface> link mtu 552-9216
interface <interface> link state (up|down)!
interface <interface> link speed (auto|10M|100M|1G|10G|25G|40G|50G|100G|200G|400G|800G)
interface <interface> link fec (auto|baser|off|rs|driver-auto)
interface <interface> link lanes (1|2|4|8)
interface <interface> link duplex (half|full)
interface <interface> link breakout <breakout> lanes-per-port (1|2|4|8)
interface <interface> link auto-negotiate {ONOFF}
interface <interface> link fast-linkup {ONOFF}
interface <interface> qos mapping profile =profile
interface <interface> qos remark profile =profile
interface <interface> qos pfc profile =profile
interface <interface> qos link-pause profile =profile
interface <interface> qos congestion-control profile =profile
interface <interface> qos egress-scheduler profile =profile
interface <interface> qos egress-shaper profile =profile
interface <interface> qos pfc-watchdog state (enable|disable) @5.6-
interface <interface> lldp dcbx-pfc-tlv {ONOFF}
interface <interface> lldp dcbx-ets-config-tlv {ONOFF}
interface <interface> lldp dcbx-ets-recomm-tlv {ONOFF}
interface <interface> lldp application-tlv udp-port <port-number> @5.9-
interface <interface> router adaptive-routing {SWITCH}
interface <interface> router adaptive-routing link-utilization-threshold 1-100 @5.6-
interface <interface> router ospf area =word
interface <interface> router ospf {SWITCH}
interface <interface> router ospf network-type (broadcast|non-broadcast|point-to-multipoint|point-to-point)
interface <interface> ip address <address> @-5.14
interface <interface> ip gateway <ip> @-5.14
interface <interface> ip vrf =word @-5.14
interface <interface> ip ipv6 enable (on|off) @-5.14
interface <interface> ip ipv4 forward (on|off) @-5.14
interface <interface> ip ipv6 forward (on|off) @-5.14
interface <interface> ip neighbor-discovery router-advertisement enable (on|off) @-5.14
interface <interface> ip neighbor-discovery router-advertisement interval 70-1800000 @-5.14
interface <interface> ip vrr address <address> @-5.14
interface <interface> ip vrr state (up|down)! @-5.14
interface <interface> ip vrr mac-address =word @-5.14
interface <interface> ipv4 address <address> @5.15-
interface <interface> ipv4 gateway <ip> @5.15-
interface <interface> ipv4 forward (enabled|disabled) @5.15-
interface <interface> ipv4 dhcp-client state (enabled|disabled) @5.15-
interface <interface> ipv6 address <address> @5.15-
interface <interface> ipv6 gateway <ip> @5.15-
interface <interface> ipv6 state (enabled|disabled) @5.15-
interface <interface> ipv6 forward (enabled|disabled) @5.15-
interface <interface> vrf =word @5.15-
interface <interface> acl <name> inbound
interface <interface> acl <name> inbound control-plane
interface <interface> acl <name> outbound
interface <interface> acl <name> outbound control-plane
interface <interface> bond member <interface>
interface <interface> bond mode (lacp|static)
interface <interface> bond lacp-rate (fast|slow)
interface <interface> bond lacp-bypass {ONOFF}
interface <interface> bond mlag id =auto-number
interface <interface> bond mlag {SWITCH}
interface <interface> bridge domain <name> access =auto-number
interface <interface> bridge domain <name> untagged =auto-number
interface <interface> bridge domain <name> vlan <vlan>
interface <interface> bridge domain <name> learning {ONOFF}
interface <interface> bridge domain <name> stp admin-edge {ONOFF}
interface <interface> bridge domain <name> stp bpdu-guard {ONOFF}
interface <interface> vlan =auto-number
interface <interface> base-interface =word
router adaptive-routing {SWITCH}
router adaptive-routing link-utilization-threshold {ONOFF} @5.6-
router adaptive-routing profile =word
router bgp autonomous-system =auto-number
router bgp router-id =ip
router bgp {SWITCH}
router policy prefix-list <name> type (ipv4|ipv6)
router policy prefix-list <name> rule <rule> action (permit|deny)
router policy prefix-list <name> rule <rule> match <address> max-prefix-len 0-128
router policy prefix-list <name> rule <rule> match <address> min-prefix-len 0-128
router policy route-map <name> rule <rule> action permit
router policy route-map <name> rule <rule> action deny
router policy route-map <name> rule <rule> match type (ipv4|ipv6)
router policy route-map <name> rule <rule> match ip-prefix-list =word
router ospf {SWITCH}
router ospf router-id =ip
vrf <name> table =auto-number
vrf <name> loopback ip address <address> @-5.14
vrf <name> loopback ipv4 address <address> @5.15-
vrf <name> router static <address> via <hop>
vrf <name> router static <address> address-family (ipv4-unicast|ipv6-unicast)
vrf <name> router bgp {SWITCH}
vrf <name> router bgp autonomous-system =auto-number
vrf <name> router bgp router-id =ip
vrf <name> router bgp path-selection multipath aspath-ignore {ONOFF}
vrf <name> router bgp neighbor <neighbor> remote-as =as
vrf <name> router bgp neighbor <neighbor> type (numbered|unnumbered)
vrf <name> router bgp neighbor <neighbor> peer-group =word
vrf <name> router bgp neighbor <neighbor> description =text
vrf <name> router bgp neighbor <neighbor> password =text
vrf <name> router bgp neighbor <neighbor> bfd {SWITCH}
vrf <name> router bgp neighbor <neighbor> address-family <family> {SWITCH}
vrf <name> router bgp peer-group <name> remote-as =as
vrf <name> router bgp peer-group <name> description =text
vrf <name> router bgp peer-group <name> bfd {SWITCH}
vrf <name> router bgp peer-group <name> address-family <family> {SWITCH}
vrf <name> router bgp address-family <family> {SWITCH}
vrf <name> router bgp address-family <family> network <address>
vrf <name> router bgp address-family <family> multipaths ebgp 1-256
vrf <name> router bgp address-family <family> multipaths ibgp 1-256
vrf <name> router bgp address-family <family> redistribute connected {SWITCH}
vrf <name> router bgp address-family <family> redistribute static {SWITCH}
vrf <name> router ospf {SWITCH}
vrf <name> evpn {SWITCH}
vrf <name> evpn vni <vni>
bridge domain <name> type (vlan-aware|traditional)
bridge domain <name> encap (802.1Q|802.1ad)
bridge domain <name> untagged =auto-number
bridge domain <name> vlan <vlan> vni <vni>
bridge domain <name> multicast snooping {SWITCH}
bridge domain <name> stp priority =auto-number
bridge domain <name> stp mode (rstp|pvrst)
acl <name> type (ipv4|ipv6|mac)
acl <name> rule <rule> action permit
acl <name> rule <rule> action deny
acl <name> rule <rule> action log
acl <name> rule <rule> remark =text
acl <name> rule <rule> match ip source-ip =word
acl <name> rule <rule> match ip dest-ip =word
acl <name> rule <rule> match ip protocol =word
acl <name> rule <rule> match ip dscp =word
acl <name> rule <rule> match ip source-port <port-match>
acl <name> rule <rule> match ip dest-port <port-match>
acl <name> rule <rule> match ip tcp source-port <port-match>
acl <name> rule <rule> match ip tcp dest-port <port-match>
acl <name> rule <rule> match ip udp source-port <port-match>
acl <name> rule <rule> match ip udp dest-port <port-match>
evpn {SWITCH}
evpn multihoming {SWITCH}
nve vxlan {SWITCH}
nve vxlan source address =ip
mlag {SWITCH}
mlag mac-address =word
mlag peer-ip =word
mlag priority =auto-number
mlag backup <ip> vrf =word
service lldp tx-interval 10-300 @-5.14
service lldp tx-hold-multiplier 1-10 @-5.14
service lldp application-tlv udp-port <port-number> priority 0-7 @5.9-5.14
service ntp <name> server <host>
service ntp <name> listen =word
service dns <name> server <ip>
service syslog <name> server <host> port 1-65535
service snmp-server {SWITCH}
service snmp-server listening-address <listen>
service snmp-server listening-address <listen> vrf =word
service snmp-server readonly-community <word> access <word>
system hostname =hostname
system timezone =word
system contact =text
system location =text
system message pre-login =text
system message post-login =text
system config auto-save enable (on|off) @-5.14
system config auto-save state (enabled|disabled) @5.15-
system config apply ignore <path>
system config apply overwrite (all|controlled)
system aaa user <user> hashed-password =text
system aaa user <user> password =text
system aaa user <user> full-name =text
system aaa user <user> role =word
system aaa user <user> enable (on|off) @-5.14
system aaa user <user> state (enabled|disabled) @5.15-
system aaa user <user> ssh authorized-key <word> key =text
system aaa user <user> ssh authorized-key <word> type =word
system aaa class <name> action (allow|deny)
system aaa class <name> command-path <path> permission (all|ro|rw|act)
system aaa role <name> class <name>
system api state (enabled|disabled)
system api port 1-65535
system api listening-address <listen>
system ssh-server state (enabled|disabled)
system ssh-server permit-root-login (disabled|prohibit-password|forced-commands-only|enabled)
system ssh-server vrf <name>
system acl mode (atomic|non-atomic)
system control-plane acl <name> inbound
system global anycast-mac =word
system global anycast-id =auto-number
system reboot mode (cold|fast|warm)
system wjh {SWITCH}
system lldp application-tlv udp-port <port-number> priority 0-7 @5.15-
system lldp tx-interval 10-300 @5.15-
system lldp tx-hold-multiplier 1-10 @5.15-
system lldp tlv egress-policy dcbx-pfc state (enabled|disabled) @5.17-
system lldp tlv egress-policy dcbx-ets-config state (enabled|disabled) @5.17-
system lldp tlv egress-policy dcbx-ets-recomm state (enabled|disabled) @5.17-
system lldp tlv egress-policy dcbx-app-priority state (enabled|disabled) @5.17-
system ntp server <host> @5.15-
system ntp vrf =word @5.15-
system dns server <ip> @5.15-
system syslog server <host> port 1-65535 @5.15-
"""

ECMP_FIELDS = [
    "source-ip",
    "destination-ip",
    "ip-protocol",
    "source-port",
    "destination-port",
    "ipv6-label",
    "ingress-interface",
    "gtp-teid",
    "inner-source-ip",
    "inner-destination-ip",
    "inner-ip-protocol",
    "inner-source-port",
    "inner-destination-port",
    "inner-ipv6-label",
]

ALPHAS = [
    "alpha_0",
    *(f"alpha_1_{2**power}" for power in range(7, 0, -1)),
    *(f"alpha_{2**power}" for power in range(7)),
    "alpha_infinity",
]
_ALPHA = "(" + "|".join(ALPHAS) + ")"
_MACROS = {
    "{ONOFF}": ("(on|off) @-5.14", "(enabled|disabled) @5.15-"),
    "{SWITCH}": ("enable (on|off) @-5.14", "state (enabled|disabled) @5.15-"),
    "{ALPHA}": (_ALPHA,),
    "{REGION}": (
        "reserved =bytes",
        "service-pool =pool-number",
        f"shared-alpha {_ALPHA}",
        "shared-bytes =bytes",
    ),
    "{POOL}": (
        "memory-percent 0-100",
        "mode (static|dynamic)",
        "infinite (true|false)",
        "reserved =bytes",
        f"shared-alpha {_ALPHA}",
        "shared-bytes =bytes",
    ),
}


class Refused(Exception):
    """A command that NVUE does not take; the text is what it prints."""


@dataclass(slots=True)
class Node:
    """One level of the object model; a leaf has `value`, a collection has `ident`."""

    children: dict[str, Node] = field(default_factory=dict)
    ident: str = ""
    item: Node | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """What a resolved command addresses: per step its alternatives, and the value for a leaf."""

    steps: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    node: Node
    value: Leaf | None = None
    exclusive: bool = False

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Every single path of the (expanded) command."""
        paths: list[tuple[str, ...]] = [()]
        for step in self.steps:
            paths = [(*path, name) for path in paths for name in step]
        return iter(paths)


def version_of(text: str) -> Version:
    """`5.14.0` -> (5, 14); an empty version is 5.14."""
    found = re.match(r"(\d+)\.(\d+)", text or "5.14")
    if found is None:
        raise ValueError(f"not a Cumulus Linux version: {text!r}")
    return int(found[1]), int(found[2])


def _expand_macros(line: str) -> Iterator[str]:
    found = re.search(r"\{[A-Z]+\}", line)
    if found is None:
        yield line
        return
    for text in _MACROS[found[0]]:
        limits = line.partition("@")[2]
        body = line.partition("@")[0].rstrip().replace(found[0], text)
        yield f"{body} @{limits}" if limits and "@" not in body else body


def _applies(limits: str, version: Version) -> bool:
    if not limits:
        return True
    first, _, last = limits.strip().partition("-")
    low = version_of(first) if first else (0, 0)
    high = version_of(last) if last else (99, 99)
    return low <= version <= high


@lru_cache(maxsize=16)
def schema(version: Version) -> Node:
    """The object model of one release."""
    root = Node()
    lines = [line for line in SYNTAX.splitlines() if line]
    lines += [
        f"system forwarding {kind}-hash {name} {{ONOFF}}" for kind in ("ecmp", "lag") for name in ECMP_FIELDS
    ]
    for line in [expanded for text in lines for expanded in _expand_macros(text)]:
        body, _, limits = line.partition("@")
        if _applies(limits, version):
            _add(root, body.split())
    return root


def _add(node: Node, words: list[str]) -> None:
    for word in words:
        if word.startswith("<"):
            node.ident = word[1:-1]
            node.item = node.item or Node()
            node = node.item
        elif word[0] in "(=" or re.fullmatch(r"\d+-\d+", word):
            node.value = word
        else:
            node = node.children.setdefault(word, Node())


_NAME = re.compile(r"[A-Za-z0-9_][\w.:-]*")
_INTERFACE = re.compile(r"[A-Za-z][\w.-]{0,14}")
_RANGE_ITEM = re.compile(r"(.*?)(\d+)-(\d+)")
_LISTS = {
    "tc": (0, 7),
    "sp": (0, 7),
    "pcp": (0, 7),
    "dscp": (0, 63),
    "tc16": (0, 15),
    "vlan": (1, 4094),
    "rule": (1, 65535),
    "vni": (1, 16777215),
}
_SINGLES = {"one-sp": (0, 7), "pool-number": (0, 7), "port-number": (1, 65535)}
_WORDS = {
    "global": ("default-global",),
    "pool": ("default-lossy", "default-lossless", "mc-lossy", "roce-lossy", "roce-lossless"),
    "breakout": ("1x", "2x", "4x", "8x"),
    "family": ("ipv4-unicast", "ipv6-unicast", "l2vpn-evpn"),
}


def expand_interfaces(text: str) -> tuple[str, ...]:
    """`swp1-2,5-6,eth0` -> every name; raises Refused for what is no interface name."""
    names: list[str] = []
    prefix = ""
    for item in text.split(","):
        full = prefix + item if re.fullmatch(r"\d+(-\d+)?", item) else item
        found = _RANGE_ITEM.fullmatch(full)
        if found and found[1]:
            prefix = found[1]
            low, high = int(found[2]), int(found[3])
            if low > high or high - low > 4095:
                raise Refused(f"Error: '{text}' is not a valid range.")
            names += [f"{prefix}{number}" for number in range(low, high + 1)]
        else:
            prefix = re.sub(r"\d+$", "", full)
            names.append(full)
    if not all(_INTERFACE.fullmatch(name) for name in names):
        raise Refused(f"Error: '{text}' is not a 'interface-name'")
    return tuple(dict.fromkeys(names))


def compress_interfaces(names: list[str]) -> str:
    """The key under which `nv config show` prints interfaces with one value: `eth0,swp19-22`."""
    groups: list[tuple[str, int, int]] = []
    for name in sorted(names, key=natural):
        found = re.fullmatch(r"(.*?)(\d+)", name)
        if found is None or (len(found[2]) > 1 and found[2][0] == "0"):
            groups.append((name, -1, -1))
        elif groups and groups[-1][0] == found[1] and groups[-1][2] == int(found[2]) - 1:
            groups[-1] = (found[1], groups[-1][1], int(found[2]))
        else:
            groups.append((found[1], int(found[2]), int(found[2])))
    return ",".join(_group_text(*group) for group in groups)


def _group_text(prefix: str, low: int, high: int) -> str:
    if low < 0:
        return prefix
    return f"{prefix}{low}" if low == high else f"{prefix}{low}-{high}"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts swp2 before swp10."""
    return tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D+", name)
    )


def _numbers(text: str, low: int, high: int, name: str) -> tuple[str, ...]:
    found: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", item)
        if match is None:
            raise Refused(f"Error: '{text}' is not an integer")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last or first < low or last > high:
            raise Refused(f"Error: Valid range for {name} is {low} - {high}")
        found += range(first, last + 1)
    return tuple(str(number) for number in dict.fromkeys(found))


def identifiers(kind: str, text: str, name: str, version: Version) -> tuple[str, ...]:
    """The ids that `text` names; `name` is the word before it, for the error text."""
    if kind == "interface":
        return expand_interfaces(text)
    if kind in _LISTS:
        return _numbers(text, *_LISTS[kind], name)
    if kind in _SINGLES:
        low, high = _SINGLES[kind]
        if not text.isdigit():
            raise Refused(f"Error: '{text}' is not an integer")
        return _numbers(text, low, high, name)
    if kind in _WORDS or kind == "group":
        words = _WORDS.get(kind) or _priority_groups(version)
        if text not in words:
            raise Refused(f"Error: '{text}' is not one of {list(words)}")
        return (text,)
    return (str(_check(kind, text)),)


def _priority_groups(version: Version) -> tuple[str, ...]:
    """NVUE reference, Set QoS: the names changed in 5.10."""
    if version >= (5, 10):
        return ("bulk", *(f"service{number}" for number in range(1, 8)))
    return ("bulk", "control", *(f"service{number}" for number in range(1, 7)))


def _check(kind: str, text: str) -> Leaf:
    if kind not in _CHECKS:
        raise ValueError(f"unknown kind in the syntax table: {kind}")
    noun, test = _CHECKS[kind]
    try:
        good = test(text)
    except ValueError:
        good = False
    if not good:
        raise Refused(f"Error: '{text}' is not a '{noun}'")
    return text


def _is_address(text: str) -> bool:
    return text == "dhcp" or bool(ipaddress.ip_interface(text))


_CHECKS: dict[str, tuple[str, Callable[[str], object]]] = {
    "profile": ("profile-name", re.compile(r"[A-Za-z0-9_][\w-]{0,63}").fullmatch),
    "name": ("generic-name", _NAME.fullmatch),
    "user": ("user-name", re.compile(r"[a-z_][a-z0-9_-]{0,31}").fullmatch),
    "hostname": ("idn-hostname", re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,62}[A-Za-z0-9])?").fullmatch),
    "host": ("idn-hostname", re.compile(r"[A-Za-z0-9:]([A-Za-z0-9.:-]*[A-Za-z0-9])?").fullmatch),
    "word": ("string", re.compile(r"\S+").fullmatch),
    "text": ("string", lambda text: text.isprintable() and bool(text)),
    "path": ("path", re.compile(r"/\S*").fullmatch),
    "ip": ("ip-address", lambda text: bool(ipaddress.ip_address(text))),
    "address": ("ip-prefix", _is_address),
    "hop": ("via-id", _NAME.fullmatch),
    "neighbor": ("bgp-neighbor-name", _NAME.fullmatch),
    "listen": ("listening-address", _NAME.fullmatch),
    "port-match": ("ip-port-range", re.compile(r"[\w:-]+").fullmatch),
}


def typed(value: str, text: str, name: str) -> Leaf:
    """The typed value of a leaf named `name`; raises Refused with NVUE's text."""
    span = re.fullmatch(r"(\d+)-(\d+)", value)
    if span or value == "=bytes":
        low, high = (int(span[1]), int(span[2])) if span else (0, 4294967295)
        if not re.fullmatch(r"-?\d+", text):
            raise Refused(f"Error: '{text}' is not an integer")
        if not low <= int(text) <= high:
            raise Refused(f"Error: Valid range for {name} is {low} - {high}")
        return int(text)
    if value.startswith("("):
        words = value.strip("()!").replace(")", "").split("|")
        if text not in words:
            raise Refused(f"Error: '{text}' is not one of {words}")
        return text
    return _kind_value(value[1:], text, name)


def _kind_value(kind: str, text: str, name: str) -> Leaf:
    if kind == "auto-number":
        if text in ("auto", "none", "internal", "leaf", "spine"):
            return text
        if not text.isdigit():
            raise Refused(f"Error: '{text}' is not an integer")
        return int(text)
    if kind == "as":
        if text in ("internal", "external"):
            return text
        return _kind_value("auto-number", text, name)
    if kind == "pool-number":
        return _numbers(text, 0, 7, name)[0]
    return _check(kind, text)


class Resolver:
    """Turns the words after `nv set`, `nv unset` into a Target, with abbreviations."""

    def __init__(self, version: Version, verb: str) -> None:
        self.version = version
        self.verb = verb
        self.root = schema(version)
        self._failure: tuple[int, str] = (-1, "")

    def resolve(self, tokens: list[str]) -> Target:
        """The one meaning of the words; raises Refused for none or several."""
        self._failure = (-1, "")
        found = list(self._walk(self.root, tokens, (), ()))
        if len(found) == 1:
            return found[0]
        if found:
            lines = [f"  {self.verb} {' '.join(target.words)}" for target in found]
            raise Refused("\n".join(["Error: Ambiguous Command:", *lines]))
        raise Refused(self._failure[1])

    def _fail(self, depth: int, text: str) -> None:
        if depth > self._failure[0]:
            self._failure = (depth, text)

    def _command(self, words: tuple[str, ...], tokens: list[str]) -> str:
        return " ".join([self.verb, *words, *tokens])

    def _walk(
        self, node: Node, tokens: list[str], steps: tuple[tuple[str, ...], ...], words: tuple[str, ...]
    ) -> Iterator[Target]:
        depth = len(words)
        if not tokens:
            yield from self._end(node, steps, words)
        elif node.value:
            yield from self._leaf(node, tokens, steps, words)
        elif node.item is not None:
            try:
                ids = identifiers(node.ident, tokens[0], words[-1], self.version)
            except Refused as refused:
                self._fail(depth, str(refused))
                return
            yield from self._walk(node.item, tokens[1:], (*steps, ids), (*words, tokens[0]))
        else:
            names = [tokens[0]] if tokens[0] in node.children else []
            names = names or sorted(name for name in node.children if name.startswith(tokens[0]))
            if not names:
                self._fail(depth, f"Error: Invalid Command: {self._command(words, tokens)}")
            for name in names:
                yield from self._walk(node.children[name], tokens[1:], (*steps, (name,)), (*words, name))

    def _end(
        self, node: Node, steps: tuple[tuple[str, ...], ...], words: tuple[str, ...]
    ) -> Iterator[Target]:
        needs_more = bool(node.value) or node.item is not None or not words
        if self.verb == "set" and needs_more:
            self._fail(len(words), f"Error: Incomplete Command: {self._command(words, [])}".rstrip())
        else:
            yield Target(steps, words, node)

    def _leaf(
        self, node: Node, tokens: list[str], steps: tuple[tuple[str, ...], ...], words: tuple[str, ...]
    ) -> Iterator[Target]:
        if len(tokens) > 1:
            self._fail(len(words) + 1, f"Error: Invalid Command: {self._command(words, tokens)}")
            return
        try:
            value = typed(node.value, tokens[0], words[-1])
        except Refused as refused:
            self._fail(len(words), str(refused))
            return
        if node.value.endswith("!"):
            # Printed as an object with one empty member: link.state = {"up": {}} (docs' applied tree).
            yield Target((*steps, (str(value),)), words, Node(), exclusive=True)
        else:
            yield Target(steps, words, node, value)
