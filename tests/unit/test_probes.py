"""What a host can judge by itself: every field that it may have, told as `drift` tells it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric import platforms
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_probes as local
from rdma_fabric.platforms._contract import Change, Probe, Put
from rdma_fabric.platforms._host_files import NETDEV_BOUND
from rdma_fabric.settings import deviations
from rdma_fabric.state import (
    NOT_READ,
    UNMANAGED,
    Amount,
    ClassState,
    IbPort,
    Marking,
    Mtu,
    NicState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    SystemState,
    WatchdogTimers,
    differences,
)
from tests.support.local_check import Says

OBSERVE = Path(__file__).resolve().parents[1] / "observe"
DSCP = tuple({26: 3, 48: 6}.get(point, 0) for point in range(64))
OFF = ClassState(pfc_tx=False, pfc_rx=False, watchdog=False, share=Share("dwrr", 0))
CLASSES = {
    0: replace(OFF, share=Share("dwrr", 50, 10), group=0),
    3: ClassState(pfc_tx=True, pfc_rx=True, watchdog=True, share=Share("dwrr", 50, None), group=1),
    6: replace(OFF, share=Share("strict")),
}
ROCE = PortSettings(
    Mtu(ip=9000),
    QosState(
        trust="dscp",
        dscp_to_priority=DSCP,
        classes=tuple(CLASSES.get(p, OFF) for p in range(8)),
        watchdog=WatchdogTimers(200, 400, UNMANAGED, "drop"),
        dcbx="none",
        global_pause=False,
        cable_m=15,
    ),
    Marking(104, 104, True, 46, 5, (3,), (3,), (("np_min_time_between_cnps", "8"), ("rp_ai_rate", "10"))),
)
SIZES = {3: ClassState(pfc_tx=True, pfc_rx=True, headroom=Amount(262144), group=1)}
CARD = PortSettings(
    Mtu(ip=9000),
    QosState(
        classes=tuple(
            SIZES.get(p, ClassState(pfc_tx=False, pfc_rx=False, headroom=Amount(131072), group=0))
            for p in range(8)
        )
    ),
    nic=NicState(nv=(("ATS_ENABLED", "0"), ("CNP_DSCP", "48"))),
)
SYSTEM = SystemState(
    sysctl=(("net.core.rmem_max", "1048576"), ("net.ipv4.tcp_rmem", "4096 87380 4194304")),
    modules=(("ib_uverbs", True), ("rdma_cm", True)),
    module_options=(("ib_core.recv_queue_size", "512"), ("mlx5_core.probe_vf", "0")),
    limits=(("memlock", "unlimited"), ("slurmd.memlock", "64"), ("stack", "8192/unlimited")),
    environment=(("NCCL_IB_TC", "104"), ("UCX_TLS", "rc,sm x")),
)
IB = PortSettings(ib=IbPort("active", 2048, (0x8001, 0xFFFF), (0, 1, *(0,) * 14), "datagram", (0x8001,)))


def port(name: str, nic: str, **more: Any) -> PortHardware:
    return PortHardware(name, speed_gbps=400, nic=nic, rdma=f"{nic}_0", **more)


def host(stack: str, *ports: tuple[PortHardware, PortSettings]) -> tuple[NodeState, Hardware]:
    """A realized state and its hardware."""
    nics = sorted({f"nic_{one.nic}" for one, _ in ports})
    hw = Hardware(("linux", *nics), ports=tuple(one for one, _ in ports), options=(("stack", stack),))
    wish = NodeState(SYSTEM, tuple(PortState(one.name, one.kind, settings) for one, settings in ports))
    return platforms.realize(wish, hw).state, hw


HOSTS = {
    "mlx5 ofed": host("ofed", (port("eth0", "mlx5"), ROCE)),
    "mlx5 inbox": host("inbox", (port("eth0", "mlx5"), ROCE)),
    "mlx5 card": host("ofed", (port("eth0", "mlx5"), CARD)),
    "generic": host("inbox", (port("eth0", "generic"), ROCE)),
    "ib": host("inbox", (port("ib0", "ib"), IB)),
    "bnxt": host("ofed", (port("eth0", "bnxt"), ROCE)),
    "irdma ofed": host("ofed", (port("eth0", "irdma"), ROCE)),
    "irdma inbox": host("inbox", (port("eth0", "irdma"), ROCE)),
}


@pytest.mark.parametrize("kind", HOSTS)
def test_every_field_of_a_host_has_a_probe_and_is_named_as_in_drift(kind: str) -> None:
    wanted, hw = HOSTS[kind]
    blank = NodeState(SystemState(), tuple(replace(one, settings=NOT_READ) for one in wanted.ports))
    owned = {(one.port, one.key, one.title) for one in deviations(differences(wanted, blank), wanted, blank)}
    probes = platforms.probes(wanted, hw)
    told = {
        (one.port, one.key.replace("{at}", at), one.title.replace("{at}", at))
        for one in probes
        for at in (map(str, range(8)) if "{at}" in one.key else ("",))
    }
    assert owned - told == set()
    beyond = {key for _, key, _ in told - owned if not key.startswith("qos.classes.")}
    assert beyond <= {"link", "speed", "owners", "nic.rdma_mtu"}


def test_every_part_of_a_host_says_what_it_can_judge() -> None:
    keys = platforms.keys()
    for key in keys:
        part = platforms.platform(key)
        assert hasattr(part, "probes") == (part.channel == "files"), key


def test_equal_settings_give_equal_files_without_names() -> None:
    wanted, hw = HOSTS["mlx5 ofed"]
    first, second = (local.puts(platforms.probes(wanted, hw)) for _ in range(2))
    assert first == second
    text = first[0].text or ""
    assert "managed by fabric" in text.splitlines()[0] and not re.search(r"gpu\d|leaf|hostname", text)


# ---------------------------------------------------------------- read as the parsers read


def tool_answers(sections: dict[str, str]) -> dict[str, str | int]:
    """Sections of an observation -> what the programs print."""
    commands = {
        "qos": "mlnx_qos -i eth0 -a",
        "pfc": "dcb -j pfc show dev eth0",
        "ets": "dcb -j ets show dev eth0",
        "buffer": "dcb -j buffer show dev eth0",
        "app": "dcb -j app show dev eth0",
        "dcbx": "dcb dcbx show dev eth0",
        "pause": "ethtool -a eth0",
        "stall": "ethtool --get-tunable eth0 pfc-prevention-tout",
    }
    return {commands[name]: text for name, text in sections.items() if name in commands}


def qos(probes: tuple[Probe, ...]) -> tuple[Probe, ...]:
    """Those that mlnx_qos and dcb answer."""
    return tuple(one for one in probes if one.readings[0].argv[:1] == ("mlnx_qos",))


WORKED = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:{zero},
\tprio:3 dscp:26,
\tprio:6 dscp:48,
Receive buffer size (bytes): 131072,131072,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 15
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
\tbuffer      0   0   0   1   0   0   0   0
tc: 0 ratelimit: 40.0 Gbps, tsa: ets, bw: 50%
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
""".replace("{zero}", ",".join(f"{p:02d}" for p in range(64) if p not in (26, 48)))  # fmt: skip
ETS = (
    '{{"willing":false,"ets_cap":8,"cbs":false,"tc_bw":[{bw}],"pg_bw":[0,0,0,0,0,0,0,0],'
    '"tc_tsa":[{tsa}],"prio_tc":[0,1,2,3,4,5,6,7]}}'
)
DCB = {
    "pfc": '{"pfc_cap":8,"delay":15,"prio_pfc":[false,false,false,true,false,false,false,false]}',
    "ets": ETS.format(
        bw="50,0,0,50,0,0,100,0", tsa=",".join(f'"{"strict" if tc == 6 else "ets"}"' for tc in range(8))
    ),
    "buffer": '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[131072,131072,0,0,0,0,0,0]}',
    "app": '{"dscp_prio":['
    + ",".join(f'[{p},{DSCP[p]}," "]' for p in range(64))
    + '],"port_prio":[[4791,3," "]]}',
    "dcbx": "host ieee \n",
}
EDITS = (
    ("Firmware", "DCBX mode: OS", "DCBX mode: Firmware", ["eth0 DCBX mode: Firmware"]),
    ("trust", "Priority trust state: dscp", "Priority trust state: pcp", ["eth0 trust: pcp"]),
    ("a point", "prio:3 dscp:26,", "prio:4 dscp:26,", ["eth0 DSCP map: 26->4"]),
    ("cable", "Cable len: 15", "Cable len: 7", ["eth0 cable length: 7"]),
    ("pfc", "enabled     0   0   0   1", "enabled     0   0   0   0", ["eth0 PFC priorities: none"]),
    (
        "buffer",
        "buffer      0   0   0   1",
        "buffer      0   0   0   0",
        ["eth0 priority 3 priority group: 0"],
    ),
    ("rate", "ratelimit: 40.0 Gbps", "ratelimit: 50.0 Gbps", ["eth0 priority 0 scheduler: 50"]),
    ("weight", "bw: 50%\n\t priority:  3", "bw: 40%\n\t priority:  3", ["eth0 priority 3 scheduler: 40"]),
    ("strict", "tsa: strict", "tsa: ets, bw: 0%", ["eth0 priority 6 scheduler: ets"]),
)


