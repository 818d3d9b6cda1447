"""The stream of events for HTTP clients: one reader of Redis per process, however many viewers.

The reader keeps the newest entries in memory and wakes the viewers. A viewer knows only the id of
its last entry; one that is further behind than the memory reads Redis itself, page by page.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.bootstrap import Services
from poller.domain.record.event_kinds import EventFilter
from poller.presentation import event_json
from poller.state.cluster import event_stream
from poller.state.cluster.event_stream import Entry
from poller.web.api import live_stream
from poller.web.api.live_stream import StreamSlots

__all__ = ["EventFeed", "EventFilter", "Viewer", "checked_id", "slot"]

LONGEST_ID = 41
#: Entries that are kept in memory, and read at once.
PAGE = 1_000
#: One read of the stream waits this long for new entries. A stop waits for it.
WAIT_MS = 500
RETRY_S = 1.0
#: A comment after this long keeps proxies from closing the connection.
PING_S = 15.0
#: The rights of a viewer are checked anew at its next connection.
LONGEST_S = 600.0
#: The devices of a viewer's site are read anew after this long.
FILTER_S = 30.0
_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_LARGEST = 2**64 - 1


@dataclass(slots=True)
class Viewer:
    """One client: its filter, how to make it anew, and the id of the last entry that it has."""

    wanted: EventFilter
    make_filter: Callable[[], EventFilter]
    last_id: str = ""  # "": only events from now on


def checked_id(text: str) -> str:
    """Return an entry id of a client. Raises InvalidInput."""
    if not text:
        return ""
    if not _ID.fullmatch(text) or any(int(part) > _LARGEST for part in text.split("-")):
        raise errors.InvalidInput(
            "Last-Event-ID: this is not the id of an event", hint="send `id` of an event unchanged"
        )
    return text


async def slot(request: Request) -> AsyncIterator[None]:
    """Hold one of the streams of this process. Raises TooManyRequests if all are taken.

    Half of the streams are for pages.
    """
    slots: StreamSlots = request.app.state.stream_slots
    if slots.is_full_for_programs:
        raise errors.TooManyRequests(
            f"{slots.open} streams are open already", hint="ask again later, or /api/v1/events"
        )
    async with contextlib.asynccontextmanager(slots.taken)():
        slots.of_programs += 1
        try:
            yield
        finally:
            slots.of_programs -= 1


class EventFeed:
    """The newest entries of the stream. Lives on one event loop."""

    def __init__(self, services: Services, stopping: asyncio.Event) -> None:
        self._services = services
        self._stopping = stopping
        self._viewers = 0
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._entries: deque[Entry] = deque(maxlen=PAGE)
        self._complete_after = ""  # every entry after this id is in memory
        self._last_id = ""

    async def frames(self, viewer: Viewer) -> AsyncIterator[bytes]:
        """Yield the events of a viewer until its time is over or the process stops."""
        yield f"retry: {live_stream.RETRY_MS}\n\n".encode()
        self._viewers += 1
        try:
            async for frame in self._frames(viewer):
                yield frame
        finally:
            self._viewers -= 1

    async def _frames(self, viewer: Viewer) -> AsyncIterator[bytes]:
        end_mono = time.monotonic() + LONGEST_S
        filter_mono = time.monotonic() + FILTER_S
        ping_mono = time.monotonic() + PING_S
        while not self._stopping.is_set() and time.monotonic() < end_mono:
            self._read_on()
            changed = self._changed
            text = await self._next(viewer)
            now_mono = time.monotonic()
            if text or now_mono >= ping_mono:
                ping_mono = now_mono + PING_S
                yield text or live_stream.PING
            if viewer.wanted.visible is not None and now_mono >= filter_mono:
                filter_mono = now_mono + FILTER_S
                viewer.wanted = await self._renewed(viewer)
            if not self._has_more(viewer):
                await self._wait(changed)

    async def _next(self, viewer: Viewer) -> bytes:
        """Return the frames of the next entries of a viewer; empty if there are none."""
        try:
            entries = await self._after(viewer)
        except errors.StoreError:
            await asyncio.sleep(RETRY_S)  # Redis is away; the reader goes on when it is back
            return b""
        frames = []
        for entry in entries:
            viewer.last_id = entry.id
            if entry.event is not None and viewer.wanted.accepts(entry.event):
                frames.append(_frame(entry))
        return b"".join(frames)

    async def _after(self, viewer: Viewer) -> list[Entry]:
        if not self._last_id:
            return []
        if not viewer.last_id:
            viewer.last_id = self._last_id
        if event_stream.is_before(viewer.last_id, self._complete_after):
            client, keys = self._services.redis, self._services.keys
            return await run_in_threadpool(event_stream.after, client, keys, viewer.last_id, PAGE)
        last_id = viewer.last_id
        return [entry for entry in self._entries if event_stream.is_before(last_id, entry.id)]

    def _has_more(self, viewer: Viewer) -> bool:
        if not viewer.last_id or not self._last_id:
            return False
        return event_stream.is_before(viewer.last_id, self._last_id)

    async def _renewed(self, viewer: Viewer) -> EventFilter:
        with contextlib.suppress(errors.StoreError):  # the last filter stays in force
            return await run_in_threadpool(viewer.make_filter)
        return viewer.wanted

    async def _wait(self, changed: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), RETRY_S)

    def _read_on(self) -> None:
        """Start the reader unless it runs."""
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Read the stream while there are viewers."""
        client, keys = self._services.redis, self._services.keys
        if not self._last_id:
            await self._begin()
        while self._viewers and not self._stopping.is_set() and self._last_id:
            try:
                entries = await run_in_threadpool(
                    event_stream.after, client, keys, self._last_id, PAGE, WAIT_MS
                )
            except errors.StoreError:
                await asyncio.sleep(RETRY_S)
                continue
            if entries:
                self._add(entries)

    async def _begin(self) -> None:
        """Begin at the newest entry."""
        client, keys = self._services.redis, self._services.keys
        try:
            newest = await run_in_threadpool(event_stream.newest, client, keys, 1)
        except errors.StoreError:
            return  # the next look of a viewer starts the reader again
        self._last_id = newest[0].id if newest else event_stream.BEGINNING
        self._complete_after = self._last_id
        self._wake()

    def _add(self, entries: list[Entry]) -> None:
        overflow = len(self._entries) + len(entries) - PAGE
        if overflow > 0:
            gone = [*self._entries, *entries][overflow - 1]
            self._complete_after = gone.id
        self._entries.extend(entries)
        self._last_id = entries[-1].id
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _frame(entry: Entry) -> bytes:
    assert entry.event is not None
    data = json.dumps({"id": entry.id, **event_json.item(entry.event)}, ensure_ascii=False)
    return f"id: {entry.id}\ndata: {data}\n\n".encode()
