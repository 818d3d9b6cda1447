"""The ledger's rule holds within one statement as it does between statements."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.record import run_ledger, run_pages
from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run


def stored(engine: Engine) -> list[Run]:
    return sorted(
        (row.run for row in run_pages.recent(engine, limit=1000)), key=lambda run: run.target_id
    )


a_run = st.builds(
    lambda **fields: Run(**fields),  # the rest as it comes
    target_id=st.integers(1, 2),
    plan_ms=st.just(1_000),
    outcome=st.just(Result.OK),
    token=st.sampled_from(["t1", "t2"]),
    attempt=st.integers(1, 3),
    started_ms=st.sampled_from([0, 1_001, 1_002, 1_003]),
    message=st.uuids().map(str),
)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(a_run, max_size=8))
def test_many_rows_at_once_are_the_same_as_one_by_one(engine: Engine, lines: list[Run]) -> None:
    """Attempts and retries in one statement give the same rows as one statement each."""
    found = []
    for batches in ([lines], [[line] for line in lines]):
        with sql.writing(engine) as conn:
            conn.exec_driver_sql("DELETE FROM runs")
        for batch in batches:
            run_ledger.write(engine, batch)
        found.append(stored(engine))
    assert found[0] == found[1]
