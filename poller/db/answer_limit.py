"""How long a thread waits for one answer of PostgreSQL, and in which form rows come.

libpq has no limit for a server that acknowledges packets and never answers, as a frozen one does.
Without `answers_within` there is none here either: a migration may take hours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import psycopg
from psycopg.abc import RV, PQGen

#: For writers that repeat what failed: readings, runs and dead letters.
WRITE_ANSWER_S: Final = 10.0

_limit_s: ContextVar[float | None] = ContextVar("answer_limit_s", default=None)
_is_binary: ContextVar[bool] = ContextVar("binary_rows", default=False)


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """Limit the wait for each answer to this thread. A connection without one is closed."""
    token = _limit_s.set(seconds)
    try:
        yield
    finally:
        _limit_s.reset(token)


@contextmanager
def binary_rows() -> Iterator[None]:
    """Get rows in binary form. As text a BYTEA has two digits for each byte: 400 days of roll-ups
    took five times as long. SQLAlchemy reads the catalogue of PostgreSQL as text only.
    """
    token = _is_binary.set(True)
    try:
        yield
    finally:
        _is_binary.reset(token)


class LimitedConnection(psycopg.Connection[Any]):
    """A connection of psycopg that knows `answers_within` and `binary_rows`."""

    def cursor(self, *how: Any, **named: Any) -> Any:
        named.setdefault("binary", _is_binary.get())
        return super().cursor(*how, **named)

    def wait(self, gen: PQGen[RV], *how: Any, **named: Any) -> RV:
        limit_s = _limit_s.get()
        if limit_s is None:
            return super().wait(gen, *how, **named)
        return super().wait(self._limited(gen, limit_s), *how, **named)

    def _limited(self, gen: PQGen[RV], limit_s: float) -> PQGen[RV]:
        """Pass the steps of a request on. psycopg wakes it ten times a second while it waits.

        Raises OperationalError, after which SQLAlchemy knows that the connection is gone.
        """
        until_mono = time.monotonic() + limit_s
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and time.monotonic() >= until_mono:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer within {limit_s:g} s")
                state = gen.send(ready)
        except StopIteration as end:
            result: RV = end.value
            return result
