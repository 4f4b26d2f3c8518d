"""Linux as a base: node-wide settings, realized, read and changed. Ports: test_platform_linux_mtu.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _linux_boot as boot
from rdma_fabric.platforms._contract import Call, Change, Disturbs, Put
from rdma_fabric.platforms._host_files import Section, sections, unit_name
from rdma_fabric.platforms.linux import PLATFORM
from rdma_fabric.state import (
    UNKNOWN,
    UNMANAGED,
    NodeState,
    SystemState,
    differences,
    waiting,
)
from rdma_fabric.templating import render
from tests.support.linux_box import Box

MARKED = "# managed by fabric"
SYSCTL = "/etc/sysctl.d/zz-fabric.conf"
MODULES = "/etc/modules-load.d/90-fabric.conf"
MODPROBE = "/etc/modprobe.d/zz-fabric.conf"
LIMITS = "/etc/security/limits.d/zz-fabric.conf"
SLURMD = "/etc/systemd/system/slurmd.service.d/zz-fabric.conf"

WISH = SystemState(
    sysctl=(
        ("net.ipv4.conf.bond0/100.arp_ignore", "1"),
        ("net.ipv4.tcp_ecn", "1"),
        ("net.ipv4.tcp_rmem", "4096 87380 4194304"),
    ),
    modules=(("ib_uverbs", True), ("rdma_ucm", True)),
    module_options=(("mlx5_core.prof_sel", "3"),),
    limits=(("memlock", "unlimited"), ("slurmd.memlock", "unlimited")),
    environment=(("NCCL_IB_TC", "106"), ("UCX_TLS", "rc x")),
)
"""Every kind of node-wide setting: a VLAN's sysctl, one of several words, a service's limit."""
LIVE = {
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.tcp_rmem": "4096\t131072\t33554432",
    "net.ipv4.conf.bond0/100.arp_ignore": "0",
}
BLANK = Box(sysctl=LIVE, options={"mlx5_core.prof_sel": "2"}, modules=("ib_core", "ib_uverbs", "mlx5_core"))


def hardware(system: SystemState = WISH, **options: str) -> Hardware:
    """A host with one port whose intent names these settings."""
    groups = ("sysctl", "modules", "module_options", "limits", "environment")
    asked = " ".join(f"{group}.{name}" for group in groups for name, _ in getattr(system, group))
    found = {**options, **({"asked": asked} if asked else {})}
    return Hardware(
        ("linux", "nic_mlx5"),
        ports=(PortHardware("eth0", nic="mlx5"),),
        options=tuple(sorted(found.items())),
    )


HW = hardware()


def change(system: SystemState, box: Box = BLANK, hw: Hardware | None = None) -> Change:
    hw = hw or hardware(system)
    return PLATFORM.change(box.observe(hw), PLATFORM.realize(NodeState(system), hw).state, hw)


def puts(found: Change) -> dict[str, str | None]:
    return {step.path: step.text for step in found.commit if isinstance(step, Put)}


def calls(found: Change) -> list[tuple[str, ...]]:
    return [step.argv for step in found.commit if isinstance(step, Call)]


def with_file(path: str, *rows: str, box: Box = BLANK, marked: bool = True) -> Box:
    text = "\n".join([*([MARKED] if marked else []), *rows, ""])
    return replace(box, files={**box.files, path: text})


def sysctl(**values: str) -> SystemState:
    """net__ipv4__tcp_ecn="1" for net.ipv4.tcp_ecn."""
    return SystemState(sysctl=tuple(sorted((key.replace("__", "."), value) for key, value in values.items())))


ECN = sysctl(net__ipv4__tcp_ecn="1")


# ---------------------------------------------------------------- realize


def test_realize_spells_values_as_the_kernel_shows_them() -> None:
    wish = SystemState(
        sysctl=(("net/ipv4/conf/eth0.5/arp_ignore", "0x1"), ("net.ipv4.tcp_rmem", "4096 \t87380  4194304")),
        modules=(("rdma-cm", True), ("siw", False)),
        module_options=(("irdma.roce_ena", "Y"), ("nvme-rdma.x", "0x10"), ("mlx5_core.prof_sel", "2")),
        limits=(("memlock", "infinity"), ("nofile", "1024/-1"), ("core", "7/7"), ("slurmd.memlock", "64")),
    )
    realized = PLATFORM.realize(NodeState(wish), HW)
    system = realized.state.system
    assert system.sysctl == (
        ("net.ipv4.conf.eth0/5.arp_ignore", "1"),
        ("net.ipv4.tcp_rmem", "4096 87380 4194304"),
    )
    assert system.modules == (("rdma_cm", True), ("siw", UNMANAGED))
    assert system.module_options == (
        ("irdma.roce_ena", "1"),
        ("mlx5_core.prof_sel", "2"),
        ("nvme_rdma.x", "16"),
    )
    assert system.limits == (
        ("core", "7"),
        ("memlock", "unlimited"),
        ("nofile", "1024/unlimited"),
        ("slurmd.memlock", "64"),
    )
    assert [(f.severity, f.setting) for f in realized.faults] == [(Severity.NOTE, "modules.siw")]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("slurmd.rtprio", "9", "limits of services are memlock, nofile, nproc, stack, core"),
        ("slurmd.memlock", "64M", "is a number or unlimited"),
    ],
)
def test_limits_that_a_service_cannot_have(name: str, value: str, reason: str) -> None:
    (fault,) = PLATFORM.realize(NodeState(SystemState(limits=((name, value),))), HW).faults
    assert (fault.severity, fault.setting) == (Severity.ERROR, f"limits.{name}")
    assert reason in fault.reason


TEXTS = st.text("abc01 YN\t/", max_size=6)
NAMES = st.sampled_from(["net.ipv4.tcp_ecn", "net/ipv4/conf/a.b/rp_filter", "vm.swappiness"])
OPTIONS = st.sampled_from(["rdma-cm.x", "ib_core.y"])
LIMIT_NAMES = st.sampled_from(["memlock", "slurmd.memlock", "slurmd.rtprio"])


@given(
    st.dictionaries(NAMES, TEXTS),
    st.dictionaries(st.sampled_from(["rdma-cm", "ib_core"]), st.sampled_from([True, False, UNKNOWN])),
    st.dictionaries(OPTIONS, TEXTS),
    st.dictionaries(LIMIT_NAMES, st.sampled_from(["", "64", "infinity", "-1", "1/2", "a b", UNKNOWN])),
)
def test_realize_twice_is_realize_once(
    keys: dict[str, str], modules: dict[str, Any], options: dict[str, str], limits: dict[str, Any]
) -> None:
    system = SystemState(
        tuple(sorted(keys.items())),
        tuple(sorted(modules.items())),
        tuple(sorted(options.items())),
        tuple(sorted(limits.items())),
    )
    once = PLATFORM.realize(NodeState(system), HW)
    twice = PLATFORM.realize(once.state, HW)
    assert twice.state == once.state
    assert twice.faults == ()


# ---------------------------------------------------------------- questions


def test_questions_are_quiet_lines_that_a_terminal_takes() -> None:
    """A line of 4096 characters is the most that a terminal's line buffer holds."""
    many = tuple(PortHardware(f"enp{number:03d}s0f0np0", nic="mlx5") for number in range(64))
    keys = tuple((f"net.ipv4.conf.{port.name}.arp_ignore", "1") for port in many)
    hw = replace(hardware(SystemState(sysctl=keys)), ports=many)
    for asked in (HW, hw):
        for question in PLATFORM.questions(asked):
            assert "\n" not in question and len(question) < 4000
            assert question.startswith("sh -c '") and question.endswith("'") and question.count("'") == 4
            writing = ("sysctl -w", "ip link set", "systemctl enable", "modprobe ", "rm ", "tee ", "sed -i")
            assert [word for word in writing if word in question.replace("modprobe.d ", "")] == []
    joined = " ".join(PLATFORM.questions(hw))
    assert all(key in joined for key, _ in keys) and all(port.name in joined for port in many)


