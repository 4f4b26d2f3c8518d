"""SONiC's generic config updater: apply-patch, replace, rollback with its rules per branch.

Sources: sonic-utilities `generic_config_updater/` (generic_updater.py, gu_common.py,
field_operation_validators.py, gcu_field_operation_validators.conf.json, patch_sorter.py) of the
branches 202305 to 202511 and master. The field validators judge the difference between the old and
the new configuration, not the operations of the patch: a first `PFC_WD` table, which is one `add`
with rows as members, is refused by them on every branch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.lab.simulators import _sonic_json as js
from rdma_fabric.lab.simulators._sonic_json import Config, Operation
from rdma_fabric.lab.simulators._sonic_yang import MASTER, TABLES_WITH_MODEL, YangError, validate

RDMA_VALIDATOR = "generic_config_updater.field_operation_validators.rdma_config_update_validator"
WRED_VALIDATOR = "generic_config_updater.field_operation_validators.wred_profile_config_update_validator"
PROFILE_VALIDATOR = "generic_config_updater.field_operation_validators.buffer_profile_config_update_validator"
PORT_VALIDATOR = "generic_config_updater.field_operation_validators.port_config_update_validator"

BACKEND_TABLES = ("BUFFER_PG", "BUFFER_PROFILE", "FLEX_COUNTER_TABLE")
"""Tables that daemons write: left out of the comparison at the end of a patch."""

_ASICS: dict[str, tuple[tuple[str, int, str], ...]] = {
    # asic: (hwsku, first branch that lists it, vendor)
    "spc1": tuple(
        (name, 202305, "mellanox")
        for name in (
            *("ACS-MSN2700", "ACS-MSN2740", "ACS-MSN2100", "ACS-MSN2410", "ACS-MSN2010", "Mellanox-SN2700"),
            *("Mellanox-SN2700-C28D8", "Mellanox-SN2700-D40C8S8", "Mellanox-SN2700-D48C8", "ACS-MSN2700-A1"),
        )
    ),
    "spc2": tuple(
        (name, 202305, "mellanox")
        for name in ("ACS-MSN3800", "ACS-MSN3420", "ACS-MSN3700C", "ACS-MSN3700", "Mellanox-SN3800-C64")
    ),
    "spc3": (
        *(
            (name, 202305, "mellanox")
            for name in (
                *("ACS-MSN4700", "ACS-MSN4600", "ACS-MSN4600C", "ACS-MSN4410", "Mellanox-SN4600C-C64"),
                *(
                    "Mellanox-SN4600C-D112C8",
                    "Mellanox-SN4700-C128",
                    "Mellanox-SN4700-O28",
                    "Mellanox-SN4700-O8C48",
                ),
            )
        ),
        *(
            (name, 202405, "mellanox")
            for name in ("ACS-SN4280", "Mellanox-SN4700-O32", "Mellanox-SN4700-V64")
        ),
    ),
    "spc4": (
        ("ACS-SN5600", 202305, "mellanox"),
        *(
            (name, 202405, "mellanox")
            for name in (
                "Mellanox-SN5600-O128",
                "Mellanox-SN5600-V256",
                "Mellanox-SN5600-C256S1",
                "ACS-SN5400",
            )
        ),
    ),
    "spc5": (
        ("ACS-SN5640", 202505, "mellanox"),
        ("Mellanox-SN5640-C512S2", 202505, "mellanox"),
        ("Mellanox-SN5640-C448O16", 202505, "mellanox"),
    ),
    "spc6": (("ACS-SN6600_LD", MASTER, "mellanox"), ("ACS-SN6810_LD", MASTER, "mellanox")),
    "th": tuple(
        (name, 202305, "broadcom")
        for name in (
            "Force10-S6100",
            "Arista-7060CX-32S-C32",
            "Arista-7060CX-32S-D48C8",
            "Celestica-DX010-C32",
        )
    ),
    "th2": tuple(
        (name, 202305, "broadcom")
        for name in ("Arista-7260CX3-D108C8", "Arista-7260CX3-C64", "Arista-7260CX3-Q64")
    ),
    "th3": (("Nokia-IXR7220-H3", 202405, "broadcom"),),
    "th4": (("Nokia-IXR7220-H4-64D", 202405, "broadcom"), ("Nokia-IXR7220-H4-32D", 202405, "broadcom")),
    "th5": (
        ("Nokia-IXR7220-H5-64D", 202405, "broadcom"),
        ("Arista-7060X6-64DE", 202405, "broadcom"),
        ("Arista-7060X6-64PE", 202405, "broadcom"),
        ("Arista-7060X6-16PE-384C-B-O128S2", 202505, "broadcom"),
        ("Nokia-IXR7220-H5-64O", 202505, "broadcom"),
    ),
    "th6": tuple(
        (name, MASTER, "broadcom")
        for name in ("Nokia-IXR7220-H6-64", "Nokia-IXR7220-H6-P128", "Nokia-IXR7220-H6-O256")
    ),
    "td2": tuple(
        (name, 202305, "broadcom")
        for name in (
            "Force10-S6000",
            "Arista-7050-QX32",
            "Arista-7050-QX-32S",
            "Nexus-3164",
            "Arista-7050QX32S-Q32",
        )
    ),
    "td3": (
        ("Arista-7050CX3-32S-C32", 202305, "broadcom"),
        ("Arista-7050CX3-32S-D48C8", 202305, "broadcom"),
        ("Arista-7050CX3-32C-C32", 202505, "broadcom"),
    ),
    "td4": (("Nokia-IXR7220-D4-36D", 202505, "broadcom"),),
    "j2c+": (("Nokia-IXR7250E-36x100G", 202405, "broadcom"), ("Nokia-IXR7250E-36x400G", 202405, "broadcom")),
    "q2c+": (("Nokia-IXR7250-X1B", 202505, "broadcom"),),
    "q3d": (("Arista-7280R4-32QF-32DF-64O", 202511, "broadcom"),),
}
"""HwSKUs by ASIC; Broadcom names match as a part of the device's HwSKU, Mellanox names as a whole."""


