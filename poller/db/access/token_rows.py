"""API tokens in SQL. Only hashes are stored: a token is shown once, when it is made."""

from __future__ import annotations

from collections.abc import Mapping
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
from poller.db.tables import sites, tokens
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.access.scopes import Scope


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to store. It ends `lives_ms` from now by the database's clock; None: never."""

    name: str
    token_hash: str
    scopes: tuple[Scope, ...]
    site: str | None = None
    lives_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token, without its hash."""

    id: int
    name: str
    scopes: tuple[Scope, ...]
    site: str | None
    created_by: str
    expires_ms: int | None
    last_used_ms: int | None
    created_at: datetime
    updated_at: datetime


def add(engine: Engine, token: NewToken, actor: Actor) -> StoredToken:
    """Store a token. Raises AlreadyExists, and UnknownName for its site."""
    with sql.writing(engine) as conn:
        if _row(conn, tokens.c.name == token.name) is not None:
            raise errors.AlreadyExists(
                f'there is a token named "{token.name}" already',
                hint=f"poller token rm {token.name}",
            )
        if token.site is not None:
            _check_site(conn, token.site)
        now_ms = database_clock.read_ms(conn)
        expires_ms = None if token.lives_ms is None else now_ms + token.lives_ms
        names = [scope.value for scope in token.scopes]
        row = {
            "name": token.name,
            "token_hash": token.token_hash,
            "scopes": names,
            "site": token.site,
            "created_by": actor.name,
            "expires_ms": expires_ms,
        }
        now = datetime.now(UTC)
        conn.execute(sa.insert(tokens).values(**row, created_at=now, updated_at=now))
        after = {"scopes": names, "site": token.site, "expires_ms": expires_ms}
        audit_rows.append(conn, actor, [AuditEntry("token.add", token.name, after=after)], now_ms)
        return _known(conn, token.name)


def remove(engine: Engine, name: str, actor: Actor) -> None:
    """Remove a token, which ends its use. Raises NotFound."""
    with sql.writing(engine) as conn:
        before = _known(conn, name)
        conn.execute(sa.delete(tokens).where(tokens.c.id == before.id))
        values = {"scopes": [scope.value for scope in before.scopes], "site": before.site}
        entry = AuditEntry("token.remove", name, before=values)
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))


def listing(engine: Engine) -> list[StoredToken]:
    """Return all tokens by name, also those that have expired."""
    with sql.single_read(engine) as conn:
        return [_token(row._mapping) for row in conn.execute(_TOKENS.order_by(tokens.c.name))]


def get(engine: Engine, name: str) -> StoredToken:
    """Return one token. Raises NotFound."""
    with sql.reading(engine) as conn:
        return _known(conn, name)


def valid(engine: Engine, token_hash: str) -> StoredToken | None:
    """Return the token of a hash, if it has not expired by the database's clock."""
    query = _TOKENS.where(tokens.c.token_hash == token_hash, _IS_VALID)
    with sql.single_read(engine) as conn:
        row = conn.execute(query).first()
    return None if row is None else _token(row._mapping)


def any_valid(engine: Engine) -> bool:
    """Whether there is a token that has not expired."""
    with sql.single_read(engine) as conn:
        return conn.execute(sa.select(tokens.c.id).where(_IS_VALID).limit(1)).first() is not None


def mark_used(engine: Engine, token_id: int) -> None:
    """Remember that a token was used now."""
    update = sa.update(tokens).where(tokens.c.id == token_id)
    with sql.writing(engine) as conn:
        conn.execute(update.values(last_used_ms=database_clock.PresentMs()))


def _check_site(conn: Connection, site: str) -> None:
    if conn.execute(sa.select(sites.c.id).where(sites.c.name == site)).first() is None:
        with lookup.unknown_name("site"):
            raise lookup.missing(conn, sites, site, "site", "poller site list")


def _known(conn: Connection, name: str) -> StoredToken:
    row = _row(conn, tokens.c.name == name)
    if row is None:
        raise lookup.missing(conn, tokens, name, "token", "poller token list")
    return _token(row)


def _row(conn: Connection, condition: sa.ColumnElement[bool]) -> Mapping[Any, Any] | None:
    found = conn.execute(_TOKENS.where(condition)).first()
    return None if found is None else found._mapping


def _token(row: Mapping[Any, Any]) -> StoredToken:
    values = {str(key): value for key, value in row.items()}
    known = tuple(Scope(name) for name in row["scopes"] if name in list(Scope))
    return StoredToken(**{**values, "scopes": known})


_TOKENS = sa.select(
    tokens.c.id,
    tokens.c.name,
    tokens.c.scopes,
    tokens.c.site,
    tokens.c.created_by,
    tokens.c.expires_ms,
    tokens.c.last_used_ms,
    tokens.c.created_at,
    tokens.c.updated_at,
)
_IS_VALID = sa.or_(tokens.c.expires_ms.is_(None), tokens.c.expires_ms > database_clock.PresentMs())