def test_answers_of_several_questions_are_one() -> None:
    keys = tuple((f"net.ipv4.conf.port{number:03d}.arp_ignore", "1") for number in range(90))
    hw = hardware(SystemState(sysctl=keys))
    _, second, *more = PLATFORM.questions(hw)
    assert len(more) > 2
    answers = {
        second: "@@sysctl\nnet.ipv4.conf.port000.arp_ignore = 1\n@=0\n",
        more[0]: "@@sysctl net.ipv4.conf.port070.arp_ignore\nnet.ipv4.conf.port089.arp_ignore = 1\n@=0\n",
    }
    seen = dict(PLATFORM.parse(answers, hw).running.system.sysctl)
    assert seen["net.ipv4.conf.port000.arp_ignore"] == seen["net.ipv4.conf.port089.arp_ignore"] == "1"


# ---------------------------------------------------------------- parse


def test_a_blank_host() -> None:
    found = BLANK.observe(HW)
    system = found.running.system
    assert dict(system.sysctl)["net.ipv4.tcp_rmem"] == "4096 131072 33554432"
    assert dict(system.sysctl)["net.core.somaxconn"] is UNKNOWN
    assert dict(system.modules)["ib_uverbs"] is True and dict(system.modules)["rdma_ucm"] is False
    assert system.module_options == (("mlx5_core.prof_sel", "2"),)
    assert dict(system.limits)["memlock"] == "" and dict(system.limits)["slurmd.memlock"] == ""
    assert dict(system.environment)["NCCL_IB_TC"] == ""
    assert system.owners == ()
    assert found.stored is not None
    assert dict(found.stored.system.sysctl)["net.ipv4.tcp_ecn"] == "not set"
    assert dict(found.facts)["version"] == "debian 12" and dict(found.facts)["kernel"] == "6.1.0-18-amd64"
    assert found.operational and found.pending is None and found.notes == ()


