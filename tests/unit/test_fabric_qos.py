"""The script that brings a port to its settings file, run by real shells against stand-in tools.

The tools below keep their state in files and write down every call that changes something, so that
what the script does can be compared with the lines that a change shows to people.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import nic_mlx5
from rdma_fabric.platforms._contract import Put
from tests.unit.test_platform_nic_mlx5 import PORT, WISH, WORKED_LINES

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)] or ["sh"]

MLNX_QOS = r"""#!@PYTHON@ -S
import json, os, sys
tools, words = os.environ["TOOLS"], sys.argv[3:]
path = tools + "/mlnx_qos.json"
state = dict(dcbx="os", trust="pcp", cable="7", pfc="0,0,0,0,0,0,0,0", prio_tc="1,0,2,3,4,5,6,7",
             tsa=",".join(["vendor"] * 8), tcbw="0,0,0,0,0,0,0,0", map=[d >> 3 for d in range(64)],
             buffer_size="262016,0,0,0,0,0,0,0", prio2buffer="0,0,0,0,0,0,0,0")
if os.path.exists(path):
    state.update(json.load(open(path)))
if words == ["-a"]:
    print("DCBX mode: %s controlled" % ("OS" if state["dcbx"] == "os" else "Firmware"))
    print("Priority trust state: " + state["trust"])
    if state["trust"] == "dscp":
        print("dscp2prio mapping:")
        for p in range(8):
            points = ["%02d," % d for d in range(64) if state["map"][d] == p]
            for i in range(0, len(points), 8):
                print("\tprio:%d dscp:%s" % (p, "".join(points[i:i + 8])))
    print("Receive buffer size (bytes): %s,max_buffer_size=262016" % state["buffer_size"])
    print("Cable len: " + state["cable"])
    print("PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7")
    print("\tenabled     " + "".join(bit + "   " for bit in state["pfc"].split(",")))
    print("\tbuffer      " + "".join(b + "   " for b in state["prio2buffer"].split(",")))
    for tc in range(8):
        kind, weight = state["tsa"].split(",")[tc], state["tcbw"].split(",")[tc]
        share = ", bw: %s%%" % weight if kind == "ets" else ""
        print("tc: %d ratelimit: unlimited, tsa: %s%s" % (tc, kind, share))
        for p in range(8):
            if state["prio_tc"].split(",")[p] == str(tc):
                print("\t priority:  %d" % p)
    sys.exit()
open(tools + "/done", "a").write("mlnx_qos -i eth0 " + " ".join(words) + "\n")
if os.path.exists(tools + "/ignore"):
    sys.exit()
if os.path.exists(tools + "/refuse"):
    sys.exit(print(open(tools + "/refuse").read().strip()) or 1)
while words:
    word, _, value = words.pop(0).partition("=")
    value = value or words.pop(0)
    if word == "--dscp2prio":
        _, point, priority = value.split(",")
        state["map"][int(point)] = int(priority)
    else:
        state[{"-d": "dcbx", "--cable_len": "cable"}.get(word, word[2:])] = value
sizes = [int(size) for size in state["buffer_size"].split(",")]
used = [int(b) for b, on in zip(state["prio2buffer"].split(","), state["pfc"].split(",")) if on == "1"]
if sum(sizes) > 262016 or not all(sizes[b] for b in used):
    sys.exit(print("Buffers commands error") or 1)
json.dump(state, open(path, "w"))
"""
ETHTOOL = r"""#!/bin/sh
state=$TOOLS/ethtool.state; pause=on stall=0; [ -f "$state" ] && . "$state"
case $1 in
-a) printf 'Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\t%s\nTX:\t\t%s\n' $pause $pause ;;
--get-tunable) echo "pfc-prevention-tout: $stall" ;;
-A) echo "ethtool $*" >>"$TOOLS/done"; echo "pause=$4" >>"$state" ;;
--set-tunable) echo "ethtool $*" >>"$TOOLS/done"; echo "stall=$4" >>"$state" ;;
esac
"""
CMA = r"""#!/bin/sh
file=$TOOLS/@NAME@.state; [ -f "$file" ] || echo "@DEFAULT@" >"$file"
if [ $# -gt 4 ]; then
    echo "@NAME@ $*" >>"$TOOLS/done"
    case $5$6 in -m2) echo "RoCE v2" ;; -m1) echo "IB/RoCE v1" ;; *) echo "$6" ;; esac >"$file"
