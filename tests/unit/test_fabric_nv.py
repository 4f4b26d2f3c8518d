"""The script that brings a card's NV settings to a file, run by real shells against a stand-in mlxconfig."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.platforms import _nic_mlx5_nv as nv
from rdma_fabric.templating import render
from tests.unit.test_fabric_qos import SHELLS, shell_words

TOOL = r"""#!@PYTHON@ -S
import json, os, sys
tools, words = os.environ["TOOLS"], sys.argv[1:]
path = tools + "/card.json"
state = json.load(open(path))
if state.get("broken"):
    sys.exit(print(state["broken"]) or 3)
assert words[:2] == ["-d", "0000:1b:00.1"], words
if words[2:] == ["-e", "query"]:
    print("\nDevice #1:\n----------\n\nDevice type:        ConnectX7           \n")
    head = state.get("head", "%-20s%-20s%s" % ("Default", "Current", "Next Boot"))
    print("%-57s%s" % ("Configurations:", head))
    for name, (first, now, later) in state["rows"].items():
        mark = "*" if later != first or later != now else " "
        print("%s       %-48s%-20s %-20s %-20s" % (mark, name, first, now, later))
    print("The '*' shows parameters with next value different from default/current value.")
    sys.exit()
assert words[2:4] == ["-y", "set"], words
open(tools + "/done", "a").write(" ".join(words[4:]) + "\n")
for word in words[4:]:
    name, _, value = word.partition("=")
    if name not in state["rows"]:
        sys.exit(print("-E- Unknown Parameter: " + name) or 3)
    if not state.get("deaf"):
        state["rows"][name][2] = value
json.dump(state, open(path, "w"))
print("Applying... Done!\n-I- Please reboot machine to load new configurations.")
"""
ROWS = {
    "CNP_DSCP_P1": ["48", "48", "48"],
    "CNP_DSCP_P2": ["48", "48", "48"],
    "ATS_ENABLED": ["False(0)", "False(0)", "True(1)"],
    "LINK_TYPE_P2": ["ETH(2)", "ETH(2)", "ETH(2)"],
    "FEC": ["DEVICE_DEFAULT(0)", "DEVICE_DEFAULT(0)", "DEVICE_DEFAULT(0)"],
}


class Bench:
    """A root with the script and one port whose card the stand-in tool plays."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.root, self.sys, self.tools, self.shell = folder / "root", folder / "s", folder / "tools", shell
        script = self.root / nv.PROGRAM.lstrip("/")
        script.parent.mkdir(parents=True)
        script.write_text(render("nic_mlx5/fabric-nv.sh.j2", nv.Context()))
        self.script = script
        (self.root / nv.FOLDER.lstrip("/")).mkdir(parents=True)
        address = self.sys / "sys/devices/0000:1b:00.1"
        address.mkdir(parents=True)
        port = self.sys / "sys/class/net/eth1"
        port.mkdir(parents=True)
        (port / "device").symlink_to(address)
        (port / "phys_port_name").write_text("p1\n")
        self.tools.mkdir()
        self.tool("mlxconfig")
        self.card()

    def tool(self, name: str) -> None:
        path = self.tools / name
        path.write_text(TOOL.replace("@PYTHON@", sys.executable))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def card(self, **more: Any) -> None:
        (self.tools / "card.json").write_text(json.dumps({"rows": ROWS, **more}))

    def conf(self, text: str) -> None:
        (self.root / nv.FOLDER.lstrip("/") / "eth1.conf").write_text(text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*shell_words(self.shell), str(self.script), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": f"{self.tools}:/usr/bin:/bin",
                "TOOLS": str(self.tools),
                "FABRIC_ROOT": str(self.root),
                "FABRIC_SYSROOT": str(self.sys),
            },
        )

    @property
    def done(self) -> list[str]:
        path = self.tools / "done"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, request.param)


