"""The frames of the live page: the first frame has every cell, later ones only changed cells."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

from fastapi.sse import ServerSentEvent

from poller.web.api.snapshot import Snapshots
from poller.web.pages.overview_page import OverviewView

FRAME_S = 1.0
RETRY_MS = 2_000


async def frames(
    snapshots: Snapshots,
    build: str,
    stopping: asyncio.Event,
    period_s: float = FRAME_S,
) -> AsyncIterator[ServerSentEvent]:
    """Yield at most one frame per period until `stopping` is set.

    A page whose assets are not those of `build` reloads itself.
    """
    shown: OverviewView | None = None
    jitter_ms = random.randrange(RETRY_MS)  # noqa: S311 - spreads reconnects, guards nothing
    retry_ms: int | None = RETRY_MS + jitter_ms  # in the first frame only

    while not stopping.is_set():
        snapshot = await snapshots.get()
        view = snapshot.view
        changed = changes(shown, view)
        if changed:
            frame = {"shape": f"{view.layout}-{build}", **changed}
            data = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
            yield ServerSentEvent(raw_data=data, event="patch", retry=retry_ms)
            retry_ms = None
            shown = view

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
