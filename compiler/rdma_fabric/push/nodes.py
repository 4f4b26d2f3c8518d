"""Carries jobs out on real nodes: CLI nodes over one session each, file nodes by one Ansible run per wave.

Every node gets an outcome, whatever happens. Read-back repeats for a few seconds, since some devices
apply a commit a moment after they answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rdma_fabric import platforms
from rdma_fabric.observe import read
from rdma_fabric.plan.changes import Plan, Target
from rdma_fabric.platforms._contract import RUN, TIMER_HMS, TIMER_S, Send, Step
from rdma_fabric.push.cli import StepsResult, run_steps
from rdma_fabric.push.files import FilePusher, confirm_line, undo_line
from rdma_fabric.push.reach import Job, Outcome
from rdma_fabric.settings import deviations
from rdma_fabric.state import NodeState, Observation, differences, waiting
from rdma_fabric.transport.credentials import Secrets, scrub
from rdma_fabric.transport.errors import Failure, TransportError
from rdma_fabric.transport.fleet import on_each
from rdma_fabric.transport.session import Session, open_session
from rdma_fabric.transport.targets import Target as Address

DIFF = "diff"
"""Name under which a platform's last stage step keeps the device's own diff."""
BASE = "base"
"""Name under which a platform's stage keeps what the device is configured as, right before it stages."""
STORED = "stored"
"""Where of a change that works and was not saved."""
SOAK_S = 10.0
"""Longest time for which a read-back is repeated before the node counts as not as wanted; seconds."""
PAUSE_S = 0.5


