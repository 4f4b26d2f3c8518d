"""InfiniBand: the faults B68 and B70 of `shared/cases`, and the design P27 of `shared/published`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric import render
from rdma_fabric.checker import Report, build, check
from rdma_fabric.cli import main
from rdma_fabric.cli.common import load
from rdma_fabric.inventory.partitions import MTU_CODES, RATE_CODES, read_partitions
from rdma_fabric.platforms import platform, realize
from rdma_fabric.settings import deviations
from rdma_fabric.state import differences

INTENT = """
version: 1
name: subnet-a
rdma: {transport: infiniband, mtu: 4096}
"""
MANAGER = "subnet_manager: {nodes: [{node: ctl01, priority: 14}]}\n"


def _fabric(folder: Path, intent: str) -> Path:
    texts = {
        "fabric.yaml": intent,
        "groups.yaml": (
            "sw: {platform: nvidia_ib, data: {role: leaf, ports: {'1/[1-3]': {speed: 100G, network: A}}}}\n"
            "host: {platform: linux, data: {role: host, ports: {ib0: {speed: 100G, network: A}}}}\n"
        ),
        "hosts.yaml": (
            "ib01: {groups: [sw], hostname: 192.0.2.1}\n"
            'gpu[41-42]: {groups: [host], hostname: "192.0.2.[41-42]"}\n'
            "ctl01: {groups: [host], hostname: 192.0.2.9}\n"
        ),
        "guids.csv": (
            "node,port,guid\ngpu[41-42],ib0,0x0002c9030000000[1-2]\nctl01,ib0,0x0002c90300000009\n"
        ),
        "cables.csv": (
            "a_node,a_port,b_node,b_port,length_m\ngpu[41-42],ib0,ib01,1/[1-2],3\nctl01,ib0,ib01,1/3,3\n"
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _yaml(shared: Path, pattern: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(next(shared.glob(pattern)).read_text(encoding="utf-8"))
    return found


def _verdict(folder: Path) -> Report:
    return check(build(load(folder)))


@pytest.mark.judge("cases")
def test_a_subnet_without_manager_is_rejected(shared: Path, tmp_path: Path) -> None:
    expect = _yaml(shared, "cases/B68-*.yaml")["expect"]
    report = _verdict(_fabric(tmp_path, INTENT))
    assert expect["verdict"] == "reject"
    (one,) = report.findings
    assert (one.setting, one.found, one.wanted) == (
        expect["setting"],
        str(expect["found"]),
        expect["wanted"],
    )
    assert [place.network for place in one.places] == ["A"] and one.code == "FAB070"
    for words in ("no LIDs", "never become active"):
        assert words in one.message and words in expect["reason"]
    assert main(["check", str(tmp_path)]) == 1


@pytest.mark.judge("cases")
def test_the_compiled_partition_says_its_mtu_as_a_code(shared: Path, tmp_path: Path) -> None:
    expect = _yaml(shared, "cases/B70-*.yaml")["expect"]
    judged = build(load(_fabric(tmp_path, INTENT + MANAGER)))
    files = {one.path: one.text for one in render.compile_fabric(judged, [expect["node"]])[expect["node"]]}
    text = files["etc/opensm/partitions.conf"]
    assert "Default=0x7fff, ipoib, mtu=5" in text
    assert "mtu=4096" not in text


@pytest.mark.judge("cases")
def test_a_partition_without_mtu_is_drift(shared: Path, tmp_path: Path) -> None:
    expect = _yaml(shared, "cases/B70-*.yaml")["expect"]
    plan = load(_fabric(tmp_path, INTENT + MANAGER)).plans["ctl01"]
    wanted = realize(plan.state, plan.hardware).state
    service = platform("opensm")
    (question,) = service.questions(plan.hardware)
    file = "Default=0x7fff, ipoib : ALL=full, ALL_SWITCHES=full, SELF=full ;"
    answer = f"@@files\n==/etc/opensm/partitions.conf\n{file}\n@=0\n@@process\nnone\n@=0\n"
    seen = service.parse({question: answer}, plan.hardware).running
    rows = {one.title: one for one in deviations(differences(wanted, seen), wanted, seen)}
    one = rows["subnet manager partitions"]
    assert str(expect["found"]).split()[0] in one.found and str(expect["wanted"]).split()[0] in one.wanted


P27 = """
version: 1
name: rhel-ib
rdma: {transport: infiniband, mtu: 2048}
subnet_manager:
  nodes:
  - {node: ctl01, priority: 14}
  partitions:
  - name: Default
    pkey: 0x7fff
    mtu: 2048
    rate: 10
    scope: 2
    members: {full: [ALL, ALL_SWITCHES]}
    groups:
    - "ff12:401b::1"
    - "ff12:401b::2"
    - "ff12:401b::16"
    - "ff12:401b::fb"
    - "ff12:401b::fc"
    - "ff12:401b::101"
    - "ff12:401b::202"
    - "ff12:601b::1"
    - "ff12:601b::2"
    - "ff12:601b::16"
    - "ff12:601b::fb"
    - "ff12:601b::101"
  - {name: ib0_2, pkey: 0x0002, mtu: 2048, rate: 40, members: {full: [ALL, ALL_SWITCHES]}}
