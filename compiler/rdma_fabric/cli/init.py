"""`fabric init`: a small commented intent and inventory that pass `check`."""

from __future__ import annotations

import argparse
from pathlib import Path

from rdma_fabric.cli import common

FILES = ("fabric.yaml", "hosts.yaml", "groups.yaml", "defaults.yaml", "cables.csv")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric init`."""
    parser.add_argument("dir", metavar="DIR", help="folder to write to (made when absent)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-color", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """0 written, 2 trouble; nothing is overwritten."""
    from importlib import resources

    from rdma_fabric.source import file_error

    out = common.output(options)
    folder = Path(options.dir)
    there = [name for name in FILES if (folder / name).exists() or (folder / name).is_symlink()]
    if there:
        raise file_error(folder / there[0], "is there already", "give a new folder, or move it away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            text = resources.files("rdma_fabric.data").joinpath("init", name).read_text(encoding="utf-8")
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise file_error(folder, error.strerror or str(error), "give a folder that can be written") from None
    out.data(f"{folder}: {', '.join(FILES)}")
    out.say(f"next: fabric check {folder}")
    return 0
