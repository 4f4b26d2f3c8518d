"""A tiny driver: runs a platform's questions and steps against a simulated device, without SSH.

It stands in for the executors of `push/`: same tokens, same refusals, same meaning of a step. A
line that the device refuses raises `Refused`, so that a circle test stops where a push would stop.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.hardware import Hardware
from rdma_fabric.lab.simulators._contract import Device, Session
from rdma_fabric.platforms._contract import RUN, TIMER_HMS, TIMER_S, Call, Change, Platform, Put, Send, Step
from rdma_fabric.state import NodeState, Observation


class Refused(AssertionError):
    """The device refused a line, or a step did not end as it says it must."""

    def __init__(self, what: str, line: str, output: str) -> None:
        super().__init__(f"{what}: {line!r}\n{output}")
        self.line = line
        self.output = output


@dataclass
class Drive:
    """One user at one device. `login` are the lines that a driver sends after the login."""

    device: Device
    platform: Platform
    run: str = "r1"
    timer_s: int = 300
    user: str = "fabric"
    login: tuple[str, ...] = ()
    kept: dict[str, str] = field(default_factory=dict)
    """Outputs of the steps that have `keep`, by their name."""
    typed: list[str] = field(default_factory=list)
    """Every line sent, tokens replaced."""
    _session: Session | None = None

    # -------------------------------------------------------------- one login

    @property
    def session(self) -> Session:
        """The open login; made on first use."""
        if self._session is None:
            self._session = self.device.open(self.user)
            for line in self.login:
                self._session.run(line)
            if self.platform.dialect.enable and self._session.prompt().rstrip().endswith(">"):
                self._session.run("enable")
        return self._session

    def hang_up(self) -> None:
        """Cut the connection, as a dying run does."""
        if self._session is not None:
            self._session.closed()
        self._session = None

    # -------------------------------------------------------------- reading

    def observe(self, hw: Hardware) -> Observation:
        """Ask all questions and parse the answers."""
        return self.platform.parse(self.answers(hw), hw)

    def answers(self, hw: Hardware) -> dict[str, str]:
        """Question -> output; refusals stay in the text, they are the parser's business."""
        return {question: self._line(question) for question in self.platform.questions(hw)}

    # -------------------------------------------------------------- writing

    def steps(self, steps: Iterable[Step]) -> None:
        """Run steps in order; `Refused` at the first that fails."""
        for step in steps:
            self.device.tick()
            if isinstance(step, Send):
                self._send(step)
            elif isinstance(step, Put):
                self._put(step)
            else:
                self._call(step)

    def apply(self, change: Change) -> None:
        """The whole way of a push that goes well."""
        for steps in (change.lock, change.stage, change.commit, change.confirm, change.save, change.unlock):
            self.steps(steps)

    def to(self, wanted: NodeState, hw: Hardware) -> Change:
        """Observe, compute the change to the realized state, apply it, and return it."""
        change = self.platform.change(self.observe(hw), wanted, hw)
        self.apply(change)
        return change

    # -------------------------------------------------------------- steps

    def fill(self, text: str) -> str:
        """Replace the tokens of the contract."""
        hours, rest = divmod(self.timer_s, 3600)
        clock = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
        return text.replace(RUN, self.run).replace(TIMER_S, str(self.timer_s)).replace(TIMER_HMS, clock)

    def _line(self, line: str) -> str:
        line = self.fill(line)
        self.typed.append(line)
        return self.session.run(line).text

    def _send(self, step: Send) -> None:
        dialect = self.platform.dialect
        joined = ""
        for line in step.lines:
            output = self._line(line)
            joined += output if output.endswith("\n") or not output else f"{output}\n"
            if dialect.errors and re.search(dialect.errors, output, re.MULTILINE):
                raise Refused("refused", self.fill(line), output)
            if dialect.status:
                status = int(self.session.run("echo $?").text.strip() or -1)
                if status not in step.status:
                    raise Refused(f"exit status {status}", self.fill(line), output)
        if step.keep:
            self.kept[step.keep] = joined
        if step.forbid and re.search(self.fill(step.forbid), joined, re.MULTILINE):
            raise Refused(f"output matches {step.forbid!r}", str(step.lines), joined)
        if step.expect and not re.search(self.fill(step.expect), joined, re.MULTILINE):
            raise Refused(f"output does not match {step.expect!r}", str(step.lines), joined)

    def _put(self, step: Put) -> None:
        path = self.fill(step.path)
        if step.text is None:
            self.device.files.pop(path, None)
        else:
            self.device.files[path] = self.fill(step.text).encode()

    def _call(self, step: Call) -> None:
        if step.unless and self._execute(step.unless).status == 0:
            return
        result = self._execute(step.argv)
        if result.status not in step.status:
            raise Refused(
                f"exit status {result.status}", shlex.join(step.argv), result.stdout + result.stderr
            )

    def _execute(self, argv: tuple[str, ...]) -> Any:
        command = self.fill(shlex.join(argv))
        self.typed.append(command)
        return self.device.execute(self.user, command)
