"""The page that asks before workers are drained, and the forms that drain and resume them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.domain.inventory import duration
from poller.service.operations import drain_actions
from poller.service.operations.drain_actions import DrainPlan
from poller.state.cluster import overview_reader
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, OperatingAll
from poller.web.pages.cluster import drain_page, workers_page
from poller.web.pages.cluster.drain_page import DrainView
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame

SEE_OTHER = 303
#: Workers of one question: as many as the table of workers has rows.
Names = Annotated[list[str] | None, Query(max_length=workers_page.ROWS)]


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the question, and the addresses that the forms are sent to."""

    @app.get("/workers/-/drain", response_class=HTMLResponse)
    def ask(
        request: Request, call: OperatingAll, frame: RequestedFrame, worker: Names = None
    ) -> Response:
        """The page that asks before a drain of these workers. Nothing is changed."""
        try:
            view = _question(call, worker or [], {})
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return page.respond("cluster/drain.html", frame, view=view)

    @app.post("/workers/-/drain", response_class=HTMLResponse)
    def drain(
        request: Request, call: OperatingAll, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Drain workers; a refused form is shown again, with what was typed."""
        names = form.all("worker")[: drain_actions.MOST_WORKERS]
        texts = {name: form.one(name) for name in ("for", "reason", drain_page.FORCE)}
        try:
            try:
                done = _drained(call, names, texts)
            except (errors.InvalidInput, errors.NotConfirmed) as error:
                view = _question(call, names, texts, error)
                return page.respond("cluster/drain.html", frame, problems.status(error), view=view)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return _told("drain", done.names)

    @app.post("/workers/-/resume", response_class=HTMLResponse)
    def resume(request: Request, call: OperatingAll, form: SentForm) -> Response:
        """Let drained workers take work again."""
        try:
            done = drain_actions.resume(call.services, call.actor, _marked(form))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return _told("resume", done.names)


def _question(
    call: Call, names: list[str], texts: Mapping[str, str], error: errors.PollerError | None = None
) -> DrainView:
    view = overview_reader.read(call.services.redis, call.services.keys)
    planned = drain_actions.of_overview(view, names)
    return drain_page.build_view(planned, view, texts, error)


def _drained(call: Call, names: list[str], texts: Mapping[str, str]) -> DrainPlan:
    try:
        length_ms = duration.parse_ms(texts["for"] or drain_page.USUAL)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(f"for: {error.message}", hint=error.hint, field="for") from None
    done = drain_actions.drain(
        call.services,
        call.actor,
        names,
        length_ms / 1000,
        texts["reason"],
        bool(texts[drain_page.FORCE]),
    )
    return done.plan


def _marked(form: FormValues) -> list[str]:
    names = form.all("worker")[: drain_actions.MOST_WORKERS]
    if not names:
        raise errors.InvalidInput("worker: none is marked", hint="mark workers in the list")
    return names


def _told(verb: str, names: Sequence[str]) -> Response:
    """Lead to the page that says what was done."""
    told = [("did", verb), ("number", str(len(names)))]
    told += [("worker", name) for name in names[: workers_page.FEW]]
    return RedirectResponse(f"../../workers?{urlencode(told)}", SEE_OTHER)
