"""Local users: add, change, remove. Every change leaves an audit row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db.access import user_rows
from poller.db.access.user_rows import StoredUser, UserEdit
from poller.domain.access import accounts
from poller.domain.access.accounts import Account
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Role, Scope
from poller.security import network_exposure, passwords

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.settings import Settings


@dataclass(frozen=True, slots=True)
class UserChanges:
    """The changes of a user; None leaves a value as it is."""

    role: Role | None = None
    enabled: bool | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"UserChanges({self.role}, {self.enabled})"


def add(services: Services, actor: Actor, name: str, role: Role, password: str) -> StoredUser:
    """Add a user. Raises InvalidInput, AlreadyExists, NotAllowed, StoreError."""
    require_admin(actor)
    accounts.checked_user_name(name)
    passwords.checked(password, name)
    if actor.kind is ActorKind.LOCAL and role is not Role.ADMIN:
        raise errors.InvalidInput(
            "the first user who can log in needs the role admin: a login is asked for from then "
            "on, and nobody could manage users",
            hint="choose admin; others can be added afterwards",
            field="role",
        )
    return user_rows.add(services.engine, name, role, passwords.hashed(password), actor)


def first_user_notes(settings: Settings) -> list[str]:
    """Return what the first user changes, and what stays open."""
    notes = ["from the first user on, the page and the API ask for a login"]
    has_login = network_exposure.has_flower_login(
        settings.flower_basic_auth, settings.proxy_user_header
    )
    if not has_login:
        notes.append(
            f"Flower stays open at {settings.flower_bind}, to everybody on this host, and it can "
            "stop workers: set POLLER_FLOWER_BASIC_AUTH=user:password"
        )
    return notes


def edit(services: Services, actor: Actor, name: str, changes: UserChanges) -> StoredUser:
    """Change a user. A new password and a disabled user end all their sessions.

    Raises InvalidInput, NotFound, NotAllowed, StoreError.
    """
    require_admin(actor)
    accounts.checked_user_name(name)
    new_hash = None
    if changes.password is not None:
        new_hash = passwords.hashed(passwords.checked(changes.password, name))
    stored = UserEdit(changes.role, changes.enabled, new_hash)
    return user_rows.edit(services.engine, name, stored, actor, _check(services, actor))


def remove(services: Services, actor: Actor, name: str) -> None:
    """Remove a user and its sessions. Raises InvalidInput, NotFound, NotAllowed, StoreError."""
    require_admin(actor)
    accounts.checked_user_name(name)
    user_rows.remove(services.engine, name, actor, _check(services, actor))


def listing(services: Services, actor: Actor) -> list[StoredUser]:
    """Return all users. Raises NotAllowed, StoreError."""
    require_admin(actor)
    return user_rows.listing(services.engine)


def get(services: Services, actor: Actor, name: str) -> StoredUser:
    """Return one user. Raises NotFound, NotAllowed, StoreError."""
    require_admin(actor)
    accounts.checked_user_name(name)
    return user_rows.get(services.engine, name)


def require_admin(actor: Actor) -> None:
    """Raise NotAllowed unless the actor may manage access to all sites."""
    actor.require(Scope.ADMIN)
    actor.require_every_site()


def _check(services: Services, actor: Actor) -> user_rows.Check:
    """The check that somebody can log in afterwards.

    Only a command on the host may remove the last user, if the page is on loopback: no login is
    asked for then.
    """
    settings = services.settings
    has_other_logins = bool(settings.oidc_issuer or settings.proxy_user_header)
    is_local = network_exposure.is_loopback(settings.web_bind) and actor.kind is ActorKind.CLI

    def check(remaining: Sequence[Account]) -> None:
        if not has_other_logins:
            accounts.refuse_nobody_left(remaining, may_be_empty=is_local)

    return check
