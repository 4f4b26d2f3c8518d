"""Simulated NVIDIA Cumulus Linux 5.x switch: a small bash with `nv` (NVUE).

Written from NVIDIA's documentation (Cumulus Linux 5.6-5.16 pages, NVUE reference) and public
transcripts only. Where no source says what a real switch does, the stricter reading is taken:
`roce mode` alone does not switch RoCE on from 5.15, unset classes of the default scheduler keep
their 12 and 13 percent, PFC without a lossless pool is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _cumulus_config as trees
from . import _cumulus_counters as counters
from . import _cumulus_qos as qos
from ._contract import Device, Passage, Reply, Result, Session
from ._cumulus_config import Tree
from ._cumulus_nv import INITIAL_FILE, Nv
from ._cumulus_revisions import Revisions
from ._cumulus_schema import Refused, Resolver, Version, version_of
from ._cumulus_shell import (
    Files,
    Item,
    Outcome,
    Simple,
    SyntaxProblem,
    expand,
    grep,
    heredoc,
    parse,
)

_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l\r"
# A made-up hash of no password, in the form that NVUE stores.
_HASH = "$6$lab$" + "x" * 86
_STARTUP = "/etc/nvue.d/startup.yaml"


@dataclass
class Cumulus(Device):
    """One switch; `events` tells what applies did to traffic, for tests."""

    events: list[dict[str, Any]] = field(default_factory=list)
    version: Version = (5, 14)
    revisions: Revisions = field(init=False)
    booted: float = 0.0

    def __post_init__(self) -> None:
        self.version = version_of(self.facts.version)
        self.booted = self.clock()
        self.revisions = Revisions(self._first_tree(), self.version, self.clock())
        release = self.release()
        for path, text in (
            ("/etc/lsb-release", f'DISTRIB_ID="Cumulus Linux"\nDISTRIB_RELEASE={release}\n'),
            (
                "/etc/os-release",
                f'NAME="Cumulus Linux"\nVERSION_ID={release}\n'
                f'VERSION="Cumulus Linux {release}"\nID=cumulus-linux\n',
            ),
            (INITIAL_FILE, trees.yaml_operations([("set", self._factory())]) + "\n"),
        ):
            self.files.setdefault(path, text.encode())
        self.write_startup()
        self._write_hostname()

    def _factory(self) -> Tree:
        """NVUE CLI page, "Default Startup File": hostname, the `cumulus` account, the management port."""
        user = {"hashed-password": _HASH, "role": "system-admin"}
        management: Tree = {"type": "eth"}
        if self.version >= (5, 15):
            management |= {"ipv4": {"dhcp-client": {"state": "enabled"}}, "vrf": "mgmt"}
        else:
            management |= {"ip": {"address": {"dhcp": {}}, "vrf": "mgmt"}}
        return {
            "interface": {"eth0": management},
            "system": {"aaa": {"user": {"cumulus": user}}, "hostname": "cumulus"},
        }

    def _first_tree(self) -> Tree:
        tree = self._factory()
        tree["system"]["hostname"] = self.facts.name
        for port in self.facts.ports:
            tree["interface"][port.name] = {"type": "swp"}
        for line in self.facts.seed:
            self._seed(tree, line)
        return tree

    def _seed(self, tree: Tree, line: str) -> None:
        words = shlex.split(line, comments=True)
        if not words:
            return
        if words[:2] != ["nv", "set"]:
            raise ValueError(f"{self.facts.name}: seed line is no `nv set` command: {line}")
        try:
            target = Resolver(self.version, "set").resolve(words[2:])
        except Refused as refused:
            raise ValueError(f"{self.facts.name}: seed line: {line}: {refused}") from refused
        trees.run_command(tree, "set", target, self.version)

    # --- Used by the nv command -------------------------------------------------------------------

    def release(self) -> str:
        """The full release, `5.14` counts as `5.14.0`."""
        text = self.facts.version or "5.14"
        return text if text.count(".") >= 2 else f"{text}.0"

    def header(self) -> Tree:
        """The header of printed configurations."""
        return {
            "model": self.facts.model or "VX",
            "nvue-api-version": "nvue_v1",
            "rev-id": 1.0,
            "version": f"Cumulus Linux {self.release()}",
        }

    def hidden(self, tree: Tree) -> Tree:
        """What is printed of a tree: later releases show `*` in place of password hashes."""
        found = trees.hidden(tree) if self.version >= (5, 14) else tree
        return dict(found)

    def uptime(self) -> float:
        """Seconds since the last boot."""
        return self.clock() - self.booted

    def make_live(self, name: str, user: str, message: str, seconds: float | None) -> None:
        """Apply a revision; disturbance goes to `events`."""
        old = self.revisions.applied
        self.revisions.commit(name, user, message, seconds, self.clock())
        self._changed(old, self.revisions.applied, f"apply {name}")
        if seconds is None and self.revisions.auto_save():
            self.write_startup()

    def _changed(self, old: Tree, new: Tree, cause: str) -> None:
        for event in qos.disturbances(old, new, self.version):
            self._event(event, cause)
        users = [trees.branch(tree, "system", "aaa", "user") for tree in (old, new)]
        for name in sorted(set(users[0]) - set(users[1])):
            self._event("account-deleted", name)
        self._write_hostname()

    def _event(self, name: str, cause: str) -> None:
        self.events.append({"at": self.clock(), "event": name, "cause": cause})

    def _write_hostname(self) -> None:
        self.files["/etc/hostname"] = f"{self.hostname()}\n".encode()

    def hostname(self) -> str:
        """The applied host name."""
        return str(trees.at(self.revisions.applied, "system", "hostname") or "cumulus")

    def confirm(self) -> str:
        """Keep the apply that waits."""
        name = self.revisions.confirm()
        if self.revisions.auto_save():
            self.write_startup()
        return name

    def fall_back(self, why: str) -> tuple[str, str]:
        """Undo the apply that waits."""
        old = self.revisions.applied
        names = self.revisions.fall_back()
        self._event("rolled-back", why)
        self._changed(old, self.revisions.applied, f"rollback {names[0]}")
        return names

    def confirm_status(self) -> str:
        """Time left before the automatic rollback."""
        waiting = self.revisions.waiting
        if waiting is None:
            return "No apply is waiting for confirmation"
        left = max(0, int(waiting.deadline - self.clock()))
        return f"Time left before rollback of revision {waiting.revision}: {left // 60}m {left % 60}s"

    def write_startup(self) -> None:
        """The startup file, real hashes included."""
        parts = [("header", self.header()), ("set", trees.sorted_tree(trees.grouped(self.revisions.startup)))]
        self.files[_STARTUP] = (trees.yaml_operations(parts) + "\n").encode()

    # --- The contract -----------------------------------------------------------------------------

    def open(self, user: str) -> Session:
        """A new interactive session."""
        return CumulusSession(self, user)

    def execute(self, user: str, command: str) -> Result:
        """One command on an exec channel."""
        self.tick()
        shell = Shell(self, user, interactive=False)
        stdout = stderr = ""
        status = 0
        lines = command.split("\n")
        while lines:
            line = lines.pop(0)
            word = heredoc(line)
            body: list[str] = []
            while word and lines and lines[0] != word:
                body.append(lines.pop(0))
            if word and lines:
                lines.pop(0)
            outcome = shell.line(line, "".join(f"{text}\n" for text in body) if word else None)
            stdout += outcome.stdout
            stderr += outcome.stderr
            status = outcome.status
            if outcome.close:
                break
        return Result(stdout, stderr, status)

    def tick(self) -> None:
        """Let the commit timer fire."""
        waiting = self.revisions.waiting
        if waiting is not None and self.clock() >= waiting.deadline:
            self.fall_back("not confirmed in time")

    def passage(self, port: str) -> Passage:
        """The MTU of the link counts in both directions; a port of a bridge does not answer."""
        tree = trees.branch(self.revisions.applied, "interface", port)
        fact = next((fact for fact in self.facts.ports if fact.name == port), None)
        up = fact is not None and fact.up and "down" not in trees.branch(tree, "link", "state")
        mtu = int(str(trees.at(tree, "link", "mtu") or 9216))
        addresses = {**trees.branch(tree, "ip", "address"), **trees.branch(tree, "ipv4", "address")}
        address = next((text.partition("/")[0] for text in addresses if "." in text), "")
        return Passage(up, mtu, mtu, "bridge" not in tree, address)

    def reboot(self) -> None:
        """Come up with the startup configuration."""
        self.revisions.reboot()
        self.booted = self.clock()
        self._event("reboot", "")
        self._write_hostname()

    def refusal(self, line: str) -> str:
        """NVUE's or bash's text for a line that is not accepted."""
        words = line.split()
        if words[:1] == ["sudo"]:
            words = words[1:]
        if words[:1] == ["nv"]:
            return f"Error: Invalid Command: {' '.join(words[1:])}"
        return f"-bash: {words[0] if words else line}: command not found"

    def commits(self, line: str) -> bool:
        """True for `nv config apply` in any form but the answers to the timer."""
        return any(
            re.match(r"\s*(sudo\s+)?nv\s+config\s+apply\b", part)
            and not re.search(r"--confirm-(yes|no|status)", part)
            for part in re.split(r"&&|\|\||;", line)
        )

    def somebody(self, lines: tuple[str, ...]) -> str:
        """Another administrator types these lines in a shell."""
        session = self.open("cumulus-admin")
        output = "".join(session.run(line).text for line in lines)
        session.closed()
        return output.replace(_PASTE_OFF, "")

    def running(self) -> str:
        """The whole applied configuration with real hashes."""
        parts = [("header", self.header()), ("set", trees.sorted_tree(trees.grouped(self.revisions.applied)))]
        return trees.yaml_operations(parts) + "\n"

    def dump(self) -> dict[str, Any]:
        """All state as JSON data; files as text (latin-1 keeps every byte)."""
        return {
            "revisions": self.revisions.dump(),
            "events": [dict(event) for event in self.events],
            "booted": self.booted,
            "files": {path: data.decode("latin-1") for path, data in self.files.items()},
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take back what `dump` gave."""
        self.revisions.restore(data["revisions"])
        self.events = [dict(event) for event in data["events"]]
        self.booted = float(data["booted"])
        self.files.clear()
        self.files.update({path: text.encode("latin-1") for path, text in data["files"].items()})