@pytest.mark.parametrize(("what", "old", "new", "told"), EDITS, ids=[one[0] for one in EDITS])
def test_mlnx_qos(what: str, old: str, new: str, told: list[str], tmp_path: Path) -> None:
    wanted, hw = HOSTS["mlx5 ofed"]
    probes = qos(platforms.probes(wanted, hw))
    assert Says(tool_answers({"qos": WORKED})).check(probes, tmp_path) == ([], [])
    assert WORKED.count(old) == 1
    said = WORKED.replace(old, new)
    if what == "trust":  # there is no list then
        said = re.sub(r"dscp2prio mapping:\n(\tprio.*\n)+", "", said)
    assert Says(tool_answers({"qos": said})).check(probes, tmp_path) == (told, [])


DCB_EDITS = (
    ("pfc", "pfc", "false,false,false,true", "false,false,false,false", ["eth0 PFC priorities: none"]),
    ("cable", "pfc", '"delay":15', '"delay":7', ["eth0 cable length: 7"]),
    ("weight", "ets", "[50,0,0,50", "[60,0,0,50", ["eth0 priority 0 scheduler: 60"]),
    ("queue", "ets", '"prio_tc":[0,1', '"prio_tc":[1,1', ["eth0 priority 0 queue: 1"]),
    ("buffer", "buffer", "[0,0,0,1", "[0,0,0,0", ["eth0 priority 3 priority group: 0"]),
    ("a point", "app", '[26,3," "]', '[26,0," "]', ["eth0 DSCP map: 26->0"]),
    ("owner", "dcbx", "host ieee", "lld-managed cee", ["eth0 DCBX mode: firmware"]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("what", "object", "old", "new", "told"), DCB_EDITS, ids=[one[0] for one in DCB_EDITS]
)
def test_dcb(what: str, object: str, old: str, new: str, told: list[str], tmp_path: Path) -> None:
    """Where there is no mlnx_qos; dcb knows no rate limits."""
    wanted, hw = HOSTS["mlx5 ofed"]
    probes = tuple(one for one in qos(platforms.probes(wanted, hw)) if len(one.readings) > 1)
    assert Says(tool_answers(DCB)).check(probes, tmp_path) == ([], [])
    assert old in DCB[object]
    said = {**DCB, object: DCB[object].replace(old, new)}
    assert Says(tool_answers(said)).check(probes, tmp_path) == (told, [])


BUFFERS = "Receive buffer size (bytes): {},{},0,0,0,0,0,0,max_buffer_size=524032\n"


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ((131072, 262144), []),
        ((131072, 131072), ["eth0 priority 3 headroom: 131072"]),
        ((65536, 262144), [f"eth0 priority {p} headroom: 65536" for p in (0, 1, 2, 4, 5, 6, 7)]),
    ],
)
@pytest.mark.parametrize("tool", ["mlnx_qos", "dcb"])
def test_sizes_of_receive_buffers(tool: str, sizes: tuple[int, int], told: list[str], tmp_path: Path) -> None:
    """One size is that of all priorities of the buffer."""
    wanted, hw = HOSTS["mlx5 card"]
    probes = tuple(one for one in platforms.probes(wanted, hw) if one.key.endswith(".headroom"))
    listed = f'{{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[{sizes[0]},{sizes[1]},0,0,0,0,0,0]}}'
    said = {"qos": BUFFERS.format(*sizes)} if tool == "mlnx_qos" else {"buffer": listed}
    assert Says(tool_answers(said)).check(probes, tmp_path) == (told, [])
    untold = [f"eth0 priority {priority} headroom" for priority in range(8)]
    assert Says(tool_answers({"qos": "Receive buffer size"})).check(probes, tmp_path)[1] in (
        untold,
        untold[:1],
    )


