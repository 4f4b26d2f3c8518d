"""Serves a tree of attributes as a file system: a small part of the kernel's FUSE protocol 7.31.

Numbers and layouts are those of include/uapi/linux/fuse.h. Plain files could not refuse a value, show
another text than was written, or fill a folder that somebody just made, as sysfs and configfs do.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from contextlib import suppress

from .nodes import File, Folder, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOOKUP, FORGET, GETATTR, SETATTR, MKDIR, RMDIR, OPEN, READ, WRITE = 1, 2, 3, 4, 9, 11, 14, 15, 16
STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR = 17, 18, 25, 26, 27, 28, 29
ACCESS, INTERRUPT, BATCH_FORGET = 34, 36, 42
_SILENT = {FORGET, BATCH_FORGET, INTERRUPT}
_HEADER = struct.Struct("<IIQQIIII")
_ATTR = struct.Struct("<6Q10I")
_DIRECT_IO = 1
SIZE = 1 << 17
"""Bytes to read from the kernel at once: more than the largest request."""


class Server:
    """Answers the kernel on an open /dev/fuse; `serve` handles one request."""

    def __init__(self, handle: int, root: Folder) -> None:
        self.handle, self._root = handle, root
        self._paths = {1: ""}
        self._numbers = {"": 1}
        self._operations: dict[int, Callable[[str, bytes], bytes]] = {
            LOOKUP: self._lookup,
            GETATTR: lambda path, body: struct.pack("<QII", 0, 0, 0) + self._attr(path),
            SETATTR: lambda path, body: struct.pack("<QII", 0, 0, 0) + self._attr(path),
            MKDIR: self._mkdir,
            RMDIR: self._rmdir,
            OPEN: self._open,
            OPENDIR: lambda path, body: struct.pack("<QII", 0, 0, 0),
            READ: self._read,
            WRITE: self._write,
            READDIR: self._readdir,
            INIT: lambda path, body: struct.pack(
                "<4I2H2I2HI7I", 7, 31, 4096, 0, 8, 6, 4096, 1, 1, 0, 0, *[0] * 7
            ),
            STATFS: lambda path, body: struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0),
            RELEASE: lambda path, body: b"",
            RELEASEDIR: lambda path, body: b"",
            FLUSH: lambda path, body: b"",
            ACCESS: lambda path, body: b"",
        }

    def serve(self) -> bool:
        """Read one request and answer it; False when somebody unmounted us."""
        try:
            request = os.read(self.handle, SIZE)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EINTR, errno.EAGAIN}:
                return True  # the asking process was interrupted
            if error.errno == errno.ENODEV:
                return False
            raise
        _, operation, unique, node, *_ = _HEADER.unpack_from(request)
        if operation in _SILENT:
            return True
        code, answer = 0, b""
        try:
            if operation not in self._operations:
                raise OSError(errno.ENOSYS, "")
            path = self._paths.get(node, "")
            answer = self._operations[operation](path, request[_HEADER.size :])
        except OSError as error:
            code = error.errno or errno.EIO
        with suppress(FileNotFoundError):  # the request was given up meanwhile
            os.write(self.handle, struct.pack("<IiQ", 16 + len(answer), -code, unique) + answer)
        return True

    def _number(self, path: str) -> int:
        if path not in self._numbers:
            number = len(self._numbers) + 1
            self._numbers[path], self._paths[number] = number, path
        return self._numbers[path]

    def _attr(self, path: str) -> bytes:
        node = walk(self._root, path)
        if isinstance(node, Folder):
            mode, links, size = stat.S_IFDIR | 0o755, 2, 0
        else:
            mode, links, size = stat.S_IFREG | (0o644 if node.write else 0o444), 1, 4096
        number = self._number(path)
        return _ATTR.pack(number, size, 0, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)

    def _child(self, path: str, body: bytes) -> str:
        return f"{path}/{body.rstrip(chr(0).encode()).decode()}"

    def _entry(self, path: str) -> bytes:
        attr = self._attr(path)
        return struct.pack("<4Q2I", self._number(path), 0, 0, 0, 0, 0) + attr

    def _lookup(self, path: str, body: bytes) -> bytes:
        return self._entry(self._child(path, body))

    def _folder(self, path: str) -> Folder:
        node = walk(self._root, path)
        if not isinstance(node, Folder):
            raise OSError(errno.ENOTDIR, "")
        return node

    def _file(self, path: str) -> File:
        node = walk(self._root, path)
        if not isinstance(node, File):
            raise OSError(errno.EISDIR, "")
        return node

    def _mkdir(self, path: str, body: bytes) -> bytes:
        child = self._child(path, body[8:])
        self._folder(path).make(child.rpartition("/")[2])
        return self._entry(child)

    def _rmdir(self, path: str, body: bytes) -> bytes:
        child = self._child(path, body)
        walk(self._root, child)
        self._folder(path).drop(child.rpartition("/")[2])
        return b""

    def _open(self, path: str, body: bytes) -> bytes:
        flags = struct.unpack_from("<I", body)[0]
        if flags & os.O_ACCMODE != os.O_RDONLY and self._file(path).write is None:
            raise OSError(errno.EACCES, "")
        return struct.pack("<QII", 0, _DIRECT_IO, 0)

    def _read(self, path: str, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return self._file(path).read().encode()[offset : offset + size]

    def _write(self, path: str, body: bytes) -> bytes:
        size = struct.unpack_from("<QQI", body)[2]
        write = self._file(path).write
        if write is None:
            raise OSError(errno.EACCES, "")
        write(body[40 : 40 + size].decode(errors="replace"))
        return struct.pack("<II", size, 0)

    def _readdir(self, path: str, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        children = self._folder(path).children()
        out = b""
        for index, (name, node) in enumerate(sorted(children.items()), 1):
            if index <= offset:
                continue
            kind = (stat.S_IFDIR if isinstance(node, Folder) else stat.S_IFREG) >> 12
            raw = name.encode()
            entry = struct.pack("<QQII", self._number(f"{path}/{name}"), index, len(raw), kind) + raw
            entry += bytes(-len(entry) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out
