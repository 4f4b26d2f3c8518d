"""Whole published designs (`shared/published`): loaded in our words, judged as their page says, compiled.

Every entry of `expected_lines` is either among the compiled lines, or `EQUIVALENT` says what stands for it
and why; an entry that neither covers is a failure, and so is an explanation that no entry needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric import render
from rdma_fabric.checker import build
from rdma_fabric.cli import main
from rdma_fabric.cli.common import load
from rdma_fabric.platforms import platform
from rdma_fabric.platforms._contract import Change
from rdma_fabric.state import Ecn, NodeState, Observation, differences
from tests.support import pages

HERE = Path(__file__).resolve().parent

pytestmark = pytest.mark.judge("published-designs")


@dataclass(frozen=True)
class Stands:
    """What stands for an expected line: texts that must be in the compiled file, and why that is the same."""

    why: str
    lines: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    """--set of the variant that the line belongs to."""
    absent: tuple[str, ...] = ()


_PRIORITY_2 = ("classes.roce.priority=2",)
_POOLS = (
    "SONiC computes pools and headroom from the cable length and speed (headroom: auto); the page's numbers "
    "belong to its two ASICs and are not the intent's to give"
)
EQUIVALENT: Mapping[str, Mapping[str, Stands]] = {
    "P09": {
        "nv set qos roce   (equal to: nv set qos roce mode lossless)": Stands(
            "the preset is one word for these settings; written out, each can be compared and changed",
            (
                "trust both",
                "dscp 24,25,26,27,28,29,30,31 switch-priority 3",
                "dscp 48,49,50,51,52,53,54,55 switch-priority 6",
                "pfc fabric-1 switch-priority 3",
                "pfc fabric-1 tx enable",
                "pfc fabric-1 rx enable",
                "congestion-control fabric-1 traffic-class 0,3 min-threshold 150000",
                "congestion-control fabric-1 traffic-class 0,3 max-threshold 1500000",
                "congestion-control fabric-1 traffic-class 0,3 probability 100",
                "egress-scheduler fabric-1 traffic-class 0,3 bw-percent 50",
                "traffic-class 6,7 mode strict",
            ),
        ),
        "nv set qos pfc default-global switch-priority 2": Stands(
            "a profile of our own on the ports of the network; default-global would also hold foreign ports",
            ("nv set qos pfc fabric-1 switch-priority 2",),
            _PRIORITY_2,
        ),
        "nv set qos egress-queue-mapping default-global switch-priority 2 traffic-class 3": Stands(
            "the number of a traffic class is local to the switch: here 2, with the same ECN and share",
            (
                "nv set qos egress-queue-mapping default-global switch-priority 2 traffic-class 2",
                "congestion-control fabric-1 traffic-class 0,2 min-threshold 150000",
            ),
            _PRIORITY_2,
        ),
        "nv set qos egress-queue-mapping default-global switch-priority 3 traffic-class 0": Stands(
            "no packet gets switch priority 3 any more: neither a DSCP nor an 802.1p value leads there",
            absent=("switch-priority 3",),
            change=_PRIORITY_2,
        ),
        "nv set qos mapping default-global trust both": Stands(
            "the same on a mapping profile of our own",
            ("nv set qos mapping fabric-1 trust both",),
            _PRIORITY_2,
        ),
        "nv set qos mapping default-global dscp 26 switch-priority 2": Stands(
            "the class of the preset holds DSCP 24 to 31",
            ("nv set qos mapping fabric-1 dscp 24,25,26,27,28,29,30,31 switch-priority 2",),
            _PRIORITY_2,
        ),
        "nv set qos traffic-pool default-lossy memory-percent 40": Stands(
            "the split of the buffer is the platform's (half and half, as in the preset); the intent has no "
            "word for it",
            ("nv set qos traffic-pool default-lossy memory-percent 50",),
        ),
        "nv set qos traffic-pool roce-lossless memory-percent 60": Stands(
            "as above",
            ("nv set qos traffic-pool default-lossless memory-percent 50",),
        ),
        "nv set qos roce mode lossy": Stands(
            "a lossy fabric is the same intent without `lossless`: trust, map and shares stay, PFC is gone",
            ("trust both", "traffic-class 6,7 mode strict"),
            ("classes.roce.lossless=false",),
            ("qos pfc fabric-1 switch-priority",),
        ),
    },
    "P18": {
        "install.sh -i <dev> -o ECNPFC -f -b 50 -w   (vendor way to reach it, then reboot)": Stands(
            "the vendor's installer and its reboot; the same settings by our own program, at once",
            (
                "PFC=0,0,0,1,0,0,0,0",
                "PRIO_TC=0,0,0,1,0,0,0,2",
                "TSA=ets,ets,strict,",
                "TCBW=50,50,0,",
                "ECN=1",
            ),
        ),
        "niccli nvm -setoption support_rdma -value 1 -scope 0": Stands(
            "the settings file of `fabric-nv-bnxt`, which knows niccli's form and the card's function "
            "(test_the_memory_of_a_card_is_written_as_published)",
            ("SUPPORT_RDMA=1",),
        ),
        "dscp2prio: 26 -> 3, 48 -> 7": Stands(
            "all 64, of which the card is given those that are not 0",
            (f"DSCP2PRIO={','.join({26: '3', 48: '7'}.get(point, '0') for point in range(64))}\n",),
        ),
        "PFC enabled: 3": Stands(
            "the priorities as a list, 7 not among them",
            ("PFC=0,0,0,1,0,0,0,0\n",),
            absent=("PFC=0,0,0,1,0,0,0,1",),
        ),
        "app: UDP 4791 -> priority 3": Stands("the entry of UDP port 4791 by its meaning", ("ROCE=3\n",)),
    },
    "P30": {
        "WRED_PROFILE|AZURE_LOSSLESS: drop probability 5 for all colours": Stands(
            "the page says it in words",
            (
                '"green_drop_probability": "5"',
                '"yellow_drop_probability": "5"',
                '"red_drop_probability": "5"',
            ),
        ),
        "BUFFER_POOL|ingress_lossless_pool: size 10875072 xoff 4194112 dynamic": Stands(_POOLS),
        "BUFFER_POOL|egress_lossless_pool: size 15982720 static": Stands(_POOLS),
        "BUFFER_PG lossless 100G 5m: size 1248 xon 2288 xoff 165568 xon_offset 2288": Stands(
            _POOLS, ('"Ethernet0": "5m"', '"pfc_enable": "3,4"')
        ),
        "BUFFER_PG lossless 100G 300m: xoff 268736": Stands(_POOLS, ('"Ethernet8": "300m"',)),
        "Tomahawk 2, 100G 5m: size 1248 xon 1248 xoff 54080 xon_offset 2496; 40m 59696; 300m 101088": Stands(
            _POOLS
        ),
    },
}


def _design(shared: Path, name: str) -> dict[str, Any]:
    file = next((shared / "published").glob(f"{name[1:]}-*.yaml"))
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def _compiled(name: str, node: str, change: tuple[str, ...], out: Path) -> str:
    options = [word for one in change for word in ("--set", one)]
    assert main(["compile", str(HERE / name), "-o", str(out), "-q", *options]) == 0
    files = (file for file in sorted((out / node).rglob("*")) if file.is_file())
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def _check(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["check", str(HERE / name), "--format", "json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def _lines(design: Mapping[str, Any]) -> list[str]:
    return [line for lines in design["expected_lines"].values() for line in lines]


def _printed(line: str, text: str) -> bool:
    """True when the compiled file holds the line; `TABLE|key: field value, ...` is looked up in JSON."""
    if line in text.splitlines():
        return True
    match = re.fullmatch(r"(\w+)\|(\w+): ((?:\w+ \d+)(?:, \w+ \d+)*)", line)
    if match is None or not text.startswith("{"):
        return False
    row = json.loads(text).get(match[1], {}).get(match[2], {})
    return all(row.get(part.split()[0]) == part.split()[1] for part in match[3].split(", "))


@pytest.mark.parametrize("name", ["P09", "P18", "P30"])
def test_accepted_designs(name: str, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert str(_design(shared, name)["checker_expect"][0]).startswith("accept")
    code, report = _check(name, capsys)
    assert code == 0
    assert [one for one in report["findings"] if one["severity"] != "note"] == []


@pytest.mark.parametrize(("name", "node"), [("P09", "leaf01"), ("P18", "gpu01"), ("P30", "tor01")])
def test_every_expected_line_is_accounted_for(name: str, node: str, shared: Path, tmp_path: Path) -> None:
    lines = _lines(_design(shared, name))
    assert set(EQUIVALENT[name]) <= set(lines), "an explanation that no line needs"
    for index, line in enumerate(lines):
        stands = EQUIVALENT[name].get(line)
        text = _compiled(name, node, stands.change if stands else (), tmp_path / str(index))
        if stands is None:
            assert _printed(line, text), line
            continue
        assert stands.why
        assert [one for one in stands.lines if one not in text] == [], line
        assert [one for one in stands.absent if one in text] == [], line


def test_thresholds_of_the_read_back_are_those_of_the_intent(shared: Path) -> None:
    """The page prints 150000 bytes as 146.48 KB and as 153.00 KB: states compare bytes, not texts."""
    values = _design(shared, "P09")["readback"][0]["values"]
    shown = next(value for value in values if value.startswith("min-threshold"))
    printed = float(shown.split()[1]) * 1024
    port = build(load(HERE / "P09")).ports["leaf01"]["swp16"]
    ecn = port.state.qos.classes[3].ecn
    assert isinstance(ecn, Ecn)
    assert abs(ecn.kmin.value - printed) < 0.001 * ecn.kmin.value


# ---------------------------------------------------------------- hosts


def test_every_design_of_hosts_is_here(shared: Path) -> None:
    """A host setting that a page prescribes is compiled, or `EQUIVALENT` and `_P21_LINES` say what stands
    for it; the host that runs a subnet manager (P27) is in tests/cases/test_infiniband.py."""
    designs = [yaml.safe_load(file.read_text("utf-8")) for file in (shared / "published").glob("*.yaml")]
    found = {one["id"] for one in designs if one["kind"] == "host" or "host" in one["expected_lines"]}
    assert found == {"P18", "P21"}


def _get_qos(values: list[str]) -> str:
    """niccli's print from the page's words for it."""
    found = []
    heads = {"PRIO_MAP": "ETS Configuration", "PFC enabled": "PFC", "APP#0": "APP"}
    for value in values:
        found += [f"IEEE 8021QAZ {head} TLV:" for word, head in heads.items() if value.startswith(word)]
        if match := re.fullmatch(r"(APP#\d) priority (\d) sel (\d) (dscp|port) (\d+)", value):
            label = {"dscp": "DSCP", "port": "UDP or DCCP"}[match[4]]
            found += [f"{match[1]}:", f"Priority: {match[2]}", f"Sel: {match[3]}", f"{label}: {match[5]}"]
        else:
            word = next(
                word
                for word in ("PRIO_MAP", "TC Bandwidth", "TSA_MAP", "PFC enabled", "TC Rate Limit")
                if value.startswith(word)
            )
            found.append(f"{word}: {value.removeprefix(word).lstrip(': ')}")
    return "\n".join(found)


_THOR2: Mapping[str, str] = {
    "device": "bnxt_re0",
    "stack": "configfs",
    "rdma": "bnxt_re0",
    "bdf": "0000:06:00.0",
    "tool": "niccli -dev 0000:06:00.0",
    "nvform": "-dev 0000:06:00.0",
}


def _thor2(**sections: str) -> tuple[Observation, Change]:
    """What a host of P18 shows on its first port, and what would be written there."""
    view = build(load(HERE / "P18")).views["gpu01"]
    part = platform("nic_bnxt")
    hw = replace(view.hw, ports=view.hw.ports[:1])
    port = hw.ports[0].name
    text = "".join(f"@@{name} {port}\n{body}\n\n@=0\n" for name, body in {**_THOR2, **sections}.items())
    seen = part.parse({part.questions(hw)[0]: text}, hw)
    return seen, part.change(seen, replace(view.wanted, ports=view.wanted.ports[:1]), hw)


def test_the_published_print_is_what_its_intent_means(shared: Path) -> None:
    """`get_qos` and `get_dscp2prio` as published: the reference page's print, and nothing to change."""
    shown = {one["command"]: one["values"] for one in _design(shared, "P18")["readback"]}
    assert set(shown) == {"niccli get_qos", "niccli get_dscp2prio", "niccli dump pri2cos"}
    text = _get_qos(shown["niccli get_qos"])
    pages_print = next(
        one.text
        for one in pages.read(shared / "reference")
        if one.anchor == "IEEE 8021QAZ ETS Configuration TLV:"
    )
    assert text.split("\n") == [line.strip() for line in pages_print.splitlines() if line.strip()]
    rows = (value.split() for value in shown["niccli get_dscp2prio"])
    dscps = "\n".join(["dscp2prio mapping:", *(f"priority:{row[1]}  dscp: {row[3]}" for row in rows)])
    seen, _ = _thor2(qos=text, dscps=dscps)
    wanted = build(load(HERE / "P18")).views["gpu01"].wanted.ports[0].settings
    found = differences(wanted.qos, seen.running.ports[0].settings.qos)
    assert [item for item in found if not item.unknown] == []
    # Not in the print: the driver's files, ethtool and dcb tell them.
    assert {item.path for item in found} == {"trust", "dcbx", "global_pause"}
    assert [note for note in seen.notes if "DSCP" in note] == []
    # `dump pri2cos` is not asked: priority -> TC is in get_qos, and a queue's number is the chip's own.
    queues = [state.queue for state in seen.running.ports[0].settings.qos.classes]
    told = " ".join(shown["niccli dump pri2cos"])
    assert "priority 3 TC 1" in told and "priority 7 TC 2" in told and "others TC 0" in told
    assert queues == [0, 0, 0, 1, 0, 0, 0, 2]


