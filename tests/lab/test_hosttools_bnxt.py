"""Broadcom's tools and attributes in a lab host (host_linux_bnxt, its sources B1 to B8)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rdma_fabric.lab.hosts import Host, HostFacts, HostPort
from tests.lab.hostlab import power_on, run, running, said

HOST = HostFacts(
    "stor01",
    (
        HostPort("ens1np0", nic="bnxt", gbps=400, stack="ofed"),
        HostPort("ens2np0", nic="bnxt", gbps=400, stack="ofed", traits=("no-service-profile",)),
        HostPort("ens3np0", nic="bnxt", gbps=400, traits=("mp17",)),
        HostPort("ens4np0", nic="bnxt", gbps=400, stack="ofed", traits=("fw-lldp",)),
    ),
)
ETS = "tc-tsa 0:ets 1:ets 2:strict tc-bw 0:50 1:50 prio-tc 0:0 1:0 2:0 3:1 4:0 5:0 6:2 7:0"
CC = "/sys/kernel/config/bnxt_re/{}/ports/1/cc"


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(HOST, tmp_path_factory.mktemp("bnxt")) as host:
        yield host


@pytest.fixture
def host(booted: Host) -> Host:
    power_on(booted)
    return booted


def worked_example(host: Host, i: str, d: str, cnp: int = 6) -> None:
    """Section 5 of the page, line by line."""
    ets = ETS if cnp == 6 else ETS.replace("6:2 7:0", "6:0 7:2")
    said(
        host,
        f"ip link set dev {i} mtu 9216 && ethtool -A {i} rx off tx off && dcb app flush dev {i} && "
        f"dcb ets set dev {i} {ets} && dcb pfc set dev {i} prio-pfc all:off 3:on && "
        f"dcb app add dev {i} dgram-port-prio 4791:3 && dcb app add dev {i} dscp-prio 26:3 && "
        f"dcb app add dev {i} dscp-prio 48:{cnp}",
    )
    said(
        host,
        f"set -e; mkdir -p /sys/kernel/config/bnxt_re/{d}; cd {CC.format(d)}; "
        "echo -n 0x1 > disable_prio_vlan_tx; echo -n 0x1 > ecn_marking; echo -n 0x1 > ecn_enable; "
        "echo -n 1 > cc_mode; echo -n 0x1 > apply; cd /",
    )


def test_the_worked_example_with_a_service_profile(host: Host) -> None:
    worked_example(host, "ens1np0", "bnxt_re0")
    shown = said(host, f"cat {CC.format('bnxt_re0')}/apply")
    assert shown.startswith(
        "ecn status (ecn_enable)\t\t\t\t\t: Enabled\n"
        "ecn marking (ecn_marking)\t\t\t\t: ECT(1)\n"
        "congestion control mode (cc_mode)\t\t\t: DCQCN-P\n"
        "send priority vlan (VLAN 0)\t\t\t\t: Disabled\n"
        "running avg. weight(g)\t\t\t\t\t: 8\n"
        "inactivity threshold (inact_th)\t\t\t\t: 10000 usec\n"
        "initial current rate (init_cr)\t\t\t\t: 0xc8\n"
        "initial target rate (init_tr)\t\t\t\t: 0x320\n"
    )
    assert shown.endswith(
        "roce prio (roce_prio)\t\t\t\t\t: 3\nroce dscp (roce_dscp)\t\t\t\t\t: 26\n"
        "cnp prio (cnp_prio)\t\t\t\t\t: 6\ncnp dscp (cnp_dscp)\t\t\t\t\t: 48\n"
    )
    assert said(host, f"cd {CC.format('bnxt_re0')}; cat cnp_dscp ecn_enable cc_mode") == "0x30\n0x1\n0x1\n"
    said(host, "rmdir /sys/kernel/config/bnxt_re/bnxt_re0")
    pfc = json.loads(said(host, "dcb -j pfc show dev ens1np0"))
    assert [p for p, on in enumerate(pfc["prio_pfc"]) if on] == [3]
    assert said(host, "dcb -N app show dev ens1np0") == "dscp-prio 26:3 48:6 \ndgram-port-prio 4791:3 \n"
    assert "active_mtu:\t\t4096 (5)" in said(host, "ibv_devinfo -d bnxt_re0")
    assert said(host, "grep fw_service_prof_type_sup /sys/kernel/debug/bnxt_re/bnxt_re0/info") == (
        "\tfw_service_prof_type_sup : 1\n"
    )


def test_a_profile_of_the_firmware_owns_priorities(host: Host) -> None:
    said(host, "mkdir -p /sys/kernel/config/bnxt_re/bnxt_re0")
    folder = CC.format("bnxt_re0")
    for line in ("0x6 > cnp_prio", "0x3 > roce_prio", "0x30 > cnp_dscp", "0x1a > roce_dscp"):
        code, _, error = run(host, f"cd {folder} && echo {line}")
        assert (code, "write error: Invalid argument" in error) == (1, True), line
    said(host, f"dcb ets set dev ens1np0 {ETS}")
    said(host, "dcb app add dev ens1np0 dscp-prio 48:6; dcb app add dev ens1np0 dscp-prio 50:6")
    said(host, f"cd {folder} && echo 0x1 > ecn_enable && echo 0x1 > apply")
    assert "(cnp_dscp)\t\t\t\t\t: 50\n" in said(host, f"cat {folder}/apply")  # the last one programmed
    said(host, f"cd {folder} && echo 0x30 > cnp_dscp && echo 0x1 > apply")
    assert "(cnp_dscp)\t\t\t\t\t: 48\n" in said(host, f"cat {folder}/apply")
    said(host, "rmdir /sys/kernel/config/bnxt_re/bnxt_re0")


def test_configfs_reads_hexadecimal_and_waits_for_apply(host: Host) -> None:
    folder = CC.format("bnxt_re1")
    said(host, "mkdir /sys/kernel/config/bnxt_re/bnxt_re1")
    said(host, f"dcb ets set dev ens2np0 {ETS}")
    assert run(host, f"echo 48 > {folder}/cnp_dscp")[0] == 1  # 0x48 is above 0x3f
    assert run(host, f"echo 2 > {folder}/cc_mode")[0] == 1
    assert run(host, f"echo 3 > {folder}/ecn_marking")[0] == 1
    assert run(host, f"echo on > {folder}/ecn_enable")[0] == 1
    said(host, f"cd {folder}; echo 26 > roce_dscp; echo 0x30 > cnp_dscp; echo 0x1 > ecn_enable")
    said(host, f"cd {folder}; echo 0x3 > roce_prio; echo 0x6 > cnp_prio")
    assert said(host, f"cat {folder}/roce_dscp") == "0x26\n"
    assert "roce dscp (roce_dscp)\t\t\t\t\t: 0\n" in said(host, f"cat {folder}/apply")
    said(host, f"echo 0x1 > {folder}/apply")
    shown = said(host, f"cat {folder}/apply")
    assert "(roce_dscp)\t\t\t\t\t: 38\n" in shown and "(cnp_dscp)\t\t\t\t\t: 48\n" in shown
    assert host.nic("ens2np0")["d2p"] == [[38, 3], [48, 6]]
    said(host, f"echo 2 > {folder}/ecn_marking; echo 0x1 > {folder}/apply")
    assert "(ecn_marking)\t\t\t\t: ECT(0)\n" in said(host, f"cat {folder}/apply")
    assert host.nic("ens2np0")["d2p"] == []  # emptied at each apply, filled by what was written only
    said(host, f"echo 0x5 > {folder}/roce_dscp; echo 0x2 > {folder}/apply; echo 0x1 > {folder}/apply")
    assert "(roce_dscp)\t\t\t\t\t: 38\n" in said(host, f"cat {folder}/apply")  # 2 forgot it
    assert run(host, "modprobe -r bnxt_re") == (1, "", "modprobe: FATAL: Module bnxt_re is in use.\n")
    said(host, "rmdir /sys/kernel/config/bnxt_re/bnxt_re1 && modprobe -r bnxt_re && modprobe bnxt_re")
    assert "fw_service_prof_type_sup : 0" in said(host, "cat /sys/kernel/debug/bnxt_re/bnxt_re1/info")


def test_congestion_control_off_takes_the_cnp_class_away(host: Host) -> None:
    folder = CC.format("bnxt_re1")
    said(host, "mkdir /sys/kernel/config/bnxt_re/bnxt_re1")
    said(host, f"cd {folder}; echo 0x30 > cnp_dscp; echo 0 > ecn_enable; echo 1 > apply")
    assert said(host, f"cat {folder}/cnp_dscp") == "0x0\n"
    assert "cnp dscp" not in said(host, f"cat {folder}/apply")
    said(host, f"echo 1 > {folder}/advanced")
    assert "round trip time (rtt)\t\t\t\t\t: 40 usec\n" in said(host, f"cat {folder}/apply")
    said(host, "rmdir /sys/kernel/config/bnxt_re/bnxt_re1")


def test_the_kernels_own_driver_has_debugfs_instead(host: Host) -> None:
    assert run(host, "mkdir /sys/kernel/config/bnxt_re/bnxt_re2")[0] == 1
    bdf = said(host, "basename $(readlink -f /sys/class/net/ens3np0/device)").strip()
    folder = f"/sys/kernel/debug/bnxt_re/{bdf}/cc_config"
    said(host, f"echo -n 0x1 > {folder}/enable_cc; echo 48 > {folder}/alt_vlan_dscp")
    assert said(host, f"cat {folder}/enable_cc {folder}/cc_mode {folder}/alt_vlan_dscp") == "1\n1\n0\n"
    assert run(host, f"echo many > {folder}/enable_cc")[2].endswith("write error: Invalid argument\n")
    assert run(host, f"echo 1 > {folder}/tx_queue")[2].endswith("write error: Operation not supported\n")
    assert run(host, f"cat {folder}/tx_queue")[0] == 1


# --- dcb ---


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("pfc set dev ens1np0 prio-pfc 3:on", "Invalid argument"),  # ETS comes first
        ("ets set dev ens1np0 tc-tsa 0:ets 1:ets tc-bw 0:100 1:0", "Invalid argument"),
        ("ets set dev ens1np0 tc-tsa all:strict prio-tc 3:4", "Invalid argument"),
        ("app del dev ens1np0 dscp-prio 26:3", "No such file or directory"),
        ("dcbx set dev ens1np0 host ieee cee", "Operation not permitted"),
        ("dcbx set dev ens4np0 host ieee", "Operation not permitted"),
        (f"ets set dev ens4np0 {ETS}", "Invalid argument"),
        ("app add dev ens4np0 dscp-prio 26:3", "Invalid argument"),
    ],
)
def test_dcb_refuses(host: Host, command: str, text: str) -> None:
    code, _, error = run(host, f"dcb {command}")
    assert (code, error) == (1, f"Attribute write: {text}\n")


def test_dcb_says_why_in_the_kernel_log(host: Host) -> None:
    run(host, "dcb ets set dev ens1np0 tc-tsa 0:ets 1:ets tc-bw 0:100 1:0")
    run(host, "dcb ets set dev ens1np0 tc-tsa all:strict prio-tc 3:4")
    log = said(host, "dmesg")
    assert "ens1np0: rejecting ETS config starving a TC\n" in log
    assert "ens1np0: priority to TC mapping exceeds TC count 4\n" in log


def test_dcb_of_a_port_that_nobody_set(host: Host) -> None:
    ets = json.loads(said(host, "dcb -j ets show dev ens1np0"))
    assert (ets["ets_cap"], ets["tc_bw"], ets["prio_tc"]) == (3, [0] * 8, [0] * 8)
    assert set(ets["tc_tsa"]) == {"strict"}
    assert json.loads(said(host, "dcb -j ets show dev ens3np0"))["ets_cap"] == 8
    assert json.loads(said(host, "dcb -j pfc show dev ens1np0"))["prio_pfc"] == [False] * 8
    assert said(host, "dcb dcbx show dev ens1np0; dcb dcbx show dev ens4np0") == (
        "host ieee \nlld-managed ieee \n"
    )
    said(host, "dcb dcbx set dev ens1np0 ieee")  # no host any more: nothing can be set
    assert run(host, f"dcb ets set dev ens1np0 {ETS}")[0] == 1


def test_eight_classes_with_mp17(host: Host) -> None:
    said(host, "dcb ets set dev ens3np0 tc-tsa 0:ets 1:ets 2:strict tc-bw 0:50 1:50 prio-tc 3:1 6:2 7:7")
    assert json.loads(said(host, "dcb -j ets show dev ens3np0"))["prio_tc"] == [0, 0, 0, 1, 0, 0, 2, 7]


# --- niccli ---

DEFAULT = """IEEE 8021QAZ ETS Configuration TLV:
         PRIO_MAP: 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:2
         TC Bandwidth: 50% 50% 0%
         TSA_MAP: 0:ets 1:ets 2:strict