@pytest.mark.parametrize("text", ["", "nonsense", "@@link eth0\nhalf an answer", "@=0\n@@\n@=1\n@@a\n@=x"])
def test_what_is_not_understood_is_unknown(text: str) -> None:
    found = PLATFORM.parse(dict.fromkeys(PLATFORM.questions(HW), text), HW)
    assert found.notes
    for layer in (found.running, found.stored):
        assert layer is not None
        system = layer.system
        rows = (*system.sysctl, *system.modules, *system.module_options, *system.limits, *system.environment)
        assert {value for _, value in rows} == {UNKNOWN}
        assert {port.settings.mtu.ip for port in layer.ports} == {UNKNOWN}
    assert found.running.system.owners is UNKNOWN


@pytest.mark.parametrize(
    ("part", "group"),
    [
        ("sysctl.d", "sysctl"),
        ("modules-load.d", "modules"),
        ("modprobe.d", "module_options"),
        ("limits.d", "limits"),
        ("files", "environment"),
        ("units", "limits"),
    ],
)
def test_a_part_that_is_missing_makes_its_stored_values_unknown(part: str, group: str) -> None:
    """Also one file that may not be read: nobody knows what it sets."""
    refused = "==/etc/x/50.conf\ngrep: /etc/x/50.conf: Permission denied\n"
    for given_part in (None, refused) if part != "files" else (None,):
        found = replace(BLANK, parts={part: given_part}).observe(HW)
        assert found.stored is not None
        values = dict(getattr(found.stored.system, group))
        wanted = dict(getattr(WISH, group))
        names = [name for name in wanted if part != "units" or "." in name]
        assert {values[name] for name in names if part != "limits.d" or "." not in name} == {UNKNOWN}
        found_change = PLATFORM.change(found, PLATFORM.realize(NodeState(WISH), HW).state, HW)
        blocked = {item.path.removeprefix("system.") for item in found_change.blocked}
        assert blocked >= {f"{group}.{name}" for name in names if part != "limits.d" or "." not in name}


def test_evidence_follows_what_was_read() -> None:
    assert BLANK.observe(HW).evidence == BLANK.observe(HW).evidence
    other = replace(BLANK, sysctl={**LIVE, "net.ipv4.tcp_ecn": "1"})
    assert other.observe(HW).evidence != BLANK.observe(HW).evidence


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
    hw = replace(HW, ports=(*HW.ports, PortHardware("eth1", nic="mlx5")))
    found = replace(BLANK, parts={"lldp": text}).observe(hw)
    assert found.neighbours == (("eth0", "leaf1", "Ethernet1/1"), ("eth1", "leaf2", "Ethernet2/1"))
    assert replace(BLANK, parts={"lldp": ("sh: 1: lldpcli: not found", 127)}).observe(hw).neighbours == ()


def test_another_agent_is_named() -> None:
    found = replace(BLANK, parts={"agents": "lldpad\nnic-configurati\n"}).observe(HW)
    assert found.running.system.owners == ("lldpad", "nic-configuration-daemon")
    assert "lldpad runs and may write NIC settings" in found.notes


def test_names_that_nobody_listed_are_read_because_the_intent_names_them() -> None:
    """Also before the first apply; a name without a value is not unknown."""
    wish = SystemState(
        sysctl=(("net.ipv4.tcp_keepalive_time", "500"),),
        modules=(("some-module", True),),
        module_options=(("some_module.width", "4"),),
        limits=(("rtprio", "9"), ("kubelet.core", "0")),
        environment=(("NCCL_ALGO", "Ring"),),
    )
    hw = hardware(wish)
    box = replace(BLANK, sysctl={"net.ipv4.tcp_keepalive_time": "7200"})
    seen = box.observe(hw)
    found = differences(PLATFORM.realize(NodeState(wish), hw).state, seen.running)
    assert not [item for item in found if item.unknown]
    assert PLATFORM.change(seen, PLATFORM.realize(NodeState(wish), hw).state, hw).blocked == ()


