"""The page of an import: a text is checked, previewed, and imported exactly as it was previewed.

The text travels with the form: nothing of it is kept in the server between preview and import.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from poller import errors
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.service.inventory import inventory_import
from poller.service.inventory.inventory_import import ImportFile, ImportResult
from poller.service.inventory_forms import file_forms
from poller.service.inventory_forms.file_forms import Form
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Editing
from poller.web.api.inventory import inventory_files_api
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame
from poller.web.pages.inventory import import_page
from poller.web.pages.inventory.import_page import ImportText, ImportView

SEE_OTHER = 303
#: What a file is called in its problems: a page does not know its name.
NAME = "the file"
_NUMBERS = ("added", "changed", "unchanged")
_EXAMPLES = (
    (
        DeviceDraft("sw1", "192.0.2.1", "west", "core-snmp", ("core",), {"zone": "dmz"}, True, ""),
        [
            TargetDraft(
                "snmp", "snmp", {"modules": ["system", "if_mib"]}, "", {}, 60_000, 10_000, True
            ),
            TargetDraft("ping", "ping", {}, "", {}, 30_000, 5_000, True),
        ],
    ),
    (
        DeviceDraft("sw2", "192.0.2.2", "west", "core-snmp", ("access",), {}, True, "sw1"),
        [TargetDraft("snmp", "snmp", {}, "", {}, 300_000, 20_000, True)],
    ),
)


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the routes."""

    @app.get("/devices/-/import")
    def show_form(call: Editing, frame: RequestedFrame, request: Request) -> Response:
        """The empty form, or what the last import did."""
        numbers = _numbers(request)
        said = f"Imported: {import_page.sentence(numbers)}." if numbers else ""
        return _page(call, page, frame, ImportText(), said=said)

    @app.post("/devices/-/import")
    def take_step(call: Editing, frame: RequestedFrame, form: SentForm) -> Response:
        """A preview; or the import, if what it changes is what the preview showed."""
        sent = _sent(form)
        expected = form.one("expected") if form.one("do") == "import" else ""
        try:
            done, conflict = _imported(call, sent, expected)
        except errors.BadFile as error:
            lines = import_page.problem_lines(error)
            return _page(call, page, frame, sent, problems.status(error), error=error, lines=lines)
        except errors.ConfigError as error:
            return _page(call, page, frame, sent, problems.status(error), error=error)
        if expected and conflict is None:
            return RedirectResponse(f"import?{urlencode(import_page.counts(done))}", SEE_OTHER)
        status = problems.status(conflict) if conflict else 200
        return _page(call, page, frame, sent, status, error=conflict, done=done)

    @app.get("/devices/-/example.{form}")
    def example(call: Editing, form: Literal["csv", "yaml", "json"]) -> Response:
        """A file that an import reads."""
        text = io.StringIO()
        file_forms.write(text, form, _EXAMPLES)
        headers = {"Content-Disposition": f'attachment; filename="example.{form}"'}
        media_type = inventory_files_api.MEDIA_TYPES[form]
        return Response(text.getvalue(), media_type=media_type, headers=headers)


def _imported(
    call: Call, sent: ImportText, expected: str
) -> tuple[ImportResult, errors.EditConflict | None]:
    """Import what was previewed; otherwise return a preview, and why it is a new one."""
    file = _file(sent)
    with inventory_files_api.one_import():
        if expected:
            try:
                wanted = replace(file, expected=expected)
                return inventory_import.import_file(call.services, call.author, wanted), None
            except errors.EditConflict as error:
                conflict = error
        else:
            conflict = None
        shown = replace(file, dry_run=True, shows_changes=True)
        return inventory_import.import_file(call.services, call.author, shown), conflict


def _file(sent: ImportText) -> ImportFile:
    """The file as the service takes it. Raises InvalidInput for no text."""
    if not sent.text.strip():
        raise errors.InvalidInput("there is no text", hint="choose a file, or paste its text")
    collector = {"": None, import_page.NO_TARGET: ""}.get(sent.collector, sent.collector)
    return ImportFile(
        content=sent.text.encode("utf-8", "surrogatepass"),
        form=_form(sent),
        name=NAME,
        update=sent.updates,
        collector=collector,
    )


def _form(sent: ImportText) -> Form:
    for form in import_page.FORMS:
        if form == sent.form:
            return form
    return file_forms.guess(sent.text)


def _sent(form: FormValues) -> ImportText:
    texts = form.all("text")
    return ImportText(
        text=texts[0].replace("\r\n", "\n") if texts else "",
        form=form.one("form"),
        updates=bool(form.one("update")),
        collector=form.one("collector"),
    )


def _numbers(request: Request) -> dict[str, int]:
    """The numbers of the last import, which the address of the page has."""
    found = {}
    for name in (f"{prefix}{word}" for prefix in ("", "targets_") for word in _NUMBERS):
        text = request.query_params.get(name, "")
        if text.isascii() and text.isdigit() and len(text) <= 9:
            found[name] = int(text)
    return found


def _page(
    call: Call,
    page: PageRenderer,
    frame: Frame,
    sent: ImportText,
    status: int = 200,
    *,
    said: str = "",
    error: errors.PollerError | None = None,
    lines: Any = (),
    done: ImportResult | None = None,
) -> Response:
    view = ImportView(
        sent=sent,
        forms=import_page.FORMS,
        collectors=sorted(call.services.registry.collectors),
        default=call.services.settings.default_collector,
        said=said,
        error=error,
        problems=lines,
        preview=import_page.preview(done) if done else None,
        command=import_page.command(sent, _form(sent) if sent.text else ""),
    )
    return page.respond("inventory/device_import.html", frame, status, view=view)
