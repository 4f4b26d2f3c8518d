"""The guest as a node of a fabric: what is on it, and the command line applied to it."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.fabrics import Fabric, Ran
from tests.vm.machine import Machine

INVENTORY = Path(__file__).parent / "inventory"
NODE = "gpu01"
RDMA = {"rxe0": "data0", "rxe1": "data1"}
MTU_FILE = "/sys/class/net/{}/mtu"
SYSCTL = {
    "net.core.rmem_max": "16777216",
    "net.core.wmem_max": "16777216",
    "net.core.netdev_max_backlog": "250000",
    "net.core.default_qdisc": "fq",
    "net.ipv4.neigh.default.gc_thresh3": "8192",
    "net.ipv4.tcp_ecn": "1",
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
}
"""As in the intent, and different from what Debian's kernel starts with."""
MODULES = ("ib_core", "ib_uverbs", "ib_umad", "rdma_cm", "rdma_ucm")
HOLD = "/run/hold-confirm"
"""While this file is there, a confirmation waits; the run dies in its place."""


_LISTING = """
import hashlib, os
for top in ("/etc", "/usr/local"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith("~") or (folder == "/etc" and name.endswith("-")):
                continue
            link = os.path.islink(path)
            text = os.readlink(path) if link else hashlib.sha256(open(path, "rb").read()).hexdigest()[:16]
            stat = os.lstat(path)
            print(f"{stat.st_uid}:{stat.st_mode & 0o7777:o}", text.replace(" ", "_"), path)
"""
"""One process: in software emulation starting programs is what costs."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What works on the guest now, as the kernel and systemd tell it."""

    mtu: dict[str, int]
    active_mtu: dict[str, int]
    sysctl: dict[str, str]
    modules: frozenset[str]
    netns_mode: str
    tos: dict[str, str]
    memlock: str
    """`ulimit -l` of a login of its own, KiB."""

    @property
    def settings(self) -> tuple[Any, ...]:
        """Everything but modules, which nobody unloads."""
        return self.mtu, self.active_mtu, self.sysctl, self.netns_mode, self.tos, self.memlock


@dataclass(slots=True)
class Guest:
    """A machine, and the folder of the fabric that it is the only node of."""

    machine: Machine
    fabric: Fabric

    @classmethod
    def of(cls, machine: Machine, folder: Path) -> Guest:
        """With the tests' inventory, the image's host key and the account `ops`."""
        shutil.copytree(INVENTORY, folder)
        shutil.copy(machine.known_hosts, folder / "known_hosts")
        found = cls(machine, Fabric(folder))
        found.login("ops")
        return found

    def login(self, user: str) -> None:
        """From now on the fabric's commands log in as this user."""
        # A guest in software on a busy machine may need minutes for what a host does in a second.
        patience = "conn_timeout: 120, banner_timeout: 120, auth_timeout: 120, read_timeout_override: 600"
        extras = f"{{key_file: {self.machine.image.login_key}, {patience}}}"
        key = f"connection_options: {{netmiko: {{extras: {extras}}}}}"
        where = f"hostname: 127.0.0.1, port: {self.machine.port}, username: {user}"
        self.fabric.write(hosts=f"{NODE}: {{groups: [gpu], {where}, {key}}}\n")

    # -- the command line, on a real node

    def apply(self, *words: str, status: int | None = None) -> Ran:
        """`fabric apply --yes --allow loss --format json`."""
        return self.fabric.run("apply", "--yes", "--allow", "loss", "--format", "json", *words, status=status)

    def drift(self, *words: str, status: int | None = None) -> Ran:
        """`fabric drift --format json`."""
        return self.fabric.run("drift", "--format", "json", *words, status=status)

    def rollback(self, run: str, status: int | None = None) -> Ran:
        """`fabric rollback RUN`."""
        return self.fabric.run("rollback", run, "--yes", "--allow", "loss", "--format", "json", status=status)

    def row(self, ran: Ran) -> dict[str, Any]:
        """The guest's row of an apply or rollback."""
        found: dict[str, Any] = ran.rows[NODE]
        return found

    # -- the guest

    def facts(self) -> Facts:
        """One look at everything."""
        keys = " ".join(SYSCTL)
        said = self.machine.root(
            "cd /sys/class/net; for p in data*; do echo mtu $p $(cat $p/mtu); done; "
            "for d in rxe0 rxe1; do echo active $d "
            "$(ibv_devinfo -d $d | sed -n 's/^.*active_mtu:[^0-9]*\\([0-9]*\\).*/\\1/p'); done; "
            f"for k in {keys}; do echo sysctl $k $(sysctl -n $k); done; "
            "cut -d' ' -f1 /proc/modules | sed 's/^/module /'; "
            "echo netns_mode $(cat /sys/module/ib_core/parameters/netns_mode); "
            "cd /sys/kernel/config/rdma_cm; for d in rxe0 rxe1; do mkdir $d; "
            "echo tos $d $(cat $d/ports/1/default_roce_tos); rmdir $d; done"
        )
        rows = [line.split() for line in said.splitlines()]
        return Facts(
            mtu={row[1]: int(row[2]) for row in rows if row[0] == "mtu"},
            active_mtu={row[1]: int(row[2]) for row in rows if row[0] == "active"},
            sysctl={row[1]: " ".join(row[2:]) for row in rows if row[0] == "sysctl"},
            modules=frozenset(row[1] for row in rows if row[0] == "module"),
            netns_mode=next(row[1] for row in rows if row[0] == "netns_mode"),
            tos={row[1]: row[2] for row in rows if row[0] == "tos"},
            memlock=self.machine.run("ulimit -l", fresh=True).strip(),
        )

    def files(self) -> dict[str, str]:
        """Path -> owner, mode and checksum (or target) of what administrators, or we, may write."""
        said = self.machine.root(f"python3 -c {shlex.quote(_LISTING)}")
        rows = (line.split(" ", 2) for line in said.splitlines())
        return {path: f"{mode} {text}" for mode, text, path in rows}

    def last(self) -> dict[str, Any]:
        """How the last change of a run ended on the guest."""
        found: dict[str, Any] = json.loads(self.machine.root("cat /var/lib/fabric/last.json"))
        return found

    def pending(self) -> bool:
        """True while a change waits for its confirmation."""
        return self.machine.root("ls /var/lib/fabric", check=False).find("pending.json") >= 0
