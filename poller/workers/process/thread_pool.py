"""The default pool of a worker: Celery's threads, each waits for one batch on the event loop.

A class of its own distinguishes the default pool from one of the command line.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery.concurrency import thread
from celery.worker import state

from poller import bootstrap
from poller.workers.jobs import job_planner
from poller.workers.process import process_limits

#: Threads for each slot of the worker. The others serve batches that run on capacity which batches
#: with silent devices lend, as far as the file limit allows.
THREADS_PER_SLOT = 8


class TaskPool(thread.TaskPool):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

        settings = bootstrap.services().settings
        batch_size = settings.batch_size
        file_limit = process_limits.raise_file_limit()
        allowed = process_limits.spare_batches(self.limit, batch_size, file_limit)
        lent = self.limit * (THREADS_PER_SLOT - 1)
        self.spare = min(lent, allowed)

        # The executor starts its threads on demand.
        threads = self.limit + self.spare + _job_threads(settings.worker_jobs, self.limit)
        self.executor = ThreadPoolExecutor(max_workers=threads)

    def on_stop(self) -> None:
        """Have the running batches end: the base class waits for them."""
        from poller.workers.process import worker_process  # the class is loaded before the tasks

        hostname = self.options["initargs"][1]
        worker_process.stop(hostname, 0.0)
        # In a cold shutdown this is a signal handler, which may have interrupted a `submit`.
        if not state.should_terminate:
            super().on_stop()

    def on_terminate(self) -> None:
        """Runs later in a cold shutdown: the batches were cut off and hand back their targets."""
        self.executor.shutdown(cancel_futures=True)

    def terminate_job(self, pid: int, signal: Any = None) -> None:
        """Do nothing: a thread cannot be ended.

        `worker_process.stop` cuts its batch off instead.
        """


def _job_threads(slots: int, places: int) -> int:
    """Threads for jobs that lend their place: those that run, plan, or wait for a job slot."""
    return slots + places + job_planner.MOST_PLANNERS
