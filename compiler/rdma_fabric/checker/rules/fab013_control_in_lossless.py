"""Network control traffic shares a lossless, starved or CNP class.

What it checks
    Where the control class and the network control code points (CS6 = DSCP 48, CS7 = DSCP 56) end up.
    Error: the control class, or one of these code points, in a lossless class; the control class on the
    CNPs' priority or with a share of 0%. Warning: CS7 in the CNP class. Note: CS6 in the CNP class, which
    many published designs do.

Why it breaks RDMA
    A pause stops everything of a lossless class: with routing protocols and BFD in it, a PFC storm takes
    the sessions down, and a congestion becomes an outage. In the CNPs' strict class a burst of CNPs delays
    hellos, and a routing storm delays CNPs.
    Source: RFC 4594, sections 3.1 and 3.2 (CS7 and CS6 are for network control).

Wrong
    classes:
      roce:    {priority: 3, dscp: [26, 48], lossless: true}

Right
    classes:
      roce:    {priority: 3, dscp: [26], lossless: true}
      control: {priority: 7, dscp: [48, 56]}

When to waive it
    When no routing protocol runs on these ports (a pure layer 2 fabric with static tables).
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import lossless_priorities
from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import REST, TrafficClass, Wishes
from rdma_fabric.resolve import class_of_kind

_CONTROL = (48, 56)


def _check(intent: IntentView) -> Iterator[Hit]:
    classes = intent.wishes.classes
    control = {name: one for name, one in classes.items() if (one.kind or name) == "control"}
    for name, one in control.items():
        yield from _control_class(intent.wishes, name, one)
    for dscp in _CONTROL:
        name = _class_of(intent.wishes, dscp)
        if name and name not in control:
            yield from _code_point(intent.wishes, name, dscp)


def _class_of(wishes: Wishes, dscp: int) -> str:
    """The class of a code point; "" where rules of their own tell that two or a lossless `rest` hold it."""
    named = [name for name, one in wishes.classes.items() if dscp in one.dscp]
    if named:
        return named[0] if len(named) == 1 else ""
    rest = [name for name, one in wishes.classes.items() if REST in one.dscp and not one.lossless]
    return rest[0] if rest else ""


def _control_class(wishes: Wishes, name: str, one: TrafficClass) -> Iterator[Hit]:
    cnp = class_of_kind(wishes, "cnp")
    if one.priority in lossless_priorities(wishes):
        yield _hit(name, "priority", f"priority {one.priority}, lossless", "a lossy priority of its own")
    elif cnp and cnp.priority == one.priority:
        yield _hit(name, "priority", f"priority {one.priority}, shared with CNPs", "a priority of its own")
    elif one.bandwidth is not None and one.bandwidth.value == 0 and one.scheduler != "strict":
        yield _hit(name, "bandwidth", "bandwidth 0%", "a share above 0%, or scheduler: strict")


def _hit(name: str, key: str, found: str, wanted: str) -> Hit:
    return Hit(
        setting="control class",
        found=found,
        wanted=wanted,
        message=f"{{where}}: routing protocols and BFD are in a class that can stop ({name})",
        help=f"give class {name} {wanted}",
        path=("classes", name, key),
    )


def _code_point(wishes: Wishes, name: str, dscp: int) -> Iterator[Hit]:
    one = wishes.classes[name]
    cnp = class_of_kind(wishes, "cnp")
    word = f"DSCP {dscp} (CS{dscp // 8}, network control)"
    if one.priority in lossless_priorities(wishes):
        if (one.kind or name) == "cnp" and (wishes.dcqcn is None or wishes.dcqcn.enabled):
            # CNPs that can be paused are one cause, told by a rule of its own.
            return
        severity, where = Severity.ERROR, "the lossless"
    elif cnp is not None and cnp.priority == one.priority:
        severity, where = Severity.NOTE if dscp == 48 else Severity.WARNING, "the CNP"
    else:
        return
    yield Hit(
        setting=f"class of DSCP {dscp}",
        found=f"class {name}, priority {one.priority}",
        wanted="a class that is neither lossless nor the CNPs'",
        message=f"{{where}}: {word} is in {where} class {name}",
        help=f"take DSCP {dscp} out of {name}, or name a class `control` that holds it",
        severity=severity,
        path=("classes", name, "dscp"),
    )


RULE = IntentRule("FAB013", "control-in-lossless", Severity.ERROR, "0.1", "intent", _check, plan=True)
