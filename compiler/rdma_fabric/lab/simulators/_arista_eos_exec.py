"""Exec mode and show commands of a simulated EOS switch, and one login's way through its modes."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rdma_fabric.lab.simulators import _arista_eos_counters as counters
from rdma_fabric.lab.simulators import _arista_eos_show as show
from rdma_fabric.lab.simulators._arista_eos_commands import (
    Place,
    configure,
    feed_banner,
    joined_ports,
    load,
    port_name,
    rebased,
)
from rdma_fabric.lab.simulators._arista_eos_config import Config, hardware
from rdma_fabric.lab.simulators._arista_eos_foreign import hashed
from rdma_fabric.lab.simulators._arista_eos_grammar import INVALID, PRIVILEGED, Args, Refused, match, rules
from rdma_fabric.lab.simulators._arista_eos_show import Shown, View
from rdma_fabric.lab.simulators._contract import Reply, Session

if TYPE_CHECKING:
    from rdma_fabric.lab.simulators.arista_eos import Candidate, EosDevice

STARTUP = "/mnt/flash/startup-config"
FLASH = "/mnt/flash/"
_SAVED = "Copy completed successfully."


def flash_path(where: str) -> str:
    """The path of flash:NAME; Refused for other places."""
    found = re.fullmatch(r"(?:flash:|file:/mnt/flash/)/?([\w.-]+)", where)
    if found is None:
        raise Refused(INVALID)
    return FLASH + found[1]


Exec = Callable[["EosSession", Args], str]
_EXEC: list[tuple[str, tuple[Exec, bool]]] = []
_SHOW: list[tuple[str, tuple[Callable[[EosSession, Args], Shown], bool]]] = []


def _command(*patterns: str, privileged: bool = True) -> Callable[[Exec], Exec]:
    def keep(action: Exec) -> Exec:
        _EXEC.extend((pattern, (action, privileged)) for pattern in patterns)
        return action

    return keep


def _shows(
    *patterns: str, privileged: bool = False
) -> Callable[[Callable[[EosSession, Args], Shown]], Callable[[EosSession, Args], Shown]]:
    def keep(action: Callable[[EosSession, Args], Shown]) -> Callable[[EosSession, Args], Shown]:
        _SHOW.extend((pattern, (action, privileged)) for pattern in patterns)
        return action

    return keep


class EosSession(Session):
    """One login: where it stands and what it asks for."""

    def __init__(self, device: EosDevice, user: str, enabled: bool = False) -> None:
        self.device = device
        self.user = user
        self.enabled = enabled
        self.place: Place | None = None
        self.candidate: Candidate | None = None
        self._asks_secret = False
        self._leaves = False

    def prompt(self) -> str:
        """`leaf01>`, `leaf01#`, `leaf01(config-s-fabric-if-Et1)#`; six characters of a session's name."""
        if self._asks_secret:
            return "Password: "
        if self.place is not None and self.place.banner:
            return ""
        name = self.device.running_config.hostname
        if self.place is None:
            return f"{name}{'#' if self.enabled else '>'}"
        session = f"-s-{self.candidate.name[:6]}" if self.candidate else ""
        return f"{name}(config{session}{self.place.labels()})#"

    def secret(self) -> bool:
        """True while `enable` asks for its password."""
        return self._asks_secret

    def run(self, line: str) -> Reply:
        """Run one line in the mode the session is in."""
        self.device.tick()
        if self.place is not None and self.place.banner:
            feed_banner(self.place, line)
            return Reply()
        text = line.strip()
        if self._asks_secret:
            return Reply(self._check_secret(text))
        if not text or text.startswith("!"):
            return Reply()
        try:
            shown = self._dispatch(text)
        except Refused as refused:
            shown = str(refused)
        return Reply(shown, self._leaves)

    def _dispatch(self, text: str) -> str:
        if text.startswith("do "):
            text = text.removeprefix("do ").strip()
            return self._exec(text) if self.place is not None else self._refuse()
        if re.match(r"sho?w? ", text):
            return self._show(text)
        return self._exec(text) if self.place is None else self._config(text)

    @staticmethod
    def _refuse() -> str:
        raise Refused(INVALID)

    def _check_secret(self, typed: str) -> str:
        self._asks_secret = False
        wanted = self._enable_secret().removeprefix("enable password ")
        self.enabled = hashed(typed) == wanted
        return "" if self.enabled else "% Bad secret"

    def _enable_secret(self) -> str:
        foreign = self.device.running_config.foreign
        return next((line for _, line in foreign if line.startswith("enable ")), "")

    # --- configuration mode ---

    def _config(self, text: str) -> str:
        assert self.place is not None
        if text in ("end", "exit"):
            if text == "exit" and len(self.place.frames) > 1:
                self.place.frames.pop()
            else:
                self._leave_config()
            return ""
        if self.candidate is not None and (done := self._in_candidate(text)) is not None:
            return done
        if self.candidate is None and self.place.config is not self.device.running_config:
            self.place = rebased(self.place, self.device.running_config)
        return configure(self.place, text)

    def _in_candidate(self, text: str) -> str | None:
        """Commands of a configuration session; None for all others."""
        assert self.candidate is not None
        name = self.candidate.name
        if self.device.candidates.get(name) is not self.candidate or self.candidate.state != "pending":
            self._leave_config()
            raise Refused(f"% Cannot continue: session {name} is {self.candidate.state}")
        if text == "commit":
            self.device.commit(name, self.user)
        elif text.startswith("commit timer "):
            self.device.commit(name, self.user, seconds(text.split(" ", 2)[2]))
        elif text in ("abort", "no commit timer"):
            self.device.abort(name)
        elif text == "rollback clean-config":
            self.candidate.config = Config(hardware(self.device.facts))
            self.place = Place(self.candidate.config)
            return ""
        else:
            return None
        self._leave_config()
        return ""

    def _leave_config(self) -> None:
        """Back to exec; a session stays pending."""
        self.place = None
        self.candidate = None

    # --- exec ---

    def _exec(self, text: str) -> str:
        if text in ("exit", "quit", "logout"):
            self._leaves = True
            return ""
        (action, privileged), args = match(joined_ports(text), _EXEC_TABLE)
        if privileged and not self.enabled:
            raise Refused(PRIVILEGED)
        return action(self, args)

    def _show(self, text: str) -> str:
        """A show command and its pipes."""
        command, *pipes = re.split(r"\s+\|\s+", text)
        (action, privileged), args = match(joined_ports(command), _SHOW_TABLE)
        if privileged and not self.enabled:
            raise Refused(PRIVILEGED)
        shown = action(self, args)
        if "json" in pipes:
            pipes.remove("json")
            lines = _json_lines(shown)
        else:
            lines = list(shown.lines)
        for pipe in pipes:
            lines = _piped(lines, pipe)
        return "\n".join(lines) + "\n"

    def view(self, config: Config | None = None) -> View:
        """What show commands see: always the running configuration unless told otherwise."""
        device = self.device
        return View(device.facts, config or device.running_config, device.uptime, device.health)


