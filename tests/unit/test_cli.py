"""The command line as a whole: overview, exit codes without a device, odd arguments, no traceback."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdma_fabric import __version__
from rdma_fabric.checker import build
from rdma_fabric.cli import COMMANDS, common, main
from rdma_fabric.resolve import Resolved
from rdma_fabric.state import Observation
from rdma_fabric.transport.errors import Failure
from tests.support.desk import Desk, Ran, desk

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "inventory" / "demo"


@pytest.fixture
def fabric(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`fabric WORDS` in this process."""

    def run(*words: str | Path) -> Ran:
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert "fault of fabric itself" not in err, err
        return Ran(code, out, err)

    return run


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns(".fabric")))


def _edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


Fabric = Callable[..., Ran]


class TestOverview:
    """`fabric` without a command."""

    def test_help_names_every_command(self, fabric: Fabric) -> None:
        ran = fabric("--help")
        assert ran.code == 0
        assert all(f"\n  {name} " in ran.out for name in COMMANDS)
        assert fabric().code == 2
        assert fabric("--version").out == f"fabric {__version__}\n"

    def test_every_command_has_a_module_and_help(self, fabric: Fabric) -> None:
        modules = {path.stem for path in (ROOT / "compiler/rdma_fabric/cli").glob("*.py")}
        assert set(COMMANDS) <= modules
        for name in COMMANDS:
            ran = fabric(name, "--help")
            assert ran.code == 0
            assert f"usage: fabric {name}" in ran.out

    def test_unknown_words(self, fabric: Fabric) -> None:
        ran = fabric("chekc")
        assert ran.code == 2
        assert "did you mean check?" in ran.err
        assert fabric("check", "--colour").code == 2
        assert fabric("check", "--format", "xml").code == 2
        assert fabric("apply", "--workers", "0").code == 2
        assert fabric("apply", "--timer", "-5").code == 2


class TestCheck:
    """0 no errors, 1 errors, 2 bad input."""

    def test_codes(self, fabric: Fabric, demo: Path) -> None:
        assert fabric("check", demo).code == 0
        _edit(demo / "fabric.yaml", "host: 9000", "host: 1500")
        ran = fabric("check", demo)
        assert ran.code == 1
        assert "error[FAB021]" in ran.out
        assert f"{demo}/fabric.yaml:" in ran.out
        _edit(demo / "fabric.yaml", "host: 1500", "host: -1")
        ran = fabric("check", demo)
        assert (ran.code, ran.out) == (2, "")
        assert "error[FAB005]" in ran.err

    def test_what_if(self, fabric: Fabric, demo: Path) -> None:
        assert fabric("check", demo, "--set", "mtu.host=1500").code == 1
        assert fabric("check", demo, "--set", "gpu01:eth0:mtu.host=1500").code == 1
        assert fabric("check", demo, "--set", "gpu99:mtu.host=1500").code == 2
        assert fabric("check", demo, "--set", "mtu.host").code == 2
        assert fabric("check", demo, "--unset", "dcqcn", "--limit", "spine01").code == 0

    def test_json_in_every_case(self, fabric: Fabric, demo: Path) -> None:
        assert json.loads(fabric("check", demo, "--format", "json").out)["version"] == 1
        (demo / "hosts.yaml").unlink()
        ran = fabric("check", demo, "--format", "json")
        assert ran.code == 2
        (one,) = json.loads(ran.out)["findings"]
        assert (one["code"], one["position"]["file"]) == ("FAB001", str(demo / "hosts.yaml"))

    def test_all_files_are_told_at_once(self, fabric: Fabric, tmp_path: Path) -> None:
        ran = fabric("check", tmp_path)
        assert ran.code == 2
        assert "fabric.yaml" in ran.err
        assert "hosts.yaml" in ran.err

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1, "nodes": {"zz": {"running": {}}}}'])
    def test_bad_observations(self, text: str, fabric: Fabric, demo: Path, tmp_path: Path) -> None:
        (tmp_path / "seen.json").write_text(text, encoding="utf-8")
        assert fabric("check", demo, "--observed", tmp_path / "seen.json").code == 2
        assert fabric("check", demo, "--observed", tmp_path / "none.json").code == 2


