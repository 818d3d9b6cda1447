"""Hand back of batches that a stopping worker leaves in queues which no other worker serves.

Without it their targets would wait until the leases end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from poller import errors
from poller.bootstrap import Services
from poller.domain.scheduling import affinity
from poller.observability import logs
from poller.state.cluster import worker_registry
from poller.state.publish_errors import broker_errors
from poller.tasks.poll import poll
from poller.workers.batch.worker_poller import Poller

log = logs.get(__name__)


def hand_back_queued(services: Services, poller: Poller, queues: Iterable[str]) -> None:
    """Hand back the batches in a worker's queues, after it left the registry.

    Never raises: while Redis is away the leases bring the targets back.
    """
    try:
        unserved = set(queues) - _served_queues(services)
        batches: list[tuple[Any, ...]] = []
        with broker_errors(), poll.app.connection_for_write() as connection:
            for queue in _in_order(unserved):
                batches.extend(_take_batches(connection.default_channel, queue))
        targets = hand_back(poller, batches)
        if targets:
            log.info("queued_targets_handed_back", targets=targets)
    except errors.PollerError as error:
        log.warning("batches_not_handed_back", error=str(error))


def hand_back(poller: Poller, batches: Iterable[tuple[Any, ...]]) -> int:
    """Hand back batches that were not started, given the arguments of their messages.

    Returns the number of targets that are due again. Raises StoreError.
    """
    return sum(poller.hand_back(*batch) for batch in batches)


def _served_queues(services: Services) -> set[str]:
    """Return the queues that a live worker takes batches from."""
    now_ms = services.board.now_ms()
    served: set[str] = set()
    for worker in worker_registry.living(services.redis, services.keys, now_ms):
        served.update(worker.queues)
    return served


def _in_order(queues: Iterable[str]) -> list[str]:
    """Own queues come before shared ones: the leader moves batches from the own queue of a worker
    that left to the shared one, and each batch is met in one of them.
    """
    return sorted(queues, key=lambda queue: (not affinity.queue_owner(queue), queue))


def _take_batches(channel: Any, queue: str) -> Iterator[tuple[Any, ...]]:
    """Remove all messages from a queue; gives the arguments of those that are polls."""
    while True:
        message = channel.basic_get(queue, no_ack=True)
        if message is None:
            return
        if message.headers.get("task") == poll.name:
            yield tuple(message.payload[0])
