"""Plain rows of chosen metrics on PostgreSQL, as Grafana and people read them with SQL."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import bootstrap
from poller.db import engine as sql
from poller.db import migrate
from poller.db.history import compaction, partitions, plain_pass, plain_retention, rollup_pass
from poller.db.history.rollups import Kept, PlainKept
from poller.db.inventory import devices, targets
from poller.db.record.stored_readings import Stored, Writer
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.series.plain_points import MetricNames
from poller.jobs import api
from poller.jobs.builtin.roll_up_history import roll_up_history
from poller.testing.job_context import FakeContext

MINUTE = 60_000
DAY = 1440 * MINUTE
#: 00:00 UTC.
START = 20_000 * DAY
CHOSEN = MetricNames(("ifHC*Octets", "ifOperStatus", "temperature"))
DOCS = Path(__file__).parents[2] / "docs" / "sql.md"


@pytest.fixture
def database(fresh_postgres_url: str) -> Iterator[Engine]:
    """A migrated database with one switch."""
    engine = sql.create(fresh_postgres_url)
    migrate.upgrade(engine)
    device = DeviceDraft("sw1", address="192.0.2.1", site="ams")
    devices.add(engine, device, [TargetDraft(collector="snmp")])
    yield engine
    engine.dispose()


def write(engine: Engine, minutes: Iterable[int], alias: str = "uplink") -> None:
    """Store a poll for each of these minutes since the start: 10 octets a second."""
    target_id = targets.show(engine, "sw1", "snmp").id
    port = {"ifAlias": alias, "ifIndex": "1", "ifName": "eth0\0"}
    polls = []
    for minute in minutes:
        readings = ReadingSet.of(
            [
                Reading("ifHCInOctets", 10**9 + minute * 600, port, Kind.COUNTER, 64),
                Reading("ifInErrors", 0.0, port, Kind.COUNTER, 32),
                Reading("ifOperStatus", 1.0, port),
                Reading("temperature", float(20 + minute % 2)),
            ]
        )
        polls.append(Stored(target_id, START + minute * MINUTE, readings))
    Writer(engine).write(polls, START + 3 * DAY)


def rest(seconds: float) -> None:
    """No rest: nobody else polls."""


def refresh(engine: Engine, minute: int) -> int:
    until_mono = time.monotonic() + 60
    done = plain_pass.refresh(engine, START + minute * MINUTE, CHOSEN, rest, until_mono)
    assert done.is_complete
    return done.rows


def roll_up(engine: Engine, minute: int) -> None:
    """Compact and roll up, as of a minute since the start."""
    now_ms = START + minute * MINUTE
    kept = Kept(plain=PlainKept(CHOSEN, START - 35 * DAY))
    until_mono = time.monotonic() + 60
    partitions.prepare(engine, START)
    compaction.compact(engine, now_ms, rest, until_mono)
    rollup_pass.roll_up(engine, now_ms, kept, rest, until_mono)


def series(engine: Engine, metric: str) -> list[Any]:
    with sql.reading(engine) as conn:
        query = "SELECT * FROM poller_series WHERE metric = :metric ORDER BY time"
        return list(conn.execute(sa.text(query), {"metric": metric}))


def test_new_polls_are_in_the_view_within_a_pass(database: Engine) -> None:
    """The view has device, site, labels and the rate; a second pass adds only new buckets."""
    write(database, range(31))
    assert refresh(database, 31) > 0
    rows = series(database, "ifHCInOctets")
    assert [row.value for row in rows] == [10.0] * 6
    first = rows[0]
    assert (first.device, first.site, first.target, first.kind) == ("sw1", "ams", "snmp", "counter")
    assert first.labels == {"ifAlias": "uplink", "ifIndex": "1", "ifName": "eth0\ufffd"}
    assert first.time == datetime.fromtimestamp(START / 1000, UTC)
    assert (first.min, first.max, first.total, first.known_seconds) == (10, 10, 3000, 300)
    assert series(database, "ifInErrors") == []
    assert [row.value for row in series(database, "ifOperStatus")][:6] == [1.0] * 6

    assert refresh(database, 31) == 0
    write(database, range(31, 41), alias="core")
    refresh(database, 41)
    rows = series(database, "ifHCInOctets")
    assert [row.value for row in rows] == [10.0] * 8
    assert {row.labels["ifAlias"] for row in rows} == {"core"}  # one line, named as it is now


#: A row that the polls do not give.
_STRAY = """INSERT INTO history_rows SELECT time + interval '1 s', series_id, 7, 7, 7, 7, 7
FROM history_rows ORDER BY time LIMIT 1"""


def test_late_results_correct_plain_rows_with_the_roll_up_of_their_day(database: Engine) -> None:
    """A span without polls has an average; when its polls come, the time becomes known."""
    write(database, (minute for minute in range(2 * 1440) if not 100 <= minute < 200))
    refresh(database, 1000)
    roll_up(database, 2 * 1440)
    before = series(database, "ifHCInOctets")
    assert sum(row.averaged_seconds for row in before) == 101 * 60
    assert sum(row.total for row in before[:288]) == pytest.approx(1440 * 600)

    write(database, range(100, 200))
    with sql.writing(database) as conn:
        conn.execute(sa.text(_STRAY))
    roll_up(database, 2 * 1440)
    after = series(database, "ifHCInOctets")
    assert sum(row.averaged_seconds for row in after) == 0
    assert len(after) == len(before) == 288
    assert {row.value for row in after} == {10.0}


def test_old_days_are_dropped_as_partitions(database: Engine) -> None:
    """Retention drops the partition of a day, and deletes rows that have no partition."""
    roll_up(database, 0)
    write(database, range(1440 + 30))
    roll_up(database, 2 * 1440)
    assert len(series(database, "temperature")) == 288
    assert plain_retention.prune(database, START) == 0
    assert plain_retention.prune(database, START + DAY) == 1
    assert series(database, "temperature") == []


def test_the_job_writes_the_rows_of_the_metrics_that_are_set(
    database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job says how many rows it wrote; polls of any other metric have none."""
    url = database.url.render_as_string(hide_password=False)
    monkeypatch.setenv("POLLER_DATABASE_URL", url)
    monkeypatch.setenv("POLLER_SQL_HISTORY_METRICS", "temp*")
    monkeypatch.setattr("poller.db.database_clock.now_ms", lambda _: START + 31 * MINUTE)
    write(database, range(31))
    services = bootstrap.services()
    context = FakeContext("roll-up-history", api.GLOBAL, datetime.now(UTC), 1, services)
    details = roll_up_history(context).details
    services.engine.dispose()
    assert details["sql_complete"] is True
    assert details["sql_rows"] == len(series(database, "temperature")) == 7
    assert series(database, "ifHCInOctets") == []