fi
cat "$file"
"""


def shell_words(shell: str) -> list[str]:
    return [shell, "sh"] if shell == "busybox" else [shell]


class Bench:
    """A root folder with the script, a fake /sys and the tools."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.root, self.sys, self.tools, self.shell = folder / "root", folder / "s", folder / "tools", shell
        self.tools.mkdir(parents=True)
        for step in (*qos_file.common_files(), *(s for s in self._change() if isinstance(s, Put))):
            self.write(self.root, step.path, step.text or "")
        for name, text in {
            "mlnx_qos": MLNX_QOS,
            "ethtool": ETHTOOL,
            "cma_roce_tos": CMA.replace("@NAME@", "cma_roce_tos").replace("@DEFAULT@", "0"),
            "cma_roce_mode": CMA.replace("@NAME@", "cma_roce_mode").replace("@DEFAULT@", "RoCE v2"),
        }.items():
            self.tool(name, text)
        for role in ("np", "rp"):
            for priority in range(8):
                self.write(self.sys, f"/sys/class/net/eth0/ecn/roce_{role}/enable/{priority}", "1\n")
        for name, value in (("cnp_dscp", 48), ("cnp_802p_prio", 6), ("min_time_between_cnps", 4)):
            self.write(self.sys, f"/sys/class/net/eth0/ecn/roce_np/{name}", f"{value}\n")
        self.write(self.sys, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0\n")
        self.write(self.sys, "/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "")
        (self.sys / "sys/kernel/config/rdma_cm").mkdir(parents=True)

    @staticmethod
    def _change() -> tuple[object, ...]:
        from tests.unit.test_platform_nic_mlx5 import change

        return change().commit

    @staticmethod
    def write(base: Path, path: str, text: str) -> None:
        target = base / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def inbox(self) -> None:
        """The distribution's driver: no ecn folder, parameters in debugfs."""
        shutil.rmtree(self.sys / "sys/class/net/eth0/ecn")
        (self.sys / "sys/devices/0000:1b:00.0").mkdir(parents=True)
        (self.sys / "sys/class/net/eth0/device").symlink_to(self.sys / "sys/devices/0000:1b:00.0")
        for name, value in (("np_cnp_dscp", 48), ("rp_ai_rate", 5)):
            self.write(self.sys, f"/sys/kernel/debug/mlx5/0000:1b:00.0/cc_params/{name}", f"{value}\n")

    def starts(self, dcbx: str, trust: str) -> None:
        """As somebody left it."""
        state = {
            "dcbx": dcbx,
            "trust": trust,
            "cable": "7",
            "pfc": "0,0,0,0,0,0,0,0",
            "prio_tc": "1,0,2,3,4,5,6,7",
            "tsa": ",".join(["vendor"] * 8),
            "tcbw": "0,0,0,0,0,0,0,0",
            "map": [point >> 3 for point in range(64)],
        }
        (self.tools / "mlnx_qos.json").write_text(json.dumps(state))
        (self.tools / "app").write_text("dscp-prio 0:0 26:3\n" if trust == "dscp" else "")
        (self.tools / "dcbx").write_text("host ieee\n" if dcbx == "os" else "lld-managed ieee\n")

    def tool(self, name: str, text: str) -> None:
        path = self.tools / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("@PYTHON@", sys.executable))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.tools}/bin:{os.environ['PATH']}",
            "FABRIC_ROOT": str(self.root),
            "FABRIC_SYSROOT": str(self.sys),
            "TOOLS": str(self.tools),
            **more,
        }
        script = self.root / "usr/local/sbin/fabric-qos"
        return subprocess.run(
            [*shell_words(self.shell), str(script), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def done(self) -> list[str]:
        path = self.tools / "done"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def attributes(self) -> dict[str, str]:
        """Every file below the fake /sys with its content."""
        found = [path for path in self.sys.rglob("*") if path.is_file()]
        return {f"/{path.relative_to(self.sys)}": path.read_text().strip() for path in found}

    def file(self, path: str) -> str:
        return (self.sys / path.lstrip("/")).read_text().strip()


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, request.param)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ["fabric-qos", "fabric-qos-mlx5"])
def test_the_shell_accepts_it(tmp_path: Path, shell: str, name: str) -> None:
    bench = Bench(tmp_path, shell)
    script = bench.root / "usr/local/sbin" / name
    done = subprocess.run(
        [*shell_words(shell), "-n", str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_it_does_what_the_lines_say(bench: Bench) -> None:
    done = bench.run("eth0")
    # A plain file does not answer "Global tclass=106" as the driver's does, so that one is not believed.
    assert (done.stdout, done.stderr.splitlines()) == (
        "",
        ["TCLASS: -1 instead of 106", "fabric-qos: eth0: did not take it"],
    )
    tools = [line for line in WORKED_LINES if not line.startswith("echo ")]
    assert bench.done == tools
    for line in WORKED_LINES:
        if line.startswith("echo "):
            _, value, _, path = line.split()
            assert bench.file(path) == value
    assert bench.file("/sys/class/net/eth0/ecn/roce_np/enable/3") == "1"


def test_a_second_run_writes_nothing(bench: Bench) -> None:
    assert bench.run("--check", "eth0").returncode == 1
    assert bench.done == []
    bench.run("eth0")
    # The driver prints the class in other words than it is written.
    bench.write(bench.sys, "/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=104\n")
    before = bench.done
    again = bench.run("eth0")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert bench.done == before
    check = bench.run("--check", "eth0")
    assert (check.returncode, check.stdout) == (0, "")


def test_only_a_pfc_set_that_differs_is_written(bench: Bench) -> None:
    """A written PFC bitmap takes the link down and up."""
    bench.run("eth0")
    bench.write(bench.sys, "/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=106\n")
    (bench.tools / "done").unlink()
    changed = bench.run("eth0", "NIC=mlx5", "PFC=0,0,0,0,1,0,0,0", "TRUST=dscp")
    assert changed.returncode == 0
    assert bench.done == ["mlnx_qos -i eth0 --pfc 0,0,0,0,1,0,0,0"]
    assert bench.run("--check", "eth0").stdout == "PFC: 0,0,0,0,1,0,0,0 instead of 0,0,0,1,0,0,0,0\n"


def test_settings_given_take_everything_back(bench: Bench) -> None:
    from tests.unit.test_platform_nic_mlx5 import change

    bench.run("eth0")
    bench.write(bench.sys, "/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=106\n")
    (undo,) = change().undo
    done = bench.run(*undo.argv[1:])  # type: ignore[union-attr]
    assert bench.file("/sys/class/infiniband/mlx5_0/tc/1/traffic_class") == "tclass=-1"
    bench.write(bench.sys, "/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "")
    assert done.stderr.strip() in ("", "TCLASS:  instead of -1\nfabric-qos: eth0: did not take it")
    assert bench.run("--check", *undo.argv[1:]).returncode == 0  # type: ignore[union-attr]
    assert bench.file("/sys/class/net/eth0/ecn/roce_rp/enable/7") == "1"


def test_a_refusal_is_told_with_the_tools_words(bench: Bench) -> None:
    (bench.tools / "refuse").write_text("ETS features are not supported on your system\n")
    done = bench.run("eth0")
    assert done.returncode == 1
    assert "fabric-qos: eth0: PFC: ETS features are not supported on your system" in done.stderr
    # The rest is done all the same: at boot a port is better off with most of its settings.
    assert bench.file("/sys/class/net/eth0/ecn/roce_np/enable/0") == "0"


def test_a_value_that_is_ignored_is_noticed(bench: Bench) -> None:
    (bench.tools / "ignore").write_text("")
    done = bench.run("eth0", "NIC=mlx5", "CABLE=20")
    assert done.returncode == 1
    assert "CABLE: 7 instead of 20" in done.stderr and "did not take it" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "usage"),
        (("eth7",), "there is no"),
        (("eth0", "PFC"), "not a setting"),
        (("eth0", "P-F=1"), "not a key"),
        (("eth0", "PFC=$(reboot)"), "not a value of PFC"),
        (("eth0", "NIC=bnxt", "PFC=1"), "there is no /usr/local/sbin/fabric-qos-bnxt"),
    ],
)
def test_nonsense_is_refused(bench: Bench, arguments: tuple[str, ...], text: str) -> None:
    done = bench.run(*arguments)
    assert done.returncode == 2 and text in done.stderr
    assert bench.done == []


