"""The library that brings a Broadcom port to its settings file, run by real shells against stand-in tools.

One stand-in plays dcb, niccli of three ages and bnxtqos. It keeps the port's table in a file and writes
down every call that changes something, so that it can be compared with the lines that people see.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import _nic_bnxt_knobs as knobs
from rdma_fabric.platforms import _nic_bnxt_lines as lines
from rdma_fabric.platforms import _nic_bnxt_read as reader
from rdma_fabric.platforms._contract import Put
from rdma_fabric.platforms._host_files import Section
from tests.unit.test_platform_nic_bnxt import PORT, WORKED_LINES, change

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)] or ["sh"]

TOOL = r"""#!@PYTHON@ -S
import json, os, sys
tools, name, words = os.environ["TOOLS"], os.path.basename(sys.argv[0]), sys.argv[1:]
path, form, bdf = tools + "/port.json", os.environ.get("FORM", ""), "0000:06:00.0"
port = json.load(open(path))
selectors = {"dscp-prio": 5, "dgram-port-prio": 3}

def done(line):
    open(tools + "/done", "a").write(line + "\n")
    if os.path.exists(tools + "/refuse"):
        sys.exit(print("Attribute write: Invalid argument") or 2)
    if not os.path.exists(tools + "/ignore"):
        json.dump(port, open(path, "w"))

def pairs(text, separator):
    for item in text.split(separator):
        if item:
            key, value = item.split(":")
            yield int(key), value

def ets(tsa, up2tc, weights):
    for tc, kind in pairs(tsa, ","):
        port["tsa"][tc] = kind
    for priority, tc in pairs(up2tc, ","):
        port["map"][priority] = int(tc)
    left = [word for word in weights.split(",") if word]
    for tc in range(8):
        port["bw"][tc] = int(left.pop(0)) if left and port["tsa"][tc] == "ets" else 0

def pfc(text):
    port["pfc"] = [str(p) in text.split(",") for p in range(8)]

def app(add, text):
    priority, selector, key = (int(word, 0) for word in text.split(","))
    entry = [selector, key, priority]
    if add == (entry in port["app"]):
        sys.exit(print("no such entry" if not add else "exists") or 1)
    port["app"].append(entry) if add else port["app"].remove(entry)

def show():
    print("IEEE 8021QAZ ETS Configuration TLV:")
    print("         PRIO_MAP: " + " ".join("%d:%d" % row for row in enumerate(port["map"])))
    print("         TC Bandwidth: " + " ".join("%d%%" % weight for weight in port["bw"][:3]))
    print("         TSA_MAP: " + " ".join("%d:%s" % row for row in enumerate(port["tsa"][:3])))
    on = [str(p) for p in range(8) if port["pfc"][p]]
    print("IEEE 8021QAZ PFC TLV:\n         PFC enabled: " + (" ".join(on) or "none"))
    if port["app"]:
        print("IEEE 8021QAZ APP TLV:")
    for number, (selector, key, priority) in enumerate(port["app"]):
        label = {5: "DSCP", 3: "UDP or DCCP", 1: "Ethertype"}[selector]
        print("         APP#%d:\n          Priority: %d\n          Sel: %d\n          %s: %d\n" % (
            number, priority, selector, label, key))
    print("\nTC Rate Limit: 100% 100% 100% 0% 0% 0% 0% 0%")

