"""`systemctl`, `systemd-run`, `journalctl`, `dmesg`: units of this sandbox, without systemd.

One-shot services really run; a timer is a process that sleeps and then starts its service.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH103, PTH108, PTH113, PTH114, PTH115, PTH208, PTH211

from __future__ import annotations

import os
import re
import signal
import sys
import time

from . import store, units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_UNITS_OF_TIME = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 0.001, "us": 1e-6}
_UNITS_OF_TIME |= {"m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0}
_UNITS_OF_TIME |= {"hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0}


def main(name: str, arguments: list[str]) -> int:
    """Run the tool of this name."""
    tools = {"systemctl": _systemctl, "systemd-run": _systemd_run, "journalctl": _journalctl, "dmesg": _dmesg}
    return tools[name](list(arguments))


def _fail(text: str, status: int = 1) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
    return status


def seconds(text: str) -> float:
    """A time span of systemd.time(7): `90`, `1min 30s`, `500ms`; ValueError otherwise."""
    total, rest = 0.0, text.strip()
    if not rest:
        raise ValueError(text)
    while rest:
        found = re.match(r"(\d+(?:\.\d+)?)\s*([a-z]*)\s*", rest)
        if not found or found[2] not in _UNITS_OF_TIME:
            raise ValueError(text)
        total += float(found[1]) * _UNITS_OF_TIME[found[2]]
        rest = rest[found.end() :]
    return total


def _record(name: str, /, **changes: Any) -> None:
    with store.opened(store.UNITS) as state:
        state.setdefault(name, {}).update(changes)


def _alive(pid: int) -> bool:
    """True while the process is there and not a zombie."""
    status = store.slurp(f"/proc/{pid}/stat")
    return bool(status) and status.rpartition(")")[2].split()[0] != "Z"


def active(unit: str) -> str:
    """active, inactive, failed or unknown."""
    entry = store.read(store.UNITS).get(unit)
    if entry is None or "active" not in entry:
        return units.BUILT_IN.get(unit, "inactive")
    if entry["active"] == "active" and entry.get("pid") and not _alive(entry["pid"]):
        return "inactive"
    return str(entry["active"])


def _known(unit: str) -> bool:
    return (
        bool(units.path(unit)) or unit in units.BUILT_IN or "active" in store.read(store.UNITS).get(unit, {})
    )


# --- starting and stopping ---


def start(unit: str) -> int:
    """Start a unit and what it requires; returns the status of the job."""
    if unit.endswith(".device"):
        return _fail(f"Failed to start {unit}: Operation refused, unit {unit} may not be started.", 4)
    if enabled(unit) == "masked":
        return _fail(f"Failed to start {unit}: Unit {unit} is masked.")
    if not _known(unit):
        return _fail(f"Failed to start {unit}: Unit {unit} not found.", 5)
    if active(unit) == "active":
        return 0
    if not units.path(unit):
        return _start_built_in(unit)
    with store.opened(store.UNITS) as state:
        loaded = units.load(unit, state)
    if loaded.source != units.text(unit):
        sys.stderr.write(
            f"Warning: The unit file, source configuration file or drop-ins of {unit} changed on disk. "
            "Run 'systemctl daemon-reload' to reload units.\n"
        )
    if units.missing_device(loaded):
        return _fail(f"A dependency job for {unit} failed. See 'journalctl -xe' for details.")
    for other in loaded.words("Unit", "Requires") + loaded.words("Unit", "Wants"):
        if other != unit and units.path(other) and start(other) and other in loaded.words("Unit", "Requires"):
            return _fail(f"A dependency job for {unit} failed. See 'journalctl -xe' for details.")
    if unit.endswith(".timer"):
        return _start_timer(unit, loaded)
    became, pid = units.run(loaded)
    _record(unit, active=became, pid=pid, since=time.time())
    if became == "failed":
        return _fail(
            f"Job for {unit} failed because the control process exited with error code.\n"
            f'See "systemctl status {unit}" and "journalctl -xeu {unit}" for details.'
        )
    return 0


def _start_built_in(unit: str) -> int:
    from . import boot, network

    if unit == "systemd-sysctl.service":
        boot.sysctls()
    elif unit == "systemd-modules-load.service":
        boot.modules()
    elif unit in network.SERVICES:
        network.apply(links=False)
    _record(unit, active="active", pid=0, since=time.time())
    if unit == "lldpad.service":
        from . import lldpad

        lldpad.started()
    return 0


def stop(unit: str) -> int:
    """Stop a unit; one that is not loaded is an error, one that does not run is not."""
    if not _known(unit):
        return _fail(f"Failed to stop {unit}: Unit {unit} not loaded.", 5)
    entry = store.read(store.UNITS).get(unit, {})
    if units.path(unit):
        units.halt(units.Unit(unit, units.text(unit)))
    if entry.get("pid") and _alive(entry["pid"]):
        os.killpg(entry["pid"], signal.SIGTERM)
        _wait(entry["pid"])
    if entry.get("transient"):
        with store.opened(store.UNITS) as state:
            state.pop(unit, None)
    else:
        _record(unit, active="inactive", pid=0)
    return 0


def _wait(pid: int) -> None:
    """Until the process is gone; after 10 s it is killed (systemd's TimeoutStopSec is 90 s)."""
    for _ in range(500):
        if not _alive(pid):
            return
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)


