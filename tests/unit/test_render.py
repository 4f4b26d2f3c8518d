"""Compiled files on disk: the same bytes every time, stale ones gone, nothing of others touched."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric import render
from rdma_fabric.checker import Judged, build
from rdma_fabric.cli.common import load
from rdma_fabric.findings import InputError

DEMO = Path(__file__).resolve().parents[2] / "inventory" / "demo"


@pytest.fixture(scope="module")
def judged() -> Judged:
    return build(load(DEMO))


def _tree(out: Path) -> dict[str, bytes]:
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def _write(judged: Judged, out: Path, *names: str, **more: Any) -> render.Written:
    return render.write(out, judged, render.compile_fabric(judged, names), more.pop("rejected", ()), **more)


def test_twice_gives_the_same_bytes_and_touches_nothing(judged: Judged, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = _write(judged, out, "leaf01", "gpu01")
    before = _tree(out)
    times = {path: (out / path).stat().st_mtime_ns for path in before}
    second = _write(build(load(DEMO)), out, "leaf01", "gpu01")
    assert _tree(out) == before
    assert {path: (out / path).stat().st_mtime_ns for path in before if path != "manifest.json"} == {
        path: at for path, at in times.items() if path != "manifest.json"
    }
    assert (first.written, first.same) == (len(before) - 1, 0)
    assert (second.written, second.same, second.removed) == (0, len(before) - 1, 0)


def test_the_manifest_tells_of_every_file(judged: Judged, tmp_path: Path) -> None:
    _write(judged, tmp_path, "leaf01", "gpu01", rejected=("gpu02",))
    data = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert (data["version"], data["fabric"], data["rejected"]) == (1, "demo", ["gpu02"])
    told = {
        f"{name}/{path}": (one["sha256"], one["mode"])
        for name, node in data["nodes"].items()
        for path, one in node["files"].items()
    }
    found = {
        path: (hashlib.sha256(text).hexdigest(), f"{stat.S_IMODE((tmp_path / path).stat().st_mode):04o}")
        for path, text in _tree(tmp_path).items()
        if path != "manifest.json"
    }
    assert told == found
    assert "0755" in {mode for _, mode in told.values()}


def test_a_mode_is_put_right(judged: Judged, tmp_path: Path) -> None:
    _write(judged, tmp_path, "gpu01")
    program = next(p for p in (tmp_path / "gpu01").rglob("*") if p.is_file() and os.access(p, os.X_OK))
    program.chmod(0o600)
    _write(judged, tmp_path, "gpu01")
    assert stat.S_IMODE(program.stat().st_mode) == 0o755


def test_equal_nodes_are_rendered_once(judged: Judged) -> None:
    found = render.compile_fabric(judged, ["gpu01", "gpu02", "leaf01"])
    assert found["gpu01"] is found["gpu02"]
    assert found["gpu01"] is not found["leaf01"]


def test_stale_files_go_with_their_folders_and_others_stay(judged: Judged, tmp_path: Path) -> None:
    _write(judged, tmp_path, "leaf01", "gpu01")
    (tmp_path / "leaf01" / "notes.txt").write_text("mine", encoding="utf-8")
    done = _write(judged, tmp_path, "gpu02")
    assert done.removed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gpu02", "leaf01", "manifest.json"]
    assert [p.name for p in (tmp_path / "leaf01").rglob("*")] == ["notes.txt"]


def test_nodes_that_are_set_aside_stay(judged: Judged, tmp_path: Path) -> None:
    _write(judged, tmp_path, "leaf01", "gpu01", rejected=("leaf02",))
    whole = _tree(tmp_path)
    done = _write(judged, tmp_path, "gpu01", aside={"leaf01", "leaf02"})
    assert done.removed == 0
    assert _tree(tmp_path) == whole


def test_a_foreign_folder_is_refused(judged: Judged, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years", encoding="utf-8")
    with pytest.raises(InputError, match="is not empty and holds no manifest of ours"):
        _write(judged, tmp_path, "leaf01")
    assert list(tmp_path.iterdir()) == [tmp_path / "thesis.tex"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"nodes": {"a": 1}, "rejected": []}',
        '{"nodes": {"..": {"files": {"victim": {}}}}, "rejected": []}',
        '{"nodes": {"a": {"files": {"../../victim": {}}}}, "rejected": []}',
        '{"nodes": {"/": {"files": {"etc/passwd": {}}}}, "rejected": []}',
        '{"nodes": {"a": {"files": {"b\\u0000": {}}}}, "rejected": []}',
        '{"nodes": {"a": {"files": {}}}}',
    ],
)
def test_a_forged_manifest_is_refused(text: str, judged: Judged, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep", encoding="utf-8")
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is not a manifest of ours"):
        _write(judged, out, "leaf01")
    assert victim.read_text(encoding="utf-8") == "keep"
    assert [p.name for p in out.iterdir()] == ["manifest.json"]


def test_a_link_in_the_way_is_not_followed_to_remove(judged: Judged, tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    _write(judged, out, "leaf01", "gpu01")
    (out / "leaf01").rename(elsewhere)
    (out / "leaf01").symlink_to(elsewhere)
    before = _tree(elsewhere)
    _write(judged, out, "gpu01")
    assert _tree(elsewhere) == before


def test_trouble_on_disk_is_a_finding(judged: Judged, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="file"):
        _write(judged, tmp_path / "file", "leaf01")
    with pytest.raises(InputError, match="file"):
        _write(judged, tmp_path / "file" / "below", "leaf01")
