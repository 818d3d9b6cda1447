"""The `otlp` sink against a receiver that reads requests with opentelemetry-proto."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import redis
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

from poller import errors
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.settings import Settings
from poller.sinks.api import Sample, Stores
from poller.sinks.metric_stores.otlp import OtlpOptions, OtlpSink
from tests.integration import store_storms
from tests.integration.store_storms import Drops
from tests.integration.web_servers import body_of, serving

AT_MS = 1_790_000_000_123
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


class Receiver:
    """Takes every request but those with a refused device; `answer` is its body."""

    def __init__(self) -> None:
        self.url = ""
        self.heads: list[bytes] = []
        self.points: list[tuple[str, str, int, Any]] = []  # device, metric, ms, point
        self.refused_device = ""
        self.answer = b""

    def __call__(self, head: bytes, connection: socket.socket) -> None:
        body = body_of(head, connection)
        self.heads.append(head.partition(b"\r\n\r\n")[0])
        if b"Content-Encoding: gzip" in head:
            body = gzip.decompress(body)
        points = list(_points(service.ExportMetricsServiceRequest.FromString(body)))
        if self.refused_device in {device for device, _, _, _ in points}:
            connection.sendall(b"HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nbad")
            return
        self.points += points
        length = f"Content-Length: {len(self.answer)}\r\n\r\n".encode()
        connection.sendall(OK + length + self.answer)


def _points(request: service.ExportMetricsServiceRequest) -> Iterator[tuple[str, str, int, Any]]:
    for resource in request.resource_metrics:
        device = resource.resource.attributes[1].value.string_value
        for metric in resource.scope_metrics[0].metrics:
            for point in (*metric.sum.data_points, *metric.gauge.data_points):
                yield device, metric.name, point.time_unix_nano // 1_000_000, point


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    with serving(receiver) as server:
        receiver.url = f"http://127.0.0.1:{server.port}"
        yield receiver


def sink(receiver: Receiver, drops: Drops | None = None, **options: Any) -> OtlpSink:
    stores = Stores(None, None, None, "otel", drops or Drops())
    return OtlpSink(stores, OtlpOptions(url=receiver.url, **options))


def test_polls_of_the_past_arrive_with_their_labels() -> None:
    """A data point has the time of its poll, however long it waited in a spool."""
    with receiving() as receiver:
        made = sink(receiver, gzip=True, exclude_metrics=["load"])
        made.write([store_storms.poll(target, AT_MS) for target in range(3)])
    assert [point[:3] for point in receiver.points] == [
        (f"r{target}", "octets_total", AT_MS) for target in range(3)
    ]
    labels = {pair.key: pair.value.string_value for pair in receiver.points[2][3].attributes}
    assert labels == {
        "collector": "storm", "device": "r2", "port": "1", "site": "ams", "target": "r2/storm",
    }  # fmt: skip
    assert receiver.heads[0].startswith(b"POST /v1/metrics HTTP/1.1")
    assert b"Content-Type: application/x-protobuf" in receiver.heads[0]


def test_requests_are_bounded() -> None:
    """A large write is several requests."""
    with receiving() as receiver:
        sink(receiver, max_points=5).write([store_storms.poll(1, AT_MS + at) for at in range(6)])
    assert len(receiver.heads) == 3
    assert len(receiver.points) == 12


def test_an_end_is_sent_as_no_recorded_value() -> None:
    """The end of a series has the flag of OTLP."""
    with receiving() as receiver:
        sink(receiver).write([replace(store_storms.poll(1, AT_MS), is_end=True)])
    assert [point.flags for *_, point in receiver.points] == [1, 1]


def test_one_refused_poll_costs_only_itself(drops: Drops) -> None:
    """A request that is refused as a whole is sent in halves, down to the bad poll."""
    with receiving() as receiver:
        receiver.refused_device = "r3"
        sink(receiver, drops).write([store_storms.poll(target, AT_MS) for target in range(6)])
    assert [device for device, *_ in receiver.points[::2]] == ["r0", "r1", "r2", "r4", "r5"]
    assert (drops.samples, drops.reasons) == (2, ["r3/storm: bad"])


def test_points_that_the_receiver_left_out_are_counted(drops: Drops) -> None:
    """A partial success is no reason to send anything again."""
    response = service.ExportMetricsServiceResponse()
    response.partial_success.rejected_data_points = 2
    response.partial_success.error_message = "too old"
    with receiving() as receiver:
        receiver.answer = response.SerializeToString()
        sink(receiver, drops).write([store_storms.poll(1, AT_MS)])
    assert (drops.samples, "too old" in drops.reasons[0]) == (2, True)


def test_a_receiver_that_is_away_is_named(free_port: int) -> None:
    """Polls wait in the spool."""
    receiver = Receiver()
    receiver.url = f"http://127.0.0.1:{free_port}"
    with pytest.raises(errors.StoreUnavailable, match=f"otel .*:{free_port}"):
        sink(receiver).write([store_storms.poll(1, AT_MS)])


def test_counters_have_their_start_where_uptime_proves_it(redis_client: redis.Redis) -> None:
    """The second poll of a device that did not restart has the start of the device."""
    target = store_storms.poll(1, AT_MS).target

    def poll(at_ms: int, uptime_cs: float) -> Sample:
        readings = ReadingSet.of(
            [
                Reading("sysUpTime", uptime_cs),
                Reading("ifInOctets", at_ms, {"ifIndex": "1"}, Kind.COUNTER, 64),
            ]
        )
        return Sample(target, at_ms, readings)

    with receiving() as receiver:
        stores = Stores(None, redis_client, Settings(), "otel")
        made = OtlpSink(stores, OtlpOptions(url=receiver.url, start_times=True))
        made.write([poll(AT_MS, 100_000)])
        made.write([poll(AT_MS + 60_000, 106_000)])
    starts = [
        point.start_time_unix_nano // 1_000_000
        for _, name, _, point in receiver.points
        if name == "ifInOctets"
    ]
    assert starts == [0, AT_MS - 1_000_000]
