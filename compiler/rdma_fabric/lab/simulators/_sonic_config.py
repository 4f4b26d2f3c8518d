"""The `config` command of a simulated SONiC switch (sonic-utilities `config/main.py`)."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any, Protocol

from rdma_fabric.lab.simulators import _sonic_json as js
from rdma_fabric.lab.simulators._sonic_click import Command, Param, Stop, Values, dispatch, fail
from rdma_fabric.lab.simulators._sonic_gcu import UpdaterError, update
from rdma_fabric.lab.simulators._sonic_state import (
    CHECKPOINT_END,
    CHECKPOINTS,
    STARTUP,
    Switch,
    dump_json,
    normal_config,
    without_backend,
)
from rdma_fabric.lab.simulators._sonic_stock import blank
from rdma_fabric.lab.simulators._sonic_yang import YangError, validate

CFGGEN = "/usr/local/bin/sonic-cfggen"
NEEDS_ROOT = "Root privileges are required for this operation"

QOS_TABLES = (
    "PORT_QOS_MAP",
    "QUEUE",
    "TC_TO_PRIORITY_GROUP_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "TC_TO_QUEUE_MAP",
    "DSCP_TO_TC_MAP",
    "MPLS_TC_TO_TC_MAP",
    "SCHEDULER",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "WRED_PROFILE",
    "CABLE_LENGTH",
    "BUFFER_PG",
    "BUFFER_QUEUE",
    "BUFFER_PORT_INGRESS_PROFILE_LIST",
    "BUFFER_PORT_EGRESS_PROFILE_LIST",
    "BUFFER_PROFILE",
    "BUFFER_POOL",
    "DEFAULT_LOSSLESS_BUFFER_PARAMETER",
    "LOSSLESS_TRAFFIC_PATTERN",
)
"""Tables that `config qos clear` and `config qos reload` delete."""

_HASH_FIELDS = (
    *("IN_PORT", "DST_MAC", "SRC_MAC", "ETHERTYPE", "VLAN_ID", "IP_PROTOCOL", "DST_IP", "SRC_IP"),
    *("L4_DST_PORT", "L4_SRC_PORT", "INNER_DST_MAC", "INNER_SRC_MAC", "INNER_ETHERTYPE"),
    *("INNER_IP_PROTOCOL", "INNER_DST_IP", "INNER_SRC_IP", "INNER_L4_DST_PORT", "INNER_L4_SRC_PORT"),
)


class Shell(Protocol):
    """What a command needs of the shell that runs it."""

    switch: Switch
    root: bool

    def say(self, text: str) -> None:
        """Print a line on stdout."""

    def ask(self, question: str) -> bool:
        """Print a yes/no question and read the answer; raises Stop with Aborted! without a terminal."""

    def path(self, name: str) -> str:
        """The absolute path of a file name."""


def config(shell: Shell, argv: list[str]) -> int:
    """Run `config ...`; raises Stop where it refuses."""
    if not shell.root and not any(word in ("-h", "-?", "--help") for word in argv):
        raise Stop(1, NEEDS_ROOT + "\n")
    command, values = dispatch("config", COMMANDS, argv, shell.switch.branch)
    command.run(shell, values)
    return 0


def _find(path: str) -> Command:
    return next(command for command in COMMANDS if command.path == path)


def _read_json(shell: Shell, name: str) -> Any:
    data = shell.switch.files.get(shell.path(name))
    if data is None:
        raise FileNotFoundError(f"[Errno 2] No such file or directory: '{name}'")
    return json.loads(data)


# --- generic config updater ---------------------------------------------------------------------


def _apply_patch(shell: Shell, values: Values) -> None:
    switch = shell.switch
    if values["dry_run"]:
        shell.say("** DRY RUN EXECUTION **")
    try:
        if values["format"] == "SONICYANG":
            raise UpdaterError("config-format 'SONICYANG' is not supported")
        operations = js.check_format(_read_json(shell, values["patch-file-path"]))
        if switch.branch >= 202405:
            operations = [_scoped(operation) for operation in operations]
        _update(shell, operations, values["dry_run"])
    except (UpdaterError, js.PatchError, OSError, ValueError) as error:
        text = str(error)
        scoped = switch.branch >= 202405 and isinstance(error, UpdaterError)
        if scoped:
            text = f"Failed to apply patch on the following scopes:\n- localhost: {text}"
        head = f"Failed to apply patch due to: {text}" if switch.branch >= 202405 else "Failed to apply patch"
        stop = fail("config", _find("apply-patch"), text)
        raise Stop(stop.status, f"{head}\n{stop.err}") from error
    shell.say("Patch applied successfully.")


def _scoped(operation: js.Operation) -> js.Operation:
    if not operation["path"]:
        raise js.PatchError("Wrong patch with empty path.")
    parts = js.parts_of(operation["path"])
    if parts[0] == "localhost":
        return {**operation, "path": js.pointer(parts[1:])}
    if parts[0].startswith("asic"):
        raise js.PatchError(f"Error resolving path: '{operation['path']}' due to incorrect ASIC number.")
    return operation


def _update(shell: Shell, operations: list[js.Operation], dry_run: bool) -> None:
    log: list[str] = []
    try:
        outcome = update(shell.switch.running, operations, shell.switch.box(), log)
    except UpdaterError:
        for line in log:
            shell.say(line)
        raise
    verify = next(i for i, line in enumerate(outcome.log) if "erifying patch updates" in line)
    for line in [*log, *outcome.log[:verify]]:
        shell.say(line)
    if dry_run:
        for move in outcome.moves:
            shell.say(f"** DryRun: Would apply {json.dumps([move])}")
    shell.say(outcome.log[verify])
    if not dry_run and not shell.switch.run_outcome(outcome):
        scope = "localhost: after" if shell.switch.branch >= 202405 else "After"
        raise UpdaterError(f"{scope} applying patch to config, there are still some parts not updated")
    for line in outcome.log[verify + 1 :]:
        shell.say(line)


def _replace_by(shell: Shell, target: js.Config, dry_run: bool) -> None:
    """ConfigReplacer: the difference goes through the same rules as a patch."""
    shell.say("Config Replacer: Config replacement starting.")
    shell.say(f"Config Replacer: Target config length: {len(json.dumps(target))}.")
    shell.say("Config Replacer: Getting current config db.")
    shell.say("Config Replacer: Generating patch between target config and current config db.")
    shell.say("Config Replacer: Applying patch using 'Patch Applier'.")
    _update(shell, js.diff(shell.switch.running, target), dry_run)
    shell.say("Config Replacer: Verifying config replacement is reflected on ConfigDB.")
    running, wanted = shell.switch.running, target
    if shell.switch.branch >= 202505:
        running, wanted = without_backend(running), without_backend(wanted)
    if not dry_run and running != wanted:
        raise UpdaterError("After replacing config, there is still some parts not updated")
    shell.say("Config Replacer: Config replacement completed.")


def _target(data: Any) -> js.Config:
    if not isinstance(data, dict):
        raise UpdaterError("the target configuration is not an object of tables")
    return data


def _replace(shell: Shell, values: Values) -> None:
    if values["dry_run"]:
        shell.say("** DRY RUN EXECUTION **")
    try:
        _replace_by(shell, _target(_read_json(shell, values["target-file-path"])), values["dry_run"])
    except (UpdaterError, js.PatchError, OSError, ValueError) as error:
        stop = fail("config", _find("replace"), str(error))
        raise Stop(stop.status, f"Failed to replace config\n{stop.err}") from error
    shell.say("Config replaced successfully.")


def _rollback(shell: Shell, values: Values) -> None:
    name = values["checkpoint-name"]
    if values["dry_run"]:
        shell.say("** DRY RUN EXECUTION **")
    shell.say("Config Rollbacker: Config rollbacking starting.")
    shell.say(f"Config Rollbacker: Checkpoint name: {name}.")
    shell.say(f"Config Rollbacker: Verifying '{name}' exists.")
    try:
        if shell.switch.checkpoint_path(name) not in shell.switch.files:
            raise UpdaterError(f"Checkpoint '{name}' does not exist")
        shell.say("Config Rollbacker: Loading checkpoint into memory.")
        target = _target(_read_json(shell, shell.switch.checkpoint_path(name)))
        shell.say("Config Rollbacker: Replacing config using 'Config Replacer'.")
        _replace_by(shell, target, values["dry_run"])
    except (UpdaterError, js.PatchError, OSError, ValueError) as error:
        stop = fail("config", _find("rollback"), str(error))
        raise Stop(stop.status, f"Failed to rollback config\n{stop.err}") from error
    shell.say("Config Rollbacker: Config rollbacking completed.")
    shell.say("Config rolled back successfully.")


def _checkpoint(shell: Shell, values: Values) -> None:
    name = values["checkpoint-name"]
    path = shell.switch.checkpoint_path(name)
    for text in (
        "Config checkpoint starting.",
        f"Checkpoint name: {name}.",
        "Getting current config db.",
        "Getting checkpoint full-path.",
        "Ensuring checkpoint directory exist.",
        f"Saving config db content to {path}.",
    ):
        shell.say(f"Config Rollbacker: {text}")
    if "/" in name:
        stop = fail("config", _find("checkpoint"), f"[Errno 2] No such file or directory: '{path}'")
        raise Stop(stop.status, f"Failed to create a config checkpoint\n{stop.err}")
    shell.switch.files[path] = json.dumps(shell.switch.running).encode()
    shell.say("Config Rollbacker: Config checkpoint completed.")
    shell.say("Checkpoint created successfully.")


def _list_checkpoints(shell: Shell, values: Values) -> None:
    names = sorted(
        path[len(CHECKPOINTS) + 1 : -len(CHECKPOINT_END)]
        for path in shell.switch.files
        if path.startswith(f"{CHECKPOINTS}/") and path.endswith(CHECKPOINT_END)
    )
    listed: list[object] = list(names)
    if values["time"]:
        listed = [{"name": name, "time": "1970-01-01T00:00:00+00:00"} for name in names]
    shell.say(json.dumps(listed, indent=4))


def _delete_checkpoint(shell: Shell, values: Values) -> None:
    name = values["checkpoint-name"]
    shell.say("Config Rollbacker: Deleting checkpoint starting.")
    shell.say(f"Config Rollbacker: Checkpoint name: {name}.")
    shell.say("Config Rollbacker: Checking checkpoint exists.")
    if shell.switch.files.pop(shell.switch.checkpoint_path(name), None) is None:
        stop = fail("config", _find("delete-checkpoint"), f"Checkpoint '{name}' does not exist")
        raise Stop(stop.status, f"Failed to delete config checkpoint\n{stop.err}")
    shell.say("Config Rollbacker: Deleting checkpoint.")
    shell.say("Config Rollbacker: Deleting checkpoint completed.")
    shell.say("Checkpoint deleted successfully.")


# --- whole configuration ------------------------------------------------------------------------


def _save(shell: Shell, values: Values) -> None:
    name = values["filename"] or STARTUP
    if not values["yes"] and not shell.ask("Existing files will be overwritten, continue? [y/N]: "):
        raise Stop(1, "Aborted!\n")
    shell.say(f"Running command: {CFGGEN} -d --print-data > {name}")
    shell.switch.files[shell.path(name)] = dump_json(js.ordered(shell.switch.running))


def _load(shell: Shell, values: Values) -> None:
    name = values["filename"]
    shown = f"from the file(s) {name} ?" if name else "from the default config file(s) ?"
    if not values["yes"] and not shell.ask(f"Load config {shown} [y/N]: "):
        raise Stop(1, "Aborted!\n")
    path = shell.path(name or STARTUP)
    if path not in shell.switch.files:
        shell.say(f"The config_db file {name or STARTUP} doesn't exist")
        return
    shell.say(f"Running command: {CFGGEN} -j {name or STARTUP} --write-to-db")
    shell.switch.merge(_tables(shell, path))


def _tables(shell: Shell, path: str) -> js.Config:
    """The tables of a file as sonic-cfggen reads it; raises Stop with its traceback's last line."""
    try:
        data = json.loads(shell.switch.files[path])
    except ValueError as error:
        raise Stop(
            1, f"Traceback (most recent call last):\njson.decoder.JSONDecodeError: {error}\n"
        ) from None
    if not isinstance(data, dict):
        kind = type(data).__name__
        raise Stop(
            1,
            f"Traceback (most recent call last):\nAttributeError: '{kind}' object has no attribute 'items'\n",
        )
    for rows in data.values():
        bad = (
            rows
            if not isinstance(rows, dict)
            else next((r for r in rows.values() if not isinstance(r, dict)), {})
        )
        if not isinstance(bad, dict):
            text = f"AttributeError: '{type(bad).__name__}' object has no attribute 'items'"
            raise Stop(1, f"Traceback (most recent call last):\n{text}\n")
    return {name: rows for name, rows in data.items() if name[:1].isupper()}


