"""`fabric compile`: configuration of every node that has no errors, and a manifest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from rdma_fabric.checker import Judged, Report
    from rdma_fabric.render import File, Written
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.views.output import Output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric compile`."""
    common.folder_options(parser)
    common.format_option(parser)
    common.limit_option(parser)
    common.set_options(parser)
    parser.add_argument(
        "-o", "--out", required=True, metavar="OUT", help="folder for OUT/<node>/... and manifest.json"
    )
    parser.add_argument(
        "--strict", action="store_true", help="all or nothing: write nothing when a node is rejected"
    )
    parser.add_argument(
        "--annotate",
        action="store_true",
        help="write FILE.trace beside every file: which value of intent or inventory makes each line",
    )
    parser.add_argument(
        "--bundle",
        action="store_true",
        help="also OUT/bundles: an archive per distinct host that installs it without a controller",
    )


def run(options: argparse.Namespace) -> int:
    """0 all written, 1 some rejected, 2 bad input."""
    from rdma_fabric import render
    from rdma_fabric.checker import build, check

    out = common.output(options)
    resolved = common.load(common.directory(options), common.what_ifs(options))
    names = common.scope(resolved, options.limit)
    judged = build(resolved)
    report = check(judged)
    rejected = tuple(name for name in names if name in report.rejected)
    _complain(report, out)
    if options.strict and rejected:
        out.complain(f"nothing written: --strict, and {_short(rejected)} rejected")
        if options.format == "json":
            out.data(_json(options, None, rejected, ()))
        return 1
    compiled = render.compile_fabric(judged, [name for name in names if name not in rejected])
    traces = _traces(options, resolved, compiled) if options.annotate else None
    aside = set(resolved.plans) - set(names)
    done = render.write(Path(options.out), judged, compiled, rejected, aside, traces)
    bundles = _bundles(options, judged, compiled, aside, out)
    text = options.format == "text"
    out.data(_text(done, rejected, bundles) if text else _json(options, done, rejected, bundles))
    return 1 if rejected else 0


def _bundles(
    options: argparse.Namespace,
    judged: Judged,
    compiled: Mapping[str, tuple[File, ...]],
    aside: Collection[str],
    out: Output,
) -> tuple[str, ...]:
    """Archives of all hosts, those of equal hosts made once; gives the nodes that have one.

    Says where there can be none. Without --bundle those of an earlier run go, since they are of other files.
    """
    from rdma_fabric import platforms
    from rdma_fabric.push import image

    done: dict[tuple[int, int, int], image.Image] = {}
    found: dict[str, image.Image] = {}
    for name, files in compiled.items() if options.bundle else ():
        view = judged.views[name]
        if platforms.platform(view.hw.base).channel == "files":
            key = (id(files), id(view.wanted), id(view.hw))
            if key not in done:
                done[key] = image.image(files, view.wanted, view.hw)
            found[name] = done[key]
    image.write(Path(options.out), found, aside)
    for why in dict.fromkeys(one.why_not for one in found.values() if one.why_not):
        names = tuple(name for name, one in found.items() if one.why_not == why)
        out.say(f"no bundle for {_short(names)}: {why}")
    return tuple(name for name, one in found.items() if not one.why_not)


def _traces(
    options: argparse.Namespace, resolved: Resolved, compiled: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    """Annotated files of every node; equal nodes are traced once."""
    from rdma_fabric.trace import Sources, trace
    from rdma_fabric.views.trace_text import annotated

    if options.sets or options.unsets:
        from rdma_fabric.findings import InputError, Position, input_finding

        at = Position("--annotate", 0, 0)
        help = "leave --set and --unset out: what they set stands in no file"
        raise InputError([input_finding("reference", "cannot trace a what-if", at, help)])
    sources = Sources.read(common.directory(options))
    done: dict[int, dict[str, str]] = {}
    found = {}
    for name in compiled:
        key = id(resolved.plans[name])
        if key not in done:
            done[key] = annotated(trace(sources, resolved, name))
        found[name] = done[key]
    return found


def _complain(report: Report, out: Output) -> None:
    from rdma_fabric.findings import Severity
    from rdma_fabric.views.findings_text import findings_text

    errors = [one for one in report.findings if one.severity is Severity.ERROR and not one.waived]
    if errors:
        out.complain(findings_text(errors, out) + "\n")


def _short(names: tuple[str, ...]) -> str:
    from rdma_fabric.inventory.ranges import collapse

    return collapse(names)


def _text(done: Written, rejected: tuple[str, ...], bundles: tuple[str, ...]) -> str:
    from rdma_fabric.views.output import count

    text = (
        f"{count(done.nodes, 'node')} compiled: {count(done.written, 'file')} written, {done.same} unchanged"
    )
    text += f", {done.removed} removed" if done.removed else ""
    text += f"; bundles for {count(len(bundles), 'host')}" if bundles else ""
    return text + (f"; rejected: {_short(rejected)}" if rejected else "")


def _json(
    options: argparse.Namespace, done: Written | None, rejected: tuple[str, ...], bundles: tuple[str, ...]
) -> str:
    import json

    data = {
        "version": 1,
        "manifest": str(done.manifest if done else Path(options.out) / "manifest.json"),
        "nodes": done.nodes if done else 0,
        "written": done.written if done else 0,
        "same": done.same if done else 0,
        "removed": done.removed if done else 0,
        "rejected": list(rejected),
        "bundles": list(bundles),
    }
    return json.dumps(data, indent=1)