def tokens(run: str, timer_s: int) -> dict[str, str]:
    """The texts that steps leave open."""
    hours, rest = divmod(timer_s, 3600)
    return {RUN: run, TIMER_S: str(timer_s), TIMER_HMS: f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"}


@dataclass
class NodeReach:
    """The way to all nodes."""

    addresses: Mapping[str, Address]
    secrets: Secrets
    state: Path
    workers: int = 50

    # -- the phases of a wave

    def commit(self, jobs: Mapping[str, Job], run: str, timer_s: int) -> dict[str, Outcome]:
        """Look again, lock, stage, commit, read back."""
        words = tokens(run, timer_s)
        cli = {name: job for name, job in jobs.items() if job.channel == "cli"}
        files = {name: job for name, job in jobs.items() if job.channel == "files"}
        found = self._each(cli, lambda session, job: self._commit_cli(session, job, words))
        # A session that broke while it locked: the lock may be ours by now, or another run's.
        unsure = {name: cli[name] for name, one in found.items() if one.where == "lock" and not one.clean}
        for name, one in self.recover(unsure, run).items():
            found[name] = replace(found[name], clean=one.ok)
        if files:
            found |= self._commit_files(files, run, timer_s)
        return found

    def _commit_cli(self, session: Session, job: Job, words: Mapping[str, str]) -> Outcome:
        fresh = self._look_again(session, job)
        if not fresh.ok:
            return fresh
        change = job.change
        kept: dict[str, str] = {}
        for where, steps in (("lock", change.lock), ("stage", change.stage)):
            result = self._steps(session, job, steps, words)
            kept |= result.kept
            if not result.ok:
                return self._stopped(session, job, where, result, words)
        moved = self._moved(session, job, kept, words)
        if moved is not None:
            return moved
        result = self._steps(session, job, change.commit, words)
        kept |= result.kept
        if not result.ok:
            return self._stopped(session, job, "commit", result, words)
        return replace(self._read_back(session, job), kept=kept)

    def _moved(
        self, session: Session, job: Job, kept: dict[str, str], words: Mapping[str, str]
    ) -> Outcome | None:
        """A candidate may be a snapshot: when somebody changed the device since, it is staged anew, once.

        The device's own diff right before the commit must be the one from staging, and so must its
        configuration where the platform keeps it; else the commit would take the other change back.
        """
        watched = (DIFF, BASE)
        again = tuple(one for one in job.change.stage if isinstance(one, Send) and one.keep in watched)
        if not again:
            return None
        for attempt in (1, 2):
            looked = self._steps(session, job, again, words)
            if not looked.ok:
                return self._stopped(session, job, "stage", looked, words)
            if all(looked.kept.get(name) == kept.get(name) for name in watched):
                kept.pop(BASE, None)  # it may hold the secrets of others
                return None
            if attempt == 2:
                break
            for steps in (job.change.undo, job.change.stage):
                result = self._steps(session, job, steps, words)
                if not result.ok:
                    return self._stopped(session, job, "stage", result, words)
                kept |= result.kept
        cleaned = self._steps(session, job, (*job.change.undo, *job.change.unlock), words)
        text = "somebody else is changing this device right now; apply again later"
        return Outcome(False, text, "changed" if cleaned.ok else "stage", clean=cleaned.ok)

    def _stopped(
        self, session: Session, job: Job, where: str, result: StepsResult, words: Mapping[str, str]
    ) -> Outcome:
        """A refusal before the commit is cleaned up at once: nothing was live."""
        text = f"{result.text} (at: {result.line})" if result.line else result.text
        if where == "lock":
            return Outcome(False, text, "lock", clean=result.kind == "refused")
        if where == "stage" and result.kind == "refused":
            cleaned = self._steps(session, job, (*job.change.undo, *job.change.unlock), words)
            return Outcome(False, text, "stage", clean=cleaned.ok)
        return Outcome(False, text, where)

    def _commit_files(self, jobs: Mapping[str, Job], run: str, timer_s: int) -> dict[str, Outcome]:
        """One Ansible run for all nodes of the wave that differ, then a read-back over SSH."""
        fresh = self._each(jobs, self._look_again)
        going = {name: jobs[name] for name, one in fresh.items() if one.ok}
        pushed = self._pusher().push(going, run, timer_s) if going else {}
        good = {name: jobs[name] for name, one in pushed.items() if one.ok}
        read = self._each(good, lambda session, job: self._read_back(session, job))
        found = {name: one for name, one in fresh.items() if not one.ok}
        for name, one in pushed.items():
            seen = read.get(name, one)
            found[name] = replace(seen, pending_reset=one.pending_reset, play=one.play)
        return found

    def _look_again(self, session: Session, job: Job) -> Outcome:
        try:
            seen = read(session, job.hardware)
        except TransportError as error:
            return Outcome(False, str(error), "connect")
        if job.seen and seen.evidence != job.seen:
            return Outcome(False, "changed since it was read; plan again", "changed")
        return Outcome(True)

    def confirm(self, jobs: Mapping[str, Job], run: str) -> dict[str, Outcome]:
        """Confirm, save, unlock. A node where that broke off is taken to one side or the other."""
        words = tokens(run, 0)

        def one(session: Session, job: Job) -> Outcome:
            if job.channel == "files":
                return self._line(session, job, confirm_line(run), "confirm")
            for where, steps in (
                ("confirm", job.change.confirm),
                ("save", job.change.save),
                ("unlock", job.change.unlock),
            ):
                result = self._steps(session, job, steps, words)
                if not result.ok:
                    return Outcome(False, f"{result.text} (at: {result.line})", where)
            return self._stored(session, job)

        found = self._each(jobs, one)
        unsure = {name: jobs[name] for name, one in found.items() if not one.ok and one.where != STORED}
        return found | self._settle(unsure, found, run)

    @staticmethod
    def _stored(session: Session, job: Job) -> Outcome:
        """Read back what a reboot would bring, where it is shown: a save may be accepted and ignored."""
        wanted = job.change.expected
        seen = read(session, job.hardware) if wanted is not None and job.change.save else None
        if wanted is None or seen is None or seen.stored is None:
            return Outcome(True)
        blocked = {one.path for one in job.change.blocked}
        lost = [
            one for one in differences(wanted, seen.stored) if not one.unknown and one.path not in blocked
        ]
        if not lost:
            return Outcome(True)
        first = deviations(lost, wanted, seen.stored)[0]
        text = (
            f"it works, but a reboot would bring {first.setting} {first.found} back instead of {first.wanted}"
        )
        return Outcome(False, text, STORED)

    def _settle(self, jobs: Mapping[str, Job], broke: Mapping[str, Outcome], run: str) -> dict[str, Outcome]:
        """Drops what still waits for a confirm, then looks: the change holds and is saved, or it is gone."""
        words = tokens(run, 0)

        def one(session: Session, job: Job) -> Outcome:
            why = broke[job.node]
            back = self._recovered(session, job, words)
            if not back.ok:
                return replace(why, text=f"{why.text}; then: {back.text}")
            wanted = job.change.expected
            if wanted is not None and not _shows(wanted, read(session, job.hardware), job):
                return replace(why, clean=True)
            saved = self._steps(session, job, job.change.save if job.channel == "cli" else (), words)
            if not saved.ok:
                return Outcome(False, f"{saved.text} (at: {saved.line})", "save")
            return Outcome(True)

        found = self._each(jobs, one)
        lost = {name for name, answer in found.items() if answer.where in ("connect", "session")}
        return {name: broke[name] if name in lost else answer for name, answer in found.items()}

    def undo(self, jobs: Mapping[str, Job], run: str) -> dict[str, Outcome]:
        """Undo, unlock, read back: an undo counts when the ports are as they were."""
        words = tokens(run, 0)

        def one(session: Session, job: Job) -> Outcome:
            if job.channel == "files":
                undone = self._line(session, job, undo_line(run), "undo")
                return self._undone(session, job) if undone.ok else undone
            result = self._steps(session, job, job.change.undo, words)
            if not result.ok:
                return Outcome(False, f"{result.text} (at: {result.line})", "undo")
            self._steps(session, job, job.change.unlock, words)
            return self._undone(session, job)

        return self._each(jobs, one)

    @staticmethod
    def _undone(session: Session, job: Job) -> Outcome:
        """Node-wide settings may stay (a loaded module is not unloaded); ports must be as before."""
        if job.before is None:
            return Outcome(True)
        end = time.monotonic() + SOAK_S
        while True:
            seen = read(session, job.hardware)
            left = [one for one in differences(job.before, seen.running) if one.path.startswith("ports.")]
            if not left:
                return Outcome(True, observation=seen)
            if time.monotonic() > end:
                found = deviations(left, job.before, seen.running)[0]
                text = f"{found.setting} is {found.found} and was {found.wanted} before"
                return Outcome(False, text, "undo", observation=seen)
            time.sleep(PAUSE_S)

    def recover(self, jobs: Mapping[str, Job], run: str) -> dict[str, Outcome]:
        """Drop what a run that died left on the nodes."""
        words = tokens(run, 0)
        return self._each(jobs, lambda session, job: self._recovered(session, job, words))

    def _recovered(self, session: Session, job: Job, words: Mapping[str, str]) -> Outcome:
        """What the run left on a node is gone; before its confirm, the change too."""
        if job.channel == "files":
            return self._line(session, job, undo_line(words[RUN]), "recover")
        result = self._steps(session, job, job.dialect.recover, words)
        return Outcome(result.ok, result.text, "" if result.ok else "recover")

    def stage(self, plan: Plan, targets: Mapping[str, Target], run: str) -> dict[str, Outcome]:
        """Load candidates, take the devices' own diffs, discard; nodes without candidates are left out."""
        jobs = {}
        for row in plan.rows:
            if row.change is not None and row.status in ("change", "refused") and row.channel == "cli":
                hw = targets[row.node].hardware
                dialect = platforms.platform(hw.base).dialect
                jobs[row.node] = Job(
                    row.node, row.change, hw, dialect, row.channel, plan.seen.get(row.node, "")
                )
        words = tokens(run, 60)

        def one(session: Session, job: Job) -> Outcome:
            result = self._steps(session, job, (*job.change.lock, *job.change.stage), words)
            undone = self._steps(session, job, (*job.change.undo, *job.change.unlock), words)
            kept = {DIFF: _ours(result.kept.get(DIFF, ""), job.change.lines)}
            if result.ok and not undone.ok:
                return Outcome(False, undone.text, "undo", kept)
            return Outcome(result.ok, result.text, "" if result.ok else "stage", kept)

        return self._each(jobs, one)

    # -- parts

    def _each(self, jobs: Mapping[str, Job], step: Callable[[Session, Job], Outcome]) -> dict[str, Outcome]:
        """One session per node, many at once; a node that cannot be reached gets an outcome too."""

        def one(address: Address) -> Outcome:
            job = jobs[address.name]
            with open_session(address, job.dialect, self.secrets) as session:
                try:
                    found = step(session, job)
                except TransportError as error:
                    return Outcome(False, self._clean(str(error)), "session")
            return replace(found, text=self._clean(found.text))

        if not jobs:
            return {}
        found = on_each(tuple(jobs), self.addresses, one, self.secrets, workers=self.workers)
        return {name: _outcome(answer) for name, answer in found.items()}

    def _clean(self, text: str) -> str:
        return scrub(text, self.secrets)

    def _line(self, session: Session, job: Job, line: str, where: str) -> Outcome:
        """One shell line on a host."""
        result = self._steps(session, job, (Send((line,)),), {})
        return Outcome(result.ok, result.text, "" if result.ok else where)

    @staticmethod
    def _steps(session: Session, job: Job, steps: Sequence[Step], words: Mapping[str, str]) -> StepsResult:
        dialect = job.dialect
        return run_steps(session, steps, tokens=words, errors=dialect.errors, status=dialect.status)

    def _read_back(self, session: Session, job: Job) -> Outcome:
        """The observation once it shows what the change expects, or the last one after SOAK_S."""
        end = time.monotonic() + SOAK_S
        while True:
            seen = read(session, job.hardware)
            wanted = job.change.expected
            if wanted is None or _shows(wanted, seen, job) or time.monotonic() > end:
                return Outcome(True, observation=seen)
            time.sleep(PAUSE_S)

    def _pusher(self) -> FilePusher:
        return FilePusher(self.addresses, self.secrets, self.state)


def _ours(diff: str, lines: Sequence[str]) -> str:
    """A device's own diff without the lines around ours: those of others may hold their secrets."""
    found = diff.splitlines()
    if not any(line.startswith("+++ ") for line in found):
        return diff
    own = {line.strip() for line in lines}
    return "\n".join(line for line in found if line[:1] in ("+", "-", "@") or line.strip() in own)


def _outcome(answer: Outcome | Failure) -> Outcome:
    """A failure to log in as an outcome: nothing was touched."""
    if isinstance(answer, Outcome):
        return answer
    return Outcome(False, f"{answer.kind}: {answer.text}", "connect")


def _shows(wanted: NodeState, seen: Observation, job: Job) -> bool:
    left_out = {one.path for one in job.change.blocked} | waiting(wanted, seen)
    return not [one for one in differences(wanted, seen.running) if one.path not in left_out]
