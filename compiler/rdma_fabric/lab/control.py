"""The lab's control socket: one JSON request and one JSON answer per connection.

The socket lies in the lab's 0700 state folder, so the file system decides who may steer the lab.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOCKET = "control.sock"
Handler = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class ControlError(Exception):
    """The lab refused a request, or nobody answered; the text says why."""


def call(state: Path, verb: str, timeout: float = 30.0, **arguments: Any) -> Any:
    """Ask the lab whose state folder this is; raises ControlError."""
    request = json.dumps({"verb": verb, "arguments": arguments}).encode() + b"\n"
    try:
        answer = json.loads(_exchange(state, request, timeout))
    except (OSError, ValueError) as error:
        raise ControlError(f"the lab in {state} does not answer ({error})") from error
    if "error" in answer:
        raise ControlError(str(answer["error"]))
    return answer["value"]


async def serve(state: Path, handler: Handler) -> asyncio.Server:
    """Listen in the state folder; a handler's ControlError becomes the caller's."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer: dict[str, Any] = {"error": "the lab failed: see its server.log"}
        try:
            request = json.loads(await reader.readline())
            answer = {"value": await handler(request["verb"], request["arguments"])}
        except ControlError as error:
            answer = {"error": str(error)}
        finally:
            writer.write(json.dumps(answer).encode() + b"\n")
            writer.close()

    (state / SOCKET).unlink(missing_ok=True)
    with address_of(state / SOCKET) as address:
        return await asyncio.start_unix_server(converse, address, limit=1 << 26)


def _exchange(state: Path, request: bytes, timeout: float) -> bytes:
    with address_of(state / SOCKET) as address, socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(timeout)
        peer.connect(address)
        peer.sendall(request)
        peer.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: peer.recv(1 << 16), b""))


@contextmanager
def address_of(path: Path) -> Iterator[str]:
    """A path short enough for a socket address (108 bytes with Linux, unix(7)) whatever the folder."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        if len(os.fsencode(str(path))) < 100:
            yield str(path)
            return
        short = f"/proc/self/fd/{folder}/{path.name}"
        if not Path(short).parent.is_dir():
            raise OSError(f"the path {path} is too long for a socket; use a folder with a shorter path")
        yield short
    finally:
        os.close(folder)