def test_without_cma_tools_configfs_is_written_as_they_do(bench: Bench) -> None:
    for name in ("cma_roce_tos", "cma_roce_mode"):
        (bench.tools / "bin" / name).unlink()
    base = bench.sys / "sys/kernel/config/rdma_cm/mlx5_0/ports/1"
    base.mkdir(parents=True)
    (base / "default_roce_tos").write_text("0\n")
    (base / "default_roce_mode").write_text("IB/RoCE v1\n")
    done = bench.run("eth0", "CMA_TOS=106", "CMA_MODE=2")
    assert (done.returncode, done.stderr) == (0, "")
    assert (base / "default_roce_tos").read_text() == "106\n"
    assert (base / "default_roce_mode").read_text() == "RoCE v2\n"


def test_without_an_rdma_device_marking_fails_aloud(bench: Bench) -> None:
    shutil.rmtree(bench.sys / "sys/class/infiniband")
    assert "no RDMA device" in bench.run("eth0", "CMA_TOS=106").stderr
    assert "no RDMA device" in bench.run("eth0", "NIC=mlx5", "TCLASS=106").stderr
    assert bench.run("eth0", "RDMA=mlx5_7", "CMA_TOS=106").returncode == 0
    assert bench.done == ["cma_roce_tos -d mlx5_7 -p 1 -t 106"]


