"""Input files that are refused: `input/X` and, beside it, the exact text of its findings in `input/X.txt`.

Files named schema_* load and are refused by the model below; all others do not load.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rdma_fabric.findings import Finding, InputError
from rdma_fabric.intent.quantities import Speed, Threshold
from rdma_fabric.source import load_csv, load_yaml, validate
from tests.support.golden import Golden

FOLDER = Path(__file__).parent / "input"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".yaml", ".csv"))


def _distinct(values: list[int]) -> list[int]:
    if len(set(values)) < len(values):
        raise ValueError("a DSCP value appears twice")
    return values


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Mtu(_Strict):
    model_config = ConfigDict(extra="forbid", strict=True)
    host: int | None = None
    switch: str = "max"


class _Class(_Strict):
    priority: Annotated[int, Field(ge=0, le=7)]
    dscp: Annotated[list[Annotated[int, Field(ge=0, le=63)]], AfterValidator(_distinct)] = []


class _Intent(_Strict):
    version: Annotated[int, Field(strict=True)]
    name: str
    enabled: Annotated[bool, Field(strict=True)] = True
    transport: Literal["rocev2", "infiniband"] = "rocev2"
    until: date | None = None
    kmin: Threshold | None = None
    speed: Speed | None = None
    mtu: _Mtu | None = None
    classes: dict[str, _Class] = {}


def _refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        if path.suffix == ".csv":
            load_csv(path, ("a_node", "a_port", "b_node", "b_port"), ("length_m",))
        else:
            document = load_yaml(path)
            assert path.name.startswith("schema_")
            validate(_Intent, document)
    return "\n".join(_block(error, path) for error in caught.value.findings)


def _block(finding: Finding, path: Path) -> str:
    text = f"{finding.severity}[{finding.code}] {finding.name}: {finding.message}\n  --> {finding.position}\n"
    excerpt = f"{finding.excerpt}\n" if finding.excerpt else ""
    text += f"{excerpt}help: {finding.help}\n"
    return text.replace(f"{path.parent}/", "")


@pytest.mark.parametrize("case", CASES)
def test_refused_file(case: str, golden: Golden) -> None:
    golden.at("..", "errors", "input").text(f"{case}.txt", _refused(FOLDER / case))


def test_every_expected_text_belongs_to_a_case() -> None:
    texts = {path.name.removesuffix(".txt") for path in FOLDER.glob("*.txt")}
    assert texts == set(CASES)
