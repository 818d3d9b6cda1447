"""`/api/v1/session`: who asks. `/api/v1/sessions`: the log-ins of all browsers."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from poller.db.access.session_rows import StoredSession
from poller.domain.access.actor import ActorKind
from poller.domain.access.scopes import Role, Scope
from poller.presentation import formatting
from poller.security import passwords, token_values
from poller.service.access import browser_logins, own_account
from poller.web.api.access.users_api import Password
from poller.web.api.contract import paging, problems, resources
from poller.web.api.contract.idempotency import HOLDS_SECRET
from poller.web.api.contract.needs import Administering, AnyLogin
from poller.web.api.contract.paging import Cursor, Limit, Page

router = resources.router("sessions")
own_router = resources.router("session")

SessionId = Annotated[str, Path(max_length=64, description="The id that the list shows.")]


class OwnSession(BaseModel):
    """The present actor and its rights."""

    name: str
    kind: ActorKind
    scopes: list[Scope]
    site: str | None = Field(description="The one site that a token is limited to.")
    csrf_token: str = Field(
        description="The header X-CSRF-Token of changes by a browser; empty where none is needed."
    )


class SessionBody(BaseModel):
    """A login of a browser. Instants are in ms since 1970."""

    id: str
    name: str
    role: Role
    source: str = Field(description="`local` for a password, `oidc` for OpenID Connect.")
    address: str
    created_at: datetime
    last_used_at: datetime = Field(description="To the minute.")
    expires_at: datetime


class PasswordChange(BaseModel):
    """The old and the new password of the user who asks."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    old_password: Annotated[SecretStr, Field(max_length=passwords.LONGEST)]
    password: Password


@own_router.get("")
def show_own(call: AnyLogin, request: Request) -> OwnSession:
    """Show who asks: a session, a token, a proxy's user, or the local actor."""
    value = getattr(request.state, "session_value", "")
    actor = call.actor
    return OwnSession(
        name=actor.name,
        kind=actor.kind,
        scopes=[scope for scope in Scope if actor.may(scope)],
        site=actor.site,
        csrf_token=token_values.form_token(value) if value else "",
    )


@own_router.post(
    "/password", status_code=204, responses=problems.CHANGING, openapi_extra=HOLDS_SECRET
)
def change_own_password(call: AnyLogin, request: Request, change: PasswordChange) -> None:
    """Change the own password in a session of a local user; it ends the other sessions.

    A wrong old password counts as a failed log-in: 429 after ten of them within five minutes.
    """
    old, new = change.old_password.get_secret_value(), change.password.get_secret_value()
    state = request.app.state
    own_account.change_password(
        call.services, state.login_throttle, call.actor, old, new, request.state.session_value
    )
    state.finder.clear()


@router.get("")
def list_sessions(
    call: Administering,
    request: Request,
    response: Response,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[SessionBody]:
    """List the log-ins of all browsers by their ids."""
    listed = browser_logins.listing(call.services, call.actor)
    found = sorted(listed, key=attrgetter("id"))  # a database may have another order
    names = [session.id for session in found]
    start, end, following = paging.after_name(names, limit, cursor)
    paging.link_next(request, response, following)
    return Page(items=[_body(session) for session in found[start:end]], next=following)


@router.delete("/{session_id}", status_code=204, responses=problems.CHANGING)
def revoke_session(call: Administering, request: Request, session_id: SessionId) -> None:
    """End a login; every web process refuses it within seconds."""
    browser_logins.revoke(call.services, call.actor, session_id)
    request.app.state.finder.clear()


def _body(session: StoredSession) -> SessionBody:
    return SessionBody(
        id=session.id,
        name=session.name,
        role=session.role,
        source=session.source,
        address=session.address,
        created_at=formatting.utc(session.created_ms),
        last_used_at=formatting.utc(session.seen_ms),
        expires_at=formatting.utc(session.expires_ms),
    )
