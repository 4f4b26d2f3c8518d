"""Read-back commands of a simulated EOS switch: text and JSON as the reference page shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.lab.hosttools.health import Health
from rdma_fabric.lab.simulators._arista_eos_commands import port_name
from rdma_fabric.lab.simulators._arista_eos_config import (
    BRIDGED_MTU,
    MTU_DEFAULT,
    Config,
    Interface,
    Qos,
    Queue,
    short,
)
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact


@dataclass(frozen=True, slots=True)
class Shown:
    """What a show command found: its text, and its JSON where EOS has a converter for it."""

    lines: Sequence[str]
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What the show commands look at."""

    facts: DeviceFacts
    config: Config
    uptime: float
    health: Health = field(default_factory=Health)

    def port(self, name: str) -> Interface:
        """The configuration of a port, defaults included."""
        return self.config.interfaces.get(name) or Interface(name)

    def fact(self, name: str) -> PortFact:
        """The plan of a port."""
        return next((port for port in self.facts.ports if port.name == name), PortFact(name))

    def gbps(self, name: str) -> int:
        """The speed that a port's link came up with."""
        return self.health.gbps(name, self.fact(name).speed_gbps)

    def up(self, name: str) -> bool:
        """True for a port with a link."""
        return self.fact(name).up and not self.port(name).foreign_value("shutdown")

    def ethernets(self, only: str = "") -> list[str]:
        """All physical ports, or the one that was asked for."""
        return [port_name(self.config, only)] if only else list(self.config.hardware.ports)

    def effective(self, name: str) -> Qos:
        """QoS of a port: its own lines first, then its service profile's."""
        own = self.port(name)
        return merged(own.qos, self.config.profiles.get(own.profile))


def merged(own: Qos, profile: Qos | None) -> Qos:
    """An interface's values over those of its profile."""
    if profile is None:
        return own
    queues = {**profile.queues}
    for key, queue in own.queues.items():
        base = profile.queues.get(key)
        queues[key] = queue if base is None else _over(queue, base)
    return Qos(
        trust=own.trust if own.trust != "default" else profile.trust,
        cos=own.cos or profile.cos,
        dscp=own.dscp or profile.dscp,
        shape=own.shape or profile.shape,
        pfc=own.pfc or profile.pfc,
        no_drop=own.no_drop | profile.no_drop,
        watchdog=own.watchdog and profile.watchdog,
        watchdog_action=own.watchdog_action or profile.watchdog_action,
        watchdog_timer=own.watchdog_timer or profile.watchdog_timer,
        queues=queues,
    )


def _over(queue: Queue, base: Queue) -> Queue:
    return Queue(
        strict=queue.strict and base.strict,
        percent=base.percent if queue.percent is None else queue.percent,
        guaranteed=queue.guaranteed or base.guaranteed,
        shape=queue.shape or base.shape,
        ecn=queue.ecn or base.ecn,
        count=queue.count or base.count,
        drop=queue.drop or base.drop,
    )


def version(view: View) -> Shown:
    """`show version`: the uptime in seconds is what commit timers are measured in."""
    hw = view.config.hardware
    mac = _mac(view, 0)
    lines = [
        f"Arista {hw.model}",
        "Hardware version: 11.00",
        f"Serial number: {_serial(view)}",
        f"Hardware MAC address: {mac}",
        f"System MAC address: {mac}",
        "",
        f"Software image version: {hw.version}",
        "Architecture: x86_64",
        f"Internal build version: {hw.version}",
        "",
        f"Uptime: {_uptime(view.uptime)}",
        "Total memory: 16276548 kB",
        "Free memory: 12103864 kB",
        "",
    ]
    data = {
        "mfgName": "Arista",
        "modelName": hw.model,
        "hardwareRevision": "11.00",
        "serialNumber": _serial(view),
        "systemMacAddress": _colons(mac),
        "hwMacAddress": _colons(mac),
        "version": hw.version,
        "architecture": "x86_64",
        "internalVersion": hw.version,
        "uptime": round(view.uptime, 2),
        "memTotal": 16276548,
        "memFree": 12103864,
    }
    return Shown(lines, data)


def hostname(view: View) -> Shown:
    """`show hostname`."""
    name = view.config.hostname
    return Shown([f"Hostname: {name}", f"FQDN:     {name}"], {"hostname": name, "fqdn": name})


# --- interfaces ----------------------------------------------------------------------------------


