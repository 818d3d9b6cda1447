"""The encoders of remote write against the protobuf library: every text, value and instant."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics.counter_bridges import Bridge
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.sinks.api import Sample
from poller.sinks.outside_series import SeriesMapper, SeriesOptions
from poller.sinks.remote_write import (
    encoder_v1,
    encoder_v2,
    outgoing_poll,
    protobuf_fields,
    sample_values,
)
from poller.sinks.remote_write.outgoing_poll import OutgoingPoll, Piece
from poller.sinks.remote_write.series_prefixes import PrefixCache
from poller.testing.sink_conformance import TARGET
from tests import remote_write_messages
from tests.remote_write_messages import Received

AT_MS = 1_700_000_000_123
STALE = 0x7FF0_0000_0000_0002
TEXT = st.text(max_size=12)
READINGS = st.lists(
    st.builds(
        Reading,
        name=TEXT,
        value=st.floats(),
        labels=st.dictionaries(TEXT, TEXT, max_size=4),
        kind=st.sampled_from(Kind),
    ),
    min_size=1,
    max_size=12,
)


class Encoding:
    """Encodes samples with both encoders, and decodes them with the library."""

    def __init__(self, **options: Any) -> None:
        self.mapper = SeriesMapper(SeriesOptions(**options), "prom")
        self.cache = PrefixCache(self.mapper, 1_000_000)

    def poll(self, sample: Sample, **more: Any) -> OutgoingPoll:
        shape = self.cache.get(sample.target, sample.readings.series)
        return OutgoingPoll(sample, shape, outgoing_poll.values_of(sample, shape), **more)

    def received(self, *pieces: Piece, version: str = "1.0") -> list[Received]:
        if version == "2.0":
            body = encoder_v2.encode(pieces)
        else:
            body = encoder_v1.encode(pieces)
        return remote_write_messages.decode(body, version, is_compressed=False)

    def whole(self, sample: Sample, version: str = "1.0", **more: Any) -> list[Received]:
        poll = self.poll(sample, **more)
        return self.received(Piece(poll, 0, poll.samples), version=version)


def sample(*readings: Reading, at_ms: int = AT_MS, is_end: bool = False) -> Sample:
    return Sample(TARGET, at_ms, ReadingSet.of(readings), is_end)


def bits(value: float) -> int:
    if math.isnan(value):
        return 0x7FF8_0000_0000_0001
    return struct.unpack("<Q", struct.pack("<d", value))[0]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@given(READINGS, st.integers(0, protobuf_fields.MOST_MS))
def test_every_sample_is_read_back(version: str, readings: list[Reading], at_ms: int) -> None:
    """Names, labels, values and instants are those of the poll, and all series are apart."""
    encoding = Encoding()
    poll = sample(*readings, at_ms=at_ms)
    received = encoding.whole(poll, version)
    mapped = encoding.mapper.outside(TARGET, poll.readings.series).series
    assert len(received) == len(mapped) == len({each.labels for each in received})
    for each, (column, name, labels) in zip(received, mapped, strict=True):
        assert dict(each.labels) == {**dict(labels), "__name__": name}
        assert (each.at_ms, each.bits) == (at_ms, bits(poll.readings.values[column]))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_labels_stand_in_order_around_the_name(version: str) -> None:
    """Capital letters sort before the metric's name, as the protocol demands."""
    encoding = Encoding(label_names={"device": "Device"}, labels={"A": "1"})
    received = encoding.whole(sample(Reading("up", 1.0, {"Zone": "z", "a": "b"})), version)
    names = [name for name, _ in received[0].labels]
    assert names == ["A", "Device", "Zone", "__name__", "a", "collector", "site", "target"]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_only_an_end_is_a_stale_marker(version: str) -> None:
    """An end has the NaN of staleness; a value with the same bits is a plain NaN."""
    stale = struct.unpack("<d", sample_values.STALE)[0]
    encoding = Encoding()
    plain = encoding.whole(sample(Reading("a", stale), Reading("b", math.inf)), version)
    assert [each.bits for each in plain] == [bits(math.nan), bits(math.inf)]
    ended = encoding.whole(sample(Reading("a", 1.0), Reading("b", 2.0), is_end=True), version)
    assert [each.bits for each in ended] == [STALE, STALE]


def test_a_bridge_stands_before_the_sample_of_its_series() -> None:
    """An added sample has the labels of its counter, and only in the piece of that counter."""
    encoding = Encoding(exclude_metrics=["a"])
    poll = encoding.poll(
        sample(Reading("a", 1.0), Reading("b", 2.0), Reading("c", 3.0)),
        bridges=[Bridge(0, AT_MS - 9, 5.0), Bridge(2, AT_MS - 7, 4.0)],
    )
    for version in ("1.0", "2.0"):
        received = encoding.received(Piece(poll, 1, 2), version=version)
        assert [(each.name, each.at_ms, each.value) for each in received] == [
            ("c", AT_MS - 7, 4.0),
            ("c", AT_MS, 3.0),
        ]
        assert len(encoding.received(Piece(poll, 0, 1), version=version)) == 1


def test_version_2_says_kinds_and_starts() -> None:
    """A counter with a known start carries it; kinds are those of the readings."""
    poll = sample(
        Reading("c", 1.0, kind=Kind.COUNTER),
        Reading("g", 2.0),
        Reading("i", 1.0, kind=Kind.INFO),
    )
    received = Encoding().whole(poll, "2.0", starts={0: AT_MS - 60_000})
    assert [(each.kind, each.start_ms) for each in received] == [
        (1, AT_MS - 60_000),
        (2, 0),
        (6, 0),
    ]


def test_the_cache_is_bounded_and_forgets_the_oldest() -> None:
    """A shape beyond the limit pushes out the one that was used least recently."""
    encoding = Encoding()
    encoding.cache = PrefixCache(encoding.mapper, 5000)
    first = sample(Reading("a", 1.0))
    entry = encoding.cache.get(TARGET, first.readings.series)
    assert encoding.cache.get(TARGET, first.readings.series) is entry
    for name in "bcdef":
        encoding.cache.get(TARGET, sample(Reading(name, 1.0)).readings.series)
    assert encoding.cache.get(TARGET, first.readings.series) is not entry


@pytest.mark.parametrize("at_ms", [-1, 2**42])
def test_an_instant_beyond_2109_is_refused(at_ms: int) -> None:
    """Six bytes hold every instant from 1970 to 2109."""
    with pytest.raises(ValueError, match="no instant"):
        protobuf_fields.instant(at_ms)
