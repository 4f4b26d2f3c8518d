"""Reads OpenSSH's known_hosts files (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT), once per version of a file.

An own index, since a file with a line per node is asked once per node. Certificates of authorities
are not used; `@revoked` is.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from rdma_fabric.transport.errors import TransportError

_HASHED = "|1|"  # HMAC-SHA1 of the name: |1|salt|digest


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key: its type as sent by the server, and its bytes."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        return f"SHA256:{digest}"

    def line(self, name: str) -> str:
        """The line of known_hosts for a host of that name."""
        return f"{name} {self.type} {base64.b64encode(self.blob).decode()}"


@dataclass(frozen=True, slots=True)
class Known:
    """What the files say about one host."""

    keys: tuple[HostKey, ...] = ()
    revoked: tuple[HostKey, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    patterns: tuple[str, ...]
    key: HostKey
    revoked: bool

    def matches(self, name: str) -> bool:
        if self.patterns[0].startswith(_HASHED):
            return _hash_matches(self.patterns[0], name)
        if any(one[0] == "!" and fnmatchcase(name, one[1:]) for one in self.patterns):
            return False
        return any(fnmatchcase(name, _literal_brackets(one)) for one in self.patterns)


@dataclass(slots=True)
class _Index:
    exact: dict[str, list[_Line]] = field(default_factory=dict)
    others: list[_Line] = field(default_factory=list)
    """Hashed names and patterns: every one is tried."""

    def add(self, line: _Line) -> None:
        if any(one.startswith(("|", "!")) or "*" in one or "?" in one for one in line.patterns):
            self.others.append(line)
            return
        for name in line.patterns:
            self.exact.setdefault(name, []).append(line)


def host_name(host: str, port: int) -> str:
    """The name under which a host is listed."""
    return host if port == 22 else f"[{host}]:{port}"


def known(files: Iterable[Path], host: str, port: int) -> Known:
    """The keys of a host in all files; a file that does not exist knows nobody."""
    name = host_name(host, port).lower()
    keys: dict[HostKey, None] = {}
    revoked: dict[HostKey, None] = {}
    for path in files:
        index = _load(path)
        for line in (*index.exact.get(name, ()), *index.others):
            if line.matches(name):
                (revoked if line.revoked else keys)[line.key] = None
    return Known(tuple(keys), tuple(revoked))


def _load(path: Path) -> _Index:
    try:
        stat = path.stat()
        return _read(path, stat.st_mtime_ns, stat.st_size, stat.st_ino)
    except FileNotFoundError:
        return _Index()
    except OSError as error:
        raise TransportError("hostkey", f"{path} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=16)
def _read(path: Path, _changed: int, _size: int, _inode: int) -> _Index:
    index = _Index()
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        line = _parse(text)
        if line:
            index.add(line)
    return index


def _parse(text: str) -> _Line | None:
    """One line; None for comments, authorities and what is no key."""
    words = text.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if len(words) < 3 or words[0].startswith("#") or marker not in ("", "@revoked"):
        return None
    try:
        blob = base64.b64decode(words[2], validate=True)
    except (binascii.Error, ValueError):
        return None
    patterns = tuple(one if one.startswith("|") else one.lower() for one in words[0].split(",") if one)
    return _Line(patterns, HostKey(words[1], blob), bool(marker)) if patterns else None


def _hash_matches(hashed: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in hashed.removeprefix(_HASHED).split("|"))
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)


def _literal_brackets(pattern: str) -> str:
    """Brackets stand around a host with a port; they are no character class."""
    return pattern.replace("[", "[[]")
