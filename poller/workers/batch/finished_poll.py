"""One poll that ended: the target, the board's answer to `start`, and the outcome. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from poller.domain.failures.outcome import Outcome
from poller.domain.inventory.poll_target import PollTarget
from poller.state.board.board_values import Started
from poller.workers.batch.target_cache import CachedTarget


@dataclass(frozen=True, slots=True)
class FinishedPoll:
    """Instants are the board's clock."""

    cached: CachedTarget
    started: Started
    outcome: Outcome
    started_ms: int
    answered_ms: int  # when the last of the readings arrived
    finished_ms: int

    @property
    def target(self) -> PollTarget:
        return self.cached.target

    @property
    def elapsed_ms(self) -> int:
        return self.finished_ms - self.started_ms

    @property
    def trace_attributes(self) -> dict[str, str | int]:
        """The attributes of the poll in a trace: no address, no text of the device."""
        return {
            "target_id": self.target.id,
            "collector": self.target.collector,
            "outcome": self.outcome.result.value,
            "error_code": self.outcome.error_code,
            "samples": self.outcome.samples,
        }
