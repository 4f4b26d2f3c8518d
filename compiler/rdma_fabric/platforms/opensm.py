"""OpenSM as a service of a host: options, partitions and service levels of one InfiniBand subnet.

Facts: opensm 3.3.23 run on ibsim, and its sources (osm_subnet.c for what SIGHUP takes over,
osm_prtn_config.c for partitions). Only options that the intent has are ours; every other line of
opensm.conf stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware
from rdma_fabric.inventory.partitions import MTU_CODES, RATE_CODES, code_of_rate, read_partitions
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _opensm_files as texts
from rdma_fabric.platforms._contract import (
    Artifact,
    Call,
    Change,
    Dialect,
    Disturbance,
    Disturbs,
    Fault,
    Probe,
    Put,
    Realized,
    Step,
    Traits,
)
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._shared import digest
from rdma_fabric.state import (
    UNKNOWN,
    UNMANAGED,
    Absent,
    Difference,
    Maybe,
    NodeState,
    Observation,
    Partition,
    Partitions,
    SmState,
    SystemState,
    differences,
    settled,
)
from rdma_fabric.templating import render, render_lines

_FILES: Final = (texts.CONF, texts.PARTITIONS, texts.POLICY, texts.DEFAULTS)
_PROGRAM: Final = "/usr/local/sbin/fabric-guid2lid"
_UNREADABLE: Final = " (which cannot be read)"
_LOST: Final = (
    "the file of routes is yours to put on the manager: OpenSM goes on with the next engine meanwhile"
)
_DEFAULT_MTU: Final = 2048
"""Of a partition whose rule names none (osm_base.h, OSM_DEFAULT_MGRP_MTU)."""
_SOURCE: Final = "run: opensm 3.3.23 on ibsim"
_EXPERIENCE: Final = "experience"

Action = Literal["", "hup", "restart", "stop"]


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the templates of `opensm` may use."""

    options: tuple[tuple[str, str], ...] = ()
    partitions: tuple[texts.Statement, ...] = ()
    levels: tuple[str, ...] = ()
    guid: str = ""
    service: str = "opensm.service"
    unit: str = ""
    enable: bool = False
    action: Action = ""
    owner: str = ""
    """Whose files they are, when not ours: then those count that the process was started with."""
    lids: bool = False
    """Give the table of LIDs those that the ports have."""
    files: tuple[str, ...] = _FILES
    mark: str = texts.MARK
    table: str = texts.TABLE
    program: str = _PROGRAM
    port: str = ""
    """Options of the tools that name the port."""


class OpenSm:
    """The service part of hosts that manage a subnet."""

    name = "opensm"
    part: Literal["service"] = "service"
    channel: Literal["files"] = "files"
    dialect: Dialect = host.DIALECT
    traits = Traits(
        title="OpenSM on a Linux host",
        evidence="real OpenSM 3.3.23 on simulated hardware (ibsim), and its sources",
        tested="real OpenSM on ibsim",
        cannot=(
            "adaptive routing, congestion control, SHARP: foreign lines of opensm.conf, which stay",
            "multicast groups other than the IPoIB broadcast group",
            "a qos-policy.conf with match rules of its own: it is left alone and reported",
        ),
    )

    # ------------------------------------------------------------ realize

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """What OpenSM cannot do is dropped; everything else is shown as it is written."""
        sm = wanted.system.sm
        faults = tuple(_faults(sm))
        if isinstance(sm.partitions, Partitions):
            rows = tuple(_realize(one, sm) for one in sm.partitions.rows)
            sm = replace(sm, partitions=Partitions(rows))
        if sm == wanted.system.sm:
            return Realized(wanted, faults)
        return Realized(replace(wanted, system=replace(wanted.system, sm=sm)), faults)

    # ------------------------------------------------------------ read

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """One shell script: files, process, and what the subnet says."""
        context = Context(port=_port(hw), service=_service(hw), owner=_owner(hw))
        return (host.question("opensm/observe.sh.j2", context),)

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """running: the subnet and the process where they can be asked, else the files; stored: the files."""
        return _Reader(host.sections(answers.get(self.questions(hw)[0], "")), _owner(hw)).read()

    # ------------------------------------------------------------ write

    def context(self, wanted: NodeState, hw: Hardware) -> Context:
        """All settings of a realized state."""
        sm = wanted.system.sm
        rows = tuple((name, value) for name, value in texts.options(sm).items() if value is not None)
        partitions = sm.partitions.rows if isinstance(sm.partitions, Partitions) else ()
        guid = sm.guid if isinstance(sm.guid, str) and int(sm.guid, 16) else ""
        return Context(
            options=rows,
            partitions=tuple(map(texts.statement, partitions)),
            levels=sm.levels if isinstance(sm.levels, tuple) and sm.vls != 0 else (),
            guid=guid,
            service=_service(hw),
            unit=_unit(hw, guid),
            port=_port(hw),
        )

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """The files; opensm.conf with our options only."""
        context = self.context(wanted, hw)
        return tuple(
            Artifact(f"opensm/{template}", path.removeprefix("/"))
            for template, path, used in (
                ("opensm.conf.j2", texts.CONF, context.options),
                ("partitions.conf.j2", texts.PARTITIONS, context.partitions),
                ("qos-policy.conf.j2", texts.POLICY, context.levels),
                ("defaults.j2", texts.DEFAULTS, context.guid),
            )
            if used
        )

    def probes(self, wanted: NodeState, hw: Hardware) -> tuple[Probe, ...]:
        """Nothing: whether a subnet is managed well is no question of this one host."""
        return ()

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """Files first, then SIGHUP where it suffices, else a restart."""
        return _SmChange(seen, wanted, hw, self.context(wanted, hw)).build()