@pytest.mark.parametrize(
    ("said", "told", "unknown"),
    [
        ("ATS_ENABLED 0\nCNP_DSCP 48\n", [], []),
        ("ATS_ENABLED 0\nCNP_DSCP 4\n", ["eth0 NV CNP_DSCP: 4"], []),
        (
            "ATS_ENABLED 1 now, 0 after a reset\nCNP_DSCP 48 now, 4 after a reset\n",
            ["eth0 NV ATS_ENABLED: 1 now, 0 after a reset", "eth0 NV CNP_DSCP: 48 now, 4 after a reset"],
            [],
        ),
        ("ATS_ENABLED 0\n", [], ["eth0 NV CNP_DSCP"]),
        (1, [], ["eth0 NV ATS_ENABLED", "eth0 NV CNP_DSCP"]),
    ],
)
def test_memory_of_a_card(said: str | int, told: list[str], unknown: list[str], tmp_path: Path) -> None:
    """Right is what is in force and stays so: a setting that waits for a reset is told with both values."""
    wanted, hw = HOSTS["mlx5 card"]
    probes = tuple(one for one in platforms.probes(wanted, hw) if one.key.startswith("nic.nv."))
    (argv,) = {one.readings[0].argv for one in probes}
    assert argv == ("eth0", "{bdf}", "ATS_ENABLED", "CNP_DSCP")
    found = Says({"eth0 device ATS_ENABLED CNP_DSCP": said}).rows(probes, tmp_path)
    names = [f"{one['port']} {one['setting']}: {one['found']}" for one in found[0]]
    assert (names, [f"{one['port']} {one['setting']}" for one in found[1]]) == (told, unknown)
    assert all("reset of the card" in one["help"] for one in found[0])


