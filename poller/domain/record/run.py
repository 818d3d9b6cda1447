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
        return self.started_ms - self.plan_ms if self.started_ms else None

    @property
    def duration_ms(self) -> int:
        return max(0, self.finished_ms - self.started_ms) if self.started_ms else 0


def claimed_ms(token: str) -> int | None:
    """Return when the leader claimed the run, or None for a token of another form."""
    match = _TOKEN.fullmatch(token)
    return int(match[1], 16) if match else None


def queue_ms(token: str, started_ms: int) -> int:
    """Return the wait in the queue; 0 for a token without a time, or a clock that was set back."""
    claimed = claimed_ms(token)
    return 0 if claimed is None else max(0, started_ms - claimed)
