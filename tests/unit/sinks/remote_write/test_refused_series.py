"""The search for refused series: one bad series costs itself, one bad poll costs few requests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics.reading import Reading, ReadingSet
from poller.sinks.api import Sample
from poller.sinks.outside_series import SeriesMapper, SeriesOptions
from poller.sinks.remote_write import outgoing_poll, refused_series, request_batches
from poller.sinks.remote_write.outgoing_poll import OutgoingPoll, Piece
from poller.sinks.remote_write.series_prefixes import PrefixCache
from poller.testing.sink_conformance import TARGET

CACHE = PrefixCache(SeriesMapper(SeriesOptions(), "prom"), 10_000_000)


def poll(series: int, at_ms: int = 1) -> OutgoingPoll:
    readings = ReadingSet.of(Reading(f"m{number}", number) for number in range(series))
    sample = Sample(TARGET, at_ms, readings)
    shape = CACHE.get(TARGET, readings.series)
    return OutgoingPoll(sample, shape, outgoing_poll.values_of(sample, shape))


class Store:
    """A store that takes all or nothing of a request: nothing if a bad sample is in it."""

    def __init__(self, bad: set[tuple[int, int]]) -> None:
        self.bad = bad
        self.stored: set[tuple[int, int]] = set()
        self.dropped: set[tuple[int, int]] = set()
        self.requests = 0

    def send(self, pieces: Sequence[Piece]) -> str:
        self.requests += 1
        samples = {place for piece in pieces for place in places(piece)}
        if samples & self.bad:
            return "out of order sample"
        self.stored |= samples
        return ""

    def drop(self, piece: Piece, reason: str) -> None:
        assert reason == "out of order sample"
        assert not self.dropped & places(piece)
        self.dropped |= places(piece)

    def deliver(self, polls: Sequence[OutgoingPoll]) -> None:
        for pieces in request_batches.batches(polls, 2000):
            refused_series.deliver(pieces, self.send, self.drop)


def places(piece: Piece) -> set[tuple[int, int]]:
    at_ms = piece.poll.sample.at_ms
    return {(at_ms, position) for position in range(piece.first, piece.end)}


@given(st.sets(st.tuples(st.integers(1, 6), st.integers(0, 13)), max_size=20))
def test_exactly_the_bad_samples_are_dropped(bad: set[tuple[int, int]]) -> None:
    """Small polls are searched to the last sample, and every good one arrives."""
    store = Store(bad)
    store.deliver([poll(14, at_ms) for at_ms in range(1, 7)])
    everything = {(at_ms, position) for at_ms in range(1, 7) for position in range(14)}
    assert (store.stored, store.dropped) == (everything - bad, bad)


def test_one_bad_series_of_a_full_request_costs_few_requests() -> None:
    """One of 2,000 samples is found in about the binary logarithm of requests, with probes."""
    store = Store({(7, 100)})
    store.deliver([poll(154, at_ms) for at_ms in range(1, 13)])
    assert store.dropped == {(7, 100)}
    assert len(store.stored) == 12 * 154 - 1
    assert store.requests < 30


def test_a_poll_that_is_refused_as_a_whole_is_known_by_probes() -> None:
    """A poll that is too old is not tried series by series."""
    store = Store({(3, position) for position in range(154)})
    store.deliver([poll(154, at_ms) for at_ms in range(1, 13)])
    assert store.dropped == store.bad
    assert len(store.stored) == 11 * 154
    assert store.requests < 20


def test_a_store_that_refuses_everything_costs_few_requests() -> None:
    """Polls that are too small for probes are not searched one by one."""
    store = Store({(at_ms, position) for at_ms in range(1, 257) for position in range(7)})
    store.deliver([poll(7, at_ms) for at_ms in range(1, 257)])
    assert store.dropped == store.bad
    assert store.requests < 100


def test_good_polls_behind_many_bad_ones_are_stored() -> None:
    """A part that the store takes is no loss, however many were refused before it."""
    bad = {(at_ms, position) for at_ms in range(1, 129) for position in range(7)}
    store = Store(bad)
    store.deliver([poll(7, at_ms) for at_ms in range(1, 257)])
    assert (store.dropped, len(store.stored)) == (bad, 128 * 7)


@pytest.mark.parametrize(("series", "most", "expected"), [(5, 2000, [3]), (5, 7, [1, 1, 1])])
def test_polls_share_requests_up_to_the_limit(series: int, most: int, expected: list[int]) -> None:
    """A poll that fits is not divided between requests."""
    requests = list(request_batches.batches([poll(series, at) for at in range(3)], most))
    assert [len(request) for request in requests] == expected


def test_a_large_poll_is_divided() -> None:
    """A poll of 4,500 series needs three requests, and no series is lost."""
    requests = list(request_batches.batches([poll(4500)], 2000))
    assert [[(first, end) for _, first, end in request] for request in requests] == [
        [(0, 2000)],
        [(2000, 4000)],
        [(4000, 4500)],
    ]


def test_bytes_bound_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of long labels ends before its number of samples is reached."""
    monkeypatch.setattr(request_batches, "MOST_BYTES", 1000)
    requests = list(request_batches.batches([poll(20)], 2000))
    assert len(requests) > 1
    assert sum(piece.samples for request in requests for piece in request) == 20
