"""JSON patch for the SONiC judge: all six operations of RFC 6902 and its errors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.judges.json_patch import PatchError, apply_patch


def test_patch_follows_rfc_6902() -> None:
    start = {"a": {"b": ["x", "z"]}, "c/d": {"e~f": 1}}
    steps: list[dict[str, Any]] = [
        {"op": "test", "path": "/a/b/0", "value": "x"},
        {"op": "add", "path": "/a/b/1", "value": "y"},
        {"op": "add", "path": "/a/b/-", "value": "end"},
        {"op": "copy", "from": "/c~1d", "path": "/copy"},
        {"op": "move", "from": "/c~1d/e~0f", "path": "/moved"},
        {"op": "replace", "path": "/copy/e~0f", "value": 2},
        {"op": "remove", "path": "/a/b/0"},
    ]
    patched = apply_patch(start, steps)
    assert patched == {"a": {"b": ["y", "z", "end"]}, "c/d": {}, "copy": {"e~f": 2}, "moved": 1}
    assert start == {"a": {"b": ["x", "z"]}, "c/d": {"e~f": 1}}


@pytest.mark.parametrize(
    "step",
    [
        {"op": "remove", "path": "/nothing"},
        {"op": "replace", "path": "/nothing", "value": 1},
        {"op": "add", "path": "/no/parent", "value": 1},
        {"op": "add", "path": "/a/3", "value": 1},
        {"op": "add", "path": "/a/01", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "test", "path": "/a/0", "value": 9},
        {"op": "remove", "path": ""},
        {"op": "merge", "path": "/a"},
    ],
)
def test_patch_refuses(step: dict[str, Any]) -> None:
    with pytest.raises(PatchError):
        apply_patch({"a": [1]}, [step])