class Shell:
    """Runs lines for one login; knows the last status and whether it is root."""

    def __init__(self, device: Cumulus, user: str, interactive: bool) -> None:
        self.device = device
        self.user = user
        self.interactive = interactive
        self.root = user == "root"
        self.status = 0
        self._rest: list[Item] = []

    def line(self, text: str, document: str | None = None) -> Outcome:
        """Run a line; `document` is its here-document."""
        try:
            items = parse(text)
        except SyntaxProblem as problem:
            self.status = 2
            return Outcome("", f"{problem}\n", 2)
        return self._run(items, document)

    def resume(self, outcome: Outcome, answer: str) -> Outcome:
        """Answer the question of an outcome and go on with the rest of its line."""
        if outcome.resume is None:
            raise ValueError("nothing was asked")
        first = outcome.resume(answer)
        self.status = first.status
        rest = self._run(self._rest, None)
        return Outcome(first.stdout + rest.stdout, first.stderr + rest.stderr, self.status, close=rest.close)

    def _run(self, items: list[Item], document: str | None) -> Outcome:
        stdout = stderr = ""
        for position, item in enumerate(items):
            if (item.before == "&&" and self.status) or (item.before == "||" and not self.status):
                continue
            outcome = self._pipeline(item.pipeline, document)
            self.status = outcome.status
            stdout += outcome.stdout
            stderr += outcome.stderr
            if outcome.question:
                self._rest = items[position + 1 :]
                return Outcome(stdout, stderr, 0, outcome.question, outcome.resume)
            if outcome.close:
                return Outcome(stdout, stderr, self.status, close=True)
        return Outcome(stdout, stderr, self.status)

    def _pipeline(self, pipeline: list[Simple], document: str | None) -> Outcome:
        stdin, stderr = document or "", ""
        outcome = Outcome()
        for position, command in enumerate(pipeline):
            outcome = self._simple(command, stdin, lone=len(pipeline) == 1)
            stdin = outcome.stdout
            stderr += outcome.stderr
            if outcome.question and position < len(pipeline) - 1:
                outcome = Outcome(outcome.stdout, outcome.stderr, 1)
        return Outcome(
            outcome.stdout, stderr, outcome.status, outcome.question, outcome.resume, outcome.close
        )

    def _variables(self) -> dict[str, str]:
        user = "root" if self.root else self.user
        return {
            "?": str(self.status),
            "USER": user,
            "HOME": "/root" if self.root else f"/home/{self.user}",
            "HOSTNAME": self.device.hostname(),
        }

    def _simple(self, command: Simple, stdin: str, lone: bool) -> Outcome:
        variables = self._variables()
        words = [expand(word, variables) for word in command.words]
        root, self.root = self.root, self.root
        files = Files(self.device.files, self.user, self.root)
        try:
            for operator, target in command.redirects:
                if operator == "<":
                    stdin = files.read(expand(target, variables))
        except OSError as error:
            return Outcome("", f"-bash: {target}: {error}\n", 1)
        outcome = self._words(words, stdin, files, lone)
        if words[:1] not in (["sudo"], ["exit"]):
            self.root = root
        return self._redirected(command, outcome, files, variables)

    def _redirected(
        self, command: Simple, outcome: Outcome, files: Files, variables: dict[str, str]
    ) -> Outcome:
        stdout, stderr = outcome.stdout, outcome.stderr
        for operator, target in command.redirects:
            name = expand(target, variables)
            try:
                if operator == "2>&1":
                    stdout, stderr = stdout + stderr, ""
                elif operator in ("2>", "2>>"):
                    files.write(name, stderr, operator == "2>>")
                    stderr = ""
                elif operator in (">", ">>", "1>", "1>>"):
                    files.write(name, stdout, operator.endswith(">>"))
                    stdout = ""
                elif operator in ("&>", "&>>"):
                    files.write(name, stdout + stderr, operator.endswith(">>"))
                    stdout = stderr = ""
            except OSError as error:
                return Outcome("", f"-bash: {name}: {error}\n", 1)
        return Outcome(stdout, stderr, outcome.status, outcome.question, outcome.resume, outcome.close)

    def _words(self, words: list[str], stdin: str, files: Files, lone: bool) -> Outcome:
        if not words:
            return Outcome()
        name, rest = words[0], words[1:]
        if name in ("nv", "/usr/bin/nv"):
            user = "root" if self.root and self.user == "root" else self.user
            return Nv(self.device, user, self.interactive and lone).run(rest)
        if name == "sudo":
            return self._sudo(rest, stdin, lone)
        if name in ("exit", "logout"):
            return self._exit(rest)
        simple = {
            "cat": lambda: files.cat(rest, stdin),
            "ls": lambda: files.ls(rest),
            "tee": lambda: files.tee(rest, stdin),
            "rm": lambda: files.rm(rest),
            "grep": lambda: grep(rest, stdin),
            "echo": lambda: Outcome(_echo(rest)),
            "true": Outcome,
            ":": Outcome,
            "false": lambda: Outcome(status=1),
            "hostname": lambda: Outcome(self.device.hostname() + "\n"),
            "whoami": lambda: Outcome(self._variables()["USER"] + "\n"),
            "pwd": lambda: Outcome(files.home + "\n"),
            "id": lambda: Outcome(self._identity(rest)),
            "stty": Outcome,
            "ethtool": lambda: self._ethtool(rest),
            "reboot": self._reboot,
        }
        if name in simple:
            return simple[name]()
        return Outcome("", f"-bash: {name}: command not found\n", 127)

    def _sudo(self, rest: list[str], stdin: str, lone: bool) -> Outcome:
        while rest and rest[0] in ("-n", "-E", "-H", "--"):
            rest = rest[1:]
        if not rest:
            return Outcome("", "usage: sudo -h | -K | -k | -V\n", 1)
        if rest[0] in ("-s", "-i", "su") and not [word for word in rest[1:] if word not in ("-", "root")]:
            self.root = True
            return Outcome()
        was, self.root = self.root, True
        try:
            return self._words(rest, stdin, Files(self.device.files, self.user, True), lone)
        finally:
            self.root = was

    def _exit(self, rest: list[str]) -> Outcome:
        if self.root and self.user != "root" and self.interactive:
            self.root = False
            return Outcome("exit\n")
        status = int(rest[0]) if rest and rest[0].isdigit() else self.status
        return Outcome("logout\n" if self.interactive else "", status=status, close=True)

    def _identity(self, rest: list[str]) -> str:
        if rest == ["-u"]:
            return "0\n" if self.root else "1000\n"
        if rest in (["-un"], ["-nu"]):
            return self._variables()["USER"] + "\n"
        if self.root:
            return "uid=0(root) gid=0(root) groups=0(root)\n"
        name = self.user
        return f"uid=1000({name}) gid=1000({name}) groups=1000({name}),27(sudo),999(nvapply)\n"

    def _ethtool(self, rest: list[str]) -> Outcome:
        """`ethtool PORT` and `ethtool -S PORT`."""
        flags, names = [word for word in rest if word.startswith("-")], rest[-1:]
        fact = next((port for port in self.device.facts.ports if [port.name] == names), None)
        if len(rest) != len(flags) + 1 or flags not in ([], ["-S"], ["--statistics"]):
            text = "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n"
            return Outcome("", text, 1)
        if fact is None:
            return Outcome("", "netlink error: No such device\n", 1)
        health = self.device.health
        if flags:
            return Outcome(counters.ethtool_statistics(health, fact.name))
        down = "down" in trees.branch(self.device.revisions.applied, "interface", fact.name, "link", "state")
        gbps = health.gbps(fact.name, fact.speed_gbps)
        return Outcome(counters.ethtool_settings(fact.name, gbps, fact.up and not down))

    def _reboot(self) -> Outcome:
        if not self.root:
            return Outcome(
                "", "Failed to set wall message, ignoring: Interactive authentication required.\n", 1
            )
        self.device.reboot()
        return Outcome(close=True)