class TestCompile:
    """0 all written, 1 some rejected, 2 bad input."""

    def test_codes(self, fabric: Fabric, demo: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        ran = fabric("compile", demo, "-o", out)
        assert ran.code == 0
        assert ran.out.startswith("14 nodes compiled: ")
        bad = ("--set", "gpu01:mtu.host=1500")
        ran = fabric("compile", demo, "-o", tmp_path / "strict", "--strict", *bad, "--format", "json")
        assert (ran.code, (tmp_path / "strict").exists()) == (1, False)
        assert json.loads(ran.out)["written"] == 0
        ran = fabric("compile", demo, "-o", out, *bad)
        assert ran.code == 1
        assert ran.out.endswith("rejected: gpu01\n")
        assert not (out / "gpu01").exists()
        assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["rejected"] == ["gpu01"]
        assert fabric("compile", demo, "-o", demo).code == 2
        assert fabric("compile", demo).code == 2

    def test_limit_keeps_the_others(self, fabric: Fabric, demo: Path, tmp_path: Path) -> None:
        fabric("compile", demo, "-o", tmp_path / "out")
        ran = fabric("compile", demo, "-o", tmp_path / "out", "--limit", "leaf01", "--format", "json")
        data = json.loads(ran.out)
        assert (data["nodes"], data["removed"], ran.code) == (1, 0, 0)
        assert (tmp_path / "out" / "gpu08").is_dir()


class TestDiffBase:
    """The pull-request view: git, no device."""

    @pytest.fixture
    def repository(self, demo: Path) -> Path:
        for words in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=t", "-c", "user.email=t@example.net", "commit", "-q", "-m", "one"],
        ):
            subprocess.run(["git", "-C", demo, *words], check=True)
        return demo

    def test_codes(self, fabric: Fabric, repository: Path) -> None:
        ran = fabric("diff", repository, "--base", "HEAD", "--exit-code")
        assert (ran.code, ran.out) == (0, "no node changes against HEAD\n")
        _edit(repository / "fabric.yaml", "host: 9000", "host: 8000")
        ran = fabric("diff", repository, "--base", "HEAD")
        assert ran.code == 0
        assert "gpu[01-08]: changed" in ran.out
        assert "eth[0-1] mtu: 9000 -> 8000" in ran.out
        assert ran.out.rstrip().endswith("8 nodes change against HEAD, in 1 group")
        assert fabric("diff", repository, "--base", "HEAD", "--exit-code").code == 1
        assert json.loads(fabric("diff", repository, "--base", "HEAD", "--format", "json").out)["groups"]
        assert fabric("diff", repository, "--base", "HEAD", "--limit", "leaf01", "--exit-code").code == 0
        _edit(repository / "fabric.yaml", "host: 8000", "host: 1500")
        assert fabric("diff", repository, "--base", "HEAD").code == 1

    def test_a_node_that_only_the_device_can_plan_is_named(self, fabric: Fabric, repository: Path) -> None:
        _edit(repository / "fabric.yaml", "kmax: 2400KB", "kmax: 3MB")
        data = json.loads(fabric("diff", repository, "--base", "HEAD", "--format", "json").out)
        planned = {name for wave in data["waves"] for name in wave}
        changed = {name for group in data["groups"] for name in group["nodes"]}
        assert data["unplanned"] and planned.isdisjoint(data["unplanned"])
        assert planned | set(data["unplanned"]) == changed
        for format in ("text", "markdown"):
            out = fabric("diff", repository, "--base", "HEAD", "--format", format).out
            assert re.search(r"leaf03.*: wave and disturbance are not known", out)

    def test_a_node_that_came_and_one_that_went(self, fabric: Fabric, repository: Path) -> None:
        line = 'gpu[01-08]: {groups: [gpu], hostname: "192.0.2.[101-108]"}'
        _edit(repository / "hosts.yaml", line, "gpu[02-08]: {groups: [gpu]}\nnew1: {groups: [gpu]}")
        _edit(
            repository / "cables.csv",
            "gpu[01-04],eth0,leaf01,Ethernet[1-4]/1",
            "gpu02,eth0,leaf01,Ethernet2/1",
        )
        _edit(
            repository / "cables.csv",
            'gpu[01-04],eth1,leaf02,"Ethernet[0,8,16,24]"',
            "gpu02,eth1,leaf02,Ethernet8",
        )
        ran = fabric("diff", repository, "--base", "HEAD")
        assert "new1: added" in ran.out
        assert "gpu01: removed" in ran.out

    def test_trouble(self, fabric: Fabric, repository: Path, tmp_path: Path) -> None:
        assert fabric("diff", repository, "--base", "nosuch").code == 2
        assert fabric("diff", repository, "--base=-x").code == 2
        _edit(repository / "fabric.yaml", "host: 9000", "host: 12")
        subprocess.run(["git", "-C", repository, "-c", "user.name=t", "-c", "user.email=t@example.net",
                        "commit", "-qam", "two"], check=True)  # fmt: skip
        _edit(repository / "fabric.yaml", "host: 12", "host: 9000")
        ran = fabric("diff", repository, "--base", "HEAD")
        assert ran.code == 2
        assert "--> HEAD:fabric.yaml:6:" in ran.err
        shutil.rmtree(repository / ".git")
        ran = fabric("diff", repository, "--base", "HEAD")
        assert ran.code == 2
        assert "is in no git repository" in ran.err

    def test_lines_that_stay_are_not_shown_as_changed(self, fabric: Fabric, repository: Path) -> None:
        _edit(repository / "fabric.yaml", "{priority: 3, dscp: [26]", "{priority: 4, dscp: [24]")
        ran = fabric("diff", repository, "--base", "HEAD", "--limit", "leaf01,leaf02,spine01")
        lines = [line.strip() for line in ran.out.splitlines()]
        gone = {line[1:] for line in lines if line.startswith("-   ")}
        come = {line[1:] for line in lines if line.startswith("+   ")}
        assert gone and not gone & come
        assert "DSCP map: 26->3, 48->6, rest->0 => 24->4, 48->6, rest->0" in ran.out


