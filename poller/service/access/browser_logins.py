"""Log-ins of browsers: with a password, or by OpenID Connect. Each is a session with an end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller import errors
from poller.db.access import session_rows, user_rows
from poller.db.access.session_rows import NewSession, StoredSession
from poller.domain.access import login_limits, scopes
from poller.domain.access.accounts import OIDC_MARK
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.access.scopes import Role
from poller.domain.inventory import naming
from poller.observability import logs
from poller.security import passwords, token_values
from poller.service.access import audit_log
from poller.service.access.login_throttle import LoginThrottle
from poller.service.access.user_accounts import require_admin

if TYPE_CHECKING:
    from poller.bootstrap import Services

log = logs.get(__name__)

_HOUR_MS = 3_600_000
#: Who is refused a log-in, in the audit log.
NOBODY = "nobody"
#: Stands for a name that no user has: it may be a password, typed into the wrong field.
UNKNOWN_USER = "unknown"


@dataclass(frozen=True, slots=True)
class Login:
    """A new session with the value of its cookie, which is stored nowhere."""

    session: StoredSession
    value: str = field(repr=False)


def log_in(
    services: Services, throttle: LoginThrottle, name: str, password: str, address: str
) -> Login:
    """Log a local user in. Raises NotLoggedIn, TooManyRequests, StoreError.

    An unknown name, a wrong password and a disabled user get the same answer after the same work.
    """
    attempt = throttle.begin(address, name)
    stored = None
    if name.isprintable():  # a database cannot compare with every character
        stored = user_rows.password_hash(services.engine, name)
    if not passwords.matches(stored, password):
        shown = name if stored else UNKNOWN_USER
        log.warning("login_failed", address=address, user=shown)
        _record_refusal(services, shown, address, attempt.telling_failures(stored is not None))
        raise errors.NotLoggedIn("the name or the password is wrong")

    attempt.succeeded()
    user = user_rows.get(services.engine, name)
    if stored and passwords.is_outdated(stored):
        user_rows.replace_hash(services.engine, name, stored, passwords.hashed(password))
    return _begin(services, user.name, user.role, session_rows.LOCAL, address)


def _record_refusal(services: Services, user: str, address: str, failures: int) -> None:
    """Add an audit row about failures that are worth one; a store that is away gets none."""
    if not failures:
        return
    actor = Actor(NOBODY, ActorKind.USER, address, scopes.granted(()))
    window = {"failures": failures, "within_s": login_limits.OF_USER.window_s}
    entry = AuditEntry("login.refused", user, after=window, count=failures)
    with suppress(errors.StoreError):
        audit_log.record(services, actor, entry)


def log_in_by_provider(services: Services, name: str, role: Role, address: str) -> Login:
    """Log a user of OpenID Connect in, whom the provider named. Raises StoreError."""
    marked = OIDC_MARK + naming.printable(name)[: naming.LONGEST_NAME - len(OIDC_MARK)]
    return _begin(services, marked, role, session_rows.OIDC, address)


def log_out(services: Services, actor: Actor, value: str) -> None:
    """End the session of a cookie's value. Raises StoreError."""
    session_rows.end(services.engine, token_values.digest(value), actor)


def listing(services: Services, actor: Actor) -> list[StoredSession]:
    """Return all sessions. Raises NotAllowed, StoreError."""
    require_admin(actor)
    return session_rows.listing(services.engine)


def newest(
    services: Services,
    actor: Actor,
    limit: int,
    before: tuple[int, str] | None = None,
    name: str | None = None,
) -> list[StoredSession]:
    """Return sessions, the newest first; those of a name, or all. Raises NotAllowed, StoreError.

    `before` continues a page: the beginning in ms and the id of its last session.
    """
    require_admin(actor)
    return session_rows.newest(services.engine, limit, before, name)


def revoke(services: Services, actor: Actor, session_id: str) -> None:
    """End a session by the id of the list. Raises NotFound, NotAllowed, StoreError."""
    require_admin(actor)
    is_known = session_id.isalnum() and session_id.isascii()
    if not is_known or not session_rows.revoke_one(services.engine, session_id, actor):
        raise errors.NotFound(f'no session with the id "{naming.printable(session_id)[:40]}"')


def _begin(services: Services, name: str, role: Role, source: str, address: str) -> Login:
    value = token_values.new()
    lives_ms = round(services.settings.session_hours * _HOUR_MS)
    digest = token_values.digest(value)
    actor = Actor(name, ActorKind.USER, address, scopes.of_role(role))
    new = NewSession(digest, name, role, source, address, lives_ms)
    return Login(session_rows.add(services.engine, new, actor), value)
