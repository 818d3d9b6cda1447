"""The list of devices: the page, its strips and facets, completions, and the file of all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation.history import spreadsheet_cells
from poller.service.fleet import device_listing, facets, filter_actions, filter_completion
from poller.service.fleet.device_listing import DeviceList
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract.needs import Call, ReadingAll
from poller.web.pages.fleet import (
    day_strip,
    devices_page,
    devices_query,
    facets_view,
    saved_links,
)
from poller.web.pages.fleet.devices_query import DevicesQuery, RequestedDevices
from poller.web.pages.fleet.saved_links import SavingForm
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

_CSV_COLUMNS = ("name", "address", "site", "state", "last_ok_at", "every", "collectors", "tags")
_MOST_NAMES = 250
SEE_OTHER = 303


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the routes of the list of devices."""

    @app.get("/devices", response_class=HTMLResponse)
    def list_devices(
        request: Request, call: ReadingAll, frame: RequestedFrame, query: RequestedDevices
    ) -> Response:
        """The list of devices. A search that cannot be read keeps its text, with what is wrong."""
        try:
            return _list_page(call, page, frame, query)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

    @app.post("/devices", response_class=HTMLResponse)
    def change_saved(
        request: Request, call: ReadingAll, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Save a filter under a name, or remove a saved one."""
        query = devices_query.of_form(form)
        try:
            _save_or_remove(call, form, query)
        except errors.InvalidInput as error:
            wrong = SavingForm(form.one("name"), form.one("shared") == "yes", error)
            return _list_page(call, page, frame, query, wrong)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return RedirectResponse(query.url("devices"), SEE_OTHER)

    @app.get("/devices/-/strips", response_class=HTMLResponse)
    def strips(call: ReadingAll, name: Annotated[list[str], Query()]) -> JSONResponse:
        """The last 24 hours of the devices of a page, as pictures by name."""
        now_ms = call.services.board.now_ms()
        found = device_listing.strips(call.services, call.actor, name[:_MOST_NAMES], now_ms)
        pictures = {each: day_strip.svg(slots) for each, slots in found.items()}
        return JSONResponse(pictures)

    @app.get("/devices/-/facets", response_class=HTMLResponse)
    def list_facets(
        call: ReadingAll, frame: RequestedFrame, query: RequestedDevices
    ) -> HTMLResponse:
        """How many devices match, and links that narrow the filter."""
        wanted = query.wanted
        count = device_listing.count(call.services, call.actor, wanted)
        found = facets.of_fleet(call.services)
        view = facets_view.build(found, count, query, wanted, call.services.board.now_ms())
        return page.respond("fleet/facets.html", frame, view=view)

    @app.get("/devices/-/completions")
    async def completions(call: ReadingAll, word: str = "") -> JSONResponse:
        """The words that complete the last word of a search."""
        found = await run_in_threadpool(filter_completion.complete, call.services, word[:200])
        return JSONResponse(found)

    @app.get("/devices/-/devices.csv")
    def export(call: ReadingAll, query: RequestedDevices) -> StreamingResponse:
        """All rows that match, as a file that is streamed."""
        headers = {"Content-Disposition": 'attachment; filename="devices.csv"'}
        parts = device_listing.every(call.services, call.actor, query.wanted, query.sort)
        # The first part is read at once: a wrong filter is an error, not a file that ends early.
        lines = _lines(chain([next(parts)], parts))
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def _list_page(
    call: Call,
    page: PageRenderer,
    frame: Frame,
    query: DevicesQuery,
    saving: SavingForm | None = None,
) -> Response:
    """The list; a filter or a name that was refused keeps its text. Raises PollerError."""
    problem: errors.PollerError | None = None
    wanted = TargetFilter()
    found = device_listing.DeviceList((), None, call.services.board.now_ms())
    try:
        wanted = query.wanted
        found = device_listing.page(
            call.services, call.actor, wanted, query.limit, query.after_key, query.sort
        )
    except (errors.InvalidInput, errors.NotFound) as error:
        problem = error
    saved = filter_actions.listing(call.services, call.actor)
    view = devices_page.build_view(found, query, wanted)
    status_code = 422 if problem or saving else 200
    return page.respond(
        "fleet/devices.html",
        frame,
        status_code,
        view=view,
        problem=problem,
        saved=saved_links.build(saved, query, call.actor),
        saving=saving or SavingForm(),
    )


def _save_or_remove(call: Call, form: FormValues, query: DevicesQuery) -> None:
    """Raises InvalidInput, which names the field, NotFound, NotAllowed, StoreError."""
    name = form.one("name")
    if form.one("act") == "remove":
        filter_actions.remove(call.services, call.actor, name)
        return
    where = target_filter.text(query.wanted)
    shared = form.one("shared") == "yes"
    filter_actions.save(call.services, call.actor, name, where, query.sort, shared=shared)


def _lines(parts: Iterable[DeviceList]) -> Iterator[str]:
    yield spreadsheet_cells.line([*_CSV_COLUMNS, "error"])
    for part in parts:
        rows = [devices_page.row(each, part.now_ms) for each in part.devices]
        texts = [[getattr(row, name) for name in (*_CSV_COLUMNS, "error")] for row in rows]
        yield "".join(map(spreadsheet_cells.line, texts))
