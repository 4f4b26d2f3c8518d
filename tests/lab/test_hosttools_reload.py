"""Drivers that are loaded anew: what a host loses, and what udev, sysctl.d and units bring back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rdma_fabric.lab.hosts import Host, HostFacts, HostPort
from tests.lab.hostlab import run, running, said

HOST = HostFacts(
    "gpu01",
    (
        HostPort("ens1f0np0", address="192.0.2.1/31", stack="ofed"),
        HostPort("ens2f0np0"),
        HostPort("ens3np0", nic="bnxt", stack="ofed"),
    ),
)
ONE, TWO, THREE = (f"0000:{n}b:00.0" for n in (1, 2, 3))
UNIT = """[Unit]
BindsTo=sys-subsystem-net-devices-%i.device
After=sys-subsystem-net-devices-%i.device rdma-hw.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'echo "%i $(cat /sys/class/net/%i/mtu)" >> /run/units'
ExecStart=-/bin/sh -c 'ls -1 /sys/class/infiniband/ >> /run/units'
[Install]
WantedBy=sys-subsystem-net-devices-%i.device
"""


@pytest.fixture
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(HOST, tmp_path_factory.mktemp("reload")) as host:
        yield host


def reload(host: Host, bdf: str = ONE) -> None:
    said(host, f"devlink dev reload pci/{bdf}")


# --- the survival tables ---


def test_mlx5_survives_by_its_table(host: Host) -> None:
    said(
        host,
        "ip link set ens1f0np0 mtu 9216; ethtool -A ens1f0np0 rx off tx off; ethtool -G ens1f0np0 rx 8192; "
        "mlnx_qos -i ens1f0np0 --pfc 0,0,0,1,0,0,0,0 --cable_len=20 --trust dscp; "
        "mlnx_qos -i ens1f0np0 --dscp2prio set,26,4; "
        "mlnx_qos -i ens1f0np0 --tsa ets,ets,ets,ets,ets,ets,strict,ets --tcbw 50,0,0,50,0,0,0,0; "
        "echo 0 > /sys/class/net/ens1f0np0/ecn/roce_np/enable/3; "
        "echo 106 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class; "
        "modprobe rdma_ucm; cma_roce_tos -d mlx5_0 -t 106; sysctl -w net.ipv4.conf.ens1f0np0.arp_ignore=1",
    )
    reload(host)
    state = host.nic("ens1f0np0")
    assert (state["trust"], state["dscp"][26], state["pfc"][3]) == ("dscp", 4, True)  # firmware registers
    assert (state["tsa"], state["cable"], state["np"]) == (["vendor"] * 8, 7, [True] * 8)
    assert (state["tos"], state["tclass"], state["rings"]) == (0, -1, [1024, 1024])
    assert said(host, "cat /sys/class/net/ens1f0np0/mtu") == "1500\n"
    assert said(host, "sysctl -n net.ipv4.conf.ens1f0np0.arp_ignore") == "0\n"
    assert "192.0.2.1/31" in said(host, "ip -br addr show ens1f0np0")  # the manager's part
    assert said(host, "cat /sys/class/net/ens1f0np0/carrier") == "1\n"
    assert host.nic("ens2f0np0")["bounces"] == 0


def test_bnxt_keeps_nothing(host: Host) -> None:
    said(
        host,
        "dcb ets set dev ens3np0 tc-tsa 0:ets 1:ets 2:strict tc-bw 0:50 1:50 prio-tc 3:1 6:2; "
        "dcb pfc set dev ens3np0 prio-pfc 3:on; dcb app add dev ens3np0 dscp-prio 26:3; "
        "mkdir /sys/kernel/config/bnxt_re/bnxt_re0; cd /sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc; "
        "echo 1 > ecn_enable; echo 1 > apply; rmdir /sys/kernel/config/bnxt_re/bnxt_re0",
    )
    reload(host, THREE)
    state = host.nic("ens3np0")
    assert (state["pfc"], state["apps"], state["ets_set"], state["cc"]) == ([False] * 8, [], False, {})


def test_a_link_flap_takes_nothing_away(host: Host) -> None:
    said(host, "ip link set ens1f0np0 mtu 9216; mlnx_qos -i ens1f0np0 --cable_len=20")
    changes = "cat /sys/class/net/ens1f0np0/carrier_changes"
    before = int(said(host, changes))
    said(host, "mlnx_qos -i ens1f0np0 --pfc 0,0,0,1,0,0,0,0")
    assert int(said(host, changes)) == before + 2
    assert "     link_down_events_phy: 1\n" in said(host, "ethtool -S ens1f0np0")
    assert said(host, "cat /sys/class/net/ens1f0np0/mtu") == "9216\n"
    assert host.nic("ens1f0np0")["cable"] == 20


# --- modules ---


def test_without_its_driver_a_port_is_not_there(host: Host) -> None:
    said(host, "modprobe -r mlx5_ib")  # takes mlx5_core along: nothing else needs it (modprobe(8))
    assert "mlx5" not in said(host, "lsmod")
    assert said(host, "ls /sys/class/net").split() == ["ens3np0", "lo", "mgmt0"]
    assert said(host, "ls /sys/class/infiniband") == "bnxt_re0\n"
    assert run(host, "dcb pfc show dev ens1f0np0")[2] == "Attribute read: No such device\n"
    assert run(host, "ethtool ens1f0np0")[0] == 1
    assert f"pci/{ONE}" not in said(host, "devlink dev")
    assert "CNP_DSCP_P1" in said(host, f"mlxconfig -d {ONE} query")  # needs no driver
    said(host, "modprobe mlx5_core")
    assert "ens1f0np0" in said(host, "ls /sys/class/net")
    assert "mlx5_0" not in said(host, "ls /sys/class/infiniband")
    assert "No IB devices" not in said(host, "ibv_devinfo -d bnxt_re0")
    said(host, "modprobe mlx5_ib")
    assert said(host, "cat /sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0") == "ens2f0np0\n"
    assert [link["ifname"] for link in json.loads(said(host, "rdma -j link"))] == [
        *("mlx5_0", "mlx5_1", "bnxt_re0")
    ]


def test_rmmod_takes_one_module(host: Host) -> None:
    said(host, "rmmod mlx5_ib")
    assert "mlx5_core" in said(host, "lsmod")
    assert said(host, "ls /sys/class/infiniband") == "bnxt_re0\n"
    assert "ens1f0np0" in said(host, "ls /sys/class/net")


# --- what brings it back ---


def test_units_bound_to_the_netdev_run_again(host: Host) -> None:
    run(host, "cat > /etc/systemd/system/q@.service", UNIT)
    said(host, "systemctl daemon-reload; systemctl enable q@ens1f0np0 q@ens2f0np0")
    said(host, "systemctl start q@ens1f0np0 q@ens2f0np0; : > /run/units")
    reload(host)
    # The RDMA device comes after the units of its netdev have been started.
    assert said(host, "cat /run/units") == "ens1f0np0 1500\nbnxt_re0\nmlx5_1\n"
    assert said(host, "systemctl is-active q@ens1f0np0") == "active\n"
    said(host, "rmmod mlx5_ib mlx5_core")
    assert run(host, "systemctl is-active q@ens1f0np0")[1] == "inactive\n"
    assert run(host, "systemctl start q@ens1f0np0")[0] == 1


def test_sysctl_d_and_managers_come_back_by_themselves(host: Host) -> None:
    run(
        host,
        "umask 077; cat > /etc/netplan/90.yaml",
        "network: {version: 2, ethernets: {ens1f0np0: {mtu: 9216}, ens2f0np0: {mtu: 4200}}}\n",
    )
    said(
        host,
        "netplan apply; printf 'net.ipv4.conf.ens1f0np0.arp_ignore = 1\\n"
        "net.ipv4.conf.all.arp_announce = 2\\n' > /etc/sysctl.d/90-x.conf; systemctl restart systemd-sysctl",
    )
    said(host, "sysctl -w net.ipv4.conf.all.arp_announce=1")
    reload(host)
    assert said(host, "cat /sys/class/net/ens1f0np0/mtu /sys/class/net/ens2f0np0/mtu") == "9216\n4200\n"
    assert said(host, "sysctl -n net.ipv4.conf.ens1f0np0.arp_ignore") == "1\n"
    assert said(host, "sysctl -n net.ipv4.conf.all.arp_announce") == "1\n"  # not of this interface


RULE = """# comment
ACTION!="add|change", GOTO="end"
SUBSYSTEM=="net", KERNEL=="ens1*", ENV{ID_NET_DRIVER}=="mlx5_core", \\
    RUN+="/bin/sh -c 'echo $name %k >> /run/u'"
