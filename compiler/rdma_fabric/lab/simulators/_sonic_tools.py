"""Unix tools and systemd on a simulated SONiC switch: what an administrator types between commands."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable

from rdma_fabric.lab.simulators import _sonic_json as js
from rdma_fabric.lab.simulators._sonic_click import Stop
from rdma_fabric.lab.simulators._sonic_config import config
from rdma_fabric.lab.simulators._sonic_db import redis_cli, sonic_cfggen, sonic_db_cli
from rdma_fabric.lab.simulators._sonic_run import Leave, Runner, WantsRoot
from rdma_fabric.lab.simulators._sonic_show import show
from rdma_fabric.lab.simulators._sonic_state import Timer

Tool = Callable[[Runner, list[str]], int]
_PRIVATE = ("/etc/shadow", "/root/")


def _flags(argv: list[str], known: str, tool: str) -> tuple[set[str], list[str]]:
    """Single-letter options and the other words; raises Stop on an unknown letter."""
    flags: set[str] = set()
    words: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return flags, words + rest
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        for letter in word.lstrip("-") if not word.startswith("--") else [word]:
            if letter not in known.split():
                text = f"unrecognized option '{word}'" if len(letter) > 1 else f"invalid option -- '{letter}'"
                raise Stop(1, f"{tool}: {text}\nTry '{tool} --help' for more information.\n")
            flags.add(letter)
    return flags, words


def _read(runner: Runner, tool: str, name: str) -> str | None:
    """The text of a file or of stdin; complains and returns None when it cannot be read."""
    if name == "-":
        return runner.stdin
    path = runner.path(name)
    data = b"" if path == "/dev/null" else runner.switch.files.get(path)
    if data is None:
        reason = "Is a directory" if runner.is_folder(path) else "No such file or directory"
        runner.complain(f"{tool}: {name}: {reason}")
        return None
    if not runner.root and path.startswith(_PRIVATE):
        runner.complain(f"{tool}: {name}: Permission denied")
        return None
    return data.decode(errors="surrogateescape")


def _inputs(runner: Runner, tool: str, names: list[str]) -> tuple[list[tuple[str, str]], int]:
    found = [(name, _read(runner, tool, name)) for name in names or ["-"]]
    return [(name, text) for name, text in found if text is not None], int(any(t is None for _, t in found))


def _cat(runner: Runner, argv: list[str]) -> int:
    _, names = _flags(argv, "", "cat")
    texts, status = _inputs(runner, "cat", names)
    for _, text in texts:
        runner.write(text)
    return status


def _ls(runner: Runner, argv: list[str]) -> int:
    flags, names = _flags(argv, "l a 1 d A h t r", "ls")
    status = 0
    for name in names or ["."]:
        path = runner.path(name)
        if path in runner.switch.files or ("d" in flags and runner.is_folder(path)):
            _entry(runner, flags, name, path)
        elif runner.is_folder(path):
            base = path.rstrip("/") + "/"
            inside = [*runner.switch.files, *runner.switch.folders]
            entries = {p[len(base) :].split("/")[0] for p in inside if p.startswith(base)}
            for entry in sorted(entries, key=js.natural):
                if not entry.startswith(".") or flags & {"a", "A"}:
                    _entry(runner, flags, entry, base + entry)
        else:
            runner.complain(f"ls: cannot access '{name}': No such file or directory")
            status = 2
    return status


def _entry(runner: Runner, flags: set[str], name: str, path: str) -> None:
    if "l" not in flags:
        runner.say(name)
        return
    size = len(runner.switch.files.get(path, b""))
    kind = "-rw-r--r--" if path in runner.switch.files else "drwxr-xr-x"
    owner = "root root" if path.startswith("/etc") else f"{runner.user} {runner.user}"
    runner.say(f"{kind} 1 {owner} {size:>8} Jan  1 00:00 {name}")


def _rm(runner: Runner, argv: list[str]) -> int:
    flags, names = _flags(argv, "f r R v", "rm")
    status = 0
    for name in names:
        path = runner.path(name)
        if path in runner.switch.files and runner.may_write(path):
            del runner.switch.files[path]
        elif path in runner.switch.files:
            runner.complain(f"rm: cannot remove '{name}': Permission denied")
            status = 1
        elif runner.is_folder(path) and not flags & {"r", "R"}:
            runner.complain(f"rm: cannot remove '{name}': Is a directory")
            status = 1
        elif runner.is_folder(path) and runner.may_write(path + "/"):
            _remove_folder(runner, path)
        elif "f" not in flags:
            runner.complain(f"rm: cannot remove '{name}': No such file or directory")
            status = 1
    return status


def _remove_folder(runner: Runner, path: str) -> None:
    base = path.rstrip("/") + "/"
    for name in [name for name in runner.switch.files if name.startswith(base)]:
        del runner.switch.files[name]
    for name in [name for name in runner.switch.folders if f"{name}/".startswith(base)]:
        runner.switch.folders.discard(name)


def _mkdir(runner: Runner, argv: list[str]) -> int:
    flags, names = _flags(argv, "p v", "mkdir")
    status = 0
    for name in names:
        path = runner.path(name)
        reason = ""
        if path in runner.switch.files or (runner.is_folder(path) and "p" not in flags):
            reason = "File exists"
        elif not runner.may_write(path):
            reason = "" if runner.is_folder(path) else "Permission denied"
        elif "p" not in flags and not runner.is_folder(path.rsplit("/", 1)[0] or "/"):
            reason = "No such file or directory"
        if reason:
            runner.complain(f"mkdir: cannot create directory '{name}': {reason}")
            status = 1
        else:
            runner.switch.folders.add(path)
    return status


def _rmdir(runner: Runner, argv: list[str]) -> int:
    _, names = _flags(argv, "", "rmdir")
    status = 0
    for name in names:
        path = runner.path(name)
        reason = "" if runner.is_folder(path) else "No such file or directory"
        if not reason and any(
            p.startswith(path + "/") for p in (*runner.switch.files, *runner.switch.folders)
        ):
            reason = "Directory not empty"
        if reason:
            runner.complain(f"rmdir: failed to remove '{name}': {reason}")
            status = 1
        runner.switch.folders.discard(path)
    return status


def _copy(tool: str, keep: bool) -> Tool:
    def run(runner: Runner, argv: list[str]) -> int:
        _, names = _flags(argv, "f p a", tool)
        if len(names) != 2:
            raise Stop(1, f"{tool}: missing file operand\nTry '{tool} --help' for more information.\n")
        source, target = runner.path(names[0]), runner.path(names[1])
        if source not in runner.switch.files:
            runner.complain(f"{tool}: cannot stat '{names[0]}': No such file or directory")
            return 1
        if runner.is_folder(target):
            target = f"{target.rstrip('/')}/{source.rsplit('/', 1)[-1]}"
        if not keep and not runner.may_write(source):
            runner.complain(f"{tool}: cannot move '{names[0]}' to '{names[1]}': Permission denied")
            return 1
        reason = runner.put(target, runner.switch.files[source])
        if reason:
            runner.complain(f"{tool}: cannot create regular file '{names[1]}': {reason}")
            return 1
        if not keep and target != source:
            del runner.switch.files[source]
        return 0

    return run


def _tee(runner: Runner, argv: list[str]) -> int:
    flags, names = _flags(argv, "a", "tee")
    status = 0
    for name in names:
        path = runner.path(name)
        old = runner.switch.files.get(path, b"") if "a" in flags else b""
        reason = runner.put(path, old + runner.stdin.encode(errors="surrogateescape"))
        if reason:
            runner.complain(f"tee: {name}: {reason}")
            status = 1
    runner.write(runner.stdin)
    return status


def _touch(runner: Runner, argv: list[str]) -> int:
    _, names = _flags(argv, "", "touch")
    status = 0
    for name in names:
        path = runner.path(name)
        reason = "" if runner.is_folder(path) else runner.put(path, runner.switch.files.get(path, b""))
        if reason:
            runner.complain(f"touch: cannot touch '{name}': {reason}")
            status = 1
    return status


def _chmod(runner: Runner, argv: list[str]) -> int:
    if len(argv) < 2 or not re.fullmatch(r"[0-7]{3,4}|[ugoa]*[+=-][rwxX]+", argv[0]):
        raise Stop(1, f"chmod: invalid mode: '{argv[0] if argv else ''}'\n")
    missing = [
        n
        for n in argv[1:]
        if not runner.is_folder(runner.path(n)) and runner.path(n) not in runner.switch.files
    ]
    for name in missing:
        runner.complain(f"chmod: cannot access '{name}': No such file or directory")
    return int(bool(missing))


def _echo(runner: Runner, argv: list[str]) -> int:
    words, end, escapes = list(argv), "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flag = words.pop(0)
        end = "" if "n" in flag else end
        escapes = escapes or "e" in flag
    text = " ".join(words)
    runner.write((_unescape(text) if escapes else text) + end)
    return 0


def _unescape(text: str) -> str:
    table = {"n": "\n", "t": "\t", "\\": "\\", "r": "\r", "0": "\0"}
    return re.sub(r"\\([nt\\r0])", lambda found: table[found[1]], text)


def _printf(runner: Runner, argv: list[str]) -> int:
    if not argv:
        raise Stop(2, "-bash: printf: usage: printf [-v var] format [arguments]\n")
    form, args = _unescape(argv[0]), list(argv[1:])
    count = len(re.findall(r"%[sd]", form))
    while True:
        runner.write(re.sub(r"%[sd]", lambda _: args.pop(0) if args else "", form).replace("%%", "%"))
        if not args or not count:
            return 0


def _base64(runner: Runner, argv: list[str]) -> int:
    words = [word for word in argv if word not in ("-w0", "-w", "0", "--wrap=0")]
    flags, names = _flags(words, "d i --decode", "base64")
    texts, status = _inputs(runner, "base64", names[:1])
    for _, text in texts:
        raw = text.encode(errors="surrogateescape")
        if not flags & {"d", "--decode"}:
            coded = base64.b64encode(raw).decode()
            wide = len(coded) if words != argv else 76
            runner.write("".join(coded[i : i + wide] + "\n" for i in range(0, len(coded), wide or 1)))
            continue
        try:
            runner.write(
                base64.b64decode(b"".join(raw.split()), validate=True).decode(errors="surrogateescape")
            )
        except binascii.Error:
            runner.complain("base64: invalid input")
            status = 1
    return status


def _digest(tool: str, name: str) -> Tool:
    def run(runner: Runner, argv: list[str]) -> int:
        texts, status = _inputs(runner, tool, argv)
        for file, text in texts:
            runner.say(f"{hashlib.new(name, text.encode(errors='surrogateescape')).hexdigest()}  {file}")
        return status

    return run


def _grep(runner: Runner, argv: list[str]) -> int:
    flags, words = _flags(argv, "i v c q E F o n w", "grep")
    if not words:
        raise Stop(2, "Usage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n")
    pattern = re.escape(words[0]) if "F" in flags else words[0]
    if not flags & {"E", "F"}:  # basic expressions: the escaped operators are the active ones
        pattern = re.sub(r"\\([|+?(){}])|([|+?(){}])", lambda m: m[1] or "\\" + m[2], pattern)
    found = re.compile(
        rf"\b(?:{pattern})\b" if "w" in flags else pattern, re.IGNORECASE if "i" in flags else 0
    )
    texts, status = _inputs(runner, "grep", words[1:])
    count = 0
    for file, text in texts:
        for number, line in enumerate(text.splitlines(), 1):
            hit = found.search(line)
            if bool(hit) == ("v" in flags):
                continue
            count += 1
            if not flags & {"q", "c"}:
                shown = hit[0] if hit and "o" in flags else line
                prefix = f"{file}:" if len(words) > 2 else ""
                runner.say(f"{prefix}{f'{number}:' * ('n' in flags)}{shown}")
    if "c" in flags:
        runner.say(str(count))
    return 2 if status else int(count == 0)


def _head(tool: str) -> Tool:
    def run(runner: Runner, argv: list[str]) -> int:
        count, words = 10, list(argv)
        for place, word in enumerate(words):
            found = re.fullmatch(r"-n?(\d+)", word)
            if found or (word == "-n" and words[place + 1 : place + 2]):
                count = int(found[1]) if found else int(words[place + 1])
                del words[place : place + (1 if found else 2)]
                break
        texts, status = _inputs(runner, tool, words)
        for _, text in texts:
            lines = text.splitlines(keepends=True)
            runner.write(
                "".join(lines[:count] if tool == "head" else lines[len(lines) - min(count, len(lines)) :])
            )
        return status

    return run


def _wc(runner: Runner, argv: list[str]) -> int:
    flags, names = _flags(argv, "l c w", "wc")
    texts, status = _inputs(runner, "wc", names)
    for name, text in texts:
        counts = {
            "l": text.count("\n"),
            "w": len(text.split()),
            "c": len(text.encode(errors="surrogateescape")),
        }
        shown = " ".join(str(counts[flag]) for flag in "lwc" if not flags or flag in flags)
        runner.say(f"{shown} {name}" if names else shown)
    return status


def _test(runner: Runner, argv: list[str]) -> int:
    words = argv[1:] if argv[:1] == ["!"] else argv
    return int(_holds(runner, words) == (words is not argv))


def _holds(runner: Runner, words: list[str]) -> bool:
    if len(words) == 2 and words[0].startswith("-"):
        path = runner.path(words[1])
        data = runner.switch.files.get(path)
        tests = {
            "-e": data is not None or runner.is_folder(path),
            "-f": data is not None,
            "-r": data is not None or runner.is_folder(path),
            "-w": runner.may_write(path),
            "-d": data is None and runner.is_folder(path),
            "-s": bool(data),
            "-n": words[1] != "",
            "-z": words[1] == "",
        }
        if words[0] in tests:
            return tests[words[0]]
    if len(words) == 3:
        left, operator, right = words
        if operator in ("=", "==", "!="):
            return (left == right) == (operator != "!=")
        numbers = {"-eq": (0,), "-ne": (-1, 1), "-lt": (-1,), "-le": (-1, 0), "-gt": (1,), "-ge": (0, 1)}
        if operator in numbers:
            if not re.fullmatch(r"-?\d+", left) or not re.fullmatch(r"-?\d+", right):
                raise Stop(2, f"-bash: test: {left}: integer expression expected\n")
            return (int(left) > int(right)) - (int(left) < int(right)) in numbers[operator]
    if len(words) == 1:
        return words[0] != ""
    if not words:
        return False
    raise Stop(2, f"-bash: test: {words[0]}: unary operator expected\n")


def _bracket(runner: Runner, argv: list[str]) -> int:
    if argv[-1:] != ["]"]:
        raise Stop(2, "-bash: [: missing `]'\n")
    return _test(runner, argv[:-1])


def _id(runner: Runner, argv: list[str]) -> int:
    names = {"root": 0, "admin": 1000}
    number = 0 if runner.root else names.get(runner.user, 1001)
    name = "root" if runner.root else runner.user
    answers = {"-u": str(number), "-un": name, "-g": str(number), "-gn": name}
    if argv and argv[0] not in answers:
        raise Stop(1, f"id: '{argv[0]}': no such user\n")
    groups = f"{number}({name})" + ("" if runner.root else ",27(sudo),999(docker),1001(redis)")
    runner.say(answers[argv[0]] if argv else f"uid={number}({name}) gid={number}({name}) groups={groups}")
    return 0


def _uname(runner: Runner, argv: list[str]) -> int:
    kernel = "5.10.0-23-2-amd64" if runner.switch.branch < 202405 else "6.1.0-29-2-amd64"
    answers = {
        "": "Linux",
        "-s": "Linux",
        "-n": runner.switch.hostname,
        "-r": kernel,
        "-m": "x86_64",
        "-a": f"Linux {runner.switch.hostname} {kernel} #1 SMP PREEMPT_DYNAMIC Debian x86_64 GNU/Linux",
    }
    if " ".join(argv) not in answers:
        raise Stop(1, f"uname: extra operand '{argv[-1]}'\nTry 'uname --help' for more information.\n")
    runner.say(answers[" ".join(argv)])
    return 0


def _hostname(runner: Runner, argv: list[str]) -> int:
    if argv:
        raise Stop(1, "hostname: you must be root to change the host name\n")
    runner.say(runner.switch.hostname)
    return 0


def _cd(runner: Runner, argv: list[str]) -> int:
    path = runner.path(argv[0]) if argv else runner.home
    if path in runner.switch.files or not runner.is_folder(path):
        reason = "Not a directory" if path in runner.switch.files else "No such file or directory"
        runner.complain(f"{runner.name}: cd: {argv[0]}: {reason}")
        return 1
    runner.cwd = path
    return 0


def _pwd(runner: Runner, argv: list[str]) -> int:
    runner.say(runner.cwd)
    return 0


def _export(runner: Runner, argv: list[str]) -> int:
    for word in argv:
        name, equals, value = word.partition("=")
        if equals:
            runner.variables[name] = value
    return 0


def _exit(runner: Runner, argv: list[str]) -> int:
    runner.status = int(argv[0]) & 255 if argv and argv[0].isdigit() else runner.status
    raise Leave


def _bash(runner: Runner, argv: list[str]) -> int:
    if len(argv) >= 2 and argv[0] in ("-c", "-lc"):
        return runner.child(argv[1], runner.root)
    if argv[:1] == ["-s"] or not argv:
        return runner.child(runner.stdin, runner.root)
    text = _read(runner, "bash", argv[0])
    return 127 if text is None else runner.child(text, runner.root)


def _sudo(runner: Runner, argv: list[str]) -> int:
    """sudo without a password, for the user admin (and root) only."""
    words = list(argv)
    shell = False
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        if flag in ("-s", "-i"):
            shell = True
        elif flag == "-u" and words[:1] == ["root"]:
            words.pop(0)
        elif flag == "--":
            break
        elif flag not in ("-n", "-E", "-H", "-S", "-k", "-v"):
            raise Stop(1, f"sudo: invalid option -- '{flag.lstrip('-')}'\nusage: sudo -h | -K | -k | -V\n")
    if runner.user not in ("admin", "root") and not runner.root:
        raise Stop(1, f"{runner.user} is not in the sudoers file.\n")
    if not words:
        if shell and runner.terminal and not runner.stdin:
            raise WantsRoot
        return runner.child(runner.stdin, True) if shell else 0
    if words[0] == "cd":
        raise Stop(1, "sudo: cd: command not found\n")
    kept = (runner.root, runner.user, runner.name)
    runner.root, runner.user, runner.name = True, "root", "sudo"
    try:
        if words[0] not in runner.tools:
            name = words[0].rsplit("/", 1)[-1]
            if not words[0].startswith("/") or name not in runner.tools:
                raise Stop(1, f"sudo: {words[0]}: command not found\n")
        return runner.call(words)
    finally:
        runner.root, runner.user, runner.name = kept


def _timeout(runner: Runner, argv: list[str]) -> int:
    if len(argv) < 2 or not re.fullmatch(r"\d+[smh]?", argv[0]):
        raise Stop(125, "Try 'timeout --help' for more information.\n")
    return runner.call(argv[1:])


def _prefix(runner: Runner, argv: list[str]) -> int:
    return runner.call(argv) if argv else 0


def _command(runner: Runner, argv: list[str]) -> int:
    if argv[:1] == ["-v"]:
        known = [word for word in argv[1:] if word in runner.tools]
        for word in known:
            runner.say(f"/usr/bin/{word}")
        return int(len(known) != len(argv) - 1)
    return runner.call(argv) if argv else 0


def _which(runner: Runner, argv: list[str]) -> int:
    return _command(runner, ["-v", *argv])


def _sleep(runner: Runner, argv: list[str]) -> int:
    if not argv or not all(re.fullmatch(r"\d+(\.\d+)?[smhd]?", word) for word in argv):
        raise Stop(1, f"sleep: invalid time interval '{argv[0] if argv else ''}'\n")
    return 0


def _uptime(runner: Runner, argv: list[str]) -> int:
    runner.say(
        f" 00:00:00 up {int(runner.switch.clock() // 60)} min,  1 user,  load average: 0.00, 0.00, 0.00"
    )
    return 0


def _logger(runner: Runner, argv: list[str]) -> int:
    words = argv[2:] if argv[:1] == ["-t"] else argv
    tag = argv[1] if argv[:1] == ["-t"] else runner.user
    runner.switch.log("NOTICE", tag, " ".join(words) or runner.stdin.rstrip("\n"))
    return 0


# --- systemd ------------------------------------------------------------------------------------

_SPAN = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hr": 3600.0}


def _seconds(text: str) -> float | None:
    """Seconds of a systemd time span: 300, 300s, 5min, 1h 30m."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    if not parts or re.sub(r"(\d+(?:\.\d+)?)\s*([a-z]*)\s*", "", text):
        return None
    try:
        return sum(float(number) * _SPAN[unit or "s"] for number, unit in parts)
    except KeyError:
        return None


