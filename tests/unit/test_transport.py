"""Targets, secrets, limits, host keys, and every way in which a login can fail."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.findings import InputError
from rdma_fabric.inventory.types import Inventory, Node, Spec
from rdma_fabric.platforms._contract import Dialect
from rdma_fabric.transport import hostkeys, known_hosts
from rdma_fabric.transport.credentials import Secrets, scrub
from rdma_fabric.transport.errors import Failure, TransportError
from rdma_fabric.transport.fleet import on_each
from rdma_fabric.transport.known_hosts import HostKey
from rdma_fabric.transport.limits import LoginGate
from rdma_fabric.transport.session import open_session
from rdma_fabric.transport.targets import Target, targets
from tests.support.ssh_server import Server, run_with_sh

PASSWORD = "Sesame-42"
SHELL = Dialect(driver="", errors="", status=True)
HERE = Target("leaf01", "192.0.2.1", groups=("leaf", "row-1"))
NO_HOME = Path("/nonexistent")


def _secrets(**environment: str) -> Secrets:
    return Secrets(environment, home=NO_HOME)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(run_with_sh) as made:
        yield made


def _refusal(target: Target, secrets: Secrets, timeout_s: float = 5.0) -> TransportError:
    with pytest.raises(TransportError) as error:
        open_session(target, SHELL, secrets, timeout_s=timeout_s)
    return error.value


# --- importing is cheap


def test_importing_loads_no_ssh_library_and_no_nornir() -> None:
    code = (
        "import sys, rdma_fabric.observe, rdma_fabric.push.cli, rdma_fabric.transport.hostkeys;"
        "print(sorted({'netmiko', 'paramiko', 'nornir', 'asyncssh'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- targets


def _inventory(**spec: Any) -> Inventory:
    return Inventory({"leaf01": Node("leaf01", "192.0.2.1", Spec("toy", groups=("leaf",), **spec))}, ())


def test_targets_are_resolved_as_nornir_does(tmp_path: Path) -> None:
    plain = targets(_inventory(), ["leaf01"], tmp_path)["leaf01"]
    assert (plain.host, plain.port, plain.username, plain.key_files) == ("192.0.2.1", 22, "", ())
    assert plain.known_hosts == (Path.home() / ".ssh/known_hosts", tmp_path / "known_hosts")
    assert plain.groups == ("leaf",)
    options = {
        "netmiko": {"hostname": "mgmt", "port": 2022, "extras": {"conn_timeout": 3, "key_file": "~/k"}}
    }
    rich = targets(
        _inventory(username="ops", ssh_port=2222, connection_options=options), ["leaf01"], tmp_path
    )
    target = rich["leaf01"]
    assert (target.host, target.port, target.username, target.key_files) == ("mgmt", 2022, "ops", ("~/k",))
    assert target.seconds("conn_timeout", 9.0) == 3.0 and target.seconds("auth_timeout", 9.0) == 9.0


def test_targets_of_a_lab_are_those_that_it_plays(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no lab is up"):
        targets(_inventory(), ["leaf01"], tmp_path, lab=True)
    state = tmp_path / ".fabric/lab"
    state.mkdir(parents=True)
    node = {"host": "127.1.0.1", "port": 2022, "username": "admin", "key_file": "/k", "platform": "toy"}
    (state / "nodes.json").write_text(json.dumps({"leaf01": node}))
    found = targets(_inventory(), ["leaf01", "leaf02"], tmp_path, lab=True)
    assert list(found) == ["leaf01"]
    assert found["leaf01"].known_hosts == (state / "known_hosts",) and found["leaf01"].key_files == ("/k",)


# --- secrets


def test_passwords_come_from_the_group_then_for_all_then_from_the_command() -> None:
    groups = {"FABRIC_PASSWORD_ROW_1": "row", "FABRIC_PASSWORD": "all"}
    assert _secrets(**groups).password(HERE) == "row"
    assert _secrets(FABRIC_PASSWORD="all").password(HERE) == "all"
    secrets = _secrets(FABRIC_PASSWORD_COMMAND="printf 'pri nted\\nmore'")
    assert secrets.texts() == () and secrets.password(HERE) == "pri nted"
    assert "pri nted" in secrets.texts()
    assert _secrets().password(HERE) == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("false", "exit code 1"),
        ("true", "printed nothing"),
        ("/no/such/tool", "FileNotFoundError"),
        ("'", "ValueError"),
    ],
)
def test_a_command_that_gives_no_password_is_told(command: str, words: str) -> None:
    with pytest.raises(TransportError, match=words) as error:
        _secrets(FABRIC_PASSWORD_COMMAND=command).password(HERE)
    assert error.value.kind == "auth"


def test_the_user_is_the_inventorys_then_the_environments() -> None:
    assert _secrets(FABRIC_USERNAME="env").username(Target("a", "b", username="inv")) == "inv"
    assert _secrets(FABRIC_USERNAME="env").username(HERE) == "env"


def test_secrets_are_not_shown_or_written() -> None:
    secrets = _secrets(
        FABRIC_PASSWORD=PASSWORD, FABRIC_ENABLE_PASSWORD='en"able', FABRIC_PASSWORD_LEAF="leafy"
    )
    assert PASSWORD not in repr(secrets) and PASSWORD not in f"{secrets}"
    with pytest.raises(TypeError):
        pickle.dumps(secrets)
    text = json.dumps({"a": f"{PASSWORD} leafy", "b": 'en"able'})
    assert scrub(text, secrets) == '{"a": "**** ****", "b": "****"}'


def test_key_files_are_told_when_they_cannot_be_used(tmp_path: Path) -> None:
    for text in (None, "no key"):
        path = tmp_path / "key"
        if text:
            path.write_text(text)
        with pytest.raises(TransportError, match=str(path)) as error:
            _secrets(FABRIC_KEY_FILE=str(path)).keys(HERE)
        assert error.value.kind == "auth"
    import asyncssh

    locked = asyncssh.generate_private_key("ssh-ed25519").export_private_key("openssh", "phrase")
    path.write_bytes(locked)
    with pytest.raises(TransportError, match="SSH agent"):
        _secrets(FABRIC_KEY_FILE=str(path)).keys(HERE)


# --- limits


def test_logins_have_a_rate() -> None:
    now, slept = [0.0], list[float]()
    gate = LoginGate(rate=10.0, clock=lambda: now[0], sleep=slept.append)
    for _ in range(3):
        gate.wait("a")
    now[0] = 5.0
    gate.wait("a")
    assert slept == [pytest.approx(0.1), pytest.approx(0.2)]


def _fail(gate: LoginGate, name: str, kind: Any = "auth") -> None:
    with pytest.raises(TransportError), gate.login("a", name):
        raise TransportError(kind, "no")


def test_three_refusals_in_a_row_end_the_logins_with_these_credentials() -> None:
    gate = LoginGate()
    for name in ("n1", "n2"):
        _fail(gate, name)
    _fail(gate, "n3", "closed")  # not a refusal
    with gate.login("a", "n4"):
        pass
    for name in ("n5", "n6", "n7"):
        _fail(gate, name)
    with pytest.raises(TransportError, match="not tried: n5, n6, n7 refused the same login") as error:
        gate.wait("a")
    assert error.value.kind == "auth"
    gate.wait("b")
    gate.end("interrupted")
    with pytest.raises(TransportError, match="not tried: interrupted"):
        gate.wait("b")


def test_unproven_credentials_are_tried_on_few_nodes_at_once() -> None:
    gate, started, go = LoginGate(), list[int](), threading.Event()
    most = [0, 0]

    def login(number: int) -> None:
        try:
            with gate.login("a", f"n{number}"):
                started.append(number)
                most[0] += 1
                most[1] = max(most)
                go.wait(5)
                most[0] -= 1
                raise TransportError("auth", "no")
        except TransportError:
            return

    threads = [threading.Thread(target=login, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(5)
    assert len(started) == 3


def test_a_wrong_password_is_tried_on_three_nodes_only(server: Server, tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(10)]
    nodes = {name: server.target(tmp_path, name) for name in names}
    secrets = _secrets(FABRIC_PASSWORD="wrong-one")

    def work(target: Target) -> str:
        with open_session(target, SHELL, secrets) as session:
            return session.run("echo on").output

    found = on_each(names, nodes, work, secrets)
    assert list(found) == names and len(server.logins) == 3
    failures = [one for one in found.values() if isinstance(one, Failure)]
    assert {one.kind for one in failures} == {"auth"} and len(failures) == 10
    assert sum("not tried: " in one.text for one in failures) == 7
    assert not [one for one in failures if "wrong-one" in one.text]


# --- host keys


def test_unknown_and_changed_keys_are_refused_before_the_login(server: Server, tmp_path: Path) -> None:
    target = server.target(tmp_path)
    secrets = _secrets(FABRIC_PASSWORD=PASSWORD)
    (tmp_path / "known_hosts").write_text("# nothing\n")
    error = _refusal(target, secrets)
    assert error.kind == "hostkey" and server.key.fingerprint in error.text
    assert "is not known" in error.text and "fabric hostkeys" in error.text
    other = HostKey("ssh-ed25519", server.key.blob[:-1] + b"x")
    (tmp_path / "known_hosts").write_text(other.line(f"[127.0.0.1]:{server.port}") + "\n")
    assert "changed" in _refusal(target, secrets).text
    line = server.key.line(f"[127.0.0.1]:{server.port}")
    (tmp_path / "known_hosts").write_text(f"{line}\n@revoked {line}\n")
    assert "revoked" in _refusal(target, secrets).text
    assert not server.logins


def test_scan_shows_what_nodes_present_and_record_keeps_other_lines(server: Server, tmp_path: Path) -> None:
    target = server.target(tmp_path)
    path = tmp_path / "known_hosts"
    host = f"[127.0.0.1]:{server.port}"
    old = HostKey("ssh-ed25519", server.key.blob[:-1] + b"x")
    path.write_text(f"# mine\nother,{host} {old.line('x')[2:]}\n{old.line(host)}\n|1|a|b ssh-rsa AAAA\n")
    gone = Target("gone", "127.0.0.1", 1, known_hosts=(path,))
    found = hostkeys.scan({"leaf01": target, "gone": gone})
    presented = found["leaf01"]
    assert isinstance(presented, hostkeys.Presented) and isinstance(found["gone"], Failure)
    assert (presented.state, presented.fingerprint) == ("changed", server.key.fingerprint)
    hostkeys.record(path, [presented])
    assert path.read_text().splitlines() == [
        "# mine",
        f"other {old.line('x')[2:]}",
        "|1|a|b ssh-rsa AAAA",
        server.key.line(host),
    ]
    again = hostkeys.scan({"leaf01": target})["leaf01"]
    assert isinstance(again, hostkeys.Presented) and again.state == "known"
    assert not server.logins


def _hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def test_known_hosts_are_read_as_openssh_does(tmp_path: Path) -> None:
    keys = [HostKey("ssh-ed25519", f"key {number}".encode()) for number in range(7)]
    path = tmp_path / "known_hosts"
    names = ["Leaf01,192.0.2.1", "*.example,!bad.example", _hashed("hidden"), "[leaf01]:2022", "leaf0?"]
    lines = [key.line(name) for key, name in zip(keys, names, strict=False)]
    lines += ["@cert-authority * " + keys[5].line("x")[2:], "broken", "a ssh-rsa !!!", "#c ssh-rsa AAAA"]
    path.write_text("\n".join(lines))

    def known(host: str, port: int = 22) -> tuple[HostKey, ...]:
        return known_hosts.known((path, tmp_path / "none"), host, port).keys

    assert known("leaf01") == (keys[0], keys[4]) and known("192.0.2.1") == (keys[0],)
    assert known("a.example") == (keys[1],) and known("bad.example") == () and known("hidden") == (keys[2],)
    assert known("leaf01", 2022) == (keys[3],) and known("leaf02", 2022) == ()
    path.write_text("")
    assert known("leaf01") == ()


# --- troubles on the way


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_troubles_of_the_network_are_plain_words() -> None:
    secrets = _secrets(FABRIC_PASSWORD=PASSWORD)
    refused = _refusal(Target("a", "127.0.0.1", _free_port()), secrets)
    assert refused.kind == "unreachable" and "connection refused" in refused.text
    unknown = _refusal(Target("a", "no-such-host.invalid"), secrets)
    assert unknown.text == "the name no-such-host.invalid does not resolve"


def test_a_port_that_says_nothing_or_hangs_up() -> None:
    secrets = _secrets(FABRIC_PASSWORD=PASSWORD)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = _refusal(Target("a", *silent.getsockname()), secrets, timeout_s=0.3)
        assert error.kind == "unreachable" and "no SSH" in error.text


def test_a_busy_server_that_hangs_up_before_the_login_is_tried_again(tmp_path: Path) -> None:
    with Server(run_with_sh, hang_up_first=1) as server:
        secrets = _secrets(FABRIC_PASSWORD=PASSWORD)
        with open_session(server.target(tmp_path), SHELL, secrets) as session:
            assert session.run("echo on").output == "on\n"
        assert server.connections == 2


def test_a_refused_login_is_not_tried_again(server: Server, tmp_path: Path) -> None:
    error = _refusal(server.target(tmp_path), _secrets(FABRIC_PASSWORD="wrong"))
    assert error.kind == "auth" and "the login of ops by password was refused" in error.text
    assert server.connections == 1 and len(server.logins) == 1
    nothing = _refusal(server.target(tmp_path), _secrets())
    assert nothing.kind == "auth" and "nothing to log in with" in nothing.text


def test_sockets_send_at_once(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    dial = socket.create_connection

    def noted(*where: Any, **how: Any) -> socket.socket:
        made.append(dial(*where, **how))
        return made[-1]

    monkeypatch.setattr(socket, "create_connection", noted)
    with open_session(server.target(tmp_path), SHELL, _secrets(FABRIC_PASSWORD=PASSWORD)):
        assert made[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# --- many nodes


def test_every_node_has_a_row_whatever_happens(server: Server, tmp_path: Path) -> None:
    secrets = _secrets(FABRIC_PASSWORD=PASSWORD)
    nodes: Mapping[str, Target] = {
        "good": server.target(tmp_path, "good"),
        "down": Target("down", "127.0.0.1", _free_port()),
        "bug": server.target(tmp_path, "bug"),
    }

    def work(target: Target) -> str:
        if target.name == "bug":
            raise ZeroDivisionError(f"never mind {PASSWORD}")
        with open_session(target, SHELL, secrets) as session:
            return session.run("echo on").output

    for _ in range(2):  # nornir leaves a host that failed out of its next run
        found = on_each(["bug", "good", "nowhere", "down"], nodes, work, secrets)
        assert list(found) == ["bug", "good", "nowhere", "down"]
        assert found["good"] == "on\n"
        assert found["nowhere"] == Failure("nowhere", "unreachable", "no address is known")
        assert found["bug"] == Failure("bug", "internal", "ZeroDivisionError: never mind ****")
        assert isinstance(found["down"], Failure) and found["down"].kind == "unreachable"


def test_interrupt_lets_no_further_login_start(
    server: Server, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # A shell starts background jobs with interrupts ignored, and so does what runs below it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    secrets = _secrets(FABRIC_PASSWORD=PASSWORD)
    names = [f"n{number}" for number in range(6)]
    begun = []

    def work(target: Target) -> None:
        begun.append(target.name)
        secrets.gate.wait("x")
        if len(begun) == 1:
            os.kill(os.getpid(), 2)
            secrets.gate.wait("x")
            threading.Event().wait(0.2)

    with pytest.raises(KeyboardInterrupt):
        on_each(names, {name: server.target(tmp_path, name) for name in names}, work, secrets, workers=1)
    with pytest.raises(TransportError, match="interrupted"):
        secrets.gate.wait("x")
