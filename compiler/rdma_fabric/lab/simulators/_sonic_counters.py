"""Counters of a simulated SONiC switch: `show` commands and COUNTERS_DB.

Sources: sonic-utilities (`pfcstat`, `portstat`, `queuestat`, `wredstat` and their unit tests; the ECN and
WRED statistics came in February 2025), SAI names of counters. Not confirmed: object numbers; the columns that
`fec-stats` has on each branch. Drops of queues count as discards of their port too.
"""

from __future__ import annotations

import json
import zlib

from rdma_fabric.lab.simulators import _sonic_json as js
from rdma_fabric.lab.simulators._sonic_click import Command, Param, Stop, Values
from rdma_fabric.lab.simulators._sonic_config import Shell
from rdma_fabric.lab.simulators._sonic_state import Switch

PFC = tuple(f"PFC{priority}" for priority in range(8))
_ERRORS = ("RX_ERR", "RX_DRP", "RX_OVR", "TX_ERR", "TX_DRP", "TX_OVR")
_RATES = {"RX_BPS": "0.00 B/s", "RX_PPS": "0.00/s", "RX_UTIL": "0.00%"}
_RATES |= {name.replace("RX", "TX"): value for name, value in _RATES.items()}
_STANDARD = ("RX_OK", "RX_BPS", "RX_UTIL", *_ERRORS[:3], "TX_OK", "TX_BPS", "TX_UTIL", *_ERRORS[3:])
_ALL = (
    *("RX_OK", "RX_BPS", "RX_PPS", "RX_UTIL", *_ERRORS[:3]),
    *("TX_OK", "TX_BPS", "TX_PPS", "TX_UTIL", *_ERRORS[3:]),
)
# What a queue counts about packets besides their number: one full RDMA packet each.
_PACKET = 4096 + 58
_WRED_SINCE, _BER_SINCE = 202505, 202411
Hash = dict[str, str]


def ports(switch: Switch) -> list[str]:
    """All ports in natural order."""
    return sorted(switch.running.get("PORT", {}), key=js.natural)


def by_queue(switch: Switch, port: str, name: str) -> list[int]:
    """Counter of the eight unicast queues: the sum over the traffic classes that are mapped to each."""
    bound = switch.running.get("PORT_QOS_MAP", {}).get(port, {}).get("tc_to_queue_map", "")
    row = switch.running.get("TC_TO_QUEUE_MAP", {}).get(bound, {})
    found = [0] * 8
    for priority in range(8):
        queue = str(row.get(str(priority), priority))
        if queue.isdigit() and int(queue) < 8:
            found[int(queue)] += switch.health.count(port, f"{name}:{priority}")
    return found


def _state(switch: Switch, port: str) -> str:
    found = switch.applied.get(port, {})
    if found.get("admin_status") != "up":
        return "X"
    return "U" if found.get("oper_status") == "up" else "D"


def _port(switch: Switch, port: str) -> dict[str, str]:
    """Columns of `portstat`; no packet is counted, as none flows."""
    health = switch.health
    numbers = {
        "RX_OK": 0,
        "TX_OK": 0,
        "RX_ERR": health.count(port, "crc"),
        "RX_DRP": health.count(port, "rx-discard"),
        "RX_OVR": 0,
        "TX_ERR": 0,
        "TX_DRP": health.count(port, "tx-discard") + health.total(port, "drop"),
        "TX_OVR": 0,
        "FEC_CORR": 0,
        "FEC_UNCORR": health.count(port, "fec-uncorrected"),
        "FEC_SYMBOL_ERR": health.count(port, "symbol"),
    }
    more = {"STATE": _state(switch, port), "FEC_PRE_BER": "0.00e+00", "FEC_POST_BER": "0.00e+00"}
    return {name: f"{number:,}" for name, number in numbers.items()} | _RATES | more


