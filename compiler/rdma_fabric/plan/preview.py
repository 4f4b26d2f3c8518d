"""What a push of a pull request would look like: waves, disturbance, and text that changed by itself.

No device is asked: the base revision's settings stand for what the devices have. What the base left to the
devices is taken to be as wanted, since nobody knows it; it adds no wave and no disturbance.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rdma_fabric import __version__, platforms
from rdma_fabric.checker import Judged
from rdma_fabric.findings import Finding
from rdma_fabric.plan.base import BaseChange, hunks, renamed
from rdma_fabric.plan.changes import Target, make_plan
from rdma_fabric.plan.disturb import Budget, Harm
from rdma_fabric.plan.marks import moves
from rdma_fabric.platforms._contract import Disturbs
from rdma_fabric.render import MANIFEST, compile_fabric
from rdma_fabric.state import Observation


@dataclass(frozen=True, slots=True)
class Disturbed:
    """Nodes that are disturbed alike."""

    nodes: tuple[str, ...]
    level: str
    """As in `--allow`: loss, port-bounce, driver-reload, reboot."""
    what: str
    source: str
    felt: bool
    """True when a node with workload feels it: then the push needs a drained node or --allow."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A push as it would go from the base revision's settings."""

    waves: tuple[tuple[str, ...], ...] = ()
    disturbed: tuple[Disturbed, ...] = ()
    tool: tuple[str, str] = ("", "")
    """Version that compiled the base's committed output, and this one; empty without such output."""
    unplanned: tuple[str, ...] = ()
    """Nodes that change, but whose lines depend on what only the device knows: no wave, no disturbance."""


def preview(old: Judged, new: Judged, changes: tuple[BaseChange, ...]) -> Preview:
    """Waves and disturbance of the nodes whose settings change."""
    moved = renamed(old, new)
    names = [
        name for one in changes if one.kind in ("changed", "renamed") and one.settings for name in one.nodes
    ]
    seen = {}
    for name in names:
        state = platforms.overlay(new.views[name].wanted, old.views[moved.get(name, name)].wanted)
        seen[name] = Observation(state, stored=state)
    targets = {name: Target(new.views[name].wanted, new.views[name].hw) for name in names}
    plan = make_plan(
        new.inventory,
        targets,
        seen,
        inputs="",
        budget=Budget(Disturbs.REBOOT),
        accept_unverified=True,
        held=False,  # whether a switch can be read shows only when it is asked
    )
    rows: dict[tuple[str, str, str, bool], list[str]] = {}
    for row in plan.rows:
        if row.change is None or row.status != "change" or not row.change.disturbs:
            continue
        worst = max(row.change.disturbs, key=lambda one: one.level)
        if worst.level > Disturbs.NOTHING:
            key = (str(worst.level), worst.what, worst.source, bool(row.felt_by))
            rows.setdefault(key, []).append(row.node)
    planned = {row.node: row for row in plan.rows}
    for name, why in moves(planned, targets, seen, Harm(new.inventory, Budget())).items():
        rows.setdefault((str(Disturbs.LOSS), why, "docs/push.md, Moving a priority", True), []).append(name)
    disturbed = tuple(Disturbed(tuple(nodes), *key) for key, nodes in rows.items())
    unplanned = tuple(row.node for row in plan.rows if row.status == "unknown")
    return Preview(plan.waves, disturbed, unplanned=unplanned)


# -- compiled output that is kept in the repository


def rendered(
    new: Judged, read: Callable[[str], bytes | None], changes: tuple[BaseChange, ...]
) -> tuple[tuple[BaseChange, ...], tuple[str, str]]:
    """Nodes whose committed text differs though no setting does, and (version that wrote it, this one).

    `read` gives a file of the committed output by its path, None where there is none.
    """
    text = read(MANIFEST)
    try:
        manifest = json.loads(text) if text else {}
        kept: Mapping[str, Mapping[str, str]] = {
            name: {path: file["sha256"] for path, file in node["files"].items()}
            for name, node in manifest.get("nodes", {}).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return (), ("", "")
    if not kept:
        return (), ("", "")
    told = {name for one in changes for name in one.nodes}
    names = [name for name in new.views if name in kept and name not in told]
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, files in compile_fabric(new, names).items():
        now = {one.path: one for one in files}
        if {path: one.sha256 for path, one in now.items()} != kept[name]:
            lines = tuple(_lines(name, {path: one.text for path, one in now.items()}, kept[name], read))
            rows.setdefault(lines, []).append(name)
    found = tuple(BaseChange("rendered", tuple(nodes), (), lines) for lines, nodes in rows.items())
    return found, (str(manifest.get("tool", "")), __version__)


def _lines(
    name: str, now: Mapping[str, str], kept: Mapping[str, str], read: Callable[[str], bytes | None]
) -> Iterator[str]:
    for path in sorted(now.keys() | kept.keys()):
        text = now.get(path, "")
        if path in now and hashlib.sha256(text.encode()).hexdigest() == kept.get(path):
            continue
        before = (read(f"{name}/{path}") or b"").decode(errors="replace") if path in kept else ""
        yield f"--- {path if path in kept else '/dev/null'}"
        yield f"+++ {path if path in now else '/dev/null'}"
        yield from hunks(before.splitlines(), text.splitlines())


def fresh(findings: tuple[Finding, ...], before: tuple[Finding, ...]) -> frozenset[Finding]:
    """Findings that the base revision does not have at the same place and setting."""
    old = {_identity(one) for one in before}
    return frozenset(one for one in findings if _identity(one) not in old)


def _identity(one: Finding) -> tuple[object, ...]:
    return (one.code, one.severity, one.places, one.setting, one.found)
