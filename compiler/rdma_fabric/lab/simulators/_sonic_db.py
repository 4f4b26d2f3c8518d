"""`sonic-cfggen`, `sonic-db-cli` and `redis-cli` of a simulated SONiC switch."""

from __future__ import annotations

import fnmatch
import json

from rdma_fabric.lab.simulators import _sonic_counters as counters
from rdma_fabric.lab.simulators import _sonic_json as js
from rdma_fabric.lab.simulators._sonic_click import Stop
from rdma_fabric.lab.simulators._sonic_run import Runner
from rdma_fabric.lab.simulators._sonic_show import watched
from rdma_fabric.lab.simulators._sonic_state import Switch

_NUMBERS = {"0": "APPL_DB", "2": "COUNTERS_DB", "4": "CONFIG_DB", "6": "STATE_DB"}
_ENDED = ("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE")
Hash = dict[str, str]


def _flat(row: dict[str, object]) -> Hash:
    """A row as redis holds it: lists under `name@`, an empty row as NULL."""
    values = {}
    for name, value in row.items():
        if isinstance(value, list):
            values[f"{name}@"] = ",".join(value)
        else:
            values[name] = str(value)
    return values or {"NULL": "NULL"}


def database(switch: Switch, name: str) -> dict[str, Hash]:
    """All keys of one redis database."""
    running = switch.running
    if name == "CONFIG_DB":
        return {f"{t}|{key}": _flat(row) for t, rows in running.items() for key, row in rows.items()}
    if name == "APPL_DB":
        ports = {f"PORT_TABLE:{port}": dict(state) for port, state in switch.applied.items()}
        for port, count in switch.flaps.items():
            if f"PORT_TABLE:{port}" in ports:
                ports[f"PORT_TABLE:{port}"]["flap_count"] = str(count)
        buffers = {
            f"{table}_TABLE:{key.replace('|', ':')}": _flat(row)
            for table in _ENDED
            for key, row in running.get(table, {}).items()
        }
        return ports | buffers
    if name == "STATE_DB":
        return _state(switch)
    return counters.database(switch)


def _state(switch: Switch) -> dict[str, Hash]:
    box = switch.box()
    keys = {}
    for port, state in switch.applied.items():
        keys[f"PORT_TABLE|{port}"] = {
            "state": "ok",
            "netdev_oper_status": state["oper_status"],
            "admin_status": state["admin_status"],
            "mtu": state.get("mtu", "9100"),
            "speed": str(switch.health.speeds.get(port, 0) * 1000 or state.get("speed", "")),
            "supported_speeds": box.speeds.get(port, ""),
            "supported_fecs": box.fecs.get(port, ""),
        }
        if watched(switch, port):
            keys[f"PFC_WD_TABLE|{port}"] = {"queues": ",".join(sorted(watched(switch, port)))}
    for table in ("BUFFER_POOL", "BUFFER_PROFILE"):
        keys |= {f"{table}_TABLE|{key}": _flat(row) for key, row in switch.running.get(table, {}).items()}
    return keys


def sonic_cfggen(runner: Runner, argv: list[str]) -> int:
    """`sonic-cfggen -d` with --print-data, --var-json TABLE [-K KEY] or -v PATH."""
    rest, from_db, action, value, key = list(argv), False, "", "", ""
    while rest:
        word = rest.pop(0)
        if word in ("-d", "--from-db"):
            from_db = True
        elif word == "--print-data":
            action = word
        elif word in ("--var-json", "-v", "--var", "-K", "--key"):
            if not rest:
                raise _cfggen_usage(f"argument {word}: expected one argument")
            if word in ("-K", "--key"):
                key = rest.pop(0)
            else:
                action, value = word, rest.pop(0)
        else:
            raise _cfggen_usage(f"unrecognized arguments: {word}")
    data = js.ordered(runner.switch.running) if from_db else {}
    if action == "--print-data":
        runner.say(json.dumps(data, indent=4))
    elif action == "--var-json":
        if value in data:
            rows = data[value]
            runner.say(json.dumps({key: rows[key]} if key in rows else {} if key else rows, indent=4))
    elif action:
        node: object = data
        for part in value.split("."):
            node = node.get(part, "") if isinstance(node, dict) else ""
        runner.say(str(node) if node != "" else "")
    return 0


