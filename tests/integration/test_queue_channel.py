"""A worker's channel to Redis sets entries aside that are no Celery messages, and goes on."""

from __future__ import annotations

import gc
import json
import os
from contextlib import suppress
from queue import Empty
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from kombu import Queue
from kombu.pidbox import Mailbox

from poller.bootstrap import Services
from poller.tasks.poll import poll
from poller.workers.process import queue_entries
from poller.workers.process.queue_channel import QueueConnection
from tests.acceptance.proxy import Proxy
from tests.unit.workers.process.test_queue_entries import REFUSED, message

QUEUE = "poll.snmp"
SECRET = "hunter2-long-enough"


@pytest.fixture
def connection(services: Services, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(queue_entries, "refusals", queue_entries.Refusals())
    options = {**poll.app.conf.broker_transport_options, "polling_interval": 0.01}
    with QueueConnection(valkey_url, transport_options=options) as made:
        yield made


def push(services: Services, *entries: bytes) -> None:
    """Put entries into the list of urgent batches, the first in front."""
    services.redis.lpush(QUEUE, *entries)


def test_the_consumer_gets_the_message_behind_foreign_entries(
    services: Services, connection: Any
) -> None:
    """Each foreign entry is counted; the list keeps the newest, and one event names the kind."""
    push(services, *REFUSED.values(), message())
    got: list[Any] = []
    with connection.Consumer(Queue(QUEUE, no_declare=True), on_message=got.append, no_ack=True):
        while not got:
            connection.drain_events(timeout=10)

    assert got[0].headers["task"] == poll.name
    assert services.redis.hget(services.keys.totals, "queue_entries_refused") == str(len(REFUSED))
    kept = [json.loads(text) for text in services.redis.lrange(services.keys.set_aside, 0, -1)]
    assert len(kept) == len(REFUSED)
    assert {entry["queue"] for entry in kept} == {QUEUE}
    assert kept[-1]["entry"] == "not json"
    assert max(len(entry["entry"]) for entry in kept) <= queue_entries.KEPT_CHARACTERS
    kinds = [fields["kind"] for _, fields in services.redis.xrange(services.keys.events)]
    assert kinds
    assert set(kinds) == {"queue_entry_refused"}
    assert len(kinds) <= queue_entries.LINES_PER_MINUTE


def test_a_stopping_worker_finds_its_batches_behind_foreign_entries(
    services: Services, connection: Any
) -> None:
    """`basic_get` is how batches are handed back."""
    push(services, b"[]", message(), b"not json", message())
    channel = connection.default_channel
    found = [channel.basic_get(QUEUE, no_ack=True) for _ in range(3)]
    assert [each is not None for each in found] == [True, True, False]
    assert services.redis.llen(services.keys.set_aside) == 2


def test_a_flood_of_foreign_entries_keeps_only_the_newest(
    services: Services,
) -> None:
    """The list is bounded, and secrets of this process are masked."""
    services.redactor.remember(SECRET)
    refusals = queue_entries.Refusals()
    for number in range(queue_entries.KEPT + 20):
        refusals.refuse(QUEUE, f"{number} {SECRET}", "it is not JSON")
    kept = services.redis.lrange(services.keys.set_aside, 0, -1)
    assert len(kept) == queue_entries.KEPT
    assert json.loads(kept[0])["entry"].startswith(f"{queue_entries.KEPT + 19} ")
    assert not any(SECRET in text for text in kept)


def test_a_foreign_message_of_remote_control_is_refused(connection: Any) -> None:
    """Celery's broadcast channel takes messages of any program, too."""
    channel = connection.default_channel
    for foreign in (5, [1], {}, {"properties": {}}):
        with pytest.raises(Empty):
            channel._deliver_fanout_message(foreign, "celery.pidbox")


def test_a_command_gets_the_replies_of_remote_control(services: Services, connection: Any) -> None:
    """As `celery inspect ping` and Flower do: a reply is the message of no task."""
    mailbox = Mailbox("celery", type="fanout")(connection)
    channel = connection.default_channel
    mailbox.reply_queue(channel).declare()
    pong = {"worker@host": {"ok": "pong"}}
    exchange = mailbox.reply_exchange.name
    mailbox._publish_reply(pong, exchange, mailbox.oid, "a ticket", channel=channel)
    assert mailbox._collect("a ticket", limit=1, timeout=2, channel=channel) == [pong]
    assert services.redis.llen(services.keys.set_aside) == 0


def test_a_connection_that_is_closed_while_redis_is_away_leaves_nothing_open(
    valkey_url: str,
) -> None:
    """As the remote control of a beat does at every lost connection: files and memory must not
    grow with the number of outages.
    """
    parts = urlsplit(valkey_url)
    assert parts.port is not None
    network = Proxy(parts.port)
    url = parts._replace(netloc=parts.netloc.replace(str(parts.port), str(network.port))).geturl()
    try:
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            lose_a_connection(url, network)
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before + 1
    finally:
        network.close()


def lose_a_connection(url: str, network: Proxy) -> None:
    """Listen to remote control as Celery's beat does, lose Redis, and close the connection."""
    made = QueueConnection(url, transport_options={"socket_timeout": 1, "ack_emulation": False})
    node = Mailbox("test", type="fanout").Node("beat@test", channel=made.channel())
    node.listen(callback=print)
    with suppress(TimeoutError):
        while True:
            made.drain_events(timeout=0.2)
    network.refuse()
    with suppress(redis.ConnectionError, OSError):
        while True:
            made.drain_events(timeout=2)
    made.close()
    network.heal()


def test_all_roles_use_this_channel() -> None:
    """The Celery app makes the connections of beat, workers, Flower and commands."""
    with poll.app.connection_for_read() as made:
        assert made.transport.Channel.__name__ == "QueueChannel"