def test_at_boot_it_waits_for_the_rdma_device(bench: Bench) -> None:
    device = bench.sys / "sys/class/infiniband"
    device.rename(bench.sys / "later")
    timer = threading.Timer(0.5, lambda: (bench.sys / "later").rename(device))
    timer.start()
    done = bench.run("eth0", "CMA_TOS=106", INVOCATION_ID="1")
    timer.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert bench.done == ["cma_roce_tos -d mlx5_0 -p 1 -t 106"]


DCB = r"""#!/bin/sh
case "$*" in
"-j pfc show dev eth0") echo '{"delay":7,"prio_pfc":[false,false,false,false,false,false,false,false]}' ;;
"-j ets show dev eth0") echo '{"tc_bw":[100,100,100,100,100,100,100,100],' \
    '"tc_tsa":["vendor","vendor","vendor","vendor","vendor","vendor","vendor","vendor"],' \
    '"prio_tc":[1,0,2,3,4,5,6,7]}' ;;
"-j buffer show dev eth0") echo '{"prio_buffer":[0,0,0,0,0,0,0,0]}' ;;
"-N app show dev eth0 dscp-prio") [ -f "$TOOLS/app" ] && cat "$TOOLS/app" ;;
"dcbx show dev eth0") cat "$TOOLS/dcbx" 2>/dev/null || echo "host ieee" ;;
*) echo "dcb $*" >>"$TOOLS/done" ;;
esac
"""