def interfaces(view: View, only: str = "") -> Shown:
    """`show interfaces [NAME]`."""
    names = [port_name(view.config, only)] if only else view.config.names()
    lines = [line for name in names for line in _interface_text(view, name)]
    return Shown(lines, {"interfaces": {name: _interface_data(view, name) for name in names}})


def _state(view: View, name: str) -> tuple[str, str, str]:
    if view.port(name).foreign_value("shutdown"):
        return "administratively down", "down", "disabled"
    return ("up", "up", "connected") if view.up(name) else ("down", "down", "notconnect")


def shown_mtu(view: View, name: str) -> tuple[str, int, bool]:
    """Forwarding model, MTU shown, and whether an IP MTU was configured."""
    port = view.port(name)
    if not port.is_routed(view.config.default_routed):
        return "bridged", port.l2_mtu or BRIDGED_MTU, port.mtu is not None
    if name.startswith("Loopback"):
        return "routed", 65535, False
    return "routed", MTU_DEFAULT if port.mtu is None else port.mtu, port.mtu is not None


def _interface_text(view: View, name: str) -> list[str]:
    admin, protocol, status = _state(view, name)
    model, mtu, configured = shown_mtu(view, name)
    mac = _mac(view, view.config.names().index(name) + 1 if name in view.config.names() else 0)
    lines = [f"{name} is {admin}, line protocol is {protocol} ({status})"]
    if name.startswith("Loopback"):
        lines.append("  Hardware is Loopback")
    else:
        hardware = "Vlan" if name.startswith("Vlan") else "Ethernet"
        lines.append(f"  Hardware is {hardware}, address is {mac} (bia {mac})")
    if text := view.port(name).foreign_value("description"):
        lines.append(f"  Description: {text}")
    address = view.port(name).foreign_value("ip address")
    if model == "routed":
        if address:
            lines += [f"  Internet address is {address}", "  Broadcast address is 255.255.255.255"]
        else:
            lines.append("  No Internet protocol address assigned")
    speed = view.gbps(name)
    rate = f", BW {speed * 1_000_000} kbit" if speed else ""
    if model == "bridged":
        lines.append(f"  Ethernet MTU {mtu} bytes{rate}")
    else:
        # Real outputs have "9214 bytes , BW" when the MTU was set and "1500 bytes (default), BW" else.
        lines.append(
            f"  IP MTU {mtu} bytes{' ' if configured and rate else ''}" + _default(configured) + rate
        )
    if speed:
        lines.append(f"  Full-duplex, {speed}Gb/s, auto negotiation: off, uni-link: n/a")
    return lines


def _default(configured: bool) -> str:
    return "" if configured else " (default)"


def _interface_data(view: View, name: str) -> dict[str, Any]:
    _, protocol, status = _state(view, name)
    model, mtu, configured = shown_mtu(view, name)
    mac = _colons(_mac(view, view.config.names().index(name) + 1 if name in view.config.names() else 0))
    kinds = {"Loopback": "loopback", "Vlan": "vlan", "Port-Channel": "portChannel", "Vxlan": "vxlan"}
    kind = next((word for start, word in kinds.items() if name.startswith(start)), "ethernet")
    address = view.port(name).foreign_value("ip address")
    return {
        "name": name,
        "forwardingModel": model,
        "lineProtocolStatus": protocol,
        "interfaceStatus": status,
        "hardware": kind,
        "interfaceAddress": [_address(address)] if "/" in address else [],
        "physicalAddress": mac,
        "burnedInAddress": mac,
        "description": view.port(name).foreign_value("description"),
        "bandwidth": view.gbps(name) * 1_000_000_000,
        "mtu": mtu,
        "l3MtuConfigured": configured,
        "l2Mru": view.port(name).l2_mru or 0,
        "duplex": "duplexFull",
        "autoNegotiate": "off",
        "lanes": 0,
        **({"interfaceCounters": _counters(view, name)} if name in view.config.hardware.ports else {}),
    }


def _counters(view: View, name: str) -> dict[str, Any]:
    """What `show interfaces` says of a physical port's counters, as in public ANTA test data."""
    crc, symbol = (view.health.count(name, what) for what in ("crc", "symbol"))
    frames = {"runtFrames": 0, "giantFrames": 0, "fcsErrors": crc, "alignmentErrors": 0}
    return {
        "inDiscards": view.health.count(name, "rx-discard"),
        "outDiscards": view.health.count(name, "tx-discard") + view.health.total(name, "drop"),
        "linkStatusChanges": 1,
        "totalInErrors": crc,
        "inputErrorsDetail": {**frames, "symbolErrors": symbol, "rxPause": 0},
        "totalOutErrors": 0,
        "outputErrorsDetail": {
            "collisions": 0,
            "lateCollisions": 0,
            "deferredTransmissions": 0,
            "txPause": 0,
        },
    }


