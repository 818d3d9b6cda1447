"""Whatever a collector does, its poll ends in time with one outcome."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from poller import errors
from poller.collectors import api, poll_runner, yielded_readings
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.metrics.reading import Kind, Reading, ReadingSet, Series, SeriesSet
from tests.unit.collectors.scripted import ONE, Scripted, names, poll, raising, run_script, yielding


def test_readings_come_through() -> None:
    outcome = run_script(yielding(ONE, Reading("two", 2, {"a": "b"}, Kind.COUNTER)))
    assert outcome.result is Result.OK
    assert list(outcome.readings or ()) == [ONE, Reading("two", 2.0, {"a": "b"}, Kind.COUNTER)]


def test_a_lone_set_is_handed_on_untouched() -> None:
    """The identical object: nothing is copied on the hot path."""
    given = ReadingSet(SeriesSet((Series("a", (), Kind.GAUGE),)), [2**60 + 1])
    assert run_script(yielding(given)).readings is given


def test_not_a_number_is_a_value() -> None:
    outcome = run_script(yielding(Reading("x", math.nan), Reading("y", math.inf)))
    assert outcome.result is Result.OK


def test_nothing_read_is_fine() -> None:
    assert run_script(yielding()).result is Result.OK


def test_the_same_series_give_the_same_object_every_poll() -> None:
    """This holds for single readings and for several sets, too."""
    memory: dict[str, Any] = {}
    part = SeriesSet((Series("set", (), Kind.GAUGE),))
    first, second = (
        run_script(yielding(ONE, ReadingSet(part, [v])), memory=memory).readings for v in (1, 2)
    )
    assert first is not None
    assert second is not None
    assert second.series is first.series
    assert sorted(second.values) == [1, 2]


def test_the_later_of_two_equal_series_counts() -> None:
    part = SeriesSet((Series("one", (), Kind.GAUGE),))
    outcome = run_script(yielding(ReadingSet(part, [1]), ReadingSet(part, [7])))
    assert list(outcome.readings or ()) == [Reading("one", 7)]


@pytest.mark.parametrize(
    "kind",
    [
        errors.DeviceUnreachable,
        errors.DeviceTimeout,
        errors.DeviceAuthFailed,
        errors.DeviceProtocolError,
    ],
)
def test_a_device_error_is_an_outcome(kind: type[errors.DeviceError]) -> None:
    outcome = run_script(raising(kind("it said no", "why")))
    assert (outcome.result, outcome.error_code) == (Result.FAILED, kind.error_code)
    assert outcome.message == "it said no (why)"
    assert outcome.retryable is (kind is not errors.DeviceAuthFailed)


def test_readings_before_an_error_are_stored() -> None:
    outcome = run_script(raising(errors.DeviceTimeout("late"), ONE))
    assert (outcome.result, names(outcome)) == (Result.PARTIAL, ["one"])


@pytest.mark.parametrize("kind", [errors.DeviceDown, errors.DeviceUnwell, errors.DeviceRejected])
def test_a_finding_is_a_failure_with_readings(kind: type[errors.DeviceError]) -> None:
    """This holds after a failed part, too. Only a service that answers badly is asked again."""
    part = api.PartFailed("a part", errors.DeviceTimeout("late"))
    for outcome in (
        run_script(raising(kind("gone"), ONE)),
        run_script(raising(kind("gone"), part, ONE)),
    ):
        assert (outcome.result, outcome.error_code, outcome.retryable) == (
            Result.FAILED,
            kind.error_code,
            kind is errors.DeviceUnwell,
        )
        assert names(outcome) == ["one"]


def test_a_failed_part_makes_it_partial_and_is_named() -> None:
    part = api.PartFailed("if_mib", errors.DeviceTimeout("no answer"))
    outcome = run_script(yielding(part, ONE))
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "timeout")
    assert outcome.message == "if_mib: no answer"
    assert run_script(yielding(part)).result is Result.FAILED


def test_a_hanging_collector_is_cut_off_at_its_deadline() -> None:
    """The readings yielded before the deadline are stored."""

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        yield ONE
        await asyncio.sleep(60)

    started = time.monotonic()
    outcome = run_script(script, seconds=0.1)
    assert time.monotonic() - started < 2
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "timeout")
    assert "no complete answer within 0.1 s" in outcome.message


def test_a_deadline_that_has_passed_is_a_timeout() -> None:

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield ONE

    assert run_script(script, seconds=-1).error_code == "timeout"


def test_the_budget_can_be_shorter_than_the_deadline() -> None:
    async def script(_: api.Poll) -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield ONE

    async def run() -> Outcome:
        return await poll_runner.run_poll(Scripted(script), poll(seconds=60), budget_s=0.05)

    assert asyncio.run(run()).error_code == "timeout"


def test_a_collector_that_ignores_its_cancellation_is_abandoned() -> None:
    """The poll is reported and counted, and its later readings are ignored."""

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

        outcome = await poll_runner.run_poll(Scripted(script), poll(seconds=0.05), grace_s=0.05)
        during = poll_runner.abandoned()
        release.set()
        while poll_runner.abandoned():  # noqa: ASYNC110  no event marks its end
            await asyncio.sleep(0.01)
        return outcome, during, poll_runner.abandoned()

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

    outcome = run_script(script, seconds=0.05)
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "timeout")


def test_a_cancelled_poll_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that stops cancels its polls; neither the log nor Sentry reports them."""
    told: list[object] = []
    monkeypatch.setattr(poll_runner.misbehaviour_log, "crashed", lambda *words: told.append(words))

    async def script(_: api.Poll) -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield ONE

    async def cut_off() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(poll_runner.run_poll(Scripted(script), poll(None, 5)), 0.05)
        await asyncio.sleep(0)

    asyncio.run(cut_off())
    assert told == []