def _reload(shell: Shell, values: Values) -> None:
    name = values["filename"]
    message = "Clear current config and reload config in config_db format from the default config file(s) ?"
    if name:
        message = f"Clear current config and reload config in config_db from the file(s) {name} ?"
    if not values["yes"] and not shell.ask(f"{message} [y/N]: "):
        raise Stop(1, "Aborted!\n")
    path = shell.path(name or STARTUP)
    if path not in shell.switch.files:
        shell.say(f"The config file {name or STARTUP} doesn't exist")
        raise Stop(1, "Aborted!\n")
    tables = _tables(shell, path)
    if not name and not values["force"] and shell.switch.branch >= 202411:
        _check_startup(shell, tables)
    shell.say("Stopping SONiC target ...")
    shell.say(f"Running command: {CFGGEN} -j /etc/sonic/init_cfg.json -j {name or STARTUP} --write-to-db")
    shell.switch.replace_all(tables)
    shell.say("Restarting SONiC target ...")


def _check_startup(shell: Shell, tables: js.Config) -> None:
    try:
        validate(tables, shell.switch.branch)
    except YangError as error:
        shell.say(str(error))
        shell.say(f"Invalid config file:'{STARTUP}'!")
        raise Stop(1, "Aborted!\n") from error


# --- interfaces, watchdog, QoS -----------------------------------------------------------------