# ---------------------------------------------------------------- order of files


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("net.ipv4.tcp_ecn", "net.ipv4.tcp_ecn"),
        ("net/ipv4/tcp_ecn", "net.ipv4.tcp_ecn"),
        ("net.ipv4.conf.eth0/100.arp_ignore", "net.ipv4.conf.eth0/100.arp_ignore"),
        ("net/ipv4/conf/eth0.100/arp_ignore", "net.ipv4.conf.eth0/100.arp_ignore"),
        ("-net/ipv4/tcp_ecn", "net.ipv4.tcp_ecn"),
    ],
)
def test_both_spellings_of_a_sysctl_are_one_key(written: str, key: str) -> None:
    section = Section(f"==/etc/sysctl.d/99-x.conf\n3:{written} = 1", 0, True)
    found = boot.sysctls(boot.lines(section))
    assert found.explicit[key].place == "/etc/sysctl.d/99-x.conf:3"


def test_the_last_file_by_name_counts_whatever_its_folder() -> None:
    files = {
        "/usr/lib/sysctl.d/99-z.conf": "a.b = 1\n",
        "/etc/sysctl.d/50-a.conf": "a.b = 2\nc.d = 3\n",
        "/run/sysctl.d/60-hidden.conf": "a.b = 4\n",
        "/usr/lib/sysctl.d/60-hidden.conf": "c.d = 9\n",
    }
    section = Box(files=files).sections(HW)["sysctl.d"]
    assert isinstance(section, str)
    found = boot.sysctls(boot.lines(Section(section, 0, True)))
    assert (found.explicit["a.b"].value, found.explicit["a.b"].path) == ("1", "/usr/lib/sysctl.d/99-z.conf")
    assert found.explicit["c.d"].value == "3"


def test_an_explicit_line_goes_before_every_pattern() -> None:
    text = (
        "==/etc/sysctl.d/10-x.conf\n1:net.ipv4.conf.eth0.rp_filter = 1\n"
        "==/etc/sysctl.d/20-x.conf\n1:net.ipv4.conf.*.rp_filter = 2\n2:-net.ipv4.conf.all.rp_filter\n"
    )
    found = boot.sysctls(boot.lines(Section(text, 0, True)))
    values = {
        name: one.value if (one := found.get(f"net.ipv4.conf.{name}.rp_filter")) else None
        for name in ("eth0", "eth1", "eth1/5", "all")
    }
    assert values == {"eth0": "1", "eth1": "2", "eth1/5": "2", "all": None}


@pytest.mark.parametrize(
    ("row", "denied"),
    [
        ("blacklist rdma-ucm", True),
        ("install rdma_ucm /bin/false", True),
        ("install rdma_ucm /sbin/x", False),
    ],
)
def test_a_denied_module_is_not_loaded_at_boot(row: str, denied: bool) -> None:
    box = with_file(MODULES, "rdma_ucm", box=with_file("/etc/modprobe.d/site.conf", "", row, marked=False))
    seen = box.observe(HW)
    assert seen.stored is not None and dict(seen.stored.system.modules)["rdma_ucm"] is not denied
    found = change(WISH, box, HW)
    reasons = dict(found.reasons)
    assert ("system.modules.rdma_ucm" in reasons) is denied
    if denied:
        want = "second owner: /etc/modprobe.d/site.conf:2 keeps it from being loaded"
        assert reasons["system.modules.rdma_ucm"] == want
        assert ("modprobe", "rdma_ucm") not in calls(found)


def test_the_command_line_of_the_kernel_goes_last() -> None:
    line = "modprobe.blacklist=siw,rdma_ucm mlx5_core.prof_sel=1"
    box = with_file(MODPROBE, "options mlx5_core prof_sel=3", box=replace(BLANK, parts={"cmdline": line}))
    found = box.observe(HW)
    assert found.stored is not None
    assert dict(found.stored.system.module_options)["mlx5_core.prof_sel"] == "1"
    reasons = dict(change(WISH, box, HW).reasons)
    assert reasons["system.module_options.mlx5_core.prof_sel"] == "second owner: /proc/cmdline sets it to 1"
    assert reasons["system.modules.rdma_ucm"] == "second owner: /proc/cmdline keeps it from being loaded"


def test_limits_of_everybody_by_the_last_file() -> None:
    text = (
        "==/etc/security/limits.conf\n3:* - memlock 64\n4:@gpu hard memlock 128\n"
        "==/etc/security/limits.d/50-x.conf\n1:* soft memlock infinity # all\n2:* soft nofile\n"
    )
    found = boot.limits(boot.lines(Section(text, 0, True)))
    value, places = found.get("memlock")
    assert value == "unlimited/64"
    assert [one.place for one in places] == [
        "/etc/security/limits.d/50-x.conf:1",
        "/etc/security/limits.conf:3",
    ]
    assert found.get("nofile") == ("", ())


