"""The pages of notifications: receivers, routes and deliveries, a test, and another attempt."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors, event_publisher
from poller.presentation.alerts import notifications_json
from poller.presentation.alerts.notifications_json import DeliveryItem
from poller.service.alerts import notify_actions, shown_notifications
from poller.web import error_responses
from poller.web.access import forgery
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.alerts.notifications_api import DeliveryId
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, OperatingAll, ReadingAll
from poller.web.api.contract.target_ids import LARGEST_ID
from poller.web.pages.alerts import deliveries_query, notifications_page
from poller.web.pages.alerts.deliveries_query import DeliveriesQuery, RequestedDeliveries
from poller.web.pages.alerts.notifications_page import ToldView
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

SEE_OTHER = 303
NOTHING_TOLD = ToldView()


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the pages, and the address that their forms are sent to."""

    @app.get("/notifications", response_class=HTMLResponse)
    def list_notifications(
        request: Request,
        call: ReadingAll,
        frame: RequestedFrame,
        query: RequestedDeliveries,
        retried: Annotated[int | None, Query(ge=0, le=LARGEST_ID)] = None,
    ) -> Response:
        """Receivers and routes, then what was sent and what waits."""
        told = NOTHING_TOLD
        if retried is not None:
            told = ToldView(notifications_page.retried(retried))
        return _page(request, call, frame, page, query, told)

    @app.post("/notifications", response_class=HTMLResponse)
    def act_on_notifications(
        request: Request,
        call: OperatingAll,
        frame: RequestedFrame,
        query: RequestedDeliveries,
        form: SentForm,
    ) -> Response:
        """Send a test to a route, or try dead deliveries again."""
        try:
            if form.one("action") == "test":
                result = notify_actions.send_test(call.services, call.actor, form.one("route"))
                return _page(request, call, frame, page, query, ToldView(test=result))
            number = _retried(call, form)
        except errors.ConfigError as error:
            told = notifications_page.refused(error)
            return _page(request, call, frame, page, query, told, problems.status(error))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        address = query.url(after=query.after)
        told_in = f"{'&' if '?' in address else '?'}retried={number}"
        return RedirectResponse(f"./{address}{told_in}", SEE_OTHER)

    @app.get("/notifications/{delivery_id}", response_class=HTMLResponse)
    def show_delivery(
        request: Request, call: ReadingAll, frame: RequestedFrame, delivery_id: DeliveryId
    ) -> Response:
        """One delivery with the text that people get."""
        try:
            found = shown_notifications.delivery(call.services, delivery_id)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        item = notifications_json.delivery_details(found)
        view = notifications_page.build_delivery(item, event_publisher.now_ms())
        return page.respond("alerts/delivery.html", frame, view=view)


def _page(
    request: Request,
    call: Call,
    frame: Frame,
    page: PageRenderer,
    query: DeliveriesQuery,
    told: ToldView,
    status: int = 200,
) -> Response:
    """The page. A filter that cannot be used keeps its texts, with what is wrong."""
    problem: errors.PollerError | None = None
    items: list[DeliveryItem] = []
    try:
        listing = shown_notifications.listing(call.services)
        try:
            items = _deliveries(call, query)
        except errors.ConfigError as error:
            problem, status = error, problems.status(error)
    except errors.PollerError as error:
        return error_responses.for_page(error, request, page)
    now_ms = event_publisher.now_ms()
    view = notifications_page.build_view(query, listing, items, now_ms, told)
    return page.respond("alerts/notifications.html", frame, status, view=view, problem=problem)


def _deliveries(call: Call, query: DeliveriesQuery) -> list[DeliveryItem]:
    """The deliveries of a page, and one more if there are any."""
    limit = deliveries_query.LIMIT + 1
    found = shown_notifications.deliveries(call.services, query.wanted, limit)
    return notifications_json.delivery_items(found)


def _retried(call: Call, form: FormValues) -> int:
    """Let the marked deliveries, or all dead ones of a receiver, be tried again.

    Raises InvalidInput, NotFound.
    """
    if form.one("action") != "retry":
        raise errors.InvalidInput("action: this is no button of the page", field="action")
    ids, receiver = _ids(form.all("delivery")), form.one("receiver")
    if not ids and not receiver:
        raise errors.InvalidInput("delivery: none is marked", hint="mark one or more that are dead")
    result = notify_actions.retry(call.services, call.actor, ids, receiver)
    return len(result.ids)


def _ids(texts: list[str]) -> list[int]:
    """The ids of the marked deliveries. Raises InvalidInput."""
    if len(texts) > forgery.MOST_FIELDS or not all(_is_id(text) for text in texts):
        raise errors.InvalidInput("delivery: this is not the number of a delivery")
    return list(dict.fromkeys(min(int(text), LARGEST_ID) for text in texts))


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19
