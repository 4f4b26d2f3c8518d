"""The first process of a lab host: makes its namespaces and file tree, then reaps and serves.

Started as `launch fabric-init` with the host's folder as working directory. It talks with the lab
over its standard streams: says `userns` and waits while the lab maps user ids, says `pid N`, then
`ready`. When the lab closes the stream (or dies), the process ends and the kernel ends the rest.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH102, PTH103, PTH106, PTH110, PTH112, PTH113, PTH114, PTH115, PTH123, PTH208, PTH211

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress

from . import attributes, dispatch, fuse, iplink, store, sysfs, units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_DETACH = 2
_LINK_GROUP = 1
"""RTMGRP_LINK (linux/rtnetlink.h)."""
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NAME = 1, 4, 15
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
"""System call numbers (asm/unistd.h); the C library has no wrapper."""
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_libc = ctypes.CDLL(None, use_errno=True)


def main(name: str, arguments: list[str]) -> int:
    """Become a host; returns when the lab is gone."""
    try:
        _unshare(NEWUSER)
        _say("userns")
        if sys.stdin.readline() != "mapped\n":
            return 1
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        _unshare(NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET)
    except OSError as error:
        return _lost(f"no user namespace with mount, pid and network namespaces: {error}")
    child = os.fork()
    if child:
        _say(f"pid {child}")
        os.waitpid(child, 0)
        return 0
    _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)
    _libc.prctl(_SET_DUMPABLE, 1)
    _libc.prctl(_SET_NAME, b"systemd")  # what ansible asks /proc/1/comm for
    try:
        server = _become()
    except OSError as error:
        return _lost(f"{error.strerror or error}: {error.filename or ''}")
    except RuntimeError as error:
        return _lost(str(error))
    _live(server)
    return 0


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def _lost(reason: str) -> int:
    _say(f"error: {reason}")
    return 1


def _unshare(flags: int) -> None:
    if _libc.unshare(flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "unshare")


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    done = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    if done:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {source} on {target}: {os.strerror(code)}", target)


def _become() -> fuse.Server | None:
    """Everything from an empty namespace to a booting host."""
    facts = json.loads(store.slurp("/proc/self/cwd/root/var/lib/fabric-lab/facts.json"))
    handle = _fuse()
    socket.sethostname(facts["name"])
    _mount("none", "/", flags=_REC | _PRIVATE)
    _mount("root", "root", flags=_BIND | _REC)
    os.chdir("/proc/self/cwd/root")
    _tree()
    os.makedirs(f".{store.RUN}")
    # Far ends of cables live in the namespace we have now; then comes one for the host itself.
    wire = f".{store.WIRE}"
    os.close(os.open(wire, os.O_CREAT | os.O_WRONLY, 0o600))
    _mount("/proc/self/ns/net", wire, flags=_BIND)
    _unshare(NEWNET)
    _mount("proc", "proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    os.mkdir("run/sysfs")
    try:
        _mount("sysfs", "run/sysfs", "sysfs", _NOSUID | _NODEV | _NOEXEC)
    except PermissionError:  # a machine that has /sys read-only allows no more to us
        _mount("sysfs", "run/sysfs", "sysfs", _NOSUID | _NODEV | _NOEXEC | _RDONLY)
    if facts["ib"]:
        _infiniband()
    if facts["stacked"]:
        _stand_in("ip", f".{iplink.REAL}")
    _pivot()
    _links(facts)
    _sys(facts)
    server = _attributes(handle)
    if os.path.exists("/proc/modules"):  # kernels without loadable modules have no such file
        os.close(os.open(f"{store.RUN}/modules", os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(f"{store.RUN}/modules", "/proc/modules", flags=_BIND)
    return server


def _tree() -> None:
    """Mount what the host shares with the machine (/usr) and what it has of its own."""
    _mount("/usr", "usr", flags=_BIND | _REC)
    _mount("var/lib/fabric-lab/sbin", "usr/local/sbin", flags=_BIND)
    for name in _MERGED:
        if os.path.islink(f"/{name}"):
            if not os.path.islink(name):
                os.symlink(os.readlink(f"/{name}"), name)
        elif os.path.isdir(f"/{name}"):
            os.makedirs(name, exist_ok=True)
            _mount(f"/{name}", name, flags=_BIND | _REC)
    if os.path.isdir("/etc/alternatives"):
        _mount("/etc/alternatives", "etc/alternatives", flags=_BIND)
    for name, mode in (("run", "755"), ("tmp", "1777"), ("sys", "755"), ("dev", "755")):
        _mount("tmpfs", name, "tmpfs", _NOSUID, f"mode={mode},size=256m")
    for name in _DEVICES:
        os.close(os.open(f"dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        _mount(f"/dev/{name}", f"dev/{name}", flags=_BIND)
    for name in ("pts", "shm"):
        os.mkdir(f"dev/{name}")
    _mount("devpts", "dev/pts", "devpts", _NOSUID, "newinstance,ptmxmode=0666,mode=620")
    _mount("tmpfs", "dev/shm", "tmpfs", _NOSUID | _NODEV)
    os.symlink("pts/ptmx", "dev/ptmx")
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"dev/{name}")


def _infiniband() -> None:
    """Stand-ins over the machine's own OpenSM and tools, whose real files stay reachable, and its units."""
    real = f".{store.RUN}/real"
    os.mkdir(real)
    _mount("/usr/sbin", real, flags=_BIND | _REC)
    for name, module in dispatch.TOOLS.items():
        if module == "ib" and os.path.isfile(f"/usr/sbin/{name}"):
            _mount(f".{store.HOME}/tools/launch", f"usr/sbin/{name}", flags=_BIND)
    os.makedirs("run/systemd/system", exist_ok=True)
    for name in ("opensm.service", "opensm@.service"):
        text = store.slurp(f"/usr/lib/systemd/system/{name}") or store.slurp(f"/lib/systemd/system/{name}")
        if text:
            with open(f"run/systemd/system/{name}", "w") as file:
                file.write(text)


