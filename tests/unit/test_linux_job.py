"""Variables of jobs on a Linux host: ToS bytes, and files of others that win over ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import Change, Put
from rdma_fabric.platforms._linux_job import meant
from rdma_fabric.platforms.linux import PLATFORM
from rdma_fabric.state import UNKNOWN, Absent, NodeState, SystemState
from tests.support.linux_box import Box

MARKED = "# managed by fabric\n"
NAMES = "environment.NCCL_IB_TC environment.NCCL_IB_HCA environment.UCX_TLS"
HW = Hardware(("linux",), options=(("asked", NAMES),))
OURS = {
    "/etc/nccl.conf": f"{MARKED}NCCL_IB_HCA==mlx5_0\nNCCL_IB_TC=106\n",
    "/etc/profile.d/fabric-rdma.sh": f"{MARKED}export UCX_TLS=rc\n",
}


def box(**files: str) -> Box:
    """environment="A=1" for the file /etc/environment; names of profile.d end in _sh."""
    others = {_path(name): text for name, text in files.items()}
    return Box(files={**OURS, **others})


def _path(name: str) -> str:
    return f"/etc/profile.d/{name.removesuffix('_sh')}.sh" if name.endswith("_sh") else f"/etc/{name}"


def variables(found: Box) -> dict[str, str | Absent]:
    running = found.observe(HW).running.system
    return dict(running.environment)


def change(found: Box, **environment: str) -> Change:
    wish = NodeState(SystemState(environment=tuple(sorted(environment.items()))))
    return PLATFORM.change(found.observe(HW), PLATFORM.realize(wish, HW).state, HW)


@pytest.mark.parametrize(
    ("name", "value", "as_meant"),
    [
        ("NCCL_IB_TC", "104", "106"),
        ("NCCL_IB_TC", "107", "106"),
        ("NCCL_IB_FIFO_TC", "0", "0"),
        ("NCCL_IB_TC", "3", "0"),
        ("UCX_IB_TRAFFIC_CLASS", "192", "194"),
        ("UCX_IB_TRAFFIC_CLASS", "auto", "auto"),
        ("NCCL_IB_TC", "-1", "-1"),
        ("NCCL_IB_TC", "300", "300"),
        ("NCCL_IB_TC", "0104", "0104"),
        ("NCCL_IB_TC", "0x68", "0x68"),
        ("NCCL_IB_SL", "104", "104"),
    ],
)
def test_a_tos_byte_is_its_dscp(name: str, value: str, as_meant: str) -> None:
    assert meant(name, value) == as_meant
    assert meant(name, as_meant) == as_meant


def test_the_ecn_bits_that_a_file_has_do_not_matter() -> None:
    found = replace(box(), files={**OURS, "/etc/nccl.conf": f"{MARKED}NCCL_IB_TC=104\n"})
    assert variables(found)["NCCL_IB_TC"] == "106"
    assert change(found, NCCL_IB_TC="104").empty and change(found, NCCL_IB_TC="106").empty
    [put] = change(found, NCCL_IB_TC="96").commit
    assert isinstance(put, Put) and put.text is not None and "\nNCCL_IB_TC=98\n" in put.text


@pytest.mark.parametrize(
    "files",
    [
        {"environment": "NCCL_IB_TC=96\n"},
        {"environment": "NCCL_IB_TC='96'\n"},
        {"profile": "export NCCL_IB_TC=96 # site\n"},
        {"aa_sh": 'export NCCL_IB_TC="96"\n'},
        {"bashrc": "NCCL_IB_TC=96\n"},
        {
            "environment": "NCCL_IB_TC=0\n",
            "aa_sh": "export NCCL_IB_TC=0\n",
            "zz_sh": "export NCCL_IB_TC=97\n",
        },
    ],
)
def test_nccl_takes_its_environment_before_its_file(files: dict[str, str]) -> None:
    found = box(**files)
    assert variables(found)["NCCL_IB_TC"] == "98"
    refused = change(found, NCCL_IB_TC="104", NCCL_IB_HCA="=mlx5_1")
    assert [one.path for one in refused.blocked] == ["system.environment.NCCL_IB_TC"]
    place = _path(list(files)[-1])
    assert dict(refused.reasons) == {
        "system.environment.NCCL_IB_TC": f"second owner: {place}:1 sets it to "
        + ("97" if "zz_sh" in files else "96")
    }
    # The file is written for what it still decides, with the line that it has.
    [put] = refused.commit
    assert isinstance(put, Put) and put.text is not None
    assert "NCCL_IB_HCA==mlx5_1\nNCCL_IB_TC=106\n" in put.text


@pytest.mark.parametrize(
    "line",
    [
        "export NCCL_IB_TC=$SITE_TC",
        "export NCCL_IB_TC=106; export NCCL_DEBUG=INFO",
        '[ -z "$NCCL_IB_TC" ] && export NCCL_IB_TC=106',
        "if true; then export NCCL_IB_TC=106; fi",
        "declare -x NCCL_IB_TC=106",
        "NCCL_IB_TC DEFAULT=106",
        'export NCCL_IB_TC="106',
    ],
)
def test_a_line_that_is_not_understood_blocks(line: str) -> None:
    found = box(site_sh=f"{line}\n")
    assert variables(found)["NCCL_IB_TC"] is UNKNOWN
    refused = change(found, NCCL_IB_TC="104")
    assert refused.empty and [one.path for one in refused.blocked] == ["system.environment.NCCL_IB_TC"]
    [(_, reason)] = refused.reasons
    assert reason == "second owner: /etc/profile.d/site.sh:1 sets it to what is not understood"


def test_below_an_if_nobody_knows() -> None:
    found = box(site_sh='if [ -n "$SLURM_JOB_ID" ]; then\n  export NCCL_IB_TC=106\nfi\n')
    assert variables(found)["NCCL_IB_TC"] is UNKNOWN


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({"environment": "UCX_TLS=tcp\n"}, "rc"),
        ({"aa_sh": "export UCX_TLS=tcp\n"}, "rc"),
        ({"zz_sh": "export UCX_TLS=tcp\n"}, "tcp"),
        ({"bashrc": "export UCX_TLS=tcp\n"}, "tcp"),
    ],
)
def test_of_ucx_the_file_that_is_read_last_counts(files: dict[str, str], value: str) -> None:
    assert variables(box(**files))["UCX_TLS"] == value


@pytest.mark.parametrize("line", ["# export NCCL_IB_TC=0", "export X_NCCL_IB_TC_X=0", "unset PATH"])
def test_other_lines_say_nothing(line: str) -> None:
    found = box(site_sh=f"{line}\n")
    assert variables(found) == variables(box())
    assert change(found, NCCL_IB_TC="104", NCCL_IB_HCA="=mlx5_0", UCX_TLS="rc").empty


def test_another_file_of_nccl() -> None:
    notes = box(environment="NCCL_CONF_FILE=/opt/nccl.conf\n").observe(HW).notes
    assert "/etc/environment:1 sets NCCL_CONF_FILE: that file goes before /etc/nccl.conf" in notes


@pytest.mark.parametrize(
    "part",
    [
        None,
        "==/etc/environment\ngrep: /etc/environment: Permission denied\n",
        "==/etc/environment\nsh: 1: grep: not found\n",
    ],
)
def test_without_the_answer_nothing_is_known(part: str | tuple[str, int] | None) -> None:
    found = replace(box(), parts={"environment": part})
    assert set(variables(found).values()) == {UNKNOWN}
    assert change(found, NCCL_IB_TC="104").empty
