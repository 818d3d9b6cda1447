"""One line of the ledger: what became of one planned poll of one target."""

from __future__ import annotations

import re
from typing import NamedTuple

from poller.domain.failures.outcome import Result

_CLAIM = re.compile(r"[0-9]+\.([0-9a-f]{1,13})\.[0-9a-f]+")


class Run(NamedTuple):
    """Instants are UTC milliseconds; `started_ms` is 0 when the poll never began."""

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
    token: str = ""  # the lease under which it ran: the same for all attempts of one run
    queue_ms: int = 0  # from the claim to the first start
    collect_ms: int = 0  # of the last attempt
    write_ms: int = 0  # its readings, to all sinks

    @property
    def lateness_ms(self) -> int | None:
        """Start minus slot; None when it never began."""
        return self.started_ms - self.plan_ms if self.started_ms else None

    @property
    def duration_ms(self) -> int:
        return max(0, self.finished_ms - self.started_ms) if self.started_ms else 0


def claimed_ms(token: str) -> int | None:
    """When the leader claimed it, from a token `<epoch>.<ms in hex>.<random>`; None for any other token."""
    found = _CLAIM.fullmatch(token)
    return int(found[1], 16) if found else None


def queue_ms(token: str, started_ms: int) -> int:
    """How long it waited in its queue; 0 when the token does not say, or the clock was set back meanwhile."""
    claimed = claimed_ms(token)
    return 0 if claimed is None else max(0, started_ms - claimed)