def _restart(unit: str) -> int:
    if not _known(unit):
        return _fail(f"Failed to restart {unit}: Unit {unit} not found.", 5)
    if active(unit) == "active":
        stop(unit)
    with store.opened(store.UNITS) as state:
        if unit in state and not state[unit].get("transient"):
            state[unit]["active"] = "inactive"
    if unit in units.BUILT_IN and not units.path(unit):
        return _start_built_in(unit)
    return start(unit)


# --- timers ---


def _start_timer(unit: str, loaded: units.Unit) -> int:
    service = loaded.one("Timer", "Unit", unit.replace(".timer", ".service"))
    first = loaded.one("Timer", "OnActiveSec") or loaded.one("Timer", "OnBootSec")
    again = loaded.one("Timer", "OnUnitActiveSec") or loaded.one("Timer", "OnUnitInactiveSec")
    delay = seconds(first or again or "0")
    _arm(unit, service, delay, seconds(again) if again else 0.0)
    return 0


def _arm(timer: str, service: str, delay: float, again: float, command: list[str] | None = None) -> None:
    """Leave a process behind that sleeps and starts the service; a plain command runs as it."""
    ready, done = os.pipe()
    if os.fork():
        os.close(done)
        os.read(ready, 1)  # the timer is recorded before we return
        os.close(ready)
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    transient = {"transient": True} if command else {}
    _record(timer, active="active", pid=os.getpid(), due=time.time() + delay, unit=service, **transient)
    os.write(done, b".")
    os.close(done)
    os.close(ready)
    time.sleep(delay)
    while True:
        _elapsed(timer, service, command)
        if not again:
            os._exit(0)
        _record(timer, due=time.time() + again)
        time.sleep(again)


def _elapsed(timer: str, service: str, command: list[str] | None) -> None:
    """Its service runs; a transient timer has then done its work and is gone."""
    if command is None:
        start(service)
        return
    with store.opened(store.UNITS) as state:
        state.pop(timer, None)
    _transient(service, command)


def _transient(service: str, command: list[str], more: str = "") -> int:
    """Run a command as a service of this name; returns its exit status."""
    import shlex

    source = f"[Service]\nType=oneshot\n{more}ExecStart={shlex.join(command).replace('%', '%%')}\n"
    _record(service, active="active", pid=0, transient=True)
    became, _ = units.run(units.Unit(service, source))
    with store.opened(store.UNITS) as state:
        if became == "failed":
            state[service] = {"active": "failed"}
        else:
            state.pop(service, None)
    return 1 if became == "failed" else 0


