"""A host's whole life on a real kernel: apply, traffic, driver reload, reboot, drift, rollback.

One guest for all of it: every step stands on the one before, in the order of this file.
Soft-RoCE shows MTU, marking and persistence. It has neither PFC nor ECN, so nothing here says that a
network is lossless.
"""

from __future__ import annotations

import time

import pytest

from tests.support.fabrics import Ran
from tests.vm.guest import MODULES, NODE, SYSCTL, Facts, Guest

pytestmark = pytest.mark.vm

TOS = 106
"""DSCP 26 with ECT(0) in the two bits below it, as it goes out."""
WANTED_MTU = 9000
PORTS = tuple(f"data{number}" for number in range(5))
FRAME = 4096
SNIFFER = """
import collections, socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind((sys.argv[1], 0))
wire.settimeout(200)
seen = collections.Counter()
open("/run/sniffing", "w").close()
try:
    while True:
        frame = wire.recv(70000)
        if frame[12:14] == b"\\x08\\x00" and frame[23] == 17 and frame[36:38] == b"\\x12\\xb7":
            seen[frame[15], len(frame) - 14] += 1
            wire.settimeout(float(sys.argv[2]))
except OSError:
    pass
for (tos, size), count in sorted(seen.items()):
    print(tos, size, count)
"""
"""Prints ToS, IP length and number of the RoCE v2 packets (UDP 4791) that a port received, once none came
for some seconds."""


def wanted(facts: Facts) -> None:
    """Everything that the intent asks for, as the kernel tells it."""
    assert facts.mtu == dict.fromkeys(PORTS, WANTED_MTU)
    assert facts.active_mtu == {"rxe0": 4096, "rxe1": 4096}
    assert facts.sysctl == SYSCTL
    assert facts.modules >= set(MODULES)
    assert facts.tos == {"rxe0": str(TOS), "rxe1": str(TOS)}
    assert facts.memlock == "unlimited"


def settled(guest: Guest, mtu: int = WANTED_MTU) -> Facts:
    """The facts once the devices are back with this MTU and all that comes with them has run."""
    back = (
        f'test "$(cat /sys/class/net/data[01]/mtu | sort -u)" = {mtu} && cd /sys/class/infiniband && '
        "test -e rxe0 && test -e rxe1 && systemctl list-jobs | grep -q 'No jobs'"
    )
    guest.machine.root(
        f"n=0; until {{ {back}; }} || test $n -ge 150; do sleep 1; n=$((n + 1)); done", timeout_s=900
    )
    return guest.facts()


def notes(found: Ran) -> list[str]:
    """What `fabric drift` says about the guest beside its rows."""
    return [note for node in found.data["nodes"] for note in node["notes"]]


def carried(guest: Guest, *words: str) -> dict[tuple[int, int], int]:
    """`ib_write_bw` from data0 to data1: (ToS, IP length) of the packets that data1 received -> how many."""
    options = " ".join(("-s 65536 -n 50", *words))
    said = guest.machine.root(
        "rm -f /run/sniffing; python3 /run/sniff.py data1 5 >/run/sniffed 2>&1 & sniffer=$!; "
        "while [ ! -e /run/sniffing ]; do sleep 0.2; done; "
        f"timeout 300 ib_write_bw -d rxe1 {options} >/run/server.log 2>&1 & server=$!; "
        "client=1; for n in 1 2 3 4 5 6; do sleep 3; "
        f"timeout 60 ib_write_bw -d rxe0 {options} 192.0.2.2 >/run/client.log 2>&1; client=$?; "
        "[ $client = 0 ] && break; done; "
        "wait $server; wait $sniffer; echo exit $client; cat /run/sniffed; "
        "[ $client = 0 ] || cat /run/client.log /run/server.log",
        timeout_s=900,
    )
    first, *rows = said.splitlines()
    assert first == "exit 0", said
    return {(int(tos), int(size)): int(count) for tos, size, count in map(str.split, rows)}


# ---------------------------------------------------------------- as delivered


@pytest.fixture(scope="module")
def before(guest: Guest) -> tuple[Facts, dict[str, str]]:
    return guest.facts(), guest.files()


def test_a_guest_as_it_comes(guest: Guest, before: tuple[Facts, dict[str, str]]) -> None:
    """Nothing of the wish is there by chance, else the tests below would show nothing."""
    facts, files = before
    assert facts.mtu == dict.fromkeys(PORTS, 1500)
    assert facts.active_mtu == {"rxe0": 1024, "rxe1": 1024}
    assert not {key for key, value in SYSCTL.items() if facts.sysctl[key] == value}
    assert "ib_umad" not in facts.modules and facts.netns_mode == "Y"
    assert facts.tos == {"rxe0": "0", "rxe1": "0"} and facts.memlock != "unlimited"
    assert not [path for path in files if "fabric" in path]


