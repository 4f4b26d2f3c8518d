"""Host keys: what nodes present, and the file in which the user's yes is recorded."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import Failure, TransportError
from rdma_fabric.transport.fleet import WORKERS, on_each
from rdma_fabric.transport.known_hosts import HostKey, Known, host_name, known
from rdma_fabric.transport.session import IMPORTING
from rdma_fabric.transport.targets import Target

SCAN_S = 10.0


@dataclass(frozen=True, slots=True)
class Presented:
    """The host key that a node presented, beside what the known_hosts files say."""

    name: str
    host: str
    """As known_hosts names it."""
    key: HostKey
    state: Literal["known", "unknown", "changed", "revoked"]

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        return self.key.fingerprint


def scan(
    targets: Mapping[str, Target], *, timeout_s: float = SCAN_S, workers: int = WORKERS
) -> dict[str, Presented | Failure]:
    """Connect to every node for the exchange of keys only; no login is tried."""
    secrets = Secrets({})

    def look(target: Target) -> Presented:
        with IMPORTING:
            from rdma_fabric.transport.connection import handshake, remote_key

        trusted = known(target.known_hosts, target.host, target.port)
        secrets.gate.wait("scan")
        transport = handshake(target, trusted, timeout_s)
        try:
            key = remote_key(transport)
        finally:
            transport.close()
        return Presented(target.name, host_name(target.host, target.port), key, _state(key, trusted))

    return on_each(targets, targets, look, secrets, workers=workers)


def _state(key: HostKey, trusted: Known) -> Literal["known", "unknown", "changed", "revoked"]:
    if key in trusted.revoked:
        return "revoked"
    if key in trusted.keys:
        return "known"
    return "changed" if trusted.keys else "unknown"


def record(path: Path, presented: Iterable[Presented]) -> None:
    """Write keys into a known_hosts file; other keys of the same hosts go, all other lines stay."""
    new = {one.host: one for one in presented}
    kept = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            names = line.split()[0].split(",") if line.strip() and line[0] not in "#@|" else []
            rest = [name for name in names if name not in new]
            if rest == names:
                kept.append(line)
            elif rest:
                kept.append(" ".join([",".join(rest), *line.split()[1:]]))
        kept.extend(one.key.line(host) for host, one in new.items())
        _replace(path, "".join(f"{line}\n" for line in kept))
    except (OSError, UnicodeDecodeError) as error:
        raise TransportError("hostkey", f"{path} cannot be written: {error}") from error


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        Path(beside).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(beside).unlink()
        raise
