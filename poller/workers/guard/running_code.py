"""Whose code runs on the loop at this moment? Every step of a poll's tasks, and of tasks these start, is marked.

Costs a few writes to memory per step. Callbacks that a collector leaves with the loop are not marked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from typing import Any

from poller.workers.guard import marks
from poller.workers.guard.marks import FLIGHT, STEPS, TARGET

_polled: ContextVar[tuple[int, int] | None] = ContextVar("polled", default=None)


def mark(target_id: int, flight: int) -> None:
    """Tasks that are started from here on are this target's, of the flight with this number."""
    _polled.set((target_id, flight))


def polled() -> marks.Whose | None:
    """The target whose code asks, and its flight; None if it is nobody's."""
    return _polled.get()


class TaskFactory:
    """For the loop: its tasks note in the box when they run."""

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells

    def __call__(
        self, loop: asyncio.AbstractEventLoop, work: Any, *, context: Context | None = None
    ) -> asyncio.Task[Any]:
        whose = _polled.get() if context is None else context.get(_polled)
        if whose is not None:
            work = _Marked(work, self._cells, *whose)
        return asyncio.Task(work, loop=loop, context=context)


class _Marked(Coroutine[Any, Any, Any]):
    """A coroutine, with a note of who it is around each of its steps."""

    __slots__ = ("_cells", "_flight", "_target_id", "_work")

    def __init__(
        self, work: Coroutine[Any, Any, Any], cells: memoryview, target_id: int, flight: int
    ) -> None:
        self._work = work
        self._cells = cells
        self._target_id = target_id
        self._flight = flight

    def send(self, value: Any) -> Any:
        return self._step(self._work.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._work.throw, *error)

    def _step(self, go_on: Callable[..., Any], *how: Any) -> Any:
        cells = self._cells
        cells[STEPS] += 1
        cells[FLIGHT] = self._flight
        cells[TARGET] = self._target_id
        try:
            return go_on(*how)
        finally:
            cells[TARGET] = 0

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()