def _port(hw: Hardware) -> str:
    device = next((port.rdma for port in hw.ports if port.nic == "ib" and port.rdma), "")
    return f"-C {device} -P 1" if device else ""


def _owner(hw: Hardware) -> str:
    """Who writes the subnet manager's files, when that is not us."""
    return hw.option("sm_owner")


def _service(hw: Hardware) -> str:
    return hw.option("sm_service", "opensm.service")


def _unit(hw: Hardware, guid: str) -> str:
    """Debian runs one instance per port; a site with another unit names it in the node's options."""
    named = hw.option("sm_service")
    return named or (f"opensm@{guid}.service" if guid else "opensm.service")


# ---------------------------------------------------------------- realize


def _realize(one: Partition, sm: SmState) -> Partition:
    """Without a group its values are nowhere; without QoS OpenSM uses service level 0."""
    if not one.ipoib and not one.groups:
        one = replace(one, mtu=_DEFAULT_MTU, rate=UNMANAGED, scope=UNMANAGED)
    return replace(one, sl=0) if sm.vls is UNMANAGED or sm.vls == 0 else one


def _faults(sm: SmState) -> Iterable[Fault]:
    if isinstance(sm.partitions, Partitions):
        for one in sm.partitions.rows:
            if one.sl and sm.vls is UNMANAGED:
                yield Fault(
                    Severity.WARNING,
                    "",
                    "sm.partitions",
                    f"service level {one.sl} of partition {one.name}",
                    "0",
                    "without classes that have a service level, QoS is off and every partition uses 0",
                    "give classes a service level (classes.NAME.sl)",
                )


# ---------------------------------------------------------------- read