def asic_of(hwsku: str, asic_type: str, branch: int) -> str:
    """The ASIC name that the updater derives on a branch; "unknown" makes it refuse."""
    if asic_type == "cisco-8000" or (asic_type == "marvell-teralynx" and branch >= 202511):
        return asic_type
    for asic, rows in _ASICS.items():
        for name, since, vendor in rows:
            if vendor != asic_type or branch < since:
                continue
            if hwsku.lower() == name.lower() or (vendor == "broadcom" and name.lower() in hwsku.lower()):
                return asic
    return "unknown"


@dataclass(frozen=True, slots=True)
class Box:
    """What the updater knows of the switch; speeds and FEC modes are those of STATE_DB, by port."""

    branch: int
    hwsku: str
    asic_type: str
    speeds: Mapping[str, str] = field(default_factory=dict)
    fecs: Mapping[str, str] = field(default_factory=dict)


class UpdaterError(Exception):
    """The updater refuses; the text is that of the exception."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one simulated update: the new configuration and the moves that lead to it.

    `flaps` are ports which the sorter takes down and up again; `moves` are (changes) in order.
    """

    target: Config
    moves: tuple[Operation, ...]
    flaps: tuple[str, ...]
    log: tuple[str, ...]


def _fields(operation: Operation, drop_ports: bool) -> list[str]:
    """Names that the rdma validator compares: lower-case path, then the members of an added object."""
    parts = js.parts_of(operation["path"])[1:]
    if drop_ports:
        parts = [part for part in parts if not any(c.isdigit() for c in part)]
    base = "/".join(parts).lower()
    value = operation.get("value")
    if isinstance(value, dict):
        return [f"{base}/{key}" if base else key for key in value]
    return [base]


def _rdma(operation: Operation, box: Box, scenarios: Mapping[str, tuple[str, ...]], exact: bool) -> bool:
    """The rdma validator: every touched name must be in a scenario that allows the operation."""
    asic = asic_of(box.hwsku, box.asic_type, box.branch)
    if asic == "unknown":
        return False
    for name in _fields(operation, drop_ports=exact):
        key = name if exact else name.rsplit("/", 1)[-1]
        if key not in scenarios or operation["op"] not in scenarios[key]:
            return False
        if asic == "td2" and key.rsplit("/", 1)[-1] in ("xoff", "size"):
            return False
    return True


_ALL = ("add", "remove", "replace")
_REPLACE = ("replace",)


def _pfc_wd(operation: Operation, box: Box) -> bool:
    names = ["restoration_time", "detection_time", "action", "global/poll_interval", ""]
    if box.branch >= 202511:
        names.append("pfc_stat_history")
    return _rdma(operation, box, dict.fromkeys(names, _ALL), exact=True)


def _wred(operation: Operation, box: Box) -> bool:
    names = ("green_min_threshold", "green_max_threshold", "green_drop_probability")
    if box.branch < 202505:
        return _rdma(operation, box, {f"azure_lossless/{n}": _REPLACE for n in names}, exact=True)
    return _rdma(operation, box, dict.fromkeys(names, _REPLACE), exact=False)


