"""Worked examples and transcripts of the mlx5 and common host pages, typed as they stand there."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rdma_fabric.lab.hosts import Host, HostFacts, HostPort
from tests.lab.hostlab import power_on, run, running, said

HOST = HostFacts(
    "gpu01",
    (
        HostPort("ens1f0np0", stack="ofed"),
        HostPort("ens2f0np0"),
        HostPort("ens3", nic="generic"),
    ),
)
VENDOR, INBOX = "ens1f0np0", "ens2f0np0"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(HOST, tmp_path_factory.mktemp("pages")) as host:
        yield host


@pytest.fixture
def host(machine: Host) -> Host:
    power_on(machine)
    said(machine, f"ip link set {VENDOR} mtu 1500; ip link set {INBOX} mtu 1500; modprobe rdma_ucm")
    return machine


EXAMPLE = r"""
ip link set dev $i mtu 9216
ethtool -A $i rx off tx off
mlnx_qos -i $i -d os
mlnx_qos -i $i --trust dscp
mlnx_qos -i $i $(for k in $(seq 0 63); do case $k in 26) p=3;; 48) p=6;; *) p=0;; esac; printf -- '--dscp2prio set,%d,%d ' $k $p; done)
mlnx_qos -i $i --prio_tc 0,1,2,3,4,5,6,7 --tsa ets,ets,ets,ets,ets,ets,strict,ets --tcbw 50,0,0,50,0,0,0,0
mlnx_qos -i $i --pfc 0,0,0,1,0,0,0,0
mlnx_qos -i $i --cable_len=20
ethtool --set-tunable $i pfc-prevention-tout 200
cma_roce_mode -d $d -p 1 -m 2
cma_roce_tos  -d $d -p 1 -t 106
"""  # noqa: E501 - as on the page
VENDOR_ONLY = r"""
echo 1  > /sys/class/net/$i/ecn/roce_np/enable/3
echo 1  > /sys/class/net/$i/ecn/roce_rp/enable/3
echo 48 > /sys/class/net/$i/ecn/roce_np/cnp_dscp
echo 106 > /sys/class/infiniband/$d/tc/1/traffic_class
"""
TABLE = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
{map}Receive buffer size (bytes): 262016,0,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 20
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0   
\tbuffer      0   0   0   0   0   0   0   0   
tc: 0 ratelimit: unlimited, tsa: ets, bw: 50%
\t priority:  0
tc: 1 ratelimit: unlimited, tsa: ets, bw: 0%
\t priority:  1
tc: 2 ratelimit: unlimited, tsa: ets, bw: 0%
\t priority:  2
tc: 3 ratelimit: unlimited, tsa: ets, bw: 50%
\t priority:  3
tc: 4 ratelimit: unlimited, tsa: ets, bw: 0%
\t priority:  4
tc: 5 ratelimit: unlimited, tsa: ets, bw: 0%
\t priority:  5
tc: 6 ratelimit: unlimited, tsa: strict
\t priority:  6
tc: 7 ratelimit: unlimited, tsa: ets, bw: 0%
\t priority:  7
"""  # noqa: W291 - trailing blanks are the program's


def table() -> str:
    """The map of the example: eight code points a line, a trailing comma."""
    rest = [point for point in range(64) if point not in {26, 48}]
    lines = [
        f"\tprio:0 dscp:{''.join(f'{point:02d},' for point in rest[at : at + 8])}\n"
        for at in range(0, len(rest), 8)
    ]
    return TABLE.replace("{map}", "".join([*lines, "\tprio:3 dscp:26,\n", "\tprio:6 dscp:48,\n"]))


def typed(host: Host, netdev: str, ibdev: str, text: str) -> None:
    for line in text.strip().splitlines():
        said(host, f"i={netdev} d={ibdev}; {line}")


def test_the_worked_example_with_the_vendors_stack(host: Host) -> None:
    typed(host, VENDOR, "mlx5_0", EXAMPLE + VENDOR_ONLY)
    assert said(host, f"mlnx_qos -i {VENDOR}") == table()
    assert said(host, "cat /sys/class/infiniband/mlx5_0/tc/1/traffic_class") == "Global tclass=106\n"
    assert said(host, "cma_roce_tos -d mlx5_0; cma_roce_mode -d mlx5_0") == "106\nRoCE v2\n"
    assert "active_mtu:\t\t4096 (5)" in said(host, "ibv_devinfo -d mlx5_0")
    assert "RX:\t\toff\nTX:\t\toff\n" in said(host, f"ethtool -a {VENDOR}")


