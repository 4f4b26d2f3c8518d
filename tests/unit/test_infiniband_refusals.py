"""Every value of InfiniBand that is out of range is refused with file and line, before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdma_fabric.cli import main
from rdma_fabric.cli.common import load
from rdma_fabric.state import UNMANAGED
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


WARNINGS = ("shares lane 0 with strict class compute", "partition blue has no host")


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


@pytest.mark.parametrize(
    ("key", "value"),
    [("lmc", "3"), ("vls", "8"), ("routing", "[minhop]"), ("partitions", "[]"), ("owner", "ufm")],
)
@pytest.mark.parametrize("where", ["ctl01", "role=host", "port=ib0", "role=nobody"])
def test_a_subnet_manager_of_one_node_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: str, where: str
) -> None:
    wish = f'overrides:\n  - {{where: "{where}", set: {{subnet_manager.{key}: {value}}}}}\n'
    status, said = _check(_fabric(tmp_path, INTENT + wish), capsys)
    line = INTENT.count("\n") + 2
    assert status == 2 and f"fabric.yaml:{line}:" in said, said
    assert f"subnet_manager.{key} holds for a whole network" in said and "networks.NAME" in said


@pytest.mark.parametrize(("file", "line"), [("groups.yaml", 2), ("hosts.yaml", 3)])
def test_a_subnet_manager_in_the_inventory_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, line: int
) -> None:
    folder = _fabric(tmp_path, INTENT)
    text = (folder / file).read_text(encoding="utf-8")
    old, new = {
        "groups.yaml": ("data: {role: host,", "data: {role: host, set: {subnet_manager: {lmc: 3}},"),
        "hosts.yaml": ("hostname: 192.0.2.9}", "hostname: 192.0.2.9, data: {set: {subnet_manager.lmc: 3}}}"),
    }[file]
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    status, said = _check(folder, capsys)
    assert status == 2 and f"{file}:{line}:" in said and "subnet_manager.lmc holds for a whole" in said, said


def test_a_subnet_manager_of_a_port_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _fabric(tmp_path, INTENT)
    path = folder / "groups.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "ib0: {speed: 100G, network: A}", "ib0: {speed: 100G, network: A, set: {subnet_manager.lmc: 3}}"
    )
    path.write_text(text, encoding="utf-8")
    status, said = _check(folder, capsys)
    assert status == 2 and "groups.yaml:2:" in said and "not for a port" in said, said


def test_a_what_if_for_the_manager_of_one_node_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(_fabric(tmp_path, INTENT))
    for words in (["--set", "ctl01:subnet_manager.lmc=3"], ["--unset", "ctl01:subnet_manager.lmc"]):
        assert main(["check", folder, *words]) == 2
        assert "subnet_manager.lmc holds for a whole network" in capsys.readouterr().err
    assert main(["check", folder, "--set", "subnet_manager.lmc=3"]) == 0


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("rdma.mtu", "2048", "2048 here, 4096 in network A"),
        ("rdma.transport", "rocev2", "rocev2 here, infiniband in network A"),
        ("classes.compute.vl", "0", "0 here, 1 in network A"),
        ("classes.compute.sl", "3", "3 here, 1 in network A"),
        ("classes.compute.scheduler", "strict", "strict here, none in network A"),
        ("classes.compute.bandwidth", "10%", "10% here, 60% in network A"),
        ("classes.compute.weight", "7", "7 here, none in network A"),
    ],
)
def test_what_a_subnet_has_once_is_not_wished_for_a_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: str, told: str
) -> None:
    wish = f'overrides:\n  - {{where: "gpu41", set: {{{key}: {value}}}}}\n'
    status, said = _check(_fabric(tmp_path, INTENT + wish), capsys)
    line = INTENT.count("\n") + 2
    assert status == 2 and f"fabric.yaml:{line}:" in said, said
    assert f"{key} holds for a whole network, not for a port: {told}" in said
    same = {"rdma.mtu": "4096", "rdma.transport": "infiniband", "classes.compute.vl": "1"}.get(key)
    if same is not None:
        again = INTENT + wish.replace(f" {value}}}", f" {same}}}")
        status, said = _check(_fabric(tmp_path, again), capsys)
        assert status == 0, said


def test_ipoib_may_differ_between_hosts(tmp_path: Path) -> None:
    wish = "overrides:\n  - {where: gpu41, set: {hosts.ipoib: {mode: connected, interfaces: false}}}\n"
    plans = load(_fabric(tmp_path, INTENT + wish)).plans
    modes = {name: plans[name].state.ports[0].settings.ib.mode for name in ("gpu41", "gpu42")}
    assert modes == {"gpu41": "connected", "gpu42": "datagram"}
    children = {name: plans[name].state.ports[0].settings.ib.children for name in ("gpu41", "gpu42")}
    assert children == {"gpu41": UNMANAGED, "gpu42": (0x8010,)}


def test_engine_file_needs_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without one it is minhop, and engines behind it are never tried (tests/judges/test_opensm.py)."""
    bare = INTENT.replace("[updn]", "[file, updn]")
    status, said = _check(_fabric(tmp_path, bare), capsys)
    line = INTENT[: INTENT.index("[updn]")].count("\n") + 1
    assert status == 2 and f"fabric.yaml:{line}:" in said and "subnet_manager.lfts_file" in said, said
    named = bare.replace("  lmc: 0\n", "  lmc: 0\n  lfts_file: /etc/opensm/lfts.conf\n")
    folder = _fabric(tmp_path, named)
    assert main(["compile", str(folder), "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    conf = (tmp_path / "out" / "ctl01" / "etc" / "opensm" / "opensm.conf").read_text(encoding="utf-8")
    assert "routing_engine file,updn\nlfts_file /etc/opensm/lfts.conf\n" in conf
    status, said = _check(_fabric(tmp_path, named.replace("[file, updn]", "[updn]")), capsys)
    assert status == 2 and "lfts_file is read by routing engine file only" in said, said
    status, said = _check(_fabric(tmp_path, named.replace("/etc/opensm/", "")), capsys)
    assert status == 2 and "fabric.yaml:" in said, said


def test_a_partition_of_a_file_without_hosts_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = INTENT.partition("  partitions:\n")[0]
    folder = _fabric(tmp_path, f"{head}  partitions_file: partitions.conf\n")
    rules = "Default=0x7fff, ipoib, mtu=5 : ALL=full, SELF=full ;\na=0x10 : ALL_SWITCHES=full, SELF ;\n"
    (folder / "partitions.conf").write_text(rules, encoding="utf-8")
    status, said = _check(folder, capsys)
    line = head.count("\n") + 1
    assert status == 0 and "partition a has no host" in said and f"fabric.yaml:{line}:" in said, said


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
        ("vl: 1, bandwidth: 60%", "vl: 0, scheduler: strict", "shares lane 0 with strict class compute"),
        ('{full: ["role=host"]}', "{full: [ALL_SWITCHES, SELF]}", "partition blue has no host"),
    ],
)
def test_a_value_that_fits_nothing_is_an_error_with_a_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, setting: str
) -> None:
    assert INTENT.count(old) == 1
    status, said = _check(_fabric(tmp_path, INTENT.replace(old, new)), capsys)
    assert status == (0 if setting in WARNINGS else 1) and setting in said, said
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
