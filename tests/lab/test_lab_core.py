"""The lab's listener, control socket, breaks and files, on a small device made for this test."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import paramiko
import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.lab import addresses, channels, control, fabric, server
from rdma_fabric.lab.breaks import Break, BreakError, parts
from rdma_fabric.lab.fabric import LabError, LabNode
from rdma_fabric.lab.hosttools.health import Health
from rdma_fabric.lab.simulators._contract import Clock, Device, DeviceFacts, PortFact, Reply, Result, Session
from rdma_fabric.lab.terminal import Editor
from tests.lab.hostlab import why_not

PASSWORD = "hunter2-of-the-lab"


class _Login(Session):
    banner = "Welcome"

    def __init__(self, device: _Device) -> None:
        self._device = device
        self._asks = False

    def prompt(self) -> str:
        return "Password: " if self._asks else f"{self._device.facts.name}# "

    def secret(self) -> bool:
        return self._asks

    def run(self, line: str) -> Reply:
        if self._asks:
            self._asks = False
            return Reply("in" if line == "open" else "out")
        if line == "enable":
            self._asks = True
            return Reply()
        if line == "exit":
            return Reply("bye", close=True)
        return Reply(self._device.do(line))

    def closed(self) -> None:
        self._device.log.append("closed")


class _Device(Device):
    def __init__(self, facts: DeviceFacts, clock: Clock, health: Health) -> None:
        super().__init__(facts, clock, health=health)
        self.log: list[str] = list(facts.seed)

    def do(self, line: str) -> str:
        self.log.append(line)
        return f"did {line}" if line else ""

    def open(self, user: str) -> Session:
        return _Login(self)

    def execute(self, user: str, command: str) -> Result:
        self.log.append(command)
        return Result(f"{user}: {command}\n", "warn\n", 3 if command == "false" else 0)

    def tick(self) -> None:
        return

    def reboot(self) -> None:
        self.log = [*self.facts.seed, "rebooted"]

    def refusal(self, line: str) -> str:
        return f"% no {line}"

    def commits(self, line: str) -> bool:
        return line.startswith("commit")

    def somebody(self, lines: tuple[str, ...]) -> str:
        return "\n".join(self.do(line) for line in lines)

    def running(self) -> str:
        return "\n".join(self.log)

    def dump(self) -> dict[str, Any]:
        return {"log": self.log}

    def restore(self, data: Mapping[str, Any]) -> None:
        self.log = list(data["log"])


class _Sandbox:
    """A host without a sandbox: this machine's shell."""

    def __init__(self) -> None:
        self.starts = 0

    def start(self) -> None:
        self.starts += 1

    def stop(self) -> None:
        return

    def erase(self) -> None:
        return

    def argv(self, command: str | None, user: str = "root") -> list[str]:
        return ["/bin/sh", "-i"] if command is None else ["/bin/sh", "-c", command]

    def sftp_argv(self) -> list[str]:
        return ["/usr/lib/openssh/sftp-server"]

    def tell(self, health: Mapping[str, Any]) -> None:
        self.health = health


