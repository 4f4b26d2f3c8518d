"""An SFTP server, protocol version 3 (draft-ietf-secsh-filexfer-02), over standard input and output.

Machines need no openssh-sftp-server for it, and files are those that the sandbox sees.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH101, PTH115, PTH116, PTH208

from __future__ import annotations

import errno
import os
import stat
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OK, _EOF, _NO_SUCH_FILE, _DENIED, _FAILURE, _UNSUPPORTED = 0, 1, 2, 3, 4, 8
_VERSION, _STATUS, _HANDLE, _DATA, _NAME, _ATTRS = 2, 101, 102, 103, 104, 105
_HAS_SIZE, _HAS_OWNER, _HAS_MODE, _HAS_TIME = 1, 2, 4, 8
_RENAME_OVER = b"posix-rename@openssh.com"


def main(name: str, arguments: list[str]) -> int:
    """Serve until the client closes."""
    os.umask(0o022)
    server = _Server()
    while True:
        head = _exactly(4)
        if head is None:
            return 0
        body = _exactly(struct.unpack(">I", head)[0])
        if body is None:
            return 0
        answer = server.answer(body)
        rest = memoryview(struct.pack(">I", len(answer)) + answer)
        while rest:
            rest = rest[os.write(1, rest) :]


def _exactly(size: int) -> bytes | None:
    """So many bytes of input, or None at its end."""
    parts = []
    while size:
        part = os.read(0, min(size, 1 << 18))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


class _Words:
    """Reads the fields of one packet."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def number(self, form: str = ">I") -> int:
        value: int = struct.unpack_from(form, self._body, self._at)[0]
        self._at += struct.calcsize(form)
        return value

    def string(self) -> bytes:
        size = self.number()
        self._at += size
        return self._body[self._at - size : self._at]

    def attributes(self) -> dict[int, tuple[int, ...]]:
        flags, found = self.number(), {}
        forms = (
            (_HAS_SIZE, (">Q",)),
            (_HAS_OWNER, (">I", ">I")),
            (_HAS_MODE, (">I",)),
            (_HAS_TIME, (">I", ">I")),
        )
        for flag, fields in forms:
            if flags & flag:
                found[flag] = tuple(self.number(field) for field in fields)
        return found


