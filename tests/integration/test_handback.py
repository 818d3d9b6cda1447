"""The hand back of a stopping worker: which batches it takes, and what it does without Redis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from poller.bootstrap import Services
from poller.settings import Settings
from poller.state.cluster import worker_queues
from poller.tasks.poll import poll
from poller.workers.process import handback
from poller.workers.process.queue_channel import QueueConnection

SHARED = "poll.snmp"
OWN = f"{SHARED}~w1"


class RecordingPoller:
    """A poller that only notes what is handed back."""

    def __init__(self) -> None:
        self.tokens: list[str] = []

    def hand_back(self, token: str, ids: list[int], attempt: int = 0) -> int:
        self.tokens.append(token)
        return len(ids)


@pytest.mark.usefixtures("home")
def test_without_redis_the_hand_back_logs_a_warning_and_raises_nothing(free_port: int) -> None:
    """The leases bring the targets back, and the worker goes on closing."""
    services = Services(Settings(redis_url=f"redis://127.0.0.1:{free_port}/0"))
    with structlog.testing.capture_logs() as lines:
        handback.hand_back_queued(services, None, ["poll.snmp"])  # type: ignore[arg-type]
    assert [line["event"] for line in lines] == ["batches_not_handed_back"]


@pytest.mark.parametrize("after", [0, 1, 2], ids=["first", "in between", "last"])
def test_batches_that_the_leader_moves_meanwhile_are_handed_back_too(
    services: Services, valkey_url: str, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The leader moves the own queue of a worker that left to the shared one, at any moment."""
    options = poll.app.conf.broker_transport_options
    take = handback._take_batches
    taken: list[str] = []

    def moved_meanwhile(channel: Any, queue: str) -> Iterator[tuple[Any, ...]]:
        if len(taken) == after:
            worker_queues.hand_over(services.redis, OWN, SHARED)
        yield from take(channel, queue)
        taken.append(queue)

    def connect() -> QueueConnection:
        return QueueConnection(valkey_url, transport_options=options)

    monkeypatch.setattr(poll.app, "connection_for_write", connect)
    monkeypatch.setattr(handback, "_take_batches", moved_meanwhile)
    with connect() as connection, poll.app.amqp.Producer(connection) as producer:
        for token, queue in (("one", OWN), ("two", OWN), ("three", SHARED)):
            poll.apply_async((token, [1, 2]), queue=queue, producer=producer)

    poller = RecordingPoller()
    handback.hand_back_queued(services, poller, [SHARED, OWN])  # type: ignore[arg-type]
    assert sorted(poller.tokens) == ["one", "three", "two"]
