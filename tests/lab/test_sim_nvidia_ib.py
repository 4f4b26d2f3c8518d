"""The simulated MLNX-OS switch: the worked example and the quoted texts of its page, and refusals."""

from __future__ import annotations

import pytest

from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact, Session
from rdma_fabric.lab.simulators.nvidia_ib import DEVICE, SM_SECONDS, IbSwitch

EXAMPLE = """enable
configure terminal
no cli session paging enable
ib partition Default mtu 4K force
ib partition Default defmember full force
ib partition Default ipoib force
ib partition Default member ALL type full force
ib partition gpua pkey 0x2 force
ib partition gpua ipoib force
ib partition gpua mtu 4K force
ib partition gpua member ALL type limited force
ib sm routing-engines ftree
ib smnode leaf01 sm-priority 14
ib smnode leaf01 enable
ib sm
configuration write"""


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        ports = tuple(PortFact(f"1/{number}") for number in range(1, 5))
        self.device: IbSwitch = DEVICE(DeviceFacts("leaf01", "nvidia_ib", ports=ports), lambda: self.now)
        self.session: Session = self.device.open("admin")

    def type(self, text: str) -> str:
        return "".join(self.session.run(line).text for line in text.splitlines())


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_worked_example_is_taken_and_kept_over_a_reboot(bench: Bench) -> None:
    assert bench.type(EXAMPLE) == ""
    before = bench.device.running()
    bench.device.reboot()
    assert bench.device.running() == before
    assert "ib partition gpua mtu 4K force" in before


def test_the_quoted_partitions(bench: Bench) -> None:
    assert bench.type("enable\nshow ib partition") == (
        "Default:\n  PKey : 0x7FFF\n  ipoib: yes\n  members:\n    GUID='ALL' member='full'\n"
    )


def test_prompts(bench: Bench) -> None:
    said = [bench.session.prompt()]
    for line in ("enable", "configure terminal", "interface ib 1/1"):
        bench.type(line)
        said.append(bench.session.prompt())
    name = "leaf01 [standalone: master]"
    assert said == [f"{name} > ", f"{name} # ", f"{name} (config) # ", f"{name} (config interface ib 1/1) # "]


def test_operator_mode_knows_no_ib(bench: Bench) -> None:
    assert bench.type("show ib partition") == '% Unrecognized command "ib".\n'


def test_the_subnet_manager_takes_its_time(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal\nib sm")
    assert bench.type("show ib sm") == "disable\n"
    bench.now += SM_SECONDS
    assert bench.type("show ib sm") == "enable\n"


def test_the_default_partition_asks(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal\nno ib partition Default ipoib")
    assert bench.session.prompt() == "Type 'yes' to continue: "
    bench.type("no")
    assert bench.device.config.partitions["Default"].ipoib
    bench.type("no ib partition Default ipoib\nyes")
    assert not bench.device.config.partitions["Default"].ipoib


def test_what_is_not_saved_is_lost(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal\nib sm")
    bench.device.reboot()
    assert not bench.device.config.sm


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ib partition a pkey 0x8000 force", "% Invalid pkey 0x8000"),
        ("ib partition a pkey 4096", "% Invalid pkey 4096"),
        ("ib partition Default member 0x0002c90300a1b2c3 type full force", "% Invalid port GUID"),
        ("ib partition Default member 00:02:c9:03:00:a1:b2 type full force", "% Invalid port GUID"),
        ("ib partition Default mtu 4096 force", '% Unrecognized command "4096".'),
        ("ib partition Default defmember both force", "% both needs ib sm allow-both-pkeys"),
        ("ib smnode leaf01 sm-priority 16", "% Invalid SM priority 16"),
        ("ib sm routing-engine ftree", '% Unrecognized command "routing-engine".'),
        ("ib sm routing-engines fattree", "% Invalid routing engine fattree"),
        ("interface ib 1/9", "% Invalid interface 1/9"),
        ("priority-flow-control on", '% Unrecognized command "priority-flow-control".'),
    ],
)
def test_what_the_switch_refuses(bench: Bench, line: str, said: str) -> None:
    bench.type("enable\nconfigure terminal")
    before = bench.device.running()
    assert bench.type(line) == f"{said}\n"
    assert bench.device.running() == before


def test_state_survives_a_restart_of_the_lab(bench: Bench) -> None:
    bench.type(EXAMPLE)
    other = Bench()
    other.device.restore(bench.device.dump())
    assert other.device.running() == bench.device.running()