class TestSmallCommands:
    """init, explain, schema, runs."""

    def test_init_passes_check(self, fabric: Fabric, tmp_path: Path) -> None:
        ran = fabric("init", tmp_path / "new")
        assert ran.code == 0
        assert "next: fabric check" in ran.err
        assert fabric("init", "-q", tmp_path / "quiet").err == ""
        assert fabric("check", "-C", tmp_path / "new").code == 0
        assert fabric("init", tmp_path / "new").code == 2
        (tmp_path / "file").write_text("", encoding="utf-8")
        assert fabric("init", tmp_path / "file").code == 2

    def test_explain(self, fabric: Fabric) -> None:
        assert "FAB021" in fabric("explain").out
        ran = fabric("explain", "FAB021")
        assert ran.code == 0
        assert "Why it breaks RDMA" in ran.out
        assert fabric("explain", "mtu-below-rdma").out == ran.out
        ran = fabric("explain", "mtu-below-rmda")
        assert ran.code == 2
        assert "did you mean mtu-below-rdma?" in ran.err
        assert json.loads(fabric("explain", "--format", "json").out)["rules"]
        for word, code in (("FAB021", "FAB021"), ("fab005", "FAB005"), ("unknown-key", "FAB006")):
            assert json.loads(fabric("explain", word, "--format", "json").out)["code"] == code

    def test_schema_fits_the_examples(self, fabric: Fabric) -> None:
        for what, file in (
            ("intent", "fabric.yaml"),
            ("inventory", "hosts.yaml"),
            ("inventory", "groups.yaml"),
        ):
            ran = fabric("schema", what)
            assert ran.code == 0
            schema = json.loads(ran.out)
            jsonschema.Draft202012Validator.check_schema(schema)
            for folder in (DEMO, ROOT / "inventory" / "gpu-pod"):
                data = yaml.safe_load((folder / file).read_text(encoding="utf-8"))
                jsonschema.validate(data, schema)
        assert fabric("schema", "nothing").code == 2


