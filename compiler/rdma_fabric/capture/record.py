"""The raw answers of one node and what was understood of them, as read-back fixtures have it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rdma_fabric import __version__, codec, platforms
from rdma_fabric.capture.masking import mask
from rdma_fabric.hardware import Hardware
from rdma_fabric.resolve import NodePlan
from rdma_fabric.state import UNKNOWN, Observation, differences
from rdma_fabric.transport.credentials import Secrets, scrub
from rdma_fabric.transport.session import open_session
from rdma_fabric.transport.targets import Target

FIXTURE: Final = "answers.yaml"
STATE: Final = "state.json"


@dataclass(frozen=True, slots=True)
class Captured:
    """One node without secrets."""

    platform: str
    hardware: Hardware
    answers: Mapping[str, str]
    observation: Observation
    same: bool
    """The masked answers are understood as the raw ones are."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Field paths that were not understood."""
        return tuple(_unknown(codec.to_json(self.observation.running), ""))


def capture(target: Target, plan: NodePlan, secrets: Secrets) -> Captured:
    """Asks a node what `observe` asks, in one read-only session. TransportError as every session."""
    hardware = plan.hardware
    dialect = platforms.platform(hardware.base).dialect
    with open_session(target, dialect, secrets) as session:
        raw = session.ask(platforms.questions(hardware))
    return captured(raw, hardware, lambda text: scrub(text, secrets))


def captured(raw: Mapping[str, str], hardware: Hardware, own: Callable[[str], str] = str) -> Captured:
    """The same from answers that are there already."""
    clean = {own(question): mask(text, own) for question, text in raw.items()}
    seen = platforms.parse(clean, hardware)
    same = not differences(seen.running, platforms.parse(raw, hardware).running)
    return Captured(hardware.base, hardware, clean, seen, same)


def _unknown(data: Any, path: str) -> list[str]:
    if data == codec.to_json(UNKNOWN):
        return [path]
    items: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        items = list(data.items())
    elif isinstance(data, list):
        items = [
            (one.get("name", index) if isinstance(one, dict) else index, one)
            for index, one in enumerate(data)
        ]
    return [found for key, below in items for found in _unknown(below, f"{path}.{key}" if path else str(key))]


def write(folder: Path, one: Captured) -> tuple[Path, ...]:
    """FOLDER/answers.yaml and state.json, readable by their owner only."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = {FIXTURE: _fixture(one), STATE: _state(one)}
    for name, text in files.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
    return tuple(folder / name for name in files)


def _fixture(one: Captured) -> str:
    import yaml

    class Blocks(yaml.SafeDumper):
        """Texts of several lines as blocks, as people read them."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Blocks.add_representer(str, text)
    hw = one.hardware
    data = {
        "platform": one.platform,
        "parts": list(hw.parts),
        "model": hw.model,
        "version": hw.version,
        "options": dict(hw.options),
        "ports": [port.name for port in hw.ports],
        "kinds": {port.name: port.kind for port in hw.ports if port.kind != "physical"},
        "nics": {port.name: {"nic": port.nic, "rdma": port.rdma} for port in hw.ports if port.nic},
        "speeds": {port.name: port.speed_gbps for port in hw.ports if port.speed_gbps},
        "answers": {question: _lines(answer) for question, answer in one.answers.items()},
    }
    return yaml.dump(data, Dumper=Blocks, sort_keys=False, allow_unicode=True, width=100_000)


def _lines(text: str) -> str:
    """Without carriage returns and blanks at line ends, which YAML's blocks cannot hold."""
    return "\n".join(line.rstrip() for line in text.replace("\r", "").split("\n")).replace("\t", "    ")


def _state(one: Captured) -> str:
    seen = one.observation
    return json.dumps(
        {
            "version": 1,
            "tool": __version__,
            "platform": one.platform,
            "masked_is_understood_alike": one.same,
            "not_understood": list(one.unknown),
            "notes": list(seen.notes),
            "facts": dict(seen.facts),
            "neighbours": [list(row) for row in seen.neighbours],
            "running": codec.to_json(seen.running),
            "stored": None if seen.stored is None else codec.to_json(seen.stored),
        },
        indent=1,
    )
