"""The jobs of a worker process: plans them, runs them in job slots, and ends them at shutdown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from poller.bootstrap import Services
from poller.db.jobs import job_ledger, job_losses
from poller.db.jobs.job_ledger import Claim, Claimed
from poller.domain.jobs import job_queue
from poller.domain.jobs.job_run import FailureCode, Origin
from poller.domain.jobs.run_message import RunMessage
from poller.jobs.api import JobSpec
from poller.observability import logs
from poller.workers.batch.capacity_lending import CapacityLending
from poller.workers.jobs.demand_scopes import DemandScopes
from poller.workers.jobs.hanging_jobs import HangingJobs
from poller.workers.jobs.job_attempt import Attempt, AttemptParts
from poller.workers.jobs.job_planner import Planner, SendRuns
from poller.workers.jobs.job_slots import JobSlots, Slot
from poller.workers.jobs.running_jobs import RunningJobs

log = logs.get(__name__)

#: Records that a job runs while the context lasts.
RecordJob = Callable[[str], AbstractContextManager[Any]]


class JobRunner:
    """One per worker process; `plan` and `run` are called from many threads."""

    def __init__(
        self,
        services: Services,
        runner: str,
        lending: CapacityLending,
        send: SendRuns,
        record: RecordJob = nullcontext,
    ) -> None:
        self._services = services
        self._lending = lending
        self._send = send
        self._record = record  # in the black box
        self._running = RunningJobs()
        self._hanging = HangingJobs()
        self._parts = AttemptParts(services, runner, self._running)
        self._planner = Planner(services, lending, send)
        self._demand_scopes = DemandScopes(services)
        self.slots = JobSlots(services.settings.worker_jobs, lending)

    @property
    def running(self) -> int:
        """Runs whose thread of Celery's pool waits for them now."""
        return len(self._running)

    def plan(self, names: Iterable[str]) -> None:
        """Publish the due plans of these jobs. Raises StoreError."""
        if not self._running.stopping.is_set():
            self._planner.plan(names)

    def run(self, message: RunMessage) -> None:
        """Run the first plan of a message, then publish the others. Raises StoreError."""
        spec = self._services.jobs.jobs.get(message.job)
        if spec is None:
            log.warning("job_not_installed", job=message.job)
            return
        slot = self.slots.take()
        if slot is None:
            self._decline(message)
            return
        with self._lending.lend_place():
            is_next_wanted = self._run_in(slot, spec, message)
        rest = message.rest
        if is_next_wanted and rest is not None and not self._running.stopping.is_set():
            self._send([(self._queue(message.job), rest)])

    def stop(self) -> None:
        """Begin no further run; running ones go on."""
        self._running.stop()
        self.slots.stop()

    def drain(self) -> None:
        """Cancel running handlers. The threads that watch them give the attempts back."""
        self.stop()
        self._running.drain()

    def hand_back_unended(self, within_s: float) -> None:
        """Give back what still runs, in a process that ends now. Never raises."""
        self._running.hand_back_unended(within_s)

    def _run_in(self, slot: Slot, spec: JobSpec, message: RunMessage) -> bool:
        """Run a plan in a slot. Returns whether the next plan may follow here."""
        attempt = None
        try:
            attempt, is_next_wanted = self._claim(spec, message)
            if attempt is not None:
                with self._record(message.job):
                    is_next_wanted = attempt.run()
            return is_next_wanted
        finally:
            if attempt is not None:
                self._hanging.note(message.job, attempt)
            slot.release()

    def _claim(self, spec: JobSpec, message: RunMessage) -> tuple[Attempt | None, bool]:
        """Claim a plan. Returns the attempt, or None and whether the next plan may be claimed."""
        if self._hanging.refuses(message.job):
            return None, False  # the leader fires it again, and another worker takes it
        if self._is_held_back(message):
            return None, False
        fault = self._demand_scopes.fault(spec, message)
        claimed_mono = time.monotonic()
        claim = job_ledger.claim(
            self._services.engine,
            message.plan,
            spec.terms,
            self._parts.runner,
            message.dispatched_ms,
            message.origin,
        )
        if claim.outcome is Claimed.CONFLICTED:
            return None, True
        if claim.outcome is Claimed.BUSY:
            return None, False
        if fault:
            self._refuse(message, claim, fault)
            return None, False
        return Attempt(self._parts, spec, message, claim, claimed_mono), False

    def _refuse(self, message: RunMessage, claim: Claim, fault: str) -> None:
        """End a run before its handler: the person who waits for its row reads the fault there."""
        log.warning("job_scope_unknown", **message.names, error=fault)
        text = self._services.redactor.text(fault)
        job_ledger.fail(
            self._services.engine, claim.run_id, claim.token, FailureCode.UNKNOWN_SCOPE, text, None
        )

    def _is_held_back(self, message: RunMessage) -> bool:
        """Whether the job has cost too many workers by now. The message may be an old one: those
        in the queue would cost a worker each. A person may run the job all the same.
        """
        if message.origin is Origin.DEMAND:
            return False
        is_held = job_losses.is_held_back(self._services.engine, message.job)
        if is_held:
            log.warning("job_held_back", **message.names)
        return is_held

    def _decline(self, message: RunMessage) -> None:
        """Leave a run to another worker: this one stops, or cannot wait for a slot."""
        if self._running.stopping.is_set():
            self._send([(self._queue(message.job), message)])
        else:
            log.warning(
                "job_slots_taken", job=message.job, slots=self._services.settings.worker_jobs
            )

    def _queue(self, job: str) -> str:
        return job_queue.queue_of(self._services.jobs.distributions[job])