def _mtu(shell: Shell, values: Values) -> None:
    port, mtu = values["interface_name"], values["interface_mtu"]
    running = shell.switch.running
    if any(key.split("|")[1:] == [port] for key in running.get("PORTCHANNEL_MEMBER", {})):
        raise fail("config", _find("interface mtu"), "'interface_name' is in portchannel!")
    if port in running.get("PORTCHANNEL", {}) or port not in running.get("PORT", {}):
        raise Stop(1, f"Invalid port {port}\n")
    shell.switch.change_row("PORT", port, {"mtu": str(mtu)})


def _admin(status: str, word: str) -> Command:
    def run(shell: Shell, values: Values) -> None:
        names = _interfaces(values["interface_name"])
        tables = [table for table in ("PORT", "PORTCHANNEL") if table in shell.switch.running]
        if len(names) == 1 and not any(names[0] in shell.switch.running[table] for table in tables):
            text = "Interface name is invalid. Please enter a valid interface name!!"
            raise fail("config", _find(f"interface {word}"), text)
        for table in tables:
            for name in names:
                if name in shell.switch.running[table]:
                    shell.switch.change_row(table, name, {"admin_status": status})

    return Command(f"interface {word}", run, (_INTERFACE,))


def _interfaces(text: str) -> list[str]:
    """Ethernet0,Ethernet8 and Ethernet[0-4] as the CLI expands them."""
    names: list[str] = []
    for part in text.split(","):
        found = re.fullmatch(r"([A-Za-z-]+)\[(\d+)-(\d+)\]", part)
        numbers = range(int(found[2]), int(found[3]) + 1) if found else ()
        names += [f"{found[1]}{number}" for number in numbers] if found else [part]
    return names


