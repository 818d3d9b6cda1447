"""The consumer of a worker after its connection to the broker was lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kombu.asynchronous import Hub

from poller.bootstrap import Services
from poller.workers.process.consumer import Consumer


def test_the_hub_forgets_the_connections_that_were_lost(
    services: Services, valkey_url: str
) -> None:
    """kombu leaves a callback of each, which keeps the whole connection in memory."""
    from celery import Celery

    app = Celery("test", broker=valkey_url)
    consumer: Any = Consumer.__new__(Consumer)
    consumer._transport_ticks = set()
    consumer.app = app
    consumer.hub = Hub()
    consumer.amqheartbeat = None
    consumer.first_connection_attempt = False
    consumer.broker_connection_retry_attempt = 0
    consumer.hub.on_tick.add(SimpleNamespace)  # a callback of the pool

    for _ in range(5):
        consumer.connect().close()

    assert len(consumer.hub.on_tick) == 2
    assert SimpleNamespace in consumer.hub.on_tick
    consumer.hub.close()