def test_without_mlnx_qos_dcb_does_it(bench: Bench) -> None:
    (bench.tools / "bin" / "mlnx_qos").unlink()
    bench.tool("dcb", DCB)
    bench.run("eth0")
    points = " ".join(f"{d}:{p}" for d, p in enumerate(WISH.qos.dscp_to_priority))  # type: ignore[arg-type]
    assert bench.done[1:5] == [
        f"dcb app add dev eth0 dscp-prio {points}",
        "dcb ets set dev eth0 tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets"
        " tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0 prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7",
        "dcb pfc set dev eth0 prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off",
        "dcb pfc set dev eth0 delay 20",
    ]


SAME_DCB = r"""#!/bin/sh
case "$*" in
"-j pfc show dev eth0") echo '{"delay":20,"prio_pfc":[false,false,false,true,false,false,false,false]}' ;;
"-j ets show dev eth0") echo '{"tc_bw":[50,0,0,50,0,0,100,0],' \
    '"tc_tsa":["ets","ets","ets","ets","ets","ets","strict","ets"],"prio_tc":[0,1,2,3,4,5,6,7]}' ;;
"-j buffer show dev eth0") echo '{"prio_buffer":[0,0,0,1,0,0,0,0]}' ;;
"-N app show dev eth0 dscp-prio") echo "dscp-prio @POINTS@" ;;
"dcbx show dev eth0") echo "host ieee" ;;
*) echo "dcb $*" >>"$TOOLS/done" ;;
esac
"""
QOS = ("DCBX", "TRUST", "DSCP2PRIO", "PRIO_TC", "TSA", "TCBW", "PFC", "CABLE")


@pytest.mark.parametrize("tool", ["mlnx_qos", "dcb"])
def test_what_is_so_already_is_not_written(tool: str, tmp_path: Path) -> None:
    """Each knob by itself, so that no other one hides a value that was not read."""
    bench = Bench(tmp_path, SHELLS[0])
    wanted = dict(
        line.split("=", 1)
        for line in (bench.root / "etc/fabric/qos/eth0.conf").read_text().splitlines()
        if "=" in line
    )
    knobs = {key: wanted[key] for key in QOS} | {"PRIO2BUFFER": "0,0,0,0,0,0,0,0"}
    if tool == "dcb":
        (bench.tools / "bin" / "mlnx_qos").unlink()
        points = " ".join(f"{d}:{p}" for d, p in enumerate(wanted["DSCP2PRIO"].split(",")))
        bench.tool("dcb", SAME_DCB.replace("@POINTS@", points))
        knobs["PRIO2BUFFER"] = "0,0,0,1,0,0,0,0"
    else:
        bench.run("eth0", "NIC=mlx5", *(f"{key}={value}" for key, value in knobs.items()))
        (bench.tools / "done").unlink()
    for key, value in knobs.items():
        check = bench.run("--check", "eth0", "NIC=mlx5", f"{key}={value}")
        assert (check.returncode, check.stdout, check.stderr) == (0, "", ""), key
    assert bench.run("eth0", "NIC=mlx5", *(f"{key}={value}" for key, value in knobs.items())).returncode == 0
    assert bench.done == []