IEEE 8021QAZ PFC TLV:
         PFC enabled: 3
IEEE 8021QAZ APP TLV:
         APP#0:
          Priority: 7
          Sel: 5
          DSCP: 48

         APP#1:
          Priority: 3
          Sel: 5
          DSCP: 26

         APP#2:
          Priority: 3
          Sel: 3
          UDP or DCCP: 4791

TC Rate Limit: 100% 100% 100% 0% 0% 0% 0% 0%
"""


def test_the_vendors_script_gives_the_vendors_default(host: Host) -> None:
    out = said(host, "bnxt_setupcc.sh -d bnxt_re0 -i ens1np0 -m 3 -s 26 -p 48 -r 3 -c 7 -b 50 -u 3")
    assert out.startswith("ENABLE_PFC = 1 ENABLE_CC = 1\n")
    assert said(host, "niccli -i 1 get_qos") == DEFAULT
    assert said(host, "niccli -dev ens1np0 getqos; bnxtqos -dev=ens1np0 get_qos") == DEFAULT * 2
    assert said(host, "niccli -i 1 get_dscp2prio") == (
        "dscp2prio mapping:\n         priority:7  dscp: 48\n         priority:3  dscp: 26\n"
    )
    pri2cos = said(host, "niccli -i 1 dump pri2cos")
    assert "\n3         1    0\n4         0    4\n" in pri2cos and pri2cos.endswith("7         2    5\n")
    assert host.nic("ens1np0")["tos"] == 104


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        ("-V", 2, "bnxt_setupcc.sh version:  233.2.82.0"),
        ("-i ens1np0", 2, "Usage: bnxt_setupcc.sh"),
        ("-i ens1np0 -r 3 -x", 2, "Usage: bnxt_setupcc.sh"),
        ("-i ens1np0 -r 3 -m 4", 1, "Invalid value for mode (-m option)"),
        ("-i ens1np0 -r 3 -s many", 255, "Invalid RoCE DSCP value"),
        ("-i nope -r 3", 255, "Could not locate RDMA device for nope interface."),
        ("-i nope -d bnxt_re0 -r 3", 1, "Interface nope not found"),
    ],
)
def test_the_vendors_script_refuses(host: Host, options: str, status: int, text: str) -> None:
    code, out, _ = run(host, f"bnxt_setupcc.sh {options}")
    assert (code, text in out) == (status, True), out


def test_niccli_sets_and_removes(host: Host) -> None:
    tsa, map_ = "0:ets,1:ets,2:strict", "0:0,1:0,2:0,3:1,4:0,5:0,6:2,7:0"
    lines = f"ets -tsa {tsa} -up2tc {map_} -tcbw 50,50\npfc -enable 3\napptlv -add -app 3,3,4791\n"
    lines += "apptlv -add -app 3,5,26\napptlv -add -app 6,5,48\nquit\npfc -enable 0xFF\n"
    assert run(host, "niccli -dev $(basename $(readlink -f /sys/class/net/ens1np0/device))", lines) == (
        0,
        "",
        "",
    )
    assert host.nic("ens1np0")["pfc"][3]
    assert said(host, "dcb -N app show dev ens1np0") == "dscp-prio 26:3 48:6 \ndgram-port-prio 4791:3 \n"
    said(host, "niccli -i 1 set_apptlv -d app=6,5,48 && niccli -i 1 set_pfc enabled=none")
    said(
        host,
        "niccli -i 1 set_ets tsa=0:strict,1:strict,2:strict "
        "priority2tc=0:0,1:0,2:0,3:0,4:0,5:0,6:0,7:0 tcbw=100",
    )
    shown = said(host, "niccli -i 1 get_qos")
    assert "PFC enabled: none\n" in shown and "DSCP: 48" not in shown and "2:strict" in shown
    eight = f"{tsa},3:strict,4:strict,5:strict,6:strict,7:strict"
    code, out, _ = run(host, f"niccli -i 1 ets -tsa {eight} -up2tc {map_} -tcbw 50,50")
    assert (code, out.startswith("Error:")) == (1, True)  # three classes only
    assert run(host, "niccli -i 1 pfc -enable 9")[0] == 1
    assert run(host, "niccli -i 1 apptlv -add -app 3,5,64")[0] == 1
    assert run(host, "niccli -i 1 qos --ets --show")[0] == 1  # a command of later releases
    assert run(host, "niccli -i 9 get_qos")[0] == 1


def test_niccli_lists_and_shows(host: Host) -> None:
    listed = said(host, "niccli --list")
    assert listed.startswith(
        "1 ) Broadcom BCM57608 1x400G QSFP-DD PCIe Ethernet NIC (Adp#1 Port#1)\n"
        "     Device Interface Name     : ens1np0\n     MAC Address               : 02:"
    )
    assert listed.count("PCI Address               : 0000:") == 4
    assert said(host, "niccli --listdev") == listed
    assert said(host, "niccli --version") == "niccli v233.2.77.9\n"
    shown = said(host, "niccli -i 1 show")
    assert "\nFirmware Version               : 233.2.77.9\nRoCE Firmware Version          : 233.2" in shown
    assert said(host, "cat /sys/class/infiniband/bnxt_re0/fw_ver") == "233.2.77.9\n"
    assert "\nversion: 1.10.3-233.2.77.9\nfirmware-version: 233.2.77.9/pkg 233.2.77.9\n" in said(
        host, "ethtool -i ens1np0"
    )


def test_nvm_options_wait_for_the_next_boot(host: Host) -> None:
    assert said(host, "niccli -i 1 nvm -getoption support_rdma -scope 0") == "support_rdma = True\n"
    assert said(host, "niccli -i 1 nvm -setoption support_rdma -value 0 -scope 0") == (
        "support_rdma is set successfully\n"
    )
    assert said(host, "niccli -i 1 nvm -getoption support_rdma -scope 0") == "support_rdma = False\n"
    said(host, "niccli -i 1 nvm -setoption support_rdma -value 1 -scope 0")
    assert "bnxt_re0" in said(host, "rdma link")
    assert said(host, "niccli -i 1 nvm -getoption performance_profile") == "performance_profile = RoCE\n"
    for words in ("-getoption nope", "-setoption support_rdma -value 2 -scope 0", "-getoption support_rdma"):
        assert run(host, f"niccli -i 1 nvm {words}")[0] == 1


def test_later_releases_of_niccli_speak_otherwise(host: Host) -> None:
    facts = "/var/lib/fabric-lab/facts.json"
    said(host, f"cp {facts} /root/facts; sed -i 's/233.2.77.9/235.1.3.0/' {facts}")
    try:
        tsa, map_ = "0:ets,1:ets,2:strict", "0:0,1:0,2:0,3:1,4:0,5:0,6:0,7:2"
        said(host, f"niccli --dev 1 qos --ets --tsa {tsa} --up2tc {map_} --tcbw 50,50")
        said(host, "niccli --dev 1 qos --pfc --enable 3 && niccli -i 1 qos --apptlv --add --app 3,3,4791")
        said(host, "niccli -i 1 qos --apptlv --add --app 3,5,26; niccli -i 1 qos --apptlv --add --app 7,5,48")
        assert said(host, "niccli --dev 1 qos --ets --show") == DEFAULT
        rows = ("0   Enabled   Lossy", "1   Enabled   Lossless", "2   Enabled   Lossy")
        assert said(host, "niccli -i 1 qos --ingress --cosq --show") == (
            "  TC   State     Mode\n" + "".join(f"   {row}\n" for row in rows)
        )
        assert said(host, "niccli --dev 1 nvm --getoption support_rdma --scope 0") == "support_rdma = True\n"
        assert run(host, "niccli -i 1 set_pfc enabled=none")[0] == 1
        assert run(host, "niccli --listdev")[0] == 1
        assert said(host, "niccli --list_devices").count("Broadcom BCM57608") == 4
    finally:
        said(host, f"cat /root/facts > {facts}")


def test_only_the_vendors_package_brings_its_tools(host: Host) -> None:
    assert run(host, "command -v niccli bnxtqos bnxt_setupcc.sh")[0] == 0
