"""The page of maintenance: until when nobody is told of what matches. Monitoring goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from poller import errors
from poller.service.alerts import maintenance_actions
from poller.service.alerts.maintenance_actions import MaintenanceDraft, MaintenancePage
from poller.web import error_responses
from poller.web.access.form_values import SentForm
from poller.web.api.alerts.maintenances_api import MaintenanceId, NewMaintenance
from poller.web.api.contract import paging, problems
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE
from poller.web.api.contract.needs import Call, Operating, Reading
from poller.web.pages.alerts import maintenance_page
from poller.web.pages.alerts.maintenance_page import Refused
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

SEE_OTHER = 303
LIMIT = 50
_SAID = {"add": "Maintenance {} was added.", "end": "Maintenance {} was ended."}
#: Fields that a maintenance must have, also if the form left them empty.
_REQUIRED = ("reason", "end")


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the page, and the addresses that its forms are sent to."""

    @app.get("/maintenance", response_class=HTMLResponse)
    def list_maintenances(
        request: Request,
        call: Reading,
        frame: RequestedFrame,
        over: Literal["", "yes"] = "",
        after: Annotated[str, Query(max_length=2_000)] = "",
        where: Annotated[str, Query(max_length=LONGEST_WHERE)] = "",
        did: Annotated[str, Query(max_length=20)] = "",
        number: Annotated[int, Query(ge=0)] = 0,
    ) -> Response:
        """The maintenances that are active or wait, the newest first; a filter fills the form."""
        said = _SAID[did].format(number) if did in _SAID else ""
        kept = Refused({"where": where}) if where else None
        try:
            return _page(call, frame, page, bool(over), after, said, kept)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

    @app.post("/maintenance", response_class=HTMLResponse)
    def add_maintenance(
        request: Request, call: Operating, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Add a maintenance; a form that is refused is shown again, with its texts."""
        texts = {name: form.one(name) for name in maintenance_page.NAMES}
        try:
            made = maintenance_actions.add(call.services, call.actor, _draft(texts))
        except errors.ConfigError as error:
            refused = Refused(texts, error)
            return _page(call, frame, page, refused=refused, status=problems.status(error))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return RedirectResponse(f"./maintenance?did=add&number={made.id}", SEE_OTHER)

    @app.post("/maintenance/{maintenance_id}/end", response_class=HTMLResponse)
    def end_maintenance(
        request: Request, call: Operating, maintenance_id: MaintenanceId
    ) -> Response:
        """End a maintenance now."""
        try:
            maintenance_actions.end(call.services, call.actor, maintenance_id)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return RedirectResponse(f"../../maintenance?did=end&number={maintenance_id}", SEE_OTHER)


def _page(
    call: Call,
    frame: Frame,
    page: PageRenderer,
    over: bool = False,
    after: str = "",
    said: str = "",
    refused: Refused | None = None,
    status: int = 200,
) -> Response:
    key = paging.decode(after, int)
    found = maintenance_actions.page(
        call.services, call.actor, over, LIMIT, key[0] if key else None
    )
    addresses = (_address(over) if after else "", _following(found, over))
    now_ms = time.time_ns() // 1_000_000
    view = maintenance_page.build_view(found, over, addresses, now_ms, said, refused)
    return page.respond("alerts/maintenance.html", frame, status, view=view)


def _following(found: MaintenancePage, over: bool) -> str:
    """The address of the next page; "" on the last one."""
    cursor = paging.encode(None if found.next_id is None else [found.next_id])
    return _address(over, cursor) if cursor else ""


def _address(over: bool, cursor: str = "") -> str:
    given = {"over": "yes" if over else "", "after": cursor}
    kept = urlencode({name: text for name, text in given.items() if text})
    return f"maintenance?{kept}" if kept else "maintenance"


def _draft(texts: Mapping[str, str]) -> MaintenanceDraft:
    """The request of the form, with the checks of the API. Raises InvalidInput."""
    given = {name: text for name, text in texts.items() if text or name in _REQUIRED}
    try:
        body = NewMaintenance.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise errors.InvalidInput(f"{field}: {first['msg'].lower()}", field=field) from None
    return body.draft(time.time_ns() // 1_000_000)
