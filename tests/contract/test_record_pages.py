"""Pages of runs and events: nothing is missed or doubled, and an index serves every filter."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.record import event_rows, newest_rows, run_ledger, run_pages
from poller.db.record.run_pages import RunSelection
from poller.domain.failures.outcome import Result
from poller.domain.record.event_kinds import Event, EventFilter, Kind, VisibleIds
from poller.domain.record.run import Run

NOW = 10_000_000
MANY = range(1, 100)
#: The many kinds of changes for the worse.
BAD = tuple(kind for kind in Kind if kind.is_bad)


def a_run(number: int) -> Run:
    """A run of one of 200 targets; every 50th fails, and ten share each instant."""
    is_bad = number % 50 == 0
    outcome = Result.FAILED if is_bad else Result.OK
    code = ("timeout" if number % 100 else "auth_failed") if is_bad else ""
    return Run(1 + number % 200, NOW - number // 10, outcome, error_code=code, token="t")


def an_event(number: int) -> Event:
    kind = Kind.DEVICE_WENT_DOWN if number % 2 else Kind.DEVICE_RECOVERED
    device = number % 200
    return Event(NOW - number // 3, kind, "m", f"sw{device}", device_id=device, target_id=device)


@pytest.fixture
def filled(engine: Engine) -> Engine:
    run_ledger.write(engine, [a_run(number) for number in range(6_000)])
    rows = [(f"17000000{number:05}-0", an_event(number)) for number in range(6_000)]
    event_rows.record(engine, rows)
    with sql.writing(engine) as conn:
        conn.exec_driver_sql("ANALYZE")
    return engine


def all_runs(engine: Engine, wanted: RunSelection, limit: int) -> list[tuple[int, int]]:
    """The keys of all runs, page by page."""
    found: list[tuple[int, int]] = []
    key = None
    while True:
        page = run_pages.page(engine, wanted, limit, key)
        found += [(each.run.plan_ms, each.run.target_id) for each in page.runs]
        assert len(page.runs) <= limit
        key = page.next_key
        if key is None:
            return found


SELECTIONS = {
    "all": (RunSelection(), lambda run: True),
    "one target": (RunSelection([7]), lambda run: run.target_id == 7),
    "many targets": (RunSelection(MANY), lambda run: run.target_id in MANY),
    "outcome": (RunSelection(outcomes=[Result.FAILED]), lambda run: run.error_code),
    "code": (RunSelection(codes=["timeout"]), lambda run: run.error_code == "timeout"),
    "code of many": (
        RunSelection(MANY, codes=["timeout"]),
        lambda run: run.error_code == "timeout" and run.target_id in MANY,
    ),
    "code of one": (
        RunSelection([51], codes=["timeout"]),
        lambda run: run.error_code == "timeout" and run.target_id == 51,
    ),
    "span": (
        RunSelection(since_ms=NOW - 90, until_ms=NOW - 80),
        lambda run: NOW - 90 <= run.plan_ms < NOW - 80,
    ),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_pages_of_runs_have_every_run_once(
    filled: Engine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a page is short because it examined enough rows."""
    monkeypatch.setattr(newest_rows, "MOST_EXAMINED", 700)
    monkeypatch.setattr(newest_rows, "_LEAST_OF_A_BRANCH", 30)
    wanted, is_wanted = SELECTIONS[name]
    expected = [a_run(number) for number in range(6_000)]
    keys = sorted(
        ((run.plan_ms, run.target_id) for run in expected if is_wanted(run)), reverse=True
    )
    assert all_runs(filled, wanted, 97) == keys


