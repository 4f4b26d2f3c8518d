"""Bundles for hosts that nobody pushes to: image builds, and hosts that fetch and install by themselves.

One archive per distinct host: the files of `compile`, the steps that make them work, and the very program
that carries out the bundles of `apply`. Its bytes depend on nothing but its content.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rdma_fabric import platforms
from rdma_fabric.assets import playbooks
from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import Change, Put
from rdma_fabric.push.bundle import bundle, program
from rdma_fabric.render import File
from rdma_fabric.source import file_error
from rdma_fabric.state import NodeState

RUN: Final = "install"
"""Name of the run of every installation; one of a controller has another."""
FOLDER: Final = "bundles"
INDEX: Final = "index.json"
SUMS: Final = "SHA256SUMS"
_MARK: Final = "managed by fabric"
_NAME: Final = re.compile(r"[0-9a-f]{16}\.tar\.gz")


@dataclass(frozen=True, slots=True)
class Image:
    """One archive, shared by equal hosts; or why there can be none."""

    data: bytes = b""
    why_not: str = ""

    @property
    def sha256(self) -> str:
        """Digest of the archive."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def name(self) -> str:
        """Its file: equal content, equal name."""
        return f"{self.sha256[:16]}.tar.gz"


def image(files: Collection[File], wanted: NodeState, hw: Hardware) -> Image:
    """The archive of a host with these compiled files."""
    shared = [one.path for one in files if not _ours(one.text)]
    if shared:
        return Image(why_not=f"/{shared[0]} is shared with others, and only `apply` looks at what it holds")
    texts = {f"/{one.path}": one.text for one in files}
    puts = [Put(f"/{one.path}", one.text, one.mode) for one in files if not one.derived]
    calls = platforms.activation(texts, wanted, hw)
    change = Change(commit=(*puts, *calls, *platforms.local_check(wanted, hw)))
    data = json.dumps(bundle(change, RUN, 0, "apply"), indent=1, sort_keys=True) + "\n"
    members = {
        "bundle.json": (data, 0o644),
        "fabric-host": (program(), 0o755),
        "install.sh": ((playbooks() / "files" / "install.sh").read_text(encoding="utf-8"), 0o755),
    }
    sums = "".join(f"{_digest(text)}  {name}\n" for name, (text, _) in sorted(members.items()))
    return Image(_archive({**members, SUMS: (sums, 0o644)}))


def _ours(text: str) -> bool:
    return any(_MARK in line for line in text.split("\n")[:2])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _archive(members: Mapping[str, tuple[str, int]]) -> bytes:
    """A tar.gz with sorted names, no time and root as owner."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (text, mode) in sorted(members.items()):
            info = tarfile.TarInfo(f"fabric-bundle/{name}")
            data = text.encode()
            info.size, info.mode, info.uname, info.gname = len(data), mode, "root", "root"
            archive.addfile(info, io.BytesIO(data))
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as out:
        out.write(plain.getvalue())
    return packed.getvalue()


# ---------------------------------------------------------------- in the folder of `compile`


def write(out: Path, images: Mapping[str, Image], aside: Collection[str] = ()) -> None:
    """OUT/bundles with every archive once, their sums, and an index by node; archives of nobody go.

    `aside`: nodes out of scope, whose archive of an earlier run stays. InputError when it cannot be written.
    """
    folder = out / FOLDER
    if not images and not (folder / INDEX).is_file():
        return
    if FOLDER in images or FOLDER in aside:
        raise file_error(
            folder, "is the folder of a node", "give the node another name, or leave --bundle out"
        )
    kept = {name: one for name, one in _before(folder).items() if name in aside}
    rows: dict[str, dict[str, str]] = {**kept}
    for name, one in images.items():
        if not one.why_not:
            rows[name] = {"file": one.name, "sha256": one.sha256}
    files = {row["file"]: row["sha256"] for row in rows.values()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in images.values():
            if not one.why_not:
                _put(folder / one.name, one.data)
        _put(folder / SUMS, "".join(f"{sum_}  {name}\n" for name, sum_ in sorted(files.items())).encode())
        index: dict[str, Any] = {"version": 1, "nodes": dict(sorted(rows.items()))}
        _put(folder / INDEX, (json.dumps(index, indent=1) + "\n").encode())
        for path in folder.iterdir():
            if path.name not in files and _NAME.fullmatch(path.name):
                path.unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise file_error(error.filename or folder, reason, "give a folder that can be written") from None


def _before(folder: Path) -> dict[str, dict[str, str]]:
    try:
        data = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        nodes: dict[str, dict[str, str]] = data["nodes"]
        return {
            name: {"file": row["file"], "sha256": row["sha256"]}
            for name, row in nodes.items()
            if _NAME.fullmatch(row["file"]) and (folder / row["file"]).is_file()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _put(path: Path, data: bytes) -> None:
    """Written only where it differs, and whole or not at all."""
    if path.is_file() and path.read_bytes() == data:
        return
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.replace(path)


__all__ = ["FOLDER", "INDEX", "RUN", "SUMS", "Image", "image", "write"]
