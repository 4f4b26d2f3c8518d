"""What runs on a subnet manager's host, run: the question and the program that mends the table of LIDs."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rdma_fabric.platforms.opensm import PLATFORM, Context
from rdma_fabric.state import Observation
from rdma_fabric.templating import render
from tests.unit.test_platform_opensm import HW

PORTS = """\
CA    12  1 0x0002c90300000021 4x HDR - SW     8  2 0x0002c90300000100 ( 'sm2' - 'leaf' )
SW     8  2 0x0002c90300000100 4x HDR - CA    12  1 0x0002c90300000021 ( 'leaf' - 'sm2' )
SW     8  1 0x0002c90300000100 4x HDR                                    'leaf'
CA     0  1 0x0002c90300000041 4x HDR - SW     8  4 0x0002c90300000100 ( 'new' - 'leaf' )
"""
"""ibnetdiscover -p of infiniband-diags 44.0; a port without a LID has 0."""
RECORDS = """\
NodeRecord dump:
\t\tlid.....................8
\t\treserved................0x0
\t\tnode_type...............Switch
\t\tport_guid...............0x0002c90300000100
\t\tNodeDescription.........leaf
NodeRecord dump:
\t\tlid.....................12
\t\treserved................0x0
\t\tnode_type...............Channel Adapter
\t\tport_guid...............0x0002c90300000021
\t\tNodeDescription.........sm2
"""
"""saquery NR of the same."""
WHOLE = "0x0002c90300000021 0x000c 0x000f\n\n0x0002c90300000100 0x0008 0x0008\n\n"
TOOLS = ("awk", "cat", "date", "echo", "grep", "mkdir", "mv", "rm", "sed", "sh", "sort", "stat", "tr")


class Box:
    """A folder with tools of ours in front, and nothing else but the shell's usual ones."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.table = folder / "bin", folder / "cache" / "guid2lid"
        self.bin.mkdir()
        for name in TOOLS:
            found = shutil.which(name)
            assert found is not None
            (self.bin / name).symlink_to(found)
        self.tool("smpquery", "# Port info: DR path\nLid:.......12\nLMC:.............................2\n")

    def tool(self, name: str, text: str, status: int = 0) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text.rstrip()}\nEND\nexit {status}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(self.bin / "sh"), "-c", script, "sh", *words]
        return subprocess.run(
            argv, env={"PATH": str(self.bin)}, capture_output=True, text=True, timeout=20, check=False
        )

    def mend(self, *words: str) -> int:
        context = Context(table=str(self.table), port="-C mlx5_0 -P 1")
        done = self.run(render("opensm/guid2lid.sh.j2", context), *words)
        assert done.stderr == "" and done.stdout == ""
        return done.returncode

    def differ(self) -> str:
        """What the question finds about the table."""
        (question,) = PLATFORM.questions(HW)
        shell = f'PATH="{self.bin}"; ' + question.replace("PATH=$PATH:", "PATH=$PATH; : ")
        said = self.run(shell.replace("/var/cache/opensm/guid2lid", str(self.table))).stdout
        return said.partition("@@lids\n")[2]


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_a_table_that_is_not_there_gets_the_lids_of_the_ports(box: Box) -> None:
    box.tool("ibnetdiscover", PORTS)
    assert box.mend("check") == 1 and not box.table.exists()
    assert box.mend() == 0 and box.table.read_text(encoding="utf-8") == WHOLE
    assert box.mend("check") == 0
    assert [path.name for path in box.table.parent.iterdir()] == ["guid2lid"]


def test_a_table_that_is_right_is_left_in_its_order(box: Box) -> None:
    box.tool("ibnetdiscover", PORTS)
    box.table.parent.mkdir()
    text = "0x0002c90300000100 0x0008 0x0008\n\n0x0002c90300000021 0x000c 0x000f\n\n"
    box.table.write_text(text, encoding="utf-8")
    assert box.mend("check") == box.mend() == 0
    assert box.table.read_text(encoding="utf-8") == text


def test_ports_that_are_away_keep_lids_that_are_free(box: Box) -> None:
    box.tool("ibnetdiscover", PORTS)
    box.table.parent.mkdir()
    rows = (
        "0x0002c90300000021 0x0004 0x0007",  # another LID now
        "0x00000000000000aa 0x0005 0x0008",  # its last LID is the switch's
        "0x00000000000000bb 0x0010 0x0013",
        "0x00000000000000cc 0x000f 0x000f",  # the adapter's last LID
        "0x00000000000000dd 0xbffc 0xBFFF",
    )
    box.table.write_text("\n\n".join(rows) + "\n", encoding="utf-8")
    assert box.mend() == 0
    kept = "".join(f"{rows[index]}\n\n" for index in (2, 4))
    assert box.table.read_text(encoding="utf-8") == kept + WHOLE


def test_the_master_is_asked_where_ports_do_not_answer(box: Box) -> None:
    box.tool("ibnetdiscover", "ibwarn: mad_rpc: failed", 1)
    box.tool("saquery", RECORDS)
    assert box.mend() == 0 and box.table.read_text(encoding="utf-8") == WHOLE


