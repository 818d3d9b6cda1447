"""The page that pauses a device or one of its targets, with a reason and an end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Query
from fastapi.responses import RedirectResponse, Response

from poller import errors
from poller.service.inventory import device_actions
from poller.service.operations import breaker_actions, target_choice
from poller.web.access.form_values import SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Operating
from poller.web.page_routes.device.device_tabs import now_ms
from poller.web.pages.device import device_head
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame
from poller.web.pages.inventory import pause_form

SEE_OTHER = 303


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the routes of the form."""

    @app.get("/devices/{name}/pause")
    def show_pause(
        call: Operating,
        frame: RequestedFrame,
        name: str,
        target: Annotated[str, Query(max_length=300)] = "",
    ) -> Response:
        """The form; a target may be chosen already."""
        return _page(call, page, frame, name, {"target": target})

    @app.post("/devices/{name}/pause")
    def pause(call: Operating, frame: RequestedFrame, name: str, form: SentForm) -> Response:
        """Pause; a form that is refused is shown again, with its texts."""
        texts = {each: form.one(each) for each in pause_form.NAMES}
        target = texts["target"]
        try:
            asked = pause_form.pause_of(texts)
            chosen = target_choice.named(call.services, call.actor, [(name, target or None)])
            subject = f"{name}/{target}" if target else name
            breaker_actions.open_by_hand(call.services, call.actor, chosen, asked, subject)
        except errors.InvalidInput as error:
            return _page(call, page, frame, name, texts, error)
        told = urlencode({"did": "pause", "target": target})
        return RedirectResponse(f"../{quote(name, safe='')}?{told}", SEE_OTHER)


def _page(
    call: Call,
    page: PageRenderer,
    frame: Frame,
    name: str,
    texts: Mapping[str, str],
    error: errors.InvalidInput | None = None,
) -> Response:
    device, targets = device_actions.show(call.services, call.actor, name)
    form = pause_form.build(name, [target.name for target in targets], texts, error)
    head = device_head.of_device(device, "", now_ms())
    status = problems.status(error) if error else 200
    return page.respond("inventory/pause.html", frame, status, head=head, form=form)
