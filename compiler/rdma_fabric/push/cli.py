"""Executes steps over a session: lines, files and programs; stops at the first refusal.

It knows steps and dialects, never platforms. After a refusal the session stands where it stood after
the login, as a new session would.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rdma_fabric.platforms._contract import Call, Put, Send, Step
from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.session import Answer, CliSession, Session

OnStep = Callable[[Step, str], None]
_WORDS = 2_000


@dataclass(frozen=True, slots=True)
class StepsResult:
    """What came of some steps. When not `ok`: the step, the line, and the device's own words.

    `kind`: "refused" (the device said no), or the transport's "timeout", "closed" ...: then nobody knows
    whether the line took effect.
    """

    ok: bool
    kept: Mapping[str, str] = field(default_factory=dict)
    failed: Step | None = None
    text: str = ""
    kind: str = ""
    line: str = ""
    done: int = 0
    """Steps that were carried out."""


def run_steps(
    session: Session,
    steps: Sequence[Step],
    *,
    tokens: Mapping[str, str],
    errors: str,
    status: bool,
    phase: str = "",
    on_step: OnStep | None = None,
) -> StepsResult:
    """Carry out the steps in order.

    `tokens` are replaced in every text (RUN, TIMER_S, TIMER_HMS of the contract); `errors` and `status`
    are the dialect's. `on_step(step, phase)` is called before each step, so that a journal can be
    written first; what it raises ends the run.
    """
    run = _Run(session, re.compile(errors, re.MULTILINE) if errors else None, status)
    done = 0
    for step in steps:
        final = _filled(step, tokens)
        if on_step is not None:
            on_step(final, phase)
        try:
            run.step(final)
        except _Refused as refusal:
            _leave(session)
            return StepsResult(False, run.kept, step, refusal.words, "refused", refusal.line, done)
        except TransportError as error:
            return StepsResult(False, run.kept, step, error.text, error.kind, run.line, done)
        done += 1
    return StepsResult(True, run.kept, done=done)


class _Refused(Exception):
    """The device said no."""

    def __init__(self, line: str, words: str) -> None:
        self.line = line
        self.words = _cut(words.strip()) or "refused without a word"
        super().__init__(line, words)


class _Run:
    """The steps of one call."""

    def __init__(self, session: Session, errors: re.Pattern[str] | None, status: bool) -> None:
        self._session, self._errors, self._status = session, errors, status
        self.kept: dict[str, str] = {}
        self.line = ""

    def step(self, step: Step) -> None:
        """Carry out one step; _Refused or TransportError."""
        if isinstance(step, Send):
            self._send(step)
        elif isinstance(step, Put):
            self._put(step)
        else:
            self._call(step)

    def _send(self, step: Send) -> None:
        texts: list[str] = []
        asks = False
        for line in step.lines:
            answer = self._type(line, step.timeout_s)
            texts.append(answer.text)
            self._judge(answer, step.status)
            self._forbid(step, "\n".join(texts))
            asks = answer.asks
        text = "\n".join(texts)
        if asks:
            if isinstance(self._session, CliSession):
                self._session.cancel()
            raise _Refused(self.line, f"the device asks, and no answer is planned: {texts[-1]}")
        if step.expect and not re.search(step.expect, text, re.MULTILINE):
            raise _Refused(self.line, text or f"no answer, expected {step.expect}")
        if step.keep:
            self.kept[step.keep] = text

    def _put(self, step: Put) -> None:
        self.line = f"put {step.path}"
        try:
            self._session.put(step.path, step.text, step.mode, step.owner)
        except TransportError as error:
            if error.kind == "refused":
                raise _Refused(self.line, error.text) from error
            raise

    def _call(self, step: Call) -> None:
        if not self._status:
            raise _Refused(shlex.join(step.argv), "the node has no shell to run a program in")
        if step.unless and self._type(shlex.join(step.unless), step.timeout_s).status == 0:
            return
        answer = self._type(shlex.join(step.argv), step.timeout_s)
        if answer.status not in step.status:
            raise _Refused(self.line, _with_status(answer))

    def _type(self, line: str, timeout_s: float) -> Answer:
        self.line = line
        return self._session.run(line, timeout_s=timeout_s)

    def _judge(self, answer: Answer, accepted: tuple[int, ...]) -> None:
        """A refusal is the dialect's error text, or a status that is not accepted."""
        if self._errors and self._errors.search(answer.text):
            raise _Refused(self.line, answer.text)
        if self._status and answer.status not in accepted:
            raise _Refused(self.line, _with_status(answer))

    def _forbid(self, step: Send, text: str) -> None:
        if step.forbid and re.search(step.forbid, text, re.MULTILINE):
            raise _Refused(self.line, text)


def _leave(session: Session) -> None:
    """Back to the mode after the login; a session that cannot is closed by its owner."""
    try:
        session.top()
    except TransportError:
        session.close()


def _filled(step: Step, tokens: Mapping[str, str]) -> Step:
    """The step with its tokens replaced."""
    if isinstance(step, Send):
        lines = tuple(_fill(line, tokens) for line in step.lines)
        return replace(
            step, lines=lines, expect=_fill(step.expect, tokens), forbid=_fill(step.forbid, tokens)
        )
    if isinstance(step, Put):
        text = None if step.text is None else _fill(step.text, tokens)
        return replace(step, path=_fill(step.path, tokens), text=text)
    argv = tuple(_fill(word, tokens) for word in step.argv)
    return replace(step, argv=argv, unless=tuple(_fill(word, tokens) for word in step.unless))


def _fill(text: str, tokens: Mapping[str, str]) -> str:
    for token, value in tokens.items():
        text = text.replace(token, value)
    return text


def _with_status(answer: Answer) -> str:
    words = answer.text.strip()
    return f"{words}\n(exit status {answer.status})" if words else f"exit status {answer.status}"


def _cut(words: str) -> str:
    return words if len(words) <= _WORDS else f"{words[:_WORDS]} ..."
