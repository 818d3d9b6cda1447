"""Errors of the API as `application/problem+json` (RFC 9457), with the codes of `poller.errors`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from poller import errors
from poller.web.api.contract import api_hints

MEDIA_TYPE = "application/problem+json"
PREFIX = "/api/v1"

#: The status of each error; the first class that fits.
_STATUS_BY_ERROR: Mapping[type[errors.PollerError], int] = {
    errors.NotFound: 404,
    errors.AlreadyExists: 409,
    errors.AlreadyRunning: 409,
    errors.NotConfirmed: 409,
    errors.OutcomeUnknown: 409,
    errors.EditConflict: 412,
    errors.NotLoggedIn: 401,
    errors.NotAllowed: 403,
    errors.TooManyRequests: 429,
    errors.InvalidInput: 422,
    errors.StoreConflict: 409,
    errors.StoreError: 503,
    errors.SchemaMismatch: 503,
    errors.SecretKeyError: 503,
    errors.ConfigError: 422,
}
#: Seconds after which a request that met an unavailable store may be sent again.
RETRY_AFTER_S = 5


class FieldProblem(BaseModel):
    """The problem of one field of a request."""

    field: str
    message: str


class Problem(BaseModel):
    """The body of every error."""

    type: str = Field(description="Address of the explanation of the code.")
    title: str
    status: int
    code: str = Field(description="The code that `poller explain` explains.")
    detail: str = Field(description="What failed, naming the thing or the field.")
    cause: str = Field("", description="Why, if it is known.")
    hint: str = Field("", description="What to do.")
    fields: list[FieldProblem] = Field(
        default_factory=list, description="Each invalid field of the request."
    )


def _documented(status: int) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": HTTPStatus(status).phrase, "content": content}


#: Errors that every route may answer with, for the OpenAPI document.
COMMON: dict[int | str, dict[str, Any]] = {
    status: _documented(status) for status in (401, 403, 404, 422, 429, 500, 503)
}
#: Errors of routes that change something, besides the common ones.
CHANGING: dict[int | str, dict[str, Any]] = {
    status: _documented(status) for status in (400, 409, 412, 413, 415)
}


def is_api(request: Request) -> bool:
    """Whether a request is for this API, and not for a page."""
    path = request.url.path
    return path == PREFIX or path.startswith(PREFIX + "/")


def status(error: errors.PollerError) -> int:
    """The HTTP status of an error; 500 for a bug."""
    for kind, number in _STATUS_BY_ERROR.items():
        if isinstance(error, kind):
            return number
    return 500


def of_error(error: errors.PollerError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response to a request that raised one of our errors."""
    number = status(error)
    sent = dict(headers or {})
    if number == HTTPStatus.SERVICE_UNAVAILABLE:
        sent.setdefault("Retry-After", str(RETRY_AFTER_S))
    if isinstance(error, errors.TooManyRequests):
        sent.setdefault("Retry-After", str(error.retry_after_s))
    if number == HTTPStatus.UNAUTHORIZED:
        sent.setdefault("WWW-Authenticate", "Bearer")
    fields = [_detail(each) for each in getattr(error, "details", ())]
    if isinstance(error, errors.InvalidInput) and error.field:
        fields.append(FieldProblem(field=error.field, message=error.message))
    return respond(number, error.code, error.message, error.cause, error.hint, fields, sent)


def _detail(detail: Any) -> FieldProblem:
    """One problem of a refused file, with its lines."""
    return FieldProblem(
        field=str(getattr(detail, "field", "")), message=api_hints.for_api(str(detail))
    )


def of_validation(error: RequestValidationError) -> JSONResponse:
    """The response to a request whose parameters or body FastAPI refuses."""
    fields = [FieldProblem(field=_place(each), message=each["msg"]) for each in error.errors()]
    named = "; ".join(f"{each.field}: {each.message}" for each in fields[:3])
    hint = "the document /api/v1/openapi.json describes every field"
    return respond(422, errors.InvalidInput.code, named, hint=hint, fields=fields)


def of_status(number: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response to a request that has no route, or a wrong method."""
    codes = {404: errors.NotFound.code, 405: errors.InvalidInput.code}
    hint = "the document /api/v1/openapi.json lists every route"
    code = codes.get(number, errors.ConfigError.code)
    return respond(number, code, HTTPStatus(number).phrase, hint=hint, headers=headers)


def respond(
    number: int,
    code: str,
    detail: str,
    cause: str = "",
    hint: str = "",
    fields: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """A problem with its status and media type."""
    problem = Problem(
        type=f"{PREFIX}/errors/{code}",
        title=HTTPStatus(number).phrase,
        status=number,
        code=code,
        detail=detail,
        cause=cause,
        hint=api_hints.for_api(hint),
        fields=list(fields),
    )
    body = problem.model_dump()
    return JSONResponse(body, number, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def _place(found: Mapping[str, Any]) -> str:
    """The path of a field, such as `targets.0.interval`, without `body` or `query`."""
    place = [str(part) for part in found["loc"]]
    return ".".join(place[1:]) or place[0]