def _systemd_run(words: list[str]) -> int:
    delay, unit, more, foreground, quiet = "", "", "", False, False
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        flag, equals, value = word.partition("=")
        valued = {"--on-active", "--unit", "-u", "--description", "-p", "--property", "--timer-property"}
        valued |= {"--setenv", "-E", "--service-type", "--working-directory", "--uid", "--gid", "--slice"}
        if flag in valued and not equals:
            value = words.pop(0) if words else ""
        elif flag not in valued and flag in {"--on-boot", "--on-calendar", "--on-unit-active", "--scope"}:
            return _fail(f"systemd-run: {flag} is not played by this lab")
        if flag == "--on-active":
            delay = value
        elif flag in {"--unit", "-u"}:
            unit = value
        elif flag in {"--setenv", "-E"}:
            more += f"Environment={value}\n"
        foreground = foreground or flag in {"--wait", "--pipe", "-P", "-t", "--pty"}
        quiet = quiet or flag in {"--quiet", "-q"}
    if not words:
        return _fail("Command line to execute required.")
    stem = (unit or f"run-r{os.urandom(16).hex()}").removesuffix(".service").removesuffix(".timer")
    service, timer = f"{stem}.service", f"{stem}.timer"
    name = timer if delay else service
    if _known(name) and (active(name) == "active" or units.path(name)):
        kind = "timer" if delay else "service"
        return _fail(
            f"Failed to start transient {kind} unit: Unit {name} was already loaded or has a fragment file."
        )
    if delay:
        try:
            wait = seconds(delay)
        except ValueError:
            return _fail(f"Failed to parse timer value: {delay}")
        _arm(timer, service, wait, 0.0, words)
        text = f"Running timer as unit: {timer}\nWill run service as unit: {service}"
    else:
        text = f"Running as unit: {service}"
    if not quiet:
        sys.stderr.write(f"{text}\n")
    if delay or foreground:
        return 0 if delay else _transient(service, words, more)
    if os.fork() == 0:
        os.setsid()
        os._exit(_transient(service, words, more))
    return 0


# --- enabling ---


def _links(unit: str, loaded: units.Unit) -> list[str]:
    """The symbolic links that its [Install] section asks for."""
    links = [f"{units.ETC}/{target}.wants/{unit}" for target in loaded.words("Install", "WantedBy")]
    links += [f"{units.ETC}/{target}.requires/{unit}" for target in loaded.words("Install", "RequiredBy")]
    return links + [f"{units.ETC}/{alias}" for alias in loaded.words("Install", "Alias")]


def _enable(unit: str) -> int:
    source = units.path(unit)
    if enabled(unit) == "masked":
        return _fail(f"Failed to enable unit: Unit file {units.ETC}/{unit} is masked.")
    if not source:
        if unit in units.BUILT_IN:
            return _mark(unit, on=True)
        return _fail(f"Failed to enable unit: Unit file {unit} does not exist.")
    if "@." in unit:
        return _fail(f"Failed to enable unit: Unit name {unit} is missing the instance name.")
    links = _links(unit, units.Unit(unit, units.text(unit)))
    if not links:
        sys.stderr.write(
            "The unit files have no installation config (WantedBy=, RequiredBy=, Also=,\n"
            "Alias= settings in the [Install] section, and DefaultInstance= for template\n"
            "units). This means they are not meant to be enabled or disabled using systemctl.\n"
        )
    for link in links:
        os.makedirs(link.rpartition("/")[0], exist_ok=True)
        if not os.path.lexists(link):
            os.symlink(source, link)
            sys.stderr.write(f"Created symlink {link} → {source}.\n")
    return 0


def _disable(unit: str) -> int:
    if not units.path(unit) and unit not in units.BUILT_IN and not _enabled_links(unit):
        return _fail(f"Failed to disable unit: Unit file {unit} does not exist.")
    for link in _enabled_links(unit):
        os.unlink(link)
        sys.stderr.write(f'Removed "{link}".\n')
    return _mark(unit, on=False) if unit in units.BUILT_IN and not units.path(unit) else 0


def _mark(unit: str, on: bool) -> int:
    """A unit that came with the host is to start at boot, or not."""
    with store.opened(store.FLASH) as kept:
        kept.setdefault("enabled units", {})[unit] = on
    return 0


def _mask(unit: str) -> int:
    link = f"{units.ETC}/{unit}"
    if os.path.isfile(link) and not os.path.islink(link):
        return _fail(f"Failed to mask unit: File {link} already exists.")
    if not os.path.lexists(link):
        os.symlink(os.devnull, link)
        sys.stderr.write(f"Created symlink {link} → {os.devnull}.\n")
    return 0


def _unmask(unit: str) -> int:
    link = f"{units.ETC}/{unit}"
    if os.path.islink(link) and os.readlink(link) == os.devnull:
        os.unlink(link)
        sys.stderr.write(f'Removed "{link}".\n')
    return 0


def at_boot() -> None:
    """Services that come with the host run if they are enabled."""
    for unit in sorted(name for name in units.BUILT_IN if name.endswith(".service")):
        if enabled(unit) != "enabled":
            if units.BUILT_IN[unit] == "active":
                _record(unit, active="inactive", pid=0)
        elif active(unit) != "active":
            start(unit)
    for unit in (units.full(name) for name in store.facts()["services"]):
        if unit not in units.BUILT_IN:
            _record(unit, active="active", pid=0)