def _pfc_priority(shell: Shell, values: Values) -> None:
    port, priority, status = values["interface_name"], values["priority"], values["status"]
    row = shell.switch.running.get("PORT_QOS_MAP", {}).get(port)
    if row is None:
        shell.say(f"Cannot find interface {port}")
        return
    if "pfc_enable" not in row:
        text = "AttributeError: 'NoneType' object has no attribute 'split'"
        raise Stop(1, f"Traceback (most recent call last):\n{text}\n")
    enabled = [one.strip() for one in row["pfc_enable"].split(",") if one.strip()]
    if status == "on" and priority in enabled:
        shell.say(f"Priority {priority} has already been enabled on {port}")
    elif status == "off" and priority not in enabled:
        shell.say(f"Priority {priority} is not enabled on {port}")
    else:
        enabled = sorted({*enabled, priority} if status == "on" else {*enabled} - {priority})
        shell.switch.change_row("PORT_QOS_MAP", port, {"pfc_enable": ",".join(enabled)})


def _pfc_asymmetric(shell: Shell, values: Values) -> None:
    # the tool writes the row without looking whether the port exists (`pfc/main.py`)
    shell.switch.change_row("PORT", values["interface_name"], {"pfc_asym": values["status"]})


def _ports(shell: Shell) -> list[str]:
    return sorted(shell.switch.running.get("PORT", {}), key=js.natural)


