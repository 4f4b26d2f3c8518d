# ruff: noqa: E501 (tables as devices print them)
"""Counters as devices print them, read by every platform that shows any.

Layouts: EOS JSON as in recorded `show interfaces` and ANTA's tests; SONiC tables as in sonic-utilities' own
tests; NVUE members as public collectors read them; `ethtool -S` of mlx5 and bnxt by the kernel's documents and
sources, `ethtool -I --show-fec` by ethtool's own; perfquery of infiniband-diags 44.0. Numbers are ours.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from rdma_fabric import platforms
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_vitals as host
from rdma_fabric.platforms import _linux_load as loads
from rdma_fabric.platforms import _linux_paths as linux
from rdma_fabric.platforms import _sonic_vitals as sonic
from rdma_fabric.platforms._contract import Vital
from rdma_fabric.platforms._sonic_read import STORMS
from rdma_fabric.vitals import Count, Load, Loaded, Ping, Pong, Vitals, joined

Row = tuple[str, str, int, int, int]
"""(port, kind, value, priority, queue)."""


def rows(found: Vitals) -> set[Row]:
    return {(one.port, one.kind, one.value, one.priority, one.queue) for one in found.counts}


def switch(platform: str, *ports: str, version: str = "") -> Hardware:
    return Hardware((platform,), version=version, ports=tuple(PortHardware(port) for port in ports))


def read(hw: Hardware, answers: Mapping[str, str]) -> Vitals:
    """The answers must be to questions that are asked."""
    assert set(answers) <= set(platforms.vital_questions(hw))
    return platforms.vitals(answers, hw)


# ---------------------------------------------------------------- EOS

EOS_PORT = {"interfaceCounters": {"inDiscards": 0, "linkStatusChanges": 4, "totalInErrors": 0}}
EOS_ERRORS = {"inErrors": 9, "frameTooLongs": 0, "outErrors": 0, "fcsErrors": 5, "symbolErrors": 3}
EOS_QUEUES = """
Port       TxQ    Counter/pkts  Counter/bytes  Drop/pkts  Drop/bytes
------- ------ -------------- -------------- ---------- -----------
Et1/1      UC3     1234567890  5061727384950         11       45056
Et1/1      UC0             12           3456          0           0
Et1/1      MC3              1             64         99        9999
Et2/1      UC3              1             64         77        7777
"""


def test_eos() -> None:
    suffix = " | json | no-more"
    answers = {
        f"show interfaces{suffix}": json.dumps({"interfaces": {"Ethernet1/1": EOS_PORT, "Vlan1": {}}}),
        f"show interfaces counters errors{suffix}": json.dumps(
            {"interfaceErrorCounters": {"Ethernet1/1": EOS_ERRORS}}
        ),
        f"show interfaces counters discards{suffix}": json.dumps(
            {"inDiscardsTotal": 1, "interfaces": {"Ethernet1/1": {"inDiscards": 1, "outDiscards": 2}}}
        ),
        f"show priority-flow-control counters{suffix}": json.dumps(
            {"interfaceCounters": {"Ethernet1/1": {"rxFrames": 0, "txFrames": 12}}}
        ),
        f"show qos interfaces ecn counters queue{suffix}": json.dumps(
            {"intfQueueCounters": {"Ethernet1/1": {"queueCounters": {"0": "-", "3": "17"}}}}
        ),
        "show interfaces counters queue detail | no-more": EOS_QUEUES,
        f"show priority-flow-control counters watchdog{suffix}": json.dumps(
            {"interfaces": {"Ethernet1/1": {"txQueues": {"3": {"stuckCount": 1, "recoveryCount": 1}}}}}
        ),
        f"show interfaces phy detail{suffix}": json.dumps(
            {
                "interfacePhyStatuses": {
                    "Ethernet1/1": {"phyStatuses": [{"fec": {"uncorrectedCodewords": {"value": 8}}}]}
                }
            }
        ),
    }
    found = rows(read(switch("arista_eos", "Ethernet1/1"), answers))
    storms = {row for row in found if row[1] == "storms"}
    assert storms == {("Ethernet1/1", "storms", int(queue == 3), -1, queue) for queue in range(8)}
    assert found - storms == {
        ("Ethernet1/1", "discards", 1, -1, -1),
        ("Ethernet1/1", "discards", 2, -1, -1),
        ("Ethernet1/1", "down", 4, -1, -1),
        ("Ethernet1/1", "crc", 5, -1, -1),
        ("Ethernet1/1", "symbol", 3, -1, -1),
        ("Ethernet1/1", "pause-rx", 0, -1, -1),
        ("Ethernet1/1", "pause-tx", 12, -1, -1),
        ("Ethernet1/1", "marks", 17, -1, 3),
        ("Ethernet1/1", "drops", 11, -1, 3),
        ("Ethernet1/1", "drops", 0, -1, 0),
        ("Ethernet1/1", "fec", 8, -1, -1),
    }


# ---------------------------------------------------------------- SONiC

SONIC = {
    sonic.PORTS: """
      IFACE    STATE    RX_OK        RX_BPS    RX_UTIL    RX_ERR    RX_DRP    RX_OVR    TX_OK    TX_BPS    TX_UTIL    TX_ERR    TX_DRP    TX_OVR
