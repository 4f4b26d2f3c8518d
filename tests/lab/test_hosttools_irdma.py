"""Intel's E810 in a lab host, and lldpad with its tool (host_linux_irdma, its sources I1 to I8)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rdma_fabric.lab.hosts import Host, HostFacts, HostPort
from tests.lab.hostlab import power_on, run, running, said

HOST = HostFacts(
    "stor01",
    (
        HostPort("ens1f0", nic="irdma", gbps=100, stack="ofed", ibdev="rocep27s0f0"),
        HostPort("ens1f1", nic="irdma", gbps=100, stack="ofed", ibdev="rocep27s0f1"),
        HostPort("ens2f0", nic="irdma", gbps=100, stack="ofed", traits=("4tc",)),
        HostPort("ens3f0np0", gbps=100),
    ),
)
INBOX = HostFacts("stor02", (HostPort("ens1f0", nic="irdma", gbps=100),))
OFF = "ethtool --set-priv-flags {} fw-lldp-agent off"
ETS = "tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0"


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(HOST, tmp_path_factory.mktemp("irdma")) as host:
        yield host


@pytest.fixture
def host(booted: Host) -> Host:
    said(booted, "systemctl stop lldpad; rm -rf /var/lib/lldpad /etc/modprobe.d/irdma.conf")
    power_on(booted)
    return booted


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(INBOX, tmp_path_factory.mktemp("inbox")) as host:
        yield host


def test_the_worked_example(host: Host) -> None:
    i, d = "ens1f0", "rocep27s0f0"
    said(host, "echo 'options irdma roce_ena=1 dcqcn_enable=1 limits_sel=5' > /etc/modprobe.d/irdma.conf")
    said(host, "rmmod irdma; modprobe irdma; modprobe rdma_ucm")
    assert said(host, "cat /sys/module/irdma/parameters/roce_ena") == "1\n"
    points = " ".join(f"{k}:{ {26: 3, 48: 6}.get(k, 0) }" for k in range(64))
    said(
        host,
        f"set -e; {OFF.format(i)}; ip link set dev {i} mtu 9216; ethtool -A {i} rx off tx off; "
        f"dcb app flush dev {i}; dcb app add dev {i} dscp-prio {points}; dcb ets set dev {i} {ETS}; "
        f"dcb pfc set dev {i} prio-pfc all:off 3:on; "
        f"mkdir -p /sys/kernel/config/irdma/{d}; echo 1 > /sys/kernel/config/irdma/{d}/roce_dcqcn_enable; "
        f"rmdir /sys/kernel/config/irdma/{d}; mkdir -p /sys/kernel/config/rdma_cm/{d}; "
        f"echo 104 > /sys/kernel/config/rdma_cm/{d}/ports/1/default_roce_tos; "
        f"rmdir /sys/kernel/config/rdma_cm/{d}",
    )
    state = host.nic(i)
    assert (state["trust"], state["tos"], state["cc"]["roce_dcqcn_enable"]) == ("dscp", 104, 1)
    assert state["dscp"] == [{26: 3, 48: 6}.get(point, 0) for point in range(64)]
    ets = json.loads(said(host, f"dcb -j ets show dev {i}"))
    assert (ets["ets_cap"], ets["prio_tc"], ets["tc_bw"][:4]) == (8, list(range(8)), [50, 0, 0, 50])
    assert ets["tc_tsa"][6] == "strict"
    assert "transport:\t\t\tInfiniBand (0)" in said(host, f"ibv_devinfo -d {d}")


# --- protocol ---


def test_intels_driver_starts_as_iwarp(host: Host) -> None:
    said(host, "rmmod irdma; modprobe irdma")
    assert said(host, "cat /sys/class/infiniband/rocep27s0f0/node_type") == "4: RNIC\n"
    assert "transport:\t\t\tiWARP (1)" in said(host, "ibv_devinfo -d rocep27s0f0")
    assert "rocep27s0f0" not in said(host, "show_gids")
    said(host, "modprobe -r irdma && modprobe irdma roce_port_cfg=2")
    assert said(host, "cat /sys/class/infiniband/rocep27s0f0/node_type") == "4: RNIC\n"
    assert said(host, "cat /sys/class/infiniband/rocep27s0f1/node_type") == "1: CA\n"
    said(host, "modprobe -r irdma && modprobe irdma roce_ena=1")
    assert said(host, "cat /sys/class/infiniband/rocep27s0f0/node_type") == "1: CA\n"


def test_the_kernels_driver_starts_as_rocev2(inbox: Host) -> None:
    bdf = said(inbox, "basename $(readlink -f /sys/class/net/ens1f0/device)").strip()
    line = f"devlink dev param set pci/{bdf} name {{}} value {{}} cmode runtime"
    assert run(inbox, "test -e /sys/module/irdma/parameters/roce_ena")[0] == 1
    assert "InfiniBand (0)" in said(inbox, "ibv_devinfo")
    code, _, error = run(inbox, line.format("enable_iwarp", "true"))
    assert (code, "RoCEv2 is currently enabled. This device cannot enable iWARP and" in error) == (1, True)
    said(inbox, line.format("enable_roce", "false"))
    assert said(inbox, "ls /sys/class/infiniband") == ""
    said(inbox, line.format("enable_iwarp", "true"))
    assert "iWARP (1)" in said(inbox, "ibv_devinfo")
    code, _, error = run(inbox, line.format("enable_roce", "true"))
    assert (code, "iWARP is currently enabled. This device cannot enable iWARP and" in error) == (1, True)
    said(inbox, f"{line.format('enable_iwarp', 'false')} && {line.format('enable_roce', 'true')}")
    assert "    values:\n      cmode runtime value true\n" in said(
        inbox, f"devlink dev param show pci/{bdf} name enable_roce"
    )
    assert run(inbox, line.format("enable_roce", "maybe"))[0] == 1
    assert run(inbox, line.format("enable_roce", "true").replace("runtime", "driverinit"))[0] == 1
    said(inbox, f"devlink dev reload pci/{bdf}")
    assert "InfiniBand (0)" in said(inbox, "ibv_devinfo")


# --- the firmware's agent ---


def test_the_firmware_owns_the_port_until_told(host: Host) -> None:
    assert said(host, "dcb dcbx show dev ens1f0") == "lld-managed ieee \n"
    for command in (f"ets set dev ens1f0 {ETS}", "pfc set dev ens1f0 prio-pfc 3:on"):
        assert run(host, f"dcb {command}")[2] == "Attribute write: Invalid argument\n"
    assert run(host, "dcb app add dev ens1f0 dscp-prio 26:3")[0] == 1
    assert "can't do DSCP QoS when FW DCB agent active" in said(host, "dmesg")
    assert run(host, "dcb dcbx set dev ens1f0 host ieee")[0] == 1
    said(host, OFF.format("ens1f0"))
    flags = said(host, "ethtool --show-priv-flags ens1f0")
    assert "\nfw-lldp-agent          : off\n" in flags and flags.startswith("Private flags for ens1f0:\n")
    assert said(host, "dcb -j dcbx show dev ens1f0") == '{"host":true,"ieee":true}\n'
    assert run(host, "dcb dcbx set dev ens1f0 host ieee")[0] == 1  # it is so already
    host.reboot()
    assert said(host, "dcb dcbx show dev ens1f0; dcb dcbx show dev ens1f1") == (
        "host ieee \nlld-managed ieee \n"
    )
    said(host, "dcb app add dev ens1f0 dscp-prio 26:3")
    code, _, error = run(host, "ethtool --set-priv-flags ens1f0 fw-lldp-agent on")
    assert (code, error) == (1, "netlink error: Operation not supported\n")


# --- modes ---


def test_the_first_dscp_entry_switches_the_mode_and_the_last_switches_back(host: Host) -> None:
    said(host, OFF.format("ens1f0"))
    bounces = host.nic("ens1f0")["bounces"]
    said(host, "dcb app add dev ens1f0 dscp-prio 26:4")
    state = host.nic("ens1f0")
    assert (state["trust"], state["prio_tc"], state["bounces"]) == ("dscp", list(range(8)), bounces + 1)
    assert state["dscp"] == [4 if point == 26 else point >> 3 for point in range(64)]
    said(host, f"dcb ets set dev ens1f0 {ETS} prio-tc all:0")
    assert host.nic("ens1f0")["prio_tc"] == list(range(8))  # ignored in this mode
    code, _, _ = run(host, "dcb app add dev ens1f0 dscp-prio 26:3")
    assert code == 1
    assert "DSCP value 0x001A already user mapped" in said(host, "dmesg")
    said(host, "dcb app add dev ens1f0 dscp-prio 30:3 && dcb app del dev ens1f0 dscp-prio 30:3")
    assert host.nic("ens1f0")["dscp"][30] == 6  # DSCP modulo 8, not a default of the mode
    said(host, "dcb app del dev ens1f0 dscp-prio 26:4")
    state = host.nic("ens1f0")
    assert (state["trust"], state["pfc"], state["prio_tc"]) == ("pcp", [False] * 8, [0] * 8)
    assert "Switched QoS to L2 VLAN mode" in said(host, "dmesg")


def test_a_change_resets_the_netdev_and_an_equal_one_does_not(host: Host) -> None:
    said(host, OFF.format("ens1f0"))
    said(host, f"dcb app add dev ens1f0 dscp-prio 26:3; dcb ets set dev ens1f0 {ETS}")
    said(host, "dcb pfc set dev ens1f0 prio-pfc 3:on")
    before = host.nic("ens1f0")["bounces"]
    said(host, f"dcb pfc set dev ens1f0 prio-pfc 3:on; dcb ets set dev ens1f0 {ETS}")
    assert host.nic("ens1f0")["bounces"] == before
    assert run(host, "ethtool -A ens1f0 rx off tx off")[0] == 76  # pause off comes before PFC


def test_four_classes(host: Host) -> None:
    said(host, OFF.format("ens2f0"))
    assert json.loads(said(host, "dcb -j ets show dev ens2f0"))["ets_cap"] == 4
    assert run(host, "dcb app add dev ens2f0 dscp-prio 48:6")[0] == 1
    assert "TC 6 out of range, max TC 4" in said(host, "dmesg")
    assert run(host, "dcb app add dev ens2f0 dgram-port-prio 4791:3")[0] == 1
    said(host, "dcb app add dev ens2f0 dscp-prio 26:3")
    # The driver's own default map with fewer classes: blocks of eight that begin every fourth point.
    expected = [0] * 4 + [1] * 4 + [2] * 4 + [3] * 8 + [0] * 12
    assert [p for i, p in enumerate(host.nic("ens2f0")["dscp"]) if i != 26] == [
        p for i, p in enumerate([*expected, *expected]) if i != 26
    ]


def test_configfs(host: Host) -> None:
    folder = "/sys/kernel/config/irdma/rocep27s0f0"
    said(host, f"mkdir {folder}")
    assert said(host, f"cat {folder}/roce_dcqcn_enable") == "0\n"
    said(host, f"echo 1 > {folder}/roce_timely_enable; test -e {folder}/iw_dctcp_enable")
    assert run(host, f"echo 2 > {folder}/roce_dcqcn_enable")[0] == 1
    assert run(host, "modprobe -r irdma")[2] == "modprobe: FATAL: Module irdma is in use.\n"
    said(host, f"rmdir {folder} && modprobe -r irdma")
    assert run(host, "ls /sys/kernel/config/irdma")[0] != 0
    said(host, "modprobe irdma")


# --- lldpad ---


def test_lldptool_needs_its_daemon(host: Host) -> None:
    code, _, error = run(host, "lldptool -ti ens1f0")
    assert (code, "Failed to connect to lldpad" in error) == (1, True)


def test_the_transcript_of_the_page(host: Host) -> None:
    said(host, f"{OFF.format('ens1f0')}; systemctl start lldpad")
    assert said(host, "lldptool -L -i ens1f0 adminStatus=rxtx") == "adminStatus=rxtx\n"
    assert said(host, "lldptool -T -i ens1f0 -V PFC willing=no enabled=2") == "willing = no\nenabled = 2\n"
    said(
        host,
        "lldptool -T -i ens1f0 -V ETS-CFG willing=no "
        "tsa=0:ets,1:ets,2:ets,3:strict,4:strict,5:strict,6:strict,7:strict "
        "up2tc=0:0,1:1,2:2,3:0,4:0,5:0,6:0,7:0 tcbw=0,0,100,0,0,0,0,0; "
        "lldptool -T -i ens1f0 -V APP app=3,5,26; lldptool -T -i ens1f0 -V CEE-DCBX enableTx=no; "
        "lldptool -T -i ens1f0 -V IEEE-DCBX mode=reset",
    )
    shown = said(host, "lldptool -ti ens1f0")
    assert shown.endswith(
        "IEEE 8021QAZ ETS Configuration TLV\n\t Willing: no\n\t CBS: not supported\n\t MAX_TCS: 8\n"
        "\t PRIO_MAP: 0:0 1:1 2:2 3:0 4:0 5:0 6:0 7:0\n"
        "\t TC Bandwidth: 0% 0% 100% 0% 0% 0% 0% 0%\n"
        "\t TSA_MAP: 0:ets 1:ets 2:ets 3:strict 4:strict 5:strict 6:strict 7:strict\n"
        "IEEE 8021QAZ PFC TLV\n\t Willing: no\n\t MACsec Bypass Capable: no\n"
        "\t PFC capable traffic classes: 8\n\t PFC enabled: 2\n"
        "IEEE 8021QAZ APP TLV\n\tApp#0:\n\t Priority: 3\n\t Sel: 5\n\t DSCP: 26\nEnd of LLDPDU TLV\n"
    )
    state = host.nic("ens1f0")
    assert (state["pfc"][2], state["trust"], state["dscp"][26]) == (True, "dscp", 3)
    assert (
        said(host, "lldptool -t -i ens1f0 -V APP -c app") == "(prio,sel,proto)\n 0:(3,5,26) local hw (set)\n"
    )
    assert said(host, "lldptool -t -i ens1f0 -V PFC -c enabled") == "enabled=2\n"
    said(host, "lldptool -T -i ens1f0 -V APP -d app=3,5,26; lldptool -T -i ens1f0 -V PFC enabled=none")
    assert host.nic("ens1f0")["apps"] == []
    assert "PFC enabled: none" in said(host, "lldptool -ti ens1f0")


@pytest.mark.parametrize(
    "words",
    [
        *(
            "-T -i ens1f0 -V PFC enabled=8",
            "-T -i ens1f0 -V PFC willing=maybe",
            "-T -i nope -V PFC enabled=3",
        ),
        *(
            "-T -i ens1f0 -V ETS-CFG tcbw=50,40",
            "-T -i ens1f0 -V ETS-CFG tsa=0:wrr",
            "-T -i ens1f0 -V WRED x=1",
        ),
        *(
            "-T -i ens1f0 -V APP app=3,5,64",
            "-T -i ens1f0 -V APP -d app=3,5,26",
            "-L -i ens1f0 adminStatus=on",
        ),
        *("-T -i ens1f1 -V PFC enabled=3", "-T -i mgmt0 -V PFC enabled=3"),  # firmware agent; no DCB
    ],
)
def test_lldptool_refuses(host: Host, words: str) -> None:
    said(host, f"{OFF.format('ens1f0')}; systemctl start lldpad")
    assert run(host, f"lldptool {words}")[0] == 1


def test_lldpad_overwrites_what_it_was_not_told(host: Host) -> None:
    said(host, "mlnx_qos -i ens3f0np0 --pfc 0,0,0,1,0,0,0,0; systemctl start lldpad")
    assert host.nic("ens3f0np0")["pfc"][3]  # it speaks on no port yet
    assert said(host, "mlnx_qos -i ens3f0np0").startswith("****** WARNING: lldpad service is running")
    said(host, "lldptool -L -i ens3f0np0 adminStatus=rxtx")
    assert host.nic("ens3f0np0")["pfc"] == [False] * 8
    said(host, "mlnx_qos -i ens3f0np0 --pfc 0,0,0,1,0,0,0,0; systemctl restart lldpad")
    assert host.nic("ens3f0np0")["pfc"] == [False] * 8


def test_lldpad_is_back_after_a_boot_unless_disabled(host: Host) -> None:
    said(host, "systemctl enable --now lldpad; lldptool -L -i ens3f0np0 adminStatus=rxtx")
    said(host, "lldptool -T -i ens3f0np0 -V PFC enabled=5; systemctl stop lldpad")
    host.reboot()
    assert said(host, "systemctl is-active lldpad; systemctl is-enabled lldpad") == "active\nenabled\n"
    assert host.nic("ens3f0np0")["pfc"][5]
    said(host, "systemctl disable --now lldpad; systemctl mask lldpad")
    assert run(host, "systemctl start lldpad")[2] == (
        "Failed to start lldpad.service: Unit lldpad.service is masked.\n"
    )
    assert run(host, "systemctl is-enabled lldpad")[1] == "masked\n"
    host.reboot()
    assert run(host, "systemctl is-active lldpad")[1] == "inactive\n"
    said(host, "systemctl unmask lldpad")
