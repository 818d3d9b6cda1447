"""A worker says every two seconds that it lives, what it has and what it takes, and at once when that changes."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any

from poller import errors
from poller.bootstrap import Services
from poller.domain.record.overview import Worker
from poller.observability import logs
from poller.state.cluster import worker_registry
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard.crash_report import Aftermath
from poller.workers.process.prefork_children import Tally
from poller.workers.process.subscriptions import Domains

log = logs.get(__name__)

#: How long the last heartbeat may take before we say good-bye.
LAST_BEAT_S = 3.0


class Presence:
    def __init__(
        self, services: Services, poller: Poller, tags: dict[str, str], tally: Callable[[], Tally]
    ) -> None:
        self._services = services
        self._poller = poller
        self._tags = tags
        self._tally = tally  # of all processes of this worker
        self._aftermath = Aftermath(services, poller)
        self._instance = secrets.token_hex(3)
        self._started_ms = self._polls = self._polled_ms = 0
        self._slots = services.settings.worker_concurrency
        self._news = threading.Event()
        self._domains = Domains(services, tags, self._news.set)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._looking = threading.Thread(
            target=self._aftermath.keep_looking,
            args=(self._stopping,),
            name="aftermath",
            daemon=True,
        )

    def attach(self, consumer: Any) -> None:
        """A consumer (re)connected. Called on Celery's hub."""
        if self._thread is None:
            self._aftermath.look()  # before our first poll: what ended the last worker must not end this one
        self._slots = consumer.pool.limit or self._slots
        self._poller.lending.attach(consumer)
        self._domains.attach(consumer)
        self._news.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="presence", daemon=True)
            self._thread.start()
            self._looking.start()

    def detach(self) -> None:
        self._poller.lending.detach()
        self._domains.detach()

    def stop(self) -> None:
        """Say good-bye: nothing more is queued for us alone."""
        self._domains.stop()
        self._stopping.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(
                timeout=LAST_BEAT_S
            )  # else its last heartbeat might come after the good-bye
        try:
            worker_registry.leave(
                self._services.redis, self._services.keys, self._view(Tally()).key
            )
        except errors.StoreError as error:
            log.warning("good_bye_not_said", error=str(error))
        if self._looking.is_alive():
            self._looking.join(timeout=LAST_BEAT_S)

    def _beat(self) -> None:
        while True:
            news = self._news.wait(worker_registry.HEARTBEAT_S)
            self._news.clear()
            if self._stopping.is_set():
                return
            self._announce(news)

    def _announce(self, news: bool) -> None:
        """With news, the leader is woken: it may have waited for us."""
        try:
            now_ms, done = self._services.board.now_ms(), self._tally()
            self._started_ms = self._started_ms or now_ms
            if done.polls != self._polls:
                self._polls, self._polled_ms = done.polls, now_ms
            worker_registry.announce(
                self._services.redis, self._services.keys, self._view(done), news
            )
        except errors.StoreError as error:
            log.warning("heartbeat_failed", error=str(error))
        except Exception:
            log.exception("heartbeat_broke")

    def _view(self, done: Tally) -> Worker:
        return Worker(
            name=self._poller.runner,
            seen_ms=0,
            started_ms=self._started_ms,
            polls=done.polls,
            in_flight=done.in_flight,
            rss_bytes=done.rss_bytes,
            tags=self._tags,
            collectors=dict(self._services.registry.distributions),
            queues=self._domains.served,
            sessions=self._services.registry.keeping_sessions,
            costs=self._services.registry.costs,
            broken={broken.name: broken.state for broken in self._services.registry.broken},
            slots=self._slots,
            spool_waiting=done.spool_waiting,
            spool_dropped=done.spool_dropped,
            instance=self._instance,
            polled_ms=self._polled_ms,
        )