-----------  -------  -------  ------------  ---------  --------  --------  --------  -------  --------  ---------  --------  --------  --------
  Ethernet0        U        8  2000.00 MB/s     64.00%        10     1,000       N/A       10  1.00 B/s        N/A       N/A         6       N/A
  Ethernet8        D        0      0.00 B/s      0.00%         0         0         0        0  0.00 B/s      0.00%         0         0         0
""",
    sonic.PAUSE: """
  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
---------  ------  ------  ------  ------  ------  ------  ------  ------
Ethernet0       0       0       0   1,203     N/A       0       0       0

  Port Tx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
---------  ------  ------  ------  ------  ------  ------  ------  ------
Ethernet0       0       0       0     213     N/A       0       0       0
""",
    sonic.QUEUES: """For namespace :
     Port    TxQ    Counter/pkts    Counter/bytes    Drop/pkts    Drop/bytes
---------  -----  --------------  ---------------  -----------  ------------
Ethernet0    UC3            8193           852072       91,786       9545744
Ethernet0    MC10            N/A              N/A            5           N/A

For namespace :
     Port    TxQ    Counter/pkts    Counter/bytes    Drop/pkts    Drop/bytes
---------  -----  --------------  ---------------  -----------  ------------
Ethernet8    UC3               0                0            1            64
""",
    sonic.MARKS: """
     Port    TxQ    WredDrp/pkts    WredDrp/bytes    EcnMarked/pkts    EcnMarked/bytes
---------  -----  --------------  ---------------  ----------------  -----------------
Ethernet0    UC0             N/A              N/A               N/A                N/A
Ethernet0    UC3             N/A              N/A         1,032,731      1,549,096,500
""",
    sonic.FEC: """
      IFACE    STATE    FEC_CORR    FEC_UNCORR    FEC_SYMBOL_ERR    FEC_PRE_BER    FEC_POST_BER
-----------  -------  ----------  ------------  ----------------  -------------  --------------
  Ethernet0        U     130,402             3                 4       1.48e-20        0.00e+00
""",
    STORMS: """
      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP    TX LAST OK/DROP    RX LAST OK/DROP
