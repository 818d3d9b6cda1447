"""A worker's presence: says every two seconds that it lives and what it can take, and takes up new queues."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from poller import errors
from poller.bootstrap import Services
from poller.domain import routing
from poller.domain.overview import Worker
from poller.observability import logs
from poller.state import workers
from poller.workers.aftermath import Aftermath
from poller.workers.children import Tally
from poller.workers.polling import Poller

log = logs.get(__name__)


class Presence:
    def __init__(self, services: Services, poller: Poller, tags: dict[str, str], tally: Callable[[], Tally]) -> None:
        self._services = services
        self._poller = poller
        self._tags = tags
        self._tally = tally  # of all processes of this worker
        self._aftermath = Aftermath(services, poller)
        self._started_ms = time.time_ns() // 1_000_000
        self._consumer: Any = None
        self._slots = services.settings.worker_concurrency
        self._queues: set[str] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def attach(self, consumer: Any) -> None:
        """A consumer (re)connected: it knows none of our queues yet. Called on Celery's hub."""
        with self._lock:
            self._consumer = consumer
            self._slots = consumer.pool.limit or self._slots
            self._queues = set()
        self._refresh()
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="presence", daemon=True)
            self._thread.start()

    def detach(self) -> None:
        with self._lock:
            self._consumer = None

    def stop(self) -> None:
        """Say good-bye: nothing more is queued for us alone."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=3)  # else its last heartbeat might come after the good-bye
        try:
            workers.leave(self._services.redis, self._services.keys, self._poller.runner)
        except errors.StoreError as error:
            log.warning("good_bye_not_said", error=str(error))

    def _beat(self) -> None:
        self._aftermath.look()
        while not self._stopping.wait(workers.HEARTBEAT_S):
            self._refresh()
            self._aftermath.look()

    def _refresh(self) -> None:
        try:
            self._take_up_queues()
            if not self._stopping.is_set():
                workers.announce(self._services.redis, self._services.keys, self._view())
        except errors.StoreError as error:
            log.warning("heartbeat_failed", error=str(error))
        except Exception:
            log.exception("heartbeat_broke")

    def _take_up_queues(self) -> None:
        """Every domain on the board that our collectors and tags fit."""
        collectors = self._services.registry.collectors
        fitting = {q for q in self._services.board.queues() if routing.serves(q, collectors, self._tags)}
        with self._lock:
            consumer, new = self._consumer, fitting - self._queues
            if consumer is None:
                return
            self._queues |= new
        for queue in sorted(new):
            consumer.hub.call_soon(consumer.add_task_queue, queue)
            log.info("queue_taken_up", queue=queue)

    def _view(self) -> Worker:
        with self._lock:
            queues = sorted(self._queues) if self._consumer is not None else []
        done = self._tally()
        return Worker(
            name=self._poller.runner,
            seen_ms=0,
            started_ms=self._started_ms,
            polls=done.polls,
            in_flight=done.in_flight,
            rss_bytes=done.rss_bytes,
            tags=self._tags,
            collectors=dict(self._services.registry.distributions),
            queues=queues,
            slots=self._slots,
            spool_waiting=done.spool_waiting,
            spool_dropped=done.spool_dropped,
        )
