"""Adapts a blocking collector to the async contract: its generator runs in an executor thread.

The executor limits the number of threads and replaces threads that never return.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from poller import errors, poll_secrets
from poller.collectors.api import Collector, Poll


async def stream(collector: Collector, poll: Poll, max_items: int) -> AsyncIterator[Any]:
    """Yield the collector's items once its thread ends or is cut off; at most `max_items` + 1."""
    work = _ThreadPoll(collector, poll, max_items)
    queued_mono = time.monotonic()
    try:
        await asyncio.get_running_loop().run_in_executor(None, work.run)
    except asyncio.CancelledError:
        work.cut_off = True
        for item in list(work.items):
            yield item
        if not work.started:
            raise _no_thread(collector, time.monotonic() - queued_mono) from None
        raise
    for item in work.items:
        yield item
    if work.error is not None:
        raise work.error


class _ThreadPoll:
    """One poll in its thread. The event loop sets `cut_off`; the thread ends at its next item."""

    def __init__(self, collector: Collector, poll: Poll, max_items: int) -> None:
        self.started = False
        self.cut_off = False
        self.items: list[object] = []
        self.error: BaseException | None = None
        self._collector = collector
        self._poll = poll
        self._max_items = max_items

    def run(self) -> None:
        """Collect all items. Never raises: a future cannot carry every kind of exception."""
        self.started = True
        poll_secrets.use(self._poll.credential)
        try:
            self._take_all(self._collector.collect(self._poll))
        except BaseException as error:  # noqa: BLE001  door: a plugin; `stream` raises it again
            self.error = error
        finally:
            poll_secrets.use(None)  # the thread is used again
        if self.cut_off:  # the poll is over, and its error would keep this object in a cycle
            self.items = []
            self.error = None

    def _take_all(self, items: Any) -> None:
        try:
            for item in items:
                self.items.append(item)
                if self.cut_off or len(self.items) > self._max_items:
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
