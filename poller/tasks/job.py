"""`poller.plan_jobs`: which plans of some jobs are due; `poller.run_job`: one plan of one scope.

The flows are in workers/jobs/job_planner.py and workers/jobs/job_runner.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.app import app
from poller.domain.jobs import run_message
from poller.domain.jobs.job_run import Origin
from poller.domain.jobs.run_message import RunMessage
from poller.state.keys import ROUTINE_PRIORITY, URGENT_PRIORITY
from poller.state.publish_errors import broker_errors
from poller.tasks import store_failures

if TYPE_CHECKING:
    from poller.workers.jobs.job_runner import JobRunner

#: Messages that kombu sends in one pipeline.
PIPELINE_SIZE = 500


@app.task(name="poller.plan_jobs", bind=True, ignore_result=True, throws=(errors.StoreError,))
def plan_jobs(self: Any, names: list[str]) -> None:
    """Publish the due plans of these jobs. The leader fires it, more often than needed."""
    with store_failures.recorded(self.name):
        _runner(self.request.hostname).plan(names)


@app.task(name="poller.run_job", bind=True, ignore_result=True, throws=(errors.StoreError,))
def run_job(
    self: Any,
    job: str,
    scope_kind: str,
    scope_id: str,
    plans_ms: list[int],
    dispatched_ms: int,
    origin: str,
) -> None:
    """Run the first of these plans of a scope, then publish the others."""
    arguments = (job, scope_kind, scope_id, plans_ms, dispatched_ms, origin)
    message = run_message.parse(arguments)
    with store_failures.recorded(self.name):
        _runner(self.request.hostname).run(message)


def send_run(producer: Any, queue: str, message: RunMessage) -> None:
    """Publish one run to the queue of its job. `producer` may be None. Raises StoreError."""
    with broker_errors():
        _publish(producer, queue, message)


def send_runs(runs: Iterable[tuple[str, RunMessage]]) -> None:
    """Publish runs, each with its queue, in few round trips. Raises StoreError."""
    with broker_errors(), app.producer_or_acquire() as producer:
        batch = getattr(producer, "batch", None)
        with batch(max_size=PIPELINE_SIZE) if batch else nullcontext():
            for queue, message in runs:
                _publish(producer, queue, message)


def _publish(producer: Any, queue: str, message: RunMessage) -> None:
    # A person waits for a run on demand.
    is_urgent = message.origin is Origin.DEMAND
    run_job.apply_async(
        message.arguments(),
        queue=queue,
        priority=URGENT_PRIORITY if is_urgent else ROUTINE_PRIORITY,
        producer=producer,
        argsrepr=message.text,
        kwargsrepr="{}",
        add_to_parent=False,
        retry=False,
    )


def _runner(hostname: str) -> JobRunner:
    from poller.workers.process import worker_process

    return worker_process.jobs(hostname)
