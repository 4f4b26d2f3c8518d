"""The way over jump hosts: one command for all channels, so that they cannot go different ways.

Only the proxy is taken from `ssh_config_file` of the connection options (as netmiko does); address, port,
user and keys are those of the inventory and the secrets.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Final

from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.targets import Target

OPTION: Final = "ssh_config_file"
_NOT_FOLLOWED: Final = re.compile(r"^[ \t]*(?:include\b|match\b.*\bexec\b).*$", re.IGNORECASE | re.MULTILINE)
"""paramiko passes over the one in silence, and runs programs for the other."""


def proxy_command(target: Target) -> str:
    """A program whose input and output are the node's SSH port; "" where the node is reached directly."""
    path = target.connection_options.get(OPTION)
    if not path:
        return ""
    import paramiko

    file = Path(str(path)).expanduser().absolute()
    # The first value counts (ssh_config(5)): %p and %r are then those of the inventory.
    head = f"Port {target.port}\n" + (f"User {target.username}\n" if target.username else "")
    try:
        text = file.read_text(encoding="utf-8")
        if other := _NOT_FOLLOWED.search(text):
            raise TransportError(
                "unreachable", f"SSH configuration {path}: {other[0].strip()!r} is not followed; use Host"
            )
        found = paramiko.SSHConfig.from_text(head + text).lookup(target.host)
    except (OSError, UnicodeDecodeError, paramiko.SSHException) as error:
        raise TransportError("unreachable", f"SSH configuration {path}: {error}") from error
    command = found.get("proxycommand")
    if command:  # without a shell, as paramiko runs it: `exec` has nothing to replace
        return str(command).replace("%%", "%").removeprefix("exec ")
    jump = str(found.get("proxyjump", ""))
    return _jump(target, file, jump) if jump and jump != "none" else ""


def _jump(target: Target, file: Path, hops: str) -> str:
    """As ssh(1) carries ProxyJump out: the last hop forwards to the node, the others lead to it."""
    *first, last = (hop.strip() for hop in hops.split(","))
    host = f"[{target.host}]" if ":" in target.host else target.host
    words = ["ssh", "-F", str(file), "-o", "BatchMode=yes"]
    words += ["-J", ",".join(first)] if first else []
    words += ["-W", f"{host}:{target.port}", last if last.startswith("ssh://") else f"ssh://{last}"]
    return shlex.join(words)


class Through(socket.socket):
    """A socket to a program that leads to the node; it ends when the program does, and the program with it.

    Not paramiko's ProxyCommand, which takes the end of its program for an answer that is still to come.
    """

    def __init__(self, command: str) -> None:
        """OSError or ValueError when the command cannot be started."""
        words = shlex.split(command)
        self._complaint = ""
        ours, theirs = socket.socketpair()
        super().__init__(fileno=ours.detach())
        with theirs:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the socket
            try:
                self._process = subprocess.Popen(
                    words, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=self._errors
                )
            except (OSError, IndexError):
                self._errors.close()
                super().close()
                raise

    def said(self) -> str:
        """The last line that the program complained with; "" for none."""
        if not self._errors.closed:
            self._errors.seek(0)
            self._complaint = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2].strip()
        return self._complaint

    def close(self) -> None:
        """Ends the program too."""
        super().close()
        if not self._errors.closed:
            self.said()
            self._errors.close()
            self._process.terminate()
            threading.Thread(target=self._process.wait, daemon=True).start()
