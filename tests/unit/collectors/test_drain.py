"""Whatever a collector does, draining it gives one outcome, in time."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import pytest

from poller import errors
from poller.collectors import api, drain
from poller.collectors.credentials import Community, Credential
from poller.domain.outcome import Outcome, Result
from poller.domain.readings import Kind, Reading, ReadingSet, Series, SeriesSet

SECRET = "s3cr3t-community"
ONE = Reading("one", 1.0)


class Scripted:
    """A collector that does what the test says."""

    name: ClassVar[str] = "scripted"
    api_version: ClassVar[int] = 1
    Options: ClassVar[type[api.Options]] = api.Options
    credentials: ClassVar[tuple[type[Credential], ...]] = ()

    def __init__(self, script: Callable[[api.Poll], Any]) -> None:
        self._script = script

    def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        made: AsyncIterator[api.Yielded] = self._script(poll)
        return made


def poll(memory: dict[str, Any] | None = None, seconds: float = 5) -> api.Poll:
    deadline = asyncio.get_running_loop().time() + seconds
    credential = Community.from_text(SECRET)
    return api.Poll(1, "device", "10.0.0.1", None, credential, deadline, {} if memory is None else memory)


def drained(script: Callable[[api.Poll], Any], seconds: float = 5, memory: dict[str, Any] | None = None) -> Outcome:
    async def run() -> Outcome:
        return await drain.drain(Scripted(script), poll(memory, seconds), grace_s=0.05)

    return asyncio.run(run())


def yielding(*items: object) -> Callable[[api.Poll], AsyncIterator[Any]]:
    async def script(_: api.Poll) -> AsyncIterator[Any]:
        for item in items:
            yield item

    return script


def raising(error: BaseException, *before: object) -> Callable[[api.Poll], AsyncIterator[Any]]:
    async def script(_: api.Poll) -> AsyncIterator[Any]:
        for item in before:
            yield item
        raise error

    return script


def names(outcome: Outcome) -> list[str]:
    return [reading.name for reading in outcome.readings or ()]


def test_readings_come_through() -> None:
    outcome = drained(yielding(ONE, Reading("two", 2, {"a": "b"}, Kind.COUNTER)))
    assert outcome.result is Result.OK
    assert list(outcome.readings or ()) == [ONE, Reading("two", 2.0, {"a": "b"}, Kind.COUNTER)]


def test_a_lone_set_is_handed_on_untouched() -> None:
    """The identical object: nothing is copied on the hot path."""
    given = ReadingSet(SeriesSet((Series("a", (), Kind.GAUGE),)), [2**60 + 1])
    assert drained(yielding(given)).readings is given


def test_not_a_number_is_a_value() -> None:
    outcome = drained(yielding(Reading("x", math.nan), Reading("y", math.inf)))
    assert outcome.result is Result.OK


def test_nothing_read_is_fine() -> None:
    assert drained(yielding()).result is Result.OK


def test_the_same_series_give_the_same_object_every_poll() -> None:
    """Also when they are yielded one by one, or in several sets."""
    memory: dict[str, Any] = {}
    part = SeriesSet((Series("set", (), Kind.GAUGE),))
    first, second = (drained(yielding(ONE, ReadingSet(part, [v])), memory=memory).readings for v in (1, 2))
    assert first is not None
    assert second is not None
    assert second.series is first.series
    assert sorted(second.values) == [1, 2]


def test_the_later_of_two_equal_series_counts() -> None:
    part = SeriesSet((Series("one", (), Kind.GAUGE),))
    outcome = drained(yielding(ReadingSet(part, [1]), ReadingSet(part, [7])))
    assert list(outcome.readings or ()) == [Reading("one", 7)]


@pytest.mark.parametrize(
    "kind", [errors.DeviceUnreachable, errors.DeviceTimeout, errors.DeviceAuthFailed, errors.DeviceProtocolError]
)
def test_a_device_error_is_an_outcome(kind: type[errors.DeviceError]) -> None:
    outcome = drained(raising(kind("it said no", "why")))
    assert (outcome.result, outcome.error_code) == (Result.FAILED, kind.error_code)
    assert outcome.message == "it said no (why)"
    assert outcome.retryable is kind.retryable


def test_what_was_read_before_an_error_is_kept() -> None:
    outcome = drained(raising(errors.DeviceTimeout("late"), ONE))
    assert (outcome.result, names(outcome)) == (Result.PARTIAL, ["one"])


def test_a_failed_part_makes_it_partial_and_is_named() -> None:
    part = api.PartFailed("if_mib", errors.DeviceTimeout("no answer"))
    outcome = drained(yielding(part, ONE))
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "timeout")
    assert outcome.message == "if_mib: no answer"
    assert drained(yielding(part)).result is Result.FAILED


def test_a_hanging_collector_is_cut_off_at_its_deadline() -> None:
    """And what it read so far is kept."""

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        yield ONE
        await asyncio.sleep(60)

    started = time.monotonic()
    outcome = drained(script, seconds=0.1)
    assert time.monotonic() - started < 2
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "timeout")
    assert "no complete answer within 0.1 s" in outcome.message


def test_a_deadline_that_has_passed_is_a_timeout() -> None:

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield ONE

    assert drained(script, seconds=-1).error_code == "timeout"


def test_the_budget_can_be_shorter_than_the_deadline() -> None:
    async def script(_: api.Poll) -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield ONE

    async def run() -> Outcome:
        return await drain.drain(Scripted(script), poll(seconds=60), budget_s=0.05)

    assert asyncio.run(run()).error_code == "timeout"


def test_a_collector_that_ignores_its_cancellation_is_abandoned() -> None:
    """It is reported and counted, nobody waits for it, and what it says later is not taken."""

    async def run() -> tuple[Outcome, int, int]:
        release = asyncio.Event()

        async def script(_: api.Poll) -> AsyncIterator[Any]:
            yield ONE
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            yield Reading("too late", 1)

        outcome = await drain.drain(Scripted(script), poll(seconds=0.05), grace_s=0.05)
        during = drain.abandoned()
        release.set()
        while drain.abandoned():  # noqa: ASYNC110  nobody is told when it ends, and the test has a time limit
            await asyncio.sleep(0.01)
        return outcome, during, drain.abandoned()

    outcome, during, after = asyncio.run(run())
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "collector_crashed")
    assert "ignored its cancellation" in outcome.message
    assert names(outcome) == ["one"]
    assert (during, after) == (1, 0)


def test_a_collector_that_tidies_up_after_its_cancellation_still_timed_out() -> None:
    async def script(_: api.Poll) -> AsyncIterator[Any]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            yield ONE

    outcome = drained(script, seconds=0.05)
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "timeout")


class Wild(BaseException):
    pass


@pytest.mark.parametrize(
    "error",
    [ValueError("odd"), SystemExit(3), KeyboardInterrupt(), Wild("x"), GeneratorExit(), asyncio.CancelledError()],
)
def test_anything_else_is_a_crash_that_names_collector_and_exception(error: BaseException) -> None:
    """A plugin's SystemExit ends its poll, not the worker."""
    outcome = drained(raising(error, ONE))
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "collector_crashed")
    assert outcome.message.startswith(f"collector scripted raised {type(error).__name__}")
    assert not outcome.retryable


