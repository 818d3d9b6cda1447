"""One attempt of one plan under a lease: call the handler, keep the lease, write how it ended.

Read `Attempt.run` top to bottom. It runs in the thread of the task; the handler has its own. The
token of the claim guards every write, so an attempt that lost its lease changes nothing.
"""

from __future__ import annotations

import enum
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from poller import errors
from poller.bootstrap import Services
from poller.db.jobs import job_ledger
from poller.db.jobs.job_ledger import Claim
from poller.domain.failures import backoff
from poller.domain.jobs import plan_choice, run_totals
from poller.domain.jobs.job_run import FailureCode, Origin
from poller.domain.jobs.run_message import RunMessage
from poller.domain.jobs.run_totals import RunOutcome
from poller.jobs.api import JobSpec
from poller.observability import logs
from poller.observability.report_quota import Quota
from poller.state.cluster import job_totals
from poller.workers.jobs import handler_call, safe_details
from poller.workers.jobs.handler_call import Ending, HandlerCall
from poller.workers.jobs.job_lease import Lease
from poller.workers.jobs.run_context import RunContext
from poller.workers.jobs.running_jobs import RunningJobs

log = logs.get(__name__)

#: The time for a handler that was cancelled: usually, and while the worker stops. The second is
#: shorter than the time after which a stopping worker is ended by force.
GRACE_S = 5.0
STOP_GRACE_S = 2.0
#: Seconds between two cancellations of the same handler.
CANCEL_AGAIN_S = 0.5
#: Pauses after a result that could not be written: the first, and the longest.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
#: Failures of handlers that are logged in one minute, each with its traceback.
LINES_PER_MINUTE = 20

_lines = Quota(LINES_PER_MINUTE)


class Cause(enum.StrEnum):
    """Why a handler was cancelled."""

    TIMEOUT = "it ran longer than its run time-out"
    LEASE_LOST = "its lease is lost"
    WORKER_STOPS = "its worker stops"


@dataclass(frozen=True, slots=True)
class AttemptParts:
    """The parts that all attempts of a worker process share."""

    services: Services
    runner: str
    running: RunningJobs


