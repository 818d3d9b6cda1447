"""The page of events: what changed, the newest first, and a file of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from poller import errors, event_publisher
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.event_kinds import EventFilter
from poller.presentation.history import spreadsheet_cells
from poller.service.record import event_listing
from poller.service.record.event_listing import FoundEvents, FoundGroups
from poller.web import error_responses
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Reading
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame
from poller.web.pages.record import events_page, events_query
from poller.web.pages.record.events_query import EventsQuery, EventView, RequestedEvents

_CSV_COLUMNS = ("at", "kind", "device", "target", "message")
_CSV_PAGE = 1_000


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the page of events and its file."""

    @app.get("/events", response_class=HTMLResponse)
    def list_events(
        request: Request, call: Reading, frame: RequestedFrame, query: RequestedEvents
    ) -> Response:
        """Events in groups, or one by one. A wrong filter keeps its texts."""
        problem: errors.PollerError | None = None
        found: FoundEvents | FoundGroups = FoundGroups((), None)
        wanted, status, wrong = TargetFilter(), 200, "where"
        try:
            wanted = query.wanted
            wrong = ""
            found = _found(call, query)
        except errors.ConfigError as error:
            problem, status = error, problems.status(error)
            wrong = wrong or events_page.wrong_field(error)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        view = events_page.build_view(query, wanted, found, event_publisher.now_ms())
        return page.respond(
            "record/events.html", frame, status, view=view, problem=problem, wrong=wrong
        )

    @app.get("/events/-/events.csv")
    def export(call: Reading, query: RequestedEvents) -> StreamingResponse:
        """All events that match, as a file that is streamed."""
        headers = {"Content-Disposition": 'attachment; filename="events.csv"'}
        # The first page is read at once: a wrong filter is an error, not a file that ends early.
        wanted = event_listing.event_filter(call.services, call.actor, query.events)
        first = event_listing.page(call.services, wanted, _CSV_PAGE)
        lines = _lines(call, wanted, first)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def _found(call: Call, query: EventsQuery) -> FoundEvents | FoundGroups:
    wanted = event_listing.event_filter(call.services, call.actor, query.events)
    before = query.after_key
    if query.view is EventView.EVENTS:
        return event_listing.page(call.services, wanted, events_query.LIMIT, before)
    return event_listing.page_of_groups(call.services, wanted, events_query.LIMIT, before)


def _lines(call: Call, wanted: EventFilter, found: FoundEvents) -> Iterator[str]:
    yield _line(list(_CSV_COLUMNS))
    while True:
        rows = [events_page.row(each.event) for each in found.events]
        yield "".join(_line([row[name] for name in _CSV_COLUMNS]) for row in rows)
        if found.next_key is None:
            return
        found = event_listing.page(call.services, wanted, _CSV_PAGE, found.next_key)


def _line(texts: list[str]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow([spreadsheet_cells.written(text) for text in texts])
    return written.getvalue()