def seconds(text: str) -> int:
    """Seconds of `HH:MM:SS`, above 0; Refused otherwise."""
    found = re.fullmatch(r"(\d{1,2}):(\d{1,2}):(\d{1,2})", text)
    if found is None or int(found[2]) > 59 or int(found[3]) > 59:
        raise Refused(INVALID)
    total = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
    if not total:
        raise Refused(INVALID)
    return total


def _json_lines(shown: Shown) -> list[str]:
    if shown.data is None:
        error = "This is an unconverted command"
        return [f"% {error}", *json.dumps({"errors": [error]}, indent=4).splitlines()]
    return json.dumps(shown.data, indent=4).splitlines()


def _piped(lines: list[str], pipe: str) -> list[str]:
    """One `| ...` of EOS."""
    word, _, pattern = pipe.partition(" ")
    pattern = pattern.strip().strip("\"'")
    if word == "no-more" and not pattern:
        return lines
    if not pattern:
        raise Refused(INVALID)
    try:
        wanted = re.compile(pattern, re.IGNORECASE if word == "section" else 0)
    except re.error as error:
        raise Refused(f"% Invalid regular expression: {error}") from error
    if word in ("include", "grep"):
        return [line for line in lines if wanted.search(line)]
    if word == "exclude":
        return [line for line in lines if not wanted.search(line)]
    if word == "begin":
        start = next((at for at, line in enumerate(lines) if wanted.search(line)), len(lines))
        return lines[start:]
    if word == "section":
        return show.section(lines, pattern)
    raise Refused(INVALID)


# --- exec commands -------------------------------------------------------------------------------


@_command("enable [<level:0-15>]", privileged=False)
def _enable(session: EosSession, _: Args) -> str:
    if session._enable_secret() and not session.enabled:
        session._asks_secret = True
    else:
        session.enabled = True
    return ""


@_command("disable", privileged=False)
def _disable(session: EosSession, _: Args) -> str:
    session.enabled = False
    return ""


@_command("terminal width <n:10-32767>", privileged=False)
def _width(_: EosSession, args: Args) -> str:
    return f"Width set to {args.number('n')} columns."


