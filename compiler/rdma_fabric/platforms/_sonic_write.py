"""The way from what was seen to what is wanted: a patch, a checkpoint, a timer, and what goes around them.

What the updater refuses on a branch (see `_sonic_gcu`) is loaded and deleted directly. Going back is a
patch as well, so these rows are taken back directly too. Profiles that nothing uses yet are loaded
before the checkpoint is made and before anything refers to them; watchdog rows come last, because the
watchdog reads the lossless priorities when its row appears.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from rdma_fabric.platforms._contract import (
    RUN,
    TIMER_S,
    Change,
    Disturbance,
    Disturbs,
    Put,
    Send,
    Step,
)
from rdma_fabric.platforms._sonic_gcu import FLAPPING, PATCH_SORTER, Op, reversible
from rdma_fabric.platforms._sonic_patch import lines_of, patch_text
from rdma_fabric.platforms._sonic_read import MAP_TABLES, Tables, reference, row_of
from rdma_fabric.platforms._sonic_rows import Switch

NAME: Final = f"fabric-{RUN}"
_LOCK: Final = "/run/lock/fabric"
"""A directory: making it is the lock, and our files lie in it, so that no other user can replace them.
A reboot empties /run; it also brings back the saved configuration and forgets the timer."""
_PATCH: Final = f"{_LOCK}/{RUN}.patch.json"
_REVERSE: Final = f"{_LOCK}/{RUN}.reverse.json"
_FIRST: Final = f"{_LOCK}/{RUN}.first.json"
_LATE: Final = f"{_LOCK}/{RUN}.late.json"
_BACK: Final = f"{_LOCK}/{RUN}.back.json"
_SCRIPT: Final = f"{_LOCK}/{RUN}.undo.sh"
"""What the timer runs. While it exists the change is not confirmed."""
_OWNER: Final = f"fabric run {RUN}"
_SLOW_S: Final = 900.0
"""The updater validates the whole configuration for every move; minutes on a large switch."""

_UNDONE: Final = (
    rf"Patch applied successfully|Config rolled back successfully|Checkpoint '{NAME}' does not exist"
)
_STOP_TIMER: Final = f"sudo systemctl stop {NAME}.timer"
_TAKE_BACK: Final = f"sudo config apply-patch {_REVERSE} || sudo config rollback {NAME}"
"""The reverse patch leaves alone what others changed meanwhile. Where it does not fit, because the patch
was applied in part, the checkpoint brings back everything."""
_FORGET: Final = f"config delete-checkpoint {NAME}"
SAVE: Final = Send(("sudo config save -y",), timeout_s=120.0)

LOCK: Final[tuple[Step, ...]] = (
    Send((f"mkdir {_LOCK} && echo '{_OWNER}' > {_LOCK}/owner || ! cat {_LOCK}/owner",)),
)
UNLOCK: Final[tuple[Step, ...]] = (Send((f"sudo rm -rf {_LOCK}",)),)
RECOVER: Final[tuple[Step, ...]] = (
    Send((_STOP_TIMER,), status=(0, 5)),
    Send((f"[ ! -f {_SCRIPT} ] || sudo sh {_SCRIPT}",), status=(0, 1, 2), timeout_s=_SLOW_S),
    Send((f"sudo {_FORGET}",), status=(0, 1, 2)),
    Send((f"grep -q '{_OWNER}$' {_LOCK}/owner && sudo rm -rf {_LOCK}",), status=(0, 1, 2)),
)


@dataclass(frozen=True, slots=True)
class _Direct:
    """What does not go through the updater. Each is table -> key -> row; deletions are redis keys."""

    first: dict[str, dict[str, Any]]
    """Profiles that nothing uses yet."""
    late: dict[str, dict[str, Any]]
    back: dict[str, dict[str, Any]]
    """Old rows of what is changed or deleted directly."""
    drops: tuple[str, ...]
    undrops: tuple[str, ...]
    """Keys to delete when the late rows are taken back."""
    unfirst: tuple[str, ...]
    restart: tuple[str, ...]
    """Watchdog rows that are deleted and loaded again, because the lossless priorities changed."""


def transaction(switch: Switch, ops: tuple[Op, ...], target: Tables) -> Change:
    """The steps for these operations; differences and the expected state are the caller's."""
    through = tuple(op for op in ops if reversible(op, switch.branch, switch.family))
    direct = _direct(switch, tuple(op for op in ops if op not in through), through, target)
    change = _steps(through, direct)
    disturbs = _disturbances(switch, ops, target)
    return replace(change, lines=lines_of(ops), disturbs=disturbs, undo_disturbs=disturbs)


