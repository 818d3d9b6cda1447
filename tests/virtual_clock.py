"""An event loop whose clock jumps over idle time, so that a day takes minutes.

Sockets are real. The clock jumps only when no socket of the loop has data, so both ends of a
connection must be on this loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import time
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
#: The real time that the kernel may take to deliver an expected response before the clock jumps.
GRACE_S = 0.002


class _Selector(selectors.EpollSelector):
    """Returns at once, and adds the time of the wait to the clock."""

    jumped_s = 0.0
    waiting = 0  # number of expected responses

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            return super().select(None)
        if self.waiting:
            ready = super().select(GRACE_S)
        if not ready:
            self.jumped_s += timeout
        return ready


class Loop(asyncio.SelectorEventLoop):
    slowest_step_s = 0.0  # of CPU, between two polls of the sockets

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.jumped_s

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        self.slowest_step_s = max(self.slowest_step_s, time.thread_time() - began)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Keep the clock from running ahead of data that is on its way to a socket."""
        self._virtual.waiting += 1
        try:
            yield
        finally:
            self._virtual.waiting -= 1


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main)
