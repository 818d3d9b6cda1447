"""Terms of a job: what cannot work is refused with the name of the job and of the field."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from poller import errors
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.domain.jobs.job_terms import CatchUp, JobTerms

GOOD = JobTerms("tidy", Cron("0 2 * * *", "Europe/Amsterdam"), "Tidies up.")
NO_NUMBERS: list[Any] = [float("nan"), float("inf"), True, "60", None, -1, 10**400, [1]]


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no")


def refusal(**values: Any) -> str:
    with pytest.raises(errors.InvalidInput) as caught:
        replace(GOOD, **values).check()
    return caught.value.message


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("name", "", "it is empty: give a name"),
        ("name", None, "None is not a text"),
        ("name", "a" * 101, "it has more than 100 characters"),
        ("name", "night ly", "it takes letters a to z, digits, - _ and ."),
        ("name", "-nightly", "begins with a letter or digit"),
        ("name", "nightly:1", "it takes letters"),
        ("name", "nächtlich", "it takes letters"),
        ("schedule", None, "give every_s or cron"),
        ("schedule", Cadence(0), "a cadence is one second at least"),
        ("schedule", Cadence(-5000), "a cadence is one second at least"),
        ("schedule", Cadence(10**12), "a cadence is 366 days at most"),
        ("schedule", Cadence(1500.5), "is not a whole number of milliseconds"),  # type: ignore[arg-type]
        ("schedule", Cadence(True), "is not a whole number of milliseconds"),
        ("schedule", Cron("0 2 * *"), "does not have the five fields minute, hour, day, month"),
        ("schedule", Cron("0 0 2 * * *"), "does not have the five fields"),
        ("schedule", Cron("@daily"), "does not have the five fields"),
        ("schedule", Cron("60 2 * * *"), "Bad minute"),
        ("schedule", Cron("0 24 * * *"), "Bad hour"),
        ("schedule", Cron("0 2 32 * *"), "Bad day-of-month"),
        ("schedule", Cron("0 2 31 2 *"), "Bad day-of-month"),
        ("schedule", Cron("0 2 * 13 *"), "Bad month"),
        ("schedule", Cron("0 2 * * 8"), "Bad day-of-week"),
        ("schedule", Cron("*/0 2 * * *"), "Bad minute"),
        ("schedule", Cron(5), "5 is not a text"),  # type: ignore[arg-type]
        ("schedule", Cron("0 2 * * *", "Mars/Base"), '"Mars/Base" is no time zone'),
        ("schedule", Cron("0 2 * * *", ""), '"" is no time zone'),
        ("schedule", Cron("0 2 * * *", "../../etc/passwd"), "is no time zone"),
        ("schedule", Cron("0 2 * * *", None), "None is no time zone"),  # type: ignore[arg-type]
        ("description", None, "None is not a text"),
        ("description", "d" * 501, "it has more than 500 characters"),
        ("run_timeout_s", 0, "0 is not above 0"),
        ("heartbeat_s", 0.0, "0.0 is not above 0"),
        ("stale_timeout_s", 0, "0 is not above 0"),
        ("stale_timeout_s", 19.9, "less than two heartbeats of 10 s"),
        ("run_timeout_s", 32_000_000, "is more than 366 days"),
        ("reentrant", "yes", "'yes' is not True or False"),
        ("overlap", 1, "1 is not True or False"),
        ("max_attempts", 0, "0 is less than 1"),
        ("max_attempts", 2.0, "2.0 is not a whole number"),
        ("max_attempts", True, "True is not a whole number"),
        ("max_attempts", 1001, "it is more than 1000"),
        ("retry_delays_s", (60, -1), "-1 is less than 0"),
        ("retry_delays_s", (60, "60"), "'60' is not a number of seconds"),
        ("retry_delays_s", 60, "60 is not a list of seconds"),
        ("catch_up", "latest", "'latest' is not a CatchUp: latest_only or every_plan"),
        ("max_plans_per_tick", 0, "0 is less than 1"),
        ("max_plans_per_tick", "10", "'10' is not a whole number"),
        ("delay_s", Unprintable(), "a Unprintable is not a number"),
    ],
)
def test_a_fault_is_refused_by_job_and_field(field: str, value: Any, fault: str) -> None:
    """One case per rule."""
    text = refusal(**{field: value})
    if field != "name":
        assert text.startswith(f'job "tidy": {field}: ')
    assert f"{field}: " in text
    assert fault in text


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:10])
@pytest.mark.parametrize(
    "field", ["delay_s", "run_timeout_s", "heartbeat_s", "stale_timeout_s", "catch_up_window_s"]
)
def test_a_duration_is_a_number_that_a_clock_can_reach(field: str, value: Any) -> None:
    """NaN, infinity, truth values, texts and negative numbers are none."""
    assert refusal(**{field: value}).startswith(f'job "tidy": {field}: ')


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:10])
def test_a_retry_delay_is_a_number_that_a_clock_can_reach(value: Any) -> None:
    """Each of the list is checked."""
    assert refusal(retry_delays_s=(1.0, value)).startswith('job "tidy": retry_delays_s: ')


def test_a_name_with_control_characters_does_not_reach_the_terminal() -> None:
    """The message shows escapes."""
    assert refusal(name="\x1b[2Jtidy").startswith(r'job "\x1b[2Jtidy": name: it takes')


@pytest.mark.parametrize(
    "terms",
    [
        GOOD,
        JobTerms("a", Cadence(1000)),
        JobTerms("rollup.v2_hourly-eu", Cadence(300_000), retry_delays_s=(), delay_s=300),
        JobTerms("run", Cron("0 0 29 2 *"), run_timeout_s=7200, stale_timeout_s=20.0),
        JobTerms("all", Cadence(5000), catch_up=CatchUp.EVERY_PLAN, names_plans=True),
    ],
)
def test_good_terms_pass_and_survive_json(terms: JobTerms) -> None:
    """A stale time-out may be shorter than the run time-out: it counts from the last heartbeat."""
    terms.check()
    assert JobTerms.from_json(terms.to_json()) == terms


def test_terms_of_a_later_release_are_read() -> None:
    """Fields that this release does not know are left out; missing ones have their default."""
    stored = {**GOOD.to_json(), "colour": "green"}
    del stored["names_plans"]
    assert JobTerms.from_json(stored) == GOOD


@pytest.mark.parametrize(
    "broken",
    [{"schedule": {}}, {"catch_up": "sometimes"}, {"retry_delays_s": None}, {"schedule": []},
     {"schedule": {"every_ms": 0}}, {"schedule": {"cron": "x", "timezone": "UTC"}},
     {"run_timeout_s": "long"}, {"schedule": {"every_ms": math.inf}}],
)  # fmt: skip
def test_stored_terms_that_cannot_work_are_refused(broken: dict[str, Any]) -> None:
    """One damaged row names its job; it does not stop the leader in the middle of planning."""
    with pytest.raises(errors.InvalidInput, match=r'^job "tidy": '):
        JobTerms.from_json({**GOOD.to_json(), **broken})


@pytest.mark.parametrize("terms", [None, [], "tidy", 7])
def test_stored_terms_that_are_no_object_are_refused(terms: Any) -> None:
    """Another program wrote them; the leader goes on with the other rows."""
    with pytest.raises(errors.InvalidInput, match="terms: they cannot be read"):
        JobTerms.from_json(terms)