def test_without_entries_dcb_means_trust_pcp(tmp_path: Path) -> None:
    wanted, hw = HOSTS["mlx5 ofed"]
    probes = tuple(one for one in qos(platforms.probes(wanted, hw)) if len(one.readings) > 1)
    said = tool_answers({**DCB, "app": "{}"})
    assert Says(said).check(probes, tmp_path) == (["eth0 trust: pcp"], [])


@pytest.mark.parametrize("said", ["", "Unknown option\n", "tc: 0\nPriority trust state:\n", 1, None])
def test_what_is_not_understood_could_not_be_judged(said: str | int | None, tmp_path: Path) -> None:
    wanted, hw = HOSTS["mlx5 ofed"]
    probes = qos(platforms.probes(wanted, hw))
    answers: dict[str, str | int] = {} if said is None else {"mlnx_qos -i eth0 -a": said}
    wrong, unknown = Says(answers).check(probes, tmp_path)
    assert wrong == [] and {"eth0 trust", "eth0 PFC priorities", "eth0 DCBX mode"} <= set(unknown)


@pytest.mark.parametrize("name", ["mlnx_qos_worked", "dcb"])
def test_points_that_are_not_listed_are_not_taken_for_wrong(name: str, tmp_path: Path) -> None:
    """As the parser: what a tool does not show is unknown."""
    sample = yaml.safe_load((OBSERVE / "nic_mlx5" / f"{name}.yaml").read_text("utf-8"))
    sections = sample.get("sections") or {"qos": sample["text"]}
    wanted, hw = HOSTS["mlx5 ofed"]
    wrong, unknown = Says(tool_answers(sections)).check(qos(platforms.probes(wanted, hw)), tmp_path)
    assert "eth0 DSCP map" in unknown or any(row.startswith("eth0 DSCP map: 8->") for row in wrong)
    assert "eth0 trust" not in unknown and not any(row.startswith("eth0 PFC") for row in wrong)


