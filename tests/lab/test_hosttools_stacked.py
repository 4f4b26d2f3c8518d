"""Bonds, VLANs and virtual functions of lab hosts: the kernel's MTU rules, and what managers' files make."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.inventory.load import load
from rdma_fabric.inventory.types import Port
from rdma_fabric.lab.hosts import Host, HostFacts, HostPort
from rdma_fabric.lab.hosttools import store
from rdma_fabric.lab.planned import lab_nodes
from rdma_fabric.lab.site import MANAGERS, site_files
from tests.lab.hostlab import run, running, said

PORTS = (
    HostPort("ens1f0", stack="ofed", bdf="0000:1b:00.0"),
    HostPort("ens1f1", stack="ofed", bdf="0000:1b:00.1"),
    HostPort("ens2"),
    HostPort("ens3", nic="bnxt", stack="ofed"),
    HostPort("ens1f0v0", stack="ofed", parent="ens1f0"),
    HostPort("ens1f0v1", stack="ofed", parent="ens1f0"),
    HostPort("ens3v0", nic="bnxt", stack="ofed", parent="ens3"),
)
SITE = {
    port.name: port
    for port in (
        *(Port("ens1f0"), Port("ens1f1"), Port("ens2"), Port("ens1f0v0", "vf", parent="ens1f0")),
        Port("bond0", "bond", members=("ens1f0", "ens1f1")),
        Port("bond0.100", "vlan", parent="bond0", vlan=100),
        Port("storage7", "vlan", parent="ens2"),
        Port("nowhere", "vlan"),
    )
}
NAMES = {"networkmanager": "NetworkManager", "ifcfg": "NetworkManager"}


def facts(manager: str, *more: tuple[str, str], ports: tuple[HostPort, ...] = PORTS[:3]) -> HostFacts:
    seed = (*site_files(manager, SITE), *more)
    return HostFacts("gpu01", ports, manager=NAMES.get(manager, manager), seed=seed, stacked=True)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(facts("netplan", ports=PORTS), tmp_path_factory.mktemp("stacked")) as host:
        yield host


@pytest.fixture
def host(machine: Host) -> Host:
    """Everything up at 1500, as after the boot."""
    said(machine, "for i in ens1f0 ens1f1; do ip link set $i down; ip link set $i master bond0 up; done")
    said(
        machine, "for i in bond0 bond0.100 ens2 storage7; do ip link set $i up; ip link set $i mtu 1500; done"
    )
    return machine


def mtus(host: Host) -> dict[str, int]:
    return {one["ifname"]: one["mtu"] for one in json.loads(said(host, "ip -j link"))}


def shown(host: Host, words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said(host, f"ip -d -j link show {words}"))
    return found


def up(host: Host, netdev: str) -> bool:
    return "UP" in shown(host, f"dev {netdev}")[0]["flags"]


# --- what is shown ---


def test_ip_shows_bonds_and_vlans_as_such(host: Host) -> None:
    (bond,) = shown(host, "type bond")
    assert bond["ifname"] == "bond0" and "MASTER" in bond["flags"]
    assert (bond["linkinfo"]["info_kind"], bond["linkinfo"]["info_data"]["mode"]) == ("bond", "802.3ad")
    vlans = {one["ifname"]: one for one in shown(host, "type vlan")}
    assert {name: (v["link"], v["linkinfo"]["info_data"]["id"]) for name, v in vlans.items()} == {
        "bond0.100": ("bond0", 100),
        "storage7": ("ens2", 7),
    }
    (member,) = shown(host, "dev ens1f1")
    assert member["master"] == "bond0" and member["linkinfo"]["info_slave_kind"] == "bond"
    assert member["linkinfo"]["info_slave_data"]["perm_hwaddr"] != member["address"] == bond["address"]
    assert not shown(host, "type bridge") and not shown(host, "type macvlan")
    text = said(host, "ip -d link show bond0; ip -d link show bond0.100; ip -d link show ens1f0")
    assert ",MASTER,UP" in text and "\n    bond mode 802.3ad miimon 100 " in text and ",SLAVE,UP" in text
    assert (
        "\n    vlan protocol 802.1Q id 100 <REORDER_HDR> " in text and "\n    bond_slave state ACTIVE" in text
    )
    assert "bridge" not in text and "macvlan" not in text
    brief = said(host, "ip -br link show type vlan").splitlines()
    assert {line.split()[0] for line in brief} == {"storage7@ens2", "bond0.100@bond0"}


def test_sysfs_shows_who_is_on_top_of_whom(host: Host) -> None:
    net = "/sys/class/net"
    assert (
        said(host, f"cat {net}/bond0/bonding/mode {net}/bond0/bonding/slaves") == "802.3ad 4\nens1f0 ens1f1\n"
    )
    assert said(host, f"readlink {net}/ens1f0/master").strip().endswith("/bond0")
    assert said(host, f"ls -d {net}/bond0/lower_* {net}/ens2/upper_*").split() == [
        f"{net}/bond0/lower_ens1f0",
        f"{net}/bond0/lower_ens1f1",
        f"{net}/ens2/upper_storage7",
    ]
    assert said(host, f"cat {net}/ens1f0/master/mtu {net}/bond0.100/mtu") == "1500\n1500\n"
    said(host, "ip link set ens1f1 nomaster")
    assert said(host, f"cat {net}/bond0/bonding/slaves") == "ens1f0\n"
    assert run(host, f"ls {net}/ens1f1/master {net}/ens1f1/bonding_slave")[0] == 2


# --- MTU rules ---


def test_a_bond_hands_its_mtu_to_its_members_and_down_to_vlans(host: Host) -> None:
    said(host, "ip link set bond0 mtu 9000")
    sizes = mtus(host)
    assert [sizes[n] for n in ("bond0", "ens1f0", "ens1f1", "bond0.100")] == [9000, 9000, 9000, 1500]
    said(host, "ip link set bond0.100 mtu 9000; ip link set bond0 mtu 4200")
    sizes = mtus(host)
    assert [sizes[n] for n in ("bond0", "ens1f0", "ens1f1", "bond0.100")] == [4200] * 4
    # A member's own change is taken, and reaches nobody else.
    said(host, "ip link set ens1f1 mtu 9000")
    sizes = mtus(host)
    assert [sizes[n] for n in ("bond0", "ens1f0", "ens1f1")] == [4200, 4200, 9000]


def test_a_vlan_never_has_more_than_its_parent(host: Host) -> None:
    refused = (2, "", "RTNETLINK answers: Numerical result out of range\n")
    assert run(host, "ip link set dev bond0.100 mtu 1501") == refused
    assert run(host, "ip link set storage7 mtu 9000") == refused
    said(host, "ip link set ens2 mtu 9000; ip link set storage7 mtu 9000; ip link set ens2 mtu 2000")
    assert mtus(host)["storage7"] == 2000
    said(host, "ip link set ens2 mtu 9000")
    assert mtus(host)["storage7"] == 2000  # it does not come back by itself


def test_a_refused_mtu_of_a_bond_changes_nothing(host: Host) -> None:
    status, _, error = run(host, "ip link set bond0 mtu 70000")
    assert status == 2 and error
    assert {mtus(host)[n] for n in ("bond0", "ens1f0", "ens1f1")} == {1500}


def test_members_join_while_down_and_leave_as_they_came(host: Host) -> None:
    said(host, "ip link set bond0 mtu 9000; ip link set ens1f1 nomaster")
    assert mtus(host)["ens1f1"] == 1500 and not up(host, "ens1f1")
    (free,) = shown(host, "dev ens1f1")
    assert "master" not in free and "SLAVE" not in free["flags"]
    said(host, "ip link set ens1f1 up")
    refused = (2, "", "Error: Device can not be enslaved while up.\n")
    assert run(host, "ip link set ens1f1 master bond0") == refused
    said(host, "ip link set ens1f1 down; ip link set ens1f1 master bond0")
    assert mtus(host)["ens1f1"] == 9000 and up(host, "ens1f1")


def test_vlans_follow_their_parent_up_and_down(host: Host) -> None:
    said(host, "ip link set bond0 down")
    assert not up(host, "bond0.100") and up(host, "ens1f0")
    assert run(host, "ip link set bond0.100 up") == (2, "", "RTNETLINK answers: Network is down\n")
    said(host, "ip link set bond0 up")
    assert up(host, "bond0.100")


def test_links_are_made_and_deleted_by_hand(host: Host) -> None:
    said(host, "ip link set ens3 mtu 4000; ip link add link ens3 name ens3.9 type vlan id 9")
    assert mtus(host)["ens3.9"] == 4000  # born with the parent's
    assert run(host, "ip link add link ens3 name other type vlan id 9")[0] == 2
    assert run(host, "ip link add link ens3 name other type vlan id 9999")[0] == 255
    assert said(host, "ls -d /sys/class/net/ens3.9").strip()
    said(host, "ip link del ens3.9; ip link set ens3 mtu 1600 down")
    said(host, "ip link add bond7 mtu 3000 type bond mode 1; ip link set ens3 master bond7")
    assert mtus(host)["ens3"] == 3000
    assert said(host, "cat /sys/class/net/bond7/bonding/mode") == "active-backup 1\n"
    said(host, "ip link del bond7")
    assert mtus(host)["ens3"] == 1600 and not {"bond7", "ens3.9"} & set(mtus(host))
    assert run(host, "ls -d /sys/class/net/bond7 /sys/class/net/ens3.9")[0] == 2
    assert run(host, "ip link add x type bond mode 99")[0] == 255


# --- RDMA ---


def test_the_bond_counts_for_both_ports_of_an_adapter(host: Host) -> None:
    said(host, "ip link set bond0 mtu 4200; ip link set ens1f0 mtu 9000; ip link set ens1f1 mtu 2000")
    for ibdev in ("mlx5_0", "mlx5_1"):
        assert "active_mtu:\t\t4096 (5)" in said(host, f"ibv_devinfo -d {ibdev}")
    said(host, "ip link set ens1f1 nomaster")  # one port alone is no LAG
    assert "active_mtu:\t\t4096 (5)" in said(host, "ibv_devinfo -d mlx5_0")
    assert "active_mtu:\t\t1024 (3)" in said(host, "ibv_devinfo -d mlx5_1")


def test_somebody_sets_the_mtu_of_a_bond_or_a_vlan(host: Host) -> None:
    launch = f"{store.HOME}/tools/launch fabric-break mtu"
    said(host, "ip link set bond0 mtu 9000")
    assert said(host, f"{launch} bond0") == "MTU of bond0 is 4096, was 9000\n"
    assert said(host, f"{launch} bond0.100 1400") == "MTU of bond0.100 is 1400, was 1500\n"
    assert run(host, f"{launch} bond0.100 9000")[:2] == (
        1,
        "the host refuses: RTNETLINK answers: Numerical result out of range\n",
    )
    assert run(host, f"{launch} mgmt0")[0] == 1


def test_a_driver_that_is_loaded_anew_joins_again(host: Host) -> None:
    said(host, "ip link set bond0 mtu 4200; devlink dev reload pci/0000:1b:00.1")
    assert said(host, "cat /sys/class/net/bond0/bonding/slaves") == "ens1f0 ens1f1\n"
    assert mtus(host)["ens1f1"] == 4200
    bdf = said(host, "basename $(readlink /sys/class/net/ens2/device)").strip()
    said(host, f"ip link set storage7 mtu 1400; devlink dev reload pci/{bdf}")
    assert mtus(host)["storage7"] == 1500  # a new one


def test_virtual_functions_have_no_dcb(host: Host) -> None:
    assert said(host, "basename $(readlink /sys/class/net/ens1f0v1/device)") == "0000:1b:00.3\n"
    pci = "/sys/class/net/ens1f0/device"
    assert said(host, f"cat {pci}/sriov_numvfs; readlink {pci}/virtfn1").split() == [
        "2",
        "/sys/bus/pci/devices/0000:1b:00.3",
    ]
    assert said(host, "readlink /sys/class/net/ens1f0v0/device/physfn").strip().endswith("0000:1b:00.0")
    assert run(host, "dcb pfc set dev ens1f0v0 prio-pfc 3:on")[1:] == (
        "",
        "Attribute read: Operation not supported\n",
    )
    assert run(host, "dcb pfc set dev ens3v0 prio-pfc 3:on")[2] == "Attribute write: Invalid argument\n"
    assert run(host, "ls /sys/class/net/ens1f0v0/qos")[0] == 2
    assert run(host, "ethtool -A ens1f0v0 rx off")[0] == 76
    said(host, "echo 106 > /sys/class/infiniband/mlx5_3/tc/1/traffic_class")
    assert run(host, "mlxconfig -d 0000:1b:00.2 q")[0] == 3
    said(host, "ip link set ens1f0v0 mtu 9000")  # its own affair
    assert mtus(host)["ens1f0"] == 1500
    assert "active_mtu:\t\t4096 (5)" in said(host, "ibv_devinfo -d mlx5_3")


# --- what managers make ---


NETPLAN = (
    "/etc/netplan/90-mtu.yaml",
    "network:\n  version: 2\n  ethernets: {ens1f0: {mtu: 2000}}\n  bonds: {bond0: {mtu: 9000}}\n"
    "  vlans: {bond0.100: {mtu: 4200}, storage7: {mtu: 4200}}\n",
)
NETWORKD = tuple(
    (f"/etc/systemd/network/20-{name}.d/mtu.conf", f"[{section}]\nMTUBytes={size}\n")
    for name, section, size in (
        ("bond0.network", "Link", 9000),
        ("bond0.100.network", "Link", 4200),
        ("storage7.netdev", "NetDev", 4200),
    )
)
IFCFG = (
    ("/etc/sysconfig/network-scripts/ifcfg-bond0", "DEVICE=bond0\nTYPE=Bond\nMTU=9000\n"),
    (
        "/etc/sysconfig/network-scripts/ifcfg-bond0.100",
        'DEVICE="bond0.100"\nVLAN=yes\nPHYSDEV=bond0\nMTU="4200"\n',
    ),
)
IFUPDOWN = (
    (
        "/etc/network/interfaces.d/bond0",
        "auto bond0\niface bond0 inet manual\n bond-slaves ens1f0 ens1f1\n mtu 9000\n",
    ),
    ("/etc/network/interfaces.d/bond0.100", "auto bond0.100\niface bond0.100 inet manual\n mtu 4200\n"),
)
PROFILES = "/etc/NetworkManager/system-connections"
NM = tuple(
    (f"{PROFILES}/{name}.nmconnection", f"[connection]\nid={name}\n{text}")
    for name, text in {
        "bond0": "type=bond\ninterface-name=bond0\n[bond]\nmode=802.3ad\n[ethernet]\nmtu=9000\n",
        "bond0.100": "type=vlan\ninterface-name=bond0.100\n[vlan]\nid=100\nparent=bond0\n[ethernet]\n"
        "mtu=4200\n",
        "ens2": "type=ethernet\ninterface-name=ens2\n[ethernet]\nmtu=4200\n",
    }.items()
)


@pytest.mark.parametrize(
    ("manager", "files", "storage"),
    [
        ("netplan", (NETPLAN,), 4200),  # networkd raises a parent without an MTU of its own
        ("networkd", NETWORKD, 4200),
        ("networkmanager", NM, 4200),  # a VLAN without an MTU of its own follows its parent
        ("ifcfg", IFCFG, 1500),
        ("ifupdown", IFUPDOWN, 1500),
    ],
)
def test_every_manager_makes_them_and_their_mtus_at_boot(
    manager: str, files: tuple[tuple[str, str], ...], storage: int, tmp_path: Path
) -> None:
    with running(facts(manager), tmp_path) as host:
        assert said(host, "cat /sys/class/net/bond0/bonding/mode") == "802.3ad 4\n"
        assert said(host, "cat /sys/class/net/bond0/bonding/slaves") == "ens1f0 ens1f1\n"
        vlans = {one["ifname"]: one["link"] for one in shown(host, "type vlan")}
        assert vlans == {"bond0.100": "bond0", "storage7": "ens2"}
        assert all(up(host, name) for name in ("bond0", "bond0.100", "ens1f1", "storage7"))
        assert set(mtus(host).values()) == {1500, 65536}
        for path, text in files:
            assert run(host, f"umask 077; mkdir -p $(dirname {path}); cat > {path}", text)[0] == 0
        host.reboot()
        sizes = mtus(host)
        assert [sizes[n] for n in ("ens1f0", "ens1f1", "bond0", "bond0.100")] == [9000, 9000, 9000, 4200]
        assert (sizes["ens2"], sizes["storage7"]) == (storage, storage)


def test_every_manager_has_a_case() -> None:
    assert set(MANAGERS) == {"netplan", "networkd", "networkmanager", "ifcfg", "ifupdown"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bonds: {bond9: {interfaces: [eth9]}}", "bond9: interface 'eth9' is not defined"),
        ("vlans: {v9: {id: 9}}", "v9: missing 'link' property"),
        ("vlans: {v9: {link: ens2}}", "v9: missing 'id' property"),
        ("bonds: {bond9: {parameters: {mode: odd}}}", "unknown bond mode 'odd'"),
        ("ethernets: {ens2: {interfaces: [a]}}", "unknown key 'interfaces'"),
    ],
)
def test_netplan_refuses(machine: Host, text: str, says: str) -> None:
    path = "/etc/netplan/99-odd.yaml"
    said(machine, f"umask 077; printf 'network:\\n  version: 2\\n  {text}\\n' > {path}")
    status, _, error = run(machine, f"netplan generate; s=$?; rm {path}; exit $s")
    assert status == 1 and says in error


# --- from the inventory ---

INVENTORY = """gpu01:
  platform: linux
  hostname: 192.0.2.1
  data:
    role: host
    mtu_manager: ifcfg
    stack: ofed
    options: {lab_traits: firmware=28.40.1000, lab_mft: 4.30.0-139}
    ports:
      "ens1f[0-1]": {network: compute, speed: 200G, nic: mlx5, rdma: "mlx5_[0-1]"}
      ens1f0v0: {kind: vf, parent: ens1f0, rdma: mlx5_2}
      bond0: {kind: bond, network: compute, members: ["ens1f[0-1]"]}
      bond0.100: {kind: vlan, parent: bond0, vlan: 100}
