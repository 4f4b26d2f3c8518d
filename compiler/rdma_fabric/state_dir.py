"""DIR/.fabric: where runs, applied records, the lock, host keys and the lab keep their state."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rdma_fabric.source import file_error

NAME: Final = ".fabric"


def state_dir(directory: Path) -> Path:
    """DIR/.fabric, made with mode 0700 and its own .gitignore when absent; InputError when it cannot be."""
    path = directory / NAME
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)
        ignore = path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise file_error(path, error.strerror or str(error), "make the folder writable") from None
    return path
