"""Linux as a base: what is realized, read and changed."""

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
from rdma_fabric.platforms import _linux_mtu, _linux_read
from rdma_fabric.platforms._contract import Call, Change, Disturbs, Put
from rdma_fabric.platforms._host_files import Section, sections, unit_name
from rdma_fabric.platforms.linux import PLATFORM
from rdma_fabric.state import (
    MTU_MAX,
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    SystemState,
    differences,
)
from rdma_fabric.templating import render

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "linux"
HW = Hardware(
    ("linux", "nic_mlx5"), ports=(PortHardware("eth0", nic="mlx5"), PortHardware("eth1", nic="generic"))
)
MARKED = "# managed by fabric"


def load(name: str) -> Any:
    return yaml.safe_load((OBSERVE / name).read_text("utf-8"))["cases"]


def state(system: SystemState | None = None, **mtus: Any) -> NodeState:
    ports = (
        PortState(name, "physical", PortSettings(value if isinstance(value, Mtu) else Mtu(value)))
        for name, value in mtus.items()
    )
    return NodeState(system or SystemState(), tuple(ports))


def frame(parts: Mapping[str, str | tuple[str, int]]) -> str:
    found = ""
    for name, given_text in parts.items():
        text, status = given_text if isinstance(given_text, tuple) else (given_text, 0)
        found += f"@@{name}\n{text}\n@={status}\n"
    return found


def answers(
    system: Mapping[str, str | tuple[str, int]], ports: Mapping[str, str | tuple[str, int]], hw: Hardware = HW
) -> dict[str, str]:
    return dict(zip(PLATFORM.questions(hw), (frame(system), frame(ports)), strict=True))


BLANK_SYSTEM: dict[str, str | tuple[str, int]] = {
    "kernel": "6.1.0-18-amd64",
    "os": 'ID=debian\nVERSION_ID="12"\n',
    "agents": ("", 1),
    "ours": "",
    "sysctl": "net.ipv4.tcp_ecn = 2\nnet.ipv4.tcp_rmem = 4096\t131072\t33554432\n"
    "sysctl: cannot stat /proc/sys/net/core/nope: No such file or directory",
    "later": "",
    "modules": "ib_core\nib_uverbs",
    "options": "ib_core.recv_queue_size=512\nib_core.send_queue_size=128\nmlx5_core.prof_sel=2",
}
BLANK_PORTS: dict[str, str | tuple[str, int]] = {
    "link eth0": '[{"ifname":"eth0","mtu":1500}]',
    "link eth1": '[{"ifname":"eth1","mtu":1500,"linkinfo":{"info_kind":"veth"}}]',
    "speed eth0": "400000",
    "speed eth1": "10000",
    "ours": "",
    "netplan": "",
    "networkmanager": ("", 3),
}


def observe(
    system: Mapping[str, str | tuple[str, int]] | None = None,
    ports: Mapping[str, str | tuple[str, int]] | None = None,
    hw: Hardware = HW,
) -> Observation:
    return PLATFORM.parse(
        answers({**BLANK_SYSTEM, **(system or {})}, {**BLANK_PORTS, **(ports or {})}, hw), hw
    )


def change(
    wanted: NodeState,
    system: Mapping[str, str | tuple[str, int]] | None = None,
    ports: Mapping[str, str | tuple[str, int]] | None = None,
    hw: Hardware = HW,
) -> Change:
    return PLATFORM.change(observe(system, ports, hw), PLATFORM.realize(wanted, hw).state, hw)


def puts(found: Change) -> dict[str, str | None]:
    return {step.path: step.text for step in found.commit if isinstance(step, Put)}


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
    realized = PLATFORM.realize(state(**{port: wish}), hw)
    found = realized.state.port(port)
    assert found is not None and found.settings.mtu.ip == used
    assert [(f.severity, f.setting) for f in realized.faults] == (
        [(Severity.NOTE, "mtu.ip")] if noted else []
    )


def test_realize_spells_values_as_the_kernel_shows_them() -> None:
    wish = SystemState(
        sysctl=(("net.ipv4.tcp_rmem", "4096 \t87380  4194304"),),
        modules=(("rdma-cm", True), ("siw", False)),
        module_options=(("irdma.roce_ena", "Y"), ("mlx5_core.prof_sel", "2")),
    )
    realized = PLATFORM.realize(NodeState(wish), HW)
    system = realized.state.system
    assert system.sysctl == (("net.ipv4.tcp_rmem", "4096 87380 4194304"),)
    assert system.modules == (("rdma_cm", True), ("siw", UNMANAGED))
    assert system.module_options == (("irdma.roce_ena", "1"), ("mlx5_core.prof_sel", "2"))
    assert [(f.severity, f.setting) for f in realized.faults] == [(Severity.NOTE, "modules.siw")]


