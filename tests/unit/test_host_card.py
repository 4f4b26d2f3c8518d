"""The card behind a port, as all NICs' programs tell it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric.platforms import _host_card as cards
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms.nic_bnxt import PLATFORM as BNXT
from rdma_fabric.platforms.nic_irdma import PLATFORM as IRDMA
from rdma_fabric.state import Absent

OBSERVE = Path(__file__).resolve().parents[1] / "observe"
MAKES = {"nic_bnxt": (BNXT.make, "eth8"), "nic_irdma": (IRDMA.make, "ens8")}
CASES = [
    (name, case)
    for name in MAKES
    for case in yaml.safe_load((OBSERVE / name / "card.yaml").read_text("utf-8"))["cards"]
]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Absent) else list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_card(name: str, case: dict[str, Any]) -> None:
    make, port = MAKES[name]
    parts = {
        f"{key} {port}": Section(case[key], 0, True) for key in ("driver", "verbs", "gids") if key in case
    }
    state = cards.card(parts, port, make).state
    assert {key: _plain(getattr(state, key)) for key in case["found"]} == case["found"]


def test_programs_that_failed_tell_nothing() -> None:
    """Text beside an error is no answer."""
    make, port = MAKES["nic_bnxt"]
    case = CASES[0][1]
    parts = {f"{key} {port}": Section(case[key], 1, True) for key in ("driver", "verbs", "gids")}
    found = cards.card(parts, port, make)
    assert all(isinstance(getattr(found.state, key), Absent) for key in case["found"])
    assert found.rows == {} and found.notes == ()