def _cfggen_usage(text: str) -> Stop:
    return Stop(
        2,
        f"usage: sonic-cfggen [-h] [-d] [--var-json VAR_JSON] [--print-data]\nsonic-cfggen: error: {text}\n",
    )


def sonic_db_cli(runner: Runner, argv: list[str]) -> int:
    """`sonic-db-cli DB COMMAND ...`: prints bare values, and hashes as a Python dictionary."""
    rest = [word for word in argv if word not in ("-s", "--unixsocket")]
    if len(rest) < 2:
        raise Stop(1, out="usage: sonic-db-cli [-h] [-s] [-n NAMESPACE] db_or_op [cmd [cmd ...]]\n")
    name, command, args = rest[0], rest[1].upper(), rest[2:]
    if name not in _NUMBERS.values():
        raise Stop(1, f"Invalid database name input : '{name}'\n")
    answer = _command(runner.switch, name, command, args)
    if isinstance(answer, dict):
        pairs = ", ".join(f"'{field}': '{value}'" for field, value in answer.items())
        runner.say("{" + pairs + "}")
    elif isinstance(answer, list):
        runner.say("\n".join(answer))
    else:
        runner.say("" if answer is None else str(answer))
    return 0


def redis_cli(runner: Runner, argv: list[str]) -> int:
    """`redis-cli -n NUMBER COMMAND ...`, output as on a pipe: values one a line."""
    rest, name = list(argv), "APPL_DB"
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag != "-n" or not rest or rest[0] not in _NUMBERS:
            raise Stop(1, f"Unrecognized option or bad number of args for: '{flag}'\n")
        name = _NUMBERS[rest.pop(0)]
    if not rest:
        raise Stop(1, "Error: no command was given\n")
    answer = _command(runner.switch, name, rest[0].upper(), rest[1:])
    if isinstance(answer, dict):
        answer = [text for pair in answer.items() for text in pair]
    runner.say("\n".join(answer) if isinstance(answer, list) else "" if answer is None else str(answer))
    return 0


_COUNTS = {"HGET": 2, "HGETALL": 1, "KEYS": 1, "EXISTS": 1, "HEXISTS": 2, "HSET": 3, "HDEL": 2, "DEL": 1}


def _command(switch: Switch, name: str, command: str, args: list[str]) -> Hash | list[str] | str | int | None:
    if command == "PING":
        return "PONG"
    least = _COUNTS.get(command)
    if least is None:
        raise Stop(1, f"ERR unknown command '{command}'\n")
    if len(args) < least or (len(args) > least and command not in ("HSET", "HDEL", "DEL")):
        raise Stop(1, f"ERR wrong number of arguments for '{command.lower()}' command\n")
    keys = database(switch, name)
    row = keys.get(args[0], {})
    if command == "HGET":
        return row.get(args[1])
    if command == "HGETALL":
        return row
    if command == "KEYS":
        return sorted((key for key in keys if fnmatch.fnmatchcase(key, args[0])), key=js.natural)
    if command == "EXISTS":
        return int(args[0] in keys)
    if command == "HEXISTS":
        return int(args[1] in row)
    if name != "CONFIG_DB":
        raise Stop(1, f"ERR {name} is written by the daemons only\n")
    return _write(switch, command, args, keys)


def _write(switch: Switch, command: str, args: list[str], keys: dict[str, Hash]) -> int:
    """HSET, HDEL and DEL on CONFIG_DB: no model is asked."""
    if command == "DEL":
        found = [key for key in args if key in keys]
        for key in found:
            table, _, row_key = key.partition("|")
            switch.set_row(table, row_key, None)
        return len(found)
    table, _, row_key = args[0].partition("|")
    old = {field: value for field, value in keys.get(args[0], {}).items() if field != "NULL"}
    if command == "HSET":
        if len(args) % 2 == 0:
            raise Stop(1, "ERR wrong number of arguments for 'hset' command\n")
        given = dict(zip(args[1::2], args[2::2], strict=True))
        changed, new = len(given.keys() - old.keys()), {**old, **given}
    else:
        new = {field: value for field, value in old.items() if field not in args[1:]}
        changed = len(old) - len(new)
    lists: dict[str, object] = {
        field.rstrip("@"): value.split(",") if field.endswith("@") else value for field, value in new.items()
    }
    switch.set_row(table, row_key, lists if new or "NULL" in keys.get(args[0], {}) else None)
    return changed
