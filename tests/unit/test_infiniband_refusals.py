"""Every value of InfiniBand that is out of range is refused with file and line, before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdma_fabric.cli import main
from tests.cases.test_infiniband import _fabric

INTENT = """\
version: 1
name: subnet-a
rdma: {transport: infiniband, mtu: 4096}
classes:
  default: {priority: 0, dscp: rest, sl: 0, bandwidth: 40%}
  compute: {priority: 1, sl: 1, vl: 1, bandwidth: 60%}
hosts:
  ipoib: {mode: datagram, interfaces: true}
subnet_manager:
  owner: opensm
  nodes: [{node: ctl01, priority: 14}]
  routing: [updn]
  lmc: 0
  vls: 2
  high_limit: 4
  partitions:
    - name: blue
      pkey: 0x0010
      mtu: 2048
      rate: 100
      sl: 1
      scope: 2
      members: {full: ["role=host"]}
      groups: ["ff12:401b::1"]
"""


def _check(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["check", str(folder)])
    found = capsys.readouterr()
    return status, found.out + found.err


def test_all_of_it_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = _check(_fabric(tmp_path, INTENT), capsys)
    assert status == 0, said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mtu: 4096", "mtu: 4000"),
        ("transport: infiniband", "transport: infinband"),
        ("sl: 1, vl", "sl: 16, vl"),
        ("sl: 1, vl", "sl: -1, vl"),
        ("vl: 1", "vl: 15"),
        ("mode: datagram", "mode: fast"),
        ("interfaces: true", "interfaces: yes"),
        ("owner: opensm", "owner: OpenSM"),
        ("priority: 14", "priority: 16"),
        ("priority: 14", "priority: -1"),
        ("priority: 14", "priority: high"),
        ("[updn]", "[up/dn]"),
        ("sl: 1, vl", "sl: true, vl"),
        ("vl: 1", 'vl: "1"'),
        ("lmc: 0", "lmc: true"),
        ("high_limit: 4", "high_limit: 4.0"),
        ("pkey: 0x0010", "pkey: true"),
        ("pkey: 0x0010", 'pkey: "0010"'),
        ("scope: 2", "scope: true"),
        ("lmc: 0", "lmc: 8"),
        ("vls: 2", "vls: 3"),
        ("high_limit: 4", "high_limit: 256"),
        ("pkey: 0x0010", "pkey: 0x8010"),
        ("pkey: 0x0010", "pkey: 0x0000"),
        ("pkey: 0x0010", "pkey: 0x10000"),
        ("mtu: 2048", "mtu: 5"),
        ("mtu: 2048", "mtu: 9000"),
        ("rate: 100", "rate: 101"),
        ("sl: 1\n", "sl: 16\n"),
        ("scope: 2", "scope: 16"),
        ("scope: 2", "scope: 0"),
        ("{full:", "{fully:"),
        ("ff12:401b::1", "fe80::1"),
        ("name: blue", "name: two words"),
        ("lmc: 0", "lcm: 0"),
    ],
)
def test_a_value_out_of_range_has_a_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    assert INTENT.count(old) == 1
    status, said = _check(_fabric(tmp_path, INTENT.replace(old, new)), capsys)
    line = INTENT[: INTENT.index(old)].count("\n") + 1
    assert status == 2, said
    assert f"fabric.yaml:{line}:" in said


def test_a_guid_of_nobody_in_a_partitions_file_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = INTENT.partition("  partitions:\n")[0]
    folder = _fabric(tmp_path, f"{head}  partitions_file: partitions.conf\n")
    rules = "Default=0x7fff, ipoib, mtu=5 : ALL=full, SELF=full ;\na=0x10 : 0x0002c903000000ff=full ;\n"
    (folder / "partitions.conf").write_text(rules, encoding="utf-8")
    assert main(["check", "-v", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "note[FAB072]" in said and "partition a: no port of network A has GUID 0x0002c903000000ff" in said


def test_no_fallback_alone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = _check(_fabric(tmp_path, INTENT.replace("[updn]", "[no_fallback]")), capsys)
    assert status == 2 and "no_fallback is not a routing engine" in said and "fabric.yaml:" in said, said


@pytest.mark.parametrize(
    ("old", "new", "setting"),
    [
        ('"role=host"', '"role=gpu"', "selects no host port"),
        ('"role=host"', '"0x12"', "is not a GUID"),
        ('"role=host"', '""', "a member without text"),
        ("ff12:401b::1", "ff12:401b:8002::1", "belongs to another P_Key"),
        ("vls: 2", "vls: 1", "lane 1"),
        ("node: ctl01", "node: ctl02", "is not in the inventory"),
        ("sl: 1\n", "sl: 2\n", "which no class has"),
    ],
)
def test_a_value_that_fits_nothing_is_an_error_with_a_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, setting: str
) -> None:
    assert INTENT.count(old) == 1
    status, said = _check(_fabric(tmp_path, INTENT.replace(old, new)), capsys)
    assert status == 1 and setting in said, said
    assert "fabric.yaml:" in said


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("Default=0x7fff, ipoib, mtu=5 : ALL=full ;\na=0x10, sl=16 : ALL=full ;", "2:9", "sl=16"),
        ("Default=0x7fff, ipoib, mtu=4096 : ALL=full ;", "1:24", "mtu=4096 is not a code"),
        ("Default=0x7fff, ipoib, rate=1 : ALL=full ;", "1:24", "rate=1 is not a code"),
        ("Default=0x7fff : ALL=full ;\na=0x10 : gpu41=full ;", "2:10", "bad PortGUID gpu41"),
        ("Default=0x7fff : ALL=full ;\na=0x10, ipoib\n", "2:1", "no partition definition found"),
        ("Default=0x7fff : ALL=full ;\n\0a=0x10 : ALL ;\n", "2:1", "a NUL character"),
    ],
)
def test_a_partitions_file_has_its_own_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, place: str, message: str
) -> None:
    head = INTENT.partition("  partitions:\n")[0]
    folder = _fabric(tmp_path, f"{head}  partitions_file: partitions.conf\n")
    (folder / "partitions.conf").write_text(text, encoding="utf-8")
    status, said = _check(folder, capsys)
    assert status == 2 and f"partitions.conf:{place}" in said and message in said, said
