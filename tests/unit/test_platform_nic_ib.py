"""InfiniBand ports of hosts: what the subnet manager gave them is compared, IPoIB is ours."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._contract import Call, Change, Disturbs, Put
from rdma_fabric.platforms.nic_ib import PLATFORM
from rdma_fabric.state import (
    UNKNOWN,
    UNMANAGED,
    Absent,
    IbPort,
    NodeState,
    Observation,
    PortSettings,
    PortState,
)
from rdma_fabric.templating import render

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "nic_ib"
PORT = PortHardware("ib0", nic="ib", rdma="mlx5_0")
HW = Hardware(("linux", "nic_ib"), ports=(PORT, PortHardware("eth0", nic="mlx5")))
WANTED = IbPort(
    link="active",
    mtu=4096,
    pkeys=(0x8010, 0xFFFF),
    sl_to_vl=(0, 1, *[0] * 14),
    mode="datagram",
    children=(0x8010,),
)


def _state(ib: IbPort) -> NodeState:
    return NodeState(ports=(PortState("ib0", "physical", PortSettings(ib=ib)),))


def _seen(now: IbPort, boot: IbPort | None = None) -> Observation:
    return Observation(_state(now), _state(boot or now))


def _change(wanted: IbPort, now: IbPort, boot: IbPort | None = None) -> Change:
    return PLATFORM.change(_seen(now, boot), _state(wanted), HW)


def _parse(text: str) -> Observation:
    (question,) = PLATFORM.questions(HW)
    return PLATFORM.parse({question: text}, HW)


def _plain(value: Any) -> Any:
    if isinstance(value, Absent):
        return value.name.lower().replace("_", "-")
    return list(value) if isinstance(value, tuple) else value


# -- reading


@pytest.mark.parametrize("path", sorted(OBSERVE.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_tools_say(path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    seen = _parse(case["answer"])
    (port,) = seen.running.ports
    assert seen.stored is not None
    (boot,) = seen.stored.ports
    assert {name: _plain(getattr(port.settings.ib, name)) for name in case["expect"]} == case["expect"]
    assert {name: _plain(getattr(boot.settings.ib, name)) for name in case["stored"]} == case["stored"]
    assert _plain(port.speed_gbps) == case["speed_gbps"]
    assert list(seen.notes) == case["notes"]
    assert [list(one) for one in seen.neighbours] == case["neighbours"]


def _answer(name: str, *changes: tuple[str, str]) -> Observation:
    text = yaml.safe_load((OBSERVE / f"{name}.yaml").read_text(encoding="utf-8"))["answer"]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return _parse(text)


@pytest.mark.parametrize(
    ("width", "lane", "speed"),
    [
        ("4X", "53.125 Gbps", 200),
        ("1X", "53.125 Gbps", 50),
        ("2X", "106.25 Gbps", 200),
        ("4X", "25.78125 Gbps", 100),
        ("4X", "106.25 Gbps", 400),
        ("4X", "14.0625 Gbps", 56),
        ("4X", "No Extended Speed", 10),
        ("?", "53.125 Gbps", UNKNOWN),
    ],
)
def test_speed_is_lanes_times_the_rate_of_one(width: str, lane: str, speed: object) -> None:
    seen = _answer(
        "adapter",
        ("LinkWidthActive:.................4X", f"LinkWidthActive:.................{width}"),
        ("LinkSpeedExtActive:..............53.125 Gbps", f"LinkSpeedExtActive:..............{lane}"),
    )
    assert seen.running.ports[0].speed_gbps == speed


@pytest.mark.parametrize(
    ("word", "link"), [("Initialize", "init"), ("Armed", "armed"), ("Down", "down"), ("Active", "active")]
)
def test_link_states(word: str, link: str) -> None:
    state = f"LinkState:.......................{word}"
    seen = _answer("adapter", ("LinkState:.......................Active", state))
    assert seen.running.ports[0].settings.ib.link == link
    if word == "Down":
        assert seen.running.ports[0].speed_gbps is UNKNOWN


def test_a_table_that_is_cut_off_is_unknown() -> None:
    seen = _answer("adapter", ("@@keys ib0", "@@other ib0"), ("@@lanes ib0", "@@more ib0"))
    ib = seen.running.ports[0].settings.ib
    assert (ib.pkeys, ib.sl_to_vl, ib.link) == (UNKNOWN, UNKNOWN, "active")


def test_no_question_without_a_port() -> None:
    assert PLATFORM.questions(replace(HW, ports=HW.ports[1:])) == ()


# -- changing


@given(
    st.builds(
        IbPort,
        link=st.sampled_from(["active", UNMANAGED]),
        mtu=st.sampled_from([2048, 4096, UNMANAGED]),
        pkeys=st.sampled_from([(0xFFFF,), (0x8010, 0xFFFF), UNMANAGED]),
        mode=st.sampled_from(["datagram", "connected", UNMANAGED]),
        children=st.sampled_from([(), (0x8010,), UNMANAGED]),
    )
)
@settings(derandomize=True, max_examples=40)
def test_realize_is_idempotent(ib: IbPort) -> None:
    first = PLATFORM.realize(_state(ib), HW).state
    assert PLATFORM.realize(first, HW).state == first


@pytest.mark.parametrize("field", ["link", "mtu", "pkeys", "sl_to_vl", "vls", "vl_cap"])
def test_what_the_subnet_manager_gives_is_never_written(field: str) -> None:
    others = {"link": "init", "mtu": 2048, "pkeys": (0x7FFF,), "sl_to_vl": (0,) * 16, "vls": 1, "vl_cap": 1}
    other = others[field]
    assert _change(WANTED, replace(WANTED, **{field: other})) == Change()  # type: ignore[arg-type]


def test_nothing_to_do() -> None:
    assert _change(WANTED, WANTED) == _change(IbPort(), WANTED) == Change()


def test_interfaces_of_others_stay() -> None:
    assert _change(WANTED, replace(WANTED, children=(0x8010, 0x8020))) == Change()


def test_a_missing_interface_is_made() -> None:
    change = _change(WANTED, replace(WANTED, children=()))
    assert change.lines[-1] == "ip link add link ib0 name ib0.8010 type ipoib pkey 0x8010"
    assert change.level == Disturbs.NOTHING
    assert Call(("ip", "link", "del", "ib0.8010"), status=(0, 1)) in change.undo


def test_another_mode_disturbs_and_is_brought_back() -> None:
    change = _change(replace(WANTED, mode="connected"), WANTED)
    assert change.level == Disturbs.LOSS and change.disturbs[0].ports == ("ib0",)
    assert "sh -c 'echo connected >/sys/class/net/ib0/mode'" in change.lines
    assert Call(("sh", "-c", "echo datagram >/sys/class/net/ib0/mode")) in change.undo


def test_what_only_a_reboot_would_lose_disturbs_nothing() -> None:
    change = _change(WANTED, WANTED, replace(WANTED, children=()))
    assert [one.path for one in change.differences] == ["ports.ib0.ib.children"]
    assert change.level == Disturbs.NOTHING and not any("ip link" in line for line in change.lines)


def test_a_mode_that_could_not_be_read_is_not_written() -> None:
    change = _change(WANTED, replace(WANTED, mode=UNKNOWN))
    assert change.empty and [one.path for one in change.blocked] == ["ports.ib0.ib.mode"]


def test_full_rendering_and_change_put_the_same_files() -> None:
    wanted = _state(WANTED)
    files = {
        f"/{one.path}": render(one.template, one.context or PLATFORM.context(wanted, HW))
        for one in PLATFORM.artifacts(wanted, HW)
    }
    change = _change(WANTED, replace(WANTED, children=(), mode="connected"))
    assert {one.path: one.text for one in change.commit if isinstance(one, Put)} == files
    assert files["/etc/fabric/ipoib/ib0.conf"].endswith('MODE=datagram\nPKEYS="0x8010"\n')


def test_what_is_put_is_what_is_read_as_stored() -> None:
    change = _change(WANTED, replace(WANTED, children=(), mode="connected"))
    text = next(one.text for one in change.commit if isinstance(one, Put) and one.path.endswith("ib0.conf"))
    seen = _answer(
        "simulated", ("cat: /etc/fabric/ipoib/ib0.conf: No such file or directory\n\n@=1", f"{text}\n@=0")
    )
    assert seen.stored is not None
    assert seen.stored.ports[0].settings.ib.children == (), "nothing starts it at boot"
    seen = _answer(
        "simulated",
        ("cat: /etc/fabric/ipoib/ib0.conf: No such file or directory\n\n@=1", f"{text}\n@=0"),
        ("@@wants ib0\n\n@=1", "@@wants ib0\nyes\n\n@=0"),
    )
    assert seen.stored is not None
    boot = seen.stored.ports[0].settings.ib
    assert (boot.mode, boot.children) == ("datagram", (0x8010,))


def test_the_program_is_a_shell_script(tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    script = tmp_path / "ipoib"
    script.write_text(render("nic_ib/fabric-ipoib.sh.j2", PLATFORM.context(_state(WANTED), HW)), "utf-8")
    assert subprocess.run([shell, "-n", str(script)], check=False).returncode == 0