def _enabled_links(unit: str) -> list[str]:
    found = []
    for folder in sorted(os.listdir(units.ETC)):
        link = f"{units.ETC}/{folder}/{unit}"
        if folder.endswith((".wants", ".requires")) and os.path.lexists(link):
            found.append(link)
    return found


def enabled(unit: str) -> str:
    """enabled, disabled, static, masked or nothing when there is no such file."""
    link = f"{units.ETC}/{unit}"
    if os.path.islink(link) and os.readlink(link) == os.devnull:
        return "masked"
    if _enabled_links(unit):
        return "enabled"
    if units.path(unit):
        has = bool(_links(unit, units.Unit(unit, units.text(unit))))
        return "disabled" if has else "static"
    if unit in units.BUILT_IN:
        usual = units.BUILT_IN[unit] == "active" or unit in map(units.full, store.facts()["services"])
        usual = usual or unit == units.network_manager()
        kept = store.read(store.FLASH).get("enabled units", {})
        return "enabled" if kept.get(unit, usual) else "disabled"
    return ""


# --- systemctl ---


def _systemctl(words: list[str]) -> int:
    flags = [word for word in words if word.startswith("-")]
    words = _without_values(words)
    if not words:
        words = ["list-units"]
    verb, names = words[0], [units.full(word) for word in words[1:]]
    simple = {
        "daemon-reload": _daemon_reload,
        "daemon-reexec": _daemon_reload,
        "list-timers": _list_timers,
        "is-system-running": lambda: _print("running"),
        "reset-failed": _reset_failed,
        "list-units": _list_units,
        "list-unit-files": _list_units,
    }
    if verb in simple:
        return simple[verb]()
    each = {
        "start": start,
        "stop": stop,
        "restart": _restart,
        "reload-or-restart": _restart,
        "try-restart": lambda unit: _restart(unit) if active(unit) == "active" else 0,
        "enable": _enable,
        "disable": _disable,
        "mask": _mask,
        "unmask": _unmask,
        "cat": _cat,
        "status": _status,
    }
    if verb == "show":
        return _show(names, words_of(flags, "-p", "--property"), "--value" in flags)
    if verb in {"is-active", "is-enabled", "is-failed"}:
        return _ask(verb, names, "-q" in flags or "--quiet" in flags)
    if verb not in each:
        return _fail(f"Unknown command verb {verb}.")
    status = 0
    for unit in names:
        status = each[verb](unit) or status
        if not status and verb in {"enable", "disable", "mask"} and "--now" in flags:
            status = start(unit) if verb == "enable" else stop(unit)
    return status


_pending: list[str] = []


def _without_values(words: list[str]) -> list[str]:
    """Words that are no options; `-p NAME` is put aside for `show`."""
    left, rest = [], iter(words)
    _pending.clear()
    for word in rest:
        if word in {"-p", "--property"}:
            _pending.append(next(rest, ""))
        elif word in {"-t", "--type", "--state", "-n", "-o"}:
            next(rest, "")
        elif not word.startswith("-"):
            left.append(word)
    return left


def words_of(flags: list[str], *names: str) -> list[str]:
    """Values of `--property=A,B`, of `-pA` and of those put aside."""
    found = [flag.partition("=")[2] for flag in flags if flag.startswith("--property=")]
    found += [flag[2:] for flag in flags if flag.startswith("-p") and len(flag) > 2]
    return [word for value in found + _pending for word in value.split(",") if word]


