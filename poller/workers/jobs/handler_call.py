"""One call of a handler, in a thread of its own: how it ended, and how it is cancelled.

A handler is plugin code: it may raise anything, return anything, and go on after its cancellation.
"""

from __future__ import annotations

import asyncio
import ctypes
import enum
import inspect
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from poller.domain.jobs.job_run import FailureCode
from poller.jobs import plugin_values
from poller.jobs.api import Cancelled, Handler, Result
from poller.workers.guard import running_code
from poller.workers.jobs.run_context import RunContext

#: Characters of an exception that are kept before secrets are masked. The ledger stores fewer.
LONGEST_MESSAGE = 8_000
#: Frames of a handler that goes on after its cancellation.
STACK_FRAMES = 12
#: Cancellations of an awaiting handler that go through asyncio, before its thread is interrupted.
GENTLE_CANCELLATIONS = 2

_RIGHT_RESULT = "a handler returns poller.jobs.api.Result, a mapping or None"


class Ending(NamedTuple):
    """How a handler ended: a result, or a failure code with a message."""

    result: Result | None = None
    code: FailureCode | None = None
    message: str = ""
    error: BaseException | None = None


class _Phase(enum.Enum):
    NEW = "new"
    INSIDE = "inside"  # the handler runs; only then its thread may be interrupted
    LEFT = "left"


class HandlerCall:
    """One call. `start` and `cancel` belong to the thread that watches it."""

    def __init__(self, handler: Handler, context: RunContext, name: str) -> None:
        self._handler = handler
        self._context = context
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._lock = threading.Lock()
        self._phase = _Phase.NEW
        self._ending = Ending(code=FailureCode.CANCELED, message="the run was cancelled")
        self._listeners: list[Callable[[], None]] = []
        self._cancellations = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        """Start the thread. Raises RuntimeError if the system has no more threads."""
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        return self._phase is _Phase.LEFT

    @property
    def ending(self) -> Ending:
        """How the handler ended, once it has."""
        return self._ending

    @property
    def location(self) -> str:
        """Where the handler is: files, lines and functions of its stack."""
        return running_code.thread_location(self._thread.ident or 0, STACK_FRAMES)

    def when_ended(self, listener: Callable[[], None]) -> None:
        """Call a function when the handler ends, or now if it has. It must not raise."""
        with self._lock:
            if self._phase is not _Phase.LEFT:
                self._listeners.append(listener)
                return
        listener()

    def cancel(self) -> bool:
        """Cancel the handler; each further call is one more attempt.

        Returns False if the handler had ended: then its ending counts.
        """
        with self._lock:
            if self._phase is _Phase.LEFT:
                return False
            self._context.cancel()
            self._cancellations += 1
            if self._phase is _Phase.INSIDE:
                self._interrupt()
            return True

    def abandon(self, reason: str) -> None:
        """End a call that could not be started."""
        with self._lock:
            self._ending = Ending(code=FailureCode.HANDLER_ERROR, message=reason)
            self._phase = _Phase.LEFT

    def _interrupt(self) -> None:
        is_gentle = self._cancellations <= GENTLE_CANCELLATIONS
        if self._loop is not None and self._task is not None and is_gentle:
            with suppress(RuntimeError):  # the loop has just been closed
                self._loop.call_soon_threadsafe(self._task.cancel)
            return
        _raise_in_thread(self._thread.ident, Cancelled)

    def _run(self) -> None:
        """Call the handler and leave it. An interruption may come at any line until then."""
        has_begun = False
        while self._phase is not _Phase.LEFT:
            with suppress(Cancelled):
                if not has_begun:
                    has_begun = True
                    self._ending = self._call()
                self._leave()
        for listener in self._listeners:
            listener()

    def _call(self) -> Ending:
        try:
            with self._lock:
                self._phase = _Phase.INSIDE
            self._context.heartbeat()
            value = self._handler(self._context)
            if inspect.isawaitable(value):
                value = asyncio.run(self._awaited(value))
            return _ending_of(value)
        except Exception as error:  # noqa: BLE001  door: a plugin's handler
            _free_locals(error)
            return Ending(code=FailureCode.HANDLER_ERROR, message=describe(error), error=error)
        except BaseException as error:  # noqa: BLE001  door: a plugin's handler, SystemExit too
            if self._context.cancelled:
                return self._ending
            _free_locals(error)
            return Ending(code=FailureCode.HANDLER_PANIC, message=describe(error), error=error)

    async def _awaited(self, value: Any) -> Any:
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.current_task()
        self._context.heartbeat()
        return await value

    def _leave(self) -> None:
        """From here on the thread is not interrupted; an interruption under way is dropped."""
        with self._lock:
            _raise_in_thread(threading.get_ident(), None)
            self._phase = _Phase.LEFT


def _raise_in_thread(thread_id: int | None, kind: type[BaseException] | None) -> None:
    """Have a thread raise at its next line of Python; None takes a pending one back."""
    exception = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id or 0), exception)


def _ending_of(value: Any) -> Ending:
    """Check what a handler returned. Raises what a plugin's mapping raises."""
    try:
        return Ending(plugin_values.result(value))
    except plugin_values.Refused as error:
        message = f"the result was refused: {error}; {_RIGHT_RESULT}"
        return Ending(code=FailureCode.HANDLER_ERROR, message=message)


def _free_locals(error: BaseException) -> None:
    """Free what the frames of a handler hold: they live as long as its exception.

    Lines and names of functions stay for the log.
    """
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        traceback.clear_frames(each.__traceback__)
        each = each.__cause__ or each.__context__


def describe(error: BaseException) -> str:
    """The class of an exception and its text. Never raises."""
    kind = type(error).__name__
    try:
        text = str(error)[:LONGEST_MESSAGE]
    except BaseException:  # noqa: BLE001  door: a plugin's exception, which may raise in __str__
        text = "(its text cannot be read)"
    return f"{kind}: {text}" if text else kind
