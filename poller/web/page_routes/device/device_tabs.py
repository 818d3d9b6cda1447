"""The pages of one device. Each reads what it shows with the rights of its reader."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Depends, FastAPI, Query
from fastapi.responses import Response

from poller import errors
from poller.domain.access.scopes import Scope
from poller.domain.fleet.day_slots import SLOT_MS
from poller.service import device_report, site_limit
from poller.service.history import device_measures
from poller.service.history.device_measures import Part
from poller.service.operations import poll_actions
from poller.service.record import reading_listing
from poller.web.api.contract.needs import Call, Reading
from poller.web.api.snapshot import Snapshots
from poller.web.page_routes.device import device_settings
from poller.web.pages.device import (
    action_notes,
    device_head,
    device_targets,
    interface_list,
    measurement_list,
    metric_list,
    plot_range,
    summary,
)
from poller.web.pages.device.page_links import PageLinks
from poller.web.pages.device.plot_range import ShownRange
from poller.web.pages.device.plots import Window
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame

EVENTS = 100
_LATEST_MS = 253_402_300_799_000
#: The interval that the step of a page with several targets is chosen for.
_USUAL_MS = 60_000

Instant = Annotated[int | None, Query(ge=0, le=_LATEST_MS)]
Search = Annotated[str, Query(max_length=200)]
After = Annotated[int, Query(ge=0, le=100_000)]


def _asked_range(
    range_name: Annotated[str, Query(alias="range", max_length=10)] = "",
    from_ms: Annotated[int | None, Query(alias="from", ge=0, le=_LATEST_MS)] = None,
    until_ms: Annotated[int | None, Query(alias="until", ge=0, le=_LATEST_MS)] = None,
) -> ShownRange:
    return plot_range.parse(range_name, from_ms, until_ms, now_ms())


#: A parameter of a route: the range of its plots.
AskedRange = Annotated[ShownRange, Depends(_asked_range)]


def add(app: FastAPI, page: PageRenderer, snapshots: Snapshots) -> None:
    """Add the pages of one device."""

    @app.get("/devices/{name}")
    def show_device(
        call: Reading,
        frame: RequestedFrame,
        name: str,
        slot: Instant = None,
        after: After = 0,
        polls: Annotated[str, Query(max_length=64)] = "",
        did: Annotated[str, Query(max_length=20)] = "",
        target: Annotated[str, Query(max_length=300)] = "",
    ) -> Response:
        """Why a device is polled as it is, its targets, its last day, its attempts."""
        slot_ms = None if slot is None else slot // SLOT_MS * SLOT_MS
        found = device_report.read(call.services, call.actor, name, now_ms(), slot_ms)
        latest = snapshots.latest
        overview = latest.overview if latest and _is_late(found) else None
        return page.respond(
            "device/device.html",
            frame,
            head=device_head.of_device(found.device, "", now_ms()),
            view=summary.build_view(found, call.actor, overview, slot_ms, after),
            slot=slot_ms,
            state=found.state,
            polls=_poll_results(call, polls),
            note=action_notes.done(did, name, target),
        )

    @app.get("/devices/{name}/interfaces")
    def show_interfaces(
        call: Reading,
        frame: RequestedFrame,
        name: str,
        shown: AskedRange,
        search: Search = "",
        after: After = 0,
    ) -> Response:
        """The interfaces of a device, 50 a page."""
        device = site_limit.visible_device(call.services, call.actor, name)
        at_ms = now_ms()
        part = Part(search.strip(), after)
        found = device_measures.interface_rows(
            call.services, call.actor, name, part, shown.asked(_USUAL_MS), at_ms
        )
        window = Window(shown.start_ms, shown.end_ms, found.plan.step_ms)
        links = PageLinks(shown, at_ms, _kept(search))
        return page.respond(
            "device/device_interfaces.html",
            frame,
            head=device_head.of_device(device, "interfaces", at_ms),
            view=interface_list.build_view(found, window, at_ms),
            links_of=links,
            search=search,
            pages=links.pages(after, device_measures.ROWS, found.total),
        )

    @app.get("/devices/{name}/gauges")
    def show_gauges(
        call: Reading,
        frame: RequestedFrame,
        name: str,
        shown: AskedRange,
        search: Search = "",
        after: After = 0,
    ) -> Response:
        """The gauges and states of a device by group, 50 a page."""
        device = site_limit.visible_device(call.services, call.actor, name)
        at_ms = now_ms()
        part = Part(search.strip(), after)
        found = device_measures.measurement_rows(
            call.services, call.actor, name, part, shown.asked(_USUAL_MS), at_ms
        )
        window = Window(shown.start_ms, shown.end_ms, found.plan.step_ms)
        links = PageLinks(shown, at_ms, _kept(search))
        return page.respond(
            "device/device_gauges.html",
            frame,
            head=device_head.of_device(device, "gauges", at_ms),
            view=measurement_list.build_view(found, window, at_ms),
            links_of=links,
            search=search,
            pages=links.pages(after, device_measures.ROWS, found.total),
        )

    @app.get("/devices/{name}/metrics")
    def show_metrics(
        call: Reading, frame: RequestedFrame, name: str, search: Search = "", after: After = 0
    ) -> Response:
        """All newest values of a device, 100 a page."""
        device = site_limit.visible_device(call.services, call.actor, name)
        at_ms = now_ms()
        chosen = reading_listing.chosen_targets(call.services, call.actor, name)
        polls = reading_listing.latest(call.services, chosen)
        view = metric_list.build_view(polls, search, after, at_ms)
        links = PageLinks(plot_range.named(plot_range.DEFAULT, at_ms), at_ms, _kept(search))
        return page.respond(
            "device/device_metrics.html",
            frame,
            head=device_head.of_device(device, "metrics", at_ms),
            view=view,
            search=search,
            pages=links.pages(after, metric_list.PER_PAGE, view.total),
        )

    @app.get("/devices/{name}/events")
    def show_events(call: Reading, frame: RequestedFrame, name: str) -> Response:
        """The newest events of a device."""
        device = site_limit.visible_device(call.services, call.actor, name)
        found = device_report.newest_events(call.services, call.actor, name, EVENTS)
        return page.respond(
            "device/device_events.html",
            frame,
            head=device_head.of_device(device, "events", now_ms()),
            events=[summary.event_line(each) for each in found],
        )

    @app.get("/devices/{name}/config")
    def show_config(
        call: Reading,
        frame: RequestedFrame,
        name: str,
        target: Annotated[str, Query(max_length=300)] = "",
    ) -> Response:
        """The configuration of a device or one target, and where each value comes from."""
        found = device_settings.of_device(call, name, target)
        return page.respond(
            "device/device_config.html",
            frame,
            head=device_head.of_device(found.device, "config", now_ms()),
            view=found,
            chosen=target,
            may_edit=call.actor.may(Scope.INVENTORY),
        )


def now_ms() -> int:
    """The present instant."""
    return time.time_ns() // 1_000_000


def _is_late(found: device_report.DeviceReport) -> bool:
    return device_targets.has_late_target(found.state)


def _kept(search: str) -> list[tuple[str, str]]:
    return [("search", search)] if search else []


def _poll_results(call: Call, ticket: str) -> action_notes.PollNote | None:
    """The results of a poll on demand that this page was sent to wait for."""
    if not ticket:
        return None
    try:
        found, chosen = poll_actions.ticket(call.services, call.actor, ticket)
        done = poll_actions.newly_finished(call.services, list(chosen), found.requested_ms)
        return action_notes.poll_note(poll_actions.results(call.services, chosen, done))
    except errors.NotFound:
        return None