def _buffer_pool(operation: Operation, box: Box) -> bool:
    if box.branch >= 202511:
        return False
    names = ("ingress_lossless_pool/xoff", "ingress_lossless_pool/size", "egress_lossy_pool/size")
    return _rdma(operation, box, dict.fromkeys(names, _REPLACE), exact=True)


def _buffer_profile(operation: Operation, box: Box) -> bool:
    names = dict.fromkeys(("dynamic_th", "xoff"), _REPLACE)
    if box.branch < 202511:
        return _rdma(operation, box, names, exact=True)
    if len(js.parts_of(operation["path"])) <= 2:
        return operation["op"] in _ALL
    return _rdma(operation, box, {**names, "packet_discard_action": ("add", "replace")}, exact=False)


def _port(operation: Operation, box: Box) -> bool:
    """`fec` and `speed` must be among those that STATE_DB lists for the port."""
    parts = js.parts_of(operation["path"])
    value = operation.get("value")
    if operation["op"] == "remove" or len(parts) < 2:
        return True
    wanted = value if isinstance(value, dict) else {parts[-1]: value}
    for name, known in (("fec", box.fecs), ("speed", box.speeds)):
        supported = known.get(parts[1], "")
        if name in wanted and supported and str(wanted[name]).strip() not in supported.split(","):
            return False
    return True


_Validator = Callable[[Operation, Box], bool]


def _validators(branch: int) -> dict[str, tuple[_Validator, str]]:
    table: dict[str, tuple[_Validator, str]] = {
        "PFC_WD": (_pfc_wd, RDMA_VALIDATOR),
        "BUFFER_POOL": (_buffer_pool, RDMA_VALIDATOR),
        "BUFFER_PROFILE": (_buffer_profile, PROFILE_VALIDATOR if branch >= 202511 else RDMA_VALIDATOR),
        "PORT": (_port, PORT_VALIDATOR),
    }
    if branch < 202511:
        table["WRED_PROFILE"] = (_wred, WRED_VALIDATOR if branch >= 202505 else RDMA_VALIDATOR)
    return table


def _check_fields(old: Config, new: Config, box: Box) -> None:
    operations = js.diff(old, new)
    for path in ("/PFC_WD/GLOBAL/POLL_INTERVAL", "/PFC_WD/GLOBAL", "/LOOPBACK_INTERFACE/Loopback0"):
        if any(operation["op"] == "remove" and operation["path"] == path for operation in operations):
            raise UpdaterError(
                f"Given patch operation is invalid. Operation: remove is illegal on field: {path}"
            )
    validators = _validators(box.branch)
    for operation in operations:
        name = js.parts_of(operation["path"])[0]
        validator, title = validators.get(name, (None, ""))
        if validator is not None and not validator(operation, box):
            raise UpdaterError(
                f"Modification of {name} table is illegal- validating function {title} returned False"
            )


def _check_empty(new: Config, branch: int) -> None:
    empty = [name for name, rows in new.items() if not rows]
    if not empty:
        return
    names, plural = ", ".join(empty), "s" if len(empty) != 1 else ""
    if branch < 202405:
        raise UpdaterError(
            "Given patch is not valid because it will result in empty tables which is not allowed in "
            f"ConfigDb. Table{plural}: {names}"
        )
    gap = " " * 32  # the source's continuation lines are inside the string
    raise UpdaterError(
        f"localhost: given patch is not valid because it will result in empty tables {gap}"
        f"which is not allowed in ConfigDb. {gap}Table{plural}: {names}"
    )


def _check_models(touched: set[str], new: Config, branch: int) -> None:
    if touched - TABLES_WITH_MODEL:
        raise UpdaterError("Given patch is not valid because it has changes to tables without YANG models")
    try:
        validate(new, branch)
    except YangError as error:
        raise UpdaterError(f"Given patch will produce invalid config. Error: {error}") from error


_CRITICAL = ("BUFFER_PG", "BUFFER_QUEUE", "QUEUE")
_CRITICAL_BY_PORT = ("PORT_QOS_MAP", "BUFFER_PORT_INGRESS_PROFILE_LIST", "BUFFER_PORT_EGRESS_PROFILE_LIST")


def flapping(old: Config, new: Config) -> tuple[str, ...]:
    """Ports that the patch sorter takes down: admin up, and a port-critical row differs."""
    changed: set[str] = set()
    for name in (*_CRITICAL, *_CRITICAL_BY_PORT):
        before, after = old.get(name, {}), new.get(name, {})
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                changed.add(key.split("|")[0] if name in _CRITICAL else key)
    up = {port for port, row in old.get("PORT", {}).items() if row.get("admin_status", "down") == "up"}
    return tuple(sorted(changed & up, key=js.natural))


