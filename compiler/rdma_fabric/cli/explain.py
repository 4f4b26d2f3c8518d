"""`fabric explain`: a rule's documentation, or the list of rules."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.views.output import Output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric explain`."""
    parser.add_argument("rule", nargs="?", help="code or name of a rule; none: list them")
    parser.add_argument("-q", "--quiet", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-color", action="store_true", help="plain text also on a terminal")
    common.format_option(parser)


def run(options: argparse.Namespace) -> int:
    """0 shown, 2 no such rule."""
    import json

    from rdma_fabric.checker import registry
    from rdma_fabric.findings import did_you_mean

    out = common.output(options)
    if not options.rule:
        rows = [
            {
                "code": one.rule.code,
                "name": one.rule.name,
                "severity": str(one.rule.severity),
                "family": one.rule.family,
            }
            | {"title": one.doc.strip().splitlines()[0]}
            for one in registry.documented()
        ]
        if options.format == "json":
            out.data(json.dumps({"version": 1, "rules": rows}, indent=1))
        else:
            out.data(
                "\n".join(f"{r['code']}  {r['severity']:<7}  {r['name']:<28} {r['title']}" for r in rows)
            )
        return 0
    found = registry.find(options.rule)
    if found is None and _input(options.rule, out):
        return 0
    if found is None:
        words = [word for one in registry.rules() for word in (one.code, one.name)]
        near = did_you_mean(options.rule, words)
        out.complain(f"fabric: no rule {options.rule!r}{f', did you mean {near}?' if near else ''}")
        return 2
    rule = found.rule
    if options.format == "json":
        data = {
            "version": 1,
            "code": rule.code,
            "name": rule.name,
            "severity": str(rule.severity),
            "doc": found.doc,
        }
        out.data(json.dumps(data, indent=1))
    else:
        out.data(f"{rule.code} {rule.name} ({rule.severity}, family {rule.family}, since {rule.since})\n")
        out.data(found.doc.strip())
    return 0


def _input(word: str, out: Output) -> bool:
    """Explains a finding about an input file; False when the word is none of them."""
    from rdma_fabric.findings import INPUT_CODES, INPUT_DOCS

    name = next((name for name, code in INPUT_CODES.items() if word in (name, code, code.lower())), "")
    if name:
        out.data(f"{INPUT_CODES[name]} {name} (error, family input)\n\n{INPUT_DOCS[name]}")
    return bool(name)
