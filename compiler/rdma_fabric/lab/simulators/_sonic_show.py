"""The `show` command of a simulated SONiC switch (sonic-utilities `show/main.py` and its tools)."""

from __future__ import annotations

import json

from rdma_fabric.lab.simulators import _sonic_counters as counters
from rdma_fabric.lab.simulators import _sonic_json as js
from rdma_fabric.lab.simulators._sonic_click import Command, Param, Stop, Values, dispatch
from rdma_fabric.lab.simulators._sonic_config import Shell
from rdma_fabric.lab.simulators._sonic_state import Storm, Switch
from rdma_fabric.lab.simulators._sonic_stock import hwsku_of, platform_of


def show(shell: Shell, argv: list[str]) -> int:
    """Run `show ...`; raises Stop where it refuses."""
    command, values = dispatch("show", COMMANDS, argv, shell.switch.branch)
    command.run(shell, values)
    return 0


def _running(shell: Shell, values: Values) -> None:
    config = js.ordered(shell.switch.running)
    config["bgpraw"] = _frr(shell.switch)
    shell.say(json.dumps(config, indent=4))


def _frr(switch: Switch) -> str:
    """`show running-config` of FRR: what bgpcfgd makes of the BGP tables."""
    metadata = switch.running.get("DEVICE_METADATA", {}).get("localhost", {})
    lines = ["Building configuration...", "", "Current configuration:", "!", "frr version 8.5.4"]
    lines += ["frr defaults traditional", f"hostname {switch.hostname}", "!"]
    lines.append(f"router bgp {metadata.get('bgp_asn', '65100')}")
    for key, row in sorted(switch.running.get("BGP_NEIGHBOR", {}).items()):
        lines.append(f" neighbor {key.split('|')[-1]} remote-as {row.get('asn', '')}")
    return "\n".join([*lines, "exit", "!", "end", ""])


def _interfaces_status(shell: Shell, values: Values) -> None:
    switch, only = shell.switch, values["interfacename"]
    names = [port for port in sorted(switch.applied, key=js.natural) if only in (None, port)]
    headers = (
        "Interface",
        "Lanes",
        "Speed",
        "MTU",
        "FEC",
        "Alias",
        "Vlan",
        "Oper",
        "Admin",
        "Type",
        "Asym PFC",
    )
    rows = [_status_row(switch, port) for port in names]
    shell.say(js.table(rows, headers, right=True))


def _status_row(switch: Switch, port: str) -> list[str]:
    state = switch.applied[port]
    trunk = [k for k in switch.running.get("VLAN_MEMBER", {}) if k.endswith(f"|{port}")]
    lag = [k.split("|")[0] for k in switch.running.get("PORTCHANNEL_MEMBER", {}) if k.endswith(f"|{port}")]
    speed = state.get("speed", "")
    if port in switch.health.speeds:  # STATE_DB's speed, which `intfutil` prefers for a port that is up
        speed = str(switch.health.speeds[port] * 1000)
    gig = f"{int(speed) // 1000}G" if speed.isdigit() else "N/A"
    return [
        port,
        state.get("lanes", "N/A"),
        gig,
        state.get("mtu", "N/A"),
        state.get("fec", "N/A"),
        state.get("alias", "N/A"),
        lag[0] if lag else "trunk" if trunk else "routed",
        state["oper_status"],
        state["admin_status"],
        "N/A",
        state.get("pfc_asym", "N/A"),
    ]


def _pfc_priority(shell: Shell, values: Values) -> None:
    rows, only = shell.switch.running.get("PORT_QOS_MAP", {}), values["interface"]
    if only is not None and only not in rows:
        shell.say(f"Cannot find interface {only}")
        return
    names = [only] if only else sorted(rows, key=js.natural)
    table = [[name, rows[name].get("pfc_enable", "N/A")] for name in names]
    shell.say("")
    shell.say(js.table(table, ("Interface", "Lossless priorities")))
    shell.say("")


