"""Faults that befall a lab host once: what `fabric lab break` does, says and refuses."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdma_fabric.cli import lab as cli
from rdma_fabric.cli import main
from rdma_fabric.lab import breaks, fabric
from rdma_fabric.lab.breaks import BreakError, Mishap
from rdma_fabric.lab.fabric import LabNode
from rdma_fabric.lab.hosts import Host, HostFacts, HostPort
from rdma_fabric.lab.hosttools import faults, store
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact
from tests.lab.hostlab import power_on, run, running, said, why_not

HOST = HostFacts(
    "gpu01",
    (
        HostPort("ens1", stack="ofed", bdf="0000:1b:00.0"),
        HostPort("ens2", stack="ofed", bdf="0000:1b:00.1"),
        HostPort("ens3"),
        HostPort("ens4", nic="bnxt", stack="ofed"),
        HostPort("ens6", nic="generic"),
    ),
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(HOST, tmp_path_factory.mktemp("mishaps")) as host:
        yield host


@pytest.fixture
def host(machine: Host) -> Host:
    power_on(machine)
    return machine


def befall(host: Host, words: str) -> tuple[int, str]:
    status, out, err = run(host, f"{store.HOME}/tools/launch fabric-break {words}")
    assert not err
    return status, out.strip()


def happened(host: Host, words: str) -> str:
    status, text = befall(host, words)
    assert status == 0, text
    return text


# --- words ---


def test_every_kind_is_known_on_all_levels() -> None:
    assert set(cli.MISHAPS) == set(breaks.MISHAPS) == set(faults._KINDS)
    assert cli.KINDS == breaks.KINDS


@pytest.mark.parametrize(
    ("kind", "words", "usage"),
    [
        ("mtu", (), "mtu PORT [BYTES]"),
        ("mtu", ("a", "1", "2"), "mtu PORT [BYTES]"),
        ("nv", ("a", "LLDP_NB_DCBX"), "nv PORT NAME=VALUE"),
        ("nv", ("a", "LLDP_NB_DCBX="), "nv PORT NAME=VALUE"),
        ("sysctl", ("net.core.rmem_max",), "sysctl KEY=VALUE"),
        ("lldpad", ("a", "b"), "lldpad [PORT]"),
        ("firmware", ("a",), "firmware PORT VERSION"),
    ],
)
def test_words_that_do_not_fit_are_refused(kind: str, words: tuple[str, ...], usage: str) -> None:
    with pytest.raises(BreakError) as error:
        Mishap(kind, words)
    assert str(error.value) == f"write {usage}"


# --- live, not stored ---


def test_mtu_by_hand_halves_the_rdma_mtu(host: Host) -> None:
    said(host, "ip link set ens1 mtu 9216")
    assert happened(host, "mtu ens1") == "MTU of ens1 is 4096, was 9216, active_mtu 2048"
    assert "active_mtu:\t\t2048 (4)" in said(host, "ibv_devinfo -d mlx5_0")
    assert happened(host, "mtu ens6 2000") == "MTU of ens6 is 2000, was 1500"
    assert befall(host, "mtu ens1 70000")[1].startswith("the host refuses: ")


def test_pfc_goes_off_and_the_link_notices(host: Host) -> None:
    said(host, "mlnx_qos -i ens1 --pfc 0,0,0,1,0,0,0,0")
    bounces = host.nic("ens1")["bounces"]
    assert happened(host, "pfc ens1") == "PFC of ens1 is off live, was on for priority 3"
    assert host.nic("ens1")["pfc"] == [False] * 8 and host.nic("ens1")["bounces"] == bounces + 1
    assert befall(host, "pfc ens1") == (1, "PFC of ens1 is off already")


def test_trust_falls_back_with_either_stack(host: Host) -> None:
    said(host, "mlnx_qos -i ens1 --trust dscp; dcb app add dev ens3 dscp-prio 26:3 48:6")
    for netdev in ("ens1", "ens3"):
        assert happened(host, f"trust {netdev}") == f"{netdev} trusts PCP, not DSCP"
        assert host.nic(netdev)["trust"] == "pcp" and not host.nic(netdev)["apps"]
        assert befall(host, f"trust {netdev}") == (1, f"{netdev} does not trust DSCP")


def test_congestion_control_goes_off_where_it_can(host: Host) -> None:
    assert happened(host, "ecn ens1") == "congestion control of ens1 is off live"
    assert said(host, "cat /sys/class/net/ens1/ecn/roce_np/enable/3") == "0\n"
    assert befall(host, "ecn ens1")[1] == "ECN of ens1 is off already"
    assert "ROCE_CC_PRIO_MASK=0" in befall(host, "ecn ens3")[1]
    assert befall(host, "ecn ens4") == (1, "congestion control of ens4 is off already")
    assert befall(host, "ecn ens6") == (1, "ens6 has no congestion control")


def test_a_foreign_file_overrides_a_sysctl(host: Host) -> None:
    before = said(host, "sysctl -n net.ipv4.conf.all.arp_ignore").strip()
    other = "2" if before != "2" else "1"
    text = happened(host, f"sysctl net.ipv4.conf.all.arp_ignore={other}")
    assert said(host, "sysctl -n net.ipv4.conf.all.arp_ignore").strip() == other
    assert text.split()[0] == "/etc/sysctl.d/99-zz-performance.conf"
    assert f"net.ipv4.conf.all.arp_ignore = {other}" in said(host, f"cat {text.split()[0]}")
    assert befall(host, "sysctl net.none=1") == (1, "this host has no sysctl net.none")


def test_a_stored_file_is_forgotten(host: Host) -> None:
    said(host, "echo x > '/etc/sysctl.d/90 ours.conf'")
    path = shlex.quote("/etc/sysctl.d/90 ours.conf")
    assert happened(host, f"forget {path}") == "/etc/sysctl.d/90 ours.conf is gone"
    assert befall(host, f"forget {path}") == (1, "there is no file /etc/sysctl.d/90 ours.conf")


# --- firmware ---


def test_an_nv_parameter_waits_for_the_reset(host: Host) -> None:
    text = happened(host, "nv ens2 LLDP_NB_DCBX=1")  # the adapter's second port
    assert text == "LLDP_NB_DCBX_P2 is True(1) at the next boot, False(0) now"
    shown = said(host, "mlxconfig -d 0000:1b:00.0 -e q LLDP_NB_DCBX_P2")
    assert shown.splitlines()[-2].split() == ["*", "LLDP_NB_DCBX_P2", "False(0)", "False(0)", "True(1)"]
    assert befall(host, "nv ens1 NUM_OF_VFS=300")[1].endswith("larger than maximum allowed 127")
    assert befall(host, "nv ens1 NONE=1") == (1, "the adapter of ens1 has no parameter NONE")
    assert "nic mlx5" in befall(host, "nv ens4 NONE=1")[1]


def test_firmware_differs_on_all_ports_of_the_adapter(host: Host) -> None:
    was = said(host, "ethtool -i ens2 | sed -n 's/^firmware-version: //p'")
    assert happened(host, "firmware ens1 28.35.1012").startswith("firmware of ens1 is 28.35.1012, was ")
    for netdev in ("ens1", "ens2"):
        assert "firmware-version: 28.35.1012 (MT_" in said(host, f"ethtool -i {netdev}")
    assert was.split()[0] in said(host, "ethtool -i ens3")
    assert befall(host, "firmware ens6 1") == (1, "ens6 has no firmware")


# --- drivers, daemons, links ---


def test_a_flap_is_counted(host: Host) -> None:
    assert happened(host, "flap ens4") == "the link of ens4 went down and up (1 times since the boot)"
    assert host.nic("ens4")["bounces"] == 1
    assert befall(host, "flap eth9")[1] == (
        "there is no fabric port eth9: use one of ens1, ens2, ens3, ens4, ens6"
    )


def test_a_reload_loses_what_lives_in_the_driver(host: Host) -> None:
    said(host, "ip link set ens4 mtu 9000; dcb pfc set dev ens4 prio-pfc 3:on || true")
    said(host, "ip link set ens4 mtu 9000")
    assert happened(host, "reload ens4") == "the driver of ens4 was loaded anew: MTU 1500"


def test_lldpad_takes_the_ports_it_is_given(host: Host) -> None:
    said(host, "mlnx_qos -i ens1 --pfc 0,0,0,1,0,0,0,0; mlnx_qos -i ens2 --pfc 0,0,0,1,0,0,0,0")
    assert happened(host, "lldpad ens1") == "lldpad runs and speaks on ens1"
    assert host.nic("ens1")["pfc"] == [False] * 8 and host.nic("ens2")["pfc"][3]
    assert happened(host, "lldpad").endswith("speaks on ens1, ens2, ens3, ens4, ens6")
    assert not host.nic("ens2")["pfc"][3]
    said(host, "systemctl stop lldpad; rm /var/lib/lldpad/lldpad.conf")


def test_a_module_goes_and_its_devices_with_it(host: Host) -> None:
    assert happened(host, "module bnxt_re") == "module bnxt_re is unloaded"
    assert "bnxt_re0" not in said(host, "ls /sys/class/infiniband")
    assert befall(host, "module bnxt_re")[1].startswith("the host refuses: modprobe: FATAL: Module bnxt_re")
    said(host, "modprobe bnxt_re")


# --- from the command line ---


def test_the_lab_takes_mishaps_for_hosts_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if reason := why_not():
        pytest.skip(reason)
    switch = LabNode(DeviceFacts("leaf01", "arista_eos", ports=(PortFact("Ethernet1/1", 400),)))
    ports = {"eth1": {"nic": "mlx5"}}
    host = LabNode(
        DeviceFacts("gpu01", "linux", ports=(PortFact("eth1", 400),)), "host", "", {"ports": ports}
    )
    fabric.up(tmp_path, [switch, host])

    def lab_break(*words: str) -> tuple[int, str]:
        code = main(["lab", "break", "-C", str(tmp_path), *words])
        return code, capsys.readouterr().err.strip()

    try:
        code, text = lab_break("gpu01", "mtu", "eth1")
        assert code == 0 and "MTU of eth1 is 4096, was 1500, active_mtu 2048" in text
        assert fabric.somebody(tmp_path, "gpu01", ["cat /sys/class/net/eth1/mtu"]) == "4096\n"
        assert lab_break("gpu01", "mtu", "eth7") == (
            2,
            "fabric lab: there is no fabric port eth7: use one of eth1",
        )
        assert lab_break("leaf01", "flap", "Ethernet1/1")[1].endswith("'flap' befalls hosts only")
        assert lab_break("gpu01", "flap")[1] == "fabric lab: write flap PORT"
        assert lab_break("gpu01", "flap", "eth1", "--times", "2")[1].endswith(
            "no --seconds, --after, --times"
        )
        assert lab_break("leaf01", "refuse", "a", "b")[1].endswith("as one word, in quotes")
    finally:
        fabric.down(tmp_path)