@dataclass
class _Reader:
    parts: Mapping[str, Section]
    owner: str = ""
    notes: list[str] = field(default_factory=list)

    def part(self, name: str) -> Section:
        return self.parts.get(name, host.NOT_ASKED)

    def read(self) -> Observation:
        if not self.part("files").asked or not self.part("process").asked:
            unknown = SmState(**dict.fromkeys(SmState.__dataclass_fields__, UNKNOWN))
            state = NodeState(SystemState(sm=unknown))
            note = "the answer about the subnet manager was not understood"
            return Observation(state, state, notes=(note,), evidence=digest(state))
        files = {
            path: replace(one, text=one.text.replace(texts.RETURN, "\r")) if one.text else one
            for path, one in host.files(self.part("files")).items()
        }
        kept = self._stored(files)
        now = self._running(kept)
        stored = replace(kept, role=now.role, loaded=now.loaded, lids=now.lids)
        if self.owner:
            stored = replace(stored, running=now.running)  # its owner has units of its own
        facts = tuple(sorted(self._facts(files).items()))
        return Observation(
            running=NodeState(SystemState(sm=now)),
            stored=NodeState(SystemState(sm=stored)),
            notes=tuple(self.notes),
            facts=facts,
            # Roles, groups and LIDs change with the other managers of the subnet.
            evidence=digest(
                (replace(stored, role=UNMANAGED, lids=UNMANAGED), now.running, now.loaded, facts)
            ),
        )

    def _facts(self, files: Mapping[str, host.File]) -> dict[str, str]:
        """Digest and text of files that a change merges into, and how the process was started."""
        found: dict[str, str] = {}
        for path, file in files.items():
            if file.text is not None:
                found[f"text {path}"] = file.text
        if version := re.search(r"^OpenSM (\S+)", self.part("version").text, re.MULTILINE):
            found["opensm"] = version.group(1)
        return found

    # -- files

    def _stored(self, files: Mapping[str, host.File]) -> SmState:
        def text(path: str) -> str:
            file = files.get(path)
            return (file.text or "") if file else ""

        values, notes = texts.read_values(texts.read_options(text(texts.CONF)))
        self.notes += notes
        if (unread := self.part("routes")).asked and unread.text.strip() == values["lfts"]:
            values["lfts"] = unread.text.strip() and f"{unread.text.strip()}{_UNREADABLE}"
        if line := texts.returns(text(texts.POLICY)):
            self.notes.append(
                f"{texts.POLICY}:{line}: a carriage return (Windows line end): OpenSM does not use the file"
            )
        values.setdefault("levels", texts.read_levels(text(texts.POLICY)))
        if values["levels"] is UNKNOWN:
            self.notes.append(f"{texts.POLICY} holds more than qos-ulps: it is left alone")
        values["partitions"] = self._partitions(files.get(texts.PARTITIONS))
        values["running"] = self.part("enabled").text.strip() == "enabled"
        return SmState(**values)  # type: ignore[arg-type]

    def _partitions(self, file: host.File | None) -> Maybe[Partitions]:
        if file is None or not (file.text or "").strip():
            return _NO_FILE
        found = read_partitions(file.text or "")
        for one in found.problems:
            self.notes.append(f"{texts.PARTITIONS}:{one.line}: {one.message}")
        if found.dropped:
            return _NO_FILE
        return found.partitions

    # -- the subnet

    def _running(self, kept: SmState) -> SmState:
        words = self.part("process").text.split()
        running = bool(words) and words[0].isdigit()
        own = _sminfo(self.part("own").text)
        lids = self._lids(running)
        found = replace(kept, running=running, role=UNKNOWN if running else "none", loaded=running, lids=lids)
        if not running:
            return found
        if own:
            priority, role = own
            found = replace(found, priority=priority, role=role)
        found = replace(found, loaded=self._loaded(int(words[1])) and self._reads_ours())
        if found.role == "master" and isinstance(kept.partitions, Partitions):
            found = replace(found, partitions=self._live(kept.partitions, kept.guid))
        master = self.part("master").text
        if found.role == "standby" and "SMINFO_MASTER" not in master:
            self.notes.append("the subnet has no master that answers")
        return found

    def _lids(self, running: bool) -> Maybe[bool]:
        """False when the table of LIDs lacks a port or has another LID for it."""
        section = self.part("lids")
        match = re.search(r"^ports (\d+) differ (\d+)$", section.text, re.MULTILINE)
        if section.ok and match:
            if found := int(match.group(2)):
                first = section.lines[0].split()
                has = first[2] if len(first) > 2 else "nothing"
                self.notes.append(
                    f"{texts.TABLE} differs from the subnet at {found} of {match.group(1)} ports: "
                    f"{first[0]} has LID {first[1]}, the table has {has}"
                )
            return not int(match.group(2))
        # Nobody is asked where no manager runs: then no port contradicts the table.
        return UNKNOWN if running else True

    def _loaded(self, started: int) -> bool:
        """True when no file is younger than what made OpenSM read them last: its start, or our signal."""
        times: dict[str, float] = {}
        for line in self.part("times").lines:
            path, _, stamp = line.rpartition(" ")
            try:
                times[path] = float(stamp)
            except ValueError:
                continue
        mark = times.pop(texts.MARK, 0.0)
        times.pop(texts.DEFAULTS, None)
        read = max(started + 1.0, mark if mark >= started else 0.0)
        return all(stamp <= read for stamp in times.values())

    def _reads_ours(self) -> bool:
        """False when the process was started with another file than the one that we write."""
        match = re.search(r"\s(?:-F|--config)[ =](\S+)", self.part("process").text)
        if self.owner or match is None or match.group(1) == texts.CONF:
            return True
        self.notes.append(f"OpenSM was started with {match.group(1)}: it does not read {texts.CONF}")
        return False

    def _live(self, kept: Partitions, guid: Maybe[str]) -> Partitions:
        """The partitions of the file with MTU, rate and service level of the groups that exist.

        A group is shown to members of its partition only; others stay as the file has them.
        """
        words = {"ALL", "ALL_CAS", "SELF", guid}
        section = self.part("groups")
        if not section.ok:
            self.notes.append("the groups of the subnet could not be read")
            return kept
        live = texts.groups(section.text)
        rows = []
        for one in kept.rows:
            group = live.get(one.pkey)
            if not one.ipoib or not words & {member.partition("=")[0] for member in one.members}:
                rows.append(one)
            elif group is None:
                rows.append(replace(one, ipoib=False))
            else:
                mtu, rate, sl = group
                known = RATE_CODES.get(rate, str(rate))
                shown = one.rate if isinstance(one.rate, Absent) or code_of_rate(one.rate) == rate else known
                rows.append(replace(one, mtu=MTU_CODES.get(mtu, 0), rate=shown, sl=sl))
        return Partitions(tuple(rows))


