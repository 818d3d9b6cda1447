"""The conformance suite for sinks: readings are stored once, and failures are StoreErrors.

A sink that takes ends gets ends of series, too. Given a store that fails on demand (`faults`), the
suite also checks outages, slow and lost answers, half requests and refusals.

TestLines = sink_conformance.suite(LinesSink, stores=stores, stored=lambda: read_back())
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest

from poller import errors
from poller.collectors.api import Kind, Reading, ReadingSet
from poller.domain.inventory.poll_target import PollTarget
from poller.sinks import registry, sink_options
from poller.sinks.api import Sample, Stores
from poller.sinks.made_sink import LeftOut
from poller.testing.checks.sink_ends import EndChecks, end_after
from poller.testing.checks.sink_faults import FaultChecks, StoreFaults

TARGET = PollTarget(1, 1, "olt", 1, "olt-1", "192.0.2.3", "ams", "olt", 60_000, 10_000)
AT_MS = time.time_ns() // 1_000_000


def samples(first: int = 0, number: int = 3) -> list[Sample]:
    """Return polls as a worker writes them: unusual values and texts, some hours old."""
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


def _with_end(first: int = 0) -> list[Sample]:
    """Return polls of a target, and the end of its series."""
    polls = samples(first)
    return [*polls, end_after(polls[0])]


def suite(
    sink: Callable[..., Any],
    stores: Callable[[], AbstractContextManager[Stores]],
    stored: Callable[[], Collection[Any]] | None = None,
    *,
    options: Callable[[], Mapping[str, Any]] | None = None,
    faults: Callable[[], StoreFaults] | None = None,
    once: bool = True,
) -> type:
    """Return a test class for pytest. Assign it to a name that begins with `Test`.

    sink: the sink's class.
    stores: a context manager that yields the stores of the platform for the sink.
    stored: returns a collection of everything that the sink has stored. Without it the suite
        cannot check whether a repeated write is stored twice.
    options: returns the options of the sink as its table has them, for a sink with `Options`.
    faults: returns the store of the present test, which fails on demand: a FakeHttpStore, a
        StoreRelay, or an object with the same methods. Without it faults are not checked.
    once: False for a store that cannot tell a repetition, so that samples may be stored twice.
    """

    left_out = LeftOut()

    @pytest.fixture
    def made(_self: Any) -> Iterator[Any]:
        with stores() as platform:
            yield _made(sink, platform, options, left_out)

    tests: dict[str, Any] = {
        "test_contract": _contract(sink),
        "test_writes": _writes(stored),
        "test_closes": _closes,
    }
    if once:
        tests["test_repeats"] = _repeats(stored)
    written: Callable[[int], list[Sample]] = samples
    if getattr(sink, "takes_ends", False):
        tests |= EndChecks(stored, samples, once).tests()
        written = _with_end
    if faults is not None:
        tests |= FaultChecks(faults, stored, left_out, written, once).tests()
    return type("TestSink", (), {"made": made, **tests})


def _made(
    sink: Callable[..., Any],
    platform: Stores,
    options: Callable[[], Mapping[str, Any]] | None,
    left_out: LeftOut,
) -> Any:
    """Make the sink as a worker does, and count the samples that it leaves out."""
    if isinstance(platform, Stores):
        platform = dataclasses.replace(platform, name="conformance", dropped=left_out.add)
    checked = sink_options.checked("conformance", sink, options() if options else {})
    return sink(platform) if checked is None else sink(platform, checked)


def _contract(sink: Any) -> Callable[[Any], None]:
    def test(self: Any) -> None:
        """The registry accepts the sink: its name, its API version, `write` and `close`."""
        try:
            registry.admit(sink, getattr(sink, "name", ""))
        except errors.ConfigError as error:
            refusal = f"the registry would not load it: {error}. {error.hint}"
            pytest.fail(refusal.rstrip(". "), pytrace=False)

    return test


def _writes(stored: Callable[[], Collection[Any]] | None) -> Callable[[Any, Any], None]:
    def test(self: Any, made: Any) -> None:
        """The sink writes every kind of reading, several polls at once, and an empty list."""
        _write(made, samples())
        _write(made, [])
        if stored is not None and not stored():
            pytest.fail("three polls were written, and nothing is stored", pytrace=False)

    return test


def _repeats(stored: Callable[[], Collection[Any]] | None) -> Callable[[Any, Any], None]:
    def test(self: Any, made: Any) -> None:
        """Writing the same polls again, as after a lost acknowledgement, changes nothing."""
        if stored is None:
            pytest.skip("the suite cannot read the store: pass `stored`")
        _write(made, samples())
        once = len(stored())
        _write(made, samples())
        if len(stored()) != once:
            pytest.fail(
                f"{once} stored readings became {len(stored())} when the same polls were written "
                "again: identify a reading by target, time and series",
                pytrace=False,
            )

    return test


def _closes(self: Any, made: Any) -> None:
    """The sink can be closed, even twice."""
    made.close()
    made.close()


def _write(sink: Any, polls: list[Sample]) -> None:
    try:
        sink.write(polls)
    except errors.StoreError as error:
        pytest.fail(f"the sink could not write: {error}", pytrace=False)
    except Exception as error:  # noqa: BLE001  the door to a plugin's sink
        raised = f"write raised {type(error).__name__}: {error}"
        pytest.fail(f"{raised}. Raise a poller.errors.StoreError instead", pytrace=False)


__all__ = ["samples", "suite"]
