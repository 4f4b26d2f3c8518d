"""inventory/ib-pod on the lab: real OpenSM on ibsim is programmed, changed, killed, moved by hand, undone.

The tests of this file build on each other, in their order.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from tests.support.fabrics import REPOSITORY, Fabric, lab_up, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.judge("opensm")]

POD = REPOSITORY / "inventory" / "ib-pod"
FOREIGN = (
    "sweep_on_trap FALSE\nmax_wire_smps 8\nsminfo_polling_timeout 1500\n"
    "# SHARP belongs to another team\nsharp_enabled 2\nlog_flags 0x03\n"
)
A = tuple(f"gpu{number:02d}" for number in range(1, 9))
B = tuple(f"gpu{number:02d}" for number in range(9, 17))
MANAGERS = ("sm01", "sm02")
LIDS: dict[str, str] = {}
"""Of the managers' ports, which keep them."""
LANES = (0, 1, *[0] * 14)
ONLY_MANAGERS = ("--limit", ",".join(MANAGERS))


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    if shutil.which("ibsim", path="/usr/bin:/usr/sbin") is None or not Path("/usr/sbin/opensm").exists():
        pytest.skip("opensm, ibsim-utils and infiniband-diags are not installed (scripts/packages.txt)")
    folder = tmp_path_factory.mktemp("ib") / "pod"
    shutil.copytree(POD, folder, ignore=shutil.ignore_patterns(".fabric"))
    made = Fabric(folder)
    with lab_up(made):
        if "(InfiniBand)" in made.skipped() or set(MANAGERS) & set(made.skipped()):
            pytest.skip(f"no InfiniBand lab here: {made.skipped()}")
        for name in MANAGERS:
            made.somebody(name, f"mkdir -p /etc/opensm; printf '%b' '{FOREIGN}' > /etc/opensm/opensm.conf")
        yield made


def ask(pod: Fabric, node: str, line: str) -> str:
    return pod.somebody(node, line)


def keys(pod: Fabric, node: str) -> set[str]:
    """P_Keys of the host's port as the real tool reads them."""
    words = re.findall(r"0x[0-9a-f]{4}", ask(pod, node, "smpquery -D pkeys 0 1"))
    return set(words) - {"0x0000"}


def lanes(pod: Fabric, node: str) -> tuple[int, ...]:
    last = ask(pod, node, "smpquery -D sl2vl 0").strip().splitlines()[-1]
    return tuple(map(int, re.findall(r"\|\s*(\d+)", last)))


def lid(pod: Fabric, node: str) -> str:
    found = re.search(r"^Lid:\.*(\d+)", ask(pod, node, "smpquery -D portinfo 0 1"), re.MULTILINE)
    assert found
    return found.group(1)


def role(pod: Fabric, node: str) -> str:
    """Asked from another host: ibsim gives an answer to any program of the host that it is for, and OpenSM
    on ibsim waits for its own without end."""
    if LIDS.get(node, "0") == "0":  # before the first manager there is none
        LIDS[node] = lid(pod, node)
    text = ask(pod, "gpu01", f"sminfo {LIDS[node]}")
    found = re.search(r"priority (\d+) state \d (\w+)", text)
    return f"{found.group(2)} {found.group(1)}" if found else "none"


def table(pod: Fabric, node: str) -> dict[str, str]:
    """Port GUID -> LID in the table that the node's OpenSM would start with."""
    rows = ask(pod, node, "cat /var/cache/opensm/guid2lid").split("\n\n")
    return {words[0]: words[1] for row in rows if len(words := row.split()) == 3}


def groups(pod: Fabric, node: str) -> dict[str, tuple[str, str]]:
    """P_Key of each IPoIB group -> (Mtu, SL)."""
    text = ask(pod, node, "saquery -g")
    rows = re.findall(r"Mtu\.+(\S+)\s+pkey\.+(\S+)\s+Rate\.+\S+\s+SL\.+(\S+)", text)
    return {pkey: (mtu, sl) for mtu, pkey, sl in rows}


def snapshot(pod: Fabric) -> dict[str, tuple[str, frozenset[str], tuple[int, ...]]]:
    """LID, P_Keys and lanes of every GPU host."""
    return {name: (lid(pod, name), frozenset(keys(pod, name)), lanes(pod, name)) for name in (*A, *B)}