@_command("terminal length <n:0-32767>", privileged=False)
def _length(_: EosSession, args: Args) -> str:
    number = args.number("n")
    return f"Pagination set to {number} lines." if number else "Pagination disabled."


@_command("terminal monitor", "terminal no monitor", "no terminal monitor")
def _monitor(_: EosSession, __: Args) -> str:
    return ""


@_command("configure [terminal]")
def _configure(session: EosSession, _: Args) -> str:
    session.place = Place(session.device.running_config)
    return ""


@_command("configure session", "configure session {name} [description {text...}]")
def _configure_session(session: EosSession, args: Args) -> str:
    name = args.word("name") or f"sess-{1000 + session.device.count('sess')}--0"
    candidate = session.device.begin(name, session.user, args.word("text"))
    session.candidate = candidate
    session.place = Place(candidate.config)
    return ""


@_command(
    "configure session {name} commit",
    "configure session {name} commit timer {time}",
)
def _exec_commit(session: EosSession, args: Args) -> str:
    time = seconds(args.word("time")) if args.has("time") else 0
    session.device.commit(args.word("name"), session.user, time)
    return ""


@_command("configure session {name} abort", "no configure session {name}")
def _exec_abort(session: EosSession, args: Args) -> str:
    session.device.abort(args.word("name"))
    return ""


@_command("configure replace {where} [ignore-errors] [skip-checkpoint]")
def _replace(session: EosSession, args: Args) -> str:
    session.device.replace(args.word("where"), session.user)
    return ""


@_command("configure checkpoint save [{name}]")
def _checkpoint_save(session: EosSession, args: Args) -> str:
    session.device.checkpoint(args.word("name"), session.user)
    return ""


@_command("configure checkpoint restore {name}")
def _checkpoint_restore(session: EosSession, args: Args) -> str:
    session.device.replace(f"checkpoint:{args.word('name')}", session.user)
    return ""


@_command("write [memory]")
def _write(session: EosSession, _: Args) -> str:
    session.device.save()
    return _SAVED


@_command("copy {source} {target}")
def _copy(session: EosSession, args: Args) -> str:
    text, target = session.device.source(args.word("source")), args.word("target")
    if target == "running-config":
        refused = load(session.device.running_config, text)
        return "\n".join([*refused, _SAVED])
    path = STARTUP if target == "startup-config" else flash_path(target)
    session.device.files[path] = text.encode()
    return _SAVED


@_command("delete {where}")
def _delete(session: EosSession, args: Args) -> str:
    where = args.word("where")
    kind, _, name = where.partition(":")
    if kind == "checkpoint" and session.device.checkpoints.pop(name, None) is not None:
        return ""
    if session.device.files.pop(flash_path(where), None) is None:
        raise Refused(f"% Error deleting {where} (No such file or directory)")
    return ""


@_command("more {where}")
def _more(session: EosSession, args: Args) -> str:
    return session.device.source(args.word("where"))


@_command("diff {old} {new}")
def _diff(session: EosSession, args: Args) -> str:
    """Differences of two stored configurations."""
    names = [args.word("old"), args.word("new")]
    shown = ["system:/running-config" if name == "running-config" else name for name in names]
    old, new = (session.device.source(name).splitlines() for name in names)
    return "\n".join(_unified(old, new, shown[0], shown[1])) + "\n"


@_command("dir [flash:]")
def _dir(session: EosSession, _: Args) -> str:
    names = sorted(path for path in session.device.files if path.startswith(FLASH))
    lines = [f"       -rw- {len(session.device.files[path]):11} {path.removeprefix(FLASH)}" for path in names]
    return "\n".join(["Directory of flash:/", "", *lines, ""])


@_command("reload now", "reload")
def _reload(session: EosSession, _: Args) -> str:
    session._leaves = True
    session.device.reboot()
    return ""


# --- show commands -------------------------------------------------------------------------------


def _unified(old: Sequence[str], new: Sequence[str], old_name: str, new_name: str) -> list[str]:
    return list(difflib.unified_diff(old, new, old_name, new_name, n=3, lineterm=""))


@_shows("show version")
def _show_version(session: EosSession, _: Args) -> Shown:
    return show.version(session.view())


@_shows("show hostname")
def _show_hostname(session: EosSession, _: Args) -> Shown:
    return show.hostname(session.view())


@_shows("show clock")
def _show_clock(session: EosSession, _: Args) -> Shown:
    return Shown([f"{session.device.now():%a %b %e %H:%M:%S %Y}", "Timezone: UTC", "Clock source: local"])


