"""What every scan found, in SQLite: when each drift was first and last seen, and what is new.

One transaction per scan, so that a scan that dies leaves the one before. What is to be told to others is
written in the same transaction (an outbox): a change is neither lost nor told twice by a restart.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from rdma_fabric.drift import NodeDrift, Word
from rdma_fabric.findings import InputError
from rdma_fabric.source import file_error

FILE: Final = "drift.sqlite3"
VERSION: Final = 1
EVENTS_PER_MESSAGE: Final = 200
"""A webhook's body stays readable, and below what receivers refuse."""
KEPT_SCANS: Final = 10_000
"""Rows of the table of scans; older ones go. Drifts stay."""

WORDS: Final[tuple[Word, ...]] = get_args(Word)
What = Literal["appeared", "changed", "gone", "silent", "back"]

_SCHEMA: Final = """
CREATE TABLE scan (id INTEGER PRIMARY KEY, at REAL NOT NULL, seconds REAL NOT NULL, nodes INTEGER NOT NULL,
    tried INTEGER NOT NULL, clean INTEGER NOT NULL);
CREATE TABLE node (name TEXT PRIMARY KEY NOT NULL, word TEXT NOT NULL, counts INTEGER NOT NULL,
    detail TEXT NOT NULL,
    since REAL NOT NULL, last_good REAL, failures INTEGER NOT NULL, retry REAL NOT NULL);
CREATE TABLE drift (id INTEGER PRIMARY KEY, node TEXT NOT NULL, port TEXT NOT NULL, key TEXT NOT NULL,
    layer TEXT NOT NULL, setting TEXT NOT NULL, found TEXT NOT NULL, wanted TEXT NOT NULL,
    told INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL, gone REAL);
CREATE UNIQUE INDEX drift_open ON drift (node, port, key, layer) WHERE gone IS NULL;
CREATE INDEX drift_node ON drift (node);
CREATE TABLE outbox (id INTEGER PRIMARY KEY, at REAL NOT NULL, body TEXT NOT NULL, tries INTEGER NOT NULL,
    due REAL NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One change between two scans. Times are seconds since 1970."""

    what: What
    node: str
    at: float
    port: str = ""
    setting: str = ""
    """As people say it."""
    key: str = ""
    layer: str = ""
    found: str = ""
    wanted: str = ""
    first_seen: float = 0.0
    detail: str = ""
    """Why a node is silent."""

    def as_json(self) -> dict[str, Any]:
        """Only what is known of it."""
        names = ("node", "port", "setting", "key", "layer", "found", "wanted", "first_seen", "detail")
        found = {name: getattr(self, name) for name in names if getattr(self, name)}
        return {"event": self.what, "at": self.at, **found}


@dataclass(frozen=True, slots=True)
class Seen:
    """What is remembered of a node."""

    word: Word
    counts: bool
    detail: str
    since: float
    last_good: float | None
    failures: int
    retry: float


@dataclass(frozen=True, slots=True)
class Message:
    """Something to be delivered."""

    id: int
    body: str
    tries: int


