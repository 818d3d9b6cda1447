"""The queues that this worker serves: those on the board that fit its collectors and tags.

A notification on Redis causes a refresh; a periodic refresh makes up for lost notifications.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from poller import errors, wakeups
from poller.bootstrap import Services
from poller.domain.scheduling import affinity, queue_routing
from poller.observability import logs

log = logs.get(__name__)

#: The pause after a refresh that failed.
RETRY_S = 0.5


class Subscriptions:
    """The subscriptions of one worker.

    Sets `changed`, from any thread, when the served queues change.
    """

    def __init__(
        self, services: Services, tags: Mapping[str, str], changed: threading.Event
    ) -> None:
        self._services = services
        self._tags = tags
        self._changed = changed

        self._consumer: Any = None
        self._fitting: frozenset[str] = frozenset()
        self._served: frozenset[str] | None = None  # None: the consumer is new, or away
        self._refresh_requested = threading.Event()
        self._stopping = threading.Event()
        self._is_started = False

    def attach(self, consumer: Any) -> None:
        """Subscribe a consumer that (re)connected. Runs on Celery's hub."""
        self._consumer = consumer
        self._served = None
        self._refresh_requested.set()

        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, name="domains", daemon=True).start()
            wakeups.listen(
                self._services.redis, self._services.keys.domains, self._on_wakeup, self._stopping
            )

    def detach(self) -> None:
        self._consumer = None
        self._served = None

    def stop(self) -> None:
        self._stopping.set()
        self._refresh_requested.set()

    @property
    def served(self) -> list[str]:
        """The queues that batches are taken from now."""
        return sorted(self._served or ())

    def _on_wakeup(self, _: str) -> None:
        self._refresh_requested.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._refresh_requested.wait(self._services.settings.domains_s)
            # Cleared before the refresh: a notification that comes during it causes one more.
            self._refresh_requested.clear()
            try:
                self._refresh()
            except errors.StoreError as error:
                log.warning("domains_not_read", error=str(error))
                self._stopping.wait(RETRY_S)
                self._refresh_requested.set()
            except Exception:  # door: the end of this thread; it must not die
                log.exception("domains_broke")
                self._stopping.wait(RETRY_S)

    def _refresh(self) -> None:
        collectors = self._services.registry.collectors
        fitting = set()
        for queue in self._services.board.queues():
            if queue_routing.serves(queue, collectors, self._tags):
                fitting.add(queue)
        self._fitting = frozenset(fitting)

        consumer = self._consumer
        if consumer is None or self._stopping.is_set():
            return
        if self._fitting != self._served:
            consumer.hub.call_soon(self._subscribe, consumer)

    def _subscribe(self, consumer: Any) -> None:
        """Subscribe to the queues of the newest refresh.

        Runs on Celery's hub, in any order of calls.
        """
        if consumer is not self._consumer or consumer.task_consumer is None:
            return
        fitting = self._fitting
        sessions = self._services.registry.keeping_sessions
        queues = affinity.subscribed_queues(fitting, sessions, consumer.hostname)
        consumed = subscribed_queues(consumer.app)
        for queue in sorted(consumed - queues):
            consumer.cancel_task_queue(queue)
            log.info("queue_left", queue=queue)
        for queue in sorted(queues):
            if queue not in consumed:
                log.info("queue_taken_up", queue=queue)
            consumer.add_task_queue(queue)
        self._served = fitting
        self._changed.set()


def subscribed_queues(celery: Any) -> set[str]:
    """Return the poll queues that the consumer of a Celery app is subscribed to."""
    names = list(celery.amqp.queues.consume_from)
    return {name for name in names if name.startswith(queue_routing.QUEUE_PREFIX)}
