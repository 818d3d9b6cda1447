"""The form of a new target of a device: first its collector, then what the collector takes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Query
from fastapi.responses import RedirectResponse, Response

from poller import errors
from poller.collectors import descriptions
from poller.service.inventory import device_actions, target_actions
from poller.web.access.form_values import SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Editing
from poller.web.page_routes.device.device_tabs import now_ms
from poller.web.page_routes.inventory import inventory_choices
from poller.web.pages.device import device_head, target_form
from poller.web.pages.device.target_form import TargetForm
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame
from poller.web.pages.inventory import new_target_form

SEE_OTHER = 303


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the routes."""

    @app.get("/devices/{name}/add-target")
    def show_form(
        call: Editing,
        frame: RequestedFrame,
        name: str,
        collector: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """The collectors to choose from, and the form of the chosen one."""
        form = _form(call, name, collector) if collector else None
        return _page(call, page, frame, name, form)

    @app.post("/devices/{name}/add-target")
    def save_form(call: Editing, frame: RequestedFrame, name: str, form: SentForm) -> Response:
        """Add the target, with the checks of the command line."""
        shown = _form(call, name, form.one("collector"))
        texts = {each.name: form.one(each.name) for each in shown.fields}
        try:
            given = new_target_form.fields(shown, texts)
            done = target_actions.add(call.services, call.author, name, given)
        except errors.ConfigError as error:
            field = getattr(error, "field", "")
            if isinstance(error, errors.AlreadyExists):
                field = "name"
            wrong = target_form.refused(shown, texts, str(error), error.hint, field)
            return _page(call, page, frame, name, wrong, problems.status(error))
        told = urlencode({"did": "target", "target": done.target.name})
        return RedirectResponse(f"../{quote(name, safe='')}?{told}", SEE_OTHER)


def _form(call: Call, device: str, collector: str) -> TargetForm:
    found = call.services.registry.get(collector)  # raises CollectorMissing
    described = list(descriptions.options(found))
    credentials = inventory_choices.credentials(call)
    return new_target_form.build(device, collector, described, credentials)


def _page(
    call: Call,
    page: PageRenderer,
    frame: Frame,
    name: str,
    form: TargetForm | None,
    status: int = 200,
) -> Response:
    device, _ = device_actions.show(call.services, call.actor, name)
    return page.respond(
        "inventory/target_add.html",
        frame,
        status,
        head=device_head.of_device(device, "config", now_ms()),
        form=form,
        collectors=sorted(call.services.registry.collectors),
    )
