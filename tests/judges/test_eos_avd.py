"""pyavd judges: the EOS page's lines are Arista's, wrong values are refused, blind spots are known."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.judges import eos_avd
from tests.judges.eos_avd import Ecn, Port, Profile, Queue, Watchdog, Wishes

pytestmark = pytest.mark.judge("eos-pyavd")

CASES: Mapping[str, Mapping[str, Mapping[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "bad" / "eos.yaml").read_text(encoding="utf-8")
)
ROCE = Profile(
    trust="dscp",
    lossless=(3,),
    queues={0: Queue(percent=50), 3: Queue(percent=50, ecn=Ecn(150, 1500)), 6: Queue(strict=True)},
)
EXAMPLE = Wishes(
    ports={
        "Ethernet1/1": Port(mtu=9214, profile="ROCE", counted_queues=(3,)),
        "Ethernet2/1": Port(mtu=9214, profile="ROCE"),
        "Ethernet3/1": Port(mtu=9214, profile="ROCE"),
        "Ethernet4/1": Port(mtu=9214, profile="ROCE"),
    },
    profiles={"ROCE": ROCE},
    dscp_to_class={code: {26: 3, 48: 6}.get(code, 0) for code in range(64)},
    class_to_queue={0: 0, 3: 3, 6: 6},
    watchdog=Watchdog(detect=200, restore=400, poll=100, action="drop"),
)


@pytest.fixture(autouse=True)
def _judge_is_there() -> None:
    reason = eos_avd.missing()
    if reason:
        pytest.skip(reason)


def _changed(case: Mapping[str, Any]) -> dict[str, Any]:
    config = copy.deepcopy(eos_avd.structured(EXAMPLE))
    node: Any = config
    *path, last = case["at"]
    for step in path:
        node = node[step]
    if case["value"] is None:
        del node[last]
    else:
        node[last] = case["value"]
    return config


def test_worked_example_is_what_arista_renders(shared: Path) -> None:
    page = (shared / "reference" / "platforms" / "arista_eos.md").read_text(encoding="utf-8")
    section = page.split("\n## 5. ")[1].split("\n## 6. ")[0]
    example = section.split("```text\n")[1].split("```")[0]
    assert len(eos_avd.lines(example)) > 90
    assert eos_avd.differences(example, eos_avd.render(eos_avd.structured(EXAMPLE))) == []


@pytest.mark.parametrize("case", CASES["refused"].values(), ids=CASES["refused"].keys())
def test_wrong_value_is_refused(case: Mapping[str, Any]) -> None:
    violations = eos_avd.validate(_changed(case))
    assert any(case["says"] in one for one in violations), violations
    with pytest.raises(eos_avd.SchemaViolation):
        eos_avd.render(_changed(case))


@pytest.mark.parametrize("case", CASES["accepted"].values(), ids=CASES["accepted"].keys())
def test_blind_spot_is_known(case: Mapping[str, Any]) -> None:
    assert eos_avd.validate(_changed(case)) == []


def test_port_without_profile_and_switch_with_tx_queues() -> None:
    wishes = Wishes(
        ports={"Ethernet1/1": Port(routed=False, trust="dscp", lossless=(3, 4), counted_queues=(3,))},
        profiles={"P": Profile(watchdog=True, queues={3: Queue(ecn=Ecn(1, 2, "bytes", weight=None))})},
        queue_word="tx-queue",
    )
    assert eos_avd.lines(eos_avd.render(eos_avd.structured(wishes))) == {
        ((), "interface Ethernet1/1"),
        (("interface Ethernet1/1",), "qos trust dscp"),
        (("interface Ethernet1/1",), "priority-flow-control on"),
        (("interface Ethernet1/1",), "priority-flow-control priority 3 no-drop"),
        (("interface Ethernet1/1",), "priority-flow-control priority 4 no-drop"),
        (("interface Ethernet1/1",), "tx-queue 3"),
        (("interface Ethernet1/1", "tx-queue 3"), "random-detect ecn count"),
        ((), "qos profile P"),
        (("qos profile P",), "priority-flow-control pause watchdog"),
        (("qos profile P",), "tx-queue 3"),
        (
            ("qos profile P", "tx-queue 3"),
            "random-detect ecn minimum-threshold 1 bytes maximum-threshold 2 bytes max-mark-probability 100",
        ),
    }


def test_lines_forget_spelling_but_not_meaning() -> None:
    left = """\
!
qos map dscp 0 1  2 to traffic-class 0
priority-flow-control pause watchdog default timeout 0.20
interface Ethernet1
   mtu 9214
   !
   uc-tx-queue 3
      no priority
"""
    same = """\
interface Ethernet1
   uc-tx-queue 3
      no priority
   mtu 9214
qos map dscp 2 to traffic-class 0
qos map dscp 0 1 to traffic-class 0
priority-flow-control pause watchdog default timeout 0.2
"""
    assert eos_avd.differences(left, same) == []
    for old, new in [
        ("timeout 0.20", "timeout 2"),
        ("      no p", "   no p"),
        (" 1  2 ", " 1 "),
        ("9214", "9216"),
    ]:
        assert eos_avd.differences(left, left.replace(old, new)), new
    assert eos_avd.differences(
        "interface Ethernet1\n   mtu 9214\n", "interface Ethernet1\n   mtu 9000\n"
    ) == [
        "+ interface Ethernet1 / mtu 9000",
        "- interface Ethernet1 / mtu 9214",
    ]