-----------  -----------  -------------------------  ------------  ------------  -----------------  -----------------
Ethernet0:3  operational                        2/2           0/0           0/0                0/0                0/0
""",
}  # fmt: skip


def test_sonic() -> None:
    found = rows(read(switch("sonic", "Ethernet0"), SONIC))
    quiet = {row for row in found if row[1].startswith("pause") and row[2] == 0}
    assert {row[3] for row in quiet} == {0, 1, 2, 5, 6, 7}
    assert found - quiet == {
        ("Ethernet0", "errors", 10, -1, -1),
        ("Ethernet0", "discards", 1000, -1, -1),
        ("Ethernet0", "discards", 6, -1, -1),
        ("Ethernet0", "pause-rx", 1203, 3, -1),
        ("Ethernet0", "pause-tx", 213, 3, -1),
        ("Ethernet0", "drops", 91786, -1, 3),
        ("Ethernet0", "marks", 1032731, -1, 3),
        ("Ethernet0", "fec", 3, -1, -1),
        ("Ethernet0", "storms", 2, -1, 3),
    }


def test_sonic_reads_every_table_of_an_answer() -> None:
    found = read(switch("sonic", "Ethernet8"), {sonic.QUEUES: SONIC[sonic.QUEUES]})
    assert rows(found) == {("Ethernet8", "drops", 1, -1, 3)}


# ---------------------------------------------------------------- Cumulus


@pytest.mark.parametrize(
    ("version", "words"), [("5.14", "counters qos"), ("5.4.0", "qos counters"), ("", "counters qos")]
)
def test_cumulus(version: str, words: str) -> None:
    queue = {"ecn-marked-frames": 100, "tx-frames": 1000, "tx-uc-buffer-discards": 4, "wred-discards": 5}
    pause = {"rx-pause-frames": 200, "tx-pause-frames": 300, "rx-pause-duration": "0 Bytes"}
    stats = {"in-errors": 6, "in-drops": 7, "out-drops": 8, "carrier-transitions": 9, "in-bytes": "300 Bytes"}
    answers = {
        "nv show interface swp1 link stats -o json": json.dumps(stats),
        f"nv show interface swp1 {words} -o json": json.dumps(
            {"egress-queue-stats": {"3": queue}, "pfc-stats": {"3": pause}, "port-stats": {"rx-stats": {}}}
        ),
    }
    assert rows(read(switch("cumulus", "swp1", version=version), answers)) == {
        ("swp1", "errors", 6, -1, -1),
        ("swp1", "discards", 7, -1, -1),
        ("swp1", "discards", 8, -1, -1),
        ("swp1", "down", 9, -1, -1),
        ("swp1", "pause-rx", 200, 3, -1),
        ("swp1", "pause-tx", 300, 3, -1),
        ("swp1", "marks", 100, -1, 3),
        ("swp1", "drops", 4, -1, 3),
        ("swp1", "drops", 5, -1, 3),
    }


# ---------------------------------------------------------------- hosts


def server(*ports: PortHardware) -> Hardware:
    nics = sorted({f"nic_{port.nic}" for port in ports if port.nic})
    return Hardware(("linux", *nics), ports=ports)


def framed(**parts: str) -> str:
    """Sections as the scripts print them; names hold "_" for the blank."""
    return "".join(f"@@{name.replace('_', ' ', 1)}\n{text}\n@=0\n" for name, text in parts.items())


def asked(hw: Hardware, *texts: str) -> dict[str, str]:
    return dict(zip(platforms.vital_questions(hw), texts, strict=True))


NETDEV = """carrier_down_count:2
statistics/rx_crc_errors:1
statistics/rx_fifo_errors:3
statistics/rx_missed_errors:4"""
ADDRESSES = json.dumps(
    [
        {
            "ifname": "eth0",
            "addr_info": [
                {"family": "inet", "local": "192.0.2.1", "prefixlen": 31, "scope": "global"},
                {"family": "inet6", "local": "2001:db8::1", "prefixlen": 64, "scope": "global"},
                {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"},
                {"family": "inet6", "local": "2001:db8::2", "scope": "global", "deprecated": True},
            ],
        }
    ]
)
MLX5 = """NIC statistics:
     rx_packets: 1897223104
     rx_prio3_pause: 14
     rx_prio3_pause_duration: 55
     tx_prio3_pause: 15
     rx_prio3_discards: 16
     rx_discards_phy: 17
     tx_discards_phy: 18
     rx_crc_errors_phy: 19
     rx_symbol_err_phy: 20
     rx_corrected_bits_phy: 14648
     link_down_events_phy: 21"""
FEC = """FEC parameters for eth0:
Supported/Configured FEC encodings: Auto
Active FEC encoding: RS
Statistics:
  corrected_blocks: 256
    Lane 0: 255
  uncorrectable_blocks: 145
    Lane 0: 128"""
VERBS = "np_ecn_marked_roce_packets:22\nnp_cnp_sent:1\npacket_seq_err:23\nrx_icrc_encapsulated:24"


def test_a_host_of_its_kernel_alone() -> None:
    hw = server(PortHardware("eth0", nic="generic"))
    found = read(hw, asked(hw, framed(netdev_eth0=NETDEV, addresses_eth0=ADDRESSES)))
    assert rows(found) == {
        ("eth0", "crc", 1, -1, -1),
        ("eth0", "discards", 3, -1, -1),
        ("eth0", "discards", 4, -1, -1),
        ("eth0", "down", 2, -1, -1),
    }
    assert found.addresses == (("eth0", "192.0.2.1"), ("eth0", "2001:db8::1"))


def test_mlx5_knows_its_ports_better_than_the_kernel() -> None:
    hw = server(PortHardware("eth0", nic="mlx5", rdma="mlx5_0"))
    nic = framed(nic_eth0=MLX5, fec_eth0=FEC, rdma_eth0=VERBS)
    found = rows(read(hw, asked(hw, framed(netdev_eth0=NETDEV), nic)))
    assert found == {
        ("eth0", "pause-rx", 14, 3, -1),
        ("eth0", "pause-tx", 15, 3, -1),
        ("eth0", "drops", 16, 3, -1),
        ("eth0", "discards", 17, -1, -1),
        ("eth0", "discards", 18, -1, -1),
        ("eth0", "crc", 19, -1, -1),
        ("eth0", "crc", 24, -1, -1),
        ("eth0", "symbol", 20, -1, -1),
        ("eth0", "down", 21, -1, -1),
        ("eth0", "marks", 22, -1, -1),
        ("eth0", "retries", 23, -1, -1),
        ("eth0", "fec", 145, -1, -1),
    }


def test_bnxt() -> None:
    hw = server(PortHardware("eth8", nic="bnxt", rdma="bnxt_re0"))
    counters = (
        ("rx_pfc_ena_frames_pri3", 1),
        ("tx_pfc_ena_frames_pri3", 2),
        ("rx_total_discard_pkts", 3),
        ("rx_fcs_err_frames", 4),
        ("rx_pcs_symbol_err", 5),
        ("link_down_events", 6),
        ("rx_discard_packets_cos0", 7),
        ("rx_pause_frames", 8),
    )
    text = "NIC statistics:\n" + "\n".join(f"     {name}: {value}" for name, value in counters)
    verbs = "rx_ecn_marked_pkts:9\nseq_err_naks_rcvd:10"
    found = rows(read(hw, asked(hw, "", framed(nic_eth8=text, rdma_eth8=verbs))))
    assert found == {
        ("eth8", "pause-rx", 1, 3, -1),
        ("eth8", "pause-tx", 2, 3, -1),
        ("eth8", "discards", 3, -1, -1),
        ("eth8", "crc", 4, -1, -1),
        ("eth8", "symbol", 5, -1, -1),
        ("eth8", "down", 6, -1, -1),
        ("eth8", "marks", 9, -1, -1),
        ("eth8", "retries", 10, -1, -1),
    }


PERFQUERY = """# Port counters: Lid 6 port 1 (CapMask: 0x1400)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............65535
LinkErrorRecoveryCounter:........1
LinkDownedCounter:...............2
PortRcvErrors:...................3
PortRcvSwitchRelayErrors:........4
PortXmitDiscards:................5
LocalLinkIntegrityErrors:........6
ExcessiveBufferOverrunErrors:....7
PortXmitData:....................55178210
PortXmitWait:....................8"""
PORTINFO = """# Port info: Lid 6 port 1
LinkState:.......................Active
LinkWidthSupported:..............1X or 4X
LinkWidthActive:.................1X"""


def test_infiniband() -> None:
    hw = server(PortHardware("ib0", nic="ib", rdma="mlx5_0"))
    found = read(hw, asked(hw, "", framed(counters_ib0=PERFQUERY, info_ib0=PORTINFO)))
    assert rows(found) == {
        ("ib0", "symbol", 65535, -1, -1),
        ("ib0", "errors", 1, -1, -1),
        ("ib0", "down", 2, -1, -1),
        ("ib0", "errors", 3, -1, -1),
        ("ib0", "discards", 5, -1, -1),
        ("ib0", "errors", 6, -1, -1),
        ("ib0", "errors", 7, -1, -1),
        ("ib0", "waits", 8, -1, -1),
    }
    assert {one.ceiling for one in found.counts if one.kind == "symbol"} == {65535}
    assert found.lanes == (("ib0", 1),)
    down = framed(info_ib0=PORTINFO.replace("Active\n", "Down\n", 1))
    assert read(hw, asked(hw, "", down)).lanes == ()


def test_bonds_have_addresses_and_no_counters_of_a_cable() -> None:
    hw = server(PortHardware("bond0", kind="bond", nic="mlx5"), PortHardware("eth0", nic="mlx5"))
    assert [question.count("bond0") for question in platforms.vital_questions(hw)] == [1, 0]
    text = framed(netdev_bond0=NETDEV, addresses_bond0=ADDRESSES)
    found = read(hw, asked(hw, text, ""))
    assert found == Vitals((), (("bond0", "192.0.2.1"), ("bond0", "2001:db8::1")))


def test_many_ports_are_asked_in_several_lines() -> None:
    ports = [PortHardware(f"eth{number}", nic="mlx5") for number in range(25)]
    assert len(host.questions(ports, "nic")) == 2
    assert max(map(len, host.questions(ports, "nic"))) < 4096


def test_irdma() -> None:
    hw = server(PortHardware("eth4", nic="irdma", rdma="rdmap1s0f0"))
    counters = (
        ("rx_priority_3_xoff.nic", 1),
        ("tx_priority_3_xoff.nic", 2),
        ("rx_dropped.nic", 3),
        ("rx_crc_errors.nic", 4),
        ("illegal_bytes.nic", 5),
        ("rx_priority_3_xon.nic", 6),
    )
    text = "NIC statistics:\n" + "\n".join(f"     {name}: {value}" for name, value in counters)
    found = rows(read(hw, asked(hw, "", framed(nic_eth4=text, rdma_eth4="RxECNMrkd:7\ncnpSent:8"))))
    assert found == {
        ("eth4", "pause-rx", 1, 3, -1),
        ("eth4", "pause-tx", 2, 3, -1),
        ("eth4", "discards", 3, -1, -1),
        ("eth4", "crc", 4, -1, -1),
        ("eth4", "symbol", 5, -1, -1),
        ("eth4", "marks", 7, -1, -1),
    }


COUNTING = [key for key in tuple(platforms.keys()) if isinstance(platforms.platform(key), Vital)]


@pytest.mark.parametrize("key", COUNTING)
@pytest.mark.parametrize(
    "answer", ["", "% Invalid input", "{", "[1, 2]", '{"interfaces": 3}', "@@x", "é\x00"]
)
def test_nothing_that_a_device_says_is_a_number_by_mistake(key: str, answer: str) -> None:
    part = platforms.platform(key)
    assert isinstance(part, Vital)
    port = PortHardware("eth0", nic=key.removeprefix("nic_"))
    hw = Hardware((key,), ports=(port,))
    found = part.vitals(dict.fromkeys(part.vital_questions(hw), answer), hw)
    zeros = {one for one in found.counts if one.kind == "storms" and one.value == 0}
    assert found == Vitals(tuple(one for one in found.counts if one in zeros))


def test_a_later_part_counts_better_and_kinds_of_others_stay() -> None:
    first = Vitals((Count("a", "crc", 1, "x"), Count("a", "down", 2, "y"), Count("b", "crc", 3, "x")))
    second = Vitals((Count("a", "crc", 9, "z"),), (("a", "192.0.2.1"),))
    assert {one.value for one in joined([first, second]).counts} == {9, 2, 3}
    assert joined([]) == Vitals()


# ---------------------------------------------------------------- paths


V4, V6 = Ping("eth0", "10.200.0.2", 4192, 104), Ping("eth0", "fd00:200::2", 4192)
SILENT = """PING 10.200.0.2 (10.200.0.2) from 10.200.0.1 eth0: 4164(4192) bytes of data.

