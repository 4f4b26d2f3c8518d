"""docs/rules holds a page per rule, made from its docstring; `make golden` writes them anew."""

from __future__ import annotations

import re

from rdma_fabric.checker import registry
from rdma_fabric.checker.registry import Documented
from rdma_fabric.checker.scopes import Rule
from rdma_fabric.findings import INPUT_CODES
from tests.support.golden import Golden

SCOPES = {
    "IntentRule": "the intent",
    "NodeRule": "one node",
    "PortRule": "one port",
    "LinkRule": "the two ends of a cable",
    "PathRule": "the way from a host over its leaf to the next switch",
    "NetworkRule": "all ports of a network",
    "FabricRule": "the whole fabric",
    "WaiverRule": "one waiver",
}


_BOUNDS = (
    (
        "a fixed PFC threshold of at most (B - m n h) / (m n), and marks below 1/n of it",
        "thresholds move with the shared pool on every platform here; FAB067 judges fixed ones "
        "against their resume point",
    ),
    (
        "marks before the first pause whatever all ports do (DCQCN paper, section 4)",
        "FAB065 tells it as a note: alpha is the device's own, so that the bound is that of an "
        "endless alpha; an error is only what can never mark",
    ),
    (
        "egress alpha above ingress alpha of a lossless class",
        "neither is wished or read",
    ),
    (
        "xon at least two frames below xoff",
        "an advice that no vendor confirms; most shipped tables have less",
    ),
    (
        "a shared headroom pool against all ports that pause at once",
        "oversubscribing it is a choice; FAB066 adds up the headroom itself",
    ),
    (
        "the queue at which DCQCN comes to rest",
        "FAB068 tells where there is none; firmware differs from the paper, so that the number "
        "itself would promise too much",
    ),
    (
        "detection of a storm against the drain time of all hops behind a port",
        "FAB069 takes the switch's own buffer; what lies behind it depends on the traffic",
    ),
)
NOT_JUDGED = (
    "## What no rule judges",
    "",
    "Bounds that are known, and why they are no rule:",
    "",
    "| bound | why |",
    "|---|---|",
    *(f"| {bound} | {why} |" for bound, why in _BOUNDS),
    "",
)


def _page(one: Documented) -> str:
    rule: Rule = one.rule
    lines = one.doc.strip().splitlines()
    out = [f"# {rule.code} {rule.name}", "", lines[0], ""]
    out += [
        f"Severity: {rule.severity}. Family: {rule.family}. Judges {SCOPES[type(rule).__name__]}. "
        f"Since {rule.since}."
    ]
    example = False
    for line in lines[1:]:
        if line and not line.startswith(" "):
            example = line in ("Wrong", "Right")
            out += [f"## {line}", ""] + (["```"] if example else [])
        elif line:
            out.append(line.removeprefix("    "))
        elif out[-1]:
            out += ["```", ""] if example and out[-1] != "```" and not out[-1].startswith("#") else [""]
    return "\n".join(out) + "\n"


def _index() -> str:
    rows = [
        f"| [{one.rule.code}]({one.rule.code}.md) | {one.rule.name} | {one.rule.severity} | "
        f"{one.rule.family} | {one.doc.strip().splitlines()[0]} |"
        for one in registry.documented()
    ]
    return "\n".join(
        [
            "# Rules",
            "",
            "What `fabric check` judges. `fabric explain CODE` prints a page; waivers take code or name.",
            f"Codes {min(INPUT_CODES.values())} to {max(INPUT_CODES.values())} are errors of input files.",
            "A rule may give a lower severity than the one listed; its page says when.",
            "What the intent leaves to the device, and nobody read, is judged by the platform's [default]"
            "(../defaults.md), as a warning at most.",
            "",
            "| code | name | severity | family | what is wrong |",
            "|---|---|---|---|---|",
            *rows,
            "",
            *NOT_JUDGED,
        ]
    )


def test_pages_are_the_docstrings(golden: Golden) -> None:
    pages = {f"{one.rule.code}.md": _page(one) for one in registry.documented()}
    golden.at("..", "..", "docs").tree("rules", {**pages, "README.md": _index()})


def test_a_page_is_complete() -> None:
    page = _page(registry.documented()[0])
    heads = re.findall(r"^## (.+)$", page, flags=re.MULTILINE)
    assert heads == ["What it checks", "Why it breaks RDMA", "Wrong", "Right", "When to waive it"]
    assert page.count("```") == 4
