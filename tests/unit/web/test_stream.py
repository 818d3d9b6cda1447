"""The frames a live page gets."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json

import web_overviews as fleet

from poller.domain.record.overview import Overview
from poller.web.api import live_stream
from poller.web.api.snapshot import Snapshots
from poller.web.pages import overview_page


def frames_of(*overviews: Overview) -> list[dict[str, object]]:
    """What one viewer gets while the board shows these, one after another."""

    async def watch() -> list[dict[str, object]]:
        ticks = itertools.count()
        supply = iter(overviews)
        stopping = asyncio.Event()

        def read() -> Overview:
            latest = next(supply)
            if latest is overviews[-1]:
                stopping.set()
            return latest

        snapshots = Snapshots(
            read, lambda: float(next(ticks))
        )  # each look finds the last one too old
        return [
            json.loads(frame.raw_data or "")
            async for frame in live_stream.frames(snapshots, "build", stopping, period_s=0.001)
        ]

    return asyncio.run(watch())


def test_the_first_frame_is_whole_and_the_next_only_what_changed() -> None:
    """A page that was loaded a moment ago is brought up to date, then patched."""
    later = dataclasses.replace(fleet.HEALTHY, polls_per_second=12.0)
    first, second = frames_of(fleet.HEALTHY, later)
    assert first["texts"] == overview_page.present(fleet.HEALTHY).texts
    assert second == {"shape": "overview-build", "texts": {"throughput": "12 /s"}}


def test_nothing_new_is_no_frame() -> None:
    """An unchanged board sends nothing; the server's heartbeat keeps the connection."""
    same = dataclasses.replace(fleet.HEALTHY)
    assert len(frames_of(fleet.HEALTHY, fleet.HEALTHY, same)) == 1


def test_a_new_layout_tells_the_page_to_load_itself_again() -> None:
    """The first device ends the first-run page."""
    first, second = frames_of(fleet.EMPTY, fleet.HEALTHY)
    assert (first["shape"], second["shape"]) == ("first-run-build", "overview-build")


def test_a_stop_ends_the_stream_at_once() -> None:
    """A server that stops does not wait for the next frame."""

    async def watch() -> float:
        stopping = asyncio.Event()
        frames = live_stream.frames(
            Snapshots(lambda: fleet.HEALTHY), "build", stopping, period_s=3600
        )
        await anext(frames)
        asyncio.get_running_loop().call_later(0.01, stopping.set)
        began = asyncio.get_running_loop().time()
        assert [frame async for frame in frames] == []
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(watch()) < 1
