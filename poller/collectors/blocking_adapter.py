"""A collector that blocks, seen as one that does not: its generator runs in a thread of the loop's executor.

How many threads there are, and what becomes of one that never comes back, is the executor's business.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from poller import errors
from poller.collectors.api import Collector, Poll


async def stream(collector: Collector, poll: Poll, most: int) -> AsyncIterator[Any]:
    """What it yields, at its end or when it is cut off; of more than `most` items the first ones."""
    work = _Work(collector, poll, most)
    asked = time.monotonic()
    try:
        await asyncio.get_running_loop().run_in_executor(None, work.run)
    except asyncio.CancelledError:
        work.cut = True
        for item in list(work.items):
            yield item
        if not work.begun:
            raise _no_thread(collector, time.monotonic() - asked) from None
        raise
    for item in work.items:
        yield item
    if work.error is not None:
        raise work.error


class _Work:
    """One poll in its thread. The loop only sets `cut`; the thread ends with the next item then."""

    def __init__(self, collector: Collector, poll: Poll, most: int) -> None:
        self.begun = False
        self.cut = False
        self.items: list[object] = []
        self.error: BaseException | None = None
        self._collector = collector
        self._poll = poll
        self._most = most

    def run(self) -> None:
        """Never raises: a future cannot carry everything that a generator may raise."""
        self.begun = True
        try:
            self._take_all(self._collector.collect(self._poll))
        except BaseException as error:  # noqa: BLE001  raised again where drain expects it
            self.error = error

    def _take_all(self, items: Any) -> None:
        try:
            for item in items:
                self.items.append(item)
                if self.cut or len(self.items) > self._most:
                    return
        finally:
            if hasattr(items, "close"):
                items.close()


def _no_thread(collector: Collector, waited_s: float) -> errors.CollectorBusy:
    return errors.CollectorBusy(
        f"collector {collector.name} got no thread within {waited_s:.1f} s, so nothing was sent",
        cause="all of its threads in this worker are at work",
        hint="more workers, or a higher POLLER_BLOCKING_THREADS",
    )