# ---------------------------------------------------------------- files


def mlx5_files(stack: str) -> dict[str, str]:
    """What the driver's files hold when all is as wanted."""
    net = "/sys/class/net/eth0"
    found = {
        f"{net}/operstate": "up\n",
        f"{net}/speed": "400000\n",
        f"{net}/mtu": "9000\n",
        "/sys/class/infiniband/mlx5_7/ports/1/gid_attrs/ndevs/0": "eth0\n",
        "/sys/module/ib_core/parameters/recv_queue_size": "512\n",
        "/sys/module/mlx5_core/parameters/probe_vf": "N\n",
        "/proc/modules": "ib_uverbs 1 0 - Live 0x0\n",
        "/sys/module/rdma_cm/uevent": "",
        "/etc/security/limits.d/zz-fabric.conf": LIMITS,
        "/etc/nccl.conf": "# managed by fabric\nNCCL_IB_TC=104\n",
        "/etc/profile.d/fabric-rdma.sh": "export UCX_TLS='rc,sm x'\n",
    }
    values = {
        "np": {"cnp_dscp": 46, "cnp_802p_prio": 5, "min_time_between_cnps": 8},
        "rp": {"rpg_ai_rate": 10},
    }
    names = {"cnp_dscp": "np_cnp_dscp", "cnp_802p_prio": "np_cnp_prio"}
    names |= {"min_time_between_cnps": "np_min_time_between_cnps", "rpg_ai_rate": "rp_ai_rate"}
    for role, files in values.items():
        for file, value in files.items():
            inbox = f"/sys/kernel/debug/mlx5/device/cc_params/{names[file]}"
            found[f"{net}/ecn/roce_{role}/{file}" if stack == "ofed" else inbox] = f"{value}\n"
        if stack == "ofed":
            found |= {f"{net}/ecn/roce_{role}/enable/{p}": f"{int(p == 3)}\n" for p in range(8)}
    if stack == "ofed":
        found["/sys/class/infiniband/mlx5_7/tc/1/traffic_class"] = "Global tclass=106\n"
    return found


