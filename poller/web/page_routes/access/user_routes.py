"""The pages of users and their sessions. Passwords come in and never go out."""

from __future__ import annotations

import time
from operator import attrgetter
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.domain.access import accounts
from poller.domain.access.actor import ActorKind
from poller.security import passwords
from poller.service.access import browser_logins, user_accounts
from poller.service.access.user_accounts import UserChanges
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.access.sessions_api import SessionId
from poller.web.api.access.users_api import UserName
from poller.web.api.contract import paging, problems
from poller.web.api.contract.needs import Administering, Call
from poller.web.page_routes.access import session_view
from poller.web.pages.access import users_page
from poller.web.pages.access.input_fields import Refusal
from poller.web.pages.access.users_page import ListedUsers
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

SEE_OTHER = 303
Word = Annotated[str, Query(max_length=200)]
Cursor = Annotated[str, Query(max_length=2_000)]


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the pages of users, and the addresses that their forms are sent to."""
    _add_list(app, page)
    _add_one(app, page)


def _add_list(app: FastAPI, page: PageRenderer) -> None:
    @app.get("/users", response_class=HTMLResponse)
    def list_users(
        request: Request,
        call: Administering,
        frame: RequestedFrame,
        after: Word = "",
        sessions: Cursor = "",
        did: Word = "",
        name: Word = "",
    ) -> Response:
        """The users by name, the form of a new one, and the newest sessions."""
        said = users_page.said(did, name)
        try:
            return _list_page(request, call, frame, page, after, sessions, said=said)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

    @app.post("/users", response_class=HTMLResponse)
    def add_user(
        request: Request, call: Administering, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Add a user; a form that is refused is shown again, without its passwords."""
        name, role = form.one(users_page.NAME), form.one(users_page.ROLE)
        try:
            try:
                chosen = accounts.checked_role(role)
                password = _password(form)
                user_accounts.add(call.services, call.actor, name, chosen, password)
            except errors.ConfigError as error:
                refusal = Refusal("add", error, users_page.texts(role, name))
                return _list_page(request, call, frame, page, refusal=refusal)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        request.app.state.finder.clear()
        return _told("./users", did="add", name=name)

    @app.post("/sessions/{session_id}/end", response_class=HTMLResponse)
    def end_session(
        request: Request, call: Administering, session_id: SessionId, form: SentForm
    ) -> Response:
        """End a session of anybody."""
        try:
            browser_logins.revoke(call.services, call.actor, session_id)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        request.app.state.finder.clear()
        name = form.one("back")
        path = f"../../users/{quote(name, safe='')}" if name else "../../users"
        return _told(path, did="end")


def _add_one(app: FastAPI, page: PageRenderer) -> None:
    @app.get("/users/{name}", response_class=HTMLResponse)
    def show_user(
        request: Request,
        call: Administering,
        frame: RequestedFrame,
        name: UserName,
        did: Word = "",
    ) -> Response:
        """One user with the forms that change it."""
        try:
            return _one_page(request, call, frame, page, name, said=users_page.said(did, name))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

    @app.post("/users/{name}", response_class=HTMLResponse)
    def change_user(
        request: Request,
        call: Administering,
        frame: RequestedFrame,
        name: UserName,
        form: SentForm,
    ) -> Response:
        """Change or remove a user by one of the forms; a refused form says why beside itself."""
        act = form.one("act")
        try:
            try:
                path, did = _changed(call, name, act, form)
            except errors.InvalidInput as error:
                refusal = Refusal(act, error, {})
                return _one_page(request, call, frame, page, name, refusal=refusal)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        request.app.state.finder.clear()
        return _told(path, did=did, name=name)


def _changed(call: Call, name: str, act: str, form: FormValues) -> tuple[str, str]:
    """Do what a form asks for. Returns the next page, and what it says. Raises InvalidInput."""
    if act == "remove":
        user_accounts.remove(call.services, call.actor, name)
        return "../users", "remove"
    changes, did = _changes(act, form)
    user_accounts.edit(call.services, call.actor, name, changes)
    return f"./{quote(name, safe='')}", did


def _changes(act: str, form: FormValues) -> tuple[UserChanges, str]:
    """The changes of a form, and what the next page says. Raises InvalidInput."""
    if act == "role":
        return UserChanges(role=accounts.checked_role(form.one(users_page.ROLE))), act
    if act == "password":
        return UserChanges(password=_password(form)), act
    if act in ("enable", "disable"):
        return UserChanges(enabled=act == "enable"), act
    raise errors.InvalidInput(f'act: there is no action "{act[:40]}"')


def _password(form: FormValues) -> str:
    """The password as it was typed: it may begin or end with a blank. Raises InvalidInput."""
    password = form.as_typed(users_page.PASSWORD)
    passwords.refuse_different(password, form.as_typed(users_page.AGAIN))
    return password


def _list_page(
    request: Request,
    call: Call,
    frame: Frame,
    page: PageRenderer,
    after: str = "",
    cursor: str = "",
    *,
    said: str = "",
    refusal: Refusal | None = None,
) -> Response:
    services = call.services
    listed = user_accounts.listing(services, call.actor)
    every = sorted(listed, key=attrgetter("name"))
    rest = [each for each in every if each.name > after]
    is_first = call.actor.kind is ActorKind.LOCAL
    key = paging.decode(cursor, int, str)
    before = (key[0], key[1]) if key else None
    stored = browser_logins.newest(services, call.actor, session_view.LIMIT + 1, before)
    shown = stored[: session_view.LIMIT]
    following = None
    if len(stored) > len(shown):
        following = paging.encode([shown[-1].created_ms, shown[-1].id])
    found = ListedUsers(
        rest[: users_page.LIMIT],
        has_more=len(rest) > users_page.LIMIT,
        after=after,
        sessions=session_view.lines(request, call, shown),
        session_cursor=cursor,
        next_session_cursor=following or "",
        first_user_notes=user_accounts.first_user_notes(services.settings) if is_first else [],
    )
    view = users_page.build_list(found, _own_name(call), _now_ms(), said, refusal)
    status = problems.status(refusal.error) if refusal else 200
    return page.respond("access/users.html", frame, status, view=view)


def _one_page(
    request: Request,
    call: Call,
    frame: Frame,
    page: PageRenderer,
    name: str,
    *,
    said: str = "",
    refusal: Refusal | None = None,
) -> Response:
    found = user_accounts.get(call.services, call.actor, name)
    stored = browser_logins.newest(call.services, call.actor, session_view.LIMIT, name=name)
    lines = session_view.lines(request, call, stored)
    view = users_page.build_one(found, lines, _own_name(call), _now_ms(), said, refusal)
    status = problems.status(refusal.error) if refusal else 200
    return page.respond("access/user.html", frame, status, view=view)


def _own_name(call: Call) -> str:
    return call.actor.name if call.actor.kind is ActorKind.USER else ""


def _told(path: str, **told: str) -> Response:
    """Lead to the page that says what was done."""
    return RedirectResponse(f"{path}?{urlencode(told)}", SEE_OTHER)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