_NO_FILE: Final = Partitions()
"""No usable file: every port is a full member of the default partition."""


def _sminfo(text: str) -> tuple[int, str] | None:
    """(priority, role) of the subnet manager that answered; None for no answer."""
    words = text.split()
    if "priority" not in words or "state" not in words:
        return None
    priority = int(words[words.index("priority") + 1])
    state = words[-1].removeprefix("SMINFO_").lower()
    return priority, {"notact": "not active"}.get(state, state)


# ---------------------------------------------------------------- change


@dataclass
class _SmChange:
    """Which files, and what makes OpenSM take them."""

    seen: Observation
    wanted: NodeState
    hw: Hardware
    context: Context

    def build(self) -> Change:
        sm = self.wanted.system.sm
        live = self._differences(self.seen.running.system.sm)
        kept = self._differences(self.seen.stored.system.sm) if self.seen.stored else ()
        blocked = tuple(item for item in live if item.unknown or _lost(item))
        stuck = {item.path for item in blocked}
        live = tuple(item for item in live if item.path not in stuck)
        kept = tuple(item for item in kept if item.path not in stuck)
        stale = self._stale()
        found = host.merged(live, kept, stale)
        reasons = tuple((item.path, _LOST) for item in blocked if _lost(item))
        if owner := _owner(self.hw):
            told = self._told(owner, (*blocked, *found), stuck)
            return replace(told, reasons=(*told.reasons, *reasons))
        if not found:
            return Change(blocked=blocked, reasons=reasons)
        fields = {item.path.rpartition(".")[2] for item in found}
        puts = tuple(self._puts(stuck))
        action = self._action(fields, puts)
        enable = "running" in {item.path.rpartition(".")[2] for item in kept} and sm.running is True
        # Before it starts, and before it may take over: no other LIDs than those in use.
        lids = bool(stale) or action == "restart"
        context = replace(self.context, action=action, enable=enable, lids=lids)
        return replace(self._change(found, blocked, puts, context), reasons=reasons)

    def _told(self, owner: str, found: tuple[Difference, ...], stuck: Iterable[str]) -> Change:
        """Somebody else's subnet manager: what its owner is to change, and nothing is written."""
        why = f"{owner} owns this subnet manager: hand the lines over to whoever runs it"
        read = [one.path for one in found if not one.unknown and not _lost(one)]
        if not read:
            return Change(blocked=found)
        lines = [
            f"{owner}: {row.removeprefix(texts.FOLDER)}"
            for step in self._puts(stuck)
            for row in _shown(step, self._text(step.path))
            if step.path != texts.DEFAULTS and not re.search(r"\b(partition_config|qos_policy)_file\b", row)
        ]
        return Change(blocked=found, reasons=tuple((path, why) for path in read), lines=tuple(lines))

    def _stale(self) -> tuple[Difference, ...]:
        wish = SmState(lids=self.wanted.system.sm.lids)
        found = differences(wish, self.seen.running.system.sm, "system.sm")
        return tuple(one for one in found if one.found is False)

    def _differences(self, seen: SmState) -> tuple[Difference, ...]:
        owned = settled(self.wanted).system.sm
        return host.wishes(differences(owned, seen, "system.sm"))

    # -- files

    def _text(self, path: str) -> str:
        return dict(self.seen.facts).get(f"text {path}", "")

    def _puts(self, stuck: Iterable[str]) -> Iterable[Put]:
        """Files whose text is not as it is to be; each only over the very text that was read."""
        options = texts.options(self.wanted.system.sm)
        names = [name for name, value in options.items() if value is not None]
        lines = dict(zip(names, render_lines("opensm/opensm.conf.j2", self.context), strict=True))
        blocked = {path.rpartition(".")[2] for path in stuck}
        rows: list[tuple[str, str | None]] = [
            (texts.CONF, texts.merged(self._text(texts.CONF), options, lines))
        ]
        if self.context.partitions:
            rows.append((texts.PARTITIONS, render("opensm/partitions.conf.j2", self.context)))
        elif isinstance(self.wanted.system.sm.partitions, Partitions):
            rows.append((texts.PARTITIONS, None))
        if "levels" not in blocked and self.context.levels:
            rows.append((texts.POLICY, render("opensm/qos-policy.conf.j2", self.context)))
        if isinstance(self.wanted.system.sm.guid, str):
            line = render("opensm/defaults.j2", self.context).splitlines()[-1]
            rows.append((texts.DEFAULTS, texts.merged_ports(self._text(texts.DEFAULTS), line)))
        for path, text in rows:
            have = self._text(path)
            if (text or "").strip() != have.strip():
                was = hashlib.sha256(have.strip().encode()).hexdigest()
                yield Put(path, text or None, was=was)

    def _action(self, fields: set[str], puts: tuple[Put, ...]) -> Action:
        now, want = self.seen.running.system.sm, self.wanted.system.sm.running
        if want is False:
            return "stop" if now.running is True else ""
        if now.running is not True:
            return "restart" if want is True else ""
        changed = {step.path for step in puts}
        if (texts.DEFAULTS in changed and "guid" in fields) or self._restarts(changed) or self._resizes(now):
            return "restart"
        return "hup" if changed - {texts.DEFAULTS} or "loaded" in fields else ""

    def _restarts(self, changed: set[str]) -> bool:
        """True when an option changes that a signal does not bring in."""
        before = texts.read_options(self._text(texts.CONF))
        wanted = texts.options(self.wanted.system.sm)
        names = [name for name in texts.RESTART if name in wanted and wanted[name] != before.get(name)]
        return texts.CONF in changed and any(not _is_default(name, wanted[name], before) for name in names)

    def _resizes(self, now: SmState) -> bool:
        """True when a group that exists is to have another MTU, rate or level: it is never resized."""
        want, have = self.wanted.system.sm.partitions, now.partitions
        if not isinstance(want, Partitions) or not isinstance(have, Partitions):
            return False
        old = {one.pkey: one for one in have.rows if one.ipoib}
        return any(
            (one.mtu, one.rate, one.sl) != (old[one.pkey].mtu, old[one.pkey].rate, old[one.pkey].sl)
            for one in want.rows
            if one.ipoib and one.pkey in old
        )

    # -- steps

    def _change(
        self,
        found: tuple[Difference, ...],
        blocked: tuple[Difference, ...],
        puts: tuple[Put, ...],
        context: Context,
    ) -> Change:
        lines = render_lines("opensm/commands.j2", context)
        program = (host.put(_PROGRAM, "opensm/guid2lid.sh.j2", context, 0o755),) if context.lids else ()
        # Where no file comes before it, a test says whether the action is needed.
        unless = _UNLESS[context.action] if context.action and not puts else ()
        calls = _calls(lines, context.action, unless)
        disturbs = tuple(self._disturbs(found, context.action))
        return Change(
            differences=found,
            blocked=blocked,
            lines=(*(row for step in puts for row in _shown(step, self._text(step.path))), *lines),
            commit=(*puts, *program, *calls),
            undo=self._undo(context),
            undo_kind="dead-man",
            disturbs=disturbs,
            undo_disturbs=disturbs,
            expected=self.wanted,
            turn=("subnet manager", self._place()),
        )

    def _place(self) -> int:
        """The master last; of managers that do not run, the one that is to be master first."""
        now = self.seen.running.system.sm
        if now.role == "master":
            return 2
        return 0 if now.running is not True and self.wanted.system.sm.role == "master" else 1

    def _undo(self, context: Context) -> tuple[Step, ...]:
        """The same signal once the files are back; a manager that did not run is stopped again."""
        if self.seen.running.system.sm.running is not True:
            back = replace(context, action="stop", enable=False, lids=False)
        else:
            action: Action = "restart" if context.action == "stop" else context.action
            back = replace(context, action=action, enable=False, lids=False)
        lines = render_lines("opensm/commands.j2", back)
        return tuple(replace(step, late=True) for step in _calls(lines, back.action))

    def _disturbs(self, found: tuple[Difference, ...], action: Action) -> Iterable[Disturbance]:
        now = self.seen.running.system.sm
        fields = {item.path.rpartition(".")[2] for item in found}
        if action == "stop":
            yield Disturbance(Disturbs.LOSS, (), "the subnet manager stops", _EXPERIENCE)
        elif action == "restart" and now.running is True:
            what = "the subnet manager restarts: hosts join their groups again, new paths wait meanwhile"
            yield Disturbance(Disturbs.LOSS, (), what, _SOURCE)
        elif action == "hup" and fields & {"vls", "sl_to_vl", "high", "low", "high_limit"}:
            what = "lanes and arbitration of every link are programmed anew"
            yield Disturbance(Disturbs.LOSS, (), what, _EXPERIENCE)
        elif action == "hup" and self._shrinks(now):
            yield Disturbance(Disturbs.LOSS, (), "members leave a partition", _SOURCE)

    def _shrinks(self, now: SmState) -> bool:
        want, have = self.wanted.system.sm.partitions, now.partitions
        if not isinstance(want, Partitions) or not isinstance(have, Partitions):
            return False
        left = {(one.pkey, member) for one in have.rows for member in one.members}
        return bool(left - {(one.pkey, member) for one in want.rows for member in one.members})


