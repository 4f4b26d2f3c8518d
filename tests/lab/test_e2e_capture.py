"""`fabric capture` and `fabric support` on the lab, with secrets planted on every platform."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from tests.support.fabrics import REPOSITORY, Fabric, lab_up, make

pytestmark = pytest.mark.lab

SCHEMA = json.loads((REPOSITORY / "docs/schemas/capture.json").read_text("utf-8"))
PLANTED = "Planted4711"
PLANT = {
    "eos1": (
        "configure",
        f"username bob privilege 15 secret sha512 $6${PLANTED}$Qm9iJ3NTZWNyZXQvMTIz",
        f"snmp-server community {PLANTED} ro",
        "end",
        "copy running-config startup-config",
    ),
    "son1": (f"sonic-db-cli CONFIG_DB HSET 'SNMP_COMMUNITY|{PLANTED}' TYPE RO", "sudo config save -y"),
    "cum1": (
        f"nv set system aaa user bob hashed-password '$6${PLANTED}$QWxpY2VzU2VjcmV0LzQ1Ng'",
        "nv config apply -y",
        "nv config save",
    ),
}
NODES = {"eos1": "arista_eos", "son1": "sonic", "cum1": "cumulus"}


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """Three switches at the intent, with secrets of others on them."""
    cables = "eos1,Ethernet1/1,son1,Ethernet0,5\nson1,Ethernet8,cum1,swp1,5\n"
    found = make(tmp_path_factory.mktemp("capture") / "fabric", NODES, cables=cables)
    with lab_up(found):
        for node, lines in PLANT.items():
            found.somebody(node, *lines)
            assert PLANTED in found.running(node)
        found.apply(status=0)
        yield found


@pytest.mark.parametrize("node", NODES)
def test_capture(fabric: Fabric, node: str, tmp_path: Path) -> None:
    ran = fabric.run("capture", node, "--lab", "--format", "json", "-o", str(tmp_path), status=0)
    Draft202012Validator(SCHEMA).validate(ran.data)
    assert ran.data["not_understood"] == []
    assert ran.data["masked_is_understood_alike"] is True
    texts = [path.read_text("utf-8") for path in tmp_path.iterdir()]
    assert len(texts) == 2
    assert not any(PLANTED in text for text in (*texts, ran.text))
    data = yaml.safe_load((tmp_path / "answers.yaml").read_text("utf-8"))
    assert data["platform"] == NODES[node]
    assert len("".join(data["answers"].values())) > 1000


def test_capture_of_a_node_that_is_not_there(fabric: Fabric, tmp_path: Path) -> None:
    ran = fabric.run("capture", "eos9", "--lab", "-o", str(tmp_path), status=2)
    assert "did you mean eos1" in ran.err
    with fabric.broken("eos1", "unreachable"):
        ran = fabric.run("capture", "eos1", "--lab", "-o", str(tmp_path), status=2)
    assert ran.err.startswith("eos1: ")


def test_support(fabric: Fabric, tmp_path: Path) -> None:
    out = tmp_path / "support.tar.gz"
    run = fabric.runs()[-1]["run"]
    fabric.run("support", run, "-o", str(out), status=0)
    with tarfile.open(out) as archive:
        texts = {one.name: archive.extractfile(one).read().decode() for one in archive}  # type: ignore[union-attr]
    assert {name.rpartition("/")[2] for name in texts} >= {
        "about.json",
        "journal.jsonl",
        "fabric.yaml",
        "eos1.json",
    }
    assert not any(PLANTED in text for text in texts.values())
    about = json.loads(texts[f"fabric-support-{run}/about.json"])
    assert about["nodes"]["eos1"]["status"] == "applied"
