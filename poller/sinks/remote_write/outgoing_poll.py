"""One poll on its way to the store, and pieces of it: the unit of requests and of refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from poller.domain.metrics.counter_bridges import Bridge
from poller.sinks.api import Sample
from poller.sinks.remote_write import sample_values
from poller.sinks.remote_write.series_prefixes import ShapePrefixes

_NO_STARTS: Mapping[int, int] = {}


class OutgoingPoll(NamedTuple):
    """A poll with the bytes of its series and values. Positions count the series that are sent."""

    sample: Sample
    shape: ShapePrefixes
    values: Sequence[bytes]
    bridges: Sequence[Bridge] = ()  # samples to add before those of the poll
    starts: Mapping[int, int] = _NO_STARTS  # column -> start of the counter, in ms

    @property
    def samples(self) -> int:
        """The samples of the poll, without bridges."""
        return len(self.shape.heads)


class Piece(NamedTuple):
    """Some series of a poll, from one position to before another."""

    poll: OutgoingPoll
    first: int
    end: int

    @property
    def samples(self) -> int:
        """The samples of the piece, without bridges."""
        return self.end - self.first

    @property
    def bridges(self) -> list[tuple[int, Bridge]]:
        """The bridges of these series, with positions."""
        columns = self.poll.shape.columns
        positions = {column: position for position, column in enumerate(columns)}
        found = []
        for bridge in self.poll.bridges:
            position = positions.get(bridge.column, -1)
            if self.first <= position < self.end:
                found.append((position, bridge))
        return found

    def halves(self) -> tuple[Piece, Piece]:
        """Return both halves of a piece of several series."""
        middle = (self.first + self.end) // 2
        return self._replace(end=middle), self._replace(first=middle)

    def single(self, position: int) -> Piece:
        """Return the piece of one series."""
        return Piece(self.poll, position, position + 1)


def values_of(sample: Sample, shape: ShapePrefixes) -> Sequence[bytes]:
    """Return the values of the series that are sent. An end has the mark of staleness."""
    if sample.is_end:
        return [sample_values.STALE] * len(shape.heads)
    packed = sample_values.packed_values(sample.readings.values)
    return packed if shape.pick is None else shape.pick(packed)