def test_it_writes_only_what_the_next_boot_lacks(bench: Bench) -> None:
    bench.conf("# managed by fabric\nBDF=0000:1b:00.1\nATS_ENABLED=1\nCNP_DSCP=4\n")
    checked = bench.run("--check", "eth1")
    assert (checked.returncode, checked.stdout) == (1, "next boot is not CNP_DSCP_P2=4\n")
    assert bench.done == []
    assert bench.run("eth1").returncode == 0
    assert bench.done == ["CNP_DSCP_P2=4"]
    assert bench.run("--check", "eth1").returncode == 0
    assert bench.run("eth1").returncode == 0 and len(bench.done) == 1


def test_settings_given_lie_over_the_file_and_come_back(bench: Bench) -> None:
    bench.conf("CNP_DSCP=4\n")
    assert bench.run("eth1", "BDF=0000:1b:00.1", "CNP_DSCP=5", "ATS_ENABLED=0").returncode == 0
    assert bench.done == ["CNP_DSCP_P2=5 ATS_ENABLED=0"]


def test_without_the_driver_the_given_address_counts(bench: Bench) -> None:
    shutil.rmtree(bench.sys / "sys/class/net/eth1")
    assert "PCI address is not known" in bench.run("eth1", "CNP_DSCP=4").stderr
    # The function of the address gives the port's number.
    assert bench.run("eth1", "BDF=0000:1b:00.1", "CNP_DSCP=4").returncode == 0
    assert bench.done == ["CNP_DSCP_P2=4"]


def test_mstconfig_does_as_well(bench: Bench) -> None:
    (bench.tools / "mlxconfig").rename(bench.tools / "mstconfig")
    assert bench.run("eth1", "CNP_DSCP=4").returncode == 0
    (bench.tools / "mstconfig").unlink()
    assert "neither mlxconfig nor mstconfig" in bench.run("eth1", "CNP_DSCP=4").stderr


@pytest.mark.parametrize(
    ("card", "arguments", "text"),
    [
        ({}, ("NOT_THERE=1",), "its card has no setting NOT_THERE"),
        ({"broken": "-E- Failed to open the device"}, ("CNP_DSCP=4",), "-E- Failed to open the device"),
        ({"head": "Next Boot"}, ("CNP_DSCP=4",), "is not understood"),
        ({"deaf": True}, ("CNP_DSCP=4",), "did not take CNP_DSCP_P2=4"),
        ({}, ("CNP_DSCP=x",), "not a value of CNP_DSCP"),
        ({}, ("CNP_DSCP=",), "not a value of CNP_DSCP"),
        ({}, ("A;B=1",), "not a name"),
        ({}, ("CNP_DSCP",), "not a setting"),
        ({}, ("BDF=$(id)", "CNP_DSCP=4"), "not a PCI address"),
        ({}, (), "there is no"),
    ],
)
def test_it_fails_aloud(bench: Bench, card: dict[str, Any], arguments: tuple[str, ...], text: str) -> None:
    bench.card(**card)
    done = bench.run("eth1", *arguments)
    assert done.returncode in (1, 2, 3) and text in done.stderr
    assert done.returncode != 0 and (bench.done == [] or "deaf" in card)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_it(tmp_path: Path, shell: str) -> None:
    done = subprocess.run(
        [*shell_words(shell), "-n", str(Bench(tmp_path, shell).script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage" in Bench(tmp_path / "x", shell).run().stderr


def test_the_local_check_tells_what_waits(bench: Bench) -> None:
    """The script of `fabric-check`: one value, or both where the next reset brings another."""
    text = render("nic_mlx5/read_nv.sh.j2", None)
    words = [*shell_words(bench.shell), "-c", text, "sh", "eth1", "0000:1b:00.1"]

    def told(*names: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{bench.tools}:/usr/bin:/bin",
            "TOOLS": str(bench.tools),
            "FABRIC_SYSROOT": str(bench.sys),
        }
        return subprocess.run([*words, *names], capture_output=True, text=True, check=False, env=environment)

    shown = told("ATS_ENABLED", "CNP_DSCP", "NO_SUCH", "LINK_TYPE")
    assert shown.stdout == "ATS_ENABLED 0 now, 1 after a reset\nCNP_DSCP 48\nLINK_TYPE 2\n"
    assert bench.done == []
    bench.card(broken="-E- Failed to open the device")
    failed = told("CNP_DSCP")
    assert failed.returncode == 1 and "Failed to open" in failed.stderr
