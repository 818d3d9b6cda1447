"""The `otlp` sink: OTLP metrics over HTTP, for the OpenTelemetry Collector and its relatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

from pydantic import Field, model_validator

from poller import errors
from poller.domain.inventory.poll_target import PollTarget
from poller.sinks import bisection
from poller.sinks.api import API_VERSION, Sample, Stores
from poller.sinks.http_options import HttpStoreOptions
from poller.sinks.http_store import HttpStore
from poller.sinks.metric_stores import otlp_answers
from poller.sinks.metric_stores.otlp_encoder import EncodedPoll, ShapeMetrics
from poller.sinks.outside_series import SentLabels, SeriesMapper, SeriesOptions
from poller.sinks.remote_write.counter_corrections import NOTHING, CounterCorrections
from poller.sinks.remote_write.counter_memory import CounterMemory
from poller.sinks.shape_cache import ShapeCache
from poller.state.keys import Keys

_PATH = "/v1/metrics"
_PROTOBUF = (("Content-Type", "application/x-protobuf"),)
#: Statuses of a request that can succeed in smaller parts.
_DIVISIBLE = frozenset({400, 413, 422})


class OtlpOptions(HttpStoreOptions, SeriesOptions):
    """The options of an `otlp` sink."""

    service_name: str = Field("poller", min_length=1, description="service.name of every resource.")
    max_points: int = Field(
        5000, ge=1, le=100_000, description="Data points of one request; a poll is not divided."
    )
    start_times: bool = Field(
        False,
        description="Send when counters started, as far as uptime of the device proves it; needs "
        "one read and one write in Redis per call.",
    )
    gzip: bool = Field(False, description="Compress requests: less traffic, more CPU.")

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if "?" in self.url:
            raise ValueError("the url has no query: /v1/metrics is added to its path")
        return self


class _Outgoing(NamedTuple):
    target: str
    poll: EncodedPoll


class OtlpSink:
    name: ClassVar[str] = "otlp"
    api_version: ClassVar[int] = API_VERSION
    Options: ClassVar[type[OtlpOptions]] = OtlpOptions
    takes_ends: ClassVar[bool] = True
    write_polls: ClassVar[int] = 256

    def __init__(self, stores: Stores, options: OtlpOptions) -> None:
        self._options = options
        self._dropped = stores.dropped
        self._store = HttpStore(options, stores.name)
        self._path = _path(self._store.url.target)
        self._mapper = SeriesMapper(options, stores.name)
        self._shapes: ShapeCache[ShapeMetrics] = ShapeCache()
        self._corrections: CounterCorrections | None = None
        if options.start_times and stores.redis is not None:
            keys = Keys(stores.settings.key_prefix)
            memory = CounterMemory(stores.redis, keys, stores.name)
            self._corrections = CounterCorrections(memory, with_bridges=False, with_starts=True)

    def write(self, samples: Sequence[Sample]) -> None:
        """Send all polls, oldest first. A repeated call sends the same data points again."""
        if self._corrections:
            self._corrections.begin(samples)
        for polls in _requests(self._outgoing(samples), self._options.max_points):
            bisection.send(polls, self._request, self._leave_out)
        if self._corrections:
            self._corrections.commit()
        self._count_doubled(samples)

    def check(self) -> str:
        """Say where data points go: OTLP has no request that asks for nothing."""
        return f"{self._store.url} takes OTLP at {self._path}"

    def target_labels(self, target: PollTarget) -> tuple[SentLabels, str]:
        """Return what every series has of a target: its labels, and the device as resource."""
        return self._mapper.target_labels(target), target.device

    def close(self) -> None:
        self._store.close()

    def _outgoing(self, samples: Sequence[Sample]) -> Iterator[_Outgoing]:
        for sample in samples:
            correction = self._corrections.of(sample) if self._corrections else NOTHING
            metrics = self._shape_metrics(sample)
            if sample.is_end:
                poll = metrics.ended(sample.at_ms)
            else:
                poll = metrics.encoded(sample.readings.values, sample.at_ms, correction.starts)
            if poll.points:
                yield _Outgoing(sample.target.name, poll)

    def _shape_metrics(self, sample: Sample) -> ShapeMetrics:
        target, shape = sample.target, sample.readings.series
        key = (target.id, target.version, shape.id)
        metrics = self._shapes.get(key)
        if metrics is None:
            resource = (
                ("service.name", self._options.service_name),
                ("service.instance.id", target.device),
            )
            outside = self._mapper.outside(target, shape)
            metrics = ShapeMetrics(outside.series, shape, resource, len(outside.doubled))
            self._shapes.put(key, metrics, len(shape))
        return metrics

    def _count_doubled(self, samples: Sequence[Sample]) -> None:
        """Count series that equal an earlier one in the store, once all polls are sent."""
        for sample in samples:
            doubled = 0 if sample.is_end else self._shape_metrics(sample).doubled
            if doubled:
                reason = f"{sample.target.name}: series with name and labels of another one"
                self._dropped(doubled, reason)

    def _request(self, polls: Sequence[_Outgoing]) -> errors.StoreError | None:
        """Send one request. Returns the refusal of a receiver that took no point."""
        body = b"".join([each.poll.content for each in polls])
        answer = self._store.post(self._path, body, _PROTOBUF, zipped=self._options.gzip)
        if 200 <= answer.status < 300:
            sent = sum(each.poll.points for each in polls)
            points, reason = otlp_answers.rejected(answer.body, sent)
            if points:
                self._dropped(points, f"{polls[0].target} or later: {reason}")
            return None
        refusal = self._store.failure(answer)
        if answer.status in _DIVISIBLE:
            return refusal
        raise refusal

    def _leave_out(self, refused: _Outgoing, refusal: errors.StoreError) -> None:
        self._dropped(refused.poll.points, f"{refused.target}: {refusal.cause or refusal.message}")


def _path(base: str) -> str:
    trimmed = base.rstrip("/")
    return trimmed if trimmed.endswith(_PATH) else trimmed + _PATH


def _requests(polls: Iterator[_Outgoing], max_points: int) -> Iterator[list[_Outgoing]]:
    request: list[_Outgoing] = []
    points = 0
    for each in polls:
        if request and points + each.poll.points > max_points:
            yield request
            request, points = [], 0
        request.append(each)
        points += each.poll.points
    if request:
        yield request
