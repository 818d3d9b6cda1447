"""One target in the document of `/api/v1/scheduler/health`."""

from __future__ import annotations

from collections.abc import Mapping

from poller.domain.failures import error_codes
from poller.domain.failures.circuit_breaker import BreakerState
from poller.domain.failures.outcome import Result
from poller.domain.record.overview import State
from poller.domain.why import target_health
from poller.domain.why.target_health import TargetHealth
from poller.presentation import formatting
from poller.presentation.targets.health_types import (
    HealthInstance,
    HealthNotClosed,
    HealthStale,
    InstanceBreaker,
    InstanceError,
    InstanceLetter,
    InstancePollStatus,
    InstanceSchedule,
)

_OUTCOMES = {State.OK: Result.OK, State.DEGRADED: Result.PARTIAL, State.FAILING: Result.FAILED}


def item(health: TargetHealth, unroutable: Mapping[str, str]) -> HealthInstance:
    """The health of one target. `unroutable` has the reason of each queue without a worker."""
    row = health.row
    return HealthInstance(
        key=row.name,
        target_id=row.target_id,
        type=row.collector,
        display_name=row.device if row.target == row.collector else f"{row.device} ({row.target})",
        device=row.device,
        target=row.target,
        address=row.address,
        site=row.site,
        tags=list(row.tags),
        enabled=row.enabled,
        state=health.status.state.value if row.enabled else "disabled",
        poll_status=_poll_status(health),
        breaker=_breaker(health),
        dead_letter=_letter(health),
        schedule=_schedule(health),
        staleness_score=round(health.staleness_score, 3),
        warnings=target_health.warnings(health, unroutable),
    )


def not_closed(health: TargetHealth) -> HealthNotClosed:
    """A breaker in the list of those that are not closed."""
    return HealthNotClosed(
        key=health.row.name,
        type=health.row.collector,
        state=health.breaker_state.value,
        failures=health.status.failures,
        since=instant(health.breaker_since_ms),
        retry_at=instant(health.retry_ms),
    )


def stale(health: TargetHealth) -> HealthStale:
    """A target in the list of the stalest."""
    return HealthStale(
        key=health.row.name,
        type=health.row.collector,
        score=round(health.staleness_score, 3),
        last_success=instant(health.status.ok_ms),
        last_error=formatting.visible(health.status.message),
    )


def instant(ms: int) -> str | None:
    """An instant as text; None for "never"."""
    return formatting.instant(ms) if ms else None


def _poll_status(health: TargetHealth) -> InstancePollStatus:
    status, run = health.status, health.run
    is_failing = status.state is State.FAILING
    outcome = run.outcome if run else _OUTCOMES.get(status.state)
    return InstancePollStatus(
        last_success=instant(status.ok_ms),
        last_poll=instant(status.finished_ms),
        last_outcome=outcome.value if outcome else "",
        duration_seconds=run.duration_ms / 1000 if run else None,
        last_error=_error(health) if status.code else None,
        consecutive_failures=status.failures,
        first_failure=instant(status.since_ms) if is_failing else None,
    )


def _error(health: TargetHealth) -> InstanceError:
    status = health.status
    known = error_codes.TABLE.get(status.code)
    return InstanceError(
        at=instant(status.finished_ms),
        code=status.code,
        message=formatting.visible(status.message),
        category=(known.category if known else error_codes.Category.PERMANENT).value,
    )


def _breaker(health: TargetHealth) -> InstanceBreaker:
    is_closed = health.breaker_state is BreakerState.CLOSED
    return InstanceBreaker(
        state=health.breaker_state.value,
        since=instant(health.breaker_since_ms),
        last_transition=instant(health.last_transition_ms),
        retry_at=None if is_closed else instant(health.retry_ms),
        failures=health.status.failures,
        trips=health.status.breaker.trips,
        opened_by=health.opening.who if health.opening else "",
        opened_reason=health.opening.reason if health.opening else "",
    )


def _letter(health: TargetHealth) -> InstanceLetter:
    """The letter as SQL has it, or as the board knows it while SQL has not been told yet."""
    status, letter = health.status, health.letter
    if not status.parked_ms:
        return InstanceLetter(
            present=False,
            reason="",
            first_attempt=None,
            last_attempt=None,
            attempts=0,
            next_retry=None,
        )
    reason = status.reason or (letter.reason if letter else None)
    return InstanceLetter(
        present=True,
        reason=reason.value if reason else "",
        first_attempt=instant(letter.first_ms if letter else status.since_ms),
        last_attempt=instant(max(letter.last_ms if letter else 0, status.finished_ms)),
        attempts=letter.attempts if letter else status.failures,
        next_retry=instant(health.next_ms or (letter.next_ms if letter else 0)),
    )


def _schedule(health: TargetHealth) -> InstanceSchedule:
    row, decision = health.row, health.status.decision
    current_ms = decision.chosen_ms if decision else row.interval_ms
    return InstanceSchedule(
        policy=row.policy.value,
        interval_seconds=row.interval_ms / 1000,
        current_interval_seconds=current_ms / 1000,
        place=health.place,
        queue=row.queue,
        next_due=instant(health.next_ms),
        last_plan=instant(health.status.run_ms),
        missed_slots=health.status.missed,
        overdue_seconds=health.overdue_ms / 1000,
        overdue=health.is_long_overdue,
    )
