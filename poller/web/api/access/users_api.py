"""`/api/v1/users`: people who may log in with a password."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from poller.db.access.user_rows import StoredUser
from poller.domain.access.scopes import Role
from poller.presentation import formatting
from poller.security import passwords
from poller.service.access import user_accounts
from poller.service.access.user_accounts import UserChanges
from poller.web.api.contract import paging, problems, resources
from poller.web.api.contract.idempotency import HOLDS_SECRET
from poller.web.api.contract.needs import Administering
from poller.web.api.contract.paging import Cursor, Limit, Page

router = resources.router("users")

UserName = Annotated[str, Path(max_length=200, description="The name of the user.")]
Password = Annotated[
    SecretStr,
    Field(max_length=passwords.LONGEST, description=f"At least {passwords.SHORTEST} characters."),
]


class UserBody(BaseModel):
    """A user as it is read."""

    name: str
    role: Role
    enabled: bool
    last_login_at: datetime | None = Field(description="Null: never.")
    created_at: datetime
    updated_at: datetime


class NewUser(BaseModel):
    """A user to add."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(max_length=200)
    role: Role = Role.VIEWER
    password: Password


class UserEdit(BaseModel):
    """The new fields of a user; others stay as they are."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    role: Role | None = None
    enabled: bool | None = None
    password: Password | None = None


@router.get("")
def list_users(
    call: Administering,
    request: Request,
    response: Response,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[UserBody]:
    """List all users by name."""
    listed = user_accounts.listing(call.services, call.actor)
    found = sorted(listed, key=attrgetter("name"))  # a database may have another order
    names = [each.name for each in found]
    start, end, following = paging.after_name(names, limit, cursor)
    paging.link_next(request, response, following)
    return Page(items=[_body(user) for user in found[start:end]], next=following)


@router.get("/{name}")
def show_user(call: Administering, name: UserName) -> UserBody:
    """Show one user."""
    return _body(user_accounts.get(call.services, call.actor, name))


@router.post("", status_code=201, responses=problems.CHANGING, openapi_extra=HOLDS_SECRET)
def add_user(call: Administering, request: Request, new: NewUser) -> UserBody:
    """Add a user."""
    password = new.password.get_secret_value()
    made = user_accounts.add(call.services, call.actor, new.name, new.role, password)
    request.app.state.finder.clear()
    return _body(made)


@router.patch("/{name}", responses=problems.CHANGING)
def edit_user(call: Administering, request: Request, name: UserName, edit: UserEdit) -> UserBody:
    """Change the role or the password of a user, or disable it."""
    password = edit.password.get_secret_value() if edit.password else None
    changes = UserChanges(edit.role, edit.enabled, password)
    changed = user_accounts.edit(call.services, call.actor, name, changes)
    request.app.state.finder.clear()
    return _body(changed)


@router.delete("/{name}", status_code=204, responses=problems.CHANGING)
def remove_user(call: Administering, request: Request, name: UserName) -> None:
    """Remove a user and end its sessions."""
    user_accounts.remove(call.services, call.actor, name)
    request.app.state.finder.clear()


def _body(user: StoredUser) -> UserBody:
    return UserBody(
        name=user.name,
        role=user.role,
        enabled=user.enabled,
        last_login_at=formatting.moment(user.last_login_ms or 0),
        created_at=user.created_at,
        updated_at=user.updated_at,
    )
