"""Users, tokens and sessions in SQL: what is stored, what ends, and what the audit log says."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import access_retention, audit_rows, session_rows, token_rows, user_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.access.session_rows import NewSession
from poller.db.access.token_rows import NewToken
from poller.db.access.user_rows import UserEdit
from poller.db.tables import audit, sessions, tokens
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.access.scopes import Role, Scope

KIM = Actor("kim", ActorKind.CLI, "host-1")
HOUR_MS = 3_600_000


def anything(_accounts: object) -> None:
    """A check that refuses nothing."""


def actions(engine: Engine) -> list[str]:
    return [row.action for row in audit_rows.listing(engine, AuditQuery())]


def log_in(engine: Engine, name: str, value: str = "a", lives_ms: int = HOUR_MS) -> None:
    new = NewSession(value * 64, name, Role.ADMIN, session_rows.LOCAL, "192.0.2.1", lives_ms)
    session_rows.add(engine, new, KIM)


def test_a_user_is_added_changed_and_removed(engine: Engine) -> None:
    """Each step leaves an audit row, without the hash of the password."""
    made = user_rows.add(engine, "lee", Role.VIEWER, "hash-1", KIM)
    assert (made.name, made.role, made.enabled, made.last_login_ms) == (
        "lee",
        Role.VIEWER,
        True,
        None,
    )
    edit = UserEdit(Role.ADMIN, None, "hash-2")
    assert user_rows.edit(engine, "lee", edit, KIM, anything).role is Role.ADMIN
    assert user_rows.password_hash(engine, "lee") == "hash-2"
    user_rows.remove(engine, "lee", KIM, anything)
    assert user_rows.listing(engine) == []
    rows = audit_rows.listing(engine, AuditQuery())
    assert [row.action for row in rows] == ["user.remove", "user.edit", "user.add"]
    assert (rows[1].before, rows[1].after) == (
        {"role": "viewer"},
        {"role": "admin", "password_changed": True},
    )
    assert "hash-" not in str(rows)


def test_a_name_is_taken_once_and_a_missing_one_is_named(engine: Engine) -> None:
    """The errors say which name, and the nearest one."""
    user_rows.add(engine, "lee", Role.VIEWER, "hash", KIM)
    with pytest.raises(errors.AlreadyExists, match="lee"):
        user_rows.add(engine, "lee", Role.VIEWER, "hash", KIM)
    with pytest.raises(errors.NotFound) as missing:
        user_rows.get(engine, "leo")
    assert "did you mean lee?" in missing.value.hint


def test_a_check_that_refuses_changes_nothing(engine: Engine) -> None:
    """The check sees the accounts as the edit would leave them."""
    user_rows.add(engine, "lee", Role.ADMIN, "hash", KIM)
    seen = []

    def refuse(accounts: object) -> None:
        seen.append(accounts)
        raise errors.InvalidInput("no")

    with pytest.raises(errors.InvalidInput):
        user_rows.edit(engine, "lee", UserEdit(role=Role.VIEWER), KIM, refuse)
    with pytest.raises(errors.InvalidInput):
        user_rows.remove(engine, "lee", KIM, refuse)
    assert seen == [[(Role.VIEWER, True)], []]
    assert user_rows.get(engine, "lee").role is Role.ADMIN


def test_a_disabled_user_has_no_hash_and_no_session(engine: Engine) -> None:
    """Disabling a user ends its sessions at once."""
    user_rows.add(engine, "lee", Role.ADMIN, "hash", KIM)
    log_in(engine, "lee")
    assert session_rows.valid(engine, "a" * 64, HOUR_MS)
    user_rows.edit(engine, "lee", UserEdit(enabled=False), KIM, anything)
    assert user_rows.password_hash(engine, "lee") is None
    assert not user_rows.any_enabled(engine)
    assert session_rows.valid(engine, "a" * 64, HOUR_MS) is None


def test_a_hash_is_replaced_only_if_it_is_still_the_same(engine: Engine) -> None:
    """A password that was changed during a log-in stays the new one."""
    user_rows.add(engine, "lee", Role.ADMIN, "old", KIM)
    user_rows.replace_hash(engine, "lee", "other", "newer")
    assert user_rows.password_hash(engine, "lee") == "old"
    user_rows.replace_hash(engine, "lee", "old", "newer")
    assert user_rows.password_hash(engine, "lee") == "newer"


def test_a_changed_password_ends_the_other_sessions_of_the_user(engine: Engine) -> None:
    """The session in which it was changed goes on; a wrong old hash changes nothing."""
    for name in ("lee", "max"):
        user_rows.add(engine, name, Role.ADMIN, "hash", KIM)
    for name, value in (("lee", "a"), ("lee", "b"), ("max", "c")):
        log_in(engine, name, value)
    assert not user_rows.change_password(engine, "lee", "wrong", "new", "a" * 64, KIM)
    assert len(session_rows.listing(engine)) == 3
    assert user_rows.change_password(engine, "lee", "hash", "new", "a" * 64, KIM)
    assert [each.id for each in session_rows.listing(engine)] == ["a" * 12, "c" * 12]
    assert user_rows.password_hash(engine, "lee") == "new"
    [row] = audit_rows.listing(engine, AuditQuery(action="user.password"))
    assert (row.subject, row.after) == ("lee", {"sessions_ended": 1})


def test_sessions_are_listed_newest_first_in_pages(engine: Engine) -> None:
    """Those of one instant are apart by their ids; a name has its own only."""
    user_rows.add(engine, "lee", Role.ADMIN, "hash", KIM)
    user_rows.add(engine, "max", Role.ADMIN, "hash", KIM)
    for name, value in (("lee", "a"), ("max", "b"), ("lee", "c"), ("lee", "d")):
        log_in(engine, name, value)
    log_in(engine, "max", "e", lives_ms=-1)
    with sql.writing(engine) as conn:
        order = {"a": 3, "b": 2, "c": 2, "d": 1}
        for value, created_ms in order.items():
            mine = sessions.c.session_hash == value * 64
            conn.execute(sa.update(sessions).where(mine).values(created_ms=created_ms))
    first = session_rows.newest(engine, 2)
    assert [each.id[0] for each in first] == ["a", "c"]
    rest = session_rows.newest(engine, 9, (first[-1].created_ms, first[-1].id))
    assert [each.id[0] for each in rest] == ["b", "d"]
    assert [each.id[0] for each in session_rows.newest(engine, 9, name="lee")] == ["a", "c", "d"]


def test_a_name_ends_its_own_sessions_only(engine: Engine) -> None:
    """The id of the session of somebody else is no session of one's own."""
    user_rows.add(engine, "lee", Role.ADMIN, "hash", KIM)
    log_in(engine, "lee", "a")
    lee = Actor("lee", ActorKind.USER, "192.0.2.1")
    assert session_rows.revoke_own(engine, "a" * 12, KIM) == 0
    assert session_rows.revoke_own(engine, "a" * 12, lee) == 1
    assert session_rows.listing(engine) == []