def _systemd_run(runner: Runner, argv: list[str]) -> int:
    words, options = list(argv), {"collect": "", "quiet": ""}
    takes = ("--unit", "-u", "--on-active", "--description", "-p", "--property", "--timer-property", "-E")
    while words and words[0].startswith("-"):
        name, equals, value = words.pop(0).partition("=")
        if name == "--":
            break
        if name in ("--collect", "-G", "--quiet", "-q", "--no-ask-password", "--no-block"):
            options["collect" if name in ("--collect", "-G") else "quiet"] += "yes" * ("block" not in name)
        elif name in takes:
            if not equals and not words:
                raise Stop(1, f"systemd-run: option requires an argument -- '{name.lstrip('-')}'\n")
            options[{"-u": "--unit"}.get(name, name)] = value if equals else words.pop(0)
        else:
            raise Stop(1, f"systemd-run: unrecognized option '{name}'\n")
    if not words:
        raise Stop(1, "Command line to execute required.\n")
    if words[0].rsplit("/", 1)[-1] not in runner.tools:
        raise Stop(1, f"Failed to find executable {words[0]}: No such file or directory\n")
    if not runner.root:
        kind = "timer" if "--on-active" in options else "service"
        raise Stop(1, f"Failed to start transient {kind} unit: Interactive authentication required.\n")
    return _start_unit(runner, options, words)


