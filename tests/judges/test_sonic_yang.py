"""SONiC's YANG models judge: what is right passes, what is wrong is refused, blind spots are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.judges import sonic_base, sonic_yang
from tests.judges.json_patch import apply_patch
from tests.judges.sonic_yang import BRANCHES, Branch

pytestmark = pytest.mark.judge("sonic-yang")

CASES: Mapping[str, Mapping[str, Mapping[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "bad" / "sonic.yaml").read_text(encoding="utf-8")
)


@pytest.fixture(autouse=True)
def _judge_is_there() -> None:
    reason = sonic_yang.missing() or sonic_base.missing()
    if reason:
        pytest.skip(reason)


def _cases(verdict: str) -> Iterator[Any]:
    for name, case in CASES[verdict].items():
        for branch in case.get("branches", BRANCHES):
            yield pytest.param(case, branch, id=f"{name}-{branch}")


def _changed(case: Mapping[str, Any]) -> dict[str, Any]:
    added = [{"op": "add", "path": path, "value": value} for path, value in case.get("add", {}).items()]
    removed = [{"op": "remove", "path": path} for path in case.get("remove", ())]
    return apply_patch(sonic_base.worked_example(), added + removed)


@pytest.mark.parametrize("branch", BRANCHES)
def test_worked_example_is_valid(branch: Branch) -> None:
    example = sonic_base.worked_example()
    assert sonic_yang.judge(example, branch) == []
    assert sonic_yang.unmodelled(example, branch) == []


@pytest.mark.parametrize(("case", "branch"), list(_cases("refused")))
def test_wrong_value_is_refused(case: Mapping[str, Any], branch: Branch) -> None:
    verdict = sonic_yang.judge(_changed(case), branch)
    assert any(case["says"] in line for line in verdict), verdict


@pytest.mark.parametrize(("case", "branch"), list(_cases("accepted")))
def test_blind_spot_is_known(case: Mapping[str, Any], branch: Branch) -> None:
    assert sonic_yang.judge(_changed(case), branch) == []


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("hwsku", sonic_base.HWSKUS)
def test_realistic_base_is_valid(hwsku: str, branch: Branch) -> None:
    base = sonic_base.realistic_base(sonic_base.PORT_LISTS / f"{hwsku}.ini", hwsku, branch)
    assert sonic_yang.judge(base, branch) == []
    assert len(base["PORT"]) > 60
    # Seen by no model here, so only an equality check protects them.
    assert {"ACL_RULE", "ACL_TABLE", "BGP_NEIGHBOR"} <= set(sonic_yang.unmodelled(base, branch))


def test_large_sample_of_sonic_itself_is_valid_on_master() -> None:
    document = sonic_base.sample_config_db()
    assert sonic_yang.judge(document, "master") == []
    assert len(set(document) & sonic_yang.tables("master")) > 30


@pytest.mark.parametrize("branch", BRANCHES)
def test_models_know_the_tables_that_we_write(branch: Branch) -> None:
    assert set(sonic_base.worked_example()) <= sonic_yang.tables(branch)


def test_translation_lists_every_unknown_field() -> None:
    ports = {"Ethernet0": {"lanes": "0", "speed": "1", "a": "1", "b": "2"}}
    with pytest.raises(sonic_yang.TranslationError) as error:
        sonic_yang.translate({"PORT": ports}, "master")
    assert error.value.errors == (
        "PORT|Ethernet0: field 'a' is not in PORT_LIST",
        "PORT|Ethernet0: field 'b' is not in PORT_LIST",
    )


def test_translation_follows_the_models_types() -> None:
    tree = sonic_yang.translate(
        {
            "DSCP_TO_TC_MAP": {"ROCE": {"26": "3"}},
            "BUFFER_PORT_EGRESS_PROFILE_LIST": {"Ethernet0": {"profile_list": "a,b"}},
            "WRED_PROFILE": {"W": {"green_min_threshold": "150000", "wred_green_enable": "true"}},
            "INTERFACE": {"Ethernet0": {"NULL": "NULL"}, "Ethernet0|192.0.2.0/31": {}},
            "NO_SUCH_TABLE": {"x": {}},
        },
        "202411",
    )
    assert tree == {
        "sonic-dscp-tc-map:sonic-dscp-tc-map": {
            "DSCP_TO_TC_MAP": {
                "DSCP_TO_TC_MAP_LIST": [{"name": "ROCE", "DSCP_TO_TC_MAP": [{"dscp": "26", "tc": 3}]}]
            }
        },
        "sonic-buffer-port-egress-profile-list:sonic-buffer-port-egress-profile-list": {
            "BUFFER_PORT_EGRESS_PROFILE_LIST": {
                "BUFFER_PORT_EGRESS_PROFILE_LIST_LIST": [{"port": "Ethernet0", "profile_list": ["a", "b"]}]
            }
        },
        "sonic-wred-profile:sonic-wred-profile": {
            "WRED_PROFILE": {
                "WRED_PROFILE_LIST": [
                    {"name": "W", "green_min_threshold": "150000", "wred_green_enable": True}
                ]
            }
        },
        "sonic-interface:sonic-interface": {
            "INTERFACE": {
                "INTERFACE_LIST": [{"name": "Ethernet0"}],
                "INTERFACE_IPPREFIX_LIST": [{"name": "Ethernet0", "ip-prefix": "192.0.2.0/31"}],
            }
        },
    }
