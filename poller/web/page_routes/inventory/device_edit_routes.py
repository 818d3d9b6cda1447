"""The form of a device that exists, and the removal of a device or of one of its targets.

A form that is refused is shown again with the texts that were typed; nothing is changed then.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Query
from fastapi.responses import RedirectResponse, Response

from poller import errors
from poller.service.inventory import device_actions, target_actions
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Editing
from poller.web.page_routes.device.device_tabs import now_ms
from poller.web.page_routes.inventory import inventory_choices
from poller.web.pages.device import device_head
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame
from poller.web.pages.inventory import device_form, removal_view
from poller.web.pages.inventory.device_form import DeviceForm
from poller.web.pages.inventory.removal_view import RemovalView

SEE_OTHER = 303


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the routes."""

    @app.get("/devices/{name}/edit")
    def show_form(call: Editing, frame: RequestedFrame, name: str) -> Response:
        """The fields of a device."""
        return _form_page(call, page, frame, _form(call, name))

    @app.post("/devices/{name}/edit")
    def save_form(call: Editing, frame: RequestedFrame, name: str, form: SentForm) -> Response:
        """Save a device, with the checks of the command line."""
        shown = _form(call, name)
        texts = {each.name: form.one(each.name) for each in shown.fields if form.all(each.name)}
        changed = device_form.changes(shown, texts)
        if not changed:
            return _to_device(name, "same", "../")
        try:
            done = device_actions.edit(
                call.services, call.author, name, changed, expected=_version(form)
            )
        except errors.ConfigError as error:
            wrong = device_form.refused(shown, texts, error)
            return _form_page(call, page, frame, wrong, problems.status(error))
        return _to_device(done.device.name, "edit", "../")

    @app.get("/devices/{name}/remove")
    def ask_device(call: Editing, frame: RequestedFrame, name: str) -> Response:
        """What the removal of a device takes away."""
        device, targets = device_actions.show(call.services, call.actor, name)
        return _ask(call, page, frame, removal_view.of_device(device, targets))

    @app.post("/devices/{name}/remove")
    def remove_device(call: Editing, name: str, form: SentForm) -> Response:
        """Remove a device with its targets."""
        device_actions.remove(call.services, call.author, name, _version(form))
        told = urlencode({"name": name})
        return RedirectResponse(f"../-/removed?{told}", SEE_OTHER)

    @app.get("/devices/-/removed")
    def show_removed(
        call: Editing, frame: RequestedFrame, name: Annotated[str, Query(max_length=300)] = ""
    ) -> Response:
        """The end of the removal of a device."""
        return page.respond("inventory/removed.html", frame, name=name)

    @app.get("/devices/{name}/targets/{target}/remove")
    def ask_target(call: Editing, frame: RequestedFrame, name: str, target: str) -> Response:
        """What the removal of a target takes away."""
        found = target_actions.show(call.services, call.actor, name, target)
        return _ask(call, page, frame, removal_view.of_target(found))

    @app.post("/devices/{name}/targets/{target}/remove")
    def remove_target(call: Editing, name: str, target: str, form: SentForm) -> Response:
        """Remove a target."""
        target_actions.remove(call.services, call.author, name, target, _version(form))
        return _to_device(name, "remove", "../../../", target)


def _form(call: Call, name: str) -> DeviceForm:
    device, _ = device_actions.show(call.services, call.actor, name)
    return device_form.build(device, inventory_choices.names(call))


def _form_page(
    call: Call, page: PageRenderer, frame: Frame, form: DeviceForm, status: int = 200
) -> Response:
    device, _ = device_actions.show(call.services, call.actor, form.device)
    return page.respond(
        "inventory/device_edit.html",
        frame,
        status,
        head=device_head.of_device(device, "config", now_ms()),
        form=form,
    )


def _ask(call: Call, page: PageRenderer, frame: Frame, view: RemovalView) -> Response:
    device, _ = device_actions.show(call.services, call.actor, view.device)
    head = device_head.of_device(device, "config", now_ms())
    return page.respond("inventory/remove.html", frame, head=head, view=view)


def _version(form: FormValues) -> str | None:
    return form.one(device_form.VERSION) or None


def _to_device(name: str, did: str, up: str, target: str = "") -> Response:
    told = urlencode({"did": did, "target": target})
    return RedirectResponse(f"{up}{quote(name, safe='')}?{told}", SEE_OTHER)
