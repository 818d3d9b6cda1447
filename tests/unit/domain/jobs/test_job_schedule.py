"""Plans of a schedule: on the UTC grid, by cron, and on days when the clock is changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from poller.domain.jobs import job_schedule, wall_clock
from poller.domain.jobs.job_schedule import Cadence, Cron

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
AMSTERDAM = "Europe/Amsterdam"

#: Days on which the clock is changed: by an hour, by half an hour, at midnight, in the south.
CHANGES = [
    (AMSTERDAM, "2026-03-29"),
    (AMSTERDAM, "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Pacific/Chatham", "2026-04-05"),
    ("Pacific/Chatham", "2026-09-27"),
    ("America/Havana", "2026-03-08"),
    ("America/Havana", "2026-11-01"),
    ("Asia/Beirut", "2026-03-29"),
    ("Africa/Cairo", "2026-04-24"),
    ("Africa/Casablanca", "2026-02-15"),
    ("America/St_Johns", "2026-03-08"),
    ("Pacific/Apia", "2011-12-30"),  # the whole day was left out
    ("Asia/Kolkata", "2026-03-29"),  # no change
    ("UTC", "2026-03-29"),
]
EXPRESSIONS = [
    "30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "*/30 2 * * *", "0 */2 * * *", "0 * * * *",
    "*/20 * * * *", "7 0-23 * * *", "30 2 * * 0", "0 3 29 3 *", "59 23 * * *", "* 2 * * *",
]  # fmt: skip


def at(text: str, zone: str = "UTC", fold: int = 0) -> int:
    """`2026-03-29 02:30` of the wall clock, in UTC milliseconds."""
    wall = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return round(wall.timestamp() * 1000)


@pytest.mark.parametrize(
    ("now", "floor"),
    [
        (at("2026-05-01 10:05"), at("2026-05-01 10:05")),
        (at("2026-05-01 10:07") + 30_500, at("2026-05-01 10:05")),
        (at("2026-05-01 14:07", "Asia/Kathmandu"), at("2026-05-01 08:20")),
    ],
    ids=["on the boundary", "between", "in another zone"],
)
def test_a_cadence_lies_on_the_utc_grid(now: int, floor: int) -> None:
    """The newest plan is the instant rounded down to a multiple of the interval."""
    every = Cadence(5 * MINUTE_MS)
    assert every.latest_ms(now) == floor
    assert every.next_ms(now) == floor + 5 * MINUTE_MS
    assert every.plans(floor, floor + HOUR_MS, 3) == [floor + n * 5 * MINUTE_MS for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("expression", "latest", "following"),
    [
        ("* * * * *", "2026-07-15 10:17", "2026-07-15 10:18"),
        ("0 * * * *", "2026-07-15 10:00", "2026-07-15 11:00"),
        ("0 0 * * *", "2026-07-15 00:00", "2026-07-16 00:00"),
        ("0 2 * * *", "2026-07-15 02:00", "2026-07-16 02:00"),
        ("0 */6 * * *", "2026-07-15 06:00", "2026-07-15 12:00"),
        ("0 0 * * 0", "2026-07-12 00:00", "2026-07-19 00:00"),
        ("0 0 1 * *", "2026-07-01 00:00", "2026-08-01 00:00"),
        ("0 9 * * 1-5", "2026-07-15 09:00", "2026-07-16 09:00"),
        ("*/5 * * * *", "2026-07-15 10:15", "2026-07-15 10:20"),
        ("0 0,12 * * *", "2026-07-15 00:00", "2026-07-15 12:00"),
    ],
)
def test_ten_examples_of_cron(expression: str, latest: str, following: str) -> None:
    """Stars, lists, ranges, steps and weekdays, at 10:17:30 on a Wednesday."""
    now = at("2026-07-15 10:17") + 30_000
    assert Cron(expression).latest_ms(now) == at(latest)
    assert Cron(expression).next_ms(now) == at(following)


def test_leap_days() -> None:
    """A plan on 29 February comes every four years; 2100 has none."""
    leap = Cron("0 0 29 2 *")
    assert leap.latest_ms(at("2027-06-01 00:00")) == at("2024-02-29 00:00")
    assert leap.next_ms(at("2027-06-01 00:00")) == at("2028-02-29 00:00")
    assert leap.next_ms(at("2096-03-01 00:00")) == at("2104-02-29 00:00")
    last_day = Cron("30 23 L * *")
    assert last_day.next_ms(at("2028-02-01 00:00")) == at("2028-02-29 23:30")


@pytest.mark.parametrize(
    ("day", "plan"),
    [("2026-03-29", at("2026-03-29 03:00", AMSTERDAM)), ("2026-10-25", at("2026-10-25 00:30"))],
    ids=["skipped", "repeated"],
)
def test_half_past_two_comes_once_on_both_days_of_the_change(day: str, plan: int) -> None:
    """In spring right after the hour that is left out; in autumn the first of the two."""
    start = at(f"{day} 00:00", AMSTERDAM)
    nightly = Cron("30 2 * * *", AMSTERDAM)
    assert nightly.plans(start, start + 23 * HOUR_MS, 10) == [plan]
    assert [nightly.latest_ms(plan + minute * MINUTE_MS) for minute in range(0, 180, 7)] == (
        [plan] * 26
    )
    assert nightly.latest_ms(plan - 1) == plan - (24 if day == "2026-10-25" else 23.5) * HOUR_MS


def test_every_hour_is_real_time_on_the_days_of_the_change() -> None:
    """An hourly job runs once in each hour that passes, 23 or 25 of them."""
    hourly = Cron("30 * * * *", AMSTERDAM)
    for day, hours in (("2026-03-29", 23), ("2026-10-25", 25)):
        start = at(f"{day} 00:00", AMSTERDAM)
        plans = hourly.plans(start, start + hours * HOUR_MS, 100)
        assert plans == [start + 30 * MINUTE_MS + hour * HOUR_MS for hour in range(hours)]


@pytest.mark.parametrize(("zone", "day"), CHANGES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_forwards_and_backwards_agree(zone: str, day: str, expression: str) -> None:
    """At every quarter of an hour around a change, both directions know the same plans."""
    cron = Cron(expression, zone)
    middle = at(f"{day} 12:00")
    start, end = middle - 20 * HOUR_MS, middle + 28 * HOUR_MS
    plans = cron.plans(start, end, 100_000)
    assert plans == sorted(set(plans))
    first = cron.latest_ms(start)
    known = [first, *plans]
    assert all(cron.latest_ms(plan) == plan for plan in plans)
    pairs = list(zip(known, plans, strict=False))
    assert all(cron.latest_ms(after - 1) == before for before, after in pairs)
    assert all(cron.next_ms(before) == after for before, after in pairs)
    for instant in range(start, end, 15 * MINUTE_MS):
        assert cron.latest_ms(instant) == max(plan for plan in known if plan <= instant)
        later = [plan for plan in plans if plan > instant]
        assert not later or cron.next_ms(instant) == later[0]


@pytest.mark.parametrize(("zone", "day"), [each for each in CHANGES if "Apia" not in each[0]])
def test_a_daily_plan_comes_once_for_each_day(zone: str, day: str) -> None:
    """For every quarter of an hour of the day, each local day around the change has one plan."""
    first = datetime.fromisoformat(day) - timedelta(days=3)
    days = [(first + timedelta(days=number)).date() for number in range(7)]
    for quarter in range(96):
        cron = Cron(f"{quarter % 4 * 15} {quarter // 4} * * *", zone)
        plans = cron.plans(at(str(first), zone) - 1, 2**50, 7)
        assert [
            datetime.fromtimestamp(plan / 1000, ZoneInfo(zone)).date() for plan in plans
        ] == days


def test_a_day_that_is_left_out_has_its_plans_at_its_end() -> None:
    """Samoa left out 30 December 2011: the plan of that day comes with midnight of the next."""
    plans = Cron("30 2 * * *", "Pacific/Apia").plans(at("2011-12-29 00:00"), 2**50, 4)
    walls = [datetime.fromtimestamp(plan / 1000, ZoneInfo("Pacific/Apia")) for plan in plans]
    assert [f"{wall:%d %H:%M}" for wall in walls] == [
        "29 02:30",
        "31 00:00",
        "31 02:30",
        "01 02:30",
    ]


@given(st.integers(0, 2**32), st.sampled_from(EXPRESSIONS), st.sampled_from(CHANGES))
@settings(max_examples=200, deadline=None)
def test_latest_and_next_enclose_every_instant(
    now_s: int, expression: str, change: tuple[str, str]
) -> None:
    """No plan lies between the two, and each is found from the other."""
    cron = Cron(expression, change[0])
    now = now_s * 1000
    latest, following = cron.latest_ms(now), cron.next_ms(now)
    assert latest <= now < following
    assert cron.next_ms(latest) == following
    assert cron.latest_ms(following) == following


@given(st.integers(0, 2**31), st.sampled_from(EXPRESSIONS))
@settings(max_examples=100, deadline=None)
def test_without_changes_of_the_clock_the_plans_are_those_of_cronsim(
    now_s: int, expression: str
) -> None:
    """In UTC every wall time is one instant."""
    start = datetime.fromtimestamp(now_s, UTC)
    walls = CronSim(expression, start)
    expected = [round(next(walls).timestamp() * 1000) for _ in range(5)]
    assert Cron(expression).plans(now_s * 1000, 2**50, 5) == expected


@given(
    st.lists(
        st.text("0123456789*/,-#LWSUNMOJAFEB?", min_size=1, max_size=6), min_size=5, max_size=5
    )
)
@settings(max_examples=500, deadline=None)
def test_no_expression_is_admitted_that_cannot_be_planned(parts: list[str]) -> None:
    """An expression has a fault in words, or both directions work."""
    expression = " ".join(parts)
    if not wall_clock.fault(expression, AMSTERDAM):
        now = at("2026-07-15 10:17")
        assert Cron(expression, AMSTERDAM).latest_ms(now) <= now
        assert Cron(expression, AMSTERDAM).next_ms(now) > now


def test_a_schedule_survives_json() -> None:
    """The leader reads the terms that a worker announced."""
    for schedule in (Cadence(300_000), Cron("0 2 * * *", AMSTERDAM)):
        assert job_schedule.from_json(schedule.to_json()) == schedule
    assert Cadence(300_000).text == "every 5 m"
    assert Cron("0 2 * * *", AMSTERDAM).text == "0 2 * * * Europe/Amsterdam"
