"""The way over jump hosts, as both channels go it."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.transport.connection import connect
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.proxy import Through, proxy_command
from rdma_fabric.transport.targets import Target

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from tests.support.ssh_server import Server, run_with_sh

RELAY = """import os, socket, sys, threading
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while data := os.read(0, 65536):
        link.sendall(data)
    os._exit(0)
threading.Thread(target=up, daemon=True).start()
while data := link.recv(65536):
    os.write(1, data)
"""


def target(path: object, host: str = "gpu07.example", port: int = 2222, username: str = "ops") -> Target:
    return Target("gpu07", host, port, username, connection_options={"ssh_config_file": str(path)})


@pytest.mark.parametrize(
    ("config", "command"),
    [
        ("Host other\n  ProxyJump bastion\n", ""),
        ("Host *\n  ProxyJump none\n", ""),
        ("Host *\n  ProxyCommand none\n", ""),
        ("Host *.example\n  ProxyCommand nc -x proxy %h %p\n", "nc -x proxy gpu07.example 2222"),
        ("Host *\n  ProxyCommand exec relay --load=50%% %r\n", "relay --load=50% ops"),
        ("Host *\n  Port 22\n  ProxyCommand nc %h %p\n", "nc gpu07.example 2222"),
        (
            "Host *\n  ProxyJump bastion\n",
            "ssh -F {file} -o BatchMode=yes -W gpu07.example:2222 ssh://bastion",
        ),
        (
            "Host *\n  ProxyJump ops@outer:22022,inner\n",
            "ssh -F {file} -o BatchMode=yes -J ops@outer:22022 -W gpu07.example:2222 ssh://inner",
        ),
        (
            "Host *\n  ProxyJump ssh://ops@outer:22022\n",
            "ssh -F {file} -o BatchMode=yes -W gpu07.example:2222 ssh://ops@outer:22022",
        ),
    ],
)
def test_of_a_configuration(config: str, command: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(config, encoding="utf-8")
    assert proxy_command(target(file)) == command.replace("{file}", str(file))


def test_of_an_address_of_ipv6(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("Host *\n  ProxyJump bastion\n", encoding="utf-8")
    assert "[2001:db8::7]:2222" in shlex.split(proxy_command(target(file, "2001:db8::7")))


def test_without_a_configuration_the_node_is_reached_directly() -> None:
    assert proxy_command(Target("gpu07", "gpu07.example")) == ""


def test_a_configuration_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"SSH configuration .*gone") as error:
        proxy_command(target(tmp_path / "gone"))
    assert error.value.kind == "unreachable"


@pytest.mark.parametrize("line", ["Match host x exec true", "  include more/*"])
def test_what_is_not_followed_is_told(line: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(f"{line}\nHost *\n  ProxyJump bastion\n", encoding="utf-8")
    with pytest.raises(TransportError, match="is not followed"):
        proxy_command(target(file))


# ---------------------------------------------------------------- OpenSSH understands the command


@contextmanager
def jump_host(folder: Path) -> Iterator[int]:
    """Port of a server that forwards to anywhere for the key in `folder`, which ssh_config names."""
    import asyncssh

    key, host_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    key.write_private_key(str(folder / "key"))
    (folder / "key").chmod(0o600)

    class Forwards(asyncssh.SSHServer):
        def connection_requested(self, *_: object) -> bool:
            return True

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    authorized = asyncssh.import_authorized_keys(key.export_public_key().decode())

    async def listen() -> Any:
        return await asyncssh.create_server(
            Forwards, "127.0.0.1", 0, server_host_keys=[host_key], authorized_client_keys=authorized
        )

    listening = asyncio.run_coroutine_threadsafe(listen(), loop).result(10)
    port = listening.get_port()
    public = host_key.export_public_key().decode().strip()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {public}\n", encoding="utf-8")
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(listening.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


@contextmanager
def echo() -> Iterator[int]:
    """Port that gives back the first bytes that it is sent."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(connection.recv(100))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.parametrize("hops", ["bastion", "outer,bastion"])
def test_over_real_jump_hosts(hops: str, tmp_path: Path) -> None:
    if shutil.which("ssh") is None:
        pytest.skip("there is no ssh here")
    file = tmp_path / "config"
    with jump_host(tmp_path) as jump, echo() as port:
        options = f"User ops\n  IdentityFile {tmp_path}/key\n  UserKnownHostsFile {tmp_path}/known\n"
        file.write_text(
            f"Host bastion outer\n  HostName 127.0.0.1\n  Port {jump}\n  IdentityAgent none\n  {options}"
            f"Host * !bastion !outer\n  ProxyJump {hops}\n",
            encoding="utf-8",
        )
        words = shlex.split(proxy_command(target(file, "127.0.0.1", port)))
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b"hello")
        process.stdin.flush()
        answer = process.stdout.read(5)
        process.kill()
        assert answer == b"hello", process.stderr.read()
        process.communicate()


# ---------------------------------------------------------------- a session through it


def through(server: Server, folder: Path, program: str) -> Target:
    file = folder / "config"
    file.write_text(f"Host *\n  ProxyCommand {program}\n", encoding="utf-8")
    return replace(server.target(folder), connection_options={"ssh_config_file": str(file)})


def test_a_session_and_its_end(tmp_path: Path) -> None:
    relay = tmp_path / "relay"
    relay.write_text(RELAY, encoding="utf-8")
    secrets = Secrets({"FABRIC_PASSWORD": "Sesame-42"}, home=tmp_path)
    with Server(run_with_sh) as server:
        node = through(server, tmp_path, f"{sys.executable} {relay} %h %p")
        transport = connect(node, secrets, timeout_s=20.0)
        channel = transport.open_session()
        channel.exec_command("echo there")
        channel.shutdown_write()
        assert channel.makefile().read() == b"there\n"
        assert isinstance(transport.sock, Through)
        process = transport.sock._process
        transport.close()
        assert process.wait(timeout=20) is not None


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            "sh -c 'echo no way through >&2; exit 255'",
            r"(before SSH began|no SSH server answered) \(the proxy says: no way through",
        ),
        ("/nowhere/relay --token=hunter2", "the proxy /nowhere/relay does not start"),
    ],
)
def test_a_proxy_that_leads_nowhere_is_told_at_once(program: str, told: str, tmp_path: Path) -> None:
    secrets = Secrets({"FABRIC_PASSWORD": "Sesame-42"}, home=tmp_path)
    with Server(run_with_sh) as server, pytest.raises(TransportError, match=told) as caught:
        connect(through(server, tmp_path, program), secrets, timeout_s=60.0)
    assert caught.value.kind == "unreachable" and "hunter2" not in str(caught.value)
