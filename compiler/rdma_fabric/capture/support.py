"""One archive about one run, for a bug report: journal, inputs, records, versions; secrets masked."""

from __future__ import annotations

import io
import json
import platform
import sys
import tarfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from rdma_fabric import __version__
from rdma_fabric.capture.masking import mask
from rdma_fabric.plan.applied import INPUT_FILES
from rdma_fabric.push.journal import FILE, RunRecord

PACKAGES: Final = ("nornir", "netmiko", "paramiko", "jinja2", "pydantic", "ansible-core", "ansible-runner")


def support(
    folder: Path, state: Path, record: RunRecord, out: Path, own: Callable[[str], str]
) -> tuple[str, ...]:
    """Writes OUT (a .tar.gz, mode 0600) and returns the names of what is in it. OSError as the disk says."""
    files = dict(_files(folder, state, record))
    prefix = f"fabric-support-{record.run}"
    with out.open("wb") as raw:
        out.chmod(0o600)
        with tarfile.open(fileobj=raw, mode="w:gz") as archive:
            for name, text in files.items():
                data = mask_lines(text, own).encode()
                info = tarfile.TarInfo(f"{prefix}/{name}")
                info.size, info.mode = len(data), 0o600
                archive.addfile(info, io.BytesIO(data))
    return tuple(files)


def mask_lines(text: str, own: Callable[[str], str]) -> str:
    """Every line on its own, so that a file of JSON lines stays one."""
    if text.lstrip().startswith("{") and "\n{" in text:
        return "\n".join(_line(line, own) for line in text.split("\n"))
    return mask(text, own)


def _line(line: str, own: Callable[[str], str]) -> str:
    try:
        return json.dumps(json.loads(mask(line, own)))
    except ValueError:
        return mask(line, own)


def _files(folder: Path, state: Path, record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "about.json", _about(record)
    journal = state / "runs" / record.run / FILE
    if journal.exists():
        yield f"run/{FILE}", journal.read_text(encoding="utf-8", errors="replace")
    for name in INPUT_FILES:
        path = folder / name
        if path.is_file():
            yield f"inputs/{name}", path.read_text(encoding="utf-8", errors="replace")
    applied = state / ("lab/applied" if record.lab else "applied")
    for node in record.nodes:
        path = applied / f"{node}.json"
        if path.is_file():
            yield f"applied/{node}.json", path.read_text(encoding="utf-8", errors="replace")


def _about(record: RunRecord) -> str:
    return json.dumps(
        {
            "version": 1,
            "tool": __version__,
            "python": sys.version.split()[0],
            "system": platform.platform(),
            "packages": {name: _version(name) for name in PACKAGES},
            "run": record.run,
            "kind": record.kind,
            "started": record.started,
            "ended": record.ended,
            "nodes": {
                name: {"phase": one.phase, "status": one.status, "detail": one.detail}
                for name, one in record.nodes.items()
            },
        },
        indent=1,
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