def intent(pod: Fabric, old: str, new: str) -> None:
    path = pod.folder / "fabric.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def active(pod: Fabric, yes: bool) -> None:
    state = "active" if yes else "planned"
    (pod.folder / "defaults.yaml").write_text(f"data: {{state: {state}}}\n", encoding="utf-8")


def test_before_there_is_no_manager(pod: Fabric) -> None:
    assert "Initialize" in ask(pod, "gpu01", "smpquery -D portinfo 0 1")
    assert [role(pod, name) for name in MANAGERS] == ["none", "none"]


def test_the_subnet_is_programmed(pod: Fabric) -> None:
    done = pod.apply(status=0)
    assert {done.statuses[name] for name in (*A, *B, *MANAGERS)} == {"applied"}
    assert [role(pod, name) for name in MANAGERS] == ["SMINFO_MASTER 14", "SMINFO_STANDBY 13"]
    assert groups(pod, "sm01") == {
        "0xFFFF": ("0x85", "0x0"),
        "0x8010": ("0x85", "0x1"),
        "0x8020": ("0x85", "0x1"),
    }
    assert {frozenset(keys(pod, name)) for name in A} == {frozenset({"0xffff", "0x8010"})}
    assert {frozenset(keys(pod, name)) for name in B} == {frozenset({"0xffff", "0x8020"})}
    assert {lanes(pod, name) for name in (*A, *B)} == {LANES}
    arbitration = ask(pod, "gpu01", "smpquery -D vlarb 0 1")
    assert re.search(r"Low priority.*\n.*\n.*\|0x80\|0xC0\|", arbitration)


def test_both_managers_remember_the_same_lids(pod: Fabric) -> None:
    master, standby = (table(pod, name) for name in MANAGERS)
    assert len(master) == 16 + 2 + 6 and standby == master
    assert master["0x0002c90300000101"] == f"0x{int(lid(pod, 'gpu01')):04x}"


def test_nothing_is_left_to_do(pod: Fabric) -> None:
    assert pod.drift(status=0).drifts == {}
    again = pod.apply(status=0)
    assert set(again.statuses.values()) == {"unchanged"}


def test_foreign_lines_stay(pod: Fabric) -> None:
    for name in MANAGERS:
        assert ask(pod, name, "cat /etc/opensm/opensm.conf").startswith(FOREIGN)


def test_a_changed_intent_reaches_the_running_subnet(pod: Fabric) -> None:
    lids = {name: lid(pod, name) for name in (*A, *B)}
    intent(pod, 'members: {full: ["gpu[01-08]"]', 'members: {full: ["gpu[01-07]"]')
    intent(pod, 'members: {full: ["gpu[09-16]"]', 'members: {full: ["gpu[08-16]"]')
    done = pod.apply(status=0)
    assert {name: done.statuses[name] for name in MANAGERS} == dict.fromkeys(MANAGERS, "applied")
    wait_for(lambda: keys(pod, "gpu08") == {"0xffff", "0x8020"})
    assert {name: lid(pod, name) for name in (*A, *B)} == lids
    assert pod.drift(status=0).drifts == {}


def test_a_group_that_exists_is_resized_by_a_restart(pod: Fabric) -> None:
    intent(
        pod,
        "name: tenantB\n      pkey: 0x0020\n      mtu: 4096",
        "name: tenantB\n      pkey: 0x0020\n      mtu: 2048",
    )
    plan = pod.run("diff", "--lab", "--format", "text").out
    assert "systemctl restart opensm@0x0002c90300000001.service" in plan
    pod.apply(*ONLY_MANAGERS, status=0)
    assert groups(pod, "sm01")["0x8020"] == ("0x84", "0x1")


def test_a_restart_is_refused_under_a_workload(pod: Fabric) -> None:
    active(pod, True)
    intent(pod, "mtu: 2048", "mtu: 4096")
    done = pod.apply(*ONLY_MANAGERS, status=1)
    assert {done.statuses[name] for name in MANAGERS} == {"rejected"}
    assert groups(pod, "sm01")["0x8020"] == ("0x84", "0x1")
    done = pod.apply(*ONLY_MANAGERS, "--allow", "loss", status=0)
    assert re.search(r"wave 1 of 2: sm02\n(.*\n)*wave 2 of 2: sm01", done.err), "standby first, master last"
    assert groups(pod, "sm01")["0x8020"] == ("0x85", "0x1")


