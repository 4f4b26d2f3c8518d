"""The local check against `drift`, on a sandbox: both are content after an apply, and name the same fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric import platforms
from rdma_fabric.platforms import _host_probes as local
from rdma_fabric.settings import deviations
from rdma_fabric.state import Mtu, NodeState, PortSettings, differences
from tests.lab.hostlab import run, running, said
from tests.lab.test_circle_linux import WISH, Lab, make

pytestmark = pytest.mark.lab

STACKS = ("ofed", "inbox")
SMALLER = replace(WISH, ports=(*WISH.ports[:2], replace(WISH.ports[2], settings=PortSettings(Mtu(ip=4300)))))
BREAKS: tuple[dict[str, set[str]], ...] = (
    {
        "ip link set dev eth0 mtu 4096": {"eth0 mtu", "eth0 RDMA MTU"},
        "mlnx_qos -i eth0 --pfc 0,0,0,0,1,0,0,0": {"eth0 PFC priorities"},
        "mlnx_qos -i eth0 --dscp2prio set,26,0": {"eth0 DSCP map"},
        "mlnx_qos -i eth0 -d fw": {"eth0 DCBX mode"},
        "ethtool -A eth0 rx on tx on": {"eth0 global pause"},
        "cma_roce_tos -d mlx5_0 -p 1 -t 0": {"eth0 RDMA-CM ToS"},
        "mlnx_qos -i eth1 --trust pcp": {"eth1 trust"},
        "sysctl -w net.ipv4.tcp_ecn=2": {"sysctl net.ipv4.tcp_ecn"},
        "rm /etc/security/limits.d/zz-fabric.conf": {"limit memlock"},
        "sed -i s/=10[46]/=0/ /etc/nccl.conf": {"environment NCCL_IB_TC"},
    },
    {
        "ip link set dev eth2 mtu 1500": {"eth2 mtu", "eth2 RDMA MTU"},
        "mlnx_qos -i eth0 --cable_len=40": {"eth0 cable length"},
        "ethtool --set-tunable eth0 pfc-prevention-tout 100": {"eth0 watchdog detect"},
        "mlnx_qos -i eth0 --tsa ets,ets,ets,ets,ets,ets,strict,ets --tcbw 60,0,0,40,0,0,0,0": {
            "eth0 priority 0 scheduler",
            "eth0 priority 3 scheduler",
        },
        "mlnx_qos -i eth1 --prio_tc 0,1,2,3,4,5,6,6": {
            "eth1 priority 7 queue",
            "eth1 priority 7 scheduler",
        },
        "cma_roce_mode -d mlx5_1 -p 1 -m 1": {"eth1 RoCE v2"},
        "rmmod rdma_ucm": {"module rdma_ucm"},
        "rm /etc/profile.d/fabric-rdma.sh": {"environment UCX_TLS"},
    },
)
STACK_BREAKS: dict[str, dict[str, set[str]]] = {
    "ofed": {
        "echo 0 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class": {"eth0 RoCE traffic class"},
        "echo 0 > /sys/class/net/eth0/ecn/roce_rp/enable/3": {"eth0 DCQCN reaction point"},
        "echo 1 > /sys/class/net/eth0/ecn/roce_np/enable/4": {"eth0 DCQCN notification point"},
        "echo 10 > /sys/class/net/eth0/ecn/roce_np/cnp_dscp": {"eth0 CNP DSCP"},
        "echo 9 > /sys/class/net/eth1/ecn/roce_np/min_time_between_cnps": {
            "eth1 DCQCN np_min_time_between_cnps"
        },
    },
    "inbox": {
        "echo 10 > /sys/kernel/debug/mlx5/0000:1b:00.0/cc_params/np_cnp_dscp": {"eth0 CNP DSCP"},
        "echo 2 > /sys/kernel/debug/mlx5/0000:2b:00.0/cc_params/np_cnp_prio": {"eth1 CNP priority"},
    },
}
"""What somebody types -> what is wrong then. What drift does not tell: the RDMA MTU, which follows."""


class Judged(Lab):
    """A sandbox at its wish, with its local check."""

    def install(self, wish: NodeState) -> None:
        wanted = self.realize(wish)
        change = platforms.with_local_check(self.change(wanted), self.observe(), wanted, self.hw)
        applied = self.drive(change, "apply")
        assert (applied["failed"], applied["refused"]) == (None, ""), applied
        assert self.drive(change, "confirm")["failed"] is None

    def local(self) -> tuple[int, dict[str, Any]]:
        status, out, error = run(self.host, "fabric-host check --format json")
        assert error == ""
        found: dict[str, Any] = json.loads(out)
        return status, found

    def drift(self, wish: NodeState) -> set[str]:
        """As `fabric drift` names it; nothing is unreadable."""
        wanted, seen = self.realize(wish), self.observe().running
        return {one.setting for one in deviations(differences(wanted, seen), wanted, seen)}


@pytest.fixture(scope="module", params=STACKS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    folder = tmp_path_factory.mktemp(request.param)
    facts, hw = make(request.param, "netplan", "", folder)
    with running(facts, folder) as host:
        found = Judged(host, hw)
        found.install(WISH)
        yield found


def names(rows: list[dict[str, Any]]) -> set[str]:
    return {f"{row['port']} {row['setting']}".strip() for row in rows}


def test_content_after_an_apply(lab: Judged) -> None:
    status, found = lab.local()
    assert lab.drift(WISH) == set()
    assert (status, found["good"], found["wrong"], found["unknown"]) == (0, True, [], []), found
    assert found["checked"] == len(platforms.probes(lab.realize(WISH), lab.hw)) > 50
    assert said(lab.host, f"stat -c '%U %a' {local.FILE} {local.PROGRAM}") == "root 644\nroot 755\n"
    assert "gpu01" not in said(lab.host, f"cat {local.FILE}")


def test_nothing_is_written_by_judging(lab: Judged) -> None:
    listing = "find /etc /var -type f -not -path '*/fabric-lab/*' | sort | xargs stat -c '%n %Y %s'"
    before = said(lab.host, listing)
    assert lab.local()[0] == 0
    assert said(lab.host, listing) == before


@pytest.mark.parametrize("which", [0, 1])
def test_both_name_the_same_faults(lab: Judged, which: int) -> None:
    breaks = BREAKS[which] | (STACK_BREAKS[lab.hw.option("stack")] if which else {})
    for command in breaks:
        lab.host.somebody(command)
    status, found = lab.local()
    drift = lab.drift(WISH)
    lab.to(WISH, "again")
    told = {name for names in breaks.values() for name in names}
    wrong = names(found["wrong"])
    assert status == 1 and wrong == told, found
    # With trust pcp there is no DSCP map, which drift may tell as well.
    beyond = {"eth1 DSCP map"}
    assert drift - beyond == {name for name in told if not name.endswith("RDMA MTU")}
    if "eth0 mtu" in told:
        (row,) = [one for one in found["wrong"] if (one["port"], one["setting"]) == ("eth0", "RDMA MTU")]
        assert (row["found"], row["wanted"]) == ("2048", "4096") and "4192" in row["help"]
    assert lab.drift(WISH) == set() and lab.local()[0] == 0


def test_more_than_drift_a_link_and_an_agent(lab: Judged) -> None:
    said(lab.host, "ip link set dev eth1 down")
    said(lab.host, "ln -sf /usr/bin/sleep /tmp/lldpad; (setsid /tmp/lldpad 30 >/dev/null 2>&1 &)")
    status, found = lab.local()
    assert status == 1 and names(found["wrong"]) == {"eth1 link", "other agents"}
    (agent,) = [row for row in found["wrong"] if row["setting"] == "other agents"]
    assert agent["found"] == "lldpad"
    said(lab.host, "ip link set dev eth1 up; pkill -x lldpad")
    assert lab.local()[0] == 0


def test_an_account_without_rights_is_told_what_it_cannot_judge(lab: Judged) -> None:
    status, out, _ = run(lab.host, "setpriv --reuid 65534 --regid 65534 --clear-groups fabric-check")
    assert status in (0, 2) and "Traceback" not in out


def test_a_change_of_the_intent_brings_a_new_check_file(lab: Judged) -> None:
    before = said(lab.host, f"sha256sum {local.FILE}")
    lab.install(SMALLER)
    assert lab.local()[0] == 0 and said(lab.host, f"sha256sum {local.FILE}") != before
    wanted = lab.realize(SMALLER)
    change = platforms.with_local_check(lab.change(wanted), lab.observe(), wanted, lab.hw)
    assert change.empty
    lab.install(WISH)
    assert said(lab.host, f"sha256sum {local.FILE}") == before


def test_a_change_that_is_taken_back_takes_the_check_file_back(lab: Judged) -> None:
    before = said(lab.host, f"sha256sum {local.FILE}")
    wanted = lab.realize(SMALLER)
    change = platforms.with_local_check(lab.change(wanted), lab.observe(), wanted, lab.hw)
    lab.drive(change, "apply", "r8")
    assert said(lab.host, f"sha256sum {local.FILE}") != before
    assert lab.drive(change, "undo", "r8")["undone"]
    assert said(lab.host, f"sha256sum {local.FILE}") == before and lab.local()[0] == 0


def test_without_its_files_nothing_is_judged(lab: Judged, tmp_path: Path) -> None:
    kept = said(lab.host, f"cat {local.FILE}")
    said(lab.host, f"rm {local.FILE}")
    status, out, _ = run(lab.host, "fabric-host check")
    assert status == 2 and "fabric apply" in out
    run(lab.host, f"cat > {local.FILE}", kept)
    assert lab.local()[0] == 0