def test_a_crash_says_where() -> None:
    assert "test_drain.py:" in drained(raising(ValueError("odd"))).message


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
        ReadingSet(SeriesSet((Series("a", (), Kind.GAUGE),)), ["x"]),  # type: ignore[list-item]
        ReadingSet(SeriesSet((Series("a", (("k", 1),), Kind.GAUGE),)), [1]),  # type: ignore[arg-type]
        api.PartFailed("p", ValueError("x")),  # type: ignore[arg-type]
    ],
)
def test_rubbish_is_a_crash_and_the_good_readings_stay(rubbish: object) -> None:
    outcome = drained(yielding(ONE, rubbish, Reading("after", 1)))
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "collector_crashed")
    assert names(outcome) == ["one"]


def test_of_more_readings_than_a_device_has_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "MOST_ITEMS", 100)
    assert len(names(drained(yielding(*[ONE] * 100)))) == 1
    outcome = drained(yielding(*[ONE] * 101))
    assert (outcome.result, outcome.error_code, outcome.readings) == (Result.FAILED, "collector_crashed", None)
    assert "more than 100 readings in one poll" in outcome.message


def test_a_poll_that_nobody_waits_for_any_more_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that stops cancels its polls: the log and Sentry hear nothing of it."""
    told: list[object] = []
    monkeypatch.setattr(drain.reporting, "crashed", lambda *words: told.append(words))

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield ONE

    async def cut_off() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(drain.drain(Scripted(script), poll(None, 5)), 0.05)
        await asyncio.sleep(0)

    asyncio.run(cut_off())
    assert told == []


FORKING = """
import asyncio, os
from poller.collectors import drain
from tests.unit.collectors.test_drain import ONE, Scripted, poll

