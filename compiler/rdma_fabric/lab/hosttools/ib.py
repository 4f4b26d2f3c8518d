"""OpenSM and the InfiniBand tools of a lab host: the machine's real programs, on simulated hardware.

ibsim is reached through sockets of the machine's own network and by process ids, both of which a sandbox
hides. So the tools in the sandbox hand their arguments and streams to an agent that has the sandbox's
files but the machine's network and process ids; it runs the real program with ibsim's preload library.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH103, PTH108, PTH110, PTH118, PTH207

from __future__ import annotations

import glob
import json
import os
import signal
import socket
import subprocess
import sys
import threading

from . import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOCKET = f"{store.RUN}/ib.sock"
REAL = f"{store.RUN}/real"
"""The machine's /usr/sbin, where the host has our stand-ins."""
WORK = f"{store.RUN}/ib"
LIBRARIES = ("/usr/lib/*/umad2sim/libumad2sim.so", "/usr/lib*/umad2sim/libumad2sim.so")
_SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


def main(name: str, arguments: list[str]) -> int:
    """The agent, or the stand-in of the tool of this name."""
    if name == "fabric-ib":
        return serve()
    return stand_in(name, arguments)


# --- in the sandbox ---


def stand_in(name: str, arguments: list[str]) -> int:
    """Have the agent run the tool; signals and the exit status pass through."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(SOCKET)
    except OSError:
        sys.stderr.write(f"{name}: no InfiniBand device on this host\n")
        return 1
    request = json.dumps({"name": name, "arguments": arguments}).encode()
    socket.send_fds(link, [len(request).to_bytes(4, "big") + request], [0, 1, 2])
    for number in _SIGNALS:
        signal.signal(number, lambda got, _frame: link.sendall(bytes([got])))
    answer = b""
    while len(answer) < 4:
        part = link.recv(4 - len(answer))
        if not part:
            return 1
        answer += part
    return int.from_bytes(answer, "big", signed=True)


# --- beside it ---


def serve() -> int:
    """Answer until the lab closes our input."""
    os.makedirs(WORK, exist_ok=True)
    if os.path.exists(SOCKET):
        os.unlink(SOCKET)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(SOCKET)
    listener.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()
    sys.stdin.read()
    os.unlink(SOCKET)
    with _LOCK:
        running = list(_RUNNING)
    for process in running:
        process.terminate()
    for process in running:
        _close(process)
    return 0


_RUNNING: set[subprocess.Popen[bytes]] = set()
_LOCK = threading.Lock()


def _accept(listener: socket.socket) -> None:
    while True:
        link, _ = listener.accept()
        threading.Thread(target=_answer, args=(link,), daemon=True).start()


def _answer(link: socket.socket) -> None:
    data, handles, _, _ = socket.recv_fds(link, 1 << 16, 3)
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        data += link.recv(1 << 16)
    request = json.loads(data[4:])
    try:
        process = _start(request["name"], request["arguments"], handles)
    except OSError as error:
        os.write(handles[2], f"{request['name']}: {error.strerror}\n".encode())
        link.sendall((127).to_bytes(4, "big"))
        link.close()
        return
    finally:
        for handle in handles:
            os.close(handle)
    with _LOCK:
        _RUNNING.add(process)
    threading.Thread(target=_signals, args=(link, process), daemon=True).start()
    status = process.wait()
    with _LOCK:
        _RUNNING.discard(process)
    try:
        link.sendall(status.to_bytes(4, "big", signed=True))
        link.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the stand-in was killed
    link.close()


def _signals(link: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Pass signals on; a stand-in that is gone takes its program with it."""
    while True:
        try:
            number = link.recv(1)
        except OSError:
            number = b""
        if process.poll() is not None:
            return
        if not number:
            _close(process)
            return
        process.send_signal(number[0])


def _close(process: subprocess.Popen[bytes]) -> None:
    """End a program whose stand-in was killed.

    A kernel takes a dead process's registrations off the port (IsSM among them); ibsim only does when the
    process says goodbye, which it does on SIGTERM.
    """
    process.terminate()
    try:
        process.wait(3.0)
    except subprocess.TimeoutExpired:
        process.kill()


def _start(name: str, arguments: list[str], handles: list[int]) -> subprocess.Popen[bytes]:
    ports: dict[str, Any] = store.facts()["ib"]
    device, words = _device(ports, arguments)
    command = _command(name, words)
    library = next(path for pattern in LIBRARIES for path in glob.glob(pattern))
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "UMAD" if command[0] == "/bin/sh" else "LD_PRELOAD": library,
        "SIM_HOST": device,
        "IBSIM_SOCKNAME": os.environ["IBSIM_SOCKNAME"],
    }
    return subprocess.Popen(
        command,
        stdin=handles[0],
        stdout=handles[1],
        stderr=handles[2],
        env=environment,
        cwd=WORK,
        start_new_session=True,
    )


_QUERY = """
timeout 4 env LD_PRELOAD=$UMAD "$@" || {
    status=$?
    [ $status != 124 ] || { echo "$0: Connection timed out" >&2; status=110; }
    exit $status
}
"""
"""A request that nobody answers is ended by the kernel, and by nobody in the preload library."""
_EVERY_NODE = (
    _QUERY.replace('"$@"', '"$@" >/dev/null')
    + """
timeout 20 env LD_PRELOAD=$UMAD "${1%/*}/ibnetdiscover" -p | awk '
    $4 ~ /^0x/ && !seen[$4]++ {
        printf "NodeRecord dump:\\n\\t\\tlid.....................%d\\n", $2
        printf "\\t\\tnode_type...............%s\\n", $1 == "SW" ? "Switch" : "Channel Adapter"
        printf "\\t\\tport_guid...............%s\\n", $4
    }'
"""
)
"""An answer of several MADs is put together by the kernel (RMPP), and by nobody in the preload library: the
records of all nodes are written from what the ports say, once OpenSM has answered at all."""


def _command(name: str, words: list[str]) -> list[str]:
    """The real program, with what a kernel does for it."""
    found = [os.path.join(REAL, name), *words]
    if name == "saquery" and words[-1:] in (["NR"], ["NodeRecord"]):
        return ["/bin/sh", "-c", _EVERY_NODE, name, *found]
    return ["/bin/sh", "-c", _QUERY, name, *found] if name in ("saquery", "sminfo", "smpquery") else found


def _device(ports: dict[str, Any], arguments: list[str]) -> tuple[str, list[str]]:
    """Which adapter is meant, and the arguments with the only name that the preload library knows."""
    by_name = {one["ibdev"]: one["adapter"] for one in ports.values() if one["ibdev"]}
    by_guid = {int(one["guid"], 16): one["adapter"] for one in ports.values()}
    chosen = next(iter(ports.values()))["adapter"]
    words = []
    for word in arguments:
        if word in by_name:
            chosen = by_name[word]
            words.append("ibsim0")
            continue
        if word.startswith("0x") and len(word) == 18 and int(word, 16) in by_guid and "--guid" in arguments:
            chosen = by_guid[int(word, 16)]
        words.append(word)
    return chosen, words
