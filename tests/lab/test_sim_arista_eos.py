"""The simulated EOS switch against the vendor page: transcripts, read-backs, refusals, transactions."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact
from rdma_fabric.lab.simulators.arista_eos import EosDevice

PORTS = tuple(
    PortFact(f"Ethernet{n}/1", speed_gbps=400, peer_node=f"spine{n}", peer_port="Ethernet1/1")
    for n in range(1, 5)
)
FACTS = DeviceFacts("leaf01", "arista_eos", "DCS-7060X6-64PE", "4.32.2F", PORTS)
INVALID = "% Invalid input"
UNAVAILABLE = "% Unavailable command (not supported on this hardware platform)"

# Section 5 of the page: one leaf with four routed ports.
MAP = " ".join(str(dscp) for dscp in range(64) if dscp not in (26, 48))
EXAMPLE = f"""\
!
qos map dscp {MAP} to traffic-class 0
qos map dscp 26 to traffic-class 3
qos map dscp 48 to traffic-class 6
qos map traffic-class 0 to tx-queue 0
qos map traffic-class 3 to tx-queue 3
qos map traffic-class 6 to tx-queue 6
!
priority-flow-control pause watchdog default timeout 0.2
priority-flow-control pause watchdog default recovery-time 0.4
priority-flow-control pause watchdog default polling-interval 0.1
priority-flow-control pause watchdog action drop
!
qos profile ROCE
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   !
   uc-tx-queue 0
      no priority
      bandwidth percent 50
   !
   uc-tx-queue 3
      no priority
      bandwidth percent 50
      random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes max-mark-probability 100 weight 0
   !
   uc-tx-queue 6
      priority strict
!
interface Ethernet1/1
   mtu 9214
   no switchport
   service-profile ROCE
   !
   uc-tx-queue 3
      random-detect ecn count
!
interface Ethernet2/1
   mtu 9214
   no switchport
   service-profile ROCE
!
interface Ethernet3/1
   mtu 9214
   no switchport
   service-profile ROCE
!
interface Ethernet4/1
   mtu 9214
   no switchport
   service-profile ROCE
!
"""  # noqa: E501

FOREIGN = """\
hostname leaf01
!
ntp server 192.0.2.123
!
aaa authorization exec default local
!
username admin privilege 15 role network-admin secret sha512 $6$salt$planted-password-hash
!
vlan 10
   name storage
!
vrf instance MGMT
!
interface Ethernet1/1
   description to gpu01 eth0
   no switchport
   ip address 192.0.2.0/31
   ip access-group EDGE in
!
interface Ethernet2/1
   description spare
   switchport access vlan 10
!
interface Loopback0
   ip address 198.51.100.1/32
!
interface Management1
   vrf MGMT
   ip address 203.0.113.11/24
!
interface Vlan10
   ip address 198.51.100.129/25
!
ip access-list EDGE
   10 permit udp any any eq 4791
   20 deny ip any any log
!
ip routing
!
ip route vrf MGMT 0.0.0.0/0 203.0.113.1
!
router bgp 65001
   router-id 198.51.100.1
   neighbor 192.0.2.1 remote-as 65100
   !
   address-family ipv4
      neighbor 192.0.2.1 activate
      network 198.51.100.1/32
!
management api http-commands
   no shutdown
   !
   vrf MGMT
      no shutdown
