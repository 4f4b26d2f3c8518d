"""Hosts: one Ansible run per wave, over the nodes that differ, with one bundle per distinct change.

ansible-runner runs in a process of its own with a clean environment, since it writes the environment it
sees into its artifacts. Its folder is temporary. What a host did is taken from the events of each host,
never from the exit code of the run. Ansible reaches a host the very way that we do: same address, user, keys,
known hosts and jump hosts, and no SSH configuration that we do not read.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rdma_fabric.assets import playbooks
from rdma_fabric.push import guard
from rdma_fabric.push.bundle import bundle
from rdma_fabric.push.journal import Play
from rdma_fabric.push.reach import Job, Outcome
from rdma_fabric.transport.credentials import Secrets, scrub
from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.proxy import proxy_command
from rdma_fabric.transport.targets import Target

PLAYBOOK: Final = "host.yml"
PROGRAM: Final = "/usr/local/sbin/fabric-host"
FORKS: Final = 50
RUN_S: Final = 900.0
"""Longest time of one run over a wave; seconds."""
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSH_AUTH_SOCK", "VIRTUAL_ENV", "USER", "LOGNAME")
"""Variables that the Ansible process gets; every other one, secrets among them, stays out."""


def confirm_line(run: str) -> str:
    """Shell line that ends the dead-man of a run on a host and makes the change permanent.

    A host on which no bundle ever had anything to do has no program, and nothing to confirm.
    """
    path = f"/run/fabric-{run}.json"
    confirm = f"{{ test ! -x {PROGRAM} || {PROGRAM} {path} --mode confirm; }}"
    return _as_root(f"{confirm} && rm -f {path}*")


def undo_line(run: str) -> str:
    """Shell line that brings a host back to before the run."""
    return _as_root(f"test ! -x {PROGRAM} || {PROGRAM} recover --run {run}; rm -f /run/fabric-{run}.json*")


def _as_root(command: str) -> str:
    quoted = shlex.quote(command)
    return f'if [ "$(id -u)" = 0 ]; then sh -c {quoted}; else sudo -n sh -c {quoted}; fi'


@dataclass(frozen=True, slots=True)
class FilePusher:
    """Runs bundles on hosts."""

    addresses: Mapping[str, Target]
    secrets: Secrets
    state: Path

    def push(
        self, jobs: Mapping[str, Job], run: str, timer_s: int, *, check: bool = False
    ) -> dict[str, Outcome]:
        """Every node's outcome; the change is live and its dead-man armed where `ok`."""
        found = {name: why for name in jobs if (why := self._cannot(name))}
        going = {name: job for name, job in jobs.items() if name not in found}
        return found | (self._push(going, run, timer_s, check) if going else {})

    def _cannot(self, name: str) -> Outcome | None:
        """Why Ansible could not log in there, known before anything is tried."""
        target = self.addresses[name]
        try:
            proxy_command(target)
        except TransportError as error:
            return Outcome(False, str(error), "connect")
        if self.secrets.key_files(target) or self.secrets.agent(target):
            return None
        text = (
            "hosts are changed through Ansible, which logs in by key: start an SSH agent, set "
            "FABRIC_KEY_FILE, or give key_file in the connection options"
        )
        return Outcome(False, text, "connect")

    def _push(self, jobs: Mapping[str, Job], run: str, timer_s: int, check: bool) -> dict[str, Outcome]:
        for stale in self.state.glob("ansible-*"):  # of a run whose machine lost power
            shutil.rmtree(stale, ignore_errors=True)
        # Ansible works in a folder of its own, so every path that it gets is absolute.
        with (
            tempfile.TemporaryDirectory(prefix="ansible-", dir=self.state.absolute()) as temporary,
            tempfile.TemporaryDirectory(prefix="fabric-", dir=_short()) as sockets,
        ):
            folder = Path(temporary)
            self._write(folder, jobs, run, timer_s)
            said = self._ansible(folder, sockets, min(FORKS, len(jobs)), check)
            events = list(_events(folder / "artifacts" / run / "job_events"))
        found, play = _results(events), _play(events)
        return {name: replace(self._outcome(found.get(name), said), play=play) for name in jobs}

    # -- the folder

    def _write(self, folder: Path, jobs: Mapping[str, Job], run: str, timer_s: int) -> None:
        for name in ("inventory", "env", "bundles", "project"):
            (folder / name).mkdir(mode=0o700)
        paths: dict[int, str] = {}
        for job in jobs.values():
            if id(job.change) not in paths:
                path = folder / "bundles" / f"{len(paths)}.json"
                path.write_text(json.dumps(bundle(job.change, run, timer_s, "apply")), encoding="utf-8")
                path.chmod(0o600)
                paths[id(job.change)] = str(path)
        hosts = {name: self._host(name, paths[id(job.change)], run) for name, job in jobs.items()}
        inventory = {"all": {"hosts": hosts}}
        (folder / "inventory" / "hosts.json").write_text(json.dumps(inventory), encoding="utf-8")

    def _host(self, name: str, path: str, run: str) -> dict[str, Any]:
        target = self.addresses[name]
        user = self.secrets.username(target)
        return {
            "ansible_host": target.host,
            "ansible_port": target.port,
            "ansible_user": user,
            "ansible_ssh_common_args": shlex.join(self._options(target)),
            "fabric_bundle": path,
            "fabric_run": run,
            "fabric_become": user != "root",
        }

    def _options(self, target: Target) -> list[str]:
        """Options of ssh, sftp and scp: what our own sessions use, and nothing else."""
        known = " ".join(map(_quoted, target.known_hosts))
        agent = self.secrets.agent(target)
        options = [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            f"UserKnownHostsFile={known}",
            "GlobalKnownHostsFile=/dev/null",
            f"IdentitiesOnly={'no' if agent else 'yes'}",
            *(f"IdentityFile={_quoted(key)}" for key in self.secrets.key_files(target)),
        ]
        if proxy := proxy_command(target):
            options.append(f"ProxyCommand={proxy.replace('%', '%%')}")
        return ["-F", "none", *(word for option in options for word in ("-o", option))]

    # -- the run

    def _ansible(self, folder: Path, sockets: str, forks: int, check: bool) -> str:
        """Runs it; returns the last words of its output for hosts that no event tells of."""
        (folder / "ansible.cfg").touch(mode=0o600)  # or Ansible would look for the operator's
        source = playbooks() / PLAYBOOK
        (folder / "project" / PLAYBOOK).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        ident = _ident(folder)
        words = [
            sys.executable,
            "-m",
            "ansible_runner",
            "run",
            str(folder),
            "-p",
            PLAYBOOK,
            "-i",
            ident,
            "-q",
        ]
        words += ["--cmdline", f"--forks {forks}{' --check' if check else ''}"]
        try:
            out, err = _guarded(words, _environment(folder, sockets), (str(folder), sockets))
        except subprocess.TimeoutExpired:
            return f"Ansible did not end within {RUN_S:.0f} s"
        except OSError as error:
            return f"Ansible could not be started: {error}"
        kept = folder / "artifacts" / ident / "stdout"
        told = kept.read_text(encoding="utf-8", errors="replace") if kept.is_file() else ""
        said = (err.strip() or told.strip() or out.strip()).splitlines()
        return scrub(f"Ansible: {said[-1]}", self.secrets) if said else "Ansible told nothing of this host"

    def _outcome(self, result: Mapping[str, Any] | None, said: str) -> Outcome:
        if result is None:
            return Outcome(False, said, "session")
        if "unreachable" in result:
            return Outcome(False, scrub(str(result["unreachable"]), self.secrets), "connect")
        if result.get("refused"):
            return Outcome(False, scrub(str(result["refused"]), self.secrets), "lock", clean=True)
        failed = result.get("failed")
        if failed:
            text = (
                f"{failed['step']}: exit {failed['status']}: {(failed['stderr'] or failed['stdout']).strip()}"
            )
            back = bool(result.get("undone")) or not result.get("pending")
            text += "; the host took its change back" if back else "; the host could not take its change back"
            return Outcome(False, scrub(text, self.secrets), "commit", clean=back)
        if "problem" in result:
            return Outcome(False, scrub(str(result["problem"]), self.secrets), "session")
        return Outcome(True)


