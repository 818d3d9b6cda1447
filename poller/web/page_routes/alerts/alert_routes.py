"""The pages of alerts: the list, and one alert, which the link of a notification opens."""

from __future__ import annotations

import time
from typing import Annotated
from urllib.parse import urlencode

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.record import instant_text
from poller.presentation import formatting
from poller.service.alerts import alert_actions, alerts_by_state
from poller.service.alerts.alerts_by_state import StatePage
from poller.web import error_responses
from poller.web.access import forgery
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.alerts.alerts_api import AlertId
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Operating, Reading
from poller.web.api.contract.target_ids import LARGEST_ID
from poller.web.pages.alerts import alert_list_page, alert_list_query, alert_page
from poller.web.pages.alerts.alert_list_page import Said
from poller.web.pages.alerts.alert_list_query import AlertListQuery, RequestedAlerts
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

SEE_OTHER = 303
#: What a button of a form did, in words.
_DONE = {
    "acknowledge": "acknowledged",
    "silence": "silenced",
    "unacknowledge": "no longer acknowledged",
}


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the pages of alerts, and the addresses that their forms are sent to."""
    _add_list(app, page)
    _add_one(app, page)


def _add_list(app: FastAPI, page: PageRenderer) -> None:
    @app.get("/alerts", response_class=HTMLResponse)
    def list_alerts(
        request: Request,
        call: Reading,
        frame: RequestedFrame,
        query: RequestedAlerts,
        did: Annotated[str, Query(max_length=20)] = "",
        number: Annotated[int, Query(ge=0, le=forgery.MOST_FIELDS)] = 0,
    ) -> Response:
        """The alerts that are open, or that a filter selects."""
        said = Said(_done(did, number))
        return _list(request, call, frame, page, query, said)

    @app.post("/alerts", response_class=HTMLResponse)
    def act_on_alerts(
        request: Request,
        call: Operating,
        frame: RequestedFrame,
        query: RequestedAlerts,
        form: SentForm,
    ) -> Response:
        """Acknowledge or silence the marked alerts. What is refused is told beside the list."""
        try:
            ids = _marked(form)
            refused = _act_on_all(call, ids, form)
        except errors.ConfigError as error:
            said = Said(refused=[_sentence(error)])
            return _list(request, call, frame, page, query, said, problems.status(error))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        done = len(ids) - len(refused)
        action = form.one("action")
        if refused:
            said = Said(_done(action, done), refused)
            return _list(request, call, frame, page, query, said, 422)
        address = query.url(after=query.after)
        told = urlencode({"did": action, "number": done})
        return RedirectResponse(f"./{address}{'&' if '?' in address else '?'}{told}", SEE_OTHER)


def _add_one(app: FastAPI, page: PageRenderer) -> None:
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
        return RedirectResponse(f"./{alert_id}", status_code=SEE_OTHER)


def _list(
    request: Request,
    call: Call,
    frame: Frame,
    page: PageRenderer,
    query: AlertListQuery,
    said: Said,
    status: int = 200,
) -> Response:
    """The list. A filter that cannot be used keeps its texts, with what is wrong."""
    found, numbers = StatePage((), None), AlertNumbers()
    problem: errors.PollerError | None = None
    try:
        numbers = alert_actions.numbers(call.services, call.actor)
        found = alerts_by_state.page(
            call.services, call.actor, query.wanted, alert_list_query.LIMIT, query.place
        )
    except errors.ConfigError as error:
        problem, status = error, problems.status(error)
    except errors.PollerError as error:
        return error_responses.for_page(error, request, page)
    view = alert_list_page.build_view(query, found, numbers, _now_ms(), said)
    return page.respond("alerts/alerts.html", frame, status, view=view, problem=problem)


def _shown(
    request: Request,
    call: Call,
    frame: Frame,
    page: PageRenderer,
    alert_id: int,
    refused: errors.PollerError | None = None,
) -> Response:
    try:
        details = alert_actions.show(call.services, call.actor, alert_id)
    except errors.PollerError as error:
        return error_responses.for_page(error, request, page)
    view = alert_page.build_view(details, _now_ms(), refused)
    return page.respond("alerts/alert.html", frame, 422 if refused else 200, view=view)


def _done(action: str, number: int) -> str:
    """The result of a form: `2 alerts acknowledged.`"""
    if action not in _DONE or not number:
        return ""
    return f"{formatting.counted(number, 'alert')} {_DONE[action]}."


def _act_on_all(call: Call, ids: list[int], form: FormValues) -> list[str]:
    """Do what the button says with each alert; return what was refused, in sentences."""
    refused = []
    for alert_id in ids:
        try:
            _act(call, alert_id, form)
        except (errors.InvalidInput, errors.NotFound) as error:
            if getattr(error, "field", ""):  # the form is wrong, for every alert
                raise
            refused.append(_sentence(error))
    return refused


def _act(call: Call, alert_id: int, form: FormValues) -> None:
    """Do what the button of the form says. Raises InvalidInput, which names the field."""
    services, actor = call.services, call.actor
    action = form.one("action")
    if action not in _DONE:
        raise errors.InvalidInput("action: this is no button of the page", field="action")
    if action == "unacknowledge":
        alert_actions.unacknowledge(services, actor, alert_id)
        return
    until_ms = _until_ms(form)
    if action == "acknowledge":
        alert_actions.acknowledge(services, actor, alert_id, form.one("note"), until_ms)
    else:
        alert_actions.silence(services, actor, alert_id, until_ms, form.one("reason"))


def _until_ms(form: FormValues) -> int:
    """The end of an acknowledgement or silence. Raises InvalidInput."""
    try:
        return instant_text.ahead_ms("until", form.one("until"), _now_ms())
    except errors.InvalidInput as error:
        raise errors.InvalidInput(error.message, hint=error.hint, field="until") from None


def _marked(form: FormValues) -> list[int]:
    """The ids of the marked alerts. Raises InvalidInput."""
    texts = form.all("alert")
    if not texts:
        raise errors.InvalidInput("alert: none is marked", hint="mark one or more", field="alert")
    if not all(text.isascii() and text.isdigit() and len(text) <= 19 for text in texts):
        raise errors.InvalidInput("alert: this is not a number of an alert", field="alert")
    return list(dict.fromkeys(min(int(text), LARGEST_ID) for text in texts))


def _sentence(error: errors.PollerError) -> str:
    hint = f" {error.hint}" if error.hint else ""
    return f"{error.message}.{hint}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