def test_a_session_has_the_role_that_its_user_has_now(engine: Engine) -> None:
    """A demotion is effective with the next request; a session of OpenID Connect keeps its own."""
    user_rows.add(engine, "lee", Role.ADMIN, "hash", KIM)
    log_in(engine, "lee")
    user_rows.edit(engine, "lee", UserEdit(role=Role.VIEWER), KIM, anything)
    found = session_rows.valid(engine, "a" * 64, HOUR_MS)
    assert found is not None
    assert (found.role, found.name) == (Role.VIEWER, "lee")
    assert user_rows.get(engine, "lee").last_login_ms == found.created_ms

    by_provider = NewSession("b" * 64, "lee", Role.OPERATOR, session_rows.OIDC, "::1", HOUR_MS)
    session_rows.add(engine, by_provider, KIM)
    other = session_rows.valid(engine, "b" * 64, HOUR_MS)
    assert other is not None
    assert other.role is Role.OPERATOR


def test_a_session_ends_by_age_by_idleness_and_by_hand(engine: Engine) -> None:
    """The database's clock decides."""
    user_rows.add(engine, "lee", Role.ADMIN, "hash", KIM)
    log_in(engine, "lee", "a", lives_ms=-1)
    log_in(engine, "lee", "b")
    log_in(engine, "lee", "c")
    assert session_rows.valid(engine, "a" * 64, HOUR_MS) is None
    with sql.writing(engine) as conn:
        conn.execute(sa.update(sessions).values(seen_ms=sessions.c.seen_ms - HOUR_MS))
    assert session_rows.valid(engine, "b" * 64, HOUR_MS) is None
    session_rows.mark_seen(engine, "b" * 64)
    session_rows.mark_seen(engine, "c" * 64)
    assert session_rows.valid(engine, "b" * 64, HOUR_MS)
    assert session_rows.end(engine, "b" * 64, KIM)
    assert not session_rows.end(engine, "b" * 64, KIM)
    [left] = session_rows.listing(engine)
    assert session_rows.revoke_one(engine, left.id, KIM) == 1
    assert session_rows.listing(engine) == []
    assert actions(engine)[:2] == ["session.revoke", "session.logout"]


