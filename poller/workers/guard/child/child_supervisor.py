"""Keeps one collector in a child process: starts it when there is something to poll, and again after its end.

Who was being polled by the code that ended it gets the outcome; the others of that child have none, and are due again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from poller import errors
from poller.collectors.api import Poll
from poller.domain.failures import backoff, outcome
from poller.domain.failures.outcome import Outcome
from poller.domain.inventory.poll_target import PollTarget
from poller.observability import logs
from poller.workers.guard.child.child_messages import Hello
from poller.workers.guard.child.child_process import End, Process

log = logs.get(__name__)

BASE_MS, CAP_MS = 500, 30_000
#: Told of each crash: why, and the targets whose code ran.
Crashed = Callable[[str, tuple[PollTarget, ...]], None]


class Keeper:
    """Of one collector in one worker process; used on the loop only."""

    def __init__(self, named: str, hello: Hello, crashed: Crashed) -> None:
        self._named = named  # with its distribution
        self._hello = hello
        self._crashed = crashed
        self._process: Process | None = None
        self._crashes = 0  # since its last good answer
        self._not_before = 0.0
        self._closed = False

    async def poll(self, target: PollTarget, poll: Poll) -> Outcome:
        """Raises CancelledError when nothing was found out: no process in time, or one that another poll ended."""
        process = await self._ready(poll.deadline)
        found = await process.ask(target, poll, poll.deadline - asyncio.get_running_loop().time())
        if found.good:
            self._crashes = 0
        return found

    async def _ready(self, deadline: float) -> Process:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.sleep(self._not_before - loop.time())
                if self._closed:  # meanwhile: nobody would end a process that is started now
                    raise asyncio.CancelledError
                process = self._current()
                await asyncio.shield(process.ready)
                return process
        except TimeoutError:
            raise asyncio.CancelledError from None

    def _current(self) -> Process:
        """The one there is; one that is tired only finishes what it has."""
        if self._process is None or self._process.tired:
            self._process = Process(self._hello, self._over)
        return self._process

    def _over(self, process: Process, end: End) -> None:
        if process is self._process:
            self._process = None
        for asked in end.innocent:
            asked.answer.cancel()
        if not end.reason:
            return
        self._crashes += 1
        loop = asyncio.get_running_loop()
        self._not_before = loop.time() + backoff.exponential(self._crashes, BASE_MS, CAP_MS) / 1000
        text = f"the process of {self._named} ended: {end.reason}"
        for asked in end.blamed:
            asked.answer.set_result(outcome.from_error(errors.CollectorDied(text)))
        targets = tuple(asked.target for asked in end.blamed)
        names = [f"{target.device}/{target.name}" for target in targets]
        log.error(
            "collector_process_ended",
            message=text,
            polled=names,
            handed_back=len(end.innocent),
            trace=end.trace,
        )
        if not end.ours:
            self._crashed(text, targets)

    def close(self) -> None:
        """No more polls: what is under way may end, what waits for a process is handed back."""
        self._closed = True
        if self._process is not None:
            self._process.retire()