def _print(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0


def _daemon_reload() -> int:
    """Take the unit files as they are now. Timers and running services go on."""
    with store.opened(store.UNITS) as state:
        state.pop("(loaded)", None)
    return 0


def _reset_failed() -> int:
    with store.opened(store.UNITS) as state:
        for unit in [name for name, entry in state.items() if entry.get("active") == "failed"]:
            state[unit]["active"] = "inactive"
    return 0


def _ask(verb: str, names: list[str], quiet: bool) -> int:
    """is-active: 0 when one is active, else 3; is-enabled: 0 when one is, else 1."""
    good = False
    for unit in names:
        if verb == "is-enabled":
            answer = enabled(unit)
            if not answer:
                if not quiet:
                    sys.stderr.write(f"Failed to get unit file state for {unit}: No such file or directory\n")
                continue
            good = good or answer in {"enabled", "static"}
        else:
            answer = active(unit)
            good = good or answer == ("failed" if verb == "is-failed" else "active")
        if not quiet:
            sys.stdout.write(f"{answer}\n")
    return 0 if good else 1 if verb != "is-active" else 3


def _properties(unit: str) -> dict[str, str]:
    state, path = active(unit), units.path(unit)
    entry = store.read(store.UNITS).get(unit, {})
    running = bool(entry.get("pid")) or unit in units.BUILT_IN
    sub = {"active": "waiting" if unit.endswith(".timer") else "running" if running else "exited"}
    found = {
        "Id": unit,
        "LoadState": "loaded" if _known(unit) else "not-found",
        "ActiveState": state,
        "SubState": sub.get(state, "dead" if state == "inactive" else state),
        "Result": "exit-code" if state == "failed" else "success",
        "UnitFileState": enabled(unit),
        "FragmentPath": path,
        "MainPID": str(entry.get("pid", 0) if unit.endswith(".service") else 0),
        "NeedDaemonReload": "no",
    }
    loaded = store.read(store.UNITS).get("(loaded)", {}).get(unit)
    if loaded is not None and loaded != units.text(unit):
        found["NeedDaemonReload"] = "yes"
    return found


def _show(names: list[str], properties: list[str], bare: bool) -> int:
    for unit in names or ["-.mount"]:
        for key, value in _properties(unit).items():
            if not properties or key in properties:
                sys.stdout.write(f"{value}\n" if bare else f"{key}={value}\n")
    return 0


def _cat(unit: str) -> int:
    if not units.path(unit):
        return _fail(f"No files found for {unit}.")
    return _print(f"# {units.path(unit)}\n{units.text(unit).rstrip()}")


def _status(unit: str) -> int:
    if not _known(unit):
        return _fail(f"Unit {unit} could not be found.", 4)
    facts = _properties(unit)
    loaded = f"loaded ({facts['FragmentPath'] or '/lib/systemd/system/' + unit}; {facts['UnitFileState']})"
    sys.stdout.write(
        f"* {unit}\n     Loaded: {loaded}\n     Active: {facts['ActiveState']} ({facts['SubState']})\n"
    )
    tail = store.slurp(f"{units.JOURNAL}/{unit}").splitlines()[-10:]
    sys.stdout.write("".join(["\n", *(f"{line}\n" for line in tail)]) if tail else "")
    return 0 if facts["ActiveState"] == "active" else 3


def _timers() -> dict[str, dict[str, Any]]:
    state = store.read(store.UNITS)
    return {unit: state[unit] for unit in state if unit.endswith(".timer") and active(unit) == "active"}


def _list_timers() -> int:
    rows = [("NEXT", "LEFT", "LAST", "PASSED", "UNIT", "ACTIVATES")]
    for unit, entry in sorted(_timers().items(), key=lambda item: item[1].get("due", 0)):
        due = time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(entry.get("due", 0)))
        left = f"{max(0, int(entry.get('due', 0) - time.time()))}s left"
        rows.append((due, left, "n/a", "n/a", unit, entry.get("unit", "")))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        sys.stdout.write(
            " ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        )
    sys.stdout.write(f"\n{len(rows) - 1} timers listed.\n")
    return 0


def _list_units() -> int:
    for unit in sorted({*units.BUILT_IN, *(name for name in store.read(store.UNITS) if "(" not in name)}):
        facts = _properties(unit)
        sys.stdout.write(f"{unit} {facts['LoadState']} {facts['ActiveState']} {facts['SubState']}\n")
    return 0


# --- logs ---


def _journalctl(words: list[str]) -> int:
    """Of one unit (`-u`), or of the kernel."""
    if "-k" in words or "--dmesg" in words:
        return _dmesg([])
    for index, word in enumerate(words):
        unit = words[index + 1] if word in {"-u", "--unit"} and index + 1 < len(words) else ""
        if word.startswith("--unit="):
            unit = word.partition("=")[2]
        if unit:
            text = store.slurp(f"{units.JOURNAL}/{units.full(unit)}")
            sys.stdout.write(text or "-- No entries --\n")
            return 0
    return _print("-- No entries --")


def _dmesg(words: list[str]) -> int:
    sys.stdout.write(store.slurp(store.KERNEL_LOG))
    return 0
