"""What every platform module provides, and the values it exchanges with the core.

A platform is pure: no sockets, no clock, no files but its own templates. It says what a read-back
will show for what we want (`realize`), what to ask a device (`questions`), what the answers mean
(`parse`), and which steps lead from what was seen to what is wanted (`change`). Executors in
`push/` know steps and channels, never platforms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, Literal, Protocol, runtime_checkable

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware
from rdma_fabric.state import Difference, NodeState, Observation, PortSettings
from rdma_fabric.vitals import Load, Loaded, Ping, Pong, Vitals

RUN: Final = "@RUN@"
"""Replaced by the run's short name (lower-case letters and digits, 10 characters at most) when sent."""
TIMER_S: Final = "@TIMER_S@"
"""Replaced by the commit timer in whole seconds."""
_NOTHING: Final = PortSettings()
TIMER_HMS: Final = "@TIMER_HMS@"
"""Replaced by the commit timer as HH:MM:SS."""


class Disturbs(IntEnum):
    """The worst thing that a step does to traffic of a port."""

    NOTHING = 0
    LOSS = 1
    PORT_BOUNCE = 2
    DRIVER_RELOAD = 3
    REBOOT = 4

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class Fault:
    """What a platform cannot express exactly. The checker turns it into a finding at the node or port.

    severity note: a nearest value is used; warning: the wish is dropped; error: the node is rejected.
    """

    severity: Severity
    port: str
    """"" for the whole node."""
    setting: str
    """Field path below the port's settings ("mtu.ip", "qos.watchdog.detect_ms") or below system."""
    wanted: str
    used: str
    """What the platform will do instead; "" for nothing."""
    reason: str
    help: str = ""
    contradicts: bool = False
    """True: the platform does as wished, but the wish works against another one; `used` would fit."""


@dataclass(frozen=True, slots=True)
class Realized:
    """What a read-back will show once the wish is applied, and what cannot be expressed."""

    state: NodeState
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Send:
    """CLI or shell lines, typed one by one; the executor stops at the first refusal.

    `expect`: a regular expression that the joined output must match; `forbid`: one it must not, in
    addition to the dialect's; `status`: accepted exit codes where the dialect has them; `timeout_s`:
    the longest wait for one line; `keep`: a name under which the output is reported ("diff").
    """

    lines: tuple[str, ...]
    expect: str = ""
    forbid: str = ""
    status: tuple[int, ...] = (0,)
    timeout_s: float = 60.0
    keep: str = ""


@dataclass(frozen=True, slots=True)
class Put:
    """A whole file of ours; text is final. Removed when `text` is None."""

    path: str
    text: str | None
    mode: int = 0o644
    owner: str = "root"
    was: str = ""
    """For a file that we share with others: SHA-256 (hex) of the text it was made from, without space at
    both ends. It is written over that very text only, and needs no mark of ours."""


@dataclass(frozen=True, slots=True)
class Call:
    """A program on the node without a shell; `status` are the accepted exit codes.

    `unless`: argv of a read-only test; when it exits 0 the call is skipped as already true.
    """

    argv: tuple[str, ...]
    status: tuple[int, ...] = (0,)
    timeout_s: float = 60.0
    unless: tuple[str, ...] = ()
    late: bool = False
    """In an undo: run when the files are back as they were."""


