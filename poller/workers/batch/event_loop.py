"""The one event loop of a worker process, where all polls run, and the bridge to it from Celery's
threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import uvloop

from poller.observability import logs
from poller.workers.guard import running_code
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.loop_watchdog import LoopWatchdog

log = logs.get(__name__)

T = TypeVar("T")


class PollLoop:
    """A loop in a thread of its own, started at first use: after a prefork worker has forked."""

    def __init__(
        self,
        black_box: BlackBox,
        executor: ThreadPoolExecutor | None = None,
        watchdog: LoopWatchdog | None = None,
    ) -> None:
        self._black_box = black_box
        self._executor = executor  # threads of blocking collectors
        self._watchdog = watchdog  # tests that block the loop run without one
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = self._start()
            return self._loop

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = uvloop.new_event_loop()
        if self._executor is not None:
            loop.set_default_executor(self._executor)
        loop.set_task_factory(running_code.TaskFactory(self._black_box.cells))
        thread = threading.Thread(target=_run_for_ever, args=(loop,), name="poll-loop", daemon=True)
        thread.start()
        if self._watchdog is not None:
            self._watchdog.start(loop)
        return loop

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run a coroutine on the loop and wait for its result. Raises TimeoutError if the loop is
        stuck.
        """
        return self.submit(work).result(timeout_s)


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    """Restart the loop after a plugin stops it or raises SystemExit in a task of its own."""
    while True:
        try:
            loop.run_forever()
        except BaseException:
            log.exception("poll_loop_interrupted")
