"""Each collector has a pool of threads; stuck threads are replaced up to a limit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ClassVar

import pytest
import uvloop

from poller.collectors import api
from poller.collectors.poll_runner import run_poll
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Outcome, Result
from poller.workers.guard import collector_threads, running_code
from poller.workers.guard.collector_incidents import CollectorIncidents
from poller.workers.guard.collector_threads import CollectorThreads, ThreadLimits


class World:
    """A loop with the executor: batch 1 is of collector `one`, batch 2 of `two`."""

    def __init__(self, limits: ThreadLimits) -> None:
        self.cells = memoryview(bytearray(running_code.SIZE)).cast("q")
        self._incidents = CollectorIncidents()
        marks = running_code.ThreadMarks(self.cells)
        names = {1: "one", 2: "two"}
        self.threads = CollectorThreads(limits, marks, names.__getitem__, self._incidents)

    def incidents(self) -> list[str]:
        """Return the collectors of the incidents since the last call."""
        collectors = []
        while (incident := self._incidents.take()) is not None:
            collectors.append(incident.collector)
        return collectors

    async def call(self, batch_number: int, do: Callable[[], Any], timeout_s: float = 5.0) -> Any:
        async def polled() -> Any:
            running_code.mark(100 + batch_number, batch_number)
            async with asyncio.timeout(timeout_s):
                return await asyncio.to_thread(do)

        return await asyncio.create_task(polled())

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        async def go() -> None:
            asyncio.get_running_loop().set_default_executor(self.threads)
            await work

        uvloop.run(go())


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """An event that blocking calls wait for; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_threads, "GRACE_S", 0.05)


async def until(condition: Callable[[], bool]) -> None:
    deadline_mono = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline_mono
        await asyncio.sleep(0.005)


def test_no_more_threads_than_allowed_run_at_a_time_and_all_calls_are_done() -> None:
    """Calls beyond the limit wait."""
    world = World(ThreadLimits(3, 2))
    running: list[int] = []
    counts: list[int] = []

    def work() -> None:
        running.append(1)
        counts.append(len(running))
        time.sleep(0.01)
        running.pop()

    async def go() -> None:
        await asyncio.gather(*(world.call(1, work) for _ in range(20)))
        assert len(counts) == 20
        assert 1 < max(counts) <= 3

    world.run(go())


def test_a_stuck_thread_is_counted_and_replaced_and_other_calls_do_not_wait(
    gate: threading.Event,
) -> None:
    """Each pool has one thread here; the next call gets a replacement."""
    world = World(ThreadLimits(1, 2))

    async def go() -> None:
        hanging = asyncio.create_task(world.call(1, gate.wait, 0.1))
        await asyncio.sleep(0.02)
        assert await world.call(2, lambda: "two") == "two"
        with pytest.raises(TimeoutError):
            await hanging
        assert await world.call(1, lambda: "one") == "one"
        assert world.threads.stuck() == {"one": 1}
        assert world.incidents() == []
        gate.set()
        await until(lambda: world.threads.stuck() == {})

    world.run(go())


def test_at_the_limit_one_incident_is_recorded_and_no_thread_is_replaced(
    gate: threading.Event,
) -> None:
    """Otherwise stuck threads would fill the process."""
    world = World(ThreadLimits(1, 2))

    async def go() -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await world.call(1, gate.wait, 0.05)
            await asyncio.sleep(0.1)
        assert world.incidents() == ["one"]
        assert world.threads.stuck() == {"one": 2}
        assert await world.call(2, lambda: "two") == "two"
        with pytest.raises(TimeoutError):
            await world.call(1, lambda: "one", 0.1)

    world.run(go())


def test_a_target_is_marked_while_its_code_runs_in_a_thread(gate: threading.Event) -> None:
    """A fault is attributed to the poll of its thread, although another runs beside it."""
    world = World(ThreadLimits(4, 2))

    async def go() -> None:
        idents: list[int] = []
        calls = [
            asyncio.create_task(
                world.call(n, lambda: (idents.append(threading.get_ident()), gate.wait()))
            )
            for n in (1, 2)
        ]
        await until(lambda: len(idents) == 2)
        assert set(running_code.suspects(world.cells)) == {(101, 1), (102, 2)}
        [suspect] = running_code.suspects(
            world.cells, f"Current thread 0x{idents[0]:016x} (most recent call first):"
        )
        assert suspect in {(101, 1), (102, 2)}
        gate.set()
        await asyncio.gather(*calls)
        await until(lambda: running_code.suspects(world.cells) == [])

    world.run(go())


class Plain:
    name: ClassVar[str] = "plain"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()
    Options: ClassVar[type[api.Options]] = api.Options
    blocking: ClassVar[bool] = True

    def __init__(self, do: Callable[[], Any]) -> None:
        self._do = do

    def collect(self, poll: api.Poll) -> Iterator[api.Yielded]:
        yield api.Reading("before", 1.0)
        self._do()
        yield api.Reading("after", 2.0)


def polled(do: Callable[[], Any], seconds: float = 5.0) -> Outcome:
    async def go() -> Outcome:
        deadline = asyncio.get_running_loop().time() + seconds
        return await run_poll(Plain(do), api.Poll(1, "d", "127.0.0.1", None, None, deadline, {}))

    return uvloop.run(go())


def test_a_plain_generator_is_polled_like_any_other() -> None:
    """Its readings count, also those before a device's error or its own error."""
    success = polled(lambda: None)
    assert (success.result, success.samples) == (Result.OK, 2)

    def refuse() -> None:
        raise api.DeviceAuthFailed("no")

    outcome = polled(refuse)
    assert (outcome.result, outcome.error_code, outcome.samples) == (
        Result.PARTIAL,
        error_codes.AUTH_FAILED,
        1,
    )
    for raised in (SystemExit, StopIteration, StopAsyncIteration, KeyboardInterrupt, GeneratorExit):

        def fail(kind: type[BaseException] = raised) -> None:
            raise kind

        assert polled(fail).error_code == error_codes.COLLECTOR_CRASHED


def test_readings_before_the_deadline_count(gate: threading.Event) -> None:
    """Its thread ends with the next reading."""
    world = World(ThreadLimits(1, 1))

    async def go() -> None:
        deadline = asyncio.get_running_loop().time() + 0.1
        outcome = await run_poll(
            Plain(gate.wait), api.Poll(1, "d", "127.0.0.1", None, None, deadline, {})
        )
        assert (outcome.result, outcome.error_code, outcome.samples) == (
            Result.PARTIAL,
            error_codes.TIMEOUT,
            1,
        )

    world.run(go())


def test_a_poll_that_got_no_thread_says_so(gate: threading.Event) -> None:
    """Neither the device nor the collector is to blame."""
    world = World(ThreadLimits(1, 1))

    async def one(seconds: float) -> Outcome:
        running_code.mark(1, 1)
        deadline = asyncio.get_running_loop().time() + seconds
        return await run_poll(
            Plain(gate.wait), api.Poll(1, "d", "127.0.0.1", None, None, deadline, {})
        )

    async def go() -> None:
        first = asyncio.create_task(one(5.0))
        await asyncio.sleep(0.02)
        outcome = await asyncio.create_task(one(0.1))
        assert (outcome.result, outcome.error_code, outcome.samples) == (
            Result.FAILED,
            error_codes.COLLECTOR_BUSY,
            0,
        )
        assert "got no thread within 0." in outcome.message
        gate.set()
        assert (await first).result is Result.OK

    world.run(go())
