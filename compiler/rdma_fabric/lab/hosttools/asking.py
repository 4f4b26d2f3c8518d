"""What a tool in a sandbox asks of the lab: one JSON request and one JSON answer per connection."""

from __future__ import annotations

import json
import socket

from . import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def ask(what: str, seconds: float = 30.0, **arguments: Any) -> dict[str, Any]:
    """The lab's answer; nothing when no lab listens (a host that stands alone) or none comes in time."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(seconds)
        try:
            link.connect(store.LAB)
            link.sendall(json.dumps({"ask": what, **arguments}).encode() + b"\n")
            with link.makefile() as answer:
                text = answer.readline()
        except OSError:
            return {}
    found: dict[str, Any] = json.loads(text) if text else {}
    return found
