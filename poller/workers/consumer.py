"""Celery's consumer without mingle and gossip (chatter our workers have no use for), plus our queues."""

from __future__ import annotations

from typing import Any, ClassVar

from celery import bootsteps
from celery.worker import consumer

from poller.workers import lifecycle


class PollQueues(bootsteps.StartStopStep):  # type: ignore[misc]
    """Takes up the queues this worker serves; started again after every broker reconnect."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, c: Any) -> None:
        lifecycle.presence(c.hostname).attach(c)

    def stop(self, c: Any) -> None:
        lifecycle.presence(c.hostname).detach()


class Consumer(consumer.Consumer):  # type: ignore[misc]
    class Blueprint(consumer.Consumer.Blueprint):  # type: ignore[misc]
        default_steps: ClassVar[list[Any]] = [
            *(step for step in consumer.Consumer.Blueprint.default_steps if not step.endswith((":Mingle", ":Gossip"))),
            PollQueues,
        ]
