"""A simulated Arista EOS switch: exec and configuration modes, sessions, timers, checkpoints.

Facts: reference page arista_eos (sections 1, 3 and 4). Grammar and printing of the configuration
live in `_arista_eos_*`. What the page marks as unverified and this module had to choose: the text
of refusals of sessions (all begin with `% Cannot`), `abort` keeping a session in the list as aborted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from rdma_fabric.lab.simulators._arista_eos_commands import load
from rdma_fabric.lab.simulators._arista_eos_config import Config, hardware
from rdma_fabric.lab.simulators._arista_eos_exec import STARTUP, EosSession, flash_path
from rdma_fabric.lab.simulators._arista_eos_grammar import INVALID, Refused
from rdma_fabric.lab.simulators._arista_eos_show import View, shown_mtu
from rdma_fabric.lab.simulators._contract import Device, Passage, Result, Session

MAX_PENDING = 5
MAX_CHECKPOINTS = 20
PENDING_SECONDS = 24 * 3600
_EPOCH = datetime(2026, 1, 5, 8, 0, 0, tzinfo=UTC)
_COMMIT = re.compile(r"commit( timer \S+)?|configure session \S+ commit( timer \S+)?")
_REPLACE = re.compile(r"configure (replace|checkpoint restore) .+")


@dataclass
class Candidate:
    """A configuration session: a snapshot of running-config at its opening, and its edits."""

    name: str
    config: Config
    user: str
    opened: float
    state: str = "pending"
    expires: float = 0.0
    before: Config | None = None
    finished: float = 0.0
    description: str = ""

    @property
    def timed(self) -> bool:
        """True while its commit waits for a confirmation."""
        return self.state == "pendingCommitTimer"


@dataclass
class Checkpoint:
    """A saved configuration; `taken` in seconds of the device's clock."""

    text: str
    taken: float
    user: str


