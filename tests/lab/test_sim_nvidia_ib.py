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
    def __init__(self, version: str = "", names: tuple[str, ...] = ("1/1", "1/2", "1/3", "1/4")) -> None:
        self.now = 0.0
        ports = tuple(PortFact(name) for name in names)
        facts = DeviceFacts("leaf01", "nvidia_ib", version=version, ports=ports)
        self.device: IbSwitch = DEVICE(facts, lambda: self.now)
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


def test_the_quoted_partitions_before_3_6_8010() -> None:
    old = Bench("3.6.8008")
    assert old.type("enable\nshow ib partition") == (
        "  Default\n    PKey  = 0x7FFF\n    ipoib = yes\n    members\n      GUID='ALL' member='full'\n"
    )
    assert (
        Bench("3.6.8010").type("enable\nshow ib partition Default").startswith("Default:\n  PKey : 0x7FFF\n")
    )


CONFIRM = "Type 'yes' to continue: "


@pytest.mark.parametrize(
    "line",
    [
        "no ib partition Default",
        "no ib partition Default defmember",
        "no ib partition Default ipoib",
        "no ib partition Default member ALL",
        "ib partition Default defmember limited",
        "ib partition Default ipoib",
        "ib partition Default mtu 4K",
        "ib partition Default member ALL type limited",
    ],
)
def test_the_default_partition_asks(bench: Bench, line: str) -> None:
    bench.type("enable\nconfigure terminal")
    before = bench.device.running()
    assert bench.type(line) == "" and bench.session.prompt() == CONFIRM
    bench.type("no")
    assert bench.device.running() == before and bench.session.prompt().endswith("(config) # ")
    bench.type(f"{line}\nyes")
    assert bench.session.prompt().endswith("(config) # ")
    changed = line not in ("no ib partition Default defmember", "ib partition Default ipoib")
    assert (bench.device.running() != before) == changed


