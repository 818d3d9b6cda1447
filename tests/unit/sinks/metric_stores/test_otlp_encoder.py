"""Polls as OTLP, read back by the messages of opentelemetry-proto."""

from __future__ import annotations

import math
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
from opentelemetry.proto.metrics.v1 import metrics_pb2

from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.sinks.metric_stores import otlp_answers
from poller.sinks.metric_stores.otlp_encoder import EncodedPoll, ShapeMetrics
from poller.sinks.outside_series import OutsideSeries

AT_MS = 1_700_000_000_123
READINGS = ReadingSet.of(
    [
        Reading("ifInOctets", 10.0, {"port": "1"}, Kind.COUNTER, 64),
        Reading("temperature", 21.5, {"text": "é " * 100}),
        Reading("ifInOctets", 2.0**60, {"port": "2"}, Kind.COUNTER, 64),
        Reading("unknown", math.nan),
    ]
)


def metrics() -> ShapeMetrics:
    outside = [
        OutsideSeries(column, series.name, series.labels)
        for column, series in enumerate(READINGS.series.series)
    ]
    return ShapeMetrics(outside, READINGS.series, (("service.name", "poller"),))


def decoded(poll: EncodedPoll) -> Any:
    """Return the ResourceMetrics that opentelemetry-proto reads."""
    request = service.ExportMetricsServiceRequest.FromString(poll.content)
    (resource_metrics,) = request.resource_metrics
    return resource_metrics


def attributes(message: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in message.attributes}


def test_counters_are_sums_and_the_rest_gauges() -> None:
    """Points of one metric are together, with the labels of their series."""
    poll = metrics().encoded(READINGS.values, AT_MS, {0: AT_MS - 1000})
    resource = decoded(poll)
    assert attributes(resource.resource) == {"service.name": "poller"}
    octets, temperature = resource.scope_metrics[0].metrics
    assert (octets.name, temperature.name) == ("ifInOctets", "temperature")
    assert octets.sum.is_monotonic
    cumulative = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert octets.sum.aggregation_temporality == cumulative
    first, second = octets.sum.data_points
    assert (attributes(first), first.as_double) == ({"port": "1"}, 10.0)
    assert (attributes(second), second.as_double) == ({"port": "2"}, 2.0**60)
    assert first.time_unix_nano == AT_MS * 1_000_000
    assert (first.start_time_unix_nano, second.start_time_unix_nano) == (
        (AT_MS - 1000) * 1_000_000,
        0,
    )
    assert attributes(temperature.gauge.data_points[0]) == {"text": "é " * 100}
    assert poll.points == 3


def test_a_poll_of_known_values_has_the_same_bytes_the_short_way() -> None:
    """The bytes that are made once per shape are those of a message made as a whole."""
    values = [1.0, -2.5, 3e300, math.inf]
    made = metrics()
    long_way = made.encoded([*values[:3], math.nan], AT_MS)
    poll = made.encoded(values, AT_MS)
    octets, temperature, unknown = decoded(poll).scope_metrics[0].metrics
    assert [point.as_double for point in octets.sum.data_points] == [1.0, 3e300]
    assert temperature.gauge.data_points[0].as_double == -2.5
    assert unknown.gauge.data_points[0].as_double == math.inf
    assert poll.points == long_way.points + 1 == 4
    first_two = decoded(long_way).scope_metrics[0].metrics
    assert list(first_two) == [octets, temperature]


def test_an_end_has_no_recorded_value() -> None:
    """Every series of the shape ends with the flag of OTLP, and without a value."""
    resource = decoded(metrics().ended(AT_MS))
    points = [
        point
        for metric in resource.scope_metrics[0].metrics
        for point in (*metric.sum.data_points, *metric.gauge.data_points)
    ]
    assert len(points) == 4
    flag = metrics_pb2.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
    assert {point.flags for point in points} == {flag}
    assert {point.WhichOneof("value") for point in points} == {None}
    assert {point.time_unix_nano for point in points} == {AT_MS * 1_000_000}


def test_a_poll_without_values_is_empty() -> None:
    """Nothing is sent for a poll that found nothing."""
    values = [math.nan] * len(READINGS.values)
    assert metrics().encoded(values, AT_MS) == (b"", 0)


def test_a_partial_success_is_read() -> None:
    """A receiver says in protobuf or JSON how many points it left out."""
    response = service.ExportMetricsServiceResponse()
    response.partial_success.rejected_data_points = 300
    response.partial_success.error_message = "too old"
    assert otlp_answers.rejected(response.SerializeToString(), 400) == (300, "too old")
    text = b'{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "old"}}'
    assert otlp_answers.rejected(text, 400) == (3, "old")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"ok",
        b"{broken",
        b"\x0a\xff",
        b"\xff" * 20,
        b"[]",
        b'{"partialSuccess": {"rejectedDataPoints": Infinity}}',
        b'{"partialSuccess": {"rejectedDataPoints": -3}}',
        b'{"deep":' + b"[" * 60_000,
    ],
)
def test_any_other_answer_rejects_nothing(body: bytes) -> None:
    """The text of a receiver is never a reason to fail."""
    assert otlp_answers.rejected(body, 400) == (0, "")


def test_no_answer_rejects_more_than_was_sent() -> None:
    """A count that cannot be true is cut to the data points of the request; below zero is none."""
    text = b'{"partialSuccess": {"rejectedDataPoints": 1e300}}'
    assert otlp_answers.rejected(text, 400) == (400, "")
    below = b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01"  # -1
    assert otlp_answers.rejected(below, 400) == (0, "")