def dcb():
    if form != "dcb":
        sys.exit(print("Attribute read: Operation not supported", file=sys.stderr) or 1)
    if words == ["pfc", "show", "dev", "eth8"]:
        print("pfc-cap 2")
    elif words[:2] == ["-j", "pfc"]:
        print(json.dumps({"pfc_cap": 2, "prio_pfc": port["pfc"]}))
    elif words[:2] == ["-j", "ets"]:
        print(json.dumps({"ets_cap": 3, "tc_bw": port["bw"], "tc_tsa": port["tsa"], "prio_tc": port["map"]}))
    elif words[:3] == ["-N", "app", "show"]:
        for selector, number in {"ethtype-prio": 1, **selectors}.items():
            rows = ["%d:%d" % (key, p) for s, key, p in port["app"] if s == number]
            if rows:
                print(selector + " " + " ".join(rows) + " ")
    elif words[:2] == ["-j", "app"]:
        found = {}
        for selector, number in selectors.items():
            rows = [[key, p, " "] for s, key, p in port["app"] if s == number]
            found |= {selector.replace("-", "_"): rows} if rows else {}
        print(json.dumps(found))
    elif words[:2] == ["dcbx", "show"]:
        print("host ieee ")
    else:
        if words[:2] == ["pfc", "set"]:
            port["pfc"] = ["%d:on" % p in words for p in range(8)]
        elif words[:2] == ["ets", "set"]:
            at = [words.index(word) for word in ("tc-tsa", "tc-bw", "prio-tc")] + [len(words)]
            tsa, bw, prio = (words[at[i] + 1 : at[i + 1]] for i in range(3))
            ets(",".join(tsa), ",".join(prio), "")
            port["bw"] = [int(value) for _, value in pairs(",".join(bw), ",")]
        else:
            for entry in words[5:]:
                key, priority = entry.split(":")
                app(words[1] == "add", "%s,%d,%s" % (priority, selectors[words[4]], key))
        done("dcb " + " ".join(words))

def old(rest, prefix):
    if rest == ["get_qos"]:
        return show()
    values = dict(word.split("=", 1) for word in rest[1:] if "=" in word)
    if rest[0] == "set_ets":
        ets(values["tsa"], values["priority2tc"], values["tcbw"])
    elif rest[0] == "set_pfc":
        pfc(values["enabled"])
    else:
        app("-d" not in rest, values["app"])
    done(prefix + " " + " ".join(rest))

def niccli():
    if words == ["--list"] and form == "old":
        print("1) BCM57608 00:00:5E:00:53:01 229.1.0.0 0000:05:00.0 NIC PCI")
        print("2) BCM57608 00:00:5E:00:53:02 229.1.0.0 0000:06:00.0 NIC PCI")
    elif words[:2] == ["-i", "2"] and form == "old":
        old(words[2:], "niccli -i 2")
    elif words[:2] == ["-dev", bdf] and form == "fed":
        if words[2:] == ["getqos"]:
            return show()
        for line in sys.stdin:
            rest = line.split()
            values = dict(zip(rest[1::2], rest[2::2])) if rest[0] != "apptlv" else {}
            if rest[0] == "ets":
                ets(values["-tsa"], values["-up2tc"], values["-tcbw"])
            elif rest[0] == "pfc":
                pfc(values["-enable"])
            else:
                app("-add" in rest, rest[-1])
            done("echo %s | niccli -dev %s" % (line.strip(), bdf))
    elif words[:3] == ["--dev", bdf, "qos"] and form == "new":
        rest = words[3:]
        if rest == ["--ets", "--show"]:
            return show()
        if rest[0] == "--ets":
            ets(*(rest[rest.index(word) + 1] for word in ("--tsa", "--up2tc", "--tcbw")))
        elif rest[0] == "--pfc":
            pfc(rest[-1])
        else:
            app("--add" in rest, rest[-1])
        done("niccli " + " ".join(words))
    else:
        sys.exit(print("Error: unknown command") or 1)

if name == "dcb":
    dcb()
elif name == "niccli":
    niccli()
elif form == "bnxtqos" and words[0] == "-dev=eth8":
    old(words[1:], "bnxtqos -dev=eth8")
else:
    sys.exit(1)
"""
ETHTOOL = r"""#!/bin/sh
state=$TOOLS/ethtool.state; pause=on; [ -f "$state" ] && . "$state"
case $1 in
-a) printf 'Pause parameters for eth8:\nAutonegotiate:\toff\nRX:\t\t%s\nTX:\t\t%s\n' $pause $pause ;;
-A) echo "ethtool $*" >>"$TOOLS/done"; echo "pause=$4" >>"$state" ;;
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
BLANK = {
    "tsa": ["strict"] * 8,
    "bw": [0] * 8,
    "map": [0] * 8,
    "pfc": [False] * 8,
    "app": [],
}
VENDOR = {
    **BLANK,
    "tsa": ["ets", "ets", *["strict"] * 6],
    "bw": [50, 50, 0, 0, 0, 0, 0, 0],
    "map": [0, 0, 0, 1, 0, 0, 0, 2],
    "pfc": [False] * 3 + [True] + [False] * 4,
    "app": [[5, 26, 3], [5, 48, 7], [3, 4791, 3]],
}
FORMS = ("dcb", "new", "fed", "old", "bnxtqos")
PREFIX = {
    "dcb": "dcb",
    "new": "niccli --dev 0000:06:00.0",
    "fed": "niccli -dev 0000:06:00.0",
    "old": "niccli -i 2",
    "bnxtqos": "bnxtqos -dev=eth8",
}
QOS = ("PRIO_TC", "TSA", "TCBW", "PFC", "ROCE", "DSCP2PRIO")


