"""A Debian machine in QEMU: real kernel, systemd, sshd and Soft-RoCE; no RDMA hardware, no KVM needed."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD_S = 1800.0
BOOT_S = 900.0
"""Software emulation on a busy machine; an idle one needs 20 s."""
COMMAND_S = 400.0
WIRES = (1, 1, 2, 3, 4)
"""QEMU hub of each data port: data0 and data1 are two ends of one wire."""
MAC = "52:54:00:12:34:"


@dataclass(frozen=True, slots=True)
class Image:
    """What scripts/vm-image built."""

    folder: Path

    @property
    def host_key(self) -> str:
        """Type and key, as in known_hosts."""
        return " ".join((self.folder / "host_key.pub").read_text(encoding="utf-8").split()[:2])

    @property
    def logs(self) -> Path:
        """Where consoles and journals of failed guests are looked for: beside the images."""
        return self.folder.parent / "logs"

    @property
    def login_key(self) -> Path:
        """Private key of the accounts ops and root."""
        return self.folder / "login_key"


@functools.cache
def built() -> Image:
    """The image, built if need be. A machine that cannot build it fails: no test here is ever skipped."""
    done = subprocess.run(
        [REPOSITORY / "scripts" / "vm-image"], capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    if done.returncode:
        pytest.fail(f"no guest to test on: {done.stderr}", pytrace=False)
    return Image(Path(done.stdout.strip()))


@functools.cache
def accelerator() -> str:
    """`kvm` where a kernel starts with it (a /dev/kvm that is there may not work), else `tcg`."""
    if given := os.environ.get("FABRIC_VM_ACCEL"):
        return given
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    words = ["-accel", "kvm", "-m", "256", "-kernel", str(built().folder / "vmlinuz")]
    words += [
        "-append",
        "console=ttyS0 panic=-1",
        "-no-reboot",
        "-nographic",
        "-nodefaults",
        "-serial",
        "stdio",
    ]
    process = subprocess.Popen(
        ["qemu-system-x86_64", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        out, _ = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    return "kvm" if b"Linux version" in out else "tcg"


@dataclass(slots=True)
class Machine:
    """One guest on a disk of its own over the image; reached as `ops` (with sudo) and as `root`.

    `folder` keeps its logs; `work` has the disk and sockets, and goes when the machine does.
    """

    image: Image
    folder: Path
    work: Path
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _boots: list[str] = field(default_factory=list)

    @property
    def known_hosts(self) -> Path:
        """The host key, from the image and not from the wire."""
        return self.work / "known_hosts"

    # -- power

    def start(self) -> None:
        """Boot, and wait until it lets us in."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = _free_port()
        disk = self.work / "disk.qcow2"
        base = self.image.folder / "disk.img"
        words = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", "raw", str(disk)]
        subprocess.run(words, check=True, timeout=60)
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self.image.host_key}\n")
        self.console.unlink(missing_ok=True)
        self._launch()

    def _launch(self) -> None:
        with (self.folder / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command(self.work / "disk.qcow2"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.wait_up()

    def _command(self, disk: Path) -> list[str]:
        accel = accelerator()
        words = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-m", "1024"]
        # In software, a processor that waits for a second one which does not get its turn takes minutes.
        words += ["-accel", accel, "-smp", "2" if accel == "kvm" else "1"]
        words += ["-kernel", str(self.image.folder / "vmlinuz")]
        words += ["-initrd", str(self.image.folder / "initrd.gz")]
        # What a kernel does against speculation costs time in software, which has none.
        quick = "nowatchdog mitigations=off"
        words += ["-append", f"console=ttyS0 quiet systemd.show_status=1 panic=10 {quick}"]
        words += ["-drive", f"file={disk},format=qcow2,if=virtio,cache=writeback"]
        words += ["-chardev", f"file,id=console,path={self.console},append=on", "-serial", "chardev:console"]
        # A reset in the same process leaves QEMU's translations of the old kernel in the way of the new one:
        # without KVM the second boot then takes minutes. So a reboot ends the process.
        words += ["-no-reboot", "-device", "virtio-rng-pci"]
        words += ["-qmp", f"unix:{self.work}/qmp,server=on,wait=off"]
        # Nothing in the guest reaches the outside; only our SSH reaches it.
        words += ["-netdev", f"user,id=mgmt,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"]
        words += ["-device", f"virtio-net-pci,netdev=mgmt,mac={MAC}01"]
        for number, wire in enumerate(WIRES):
            words += ["-netdev", f"hubport,id=d{number},hubid={wire}"]
            words += ["-device", f"virtio-net-pci,id=nic{number},netdev=d{number},mac={MAC}1{number}"]
        return words

    def stop(self) -> None:
        """Switched off at once."""
        if self._process is not None:
            self._leave()
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None

    def wait_up(self) -> None:
        """Until a boot that was not seen before has come to its login and its units have ended."""
        end = time.monotonic() + BOOT_S
        while True:
            assert self._process is not None and self._process.poll() is None, self.last_words()
            with contextlib.suppress(subprocess.TimeoutExpired):
                status, boot, _ = self.ssh("cat /proc/sys/kernel/random/boot_id", timeout_s=20.0, fresh=True)
                if status == 0 and boot.strip() not in self._boots:
                    self._boots.append(boot.strip())
                    break
            assert time.monotonic() < end, f"no login within {BOOT_S:.0f} s\n{self.last_words()}"
            time.sleep(1)
        self._leave()
        said = self.run(
            "timeout 380 systemctl is-system-running --wait || systemctl --failed --no-pager --plain"
        )
        assert said.startswith("running"), f"{said}\n{self.last_words()}"

    def reboot(self) -> None:
        """An orderly reboot."""
        self.root("systemctl reboot", check=False)
        assert self._process is not None
        self._process.wait(timeout=BOOT_S)
        self._launch()

    def power_cut(self) -> None:
        """What the guest did not write to its disk by now is lost."""
        self.stop()
        self._launch()

    def link(self, number: int, up: bool) -> None:
        """The cable of a data port is pulled, or plugged in."""
        self.monitor("set_link", name=f"nic{number}", up=up)

    def monitor(self, command: str, **arguments: object) -> None:
        """One QMP command."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(f"{self.work}/qmp")
            lines = connection.makefile("rw", encoding="utf-8")
            lines.readline()
            for name, given in (("qmp_capabilities", {}), (command, arguments)):
                lines.write(json.dumps({"execute": name, "arguments": given}) + "\n")
                lines.flush()
                while "event" in (said := json.loads(lines.readline())):
                    pass
                assert "return" in said, said

    # -- talking to it

    def ssh(
        self, command: str, *, user: str = "ops", timeout_s: float = COMMAND_S, fresh: bool = False
    ) -> tuple[int, str, str]:
        """Exit status, standard output and error; `fresh`: a login of its own, not one that is kept open."""
        shared = ["-o", "ControlPath=none"]
        if not fresh:
            shared = ["-o", "ControlMaster=auto", "-o", "ControlPersist=120"]
            shared += ["-o", f"ControlPath={self.work}/ssh-%r"]
        done = subprocess.run(
            [*self._ssh(), *shared, f"{user}@127.0.0.1", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def _ssh(self) -> list[str]:
        words = [
            "ssh",
            "-F",
            "none",
            "-p",
            str(self.port),
            "-i",
            str(self.image.login_key),
            "-o",
            "BatchMode=yes",
        ]
        words += ["-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=15", "-o", "LogLevel=ERROR"]
        return [
            *words,
            "-o",
            f"UserKnownHostsFile={self.known_hosts}",
            "-o",
            "StrictHostKeyChecking=yes",
        ]

    def run(
        self, command: str, *, check: bool = True, fresh: bool = False, timeout_s: float = COMMAND_S
    ) -> str:
        """What a command of `ops` says."""
        status, out, err = self.ssh(command, fresh=fresh, timeout_s=timeout_s)
        assert not check or status == 0, f"{command}: {status}\n{out}{err}"
        return out

    def root(self, command: str, *, check: bool = True, timeout_s: float = COMMAND_S) -> str:
        """What a command of root says."""
        return self.run(f"sudo -n sh -c {shlex.quote(command)}", check=check, timeout_s=timeout_s)

    def write(self, path: str, text: str, mode: str = "0644") -> None:
        """A file of the guest, by root."""
        self.root(f"printf %s {shlex.quote(text)} >{path} && chmod {mode} {path} && sync")

    def _leave(self) -> None:
        """Ends the login that is kept open, which a reboot made useless."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            for user in ("ops", "root"):
                subprocess.run(
                    [
                        *self._ssh(),
                        "-o",
                        f"ControlPath={self.work}/ssh-%r",
                        "-O",
                        "exit",
                        f"{user}@127.0.0.1",
                    ],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=20,
                    check=False,
                )

    # -- when something goes wrong

    @property
    def console(self) -> Path:
        """The serial console's log."""
        return self.folder / "console.log"

    def last_words(self) -> str:
        """The end of the console's log and, if it still answers, of its journal; both stay in the folder."""
        found = [f"console ({self.console}):", *_tail(self.console)]
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status, out, _ = self.ssh(
                    "sudo -n journalctl -b --no-pager -o short-monotonic", timeout_s=60.0
                )
                if status == 0:
                    path = self.folder / "journal.log"
                    path.write_text(out, encoding="utf-8")
                    found += [f"journal ({path}):", *_tail(path)]
        return "\n".join(found)


def _tail(path: Path, lines: int = 60) -> Sequence[str]:
    if not path.is_file():
        return ()
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def booted(folder: Path) -> Iterator[Machine]:
    """A guest that runs while the block does."""
    with tempfile.TemporaryDirectory(prefix="fabric-vm-") as work:
        machine = Machine(built(), folder, Path(work))
        try:
            machine.start()
            yield machine
        finally:
            machine.stop()