def _stand_in(tool: str, real: str) -> None:
    """Ours over a program of the machine, whose file stays reachable under another name."""
    found = shutil.which(tool, path=units.ENVIRONMENT["PATH"])
    assert found is not None  # `lab.hosts` looked
    target = os.path.realpath(found).lstrip("/")
    os.close(os.open(real, os.O_CREAT | os.O_WRONLY, 0o755))
    _mount(target, real, flags=_BIND)
    _mount(f".{store.HOME}/tools/launch", target, flags=_BIND)


def _pivot() -> None:
    """Make the host's folder the root and let go of the machine's."""
    os.mkdir("run/old")
    number = _PIVOT_ROOT.get(os.uname().machine, -1)
    if number < 0 or _libc.syscall(number, b".", b"run/old"):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "pivot_root")
    os.chdir("/")
    if _libc.umount2(b"/run/old", _DETACH):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "/run/old")
    os.rmdir("/run/old")


def _links(facts: store.Facts) -> None:
    """The netdevs, each one end of a virtual cable whose other end is out of sight."""
    management = facts["management"]
    ports = [(port["netdev"], port["wire"], port["mac"], port["address"]) for port in facts["ports"]]
    ports.append((management, "m0", "", facts["management_address"]))
    commands, far = ["link set lo up"], []
    for netdev, wire, mac, address in ports:
        given = f" address {mac}" if mac else ""
        commands.append(f"link add {netdev}{given} type veth peer name {wire} netns {store.WIRE}")
        if address:
            commands.append(f"address add {address} dev {netdev}")
        far += [f"link set {wire} mtu 65535 up"]
    near = [f"link set {netdev} up" for netdev, *_ in ports]
    # The far ends come up last: the kernel then reports the links at once, not in up to a second.
    batches = (["ip"], commands + near), (["nsenter", f"--net={store.WIRE}", "ip"], far)
    for program, lines in batches:
        done = subprocess.run(
            [*program, "-batch", "-"],
            input="\n".join(lines) + "\n",
            env=units.ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"netdevs: {done.stderr.strip()}")
    # Apart, because a machine may be without IPv6.
    more = [
        f"address add {port['address6']} dev {port['netdev']} nodad"
        for port in facts["ports"]
        if port["address6"]
    ]
    if more:
        ip = ["ip", "-force", "-batch", "-"]
        subprocess.run(
            ip,
            input="\n".join(more) + "\n",
            env=units.ENVIRONMENT,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )


