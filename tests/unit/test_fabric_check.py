"""The program that judges a host by its check file: exit codes, text, JSON, and that it writes nothing."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_check import PROGRAM, module

MTU = "/sys/class/net/eth0/mtu"


def probe(**more: Any) -> dict[str, Any]:
    """The MTU of eth0 must be 9000."""
    return {
        "port": "eth0",
        "setting": "mtu",
        "key": "mtu.ip",
        "wanted": "9000",
        "accept": ["9000"],
        "readings": [{"pattern": r"^(\d+)$", "path": MTU}],
        **more,
    }


class Host:
    """A root folder with a check file, judged by the program in a process of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def wants(self, *probes: dict[str, Any], **more: Any) -> None:
        self.write(module().FILE, json.dumps({"version": 1, "scripts": {}, "probes": probes, **more}))

    def run(self, *words: str) -> tuple[int, str]:
        argv = [sys.executable, "-SEs", str(PROGRAM), "--root", str(self.root), *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
        assert done.stderr == ""
        return done.returncode, done.stdout

    def json(self, *words: str) -> dict[str, Any]:
        status, out = self.run("--format", "json", *words)
        found: dict[str, Any] = json.loads(out)
        assert (status == 0) == found["good"]
        return found


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_good_wrong_and_unknown(host: Host) -> None:
    host.wants(probe(), probe(port="eth1", readings=[{"pattern": "(.)", "path": "/gone"}], optional=True))
    host.write(MTU, "9000\n")
    assert host.run() == (0, "fabric-check: all 2 settings are as wanted\n")
    host.write(MTU, "1500\n")
    status, out = host.run()
    assert status == 1
    assert out.splitlines() == ["eth0 mtu: found 1500, wanted 9000", "fabric-check: 2 settings: 1 wrong"]
    host.write(MTU, "what?\n")
    status, out = host.run()
    assert status == 2 and "eth0 mtu: could not be judged: the answer was not understood" in out
    assert "0 wrong, 1 could not be judged" in out


def test_what_is_wrong_goes_before_what_is_unknown(host: Host) -> None:
    host.wants(probe(), probe(port="eth1", readings=[{"pattern": "(.)", "path": "/gone"}]))
    host.write(MTU, "1500\n")
    found = host.json()
    assert [row["port"] for row in found["wrong"]] == ["eth0"]
    (row,) = found["unknown"]
    assert row.pop("why").endswith("/gone: No such file or directory")
    assert row == {"port": "eth1", "setting": "mtu", "key": "mtu.ip"}
    assert host.run()[0] == 1


def test_help_is_told(host: Host) -> None:
    host.wants(probe(help="set it to 9000"))
    host.write(MTU, "1500\n")
    assert "found 1500, wanted 9000; set it to 9000\n" in host.run()[1]
    (row,) = host.json()["wrong"]
    assert row == {
        "port": "eth0", "setting": "mtu", "key": "mtu.ip", "found": "1500", "wanted": "9000",
        "help": "set it to 9000",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "No such file"),
        ("", "Expecting value"),
        ("[]", "is not a check file"),
        ('{"version": 2}', "is of version 2, not 1"),
        ('{"version": 1}', "is damaged"),
        ('{"version": 1, "scripts": {}, "probes": 7}', "is damaged"),
        ('{"version": 1, "scripts": {}, "probes": [{"readings": []}]}', "is damaged"),
        ('{"version": 1, "scripts": {}, "probes": ["x"]}', "is damaged"),
        ("[" * 100_000, "is damaged"),
    ],
)
def test_without_a_check_file_nothing_can_be_judged(text: str | None, told: str, host: Host) -> None:
    if text is not None:
        host.write(module().FILE, text)
    status, out = host.run()
    assert status == 2 and told in out and "Traceback" not in out
    assert told in host.json()["problem"]


def test_programs_and_scripts(host: Host) -> None:
    rows = [
        probe(readings=[{"argv": ["printf", r"mtu 9000\n"], "pattern": r"^mtu (\d+)"}]),
        probe(key="b", readings=[{"argv": ["9000"], "script": "s", "pattern": r"^told (\d+)"}]),
        probe(key="c", readings=[{"argv": ["no-such-tool"], "pattern": "(.)"}, probe()["readings"][0]]),
        probe(key="d", readings=[{"argv": ["sh", "-c", "echo bad >&2; exit 3"], "pattern": "(.)"}]),
        probe(key="e", readings=[{"argv": ["sleep", "60"], "pattern": "(.)"}]),
        probe(key="f", readings=[{"argv": ["no-such-tool"], "pattern": "(.)", "none": "nothing"}]),
    ]
    host.wants(*rows, scripts={"s": 'echo "told $1"'})
    host.write(MTU, "9000\n")
    found = host.json("--timeout", "0.5")
    assert found["wrong"] == [] and found["seconds"] < 10
    assert {row["key"]: row["why"] for row in found["unknown"]} == {
        "d": "sh: exit 3: bad",
        "e": "sleep does not answer",
        "f": "no-such-tool: No such file or directory",
    }


def test_a_program_that_cannot_die_is_not_waited_for(host: Host) -> None:
    """A tool that a driver holds survives SIGKILL: a prolog must end all the same."""
    host.wants(probe(readings=[{"argv": ["sh", "-c", "setsid sleep 20 & wait"], "pattern": "(.)"}]))
    found = host.json("--timeout", "0.3")
    assert found["unknown"][0]["why"] == "sh does not answer" and found["seconds"] < 10


def test_a_terminal_of_few_letters(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.6 under LANG=C writes ASCII alone; an exception would end with the code of a bad host."""
    host.wants(probe(readings=[{"argv": ["printf", "B\u00fcro"], "pattern": "^(.+)$"}], accept=["B\u00fcro"]))
    written = io.BytesIO()
    terminal = io.TextIOWrapper(written, encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert module().main(["--root", str(host.root)]) == 0
    host.wants(probe(readings=[{"argv": ["printf", "B\u00fcro"], "pattern": "^(.+)$"}]))
    assert module().main(["--root", str(host.root)]) == 1
    terminal.flush()
    assert b"found B\\xfcro" in written.getvalue()


def test_another_file(host: Host, tmp_path: Path) -> None:
    host.write("/elsewhere.json", json.dumps({"version": 1, "scripts": {}, "probes": [probe()]}))
    host.write(MTU, "9000\n")
    assert host.run("--file", str(tmp_path / "elsewhere.json"))[0] == 0


# ---------------------------------------------------------------- the program itself


def test_it_is_python_3_6_of_the_standard_library() -> None:
    text = PROGRAM.read_text("utf-8")
    for version in ((3, 6), (3, 7)):
        tree = ast.parse(text, feature_version=version)
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names
    assert text.startswith("#!") and "managed by fabric" in text.splitlines()[1]


def test_it_writes_nothing() -> None:
    """It opens files for reading only and has no call that changes a file system."""
    calls = [node for node in ast.walk(ast.parse(PROGRAM.read_text("utf-8"))) if isinstance(node, ast.Call)]
    opens = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "open"]
    assert [ast.literal_eval(node.args[1]) for node in opens] == ["rb"] * len(opens) != []
    used = {node.func.attr for node in calls if isinstance(node.func, ast.Attribute)}
    assert used.isdisjoint({"unlink", "remove", "rename", "mkdir", "makedirs", "rmdir", "chmod", "symlink"})
