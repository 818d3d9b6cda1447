"""The conformance suite for sinks: the built-in sinks pass, and each broken one fails with
advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from poller.db import engine, migrate
from poller.db.record import stored_readings
from poller.sinks.api import Sample, Stores
from poller.sinks.sql import SqlSink
from poller.testing import sink_conformance
from poller.testing.sink_conformance import TARGET


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
    SqlSink, database, lambda: stored_readings.between(Database.engine, TARGET.id, 0, 2**62)
)


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


def failures(sink: Any) -> dict[str, str]:
    suite: Any = sink_conformance.suite(
        sink, lambda: nullcontext(Stores(None, None, None)), lambda: sink.store
    )
    said = {}
    for name in [name for name in vars(suite) if name.startswith("test_")]:
        made = sink(Stores(None, None, None))
        try:
            getattr(suite(), name)(*(() if name == "test_contract" else (made,)))
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
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_each_broken_promise_fails_its_own_check(sink: Any, broken: set[str], advice: str) -> None:
    said = failures(sink)
    assert said.keys() == broken
    assert advice in " ".join(said.values())
