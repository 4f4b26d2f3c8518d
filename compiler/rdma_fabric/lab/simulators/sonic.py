"""A simulated switch with community SONiC: a Debian shell with the `config` and `show` tools.

The prompt is `admin@<hostname>:~$` (netmiko's device type is `linux`). CONFIG_DB is the running
configuration, `/etc/sonic/config_db.json` the startup one, and a JSON patch in a file the candidate.
A confirm timer is a transient systemd timer. What the image refuses depends on `facts.version`
("202305" ... "master"), what the updater lets through also on the HwSKU in `facts.model`.

`facts.seed` holds lines of JSON that are merged into the stock configuration (a row that is empty
there stays empty), or shell commands that run as root; the word `noqos` on a line of its own leaves
the stock QoS and buffer tables out.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.lab.simulators._contract import Device, Passage, Reply, Result, Session
from rdma_fabric.lab.simulators._sonic_json import Config, ordered
from rdma_fabric.lab.simulators._sonic_run import Leave, NeedsAnswer, Runner, WantsRoot
from rdma_fabric.lab.simulators._sonic_shell import Item, ShellSyntaxError, Unfinished, parse
from rdma_fabric.lab.simulators._sonic_state import Storm, Switch, Timer, dump_json
from rdma_fabric.lab.simulators._sonic_tools import TOOLS, fire

_PERSISTENT = ("/etc/", "/home/", "/usr/", "/root/")


class SonicSession(Session):
    """A login shell; keeps lines until a here-document or quote is complete."""

    def __init__(self, device: SonicDevice, user: str) -> None:
        self._device = device
        self._runner = Runner(
            device.switch, user, root=user == "root", terminal=True, tools=TOOLS, answers=[]
        )
        self._outer: list[Runner] = []
        self._lines: list[str] = []
        self._question = ""
        self._waiting: list[Item] = []
        self.banner = f"Linux {device.switch.hostname} x86_64\n\nYou are on SONiC\n\n"

    def prompt(self) -> str:
        """`admin@leaf01:~$ `, `> ` inside an unfinished command, or the open question."""
        if self._question:
            return self._question
        if self._lines:
            return "> "
        runner = self._runner
        folder = runner.cwd
        if folder == runner.home or folder.startswith(runner.home + "/"):
            folder = "~" + folder[len(runner.home) :]
        return f"{runner.user}@{runner.switch.hostname}:{folder}{'#' if runner.root else '$'} "

    def run(self, line: str) -> Reply:
        """Execute one typed line."""
        self._device.tick()
        if self._question:
            self._question = ""
            self._runner.answers = [line or "n"]
            return self._execute(self._waiting)
        self._lines.append(line)
        try:
            items = parse("\n".join(self._lines))
        except Unfinished:
            return Reply()
        except ShellSyntaxError as error:
            self._lines = []
            self._runner.status = 2
            return Reply(f"-bash: {error}\n")
        self._lines = []
        return self._execute(items)

    def _execute(self, items: list[Item]) -> Reply:
        runner = self._runner
        runner.out, runner.err = [], []
        simple = len(items) == 1 and len(items[0].pipeline) == 1
        runner.terminal = simple
        try:
            runner.run(items)
        except NeedsAnswer as question:
            self._question, self._waiting = str(question), items
            return Reply()
        except WantsRoot:
            self._outer.append(runner)
            self._runner = Runner(
                runner.switch, "root", root=True, cwd=runner.cwd, terminal=True, tools=TOOLS
            )
        except Leave:
            if not self._outer:
                return Reply("logout\n", close=True)
            self._runner = self._outer.pop()
            return Reply("exit\n")
        finally:
            runner.answers = []
        return Reply("".join(runner.out + runner.err))

    def closed(self) -> None:
        """A login shell holds no locks."""
        self._lines, self._question = [], ""


@dataclass
class SonicDevice(Device):
    """One SONiC switch."""

    switch: Switch = field(init=False)

    def __post_init__(self) -> None:
        self.switch = Switch(self.facts, self.clock, self.files, health=self.health)
        lines = [line for line in self.facts.seed if line.strip() != "noqos"]
        text = "\n".join(lines).strip()
        is_json = text.startswith("{")
        self.switch.install(text if is_json else "", qos=len(lines) == len(self.facts.seed))
        if text and not is_json:
            result = self.execute("root", text)
            if result.status:
                raise ValueError(f"{self.facts.name}: seed is refused: {result.stderr or result.stdout}")
            self.files["/etc/sonic/config_db.json"] = dump_json(ordered(self.switch.running))

    @property
    def flaps(self) -> dict[str, int]:
        """How often each port was taken down since the start, by port."""
        return self.switch.flaps

    @property
    def config(self) -> Config:
        """CONFIG_DB, table -> key -> field."""
        return self.switch.running

    def storm(self, port: str, queue: int, stormed: bool = True) -> None:
        """Let the watchdog see a pause storm on a queue begin, or end."""
        found = self.switch.storms.setdefault(f"{port}:{queue}", Storm())
        found.detected += int(stormed and not found.stormed)
        found.restored += int(found.stormed and not stormed)
        found.stormed = stormed

    def open(self, user: str) -> Session:
        """A new interactive session."""
        return SonicSession(self, user)

    def execute(self, user: str, command: str) -> Result:
        """One command line or script on an exec channel, without a terminal."""
        self.tick()
        runner = Runner(self.switch, user, root=user == "root", tools=TOOLS, name="bash: line 1")
        with suppress(Leave):
            runner.script(command)
        return Result("".join(runner.out), "".join(runner.err), runner.status)

    def tick(self) -> None:
        """Run the transient timers that are due, in the order of their time."""
        while True:
            due = sorted((t for t in self.switch.timers if t.due <= self.clock()), key=lambda t: t.due)
            if not due:
                return
            self.switch.timers.remove(due[0])
            fire(Runner(self.switch, "root", root=True, tools=TOOLS), due[0])

    def passage(self, port: str) -> Passage:
        """The MTU that APPL_DB has counts in both directions; a member of a VLAN does not answer."""
        state = self.switch.applied.get(port)
        if state is None:
            return Passage(up=False)
        mtu = int(state.get("mtu", "9100"))
        running = self.switch.running
        bridged = any(key.endswith(f"|{port}") for key in running.get("VLAN_MEMBER", {}))
        owned = (key.partition("|")[2] for key in running.get("INTERFACE", {}) if key.startswith(f"{port}|"))
        address = next((text.partition("/")[0] for text in owned if "." in text), "")
        return Passage(state["oper_status"] == "up", mtu, mtu, not bridged, address)

    def reboot(self) -> None:
        """Lose CONFIG_DB, /tmp and all timers; start from /etc/sonic/config_db.json."""
        for path in [path for path in self.files if not path.startswith(_PERSISTENT)]:
            del self.files[path]
        self.switch.folders = {path for path in self.switch.folders if path.startswith(_PERSISTENT)}
        self.switch.timers.clear()
        self.switch.failed_units.clear()
        self.switch.syslog.clear()
        self.switch.boot()

    def refusal(self, line: str) -> str:
        """What bash answers to a command that it does not know."""
        words = line.split()
        return f"-bash: {words[0] if words else ''}: command not found\n"

    def commits(self, line: str) -> bool:
        """True for lines that write CONFIG_DB at once."""
        words = [word for word in line.split() if word not in ("sudo", "-n")]
        if words[:1] != ["config"] or "-d" in words or "--dry-run" in words:
            return False
        return words[1:2] in (["apply-patch"], ["replace"], ["rollback"], ["load"], ["reload"])

    def somebody(self, lines: tuple[str, ...]) -> str:
        """Another administrator types lines in a shell of their own."""
        result = self.execute("admin", "\n".join(lines))
        return result.stdout + result.stderr

    def running(self) -> str:
        """CONFIG_DB as `sonic-cfggen -d --print-data` prints it."""
        return dump_json(ordered(self.switch.running)).decode() + "\n"

    def dump(self) -> dict[str, Any]:
        """All state as JSON data."""
        switch = self.switch
        return {
            "files": {path: data.hex() for path, data in sorted(self.files.items())},
            "folders": sorted(switch.folders),
            "running": switch.running,
            "applied": switch.applied,
            "flaps": switch.flaps,
            "pfc_seen": switch.pfc_seen,
            "cable_seen": switch.cable_seen,
            "storms": {k: [s.detected, s.restored, s.stormed] for k, s in switch.storms.items()},
            # time left, because the clock of the next process starts elsewhere
            "timers": [[t.unit, t.due - self.clock(), list(t.argv), t.collect] for t in switch.timers],
            "failed_units": list(switch.failed_units),
            "syslog": list(switch.syslog),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take back what `dump` gave."""
        switch = self.switch
        self.files.clear()
        self.files.update({path: bytes.fromhex(text) for path, text in data["files"].items()})
        switch.folders = set(data["folders"])
        switch.running = {t: {k: dict(row) for k, row in rows.items()} for t, rows in data["running"].items()}
        switch.applied = {port: dict(state) for port, state in data["applied"].items()}
        switch.flaps = dict(data["flaps"])
        switch.pfc_seen = dict(data["pfc_seen"])
        switch.cable_seen = dict(data["cable_seen"])
        switch.storms = {key: Storm(*values) for key, values in data["storms"].items()}
        switch.timers = [
            Timer(unit, self.clock() + left, tuple(argv), collect)
            for unit, left, argv, collect in data["timers"]
        ]
        switch.failed_units = list(data["failed_units"])
        switch.syslog = list(data["syslog"])


DEVICE = SonicDevice