def _portstat(shell: Shell, values: Values, columns: tuple[str, ...]) -> None:
    switch, only = shell.switch, values.get("interface")
    wanted = only.split(",") if only else ports(switch)
    table = {port: _port(switch, port) for port in wanted if port in switch.running.get("PORT", {})}
    names = ("STATE", *columns)
    if values["json_fmt"]:
        shown = {port: {name: row[name] for name in names} for port, row in table.items()}
        shell.say(json.dumps(shown, indent=4, sort_keys=True))
        return
    rows = [[port, *(row[name] for name in names)] for port, row in table.items()]
    shell.say(js.table(rows, ("IFACE", *names), right=True))


def _counters(shell: Shell, values: Values) -> None:
    _portstat(shell, values, _ALL if values["printall"] else _STANDARD)


def _fec(shell: Shell, values: Values) -> None:
    more = ("FEC_PRE_BER", "FEC_POST_BER") if shell.switch.branch >= _BER_SINCE else ()
    _portstat(shell, values, ("FEC_CORR", "FEC_UNCORR", "FEC_SYMBOL_ERR", *more))


def _pfc(shell: Shell, values: Values) -> None:
    health = shell.switch.health
    for number, (title, name) in enumerate((("Port Rx", "pfc-rx"), ("Port Tx", "pfc-tx"))):
        rows = [
            [port, *(f"{health.count(port, f'{name}:{priority}'):,}" for priority in range(8))]
            for port in ports(shell.switch)
        ]
        shell.say(("\n" if number else "") + js.table(rows, (title, *PFC), right=True))


def _chosen(shell: Shell, values: Values) -> list[str]:
    only = values["interfacename"]
    if only is not None and only not in shell.switch.running.get("PORT", {}):
        raise Stop(1, out=f"Port doesn't exist! {only}\n")
    return [only] if only else ports(shell.switch)


def _tables(shell: Shell, values: Values, heads: dict[str, str], found: dict[str, list[list[str]]]) -> None:
    """One table a port, or one JSON object; `heads`: column -> its name in JSON."""
    if values["nonzero"]:
        found = {port: [row for row in rows if set(row[1:]) != {"0"}] for port, rows in found.items()}
    if values["json"]:
        keys = list(heads.values())
        shown = {
            p: {row[0]: dict(zip(keys, row[1:], strict=True)) for row in rows} for p, rows in found.items()
        }
        shell.say(json.dumps(shown, sort_keys=True, indent=2))
        return
    for port, rows in found.items():
        if rows:
            shell.say(js.table([[port, *row] for row in rows], ("Port", "TxQ", *heads), right=True) + "\n")


def _queues(shell: Shell, values: Values) -> None:
    found = {
        port: [
            [f"UC{queue}", "0", "0", str(lost), str(lost * _PACKET)]
            for queue, lost in enumerate(by_queue(shell.switch, port, "drop"))
        ]
        for port in _chosen(shell, values)
    }
    heads = {"Counter/pkts": "totalpacket", "Counter/bytes": "totalbytes"}
    _tables(shell, values, heads | {"Drop/pkts": "droppacket", "Drop/bytes": "dropbytes"}, found)


def _wred(shell: Shell, values: Values) -> None:
    found = {
        port: [
            [f"UC{queue}", "0", "0", str(marked), str(marked * _PACKET)]
            for queue, marked in enumerate(by_queue(shell.switch, port, "ecn"))
        ]
        for port in _chosen(shell, values)
    }
    heads = {"WredDrp/pkts": "wreddroppacket", "WredDrp/bytes": "wreddropbytes"}
    heads |= {"EcnMarked/pkts": "ecnmarkedpacket", "EcnMarked/bytes": "ecnmarkedbytes"}
    _tables(shell, values, heads, found)


