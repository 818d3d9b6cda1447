"""Statistics of a target and a day: counted by the database, stored once, read by key."""

from __future__ import annotations

import math
import random

from sqlalchemy.engine import Engine

from poller.db.record import retention, run_ledger, target_statistics
from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run
from poller.domain.record.target_day import DAY_MS, TargetDay
from tests.contract.test_retention import AGES

DAY = 20_000 * DAY_MS
NEXT = DAY + DAY_MS


def run(
    plan_ms: int,
    outcome: Result = Result.OK,
    duration_ms: int = 10,
    late_ms: int = 5,
    target_id: int = 1,
) -> Run:
    started_ms = plan_ms + late_ms
    finished_ms = started_ms + duration_ms
    return Run(target_id, plan_ms, outcome, started_ms=started_ms, finished_ms=finished_ms)


def count(engine: Engine, ids: tuple[int, ...] = (1,)) -> list[TargetDay]:
    return target_statistics.count_day(engine, DAY, ids)


def test_a_day_has_the_outcomes_of_its_polls(engine: Engine) -> None:
    """Runs that were refused, lost before their start or given up are no polls."""
    outcomes = [Result.OK] * 5 + [Result.PARTIAL] * 2 + [Result.FAILED] * 3
    rows = [run(DAY + slot * 1000, outcome) for slot, outcome in enumerate(outcomes)]
    unpolled = (Result.REFUSED, Result.STALE, Result.FAILED)
    rows += [Run(1, DAY + 60_000 + slot, outcome) for slot, outcome in enumerate(unpolled)]
    run_ledger.write(engine, rows)
    [day] = count(engine)
    assert (day.polls, day.ok, day.partial, day.failed, day.unpolled) == (10, 5, 2, 3, 3)
    assert day.availability == 0.7


def test_a_target_whose_polls_never_started_has_no_availability(engine: Engine) -> None:
    """Neither 0 % nor 100 % is true."""
    run_ledger.write(engine, [Run(1, DAY, Result.REFUSED)])
    assert count(engine) == [TargetDay(DAY, 1, unpolled=1)]
    assert count(engine)[0].availability is None


def test_a_day_begins_and_ends_at_midnight_utc(engine: Engine) -> None:
    """The slot decides, not the start."""
    run_ledger.write(engine, [run(at_ms) for at_ms in (DAY - 1, DAY, NEXT - 1, NEXT)])
    assert [day.polls for day in count(engine)] == [2]


def test_percentiles_are_those_of_the_sorted_durations(engine: Engine) -> None:
    """Each target has its own; the order of the rows does not matter; a clock that was set back
    makes no negative duration.
    """
    numbers = random.Random(7)
    rows = []
    durations: dict[int, list[int]] = {}
    lateness: dict[int, list[int]] = {}
    for target_id, polls in ((1, 1), (2, 2), (3, 19), (4, 100), (5, 101)):
        durations[target_id] = [numbers.randrange(-3, 500) for _ in range(polls)]
        lateness[target_id] = [numbers.randrange(-3, 90) for _ in range(polls)]
        for slot in range(polls):
            lasted, late = durations[target_id][slot], lateness[target_id][slot]
            rows.append(run(DAY + slot * 60_000, Result.OK, lasted, late, target_id))
    run_ledger.write(engine, rows)
    for day in count(engine, tuple(durations)):
        values = sorted(max(0, value) for value in durations[day.target_id])
        assert day.p50_ms == percentile(values, 50)
        assert day.p95_ms == percentile(values, 95)
        assert day.max_ms == values[-1]
        assert abs(day.mean_ms - sum(values) / len(values)) <= 0.5
        assert day.late_p95_ms == percentile(sorted(lateness[day.target_id]), 95)


def percentile(values: list[int], percent: int) -> int:
    return values[math.ceil(len(values) * percent / 100) - 1]


def test_targets_are_found_in_steps_also_removed_ones(engine: Engine) -> None:
    """The runs name them, so a target that was removed during the day is counted."""
    run_ledger.write(engine, [run(DAY + slot, target_id=2 * slot) for slot in range(1, 8)])
    assert target_statistics.targets_with_runs(engine, 0, 3) == [2, 4, 6]
    assert target_statistics.targets_with_runs(engine, 6, 10) == [8, 10, 12, 14]
    assert target_statistics.targets_with_runs(engine, 14, 10) == []


def test_a_day_that_is_counted_again_is_the_same_row(engine: Engine) -> None:
    """Late rows are added; a day whose runs were pruned meanwhile does not lose its numbers."""
    run_ledger.write(engine, [run(DAY), run(DAY + 1000, Result.FAILED)])
    for _ in range(2):
        target_statistics.write(engine, count(engine))
    [stored] = target_statistics.listing(engine, [1], DAY, DAY)
    assert stored == count(engine)[0]
    run_ledger.write(engine, [run(DAY + 2000)])
    target_statistics.write(engine, count(engine))
    target_statistics.write(engine, [TargetDay(DAY, 1, polls=1, failed=1)])
    [stored] = target_statistics.listing(engine, [1], DAY, DAY)
    assert (stored.polls, stored.ok, stored.failed) == (3, 2, 1)


def test_days_are_listed_by_target_and_range(engine: Engine) -> None:
    """Both ends are included, in the order of days."""
    days = [TargetDay(DAY + n * DAY_MS, target, polls=1) for n in range(4) for target in (1, 2, 3)]
    target_statistics.write(engine, days[::-1])
    found = target_statistics.listing(engine, [1, 3], DAY + DAY_MS, DAY + 2 * DAY_MS)
    keys = [((day.day_ms - DAY) // DAY_MS, day.target_id) for day in found]
    assert keys == [(1, 1), (1, 3), (2, 1), (2, 3)]


def test_old_days_are_pruned(engine: Engine) -> None:
    """Runs of a week prove the time."""
    now_ms = DAY + 500 * DAY_MS
    run_ledger.write(engine, [Run(9, now_ms - n * DAY_MS, Result.OK) for n in range(1, 9)])
    target_statistics.write(engine, [TargetDay(DAY + n * DAY_MS, 1) for n in range(98, 103)])
    done = retention.prune(engine, now_ms, AGES, sleep=lambda _: None)
    assert done.target_days == 2
