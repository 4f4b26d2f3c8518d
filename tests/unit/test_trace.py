"""Lines and what makes them: for random lines of every platform the named place of the files is changed on
disk, the fabric is compiled anew, and the line must be another one."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rdma_fabric import platforms
from rdma_fabric.checker import build
from rdma_fabric.cli import main
from rdma_fabric.cli.common import load
from rdma_fabric.findings import InputError, Position
from rdma_fabric.render import compile_fabric
from rdma_fabric.trace import Cause, Sources, Traced, lines_of, trace, variants

ROOT = Path(__file__).parents[2]
CASES = {
    "rocev2": ROOT / "tests/golden/roce-and-cnp/input",
    "two": ROOT / "tests/golden/two-lossless-step-marking/input",
    "infiniband": ROOT / "tests/golden/infiniband/input",
}
SAMPLE = 100


def _nodes() -> Iterator[tuple[str, str, str]]:
    """(platform, case, a node whose files that platform makes)."""
    for case, folder in CASES.items():
        seen: set[str] = set()
        for name, plan in load(folder).plans.items():
            for part in set(plan.hardware.parts) - seen:
                seen.add(part)
                yield part, case, name


NODES = sorted(_nodes())


@pytest.fixture(scope="module")
def traced() -> dict[tuple[str, str], Traced]:
    """Every node once."""
    found = {}
    for case, folder in CASES.items():
        sources, resolved = Sources.read(folder), load(folder)
        for _, its, name in NODES:
            if its == case and (case, name) not in found:
                found[case, name] = trace(sources, resolved, name)
    return found


def test_every_platform_is_here() -> None:
    assert {part for part, _, _ in NODES} == set(platforms.keys())


@pytest.mark.slow
@pytest.mark.parametrize("part", sorted({part for part, _, _ in NODES}))
def test_random_lines(part: str, traced: dict[tuple[str, str], Traced], tmp_path: Path) -> None:
    """Each line names a cause whose change on disk changes that very line, or is constant and says why."""
    todo = [
        (case, name, index)
        for its, case, name in NODES
        if its == part
        for index, line in enumerate(traced[case, name].lines)
        if line.template.startswith((f"{part}/", "_shared/"))
    ]
    picked = random.Random(part).sample(todo, min(SAMPLE, len(todo)))
    assert picked
    for case, name, index in picked:
        found = traced[case, name]
        causes = found.of(index, general=False)
        line = found.lines[index]
        assert causes or line.fixed or not _values(line.text), line
        if causes:
            folder = _changed(CASES[case], causes[0], tmp_path)
            try:
                after = load(folder).plans.get(name)
            except InputError:  # others need the value, too: without it there is no fabric at all
                assert causes[0].how == "presence"
                continue
            assert after is None or found.lines[index].key not in {one.key for one in lines_of(after)}


def _values(text: str) -> bool:
    """True for a line that holds a number or a quoted word, which somebody must have chosen."""
    return any(char.isdigit() for char in text) and not text.lstrip().startswith("#")


def _changed(case: Path, cause: Cause, tmp_path: Path) -> Path:
    """A copy of the case that differs at the place which the cause names; made without the tracer's help."""
    label = (
        f"{cause.position.line}-{cause.position.column}-{cause.how}-{abs(hash((cause.path, cause.tried)))}"
    )
    folder = tmp_path / f"{cause.file}-{label}"
    if folder.exists():
        return folder
    shutil.copytree(case, folder)
    path = folder / cause.file
    if cause.how == "value":
        lines = path.read_text("utf-8").split("\n")
        row, column = cause.position.line - 1, cause.position.column - 1
        before, rest = lines[row][:column], lines[row][column:]
        quote = rest[0] if rest[0] in "\"'" else ""
        old = _spelled(rest, cause.value, quote)
        lines[row] = f"{before}{quote}{cause.tried}{quote}{rest[old:]}"
        path.write_text("\n".join(lines), "utf-8")
    elif path.suffix == ".csv":
        _drop_cell(path, cause)
    else:
        data = yaml.safe_load(path.read_text("utf-8"))
        _drop(data, list(cause.path))
        path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")
    return folder