def test_a_port_moved_by_hand_is_named(pod: Fabric) -> None:
    for name in MANAGERS:
        ask(
            pod, name, "sed -i '/0x0002c90300000103=full/d' /etc/opensm/partitions.conf; pkill -HUP -x opensm"
        )
    wait_for(lambda: keys(pod, "gpu03") == {"0xffff"})
    seen = pod.drift(status=1).drifts
    assert ("running", "ib0", "P_Keys", "0xffff", "0x8010,0xffff") in seen["gpu03"]
    assert "gpu04" not in seen
    assert any("0x0002c90300000103=full" in row[4] for row in seen["sm01"])
    pod.apply(*ONLY_MANAGERS, "--allow", "loss", status=0)
    assert keys(pod, "gpu03") == {"0xffff", "0x8010"}
    assert pod.drift(status=0).drifts == {}


def test_a_file_that_nobody_loaded_is_noticed(pod: Fabric) -> None:
    ask(pod, "sm01", "sleep 1.1; touch /etc/opensm/partitions.conf")
    seen = pod.drift("--limit", "sm01", status=1).drifts
    assert seen == {"sm01": [("running", "", "subnet manager files loaded", "off", "on")]}
    pod.apply("--limit", "sm01", "--allow", "loss", status=0)
    assert pod.drift("--limit", "sm01", status=0).drifts == {}


def test_killing_the_master_hands_over(pod: Fabric) -> None:
    before = snapshot(pod)
    ask(pod, "sm01", "pkill -KILL -x opensm")
    wait_for(lambda: role(pod, "sm02") == "SMINFO_MASTER 13")
    assert snapshot(pod) == before
    assert groups(pod, "sm02")["0x8010"] == ("0x85", "0x1")
    seen = pod.drift(status=1).drifts
    rows = {row[2:] for row in seen["sm01"]}
    assert ("subnet manager running", "off", "on") in rows
    assert ("running", "", "subnet manager role", "master", "standby") in seen["sm02"]


def test_managers_that_both_stopped_start_with_the_lids_of_the_ports(pod: Fabric) -> None:
    """The one that is to be master first; without a master the ports themselves are asked."""
    before = snapshot(pod)
    for name in MANAGERS:
        ask(pod, name, "pkill -TERM -x opensm; sleep 1; rm /var/cache/opensm/guid2lid")
    ill = pod.json("verify", "--only", "config,speed,sm,mtu", status=1).data["findings"]
    assert {place["node"] for one in ill for place in one["places"]} == set(MANAGERS)
    assert "manager-missing" in {one["name"] for one in ill if one["severity"] == "error"}
    done = pod.apply(*ONLY_MANAGERS, "--allow", "loss", status=0)
    assert re.search(r"wave 1 of 2: sm01\n(.*\n)*wave 2 of 2: sm02", done.err)
    wait_for(lambda: role(pod, "sm01") == "SMINFO_MASTER 14")
    wait_for(lambda: role(pod, "sm02") == "SMINFO_STANDBY 13")
    assert snapshot(pod) == before and table(pod, "sm01") == table(pod, "sm02")
    assert pod.drift(status=0).drifts == {}


def test_a_standby_with_other_lids_is_mended_before_it_may_take_over(pod: Fabric) -> None:
    wrong = "0x0002c90300000101 0x0007 0x0007"
    ask(pod, "sm02", f"printf '{wrong}\\n\\n' > /var/cache/opensm/guid2lid")
    seen = pod.drift(*ONLY_MANAGERS, status=1)
    assert seen.drifts == {
        "sm02": [("running", "", "subnet manager LIDs as the subnet has them", "off", "on")]
    }
    assert "/var/cache/opensm/guid2lid differs from the subnet at 24 of 24 ports" in seen.out
    done = pod.apply(*ONLY_MANAGERS, status=0)
    assert done.statuses == {"sm01": "unchanged", "sm02": "applied"}
    assert table(pod, "sm01") == table(pod, "sm02")
    assert pod.drift(*ONLY_MANAGERS, status=0).drifts == {}


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("sl: 1, bandwidth: 60%", "sl: 16, bandwidth: 60%", "fabric.yaml:9:30"),
        ("priority: 14", "priority: 16", "fabric.yaml:18:30"),
        ("pkey: 0x0010\n      mtu: 4096", "pkey: 0x0010\n      mtu: 4000", "fabric.yaml:28:12"),
    ],
    ids=["service level", "priority", "mtu"],
)
def test_a_value_out_of_range_is_refused_before_the_push(pod: Fabric, old: str, new: str, where: str) -> None:
    files = ask(pod, "sm01", "cat /etc/opensm/*")
    logins = len(pod.lines("sm01"))
    intent(pod, old, new)
    try:
        done = pod.run("apply", "--lab", "--yes", status=2)
    finally:
        intent(pod, new, old)
    assert where in done.text
    assert len(pod.lines("sm01")) == logins
    assert ask(pod, "sm01", "cat /etc/opensm/*") == files


