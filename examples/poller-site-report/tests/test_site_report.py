"""The job passes the conformance suite of poller, and its report counts the polls of a day."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from poller_site_report import site_report

from poller import testing
from poller.db import engine, migrate
from poller.db.inventory import imports
from poller.db.tables import runs, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.testing import job_conformance
from poller.testing.job_context import PLAN


@contextmanager
def services() -> Iterator[Any]:
    """A database with a device at each of two sites."""
    with tempfile.TemporaryDirectory() as home:
        database = engine.create(f"sqlite:///{Path(home) / 'poller.db'}")
        migrate.upgrade(database)
        rows = [
            imports.Row(DeviceDraft(f"sw-{site}", "192.0.2.1", site), [TargetDraft("up", "ping")])
            for site in ("ams", "fra")
        ]
        imports.apply_import(database, rows)
        yield SimpleNamespace(engine=database, settings=SimpleNamespace(home=Path(home)))
        database.dispose()


TestSiteReport = job_conformance.suite(site_report, services)


def add_run(database: Any, hours_before: float, outcome: str) -> None:
    plan_ms = round((PLAN - timedelta(hours=hours_before)).timestamp() * 1000)
    row = {column.name: 0 for column in runs.c if isinstance(column.type, sa.Integer)}
    texts = {column.name: "" for column in runs.c if isinstance(column.type, sa.String)}
    with database.begin() as conn:
        target_id = conn.scalars(sa.select(targets.c.id).order_by(targets.c.id)).first()
        values = {**row, **texts, "target_id": target_id, "plan_ms": plan_ms, "outcome": outcome}
        conn.execute(runs.insert().values(values))


def test_the_polls_of_the_day_are_counted() -> None:
    """An older poll is left out; a target without polls is there."""
    with services() as platform:
        for hours, outcome in ((1, "ok"), (24, "failed"), (25, "ok")):
            add_run(platform.engine, hours, outcome)
        counts = {}
        for site in ("ams", "fra"):
            context = testing.context(scope=("site", site), services=platform)
            result = testing.run_job(site_report, context)
            assert result.rows_affected == 1
            with open(result.details["file"], newline="") as file:
                [counts[site]] = csv.DictReader(file)
    assert (counts["ams"]["polls"], counts["ams"]["ok"]) == ("2", "1")
    assert (counts["fra"]["device"], counts["fra"]["polls"]) == ("sw-fra", "0")


def test_each_site_is_a_scope() -> None:
    with services() as platform:
        assert list(site_report.scopes(platform, PLAN)) == [("site", "ams"), ("site", "fra")]
