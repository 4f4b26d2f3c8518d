"""`fabric check`: every rule over the intended fabric, or over observed states laid over it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.checker import Report
    from rdma_fabric.findings import Finding
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.state import Observation
    from rdma_fabric.views.output import Output
    from rdma_fabric.views.verdict import Verdict


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric check`."""
    common.folder_options(parser)
    common.format_option(parser, *common.REPORTS)
    common.limit_option(parser)
    common.set_options(parser)
    common.device_options(parser)
    parser.add_argument(
        "--observed", metavar="FILE", help="observed states (fabric observe -o) for some or all nodes"
    )
    parser.add_argument("--live", action="store_true", help="read the devices now")
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")


def run(options: argparse.Namespace) -> int:
    """0 no errors, 1 errors (with --strict also warnings) or a node unread, 2 bad input or nothing read."""
    from rdma_fabric.checker import build, check

    out = common.output(options)
    resolved = common.load(common.directory(options), common.what_ifs(options))
    names = common.scope(resolved, options.limit)
    observations, unread = _observed(options, resolved, names, out)
    report = check(build(resolved, observations))
    _show(report, resolved, options, out, set(names) if options.limit else None)
    found = verdict(report, options.strict, names if options.limit else None)
    if found or not unread:
        return found
    return 1 if observations else 2


def _observed(
    options: argparse.Namespace, resolved: Resolved, names: tuple[str, ...], out: Output
) -> tuple[dict[str, Observation], int]:
    """Observed states to judge, and the number of nodes that could not be read."""
    found: dict[str, Observation] = {}
    if options.observed:
        found = _from_file(Path(options.observed), resolved)
    if not options.live:
        return found, 0
    from rdma_fabric.cli import live

    read, failures = live.observe(options, resolved, names, out)
    for name, failure in failures.items():
        out.complain(f"{name}: {failure.kind}: {failure.text}")
    return {**found, **read}, len(failures)


def _from_file(path: Path, resolved: Resolved) -> dict[str, Observation]:
    from rdma_fabric.codec import load_observations
    from rdma_fabric.findings import InputError, Position, did_you_mean, input_finding
    from rdma_fabric.source import file_error

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise file_error(
            path, getattr(error, "strerror", "") or "is not UTF-8", "give a file of `fabric observe -o`"
        ) from None
    found = load_observations(text, str(path))
    at = Position(str(path), 0, 0)
    wrong = []
    for name in found:
        if name not in resolved.plans:
            near = did_you_mean(name, resolved.plans)
            help = f"did you mean {near}?" if near else "add it to hosts.yaml, or leave it out of the file"
            wrong.append(input_finding("reference", f"node {name} is not in the inventory", at, help))
            continue
        ports = resolved.inventory.nodes[name].spec.ports
        for port in found[name].running.ports:
            if port.name not in ports:
                near = did_you_mean(port.name, ports)
                help = f"did you mean {near}?" if near else f"the inventory gives {name} no such port"
                wrong.append(input_finding("reference", f"node {name} has no port {port.name}", at, help))
    if wrong:
        raise InputError(wrong)
    return found


def verdict(report: Report, strict: bool, names: tuple[str, ...] | None = None) -> int:
    """Exit code of a report; with a limit only findings at these nodes (or at no node) count."""
    from rdma_fabric.findings import Severity

    least = Severity.WARNING if strict else Severity.ERROR
    for one in report.findings:
        nodes = {place.node for place in one.places if place.node}
        if one.waived or one.severity < least:
            continue
        if names is None or not nodes or nodes & set(names):
            return 1
    return 0


def _show(
    report: Report, resolved: Resolved, options: argparse.Namespace, out: Output, only: set[str] | None
) -> None:
    found = tuple(
        one
        for one in report.findings
        if only is None or not any(p.node for p in one.places) or any(p.node in only for p in one.places)
    )
    if options.format in common.REPORTS:
        out.data(common.report(options.format, _verdict(report, resolved, found, options)))
    elif options.format == "json":
        from rdma_fabric.views.findings_json import report_json

        out.data(
            report_json(
                found,
                rejected=report.rejected,
                affected=report.affected,
                not_judged=report.not_judged,
                nodes=len(resolved.plans),
            )
        )
    else:
        _text(report, len(resolved.plans), found, out)


def _verdict(
    report: Report, resolved: Resolved, found: tuple[Finding, ...], options: argparse.Namespace
) -> Verdict:
    from rdma_fabric.checker import registry
    from rdma_fabric.inventory.ranges import collapse
    from rdma_fabric.views.verdict import Verdict

    return Verdict(
        found,
        common.source(common.directory(options)),
        fabric=resolved.intent.name,
        nodes=len(resolved.plans),
        rejected=report.rejected,
        rejected_short=collapse(report.rejected),
        affected=report.affected,
        not_judged=report.not_judged,
        rules=registry.documented(),
        strict=options.strict,
    )


def _text(report: Report, nodes: int, found: tuple[Finding, ...], out: Output) -> None:
    from rdma_fabric.findings import Severity
    from rdma_fabric.inventory.ranges import collapse
    from rdma_fabric.views.findings_text import findings_text, summary

    shown = [one for one in found if out.verbose or one.severity > Severity.NOTE]
    if shown:
        out.data(findings_text(shown, out) + "\n")
    hidden = len(found) - len(shown)
    out.data(summary(found, nodes, report.rejected, report.affected, collapse(report.rejected)))
    if hidden:
        out.say(f"{hidden} note{'s' if hidden > 1 else ''} not shown: -v shows them")
    for name, by in report.affected.items():
        if out.verbose:
            out.say(f"affected: {name} (by {', '.join(by)})")
    for code, why, count in report.not_judged:
        out.say(f"not judged: {code} for {count} kind{'s' if count > 1 else ''} of place: {why}")
