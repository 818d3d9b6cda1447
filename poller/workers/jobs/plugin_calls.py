"""Calls of `scopes` and `plans`, which are plugin code: each in a thread, under a time limit.

A call may raise anything, SystemExit too, return anything, or never end. A job whose call hangs is
not called again until that call has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from poller.observability import logs
from poller.observability.report_quota import Quota
from poller.workers.guard import running_code
from poller.workers.jobs import handler_call

log = logs.get(__name__)

#: A call that takes longer is left behind.
CALL_S = 30.0
#: Calls that may hang at a time in one process; beyond that none is made.
MOST_HANGING = 100
LINES_PER_MINUTE = 20


class _Call:
    """One call in a daemon thread."""

    def __init__(self, job: str, what: str, function: Callable[[], Any]) -> None:
        self.future: Future[Any] = Future()
        self._function = function
        self._thread = threading.Thread(target=self._run, name=f"{what}-{job}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def location(self) -> str:
        return running_code.thread_location(self._thread.ident or 0)

    def _run(self) -> None:
        try:
            result = self._function()
        except BaseException as error:  # noqa: BLE001  door: plugin code, SystemExit too
            text = handler_call.describe(error)
            self.future.set_exception(RuntimeError(text))  # without the frames of the plugin
        else:
            self.future.set_result(result)


class PluginCalls:
    """One per worker process, safe for threads. `redact` masks secrets in what is logged."""

    def __init__(self, redact: Callable[[str], str], limit_s: float = CALL_S) -> None:
        self._redact = redact
        self._limit_s = limit_s
        #: Job to the fault of its last call; "" if it succeeded.
        self.faults: dict[str, str] = {}
        self._running: dict[str, _Call] = {}  # job to its call, until that has ended
        self._lock = threading.Lock()
        self._lines = Quota(LINES_PER_MINUTE)

    def results(
        self, what: str, functions: Mapping[str, Callable[[], Any]]
    ) -> Iterator[dict[str, Any]]:
        """Call one function for each job; give the results by job, in groups as they come.

        A job whose function fails or hangs is logged and left out.
        """
        calls = {job: self._start(job, what, function) for job, function in functions.items()}
        pending = {call.future: job for job, call in calls.items() if call is not None}
        until_mono = time.monotonic() + self._limit_s
        while pending:
            left_s = until_mono - time.monotonic()
            done, _ = wait(pending, max(0.0, left_s), FIRST_COMPLETED)
            if not done:
                break
            group = {}
            for future in done:
                job = pending.pop(future)
                self._note_end(job)
                error = future.exception()
                if error is None:
                    group[job] = future.result()
                    self.faults[job] = ""
                else:
                    self.report(job, what, str(error))
            yield group
        for job in pending.values():
            self._report_hanging(job, what)

    def report(self, job: str, what: str, error: str) -> None:
        """Note that a function of a job cannot be used, and log it once a minute."""
        error = self._redact(error)
        self.faults[job] = f"{what}: {error}"
        unsaid = self._lines.admit((job, what))
        if unsaid is not None:
            log.error(
                "job_not_planned",
                job=job,
                function=what,
                error=error,
                unsaid_since_the_last=unsaid,
            )

    def _start(self, job: str, what: str, function: Callable[[], Any]) -> _Call | None:
        with self._lock:
            earlier = self._running.get(job)
            if earlier is not None and not earlier.future.done():
                return None  # it hangs, which was logged, or another thread plans the same job
            if len(self._running) >= MOST_HANGING:
                self._running = {
                    name: call for name, call in self._running.items() if not call.future.done()
                }
            if len(self._running) >= MOST_HANGING:
                return None
            call = _Call(job, what, function)
            self._running[job] = call
        try:
            call.start()
        except RuntimeError:  # the system has no more threads
            self._note_end(job)
            self.report(job, what, "the worker can start no thread for it")
            return None
        return call

    def _note_end(self, job: str) -> None:
        with self._lock:
            self._running.pop(job, None)

    def _report_hanging(self, job: str, what: str) -> None:
        call = self._running.get(job)
        where = f"; it is at {call.location}" if call is not None else ""
        text = f"it did not return within {self._limit_s:g} s{where}"
        text += "; the job is not planned until it returns"
        self.report(job, what, text)
