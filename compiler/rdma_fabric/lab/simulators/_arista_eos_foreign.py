"""Configuration of a simulated EOS switch that this lab keeps and prints but does not act upon.

Only lines of these shapes are kept; every other unknown line is refused. Ranks give the place in
the running-config (see `_arista_eos_config`), keys say which older line a new one replaces.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass

from rdma_fabric.lab.simulators._arista_eos_config import RANK_VLAN, Block, Config, Interface
from rdma_fabric.lab.simulators._arista_eos_grammar import INCOMPLETE, INVALID, Refused

_NAME = r"[\w.:@/+-]+"
_ADDRESS = r"\d+\.\d+\.\d+\.\d+"
_PREFIX = rf"{_ADDRESS}/\d+"
_ADDRESS6 = r"[0-9a-fA-F:]+(/\d+)?"


@dataclass(frozen=True, slots=True)
class Kept:
    """Lines of one shape: their place, and how many words make the key (0: the whole line)."""

    rank: int
    pattern: re.Pattern[str]
    words: int

    def key(self, line: str) -> str:
        """What a newer line of the same meaning has in common with this one."""
        return " ".join(line.split()[: self.words]) if self.words else line

    def start(self) -> str:
        """The words that every such line begins with (to know what `no ...` can remove)."""
        return re.split(r"[^\w /-]", self.pattern.pattern.replace("\\", "\0"), maxsplit=1)[0].strip()


def _kept(*specs: tuple[int, str, int]) -> tuple[Kept, ...]:
    return tuple(Kept(rank, re.compile(pattern), words) for rank, pattern, words in specs)


GLOBAL = _kept(
    (2, r"transceiver qsfp default-mode 4x10G", 3),
    (3, r"service routing protocols model (multi-agent|ribd)", 4),
    (4, r"logging (host|buffered|console|trap|synchronous|vrf|level|format|monitor|source-interface) .+", 0),
    (5, r"hostname [A-Za-z0-9][\w.-]*", 1),
    (6, r"ip name-server .+", 0),
    (6, rf"dns domain {_NAME}", 2),
    (6, r"ip domain lookup .+", 0),
    (7, r"ntp (server|local-interface|authenticate|trusted-key|authentication-key) ?.*", 0),
    (8, r"snmp-server .+", 0),
    (8, r"tacacs-server .+", 0),
    (8, r"radius-server .+", 0),
    (40, r"spanning-tree mode (mstp|rstp|rapid-pvst|none)", 2),
    (40, r"no spanning-tree vlan-id .+", 0),
    (40, r"spanning-tree (mst|edge-port|priority) .+", 0),
    (45, r"no aaa root", 2),
    (45, r"aaa (authentication|authorization|accounting|group|root) .+", 0),
    (46, r"enable (password|secret) (sha512 )?\S+", 1),
    (47, rf"username {_NAME} .+", 2),
    (48, r"clock timezone \S+", 2),
    (75, r"mac address-table .+", 0),
    (77, r"ip prefix-list .+", 0),
    (78, r"ipv6 unicast-routing( vrf \S+)?", 0),
    (78, r"ip virtual-router mac-address \S+", 3),
    (80, rf"ip route (vrf \S+ )?{_PREFIX} .+", 0),
    (80, r"ipv6 route .+", 0),
)

PORT = _kept(
    (0, r"description .+", 1),
    (1, r"shutdown", 1),
    (2, r"load-interval \d+", 1),
    (4, r"logging event .+", 0),
    (8, r"speed (auto|forced|sfp-1000baset|\d+g\S*)( \S+)*", 1),
    (8, r"error-correction encoding (reed-solomon|fire-code)", 2),
    (8, r"transceiver media override \S+", 3),
    (9, r"channel-group \d+ mode (active|passive|on)", 1),
    (9, r"lacp (timer|port-priority) .+", 2),
    (10, r"switchport access vlan \d+", 3),
    (10, r"switchport trunk native vlan \d+", 4),
    (10, r"switchport trunk allowed vlan (none|[\d,-]+)", 4),
    (10, r"switchport mode (access|trunk|dot1q-tunnel)", 2),
    (10, r"switchport trunk group \S+", 0),
    (13, r"vrf \S+", 1),
    (14, rf"ip address {_PREFIX}", 2),
    (14, rf"ip address {_PREFIX} secondary", 0),
    (14, rf"ip address virtual {_PREFIX}", 3),
    (14, rf"ip virtual-router address {_ADDRESS}", 0),
    (14, r"ip helper-address .+", 0),
    (14, r"ipv6 enable", 2),
    (14, rf"ipv6 address {_ADDRESS6}", 0),
    (15, r"ip access-group \S+ (in|out)", 0),
    (15, r"ipv6 access-group \S+ (in|out)", 0),
    (16, r"ip ospf .+", 0),
    (16, r"bfd interval .+", 2),
    (16, r"arp (aging|gratuitous|timeout) .+", 0),
    (16, r"pim .+", 0),
    (17, r"mlag \d+", 1),
    (17, r"spanning-tree (portfast|bpduguard|bpdufilter|cost|port-priority|guard|link-type) ?.*", 0),
    (17, r"storm-control .+", 0),
    (17, r"sflow .+", 0),
    (18, r"vxlan .+", 0),
)


@dataclass(frozen=True, slots=True)
class BlockKind:
    """A block of foreign lines: its header, its place, what it holds, the blocks below it."""

    header: re.Pattern[str]
    rank: int
    label: Callable[[Sequence[str]], str]
    lines: re.Pattern[str]
    below: tuple[BlockKind, ...] = ()
    numbered: bool = False


def _block(
    header: str,
    rank: int,
    label: Callable[[Sequence[str]], str],
    lines: str,
    *below: BlockKind,
    numbered: bool = False,
) -> BlockKind:
    return BlockKind(re.compile(header), rank, label, re.compile(lines), below, numbered)


_PEER = r"(no |default )?(neighbor|network|redistribute|maximum-paths|bgp|timers|distance) .+"
_AF = _block(
    r"address-family \S+.*",
    0,
    lambda words: f"af-{words[1]}",
    rf"{_PEER}|(no |default )?(graceful-restart|next-hop .+|route (import|export) .+)",
)
_VNI = _block(
    r"vlan [\d,-]+", 0, lambda words: f"macvrf-{words[1]}", r"(rd|route-target|redistribute|vni) .+"
)
_BGP_VRF = _block(
    r"vrf \S+", 0, lambda words: f"vrf-{words[1]}", rf"{_PEER}|(rd|route-target|router-id) .+", _AF
)

BLOCKS = (
    _block(r"vlan [\d,-]+", RANK_VLAN, lambda w: f"vlan-{w[1]}", r"(name|state|trunk group|private-vlan) .+"),
    _block(r"vrf instance \S+", 61, lambda w: f"vrf-{w[2]}", r"(rd|description) .+"),
    _block(
        r"(ip|ipv6|mac) access-list (standard )?\S+",
        76,
        lambda words: f"acl-{words[-1]}",
        r"(\d+ )?(permit|deny|remark) .+|counters per-entry|statistics per-entry",
        numbered=True,
    ),
    _block(
        r"mlag configuration",
        79,
        lambda _: "mlag",
        r"(local-interface|peer-address|peer-link|domain-id|reload-delay|dual-primary|heartbeat-interval) .+",
    ),
    _block(
        r"route-map \S+ (permit|deny) \d+",
        82,
        lambda words: f"route-map-{words[1]}",
        r"(match|set|continue|description) .+",
    ),
    _block(
        r"router bgp \d+",
        85,
        lambda _: "router-bgp",
        rf"{_PEER}|(no |default )?(router-id|update|graceful-restart|shutdown) ?.*",
        _VNI,
        _AF,
        _BGP_VRF,
    ),
    _block(
        r"router ospf \d+( vrf \S+)?",
        86,
        lambda _: "router-ospf",
        r"(no )?(router-id|network|passive-interface|area|max-lsa|redistribute|auto-cost|bfd) ?.*",
    ),
    _block(
        r"management (api http-commands|ssh|api gnmi|console|security|telnet)",
        90,
        lambda words: "mgmt-" + "-".join(words[1:]),
        r"(no )?(shutdown|(protocol|idle-timeout|authentication|transport|server-port|cipher|key-exchange"
        r"|mac hmac|hostkey|ip access-group|connection|password|ssl|provider) ?.*)",
        _block(r"vrf \S+", 0, lambda words: f"vrf-{words[1]}", r"(no )?(shutdown|ip access-group .+)"),
    ),
)


def block_kind(line: str, kinds: Sequence[BlockKind]) -> BlockKind | None:
    """The kind of block that the line opens."""
    return next((kind for kind in kinds if kind.header.fullmatch(line)), None)


def open_block(config: Config, kind: BlockKind, header: str) -> Block:
    """Find or make a top block."""
    made = Block(header, kind.rank, kind.label(header.split()))
    return config.blocks.setdefault(header, made)


def keep_global(config: Config, line: str) -> bool:
    """Keep or remove a global line; False when no shape fits."""
    if re.fullmatch(r"(no )?ip routing( vrf \S+)?", line):
        plain = line.removeprefix("no ")
        config.foreign[:] = [pair for pair in config.foreign if pair[1].removeprefix("no ") != plain]
        config.foreign.append((78, line))
        return True
    if line.startswith("username "):
        line = _hashed(line)
    if line.startswith(("enable password ", "enable secret ")) and "sha512" not in line:
        line = f"enable password {hashed(line.split(' ', 2)[2].removeprefix('0 '))}"
    if _keep(config.foreign, GLOBAL, line):
        return True
    if line.startswith("no ") and (header := line.removeprefix("no ")) in config.blocks:
        del config.blocks[header]
        return True
    return False


def keep_on_port(port: Interface, line: str) -> bool:
    """Keep or remove a line of an interface; False when no shape fits."""
    return _keep(port.foreign, PORT, line)


def keep_in_block(block: Block, kind: BlockKind, line: str) -> bool:
    """Keep or remove a line inside a block; False when no shape fits."""
    if kind.numbered:
        return _keep_numbered(block, kind, line)
    if line in block.lines:
        return True
    if line.startswith("no ") and line.removeprefix("no ") in block.below:
        del block.below[line.removeprefix("no ")]
        return True
    if line.startswith(("no ", "default ")):
        rest = line.split(" ", 1)[1]
        gone = [found for found in block.lines if found == rest or found.startswith(f"{rest} ")]
        if gone:
            block.lines[:] = [found for found in block.lines if found not in gone]
            return True
    if not kind.lines.fullmatch(line):
        return False
    key = line.split()[0]
    if key in ("name", "state", "rd", "description", "router-id", "domain-id", "shutdown"):
        block.lines[:] = [found for found in block.lines if found.split()[0] != key]
    block.lines.append(line)
    return True


def _keep(where: MutableSequence[tuple[int, str]], shapes: Sequence[Kept], line: str) -> bool:
    for shape in shapes:
        if shape.pattern.fullmatch(line):
            _replace(where, shape, line)
            return True
    word, _, rest = line.partition(" ")
    if word in ("no", "default") and any(_begins(shape, rest) for shape in shapes):
        where[:] = [pair for pair in where if not (pair[1] == rest or pair[1].startswith(f"{rest} "))]
        return True
    if any(shape.start().startswith(line) or shape.pattern.pattern == f"{line} .+" for shape in shapes):
        raise Refused(INCOMPLETE)
    return False


def _replace(where: MutableSequence[tuple[int, str]], shape: Kept, line: str) -> None:
    key = shape.key(line)
    place = len(where)
    for at, (rank, found) in enumerate(where):
        if rank == shape.rank and (found == key or (shape.words and shape.key(found) == key)):
            if found.endswith(" secondary") or " virtual " in found:
                continue
            where[at] = (rank, line)
            place = -1
            break
    if place >= 0:
        where.append((shape.rank, line))


def _begins(shape: Kept, rest: str) -> bool:
    """True when `no <rest>` can mean lines of this shape."""
    start = shape.start()
    return bool(start) and (f"{rest} ".startswith(f"{start} ") or bool(shape.pattern.fullmatch(rest)))


def _keep_numbered(block: Block, kind: BlockKind, line: str) -> bool:
    """Access-list entries: numbered in steps of ten, sorted, removed by number or by text."""
    if line.startswith("no "):
        rest = line.removeprefix("no ")
        kept = [f for f in block.lines if f != rest and f.split()[0] != rest and f.partition(" ")[2] != rest]
        if len(kept) == len(block.lines) and not re.fullmatch(r"\d+|(\d+ )?(permit|deny|remark) .+", rest):
            return False
        block.lines[:] = kept
        return True
    if not kind.lines.fullmatch(line):
        return False
    if re.match(r"permit|deny|remark", line):
        if any(found.partition(" ")[2] == line for found in block.lines):
            return True
        numbers = [int(found.split()[0]) for found in block.lines if found[0].isdigit()]
        line = f"{max(numbers, default=0) + 10} {line}"
    number = line.split()[0]
    if number.isdigit() and any(found.split()[0] == number for found in block.lines):
        raise Refused(f"% Error: Duplicate sequence number {number}")
    block.lines.append(line)
    block.lines.sort(key=lambda found: int(found.split()[0]) if found[0].isdigit() else -1)
    return True


def hashed(password: str) -> str:
    """A password as this lab's switches keep it: never in clear (the hash is not crypt's)."""
    salt = hashlib.sha256(password.encode()).hexdigest()[:16]
    return f"sha512 $6${salt}${hashlib.sha512((salt + password).encode()).hexdigest()[:86]}"


def _hashed(line: str) -> str:
    """`secret 0 TEXT` and `secret TEXT` become the hash."""
    head, word, secret = line.partition(" secret ")
    if not word or secret.startswith(("sha512 ", "5 ", "*")):
        return line
    if not secret:
        raise Refused(INCOMPLETE)
    if len(secret.split()) > 2 or (len(secret.split()) == 2 and not secret.startswith("0 ")):
        raise Refused(INVALID)
    return f"{head} secret {hashed(secret.removeprefix('0 '))}"