async def script(_):
    if os.fork() == 0:
        raise SystemExit(0)
    os.wait()
    yield ONE

async def run():
    return await drain.drain(Scripted(script), poll(None, 20))

print("went on:", asyncio.run(run()).result.value, flush=True)
"""


def test_a_copy_of_the_worker_that_a_collector_forked_does_not_go_on() -> None:
    """It would poll beside its parent, on the same connections."""
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["went on: ok"]


def test_a_generator_that_yielded_rubbish_is_closed() -> None:
    closed = []

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        try:
            yield 42
        finally:
            closed.append(True)

    drained(script)
    assert closed == [True]


async def _coroutine(_: api.Poll) -> None: ...


@pytest.mark.parametrize("script", [lambda _: None, lambda _: [ONE], _coroutine])
@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_collect_that_is_no_async_generator_is_a_crash(script: Callable[[api.Poll], Any]) -> None:
    assert drained(script).error_code == "collector_crashed"


@pytest.mark.parametrize(
    "error", [ValueError(f"login with {SECRET} failed"), errors.DeviceAuthFailed(f"bad {SECRET}", SECRET)]
)
def test_no_secret_gets_out(error: Exception) -> None:
    """Whatever a plugin writes into its exceptions."""
    outcome = drained(raising(error))
    assert SECRET not in outcome.message
    assert "***" in outcome.message


def test_a_careless_error_class_is_no_trouble() -> None:
    class Careless(errors.DeviceTimeout):
        def __init__(self) -> None:
            pass

    outcome = drained(raising(Careless()))
    assert (outcome.error_code, outcome.message) == ("timeout", "Careless")


def test_cancelling_the_caller_cancels_the_collector() -> None:
    """A worker that stops leaves nothing running."""

    async def run() -> bool:
        ended = asyncio.Event()

        async def script(_: api.Poll) -> AsyncIterator[Any]:
            try:
                await asyncio.sleep(60)
                yield ONE
            finally:
                ended.set()

        task = asyncio.create_task(drain.drain(Scripted(script), poll()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(1):
            await ended.wait()
        return True

    assert asyncio.run(run())


def test_a_rude_one_does_not_hold_up_the_others() -> None:
    """Sixty-four at once, one of them hanging and deaf."""

    async def deaf(_: api.Poll) -> AsyncIterator[Any]:
        for _ in range(40):
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        yield ONE

    async def run() -> list[Outcome]:
        scripts = [deaf, *[yielding(ONE)] * 63]
        return await asyncio.gather(*(drain.drain(Scripted(s), poll(seconds=0.1), grace_s=0.05) for s in scripts))

    started = time.monotonic()
    outcomes = asyncio.run(run())
    assert time.monotonic() - started < 3
    assert [outcome.result for outcome in outcomes[1:]] == [Result.OK] * 63
    assert outcomes[0].result is Result.FAILED


def test_a_label_no_store_could_write_is_a_crash_of_its_own() -> None:
    """Half a surrogate pair would fail the whole batch when it is stored."""
    outcome = drained(yielding(ONE, Reading("bad", 1.0, {"x": "\ud800"})))
    assert (outcome.result, outcome.error_code, names(outcome)) == (Result.PARTIAL, "collector_crashed", ["one"])
    outcome.message.encode()


def test_a_part_that_is_named_by_no_text_is_a_crash() -> None:
    """Plugins yield what they like."""
    outcome = drained(yielding(ONE, api.PartFailed(7, errors.DeviceTimeout("no answer"))))  # type: ignore[arg-type]
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "collector_crashed")


def test_an_error_that_cannot_even_be_read_is_still_an_outcome() -> None:
    """And it comes at once, not when a lease runs out."""

    class Evil(errors.DeviceTimeout):
        @property
        def message(self) -> str:  # type: ignore[override]
            raise RuntimeError("no")

        def __init__(self) -> None:
            Exception.__init__(self)

    outcome = drained(raising(Evil()))
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "collector_crashed")