def test_buffers_are_sized_and_mapped_in_the_order_that_the_driver_takes(bench: Bench) -> None:
    """A buffer in use by a lossless priority may never be empty, and all together must fit."""
    bench.run("eth0", "NIC=mlx5", "PFC=0,0,0,1,0,0,0,0")
    (bench.tools / "done").unlink()
    there = ("PRIO2BUFFER=0,0,0,1,0,0,0,0", "BUFFERS=130944,130944,0,0,0,0,0,0")
    done = bench.run("eth0", "NIC=mlx5", *there)
    assert (done.returncode, done.stderr) == (0, "")
    assert bench.done == [
        "mlnx_qos -i eth0 --buffer_size 130944,130944,0,0,0,0,0,0",
        "mlnx_qos -i eth0 --prio2buffer 0,0,0,1,0,0,0,0",
    ]
    assert bench.run("--check", "eth0", "NIC=mlx5", *there).returncode == 0
    back = ("PRIO2BUFFER=0,0,0,0,0,0,0,0", "BUFFERS=262016,0,0,0,0,0,0,0")
    done = bench.run("eth0", "NIC=mlx5", *back)
    assert (done.returncode, done.stderr) == (0, "")
    assert bench.run("--check", "eth0", "NIC=mlx5", *back).returncode == 0
    too_much = bench.run(
        "eth0", "NIC=mlx5", "PRIO2BUFFER=0,0,0,1,0,0,0,0", "BUFFERS=262016,262016,0,0,0,0,0,0"
    )
    assert too_much.returncode == 1 and "Buffers commands error" in too_much.stderr


def test_with_dcb_buffers_are_sized_and_mapped_at_once(bench: Bench) -> None:
    (bench.tools / "bin" / "mlnx_qos").unlink()
    bench.tool(
        "dcb", SAME_DCB.replace("[0,0,0,1,0,0,0,0]}", '[0,0,0,1,0,0,0,0],"buffer_size":[9,0,0,0,0,0,0,0]}')
    )
    wanted = ("PRIO2BUFFER=0,0,0,1,0,0,0,0", "BUFFERS=130944,130944,0,0,0,0,0,0")
    bench.run("eth0", "NIC=mlx5", *wanted)
    assert bench.done == [
        "dcb buffer set dev eth0 prio-buffer 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0"
        " buffer-size 0:130944 1:130944 2:0 3:0 4:0 5:0 6:0 7:0"
    ]
    same = ("PRIO2BUFFER=0,0,0,1,0,0,0,0", "BUFFERS=9,0,0,0,0,0,0,0")
    assert bench.run("--check", "eth0", "NIC=mlx5", *same).returncode == 0


def test_auto_is_a_hundred_milliseconds(bench: Bench) -> None:
    (bench.tools / "ethtool.state").write_text("stall=65535\n")
    assert bench.run("--check", "eth0", "NIC=mlx5", "STALL=100").returncode == 0


def test_a_rate_that_is_not_whole_is_not_taken_for_one(bench: Bench) -> None:
    tool = bench.tools / "bin" / "mlnx_qos"
    tool.write_text(tool.read_text().replace("ratelimit: unlimited", "ratelimit: 2.5 Gbps"))
    check = bench.run("--check", "eth0", "NIC=mlx5", "RATELIMIT=3,3,3,3,3,3,3,3")
    assert check.returncode == 1 and "?,?,?" in check.stdout


def test_firmware_control_is_read(bench: Bench) -> None:
    bench.starts("fw", "pcp")
    assert bench.run("--check", "eth0", "NIC=mlx5", "DCBX=fw").returncode == 0
    assert bench.run("--check", "eth0", "NIC=mlx5", "DCBX=os").stdout == "DCBX: fw instead of os\n"


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("hardware: no systemd-analyze on this machine")
    program, *units = (put for put in qos_file.common_files() if "/udev/" not in put.path)
    script = tmp_path / "fabric-qos"
    script.write_text(program.text or "")
    script.chmod(0o755)
    assert len(units) == 2
    for unit in units:
        path = tmp_path / Path(unit.path.replace("@", "@eth0")).name
        path.write_text((unit.text or "").replace("/usr/local/sbin/fabric-qos", str(script)))
        done = subprocess.run([verify, "verify", str(path)], capture_output=True, text=True, check=False)
        assert [line for line in done.stderr.splitlines() if "fabric-" in line] == []


