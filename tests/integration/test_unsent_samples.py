"""Samples that sinks cannot send are counted once, however often a call is repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from poller import errors
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.sinks.api import Sample, Stores
from poller.sinks.metric_stores.influx import InfluxOptions, InfluxSink
from poller.sinks.metric_stores.otlp import OtlpOptions, OtlpSink
from poller.testing.fake_http_store import FakeHttpStore
from tests.integration import store_storms
from tests.integration.store_storms import Drops

AT_MS = 1_790_000_000_123


def influx(stores: Stores, url: str) -> InfluxSink:
    return InfluxSink(stores, InfluxOptions(url=url, counters="integer"))


def otlp(stores: Stores, url: str) -> OtlpSink:
    return OtlpSink(stores, OtlpOptions(url=url))


@pytest.mark.parametrize(("make", "unsent"), [(influx, 2), (otlp, 1)])
def test_unsent_samples_are_counted_once_the_polls_are_stored(
    make: Callable[[Stores, str], Any], unsent: int
) -> None:
    """Two names that are one in the store, and for line protocol a number without an integer."""
    readings = [
        Reading("fan-speed", 1.0),
        Reading("fan_speed", 2.0),
        Reading("octets", 2.0**63, {}, Kind.COUNTER, 64),
    ]
    sample = Sample(store_storms.poll(1, AT_MS).target, AT_MS, ReadingSet.of(readings))
    drops = Drops()
    with FakeHttpStore() as store:
        made = make(Stores(None, None, None, "outside", drops), store.url)
        store.busy()
        for _ in range(2):
            with pytest.raises(errors.StoreUnavailable):
                made.write([sample])
        assert drops.samples == 0
        store.recover()
        made.write([sample])
        made.close()
    assert drops.samples == unsent
