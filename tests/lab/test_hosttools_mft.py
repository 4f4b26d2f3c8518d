"""NVIDIA's firmware tools in a lab host: NV settings, versions, BlueField (host_linux_mlx5, mstflint)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from rdma_fabric.lab.hosts import Host, HostFacts, HostPort
from tests.lab.hostlab import power_on, run, running, said

HOST = HostFacts(
    "gpu01",
    (
        HostPort("ens1f0np0", bdf="0000:1b:00.0", stack="ofed"),
        HostPort("ens1f1np1", bdf="0000:1b:00.1", stack="ofed"),
        HostPort("ens2np0", bdf="0000:2b:00.0", traits=("fixed-link-type", "firmware=28.38.1002")),
        HostPort("ens3f0np0", bdf="0000:3b:00.0", traits=("bluefield",)),
        HostPort("ens4f0np0", bdf="0000:4b:00.0", traits=("bluefield", "restricted")),
        HostPort("ens5f0", bdf="0000:5b:00.0", nic="irdma"),
    ),
)
SET = "mlxconfig -d 0000:1b:00.0 -y set"


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running(HOST, tmp_path_factory.mktemp("mft")) as host:
        yield host


@pytest.fixture
def host(booted: Host) -> Host:
    power_on(booted)
    return booted


def row(host: Host, name: str, device: str = "0000:1b:00.0") -> list[str]:
    """Mark if any, default, current and next value of a parameter."""
    shown = said(host, f"mlxconfig -d {device} -e query {name}")
    line = next(line for line in shown.splitlines() if f" {name} " in line)
    words = line.replace("*", "* ").split()
    return [word for word in words if word != name]


# --- query ---


def test_the_table_of_the_page(host: Host) -> None:
    said(host, f"{SET} ROCE_CC_PRIO_MASK_P1=8")
    shown = said(
        host,
        "mlxconfig -d 0000:1b:00.0 -e query ROCE_CC_PRIO_MASK_P1 CNP_DSCP_P1 LLDP_NB_DCBX_P1",
    )
    assert shown.endswith(
        "Configurations:                              Default         Current         Next Boot\n"
        "*        ROCE_CC_PRIO_MASK_P1                255             255             8\n"
        "         CNP_DSCP_P1                         48              48              48\n"
        "         LLDP_NB_DCBX_P1                     False(0)        False(0)        False(0)\n"
        "The '*' shows parameters with next value different from default/current value.\n"
    )
    assert shown.startswith("\nDevice #1:\n----------\n\nDevice type:        ConnectX7")
    plain = said(host, "mlxconfig -d 0000:1b:00.0 query CNP_DSCP_P1")
    assert plain.endswith(
        "Configurations:                              Next Boot\n"
        "         CNP_DSCP_P1                         48\n"
    )


def test_later_releases_print_a_wider_table(host: Host) -> None:
    facts = "/var/lib/fabric-lab/facts.json"
    said(host, f"cp {facts} /root/facts; sed -i 's/4.17.0-106/4.26.1-6/' {facts}")
    shown = said(host, "mlxconfig -d 0000:1b:00.0 -e query CNP_DSCP_P1")
    said(host, f"cat /root/facts > {facts}")
    assert "\n        CNP_DSCP_P1                                 48                   48  " in shown
    assert "\nDescription:        N/A" in shown


def test_factory_values_of_public_dumps(host: Host) -> None:
    text = (
        "ROCE_CC_PRIO_MASK 255 CNP_DSCP 48 CNP_802P_PRIO 6 RPG_TIME_RESET 300 RPG_BYTE_RESET 32767 "
        "RPG_THRESHOLD 1 RPG_AI_RATE 5 RPG_HAI_RATE 50 RPG_GD 11 RPG_MIN_DEC_FAC 50 RPG_MIN_RATE 1 "
        "DCE_TCP_G 1019 DCE_TCP_RTT 1 RATE_REDUCE_MONITOR_PERIOD 4 INITIAL_ALPHA_VALUE 1023 "
        "MIN_TIME_BETWEEN_CNPS 4 LINK_TYPE ETH(2) LLDP_NB_DCBX False(0) LLDP_NB_RX_MODE OFF(0) "
        "LLDP_NB_TX_MODE OFF(0) DCBX_WILLING True(1)"
    )
    values = dict(zip(text.split()[::2], text.split()[1::2], strict=True))
    shown = said(host, "mlxconfig -d 1b:00.0 q")
    for name, value in values.items():
        for port in ("P1", "P2"):  # two functions of one adapter
            assert re.search(rf"^ +{name}_{port} +{re.escape(value)}$", shown, re.MULTILINE), name
    other = said(host, "mlxconfig -d 0000:2b:00.0 query")
    assert "LINK_TYPE_P1" not in other and "CNP_DSCP_P2" not in other
    assert "MAX_ACC_OUT_READ" not in other


def test_json(host: Host) -> None:
    out = said(host, "mlxconfig -d mlx5_0 -e -j /root/nv.json query LINK_TYPE_P1 CNP_DSCP_P1")
    assert out == "Query output saved to /root/nv.json successfully\n"
    table = json.loads(said(host, "cat /root/nv.json"))["Device #1"]["tlv_configuration"]
    assert table["CNP_DSCP_P1"] == {
        "current_value": 48,
        "default_value": 48,
        "modified": False,
        "next_value": 48,
        "read_only": False,
    }
    assert table["LINK_TYPE_P1"]["next_value"] == "ETH(2)"


# --- set ---


def test_values_wait_for_a_reset(host: Host) -> None:
    out = said(host, f"{SET} ROCE_CC_PRIO_MASK_P1=8 CNP_DSCP_P1=40 LLDP_NB_DCBX_P1=1")
    assert out.endswith(
        "Configurations:                              Next Boot       New\n"
        "         ROCE_CC_PRIO_MASK_P1                255             8\n"
        "         CNP_DSCP_P1                         48              40\n"
        "         LLDP_NB_DCBX_P1                     False(0)        True(1)\n"
        "\n Apply new Configuration? (y/n) [n] : y\n"
        "Applying... Done!\n-I- Please reboot machine to load new configurations.\n"
    )
    assert row(host, "CNP_DSCP_P1") == ["*", "48", "48", "40"]
    assert host.nic("ens1f0np0")["np"] == [True] * 8
    assert host.nic("ens1f0np0")["dcbx"] & 1
    said(host, "mlxfwreset --device 0000:1b:00.0 reset --yes")
    assert row(host, "CNP_DSCP_P1") == ["*", "48", "40", "40"]  # still marked: it differs from the default
    assert row(host, "CNP_DSCP_P2") == ["48", "48", "48"]
    assert host.nic("ens1f0np0")["np"] == [priority == 3 for priority in range(8)]
    assert host.nic("ens1f1np1")["np"] == [True] * 8
    ecn = "/sys/class/net/ens1f0np0/ecn"
    assert said(host, f"cat {ecn}/roce_np/cnp_dscp {ecn}/roce_np/enable/0") == "40\n0\n"
    assert "DCBX mode: Firmware controlled" in said(host, "mlnx_qos -i ens1f0np0")
    out = said(host, "mlxconfig -d 0000:1b:00.0 -y reset")
    assert out == (
        "\n Reset configuration for device 0000:1b:00.0? (y/n) [n] : y\n"
        "Applying... Done!\n-I- Please reboot machine to load new configurations.\n"
    )
    assert row(host, "CNP_DSCP_P1") == ["*", "48", "40", "48"]


def test_the_prompt(host: Host) -> None:
    line = "mlxconfig -d 0000:1b:00.0 set CNP_DSCP_P1=40"
    code, out, _ = run(host, line, "n\n")
    assert (code, out.endswith(" Apply new Configuration? (y/n) [n] : -E- Aborted by user.\n")) == (2, True)
    assert run(host, line, "")[0] == 2
    assert row(host, "CNP_DSCP_P1") == ["48", "48", "48"]
    assert run(host, line, "yes\n")[0] == 0
    assert row(host, "CNP_DSCP_P1") == ["*", "48", "48", "40"]
    assert run(host, "mlxconfig -d 0000:1b:00.0 reset", "\n")[0] == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("-d 0000:1b:00.0 -y set NO_SUCH=1", "-E- Unknown Parameter: NO_SUCH"),
        ("-d 0000:1b:00.0 query NO_SUCH", "-E- Unknown Parameter: NO_SUCH"),
        ("-d 0000:1b:00.0 query -e", "-E- Unknown Parameter: -e"),  # options come first
        ("-d 0000:2b:00.0 query LINK_TYPE_P1", "-E- Unknown Parameter: LINK_TYPE_P1"),
        ("-d 0000:1b:00.0 -y set MAX_ACC_OUT_READ=44", "The Device doesn't support MAX_ACC_OUT_READ"),
        (
            "-d 0000:1b:00.0 -y set CNP_DSCP_P1=64",
            "The value 64 is not valid,  as its size is 6 bits",
        ),
        ("-d 0000:1b:00.0 -y set CNP_DSCP_P1=many", "-E- Cannot parse the value"),
        ("-d 0000:1b:00.0 -y set LINK_TYPE_P1=VPI", "-E- Unknown value VPI"),
        ("-d 0000:1b:00.0 -y set RPG_MIN_DEC_FAC_P1=101", "Applying... Failed!\n-E- Parameter RPG_MIN_DEC"),
        ("-d 0000:1b:00.0 -y set DCE_TCP_G_P1=0", "value is smaller than minimum allowed 1"),
        ("-d 0000:1b:00.0 -y set CNP_DSCP_P1", "-E- Invalid Configuration argument CNP_DSCP_P1"),
        ("-d 0000:1b:00.0 -y set CNP_DSCP_P1=1 CNP_DSCP_P1=2", "-E- Duplicate parameter, CNP_DSCP_P1."),
        ("-d 0000:1b:00.0 -y set", "-E- missing configuration arguments."),
        ("-y set CNP_DSCP_P1=1", "-E- set command expects device to be specified."),
        ("-d 0000:1b:00.0", "-E- No command found."),
        ("-d 0000:1b:00.0 --quiet query", "-E- invalid argument: --quiet"),
        ("-d 0000:ff:00.0 query", "-E- Failed to open device: 0000:ff:00.0"),
        ("-d 0000:5b:00.0 query", "-E- Failed to open device: 0000:5b:00.0"),
    ],
)
def test_refusals(host: Host, words: str, text: str) -> None:
    code, out, error = run(host, f"mlxconfig {words}")
    assert (code, text in out, error) == (3, True, ""), out
    assert row(host, "CNP_DSCP_P1") == ["48", "48", "48"]


def test_words_numbers_and_hidden_parameters(host: Host) -> None:
    said(host, f"{SET} LINK_TYPE_P1=ib ROCE_CC_PRIO_MASK_P1=0x08 ADVANCED_PCI_SETTINGS=true")
    assert row(host, "LINK_TYPE_P1") == ["*", "ETH(2)", "ETH(2)", "IB(1)"]
    assert row(host, "ROCE_CC_PRIO_MASK_P1") == ["*", "255", "255", "8"]
    said(host, f"{SET} MAX_ACC_OUT_READ=44")
    assert row(host, "MAX_ACC_OUT_READ") == ["*", "0", "0", "44"]


# --- resets, versions ---


def test_a_firmware_reset_is_a_new_netdev(host: Host) -> None:
    said(host, "ip link set ens1f1np1 mtu 9216; mlnx_qos -i ens1f1np1 --pfc 0,0,0,1,0,0,0,0")
    said(host, "cma_roce_tos -d mlx5_1 -t 104" if run(host, "modprobe rdma_ucm")[0] == 0 else "false")
    before = said(host, "cat /sys/class/net/ens1f1np1/ifindex")
    code, out, _ = run(host, "mlxfwreset -d 0000:1b:00.0 reset", "n\n")
    assert (code, "Continue with reset?[y/N] " in out) == (1, True)
    assert said(host, "cat /sys/class/net/ens1f1np1/ifindex") == before
    out = said(host, "mlxfwreset -d 0000:1b:00.0 -y -l 3 reset")
    assert out.endswith("-I- FW was loaded successfully.\n")
    assert said(host, "cat /sys/class/net/ens1f1np1/ifindex") != before
    assert said(host, "cat /sys/class/net/ens1f1np1/mtu") == "1500\n"
    assert host.nic("ens1f1np1")["pfc"] == [False] * 8
    assert said(host, "cma_roce_tos -d mlx5_1") == "0\n"
    assert "mlx5_1" in said(host, "rdma link")
    assert "3: Driver restart" in said(host, "mlxfwreset -d 1b:00.0 query")
    assert run(host, "mlxfwreset -d 0000:3b:00.0 -y reset")[0] == 1


def test_versions(host: Host) -> None:
    shown = said(host, "ethtool -i ens1f0np0")
    assert "driver: mlx5_core\nversion: 24.10-0.7.0\nfirmware-version: 28.39.1002 (MT_0000000838)\n" in shown
    inbox = said(host, "ethtool -i ens2np0")
    kernel = said(host, "uname -r").strip()
    assert f"version: {kernel}\nfirmware-version: 28.38.1002 (MT_0000000838)\n" in inbox
    assert said(host, "cat /sys/class/infiniband/mlx5_2/fw_ver") == "28.38.1002\n"
    flint = said(host, "flint -d 0000:2b:00.0 q")
    assert "FW Version:            28.38.1002\n" in flint and "PSID:                  MT_0000000838" in flint
    assert "Running" not in flint
    assert "     FW             28.38.1002     N/A" in said(host, "mlxfwmanager --query -d 0000:2b:00.0")
    assert run(host, "flint -d 0000:2b:00.0 burn")[0] == 1
    info = json.loads(said(host, "devlink -j dev info pci/0000:2b:00.0"))["info"]["pci/0000:2b:00.0"]
    assert info["driver"] == "mlx5_core"
    assert info["versions"] == {
        "fixed": {"fw.psid": "MT_0000000838"},
        "running": {"fw.version": "28.38.1002", "fw": "28.38.1002"},
        "stored": {"fw.version": "28.38.1002", "fw": "28.38.1002"},
    }
    assert "      running:\n        fw.version 28.38.1002\n        fw 28.38.1002\n" in said(
        host, "devlink dev info pci/0000:2b:00.0"
    )
    assert run(host, "devlink dev info pci/0000:ff:00.0")[0] == 1


def test_mst(host: Host) -> None:
    assert "No MST devices were found" in said(host, "mst status")
    said(host, "mst start")
    shown = said(host, "mst status")
    assert "/dev/mst/mt4129_pciconf0         - PCI configuration cycles access." in shown
    assert "domain:bus:dev.fn=0000:1b:00.1 " in shown
    line = next(line for line in said(host, "mst status -v").splitlines() if "1b:00.1" in line)
    assert line.split() == [
        *("ConnectX7(rev:0)", "/dev/mst/mt4129_pciconf0.1", "1b:00.1", "mlx5_1", "net-ens1f1np1", "0")
    ]
    assert "CNP_DSCP_P1" in said(host, "mlxconfig -d /dev/mst/mt4129_pciconf0 q CNP_DSCP_P1")
    said(host, "mst stop")


# --- BlueField ---


def test_a_bluefield_belongs_to_its_own_processor(host: Host) -> None:
    bdf = "0000:3b:00.0"
    assert row(host, "INTERNAL_CPU_MODEL", bdf) == ["EMBEDDED_CPU(1)"] * 3
    assert row(host, "INTERNAL_CPU_OFFLOAD_ENGINE", bdf) == ["ENABLED(0)"] * 3
    assert run(host, "mlxconfig -d 0000:1b:00.0 q INTERNAL_CPU_MODEL")[0] == 3
    assert run(host, "dcb pfc show dev ens3f0np0")[2] == "Attribute read: Operation not supported\n"
    assert "Priority trust state is not supported" in run(host, "mlnx_qos -i ens3f0np0 --trust dscp")[1]
    said(host, f"mlxconfig -d {bdf} -y set INTERNAL_CPU_OFFLOAD_ENGINE=1")
    assert run(host, "dcb pfc show dev ens3f0np0")[0] == 1  # until the host starts again
    said(
        host,
        f"{host.python} -SEsc \"import sys; sys.path.insert(0, '/var/lib/fabric-lab/tools'); "
        'from hosttools import boot; boot.nics()"',
    )
    assert run(host, "dcb pfc show dev ens3f0np0")[0] == 0


def test_mlxprivhost(host: Host) -> None:
    shown = said(host, "mlxprivhost -d 0000:4b:00.0 query")
    assert shown.startswith(
        "Host configurations\n-------------------\nlevel                         : RESTRICTED\n\n"
        "Port functions status:\n-----------------------\ndisable_rshim                 : TRUE\n"
    )
    assert "level                         : PRIVILEGED\n" in said(host, "mlxprivhost -d 0000:3b:00.0 q")
    code, _, error = run(host, "mlxprivhost -d 0000:1b:00.0 q")
    assert (code, "only BlueField devices are supported!" in error) == (1, True)
    code, _, error = run(host, "mlxprivhost -d 0000:3b:00.0 restrict")
    assert (code, "Operation is not permitted (refer to the DPU user manual)" in error) == (1, True)
