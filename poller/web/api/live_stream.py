"""The frames of the live page: the first frame has every cell, later ones only changed cells.

All streams of a process share its snapshots and the texts of their frames, so a further stream
costs little more than its bytes; `StreamSlots` limits their number.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

from fastapi import HTTPException

from poller.web.api.snapshot import Snapshots
from poller.web.pages.fleet.overview_page import OverviewView

FRAME_S = 1.0
RETRY_MS = 2_000
#: A comment after this many quiet periods keeps proxies from closing the connection.
PING_EVERY = 15
PING = b": ping\n\n"
#: When a page that got no slot should ask again.
RETRY_AFTER_S = 10
MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class StreamSlots:
    """The streams that may be open at the same time. A FastAPI dependency takes one."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.open = 0
        self.of_programs = 0  # those of them that /api/v1/events/stream has

    @property
    def is_full_for_programs(self) -> bool:
        """Whether programs have their half: one token must not take the streams of all pages."""
        return self.is_full or self.of_programs >= (self.most + 1) // 2

    @property
    def is_full(self) -> bool:
        return self.open >= self.most

    async def taken(self) -> AsyncIterator[None]:
        """Hold a slot until the response has ended. Raises HTTPException 503 if all are taken."""
        if self.is_full:
            raise HTTPException(
                503,
                f"{self.most} pages are kept up to date already (POLLER_WEB_STREAMS)",
                headers={"Retry-After": str(RETRY_AFTER_S)},
            )
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


class FrameTexts:
    """Encodes each change of the page once, for all streams that show the same old view."""

    def __init__(self, build: str) -> None:
        self._build = build
        self._new: OverviewView | None = None
        #: By the identity of the old view, which is held here so that it stays unique.
        self._encoded: dict[int, tuple[OverviewView | None, bytes]] = {}

    def of_change(self, old: OverviewView | None, new: OverviewView) -> bytes:
        """The frame that turns a page of `old` into a page of `new`; empty if they are equal."""
        if new is not self._new:
            self._new = new
            self._encoded = {}

        known = self._encoded.get(id(old))
        if known is None:
            known = self._encoded[id(old)] = (old, self._encode(old, new))
        return known[1]

    def _encode(self, old: OverviewView | None, new: OverviewView) -> bytes:
        changed = changes(old, new)
        if not changed:
            return b""
        frame = {"shape": f"{new.layout}-{self._build}", **changed}
        data = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
        return f"event: patch\ndata: {data}\n\n".encode()


async def frames(
    snapshots: Snapshots,
    texts: FrameTexts,
    stopping: asyncio.Event,
    period_s: float = FRAME_S,
) -> AsyncIterator[bytes]:
    """Yield at most one frame per period until `stopping` is set."""
    shown: OverviewView | None = None
    quiet = 0
    jitter_ms = random.randrange(RETRY_MS)  # noqa: S311 - spreads reconnects, guards nothing
    yield f"retry: {RETRY_MS + jitter_ms}\n\n".encode()

    while not stopping.is_set():
        view = (await snapshots.get()).view
        frame = texts.of_change(shown, view)
        shown = view
        quiet = 0 if frame else quiet + 1
        if frame:
            yield frame
        elif quiet % PING_EVERY == 0:
            yield PING

        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), period_s)


def changes(old: OverviewView | None, new: OverviewView) -> dict[str, Any]:
    """The changes that turn a page of `old` into a page of `new`; None removes a cell."""
    changed: dict[str, Any] = {}
    for part in ("texts", "tones", "rows", "plots"):
        before = getattr(old, part) if old else {}
        difference = _difference(before, getattr(new, part))
        if difference:
            changed[part] = difference
    return changed


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The new and changed entries, and None for each removed one."""
    difference: dict[str, Any] = {}
    for key, value in new.items():
        is_new = key not in old
        if is_new or old[key] != value:
            difference[key] = value

    for key in old:
        if key not in new:
            difference[key] = None
    return difference
