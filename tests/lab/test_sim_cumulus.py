"""The simulated Cumulus Linux switch: transcripts of the documentation, refusals, revisions, the shell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric.lab.simulators import _cumulus_config as trees
from rdma_fabric.lab.simulators import _cumulus_schema as nvue
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact, Session
from rdma_fabric.lab.simulators.cumulus import DEVICE, Cumulus

PORTS = tuple(f"swp{number}" for number in range(1, 9))
SEED = (
    "nv set system location 'row 4, rack 7'",
    "nv set system aaa user ops hashed-password '$6$abc$def/ghi.'",
    "nv set system aaa user ops role system-admin",
    "nv set interface swp1 description 'gpu01 rail 0'",
    "nv set interface eth0 acl MGMT inbound control-plane",
    "nv set acl MGMT type ipv4",
    "nv set acl MGMT rule 10 match ip source-ip 10.0.0.0/8",
    "nv set acl MGMT rule 10 action permit",
    "nv set vrf default router bgp autonomous-system 65101",
    "nv set vrf default router bgp neighbor swp5 remote-as external",
    "nv set router bgp router-id 10.10.10.1",
)


class Bench:
    """A switch, a clock that the test moves, and the exec channel."""

    def __init__(
        self,
        version: str = "5.14",
        model: str = "SN5600",
        seed: tuple[str, ...] = (),
        ports: tuple[str, ...] = PORTS,
    ) -> None:
        self.now = 0.0
        facts = DeviceFacts(
            "leaf01",
            "cumulus",
            model,
            version,
            tuple(PortFact(name, 400, peer_node="spine01", peer_port=f"swp{name[3:]}") for name in ports),
            seed,
        )
        self.device: Cumulus = DEVICE(facts, lambda: self.now)

    def run(self, command: str, user: str = "cumulus") -> str:
        """Everything that a command prints."""
        result = self.device.execute(user, command)
        return result.stdout + result.stderr

    def ok(self, *commands: str) -> None:
        """Commands that must succeed quietly (the first of a candidate tells its number)."""
        for command in commands:
            result = self.device.execute("cumulus", command)
            assert result.status == 0, (command, result)
            assert not result.stderr, (command, result)

    def apply(self) -> None:
        """Apply the candidate; it must be accepted."""
        assert re.fullmatch(
            r"(.*\n)*applied(_and_saved)? \[rev_id: \d+\]\n", self.run("nv config apply -y")
        ), self.run("nv config apply -y")

    def json(self, command: str) -> Any:
        """The JSON of a show command."""
        return json.loads(self.run(f"{command} -o json"))

    def refused(self, *expected: str) -> None:
        """Applying the candidate must name these problems and change nothing."""
        before = self.device.running()
        text = self.run("nv config apply -y")
        assert re.match(r"Invalid config \[rev_id: \d+\]\n  ", text), text
        for part in expected:
            assert part in text
        assert self.device.running() == before


@pytest.fixture
def bench() -> Bench:
    return Bench()


WORKED_EXAMPLE = """\
nv set interface swp1-4 link mtu 9216
nv set qos roce enable on
nv set qos roce mode lossless
nv set qos mapping default-global trust l3
nv set qos mapping default-global dscp {others} switch-priority 0
nv set qos mapping default-global dscp 26 switch-priority 3
nv set qos mapping default-global dscp 48 switch-priority 6
nv set qos egress-queue-mapping default-global switch-priority 0 traffic-class 0
nv set qos egress-queue-mapping default-global switch-priority 1 traffic-class 0
nv set qos egress-queue-mapping default-global switch-priority 2 traffic-class 0
nv set qos egress-queue-mapping default-global switch-priority 4 traffic-class 0
nv set qos egress-queue-mapping default-global switch-priority 5 traffic-class 0
nv set qos egress-queue-mapping default-global switch-priority 7 traffic-class 0
nv set qos egress-queue-mapping default-global switch-priority 3 traffic-class 3
nv set qos egress-queue-mapping default-global switch-priority 6 traffic-class 6
nv set qos egress-scheduler default-global traffic-class 0,3 mode dwrr
nv set qos egress-scheduler default-global traffic-class 0,3 bw-percent 50
nv set qos egress-scheduler default-global traffic-class 6 mode strict
nv set qos congestion-control default-global traffic-class 3 min-threshold 150000
nv set qos congestion-control default-global traffic-class 3 max-threshold 1500000
nv set qos congestion-control default-global traffic-class 3 probability 100
nv set qos pfc default-global switch-priority 3
nv set qos pfc default-global tx enable
nv set qos pfc default-global rx enable
nv set qos pfc default-global cable-length 40
nv set qos pfc-watchdog polling-interval 100
nv set qos pfc-watchdog robustness 2
nv set interface swp1-4 qos pfc-watchdog state enable
""".format(others=",".join(str(code) for code in range(64) if code not in (26, 48)))


def stage_example(bench: Bench) -> None:
    bench.ok(*WORKED_EXAMPLE.splitlines())


# --- The reference page's examples ----------------------------------------------------------------


def test_worked_example_is_staged_diffed_applied_and_confirmed(bench: Bench) -> None:
    stage_example(bench)
    assert bench.device.execute("cumulus", "nv config diff").status == 1
    assert bench.run("nv config apply --confirm 300s -y") == "applied [rev_id: 2]\n"
    assert bench.run("nv config apply --confirm-yes") == "applied_and_saved [rev_id: 2]\n"
    assert bench.device.execute("cumulus", "nv config diff").stdout == ""
    tree = bench.json("nv config show")[1]["set"]
    assert tree["interface"]["swp1-4"] == {
        "link": {"mtu": 9216},
        "qos": {"pfc-watchdog": {"state": "enable"}},
    }
    qos = tree["qos"]
    assert qos["mapping"]["default-global"]["dscp"]["26"] == {"switch-priority": 3}
    assert len(qos["mapping"]["default-global"]["dscp"]) == 64
    assert qos["pfc"] == {
        "default-global": {
            "cable-length": 40,
            "rx": "enable",
            "switch-priority": {"3": {}},
            "tx": "enable",
        }
    }
    assert qos["pfc-watchdog"] == {"polling-interval": 100, "robustness": 2}
    assert qos["roce"] == {"enable": "on", "mode": "lossless"}
    assert qos["egress-scheduler"]["default-global"]["traffic-class"] == {
        "0": {"bw-percent": 50, "mode": "dwrr"},
        "3": {"bw-percent": 50, "mode": "dwrr"},
        "6": {"mode": "strict"},
    }


def test_worked_example_on_5_15_needs_the_new_words() -> None:
    bench = Bench("5.15")
    assert bench.run("nv set qos roce enable on") == "Error: Invalid Command: set qos roce enable on\n"
    bench.ok(*WORKED_EXAMPLE.replace("roce enable on", "roce state enabled").splitlines())
    bench.apply()
    assert bench.json("nv config show")[1]["set"]["qos"]["roce"] == {"mode": "lossless", "state": "enabled"}


def test_macro_free_variant_needs_all_eight_classes(bench: Bench) -> None:
    bench.ok(
        "nv set qos traffic-pool default-lossless memory-percent 50",
        "nv set qos traffic-pool default-lossy memory-percent 50",
        "nv set qos pfc default-global switch-priority 3",
        "nv set qos egress-scheduler default-global traffic-class 0,3 mode dwrr",
        "nv set qos egress-scheduler default-global traffic-class 0,3 bw-percent 50",
    )
    bench.refused("sum of bw-percent of all traffic classes is 175")
    bench.ok("nv set qos egress-scheduler default-global traffic-class 1,2,4-7 mode strict")
    bench.apply()
    assert bench.json("nv show interface swp1 qos pfc")["switch-priority"] == {"3": {}}


ROCE_TABLE = """\
                    operational  applied
------------------  -----------  --------
enable                           on
mode                lossless     lossless
pfc
  pfc-priority      3
  rx-enabled        enabled
  tx-enabled        enabled
  cable-length      100
congestion-control
  congestion-mode   ECN
  enabled-tc        0,3
  min-threshold     146.48 KB
  max-threshold     1.43 MB
  probability       100
trust
  trust-mode        pcp,dscp
lldp-app-tlv
  priority          3
  protocol-id       4791
  selector          UDP

RoCE PCP/DSCP->SP mapping configurations
===========================================
       pcp  dscp                     switch-prio
    -  ---  -----------------------  -----------
    0  0    0,1,2,3,4,5,6,7          0
    1  1    8,9,10,11,12,13,14,15    1
    2  2    16,17,18,19,20,21,22,23  2
    3  3    24,25,26,27,28,29,30,31  3
    4  4    32,33,34,35,36,37,38,39  4
    5  5    40,41,42,43,44,45,46,47  5
    6  6    48,49,50,51,52,53,54,55  6
    7  7    56,57,58,59,60,61,62,63  7

