"""Threads of collectors: each has its own, and those that hang are replaced up to a limit."""

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
from poller.workers.guard import collector_threads, marks, running_code
from poller.workers.guard.collector_threads import Limits, Threads


class World:
    """A loop with the executor: flight 1 is of collector `one`, flight 2 of `two`."""

    def __init__(self, limits: Limits) -> None:
        self.overrun: list[str] = []
        self.cells = memoryview(bytearray(marks.SIZE)).cast("q")
        names = {1: "one", 2: "two"}
        self.threads = Threads(
            limits, marks.ThreadMarks(self.cells), names.__getitem__, self.overrun.append
        )

    async def call(self, flight: int, do: Callable[[], Any], timeout_s: float = 5.0) -> Any:
        async def polled() -> Any:
            running_code.mark(100 + flight, flight)
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
    """What threads hang at; opened at the end."""
    made = threading.Event()
    yield made
    made.set()


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_threads, "GRACE_S", 0.05)


async def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < ends
        await asyncio.sleep(0.005)


def test_no_more_threads_than_allowed_run_at_a_time_and_all_calls_are_done() -> None:
    """Those beyond the limit wait for their turn."""
    world, now, most = World(Limits(3, 2)), [], []

    def work() -> None:
        now.append(1)
        most.append(len(now))
        time.sleep(0.01)
        now.pop()

    async def go() -> None:
        await asyncio.gather(*(world.call(1, work) for _ in range(20)))
        assert len(most) == 20
        assert 1 < max(most) <= 3

    world.run(go())


def test_one_that_hangs_is_counted_and_replaced_and_others_do_not_wait(
    gate: threading.Event,
) -> None:
    """With one thread each: the next call of the same collector gets another one, and another collector its own."""
    world = World(Limits(1, 2))

    async def go() -> None:
        hanging = asyncio.create_task(world.call(1, gate.wait, 0.1))
        await asyncio.sleep(0.02)
        assert await world.call(2, lambda: "two") == "two"
        with pytest.raises(TimeoutError):
            await hanging
        assert await world.call(1, lambda: "one") == "one"
        assert world.threads.stuck() == {"one": 1}
        assert world.overrun == []
        gate.set()
        await until(lambda: world.threads.stuck() == {})

    world.run(go())


def test_beyond_the_limit_the_collector_is_named_once_and_nobody_is_replaced(
    gate: threading.Event,
) -> None:
    """Else its threads would fill the process."""
    world = World(Limits(1, 2))

    async def go() -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await world.call(1, gate.wait, 0.05)
            await asyncio.sleep(0.1)
        assert world.overrun == ["one"]
        assert world.threads.stuck() == {"one": 2}
        assert await world.call(2, lambda: "two") == "two"
        with pytest.raises(TimeoutError):
            await world.call(1, lambda: "one", 0.1)

    world.run(go())


def test_whose_code_runs_in_a_thread_is_marked_while_it_runs(gate: threading.Event) -> None:
    """And a fault in that thread is its own, whatever runs beside it."""
    world = World(Limits(4, 2))

    async def go() -> None:
        idents: list[int] = []
        calls = [
            asyncio.create_task(
                world.call(n, lambda: (idents.append(threading.get_ident()), gate.wait()))
            )
            for n in (1, 2)
        ]
        await until(lambda: len(idents) == 2)
        assert set(marks.blamed(world.cells)) == {(101, 1), (102, 2)}
        [blamed] = marks.blamed(
            world.cells, f"Current thread 0x{idents[0]:016x} (most recent call first):"
        )
        assert blamed in {(101, 1), (102, 2)}
        gate.set()
        await asyncio.gather(*calls)
        await until(lambda: marks.blamed(world.cells) == [])

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
    """Readings, the device's errors, and its own, after what was read."""
    good = polled(lambda: None)
    assert (good.result, good.samples) == (Result.OK, 2)

    def refuse() -> None:
        raise api.DeviceAuthFailed("no")

    found = polled(refuse)
    assert (found.result, found.error_code, found.samples) == (
        Result.PARTIAL,
        error_codes.AUTH_FAILED,
        1,
    )
    for raised in (SystemExit, StopIteration, StopAsyncIteration, KeyboardInterrupt, GeneratorExit):

        def fail(kind: type[BaseException] = raised) -> None:
            raise kind

        assert polled(fail).error_code == error_codes.COLLECTOR_CRASHED


def test_what_it_yielded_before_its_deadline_is_kept(gate: threading.Event) -> None:
    """And its thread is told to end with the next item."""
    world = World(Limits(1, 1))

    async def go() -> None:
        deadline = asyncio.get_running_loop().time() + 0.1
        found = await run_poll(
            Plain(gate.wait), api.Poll(1, "d", "127.0.0.1", None, None, deadline, {})
        )
        assert (found.result, found.error_code, found.samples) == (
            Result.PARTIAL,
            error_codes.TIMEOUT,
            1,
        )

    world.run(go())


def test_a_poll_that_got_no_thread_says_so(gate: threading.Event) -> None:
    """It is neither the device's fault nor its collector's."""
    world = World(Limits(1, 1))

    async def one(seconds: float) -> Outcome:
        running_code.mark(1, 1)
        deadline = asyncio.get_running_loop().time() + seconds
        return await run_poll(
            Plain(gate.wait), api.Poll(1, "d", "127.0.0.1", None, None, deadline, {})
        )

    async def go() -> None:
        first = asyncio.create_task(one(5.0))
        await asyncio.sleep(0.02)
        found = await asyncio.create_task(one(0.1))
        assert (found.result, found.error_code, found.samples) == (
            Result.FAILED,
            error_codes.COLLECTOR_BUSY,
            0,
        )
        assert "got no thread within 0." in found.message
        gate.set()
        assert (await first).result is Result.OK

    world.run(go())
