"""The pages of credentials: the list, and one with its forms. Secrets come in and never go out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.collectors.credentials import Credential
from poller.presentation import formatting
from poller.service.access import credential_editing
from poller.service.inventory import credential_actions
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, EditingAll, Reading
from poller.web.api.inventory.credentials_api import CredentialName
from poller.web.pages.access import credential_form, credentials_page
from poller.web.pages.access.credential_form import CredentialForm
from poller.web.pages.access.credentials_page import NewCredentialView
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

SEE_OTHER = 303
FIRST_KIND = "community"
Word = Annotated[str, Query(max_length=200)]


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the pages of credentials, and the addresses that their forms are sent to."""
    _add_list(app, page)
    _add_new(app, page)
    _add_one(app, page)


def _add_list(app: FastAPI, page: PageRenderer) -> None:
    @app.get("/credentials", response_class=HTMLResponse)
    def list_credentials(
        request: Request,
        call: Reading,
        frame: RequestedFrame,
        after: Word = "",
        did: Word = "",
        name: Word = "",
    ) -> Response:
        """The credentials by name, without secrets."""
        try:
            listed = credential_actions.listing(call.services, call.actor)
            every = sorted(listed, key=attrgetter("name"))
            rest = [each for each in every if each.name > after]
            found = rest[: credentials_page.LIMIT]
            names = [each.name for each in found]
            authors = credential_actions.last_authors(call.services, call.actor, names)
            problem = call.services.key_problem()
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        more = len(rest) > len(found)
        view = credentials_page.build_list(found, authors, _now_ms(), did, name, problem, more)
        return page.respond("access/credentials.html", frame, view=view)