SYSCTL = "sysctl -e net.core.rmem_max net.ipv4.tcp_rmem"
PROGRAMS = {
    "mlnx_qos -i eth0 -a": WORKED,
    "ethtool -a eth0": "Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n",
    "ethtool --get-tunable eth0 pfc-prevention-tout": "pfc-prevention-tout: 200\n",
    "ibv_devinfo -d mlx5_7": "hca_id:\tmlx5_7\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n",
    "mlx5_7": "tos 106\nmode RoCE v2\n",
    "ps -e -o comm=": "systemd\nbash\n",
    "slurmd": "Limit  Soft Limit Hard Limit Units\nMax locked memory         65536      65536     bytes\n",
    SYSCTL: "net.core.rmem_max = 1048576\nnet.ipv4.tcp_rmem = 4096\t87380\t4194304\n",
}  # fmt: skip
MODULE = "/sys/module"
LIMITS = "* soft memlock unlimited\n* hard memlock unlimited\n* soft stack 8192\n* hard stack unlimited\n"
FILE_EDITS: tuple[tuple[str, str, list[str]], ...] = (
    ("/sys/class/net/eth0/mtu", "4096\n", ["eth0 mtu: 4096"]),
    ("/sys/class/net/eth0/operstate", "down\n", ["eth0 link: down"]),
    ("/sys/class/net/eth0/speed", "100000\n", ["eth0 speed in Mb/s: 100000"]),
    ("/sys/class/net/eth0/speed", "-1\n", []),
    (f"{MODULE}/ib_core/parameters/recv_queue_size", "128\n", ["module option ib_core.recv_queue_size: 128"]),
    (f"{MODULE}/mlx5_core/parameters/probe_vf", "Y\n", ["module option mlx5_core.probe_vf: Y"]),
    ("/proc/modules", "", ["module ib_uverbs: off"]),
    ("/etc/security/limits.d/zz-fabric.conf", LIMITS.partition("\n")[2], ["limit memlock: not set"]),
    ("/sys/module/rdma_cm/uevent", "", []),
    ("/etc/security/limits.d/zz-fabric.conf", LIMITS + "*  -\tmemlock 64\n", ["limit memlock: 64"]),
    ("/etc/security/limits.d/zz-fabric.conf", LIMITS.replace("8192", "4096"), ["limit stack: 4096"]),
    ("/etc/nccl.conf", "NCCL_IB_TC=0\n", ["environment NCCL_IB_TC: 0"]),
    ("/etc/nccl.conf", "NCCL_IB_TC=106\n", []),
    ("/etc/environment", "NCCL_IB_TC=96\n", ["environment NCCL_IB_TC: 96"]),
    ("/etc/environment", "NCCL_IB_TC='96' # theirs\n", ["environment NCCL_IB_TC: 96"]),
    ("/etc/environment", 'NCCL_IB_TC="104"  # theirs\n', []),
    ("/etc/profile.d/site.sh", 'export UCX_TLS="rc,sm x"\n', []),
    ("/etc/profile.d/a.sh", "export UCX_TLS=tcp\n", []),
    ("/etc/profile.d/site.sh", "export UCX_TLS=tcp\n", ["environment UCX_TLS: tcp"]),
    ("/etc/profile.d/fabric-rdma.sh", "", ["environment UCX_TLS: not set"]),
    ("/sys/class/net/eth0/ecn/roce_np/enable/4", "1\n", ["eth0 DCQCN notification point: 3,4"]),
    ("/sys/class/net/eth0/ecn/roce_rp/enable/3", "0\n", ["eth0 DCQCN reaction point: none"]),
    ("/sys/class/net/eth0/ecn/roce_np/cnp_dscp", "48\n", ["eth0 CNP DSCP: 48"]),
    ("/sys/class/net/eth0/ecn/roce_rp/rpg_ai_rate", "5\n", ["eth0 DCQCN rp_ai_rate: 5"]),
    ("/sys/class/infiniband/mlx5_7/tc/1/traffic_class", "", ["eth0 RoCE traffic class: -1"]),
)  # fmt: skip


@pytest.mark.parametrize(("path", "text", "told"), FILE_EDITS)
def test_files(path: str, text: str, told: list[str], tmp_path: Path) -> None:
    wanted, hw = HOSTS["mlx5 ofed"]
    probes = platforms.probes(wanted, hw)
    files = mlx5_files("ofed")
    assert Says(PROGRAMS, files).check(probes, tmp_path) == ([], [])
    assert Says(PROGRAMS, {path: text}).check(probes, tmp_path) == (told, [])


PROGRAM_EDITS = (
    ("ethtool -a eth0", "RX:\t\ton", "RX:\t\toff", ["eth0 global pause: RX: on TX: off"]),
    ("ethtool --get-tunable eth0 pfc-prevention-tout", "100", "200", ["eth0 watchdog detect: 100"]),
    ("ibv_devinfo -d mlx5_7", "active_mtu:\t\t2048 (4)", "active_mtu:\t\t4096 (5)", ["eth0 RDMA MTU: 2048"]),
    ("mlx5_7", "tos 0", "tos 106", ["eth0 RDMA-CM ToS: 0"]),
    ("mlx5_7", "mode IB/RoCE v1", "mode RoCE v2", ["eth0 RoCE v2: IB/RoCE v1"]),
    ("slurmd", "  65536      unlimited  ", "  65536      65536  ", ["limit slurmd.memlock: 65536 unlimited"]),
    ("ps -e -o comm=", "lldpad\n", "bash\n", ["other agents: lldpad"]),
    (SYSCTL, "= 212992", "= 1048576", ["sysctl net.core.rmem_max: 212992"]),
)  # fmt: skip


