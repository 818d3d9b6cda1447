"""A handler may end in any way, and is cancelled wherever it is."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from poller.domain.jobs.job_run import FailureCode, Plan
from poller.jobs import api
from poller.workers.jobs.handler_call import Ending, HandlerCall
from poller.workers.jobs.run_context import RunContext

PLAN = Plan("tidy", "site", "ams", 1_800_000_000_000)


def made(handler: Callable[[Any], Any]) -> HandlerCall:
    services: Any = None
    call = HandlerCall(handler, RunContext(services, PLAN, 2, "w@host"), "job-tidy")
    call.start()
    return call


def ended(call: HandlerCall, within_s: float = 10.0) -> Ending:
    over = threading.Event()
    call.when_ended(over.set)
    assert over.wait(within_s), call.location
    return call.ending


async def answer(context: api.Context) -> dict[str, int]:
    await asyncio.sleep(0)
    return {"attempt": context.attempt}


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def leave(_context: api.Context) -> None:
    sys.exit(3)


def generator(_context: api.Context) -> Iterator[int]:
    yield 1


def raising(error: BaseException) -> Callable[[Any], None]:
    def handler(_context: Any) -> None:
        raise error

    return handler


@pytest.mark.parametrize(
    ("handler", "result"),
    [
        (lambda context: None, api.Result()),
        (lambda context: api.Result(4, {"a": 1}), api.Result(4, {"a": 1})),
        (lambda context: {"scope": context.scope.id}, api.Result(0, {"scope": "ams"})),
        (answer, api.Result(0, {"attempt": 2})),
        (lambda context: answer(context), api.Result(0, {"attempt": 2})),
    ],
    ids=["nothing", "result", "mapping", "coroutine", "awaitable"],
)
def test_a_result_is_nothing_a_mapping_or_a_result(
    handler: Callable[[Any], Any], result: api.Result
) -> None:
    """Sync or async."""
    assert ended(made(handler)) == Ending(result)


@pytest.mark.parametrize(
    ("handler", "code", "message"),
    [
        (raising(ValueError("too old")), FailureCode.HANDLER_ERROR, "ValueError: too old"),
        (raising(KeyError()), FailureCode.HANDLER_ERROR, "KeyError"),
        (
            raising(Unreadable()),
            FailureCode.HANDLER_ERROR,
            "Unreadable: (its text cannot be read)",
        ),
        (leave, FailureCode.HANDLER_PANIC, "SystemExit: 3"),
        (raising(KeyboardInterrupt()), FailureCode.HANDLER_PANIC, "KeyboardInterrupt"),
        (raising(GeneratorExit()), FailureCode.HANDLER_PANIC, "GeneratorExit"),
        (raising(api.Cancelled("me")), FailureCode.HANDLER_PANIC, "Cancelled: me"),
        (raising(asyncio.CancelledError()), FailureCode.HANDLER_PANIC, "CancelledError"),
    ],
)
def test_a_crash_is_never_a_success(
    handler: Callable[[Any], Any], code: FailureCode, message: str
) -> None:
    """An exception is an error; what ends a thread or a process is a panic."""
    ending = ended(made(handler))
    assert (ending.result, ending.code, ending.message) == (None, code, message)


@pytest.mark.parametrize(
    ("handler", "fault"),
    [
        (lambda context: 5, "it returned int"),
        (generator, "it returned generator"),
        (lambda context: api.Result(-1), "rows_affected is -1"),
        (lambda context: api.Result(2**80), "rows_affected is 12089"),
        (lambda context: api.Result(details=[1]), "details is list"),  # type: ignore[arg-type]
    ],
)
def test_rubbish_is_refused_with_what_a_handler_returns(
    handler: Callable[[Any], Any], fault: str
) -> None:
    """The author reads what is wrong and what is right."""
    ending = ended(made(handler))
    assert ending.code is FailureCode.HANDLER_ERROR
    assert ending.message.startswith(f"the result was refused: {fault}")
    assert ending.message.endswith("a handler returns poller.jobs.api.Result, a mapping or None")


def busy(inside: threading.Event) -> Callable[[Any], None]:
    def handler(_context: Any) -> None:
        inside.set()
        while True:
            pass

    return handler


def polite(inside: threading.Event) -> Callable[[Any], None]:
    def handler(context: Any) -> None:
        inside.set()
        while True:
            context.heartbeat()

    return handler


def asleep(inside: threading.Event) -> Callable[[Any], None]:
    """A call in C: the interruption is seen when it returns."""

    def handler(_context: Any) -> None:
        inside.set()
        time.sleep(0.3)
        time.sleep(3600)

    return handler


def awaiting(inside: threading.Event) -> Callable[[Any], Any]:
    async def handler(_context: Any) -> None:
        inside.set()
        await asyncio.sleep(3600)

    return handler


def blocking_its_loop(inside: threading.Event) -> Callable[[Any], Any]:
    async def handler(_context: Any) -> None:
        inside.set()
        while True:
            pass

    return handler


def hiding(inside: threading.Event) -> Callable[[Any], Any]:
    """A handler that turns its cancellation into an error."""

    def handler(_context: Any) -> None:
        inside.set()
        try:
            while True:
                pass
        except BaseException as error:
            raise ValueError("bad") from error

    return handler


@pytest.mark.parametrize("kind", [busy, polite, asleep, awaiting, blocking_its_loop, hiding])
def test_a_cancelled_handler_ends(kind: Callable[[threading.Event], Callable[[Any], Any]]) -> None:
    """Whatever it does; an async one that blocks its loop at the third time."""
    inside = threading.Event()
    call = made(kind(inside))
    assert inside.wait(10)
    while not call.has_ended:
        call.cancel()
        time.sleep(0.02)
    assert call.ending.result is None
    assert call.ending.code is not None


def test_a_handler_that_has_ended_is_not_cancelled() -> None:
    """Its ending counts, and its thread is not interrupted in our code."""
    for _ in range(300):
        call = made(lambda context: {"done": True})
        is_cancelled = call.cancel()
        ending = ended(call)
        assert ending.code is (FailureCode.CANCELED if is_cancelled else None)


def test_a_handler_that_ignores_its_cancellation_is_found_in_its_code() -> None:
    """The stack names the function; the listeners are called when it ends at last."""
    over = threading.Event()
    inside = threading.Event()

    def stubborn(_context: Any) -> None:
        inside.set()
        while not over.is_set():
            try:
                while not over.wait(0.01):
                    pass
            except api.Cancelled:
                continue

    call = made(stubborn)
    assert inside.wait(10)
    assert call.cancel()
    assert call.cancel()
    time.sleep(0.05)
    assert not call.has_ended
    assert "stubborn" in call.location
    over.set()
    assert ended(call).result == api.Result()


def test_a_thread_that_cannot_be_started_is_a_failure() -> None:
    """The system may have no more threads."""
    services: Any = None
    call = HandlerCall(lambda context: None, RunContext(services, PLAN, 1, "w"), "job-tidy")
    call.abandon("no thread")
    assert call.has_ended
    assert call.ending.code is FailureCode.HANDLER_ERROR


class Hoard:
    """Something large that a handler holds."""


def hoarding(kept: list[weakref.ref[Hoard]], error: type[BaseException]) -> Callable[[Any], None]:
    def inner() -> None:
        hoard = Hoard()
        kept.append(weakref.ref(hoard))
        raise MemoryError

    def handler(_context: Any) -> None:
        try:
            inner()
        except MemoryError:
            raise error from None

    return handler


@pytest.mark.parametrize("error", [MemoryError, SystemExit])
def test_a_failure_keeps_nothing_of_the_handler_alive(error: type[BaseException]) -> None:
    """The exception is kept for the log, and with it the frames: their locals are freed at once,
    not by the next collection of garbage. A handler that took all memory would keep it.
    """
    kept: list[weakref.ref[Hoard]] = []
    gc.disable()
    try:
        ending = ended(made(hoarding(kept, error)))
        assert kept[0]() is None
    finally:
        gc.enable()
    assert ending.error is not None
    names = [frame.name for frame in traceback.extract_tb(ending.error.__traceback__)]
    assert names[-1] == "handler"
