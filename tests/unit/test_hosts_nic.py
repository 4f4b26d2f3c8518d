"""What the intent says of the cards in hosts: NV settings, versions, receive buffers, job environment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rdma_fabric.drift import find_drift
from rdma_fabric.findings import InputError
from rdma_fabric.intent.job import picked
from rdma_fabric.plan.changes import Target
from rdma_fabric.state import UNMANAGED, Amount, Maybe, NodeState, Observation
from rdma_fabric.views.drift_text import drift_text
from rdma_fabric.views.output import Output
from tests.support.inputs import GROUPS, INTENT, fabric


def with_hosts(text: str) -> str:
    return f"{INTENT}hosts: {text}\n"


def complaint(folder: Path, hosts: str) -> str:
    with pytest.raises(InputError) as caught:
        fabric(folder, with_hosts(hosts))
    return " / ".join(f"{one.message} {one.help}" for one in caught.value.findings)


def test_nv_settings_reach_the_ports_of_their_kind(tmp_path: Path) -> None:
    found = fabric(tmp_path, with_hosts("{nv: {mlx5: {CNP_DSCP: 48, ATS_ENABLED: false}, bnxt: {X_Y: 1}}}"))
    plan = found.plans["gpu01"]
    eth0 = plan.ports["eth0"]
    assert eth0.settings.nic.nv == (("ATS_ENABLED", "0"), ("CNP_DSCP", "48"))
    assert eth0.origins["nic"].file.endswith("fabric.yaml")
    # What the cards are asked for when they are read.
    assert plan.hardware.option("nv") == "ATS_ENABLED CNP_DSCP"
    assert found.plans["leaf01"].ports["e1"].settings.nic.nv == ()
    assert found.plans["leaf01"].hardware.option("nv") == ""


def test_one_port_may_have_its_own(tmp_path: Path) -> None:
    override = "overrides: [{where: port=eth2, set: {hosts.nv.mlx5.CNP_DSCP: 4}}]\n"
    found = fabric(tmp_path, with_hosts("{nv: {mlx5: {CNP_DSCP: 48}}}") + override)
    ports = found.plans["gpu01"].ports
    assert [dict(ports[name].settings.nic.nv)["CNP_DSCP"] for name in ("eth0", "eth2")] == ["48", "4"]


def test_a_vf_has_no_nv_settings(tmp_path: Path) -> None:
    groups = GROUPS.replace("eth2: {", "eth2: {kind: vf, parent: eth1, ")
    found = fabric(tmp_path, with_hosts("{nv: {mlx5: {CNP_DSCP: 48}}}"), groups=groups)
    assert found.plans["gpu01"].ports["eth2"].settings.nic.nv == ()


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ("{nv: {mlx5: {CNP_DSCP_P1: 4}}}", "write CNP_DSCP; every port takes its own number"),
        ("{nv: {mlx5: {cnp_dscp: 4}}}", "cnp_dscp"),
        ("{nv: {MLX5: {CNP_DSCP: 4}}}", "MLX5"),
        ("{nv: {mlx5: {CNP_DSCP: [4]}}}", "write one text or number"),
        ("{firmware: {mlx5: 28.43}}", "is not a version write it in quotes"),
        ("{firmware: {mlx5: {}}}", "firmware"),
        ("{firmware: {mlx5: {any: [28]}}}", "'28' is not a version"),
        ("{firmware: {mlx5: [a b]}}", "a b"),
        ("{buffers: {rocee: 128KiB}}", "there is no class rocee did you mean roce?"),
        ("{buffers: {roce: 128}}", "128"),
    ],
)
def test_what_is_refused(tmp_path: Path, hosts: str, text: str) -> None:
    assert text in complaint(tmp_path, hosts)


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("28.43.3608", {"any": ("28.43.3608",)}),
        ('["28.43.*", 28.39.3560]', {"any": ("28.43.*", "28.39.3560")}),
        ("{MT_0000000838: 28.43.3608, any: [1.2.3]}", {"MT_0000000838": ("28.43.3608",), "any": ("1.2.3",)}),
        ("{MCX755106AS-HEA_Ax: 28.43.3608}", {"MCX755106AS-HEA_Ax": ("28.43.3608",)}),
    ],
)
def test_versions(tmp_path: Path, text: str, sets: dict[str, tuple[str, ...]]) -> None:
    found = fabric(tmp_path, with_hosts(f"{{firmware: {{mlx5: {text}}}, drivers: {{mlx5: {text}}}}}"))
    hosts = found.plans["gpu01"].ports["eth0"].wishes.hosts
    assert hosts.firmware["mlx5"] == hosts.drivers["mlx5"] == sets


def test_buffers(tmp_path: Path) -> None:
    found = fabric(tmp_path, with_hosts("{buffers: {roce: 150KB, default: 64KiB}}"))
    classes = found.plans["gpu01"].ports["eth0"].settings.qos.classes
    assert [one.group for one in classes] == [0, 0, 0, 1, 0, 0, 0, 0]
    assert [one.headroom for one in classes] == [Amount(150000 if p == 3 else 65536) for p in range(8)]
    switch = found.plans["leaf01"].ports["e1"].settings.qos.classes
    assert {one.group for one in switch} == {UNMANAGED}
    # The rest's own size is missing: its priorities have a buffer of unknown size, which no card takes.
    half = fabric(tmp_path, with_hosts("{buffers: {roce: 150KB}}")).plans["gpu01"].ports["eth0"].settings.qos
    assert [one.headroom for one in half.classes][2:4] == [UNMANAGED, Amount(150000)]
    without = fabric(tmp_path).plans["gpu01"].ports["eth0"].settings.qos.classes
    assert {(one.group, one.headroom) for one in without} == {(UNMANAGED, UNMANAGED)}


def _with_nv(state: NodeState, **values: str) -> NodeState:
    ports = tuple(
        replace(
            port,
            settings=replace(
                port.settings,
                nic=replace(port.settings.nic, nv=tuple(values.items()) if port.name == "eth0" else ()),
            ),
        )
        for port in state.ports
    )
    return replace(state, ports=ports)


@pytest.mark.parametrize(
    ("netdev", "used", "notes"),
    [
        (4096, 2048, ("eth0: RDMA MTU 2048 instead of 4096, because the netdev MTU is 4096",)),
        (4200, 4096, ()),
        (1500, UNMANAGED, ()),
    ],
)
def test_drift_tells_what_a_netdev_mtu_does_to_the_rdma_mtu(
    tmp_path: Path, netdev: int, used: Maybe[int], notes: tuple[str, ...]
) -> None:
    found = fabric(tmp_path, INTENT)
    plan = found.plans["gpu01"]

    def with_mtu(ip: int, rdma_mtu: Maybe[int]) -> NodeState:
        ports = []
        for port in plan.state.ports:
            own = port.settings
            if port.name == "eth0":
                nic = replace(own.nic, rdma_mtu=rdma_mtu)
                own = replace(own, mtu=replace(own.mtu, ip=ip), nic=nic)
            ports.append(replace(port, settings=own))
        return replace(plan.state, ports=tuple(ports))

    targets = {"gpu01": Target(with_mtu(9000, UNMANAGED), plan.hardware)}
    seen = Observation(running=with_mtu(netdev, used))
    skipped = {name: "not asked" for name in found.plans if name != "gpu01"}
    rows = find_drift(found.inventory, targets, {"gpu01": seen}, {}, skipped)
    [row] = [one for one in rows if one.node == "gpu01"]
    assert row.effects == notes
    assert [f"gpu01 {note}" for note in notes] == drift_text([row], Output(color=False)).splitlines()[1:-1]
    assert [one.deviation.setting for one in row.drifts] == ["eth0 mtu"]


def test_drift_tells_a_setting_that_waits_for_a_reset(tmp_path: Path) -> None:
    found = fabric(tmp_path, with_hosts("{nv: {mlx5: {CNP_DSCP: 48, ATS_ENABLED: 0}}}"))
    plan = found.plans["gpu01"]
    wanted = _with_nv(plan.state, ATS_ENABLED="0", CNP_DSCP="48")
    seen = Observation(
        running=_with_nv(wanted, ATS_ENABLED="1", CNP_DSCP="0"),
        stored=_with_nv(wanted, ATS_ENABLED="1", CNP_DSCP="48"),
        pending=_with_nv(wanted, ATS_ENABLED="1", CNP_DSCP="48"),
    )
    targets = {"gpu01": Target(wanted, plan.hardware)}
    skipped = {name: "not asked" for name in found.plans if name != "gpu01"}
    rows = find_drift(found.inventory, targets, {"gpu01": seen}, {}, skipped)
    [row] = [one for one in rows if one.node == "gpu01"]
    assert [(one.layer, one.deviation.title) for one in row.drifts] == [
        ("running", "NV ATS_ENABLED"),
        ("pending", "NV CNP_DSCP"),
    ]
    assert row.counts
    text = drift_text([row], Output(color=False))
    assert text.splitlines()[1] == (
        "gpu01 eth0 NV CNP_DSCP: found 0, wanted 48: written, waits for a reset of its device"
    )


# ---------------------------------------------------------------- job environment


def job(folder: Path, hosts: str, intent: str = "", **more: str) -> dict[str, object]:
    found = fabric(folder, f"{with_hosts(hosts)}{intent}", **more)
    return dict(found.plans["gpu01"].state.system.environment)


def test_variables_of_jobs_follow_from_classes_and_ports(tmp_path: Path) -> None:
    assert job(tmp_path, "{nccl: true}") == {"NCCL_IB_TC": "104", "NCCL_IB_HCA": "=mlx5_0,mlx5_1"}
    assert job(tmp_path, "{ucx: true}") == {
        "UCX_IB_TRAFFIC_CLASS": "104",
        "UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1",
    }
    assert job(tmp_path, "{roce_class: default}") == {}


def test_own_variables_win(tmp_path: Path) -> None:
    found = job(tmp_path, "{nccl: true, environment: {NCCL_IB_TC: 96, NCCL_DEBUG: INFO}}")
    assert (found["NCCL_IB_TC"], found["NCCL_DEBUG"]) == ("96", "INFO")


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ("eno1: {speed: 25G}", "=eno1"),
        ("eno1: {speed: 25G}; eno2: {speed: 25G}", None),
        ("bond0: {kind: bond, members: [eno1, eno2]}; eno1: {speed: 25G}; eno2: {speed: 25G}", "=bond0"),
        ("eno1: {speed: 25G}; eno1.7: {kind: vlan, parent: eno1, vlan: 7}", "=eno1.7"),
    ],
)
def test_the_bootstrap_takes_the_one_interface_outside_the_networks(
    more: str, name: str | None, tmp_path: Path
) -> None:
    groups = GROUPS.replace("eth2: {", f"{more}\n      eth2: {{").replace("; ", "\n      ")
    assert job(tmp_path, "{nccl: true}", groups=groups).get("NCCL_SOCKET_IFNAME") == name


def test_rails_are_the_devices_of_jobs(tmp_path: Path) -> None:
    groups = GROUPS.replace("nic: mlx5}", "nic: mlx5, rdma: mlx5_2}")
    assert job(tmp_path, "{nccl: true}", groups=groups)["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"
    groups = groups.replace(', rail: "[0-1]"', "")
    assert job(tmp_path, "{nccl: true}", groups=groups)["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1,mlx5_2"


def test_a_service_level_counts_where_tags_are_trusted(tmp_path: Path) -> None:
    for trust, level in (("dscp", None), ("pcp", "3"), ("both", None)):
        found = job(tmp_path, "{nccl: true, ucx: true}", f"trust: {trust}\n")
        assert (found.get("NCCL_IB_SL"), found.get("UCX_IB_SL")) == (level, level)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("mlx5_1", "mlx5_1 mlx5_10"),
        ("=mlx5_1", "mlx5_1"),
        ("mlx5_1:1,mlx5_0", "mlx5_0 mlx5_1 mlx5_10"),
        ("^mlx5_1", "mlx5_0"),
        ("^=mlx5_1", "mlx5_0 mlx5_10"),
        ("=mlx5", ""),
        ("", ""),
        ("=", ""),
        ("^", "mlx5_0 mlx5_1 mlx5_10"),
    ],
)
def test_lists_of_nccl(value: str, names: str) -> None:
    assert sorted(picked(value, ["mlx5_0", "mlx5_1", "mlx5_10"])) == names.split()