@pytest.mark.parametrize(("command", "new", "old", "told"), PROGRAM_EDITS)
def test_programs(command: str, new: str, old: str, told: list[str], tmp_path: Path) -> None:
    wanted, hw = HOSTS["mlx5 ofed"]
    said = {**PROGRAMS, command: PROGRAMS[command].replace(old, new)}
    assert said != PROGRAMS
    assert Says(said, mlx5_files("ofed")).check(platforms.probes(wanted, hw), tmp_path) == (told, [])


def test_a_module_that_is_built_in_and_has_no_folder(tmp_path: Path) -> None:
    wanted, hw = HOSTS["generic"]
    probes = tuple(one for one in platforms.probes(wanted, hw) if one.key == "modules.ib_uverbs")
    assert Says(files={"/proc/modules": ""}).check(probes, tmp_path) == (["module ib_uverbs: off"], [])
    built = f"/lib/modules/{os.uname().release}/modules.builtin"
    listed = {built: "kernel/drivers/infiniband/core/ib-uverbs.ko\n"}
    assert Says(files=listed).check(probes, tmp_path) == ([], [])


def test_the_inbox_stack_has_its_parameters_elsewhere(tmp_path: Path) -> None:
    wanted, hw = HOSTS["mlx5 inbox"]
    probes = platforms.probes(wanted, hw)
    (tmp_path / "sys/class/net/eth0").mkdir(parents=True)
    assert Says(PROGRAMS, mlx5_files("inbox")).check(probes, tmp_path) == ([], [])
    changed = {"/sys/kernel/debug/mlx5/device/cc_params/np_cnp_dscp": "48\n"}
    assert Says(PROGRAMS, changed).check(probes, tmp_path) == (["eth0 CNP DSCP: 48"], [])


def test_the_rdma_mtu_follows_from_the_netdev_mtu_where_no_tool_tells_it(tmp_path: Path) -> None:
    wanted, hw = HOSTS["generic"]
    probes = tuple(one for one in platforms.probes(wanted, hw) if one.key == "nic.rdma_mtu")
    for mtu, size in ((9000, ""), (4192, ""), (4191, "2048"), (1500, "1024"), (68, "none")):
        told = [f"eth0 RDMA MTU: {size}"] if size else []
        assert Says(files={"/sys/class/net/eth0/mtu": f"{mtu}\n"}).check(probes, tmp_path) == (told, [])
    assert NETDEV_BOUND[4096] == 4192 and "4192" in probes[0].help


SMP = {
    "smpquery -C ib_0 -P 1 -D portinfo 0 1": (
        "# Port info: DR path slid 0; dlid 0; 0 port 1\nNeighborMTU:.....................2048\n"
        "LinkState:.......................Active\n"
    ),
    "smpquery -C ib_0 -P 1 -D pkeys 0 1": (
        "   0: 0xffff 0x8001 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000\n128 pkeys capacity for this port\n"
    ),
    "smpquery -C ib_0 -P 1 -D sl2vl 0": (
        "# SL2VL table: DR path slid 0; dlid 0; 0\n"
        "#                 SL: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n"
        "ports: in  0, out  0: | 0| 1| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0|\n"
    ),
}
IB_FILES = {
    "/sys/class/net/ib0/operstate": "up\n",
    "/sys/class/net/ib0/mode": "datagram\n",
    "/sys/class/net/ib0.8001/pkey": "0x8001\n",
    "/sys/class/net/ib0.8002/pkey": "0x8002\n",
}
IB_EDITS = (
    ("portinfo 0 1", "Active", "Initialize", ["ib0 link state: Initialize"]),
    ("portinfo 0 1", "2048", "1024", ["ib0 NeighborMTU: 1024"]),
    ("pkeys 0 1", "0x8001", "0x8003", ["ib0 P_Keys: 0x8003,0xffff"]),
    ("sl2vl 0", "| 0| 1| 0", "| 0| 0| 0", ["ib0 SL-to-VL map: 1->0"]),
)  # fmt: skip


