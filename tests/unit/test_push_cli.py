"""Steps over a session that is written here: order, tokens, refusals, and what is known afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.platforms._contract import RUN, TIMER_HMS, TIMER_S, Call, Dialect, Put, Send, Step
from rdma_fabric.push.cli import StepsResult, run_steps
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.session import Answer, Session, open_session
from rdma_fabric.transport.targets import Target
from tests.support.ssh_server import Server, Toy

TOKENS = {RUN: "r1", TIMER_S: "300", TIMER_HMS: "00:05:00"}
ERRORS = r"^% |^Error"


class _Fake(Session):
    """Answers by a function; a shell when it gives a status."""

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        super().__init__(Target("n", "n"), Dialect("", ERRORS))
        self.answer = answer
        self.seen: list[object] = []
        self.tops = 0

    def run(self, line: str, *, timeout_s: float = 60.0) -> Answer:
        self.seen.append(line)
        return self.answer(line)

    def ask(self, questions: Iterable[str], *, timeout_s: float = 60.0) -> dict[str, str]:
        return {question: self.run(question).text for question in questions}

    def put(self, path: str, text: str | None, mode: int = 0o644, owner: str = "root") -> None:
        if path.startswith("/no"):
            raise TransportError("refused", f"{path} was not written")
        self.seen.append((path, text, mode, owner))

    def top(self) -> bool:
        self.tops += 1
        return True

    def close(self) -> None:
        self.seen.append("closed")


def _cli(**answers: str) -> _Fake:
    return _Fake(lambda line: Answer(answers.get(line.replace(" ", "_"), "")))


def _go(session: Session, *steps: Step, status: bool = False) -> StepsResult:
    return run_steps(session, steps, tokens=TOKENS, errors=ERRORS, status=status)


def test_tokens_are_replaced_everywhere() -> None:
    session = _Fake(lambda line: Answer("r1 300", 0))
    steps = (
        Send((f"begin {RUN} {TIMER_S}",), expect=f"{RUN} {TIMER_S}", forbid=f"not {RUN}", keep="k"),
        Put(f"/tmp/{RUN}", f"t {TIMER_HMS}", 0o600),
        Call(("arm", RUN, "two words; $x"), unless=("false", RUN)),
    )
    result = _go(session, *steps, status=True)
    assert result == StepsResult(True, {"k": "r1 300"}, done=3)
    assert session.seen == ["begin r1 300", ("/tmp/r1", "t 00:05:00", 0o600, "root"), "false r1"]
    session.answer = lambda line: Answer("", 1 if line.startswith("false") else 0)
    assert _go(session, steps[2], status=True).ok and session.seen[-1] == "arm r1 'two words; $x'"


def test_a_refusal_stops_at_once_and_is_told_in_the_devices_words() -> None:
    session = _cli(mtu_1="first\n% Invalid input: mtu 1")
    step = Send(("one", "mtu 1", "never"))
    result = _go(session, Send(("zero",), keep="z"), step, Send(("later",)))
    assert not result.ok and result.failed is step and result.kind == "refused"
    assert (result.line, result.text, result.done) == ("mtu 1", "first\n% Invalid input: mtu 1", 1)
    assert result.kept == {"z": ""} and session.seen == ["zero", "one", "mtu 1"] and session.tops == 1


def test_expect_and_forbid_look_at_all_lines_together() -> None:
    session = _cli(a="alpha", b="beta")
    assert _go(session, Send(("a", "b"), expect=r"^alpha\n^beta$")).ok
    missing = _go(session, Send(("a", "b"), expect="^gamma"))
    assert (missing.ok, missing.text) == (False, "alpha\nbeta")
    assert _go(session, Send(("c",), expect="gamma")).text == "no answer, expected gamma"
    session.seen.clear()
    found = _go(session, Send(("a", "b", "c"), forbid=r"(?s)alpha.*beta"))
    assert (found.ok, found.text, found.line) == (False, "alpha\nbeta", "b") and session.seen == ["a", "b"]


def test_a_shell_is_judged_by_status_and_by_text() -> None:
    session = _Fake(lambda line: Answer(line, {"three": 3}.get(line, 0)))
    assert _go(session, Send(("three",), status=(0, 3)), status=True).ok
    refused = _go(session, Send(("three",)), status=True)
    assert (refused.kind, refused.text) == ("refused", "three\n(exit status 3)")
    assert not _go(session, Send(("Error: bad",)), status=True).ok
    assert _go(session, Call(("three",)), status=True).text == "three\n(exit status 3)"
    assert _go(session, Call(("three",), status=(3,)), status=True).ok
    assert "no shell" in _go(session, Call(("x",)), status=False).text


def test_a_file_that_is_not_written_is_a_refusal() -> None:
    result = _go(_cli(), Put("/no/way", "x"))
    assert (result.kind, result.line, result.text) == ("refused", "put /no/way", "/no/way was not written")


@pytest.mark.parametrize("kind", ["timeout", "closed"])
def test_a_lost_session_is_no_refusal(kind: str) -> None:
    def answer(line: str) -> Answer:
        if line == "commit":
            raise TransportError(kind, "gone")  # type: ignore[arg-type]
        return Answer("fine")

    session = _Fake(answer)
    result = _go(session, Send(("x",), keep="x"), Send(("commit", "more")))
    assert (result.kind, result.line, result.text, result.done) == (kind, "commit", "gone", 1)
    assert result.kept == {"x": "fine"} and session.seen == ["x", "commit"] and session.tops == 0


def test_the_journal_is_asked_before_each_step() -> None:
    session = _cli()
    told: list[tuple[Step, str, int]] = []

    def note(step: Step, phase: str) -> None:
        told.append((step, phase, len(session.seen)))

    steps = (Send((f"x {RUN}",)), Put("/p", None))
    run_steps(session, steps, tokens=TOKENS, errors="", status=False, phase="commit", on_step=note)
    assert told == [(Send(("x r1",)), "commit", 0), (Put("/p", None), "commit", 1)]

    def full(step: Step, phase: str) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run_steps(session, steps, tokens=TOKENS, errors="", status=False, on_step=full)
    assert len(session.seen) == 2


# --- over a real session


def _real(toy: Toy, folder: Path, *steps: Step) -> StepsResult:
    secrets = Secrets({"FABRIC_PASSWORD": "Sesame-42"}, home=Path("/nonexistent"))
    dialect = Dialect("arista_eos", ERRORS)
    with Server(toy) as server, open_session(server.target(folder), dialect, secrets) as session:
        result = _go(session, *steps)
        assert session.run("show x").text == "did show x"
        return result


def test_a_refusal_inside_a_mode_leaves_the_mode(tmp_path: Path) -> None:
    toy = Toy(answers={"mtu 1": b"% Invalid input\r\n", "end": b""})
    toy.modes = {"configure": "{name}(config)#", "end": "{name}#"}
    result = _real(toy, tmp_path, Send(("configure", "mtu 1")), Send(("never",)))
    assert result.text == "% Invalid input" and "end" in toy.typed and "never" not in toy.typed


def test_a_question_without_a_planned_answer_is_cancelled(tmp_path: Path) -> None:
    toy = Toy(answers={"save": b""}, modes={"save": "Overwrite? [Y/N]:", "": "{name}#", "y": "{name}#"})
    result = _real(toy, tmp_path, Send(("save", "y")))
    assert result.ok
    result = _real(toy, tmp_path, Send(("save",)))
    assert not result.ok and "Overwrite? [Y/N]:" in result.text
