"""The job: every night, for each site, a CSV file with the polls of the past day.

Each site is a scope: it has runs of its own, and one that fails delays no other. A night that no
worker saw is caught up for a week. A run writes the whole file or nothing, so that it may be
repeated.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from poller.db.tables import devices, runs, sites, targets
from poller.jobs import api

COLUMNS = ("device", "target", "collector", "polls", "ok")


def list_sites(services: Any, _now: datetime) -> Iterable[tuple[str, str]]:
    """The scopes of the job."""
    with services.engine.connect() as conn:
        names = conn.scalars(sa.select(sites.c.name).order_by(sites.c.name)).all()
    return [("site", name) for name in names]


@api.job(
    name="site-report",
    cron="30 1 * * *",
    timezone="Europe/Amsterdam",
    delay_s=300,  # late polls of the day are stored by then
    scopes=list_sites,
    catch_up="every_plan",
    catch_up_window_s=7 * 86_400,
    run_timeout_s=300,
)
def site_report(context: api.Context) -> api.Result:
    """Write the polls of each site in the past day to a CSV file."""
    rows = count_polls(context.services.engine, context.scope.id, context.plan)
    context.heartbeat()  # a cancelled run ends here
    path = report_path(context)
    write_whole(path, as_csv(rows))
    return api.Result(rows_affected=len(rows), details={"file": str(path)})


def count_polls(engine: Any, site: str, end: datetime) -> Sequence[Sequence[Any]]:
    """Polls and good polls of each target of a site, in the day before an instant."""
    end_ms = round(end.timestamp() * 1000)
    start_ms = round((end - timedelta(days=1)).timestamp() * 1000)
    is_of_day = sa.and_(
        runs.c.target_id == targets.c.id, runs.c.plan_ms >= start_ms, runs.c.plan_ms < end_ms
    )
    good = sa.func.count(sa.case((runs.c.outcome == "ok", 1)))
    query = (
        sa.select(
            devices.c.name, targets.c.name, targets.c.collector, sa.func.count(runs.c.plan_ms), good
        )
        .select_from(targets.join(devices).join(sites).outerjoin(runs, is_of_day))
        .where(sites.c.name == site)
        .group_by(devices.c.name, targets.c.name, targets.c.collector)
        .order_by(devices.c.name, targets.c.name)
    )
    with engine.connect() as conn:
        return [tuple(row) for row in conn.execute(query)]


def report_path(context: api.Context) -> Path:
    """`reports/2026-03-29/ams.csv` in the home directory of poller."""
    home = Path(os.environ.get("SITE_REPORT_DIRECTORY") or context.services.settings.home)
    file_name = context.scope.id.replace("/", "_")
    return home / "reports" / f"{context.plan:%Y-%m-%d}" / f"{file_name}.csv"


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return text.getvalue()


def write_whole(path: Path, text: str) -> None:
    """Write a file so that no reader and no repeated run sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