@_shows("show running-config [(all:all)]", privileged=True)
def _show_running(session: EosSession, args: Args) -> Shown:
    everything = args.has("all")
    view = session.view()
    command = "show running-config all" if everything else "show running-config"
    lines = view.config.lines(everything)
    return Shown([*show.config_header(view, command), *lines], show.as_tree(lines))


@_shows("show running-config [(all:all)] section {pattern...}", privileged=True)
def _show_running_section(session: EosSession, args: Args) -> Shown:
    try:
        lines = show.section(session.view().config.lines(args.has("all")), args.word("pattern").strip("\"'"))
    except re.error as error:
        raise Refused(f"% Invalid regular expression: {error}") from error
    return Shown(lines, show.as_tree(lines))


@_shows("show running-config interfaces {name}", privileged=True)
def _show_running_interface(session: EosSession, args: Args) -> Shown:
    view = session.view()
    name = port_name(view.config, args.word("name"))
    lines = view.port(name).lines(view.config.default_routed)
    return Shown([f"interface {name}", *(f"   {line}" for line in lines)])


@_shows("show running-config diffs", privileged=True)
def _show_running_diffs(session: EosSession, _: Args) -> Shown:
    old = session.device.source("startup-config").splitlines()
    new = session.device.running_config.lines()
    return Shown(_unified(old, new, "flash:/startup-config", "system:/running-config"))


@_shows("show startup-config", privileged=True)
def _show_startup(session: EosSession, _: Args) -> Shown:
    return Shown(session.device.source("startup-config").splitlines())


@_shows(
    "show session-config",
    "show session-config named {name}",
    privileged=True,
)
def _show_session_config(session: EosSession, args: Args) -> Shown:
    return Shown(_shown_candidate(session, args).config.lines())


def _shown_candidate(session: EosSession, args: Args) -> Candidate:
    candidate = session.candidate
    if args.has("name"):
        candidate = session.device.candidates.get(args.word("name"))
    if candidate is None:
        raise Refused(INVALID)
    return candidate


@_shows("show session-config diffs", "show session-config named {name} diffs", privileged=True)
def _show_session_diffs(session: EosSession, args: Args) -> Shown:
    """Unified, three lines of context; nothing but an empty line when nothing differs."""
    candidate = _shown_candidate(session, args)
    old, new = session.device.running_config.lines(), candidate.config.lines()
    return Shown(
        _unified(old, new, "system:/running-config", f"session:/{candidate.name}-session-config") or [""]
    )


@_shows("show configuration sessions [(detail:detail)]")
def _show_sessions(session: EosSession, _: Args) -> Shown:
    """The JSON changed with 4.32: the timer moved from the session to the top level."""
    device = session.device
    timed = device.timed()
    data: dict[str, Any] = {"maxSavedSessions": 1, "maxOpenSessions": device.max_pending, "sessions": {}}
    new = device.running_config.hardware.numbers >= (4, 32)
    for found in device.candidates.values():
        row: dict[str, Any] = {
            "state": found.state,
            "commitUser": found.user if found.state != "pending" else "",
            "description": found.description,
            "instances": {},
        }
        if found.timed:
            row["state"] = "committed" if new else found.state
            if not new:
                row["commitBy"] = found.expires
        if found.finished:
            row["completedTime"] = device.now(found.finished).timestamp()
        data["sessions"][found.name] = row
    if new:
        data["mergeOnCommit"] = False
        data["saveToStartupConfigOnCommit"] = False
        if timed is not None:
            data["commitTimerSessionName"] = timed.name
            data["commitTimerExpireTime"] = timed.expires
    return Shown(_sessions_text(session, data, timed, new), data)


def _sessions_text(
    session: EosSession, data: Mapping[str, Any], timed: Candidate | None, new: bool
) -> list[str]:
    lines = [
        "Maximum number of completed sessions: 1",
        f"Maximum number of pending sessions: {session.device.max_pending}",
    ]
    if new:
        lines += ["Merge on commit is disabled", "Autosave to startup-config on commit is disabled"]
        if timed is not None:
            left = timedelta(seconds=int(timed.expires - session.device.uptime))
            lines += ["", f"Session with pending commit timer: {timed.name}"]
            lines.append(f"Time left until commit timer expiry: in {left}")
    width = max([8, *(len(name) for name in data["sessions"])])
    lines += ["", f"  {'Name':{width}} State           User       Terminal    PID"]
    lines.append(f"  {'-' * width} {'-' * 15} {'-' * 10} {'-' * 14} ---")
    current = session.candidate.name if session.candidate else ""
    for name, row in data["sessions"].items():
        lines.append(f"{'*' if name == current else ' '} {name:{width}} {row['state']}")
    return lines


