"""Polls as OTLP metrics (protobuf): a counter is a cumulative sum, all else a gauge.

Attributes of a series are encoded once per target and shape; a data point is these bytes, two or
three numbers of fixed size, and its length.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any, Final, NamedTuple

from poller.domain.metrics.reading import Kind, Labels, SeriesSet
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
_NS: Final = 1_000_000
_NO_STARTS: Mapping[int, int] = {}


class _Metric(NamedTuple):
    """One metric of a shape: its bytes before the points, and its points without numbers."""

    head: bytes
    body_tag: int
    body_head: bytes
    points: list[tuple[bytes, int]]  # attributes, and the column of the value


class EncodedPoll(NamedTuple):
    """ResourceMetrics of one poll, and the number of its data points."""

    content: bytes
    points: int


class ShapeMetrics:
    """The metrics of a shape of one target, to be filled with the values of a poll."""

    def __init__(
        self, outside: Iterable[OutsideSeries], shape: SeriesSet, resource: Labels
    ) -> None:
        attributes: dict[int, bytes] = {}  # by identity of the labels
        metrics: dict[tuple[str, bool], _Metric] = {}
        for series in outside:
            if id(series.labels) not in attributes:
                attributes[id(series.labels)] = _attributes(_POINT_ATTRIBUTE, series.labels)
            is_sum = shape.series[series.column].kind is Kind.COUNTER
            metric = metrics.get((series.name, is_sum))
            if metric is None:
                metric = metrics[series.name, is_sum] = _metric(series.name, is_sum)
            metric.points.append((attributes[id(series.labels)], series.column))
        self._metrics = list(metrics.values())
        self._head = delimited(_RESOURCE, _attributes(0x0A, resource))

    def encoded(
        self, values: Sequence[float], at_ms: int, starts: Mapping[int, int] = _NO_STARTS
    ) -> EncodedPoll:
        """Return the data points of a poll. NaN is no value; a start is an instant in ms."""
        at_ns = at_ms * _NS
        timed = _TIMED.pack

        def point(column: int) -> bytes:
            start_ms = starts.get(column)
            if start_ms is None:
                return timed(0x19, at_ns, 0x21, values[column])
            return _STARTED.pack(0x11, start_ms * _NS, 0x19, at_ns, 0x21, values[column])

        found = []
        for metric in self._metrics:
            known = [
                (attributes, point(column))
                for attributes, column in metric.points
                if not isnan(values[column])
            ]
            found.append((metric, known))
        return self._joined(found)

    def ended(self, at_ms: int) -> EncodedPoll:
        """Return data points that say that the series have no value from this instant on."""
        numbers = _ENDED.pack(0x19, at_ms * _NS, 0x40, 1)
        found = [
            (metric, [(attributes, numbers) for attributes, _ in metric.points])
            for metric in self._metrics
        ]
        return self._joined(found)

    def _joined(self, found: list[tuple[_Metric, list[tuple[bytes, bytes]]]]) -> EncodedPoll:
        metrics = []
        number = 0
        for metric, points in found:
            if not points:
                continue
            number += len(points)
            body = metric.body_head + b"".join(
                [
                    b"\x0a%b%b%b" % (varint(len(attributes) + len(numbers)), attributes, numbers)
                    for attributes, numbers in points
                ]
            )
            content = metric.head + delimited(metric.body_tag, body)
            metrics.append(delimited(_METRIC, content))
        if not number:
            return EncodedPoll(b"", 0)
        scope = _SCOPE_BYTES + b"".join(metrics)
        content = self._head + delimited(_SCOPE_METRICS, scope)
        return EncodedPoll(delimited(_RESOURCE_METRICS, content), number)


def rejected(body: bytes) -> tuple[int, str]:
    """Return how many data points a receiver left out of a good request, and why.

    The body is an ExportMetricsServiceResponse in protobuf or JSON; any other text is ignored.
    """
    if body.lstrip()[:1] == b"{":
        return _rejected_json(body)
    partial = _fields(body).get(1)
    if not isinstance(partial, bytes):
        return 0, ""
    fields = _fields(partial)
    points, message = fields.get(1, 0), fields.get(2, b"")
    if not isinstance(points, int) or not isinstance(message, bytes):
        return 0, ""
    return points, message.decode("utf-8", "replace")


def _rejected_json(body: bytes) -> tuple[int, str]:
    try:
        partial = json.loads(body).get("partialSuccess") or {}
        return int(partial.get("rejectedDataPoints") or 0), str(partial.get("errorMessage") or "")
    except (ValueError, AttributeError, TypeError):
        return 0, ""


def _fields(message: bytes) -> dict[int, Any]:
    """Return the varints and texts of a message by their numbers; {} for what is no message."""
    found: dict[int, Any] = {}
    at = 0
    try:
        while at < len(message):
            tag, at = _varint(message, at)
            number, at = _varint(message, at)
            if tag & 7 == 2:
                found[tag >> 3] = message[at : at + number]
                at += number
            elif tag & 7 == 0:
                found[tag >> 3] = number
            else:
                return {}
    except IndexError:
        return {}
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise IndexError


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