@pytest.mark.parametrize(("command", "old", "new", "told"), IB_EDITS)
def test_infiniband(command: str, old: str, new: str, told: list[str], tmp_path: Path) -> None:
    wanted, hw = HOSTS["ib"]
    probes = tuple(one for one in platforms.probes(wanted, hw) if one.key.startswith("ib."))
    assert Says(SMP, IB_FILES).check(probes, tmp_path) == ([], [])
    name = f"smpquery -C ib_0 -P 1 -D {command}"
    assert SMP[name].count(old) == 1
    said = {**SMP, name: SMP[name].replace(old, new)}
    assert Says(said, IB_FILES).check(probes, tmp_path) == (told, [])
    gone = {"/sys/class/net/ib0/mode": "connected\n", "/sys/class/net/ib0.8001/pkey": "0x8004\n"}
    wrong, unknown = Says(SMP, gone).check(probes, tmp_path)
    assert wrong == ["ib0 IPoIB mode: connected", "ib0 IPoIB P_Key interfaces: no 0x8001"] and not unknown


# ---------------------------------------------------------------- the files of the local check


def test_they_come_along_where_the_host_has_others() -> None:
    wanted, hw = HOSTS["generic"]
    probes = platforms.probes(wanted, hw)
    right = " ".join(local_digests(probes))
    blank, other = Observation(wanted), Observation(wanted, facts=((local.FACT, "- -"),))
    same = Observation(wanted, facts=((local.FACT, right),))
    assert local.installed(Change(), blank, wanted, probes) == Change()
    assert local.installed(Change(), same, wanted, probes) == Change()
    added = local.installed(Change(), other, wanted, probes)
    assert [step.path for step in added.commit if isinstance(step, Put)] == [local.FILE, local.PROGRAM]
    assert (added.undo_kind, added.expected, added.disturbs) == ("dead-man", wanted, ())
    more = Change(commit=(Put("/etc/x", "managed by fabric\n"),), expected=wanted)
    assert len(local.installed(more, blank, wanted, probes).commit) == 3
    assert local.installed(more, same, wanted, probes) == more
    assert local.installed(Change(), other, wanted, ()) == Change()


def test_an_intent_that_wants_none_leaves_them_alone() -> None:
    wanted, hw = HOSTS["generic"]
    off = replace(hw, options=(*hw.options, ("local_check", "off")))
    other = Observation(wanted, facts=((local.FACT, "- -"),))
    paths = [[one.path for _, one in platforms.artifacts(wanted, each)] for each in (hw, off)]
    assert set(paths[0]) - set(paths[1]) == {"etc/fabric/check.json"}
    assert not platforms.with_local_check(Change(), other, wanted, hw).empty
    assert platforms.with_local_check(Change(), other, wanted, off) == Change()
    assert platforms.local_check(wanted, hw) and not platforms.local_check(wanted, off)


def local_digests(probes: tuple[Probe, ...]) -> list[str]:
    import hashlib

    return [hashlib.sha256((put.text or "").encode()).hexdigest() for put in local.puts(probes)]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("@@account\nroot\n@=0\n@@local_check\n-\n-\n@=0\n", {"account": "root", "local check": "- -"}),
        ("@@account\nops\n@=0\n@@local_check\na\nb\n@=0\n", {"account": "ops", "local check": "a b"}),
        (
            "@@link\neth0 up\neth1 lowerlayerdown\neth2 \n@=0\n",
            {"link eth0": "up", "link eth1": "lowerlayerdown"},
        ),
        ("@@account\nid: cannot find name\n@=1\n@@local_check\nsha256sum: not found\n@=0\n", {}),
        ("", {}),
    ],
)
def test_what_a_host_says_of_its_own_files(answer: str, found: dict[str, str]) -> None:
    assert local.facts(answer) == found
