"""Log-ins of browsers in SQL. A session of a local user has the role that the user has now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.tables import sessions, users
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.access.scopes import Role

LOCAL = "local"
OIDC = "oidc"
#: Characters of the hash that name a session in lists: too few to find the hash.
SHOWN = 12


@dataclass(frozen=True, slots=True)
class NewSession:
    """A log-in to store."""

    session_hash: str
    name: str
    role: Role
    source: str
    address: str
    lives_ms: int


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A log-in. `id` names it in lists; the hash is not shown."""

    id: str
    name: str
    role: Role
    source: str
    address: str
    created_ms: int
    seen_ms: int
    expires_ms: int


def add(engine: Engine, session: NewSession, actor: Actor) -> StoredSession:
    """Store a log-in and its audit row."""
    with sql.writing(engine) as conn:
        now_ms = database_clock.read_ms(conn)
        row = {
            "session_hash": session.session_hash,
            "name": session.name,
            "role": session.role.value,
            "source": session.source,
            "address": session.address,
            "created_ms": now_ms,
            "seen_ms": now_ms,
            "expires_ms": now_ms + session.lives_ms,
        }
        conn.execute(sa.insert(sessions).values(**row))
        if session.source == LOCAL:
            mine = sa.update(users).where(users.c.name == session.name)
            conn.execute(mine.values(last_login_ms=now_ms))
        after = {"source": session.source, "role": session.role.value}
        entry = AuditEntry("session.login", session.name, after=after)
        audit_rows.append(conn, actor, [entry], now_ms)
        return _session({**row, "role": session.role.value})


def valid(engine: Engine, session_hash: str, idle_ms: int) -> StoredSession | None:
    """Return the log-in of a hash, if it has not ended and its user may log in still."""
    present = database_clock.PresentMs()
    mine = sa.and_(
        sessions.c.session_hash == session_hash,
        sessions.c.expires_ms > present,
        sessions.c.seen_ms > present - idle_ms,
    )
    with sql.single_read(engine) as conn:
        row = conn.execute(_VALID.where(mine)).first()
    return None if row is None else _session(row._mapping)


def mark_seen(engine: Engine, session_hash: str) -> None:
    """Remember that a session was used now."""
    update = sa.update(sessions).where(sessions.c.session_hash == session_hash)
    with sql.writing(engine) as conn:
        conn.execute(update.values(seen_ms=database_clock.PresentMs()))


def end(engine: Engine, session_hash: str, actor: Actor) -> bool:
    """Remove one log-in. Returns whether there was one."""
    with sql.writing(engine) as conn:
        mine = sa.delete(sessions).where(sessions.c.session_hash == session_hash)
        if not conn.execute(mine).rowcount:
            return False
        entry = AuditEntry("session.logout", actor.name)
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return True


def revoke(engine: Engine, condition: sa.ColumnElement[bool], subject: str, actor: Actor) -> int:
    """Remove the log-ins of a condition. Returns their number."""
    with sql.writing(engine) as conn:
        number = conn.execute(sa.delete(sessions).where(condition)).rowcount
        if number:
            entry = AuditEntry("session.revoke", subject, count=number)
            audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return number


def revoke_one(engine: Engine, session_id: str, actor: Actor) -> int:
    """Remove the log-in that lists show under this id."""
    condition = sa.func.substr(sessions.c.session_hash, 1, SHOWN) == session_id
    return revoke(engine, condition, session_id, actor)


def revoke_own(engine: Engine, session_id: str, actor: Actor) -> int:
    """Remove a log-in of the actor's own name."""
    shown_id = sa.func.substr(sessions.c.session_hash, 1, SHOWN)
    condition = sa.and_(shown_id == session_id, sessions.c.name == actor.name)
    return revoke(engine, condition, session_id, actor)


def revoke_of(engine: Engine, name: str, actor: Actor) -> int:
    """Remove all log-ins of a name."""
    return revoke(engine, sessions.c.name == name, name, actor)


def listing(engine: Engine, limit: int = 10_000) -> list[StoredSession]:
    """Return log-ins that have not ended, in the order of their ids."""
    query = _VALID.where(sessions.c.expires_ms > database_clock.PresentMs())
    with sql.single_read(engine) as conn:
        rows = conn.execute(query.order_by(sessions.c.session_hash).limit(limit))
        return [_session(row._mapping) for row in rows]


def newest(
    engine: Engine, limit: int, before: tuple[int, str] | None = None, name: str | None = None
) -> list[StoredSession]:
    """Return log-ins that have not ended, the newest first; those of a name, or all.

    `before` continues a page: the beginning and the id of its last log-in.
    """
    shown_id = sa.func.substr(sessions.c.session_hash, 1, SHOWN)
    wanted = [sessions.c.expires_ms > database_clock.PresentMs()]
    if name is not None:
        wanted.append(sessions.c.name == name)
    if before is not None:
        created_ms, session_id = before
        is_same = sa.and_(sessions.c.created_ms == created_ms, shown_id < session_id)
        wanted.append(sa.or_(sessions.c.created_ms < created_ms, is_same))
    order = sessions.c.created_ms.desc(), shown_id.desc()
    with sql.single_read(engine) as conn:
        rows = conn.execute(_VALID.where(*wanted).order_by(*order).limit(limit))
        return [_session(row._mapping) for row in rows]


def _session(row: Mapping[Any, Any]) -> StoredSession:
    return StoredSession(
        id=row["session_hash"][:SHOWN],
        name=row["name"],
        role=Role(row["role"]),
        source=row["source"],
        address=row["address"],
        created_ms=row["created_ms"],
        seen_ms=row["seen_ms"],
        expires_ms=row["expires_ms"],
    )


_IS_LOCAL = sessions.c.source == LOCAL
_VALID = (
    sa.select(
        sessions.c.session_hash,
        sessions.c.name,
        sa.case((_IS_LOCAL, users.c.role), else_=sessions.c.role).label("role"),
        sessions.c.source,
        sessions.c.address,
        sessions.c.created_ms,
        sessions.c.seen_ms,
        sessions.c.expires_ms,
    )
    .select_from(sessions.outerjoin(users, sa.and_(_IS_LOCAL, users.c.name == sessions.c.name)))
    .where(sa.or_(sa.not_(_IS_LOCAL), users.c.enabled))
)
