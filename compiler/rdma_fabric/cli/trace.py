"""`fabric trace`: which value makes this device line, and which lines a value makes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.findings import InputError, Position
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.trace import Sources, Traced
    from rdma_fabric.views.trace_text import Shown


def arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options of `fabric trace`."""
    parser.usage = (
        "fabric trace NODE [LINE [DIR]] | fabric trace --source FILE:LINE [DIR] [--limit EXPR]  [options]"
    )
    parser.add_argument("words", nargs="*", metavar="NODE [LINE [DIR]]", help="see the examples below")
    parser.add_argument("-C", dest="chdir", metavar="DIR", help="folder that holds fabric.yaml (default: .)")
    parser.add_argument(
        "--source", metavar="FILE:LINE", help="the other way: the device lines that this source line makes"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("-v", "--verbose", action="store_true", help="all causes, also general ones")
    parser.add_argument("--no-color", action="store_true", help="plain text also on a terminal")
    common.format_option(parser)
    common.limit_option(parser)
    parser.epilog = (
        "LINE is a part of a device line, or FILE:NUMBER of what `fabric compile` writes. "
        "fabric trace leaf01 'random-detect ecn'; fabric trace gpu01 etc/fabric/qos/eth0.conf:9; "
        "fabric trace --source fabric.yaml:14"
    )


def run(options: argparse.Namespace) -> int:
    """0 something was found, 1 no such line, 2 bad input."""
    out = common.output(options)
    node, line, folder = _words(options)
    options.dir = folder
    if options.source:
        found = list(_of_source(options, _position(options.source, folder), folder))
    else:
        found = [_of_line(options, node, line, folder)]
    if options.format == "json":
        from rdma_fabric.views.trace_text import trace_json

        out.data(trace_json(found, bool(options.source)))
    else:
        from rdma_fabric.views.trace_text import trace_text

        out.data(trace_text(found, bool(options.source), out))
    if any(one.lines for one in found):
        return 0
    what = f"{options.source} makes no device line" if options.source else f"{node} has no line {line!r}"
    out.complain(f"{what}\n")
    return 1


def _words(options: argparse.Namespace) -> tuple[str, str, Path]:
    words = list(options.words)
    most = 1 if options.source else 3
    if len(words) > most or (not options.source and not words):
        example = "fabric trace leaf01 'random-detect ecn'"
        raise _wrong("trace", "give NODE and LINE, or --source FILE:LINE", f"for example {example}")
    if options.source:
        return "", "", Path((words or [options.chdir or "."])[0])
    node, line, folder = (*words, "", "")[:3] if len(words) > 1 else (words[0], "", "")
    return node, line, Path(folder or options.chdir or ".")


def _wrong(where: str, message: str, help: str) -> InputError:
    from rdma_fabric.findings import InputError, Position, input_finding

    return InputError([input_finding("reference", message, Position(where, 0, 0), help)])


def _position(text: str, folder: Path) -> Position:
    from rdma_fabric.findings import Position

    found = re.fullmatch(r"(.+?):([0-9]+)(?::[0-9]+)?", text)
    if not found:
        raise _wrong(f"--source {text}", "needs FILE:LINE", "for example fabric.yaml:14")
    path = Path(found[1])
    return Position(str(path if path.exists() else folder / path), int(found[2]), 1)


def _load(folder: Path) -> tuple[Sources, Resolved]:
    from rdma_fabric.trace import Sources

    resolved = common.load(folder)  # tells everything that is wrong with all files
    return Sources.read(folder), resolved


def _of_line(options: argparse.Namespace, node: str, text: str, folder: Path) -> Shown:
    from rdma_fabric.findings import did_you_mean
    from rdma_fabric.trace import trace
    from rdma_fabric.views.trace_text import Shown

    sources, resolved = _load(folder)
    if node not in resolved.plans:
        near = did_you_mean(node, resolved.plans)
        raise _wrong(
            "trace", f"there is no node {node}", f"did you mean {near}?" if near else "see hosts.yaml"
        )
    traced = trace(sources, resolved, node)
    wanted = tuple(_matching(traced, text))
    return Shown((node,), traced, wanted)


def _matching(traced: Traced, text: str) -> Iterator[int]:
    place = re.fullmatch(r"(.+):([0-9]+)", text)
    for index, line in enumerate(traced.lines):
        if place and line.file.endswith(place[1]) and line.number == int(place[2]):
            yield index
    for index, line in enumerate(traced.lines):
        if not place and text in " > ".join((*line.section, line.text.strip())) and text in line.text:
            yield index


def _of_source(options: argparse.Namespace, at: Position, folder: Path) -> Iterator[Shown]:
    """Nodes that are equal are tried once."""
    from rdma_fabric.trace import INTENT, trace
    from rdma_fabric.views.trace_text import Shown

    sources, resolved = _load(folder)
    known = (INTENT, *sources.files)
    if Path(at.file).resolve() not in {(folder / name).resolve() for name in known}:
        near = f"use one of {', '.join(known)}"
        raise _wrong(f"--source {at.file}", "is no file of the intent or inventory", near)
    groups: dict[int, list[str]] = {}
    for name in common.scope(resolved, options.limit):
        groups.setdefault(id(resolved.plans[name]), []).append(name)
    for names in groups.values():
        traced = trace(sources, resolved, names[0], at)
        lines = sorted({index for one in traced.causes for index in one.lines})
        if lines:
            yield Shown(tuple(names), traced, tuple(lines))
