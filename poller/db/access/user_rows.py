"""Local users in SQL. This module sees hashes of passwords and no password."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.inventory import lookup
from poller.db.tables import sessions, users
from poller.domain.access import audit_entry
from poller.domain.access.accounts import Account
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.access.scopes import Role

#: Called with the accounts that an edit would leave; raises to refuse the edit.
Check = Callable[[Sequence[Account]], None]


@dataclass(frozen=True, slots=True)
class StoredUser:
    """A user, without the hash of the password."""

    id: int
    name: str
    role: Role
    enabled: bool
    last_login_ms: int | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class UserEdit:
    """New values; None leaves one as it is. All sessions end with a new password."""

    role: Role | None = None
    enabled: bool | None = None
    password_hash: str | None = None


def add(engine: Engine, name: str, role: Role, password_hash: str, actor: Actor) -> StoredUser:
    """Store a user. Raises AlreadyExists."""
    with sql.writing(engine) as conn:
        if _row(conn, name) is not None:
            raise errors.AlreadyExists(
                f'there is a user named "{name}" already', hint=f"poller user edit {name}"
            )
        now = datetime.now(UTC)
        row = {"name": name, "role": role.value, "password_hash": password_hash, "enabled": True}
        conn.execute(sa.insert(users).values(**row, created_at=now, updated_at=now))
        entry = AuditEntry("user.add", name, after={"role": role.value})
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return _known(conn, name)


def edit(engine: Engine, name: str, changes: UserEdit, actor: Actor, check: Check) -> StoredUser:
    """Change a user. Raises NotFound, and what `check` raises."""
    with sql.writing(engine) as conn:
        accounts = _locked_accounts(conn)
        before = _known(conn, name)
        values: dict[str, Any] = {}
        if changes.role is not None:
            values["role"] = changes.role.value
        if changes.enabled is not None:
            values["enabled"] = changes.enabled
        if changes.password_hash is not None:
            values["password_hash"] = changes.password_hash

        role = changes.role or before.role
        is_enabled = before.enabled if changes.enabled is None else changes.enabled
        accounts[name] = Account(role, is_enabled)
        check(list(accounts.values()))

        changed = {**values, "updated_at": datetime.now(UTC)}
        conn.execute(sa.update(users).where(users.c.id == before.id).values(changed))
        if changes.password_hash is not None or not is_enabled:
            _end_sessions(conn, name)
        entry = audit_entry.differing(
            "user.edit",
            name,
            {"role": before.role.value, "enabled": before.enabled},
            {"role": role.value, "enabled": is_enabled, **_password_note(changes)},
        )
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return _known(conn, name)


def remove(engine: Engine, name: str, actor: Actor, check: Check) -> None:
    """Remove a user and its sessions. Raises NotFound, and what `check` raises."""
    with sql.writing(engine) as conn:
        accounts = _locked_accounts(conn)
        before = _known(conn, name)
        del accounts[name]
        check(list(accounts.values()))
        _end_sessions(conn, name)
        conn.execute(sa.delete(users).where(users.c.id == before.id))
        entry = AuditEntry("user.remove", name, before={"role": before.role.value})
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))


def listing(engine: Engine) -> list[StoredUser]:
    """Return all users by name."""
    with sql.single_read(engine) as conn:
        return [_user(row._mapping) for row in conn.execute(_USERS.order_by(users.c.name))]


def get(engine: Engine, name: str) -> StoredUser:
    """Return one user. Raises NotFound."""
    with sql.reading(engine) as conn:
        return _known(conn, name)


def any_enabled(engine: Engine) -> bool:
    """Whether a local user can log in."""
    query = sa.select(users.c.id).where(users.c.enabled).limit(1)
    with sql.single_read(engine) as conn:
        return conn.execute(query).first() is not None


def password_hash(engine: Engine, name: str) -> str | None:
    """Return the hash of an enabled user; None for any other name."""
    query = sa.select(users.c.password_hash).where(users.c.name == name, users.c.enabled)
    with sql.single_read(engine) as conn:
        found = conn.execute(query).scalar()
    return None if found is None else str(found)


def replace_hash(engine: Engine, name: str, old: str, new: str) -> None:
    """Store a hash with newer parameters, unless the password was changed meanwhile."""
    mine = sa.and_(users.c.name == name, users.c.password_hash == old)
    with sql.writing(engine) as conn:
        conn.execute(sa.update(users).where(mine).values(password_hash=new))


def change_password(
    engine: Engine, name: str, old: str, new: str, kept_session: str, actor: Actor
) -> bool:
    """Store a new hash, and end the user's sessions but one. Returns whether `old` was the hash.

    `kept_session` is the hash of the session in which the password was changed.
    """
    mine = sa.and_(users.c.name == name, users.c.password_hash == old, users.c.enabled)
    with sql.writing(engine) as conn:
        values = {"password_hash": new, "updated_at": datetime.now(UTC)}
        if not conn.execute(sa.update(users).where(mine).values(values)).rowcount:
            return False
        ended = _end_sessions(conn, name, kept_session)
        after = {"sessions_ended": ended} if ended else {}
        entry = AuditEntry("user.password", name, after=after)
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return True


def _password_note(changes: UserEdit) -> dict[str, bool]:
    return {} if changes.password_hash is None else {"password_changed": True}


def _end_sessions(conn: Connection, name: str, kept_session: str = "") -> int:
    """End the sessions of a user but one. Returns their number."""
    mine = sa.and_(
        sessions.c.name == name,
        sessions.c.source == "local",
        sessions.c.session_hash != kept_session,
    )
    return conn.execute(sa.delete(sessions).where(mine)).rowcount


def _locked_accounts(conn: Connection) -> dict[str, Account]:
    """Return all accounts by name, locked: two edits must not both leave the other's admin."""
    query = sa.select(users.c.name, users.c.role, users.c.enabled).with_for_update()
    return {row.name: Account(Role(row.role), bool(row.enabled)) for row in conn.execute(query)}


def _known(conn: Connection, name: str) -> StoredUser:
    row = _row(conn, name)
    if row is None:
        raise lookup.missing(conn, users, name, "user", "poller user list")
    return _user(row)


def _row(conn: Connection, name: str) -> Mapping[Any, Any] | None:
    found = conn.execute(_USERS.where(users.c.name == name)).first()
    return None if found is None else found._mapping


def _user(row: Mapping[Any, Any]) -> StoredUser:
    values = {str(key): value for key, value in row.items()}
    return StoredUser(**{**values, "role": Role(row["role"]), "enabled": bool(row["enabled"])})


_USERS = sa.select(
    users.c.id,
    users.c.name,
    users.c.role,
    users.c.enabled,
    users.c.last_login_ms,
    users.c.created_at,
    users.c.updated_at,
)
