"""The context of a job's run, for tests of its handler without a worker, a database or Redis.

context = testing.context(services=SimpleNamespace(engine=engine))
assert testing.run_job(nightly, context).rows_affected == 3
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from datetime import UTC, datetime
from typing import Any

from poller.domain.record.event_kinds import Event
from poller.jobs import plugin_values
from poller.jobs.api import GLOBAL, Cancelled, JobSpec, Result, Scope

#: The plan of a run unless a test names another.
PLAN = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)


class _NoServices:
    """Stands for services that a test did not give."""

    def __getattr__(self, name: str) -> Any:
        text = f"the handler uses services.{name}, which the test does not have: give services=..."
        raise AttributeError(text)


class FakeContext:
    """One run, as its handler sees it. `cancel` ends the run; `events` has what it told."""

    def __init__(self, job: str, scope: Scope, plan: datetime, attempt: int, services: Any) -> None:
        self.job = job
        self.scope = scope
        self.plan = plan
        self.attempt = attempt
        self.runner = "test"
        self.services = services
        self.events: list[Event] = []
        self.heartbeats = 0
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """End the run, as a worker that stops or a lost lease does."""
        self._cancelled.set()

    def heartbeat(self) -> None:
        self.heartbeats += 1
        if self.cancelled:
            raise Cancelled("the run was cancelled")

    def tell(self, event: Event) -> None:
        self.events.append(event)


def context(
    job: str = "job",
    *,
    scope: tuple[str, str] = GLOBAL,
    plan: datetime = PLAN,
    attempt: int = 1,
    services: Any = None,
) -> FakeContext:
    """The context of one run. `services` has the attributes that the handler uses."""
    given = _NoServices() if services is None else services
    return FakeContext(job, Scope(*scope), plan, attempt, given)


def run_job(job: JobSpec, run: FakeContext) -> Result:
    """Call the handler, sync or async, and return its result as a worker reads it.

    Raises Refused for a result that a worker refuses, and all that the handler raises.
    """
    value = job.handler(run)
    if inspect.isawaitable(value):
        value = asyncio.run(_awaited(value))
    return plugin_values.result(value)


async def _awaited(value: Any) -> Any:
    return await value
