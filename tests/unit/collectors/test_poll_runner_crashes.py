"""The outcome of a collector that breaks the contract names the fault and its line, no secret."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from poller import errors
from poller.collectors import api, poll_runner, yielded_readings
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import Kind, Reading, ReadingSet, Series, SeriesSet
from tests.unit.collectors.scripted import ONE, SECRET, names, raising, run_script, yielding


class Wild(BaseException):
    pass


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        SystemExit(3),
        KeyboardInterrupt(),
        Wild("x"),
        GeneratorExit(),
        asyncio.CancelledError(),
    ],
)
def test_anything_else_is_a_crash_that_names_collector_and_exception(error: BaseException) -> None:
    """A plugin's SystemExit ends its poll, not the worker."""
    outcome = run_script(raising(error, ONE))
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "collector_crashed")
    assert outcome.message.startswith(f"collector scripted raised {type(error).__name__}")
    assert not outcome.retryable


def test_a_crash_says_where() -> None:
    assert "scripted.py:" in run_script(raising(ValueError("odd"))).message


@pytest.mark.parametrize(
    "rubbish",
    [
        42,
        None,
        ("one", 1.0),
        Reading("", 1.0),
        Reading(7, 1.0),  # type: ignore[arg-type]
        Reading("x", "1"),  # type: ignore[arg-type]
        Reading("x", None),  # type: ignore[arg-type]
        Reading("x", 10**400),
        Reading("x", 1.0, {"a": 1}),  # type: ignore[dict-item]
        Reading("x", 1.0, {1: "a"}),  # type: ignore[dict-item]
        Reading("x", 1.0, ["a"]),  # type: ignore[arg-type]
        Reading("x", 1.0, {}, "gauge"),  # type: ignore[arg-type]
        Reading("x", 1.0, {}, Kind.COUNTER, 33),
        Reading("x", 1.0, {}, Kind.COUNTER, "64"),  # type: ignore[arg-type]
        ReadingSet(SeriesSet((Series("a", (), Kind.GAUGE),)), ["x"]),  # type: ignore[list-item]
        ReadingSet(SeriesSet((Series("a", (("k", 1),), Kind.GAUGE),)), [1]),  # type: ignore[arg-type]
        api.PartFailed("p", ValueError("x")),  # type: ignore[arg-type]
    ],
)
def test_an_item_that_is_no_reading_is_a_crash_and_good_readings_stay(rubbish: object) -> None:
    outcome = run_script(yielding(ONE, rubbish, Reading("after", 1)))
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "collector_crashed")
    assert names(outcome) == ["one"]


def test_an_item_that_is_no_reading_is_named_by_metric_and_line() -> None:
    """The line is that of the plugin, not that of the runner."""

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        yield ONE
        yield Reading("fan_speed", "fast")  # type: ignore[arg-type]

    line = script.__code__.co_firstlineno + 2
    said = run_script(script).message
    assert said.startswith(
        "collector scripted yielded what is no reading (fan_speed is not a number"
    )
    assert f"(test_poll_runner_crashes.py:{line})" in said


def test_a_poll_with_too_many_readings_stores_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(poll_runner, "MAX_ITEMS", 100)
    assert len(names(run_script(yielding(*[ONE] * 100)))) == 1
    outcome = run_script(yielding(*[ONE] * 101))
    assert (outcome.result, outcome.error_code, outcome.readings) == (
        Result.FAILED,
        "collector_crashed",
        None,
    )
    assert "more than 100 readings in one poll" in outcome.message


class Unread(tuple[Series, ...]):
    """Series that fail the test when they are read."""

    def __iter__(self) -> Iterator[Series]:
        raise AssertionError


def test_a_poll_with_too_many_series_is_not_checked_and_stores_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All sets of a poll together, known or new; at the next poll they are counted anew."""
    monkeypatch.setattr(yielded_readings, "MAX_SERIES", 100)
    memory: dict[str, Any] = {}
    sixty = ReadingSet(
        SeriesSet(tuple(Series(f"s{i}", (), Kind.GAUGE) for i in range(60))), [1.0] * 60
    )
    forty = ReadingSet(SeriesSet(sixty.series.series[:40]), [2.0] * 40)
    for _ in range(2):
        assert run_script(yielding(ONE, sixty, forty), memory=memory).result is Result.OK
    for items in (
        [ONE, ReadingSet(SeriesSet(Unread(sixty.series.series * 2)), [1.0] * 120)],
        [ONE, sixty, sixty],
    ):
        outcome = run_script(yielding(*items), memory=memory)
        assert (outcome.result, outcome.error_code, outcome.readings) == (
            Result.FAILED,
            "collector_crashed",
            None,
        )
        assert "more than 100 series in the reading sets of one poll" in outcome.message


def test_a_generator_that_yielded_no_reading_is_closed() -> None:
    closed = []

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        try:
            yield 42
        finally:
            closed.append(True)

    run_script(script)
    assert closed == [True]


async def _coroutine(_: api.Poll) -> None: ...


@pytest.mark.parametrize("script", [lambda _: None, lambda _: [ONE], _coroutine])
@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_collect_that_is_no_async_generator_is_a_crash(script: Callable[[api.Poll], Any]) -> None:
    assert run_script(script).error_code == "collector_crashed"


@pytest.mark.parametrize(
    "error",
    [ValueError(f"login with {SECRET} failed"), errors.DeviceAuthFailed(f"bad {SECRET}", SECRET)],
)
def test_no_secret_gets_out(error: Exception) -> None:
    """Whatever a plugin writes into its exceptions."""
    outcome = run_script(raising(error))
    assert SECRET not in outcome.message
    assert "***" in outcome.message


def test_a_careless_error_class_is_no_trouble() -> None:
    class Careless(errors.DeviceTimeout):
        def __init__(self) -> None:
            pass

    outcome = run_script(raising(Careless()))
    assert (outcome.error_code, outcome.message) == ("timeout", "Careless")


def test_a_label_no_store_could_write_is_a_crash_of_its_own() -> None:
    """Half a surrogate pair would fail the whole batch when it is stored."""
    outcome = run_script(yielding(ONE, Reading("bad", 1.0, {"x": "\ud800"})))
    assert (outcome.result, outcome.error_code, names(outcome)) == (
        Result.PARTIAL,
        "collector_crashed",
        ["one"],
    )
    outcome.message.encode()


def test_a_part_that_is_named_by_no_text_is_a_crash() -> None:
    """Plugins yield what they like."""
    outcome = run_script(yielding(ONE, api.PartFailed(7, errors.DeviceTimeout("no answer"))))  # type: ignore[arg-type]
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "collector_crashed")


def test_an_error_that_cannot_even_be_read_is_still_an_outcome() -> None:
    """The outcome comes at once, not when a lease ends."""

    class Evil(errors.DeviceTimeout):
        @property
        def message(self) -> str:  # type: ignore[override]
            raise RuntimeError("no")

        def __init__(self) -> None:
            Exception.__init__(self)

    outcome = run_script(raising(Evil()))
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "collector_crashed")
