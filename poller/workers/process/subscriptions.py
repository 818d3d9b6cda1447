"""Which queues does this worker take batches from? Those on the board that its collectors and tags fit.

Notes say when to look again; a look now and then finds what a lost note missed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from poller import errors, wakeups
from poller.bootstrap import Services
from poller.domain.scheduling import affinity, queue_routing
from poller.observability import logs

log = logs.get(__name__)

#: After a look that failed.
LOOK_AGAIN_S = 0.5


class Domains:
    """`on_change` is called, from any thread, when the worker serves other queues than before."""

    def __init__(
        self, services: Services, tags: Mapping[str, str], on_change: Callable[[], None]
    ) -> None:
        self._services = services
        self._tags = tags
        self._on_change = on_change
        self._consumer: Any = None
        self._fitting: frozenset[str] = frozenset()
        self._served: frozenset[str] | None = None  # not known: the consumer is new, or away
        self._asked = threading.Event()
        self._stopping = threading.Event()
        self._begun = False

    def attach(self, consumer: Any) -> None:
        """A consumer (re)connected: it takes from the queues of before. Called on Celery's hub."""
        self._consumer, self._served = consumer, None
        self._asked.set()
        if not self._begun:
            self._begun = True
            services = self._services
            threading.Thread(target=self._keep, name="domains", daemon=True).start()
            wakeups.listen(
                services.redis, services.keys.domains, lambda _: self._asked.set(), self._stopping
            )

    def detach(self) -> None:
        self._consumer, self._served = None, None

    def stop(self) -> None:
        self._stopping.set()
        self._asked.set()

    @property
    def served(self) -> list[str]:
        """The queues that batches are taken from, now."""
        return sorted(self._served or ())

    def _keep(self) -> None:
        """A note that comes during a look sets the flag again, so one more look follows."""
        while not self._stopping.is_set():
            self._asked.wait(self._services.settings.domains_s)
            self._asked.clear()
            try:
                self._look()
            except errors.StoreError as error:
                log.warning("domains_not_read", error=str(error))
                self._stopping.wait(LOOK_AGAIN_S)
                self._asked.set()
            except Exception:
                log.exception("domains_broke")
                self._stopping.wait(LOOK_AGAIN_S)

    def _look(self) -> None:
        collectors, tags = self._services.registry.collectors, self._tags
        queues = self._services.board.queues()
        self._fitting = frozenset(
            queue for queue in queues if queue_routing.serves(queue, collectors, tags)
        )
        consumer = self._consumer
        if consumer is not None and not self._stopping.is_set() and self._fitting != self._served:
            consumer.hub.call_soon(self._take_up, consumer)

    def _take_up(self, consumer: Any) -> None:
        """On Celery's hub, whose own these calls are. Two of them may come in any order: each takes the newest look."""
        if consumer is not self._consumer or consumer.task_consumer is None:
            return
        fitting = self._fitting
        wanted = affinity.taken(
            fitting, self._services.registry.keeping_sessions, consumer.hostname
        )
        consumed = {
            name
            for name in consumer.app.amqp.queues.consume_from
            if name.startswith(queue_routing.QUEUE_PREFIX)
        }
        for queue in sorted(consumed - wanted):
            consumer.cancel_task_queue(queue)
            log.info("queue_left", queue=queue)
        for queue in sorted(wanted):
            if queue not in consumed:
                log.info("queue_taken_up", queue=queue)
            consumer.add_task_queue(queue)
        self._served = fitting
        self._on_change()
