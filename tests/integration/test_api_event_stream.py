"""The stream of events over HTTP: from now on or after an id, filtered, and from one reader."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.inventory import devices
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft
from poller.domain.record.event_kinds import Event, EventFilter, Kind
from poller.state.cluster import event_stream
from poller.web.api.record import event_viewers
from poller.web.api.record.event_viewers import EventFeed, Viewer
from tests.integration import api_clients

NOW = time.time_ns() // 1_000_000


def publish(services: Services, *messages: str, kind: Kind = Kind.CLOCK_MOVED) -> None:
    events = [Event(NOW, kind, message) for message in messages]
    event_stream.publish(services.redis, services.keys, events, 10_000)


def everything() -> EventFilter:
    return EventFilter()


async def messages(feed: EventFeed, viewer: Viewer, number: int) -> list[str]:
    """The messages of the first events of a viewer."""
    found: list[str] = []
    async for frame in feed.frames(viewer):
        for line in frame.decode().splitlines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: "))["message"])
        if len(found) >= number:
            break
    return found


def run(services: Services, act: Callable[[EventFeed], Awaitable[Any]]) -> Any:
    """Run a test with a feed of its own, and stop its reader."""

    async def main() -> Any:
        stopping = asyncio.Event()
        feed = EventFeed(services, stopping)
        try:
            return await asyncio.wait_for(act(feed), 20)
        finally:
            stopping.set()

    return asyncio.run(main())


def test_a_viewer_goes_on_after_its_last_event(services: Services) -> None:
    """Events that came while it was away are sent first, then new ones, each once."""
    publish(services, "one", "two", "three")
    first = event_stream.newest(services.redis, services.keys, 3)[-1].id

    async def act(feed: EventFeed) -> list[str]:
        reading = asyncio.create_task(messages(feed, Viewer(everything(), everything, first), 3))
        await asyncio.sleep(0.1)
        publish(services, "four")
        return await reading

    assert run(services, act) == ["two", "three", "four"]


def test_many_viewers_have_one_reader(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten viewers see every event, and only one read of Redis waits at a time."""
    waiting: list[int] = []
    most: list[int] = []
    after = event_stream.after

    def counted(*arguments: Any) -> Any:
        waiting.append(1)
        most.append(len(waiting))
        try:
            return after(*arguments)
        finally:
            waiting.pop()

    monkeypatch.setattr(event_viewers.event_stream, "after", counted)
    publish(services, "before")
    last = event_stream.newest(services.redis, services.keys, 1)[0].id

    async def act(feed: EventFeed) -> list[list[str]]:
        viewers = [Viewer(everything(), everything, last) for _ in range(10)]
        reading = [asyncio.create_task(messages(feed, viewer, 2)) for viewer in viewers]
        await asyncio.sleep(0.2)
        publish(services, "a", "b")
        return list(await asyncio.gather(*reading))

    assert run(services, act) == [["a", "b"]] * 10
    assert max(most) == 1


def test_a_viewer_far_behind_misses_nothing(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no longer in memory is read from Redis, page by page."""
    monkeypatch.setattr(event_viewers, "PAGE", 20)
    names = [f"m{number}" for number in range(150)]
    publish(services, *names)
    viewer = Viewer(everything(), everything, event_stream.BEGINNING)
    assert run(services, lambda feed: messages(feed, viewer, 150)) == names


def test_a_viewer_sees_what_its_filter_accepts(services: Services) -> None:
    """Other events only move its position."""
    publish(services, "other")
    publish(services, "wanted", kind=Kind.JOB_FAILED)
    wanted = EventFilter(kinds=(Kind.JOB_FAILED,))
    viewer = Viewer(wanted, lambda: wanted, event_stream.BEGINNING)
    assert run(services, lambda feed: messages(feed, viewer, 1)) == ["wanted"]


def test_the_route_ends_when_the_process_stops(services: Services) -> None:
    """A stop waits for no viewer; the response is a stream of events."""
    response = api_clients.client(services, ended=True).get("/api/v1/events/stream")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.startswith("retry: ")


@pytest.mark.parametrize("last_id", ["nonsense", "1", "1-", "99999999999999999999-0"])
def test_a_wrong_id_is_refused(services: Services, last_id: str) -> None:
    """Only an id of the stream is accepted."""
    headers = {"Last-Event-ID": last_id}
    api = api_clients.client(services, ended=True)
    assert api.get("/api/v1/events/stream", headers=headers).status_code == 422


def test_the_number_of_streams_is_limited(services: Services) -> None:
    """A further one is told to come back, and a device of another site is not found."""
    api = api_clients.client(services, ended=True)
    api.app.state.stream_slots.most = 0  # type: ignore[attr-defined]
    assert api.get("/api/v1/events/stream").status_code == 429
    devices.add(services.engine, DeviceDraft("sw1", address="192.0.2.1", site="ams"))
    limited = api_clients.client(services, (Scope.READ,), "ber", ended=True)
    assert limited.get("/api/v1/events/stream?device=sw1").status_code == 404
