"""What leaves the site holds no secret, and is still understood."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric import platforms
from rdma_fabric.capture.masking import MASK, mask
from rdma_fabric.capture.record import captured, write
from rdma_fabric.cli import main
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.push.journal import Journal
from rdma_fabric.state_dir import state_dir

OBSERVE = Path(__file__).parents[1] / "observe"
SECRET = "S3cret-4711"

LINES = [
    f"username bob privilege 15 secret sha512 $6${SECRET}$Qm9iJ3NTZWNyZXQvMTIz",
    f"enable password {SECRET}",
    f"snmp-server community {SECRET} ro",
    f"tacacs-server host 192.0.2.9 key 7 {SECRET}",
    f"radius-server key {SECRET}",
    f"   neighbor 192.0.2.1 password 7 {SECRET}",
    f"nv set system aaa user bob hashed-password '{SECRET}'",
    f"nv set system snmp-server readonly-community {SECRET} access any",
    f"ntp authentication-key 1 md5 {SECRET}",
    f"ip ospf message-digest-key 1 md5 7 {SECRET}",
    f"  psk={SECRET}",
    f"wifi.psk: {SECRET}",
    f"api_key = '{SECRET}'",
    f"export TOKEN={SECRET}",
    f"https://admin:{SECRET}@192.0.2.1/api",
    f"Authorization token: {SECRET}",
    f'auth_key: "{SECRET}"',
    f"username {SECRET} role operator",
    f"PASSWORD {SECRET}",
]


@pytest.mark.parametrize("line", LINES)
def test_secrets_of_lines(line: str) -> None:
    found = mask(f"interface Ethernet1\n{line}\n   mtu 9214\n")
    assert SECRET not in found
    assert MASK in found
    assert found.startswith("interface Ethernet1\n")
    assert found.endswith("\n   mtu 9214\n")


@pytest.mark.parametrize(
    "data",
    [
        {"SNMP_COMMUNITY": {SECRET: {"TYPE": "RO"}}},
        {"TACPLUS": {"global": {"passkey": SECRET}}},
        {"TACPLUS_SERVER": {"192.0.2.9": {"passkey": SECRET}}},
        {"BGP_NEIGHBOR": {"192.0.2.1": {"auth_password": SECRET, "asn": "1"}}},
        {"system": {"aaa": {"user": {"bob": {"hashed-password": SECRET}}}}},
        {"bob": [{"api-key": SECRET}]},
        {"text": f"snmp-server community {SECRET} ro"},
        {"private_key": f"-----BEGIN KEY-----\n{SECRET}\n-----END KEY-----"},
    ],
)
def test_secrets_of_json(data: Any) -> None:
    found = mask(json.dumps(data))
    assert SECRET not in found
    json.loads(found)


def test_blocks_and_own_secrets() -> None:
    pem = f"x\n-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\nMIIE\n-----END RSA PRIVATE KEY-----\ny"
    assert mask(pem) == f"x\n{MASK}\ny"
    assert mask(f"-----BEGIN X-----\n{SECRET}") == MASK
    assert (
        mask("the word hunter2 is ours", lambda text: text.replace("hunter2", "****"))
        == "the word **** is ours"
    )


@pytest.mark.parametrize(
    "line",
    [
        "priority-flow-control priority 3 no-drop",
        "qos map dscp 26 to traffic-class 3",
        "random-detect ecn minimum-threshold 600 kbytes max-mark-probability 100 weight 0",
        "net.ipv4.tcp_ecn = 1",
        "NCCL_IB_HCA==mlx5_0,mlx5_1",
        "switchport trunk allowed vlan 1-4094",
        "Firmware version: 28.39.1002",
    ],
)
def test_settings_of_ours_stay(line: str) -> None:
    assert mask(line) == line


def _fixtures() -> list[Path]:
    return sorted(path for path in OBSERVE.glob("*/*.yaml") if "\nanswers:" in path.read_text("utf-8"))


@pytest.mark.parametrize("path", _fixtures(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_masked_answers_are_understood_alike(path: Path) -> None:
    data = yaml.safe_load(path.read_text("utf-8"))
    ports = tuple(PortHardware(str(name), speed_gbps=400) for name in data.get("ports", ()))
    key = path.parent.name
    parts = (key,) if platforms.platform(key).part == "base" else ("linux", key)
    hardware = Hardware(parts, str(data.get("model", "")), str(data.get("version", "")), ports)
    answers = {str(question): str(answer) for question, answer in data["answers"].items()}
    assert captured(answers, hardware).same


def test_the_files_are_a_fixture(tmp_path: Path) -> None:
    hardware = Hardware(("sonic",), "ACS-SN5600", "202411", (PortHardware("Ethernet0", speed_gbps=400),))
    config = {"PORT": {"Ethernet0": {"mtu": "9100"}}, "SNMP_COMMUNITY": {SECRET: {"TYPE": "RO"}}}
    question = next(one for one in platforms.questions(hardware) if "cfggen" in one)
    one = captured({question: json.dumps(config), "show version": f"x\ttab \r\npassword {SECRET}"}, hardware)
    write(tmp_path, one)
    text = (tmp_path / "answers.yaml").read_text("utf-8")
    assert SECRET not in text + (tmp_path / "state.json").read_text("utf-8")
    data = yaml.safe_load(text)
    again = captured(data["answers"], hardware)
    assert again.observation.running == one.observation.running
    state = json.loads((tmp_path / "state.json").read_text("utf-8"))
    assert state["masked_is_understood_alike"] is True
    assert state["not_understood"]
    assert (tmp_path / "answers.yaml").stat().st_mode & 0o777 == 0o600


def test_support_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "fabric"
    folder.mkdir()
    (folder / "fabric.yaml").write_text("version: 1\nname: x\n", "utf-8")
    (folder / "hosts.yaml").write_text(f"a: {{connection_options: {{x: {{password: {SECRET}}}}}}}\n", "utf-8")
    state = state_dir(folder)
    journal = Journal(state / "runs" / "k3x9ab")
    journal.append(
        [
            {"event": "start", "run": "k3x9ab", "at": "2026-11-30T12:00:00Z", "kind": "apply"},
            {
                "event": "node",
                "node": "a",
                "phase": "done",
                "status": "failed",
                "detail": f"password {SECRET}",
            },
            {"event": "end", "at": "2026-11-30T12:01:00Z"},
        ]
    )
    journal.close()
    (state / "applied").mkdir()
    (state / "applied/a.json").write_text('{"version": 1, "state": {}}', "utf-8")
    out = tmp_path / "s.tar.gz"
    assert main(["support", "-C", str(folder), "-o", str(out)]) == 0
    with tarfile.open(out) as archive:
        texts = {one.name: archive.extractfile(one).read().decode() for one in archive}  # type: ignore[union-attr]
    assert set(texts) == {
        f"fabric-support-k3x9ab/{name}"
        for name in (
            "about.json",
            "run/journal.jsonl",
            "inputs/fabric.yaml",
            "inputs/hosts.yaml",
            "applied/a.json",
        )
    }
    assert not any(SECRET in text for text in texts.values())
    for line in texts["fabric-support-k3x9ab/run/journal.jsonl"].splitlines():
        json.loads(line)
    assert out.stat().st_mode & 0o777 == 0o600
    assert "journal.jsonl" in capsys.readouterr().out


def test_support_of_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["support", "nope", "-C", str(tmp_path)]) == 2
    assert "no such run" in capsys.readouterr().err