def _watchdog_ports(shell: Shell, names: list[str]) -> list[str]:
    ports = _ports(shell)
    unknown = sorted({name for name in names if name != "all"} - set(ports))
    if unknown:
        raise Stop(1, out="Failed to run command, invalid options:\n" + "\n".join(unknown) + "\n")
    return ports if not names or "all" in names else names


def _pfcwd_start(shell: Shell, values: Values) -> None:
    detection, restoration = values["detection-time"], values["restoration_time"]
    ports = _watchdog_ports(shell, values["ports"])
    row = {"detection_time": str(detection)}
    if values["action"]:
        row["action"] = values["action"]
    if restoration is None:
        restoration = 2 * detection
        text = f"restoration time not defined; default to 2 times detection time: {restoration} ms"
        shell.say(text)
    row["restoration_time"] = str(restoration)
    for port in ports:
        if "pfc_enable" not in shell.switch.running.get("PORT_QOS_MAP", {}).get(port, {}):
            shell.say(f"SKIPPED: PFC is not enabled on port: {port}")
            continue
        if shell.switch.branch >= 202511:
            old = shell.switch.running.get("PFC_WD", {}).get(port, {})
            history = "enable" if values.get("history") else old.get("pfc_stat_history", "disable")
            row = {**row, "pfc_stat_history": history}
        shell.switch.set_row("PFC_WD", port, row)


def _pfcwd_stop(shell: Shell, values: Values) -> None:
    for port in _ports(shell):
        if port in shell.switch.running.get("PFC_WD", {}):
            shell.switch.set_row("PFC_WD", port, None)


def _pfcwd_interval(shell: Shell, values: Values) -> None:
    poll = values["poll_interval"]
    if shell.switch.branch >= 202511 and poll > 1000:
        text = f'Invalid value for "POLL_INTERVAL": {poll} is not in the valid range of 100 to 1000.'
        raise fail("pfcwd", Command("interval", _pfcwd_interval, (Param("poll_interval"),)), text)
    lowest, name = 3000, ""
    for key, row in shell.switch.running.get("PFC_WD", {}).items():
        for label, title in (("detection_time", "detection time"), ("restoration_time", "restoration time")):
            if "Ethernet" in key and label in row and int(row[label]) < lowest:
                lowest, name = int(row[label]), title
    if lowest < poll:
        raise Stop(
            1,
            f"unable to use polling interval = {poll}ms, value is bigger than one of the configured {name} "
            "values, please choose a smaller polling_interval\n",
        )
    shell.switch.change_row("PFC_WD", "GLOBAL", {"POLL_INTERVAL": str(poll)})


def _pfcwd_history(shell: Shell, values: Values) -> None:
    for port in _watchdog_ports(shell, values["ports"]):
        if "pfc_enable" not in shell.switch.running.get("PORT_QOS_MAP", {}).get(port, {}):
            shell.say(f"SKIPPED: PFC is not enabled on port: {port}")
        else:
            shell.switch.change_row("PFC_WD", port, {"pfc_stat_history": values["state"]})


