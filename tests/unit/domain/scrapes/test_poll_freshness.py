"""Which poll answers a scrape."""

from __future__ import annotations

import pytest

from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.domain.scrapes import poll_freshness
from poller.domain.scrapes.poll_freshness import Source

RUN_MS = 1_000_000
OK = Status(State.OK, RUN_MS, RUN_MS, RUN_MS + 300, RUN_MS + 300)
FAILED = OK._replace(state=State.FAILING, code="timeout", message="no answer")


@pytest.mark.parametrize(
    ("age_ms", "source"),
    [(0, Source.LAST_POLL), (65_000, Source.LAST_POLL), (65_001, Source.NEXT_POLL)],
)
def test_a_poll_is_fresh_for_an_interval_and_some_seconds(age_ms: int, source: Source) -> None:
    """The next poll and the writing of its readings take some time."""
    read_ms = RUN_MS + 200
    found = poll_freshness.judge(OK, read_ms, 60_000, read_ms + age_ms)
    assert found.source is source


def test_a_short_interval_has_a_short_grace() -> None:
    """Five seconds would be twenty-five polls."""
    assert poll_freshness.fresh_ms(200) == 250


def test_readings_of_an_earlier_run_are_no_answer() -> None:
    """The readings of the last run are still on their way to the database."""
    found = poll_freshness.judge(OK, RUN_MS - 1, 60_000, RUN_MS + 400)
    assert found.source is Source.NEXT_POLL


def test_a_target_that_was_never_polled_is_waited_for() -> None:
    """A new device has no last poll."""
    assert poll_freshness.judge(Status(), None, 60_000, RUN_MS).source is Source.NEXT_POLL


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (FAILED, "timeout: no answer"),
        (FAILED._replace(breaker=Breaker(2, 1, 2)), "its breaker is open after timeout: no answer"),
        (FAILED._replace(parked_ms=1), "it needs a person since timeout: no answer"),
    ],
)
def test_a_failing_target_is_not_polled_by_those_who_look(status: Status, text: str) -> None:
    """However old the failure is: a dark site would be polled by every scrape."""
    found = poll_freshness.judge(status, RUN_MS - 60_000, 60_000, RUN_MS + 10_000_000)
    assert (found.source, found.text) == (Source.FAILURE, text)


def test_a_finding_is_an_answer() -> None:
    """A ping that finds a device down has readings that say so."""
    down = FAILED._replace(code="down")
    assert poll_freshness.judge(down, RUN_MS, 60_000, RUN_MS + 9).source is Source.LAST_POLL