def test_the_host_key_is_checked(guest: Guest, before: tuple[Facts, dict[str, str]]) -> None:
    known = guest.fabric.folder / "known_hosts"
    kept = known.read_text(encoding="utf-8")
    other = guest.machine.image.folder / "login_key.pub"
    known.write_text(f"{kept.split()[0]} {' '.join(other.read_text(encoding='utf-8').split()[:2])}\n")
    said = guest.drift(status=2)
    known.write_text(kept, encoding="utf-8")
    assert "host key" in said.text
    assert guest.files() == before[1]


# ---------------------------------------------------------------- applied


@pytest.fixture(scope="module")
def first(guest: Guest, before: tuple[Facts, dict[str, str]]) -> Ran:
    return guest.apply()


def test_a_module_option_waits_for_a_reboot_and_all_else_works_now(guest: Guest, first: Ran) -> None:
    assert guest.row(first)["status"] == "pending-reset", first.text
    facts = guest.facts()
    wanted(facts)
    assert facts.netns_mode == "Y"
    assert not guest.pending() and guest.last()["outcome"] == "confirmed"


def test_only_our_files_are_new(guest: Guest, before: tuple[Facts, dict[str, str]], first: Ran) -> None:
    """Nothing that was there changed, the management port's files among it; what is new has our name."""
    files = guest.files()
    assert {path: files.get(path) for path in before[1]} == before[1]
    new = sorted(set(files) - set(before[1]))
    assert [path for path in new if "fabric" not in path and path != "/etc/nccl.conf"] == []
    places = (
        "netplan",
        "30-data0.network.d",
        "NetworkManager/conf.d",
        "fabric-mtu@data1",
        "fabric-mtu@data4",
    )
    for place in places:
        assert [path for path in new if place in path], f"{place}: {new}"


def test_the_management_port_is_left_alone(guest: Guest, first: Ran) -> None:
    assert guest.machine.run("cat /sys/class/net/mgmt0/mtu").strip() == "1500"
    journal = guest.machine.root("journalctl -b -u systemd-networkd --no-pager -o cat")
    assert not [line for line in journal.splitlines() if "mgmt0" in line and "Lost carrier" in line]


def test_a_second_apply_writes_nothing(guest: Guest, first: Ran) -> None:
    files = guest.files()
    second = guest.apply()
    assert guest.row(second)["status"] == "pending-reset", second.text
    assert guest.files() == files
    assert guest.last()["run"] == first.data["run"], "a bundle ran although nothing differed"


def test_traffic_has_the_rdma_mtu(guest: Guest, first: Ran) -> None:
    guest.machine.write("/run/sniff.py", SNIFFER)
    packets = carried(guest)
    assert max(size for _, size in packets) > FRAME, packets
    assert {tos for tos, _ in packets} == {0}, "without RDMA-CM the application marks, and this one does not"


def test_connections_of_rdma_cm_are_marked(guest: Guest, first: Ran) -> None:
    packets = carried(guest, "-R")
    data = {tos: count for (tos, size), count in packets.items() if size > FRAME}
    assert set(data) == {TOS}, packets


# ---------------------------------------------------------------- devices go and come back


def test_a_driver_reload_brings_all_back(guest: Guest, first: Ran) -> None:
    """The netdev and its RDMA device go and come again, one of networkd's and one that is ours."""
    guest.machine.root(
        "for p in data0 data1; do d=$(basename $(readlink -f /sys/class/net/$p/device)); "
        "cd /sys/bus/virtio/drivers/virtio_net; echo $d >unbind; [ ! -e /sys/class/net/$p ]; "
        "echo $d >bind; done"
    )
    wanted(settled(guest))


def test_an_rdma_driver_alone_brings_its_marking_back(guest: Guest, first: Ran) -> None:
    """The netdevs stay, so that no unit of theirs starts: udev tells of the RDMA devices."""
    guest.machine.root(
        "modprobe -r rdma_rxe && test ! -e /sys/class/infiniband/rxe0 && site-rxe data0 && site-rxe data1"
    )
    back = "fabric-qos --check data0 && fabric-qos --check data1"
    guest.machine.root(
        f"n=0; until {{ {back}; }} >/dev/null || test $n -ge 150; do sleep 1; n=$((n + 1)); done",
        timeout_s=900,
    )
    wanted(settled(guest))