@dataclass
class EosDevice(Device):
    """The switch: running configuration, startup file, sessions, checkpoints, timer."""

    running_config: Config = field(init=False)
    candidates: dict[str, Candidate] = field(default_factory=dict)
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    born: float = field(init=False)
    max_pending: int = MAX_PENDING
    max_checkpoints: int = MAX_CHECKPOINTS
    numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Factory defaults plus the seed; a seed line that EOS would refuse is an error."""
        self.born = self.clock()
        self.running_config = self._factory()
        refused = load(self.running_config, "\n".join(self.facts.seed))
        if refused:
            raise ValueError(f"{self.facts.name}: the seed does not load: {'; '.join(refused)}")
        self.save()

    def _factory(self) -> Config:
        config = Config(hardware(self.facts))
        load(config, f"hostname {self.facts.name}\nspanning-tree mode mstp\nno ip routing\n")
        return config

    # --- what the contract asks for ---

    def open(self, user: str) -> Session:
        """A login starts unprivileged."""
        self.tick()
        return EosSession(self, user)

    def execute(self, user: str, command: str) -> Result:
        """An exec channel: one command per line, in a session of its own."""
        session = EosSession(self, user)
        replies = [session.run(line).text for line in command.splitlines()]
        session.closed()
        text = "".join(f"{reply}\n" if reply and not reply.endswith("\n") else reply for reply in replies)
        return Result(text, "", 1 if any(line.startswith("% ") for line in text.splitlines()) else 0)

    def tick(self) -> None:
        """Commit timers that ran out roll back; sessions older than a day are dropped."""
        now = self.clock()
        for candidate in list(self.candidates.values()):
            if candidate.timed and self.uptime >= candidate.expires:
                self.roll_back(candidate)
            elif candidate.state == "pending" and now - candidate.opened >= PENDING_SECONDS:
                del self.candidates[candidate.name]

    def passage(self, port: str) -> Passage:
        """Routed ports answer by their IP MTU (default 1500), bridged ones lose what is above 9214.

        What a port takes is a matter of `l2 mru`, which is larger than both where nobody set it.
        """
        view = View(self.facts, self.running_config, self.uptime)
        found = view.port(port)
        model, mtu, _ = shown_mtu(view, port)
        address = found.foreign_value("ip address").partition("/")[0]
        return Passage(view.up(port), found.l2_mru or 0, mtu, model == "routed", address)

    def reboot(self) -> None:
        """Come back with the startup configuration; sessions and timers are gone."""
        self.candidates.clear()
        self.running_config = self._from_text(self.files.get(STARTUP, b"").decode())
        self.born = self.clock()

    def refusal(self, line: str) -> str:
        """What EOS says to a line it does not know."""
        return INVALID

    def commits(self, line: str) -> bool:
        """True for commits and replacements, not for the confirmation of a timed commit."""
        text = line.strip()
        if _COMMIT.fullmatch(text):
            named = text.split()[2] if text.startswith("configure") else ""
            candidate = self.candidates.get(named)
            return candidate is None or not candidate.timed
        return _REPLACE.fullmatch(text) is not None

    def somebody(self, lines: tuple[str, ...]) -> str:
        """Another administrator, already in privileged mode."""
        self.tick()
        session = EosSession(self, "somebody", enabled=True)
        texts = [session.run(line).text for line in lines]
        session.closed()
        return "\n".join(text for text in texts if text)

    def running(self) -> str:
        """The running-config without its header."""
        return self.running_config.text()

    def dump(self) -> dict[str, Any]:
        """Everything as JSON data; configurations as their text."""
        return {
            "running": self.running(),
            "files": {path: base64.b64encode(data).decode() for path, data in self.files.items()},
            "candidates": [
                {
                    "name": found.name,
                    "config": found.config.text(),
                    "user": found.user,
                    "opened": found.opened,
                    "state": found.state,
                    "expires": found.expires,
                    "before": found.before.text() if found.before else None,
                    "finished": found.finished,
                    "description": found.description,
                }
                for found in self.candidates.values()
            ],
            "checkpoints": {n: [c.text, c.taken, c.user] for n, c in self.checkpoints.items()},
            "born": self.born,
            "numbers": self.numbers,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take back what `dump` gave."""
        self.running_config = self._from_text(data["running"])
        self.files.clear()
        self.files.update({path: base64.b64decode(text) for path, text in data["files"].items()})
        self.candidates.clear()
        for found in data["candidates"]:
            before = None if found["before"] is None else self._from_text(found["before"])
            config = self._from_text(found["config"])
            self.candidates[found["name"]] = Candidate(**{**found, "config": config, "before": before})
        self.checkpoints = {name: Checkpoint(*parts) for name, parts in data["checkpoints"].items()}
        self.born = data["born"]
        self.numbers = dict(data["numbers"])

    # --- transactions ---

    @property
    def uptime(self) -> float:
        """Seconds since the last boot."""
        return self.clock() - self.born

    def now(self, at: float | None = None) -> datetime:
        """The wall clock, which starts at the same moment in every lab."""
        return _EPOCH + timedelta(seconds=self.clock() if at is None else at)

    def save(self) -> None:
        """Write running-config to startup-config."""
        self.files[STARTUP] = self.running().encode()

    def _from_text(self, text: str) -> Config:
        """A configuration from its text; the host name is not assumed."""
        config = Config(hardware(self.facts))
        refused = load(config, text)
        if refused:
            raise Refused("\n".join(refused))
        return config

    def count(self, what: str) -> int:
        """The next number of a series, from 0."""
        number = self.numbers.get(what, 0)
        self.numbers[what] = number + 1
        return number

    def timed(self) -> Candidate | None:
        """The session whose commit timer runs."""
        return next((found for found in self.candidates.values() if found.timed), None)

    def begin(self, name: str, user: str, description: str) -> Candidate:
        """Open or re-enter a configuration session."""
        found = self.candidates.get(name)
        if found is not None and found.state != "pending":
            raise Refused(f"% Cannot enter session {name} (session already {found.state})")
        if found is None:
            pending = [one for one in self.candidates.values() if one.state == "pending"]
            if len(pending) >= self.max_pending:
                raise Refused(
                    "% Maximum number of pending sessions has been reached. Please commit or abort "
                    "previous sessions before creating a new one."
                )
            found = Candidate(name, self.running_config.clone(), user, self.clock())
            self.candidates[name] = found
        found.description = description or found.description
        return found

    def commit(self, name: str, user: str, seconds: int = 0) -> None:
        """Commit a pending session, or confirm the one whose timer runs."""
        candidate = self.candidates.get(name)
        if candidate is None or candidate.state not in ("pending", "pendingCommitTimer"):
            state = "does not exist" if candidate is None else f"already {candidate.state}"
            raise Refused(f"% Cannot commit session {name} (session {state})")
        timed = self.timed()
        if timed is not None and timed is not candidate:
            raise Refused(
                f"% Cannot commit session {name} (another session {timed.name} is pending commit timer)"
            )
        if timed is None:
            self.checkpoint("", user)
            candidate.before = self.running_config
            self.running_config = candidate.config.clone()
        if seconds:
            candidate.state, candidate.expires = "pendingCommitTimer", self.uptime + seconds
        else:
            self._finish(candidate, "completed")

    def roll_back(self, candidate: Candidate) -> None:
        """Return to the configuration before a timed commit."""
        if candidate.before is not None:
            self.running_config = candidate.before
        self._finish(candidate, "aborted")

    def abort(self, name: str) -> None:
        """Discard a pending session, or roll a timed commit back."""
        candidate = self.candidates.get(name)
        if candidate is None or candidate.state not in ("pending", "pendingCommitTimer"):
            raise Refused(f"% Cannot abort session {name} (session does not exist)")
        if candidate.timed:
            self.roll_back(candidate)
        else:
            del self.candidates[name]

    def _finish(self, candidate: Candidate, state: str) -> None:
        """One finished session stays in the list (maximum number of completed sessions: 1)."""
        for name in [found.name for found in self.candidates.values() if found.finished]:
            del self.candidates[name]
        candidate.state, candidate.before, candidate.finished = state, None, self.clock()

    def checkpoint(self, name: str, user: str) -> str:
        """Save running-config; the oldest of more than 20 goes."""
        if not name:
            day = f"{self.now():%Y%m%d}"
            name = f"ckp-{day}-{self.count(f'ckp-{day}')}"
        self.checkpoints.pop(name, None)
        self.checkpoints[name] = Checkpoint(self.running(), self.clock(), user)
        while len(self.checkpoints) > self.max_checkpoints:
            del self.checkpoints[next(iter(self.checkpoints))]
        return name

    def source(self, where: str) -> str:
        """The text behind flash:NAME, checkpoint:NAME, startup-config, running-config."""
        if where == "running-config":
            return self.running()
        kind, _, name = where.partition(":")
        if kind == "checkpoint" and name in self.checkpoints:
            return self.checkpoints[name].text
        path = STARTUP if where == "startup-config" else flash_path(where)
        if path in self.files:
            return self.files[path].decode(errors="replace")
        raise Refused(f"% Error opening {where} (No such file or directory)")

    def replace(self, where: str, user: str) -> None:
        """`configure replace`: the whole configuration, or nothing when a line is refused."""
        config = self._from_text(self.source(where)) if where != "clean-config" else self._factory()
        self.checkpoint("", user)
        self.running_config = config


DEVICE = EosDevice