BROKEN = "Default=0x7fff, ipoib, mtu=5 : ALL=full, SELF=full ;\ntenantA=0x0010, ipoib\n"


def test_a_broken_partitions_file_is_refused_before_the_push(pod: Fabric) -> None:
    text = (pod.folder / "fabric.yaml").read_text(encoding="utf-8")
    files = ask(pod, "sm01", "cat /etc/opensm/*")
    (pod.folder / "partitions.conf").write_text(BROKEN, encoding="utf-8")
    head = text.partition("  partitions:\n")[0]
    try:
        (pod.folder / "fabric.yaml").write_text(
            f"{head}  partitions_file: partitions.conf\n", encoding="utf-8"
        )
        done = pod.run("apply", "--lab", "--yes", status=2)
    finally:
        (pod.folder / "fabric.yaml").write_text(text, encoding="utf-8")
    assert "partitions.conf:2:" in done.text and "no partition definition found" in done.text
    assert ask(pod, "sm01", "cat /etc/opensm/*") == files
    assert keys(pod, "gpu01") == {"0xffff", "0x8010"}


def test_real_opensm_drops_that_file_as_a_whole(pod: Fabric) -> None:
    """Why it must not get there: every tenant is open after one signal. The read-back says so."""
    for name in MANAGERS:
        shell = BROKEN.replace("\n", "\\n")
        ask(pod, name, f"printf '{shell}' > /etc/opensm/partitions.conf; pkill -HUP -x opensm; sleep 1")
    wait_for(lambda: keys(pod, "gpu01") == {"0xffff"})
    seen = pod.drift(status=1)
    assert "partitions.conf:2: no partition definition found" in seen.out
    assert any("no tenantA" in row[3] for row in seen.drifts["sm01"])
    pod.apply(*ONLY_MANAGERS, "--allow", "loss", status=0)
    assert keys(pod, "gpu01") == {"0xffff", "0x8010"}


def test_windows_line_ends_are_told_and_mended(pod: Fabric) -> None:
    """On the standby, which would open every tenant when it takes over."""
    active(pod, True)
    names = [f"/etc/opensm/{name}" for name in ("partitions.conf", "qos-policy.conf")]
    before = ask(pod, "sm02", f"cat {' '.join(names)}")
    ask(pod, "sm02", f'sed -i "s/$/\\r/" {" ".join(names)}')
    assert ask(pod, "sm02", f'grep -c "$(printf "\\r")" {names[0]}').strip() != "0"
    seen = pod.drift("--limit", "sm02", status=1)
    assert "partitions.conf:2: a carriage return (Windows line end)" in seen.out
    assert "qos-policy.conf:2: a carriage return (Windows line end)" in seen.out
    assert any("no tenantA" in row[3] for row in seen.drifts["sm02"])
    assert {row[2] for row in seen.drifts["sm02"]} >= {"subnet manager service levels"}
    pod.apply("--limit", "sm02", "--allow", "loss", status=0)
    assert ask(pod, "sm02", f"cat {' '.join(names)}") == before
    assert pod.drift("--limit", "sm02", status=0).drifts == {}


def test_a_rollback_brings_the_subnet_back(pod: Fabric) -> None:
    before = ask(pod, "sm01", "cat /etc/opensm/partitions.conf")
    intent(pod, "pkey: 0x0010", "pkey: 0x0011")
    pod.apply(*ONLY_MANAGERS, "--allow", "loss", status=0)
    wait_for(lambda: keys(pod, "gpu01") == {"0xffff", "0x8011"})
    pod.rollback("", "--allow", "loss", status=0)
    wait_for(lambda: keys(pod, "gpu01") == {"0xffff", "0x8010"})
    assert ask(pod, "sm01", "cat /etc/opensm/partitions.conf") == before
    intent(pod, "pkey: 0x0011", "pkey: 0x0010")
    assert pod.drift(*ONLY_MANAGERS, status=0).drifts == {}