@pytest.mark.parametrize("there", [True, False])
def test_a_table_stays_where_nobody_answers(box: Box, there: bool) -> None:
    box.tool("ibnetdiscover", "ibwarn: mad_rpc: failed", 1)
    box.tool("saquery", "Query SA failed: Connection timed out", 110)
    box.table.parent.mkdir()
    text = f"{WHOLE}0x00000000000000ee somebody's\n"
    if there:
        box.table.write_text(text, encoding="utf-8")
    assert box.mend("check") == box.mend() == 0
    assert box.table.exists() == there
    assert not there or box.table.read_text(encoding="utf-8") == text


def test_a_table_that_cannot_be_written_whole_stays(box: Box) -> None:
    box.tool("ibnetdiscover", PORTS)
    box.table.parent.mkdir()
    box.table.write_text("0x0002c90300000021 0x0004 0x0007\n\n", encoding="utf-8")
    (box.bin / "mkdir").unlink()
    box.tool("mkdir", "", 1)
    script = render("opensm/guid2lid.sh.j2", Context(table=str(box.table)))
    assert box.run(script).returncode != 0
    assert box.table.read_text(encoding="utf-8") == "0x0002c90300000021 0x0004 0x0007\n\n"


def test_without_an_lmc_every_port_has_one_lid(box: Box) -> None:
    (box.bin / "smpquery").unlink()
    box.tool("ibnetdiscover", PORTS)
    (box.bin / "smpquery").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (box.bin / "smpquery").chmod(0o755)
    assert box.mend() == 0
    assert box.table.read_text(encoding="utf-8") == WHOLE.replace("0x000f", "0x000c")


def test_the_question_compares_the_table_with_the_master(box: Box) -> None:
    box.tool("saquery", RECORDS)
    assert box.differ().startswith(
        "0x0002c90300000100 0x0008 \n0x0002c90300000021 0x000c \nports 2 differ 2\n\n@=0"
    )
    box.table.parent.mkdir()
    box.table.write_text(WHOLE, encoding="utf-8")
    assert box.differ().startswith("ports 2 differ 0\n\n@=0")
    box.table.write_text(WHOLE.replace("0x000c", "0x0010"), encoding="utf-8")
    assert box.differ().startswith("0x0002c90300000021 0x000c 0x0010\nports 2 differ 1\n\n@=0")
    box.tool("saquery", "Query SA failed: Connection timed out", 110)
    assert "@=1" in box.differ()


def _ask(box: Box, owner: str) -> tuple[str, Observation]:
    hw = replace(HW, options=(("sm_owner", owner),) if owner else ())
    (question,) = PLATFORM.questions(hw)
    shell = question.replace("PATH=$PATH:", "PATH=$PATH; : ").replace(
        "/etc/opensm/", f"{box.bin.parent}/etc/"
    )
    said = box.run(shell).stdout.replace(f"=={box.bin.parent}/etc/", "==/etc/opensm/")
    return said, PLATFORM.parse({question: said}, hw)


@pytest.mark.parametrize("word", ["-F {}", "--config {}", "--config={}", "-B"])
def test_the_files_of_somebody_elses_process_are_read(box: Box, word: str) -> None:
    own, other = box.bin.parent / "etc", box.bin.parent / "ufm"
    for folder, priority in ((own, 3), (other, 9)):
        folder.mkdir()
        (folder / "opensm.conf").write_text(
            f"sm_priority {priority}\npartition_config_file {folder}/p.conf\nqos TRUE\n"
            f"qos_policy_file {folder}/q.conf\n",
            encoding="utf-8",
        )
        (folder / "p.conf").write_text(f"a=0x{priority:04x} : ALL=full ;\n", encoding="utf-8")
        (folder / "q.conf").write_text(f"qos-ulps\n default : {priority}\nend-qos-ulps\n", encoding="utf-8")
    (own / "partitions.conf").write_text("b=0x0001 : ALL=full ;\n", encoding="utf-8")
    box.tool("pgrep", str(os.getpid()))
    started = f"opensm {word.format(other / 'opensm.conf')} -f /var/log/opensm.log"
    script = f"#!/bin/sh\ncase $* in *etimes*) echo 5;; *) echo {started};; esac\n"
    (box.bin / "ps").write_text(script, encoding="utf-8")
    (box.bin / "ps").chmod(0o755)
    _, seen = _ask(box, "ufm")
    assert seen.stored is not None
    found, priority = seen.stored.system.sm, 3 if word == "-B" else 9
    assert (found.priority, found.levels) == (priority, (f"default: {priority}",))
    assert [one.pkey for one in found.partitions.rows] == [priority]  # type: ignore[union-attr]
    said, seen = _ask(box, "")
    assert seen.stored is not None and seen.stored.system.sm.priority == 3
    assert "b=0x0001" in said


def test_somebody_else_may_leave_the_files_where_ours_are(box: Box) -> None:
    own = box.bin.parent / "etc"
    own.mkdir()
    (own / "opensm.conf").write_text("sm_priority 5\nqos TRUE\n", encoding="utf-8")
    (own / "partitions.conf").write_text("b=0x0001 : ALL=full ;\n", encoding="utf-8")
    (own / "qos-policy.conf").write_text("qos-ulps\n default : 2\nend-qos-ulps\n", encoding="utf-8")
    box.tool("pgrep", "", 1)
    _, seen = _ask(box, "ufm")
    assert seen.stored is not None
    found = seen.stored.system.sm
    assert (found.priority, found.levels, found.running) == (5, ("default: 2",), False)
    assert [one.name for one in found.partitions.rows] == ["b"]  # type: ignore[union-attr]