def test_the_memory_of_a_card_is_written_as_published(shared: Path) -> None:
    line = _lines(_design(shared, "P18"))[1]
    _, change = _thor2(**{"nv support_rdma": "support_rdma = False", "device": ""})
    assert line.replace("niccli ", "niccli -dev 0000:06:00.0 ") in change.lines


# ---------------------------------------------------------------- P21: meant to be rejected


def test_the_operators_defaults_are_rejected(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert str(_design(shared, "P21")["checker_expect"][0]).startswith("reject")
    code, report = _check("P21", capsys)
    loud = [one for one in report["findings"] if one["severity"] != "note"]
    assert code == 1
    assert report["rejected"] == ["gpu01", "gpu02"]
    assert [one["name"] for one in loud] == ["lossless-takes-unmarked"]
    assert "ToS 0" in loud[0]["found"] and "priority 3" in loud[0]["reason"]


def test_its_cnps_are_not_in_the_switches_class(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "CNP DSCP 4 is not in the CNP class" in _design(shared, "P21")["checker_expect"][1]
    code, report = _check("P21_switch", capsys)
    loud = [one for one in report["findings"] if one["severity"] != "note"]
    assert code == 1
    assert [one["name"] for one in loud] == ["cnp-dscp-differs"]
    assert {place["node"] for place in loud[0]["places"]} == {"gpu01", "gpu02"}
    assert loud[0]["found"] == "4" and loud[0]["wanted"].startswith("48")


def test_a_rejected_design_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(HERE / "P21"), "-o", str(tmp_path)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
    assert "lossless-takes-unmarked" in capsys.readouterr().err


_P21_LINES: Mapping[str, str] = {
    "trust=dscp": "TRUST=dscp",
    "pfc=0,0,0,1,0,0,0,0": "PFC=0,0,0,1,0,0,0,0",
    "tos=0": "CMA_TOS=0",
    # Names without the number of the port: the host's program adds it.
    "nvconfig ROCE_CC_PRIO_MASK_P1=255": "ROCE_CC_PRIO_MASK=255",
    "nvconfig CNP_DSCP_P1=4": "CNP_DSCP=4",
    "nvconfig CNP_802P_PRIO_P1=6": "CNP_802P_PRIO=6",
    # One file per port.
    "second port: the same with _P2": "etc/fabric/nv/eth1.conf",
}


def test_lines_that_the_rejected_design_would_have(shared: Path) -> None:
    lines = _lines(_design(shared, "P21"))
    assert set(lines) == set(_P21_LINES)
    judged = build(load(HERE / "P21"))
    files = {file.path: file.text for file in render.compile_fabric(judged, ["gpu01"])["gpu01"]}
    text = "\n".join((*files, files["etc/fabric/qos/eth0.conf"], files["etc/fabric/nv/eth0.conf"]))
    assert [line for line in lines if _P21_LINES[line] not in text.splitlines()] == []
    state: NodeState = judged.views["gpu01"].wanted
    assert {port.settings.marking.cnp_dscp for port in state.ports} == {4}
