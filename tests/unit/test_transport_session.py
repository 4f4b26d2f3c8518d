"""Sessions against a small SSH server: what answers look like, and every way in which a line can end."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.platforms._contract import Dialect
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.session import Answer, CliSession, Session, open_session
from tests.support.ssh_server import Server, Toy, run_with_sh

PASSWORD = "Sesame-42"
CLI = Dialect(driver="arista_eos", errors=r"^% ")
SHELL = Dialect(driver="linux", errors="", status=True)


def _secrets(**more: str) -> Secrets:
    return Secrets({"FABRIC_PASSWORD": PASSWORD, **more}, home=Path("/nonexistent"))


def _open(
    toy: Toy, folder: Path, dialect: Dialect = CLI, secrets: Secrets | None = None
) -> Iterator[Session]:
    with (
        Server(toy) as server,
        open_session(server.target(folder), dialect, secrets or _secrets(), timeout_s=5) as session,
    ):
        yield session


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def cli(toy: Toy, tmp_path: Path) -> Iterator[Session]:
    yield from _open(toy, tmp_path)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Session]:
    with Server(run_with_sh) as server, open_session(server.target(tmp_path), SHELL, _secrets()) as session:
        yield session


# --- a device's own CLI


def test_an_answer_is_what_stands_between_echo_and_prompt(toy: Toy, cli: Session) -> None:
    toy.answers["show x"] = b"one\r\n\r\n  two\r\n"
    assert cli.run("show x") == Answer("one\n\n  two")
    assert cli.run("conf") == Answer("did conf")
    assert cli.run("") == Answer("")


def test_login_waits_for_no_clock(toy: Toy, tmp_path: Path) -> None:
    with Server(toy) as server:
        target = server.target(tmp_path)
        start = time.monotonic()
        for _ in range(3):
            open_session(target, CLI, _secrets()).close()
        assert time.monotonic() - start < 2.4  # netmiko itself takes about 0.3 s and more for each
    assert toy.typed[:2] == ["terminal width 511", "terminal length 0"]


def test_prompts_inside_an_answer_do_not_end_it(toy: Toy, cli: Session) -> None:
    toy.pause = 0.05
    toy.answers["show a"] = [b"first\r\nleaf01#", b" is a prompt\r\n", b"leaf01#", b"\r\nlast\r\n"]
    toy.answers["show b"] = [b"leaf01#", b"b\r\n"]
    answers = cli.ask(["show a", "show b", "show c"])
    assert answers == {
        "show a": "first\nleaf01# is a prompt\nleaf01#\nlast",
        "show b": "leaf01#b",
        "show c": "did show c",
    }


def test_terminal_control_is_taken_away(toy: Toy, cli: Session) -> None:
    toy.answers["show x"] = (
        b"\x1b[?2004l\x1b[1;32mgreen\x1b[0m\x1b[K\r\r\nsp\x08pot\r\n10%\r20%\r\n\x1b]0;t\x07\r\n\x00"
    )
    assert cli.run("show x").text == "green\nspot\n10%\n20%"


def test_long_lines_and_large_answers_arrive_whole(toy: Toy, cli: Session) -> None:
    lines = [f"line {number} {'x' * 90} é" for number in range(1_500)]
    toy.answers["show run"] = "".join(f"{line}\r\n" for line in lines).encode()
    assert cli.ask(["show run"])["show run"].split("\n") == lines
    long = "qos map dscp " + " ".join(map(str, range(1_000, 1_150))) + " to traffic-class 0"
    assert cli.run(long).text == f"did {long}"


def test_prompts_of_modes_are_known_and_left(toy: Toy, cli: Session) -> None:
    toy.modes = {
        "configure": "{name}(config)#",
        "interface Ethernet1": "{name}(config-if-Et1)#",
        "end": "{name}#",
    }
    toy.answers["end"] = b""
    cli.run("configure\ninterface Ethernet1\nmtu 9000")
    assert isinstance(cli, CliSession) and cli.prompt == "leaf01(config-if-Et1)#"
    assert cli.top() and cli.prompt == "leaf01#"
    assert cli.run("show x").text == "did show x"


def test_a_line_with_newlines_is_typed_line_by_line(toy: Toy, cli: Session) -> None:
    assert cli.run("one\ntwo\nthree").text == "did one\ndid two\ndid three"
    assert [line for line in toy.typed if line][-3:] == ["one", "two", "three"]


def test_a_question_ends_the_answer_and_takes_the_next_line(toy: Toy, cli: Session) -> None:
    toy.modes = {"save": "Are you sure? [Y/N]:", "y": "{name}#"}
    toy.answers |= {"save": b"", "y": b"saved\r\n"}
    asked = cli.run("save")
    assert asked.asks and asked.text.endswith("Are you sure? [Y/N]:")
    assert cli.run("y") == Answer("saved")


def test_a_second_echo_is_no_answer(toy: Toy, cli: Session) -> None:
    toy.answers["show x"] = b"leaf01#show x\r\nreal\r\n"
    assert cli.run("show x").text == "real"


@pytest.mark.parametrize(
    ("driver", "prompt", "banner"),
    [
        ("juniper_junos", "\r\n{{master:0}}\r\nadmin@{name}> ", b"--- JUNOS 24.4 ---\r\n"),
        ("huawei_vrpv8", "<{name}>", b"\r\nInfo: The max number of VTY users is 21.\r\n"),
        ("cisco_nxos", "{name}# ", b"User Access Verification\r\n"),
        ("mellanox_mlnxos", "{name} [standalone: master] # ", b"NVIDIA Switch\r\n"),
        ("dell_os10", "{name}# ", b"Dell SmartFabric OS10\r\n"),
        ("hp_comware", "<{name}>", b"* Copyright *\r\n"),
    ],
)
def test_other_drivers_log_in_without_waiting(
    driver: str, prompt: str, banner: bytes, tmp_path: Path
) -> None:
    toy = Toy(prompt=prompt, banner=banner)
    toy.answers = {
        "set cli screen-width 511": b"Screen width set to 511\r\n",
        "set cli complete-on-space off": b"Disabling complete-on-space\r\n",
        "set cli screen-length 0": b"Screen length set to 0\r\n",
    }
    start = time.monotonic()
    for session in _open(toy, tmp_path, Dialect(driver=driver, errors="")):
        assert session.ask(["show x", "show y"]) == {"show x": "did show x", "show y": "did show y"}
    assert time.monotonic() - start < 2.5


def test_privileged_mode_takes_its_own_password(toy: Toy, tmp_path: Path) -> None:
    toy.prompt = "{name}>"
    toy.modes = {"enable": "Password: ", "s3cret": "{name}#", "wrong": "Password: "}
    toy.answers |= {"enable": b"", "s3cret": b"", "wrong": b"% Bad secret\r\n"}
    dialect = Dialect(driver="arista_eos", errors="", enable=True)
    for session in _open(toy, tmp_path, dialect, _secrets(FABRIC_ENABLE_PASSWORD="s3cret")):
        assert isinstance(session, CliSession) and session.prompt == "leaf01#"
    with pytest.raises(TransportError, match="was refused") as refused:
        list(_open(toy, tmp_path, dialect, _secrets(FABRIC_ENABLE_PASSWORD="wrong")))
    assert refused.value.kind == "auth"
    with pytest.raises(TransportError, match="FABRIC_ENABLE_PASSWORD"):
        list(_open(toy, tmp_path, dialect))


def test_no_answer_in_time_ends_the_session(toy: Toy, cli: Session) -> None:
    toy.silent = "show slow"
    with pytest.raises(TransportError, match=r"no end of 'show slow' within 0.3 s") as error:
        cli.run("show slow", timeout_s=0.3)
    assert error.value.kind == "timeout"
    with pytest.raises(TransportError) as error:
        cli.run("show x")
    assert error.value.kind == "closed"


def test_a_cut_connection_is_told_with_the_line(toy: Toy, cli: Session) -> None:
    toy.cut = "commit"
    with pytest.raises(TransportError, match="during 'commit'") as error:
        cli.run("commit")
    assert error.value.kind == "closed"


def test_a_prompt_that_never_comes_is_a_timeout(tmp_path: Path) -> None:
    toy = Toy(prompt="??", banner=b"")
    with Server(toy) as server, pytest.raises(TransportError, match="not as expected") as error:
        open_session(server.target(tmp_path), CLI, _secrets(), timeout_s=0.5)
    assert error.value.kind == "timeout"


def test_a_cli_that_has_no_sftp_says_so(cli: Session) -> None:
    with pytest.raises(TransportError, match="no SFTP") as error:
        cli.put("/tmp/x", "text")
    assert error.value.kind == "refused"


# --- a POSIX shell


def test_a_command_has_status_and_both_streams(shell: Session) -> None:
    assert shell.run("echo out; echo err >&2; exit 3") == Answer("out\nerr\n", 3, "out\n")
    assert shell.run("true") == Answer("", 0, "")


def test_scripts_and_odd_characters_pass_as_written(shell: Session) -> None:
    script = "cat <<'EOF'\n$HOME `x` \"y\" 'z' \\n é\nuser@host:~$ \nEOF\nprintf '%s' 'a\tb'"
    assert shell.run(script).output == "$HOME `x` \"y\" 'z' \\n é\nuser@host:~$ \na\tb"


def test_answers_are_standard_output_or_the_complaint(shell: Session) -> None:
    commands = ["echo a; echo warning >&2", "echo no >&2; exit 1", "head -c 300000 /dev/zero | tr '\\0' x"]
    answers = shell.ask(commands)
    assert answers[commands[0]] == "a\n"
    assert answers[commands[1]] == "no\n"
    assert answers[commands[2]] == "x" * 300_000


def test_a_killed_program_is_no_lost_connection(shell: Session) -> None:
    assert shell.run("kill -9 $$").status == -1
    assert shell.run("echo on").output == "on\n"


def test_a_slow_command_times_out_and_the_next_one_runs(shell: Session) -> None:
    with pytest.raises(TransportError) as error:
        shell.run("sleep 2", timeout_s=0.2)
    assert error.value.kind == "timeout"
    assert shell.run("echo on").output == "on\n"


def test_the_inventory_may_ask_for_more_patience(tmp_path: Path) -> None:
    with Server(run_with_sh) as server:
        target = server.target(tmp_path, connection_options={"read_timeout_override": 20})
        with open_session(target, SHELL, _secrets()) as found:
            assert found.run("sleep 0.6; echo on", timeout_s=0.2).output == "on\n"


def test_files_go_through_the_shell_where_sftp_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a file"
    with Server(run_with_sh) as server:
        target = server.target(tmp_path)
        import getpass

        with open_session(target, SHELL, _secrets()) as session:
            session._user = "root"  # type: ignore[attr-defined]  # no sudo in a test
            session.put(str(path), "text\n'é'\n", 0o640, getpass.getuser())
            assert path.read_text() == "text\n'é'\n" and path.stat().st_mode & 0o777 == 0o640
            session.put(str(path), None)
            session.put(str(path), None)
            assert not path.exists()
            with pytest.raises(TransportError, match="was not written") as error:
                session.put(str(tmp_path / "no" / "folder"), "x", owner=getpass.getuser())
            assert error.value.kind == "refused"


def test_files_go_by_sftp_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with (
        Server(run_with_sh, sftp=True) as server,
        open_session(server.target(tmp_path), SHELL, _secrets()) as session,
    ):
        session.put(str(path), "one")
        session.put(str(path), "two" * 50_000, 0o600)
        assert path.read_text() == "two" * 50_000 and path.stat().st_mode & 0o777 == 0o600
        session.put(str(path), None)
        assert sorted(one.name for one in tmp_path.iterdir()) == ["known_hosts"]


# --- secrets


def test_no_password_is_logged_or_told(
    toy: Toy, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with Server(toy, password="other") as server, pytest.raises(TransportError) as error:
        open_session(server.target(tmp_path), CLI, _secrets())
    for session in _open(toy, tmp_path):
        session.run("show x")
    told = capfd.readouterr()
    texts = [str(error.value), repr(error.value), told.out, told.err, repr(_secrets())]
    # asyncssh logs in this process, too, but only what our side sends
    texts += [record.getMessage() for record in caplog.records]
    assert not [text for text in texts if PASSWORD in text]
