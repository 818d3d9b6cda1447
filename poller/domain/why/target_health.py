"""The health of one target: values of SQL and of the board, and the conclusions from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poller.domain.failures import circuit_breaker
from poller.domain.failures.circuit_breaker import BreakerState
from poller.domain.failures.dead_letter import Letter
from poller.domain.record import overview
from poller.domain.record.run import Run
from poller.domain.record.target_status import Status
from poller.domain.scheduling.staleness import MAX_STALE_MS
from poller.domain.why.target_facts import HandOpening, InventoryRow


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """One target at one instant. Instants are UTC milliseconds; 0: never, or unknown."""

    row: InventoryRow
    now_ms: int
    status: Status = field(default_factory=Status)
    place: str = ""  # on the board; empty for a target that is not there
    next_ms: int = 0  # next poll, or slow retry
    opening: HandOpening | None = None
    letter: Letter | None = None  # as SQL has it
    run: Run | None = None  # of the last plan, if SQL has it

    @property
    def breaker_state(self) -> BreakerState:
        """The state of the breaker; open while an operator keeps it open."""
        if self.opening:
            return BreakerState.OPEN
        return circuit_breaker.state_at(self.status.breaker, self._judged_ms)

    @property
    def _judged_ms(self) -> int:
        """The instant for which the breaker is judged: before its probe while the target waits.

        The probe is at a slot of the target's grid, which may come later than the breaker asks.
        """
        is_waiting = self.place in ("due", "urgent", "parked") and self.next_ms > self.now_ms
        probe_ms = self.status.breaker.probe_ms
        return min(self.now_ms, probe_ms - 1) if is_waiting and probe_ms else self.now_ms

    @property
    def breaker_since_ms(self) -> int:
        """When the breaker opened."""
        return self.opening.since_ms if self.opening else self.status.breaker.since_ms

    @property
    def last_transition_ms(self) -> int:
        """When the breaker came into its present state."""
        if self.opening:
            return self.opening.since_ms
        breaker, finished_ms = self.status.breaker, self.status.finished_ms
        return circuit_breaker.last_transition_ms(breaker, finished_ms, self._judged_ms)

    @property
    def retry_ms(self) -> int:
        """When the target is tried again: the end of the opening by hand, the slow retry of a dead
        letter, or the slot of the probe.
        """
        if self.opening:
            return self.opening.until_ms
        if self.place == "parked":
            return self.next_ms
        probe_ms = self.status.breaker.probe_ms
        is_waiting = self.place in ("due", "urgent") and self.next_ms
        return self.next_ms if probe_ms and is_waiting else probe_ms

    @property
    def overdue_ms(self) -> int:
        """How long the target has waited past its time; 0 if it is not waiting."""
        if self.place not in ("due", "urgent") or not self.next_ms:
            return 0
        return max(0, self.now_ms - self.next_ms)

    @property
    def is_long_overdue(self) -> bool:
        """Whether the target has waited for more than two of its own intervals."""
        interval_ms = self.row.interval_ms
        return overview.is_long_overdue(self.now_ms - self.overdue_ms, interval_ms, self.now_ms)

    @property
    def staleness_score(self) -> float:
        """The age of the last good poll against the time after which data are old: 0 for fresh
        data, 1 for old data and for none at all. A disabled target has 0.
        """
        if not self.row.enabled:
            return 0.0
        if not self.status.ok_ms:
            return 1.0
        age_ms = self.now_ms - self.status.ok_ms
        longest_ms = self.row.max_ms or overview.LONG_OVERDUE * self.row.interval_ms
        return min(1.0, max(0.0, age_ms / max(longest_ms, MAX_STALE_MS)))


def warnings(health: TargetHealth, unroutable: Mapping[str, str]) -> list[str]:
    """Return sentences about what keeps the target from being polled as planned.

    `unroutable` has the queues that no worker serves, with the reason of each.
    """
    row = health.row
    if not row.enabled:
        subject = "device" if not row.device_enabled else "target"
        return [f"The {subject} is disabled."]

    found = []
    if not health.place:
        found.append("The target is not on the board yet.")
    elif not health.status.run_ms:
        found.append("The target was never polled.")
    if row.queue in unroutable:
        found.append(f"No worker can poll it: {unroutable[row.queue]}.")
    if health.place == "held":
        found.append(f"The site {row.site} is dark; the target waits for it.")
    if health.is_long_overdue:
        intervals = health.overdue_ms // row.interval_ms
        found.append(f"The target is overdue by {intervals} of its intervals.")
    if health.status.failures and not (health.opening or health.status.parked_ms):
        found.append(_failing(health))
    if health.opening:
        found.append(f"{health.opening.who or 'An operator'} keeps the breaker open.")
    if health.status.parked_ms:
        reason = health.status.reason
        found.append(f"The target is a dead letter: {reason.value if reason else 'parked'}.")
    return found


def _failing(health: TargetHealth) -> str:
    """`The last 5 polls failed (timeout); the breaker is open.`"""
    failures, code = health.status.failures, health.status.code
    polls = "poll" if failures == 1 else f"{failures:,} polls"
    text = f"The last {polls} failed" + (f" ({code})" if code else "")
    if health.breaker_state is BreakerState.CLOSED:
        return f"{text}."
    return f"{text}; the breaker is {health.breaker_state.value.replace('_', '-')}."
