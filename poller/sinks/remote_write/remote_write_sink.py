"""The `remote_write` sink: one call of `write` becomes a few requests of at most 2,000 samples.

Delivery is at least once. What was sent before a call failed is not sent again by the same process,
and a sample that comes twice is one sample in the store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

from poller import errors
from poller.domain.metrics.reading import SeriesSet
from poller.sinks.api import API_VERSION, Sample, Stores
from poller.sinks.http_store import HttpStore
from poller.sinks.outside_series import SeriesMapper
from poller.sinks.remote_write import outgoing_poll, protobuf_fields, refused_series
from poller.sinks.remote_write.counter_corrections import NOTHING, CounterCorrections
from poller.sinks.remote_write.counter_memory import CounterMemory
from poller.sinks.remote_write.dropped_samples import DroppedSamples
from poller.sinks.remote_write.options import RemoteWriteOptions
from poller.sinks.remote_write.outgoing_poll import OutgoingPoll, Piece
from poller.sinks.remote_write.request_batches import batches
from poller.sinks.remote_write.series_prefixes import PrefixCache
from poller.sinks.remote_write.write_client import WriteClient
from poller.state.keys import Keys

#: A poll or an end: target, instant, shape, whether it is an end.
_Identity = tuple[int, int, int, bool]
#: Samples of failed calls that are noted. Some never come again: a full spool drops its oldest.
_MOST_NOTED = 65_536


class RemoteWriteSink:
    name: ClassVar[str] = "remote_write"
    api_version: ClassVar[int] = API_VERSION
    Options: ClassVar[type[RemoteWriteOptions]] = RemoteWriteOptions
    takes_ends: ClassVar[bool] = True
    write_polls: ClassVar[int] = 256

    def __init__(self, stores: Stores, options: RemoteWriteOptions) -> None:
        sink = stores.name or self.name
        mapper = SeriesMapper(options, sink)
        wants_v2 = options.protocol == "2.0"
        self._max_samples = options.max_samples
        self._max_age_ms = options.max_age
        self.target_labels = mapper.target_labels
        self._prefixes = PrefixCache(mapper, options.cache_mb * 1024 * 1024)
        self._dropped = DroppedSamples(stores.dropped, mapper, sink)
        http = HttpStore(options, sink)
        self._client = WriteClient(http, wants_v2, self._dropped.not_written, sink)
        self._corrections: CounterCorrections | None = None
        if stores.redis is not None and (options.correct_counters or wants_v2):
            keys = Keys(stores.settings.key_prefix)
            memory = CounterMemory(stores.redis, keys, sink)
            self._corrections = CounterCorrections(
                memory, with_bridges=options.correct_counters, with_starts=wants_v2
            )
        self._done: set[_Identity] = set()  # sent by a call that failed later
        self._unsure: set[_Identity] = set()  # in a request of that call without a good answer

    def write(self, samples: Sequence[Sample]) -> None:
        """Send all samples, or raise StoreUnavailable. Refused samples are dropped and counted."""
        if self._corrections:
            self._corrections.begin(samples)
        polls = list(self._outgoing(samples))
        sent: list[Piece] = []
        for pieces in batches(polls, self._max_samples):
            try:
                refused_series.deliver(pieces, self._client.send, self._refused)
            except errors.StoreUnavailable:
                self._note(sent, pieces)
                raise
            sent += pieces
        if self._corrections:
            self._corrections.commit()
        self._count_doubled(polls)
        self._forget(samples)

    def check(self) -> str:
        """Return what the store answered last."""
        return f"remote write {self._client.version}, {self._client.last_answer or 'no request'}"

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _outgoing(self, samples: Sequence[Sample]) -> Iterator[OutgoingPoll]:
        now_ms = time.time_ns() // 1_000_000
        for sample in samples:
            correction = self._corrections.of(sample) if self._corrections else NOTHING
            if self._done and _identity(sample) in self._done:
                continue
            if self._is_too_old(sample, now_ms):
                self._dropped.too_old(sample, now_ms)
                self._done.add(_identity(sample))
                continue
            shape = self._prefixes.get(sample.target, sample.readings.series)
            values = outgoing_poll.values_of(sample, shape)
            yield OutgoingPoll(sample, shape, values, correction.bridges, correction.starts)

    def _refused(self, piece: Piece, reason: str) -> None:
        if self._unsure and _identity(piece.poll.sample) in self._unsure:
            reason += " (it may be in the store: an earlier request with it had no good answer)"
        self._dropped.refused(piece, reason)

    def _note(self, sent: Sequence[Piece], failed: Sequence[Piece]) -> None:
        """Note the polls of a failed call whose last series were sent, and those in doubt."""
        complete = [poll for poll, _, end in sent if end == poll.samples]
        self._count_doubled(complete)
        self._done.update(_identity(poll.sample) for poll in complete)
        self._unsure.update(_identity(piece.poll.sample) for piece in failed)

    def _count_doubled(self, polls: Sequence[OutgoingPoll]) -> None:
        for poll in polls:
            if poll.shape.doubled and not poll.sample.is_end:
                self._dropped.doubled(poll.sample)

    def _forget(self, samples: Sequence[Sample]) -> None:
        """Forget samples that came again and are sent now, and those that never come again."""
        for noted in (self._done, self._unsure):
            if noted:
                noted.difference_update(map(_identity, samples))
            if len(noted) > _MOST_NOTED:
                noted.clear()

    def _is_too_old(self, sample: Sample, now_ms: int) -> bool:
        """Whether a sample is beyond the age limit, or at no instant that can be sent."""
        if not 0 <= sample.at_ms <= protobuf_fields.MOST_MS:
            return True
        return self._max_age_ms is not None and now_ms - sample.at_ms > self._max_age_ms


def _identity(sample: Sample) -> _Identity:
    shape: SeriesSet = sample.readings.series
    return sample.target.id, sample.at_ms, shape.id, sample.is_end
