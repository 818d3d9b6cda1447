"""One run as its handler sees it: the context of `poller.jobs.api`."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from poller import event_publisher
from poller.bootstrap import Services
from poller.domain.jobs.job_run import Plan
from poller.domain.record.event_kinds import Event
from poller.jobs.api import Cancelled, Scope

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RunContext:
    """The context of one attempt. `cancel` may be called from any thread."""

    def __init__(self, services: Services, plan: Plan, attempt: int, runner: str) -> None:
        self.job = plan.job
        self.scope = Scope(plan.scope_kind, plan.scope_id)
        self.plan = at(plan.plan_ms)
        self.attempt = attempt
        self.runner = runner
        self.services: Any = services
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True when the run was ended from outside; its result will be refused."""
        return self._cancelled.is_set()

    def heartbeat(self) -> None:
        """Raise Cancelled if the run was ended."""
        if self._cancelled.is_set():
            raise Cancelled("the run was ended")

    def tell(self, event: Event) -> None:
        """Record an event. Never raises."""
        event_publisher.emit(self.services, [event])

    def cancel(self) -> None:
        """Let the handler know that its run was ended."""
        self._cancelled.set()


def at(instant_ms: int) -> datetime:
    """An instant in ms as a datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=instant_ms)