def _qos_clear(shell: Shell, values: Values) -> None:
    new = {n: rows for n, rows in shell.switch.running.items() if n not in QOS_TABLES}
    shell.switch.settle(deepcopy(new))


def _qos_reload(shell: Shell, values: Values) -> None:
    _qos_clear(shell, values)
    stock = blank(shell.switch.facts, shell.switch.branch_name, qos=True)
    shell.say(
        f"Running command: {CFGGEN} -d --write-to-db -t buffers.json.j2,config-db -t qos.json.j2,config-db"
    )
    shell.switch.merge(normal_config({name: rows for name, rows in stock.items() if name in QOS_TABLES}))


_ECN = {
    "gmax": "green_max_threshold",
    "gmin": "green_min_threshold",
    "ymax": "yellow_max_threshold",
    "ymin": "yellow_min_threshold",
    "rmax": "red_max_threshold",
    "rmin": "red_min_threshold",
    "gdrop": "green_drop_probability",
    "ydrop": "yellow_drop_probability",
    "rdrop": "red_drop_probability",
}


def _ecn(shell: Shell, values: Values) -> None:
    profile = values["profile"]
    given = {field: values[name] for name, field in _ECN.items() if values[name] is not None}
    rows = shell.switch.running.get("WRED_PROFILE", {})
    if not profile or not given:
        text = "Input arguments error. Specify at least one threshold parameter to set"
        raise Stop(1, f"Exception caught: {text}\n")
    if profile not in rows:
        text = f"Input arguments error. Invalid WRED profile {profile}"
        raise Stop(1, f"Exception caught: {text}{' for namespace None' * (shell.switch.branch >= 202405)}\n")
    if any(not value.isdigit() for value in given.values()):
        raise Stop(1, "Exception caught: Input arguments error. Invalid value\n")
    new = {**rows[profile], **given}
    for colour in ("green", "yellow", "red"):
        low, high = new.get(f"{colour}_min_threshold"), new.get(f"{colour}_max_threshold")
        if low is not None and high is not None and int(low) > int(high):
            c = colour[0]
            text = f"Invalid {c}min ({low}) and {c}max ({high}). {c}min should be smaller than {c}max"
            raise Stop(1, out=f"{text}\n", err="Exception caught: Input arguments error\n")
    shell.switch.change_row("WRED_PROFILE", profile, given)


def _ecmp_hash(shell: Shell, values: Values) -> None:
    fields = values["hash_field_list"]
    if len(set(fields)) != len(fields):
        raise fail("config", _find("switch-hash global ecmp-hash"), "Duplicate hash field(s)")
    shell.switch.set_row(
        "SWITCH_HASH",
        "GLOBAL",
        {**shell.switch.running.get("SWITCH_HASH", {}).get("GLOBAL", {}), "ecmp_hash": fields},
    )


def _vlan_add(shell: Shell, values: Values) -> None:
    name = f"Vlan{values['vid']}"
    if name in shell.switch.running.get("VLAN", {}):
        raise fail("config", _find("vlan add"), f"{name} already exists.")
    shell.switch.set_row("VLAN", name, {"vlanid": str(values["vid"])})


def _vlan_del(shell: Shell, values: Values) -> None:
    name = f"Vlan{values['vid']}"
    if name not in shell.switch.running.get("VLAN", {}):
        raise fail("config", _find("vlan del"), f"{name} does not exist")
    if any(key.split("|")[0] == name for key in shell.switch.running.get("VLAN_MEMBER", {})):
        raise fail(
            "config",
            _find("vlan del"),
            f"VLAN ID {values['vid']} can not be removed. First remove all members",
        )
    shell.switch.set_row("VLAN", name, None)


def _hostname(shell: Shell, values: Values) -> None:
    shell.switch.change_row("DEVICE_METADATA", "localhost", {"hostname": values["new_hostname"]})
    shell.say(
        "Please note loaded setting will be lost after system reboot. To preserve setting, run `config save`."
    )


