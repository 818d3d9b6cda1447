"""The schedule of a target: given over stored over declared over configured values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.scheduling import schedule
from poller.domain.scheduling.interval import Adaptive, Policy
from poller.domain.scheduling.schedule import NO_DEFAULTS, Defaults, Schedule

FIXED, ADAPTIVE = Policy.FIXED, Policy.ADAPTIVE
STORED = Schedule(FIXED, 60_000, 10_000)
ADAPTING = Schedule(ADAPTIVE, 10_000, 5_000, 5_000, 300_000, "steady")
DECLARING = Defaults(Schedule(ADAPTIVE, 30_000, 20_000, 15_000, 120_000, "change"))


@pytest.mark.parametrize(
    ("given_", "stored", "defaults", "expected"),
    [
        (Schedule(), None, NO_DEFAULTS, Schedule(FIXED, 60_000, 10_000)),
        (Schedule(ADAPTIVE), None, NO_DEFAULTS, ADAPTING),
        (Schedule(), None, DECLARING, DECLARING.declared),
        (Schedule(FIXED), None, DECLARING, Schedule(FIXED, 30_000, 20_000)),
        (
            Schedule(ADAPTIVE),
            None,
            Defaults(adaptive=Adaptive(2_000, 4_000, 8_000)),
            Schedule(ADAPTIVE, 4_000, 2_000, 2_000, 8_000, "steady"),
        ),
        # what is stored stays, the collector has no more say in it
        (Schedule(), STORED, DECLARING, STORED),
        (Schedule(interval_ms=37_000), STORED, NO_DEFAULTS, Schedule(FIXED, 37_000, 10_000)),
        (
            Schedule(max_ms=20_000),
            ADAPTING,
            DECLARING,
            Schedule(ADAPTIVE, 10_000, 5_000, 5_000, 20_000, "steady"),
        ),
        # a change of policy keeps the interval, as base or as it is
        (
            Schedule(ADAPTIVE),
            STORED,
            NO_DEFAULTS,
            Schedule(ADAPTIVE, 60_000, 10_000, 5_000, 300_000, "steady"),
        ),
        (Schedule(FIXED), ADAPTING, NO_DEFAULTS, Schedule(FIXED, 10_000, 5_000)),
        # defaults make room for what is given
        (
            Schedule(ADAPTIVE, 600_000),
            None,
            NO_DEFAULTS,
            Schedule(ADAPTIVE, 600_000, 10_000, 5_000, 600_000, "steady"),
        ),
        (
            Schedule(ADAPTIVE, 2_000),
            None,
            NO_DEFAULTS,
            Schedule(ADAPTIVE, 2_000, 1_000, 2_000, 300_000, "steady"),
        ),
        (
            Schedule(ADAPTIVE, min_ms=20_000, max_ms=40_000),
            None,
            NO_DEFAULTS,
            Schedule(ADAPTIVE, 20_000, 10_000, 20_000, 40_000, "steady"),
        ),
        (
            Schedule(interval_ms=15_000),
            None,
            DECLARING,
            Schedule(ADAPTIVE, 15_000, 7_500, 15_000, 120_000, "change"),
        ),
    ],
)
def test_a_schedule_is_resolved(
    given_: Schedule, stored: Schedule | None, defaults: Defaults, expected: Schedule
) -> None:
    """Given, stored, declared, configured values apply in this order."""
    settled = schedule.resolve(given_, stored, defaults)
    assert settled == expected
    assert list(schedule.problems(given_, settled)) == []


@pytest.mark.parametrize(
    ("given_", "stored", "field", "message"),
    [
        (Schedule(min_ms=5_000), STORED, "min", "a fixed interval has no min"),
        (Schedule(max_ms=5_000), None, "max", "a fixed interval has no max"),
        (Schedule(staleness="age"), STORED, "staleness", "a fixed interval has no staleness"),
        (Schedule(FIXED, min_ms=5_000), ADAPTING, "min", "a fixed interval has no min"),
        (Schedule(min_ms=20_000), ADAPTING, "min", "the min 20s is longer than the interval 10s"),
        (Schedule(max_ms=8_000), ADAPTING, "max", "the interval 10s is longer than the max 8s"),
        (
            Schedule(interval_ms=600_000),
            ADAPTING,
            "interval",
            "the interval 10m is longer than the max 5m",
        ),
        (
            Schedule(ADAPTIVE, min_ms=9_000, max_ms=6_000),
            None,
            "min",
            "the min 9s is longer than the max 6s",
        ),
        (
            Schedule(timeout_ms=60_000),
            STORED,
            "timeout",
            "the timeout 1m must be shorter than the interval 1m",
        ),
        (
            Schedule(interval_ms=5_000),
            STORED,
            "timeout",
            "the timeout 10s must be shorter than the interval 5s",
        ),
    ],
)
def test_a_problem_names_a_given_field(
    given_: Schedule, stored: Schedule | None, field: str, message: str
) -> None:
    """Each problem has a hint."""
    settled = schedule.resolve(given_, stored, NO_DEFAULTS)
    [problem] = schedule.problems(given_, settled)
    assert (problem.field, problem.message) == (field, message)
    assert problem.hint


def test_a_draft_is_checked_without_the_database() -> None:
    """Missing values are no problem of a draft, contradictions are."""
    for fine in (
        Schedule(),
        Schedule(min_ms=5_000),
        Schedule(ADAPTIVE, max_ms=9_000),
        Schedule(timeout_ms=99_000),
    ):
        assert list(schedule.problems(fine, fine)) == []
    wrong = Schedule(min_ms=9_000, max_ms=6_000)
    [problem] = schedule.problems(wrong, wrong)
    assert problem.message == "the min 9s is longer than the max 6s"
    assert problem.hint == "choose a min of 6s or less, or a max of 9s or more"


times = st.none() | st.integers(1_000, 10**8)


@given(st.sampled_from([None, FIXED, ADAPTIVE]), times, st.sampled_from([NO_DEFAULTS, DECLARING]))
def test_defaults_alone_are_never_a_problem(
    policy: Policy | None, interval_ms: int | None, defaults: Defaults
) -> None:
    """The defaults fit around any given interval."""
    given_ = Schedule(policy, interval_ms)
    assert list(schedule.problems(given_, schedule.resolve(given_, None, defaults))) == []
