"""The supervisor of a collector in a child process: starts a child on demand and after its end.

A poll whose code ended the child gets a failed outcome. The other polls of that child have no
outcome and are due again.
"""

from __future__ import annotations

import asyncio

from poller import errors
from poller.collectors.api import Poll
from poller.domain.failures import backoff, outcome
from poller.domain.failures.outcome import Outcome
from poller.domain.failures.quarantine import Cause
from poller.domain.inventory.poll_target import PollTarget
from poller.observability import logs
from poller.workers.guard.child.child_messages import ChildConfig
from poller.workers.guard.child.child_process import ChildEnd, ChildProcess
from poller.workers.guard.collector_incidents import CollectorIncidents

log = logs.get(__name__)

#: The pause before the next child after a crash doubles up to its cap.
BASE_MS = 500
CAP_MS = 30_000


class ChildSupervisor:
    """One per isolated collector and worker process; used on the loop only."""

    def __init__(self, release: str, config: ChildConfig, incidents: CollectorIncidents) -> None:
        self._release = release  # collector and distribution, for messages
        self._config = config
        self._incidents = incidents
        self._process: ChildProcess | None = None
        self._crashes = 0  # since the last good outcome
        self._start_at_mono = 0.0
        self._is_closed = False

    async def poll(self, target: PollTarget, poll: Poll) -> Outcome:
        """Poll a target in the child.

        Raises CancelledError without an outcome: no child in time, or another poll ended the child.
        """
        process = await self._ready_process(poll.deadline)
        budget_s = poll.deadline - asyncio.get_running_loop().time()
        result = await process.poll(target, poll, budget_s)
        if result.good:
            self._crashes = 0
        return result

    async def _ready_process(self, deadline_mono: float) -> ChildProcess:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(deadline_mono):
                await asyncio.sleep(self._start_at_mono - loop.time())
                if self._is_closed:  # a child that is started now would never be ended
                    raise asyncio.CancelledError
                process = self._current_process()
                await asyncio.shield(process.ready)
                return process
        except TimeoutError:
            raise asyncio.CancelledError from None

    def _current_process(self) -> ChildProcess:
        """Return the child, or a new one: a retiring child only finishes its pending polls."""
        if self._process is None or self._process.is_retiring:
            process = ChildProcess(self._config)
            process.ended.add_done_callback(self._on_ended)
            self._process = process
        return self._process

    def _on_ended(self, ended: asyncio.Future[ChildEnd]) -> None:
        if self._process is not None and self._process.ended is ended:
            self._process = None

        end = ended.result()
        for pending in end.others:
            pending.outcome.cancel()
        if end.reason:
            self._record_crash(end)

    def _record_crash(self, end: ChildEnd) -> None:
        self._crashes += 1
        pause_ms = backoff.exponential(self._crashes, BASE_MS, CAP_MS)
        self._start_at_mono = asyncio.get_running_loop().time() + pause_ms / 1000

        text = f"the process of {self._release} ended: {end.reason}"
        for pending in end.blamed:
            if not pending.outcome.done():  # its batch may have been stopped meanwhile
                pending.outcome.set_result(outcome.from_error(errors.CollectorDied(text)))

        targets = [pending.target for pending in end.blamed]
        names = [f"{target.device}/{target.name}" for target in targets]
        log.error(
            "collector_process_ended",
            message=text,
            polled=names,
            handed_back=len(end.others),
            trace=end.trace,
        )
        if not end.never_ran:
            if names:
                polled = ", ".join(names)
                text = f"{text}, while it polled {polled}"
            self._incidents.record(self._config.collector, Cause.CRASH, text)

    def close(self) -> None:
        """Take no more polls: pending ones may end, those that wait for a child are handed back."""
        self._is_closed = True
        if self._process is not None:
            self._process.retire()
