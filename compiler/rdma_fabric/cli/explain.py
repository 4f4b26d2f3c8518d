"""`fabric explain`: a rule's documentation, or the list of rules."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.checker.registry import Documented


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric explain`."""
    parser.add_argument("rule", nargs="?", help="code or name of a rule; none: list them")
    parser.add_argument("-q", "--quiet", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-color", action="store_true", help="plain text also on a terminal")
    common.format_option(parser)


def run(options: argparse.Namespace) -> int:
    """0 shown, 2 no such rule."""
    out = common.output(options)
    if not options.rule:
        out.data(_list(options))
        return 0
    from rdma_fabric.checker import registry
    from rdma_fabric.findings import HEALTH, INPUT_CODES, did_you_mean, health_check

    found = registry.find(options.rule)
    name = next((n for n, code in INPUT_CODES.items() if options.rule in (n, code, code.lower())), "")
    check = health_check(options.rule)
    if found is None and not name and check is None:
        words = [word for one in registry.rules() for word in (one.code, one.name)]
        near = did_you_mean(
            options.rule, (*words, *INPUT_CODES, *INPUT_CODES.values(), *(one.name for one in HEALTH))
        )
        tail = f", did you mean {near}?" if near else "; `fabric explain` lists all rules"
        out.complain(f"fabric: no rule {options.rule!r}{tail}")
        return 2
    if check:
        head = f"{check.code} {check.name} ({check.severity}, step {check.step} of `fabric verify`)"
        out.data(_text(options, head, check.code, check.name, str(check.severity), check.doc))
        return 0
    out.data(_rule(found, options) if found else _input(name, options))
    return 0


def _list(options: argparse.Namespace) -> str:
    import json

    from rdma_fabric.checker import registry

    rows = [
        {
            "code": one.rule.code,
            "name": one.rule.name,
            "severity": str(one.rule.severity),
            "family": one.rule.family,
            "title": one.doc.strip().splitlines()[0],
        }
        for one in registry.documented()
    ]
    if options.format == "json":
        return json.dumps({"version": 1, "rules": rows}, indent=1)
    return "\n".join(f"{r['code']}  {r['severity']:<7}  {r['name']:<28} {r['title']}" for r in rows)


def _rule(found: Documented, options: argparse.Namespace) -> str:
    rule = found.rule
    head = f"{rule.code} {rule.name} ({rule.severity}, family {rule.family}, since {rule.since})"
    return _text(options, head, rule.code, rule.name, str(rule.severity), found.doc)


def _input(name: str, options: argparse.Namespace) -> str:
    """A finding about an input file, which is no rule's."""
    from rdma_fabric.findings import INPUT_CODES, INPUT_DOCS

    code = INPUT_CODES[name]
    return _text(options, f"{code} {name} (error, family input)", code, name, "error", INPUT_DOCS[name])


def _text(options: argparse.Namespace, head: str, code: str, name: str, severity: str, doc: str) -> str:
    import json

    if options.format == "json":
        data = {"version": 1, "code": code, "name": name, "severity": severity, "doc": doc}
        return json.dumps(data, indent=1)
    return f"{head}\n\n{doc.strip()}"
