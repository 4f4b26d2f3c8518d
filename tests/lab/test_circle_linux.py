"""The circle of a Linux host: wish, bundle, real sandbox, read-back, reboot, and back to the start."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
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


def make(stack: str, manager: str, option: str, folder: Path) -> tuple[HostFacts, Hardware]:
    ports = (
        HostPort("eth0", stack=stack, neighbor=Neighbor("leaf01", "Ethernet1/1")),
        HostPort("eth1", stack=stack),
        HostPort("eth2", nic="generic", gbps=25),
    )
    groups = ("sysctl", "modules", "module_options", "limits", "environment")
    asked = " ".join(f"{group}.{name}" for group in groups for name, _ in getattr(SYSTEM, group))
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
