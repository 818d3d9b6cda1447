"""A thread with an asyncio loop, for a sink whose client needs one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

T = TypeVar("T")

#: A coroutine has its own deadline; the thread that waits for it has this much more.
_GRACE_S = 1.0
_CLOSE_S = 5.0


class LoopThread:
    """The loop starts with its first coroutine and ends with `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run a coroutine and return its result. Raises its error, or TimeoutError."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._started())
        try:
            return future.result(timeout_s + _GRACE_S)
        except FutureTimeout:
            future.cancel()
            raise TimeoutError from None

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name=self._name, daemon=True
            )
            self._thread.start()
        return self._loop

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def close(self) -> None:
        """End the loop and its thread. A second call does nothing."""
        loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CLOSE_S)
        if not thread.is_alive():
            loop.close()