FORKING = """
import asyncio, os
from poller.collectors import poll_runner
from tests.unit.collectors.scripted import ONE, Scripted, poll

async def script(_):
    if os.fork() == 0:
        raise SystemExit(0)
    os.wait()
    yield ONE

async def run():
    return await poll_runner.run_poll(Scripted(script), poll(None, 20))

print("went on:", asyncio.run(run()).result.value, flush=True)
"""


def test_a_copy_of_the_worker_that_a_collector_forked_does_not_go_on() -> None:
    """The copy would poll beside its parent, on the same connections."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["went on: ok"]


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

        task = asyncio.create_task(poll_runner.run_poll(Scripted(script), poll()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(1):
            await ended.wait()
        return True

    assert asyncio.run(run())


def test_others_have_their_turn_while_a_large_set_is_checked() -> None:
    """A cached set is taken in one step. A fault after the first step is found, too."""
    series = tuple(
        Series(f"s{i}", (), Kind.GAUGE) for i in range(10 * yielded_readings.CHECKS_PER_STEP)
    )
    large = ReadingSet(SeriesSet(series), [1.0] * len(series))
    bad = ReadingSet(SeriesSet((*series, Series("", (), Kind.GAUGE))), [1.0] * (len(series) + 1))

    async def turns(memory: dict[str, Any], given: ReadingSet) -> tuple[int, Outcome]:
        task = asyncio.create_task(poll_runner.run_poll(Scripted(yielding(given)), poll(memory)))
        taken = 0
        while not task.done():
            await asyncio.sleep(0)
            taken += 1
        return taken, task.result()

    async def run() -> None:
        memory: dict[str, Any] = {}
        first, outcome = await turns(memory, large)
        assert outcome.readings is large
        again, outcome = await turns(memory, large)
        assert outcome.readings is large
        assert first == again + 10
        assert (await turns(memory, bad))[1].error_code == "collector_crashed"

    asyncio.run(run())


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
        return await asyncio.gather(
            *(poll_runner.run_poll(Scripted(s), poll(seconds=0.1), grace_s=0.05) for s in scripts)
        )

    started = time.monotonic()
    outcomes = asyncio.run(run())
    assert time.monotonic() - started < 3
    assert [outcome.result for outcome in outcomes[1:]] == [Result.OK] * 63
    assert outcomes[0].result is Result.FAILED