@_shows("show configuration checkpoints")
def _show_checkpoints(session: EosSession, _: Args) -> Shown:
    device = session.device
    rows = [
        (name, f"{device.now(c.taken):%Y-%m-%d %H:%M:%S}", c.user) for name, c in device.checkpoints.items()
    ]
    lines = [f"Maximum number of checkpoints: {device.max_checkpoints}"]
    lines.append(f"  {'Filename':20} {'Date':^25} User")
    lines.append(f"  {'-' * 20} {'-' * 25} ----------")
    lines += [f"  {name:20} {date:^25} {user}" for name, date, user in rows]
    data = {
        name: {"fileDate": device.now(c.taken).timestamp(), "fileUser": c.user}
        for name, c in device.checkpoints.items()
    }
    return Shown(lines, {"maxCheckpoints": device.max_checkpoints, "checkpoints": data})


@_shows("show interfaces", "show interfaces {name}")
def _show_interfaces(session: EosSession, args: Args) -> Shown:
    return show.interfaces(session.view(), args.word("name"))


@_shows("show interfaces flow-control", "show flow-control")
def _show_flow_control(session: EosSession, _: Args) -> Shown:
    return show.flow_control(session.view())


@_shows("show interfaces counters queue detail")
def _show_queue_counters(session: EosSession, _: Args) -> Shown:
    return counters.queues(session.view())


@_shows("show interfaces counters errors", "show interfaces {name} counters errors")
def _show_errors(session: EosSession, args: Args) -> Shown:
    return counters.errors(session.view(), args.word("name"))


@_shows("show interfaces counters discards", "show interfaces {name} counters discards")
def _show_discards(session: EosSession, args: Args) -> Shown:
    return counters.discards(session.view(), args.word("name"))


@_shows("show interfaces phy detail", "show interfaces {name} phy detail")
def _show_phy(session: EosSession, args: Args) -> Shown:
    return counters.phy(session.view(), args.word("name"))


@_shows("show interfaces status", "show interfaces {name} status")
def _show_status(session: EosSession, args: Args) -> Shown:
    return counters.status(session.view(), args.word("name"))


@_shows("show priority-flow-control", "show priority-flow-control status")
def _show_pfc(session: EosSession, _: Args) -> Shown:
    return show.pfc_status(session.view())


@_shows("show priority-flow-control counters")
def _show_pfc_counters(session: EosSession, _: Args) -> Shown:
    return counters.pfc(session.view())


@_shows("show priority-flow-control counters watchdog")
def _show_watchdog(session: EosSession, _: Args) -> Shown:
    return show.watchdog_counters(session.view())


@_shows("show qos interfaces", "show qos interfaces {name}")
def _show_qos(session: EosSession, args: Args) -> Shown:
    return show.qos_interfaces(session.view(), args.word("name"))


@_shows("show qos interfaces trust", "show qos interfaces {name} trust")
def _show_trust(session: EosSession, args: Args) -> Shown:
    return show.qos_trust(session.view(), args.word("name"))


@_shows("show qos interfaces ecn", "show qos interfaces {name} ecn")
def _show_ecn(session: EosSession, args: Args) -> Shown:
    return show.qos_ecn(session.view(), args.word("name"))


@_shows("show qos interfaces ecn counters queue", "show qos interfaces {name} ecn counters queue")
def _show_ecn_counters(session: EosSession, args: Args) -> Shown:
    return counters.ecn(session.view(), args.word("name"))


@_shows("show qos maps")
def _show_maps(session: EosSession, _: Args) -> Shown:
    return show.qos_maps(session.view())


@_shows("show qos profile", "show qos profile {name}")
def _show_profiles(session: EosSession, args: Args) -> Shown:
    return show.qos_profiles(session.view(), args.word("name"))


@_shows("show qos profile summary")
def _show_profile_summary(session: EosSession, _: Args) -> Shown:
    return show.qos_profile_summary(session.view())


@_shows("show dcbx", "show dcbx {name}")
def _show_dcbx(session: EosSession, args: Args) -> Shown:
    return show.dcbx(session.view(), args.word("name"))


@_shows("show lldp neighbors")
def _show_lldp(session: EosSession, _: Args) -> Shown:
    return show.lldp_neighbors(session.view())


@_shows("show lldp neighbors detail")
def _show_lldp_detail(session: EosSession, _: Args) -> Shown:
    return show.lldp_detail(session.view())


_EXEC_TABLE = rules(_EXEC)
_SHOW_TABLE = rules(_SHOW)
