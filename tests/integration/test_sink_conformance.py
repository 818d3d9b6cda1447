"""The conformance suite for sinks: the built-in sinks pass, and each broken one fails with
advice.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from poller import errors
from poller.db import answer_limit, engine, migrate
from poller.db.history import polls_of_span
from poller.domain.inventory.poll_target import PollTarget
from poller.sinks.api import Sample, Stores
from poller.sinks.bus.stream import StreamSink
from poller.sinks.metric_stores.influx import InfluxSink
from poller.sinks.metric_stores.otlp import OtlpSink
from poller.sinks.remote_write import RemoteWriteSink
from poller.sinks.sql import SqlSink
from poller.state import redis_client
from poller.testing import sink_conformance
from poller.testing.fake_http_store import FakeHttpStore
from poller.testing.sink_conformance import TARGET
from poller.testing.store_relay import StoreRelay


class Database:
    """The database of the current test of the suite."""

    engine: Any = None


@contextmanager
def database() -> Iterator[Stores]:
    with TemporaryDirectory() as directory:
        Database.engine = engine.create(f"sqlite:///{Path(directory) / 'poller.db'}")
        migrate.upgrade(Database.engine)
        yield Stores(Database.engine, None, None)
        Database.engine.dispose()


TestSql = sink_conformance.suite(
    SqlSink, database, lambda: polls_of_span.between(Database.engine, TARGET.id, 0, 2**62)
)


class WithHttpStore:
    """The store of the current test of a suite."""

    store: FakeHttpStore

    @classmethod
    @contextmanager
    def stores(cls) -> Iterator[Stores]:
        with FakeHttpStore() as cls.store:
            yield Stores(None, None, None)

    @classmethod
    def options(cls) -> dict[str, Any]:
        return {"url": cls.store.url + "/write", "timeout_s": 0.5}

    @classmethod
    def suite(cls, sink: Any) -> type:
        return sink_conformance.suite(
            sink,
            cls.stores,
            lambda: cls.store.bodies,
            options=cls.options,
            faults=lambda: cls.store,
        )


TestRemoteWrite = WithHttpStore.suite(RemoteWriteSink)
TestInflux = WithHttpStore.suite(InfluxSink)
TestOtlp = WithHttpStore.suite(OtlpSink)


class WithValkey:
    """A relay to the Valkey of the tests, which fails on demand; and its stream."""

    url = ""
    relay: StoreRelay

    @pytest.fixture(autouse=True)
    def _server(self, valkey_url: str, redis_client: redis.Redis) -> None:
        WithValkey.url = valkey_url

    @classmethod
    @contextmanager
    def stores(cls) -> Iterator[Stores]:
        port = urlsplit(cls.url).port or 6379
        with StoreRelay(port) as cls.relay:
            database = urlsplit(cls.url).path
            client = redis_client.connect(f"redis://127.0.0.1:{cls.relay.port}{database}")
            settings = SimpleNamespace(key_prefix="poller:", stream_length=10_000)
            yield Stores(None, client, settings)
            client.close()

    @classmethod
    def stored(cls) -> list[Any]:
        found: Any = redis.Redis.from_url(cls.url).xrange("poller:readings:conformance")
        return list(found)


class TestStream(
    WithValkey,
    sink_conformance.suite(  # type: ignore[misc]
        StreamSink,
        WithValkey.stores,
        WithValkey.stored,
        faults=lambda: WithValkey.relay,
        once=False,
    ),
):
    """A stream cannot tell a repetition: a lost answer makes its entries come twice."""


class WithPostgres:
    """A relay to the PostgreSQL of the tests, which fails on demand; and its readings."""

    url = ""
    relay: StoreRelay
    direct: Any = None

    @pytest.fixture(autouse=True)
    def _server(self, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(answer_limit, "WRITE_ANSWER_S", 0.5)
        monkeypatch.setattr(engine, "CONNECT_TIMEOUT_S", 2)
        WithPostgres.url = fresh_postgres_url
        WithPostgres.direct = engine.create(fresh_postgres_url)
        migrate.upgrade(WithPostgres.direct)
        yield
        WithPostgres.direct.dispose()

    @classmethod
    @contextmanager
    def stores(cls) -> Iterator[Stores]:
        port = urlsplit(cls.url).port or 5432
        with StoreRelay(port) as cls.relay:
            made = engine.create(cls.url.replace(f":{port}/", f":{cls.relay.port}/"))
            yield Stores(made, None, None)
            made.dispose()

    @classmethod
    def stored(cls) -> Collection[Any]:
        return polls_of_span.between(cls.direct, TARGET.id, 0, 2**62)


class TestSqlOnPostgres(
    WithPostgres,
    sink_conformance.suite(  # type: ignore[misc]
        SqlSink, WithPostgres.stores, WithPostgres.stored, faults=lambda: WithPostgres.relay
    ),
):
    """A reading is identified by target, time and series: a repetition changes nothing."""


class Good:
    name = "good"
    api_version: Any = 1
    store: dict[Any, Any]

    def __init__(self, stores: Stores) -> None:
        type(self).store = {}

    def write(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            self.put((sample.target.id, sample.at_ms), sample.readings)

    def put(self, key: Any, value: Any) -> None:
        self.store[key] = value

    def close(self) -> None:
        """Nothing to close."""


class Doubling(Good):
    def put(self, key: Any, value: Any) -> None:
        self.store[len(self.store)] = value


class Losing(Good):
    def put(self, key: Any, value: Any) -> None:
        """Nowhere."""


class Choosy(Good):
    def put(self, key: Any, value: Any) -> None:
        raise KeyError(key)


class OfAnotherTime(Good):
    api_version = 7


class Ending(Good):
    """A sink that takes ends, as an author would write one."""

    takes_ends = True

    def target_labels(self, target: PollTarget) -> Any:
        return target.device, target.site


class Deaf(Ending):
    """Wants ends, and does nothing with them."""

    def write(self, samples: Sequence[Sample]) -> None:
        super().write([sample for sample in samples if not sample.is_end])


class Surprised(Ending):
    """Takes every value for a number of something."""

    def write(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            if sample.is_end:
                int(sample.readings.values[0])
        super().write(samples)


class Restless(Ending):
    """Ends all series at every edit of a target."""

    def target_labels(self, target: PollTarget) -> Any:
        return target.device, target.version


class Listing(Ending):
    """States labels that cannot be compared by their hash."""

    def target_labels(self, target: PollTarget) -> Any:
        return [target.device]


class Store(Good):
    """A sink with a store in memory that fails on demand, as an author would write one."""

    fault = ""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores)
        self.stores = stores

    def write(self, samples: Sequence[Sample]) -> None:
        if self.fault in ("down", "slow", "cut_request"):
            raise errors.StoreUnavailable("away")
        if self.fault == "busy":
            raise errors.StoreUnavailable("busy", retry_after_s=7)
        if self.fault == "refuse":
            self.stores.dropped(len(samples), "not acceptable: up{}")
            return
        super().write(samples)
        if self.fault == "lose_answer":
            raise errors.StoreUnavailable("cut off")


class Optimistic(Store):
    """Says that all is well although the store is down."""

    def write(self, samples: Sequence[Sample]) -> None:
        with suppress(errors.StoreUnavailable):
            super().write(samples)


class Patient(Store):
    """Lets refused samples wait for ever."""

    def write(self, samples: Sequence[Sample]) -> None:
        if self.fault == "refuse":
            raise errors.StoreUnavailable("400")
        super().write(samples)


class Silent(Store):
    """Leaves refused samples out, and tells nobody."""

    def write(self, samples: Sequence[Sample]) -> None:
        if self.fault != "refuse":
            super().write(samples)


class Hasty(Store):
    """Calls an outage a refusal, and forgets when the store wants to be asked again."""

    def write(self, samples: Sequence[Sample]) -> None:
        try:
            super().write(samples)
        except errors.StoreUnavailable as error:
            kind = errors.StoreUnavailable if self.fault == "busy" else errors.StoreError
            raise kind(error.message) from None


class Switch:
    """The faults of a `Store`."""

    def __init__(self, sink: type[Store]) -> None:
        self._sink = sink

    def __getattr__(self, fault: str) -> Any:
        return lambda: setattr(self._sink, "fault", "" if fault == "recover" else fault)


def failures(sink: Any) -> dict[str, str]:
    faults: Any = (lambda: Switch(sink)) if issubclass(sink, Store) else None
    suite: Any = sink_conformance.suite(
        sink, lambda: nullcontext(Stores(None, None, None)), lambda: sink.store, faults=faults
    )
    said = {}
    for name in [name for name in vars(suite) if name.startswith("test_")]:
        made = contextmanager(inspect.unwrap(suite.made))(suite())
        try:
            with made as sink_made:
                getattr(suite(), name)(*(() if name == "test_contract" else (sink_made,)))
        except pytest.fail.Exception as failure:
            said[name] = str(failure)
    return said


@pytest.mark.parametrize(
    ("sink", "broken", "advice"),
    [
        (Good, set(), ""),
        (Doubling, {"test_repeats"}, "identify a reading by target, time and series"),
        (Losing, {"test_writes"}, "nothing is stored"),
        (Choosy, {"test_writes", "test_repeats"}, "Raise a poller.errors.StoreError"),
        (OfAnotherTime, {"test_contract"}, "it needs sink API 7"),
        (Ending, set(), ""),
        (Deaf, {"test_ends"}, "leave takes_ends out"),
        (Surprised, {"test_ends"}, "Raise a poller.errors.StoreError"),
        (Restless, {"test_target_labels"}, "every edit would end all series"),
        (Listing, {"test_target_labels"}, "Return a hashable value"),
        (Store, set(), ""),
        (Optimistic, {"test_down", "test_slow", "test_busy"}, "samples are lost"),
        (Patient, {"test_refusing"}, "they would come again for ever"),
        (Silent, {"test_refusing"}, "nobody knows: call Stores.dropped"),
        (
            Hasty,
            {"test_down", "test_slow", "test_half_written", "test_lost_answer", "test_busy"},
            "the error has no retry_after_s",
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_each_broken_promise_fails_its_own_check(sink: Any, broken: set[str], advice: str) -> None:
    said = failures(sink)
    assert said.keys() == broken
    assert advice in " ".join(said.values())
