"""Outcomes and buckets of job runs."""

from __future__ import annotations

import pytest

from poller.domain.jobs import run_totals
from poller.domain.jobs.job_run import FailureCode
from poller.domain.jobs.run_totals import EDGES_S, RunOutcome


@pytest.mark.parametrize(
    ("duration_s", "index"),
    [(-1.0, 0), (0.0, 0), (0.1, 0), (0.11, 1), (3600.0, 12), (3601.0, len(EDGES_S))],
)
def test_an_edge_belongs_to_its_bucket(duration_s: float, index: int) -> None:
    """A bucket of Prometheus holds what is less than or equal to its edge."""
    assert run_totals.bucket(duration_s) == index


@pytest.mark.parametrize("code", FailureCode)
def test_every_failure_has_an_outcome(code: FailureCode) -> None:
    """Only failures of the handler are told apart by whether they are tried again."""
    final, retried = (run_totals.of_failure(code, again) for again in (False, True))
    own = {
        FailureCode.CANCELED: RunOutcome.CANCELED,
        FailureCode.LEASE_LOST: RunOutcome.LEASE_LOST,
        FailureCode.STALE_TIMEOUT: RunOutcome.STALE,
    }
    expected = (own[code], own[code]) if code in own else (RunOutcome.FAILED, RunOutcome.RETRIED)
    assert (final, retried) == expected