def test_a_line_for_a_group_goes_before_ours() -> None:
    box = with_file(LIMITS, "* soft memlock unlimited", "* hard memlock unlimited")
    box = with_file("/etc/security/limits.d/10-x.conf", "@gpu hard memlock 64", box=box, marked=False)
    assert "/etc/security/limits.d/10-x.conf:1 gives @gpu another memlock: 64" in box.observe(HW).notes


# ---------------------------------------------------------------- second owners


@pytest.mark.parametrize(
    ("path", "wins"),
    [
        ("/etc/sysctl.d/99-zz.conf", False),
        ("/etc/sysctl.d/99-sysctl.conf", False),
        ("/usr/lib/sysctl.d/50-default.conf", False),
        ("/etc/sysctl.d/zzz-last.conf", True),
        ("/run/sysctl.d/zz-tuned.conf", True),
    ],
)
def test_a_sysctl_that_a_foreign_file_sets(path: str, wins: bool) -> None:
    """Ours sorts behind numbers; what sorts behind ours is named with its line and not fought over."""
    box = with_file(path, "", "net.ipv4.tcp_ecn = 0", marked=False)
    found = change(ECN, box)
    if wins:
        assert found.empty
        assert [item.path for item in found.blocked] == ["system.sysctl.net.ipv4.tcp_ecn"]
        assert dict(found.reasons) == {
            "system.sysctl.net.ipv4.tcp_ecn": f"second owner: {path}:2 sets it to 0"
        }
        assert f"net.ipv4.tcp_ecn: second owner: {path}:2 sets it to 0" in box.observe(hardware(ECN)).notes
        return
    assert found.blocked == () and list(puts(found)) == [SYSCTL]
    after = box.after(found, hardware(ECN))
    assert change(ECN, after).empty
    stored = after.observe(hardware(ECN)).stored
    assert stored is not None and dict(stored.system.sysctl)["net.ipv4.tcp_ecn"] == "1"


def test_a_foreign_file_that_sets_what_we_want_is_enough() -> None:
    box = with_file("/etc/sysctl.d/zzz-last.conf", "net.ipv4.tcp_ecn = 1", marked=False)
    found = change(ECN, box)
    assert found.blocked == () and ("sysctl", "-w", "net.ipv4.tcp_ecn=1") in calls(found)
    live_too = replace(box, sysctl={**LIVE, "net.ipv4.tcp_ecn": "1"})
    assert change(ECN, live_too).empty


def test_sysctl_conf_is_told_and_does_not_block() -> None:
    """systemd reads it before our file or not at all; `sysctl --system` reads it last."""
    box = with_file("/etc/sysctl.conf", "net.ipv4.tcp_ecn = 0", marked=False)
    assert change(ECN, box).blocked == ()
    after = box.after(change(ECN, box), hardware(ECN))
    text = "/etc/sysctl.conf:1 sets net.ipv4.tcp_ecn to 0: `sysctl --system` puts that in force"
    assert text in after.observe(hardware(ECN)).notes


def test_ufw_sets_its_sysctls_last() -> None:
    text = "==/etc/sysctl.conf\n\n==/etc/ufw/sysctl.conf\n9:net/ipv4/tcp_ecn=0\n"
    found = change(ECN, replace(BLANK, parts={"sysctl.conf": text}))
    assert dict(found.reasons) == {
        "system.sysctl.net.ipv4.tcp_ecn": "second owner: /etc/ufw/sysctl.conf:9 sets it to 0"
    }


@pytest.mark.parametrize(
    ("path", "row", "wish", "where"),
    [
        (
            "/etc/modprobe.d/zzz.conf",
            "options mlx5-core prof_sel=1",
            "module_options.mlx5_core.prof_sel",
            ":1",
        ),
        ("/etc/security/limits.d/zzz.conf", "* hard memlock 64", "limits.memlock", ":1"),
        ("/etc/systemd/system/slurmd.service.d/zzz.conf", "LimitMEMLOCK=64M", "limits.slurmd.memlock", ":1"),
    ],
)
def test_a_later_file_of_others_blocks_what_it_sets(path: str, row: str, wish: str, where: str) -> None:
    found = change(WISH, with_file(path, row, marked=False), HW)
    assert [item.path for item in found.blocked] == [f"system.{wish}"]
    assert dict(found.reasons)[f"system.{wish}"].startswith(f"second owner: {path}{where} sets it to ")