--- 10.200.0.2 ping statistics ---
3 packets transmitted, 0 received, 100% packet loss, time 2044ms
"""
ROUTER = SILENT.replace("\n\n", "\nFrom 192.0.2.7 icmp_seq=1 Frag needed and DF set (mtu = 1500)\n\n", 1)
LOCAL = SILENT.replace("\n\n", "\nping: local error: message too long, mtu=1500\n\n", 1)
ANSWERED = """PING 10.200.0.2 (10.200.0.2) from 10.200.0.1 eth0: 56(84) bytes of data.
64 bytes from 10.200.0.2: icmp_seq=1 ttl=63 time=0.051 ms
small=0"""


def pong(text: str, status: int, ping: Ping = V4) -> Pong:
    (question,) = linux.questions((ping,))
    (found,) = linux.pongs({question: f"@@path eth0 {ping.address}\n{text}\n@={status}\n"}, (ping,))
    return found


def test_a_test_is_as_large_as_rdma_needs() -> None:
    assert (V4.payload, V6.payload) == (4164, 4144)
    (question,) = linux.questions((V4, V6))
    assert 'p "eth0" "10.200.0.2" 4164 104 &' in question
    assert 'p "eth0" "fd00:200::2" 4144 0 &' in question
    assert len(linux.questions((V4,) * 17)) == 2


@pytest.mark.parametrize(
    ("text", "status", "wanted"),
    [
        ("64 bytes from 10.200.0.2: icmp_seq=1 ttl=63 time=0.1 ms\n", 0, Pong(True, True)),
        (SILENT + ANSWERED, 1, Pong(False, True)),
        (SILENT + SILENT + "small=1", 1, Pong(False, False)),
        (ROUTER + ANSWERED, 1, Pong(False, True, 1500)),
        (LOCAL + ANSWERED, 1, Pong(False, True, 1500)),
        (
            "ping: connect: Network is unreachable\nping: connect: Network is unreachable\nsmall=2",
            2,
            Pong(False),
        ),
        ("sh: 1: ping: not found\nsmall=127", 127, Pong(False, trouble="the host has no ping")),
    ],
)
def test_what_came_back(text: str, status: int, wanted: Pong) -> None:
    assert pong(text, status) == wanted


def test_what_a_ping_without_the_option_says_is_no_judgement() -> None:
    found = pong("ping: unrecognized option: M\nBusyBox v1.36.1\nUsage: ping [OPTIONS] HOST\nsmall=1", 1)
    assert found.trouble == "ping could not be run: ping: unrecognized option: M"
    assert linux.pongs({}, (V4,))[0].trouble


def test_only_hosts_test_paths() -> None:
    assert platforms.tester(server(PortHardware("eth0"))) is not None
    assert platforms.tester(switch("sonic", "Ethernet0")) is None


# ---------------------------------------------------------------- load

BW = """
************************************
* Waiting for client to connect... *
************************************
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
~
~
 65536      3725512          0.00               390.65             0.745102
