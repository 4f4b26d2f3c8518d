"""The shell questions of Linux hosts in a real shell, with tools that say what they are told to say."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _linux_links as links
from rdma_fabric.platforms._host_files import Section, sections
from rdma_fabric.platforms.linux import PLATFORM
from rdma_fabric.state import SystemState
from tests.unit.test_platform_linux import hardware

TOOLS = {
    "id": "echo 0",
    "sysctl": 'for k; do echo "$k = 1"; done',
    "ip": """
        case "$*" in
            *"-j link show dev eth0"*) echo '[{"ifname":"eth0","mtu":9000,"max_mtu":9978}]' ;;
            *"link show dev old0"*"-j"* | "-d -j link show dev old0") exit 255 ;;
            "link show dev old0") echo "3: old0: <UP> mtu 4200 qdisc mq master br0 state UP" ;;
            *"addr show"*)
                echo "1: lo    inet 127.0.0.1/8 scope host lo"
                echo "2: bond0    inet 192.0.2.1/24 brd 192.0.2.255 scope global bond0"
                echo "5: bond0.7@bond0    inet6 2001:db8::1/64 scope global"
                ;;
            *"route get 198.51.100.9"*) echo "198.51.100.9 via 192.0.2.254 dev bond0 src 192.0.2.1 uid 0" ;;
            *) exit 1 ;;
        esac
    """,
    "nmcli": """
        case "$*" in
            *"device show eth0") printf '100 (connected)\\nUUID-1\\n' ;;
            *"device show old0") printf '100 (connected (externally))\\nUUID-2\\n' ;;
            *"device show eth9") printf '10 (unmanaged)\\n\\n' ;;
            *"connection show UUID-1") echo 4200 ;;
            *) exit 10 ;;
        esac
    """,
    "networkctl": """
        case "$*" in
            *eth0) echo "             Link File: /usr/lib/systemd/network/99-default.link"
                   echo "          Network File: /etc/systemd/network/20-rails.network" ;;
            *) echo "          Network File: n/a" ;;
        esac
    """,
    "systemctl": """
        case "$1" in
            is-active) echo active ;;
            is-enabled) echo enabled ;;
            show) echo MainPID=$PID ;;
        esac
    """,
    "ps": "echo lldpad; echo bash",
    "lldpcli": "exit 1",
}
HW = Hardware(
    ("linux",),
    ports=tuple(PortHardware(name, nic="generic") for name in ("eth0", "old0", "eth9")),
    options=hardware(SystemState(limits=(("slurmd.nofile", "1"),))).options,
)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools")
    for name, text in TOOLS.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


def answers(tools: Path, hw: Hardware, **environment: str) -> dict[str, Section]:
    """All sections that the host's shell prints."""
    settings = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PID": str(os.getpid()),
        "LC_ALL": "C",
        **environment,
    }
    found = ""
    for question in PLATFORM.questions(hw):
        done = subprocess.run(
            ["sh", "-c", question], env=settings, capture_output=True, text=True, check=True, timeout=20
        )
        assert done.stderr == ""
        found += done.stdout
    return sections(found)


def test_every_question_answers_in_frames(tools: Path) -> None:
    found = answers(tools, HW)
    assert set(found) >= {
        *("kernel", "os", "agents", "files", "sysctl.d", "modules-load.d", "modprobe.d", "limits.d", "lldp"),
        *("sysctl", "modules", "options", "services", "units"),
        *("ours", "wants", "names", "session", "link eth0", "speed eth0", "below eth0", "link eth9"),
        *("active", "netplan", "networkd", "drop-ins", "links", "network eth0", "networkmanager", "nmconf"),
        *("ifupdown", "ifupdown2", "ifcfg"),
    }
    assert found["agents"].lines == ("lldpad",)
    assert "net.ipv4.tcp_ecn = 1" in found["sysctl"].lines
    assert links.one_link(found["link eth0"])["max_mtu"] == 9978
    assert links.one_link(found["link old0"])["master"] == "br0" and found["link eth9"].status == 1
    assert found["networkmanager"].lines == ("eth0 100 4200", "old0 external", "eth9 10 ")
    assert found["network eth0"].text.split() == [
        "Network",
        "File:",
        "/etc/systemd/network/20-rails.network",
    ]
    assert found["active"].lines[0] == "systemd-networkd active enabled"
    assert any(line.startswith("Max open files") for line in found["services"].lines)
    assert found["services"].lines[:2] == ("== slurmd", f"MainPID={os.getpid()}")
    assert "lo" in found["names"].text.split()


@pytest.mark.parametrize("uid", ["0", "1000"])
def test_tools_answer_in_one_language(uid: str, tools: Path, tmp_path: Path) -> None:
    """nmcli's "(externally)" and sysctl's "No such file" are read; sudo brings the language back."""
    for path in tools.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "id").write_text(f"#!/bin/sh\necho {uid}\n")
    (tmp_path / "sudo").write_text('#!/bin/sh\nshift; LC_ALL=de_DE.UTF-8 exec "$@"\n')
    (tmp_path / "uname").write_text('#!/bin/sh\necho "$LC_ALL"\n')
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    assert answers(tmp_path, HW, LC_ALL="de_DE.UTF-8")["kernel"].text == "C"


def test_keys_of_many_ports_are_all_asked_for(tools: Path) -> None:
    keys = tuple((f"net.ipv4.conf.port{number:03d}.arp_ignore", "1") for number in range(90))
    found = answers(tools, replace(hardware(SystemState(sysctl=keys)), ports=()))
    more = [name for name in found if name.startswith("sysctl net.")]
    shown = "\n".join(one.text for name, one in found.items() if name == "sysctl" or name in more)
    assert more and all(f"{key} = 1" in shown for key, _ in keys)


@pytest.mark.parametrize(
    ("environment", "session"),
    [
        ({}, ""),
        ({"SSH_CONNECTION": "198.51.100.9 50000 192.0.2.1 22"}, "bond0"),
        ({"SSH_CONNECTION": "2001:db8::9 50000 2001:db8::1 22"}, "bond0.7"),
        ({"SSH_CONNECTION": "203.0.113.5 50000 203.0.113.6 22"}, "?"),
        ({"SSH_CONNECTION": "fe80::9%eth0 50000 fe80::1%eth0 22"}, "?"),
    ],
)
def test_the_netdev_of_our_session(tools: Path, environment: Mapping[str, str], session: str) -> None:
    if not environment and _above():
        pytest.skip("these tests run in an SSH session themselves")
    assert links.session(answers(tools, HW, **environment)["session"]) == session


def _above() -> bool:
    """True when a process above this one came in by SSH."""
    pid = os.getpid()
    while pid > 1:
        try:
            if b"SSH_CONNECTION=" in Path(f"/proc/{pid}/environ").read_bytes():
                return True
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False