# ---------------------------------------------------------------- direct rows


def _direct(switch: Switch, ops: tuple[Op, ...], through: tuple[Op, ...], target: Tables) -> _Direct:
    now = switch.tables
    first: dict[str, dict[str, Any]] = {}
    late: dict[str, dict[str, Any]] = {}
    back: dict[str, dict[str, Any]] = {}
    drops: list[str] = []
    undrops: list[str] = []
    for table, key in dict.fromkeys(_keys(ops)):
        old, new = row_of(now, table, key), row_of(target, table, key)
        if new:
            inert = table != "PFC_WD" and not old
            (first if inert else late).setdefault(table, {})[key] = dict(new)
        else:
            drops.append(f"{table}|{key}")
        if old:
            back.setdefault(table, {})[key] = dict(old)
        elif table == "PFC_WD":
            undrops.append(f"{table}|{key}")
    restart = _restarts(now, target, through)
    for key in restart:
        late.setdefault("PFC_WD", {})[key] = dict(row_of(target, "PFC_WD", key))
        back.setdefault("PFC_WD", {})[key] = dict(row_of(now, "PFC_WD", key))
    unfirst = tuple(f"{table}|{key}" for table, rows in first.items() for key in rows)
    keys = tuple(f"PFC_WD|{key}" for key in restart)
    return _Direct(first, late, back, tuple(drops), tuple(undrops), unfirst, keys)


def _keys(ops: Iterable[Op]) -> Iterable[tuple[str, str]]:
    """(table, key) of the operations; a whole table counts as its rows."""
    for op in ops:
        if op.key:
            yield op.table, op.key
            continue
        for value in (op.old, op.value):
            if isinstance(value, dict):
                yield from ((op.table, key) for key in value)


def _restarts(now: Tables, target: Tables, through: tuple[Op, ...]) -> tuple[str, ...]:
    """Ports that keep their watchdog while the guarded priorities change: it does not follow (swss 842)."""
    changed = {op.key for op in through if op.table == "PFC_WD"}
    return tuple(
        port
        for port, row in target.get("PFC_WD", {}).items()
        if port != "GLOBAL"
        and port not in changed
        and row_of(now, "PFC_WD", port) == row
        and any(
            row_of(now, "PORT_QOS_MAP", port).get(name, "")
            != row_of(target, "PORT_QOS_MAP", port).get(name, "")
            for name in ("pfc_enable", "pfcwd_sw_enable")
        )
    )


# ---------------------------------------------------------------- steps


def _steps(through: tuple[Op, ...], direct: _Direct) -> Change:
    dry_run = Send(
        (f"sudo config apply-patch -d {_PATCH}",), expect="DRY RUN EXECUTION", timeout_s=_SLOW_S, keep="diff"
    )
    puts = _puts(through, direct)
    # The device can check the patch only when what it refers to exists.
    early: tuple[Step, ...] = (dry_run,) if through and not direct.first else ()
    checked: tuple[Step, ...] = (_load(_FIRST), dry_run) if direct.first and through else ()
    if direct.first and not through:
        checked = (_load(_FIRST),)
    commit: list[Step] = [
        *checked,
        Send((f"sudo config checkpoint {NAME}",), expect="Checkpoint created successfully"),
        Send((f"sudo systemd-run --on-active={TIMER_S} --unit={NAME} /bin/sh {_SCRIPT}",)),
    ]
    if through:
        applied = "Patch applied successfully"
        commit.append(Send((f"sudo config apply-patch {_PATCH}",), expect=applied, timeout_s=_SLOW_S))
    commit += [Send((line,)) for line in _delete((*direct.drops, *direct.restart))]
    commit += [_load(_LATE)] if direct.late else []
    return Change(
        lock=LOCK,
        stage=(*puts, *early),
        commit=tuple(commit),
        confirm=(Send((_STOP_TIMER,)), Send((f"sudo rm {_SCRIPT}",)), Send((f"sudo {_FORGET}",))),
        save=(SAVE,),
        undo=_undo(through, direct),
        unlock=UNLOCK,
        undo_kind="device-timer",
    )