def _sys(facts: store.Facts) -> None:
    """/sys: the real devices of this network namespace, and the hardware of the facts beside them."""
    for folder in ("devices", "class/net", "class/infiniband", "bus/pci/devices", "bus/pci/drivers"):
        os.makedirs(f"/sys/{folder}")
    for folder in ("module", "kernel/config", "kernel/debug", "fs/cgroup"):
        os.makedirs(f"/sys/{folder}")
    _mount("/run/sysfs/devices", "/sys/devices", flags=_BIND)
    if _libc.umount2(b"/run/sysfs", _DETACH):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "/run/sysfs")
    os.rmdir("/run/sysfs")
    ports = {port["netdev"]: port for port in facts["ports"]}
    for netdev in os.listdir("/sys/devices/virtual/net"):
        if netdev in ports:
            sysfs.add_net(ports[netdev])
        else:
            sysfs.plain(netdev)
    os.symlink("/sys", f"{store.RUN}/sys")
    os.makedirs("/run/systemd/system", exist_ok=True)
    if facts["ib"]:
        os.makedirs("/sys/class/infiniband_mad")
        sysfs.texts("/sys/class/infiniband_mad", {"abi_version": "5"})


def _fuse() -> int:
    """An open FUSE device: the machine's, or the one that root made for us; -1 when there is none."""
    for path in ("/dev/fuse", "/proc/self/cwd/root/.fuse"):
        try:
            return os.open(path, os.O_RDWR)
        except OSError:
            continue
    return -1


def _attributes(handle: int) -> fuse.Server | None:
    """Mount the attributes; None without a FUSE device."""
    os.mkdir(store.ATTRIBUTES)
    if handle < 0:
        store.log("no /dev/fuse: qos, ecn, tc, configfs and debugfs attributes of the NICs are missing")
        return None
    options = f"fd={handle},rootmode=40000,user_id=0,group_id=0"
    _mount("fabric", store.ATTRIBUTES, "fuse", _NOSUID | _NODEV, options)
    return fuse.Server(handle, attributes.tree())


# --- life as process 1 ---


def _live(server: fuse.Server | None) -> None:
    """Boot, say so, then serve attributes and reap orphans until the lab closes our input."""
    _say("built")
    if sys.stdin.readline() != "boot\n":
        return
    waking, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    booting = _boot()
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(waking, select.POLLIN)
    if server is not None:
        poll.register(server.handle, select.POLLIN)
    links = _Links()
    poll.register(links.socket.fileno(), select.POLLIN)
    while True:
        for handle, _ in poll.poll():
            if handle == 0 and not os.read(0, 64):
                return
            if handle == links.socket.fileno():
                links.follow()
            if handle == waking:
                os.read(waking, 512)
                ended = _reap()
                if booting in ended:
                    if ended[booting]:
                        _lost(f"boot: {store.slurp(f'{store.RUN}/boot.log').strip()[-500:]}")
                        return
                    _say("ready")
                    booting = 0
            elif server is not None and handle == server.handle and not server.serve():
                poll.unregister(handle)


class _Links:
    """Netdevs that come and go by anybody's hand, as rtnetlink(7) tells of them."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK)
        self.socket.bind((0, _LINK_GROUP))
        self._shown = sysfs.topology()

    def follow(self) -> None:
        """Bring /sys/class/net up to date; what changes meanwhile is told of again."""
        with suppress(BlockingIOError):
            while self._heard():
                pass
        with suppress(OSError):
            found = sysfs.topology()
            if found != self._shown:
                sysfs.sync()
                self._shown = found

    def _heard(self) -> bool:
        try:
            return bool(self.socket.recv(1 << 16))
        except OSError as error:
            if error.errno == errno.ENOBUFS:  # more was told than fits: look anyway
                return True
            raise


def _boot() -> int:
    """Start the boot in a process of its own: it uses attributes, which we serve."""
    child = os.fork()
    if not child:
        _boot_child()
    return child


def _boot_child() -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(f"{store.RUN}/boot.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream, target in ((0, null), (1, log), (2, log)):
        os.dup2(target, stream)
    launch = f"{store.HOME}/tools/launch"
    os.execve(launch, [launch, "fabric-boot"], units.ENVIRONMENT)


def _reap() -> dict[int, int]:
    """Process id -> wait status of every child that ended."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended[pid] = status
