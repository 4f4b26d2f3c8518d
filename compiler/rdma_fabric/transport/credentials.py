"""Secrets: from the environment, the SSH agent, key files, or a command that prints them.

FABRIC_USERNAME, FABRIC_PASSWORD, FABRIC_PASSWORD_<GROUP> (a group of the inventory, capitals, other
characters as "_"), FABRIC_PASSWORD_COMMAND (run once, without a shell, its first line is the
password), FABRIC_ENABLE_PASSWORD, FABRIC_KEY_FILE.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.limits import LoginGate
from rdma_fabric.transport.targets import Target

if TYPE_CHECKING:
    import paramiko

_COMMAND_S = 60.0
_SHORTEST = 3  # Masking one or two letters would destroy every text and hide nothing.
_USUAL_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")  # in the order of ssh(1), IdentityFile


class Secrets:
    """What a run may log in with. Never shown, never in an argument list; shared by all its threads."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        gate: LoginGate | None = None,
        home: Path | None = None,
    ) -> None:
        self._environment = dict(os.environ if environment is None else environment)
        self._home = home or Path.home()
        self._lock = threading.Lock()
        self._printed: str | None = None
        self._keys: dict[Path, paramiko.PKey] = {}
        self.gate = gate or LoginGate()

    def __repr__(self) -> str:
        return "Secrets(...)"

    def __reduce__(self) -> str:
        raise TypeError("secrets are not written anywhere")

    def username(self, target: Target) -> str:
        """The inventory's user name, FABRIC_USERNAME, or the current user's."""
        return target.username or self._environment.get("FABRIC_USERNAME") or getpass.getuser()

    def password(self, target: Target) -> str:
        """The password of the node's first group that has one, or of all, or as printed; "" for none."""
        for group in target.groups:
            found = self._environment.get(_variable(group))
            if found:
                return found
        return self._environment.get("FABRIC_PASSWORD") or self._from_command()

    def enable_password(self) -> str:
        """The secret of privileged mode; "" for none."""
        return self._environment.get("FABRIC_ENABLE_PASSWORD", "")

    def agent(self, target: Target) -> bool:
        """True when the SSH agent may be asked: the node names no key file of its own."""
        return not target.key_files and bool(self._environment.get("SSH_AUTH_SOCK"))

    def key_files(self, target: Target) -> tuple[Path, ...]:
        """Key files in the order of trial; the user's usual ones when none is named."""
        named = [Path(text).expanduser() for text in target.key_files]
        if not named and self._environment.get("FABRIC_KEY_FILE"):
            named = [Path(self._environment["FABRIC_KEY_FILE"]).expanduser()]
        if named:
            return tuple(named)
        usual = (self._home / ".ssh" / name for name in _USUAL_KEYS)
        return tuple(path for path in usual if path.is_file())

    def keys(self, target: Target) -> tuple[paramiko.PKey, ...]:
        """The keys of `key_files`, each read once. A named file that cannot be used is an error."""
        named = bool(target.key_files or self._environment.get("FABRIC_KEY_FILE"))
        found = []
        for path in self.key_files(target):
            try:
                found.append(self._key(path))
            except TransportError:
                if named:
                    raise
        return tuple(found)

    def identity(self, target: Target) -> Hashable:
        """Equal for nodes that are given the same credentials; holds no secret."""
        groups = [group for group in target.groups if self._environment.get(_variable(group))]
        return self.username(target), target.key_files, groups[0] if groups else ""

    def texts(self) -> tuple[str, ...]:
        """All secrets known so far, longest first."""
        named = [
            value
            for name, value in self._environment.items()
            if name == "FABRIC_ENABLE_PASSWORD"
            or (name.startswith("FABRIC_PASSWORD") and name != "FABRIC_PASSWORD_COMMAND")
        ]
        found = {text for text in (*named, self._printed or "") if len(text) >= _SHORTEST}
        found |= {json.dumps(text)[1:-1] for text in found}
        return tuple(sorted(found, key=lambda text: (-len(text), text)))

    def _key(self, path: Path) -> paramiko.PKey:
        import paramiko

        with self._lock:
            if path not in self._keys:
                try:
                    self._keys[path] = paramiko.PKey.from_path(path)
                except OSError as error:
                    raise TransportError("auth", f"key file {path}: {error.strerror or error}") from error
                except (paramiko.PasswordRequiredException, TypeError) as error:
                    # cryptography says TypeError when a locked key comes without its passphrase
                    text = f"key file {path} is locked by a passphrase: add it to the SSH agent"
                    raise TransportError("auth", text) from error
                except (paramiko.SSHException, ValueError) as error:
                    raise TransportError("auth", f"key file {path} is not a private key") from error
            return self._keys[path]

    def _from_command(self) -> str:
        command = self._environment.get("FABRIC_PASSWORD_COMMAND", "")
        if not command:
            return ""
        with self._lock:
            if self._printed is None:
                self._printed = _first_line(command)
            return self._printed


def _variable(group: str) -> str:
    return f"FABRIC_PASSWORD_{re.sub(r'[^A-Z0-9]', '_', group.upper())}"


def _first_line(command: str) -> str:
    """What the command prints; its own complaints go to the terminal."""
    try:
        argv = shlex.split(command)
        done = subprocess.run(argv, stdout=subprocess.PIPE, timeout=_COMMAND_S, check=True)
        lines = done.stdout.decode().splitlines()
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        code = getattr(error, "returncode", None)
        why = f"exit code {code}" if code is not None else type(error).__name__
        raise TransportError("auth", f"FABRIC_PASSWORD_COMMAND gave no password: {why}") from None
    if not lines or not lines[0]:
        raise TransportError("auth", "FABRIC_PASSWORD_COMMAND printed nothing")
    return lines[0]


def scrub(text: str, secrets: Secrets) -> str:
    """The text with every known secret masked; for all that is shown, logged or stored."""
    for secret in secrets.texts():
        text = text.replace(secret, "****")
    return text
