"""What `fabric adopt` found, as text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rdma_fabric.inventory.ranges import collapse
from rdma_fabric.views.output import Output, count

if TYPE_CHECKING:
    from rdma_fabric.adopt.fit import Adopted
    from rdma_fabric.adopt.layout import Layout
    from rdma_fabric.adopt.survey import Cabling
    from rdma_fabric.transport.errors import Failure


def adopt_text(
    layout: Layout,
    cables: Cabling,
    adopted: Adopted,
    failures: Mapping[str, Failure],
    target: str,
    out: Output,
) -> str:
    """Numbers, what could not be expressed, and the nodes that are not as the others."""
    kinds = Counter((layout.roles[name], one.platform) for name, one in layout.nodes.items())
    lines = [f"{number} x {role} {platform}" for (role, platform), number in sorted(kinds.items())]
    lines.append(f"{count(len(cables.links), 'cable')}; lengths are not known: fill them in in cables.csv")
    lines += [f"note: {note}" for note in cables.notes]
    lines += [f"left to the devices, since they differ without a pattern: {key}" for key in adopted.left]
    lines += [
        f"{out.paint(name, 'error')}: not read: {one.kind}: {one.text}" for name, one in failures.items()
    ]
    for node, rows in adopted.deviants.items():
        for one in rows:
            lines.append(
                f"{out.paint(node, 'error')} {one.setting}: found {one.found}, the others {one.wanted}"
            )
    for settings, nodes in _alike(adopted.lost).items():
        lines.append(
            f"{out.paint(collapse(nodes), 'warning')}: works as described, and comes back from a reboot with "
            f"something else: {_some(settings)} (`fabric drift` tells what, `fabric apply` stores it)"
        )
    if not adopted.deviants:
        lines.append("every node that was read is as the intent says")
    lines.append(f"written to {target}: read fabric.yaml, then run `fabric check {target} --live`")
    return "\n".join(lines)


def _alike(lost: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, ...], list[str]]:
    """Settings -> the nodes that lose exactly these."""
    found: dict[tuple[str, ...], list[str]] = {}
    for node, settings in lost.items():
        found.setdefault(settings, []).append(node)
    return found


def _some(settings: tuple[str, ...]) -> str:
    more = f" and {len(settings) - 4} more" if len(settings) > 4 else ""
    return ", ".join(settings[:4]) + more


def adopt_json(
    layout: Layout, cables: Cabling, adopted: Adopted, failures: Mapping[str, Failure], target: str
) -> str:
    """Version 1."""
    return json.dumps(
        {
            "version": 1,
            "directory": target,
            "nodes": {
                name: {"role": layout.roles[name], "platform": one.platform, "address": one.candidate.address}
                for name, one in layout.nodes.items()
            },
            "cables": len(cables.links),
            "notes": list(cables.notes),
            "left": list(adopted.left),
            "failures": {name: f"{one.kind}: {one.text}" for name, one in failures.items()},
            "deviants": {
                node: [
                    {
                        "port": one.port,
                        "setting": one.title,
                        "key": one.key,
                        "found": one.found,
                        "wanted": one.wanted,
                    }
                    for one in rows
                ]
                for node, rows in adopted.deviants.items()
            },
            "lost": {node: list(settings) for node, settings in adopted.lost.items()},
        },
        indent=1,
    )