def _start_unit(runner: Runner, options: dict[str, str], words: list[str]) -> int:
    switch = runner.switch
    unit = options.get("--unit") or f"run-r{len(switch.timers) + len(switch.failed_units):032x}"
    unit = re.sub(r"\.(timer|service)$", "", unit)
    if "--on-active" not in options:
        runner.complain(f"Running as unit: {unit}.service")
        fire(runner, Timer(unit, 0.0, tuple(words), bool(options["collect"])))
        return 0
    span = _seconds(options["--on-active"])
    if span is None:
        raise Stop(1, f"Failed to parse timer value: {options['--on-active']}\n")
    if any(timer.unit == unit for timer in switch.timers) or unit in switch.failed_units:
        kind = "service" if unit in switch.failed_units else "timer"
        text = f"Unit {unit}.{kind} was already loaded or has a fragment file."
        raise Stop(1, f"Failed to start transient timer unit: {text}\n")
    switch.timers.append(Timer(unit, switch.clock() + span, tuple(words), bool(options["collect"])))
    if not options["quiet"]:
        runner.complain(f"Running timer as unit: {unit}.timer")
        runner.complain(f"Will run service as unit: {unit}.service")
    return 0


def fire(runner: Runner, timer: Timer) -> None:
    """Run a timer's service as root; a failed one stays loaded unless it is collected."""
    service = Runner(runner.switch, "root", root=True, cwd="/", tools=runner.tools, name="systemd")
    try:
        status = service.call(list(timer.argv))
    except Leave:
        status = service.status
    runner.switch.log("INFO", "systemd[1]", f"{timer.unit}.service: {'Failed' if status else 'Deactivated'}")
    if status and not timer.collect:
        runner.switch.failed_units.append(timer.unit)


