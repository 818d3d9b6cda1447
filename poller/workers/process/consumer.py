"""Celery's consumer without mingle and gossip, plus the subscriptions to poll queues."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from celery import bootsteps
from celery.worker import consumer

from poller.workers.process import queue_entries, worker_process

#: Seconds between attempts to reach a broker that is away. Celery's own pauses grow to 30 s.
RECONNECT = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": 2.0}


class PollQueues(bootsteps.StartStopStep):  # type: ignore[misc]
    """Subscribes to the queues of this worker; started again after every broker reconnect."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, c: Any) -> None:
        worker_process.heartbeat(c.hostname).attach(c)

    def stop(self, c: Any) -> None:
        worker_process.heartbeat(c.hostname).detach()


class Consumer(consumer.Consumer):  # type: ignore[misc]
    """The consumer of `celery worker --without-mingle --without-gossip`."""

    class Blueprint(consumer.Consumer.Blueprint):  # type: ignore[misc]
        default_steps: ClassVar[list[Any]] = [
            *consumer.Consumer.Blueprint.default_steps,
            PollQueues,
        ]

    def __init__(
        self, *args: Any, worker_options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        options = dict(worker_options or {})
        options["without_mingle"] = True
        options["without_gossip"] = True
        self._transport_ticks: set[Any] = set()
        super().__init__(*args, worker_options=options, **kwargs)

        # Celery warns at every lost connection. The default is right here: a thread that polls
        # cannot be cancelled. The filter is set here because Celery sets its own filters when a
        # worker starts.
        warnings.filterwarnings(
            "ignore", message=r"\nIn Celery 5.1 we introduced an optional breaking change"
        )

    def connect(self) -> Any:
        """Connect, and let Celery's hub forget the lost connection.

        kombu leaves a callback of every connection in the hub, which keeps the connection in memory
        and runs at every turn of the hub.
        """
        if self.hub is None:
            return super().connect()
        ticks = self.hub.on_tick
        ticks -= self._transport_ticks
        others = set(ticks)
        connection = super().connect()
        self._transport_ticks = ticks - others
        return connection

    def ensure_connected(self, conn: Any) -> Any:
        """Connect with short pauses: otherwise the whole fleet waits after a broker restart."""
        conn.ensure_connection = partial(conn.ensure_connection, **RECONNECT)
        return super().ensure_connected(conn)

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Set aside a message of a task that this worker does not have."""
        self._refuse(message, "its task is unknown here")

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Set aside a message whose headers Celery cannot use."""
        self._refuse(message, f"Celery cannot use its headers ({type(exc).__name__})")

    def _refuse(self, message: Any, reason: str) -> None:
        queue = str((message.delivery_info or {}).get("routing_key") or "")
        text = str({"headers": message.headers, "body": message.body})
        queue_entries.refusals.refuse(queue, text, reason)
        message.reject_log_error(logging.getLogger(__name__), self.connection_errors)
