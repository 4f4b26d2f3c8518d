"""Switches of one network spread packets differently.

What it checks
    The option `adaptive_routing` that the inventory gives of switches (any word: on, off, spray ...): all
    switches of a network that say it say the same.

Why it breaks RDMA
    Adaptive routing and spraying change the order of packets, which only some NICs accept. When one tier
    sprays and another hashes, flows are reordered without being spread, or spread into one hot uplink.
    Source: NVIDIA Spectrum-X documentation (adaptive routing is set on all switches and on the NICs).

Wrong
    leaf:  {data: {options: {adaptive_routing: "spray"}}}
    spine: {data: {options: {adaptive_routing: "none"}}}

Right
    leaf:  {data: {options: {adaptive_routing: "spray"}}}
    spine: {data: {options: {adaptive_routing: "spray"}}}

When to waive it
    For a tier in which there is only one way.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity

OPTION = "adaptive_routing"


def _check(judged: Judged) -> Iterator[Hit]:
    said: dict[str, dict[str, str]] = {}
    for name, view in judged.views.items():
        word = view.hw.option(OPTION)
        for network in set(view.networks.values()) if word and not view.is_host else ():
            said.setdefault(network, {})[name] = word
    for network, words in said.items():
        usual, count = Counter(words.values()).most_common(1)[0]
        odd = (
            [name for name, word in words.items() if word != usual] if 2 * count > len(words) else list(words)
        )
        if len(set(words.values())) > 1:
            yield Hit(
                setting=OPTION,
                found=", ".join(sorted({words[name] for name in odd})),
                wanted=f"{usual}, as {count} of {len(words)} switches of network {network}",
                message="{where}: switches of one network spread packets differently",
                help="set it alike on all switches of the network",
                position=judged.inventory.nodes[odd[0]].spec.position,
                places=tuple(Place(name) for name in odd),
            )


RULE = FabricRule(
    "FAB064", "adaptive-routing-differs", Severity.WARNING, "0.1", "topology", _check, plan=True
)