def _systemctl(runner: Runner, argv: list[str]) -> int:
    options = ("--all", "-a", "--no-pager", "--no-legend", "-q", "--quiet")
    words = [word for word in argv if word not in options]
    quiet = bool({"-q", "--quiet"} & set(argv))
    verb, units = (words[0], words[1:]) if words else ("list-units", [])
    handler = _VERBS.get(verb)
    if handler is None:
        raise Stop(1, f"Unknown command verb {verb}.\n")
    return handler(runner, units, quiet)


def _unit_state(runner: Runner, unit: str) -> str:
    name, _, kind = unit.rpartition(".") if unit.endswith((".timer", ".service")) else (unit, ".", "service")
    if kind == "timer" and any(timer.unit == name for timer in runner.switch.timers):
        return "active"
    if kind == "service" and name in runner.switch.failed_units:
        return "failed"
    features = runner.switch.running.get("FEATURE", {})
    if kind == "service" and (
        name in ("swss", "syncd", "bgp", "lldp", "database", "ssh") or name in features
    ):
        return "active"
    return "inactive"


def _is_active(runner: Runner, units: list[str], quiet: bool) -> int:
    states = [_unit_state(runner, unit) for unit in units]
    if not quiet:
        for state in states:
            runner.say(state)
    return 0 if "active" in states else 3