TEXTS = st.text("abc01 YN\t", min_size=1, max_size=6)
MTUS = st.sampled_from([UNMANAGED, UNKNOWN, NOT_APPLICABLE, 68, 1500, 4192, 9000, 9978, 12000, MTU_MAX])


@given(
    MTUS,
    MTUS,
    st.dictionaries(st.sampled_from(["net.ipv4.tcp_ecn", "vm.swappiness"]), TEXTS),
    st.dictionaries(st.sampled_from(["rdma-cm", "ib_core"]), st.booleans()),
    st.sampled_from(["", "9216"]),
)
def test_realize_twice_is_realize_once(
    first: Any, second: Any, sysctl: dict[str, str], modules: dict[str, bool], ceiling: str
) -> None:
    hw = replace(HW, options=(("mtu_max", ceiling),) if ceiling else ())
    system = SystemState(tuple(sorted(sysctl.items())), tuple(sorted(modules.items())))
    once = PLATFORM.realize(state(system, eth0=first, eth1=second), hw)
    twice = PLATFORM.realize(once.state, hw)
    assert twice.state == once.state
    assert twice.faults == ()


# ---------------------------------------------------------------- questions


def test_questions_are_two_quiet_lines_that_a_shell_understands() -> None:
    found = PLATFORM.questions(HW)
    assert len(found) == 2
    for question in found:
        assert "\n" not in question and len(question) < 4000
        assert question.startswith("sh -c '") and question.endswith("'") and question.count("'") == 4
    found = tuple(question.replace("/etc/modprobe.d", "") for question in found)
    writing = ("sysctl -w", "ip link set", "systemctl enable", "modprobe ", "rm ", "tee ", "sed -i")
    assert [word for word in writing for question in found if word in question] == []


# ---------------------------------------------------------------- parse


def test_a_blank_host() -> None:
    found = observe()
    system = found.running.system
    assert dict(system.sysctl)["net.ipv4.tcp_ecn"] == "2"
    assert dict(system.sysctl)["net.ipv4.tcp_rmem"] == "4096 131072 33554432"
    assert dict(system.sysctl)["net.core.somaxconn"] is UNKNOWN
    assert dict(system.modules)["ib_uverbs"] is True and dict(system.modules)["rdma_ucm"] is False
    assert dict(system.module_options) == {
        "ib_core.recv_queue_size": "512",
        "ib_core.send_queue_size": "128",
        "mlx5_core.prof_sel": "2",
    }
    assert dict(system.limits)["memlock"] == "" and dict(system.environment)["NCCL_IB_TC"] == ""
    assert system.owners == ()
    first, second = found.running.ports
    assert first.settings.mtu == Mtu(1500, NOT_APPLICABLE, NOT_APPLICABLE)
    assert first.speed_gbps == 400
    assert second.speed_gbps is UNMANAGED
    assert found.stored is not None and found.stored.ports[0].settings.mtu.ip == 1500
    assert dict(found.stored.system.sysctl)["net.ipv4.tcp_ecn"] == ""
    assert dict(found.facts)["version"] == "debian 12" and dict(found.facts)["kernel"] == "6.1.0-18-amd64"
    assert found.operational and found.pending is None and found.notes == ()


@pytest.mark.parametrize("text", ["", "nonsense", "@@link eth0\nhalf an answer", "@=0\n@@\n@=1\n@@a\n@=x"])
def test_what_is_not_understood_is_unknown(text: str) -> None:
    found = PLATFORM.parse(dict.fromkeys(PLATFORM.questions(HW), text), HW)
    assert found.notes
    system = found.running.system
    values = [
        *(value for _, value in (*system.sysctl, *system.modules, *system.limits, *system.environment)),
        *(port.settings.mtu.ip for port in found.running.ports),
        system.owners,
    ]
    assert set(values) == {UNKNOWN}
    assert found.stored is not None and {value for _, value in found.stored.system.sysctl} == {UNKNOWN}