class _Server:
    """Open handles and the answer to each request."""

    def __init__(self) -> None:
        self._files: dict[bytes, int] = {}
        self._folders: dict[bytes, list[tuple[bytes, os.stat_result]]] = {}
        self._next = 0

    def answer(self, body: bytes) -> bytes:
        """The packet that answers this one."""
        kind, words = body[0], _Words(body[1:])
        if kind == 1:
            return struct.pack(">BI", _VERSION, 3) + _string(_RENAME_OVER) + _string(b"1")
        number = words.number()
        requests = {
            3: self._open,
            4: self._close,
            5: self._read,
            6: self._write,
            7: lambda w: self._stat(os.lstat(w.string())),
            8: lambda w: self._stat(os.fstat(self._file(w))),
            9: lambda w: self._set(w.string(), w.attributes()),
            10: lambda w: self._set(self._file(w), w.attributes()),
            11: self._opendir,
            12: self._readdir,
            13: lambda w: self._did(os.unlink, w.string()),
            14: lambda w: self._did(os.mkdir, w.string(), self._mode(w.attributes(), 0o777)),
            15: lambda w: self._did(os.rmdir, w.string()),
            16: lambda w: self._names([(os.path.realpath(w.string() or b"."), None)]),
            17: lambda w: self._stat(os.stat(w.string())),
            18: lambda w: self._rename(w.string(), w.string()),
            19: lambda w: self._names([(os.readlink(w.string()), None)]),
            20: self._symlink,
            200: self._extended,
        }
        try:
            reply, rest = requests[kind](words) if kind in requests else (_STATUS, self._status(_UNSUPPORTED))
        except OSError as error:
            codes = {errno.ENOENT: _NO_SUCH_FILE, errno.EACCES: _DENIED, errno.EPERM: _DENIED}
            reply, rest = _STATUS, self._status(codes.get(error.errno or 0, _FAILURE), error.strerror or "")
        except EOFError:
            reply, rest = _STATUS, self._status(_EOF)
        return struct.pack(">BI", reply, number) + rest

    def _status(self, code: int, text: str = "") -> bytes:
        return struct.pack(">I", code) + _string(text.encode()) + _string(b"")

    def _done(self) -> tuple[int, bytes]:
        return _STATUS, self._status(_OK)

    def _did(self, action: Callable[..., None], *arguments: object) -> tuple[int, bytes]:
        action(*arguments)
        return self._done()

    def _new(self) -> bytes:
        self._next += 1
        return b"%d" % self._next

    def _file(self, words: _Words) -> int:
        handle = words.string()
        if handle not in self._files:
            raise OSError(errno.EBADF, "no such handle")
        return self._files[handle]

    @staticmethod
    def _mode(attributes: dict[int, tuple[int, ...]], default: int) -> int:
        return attributes.get(_HAS_MODE, (default,))[0] & 0o7777

    def _open(self, words: _Words) -> tuple[int, bytes]:
        path, wanted, attributes = words.string(), words.number(), words.attributes()
        flags = {1: os.O_RDONLY, 2: os.O_WRONLY, 3: os.O_RDWR}.get(wanted & 3, os.O_RDONLY)
        for bit, flag in ((4, os.O_APPEND), (8, os.O_CREAT), (16, os.O_TRUNC), (32, os.O_EXCL)):
            flags |= flag if wanted & bit else 0
        handle = self._new()
        self._files[handle] = os.open(path, flags, self._mode(attributes, 0o666))
        return _HANDLE, _string(handle)

    def _close(self, words: _Words) -> tuple[int, bytes]:
        handle = words.string()
        if handle in self._files:
            os.close(self._files.pop(handle))
        else:
            self._folders.pop(handle, None)
        return self._done()

    def _read(self, words: _Words) -> tuple[int, bytes]:
        file, offset, size = self._file(words), words.number(">Q"), words.number()
        data = os.pread(file, min(size, 1 << 18), offset)
        if not data:
            raise EOFError
        return _DATA, _string(data)

    def _write(self, words: _Words) -> tuple[int, bytes]:
        file, offset, data = self._file(words), words.number(">Q"), words.string()
        while data:
            done = os.pwrite(file, data, offset)
            data, offset = data[done:], offset + done
        return self._done()

    @staticmethod
    def _attributes(found: os.stat_result) -> bytes:
        flags = _HAS_SIZE | _HAS_OWNER | _HAS_MODE | _HAS_TIME
        numbers = (found.st_uid, found.st_gid, found.st_mode, int(found.st_atime), int(found.st_mtime))
        return struct.pack(">IQ5I", flags, found.st_size, *numbers)

    def _stat(self, found: os.stat_result) -> tuple[int, bytes]:
        return _ATTRS, self._attributes(found)

    def _set(self, target: bytes | int, attributes: dict[int, tuple[int, ...]]) -> tuple[int, bytes]:
        if _HAS_SIZE in attributes:
            os.truncate(target, attributes[_HAS_SIZE][0])
        if _HAS_MODE in attributes:
            os.chmod(target, self._mode(attributes, 0))
        if _HAS_OWNER in attributes:
            os.chown(target, *attributes[_HAS_OWNER])
        if _HAS_TIME in attributes:
            accessed, modified = attributes[_HAS_TIME]
            os.utime(target, (accessed, modified))
        return self._done()

    def _opendir(self, words: _Words) -> tuple[int, bytes]:
        path, handle = words.string(), self._new()
        names = [b".", b"..", *os.listdir(path)]
        self._folders[handle] = [(name, os.lstat(path + b"/" + name)) for name in names]
        return _HANDLE, _string(handle)

    def _readdir(self, words: _Words) -> tuple[int, bytes]:
        handle = words.string()
        left = self._folders.get(handle, [])
        if not left:
            raise EOFError
        some, self._folders[handle] = left[:100], left[100:]
        return self._names(some)

    def _names(self, entries: Sequence[tuple[bytes, os.stat_result | None]]) -> tuple[int, bytes]:
        out = struct.pack(">I", len(entries))
        for name, found in entries:
            long = name if found is None else self._long(name, found)
            out += _string(name) + _string(long) + (b"\0\0\0\0" if found is None else self._attributes(found))
        return _NAME, out

    @staticmethod
    def _long(name: bytes, found: os.stat_result) -> bytes:
        when = time.strftime("%b %d %H:%M", time.localtime(found.st_mtime))
        head = f"{stat.filemode(found.st_mode)} {found.st_nlink:>4} {found.st_uid:<8} {found.st_gid:<8} "
        return f"{head}{found.st_size:>8} {when} ".encode() + name

    def _rename(self, old: bytes, new: bytes) -> tuple[int, bytes]:
        if os.path.lexists(new):
            raise OSError(errno.EEXIST, "File exists")
        return self._did(os.rename, old, new)

    def _symlink(self, words: _Words) -> tuple[int, bytes]:
        target, link = words.string(), words.string()  # OpenSSH's order
        return self._did(os.symlink, target, link)

    def _extended(self, words: _Words) -> tuple[int, bytes]:
        if words.string() != _RENAME_OVER:
            return _STATUS, self._status(_UNSUPPORTED)
        old, new = words.string(), words.string()
        return self._did(os.replace, old, new)
