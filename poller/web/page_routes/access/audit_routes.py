"""The page of the audit log, and the file of the rows that match its filter."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import chain

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from poller import errors
from poller.db.access.audit_rows import AuditRow
from poller.presentation.history import spreadsheet_cells
from poller.service.access import audit_log
from poller.web import error_responses
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Administering
from poller.web.pages.access import audit_page
from poller.web.pages.access.audit_query import RequestedAudit
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the page and the file."""

    @app.get("/audit", response_class=HTMLResponse)
    def list_changes(
        request: Request, call: Administering, frame: RequestedFrame, query: RequestedAudit
    ) -> Response:
        """Rows of the audit log, the newest first. A wrong filter keeps its text."""
        problem: errors.PollerError | None = None
        rows: list[AuditRow] = []
        try:
            try:
                rows = audit_log.listing(call.services, call.actor, query.wanted)
            except errors.InvalidInput as error:
                problem = error
            actions = audit_log.recent_actions(call.services, call.actor)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        view = audit_page.build_view(query, rows, actions, time.time_ns() // 1_000_000)
        status = problems.status(problem) if problem else 200
        return page.respond("access/audit.html", frame, status, view=view, problem=problem)

    @app.get("/audit/-/audit.csv")
    def export(call: Administering, query: RequestedAudit) -> StreamingResponse:
        """All rows that match, as a file that is streamed."""
        headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
        parts = audit_log.every(call.services, call.actor, query.wanted)
        # The first part is read at once: a wrong filter is an error, not a file that ends early.
        lines = _lines(chain([next(parts)], parts))
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def _lines(parts: Iterable[list[AuditRow]]) -> Iterator[str]:
    yield spreadsheet_cells.line(audit_page.CSV_COLUMNS)
    for rows in parts:
        yield "".join(spreadsheet_cells.line(audit_page.cells(row)) for row in rows)