"""


def planned(folder: Path, text: str) -> HostFacts:
    (folder / "hosts.yaml").write_text(text)
    (folder / "cables.csv").write_text("a_node,a_port,b_node,b_port\n")
    (node,) = lab_nodes(load(folder, ["linux"]))
    return HostFacts.of(node.facts, node.host)


def test_the_inventory_reaches_the_host(tmp_path: Path) -> None:
    made = planned(tmp_path, INVENTORY)
    assert (made.manager, made.stacked, made.mft) == ("NetworkManager", True, "4.30.0-139")
    assert [(port.netdev, port.nic, port.ibdev, port.parent) for port in made.ports] == [
        ("ens1f0", "mlx5", "mlx5_0", ""),
        ("ens1f1", "mlx5", "mlx5_1", ""),
        ("ens1f0v0", "mlx5", "mlx5_2", "ens1f0"),
    ]
    assert made.ports[0].traits == ("firmware=28.40.1000",)
    scripts = {path.rpartition("/")[2]: text for path, text in made.seed}
    assert "MASTER=bond0" in scripts["ifcfg-ens1f1"] and "VLAN_ID=100" in scripts["ifcfg-bond0.100"]
    assert "BONDING_MASTER=yes" in scripts["ifcfg-bond0"] and not any(
        "MTU" in text for text in scripts.values()
    )


def test_a_host_without_a_manager_gets_its_bonds_from_netplan(tmp_path: Path) -> None:
    made = planned(tmp_path, INVENTORY.replace("    mtu_manager: ifcfg\n", ""))
    assert made.manager == "netplan" and "/etc/netplan/60-bond0.yaml" in dict(made.seed)