def _quoted(path: Path) -> str:
    """A path as ssh_config(5) wants it: in quotes, and with nothing that it would take for a token."""
    return f'"{str(path.absolute()).replace("%", "%%")}"'


def _guarded(words: list[str], environment: Mapping[str, str], folders: tuple[str, ...]) -> tuple[str, str]:
    """(stdout, stderr) of a program that ends with us, however we end: its guard watches our end of a pipe.

    TimeoutExpired after RUN_S seconds, when the program has been ended.
    """
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", guard.__file__, str(reading), *folders, "--", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(reading,),
            start_new_session=True,
        )
        try:
            return process.communicate(timeout=RUN_S)
        except BaseException:  # also Ctrl-C, which a session of its own does not get
            os.close(writing)
            writing = -1
            process.communicate()
            raise
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


def _ident(folder: Path) -> str:
    """The run's name, from the inventory just written."""
    data = json.loads((folder / "inventory" / "hosts.json").read_text(encoding="utf-8"))
    return str(next(iter(data["all"]["hosts"].values()))["fabric_run"])


def _short() -> str | None:
    """Where sockets go: OpenSSH's control path must fit in 108 bytes (unix(7)) with its 17 more."""
    return "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else None


def _environment(folder: Path, sockets: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    # The commands of this very environment first, also when it was never activated.
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return kept | {
        "LC_ALL": kept.get("LC_ALL", "C.UTF-8"),
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_PYTHON_INTERPRETER": "auto_silent",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": sockets,
        # Connections are shared by the tasks and go soon after the last one.
        "ANSIBLE_SSH_ARGS": "-C -o ControlMaster=auto -o ControlPersist=10s",
    }


def _events(folder: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(data, dict):
            yield data


def _play(events: Iterable[Mapping[str, Any]]) -> Play:
    """What Ansible itself counts: hosts of the play, and those of them that it says were changed."""
    hosts, changed = set[str](), set[str]()
    for event in events:
        if event.get("event") == "playbook_on_stats":
            counts = event.get("event_data") or {}
            hosts |= {host for word in ("ok", "dark", "failures") for host in counts.get(word) or {}}
            changed |= {host for host, count in (counts.get("changed") or {}).items() if count}
    return Play(len(hosts), len(changed))


def _results(events: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Host -> what its bundle said, or `unreachable`, or `problem` when Ansible itself failed there."""
    found: dict[str, Mapping[str, Any]] = {}
    for event in events:
        data = event.get("event_data") or {}
        name = data.get("host")
        result = data.get("res") or {}
        if not name:
            continue
        kind = event.get("event")
        if kind == "runner_on_unreachable":
            found[name] = {"unreachable": str(result.get("msg", "unreachable")).strip()}
        elif kind == "runner_on_failed" and name not in found:
            found[name] = {"problem": _problem(data.get("task", ""), result)}
        elif kind == "runner_on_ok" and "content" in result and result.get("encoding") == "base64":
            said = _json(base64.b64decode(result["content"]))
            if said is not None:
                found[name] = said
    return found


def _problem(task: str, result: Mapping[str, Any]) -> str:
    words = result.get("stderr") or result.get("module_stderr") or result.get("msg") or "failed"
    return f"{task}: {str(words).strip()[-1000:]}"


def _json(data: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
