"""inventory/mixed on the lab: InfiniBand compute and RoCE storage on the same hosts, one apply, one drift."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from tests.support.fabrics import REPOSITORY, Fabric, lab_up, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.judge("opensm")]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    if shutil.which("ibsim", path="/usr/bin:/usr/sbin") is None or not Path("/usr/sbin/opensm").exists():
        pytest.skip("opensm, ibsim-utils and infiniband-diags are not installed (scripts/packages.txt)")
    folder = tmp_path_factory.mktemp("mixed") / "mixed"
    source = REPOSITORY / "inventory" / "mixed"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".fabric"))
    made = Fabric(folder)
    with lab_up(made, needs=("gpu1", "sm1")):
        if "(InfiniBand)" in made.skipped():
            pytest.skip(f"no InfiniBand lab here: {made.skipped()['(InfiniBand)']}")
        yield made


def _keys(mixed: Fabric, node: str) -> str:
    return mixed.somebody(node, "smpquery -C mlx5_0 -P 1 -D pkeys 0 1 | head -1")


def test_one_apply_and_one_drift(mixed: Fabric) -> None:
    done = mixed.apply(status=0)
    assert {done.statuses[name] for name in ("gpu1", "gpu4", "sm1", "sm2", "stor1")} == {"applied"}
    assert done.statuses["ibleaf1"] == "unchanged"
    assert "0xffff 0x8010" in _keys(mixed, "gpu1")
    assert "mtu 4092" in mixed.somebody("gpu1", "ip -o link show ib0")
    assert "mtu 9000" in mixed.somebody("gpu1", "ip -o link show eth0")
    assert "dscp" in mixed.somebody("gpu1", "mlnx_qos -i eth0 | grep trust")
    assert mixed.drift(status=0).drifts == {}


def test_both_networks_in_one_drift(mixed: Fabric) -> None:
    (mixed.folder / "defaults.yaml").write_text("data: {state: active}\n", encoding="utf-8")
    mixed.somebody("gpu2", "mlnx_qos -i eth0 --pfc 0,0,0,0,0,0,0,0")
    mixed.somebody(
        "sm1", "sed -i '/0x0002c90300000103=full/d' /etc/opensm/partitions.conf", "pkill -HUP -x opensm"
    )
    wait_for(lambda: "0xffff 0x0000" in _keys(mixed, "gpu3"))
    seen = mixed.drift(status=1).drifts
    assert any(row[1:3] == ("eth0", "PFC priorities") for row in seen["gpu2"])
    assert ("running", "ib0", "P_Keys", "0xffff", "0x8010,0xffff") in seen["gpu3"]
    assert {"sm1", "gpu2", "gpu3"} == set(seen)
    mixed.apply("--allow", "port-bounce", status=0)
    wait_for(lambda: "0xffff 0x8010" in _keys(mixed, "gpu3"))
    assert mixed.drift(status=0).drifts == {}


def test_a_second_manager_on_the_switch_is_stopped(mixed: Fabric) -> None:
    mixed.somebody("ibleaf1", "ib sm")
    wait_for(lambda: mixed.drift("--limit", "ibleaf1").drifts != {})
    assert mixed.drift("--limit", "ibleaf1", status=1).drifts == {
        "ibleaf1": [("running", "", "subnet manager running", "on", "off")]
    }
    done = mixed.apply("--limit", "ibleaf1", "--allow", "loss", status=0)
    assert done.statuses == {"ibleaf1": "applied"}
    assert "ib sm\n" not in mixed.running("ibleaf1")
