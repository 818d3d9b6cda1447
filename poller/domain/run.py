"""One line of the ledger: what became of one planned poll of one target."""

from __future__ import annotations

from dataclasses import dataclass

from poller.domain.outcome import Result


@dataclass(frozen=True, slots=True)
class Run:
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

    @property
    def lateness_ms(self) -> int | None:
        """Start minus slot; None when it never began."""
        return self.started_ms - self.plan_ms if self.started_ms else None

    @property
    def duration_ms(self) -> int:
        return max(0, self.finished_ms - self.started_ms) if self.started_ms else 0
