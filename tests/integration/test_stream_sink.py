"""The `stream` sink: other programs follow polls in a bounded Redis stream, without a query of the
database.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import redis

from poller import errors
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.sinks import registry
from poller.sinks.api import Sample, Stores
from poller.sinks.bus.stream import StreamSink

TARGET = PollTarget(7, 1, "fast", 3, 'sw "1"', "127.0.0.1", "ams", "snmp", 60_000, 5_000)


def sample(*values: float, at_ms: int = 1000) -> Sample:
    labels = {"ifName": 'e"1', "ifAlias": "café"}
    return Sample(
        TARGET,
        at_ms,
        ReadingSet.of(Reading(f"m{i}", v, labels, Kind.COUNTER) for i, v in enumerate(values)),
    )


def sink(client: redis.Redis, length: int = 1000, name: str = "") -> StreamSink:
    settings = SimpleNamespace(key_prefix="poller:", stream_length=length)
    return StreamSink(Stores(None, client, settings, name))


def test_a_follower_reads_every_poll(redis_client: redis.Redis) -> None:
    """The stream has names, labels, kinds and values of every poll, in order."""
    sink(redis_client).write([sample(1, 2.5), sample(float("nan"), float("inf"), at_ms=2000)])
    (_, first), (_, second) = redis_client.xrange("poller:readings")
    labels = {"ifAlias": "café", "ifName": 'e"1'}
    assert json.loads(first["data"]) == [
        ["m0", labels, "counter", 1.0],
        ["m1", labels, "counter", 2.5],
    ]
    assert (first["target"], first["device"], first["collector"], first["at_ms"]) == (
        "7",
        'sw "1"',
        "snmp",
        "1000",
    )
    assert [row[3] for row in json.loads(second["data"])] == [None, None]
    assert first["series"] == second["series"]


def test_two_sinks_have_two_streams(redis_client: redis.Redis) -> None:
    """A program that follows one of them reads every poll once."""
    for name in ("stream", "second"):
        sink(redis_client, name=name).write([sample(1)])
    lengths = [redis_client.xlen(f"poller:readings{end}") for end in ("", ":second")]
    assert lengths == [1, 1]


def test_the_stream_is_bounded(redis_client: redis.Redis) -> None:
    """The oldest polls leave, so that an unread stream never fills Redis."""
    writer = sink(redis_client, length=100)
    for _ in range(40):
        writer.write([sample(1)] * 64)
    assert 100 <= redis_client.xlen("poller:readings") <= 300


def test_a_server_that_is_down_is_a_store_error() -> None:
    """A write to a server that is down raises a StoreError, which the worker survives."""
    nobody = redis.Redis(port=1, socket_connect_timeout=0.2, retry=None)
    with pytest.raises(errors.StoreUnavailable, match="cannot use Redis"):
        sink(nobody).write([sample(1)])


def test_a_stream_that_is_something_else_is_a_refusal_not_an_outage(
    redis_client: redis.Redis,
) -> None:
    """A key of another type refuses its polls, which are set aside after some tries instead of
    waiting for ever.
    """
    redis_client.set("poller:readings", "x")
    with pytest.raises(errors.StoreError) as caught:
        sink(redis_client).write([sample(1)])
    assert not isinstance(caught.value, errors.StoreUnavailable)


def test_both_built_in_sinks_are_found_by_name(redis_client: redis.Redis) -> None:
    """The built-in sinks come by entry point, like any other sink."""
    stores = Stores(None, redis_client, SimpleNamespace(key_prefix="poller:", stream_length=10))
    assert [made.name for made in registry.load(("sql", "stream"), stores)] == ["sql", "stream"]
