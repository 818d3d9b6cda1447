"""A run: one row of the ledger, for one planned poll of one target."""

from __future__ import annotations

import re
from typing import NamedTuple

from poller.domain.failures.outcome import Result

#: A claim token: `<epoch>.<ms in hex>.<random>`.
_TOKEN = re.compile(r"[0-9]+\.([0-9a-f]{1,13})\.[0-9a-f]+")


class Run(NamedTuple):
    """Instants are UTC milliseconds; `started_ms` is 0 when the poll never started."""

    target_id: int
    plan_ms: int
    outcome: Result
    attempt: int = 1
    error_code: str = ""
    message: str = ""
    started_ms: int = 0
    finished_ms: int = 0
    samples: int = 0
    runner: str = ""  # the worker
    token: str = ""  # claim token, the same for all attempts of one run
    queue_ms: int = 0  # from the claim to the first start
    collect_ms: int = 0  # of the last attempt
    write_ms: int = 0  # for the readings, to all sinks

    @property
    def lateness_ms(self) -> int | None:
        """Start minus slot; None when the poll never started."""
        if not self.started_ms:
            return None
        return self.started_ms - self.plan_ms

    @property
    def duration_ms(self) -> int:
        """End minus start; 0 when the poll never started."""
        if not self.started_ms:
            return 0
        return max(0, self.finished_ms - self.started_ms)


def claimed_ms(token: str) -> int | None:
    """Return when the leader claimed the run, or None for a token of another form."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    return int(match[1], 16)


def queue_ms(token: str, started_ms: int) -> int:
    """Return the wait in the queue; 0 for a token without a time, or a clock that was set back."""
    claimed = claimed_ms(token)
    if claimed is None:
        return 0
    return max(0, started_ms - claimed)


def call_name(runner: str, nonce: str) -> str:
    """Return the name of a worker's `start` call, which the board stores with the run.

    The nonce distinguishes the calls of a worker.
    """
    return f"{holder_name(runner)}~{nonce}"


def holder_name(runner: str) -> str:
    """Return the name of a worker without `|`, which separates the fields of the board's record."""
    return runner.replace("|", "_")


def runner_of(call: str) -> str:
    """Return the worker of a `start` call; empty for a call without one."""
    return call.rpartition("~")[0]
