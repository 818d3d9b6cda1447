"""What a worker leaves in queues that nobody else serves is handed back: it would wait there until its leases end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from poller import errors
from poller.bootstrap import Services
from poller.observability import logs
from poller.state.cluster import worker_registry
from poller.state.publish_errors import broker_errors
from poller.tasks.poll import poll
from poller.workers.batch.worker_poller import Poller

log = logs.get(__name__)


def hand_back_queued(services: Services, poller: Poller, mine: Iterable[str]) -> None:
    """After our good-bye. Never raises: if Redis is away, the leases do it."""
    try:
        queues = sorted(set(mine) - _served(services))
        with broker_errors(), poll.app.connection_for_write() as connection:
            waiting = [
                batch for queue in queues for batch in _taken(connection.default_channel, queue)
            ]
        _tell(hand_back(poller, waiting))
    except errors.PollerError as error:
        log.warning("batches_not_handed_back", error=str(error))


def hand_back(poller: Poller, batches: Iterable[tuple[Any, ...]]) -> int:
    """Arguments of messages whose batches nobody started. Returns how many targets are due again. Raises StoreError."""
    return sum(poller.hand_back(*batch) for batch in batches)


def _tell(targets: int) -> None:
    if targets:
        log.info("queued_targets_handed_back", targets=targets)


def _served(services: Services) -> set[str]:
    """Queues that a living worker takes batches from."""
    living = worker_registry.living(services.redis, services.keys, services.board.now_ms())
    return {queue for worker in living for queue in worker.queues}


def _taken(channel: Any, queue: str) -> Iterator[tuple[Any, ...]]:
    """The polls that wait in a queue, which are then not there any more."""
    while (message := channel.basic_get(queue, no_ack=True)) is not None:
        if message.headers.get("task") == poll.name:
            yield tuple(message.payload[0])