def test_a_link_flap_changes_nothing(guest: Guest, first: Ran) -> None:
    for up in (False, True):
        guest.machine.link(0, up)
        time.sleep(2)
    wanted(settled(guest))


# ---------------------------------------------------------------- rebooted


@pytest.fixture(scope="module")
def rebooted(guest: Guest, first: Ran) -> Guest:
    guest.machine.reboot()
    return guest


def test_all_of_it_is_there_after_a_reboot(rebooted: Guest) -> None:
    facts = settled(rebooted)
    wanted(facts)
    assert facts.netns_mode == "N"


def test_drift_is_clean_and_a_further_apply_changes_nothing(rebooted: Guest, first: Ran) -> None:
    found = rebooted.drift(status=0)
    assert found.data["clean"] is True and found.drifts == {}
    again = rebooted.apply(status=0)
    assert rebooted.row(again)["status"] == "unchanged"
    assert rebooted.last()["run"] == first.data["run"], "a bundle ran although nothing differed"


def test_the_host_finds_itself_as_wanted(rebooted: Guest) -> None:
    status, said, errors = rebooted.machine.ssh("sudo -n /usr/local/sbin/fabric-check --format json")
    assert status == 0, f"{said}\n{errors}"


def test_root_sees_the_same(rebooted: Guest) -> None:
    rebooted.login("root")
    found = rebooted.drift()
    rebooted.login("ops")
    assert found.status == 0 and found.data["clean"] is True, found.text


def test_traffic_after_a_reboot(rebooted: Guest) -> None:
    rebooted.machine.write("/run/sniff.py", SNIFFER)
    packets = carried(rebooted, "-R")
    assert {tos for (tos, size) in packets if size > FRAME} == {TOS}


# ---------------------------------------------------------------- drift


def test_a_netdev_mtu_of_4096_is_an_rdma_mtu_of_2048(rebooted: Guest) -> None:
    """The classic: 4096 on the netdev leaves room for 2048 only."""
    rebooted.machine.root("ip link set dev data0 mtu 4096")
    assert rebooted.facts().active_mtu == {"rxe0": 2048, "rxe1": 4096}
    found = rebooted.drift(status=1)
    assert ("running", "data0", "mtu", "4096", "9000") in found.drifts[NODE]
    assert "data0: RDMA MTU 2048 instead of 4096, because the netdev MTU is 4096" in notes(found)
    status, said, _ = rebooted.machine.ssh("sudo -n /usr/local/sbin/fabric-check")
    assert status == 1 and "2048" in said and "data0" in said, said
    refused = rebooted.fabric.run("admit", NODE)
    assert refused.status == 1 and "2048" in refused.text, refused.text


def test_live_and_stored_are_told_apart(rebooted: Guest) -> None:
    machine = rebooted.machine
    machine.root(
        "sysctl -qw net.core.rmem_max=300000; sed -i '/wmem_max/d' /etc/sysctl.d/zz-fabric.conf; "
        "sed -i 's/9000/8000/' /etc/systemd/network/30-data0.network.d/zz-fabric.conf; "
        "ip link set data0 mtu 9000"
    )
    drifts = {
        (layer, port, setting): found for layer, port, setting, found, _ in rebooted.drift().drifts[NODE]
    }
    assert drifts["running", "", "sysctl net.core.rmem_max"] == "300000"
    assert ("stored", "", "sysctl net.core.wmem_max") in drifts
    assert drifts["stored", "data0", "mtu"] == "8000"
    assert len(drifts) == 3
    mended = rebooted.apply(status=0)
    assert rebooted.row(mended)["status"] == "applied"
    assert rebooted.drift(status=0).drifts == {}
    wanted(rebooted.facts())


# ---------------------------------------------------------------- taken back


def test_rollback_brings_back_what_was(
    rebooted: Guest, before: tuple[Facts, dict[str, str]], first: Ran
) -> None:
    undone = rebooted.rollback(first.data["run"])
    assert rebooted.row(undone)["status"] in ("applied", "pending-reset"), undone.text
    facts = rebooted.facts()
    assert facts.mtu == before[0].mtu and facts.active_mtu == before[0].active_mtu
    assert facts.sysctl == before[0].sysctl and facts.tos == before[0].tos
    assert facts.memlock == before[0].memlock
    files = rebooted.files()
    assert {path: files.get(path) for path in before[1]} == before[1]


def test_and_a_reboot_does_not_bring_it_again(rebooted: Guest, before: tuple[Facts, dict[str, str]]) -> None:
    rebooted.machine.reboot()
    assert settled(rebooted, 1500).settings == before[0].settings