def test_a_reboot_brings_the_manager_back(pod: Fabric) -> None:
    from rdma_fabric.lab import fabric as lab

    ask(pod, "sm02", "pkill -TERM -x opensm; sleep 1")
    lab.reboot(pod.folder, "sm01")
    wait_for(lambda: role(pod, "sm01") == "SMINFO_MASTER 14")
    assert pod.drift("--limit", "sm01", status=0).drifts == {}
    pod.apply(*ONLY_MANAGERS, "--allow", "loss", status=0)
    wait_for(lambda: role(pod, "sm02") == "SMINFO_STANDBY 13")
    assert pod.drift(*ONLY_MANAGERS, status=0).drifts == {}


def test_the_logs_hold_no_refusal(pod: Fabric) -> None:
    """What OpenSM does not like in files it says in its log and goes on.

    But for the file that was broken on purpose, without whose partitions the policy does not fit (AC14).
    """
    for name in MANAGERS:
        log = ask(pod, name, "grep -hE 'PARSE|ERR AC|Syntax|not realizable|retrying' /var/log/opensm.*.log")
        meant = ("no partition definition", "retrying with default", "ERR AC14")
        assert [line for line in log.splitlines() if not any(word in line for word in meant)] == []


@pytest.fixture
def faster(pod: Fabric) -> Iterator[None]:
    """The plan says 400 Gbit/s of cables that have 200."""
    path = pod.folder / "groups.yaml"
    text = path.read_text(encoding="utf-8")
    slow = (
        "    gpus: 8\n    mtu_manager: networkd\n    ports:\n      ib0: {speed: 200G",
        '"1/[1-4]": {speed: 200G',
    )
    changed = text
    for old in slow:
        assert changed.count(old) == 1
        changed = changed.replace(old, old.replace("200G", "400G"))
    path.write_text(changed, encoding="utf-8")
    yield
    path.write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("faster")
def test_a_link_below_the_plan_is_found(pod: Fabric) -> None:
    found = pod.json("check", "--live", "--limit", "gpu01,leaf1").data["findings"]
    slow = [one for one in found if one["code"] == "FAB038"]
    assert [(one["found"], one["wanted"]) for one in slow] == [("200G", "400G")]
    assert "gpu01" in str(slow[0]["places"])


UFM = "/opt/ufm/files/conf/opensm"


def test_a_manager_of_ufm_is_read_and_never_written(pod: Fabric) -> None:
    """Its process reads files of its own, which are compared; the difference is told, to be handed over."""
    intent(pod, "subnet_manager:\n", "subnet_manager:\n  owner: ufm\n")
    for name in MANAGERS:
        ask(
            pod,
            name,
            f"pkill -TERM -x opensm; sleep 1; mkdir -p {UFM}; mv /etc/opensm/*.conf {UFM}; "
            f"sed -i s,/etc/opensm/,{UFM}/, {UFM}/opensm.conf; "
            f"setsid opensm -F {UFM}/opensm.conf >/dev/null 2>&1 </dev/null &",
        )
        wait_for(lambda name=name: role(pod, name) != "none")  # type: ignore[misc]
    wait_for(lambda: role(pod, "sm01") == "SMINFO_MASTER 14")
    wait_for(lambda: role(pod, "sm02") == "SMINFO_STANDBY 13")
    assert pod.drift(*ONLY_MANAGERS, status=0).drifts == {}
    intent(pod, "pkey: 0x0010\n      mtu: 4096", "pkey: 0x0010\n      mtu: 2048")
    look = f"md5sum {UFM}/*.conf; ls /etc/opensm; pgrep -x opensm"
    before = {name: ask(pod, name, look) for name in MANAGERS}
    told = pod.run("diff", "--lab", *ONLY_MANAGERS, status=0).out
    assert "ufm owns this subnet manager: hand the lines over to whoever runs it" in told
    assert "ufm: partitions.conf: - tenantA=0x0010, ipoib, mtu=5, sl=1 :" in told
    assert "ufm: partitions.conf: tenantA=0x0010, ipoib, mtu=4, sl=1 :" in told
    seen = pod.drift(*ONLY_MANAGERS, status=1).drifts
    assert {name: {row[2] for row in rows} for name, rows in seen.items()} == {
        name: {"subnet manager partitions"} for name in MANAGERS
    }
    done = pod.apply(*ONLY_MANAGERS, "--allow", "reboot", status=1)
    assert done.statuses == dict.fromkeys(MANAGERS, "unknown")
    assert {name: ask(pod, name, look) for name in MANAGERS} == before
    intent(pod, "pkey: 0x0010\n      mtu: 2048", "pkey: 0x0010\n      mtu: 4096")