def _is_failed(runner: Runner, units: list[str], quiet: bool) -> int:
    states = [_unit_state(runner, unit) for unit in units]
    if not quiet:
        for state in states:
            runner.say(state)
    return 0 if "failed" in states else 1


def _stop_unit(runner: Runner, units: list[str], quiet: bool) -> int:
    status = 0
    for unit in units:
        if not runner.root:
            raise Stop(1, f"Failed to stop {unit}: Interactive authentication required.\n")
        before = len(runner.switch.timers)
        name = unit.removesuffix(".timer")
        if unit.endswith(".timer"):
            runner.switch.timers[:] = [timer for timer in runner.switch.timers if timer.unit != name]
        if len(runner.switch.timers) == before and _unit_state(runner, unit) == "inactive":
            runner.complain(f"Failed to stop {unit}: Unit {unit} not loaded.")
            status = 5
    return status


def _reset_failed(runner: Runner, units: list[str], quiet: bool) -> int:
    status = 0
    for unit in units or [f"{name}.service" for name in runner.switch.failed_units]:
        name = unit.removesuffix(".service")
        if name in runner.switch.failed_units:
            runner.switch.failed_units.remove(name)
        elif not any(timer.unit == unit.removesuffix(".timer") for timer in runner.switch.timers):
            runner.complain(f"Failed to reset failed state of unit {unit}: Unit {unit} not loaded.")
            status = 1
    return status