def _puts(through: tuple[Op, ...], direct: _Direct) -> tuple[Put, ...]:
    files = []
    if through:
        back = reversed([op.reversed for op in through])
        files = [(_PATCH, patch_text(through)), (_REVERSE, patch_text(back))]
    files += [(_FIRST, _json(direct.first))] if direct.first else []
    files += [(_LATE, _json(direct.late))] if direct.late else []
    files += [(_BACK, _json(direct.back))] if direct.back else []
    script = [line.replace("sudo ", "") for line in (*_undo_lines(through, direct), f"sudo {_FORGET}")]
    files.append((_SCRIPT, "\n".join(script) + "\n"))
    return tuple(Put(path, text) for path, text in files)


def _json(rows: dict[str, dict[str, Any]]) -> str:
    return json.dumps(rows, indent=1, sort_keys=True) + "\n"


def _load(path: str) -> Send:
    return Send((f"sudo config load -y {path}",), timeout_s=_SLOW_S)


def _delete(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"sudo sonic-db-cli CONFIG_DB DEL {shlex.quote(key)}" for key in keys)


def _undo_lines(through: tuple[Op, ...], direct: _Direct) -> tuple[str, ...]:
    """Everything that brings back the state before the commit; each line may be repeated."""
    load_back = (f"sudo config load -y {_BACK}",) if direct.back else ()
    again = (*_delete(direct.restart), *load_back) if direct.restart else ()
    return (
        *load_back,
        *_delete(direct.undrops),
        *((_TAKE_BACK,) if through else ()),
        *again,
        *_delete(direct.unfirst),
    )


def _undo(through: tuple[Op, ...], direct: _Direct) -> tuple[Step, ...]:
    steps: list[Step] = [Send((_STOP_TIMER,), status=(0, 5))]
    for line in _undo_lines(through, direct):
        if line == _TAKE_BACK:
            steps.append(Send((line,), status=(0, 1, 2), expect=_UNDONE, timeout_s=_SLOW_S))
        else:
            steps.append(Send((line,), timeout_s=_SLOW_S))
    steps.append(Send((f"sudo {_FORGET}",), status=(0, 1, 2)))
    return tuple(steps)


# ---------------------------------------------------------------- what it disturbs


def _disturbances(switch: Switch, ops: tuple[Op, ...], target: Tables) -> tuple[Disturbance, ...]:
    """A port that is administratively down (which it is by default) is not disturbed."""
    ports_now = switch.tables.get("PORT", {})
    shown = any("admin_status" in row for row in ports_now.values())
    down = {port for port, row in ports_now.items() if shown and row.get("admin_status", "down") != "up"}
    keys = set(_keys(ops))
    flapped = {key.partition("|")[0] for table, key in keys if table in FLAPPING}
    resized = {key for table, key in keys if table in ("PORT", "PORTCHANNEL", "VLAN")}
    moved = {
        port
        for port, row in target.get("PORT_QOS_MAP", {}).items()
        if port != "global" and any((table, reference(row, name)) in keys for name, table in _MAP_FIELDS)
    }
    served = {
        key.partition("|")[0]
        for key, row in target.get("QUEUE", {}).items()
        if ("SCHEDULER", reference(row, "scheduler")) in keys
    }
    measured = {
        port
        for op in ops
        if op.table == "CABLE_LENGTH"
        for port in ([op.field] if op.field else row_of(target, op.table, op.key))
    }
    rows = (
        (Disturbs.PORT_BOUNCE, flapped, "the updater takes the port down to change its rows", PATCH_SORTER),
        (Disturbs.PORT_BOUNCE, measured, "the headroom is computed anew", "experience"),
        (Disturbs.LOSS, resized, "the MTU changes", "experience"),
        (Disturbs.LOSS, moved, "packets change their queue", "experience"),
        (Disturbs.LOSS, served, "the queues are served in other shares", "experience"),
    )
    return tuple(
        Disturbance(level, tuple(sorted(ports - down)), what, source)
        for level, ports, what, source in rows
        if ports - down
    )


_MAP_FIELDS: Final = tuple(
    zip(
        (
            "dscp_to_tc_map",
            "dot1p_to_tc_map",
            "tc_to_queue_map",
            "tc_to_pg_map",
            "pfc_to_queue_map",
            "pfc_to_pg_map",
        ),
        MAP_TABLES,
        strict=True,
    )
)
