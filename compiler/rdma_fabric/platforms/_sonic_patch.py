"""Two CONFIG_DBs -> the JSON patch between them (RFC 6902), and the same for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rdma_fabric.platforms._shared import compact
from rdma_fabric.platforms._sonic_context import Rows
from rdma_fabric.platforms._sonic_gcu import Kind, Op
from rdma_fabric.platforms._sonic_names import OWN
from rdma_fabric.platforms._sonic_read import MAP_TABLES, Tables, covering, reference, span
from rdma_fabric.platforms._sonic_rows import Plan
from rdma_fabric.templating import render

TEMPLATE: Final = "sonic/config_db.json.j2"
Document = dict[str, dict[str, dict[str, str]]]

_ORDER: Final = (
    *MAP_TABLES,
    "SCHEDULER",
    "WRED_PROFILE",
    "BUFFER_PROFILE",
    "PORT",
    "PORTCHANNEL",
    "VLAN",
    "CABLE_LENGTH",
    "PORT_QOS_MAP",
    "QUEUE",
    "BUFFER_PG",
    "PFC_WD",
)
"""What is referred to stands before what refers to it."""
_WHOLE: Final = frozenset({*MAP_TABLES, "SCHEDULER", "BUFFER_PG"})
"""Rows of these tables are replaced as a whole."""
_REFERENCES: Final = (
    ("PORT_QOS_MAP", "dscp_to_tc_map", "DSCP_TO_TC_MAP"),
    ("PORT_QOS_MAP", "dot1p_to_tc_map", "DOT1P_TO_TC_MAP"),
    ("PORT_QOS_MAP", "tc_to_queue_map", "TC_TO_QUEUE_MAP"),
    ("PORT_QOS_MAP", "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP"),
    ("PORT_QOS_MAP", "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE"),
    ("PORT_QOS_MAP", "pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"),
    ("PORT_QOS_MAP", "scheduler", "SCHEDULER"),
    ("QUEUE", "scheduler", "SCHEDULER"),
    ("QUEUE", "wred_profile", "WRED_PROFILE"),
    ("BUFFER_PG", "profile", "BUFFER_PROFILE"),
)
_NEVER_EMPTIED: Final = frozenset({"PORT", "PORTCHANNEL", "VLAN", "DEVICE_METADATA"})
"""Only some fields of their rows are read: a row that looks empty is not."""


def rows_text(rows: Rows) -> Document:
    """The rendered rows as data."""
    found: Document = json.loads(render(TEMPLATE, rows))
    return found


def target_of(tables: Tables, plan: Plan) -> Document:
    """What the tables are to be: the plan's rows written, its removals and our unused rows gone."""
    made: Document = {table: {key: dict(row) for key, row in rows.items()} for table, rows in tables.items()}
    for port, queue in sorted(plan.split):
        _split(made, port, queue)
    for table, rows in rows_text(plan.rows).items():
        for key, row in rows.items():
            held = made.setdefault(table, {}).setdefault(key, {})
            if table in _WHOLE:
                held.clear()
            held.update(row)
    for table, key, name in plan.gone:
        row = made.get(table, {}).get(key, {})
        if name:
            row.pop(name, None)
        else:
            row.clear()
    _drop_unused(made)
    for table, rows in made.items():
        if table not in _NEVER_EMPTIED:
            made[table] = {key: row for key, row in rows.items() if row or not tables.get(table, {}).get(key)}
    return {table: rows for table, rows in made.items() if rows}


def _split(made: Document, port: str, queue: int) -> None:
    """Replace a row of a range of queues by one row for each queue of it."""
    for key, row in covering(made, "QUEUE", port, queue):
        members = span(key.rpartition("|")[2])
        if len(members) > 1:
            for member in members:
                held = made["QUEUE"].get(f"{port}|{member}", {})
                made["QUEUE"][f"{port}|{member}"] = {**row, **held}
            made["QUEUE"].pop(key)


