"""PostgreSQL that takes connections and statements and never answers, as a frozen one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import answer_limit, engine, migrate
from poller.db.history import polls_of_span
from poller.settings import Settings
from poller.sinks.api import Sample, Stores
from poller.sinks.made_sink import MadeSink
from poller.sinks.sql import SqlSink
from poller.testing import sink_conformance
from poller.testing.sink_conformance import TARGET
from poller.testing.store_relay import StoreRelay
from poller.workers.results.writers import Writers
from tests.conftest import wait_until

LIMIT_S = 0.5
PATIENCE_S = 0.2


class Memory:
    """A sink that always works."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def write(self, samples: list[Sample]) -> None:
        self.samples += samples

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def relay(fresh_postgres_url: str) -> Iterator[StoreRelay]:
    with StoreRelay(urlsplit(fresh_postgres_url).port or 5432) as made:
        yield made


@pytest.fixture
def relayed(
    fresh_postgres_url: str, relay: StoreRelay, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Engine]:
    """An engine on a database behind the relay. A new connection is given up after 2 s."""
    monkeypatch.setattr(engine, "CONNECT_TIMEOUT_S", 2)
    monkeypatch.setattr(answer_limit, "WRITE_ANSWER_S", LIMIT_S)
    port = urlsplit(fresh_postgres_url).port
    made = engine.create(fresh_postgres_url.replace(f":{port}/", f":{relay.port}/"))
    migrate.upgrade(made)
    yield made
    made.dispose()


def test_a_statement_without_an_answer_ends_with_its_connection(
    relayed: Engine, relay: StoreRelay
) -> None:
    """The limit holds for its own thread and block only, and the next statement is well."""

    def fall_silent() -> None:
        with answer_limit.answers_within(LIMIT_S), engine.writing(relayed) as conn:
            conn.execute(sa.text("SELECT 1"))
            relay.slow()
            conn.execute(sa.text("SELECT 2"))

    started_mono = time.monotonic()
    with pytest.raises(errors.StoreUnavailable) as raised:
        fall_silent()
    assert LIMIT_S <= time.monotonic() - started_mono < LIMIT_S + 5
    assert raised.value.cause == f"no answer within {LIMIT_S} s"
    relay.recover()
    with engine.writing(relayed) as conn:
        slow = conn.execute(sa.text(f"SELECT 3 FROM pg_sleep({LIMIT_S * 2})"))
        assert slow.scalar() == 3


def test_readings_wait_on_disk_and_other_sinks_go_on(
    relayed: Engine, relay: StoreRelay, tmp_path: Path
) -> None:
    """The write ends while the server is silent; when it is back, every poll is stored once."""
    memory: Any = Memory()
    sinks = [
        MadeSink("sql", "sql", SqlSink(Stores(relayed, None, None))),
        MadeSink("memory", "memory", memory),
    ]
    settings = Settings(home=tmp_path, spool_patience_s=PATIENCE_S)
    writers = Writers(relayed, sinks, settings, "w@test")
    polls = sink_conformance.samples(number=4)
    writers.write_readings(polls[:1])
    relay.slow()
    for poll in polls[1:]:
        writers.write_readings([poll])
    assert memory.samples == polls

    wait_until(lambda: "cannot use the database" in _error(writers), "the end of a write")
    relay.recover()
    wait_until(lambda: writers.waiting == 0, "an empty spool")
    stored = polls_of_span.between(relayed, TARGET.id, 0, 2**62)
    assert sorted(each.at_ms for each in stored) == sorted(poll.at_ms for poll in polls)
    writers.close(1.0)


def _error(writers: Writers) -> str:
    """The last error of the sql sink."""
    report = writers.sink_reports(time.time_ns() // 1_000_000)[0]
    return report.error
