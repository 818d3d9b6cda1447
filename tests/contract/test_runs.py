"""The ledger stores one row per planned poll and measures lateness."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.inventory import devices, targets
from poller.db.record import run_ledger, run_pages
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import Lateness
from poller.domain.record.run import Run


def run(target_id: int = 1, plan_ms: int = 1_000, **fields: object) -> Run:
    values = {
        "outcome": Result.OK,
        "started_ms": plan_ms + 5,
        "finished_ms": plan_ms + 100,
        "token": "t1",
    }
    return Run(target_id, plan_ms, **{**values, **fields})  # type: ignore[arg-type]


def stored(engine: Engine) -> list[Run]:
    return [row.run for row in run_pages.recent(engine, limit=1000)]


def test_a_run_comes_back_as_it_was_written(engine: Engine) -> None:
    """Every field of a run survives, also odd text."""
    line = run(
        outcome=Result.PARTIAL,
        attempt=2,
        error_code="timeout",
        message="naïve ‘text’ % ?",
        samples=7,
        runner="w1@h",
        queue_ms=12,
        collect_ms=80,
        write_ms=3,
    )
    run_ledger.write(engine, [line])
    assert stored(engine) == [line]


def test_writing_twice_changes_nothing(engine: Engine) -> None:
    """A run that is written twice, as after a second delivery by Celery, stays one row."""
    batch = [run(number) for number in range(1, 65)]
    run_ledger.write(engine, batch)
    run_ledger.write(engine, list(reversed(batch)))
    assert sorted(stored(engine), key=lambda r: r.target_id) == batch


def test_an_empty_batch_is_accepted(engine: Engine) -> None:
    """An empty batch of runs makes no statement."""
    run_ledger.write(engine, [])
    assert stored(engine) == []


def test_a_retry_replaces_its_first_attempt_and_keeps_the_first_start(engine: Engine) -> None:
    """Lateness and queue time of a run count until its first start, not its last."""
    first = run(
        outcome=Result.FAILED,
        started_ms=1_010,
        finished_ms=1_500,
        queue_ms=7,
        collect_ms=490,
        write_ms=1,
    )
    second = run(
        attempt=2, started_ms=2_000, finished_ms=2_100, queue_ms=997, collect_ms=100, write_ms=4
    )
    run_ledger.write(engine, [first])
    run_ledger.write(engine, [second])
    assert stored(engine) == [second._replace(started_ms=1_010, queue_ms=7)]


def test_a_late_first_attempt_does_not_undo_the_retry(engine: Engine) -> None:
    """Rows of one run may arrive in any order."""
    run_ledger.write(engine, [run(attempt=2, started_ms=2_000)])
    run_ledger.write(engine, [run(attempt=1, outcome=Result.FAILED, started_ms=1_010)])
    assert [line.attempt for line in stored(engine)] == [2]


def test_a_worker_that_lost_its_lease_does_not_overwrite_the_newer_run(engine: Engine) -> None:
    """A row with another token wins only if its run started later."""
    newer = run(token="t2", started_ms=5_000)
    run_ledger.write(engine, [newer])
    run_ledger.write(engine, [run(token="t1", started_ms=1_005, outcome=Result.FAILED, attempt=9)])
    assert stored(engine) == [newer]
    newest = run(token="t3", started_ms=6_000, attempt=1)
    run_ledger.write(engine, [newest])
    assert stored(engine) == [newest]


def test_one_batch_may_name_a_run_twice(engine: Engine) -> None:
    """The later of two attempts in one batch counts."""
    run_ledger.write(engine, [run(attempt=2, started_ms=2_000), run(attempt=1, started_ms=1_000)])
    assert [line.attempt for line in stored(engine)] == [2]


def test_concurrent_writers_of_the_same_rows_do_not_deadlock(engine: Engine) -> None:
    """Eight threads write overlapping batches in different orders."""
    failures: list[Exception] = []

    def write(number: int) -> None:
        batch = [
            run(target_id, token=f"t{number}", started_ms=1_000 + number)
            for target_id in range(1, 60)
        ]
        try:
            for _ in range(5):
                run_ledger.write(engine, batch if number % 2 else batch[::-1])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {line.token for line in stored(engine)} == {"t7"}


def test_recent_runs_by_target_device_failure_and_age(engine: Engine) -> None:
    """Recent runs come newest first, with the current names of device and target."""
    for name in ("sw1", "sw2"):
        devices.add(engine, DeviceDraft(name, address="192.0.2.1"), [TargetDraft(collector="snmp")])
    one, two = (targets.show(engine, name, "snmp").id for name in ("sw1", "sw2"))
    run_ledger.write(
        engine,
        [run(one, 1_000), run(one, 2_000, outcome=Result.FAILED), run(two, 3_000), run(999, 4_000)],
    )
    assert [row.run.plan_ms for row in run_pages.recent(engine)] == [4_000, 3_000, 2_000, 1_000]
    assert [(row.device, row.target) for row in run_pages.recent(engine, limit=2)] == [
        ("", ""),
        ("sw2", "snmp"),
    ]
    assert [row.run.plan_ms for row in run_pages.recent(engine, target_ids=[one])] == [
        2_000,
        1_000,
    ]
    assert [
        row.run.plan_ms for row in run_pages.recent(engine, target_ids=[one], failed_only=True)
    ] == [2_000]
    assert [row.run.plan_ms for row in run_pages.recent(engine, since_ms=3_000)] == [4_000, 3_000]
    assert [row.run.plan_ms for row in run_pages.recent(engine, failed_only=True)] == [2_000]
    assert run_pages.recent(engine, target_ids=[]) == []
    many = range(two, two + 100)
    assert [row.run.plan_ms for row in run_pages.recent(engine, target_ids=many)] == [3_000]


def test_recent_runs_are_read_along_an_index(engine: Engine) -> None:
    """No query plan for recent runs scans or sorts the table."""
    devices.add(engine, DeviceDraft("sw1", address="192.0.2.1"), [TargetDraft(collector="snmp")])
    now = 10_000_000
    run_ledger.write(
        engine,
        [
            run(1 + n % 200, now - n, outcome=Result.FAILED if n % 50 else Result.OK)
            for n in range(6_000)
        ],
    )
    asked: list[tuple[str, object]] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *a: asked.append((a[2], a[3])))
    for question in (
        {"target_ids": [1]},
        {"failed_only": True},
        {},
        {"target_ids": [1], "failed_only": True},
        {"target_ids": range(1, 100)},
    ):
        asked.clear()
        run_pages.recent(engine, limit=20, **question)
        text, values = next(item for item in asked if "FROM runs" in item[0])
        explain = "EXPLAIN " if engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "
        with sql.writing(engine) as conn:
            if engine.dialect.name == "postgresql":
                conn.exec_driver_sql("ANALYZE runs")
            plan = "\n".join(str(row) for row in conn.exec_driver_sql(explain + text, values))
        assert "Seq Scan on runs" not in plan, plan
        assert "SCAN runs" not in plan, plan


def test_lateness_is_exact_and_leaves_out_unstarted_runs(engine: Engine) -> None:
    """A hundred polls late by 1 to 100 ms count; a refused poll does not."""
    run_ledger.write(
        engine, [run(number, 10_000, started_ms=10_000 + number) for number in range(1, 101)]
    )
    run_ledger.write(engine, [run(500, 10_000, outcome=Result.REFUSED, started_ms=99_000)])
    run_ledger.write(
        engine, [run(501, 10_000, outcome=Result.FAILED, error_code="lease_lost", started_ms=0)]
    )
    assert run_ledger.lateness(engine, 0) == Lateness(100, 50, 99, 100)
    assert run_ledger.lateness(engine, 10_001) == Lateness()


def test_counts_by_outcome(engine: Engine) -> None:
    """Counts by outcome include only runs planned since the given instant."""
    run_ledger.write(engine, [run(1), run(2), run(3, outcome=Result.FAILED), run(4, plan_ms=1)])
    assert run_ledger.counts(engine, 1_000) == {Result.OK: 2, Result.FAILED: 1}


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 10), (10, 20), (20, 30)], 0),
        ([(1, 10), (9, 20)], 1),
        ([(1, 100), (10, 20), (30, 40)], 2),
        ([(5, 9), (5, 9)], 1),
    ],
)
def test_overlapping_runs_of_one_target_are_counted(
    engine: Engine, spans: list[tuple[int, int]], expected: int
) -> None:
    """Adjacent runs do not overlap; a long run over two later runs makes two overlaps."""
    base = 1_000
    lines = [
        run(1, base + number, started_ms=base + start, finished_ms=base + end)
        for number, (start, end) in enumerate(spans)
    ]
    run_ledger.write(engine, [*lines, *(line._replace(target_id=2) for line in lines[:1])])
    assert run_ledger.overlaps(engine, 0) == expected


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 50), st.integers(0, 20)),
        max_size=25,
        unique_by=lambda span: (span[0], span[1]),
    )
)
def test_overlaps_agree_with_a_plain_count(
    engine: Engine, spans: list[tuple[int, int, int]]
) -> None:
    """The window function counts the same overlaps as a loop."""
    with sql.writing(engine) as conn:
        conn.exec_driver_sql("DELETE FROM runs")
    run_ledger.write(
        engine,
        [run(t, start, started_ms=start, finished_ms=start + length) for t, start, length in spans],
    )
    expected = 0
    for target_id in {t for t, _, _ in spans}:
        busy_until = 0
        for _, start, length in sorted(span for span in spans if span[0] == target_id):
            expected += start < busy_until
            busy_until = max(busy_until, start + length)
    assert run_ledger.overlaps(engine, 0) == expected
