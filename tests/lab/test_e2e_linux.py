"""Host settings from the command line: files of others, unusual names, what waits for a reset."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from tests.support.fabrics import Fabric, lab_up, make

pytestmark = [pytest.mark.lab, pytest.mark.judge("linux-sandbox")]

WISH = """hosts:
  modules: [ib_uverbs, rdma_ucm]
  module_options: {mlx5_core: {prof_sel: 3}}
  sysctl: {net.ipv4.tcp_keepalive_intvl: 30, net.ipv4.tcp_ecn: 1, net.ipv4.conf.*.arp_ignore: 1}
  limits: {memlock: unlimited}
  services: [slurmd]
"""
OPTION = ("pending", "", "module option mlx5_core.prof_sel", "2", "3")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    made = make(tmp_path_factory.mktemp("linux"), {"leaf01": "arista_eos"}, hosts=("gpu01",), cables="")
    intent = (made.folder / "fabric.yaml").read_text("utf-8")
    made.write(fabric=re.sub(r"^hosts:\n(?:[ #].*\n)*", WISH, intent, flags=re.MULTILINE))
    with lab_up(made, needs=("gpu01",)):
        yield made


def test_the_story_of_one_host(fabric: Fabric) -> None:
    fabric.somebody(
        "gpu01",
        "echo 'net.ipv4.tcp_ecn = 0' > /etc/sysctl.d/99-zz.conf; "
        "printf '# site\\nnet.ipv4.conf.eth1.arp_ignore = 2\\n' > /etc/sysctl.d/zzz.conf",
    )
    before = fabric.drift("--limit", "gpu01")
    assert not before.data["nodes"][0].get("unknown")  # every name is read before the first apply
    second = "second owner: /etc/sysctl.d/zzz.conf:2 sets it to 2"
    found = fabric.apply("--limit", "gpu01", status=1)
    row = found.rows["gpu01"]
    assert (
        row["status"] == "unknown"
        and f"system.sysctl.net.ipv4.conf.eth1.arp_ignore: {second}" in row["detail"]
    )
    left = fabric.drift("--limit", "gpu01")
    mine = ("running", "", "sysctl net.ipv4.conf.eth1.arp_ignore", "0", "1")
    assert set(left.drifts["gpu01"]) == {OPTION, mine}
    assert second in left.text

    fabric.somebody("gpu01", "rm /etc/sysctl.d/zzz.conf")
    found = fabric.apply("--limit", "gpu01", status=1)
    assert found.statuses["gpu01"] == "pending-reset"
    assert set(fabric.drift("--limit", "gpu01").drifts["gpu01"]) == {OPTION}
    again = fabric.apply("--limit", "gpu01", status=1)
    assert again.statuses["gpu01"] == "pending-reset" and "after a reset" in again.rows["gpu01"]["detail"]
    memlock = fabric.somebody("gpu01", "cat /etc/systemd/system/slurmd.service.d/zz-fabric.conf")
    assert "LimitMEMLOCK=infinity" in memlock
