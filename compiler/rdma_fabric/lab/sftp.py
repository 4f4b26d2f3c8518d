"""SFTP and SCP over the files of a simulated device (a mapping of absolute path to content)."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import asyncssh
from asyncssh import SFTPAttrs, SFTPName
from asyncssh.constants import (
    FILEXFER_TYPE_DIRECTORY,
    FILEXFER_TYPE_REGULAR,
    FXF_APPEND,
    FXF_CREAT,
    FXF_EXCL,
    FXF_TRUNC,
)

from rdma_fabric.lab.simulators._contract import Device


@dataclass
class _Open:
    """One open file; its content goes to the device with every write, as on a disk."""

    path: str
    append: bool


class DeviceFiles(asyncssh.SFTPServer):
    """The files of one device. Folders exist where files are, and where a client made them."""

    def __init__(self, chan: asyncssh.SSHServerChannel[bytes], device: Device, user: str) -> None:
        super().__init__(chan)
        self._files = device.files
        self._made: set[str] = {"/", "/tmp", "/root", "/home"}
        self._home = "/root" if user == "root" else f"/home/{user}"

    def open(self, path: bytes, pflags: int, attrs: SFTPAttrs) -> object:
        """Open as the flags say; missing files and folders are refused."""
        name = self._name(path)
        if name in self._folders():
            raise asyncssh.SFTPFailure(f"{name} is a folder")
        if name not in self._files:
            if not pflags & FXF_CREAT:
                raise asyncssh.SFTPNoSuchFile(f"{name}: no such file")
            self._files[name] = b""
        elif pflags & FXF_EXCL:
            raise asyncssh.SFTPFailure(f"{name} exists")
        elif pflags & FXF_TRUNC:
            self._files[name] = b""
        return _Open(name, bool(pflags & FXF_APPEND))

    def close(self, file_obj: object) -> None:
        """Nothing is buffered."""

    def read(self, file_obj: object, offset: int, size: int) -> bytes:
        """Bytes at the offset."""
        return self._content(file_obj)[offset : offset + size]

    def write(self, file_obj: object, offset: int, data: bytes) -> int:
        """Put bytes at the offset, or at the end of a file opened to append."""
        assert isinstance(file_obj, _Open)
        content = self._content(file_obj)
        start = len(content) if file_obj.append else offset
        head = content[:start].ljust(start, b"\0")
        self._files[file_obj.path] = head + data + content[start + len(data) :]
        return len(data)

    def fsync(self, file_obj: object) -> None:
        """Nothing is buffered."""

    def stat(self, path: bytes) -> SFTPAttrs:
        """Size and kind of a file or folder."""
        name = self._name(path)
        if name in self._files:
            size = len(self._files[name])
            return SFTPAttrs(type=FILEXFER_TYPE_REGULAR, size=size, permissions=stat.S_IFREG | 0o644)
        if name in self._folders():
            return SFTPAttrs(type=FILEXFER_TYPE_DIRECTORY, size=4096, permissions=stat.S_IFDIR | 0o755)
        raise asyncssh.SFTPNoSuchFile(f"{name}: no such file")

    def lstat(self, path: bytes) -> SFTPAttrs:
        """The same: there are no links."""
        return self.stat(path)

    def fstat(self, file_obj: object) -> SFTPAttrs:
        """Size of an open file."""
        assert isinstance(file_obj, _Open)
        return self.stat(file_obj.path.encode())

    def setstat(self, path: bytes, attrs: SFTPAttrs) -> None:
        """Owners, modes and times are accepted and not kept; a size cuts or fills the file."""
        name = self._name(path)
        self.stat(path)
        if attrs.size is not None and name in self._files:
            self._files[name] = self._files[name][: attrs.size].ljust(attrs.size, b"\0")

    def lsetstat(self, path: bytes, attrs: SFTPAttrs) -> None:
        """The same: there are no links."""
        self.setstat(path, attrs)

    def fsetstat(self, file_obj: object, attrs: SFTPAttrs) -> None:
        """`setstat` of an open file."""
        assert isinstance(file_obj, _Open)
        self.setstat(file_obj.path.encode(), attrs)

    async def scandir(self, path: bytes) -> AsyncIterator[SFTPName]:
        """Names and attributes of a folder."""
        name = self._name(path)
        if name not in self._folders():
            raise asyncssh.SFTPNoSuchFile(f"{name}: no such folder")
        inside = {entry for entry in (*self._files, *self._folders()) if posixpath.dirname(entry) == name}
        for entry in (".", "..", *sorted(inside - {name})):
            child = posixpath.join(name, entry).encode()
            yield SFTPName(posixpath.basename(entry).encode(), attrs=self.stat(child))

    def remove(self, path: bytes) -> None:
        """Delete a file."""
        if self._files.pop(self._name(path), None) is None:
            raise asyncssh.SFTPNoSuchFile("no such file")

    def mkdir(self, path: bytes, attrs: SFTPAttrs) -> None:
        """Make a folder, which must not exist."""
        name = self._name(path)
        if name in self._files or name in self._folders():
            raise asyncssh.SFTPFailure(f"{name} exists")
        self._made.add(name)

    def rmdir(self, path: bytes) -> None:
        """Remove an empty folder."""
        name = self._name(path)
        if name not in self._folders():
            raise asyncssh.SFTPNoSuchFile(f"{name}: no such folder")
        if any(entry.startswith(f"{name}/") for entry in (*self._files, *self._made)):
            raise asyncssh.SFTPFailure(f"{name} is not empty")
        self._made.discard(name)

    def rename(self, oldpath: bytes, newpath: bytes) -> None:
        """Rename a file; an existing target is refused (SFTP version 3)."""
        if self._name(newpath) in self._files:
            raise asyncssh.SFTPFailure("the target exists")
        self.posix_rename(oldpath, newpath)

    def posix_rename(self, oldpath: bytes, newpath: bytes) -> None:
        """Rename a file over an existing one."""
        content = self._files.pop(self._name(oldpath), None)
        if content is None:
            raise asyncssh.SFTPNoSuchFile("no such file")
        self._files[self._name(newpath)] = content

    def realpath(self, path: bytes) -> bytes:
        """The absolute path."""
        return self._name(path).encode()

    def exit(self) -> None:
        """The client is done: OpenSSH's scp wants an exit status."""
        self.channel.exit(0)

    def _name(self, path: bytes) -> str:
        name = posixpath.normpath(posixpath.join(self._home, path.decode()))
        return f"/{name.lstrip('/')}"

    def _folders(self) -> set[str]:
        found = {*self._made, self._home}
        for name in self._files:
            found.update(_parents(name))
        return found

    def _content(self, file_obj: object) -> bytes:
        assert isinstance(file_obj, _Open)
        return self._files.get(file_obj.path, b"")


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = posixpath.dirname(path)
        yield path
