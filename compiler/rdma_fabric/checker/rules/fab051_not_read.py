"""Settings of an observed port could not be read.

What it checks
    Fields that the intent owns and whose value the device did not show, or showed in a form that is not
    understood. They count neither as equal nor as different, and are not written.

Why it breaks RDMA
    It may not. But a gap in what was read is a gap in what was checked, and a report without findings
    would promise more than it knows.
    Source: DESIGN.md of this project, three kinds of absence.

Wrong
    a device whose software shows the PFC table in a form that is not known

Right
    the same, and this note in the report

When to waive it
    When the setting was checked by hand.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import some
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of
from rdma_fabric.state import differences


def _check(port: PortView) -> Iterator[Hit]:
    if not port.observed:
        return
    names = {
        group_of(one.path.removeprefix("s.")).title: None
        for one in differences(port.wanted, port.state, "s")
        if one.unknown
    }
    if names:
        yield Hit(
            setting="unread settings",
            found=some(names),
            wanted="every setting that the intent owns",
            message="{where}: some settings could not be read",
            help="look at the device, or observe it again with -v",
        )


RULE = PortRule("FAB051", "not-read", Severity.NOTE, "0.1", "observed", _check)
