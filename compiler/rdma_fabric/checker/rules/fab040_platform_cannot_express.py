"""A platform cannot do what the intent asks for.

What it checks
    What each platform reports while it turns the wish into its own settings: a nearest value that it uses
    instead (note), a wish that it drops (warning), a wish without which the node cannot work (error).
    Notes and warnings about one place that have one reason are one finding.
    With `pfc.watchdog.require: true` such a gap of a switch's watchdog is an error; NICs have none.

Why it breaks RDMA
    A wish that is dropped without a word is the worst kind of difference: the intent says lossless, the
    device is not, and nothing looks wrong until the fabric is loaded.
    Source: the platform's page in docs/platforms, which names the vendor's document.

Wrong
    pfc: {watchdog: {detect: 205ms, require: true}}      # on a platform with steps of 10 ms

Right
    pfc: {watchdog: {detect: 200ms, restore: 400ms}}

When to waive it
    When the platform's own behaviour is good enough at this place and is known to be.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rdma_fabric.checker.blame import setting_key
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.checker.words import title
from rdma_fabric.findings import Severity
from rdma_fabric.platforms._contract import Fault

_OF_A_PRIORITY = {"pfc_tx": "sending pause", "pfc_rx": "obeying pause", "watchdog": "watchdog"}


@dataclass(frozen=True, slots=True)
class _Gap:
    """One thing that a platform cannot express, in words."""

    fault: Fault
    key: str
    severity: Severity

    @property
    def wish(self) -> str:
        """ "watchdog restore 400 ms"."""
        priority, _, field = self.fault.setting.removeprefix("qos.classes.").partition(".")
        if field in _OF_A_PRIORITY:
            if self.amount.startswith("one direction"):
                return f"PFC of priority {priority} in {self.amount}"
            return f"{_OF_A_PRIORITY[field]} for priority {priority} {self.amount}"
        rest = self.fault.setting.removeprefix(self.key).strip(".").replace(".", " ")
        name = "" if self.key == "qos.classes" else title(self.key)
        return " ".join(filter(None, (name, rest, self.amount)))

    @property
    def amount(self) -> str:
        """ "400 ms"."""
        wanted = self.fault.wanted
        if self.key in ("marking.np", "marking.rp") and wanted[:1].isdigit():
            return f"for priority {wanted}"
        return f"{wanted} ms" if self.key.endswith("_ms") and wanted.isdigit() else wanted


def _check(node: NodeView) -> Iterator[Hit]:
    together: dict[object, list[_Gap]] = {}
    for number, fault in enumerate(node.faults):
        if fault.contradicts:
            continue  # the platform can; a rule of its own tells what the wish works against
        key = setting_key(fault.setting) or fault.setting
        gap = _Gap(fault, key, _severity(node, fault, key))
        alone = gap.severity is Severity.ERROR or fault.used
        same = number if alone else (fault.port, gap.severity, fault.reason)
        together.setdefault(same, []).append(gap)
    yield from map(_hit, together.values())


def _hit(gaps: list[_Gap]) -> Hit:
    first = gaps[0]
    told = _and(gap.wish for gap in gaps)
    if first.severity is Severity.ERROR:
        what = ""
    elif first.fault.used:
        what = f": it uses {first.fault.used}"
    else:
        what = f": {'it is' if len(gaps) == 1 else 'they are'} left out"
    return Hit(
        setting=f"{first.fault.port}|{first.key}",
        found=first.fault.used or "nothing",
        wanted=", ".join(gap.amount for gap in gaps),
        message=f"{{where}}: the platform cannot express {told}{what}",
        reason=first.fault.reason,
        help=first.fault.help or "change the wish, or set it for these nodes by an override",
        severity=first.severity,
        rank=1,
    )


def _and(texts: Iterable[str]) -> str:
    every = list(texts)
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1])))


def _severity(node: NodeView, fault: Fault, key: str) -> Severity:
    """A gap of a switch's watchdog that is required is an error."""
    if node.is_host or not key.startswith(("qos.watchdog", "qos.guarded")):
        return fault.severity
    wishes = [node.port_wishes[fault.port]] if fault.port in node.port_wishes else node.port_wishes.values()
    required = any(one.pfc and one.pfc.watchdog and one.pfc.watchdog.require for one in wishes)
    return Severity.ERROR if required else fault.severity


RULE = NodeRule("FAB040", "platform-cannot-express", Severity.ERROR, "0.1", "capability", _check, plan=True)
