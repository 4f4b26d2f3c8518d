"""Lab hosts: real Linux sandboxes without containers, root or hardware.

A host is a set of namespaces (user, mount, pid, network, UTS, IPC) with its own /etc, /var, /root,
/run and /tmp, its own netdevs and sysctls, and the machine's /usr. Nothing else of the machine is
in sight. Its first process is `hosttools.init`; others come in through nsenter. Under root the
sandbox runs as an unprivileged user id all the same, so that nothing in it can change the machine.

NICs are simulated (`hosttools`): tools in /usr/local/sbin, attributes at their true paths in /sys.
`stop` and `start` are a power cycle: files stay, what was live is lost.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rdma_fabric.lab import hosttools
from rdma_fabric.lab.hosttools import dispatch, store, units
from rdma_fabric.lab.ibsim import adapter
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact

# Above systemd's ranges for users and containers (uids(7) of systemd: 1879048192 and up are free).
_BASE_ID = 1_900_000_000
_IDS = 65536
_TIMEOUT_SECONDS = 60.0
_MANAGEMENT = "mgmt0"
_PYTHONS = (
    *("/usr/bin/python3", "/usr/local/bin/python3"),
    *(f"/usr/bin/python3.{minor}" for minor in (14, 13, 12, 11, 10)),
)
_PROGRAMS = ("nsenter", "ip", "mount", "sysctl", "env")
_ETC = (
    *("os-release", "debian_version", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf"),
    *("protocols", "services", "iproute2", "localtime", "login.defs"),
    *("redhat-release", "SuSE-release", "crypto-policies", "pki/tls/openssl.cnf", "ssl/openssl.cnf"),
)
_FOLDERS = (
    *("usr", "proc", "sys", "dev", "run", "tmp", "root", "home", "opt", "srv", "mnt"),
    *("var/lib/fabric-lab/sbin", "var/tmp", "var/log", "var/cache/opensm"),
    *("etc/sysctl.d", "etc/modprobe.d", "etc/modules-load.d", "etc/security/limits.d", "etc/alternatives"),
    *("etc/systemd/system/multi-user.target.wants", "etc/systemd/network", "etc/netplan"),
    *("etc/udev/rules.d", "etc/udev/hwdb.d"),
    *("etc/network/interfaces.d", "etc/NetworkManager/system-connections"),
)


@dataclass(frozen=True, slots=True)
class Neighbor:
    """What LLDP tells about the far end of a cable."""

    system: str
    port: str
    description: str = ""
    chassis: str = "02:00:00:00:00:01"


@dataclass(frozen=True, slots=True)
class HostPort:
    """One fabric port. `nic`: mlx5, bnxt, irdma, or anything else for a plain netdev without DCB.

    `stack`: "inbox", or another word ("ofed") for the vendor's driver package. `address` is IPv4 with
    its prefix, `address6` IPv6. `traits`: what TRAITS describes. `parent`: whose virtual function it is.
    """

    netdev: str
    nic: str = "mlx5"
    ibdev: str = ""
    bdf: str = ""
    gbps: int = 400
    stack: str = "inbox"
    address: str = ""
    address6: str = ""
    neighbor: Neighbor | None = None
    traits: tuple[str, ...] = ()
    parent: str = ""

    def __post_init__(self) -> None:
        """Raise RuntimeError for a trait that no hardware has."""
        for word in self.traits:
            if word.partition("=")[0] not in TRAITS:
                raise RuntimeError(f"unknown trait '{word}': use one of {', '.join(TRAITS)}")


TRAITS = {
    "firmware": "running and stored firmware version",
    "driver": "version of the netdev's driver",
    "bluefield": "mlx5: a BlueField, which its own processor owns until told otherwise (NV)",
    "restricted": "mlx5: a BlueField whose owner took rights from this host",
    "fixed-link-type": "mlx5: no LINK_TYPE parameter",
    "mp17": "bnxt: eight traffic classes in firmware, not three",
    "no-service-profile": "bnxt: firmware without service profile types; the driver owns the CNP class",
    "4tc": "irdma: four traffic classes, not eight",
    "fw-lldp": "bnxt: the firmware runs LLDP and DCBX (NVM)",
}
"""Words that make a port's hardware differ from the usual; those of other NICs say nothing."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a host is. `manager`: netplan, networkd, NetworkManager or ifupdown.

    `seed`: files (absolute path, content) that the host has besides those of a blank one.
    `services`: units that run after boot besides the usual ones, such as lldpad.
    """

    name: str
    ports: tuple[HostPort, ...] = ()
    manager: str = "netplan"
    management: str = _MANAGEMENT
    management_address: str = "198.51.100.10/24"
    iproute: str = "6.1.0"
    niccli: str = "233.2.77.9"
    mft: str = "4.17.0-106"
    seed: tuple[tuple[str, str], ...] = ()
    services: tuple[str, ...] = ()
    stacked: bool = False
    """The host has bonds or VLANs; what the kernel lacks of them is played."""
    management_neighbor: Neighbor | None = None
    ib: tuple[tuple[str, str, str], ...] = ()
    """InfiniBand ports: (netdev, ibdev, GUID)."""

    @classmethod
    def of(cls, device: DeviceFacts, data: Mapping[str, Any]) -> HostFacts:
        """From the lab's facts of a node and its JSON data.

        `data` may hold `ports` (netdev -> fields of HostPort) and any other field of HostFacts.
        Names not given are made up: mlx5_0, 0000:1b:00.0 and so on, in the order of the ports.
        """
        more: Mapping[str, Mapping[str, Any]] = data.get("ports", {})
        known = [port for port in device.ports if port.name != data.get("management", _MANAGEMENT)]
        virtual = [PortFact(name, 0) for name, fields in more.items() if fields.get("parent")]
        ports = []
        for port in [*known, *virtual]:
            fields = dict(more.get(port.name, {}))
            fields["traits"] = tuple(fields.get("traits", ()))
            if isinstance(fields.get("neighbor"), Mapping):
                fields["neighbor"] = Neighbor(**fields["neighbor"])
            elif port.peer_node and "neighbor" not in fields:
                fields["neighbor"] = Neighbor(port.peer_node, port.peer_port)
            fields.setdefault("gbps", port.speed_gbps or 400)
            ports.append(HostPort(port.name, **fields))
        rest = {key: value for key, value in data.items() if key != "ports"}
        if isinstance(rest.get("management_neighbor"), Mapping):
            rest["management_neighbor"] = Neighbor(**rest["management_neighbor"])
        rest["seed"] = tuple((path, text) for path, text in rest.get("seed", ()))
        rest["services"] = tuple(rest.get("services", ()))
        rest["ib"] = tuple(
            (name, one.get("ibdev", ""), one["guid"]) for name, one in rest.get("ib", {}).items()
        )
        return cls(device.name, tuple(ports), **rest)


class Host:
    """One sandbox; its files lie below `directory` and outlive `stop`."""

    def __init__(
        self, facts: HostFacts | DeviceFacts, directory: Path, data: Mapping[str, Any] | None = None
    ) -> None:
        self.facts = facts if isinstance(facts, HostFacts) else HostFacts.of(facts, data or {})
        self.directory = directory.absolute()
        self.root = self.directory / "root"
        self.ibsim = ""
        """Name under which ibsim is reached; without one the host's InfiniBand ports are dead."""
        self._process: subprocess.Popen[bytes] | None = None
        self._agent: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._slow: dict[str, int] = {}

    @property
    def python(self) -> str:
        """The python3 that exists in the sandbox (for ansible_python_interpreter)."""
        return _python() or _PYTHONS[0]

    @property
    def running(self) -> bool:
        """True between start and stop, while its first process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Make what is missing of its files and boot it; RuntimeError says why it cannot be."""
        if self.running:
            raise RuntimeError(f"{self.facts.name} runs already")
        if reason := _missing():
            raise RuntimeError(reason)
        self._prepare()
        command = [self.python, "-SEs", f"/proc/self/cwd/root{store.HOME}/tools/launch", "fabric-init"]
        self._process = subprocess.Popen(
            command,
            cwd=self.directory,
            env=units.ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            extra_groups=[] if _is_root() else None,
        )
        try:
            self._boot(time.monotonic() + _TIMEOUT_SECONDS)
        except RuntimeError:
            self.stop()
            raise

    def stop(self) -> None:
        """Take the power away: every process of the sandbox ends at once."""
        agent, self._agent = self._agent, None
        if agent is not None:
            _end(agent)
        process, self._process, self._pid = self._process, None, 0
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.close()
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()

    def reboot(self) -> None:
        """A power cycle: live MTUs, sysctls, modules and NIC settings are lost, then the host boots."""
        self.stop()
        self.start()

    def erase(self) -> None:
        """Forget the disk of a stopped host: the next start is that of a blank one."""
        if self.running:
            raise RuntimeError(f"{self.facts.name} runs")
        shutil.rmtree(self.directory, ignore_errors=True)

    def argv(self, command: str | None, user: str = "root") -> list[str]:
        """What to run for a login shell (None) or one command; an account that it does not know is root."""
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        words = [shell, "-l"] if command is None else [shell, "-c", command]
        number = self._account(user)
        if number:
            words = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--", *words]
        return self._enter(words)

    def _account(self, user: str) -> int:
        """Number of an account of /etc/passwd; 0 also where this machine lets us have only one."""
        if user == "root" or not _is_root():
            return 0
        rows = (line.split(":") for line in self.files("/etc/passwd").decode().splitlines())
        return next((int(row[2]) for row in rows if row[0] == user), 0)

    def sftp_argv(self) -> list[str]:
        """What to run for the sftp subsystem."""
        return self._enter([f"{store.HOME}/tools/launch", "fabric-sftp"])

    def somebody(self, command: str, timeout: float = 60.0) -> str:
        """Another administrator runs a command; returns both streams of its output."""
        done = subprocess.run(
            self.argv(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=units.ENVIRONMENT,
            timeout=timeout,
            check=False,
        )
        return done.stdout.decode(errors="replace")

    def files(self, path: str) -> bytes:
        """Content of a file: as a running host sees it, else what lies on its disk."""
        base = Path(f"/proc/{self._pid}/root") if self.running else self.root
        return (base / path.lstrip("/")).read_bytes()

    def tell(self, health: Mapping[str, Any]) -> None:
        """Write what its ports count and what ails them (`hosttools.health`) where its tools read it."""
        path = self.root / store.HEALTH.lstrip("/")
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w") as file:
            json.dump(health, file)
        if _is_root():
            os.chown(fresh, _BASE_ID, _BASE_ID)
        fresh.rename(path)
        if self.running and self._slow != health["speeds"]:
            self._slow = dict(health["speeds"])
            launch = [f"{store.HOME}/tools/launch", "fabric-health"]
            subprocess.run(
                self._enter(launch), stdin=subprocess.DEVNULL, timeout=_TIMEOUT_SECONDS, check=False
            )

    def nic(self, netdev: str) -> dict[str, Any]:
        """State of a port's hardware (keys: `hosttools.store.Port`), such as `bounces`."""
        state: dict[str, Any] = json.loads(self.files(store.NIC))[netdev]
        return state

    def _enter(self, command: list[str]) -> list[str]:
        """nsenter into all namespaces, with an environment that has nothing of ours."""
        if not self.running:
            raise RuntimeError(f"{self.facts.name} is down")
        keep = [] if _is_root() else ["--preserve-credentials"]
        own = {"HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/bash", "TERM": "xterm"}
        settings = [f"{key}={value}" for key, value in {**units.ENVIRONMENT, **own}.items()]
        into = ["nsenter", "-t", str(self._pid), "-U", "-m", "-n", "-u", "-i", "-p", *keep, "--"]
        return [*into, "/usr/bin/env", "-i", "-C", "/root", *settings, *command]

    # --- start ---

    def _boot(self, deadline: float) -> None:
        process = self._process
        assert process is not None and process.stdin is not None
        self._expect("userns", deadline)
        _map_ids(process.pid)
        process.stdin.write(b"mapped\n")
        process.stdin.flush()
        self._pid = int(self._expect("pid ", deadline))
        self._expect("built", deadline)
        if self.facts.ib and self.ibsim:
            self._agent = self._infiniband(deadline)
        process.stdin.write(b"boot\n")
        process.stdin.flush()
        self._expect("ready", deadline)

    def _infiniband(self, deadline: float) -> subprocess.Popen[bytes]:
        """The agent (`hosttools.ib`): the sandbox's files, the machine's network and process ids."""
        keep = [] if _is_root() else ["--preserve-credentials"]
        agent = subprocess.Popen(
            [
                *("nsenter", "-t", str(self._pid), "-U", "-m", "-u", "-i", *keep, "--"),
                *(self.python, "-SEs", f"{store.HOME}/tools/launch", "fabric-ib"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**units.ENVIRONMENT, "IBSIM_SOCKNAME": self.ibsim},
            start_new_session=True,
        )
        assert agent.stdout is not None
        ready = select.select([agent.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
        if not ready or agent.stdout.readline() != b"ready\n":
            _end(agent)
            raise RuntimeError(f"{self.facts.name}: its InfiniBand does not come up")
        return agent

    def _expect(self, word: str, deadline: float) -> str:
        """The rest of the line that starts with the word; RuntimeError for any other, or none."""
        assert self._process is not None and self._process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise RuntimeError(f"{self.facts.name} does not boot")
            byte = os.read(self._process.stdout.fileno(), 1)
            if not byte:
                break
            line += byte
        text = line.decode().strip()
        if not text.startswith(word):
            assert self._process.stderr is not None
            said = "" if text else self._process.stderr.read().decode(errors="replace").strip()
            raise RuntimeError(f"{self.facts.name}: {text.removeprefix('error: ') or said or 'it ended'}")
        return text.removeprefix(word)

    def _prepare(self) -> None:
        """The host's disk: a blank host where there is none, and the lab's own files anew."""
        blank = not (self.root / "etc").is_dir()
        self.directory.mkdir(parents=True, exist_ok=True)
        for folder in _FOLDERS:
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        home = self.root / store.HOME.lstrip("/")
        _install(home / "tools", self.python)
        (home / "facts.json").write_text(json.dumps(self._facts()))
        if blank:
            self._blank()
        vendors = {port.nic for port in self.facts.ports if port.stack != "inbox"}
        for tool in dispatch.TOOLS:
            link = home / "sbin" / tool
            if dispatch.VENDOR.get(tool, "") in {"", *vendors} and not link.is_symlink():
                link.symlink_to(f"{store.HOME}/tools/launch")
        fuse = self.root / ".fuse"
        if _is_root():
            if not fuse.exists() and Path("/dev/fuse").exists():
                os.mknod(fuse, 0o20600, Path("/dev/fuse").stat().st_rdev)
            _own(self.directory)

    def _facts(self) -> dict[str, Any]:
        """What the tools read (`hosttools.store.Facts`)."""
        ports: list[dict[str, Any]] = []
        counts: dict[str, int] = {}
        for index, port in enumerate(self.facts.ports):
            number = counts.setdefault(port.nic, 0)
            counts[port.nic] += 1
            digest = hashlib.sha256(f"{self.facts.name} {port.netdev}".encode()).hexdigest()
            prefix = {"mlx5": "mlx5_", "bnxt": "bnxt_re", "irdma": "rocep"}.get(port.nic, "")
            made = {
                "mac": "02:" + ":".join(digest[at : at + 2] for at in range(0, 10, 2)),
                "wire": f"p{index}",
                "ibdev": port.ibdev or (f"{prefix}{number}" if prefix else ""),
                "bdf": port.bdf or self._address(ports, port, index),
            }
            ports.append({**asdict(port), **made})
        beside = self.facts.management_neighbor
        return {
            "name": self.facts.name,
            "kernel": platform.release(),
            "iproute": self.facts.iproute,
            "niccli": self.facts.niccli,
            "mft": self.facts.mft,
            "manager": self.facts.manager,
            "stacked": self.facts.stacked,
            "management": self.facts.management,
            "management_address": self.facts.management_address,
            "services": list(self.facts.services),
            "lldp": {self.facts.management: asdict(beside)} if beside else {},
            "ports": ports,
            "ib": {
                netdev: {"ibdev": ibdev, "guid": guid, "adapter": adapter(self.facts.name, netdev, ibdev)}
                for netdev, ibdev, guid in self.facts.ib
            },
        }

    def _address(self, known: list[dict[str, Any]], port: HostPort, index: int) -> str:
        """A PCI address where none is given; virtual functions come after an adapter's two physical ones."""
        above = next((other["bdf"] for other in known if other["netdev"] == port.parent), "")
        if not above:
            return f"{index // 14:04x}:{0x1B + 0x10 * (index % 14):02x}:00.0"
        bus = above.rpartition(":")[0]
        number = 2 + sum(bool(other["parent"]) and other["bdf"].startswith(bus) for other in known)
        return f"{bus}:{number // 8:02x}.{number % 8}"

    def _blank(self) -> None:
        """The /etc of a host that somebody else set up: only what programs need, and foreign files."""
        for name in _ETC:
            source, target = Path("/etc") / name, self.root / "etc" / name
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            elif source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        for path, text, mode in _foreign(self.facts):
            target = self.root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(mode)


def _foreign(facts: HostFacts) -> list[tuple[str, str, int]]:
    """Files of a blank host that are not ours, and must stay as they are: path, content, mode."""
    name, netdev = facts.name, facts.management
    files = [
        ("/etc/hostname", f"{name}\n", 0o644),
        ("/etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost\n", 0o644),
        (
            "/etc/passwd",
            "root:x:0:0:root:/root:/bin/bash\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            "slurm:x:64030:64030:Slurm workload manager:/var/lib/slurm:/usr/sbin/nologin\n",
            0o644,
        ),
        ("/etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\nslurm:x:64030:\n", 0o644),
        ("/etc/sysctl.d/10-site.conf", "# set by the site team\nnet.ipv4.tcp_keepalive_time = 600\n", 0o644),
        ("/etc/site-secret", "token=hunter2-site-owned\n", 0o600),
    ]
    address = facts.management_address
    plain = f"[Match]\nName={netdev}\n\n[Network]\nAddress={address}\n"
    managers = {
        "netplan": (
            "/etc/netplan/50-cloud-init.yaml",
            f"network:\n  version: 2\n  ethernets:\n    {netdev}:\n      addresses: [{address}]\n",
            0o600,
        ),
        "networkd": (f"/etc/systemd/network/10-{netdev}.network", plain, 0o644),
        "NetworkManager": (
            f"/etc/NetworkManager/system-connections/{netdev}.nmconnection",
            f"[connection]\nid={netdev}\ntype=ethernet\ninterface-name={netdev}\n\n[ipv4]\naddress1={address}\n",
            0o600,
        ),
        "ifupdown": (
            "/etc/network/interfaces",
            f"auto lo {netdev}\niface lo inet loopback\niface {netdev} inet static\n    address {address}\n",
            0o644,
        ),
    }
    private = (
        "/etc/netplan/",
        "/etc/NetworkManager/system-connections/",
    )  # who else can read them is refused
    seed = [(path, text, 0o600 if path.startswith(private) else 0o644) for path, text in facts.seed]
    return [*files, managers[facts.manager], *seed]


# --- the machine ---


def available() -> str:
    """Nothing when this machine can run sandboxes, else the reason. Tries one."""
    with tempfile.TemporaryDirectory(prefix="fabric-lab-") as folder:
        host = Host(HostFacts("probe"), Path(folder) / "probe")
        try:
            host.start()
        except (RuntimeError, OSError) as error:
            return f"lab hosts need user namespaces: {error}"
        host.stop()
    return ""


def _is_root() -> bool:
    return os.geteuid() == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the input of a helper, which ends it."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    try:
        process.wait(5.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


@functools.cache
def _python() -> str:
    """The first python below /usr that is new enough for the tools (3.10), or nothing."""
    ask = "import sys; sys.exit(sys.version_info < (3, 10))"
    for path in _PYTHONS:
        if os.access(path, os.X_OK) and not subprocess.run([path, "-SEsc", ask], check=False).returncode:
            return path
    return ""


def _missing() -> str:
    """What the machine lacks, before trying."""
    search = units.ENVIRONMENT["PATH"]
    absent = [name for name in _PROGRAMS if shutil.which(name, path=search) is None]
    if absent:
        return (
            f"missing programs: {', '.join(absent)} (packages util-linux, iproute2, mount, procps, coreutils)"
        )
    if not _python():
        return "no python3 >= 3.10 below /usr, the only part of this machine that a sandbox sees"
    return ""


def _map_ids(pid: int) -> None:
    """Map the sandbox's root to an id without rights here: ours, or under root one that nobody has."""
    base = Path(f"/proc/{pid}")
    if _is_root():
        users = groups = f"0 {_BASE_ID} {_IDS}"
    else:
        users, groups = f"0 {os.geteuid()} 1", f"0 {os.getegid()} 1"
        (base / "setgroups").write_text("deny")
    try:
        (base / "uid_map").write_text(users)
        (base / "gid_map").write_text(groups)
    except OSError as error:
        raise RuntimeError(f"user ids cannot be mapped: {error.strerror}") from error


def _own(directory: Path) -> None:
    """Give the tree to the sandbox's root where it is not its own yet."""
    for folder, folders, files in os.walk(directory):
        for name in (".", *folders, *files):
            path = os.path.join(folder, name)  # noqa: PTH118 - hundreds of files per start
            if os.lstat(path).st_uid < _BASE_ID:
                os.chown(path, _BASE_ID, _BASE_ID, follow_symlinks=False)


def _install(folder: Path, python: str) -> None:
    """Copy the tools, compiled for the sandbox's python, and the program that starts them."""
    toolkit = _toolkit(python)
    mark = folder / "digest"
    if mark.exists() and mark.read_bytes() == toolkit["digest"]:
        return
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in toolkit.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    launch = folder / "launch"
    launch.write_text(
        f"#!{python} -SEs\nimport sys\nsys.path.append({store.HOME + '/tools'!r})\n"
        "from hosttools.dispatch import main\nsys.exit(main(sys.argv))\n"
    )
    launch.chmod(0o755)


@functools.cache
def _toolkit(python: str) -> Mapping[str, bytes]:
    """Relative path -> content of the package `hosttools` and of PyYAML, sources and bytecode."""
    import yaml

    with tempfile.TemporaryDirectory(prefix="fabric-lab-") as name:
        folder = Path(name)
        for package in (hosttools, yaml):
            assert package.__file__ is not None
            target = folder / package.__name__.rpartition(".")[2]
            target.mkdir()
            for source in Path(package.__file__).parent.glob("*.py"):
                shutil.copyfile(source, target / source.name)
        compiling = [python, "-SEsm", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "."]
        subprocess.run(compiling, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        paths = sorted(path for path in folder.rglob("*.py*") if path.is_file())
        found = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    digest = hashlib.sha256(python.encode())
    for relative, content in found.items():
        digest.update(relative.encode() + content)
    return {**found, "digest": digest.digest()}
