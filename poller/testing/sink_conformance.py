"""The same for sinks: does one store what it is given, once, and say so in our words when it cannot?

TestLines = sink_conformance.suite(LinesSink, stores=stores, stored=lambda: read_back())
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from poller import errors
from poller.collectors.api import Kind, Reading, ReadingSet
from poller.domain.inventory.poll_target import PollTarget
from poller.sinks import registry
from poller.sinks.api import Sample, Stores

TARGET = PollTarget(1, 1, "olt", 1, "olt-1", "192.0.2.3", "ams", "olt", 60_000, 10_000)
AT_MS = time.time_ns() // 1_000_000


def samples(first: int = 0, number: int = 3) -> list[Sample]:
    """Polls as a worker hands them over: odd values and texts, and one that is hours old."""
    readings = ReadingSet.of(
        [
            Reading("olt_temperature", 21.5, {"slot": "1"}),
            Reading(
                "olt_octets_total",
                float(2**53),
                {"port": "1", "name": 'é "quoted" \\ line\nbreak'},
                Kind.COUNTER,
                64,
            ),
            Reading("olt_info", 1.0, {"model": ""}, Kind.INFO),
            Reading("olt_unknown", math.nan),
            Reading("olt_infinite", math.inf),
        ]
    )
    return [Sample(TARGET, AT_MS - 3_600_000 * at, readings) for at in range(first, first + number)]


def suite(
    sink: Callable[[Stores], Any],
    stores: Callable[[], AbstractContextManager[Stores]],
    stored: Callable[[], Collection[Any]] | None = None,
) -> type:
    """A test class for pytest. `stored` gives what is in the store, one item for each reading that is there."""

    @pytest.fixture
    def made(_self: Any) -> Iterator[Any]:
        with stores() as lent:
            yield sink(lent)

    tests = {
        "test_contract": _contract(sink),
        "test_writes": _writes(stored),
        "test_repeats": _repeats(stored),
    }
    return type("TestSink", (), {"made": made, "test_closes": _closes, **tests})


def _contract(sink: Any) -> Callable[[Any], None]:
    def test(self: Any) -> None:
        """The registry accepts it: its name, its API version, `write` and `close`."""
        try:
            registry.admit(sink, getattr(sink, "name", ""))
        except errors.ConfigError as error:
            pytest.fail(
                f"the registry would not load it: {error}. {error.hint}".rstrip(". "), pytrace=False
            )

    return test


def _writes(stored: Callable[[], Collection[Any]] | None) -> Callable[[Any, Any], None]:
    def test(self: Any, made: Any) -> None:
        """Every kind of reading can be written, many polls at once, and none at all."""
        _write(made, samples())
        _write(made, [])
        if stored is not None and not stored():
            pytest.fail("it wrote three polls, and nothing is stored", pytrace=False)

    return test


def _repeats(stored: Callable[[], Collection[Any]] | None) -> Callable[[Any, Any], None]:
    def test(self: Any, made: Any) -> None:
        """The same polls again, because an answer was lost, change nothing."""
        if stored is None:
            pytest.skip("the suite cannot look into the store: give it `stored`")
        _write(made, samples())
        once = len(stored())
        _write(made, samples())
        if len(stored()) != once:
            pytest.fail(
                f"{once} readings became {len(stored())} when the same polls came again: "
                "know them by target, time and series",
                pytrace=False,
            )

    return test


def _closes(self: Any, made: Any) -> None:
    """It can be closed, also twice."""
    made.close()
    made.close()


def _write(sink: Any, polls: list[Sample]) -> None:
    try:
        sink.write(polls)
    except errors.StoreError as error:
        pytest.fail(f"it could not write: {error}", pytrace=False)
    except Exception as error:  # noqa: BLE001  whatever a plugin raises
        pytest.fail(
            f"write raised {type(error).__name__}: {error}. Raise a poller.errors.StoreError instead",
            pytrace=False,
        )


__all__ = ["samples", "suite"]
