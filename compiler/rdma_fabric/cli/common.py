"""What several commands share: options, loading, and the way in which trouble leaves."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.findings import Finding, InputError

if TYPE_CHECKING:
    from rdma_fabric.inventory.types import Inventory
    from rdma_fabric.resolve import Resolved, WhatIf
    from rdma_fabric.views.output import Output
    from rdma_fabric.views.verdict import Source, Verdict

FORMATS = ("text", "json")
REPORTS = ("sarif", "junit", "markdown")
"""Further formats of a verdict, for other programs."""


def folder_options(parser: argparse.ArgumentParser) -> None:
    """DIR and -C, -q, -v, --no-color."""
    parser.add_argument("dir", nargs="?", metavar="DIR", help="folder that holds fabric.yaml (default: .)")
    parser.add_argument("-C", dest="chdir", metavar="DIR", help="the same, before other arguments")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("-v", "--verbose", action="store_true", help="more detail")
    parser.add_argument("--no-color", action="store_true", help="plain text also on a terminal")


def format_option(parser: argparse.ArgumentParser, *more: str) -> None:
    """--format with text, json and what else the command offers."""
    parser.add_argument("--format", choices=(*FORMATS, *more), default="text", help="output format")


def limit_option(parser: argparse.ArgumentParser) -> None:
    """--limit EXPR."""
    parser.add_argument(
        "--limit", metavar="EXPR", default="", help="only these nodes: names, globs, role=leaf, platform=..."
    )


def set_options(parser: argparse.ArgumentParser) -> None:
    """--set and --unset: what-if."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="sets",
        metavar="KEY=VALUE",
        help="what if: KEY is a dotted key of the intent, networks.NAME.key, NODE:key, NODE:PORT:key or "
        "'NODE:PORT - NODE:PORT:key' (also length_m, speed)",
    )
    parser.add_argument(
        "--unset",
        action="append",
        default=[],
        dest="unsets",
        metavar="KEY",
        help="what if: without it; 'NODE:PORT - NODE:PORT' takes a cable away",
    )


def device_options(parser: argparse.ArgumentParser) -> None:
    """--lab and --workers."""
    parser.add_argument("--lab", action="store_true", help="talk to the embedded lab instead of the devices")
    parser.add_argument(
        "--workers", type=positive, default=50, metavar="N", help="sessions at a time (default 50)"
    )


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 999999")
    return int(text)


def directory(options: argparse.Namespace) -> Path:
    """The fabric's folder."""
    return Path(options.dir or options.chdir or ".")


def output(options: argparse.Namespace) -> Output:
    """How to talk."""
    from rdma_fabric.views.output import Output

    return Output.make(no_color=options.no_color, quiet=options.quiet, verbose=options.verbose)


def what_ifs(options: argparse.Namespace) -> tuple[WhatIf, ...]:
    """--set and --unset as values, in this order; InputError for a --set without a value."""
    from rdma_fabric.what_if import WhatIf, split

    return (*map(split, options.sets), *(WhatIf(key, None) for key in options.unsets))


def load(folder: Path, changes: tuple[WhatIf, ...] = ()) -> Resolved:
    """Intent and inventory of a folder, resolved; InputError collects the trouble of all files."""
    from rdma_fabric.inventory.load import load as load_inventory
    from rdma_fabric.resolve import load_intent, resolve

    findings: list[Finding] = []
    loaded = inventory = None
    try:
        loaded = load_intent(folder / "fabric.yaml")
    except InputError as error:
        findings.extend(error.findings)
    try:
        inventory = _inventory(folder, load_inventory)
    except InputError as error:
        findings.extend(error.findings)
    if loaded is None or inventory is None:
        raise InputError(findings)
    return resolve(loaded[0], loaded[1], inventory, changes)


def _inventory(folder: Path, load_files: Callable[..., Inventory]) -> Inventory:
    """hosts.yaml and its kin, or the nornir plug-in that nornir.yaml names where there is no hosts.yaml."""
    from rdma_fabric import platforms

    if (folder / "nornir.yaml").exists() and not os.path.lexists(folder / "hosts.yaml"):
        from rdma_fabric.inventory.nornir_plugin import read_nornir

        return read_nornir(folder / "nornir.yaml", platforms.bases())
    return load_files(folder, platforms.bases(), platforms.nics())


def scope(resolved: Resolved, text: str, option: str = "--limit") -> tuple[str, ...]:
    """Names that --limit selects; InputError when it is wrong, names nobody or selects nothing."""
    from rdma_fabric.findings import BadValue, Position, did_you_mean, input_finding, natural
    from rdma_fabric.inventory.selector import parse

    nodes = resolved.inventory.nodes
    at = Position(f"{option} {text}", 0, 0)
    try:
        selector = parse(text)
    except BadValue as error:
        raise InputError([input_finding("reference", error.text, at, error.help)]) from None
    wrong = []
    for name in sorted(selector.names - nodes.keys(), key=natural)[:4]:
        near = did_you_mean(name, nodes)
        help = f"did you mean {near}?" if near else "see hosts.yaml for the names"
        wrong.append(input_finding("reference", f"there is no node {name}", at, help))
    names = tuple(name for name, node in nodes.items() if selector.selects(node))
    if not names and not wrong:
        wrong.append(input_finding("reference", "selects no node", at, "see hosts.yaml for the names"))
    if wrong:
        raise InputError(wrong)
    return names


def source(folder: Path) -> Source:
    """The git work tree around the fabric's folder (a folder or file `.git` marks it), else the folder."""
    from rdma_fabric.views.verdict import Source

    here = Path(os.path.realpath(folder))
    root = next((one for one in (here, *here.parents) if os.path.lexists(one / ".git")), here)
    below = here.relative_to(root).as_posix()
    return Source(root, "" if below == "." else below)


def report(format: str, verdict: Verdict) -> str:
    """The verdict in one of REPORTS."""
    if format == "sarif":
        from rdma_fabric.views.sarif import report_sarif

        return report_sarif(verdict)
    if format == "junit":
        from rdma_fabric.views.junit import report_junit

        return report_junit(verdict)
    from rdma_fabric.views.markdown import report_markdown

    return report_markdown(verdict)


def guarded(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Runs a command; trouble becomes a message and exit code 2, Ctrl-C 130, never a traceback."""
    try:
        try:
            return run(options)
        except InputError as error:
            _tell(error, options)
            return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("FABRIC_DEBUG"):
            raise
        if isinstance(error, OSError) and error.strerror:  # a full disk, a folder that is not ours
            where = f"{error.filename}: " if error.filename else ""
            sys.stderr.write(f"fabric: {where}{error.strerror}\n")
            sys.stderr.write(
                "it ended here; a run that was going on is recovered by the next apply or rollback\n"
            )
            return 2
        sys.stderr.write(f"fabric: {type(error).__name__}: {error}\n")
        sys.stderr.write("this is a fault of fabric itself; FABRIC_DEBUG=1 shows where, please report it\n")
        return 2


def _tell(error: InputError, options: argparse.Namespace) -> None:
    from rdma_fabric.views.findings_json import report_json
    from rdma_fabric.views.findings_text import findings_text

    out = output(options)
    format = getattr(options, "format", "text")
    if format == "json":
        out.data(report_json(error.findings))
    elif format in REPORTS:
        from rdma_fabric.views.verdict import Verdict

        out.data(report(format, Verdict(error.findings, source(directory(options)), loaded=False)))
    else:
        out.complain(findings_text(error.findings, out))
