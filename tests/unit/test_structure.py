"""The arrangement that keeps this project easy to change: who imports whom, and where a platform lives."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import structure
from tests.support.structure import Source

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "compiler" / structure.PACKAGE
SOURCES = structure.read_package(PACKAGE)

RULES: tuple[Callable[[list[Source]], list[str]], ...] = (
    structure.misplaced,
    structure.upward_imports,
    structure.calls_from_views,
    structure.reach_of_lab,
    structure.eager_cli,
    structure.prints,
)


def _public(folder: Path, pattern: str) -> set[str]:
    return {p.stem for p in folder.glob(pattern) if not p.name.startswith(("_", "."))}


def _platforms() -> set[str]:
    """Names of the platform modules and packages, as discovery finds them."""
    folder = PACKAGE / "platforms"
    return _public(folder, "*.py") | {p.parent.name for p in folder.glob("[!_]*/__init__.py")}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_tree_keeps(rule: Callable[[list[Source]], list[str]]) -> None:
    assert rule(SOURCES) == []


def test_the_core_names_no_platform() -> None:
    assert structure.platform_names(SOURCES, frozenset(_platforms())) == []


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (structure.misplaced, "gadgets.py", ""),
        (structure.upward_imports, "state.py", "from rdma_fabric.checker import engine"),
        (structure.upward_imports, "intent/models.py", "from ..plan import waves"),
        (structure.upward_imports, "intent/models.py", "def f():\n    import rdma_fabric.lab.hosts"),
        (structure.upward_imports, "findings.py", "from rdma_fabric.state import NodeState"),
        (structure.upward_imports, "__init__.py", "from rdma_fabric import state"),
        (structure.upward_imports, "platforms/foo.py", "load('rdma_fabric.lab.simulators.foo')"),
        (structure.calls_from_views, "views/text.py", "from rdma_fabric.plan import make_plan"),
        (structure.calls_from_views, "views/text.py", "from rdma_fabric import drift"),
        (structure.reach_of_lab, "lab/hosts.py", "import rdma_fabric.platforms.foo"),
        (structure.reach_of_lab, "lab/hosts.py", "from rdma_fabric.assets import templates"),
        (structure.reach_of_lab, "lab/hosts.py", "from rdma_fabric import assets\nassets.templates()"),
        (structure.reach_of_lab, "lab/hosts.py", "folder('templates')"),
        (structure.reach_of_lab, "lab/hosts.py", "import jinja2"),
        (structure.eager_cli, "cli/check.py", "from rdma_fabric.checker import check"),
        (structure.prints, "state.py", "print(1)"),
        (structure.platform_names, "state.py", "if platform == 'sonic':\n    pass"),
        (structure.platform_names, "push/cli.py", "from rdma_fabric.platforms.arista_eos import x"),
        (structure.platform_names, "resolve.py", '"""For eos only."""'),
        (structure.platform_names, "resolve.py", "def f(nvue): ..."),
        (structure.platform_names, "resolve.py", "linux = 1"),
    ],
)
def test_a_rule_notices(rule: Callable[[list[Source]], list[str]], path: str, text: str) -> None:
    assert len(rule([Source(path, text)])) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("checker/engine.py", "from rdma_fabric.state import NodeState\nfrom . import registry"),
        ("source.py", "from rdma_fabric.findings import Finding\nfrom rdma_fabric import assets, data"),
        (
            "views/text.py",
            "from rdma_fabric.plan import Plan\nfrom rdma_fabric.codec import to_json\nprint(1)",
        ),
        (
            "cli/__init__.py",
            "from rdma_fabric import __version__\ndef main():\n    from rdma_fabric import lab",
        ),
        ("cli/drift.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rdma_fabric.drift"),
        ("platforms/arista_eos.py", "name = 'arista_eos'"),
        ("lab/hosts.py", "kernel = 'linux'"),
        ("resolve.py", "# sonic counts otherwise: see its manual\nneon = 'geos sonics'"),
    ],
)
def test_the_rules_let_pass(path: str, text: str) -> None:
    sources = [Source(path, text)]
    assert [found for rule in (*RULES, structure.platform_names) for found in rule(sources)] == []


def test_the_lab_is_followed_through_other_modules() -> None:
    sources = [
        Source("lab/hosts.py", "from rdma_fabric.observe import x"),
        Source("observe.py", "from rdma_fabric.platforms import y"),
    ]
    assert structure.reach_of_lab(sources) == ["lab -> observe -> platforms"]


def test_every_platform_has_templates() -> None:
    folders = {p for p in (ROOT / "templates").glob("[!_.]*") if p.is_dir()}
    filled = {p.name for p in folders if any(f.is_file() for f in p.rglob("*.j2"))}
    assert {p.name for p in folders} == filled == _platforms()


def test_every_platform_has_a_page() -> None:
    folder = ROOT / "docs" / "platforms"
    pages = _public(folder, "*.md") - {"README", "index"}
    assert pages == _platforms()
    assert [page for page in pages if not (folder / f"{page}.md").read_text("utf-8").strip()] == []


def test_every_platform_is_in_a_golden_case() -> None:
    named = {word for case in _golden_cases() for word in _names_in(case)}
    assert sorted(_platforms() - named) == []


def _golden_cases() -> list[Path]:
    return [p for p in (ROOT / "tests" / "golden").glob("*") if p.is_dir()]


def _names_in(case: Path) -> Iterator[str]:
    """Names of filled folders, and every word of the manifests, below a golden case."""
    for file in case.rglob("*"):
        if file.is_file() and file.stat().st_size:
            yield from file.relative_to(case).parts[:-1]
            if file.name == "manifest.json":
                yield from _strings(json.loads(file.read_text("utf-8")))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *_strings(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


_CHECK = """
import sys
from rdma_fabric.cli import main
sys.argv = ["fabric", "check", sys.argv[1]]
try:
    code = main()
except SystemExit as end:
    code = end.code
heavy = [name for name in ("netmiko", "ansible_runner", "rich") if name in sys.modules]
sys.exit(f"check imports {heavy}" if heavy else code)
"""


def _command_line_exists() -> bool:
    return importlib.util.find_spec("rdma_fabric.cli") is not None


def test_check_imports_nothing_that_talks_to_devices() -> None:
    commands = [_CHECK] if _command_line_exists() else []
    for command in commands:
        fabrics = sorted((ROOT / "inventory").glob("*/fabric.yaml"))
        assert fabrics, "the command line exists, but no example fabric to try it with"
        done = subprocess.run(
            [sys.executable, "-c", command, str(fabrics[0].parent)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
