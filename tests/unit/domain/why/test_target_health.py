"""Conclusions from the values of a target: breaker, age of data, delays and warnings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poller.domain.failures.circuit_breaker import Breaker, BreakerState
from poller.domain.failures.dead_letter import Reason
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.domain.why import target_health
from poller.domain.why.target_facts import HandOpening
from poller.domain.why.target_health import TargetHealth
from tests.unit.domain.why.situations import ROW

NOW = 1_800_000_000_000
MINUTE = 60_000
FIXED = replace(ROW, interval_ms=MINUTE, max_ms=None)
WELL = TargetHealth(
    FIXED, NOW, Status(State.OK, NOW, NOW, NOW, NOW), place="due", next_ms=NOW + MINUTE
)
FAILING = Status(State.FAILING, 1, 2, NOW - 9, 4, 5)


def test_a_closed_breaker_has_no_instants() -> None:
    """Nobody acts on a closed breaker."""
    assert WELL.breaker_state is BreakerState.CLOSED
    assert (WELL.breaker_since_ms, WELL.last_transition_ms, WELL.retry_ms) == (0, 0, 0)


@pytest.mark.parametrize(
    ("breaker", "state", "transition_ms"),
    [
        (Breaker(1, NOW - 50, NOW + 10), BreakerState.OPEN, NOW - 50),
        (Breaker(3, NOW - 500, NOW + 10), BreakerState.OPEN, NOW - 9),
        (Breaker(3, NOW - 500, NOW - 3), BreakerState.HALF_OPEN, NOW - 3),
    ],
)
def test_the_last_transition_is_the_opening_the_failed_probe_or_the_probe(
    breaker: Breaker, state: BreakerState, transition_ms: int
) -> None:
    """A failed probe, which was the last poll, opens the breaker again."""
    status = FAILING._replace(breaker=breaker)
    found = replace(WELL, status=status, place="urgent", next_ms=breaker.probe_ms)
    assert (found.breaker_state, found.last_transition_ms) == (state, transition_ms)
    assert found.retry_ms == breaker.probe_ms


def test_a_breaker_is_half_open_only_when_its_probe_may_run() -> None:
    """The probe waits for its slot, and a parked target for its slow retry."""
    status = FAILING._replace(breaker=Breaker(3, NOW - 500, NOW - 3))
    for place in ("urgent", "parked"):
        found = replace(WELL, status=status, place=place, next_ms=NOW + 40)
        assert (found.breaker_state, found.retry_ms) == (BreakerState.OPEN, NOW + 40)
        assert found.last_transition_ms == NOW - 9


def test_a_failing_target_warns_of_its_failures_and_its_breaker() -> None:
    """The sentence has the code of the last failure."""
    failing = replace(WELL, status=FAILING._replace(code="timeout"))
    assert target_health.warnings(failing, {}) == ["The last 5 polls failed (timeout)."]
    opened = FAILING._replace(code="timeout", breaker=Breaker(1, NOW - 50, NOW + 10))
    assert target_health.warnings(replace(WELL, status=opened), {}) == [
        "The last 5 polls failed (timeout); the breaker is open."
    ]


def test_an_opening_by_hand_comes_before_the_breaker() -> None:
    """Its end is the time of the next try."""
    found = replace(WELL, opening=HandOpening(NOW + 5, NOW - 5, "ada"))
    assert (found.breaker_state, found.retry_ms) == (BreakerState.OPEN, NOW + 5)
    assert target_health.warnings(found, {}) == ["ada keeps the breaker open."]


@pytest.mark.parametrize(
    ("age_ms", "score"), [(0, 0.0), (-MINUTE, 0.0), (225_000, 0.75), (10 * MINUTE, 1.0)]
)
def test_staleness_is_the_age_against_five_minutes(age_ms: int, score: float) -> None:
    """Older data than that count as old; an instant in the future counts as now."""
    found = replace(WELL, status=WELL.status._replace(ok_ms=NOW - age_ms))
    assert found.staleness_score == score


def test_staleness_follows_a_longer_interval() -> None:
    """A target with long intervals is not stale between two polls."""
    hourly = replace(FIXED, interval_ms=60 * MINUTE)
    status = WELL.status._replace(ok_ms=NOW - 60 * MINUTE)
    assert replace(WELL, row=hourly, status=status).staleness_score == 0.5
    assert replace(WELL, status=Status()).staleness_score == 1.0
    assert replace(WELL, row=replace(FIXED, target_enabled=False)).staleness_score == 0.0


def test_a_target_is_overdue_by_its_own_interval() -> None:
    """Two intervals of its own are late, three are too many; a target in flight is not overdue."""
    late = replace(WELL, next_ms=NOW - 2 * MINUTE)
    assert (late.overdue_ms, late.is_long_overdue) == (2 * MINUTE, False)
    stuck = replace(WELL, next_ms=NOW - 3 * MINUTE)
    assert stuck.is_long_overdue
    assert target_health.warnings(stuck, {}) == ["The target is overdue by 3 of its intervals."]
    assert replace(stuck, place="in_flight").overdue_ms == 0


def test_warnings_name_what_keeps_a_target_from_its_poll() -> None:
    """Each is one sentence; a well target has none."""
    assert target_health.warnings(WELL, {}) == []
    assert target_health.warnings(WELL, {FIXED.queue: "no worker has the collector"}) == [
        "No worker can poll it: no worker has the collector."
    ]
    new = TargetHealth(FIXED, NOW)
    assert target_health.warnings(new, {}) == ["The target is not on the board yet."]
    held = replace(WELL, place="held")
    assert target_health.warnings(held, {}) == [
        f"The site {FIXED.site} is dark; the target waits for it."
    ]
    parked = FAILING._replace(parked_ms=1, reason=Reason.AUTH_FAILED)
    assert target_health.warnings(replace(WELL, place="parked", status=parked), {}) == [
        "The target is a dead letter: auth_failed."
    ]
    disabled = replace(WELL, row=replace(FIXED, device_enabled=False))
    assert target_health.warnings(disabled, {}) == ["The device is disabled."]