SUBSYSTEM=="infiniband", PROGRAM="/bin/cat /sys$devpath/ports/1/gid_attrs/ndevs/0", \\
    TAG+="systemd", ENV{SYSTEMD_WANTS}+="seen@$result.service"
SUBSYSTEM=="net", ATTR{device/vendor}=="0x14e4", RUN+="/bin/touch /run/broadcom"
LABEL="end"
SUBSYSTEM=="net", KERNEL=="nothing", RUN+="/bin/touch /run/nothing"
"""
SEEN = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo %i >> /run/seen'\n"


def test_udev_rules(host: Host) -> None:
    run(host, "cat > /etc/udev/rules.d/90-x.rules", RULE)
    run(host, "cat > /etc/systemd/system/seen@.service", SEEN)
    said(host, "systemctl daemon-reload; udevadm control --reload")
    reload(host)
    assert said(host, "cat /run/u /run/seen") == "ens1f0np0 ens1f0np0\nens1f0np0\n"
    assert run(host, "test -e /run/broadcom")[0] == 1
    said(host, "rm /run/u /run/seen; udevadm trigger --subsystem-match=infiniband --action=change")
    assert said(host, "sort /run/seen; test ! -e /run/u") == "ens1f0np0\nens2f0np0\nens3np0\n"
    said(host, "udevadm trigger -s net -c add; test -e /run/broadcom; test ! -e /run/nothing")
    host.reboot()
    assert said(host, "cat /run/u") == "ens1f0np0 ens1f0np0\n"
    assert sorted(said(host, "cat /run/seen").split()) == ["ens1f0np0", "ens2f0np0", "ens3np0"]


def test_the_vendors_own_udev_rule_programs_the_port(host: Host) -> None:
    said(host, "mkdir -p /etc/bnxt_re; printf 'ENABLE_FC=0\\n' > /etc/bnxt_re/bnxt_re.conf")
    reload(host, THREE)
    assert host.nic("ens3np0")["apps"] == []
    said(host, "printf 'ENABLE_FC=1\\nROCE_PRI=5\\nUTILITY=3\\n' > /etc/bnxt_re/bnxt_re.conf")
    reload(host, THREE)
    state = host.nic("ens3np0")
    assert [priority for priority in range(8) if state["pfc"][priority]] == [5]
    assert state["d2p"] == [[26, 5], [48, 7]]
    assert "ENABLE_PFC = 1" in said(host, "cat /tmp/bnxt_setup_IB_device.log")
    host.reboot()
    assert host.nic("ens3np0")["pfc"][5]


def test_support_rdma_off_is_no_rdma_device_after_a_boot(host: Host) -> None:
    said(host, "niccli -i 1 nvm -setoption support_rdma -value 0 -scope 0")
    reload(host, THREE)
    assert "bnxt_re0" in said(host, "ls /sys/class/infiniband")
    host.reboot()
    assert "bnxt_re0" not in said(host, "ls /sys/class/infiniband")
    assert run(host, "ibv_devinfo -d bnxt_re0")[0] == 1
