"""The pool of `celery -A poller worker` without `-P`: Celery's threads, each of which waits for one batch on the loop.

A class of our own, so that what was chosen by default can be told from what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from celery.concurrency import thread
from celery.worker import state

from poller import bootstrap
from poller.workers.process import open_files

#: Threads for each place of the worker: as many more batches may wait for devices that do not answer, if there are
#: files for all of them.
THREADS_PER_SLOT = 8


class TaskPool(thread.TaskPool):  # type: ignore[misc]
    #: Node name and seconds. Whatever ends the pool waits for its batches: these must know that they are to end.
    before_stop: ClassVar[Callable[[str, float], None] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        batch_size = bootstrap.services().settings.batch_size
        most = open_files.spare(self.limit, batch_size, open_files.raise_limit())
        self.spare = min(self.limit * (THREADS_PER_SLOT - 1), most)
        self.executor = ThreadPoolExecutor(
            max_workers=self.limit + self.spare
        )  # started as they are needed

    def on_stop(self) -> None:
        if TaskPool.before_stop is not None:
            TaskPool.before_stop(self.options["initargs"][1], 0.0)
        if (
            not state.should_terminate
        ):  # else we are in a signal handler, which may have interrupted a `submit`
            super().on_stop()

    def on_terminate(self) -> None:
        """Later in a cold shutdown: the batches were cut off, and hand back what they had."""
        self.executor.shutdown(cancel_futures=True)

    def terminate_job(self, pid: int, signal: Any = None) -> None:
        """A cold shutdown asks for it. Threads cannot be ended; the lifecycle cuts their batches off instead."""
