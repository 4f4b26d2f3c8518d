"""One intent, the files of every platform: read the git diff of `make golden` when one changes on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rdma_fabric import platforms
from rdma_fabric.checker import build, check
from rdma_fabric.cli.common import load
from rdma_fabric.render import compile_fabric, manifest
from tests.support.golden import Golden

CASES = sorted(path.parent.parent for path in Path(__file__).parent.glob("*/input/fabric.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_case(case: Path, golden: Golden) -> None:
    judged = build(load(case / "input"))
    report = check(judged)
    names = [name for name in judged.views if name not in report.rejected]
    compiled = compile_fabric(judged, names)
    kept = _one_of_each(compiled)
    files = {f"{name}/{one.path}": one.text for name in kept for one in compiled[name]}
    files["manifest.json"] = manifest(judged, compiled, report.rejected)
    files["findings.txt"] = "".join(
        f"{one.severity} {one.code} {one.name}: {one.message}\n" for one in report.findings
    )
    golden.tree(f"{case.name}/intended", files)


def _one_of_each(compiled: Mapping[str, tuple[object, ...]]) -> list[str]:
    """Of nodes with the very same files the first: the manifest lists the others."""
    seen: dict[int, str] = {}
    for name, found in compiled.items():
        seen.setdefault(id(found), name)
    return list(seen.values())


def _able(transport: str) -> set[str]:
    """Platforms whose ports may be in a network of that transport, and services, which only subnets have."""
    found = set()
    for key in sorted(platforms.keys()):
        one = platforms.platform(key)
        able = transport == "infiniband" if one.part == "service" else transport in one.traits.transports
        found |= {key} if able else set()
    return found


def test_every_case_has_every_platform() -> None:
    assert len(CASES) >= 4
    seen = set()
    for case in CASES:
        judged = build(load(case / "input"))
        used = {part for view in judged.views.values() for part in view.hw.parts}
        transport = judged.resolved.intent.rdma.transport
        assert used == _able(transport), case.name
        seen |= used
    assert seen == set(platforms.keys())


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_output_is_the_same_on_every_run(case: Path) -> None:
    first, second = (
        compile_fabric(judged, judged.views) for judged in (build(load(case / "input")) for _ in range(2))
    )
    assert first == second
