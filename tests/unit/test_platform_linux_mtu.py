"""Linux as a base: the MTU of ports, by whoever keeps it, on VLANs, bonds and VFs, and our own session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _linux_links as links
from rdma_fabric.platforms import _linux_mtu
from rdma_fabric.platforms._contract import Call, Change, Disturbs, Put
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._linux_managers import Persistence
from rdma_fabric.platforms.linux import PLATFORM
from rdma_fabric.state import (
    MTU_MAX,
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Mtu,
    NodeState,
    PortSettings,
    PortState,
    differences,
)
from rdma_fabric.templating import render
from tests.support.linux_box import Box

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "linux"
MAC = {"eth0": {"address": "02:00:00:00:00:0a"}}
HW = Hardware(
    ("linux", "nic_mlx5"), ports=(PortHardware("eth0", nic="mlx5"), PortHardware("eth1", nic="generic"))
)
STACK = Hardware(
    ("linux", "nic_mlx5"),
    ports=(
        PortHardware("bond0.100", kind="vlan", parent="bond0", vlan=100),
        PortHardware("eth0", nic="mlx5"),
        PortHardware("eth1", nic="mlx5"),
        PortHardware("bond0", kind="bond", members=("eth0", "eth1")),
        PortHardware("eth2", nic="mlx5"),
        PortHardware("eth2v0", kind="vf", nic="mlx5", parent="eth2"),
    ),
)
"""A VLAN on a bond of two, and a VF; what lies on top is listed first on purpose."""
HOW_LINKS: dict[str, dict[str, Any]] = {
    "bond0.100": {"link": "bond0", "linkinfo": {"info_kind": "vlan"}},
    "bond0": {"linkinfo": {"info_kind": "bond"}},
    "eth0": {"master": "bond0", "linkinfo": {"info_slave_kind": "bond"}},
    "eth1": {"master": "bond0", "linkinfo": {"info_slave_kind": "bond"}},
}
STACKED = Box(links=HOW_LINKS)
EVERY = ("bond0.100", "eth0", "eth1", "bond0", "eth2", "eth2v0")


def load(name: str) -> Any:
    return yaml.safe_load((OBSERVE / name).read_text("utf-8"))["cases"]


def state(**mtus: Any) -> NodeState:
    """Ports with an MTU; bond0__100 for bond0.100."""
    found = {name.replace("__", "."): value for name, value in mtus.items()}
    return NodeState(
        ports=tuple(PortState(name, settings=PortSettings(Mtu(value))) for name, value in found.items())
    )


def every(value: int) -> NodeState:
    return NodeState(ports=tuple(PortState(name, settings=PortSettings(Mtu(value))) for name in EVERY))


def realized(wish: NodeState, hw: Hardware) -> dict[str, Any]:
    return {port.name: port.settings.mtu.ip for port in PLATFORM.realize(wish, hw).state.ports}


def change(wish: NodeState, box: Box | None = None, hw: Hardware = HW) -> Change:
    return PLATFORM.change((box or Box()).observe(hw), PLATFORM.realize(wish, hw).state, hw)


def puts(found: Change) -> dict[str, str | None]:
    return {step.path: step.text for step in found.commit if isinstance(step, Put)}


def moves(found: Change) -> list[str]:
    return [line for line in found.lines if line.startswith("ip link")]


# ---------------------------------------------------------------- realize


@pytest.mark.parametrize(
    ("port", "options", "wish", "used", "noted"),
    [
        ("eth0", {}, 9000, 9000, False),
        ("eth0", {}, MTU_MAX, 9978, False),
        ("eth0", {}, 9979, 9978, True),
        ("eth0", {"mtu_max": "9216"}, MTU_MAX, 9216, False),
        ("eth0", {"mtu_max": "9216"}, 9500, 9216, True),
        ("eth1", {}, MTU_MAX, 9000, False),
        ("eth1", {}, 65535, 65535, False),
        ("eth1", {"mtu_max": "1500"}, 9000, 1500, True),
        ("eth1", {}, UNMANAGED, UNMANAGED, False),
    ],
)
def test_realize_keeps_an_mtu_below_the_ceiling(
    port: str, options: dict[str, str], wish: Any, used: Any, noted: bool
) -> None:
    hw = replace(HW, options=tuple(options.items()))
    found = PLATFORM.realize(state(**{port: wish}), hw)
    assert realized(state(**{port: wish}), hw) == {port: used}
    assert [(f.severity, f.setting) for f in found.faults] == ([(Severity.NOTE, "mtu.ip")] if noted else [])


@pytest.mark.parametrize(
    ("wishes", "used", "reasons"),
    [
        ({"bond0": 9000, "bond0__100": 9000}, {"bond0": 9000, "bond0.100": 9000}, []),
        ({"bond0": 4200, "bond0__100": 9000}, {"bond0": 4200, "bond0.100": 4200}, ["it lies on bond0"]),
        ({"bond0__100": MTU_MAX, "bond0": 4200}, {"bond0.100": 4200, "bond0": 4200}, []),
        ({"bond0__100": MTU_MAX, "bond0": MTU_MAX}, {"bond0.100": 9978, "bond0": 9978}, []),
        ({"bond0": 12000}, {"bond0": 9978}, ["its NIC takes at most 9978"]),
        ({"bond0": 9000, "eth0": 4200}, {"bond0": 9000, "eth0": 9000}, ["it is a member of bond0"]),
        ({"eth0": 4200}, {"eth0": 4200}, []),
        ({"eth2": 4200, "eth2v0": 9000}, {"eth2": 4200, "eth2v0": 4200}, ["it lies on eth2"]),
        ({"eth2": UNMANAGED, "eth2v0": 9000}, {"eth2": UNMANAGED, "eth2v0": 9000}, []),
    ],
)
def test_realize_knows_what_a_port_lies_on(
    wishes: dict[str, Any], used: dict[str, Any], reasons: list[str]
) -> None:
    assert realized(state(**wishes), STACK) == used
    faults = PLATFORM.realize(state(**wishes), STACK).faults
    assert len(faults) == len(reasons)
    for fault, reason in zip(faults, reasons, strict=True):
        assert fault.severity == Severity.NOTE and reason in fault.reason


MTUS = st.sampled_from([UNMANAGED, UNKNOWN, NOT_APPLICABLE, 68, 1500, 4192, 9000, 9978, 12000, MTU_MAX])


@given(st.tuples(*[MTUS] * len(EVERY)), st.sampled_from(["", "9216"]), st.booleans())
def test_realize_twice_is_realize_once(values: tuple[Any, ...], ceiling: str, circle: bool) -> None:
    ports = STACK.ports
    if circle:  # nonsense in the inventory must not hang
        ports = (*ports[:4], replace(ports[4], parent="eth2v0"), ports[5])
    hw = replace(STACK, ports=ports, options=(("mtu_max", ceiling),) if ceiling else ())
    wish = state(**dict(zip(EVERY, values, strict=True)))
    once = PLATFORM.realize(wish, hw)
    twice = PLATFORM.realize(once.state, hw)
    assert twice.state == once.state
    assert twice.faults == ()


# ---------------------------------------------------------------- who keeps it


@pytest.mark.parametrize("case", load("netplan.yaml"), ids=lambda case: str(case["name"]))
def test_netplan(case: dict[str, Any]) -> None:
    judge({**case, "parts": {"netplan": case["text"]}})


@pytest.mark.parametrize("case", load("managers.yaml"), ids=lambda case: str(case["name"]))
def test_managers(case: dict[str, Any]) -> None:
    judge(case)


def judge(case: Mapping[str, Any]) -> None:
    hw = replace(HW, options=tuple(case.get("options", {}).items()))
    box = Box(
        files=case.get("files", {}),
        links=MAC,
        enabled=tuple(case.get("enabled", ())),
        parts=case.get("parts", {}),
    )
    given_parts = box.sections(hw)
    parts = {
        name: Section(one, 0, True) if isinstance(one, str) else Section(*one, True)
        for name, one in given_parts.items()
        if one is not None
    }
    found = _linux_mtu.persistence(parts, hw)["eth0"]
    assert found.manager == case["manager"]
    if "problem" in case:
        assert case["problem"] in found.problem
        assert found.stored is UNKNOWN and not found.writer and found.why_not
        return
    assert found.problem == "" and found.writer
    stored = UNKNOWN if case["stored"] == "unknown" else case["stored"]
    want = (stored, case.get("place", ""), case.get("foreign", ""))
    assert (found.stored, found.place, found.foreign) == want
    assert Persistence.of(found.text()) == replace(found, stored=UNKNOWN)


@pytest.mark.parametrize("part", ["netplan", "networkd", "active", "wants", "ifupdown"])
def test_a_part_that_is_missing_makes_the_owner_unknown(part: str) -> None:
    found = change(state(eth0=9000), Box(parts={part: None}))
    assert found.empty
    assert f"the answer about {part} was not understood" in dict(found.reasons)["ports.eth0.mtu.ip"]


# ---------------------------------------------------------------- read


@pytest.mark.parametrize(("text", "mtu"), load("links.yaml"))
def test_links(text: str, mtu: int | None) -> None:
    found = Box(parts={"link eth0": text}).observe(HW)
    assert found.running.ports[0].settings.mtu.ip == (UNKNOWN if mtu is None else mtu)


def test_real_outputs_of_ip_link(shared: Path) -> None:
    """Outputs that ntc-templates publishes, with the values of `tests/judges/show/linux.yaml`."""
    listed = yaml.safe_load((Path(__file__).parents[1] / "judges" / "show" / "linux.yaml").read_text("utf-8"))
    seen = 0
    for name, case in listed["files"].items():
        text = (shared / "data" / "show" / "linux" / name).read_text("utf-8")
        for port, expected in case["interfaces"].items():
            blocks = [b for b in _blocks(text) if f" {port}:" in b or f" {port}@" in b]
            if blocks:
                assert links.plain_link(blocks[0])["mtu"] == expected["ip_mtu"], (name, port)
                seen += 1
    assert seen > 15


def _blocks(text: str) -> list[str]:
    found: list[str] = []
    for line in text.splitlines():
        if line[:1].isdigit():
            found.append(line)
        elif found:
            found[-1] += f"\n{line}"
    return found


def test_a_blank_host() -> None:
    box = Box(links={"eth1": {"linkinfo": {"info_kind": "veth"}}})
    found = box.observe(HW)
    first, second = found.running.ports
    assert first.settings.mtu == Mtu(1500, NOT_APPLICABLE, NOT_APPLICABLE)
    assert first.speed_gbps == 400
    assert second.speed_gbps is UNMANAGED
    assert found.stored is not None and found.stored.ports[0].settings.mtu.ip == 1500


@pytest.mark.parametrize(
    ("shown", "below", "want"),
    [
        ({"max_mtu": 9978, "min_mtu": 68}, "", links.Link(9978, 68)),
        (HOW_LINKS["bond0.100"], "bond0 4200", links.Link(kind="vlan", below="bond0", below_mtu=4200)),
        ({}, "eth2 9000", links.Link(below="eth2", below_mtu=9000)),
        (HOW_LINKS["bond0"], "eth0 1500\neth1 1500", links.Link(kind="bond")),
        (HOW_LINKS["eth0"], "", links.Link(master="bond0", role="bond")),
        ({"max_mtu": "x", "master": 4, "linkinfo": []}, "a b c", links.Link()),
    ],
)
def test_what_a_link_lies_on(shown: dict[str, Any], below: str, want: links.Link) -> None:
    parts = {"below bond0.100": below, "below eth0": below}
    port = "bond0.100" if shown is HOW_LINKS["bond0.100"] else "eth0"
    found = dict(Box(links={port: shown}, parts=parts).observe(STACK).facts)[f"netdev {port}"]
    assert links.Link.of(found) == want
    assert links.Link.of("") == links.Link.of("a|b") == links.Link()


# ---------------------------------------------------------------- change


@pytest.mark.parametrize(
    ("box", "path", "text"),
    [
        (
            Box(files={"/etc/netplan/50.yaml": "network: {ethernets: {eth0: {}, eth1: {}}}"}),
            "/etc/netplan/zz-fabric.yaml",
            "network:\n  version: 2\n  ethernets:\n    eth0:\n      mtu: 9000\n    eth1:\n      mtu: 9000\n",
        ),
        (
            Box(files={"/etc/netplan/50.yaml": "network: {ethernets: {all: {match: {name: 'eth*'}}}}"}),
            "/etc/netplan/zz-fabric.yaml",
            "network:\n  version: 2\n  ethernets:\n    all:\n      mtu: 9000\n",
        ),
        (
            Box(files={"/etc/systemd/network/20-r.network": "[Match]\nName=eth0 eth1\n"}),
            "/etc/systemd/network/20-r.network.d/zz-fabric.conf",
            "[Link]\nMTUBytes=9000\n",
        ),
        (
            Box(
                parts={
                    "active": "NetworkManager active enabled",
                    "networkmanager": "eth0 100 auto\neth1 100 auto",
                }
            ),
            "/etc/NetworkManager/conf.d/zz-fabric.conf",
            "[connection-fabric-eth0]\nmatch-device=interface-name:eth0\nethernet.mtu=9000\n"
            "[connection-fabric-eth1]\nmatch-device=interface-name:eth1\nethernet.mtu=9000\n",
        ),
        (Box(), "/etc/fabric/mtu.conf", "eth0 9000\neth1 9000\n"),
    ],
)
def test_the_mtu_goes_where_its_manager_looks(box: Box, path: str, text: str) -> None:
    found = change(state(eth0=9000, eth1=9000), box)
    written = puts(found)[path]
    assert written is not None and written.split("\n", 1)[1] == text
    assert "ip link set dev eth0 mtu 9000" in found.lines
    calls = [step.argv for step in found.commit if isinstance(step, Call)]
    if path.endswith(".yaml"):
        assert ("netplan", "generate") in calls
        assert next(step for step in found.commit if isinstance(step, Put)).mode == 0o600
    if "NetworkManager" in path:
        reload = next(step for step in found.commit if isinstance(step, Call) and "reload" in step.argv)
        assert reload in found.undo and reload.late
    if ".network.d" in path:
        # networkd knows the drop-in when it starts anew; a driver may be reloaded before that.
        assert {"/etc/fabric/mtu.conf", "/usr/local/sbin/fabric-mtu"} <= puts(found).keys()
        assert ("systemctl", "enable", "fabric-mtu@eth1.service") in calls


def test_change_and_its_way_back() -> None:
    found = change(state(eth0=9000, eth1=4200))
    assert found.lines == (
        "/etc/fabric/mtu.conf: eth0 9000",
        "/etc/fabric/mtu.conf: eth1 4200",
        "ip link set dev eth0 mtu 9000",
        "ip link set dev eth1 mtu 4200",
    )
    assert found.undo == (
        Call(("ip", "link", "set", "dev", "eth1", "mtu", "1500")),
        Call(("ip", "link", "set", "dev", "eth0", "mtu", "1500")),
    )
    assert found.undo_kind == "dead-man" and found.level == Disturbs.LOSS
    assert found.disturbs[0].ports == ("eth0", "eth1")


def test_after_the_change_a_read_back_shows_what_was_realized() -> None:
    wanted = PLATFORM.realize(state(eth0=9000, eth1=9000), HW).state
    box = Box().after(change(wanted), HW)
    seen = box.observe(HW)
    assert differences(wanted, seen.running) == differences(wanted, seen.stored) == ()
    assert change(wanted, box).empty


def test_live_right_but_not_stored_is_saved() -> None:
    box = Box(links={"eth0": {"mtu": 9000}})
    found = change(state(eth0=9000), box)
    assert moves(found) == [] and "/etc/fabric/mtu.conf" in puts(found) and found.level == Disturbs.NOTHING
    assert found.undo == () and [item.path for item in found.differences] == ["ports.eth0.mtu.ip"]
    assert change(state(eth0=9000), box.after(found, HW)).empty


def test_stored_right_but_live_wrong_is_set() -> None:
    box = Box(files={"/etc/fabric/mtu.conf": "# managed by fabric\neth0 9000\n"}, enabled=("eth0",))
    found = change(state(eth0=9000), box)
    assert moves(found) == ["ip link set dev eth0 mtu 9000"]
    assert change(state(eth0=9000), box.after(found, HW)).empty


@pytest.mark.parametrize(
    ("box", "why"),
    [
        (
            Box(parts={"active": "NetworkManager active enabled", "networkmanager": "eth0 100 1500"}),
            "second owner: its profile sets 802-3-ethernet.mtu 1500",
        ),
        (
            Box(files={"/etc/network/interfaces": "iface eth0 inet static\nmtu 1500\n"}),
            "second owner: /etc/network/interfaces:2: 1500",
        ),
        (
            Box(parts={"netplan": "==/etc/netplan/50.yaml\ngrep: /etc/netplan/50.yaml: Permission denied"}),
            "who keeps its MTU is unclear: /etc/netplan/50.yaml cannot be read or understood",
        ),
        (Box(links={"eth0": {"max_mtu": 4096}}), "its driver takes at most 4096"),
        (Box(links={"eth0": {"min_mtu": 9216}}), "its driver takes at least 9216"),
        (
            Box(links={"eth0": {"master": "br0", "linkinfo": {"info_slave_kind": "bridge"}}}),
            "it is a port of bridge br0, which would follow and is never touched",
        ),
        (
            Box(links={"eth0": {"master": "bond7", "linkinfo": {"info_slave_kind": "bond"}}}),
            "it is a member of bond7, whose MTU counts",
        ),
        (Box(links={"eth0": {"master": "x"}}), "it is a port of a device x"),
        (
            Box(links={"eth0": {"linkinfo": {"info_kind": "bridge"}}}),
            "it is a bridge, which is never touched",
        ),
        (
            Box(
                links={"eth0": {"link": "p0", "linkinfo": {"info_kind": "vlan"}}},
                parts={"below eth0": "p0 1500"},
            ),
            "it lies on p0, which has 1500 and is not ours",
        ),
        (Box(parts={"below eth0": "pf0 4200"}), "it lies on pf0, which has 4200 and is not ours"),
    ],
)
def test_what_is_left_alone_and_why(box: Box, why: str) -> None:
    found = change(state(eth0=9000), box)
    assert found.empty
    assert [item.path for item in found.blocked] == ["ports.eth0.mtu.ip"]
    assert dict(found.reasons)["ports.eth0.mtu.ip"].startswith(why)


def test_a_vrf_leaves_the_mtu_to_its_ports() -> None:
    box = Box(links={"eth0": {"master": "vrf1", "linkinfo": {"info_slave_kind": "vrf"}}})
    assert moves(change(state(eth0=9000), box)) == ["ip link set dev eth0 mtu 9000"]


def test_a_port_that_is_not_there_is_unknown() -> None:
    found = change(state(eth0=9000, eth1=9000), Box(parts={"link eth0": 'Device "eth0" does not exist.'}))
    assert [item.path for item in found.blocked] == ["ports.eth0.mtu.ip"]
    assert moves(found) == ["ip link set dev eth1 mtu 9000"]
    assert "eth0" not in str(puts(found)["/etc/fabric/mtu.conf"])


@pytest.mark.parametrize("manager", ["networkd", "netplan"])
def test_ports_of_one_place_must_agree(manager: str) -> None:
    box = {
        "networkd": Box(files={"/etc/systemd/network/20-r.network": "[Match]\nName=eth0 eth1\n"}),
        "netplan": Box(files={"/etc/netplan/1.yaml": "network: {ethernets: {all: {match: {name: 'eth*'}}}}"}),
    }[manager]
    found = change(state(eth0=9000, eth1=4200), box)
    assert found.empty and len(found.blocked) == 2
    assert {text.split(" ", 1)[1] for _, text in found.reasons} == {"serves ports with different wishes"}


# ---------------------------------------------------------------- VLAN, bond, VF


def test_growing_starts_below_and_shrinking_above() -> None:
    """The kernel refuses a VLAN above its parent; a bond takes its members along."""
    up = change(every(9000), STACKED, STACK)
    assert up.blocked == ()
    assert moves(up) == [
        "ip link set dev bond0 mtu 9000",
        "ip link set dev eth2 mtu 9000",
        "ip link set dev bond0.100 mtu 9000",
        "ip link set dev eth2v0 mtu 9000",
    ]
    assert [step.argv[4] for step in up.undo if isinstance(step, Call)] == [
        "eth2v0",
        "bond0.100",
        "eth2",
        "bond0",
    ]
    assert up.disturbs[0].ports == EVERY
    text = puts(up)["/etc/fabric/mtu.conf"]
    assert text is not None
    assert text.splitlines()[1:] == ["bond0.100 9000 bond0", "bond0 9000", "eth2 9000", "eth2v0 9000 eth2"]
    after = STACKED.after(up, STACK)
    seen = after.observe(STACK)
    wanted = PLATFORM.realize(every(9000), STACK).state
    assert differences(wanted, seen.running) == differences(wanted, seen.stored) == ()
    assert change(every(9000), after, STACK).empty
    down = change(every(4200), after, STACK)
    assert [line.split()[4] for line in moves(down)] == ["bond0.100", "eth2v0", "bond0", "eth2"]


def test_a_member_that_differs_from_its_bond_is_set_alone() -> None:
    after = STACKED.after(change(every(9000), STACKED, STACK), STACK)
    box = replace(after, links={**after.links, "eth1": {**after.links["eth1"], "mtu": 1500}})
    assert moves(change(every(9000), box, STACK)) == ["ip link set dev eth1 mtu 9000"]


@pytest.mark.parametrize("who", ["eth1", "bond0"])
def test_a_bond_and_its_members_are_kept_together(who: str) -> None:
    """And the VLAN on top of it, which cannot grow alone."""
    box = replace(STACKED, links={**HOW_LINKS, who: {**HOW_LINKS[who], "max_mtu": 4200}})
    found = change(every(9000), box, STACK)
    reasons = dict(found.reasons)
    assert reasons.keys() >= {f"ports.{name}.mtu.ip" for name in ("bond0", who, "bond0.100")}
    assert "its driver takes at most 4200" in reasons["ports.bond0.100.mtu.ip"]
    assert moves(found) == ["ip link set dev eth2 mtu 9000", "ip link set dev eth2v0 mtu 9000"]


def test_a_vf_waits_for_its_pf() -> None:
    box = Box(links={"eth2": {"max_mtu": 4200}}, parts={"below eth2v0": "eth2 1500"})
    found = change(state(eth2=9000, eth2v0=9000), box, STACK)
    assert found.empty
    assert dict(found.reasons)["ports.eth2v0.mtu.ip"].startswith("eth2 is left alone: its driver")


def test_a_bond_of_netplan() -> None:
    files = {
        "/etc/netplan/1.yaml": "network: {ethernets: {eth0: {}, eth1: {}}, "
        "bonds: {bond0: {interfaces: [eth0, eth1]}}, vlans: {bond0.100: {id: 100, link: bond0}}}"
    }
    wish = state(bond0__100=9000, eth0=9000, eth1=9000, bond0=9000)
    found = change(wish, Box(files=files, links=HOW_LINKS), STACK)
    text = yaml.safe_load(puts(found)["/etc/netplan/zz-fabric.yaml"] or "")["network"]
    assert text == {"version": 2, "bonds": {"bond0": {"mtu": 9000}}, "vlans": {"bond0.100": {"mtu": 9000}}}


# ---------------------------------------------------------------- our session


@pytest.mark.parametrize(
    ("answer", "option", "left_alone"),
    [
        ("", "", False),
        ("ssh\non mgmt0", "", False),
        ("ssh\non eth0", "", True),
        ("ssh\non bond9\non eth0", "", True),
        ("ssh\non eth0", "eth1, eth0", False),
        ("ssh\non eth0", "all", False),
        ("ssh\non eth0", "eth1", True),
        ("ssh", "", True),
        ("ssh", "eth0", False),
    ],
)
def test_the_port_that_carries_the_session(answer: str, option: str, left_alone: bool) -> None:
    """Also one below it, and any port when the address that we came in at is on none."""
    hw = replace(HW, options=(("in_band", option),) if option else ())
    found = change(state(eth0=9000), Box(parts={"session": answer}), hw)
    assert found.empty is left_alone
    if left_alone:
        (reason,) = dict(found.reasons).values()
        assert "session" in reason and "options: {in_band: eth0}" in reason
        assert [item.path for item in found.blocked] == ["ports.eth0.mtu.ip"]
    else:
        assert moves(found) == ["ip link set dev eth0 mtu 9000"]


MARKED = "# managed by fabric: changes are overwritten; edit the intent instead\n"
OUR_UNIT = Box(
    files={"/etc/fabric/mtu.conf": f"{MARKED}eth0 9000\neth1 9000\n"},
    enabled=("eth0", "eth1"),
    links={"eth0": {"mtu": 4200}, "eth1": {"mtu": 9000}},
)
OUR_NETPLAN = Box(
    files={
        "/etc/netplan/50-x.yaml": "network:\n  ethernets:\n    eth0: {dhcp4: true}\n    eth1: {}\n",
        "/etc/netplan/zz-fabric.yaml": f"{MARKED}network:\n  version: 2\n  ethernets:\n"
        "    eth0:\n      mtu: 9000\n    eth1:\n      mtu: 9000\n",
    },
    links={"eth0": {"mtu": 4200}, "eth1": {"mtu": 9000}},
)
_NM = "[connection-fabric-{0}]\nmatch-device=interface-name:{0}\nethernet.mtu=9000\n"
OUR_NM = Box(
    files={"/etc/NetworkManager/conf.d/zz-fabric.conf": MARKED + _NM.format("eth0") + _NM.format("eth1")},
    links={"eth0": {"mtu": 4200}, "eth1": {"mtu": 9000}},
    parts={
        "active": "systemd-networkd inactive disabled\nNetworkManager active enabled",
        "networkmanager": "eth0 100 0\neth1 100 0",
    },
)


@pytest.mark.parametrize(
    "more",
    [
        {"session": "ssh\non eth0"},  # left alone: it carries our session
        {"link eth0": ("", 1)},  # not there just now
    ],
)
@pytest.mark.parametrize("box", [OUR_UNIT, OUR_NETPLAN, OUR_NM])
def test_what_our_file_holds_of_a_port_that_is_left_alone_stays(box: Box, more: dict[str, Any]) -> None:
    """A row less would be another MTU at the next boot, of a port that was said to be left alone."""
    box = replace(box, parts={**box.parts, **more})
    found = change(state(eth0=9000, eth1=4200), box)
    assert [item.path for item in found.blocked] == ["ports.eth0.mtu.ip"]
    after = replace(box.after(found, HW), parts={**box.parts, "session": ("", 3)}).observe(HW).stored
    assert after is not None
    assert {port.name: port.settings.mtu.ip for port in after.ports} == {"eth0": 9000, "eth1": 4200}


@pytest.mark.parametrize("box", [OUR_UNIT, OUR_NETPLAN, OUR_NM])
def test_an_mtu_that_nobody_asks_for_any_more_stays(box: Box) -> None:
    after = box.after(change(state(eth1=4200), box), HW).observe(HW).stored
    assert after is not None
    assert {port.name: port.settings.mtu.ip for port in after.ports} == {"eth0": 9000, "eth1": 4200}


def test_a_member_of_a_bond_loses_the_row_that_it_had_alone() -> None:
    files = {"/etc/fabric/mtu.conf": f"{MARKED}eth0 9000\neth9 9000 eth8\nno row\n"}
    (text,) = (
        text
        for path, text in puts(change(every(4200), replace(STACKED, files=files), STACK)).items()
        if path == "/etc/fabric/mtu.conf"
    )
    rows = (text or "").splitlines()[1:]
    assert "eth9 9000 eth8" in rows and not [row for row in rows if row.startswith("eth0 ")]


def test_an_mtu_in_quotes_is_one_to_netplan() -> None:
    late = {"/etc/netplan/zzz.yaml": 'network:\n  ethernets:\n    eth1: {mtu: "1500"}\n'}
    found = change(state(eth1=4200), replace(OUR_NETPLAN, files={**OUR_NETPLAN.files, **late}))
    assert found.reasons == (("ports.eth1.mtu.ip", "second owner: /etc/netplan/zzz.yaml: 1500"),)


def test_the_session_blocks_no_other_port() -> None:
    found = change(state(eth0=9000, eth1=9000), Box(parts={"session": "ssh\non eth0"}))
    assert moves(found) == ["ip link set dev eth1 mtu 9000"]
    assert dict(Box(parts={"session": "ssh\non eth0"}).observe(HW).facts)["session"] == "eth0"


# ---------------------------------------------------------------- day 0


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ({}, ["etc/fabric/mtu.conf", "etc/systemd/system/fabric-mtu@.service", "usr/local/sbin/fabric-mtu"]),
        ({"mtu_manager": "netplan"}, ["etc/netplan/zz-fabric.yaml"]),
        ({"mtu_manager": "networkmanager"}, ["etc/NetworkManager/conf.d/zz-fabric.conf"]),
        (
            {"mtu_manager": "networkd"},
            [
                "etc/fabric/mtu.conf",
                "etc/systemd/network/10-eth0.network.d/zz-fabric.conf",
                "etc/systemd/network/10-eth1.network.d/zz-fabric.conf",
                "etc/systemd/system/fabric-mtu@.service",
                "usr/local/sbin/fabric-mtu",
            ],
        ),
        (
            {"mtu_manager": "networkd", "networkd_file": "20-rails.network"},
            [
                "etc/fabric/mtu.conf",
                "etc/systemd/network/20-rails.network.d/zz-fabric.conf",
                "etc/systemd/system/fabric-mtu@.service",
                "usr/local/sbin/fabric-mtu",
            ],
        ),
        (
            {"mtu_manager": "ifupdown"},
            ["etc/fabric/mtu.conf", "etc/systemd/system/fabric-mtu@.service", "usr/local/sbin/fabric-mtu"],
        ),
    ],
)
def test_compile_renders_the_file_of_the_manager(options: dict[str, str], files: list[str]) -> None:
    hw = replace(HW, options=tuple(sorted(options.items())))
    wanted = state(eth0=9000, eth1=9000)
    found = PLATFORM.artifacts(wanted, hw)
    assert sorted(item.path for item in found) == files
    context = PLATFORM.context(wanted, hw)
    texts = {f"/{item.path}": render(item.template, item.context or context) for item in found}
    box = Box()
    if options.get("mtu_manager") == "networkd":
        rails = {"/etc/systemd/network/20-rails.network": "[Match]\nName=eth0 eth1\n"}
        single = {
            f"/etc/systemd/network/10-{port}.network": f"[Match]\nName={port}\n" for port in ("eth0", "eth1")
        }
        box = Box(files=rails if "networkd_file" in options else single)
    assert puts(change(wanted, box, hw)) == texts
