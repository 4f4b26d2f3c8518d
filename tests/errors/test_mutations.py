"""At least 500 broken or harmless variants of the example's five files, through all of `fabric check`."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.cli import main
from tests.support import mutations
from tests.support.mutations import FILES, Mutant, Texts

EXAMPLE = Path(__file__).parents[2] / "inventory/demo"
FAULTY = ("host: 9000", "host: 1500")
"""What harmless changes are made to: a fabric with errors, so that "the same findings" says something."""
REFERENCE = "FAB008"
OTHER = "other"
MOST = None if os.environ.get("FABRIC_ALL_MUTANTS") == "1" else 64
"""Mutants of a family that are tried, spread evenly over it; FABRIC_ALL_MUTANTS=1 tries all 4,300."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A copy of the example; every test puts back what it changes."""
    with tempfile.TemporaryDirectory(prefix="fabric-mutations-") as name:
        for file in FILES:
            shutil.copy(EXAMPLE / file, name)
        yield Path(name)


@pytest.fixture(scope="module")
def texts() -> Texts:
    return {file: (EXAMPLE / file).read_text("utf-8") for file in FILES}


def _faulty(texts: Texts) -> Texts:
    assert FAULTY[0] in texts["fabric.yaml"]
    return {**texts, "fabric.yaml": texts["fabric.yaml"].replace(*FAULTY)}


class Run:
    """One `fabric check` in this process: exit code, outputs, findings."""

    def __init__(self, folder: Path, capfd_read: Callable[[], tuple[str, str]]) -> None:
        self.code = main(["check", str(folder), "--format", "json", "--no-color"])
        self.out, self.err = capfd_read()
        self.findings: list[dict[str, Any]] = json.loads(self.out)["findings"] if self.out else []

    def at(self, one: dict[str, Any]) -> tuple[str, int]:
        """File and line of a finding."""
        at = one["position"] or {"file": "", "line": 0}
        return Path(at["file"]).name, at["line"]

    @property
    def facts(self) -> list[dict[str, Any]]:
        """The findings without where they were written."""
        return [{key: value for key, value in one.items() if key != "position"} for one in self.findings]


def _complaints(run: Run, mutant: Mutant, sound: Run) -> Iterator[str]:
    """What is wrong with the answer to a mutant."""
    if run.code not in (0, 1, 2) or not run.out:
        yield f"exit code {run.code}, {run.err.strip()[-300:]}"
        return
    if mutant.fate == "same" and (run.code, run.facts) != (sound.code, sound.facts):
        yield f"is harmless, but exit code {run.code} (was {sound.code}): {_told(run)}"
    if mutant.fate == "refused" and run.code != 2:
        yield f"was not refused: exit code {run.code}"
    if run.code == 2:
        yield from _misplaced(run, mutant)
    if "\x1b" in run.out or not run.out.isascii() or "Traceback" in run.err:
        yield "prints what a terminal would obey"


def _misplaced(run: Run, mutant: Mutant) -> Iterator[str]:
    for one in run.findings:
        file, line = run.at(one)
        if file == mutant.file and line in mutant.lines:
            continue
        if file in mutant.elsewhere and one["code"] == REFERENCE:
            continue
        yield f"blames {file}:{line}: {one['code']} {one['message'][:120]}"
    places = [one["position"] for one in run.findings]
    if not places:
        yield "refused without a finding"
    if places != sorted(places, key=lambda at: (at["file"], at["line"], at["column"])):
        yield "findings are not sorted by position"
    if not all(one["help"] for one in run.findings):
        yield "a finding says no next step"
    if mutant.code and mutant.code not in {one["code"] for one in run.findings}:
        yield f"wanted code {mutant.code}: {_told(run)}"
    if mutant.says and not any(mutant.says in one["message"] + one["help"] for one in run.findings):
        yield f"nobody says {mutant.says!r}: {_told(run)}"


def _told(run: Run) -> str:
    return "; ".join(
        f"{run.at(one)} {one['code']} {one['message'][:100]} ({one['help'][:60]})" for one in run.findings[:4]
    )


def _chosen(family: Callable[[Texts], Iterator[Mutant]], texts: Texts) -> list[Mutant]:
    """The family's mutants, thinned out where there are many."""
    found = list(family(texts))
    if MOST is None or len(found) <= MOST:
        return found
    return [found[index * len(found) // MOST] for index in range(MOST)]


def test_there_are_enough_mutants(texts: Texts) -> None:
    chosen = [one for family in mutations.FAMILIES for one in _chosen(family, texts)]
    assert len({(one.file, one.content) for one in chosen}) >= 500
    assert {one.file for one in chosen} == set(FILES)
    assert all(one.content != texts[one.file].encode() for one in chosen)


@pytest.fixture
def read(capfd: pytest.CaptureFixture[str]) -> Callable[[], tuple[str, str]]:
    """What was printed since the last call."""

    def read() -> tuple[str, str]:
        got = capfd.readouterr()
        return got.out, got.err

    return read


@pytest.fixture(autouse=True)
def _put_back(folder: Path, texts: Texts) -> Iterator[None]:
    yield
    for file in (*FILES, OTHER):
        path = folder / file
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        elif os.path.lexists(path):
            path.unlink()
        if file != OTHER:
            path.write_text(texts[file], "utf-8")


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(one, id=one.__name__, marks=[pytest.mark.slow] if one is mutations.huge_files else [])
        for one in mutations.FAMILIES
    ],
)
def test_mutants(
    family: Callable[[Texts], Iterator[Mutant]],
    folder: Path,
    texts: Texts,
    read: Callable[[], tuple[str, str]],
) -> None:
    base = _faulty(texts) if family.__name__.startswith("harmless") else texts
    for file, text in base.items():
        (folder / file).write_text(text, "utf-8")
    sound = Run(folder, read)
    assert sound.code == (0 if base is texts else 1), sound.err
    wrong = []
    for mutant in _chosen(family, base):
        (folder / mutant.file).write_bytes(mutant.content)
        run = Run(folder, read)
        wrong += [f"{mutant.name[:100]}: {text}" for text in _complaints(run, mutant, sound)]
        (folder / mutant.file).write_text(base[mutant.file], "utf-8")
    assert not wrong, f"{len(wrong)} complaints:\n" + "\n".join(wrong)


