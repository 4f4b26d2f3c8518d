"""NVIDIA InfiniBand switches with MLNX-OS, managed by a subnet manager elsewhere.

The subnet manager programs MTU, P_Keys, lanes and routing of every port, so that one thing is left to
the switch's own command line: that no second subnet manager runs on it. Facts: MLNX-OS manuals 3.10 to
3.12 and public drivers; each line acts at once, there is no candidate and no timer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms import _nvidia_ib_sm as manager
from rdma_fabric.platforms._contract import (
    Artifact,
    Change,
    Dialect,
    Disturbance,
    Disturbs,
    Fault,
    Realized,
    Send,
    Traits,
)
from rdma_fabric.platforms._shared import digest
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Absent,
    Maybe,
    NodeState,
    Observation,
    Partitions,
    PortState,
    SmState,
    SystemState,
    differences,
)
from rdma_fabric.templating import render_lines

_SM: Final = "show ib sm"
_CONFIG: Final = "show running-config"
_VERSION: Final = "show version"
_ENTER: Final = "configure terminal"
_LEAVE: Final = "exit"
_SAVE: Final = "configuration write"
_SOURCE: Final = "experience: the other subnet managers elect a master, new paths wait meanwhile"


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the templates of `nvidia_ib` may use. `sm`: None leaves it alone."""

    sm: bool | None = None


class NvidiaIb:
    """MLNX-OS on InfiniBand switches."""

    name = "nvidia_ib"
    part: Literal["base"] = "base"
    channel: Literal["cli"] = "cli"
    dialect = Dialect(driver="mellanox_mlnxos", errors=r"^%", enable=True)
    traits = Traits(
        title="NVIDIA InfiniBand switches (MLNX-OS)",
        evidence="manuals and public drivers; no device output of ours",
        tested="the simulated switch",
        cannot=(
            "MTU, P_Keys, lanes, routing of its ports: the subnet manager programs them",
            "a subnet manager on the switch: it is read and never written",
            "take a line back by a timer",
            "NVOS",
        ),
        transports=("infiniband",),
    )

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """Whether a subnet manager runs here; of the one that is to run here, what its lines show."""
        sm = wanted.system.sm
        shown = manager.FIELDS if _is_manager(hw) else ("running",)
        dropped = [name for name in SmState.__dataclass_fields__ if name not in shown]
        rest = {name: NOT_APPLICABLE for name in dropped if getattr(sm, name) is not UNMANAGED}
        mine = replace(sm, **rest)
        if isinstance(mine.partitions, Partitions):
            mine = replace(mine, partitions=manager.shown(mine.partitions))
        if mine == sm:
            return Realized(wanted)
        fault = Fault(
            Severity.NOTE,
            "",
            "sm",
            "lanes, service levels and rates of the subnet manager"
            if _is_manager(hw)
            else "the subnet manager's settings",
            "",
            "a subnet manager on a switch is read and never written",
            "compare them by hand, or run the subnet manager on hosts",
        )
        return Realized(replace(wanted, system=replace(wanted.system, sm=mine)), (fault,))

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """Lines of enable mode."""
        return (_VERSION, _SM, *((_CONFIG,) if _is_manager(hw) else ()))

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """running: what the process does; what was saved cannot be read."""
        running = _sm(answers.get(_SM, ""))
        notes: tuple[str, ...] = ()
        if running is UNKNOWN:
            notes = ("the answer to `show ib sm` was not understood",)
        sm = SmState(running=running)
        if _is_manager(hw):
            sm, more = manager.read(answers.get(_CONFIG, ""), running)
            notes += more
        state = NodeState(
            SystemState(sm=sm),
            tuple(PortState(port.name, port.kind) for port in hw.ports),
        )
        return Observation(
            running=state, notes=notes, facts=_facts(answers.get(_VERSION, "")), evidence=digest(state)
        )

    def context(self, wanted: NodeState, hw: Hardware) -> Context:
        """Off where the intent has its subnet managers elsewhere."""
        return Context(False if wanted.system.sm.running is False else None)

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """One file of lines, where there is any."""
        if self.context(wanted, hw).sm is None:
            return ()
        return (Artifact("nvidia_ib/config.j2", "config.txt"),)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """The line, typed in configuration mode, and saved."""
        sm = wanted.system.sm
        mine = manager.FIELDS if _is_manager(hw) else ("running",)
        owned = SmState(**{name: getattr(sm, name) for name in mine})
        found = tuple(
            one
            for one in differences(NodeState(SystemState(sm=owned)), seen.running)
            if not isinstance(one.wanted, Absent)
        )
        if not found:
            return Change()
        if sm.running is not False:
            why = "the subnet manager of a switch is read and never written"
            reasons = tuple((one.path, why) for one in found if not one.unknown)
            lines = tuple(manager.told(owned, seen.running.system.sm)) if reasons else ()
            return Change(blocked=found, reasons=reasons, lines=tuple(f"switch: {line}" for line in lines))
        if found[0].unknown:
            return Change(blocked=found)
        lines = render_lines("nvidia_ib/config.j2", self.context(wanted, hw))
        back = tuple(line.removeprefix("no ") for line in lines)
        loss = (Disturbance(Disturbs.LOSS, (), "the subnet manager of this switch stops", _SOURCE),)
        return Change(
            differences=found,
            lines=lines,
            commit=(Send((_ENTER, *lines, _LEAVE)),),
            save=(Send((_ENTER, _SAVE, _LEAVE)),),
            undo=(Send((_ENTER, *back, _LEAVE)),),
            undo_kind="none",
            disturbs=loss,
            undo_disturbs=loss,
            expected=wanted,
        )


def _is_manager(hw: Hardware) -> bool:
    """True when the intent has the subnet's manager on this switch."""
    return hw.option("sm_owner") == "switch"


def _sm(answer: str) -> Maybe[bool]:
    """A line `enable` or `disable`."""
    words = {line.strip() for line in answer.splitlines()} & {"enable", "disable"}
    return UNKNOWN if len(words) != 1 else words == {"enable"}


def _facts(answer: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, Any] = {}
    for name, key in (("Product model", "model"), ("Product release", "version")):
        match = re.search(rf"^{name}:\s*(\S+)", answer, re.MULTILINE)
        if match:
            found[key] = match.group(1)
    return tuple(sorted(found.items()))


PLATFORM = NvidiaIb()