@pytest.mark.parametrize(("name", "sure"), [("zzz", False), ("a", True)])
def test_options_that_go_on_in_the_next_line_are_not_understood(name: str, sure: bool) -> None:
    """The question shows the first line only; what stands in the next one may be the very option."""
    path = f"/etc/modprobe.d/{name}.conf"
    box = with_file(path, "options mlx5_core \\", "  prof_sel=3", marked=False)
    wish = SystemState(module_options=(("mlx5_core.prof_sel", "2"),))
    found = change(wish, box, hardware(wish))
    why = f"{path}:1 goes on in its next line, which is not read: make it one line"
    assert found.reasons == (("system.module_options.mlx5_core.prof_sel", why),)
    assert puts(found) == {}
    # Behind it our own line counts.
    both = with_file("/etc/modprobe.d/zz-fabric.conf", "options mlx5_core prof_sel=2", box=box)
    seen = both.observe(hardware(wish)).stored
    assert seen is not None
    assert dict(seen.system.module_options)["mlx5_core.prof_sel"] == ("2" if sure else UNKNOWN)


def test_a_foreign_file_at_our_path_blocks_its_settings() -> None:
    box = with_file("/etc/nccl.conf", "NCCL_DEBUG=INFO", marked=False)
    wish = SystemState(environment=(("NCCL_IB_TC", "106"),), limits=(("memlock", "unlimited"),))
    found = change(wish, box)
    assert list(puts(found)) == [LIMITS]
    assert dict(found.reasons) == {"system.environment.NCCL_IB_TC": "/etc/nccl.conf is not ours"}


def test_a_key_that_this_kernel_lacks() -> None:
    wish = sysctl(net__rds__x="1")
    text = "sysctl: cannot stat /proc/sys/net/rds/x: No such file or directory"
    found = change(wish, replace(BLANK, parts={"sysctl": (text, 1)}))
    assert found.empty
    assert "this kernel has no such key" in dict(found.reasons)["system.sysctl.net.rds.x"]


def test_an_option_that_its_module_does_not_show() -> None:
    wish = SystemState(module_options=(("mlx5_core.nope", "1"),))
    found = change(wish)
    assert found.empty
    reason = dict(found.reasons)["system.module_options.mlx5_core.nope"]
    assert reason == "mlx5_core is loaded and shows no parameter of that name"


# ---------------------------------------------------------------- change


def test_change_of_a_blank_host() -> None:
    found = change(WISH)
    service = 'prlimit --pid "$(systemctl show -p MainPID slurmd.service | cut -d= -f2)" --memlock='
    assert found.lines == (
        f"{SYSCTL}: net.ipv4.conf.bond0/100.arp_ignore = 1",
        f"{SYSCTL}: net.ipv4.tcp_ecn = 1",
        f"{SYSCTL}: net.ipv4.tcp_rmem = 4096 87380 4194304",
        f"{MODULES}: ib_uverbs",
        f"{MODULES}: rdma_ucm",
        f"{MODPROBE}: options mlx5_core prof_sel=3",
        f"{SLURMD}: LimitMEMLOCK=infinity",
        f"{LIMITS}: * soft memlock unlimited",
        f"{LIMITS}: * hard memlock unlimited",
        "/etc/nccl.conf: NCCL_IB_TC=106",
        "/etc/profile.d/fabric-rdma.sh: export UCX_TLS='rc x'",
        "sysctl -w net.ipv4.conf.bond0/100.arp_ignore=1",
        "sysctl -w net.ipv4.tcp_ecn=1",
        "sysctl -w 'net.ipv4.tcp_rmem=4096 87380 4194304'",
        "modprobe rdma_ucm",
        f"{service}unlimited:unlimited",
    )
    assert found.undo == (
        Call(("sysctl", "-w", "net.ipv4.conf.bond0/100.arp_ignore=0")),
        Call(("sysctl", "-w", "net.ipv4.tcp_ecn=2")),
        Call(("sysctl", "-w", "net.ipv4.tcp_rmem=4096 131072 33554432")),
    )
    assert found.undo_kind == "dead-man" and found.level == Disturbs.NOTHING and found.blocked == ()
    assert puts(found)[SLURMD] == f"{HEAD}\n[Service]\nLimitMEMLOCK=infinity\n"
    assert all(text is None or "managed by fabric" in text.split("\n", 1)[0] for text in puts(found).values())
    order = [" ".join(words) for words in calls(found)]
    assert order[0] == "systemctl daemon-reload"
    assert order.index("modprobe rdma_ucm") < order.index("sysctl -w net.ipv4.tcp_ecn=1")


