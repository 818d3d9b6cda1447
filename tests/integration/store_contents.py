"""What stores have of a fleet: the number of samples of each poll."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import nats
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.integration.store_servers import Influxdb, MockKafka, NatsServer, VictoriaMetrics

#: Device, target and time of a poll, to the number of its samples.
Polls = Counter[tuple[str, str, int]]


def totals(polls: Polls) -> dict[str, int]:
    """Return the samples of each device."""
    found: Counter[str] = Counter()
    for (device, _, _), samples in polls.items():
        found[device] += samples
    return found


def instants(polls: Polls) -> dict[str, set[int]]:
    """Return the times at which each device has samples."""
    found: dict[str, set[int]] = {}
    for device, _, at_ms in polls:
        found.setdefault(device, set()).add(at_ms)
    return found


def in_influxdb(server: Influxdb, database: str) -> Polls:
    found: Polls = Counter()
    rows = server.rows(database, "SELECT *::field FROM /.*/ GROUP BY device, target")
    for row in rows:
        place = (row.pop("device"), row.pop("target"), row.pop("time"))
        number = sum(value is not None for value in row.values())
        found[place] += number
    return found


def in_victoria(server: VictoriaMetrics, match: str) -> Polls:
    found: Polls = Counter()
    for text, at_ms in server.samples(match).elements():
        labels = json.loads(text)
        found[labels["device"], labels["target"], at_ms] += 1
    return found


def in_nats(server: NatsServer, subject: str = "poller.readings.>") -> Polls:
    async def read() -> list[bytes]:
        client = await nats.connect(server.url)
        jetstream = client.jetstream()
        stream = await jetstream.find_stream_name_by_subject(subject)
        number = (await jetstream.stream_info(stream)).state.messages
        reader = await jetstream.subscribe(subject, ordered_consumer=True)
        found = [(await reader.next_msg(timeout=10)).data for _ in range(number)]
        await client.close()
        return found

    return _counted(asyncio.run(read()))


def in_kafka(brokers: MockKafka, topic: str) -> Polls:
    return _counted(message.value() for message in kafka_messages(brokers, topic))


def kafka_messages(brokers: MockKafka, topic: str) -> list[Any]:
    """Return all messages of a topic, those of a partition in their order."""
    reader = Consumer(
        {"bootstrap.servers": brokers.broker, "group.id": "test", "enable.partition.eof": True}
    )
    partitions = reader.list_topics(topic, timeout=10).topics[topic].partitions
    reader.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[Any] = []
    ended = 0
    until_mono = time.monotonic() + 60
    while ended < len(partitions):
        assert time.monotonic() < until_mono, "the partitions have no end"
        message = reader.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None:
            found.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            ended += 1
    reader.close()
    return found


def _counted(payloads: Iterable[Any]) -> Polls:
    """Return the samples of messages with polls; null is none."""
    found: Polls = Counter()
    for payload in payloads:
        body = json.loads(payload)
        number = sum(entry[3] is not None for entry in body["data"])
        if number:
            found[body["device"], body["name"], body["at_ms"]] += number
    return found