def _address(text: str) -> dict[str, Any]:
    address, _, length = text.partition("/")
    return {
        "primaryIp": {"address": address, "maskLen": int(length)},
        "secondaryIps": {},
        "secondaryIpsOrderedList": [],
        "virtualIp": {"address": "0.0.0.0", "maskLen": 0},
        "broadcastAddress": "255.255.255.255",
        "dhcp": False,
    }


def flow_control(view: View) -> Shown:
    """`show interfaces flow-control`: 802.3x pause, which PFC suspends."""
    data = {}
    lines = [
        "Port           Send FlowControl   Receive FlowControl   RxPause       TxPause",
        "               admin    oper      admin    oper",
        "-------------- -------- --------- -------- ----------- ------------- -------------",
    ]
    for name in view.config.hardware.ports:
        flow, pfc = view.port(name).flow, view.effective(name).pfc
        send, receive = flow.get("send", "off"), flow.get("receive", "off")
        live = ["off" if pfc or state == "off" else "on" for state in (send, receive)]
        lines.append(f"{short(name):14} {send:8} {live[0]:9} {receive:8} {live[1]:11} {0:13} {0:13}")
        data[name] = {
            "txAdminState": send,
            "txOperState": live[0],
            "rxAdminState": receive,
            "rxOperState": live[1],
            "txPause": 0,
            "rxPause": 0,
        }
    return Shown(lines, {"interfaceFlowControls": data})


# --- priority flow control -----------------------------------------------------------------------


def pfc_status(view: View) -> Shown:
    """`show priority-flow-control [status]`."""
    rows = []
    for name in view.config.hardware.ports:
        qos = view.effective(name)
        active = qos.pfc and bool(qos.no_drop) and view.up(name) and not view.config.pfc_off
        note = f"DCBX {view.port(name).dcbx}" if view.port(name).dcbx else "DCBX disabled"
        priorities = " ".join(str(number) for number in sorted(qos.no_drop))
        rows.append((name, _yes(qos.pfc), priorities, _yes(active), note))
    return Shown(_table(("Port", "Enabled", "Priorities", "Active", "Note"), rows))


def watchdog_counters(view: View) -> Shown:
    """`show priority-flow-control counters watchdog`: empty until the first event."""
    lines = ["Port           TxQ   Total times stuck   Total times recovered"]
    lines.append("-------------- ----- ------------------- ---------------------")
    return Shown(lines, {"interfaces": {}})


# --- qos -----------------------------------------------------------------------------------------


def qos_interfaces(view: View, only: str = "") -> Shown:
    """`show qos interfaces [NAME]`."""
    return Shown([line for name in view.ethernets(only) for line in (*_qos_interface(view, name), "")])


def _qos_interface(view: View, name: str) -> list[str]:
    qos = view.effective(name)
    head = "  Tx    Bandwidth     Bandwidth                   Shape Rate         Priority   ECN/WRED "
    lines = [
        f"{name}:",
        f"   Trust Mode: {_trust(view, name)}",
        f"   Default COS: {qos.cos}",
        f"   Default DSCP: {qos.dscp}",
        "   Port shaping rate: " + (qos.shape or "disabled"),
        head,
        " Queue  (percent)     Guaranteed (units)           (units)         ",
        " " + "-" * 88,
    ]
    robin = False
    for number in range(7, -1, -1):
        queue = qos.queues.get((view.config.hardware.queue_word, number), Queue())
        # A round-robin queue makes the queues below it round robin too.
        robin = robin or not queue.strict
        share = str(queue.percent) if robin and queue.percent is not None else "-"
        kind, mark = "RR" if robin else "SP", "L" if queue.ecn else "W" if queue.drop else "D"
        gap = " " * (10 if share != "-" else 13)
        rates = "- ( - )              -            ( - )"
        lines.append(f"   {number}        {share}{gap}{rates}      {kind}         {mark}     ")
    return lines


