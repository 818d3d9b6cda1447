"""A bench for job runs: planning, running and their ledger without a Celery worker."""

from __future__ import annotations

import threading
import time
from typing import Any

import sqlalchemy as sa

from poller.bootstrap import Services
from poller.db import database_clock, tables
from poller.db import engine as sql
from poller.db.jobs import job_history
from poller.domain.jobs.job_run import JobRun
from poller.domain.jobs.run_message import RunMessage
from poller.domain.jobs.run_totals import RunOutcome
from poller.jobs import api
from poller.jobs.registry import Registry
from poller.state.cluster import job_totals
from poller.workers.batch.capacity_lending import CapacityLending
from poller.workers.jobs.job_runner import JobRunner

QUEUE = "job.acme"


HOUR_MS = 3_600_000


class Bench:
    """A worker's jobs without Celery. Messages that would be published are in `sent`."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.specs: dict[str, api.JobSpec] = {}
        self.sent: list[tuple[str, RunMessage]] = []
        self.lending = CapacityLending()
        self.runner = self.another("w@test")

    def another(self, name: str) -> JobRunner:
        return JobRunner(self.services, name, self.lending, self.sent.extend)

    def add(self, handler: Any, name: str = "tidy", **terms: Any) -> None:
        """Install a job."""
        self.specs[name] = api.job(**{"every_s": 3600, "name": name, **terms})(handler)
        distributions = dict.fromkeys(self.specs, "Acme 1.0")
        self.services.jobs = Registry(dict(self.specs), distributions)  # type: ignore[misc]

    def message(self, plans: int = 1, job: str = "tidy") -> RunMessage:
        now_ms = database_clock.now_ms(self.services.engine)
        last_ms = now_ms - now_ms % HOUR_MS
        plans_ms = tuple(last_ms - HOUR_MS * back for back in reversed(range(plans)))
        return RunMessage(job, "global", "global", plans_ms, now_ms)

    def run(self, message: RunMessage | None = None) -> JobRun:
        """Run a message, and return the newest row."""
        self.runner.run(message or self.message())
        return self.row()

    def row(self, job: str = "tidy") -> JobRun:
        return job_history.runs(self.services.engine, job)[0]

    def begin(self, message: RunMessage | None = None) -> threading.Thread:
        """Run a message in a thread, as Celery's pool does."""
        thread = threading.Thread(target=self.runner.run, args=(message or self.message(),))
        thread.start()
        return thread

    def change(self, **values: Any) -> None:
        """Change every row, as another runner or the leader would."""
        with sql.writing(self.services.engine) as conn:
            conn.execute(sa.update(tables.job_runs).values(**values))

    def plan(self, *names: str) -> list[RunMessage]:
        """Plan jobs, and return what is published then."""
        self.sent.clear()
        self.runner.plan(names or list(self.specs))
        assert {queue for queue, _ in self.sent} <= {QUEUE}
        return [message for _, message in self.sent]

    def outcomes(self) -> dict[RunOutcome, int]:
        totals = job_totals.read(self.services.redis, self.services.keys)
        return dict(totals["tidy"].outcomes)


class Stubborn:
    """A handler that ignores its cancellation until the test ends it."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.over = threading.Event()

    def __call__(self, context: api.Context) -> None:
        self.inside.set()
        while not self.over.is_set():
            try:
                self.over.wait(0.01)
            except api.Cancelled:
                continue


class Endless:
    """A handler that runs until it is cancelled."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.cancelled = threading.Event()

    def __call__(self, context: api.Context) -> None:
        self.inside.set()
        try:
            while True:
                time.sleep(0.005)
        finally:
            self.cancelled.set()