def test_force_and_other_partitions_do_not_ask(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal\nib partition gpua pkey 0x2")
    for line in (
        "ib partition Default defmember limited force",
        "ib partition gpua ipoib",
        "ib partition gpua mtu 2K",
        "ib partition gpua member 00:02:c9:03:00:a1:b2:c3 type full",
        "no ib partition gpua member 00:02:c9:03:00:a1:b2:c3",
        "no ib partition gpua ipoib",
        "no ib partition gpua mtu",
        "no ib partition gpua defmember",
        "no ib partition gpua",
    ):
        assert bench.type(line) == "" and bench.session.prompt() != CONFIRM, line
    assert list(bench.device.config.partitions) == ["Default"]


def test_default_comes_back_with_its_own_key_only(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal\nno ib partition Default\nyes")
    assert bench.type("show ib partition") == ""
    assert bench.type("ib partition Default pkey 0x2 force").startswith("% ")
    assert bench.type("ib partition Default pkey 0x7fff force") == ""
    assert "PKey : 0x7FFF" in bench.type("show ib partition Default")


def test_pkeys_from_2_to_7ffe(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal")
    assert bench.type("ib partition a pkey 0x2 force\nib partition b pkey 0x7ffe force") == ""
    for text in ("0x0", "0x1", "0x7fff", "0x8002", "2", "0x10000"):
        assert bench.type(f"ib partition c pkey {text} force").startswith("% "), text
    assert set(bench.device.config.partitions) == {"Default", "a", "b"}


def test_both_needs_the_switch_that_is_off_by_default(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal\nib partition a pkey 0x2 force")
    assert bench.type("ib partition a member ALL type both force").startswith("% ")
    assert bench.type("ib sm allow-both-pkeys\nib partition a member ALL type both force") == ""
    assert "GUID='ALL' member='both'" in bench.type("show ib partition a")
    assert bench.type("no ib sm allow-both-pkeys") == ""
    assert bench.type("ib partition a defmember both force").startswith("% ")


def test_two_layers_of_the_subnet_manager(bench: Bench) -> None:
    def state(*what: str) -> list[str]:
        return [bench.type(f"show ib smnode leaf01 {word}").strip() for word in what]

    bench.type("enable\nconfigure terminal")
    assert bench.type("show ib sm") == "disable\n"
    bench.type("ib sm")
    bench.now += SM_SECONDS
    assert state("sm-running", "sm-state", "sm-licensed") == ["not active", "disable", "active"]
    bench.type("ib smnode leaf01 enable")
    assert state("sm-running", "sm-state") == ["active", "enable"]
    bench.type("ib smnode leaf01 disable")
    assert state("sm-running", "sm-state") == ["not active", "disable"]
    bench.type("ib smnode leaf01 sm-priority 0\nib smnode leaf01 sm-priority 15")
    assert "ib smnode leaf01 sm-priority 15\n" in bench.device.running()
    bench.type("no ib smnode leaf01")
    assert "smnode" not in bench.device.running()


def test_what_the_subnet_manager_says(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal")
    assert bench.type("show ib sm version") == "OpenSM4.8.1\n"
    assert bench.type("show ib sm routing-info") == "minhop\n"
    assert bench.type("ib sm routing-engines ftree,updn") == ""
    assert bench.type("show ib sm routing-info") == "ftree\n"
    bench.type("ib sm root-guid 0x0002c90300a1b2c0\nib sm root-guid 0x0002c90300a1b2c1")
    bench.type("no ib sm root-guid 0x0002c90300a1b2c0")
    rows = [row.strip() for row in bench.type("show running-config").splitlines()]
    assert [row for row in rows if "root-guid" in row] == ["ib sm root-guid 0x0002c90300a1b2c1"]


def test_switches_of_the_subnet_manager_have_defaults(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal")
    before = bench.device.running()
    assert bench.type("no ib sm babbling-policy\nib sm accum-log-file") == ""
    assert bench.device.running() == before
    bench.type("ib sm babbling-policy\nno ib sm accum-log-file")
    assert "   ib sm babbling-policy\n   no ib sm accum-log-file\n" in bench.device.running()


def test_ports_one_by_one_and_as_a_range(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal\ninterface ib 1/1-1/3")
    assert bench.session.prompt() == "leaf01 [standalone: master] (config interface ib 1/1-1/3) # "
    bench.type("shutdown\nexit")
    assert "   interface ib 1/1-1/3 shutdown\n" in bench.device.running()
    bench.type("interface ib 1/2 no shutdown")
    assert bench.device.running().count("shutdown") == 2
    # On some versions the one-line form of a range is refused.
    assert bench.type("interface ib 1/1-1/3 no shutdown").startswith("% ")
    assert bench.type("interface ib 1/1-1/9").startswith("% ") and bench.type(
        "interface ib 1/3-1/1"
    ).startswith("% ")


def test_ports_of_quantum_2_have_three_numbers() -> None:
    switch = Bench("3.12.5000", ("1/3/1", "1/3/2", "1/10/1"))
    switch.type(
        "enable\nconfigure terminal\ninterface ib 1/10/1\nshutdown\nexit\ninterface ib 1/3/1 shutdown"
    )
    rows = [row.strip() for row in switch.device.running().splitlines() if "shutdown" in row]
    assert rows == ["interface ib 1/3/1 shutdown", "interface ib 1/10/1 shutdown"]


def test_running_config_is_indented_by_three(bench: Bench) -> None:
    bench.type("enable")
    rows = bench.type("show running-config").splitlines()
    assert rows and all(row.startswith("   ") and row[3] != " " for row in rows)
    assert Bench().type("show running-config").startswith("% Unrecognized command")


def test_saving(bench: Bench) -> None:
    bench.type("enable\nib sm\nwrite memory")
    assert not bench.device.stored["initial"].sm  # `ib` is a command of configuration mode
    bench.type("configure terminal\nib sm\nconfiguration write")
    bench.device.reboot()
    assert bench.device.config.sm
    other = Bench()
    other.type("enable\nconfigure terminal\nib sm\nexit\nwrite memory")
    other.device.reboot()
    assert other.device.config.sm
    assert other.type("configuration write").startswith("% Unrecognized command")  # enable mode


def test_on_3_6_only_write_memory_saves() -> None:
    old = Bench("3.6.8012")
    old.type("enable\nconfigure terminal\nib sm")
    assert old.type("configuration write").startswith("% ")
    assert old.type("write memory") == "" and old.device.stored["initial"].sm


def test_a_copy_of_the_configuration_and_the_way_back(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal")
    assert bench.type("show configuration files") == "initial (active)\n"
    assert bench.type("configuration write to guard no-switch") == ""
    assert bench.type("show configuration files") == "guard\ninitial (active)\n"
    bench.type("ib sm\nib partition gpua pkey 0x2 force")
    assert bench.type("configuration switch-to guard") == ""
    assert not bench.device.config.sm and list(bench.device.config.partitions) == ["Default"]
    assert bench.type("show configuration files") == "guard (active)\ninitial\n"
    assert bench.type("configuration switch-to nothing").startswith("% ")


def test_reload_loses_what_was_not_saved_and_ends_the_session(bench: Bench) -> None:
    bench.type("enable\nconfigure terminal\nib sm")
    assert bench.session.run("reload noconfirm").close and not bench.device.config.sm
    other = Bench()
    other.type("enable\nconfigure terminal\nib sm\nreload")
    assert other.session.prompt() == CONFIRM and not other.session.run("no").close and other.device.config.sm
    other.type("reload")
    assert other.session.run("yes").close and not other.device.config.sm


def test_ways_out(bench: Bench) -> None:
    bench.type("enable\nconfig term\ninterface ib 1/1")
    for end in ("(config) # ", "[standalone: master] # "):
        assert not bench.session.run("exit").close
        assert bench.session.prompt().endswith(end)
    assert bench.session.run("exit").close


def test_an_exec_channel_tells_of_a_refusal_on_any_line(bench: Bench) -> None:
    done = bench.device.execute("admin", "enable\nshow ib sm\nshow ib nothing")
    assert done.status == 1 and done.stdout.startswith("disable\n% Unrecognized command")
    assert bench.device.execute("admin", "enable\nshow ib sm").status == 0


@pytest.mark.parametrize(
    "line",
    [
        # Marked as unverified on the page: not to be relied on.
        "ib partition gpua rate 100",
        "ib partition gpua sl 1",
        "ib partition gpua scope link-local",
        "no ib sm routing-engines",
        "no ib smnode leaf01 sm-priority",
        "ib qos vlarb",
        "interface ib 1/1 mtu 4K",
        "interface ib 1/1 op-vls 4",
        "show interfaces ib status",
        # Needs a profile that is ready for split.
        "interface ib 1/1 module-type qsfp-split-2",
        # Near misses.
        "ib partition gpua mtu 4k force",
        "ib partition gpua mtu 3K force",
        "ib partition gpua defmember some force",
        "ib partition gpua member ALL full force",
        "ib partition gpua member all type full force",
        "ib partition gpua member ALL type full forced",
        "no ib partition gpua mtu 4K",
        "no ib partition gpua member ALL type full",
        "no ib partition gpua ipoib force",
        "ib partition nothere mtu 4K force",
        "show ib partition nothere",
        "ib smnode leaf01 sm-priority -1",
        "ib smnode leaf01 sm-priority high",
        "ib smnode leaf01 on",
        "ib sm root-guid 0002c90300a1b2c3",
        "ib sm on",
        "end",
        "commit",
    ],
)
def test_what_is_no_command(bench: Bench, line: str) -> None:
    bench.type("enable\nconfigure terminal\nib partition gpua pkey 0x2 force")
    before = bench.device.running()
    said = bench.type(line)
    assert said.startswith("% ") and said.endswith("\n"), said
    assert bench.device.running() == before and bench.session.prompt().endswith("(config) # ")


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


def test_what_the_owner_is_told_is_taken_and_read_as_wanted(bench: Bench) -> None:
    """The lines that the product hands over for a subnet manager on the switch."""
    from dataclasses import replace

    from rdma_fabric.platforms.nvidia_ib import PLATFORM
    from rdma_fabric.state import NodeState, SmState, SystemState
    from tests.unit.test_platform_nvidia_ib import MANAGER, OWN

    def change(sm: SmState) -> tuple[str, ...]:
        bench.now += SM_SECONDS
        answers = {line: bench.type(line) for line in PLATFORM.questions(OWN)}
        wanted = PLATFORM.realize(NodeState(SystemState(sm=sm)), OWN).state
        return PLATFORM.change(PLATFORM.parse(answers, OWN), wanted, OWN).lines

    bench.type("enable")
    for wanted in (MANAGER, replace(MANAGER, priority=3, both=True, routing=("updn",)), MANAGER):
        lines = [line.removeprefix("switch: ").replace("HOSTNAME", "leaf01") for line in change(wanted)]
        assert lines
        said = bench.type("\n".join(["configure terminal", *lines, "exit"]))
        assert said == "", said
        assert change(wanted) == ()