def test_the_full_rendering_holds_the_same_files() -> None:
    wanted = PLATFORM.realize(NodeState(WISH), HW).state
    written = puts(change(WISH))
    context = PLATFORM.context(wanted, HW)
    rendered = {
        f"/{item.path}": render(item.template, item.context or context)
        for item in PLATFORM.artifacts(wanted, HW)
    }
    assert rendered == written


def test_after_the_change_a_read_back_shows_what_was_realized() -> None:
    """But for the option, which waits for its driver to be loaded anew."""
    wanted = PLATFORM.realize(NodeState(WISH), HW).state
    box = BLANK.after(change(WISH), HW)
    found = box.observe(HW)
    option = "system.module_options.mlx5_core.prof_sel"
    assert [item.path for item in differences(wanted, found.running)] == [option]
    assert differences(wanted, found.stored) == ()
    assert waiting(wanted, found) == {option}
    assert PLATFORM.change(found, wanted, HW).empty
    rebooted = replace(box, options={"mlx5_core.prof_sel": "3"}).observe(HW)
    assert differences(wanted, rebooted.running) == () and rebooted.pending is None


def test_nothing_wanted_nothing_written() -> None:
    assert PLATFORM.artifacts(NodeState(), HW) == ()
    found = change(SystemState())
    assert found.empty and found.lines == () and found.undo == () and found.differences == ()


KINDS = ("sysctl.net.ipv4.tcp_ecn", "modules.rdma_ucm", "limits.memlock", "limits.slurmd.memlock")


@pytest.mark.parametrize("path", [*KINDS, "module_options.mlx5_core.prof_sel", "environment.NCCL_IB_TC"])
def test_live_right_but_not_stored_is_saved(path: str) -> None:
    """Each kind: its file is gone, everything else is as it should be."""
    wanted = PLATFORM.realize(NodeState(WISH), HW).state
    whole = replace(BLANK.after(change(WISH), HW), options={"mlx5_core.prof_sel": "3"})
    group, _, name = path.partition(".")
    holds = {
        "sysctl": SYSCTL,
        "modules": MODULES,
        "module_options": MODPROBE,
        "limits": SLURMD if "." in name else LIMITS,
        "environment": "/etc/nccl.conf",
    }[group]
    box = replace(whole, files={at: text for at, text in whole.files.items() if at != holds})
    if group == "limits" and "." in name:
        running = "== slurmd\nMainPID=7\nMax locked memory         unlimited            unlimited    bytes\n"
        box = replace(box, parts={"services": running})
    seen = box.observe(HW)
    stored = [item.path for item in differences(wanted, seen.stored)]
    live = [item.path for item in differences(wanted, seen.running)]
    assert f"system.{path}" in stored
    # What counts from the next login or job on has no live value besides the stored one.
    assert live == ([f"system.{path}"] if path in ("limits.memlock", "environment.NCCL_IB_TC") else [])
    found = PLATFORM.change(seen, wanted, HW)
    assert list(puts(found)) == [holds]
    assert [words for words in calls(found) if words[0] in ("sysctl", "modprobe", "sh")] == []
    assert found.level == Disturbs.NOTHING
    again = box.after(found, HW).observe(HW)
    assert differences(wanted, again.stored) == ()


@pytest.mark.parametrize("path", ["sysctl.net.ipv4.tcp_ecn", "modules.rdma_ucm", "limits.slurmd.memlock"])
def test_stored_right_but_live_wrong_is_set(path: str) -> None:
    wanted = PLATFORM.realize(NodeState(WISH), HW).state
    whole = replace(BLANK.after(change(WISH), HW), options={"mlx5_core.prof_sel": "3"})
    running = "== slurmd\nMainPID=7\nMax locked memory         8388608              8388608    bytes\n"
    box = {
        "sysctl": replace(whole, sysctl={**whole.sysctl, "net.ipv4.tcp_ecn": "0"}),
        "modules": replace(whole, modules=("ib_core", "ib_uverbs", "mlx5_core")),
        "limits": replace(whole, parts={"services": running}),
    }[path.partition(".")[0]]
    seen = box.observe(HW)
    assert [item.path for item in differences(wanted, seen.running)] == [f"system.{path}"]
    assert differences(wanted, seen.stored) == ()
    found = PLATFORM.change(seen, wanted, HW)
    line = {
        "sysctl": "sysctl -w net.ipv4.tcp_ecn=1",
        "modules": "modprobe rdma_ucm",
        "limits": "prlimit",
    }[path.partition(".")[0]]
    assert any(row.startswith(line) for row in found.lines)
    if path.startswith("limits"):
        (back,) = found.undo
        assert isinstance(back, Call) and back.argv[2].endswith("--memlock=8388608:8388608")


