"""Runs of jobs in words."""

from __future__ import annotations

import pytest

from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms
from poller.presentation import job_texts
from poller.service import job_listing


def test_details_are_on_one_short_line() -> None:
    """Words as they are, texts with spaces quoted, the rest as JSON; no more than a line."""
    details = {"site": "ams", "note": "two words", "seen": 3, "empty": "", "by": {"a": [1, 2]}}
    text = 'site=ams note="two words" seen=3 empty="" by={"a":[1,2]}'
    assert job_texts.details(details) == text
    assert job_texts.details({}) == ""
    long = job_texts.details({"name": "x" * 16_000})
    assert (len(long), long[-2:]) == (job_texts.LONGEST_RESULT, "x…")


def test_a_run_without_a_second_attempt_is_not_one_of_one() -> None:
    assert [job_texts.attempts(1, 3), job_texts.attempts(1, 1)] == ["1 of 3", "1"]


@pytest.mark.parametrize(
    ("attempts", "delays", "reentrant", "words"),
    [
        (3, (60, 300, 900), True, "3 attempts, again after 1 m, 5 m"),
        (5, (60,), True, "5 attempts, again after 1 m"),
        (1, (60, 300), True, "no retry"),
        (3, (), False, "no retry"),
        (3, (), True, "no retry; an abandoned run has 3 attempts"),
    ],
)
def test_only_the_delays_that_are_used_are_shown(
    attempts: int, delays: tuple[float, ...], reentrant: bool, words: str
) -> None:
    """A delay follows each attempt but the last."""
    terms = JobTerms(
        "nightly",
        Cadence(60_000),
        max_attempts=attempts,
        retry_delays_s=delays,
        reentrant=reentrant,
    )
    assert dict(job_listing.terms_in_words(terms))["retries"] == words
