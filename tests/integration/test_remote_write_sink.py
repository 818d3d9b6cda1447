"""The `remote_write` sink against Prometheus and VictoriaMetrics, and against a strict receiver."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from poller import errors
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.sinks.api import Sample, Stores
from poller.sinks.remote_write import RemoteWriteSink, write_client
from poller.sinks.remote_write.options import RemoteWriteOptions
from tests.integration import store_storms
from tests.integration.store_servers import Prometheus, VictoriaMetrics
from tests.integration.store_storms import Drops
from tests.remote_write_receiver import Answer, receiving, takes

#: Some minutes ago, so that every store takes it and shows it.
AT_MS = time.time_ns() // 1_000_000 - 600_000
HOUR_MS = 3_600_000


@pytest.fixture
def case(request: pytest.FixtureRequest) -> str:
    """A label that tells the series of one test from those of another."""
    return str(request.node.name).partition("[")[0]


def sink(url: str, drops: Drops | None = None, case: str = "", **options: Any) -> RemoteWriteSink:
    stores = Stores(None, None, None, "prom", drops or Drops())
    options = {"timeout_s": 0.5, **options}
    if case:
        options["labels"] = {"case": case}
    return RemoteWriteSink(stores, RemoteWriteOptions(url=url, **options))


def poll(*readings: Reading, target: int = 1, at_ms: int = AT_MS) -> Sample:
    storm = store_storms.poll(target, at_ms, "snmp")
    return Sample(storm.target, at_ms, ReadingSet.of(readings))


def gauges(count: int, **more: Any) -> Sample:
    return poll(
        *(Reading("g", float(number), {"n": str(number)}) for number in range(count)), **more
    )


def counted(written: list[tuple[int, int]]) -> Counter[tuple[str, str, int]]:
    """Return how often each series must have a sample: once for each poll of its target."""
    expected: Counter[tuple[str, str, int]] = Counter()
    for target, at_ms in written:
        for metric in ("octets_total", "load"):
            expected[metric, f"r{target}", at_ms] += 1
    return expected


def found(samples: Counter[tuple[str, int]]) -> Counter[tuple[str, str, int]]:
    result: Counter[tuple[str, str, int]] = Counter()
    for (text, at_ms), times in samples.items():
        labels = json.loads(text)
        result[labels["__name__"], labels["device"], at_ms] += times
    return result


@pytest.fixture(params=["prometheus", "victoria"])
def store(
    request: pytest.FixtureRequest, prometheus: Prometheus, victoria: VictoriaMetrics
) -> Prometheus | VictoriaMetrics:
    return prometheus if request.param == "prometheus" else victoria


def test_every_sample_arrives_once_through_kills_freezes_and_restarts(
    store: Prometheus | VictoriaMetrics, drops: Drops, case: str, tmp_path: Path
) -> None:
    """The store counts one sample for each poll and series, however often it was away.

    VictoriaMetrics is not killed: it answers before the last seconds are on its disk.
    """
    made = sink(f"{store.url}/api/v1/write", drops, case)
    faults = [store_storms.frozen, store_storms.restarted]
    if isinstance(store, Prometheus):
        faults.insert(0, store_storms.killed)
    written = store_storms.ride_out(made, tmp_path, store, *faults)
    assert found(store.samples(f'{{case="{case}"}}')) == counted(written)
    assert drops.reasons == []


def test_a_stock_prometheus_has_every_sample_once(
    stock_prometheus: Prometheus, drops: Drops, case: str, tmp_path: Path
) -> None:
    """Without an out-of-order window a repeated sample is refused: it is there, and it is said."""
    made = sink(f"{stock_prometheus.url}/api/v1/write", drops, case)
    written = store_storms.ride_out(
        made, tmp_path, stock_prometheus, store_storms.killed, store_storms.frozen
    )
    assert found(stock_prometheus.samples(f'{{case="{case}"}}')) == counted(written)
    assert all("it may be in the store" in reason for reason in drops.reasons)


def test_one_refused_series_costs_only_itself_and_is_named(
    stock_prometheus: Prometheus, drops: Drops, case: str
) -> None:
    """A series with a newer sample is left out, and the others of the request are stored."""
    made = sink(f"{stock_prometheus.url}/api/v1/write", drops, case)
    now_ms = time.time_ns() // 1_000_000
    bad = Reading("g", 1.0, {"n": "37"})
    made.write([poll(bad, at_ms=now_ms)])
    made.write([gauges(60, at_ms=now_ms - 1), gauges(60, at_ms=now_ms - 1, target=2)])

    assert len(stock_prometheus.samples(f'{{case="{case}",device="r1"}}')) == 60
    assert len(stock_prometheus.samples(f'{{case="{case}",device="r2"}}')) == 60
    assert drops.samples == 1
    assert 'n="37"' in drops.reasons[0]
    assert "out of order sample" in drops.reasons[0]


def test_a_sample_beyond_the_window_is_dropped_and_not_sent_for_ever(
    prometheus: Prometheus, drops: Drops, case: str
) -> None:
    """Prometheus 2.42 answers with 500 to a sample that is too old; its series is named."""
    made = sink(f"{prometheus.url}/api/v1/write", drops, case)
    made.write([gauges(3)])
    made.write([gauges(3, at_ms=AT_MS - 48 * HOUR_MS), gauges(3, target=2)])
    assert drops.samples == 3
    assert "too old" in drops.reasons[0]
    assert len(prometheus.samples(f'{{case="{case}"}}')) == 6


def test_an_end_makes_a_series_stale_and_a_plain_nan_does_not(
    store: Prometheus | VictoriaMetrics, case: str
) -> None:
    """An ended series is gone from instant queries at once, not after five minutes."""
    made = sink(f"{store.url}/api/v1/write", case=case)
    first = poll(Reading("kept", 1.0), Reading("ended", 1.0))
    ended = poll(Reading("ended", 1.0))
    made.write([first, Sample.end_of(first.target, AT_MS + 1000, ended.readings.series)])
    shown = [
        series["metric"]["__name__"]
        for series in _instant(store, f'{{case="{case}"}}', AT_MS + 2000)
    ]
    assert shown == ["kept"]


def _instant(store: Prometheus | VictoriaMetrics, expression: str, at_ms: int) -> list[Any]:
    if isinstance(store, Prometheus):
        return store.query(expression, at_ms)
    store.ask("/internal/force_flush")
    answer = store.ask("/api/v1/query", query=expression, time=f"{at_ms / 1000:.3f}")
    return list(json.loads(answer)["data"]["result"])


def test_a_store_without_version_2_gets_version_1(
    store: Prometheus | VictoriaMetrics, case: str
) -> None:
    """Both stores take a request of 2.0 for an empty one; the samples are there all the same."""
    made = sink(f"{store.url}/api/v1/write", case=case, protocol="2.0")
    made.write([gauges(5)])
    assert len(store.samples(f'{{case="{case}"}}')) == 5
    assert made.check() == "remote write 1.0, status 204"


def test_version_2_carries_kinds_and_counts_what_was_written(drops: Drops) -> None:
    """A receiver of 2.0 gets symbols and kinds; samples that it says it left out are counted."""
    with receiving() as receiver:
        made = sink(receiver.url, drops, protocol="2.0")
        made.write([poll(Reading("c", 1.0, kind=Kind.COUNTER), Reading("g", 2.0))])
        assert [(each.name, each.kind) for each in receiver.samples] == [("c", 1), ("g", 2)]
        assert drops.samples == 0

        receiver.answering = lambda _: Answer(
            headers={"X-Prometheus-Remote-Write-Samples-Written": "3"}
        )
        made.write([gauges(5)])
        assert (drops.samples, drops.reasons) == (
            2,
            ["the store says that it wrote 3 of 5 samples"],
        )
        assert {request.version for request in receiver.requests} == {"2.0"}


@pytest.mark.parametrize("answer", [Answer(415), Answer(400, "snappy"), Answer(204)])
def test_a_receiver_that_does_not_know_version_2_is_asked_again_later(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """415, 400 and a success that says nothing lead to 1.0; nothing is lost or dropped."""
    drops = Drops()
    with receiving(lambda sent: answer if sent.version == "2.0" else Answer()) as receiver:
        made = sink(receiver.url, drops, protocol="2.0")
        made.write([gauges(2)])
        made.write([gauges(2, at_ms=AT_MS + 1)])
        assert [request.version for request in receiver.requests] == ["2.0", "1.0", "1.0"]

        receiver.answering = takes
        later_mono = time.monotonic() + write_client.RETRY_V2_S
        monkeypatch.setattr(write_client.time, "monotonic", lambda: later_mono)
        made.write([gauges(2, at_ms=AT_MS + 2)])
        assert receiver.requests[-1].version == "2.0"
    assert drops.samples == 0


@pytest.mark.parametrize(
    ("answer", "hint", "retry_after_s"),
    [
        (Answer(429, headers={"Retry-After": "7"}), "", 7.0),
        (Answer(503, "overloaded"), "", None),
        (Answer(401), "password_file", None),
        (Answer(404), "check the url", None),
        (Answer(302, headers={"Location": "http://192.0.2.1/"}), "redirect", None),
    ],
)
def test_nothing_is_dropped_while_the_store_does_not_take_samples(
    answer: Answer, hint: str, retry_after_s: float | None
) -> None:
    """The samples wait in the spool: for the time that the store asks for, or for a person."""
    drops = Drops()
    with receiving(lambda _: answer) as receiver:
        made = sink(receiver.url, drops)
        with pytest.raises(errors.StoreUnavailable) as raised:
            made.write([gauges(2)])
        assert hint in raised.value.hint
        assert raised.value.retry_after_s == retry_after_s
        assert len(receiver.requests) == 1
    assert drops.samples == 0


def test_what_was_sent_before_an_outage_is_not_sent_again() -> None:
    """After an outage in the middle of a call, only the rest of its polls follows."""
    with receiving() as receiver:
        made = sink(receiver.url, max_samples=10)
        receiver.answering = lambda _: Answer(503 if len(receiver.requests) == 3 else 204)
        polls = [gauges(10, target=target) for target in range(5)]
        with pytest.raises(errors.StoreUnavailable):
            made.write(polls)
        made.write(polls)
        devices = [dict(request.samples[0].labels)["device"] for request in receiver.requests]
    assert devices == ["r0", "r1", "r2", "r2", "r3", "r4"]


def test_samples_beyond_the_age_limit_are_dropped_and_counted(drops: Drops) -> None:
    """An old poll is not sent, a young one is."""
    with receiving() as receiver:
        made = sink(receiver.url, drops, max_age="1h")
        made.write([gauges(3, at_ms=AT_MS - HOUR_MS), gauges(3)])
        assert [each.at_ms for each in receiver.samples] == [AT_MS] * 3
    assert drops.samples == 3
    assert 'g{collector="snmp"' in drops.reasons[0]
    assert "older than max_age" in drops.reasons[0]


def test_series_that_become_one_in_the_store_are_counted(drops: Drops) -> None:
    """Two series that differ in a dropped label only: the first is sent, the other is said."""
    with receiving() as receiver:
        sink(receiver.url, drops, drop_labels=["n"]).write([gauges(3)])
        assert [each.value for each in receiver.samples] == [0.0]
    assert drops.samples == 2
    assert "same name and labels" in drops.reasons[0]


def test_login_headers_and_labels_are_sent(tmp_path: Path) -> None:
    """Token, tenant and the mapping of labels are in every request."""
    token = tmp_path / "token"
    token.write_text("t0ken\n")
    options = {
        "bearer_token_file": token,
        "headers": {"X-Scope-OrgID": "net"},
        "label_names": {"device": "instance", "target": "", "collector": "job"},
        "labels": {"env": "lab"},
    }
    with receiving() as receiver:
        sink(receiver.url, **options).write([poll(Reading("up", 1.0))])
        request = receiver.requests[0]
    assert request.headers["authorization"] == "Bearer t0ken"
    assert request.headers["x-scope-orgid"] == "net"
    assert dict(request.samples[0].labels) == {
        "__name__": "up",
        "env": "lab",
        "instance": "r1",
        "job": "snmp",
        "site": "ams",
    }
