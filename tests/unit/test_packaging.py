"""The wheel, built the way a release is: through the sdist, installed alone, used from elsewhere."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import rdma_fabric
from rdma_fabric import assets

ROOT = Path(__file__).resolve().parents[2]
# Where each folder of the checkout lies in the wheel (pyproject.toml, tool.hatch).
PLACES = {
    "compiler/rdma_fabric/": "rdma_fabric/",
    "templates/": "rdma_fabric/_assets/templates/",
    "playbooks/": "rdma_fabric/_assets/playbooks/",
}


def _run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist with the build backend that is installed: no download."""
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of commands of a fresh environment with the wheel; dependencies are those of this one."""
    home = tmp_path_factory.mktemp("venv")
    _run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    python = home / "bin" / "python"
    _run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"),
        wheel,
        cwd=home,
    )
    # After the installation: pip would find this environment's editable rdma-fabric and be content.
    # A line of a .pth file is not searched for further .pth files, so the checkout stays invisible.
    site = Path(
        _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip()
    )
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def _shipped() -> set[str]:
    """Paths in the wheel of all files that git would take into account."""
    listing = _run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    files = [name for name in listing.split("\0") if (ROOT / name).is_file()]
    return {
        place + name.removeprefix(folder)
        for folder, place in PLACES.items()
        for name in files
        if name.startswith(folder)
    }


@pytest.mark.slow
def test_the_wheel_holds_code_templates_and_playbooks(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == _shipped()
    assert "rdma_fabric/__init__.py" in inside


@pytest.mark.slow
def test_the_installed_package_finds_its_own_files(installed: Path) -> None:
    folders = [name for name in ("templates", "playbooks") if (ROOT / name).is_dir()]
    code = (
        "import rdma_fabric, sys; from rdma_fabric import assets; "
        "print(rdma_fabric.__file__, *map(assets.folder, sys.argv[1:]), sep='\\n')"
    )
    paths = _run(installed / "python", "-c", code, *folders, cwd=Path("/")).split()
    assert len(paths) == 1 + len(folders)
    assert [path for path in paths if not Path(path).is_relative_to(installed.parent)] == []


@pytest.mark.slow
def test_the_commands_work_from_anywhere(installed: Path, tmp_path: Path) -> None:
    exists = (ROOT / "compiler" / "rdma_fabric" / "cli").is_dir()
    for command in ("fabric", "rdma-fabric") if exists else ():
        assert rdma_fabric.__version__ in _run(installed / command, "--version", cwd=Path("/"))
        for example in sorted((ROOT / "inventory").glob("*/fabric.yaml")):
            out = tmp_path / command / example.parent.name
            _run(installed / command, "compile", example.parent, "-o", out, cwd=Path("/"))
            assert (out / "manifest.json").is_file()


def test_a_missing_asset_says_what_to_do() -> None:
    with pytest.raises(assets.AssetMissing, match=r"'no-such-folder'.*reinstall"):
        assets.folder("no-such-folder")


def test_a_folder_beside_a_foreign_package_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "templates").mkdir()
    monkeypatch.setattr(assets, "_HERE", tmp_path / "lib" / "rdma_fabric")
    monkeypatch.setattr(assets, "_CHECKOUT", tmp_path)
    with pytest.raises(assets.AssetMissing):
        assets.templates()
    (tmp_path / "pyproject.toml").touch()
    assert assets.templates() == tmp_path / "templates"
