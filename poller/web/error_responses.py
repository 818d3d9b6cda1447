"""What was wrong with a request: a page with a way home for a browser, and what it always was for a program."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from poller import errors
from poller.web.pages.html import Page, Refusal
from poller.web.pages.themes import kept

_STATUS = {errors.NotFound: 404, errors.InvalidInput: 400}
_TITLES = {
    400: "Not understood",
    404: "Not found",
    405: "Only for reading",
    422: "Not understood",
    503: "Not now",
}


def add(app: FastAPI, page: Page) -> None:
    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        if not _by_a_person(request):
            return await http_exception_handler(request, error)
        message = (
            f"There is no page {request.url.path} here."
            if error.status_code == HTTPStatus.NOT_FOUND
            else ""
        )
        return _page(
            request, page, error.status_code, message or f"{error.detail}.", headers=error.headers
        )

    @app.exception_handler(RequestValidationError)
    async def misunderstood(request: Request, error: RequestValidationError) -> Response:
        if not _by_a_person(request):
            return await request_validation_exception_handler(request, error)
        message = f"This address cannot be read: {'; '.join(map(_complaint, error.errors()))}."
        return _page(request, page, HTTPStatus.UNPROCESSABLE_ENTITY, message)


def answer(error: errors.PollerError, request: Request, page: Page) -> Response:
    """To somebody who asked for a page and cannot have it."""
    if _by_a_person(request):
        return _page(request, page, status(error), f"{error}.", error.hint)
    return PlainTextResponse(f"{error}\n", status_code=status(error))


def status(error: errors.PollerError) -> int:
    return next((number for kind, number in _STATUS.items() if isinstance(error, kind)), 503)


def _by_a_person(request: Request) -> bool:
    """Browsers say that they want HTML; curl and monitors do not."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(
        "/api/"
    )


def _page(
    request: Request,
    page: Page,
    number: int,
    message: str,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    said = Refusal(_TITLES.get(number, HTTPStatus(number).phrase), message, hint)
    # Relative, as all our links are: the page may be served below another path.
    root = "../" * (request.url.path.count("/") - 1) or "./"
    return HTMLResponse(
        page.refusal(said, root, kept(request.cookies)), status_code=number, headers=headers
    )


def _complaint(found: Mapping[str, Any]) -> str:
    """`since=zzz, input should be '1h', '6h' or '24h'`."""
    message = str(found["msg"])
    return f"{found['loc'][-1]}={found['input']}, {message[:1].lower()}{message[1:]}"