class Bench:
    """A root folder with the program, a fake /sys and the tools."""

    def __init__(
        self, folder: Path, shell: str, form: str = "dcb", port: dict[str, object] | None = None
    ) -> None:
        self.root, self.sys, self.tools, self.shell = folder / "root", folder / "s", folder / "tools", shell
        self.form = form
        self.tools.mkdir(parents=True)
        for step in (*qos_file.common_files(), *(s for s in change().commit if isinstance(s, Put))):
            self.write(self.root, step.path, step.text or "")
        for name, text in {
            **dict.fromkeys(("dcb", "niccli", "bnxtqos"), TOOL),
            "ethtool": ETHTOOL,
            "cma_roce_tos": CMA.replace("@NAME@", "cma_roce_tos").replace("@DEFAULT@", "0"),
            "cma_roce_mode": CMA.replace("@NAME@", "cma_roce_mode").replace("@DEFAULT@", "RoCE v2"),
        }.items():
            self.tool(name, text)
        (self.tools / "port.json").write_text(json.dumps(port or BLANK))
        self.write(self.sys, "/sys/class/infiniband/bnxt_re0/ports/1/gid_attrs/ndevs/0", "eth8\n")
        (self.sys / "sys/devices/0000:06:00.0").mkdir(parents=True)
        (self.sys / "sys/class/net/eth8").mkdir(parents=True)
        (self.sys / "sys/class/net/eth8/device").symlink_to(self.sys / "sys/devices/0000:06:00.0")
        (self.sys / "sys/kernel/config/rdma_cm").mkdir(parents=True)

    @staticmethod
    def write(base: Path, path: str, text: str) -> None:
        target = base / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def configfs(self, profile: str = "1", **values: str) -> None:
        """Plain files, which keep what is written and do not apply anything."""
        base = "/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc"
        names = ("ecn_enable", "ecn_marking", "roce_dscp", "cnp_dscp", "cnp_prio", "min_time_bet_cnp")
        files = {**dict.fromkeys(names, "0x0"), "cc_mode": "0x1", "disable_prio_vlan_tx": "0x1", "g": "0x8"}
        for name, value in {**files, **values}.items():
            self.write(self.sys, f"{base}/{name}", f"{value}\n")
        if "apply" not in values:
            self.write(self.sys, f"{base}/apply", "send priority vlan (VLAN 0)\t: Disabled\n")
        self.write(
            self.sys, "/sys/kernel/debug/bnxt_re/bnxt_re0/info", f"\tfw_service_prof_type_sup : {profile}\n"
        )

    def debugfs(self) -> None:
        """The kernel driver's files."""
        for name in ("alt_vlan_dscp", "alt_vlan_pcp", "enable_cc", "tos_dscp", "tos_ecn"):
            self.write(self.sys, f"/sys/kernel/debug/bnxt_re/0000:06:00.0/cc_config/{name}", "0\n")
        for name, value in (("cc_mode", "1"), ("run_avg_weight_g", "8")):
            self.write(self.sys, f"/sys/kernel/debug/bnxt_re/0000:06:00.0/cc_config/{name}", f"{value}\n")

    def tool(self, name: str, text: str) -> None:
        path = self.tools / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("@PYTHON@", sys.executable))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    @property
    def environment(self) -> dict[str, str]:
        """What leads the scripts to the stand-ins."""
        return {
            "PATH": f"{self.tools}/bin:{os.environ['PATH']}",
            "FABRIC_ROOT": str(self.root),
            "FABRIC_SYSROOT": str(self.sys),
            "TOOLS": str(self.tools),
            "FORM": self.form,
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        words = [self.shell, "sh"] if self.shell == "busybox" else [self.shell]
        script = self.root / "usr/local/sbin/fabric-qos"
        return subprocess.run(
            [*words, str(script), *arguments],
            env=self.environment,
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

    def settings(self) -> dict[str, str]:
        """The settings file of the worked example."""
        text = (self.root / "etc/fabric/qos/eth8.conf").read_text()
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def facts(self) -> dict[str, str]:
        """What the reader tells of this port, for the lines."""
        entries = json.loads((self.tools / "port.json").read_text())["app"]
        found = {
            f"{word} eth8": " ".join(f"{key}:{p}" for s, key, p in sorted(entries) if s == number)
            for word, number in (("app", 5), ("udp", 3))
        }
        return {
            **found,
            "tool eth8": PREFIX[self.form],
            "classes eth8": "3",
            "profile eth8": "1",
            "cc eth8": "configfs",
        }


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, request.param)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_it(tmp_path: Path, shell: str) -> None:
    bench = Bench(tmp_path, shell)
    words = [shell, "sh"] if shell == "busybox" else [shell]
    script = bench.root / "usr/local/sbin/fabric-qos-bnxt"
    done = subprocess.run([*words, "-n", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_does_what_the_lines_say(bench: Bench) -> None:
    bench.configfs()
    before = bench.attributes
    bench.run("eth8")
    assert bench.done == [line for line in WORKED_LINES if line.startswith(("ethtool", "dcb", "cma"))]
    written = {line.split()[4]: line.split()[2] for line in WORKED_LINES if line.startswith("echo ")}
    assert {path: value for path, value in bench.attributes.items() if before[path] != value} == written


@pytest.mark.parametrize("form", FORMS)
def test_a_second_run_writes_nothing(form: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, SHELLS[0], form)
    rows = [f"{key}={bench.settings()[key]}" for key in QOS]
    assert bench.run("--check", "eth8", "NIC=bnxt", *rows).returncode == 1
    assert bench.done == []
    first = bench.run("eth8", "NIC=bnxt", *rows)
    assert (first.returncode, first.stderr) == (0, "")
    count = len(bench.done)
    again = bench.run("eth8", "NIC=bnxt", *rows)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert len(bench.done) == count
    check = bench.run("--check", "eth8", "NIC=bnxt", *rows)
    assert (check.returncode, check.stdout) == (0, "")


EVERY_KNOB: list[tuple[dict[str, str], dict[str, object]]] = [
    ({"PRIO_TC": "0,0,0,1,0,0,2,0", "TSA": "ets,ets,strict,-,-,-,-,-", "TCBW": "40,60,0,-,-,-,-,-"}, BLANK),
    (
        {
            "PRIO_TC": "0,0,0,1,0,0,2,0",
            "TSA": "ets,ets,strict,-,-,-,-,-",
            "TCBW": "40,60,0,-,-,-,-,-",
            "CNP_DSCP": "48",
        },
        VENDOR,
    ),
    ({"PRIO_TC": "0,0,0,1,0,0,-,2", "TSA": "ets,ets,strict,-,-,-,-,-", "TCBW": "30,70,0,-,-,-,-,-"}, VENDOR),
    (
        {
            "PRIO_TC": "0,0,0,0,0,0,0,0",
            "TSA": "strict,-,-,-,-,-,-,-",
            "TCBW": "0,-,-,-,-,-,-,-",
            "PFC": "0,0,0,0,0,0,0,0",
            "ROCE": "none",
            "DSCP2PRIO": ",".join(["0"] * 64),
        },
        VENDOR,
    ),
    ({"PFC": "0,0,0,0,1,0,0,0"}, VENDOR),
    ({"PFC": "0,0,0,0,0,0,0,0"}, VENDOR),
    ({"ROCE": "4"}, VENDOR),
    ({"ROCE": "none"}, VENDOR),
    ({"ROCE": "3"}, BLANK),
    (
        {"DSCP2PRIO": ",".join({26: "3", 48: "6", 56: "7"}.get(d, "0") for d in range(64)), "CNP_DSCP": "48"},
        BLANK,
    ),
    (
        {"DSCP2PRIO": ",".join({26: "3", 48: "7", 54: "7"}.get(d, "0") for d in range(64)), "CNP_DSCP": "48"},
        VENDOR,
    ),
    ({"DSCP2PRIO": ",".join({26: "3", 48: "7"}.get(d, "0") for d in range(64)), "CNP_DSCP": "48"}, VENDOR),
    ({"DSCP2PRIO": ",".join({26: "3", 48: "6"}.get(d, "0") for d in range(64))}, VENDOR),
]
"""Knobs of the port's tables, from a blank port and from the vendor's default."""


def combinations() -> list[tuple[str, int]]:
    """(tool, number of a row): all of them with dcb; Broadcom's tools for every verb that they have."""
    return [("dcb", row) for row in range(len(EVERY_KNOB))] + [
        (form, row) for form in FORMS[1:] for row in (2, 5)
    ]


@pytest.mark.parametrize(("form", "row"), combinations())
def test_what_people_see_is_what_runs(form: str, row: int, tmp_path: Path) -> None:
    """The lines of a change and the commands of the library come from one text each."""
    wanted, port = EVERY_KNOB[row]
    bench = Bench(tmp_path, SHELLS[0], form, port)
    bench.configfs(cnp_dscp="0x30")
    before = _seen(port)
    people = lines.lines(PORT, wanted, {**before, "CNP_DSCP": "48"}, bench.facts())
    done = bench.run("eth8", "NIC=bnxt", *(f"{key}={value}" for key, value in wanted.items()))
    assert done.stderr == ""
    assert bench.done == list(people)


def _seen(port: dict[str, object]) -> dict[str, str]:
    """The knobs of a stand-in's port."""
    app = [row for row in port["app"] if isinstance(row, list)] if isinstance(port["app"], list) else []
    section = {
        "pfc eth8": Section(json.dumps({"prio_pfc": port["pfc"]}), 0, True),
        "ets eth8": Section(
            json.dumps({"tc_tsa": port["tsa"], "tc_bw": port["bw"], "prio_tc": port["map"]}), 0, True
        ),
        "app eth8": Section(
            json.dumps(
                {
                    "dscp_prio": [[key, p] for s, key, p in app if s == 5],
                    "dgram_port_prio": [[key, p] for s, key, p in app if s == 3],
                }
            ),
            0,
            True,
        ),
    }
    return reader.port_knobs(section, "eth8")


CC_KNOBS: list[tuple[dict[str, str], str]] = [
    ({"VLAN0": "on"}, "1"),
    ({"MARK": "1", "ECN": "1", "MODE": "0"}, "1"),
    ({"CNP_DSCP": "48"}, "1"),
    ({"CC_rp_g": "10", "CC_np_min_time_between_cnps": "4"}, "1"),
    ({"ECN": "1"}, "0"),
    ({"ROCE": "3", "ROCE_DSCP": "26", "CNP_PRIO": "6", "CNP_DSCP": "48"}, "0"),
    ({"CC_rp_g": "10"}, "0"),
]


@pytest.mark.parametrize(("wanted", "profile"), CC_KNOBS, ids=[str(i) for i in range(len(CC_KNOBS))])
def test_congestion_control_is_written_as_people_see_it(
    wanted: dict[str, str], profile: str, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, SHELLS[0], "dcb", {**VENDOR, "app": [[5, 26, 3], [5, 48, 6], [3, 4791, 3]]})
    bench.configfs(profile)
    unchanged = bench.attributes
    before = {"VLAN0": "off", "MARK": "0", "ECN": "0", "MODE": "1", "CC_rp_g": "8", "ROCE": "3"}
    before |= {"ROCE_DSCP": "0", "CNP_PRIO": "0", "CNP_DSCP": "0", "CC_np_min_time_between_cnps": "0"}
    people = lines.lines(PORT, wanted, before, {**bench.facts(), "profile eth8": profile})
    bench.run("eth8", "NIC=bnxt", *(f"{key}={value}" for key, value in wanted.items()))
    written = {line.split()[4]: line.split()[2] for line in people if line.startswith("echo ")}
    # What was 0x0 before is written all the same: `apply` takes all four points.
    same = {path for path, value in written.items() if unchanged.get(path) == value}
    found = {path: value for path, value in bench.attributes.items() if unchanged.get(path) != value}
    assert found == {path: value for path, value in written.items() if path not in same}
    assert (profile == "0") == any(path.endswith("roce_prio") for path in written)
    assert people[0].startswith("mkdir -p") and people[-1].startswith("rmdir")


def test_the_kernels_driver_takes_plain_numbers(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SHELLS[0])
    bench.debugfs()
    wanted = {"ECN": "1", "MARK": "1", "CNP_DSCP": "48", "CC_rp_g": "12", "MODE": "1"}
    unchanged = bench.attributes
    facts = {**bench.facts(), "cc eth8": "debugfs", "bdf eth8": "0000:06:00.0"}
    people = lines.lines(PORT, wanted, {"MODE": "1"}, facts)
    done = bench.run("eth8", "NIC=bnxt", *(f"{key}={value}" for key, value in wanted.items()))
    assert (done.returncode, done.stderr) == (0, "")
    written = {line.split()[4]: line.split()[2] for line in people}
    assert {path: value for path, value in bench.attributes.items() if unchanged[path] != value} == written
    assert bench.run("--check", "eth8", "NIC=bnxt", *(f"{k}={v}" for k, v in wanted.items())).returncode == 0


def test_what_the_hardware_has_counts(tmp_path: Path) -> None:
    """48 is staged and was never applied."""
    bench = Bench(tmp_path, SHELLS[0])
    bench.configfs(
        cnp_dscp="0x30", apply="cnp dscp (cnp_dscp)\t: 46\nsend priority vlan (VLAN 0)\t: Disabled"
    )
    assert bench.run("--check", "eth8", "NIC=bnxt", "CNP_DSCP=48").stdout == "CNP_DSCP: 46 instead of 48\n"


def test_without_files_congestion_control_fails_aloud(bench: Bench) -> None:
    assert "no files for congestion control" in bench.run("eth8", "NIC=bnxt", "ECN=1").stderr
    shutil.rmtree(bench.sys / "sys/class/infiniband")
    assert "no RDMA device" in bench.run("eth8", "NIC=bnxt", "ECN=1").stderr


def test_without_a_tool_it_fails_aloud(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SHELLS[0], "none")
    done = bench.run("eth8", "NIC=bnxt", "PFC=0,0,0,1,0,0,0,0")
    assert done.returncode == 1 and "neither dcb, niccli nor bnxtqos answers" in done.stderr


def test_a_refusal_is_told_with_the_tools_words(bench: Bench) -> None:
    (bench.tools / "refuse").write_text("")
    done = bench.run("eth8", "NIC=bnxt", "PFC=0,0,0,1,0,0,0,0")
    assert done.returncode == 1
    assert "fabric-qos: eth8: PFC: Attribute write: Invalid argument" in done.stderr


def test_a_value_that_is_ignored_is_noticed(bench: Bench) -> None:
    (bench.tools / "ignore").write_text("")
    done = bench.run("eth8", "NIC=bnxt", "ROCE=3")
    assert done.returncode == 1
    assert "ROCE: none instead of 3" in done.stderr and "did not take it" in done.stderr


@pytest.mark.parametrize("form", ["dcb", "fed"])
def test_entries_of_others_stay(form: str, tmp_path: Path) -> None:
    """iSCSI and the like by Ethertype or TCP port are nobody's business of ours."""
    other = [1, 35078, 4]
    bench = Bench(tmp_path, SHELLS[0], form, {**VENDOR, "app": [other, *VENDOR["app"]]})  # type: ignore[misc]
    rows = [f"{key}={bench.settings()[key]}" for key in QOS]
    assert bench.run("eth8", "NIC=bnxt", *rows).returncode == 0
    assert other in json.loads((bench.tools / "port.json").read_text())["app"]


def test_every_parameter_has_its_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SHELLS[0])
    bench.configfs(**{file: "0x0" for _, file, _ in knobs.PARAMETERS})
    wanted = [f"CC_{name}=17" for name, _, _ in knobs.PARAMETERS]
    bench.run("eth8", "NIC=bnxt", *wanted)
    for _, file, _ in knobs.PARAMETERS:
        assert bench.attributes[f"/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc/{file}"] == "0x11"