def _pfc_asymmetric(shell: Shell, values: Values) -> None:
    rows, only = shell.switch.running.get("PORT", {}), values["interface"]
    names = [
        name for name in counters.ports(shell.switch) if name.startswith("Ethernet") and only in (None, name)
    ]
    shell.say("")
    shell.say(
        js.table([[name, rows[name].get("pfc_asym", "N/A")] for name in names], ("Interface", "Asymmetric"))
    )
    shell.say("")


def _pfcwd_config(shell: Shell, values: Values) -> None:
    rows = shell.switch.running.get("PFC_WD", {})
    columns = [("ACTION", "action", "drop"), ("DETECTION TIME", "detection_time", "N/A")]
    columns.append(("RESTORATION TIME", "restoration_time", "infinite"))
    if shell.switch.branch >= 202511:
        columns.append(("HISTORY", "pfc_stat_history", "disable"))
    names = [p for p in values["ports"] or counters.ports(shell.switch) if p in rows]
    poll = rows.get("GLOBAL", {}).get("POLL_INTERVAL")
    if names and poll is not None:
        shell.say(f"Changed polling interval to {poll}ms")
    table = [[name, *(rows[name].get(label, default) for _, label, default in columns)] for name in names]
    shell.say(js.table(table, ("PORT", *(title for title, _, _ in columns)), right=True))


def watched(switch: Switch, port: str) -> set[str]:
    """Queues of a port that the watchdog watches: it needs pfcwd_sw_enable as well."""
    if port not in switch.running.get("PFC_WD", {}):
        return set()
    listed = switch.running.get("PORT_QOS_MAP", {}).get(port, {}).get("pfcwd_sw_enable", "")
    return {one for one in listed.split(",") if one}


def _pfcwd_stats(shell: Shell, values: Values) -> None:
    switch = shell.switch
    queues = values["queues"] or [f"{port}:{queue}" for port in counters.ports(switch) for queue in range(8)]
    rows = []
    for queue in queues:
        port, _, number = queue.partition(":")
        if port not in switch.running.get("PORT", {}):
            continue
        storm = switch.storms.get(queue, Storm())
        status = "N/A"
        if number in watched(switch, port):
            status = "stormed" if storm.stormed else "operational"
        counts = [f"{storm.detected}/{storm.restored}", *["0/0"] * 4]
        if counts[0] != "0/0" or values["empty"]:
            rows.append([queue, status, *counts])
    if values["check_storm"]:
        raise Stop(1 if any(row[1] == "stormed" for row in rows) else 0)
    headers = ("QUEUE", "STATUS", "STORM DETECTED/RESTORED", "TX OK/DROP", "RX OK/DROP")
    shell.say(js.table(rows, (*headers, "TX LAST OK/DROP", "RX LAST OK/DROP"), right=True))


def _blocks(shell: Shell, title: str, table: str) -> None:
    for name, row in sorted(
        shell.switch.running.get(table, {}).items(), key=lambda item: js.natural(item[0])
    ):
        shell.say(f"{title}: {name}")
        shell.say(js.table([[label, str(value)] for label, value in row.items()]) + "\n")


def _ecn(shell: Shell, values: Values) -> None:
    _blocks(shell, "Profile", "WRED_PROFILE")


def _buffer(shell: Shell, values: Values) -> None:
    # the state shows the same pools and profiles: buffer orch programs what CONFIG_DB holds
    _blocks(shell, "Lossless traffic pattern", "DEFAULT_LOSSLESS_BUFFER_PARAMETER")
    for title, table, kind in (("Pool", "BUFFER_POOL", "pool"), ("Profile", "BUFFER_PROFILE", "profile")):
        if shell.switch.running.get(table):
            _blocks(shell, title, table)
        else:
            shell.say(f"No buffer {kind} information available")