class _Lab:
    """A lab in a thread of this process, so that the devices can be looked into."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clients: list[paramiko.SSHClient] = []
        state = fabric._prepare(directory)
        plans = [LabNode(DeviceFacts(name, "toy", seed=("foreign",)), mgmt="192.0.2.1") for name in "ab"]
        plans.append(LabNode(DeviceFacts("h", "linux"), "host"))
        plans.append(LabNode(DeviceFacts("odd", "abacus")))
        self._loop = asyncio.new_event_loop()
        self.lab = server.Lab(state, plans, PASSWORD)
        self._up = threading.Event()
        self._lock = server._lock(state)
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(state),))
        self._thread.start()
        assert self._up.wait(20)

    async def _serve(self, state: Path) -> None:
        await self.lab.start()
        listener = await control.serve(state, self.lab.control)
        self._up.set()
        await self.lab.stopped.wait()
        listener.close()
        await self.lab.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self.lab.stop, False)
        self._thread.join(20)
        os.close(self._lock)

    def log(self, node: str = "a") -> list[str]:
        return fabric.running(self.directory, node).splitlines()

    def connect(self, node: str = "a", **how: Any) -> paramiko.SSHClient:
        client = paramiko.SSHClient()
        self.clients.append(client)
        client.load_host_keys(str(fabric.known_hosts(self.directory)))
        where = fabric.endpoints(self.directory)[node]
        how = how or {"key_filename": where.key_file}
        client.connect(where.host, where.port, "ops", look_for_keys=False, allow_agent=False, **how)
        return client


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Lab]:
    with pytest.MonkeyPatch.context() as patch:
        known = {"toy": _Device}

        def device_class(platform: str) -> type[Device]:
            if platform not in known:
                raise LookupError(f"no simulator for platform '{platform}'")
            return known[platform]

        patch.setattr(channels, "device_class", device_class)
        patch.setattr(server, "device_class", device_class)
        patch.setattr(server, "make_host", lambda plan, folder: _Sandbox())
        made = _Lab(tmp_path_factory.mktemp("lab"))
        yield made
        made.close()


@pytest.fixture(autouse=True)
def mended(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "lab" in request.fixturenames:
        found: _Lab = request.getfixturevalue("lab")
        for node in ("a", "b", "h"):
            fabric.mend(found.directory, node)
        while found.clients:
            found.clients.pop().close()
        _until(lambda: not any(_connections(found, node) for node in ("a", "b", "h")))


def _read(channel: paramiko.Channel, until: str, seconds: float = 5.0) -> str:
    channel.settimeout(seconds)
    text = ""
    while not text.endswith(until):
        data = channel.recv(4096)
        if not data:
            raise EOFError(text)
        text += data.decode()
    return text


def _shell(client: paramiko.SSHClient) -> paramiko.Channel:
    channel = client.invoke_shell()
    assert _read(channel, "# ").startswith("Welcome\r\n")
    return channel


def _run(client: paramiko.SSHClient, command: str) -> tuple[int, str, str]:
    _, out, err = client.exec_command(command, timeout=10)
    text, errors = out.read().decode(), err.read().decode()
    return out.channel.recv_exit_status(), text, errors


# --- logins --------------------------------------------------------------------------------------


def test_key_and_password_open_the_door_and_nothing_else_does(lab: _Lab) -> None:
    lab.connect().close()
    lab.connect(password=PASSWORD).close()
    with pytest.raises(paramiko.AuthenticationException):
        lab.connect(password="wrong")
    with pytest.raises(paramiko.AuthenticationException):
        lab.connect(pkey=paramiko.ECDSAKey.generate())
    found = fabric.status(lab.directory)
    assert found is not None and found.nodes["a"].refused_logins >= 2


def test_every_device_has_its_own_host_key_and_the_known_hosts_say_so(lab: _Lab) -> None:
    lines = fabric.known_hosts(lab.directory).read_text().splitlines()
    assert len({line.split()[2] for line in lines}) == len(lines) == 3
    client = paramiko.SSHClient()
    lab.clients.append(client)
    where = fabric.endpoints(lab.directory)["a"]
    with pytest.raises(paramiko.SSHException, match="not found in known_hosts"):
        client.connect(where.host, where.port, "ops", key_filename=where.key_file, allow_agent=False)


def test_state_is_closed_to_others_and_holds_no_password(lab: _Lab) -> None:
    lab.connect(password=PASSWORD).close()
    state = fabric.state_folder(lab.directory)
    assert stat.S_IMODE(state.stat().st_mode) == stat.S_IMODE(state.parent.stat().st_mode) == 0o700
    assert (state.parent / ".gitignore").read_text() == "*\n"
    assert stat.S_IMODE((state / fabric.KEY).stat().st_mode) == 0o600
    files = [path for path in state.parent.rglob("*") if path.is_file()]
    assert files and not [path for path in files if PASSWORD.encode() in path.read_bytes()]


def test_nodes_without_a_simulator_are_skipped_with_the_reason(lab: _Lab) -> None:
    found = fabric.status(lab.directory)
    assert found is not None
    assert set(found.nodes) == {"a", "b", "h"} and found.nodes["a"].mgmt == "192.0.2.1"
    assert found.skipped == {"odd": "no simulator for platform 'abacus'"}


# --- shells and commands -------------------------------------------------------------------------


def test_a_shell_echoes_as_typed_and_answers_line_by_line(lab: _Lab) -> None:
    client = lab.connect()
    channel = _shell(client)
    channel.send(b"sho")
    assert _read(channel, "sho") == "sho"
    channel.send(b"w\r")
    assert _read(channel, "# ") == "w\r\ndid show\r\na# "
    channel.send(b"one\r\ntwo\nthree\r")
    text = _read(channel, "three\r\na# ")
    assert text == "one\r\ndid one\r\na# two\r\ndid two\r\na# three\r\ndid three\r\na# "
    channel.send(b"exit\r")
    assert _read(channel, "bye\r\n") == "exit\r\nbye\r\n"
    assert channel.recv(10) == b"" and channel.recv_exit_status() == 0


def test_a_password_prompt_is_not_echoed_and_not_logged(lab: _Lab) -> None:
    client = lab.connect()
    channel = _shell(client)
    channel.send(b"enable\n")
    assert _read(channel, ": ") == "enable\r\nPassword: "
    channel.send(b"open\n")
    assert _read(channel, "# ") == "\r\nin\r\na# "
    lines = [entry.line for entry in fabric.sessions(lab.directory, "a")]
    assert lines[-2:] == ["enable", "(secret)"]


def test_without_a_terminal_there_is_no_echo_and_no_carriage_return(lab: _Lab) -> None:
    client = lab.connect()
    channel = client.get_transport().open_session()  # type: ignore[union-attr]
    channel.invoke_shell()
    channel.sendall(b"one\nexit\n")
    assert _read(channel, "bye\n") == "Welcome\na# did one\na# bye\n"


def test_exec_gives_both_streams_and_the_status(lab: _Lab) -> None:
    client = lab.connect("b")
    assert _run(client, "date") == (0, "ops: date\n", "warn\n")
    assert _run(client, "false") == (3, "ops: false\n", "warn\n")
    entry = fabric.sessions(lab.directory, "b")[-1]
    assert (entry.user, entry.channel, entry.line) == ("ops", "exec", "false")


def test_files_go_both_ways_by_sftp(lab: _Lab, tmp_path: Path) -> None:
    client = lab.connect("b")
    content = os.urandom(200_000)
    with client.open_sftp() as sftp:
        with sftp.open("/tmp/x/plan.json", "wb") as file:
            file.write(content)
        assert sftp.stat("/tmp/x/plan.json").st_size == len(content)
        assert sftp.listdir("/tmp/x") == ["plan.json"]
        with sftp.open("/tmp/x/plan.json", "rb") as file:
            assert file.read() == content
        sftp.posix_rename("/tmp/x/plan.json", "note")
        assert sftp.normalize("note") == "/home/ops/note"
        sftp.remove("note")
        with pytest.raises(FileNotFoundError):
            sftp.open("/home/ops/note")
        sftp.mkdir("/tmp/y")
        with pytest.raises(OSError, match="exists"):
            sftp.mkdir("/tmp/y")
        sftp.rmdir("/tmp/y")


# --- breaks --------------------------------------------------------------------------------------


def test_refuse_and_ignore_work_on_matching_lines_only(lab: _Lab) -> None:
    fabric.break_(lab.directory, "a", "refuse", "^mtu")
    fabric.break_(lab.directory, "a", "ignore", "pfc", times=1)
    client = lab.connect()
    channel = _shell(client)
    channel.send(b"mtu 9000\nset pfc\nset pfc on\nother\n")
    text = _read(channel, "did other\r\na# ")
    assert "% no mtu 9000" in text and "did mtu" not in text
    assert "did set pfc\r\n" not in text and "did set pfc on\r\n" in text
    fabric.mend(lab.directory, "a", "refuse")
    channel.send(b"mtu 1\n")
    assert "did mtu 1" in _read(channel, "# ")


def test_exec_commands_are_broken_piece_by_piece(lab: _Lab) -> None:
    fabric.break_(lab.directory, "b", "refuse", "^bad")
    client = lab.connect("b")
    assert _run(client, "one; two && bad x && three") == (1, "ops: one; two\n", "warn\n% no bad x\n")
    status, out, _ = _run(client, "bad x; echo $?")
    assert (status, out) == (0, "ops: echo 1\n")
    assert _run(client, "bad x || rescue")[1] == "ops: rescue\n"


@pytest.mark.parametrize("after", [False, True])
def test_drop_cuts_the_connection(lab: _Lab, after: bool) -> None:
    fabric.break_(lab.directory, "a", "drop", "fatal", after=after, times=1)
    before = lab.log().count("fatal")
    channel = _shell(lab.connect())
    channel.send(b"fatal\nlater\n")
    with pytest.raises(EOFError):
        _read(channel, "later\r\n")
    _until(lambda: lab.log()[-1] == "closed")
    assert lab.log().count("fatal") == before + after
    assert "later" not in lab.log()


def test_hold_waits_at_the_commit_until_released(lab: _Lab) -> None:
    fabric.break_(lab.directory, "a", "hold")
    client = lab.connect()
    channel = _shell(client)
    channel.send(b"commit 1\n")
    assert _read(channel, "commit 1\r\n")
    _until(lambda: _held(lab) == ("commit 1",))
    assert "commit 1" not in lab.log()
    assert fabric.release(lab.directory, "a") == 1
    assert _read(channel, "# ") == "did commit 1\r\na# "
    channel.send(b"commit 2\n")
    assert "did commit 2" in _read(channel, "# ")


def test_a_held_line_runs_although_its_client_is_gone(lab: _Lab) -> None:
    fabric.break_(lab.directory, "a", "hold")
    client = lab.connect()
    channel = _shell(client)
    channel.send(b"commit 3\nafter it\n")
    _until(lambda: _held(lab) == ("commit 3",))
    client.close()
    _until(lambda: not _connections(lab))
    assert "commit 3" not in lab.log()
    fabric.release(lab.directory, "a")
    _until(lambda: lab.log()[-2:] == ["commit 3", "closed"])
    assert "after it" not in lab.log()


def test_hold_after_running_keeps_back_the_answer_only(lab: _Lab) -> None:
    fabric.break_(lab.directory, "a", "hold", "^commit 4", after=True)
    client = lab.connect()
    channel = _shell(client)
    channel.send(b"commit 4\n")
    _until(lambda: _held(lab) == ("commit 4",))
    assert lab.log()[-1] == "commit 4"
    fabric.mend(lab.directory, "a")
    assert "did commit 4" in _read(channel, "# ")


def test_unreachable_refuses_and_cuts_until_mended(lab: _Lab) -> None:
    client = lab.connect()
    channel = _shell(client)
    fabric.break_(lab.directory, "a", "unreachable")
    with pytest.raises(EOFError):
        _read(channel, "never")
    with pytest.raises(paramiko.ssh_exception.NoValidConnectionsError):
        lab.connect()
    lab.connect("b").close()
    fabric.mend(lab.directory, "a")
    lab.connect().close()


def test_slow_delays_every_answer(lab: _Lab) -> None:
    fabric.break_(lab.directory, "a", "slow", seconds=0.3)
    client = lab.connect()
    channel = _shell(client)
    start = time.monotonic()
    channel.send(b"one\n")
    _read(channel, "# ")
    assert time.monotonic() - start >= 0.3


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (("melt",), "unknown break"),
        (("refuse",), "needs a regular expression"),
        (("drop", "("), "not a regular expression"),
        (("slow",), "number of seconds"),
        (("hold", "x", 1.0), "number of seconds"),
        (("unreachable", "x"), "takes no regular expression"),
        (("refuse", "x", 0.0, True), "can come after"),
        (("drop", "x", 0.0, False, -1), "negative"),
    ],
)
def test_breaks_that_cannot_be_are_refused(fault: tuple[Any, ...], says: str) -> None:
    with pytest.raises(BreakError, match=says):
        Break(*fault)


def test_the_api_says_what_it_cannot_do(lab: _Lab, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no node nobody"):
        fabric.reboot(lab.directory, "nobody")
    with pytest.raises(LabError, match="unknown break"):
        fabric.break_(lab.directory, "a", "melt")
    with pytest.raises(LabError, match="without candidates"):
        fabric.break_(lab.directory, "h", "hold")
    with pytest.raises(LabError, match="is a host"):
        fabric.running(lab.directory, "h")
    with pytest.raises(LabError, match="no lab is up"):
        fabric.running(tmp_path, "a")
    with pytest.raises(LabError, match="already up"):
        fabric.up(lab.directory, [])


# --- people, power -------------------------------------------------------------------------------


def test_somebody_types_on_switch_and_host(lab: _Lab) -> None:
    assert fabric.somebody(lab.directory, "b", ["x", "y"]) == "did x\ndid y"
    assert fabric.somebody(lab.directory, "h", ["A=5", "echo $A"]) == "5\n"


def test_reboot_cuts_loses_and_comes_back(lab: _Lab) -> None:
    client = lab.connect("b")
    channel = client.invoke_shell()
    _read(channel, "# ")
    fabric.reboot(lab.directory, "b", seconds=0.3)
    with pytest.raises(EOFError):
        _read(channel, "never")
    with pytest.raises(paramiko.ssh_exception.NoValidConnectionsError):
        lab.connect("b")
    assert lab.log("b")[:2] == ["foreign", "rebooted"]
    _until(lambda: _reachable(lab, "b"))
    lab.connect("b").close()


# --- hosts ---------------------------------------------------------------------------------------


def test_a_host_runs_commands_with_piped_input_and_binary_output(
    lab: _Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRIC_LAB_SECRET", "stays outside")
    client = lab.connect("h")
    stdin, out, _ = client.exec_command("cat; exit 7", timeout=10)
    content = os.urandom(300_000)

    def feed() -> None:
        stdin.write(content)
        stdin.channel.shutdown_write()

    threading.Thread(target=feed).start()
    assert out.read() == content
    assert out.channel.recv_exit_status() == 7
    assert _run(client, "echo no >&2; kill -9 $$") == (137, "", "no\n")
    assert _run(client, "echo $FABRIC_LAB_SECRET-$HOME")[1] == "-\n"


def test_a_host_gives_a_real_terminal_when_asked(lab: _Lab) -> None:
    client = lab.connect("h")
    channel = client.invoke_shell(term="vt100", width=99, height=33)
    channel.send(b"stty size; tty; echo $TERM; exit 4\n")
    text = _all(channel)
    assert "33 99" in text and "/dev/pts/" in text and "vt100" in text
    assert channel.recv_exit_status() == 4


def test_a_host_serves_sftp_by_its_own_server(lab: _Lab, tmp_path: Path) -> None:
    if not Path(_Sandbox().sftp_argv()[0]).exists():
        pytest.skip("openssh-sftp-server is not installed")
    client = lab.connect("h")
    with client.open_sftp() as sftp, sftp.open(str(tmp_path / "x"), "wb") as file:
        file.write(b"abc")
    assert (tmp_path / "x").read_bytes() == b"abc"


def test_breaks_work_on_commands_of_hosts(lab: _Lab, tmp_path: Path) -> None:
    client = lab.connect("h")
    fabric.break_(lab.directory, "h", "refuse", "mlnx_qos")
    assert _run(client, "mlnx_qos -i eth0") == (1, "", "mlnx_qos: Operation not permitted\n")
    fabric.break_(lab.directory, "h", "ignore", "touch")
    assert _run(client, f"touch {tmp_path}/never") == (0, "", "")
    fabric.break_(lab.directory, "h", "drop", "mark", after=True)
    with pytest.raises((EOFError, paramiko.SSHException, OSError)):
        _run(client, f"echo 1 > {tmp_path}/mark")
        client.exec_command("true")
    assert (tmp_path / "mark").exists() and not (tmp_path / "never").exists()


# --- the background process ----------------------------------------------------------------------


def test_up_and_down_of_a_process_of_its_own(tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 20) / ("name" * 20)  # beyond what a socket address holds
    deep.mkdir(parents=True)
    info = fabric.up(deep, [LabNode(DeviceFacts("odd", "abacus"))], password=PASSWORD)
    try:
        assert info.pid != os.getpid() and list(info.skipped) == ["odd"]
        command = Path(f"/proc/{info.pid}/cmdline").read_bytes()
        assert PASSWORD.encode() not in command
        with pytest.raises(LabError, match="already up"):
            fabric.up(deep, [])
    finally:
        assert fabric.down(deep)
    assert fabric.status(deep) is None and not fabric.down(deep)
    assert not (info.state / fabric.KEY).exists()


def test_a_mixed_lab_of_a_switch_and_a_sandboxed_host(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    switch = LabNode(
        DeviceFacts("leaf01", "arista_eos", ports=(PortFact("Ethernet1/1", 400, peer_node="gpu01"),))
    )
    host = LabNode(DeviceFacts("gpu01", "linux", ports=(PortFact("eth0", 400),)), "host")
    info = fabric.up(tmp_path, [switch, host])
    try:
        assert not info.skipped
        assert "hostname leaf01" in fabric.running(tmp_path, "leaf01")
        assert (
            fabric.somebody(tmp_path, "gpu01", ["hostname", "cat /sys/class/net/eth0/mtu"]) == "gpu01\n1500\n"
        )
        fabric.somebody(tmp_path, "gpu01", ["ip link set eth0 mtu 4200", "echo kept > /etc/note"])
        fabric.reboot(tmp_path, "gpu01")
        lines = ["cat /etc/note", "cat /sys/class/net/eth0/mtu"]
        assert fabric.somebody(tmp_path, "gpu01", lines) == "kept\n1500\n"
        fabric.down(tmp_path)
        fabric.up(tmp_path, [switch, host])
        assert "No such file" in fabric.somebody(tmp_path, "gpu01", ["cat /etc/note"])
    finally:
        fabric.down(tmp_path)


def test_down_ends_a_server_that_does_not_answer(tmp_path: Path) -> None:
    info = fabric.up(tmp_path, [])
    (info.state / control.SOCKET).unlink()
    assert fabric.down(tmp_path)
    assert fabric.status(tmp_path) is None


def test_two_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    node = LabNode(DeviceFacts("a", "toy"))
    with pytest.raises(LabError, match="same name"):
        fabric.up(tmp_path, [node, node])


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is not a folder"):
        fabric.up(tmp_path / "none", [])


def test_nodes_survive_the_way_to_the_server() -> None:
    facts = DeviceFacts("a", "toy", "m", "1", (PortFact("Ethernet1", 400, peer_node="b"),), ("x",))
    node = LabNode(facts, "host", "192.0.2.7", {"nics": {"eth0": "mlx5"}})
    assert LabNode.from_json(json.loads(json.dumps(node.to_json()))) == node


# --- addresses -----------------------------------------------------------------------------------


def test_addresses_are_distinct_and_on_loopback() -> None:
    found = {addresses.address(number) for number in range(64_000)}
    assert len(found) == 64_000
    assert addresses.address(0) == "127.66.0.1" and addresses.address(62_500) == "127.67.0.1"


def test_one_port_for_all_addresses_or_one_address_with_many_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = addresses.bind(3)
    names = [one.getsockname() for one in sockets]
    for one in sockets:
        one.close()
    plain = addresses.bound

    def only_one_address(host: str, port: int) -> socket.socket:
        if host != "127.0.0.1":
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return plain(host, port)

    monkeypatch.setattr(addresses, "bound", only_one_address)
    sockets = addresses.bind(3)
    others = [one.getsockname() for one in sockets]
    for one in sockets:
        one.close()
    if names[0][0] != "127.0.0.1":
        assert len({port for _, port in names}) == 1 and len({host for host, _ in names}) == 3
    assert len({port for _, port in others}) == 3 and {host for host, _ in others} == {"127.0.0.1"}


# --- pieces --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        (b"a\rb\nc\r\nd", ["a", "b", "c"]),
        (b"abc\x7f\x08x\r", ["ax"]),
        (b"one two\x17three\r", ["one three"]),
        (b"junk\x15clean\r", ["clean"]),
        (b"\x1b[200~in\x1b[A\x1bOBside\x1b[201~\r", ["inside"]),
        ("gr\u00fc\u00dfe\r".encode(), ["gr\u00fc\u00dfe"]),
        (b"a\tb\r\r\n", ["a\tb", ""]),
    ],
)
def test_the_editor_makes_lines(typed: bytes, lines: list[str]) -> None:
    editor = Editor()
    found = []
    for at in range(len(typed)):  # byte by byte, as the slowest client would
        editor.feed(typed[at : at + 1])
        while (event := editor.next(False)).key == "line":
            found.append(event.line)
    assert found == lines


def test_the_editor_shows_what_it_does() -> None:
    editor = Editor()
    editor.feed(b"ab\x7fc\x03\x04")
    first = editor.next(False)
    assert (first.key, first.echo) == ("cancel", "ab\b \bc^C\r\n")
    assert editor.next(False).key == "end"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("a; b", [("", "a; b", False)]),
        ("a && bad; c", [("", "a", False), ("&&", "bad", True), (";", "c", False)]),
        ("echo 'bad; x' || y", [("", "echo 'bad; x'", True), ("||", "y", False)]),
        ("for i in 1 2; do bad; done", [("", "for i in 1 2; do bad; done", True)]),
        ("cat <<E\nbad;\nE", [("", "cat <<E\nbad;\nE", True)]),
        ("a\nbad\n", [("", "a", False), ("\n", "bad", True)]),
        ("a \\; bad | tee x", [("", "a \\; bad | tee x", True)]),
    ],
)
def test_commands_are_cut_where_a_shell_would(command: str, found: list[tuple[str, str, bool]]) -> None:
    cut = parts(command, lambda text: "bad" in text)
    assert [(part.joint, part.text, part.broken) for part in cut] == found


# --- help ----------------------------------------------------------------------------------------


def _until(true: Any, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def _held(lab: _Lab, node: str = "a") -> tuple[str, ...]:
    found = fabric.status(lab.directory)
    assert found is not None
    return found.nodes[node].held


def _connections(lab: _Lab, node: str = "a") -> int:
    found = fabric.status(lab.directory)
    assert found is not None
    return found.nodes[node].connections


def _reachable(lab: _Lab, node: str) -> bool:
    where = fabric.endpoints(lab.directory)[node]
    with socket.socket() as probe:
        return probe.connect_ex((where.host, where.port)) == 0


def _all(channel: paramiko.Channel) -> str:
    channel.settimeout(5)
    return b"".join(iter(lambda: channel.recv(4096), b"")).decode()
