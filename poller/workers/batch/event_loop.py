"""The bridge between Celery's task threads and the one event loop of this process, where all polls run."""

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
from poller.workers.guard.loop_watchdog import Watchdog

log = logs.get(__name__)

T = TypeVar("T")


class Runtime:
    """One loop in one thread, started at first use: after a prefork worker has forked, not before."""

    def __init__(self, box: BlackBox) -> None:
        self.watchdog: Watchdog | None = (
            None  # a test that blocks its loop should not end like a worker
        )
        self.executor: ThreadPoolExecutor | None = None  # for what collectors do in threads
        self._box = box
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = uvloop.new_event_loop()
                if self.executor is not None:
                    self._loop.set_default_executor(self.executor)
                self._loop.set_task_factory(running_code.TaskFactory(self._box.cells))
                threading.Thread(
                    target=self._run, args=(self._loop,), name="poll-loop", daemon=True
                ).start()
                if self.watchdog is not None:
                    self.watchdog.start(self._loop)
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """For ever: a plugin whose own task raises SystemExit, or that stops the loop, must not end all polling."""
        while True:
            try:
                loop.run_forever()
            except BaseException:
                log.exception("poll_loop_interrupted")

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run on the loop and wait for the result. Raises TimeoutError when the loop itself is stuck."""
        return self.submit(work).result(timeout_s)
