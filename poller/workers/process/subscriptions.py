"""The queues that this worker serves: those on the board that fit its collectors and tags, those
of its installed jobs, and those of scrapes. While it is drained it serves none.

A notification on Redis causes a refresh; a periodic refresh makes up for lost notifications.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from poller import errors, wakeups
from poller.bootstrap import Services
from poller.domain.jobs import job_queue
from poller.domain.scheduling import affinity, queue_routing
from poller.domain.scheduling.worker_drain import Drain
from poller.domain.scrapes import scrape_poll
from poller.observability import logs
from poller.state.requests import worker_drains

log = logs.get(__name__)

#: The pause after a refresh that failed.
RETRY_S = 0.5


class Subscriptions:
    """The subscriptions of one worker.

    Sets `changed`, from any thread, when the served queues change.
    """

    def __init__(
        self,
        services: Services,
        tags: Mapping[str, str],
        changed: threading.Event,
        worker: str = "",
    ) -> None:
        self._services = services
        self._worker = worker  # its name, under which it is drained
        self._tags = tags
        self._changed = changed

        takes_jobs = services.settings.worker_jobs > 0
        self._job_queues = frozenset(services.jobs.by_queue() if takes_jobs else ())
        self._is_pausing_jobs = False

        self._consumer: Any = None
        self._fitting: frozenset[str] = frozenset()
        self._served: frozenset[str] | None = None  # None: the consumer is new, or away
        self._drain: Drain | None = None
        self._followed: Drain | None = None  # the drain that the subscriptions follow
        self._left: set[str] = set()  # queues that were left for a drain
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
        self._followed = None

    def stop(self) -> None:
        self._stopping.set()
        self._refresh_requested.set()

    @property
    def served(self) -> list[str]:
        """The queues that batches and jobs are taken from now; also those of jobs that are paused
        because no job slot is free.
        """
        if self._served is None or self._followed is not None:
            return []
        return sorted(self._served | self._job_queues)

    @property
    def drain(self) -> Drain | None:
        """The drain that this worker follows; None without one."""
        return self._followed

    def take_left(self) -> set[str]:
        """Return the queues that were left for a drain, each once. From any thread."""
        left, self._left = self._left, set()
        return left

    def pause_jobs(self, is_pausing: bool) -> None:
        """Leave the queues of jobs, or take them up again. From any thread."""
        self._is_pausing_jobs = is_pausing
        consumer = self._consumer
        if consumer is not None and not self._stopping.is_set():
            consumer.hub.call_soon(self._subscribe, consumer)

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
        services = self._services
        drain = worker_drains.of_worker(services.redis, services.keys, self._worker)
        collectors = self._services.registry.collectors
        fitting = set()
        for queue in self._services.board.queues():
            if queue_routing.serves(queue, collectors, self._tags):
                fitting.add(queue)
        self._fitting = frozenset(fitting)
        self._drain = drain

        consumer = self._consumer
        if consumer is None or self._stopping.is_set():
            return
        if self._fitting != self._served or drain != self._followed:
            consumer.hub.call_soon(self._subscribe, consumer)

    def _subscribe(self, consumer: Any) -> None:
        """Subscribe to the queues of the newest refresh.

        Runs on Celery's hub, in any order of calls.
        """
        if consumer is not self._consumer or consumer.task_consumer is None:
            return
        fitting, drain = self._fitting, self._drain
        queues = self._wanted(fitting, consumer.hostname) if drain is None else set()
        consumed = subscribed_queues(consumer.app) | subscribed_job_queues(consumer.app)
        consumed |= _subscribed(consumer.app, scrape_poll.QUEUE)
        for queue in sorted(consumed - queues):
            consumer.cancel_task_queue(queue)
            self._log_change("queue_left", queue)
        for queue in sorted(queues):
            if queue not in consumed:
                self._log_change("queue_taken_up", queue)
            consumer.add_task_queue(queue)
        if drain is not None:
            self._left |= consumed
        if self._served != fitting or self._followed != drain:
            # Not when job queues are left for a while: a change wakes the leader and its work.
            self._served = fitting
            self._followed = drain
            self._changed.set()

    def _wanted(self, fitting: frozenset[str], hostname: str) -> set[str]:
        """The queues to take from."""
        queues = affinity.subscribed_queues(fitting, hostname) | _scrape_queues(fitting, self._tags)
        return queues if self._is_pausing_jobs else queues | self._job_queues

    def _log_change(self, event: str, queue: str) -> None:
        # The queues of jobs are left and taken up again in every burst of jobs.
        write = log.debug if queue in self._job_queues else log.info
        write(event, queue=queue)


def _scrape_queues(fitting: frozenset[str], tags: Mapping[str, str]) -> set[str]:
    """Return the queues of scrapes: of all workers, of those with the tags of a domain, and of
    those with all tags of this one, for polls of devices that are not stored yet.
    """
    queues = {scrape_poll.queue_of({}), scrape_poll.queue_of(tags)}
    for queue in fitting:
        _, required = queue_routing.parse(queue)
        queues.add(scrape_poll.queue_of(required))
    return queues


def subscribed_queues(celery: Any) -> set[str]:
    """Return the poll queues that the consumer of a Celery app is subscribed to."""
    return _subscribed(celery, queue_routing.QUEUE_PREFIX)


def subscribed_job_queues(celery: Any) -> set[str]:
    """Return the job queues that the consumer of a Celery app is subscribed to."""
    return _subscribed(celery, job_queue.QUEUE_PREFIX)


def _subscribed(celery: Any, prefix: str) -> set[str]:
    names = list(celery.amqp.queues.consume_from)
    return {name for name in names if name.startswith(prefix)}
