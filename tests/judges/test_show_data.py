"""The expected facts of the real outputs are complete: every file, every interface, every number."""

from __future__ import annotations

import re

import pytest

from tests.judges import show_data
from tests.judges.show_data import Output

# The line that opens an interface, told apart from the parsers' own expressions by being coarse.
OPENING = {
    "arista_eos": r"^(\S+) is (?:up|down)",
    "cisco_nxos": r"^(\S+) is (?:up|down)",
    "h3c_comware": r"^([A-Z]\S+)\nCurrent state:",
    "huawei_ce": r"^(\S+) current state :",
    "juniper_junos": r"^(?:Physical interface: |\s+Logical interface )([^\s,]+)",
    "linux": r"^\d+: ([^:@]+)[:@]",
}
ALL = [output for platform in show_data.platforms() for output in show_data.outputs(platform)]


@pytest.fixture(autouse=True)
def _outputs_are_there() -> None:
    reason = show_data.missing()
    if reason:
        pytest.skip(reason)


def test_every_interface_output_has_expectations() -> None:
    recorded = {path for path in show_data.SHOW.rglob("*.raw") if "lldp" not in path.name}
    assert recorded == {output.path for output in ALL}


@pytest.mark.parametrize("output", ALL, ids=lambda output: output.path.stem)
def test_every_interface_and_number_of_an_output_is_written_down(output: Output) -> None:
    text = output.text().replace("Line protocol current state", "line protocol")
    opened = re.findall(OPENING[output.platform], text, re.MULTILINE)
    assert opened == list(output.interfaces)
    text = re.sub(r"Protocol multiservice, MTU: \d+", "", text)  # Junos: a protocol of its own, not IP
    shown = re.findall(r"(?:MTU|mtu|Transmit Unit is|transmission unit|rame [Ll]ength)\D{0,5}?(\d+)", text)
    written = [
        str(size)
        for facts in output.interfaces.values()
        for size in (facts.ip_mtu, facts.frame_mtu)
        if size is not None
    ]
    assert sorted(written) == sorted(number for number in shown if int(number) > 0)
