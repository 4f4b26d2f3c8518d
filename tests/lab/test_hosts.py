"""Lab hosts are sandboxes: what is theirs, what is kept, what is lost, and what they cannot see."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import rdma_fabric
from rdma_fabric.lab.hosts import Host, HostFacts, HostPort, Neighbor
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact
from tests.lab.hostlab import GPU, run, running, said, why_not

SOURCES = Path(rdma_fabric.__path__[0]).parent


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(GPU, tmp_path_factory.mktemp("hosts")) as host:
        yield host


# --- what is in sight ---


def test_the_sandbox_is_a_host_of_its_own(host: Host) -> None:
    assert said(host, "hostname; id -u; pwd") == "gpu01\n0\n/root\n"
    netdevs = said(host, "ls /sys/class/net").split()
    assert netdevs == sorted(["lo", "mgmt0", *(port.netdev for port in GPU.ports)])
    links = {link["ifname"]: link for link in json.loads(said(host, "ip -j link"))}
    assert set(links) == set(netdevs)
    assert {links[name]["mtu"] for name in netdevs if name != "lo"} == {1500}
    assert {links[name]["operstate"] for name in netdevs if name != "lo"} == {"UP"}
    assert "198.51.100.10" in said(host, "ip -4 addr show mgmt0")
    assert int(said(host, "ls -d /proc/[0-9]* | wc -l")) < 8
    assert said(host, "cat /proc/1/comm /sys/class/net/ens4np0/speed") == "systemd\n200000\n"


def test_nothing_of_the_machine_is_in_sight(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FABRIC_PASSWORD", "swordfish")
    assert "FABRIC_PASSWORD" not in said(host, "env")
    assert said(host, "ls -A /root /home /tmp /opt /srv").split() == [
        "/home:",
        "/opt:",
        "/root:",
        "/srv:",
        "/tmp:",
    ]
    top = set(said(host, "ls /").split())
    merged = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}
    own = {"dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var"}
    assert top - merged == own
    assert run(host, "cat /etc/shadow")[0] == 1
    environment = {**os.environ, "SECRET_OF_CALLER": "swordfish"}
    done = subprocess.run(host.argv("env"), env=environment, capture_output=True, text=True, check=True)
    assert "swordfish" not in done.stdout


def test_what_is_global_on_the_machine_cannot_be_changed(host: Host) -> None:
    before = Path("/proc/sys/vm/swappiness").read_text()
    code, _, error = run(host, "sysctl -w vm.swappiness=1")
    assert (code != 0, "permission denied" in error) == (True, True)
    assert Path("/proc/sys/vm/swappiness").read_text() == before
    assert run(host, "touch /usr/bin/x")[0] == 1
    code, _, error = run(host, "sysctl -n net.core.netdev_max_backlog")
    assert (code != 0, "cannot stat" in error) == (True, True)


def test_sysctls_of_the_network_are_its_own(host: Host) -> None:
    here = Path("/proc/sys/net/ipv4/tcp_retries2")
    before = here.read_text()
    said(host, "sysctl -w net.ipv4.tcp_retries2=6")
    assert said(host, "sysctl -n net.ipv4.tcp_retries2") == "6\n"
    assert here.read_text() == before
    assert said(host, "sysctl -n net.ipv4.tcp_keepalive_time") == "600\n"  # 10-site.conf, applied at boot


def test_a_blank_host_has_foreign_files(host: Host) -> None:
    assert host.files("/etc/sysctl.d/10-site.conf").startswith(b"# set by the site team")
    assert b"slurm:" in host.files("/etc/passwd")
    assert b"mgmt0" in host.files("/etc/netplan/50-cloud-init.yaml")
    assert said(host, "stat -c %a /etc/site-secret") == "600\n"


def test_the_python_it_names_is_there(host: Host) -> None:
    assert (
        said(host, f"{host.python} -c 'import json, zipfile, tempfile; print(tempfile.gettempdir())'")
        == "/tmp\n"
    )


def test_links_that_somebody_makes_are_shown(host: Host) -> None:
    net = "/sys/class/net"
    said(host, "ip link add br7 type bridge; ip link set ens6 master br7")
    wait = f"for i in $(seq 100); do [ -e {net}/ens6/master ] && break; sleep 0.05; done"
    assert said(host, f"{wait}; readlink {net}/ens6/master; ls -d {net}/br7/bridge {net}/ens6/brport") == (
        f"../br7\n{net}/br7/bridge\n{net}/ens6/brport\n"
    )
    gone = f"for i in $(seq 100); do [ -e {net}/br7 ] || break; sleep 0.05; done"
    assert run(host, f"ip link del br7; {gone}; ls -d {net}/br7 {net}/ens6/master {net}/ens6/brport")[1] == ""


def test_a_login_shell_reads_commands(host: Host) -> None:
    done = subprocess.run(host.argv(None), input="echo $USER\n", capture_output=True, text=True, check=True)
    assert done.stdout == "root\n"


def test_somebody_sees_both_streams(host: Host) -> None:
    assert host.somebody("echo a; echo b >&2; exit 3") == "a\nb\n"


def test_orphans_are_reaped(host: Host) -> None:
    said(host, "(sleep 0.05 & ) ; (true & )")
    time.sleep(0.3)
    assert "<defunct>" not in said(host, "ps ax")


@pytest.mark.skipif(shutil.which("sftp") is None, reason="hardware: no sftp program on this machine")
def test_sftp_serves_openssh(host: Host, tmp_path: Path) -> None:
    data = os.urandom(700_000)
    (tmp_path / "up").write_bytes(data)
    lines = [
        f"put {tmp_path}/up /root/there",
        "chmod 640 /root/there",
        f"get /root/there {tmp_path}/down",
        "mkdir /tmp/d",
        "rename /root/there /root/moved",
        "ln -s /etc/hostname /tmp/d/link",
        "ls -l /tmp/d",
        "ls -l /root",
        "pwd",
        "-get /etc/nope",
        "rm /root/moved",
        "rm /tmp/d/link",
        "rmdir /tmp/d",
    ]
    server = " ".join(host.sftp_argv())
    done = subprocess.run(
        ["sftp", "-b", "-", "-D", server],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "down").read_bytes() == data
    assert "-rw-r-----" in done.stdout and "700000" in done.stdout and "/tmp/d/link" in done.stdout
    assert "Remote working directory: /root" in done.stdout
    assert 'File "/etc/nope" not found' in done.stderr


# --- power ---


def test_a_reboot_keeps_the_disk_and_loses_what_was_live(tmp_path: Path) -> None:
    ports = (HostPort("eth2"), HostPort("eth3"))
    unit = "[Service]\nType=oneshot\nExecStart=/usr/local/sbin/again\n[Install]\nWantedBy=multi-user.target\n"
    with running(HostFacts("h1", ports), tmp_path) as host:
        said(host, "sysctl -w net.ipv4.tcp_syn_retries=3 net.ipv4.tcp_retries2=9; modprobe rdma_ucm")
        said(host, "echo net.ipv4.tcp_retries2=7 > /etc/sysctl.d/90-fabric.conf")
        said(host, "echo 8021q > /etc/modules-load.d/x.conf")
        run(host, "umask 077; cat > /etc/netplan/90.yaml", "network: {ethernets: {eth2: {mtu: 9216}}}\n")
        said(
            host,
            "ip link set eth3 mtu 9000; mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0; touch /run/x /tmp/x /root/x",
        )
        said(host, "printf '#!/bin/sh\\necho ran >> /var/log/again\\n' > /usr/local/sbin/again")
        said(host, "chmod 755 /usr/local/sbin/again")
        run(host, "cat > /etc/systemd/system/again.service", unit)
        said(host, "systemctl enable --now again; mlxconfig -d 0000:1b:00.0 -y set CNP_DSCP_P1=40")
        said(host, "systemd-run -q --on-active=1 --unit=gone touch /root/gone")
        host.reboot()
        assert said(host, "sysctl -n net.ipv4.tcp_syn_retries net.ipv4.tcp_retries2") == "6\n7\n"
        modules = said(host, "lsmod")
        assert "8021q" in modules and "rdma_ucm" not in modules
        assert said(host, "cat /sys/class/net/eth2/mtu /sys/class/net/eth3/mtu") == "9216\n1500\n"
        assert not host.nic("eth2")["pfc"][3]
        assert said(host, "ls /root /run/x /tmp/x 2>/dev/null; true") == "/root:\nx\n"
        assert said(host, "cat /var/log/again") == "ran\nran\n"
        assert "40              40\n" in said(host, "mlxconfig -d 0000:1b:00.0 -e query CNP_DSCP_P1")
        assert said(host, "systemctl is-enabled again") == "enabled\n"
        time.sleep(1.1)
        assert run(host, "test -e /root/gone")[0] == 1


@pytest.mark.parametrize(
    ("manager", "path", "text"),
    [
        ("networkd", "/etc/systemd/network/20-eth2.network", "[Match]\nName=eth2\n[Link]\nMTUBytes=9216\n"),
        (
            "networkd",
            "/etc/systemd/network/20-eth2.link",
            "[Match]\nOriginalName=eth2\n[Link]\nMTUBytes=9216\n",
        ),
        (
            "NetworkManager",
            "/etc/NetworkManager/system-connections/eth2.nmconnection",
            "[connection]\ntype=ethernet\ninterface-name=eth2\n[ethernet]\nmtu=9216\n",
        ),
        ("NetworkManager", "/etc/sysconfig/network-scripts/ifcfg-eth2", "DEVICE=eth2\nMTU=9216\n"),
        ("ifupdown", "/etc/network/interfaces.d/eth2", "auto eth2\niface eth2 inet manual\n    mtu 9216\n"),
    ],
)
def test_managers_bring_the_mtu_back(tmp_path: Path, manager: str, path: str, text: str) -> None:
    with running(HostFacts("h1", (HostPort("eth2"),), manager=manager), tmp_path) as host:
        run(host, f"umask 077; mkdir -p $(dirname {path}); cat > {path}", text)
        host.reboot()
        assert said(host, "cat /sys/class/net/eth2/mtu") == "9216\n"


def test_files_of_another_manager_do_nothing(tmp_path: Path) -> None:
    with running(HostFacts("h1", (HostPort("eth2"),), manager="ifupdown"), tmp_path) as host:
        run(host, "umask 077; cat > /etc/netplan/90.yaml", "network: {ethernets: {eth2: {mtu: 9216}}}\n")
        host.reboot()
        assert said(host, "cat /sys/class/net/eth2/mtu") == "1500\n"


def test_power_off(tmp_path: Path) -> None:
    with running(HostFacts("h1"), tmp_path) as host:
        with pytest.raises(RuntimeError, match="runs already"):
            host.start()
        said(host, "echo kept > /etc/kept; sleep 60 > /dev/null 2>&1 &")
        host.stop()
        host.stop()
        assert not host.running
        with pytest.raises(RuntimeError, match="h1 is down"):
            host.argv("true")
        assert host.files("/etc/kept") == b"kept\n"
        host.erase()
        host.start()
        assert run(host, "test -e /etc/kept")[0] == 1
        with pytest.raises(RuntimeError, match="h1 runs"):
            host.erase()


def test_the_sandbox_dies_with_the_lab(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    program = (
        "import sys, time; from pathlib import Path; from rdma_fabric.lab.hosts import Host, HostFacts\n"
        f"host = Host(HostFacts('h1'), Path({str(tmp_path / 'h1')!r})); host.start()\n"
        "print(host._pid, flush=True); time.sleep(60)\n"
    )
    lab = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=SOURCES)
    assert lab.stdout is not None
    pid = int(lab.stdout.readline())
    assert Path(f"/proc/{pid}/root").exists()
    lab.send_signal(signal.SIGKILL)
    lab.wait()
    lab.stdout.close()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()


def test_two_hosts_share_nothing(tmp_path: Path) -> None:
    one, two = HostFacts("h1", (HostPort("eth2"),)), HostFacts("h2", (HostPort("eth2"),))
    with running(one, tmp_path) as first, running(two, tmp_path) as second:
        said(first, "touch /etc/x /usr/local/sbin/x /run/x; sysctl -w net.ipv4.tcp_retries2=6")
        said(first, "ip link set eth2 mtu 9216; mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0")
        assert said(second, "ls /etc/x /usr/local/sbin/x /run/x 2>/dev/null; hostname") == "h2\n"
        assert said(second, "cat /sys/class/net/eth2/mtu; sysctl -n net.ipv4.tcp_retries2") == "1500\n15\n"
        assert not second.nic("eth2")["pfc"][3]
        macs = {said(each, "cat /sys/class/net/eth2/address") for each in (first, second)}
        assert len(macs) == 2


def test_a_host_is_cheap(tmp_path: Path) -> None:
    ports = tuple(HostPort(f"eth{number}") for number in range(2, 10))
    with running(HostFacts("h1", ports), tmp_path) as host:
        host.stop()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        host.start()
        host.stop()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime) < 0.3


# --- without root ---


def test_a_plain_user_gets_the_same() -> None:
    """Under root this runs as somebody else, with copies of what that user may not be able to read."""
    if reason := why_not():
        pytest.skip(reason)
    somebody: dict[str, Any] = {"user": 4242, "group": 4242, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="fabric-user-") as name:
        folder = Path(name)
        for source in (Path(rdma_fabric.__path__[0]), Path(yaml.__path__[0])):
            keep = shutil.ignore_patterns("*.so", "__pycache__")
            shutil.copytree(source, folder / source.name, ignore=keep)
        commands = "id -u; touch /etc/x; mlnx_qos -i eth2 -F x,x,x,1,x,x,x,x; ip link set eth2 mtu 9000"
        program = (
            "from pathlib import Path; from rdma_fabric.lab.hosts import Host, HostFacts, HostPort\n"
            f"host = Host(HostFacts('h1', (HostPort('eth2'),)), Path({name!r}) / 'lab'); host.start()\n"
            f"print(host.somebody({commands!r}))\n"
            "print(host.nic('eth2')['pfc'][3], host.files('/etc/hostname')); host.stop()\n"
        )
        for path in [folder, *folder.rglob("*")] if somebody else ():
            os.chown(path, 4242, 4242)
        done = subprocess.run(
            ["/usr/bin/python3", "-c", program],
            cwd=folder,
            env={"PATH": "/usr/sbin:/usr/bin", "PYTHONPATH": name, "TMPDIR": name},
            capture_output=True,
            text=True,
            check=False,
            **somebody,
        )
    assert done.stdout == "0\n\nTrue b'h1\\n'\n", done.stderr


# --- facts ---


def test_facts_from_the_lab() -> None:
    ports = (
        PortFact("eth2", 400, peer_node="leaf01", peer_port="Ethernet1/1"),
        PortFact("eth8", 200),
        PortFact("mgmt0"),
    )
    data = {
        "ports": {"eth2": {"nic": "mlx5", "ibdev": "mlx5_7", "stack": "ofed"}, "eth8": {"nic": "bnxt"}},
        "manager": "networkd",
        "services": ["lldpad"],
        "seed": [["/etc/x", "y"]],
    }
    facts = HostFacts.of(DeviceFacts("gpu07", "linux", ports=ports), json.loads(json.dumps(data)))
    assert facts.ports == (
        HostPort(
            "eth2", "mlx5", "mlx5_7", gbps=400, stack="ofed", neighbor=Neighbor("leaf01", "Ethernet1/1")
        ),
        HostPort("eth8", "bnxt", gbps=200),
    )
    assert (facts.name, facts.manager, facts.services, facts.seed) == (
        "gpu07",
        "networkd",
        ("lldpad",),
        (("/etc/x", "y"),),
    )
