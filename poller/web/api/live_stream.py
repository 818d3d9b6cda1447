"""The live page's frames: a first one with everything, then only the cells that changed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator

from fastapi.sse import ServerSentEvent

from poller.web.api.snapshot import Snapshots
from poller.web.pages import overview_page
from poller.web.pages.overview_page import View

FRAME_S = 1.0
RETRY_MS = 2_000


async def frames(
    snapshots: Snapshots,
    build: str,
    stopping: asyncio.Event,
    period_s: float = FRAME_S,
) -> AsyncIterator[ServerSentEvent]:
    """At most one frame a second until the server stops. `build` names the assets the page must have."""
    shown: View | None = None
    retry = RETRY_MS + random.randrange(RETRY_MS)  # noqa: S311 - spreads reconnects, guards nothing
    while not stopping.is_set():
        snapshot = await snapshots.get()
        changed = overview_page.changes(shown, snapshot.view)
        if changed:
            shape = f"{snapshot.view.layout}-{build}"
            data = json.dumps(
                {"shape": shape, **changed}, ensure_ascii=False, separators=(",", ":")
            )
            yield ServerSentEvent(raw_data=data, event="patch", retry=None if shown else retry)
            shown = snapshot.view
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), period_s)
