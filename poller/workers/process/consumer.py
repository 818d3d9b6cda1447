"""Celery's consumer without mingle and gossip (chatter our workers have no use for), plus our queues."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from celery import bootsteps
from celery.worker import consumer

from poller.workers import lifecycle

#: Seconds between attempts to reach a broker that is away.
RECONNECT = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": 2.0}


class PollQueues(bootsteps.StartStopStep):  # type: ignore[misc]
    """Takes up the queues this worker serves; started again after every broker reconnect."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, c: Any) -> None:
        lifecycle.presence(c.hostname).attach(c)

    def stop(self, c: Any) -> None:
        lifecycle.presence(c.hostname).detach()


class Consumer(consumer.Consumer):  # type: ignore[misc]
    """What `celery worker --without-mingle --without-gossip` would run."""

    class Blueprint(consumer.Consumer.Blueprint):  # type: ignore[misc]
        default_steps: ClassVar[list[Any]] = [
            *consumer.Consumer.Blueprint.default_steps,
            PollQueues,
        ]

    def __init__(
        self, *args: Any, worker_options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        quiet = {**(worker_options or {}), "without_mingle": True, "without_gossip": True}
        super().__init__(*args, worker_options=quiet, **kwargs)
        # Said at every lost connection. We want the default: a thread that polls cannot be cancelled, and need not be.
        # Here, since Celery sets filters of its own when a worker begins.
        warnings.filterwarnings(
            "ignore", message=r"\nIn Celery 5.1 we introduced an optional breaking change"
        )

    def ensure_connected(self, conn: Any) -> Any:
        """Celery would wait longer and longer between its attempts, up to 30 s; a whole fleet would wait with us."""
        conn.ensure_connection = partial(conn.ensure_connection, **RECONNECT)
        return super().ensure_connected(conn)
