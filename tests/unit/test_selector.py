"""The language of --limit, `where` and partition members."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric.cli.common import scope
from rdma_fabric.findings import BadValue, InputError
from rdma_fabric.inventory.selector import FACTS, parse
from rdma_fabric.resolve import Resolved
from tests.support.inputs import fabric
from tests.support.states import steady

GROUPS = """\
all: {data: {rack: "7"}}
leaf:
  groups: [all]
  platform: switch
  data: {role: leaf, model: X-1, version: "4.32", ports: {e1: {speed: 400G, network: compute}, ma1: {}}}
spine: {platform: switch, data: {role: spine, state: planned, ports: {e1: {speed: 800G, network: core}}}}
gpu:
  platform: box
  data: {role: host, ports: {eth0: {speed: 400G, network: compute, nic: mlx5, rail: "0"}}}
"""
HOSTS = """\
leaf[01-12]: {groups: [leaf]}
spine1: {groups: [spine]}
gpu[1-3]: {groups: [gpu]}
"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Resolved:
    intent = "version: 1\nname: t\nnetworks: {compute: {}, core: {}}\n"
    return fabric(
        tmp_path_factory.mktemp("net"),
        intent,
        groups=GROUPS,
        hosts=HOSTS,
        cables="a_node,a_port,b_node,b_port,length_m\n",
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("leaf01", "leaf01"),
        ("leaf01,gpu1", "leaf01 gpu1"),
        ("leaf01 gpu1", "leaf01 gpu1"),
        ("leaf[01-03]", "leaf01 leaf02 leaf03"),
        ("leaf[01,11]", "leaf01 leaf11"),
        ("leaf[01-02,12],gpu2", "leaf01 leaf02 leaf12 gpu2"),
        ("gpu[2]", "gpu2"),
        ("leaf1*", "leaf10 leaf11 leaf12"),
        ("leaf?2", "leaf02 leaf12"),
        ("gpu[!1]", "gpu2 gpu3"),
        ("*1,role=leaf", "leaf01 leaf11"),
        ("role=spine", "spine1"),
        ("role=spine|host", "spine1 gpu1 gpu2 gpu3"),
        ("role!=leaf", "spine1 gpu1 gpu2 gpu3"),
        ("role=l*,version=4.*,model=X-1,name=leaf0[12]", "leaf01 leaf02"),
        ("platform=box,gpu1", "gpu1"),
        ("group=all,leaf12", "leaf12"),
        ("rack=7,leaf11", "leaf11"),
        ("state=planned", "spine1"),
        ("network=core", "spine1"),
        ("network=compute,role=host,gpu3", "gpu3"),
        ("speed=800G", "spine1"),
        ("nic=mlx5,rail=0,port=eth*,kind=physical,gpu1", "gpu1"),
    ],
)
def test_selects(text: str, names: str, net: Resolved) -> None:
    assert set(scope(net, text)) == set(names.split())


def test_nothing_selects_all(net: Resolved) -> None:
    assert len(scope(net, "")) == len(scope(net, " , ")) == 16


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("leaf13", "there is no node leaf13", "did you mean leaf"),
        ("leaf01,gpu9", "there is no node gpu9", "did you mean gpu"),
        ("zebra", "there is no node zebra", "see hosts.yaml"),
        ("rolle=leaf", "unknown fact 'rolle'", "did you mean role?"),
        ("colour=red", "unknown fact 'colour'", "known facts: name, role"),
        ("role=", "'role=' is not fact=value", "known facts"),
        ("leaf[01-02]*", "holds a range and a wildcard", "write two names"),
        ("leaf[02-01]", "reversed range", "write [01-02]"),
        ("leaf[1-1000000]", "stands for 1000000 names", "at most"),
        ("leaf[01", "'leaf[01' has a [ without a ]", "write a range"),
        ("le\u00e4f", "U+00E4", "use ASCII"),
        ("role=tor", "selects no node", "see hosts.yaml"),
        ("port=ma1", "selects no node", "see hosts.yaml"),
        ("leaf01,role=host", "selects no node", "see hosts.yaml"),
    ],
)
def test_mistakes(text: str, message: str, help: str, net: Resolved) -> None:
    with pytest.raises(InputError) as caught:
        scope(net, text)
    (one,) = caught.value.findings
    assert message in one.message
    assert help in one.help
    assert str(one.position) == f"--limit {text}"


@steady
@given(
    st.text(alphabet="leaf01[]-,!*?=| \u00e4", max_size=14) | st.sampled_from(FACTS).map(lambda f: f + "!=x")
)
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except BadValue as error:
        assert error.text
        assert error.help
        return
    assert found.names or found.globs or found.terms or not text.strip(" ,")
