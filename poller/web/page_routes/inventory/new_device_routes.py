"""The page of a new device: look what answers, poll as a test, add. Each step is one form.

Workers ask the device, so the answers come from where the device will be polled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, Query
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.collectors import descriptions
from poller.domain.inventory import duration
from poller.domain.scheduling import schedule
from poller.domain.scheduling.schedule import Schedule
from poller.service.discovery.unsaved_devices import UnsavedDevices
from poller.service.inventory import collector_checks, device_actions
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Editing
from poller.web.page_routes.inventory import inventory_choices
from poller.web.pages.device.target_form import TargetForm
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame
from poller.web.pages.inventory import new_device_form, new_device_page
from poller.web.pages.inventory.device_form import Choices
from poller.web.pages.inventory.new_device_form import NewDeviceForm
from poller.web.pages.inventory.new_device_page import Offered, Steps

SEE_OTHER = 303
Word = Annotated[str, Query(max_length=300)]


def add(app: FastAPI, page: PageRenderer, unsaved: UnsavedDevices) -> None:
    """Add the routes."""

    @app.get("/devices/-/add")
    def show_form(
        call: Editing, frame: RequestedFrame, address: Word = "", site: Word = ""
    ) -> Response:
        """The empty form of a device."""
        texts = dict.fromkeys(new_device_form.DEVICE, "")
        texts |= {"address": address, "site": call.actor.site or site}
        return _page(call, page, frame, NewDeviceForm(texts), Steps())

    @app.post("/devices/-/add")
    async def take_step(call: Editing, frame: RequestedFrame, form: SentForm) -> Response:
        """One step: look, choose a collector, test, or add. What was typed is kept."""
        step = form.one("do")
        typed = await run_in_threadpool(_typed, call, form, step)
        try:
            if step == "add":
                return await run_in_threadpool(_added, call, typed)
            typed, steps = await _step(call, unsaved, step, typed)
        except errors.ConfigError as error:
            steps, status = Steps(error=error), problems.status(error)
            return await run_in_threadpool(_page, call, page, frame, typed, steps, status)
        return await run_in_threadpool(_page, call, page, frame, typed, steps)


async def _step(
    call: Call, unsaved: UnsavedDevices, step: str, typed: NewDeviceForm
) -> tuple[NewDeviceForm, Steps]:
    """Take a step that stores nothing. Raises ConfigError, StoreError."""
    fields = new_device_form.device_fields(typed)
    if step == "look":
        found = await unsaved.discover(call.author, call.actor, fields, typed.credentials)
        return new_device_form.with_found(typed, found), Steps(found=found)
    if step == "test":
        targets = new_device_form.target_fields(typed)
        trial = await unsaved.poll(call.author, call.actor, fields, targets)
        return typed, Steps(trial=trial)
    return typed, Steps()


def _added(call: Call, typed: NewDeviceForm) -> Response:
    """Store the device with its targets, all or nothing. Raises ConfigError, StoreError."""
    fields, targets = new_device_form.device_fields(typed), new_device_form.target_fields(typed)
    if not targets:
        raise errors.InvalidInput("no target is chosen", hint="mark what is to be polled")
    done = device_actions.add(call.services, call.author, fields, targets)
    return RedirectResponse(f"../{quote(done.device.name, safe='')}?did=add", SEE_OTHER)


def _typed(call: Call, form: FormValues, step: str) -> NewDeviceForm:
    """Return what was sent; a step may choose the collector of the target by hand."""
    collector = form.one("by") if step == "hand" else form.one("collector")
    hand = _hand(call, collector) if collector else None
    typed = new_device_form.read(form, hand)
    return replace(typed, has_hand=typed.has_hand or step == "hand")


def _hand(call: Call, collector: str) -> TargetForm:
    found = call.services.registry.get(collector)  # raises CollectorMissing
    described = list(descriptions.options(found))
    return new_device_form.hand_form(collector, described, inventory_choices.credentials(call))


def _page(
    call: Call,
    page: PageRenderer,
    frame: Frame,
    form: NewDeviceForm,
    steps: Steps,
    status: int = 200,
) -> Response:
    choices = inventory_choices.names(call)
    view = new_device_page.build_view(form, _offered(call, form, choices), steps)
    return page.respond("inventory/device_add.html", frame, status, view=view)


def _offered(call: Call, form: NewDeviceForm, choices: Choices) -> Offered:
    """Return what the reader may choose, and the default interval of each suggested collector."""
    services = call.services
    registry = services.registry
    known = {row.collector for row in form.rows} & registry.collectors.keys()
    defaults = {}
    for name in known:
        usual = schedule.resolve(Schedule(), None, collector_checks.defaults_of(services, name))
        defaults[name] = duration.format_ms(usual.interval_ms or 0)
    by = form.hand.collector if form.hand else services.settings.default_collector
    takes = inventory_choices.takes(call)
    return Offered(choices, sorted(registry.collectors), defaults, by, takes)