def test_a_token_is_found_by_its_hash_until_it_expires(engine: Engine) -> None:
    """The last use is stored; the hash is in no list and in no audit row."""
    new = NewToken("ci", "f" * 64, (Scope.READ, Scope.OPERATE), None, HOUR_MS)
    token_rows.add(engine, new, KIM)
    found = token_rows.valid(engine, "f" * 64)
    assert found is not None
    assert (found.name, found.scopes, found.created_by) == (
        "ci",
        (Scope.READ, Scope.OPERATE),
        "kim",
    )
    token_rows.mark_used(engine, found.id)
    used = token_rows.get(engine, "ci").last_used_ms
    assert used
    assert abs(used - database_clock.now_ms(engine)) < 60_000
    assert token_rows.any_valid(engine)
    with sql.writing(engine) as conn:
        conn.execute(sa.update(tokens).values(expires_ms=1))
    assert token_rows.valid(engine, "f" * 64) is None
    assert not token_rows.any_valid(engine)
    token_rows.remove(engine, "ci", KIM)
    assert token_rows.listing(engine) == []
    rows = audit_rows.listing(engine, AuditQuery())
    assert [row.action for row in rows] == ["token.remove", "token.add"]
    assert "f" * 64 not in str(rows)


def test_a_token_of_a_site_needs_the_site(engine: Engine) -> None:
    """A misspelled site would be a token that sees nothing."""
    with pytest.raises(errors.UnknownName, match="ams"):
        token_rows.add(engine, NewToken("ci", "f" * 64, (Scope.READ,), "ams"), KIM)


def test_old_audit_rows_and_ended_sessions_are_pruned_in_steps(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows within the retention and living sessions stay."""
    monkeypatch.setattr(access_retention, "CHUNK", 2)
    user_rows.add(engine, "lee", Role.ADMIN, "hash", KIM)
    with sql.writing(engine) as conn:
        audit_rows.append(conn, KIM, [AuditEntry("device.edit", "sw1")] * 5, 1_000)
    log_in(engine, "lee", "a", lives_ms=-HOUR_MS)
    log_in(engine, "lee", "b")
    rests: list[float] = []
    now_ms = database_clock.now_ms(engine)
    until_mono = time.monotonic() + 60
    pruned = access_retention.prune(engine, 2_000, now_ms, rests.append, until_mono)
    assert (pruned.audit, pruned.sessions, len(rests)) == (5, 1, 2)
    with sql.single_read(engine) as conn:
        assert conn.execute(sa.select(sa.func.count()).select_from(audit)).scalar() == 3
    assert [each.id for each in session_rows.listing(engine)] == ["b" * 12]
