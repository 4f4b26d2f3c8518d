"""The simulated SONiC switch: the page's transcripts, its refusals per branch, its daemons and shell."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric.lab.simulators import _sonic_json as js
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact, Session
from rdma_fabric.lab.simulators._sonic_shell import Unfinished, parse
from rdma_fabric.lab.simulators._sonic_state import ranges
from rdma_fabric.lab.simulators._sonic_yang import MASTER, TABLES, TABLES_WITH_MODEL, YangError, validate
from rdma_fabric.lab.simulators.sonic import DEVICE, SonicDevice
from tests.judges import sonic_base, sonic_yang
from tests.judges.json_patch import apply_patch

CASES: Mapping[str, Mapping[str, Mapping[str, Any]]] = yaml.safe_load(
    (Path(__file__).parents[1] / "judges" / "bad" / "sonic.yaml").read_text(encoding="utf-8")
)
NUMBERS = {"202305": 202305, "202411": 202411, "master": MASTER}
STARTUP = "/etc/sonic/config_db.json"


class Clock:
    """A clock that tests move by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def ports(count: int = 4) -> tuple[PortFact, ...]:
    """400G ports Ethernet0, Ethernet8, ... with lanes as on the reference page."""
    return tuple(
        PortFact(
            f"Ethernet{8 * i}",
            400,
            lanes=",".join(str(8 * i + lane) for lane in range(8)),
            alias=f"etp{i + 1}",
            index=i + 1,
            peer_node=f"gpu{i:03}",
            peer_port="eth0",
        )
        for i in range(count)
    )


Make = Callable[..., SonicDevice]


@pytest.fixture
def clock() -> Clock:
    """The device's clock."""
    return Clock()


@pytest.fixture
def make(clock: Clock) -> Make:
    """Makes a switch leaf01 of a branch, HwSKU and seed."""

    def build(version: str = "202411", model: str = "ACS-SN5600", seed: tuple[str, ...] = ()) -> SonicDevice:
        return DEVICE(DeviceFacts("leaf01", "sonic", model, version, ports(), seed), clock)

    return build


def run(device: SonicDevice, command: str, status: int = 0) -> str:
    """Output of a command that must end with a status."""
    result = device.execute("admin", command)
    assert result.status == status, (command, result)
    return result.stdout + result.stderr


def patch(device: SonicDevice, operations: list[dict[str, Any]], status: int = 0, flags: str = "") -> str:
    """Put a patch file and apply it."""
    device.files["/tmp/patch.json"] = json.dumps(operations).encode()
    return run(device, f"sudo config apply-patch {flags} /tmp/patch.json", status)


def load(device: SonicDevice, config: Mapping[str, Any]) -> str:
    """Merge a configuration with `config load`."""
    device.files["/tmp/load.json"] = json.dumps(config).encode()
    return run(device, "sudo config load -y /tmp/load.json")


def typed(session: Session, *lines: str) -> str:
    """What a terminal shows after the lines were typed, without echo."""
    return "".join(session.run(line).text for line in lines)


def words(text: str) -> list[list[str]]:
    """Lines as lists of words, so that column widths do not matter."""
    return [line.split() for line in text.splitlines() if line.strip()]


WRED = {
    "ecn": "ecn_all",
    "green_max_threshold": "1500000",
    "green_min_threshold": "150000",
    "green_drop_probability": "100",
    "wred_green_enable": "true",
}
PFC_WD_ROW = {"action": "drop", "detection_time": "200", "restoration_time": "400"}


# --- login and shell ----------------------------------------------------------------------------


def test_prompt_and_sudo_shell(make: Make) -> None:
    session = make().open("admin")
    assert session.prompt() == "admin@leaf01:~$ "
    assert session.run("").text == ""
    session.run("cd /tmp")
    assert session.prompt() == "admin@leaf01:/tmp$ "
    session.run("cd")
    session.run("sudo -s")
    assert session.prompt() == "root@leaf01:/home/admin# "
    assert typed(session, "id -u", "config list-checkpoints") == "0\n[]\n"
    assert not session.run("exit").close
    assert session.prompt() == "admin@leaf01:~$ "
    assert session.run("exit").close


def test_unknown_command_is_refused(make: Make) -> None:
    device = make()
    session = device.open("admin")
    assert typed(session, "configure terminal", "echo $?") == "-bash: configure: command not found\n127\n"
    assert session.run("configure terminal").text == device.refusal("configure terminal")
    assert device.execute("admin", "enable").status == 127


@pytest.mark.parametrize("command", ["config save -y", "config apply-patch /tmp/p", "config pfcwd stop"])
def test_config_needs_root(make: Make, command: str) -> None:
    assert "Root privileges are required for this operation" in run(make(), command, 1)


def test_sudo_is_for_admin_only(make: Make) -> None:
    result = make().execute("guest", "sudo config save -y")
    assert (result.status, result.stderr) == (1, "guest is not in the sudoers file.\n")


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo a; false; echo $?", "a\n1\n"),
        ("true && echo yes || echo no", "yes\n"),
        ("false && echo yes || echo no", "no\n"),
        ("! false && echo $?", "0\n"),
        ("echo 'a  b' \"$HOME\" \\$x", "a  b /home/admin $x\n"),
        ("x=5; echo \"<$x>\" '<$x>' <${x}>", "bash: line 1: syntax error near unexpected token `newline'\n"),
        ("x=5; echo \"<$x>\" '<$x>'", "<5> <$x>\n"),
        ("printf '%s-%s\\n' a b", "a-b\n"),
        ("echo one >/tmp/f; echo two >>/tmp/f; cat /tmp/f | wc -l", "2\n"),
        ("cat <<EOF | base64 -d\naGkK\nEOF", "hi\n"),
        ("cat <<'E' >/tmp/h\n$HOME\nE\ncat /tmp/h", "$HOME\n"),
        ("cat <<E\n$HOME\nE", "/home/admin\n"),
        ("(cd /tmp; pwd); pwd", "/tmp\n/home/admin\n"),
        ("test -f /etc/sonic/config_db.json && [ 1 -lt 2 ] && echo ok", "ok\n"),
        ("echo $(hostname; id -un)", "leaf01 admin\n"),
        ("ls /nowhere 2>/dev/null; echo $?", "2\n"),
        ("ls /nowhere 2>&1 | grep -c cannot", "1\n"),
        (
            "mkdir /run/lock/x && mkdir /run/lock/x; echo $?",
            "1\nmkdir: cannot create directory '/run/lock/x': File exists\n",
        ),
        ("echo x > /etc/sonic/x; echo $?", "1\nbash: line 1: /etc/sonic/x: Permission denied\n"),
        ("echo x | sudo tee /etc/sonic/x > /dev/null && cat /etc/sonic/x", "x\n"),
        ("sudo sh -c 'echo y > /etc/sonic/y; id -un' && ls /etc/sonic/y", "root\n/etc/sonic/y\n"),
        ("for i in 1 2; do echo $i; done", "bash: line 1: syntax error near unexpected token `for'\n"),
        ("uname -a | grep -o x86_64", "x86_64\n"),
        (
            "touch /tmp/a1 /tmp/a2; rm /tmp/a*; ls /tmp/a1",
            "ls: cannot access '/tmp/a1': No such file or directory\n",
        ),
        ("sleep x", "sleep: invalid time interval 'x'\n"),
        ("cat -Z f", "cat: invalid option -- 'Z'\nTry 'cat --help' for more information.\n"),
    ],
)
def test_shell(make: Make, script: str, output: str) -> None:
    result = make().execute("admin", script)
    assert result.stdout + result.stderr == output


