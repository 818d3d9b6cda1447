"""Pages of a filter read a part of an index, on both databases: the fleet may be large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.inventory import device_windows, filter_candidates, target_pages
from poller.db.inventory.target_pages import Candidates
from poller.db.record import dead_letter_rows, runs_of_plans, slow_targets
from poller.db.tables import devices, targets
from poller.domain.inventory import target_filter
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import ANY, TargetFilter

DEVICES = 5_000
MOST = 2_000
AFTER = Position("sw-2500", "snmp")
SITE_IDS = (3, None)

_NUMBERS = (
    f"WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {DEVICES})"
)
_FILL = (
    f"""
INSERT INTO sites (id, name, requires, created_at, updated_at)
{_NUMBERS} SELECT n, 'site' || n, '{{}}', '2026-01-01', '2026-01-01' FROM series WHERE n <= 20""",
    f"""
INSERT INTO devices (id, name, address, site_id, tags, requires, enabled, created_at, updated_at)
{_NUMBERS} SELECT n, 'sw-' || n, '10.' || (n / 256) || '.0.' || (n % 256), 1 + n % 20,
    CASE WHEN n % 500 = 0 THEN '["core", "rare"]' ELSE '["core"]' END, '{{}}', n % 1000 <> 0,
    '2026-01-01', '2026-01-01' FROM series""",
    f"""
INSERT INTO targets (device_id, name, collector, options, requires, interval_ms, timeout_ms,
    enabled, version, created_at, updated_at)
{_NUMBERS} SELECT n, 'snmp', CASE WHEN n % 100 = 0 THEN 'ping' ELSE 'snmp' END, '{{}}', '{{}}',
    60000, 1000, n % 1000 <> 1, 1, '2026-01-01', '2026-01-01' FROM series""",
    f"""
INSERT INTO runs (target_id, plan_ms, attempt, outcome, error_code, message, started_ms,
    finished_ms, samples, runner, token)
{_NUMBERS} SELECT n % 50, n, 1, 'ok', '', '', n, n, 1, 'r', 't' FROM series""",
    f"""