VENDOR = ",".join(["vendor"] * 8)
EVERY_KNOB: list[dict[str, str]] = [
    {"PAUSE": "off"},
    {"DCBX": "os"},
    {"TRUST": "dscp"},
    {"TRUST": "pcp"},
    {"DSCP2PRIO": ",".join(["1"] * 64)},
    {"PRIO_TC": "0,1,2,3,4,5,6,7", "TSA": "ets,ets,ets,strict,ets,ets,ets,ets", "TCBW": "60,40,0,0,0,0,0,0"},
    {"PRIO_TC": "7,1,2,3,4,5,6,0", "TSA": VENDOR, "TCBW": "0,0,0,0,0,0,0,0"},
    {"RATELIMIT": "-,-,-,-,-,-,40,-"},
    {"PFC": "0,1,0,0,1,0,0,0"},
    {"PRIO2BUFFER": "0,0,0,1,0,0,0,0"},
    {"CABLE": "30"},
    {"STALL": "500"},
    {"NP": "3,4"},
    {"NP": "none"},
    {"RP": "0,7"},
    {"CC_np_cnp_dscp": "46", "CC_rp_ai_rate": "9"},
    {"TCLASS": "106"},
    {"TCLASS": "-1"},
    {"CMA_MODE": "1"},
    {"CMA_TOS": "104"},
]
"""Every key of a settings file, each unlike what the bench starts with."""


def combinations() -> list[tuple[dict[str, str], str, str]]:
    """(settings, tool, stack): both tools for what they share, both stacks for parameters."""
    found = []
    for settings in EVERY_KNOB:
        first = next(iter(settings))
        if first in ("DCBX", "TRUST", "DSCP2PRIO", "PRIO_TC", "PFC", "PRIO2BUFFER", "CABLE"):
            found += [(settings, tool, "ofed") for tool in ("mlnx_qos", "dcb")]
        elif first.startswith("CC_"):
            found += [(settings, "mlnx_qos", stack) for stack in ("ofed", "inbox")]
        else:
            found.append((settings, "mlnx_qos", "ofed"))
    return found


@pytest.mark.parametrize(("settings", "tool", "stack"), combinations())
def test_what_people_see_is_what_runs(
    settings: dict[str, str], tool: str, stack: str, tmp_path: Path
) -> None:
    """The lines of a change and the commands of the script come from one text each."""
    bench = Bench(tmp_path, SHELLS[0])
    everywhere = "0,1,2,3,4,5,6,7"
    before = {"NP": everywhere, "RP": everywhere, "RATELIMIT": "0,0,0,0,0,0,0,0"}
    if settings.get("NP") == "3,4":
        before["NP"] = "0"
        for priority in range(1, 8):
            bench.write(bench.sys, f"/sys/class/net/eth0/ecn/roce_np/enable/{priority}", "0\n")
    if settings == {"TCLASS": "-1"}:
        bench.write(bench.sys, "/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=8\n")
    bench.write(bench.sys, "/sys/class/net/eth0/ecn/roce_rp/rpg_ai_rate", "5\n")
    if stack == "inbox":
        bench.inbox()
    if tool == "dcb":
        (bench.tools / "bin" / "mlnx_qos").unlink()
        bench.tool("dcb", DCB)
    if settings == {"TRUST": "pcp"}:
        bench.starts("os", "dscp")
    if settings == {"DCBX": "os"}:
        bench.starts("fw", "pcp")
    facts = {"rdma eth0": "mlx5_0", "stack eth0": stack, "tool eth0": tool}
    lines = nic_mlx5._lines(PORT, settings, before, facts)
    unchanged = bench.attributes
    bench.run("eth0", "NIC=mlx5", *(f"{key}={value}" for key, value in settings.items()))
    assert bench.done == [line for line in lines if not line.startswith("echo ")]
    written = {line.split()[3]: line.split()[1] for line in lines if line.startswith("echo ")}
    assert dict(bench.attributes.items() - unchanged.items()) == written
    # dcb has no word for trust dscp: the first DSCP entry turns it.
    assert bool(lines) == (tool == "mlnx_qos" or settings != {"TRUST": "dscp"})
