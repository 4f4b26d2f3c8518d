"""Community SONiC 202305 to master: rows of CONFIG_DB, changed by a JSON patch under a checkpoint.

Enterprise distributions (Dell, Broadcom) have another command line and are not meant. Facts and their
sources: docs/platforms/sonic.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import (
    Artifact,
    Change,
    Dialect,
    Introduction,
    Platform,
    Realized,
    Traits,
)
from rdma_fabric.platforms._shared import split_path
from rdma_fabric.platforms._sonic_context import Rows
from rdma_fabric.platforms._sonic_gcu import branch_of, family
from rdma_fabric.platforms._sonic_patch import TEMPLATE, ops_between, rows_text, target_of
from rdma_fabric.platforms._sonic_read import BLOB, Tables, parse, questions, row_of
from rdma_fabric.platforms._sonic_realize import dynamic_buffers, realize_node
from rdma_fabric.platforms._sonic_rows import Plan, Switch, Target, aspect_of, build, managed
from rdma_fabric.platforms._sonic_vitals import QUESTIONS as VITALS
from rdma_fabric.platforms._sonic_vitals import vitals
from rdma_fabric.platforms._sonic_write import RECOVER, SAVE, transaction
from rdma_fabric.state import (
    DSCPS,
    PRIORITIES,
    UNKNOWN,
    ClassState,
    Difference,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    differences,
)
from rdma_fabric.vitals import Vitals

_ERRORS: Final = r"^-?bash: |^sudo: |command not found"
_AZURE: Final[Mapping[int, int]] = {3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6}
"""The stock DSCP map; every other code point goes to 1 (files/build_templates/qos_config.j2)."""
_DEFAULTS: Final = PortSettings(
    mtu=Mtu(ip=9100),
    qos=QosState(
        trust="dscp",
        dscp_to_priority=tuple(_AZURE.get(dscp, 1) for dscp in DSCPS),
        classes=tuple(ClassState(pfc_tx=p in (3, 4), pfc_rx=p in (3, 4)) for p in PRIORITIES),
        dcbx="none",
    ),
)


class Sonic:
    """The platform; every method is pure."""

    name = "sonic"
    part: Literal["base", "nic", "service"] = "base"
    channel: Literal["cli", "files"] = "cli"
    dialect = Dialect(driver="linux", errors=_ERRORS, status=True, recover=RECOVER)
    traits = Traits(
        title="SONiC (community)",
        introduction=Introduction(r"^SONiC Software Version:"),
        evidence="source code and YANG models of branches 202305 to master; no device of our own",
        globals=("qos.watchdog.poll_ms",),
        tested="the simulator, written from the same sources; SONiC's own YANG models as judge",
        cannot=(
            "PFC in one direction on one priority (obeying pause on all eight is possible)",
            "trust of DSCP and 802.1p at once",
            "ECN thresholds in percent",
            "cable lengths between those of the SKU's headroom table (the next longer one is used)",
            "DCBX, 802.3x pause",
            "QoS of port channels and VLANs (their ports have it)",
            "switches with more than one ASIC",
        ),
        defaults=_DEFAULTS,
        defaults_source="sonic-buildimage files/build_templates/qos_config.j2 (map AZURE, lossless 3 and 4); "
        "sonic-port.yang (MTU); no DCBX table exists",
    )

    def realize(self, wanted: NodeState, hw: Hardware) -> Realized:
        """What a read-back will show, and what SONiC cannot express."""
        return realize_node(wanted, hw)

    def artifacts(self, wanted: NodeState, hw: Hardware) -> tuple[Artifact, ...]:
        """One fragment of config_db.json with all rows that we own, for `config load`."""
        return (Artifact(TEMPLATE, "config_db.json"),)

    def context(self, wanted: NodeState, hw: Hardware) -> Rows:
        """The rows of the full rendering."""
        return _full(wanted, hw).rows

    def questions(self, hw: Hardware) -> tuple[str, ...]:
        """Ten read-only commands, and one for every VLAN interface."""
        return questions(hw)

    def parse(self, answers: Mapping[str, str], hw: Hardware) -> Observation:
        """The neutral state of the ports in `hw`; never raises."""
        return parse(answers, hw)

    def vital_questions(self, hw: Hardware) -> tuple[str, ...]:
        """Six tables, the same for any number of ports."""
        return VITALS

    def vitals(self, answers: Mapping[str, str], hw: Hardware) -> Vitals:
        """Counters of the ports in `hw`."""
        return vitals(answers, hw)

    def change(self, seen: Observation, wanted: NodeState, hw: Hardware) -> Change:
        """The patch that leads from `seen` to `wanted`; only a save when the live state is right."""
        repair, blocked, aspects = _repairable(differences(wanted, seen.running), wanted, hw)
        if not repair:
            unsaved = _unsaved(seen, wanted)
            save = Change(lines=SAVE.lines, commit=(SAVE,), save=(SAVE,)) if unsaved else Change()
            return replace(save, differences=unsaved, blocked=blocked, expected=wanted)
        switch = _switch(seen, hw)
        plan = build(switch, _targets(wanted, seen.running, hw, aspects))
        target = target_of(switch.tables, plan)
        ops = ops_between(switch.tables, target)
        change = transaction(switch, ops, target)
        return replace(
            change,
            differences=repair,
            blocked=blocked,
            unverified=_unverified(change.lines, plan),
            expected=wanted,
        )


# ---------------------------------------------------------------- what is to be done


def _repairable(
    found: tuple[Difference, ...], wanted: NodeState, hw: Hardware
) -> tuple[tuple[Difference, ...], tuple[Difference, ...], dict[str, set[str]]]:
    """(what the patch repairs, what it cannot, port -> aspects to write).

    Fields that are written together are blocked together.
    """
    names = [port.name for port in wanted.ports]
    places = {item.path: split_path(item.path, names) for item in found}
    closed = {
        (port, aspect_of(setting))
        for item in found
        for port, setting in (places[item.path],)
        if item.unknown or item.wanted is UNKNOWN
    }
    repair: list[Difference] = []
    blocked: list[Difference] = []
    aspects: dict[str, set[str]] = {}
    for item in found:
        port, setting = places[item.path]
        aspect = aspect_of(setting) if port else ""
        if not aspect or (port, aspect) in closed or (aspect == "mtu" and not _has_mtu(hw, port)):
            blocked.append(item)
        else:
            repair.append(item)
            aspects.setdefault(port, set()).add(aspect)
    return tuple(repair), tuple(blocked), aspects


def _has_mtu(hw: Hardware, name: str) -> bool:
    """Subinterfaces and members of port channels take their MTU from somebody else."""
    port = hw.port(name)
    return port is not None and port.kind != "vlan" and name not in _masters(hw)


def _masters(hw: Hardware) -> frozenset[str]:
    return frozenset(member for port in hw.ports if port.kind == "bond" for member in port.members)


def _unsaved(seen: Observation, wanted: NodeState) -> tuple[Difference, ...]:
    """Fields that are right now and wrong after a reboot."""
    if seen.stored is None:
        return ()
    live = {item.path for item in differences(wanted, seen.running)}
    return tuple(
        item for item in differences(wanted, seen.stored) if item.path not in live and not item.unknown
    )


def _unverified(lines: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
    """Lines of buffer profiles whose numbers nothing on the switch confirms."""
    marks = tuple(f"BUFFER_PROFILE|{name} " for name in plan.guessed)
    return tuple(line for line in lines if marks and line.startswith(marks))


# ---------------------------------------------------------------- the switch and its ports


def _switch(seen: Observation, hw: Hardware) -> Switch:
    """What the switch said of itself; without its own rows, those that its state would have."""
    facts = dict(seen.facts)
    branch = branch_of(facts.get("version", hw.version))
    sku = facts.get("model", hw.model)
    asic_type = facts.get("asic") or asic_type_of(hw)
    tables = _tables(facts, seen.running, hw)
    model = row_of(tables, "DEVICE_METADATA", "localhost").get("buffer_model", "")
    return Switch(
        tables=tables,
        branch=branch,
        asic_type=asic_type,
        family=family(asic_type, sku, branch),
        dynamic=model == "dynamic" if model else dynamic_buffers(hw),
        masters=_masters(hw),
    )


def _tables(facts: Mapping[str, str], running: NodeState, hw: Hardware) -> Tables:
    if BLOB in facts:
        found: Tables = json.loads(facts[BLOB])
        return found
    return rows_text(_full(running, hw).rows)


def asic_type_of(hw: Hardware) -> str:
    """SONiC's `asic_type` by the ASIC's maker, for renderings without a device."""
    maker = hw.asic.vendor if hw.asic else ""
    known = {"NVIDIA": "mellanox", "Intel (Barefoot)": "barefoot", "Cisco": "cisco-8000"}
    return known.get(maker, "broadcom" if maker else "")


def _full(state: NodeState, hw: Hardware) -> Plan:
    branch, asic_type = branch_of(hw.version), asic_type_of(hw)
    switch = Switch(
        tables={},
        branch=branch,
        asic_type=asic_type,
        family=family(asic_type, hw.model, branch),
        dynamic=dynamic_buffers(hw),
        masters=_masters(hw),
    )
    return build(switch, _targets(state, NodeState(), hw, {port.name: managed(port) for port in state.ports}))


def _targets(
    wanted: NodeState, now: NodeState, hw: Hardware, aspects: Mapping[str, Iterable[str]]
) -> tuple[Target, ...]:
    today: Mapping[str, PortState] = {port.name: port for port in now.ports}
    known = {port.name: port for port in hw.ports}
    return tuple(
        Target(
            known[port.name],
            port.settings,
            today[port.name].settings if port.name in today else PortSettings(),
            frozenset(aspects[port.name]),
        )
        for port in wanted.ports
        if port.name in aspects and port.name in known
    )


PLATFORM: Platform = Sonic()
