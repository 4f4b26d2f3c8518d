"""The tools of absent NICs say and refuse what the vendor facts say (host_linux_mlx5 and others)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest

from rdma_fabric.lab.hosts import Host
from tests.lab.hostlab import GPU, power_on, run, running, said

ALL = "--dscp2prio set,{},{}"


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(GPU, tmp_path_factory.mktemp("tools")) as host:
        yield host


@pytest.fixture
def host(booted: Host) -> Host:
    power_on(booted)
    return booted


def app(host: Host, netdev: str = "ens1f0np0") -> dict[int, int]:
    table = json.loads(said(host, f"dcb -j app show dev {netdev}"))
    return {entry[0]: entry[1] for entry in table.get("dscp_prio", [])}


# --- mlnx_qos ---


def test_mlnx_qos_prints_the_layout_of_the_program(host: Host) -> None:
    pairs = {**dict.fromkeys(range(64), 0), 26: 3, 48: 6}
    words = " ".join(ALL.format(*pair) for pair in pairs.items())
    said(host, f"mlnx_qos -i ens1f0np0 {words}")
    said(host, "mlnx_qos -i ens1f0np0 --cable_len=20 --pfc 0,0,0,1,0,0,0,0")
    ets = "--prio_tc 0,0,0,3,3,3,6,6 --tsa ets,ets,ets,ets,ets,ets,strict,ets --tcbw 50,0,0,50,0,0,0,0"
    said(host, f"mlnx_qos -i ens1f0np0 {ets}")
    shown = said(host, "mlnx_qos -i ens1f0np0")
    assert shown.startswith("DCBX mode: OS controlled\nPriority trust state: dscp\ndscp2prio mapping:\n")
    assert "\tprio:0 dscp:00,01,02,03,04,05,06,07,\n" in shown
    assert "\tprio:3 dscp:26,\n\tprio:6 dscp:48,\n" in shown
    assert shown.endswith(
        "Receive buffer size (bytes): 262016,0,0,0,0,0,0,0,max_buffer_size=262016\n"
        "Cable len: 20\n"
        "PFC configuration:\n"
        "\tpriority    0   1   2   3   4   5   6   7\n"
        "\tenabled     0   0   0   1   0   0   0   0   \n"
        "\tbuffer      0   0   0   0   0   0   0   0   \n"
        "tc: 0 ratelimit: unlimited, tsa: ets, bw: 50%\n"
        "\t priority:  0\n\t priority:  1\n\t priority:  2\n"
        "tc: 3 ratelimit: unlimited, tsa: ets, bw: 50%\n"
        "\t priority:  3\n\t priority:  4\n\t priority:  5\n"
        "tc: 6 ratelimit: unlimited, tsa: strict\n"
        "\t priority:  6\n\t priority:  7\n"
    )


def test_a_port_starts_with_the_drivers_defaults(host: Host) -> None:
    shown = said(host, "mlnx_qos -i ens1f0np0 -a")
    assert "Priority trust state: pcp\nReceive" in shown
    assert "Cable len: 7\n" in shown
    assert "tc: 0 ratelimit: unlimited, tsa: vendor\n\t priority:  1\ntc: 1 " in shown


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        ("", 1, "Interface name is required"),
        (
            "-i ens1f0np0 --trust dscp --dscp2prio set,26,3",
            1,
            "trust and dscp2prio commands cannot be used at",
        ),
        ("-i ens1f0np0 --pfc 0,0,1", 1, "pfc list must have 8 items"),
        ("-i ens1f0np0 --pfc 0,0,0,1,0,0,0,0,0", 1, "Too many items for PFC"),
        ("-i ens1f0np0 --pfc 0,0,0,2,0,0,0,0", 1, "Bad value for PFC: 2 is not in the range 0..1"),
        ("-i ens1f0np0 --trust both", 1, "Invalid trust state command"),
        ("-i ens1f0np0 --dscp2prio del,26,3", 1, "dscp2prio command failed"),
        ("-i ens1f0np0 --tcbw 50,0,0,50,0,0,0,0", 1, "ETS BW for a strict/vendor TC must be 0"),
        ("-i ens1f0np0 -d auto", 1, "Invalid dcbx mode command"),
        ("-i mgmt0", 1, "ETS features are not supported on your system"),
        ("-i mgmt0 --trust dscp", 1, "Priority trust state is not supported on your system"),
        ("-i ens4np0", 0, "Buffers commands are not supported on your system"),
    ],
)
def test_mlnx_qos_refuses(host: Host, options: str, status: int, text: str) -> None:
    code, out, _ = run(host, f"mlnx_qos {options}")
    assert (code, text in out) == (status, True), out


def test_mlnx_qos_trips_over_its_own_error_message(host: Host) -> None:
    code, _, error = run(host, "mlnx_qos -i ens4np0 --pfc 0,0,0,1,0,0,0,0")  # bnxt wants ETS first
    assert code == 1
    assert "Traceback" in error and "TypeError" in error
    code, _, error = run(host, "mlnx_qos -i ens1f0np0 --dscp2prio put,26")
    assert (code, "'ValueError' object has no attribute 'errno'" in error) == (1, True)


def test_mlnx_qos_asks_and_sets_some_priorities(host: Host) -> None:
    assert said(host, "mlnx_qos -i ens1f0np0 -P 3") == "0\n"
    assert said(host, "mlnx_qos -i ens1f0np0 -F x,x,x,1,x,x,x,x") == ""
    assert said(host, "mlnx_qos -i ens1f0np0 -P 3") == "1\n"


def test_trust_writes_the_firmware_map_and_flush_flips_back(host: Host) -> None:
    said(host, "mlnx_qos -i ens1f0np0 --trust dscp")
    assert app(host) == {point: point >> 3 for point in range(64)}
    said(host, "mlnx_qos -i ens1f0np0 --dscp2prio flush")
    assert "trust state: pcp" in said(host, "mlnx_qos -i ens1f0np0")


def test_lldpad_is_warned_of(host: Host) -> None:
    said(host, "systemctl start lldpad")
    assert said(host, "mlnx_qos -i ens1f0np0").startswith("****** WARNING: lldpad service is running")
    said(host, "systemctl stop lldpad")


# --- dcb and the mlx5 driver ---


def test_dcb_json(host: Host) -> None:
    said(host, "dcb pfc set dev ens1f0np0 prio-pfc all:off 3:on delay 20")
    assert said(host, "dcb -j pfc show dev ens1f0np0") == (
        '{"pfc_cap":8,"macsec_bypass":false,"delay":20,'
        '"prio_pfc":[false,false,false,true,false,false,false,false]}\n'
    )
    shown = json.loads(said(host, "dcb -s -j pfc show dev ens1f0np0"))
    assert shown["requests"] == shown["indications"] == [0] * 8
    tsa = "tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets"
    said(host, f"dcb ets set dev ens1f0np0 {tsa} tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0 prio-tc 0:0 1:1")
    ets = json.loads(said(host, "dcb -j ets show dev ens1f0np0"))
    assert ets["tc_bw"] == [50, 0, 0, 50, 0, 0, 100, 0]
    assert ets["prio_tc"] == list(range(8))


def test_a_changed_pfc_bitmap_bounces_the_link_and_an_equal_one_does_not(host: Host) -> None:
    def changes() -> int:
        return int(said(host, "cat /sys/class/net/ens1f0np0/carrier_changes"))

    before = changes()
    said(host, "mlnx_qos -i ens1f0np0 --pfc 0,0,0,1,0,0,0,0")
    said(host, "dcb pfc set dev ens1f0np0 prio-pfc 3:on")
    assert changes() == before + 2
    assert host.nic("ens1f0np0")["bounces"] == 1
    assert said(host, "cat /sys/class/net/ens1f0np0/carrier") == "1\n"


def test_dscp_entries_flip_trust_move_and_leave_zero(host: Host) -> None:
    said(host, "dcb app add dev ens1f0np0 dscp-prio 26:3 48:6")
    said(host, "dcb app add dev ens1f0np0 dscp-prio 26:4")
    assert app(host) == {26: 4, 48: 6}
    assert host.nic("ens1f0np0")["dscp"][25:27] == [3, 4]  # 25 keeps the map that nobody sees
    assert said(host, "dcb app show dev ens1f0np0") == "dscp-prio AF31:4 CS6:6 \n"
    assert said(host, "dcb -N app show dev ens1f0np0") == "dscp-prio 26:4 48:6 \n"
    said(host, "dcb app flush dev ens1f0np0")
    state = host.nic("ens1f0np0")
    assert (state["trust"], state["dscp"][26], state["dscp"][48], state["dscp"][25]) == ("pcp", 0, 0, 3)


def test_app_replace_loses_to_the_driver_and_still_ends_well(host: Host) -> None:
    said(host, "dcb app add dev ens1f0np0 dscp-prio 26:3")
    code, _, error = run(host, "dcb app replace dev ens1f0np0 dscp-prio 26:4")
    assert (code, "Could not remove replaced APP entries" in error) == (0, True)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("pfc show dev nope", "Attribute read: No such device"),
        ("pfc show dev mgmt0", "Attribute read: Operation not supported"),
        ("pfc set dev ens6 prio-pfc 3:on", "Attribute read: Operation not supported"),
        ("app add dev ens6 dscp-prio 26:3", "Attribute write: Operation not supported"),
        ("app add dev ens1f0np0 dscp-prio 64:3", "In DSCP:PRIO mapping, DSCP is expected to be 0..63"),
        ("app add dev ens1f0np0 dscp-prio 26:8", "In DSCP:PRIO mapping, PRIO is expected to be 0..7"),
        ("app add dev ens1f0np0 dgram-port-prio 4791:3", "Attribute write: Invalid argument"),
        ("app del dev ens1f0np0 dscp-prio 26:3", "Attribute write: No such file or directory"),
        ("ets set dev ens1f0np0 prio-tc 0:0", "Bandwidth percentages in tc-bw sum to 800%, expected 0%"),
        ("ets set dev ens1f0np0 tc-tsa all:ets tc-bw all:0 0:60", "sum to 60%, expected 100%"),
        ("ets set dev ens1f0np0 tc-tsa 0:ets 1:wrr", "argument of"),
        ("dcbx set dev ens1f0np0 lld-managed", "Attribute write: Operation not permitted"),
        ("pfc set dev ens1f0np0 delay many", "Invalid delay `many', expected an integer 0..65535"),
        ("pfc set dev ens1f0np0 colour red", 'What is "colour"?'),
        ("wred show dev ens1f0np0", 'Object "wred" is unknown'),
        ("buffer set dev ens1f0np0 buffer-size 0:300000", "Attribute write: Invalid argument"),
        ("ets set dev ens4np0 tc-tsa 0:ets 1:ets tc-bw 0:100 1:0", "Attribute write: Invalid argument"),
        ("pfc set dev ens4np0 prio-pfc 3:on", "Attribute write: Invalid argument"),
        ("app add dev ens5f0 dscp-prio 26:3", "Attribute write: Invalid argument"),
    ],
)
def test_dcb_refuses(host: Host, command: str, text: str) -> None:
    code, _, error = run(host, f"dcb {command}")
    assert code == 1
    assert text in error


@pytest.mark.parametrize(
    "command",
    [  # the kernel takes no writes of dcb from a user namespace: those cannot be compared
        *("pfc show dev mgmt0", "ets show dev mgmt0", "-j app show dev mgmt0", "buffer show dev mgmt0"),
        *("dcbx show dev mgmt0", "pfc set dev mgmt0 prio-pfc 3:on", "app add dev mgmt0 port-prio 0:3"),
        *("app add dev mgmt0 dscp-prio 64:3", "app add dev mgmt0 dscp-prio 26:9", "app flush dev mgmt0"),
        *("app add dev mgmt0 ethtype-prio 0x10:9", "app del dev mgmt0 dscp-prio AF31:9"),
        *("app replace dev mgmt0 dscp-prio 26:3", "ets show dev nope", "wred show dev mgmt0"),
        *("ets set dev mgmt0 tc-tsa 0:wrr", "-s -j pfc show dev nope", "maxrate show dev mgmt0"),
    ],
)
def test_the_real_dcb_answers_a_netdev_without_dcb_the_same(host: Host, command: str) -> None:
    if run(host, "test -x /usr/sbin/dcb")[0]:
        pytest.skip("hardware: this machine's iproute2 has no dcb")
    assert run(host, f"dcb {command}") == run(host, f"/usr/sbin/dcb {command}")


def test_a_sum_over_strict_classes_passes_dcb_and_fails_in_the_driver(host: Host) -> None:
    tsa, shares = "tc-tsa all:strict 0:ets", "tc-bw all:0 0:50 3:50"
    code, _, error = run(host, f"dcb ets set dev ens1f0np0 {tsa} {shares}")
    assert (code, error) == (1, "Attribute write: Invalid argument\n")
    assert "BW sum is illegal" in said(host, "dmesg")


def test_a_lossless_buffer_must_hold_xoff_one_frame_and_a_cell(host: Host) -> None:
    said(host, "dcb pfc set dev ens1f0np0 prio-pfc 3:on delay 20")
    code, _, _ = run(host, "dcb buffer set dev ens1f0np0 prio-buffer 3:1 buffer-size 0:100000 1:90000")
    assert code == 1
    said(host, "ip link set ens1f0np0 mtu 9216; dcb pfc set dev ens1f0np0 prio-pfc 3:on")
    # 400 G, 20 m, MTU 9216: (301 + 43) * 400 + 25067 = 162667, and a frame and a cell on top
    enough, short = 162667 + 9216 + 128, 162667 + 9216 + 127
    for size, status in ((short, 1), (enough, 0)):
        line = f"dcb buffer set dev ens1f0np0 prio-buffer 3:1 buffer-size 0:80000 1:{size}"
        assert run(host, line)[0] == status
    said(host, "ip link set ens1f0np0 mtu 1500")


def test_batches_stop_at_the_first_failure(host: Host) -> None:
    lines = (
        "pfc set dev ens1f0np0 prio-pfc 3:on\npfc set dev nope prio-pfc 3:on\npfc set dev ens1f0np0 delay 9\n"
    )
    code, _, _ = run(host, "dcb -b -", lines)
    assert code == 1
    assert (host.nic("ens1f0np0")["pfc"][3], host.nic("ens1f0np0")["cable"]) == (True, 7)


# --- other NICs ---


def test_bnxt_takes_ets_then_pfc(host: Host) -> None:
    line = "tc-tsa 0:ets 1:ets 2:strict tc-bw 0:50 1:50 prio-tc 0:0 1:0 2:0 3:1 4:0 5:0 6:2 7:0"
    said(host, f"dcb ets set dev ens4np0 {line} && dcb pfc set dev ens4np0 prio-pfc all:off 3:on")
    said(host, "dcb app add dev ens4np0 dgram-port-prio 4791:3 && dcb app add dev ens4np0 dscp-prio 26:3")
    assert run(host, "dcb app add dev ens4np0 dscp-prio 26:3")[2] == "Attribute write: File exists\n"
    assert host.nic("ens4np0")["pfc"][3]


# --- vendor stack attributes ---


def test_ofed_attributes_are_the_same_state(host: Host) -> None:
    qos = "/sys/class/net/ens3f0np0/qos"
    said(host, f"echo dscp > {qos}/trust")
    assert "trust state: dscp\ndscp2prio mapping:\n\tprio:0 dscp:00," in said(host, "mlnx_qos -i ens3f0np0")
    assert run(host, f"echo both > {qos}/trust")[2].endswith("write error: Invalid argument\n")
    said(host, "mlnx_qos -i ens3f0np0 --dscp2prio set,26,5")
    assert re.search(r"^\s*26\s+5$", said(host, f"cat {qos}/dscp2prio"), re.MULTILINE)
    assert run(host, "test -e /sys/class/net/ens1f0np0/qos/trust")[0] == 1


def test_ofed_ecn_and_traffic_class(host: Host) -> None:
    ecn, tclass = "/sys/class/net/ens3f0np0/ecn", "/sys/class/infiniband/mlx5_2/tc/1/traffic_class"
    said(host, f"echo 0 > {ecn}/roce_np/enable/3; echo 40 > {ecn}/roce_np/cnp_dscp")
    assert said(host, f"cat {ecn}/roce_np/enable/3 {ecn}/roce_np/cnp_dscp") == "0\n40\n"
    assert run(host, f"echo 64 > {ecn}/roce_np/cnp_dscp")[0] == 1
    said(host, f"echo 106 > {tclass}")
    assert said(host, f"cat {tclass}") == "Global tclass=106\n"
    said(host, f"echo tclass=-1 > {tclass}")
    assert said(host, f"cat {tclass}") == ""


def test_rdma_cm_needs_its_module(host: Host) -> None:
    run(host, "modprobe -r rdma_ucm")
    code, out, _ = run(host, "cma_roce_tos -d mlx5_0")
    assert (code, out) == (1, "Module rdma_cm is not loaded or does not support configfs\n")
    said(host, "modprobe rdma_ucm")
    assert (
        said(host, "cma_roce_tos -d mlx5_0 -p 1 -t 106; cma_roce_mode -d mlx5_0 -p 1 -m 2")
        == "106\nRoCE v2\n"
    )
    folder = "/sys/kernel/config/rdma_cm/mlx5_0"
    said(host, f"mkdir {folder} && echo 104 > {folder}/ports/1/default_roce_tos && rmdir {folder}")
    assert said(host, "cma_roce_tos -d mlx5_0") == "104\n"
    code, out, _ = run(host, "cma_roce_tos -d mlx5_9")
    assert (code, out) == (1, "Failed to create configuration for mlx5_9\n")
    assert run(host, "cma_roce_tos -d mlx5_0 -p 2")[1] == "Device mlx5_0 port 2 does not exist\n"


# --- MTU, links, firmware ---


@pytest.mark.parametrize(
    ("netdev", "ibdev", "mtu", "active"),
    [
        ("ens1f0np0", "mlx5_0", 1500, "1024 (3)"),
        ("ens1f0np0", "mlx5_0", 2143, "1024 (3)"),
        ("ens1f0np0", "mlx5_0", 2144, "2048 (4)"),
        ("ens1f0np0", "mlx5_0", 4191, "2048 (4)"),
        ("ens1f0np0", "mlx5_0", 4192, "4096 (5)"),
        ("ens1f0np0", "mlx5_0", 9216, "4096 (5)"),
        ("ens4np0", "bnxt_re0", 4191, "2048 (4)"),
        ("ens5f0", "rocep0", 4096, "4096 (5)"),  # irdma subtracts nothing
    ],
)
def test_active_mtu(host: Host, netdev: str, ibdev: str, mtu: int, active: str) -> None:
    said(host, f"ip link set {netdev} mtu {mtu}")
    assert f"\t\t\tactive_mtu:\t\t{active}\n" in said(host, f"ibv_devinfo -d {ibdev}")
    said(host, f"ip link set {netdev} mtu 1500")


def test_rdma_devices_and_their_netdevs(host: Host) -> None:
    links = json.loads(said(host, "rdma -j link"))
    assert [(link["ifname"], link["netdev"], link["state"]) for link in links][:2] == [
        ("mlx5_0", "ens1f0np0", "ACTIVE"),
        ("mlx5_1", "ens2f0np0", "ACTIVE"),
    ]
    assert said(host, "cat /sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0") == "ens2f0np0\n"
    assert said(host, "ibdev2netdev").startswith("mlx5_0 port 1 ==> ens1f0np0 (Up)\n")
    assert "\t3\t0000:0000:0000:0000:0000:ffff:c000:0201\t192.0.2.1  \tv2\tens1f0np0\n" in said(
        host, "show_gids"
    )
    assert said(host, "basename $(readlink -f /sys/class/net/ens1f0np0/device/driver)") == "mlx5_core\n"


def test_ethtool(host: Host) -> None:
    assert "\tSpeed: 400000Mb/s\n" in said(host, "ethtool ens1f0np0")
    assert "driver: mlx5_core\n" in said(host, "ethtool -i ens1f0np0")
    said(host, "ethtool -A ens1f0np0 rx off tx off; ethtool -G ens1f0np0 rx 8192 tx 8192")
    assert "RX:\t\toff\nTX:\t\toff\n" in said(host, "ethtool -a ens1f0np0")
    assert said(host, "ethtool -g ens1f0np0").count("RX:\t\t\t8192\n") == 2
    assert run(host, "ethtool -A ens1f0np0 autoneg on rx off") == (
        76,
        "",
        "netlink error: Invalid argument\n",
    )
    assert run(host, "ethtool -G ens1f0np0 rx 9000")[0] == 81
    assert run(host, "ethtool -a mgmt0")[0::2] == (1, "netlink error: Operation not supported\n")
    assert run(host, "ethtool -A mgmt0 rx off")[0] == 76
    said(host, "ethtool --set-tunable ens1f0np0 pfc-prevention-tout 200")
    assert said(host, "ethtool --show-tunable ens1f0np0 pfc-prevention-tout") == "pfc-prevention-tout: 200\n"
    assert run(host, "ethtool --set-tunable ens1f0np0 pfc-prevention-tout 79")[0] == 1


def test_a_driver_reload_forgets_ets_and_keeps_pfc(host: Host) -> None:
    said(host, "dcb pfc set dev ens1f0np0 prio-pfc 3:on delay 20; dcb app add dev ens1f0np0 dscp-prio 26:4")
    said(host, "mlnx_qos -i ens1f0np0 --tsa ets,ets,ets,ets,ets,ets,strict,ets --tcbw 50,0,0,50,0,0,0,0")
    said(host, "devlink dev reload pci/0000:1b:00.0")
    state = host.nic("ens1f0np0")
    assert (state["pfc"][3], state["trust"], state["cable"], state["tsa"]) == (
        True,
        "dscp",
        7,
        ["vendor"] * 8,
    )
    assert len(app(host)) == 64  # the driver lists what the firmware holds


def test_neighbours(host: Host) -> None:
    shown = json.loads(said(host, "lldpcli show neighbors -f json"))["lldp"]["interface"]
    assert [next(iter(row)) for row in shown] == ["ens1f0np0", "ens2f0np0"]
    one = json.loads(said(host, "lldpcli -f json show neighbors ports ens2f0np0"))["lldp"]["interface"]
    assert one["ens2f0np0"]["port"]["id"] == {"type": "ifname", "value": "Ethernet1/1"}
    assert "leaf02" in one["ens2f0np0"]["chassis"]


# --- modules, units, timers ---


def test_modules(host: Host) -> None:
    code, _, error = run(host, "modprobe rdma_cm2")
    assert code == 1
    assert error.startswith("modprobe: FATAL: Module rdma_cm2 not found in directory /lib/modules/")
    said(host, "echo 'options ib_core recv_queue_size=1024' > /etc/modprobe.d/x.conf; modprobe rdma_ucm")
    assert run(host, "modprobe -r rdma_cm") == (1, "", "modprobe: FATAL: Module rdma_cm is in use.\n")
    assert re.search(r"^rdma_cm +\d+ +1 rdma_ucm$", said(host, "lsmod"), re.MULTILINE)
    said(host, "test -d /sys/module/rdma_ucm && modprobe -n rdma_cm")
    said(host, "modprobe -r rdma_ucm; test ! -e /sys/module/rdma_cm")


UNIT = """[Unit]
BindsTo=sys-subsystem-net-devices-%i.device
After=rdma-hw.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'echo "for %i" >> /run/ran'
[Install]
WantedBy=sys-subsystem-net-devices-%i.device
"""


def test_units(host: Host) -> None:
    run(host, "cat > /etc/systemd/system/q@.service; rm -f /run/ran", UNIT)
    said(host, "systemctl daemon-reload")
    assert run(host, "systemctl is-enabled q@ens1f0np0")[:2] == (1, "disabled\n")
    assert "Created symlink" in run(host, "systemctl enable q@ens1f0np0.service")[2]
    assert said(host, "systemctl is-enabled q@ens1f0np0") == "enabled\n"
    assert run(host, "systemctl is-active q@ens1f0np0")[:2] == (3, "inactive\n")
    said(host, "systemctl start q@ens1f0np0 && systemctl start q@ens1f0np0")
    assert said(host, "systemctl is-active q@ens1f0np0; cat /run/ran") == "active\nfor ens1f0np0\n"
    assert run(host, "systemctl start q@nope")[0] == 1
    run(host, "cat > /etc/systemd/system/q@.service", UNIT.replace("for", "changed"))
    code, _, error = run(host, "systemctl restart q@ens1f0np0")
    assert (code, "Run 'systemctl daemon-reload'" in error) == (0, True)
    said(host, "systemctl daemon-reload; systemctl restart q@ens1f0np0")
    assert said(host, "cat /run/ran") == "for ens1f0np0\nfor ens1f0np0\nchanged ens1f0np0\n"
    said(host, "systemctl disable --now q@ens1f0np0")
    assert run(host, "systemctl start nope")[0::2] == (
        5,
        "Failed to start nope.service: Unit nope.service not found.\n",
    )


def test_a_failing_unit_says_where_to_look(host: Host) -> None:
    text = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo broken; exit 3'\n"
    run(host, "cat > /etc/systemd/system/bad.service", text)
    code, _, error = run(host, "systemctl start bad")
    assert (code, error.startswith("Job for bad.service failed")) == (1, True)
    assert said(host, "journalctl -u bad") == "broken\n"
    assert run(host, "systemctl is-failed bad")[:2] == (0, "failed\n")


def test_a_timer_runs_once_unless_stopped(host: Host) -> None:
    code, out, error = run(host, "systemd-run --on-active=3 --unit=rollback touch /run/rolled")
    assert (code, out) == (0, "")
    assert error == "Running timer as unit: rollback.timer\nWill run service as unit: rollback.service\n"
    again = run(host, "systemd-run --on-active=5 --unit=rollback true")
    assert (again[0], "was already loaded" in again[2]) == (1, True)
    assert "rollback.timer" in said(host, "systemctl list-timers")
    deadline = time.monotonic() + 20
    while run(host, "test -e /run/rolled")[0] and time.monotonic() < deadline:
        time.sleep(0.05)
    said(host, "test -e /run/rolled")
    said(host, "systemd-run -q --on-active=1s --unit=second touch /run/second && systemctl stop second.timer")
    assert run(host, "systemctl is-active second.timer")[1] == "inactive\n"
    time.sleep(1.2)
    assert run(host, "test -e /run/second")[0] == 1


# --- network managers ---


def test_netplan(host: Host) -> None:
    text = "network: {version: 2, ethernets: {ens2f0np0: {mtu: 9216}, mgmt0: {mtu: 9000}}}\n"
    run(host, "umask 077; cat > /etc/netplan/90-fabric.yaml", text)
    said(host, "netplan generate")
    assert "MTUBytes=9216\n" in said(host, "cat /run/systemd/network/10-netplan-ens2f0np0.network")
    assert said(host, "cat /sys/class/net/ens2f0np0/mtu") == "1500\n"
    said(host, "netplan apply")
    assert said(host, "cat /sys/class/net/ens2f0np0/mtu /sys/class/net/mgmt0/mtu") == "9216\n1500\n"
    run(host, "cat > /etc/netplan/90-fabric.yaml", text.replace("mtu: 9216", "mtuu: 9216"))
    code, _, error = run(host, "netplan apply")
    assert (code, "unknown key 'mtuu'" in error) == (1, True)
    run(host, "cat > /etc/netplan/90-fabric.yaml", text.replace("9216", "4200"))
    assert run(host, "netplan try --timeout 1")[0] == 1
    assert said(host, "cat /sys/class/net/ens2f0np0/mtu") == "9216\n"
    assert run(host, "netplan try --timeout 5", "\n")[0] == 0
    assert said(host, "cat /sys/class/net/ens2f0np0/mtu") == "4200\n"
    said(host, "rm /etc/netplan/90-fabric.yaml; ip link set ens2f0np0 mtu 1500")


def test_link_files_wait_for_udev(host: Host) -> None:
    run(host, "cat > /etc/systemd/network/10-x.link", "[Match]\nOriginalName=ens6\n[Link]\nMTUBytes=4200\n")
    said(host, "networkctl reload")
    assert said(host, "cat /sys/class/net/ens6/mtu") == "1500\n"
    said(host, "udevadm trigger --action=add && rm /etc/systemd/network/10-x.link")
    assert said(host, "cat /sys/class/net/ens6/mtu") == "4200\n"
    said(host, "ip link set ens6 mtu 1500")
