"""Which failed polls get another attempt: single failures do, a site that went dark does not."""

from __future__ import annotations

from poller.domain.failures.outcome import Outcome, Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.settings import Settings
from poller.state.board.board_values import Started
from poller.workers.batch.finished_poll import FinishedPoll
from poller.workers.batch.retries import Retries
from poller.workers.batch.target_cache import CachedTarget

NOW_MS = 1_800_000_000_000
GOOD = Outcome(Result.OK)
SILENT = Outcome(Result.FAILED, "timeout")
PARTIAL = Outcome(Result.PARTIAL, "timeout")


def finished(number: int, site: str, outcome: Outcome) -> FinishedPoll:
    target = PollTarget(number, 1, "snmp", number, f"d{number}", "", site, "snmp", 60_000, 5_000)
    return FinishedPoll(
        cached=CachedTarget(target, 1),
        started=Started(number, Result.OK, NOW_MS, 1, "poll.snmp", Status(State.OK)),
        outcome=outcome,
        started_ms=NOW_MS,
        answered_ms=NOW_MS + 3_000,
        finished_ms=NOW_MS + 3_000,
    )


def count_retried(retries: Retries, site: str, *outcomes: Outcome) -> int:
    polls = [finished(number, site, outcome) for number, outcome in enumerate(outcomes)]
    return len(retries.choose(polls, attempt=0))


def test_single_failures_are_retried() -> None:
    """Two of four polls failed, and both get another attempt."""
    assert count_retried(Retries(Settings()), "west", GOOD, SILENT, GOOD, SILENT) == 2


def test_a_site_is_not_retried_after_ten_unanswered_polls_in_a_row() -> None:
    """The count goes on from round to round. Other sites, and devices without a site, are not
    affected.
    """
    retries = Retries(Settings())
    assert count_retried(retries, "west", *[SILENT] * 9) == 9
    assert count_retried(retries, "west", SILENT) == 0
    assert count_retried(retries, "west", SILENT) == 0
    assert count_retried(retries, "east", SILENT) == 1
    assert count_retried(retries, "", *[SILENT] * 12) == 12
    assert count_retried(Retries(Settings()), "north", *[SILENT] * 10) == 0


def test_one_answer_of_a_site_allows_retries_again() -> None:
    """A partial answer counts as an answer."""
    retries = Retries(Settings())
    for answer in (GOOD, PARTIAL):
        assert count_retried(retries, "west", *[SILENT] * 10) == 0
        assert count_retried(retries, "west", answer) == 0
        assert count_retried(retries, "west", SILENT) == 1