"""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Switch:
    """A device, its clock, and one privileged login."""

    def __init__(self, facts: DeviceFacts = FACTS, seed: str = "") -> None:
        self.clock = Clock()
        self.device = EosDevice(replace(facts, seed=tuple(seed.splitlines())), self.clock)
        self.login = self.device.open("admin")
        self.run("enable")

    def run(self, line: str) -> str:
        return self.login.run(line).text

    def quiet(self, lines: str) -> None:
        for line in lines.splitlines():
            assert self.run(line) == "", line

    def json(self, command: str) -> Any:
        return json.loads(self.run(f"{command} | json | no-more"))

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.device.tick()

    def block(self, header: str, *, everything: bool = False) -> list[str]:
        shown = self.run("show running-config all" if everything else "show running-config").splitlines()
        start = shown.index(header)
        end = next(at for at in range(start + 1, len(shown)) if not shown[at].startswith(" "))
        return [line.strip() for line in shown[start + 1 : end] if line.strip() != "!"]


@pytest.fixture
def leaf() -> Switch:
    return Switch()


@pytest.fixture
def roce(leaf: Switch) -> Switch:
    leaf.run("configure session fabric-1")
    leaf.quiet(EXAMPLE)
    leaf.quiet("commit")
    return leaf


# --- login, modes, prompts -----------------------------------------------------------------------


def test_login_texts_are_those_of_a_real_switch() -> None:
    login = EosDevice(FACTS, Clock()).open("admin")
    assert login.prompt() == "leaf01>"
    assert login.run("terminal width 511").text == "Width set to 511 columns."
    assert login.run("terminal length 0").text == "Pagination disabled."
    assert login.run("show running-config").text == "% Invalid input (privileged mode required)"
    assert login.run("configure session fabric-1").text == "% Invalid input (privileged mode required)"
    login.run("enable")
    assert login.prompt() == "leaf01#"
    assert login.run("exit").close


@pytest.mark.parametrize(
    ("lines", "prompt"),
    [
        ("configure terminal", "leaf01(config)#"),
        ("configure session fabric-7", "leaf01(config-s-fabric)#"),
        ("configure session maint-10001", "leaf01(config-s-maint-)#"),
        ("configure session fabric-7\ninterface Ethernet1/1", "leaf01(config-s-fabric-if-Et1/1)#"),
        ("configure\nqos profile ROCE-LEAF\nuc-tx-queue 3", "leaf01(config-qos-profile-ROCE-LEAF-uc-txq-3)#"),
        ("configure\ninterface ethernet 1/1\nuc-tx-queue 3", "leaf01(config-if-Et1/1-uc-txq-3)#"),
        ("configure\nip access-list mgmt", "leaf01(config-acl-mgmt)#"),
        (
            "configure\ninterface Ethernet1/1\nuc-tx-queue 3\nqos map cos 1 to traffic-class 1",
            "leaf01(config)#",
        ),
        ("configure\ninterface Ethernet1/1\nexit", "leaf01(config)#"),
        ("configure\ninterface Ethernet1/1\nend", "leaf01#"),
        ("conf t\nint et1/1\nhostname spine9", "spine9(config)#"),
    ],
)
def test_prompts(leaf: Switch, lines: str, prompt: str) -> None:
    leaf.quiet(lines)
    assert leaf.login.prompt() == prompt


def test_enable_asks_for_its_password_without_echo() -> None:
    switch = Switch(seed="enable password 0 hunter2")
    login = switch.device.open("ops")
    login.run("enable")
    assert (login.prompt(), login.secret()) == ("Password: ", True)
    assert login.run("wrong").text == "% Bad secret" and login.prompt() == "leaf01>"
    login.run("enable")
    login.run("hunter2")
    assert (login.prompt(), login.secret()) == ("leaf01#", False)
    assert "hunter2" not in switch.device.running()


def test_an_exec_channel_takes_one_command_per_line(leaf: Switch) -> None:
    done = leaf.device.execute("admin", "enable\nshow hostname")
    assert (done.stdout, done.status) == ("Hostname: leaf01\nFQDN:     leaf01\n", 0)
    assert leaf.device.execute("admin", "show running-config").status == 1


# --- the worked example --------------------------------------------------------------------------


def test_the_worked_example_is_taken_and_shown_by_value(roce: Switch) -> None:
    typed = EXAMPLE.split("qos profile ROCE\n")[1].split("\n!\n")[0].splitlines()
    # Queue 6 is strict by default: its block is not shown.
    wanted = [line.strip() for line in typed if line.strip() != "!"][:-2]
    assert roce.block("qos profile ROCE") == wanted
    assert roce.block("interface Ethernet1/1") == [
        "mtu 9214",
        "no switchport",
        "service-profile ROCE",
        "uc-tx-queue 3",
        "random-detect ecn count",
    ]
    text = roce.device.running()
    # Lines that equal a default are not shown, and EOS prints its own form of numbers.
    assert "to tx-queue" not in text and "dscp 26" not in text
    assert "priority-flow-control pause watchdog default timeout 0.20\n" in text
    assert "priority-flow-control pause watchdog default polling-interval 0.100\n" in text
    shown = roce.run("show running-config all")
    assert f"qos map dscp {MAP} to traffic-class 0\n" in shown
    assert "qos map dscp 26 to traffic-class 3\n" in shown
    assert "qos map traffic-class 3 to tx-queue 3\n" in shown


def test_the_example_for_a_tx_queue_platform() -> None:
    spine = Switch(replace(FACTS, name="spine01", model="DCS-7280DR3A-36"))
    spine.run("configure session fabric-1")
    spine.quiet(EXAMPLE.replace("uc-tx-queue", "tx-queue"))
    spine.quiet("commit")
    assert "   tx-queue 3\n" in spine.device.running()
    spine.quiet("configure\nqos profile ROCE")
    assert spine.run("uc-tx-queue 3") == INVALID


def test_sending_the_example_again_changes_nothing(roce: Switch) -> None:
    roce.run("configure session fabric-2")
    roce.quiet(EXAMPLE)
    assert roce.run("show session-config diffs") == "\n"


def test_running_config_loads_again_to_the_same(roce: Switch) -> None:
    text = roce.device.running()
    roce.device.files["/mnt/flash/saved"] = text.encode()
    roce.quiet("configure\nno qos profile ROCE\nend\nconfigure replace flash:saved")
    assert roce.device.running() == text


# --- read-backs ----------------------------------------------------------------------------------


def test_priority_flow_control_table(roce: Switch) -> None:
    shown = roce.run("show priority-flow-control").splitlines()
    assert shown[:3] == [
        "Port         Enabled  Priorities  Active  Note",
        "-----------  -------  ----------  ------  -------------",
        "Ethernet1/1  Yes      3           Yes     DCBX disabled",
    ]
    assert roce.run("show priority-flow-control status").splitlines() == shown
    roce.quiet("configure\npriority-flow-control all off\nend")
    assert "Ethernet1/1  Yes      3           No " in roce.run("show priority-flow-control")


def test_ecn_table(roce: Switch) -> None:
    assert roce.run("show qos interfaces ethernet 1/1 ecn").splitlines() == [
        "Tx-Queue  Threshold  ECN Min     ECN Max",
        "          Unit       Threshold   Threshold",
        "--------  ---------  ---------   ---------",
        "3         kbytes     150         1500",
    ]


def test_qos_interfaces_layout(roce: Switch) -> None:
    page = """\
