"""Polls as OTLP metrics (protobuf): a counter is a cumulative sum, all else a gauge.

Attributes of a series are encoded once per target and shape; a data point is these bytes, two or
three numbers of fixed size, and its length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Final, NamedTuple

from poller.domain.metrics.reading import Kind, Labels, SeriesSet, pack
from poller.sinks.outside_series import OutsideSeries
from poller.sinks.remote_write.protobuf_fields import delimited, text, varint

#: Tags of fields: their number and how they are written.
_RESOURCE_METRICS: Final = 0x0A
_RESOURCE: Final = 0x0A
_SCOPE_METRICS: Final = 0x12
_SCOPE: Final = 0x0A
_METRIC: Final = 0x12
_NAME: Final = 0x0A
_GAUGE: Final = 0x2A
_SUM: Final = 0x3A
_POINT: Final = 0x0A
_POINT_ATTRIBUTE: Final = 0x3A
#: AGGREGATION_TEMPORALITY_CUMULATIVE, is_monotonic.
_CUMULATIVE: Final = b"\x10\x02\x18\x01"
#: Tags and numbers of a data point: [start,] time, value; or time and the flag NO_RECORDED_VALUE.
_TIMED = struct.Struct("<BQBd")
_STARTED = struct.Struct("<BQBQBd")
_ENDED = struct.Struct("<BQBB")
#: The first two numbers of `_TIMED`; its third one is eight bytes of the packed values.
_TIME_AND_TAG = struct.Struct("<BQB")
_EIGHT_BYTES = struct.Struct("8s")
_NS: Final = 1_000_000
_NO_STARTS: Mapping[int, int] = {}


class _Metric(NamedTuple):
    """One metric of a shape: its bytes before the points, and its points without numbers."""

    head: bytes
    body_tag: int
    body_head: bytes
    points: list[tuple[bytes, int]]  # attributes, and the column of the value


#: A metric and the numbers of each of its points; None: the point has no value.
_Filled = tuple[_Metric, Sequence[bytes | None]]


class EncodedPoll(NamedTuple):
    """ResourceMetrics of one poll, and the number of its data points."""

    content: bytes
    points: int


class ShapeMetrics:
    """The metrics of a shape of one target, to be filled with the values of a poll."""

    def __init__(
        self,
        outside: Iterable[OutsideSeries],
        shape: SeriesSet,
        resource: Labels,
        doubled: int = 0,
    ) -> None:
        self.doubled = doubled  # series that are not sent: they equal an earlier one in the store
        attributes: dict[int, bytes] = {}  # by identity of the labels
        metrics: dict[tuple[str, bool], _Metric] = {}
        kinds = shape.kinds
        for series in outside:
            if id(series.labels) not in attributes:
                attributes[id(series.labels)] = _attributes(_POINT_ATTRIBUTE, series.labels)
            is_sum = kinds[series.column] is Kind.COUNTER
            metric = metrics.get((series.name, is_sum))
            if metric is None:
                metric = metrics[series.name, is_sum] = _metric(series.name, is_sum)
            metric.points.append((attributes[id(series.labels)], series.column))
        self._metrics = list(metrics.values())
        self._head = delimited(_RESOURCE, _attributes(0x0A, resource))
        unknown = bytes(_TIMED.size)
        parts = self._parts([(metric, [unknown] * len(metric.points)) for metric in self._metrics])
        self._prefixes = [prefix for prefix, _ in parts]
        self._columns = [column for metric in self._metrics for _, column in metric.points]

    def encoded(
        self, values: Sequence[float], at_ms: int, starts: Mapping[int, int] = _NO_STARTS
    ) -> EncodedPoll:
        """Return the data points of a poll. NaN is no value; a start is an instant in ms."""
        if not starts and not isnan(sum(values)):
            return self._plain(values, at_ms)
        at_ns = at_ms * _NS
        found = []
        for metric in self._metrics:
            points = [
                _numbers(values[column], at_ns, starts.get(column)) for _, column in metric.points
            ]
            found.append((metric, points))
        return self._joined(found)

    def _plain(self, values: Sequence[float], at_ms: int) -> EncodedPoll:
        """Return the data points of a poll whose values are all known, without starts.

        All of these polls have the same length, so that only times and values are filled in.
        """
        time_and_tag = _TIME_AND_TAG.pack(0x19, at_ms * _NS, 0x21)
        packed = [each for (each,) in _EIGHT_BYTES.iter_unpack(pack(values))]
        pieces = [
            piece
            for prefix, column in zip(self._prefixes, self._columns, strict=True)
            for piece in (prefix, time_and_tag, packed[column])
        ]
        return EncodedPoll(b"".join(pieces), len(self._columns))

    def ended(self, at_ms: int) -> EncodedPoll:
        """Return data points that say that the series have no value from this instant on."""
        numbers = _ENDED.pack(0x19, at_ms * _NS, 0x40, 1)
        return self._joined([(metric, [numbers] * len(metric.points)) for metric in self._metrics])

    def _joined(self, found: Sequence[_Filled]) -> EncodedPoll:
        parts = self._parts(found)
        return EncodedPoll(b"".join([piece for part in parts for piece in part]), len(parts))

    def _parts(self, found: Sequence[_Filled]) -> list[tuple[bytes, bytes]]:
        """Return the bytes before the numbers of each point, and its numbers.

        Joined they are the whole message. Points without numbers are left out.
        """
        parts = []
        for metric, numbers in found:
            parts += _metric_parts(metric, numbers)
        if not parts:
            return []
        scope_length = len(_SCOPE_BYTES) + _length(parts)
        scope = b"%c%b%b" % (_SCOPE_METRICS, varint(scope_length), _SCOPE_BYTES)
        length = len(self._head) + len(scope) + _length(parts)
        resource = b"%c%b%b" % (_RESOURCE_METRICS, varint(length), self._head)
        first, of_first = parts[0]
        parts[0] = (resource + scope + first, of_first)
        return parts


def _metric_parts(metric: _Metric, numbers: Sequence[bytes | None]) -> list[tuple[bytes, bytes]]:
    parts = [
        (b"%c%b%b" % (_POINT, varint(len(attributes) + len(each)), attributes), each)
        for (attributes, _), each in zip(metric.points, numbers, strict=True)
        if each is not None
    ]
    if not parts:
        return []
    body_length = len(metric.body_head) + _length(parts)
    body = b"%c%b%b" % (metric.body_tag, varint(body_length), metric.body_head)
    length = len(metric.head) + len(body) + _length(parts)
    first, of_first = parts[0]
    heading = b"%c%b%b" % (_METRIC, varint(length), metric.head)
    parts[0] = (heading + body + first, of_first)
    return parts


def _length(parts: Sequence[tuple[bytes, bytes]]) -> int:
    return sum(len(prefix) + len(numbers) for prefix, numbers in parts)


def _numbers(value: float, at_ns: int, start_ms: int | None) -> bytes | None:
    if isnan(value):
        return None
    if start_ms is None:
        return _TIMED.pack(0x19, at_ns, 0x21, value)
    return _STARTED.pack(0x11, start_ms * _NS, 0x19, at_ns, 0x21, value)


def _metric(name: str, is_sum: bool) -> _Metric:
    head = text(_NAME, name)
    return _Metric(head, _SUM, _CUMULATIVE, []) if is_sum else _Metric(head, _GAUGE, b"", [])


def _attributes(tag: int, labels: Labels) -> bytes:
    """Return KeyValue fields with this tag."""
    encoded = []
    for name, value in labels:
        pair = text(0x0A, name) + delimited(0x12, text(0x0A, value))
        encoded.append(delimited(tag, pair))
    return b"".join(encoded)


_SCOPE_BYTES: Final = delimited(_SCOPE, text(0x0A, "poller"))