def test_our_files_are_the_stored_layer() -> None:
    ours = (
        f"==/etc/sysctl.d/90-fabric.conf\n{MARKED}\nnet.ipv4.tcp_ecn = 1\nnet.ipv4.tcp_keepalive_time = 500\n"
        f"==/etc/modules-load.d/90-fabric.conf\n{MARKED}\nrdma_ucm\n"
        f"==/etc/modprobe.d/90-fabric.conf\n{MARKED}\noptions mlx5_core prof_sel=3 debug_mask=0\n"
        f"==/etc/security/limits.d/90-fabric.conf\n{MARKED}\n"
        "* soft memlock unlimited\n* hard memlock unlimited\n"
        f"==/etc/nccl.conf\n{MARKED}\nNCCL_IB_TC=106\nNCCL_IB_HCA==mlx5_0,mlx5_1\n"
        f"==/etc/profile.d/fabric-rdma.sh\n{MARKED}\nexport UCX_TLS='rc,sm x'\n"
    )
    later = "==/etc/sysctl.d/99-site.conf\nnet.ipv4.tcp_ecn = 0\n"
    found = observe({"ours": ours, "later": later})
    assert found.stored is not None
    kept = found.stored.system
    assert dict(kept.sysctl)["net.ipv4.tcp_ecn"] == "0"
    assert dict(kept.sysctl)["net.ipv4.tcp_keepalive_time"] == "500"
    assert dict(kept.modules)["rdma_ucm"] is True and dict(kept.modules)["ib_uverbs"] is False
    assert dict(kept.module_options) == {"mlx5_core.prof_sel": "3", "mlx5_core.debug_mask": "0"}
    assert dict(kept.limits)["memlock"] == "unlimited"
    assert dict(kept.environment)["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"
    assert dict(kept.environment)["UCX_TLS"] == "rc,sm x"
    assert found.pending is not None
    assert dict(found.pending.system.module_options)["mlx5_core.prof_sel"] == "3"
    assert "/etc/sysctl.d/99-site.conf sets net.ipv4.tcp_ecn to 0 after our file" in found.notes
    # A value that a later file sets is not ours to repair.
    wish = SystemState(sysctl=(("net.ipv4.tcp_ecn", "2"),))
    assert PLATFORM.change(found, NodeState(wish), HW).empty


@pytest.mark.parametrize("case", load("netplan.yaml"), ids=lambda case: str(case["name"]))
def test_netplan(case: dict[str, Any]) -> None:
    judge_manager(case, {"netplan": case["text"]})


@pytest.mark.parametrize("case", load("managers.yaml"), ids=lambda case: str(case["name"]))
def test_managers(case: dict[str, Any]) -> None:
    judge_manager(case, case["sections"])


def judge_manager(case: dict[str, Any], given_sections: Mapping[str, str]) -> None:
    parts = {name: Section(text, 0, True) for name, text in given_sections.items()}
    found = _linux_mtu.persistence(parts, HW)["eth0"]
    assert found.manager == case["manager"]
    if "problem" in case:
        assert case["problem"] in found.problem and found.stored is UNKNOWN and not found.writer
        return
    assert found.problem == "" and found.writer
    assert (found.stored, found.place, found.foreign) == (
        case["stored"],
        case.get("place", ""),
        case.get("foreign", ""),
    )
    assert _linux_mtu.Persistence.of(found.text()) == replace(found, stored=UNKNOWN)


@pytest.mark.parametrize(("text", "mtu"), load("links.yaml"))
def test_links(text: str, mtu: int | None) -> None:
    found = observe(ports={"link eth0": text})
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
                assert _linux_read.plain_link(blocks[0])["mtu"] == expected["ip_mtu"], (name, port)
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


def test_neighbours_of_lldpd() -> None:
    text = (
        "-----\nLLDP neighbors:\n-----\n"
        "Interface:    eth0, via: LLDP, RID: 1, Time: 0 day, 00:01:00\n  Chassis:     \n"
        "    ChassisID:    mac 02:00:00:00:00:01\n    SysName:      leaf1\n  Port:        \n"
        "    PortID:       ifname Ethernet1/1\n    PortDescr:    to gpu\n"
        "Interface:    eth1, via: LLDP, RID: 2\n  Chassis:\n    SysName:      leaf2\n  Port:\n"
        "    PortID:       mac 02:00:00:00:00:02\n    PortDescr:    Ethernet2/1\n"
        "Interface:    mgmt0, via: LLDP, RID: 3\n  Chassis:\n    SysName:      oob\n"
    )
    found = observe({"lldp": text})
    assert found.neighbours == (("eth0", "leaf1", "Ethernet1/1"), ("eth1", "leaf2", "Ethernet2/1"))
    assert observe({"lldp": ("sh: 1: lldpcli: not found", 127)}).neighbours == ()


def test_a_second_owner_is_named() -> None:
    found = observe({"agents": "lldpad\nnic-configurati\n"})
    assert found.running.system.owners == ("lldpad", "nic-configuration-daemon")
    assert "lldpad runs and may write NIC settings" in found.notes


def test_evidence_follows_what_was_read() -> None:
    assert observe().evidence == observe().evidence
    assert observe().evidence != observe({"sysctl": "net.ipv4.tcp_ecn = 1"}).evidence


# ---------------------------------------------------------------- change

WISH = SystemState(
    sysctl=(("net.ipv4.tcp_ecn", "1"), ("net.ipv4.tcp_keepalive_time", "500")),
    modules=(("ib_uverbs", True), ("rdma_ucm", True)),
    module_options=(("mlx5_core.prof_sel", "3"),),
    limits=(("memlock", "unlimited"),),
    environment=(("NCCL_IB_TC", "106"), ("UCX_TLS", "rc x")),
)


def test_change_of_a_blank_host() -> None:
    found = change(state(WISH, eth0=9000, eth1=9000))
    assert found.lines == (
        "/etc/sysctl.d/90-fabric.conf: net.ipv4.tcp_ecn = 1",
        "/etc/sysctl.d/90-fabric.conf: net.ipv4.tcp_keepalive_time = 500",
        "/etc/modules-load.d/90-fabric.conf: ib_uverbs",
        "/etc/modules-load.d/90-fabric.conf: rdma_ucm",
        "/etc/modprobe.d/90-fabric.conf: options mlx5_core prof_sel=3",
        "/etc/security/limits.d/90-fabric.conf: * soft memlock unlimited",
        "/etc/security/limits.d/90-fabric.conf: * hard memlock unlimited",
        "/etc/nccl.conf: NCCL_IB_TC=106",
        "/etc/profile.d/fabric-rdma.sh: export UCX_TLS='rc x'",
        "sysctl -w net.ipv4.tcp_ecn=1",
        "sysctl -w net.ipv4.tcp_keepalive_time=500",
        "modprobe rdma_ucm",
        "/etc/fabric/mtu.conf: eth0 9000",
        "/etc/fabric/mtu.conf: eth1 9000",
        "ip link set dev eth0 mtu 9000",
        "ip link set dev eth1 mtu 9000",
    )
    assert found.undo == (
        Call(("ip", "link", "set", "dev", "eth1", "mtu", "1500")),
        Call(("ip", "link", "set", "dev", "eth0", "mtu", "1500")),
        Call(("sysctl", "-w", "net.ipv4.tcp_ecn=2")),
    )
    assert found.undo_kind == "dead-man" and found.level == Disturbs.LOSS
    assert all(
        text is None or "managed by fabric" in text.split("\n", 2)[0] + text.split("\n", 2)[1]
        for text in puts(found).values()
    )
    calls = [step.argv for step in found.commit if isinstance(step, Call)]
    assert calls.index(("modprobe", "rdma_ucm")) < calls.index(("sysctl", "-w", "net.ipv4.tcp_ecn=1"))


def test_the_full_rendering_holds_the_same_files() -> None:
    wanted = state(WISH, eth0=9000, eth1=9000)
    written = puts(change(wanted))
    context = PLATFORM.context(wanted, HW)
    rendered = {
        f"/{item.path}": render(item.template, item.context or context)
        for item in PLATFORM.artifacts(wanted, HW)
    }
    assert rendered == written


def test_nothing_wanted_nothing_written() -> None:
    assert PLATFORM.artifacts(state(eth0=UNMANAGED), HW) == ()
    found = change(state(eth0=UNMANAGED))
    assert found.empty and found.lines == () and found.undo == () and found.differences == ()


def test_live_right_but_not_stored_is_saved() -> None:
    found = change(state(SystemState(sysctl=(("net.ipv4.tcp_ecn", "2"),)), eth0=1500))
    assert list(puts(found)) == ["/etc/sysctl.d/90-fabric.conf"]
    assert not any(isinstance(step, Call) and step.argv[0] == "sysctl" for step in found.commit)
    assert found.level == Disturbs.NOTHING


def test_stored_right_but_live_wrong_is_set() -> None:
    ours = f"==/etc/sysctl.d/90-fabric.conf\n{MARKED}\nnet.ipv4.tcp_ecn = 1\n"
    found = change(NodeState(SystemState(sysctl=(("net.ipv4.tcp_ecn", "1"),))), {"ours": ours})
    assert [step.argv for step in found.commit if isinstance(step, Call)] == [
        ("sysctl", "-w", "net.ipv4.tcp_ecn=1")
    ]


def test_what_could_not_be_read_is_not_written() -> None:
    wish = SystemState(sysctl=(("net.core.somaxconn", "4096"),))
    found = change(state(wish, eth0=9000), ports={"link eth0": ""})
    assert found.empty
    assert {item.path for item in found.blocked} == {
        "system.sysctl.net.core.somaxconn",
        "ports.eth0.mtu.ip",
    }


def test_settings_in_our_files_that_nobody_asks_for_stay() -> None:
    ours = f"==/etc/sysctl.d/90-fabric.conf\n{MARKED}\nnet.ipv4.ip_forward = 1\n"
    found = change(NodeState(SystemState(sysctl=(("net.ipv4.tcp_ecn", "1"),))), {"ours": ours})
    text = puts(found)["/etc/sysctl.d/90-fabric.conf"]
    assert text is not None and text.splitlines()[1:] == ["net.ipv4.ip_forward = 1", "net.ipv4.tcp_ecn = 1"]


def test_a_foreign_file_at_our_path_blocks_its_settings() -> None:
    found = change(
        NodeState(SystemState(environment=(("NCCL_IB_TC", "106"),), limits=(("memlock", "unlimited"),))),
        {"ours": "==/etc/nccl.conf\nNCCL_DEBUG=INFO\n"},
    )
    assert list(puts(found)) == ["/etc/security/limits.d/90-fabric.conf"]
    assert [item.path for item in found.blocked] == ["system.environment.NCCL_IB_TC"]


def test_back_to_nothing_removes_the_file() -> None:
    ours = f"==/etc/nccl.conf\n{MARKED}\nNCCL_IB_TC=106\n"
    found = change(NodeState(SystemState(environment=(("NCCL_IB_TC", ""),))), {"ours": ours})
    assert puts(found) == {"/etc/nccl.conf": None}
    assert found.lines == ("rm /etc/nccl.conf",)


def test_a_module_is_never_unloaded() -> None:
    wish = NodeState(SystemState(modules=(("ib_uverbs", False),)))
    assert PLATFORM.change(observe(), wish, HW).empty


@pytest.mark.parametrize(
    ("sections_given", "path", "text"),
    [
        (
            {"netplan": "==/etc/netplan/50.yaml\nnetwork: {ethernets: {eth0: {}, eth1: {}}}"},
            "/etc/netplan/90-fabric.yaml",
            "network:\n  version: 2\n  ethernets:\n    eth0:\n      mtu: 9000\n    eth1:\n      mtu: 9000\n",
        ),
        (
            {"networkd": "==/etc/systemd/network/20-r.network\n[Match]\nName=eth0 eth1"},
            "/etc/systemd/network/20-r.network.d/90-fabric.conf",
            "[Link]\nMTUBytes=9000\n",
        ),
        (
            {"networkmanager": "eth0 auto\neth1 auto"},
            "/etc/NetworkManager/conf.d/90-fabric.conf",
            "[connection-fabric-eth0]\nmatch-device=interface-name:eth0\nethernet.mtu=9000\n"
            "[connection-fabric-eth1]\nmatch-device=interface-name:eth1\nethernet.mtu=9000\n",
        ),
        ({}, "/etc/fabric/mtu.conf", "eth0 9000\neth1 9000\n"),
    ],
)
def test_the_mtu_goes_where_its_manager_looks(sections_given: dict[str, str], path: str, text: str) -> None:
    found = change(state(eth0=9000, eth1=9000), ports=sections_given)
    written = puts(found)[path]
    assert written is not None and written.split("\n", 1)[1] == text
    assert "ip link set dev eth0 mtu 9000" in found.lines
    if path.endswith(".yaml"):
        assert yaml.safe_load(written)["network"]["ethernets"]["eth1"] == {"mtu": 9000}
        assert Call(("netplan", "generate")) in found.commit
        assert next(step for step in found.commit if isinstance(step, Put)).mode == 0o600


@pytest.mark.parametrize(
    "sections_given",
    [
        {"networkmanager": "eth0 1500"},
        {"ifupdown": "==/etc/network/interfaces\niface eth0 inet static\nmtu 1500"},
        {"netplan": "==/etc/netplan/50.yaml\ngrep: /etc/netplan/50.yaml: Permission denied"},
        {
            "networkd": "==/etc/systemd/network/1.network\n[Match]\nName=eth0",
            "ifupdown": "==/etc/network/interfaces\niface eth0 inet dhcp",
        },
    ],
)
def test_an_unclear_or_foreign_owner_blocks_the_mtu(sections_given: dict[str, str]) -> None:
    found = change(state(eth0=9000), ports=sections_given)
    assert found.empty
    assert [item.path for item in found.blocked] == ["ports.eth0.mtu.ip"]


def test_ports_of_one_networkd_file_must_agree() -> None:
    one = {"networkd": "==/etc/systemd/network/20-r.network\n[Match]\nName=eth0 eth1"}
    found = change(state(eth0=9000, eth1=4200), ports=one)
    assert found.empty and len(found.blocked) == 2


def test_the_inventory_may_name_the_manager() -> None:
    hw = replace(HW, options=(("mtu_manager", "netplan"),))
    found = change(state(eth0=9000), hw=hw)
    assert "/etc/netplan/90-fabric.yaml" in puts(found)
    context = PLATFORM.context(state(eth0=9000), hw)
    assert [item.path for item in PLATFORM.artifacts(state(eth0=9000), hw)] == ["etc/netplan/90-fabric.yaml"]
    assert context.netplan == (("ethernets", (("eth0", 9000),)),)


def test_after_the_change_a_read_back_shows_what_was_realized() -> None:
    """Our files and the live values, as the questions would print them, are equal to the wish."""
    wanted = PLATFORM.realize(state(WISH, eth0=9000), HW).state
    written = {path: text or "" for path, text in puts(change(wanted)).items()}
    ours = "".join(f"=={path}\n{text}\n" for path, text in written.items())
    link = "/etc/systemd/system/sys-subsystem-net-devices-eth0.device.wants/fabric-mtu@eth0.service"
    found = observe(
        {
            "ours": ours,
            "sysctl": "net.ipv4.tcp_ecn = 1\nnet.ipv4.tcp_keepalive_time = 500",
            "modules": "ib_uverbs\nrdma_ucm",
            "options": "mlx5_core.prof_sel=3",
        },
        {"link eth0": '[{"mtu":9000}]', "ours": ours, "wants": link},
    )
    assert differences(wanted, found.running) == ()
    assert differences(wanted, found.stored) == ()
    assert PLATFORM.change(found, wanted, HW).empty


# ---------------------------------------------------------------- small things


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("net.ipv4.tcp_ecn", "net.ipv4.tcp_ecn"),
        ("net/ipv4/tcp_ecn", "net.ipv4.tcp_ecn"),
        ("net.ipv4.conf.eth0/100.arp_ignore", "net.ipv4.conf.eth0/100.arp_ignore"),
        ("net/ipv4/conf/eth0.100/arp_ignore", "net.ipv4.conf.eth0/100.arp_ignore"),
    ],
)
def test_both_spellings_of_a_sysctl_are_one_key(written: str, key: str) -> None:
    section = Section(f"==/etc/sysctl.d/99-x.conf\n-{written}=1", 0, True)
    assert _linux_read.overrides({"later": section}) == {key: ("/etc/sysctl.d/99-x.conf", "1")}


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("ens1f0np0", "ens1f0np0"),
        ("bond-rail0", "bond\\x2drail0"),
        ("eth0.100", "eth0.100"),
        (".x", "\\x2ex"),
    ],
)
def test_port_names_in_unit_names(name: str, unit: str) -> None:
    """As systemd-escape(1) writes them."""
    assert unit_name(name) == unit


def test_sections_survive_carriage_returns() -> None:
    found = sections("login banner\r\n@@a\r\n1\r\n\r\n@=0\r\n@@b\r\nx\r\n@=127\r\n")
    assert found["a"] == Section("1", 0, True) and found["b"].status == 127