def _version(shell: Shell, values: Values) -> None:
    switch = shell.switch
    hwsku = hwsku_of(switch.facts)
    lines = [
        "",
        f"SONiC Software Version: SONiC.{switch.build_version}",
        f"SONiC OS Version: {'11' if switch.branch < 202405 else '12'}",
        f"Distribution: Debian {'11.9' if switch.branch < 202405 else '12.11'}",
        f"Kernel: {'5.10.0-23-2-amd64' if switch.branch < 202405 else '6.1.0-29-2-amd64'}",
        "Build commit: 5f2c1a9d0",
        "Build date: Thu Jan  1 00:00:00 UTC 2026",
        "Built by: AzDevOps@vmss-soni001UYE",
        "",
        f"Platform: {platform_of(hwsku)}",
        f"HwSKU: {switch.hwsku}",
        f"ASIC: {switch.asic_type}",
        "ASIC Count: 1",
        "Serial Number: LAB0000001",
        "Model Number: N/A",
        "Hardware Revision: N/A",
        "",
        "Docker images:",
        "REPOSITORY                TAG       IMAGE ID       SIZE",
        "docker-orchagent          latest    2d1b1a5b8f70   328MB",
    ]
    shell.say("\n".join(lines))


def _lldp(shell: Shell, values: Values) -> None:
    facts = {fact.name: fact for fact in shell.switch.facts.ports}
    rows = []
    for port in sorted(shell.switch.applied, key=js.natural):
        fact = facts.get(port)
        if fact and fact.peer_node and shell.switch.applied[port]["oper_status"] == "up":
            rows.append([port, fact.peer_node, fact.peer_port, "BR", fact.peer_port])
    headers = ("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr")
    shell.say("Capability codes: (R) Router, (B) Bridge, (O) Other")
    shell.say(js.table(rows, headers))
    shell.say("-".rjust(50, "-"))
    shell.say(f"Total entries displayed:  {len(rows)}")


def _switch_hash(shell: Shell, values: Values) -> None:
    row = shell.switch.running.get("SWITCH_HASH", {}).get("GLOBAL", {})
    if values["json"]:
        names = ("ecmp_hash", "lag_hash")
        shell.say(
            json.dumps(
                {name.replace("_hash", ""): {"hash_field": row.get(name, [])} for name in names}, indent=4
            )
        )
        return
    for title, name in (("ECMP HASH", "ecmp_hash"), ("LAG HASH", "lag_hash")):
        shell.say(f"{title}: {', '.join(row.get(name, [])) or 'N/A'}")


_PORT = Param("interface", required=False)
_VERBOSE = Param("verbose", flags=("--verbose",), switch=True)

COMMANDS: tuple[Command, ...] = (
    Command("runningconfiguration all", _running, (_VERBOSE,)),
    Command("interfaces status", _interfaces_status, (Param("interfacename", required=False), _VERBOSE)),
    Command("pfc priority", _pfc_priority, (_PORT,)),
    Command("pfc asymmetric", _pfc_asymmetric, (_PORT,)),
    Command("pfcwd config", _pfcwd_config, (Param("ports", many=True, required=False), _VERBOSE)),
    Command(
        "pfcwd stats",
        _pfcwd_stats,
        (
            Param("queues", many=True, required=False),
            Param("empty", flags=("-e", "--empty"), switch=True),
            Param("check_storm", flags=("--check-storm",), switch=True),
            _VERBOSE,
        ),
        since=202511,
    ),
    Command(
        "pfcwd stats",
        lambda shell, values: _pfcwd_stats(shell, {**values, "check_storm": False}),
        (
            Param("queues", many=True, required=False),
            Param("empty", flags=("-e", "--empty"), switch=True),
            _VERBOSE,
        ),
    ),
    Command("ecn", _ecn, (_VERBOSE,)),
    Command("buffer configuration", _buffer, (_VERBOSE,)),
    Command("buffer information", _buffer, (_VERBOSE,)),
    Command("version", _version, (_VERBOSE,)),
    Command("lldp table", _lldp, (_VERBOSE,)),
    Command("switch-hash global", _switch_hash, (Param("json", flags=("-j", "--json"), switch=True),)),
    *counters.COMMANDS,
)