def _echo(words: list[str]) -> str:
    if words[:1] == ["-n"]:
        return " ".join(words[1:])
    return " ".join(words) + "\n"


class CumulusSession(Session):
    """One login over SSH."""

    def __init__(self, device: Cumulus, user: str) -> None:
        self.device = device
        self.user = user
        self.shell = Shell(device, user, interactive=True)
        self.banner = "\nWelcome to NVIDIA Cumulus (R) Linux (R)\n\n"
        self._paste = device.version >= (5, 9)
        # What readline writes when a line was entered and that no output has taken along yet.
        self._entered = ""
        self._asked: Outcome | None = None
        self._document: tuple[str, str, list[str]] | None = None

    def prompt(self) -> str:
        """bash's prompt, the question that `nv` asks, or the `> ` of a here-document."""
        self.device.tick()
        if self._asked is not None:
            return self._asked.question
        if self._document is not None:
            return self._entered + "> "
        name, sign = ("root", "#") if self.shell.root else (self.user, "$")
        home = f"/home/{self.user}" if self.shell.root and self.user != "root" else "~"
        text = f"{name}@{self.device.hostname()}:mgmt:{home}{sign} "
        return self._entered + _PASTE_ON + text if self._paste else text

    def run(self, line: str) -> Reply:
        """Execute one typed line."""
        self.device.tick()
        self._entered = ""
        if self._asked is not None:
            asked, self._asked = self._asked, None
            return self._reply(self.shell.resume(asked, line), paste=False)
        if self._document is not None:
            return self._collect(line)
        word = heredoc(line)
        if word:
            self._document = (word, line, [])
            self._entered = _PASTE_OFF if self._paste else ""
            return Reply()
        return self._reply(self.shell.line(line))

    def _collect(self, line: str) -> Reply:
        word, first, body = self._document or ("", "", [])
        if line != word:
            body.append(line)
            return Reply()
        self._document = None
        return self._reply(self.shell.line(first, "".join(f"{text}\n" for text in body)), paste=False)

    def _reply(self, outcome: Outcome, paste: bool = True) -> Reply:
        if outcome.question:
            self._asked = outcome
        text = outcome.stdout + outcome.stderr
        start = _PASTE_OFF if self._paste and paste else ""
        if not text:
            self._entered, start = start, ""
        return Reply(start + text, outcome.close)


DEVICE = Cumulus
