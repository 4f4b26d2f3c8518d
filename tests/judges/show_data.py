"""Real interface outputs (`shared/data/show`) and what a correct parser must read from them.

The outputs stay outside the repository; the expected values are ours, in `tests/judges/show/*.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

SHOW = Path(__file__).resolve().parents[3] / "shared" / "data" / "show"
_EXPECTED = Path(__file__).parent / "show"


@dataclass(frozen=True, slots=True)
class Facts:
    """One interface; None = the output does not say it.

    `ip_mtu` counts the L3 packet, `frame_mtu` what the platform's own L2 number counts (bytes), `up` is the
    state of the link, `speed` is in Mbit/s.
    """

    ip_mtu: int | None
    frame_mtu: int | None
    forwarding: Literal["routed", "bridged"] | None
    up: bool
    speed: int | None


@dataclass(frozen=True, slots=True)
class Output:
    """One recorded output: the command that prints it, its place, the interfaces in it."""

    platform: str
    command: str
    path: Path
    interfaces: Mapping[str, Facts]

    def text(self) -> str:
        """Return what the device printed."""
        return self.path.read_text(encoding="utf-8")


def missing() -> str | None:
    """Return why the outputs cannot be read here, or None when they can."""
    return None if SHOW.is_dir() else f"real device outputs are absent ({SHOW})"


def platforms() -> tuple[str, ...]:
    """Return our keys of the platforms that have outputs."""
    return tuple(sorted(path.stem for path in _EXPECTED.glob("*.yaml")))


@cache
def outputs(platform: str) -> tuple[Output, ...]:
    """Return all interface outputs of a platform with their expected facts; needs no shared folder."""
    data: Mapping[str, Any] = yaml.safe_load((_EXPECTED / f"{platform}.yaml").read_text(encoding="utf-8"))
    folder = SHOW / data["folder"]
    return tuple(
        Output(
            platform,
            entry["command"],
            folder / name,
            {port: Facts(**facts) for port, facts in entry["interfaces"].items()},
        )
        for name, entry in data["files"].items()
    )
