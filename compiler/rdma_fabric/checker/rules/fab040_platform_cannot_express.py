"""A platform cannot do what the intent asks for.

What it checks
    What each platform reports while it turns the wish into its own settings: a nearest value that it uses
    instead (note), a wish that it drops (warning), a wish without which the node cannot work (error).
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

from collections.abc import Iterator

from rdma_fabric.checker.blame import setting_key
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.platforms._contract import Fault


def _check(node: NodeView) -> Iterator[Hit]:
    for fault in node.faults:
        if fault.contradicts:
            continue
        key = setting_key(fault.setting) or fault.setting
        severity = _severity(node, fault, key)
        used = f"uses {fault.used} instead" if fault.used else "leaves it out"
        yield Hit(
            setting=f"{fault.port}|{key}",
            found=fault.used or "nothing",
            wanted=fault.wanted,
            message=f"{{where}}: the platform cannot express {fault.setting} {fault.wanted}"
            + ("" if severity is Severity.ERROR else f" and {used}"),
            reason=fault.reason,
            help=fault.help or "change the wish, or set it for these nodes by an override",
            severity=severity,
            rank=1,
        )


def _severity(node: NodeView, fault: Fault, key: str) -> Severity:
    """A gap of a switch's watchdog that is required is an error."""
    if node.is_host or not key.startswith(("qos.watchdog", "qos.guarded")):
        return fault.severity
    wishes = [node.port_wishes[fault.port]] if fault.port in node.port_wishes else node.port_wishes.values()
    required = any(one.pfc and one.pfc.watchdog and one.pfc.watchdog.require for one in wishes)
    return Severity.ERROR if required else fault.severity


RULE = NodeRule("FAB040", "platform-cannot-express", Severity.ERROR, "0.1", "capability", _check, plan=True)
