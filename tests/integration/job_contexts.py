"""The context of a run of a job, without a ledger: for tests of our own handlers."""

from __future__ import annotations

from datetime import UTC, datetime

from poller import event_publisher
from poller.bootstrap import Services
from poller.domain.record.event_kinds import Event
from poller.jobs import api
from poller.testing.job_context import FakeContext

PLAN = datetime(2026, 11, 18, tzinfo=UTC)


class RunContext(FakeContext):
    """One run, whose events are published. It is cancelled at the heartbeat number `cancel_at`."""

    def __init__(
        self, services: Services, plan: datetime = PLAN, cancel_at: int | None = None
    ) -> None:
        super().__init__("a-job", api.GLOBAL, plan, 1, services)
        self._cancel_at = cancel_at

    def heartbeat(self) -> None:
        if self.heartbeats + 1 == self._cancel_at:
            self.cancel()
        super().heartbeat()

    def tell(self, event: Event) -> None:
        super().tell(event)
        event_publisher.emit(self.services, [event])
