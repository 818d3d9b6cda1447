"""The responses to wrong requests: an HTML page for a browser; for a program the plain text or the
JSON of FastAPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from poller import errors
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.web.api.contract import problems
from poller.web.pages.frame import page_frame
from poller.web.pages.frame.html import ErrorView, PageRenderer

_TITLES = {
    400: "Invalid request",
    404: "Not found",
    405: "Read-only",
    422: "Invalid request",
    503: "Unavailable",
}


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the handlers for addresses that FastAPI refuses."""

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        """An unknown address, or a method that is not allowed."""
        if problems.is_api(request):
            return problems.of_status(error.status_code, error.headers)
        if not _is_from_browser(request):
            return await http_exception_handler(request, error)

        message = f"{error.detail}."
        if error.status_code == HTTPStatus.NOT_FOUND:
            message = f"There is no page {request.url.path} here."

        view = ErrorView(_title(error.status_code), message)
        return _page(request, page, view, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        """A parameter with an invalid value."""
        if problems.is_api(request):
            return problems.of_validation(error)
        if not _is_from_browser(request):
            return await request_validation_exception_handler(request, error)

        found = [_problem(each) for each in error.errors()]
        message = f"This address cannot be read: {'; '.join(found)}."
        status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        view = ErrorView(_title(status_code), message)
        return _page(request, page, view, status_code)

    @app.exception_handler(errors.PollerError)
    async def failed(request: Request, error: errors.PollerError) -> Response:
        """An error of a route that does not handle it itself."""
        return for_request(error, request, page)


def for_request(error: errors.PollerError, request: Request, page: PageRenderer) -> Response:
    """The response to a request that was refused before it got to its route."""
    error = _shown(error, request)
    if problems.is_api(request):
        return problems.of_error(error)
    if request.url.path.startswith("/api/"):
        body = {"error": {"code": error.code, "message": str(error), "try": error.hint}}
        return JSONResponse(body, status(error))
    return for_page(error, request, page)


def for_page(
    error: errors.PollerError, request: Request, page: PageRenderer, view: ErrorView | None = None
) -> Response:
    """The response to a request for a page that failed; `view` says more than the error."""
    error = _shown(error, request)
    status_code = status(error)
    if not _is_from_browser(request):
        headers = {"WWW-Authenticate": "Bearer"} if status_code == 401 else None
        return PlainTextResponse(f"{error}\n", status_code=status_code, headers=headers)

    shown = view or ErrorView(_title(status_code), f"{error}.", error.hint)
    return _page(request, page, shown, status_code)


def _shown(error: errors.PollerError, request: Request) -> errors.PollerError:
    """The error as its reader may know it: the names of servers are for those who may read."""
    actor: Actor | None = getattr(request.state, "actor", None)
    if actor is not None and actor.may(Scope.READ):
        return error
    if isinstance(error, errors.StoreError | errors.SchemaMismatch):
        return errors.StoreUnavailable(
            "a store of poller cannot be used now", hint="try again; `poller status` says which"
        )
    return error


def status(error: errors.PollerError) -> int:
    """The HTTP status code of an error, the same for a page and for the API."""
    return problems.status(error)


def title(error: errors.PollerError) -> str:
    """The heading of the page of an error."""
    return _title(status(error))


def _is_from_browser(request: Request) -> bool:
    """Whether the request accepts HTML, which curl and monitors do not. The API answers in JSON."""
    accepts_html = "text/html" in request.headers.get("accept", "")
    return accepts_html and not request.url.path.startswith("/api/")


def _title(status_code: int) -> str:
    return _TITLES.get(status_code) or HTTPStatus(status_code).phrase


def _page(
    request: Request,
    page: PageRenderer,
    view: ErrorView,
    status_code: int,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    frame = page_frame.at_once(request)
    return page.respond("frame/error.html", frame, status_code, headers, view=view)


def _problem(found: Mapping[str, Any]) -> str:
    """A validation error in words: `since=zzz, input should be '1h', '6h' or '24h'`."""
    parameter = found["loc"][-1]
    value = found["input"]
    message = str(found["msg"])
    lowered = message[:1].lower() + message[1:]
    return f"{parameter}={value}, {lowered}"