_INTERFACE = Param("interface_name", metavar="<interface_name>")
_STATUS = Param("status", ("on", "off"))
_VERBOSE = Param("verbose", flags=("-v", "--verbose"), switch=True)
_LONG_VERBOSE = Param("verbose", flags=("--verbose",), switch=True)
_DRY = Param("dry_run", flags=("-d", "--dry-run"), switch=True)
_YES = Param("yes", flags=("-y", "--yes"), switch=True)
_FORMAT = Param("format", ("CONFIGDB", "SONICYANG"), flags=("-f", "--format"))
_FILE = Param("filename", required=False, metavar="FILENAME")
_NAME = Param("checkpoint-name", metavar="CHECKPOINT_NAME")
_VID = Param("vid", (1, 4094), metavar="<vid>")

COMMANDS: tuple[Command, ...] = (
    Command(
        "apply-patch",
        _apply_patch,
        (Param("patch-file-path", metavar="PATCH_FILE_PATH"), _FORMAT, _DRY, _VERBOSE),
    ),
    Command(
        "replace", _replace, (Param("target-file-path", metavar="TARGET_FILE_PATH"), _FORMAT, _DRY, _VERBOSE)
    ),
    Command("rollback", _rollback, (_NAME, _DRY, _VERBOSE)),
    Command("checkpoint", _checkpoint, (_NAME, _VERBOSE)),
    Command("delete-checkpoint", _delete_checkpoint, (_NAME, _VERBOSE)),
    Command(
        "list-checkpoints",
        _list_checkpoints,
        (Param("time", flags=("-t", "--time"), switch=True), _VERBOSE),
    ),
    Command("save", _save, (_FILE, _YES)),
    Command("load", _load, (_FILE, _YES)),
    Command("reload", _reload, (_FILE, _YES, Param("force", flags=("-f", "--force"), switch=True))),
    Command(
        "interface mtu",
        _mtu,
        (_INTERFACE, Param("interface_mtu", (68, 9216), metavar="<interface_mtu>"), _VERBOSE),
    ),
    Command(
        "interface pfc priority",
        _pfc_priority,
        (_INTERFACE, Param("priority", tuple(str(p) for p in range(8))), _STATUS),
    ),
    Command("interface pfc asymmetric", _pfc_asymmetric, (_INTERFACE, _STATUS)),
    _admin("down", "shutdown"),
    _admin("up", "startup"),
    Command(
        "pfcwd start",
        _pfcwd_start,
        (
            Param("action", ("drop", "forward", "alert"), flags=("-a", "--action")),
            Param("restoration_time", (100, 60000), flags=("-r", "--restoration-time")),
            Param("history", flags=("--pfc-stat-history",), switch=True),
            Param("ports", many=True, required=False),
            Param("detection-time", (100, 5000), metavar="DETECTION_TIME"),
            _LONG_VERBOSE,
        ),
    ),
    Command("pfcwd stop", _pfcwd_stop, (_LONG_VERBOSE,)),
    Command("pfcwd interval", _pfcwd_interval, (Param("poll_interval", (100, 3000)), _LONG_VERBOSE)),
    Command(
        "pfcwd pfc_stat_history",
        _pfcwd_history,
        (
            Param("state", ("enable", "disable"), metavar="PFC_STAT_HISTORY"),
            Param("ports", many=True, required=False),
        ),
        since=202511,
    ),
    Command("qos clear", _qos_clear),
    Command("qos reload", _qos_reload),
    Command(
        "ecn",
        _ecn,
        (Param("profile", flags=("-profile",)), *(Param(name, flags=(f"-{name}",)) for name in _ECN)),
    ),
    Command(
        "switch-hash global ecmp-hash",
        _ecmp_hash,
        (Param("hash_field_list", _HASH_FIELDS, many=True, metavar="<hash_field_list>"),),
    ),
    Command("vlan add", _vlan_add, (_VID,)),
    Command("vlan del", _vlan_del, (_VID,)),
    Command("hostname", _hostname, (Param("new_hostname", metavar="<new_hostname>"),)),
)
