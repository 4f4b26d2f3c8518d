"""What the intent can say, and what it becomes on a switch port and on a host port."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rdma_fabric.cli import main
from rdma_fabric.findings import InputError
from rdma_fabric.intent.models import Intent
from rdma_fabric.resolve import PortPlan, class_of_kind, roce_class
from rdma_fabric.state import (
    UNMANAGED,
    Amount,
    Ecn,
    Marking,
    QosState,
    Share,
    SystemState,
    WatchdogTimers,
    pfc_priorities,
)
from tests.support.inputs import GROUPS, HOSTS, fabric, write

TOP = "version: 1\nname: t\n"
ROCE = "classes: {roce: {priority: 3, dscp: [26], lossless: true}, default: {priority: 0, dscp: rest}}\n"


def _ports(folder: Path, text: str, **files: str) -> tuple[PortPlan, PortPlan]:
    """A leaf's port and a host's port."""
    found = fabric(folder, TOP + text, **files)
    return found.plans["leaf01"].ports["e1"], found.plans["gpu01"].ports["eth0"]


def _qos(folder: Path, text: str) -> QosState:
    return _ports(folder, text)[0].settings.qos


def _system(folder: Path, text: str) -> SystemState:
    return fabric(folder, TOP + text).plans["gpu01"].state.system


def _refused(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        fabric(folder, TOP + text)
    (one,) = caught.value.findings
    return f"{one.message}; {one.help}"


class TestTrust:
    """DSCP, 802.1p, or both."""

    def test_dscp(self, tmp_path: Path) -> None:
        qos = _qos(tmp_path, ROCE)
        assert (qos.trust, qos.pcp_to_priority) == ("dscp", UNMANAGED)
        assert isinstance(qos.dscp_to_priority, tuple)
        assert [dscp for dscp in range(64) if qos.dscp_to_priority[dscp] == 3] == [26]

    def test_a_class_known_by_802_1p_only(self, tmp_path: Path) -> None:
        text = (
            "trust: pcp\nclasses:\n  san: {priority: 3, lossless: true}\n"
            "  ipc: {priority: 7, pcp: [6, 7]}\n  default: {priority: 0}\n"
        )
        leaf, host = _ports(tmp_path, text)
        assert leaf.settings.qos.dscp_to_priority is UNMANAGED
        assert leaf.settings.qos.pcp_to_priority == (0, 0, 0, 3, 0, 0, 7, 7)
        assert host.settings.marking.rdma_cm_tos is UNMANAGED
        assert host.settings.marking.traffic_class is UNMANAGED

    def test_both(self, tmp_path: Path) -> None:
        qos = _qos(tmp_path, ROCE + "trust: both\n")
        assert isinstance(qos.dscp_to_priority, tuple)
        assert qos.pcp_to_priority == (0, 0, 0, 3, 0, 0, 0, 0)

    def test_anything_else(self, tmp_path: Path) -> None:
        assert "wanted dscp, pcp or both" in _refused(tmp_path, ROCE + "trust: cos\n")


class TestClasses:
    """Any number of classes on any priority."""

    def test_dscp_ranges(self, tmp_path: Path) -> None:
        text = (
            'classes: {roce: {priority: 3, dscp: ["24-31"], lossless: true}, cnp: {priority: 7, dscp: 48}}\n'
        )
        table = _qos(tmp_path, text).dscp_to_priority
        assert isinstance(table, tuple)
        assert [dscp for dscp in range(64) if table[dscp] == 3] == list(range(24, 32))
        assert (table[48], table[0]) == (7, 0)

    @pytest.mark.parametrize("dscp", ["64", "-1", '"31-24"', '"a"', "true", "[rest]", "1.5"])
    def test_what_is_no_dscp(self, dscp: str, tmp_path: Path) -> None:
        told = _refused(tmp_path, f"classes: {{a: {{priority: 0, dscp: {dscp}}}}}\n")
        assert "is not a DSCP; write a number from 0 to 63" in told

    def test_several_lossless_classes_with_their_own_ecn(self, tmp_path: Path) -> None:
        text = """classes:
  a: {priority: 3, dscp: [24], lossless: true, ecn: {kmin: 1MB, kmax: 2MB, pmax: 10%}}
  b: {priority: 4, dscp: [26], lossless: true, ecn: {100G: {kmin: 5KB, kmax: 6KB}}}
  c: {priority: 5, dscp: [28], lossless: true, ecn: false}
  d: {priority: 1, dscp: [30], ecn: {any: {kmin: 3KB, kmax: 3KB}}}
  default: {priority: 0, dscp: rest}
