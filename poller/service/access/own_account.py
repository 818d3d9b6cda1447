"""What a person does with the own account: see and end the own sessions, change the password."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from poller import errors
from poller.db.access import session_rows, user_rows
from poller.db.access.session_rows import StoredSession
from poller.domain.access import login_limits
from poller.domain.access.accounts import OIDC_MARK
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory import naming
from poller.observability import logs
from poller.security import passwords, token_values
from poller.service.access import audit_log

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.service.access.login_throttle import LoginThrottle

log = logs.get(__name__)

#: Sessions that the page of an account shows.
MOST_SESSIONS = 50
#: The field of a form and of the API with the password that is valid until now.
OLD = "old_password"


def has_password(actor: Actor) -> bool:
    """Whether the actor is a local user, who logs in with a password."""
    return actor.kind is ActorKind.USER and not actor.name.startswith(OIDC_MARK)


def sessions(services: Services, actor: Actor) -> list[StoredSession]:
    """Return the newest sessions of the actor; none for a token or the local actor."""
    if actor.kind is not ActorKind.USER:
        return []
    return session_rows.newest(services.engine, MOST_SESSIONS, name=actor.name)


def end_session(services: Services, actor: Actor, session_id: str) -> None:
    """End one of the actor's sessions by the id of the list. Raises NotFound, StoreError."""
    is_known = actor.kind is ActorKind.USER and session_id.isalnum() and session_id.isascii()
    if not is_known or not session_rows.revoke_own(services.engine, session_id, actor):
        shown = naming.printable(session_id)[:40]
        raise errors.NotFound(f'you have no session with the id "{shown}"')


def change_password(
    services: Services,
    throttle: LoginThrottle,
    actor: Actor,
    old: str,
    new: str,
    session_value: str,
) -> None:
    """Change the actor's password, and end the other sessions. `session_value` is that of this one.

    A wrong old password counts as a failed log-in. Raises InvalidInput, NotAllowed,
    TooManyRequests, StoreError.
    """
    _require_password(actor)
    passwords.checked(new, actor.name)
    if new == old:
        raise errors.InvalidInput(
            "the password is the one that you have already", field=passwords.FIELD
        )
    attempt = throttle.begin(actor.address, actor.name)
    stored = user_rows.password_hash(services.engine, actor.name)
    if stored is None or not passwords.matches(stored, old):
        log.warning("password_refused", address=actor.address, user=actor.name)
        _record_refusal(services, actor, attempt.telling_failures(True))
        raise errors.InvalidInput(
            "the old password is wrong", hint="type the one that you logged in with", field=OLD
        )
    attempt.succeeded()
    kept = token_values.digest(session_value)
    is_done = user_rows.change_password(
        services.engine, actor.name, stored, passwords.hashed(new), kept, actor
    )
    if not is_done:
        raise errors.EditConflict("the password was changed by somebody else meanwhile")


def _require_password(actor: Actor) -> None:
    if not has_password(actor):
        raise errors.NotAllowed(
            f'{actor.kind.value} "{actor.name}" has no password here',
            hint="only a user who logged in with a password changes it",
        )


def _record_refusal(services: Services, actor: Actor, failures: int) -> None:
    """Add an audit row about failures that are worth one; a store that is away gets none."""
    if not failures:
        return
    window = {"failures": failures, "within_s": login_limits.OF_USER.window_s}
    entry = AuditEntry("password.refused", actor.name, after=window, count=failures)
    with suppress(errors.StoreError):
        audit_log.record(services, actor, entry)
