"""The live stream: its frames, and the changes between two views."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json

import pytest
import web_overviews as fleet

from poller.domain.record.overview import Overview
from poller.web.api import live_stream
from poller.web.api.live_stream import FrameTexts
from poller.web.api.snapshot import Snapshots
from poller.web.backend_queries import usable_stores
from poller.web.pages.fleet import overview_page
from poller.web.pages.fleet.overview_page import OverviewView


def frames_of(*overviews: Overview) -> list[dict[str, object]]:
    """The frames of one viewer while the board shows these overviews, one after another."""

    async def watch() -> list[dict[str, object]]:
        ticks = itertools.count()
        supply = iter(overviews)
        stopping = asyncio.Event()

        def read() -> Overview:
            latest = next(supply)
            if latest is overviews[-1]:
                stopping.set()
            return latest

        # By this clock every snapshot is expired at the next read.
        snapshots = Snapshots(read, usable_stores, lambda: float(next(ticks)))
        texts = FrameTexts("build")
        return [
            json.loads(frame.partition(b"data: ")[2])
            async for frame in live_stream.frames(snapshots, texts, stopping, period_s=0.001)
            if b"data: " in frame
        ]

    return asyncio.run(watch())


def test_the_first_frame_has_everything_and_the_next_only_changes() -> None:
    """The first frame updates a page that was loaded a moment ago; later frames patch it."""
    later = dataclasses.replace(fleet.HEALTHY, polls_per_second=12.0)
    first, second = frames_of(fleet.HEALTHY, later)
    assert first["texts"] == overview_page.build_view(fleet.HEALTHY).texts
    assert second == {"shape": "overview-build", "texts": {"throughput": "12 /s"}}


def test_an_unchanged_board_sends_no_frame() -> None:
    """A comment now and then keeps the connection open."""
    same = dataclasses.replace(fleet.HEALTHY)
    assert len(frames_of(fleet.HEALTHY, fleet.HEALTHY, same)) == 1


def test_a_new_layout_has_a_new_shape() -> None:
    """A page reloads itself when the shape of a frame is not its own: the first device ends the
    first-run page.
    """
    first, second = frames_of(fleet.EMPTY, fleet.HEALTHY)
    assert (first["shape"], second["shape"]) == ("first-run-build", "overview-build")


def test_a_stop_ends_the_stream_at_once() -> None:
    """A stopping server does not wait for the next frame."""

    async def watch() -> float:
        stopping = asyncio.Event()
        frames = live_stream.frames(
            Snapshots(lambda: fleet.HEALTHY, usable_stores),
            FrameTexts("build"),
            stopping,
            period_s=3600,
        )
        assert (await anext(frames)).startswith(b"retry: ")
        await anext(frames)
        asyncio.get_running_loop().call_later(0.01, stopping.set)
        started = asyncio.get_running_loop().time()
        assert [frame async for frame in frames] == []
        return asyncio.get_running_loop().time() - started

    assert asyncio.run(watch()) < 1


def test_a_quiet_stream_sends_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies close a connection that says nothing for a minute."""
    monkeypatch.setattr(live_stream, "PING_EVERY", 2)

    async def watch() -> list[bytes]:
        snapshots = Snapshots(lambda: fleet.HEALTHY, usable_stores)
        texts = FrameTexts("build")
        frames = live_stream.frames(snapshots, texts, asyncio.Event(), period_s=0.001)
        return [await anext(frames) for _ in range(3)]

    assert asyncio.run(watch())[2] == live_stream.PING


def test_streams_share_the_texts_of_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is encoded once, however many pages are open."""
    encoded: list[object] = []
    real = live_stream.changes

    def counted(old: OverviewView | None, new: OverviewView) -> dict[str, object]:
        encoded.append(new)
        return real(old, new)

    monkeypatch.setattr(live_stream, "changes", counted)
    texts = FrameTexts("build")
    healthy = overview_page.build_view(fleet.HEALTHY)
    failing = overview_page.build_view(fleet.FAILING)
    whole = {texts.of_change(None, healthy) for _ in range(100)}
    patches = {texts.of_change(healthy, failing) for _ in range(100)}
    assert (len(whole), len(patches), len(encoded)) == (1, 1, 2)
    assert texts.of_change(None, failing) not in whole | patches


def patched(
    old: OverviewView | None, changed: dict[str, dict[str, object]]
) -> dict[str, dict[str, object]]:
    """The cells of a page that showed `old`, after a patch by the rule of the script."""
    parts = {
        part: dict(getattr(old, part)) if old else {}
        for part in ("texts", "tones", "rows", "plots")
    }
    for part, cells in changed.items():
        parts[part] |= cells
        parts[part] = {key: value for key, value in parts[part].items() if value is not None}
    return parts


def test_patches_produce_the_new_view() -> None:
    """The old view plus the changes is the new view, in both directions and from nothing."""
    healthy, failing = (
        overview_page.build_view(fleet.HEALTHY),
        overview_page.build_view(fleet.FAILING),
    )
    for old, new in ((None, healthy), (healthy, failing), (failing, healthy)):
        whole = {part: dict(getattr(new, part)) for part in ("texts", "tones", "rows", "plots")}
        assert patched(old, live_stream.changes(old, new)) == whole


def test_an_unchanged_view_has_no_changes() -> None:
    """Two views of the same overview are equal."""
    assert (
        live_stream.changes(
            overview_page.build_view(fleet.FAILING), overview_page.build_view(fleet.FAILING)
        )
        == {}
    )


def test_a_quiet_second_changes_little() -> None:
    """Only the clock and some ages change: less than 1 KB."""
    later = dataclasses.replace(fleet.HEALTHY, as_of_ms=fleet.NOW_MS + 1000)
    changed = live_stream.changes(
        overview_page.build_view(fleet.HEALTHY), overview_page.build_view(later)
    )
    assert set(changed) == {"texts"}
    assert changed["texts"]["as-of"] == "2026-11-17T00:13:13Z"
    assert len(str(changed)) < 1024