RoCE SP->TC mapping and ETS configurations
=============================================
       switch-prio  traffic-class  scheduler-weight
    -  -----------  -------------  ----------------
    0  0            0              DWRR-50%
    1  1            0              DWRR-50%
    2  2            0              DWRR-50%
    3  3            3              DWRR-50%
    4  4            0              DWRR-50%
    5  5            0              DWRR-50%
    6  6            6              strict-priority
    7  7            0              DWRR-50%
"""


def test_roce_macro_prints_the_documented_table(bench: Bench) -> None:
    bench.ok("nv set qos roce")
    bench.apply()
    assert bench.run("nv show qos roce").startswith(ROCE_TABLE)
    status = bench.json("nv show qos roce")
    assert status["congestion-control"]["congestion-mode"] == "ECN"
    assert status["trust"]["trust-mode"] == "pcp,dscp"
    assert status["lldp-app-tlv"] == {"priority": 3, "protocol-id": 4791, "selector": "UDP"}


def test_roce_single_pool_prints_the_documented_pools(bench: Bench) -> None:
    bench.ok("nv set qos roce mode lossless-single-ipool")
    bench.apply()
    assert (
        "RoCE pool config\n"
        "===================\n"
        "       name                   mode     size  switch-priorities  traffic-class\n"
        "    -  ---------------------  -------  ----  -----------------  -------------\n"
        "    0  lossy-default-ingress  Dynamic  100%  0,1,2,3,4,5,6,7    -\n"
        "    2  lossy-default-egress   Dynamic  100%  -                  0,6\n"
        "    3  roce-reserved-egress   Dynamic  inf   -                  3\n"
        "\nException List\n=================\nNo Data\n"
    ) in bench.run("nv show qos roce")


def test_roce_word_alone_leaves_a_lossy_switch_lossy(bench: Bench) -> None:
    bench.ok("nv set qos roce mode lossy")
    bench.apply()
    assert bench.json("nv show qos roce")["pfc"] == {"pfc-priority": "-"}
    bench.ok("nv set qos roce")
    assert bench.run("nv config apply -y") == "config apply executed with no config diff\n"
    assert bench.json("nv show qos roce")["mode"] == "lossy"


def test_roce_mode_without_the_switch_is_enough_only_up_to_5_14() -> None:
    old, new = Bench("5.14"), Bench("5.15")
    for bench in (old, new):
        bench.ok("nv set qos roce mode lossless")
        bench.apply()
    assert old.json("nv show qos roce")["mode"] == "lossless"
    assert new.json("nv show qos roce") == {}
    new.ok("nv set qos roce state enabled")
    new.apply()
    assert new.json("nv show qos roce")["mode"] == "lossless"


def test_unset_roce_removes_everything(bench: Bench) -> None:
    before = bench.run("nv config show --all -o json")
    bench.ok("nv set qos roce mode lossless")
    bench.apply()
    bench.ok("nv unset qos roce")
    bench.apply()
    assert bench.run("nv config show --all -o json") == before


def test_trim_profile_only_on_spectrum_4_and_later() -> None:
    older = Bench(model="SN3700")
    older.ok("nv set qos roce mode lossy-multi-tc")
    older.refused("lossy-multi-tc")
    newer = Bench()
    newer.ok("nv set qos roce mode lossy-multi-tc")
    newer.apply()
    text = newer.run("nv show qos roce")
    assert "enabled-tc        1,2,3" in text
    assert "min-threshold     163.00 KB" in text
    assert "    1  1    1,2 " in text
    assert "    2  2            2              DWRR-18%\n" in text


def test_roce_page_changes_memory(bench: Bench) -> None:
    bench.ok("nv set qos roce", "nv set qos traffic-pool roce-lossless memory-percent 60")
    bench.refused("sum of memory-percent is 110")
    bench.ok("nv set qos traffic-pool default-lossy memory-percent 40")
    bench.apply()
    assert bench.json("nv show qos traffic-pool")["roce-lossless"]["memory-percent"] == 60


def test_roce_page_moves_the_lossless_priority(bench: Bench) -> None:
    bench.ok(
        "nv set qos roce",
        "nv set qos pfc default-global switch-priority 2",
        "nv set qos egress-queue-mapping default-global switch-priority 2 traffic-class 3",
        "nv set qos egress-queue-mapping default-global switch-priority 3 traffic-class 0",
        "nv set qos mapping default-global trust both",
        "nv set qos mapping default-global dscp 26 switch-priority 2",
    )
    bench.apply()
    assert bench.json("nv show qos roce")["pfc"]["pfc-priority"] == "2"
    assert bench.json("nv show interface swp1 qos pfc")["switch-priority"] == {"2": {}}


def test_tables_of_the_read_back_section(bench: Bench) -> None:
    stage_example(bench)
    bench.apply()
    assert bench.run("nv show qos congestion-control default-global traffic-class 3") == (
        "               operational  applied    description\n"
        "-------------  -----------  ---------  -----------------------------------\n"
        "ecn            enable       enable     Early Congestion Notification State\n"
        "max-threshold  1500000 B    1500000 B  Maximum Threshold (in bytes)\n"
        "min-threshold  150000 B     150000 B   Minimum Threshold (in bytes)\n"
        "probability    100          100        Probability\n"
        "red            disable      disable    Random Early Detection State\n"
    )
    assert bench.run("nv show interface swp1 qos pfc-watchdog") == (
        "                 operational  applied\n"
        "---------------  -----------  -------\n"
        "state            enabled      enabled\n"
        "\n"
        "PFC WD Status\n"
        "===========================\n"
        "    traffic-class  status    deadlock-count\n"
        "    -------------  --------  --------------\n"
        "    3              OK        0\n"
    )
    watchdog = bench.json("nv show interface swp1 qos pfc-watchdog")
    assert watchdog == {"state": "enabled", "status": {"3": {"deadlock-count": 0, "status": "OK"}}}


def test_pfc_table_of_the_qos_page(bench: Bench) -> None:
    bench.ok(
        "nv set qos traffic-pool default-lossless memory-percent 50",
        "nv set qos traffic-pool default-lossy memory-percent 50",
        "nv set qos pfc default-global switch-priority 0",
        "nv set qos pfc default-global tx enable",
        "nv set qos pfc default-global rx disable",
        "nv set qos pfc default-global cable-length 50",
    )
    bench.apply()
    assert bench.run("nv show qos pfc default-global") == (
        "                   operational  applied  description\n"
        "-----------------  -----------  -------  --------------------------------\n"
        "cable-length       50           50       Cable Length (in meters)\n"
        "port-buffer        25000 B      25000 B  Port Buffer (in bytes)\n"
        "rx                 disable      disable  PFC Rx State\n"
        "tx                 enable       enable   PFC Tx State\n"
        "xoff-threshold     10000 B      10000 B  Xoff Threshold (in bytes)\n"
        "xon-threshold      2000 B       2000 B   Xon Threshold (in bytes)\n"
        "[switch-priority]  0            0        Collection of switch priorities.\n"
    )


def test_scheduler_and_ecn_tables_of_the_qos_page(bench: Bench) -> None:
    bench.ok(
        "nv set qos egress-scheduler default-global traffic-class 2,6 mode dwrr",
        "nv set qos egress-scheduler default-global traffic-class 2,6 bw-percent 30",
        "nv set qos egress-scheduler default-global traffic-class 3,4 mode dwrr",
        "nv set qos egress-scheduler default-global traffic-class 3,4 bw-percent 20",
        "nv set qos egress-scheduler default-global traffic-class 0,1,5,7 mode strict",
        "nv set qos congestion-control default-global traffic-class 4,5,7 min-threshold 40000",
        "nv set qos congestion-control default-global traffic-class 4,5,7 max-threshold 200000",
        "nv set qos congestion-control default-global traffic-class 4,5,7 red enable",
        "nv set qos egress-queue-mapping default-global switch-priority 2 traffic-class 7",
    )
    bench.apply()
    head = "    operational  applied  description\n--  -----------  -------  -----------\n\n"
    assert bench.run("nv show qos egress-scheduler default-global") == (
        head + "TC->DWRR weight configuration\n"
        "================================\n"
        "    traffic-class  mode    bw-percent\n"
        "    -------------  ------  ----------\n"
        "    0              strict\n"
        "    1              strict\n"
        "    2              dwrr    30\n"
        "    3              dwrr    20\n"
        "    4              dwrr    20\n"
        "    5              strict\n"
        "    6              dwrr    30\n"
        "    7              strict\n"
    )
    assert bench.run("nv show qos congestion-control default-global") == (
        head + "ECN Configurations\n"
        "=====================\n"
        "    traffic-class  ECN     RED     Min Th   Max Th    Probability\n"
        "    -------------  ------  ------  -------  --------  -----------\n"
        "    4              enable  enable  40000 B  200000 B  100\n"
        "    5              enable  enable  40000 B  200000 B  100\n"
        "    7              enable  enable  40000 B  200000 B  100\n"
    )
    queues = bench.run("nv show qos egress-queue-mapping default-global")
    assert queues.startswith(head + "SP->TC mapping configuration\n===============================\n")
    assert "\n    2                7\n" in queues
    assert bench.run("nv show qos egress-queue-mapping default-global switch-priority 2") == (
        "               operational  applied  description\n"
        "-------------  -----------  -------  -------------\n"
        "traffic-class  7            7        Traffic Class\n"
    )


def test_trust_port_table_of_the_qos_page(bench: Bench) -> None:
    bench.ok(
        "nv set qos mapping default-global trust port",
        "nv set qos mapping default-global port-default-sp 3",
    )
    bench.apply()
    assert bench.run("nv show qos mapping default-global").startswith(
        "                 operational  applied  description\n"
        "---------------  -----------  -------  ----------------------------\n"
        "port-default-sp  3            3        Port Default Switch Priority\n"
        "trust            port         port     Port Trust configuration\n"
    )


@pytest.mark.parametrize(("model", "shown"), [("SN3700", "153.00 KB"), ("SN5600", "156.00 KB")])
def test_thresholds_per_port_are_what_the_asic_holds(model: str, shown: str) -> None:
    bench = Bench(model=model)
    assert f"0              enable  disable  {shown}" in bench.run(
        "nv show interface swp1 qos congestion-control"
    )
    assert bench.json("nv show qos congestion-control default-global traffic-class 0")["min-threshold"] == (
        150000
    )


def test_default_watchdog_interval_is_printed_as_a_duration(bench: Bench) -> None:
    # The pattern of the public acceptance script that the reference page cites.
    found = re.search(r"polling-interval\s+\S+\s+(\S+)", bench.run("nv show qos pfc-watchdog"))
    assert found is not None
    assert found[1] == "0:00:00.100000"
    assert bench.json("nv config show --all")[1]["set"]["qos"]["pfc-watchdog"]["polling-interval"] == 100


def test_untouched_switch_has_the_documented_defaults(bench: Bench) -> None:
    tree = bench.json("nv config show --all")[1]["set"]
    qos = tree["qos"]
    assert qos["congestion-control"] == {
        "default-global": {
            "traffic-class": {
                "0": {
                    "ecn": "enable",
                    "max-threshold": 1500000,
                    "min-threshold": 150000,
                    "probability": 100,
                    "red": "disable",
                }
            }
        }
    }
    mapping = qos["mapping"]["default-global"]
    assert mapping["trust"] == "l2"
    assert mapping["port-default-sp"] == 0
    assert "dscp" not in mapping
    assert mapping["pcp"]["7"] == {"switch-priority": 7}
    weights = qos["egress-scheduler"]["default-global"]["traffic-class"]
    assert [entry["bw-percent"] for entry in weights.values()] == [12, 13, 12, 13, 12, 13, 12, 13]
    assert qos["pfc"] == {}
    assert qos["link-pause"] == {}
    assert qos["roce"] == {"enable": "off"}
    assert qos["traffic-pool"]["default-lossy"]["memory-percent"] == 100
    hashes = tree["system"]["forwarding"]["ecmp-hash"]
    assert [name for name, value in hashes.items() if value == "on"] == sorted(
        ["source-ip", "destination-ip", "ip-protocol", "source-port", "destination-port", "ipv6-label"]
    )
    assert bench.json("nv config show")[1]["set"].get("qos") is None


def test_short_json_paths_of_the_read_back_table(bench: Bench) -> None:
    stage_example(bench)
    bench.ok("nv set interface bond1 bond member swp8")
    bench.apply()
    assert bench.json("nv show interface swp1 link")["mtu"] == 9216
    assert bench.json("nv show interface")["swp1"]["link"]["mtu"] == 9216
    assert bench.json("nv show qos mapping default-global")["dscp"]["26"]["switch-priority"] == 3
    assert bench.json("nv show qos egress-queue-mapping default-global")["switch-priority"]["3"] == {
        "traffic-class": 3
    }
    pfc = bench.json("nv show qos pfc default-global")
    assert pfc == {
        "cable-length": 40,
        "port-buffer": 25000,
        "rx": "enable",
        "switch-priority": {"3": {}},
        "tx": "enable",
        "xoff-threshold": 10000,
        "xon-threshold": 2000,
    }
    assert bench.json("nv show interface lldp")["swp2"]["lldp"]["neighbor"] == {
        "spine01": {
            "chassis": {"system-name": "spine01"},
            "port": {"description": "", "name": "swp2", "type": "ifname"},
        }
    }
    groups = bench.json("nv show interface swp1 qos buffer ingress-priority-group")
    # 25000 + 10000 bytes.
    assert groups["1"]["hr"] == "34.18 KB"
    counters = bench.json("nv show interface swp1 counters qos pfc-stats")
    assert set(counters) == set("01234567")
    assert counters["3"]["rx-pause-frames"] == 0
    status = bench.json("nv show interface swp1 qos roce status")
    assert status["congestion-control"]["congestion-mode"] == "ecn, absolute"
    assert status["pfc"] == {"pfc-priority": "3", "rx-enabled": "yes", "tx-enabled": "yes"}


def test_published_design_and_its_variants_are_accepted(shared: Path) -> None:
    design = yaml.safe_load((shared / "published" / "09-nvidia-cumulus-roce-lossless.yaml").read_text())
    groups = design["expected_lines"]
    assert {"all_switches", "variant_priority_2", "variant_pool_60", "lossy"} <= set(groups)
    for name, lines in groups.items():
        bench = Bench("5.6.0", model="SN3700")
        base = [] if name == "lossy" else groups["all_switches"]
        bench.ok(*(re.split(r"\s+\(", line)[0] for line in [*base, *lines]))
        bench.apply()


# --- Words, ranges, refusals -----------------------------------------------------------------------


def test_ambiguous_command_of_the_cli_page(bench: Bench) -> None:
    assert bench.run("nv s i") == "Error: Ambiguous Command:\n  set interface\n  show interface\n"
    assert bench.run("nv set s") == "Error: Ambiguous Command:\n  set service\n  set system\n"
    assert json.loads(bench.run("nv sh int -o json"))["swp1"]["type"] == "swp"


REFUSALS = [
    ("nv set interface swp1 link mtu 551", "Error: Valid range for mtu is 552 - 9216"),
    ("nv set interface swp1 link mtu 9217", "Error: Valid range for mtu is 552 - 9216"),
    ("nv set interface swp1 link mtu 9k", "Error: '9k' is not an integer"),
    ("nv set interface swp1 link mtu", "Error: Incomplete Command: set interface swp1 link mtu"),
    (
        "nv set interface swp1 link mtu 9216 now",
        "Error: Invalid Command: set interface swp1 link mtu 9216 now",
    ),
    ("nv set interface Ethernet1/1 link mtu 9216", "Error: 'Ethernet1/1' is not a 'interface-name'"),
    ("nv set interface swp4-1 link mtu 9216", "Error: 'swp4-1' is not a valid range."),
    ("nv set interface", "Error: Incomplete Command: set interface"),
    (
        "nv set qos roce mode lossles",
        "Error: 'lossles' is not one of ['lossy', 'lossless', 'lossless-single-ipool', 'lossy-multi-tc']",
    ),
    ("nv set qos roce enable enabled", "Error: 'enabled' is not one of ['on', 'off']"),
    ("nv set qos roce cable-length 40", "Error: Invalid Command: set qos roce cable-length 40"),
    ("nv set qos rocee", "Error: Invalid Command: set qos rocee"),
    (
        "nv set qos mapping default-global trust dscp",
        "Error: 'dscp' is not one of ['l2', 'l3', 'port', 'both']",
    ),
    ("nv set qos mapping default-global dscp 64 switch-priority 0", "Error: Valid range for dscp is 0 - 63"),
    (
        "nv set qos mapping default-global dscp 26 switch-priority 8",
        "Error: Valid range for switch-priority is 0 - 7",
    ),
    ("nv set qos mapping default-global dscp af31 switch-priority 3", "Error: 'af31' is not an integer"),
    (
        "nv set qos egress-queue-mapping mine switch-priority 3 traffic-class 3",
        "Error: 'mine' is not one of ['default-global']",
    ),
    (
        "nv set qos egress-queue-mapping default-global switch-priority 0,1 traffic-class 0",
        "Error: '0,1' is not an integer",
    ),
    (
        "nv set qos egress-scheduler default-global traffic-class 3 bw-percent 101",
        "Error: Valid range for bw-percent is 1 - 100",
    ),
    (
        "nv set qos egress-scheduler default-global traffic-class 3 mode wrr",
        "Error: 'wrr' is not one of ['dwrr', 'strict']",
    ),
    (
        "nv set qos congestion-control default-global traffic-class 3 min-threshold 150KB",
        "Error: '150KB' is not an integer",
    ),
    (
        "nv set qos congestion-control default-global traffic-class 3 probability 0",
        "Error: Valid range for probability is 1 - 100",
    ),
    (
        "nv set qos congestion-control default-global traffic-class 3 ecn enabled",
        "Error: 'enabled' is not one of ['enable', 'disable']",
    ),
    ("nv set qos pfc default-global cable-length 0", "Error: Valid range for cable-length is 1 - 100000"),
    ("nv set qos pfc default-global tx on", "Error: 'on' is not one of ['enable', 'disable']"),
    ("nv set qos pfc-watchdog polling-interval 50", "Error: Valid range for polling-interval is 100 - 5000"),
    ("nv set qos pfc-watchdog robustness 0", "Error: Valid range for robustness is 1 - 1000"),
    (
        "nv set interface swp1 qos pfc-watchdog state enabled",
        "Error: 'enabled' is not one of ['enable', 'disable']",
    ),
    (
        "nv set interface swp1 qos pfc-watchdog robustness 2",
        "Error: Invalid Command: set interface swp1 qos pfc-watchdog robustness 2",
    ),
    (
        "nv set qos traffic-pool my-pool memory-percent 10",
        "Error: 'my-pool' is not one of ['default-lossy', 'default-lossless', 'mc-lossy', 'roce-lossy', "
        "'roce-lossless']",
    ),
    (
        "nv set qos advance-buffer-config default-global ingress-lossless-buffer shared-alpha alpha_3",
        f"Error: 'alpha_3' is not one of {nvue.ALPHAS}",
    ),
    (
        "nv set qos advance-buffer-config default-global ingress-pool 0",
        "Error: Invalid Command: set qos advance-buffer-config default-global ingress-pool 0",
    ),
    (
        "nv set router adaptive-routing state enabled",
        "Error: Invalid Command: set router adaptive-routing state enabled",
    ),
    ("nv set system forwarding ecmp-hash source-ip enabled", "Error: 'enabled' is not one of ['on', 'off']"),
    (
        "nv set system lldp application-tlv udp-port 4791 priority 3",
        "Error: Invalid Command: set system lldp application-tlv udp-port 4791 priority 3",
    ),
    (
        "nv set interface swp1 link mtu 9000 --rev=5",
        "Error: Invalid Command: set interface swp1 link mtu 9000 --rev=5",
    ),
    ("nv frobnicate", "Error: Invalid Command: frobnicate"),
    ("nv config frob", "Error: Invalid Command: config frob"),
    ("nv config apply --frob", "Error: Invalid Command: config apply --frob"),
    ("nv config apply --confirm 5x -y", "Error: argument --confirm: invalid time value: '5x'"),
    ("nv config apply 77 -y", "Error: Unknown revision: 77"),
    ("nv config show -r 77", "Error: Unknown revision: 77"),
    (
        "nv config show -o xml",
        "Error: argument -o/--output: invalid choice: 'xml' (choose from auto, json, yaml, commands, native)",
    ),
    ("nv show interface swp99", "Error: The requested item does not exist."),
    ("nv show interface swp1 link mtu", "Error: Invalid Command: show interface swp1 link mtu"),
    ("nv show qos rocee", "Error: Invalid Command: show qos rocee"),
    ("nv config patch relative.yaml", "Error: File not found: relative.yaml"),
    ("nv config apply --confirm-yes", "Error: No apply is waiting for confirmation"),
    ("nv config delete applied", "Error: Unknown revision: applied"),
    ("show interfaces", "-bash: show: command not found"),
    ("y", "-bash: y: command not found"),
]


@pytest.mark.parametrize(("command", "text"), REFUSALS)
def test_refused_with_its_text_and_nothing_is_kept(bench: Bench, command: str, text: str) -> None:
    before = bench.device.dump()["revisions"]
    result = bench.device.execute("cumulus", command)
    assert result.stderr == text + "\n"
    assert result.stdout == ""
    assert result.status != 0
    assert bench.device.dump()["revisions"] == before


WORDS_OF_5_15 = [
    ("nv set qos roce state enabled", "nv set qos roce enable on"),
    ("nv set router adaptive-routing state enabled", "nv set router adaptive-routing enable on"),
    (
        "nv set interface swp1 router adaptive-routing state enabled",
        "nv set interface swp1 router adaptive-routing enable on",
    ),
    (
        "nv set system forwarding ecmp-hash gtp-teid enabled",
        "nv set system forwarding ecmp-hash gtp-teid on",
    ),
    ("nv set interface swp1 lldp dcbx-pfc-tlv enabled", "nv set interface swp1 lldp dcbx-pfc-tlv on"),
    ("nv set interface swp1 link auto-negotiate disabled", "nv set interface swp1 link auto-negotiate off"),
    ("nv set interface swp1 ipv4 address 10.0.0.1/31", "nv set interface swp1 ip address 10.0.0.1/31"),
    ("nv set interface swp1 vrf RED", "nv set interface swp1 ip vrf RED"),
    (
        "nv set system lldp application-tlv udp-port 4791 priority 3",
        "nv set service lldp application-tlv udp-port 4791 priority 3",
    ),
    ("nv set system config auto-save state disabled", "nv set system config auto-save enable off"),
]


@pytest.mark.parametrize(("new", "old"), WORDS_OF_5_15)
def test_words_changed_in_5_15(new: str, old: str) -> None:
    before, after = Bench("5.14"), Bench("5.15")
    before.ok(old)
    after.ok(new)
    assert "Error" in before.run(new)
    assert "Error" in after.run(old)


@pytest.mark.parametrize("version", ["5.9", "5.14", "5.15"])
def test_words_that_never_changed(version: str) -> None:
    bench = Bench(version)
    bench.ok(
        "nv set qos pfc default-global rx disable",
        "nv set qos congestion-control default-global traffic-class 3 ecn enable",
        "nv set interface swp1 qos pfc-watchdog state enable",
    )


def test_ranges_and_lists_of_the_command_help(bench: Bench) -> None:
    bench.ok(
        "nv set interface swp1-2,5-6 link mtu 4200", "nv set qos mapping mine dscp 0-2,40 switch-priority 1"
    )
    bench.apply()
    tree = bench.json("nv config show")[1]["set"]
    assert tree["interface"]["swp1-2,swp5-6"] == {"link": {"mtu": 4200}}
    assert sorted(tree["qos"]["mapping"]["mine"]["dscp"]) == ["0", "1", "2", "40"]


def test_breakout_names_expand_and_compress() -> None:
    assert nvue.expand_interfaces("swp1s0-3,eth0") == ("swp1s0", "swp1s1", "swp1s2", "swp1s3", "eth0")
    assert nvue.compress_interfaces(["swp10", "swp1s1", "swp1s0", "swp9", "eth0"]) == "eth0,swp1s0-1,swp9-10"


def test_interface_keys_overlap_like_the_real_capture() -> None:
    ports = tuple(f"swp{number}" for number in range(1, 23))
    bench = Bench("5.9.2", ports=ports)
    bench.ok(
        "nv set interface eth0,swp19-22 link state up",
        "nv set interface swp19-22 ip ipv6 forward off",
        "nv set interface swp19 description uplink",
    )
    bench.apply()
    interface = bench.json("nv config show")[1]["set"]["interface"]
    assert interface["swp1-22"] == {"type": "swp"}
    assert interface["eth0,swp19-22"] == {"link": {"state": {"up": {}}}}
    assert interface["swp19-22"] == {"ip": {"ipv6": {"forward": "off"}}}
    assert interface["swp19"] == {"description": "uplink"}


def test_yaml_form_of_the_page() -> None:
    bench = Bench("5.7.0", model="")
    bench.ok("nv set interface swp1-8 link mtu 9216", "nv set qos roce mode lossless")
    bench.apply()
    text = bench.run("nv config show")
    assert text.startswith(
        "- header:\n    model: VX\n    nvue-api-version: nvue_v1\n    rev-id: 1.0\n"
        "    version: Cumulus Linux 5.7.0\n- set:\n    interface:\n"
    )
    assert "      swp1-8:\n        link:\n          mtu: 9216\n        type: swp\n" in text
    assert "    qos:\n      roce:\n        enable: on\n        mode: lossless\n" in text


# --- Checks at apply -------------------------------------------------------------------------------


def test_pfc_and_link_pause_exclude_each_other(bench: Bench) -> None:
    bench.ok(
        "nv set qos roce",
        "nv set qos link-pause my_pause_ports tx enable",
        "nv set interface swp1-4,swp6 qos link-pause profile my_pause_ports",
    )
    bench.refused("Interface swp6: PFC and link-pause cannot be configured on the same port.")


@pytest.mark.parametrize(
    ("commands", "text"),
    [
        (("nv set interface swp99 link mtu 9000",), "Interface swp99 does not exist on this platform."),
        (
            ("nv set interface foo link mtu 9000",),
            "Config invalid at interface.foo: 'type' is a required property",
        ),
        (("nv set interface swp1 qos mapping profile nope",), "profile 'nope' used by interface swp1"),
        (("nv set interface swp1 qos pfc-watchdog",), "PFC watchdog requires PFC or link-pause"),
        (
            (
                "nv set qos roce",
                "nv set interface bond1 bond member swp1",
                "nv set interface bond1 qos pfc-watchdog",
            ),
            "Interface bond1: PFC watchdog can only be enabled on a physical interface (swp).",
        ),
        (("nv set qos pfc default-global switch-priority 3",), "requires a lossless traffic-pool"),
        (("nv set qos traffic-pool default-lossless memory-percent 50",), "sum of memory-percent is 150"),
        (
            ("nv set qos roce mode lossy", "nv set qos traffic-pool roce-lossless memory-percent 1"),
            "roce-lossless requires RoCE lossless mode",
        ),
        (
            ("nv set qos traffic-pool default-lossy switch-priority 0,1,2,4,5,6",),
            "switch-priority 3,7 is not mapped to a priority group",
        ),
        (
            ("nv set qos roce", "nv set qos traffic-pool default-lossless memory-percent 1"),
            "only a single lossless pool",
        ),
        (
            ("nv set qos advance-buffer-config default-global ingress-service-pool 3 memory-percent 20",),
            "sum of memory-percent of ingress-service-pool is 120",
        ),
        (
            ("nv set qos congestion-control default-global traffic-class 3 min-threshold 1500000",),
            "min-threshold must be less than max-threshold",
        ),
        (
            ("nv set interface vlan10 router adaptive-routing enable on",),
            "Interface vlan10: adaptive routing is supported on physical interfaces only.",
        ),
        (
            (
                "nv set interface bond1 bond member swp1-2",
                "nv set interface swp1 router adaptive-routing enable on",
            ),
            "Interface swp1: adaptive routing is not supported on bond members.",
        ),
    ],
)
def test_apply_refuses_what_does_not_fit(bench: Bench, commands: tuple[str, ...], text: str) -> None:
    bench.ok(*commands)
    bench.refused(text)


def test_invalid_apply_returns_success_and_can_be_mended(bench: Bench) -> None:
    bench.ok("nv set interface swp99 link mtu 9000")
    result = bench.device.execute("cumulus", "nv config apply -y")
    assert (result.status, result.stdout) == (0, "")
    assert result.stderr.startswith("Invalid config [rev_id: 2]\n")
    assert bench.json("nv config revision")["2"]["state"] == "invalid"
    bench.ok("nv unset interface swp99", "nv set interface swp8 link mtu 9000")
    assert bench.run("nv config apply -y") == "applied_and_saved [rev_id: 2]\n"


def test_watchdog_works_on_a_bond_member(bench: Bench) -> None:
    bench.ok(
        "nv set qos roce", "nv set interface bond1 bond member swp1", "nv set interface swp1 qos pfc-watchdog"
    )
    bench.apply()
    assert bench.json("nv config show")[1]["set"]["interface"]["swp1"]["qos"] == {
        "pfc-watchdog": {"state": "enable"}
    }


def test_watchdog_unset_disables(bench: Bench) -> None:
    bench.ok("nv set qos roce", "nv set interface swp1-2 qos pfc-watchdog")
    bench.apply()
    bench.ok("nv unset interface swp1 qos pfc-watchdog", "nv unset interface swp2 qos pfc-watchdog state")
    bench.apply()
    for port in ("swp1", "swp2"):
        assert bench.json(f"nv show interface {port} qos pfc-watchdog") == {"state": "disabled"}


def test_profiles_of_the_port_groups_section(bench: Bench) -> None:
    bench.ok(
        "nv set qos traffic-pool default-lossless memory-percent 50",
        "nv set qos traffic-pool default-lossy memory-percent 50",
        "nv set qos pfc my_pfc_ports switch-priority 3,5",
        "nv set interface swp1-4,swp6 qos pfc profile my_pfc_ports",
        "nv set qos congestion-control my-red-profile traffic-class 1,2 min-threshold 40000",
        "nv set qos congestion-control my-red-profile traffic-class 1,2 max-threshold 200000",
        "nv set qos congestion-control my-red-profile traffic-class 1,2 probability 10",
        "nv set interface swp1,swp2 qos congestion-control profile my-red-profile",
        "nv set qos egress-scheduler list2 traffic-class 2,5,6 mode dwrr",
        "nv set qos egress-scheduler list2 traffic-class 2,5 bw-percent 50",
        "nv set qos egress-scheduler list2 traffic-class 6 mode strict",
        "nv set interface swp1,swp3 qos egress-scheduler profile list2",
    )
    bench.apply()
    assert bench.json("nv show interface swp6 qos pfc")["switch-priority"] == {"3": {}, "5": {}}
    assert bench.json("nv show interface swp7 qos pfc") == {"rx": "disable", "tx": "disable"}
    ecn = bench.json("nv show interface swp2 qos congestion-control")["traffic-class"]
    assert sorted(ecn) == ["1", "2"]
    assert ecn["1"]["probability"] == 10
    weights = bench.json("nv show interface swp3 qos egress-scheduler")["traffic-class"]
    assert weights["0"] == {"bw-percent": 0, "mode": "dwrr"}
    assert weights["6"] == {"mode": "strict"}


# --- Revisions -------------------------------------------------------------------------------------


def test_first_set_opens_a_revision_of_the_user(bench: Bench) -> None:
    assert bench.run("nv set interface swp1 link mtu 9000") == "created [rev_id: 2]\n"
    assert bench.run("nv set interface swp2 link mtu 9000") == ""
    assert bench.run("nv set interface swp3 link mtu 9000", user="other") == "created [rev_id: 3]\n"
    assert "swp3" not in bench.run("nv config diff")
    assert bench.run("nv config detach") == "detached [rev_id: 2]\n"
    assert bench.run("nv config diff") == ""
    assert "mtu: 9000" in bench.run("nv config diff applied 2")
    assert bench.run("nv config delete 2") == "deleted [rev_id: 2]\n"
    assert bench.run("nv config diff applied 2") == "Error: Unknown revision: 2\n"


def test_attach_as_napalm_does_it(bench: Bench) -> None:
    text = bench.run("nv config attach applied -y")
    found = re.search(r"attached \[rev_id: (\d*)]", text)
    assert found is not None
    bench.ok("nv set system hostname leaf02")
    assert bench.run("nv config diff -o commands") == "nv set system hostname leaf02\n"
    bench.ok("nv config detach", f"nv config delete {found[1]}")
    assert found[1] not in bench.json("nv config revision")


def test_diff_forms(bench: Bench) -> None:
    bench.ok("nv set interface swp1-4 link mtu 9000")
    bench.apply()
    assert bench.run("nv config diff -o json") == "[]\n"
    bench.ok(
        "nv unset interface swp1-2 link mtu",
        "nv set interface swp3 link mtu 9100",
        "nv set qos roce mode lossy",
    )
    result = bench.device.execute("cumulus", "nv config diff")
    assert result.status == 1
    assert result.stdout == (
        "- unset:\n    interface:\n      swp1-2:\n        link:\n"
        "- set:\n    interface:\n      swp3:\n        link:\n          mtu: 9100\n"
        "    qos:\n      roce:\n        enable: on\n        mode: lossy\n"
    )
    assert bench.run("nv config diff -o commands") == (
        "nv unset interface swp1-2 link\nnv set interface swp3 link mtu 9100\n"
        "nv set qos roce enable on\nnv set qos roce mode lossy\n"
    )
    parts = json.loads(bench.run("nv config diff --output json"))
    assert parts[0] == {"unset": {"interface": {"swp1-2": {"link": None}}}}
    verbose = json.loads(bench.run("nv config diff -o json --verbose"))
    assert verbose[0]["unset"]["interface"]["swp1-3"] == {"link": {"mtu": 9000}}
    assert bench.device.execute("cumulus", "nv config diff 1 1").status == 0


def test_commit_timer_falls_back_by_the_clock(bench: Bench) -> None:
    before = bench.device.running()
    bench.ok("nv set interface swp1 link mtu 9000")
    assert bench.run("nv config apply --confirm 90s -y") == "applied [rev_id: 2]\n"
    assert bench.json("nv config revision")["2"]["state"] == "confirm"
    assert bench.json("nv config revision --applied")["applied"]["additional-data"] == {
        "parent-revision-id": "1"
    }
    bench.now = 89.0
    assert bench.run("nv config apply --confirm-status") == (
        "Time left before rollback of revision 2: 0m 1s\n"
    )
    assert bench.json("nv show interface swp1 link")["mtu"] == 9000
    assert "mtu: 9000" not in bench.device.files["/etc/nvue.d/startup.yaml"].decode()
    bench.now = 90.0
    bench.device.tick()
    assert bench.device.running() == before
    assert bench.json("nv config revision")["2"]["state"] == "confirm_fail"
    assert "Error" in bench.run("nv config apply --confirm-yes")
    assert bench.device.events[-1]["event"] == "rolled-back"


@pytest.mark.parametrize(
    ("option", "seconds"),
    [("--confirm", 600), ("--confirm 60", 3600), ("--confirm 2m", 120), ("--confirm=1h", 3600)],
)
def test_timer_units(bench: Bench, option: str, seconds: int) -> None:
    bench.ok("nv set interface swp1 link mtu 9000")
    bench.ok(f"nv config apply {option} -y")
    assert bench.device.revisions.waiting is not None
    assert bench.device.revisions.waiting.deadline == seconds


def test_only_one_apply_waits_and_refusing_it_rolls_back(bench: Bench) -> None:
    before = bench.device.running()
    bench.ok("nv set interface swp1 link mtu 9000", "nv config apply --confirm 300s -y")
    bench.ok("nv set interface swp2 link mtu 9000")
    assert bench.run("nv config apply -y") == "Error: Revision 2 is waiting for confirmation\n"
    assert bench.run("nv config apply 3 --confirm-yes") == "Error: No apply is waiting for confirmation\n"
    assert bench.run("nv config apply 2 --confirm-no").startswith("confirm_fail [rev_id: 2]\n")
    assert bench.device.running() == before


def test_confirm_by_revision_number(bench: Bench) -> None:
    bench.ok("nv set interface swp1 link mtu 9000", "nv config apply --confirm 300s -y")
    assert bench.run("nv config apply 2 --confirm-yes") == "applied_and_saved [rev_id: 2]\n"
    bench.now = 1000.0
    bench.device.tick()
    assert bench.json("nv show interface swp1 link")["mtu"] == 9000


def test_nothing_to_apply(bench: Bench) -> None:
    assert bench.run("nv config apply -y") == "config apply executed with no config diff\n"
    bench.ok("nv set system hostname leaf01")
    assert bench.run("nv config apply -y") == "config apply executed with no config diff\n"


def test_old_revision_can_be_applied_again(bench: Bench) -> None:
    bench.ok("nv set interface swp1 link mtu 9000")
    bench.apply()
    bench.now = 60.0
    assert bench.run("nv config apply 1 -y") == "applied_and_saved [rev_id: 1]\n"
    revision = bench.json("nv config revision")["1"]
    assert revision["apply-id"] == "rev_1_apply_2"
    assert (
        bench.run("nv config history").splitlines()[2].startswith("rev_1_apply_2  2025-06-02 08:01:00  CLI")
    )


def test_apply_message_is_in_the_history(bench: Bench) -> None:
    bench.ok("nv set interface swp1 link mtu 9000", 'nv config apply -y -m "this is my message"')
    assert bench.run("nv config history 2").rstrip().endswith("this is my message")
    assert bench.json("nv config history")["rev_2_apply_1"]["message"] == "this is my message"


def test_auto_save_and_reboot() -> None:
    new, old = Bench("5.9"), Bench("5.8")
    for bench, text in ((new, "applied_and_saved"), (old, "applied")):
        bench.ok("nv set interface swp1 link mtu 9000")
        assert bench.run("nv config apply -y") == f"{text} [rev_id: 2]\n"
        bench.ok("nv set interface swp2 link mtu 8000")
        bench.device.reboot()
        assert bench.run("nv config diff") == ""
        assert bench.device.execute("cumulus", "nv config show").status == 0
    assert new.json("nv show interface swp1 link")["mtu"] == 9000
    assert old.json("nv show interface swp1 link")["mtu"] == 9216
    old.ok("nv set interface swp1 link mtu 9000")
    old.apply()
    assert old.run("nv config save") == "saved [rev_id: applied]\n"
    old.device.reboot()
    assert old.json("nv show interface swp1 link")["mtu"] == 9000


def test_auto_save_can_be_switched_off(bench: Bench) -> None:
    bench.ok("nv set system config auto-save enable off", "nv set interface swp1 link mtu 9000")
    assert bench.run("nv config apply -y") == "applied [rev_id: 2]\n"
    assert bench.run("nv config diff startup applied -o commands") == (
        "nv set interface swp1 link mtu 9000\nnv set system config auto-save enable off\n"
    )
    bench.device.reboot()
    assert bench.json("nv show interface swp1 link")["mtu"] == 9216


def test_reboot_in_the_confirm_window_comes_up_with_the_old_configuration(bench: Bench) -> None:
    before = bench.device.running()
    bench.ok("nv set interface swp1 link mtu 9000", "nv config apply --confirm 300s -y")
    bench.device.reboot()
    assert bench.device.running() == before
    bench.now = 301.0
    bench.device.tick()
    assert bench.device.running() == before


def test_number_of_revisions_is_limited(bench: Bench) -> None:
    for number in range(120):
        bench.ok(f"nv set interface swp1 link mtu {9000 - number}", "nv config apply -y")
    revisions = bench.json("nv config revision")
    assert len(revisions) == 100
    assert "121" in revisions
    assert "2" not in revisions


# --- Files ------------------------------------------------------------------------------------------


def test_patch_with_yaml_and_with_commands(bench: Bench) -> None:
    bench.device.files["/home/cumulus/a.yaml"] = (
        b"- set:\n    interface:\n      swp1-2,swp4:\n        link:\n          mtu: 9000\n"
        b"    qos:\n      roce:\n        enable: on\n      pfc:\n        default-global:\n"
        b"          switch-priority:\n            '3': {}\n"
    )
    assert bench.run("nv config patch /home/cumulus/a.yaml") == "created [rev_id: 2]\n"
    bench.device.files["/home/cumulus/b.txt"] = (
        b"# comment\n\nnv set interface swp5 link mtu 9100\nnv unset interface swp1 link mtu\n"
    )
    bench.ok("nv config patch /home/cumulus/b.txt")
    bench.apply()
    tree = bench.json("nv config show")[1]["set"]
    assert tree["interface"]["swp2,swp4"] == {"link": {"mtu": 9000}}
    assert tree["interface"]["swp5"] == {"link": {"mtu": 9100}}
    assert tree["qos"]["roce"] == {"enable": "on"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "nv set interface swp1 link mtu 9000\nnv set invalid command here\n",
            "Error: Invalid Command: set invalid command here\n"
            "Error: x.txt:2 'nv set invalid command here' failed",
        ),
        (
            "nv set interface swp1 link mtu 9000\nnv unset interface swp1 link mtu\n",
            "Error: set and unset of the same object in one patch: nv set interface swp1 link mtu 9000",
        ),
        ("- set:\n    a: [}\n", "Error: Failed to parse YAML"),
        ("{}\n", "Error: The file must contain a list of operation objects"),
        (
            "nv set interface swp1 link mtu 9000\nnv show acl\n",
            "Error: The file must contain a list of operation",
        ),
        (
            "- set:\n    qos:\n      rocee: {}\n",
            "Error: At qos: Additional properties are not allowed ('rocee' was",
        ),
        (
            "- set:\n    interface:\n      swp1:\n        link:\n          mtu: 1\n",
            "Error: Valid range for mtu is 552",
        ),
        ("- set:\n    qos: 4\n", "Error: At qos: '4' is not of type 'object'"),
    ],
)
def test_bad_patch_changes_nothing(bench: Bench, text: str, error: str) -> None:
    bench.device.files["/tmp/x.txt"] = text.encode()
    before = bench.device.dump()["revisions"]
    assert bench.run("nv config patch /tmp/x.txt").startswith(error)
    assert bench.device.dump()["revisions"] == before


def test_replace_without_the_account_deletes_it(bench: Bench) -> None:
    bench.device.files["/tmp/x.txt"] = b"nv set system hostname leaf01\n"
    bench.ok("nv config replace /tmp/x.txt")
    assert "The user account `cumulus` will be deleted" in bench.run("nv config apply")
    bench.apply()
    assert ("account-deleted", "cumulus") in [(e["event"], e["cause"]) for e in bench.device.events]


def test_printed_configuration_is_taken_back(bench: Bench) -> None:
    stage_example(bench)
    bench.apply()
    wanted = bench.device.running()
    text = bench.run("nv config show")
    bench.device.files["/tmp/back.yaml"] = text.replace("'*'", "secret").encode()
    bench.ok("nv config apply 1 -y", "nv config replace /tmp/back.yaml", "nv config apply -y")
    assert re.sub("hashed-password: .*", "", bench.device.running()) == re.sub(
        "hashed-password: .*", "", wanted
    )


# --- What is not ours -------------------------------------------------------------------------------


def test_foreign_configuration_stays_byte_equal() -> None:
    bench = Bench(seed=SEED)
    before = bench.device.running()
    for part in (
        "location: row 4, rack 7",
        "hashed-password: $6$abc$def/ghi.",
        "description: gpu01 rail 0",
        "MGMT",
        "65101",
    ):
        assert part in before
    stage_example(bench)
    bench.apply()
    between = bench.device.running()
    for block in ("    acl:\n      MGMT:\n", "    vrf:\n      default:\n        router:\n          bgp:\n"):
        assert block in between
    bench.ok("nv config apply 1 -y")
    assert bench.device.running() == before


def test_hashes_are_hidden_in_later_releases_only() -> None:
    shown, hidden = Bench("5.9", seed=SEED), Bench("5.14", seed=SEED)
    assert "$6$abc$def/ghi." in shown.run("nv config show")
    assert "$6$abc" not in hidden.run("nv config show") + hidden.run("nv config show -o commands")
    hidden.ok("nv set system aaa user ops hashed-password '$6$new'")
    assert bench_diff(hidden) == {"system": {"aaa": {"user": {"ops": {"hashed-password": "*"}}}}}
    assert "$6$abc$def/ghi." in hidden.device.running()


def bench_diff(bench: Bench) -> Any:
    return json.loads(bench.run("nv config diff -o json"))[-1]["set"]


def test_bad_seed_is_an_error_of_the_lab() -> None:
    with pytest.raises(ValueError, match="seed line: nv set foo: Error: Invalid Command: set foo"):
        Bench(seed=("nv set foo",))
    with pytest.raises(ValueError, match="no `nv set` command"):
        Bench(seed=("hostname leaf01",))


def test_somebody_else_changes_the_switch(bench: Bench) -> None:
    bench.ok("nv set interface swp1 link mtu 9000")
    output = bench.device.somebody(("nv set interface swp2 description 'moved'", "nv config apply -y"))
    assert "applied_and_saved [rev_id: 3]" in output
    assert "description: moved" in bench.device.running()
    # The candidate was taken before: it would undo the other change.
    assert "nv unset interface swp2 description" in bench.run("nv config diff -o commands")


# --- Disturbance ------------------------------------------------------------------------------------


def events_of(bench: Bench, *commands: str) -> list[str]:
    bench.device.events.clear()
    bench.ok(*commands)
    bench.apply()
    return [event["event"] for event in bench.device.events]


def test_events() -> None:
    old, new = Bench("5.12"), Bench("5.13")
    adaptive = "nv set router adaptive-routing enable on"
    assert events_of(old, adaptive) == ["switchd-restart"]
    assert events_of(new, adaptive) == ["switchd-reload"]
    assert events_of(new, "nv set interface swp1 description x") == []
    assert events_of(new, "nv set qos roce") == ["buffer-change", "switchd-reload"]
    assert events_of(new, "nv set qos mapping default-global trust l3") == ["switchd-reload"]
    assert events_of(new, "nv set qos pfc default-global cable-length 40") == [
        "buffer-change",
        "switchd-reload",
    ]
    assert events_of(
        new, "nv set qos pfc slow switch-priority 3", "nv set interface swp1 qos pfc profile slow"
    ) == ["buffer-change", "switchd-reload"]


# --- Shell and sessions -----------------------------------------------------------------------------


def talk(session: Session, *lines: str) -> str:
    return "".join(session.prompt() + line + "\n" + session.run(line).text for line in lines)


def test_prompts() -> None:
    assert Bench("5.8").device.open("cumulus").prompt() == "cumulus@leaf01:mgmt:~$ "
    session = Bench("5.9").device.open("cumulus")
    assert session.prompt() == "\x1b[?2004hcumulus@leaf01:mgmt:~$ "
    assert session.run("echo hello").text == "\x1b[?2004l\rhello\n"
    assert session.run("").text == ""
    assert session.prompt() == "\x1b[?2004l\r\x1b[?2004hcumulus@leaf01:mgmt:~$ "
    session.run("sudo -s")
    assert session.prompt().endswith("\x1b[?2004hroot@leaf01:mgmt:/home/cumulus# ")
    assert not session.run("exit").close
    assert session.run("exit").close


def test_hostname_change_asks_and_moves_the_prompt() -> None:
    session = Bench("5.8").device.open("cumulus")
    text = talk(session, "nv set system hostname Leaf-1", "nv config apply", "y", "hostname")
    assert text == (
        "cumulus@leaf01:mgmt:~$ nv set system hostname Leaf-1\n"
        "created [rev_id: 2]\n"
        "cumulus@leaf01:mgmt:~$ nv config apply\n"
        "Warning: current hostname `leaf01` will be replaced with `Leaf-1`\n"
        "\n"
        "Are you sure? [y/N] y\n"
        "applied [rev_id: 2]\n"
        "cumulus@Leaf-1:mgmt:~$ hostname\n"
        "Leaf-1\n"
    )


def test_answers_to_the_question(bench: Bench) -> None:
    session = bench.device.open("cumulus")
    talk(session, "nv set system hostname Leaf-1", "nv config apply && echo done")
    assert session.prompt() == "Are you sure? [y/N] "
    assert session.run("n").text == "Declined apply after warnings\n"
    assert "\necho" not in session.run("echo $?").text
    assert bench.run("nv config apply --assume-no").endswith("Declined apply after warnings\n")
    assert bench.run("nv config apply").endswith("Aborted apply after warnings\n")
    session.run("nv config apply && echo done $?")
    assert session.run("yes").text == "applied_and_saved [rev_id: 2]\ndone 0\n"


def test_blind_yes_is_no_command(bench: Bench) -> None:
    session = bench.device.open("cumulus")
    session.run("nv set interface swp1 link mtu 9000")
    assert session.run("nv config apply").text.endswith("applied_and_saved [rev_id: 2]\n")
    assert session.run("y").text.endswith("-bash: y: command not found\n")


def test_shell_operators(bench: Bench) -> None:
    assert bench.run("true && echo yes || echo no; false || echo $?") == "yes\n1\n"
    assert bench.run("foo; echo $?") == "127\n-bash: foo: command not found\n"
    assert bench.run("echo 'a;b' \"$USER\" \\$x '$x' # no") == "a;b cumulus $x $x\n"
    assert bench.run("nv config diff > /tmp/diff; cat /tmp/diff | grep -c mtu") == "0\n"
    assert bench.run("echo 'oops") == "-bash: unexpected EOF while looking for matching `''\n"
    assert bench.run("nv frob 2>&1 | grep -q Invalid && echo found") == "found\n"
    assert bench.run("echo x > /etc/motd") == "-bash: /etc/motd: Permission denied\n"
    assert bench.run("echo x | sudo tee /etc/motd") == "x\n"
    assert bench.run("cat /etc/motd; ls /etc/mo") == (
        "x\nls: cannot access '/etc/mo': No such file or directory\n"
    )
    assert bench.run("sudo id -u; id -un") == "0\ncumulus\n"
    assert bench.run("&& true") == "-bash: syntax error near unexpected token `&&'\n"
    assert "DISTRIB_RELEASE=5.14.0" in bench.run("cat /etc/lsb-release")


def test_here_document_over_both_channels(bench: Bench) -> None:
    command = (
        "cat > /tmp/x.txt <<'EOF'\nnv set interface swp1 link mtu 9000\n\nEOF\nnv config patch /tmp/x.txt"
    )
    assert bench.run(command) == "created [rev_id: 2]\n"
    assert bench.device.files["/tmp/x.txt"] == b"nv set interface swp1 link mtu 9000\n\n"
    session = bench.device.open("cumulus")
    session.run("tee /tmp/y.txt <<EOF")
    assert session.prompt() == "\x1b[?2004l\r> "
    session.run("one")
    assert session.prompt() == "> "
    assert session.run("EOF").text == "one\n"
    assert bench.device.files["/tmp/y.txt"] == b"one\n"


def test_what_the_listener_asks(bench: Bench) -> None:
    device = bench.device
    assert device.commits("nv config apply --confirm 300s -y")
    assert device.commits("cd /tmp && sudo nv config apply 3 -y")
    assert not device.commits("nv config apply --confirm-yes")
    assert not device.commits("nv config diff")
    assert device.refusal("nv set qos roce") == "Error: Invalid Command: set qos roce"
    assert device.refusal("foo bar") == "-bash: foo: command not found"


def test_dump_and_restore(bench: Bench) -> None:
    bench.ok("nv set interface swp1 link mtu 9000", "nv config apply --confirm 300s -y")
    bench.ok("nv set interface swp2 link mtu 8000", "echo data > /tmp/file")
    data = json.loads(json.dumps(bench.device.dump()))
    other = Bench()
    other.device.restore(data)
    assert other.device.dump() == bench.device.dump()
    assert other.device.running() == bench.device.running()
    assert "swp2" in other.run("nv config diff")
    other.now = 300.0
    other.device.tick()
    assert other.json("nv show interface swp1 link")["mtu"] == 9216
    assert bench.json("nv show interface swp1 link")["mtu"] == 9000


# --- The whole schema --------------------------------------------------------------------------------

SAMPLES = {
    "interface": "swp1",
    "address": "10.0.0.1/31",
    "ip": "10.0.0.1",
    "vlan": "10",
    "rule": "10",
    "path": "/etc/x",
    "breakout": "4x",
    "family": "ipv4-unicast",
    "global": "default-global",
    "pool": "default-lossy",
    "group": "bulk",
    "neighbor": "swp5",
    "listen": "localhost",
    "port-match": "22",
    "hop": "10.0.0.2",
    "vni": "100",
    "port-number": "4791",
    "pool-number": "1",
    "auto-number": "10",
    "as": "external",
    "bytes": "20000",
}


def commands_of(node: nvue.Node, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if node.value:
        value = node.value
        if value.startswith("("):
            yield (*words, value.strip("()!").replace(")", "").split("|")[0])
        elif value.startswith("="):
            yield (*words, SAMPLES.get(value[1:], "sample"))
        else:
            yield (*words, value.split("-")[1])
    elif node.item is not None:
        kind = node.ident
        digits = {"tc", "tc16", "sp", "one-sp", "pcp", "dscp"}
        yield from commands_of(node.item, (*words, SAMPLES.get(kind, "5" if kind in digits else "sample")))
    elif not node.children:
        yield words
    for name, child in node.children.items():
        yield from commands_of(child, (*words, name))


@pytest.mark.parametrize("version", ["5.9", "5.14", "5.17"])
def test_every_path_is_set_printed_taken_back_and_unset(version: str) -> None:
    release = nvue.version_of(version)
    found = list(commands_of(nvue.schema(release), ()))
    assert len(found) > 180
    for words in found:
        tree: trees.Tree = {}
        trees.run_command(tree, "set", nvue.Resolver(release, "set").resolve(list(words)), release)
        again: trees.Tree = {}
        for line in trees.commands("set", tree):
            target = nvue.Resolver(release, "set").resolve(line.split()[2:])
            trees.run_command(again, "set", target, release)
        assert again == tree, words
        text = trees.yaml_operations([("set", trees.grouped(tree))])
        operations = trees.from_operations(trees.parse_yaml(text), release)
        assert operations == [("set", tree)], words
        trees.run_command(tree, "unset", nvue.Resolver(release, "unset").resolve(list(words)), release)
        for port in tree.get("interface", {}).values():
            port.pop("type", None)
        tree.get("qos", {}).pop("roce", None)
        assert not [leaf for leaf in trees.leaves(tree) if leaf[1] != {}], words


def paths_of(tree: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(tree, dict):
        return
    yield words
    for name, value in tree.items():
        yield from paths_of(value, (*words, name))


@pytest.mark.parametrize("version", ["5.9", "5.15"])
def test_every_operational_path_has_a_table_and_json(version: str) -> None:
    bench = Bench(version, ports=("swp1",), seed=("nv set interface swp1 link mtu 9000",))
    bench.ok("nv set qos roce", "nv set interface swp1 qos pfc-watchdog")
    if version == "5.15":
        bench.ok("nv set qos roce state enabled")
    bench.apply()
    bench.ok("nv set qos pfc slow switch-priority 3")
    tree = bench.json("nv show")
    paths = [path for path in paths_of(tree) if "dscp" not in path[:-1] and "counters" not in path[:-1]]
    assert len(paths) > 100
    for path in paths:
        command = " ".join(("nv show", *path))
        result = bench.device.execute("cumulus", command)
        assert (result.status, result.stderr) == (0, ""), command
        assert result.stdout.strip(), command
    assert bench.run("nv show qos pfc slow").count("10000 B") == 1


# --- Less used commands ------------------------------------------------------------------------------


def test_find_and_translate(bench: Bench) -> None:
    bench.ok("nv set interface bond1 bond member swp1", "nv set interface bond1 link mtu 9000")
    bench.apply()
    assert bench.run("nv config find bond1") == (
        "- set:\n    interface:\n      bond1:\n        bond:\n          member:\n            swp1: {}\n"
        "        link:\n          mtu: 9000\n        type: bond\n"
    )
    assert bench.run("nv config find nothing-like-it") == "No Data\n"
    assert "nv set interface bond1 link mtu 9000\n" in bench.run("nv config translate revision 2")
    assert bench.run("nv config translate revision") == "Error: Invalid Command: config translate revision\n"
    old = Bench("5.11")
    assert old.run("nv config translate revision 1").startswith("Error: Invalid Command")


def test_trees_that_options_choose(bench: Bench) -> None:
    bench.ok("nv set interface swp1 link mtu 9000")
    assert bench.json("nv show interface swp1 link --pending")["mtu"] == 9000
    assert bench.json("nv show interface swp1 link --rev=applied")["mtu"] == 9216
    assert bench.json("nv show interface swp1 link --startup")["mtu"] == 9216
    assert bench.json("nv config show --pending")[1]["set"]["interface"]["swp1"] == {"link": {"mtu": 9000}}
    lines = bench.run("nv show interface swp1 link").splitlines()
    assert lines[0].split() == ["operational", "applied", "pending"]
    assert ["mtu", "9216", "9216", "9000"] in [line.split() for line in lines]
    single = bench.run("nv show qos pfc-watchdog --applied").splitlines()
    assert single[0].split() == ["applied"]
    assert "mtu: 9216" in bench.run("nv show interface swp1 link -o yaml")
    assert bench.run("nv show interface swp2 qos link-pause") == "No Data\n"


def test_tables_of_revisions_and_neighbours(bench: Bench) -> None:
    assert bench.run("nv config revision").splitlines()[2].split()[:3] == [
        "1",
        "applied_and_saved",
        "rev_1_apply_1",
    ]
    lldp = bench.run("nv show interface lldp").splitlines()
    assert lldp[2].split()[0] == "swp1"
    assert lldp[2].split()[-2:] == ["spine01", "swp1"]
    assert len(lldp) == 10


def test_attach_again_and_empty_revision(bench: Bench) -> None:
    bench.ok("nv set interface swp1 link mtu 9000", "nv config detach")
    assert bench.run("nv config detach") == ""
    assert bench.run("nv config attach 2") == "attached [rev_id: 2]\n"
    assert "mtu" in bench.run("nv config diff")
    assert bench.run("nv config diff empty startup -o commands").startswith("nv set interface eth0")
    assert bench.run("nv config delete 1") == "Error: Revision 1 is in use and cannot be deleted\n"
    assert "account `cumulus` will be deleted" in bench.run("nv config apply empty")


def test_abbreviated_and_incomplete_config_commands(bench: Bench) -> None:
    assert bench.run("nv config app -y") == "config apply executed with no config diff\n"
    assert bench.run("nv config d").startswith("Error: Ambiguous Command:\n  config delete\n")
    assert bench.run("nv config patch") == "Error: Incomplete Command: config patch\n"
    assert bench.run("nv config") == "Error: Incomplete Command: config\n"
    assert bench.run("nv") == "Error: Incomplete Command: nv\n"
    assert bench.run("nv config save now") == "Error: Invalid Command: config save now\n"
    assert bench.run("nv config show -o") == "Error: argument -o: expected one argument\n"
    assert bench.run("nv config apply 1 2") == "Error: Invalid Command: config apply 1 2\n"


def test_down_port_and_missing_model() -> None:
    facts = DeviceFacts("leaf01", "cumulus", ports=(PortFact("swp1", 100, peer_node="x", up=False),))
    device = DEVICE(facts, lambda: 0.0)
    link = json.loads(device.execute("cumulus", "nv show interface swp1 link -o json").stdout)
    assert (link["oper-status"], link["admin-status"], link["speed"]) == ("down", "up", "100G")
    assert json.loads(device.execute("cumulus", "nv show interface lldp -o json").stdout) == {}
    device.execute("cumulus", "nv set interface swp1 link state down; nv config apply -y")
    link = json.loads(device.execute("cumulus", "nv show interface swp1 link -o json").stdout)
    assert link["admin-status"] == "down"
    assert json.loads(device.execute("cumulus", "nv show platform -o json").stdout)["product-name"] == "VX"


def test_breakout_makes_ports(bench: Bench) -> None:
    bench.ok("nv set interface swp8s3 link mtu 9000")
    bench.refused("Interface swp8s3 does not exist on this platform.")
    bench.ok("nv set interface swp8 link breakout 4x")
    bench.apply()
    assert bench.json("nv show interface swp8s3 link")["mtu"] == 9000


def test_remaining_shell_commands(bench: Bench) -> None:
    assert bench.run("echo -n a > /tmp/a; echo b >> /tmp/a; cat /tmp/a; rm /tmp/a; ls /tmp/a") == (
        "ab\nls: cannot access '/tmp/a': No such file or directory\n"
    )
    assert bench.run("rm /tmp/a") == "rm: cannot remove '/tmp/a': No such file or directory\n"
    assert bench.run("rm -f /tmp/a; rm /etc/hostname") == (
        "rm: cannot remove '/etc/hostname': Permission denied\n"
    )
    assert bench.run("cat < /tmp/none") == "-bash: /tmp/none: No such file or directory\n"
    assert (
        bench.run("cat ~/none /etc")
        == "cat: /home/cumulus/none: No such file or directory\ncat: /etc: Is a directory\n"
    )
    assert bench.run('nv frob 2> /dev/null; echo ${HOME} "a \\"b\\""') == '/home/cumulus a "b"\n'
    assert bench.run("whoami; pwd; sudo whoami; false; exit 3; echo never") == (
        "cumulus\n/home/cumulus\nroot\n"
    )
    assert bench.device.execute("cumulus", "exit 3").status == 3
    assert bench.run("sudo") == "usage: sudo -h | -K | -k | -V\n"
    assert bench.run("echo x |") == "-bash: syntax error: unexpected end of file\n"
    assert bench.run("echo >") == "-bash: syntax error near unexpected token `newline'\n"
    assert bench.run('echo "x') == "-bash: unexpected EOF while looking for matching `\"'\n"
    assert bench.device.execute("root", "cat > /etc/motd <<EOF\nhello\nEOF").status == 0
    assert bench.run("grep hello < /etc/motd && cat /etc/motd | grep -v hello") == "hello\n"
    assert bench.device.execute("cumulus", "reboot").status == 1
    bench.ok("nv set interface swp1 link mtu 9000")
    assert bench.device.execute("cumulus", "sudo reboot").stdout == ""
    assert bench.device.events[-1]["event"] == "reboot"
    assert bench.run("nv config diff") == ""