def _lost(item: Difference) -> bool:
    """True where the option is right and the file that it names is not there."""
    return isinstance(item.found, str) and item.found == f"{item.wanted}{_UNREADABLE}"


def _calls(lines: tuple[str, ...], action: Action, unless: tuple[str, ...] = ()) -> tuple[Call, ...]:
    """The commands; the last one, by which OpenSM reads its files, also leaves our mark."""
    calls = [_LIDS if line == _PROGRAM else host.call(line) for line in lines]
    if action in ("hup", "restart"):
        calls[-1] = Call(("sh", "-c", f"{lines[-1]} && touch {texts.MARK}"))
    if unless:
        calls[-1] = replace(calls[-1], unless=unless)
    return tuple(calls)


_LIDS: Final = Call(
    (_PROGRAM,), timeout_s=300.0, unless=("sh", "-c", f"[ -x {_PROGRAM} ] && {_PROGRAM} check")
)
"""Minutes: it asks every port of the subnet."""
_UNLESS: Final[Mapping[str, tuple[str, ...]]] = {
    "hup": (
        "sh",
        "-c",
        f'[ -e {texts.MARK} ] && [ -z "$(find {" ".join(_FILES[:3])} -newer {texts.MARK} 2>/dev/null)" ]',
    ),
    "restart": ("pgrep", "-x", "opensm"),
    "stop": ("sh", "-c", "! pgrep -x opensm"),
}
"""Read-only tests that exit 0 when the action is needed no more."""


def _is_default(name: str, wanted: str | None, before: Mapping[str, str]) -> bool:
    """True when the running OpenSM has the wanted value without being told."""
    if name in before:
        return False
    return (name, wanted) in _DEFAULTS or wanted is None


_DEFAULTS: Final = frozenset(
    {
        ("lmc", "0"),
        ("partition_config_file", texts.PARTITIONS),
        ("qos_policy_file", texts.POLICY),
    }
)
"""`opensm -c` of Debian's 3.3.23."""


def _shown(step: Put, before: str) -> Iterable[str]:
    """The lines that come and go, for people."""
    if step.text is None:
        yield f"rm {step.path}"
        return
    old, new = before.splitlines(), step.text.splitlines()
    if count := before.count("\r"):
        yield f"{step.path}: - carriage returns of {count} line{'' if count == 1 else 's'}"
    yield from (f"{step.path}: - {row.strip()}" for row in old if row.strip() and row not in new)
    yield from (
        f"{step.path}: {row.strip()}" for row in new if row.strip() and row[:1] != "#" and row not in old
    )


PLATFORM = OpenSm()