def _list_timers(runner: Runner, units: list[str], quiet: bool) -> int:
    shown = [t for t in runner.switch.timers if not units or f"{t.unit}.timer" in units or t.unit in units]
    runner.say("NEXT                        LEFT          LAST PASSED UNIT               ACTIVATES")
    for timer in shown:
        left = max(int(timer.due - runner.switch.clock()), 0)
        runner.say(
            f"Thu 1970-01-01 00:00:00 UTC {left}s left".ljust(42)
            + f"n/a  n/a    {timer.unit}.timer {timer.unit}.service"
        )
    runner.say(f"\n{len(shown)} timers listed.")
    return 0


def _unit_status(runner: Runner, units: list[str], quiet: bool) -> int:
    for unit in units:
        state = _unit_state(runner, unit)
        loaded = state != "inactive"
        if not loaded:
            runner.complain(f"Unit {unit} could not be found.")
            return 4
        runner.say(
            f"● {unit}\n     Loaded: loaded (/run/systemd/transient/{unit}; transient)\n     Active: {state}"
        )
        if state == "failed":
            return 3
    return 0


_VERBS: dict[str, Callable[[Runner, list[str], bool], int]] = {
    "is-active": _is_active,
    "is-failed": _is_failed,
    "stop": _stop_unit,
    "reset-failed": _reset_failed,
    "list-timers": _list_timers,
    "status": _unit_status,
}


