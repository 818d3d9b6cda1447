"""The page of the own account, for everybody who is logged in."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.security import passwords
from poller.service.access import own_account
from poller.service.access.login_throttle import LoginThrottle
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.access.sessions_api import SessionId
from poller.web.api.contract import problems
from poller.web.api.contract.needs import AnyLogin, Call
from poller.web.page_routes.access import session_view
from poller.web.pages.access import account_page
from poller.web.pages.access.input_fields import Refusal
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

SEE_OTHER = 303


def add(app: FastAPI, page: PageRenderer, throttle: LoginThrottle) -> None:
    """Add the page, and the addresses that its forms are sent to."""

    @app.get("/account", response_class=HTMLResponse)
    def show_account(
        request: Request,
        call: AnyLogin,
        frame: RequestedFrame,
        did: Annotated[str, Query(max_length=20)] = "",
    ) -> Response:
        """The own account: name, rights, and open sessions."""
        try:
            return _page(request, call, frame, page, did)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

    @app.post("/account", response_class=HTMLResponse)
    def change_password(
        request: Request, call: AnyLogin, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Change the own password; it needs the present one, and ends the other sessions."""
        try:
            try:
                _change(request, call, throttle, form)
            except (errors.InvalidInput, errors.TooManyRequests, errors.EditConflict) as error:
                return _page(request, call, frame, page, refusal=Refusal("password", error, {}))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        request.app.state.finder.clear()
        return RedirectResponse("./account?did=password", SEE_OTHER)

    @app.post("/account/sessions/{session_id}/end", response_class=HTMLResponse)
    def end_own_session(request: Request, call: AnyLogin, session_id: SessionId) -> Response:
        """End another session of one's own."""
        try:
            own_account.end_session(call.services, call.actor, session_id)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        request.app.state.finder.clear()
        return RedirectResponse("../../../account?did=end", SEE_OTHER)


def _change(request: Request, call: Call, throttle: LoginThrottle, form: FormValues) -> None:
    new = form.as_typed(passwords.FIELD)
    passwords.refuse_different(new, form.as_typed(account_page.AGAIN))
    old, value = form.as_typed(own_account.OLD), request.state.session_value
    own_account.change_password(call.services, throttle, call.actor, old, new, value)


def _page(
    request: Request,
    call: Call,
    frame: Frame,
    page: PageRenderer,
    did: str = "",
    refusal: Refusal | None = None,
) -> Response:
    found = own_account.sessions(call.services, call.actor)
    lines = session_view.lines(request, call, found)
    view = account_page.build_view(call.actor, lines, time.time_ns() // 1_000_000, did, refusal)
    headers = {}
    if refusal and isinstance(refusal.error, errors.TooManyRequests):
        headers["Retry-After"] = str(refusal.error.retry_after_s)
    status = problems.status(refusal.error) if refusal else 200
    return page.respond("access/account.html", frame, status, headers, view=view)
