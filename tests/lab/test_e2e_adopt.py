"""`fabric adopt` on running fabrics: the written intent describes all but the three nodes that differ."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.cli import main
from tests.support.fabrics import DEMO, MODELS, REPOSITORY, Fabric, lab_up, make

pytestmark = pytest.mark.lab

SCHEMA = json.loads((REPOSITORY / "docs/schemas/adopt.json").read_text("utf-8"))
TRUST = {
    "arista_eos": ("configure", "interface Ethernet1/1", "qos trust cos", "end"),
    "sonic": ("sudo config interface mtu Ethernet0 1500",),
    "cumulus": ("nv set interface swp1 link mtu 1500", "nv config apply -y"),
    "linux": ("mlnx_qos -i eth0 --pfc 0,0,0,0,1,0,0,0",),
}
"""Platform -> what somebody types on one node to make it differ in one setting."""
SETTING = {"arista_eos": "trust", "sonic": "mtu", "cumulus": "mtu", "linux": "PFC priorities"}


@dataclass(frozen=True, slots=True)
class _Mix:
    fabric: Fabric
    deviants: Mapping[str, str]
    """Node -> the setting that differs."""
    hosts: Sequence[str]


def _pairs(platform: str, count: int) -> dict[str, str]:
    return {f"{platform[:3]}{number}": platform for number in range(1, count + 1)}


def _ring(names: Sequence[str], platform: str) -> str:
    """Every switch has two cables to the next one."""
    ports = MODELS[platform].ports
    return "".join(
        f"{a},{ports[out]},{b},{ports[out + 1]},5\n"
        for a, b in zip(names, [*names[1:], names[0]], strict=True)
        for out in (0, 2)
    )


@pytest.fixture(scope="module", params=["mixed", "arista_eos", "sonic", "cumulus"])
def mix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Mix]:
    """A lab at an intent that adopt does not see, then changed by hand on three nodes."""
    folder = tmp_path_factory.mktemp("adopt") / "fabric"
    hosts: list[str] = []
    if request.param == "mixed":
        shutil.copytree(DEMO, folder, ignore=shutil.ignore_patterns(".fabric"))
        fabric, hosts = Fabric(folder), [f"gpu0{number}" for number in range(1, 9)]
        where = {"leaf03": "cumulus", "gpu05": "linux", "spine02": "arista_eos"}
    else:
        switches = _pairs(request.param, 8)
        fabric = make(folder, switches, cables=_ring(list(switches), request.param))
        where = dict(list(switches.items())[2:5])
    fabric.edit("fabric.yaml", "priority: 3, dscp: [26]", "priority: 3, dscp: [24, 26]")
    fabric.edit("fabric.yaml", "bandwidth: 50%}\n  cnp", "bandwidth: 60%}\n  cnp")
    fabric.edit("fabric.yaml", "dscp: rest, bandwidth: 50%", "dscp: rest, bandwidth: 40%")
    with lab_up(fabric, needs=hosts):
        fabric.apply(status=0)
        for node, platform in where.items():
            fabric.somebody(node, *TRUST[platform])
        yield _Mix(fabric, {node: SETTING[platform] for node, platform in where.items()}, hosts)


def _adopt(mix: _Mix, target: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    folder = str(mix.fabric.folder)
    code = main(["adopt", folder, "--lab", "-o", str(target), "--format", "json", *words])
    shutil.copy(mix.fabric.folder / ".fabric/lab/known_hosts", target / "known_hosts")
    data = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(data)
    return code, data


def test_written_intent_describes_all_but_three(
    mix: _Mix, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "adopted"
    code, data = _adopt(mix, target, capsys)
    assert code == 1
    assert {name: [one["setting"] for one in rows] for name, rows in data["deviants"].items()} == {
        name: [setting] for name, setting in mix.deviants.items()
    }
    assert data["left"] == []
    text = (target / "fabric.yaml").read_text("utf-8")
    assert "priority: 3, dscp: [24, 26], lossless: true, bandwidth: 60%" in text.replace(
        "[26, 24]", "[24, 26]"
    )

    assert main(["diff", str(target), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["nodes"]
    assert {row["node"] for row in rows if row["status"] != "unchanged"} == set(mix.deviants)

    main(["check", str(target), "--live", "--format", "json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    named = {
        place["node"]
        for one in findings
        if one["severity"] in ("error", "warning")
        for place in one["places"]
        if place.get("node")
    }
    assert named == set(mix.deviants)


def test_cables_are_those_of_the_plan(mix: _Mix, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rdma_fabric.cli.common import load

    target = tmp_path / "adopted"
    _adopt(mix, target, capsys)
    mine, theirs = load(target).inventory, load(mix.fabric.folder).inventory
    assert {frozenset((one.a, one.b)) for one in mine.links} == {
        frozenset((one.a, one.b)) for one in theirs.links
    }
    for name, node in theirs.nodes.items():
        assert mine.nodes[name].spec.platform == node.spec.platform
        assert mine.nodes[name].is_host == node.is_host
        ours = {port.name: (port.nic, port.rdma) for port in mine.nodes[name].spec.ports.values()}
        assert ours == {port.name: (port.nic, port.rdma) for port in node.spec.ports.values() if port.network}


def test_nothing_but_questions_is_sent(mix: _Mix, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An account that may not write is enough: what needs more rights is refused, and nothing is missing."""
    sent = {name: len(mix.fabric.lines(name)) for name in mix.deviants}
    words = "sudo (?!cat)|configure|^nv (set|unset|config (apply|save|patch))|config load|-s |--pfc"
    node = next(iter(mix.deviants))
    with mix.fabric.broken(node, "refuse", words):
        code, _ = _adopt(mix, tmp_path / "adopted", capsys)
    assert code == 1
    for name, count in sent.items():
        lines = mix.fabric.lines(name)[count:]
        assert lines
        assert not any(re.search("configure|^nv set|config load|mlnx_qos .*--pfc", line) for line in lines)


def test_hosts_that_keep_nothing_over_a_reboot_are_told(
    mix: _Mix, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Set by hand and stored nowhere: it works as the others do, until the next reboot."""
    host = mix.hosts[-1] if mix.hosts else ""
    if host:
        mix.fabric.somebody(host, "rm -r /etc/fabric")
    target = tmp_path / "adopted"
    code, data = _adopt(mix, target, capsys)
    assert code == 1 and set(data["deviants"]) == set(mix.deviants)
    assert set(data["lost"]) == ({host} if host else set())
    if host:
        assert {"eth0 PFC priorities", "eth0 trust", "eth0 DSCP map"} <= set(data["lost"][host])
        assert main(["diff", str(target), "--format", "json"]) == 0
        rows = {row["node"]: row for row in json.loads(capsys.readouterr().out)["nodes"]}
        assert {name for name, row in rows.items() if row["status"] != "unchanged"} == {*mix.deviants, host}
        assert "dscp, not stored" in {one["found"] for one in rows[host]["settings"]}


def test_nothing_is_overwritten(mix: _Mix, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fabric.yaml").write_text("version: 1\n", "utf-8")
    assert main(["adopt", str(mix.fabric.folder), "--lab", "-o", str(tmp_path)]) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