def expanded(query: str) -> str:
    """Return a query as Grafana sends it: its macros and variables filled in."""
    begin, end = (
        datetime.fromtimestamp((START + ms) / 1000, UTC).isoformat() for ms in (0, 60 * MINUTE)
    )
    query = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN '{begin}' AND '{end}'", query)
    query = re.sub(
        r"\$__timeGroupAlias\((\w+), *'?(\w+)'?\)",
        r'floor(extract(epoch from \1)/600)*600 AS "time"',
        query,
    )
    return query.replace("$device", "sw1").replace("$site", "ams")


def test_the_documented_queries_run_for_a_role_that_may_only_read_the_views(
    database: Engine,
) -> None:
    """Every SQL example gives rows to the documented role, which sees no table."""
    write(database, range(31))
    refresh(database, 31)
    grants, *queries = re.findall(r"```sql\n(.*?)```", DOCS.read_text(), re.S)
    assert len(queries) >= 4
    role = f"grafana_{time.monotonic_ns()}"
    with sql.writing(database) as conn:
        for statement in grants.replace("grafana", role).split(";"):
            if statement.strip():
                conn.exec_driver_sql(statement)
    try:
        with sql.writing(database) as conn:
            conn.exec_driver_sql(f"SET LOCAL ROLE {role}")
            for query in queries:
                assert conn.exec_driver_sql(expanded(query).replace("%", "%%")).all(), query
            assert not conn.exec_driver_sql(
                "SELECT has_table_privilege('credentials', 'SELECT')"
            ).scalar()
    finally:
        with sql.writing(database) as conn:
            conn.exec_driver_sql(f"DROP OWNED BY {role}")
            conn.exec_driver_sql(f"DROP ROLE {role}")