def test_a_page_ends_after_a_bounded_number_of_rows(
    filled: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that matches nothing examines some rows, and says where the next page begins."""
    monkeypatch.setattr(newest_rows, "MOST_EXAMINED", len(Result) * 980)
    page = run_pages.page(filled, RunSelection(range(1_000, 1_100)), 10)
    assert (list(page.runs), page.next_key) == ([], (NOW - 99, 0))
    recent = RunSelection(range(1_000, 1_100), since_ms=NOW - 50)
    assert run_pages.page(filled, recent, 10).next_key is None


def test_runs_that_are_added_between_pages_change_no_later_page(filled: Engine) -> None:
    """New runs come before the first page; the next page goes on where the last one ended."""
    first = run_pages.page(filled, RunSelection(), 10)
    run_ledger.write(filled, [Run(500, NOW + 5, Result.OK), Run(1, NOW + 6, Result.OK)])
    second = run_pages.page(filled, RunSelection(), 10, first.next_key)
    keys = [(each.run.plan_ms, each.run.target_id) for each in (*first.runs, *second.runs)]
    expected = sorted(((r.plan_ms, r.target_id) for r in map(a_run, range(20))), reverse=True)
    assert keys == expected


@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(),
        EventFilter(kinds=(Kind.DEVICE_WENT_DOWN,)),
        EventFilter(kinds=(Kind.DEVICE_WENT_DOWN, Kind.DEVICE_RECOVERED), since_ms=NOW - 90),
        EventFilter(device="sw7"),
        EventFilter(devices={"sw7", "sw8"}, kinds=(Kind.DEVICE_WENT_DOWN,)),
        EventFilter(devices={f"sw{number}" for number in MANY}),
        EventFilter(devices={f"sw{number}" for number in MANY}, kinds=BAD),
        EventFilter(kinds=BAD),
        EventFilter(visible=VisibleIds(frozenset(MANY), frozenset())),
        EventFilter(visible=VisibleIds(frozenset(), frozenset(MANY)), device="sw7"),
        EventFilter(device="sw7", devices={"sw8"}),
        EventFilter(until_ms=NOW - 80, since_ms=NOW - 90),
    ],
)
def test_pages_of_events_have_every_event_once(
    filled: Engine, wanted: EventFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL selects the events that the filter accepts."""
    monkeypatch.setattr(newest_rows, "MOST_EXAMINED", 700)
    monkeypatch.setattr(newest_rows, "_LEAST_OF_A_BRANCH", 30)
    found: list[str] = []
    key = None
    while True:
        page = event_rows.page(filled, wanted, 97, key)
        found += [each.id for each in page.events]
        key = page.next_key
        if key is None:
            break
    accepted = [
        (an_event(number).at_ms, f"17000000{number:05}-0")
        for number in range(6_000)
        if wanted.accepts(an_event(number))
    ]
    assert found == [stream_id for _, stream_id in sorted(accepted, reverse=True)]


@pytest.mark.parametrize("name", SELECTIONS)
def test_pages_of_runs_are_read_along_an_index(filled: Engine, name: str) -> None:
    """No query plan scans the table, nor sorts more than rows of the same instant."""
    plan = _plan(filled, "FROM runs", lambda: run_pages.page(filled, SELECTIONS[name][0], 20))
    assert "Seq Scan on runs" not in plan, plan
    assert "SCAN runs" not in plan, plan


@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(),
        EventFilter(kinds=(Kind.DEVICE_WENT_DOWN,)),
        EventFilter(device="sw7"),
        EventFilter(kinds=BAD),
        EventFilter(kinds=BAD, visible=VisibleIds(frozenset(MANY), frozenset(MANY))),
        EventFilter(visible=VisibleIds(frozenset(MANY), frozenset(MANY))),
    ],
)
def test_pages_of_events_are_read_along_an_index(filled: Engine, wanted: EventFilter) -> None:
    """No query plan scans the table without an index."""
    plan = _plan(filled, "FROM events", lambda: event_rows.page(filled, wanted, 20))
    assert "Seq Scan on events" not in plan, plan
    assert not any("SCAN events" in line and "USING" not in line for line in plan.splitlines()), (
        plan
    )


def _plan(engine: Engine, part: str, action: Any) -> str:
    """The plans of all statements of an action that have this part."""
    asked: list[tuple[str, Any]] = []

    def keep(_conn: Any, _cursor: Any, text: str, values: Any, *_rest: Any) -> None:
        if part in text:
            asked.append((text, values))

    sa.event.listen(engine, "before_cursor_execute", keep)
    try:
        action()
    finally:
        sa.event.remove(engine, "before_cursor_execute", keep)
    assert asked
    explain = "EXPLAIN " if engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "
    lines = []
    with sql.reading(engine) as conn:
        for text, values in asked:
            lines += [str(row) for row in conn.exec_driver_sql(explain + text, values)]
    return "\n".join(lines)
