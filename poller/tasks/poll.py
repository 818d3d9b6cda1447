"""`poller.poll`: one message, one batch of targets. The flow is in workers/batch/batch_run.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poller import bootstrap, errors
from poller.app import app
from poller.domain.scheduling import affinity
from poller.observability import tracing
from poller.settings import policies
from poller.tasks import store_failures

if TYPE_CHECKING:
    from poller.workers.batch.worker_poller import Poller

_limits = policies.retry_limits(bootstrap.services().settings)


class TryAgain(Exception):
    """Some targets failed in a way that may pass by itself; only they travel in the retry."""


@app.task(
    name="poller.poll",
    bind=True,
    ignore_result=True,
    throws=(errors.StoreError,),
    autoretry_for=(TryAgain,),
    max_retries=_limits.tries,
    retry_backoff=int(_limits.base_s),
    retry_backoff_max=int(_limits.cap_s),
    retry_jitter=True,
    # Without these two Celery would print all ids into the message and into Flower.
    retry_kwargs={"argsrepr": "(the failed targets of a batch)", "kwargsrepr": "{}"},
)
def poll(self: Any, token: str, ids: list[int], attempt: int = 0) -> None:
    """Poll the targets `ids`, which were claimed under `token`."""
    trace = self.request.get(tracing.HEADER)
    with store_failures.recorded(self.name):
        failed = _poller(self.request.hostname).poll(token, ids, attempt, trace)
    if failed:
        if trace:
            self.request.headers = {tracing.HEADER: trace}  # the retry belongs to the same trace
        _route_retry(self.request)
        self.request.args, self.request.kwargs = (token, failed, attempt + 1), {}
        raise TryAgain


def _route_retry(request: Any) -> None:
    """Send the retry of a batch from a worker's own queue to the shared queue.

    The session of a failed target is gone, and its worker may be gone when the retry is due.
    """
    delivery = request.delivery_info or {}
    queue = delivery.get("routing_key") or ""
    if affinity.queue_owner(queue):
        shared_queue = affinity.shared_queue(queue)
        request.delivery_info = {**delivery, "exchange": "", "routing_key": shared_queue}


def _poller(hostname: str) -> Poller:
    from poller.workers.process import worker_process

    poller = worker_process.poller(hostname)
    poller.follow_inventory()
    return poller