def _spelled(rest: str, value: str, quote: str) -> int:
    """Length of the value as the file spells it (0x10 is 16)."""
    if quote:
        return rest.index(quote, 1) + 1
    word = rest
    for end in ",}] \t\r":
        word = word.split(end, 1)[0]
    assert word == value or int(word, 0) == int(value), (word, value)
    return len(word)


def _drop(data: object, path: list[object]) -> None:
    for key in path[:-1]:
        data = data[key]  # type: ignore[index]
    del data[path[-1]]  # type: ignore[attr-defined]


def _drop_cell(path: Path, cause: Cause) -> None:
    lines = path.read_text("utf-8").split("\n")
    row = cause.position.line - 1
    if len(cause.path) == 1:
        del lines[row]
    else:
        lines[row] = lines[row][: cause.position.column - 1]
    path.write_text("\n".join(lines), "utf-8")


def test_values_are_named_by_their_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "leaf01", "random-detect ecn", str(ROOT / "inventory/demo")]) == 0
    out = capsys.readouterr().out
    assert "fabric.yaml:15:16  ecn.400G.kmin = 600KB" in out
    assert "below interface Ethernet1/1 > uc-tx-queue 3" in out


def test_constant_lines_say_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "gpu01", "usr/local/sbin/fabric-qos:1", str(ROOT / "inventory/demo")]) == 0
    assert "constant: templates/_shared/host/fabric-qos.sh.j2" in capsys.readouterr().out


def test_the_other_way_round(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["trace", "--source", "fabric.yaml:15", str(ROOT / "inventory/demo"), "--limit", "role=spine"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "on spine[01-02]:" in out
    assert "minimum-threshold 600 kbytes" in out
    assert "mtu" not in out


def test_both_ways_agree() -> None:
    folder = ROOT / "inventory/demo"
    sources, resolved = Sources.read(folder), load(folder)
    whole = trace(sources, resolved, "leaf02")
    for cause in whole.causes[::5]:
        at = Position(str(folder / cause.file), cause.position.line, 1)
        part = trace(sources, resolved, "leaf02", at)
        assert cause in part.causes


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "give NODE and LINE"),
        (["leaf1", "mtu"], 2, "did you mean leaf0"),
        (["leaf01", "xyzzy"], 1, "leaf01 has no line 'xyzzy'"),
        (["--source", "fabric.yaml"], 2, "needs FILE:LINE"),
        (["--source", "fabric.yaml:2"], 1, "makes no device line"),
        (["--source", "fabrik.yaml:2"], 2, "use one of fabric.yaml, hosts.yaml"),
    ],
)
def test_trouble(words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", *words, "-C", str(ROOT / "inventory/demo")]) == code
    assert said in capsys.readouterr().err


def test_annotated_files_lie_beside_and_go_again(tmp_path: Path) -> None:
    folder, out = str(ROOT / "inventory/demo"), tmp_path / "out"
    assert main(["compile", folder, "-o", str(out), "--annotate", "--limit", "leaf01"]) == 0
    text = (out / "leaf01/arista_eos.cfg.trace").read_text("utf-8")
    lines = (out / "leaf01/arista_eos.cfg").read_text("utf-8").splitlines()
    assert all(f"  {line}\n" in text for line in lines if line.strip(" !"))
    assert "ecn.400G.kmin = 600KB" in text
    assert main(["compile", folder, "-o", str(out), "--limit", "leaf01"]) == 0
    assert not (out / "leaf01/arista_eos.cfg.trace").exists()


def test_a_what_if_is_not_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compile", str(ROOT / "inventory/demo"), "-o", str(tmp_path), "--annotate"]
    assert main([*words, "--set", "mtu.host=4200"]) == 2
    assert "cannot trace a what-if" in capsys.readouterr().err


def test_lines_are_those_of_compile() -> None:
    judged = build(load(ROOT / "inventory/demo"))
    for name, files in compile_fabric(judged, ["leaf01", "leaf02", "leaf03", "gpu01"]).items():
        told = {(one.file, one.number): one.text for one in lines_of(judged.resolved.plans[name])}
        for file in files:
            for number, line in enumerate(file.text.splitlines(), 1):
                assert told.get((file.path, number), line) == line


def test_other_values_are_of_the_same_kind() -> None:
    assert list(variants(True)) == [False]
    assert "9000" not in variants("max")
    assert 9000 in list(variants("max"))
    assert "151KB" in list(variants("150KB"))
    assert "pcp" in list(variants("dscp"))
