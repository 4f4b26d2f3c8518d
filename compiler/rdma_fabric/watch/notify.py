"""Tells changes to a webhook: in order, each at least once, with growing waits while it does not answer.

The address is a secret of many services, so it comes from the environment (FABRIC_WEBHOOK_URL) and is in no
argument list, log or database. FABRIC_WEBHOOK_TOKEN, when set, is sent as a bearer token.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from rdma_fabric.findings import InputError, Position, input_finding
from rdma_fabric.watch.history import History, Message

URL: Final = "FABRIC_WEBHOOK_URL"
TOKEN: Final = "FABRIC_WEBHOOK_TOKEN"
TIMEOUT_S: Final = 10.0
FIRST_WAIT_S: Final = 5.0
LONGEST_WAIT_S: Final = 900.0
_TRY_AGAIN: Final = frozenset({408, 425, 429})

Answer = Literal["taken", "refused", "later"]


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where to; never shown."""

    url: str
    token: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Webhook:
        """InputError when there is no usable address."""
        found = os.environ if environment is None else environment
        url = found.get(URL, "")
        if urlsplit(url).scheme not in ("http", "https"):
            at, help = Position(URL, 0, 0), "set it to an http or https address"
            message = "is not set" if not url else "is not a web address"
            raise InputError([input_finding("reference", f"{URL} {message}", at, help)])
        return cls(url, found.get(TOKEN, ""))

    def __repr__(self) -> str:
        return "Webhook(...)"

    def post(self, message: Message) -> tuple[Answer, str]:
        """One POST of JSON, and why it was not taken. X-Fabric-Delivery tells a repetition."""
        headers = {"Content-Type": "application/json", "X-Fabric-Delivery": str(message.id)}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url, message.body.encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):
                return "taken", ""
        except urllib.error.HTTPError as error:
            again = error.code >= 500 or error.code in _TRY_AGAIN
            return "later" if again else "refused", f"HTTP {error.code} {error.reason}"
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            return "later", type(reason).__name__ if isinstance(reason, Exception) else str(reason)


def deliver(history: History, webhook: Webhook, now: float) -> tuple[str, ...]:
    """Sends what is due, oldest first; what went wrong. Stops at the first that has to wait."""
    told: list[str] = []
    for message in history.due(now):
        answer, why = webhook.post(message)
        if answer == "later":
            wait = min(FIRST_WAIT_S * 2.0**message.tries, LONGEST_WAIT_S)
            history.later(message.id, now + wait)
            told.append(f"the webhook does not answer ({why}); next try in {wait:.0f} s")
            break
        history.delivered(message.id)
        if answer == "refused":
            told.append(f"the webhook refuses a message ({why}); it is dropped")
    return tuple(told)