_ORDER: tuple[str, ...] = (
    "PORT",
    "DSCP_TO_TC_MAP",
    "DOT1P_TO_TC_MAP",
    "TC_TO_QUEUE_MAP",
    "TC_TO_PRIORITY_GROUP_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "SCHEDULER",
    "WRED_PROFILE",
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "CABLE_LENGTH",
)
"""Referenced tables, in the order in which their rows are added."""


def _rank(operation: Operation) -> tuple[int, int]:
    name = js.parts_of(operation["path"])[0]
    place = _ORDER.index(name) if name in _ORDER else len(_ORDER)
    return (1, -place) if operation["op"] == "remove" else (0, place)


def _moves(old: Config, new: Config, flaps: tuple[str, ...]) -> tuple[Operation, ...]:
    """Changes in an order that keeps every step valid: referenced rows first, removals last."""
    changes: list[Operation] = []
    for operation in js.diff(old, new):
        if operation["op"] == "move":
            node: Any = new
            for part in js.parts_of(operation["path"]):
                node = node[part]
            changes.append({"op": "add", "path": operation["path"], "value": node})
            changes.append({"op": "remove", "path": operation["from"]})
        elif not (operation["path"].startswith("/PORT/") and operation["path"].endswith("/admin_status")):
            changes.append(operation)
    down = [{"op": "replace", "path": f"/PORT/{port}/admin_status", "value": "down"} for port in flaps]
    up = [
        {"op": "replace", "path": f"/PORT/{port}/admin_status", "value": row["admin_status"]}
        for port, row in sorted(new.get("PORT", {}).items(), key=lambda item: js.natural(item[0]))
        if port in old.get("PORT", {})
        and "admin_status" in row
        and ((port in flaps and row["admin_status"] != "down") or _admin(old, port) != row["admin_status"])
    ]
    return (*down, *sorted(changes, key=_rank), *up)


def _admin(config: Config, port: str) -> str:
    value: str = config["PORT"][port].get("admin_status", "down")
    return value


def _title(box: Box, text: str, colon: bool = True) -> str:
    if box.branch < 202405:
        return f"Patch Applier: {text[0].upper()}{text[1:]}"
    return f"Patch Applier: localhost{':' if colon else ''} {text}"


def update(old: Config, operations: list[Operation], box: Box, log: list[str]) -> Outcome:
    """Simulate one patch; fills `log` with what the terminal shows, raises UpdaterError on refusal."""
    new_style = box.branch >= 202405
    log.append(_title(box, "Patch application starting."))
    log.append(_title(box, f"Patch: {json.dumps(operations)}"))
    log.append(_title(box, "getting current config db.", colon=False))
    log.append(_title(box, "simulating the target full config after applying the patch."))
    try:
        new = js.apply(old, operations)
    except js.PatchError as error:
        raise UpdaterError(str(error)) from error
    log.append(_title(box, "validating all JsonPatch operations are permitted on the specified fields"))
    _check_fields(old, new, box)
    if new_style:
        log.append(_title(box, "validating target config does not have empty tables,"))
        log.append(" " * 28 + "since they do not show up in ConfigDb.")
    else:
        log.append(
            _title(
                box,
                "Validating target config does not have empty tables, since they do not show up in ConfigDb.",
            )
        )
    _check_empty(new, box.branch)
    log.append(_title(box, "sorting patch updates."))
    touched = {(js.parts_of(operation["path"]) or [""])[0] for operation in operations} - {""}
    _check_models(touched, new, box.branch)
    flaps = flapping(old, new)
    moves = _moves(old, new, flaps)
    return Outcome(new, moves, flaps, tuple(_closing(box, moves)))


def _closing(box: Box, moves: tuple[Operation, ...]) -> list[str]:
    count, new_style = len(moves), box.branch >= 202405
    plural, end = "s" if count != 1 else "", ":" if count else "."
    whose = "localhost " if new_style else ""
    lines = [f"Patch Applier: The {whose}patch was converted into {count} change{plural}{end}"]
    listed = [f"Patch Applier:   * {json.dumps([move])}" for move in moves]
    if not new_style:
        lines += listed
    lines.append(_title(box, f"applying {count} change{plural} in order{end}"))
    lines += listed
    lines.append(_title(box, "verifying patch updates are reflected on ConfigDB."))
    lines.append(_title(box, "patch application completed.", colon=False))
    return lines