def _add_new(app: FastAPI, page: PageRenderer) -> None:
    @app.get("/credentials/-/add", response_class=HTMLResponse)
    def show_new(
        request: Request, call: EditingAll, frame: RequestedFrame, kind: Word = FIRST_KIND
    ) -> Response:
        """The form of a new credential of a kind."""
        try:
            model = credential_actions.model(call.services, kind)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return _new_page(call, frame, page, credential_form.build(model, has_name=True))

    @app.post("/credentials/-/add", response_class=HTMLResponse)
    def add_credential(
        request: Request, call: EditingAll, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Store a credential; a form that is refused is shown again, without its secrets."""
        name = form.one(credential_form.NAME)
        try:
            model = credential_actions.model(call.services, form.one(credential_form.KIND))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        texts = _texts(model, form)
        read = credential_actions.from_fields(credential_form.values(model, texts))
        try:
            notes = credential_actions.add(call.services, call.author, name, model.kind, read)
        except errors.ConfigError as error:
            shown = credential_form.build(model, has_name=True)
            refused = credential_form.refused(shown, {**texts, credential_form.NAME: name}, error)
            return _new_page(call, frame, page, refused, problems.status(error))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return _told(f"../{quote(name, safe='')}", did="add", short="yes" if notes else "")


def _add_one(app: FastAPI, page: PageRenderer) -> None:
    @app.get("/credentials/{name}", response_class=HTMLResponse)
    def show_credential(
        request: Request,
        call: Reading,
        frame: RequestedFrame,
        name: CredentialName,
        kind: Word = "",
        did: Word = "",
        short: Word = "",
    ) -> Response:
        """One credential, without its secret; the form may be that of another kind."""
        try:
            note = credential_actions.short_secret_note(name) if short else ""
            return _one_page(call, frame, page, name, kind=kind, did=did, note=note)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

    @app.post("/credentials/{name}", response_class=HTMLResponse)
    def change_credential(
        request: Request,
        call: EditingAll,
        frame: RequestedFrame,
        name: CredentialName,
        form: SentForm,
    ) -> Response:
        """Change the filled fields, or replace all; a refused form comes without its secrets."""
        try:
            kind = form.one(credential_form.KIND)
            model = credential_actions.model(call.services, kind)
            texts = _texts(model, form)
            try:
                notes = _changed(call, name, model, texts, form)
            except errors.ConfigError as error:
                built = _form_of(call, name, model)
                shown = credential_form.refused(built, texts, error)
                replaces = bool(form.one(credential_form.REPLACE))
                return _one_page(
                    call, frame, page, name, shown, replaces=replaces, status=problems.status(error)
                )
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return _told(f"./{quote(name, safe='')}", did="rotate", short="yes" if notes else "")

    @app.post("/credentials/{name}/remove", response_class=HTMLResponse)
    def remove_credential(
        request: Request,
        call: EditingAll,
        frame: RequestedFrame,
        name: CredentialName,
        form: SentForm,
    ) -> Response:
        """Remove a credential; one that is used stays, and the page names who uses it."""
        expected = form.one(credential_form.VERSION) or None
        try:
            try:
                credential_actions.remove(call.services, call.author, name, expected)
            except (errors.InvalidInput, errors.EditConflict) as error:
                status = problems.status(error)
                return _one_page(call, frame, page, name, refusal=error, status=status)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return _told("../../credentials", did="remove", name=name)


def _changed(
    call: Call, name: str, model: type[Credential], texts: Mapping[str, str], form: FormValues
) -> list[str]:
    """Change a credential by its form. Returns notes."""
    present = credential_actions.show(call.services, call.actor, name)
    fields = credential_form.values(model, texts)
    expected = form.one(credential_form.VERSION) or None
    if model.kind == present.kind and not form.one(credential_form.REPLACE):
        done = credential_editing.edit(call.services, call.author, name, fields, expected)
    else:
        read = credential_actions.from_fields(fields)
        done = credential_actions.rotate(
            call.services, call.author, name, model.kind, read, expected
        )
    return done.notes


def _form_of(call: Call, name: str, model: type[Credential]) -> CredentialForm:
    """The form of a stored credential; one of another kind keeps nothing."""
    found = credential_actions.show(call.services, call.actor, name)
    return credential_form.build(model, keeps=model.kind == found.kind)


def _texts(model: type[Credential], form: FormValues) -> dict[str, str]:
    """The texts of the fields as they were typed: a secret may begin or end with a blank."""
    secret = model.secret_fields()
    found = {}
    for field in model.model_fields:
        name = f"{credential_form.PREFIX}{field}"
        found[name] = form.as_typed(name) if field in secret else form.one(name)
    return found


def _new_page(
    call: Call, frame: Frame, page: PageRenderer, form: CredentialForm, status: int = 200
) -> Response:
    kinds = sorted(credential_actions.models(call.services))
    command = credentials_page.add_command(form.kind)
    view = NewCredentialView(formatting.instant(_now_ms()), kinds, form, command)
    return page.respond("access/credential_new.html", frame, status, view=view)


def _one_page(
    call: Call,
    frame: Frame,
    page: PageRenderer,
    name: str,
    form: CredentialForm | None = None,
    *,
    kind: str = "",
    did: str = "",
    note: str = "",
    replaces: bool = False,
    refusal: errors.PollerError | None = None,
    status: int = 200,
) -> Response:
    found = credential_actions.show(call.services, call.actor, name)
    authors = credential_actions.last_authors(call.services, call.actor, [name])
    if form is None:
        model = credential_actions.model(call.services, kind or found.kind)
        form = credential_form.build(model, keeps=model.kind == found.kind)
    kinds = sorted(credential_actions.models(call.services))
    view = credentials_page.build_one(
        found, authors, form, kinds, _now_ms(), did, note, replaces, refusal
    )
    return page.respond("access/credential.html", frame, status, view=view)


def _told(path: str, **told: str) -> Response:
    """Lead to the page that says what was done."""
    words = urlencode({name: text for name, text in told.items() if text})
    return RedirectResponse(f"{path}?{words}", SEE_OTHER)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