def _drop_unused(made: Document) -> None:
    used = {
        (table, reference(row, name))
        for holder, name, table in _REFERENCES
        for row in made.get(holder, {}).values()
    }
    for table in {table for _, _, table in _REFERENCES}:
        for key, row in made.get(table, {}).items():
            if key.startswith(OWN) and (table, key) not in used:
                row.clear()


# ---------------------------------------------------------------- operations


def ops_between(now: Tables, target: Tables) -> tuple[Op, ...]:
    """The operations that lead from one to the other: first what is added or changed, then removals."""
    found = [op for table in _ORDER for op in _table_ops(table, now.get(table, {}), target.get(table, {}))]
    kept = [op for op in found if op.kind != "remove"]
    return (*kept, *reversed([op for op in found if op.kind == "remove"]))


def _table_ops(
    table: str, now: Mapping[str, Mapping[str, str]], target: Mapping[str, Mapping[str, str]]
) -> Iterator[Op]:
    if now == target:
        return
    if not now or not target:
        yield _op(table, "", "", target or None, now or None)
        return
    for key in sorted({*now, *target}, key=_natural):
        old, new = now.get(key), target.get(key)
        if old is None or new is None:
            yield _op(table, key, "", new, old)
        elif old != new:
            for name in sorted({*old, *new}, key=_natural):
                if old.get(name) != new.get(name):
                    yield _op(table, key, name, new.get(name), old.get(name))


def _op(table: str, key: str, name: str, value: object, old: object) -> Op:
    kind: Kind = "add" if old is None else "remove" if value is None else "replace"
    return Op(kind, table, key, name, value, old)


def _natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """Ethernet8 before Ethernet16."""
    parts = ["".join(run) for run in _runs(text)]
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in parts)


def _runs(text: str) -> Iterator[list[str]]:
    run: list[str] = []
    for letter in text:
        if run and run[-1].isdigit() != letter.isdigit():
            yield run
            run = []
        run.append(letter)
    if run:
        yield run


def patch_text(ops: Iterable[Op]) -> str:
    """The JSON patch, one operation a line."""
    rows = [json.dumps(_patch_row(op), sort_keys=True) for op in ops]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _patch_row(op: Op) -> dict[str, Any]:
    row: dict[str, Any] = {"op": op.kind, "path": op.path}
    return row if op.kind == "remove" else {**row, "value": op.value}


# ---------------------------------------------------------------- for people


def lines_of(ops: Iterable[Op]) -> tuple[str, ...]:
    """`TABLE|key field: old -> new`; a new or removed map is one line."""
    return tuple(line for op in ops for line in _lines(op))


def _lines(op: Op) -> Iterator[str]:
    if op.field:
        yield _line(op.table, op.key, op.field, op.old, op.value)
        return
    rows = {op.key: (op.old, op.value)}
    if not op.key:
        old, new = _rows(op.old), _rows(op.value)
        rows = {key: (old.get(key), new.get(key)) for key in sorted({*old, *new}, key=_natural)}
    for key, (before, after) in rows.items():
        if op.table in MAP_TABLES:
            yield f"{op.table}|{key}: {_short(before)} -> {_short(after)}"
            continue
        first, second = _rows(before), _rows(after)
        names = sorted({*first, *second}, key=_natural)
        for name in names:
            yield _line(op.table, key, name, first.get(name), second.get(name))
        if not names:
            yield f"{op.table}|{key}: {'none' if before is None else 'present'} -> " + (
                "none" if after is None else "present"
            )


def _rows(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _line(table: str, key: str, name: str, old: object, new: object) -> str:
    before, after = ("none" if value is None else str(value) for value in (old, new))
    return f"{table}|{key} {name}: {before} -> {after}"


def _short(row: object) -> str:
    """A map by what its codes become: "0-25,27-47=0 26=3 48=6"."""
    if not isinstance(row, Mapping):
        return "none"
    by_target: dict[str, list[int]] = {}
    for code, target in row.items():
        by_target.setdefault(str(target), []).append(int(code) if str(code).isdigit() else -1)
    return " ".join(f"{compact(codes)}={target}" for target, codes in sorted(by_target.items()))
