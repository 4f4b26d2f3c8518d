"""What can go wrong between us and a node, as one exception and one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["unreachable", "auth", "hostkey", "timeout", "closed", "refused"]


class TransportError(Exception):
    """A node could not be reached or stopped talking.

    unreachable: no connection; auth: the login was refused; hostkey: the key is not the known one;
    timeout: no answer in time; closed: the connection ended in the middle; refused: the node does not
    offer what was asked for. `text` is one plain sentence without a secret.
    """

    def __init__(self, kind: Kind, text: str) -> None:
        self.kind: Kind = kind
        self.text = text
        super().__init__(kind, text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no result for one node; `kind` as in TransportError, or "internal"."""

    name: str
    kind: str
    text: str