ecn: {400G: {kmin: 150KB, kmax: 1500KB}}
"""
        classes = _qos(tmp_path, text).classes
        assert [one.ecn for one in classes] == [
            UNMANAGED,
            Ecn(Amount(3000), Amount(3000)),
            UNMANAGED,
            Ecn(Amount(1_000_000), Amount(2_000_000), 10.0),
            Ecn(Amount(150_000), Amount(1_500_000)),
            None,
            UNMANAGED,
            UNMANAGED,
        ]
        assert [index for index, one in enumerate(classes) if one.pfc_tx and one.pfc_rx] == [3, 4, 5]

    def test_no_cnp_class(self, tmp_path: Path) -> None:
        leaf, host = _ports(tmp_path, ROCE)
        assert (host.settings.marking.cnp_dscp, host.settings.marking.cnp_priority) == (UNMANAGED, UNMANAGED)
        assert class_of_kind(leaf.wishes, "cnp") is None

    def test_kinds_and_the_class_of_the_applications(self, tmp_path: Path) -> None:
        text = """classes:
  bulk: {priority: 4, dscp: [10], lossless: true}
  ring: {priority: 3, dscp: [26], lossless: true}
  feedback: {priority: 6, dscp: [48], kind: cnp}
hosts: {roce_class: ring, force_traffic_class: false}
"""
        _, host = _ports(tmp_path, text)
        marking = host.settings.marking
        assert (marking.rdma_cm_tos, marking.traffic_class, marking.cnp_dscp) == (104, UNMANAGED, 48)
        found = roce_class(host.wishes)
        assert found is not None
        assert found.priority == 3

    def test_schedulers(self, tmp_path: Path) -> None:
        text = """classes:
  roce: {priority: 3, dscp: [26], lossless: true, bandwidth: 60%}
  bulk: {priority: 3, dscp: [10], bandwidth: 10%}
  cnp: {priority: 6, dscp: [48], scheduler: strict, cap: 5%}
  old: {priority: 1, dscp: [8], weight: 7, cap: 20%}
  free: {priority: 2, dscp: [9]}
