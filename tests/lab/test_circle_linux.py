"""The circle of a Linux host: wish, bundle, real sandbox, read-back, reboot, and back to the start."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric import platforms
from rdma_fabric.assets import playbooks
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.lab.hosts import Host, HostFacts, HostPort, Neighbor
from rdma_fabric.platforms._contract import Call, Change, Disturbs
from rdma_fabric.push.bundle import Mode, bundle
from rdma_fabric.state import (
    UNMANAGED,
    ClassState,
    Difference,
    Marking,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    SystemState,
    WatchdogTimers,
    differences,
    forget_unknown,
    owned_part,
    waiting,
)
from tests.lab.hostlab import run, running

pytestmark = pytest.mark.lab

STACKS = ("ofed", "inbox")
FOREIGN = (
    ("/etc/sysctl.d/20-other.conf", "net.ipv4.tcp_fin_timeout = 30\n"),
    ("/etc/modules-load.d/other.conf", "dummy\n"),
    ("/etc/security/limits.d/other.conf", "slurm soft nofile 4096\n"),
)
DSCP = tuple({26: 3, 48: 6}.get(point, 0) for point in range(64))
OFF = ClassState(pfc_tx=False, pfc_rx=False, watchdog=False)


def rdma_port(name: str, priority: int = 3) -> PortState:
    """The worked example of the mlx5 page, with any lossless priority."""
    classes = {
        0: replace(OFF, share=Share("dwrr", 50)),
        priority: ClassState(pfc_tx=True, pfc_rx=True, watchdog=True, share=Share("dwrr", 50)),
        6: replace(OFF, share=Share("strict")),
    }
    settings = PortSettings(
        Mtu(ip=9000),
        QosState(
            trust="dscp",
            dscp_to_priority=tuple(priority if p == 3 else p for p in DSCP),
            classes=tuple(classes.get(p, OFF) for p in range(8)),
            watchdog=WatchdogTimers(200, 400, UNMANAGED, "drop"),
            dcbx="none",
            global_pause=False,
            cable_m=15,
        ),
        Marking(
            rdma_cm_tos=104,
            traffic_class=104,
            roce_v2=True,
            cnp_dscp=46,
            cnp_priority=5,
            np=(priority,),
            rp=(priority,),
            parameters=(("np_min_time_between_cnps", "8"), ("rp_rpg_ai_rate", "10")),
        ),
    )
    return PortState(name, "physical", settings)


SYSTEM = SystemState(
    sysctl=(
        ("net.core.somaxconn", "8192"),
        ("net.ipv4.conf.eth0.arp_ignore", "1"),
        ("net.ipv4.tcp_ecn", "1"),
    ),
    modules=(("ib_uverbs", True), ("rdma_cm", True), ("rdma_ucm", True)),
    limits=(("memlock", "unlimited"),),
    environment=(("NCCL_IB_HCA", "=mlx5_0,mlx5_1"), ("NCCL_IB_TC", "104"), ("UCX_TLS", "rc,sm x")),
)
WISH = NodeState(
    SYSTEM, (rdma_port("eth0"), rdma_port("eth1"), PortState("eth2", settings=PortSettings(Mtu(4200))))
)


@dataclass
class Lab:
    """One sandbox and what the inventory says of it."""

    host: Host
    hw: Hardware

    def observe(self) -> Observation:
        found = {}
        for question in platforms.questions(self.hw):
            _, out, error = run(self.host, question)
            assert error == ""
            found[question] = out
        return platforms.parse(found, self.hw)

    def realize(self, wish: NodeState) -> NodeState:
        return platforms.realize(wish, self.hw).state

    def change(self, wanted: NodeState) -> Change:
        return platforms.change(self.observe(), wanted, self.hw)

    def drive(self, change: Change, mode: Mode, run_name: str = "r1", timer: int = 300) -> dict[str, Any]:
        """As the playbook does: put the bundle, run it, take its result."""
        text = json.dumps(bundle(change, run_name, timer, mode))
        start = 'import json, sys; exec(json.load(open(sys.argv[1]))["program"])'
        put = f"cat > /run/fabric.json && python3 -c {shlex.quote(start)} /run/fabric.json"
        _, out, error = run(self.host, put, text)
        found: dict[str, Any] = json.loads(out or "{}")
        assert error == "" and found, error
        return found

    def to(self, wish: NodeState, run_name: str = "r1") -> Change:
        """All of a push that goes well."""
        change = self.change(self.realize(wish))
        applied = self.drive(change, "apply", run_name)
        assert (applied["failed"], applied["refused"]) == (None, ""), applied
        assert self.drive(change, "confirm", run_name)["failed"] is None
        return change

    def foreign(self) -> dict[str, str]:
        """Every file of /etc that is not ours, with its content and mode."""
        listing = (
            "find /etc -type f | sort | while read -r f; do grep -q 'managed by fabric' \"$f\" || "
            'stat -c "%n %a $(cksum < "$f")" "$f"; done'
        )
        return dict(line.split(" ", 1) for line in run(self.host, listing)[1].splitlines())


GROUPS = ("sysctl", "modules", "module_options", "limits", "environment")


def make(
    stack: str, manager: str, option: str, folder: Path, system: SystemState = SYSTEM
) -> tuple[HostFacts, Hardware]:
    ports = (
        HostPort("eth0", stack=stack, neighbor=Neighbor("leaf01", "Ethernet1/1")),
        HostPort("eth1", stack=stack),
        HostPort("eth2", nic="generic", gbps=25),
    )
    asked = " ".join(f"{group}.{name}" for group in GROUPS for name, _ in getattr(system, group))
    options = {"stack": stack, "asked": asked, **({"mtu_manager": option} if option else {})}
    hw = Hardware(
        ("linux", "nic_generic", "nic_mlx5"),
        ports=(
            PortHardware("eth0", speed_gbps=400, nic="mlx5", rdma="mlx5_0", bdf="0000:1b:00.0"),
            PortHardware("eth1", speed_gbps=400, nic="mlx5", rdma="mlx5_1", bdf="0000:2b:00.0"),
            PortHardware("eth2", speed_gbps=25, nic="generic"),
        ),
        options=tuple(sorted(options.items())),
    )
    return HostFacts("gpu01", ports, manager=manager, seed=FOREIGN), hw


@pytest.fixture(params=STACKS)
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    facts, hw = make(request.param, "netplan", "", tmp_path)
    with running(facts, tmp_path) as host:
        yield Lab(host, hw)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Lab]:
    facts, hw = make("ofed", "netplan", "", tmp_path)
    with running(facts, tmp_path) as host:
        yield Lab(host, hw)


def test_the_whole_circle(lab: Lab) -> None:
    wanted = lab.realize(WISH)
    blank, foreign = lab.observe(), lab.foreign()
    assert blank.neighbours == (("eth0", "leaf01", "Ethernet1/1"),)
    first = lab.change(wanted)
    assert first.blocked == () and not first.empty
    assert (
        lab.drive(first, "check")["changed"]
        and differences(owned_part(blank.running, wanted), lab.observe().running) == ()
    )

    applied = lab.drive(first, "apply")
    assert (applied["failed"], applied["refused"], applied["changed"]) == (None, "", True), applied
    seen = lab.observe()
    assert differences(wanted, seen.running) == ()
    assert differences(wanted, seen.stored) == ()
    assert lab.change(wanted).empty
    assert lab.drive(first, "apply")["changed"] is False
    assert lab.drive(first, "confirm")["failed"] is None
    assert lab.drive(first, "check", "r2")["changed"] is False
    assert lab.foreign() == foreign

    lab.host.reboot()
    again = lab.observe()
    assert differences(wanted, again.running) == () and differences(wanted, again.stored) == ()

    back = lab.realize(forget_unknown(owned_part(blank.running, wanted)))
    rolled = lab.change(back)
    assert lab.drive(rolled, "apply", "r3")["failed"] is None
    assert differences(back, lab.observe().running) == ()
    assert lab.drive(rolled, "undo", "r3")["undone"]
    assert differences(wanted, lab.observe().running) == ()
    assert lab.foreign() == foreign


def test_undo_leaves_nothing_behind(lab: Lab) -> None:
    blank, foreign = lab.observe(), lab.foreign()
    files = run(lab.host, "find /etc /usr/local -type f -o -type l | sort")[1]
    change = lab.change(lab.realize(WISH))
    lab.drive(change, "apply")
    assert lab.drive(change, "undo")["undone"]
    seen = lab.observe()
    # A loaded module stays: nothing unloads modules under a running host.
    assert [d.path for d in differences(owned_part(blank.running, WISH), seen.running)] == [
        f"system.modules.{name}"
        for name, live in blank.running.system.modules
        if live is False and (name, True) in SYSTEM.modules
    ]
    assert differences(blank.stored, seen.stored) == ()
    left = set(run(lab.host, "find /etc /usr/local -type f -o -type l | sort")[1].splitlines())
    assert left - set(files.splitlines()) == {"/usr/local/sbin/fabric-host"}
    assert lab.foreign() == foreign


def test_drift_is_repaired_with_what_it_takes(one: Lab) -> None:
    one.to(WISH)
    wanted = one.realize(WISH)
    bounces = {port: one.host.nic(port)["bounces"] for port in ("eth0", "eth1")}
    one.host.somebody("mlnx_qos -i eth0 --pfc 0,0,0,0,0,0,0,0; ip link set dev eth1 mtu 1500")
    change = one.change(wanted)
    assert {item.path for item in change.differences} == {
        "ports.eth0.qos.classes.3.pfc_tx",
        "ports.eth0.qos.classes.3.pfc_rx",
        "ports.eth1.mtu.ip",
    }
    assert [line for line in change.lines if not line.startswith("/etc/")] == [
        "ip link set dev eth1 mtu 9000",
        "systemctl enable fabric-qos@eth0.service",
        "mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0",
    ]
    assert change.level == Disturbs.PORT_BOUNCE
    done = one.drive(change, "apply", "r2")["done"]
    assert done == ["call ip link set dev eth1 mtu 9000", "call /usr/local/sbin/fabric-qos eth0"]
    assert differences(wanted, one.observe().running) == ()
    # One by somebody, one by us; the other port kept its link.
    assert one.host.nic("eth0")["bounces"] == bounces["eth0"] + 2
    assert one.host.nic("eth1")["bounces"] == bounces["eth1"]


def test_somebody_disables_the_unit(one: Lab) -> None:
    """Live is right and would be lost at the next boot."""
    one.to(WISH)
    one.host.somebody("systemctl disable fabric-qos@eth0.service; rm /etc/sysctl.d/zz-fabric.conf")
    change = one.change(one.realize(WISH))
    assert change.level == Disturbs.NOTHING and change.undo == ()
    done = one.drive(change, "apply", "r2")["done"]
    assert done == [
        "put /etc/sysctl.d/zz-fabric.conf",
        "call systemctl daemon-reload",
        "call systemctl enable fabric-qos@eth0.service",
    ]


def test_a_moved_priority(one: Lab) -> None:
    one.to(WISH)
    moved = NodeState(SYSTEM, (rdma_port("eth0", 4), rdma_port("eth1", 4), WISH.ports[2]))
    change = one.to(moved, "r2")
    assert "mlnx_qos -i eth1 --pfc 0,0,0,0,1,0,0,0" in change.lines
    seen = one.observe()
    assert differences(one.realize(moved), seen.running) == ()
    marking = seen.running.ports[0].settings.marking
    assert (marking.np, marking.rp) == ((4,), (4,))


def test_a_failing_step_takes_everything_back(one: Lab) -> None:
    blank = one.observe()
    change = one.change(one.realize(WISH))
    broken = replace(change, commit=(*change.commit, Call(("false",), unless=("false",))))
    found = one.drive(broken, "apply")
    assert found["failed"]["step"] == "false" and found["undone"] and not found["pending"]
    seen = one.observe()
    wanted = replace(WISH, system=replace(SYSTEM, modules=()))
    assert differences(owned_part(blank.running, wanted), seen.running) == ()


def test_without_confirmation_the_host_goes_back(one: Lab) -> None:
    blank = one.observe()
    wanted = replace(WISH, system=replace(SYSTEM, modules=()))
    before = owned_part(blank.running, wanted)
    change = one.change(one.realize(wanted))
    assert one.drive(change, "apply", timer=1)["pending"]
    end = time.monotonic() + 60
    while run(one.host, "test -e /run/fabric.lock")[0] == 0 and time.monotonic() < end:
        time.sleep(0.2)
    assert differences(before, one.observe().running) == ()
    assert "no confirmation came" in one.drive(change, "confirm")["refused"]


def test_a_reboot_before_the_confirmation(one: Lab) -> None:
    blank = one.observe()
    change = one.change(one.realize(WISH))
    one.drive(change, "apply", timer=600)
    one.host.reboot()
    # The files are back already; the next run does not wait for the live values.
    assert one.drive(change, "recover")["undone"]
    seen = one.observe()
    wanted = replace(WISH, system=replace(SYSTEM, modules=()))
    assert differences(owned_part(blank.running, wanted), seen.running) == ()
    assert differences(blank.stored, seen.stored) == ()


# ---------------------------------------------------------------- every kind, both layers

SERVICE = ("/usr/lib/systemd/system/slurmd.service", "[Service]\nExecStart=/usr/sbin/slurmd -D\n")
KINDS = SystemState(
    sysctl=(
        ("net.core.somaxconn", "8192"),
        ("net.ipv4.conf.eth0.arp_ignore", "1"),
        ("net.ipv4.ip_local_reserved_ports", ""),
        ("net.ipv4.tcp_rmem", "4096 87380 4194304"),
    ),
    modules=(("ib_uverbs", True), ("rdma_ucm", True)),
    module_options=(("mlx5_core.prof_sel", "3"),),
    limits=(("memlock", "unlimited"), ("nofile", "1048576"), ("slurmd.memlock", "unlimited")),
    environment=(("NCCL_IB_TC", "106"), ("UCX_TLS", "rc,sm x")),
)
"""One setting of every kind, a sysctl of no and one of several words."""
OURS = {
    "sysctl": "/etc/sysctl.d/zz-fabric.conf",
    "modules": "/etc/modules-load.d/90-fabric.conf",
    "module_options": "/etc/modprobe.d/zz-fabric.conf",
    "limits": "/etc/security/limits.d/zz-fabric.conf",
    "slurmd": "/etc/systemd/system/slurmd.service.d/zz-fabric.conf",
    "NCCL": "/etc/nccl.conf",
    "UCX": "/etc/profile.d/fabric-rdma.sh",
    "mtu": "/etc/fabric/mtu.conf",
}


def paths(found: Iterable[Difference]) -> set[str]:
    return {item.path.removeprefix("system.").removesuffix(".mtu.ip") for item in found}


def kinds(folder: Path, *seed: tuple[str, str]) -> tuple[HostFacts, Hardware, NodeState]:
    """A host whose intent names all of KINDS, and the MTU of two ports."""
    facts, hw = make("ofed", "netplan", "", folder, KINDS)
    ports = tuple(PortState(name, settings=PortSettings(Mtu(9000))) for name in ("eth0", "eth1"))
    return replace(facts, seed=(*FOREIGN, SERVICE, *seed)), hw, NodeState(KINDS, ports)


def test_every_kind_of_setting_both_ways(tmp_path: Path) -> None:
    """Stored right and live wrong, live right and not stored: told apart, and repaired with what it takes."""
    facts, hw, wish = kinds(tmp_path)
    with running(facts, tmp_path) as host:
        lab = Lab(host, hw)
        wanted = lab.realize(wish)
        option = "system.module_options.mlx5_core.prof_sel"
        assert lab.change(wanted).blocked == ()
        lab.to(wish)
        seen = lab.observe()
        assert waiting(wanted, seen) == {item.path for item in differences(wanted, seen.running)} == {option}
        assert lab.change(wanted).empty
        host.reboot()
        seen = lab.observe()
        assert seen.pending is None and lab.change(wanted).empty
        assert differences(wanted, seen.running) == differences(wanted, seen.stored) == ()

        host.somebody(
            "sysctl -w net.core.somaxconn=100 net.ipv4.ip_local_reserved_ports=8080; rmmod rdma_ucm; "
            "sysctl -w 'net.ipv4.tcp_rmem=4096 87380 6291456'; ip link set eth0 mtu 4096"
        )
        seen = lab.observe()
        live = paths(differences(wanted, seen.running))
        assert live == {
            "sysctl.net.core.somaxconn",
            "sysctl.net.ipv4.ip_local_reserved_ports",
            "sysctl.net.ipv4.tcp_rmem",
            "modules.rdma_ucm",
            "ports.eth0",
        }
        assert differences(wanted, seen.stored) == ()
        assert {item.path for item in lab.to(wish, "r2").differences} == {
            item.path for item in differences(wanted, seen.running)
        }

        host.somebody(f"rm {' '.join(OURS.values())}")
        seen = lab.observe()
        later = ("limits.memlock", "limits.nofile", "limits.slurmd.memlock")
        variables = ("environment.NCCL_IB_TC", "environment.UCX_TLS")
        # What counts for the next login, start or job has no live value besides the stored one.
        assert paths(differences(wanted, seen.running)) == {*later, *variables}
        everything = {f"{group}.{name}" for group in GROUPS for name, _ in getattr(KINDS, group)}
        assert paths(differences(wanted, seen.stored)) == {*everything, "ports.eth0", "ports.eth1"}
        done = lab.drive(lab.change(wanted), "apply", "r3")["done"]
        assert not [line for line in done if line.startswith(("call sysctl", "call modprobe", "call ip"))]
        assert {line.removeprefix("put ") for line in done} >= set(OURS.values())
        seen = lab.observe()
        assert differences(wanted, seen.running) == differences(wanted, seen.stored) == ()


def test_files_of_others_that_win_and_that_lose(tmp_path: Path) -> None:
    facts, hw, wish = kinds(
        tmp_path,
        ("/etc/sysctl.d/99-zz.conf", "net.core.somaxconn = 100\n"),
        ("/etc/sysctl.d/zzz-site.conf", "# site\nnet.ipv4.conf.eth0.arp_ignore = 2\n"),
        ("/etc/security/limits.d/99-site.conf", "* - memlock 64\n"),
        ("/etc/modprobe.d/site.conf", "blacklist rdma_ucm\noptions mlx5_core prof_sel=1\n"),
    )
    with running(facts, tmp_path) as host:
        lab = Lab(host, hw)
        wanted, foreign = lab.realize(wish), lab.foreign()
        change = lab.to(wish)
        assert dict(change.reasons) == {
            "system.sysctl.net.ipv4.conf.eth0.arp_ignore": (
                "second owner: /etc/sysctl.d/zzz-site.conf:2 sets it to 2"
            ),
            "system.modules.rdma_ucm": (
                "second owner: /etc/modprobe.d/site.conf:1 keeps it from being loaded"
            ),
        }
        host.reboot()
        seen = lab.observe()
        left = {"sysctl.net.ipv4.conf.eth0.arp_ignore", "modules.rdma_ucm"}
        assert paths(differences(wanted, seen.running)) == left
        assert paths(differences(wanted, seen.stored)) == left
        assert lab.change(wanted).empty and lab.foreign() == foreign


def test_a_way_back_takes_modules_off_the_list(one: Lab) -> None:
    """They stay loaded until the next boot: an unload could pull devices from under programs."""
    blank = one.observe()
    one.to(WISH)
    back = one.realize(forget_unknown(owned_part(blank.running, WISH)))
    one.to(back, "r2")
    assert "rdma_ucm" in run(one.host, "lsmod; ls /sys/module")[1]
    one.host.reboot()
    again = dict(one.observe().running.system.modules)
    # Settings of a port's RDMA-CM load their module themselves.
    assert (again["rdma_ucm"], again["rdma_cm"]) == (False, True)


def test_a_reloaded_driver_brings_its_mtu_back(one: Lab) -> None:
    one.to(WISH)
    one.host.somebody("modprobe -r mlx5_ib; modprobe -r mlx5_core; modprobe mlx5_core")
    seen = one.observe()
    assert [port.settings.mtu.ip for port in seen.running.ports] == [9000, 9000, 4200]


def test_an_rdma_driver_that_is_loaded_anew_brings_its_settings_back(one: Lab) -> None:
    """Its netdevs stay, so that no unit of theirs starts; udev tells of the RDMA devices."""
    one.to(WISH)
    wanted = one.realize(WISH)
    one.host.somebody("rmmod mlx5_ib; modprobe mlx5_ib")
    assert differences(wanted, one.observe().running) == ()
    one.host.somebody("rm /etc/udev/rules.d/90-fabric-rdma.rules; rmmod mlx5_ib; modprobe mlx5_ib")
    lost = paths(differences(wanted, one.observe().running))
    assert {f"ports.{port}.marking.rdma_cm_tos" for port in ("eth0", "eth1")} <= lost


def test_bridges_and_the_management_port_are_not_touched(one: Lab) -> None:
    shown = "ip -o link show mgmt0; ip -4 -o addr show mgmt0; sysctl -a -r mgmt0"
    before = run(one.host, shown)[1]
    one.host.somebody("ip link add br0 type bridge; ip link set eth2 master br0")
    change = one.to(WISH)
    assert dict(change.reasons) == {
        "ports.eth2.mtu.ip": "it is a port of bridge br0, which would follow and is never touched"
    }
    assert "mtu 1500" in run(one.host, "ip -o link show br0")[1]
    assert run(one.host, shown)[1] == before


def test_the_session_is_found(one: Lab) -> None:
    """By the address that it came in at, also behind sudo, which hides it; and by the way back."""

    def carried(prefix: str) -> str:
        found = {}
        for question in platforms.questions(one.hw):
            found[question] = run(one.host, f"{prefix} {question}")[1]
        return dict(platforms.parse(found, one.hw).facts).get("session", "")

    assert carried("") == ""
    here = "SSH_CONNECTION='198.51.100.1 50000 198.51.100.10 22'"
    assert carried(here) == "mgmt0"
    one.host.somebody("ip addr add 192.0.2.7/31 dev eth1")
    in_band = "SSH_CONNECTION='192.0.2.6 50000 192.0.2.7 22'"
    assert carried(in_band) == "eth1"
    assert carried(f"env {in_band} sh -c 'exec 3>&1; env -u SSH_CONNECTION \"$@\" >&3; true' sh") == "eth1"
    assert carried("SSH_CONNECTION='203.0.113.9 5 203.0.113.7 22'") == "?"
    # One that came in at an address of the loopback device goes back by a port.
    one.host.somebody("ip addr add 203.0.113.7/32 dev lo; ip route add 203.0.113.9 dev eth0")
    assert carried("SSH_CONNECTION='203.0.113.9 5 203.0.113.7 22'") == "eth0 lo"


MANAGERS = [("netplan", "netplan"), ("networkd", "none"), ("ifupdown", ""), ("NetworkManager", "none")]


@pytest.mark.parametrize(("manager", "option"), MANAGERS)
def test_mtus_outlive_a_reboot(manager: str, option: str, tmp_path: Path) -> None:
    facts, hw = make("ofed", manager, option, tmp_path)
    wish = NodeState(ports=tuple(PortState(p.name, settings=PortSettings(Mtu(9000))) for p in hw.ports))
    with running(facts, tmp_path) as host:
        lab = Lab(host, hw)
        lab.to(wish)
        assert differences(wish, lab.observe().running) == ()
        lab.host.reboot()
        seen = lab.observe()
        assert differences(wish, seen.running) == () and differences(wish, seen.stored) == ()
        assert lab.change(wish).empty


def test_networkd_with_files_of_its_own(tmp_path: Path) -> None:
    facts, hw = make("ofed", "networkd", "", tmp_path)
    rails = (
        "/etc/systemd/network/20-rails.network",
        "[Match]\nName=eth0 eth1\n\n[Network]\nLinkLocalAddressing=no\n",
    )
    wish = NodeState(ports=tuple(PortState(n, settings=PortSettings(Mtu(9000))) for n in ("eth0", "eth1")))
    with running(replace(facts, seed=(*FOREIGN, rails)), tmp_path) as host:
        lab = Lab(host, hw)
        change = lab.to(wish)
        assert "/etc/systemd/network/20-rails.network.d/zz-fabric.conf: MTUBytes=9000" in change.lines
        seen = lab.observe()
        assert differences(wish, seen.running) == () and differences(wish, seen.stored) == ()
        assert lab.change(wish).empty


# ---------------------------------------------------------------- the playbook


def test_the_playbook_reports_honestly(one: Lab, tmp_path: Path) -> None:
    """ansible-playbook itself; its ssh program is replaced by the way into the sandbox."""
    ansible = Path(sys.executable).with_name("ansible-playbook")
    if not ansible.exists():
        pytest.skip("no ansible-playbook beside this python")
    change = one.change(one.realize(WISH))
    ssh = tmp_path / "ssh"
    words = [shlex.quote(word) for word in one.host.argv("COMMAND")]
    ssh.write_text(f'#!/bin/bash\nexec {" ".join(words[:-1])} "${{@: -1}}"\n')
    ssh.chmod(0o755)

    def play(mode: Mode, *options: str) -> tuple[int, int, dict[str, Any]]:
        path = tmp_path / "bundle.json"
        path.write_text(json.dumps(bundle(change, "r1", 300, mode)))
        hosts = {
            "all": {
                "hosts": {"gpu01": {"ansible_host": "192.0.2.1"}},
                "vars": {
                    "ansible_ssh_executable": str(ssh),
                    "ansible_ssh_transfer_method": "piped",
                    "ansible_python_interpreter": one.host.python,
                    "fabric_bundle": str(path),
                    "fabric_run": "r1",
                },
            }
        }
        inventory = tmp_path / "hosts.json"
        inventory.write_text(json.dumps(hosts))
        environment = {
            **os.environ,
            "ANSIBLE_STDOUT_CALLBACK": "minimal",
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_HOME": str(tmp_path / "ansible"),
        }
        done = subprocess.run(
            [str(ansible), "-i", str(inventory), str(playbooks() / "host.yml"), *options],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=120,
        )
        text = run(one.host, "cat /run/fabric-r1.json.result")[1]
        return done.returncode, done.stdout.count("| CHANGED"), json.loads(text)

    status, changed, result = play("apply", "--check")
    assert (status, changed, result["changed"]) == (0, 1, True) and "would" in result
    assert not one.change(one.realize(WISH)).empty
    status, changed, result = play("apply")
    assert (status, changed, result["pending"]) == (0, 1, True), result
    assert one.change(one.realize(WISH)).empty
    modes: tuple[Mode, ...] = ("apply", "confirm", "apply")
    for mode in modes:
        status, changed, result = play(mode)
        assert (status, changed, result["changed"]) == (0, 0, False), mode
    one.host.somebody("echo foreign > /etc/nccl.conf")
    status, changed, result = play("apply")
    assert status == 2 and "/etc/nccl.conf is not ours" in result["refused"]
