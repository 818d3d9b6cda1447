"""The job `prune`: which clock it uses, and what it says when it leaves old rows alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from poller.beat import reconcile
from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.inventory import inventory_feed
from poller.db.record import retention, run_ledger, run_pages
from poller.db.tables import removed_targets
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Kind
from poller.domain.record.run import Run
from poller.jobs import api
from poller.jobs.builtin import prune as module
from poller.state.cluster import event_stream, overview_reader
from tests.integration.job_contexts import RunContext

DAY_MS = 86_400_000


@pytest.fixture
def host_ms(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """This host's clock, set 100 days ahead for Python; Redis and SQLite have the real one."""
    now_ms = time.time_ns() // 1_000_000
    monkeypatch.setattr(time, "time_ns", lambda: (now_ms + 100 * DAY_MS) * 1_000_000)
    return now_ms


def store_runs(services: Services, now_ms: int, days: range) -> None:
    rows = [Run(1, now_ms - day * DAY_MS - 1, Result.OK) for day in days]
    run_ledger.write(services.engine, rows)


def prune(services: Services, cancel_at: int | None = None) -> api.Result:
    result = module.prune(RunContext(services, cancel_at=cancel_at))
    assert isinstance(result, api.Result)
    return result


def kinds(services: Services) -> list[str]:
    entries = event_stream.newest(services.redis, services.keys, 100)
    return [entry.event.kind.value for entry in entries if entry.event]


def test_a_worker_whose_clock_is_ahead_prunes_by_the_other_clocks(
    services: Services, host_ms: int
) -> None:
    """The worker's own clock decides nothing: only runs that are really old are removed."""
    store_runs(services, host_ms, range(40))
    prune(services)
    left = run_pages.recent(services.engine, limit=100)
    assert len(left) == 30
    assert kinds(services) == []


@pytest.mark.parametrize("ahead", ["database", "board"])
def test_a_server_whose_clock_is_ahead_is_named(
    services: Services, monkeypatch: pytest.MonkeyPatch, ahead: str
) -> None:
    """The earlier of the two clocks decides; one event and a line of the status say so."""
    now_ms = time.time_ns() // 1_000_000
    store_runs(services, now_ms, range(29))
    late_ms = now_ms + 100 * DAY_MS
    if ahead == "database":
        monkeypatch.setattr(database_clock, "now_ms", lambda _: late_ms)
    else:
        monkeypatch.setattr(module, "_board_ms", lambda _: late_ms)
    prune(services)
    prune(services)
    assert len(run_pages.recent(services.engine, limit=100)) == 29
    assert kinds(services) == ["prune_refused"]
    refusal = overview_reader.read(services.redis, services.keys).prune_refused
    assert "100 d" in refusal
    assert ("database" if ahead == "database" else "Redis") in refusal.partition(" is ")[0]


def test_rows_before_a_long_gap_are_kept_and_the_status_says_so(services: Services) -> None:
    """The line goes when the rows may be pruned again."""
    now_ms = time.time_ns() // 1_000_000
    store_runs(services, now_ms, range(100, 110))
    prune(services)
    overview = overview_reader.read(services.redis, services.keys)
    assert "100 d" in overview.prune_refused
    assert kinds(services) == ["prune_refused"]
    store_runs(services, now_ms, range(9))
    prune(services)
    assert len(run_pages.recent(services.engine, limit=100)) == 9
    assert overview_reader.read(services.redis, services.keys).prune_refused == ""


def test_a_short_retention_does_not_empty_a_table_after_a_pause(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gap of less than two days counts; the newest day of rows stays, and an event says so."""
    now_ms = time.time_ns() // 1_000_000
    rows = [Run(1, now_ms - hour * 3_600_000, Result.OK) for hour in range(30, 90)]
    run_ledger.write(services.engine, rows)
    settings = services.settings.model_copy(update={"runs_days": 1.0})
    monkeypatch.setattr(services, "settings", settings)
    result = prune(services)
    assert len(run_pages.recent(services.engine, limit=100)) == 25
    assert result.rows_affected == result.details["runs"] == 35
    assert "all runs are past their retention" in result.details["kept"]
    assert kinds(services) == ["prune_refused"]
    run_ledger.write(services.engine, [Run(1, now_ms - 1, Result.OK)])
    assert prune(services).details == {**no_rows(), "runs": 25}
    assert overview_reader.read(services.redis, services.keys).prune_refused == ""


def no_rows() -> dict[str, int]:
    kinds_of_rows = ("runs", "runs_failed", "readings", "shapes", "events", "target_days")
    history = ("blocks", "rollups", "partitions", "sql_rows")
    others = ("removals", "job_runs", "jobs", "audit", "sessions")
    alerts = ("alerts", "deliveries", "maintenances")
    return dict.fromkeys((*kinds_of_rows, *history, *others, *alerts), 0)


def test_a_cancelled_run_stops_between_two_steps(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps that are done stay done; the next run does the rest."""
    monkeypatch.setattr(retention, "CHUNK", 10)
    now_ms = time.time_ns() // 1_000_000
    store_runs(services, now_ms, range(100))
    with pytest.raises(api.Cancelled):
        prune(services, cancel_at=2)
    assert len(run_pages.recent(services.engine, limit=100)) == 80
    assert prune(services).rows_affected == 50


def test_the_result_names_the_rows_of_each_kind(services: Services) -> None:
    """A run that had nothing to delete says so too."""
    assert prune(services).details == no_rows()


def test_removals_that_are_on_the_board_are_pruned(services: Services) -> None:
    """A removal that the board has not seen yet stays."""
    remove_targets(services, 1, 2, 3)
    services.board.place(lead(services), [], inventory_feed.version(services.engine))
    remove_targets(services, 4)
    prune(services)
    changes = inventory_feed.changes_since(services.engine, 0)
    assert (changes.removed, changes.is_complete) == ([4], False)


def test_a_board_of_a_backup_that_lacks_pruned_removals_is_filled_anew(services: Services) -> None:
    """Otherwise targets that were removed since the backup would stay on the board for ever."""
    token = lead(services)
    ghost = TargetSpec(7, 1, "poll.snmp", 60_000, 5_000)
    old_version = inventory_feed.version(services.engine)
    services.board.place(token, [(ghost, 1)], old_version)
    remove_targets(services, 7)
    retention.prune_removals(services.engine, inventory_feed.version(services.engine))
    assert services.board.ids() == {7}
    done = reconcile.reconcile(services.board, services.engine, token, now_ms=1)
    assert done.event is not None
    assert done.event.kind is Kind.BOARD_REBUILT
    assert services.board.ids() == set()


def lead(services: Services) -> str:
    services.leadership.take()
    return str(services.leadership.token)


def remove_targets(services: Services, *target_ids: int) -> None:
    with inventory_feed.change(services.engine) as change:
        rows = [{"target_id": key, "version": change.version} for key in target_ids]
        change.conn.execute(sa.insert(removed_targets), rows)
