"""`/api/v1/events`: what changed, the newest first, and as a stream."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from poller.domain.inventory import target_filter
from poller.domain.record.event_kinds import Kind
from poller.presentation import event_json
from poller.service.record import event_listing
from poller.service.record.event_listing import EventQuery
from poller.web.api import live_stream
from poller.web.api.contract import paging, resources
from poller.web.api.contract.needs import Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.record import event_viewers, record_filters
from poller.web.api.record.event_viewers import EventFeed, Viewer
from poller.web.api.record.record_filters import Device, Since, Target, Until, Where

router = resources.router("events")

Kinds = Annotated[
    list[Kind] | None, Query(alias="kind", max_length=50, description="Repeat it for more.")
]
Bad = Annotated[bool, Query(description="Only changes for the worse.")]
LastEventId = Annotated[
    str,
    Header(
        alias="Last-Event-ID",
        max_length=event_viewers.LONGEST_ID,
        description="`id` of the last event that was received: the stream goes on after it.",
    ),
]


class StoredEvent(event_json.EventItem):
    """One change, and its id in the stream of events."""

    id: str


@router.get("")
def list_events(
    call: Reading,
    request: Request,
    response: Response,
    kinds: Kinds = None,
    device: Device = "",
    target: Target = "",
    where: Where = "",
    bad: Bad = False,
    since: Since = "",
    until: Until = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[StoredEvent]:
    """List events, the newest first.

    A page can have fewer items than its limit, also none: follow `next` until it is null.
    """
    key = paging.decode(cursor, int, str)
    before = (key[0], key[1]) if key else None
    query = EventQuery(
        kinds=kinds or (),
        device=device,
        target=target,
        wanted=target_filter.parse(where),
        since_ms=record_filters.since_ms(since),
        until_ms=record_filters.until_ms(until) or 0,
        bad=bad,
    )
    wanted = event_listing.event_filter(call.services, call.actor, query)
    found = event_listing.page(call.services, wanted, limit, before)
    following = paging.encode(found.next_key)
    paging.link_next(request, response, following)
    items = [StoredEvent(**event_json.item(each.event), id=each.id) for each in found.events]
    return Page(items=items, next=following)


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {live_stream.MEDIA_TYPE: {"schema": {"type": "string"}}}}},
    dependencies=[Depends(event_viewers.slot)],
)
async def stream_events(
    call: Reading,
    request: Request,
    kinds: Kinds = None,
    device: Device = "",
    target: Target = "",
    where: Where = "",
    bad: Bad = False,
    last_event_id: LastEventId = "",
) -> StreamingResponse:
    """Send events as they happen, as server-sent events: `id`, and `data` with one JSON object.

    The server ends the stream after some minutes; a client goes on with `Last-Event-ID`.
    """
    last_id = event_viewers.checked_id(last_event_id)
    query = EventQuery(
        kinds=kinds or (),
        device=device,
        target=target,
        wanted=target_filter.parse(where),
        bad=bad,
    )

    def wanted() -> event_viewers.EventFilter:
        return event_listing.event_filter(call.services, call.actor, query)

    chosen = await run_in_threadpool(wanted)
    feed: EventFeed = request.app.state.event_feed
    frames = feed.frames(Viewer(chosen, wanted, last_id))
    headers = live_stream.HEADERS
    return StreamingResponse(frames, media_type=live_stream.MEDIA_TYPE, headers=headers)