_VERBOSE = Param("verbose", flags=("--verbose",), switch=True)
_JSON = Param("json_fmt", flags=("-j", "--json"), switch=True)
_PORTSTAT = (_JSON, _VERBOSE)
_QUEUES = (
    Param("interfacename", required=False),
    Param("nonzero", flags=("-nz", "--nonzero"), switch=True),
    Param("json", flags=("-j", "--json"), switch=True),
    _VERBOSE,
)
COMMANDS = (
    Command("pfc counters", _pfc, (_VERBOSE,)),
    Command(
        "interfaces counters",
        _counters,
        (
            Param("interface", flags=("-i", "--interface"), required=False),
            Param("printall", flags=("-a", "--printall"), switch=True),
            *_PORTSTAT,
        ),
    ),
    Command("interfaces counters errors", lambda shell, values: _portstat(shell, values, _ERRORS), _PORTSTAT),
    Command("interfaces counters fec-stats", _fec, _PORTSTAT),
    Command("queue counters", _queues, _QUEUES),
    Command("queue wredcounters", _wred, _QUEUES, since=_WRED_SINCE),
)


# --- COUNTERS_DB ---


def database(switch: Switch) -> dict[str, Hash]:
    """COUNTERS_DB: maps of names to objects, and an object per port and queue."""
    keys: dict[str, Hash] = {"COUNTERS_PORT_NAME_MAP": {}, "COUNTERS_QUEUE_NAME_MAP": {}}
    for port in ports(switch):
        oid = _oid(0x1, port)
        keys["COUNTERS_PORT_NAME_MAP"][port] = oid
        keys[f"COUNTERS:{oid}"] = _port_object(switch, port)
        lost, marked = (by_queue(switch, port, name) for name in ("drop", "ecn"))
        for queue in range(8):
            oid = _oid(0x15, f"{port}:{queue}")
            keys["COUNTERS_QUEUE_NAME_MAP"][f"{port}:{queue}"] = oid
            keys[f"COUNTERS:{oid}"] = _queue_object(switch, lost[queue], marked[queue])
    return keys


def _oid(kind: int, name: str) -> str:
    return f"oid:0x{kind:x}{zlib.crc32(name.encode()):012x}"


def _port_object(switch: Switch, port: str) -> Hash:
    health = switch.health
    found = {
        "SAI_PORT_STAT_IF_IN_ERRORS": health.count(port, "crc"),
        "SAI_PORT_STAT_IF_IN_DISCARDS": health.count(port, "rx-discard"),
        "SAI_PORT_STAT_IF_OUT_DISCARDS": health.count(port, "tx-discard") + health.total(port, "drop"),
        "SAI_PORT_STAT_IF_OUT_ERRORS": 0,
        "SAI_PORT_STAT_IF_IN_FEC_CORRECTABLE_FRAMES": 0,
        "SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES": health.count(port, "fec-uncorrected"),
        "SAI_PORT_STAT_IF_IN_FEC_SYMBOL_ERRORS": health.count(port, "symbol"),
    }
    for priority in range(8):
        found[f"SAI_PORT_STAT_PFC_{priority}_RX_PKTS"] = health.count(port, f"pfc-rx:{priority}")
        found[f"SAI_PORT_STAT_PFC_{priority}_TX_PKTS"] = health.count(port, f"pfc-tx:{priority}")
    return {name: str(number) for name, number in found.items()}


def _queue_object(switch: Switch, lost: int, marked: int) -> Hash:
    found = {
        "SAI_QUEUE_STAT_PACKETS": 0,
        "SAI_QUEUE_STAT_BYTES": 0,
        "SAI_QUEUE_STAT_DROPPED_PACKETS": lost,
        "SAI_QUEUE_STAT_DROPPED_BYTES": lost * _PACKET,
    }
    if switch.branch >= _WRED_SINCE:
        found["SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"] = marked
        found["SAI_QUEUE_STAT_WRED_ECN_MARKED_BYTES"] = marked * _PACKET
        found["SAI_QUEUE_STAT_WRED_DROPPED_PACKETS"] = 0
        found["SAI_QUEUE_STAT_WRED_DROPPED_BYTES"] = 0
    return {name: str(number) for name, number in found.items()}
