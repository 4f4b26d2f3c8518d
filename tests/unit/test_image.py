"""Bundles of `compile --bundle`: their bytes, who shares one, and a host's root folder that takes them."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric import platforms
from rdma_fabric.checker import Judged, build
from rdma_fabric.cli import main
from rdma_fabric.cli.common import load
from rdma_fabric.findings import InputError
from rdma_fabric.platforms import _host_probes as local
from rdma_fabric.push.image import FOLDER, INDEX, SUMS, Image, image, write
from rdma_fabric.render import files

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "inventory" / "demo"
CASES = sorted((ROOT / "tests" / "golden").glob("*/input"))


@cache
def judged(folder: Path) -> Judged:
    return build(load(folder))


def compile_(out: Path, *words: str) -> dict[str, Any]:
    assert main(["compile", str(DEMO), "-o", str(out), "--bundle", "-q", *words]) == 0
    index: dict[str, Any] = json.loads((out / FOLDER / INDEX).read_text("utf-8"))
    return index


def archives(out: Path) -> set[str]:
    return {path.name for path in (out / FOLDER).glob("*.tar.gz")}


def test_one_archive_for_equal_hosts_and_the_same_bytes_again(tmp_path: Path) -> None:
    index = compile_(tmp_path / "a")
    hosts = {name for name, view in judged(DEMO).views.items() if view.is_host}
    assert index["version"] == 1 and set(index["nodes"]) == hosts
    rows = list(index["nodes"].values())
    assert archives(tmp_path / "a") == {row["file"] for row in rows} and len(archives(tmp_path / "a")) == 1
    for row in rows:
        data = (tmp_path / "a" / FOLDER / row["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == row["sha256"] and row["sha256"].startswith(
            row["file"][:16]
        )
    compile_(tmp_path / "b")
    for name in (*archives(tmp_path / "a"), SUMS, INDEX):
        assert (tmp_path / "a" / FOLDER / name).read_bytes() == (tmp_path / "b" / FOLDER / name).read_bytes()
    done = subprocess.run(["sha256sum", "-c", "--quiet", SUMS], cwd=tmp_path / "a" / FOLDER, check=False)
    assert done.returncode == 0


def test_the_archive_depends_on_nothing_but_its_content() -> None:
    view = next(view for view in judged(DEMO).views.values() if view.is_host)
    data = image(files(view.wanted, view.hw), view.wanted, view.hw).data
    assert data[4:8] == b"\0\0\0\0"  # no time in the head of gzip (RFC 1952)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = archive.getmembers()
        text = archive.extractfile("fabric-bundle/bundle.json")
        assert text is not None
        bundle = json.loads(text.read())
    assert [one.name for one in members] == sorted(one.name for one in members)
    assert {(one.mtime, one.uid, one.gid, one.uname) for one in members} == {(0, 0, 0, "root")}
    assert not any(name in json.dumps(bundle["steps"]) for name in ("gpu01", "leaf01"))


def test_what_no_host_needs_any_more_goes(tmp_path: Path) -> None:
    compile_(tmp_path)
    old = archives(tmp_path)
    compile_(tmp_path, "--set", "mtu.host=4200")
    assert archives(tmp_path) and archives(tmp_path).isdisjoint(old)
    # A node out of scope keeps what it has.
    index = compile_(tmp_path, "--limit", "gpu01")
    assert len(archives(tmp_path)) == 2 and archives(tmp_path) > old
    assert len({row["file"] for row in index["nodes"].values()}) == 2


def test_bundles_of_other_files_do_not_stay(tmp_path: Path) -> None:
    compile_(tmp_path)
    assert main(["compile", str(DEMO), "-o", str(tmp_path), "-q"]) == 0
    assert archives(tmp_path) == set()
    assert json.loads((tmp_path / FOLDER / INDEX).read_text("utf-8"))["nodes"] == {}


def test_a_node_may_be_called_as_the_folder(tmp_path: Path) -> None:
    one = Image(b"x")
    with pytest.raises(InputError, match="the folder of a node"):
        write(tmp_path, {FOLDER: one})
    with pytest.raises(InputError, match="the folder of a node"):
        write(tmp_path, {"gpu01": one}, {FOLDER})
    write(tmp_path, {}, {FOLDER})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.parent.name)
def test_a_bundle_holds_what_compile_writes(case: Path) -> None:
    """Hosts whose files are shared with others get none."""
    for view in judged(case).views.values():
        if platforms.platform(view.hw.base).channel != "files":
            continue
        compiled = files(view.wanted, view.hw)
        found = image(compiled, view.wanted, view.hw)
        if "opensm" in view.hw.parts:
            assert found.data == b"" and "shared with others" in found.why_not
            continue
        with tarfile.open(fileobj=io.BytesIO(found.data)) as archive:
            text = archive.extractfile("fabric-bundle/bundle.json")
            assert text is not None
            steps = json.loads(text.read())["steps"]
        puts = {step["put"]["path"]: step["put"] for step in steps if "put" in step}
        assert {path: put["text"] for path, put in puts.items()} == {
            **{f"/{one.path}": one.text for one in compiled},
            local.PROGRAM: local.program(),
        }
        assert all(puts[f"/{one.path}"]["mode"] == one.mode for one in compiled)


def test_nv_settings_are_written_to_the_card_by_the_program_that_came_along() -> None:
    view = next(view for view in judged(DEMO).views.values() if view.is_host)
    port = view.wanted.ports[0]
    nic = replace(port.settings.nic, nv=(("CNP_DSCP", "48"),))
    wanted = replace(view.wanted, ports=(replace(port, settings=replace(port.settings, nic=nic)),))
    texts = {f"/{one.path}": one.text for one in files(wanted, view.hw)}
    (call,) = [one for one in platforms.activation(texts, wanted, view.hw) if "fabric-nv" in one.argv[0]]
    assert call.argv[0] in texts and call.argv[1] == port.name and call.argv[-1] == "CNP_DSCP=48"
    assert call.unless == (call.argv[0], "--check", *call.argv[1:])


# ---------------------------------------------------------------- into a root folder, as an image build does


@dataclass
class Unpacked:
    folder: Path
    root: Path

    def install(self, *words: str) -> tuple[int, dict[str, Any]]:
        argv = [str(self.folder / "install.sh"), "--root", str(self.root), *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, json.loads(done.stdout)

    def tree(self) -> dict[str, str]:
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = f"/{path.relative_to(self.root)}"
            if path.is_symlink():
                found[name] = f"-> {path.readlink()}"
            elif path.is_file():
                found[name] = path.read_text("utf-8")
        return found


@pytest.fixture
def unpacked(tmp_path: Path) -> Unpacked:
    compile_(tmp_path / "out")
    (name,) = archives(tmp_path / "out")
    with tarfile.open(tmp_path / "out" / FOLDER / name) as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / "root"
    root.mkdir()
    return Unpacked(tmp_path / "fabric-bundle", root)


def test_files_only_and_the_second_time_nothing(unpacked: Unpacked) -> None:
    status, dry = unpacked.install("--check")
    assert status == 0 and dry["changed"] and unpacked.tree() == {}
    status, first = unpacked.install()
    assert (status, first["changed"], first["refused"], first["failed"]) == (0, True, "", None)
    assert first["done"] == dry["would"]
    view = next(view for view in judged(DEMO).views.values() if view.is_host)
    tree = unpacked.tree()
    compiled = {f"/{one.path}": one.text for one in files(view.wanted, view.hw)}
    assert {path: tree.get(path) for path in compiled} == compiled
    links = {path: text for path, text in tree.items() if text.startswith("-> ")}
    assert links and all(text.removeprefix("-> ") in tree for text in links.values())
    assert set(tree) - set(compiled) - set(links) == {"/usr/local/sbin/fabric-host", local.PROGRAM}
    status, second = unpacked.install()
    assert (status, second["changed"], second["done"]) == (0, False, [])
    assert unpacked.install("--check")[1]["changed"] is False
    assert unpacked.tree() == tree


def test_a_damaged_bundle_is_refused(unpacked: Unpacked) -> None:
    path = unpacked.folder / "bundle.json"
    path.write_text(path.read_text("utf-8").replace("9000", "9001"), "utf-8")
    status, found = unpacked.install()
    assert status == 1 and "checksums" in found["refused"] and unpacked.tree() == {}


def test_a_file_of_somebody_else_is_refused(unpacked: Unpacked) -> None:
    (unpacked.root / "etc").mkdir()
    (unpacked.root / "etc" / "nccl.conf").write_text("NCCL_IB_TC=0\n", "utf-8")
    status, found = unpacked.install()
    assert status == 1 and "/etc/nccl.conf is not ours" in found["refused"]
    assert unpacked.tree() == {"/etc/nccl.conf": "NCCL_IB_TC=0\n"}


def test_a_root_folder_that_is_not_there_is_refused(unpacked: Unpacked, tmp_path: Path) -> None:
    absent = Unpacked(unpacked.folder, tmp_path / "imgae")
    status, found = absent.install()
    assert status == 1 and "imgae: there is no such folder" in found["refused"]
    assert not absent.root.exists()
    argv = [str(unpacked.folder / "install.sh"), "--root", ""]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=unpacked.root)
    assert done.returncode == 1 and "no such folder" in done.stdout and unpacked.tree() == {}


def test_the_installer_tells_its_own_options(unpacked: Unpacked) -> None:
    argv = [str(unpacked.folder / "install.sh"), "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert "--root DIR" in done.stdout and "--check" in done.stdout and "case" not in done.stdout


def test_from_another_folder_and_with_blanks_in_its_name(unpacked: Unpacked, tmp_path: Path) -> None:
    moved = tmp_path / "a b"
    shutil.move(unpacked.folder, moved)
    found = Unpacked(moved, unpacked.root).install()
    assert found[0] == 0 and found[1]["changed"]
