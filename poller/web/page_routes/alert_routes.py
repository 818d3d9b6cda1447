"""The page of one alert, which the link of a notification opens: look, acknowledge, silence."""

from __future__ import annotations

import time

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.domain.record import instant_text
from poller.service.alerts import alert_actions
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.alerts.alerts_api import AlertId
from poller.web.api.contract.needs import Call, Operating, Reading
from poller.web.pages import alert_page
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the page of one alert, and the address that its forms are sent to."""

    @app.get("/alerts/{alert_id}", response_class=HTMLResponse)
    def show_alert(
        request: Request, call: Reading, frame: RequestedFrame, alert_id: AlertId
    ) -> Response:
        """The page of one alert."""
        return _shown(request, call, frame, page, alert_id)

    @app.post("/alerts/{alert_id}", response_class=HTMLResponse)
    def act_on_alert(
        request: Request, call: Operating, frame: RequestedFrame, alert_id: AlertId, form: SentForm
    ) -> Response:
        """Acknowledge or silence an alert; a form that cannot be used is shown again."""
        try:
            _act(call, alert_id, form)
        except errors.ConfigError as error:
            return _shown(request, call, frame, page, alert_id, error)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return RedirectResponse(f"./{alert_id}", status_code=303)


def _shown(
    request: Request,
    call: Call,
    frame: RequestedFrame,
    page: PageRenderer,
    alert_id: int,
    refused: errors.PollerError | None = None,
) -> Response:
    try:
        details = alert_actions.show(call.services, call.actor, alert_id)
    except errors.PollerError as error:
        return error_responses.for_page(error, request, page)
    view = alert_page.build_view(details, time.time_ns() // 1_000_000, refused)
    return page.respond("alert.html", frame, 422 if refused else 200, view=view)


def _act(call: Call, alert_id: int, form: FormValues) -> None:
    """Do what the button of the form says. Raises InvalidInput, which names the field."""
    services, actor = call.services, call.actor
    action = form.one("action")
    if action == "unacknowledge":
        alert_actions.unacknowledge(services, actor, alert_id)
        return
    until_ms = instant_text.ahead_ms("until", form.one("until"), time.time_ns() // 1_000_000)
    if action == "acknowledge":
        alert_actions.acknowledge(services, actor, alert_id, form.one("note"), until_ms)
    elif action == "silence":
        alert_actions.silence(services, actor, alert_id, until_ms, form.one("reason"))
    else:
        raise errors.InvalidInput("action: this is no button of the page", field="action")