Ethernet1/1:
   Trust Mode: DSCP
   Default COS: 0
   Default DSCP: 0
   Port shaping rate: disabled
  Tx    Bandwidth     Bandwidth                   Shape Rate         Priority   ECN/WRED \n\
 Queue  (percent)     Guaranteed (units)           (units)         \n\
 ----------------------------------------------------------------------------------------
   7        -             - ( - )              -            ( - )      SP         D     \n\
   6        -             - ( - )              -            ( - )      SP         D     \n\
   5        -             - ( - )              -            ( - )      SP         D     \n\
   4        -             - ( - )              -            ( - )      SP         D     \n\
   3        50          - ( - )              -            ( - )      RR         D     \n\
   2        -             - ( - )              -            ( - )      RR         D     \n\
   1        -             - ( - )              -            ( - )      RR         D     \n\
   0        50          - ( - )              -            ( - )      RR         D     """
    roce.quiet("configure\nqos profile ROCE\nuc-tx-queue 3\nno random-detect ecn minimum-threshold\nend")
    assert roce.run("show qos interfaces ethernet 1/1").splitlines()[:-1] == page.splitlines()


def test_counters_in_json(roce: Switch) -> None:
    assert roce.json("show priority-flow-control counters")["interfaceCounters"]["Ethernet1/1"] == {
        "rxFrames": 0,
        "txFrames": 0,
    }
    counted = roce.json("show qos interfaces ecn counters queue")["intfQueueCounters"]
    assert counted["Ethernet1/1"]["queueCounters"] | {"3": "0"} == {str(n): "-" for n in range(8)} | {
        "3": "0"
    }
    assert counted["Ethernet1/1"]["queueCounters"]["3"] == "0"
    assert counted["Ethernet2/1"]["queueCounters"]["3"] == "-"
    assert roce.json("show priority-flow-control counters watchdog") == {"interfaces": {}}
    assert roce.json("show interfaces flow-control")["interfaceFlowControls"]["Ethernet1/1"] == {
        "txAdminState": "off",
        "txOperState": "off",
        "rxAdminState": "off",
        "rxOperState": "off",
        "txPause": 0,
        "rxPause": 0,
    }


def test_counters_in_text(roce: Switch) -> None:
    head, row, *_ = roce.run("show priority-flow-control counters").splitlines()
    assert head.split() == ["Port", "RxPfc", "TxPfc"] and row.split() == ["Et1/1", "0", "0"]
    rows = roce.run("show interfaces counters queue detail").splitlines()
    assert rows[2].split() == ["Et1/1", "UC0", "0", "0", "0", "0"]


def test_global_pause_sleeps_while_pfc_is_on(roce: Switch) -> None:
    roce.quiet("configure\ninterface Ethernet1/1\nflowcontrol receive on\nend")
    found = roce.json("show interfaces flow-control")["interfaceFlowControls"]["Ethernet1/1"]
    assert (found["rxAdminState"], found["rxOperState"]) == ("on", "off")
    roce.quiet("configure\nqos profile ROCE\nno priority-flow-control\nend")
    found = roce.json("show interfaces flow-control")["interfaceFlowControls"]["Ethernet1/1"]
    assert found["rxOperState"] == "on"


def test_interfaces_routed_and_bridged(roce: Switch) -> None:
    roce.quiet(
        "configure\ninterface Ethernet1/1\nip address 192.0.2.1/31\ninterface Ethernet3/1\nswitchport\nend"
    )
    shown = roce.run("show interfaces")
    assert "Ethernet1/1 is up, line protocol is up (connected)\n" in shown
    assert "  Internet address is 192.0.2.1/31\n  Broadcast address is 255.255.255.255\n" in shown
    assert "  IP MTU 9214 bytes , BW 400000000 kbit\n" in shown
    assert "  Full-duplex, 400Gb/s, auto negotiation: off, uni-link: n/a\n" in shown
    # A bridged port shows 9214 whatever its IP MTU is.
    assert "  Ethernet MTU 9214 bytes, BW 400000000 kbit\n" in roce.run("show interfaces ethernet 3/1")
    found = roce.json("show interfaces")["interfaces"]
    picked = {
        name: (found[name]["forwardingModel"], found[name]["mtu"], found[name]["l3MtuConfigured"])
        for name in ("Ethernet1/1", "Ethernet3/1", "Management1")
    }
    assert picked == {
        "Ethernet1/1": ("routed", 9214, True),
        "Ethernet3/1": ("bridged", 9214, True),
        "Management1": ("routed", 1500, False),
    }


def test_a_default_routed_port_says_so(leaf: Switch) -> None:
    leaf.quiet("configure\ninterface Ethernet1/1\nno switchport\nshutdown\nend")
    shown = leaf.run("show interfaces Ethernet1/1")
    assert "  IP MTU 1500 bytes (default), BW 400000000 kbit\n" in shown
    assert "Ethernet1/1 is administratively down, line protocol is down (disabled)\n" in shown


def test_running_config_all_of_one_port(roce: Switch) -> None:
    lines = roce.block("interface Ethernet1/1", everything=True)
    start = lines.index("uc-tx-queue 0")
    assert lines[:start] == [
        "mtu 9214",
        "no dcbx mode",
        "no flowcontrol send",
        "no flowcontrol receive",
        "no l2 mtu",
        "no switchport",
        "lldp transmit",
        "lldp receive",
        "qos trust dscp",
        "qos cos 0",
        "qos dscp 0",
        "no shape rate",
        "no priority-flow-control",
        "priority-flow-control pause watchdog",
        *(f"no priority-flow-control priority {n}" for n in range(8)),
        "no priority-flow-control pause watchdog port action",
        "no priority-flow-control pause watchdog port timer",
        "service-profile ROCE",
    ]
    assert lines[start + 1 : start + 8] == [
        "priority strict",
        "no bandwidth percent",
        "no shape rate",
        "no bandwidth guaranteed",
        "no random-detect ecn minimum-threshold",
        "no random-detect ecn count",
        "no random-detect drop",
    ]


def test_trust_defaults_follow_the_kind_of_port(leaf: Switch) -> None:
    assert "default qos trust" in leaf.block("interface Ethernet1/1", everything=True)
    assert "Ethernet1/1  COS" in leaf.run("show qos interfaces trust")
    leaf.quiet("configure\ninterface Ethernet1/1\nno switchport\nend")
    assert "qos trust dscp" in leaf.block("interface Ethernet1/1", everything=True)
    leaf.quiet("configure\ninterface Ethernet1/1\nno qos trust\nend")
    assert "no qos trust" in leaf.block("interface Ethernet1/1", everything=True)
    assert leaf.run("show qos interfaces ethernet 1/1 trust").splitlines()[2].split() == [
        "Ethernet1/1",
        "UNTRUSTED",
        "UNTRUSTED",
    ]


def test_section_also_returns_longer_names() -> None:
    ports = (*PORTS, PortFact("Ethernet1/10", 100))
    switch = Switch(replace(FACTS, ports=ports))
    shown = switch.run("show running-config all section interface Ethernet1/1").splitlines()
    assert [line for line in shown if line.startswith("interface")] == [
        "interface Ethernet1/1",
        "interface Ethernet1/10",
    ]
    same = switch.run("show running-config all | section interface Ethernet1/1").splitlines()
    assert same == shown


def test_default_maps(leaf: Switch) -> None:
    assert leaf.device.running_config.dscp[0] == 1 and leaf.device.running_config.dscp[8] == 0
    rows = [line.split() for line in leaf.run("show qos maps").splitlines()]
    assert ["0", ":", "1", "1", "1", "1", "1", "1", "1", "1", "0", "0"] in rows
    assert ["6", ":", "7", "7", "7", "7"] in rows
    assert ["tc:", "1", "0", "2", "3", "4", "5", "6", "7"] in rows


def test_version_and_uptime(leaf: Switch) -> None:
    leaf.pass_time(125)
    found = leaf.json("show version")
    assert (found["version"], found["modelName"], found["uptime"]) == ("4.32.2F", "DCS-7060X6-64PE", 125.0)
    assert "Software image version: 4.32.2F\n" in leaf.run("show version")


def test_lldp_neighbors_come_from_the_cables(leaf: Switch) -> None:
    rows = leaf.json("show lldp neighbors")["lldpNeighbors"]
    assert rows[0] == {
        "port": "Ethernet1/1",
        "neighborDevice": "spine1",
        "neighborPort": "Ethernet1/1",
        "ttl": 120,
    }
    detail = leaf.json("show lldp neighbors detail")["lldpNeighbors"]["Ethernet2/1"]["lldpNeighborInfo"][0]
    assert (detail["systemName"], detail["neighborInterfaceInfo"]["interfaceId_v2"]) == (
        "spine2",
        "Ethernet1/1",
    )
    assert "Et1/1" in leaf.run("show lldp neighbors")
    leaf.quiet("configure\nno lldp run\nend")
    assert leaf.json("show lldp neighbors")["lldpNeighbors"] == []


def test_dcbx(leaf: Switch) -> None:
    leaf.quiet("configure\ninterface Ethernet1/1\ndcbx mode ieee\nend")
    assert " IEEE DCBX is enabled and active\n" in leaf.run("show dcbx ethernet 1/1")
    assert " DCBX is disabled\n" in leaf.run("show dcbx ethernet 2/1")


def test_pipes(leaf: Switch) -> None:
    assert leaf.run("show running-config | include hostname") == "hostname leaf01\n"
    assert leaf.run("show version | begin Uptime").startswith("Uptime:")
    assert "hostname" not in leaf.run("show running-config | exclude hostname")
    first, *rest = leaf.run("show clock | json").splitlines()
    assert first == "% This is an unconverted command"
    assert json.loads("\n".join(rest)) == {"errors": ["This is an unconverted command"]}
    assert leaf.run("show version | nothing x") == INVALID
    tree = leaf.json("show running-config")
    assert tree["cmds"]["hostname leaf01"] is None and "interface Ethernet1/1" in tree["cmds"]


# --- sessions ------------------------------------------------------------------------------------


def test_session_diff_is_unified_with_three_lines(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\ninterface Ethernet2/1\nmtu 9214")
    assert leaf.run("show session-config diffs") == (
        "--- system:/running-config\n"
        "+++ session:/fabric-1-session-config\n"
        "@@ -6,6 +6,7 @@\n"
        " interface Ethernet1/1\n"
        " !\n"
        " interface Ethernet2/1\n"
        "+   mtu 9214\n"
        " !\n"
        " interface Ethernet3/1\n"
        " !\n"
    )
    leaf.quiet("end")
    assert leaf.login.prompt() == "leaf01#"
    assert "+   mtu 9214\n" in leaf.run("show session-config named fabric-1 diffs")
    assert "   mtu 9214\n" in leaf.run("show session-config named fabric-1")
    assert leaf.run("show session-config named other diffs") == INVALID


def test_nothing_is_live_before_the_commit(leaf: Switch) -> None:
    before = leaf.device.running()
    leaf.quiet("configure session fabric-1\ninterface Ethernet1/1\nmtu 9000")
    assert leaf.device.running() == before
    leaf.quiet("commit")
    assert leaf.login.prompt() == "leaf01#"
    assert "   mtu 9000\n" in leaf.device.running()
    assert leaf.json("show configuration sessions detail")["sessions"]["fabric-1"]["state"] == "completed"


def test_end_leaves_a_session_pending_and_abort_discards_it(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\nvlan 7\nend")
    assert leaf.json("show configuration sessions detail")["sessions"]["fabric-1"]["state"] == "pending"
    leaf.quiet("configure session fabric-1")
    assert "vlan 7" in leaf.run("show session-config")
    leaf.quiet("abort")
    assert leaf.json("show configuration sessions detail")["sessions"] == {}
    leaf.quiet("configure session fabric-2\nvlan 8\nexit\nexit\nconfigure session fabric-2 abort")
    assert "vlan" not in leaf.device.running()


def test_a_commit_overwrites_what_others_changed_since_the_session_opened(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\ninterface Ethernet1/1\nmtu 9000")
    leaf.device.somebody(("configure", "interface Ethernet2/1", "description lost"))
    assert "-   description lost\n" in leaf.run("show session-config diffs")
    leaf.quiet("commit")
    assert "lost" not in leaf.device.running()


def test_a_timed_commit_is_live_and_is_rolled_back_when_nobody_confirms(leaf: Switch) -> None:
    before = leaf.device.running()
    leaf.quiet("configure session fabric-1\ninterface Ethernet1/1\nmtu 9000\ncommit timer 00:05:00")
    assert leaf.login.prompt() == "leaf01#" and "mtu 9000" in leaf.device.running()
    assert leaf.run("end") == INVALID
    leaf.pass_time(299)
    assert "mtu 9000" in leaf.device.running()
    leaf.pass_time(1)
    assert leaf.device.running() == before


def test_a_timed_commit_stays_when_confirmed(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\ninterface Ethernet1/1\nmtu 9000\nend")
    leaf.quiet("configure session fabric-1 commit timer 00:05:00\nconfigure session fabric-1 commit")
    leaf.pass_time(1000)
    assert "mtu 9000" in leaf.device.running()
    assert leaf.run("configure session fabric-1 commit").startswith("% Cannot commit")


def test_abort_rolls_a_timed_commit_back(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\nvlan 7\ncommit timer 0:5:0\nconfigure session fabric-1 abort")
    assert "vlan" not in leaf.device.running()


def test_one_timer_per_switch(leaf: Switch) -> None:
    leaf.quiet("configure session first\nvlan 7\ncommit timer 00:05:00")
    leaf.quiet("configure session second\nvlan 8")
    assert leaf.run("commit").startswith("% Cannot commit session second")
    assert leaf.run("commit timer 00:05:00").startswith("% Cannot commit session second")
    assert "pendingCommitTimer" in leaf.run("end") + leaf.run("configure session first")


@pytest.mark.parametrize("time", ["300", "00:00:00", "00:61:00", "5m", "00:05:00:00", ""])
def test_wrong_timers_are_refused(leaf: Switch, time: str) -> None:
    leaf.quiet("configure session fabric-1")
    assert leaf.run(f"commit timer {time}").startswith("%")
    assert leaf.device.candidates["fabric-1"].state == "pending"


def test_five_sessions_may_be_pending(leaf: Switch) -> None:
    for number in range(5):
        leaf.quiet(f"configure session s{number}\nend")
    assert "Maximum number of pending sessions has been reached" in leaf.run("configure session s5")
    leaf.quiet("no configure session s0\nconfigure session s5")


def test_sessions_are_dropped_after_a_day_and_at_reboot(leaf: Switch) -> None:
    leaf.quiet("configure session old\nend")
    leaf.pass_time(24 * 3600)
    assert leaf.device.candidates == {}
    leaf.quiet("configure session young\nvlan 7\ncommit timer 00:05:00")
    leaf.device.reboot()
    assert leaf.device.candidates == {} and "vlan" not in leaf.device.running()


def test_full_replace_starts_from_clean_config(leaf: Switch) -> None:
    leaf.quiet("configure\nvlan 7\nend\nconfigure session fabric-1\nrollback clean-config\nhostname leaf01")
    assert "-vlan 7\n" in leaf.run("show session-config diffs")
    leaf.quiet("commit")
    assert "vlan" not in leaf.device.running()


def test_session_json_changed_with_4_32() -> None:
    old = Switch(replace(FACTS, version="4.31.4M"))
    old.pass_time(10)
    old.quiet("configure session fabric-1\nvlan 7\ncommit timer 00:05:00")
    found = old.json("show configuration sessions detail")
    assert found["sessions"]["fabric-1"]["state"] == "pendingCommitTimer"
    assert found["sessions"]["fabric-1"]["commitBy"] == 310.0 == old.json("show version")["uptime"] + 300
    assert "commitTimerSessionName" not in found

    new = Switch()
    new.quiet("configure session fabric-1\nvlan 7\ncommit timer 00:05:00")
    found = new.json("show configuration sessions detail")
    assert (found["commitTimerSessionName"], found["commitTimerExpireTime"]) == ("fabric-1", 300.0)
    assert "commitBy" not in found["sessions"]["fabric-1"]
    assert "Session with pending commit timer: fabric-1\n" in new.run("show configuration sessions detail")
    new.quiet("configure session fabric-1 commit")
    assert "commitTimerSessionName" not in new.json("show configuration sessions detail")


def test_sessions_in_text(leaf: Switch) -> None:
    old = Switch(replace(FACTS, version="4.30.1F"))
    old.quiet("configure session fabric-1\nend")
    assert old.run("show configuration sessions detail").splitlines() == [
        "Maximum number of completed sessions: 1",
        "Maximum number of pending sessions: 5",
        "",
        "  Name     State           User       Terminal    PID",
        "  -------- --------------- ---------- -------------- ---",
        "  fabric-1 pending",
    ]


def test_two_people_in_configure_terminal_and_a_commit_between(leaf: Switch) -> None:
    other = leaf.device.open("other")
    for line in ("enable", "configure", "interface Ethernet1/1"):
        other.run(line)
    leaf.quiet("configure session fabric-1\nvlan 7\ncommit")
    assert other.run("mtu 9000").text == "" and other.prompt() == "leaf01(config-if-Et1/1)#"
    assert "mtu 9000" in leaf.device.running() and "vlan 7" in leaf.device.running()


@pytest.mark.parametrize(
    ("line", "commits"),
    [
        ("commit", True),
        ("commit timer 00:05:00", True),
        ("configure session fabric-1 commit", True),
        ("configure session fabric-1 commit timer 00:05:00", True),
        ("configure replace flash:rollback-0", True),
        ("configure checkpoint restore ckp-20260105-0", True),
        ("configure session fabric-1", False),
        ("configure session fabric-1 abort", False),
        ("write memory", False),
        ("mtu 9214", False),
    ],
)
def test_which_lines_make_a_candidate_live(leaf: Switch, line: str, commits: bool) -> None:
    assert leaf.device.commits(line) is commits
    assert leaf.device.refusal(line) == INVALID


def test_a_confirmation_makes_nothing_live(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\nvlan 7\ncommit timer 00:05:00")
    assert not leaf.device.commits("configure session fabric-1 commit")


# --- saving and undoing --------------------------------------------------------------------------


def test_a_commit_does_not_save(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\nvlan 7\ncommit")
    assert "+vlan 7\n" in leaf.run("show running-config diffs")
    leaf.device.reboot()
    assert "vlan" not in leaf.device.running()
    leaf.quiet("configure session fabric-1\nvlan 7\ncommit")
    assert leaf.run("write memory") == "Copy completed successfully."
    leaf.device.reboot()
    assert "vlan 7" in leaf.device.running() and "vlan 7" in leaf.run("show startup-config")


def test_undo_by_file_and_by_checkpoint(leaf: Switch) -> None:
    assert leaf.run("copy startup-config flash:rollback-0") == "Copy completed successfully."
    before = leaf.device.running()
    leaf.quiet("configure session fabric-1\nvlan 7\ncommit\nconfigure replace flash:rollback-0")
    assert leaf.device.running() == before
    leaf.quiet("configure checkpoint save mine\nconfigure\nvlan 9\nend\nconfigure checkpoint restore mine")
    assert leaf.device.running() == before
    assert leaf.run("configure replace flash:none").startswith("% Error opening flash:none")
    assert leaf.run("configure replace http://x/y").startswith("% Invalid input")


def test_every_commit_makes_a_checkpoint_of_the_state_before(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\nvlan 7\ncommit")
    assert list(leaf.device.checkpoints) == ["ckp-20260105-0"]
    assert leaf.run("diff checkpoint:ckp-20260105-0 running-config").splitlines()[-4:-2] != []
    assert "+vlan 7" in leaf.run("diff checkpoint:ckp-20260105-0 running-config")
    assert "ckp-20260105-0" in leaf.run("show configuration checkpoints")
    assert list(leaf.json("show configuration checkpoints")["checkpoints"]) == ["ckp-20260105-0"]
    for number in range(25):
        leaf.quiet(f"configure session n{number}\nvlan {number + 10}\ncommit")
    assert len(leaf.device.checkpoints) == 20
    leaf.quiet("delete checkpoint:ckp-20260105-9")
    assert len(leaf.device.checkpoints) == 19


def test_a_replacement_with_a_refused_line_changes_nothing(leaf: Switch) -> None:
    leaf.device.files["/mnt/flash/bad"] = b"hostname other\ninterface Ethernet1/1\n   mtu 9216\n"
    before = leaf.device.running()
    assert leaf.run("configure replace flash:bad") == (
        "% Max MTU for Ethernet1/1 is 9214 at line 3: mtu 9216"
    )
    assert leaf.device.running() == before


def test_dump_and_restore(roce: Switch) -> None:
    roce.quiet("configure session fabric-9\nvlan 7\ncommit timer 00:05:00\nconfigure session other\nend")
    roce.device.files["/mnt/flash/x"] = b"\x00\xff"
    data = json.loads(json.dumps(roce.device.dump()))
    twin = EosDevice(FACTS, roce.clock)
    twin.restore(data)
    assert twin.dump() == roce.device.dump()
    roce.clock.now += 300
    twin.tick()
    assert "vlan" not in twin.running() and twin.candidates["other"].state == "pending"


# --- MTU -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "line", "says"),
    [
        ("DCS-7060X6-64PE", "mtu 9214", ""),
        ("DCS-7060X6-64PE", "mtu 9216", "% Max MTU for Ethernet1/1 is 9214"),
        ("vEOS-lab", "mtu 9216", "% Max MTU for Ethernet1/1 is 9194"),
        ("DCS-7060X6-64PE", "mtu 68", ""),
        ("DCS-7060X6-64PE", "mtu 67", INVALID),
        ("DCS-7060X6-64PE", "mtu 65536", INVALID),
        ("DCS-7060X6-64PE", "mtu 9.2k", INVALID),
        ("DCS-7060X6-64PE", "mtu", "% Incomplete command"),
        ("DCS-7060X6-64PE", "mtu 9214 bytes", INVALID),
    ],
)
def test_mtu_range_and_ceiling(model: str, line: str, says: str) -> None:
    switch = Switch(replace(FACTS, model=model))
    switch.quiet("configure\ninterface Ethernet1/1")
    assert switch.run(line) == says


# --- refusals ------------------------------------------------------------------------------------

QUEUE = "interface Ethernet1/1\nuc-tx-queue 3\n"
ECN = "random-detect ecn minimum-threshold"


@pytest.mark.parametrize(
    "lines",
    [
        "frobnicate",
        "qos map dscp 64 to traffic-class 3",
        "qos map dscp 26 traffic-class 3",
        "qos map dscp 26,27 to traffic-class 3",
        "qos map dscp 26 to traffic-class 8",
        "qos map dscp 26 to uc-tx-queue 3",
        "qos map traffic-class 3 to uc-tx-queue 3",
        "qos map traffic-class 7 to tx-queue 3",
        "qos map traffic-class 3 to tx-queue 7",
        "priority-flow-control pause watchdog default timeout 200",
        "priority-flow-control pause watchdog default timeout 0.205",
        "priority-flow-control pause watchdog default timeout 0",
        "priority-flow-control pause watchdog default recovery-time 61",
        "priority-flow-control pause watchdog default polling-interval 0.1001",
        "priority-flow-control pause watchdog default polling-interval 31",
        "priority-flow-control pause watchdog action no-drop",
        "priority-flow-control pause watchdog action alert",
        "priority-flow-control on",
        "interface Ethernet99/1",
        "interface Ethernet1",
        "interface Vlan4095",
        "interface Serial1",
        "interface Ethernet1/1\npriority-flow-control mode on",
        "interface Ethernet1/1\npriority-flow-control priority 8 no-drop",
        "interface Ethernet1/1\npriority-flow-control priority 3 lossless",
        "interface Ethernet1/1\npriority-flow-control on now",
        "interface Ethernet1/1\npriority-flow-control pause watchdog port action errdisable",
        "interface Ethernet1/1\nqos trust both",
        "interface Ethernet1/1\ntx-queue 3",
        "interface Ethernet1/1\nuc-tx-queue 8",
        "interface Ethernet1/1\nrandom-detect ecn count",
        "interface Ethernet1/1\nbandwidth percent 50",
        "interface Ethernet1/1\ndcbx mode auto",
        "interface Vlan10\npriority-flow-control on",
        "interface Vlan10\nservice-profile ROCE",
        "interface Loopback0\nmtu 9000",
        f"{QUEUE}bandwidth percent 101",
        f"{QUEUE}bandwidth percent 0",
        f"{QUEUE}priority 3",
        f"{QUEUE}{ECN} 150 kilobytes maximum-threshold 1500 kilobytes",
        f"{QUEUE}{ECN} 150 kbytes maximum-threshold 1500 bytes",
        f"{QUEUE}{ECN} 150 kbytes maximum-threshold 4294967295 kbytes",
        f"{QUEUE}{ECN} 150 kbytes maximum-threshold 1500 kbytes max-mark-probability 101",
        f"{QUEUE}{ECN} 150 kbytes maximum-threshold 1500 kbytes weight 16",
        f"{QUEUE}{ECN} 1 milliseconds maximum-threshold 2 milliseconds",
        "qos profile ROCE\nuc-tx-queue 3\nrandom-detect ecn count",
        "qos profile ROCE\nmtu 9214",
        "platform sand qos map traffic-class 3 to network-qos 3",
        "platform trident mmu queue profile P\negress unicast queue 3 threshold 3",
        "platform trident mmu queue profile P\ningress priority-group 3 headroom bytes 1000",
        "platform trident mmu queue profile P\ningress headroom kbytes 1000",
        "no interface Ethernet1/1",
        "hostname two words",
        "ip address 192.0.2.1/31",
        "interface Ethernet1/1\nip address 192.0.2.1 255.255.255.254",
        "interface Ethernet1/1\nneighbor 192.0.2.1 remote-as 1",
        "ip access-list EDGE\nallow everything",
        "router bgp 65001\nmtu 9000",
        "commit",
        "show session-config diffs",
    ],
)
def test_near_misses_are_refused_and_change_nothing(lines: str) -> None:
    switch = Switch()
    *before, last = f"configure\n{lines}".splitlines()
    for line in before:
        assert switch.run(line) == "", line
    state = switch.device.running()
    assert switch.run(last) == INVALID, last
    assert switch.device.running() == state


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("show", INVALID),
        ("show qos", "% Incomplete command"),
        ("show running-config foo", INVALID),
        ("show interfaces Ethernet9/9", INVALID),
        ("configure session fabric-1 foo", INVALID),
        ("mtu 9214", INVALID),
        ("end", INVALID),
        ("commit", INVALID),
        ("te", "% Incomplete command"),
        ("co", "% Ambiguous command"),
        ("configure session x commit", "% Cannot commit session x (session does not exist)"),
    ],
)
def test_exec_refusals(leaf: Switch, line: str, says: str) -> None:
    assert leaf.run(line) == says


def test_incomplete_and_ambiguous_in_configuration(leaf: Switch) -> None:
    leaf.quiet("configure")
    assert leaf.run("qos map dscp 26 to") == "% Incomplete command"
    assert leaf.run("priority-flow-control pause watchdog default timeout") == "% Incomplete command"
    leaf.quiet("interface Ethernet1/1")
    assert leaf.run("description") == "% Incomplete command"
    assert leaf.run("priority-flow-control p 3 no-drop") == "% Ambiguous command"


def test_a_refused_line_does_not_end_the_session(leaf: Switch) -> None:
    leaf.quiet("configure session fabric-1\ninterface Ethernet1/1")
    assert leaf.run("mtu 9216").startswith("% Max MTU")
    leaf.quiet("no switchport\ncommit")
    assert leaf.block("interface Ethernet1/1") == ["no switchport"]


def test_a_virtual_switch_has_no_pfc_and_no_ecn() -> None:
    switch = Switch(replace(FACTS, model="cEOSLab"))
    switch.quiet("configure")
    assert switch.run("priority-flow-control pause watchdog action drop") == UNAVAILABLE
    switch.quiet("interface Ethernet1/1\nqos trust dscp")
    assert switch.run("priority-flow-control on") == UNAVAILABLE
    switch.quiet("tx-queue 3\nno priority\nbandwidth percent 50")
    assert switch.run(f"{ECN} 1 kbytes maximum-threshold 2 kbytes") == UNAVAILABLE


def test_slow_polling_is_taken_with_a_warning(leaf: Switch) -> None:
    line = "priority-flow-control pause watchdog default"
    leaf.quiet(f"configure\n{line} timeout 0.2\n{line} recovery-time 0.4")
    assert leaf.run(f"{line} polling-interval 0.101").startswith("! ")
    leaf.quiet(f"{line} polling-interval 0.1")


def test_platform_families() -> None:
    spine = Switch(replace(FACTS, model="DCS-7800R3-36P"))
    spine.quiet("configure\nplatform sand qos map traffic-class 3 to network-qos 3")
    assert spine.run("platform trident mmu queue profile P") == INVALID
    spine.quiet(
        "interface Ethernet1/1\ntx-queue 3\nrandom-detect ecn minimum-threshold 1 milliseconds "
        "maximum-threshold 2 milliseconds"
    )
    assert spine.run(f"{ECN} 1 segments maximum-threshold 2 segments") == INVALID
    assert spine.run("bandwidth guaranteed 100") == UNAVAILABLE


def test_trident_block(leaf: Switch) -> None:
    leaf.quiet(
        "configure\nplatform trident mmu queue profile RDMA\negress unicast queue 3 reserved 2032\n"
        "egress unicast queue 3 threshold 1/4\ningress headroom cells 250\ningress resume 4096\n"
        "ingress priority-group 3 threshold 2\nexit\nplatform trident mmu queue profile RDMA apply\n"
        "platform trident mmu headroom-pool limit cells 5000"
    )
    assert leaf.block("platform trident mmu queue profile RDMA") == [
        "egress unicast queue 3 reserved bytes 2032",
        "egress unicast queue 3 threshold 1/4",
        "ingress headroom cells 250",
        "ingress priority-group 3 threshold 2",
        "ingress resume 4096",
    ]
    assert "platform trident mmu queue profile RDMA apply\n" in leaf.device.running()
    assert "platform trident mmu headroom-pool limit cells 5000\n" in leaf.device.running()


# --- resets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("enter", "line", "resets"),
    [
        ("", "qos map dscp 0 1 2 to traffic-class 0", ("no qos map dscp 0 1 2",)),
        (
            "",
            "qos map dscp 0 to traffic-class 0 drop-precedence 1",
            ("no qos map dscp 0 to traffic-class 0",),
        ),
        ("", "qos map traffic-class 3 to tx-queue 4", ("no qos map traffic-class 3 to tx-queue 4",)),
        ("", "qos random-detect ecn allow non-ect", ("no qos random-detect ecn allow non-ect",)),
        ("", "hardware counter feature ecn out", ("no hardware counter feature ecn out",)),
        ("", "priority-flow-control all off", ("no priority-flow-control all off",)),
        (
            "",
            "priority-flow-control pause watchdog default timeout 0.2",
            ("no priority-flow-control pause watchdog default timeout",),
        ),
        (
            "",
            "priority-flow-control pause watchdog action drop",
            (
                "no priority-flow-control pause watchdog action",
                "default priority-flow-control pause watchdog action",
                "priority-flow-control pause watchdog action errdisable",
            ),
        ),
        (
            "",
            "priority-flow-control pause watchdog override action drop",
            ("no priority-flow-control pause watchdog override action drop",),
        ),
        ("", "no lldp run", ("lldp run", "default lldp run")),
        ("", "qos profile ROCE", ("no qos profile ROCE",)),
        ("", "platform trident mmu queue profile P", ("no platform trident mmu queue profile P",)),
        ("interface Ethernet1/1", "mtu 9214", ("no mtu", "default mtu")),
        ("interface Ethernet1/1", "l2 mtu 9000", ("no l2 mtu",)),
        ("interface Ethernet1/1", "no switchport", ("switchport", "default switchport")),
        ("interface Ethernet1/1", "no qos trust", ("default qos trust",)),
        ("interface Ethernet1/1", "qos trust dscp", ("default qos trust",)),
        ("interface Ethernet1/1", "flowcontrol send on", ("no flowcontrol send", "flowcontrol send off")),
        ("interface Ethernet1/1", "dcbx mode ieee", ("no dcbx mode",)),
        ("interface Ethernet1/1", "no lldp receive", ("lldp receive",)),
        ("interface Ethernet1/1", "service-profile ROCE", ("no service-profile",)),
        (
            "interface Ethernet1/1",
            "priority-flow-control on",
            ("no priority-flow-control", "no priority-flow-control on"),
        ),
        (
            "interface Ethernet1/1",
            "priority-flow-control priority 3 no-drop",
            (
                "no priority-flow-control priority 3",
                "no priority-flow-control priority 3 no-drop",
                "priority-flow-control priority 3 drop",
            ),
        ),
        (
            "interface Ethernet1/1",
            "no priority-flow-control pause watchdog",
            ("priority-flow-control pause watchdog",),
        ),
        (
            "interface Ethernet1/1",
            "priority-flow-control pause watchdog port timer timeout 0.2 polling-interval auto"
            " recovery-time 0.4 forced",
            ("no priority-flow-control pause watchdog port timer",),
        ),
        (
            "interface Ethernet1/1",
            "priority-flow-control pause watchdog port action drop",
            ("no priority-flow-control pause watchdog port action",),
        ),
        ("interface Ethernet1/1\nuc-tx-queue 3", "no priority", ("priority strict", "default priority")),
        ("interface Ethernet1/1\nuc-tx-queue 3", "bandwidth percent 50", ("no bandwidth percent",)),
        ("interface Ethernet1/1\nuc-tx-queue 3", "bandwidth guaranteed 100", ("no bandwidth guaranteed",)),
        ("interface Ethernet1/1\nuc-tx-queue 3", "shape rate 1000000", ("no shape rate",)),
        ("interface Ethernet1/1\nuc-tx-queue 3", "random-detect ecn count", ("no random-detect ecn count",)),
        (
            "interface Ethernet1/1\nuc-tx-queue 3",
            f"{ECN} 150 kbytes maximum-threshold 1500 kbytes max-mark-probability 100",
            ("no random-detect ecn", f"no {ECN}"),
        ),
        (
            "interface Ethernet1/1\nuc-tx-queue 3",
            "random-detect drop minimum-threshold 1 bytes maximum-threshold 2 bytes drop-probability 5",
            ("no random-detect drop",),
        ),
        ("", "hostname other", ("hostname leaf01",)),
        ("", "vlan 30", ("no vlan 30",)),
        ("", "ip access-list EDGE", ("no ip access-list EDGE",)),
        ("interface Ethernet1/1", "description x y", ("no description",)),
        ("interface Ethernet1/1", "shutdown", ("no shutdown",)),
        ("interface Ethernet1/1", "ip address 192.0.2.1/31", ("no ip address",)),
    ],
)
def test_reset_forms_return_to_the_blank_device(enter: str, line: str, resets: tuple[str, ...]) -> None:
    blank = Switch().device.running()
    for reset in resets:
        switch = Switch()
        switch.quiet(f"configure\n{enter}".strip())
        switch.quiet(line)
        assert switch.device.running() != blank, line
        switch.quiet(f"end\nconfigure\n{enter}".strip())
        switch.quiet(reset)
        assert switch.device.running() == blank, reset


def test_default_interface_resets_all_of_it(roce: Switch) -> None:
    roce.quiet("configure\ndefault interface Ethernet1/1")
    assert roce.block("interface Ethernet1/1") == []


# --- what is not ours ----------------------------------------------------------------------------


def test_foreign_configuration_stays_byte_equal_and_in_place() -> None:
    switch = Switch(seed=FOREIGN)
    text = switch.device.running()
    position = 0
    for line in FOREIGN.splitlines():
        position = text.find(f"{line}\n", position)
        assert position >= 0, line
    switch.run("configure session fabric-1")
    switch.quiet(EXAMPLE)
    switch.quiet("commit")
    after = switch.device.running()
    for line in FOREIGN.splitlines():
        assert f"{line}\n" in after, line
    again = EosDevice(replace(FACTS, seed=tuple(after.splitlines())), Clock())
    assert again.running() == after


def test_access_lists_number_sort_and_remove(leaf: Switch) -> None:
    leaf.quiet(
        "configure\nip access-list EDGE\npermit ip any any\ndeny udp any any\n15 remark between\nno 10"
    )
    assert leaf.block("ip access-list EDGE") == ["15 remark between", "20 deny udp any any"]
    assert leaf.run("20 permit ip any any") == "% Error: Duplicate sequence number 20"


def test_a_typed_password_is_not_kept_in_clear(leaf: Switch) -> None:
    leaf.quiet("configure\nusername bob secret hunter2")
    assert "hunter2" not in leaf.device.running()
    assert "username bob secret sha512 $6$" in leaf.device.running()


def test_a_seed_that_eos_would_refuse_is_an_error() -> None:
    with pytest.raises(ValueError, match="frobnicate"):
        Switch(seed="frobnicate")


def test_banners_keep_their_lines(leaf: Switch) -> None:
    leaf.quiet("configure\nbanner motd\nhello\n  % there\nEOF\nhostname after")
    assert "banner motd\nhello\n  % there\nEOF\n" in leaf.device.running()
    assert leaf.login.prompt() == "after(config)#"


def test_somebody_and_execute_change_the_running_configuration(leaf: Switch) -> None:
    said = leaf.device.somebody(("configure", "interface Ethernet3/1", "mtu 1500", "mtu 99999"))
    assert said == INVALID
    assert leaf.block("interface Ethernet3/1") == ["mtu 1500"]


# --- through the listener ------------------------------------------------------------------------


def test_netmiko_drives_it_through_the_listener(tmp_path: Path) -> None:
    pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")
    from netmiko import ConnectHandler

    from rdma_fabric.lab import fabric

    logging.getLogger("paramiko").setLevel(logging.ERROR)
    node = fabric.LabNode(replace(FACTS, seed=tuple(FOREIGN.splitlines())))
    fabric.up(tmp_path, [node], password="the-lab's")
    try:
        where = fabric.endpoints(tmp_path)["leaf01"]
        with ConnectHandler(
            device_type="arista_eos",
            host=where.host,
            port=where.port,
            username="ops",
            password="the-lab's",
            ssh_strict=True,
            alt_host_keys=True,
            alt_key_file=str(fabric.known_hosts(tmp_path)),
        ) as session:
            assert session.find_prompt() == "leaf01>"
            session.enable()
            assert session.check_enable_mode() and not session.check_config_mode()
            found = json.loads(str(session.send_command("show version | json | no-more")))
            assert found["modelName"] == FACTS.model
            session.config_mode(config_command="configure session fabric-1")
            assert session.check_config_mode()
            said = session.send_config_set(
                EXAMPLE.splitlines(), enter_config_mode=False, exit_config_mode=False
            )
            assert "%" not in said
            assert "+   mtu 9214" in session.send_command("show session-config diffs")
            session.send_command("commit timer 00:05:00", expect_string=r"leaf01#")
            session.send_command("configure session fabric-1 commit", expect_string=r"leaf01#")
            assert "Copy completed successfully." in session.save_config()
        assert "service-profile ROCE" in fabric.running(tmp_path, "leaf01")
        fabric.down(tmp_path, keep=True)
        fabric.up(tmp_path, [node], keep=True)
        assert "service-profile ROCE" in fabric.running(tmp_path, "leaf01")
        fabric.down(tmp_path)
        fabric.up(tmp_path, [node])
        assert "service-profile ROCE" not in fabric.running(tmp_path, "leaf01")
    finally:
        fabric.down(tmp_path)
