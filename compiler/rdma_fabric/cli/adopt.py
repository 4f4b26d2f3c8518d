"""`fabric adopt`: reads a running fabric and writes the intent and inventory that describe it."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.adopt.fit import Adopted
    from rdma_fabric.adopt.layout import Layout
    from rdma_fabric.adopt.sources import Candidate
    from rdma_fabric.adopt.survey import Cabling, Surveyed
    from rdma_fabric.findings import InputError
    from rdma_fabric.state import Observation
    from rdma_fabric.transport.credentials import Secrets
    from rdma_fabric.transport.errors import Failure
    from rdma_fabric.views.output import Output

FILES = ("fabric.yaml", "hosts.yaml", "groups.yaml", "defaults.yaml", "cables.csv")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric adopt`."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a file with one address per line (ADDRESS [PLATFORM [NAME]], or CSV with a header), "
        "or a folder with nornir's hosts.yaml",
    )
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="folder for what is written")
    parser.add_argument("--name", default="adopted", help="name of the fabric (default: adopted)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("-v", "--verbose", action="store_true", help="more detail")
    parser.add_argument("--no-color", action="store_true", help="plain text also on a terminal")
    common.format_option(parser)
    parser.add_argument("--lab", action="store_true", help="SOURCE is a folder whose lab is up")
    parser.add_argument(
        "--workers", type=common.positive, default=50, metavar="N", help="sessions at a time (default 50)"
    )
    parser.add_argument(
        "--hostkeys", action="store_true", help="show unknown host keys and record them in DIR after a yes"
    )
    parser.add_argument("--yes", "-y", action="store_true", help="record host keys without asking")


def run(options: argparse.Namespace) -> int:
    """0 written and all as described, 1 some nodes deviate or were not read, 2 nothing written."""
    from rdma_fabric.adopt.fit import write
    from rdma_fabric.adopt.survey import cabling
    from rdma_fabric.transport.credentials import Secrets
    from rdma_fabric.views.adopt_text import adopt_json, adopt_text

    out = common.output(options)
    target = Path(options.out)
    _refuse_old(target)
    secrets = Secrets()
    candidates = _candidates(options)
    if options.hostkeys and not _keys(options, candidates, target, out):
        return 2
    known = _known_hosts(options, target)
    nodes, failures = _survey(options, candidates, known, secrets, out)
    if not nodes:
        for name, one in failures.items():
            out.complain(f"{name}: {one.kind}: {one.text}")
        out.complain("nothing was read, nothing is written")
        return 2
    cables = cabling(nodes)
    layout, adopted = _read(options, nodes, cables, known, secrets, failures, out)
    if adopted is None:
        out.complain("no node could be read in full, nothing is written")
        return 2
    write(target, layout.files() | {"fabric.yaml": _HEAD + adopted.intent})
    shown = (layout, cables, adopted, failures, str(target))
    out.data(adopt_json(*shown) if options.format == "json" else adopt_text(*shown, out))
    return 1 if adopted.deviants or failures else 0


_HEAD = (
    "# Written by `fabric adopt`: what most nodes of this fabric have. Read it, then `fabric check --live`\n"
    "# names the nodes that have something else.\n"
)


def _trouble(where: str, message: str, help: str) -> InputError:
    from rdma_fabric.findings import InputError, Position, input_finding

    return InputError([input_finding("reference", message, Position(where, 0, 0), help)])


def _refuse_old(target: Path) -> None:
    there = [name for name in FILES if (target / name).exists()]
    if there:
        raise _trouble(
            str(target / there[0]), "is there already", "give a new folder: nothing is overwritten"
        )


def _candidates(options: argparse.Namespace) -> tuple[Candidate, ...]:
    from rdma_fabric.adopt.sources import Candidate, read_candidates

    if not options.lab:
        return read_candidates(Path(options.source))
    path = Path(options.source) / ".fabric/lab/nodes.json"
    try:
        nodes = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise _trouble(str(path), "no lab is up there", "start one with `fabric lab up`") from None
    return tuple(
        Candidate(one["host"], "", "", one["port"], one["username"], one["key_file"])
        for one in nodes.values()
    )


def _known_hosts(options: argparse.Namespace, target: Path) -> tuple[Path, ...]:
    if options.lab:
        return (Path(options.source) / ".fabric/lab/known_hosts",)
    return (Path.home() / ".ssh/known_hosts", target / "known_hosts")


def _keys(options: argparse.Namespace, candidates: tuple[Candidate, ...], target: Path, out: Output) -> bool:
    """Shows what the nodes present; True when all of them are known or recorded now."""
    from rdma_fabric.adopt.survey import label
    from rdma_fabric.cli import pushing
    from rdma_fabric.transport.hostkeys import Presented, record, scan
    from rdma_fabric.transport.targets import Target

    known = _known_hosts(options, target)
    targets = {label(one): Target(label(one), one.address, one.port, known_hosts=known) for one in candidates}
    new = []
    for name, one in scan(targets, workers=options.workers).items():
        if isinstance(one, Presented) and one.state != "known":
            out.say(f"{name:<16} {one.fingerprint} {one.state}")
            new.append(one)
    if not new:
        return True
    if not pushing.agreed(options, f"record {len(new)} keys in {target / 'known_hosts'}?", out):
        return False
    target.mkdir(parents=True, exist_ok=True)
    record(target / "known_hosts", new)
    return True


def _survey(
    options: argparse.Namespace,
    candidates: tuple[Candidate, ...],
    known: tuple[Path, ...],
    secrets: Secrets,
    out: Output,
) -> tuple[dict[str, Surveyed], dict[str, Failure]]:
    from rdma_fabric.adopt.survey import survey
    from rdma_fabric.transport.errors import Failure
    from rdma_fabric.views.output import count

    out.say(f"asking {count(len(candidates), 'node')} who they are ...")
    nodes: dict[str, Surveyed] = {}
    failures: dict[str, Failure] = {}
    for name, one in survey(candidates, known, secrets, workers=options.workers).items():
        if isinstance(one, Failure):
            failures[name] = one
        elif one.name in nodes:
            first = nodes[one.name].candidate.address
            failures[name] = Failure(
                name, "refused", f"it is called {one.name} like {first}: name it in the list"
            )
        else:
            nodes[one.name] = one
    return nodes, failures


def _read(
    options: argparse.Namespace,
    nodes: Mapping[str, Surveyed],
    cables: Cabling,
    known: tuple[Path, ...],
    secrets: Secrets,
    failures: dict[str, Failure],
    out: Output,
) -> tuple[Layout, Adopted | None]:
    """Reads all nodes with an inventory in a temporary folder, twice: speeds come with the first reading."""
    from dataclasses import replace

    from rdma_fabric.adopt.fit import fit, text, with_facts, write
    from rdma_fabric.adopt.layout import layout
    from rdma_fabric.observe import observe
    from rdma_fabric.state import Observation
    from rdma_fabric.transport.targets import targets

    found = layout(nodes, cables)
    seen: dict[str, Observation] = {}
    for again in (False, True):
        out.say("reading their settings ..." if not again else "reading once more, with speeds ...")
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write(folder, found.files() | {"fabric.yaml": text({"name": options.name})})
            resolved = common.load(folder)
            reached = targets(resolved.inventory, list(resolved.plans), folder)
            reached = {name: replace(one, known_hosts=known) for name, one in reached.items()}
            answers = observe(resolved.plans, resolved.plans, reached, secrets, workers=options.workers)
        seen = {name: one for name, one in answers.items() if isinstance(one, Observation)}
        failures |= {name: one for name, one in answers.items() if not isinstance(one, Observation)}
        if not again:
            found = with_facts(found, seen)
    adopted = fit(options.name, found, resolved.inventory, seen) if seen else None
    return found, adopted
