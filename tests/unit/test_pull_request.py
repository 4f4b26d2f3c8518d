"""The pull-request view: changes, waves, disturbance, findings; and its CI files as CI runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric.cli import main
from rdma_fabric.views.base_markdown import MARK
from rdma_fabric.views.markdown import LIMIT

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "inventory/demo"
SCRIPT = ROOT / "examples/ci/pull-request"
BIN = Path(sys.executable).parent


class Repository:
    """A git repository with the demo fabric in a folder, and a branch."""

    def __init__(self, path: Path) -> None:
        self.path, self.fabric = path, path / "east"
        shutil.copytree(DEMO, self.fabric, ignore=shutil.ignore_patterns(".fabric"))
        self.git("init", "-q", "-b", "main")
        self.commit("base")
        self.git("checkout", "-q", "-b", "change")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
        done = subprocess.run(["git", "-C", str(self.path), *who, *words], check=True, capture_output=True)
        return done.stdout.decode().strip()

    def commit(self, subject: str) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "-m", subject)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.fabric / name
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    def diff(self, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
        assert main(["diff", str(self.fabric), "--base", "main", *words]) == code
        return capsys.readouterr().out

    def json(self, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
        return json.loads(self.diff(capsys, "--format", "json", *words, code=code))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def _groups(data: Any) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in data["groups"]:
        found[one["kind"]] = (*found.get(one["kind"], ()), *one["nodes"])
    return found


def test_nothing_changes(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    data = repository.json(capsys)
    assert (data["groups"], data["waves"], data["disturbs"], data["new"]) == ([], [], [], [])
    assert "**No node changes.**" in repository.diff(capsys, "--format", "markdown")


def test_waves_grow_from_the_core_and_disturbance_is_told(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.edit("defaults.yaml", "planned", "active")
    repository.edit("fabric.yaml", "dscp: [48]", "dscp: [46]")
    repository.edit("fabric.yaml", "priority: 3, dscp", "priority: 4, dscp")
    data = repository.json(capsys)
    order = {name: number for number, wave in enumerate(data["waves"]) for name in wave}
    assert set(order) == {
        *(f"gpu0{n}" for n in range(1, 9)),
        *(f"leaf0{n}" for n in range(1, 5)),
        "spine01",
        "spine02",
    }
    assert order["spine01"] < order["leaf01"] < order["gpu01"]
    assert order["spine01"] != order["spine02"]
    levels = {(node, one["level"]) for one in data["disturbs"] for node in one["nodes"] if one["felt"]}
    assert {("spine01", "port-bounce"), ("gpu01", "port-bounce")} <= levels
    break_ = next(
        one for one in data["disturbs"] if "would move from lossless priority 3 to 4" in one["what"]
    )
    assert {"spine01", "leaf01", "gpu01"} <= set(break_["nodes"])
    text = repository.diff(capsys)
    assert "wave 1: " in text
    assert "spine[01-02]" in text


def test_planned_nodes_are_free(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.edit("fabric.yaml", "priority: 3, dscp", "priority: 4, dscp")
    assert not any(one["felt"] for one in repository.json(capsys)["disturbs"])


def test_renamed_added_and_removed_nodes(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.edit("hosts.yaml", "leaf03: {", "tor03: {")
    repository.edit("cables.csv", "leaf03", "tor03")
    repository.edit("hosts.yaml", "gpu[01-08]", "gpu[02-09]")
    repository.edit("hosts.yaml", "192.0.2.[101-108]", "192.0.2.[102-109]")
    repository.edit("cables.csv", "gpu[01-04]", "gpu[02-05]")
    repository.edit("cables.csv", "gpu[05-08]", "gpu[06-09]")
    data = repository.json(capsys)
    assert _groups(data) == {"renamed": ("tor03",), "added": ("gpu09",), "removed": ("gpu01",)}
    assert [one["was"] for one in data["groups"] if one["kind"] == "renamed"] == [["leaf03"]]
    assert "tor03: renamed (was leaf03)" in repository.diff(capsys)


def test_new_findings_are_told_from_old_ones(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.edit("fabric.yaml", "host: 9000", "host: 1500")
    data = repository.json(capsys, code=1)
    new = {data["findings"][index]["code"] for index in data["new"]}
    assert "FAB021" in new
    text = repository.diff(capsys, "--format", "markdown", code=1)
    assert "### New errors" in text
    assert "FAB021" in text.split("### New errors")[1].split("</details>")[0]
    repository.commit("a fault")
    repository.git("branch", "-f", "main")
    text = repository.diff(capsys, "--format", "markdown", code=1)
    assert "### New errors" not in text
    assert "Errors and warnings of the base too" in text


def test_text_that_changed_by_itself(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """As if an older version had compiled the committed output with another template."""
    out = repository.fabric / "compiled"
    assert main(["compile", str(repository.fabric), "-o", str(out)]) == 0
    capsys.readouterr()
    repository.commit("compiled")
    repository.git("branch", "-f", "main")
    assert repository.json(capsys, "--compiled", "compiled")["groups"] == []
    path = out / "leaf01/arista_eos.cfg"
    path.write_text(path.read_text("utf-8").replace("   qos trust dscp\n", ""), "utf-8")
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    manifest["tool"] = "0.0.1"
    manifest["nodes"]["leaf01"]["files"]["arista_eos.cfg"]["sha256"] = "0" * 64
    (out / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    repository.commit("as an older version had it")
    repository.git("branch", "-f", "main")
    data = repository.json(capsys, "--compiled", "compiled")
    assert _groups(data) == {"rendered": ("leaf01",)}
    assert data["tool"]["base"] == "0.0.1"
    assert "+   qos trust dscp" in data["groups"][0]["lines"]
    assert "compiled by 0.0.1 at main" in repository.diff(capsys, "--compiled", "compiled")


def test_compiled_and_markdown_belong_to_base(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--compiled", "x"], ["--format", "markdown"]):
        assert main(["diff", str(repository.fabric), *words]) == 2
        captured = capsys.readouterr()
        assert "add --base REV" in captured.err + captured.out


# -- size


def _large(folder: Path, mtu: int, *, own: bool) -> None:
    """2,000 hosts in one group, or in 100 groups with a value of their own."""
    rows = []
    for number in range(1, 2001):
        group = f"own{number % 100}" if own else "gpu"
        address = f"10.0.{number // 250}.{number % 250}"
        name = f"node-with-a-rather-long-name-{number:04d}"
        rows.append(f"{name}: {{groups: [{group}], hostname: {address}}}\n")
    (folder / "hosts.yaml").write_text("".join(rows), "utf-8")
    groups = (DEMO / "groups.yaml").read_text("utf-8")
    for number in range(100) if own else ():
        groups += f"own{number}: {{groups: [gpu], data: {{set: {{mtu.host: {mtu + number}}}}}}}\n"
    (folder / "groups.yaml").write_text(groups, "utf-8")
    (folder / "cables.csv").write_text("a_node,a_port,b_node,b_port,length_m\n", "utf-8")
    text = (folder / "fabric.yaml").read_text("utf-8")
    (folder / "fabric.yaml").write_text(re.sub(r"host: \d+\}", f"host: {mtu}}}", text), "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True])
def test_two_thousand_nodes_stay_below_the_limit(
    repository: Repository, own: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    _large(repository.fabric, 4300, own=own)
    repository.commit("large")
    repository.git("branch", "-f", "main")
    _large(repository.fabric, 6400, own=own)
    text = repository.diff(capsys, "--format", "markdown")
    assert len(text.encode()) < LIMIT
    assert "**2000 nodes change**" in text
    assert ("groups more do not fit here" in text) == own


# -- the script, as CI runs it


def _run(words: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}{os.pathsep}{environment.pop('PATH', '')}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_script(repository: Repository, tmp_path: Path) -> None:
    repository.edit("fabric.yaml", "kmin: 600KB", "kmin: 700KB")
    repository.commit("kmin")
    out = tmp_path / "out"
    done = _run([str(SCRIPT), "main", "east", str(out)], repository.path)
    assert (done.returncode, done.stderr) == (0, "")
    text = (out / "comment.md").read_text("utf-8")
    assert text.startswith(MARK)
    assert "**6 nodes change**" in text
    assert "kmin 700KB" in text
    assert json.loads((out / "findings.sarif").read_text("utf-8"))["version"] == "2.1.0"
    assert (out / "junit.xml").read_text("utf-8").startswith("<?xml")


def test_the_script_on_errors_and_on_what_cannot_be_loaded(repository: Repository, tmp_path: Path) -> None:
    repository.edit("fabric.yaml", "host: 9000", "host: 1500")
    out = tmp_path / "out"
    assert _run([str(SCRIPT), "main", "east", str(out)], repository.path).returncode == 1
    assert "New errors" in (out / "comment.md").read_text("utf-8")
    repository.edit("fabric.yaml", "priority: 3,", "priority: 33,")
    assert _run([str(SCRIPT), "main", "east", str(out)], repository.path).returncode == 2
    text = (out / "comment.md").read_text("utf-8")
    assert text.startswith(MARK)
    assert "33" in text
    done = _run([str(SCRIPT), "no-such-revision", "east", str(out)], repository.path)
    assert done.returncode == 2
    assert "fetch-depth: 0" in done.stderr


# -- GitHub's composite action


def _steps() -> dict[str, Mapping[str, Any]]:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    assert action["runs"]["using"] == "composite"
    return {step["name"]: step for step in action["runs"]["steps"]}


def _values(step: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """The step's environment with its expressions filled in."""

    def fill(text: str) -> str:
        return re.sub(r"\$\{\{ *([a-z_.]+) *\}\}", lambda found: values[found[1]], text)

    return {name: fill(str(text)) for name, text in step.get("env", {}).items()}


_GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$GH_LOG"
case "$*" in *--paginate*) cat "$GH_OLD" ;; esac
"""


def test_the_action_as_github_runs_it(repository: Repository, tmp_path: Path) -> None:
    repository.edit("fabric.yaml", "kmin: 600KB", "kmin: 700KB")
    repository.commit("kmin")
    steps = _steps()
    temp, tools = tmp_path / "temp", tmp_path / "tools"
    (temp / "fabric-venv/bin").mkdir(parents=True)
    (temp / "fabric-venv/bin/fabric").symlink_to(BIN / "fabric")  # the wheel's install is tested elsewhere
    tools.mkdir()
    (tools / "gh").write_text(_GH, "utf-8")
    (tools / "gh").chmod(0o755)
    output, summary, log, old = (tmp_path / name for name in ("output", "summary", "log", "old"))
    for path in (output, summary, log, old):
        path.touch()
    common = {
        "RUNNER_TEMP": str(temp),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GH_LOG": str(log),
        "GH_OLD": str(old),
        "PATH": str(tools),
    }
    values = {
        "inputs.base": "main",
        "inputs.directory": "east",
        "inputs.compiled": "",
        "inputs.token": "t0ken",
        "inputs.package": str(ROOT),
        "github.action_path": str(ROOT),
        "github.repository": "o/r",
        "github.event.pull_request.number": "7",
    }

    def step(name: str) -> subprocess.CompletedProcess[str]:
        one = steps[name]
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", one["run"]]
        return _run(words, repository.path, **common, **_values(one, values))

    assert step("Judge").returncode == 0
    found = dict(line.split("=", 1) for line in output.read_text("utf-8").splitlines())
    assert found["code"] == "0"
    assert "kmin 700KB" in summary.read_text("utf-8")
    values |= {"steps.judge.outputs.comment": found["comment"], "steps.judge.outputs.code": found["code"]}
    assert step("Comment").returncode == 0
    assert "--method POST repos/o/r/issues/7/comments" in log.read_text("utf-8")
    assert "t0ken" not in log.read_text("utf-8")
    old.write_text("4711\n", "utf-8")
    assert step("Comment").returncode == 0
    assert "--method PATCH repos/o/r/issues/comments/4711" in log.read_text("utf-8")
    assert step("Verdict").returncode == 0
    values["steps.judge.outputs.code"] = "1"
    assert step("Verdict").returncode == 1
    assert set(steps) == {"Install", "Judge", "Comment", "Verdict"}


def test_every_expression_of_the_action_is_filled() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    action = yaml.safe_load(text)
    for name in re.findall(r"inputs\.([a-z]+)", text):
        assert name in action["inputs"]
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"], "values reach a script by its environment, never by its text"


# -- GitLab, pre-commit, container


def test_the_gitlab_job_as_gitlab_runs_it(repository: Repository, tmp_path: Path) -> None:
    repository.edit("fabric.yaml", "kmin: 600KB", "kmin: 700KB")
    repository.commit("kmin")
    job = yaml.safe_load((ROOT / "examples/ci/gitlab.yml").read_text("utf-8"))["fabric"]
    tools = tmp_path / "tools"
    tools.mkdir()
    log = tmp_path / "log"
    (tools / "curl").write_text('#!/usr/bin/env bash\n{ echo "$*"; cat; } >>"$CURL_LOG"\n', "utf-8")
    (tools / "curl").chmod(0o755)
    values = {name: str(value) for name, value in job["variables"].items()} | {
        "FABRIC_DIR": "east",
        "FABRIC_SCRIPT": str(SCRIPT),
        "FABRIC_COMMENT_TOKEN": "t0ken",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": repository.git("rev-parse", "main"),
        "CI_API_V4_URL": "https://gitlab.example/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "CURL_LOG": str(log),
        "PATH": str(tools),
    }
    done = _run(["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])], repository.path, **values)
    assert done.returncode == 0, done.stderr
    told = log.read_text("utf-8")
    assert "https://gitlab.example/api/v4/projects/3/merge_requests/7/notes" in told
    assert "t0ken" not in told.splitlines()[0], "secrets are not in argument lists"
    assert "PRIVATE-TOKEN: t0ken" in told
    for path in job["artifacts"]["paths"]:
        assert (repository.path / path / "comment.md").exists()
    assert (repository.path / job["artifacts"]["reports"]["junit"]).exists()


def test_the_pre_commit_hook(repository: Repository) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    pattern = re.compile(hook["files"])
    assert all(
        pattern.search(f"east/{path.name}") for path in DEMO.iterdir() if path.suffix in (".yaml", ".csv")
    )
    assert not pattern.search("east/readme.md")
    assert _run([*hook["entry"].split()], repository.fabric).returncode == 0
    repository.edit("fabric.yaml", "host: 9000", "host: 1500")
    assert _run([*hook["entry"].split()], repository.fabric).returncode == 1


def test_the_container_file_names_what_there_is() -> None:
    text = (ROOT / "Containerfile").read_text("utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for name in re.findall(r'"/src\[([a-z,]+)\]"', text)[0].split(","):
        assert name in extras
    assert 'ENTRYPOINT ["fabric"]' in text