class Attempt:
    """One attempt that was won. `claimed_mono` is an instant before the claim."""

    def __init__(
        self,
        parts: AttemptParts,
        spec: JobSpec,
        message: RunMessage,
        claim: Claim,
        claimed_mono: float,
    ) -> None:
        plan = message.plan
        self._parts = parts
        self._services = parts.services
        self._terms = spec.terms
        self._plan = plan
        self._message = message
        self._claim = claim
        context = RunContext(parts.services, plan, claim.attempt, parts.runner)
        self._call = HandlerCall(spec.handler, context, f"job-{plan.job}")
        self._wake = threading.Event()
        self._cause: Cause | None = None
        self._cancelled_mono = math.inf
        self._cancel_mono = -math.inf  # the last cancellation
        # A run on demand says nothing about the schedule.
        is_demand = message.origin is Origin.DEMAND
        self._check_ins = None if is_demand else parts.services.check_ins
        self._check_in = ""
        self._started_mono = claimed_mono
        self._names: dict[str, object] = {**message.names, "attempt": claim.attempt}
        self._lease = Lease(
            parts.services.engine,
            claim,
            spec.terms,
            claimed_mono,
            self._names,
            self._wake.set,
        )

    def run(self) -> bool:
        """Run the handler to its end, or to the end of its grace after a cancellation.

        Returns whether the next plan of the scope may follow here.
        """
        if self._lease.is_lost:
            # The process was paused, or the claim took long: another runner may have the plan.
            self._call.abandon("its lease was lost before it began")
            return self._lose()
        with self._parts.running.tracked(self):
            if self._check_ins:
                self._check_in = self._check_ins.began(self._terms, self._plan, self._claim.attempt)
            self._start()
            try:
                self._watch()
            except BaseException:  # our own failure: the handler must not go on without a lease
                self._call.cancel()
                raise
            return self._conclude()

    @property
    def has_ended(self) -> bool:
        """Whether the handler has ended."""
        return self._call.has_ended

    def wake(self) -> None:
        """Wake the thread that watches the handler."""
        self._wake.set()

    def when_ended(self, listener: Callable[[], None]) -> None:
        """Call a function when the handler has ended, which may be after `run`."""
        self._call.when_ended(listener)

    def _start(self) -> None:
        self._call.when_ended(self._wake.set)
        try:
            self._call.start()
        except RuntimeError:  # the system has no more threads
            self._call.abandon("the worker can start no thread for the handler")

    # The watch

    def _watch(self) -> None:
        while not self._call.has_ended:
            # First of all: a process that was paused may have lost its lease meanwhile.
            self._lease.beat_if_due()
            self._judge()
            if self._cause is not None and self._is_given_up():
                return
            self._wake.wait(self._pause_s())
            self._wake.clear()

    def _judge(self) -> None:
        """Cancel the handler for the first cause there is."""
        now_mono = time.monotonic()
        if self._cause is None:
            if self._lease.is_lost:
                self._cause = Cause.LEASE_LOST
            elif now_mono >= self._started_mono + self._terms.run_timeout_s:
                self._cause = Cause.TIMEOUT
            elif self._parts.running.draining.is_set():
                self._cause = Cause.WORKER_STOPS
            else:
                return
            self._cancelled_mono = now_mono
        if now_mono >= self._cancel_mono + CANCEL_AGAIN_S:
            self._cancel_mono = now_mono
            has_cancelled = self._call.cancel()
            if not has_cancelled and self._cancelled_mono == now_mono:
                self._cause = None  # the handler ended first

    def _is_given_up(self) -> bool:
        """Whether the handler had its time to end after its cancellation."""
        is_draining = self._parts.running.draining.is_set()
        grace_s = STOP_GRACE_S if is_draining else GRACE_S
        if self._call.has_ended or time.monotonic() < self._cancelled_mono + grace_s:
            return False
        log.error(
            "job_ignored_cancellation",
            **self._names,
            why=str(self._cause),
            seconds=grace_s,
            at=self._call.location,
        )
        return True

    def _pause_s(self) -> float:
        if self._cause is not None:
            return CANCEL_AGAIN_S / 2
        timeout_mono = self._started_mono + self._terms.run_timeout_s
        return max(0.0, min(self._lease.due_mono, timeout_mono) - time.monotonic())

    # The end

    def _conclude(self) -> bool:
        """Write how the attempt ended. Returns whether the next plan may follow here."""
        if self._cause is Cause.LEASE_LOST:
            return self._lose()
        if self._cause is Cause.WORKER_STOPS:
            return self._give_back()
        return self._write(self._ending())

    def _ending(self) -> Ending:
        if self._cause is Cause.TIMEOUT:
            message = f"it was cancelled after {self._terms.run_timeout_s:g} s"
            if not self._call.has_ended:
                message += f" and did not end within {GRACE_S:g} s of that"
            return Ending(code=FailureCode.RUN_TIMEOUT, message=message)
        ending = self._call.ending
        if ending.code is not None:
            self._log_failure(ending)
        return ending

    def _write(self, ending: Ending) -> bool:
        """Write the result or the failure."""
        retry_s = plan_choice.retry_delay_s(self._terms, self._claim.attempt)
        is_written = self._persist(lambda: self._store(ending, retry_s))
        if not is_written:
            return self._lose()
        if ending.code is None:
            self._count(RunOutcome.SUCCESS)
        else:
            self._count(run_totals.of_failure(ending.code, retry_s is not None))
        return True

    def _store(self, ending: Ending, retry_s: float | None) -> bool:
        engine, run_id, token = self._services.engine, self._claim.run_id, self._claim.token
        if ending.code is None and ending.result is not None:
            result = ending.result
            try:
                details = safe_details.without_secrets(result.details, self._services.redactor)
                return job_ledger.succeed(engine, run_id, token, result.rows_affected, details)
            except errors.PollerError:
                raise
            except Exception as error:  # noqa: BLE001  door: objects of a plugin in its result
                text = f"the result cannot be stored: {handler_call.describe(error)}"
                code, message = FailureCode.HANDLER_ERROR, text
        else:
            code, message = ending.code or FailureCode.HANDLER_ERROR, ending.message
        safe = self._services.redactor.text(message)
        return job_ledger.fail(engine, run_id, token, code, safe, retry_s)

    def _persist(self, write: Callable[[], bool]) -> bool:
        """Write while the lease lasts, although SQL may be away. False: the lease is lost."""
        failures = 0
        while True:
            try:
                return write()
            except errors.StoreError as error:
                failures += 1
                if failures == 1:
                    log.warning("job_result_waits", **self._names, error=str(error))
            pause_s = backoff.exponential(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)
            if self._parts.running.draining.wait(pause_s):
                return False
            self._lease.beat_if_due()
            if self._lease.is_lost:
                return False

    def _lose(self) -> bool:
        """Write nothing: another runner has the plan, or the row goes stale."""
        log.warning("job_lease_lost", **self._names)
        self._count(RunOutcome.LEASE_LOST)
        return False

    def _give_back(self) -> bool:
        """Give the attempt back, or leave that to the end of the process if the handler runs."""
        if self._call.has_ended:
            self.hand_back()
        else:
            self._parts.running.leave_behind(self)
        return False

    def hand_back(self) -> None:
        """Give the attempt back: the worker stops, and the handler with it."""
        try:
            is_given = job_ledger.give_back(
                self._services.engine, self._claim.run_id, self._claim.token
            )
        except errors.StoreError as error:
            log.warning("job_not_given_back", **self._names, error=str(error))
            return
        if is_given:
            log.info("job_given_back", **self._names)
            self._count(RunOutcome.CANCELED)

    def _count(self, outcome: RunOutcome) -> None:
        """Count the attempt and tell Sentry, if there is a DSN. Never raises."""
        seconds = time.monotonic() - self._started_mono
        job_totals.record_run(
            self._services.redis,
            self._services.keys,
            self._plan.job,
            outcome,
            seconds,
            self._lateness_s(),
        )
        if self._check_ins and outcome is not RunOutcome.CANCELED:
            is_ok = outcome is RunOutcome.SUCCESS
            self._check_ins.ended(self._terms, self._check_in, is_ok, seconds)

    def _lateness_s(self) -> float | None:
        """The lateness of the message; None for a further attempt or a demand."""
        message = self._message
        if self._claim.attempt > 1 or message.origin is Origin.DEMAND:
            return None
        return (message.dispatched_ms - self._plan.plan_ms) / 1000 - self._terms.delay_s

    def _log_failure(self, ending: Ending) -> None:
        kind = type(ending.error).__name__ if ending.error else ""
        unsaid = _lines.admit((self._plan.job, ending.code, kind))
        if unsaid is not None:
            log.error(
                "job_failed",
                **self._names,
                code=str(ending.code),
                error=ending.message,
                unsaid_since_the_last=unsaid,
                exc_info=ending.error,
            )
