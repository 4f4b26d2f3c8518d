"""Options in the memory of Broadcom cards: read, wished, written for the next reboot, taken back."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.findings import Severity
from rdma_fabric.platforms import _nic_bnxt_nv as nv
from rdma_fabric.platforms._contract import Call, Disturbs, Put
from rdma_fabric.platforms.nic_bnxt import PLATFORM
from rdma_fabric.state import UNKNOWN, NicState, NodeState, Observation, PortSettings, PortState, waiting
from rdma_fabric.templating import render
from tests.unit.test_fabric_qos_bnxt import SHELLS
from tests.unit.test_platform_nic_bnxt import BLANK, HW, answer

ASKED = replace(HW, options=(("nv", "PCIE_RELAXED_ORDERING SUPPORT_RDMA"),))


def wish(**values: str) -> NodeState:
    settings = PortSettings(nic=NicState(nv=tuple(sorted(values.items()))))
    return NodeState(ports=(PortState("eth8", settings=settings),))


def observe(
    rdma: str = "True", ordering: str = "Disabled", parts: Mapping[str, tuple[str, int]] | None = None
) -> Observation:
    shown = {
        "device": ("bnxt_re0", 0),
        "bnxt_re": ("", 0),
        "nvform": ("--dev 0000:06:00.0", 0),
        "nv support_rdma": (f"support_rdma = {rdma}", 0),
        "nv pcie_relaxed_ordering": (f"pcie_relaxed_ordering = {ordering}", 0),
        "nvnotes": ("cat: no such file", 1),
    }
    return PLATFORM.parse(answer({**BLANK, **shown, **(parts or {})}, ASKED), ASKED)


def both(seen: Observation) -> tuple[dict[str, Any], dict[str, Any]]:
    assert seen.stored is not None
    return dict(seen.running.ports[0].settings.nic.nv), dict(seen.stored.ports[0].settings.nic.nv)


# ---------------------------------------------------------------- read


def test_only_what_the_intent_names_is_asked_for() -> None:
    (plain,), (asked,) = PLATFORM.questions(HW), PLATFORM.questions(ASKED)
    # Of a port without RDMA device one option is asked for always: that is why it has none.
    assert "for o in support_rdma=1;" in plain and '[ -z "$d" ];' in plain
    assert "for o in pcie_relaxed_ordering= support_rdma=1;" in asked and '[ -z "$d" ] || :;' in asked
    assert "setoption" not in asked


def test_both_layers() -> None:
    running, stored = both(observe())
    assert running == stored == {"PCIE_RELAXED_ORDERING": "0", "SUPPORT_RDMA": "1"}
    assert observe().pending is None


NO_DEVICE = {"device": ("", 0)}


@pytest.mark.parametrize(
    ("memory", "parts", "running"),
    [
        ("False", {}, "1"),
        ("True", NO_DEVICE, "0"),
        ("False", NO_DEVICE, "0"),
        # Without the driver nobody tells; then the memory counts, or what we changed since the boot.
        ("True", {**NO_DEVICE, "bnxt_re": ("", 1)}, "1"),
        ("True", {**NO_DEVICE, "bnxt_re": ("", 1), "nvnotes": ("SUPPORT_RDMA=0\n", 0)}, "0"),
    ],
)
def test_rdma_is_in_force_where_there_is_a_device(
    memory: str, parts: dict[str, tuple[str, int]], running: str
) -> None:
    seen = observe(memory, parts=parts)
    assert both(seen)[0]["SUPPORT_RDMA"] == running
    assert (seen.pending is None) == (both(seen)[1]["SUPPORT_RDMA"] == running)


def test_what_we_changed_since_the_boot_is_not_in_force() -> None:
    seen = observe(ordering="Enabled", parts={"nvnotes": ("PCIE_RELAXED_ORDERING=0\n", 0)})
    assert both(seen)[0]["PCIE_RELAXED_ORDERING"] == "0"
    wanted = PLATFORM.realize(wish(PCIE_RELAXED_ORDERING="1"), ASKED).state
    assert waiting(wanted, seen) == {"ports.eth8.nic.nv.PCIE_RELAXED_ORDERING"}
    assert PLATFORM.change(seen, wanted, ASKED).empty


@pytest.mark.parametrize("text", ["", "Error: Option is not supported", "pcie_relaxed_ordering = Perhaps"])
def test_what_is_not_understood_is_unknown_and_blocks(text: str) -> None:
    seen = observe(parts={"nv pcie_relaxed_ordering": (text, 0)})
    assert both(seen)[1]["PCIE_RELAXED_ORDERING"] is UNKNOWN
    change = PLATFORM.change(seen, PLATFORM.realize(wish(PCIE_RELAXED_ORDERING="1"), ASKED).state, ASKED)
    assert change.empty
    assert [one.path for one in change.blocked] == ["ports.eth8.nic.nv.PCIE_RELAXED_ORDERING"]
    failed = observe(parts={"nv pcie_relaxed_ordering": ("pcie_relaxed_ordering = Enabled", 1)})
    assert both(failed)[1]["PCIE_RELAXED_ORDERING"] is UNKNOWN


# ---------------------------------------------------------------- wish and change


@pytest.mark.parametrize(
    ("name", "text", "used", "reason"),
    [
        ("SUPPORT_RDMA", "true", "1", ""),
        ("PERFORMANCE_PROFILE", "RoCE", "1", ""),
        ("NUMBER_OF_VFS_PER_PF", "0x40", "64", ""),
        ("SUPPORT_RDMA", "2", None, "support_rdma takes disabled or enabled or false or true"),
        ("NUMBER_OF_VFS_PER_PF", "many", None, "number_of_vfs_per_pf takes 0 to 65535"),
        ("LINK_TYPE", "2", None, "no source says how niccli takes this option"),
    ],
)
def test_wishes(name: str, text: str, used: str | None, reason: str) -> None:
    found = PLATFORM.realize(wish(**{name: text}), ASKED)
    assert dict(found.state.ports[0].settings.nic.nv) == ({} if used is None else {name: used})
    assert [(one.severity, one.reason) for one in found.faults] == (
        [(Severity.ERROR, reason)] if reason else []
    )
    assert PLATFORM.realize(found.state, ASKED).state == found.state


def test_a_change() -> None:
    wanted = PLATFORM.realize(wish(PCIE_RELAXED_ORDERING="1", SUPPORT_RDMA="1"), ASKED).state
    change = PLATFORM.change(observe("False"), wanted, ASKED)
    assert [one.path.rpartition(".")[2] for one in change.differences] == [
        "PCIE_RELAXED_ORDERING",
        "SUPPORT_RDMA",
    ]
    assert change.lines == (
        "/etc/fabric/nv/eth8.conf: PCIE_RELAXED_ORDERING=1",
        "/etc/fabric/nv/eth8.conf: SUPPORT_RDMA=1",
        "niccli --dev 0000:06:00.0 nvm --setoption pcie_relaxed_ordering --value 1",
        "niccli --dev 0000:06:00.0 nvm --setoption support_rdma --value 1 --scope 0",
    )
    assert change.level == Disturbs.NOTHING and change.undo_kind == "dead-man"
    calls = [step.argv for step in change.commit if isinstance(step, Call)]
    assert calls == [
        (nv.PROGRAM, "eth8", "BDF=0000:06:00.0", "PCIE_RELAXED_ORDERING=1", "SUPPORT_RDMA=1"),
    ]
    assert [step.argv for step in change.undo if isinstance(step, Call)] == [
        (nv.PROGRAM, "eth8", "BDF=0000:06:00.0", "PCIE_RELAXED_ORDERING=0", "SUPPORT_RDMA=0"),
    ]
    paths = [step.path for step in change.commit if isinstance(step, Put)]
    assert paths == [nv.PROGRAM, "/etc/fabric/nv/eth8.conf"]
    compiled = {one.path: one for one in PLATFORM.artifacts(wanted, ASKED)}
    assert set(compiled) == {nv.PROGRAM[1:], "etc/fabric/nv/eth8.conf"}


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("-dev 0000:06:00.0", "niccli -dev 0000:06:00.0 nvm -setoption support_rdma -value 0 -scope 0"),
        ("-i 3", "niccli -i 3 nvm -setoption support_rdma -value 0 -scope 0"),
        ("", "niccli --dev 0000:06:00.0 nvm --setoption support_rdma --value 0 --scope 0"),
    ],
)
def test_lines_of_older_tools(form: str, line: str) -> None:
    wanted = PLATFORM.realize(wish(SUPPORT_RDMA="0"), ASKED).state
    assert PLATFORM.change(observe(parts={"nvform": (form, 0)}), wanted, ASKED).lines[-1] == line


# ---------------------------------------------------------------- the program


TOOL = r"""#!@PYTHON@ -S
import json, os, sys
tools, words = os.environ["TOOLS"], sys.argv[1:]
path, form = tools + "/card.json", os.environ["FORM"]
card = json.load(open(path))
if words == ["--list"]:
    sys.exit(print("1 ) Other\n     PCI Address : 0000:05:00.1\n2 ) This\n     PCI Address : 0000:06:00.1"))