def test_a_service_that_runs_has_the_limits_of_its_process() -> None:
    text = "== slurmd\nMainPID=7\nMax open files            1024                 524288               files\n"
    wish = SystemState(limits=(("slurmd.nofile", "1048576"),))
    hw = hardware(wish)
    seen = replace(BLANK, parts={"services": text}).observe(hw)
    assert dict(seen.running.system.limits)["slurmd.nofile"] == "1024/524288"
    cut = replace(BLANK, parts={"services": "== slurmd\nMainPID=7\n"}).observe(hw)
    assert dict(cut.running.system.limits)["slurmd.nofile"] is UNKNOWN


def test_settings_in_our_files_that_nobody_asks_for_stay() -> None:
    box = with_file(SYSCTL, "net.ipv4.ip_forward = 1")
    text = puts(change(ECN, box))[SYSCTL]
    assert text is not None and text.splitlines()[1:] == ["net.ipv4.ip_forward = 1", "net.ipv4.tcp_ecn = 1"]


def test_values_of_others_do_not_become_ours() -> None:
    """What foreign files set is stored, but not in our file."""
    box = with_file("/etc/sysctl.d/10-site.conf", "net.ipv4.ip_forward = 1", marked=False)
    wish = sysctl(net__ipv4__tcp_ecn="1", net__ipv4__ip_forward="1")
    found = change(wish, replace(box, sysctl={**LIVE, "net.ipv4.ip_forward": "1"}))
    text = puts(found)[SYSCTL]
    assert text is not None and "tcp_ecn" in text
    assert change(ECN, box).blocked == () and "ip_forward" not in (puts(change(ECN, box))[SYSCTL] or "")


@pytest.mark.parametrize("value", ["", "a b", "4096\t87380 \t 4194304"])
def test_sysctls_of_no_and_of_several_words(value: str) -> None:
    """Written, stored and equal afterwards, also an empty one."""
    wish = sysctl(net__ipv4__x=value)
    hw = hardware(wish)
    box = replace(BLANK, sysctl={"net.ipv4.x": "before"})
    found = change(wish, box)
    plain = " ".join(value.split())
    assert ("sysctl", "-w", f"net.ipv4.x={plain}") in calls(found)
    assert f"net.ipv4.x = {plain}\n" in (puts(found)[SYSCTL] or "")
    shown = replace(box.after(found, hw), sysctl={"net.ipv4.x": value})
    seen = shown.observe(hw)
    wanted = PLATFORM.realize(NodeState(wish), hw).state
    assert differences(wanted, seen.running) == differences(wanted, seen.stored) == ()
    assert PLATFORM.change(seen, wanted, hw).empty


def test_back_to_nothing_removes_the_file() -> None:
    box = with_file("/etc/nccl.conf", "NCCL_IB_TC=106")
    found = change(SystemState(environment=(("NCCL_IB_TC", ""),)), box)
    assert puts(found) == {"/etc/nccl.conf": None}
    assert found.lines == ("rm /etc/nccl.conf",)
    service = with_file(SLURMD, "[Service]", "LimitMEMLOCK=infinity")
    found = change(SystemState(limits=(("slurmd.memlock", ""),)), service)
    assert puts(found) == {SLURMD: None}


def test_a_module_is_never_unloaded_but_leaves_the_list() -> None:
    """A way back: it was not loaded before, so it is not loaded at the next boot either."""
    box = with_file(MODULES, "rdma_ucm", "ib_uverbs", box=replace(BLANK, modules=("rdma_ucm", "ib_uverbs")))
    wish = SystemState(modules=(("rdma_ucm", False),))
    found = change(wish, box)
    assert puts(found) == {MODULES: f"{HEAD}\nib_uverbs\n"}
    assert calls(found) == []
    after = box.after(found, hardware(wish))
    assert "rdma_ucm" in after.modules and change(wish, after).empty
    assert change(SystemState(modules=(("siw", False),)), box).empty


HEAD = "# managed by fabric: changes are overwritten; edit the intent instead"


# ---------------------------------------------------------------- small things


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


@pytest.mark.parametrize(
    ("item", "value", "systemd"),
    [
        ("memlock", "64", "65536"),
        ("memlock", "unlimited", "infinity"),
        ("nofile", "1024/unlimited", "1024:infinity"),
    ],
)
def test_limits_in_the_words_of_systemd(item: str, value: str, systemd: str) -> None:
    assert boot.service_value(item, value) == systemd
    assert boot.from_service(item, systemd) == value
    assert boot.from_service("memlock", "64M") == "65536" and boot.from_service("memlock", "lots") == ""