"""


def _theirs(page: dict[str, Any]) -> str:
    """The file of the page: a group a line as there; what it cuts off ends as its first statement does."""
    first, second = page["expected_lines"]["partitions_conf"][:2]
    head, *groups = second.partition(" (list continues")[0].split("mgid=")
    names = [group.strip(" ,") for group in groups]
    return (
        f"{first}\n{head}\n"
        + "".join(f" mgid={name}\n" for name in names)
        + " ALL=full, ALL_SWITCHES=full ;\n"
    )


@pytest.mark.judge("published-designs")
def test_the_published_partitions(shared: Path, tmp_path: Path) -> None:
    page = _yaml(shared, "published/27-*.yaml")
    judged = build(load(_fabric(tmp_path, P27)))
    assert [one for one in check(judged).findings if one.severity.name != "NOTE"] == []
    text = {one.path: one.text for one in render.compile_fabric(judged, ["ctl01"])["ctl01"]}[
        "etc/opensm/partitions.conf"
    ]
    ours, theirs = read_partitions(text), read_partitions(_theirs(page))
    assert ours.problems == () and theirs.problems == ()
    # Two statements about one P_Key are one partition; the IPv4 broadcast group is what ipoib makes.
    assert ours.partitions.named("Default") == theirs.partitions.named("Default")
    default = ours.partitions.named("Default")
    assert default is not None and len(default.groups) == 12 and "\tmgid=ff12:601b::101\n" in text
    assert "Default=0x7fff, ipoib, mtu=4, rate=3, sl=0, scope=2 :" in text
    assert "ib0_2=0x0002, ipoib, mtu=4, rate=7, sl=0 :" in text
    for row in page["must_not"][:2]:
        assert row["line"] not in text
    assert "0x8002" not in text


@pytest.mark.judge("published-designs")
def test_the_codes_of_the_page_are_ours(shared: Path) -> None:
    codes = _yaml(shared, "published/27-*.yaml")["readback"][0]["codes"]
    assert codes["mtu"] == dict(MTU_CODES)
    assert {code: RATE_CODES[code] for code in codes["rate"]} == {
        code: rate.removesuffix("G") for code, rate in codes["rate"].items()
    }


@pytest.mark.judge("published-designs")
def test_the_published_partitions_under_another_mtu(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = _yaml(shared, "published/27-*.yaml")["checker_expect"]
    assert "`mtu: 4096`" in expected[0] and "warning" in expected[0]
    assert main(["check", str(_fabric(tmp_path, P27)), "--set", "rdma.mtu=4096", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {(one["code"], one["severity"], one["found"]) for one in found} == {("FAB073", "warning", "2048")}


@pytest.mark.judge("published-designs")
def test_a_host_slower_than_the_partition(shared: Path, tmp_path: Path) -> None:
    expected = _yaml(shared, "published/27-*.yaml")["checker_expect"]
    assert "slower than the partition rate" in expected[1]
    report = _verdict(_fabric(tmp_path, P27.replace("rate: 40", "rate: 120")))
    assert [(one.code, len(one.places)) for one in report.findings] == [("FAB080", 3)]


def test_a_manager_on_a_switch_is_checked_and_gets_no_line(tmp_path: Path) -> None:
    intent = f"{INTENT}subnet_manager: {{owner: switch, nodes: [{{node: ib01, priority: 14}}]}}\n"
    judged = build(load(_fabric(tmp_path, intent)))
    assert {one.severity.name for one in check(judged).findings} == {"NOTE"}
    assert not [one for one in render.compile_fabric(judged, ["ib01"])["ib01"] if "ib sm" in one.text]
    plan = judged.resolved.plans["ib01"]
    assert dict(plan.hardware.options)["sm_owner"] == "switch"
    assert realize(plan.state, plan.hardware).state.system.sm.priority == 14