at = {"new": ["--dev", "0000:06:00.1"], "fed": ["-dev", "0000:06:00.1"], "old": ["-i", "2"]}[form]
dash = "--" if form == "new" else "-"
if words[:3] != [*at, "nvm"]:
    sys.exit(print("Error: Invalid command") or 1)
rest = dict(zip(words[3::2], words[4::2]))
name = rest.get(dash + "getoption") or rest.get(dash + "setoption")
if name not in card or ("scope" in card[name]) != (dash + "scope" in rest):
    sys.exit(print("Error: Option is not supported") or 1)
if rest.get(dash + "scope", "1") != "1":
    sys.exit(print("Error: no such scope") or 1)
if dash + "setoption" in rest:
    open(tools + "/done", "a").write(" ".join(words) + "\n")
    if not os.path.exists(tools + "/deaf"):
        card[name]["value"] = int(rest[dash + "value"])
        json.dump(card, open(path, "w"))
    sys.exit(print(name + " is set successfully\nPlease reboot the system to apply the configuration"))
value = card[name]["value"]
print("\n" + name + " = " + (card[name]["words"][value] if "words" in card[name] else hex(value)))
"""
CARD = {
    "support_rdma": {"value": 0, "words": ["False", "True"], "scope": 1},
    "pcie_relaxed_ordering": {"value": 1, "words": ["Disabled", "Enabled"]},
    "performance_profile": {"value": 0, "words": ["Default", "RoCE"]},
    "number_of_vfs_per_pf": {"value": 8, "scope": 1},
    "enable_sriov": {"value": 0, "words": ["Off", "On"]},
}


class Bench:
    """A root with the program and one port on the second function of a card that a stand-in plays."""

    def __init__(self, folder: Path, shell: str, form: str) -> None:
        self.root, self.sys, self.tools = folder / "root", folder / "s", folder / "tools"
        self.shell, self.form = shell, form
        self.script = self.root / nv.PROGRAM.lstrip("/")
        self.script.parent.mkdir(parents=True)
        self.script.write_text(render("nic_bnxt/fabric-nv.sh.j2", nv.Context()))
        (self.root / nv.FOLDER.lstrip("/")).mkdir(parents=True)
        address = self.sys / "sys/devices/0000:06:00.1"
        address.mkdir(parents=True)
        (self.sys / "sys/class/net/eth9").mkdir(parents=True)
        (self.sys / "sys/class/net/eth9/device").symlink_to(address)
        self.tools.mkdir()
        tool = self.tools / "niccli"
        tool.write_text(TOOL.replace("@PYTHON@", sys.executable))
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        (self.tools / "card.json").write_text(json.dumps(CARD))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        words = [self.shell, "sh"] if self.shell == "busybox" else [self.shell]
        environment = {
            "PATH": f"{self.tools}:/usr/bin:/bin",
            "TOOLS": str(self.tools),
            "FORM": self.form,
            "FABRIC_ROOT": str(self.root),
            "FABRIC_SYSROOT": str(self.sys),
        }
        return subprocess.run(
            [*words, str(self.script), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def done(self) -> list[str]:
        path = self.tools / "done"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def notes(self) -> list[str]:
        path = self.root / nv.NOTES.lstrip("/") / "eth9"
        return path.read_text().splitlines() if path.exists() else []


COMMANDS = {
    "new": "--dev 0000:06:00.1 nvm --setoption support_rdma --value 1 --scope 1",
    "fed": "-dev 0000:06:00.1 nvm -setoption support_rdma -value 1 -scope 1",
    "old": "-i 2 nvm -setoption support_rdma -value 1 -scope 1",
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("form", COMMANDS)
def test_it_writes_only_what_the_next_boot_lacks(form: str, shell: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, shell, form)
    (bench.root / nv.FOLDER.lstrip("/") / "eth9.conf").write_text(
        "# managed by fabric\nBDF=0000:06:00.1\nSUPPORT_RDMA=1\nPCIE_RELAXED_ORDERING=1\n"
    )
    checked = bench.run("--check", "eth9")
    assert (checked.returncode, checked.stdout) == (1, "next boot is not SUPPORT_RDMA=1\n"), checked.stderr
    assert bench.done == [] and bench.notes == []
    first = bench.run("eth9")
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    assert bench.done == [COMMANDS[form]] and bench.notes == ["SUPPORT_RDMA=0"]
    assert bench.run("--check", "eth9").returncode == 0
    assert bench.run("eth9").returncode == 0 and len(bench.done) == 1
    # Back, and forth again: what is in force until the reboot stays the first value.
    assert bench.run("eth9", "SUPPORT_RDMA=0").returncode == 0
    assert bench.run("eth9").returncode == 0
    assert bench.notes == ["SUPPORT_RDMA=0"]


def test_options_of_every_kind(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SHELLS[0], "new")
    done = bench.run("eth9", "PERFORMANCE_PROFILE=1", "NUMBER_OF_VFS_PER_PF=64")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(" nvm ")[2] for line in bench.done] == [
        "--setoption performance_profile --value 1",
        "--setoption number_of_vfs_per_pf --value 64 --scope 1",
    ]
    assert bench.notes == ["PERFORMANCE_PROFILE=0", "NUMBER_OF_VFS_PER_PF=8"]


def test_without_the_driver_the_given_address_counts(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SHELLS[0], "new")
    shutil.rmtree(bench.sys / "sys/class/net/eth9")
    assert "PCI address is not known" in bench.run("eth9", "SUPPORT_RDMA=1").stderr
    assert bench.run("eth9", "BDF=0000:06:00.1", "SUPPORT_RDMA=1").returncode == 0
    assert bench.done == [COMMANDS["new"]]


@pytest.mark.parametrize(
    ("spoiled", "arguments", "text"),
    [
        ("", ("ENABLE_SRIOV=1",), "niccli does not tell ENABLE_SRIOV"),
        ("", ("NOT_THERE=1",), "niccli does not tell NOT_THERE"),
        ("deaf", ("SUPPORT_RDMA=1",), "did not take SUPPORT_RDMA=1"),
        ("niccli", ("SUPPORT_RDMA=1",), "niccli does not tell the options of 0000:06:00.1"),
        ("none", ("SUPPORT_RDMA=1",), "there is no niccli"),
        ("", ("SUPPORT_RDMA=x",), "not a value of SUPPORT_RDMA"),
        ("", ("SUPPORT_RDMA=",), "not a value of SUPPORT_RDMA"),
        ("", ("A;B=1",), "not a name"),
        ("", ("SUPPORT_RDMA",), "not a setting"),
        ("", ("BDF=$(id)", "SUPPORT_RDMA=1"), "not a PCI address"),
        ("", (), "there is no"),
    ],
)
def test_it_fails_aloud(spoiled: str, arguments: tuple[str, ...], text: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, SHELLS[0], "new")
    if spoiled == "deaf":
        (bench.tools / "deaf").touch()
    elif spoiled == "niccli":
        (bench.tools / "niccli").write_text("#!/bin/sh\nexit 1\n")
    elif spoiled == "none":
        (bench.tools / "niccli").unlink()
    done = bench.run("eth9", *arguments)
    assert done.returncode in (1, 2) and text in done.stderr
    assert bench.done == [] or spoiled == "deaf"


@pytest.mark.parametrize("shell", SHELLS)
def test_usage(shell: str, tmp_path: Path) -> None:
    assert "usage" in Bench(tmp_path, shell, "new").run().stderr
