"""Revisions of the Cumulus Linux simulator: pending, applied and startup configuration, confirm timer."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ._cumulus_config import Tree, at
from ._cumulus_qos import switch_word
from ._cumulus_schema import Refused, Version

# NVUE CLI page, "Maximum Revisions Limit"; `startup`, `empty` and `applied` do not count.
MAX_REVISIONS = 100
# The simulated wall clock at second 0 of the device's clock.
EPOCH = datetime.datetime(2025, 6, 2, 8, 0, 0, tzinfo=datetime.UTC)


@dataclass(slots=True)
class Revision:
    """One revision; `applies` has a line per time it was applied."""

    tree: Tree
    state: str = "pending"
    parent: str = ""
    user: str = ""
    applies: list[dict[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Waiting:
    """An apply that falls back to `previous` at `deadline` unless somebody confirms it."""

    revision: str
    previous: str
    deadline: float


class Revisions:
    """All configuration trees of one switch."""

    def __init__(self, tree: Tree, version: Version, now: float) -> None:
        self.version = version
        self.by_id: dict[str, Revision] = {}
        self.attached: dict[str, str] = {}
        self.waiting: Waiting | None = None
        self.counter = 0
        first = self.new(tree, "", "root")
        self.applied_id = self.startup_id = first
        self.startup = copy.deepcopy(tree)
        self._record(first, "root", "Config update by root", now)
        self.by_id[first].state = "applied_and_saved" if version >= (5, 9) else "applied"

    @property
    def applied(self) -> Tree:
        """The applied tree; treat as read-only."""
        return self.by_id[self.applied_id].tree

    def new(self, tree: Tree, parent: str, user: str) -> str:
        """A new pending revision, returns its id."""
        self.counter += 1
        name = str(self.counter)
        self.by_id[name] = Revision(copy.deepcopy(tree), parent=parent, user=user)
        self._forget_oldest()
        return name

    def _forget_oldest(self) -> None:
        kept = {*self.attached.values(), str(self.counter)}
        if self.counter > 1:
            kept |= {self.applied_id, self.startup_id, self.by_id[self.applied_id].parent}
        if self.waiting:
            kept |= {self.waiting.revision, self.waiting.previous}
        for name in [name for name in self.by_id if name not in kept]:
            if len(self.by_id) <= MAX_REVISIONS:
                return
            del self.by_id[name]

    def tree(self, name: str, user: str) -> Tree:
        """The tree of `applied`, `startup`, `empty`, `pending` or a number; raises Refused."""
        if name == "applied":
            return self.applied
        if name == "startup":
            return self.startup
        if name == "empty":
            return {}
        if name == "pending":
            return self.by_id[self.attached[user]].tree if user in self.attached else self.applied
        return self.number(name).tree

    def number(self, name: str) -> Revision:
        """A revision by number; raises Refused."""
        if name not in self.by_id:
            raise Refused(f"Error: Unknown revision: {name}")
        return self.by_id[name]

    def pending(self, user: str) -> tuple[str, bool]:
        """The user's candidate, created from the applied tree when there is none; (id, created)."""
        if user in self.attached:
            return self.attached[user], False
        name = self.new(self.applied, self.applied_id, user)
        self.attached[user] = name
        return name, True

    def auto_save(self) -> bool:
        """Whether an apply also saves: on by default from 5.9."""
        name, on = switch_word(self.version, True)
        value = at(self.applied, "system", "config", "auto-save", name)
        return self.version >= (5, 9) if value is None else bool(value == on)

    def commit(self, name: str, user: str, message: str, seconds: float | None, now: float) -> None:
        """Make a revision the applied one, with a timer when `seconds` is given."""
        revision = self.number(name)
        previous = self.applied_id
        self.applied_id = name
        self._record(name, user, message or f"Config update by {user}", now)
        for holder in [holder for holder, held in self.attached.items() if held == name]:
            del self.attached[holder]
        if seconds is not None:
            revision.state = "confirm"
            self.waiting = Waiting(name, previous, now + seconds)
        elif self.auto_save():
            self.save()
        else:
            revision.state = "applied"

    def _record(self, name: str, user: str, message: str, now: float) -> None:
        revision = self.by_id[name]
        revision.applies.append(
            {
                "apply-id": f"rev_{name}_apply_{len(revision.applies) + 1}",
                "apply-date": (EPOCH + datetime.timedelta(seconds=int(now))).strftime("%Y-%m-%d %H:%M:%S"),
                "type": "CLI",
                "user": user,
                "reason": "Config update",
                "message": message,
            }
        )

    def save(self) -> None:
        """Write the applied tree to startup."""
        self.startup = copy.deepcopy(self.applied)
        self.startup_id = self.applied_id
        if self.waiting is None:
            self.by_id[self.applied_id].state = "applied_and_saved" if self.version >= (5, 9) else "applied"

    def confirm(self) -> str:
        """Keep the apply that waits; returns its id; raises Refused when none waits."""
        if self.waiting is None:
            raise Refused("Error: No apply is waiting for confirmation")
        name = self.waiting.revision
        self.waiting = None
        self.by_id[name].state = "applied"
        if self.auto_save():
            self.save()
        return name

    def fall_back(self) -> tuple[str, str]:
        """Undo the apply that waits; returns (its id, the id that is applied again)."""
        if self.waiting is None:
            raise Refused("Error: No apply is waiting for confirmation")
        waiting, self.waiting = self.waiting, None
        self.by_id[waiting.revision].state = "confirm_fail"
        self.applied_id = waiting.previous
        return waiting.revision, waiting.previous

    def delete(self, name: str) -> None:
        """Remove a revision; the applied and the startup one stay."""
        self.number(name)
        if name in (self.applied_id, self.startup_id) or (self.waiting and name == self.waiting.previous):
            raise Refused(f"Error: Revision {name} is in use and cannot be deleted")
        for holder in [holder for holder, held in self.attached.items() if held == name]:
            del self.attached[holder]
        del self.by_id[name]

    def reboot(self) -> None:
        """Come up with the startup tree; candidates and the timer are gone."""
        self.waiting = None
        self.attached.clear()
        for name in [name for name, revision in self.by_id.items() if not revision.applies]:
            del self.by_id[name]
        if self.startup_id not in self.by_id:
            self.startup_id = self.new(self.startup, "", "root")
        self.applied_id = self.startup_id
        self.by_id[self.applied_id].tree = copy.deepcopy(self.startup)
        self.by_id[self.applied_id].state = "applied_and_saved" if self.version >= (5, 9) else "applied"

    def dump(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "revisions": {name: asdict(revision) for name, revision in self.by_id.items()},
            "attached": dict(self.attached),
            "waiting": asdict(self.waiting) if self.waiting else None,
            "counter": self.counter,
            "applied": self.applied_id,
            "startup-id": self.startup_id,
            "startup": copy.deepcopy(self.startup),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take back what `dump` gave."""
        self.by_id = {name: Revision(**copy.deepcopy(body)) for name, body in data["revisions"].items()}
        self.attached = dict(data["attached"])
        self.waiting = Waiting(**data["waiting"]) if data["waiting"] else None
        self.counter = int(data["counter"])
        self.applied_id = str(data["applied"])
        self.startup_id = str(data["startup-id"])
        self.startup = copy.deepcopy(data["startup"])