def test_folder_by_option_or_word(fabric: Fabric, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fabric("check", "-C", demo).code == 0
    monkeypatch.chdir(demo)
    assert fabric("check").code == 0


def test_a_closed_pipe_is_no_trouble() -> None:
    program = "from rdma_fabric.cli import main; raise SystemExit(main())"
    for words in ("explain", "check /nowhere --format json"):
        command = f"{sys.executable} -c '{program}' {words} | true"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (RuntimeError("odd"), 2, "this is a fault of fabric itself; FABRIC_DEBUG=1 shows where"),
        (RecursionError(), 2, "fault of fabric itself"),
    ],
)
def test_what_nobody_expected(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.delenv("FABRIC_DEBUG", raising=False)
    monkeypatch.setattr(common, "load", fail)
    assert main(["check", "."]) == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


WORDS = (
    "-C", "DIR", "--format", "json", "text", "--limit", "gpu01", "role=leaf", "zz=1", "[", "leaf[01-02]",
    "--set", "mtu.host=1500", "mtu=", "=", "a:b:c=d", "gpu01:eth0:mtu.host=9", "classes={}", "ecn=[1]",
    "--unset", "ecn", "mtu.host", "x", "", "--strict", "-o", "out", "/dev/null/x", "-", "--base", "HEAD",
    "-q", "-v", "--no-color", "--yes", "--dry-run", "--plan", "fabric.yaml", "--allow", "loss", "reboot",
    "--include", "maintenance", "--assume-drained", "gpu*", "--exit-code", "--timer", "0", "9", "--workers",
    "5", "--observed", "seen.json", "--live", "intent", "FAB021", "FAB999", "abc", "\u00e9\u202e", "--help",
    "--",
)  # fmt: skip
DRIVEN = tuple(name for name in COMMANDS if name not in ("lab", "hostkeys"))


@settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(command=st.sampled_from(DRIVEN), words=st.lists(st.sampled_from(WORDS), max_size=5))
def test_odd_arguments_end_in_a_code(command: str, words: list[str], table: Desk) -> None:
    ran = table.plain(command, *(str(table.folder) if word == "DIR" else word for word in words))
    assert ran.code in (0, 1, 2)
    if ran.code == 2:
        assert ran.err or ran.out.startswith("{")
    assert "Traceback" not in ran.err


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    found = desk(tmp_path / "fabric", monkeypatch, capsys)
    monkeypatch.chdir(found.folder)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    return found


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["nonsense"], ["check", "--help"]])
def test_help_is_quick(words: list[str]) -> None:
    """Nothing is loaded that only a running command needs."""
    program = (
        "import sys; from rdma_fabric.cli import main; main(sys.argv[1:]); "
        "heavy = {'pydantic', 'yaml', 'jinja2', 'netmiko', 'nornir', 'ansible_runner', 'asyncssh'}; "
        "sys.exit(', '.join(sorted(heavy & sys.modules.keys())) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--live"),
        ("observe", "-o", "-"),
        ("diff",),
        ("apply", "--yes"),
        ("drift",),
        ("verify",),
        ("admit", "gpu01"),
        ("capture", "gpu01"),
        ("hostkeys",),
    ],
)
def test_a_lab_that_is_not_up_is_no_fault_of_ours(
    words: tuple[str, ...], fabric: Callable[..., Ran], tmp_path: Path
) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(DEMO, folder, ignore=shutil.ignore_patterns(".fabric"))
    ran = fabric(*words, "--lab", "-C", folder)
    assert ran.code == 2
    assert f"no lab is up in {folder}" in ran.err and "`fabric lab up`" in ran.err


@pytest.mark.parametrize(("unread", "code"), [((), 0), (("gpu01",), 1), (("gpu01", "gpu02"), 2)])
def test_a_live_check_that_read_nothing_is_trouble(
    unread: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def observe(
        options: object, resolved: Resolved, names: tuple[str, ...], out: object
    ) -> tuple[dict[str, Observation], dict[str, Failure]]:
        views = build(resolved).views
        seen = {name: Observation(views[name].wanted, stored=views[name].wanted) for name in names}
        seen = {name: one for name, one in seen.items() if name not in unread}
        return seen, {name: Failure(name, "unreachable", "no route to host") for name in unread}

    monkeypatch.setattr("rdma_fabric.cli.live.observe", observe)
    assert main(["check", str(DEMO), "--live", "--limit", "gpu01,gpu02"]) == code
    err = capsys.readouterr().err
    assert all(f"{name}: unreachable: no route to host" in err for name in unread)