Step = Send | Put | Call


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One reason why a change disturbs: which ports ("" = the node), how badly, and who says so."""

    level: Disturbs
    ports: tuple[str, ...]
    what: str
    source: str
    """A vendor document or "experience"."""


@dataclass(frozen=True, slots=True)
class Change:
    """The way from what was seen to what is wanted, as data.

    Order: lock, stage (nothing live yet where the device has a candidate), commit (live, with the
    device's own timer where it has one), read back, confirm, save, unlock. `undo` returns to the
    state before commit while the change is unconfirmed, and drops a candidate that was only staged;
    it must be safe to run at any of these points.
    """

    differences: tuple[Difference, ...] = ()
    """What this change repairs."""
    blocked: tuple[Difference, ...] = ()
    """Fields that cannot be written because they could not be read, or because somebody else owns them."""
    reasons: tuple[tuple[str, str], ...] = ()
    """(path, why it is not written) of those of `blocked` that were read, for people."""
    lines: tuple[str, ...] = ()
    """Exact lines for people, in order, without the transaction around them."""
    lock: tuple[Step, ...] = ()
    stage: tuple[Step, ...] = ()
    commit: tuple[Step, ...] = ()
    confirm: tuple[Step, ...] = ()
    save: tuple[Step, ...] = ()
    undo: tuple[Step, ...] = ()
    unlock: tuple[Step, ...] = ()
    undo_kind: Literal["device-timer", "checkpoint", "dead-man", "none"] = "none"
    disturbs: tuple[Disturbance, ...] = ()
    undo_disturbs: tuple[Disturbance, ...] = ()
    unverified: tuple[str, ...] = ()
    """Those of `lines` whose effect or spelling no source confirmed."""
    expected: NodeState | None = None
    """The realized state that the read-back after the commit must show."""
    turn: tuple[str, int] = ("", 0)
    """(group, place): nodes of one group never change at the same time; lower places go first."""

    @property
    def empty(self) -> bool:
        """True when there is nothing to write and nothing to save."""
        return not (self.stage or self.commit or self.save)

    @property
    def level(self) -> Disturbs:
        """The worst disturbance of the change or of its undo."""
        levels = [item.level for item in (*self.disturbs, *self.undo_disturbs)]
        return max(levels, default=Disturbs.NOTHING)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to talk to the device; data for the one CLI executor."""

    driver: str
    """netmiko device_type."""
    errors: str
    """Regular expression of a refusal in the output of any line."""
    status: bool = False
    """A POSIX shell: the exit status of every line is read and checked."""
    enable: bool = False
    """Enter privileged mode after login."""
    recover: tuple[Step, ...] = ()
    """Idempotent steps that drop candidate, timer and lock of run `RUN` that died; before its confirm
    they bring back the state before its commit."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of `compile`: template below templates/<platform>/, path below the node's folder."""

    template: str
    path: str
    mode: int = 0o644
    context: Any = None
    """None: the platform's `context`; else the frozen context of this file alone."""
    derived: bool = False
    """It says again what other files set: left out where changes are shown to people."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a live value on the node itself; exactly one of `argv`, `path` and `names` is given.

    `pattern`: multi-line regular expression (Python 3.6) whose one group is what counts; a table's may
    name two, `value` and `at` (numbers: the places that have it). In argv and paths `{device}` stands for
    the port's RDMA device and `{bdf}` for its PCI address. A reading that is not there, or matches nothing
    and says no `none`, leaves the word to the next one.
    """

    pattern: str
    argv: tuple[str, ...] = ()
    script: str = ""
    """A POSIX shell script whose arguments are `argv`; "" for a program."""
    path: str = ""
    """A file; with stars (or blanks between them) several, each as a line PATH=TEXT and its text."""
    names: str = ""
    """Paths, also with stars: those that exist, one a line, are the text."""
    none: str = ""
    """What no match means, or that the file is not there; "" for "somebody else may know". Of a table: there
    is none, which is right."""
    when: str = ""
    """A pattern of the text without which `none` does not count; then the file must be there as well."""
    steps: tuple[tuple[int, str], ...] = ()
    """Where given, a number counts as the word of the largest step that is not above it; sorted."""
    places: tuple[int, ...] = ()
    """Where given, the place of each word of a list that belongs into a table."""
    source: tuple[int, ...] = ()
    """Instead of `places`: the word of a list that each place takes; several may take the same one."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One setting that the node judges by itself, without a controller and without writing anything.

    What is found is made of all matches of the first reading that has any. "text": joined by ",";
    "last": the last one; "set": their words, sorted; "bits": the places of 1, true and on; "table": the
    value at every place, each of which must be that of `accept` ("" is any); a place without a value could
    not be judged.
    """

    port: str
    """"" for the whole node."""
    key: str
    """As in `settings.Deviation`, so that drift and the local check name the same thing. May hold `{at}`, as
    the title may: then every place of a table that is wrong is told for itself."""
    title: str
    wanted: str
    """For people."""
    accept: tuple[str, ...]
    """Values that are right; of a table the one of every place."""
    readings: tuple[Reading, ...]
    how: Literal["text", "last", "set", "bits", "table"] = "text"
    device: str = ""
    """RDMA device by the inventory, where the node cannot tell it."""
    help: str = ""
    must: bool = True
    """False: what cannot be read is left out, not "could not be judged"."""


@dataclass(frozen=True, slots=True)
class FoundPort:
    """A port of a node that nobody has described yet."""

    name: str
    driver: str = ""
    """Kernel driver; says which NIC platform it belongs to."""
    rdma: str = ""
    mac: str = ""
    speed_gbps: int = 0
    """0 where it does not show."""
    neighbour: tuple[str, str] = ("", "")
    """LLDP: (system name, port) of the other end."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """How a node of unknown platform is recognised, and finds its ports. All commands are read-only."""

    known_by: str
    """Regular expression that the answer to one of INTRODUCE matches on this platform and on no other."""
    name: tuple[str, str] = ("hostname", r"^(\S+)$")
    """(command, regular expression with the node's own name as its group)."""
    ports: str = ""
    """Command that lists ports; "" when LLDP neighbours name all ports that matter."""
    read: Callable[[str], tuple[FoundPort, ...]] | None = None
    """Reads the answer to `ports`."""


OURS: Final = "ours"
"""Fact of an observation: node-wide settings that our files hold, a line GROUP.NAME=VALUE each."""
INTRODUCE: Final = ("show version", "cat /etc/os-release")
"""What a node of unknown platform is asked, each as a command of its own."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Plain facts of a platform for docs, checks and `fabric compile`."""

    title: str
    """Vendor and product as people say it."""
    evidence: str
    """How sure we are, for the table of platforms."""
    globals: tuple[str, ...] = ()
    """Field paths below the port's settings that exist once per node ("qos.dscp_to_priority")."""
    tested: str = ""
    """What the tests ran against."""
    cannot: tuple[str, ...] = ()
    """What this platform cannot do, for the docs."""
    netdev_bound: Mapping[int, int] = field(default_factory=dict)
    """NIC platforms: RDMA MTU -> least netdev MTU in bytes."""
    nv: bool = False
    """NIC platforms: non-volatile settings of the card are read and written."""
    transports: tuple[str, ...] = ("rocev2",)
    """Transports of the networks that this platform's ports may be in."""
    defaults: PortSettings = _NOTHING
    """What a physical port has that nobody configured, of this part's own fields; UNMANAGED where no source
    says, or where it depends on more than the inventory knows."""
    defaults_source: str = ""
    drivers: tuple[str, ...] = ()
    """NIC platforms: kernel drivers whose ports are theirs."""
    introduction: Introduction | None = None
    """Bases: None where a node of this platform cannot be recognised by asking."""


class Platform(Protocol):
    """The contract. A module exports one instance as PLATFORM; its name is the module's name."""

    name: str
    part: Literal["base", "nic", "service"]
    channel: Literal["cli", "files"]
    dialect: Dialect
    traits: Traits

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """What a read-back will show; only this part's own fields change. Idempotent."""

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """The files of `compile` for a realized state."""

    def context(self, wanted: NodeState, hw: Hardware) -> Any:
        """A frozen dataclass with everything that this platform's templates may use."""

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """Read-only commands, all for one session."""

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state of the ports in `hw`; what is not understood is UNKNOWN. Never raises."""

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """The steps from `seen` to the realized state `wanted`; empty when they match."""


@runtime_checkable
class HostPlatform(Protocol):
    """What every part of a host (channel "files") has besides."""

    def probes(self, wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
        """What the host itself can judge of a realized state; () where nothing of this part is its own."""


@runtime_checkable
class Vital(Protocol):
    """What a part that can show counters has besides."""

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """Read-only commands, all for one session; () where none of this part's ports is in `hw`."""

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """Counters of the ports in `hw`; what is not understood is left out. Never raises."""


@runtime_checkable
class Reaching(Protocol):
    """What a base has from which paths can be tested, and loaded on request."""

    def path_questions(self, pings: tuple[Ping, ...]) -> tuple[str, ...]:
        """Commands that send the test packets and change nothing."""

    def pongs(self, answers: Mapping[str, str], pings: tuple[Ping, ...]) -> tuple[Pong, ...]:
        """One for each test, in their order. Never raises."""

    def load_script(self, load: Load) -> str:
        """Runs one end of a bandwidth test; it ends in any case, also when nobody listens any more."""

    def loaded(self, answer: str) -> Loaded:
        """Gb/s of the end that connected. Never raises."""

    def program_script(self, command: str, limit_s: int) -> str:
        """Runs a program of the user's on the same terms."""

    def program_done(self, answer: str) -> Loaded:
        """GB/s that nccl-tests say at their end. Never raises."""
