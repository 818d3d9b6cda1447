"""An event loop whose clock stands still while something happens, and jumps when nothing does: a day in minutes.

Sockets are real. A jump is made only when none of them has anything to say, so that both ends must live on this loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import time
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
#: While somebody waits for an answer: how long, in earnest, the kernel may take to hand it over before the clock jumps.
GRACE_S = 0.002


class _Selector(selectors.EpollSelector):
    """Does not wait: says how long one would have had to."""

    jumped_s = 0.0
    waiting = 0  # for answers

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
    slowest_step_s = 0.0  # of CPU, between two looks at the sockets

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
        """Something is on its way to a socket: the clock must not run ahead of it."""
        self._virtual.waiting += 1
        try:
            yield
        finally:
            self._virtual.waiting -= 1


def run(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main)
