"""The `influx` sink against InfluxDB and VictoriaMetrics."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poller import errors
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.sinks.api import Sample, Stores
from poller.sinks.metric_stores.influx import InfluxOptions, InfluxSink
from tests.integration import store_storms
from tests.integration.store_servers import Influxdb, VictoriaMetrics
from tests.integration.store_storms import Drops
from tests.integration.web_servers import body_of, saying, serving

AT_MS = 1_790_000_000_123


@pytest.fixture(scope="session")
def influxdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxdb]:
    server = Influxdb(tmp_path_factory.mktemp("influxdb"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def database(influxdb: Influxdb, request: pytest.FixtureRequest) -> str:
    name = request.node.name[:60]
    influxdb.run(f'CREATE DATABASE "{name}"')
    return name


def sink(url: str, drops: Drops | None = None, **options: Any) -> InfluxSink:
    stores = Stores(None, None, None, "lines", drops or Drops())
    return InfluxSink(stores, InfluxOptions(url=url, **options))


def poll(*readings: Reading, target: int = 1, at_ms: int = AT_MS) -> Sample:
    storm = store_storms.poll(target, at_ms, "snmp")
    return Sample(storm.target, at_ms, ReadingSet.of(readings))


def test_influxdb_has_every_poll_once_through_kills_freezes_and_restarts(
    influxdb: Influxdb, database: str, tmp_path: Path
) -> None:
    """InfluxDB counts one point for each poll, however often the server was away."""
    made = sink(influxdb.url, database=database, timeout_s=0.5)
    written = store_storms.ride_out(
        made, tmp_path, influxdb, store_storms.killed, store_storms.frozen, store_storms.restarted
    )
    rows = influxdb.rows(database, "SELECT octets_total FROM storm GROUP BY *")
    stored = Counter((int(row["device"][1:]), row["time"]) for row in rows)
    assert stored == Counter(written)
    assert all(row["octets_total"] == row["time"] for row in rows)


def test_victoria_metrics_has_every_poll_once_through_freezes_and_restarts(
    victoria: VictoriaMetrics, tmp_path: Path
) -> None:
    """VictoriaMetrics with de-duplication counts one sample for each poll.

    A killed VictoriaMetrics loses what it acknowledged in its last seconds: no sink can help that.
    """
    made = sink(victoria.url, timeout_s=0.5)
    written = store_storms.ride_out(
        made, tmp_path, victoria, store_storms.frozen, store_storms.restarted
    )
    for metric in ("storm_octets_total", "storm_load"):
        stored = Counter(at_ms for _, at_ms in victoria.samples(metric).elements())
        assert stored == Counter(at_ms for _, at_ms in written)


NASTY = [
    "plain",
    "a b,c=d",
    'quo"te',
    r"C:\dir\new",
    "ütf ☃ 🛰",
    "#hash",
    "100%s %d",
    " leading",
    "trailing ",
]


def test_texts_come_back_as_they_were(
    influxdb: Influxdb, victoria: VictoriaMetrics, database: str
) -> None:
    """Texts of labels with delimiters, quotes and backslashes are the same in both stores."""
    readings = [Reading("nasty", 1.0, {"text": text}) for text in NASTY]
    sink(influxdb.url, database=database, gzip=True).write([poll(*readings)])
    sink(f"{victoria.url}/influx", bucket="any", org="any").write([poll(*readings)])

    rows = influxdb.rows(database, "SELECT nasty FROM snmp GROUP BY *")
    assert sorted(row["text"] for row in rows) == sorted(NASTY)
    found = victoria.labels("snmp_nasty")
    assert sorted(labels["text"] for labels in found) == sorted(NASTY)
    assert {labels["device"] for labels in found} == {"r1"}


def test_the_layout_metric_has_a_measurement_for_each_metric(
    influxdb: Influxdb, database: str
) -> None:
    """Counters can be integers, and filters and names of labels hold here, too."""
    made = sink(
        influxdb.url,
        database=database,
        layout="metric",
        counters="integer",
        exclude_metrics=["load"],
        label_names={"device": "host", "target": "", "collector": ""},
        labels={"env": "lab"},
    )
    made.write([store_storms.poll(3, AT_MS)])
    (row,) = influxdb.rows(database, "SELECT value FROM /.*/ GROUP BY *")
    assert row == {
        "env": "lab", "host": "r3", "port": "1", "site": "ams", "time": AT_MS, "value": AT_MS,
    }  # fmt: skip
    assert type(row["value"]) is int


def test_points_that_influxdb_drops_are_counted_and_not_repeated(
    influxdb: Influxdb, database: str, drops: Drops
) -> None:
    """A partial write is a success with a loss: InfluxDB says how many and why."""
    sink(influxdb.url, database=database, counters="integer").write([store_storms.poll(1, AT_MS)])
    polls = [store_storms.poll(target, AT_MS + 1) for target in (1, 2)]
    sink(influxdb.url, drops, database=database).write(polls)
    assert drops.samples == 2
    assert "field type conflict" in drops.reasons[0]


def test_one_refused_line_costs_only_itself(drops: Drops) -> None:
    """A store that refuses a request as a whole gets its halves, down to the bad line."""
    taken: list[bytes] = []

    def script(head: bytes, connection: socket.socket) -> None:
        body = body_of(head, connection)
        if b"port=4" in body:
            connection.sendall(b"HTTP/1.1 400 No\r\nContent-Length: 9\r\n\r\nport four")
        else:
            taken.extend(body.split(b"\n"))
            connection.sendall(b"HTTP/1.1 204 Ok\r\nConnection: close\r\n\r\n")

    with serving(script) as server:
        readings = [Reading(name, 1.0, {"port": str(port)}) for port in range(9) for name in "xy"]
        sink(f"http://127.0.0.1:{server.port}", drops).write([poll(*readings)])
    assert [int(line.split(b"port=")[1][:1]) for line in taken] == [0, 1, 2, 3, 5, 6, 7, 8]
    assert (drops.samples, drops.reasons[0][-9:]) == (2, "port four")
    assert "port=4" in drops.reasons[0]


@pytest.mark.parametrize(
    ("options", "hint"),
    [({"database": "absent"}, "CREATE DATABASE"), ({}, "give the sink a database")],
)
def test_a_missing_database_is_an_outage_with_a_hint(
    influxdb: Influxdb, options: dict[str, Any], hint: str
) -> None:
    """Polls wait in the spool until the operator has created the database."""
    with pytest.raises(errors.StoreUnavailable) as raised:
        sink(influxdb.url, **options).write([store_storms.poll(1, AT_MS)])
    assert hint in raised.value.hint


def test_a_busy_store_says_when_to_come_again() -> None:
    """Retry-After of a 503 reaches the writer."""
    with serving(saying("HTTP/1.1 503 Busy\r\nRetry-After: 3")) as server:
        made = sink(f"http://127.0.0.1:{server.port}")
        with pytest.raises(errors.StoreUnavailable) as raised:
            made.write([store_storms.poll(1, AT_MS)])
    assert raised.value.retry_after_s == 3.0


def test_requests_are_bounded_and_carry_the_token_of_version_2(tmp_path: Path) -> None:
    """A large write is several requests; InfluxDB 2 gets its path and its kind of token."""
    (tmp_path / "token").write_text("abc")
    with serving(saying("HTTP/1.1 204 No Content")) as server:
        url = f"http://127.0.0.1:{server.port}"
        made = sink(
            url, org="net ops", bucket="b", bearer_token_file=tmp_path / "token", max_lines=3
        )
        made.write([store_storms.poll(target, AT_MS) for target in range(7)])
    assert len(server.requests) == 3
    head = server.requests[0].decode()
    assert head.startswith("POST /api/v2/write?org=net+ops&bucket=b&precision=ms HTTP/1.1\r\n")
    assert "Authorization: Token abc\r\n" in head


def test_check_names_the_store(influxdb: Influxdb) -> None:
    """`poller sinks test` shows what the store is."""
    assert "InfluxDB 1." in sink(influxdb.url).check()