def test_the_worked_example_with_the_kernels_driver(host: Host) -> None:
    typed(host, INBOX, "mlx5_1", EXAMPLE)
    assert sorted(said(host, f"mlnx_qos -i {INBOX}").splitlines()) == sorted(table().splitlines())
    pfc = json.loads(said(host, f"dcb -j pfc show dev {INBOX}"))
    assert pfc == {
        "pfc_cap": 8,
        "macsec_bypass": False,
        "delay": 20,
        "prio_pfc": [False, False, False, True, False, False, False, False],
    }
    ets = json.loads(said(host, f"dcb -j ets show dev {INBOX}"))
    assert ets["tc_tsa"] == ["ets"] * 6 + ["strict", "ets"] and ets["prio_tc"] == list(range(8))
    assert ets["tc_bw"] == [50, 0, 0, 50, 0, 0, 100, 0]  # 100 is what mlx5 reports of a strict class
    assert list(ets)[:3] == ["willing", "ets_cap", "cbs"]
    app = json.loads(said(host, f"dcb -j app show dev {INBOX}"))["dscp_prio"]
    assert [entry for entry in app if entry[1]] == [[26, 3], [48, 6]] and len(app) == 64
    # Stack B's files are missing.
    assert run(host, f"ls /sys/class/net/{INBOX}/ecn /sys/class/infiniband/mlx5_1/tc")[0] == 2


def test_pause_with_autoneg_in_the_list_fails(host: Host) -> None:
    assert run(host, f"ethtool -A {VENDOR} autoneg on rx off tx off")[0] == 76


def test_cma_roce_wants_root_and_its_module(host: Host) -> None:
    code, out, error = run(host, "setpriv --reuid 65534 cma_roce_tos -d mlx5_0")
    if "setresuid failed" in error:
        pytest.skip("this sandbox has one user id only")
    assert (code, out) == (1, "You must be root to run this\n")


# --- order of mistakes ---


def test_the_last_wrong_item_of_a_list_is_named(host: Host) -> None:
    code, out, _ = run(host, f"mlnx_qos -i {VENDOR} -F x,a,x,x,b,x,x,x")
    assert code == 1 and "Bad value for 'PFC': b" in out


def test_buffer_sizes_and_their_priorities_are_two_calls_through_sysfs(host: Host) -> None:
    sizes = "131072,130944,0,0,0,0,0,0"
    said(host, f"mlnx_qos -i {VENDOR} --buffer_size {sizes} --prio2buffer 0,0,0,1,0,0,0,0")
    assert f"(bytes): {sizes},max" in said(host, f"mlnx_qos -i {VENDOR}")
    assert host.nic(VENDOR)["prio2buffer"] == [0] * 8
    said(host, f"mlnx_qos -i {VENDOR} --prio2buffer 0,0,0,1,0,0,0,0")
    assert host.nic(VENDOR)["prio2buffer"] == [0, 0, 0, 1, 0, 0, 0, 0]


# --- what every host does ---


def test_texts_of_the_common_page(host: Host) -> None:
    missing = "sysctl: cannot stat /proc/sys/net/core/nope: No such file or directory\n"
    code, _, error = run(host, "sysctl -n net.core.nope")
    assert code != 0 and error == missing
    code, _, error = run(host, "ip link set dev ens3 mtu 70000")
    assert (code, error) == (2, "Error: mtu greater than device maximum.\n")
    (link,) = json.loads(said(host, "ip -d -j link show dev ens3"))
    assert (link["min_mtu"], link["max_mtu"], link["linkinfo"]["info_kind"]) == (68, 65535, "veth")
    for flags, status in (("-a ens3", 1), ("-g ens3", 1), ("-A ens3 rx off", 76)):
        assert run(host, f"ethtool {flags}") == (status, "", "netlink error: Operation not supported\n")
    (rdma,) = (one for one in json.loads(said(host, "rdma -j link")) if one["ifname"] == "mlx5_0")
    assert (rdma["state"], rdma["physical_state"], rdma["netdev"]) == ("ACTIVE", "LINK_UP", VENDOR)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("dcb pfc show dev nope", "Attribute read: No such device\n"),
        ("dcb pfc show dev ens3", "Attribute read: Operation not supported\n"),
        ("dcb pfc set dev ens3 prio-pfc 3:on", "Attribute read: Operation not supported\n"),
        ("dcb app add dev ens3 dscp-prio 26:3", "Attribute write: Operation not supported\n"),
        ("dcb dcbx set dev ens3 host ieee", "Attribute write: Operation not supported\n"),
    ],
)
def test_dcb_of_a_netdev_without_dcb(host: Host, command: str, text: str) -> None:
    assert run(host, command) == (1, "", text)