def _config(runner: Runner, argv: list[str]) -> int:
    return config(runner, argv)


def _show(runner: Runner, argv: list[str]) -> int:
    return show(runner, argv)


TOOLS: dict[str, Tool] = {
    "[": _bracket,
    "base64": _base64,
    "bash": _bash,
    "cat": _cat,
    "cd": _cd,
    "chmod": _chmod,
    "command": _command,
    "config": _config,
    "cp": _copy("cp", keep=True),
    "echo": _echo,
    "exit": _exit,
    "export": _export,
    "false": lambda runner, argv: 1,
    "grep": _grep,
    "head": _head("head"),
    "hostname": _hostname,
    "id": _id,
    "logger": _logger,
    "logout": _exit,
    "ls": _ls,
    "md5sum": _digest("md5sum", "md5"),
    "mkdir": _mkdir,
    "mv": _copy("mv", keep=False),
    "nohup": _prefix,
    "printf": _printf,
    "pwd": _pwd,
    "redis-cli": redis_cli,
    "rm": _rm,
    "rmdir": _rmdir,
    "sh": _bash,
    "sha256sum": _digest("sha256sum", "sha256"),
    "show": _show,
    "sleep": _sleep,
    "sonic-cfggen": sonic_cfggen,
    "sonic-db-cli": sonic_db_cli,
    "sudo": _sudo,
    "systemctl": _systemctl,
    "systemd-run": _systemd_run,
    "tail": _head("tail"),
    "tee": _tee,
    "test": _test,
    "timeout": _timeout,
    "touch": _touch,
    "true": lambda runner, argv: 0,
    "uname": _uname,
    "uptime": _uptime,
    "wc": _wc,
    "which": _which,
    "whoami": lambda runner, argv: _id(runner, ["-un"]),
}
"""Programs and shell builtins of the switch."""