def test_text_output_holds_nothing_that_a_terminal_obeys(
    folder: Path, texts: Texts, capfd: pytest.CaptureFixture[str]
) -> None:
    for mutant in (*_chosen(mutations.names, texts), *_chosen(mutations.invisible_characters, texts)):
        (folder / mutant.file).write_bytes(mutant.content)
        main(["check", str(folder), "-v"])
        said = "".join(capfd.readouterr())
        odd = {char for char in said if not char.isprintable() and char != "\n"}
        assert not odd, (mutant.name, odd)
        (folder / mutant.file).write_text(texts[mutant.file], "utf-8")


# -- files that are no files


def _directory(path: Path) -> None:
    path.mkdir()


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _ring(path: Path) -> None:
    path.symlink_to(OTHER)
    (path.parent / OTHER).symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _empty(path: Path) -> None:
    path.touch()


def _gone(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize("make", [_directory, _loop, _ring, _dangling, _pipe, _device, _empty, _gone])
@pytest.mark.parametrize("file", FILES)
def test_no_usable_file(
    file: str, make: Callable[[Path], None], folder: Path, read: Callable[[], tuple[str, str]]
) -> None:
    (folder / file).unlink()
    make(folder / file)
    run = Run(folder, read)
    if (file, make) == ("defaults.yaml", _gone):
        assert run.code == 0, run.err
        return
    assert run.code == 2, run.err
    if (file, make) == ("groups.yaml", _gone):  # nobody has to have groups, but these nodes name some
        assert {(run.at(one)[0], one["code"]) for one in run.findings} == {("hosts.yaml", REFERENCE)}
        return
    (finding,) = run.findings
    assert (run.at(finding)[0], finding["help"] != "") == (file, True)
    assert run.at(finding)[1] in (0, 1)


@pytest.mark.parametrize("file", FILES)
def test_unreadable_file(
    file: str, folder: Path, read: Callable[[], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def refuse(self: Path, *words: Any, **more: Any) -> Any:
        if self == folder / file:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return real(self, *words, **more)

    # Not chmod: the superuser, as which CI runs, may read everything.
    monkeypatch.setattr(Path, "open", refuse)
    run = Run(folder, read)
    assert run.code == 2
    (finding,) = run.findings
    assert run.at(finding) == (file, 0)
    assert "permission denied" in finding["message"]


def test_all_files_wrong_at_once(folder: Path, read: Callable[[], tuple[str, str]], texts: Texts) -> None:
    for file in FILES:
        (folder / file).write_text("a: [\n" if file.endswith("yaml") else "a;b\n", "utf-8")
    run = Run(folder, read)
    assert run.code == 2
    assert [run.at(one)[0] for one in run.findings] == sorted(FILES)


def test_no_folder(read: Callable[[], tuple[str, str]], tmp_path: Path) -> None:
    run = Run(tmp_path / "nowhere", read)
    assert run.code == 2
    assert {run.at(one)[0] for one in run.findings} == {"fabric.yaml", "hosts.yaml", "cables.csv"}


# -- the real program


def _program(folder: Path) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-c", "import sys; from rdma_fabric.cli import main; sys.exit(main())"]
    return subprocess.run(
        [*words, "check", str(folder)], capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False
    )


PROGRAM = (
    ("hosts.yaml", b"\xff\xfe\x00", b"UTF-16"),
    ("fabric.yaml", b"version: 1\nname: x\nrdma: {mtu: 026}\n", b"leading zero"),
    ("groups.yaml", b"a: " + b"[" * 100_000, b"nested too deep"),
    ("cables.csv", b"a_node,a_port,b_node,b_port,length_m\n\x1b[2J\n", b"U+001B"),
)


@pytest.mark.parametrize(("file", "content", "says"), PROGRAM)
def test_the_program_itself(file: str, content: bytes, says: bytes, folder: Path) -> None:
    (folder / file).write_bytes(content)
    done = _program(folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert says in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stderr


def test_the_program_itself_is_content(folder: Path) -> None:
    (folder / "fabric.yaml").write_bytes(
        b"\xef\xbb\xbf" + (folder / "fabric.yaml").read_bytes().replace(b"\n", b"\r\n")
    )
    done = _program(folder)
    assert done.returncode == 0, done.stderr