class History:
    """The database of one fabric folder; one writer at a time (SQLite's own lock)."""

    def __init__(self, path: Path) -> None:
        """Opens or makes it; InputError when it cannot be used."""
        self.path = path
        try:
            self._db = sqlite3.connect(path, timeout=30.0, isolation_level=None)
            path.chmod(0o600)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._prepare()
        except (sqlite3.Error, OSError) as error:
            raise self._trouble(str(error)) from None

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        elif version != VERSION:
            raise self._trouble(f"it is of version {version}, this program writes {VERSION}")

    def _trouble(self, why: str) -> InputError:
        return file_error(self.path, why, "move it away; the next scan starts a new history")

    def close(self) -> None:
        """Closes the database."""
        self._db.close()

    # -- one scan

    def record(
        self,
        rows: Iterable[NodeDrift],
        at: float,
        seconds: float,
        *,
        untried: Mapping[str, Seen] | None = None,
        retry: Mapping[str, float] | None = None,
        message: Mapping[str, Any] | None = None,
    ) -> tuple[Event, ...]:
        """Writes one scan and returns what changed since the one before.

        `untried`: nodes that were left out because they are backed off; they stay as they are. `retry`:
        node -> earliest next try. `message`: what every body to be delivered begins with; None: nothing is
        to be delivered.
        """
        rows = tuple(rows)
        untried, retry = untried or {}, retry or {}
        events: list[Event] = []
        with self._transaction():
            before = self.nodes()
            for row in rows:
                if row.node not in untried:
                    events += self._row(row, before.get(row.node), at, retry.get(row.node, 0.0))
            self._forget(before.keys() - {row.node for row in rows}, at)
            clean = not any(seen.counts for seen in self.nodes().values())
            values = (at, seconds, len(rows), len(rows) - len(untried), clean)
            self._db.execute("INSERT INTO scan (at, seconds, nodes, tried, clean) VALUES (?,?,?,?,?)", values)
            self._db.execute("DELETE FROM scan WHERE id <= (SELECT MAX(id) FROM scan) - ?", (KEPT_SCANS,))
            if message is not None:
                self._post(events, at, message)
        return tuple(events)

    def _row(self, row: NodeDrift, before: Seen | None, at: float, retry: float) -> Iterator[Event]:
        word = row.word
        good = at if word in ("clean", "drift", "unknown", "note") else before.last_good if before else None
        if word == "busy" and before is not None:
            good = before.last_good
        failed = (before.failures if before else 0) + 1 if word == "stale" else 0
        since = before.since if before and before.word == word else at
        detail = row.failure or row.skipped or row.busy
        values = (row.node, word, row.counts, detail, since, good, failed, retry)
        self._db.execute("INSERT OR REPLACE INTO node VALUES (?,?,?,?,?,?,?,?)", values)
        was_silent = before is not None and before.word == "stale" and before.counts
        if word == "stale" and row.counts and not was_silent:
            yield Event("silent", row.node, at, detail=detail)
        elif was_silent and word != "stale":
            yield Event("back", row.node, at)
        if word in ("clean", "drift", "unknown", "note"):
            yield from self._drifts(row, at)
        elif word == "skipped":
            self._db.execute("UPDATE drift SET gone = ? WHERE node = ? AND gone IS NULL", (at, row.node))

    def _drifts(self, row: NodeDrift, at: float) -> Iterator[Event]:
        columns = "port, key, layer, id, found, wanted, told, first_seen, setting"
        rows = self._db.execute(f"SELECT {columns} FROM drift WHERE node = ? AND gone IS NULL", (row.node,))
        old = {one[:3]: one[3:] for one in rows}
        # What could not be read is neither there nor gone.
        blind = {(one.port, one.key) for one in row.unknown}
        for drift in row.drifts:
            one = drift.deviation
            key = (one.port, one.key, drift.layer)
            have = old.pop(key, None)
            first = have[4] if have else at
            values = (row.node, at, one.port, one.title, one.key, drift.layer, one.found, one.wanted, first)
            if have is None:
                self._insert(row, values)
            else:
                update = "UPDATE drift SET found = ?, wanted = ?, told = ?, last_seen = ? WHERE id = ?"
                self._db.execute(update, (one.found, one.wanted, bool(have[3]) or row.counts, at, have[0]))
            if row.counts and (have is None or not have[3]):
                yield Event("appeared", *values)
            elif row.counts and have is not None and (have[1], have[2]) != (one.found, one.wanted):
                yield Event("changed", *values)
        for (port, name, layer), (number, found, wanted, told, first, title) in old.items():
            if (port, name) in blind:
                continue
            self._db.execute("UPDATE drift SET gone = ? WHERE id = ?", (at, number))
            if told:
                yield Event("gone", row.node, at, port, title, name, layer, found, wanted, first)

    def _insert(self, row: NodeDrift, values: tuple[Any, ...]) -> None:
        node, at, port, title, key, layer, found, wanted, first = values
        self._db.execute(
            "INSERT INTO drift (node, port, key, layer, setting, found, wanted, told, first_seen, last_seen)"
            " VALUES (?,?,?,?,?,?,?,?,?,?)",
            (node, port, key, layer, title, found, wanted, row.counts, first, at),
        )

    def _forget(self, names: Iterable[str], at: float) -> None:
        """Nodes that are no longer in the inventory or in scope."""
        for name in names:
            self._db.execute("DELETE FROM node WHERE name = ?", (name,))
            self._db.execute("UPDATE drift SET gone = ? WHERE node = ? AND gone IS NULL", (at, name))

    # -- what is remembered

    def nodes(self) -> dict[str, Seen]:
        """Every node of the last scan."""
        rows = self._db.execute(
            "SELECT name, word, counts, detail, since, last_good, failures, retry FROM node ORDER BY rowid"
        )
        return {
            name: Seen(word, bool(counts), detail, since, good, failures, retry)
            for name, word, counts, detail, since, good, failures, retry in rows
        }

    def drifts(self, *, gone: bool = False) -> list[dict[str, Any]]:
        """Open drifts (with `gone` also those that ended), oldest first."""
        names = (
            "node",
            "port",
            "key",
            "layer",
            "setting",
            "found",
            "wanted",
            "first_seen",
            "last_seen",
            "gone",
        )
        where = "" if gone else "WHERE gone IS NULL"
        rows = self._db.execute(f"SELECT {', '.join(names)} FROM drift {where} ORDER BY first_seen, id")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def by_setting(self) -> dict[tuple[str, str], int]:
        """(setting, layer) -> how many open drifts of nodes that count."""
        rows = self._db.execute(
            "SELECT setting, layer, COUNT(*) FROM drift JOIN node ON node.name = drift.node"
            " WHERE gone IS NULL AND told AND counts GROUP BY setting, layer"
        )
        return {(setting, layer): number for setting, layer, number in rows}

    def last_scan(self) -> tuple[float, float, int] | None:
        """(when it ended, how many seconds it took, its number), or None before the first."""
        row = self._db.execute("SELECT at, seconds, id FROM scan ORDER BY id DESC LIMIT 1").fetchone()
        return None if row is None else (row[0], row[1], row[2])

    # -- the outbox

    def _post(self, events: list[Event], at: float, message: Mapping[str, Any]) -> None:
        for start in range(0, len(events), EVENTS_PER_MESSAGE):
            some = [one.as_json() for one in events[start : start + EVENTS_PER_MESSAGE]]
            body = json.dumps({"version": 1, **message, "at": at, "events": some})
            self._db.execute("INSERT INTO outbox (at, body, tries, due) VALUES (?,?,0,?)", (at, body, at))

    def due(self, now: float) -> tuple[Message, ...]:
        """Messages to be delivered now, in order; nothing while an earlier one waits for its next try."""
        rows = self._db.execute("SELECT id, body, tries, due FROM outbox ORDER BY id").fetchall()
        found = []
        for number, body, tries, due in rows:
            if due > now:
                break
            found.append(Message(number, body, tries))
        return tuple(found)

    def waiting(self) -> int:
        """How many messages are not delivered."""
        return int(self._db.execute("SELECT COUNT(*) FROM outbox").fetchone()[0])

    def delivered(self, number: int) -> None:
        """The receiver has it, or never will."""
        self._db.execute("DELETE FROM outbox WHERE id = ?", (number,))

    def later(self, number: int, due: float) -> None:
        """Not delivered: try again from `due` on."""
        self._db.execute("UPDATE outbox SET tries = tries + 1, due = ? WHERE id = ?", (due, number))

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)


@dataclass(frozen=True, slots=True)
class _Transaction:
    db: sqlite3.Connection

    def __enter__(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self.db.execute("COMMIT" if kind is None else "ROLLBACK")
