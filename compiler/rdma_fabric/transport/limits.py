"""How many logins, how fast, and when to stop trying."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rdma_fabric.transport.errors import TransportError

LOGINS_PER_SECOND = 100.0
STOP_AFTER = 3
"""Nodes in a row that refuse the same credentials: a wrong password locks accounts on a login server."""


@dataclass
class _Record:
    """What became of one set of credentials."""

    trying: int = 0
    proven: bool = False
    refused: list[str] = field(default_factory=list)


class LoginGate:
    """Shared by all logins of a run: their rate, and an end after repeated refusals.

    Until credentials worked once, only as many logins run at once as may fail, so that a wrong
    password is tried on `stop_after` nodes and no more.
    """

    def __init__(
        self,
        rate: float = LOGINS_PER_SECOND,
        stop_after: int = STOP_AFTER,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._interval = 1.0 / rate
        self._stop_after = stop_after
        self._clock, self._sleep = clock, sleep
        self._next = 0.0
        self._changed = threading.Condition()
        self._records: dict[Hashable, _Record] = {}
        self._ended = ""

    def end(self, reason: str) -> None:
        """Let no further login start; their failures say `reason`."""
        with self._changed:
            self._ended = reason
            self._changed.notify_all()

    def wait(self, credentials: Hashable) -> None:
        """Take the next place in the rate of logins; TransportError when the run has to stop."""
        with self._changed:
            self._check(credentials)
            now = self._clock()
            at = max(now, self._next)
            self._next = at + self._interval
        if at > now:
            self._sleep(at - now)

    @contextmanager
    def login(self, credentials: Hashable, name: str) -> Iterator[None]:
        """Around one authentication; a TransportError of kind "auth" inside counts as a refusal."""
        with self._changed:
            record = self._records.setdefault(credentials, _Record())
            while not record.proven and record.trying + len(record.refused) >= self._stop_after:
                self._check(credentials)
                self._changed.wait()
            self._check(credentials)
            record.trying += 1
        try:
            yield
        except TransportError as error:
            self._note(record, name if error.kind == "auth" else "", proven=False)
            raise
        except BaseException:
            self._note(record, "", proven=False)
            raise
        self._note(record, "", proven=True)

    def _note(self, record: _Record, refused_by: str, *, proven: bool) -> None:
        with self._changed:
            record.trying -= 1
            if proven:
                record.proven = True
                record.refused.clear()
            elif refused_by:
                record.refused.append(refused_by)
            self._changed.notify_all()

    def _check(self, credentials: Hashable) -> None:
        if self._ended:
            raise TransportError("auth", f"not tried: {self._ended}")
        record = self._records.get(credentials)
        if record and len(record.refused) >= self._stop_after:
            names = ", ".join(record.refused[: self._stop_after])
            raise TransportError("auth", f"not tried: {names} refused the same login one after the other")