def _trust(view: View, name: str) -> str:
    trust = view.effective(name).trust
    if trust == "default":
        trust = "dscp" if view.port(name).is_routed(view.config.default_routed) else "cos"
    return {"dscp": "DSCP", "cos": "COS", "off": "UNTRUSTED"}[trust]


def qos_trust(view: View, only: str = "") -> Shown:
    """`show qos interfaces [NAME] trust`."""
    rows = [(name, _trust(view, name), _trust_configured(view, name)) for name in view.ethernets(only)]
    return Shown(_table(("Port", "Operational", "Configured"), rows))


def _trust_configured(view: View, name: str) -> str:
    trust = view.effective(name).trust
    return {"dscp": "DSCP", "cos": "COS", "off": "UNTRUSTED", "default": "Default"}[trust]


def qos_ecn(view: View, only: str = "") -> Shown:
    """`show qos interfaces [NAME] ecn`: the configured queues of each port."""
    lines: list[str] = []
    for name in view.ethernets(only):
        if not only:
            lines.append(f"{name}:")
        lines += [
            "Tx-Queue  Threshold  ECN Min     ECN Max",
            "          Unit       Threshold   Threshold",
            "--------  ---------  ---------   ---------",
        ]
        for (_, number), queue in sorted(view.effective(name).queues.items(), key=lambda item: item[0][1]):
            if queue.ecn is not None:
                ecn = queue.ecn
                lines.append(f"{number:<10}{ecn.unit:11}{ecn.minimum:<12}{ecn.maximum}")
    return Shown(lines)


def qos_maps(view: View) -> Shown:
    """`show qos maps`: the layout is this lab's own, the reference has none."""
    config = view.config
    lines = [
        "   Number of Traffic Classes supported: 8",
        "   Number of Transmit Queues supported: 8",
        "",
        "   Cos-tc map:",
        "     cos:  " + "  ".join(str(cos) for cos in range(8)),
        "     " + "-" * 28,
        "     tc:   " + "  ".join(str(config.cos[cos]) for cos in range(8)),
        "",
        "   Dscp-tc map:",
        "     d1 :  d2 0  1  2  3  4  5  6  7  8  9",
        "     " + "-" * 38,
    ]
    for tens in range(7):
        found = [str(config.dscp[tens * 10 + ones]) for ones in range(10) if tens * 10 + ones < 64]
        lines.append(f"      {tens} :     " + "  ".join(found))
    lines += [
        "",
        "   Tc-queue map:",
        "     tc:   " + "  ".join(str(number) for number in range(8)),
        "     " + "-" * 28,
        "     tx-q: " + "  ".join(str(config.queues[number]) for number in range(8)),
    ]
    return Shown(lines)


def qos_profiles(view: View, only: str = "") -> Shown:
    """`show qos profile [NAME]`."""
    lines: list[str] = []
    for name, profile in sorted(view.config.profiles.items()):
        if only in ("", name):
            lines.append(f"qos profile {name}")
            lines += [f"   {line}" for line in (*profile.lines(), *profile.queue_blocks())]
    return Shown(lines)


def qos_profile_summary(view: View) -> Shown:
    """`show qos profile summary`."""
    rows = []
    for name in sorted(view.config.profiles):
        ports = [port for port in view.config.names() if view.port(port).profile == name]
        rows.append((name, " ".join(short(port) for port in ports)))
    return Shown(_table(("Qos Profile", "Interfaces"), rows))


def dcbx(view: View, only: str = "") -> Shown:
    """`show dcbx [NAME]`."""
    lines: list[str] = []
    for name in view.ethernets(only):
        mode = view.port(name).dcbx
        lines.append(f"{name}:")
        if mode:
            active = view.up(name) and view.config.lldp
            lines.append(f" {mode.upper()} DCBX is enabled and {'active' if active else 'not active'}")
        else:
            lines.append(" DCBX is disabled")
    return Shown(lines)


# --- lldp ----------------------------------------------------------------------------------------


def lldp_neighbors(view: View) -> Shown:
    """`show lldp neighbors`."""
    found = _neighbors(view)
    lines = [
        "Last table change time   : 0:10:00 ago",
        f"Number of table inserts  : {len(found)}",
        "Number of table deletes  : 0",
        "Number of table drops    : 0",
        "Number of table age-outs : 0",
        "",
        "Port       Neighbor Device ID             Neighbor Port ID           TTL",
    ]
    lines += [f"{short(p.name):10} {p.peer_node:30} {p.peer_port:26} 120" for p in found]
    data = [
        {"port": p.name, "neighborDevice": p.peer_node, "neighborPort": p.peer_port, "ttl": 120}
        for p in found
    ]
    return Shown(lines, {"tablesInserts": len(found), "lldpNeighbors": data})


