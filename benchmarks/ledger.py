"""The polls and their outcomes, read from the ledger: every poll counts, none is sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import devices, runs, sites, targets
from poller.domain.failures.outcome import Result

_TIMES = ("plan_ms", "started_ms", "finished_ms", "collect_ms")
_COLUMNS = (*_TIMES, "target_id", "attempt", "outcome", "error_code", "samples", "runner")


class Poll(NamedTuple):
    target: int
    site: str
    plan_ms: int
    started_ms: int  # of its last attempt
    finished_ms: int
    attempts: int
    good: bool
    error: str  # error code
    samples: int
    collect_ms: int  # of its last attempt
    runner: str

    @property
    def timed_out(self) -> bool:
        return self.error == "timeout"

    @property
    def time_outs(self) -> int:
        """The number of attempts that timed out. Every attempt before the last one has failed."""
        return self.attempts - (not self.timed_out)


def polls(engine: Engine, since_ms: int) -> list[Poll]:
    """Return all polls that were planned since then, in no order."""
    query = (
        sa.select(*(runs.c[name] for name in _COLUMNS), sites.c.name.label("site"))
        .join(targets, targets.c.id == runs.c.target_id)
        .join(devices, devices.c.id == targets.c.device_id)
        .join(sites, sites.c.id == devices.c.site_id)
        .where(runs.c.plan_ms >= since_ms)
    )
    with sql.single_read(engine) as conn:
        return [_poll(row) for row in conn.execute(query)]


def _poll(row: Any) -> Poll:
    times, result = (
        (row.plan_ms, row.started_ms, row.finished_ms),
        (row.outcome == Result.OK, row.error_code),
    )
    more = (row.samples, row.collect_ms, row.runner)
    return Poll(row.target_id, row.site, *times, row.attempt, *result, *more)


def answered(engine: Engine, site: str, since_ms: int) -> int:
    """Return the number of targets of a site that were polled successfully since then."""
    of_site = sa.select(targets.c.id).join(devices, devices.c.id == targets.c.device_id)
    of_site = of_site.join(sites, sites.c.id == devices.c.site_id).where(sites.c.name == site)
    good = sa.and_(
        runs.c.outcome == Result.OK.value, runs.c.plan_ms >= since_ms, runs.c.target_id.in_(of_site)
    )
    with sql.single_read(engine) as conn:
        return int(
            conn.execute(
                sa.select(sa.func.count(runs.c.target_id.distinct())).where(good)
            ).scalar_one()
        )


def polled(engine: Engine) -> int:
    """Return the number of targets that were polled successfully at least once."""
    with sql.single_read(engine) as conn:
        good = sa.select(sa.func.count(runs.c.target_id.distinct())).where(
            runs.c.outcome == Result.OK.value
        )
        return int(conn.execute(good).scalar_one())


def late(found: Iterable[Poll]) -> Counter[int]:
    """Return milliseconds from slot to start -> polls. Retries are left out."""
    return Counter(max(0, poll.started_ms - poll.plan_ms) for poll in found if poll.attempts == 1)


def per_second(found: Iterable[Poll], begin_ms: int, end_ms: int) -> Counter[int]:
    """Return whole seconds since `begin_ms` -> polls that started then."""
    return Counter(
        (poll.started_ms - begin_ms) // 1000
        for poll in found
        if begin_ms <= poll.started_ms < end_ms
    )


def ended(found: Iterable[Poll], begin_ms: int, end_ms: int) -> list[Poll]:
    return _between(found, begin_ms, end_ms, lambda poll: poll.finished_ms)


def started(found: Iterable[Poll], begin_ms: int, end_ms: int) -> list[Poll]:
    return _between(found, begin_ms, end_ms, lambda poll: poll.started_ms)


def _between(
    found: Iterable[Poll], begin_ms: int, end_ms: int, at: Callable[[Poll], int]
) -> list[Poll]:
    return [poll for poll in found if begin_ms <= at(poll) < end_ms]
