"""Values derived from the token and the instants of a run."""

from __future__ import annotations

import pytest

from poller.domain.failures.outcome import Result
from poller.domain.record import run
from poller.domain.record.run import Run

NOW = 1_794_874_392_123


def test_a_claim_token_has_the_time_of_the_claim() -> None:
    """`<epoch>.<ms in hex>.<random>`, as the dispatcher makes it."""
    assert run.claimed_ms(f"12.{NOW:x}.0123456789") == NOW
    assert run.queue_ms(f"12.{NOW:x}.0123456789", NOW + 250) == 250


@pytest.mark.parametrize(
    "token",
    [
        "",
        "t",
        "12.0123456789",
        "12.zz.ab",
        "12..ab",
        "-1.ff.ab",
        "1.ff.ab.cd",
        "1.ff.",
        "1.-f.ab",
        f"1.{'f' * 14}.ab",
    ],
)
def test_any_other_token_does_not(token: str) -> None:
    """One of an older version, of a test, or rubbish."""
    assert run.claimed_ms(token) is None
    assert run.queue_ms(token, NOW) == 0


def test_a_clock_that_was_set_back_makes_no_negative_wait() -> None:
    """The wait is 0 then."""
    assert run.queue_ms(f"1.{NOW:x}.ab", NOW - 5_000) == 0


def test_what_never_began_has_neither_lateness_nor_duration() -> None:
    """A lost lease, for example."""
    never = Run(1, NOW, Result.FAILED, finished_ms=NOW + 9)
    begun = Run(1, NOW, Result.OK, started_ms=NOW + 20, finished_ms=NOW + 150)
    assert (never.lateness_ms, never.duration_ms) == (None, 0)
    assert (begun.lateness_ms, begun.duration_ms) == (20, 130)


def test_a_start_call_names_its_worker() -> None:
    """The name has no separator of the board's record; a call without a worker names none."""
    assert run.runner_of(run.call_name("w1@a~b", "1f")) == "w1@a~b"
    assert run.call_name("w|1@a", "1f") == "w_1@a~1f"
    assert run.runner_of("conclude") == ""
