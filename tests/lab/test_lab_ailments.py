"""What ails a port until it is mended: both ends of a lab show it, as switches and hosts print it."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.cli import lab as cli
from rdma_fabric.cli import main
from rdma_fabric.lab import ailments, fabric
from rdma_fabric.lab.fabric import LabNode
from rdma_fabric.lab.hosttools.health import history
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact
from tests.lab.hostlab import why_not
from tests.support.fabrics import wait_for

pytestmark = pytest.mark.lab

LEAF = DeviceFacts(
    "leaf01",
    "arista_eos",
    "DCS-7060X6-64PE",
    "4.32",
    (
        PortFact("Ethernet1/1", 400, peer_node="gpu01", peer_port="ens1"),
        PortFact("Ethernet2/1", 200, peer_node="gpu01", peer_port="ens2"),
        PortFact("Ethernet3/1", 400, peer_node="spine01", peer_port="swp1"),
    ),
)
SPINE = DeviceFacts(
    "spine01",
    "cumulus",
    "SN5600",
    "5.14",
    (PortFact("swp1", 400, peer_node="leaf01", peer_port="Ethernet3/1"),),
)
GPU = DeviceFacts(
    "gpu01",
    "linux",
    ports=(
        PortFact("ens1", 400, peer_node="leaf01", peer_port="Ethernet1/1"),
        PortFact("ens2", 200, peer_node="leaf01", peer_port="Ethernet2/1"),
        PortFact("ens3", 100),
        PortFact("ens4", 25),
    ),
)
NICS = {
    "ports": {
        "ens1": {"nic": "mlx5"},
        "ens2": {"nic": "bnxt"},
        "ens3": {"nic": "irdma"},
        "ens4": {"nic": "generic"},
    }
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if reason := why_not():
        pytest.skip(reason)
    path = tmp_path_factory.mktemp("ailing")
    fabric.up(path, [LabNode(LEAF), LabNode(SPINE), LabNode(GPU, "host", host=NICS)])
    try:
        for port in ("ens1", "ens2", "ens3"):
            fabric.somebody(path, "gpu01", [f"ip link set {port} mtu 9000"])
        yield path
    finally:
        fabric.down(path)


@pytest.fixture(autouse=True)
def mended(folder: Path) -> Iterator[None]:
    yield
    for node in ("leaf01", "spine01", "gpu01"):
        fabric.mend(folder, node)


def typed(folder: Path, *words: str) -> int:
    return main(["lab", words[0], "-C", str(folder), *words[1:]])


def host(folder: Path, line: str) -> str:
    return fabric.somebody(folder, "gpu01", [line])


def statistics(folder: Path, port: str) -> dict[str, int]:
    text = host(folder, f"ethtool -S {port}")
    return {name: int(number) for name, number in re.findall(r"^ +(\S+): (\d+)$", text, re.MULTILINE)}


def test_every_kind_is_known_on_all_levels() -> None:
    assert set(cli.AILMENTS) == set(ailments.AILMENTS)


def test_counters_of_a_switch_grow_until_mended(folder: Path) -> None:
    def frames() -> int:
        text = fabric.somebody(folder, "leaf01", ["show priority-flow-control counters | json"])
        return int(json.loads(text)["interfaceCounters"]["Ethernet1/1"]["rxFrames"])

    sound = frames()
    assert sound == history("leaf01", "Ethernet1/1", "pfc-rx:3") == frames()
    assert typed(folder, "break", "leaf01", "counter", "Ethernet1/1", "pfc-rx:3=1000000") == 0
    time.sleep(0.05)
    broken = frames()
    assert broken > sound
    assert fabric.status(folder).nodes["leaf01"].ailments == ("counter Ethernet1/1 pfc-rx:3=1e+06",)  # type: ignore[union-attr]
    assert typed(folder, "mend", "leaf01", "counter") == 0
    settled = frames()
    assert settled >= broken
    time.sleep(0.05)
    assert frames() == settled


@pytest.mark.parametrize(
    ("port", "name", "counter"),
    [
        ("ens1", "pfc-rx:3", "rx_prio3_pause"),
        ("ens1", "crc", "rx_crc_errors_phy"),
        ("ens1", "rx-discard", "rx_discards_phy"),
        ("ens1", "symbol", "rx_symbol_err_phy"),
        ("ens2", "pfc-tx:4", "tx_pfc_ena_frames_pri4"),
        ("ens2", "fec-uncorrected", "rx_fec_uncorrectable_blocks"),
        ("ens3", "pfc-rx:3", "rx_priority_3_xoff.nic"),
    ],
)
def test_counters_of_a_host(folder: Path, port: str, name: str, counter: str) -> None:
    sound = statistics(folder, port)
    assert sound[counter] == history("gpu01", port, name)
    fabric.ail(folder, "gpu01", "counter", [port, f"{name}=1000000"])
    broken = statistics(folder, port)
    assert broken[counter] > sound[counter]
    fabric.mend(folder, "gpu01", "counter")
    settled = statistics(folder, port)
    assert settled == statistics(folder, port)


def test_counters_in_files_and_other_tools(folder: Path) -> None:
    marked = "cat /sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_ecn_marked_roce_packets"
    files = host(folder, "ls /sys/class/infiniband/mlx5_0/ports/1/counters").split()
    if not files:
        pytest.skip("this machine has no /dev/fuse")
    assert {"symbol_error", "port_rcv_errors", "port_xmit_discards", "link_downed"} <= set(files)
    sound = int(host(folder, marked))
    for name in ("ecn:3", "fec-uncorrected", "pfc-rx:3", "symbol"):
        fabric.ail(folder, "gpu01", "counter", ["ens1", f"{name}=1000000"])
    assert int(host(folder, marked)) > sound
    assert int(host(folder, "cat /sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error")) > 1000
    fec = host(folder, "ethtool -I --show-fec ens1")
    found = re.search(r"Statistics:\n  corrected_blocks: \d+\n  uncorrectable_blocks: (\d+)\n", fec)
    assert found and int(found[1]) > 1000
    assert "Statistics" not in host(folder, "ethtool --show-fec ens1")
    pauses = json.loads(host(folder, "dcb -s -j pfc show dev ens1"))
    assert pauses["indications"][3] > 1000 and pauses["requests"][3] < 100_000
    assert int(host(folder, "cat /sys/class/infiniband/rocep0/hw_counters/RxECNMrkd")) > 0


def test_a_slow_link_is_slow_at_both_ends(folder: Path) -> None:
    assert typed(folder, "break", "gpu01", "speed", "ens1", "100G") == 0
    assert "\tSpeed: 100000Mb/s\n" in host(folder, "ethtool ens1")
    assert host(folder, "cat /sys/class/net/ens1/speed") == "100000\n"
    assert host(folder, "cat /sys/class/infiniband/mlx5_0/ports/1/rate") == "100 Gb/sec (4X EDR)\n"
    verbose = host(folder, "ibv_devinfo -v -d mlx5_0")
    assert "active_width:\t\t4X (2)\n" in verbose and "active_speed:\t\t25.0 Gbps (32)\n" in verbose
    shown = json.loads(fabric.somebody(folder, "leaf01", ["show interfaces status | json"]))
    speeds = {name: one["bandwidth"] for name, one in shown["interfaceStatuses"].items()}
    assert speeds == {
        "Ethernet1/1": 100_000_000_000,
        "Ethernet2/1": 200_000_000_000,
        "Ethernet3/1": 400_000_000_000,
    }
    assert typed(folder, "mend", "leaf01", "speed") == 0  # either end mends it
    assert host(folder, "cat /sys/class/net/ens1/speed") == "400000\n"
    assert host(folder, "cat /sys/class/infiniband/mlx5_0/ports/1/rate") == "400 Gb/sec (4X NDR)\n"


def test_a_slow_link_between_switches(folder: Path) -> None:
    fabric.ail(folder, "leaf01", "speed", ["Ethernet3/1", "200G"])
    shown = json.loads(
        fabric.somebody(folder, "spine01", ["nv show interface swp1 link -o json"]).split("\r")[-1]
    )
    assert shown["speed"] == "200G"


def test_a_small_active_mtu(folder: Path) -> None:
    def active(device: str) -> str:
        found = re.search(r"active_mtu:\t+(.*)\n", host(folder, f"ibv_devinfo -d {device}"))
        assert found
        return found[1]

    assert active("mlx5_0") == "4096 (5)"
    for size, shown in (("1024", "1024 (3)"), ("2048", "2048 (4)"), ("256", "256 (1)")):
        assert typed(folder, "break", "gpu01", "active-mtu", "ens1", size) == 0
        assert active("mlx5_0") == shown
    assert active("bnxt_re0") == "4096 (5)"
    assert typed(folder, "mend", "gpu01", "active-mtu") == 0
    assert active("mlx5_0") == "4096 (5)"


@pytest.mark.parametrize(
    ("node", "kind", "words", "said"),
    [
        (
            "leaf01",
            "counter",
            ["Ethernet9/1", "crc=1"],
            "leaf01 has no port Ethernet9/1: use one of Ethernet1/1,",
        ),
        ("gpu01", "counter", ["eth0", "crc=1"], "gpu01 has no port eth0: use one of ens1, ens2, ens3, ens4"),
        (
            "leaf01",
            "speed",
            ["Ethernet2/1", "400G"],
            "the link is planned with 200G: it cannot come up with 400G",
        ),
        ("leaf01", "active-mtu", ["Ethernet1/1", "1024"], "Ethernet1/1 of leaf01 has no RDMA device"),
        ("gpu01", "active-mtu", ["ens4", "1024"], "ens4 of gpu01 has no RDMA device"),
        ("gpu01", "blackhole", ["ens1", "4000"], "gpu01 is a host: black holes are at ports of switches"),
        ("nobody", "counter", ["swp1", "crc=1"], "the lab has no node nobody"),
    ],
)
def test_what_cannot_be(folder: Path, node: str, kind: str, words: list[str], said: str) -> None:
    with pytest.raises(fabric.LabError) as error:
        fabric.ail(folder, node, kind, words)
    assert str(error.value).startswith(said)


def test_options_of_other_breaks_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(folder, "break", "leaf01", "counter", "Ethernet1/1", "crc=1", "--times", "2") == 2
    assert "counter lasts until `lab mend`" in capsys.readouterr().err


def test_after_a_reboot_counters_start_at_zero(folder: Path) -> None:
    fabric.reboot(folder, "spine01")
    stats = json.loads(
        fabric.somebody(folder, "spine01", ["nv show interface swp1 link stats -o json"]).split("\r")[-1]
    )
    assert stats["in-errors"] == stats["in-drops"] == 0


def test_infiniband_counters_are_those_of_the_real_perfquery(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    if shutil.which("ibsim", path="/usr/bin:/usr/sbin") is None or not Path("/usr/sbin/perfquery").exists():
        pytest.skip("opensm, ibsim-utils and infiniband-diags are not installed (scripts/packages.txt)")
    leaf = DeviceFacts(
        "ibleaf", "nvidia_ib", ports=(PortFact("1/1", 200, peer_node="gpu02", peer_port="ib0"),)
    )
    gpu = DeviceFacts("gpu02", "linux", ports=(PortFact("ib0", 200, peer_node="ibleaf", peer_port="1/1"),))
    port = {"guid": "0x0002c90300a1b2c3", "ibdev": "mlx5_0"}
    host_plan = {"ports": {"ib0": {"nic": "ib"}}, "ib": {"ib0": port}}
    fabric.up(tmp_path, [LabNode(leaf, host={"ib": {"1/1": 1}}), LabNode(gpu, "host", host=host_plan)])

    def errors(words: str) -> int:
        found = re.search(
            r"SymbolErrorCounter:\.+(\d+)", fabric.somebody(tmp_path, "gpu02", [f"perfquery {words}"])
        )
        return int(found[1]) if found else -1

    try:
        fabric.somebody(tmp_path, "gpu02", ["opensm -o -F /dev/null -f /tmp/opensm.log"])
        lid = re.search(r"Lid:\.+(\d+)", fabric.somebody(tmp_path, "gpu02", ["smpquery -D portinfo 0,1 0"]))
        assert lid
        fabric.ail(tmp_path, "ibleaf", "counter", ["1/1", "symbol=3000"])
        wait_for(lambda: errors(f"{lid[1]} 1") > 100)
        assert errors("") == 0  # the host's own port counts nothing
        with pytest.raises(
            fabric.LabError, match="InfiniBand ports of the lab count symbol, crc, tx-discard only"
        ):
            fabric.ail(tmp_path, "gpu02", "counter", ["ib0", "pfc-rx:3=1"])
        with pytest.raises(fabric.LabError, match="1/1 of ibleaf is an InfiniBand port"):
            fabric.ail(tmp_path, "ibleaf", "speed", ["1/1", "100G"])
    finally:
        fabric.down(tmp_path)