INSERT INTO dead_letters (target_id, reason, error_code, message, first_ms, last_ms, parked_ms,
    next_ms, attempts)
{_NUMBERS} SELECT n, 'auth_failed', 'auth_failed', '', n, n, n, n, 1 FROM series""",
)


@pytest.fixture(params=["with statistics", "without statistics"])
def filled(engine: Engine, request: pytest.FixtureRequest) -> Engine:
    """A fleet with one target for each device, runs and dead letters."""
    with sql.writing(engine) as conn:
        for statement in _FILL:
            if engine.dialect.name == "postgresql":
                statement = _typed(statement)
            conn.exec_driver_sql(statement.replace("%", "%%") if _is_format(engine) else statement)
        if request.param == "with statistics":
            conn.exec_driver_sql("ANALYZE")
    return engine


def _is_format(engine: Engine) -> bool:
    return engine.dialect.name == "postgresql"


def _typed(statement: str) -> str:
    """Give PostgreSQL the types that SQLite does not ask for."""
    typed = statement.replace("'2026-01-01'", "timestamptz '2026-01-01'")
    typed = typed.replace("'{}'", "jsonb '{}'")
    return typed.replace('\'["core", "rare"]\'', 'jsonb \'["core", "rare"]\'').replace(
        "'[\"core\"]'", "jsonb '[\"core\"]'"
    )


def plans_of(engine: Engine, action: Callable[[sa.Connection], object]) -> dict[str, list[str]]:
    """Every statement that an action makes, with the plan that the database chose."""
    statements: list[tuple[str, Any]] = []

    def keep(_conn: Any, _cursor: Any, text: str, values: Any, *_rest: Any) -> None:
        statements.append((text, values))

    with engine.connect() as conn:
        sa.event.listen(engine, "before_cursor_execute", keep)
        try:
            action(conn)
        finally:
            sa.event.remove(engine, "before_cursor_execute", keep)
    explain = "EXPLAIN " if engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "
    with engine.connect() as conn:
        if engine.dialect.name == "postgresql":
            # A table of this size is often read whole; the index must be usable.
            conn.exec_driver_sql("SET enable_seqscan = off")
        return {
            text: [str(row[-1]) for row in conn.exec_driver_sql(explain + text, values)]
            for text, values in statements
        }


def is_whole(line: str) -> bool:
    """True for a line of a plan that reads or sorts a whole table of the fleet."""
    line = line.strip().removeprefix("->").strip()
    if line.startswith("Seq Scan on "):
        return line.split()[3] in ("devices", "targets", "runs", "dead_letters")
    scanned = line.split()[1] if line.startswith("SCAN ") else ""
    is_in_order = "USING INDEX" in line or "USING COVERING INDEX" in line
    return scanned in ("devices", "targets", "runs", "dead_letters") and not is_in_order


def wanted(text: str) -> TargetFilter:
    return target_filter.parse(text)


def few(column: Any) -> Candidates:
    return Candidates(column, list(range(1, 200)))


ACTIONS: dict[str, Callable[[sa.Connection], object]] = {
    "window": lambda conn: device_windows.read(conn, ANY, [], AFTER, 50),
    "window of sites": lambda conn: device_windows.read(conn, ANY, SITE_IDS, AFTER, 50),
    "window of names": lambda conn: device_windows.read(conn, wanted("name:sw-3*"), [], None, 50),
    "window of tags": lambda conn: device_windows.read(conn, wanted("tag:rare"), [], None, 50),
    "targets of a window": lambda conn: target_pages.targets_of(conn, ANY, range(1, 50)),
    "candidates": lambda conn: target_pages.targets_among(
        conn, wanted("site:site3 tag:core"), few(targets.c.id), AFTER, 50
    ),
    "device candidates": lambda conn: target_pages.devices_among(
        conn, wanted("name:sw-*"), few(devices.c.id), AFTER, 50
    ),
    "names": lambda conn: filter_candidates.named_device_ids(conn, wanted("name:sw-1,sw-2")),
    "networks": lambda conn: filter_candidates.addressed_device_ids(
        conn, wanted("address:10.3.0.0/16,10.4.0.0/24"), MOST
    ),
    "collectors": lambda conn: filter_candidates.collected_target_ids(
        conn, wanted("collector:ping"), MOST
    ),
    "tags": lambda conn: filter_candidates.tagged_device_ids(conn, wanted("tag:rare"), MOST),
    "disabled": lambda conn: filter_candidates.disabled_target_ids(conn, MOST),
    "runs of plans": lambda conn: runs_of_plans.find(conn.engine, {1: 51, 2: 52, 3: 9}),
    "newest letters": lambda conn: dead_letter_rows.newest(conn.engine, 25),
    "slowest of a day": lambda conn: slow_targets.of_day(conn.engine, "snmp", 0, 10),
    "slowest of now": lambda conn: slow_targets.of_newest(conn.engine, "snmp", 10),
    "letters of a page": lambda conn: dead_letter_rows.of_targets(conn.engine, [1, 2, 3]),
}


def test_no_page_reads_the_whole_fleet(filled: Engine) -> None:
    """Every statement of a page starts from an index."""
    for name, action in ACTIONS.items():
        for text, plan in plans_of(filled, action).items():
            print(name, text[:150], *plan, sep="\n    ")
            assert [line for line in plan if is_whole(line)] == [], (name, text)


def test_runs_are_found_by_target_and_plan(filled: Engine) -> None:
    """A plan that is not in the ledger is left out."""
    found = runs_of_plans.find(filled, {1: 51, 2: 52, 3: 9})
    assert {target_id: run.plan_ms for target_id, run in found.items()} == {1: 51, 2: 52}
    assert runs_of_plans.find(filled, {}) == {}
    assert runs_of_plans.durations_ms(filled, {1: 51, 2: 52, 3: 9}).keys() == {1, 2}


@pytest.mark.parametrize("read", [runs_of_plans.find, runs_of_plans.durations_ms])
def test_runs_of_plans_are_looked_up_by_their_key(filled: Engine, read: Any) -> None:
    """A read of the ledger costs the same however long the ledger is."""
    plans = plans_of(filled, lambda conn: read(conn.engine, {1: 51, 2: 52, 3: 9}))
    lines = [line for plan in plans.values() for line in plan if " runs" in line]
    assert lines, plans
    for line in lines:
        assert "(target_id=? AND plan_ms=?)" in line or "pk_runs on runs" in line, plans


def test_the_newest_letters_come_first(filled: Engine) -> None:
    """Letters of disabled targets are left out."""
    found = dead_letter_rows.newest(filled, 3)
    assert [each.letter.parked_ms for each in found] == [4999, 4998, 4997]