def test_files_come_and_go_by_sftp_and_shell(make: Make) -> None:
    device = make()
    blob = bytes(range(256))
    run(device, f"echo {base64.b64encode(blob).decode()} | base64 -d > /tmp/blob")
    assert device.files["/tmp/blob"] == blob
    run(device, "mv /tmp/blob /tmp/c && cp /tmp/c /home/admin/d && rm /tmp/c")
    assert device.files["/home/admin/d"] == blob
    assert "/tmp/c" not in device.files
    assert run(device, "sha256sum d").startswith(
        "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880"
    )


def test_terminal_waits_for_the_rest(make: Make) -> None:
    session = make().open("admin")
    assert typed(session, "cat <<'EOF' > /tmp/x", "a 'b", "EOF") == ""
    assert session.prompt() == "admin@leaf01:~$ "
    session.run("echo 'a")
    assert session.prompt() == "> "
    assert session.run("b'").text == "a\nb\n"
    with pytest.raises(Unfinished):
        parse("true &&")


# --- blank device -------------------------------------------------------------------------------


def test_blank_switch_has_stock_qos_and_foreign_tables(make: Make) -> None:
    config = make(model="ACS-SN5600").config
    assert config["DSCP_TO_TC_MAP"]["AZURE"]["26"] == "1"
    assert {d: config["DSCP_TO_TC_MAP"]["AZURE"][d] for d in ("3", "4", "46", "48", "8", "5")} == {
        "3": "3",
        "4": "4",
        "46": "5",
        "48": "6",
        "8": "0",
        "5": "2",
    }
    assert config["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] == "3,4"
    assert config["PORT_QOS_MAP"]["Ethernet0"]["pfc_to_pg_map"] == "AZURE"
    assert config["BUFFER_PG"]["Ethernet0|3-4"] == {"profile": "pg_lossless_400000_5m_profile"}
    assert config["PORT"]["Ethernet0"]["mtu"] == "9100"
    assert {"ACL_TABLE", "BGP_NEIGHBOR", "VLAN", "INTERFACE", "MGMT_INTERFACE"} <= config.keys()
    assert "pfc_to_pg_map" not in make(model="DellEMC-Z9664f-O64").config["PORT_QOS_MAP"]["Ethernet0"]


def test_seed_of_json_commands_and_noqos(make: Make) -> None:
    bare = make(seed=("noqos",))
    assert not {"PORT_QOS_MAP", "QUEUE", "BUFFER_PG", "WRED_PROFILE"} & bare.config.keys()
    seeded = make(seed=("noqos", '{"TACPLUS": {"global": {"passkey": "s3cret"}}}'))
    assert json.loads(seeded.files[STARTUP])["TACPLUS"]["global"]["passkey"] == "s3cret"
    typed_seed = make(seed=("config vlan add 77", "config hostname spine9"))
    assert typed_seed.config["VLAN"]["Vlan77"] == {"vlanid": "77"}
    assert typed_seed.open("admin").prompt() == "admin@spine9:~$ "
    with pytest.raises(ValueError, match="seed is refused"):
        make(seed=("config vlan add 5000",))


@pytest.mark.parametrize("model", sonic_base.HWSKUS)
@pytest.mark.parametrize("branch", sonic_yang.BRANCHES)
def test_blank_switch_is_valid_for_the_models(make: Make, branch: sonic_yang.Branch, model: str) -> None:
    config = make(version=branch, model=model).config
    validate(config, NUMBERS[branch])
    reason = sonic_yang.missing()
    if reason:
        pytest.skip(reason)
    assert sonic_yang.judge(config, branch) == []


# --- rules of the models ------------------------------------------------------------------------


def _cases(verdict: str) -> Iterator[Any]:
    for name, case in CASES[verdict].items():
        tables = {js.parts_of(path)[0] for path in (*case.get("add", {}), *case.get("remove", ()))}
        # types of values are the updater's own test below; other tables are not ours to know
        if tables <= TABLES.keys() and not name.endswith("instead-of-string"):
            for branch in case.get("branches", sonic_yang.BRANCHES):
                yield pytest.param(case, NUMBERS[branch], id=f"{name}-{branch}")


def _changed(case: Mapping[str, Any]) -> dict[str, Any]:
    reason = sonic_base.missing()
    if reason:
        pytest.skip(reason)
    added = [{"op": "add", "path": path, "value": value} for path, value in case.get("add", {}).items()]
    removed = [{"op": "remove", "path": path} for path in case.get("remove", ())]
    return apply_patch(sonic_base.worked_example(), added + removed)


@pytest.mark.parametrize(("case", "branch"), list(_cases("refused")))
def test_what_the_models_refuse_is_refused(case: Mapping[str, Any], branch: int) -> None:
    with pytest.raises(YangError, match="Data Loading Failed"):
        validate(_changed(case), branch)


@pytest.mark.parametrize(("case", "branch"), list(_cases("accepted")))
def test_what_the_models_accept_is_accepted(case: Mapping[str, Any], branch: int) -> None:
    validate(_changed(case), branch)


@pytest.mark.parametrize("branch", NUMBERS.values())
def test_worked_example_of_the_page_is_valid(branch: int) -> None:
    validate(_changed({}), branch)


def test_tables_with_a_model_are_those_of_sonics_sample(shared: Path) -> None:
    text = (shared / "data" / "sonic" / "config" / "sample_config_db.json").read_text(encoding="utf-8")
    assert set(json.loads(text)["SAMPLE_CONFIG_DB_JSON"]) == TABLES_WITH_MODEL


def test_error_texts_follow_the_branch(make: Make) -> None:
    bad = [{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9217"}]
    old, new = patch(make("202305"), bad, 2), patch(make("master"), bad, 2)
    assert (
        "Error: Given patch will produce invalid config. Error: Data Loading Failed\n"
        'Value "9217" does not satisfy the constraint "68..9216" (range, length, or pattern).' in old
    )
    assert 'Unsatisfied range - value "9217" is out of the allowed range.' in new


# --- generic config updater ---------------------------------------------------------------------


def test_apply_patch_prints_its_log_per_branch(make: Make) -> None:
    change = [{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}]
    new = patch(make("202411"), change).splitlines()
    assert new[0] == "Patch Applier: localhost: Patch application starting."
    assert new[1] == f"Patch Applier: localhost: Patch: {json.dumps(change)}"
    assert new[2] == "Patch Applier: localhost getting current config db."
    assert "Patch Applier: localhost: sorting patch updates." in new
    assert "Patch Applier: localhost: applying 1 change in order:" in new
    assert new[-2:] == [
        "Patch Applier: localhost patch application completed.",
        "Patch applied successfully.",
    ]
    old = patch(make("202305"), change)
    assert "localhost" not in old
    assert "Patch Applier: Patch application starting.\n" in old
    assert old.endswith("Patch applied successfully.\n")


def test_dry_run_changes_nothing(make: Make) -> None:
    device = make()
    before = device.running()
    text = patch(device, [{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}], flags="-d")
    assert text.startswith("** DRY RUN EXECUTION **\n")
    assert text.endswith("Patch applied successfully.\n")
    assert device.running() == before


def test_failure_has_the_texts_of_the_page(make: Make) -> None:
    device = make("202411", "DellEMC-Z9664f-O64", ('{"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "100"}}}',))
    add = [{"op": "add", "path": "/PFC_WD/Ethernet0", "value": PFC_WD_ROW}]
    device.files["/tmp/patch.json"] = json.dumps(add).encode()
    result = device.execute("admin", "sudo config apply-patch /tmp/patch.json")
    refused = (
        "- localhost: Modification of PFC_WD table is illegal- validating function "
        "generic_config_updater.field_operation_validators.rdma_config_update_validator returned False\n"
    )
    assert result.status == 2
    assert result.stderr == (
        "Failed to apply patch due to: Failed to apply patch on the following scopes:\n"
        + refused
        + "Usage: config apply-patch [OPTIONS] PATCH_FILE_PATH\n"
        + 'Try "config apply-patch -h" for help.\n\n'
        + "Error: Failed to apply patch on the following scopes:\n"
        + refused
    )
    old = make("202305", "DellEMC-Z9664f-O64", ('{"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "100"}}}',))
    text = patch(old, add, 2)
    assert "\nError: Modification of PFC_WD table is illegal- validating function" in text
    assert "Failed to apply patch\nUsage: config apply-patch" in text


GLOBAL_ONLY = ('{"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "100"}}}',)
WRED_MIN = [{"op": "replace", "path": "/WRED_PROFILE/AZURE_LOSSLESS/green_min_threshold", "value": "150000"}]
WRED_YELLOW = [
    {"op": "replace", "path": "/WRED_PROFILE/AZURE_LOSSLESS/yellow_min_threshold", "value": "150000"}
]
WRED_NEW = [{"op": "add", "path": "/WRED_PROFILE/ROCE_ECN", "value": WRED}]
WD_ADD = [{"op": "add", "path": "/PFC_WD/Ethernet0", "value": PFC_WD_ROW}]
POOL = [{"op": "replace", "path": "/BUFFER_POOL/ingress_lossless_pool/size", "value": "50000000"}]
PROFILE_TH = [
    {"op": "replace", "path": "/BUFFER_PROFILE/pg_lossless_400000_5m_profile/dynamic_th", "value": "-1"}
]
PROFILE_NEW = [
    {
        "op": "add",
        "path": "/BUFFER_PROFILE/mine",
        "value": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "1"},
    }
]
ARISTA = "Arista-7060X6-64PE-64x400G"
DELL = "DellEMC-Z9664f-O64"


@pytest.mark.parametrize(
    ("operations", "model", "allowed"),
    [
        (WRED_MIN, "ACS-SN5600", ("202305", "202311", "202405", "202411", "202505", "202511", "master")),
        (WRED_MIN, ARISTA, ("202405", "202411", "202505", "202511", "master")),
        (WRED_MIN, DELL, ("202511", "master")),
        (WRED_YELLOW, "ACS-SN5600", ("202511", "master")),
        (WRED_NEW, "ACS-SN5600", ("202511", "master")),
        (WD_ADD, "ACS-SN5600", ("202305", "202311", "202405", "202411", "202505", "202511", "master")),
        (WD_ADD, ARISTA, ("202405", "202411", "202505", "202511", "master")),
        (WD_ADD, DELL, ()),
        (POOL, "ACS-SN5600", ("202305", "202311", "202405", "202411", "202505")),
        (PROFILE_TH, "ACS-SN5600", ("202305", "202311", "202405", "202411", "202505", "202511", "master")),
        (PROFILE_TH, DELL, ()),
        (PROFILE_NEW, DELL, ("202511", "master")),
        (PROFILE_NEW, "ACS-SN5600", ("202511", "master")),
    ],
)
def test_tables_that_the_updater_lets_through(
    make: Make, operations: list[dict[str, Any]], model: str, allowed: tuple[str, ...]
) -> None:
    for branch in ("202305", "202311", "202405", "202411", "202505", "202511", "master"):
        device = make(branch, model, GLOBAL_ONLY)
        before = device.running()
        text = patch(device, operations, 0 if branch in allowed else 2)
        assert ("table is illegal" in text) == (branch not in allowed)
        assert (device.running() == before) == (branch not in allowed)


@pytest.mark.parametrize("branch", ["202305", "202411", "master"])
def test_first_watchdog_table_needs_config_load(make: Make, branch: str) -> None:
    table = {"GLOBAL": {"POLL_INTERVAL": "100"}, "Ethernet0": PFC_WD_ROW}
    device = make(branch)
    # the validator sees one `add` of the table, whose members are rows and not fields
    assert "PFC_WD table is illegal" in patch(device, [{"op": "add", "path": "/PFC_WD", "value": table}], 2)
    load(device, {"PFC_WD": table})
    change = [{"op": "replace", "path": "/PFC_WD/Ethernet0/detection_time", "value": "300"}]
    patch(device, change)
    assert device.config["PFC_WD"]["Ethernet0"]["detection_time"] == "300"
    for path in ("/PFC_WD/GLOBAL", "/PFC_WD/GLOBAL/POLL_INTERVAL"):
        text = patch(device, [{"op": "remove", "path": path}], 2)
        assert f"Operation: remove is illegal on field: {path}" in text
    patch(device, [{"op": "replace", "path": "/PFC_WD/GLOBAL/POLL_INTERVAL", "value": "200"}])
    too_long = [{"op": "replace", "path": "/PFC_WD/GLOBAL/POLL_INTERVAL", "value": "301"}]
    assert "detection_time must be greater than or equal to POLL_INTERVAL" in patch(device, too_long, 2)


@pytest.mark.parametrize(
    ("operations", "text"),
    [
        (
            [{"op": "add", "path": "/MY_TABLE", "value": {"a": {"b": "c"}}}],
            "changes to tables without YANG models",
        ),
        ([{"op": "remove", "path": "/VLAN/Vlan1000"}], "it will result in empty tables"),
        ([{"op": "remove", "path": "/PORT/Ethernet0/nope"}], "can't remove a non-existent object 'nope'"),
        (
            [{"op": "replace", "path": "/PORT/Ethernet99/mtu", "value": "9216"}],
            "member 'Ethernet99' not found",
        ),
        (
            [{"op": "replace", "path": "/PORT/Ethernet0/fec", "value": "llrs"}],
            "Modification of PORT table is illegal",
        ),
        (
            [{"op": "replace", "path": "/PORT/Ethernet0/speed", "value": "800000"}],
            "Modification of PORT table is illegal",
        ),
        ([{"op": "remove", "path": "/DSCP_TO_TC_MAP/AZURE"}], "it will result in empty tables"),
        ([{"op": "remove", "path": "/DSCP_TO_TC_MAP"}], "points to a non-existing leaf"),
        ([{"op": "test", "path": "/PORT/Ethernet0/mtu", "value": "1"}], "is not equal to tested value"),
        ([{"op": "frob", "path": "/PORT"}], "Unknown operation 'frob'"),
        ([{"path": "/PORT"}], "Operation does not contain 'op' member"),
        ([{"op": "add", "path": "/PORT/Ethernet0/mtu"}], "The operation does not contain a 'value' member"),
        ([{"op": "add", "path": "PORT/Ethernet0/mtu", "value": "1"}], "Location must start with /"),
    ],
)
def test_updater_refuses(make: Make, operations: list[dict[str, Any]], text: str) -> None:
    device = make()
    before = device.running()
    assert text in patch(device, operations, 2)
    assert device.running() == before


def test_a_number_is_written_but_reported_as_not_updated(make: Make) -> None:
    device = make()
    text = patch(device, [{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": 9216}], 2)
    assert "after applying patch to config, there are still some parts not updated" in text
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "9216"


def test_apply_patch_arguments(make: Make) -> None:
    device = make()
    assert "No such file or directory: 'nope.json'" in run(device, "sudo config apply-patch nope.json", 2)
    assert 'Error: Missing argument "PATCH_FILE_PATH".' in run(device, "sudo config apply-patch", 2)
    assert "Got unexpected extra argument (b)" in run(device, "sudo config apply-patch a b", 2)
    assert "no such option: --force" in run(device, "sudo config apply-patch --force a", 2)
    device.files["/tmp/broken"] = b"[{"
    assert "Expecting property name" in run(device, "sudo config apply-patch /tmp/broken", 2)


def test_escapes_in_pointers(make: Make) -> None:
    device = make()
    patch(device, [{"op": "add", "path": "/INTERFACE/Ethernet8|10.9.0.0~131", "value": {}}])
    assert device.config["INTERFACE"]["Ethernet8|10.9.0.0/31"] == {}


def test_ports_flap_for_bindings_but_not_for_maps(make: Make) -> None:
    device = make()
    patch(
        device,
        [
            {"op": "replace", "path": "/DSCP_TO_TC_MAP/AZURE/26", "value": "3"},
            {"op": "replace", "path": "/SCHEDULER/scheduler.0/weight", "value": "20"},
            *WRED_MIN,
            {"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"},
            {"op": "replace", "path": "/CABLE_LENGTH/AZURE/Ethernet0", "value": "40m"},
            {"op": "replace", "path": "/PORT_QOS_MAP/global/dscp_to_tc_map", "value": "AZURE"},
        ],
    )
    assert device.flaps == {}
    text = patch(
        device, [{"op": "add", "path": "/QUEUE/Ethernet0|6/wred_profile", "value": "AZURE_LOSSLESS"}]
    )
    text = text.partition("in order:")[2]
    assert (
        text.index('admin_status", "value": "down"')
        < text.index("wred_profile")
        < text.index('"value": "up"')
    )
    patch(device, [{"op": "replace", "path": "/PORT_QOS_MAP/Ethernet8/pfc_enable", "value": "3"}])
    assert device.flaps == {"Ethernet0": 1, "Ethernet8": 1}
    assert device.config["PORT"]["Ethernet0"]["admin_status"] == "up"
    assert run(device, 'sonic-db-cli APPL_DB HGET "PORT_TABLE:Ethernet8" flap_count') == "1\n"


def test_a_port_that_is_down_does_not_flap(make: Make) -> None:
    device = make()
    run(device, "sudo config interface shutdown Ethernet0")
    patch(device, [{"op": "replace", "path": "/PORT_QOS_MAP/Ethernet0/pfc_enable", "value": "3"}])
    assert device.flaps == {"Ethernet0": 1}
    assert device.config["PORT"]["Ethernet0"]["admin_status"] == "down"


def test_moved_watchdog_row_is_refused_as_a_move(make: Make) -> None:
    device = make(
        "master",
        seed=(json.dumps({"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "100"}, "Ethernet0": PFC_WD_ROW}}),),
    )
    both: list[dict[str, Any]] = [
        {"op": "remove", "path": "/PFC_WD/Ethernet0"},
        {"op": "add", "path": "/PFC_WD/Ethernet8", "value": PFC_WD_ROW},
    ]
    assert "PFC_WD table is illegal" in patch(device, both, 2)
    patch(device, both[:1])
    patch(device, both[1:])


def test_checkpoint_rollback_and_delete(make: Make) -> None:
    device = make()
    before = device.running()
    assert run(device, "sudo config checkpoint before").endswith("Checkpoint created successfully.\n")
    assert "/etc/sonic/checkpoints/before.cp.json" in device.files
    assert json.loads(run(device, "sudo config list-checkpoints")) == ["before"]
    patch(device, [{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}, *WRED_MIN])
    assert run(device, "sudo config rollback before").endswith("Config rolled back successfully.\n")
    assert device.running() == before
    assert run(device, "sudo config delete-checkpoint before").endswith("Checkpoint deleted successfully.\n")
    for command in ("rollback", "delete-checkpoint"):
        assert "Error: Checkpoint 'before' does not exist" in run(device, f"sudo config {command} before", 2)


def test_rollback_obeys_the_validators_too(make: Make) -> None:
    device = make("202411")
    run(device, "sudo config checkpoint a")
    load(device, {"WRED_PROFILE": {"ROCE_ECN": WRED}})
    text = run(device, "sudo config rollback a", 2)
    assert "Failed to rollback config" in text
    assert "Modification of WRED_PROFILE table is illegal" in text
    assert "ROCE_ECN" in device.config["WRED_PROFILE"]
    newer = make("master")
    run(newer, "sudo config checkpoint a")
    load(newer, {"WRED_PROFILE": {"ROCE_ECN": WRED}})
    run(newer, "sudo config rollback a")
    assert "ROCE_ECN" not in newer.config["WRED_PROFILE"]


def test_rollback_over_a_profile_of_buffermgrd(make: Make) -> None:
    """A generated profile cannot be removed by the updater before 202511: neither can a rollback."""
    for branch, status in (("202411", 2), ("202505", 2), ("202511", 0)):
        device = make(branch)
        run(device, "sudo config checkpoint a")
        change = [{"op": "replace", "path": "/CABLE_LENGTH/AZURE/Ethernet0", "value": "40m"}]
        patch(
            device, [*change, {"op": "replace", "path": "/PORT_QOS_MAP/Ethernet0/pfc_enable", "value": "3"}]
        )
        assert "pg_lossless_400000_40m_profile" in device.config["BUFFER_PROFILE"]
        text = run(device, "sudo config rollback a", status)
        assert ("BUFFER_PROFILE table is illegal" in text) == bool(status)


def test_replace_takes_a_whole_configuration(make: Make) -> None:
    device = make()
    target = json.loads(device.running())
    target["PORT"]["Ethernet0"]["mtu"] = "9216"
    device.files["/tmp/t.json"] = json.dumps(target).encode()
    assert run(device, "sudo config replace /tmp/t.json").endswith("Config replaced successfully.\n")
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "9216"
    # the text of `show runningconfiguration all` holds more than CONFIG_DB
    device.files["/tmp/t.json"] = json.dumps({**target, "bgpraw": "router bgp"}).encode()
    assert "tables without YANG models" in run(device, "sudo config replace /tmp/t.json", 2)
    device.files["/tmp/t.json"] = b'{"PORT": {"Ethernet0": {"mtu": "9216"}}}'
    assert "Failed to replace config" in run(device, "sudo config replace /tmp/t.json", 2)


# --- load, save, reload, reboot -----------------------------------------------------------------


def test_load_merges_without_asking_the_models(make: Make) -> None:
    device = make()
    text = load(
        device, {"PORT": {"Ethernet0": {"mtu": "9999"}}, "NEW": {"k": {"f": 1}}, "lower": {"x": {"y": "z"}}}
    )
    assert text == "Running command: /usr/local/bin/sonic-cfggen -j /tmp/load.json --write-to-db\n"
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "9999"
    assert device.config["PORT"]["Ethernet0"]["alias"] == "etp1"
    assert device.config["NEW"] == {"k": {"f": "1"}}
    assert "lower" not in device.config
    # stored, but the ASIC never took it
    assert run(device, 'sonic-db-cli APPL_DB HGET "PORT_TABLE:Ethernet0" mtu') == "9100\n"
    assert "Failed to set port Ethernet0 MTU" in run(device, "sudo cat /var/log/syslog")
    # the invalid value blocks every later patch
    assert "invalid config" in patch(
        device, [{"op": "replace", "path": "/PORT/Ethernet8/mtu", "value": "9216"}], 2
    )


def test_load_of_a_missing_or_broken_file(make: Make) -> None:
    device = make()
    assert run(device, "sudo config load -y /tmp/no") == "The config_db file /tmp/no doesn't exist\n"
    device.files["/tmp/b"] = b"{"
    assert "JSONDecodeError" in run(device, "sudo config load -y /tmp/b", 1)
    device.files["/tmp/b"] = b'{"PORT": {"Ethernet0": null}}'
    assert "AttributeError" in run(device, "sudo config load -y /tmp/b", 1)


def test_save_asks_on_a_terminal_only(make: Make) -> None:
    device = make()
    run(device, "sudo config interface mtu Ethernet0 9216")
    session = device.open("admin")
    assert session.run("sudo config save").text == ""
    assert session.prompt() == "Existing files will be overwritten, continue? [y/N]: "
    assert session.run("n").text == "Aborted!\n"
    assert json.loads(device.files[STARTUP])["PORT"]["Ethernet0"]["mtu"] == "9100"
    session.run("sudo config save")
    assert session.run("y").text == (
        "Running command: /usr/local/bin/sonic-cfggen -d --print-data > /etc/sonic/config_db.json\n"
    )
    assert json.loads(device.files[STARTUP])["PORT"]["Ethernet0"]["mtu"] == "9216"
    assert "Aborted!" in run(device, "sudo config save", 1)
    assert "Running command" in run(device, "echo y | sudo config save")


def test_reboot_loses_what_was_not_saved(make: Make) -> None:
    device = make()
    before = device.running()
    run(device, "sudo config checkpoint keep")
    patch(device, [{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}])
    run(device, "sudo systemd-run --on-active=300 --unit=undo config rollback keep")
    device.reboot()
    assert device.running() == before
    assert "/tmp/patch.json" not in device.files
    assert json.loads(run(device, "sudo config list-checkpoints")) == ["keep"]
    assert run(device, "systemctl is-active undo.timer", 3) == "inactive\n"
    run(device, "sudo config interface mtu Ethernet0 9216; sudo config save -y")
    device.reboot()
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "9216"


def test_reload_bounces_all_ports(make: Make) -> None:
    device = make()
    run(device, "sudo config interface mtu Ethernet0 9216")
    run(device, "sudo config reload -y")
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "9100"
    assert device.flaps == {f"Ethernet{8 * i}": 1 for i in range(4)}
    device.files[STARTUP] = b'{"PORT": {"Ethernet0": {"mtu": "1"}}}'
    assert "Invalid config file:'/etc/sonic/config_db.json'!" in run(device, "sudo config reload -y", 1)


# --- timers -------------------------------------------------------------------------------------


def test_detached_timer_rolls_back(make: Make, clock: Clock) -> None:
    device = make()
    run(device, "sudo config checkpoint a")
    answer = device.execute("admin", "sudo systemd-run --on-active=5min --unit=undo config rollback a")
    assert answer.stderr == "Running timer as unit: undo.timer\nWill run service as unit: undo.service\n"
    twice = run(device, "sudo systemd-run --on-active=300 --unit=undo config rollback a", 1)
    assert "Unit undo.timer was already loaded or has a fragment file." in twice
    patch(device, [{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}])
    clock.now += 299
    device.tick()
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "9216"
    assert run(device, "systemctl is-active undo.timer") == "active\n"
    assert "undo.timer undo.service" in run(device, "systemctl list-timers --all --no-pager")
    clock.now += 2
    device.tick()
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "9100"
    assert run(device, "systemctl is-active undo.timer", 3) == "inactive\n"


def test_cancelled_timer_does_not_fire(make: Make, clock: Clock) -> None:
    device = make()
    run(device, "sudo config checkpoint a && sudo systemd-run --on-active=60 --unit=undo config rollback a")
    run(device, "sudo config interface mtu Ethernet0 9216")
    run(device, "sudo systemctl stop undo.timer")
    clock.now += 100
    device.tick()
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "9216"
    assert "Unit undo.timer not loaded." in run(device, "sudo systemctl stop undo.timer", 5)


def test_failed_timer_stays_until_reset(make: Make, clock: Clock) -> None:
    device = make()
    run(device, "sudo systemd-run --on-active=10 --unit=undo config rollback nope")
    clock.now += 11
    assert run(device, "systemctl is-failed undo.service") == "failed\n"
    again = "sudo systemd-run --on-active=10 --unit=undo config rollback nope"
    assert "Unit undo.service was already loaded" in run(device, again, 1)
    run(device, "sudo systemctl reset-failed undo.service")
    run(device, again.replace("--unit", "--collect --unit"))
    clock.now += 11
    assert run(device, "systemctl is-failed undo.service", 1) == "inactive\n"


def test_timer_needs_root_and_a_program(make: Make) -> None:
    device = make()
    assert "Interactive authentication required." in run(
        device, "systemd-run --on-active=1 config save -y", 1
    )
    assert "Failed to find executable frob" in run(device, "sudo systemd-run --on-active=1 frob", 1)
    assert "Failed to parse timer value: soon" in run(device, "sudo systemd-run --on-active=soon true", 1)


# --- daemons ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cable", "size", "xon", "xoff"),
    [("5m", 250880, 19456, 231424), ("40m", 303104, 19456, 283648), ("300m", 697344, 19456, 677888)],
)
def test_buffermgrd_writes_profiles_of_the_page(
    make: Make, cable: str, size: int, xon: int, xoff: int
) -> None:
    device = make(seed=("noqos",))
    pool = {"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "1", "xoff": "1"}}
    load(device, {"BUFFER_POOL": pool, "CABLE_LENGTH": {"AZURE": {"Ethernet0": cable}}})
    assert "BUFFER_PG" not in device.config
    load(device, {"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}})
    name = f"pg_lossless_400000_{cable}_profile"
    assert device.config["BUFFER_PROFILE"][name] == {
        "pool": "ingress_lossless_pool",
        "size": str(size),
        "xon": str(xon),
        "xoff": str(xoff),
        "dynamic_th": "0",
    }
    assert device.config["BUFFER_PG"] == {"Ethernet0|3": {"profile": name}}


def test_cable_without_a_row_is_logged_and_port_stays_lossy(make: Make) -> None:
    device = make(seed=("noqos",))
    load(
        device,
        {"CABLE_LENGTH": {"AZURE": {"Ethernet0": "50m"}}, "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}},
    )
    assert "BUFFER_PG" not in device.config
    assert (
        "Unable to create/update PG profile for port Ethernet0. "
        "No PG profile configured for speed 400000 and cable length 50m" in run(device, "cat /var/log/syslog")
    )


def test_cable_change_alone_is_missed_before_202505(make: Make) -> None:
    change = [{"op": "replace", "path": "/CABLE_LENGTH/AZURE/Ethernet0", "value": "40m"}]
    for branch, name in (("202411", "5m"), ("master", "40m")):
        device = make(branch)
        patch(device, change)
        profile = device.config["BUFFER_PG"]["Ethernet0|3-4"]["profile"]
        assert profile == f"pg_lossless_400000_{name}_profile"


def test_groups_of_a_priority_list() -> None:
    assert ranges("3,4") == ["3-4"]
    assert ranges("3") == ["3"]
    assert ranges("0,2,3,5,") == ["0", "2-3", "5"]
    assert ranges("") == []


def test_old_group_stays_on_a_port_that_is_not_mellanox(make: Make) -> None:
    for model, left in (("ACS-SN5600", set()), (ARISTA, {"Ethernet0|3-4"})):
        device = make(model=model)
        patch(device, [{"op": "replace", "path": "/PORT_QOS_MAP/Ethernet0/pfc_enable", "value": "3"}])
        assert {k for k in device.config["BUFFER_PG"] if k.startswith("Ethernet0|3")} == {
            "Ethernet0|3",
            *left,
        }


# --- show and read-back -------------------------------------------------------------------------


def page_device(make: Make, branch: str) -> SonicDevice:
    """leaf01 with what section 3 of the page shows."""
    device = make(branch, seed=("noqos",))
    load(
        device,
        {
            "PORT": {"Ethernet0": {"mtu": "9216"}},
            "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3", "pfcwd_sw_enable": "3"}},
            "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "100"}, "Ethernet0": PFC_WD_ROW},
            "WRED_PROFILE": {"ROCE_ECN": WRED},
        },
    )
    return device


def test_show_interfaces_status(make: Make) -> None:
    text = run(page_device(make, "202411"), "show interfaces status Ethernet0")
    assert text == (
        "  Interface            Lanes    Speed    MTU    FEC    Alias    Vlan    Oper    Admin    Type    Asym PFC\n"  # noqa: E501
        "-----------  ---------------  -------  -----  -----  -------  ------  ------  -------  ------  ----------\n"  # noqa: E501
        "  Ethernet0  0,1,2,3,4,5,6,7     400G   9216     rs     etp1  routed      up       up     N/A         off\n"  # noqa: E501
    )


def test_show_pfc_priority(make: Make) -> None:
    text = run(page_device(make, "202411"), "show pfc priority")
    # a column of numbers only is right-aligned by tabulate, so the words are compared
    assert words(text) == [
        ["Interface", "Lossless", "priorities"],
        ["-" * 11, "-" * 21],
        ["Ethernet0", "3"],
    ]
    stock = run(make(), "show pfc priority")
    assert "Ethernet0    3,4\n" in stock
    assert words(stock)[-1] == ["global", "N/A"]
    assert run(make(), "show pfc priority Ethernet1") == "Cannot find interface Ethernet1\n"
    assert words(run(make(), "show pfc asymmetric Ethernet0"))[-1] == ["Ethernet0", "off"]


def test_show_pfcwd_config(make: Make) -> None:
    text = run(page_device(make, "202411"), "show pfcwd config")
    assert text == (
        "Changed polling interval to 100ms\n"
        "     PORT    ACTION    DETECTION TIME    RESTORATION TIME\n"
        "---------  --------  ----------------  ------------------\n"
        "Ethernet0      drop               200                 400\n"
    )
    new = words(run(page_device(make, "202511"), "show pfcwd config"))
    assert new[1][-1] == "HISTORY"
    assert new[3] == ["Ethernet0", "drop", "200", "400", "disable"]
    assert words(run(make(), "show pfcwd config"))[0][:2] == ["PORT", "ACTION"]
    assert len(words(run(make(), "show pfcwd config"))) == 2


def test_show_pfcwd_stats(make: Make) -> None:
    device = page_device(make, "202411")
    assert len(words(run(device, "show pfcwd stats"))) == 2
    device.storm("Ethernet0", 3)
    device.storm("Ethernet0", 3, stormed=False)
    assert run(device, "show pfcwd stats") == (
        "      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP"
        "    TX LAST OK/DROP    RX LAST OK/DROP\n"
        "-----------  -----------  -------------------------  ------------  ------------"
        "  -----------------  -----------------\n"
        "Ethernet0:3  operational                        1/1           0/0           0/0"
        "                0/0                0/0\n"
    )
    assert "no such option: --check-storm" in run(device, "show pfcwd stats --check-storm", 2)
    newer = page_device(make, "master")
    run(newer, "show pfcwd stats --check-storm")
    newer.storm("Ethernet0", 3)
    run(newer, "show pfcwd stats --check-storm", 1)


def test_watchdog_without_sw_enable_watches_nothing(make: Make) -> None:
    device = make(seed=("noqos",))
    load(device, {"PFC_WD": {"Ethernet0": PFC_WD_ROW}, "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}})
    assert words(run(device, "show pfcwd stats -e Ethernet0:3"))[-1][:2] == ["Ethernet0:3", "N/A"]
    load(device, {"PORT_QOS_MAP": {"Ethernet0": {"pfcwd_sw_enable": "3"}}})
    assert words(run(device, "show pfcwd stats -e Ethernet0:3"))[-1][:2] == ["Ethernet0:3", "operational"]


def test_show_ecn(make: Make) -> None:
    text = run(page_device(make, "202505"), "show ecn")
    lines = text.splitlines()
    assert lines[0] == "Profile: ROCE_ECN"
    assert set(lines[1]) == {"-", " "} and lines[1] == lines[-2]
    assert dict(words("\n".join(lines[2:-2]))) == WRED


def test_show_counters_buffers_lldp_and_version(make: Make) -> None:
    device = make("202411")
    counters = run(device, "show pfc counters")
    titles = [row[:3] for row in words(counters) if row[0] == "Port"]
    assert titles == [["Port", "Rx", "PFC0"], ["Port", "Tx", "PFC0"]]
    assert "Pool: ingress_lossless_pool\n" in run(device, "show buffer configuration")
    assert "Profile: pg_lossless_400000_5m_profile\n" in run(device, "show buffer information")
    assert "No buffer pool information available" in run(make(seed=("noqos",)), "show buffer configuration")
    lldp = run(device, "show lldp table")
    assert ["Ethernet0", "gpu000", "eth0", "BR", "eth0"] in words(lldp)
    assert lldp.endswith("Total entries displayed:  4\n")
    version = run(device, "show version")
    assert "SONiC Software Version: SONiC.202411." in version
    assert "HwSKU: ACS-SN5600\nASIC: mellanox\n" in version


def test_running_configuration_is_one_json_object(make: Make) -> None:
    device = make()
    shown = json.loads(run(device, "show runningconfiguration all"))
    assert "router bgp 65100" in shown.pop("bgpraw")
    assert shown == device.config == json.loads(run(device, "sonic-cfggen -d --print-data"))
    table = json.loads(run(device, "sonic-cfggen -d --var-json PORT"))
    assert table["Ethernet0"]["mtu"] == "9100"
    assert run(device, "sonic-cfggen -d --var-json NOPE") == ""
    assert run(device, "sonic-cfggen -d -v DEVICE_METADATA.localhost.hwsku") == "ACS-SN5600\n"
    assert "unrecognized arguments: --frob" in run(device, "sonic-cfggen --frob", 2)


def test_databases(make: Make) -> None:
    device = make()
    assert run(device, 'sonic-db-cli CONFIG_DB HGET "PORT|Ethernet0" mtu') == "9100\n"
    assert run(device, 'sonic-db-cli CONFIG_DB HGET "PORT|Ethernet0" nope') == "\n"
    assert (
        run(device, 'sonic-db-cli CONFIG_DB HGETALL "SCHEDULER|scheduler.0"')
        == "{'type': 'DWRR', 'weight': '14'}\n"
    )
    assert run(device, 'sonic-db-cli CONFIG_DB HGETALL "VLAN_INTERFACE|Vlan1000"') == "{'NULL': 'NULL'}\n"
    assert run(device, 'sonic-db-cli APPL_DB KEYS "PORT_TABLE:*"').splitlines()[0] == "PORT_TABLE:Ethernet0"
    assert run(device, 'redis-cli -n 4 HGET "PORT|Ethernet8" alias') == "etp2\n"
    assert run(device, 'sonic-db-cli STATE_DB HGET "PORT_TABLE|Ethernet0" state') == "ok\n"
    assert run(device, 'sonic-db-cli CONFIG_DB HSET "PORT|Ethernet0" mtu 9216') == "0\n"
    assert run(device, 'sonic-db-cli APPL_DB HGET "PORT_TABLE:Ethernet0" mtu') == "9216\n"
    assert run(device, 'sonic-db-cli CONFIG_DB DEL "WRED_PROFILE|AZURE_LOSSLESS"') == "1\n"
    assert "WRED_PROFILE" not in device.config
    assert "Invalid database name" in run(device, "sonic-db-cli NOPE_DB KEYS x", 1)
    assert "unknown command" in run(device, "sonic-db-cli CONFIG_DB FROB x", 1)


# --- config commands ----------------------------------------------------------------------------


def test_config_interface(make: Make) -> None:
    device = make()
    run(device, "sudo config interface mtu Ethernet0 9216")
    assert run(device, "sonic-cfggen -d -v PORT.Ethernet0.mtu") == "9216\n"
    for mtu in ("67", "9217"):
        text = run(device, f"sudo config interface mtu Ethernet0 {mtu}", 2)
        assert f'Invalid value for "<interface_mtu>": {mtu} is not in the valid range of 68 to 9216.' in text
    assert "9k is not a valid integer" in run(device, "sudo config interface mtu Ethernet0 9k", 2)
    assert run(device, "sudo config interface mtu Ethernet7 9216", 1) == "Invalid port Ethernet7\n"
    load(device, {"PORTCHANNEL": {"PortChannel1": {}}, "PORTCHANNEL_MEMBER": {"PortChannel1|Ethernet8": {}}})
    assert "Error: 'interface_name' is in portchannel!" in run(
        device, "sudo config int mtu Ethernet8 9216", 2
    )
    assert 'No such command "frob".' in run(device, "sudo config interface frob", 2)
    assert "Interface name is invalid" in run(device, "sudo config interface shutdown Ethernet7", 2)


def test_config_pfc(make: Make) -> None:
    device = make()
    run(device, "sudo config interface pfc priority Ethernet0 4 off")
    assert device.config["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] == "3"
    assert "Priority 4 is not enabled on Ethernet0" in run(
        device, "sudo config interface pfc priority Ethernet0 4 off"
    )
    assert "Priority 3 has already been enabled" in run(
        device, "sudo config interface pfc priority Ethernet0 3 on"
    )
    assert "Cannot find interface Ethernet7" in run(
        device, "sudo config interface pfc priority Ethernet7 3 on"
    )
    text = run(device, "sudo config interface pfc priority Ethernet0 8 on", 2)
    assert "invalid choice: 8. (choose from 0, 1, 2, 3, 4, 5, 6, 7)" in text
    run(device, "sudo config interface pfc asymmetric Ethernet0 on")
    assert device.config["PORT"]["Ethernet0"]["pfc_asym"] == "on"


def test_config_pfcwd(make: Make) -> None:
    device = make()
    run(device, "sudo config pfcwd start --action drop Ethernet0 200 --restoration-time 400")
    assert device.config["PFC_WD"] == {"Ethernet0": PFC_WD_ROW}
    assert "default to 2 times detection time: 600 ms" in run(
        device, "sudo config pfcwd start -a drop Ethernet8 300"
    )
    run(device, "sudo config pfcwd interval 200")
    assert device.config["PFC_WD"]["GLOBAL"] == {"POLL_INTERVAL": "200"}
    assert "unable to use polling interval = 250ms" in run(device, "sudo config pfcwd interval 250", 1)
    assert "99 is not in the valid range of 100 to 5000" in run(
        device, "sudo config pfcwd start Ethernet0 99", 2
    )
    assert "invalid choice: block" in run(device, "sudo config pfcwd start -a block Ethernet0 200", 2)
    assert "invalid options:\nEthernet7" in run(device, "sudo config pfcwd start Ethernet7 200", 1)
    run(device, "sudo config pfcwd stop")
    assert device.config["PFC_WD"] == {"GLOBAL": {"POLL_INTERVAL": "200"}}
    bare = make(seed=("noqos",))
    assert "SKIPPED: PFC is not enabled on port: Ethernet0" in run(
        bare, "sudo config pfcwd start Ethernet0 200"
    )
    assert 'No such command "pfc_stat_history".' in run(
        device, "sudo config pfcwd pfc_stat_history enable", 2
    )


def test_config_ecn_hash_and_qos(make: Make) -> None:
    device = make()
    run(device, "sudo config ecn -profile AZURE_LOSSLESS -gmin 150000")
    assert device.config["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_min_threshold"] == "150000"
    assert "Invalid WRED profile X" in run(device, "sudo config ecn -profile X -gmin 1", 1)
    run(
        device,
        "sudo config switch-hash global ecmp-hash 'DST_IP' 'SRC_IP' 'IP_PROTOCOL' 'L4_DST_PORT' 'L4_SRC_PORT'",  # noqa: E501
    )
    assert device.config["SWITCH_HASH"]["GLOBAL"]["ecmp_hash"][0] == "DST_IP"
    assert "invalid choice: BTH" in run(device, "sudo config switch-hash global ecmp-hash BTH", 2)
    run(device, "sudo config qos clear")
    assert not {"PORT_QOS_MAP", "QUEUE", "BUFFER_POOL"} & device.config.keys()
    run(device, "sudo config qos reload")
    assert device.config["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] == "3,4"


# --- the whole way ------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["202305", "202411", "master"])
def test_worked_example_by_load_then_patch(make: Make, branch: str) -> None:
    if sonic_base.missing():
        pytest.skip(str(sonic_base.missing()))
    device = make(branch, seed=("noqos",))
    foreign = {name: rows for name, rows in device.config.items() if name not in ("PORT", "DEVICE_METADATA")}
    example = sonic_base.worked_example()
    load(device, example)
    for name, rows in example.items():
        for key, row in rows.items():
            assert row.items() <= device.config[name][key].items()
    assert {name: device.config[name] for name in foreign} == foreign
    assert words(run(device, "show pfc priority"))[2] == ["Ethernet0", "3"]
    assert words(run(device, "show pfcwd config"))[0] == ["Changed", "polling", "interval", "to", "100ms"]
    patch(device, [{"op": "replace", "path": "/DSCP_TO_TC_MAP/ROCE/24", "value": "3"}])
    patch(device, [{"op": "replace", "path": "/PFC_WD/Ethernet0/detection_time", "value": "300"}])
    assert device.flaps == {}


def test_somebody_else_changes_the_switch(make: Make) -> None:
    device = make()
    device.somebody(
        ("sudo config interface mtu Ethernet0 1500", "sudo config interface pfc priority Ethernet0 4 off")
    )
    assert device.config["PORT"]["Ethernet0"]["mtu"] == "1500"
    assert device.config["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] == "3"


@pytest.mark.parametrize(
    ("line", "commits"),
    [
        ("sudo config apply-patch /tmp/p.json", True),
        ("sudo config load -y /tmp/p.json", True),
        ("sudo -n config rollback a", True),
        ("sudo config apply-patch -d /tmp/p.json", False),
        ("sudo config save -y", False),
        ("show ecn", False),
    ],
)
def test_lines_that_commit(make: Make, line: str, commits: bool) -> None:
    assert make().commits(line) is commits


def test_dump_and_restore(make: Make, clock: Clock) -> None:
    device = make()
    run(device, "sudo config checkpoint a; sudo systemd-run --on-active=60 --unit=undo config rollback a")
    patch(device, [{"op": "replace", "path": "/PORT_QOS_MAP/Ethernet0/pfc_enable", "value": "3"}])
    device.storm("Ethernet0", 3)
    data = json.loads(json.dumps(device.dump()))
    other = make()
    other.restore(data)
    assert other.dump() == device.dump()
    assert other.running() == device.running()
    assert other.flaps == {"Ethernet0": 1}
    clock.now += 61
    other.tick()
    assert other.config["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] == "3,4"


def test_two_switches_of_the_same_facts_are_equal(make: Make) -> None:
    assert make().dump() == make().dump()