---------------------------------------------------------------------------------------

@@end

@=0
"""
NCCL = """# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20
  8589934592    2147483648     float     sum      -1    40012  214.68  370.17      0    39999  214.75  370.29      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 362.751
#

@@end

@=0
"""


def test_the_program_is_told_what_the_intent_says() -> None:
    load = Load("eth0", "mlx5_0", 18515, 5, to="10.200.0.2", gid=3, tos=104)
    assert (
        "timeout -k 2 20 ib_write_bw -F --report_gbits -D 5 -p 18515 -d mlx5_0 -x 3 --tclass=104 10.200.0.2 <"
        in (loads.write_bw(load))
    )
    waiting = Load("eth0", "mlx5_0", 18516, 5, cm=True, gid=3)
    assert "ib_write_bw -F --report_gbits -D 5 -p 18516 -d mlx5_0 -R <" in loads.write_bw(waiting)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (BW, Loaded(390.65)),
        (BW.replace("@=0", "@=1"), Loaded(failed="65536      3725512          0.00               390.65             0.745102")),
        ("Couldn't connect to 10.200.0.2:18515\n~\n@@end\n@=1", Loaded(failed="Couldn't connect to 10.200.0.2:18515")),
        ("~\n@@end\n@=124", Loaded(failed="no end in time")),
        ("~\n@@end\n@=1", Loaded(failed="it ended without a word")),
        ("timeout: failed to run command\n@@end\n@=127", Loaded(trouble="the host has no ib_write_bw")),
        ("", Loaded(trouble="the host did not say what came of it")),
    ],
)  # fmt: skip
def test_bandwidth(text: str, wanted: Loaded) -> None:
    assert loads.bandwidth(text) == wanted


def test_bus_bandwidth() -> None:
    assert loads.bus_bandwidth(NCCL) == Loaded(362.751)
    wrong = NCCL.replace("values : 0 OK", "values : 3 FAILED")
    assert loads.bus_bandwidth(wrong) == Loaded(failed="3 wrong results")
    assert loads.bus_bandwidth("@@end\n@=127").trouble == "the host has no program"


def test_a_program_ends_with_the_listener(tmp_path: Path) -> None:
    """The reader goes away; the program, which would run for a minute, does not stay."""
    mark, program = tmp_path / "ended", tmp_path / "program.sh"
    ended = f'trap "" PIPE; trap "touch {mark}; exit" TERM; echo ready; while :; do sleep 0.1; done'
    program.write_text(ended)
    shell = subprocess.Popen(loads.script(f"sh {program}", 60), shell=True, stdout=subprocess.PIPE)
    assert shell.stdout is not None
    while shell.stdout.readline() != b"ready\n":
        assert shell.poll() is None
    shell.stdout.close()
    shell.wait(20)
    end = time.monotonic() + 10
    while not mark.exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_an_address_of_a_host_is_an_address() -> None:
    """Other hosts are given it as an argument."""
    odd = json.dumps([{"addr_info": [{"scope": "global", "local": "10.0.0.1; reboot"}]}])
    hw = server(PortHardware("eth0", nic="generic"))
    assert read(hw, asked(hw, framed(addresses_eth0=odd))).addresses == ()