"""
        classes = _qos(tmp_path, text).classes
        assert [classes[n].share for n in (3, 6, 1, 2, 5)] == [
            Share("dwrr", 70), Share("strict", 0, 5), Share("dwrr", 7, 20), UNMANAGED, UNMANAGED,
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("priority: 0, bandwidth: 101%", "101% is more than 100%"),
            ("priority: 0, bandwidth: 50", "write 50%"),
            ("priority: 0, weight: 0", "weight is 0"),
            ("priority: 0, cap: 200%", "200% is more than 100%"),
            ("priority: 8", "'8' is not a priority; write a whole number from 0 to 7"),
        ],
    )
    def test_what_is_no_share(self, text: str, told: str, tmp_path: Path) -> None:
        assert told in _refused(tmp_path, f"classes: {{a: {{dscp: 1, {text}}}}}\n")


class TestEcn:
    """Thresholds in every unit, for every speed."""

    @pytest.mark.parametrize(
        ("text", "ecn"),
        [
            ("{any: {kmin: 150KB, kmax: 150KB, pmax: 7%}}", Ecn(Amount(150_000), Amount(150_000), 7.0)),
            ("{kmin: 150KiB, kmax: 1MiB}", Ecn(Amount(153_600), Amount(1_048_576))),
            ("{400G: {kmin: 55%, kmax: 90%}}", Ecn(Amount(55, "percent"), Amount(90, "percent"))),
            (
                "{400G: {kmin: 6000cells, kmax: 12000cells}}",
                Ecn(Amount(6000, "cells"), Amount(12000, "cells")),
            ),
            (
                "{any: {kmin: 20segments, kmax: 9segments}}",
                Ecn(Amount(20, "segments"), Amount(9, "segments")),
            ),
            (
                "{any: {kmin: 1KB, kmax: 2KB, colours: "
                "{yellow: {kmin: 1B, kmax: 2B, pmax: 5%}, red: {kmin: 3B, kmax: 4B}}}}",
                Ecn(
                    Amount(1000),
                    Amount(2000),
                    100.0,
                    (("red", Amount(3), Amount(4), 100.0), ("yellow", Amount(1), Amount(2), 5.0)),
                ),
            ),
            ("{any: {profile: Cisco AI/ML blueprint values}}", Ecn(Amount(150_000), Amount(3_000_000), 7.0)),
            ("{any: {profile: nobody}}", UNMANAGED),
            ("{100G: {kmin: 1KB, kmax: 2KB}}", UNMANAGED),
            ("device", UNMANAGED),
            ("{400G: device, any: {kmin: 1KB, kmax: 2KB}}", UNMANAGED),
            ("false", None),
            ("{400G: false, any: {kmin: 1KB, kmax: 2KB}}", None),
        ],
    )
    def test_ramp(self, text: str, ecn: Any, tmp_path: Path) -> None:
        assert _qos(tmp_path, ROCE + f"ecn: {text}\n").classes[3].ecn == ecn

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("{400G: {kmin: 1KB}}", "the ramp is not complete; give both kmin and kmax"),
            ("{'400': {kmin: 1KB, kmax: 2KB}}", "write 400G"),
            ("{any: {kmin: 150, kmax: 2KB}}", "150 has no unit"),
            ("true", "ecn"),
        ],
    )
    def test_mistakes(self, text: str, told: str, tmp_path: Path) -> None:
        assert told in _refused(tmp_path, ROCE + f"ecn: {text}\n")

    def test_hosts_mark_nothing(self, tmp_path: Path) -> None:
        _, host = _ports(tmp_path, ROCE + "ecn: {any: {kmin: 1KB, kmax: 2KB}}\n")
        assert {one.ecn for one in host.settings.qos.classes} == {UNMANAGED}


class TestPfc:
    """Scope, direction, owner, watchdog and headroom."""

    @pytest.mark.parametrize(
        ("change", "tx", "rx"),
        [
            ("pfc.enabled: false", False, False),
            ("classes.roce.pfc: false", False, False),
            ("classes.roce.pfc: receive-only", False, True),
            ("classes.roce.pfc.tx: false", False, True),
            ("classes.roce.pfc: {rx: false}", True, False),
            ("classes.roce.lossless: false", False, False),
        ],
    )
    def test_by_override(self, change: str, tx: bool, rx: bool, tmp_path: Path) -> None:
        text = ROCE + f"pfc: {{}}\noverrides:\n  - {{where: 'role=leaf,port=e1', set: {{{change}}}}}\n"
        found = fabric(tmp_path, TOP + text)
        here = found.plans["leaf01"].ports["e1"].settings.qos.classes[3]
        assert (here.pfc_tx, here.pfc_rx) == (tx, rx)
        assert pfc_priorities(found.plans["leaf01"].ports["e2"].settings.qos) == (3,)

    @pytest.mark.parametrize(
        ("text", "dcbx"),
        [
            ("{}", "none"),
            ("{dcbx: none}", "none"),
            ("{dcbx: 'off'}", "none"),
            ("{dcbx: ieee}", "ieee"),
            ("{dcbx: cee}", "cee"),
        ],
    )
    def test_who_owns_it(self, text: str, dcbx: str, tmp_path: Path) -> None:
        assert _qos(tmp_path, ROCE + f"pfc: {text}\n").dcbx == dcbx

    def test_left_alone(self, tmp_path: Path) -> None:
        qos = _qos(tmp_path, ROCE)
        assert (qos.dcbx, qos.watchdog, qos.classes[3].headroom) == (UNMANAGED, WatchdogTimers(), UNMANAGED)

    @pytest.mark.parametrize(
        ("text", "timers", "guarded"),
        [
            (
                "{detect: 200ms, restore: 400ms, poll: 100ms, action: drop}",
                WatchdogTimers(200, 400, 100, "drop"),
                True,
            ),
            ("{detect: 1500us}", WatchdogTimers(2), True),
            ("{action: notify, require: true}", WatchdogTimers(action="notify"), True),
            ("device", WatchdogTimers(), True),
            ("true", WatchdogTimers(), True),
            ("false", WatchdogTimers(), False),
        ],
    )
    def test_watchdog(self, text: str, timers: WatchdogTimers, guarded: bool, tmp_path: Path) -> None:
        qos = _qos(tmp_path, ROCE + f"pfc: {{watchdog: {text}}}\n")
        assert qos.watchdog == timers
        assert [one.watchdog for one in qos.classes] == [index == 3 and guarded for index in range(8)]

    @pytest.mark.parametrize(
        ("pfc", "own", "headroom"),
        [("auto", "", None), ("64000B", "", Amount(64_000)), ("auto", ", headroom: 100KB", Amount(100_000))],
    )
    def test_headroom(self, pfc: str, own: str, headroom: Any, tmp_path: Path) -> None:
        text = (
            f"classes: {{roce: {{priority: 3, dscp: [26], lossless: true{own}}}}}\npfc: {{headroom: {pfc}}}\n"
        )
        classes = _qos(tmp_path, text).classes
        assert (classes[3].headroom, classes[0].headroom) == (headroom, UNMANAGED)


class TestHosts:
    """DCQCN, MTU, sysctl, modules, limits, environment."""

    def test_dcqcn_off_is_a_choice(self, tmp_path: Path) -> None:
        _, host = _ports(tmp_path, ROCE + "dcqcn: false\n")
        assert (host.settings.marking.np, host.settings.marking.rp) == ((), ())

    def test_dcqcn_parameters(self, tmp_path: Path) -> None:
        _, host = _ports(tmp_path, ROCE + "dcqcn: {np: {min_time_between_cnps: 4}, rp: {ai_rate: 5}}\n")
        assert host.settings.marking.parameters == (("np_min_time_between_cnps", "4"), ("rp_ai_rate", "5"))
        assert host.settings.marking.np == (3,)

    def test_sysctl_by_interface_pattern(self, tmp_path: Path) -> None:
        text = "hosts: {sysctl: {net.ipv4.conf.*.arp_ignore: 1, net.ipv4.conf.eth2*.y: 7}}\n"
        assert _system(tmp_path, text).sysctl == (
            ("net.ipv4.conf.eth0.arp_ignore", "1"),
            ("net.ipv4.conf.eth1.arp_ignore", "1"),
            ("net.ipv4.conf.eth2.arp_ignore", "1"),
            ("net.ipv4.conf.eth2.y", "7"),
        )

    def test_the_rest_of_a_host(self, tmp_path: Path) -> None:
        system = _system(
            tmp_path,
            ROCE + "hosts:\n  modules: [rdma_ucm, ib_core]\n  module_options: {mlx5_core: {prof_sel: 3}}\n"
            "  limits: {memlock: unlimited}\n  nccl: true\n"
            "  environment: {UCX_TLS: rc, NCCL_IB_HCA: mlx5_9}\n",
        )
        assert system.modules == (("ib_core", True), ("rdma_ucm", True))
        assert system.module_options == (("mlx5_core.prof_sel", "3"),)
        assert system.limits == (("memlock", "unlimited"),)
        assert system.environment == (("NCCL_IB_HCA", "mlx5_9"), ("NCCL_IB_TC", "104"), ("UCX_TLS", "rc"))

    def test_switches_have_no_such_thing(self, tmp_path: Path) -> None:
        found = fabric(tmp_path, TOP + "hosts: {modules: [x]}\n")
        assert found.plans["leaf01"].state.system == SystemState()

    @pytest.mark.parametrize(("mtu", "ip"), [("4200", 4200), ("max", 65536)])
    def test_mtu(self, mtu: str, ip: int, tmp_path: Path) -> None:
        leaf, host = _ports(tmp_path, f"mtu: {{host: {mtu}}}\n")
        assert (leaf.settings.mtu.ip, host.settings.mtu.ip) == (UNMANAGED, ip)

    def test_mtu_of_an_svi(self, tmp_path: Path) -> None:
        groups = GROUPS.replace(
            '"e[1-4]": {', '"vlan10": {kind: svi, vlan: 10, network: compute}, "e[1-4]": {'
        )
        for text, ip in (("mtu: {switch: 9214}\n", 9214), ("mtu: {switch: 9214, svi: 9000}\n", 9000)):
            found = fabric(tmp_path, TOP + ROCE + text, groups=groups)
            port = found.plans["leaf01"].ports["vlan10"].settings
            assert port.mtu.ip == ip
            assert port.qos == QosState()

    def test_vf_bond_and_vlan(self, tmp_path: Path) -> None:
        ports = (
            "ports: {eth0: {speed: 400G, network: compute, nic: mlx5, rdma: mlx5_0, bdf: '0000:01:00.0'}, "
            "eth0v0: {kind: vf, parent: eth0, network: compute, nic: mlx5}, "
            "bond0: {kind: bond, members: ['eth[0-1]'], network: storage, nic: mlx5}, "
            "bond0.7: {kind: vlan, parent: bond0, vlan: 7, network: storage, nic: mlx5}}"
        )
        hosts = HOSTS.replace(
            "gpu[01-04]: {groups: [gpu]}", f"gpu[01-04]: {{groups: [gpu], data: {{{ports}}}}}"
        )
        plan = fabric(tmp_path, TOP + ROCE, hosts=hosts).plans["gpu01"]
        hw = {port.name: port for port in plan.hardware.ports}
        assert (hw["eth0"].bdf, hw["eth0v0"].parent, hw["bond0"].members, hw["bond0.7"].vlan) == (
            "0000:01:00.0", "eth0", ("eth0", "eth1"), 7,
        )  # fmt: skip
        assert plan.ports["eth0v0"].settings.marking.rdma_cm_tos == 104
        assert plan.ports["bond0.7"].settings.marking == Marking()

    def test_one_cable_with_several_links(self, tmp_path: Path) -> None:
        groups = GROUPS.replace(
            '"e[1-4]": {', '"e1/[1-2]": {breakout: 2, speed: 200G, network: compute}, "e[1-4]": {'
        )
        cables = "a_node,a_port,b_node,b_port,length_m\nleaf01,e1/[1-2],leaf02,e1/[1-2],3\n"
        found = fabric(tmp_path, TOP + ROCE, groups=groups, cables=cables)
        assert len(found.inventory.links) == 2
        assert found.plans["leaf01"].ports["e1/2"].settings.qos.cable_m == 3


SHORTHANDS = (
    "dcqcn: false",
    "dcqcn: {enabled: false}",
    "ecn: false",
    "ecn: device",
    "ecn: {kmin: 1KB, kmax: 2KB}",
    "ecn: {400G: false, any: device}",
    "ecn: {400G: {kmin: 55%, kmax: 90%, pmax: 7%}}",
    "pfc: {watchdog: false}",
    "pfc: {watchdog: device}",
    "pfc: {watchdog: {detect: 200ms}, headroom: auto, dcbx: 'off'}",
    "pfc: {headroom: 64KB}",
    "classes: {a: {priority: 3, dscp: '24-31', pfc: false}}",
    "classes: {a: {priority: 3, dscp: [26, '30-31'], pfc: receive-only, ecn: false, lossless: true}}",
    "classes: {a: {priority: 3, dscp: rest, pfc: {tx: false}, bandwidth: 50%, cap: 5%}}",
    "mtu: {switch: max, host: 9000}",
    "hosts: {sysctl: {net.ipv4.x: 1}, limits: {memlock: unlimited}}",
    "overrides: [{where: role=leaf, set: {ecn.400G.kmax: 3MB}}]",
    "waivers: [{rule: FAB021, node: leaf17, until: '2027-01-31', reason: optics swap}]",
    "rollout: {timer: 120s, hooks: {drain: /bin/true}}",
    "absent: [pfc.watchdog]",
)


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return Intent.model_json_schema(mode="validation")


@pytest.mark.parametrize("text", SHORTHANDS)
def test_editors_accept_what_we_accept(text: str, schema: dict[str, Any]) -> None:
    data = {"version": 1, "name": "t", **yaml.safe_load(text)}
    Intent.model_validate(data)
    jsonschema.validate(json.loads(json.dumps(data, default=str)), schema)


@pytest.mark.parametrize(
    "text",
    [
        "dcqcn: 5",
        "ecn: true",
        "pfc: {watchdog: maybe}",
        "classes: {a: {priority: 9}}",
        "mtu: {host: big}",
        "zz: 1",
    ],
)
def test_editors_refuse_what_we_refuse(text: str, schema: dict[str, Any]) -> None:
    data = {"version": 1, "name": "t", **yaml.safe_load(text)}
    with pytest.raises(ValueError, match="validation error"):
        Intent.model_validate(data)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_the_design_in_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt key anywhere is found before anything else happens."""
    write(tmp_path, TOP + ROCE.replace("lossless", "losless"))
    assert main(["check", str(tmp_path)]) == 2
    assert "did you mean lossless?" in capsys.readouterr().err