def lldp_detail(view: View) -> Shown:
    """`show lldp neighbors detail`."""
    lines: list[str] = []
    data = {}
    found = {port.name: port for port in _neighbors(view)}
    for name in view.config.hardware.ports:
        port = found.get(name)
        lines += [f"Interface {name} detected {int(port is not None)} LLDP neighbors:", ""]
        data[name] = {"lldpNeighborInfo": [] if port is None else [_neighbor(port)]}
        if port is not None:
            lines += [
                f'  Neighbor {port.peer_node}/"{port.peer_port}", age 12 seconds',
                "  - Port ID type: Interface name (5)",
                f'    Port ID     : "{port.peer_port}"',
                "  - Time To Live: 120 seconds",
                f'  - System Name: "{port.peer_node}"',
                "",
            ]
    return Shown(lines, {"lldpNeighbors": data})


def _neighbors(view: View) -> list[PortFact]:
    if not view.config.lldp:
        return []
    return [p for p in view.facts.ports if p.peer_node and view.up(p.name) and view.port(p.name).lldp_receive]


def _neighbor(port: PortFact) -> dict[str, Any]:
    return {
        "systemName": port.peer_node,
        "neighborInterfaceInfo": {
            "interfaceIdType": "interfaceName",
            "interfaceId": f'"{port.peer_port}"',
            "interfaceId_v2": port.peer_port,
        },
        "ttl": 120,
    }


# --- running-config ------------------------------------------------------------------------------


def config_header(view: View, command: str) -> list[str]:
    """The comment lines above a shown configuration."""
    hw = view.config.hardware
    return [
        f"! Command: {command}",
        f"! device: {view.config.hostname} ({hw.model}, EOS-{hw.version})",
        "!",
        f"! boot system flash:/EOS-{hw.version}.swi",
    ]


def as_tree(lines: Iterable[str]) -> dict[str, Any]:
    """A configuration as EOS's JSON of it: line -> null, or its block."""
    root: dict[str, Any] = {"cmds": {}, "comments": [], "header": []}
    stack = [(-1, root)]
    for line in lines:
        text = line.strip()
        if not text or text.startswith("!") or text == "end":
            continue
        depth = len(line) - len(line.lstrip())
        while stack[-1][0] >= depth:
            stack.pop()
        block: dict[str, Any] = {"cmds": {}, "comments": []}
        stack[-1][1]["cmds"][text] = block
        stack.append((depth, block))
    _leaves_to_null(root)
    return root


def _leaves_to_null(block: dict[str, Any]) -> None:
    for text, below in block["cmds"].items():
        if below["cmds"]:
            _leaves_to_null(below)
        else:
            block["cmds"][text] = None


def section(lines: Sequence[str], pattern: str) -> list[str]:
    """`section REGEX`: blocks whose header matches, and matching lines with their headers."""
    wanted = re.compile(pattern, re.IGNORECASE)
    shown: list[str] = []
    for block in _blocks(lines):
        if wanted.search(block[0]):
            shown += block
            continue
        hits = [line for line in block[1:] if wanted.search(line)]
        if hits:
            shown += [block[0], *hits]
    return shown


def _blocks(lines: Sequence[str]) -> list[list[str]]:
    """Top lines, each with the indented lines below it; comment lines of the top level left out."""
    found: list[list[str]] = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1].append(line)
        elif line and not line.startswith("!") and line != "end":
            found.append([line])
    return found


# --- help ----------------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns two blanks apart, as wide as their widest cell, ruled under the heads."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    ruled = ["-" * width for width in widths]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, ruled, *rows)
    ]


def _yes(true: bool) -> str:
    return "Yes" if true else "No"


def _mac(view: View, number: int) -> str:
    """A locally administered address that is the same in every run."""
    text = f"0200{sum(view.facts.name.encode()) & 0xFFFF:04x}{number:04x}"
    return ".".join(text[at : at + 4] for at in (0, 4, 8))


def _colons(mac: str) -> str:
    plain = mac.replace(".", "")
    return ":".join(plain[at : at + 2] for at in range(0, 12, 2))


def _serial(view: View) -> str:
    return f"LAB{sum(view.facts.name.encode()):08d}"


def _uptime(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 60} hours and {minutes % 60} minutes"
