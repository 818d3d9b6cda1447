"""Sessions as lines of a table: on the page of users, on that of one user, and on the own one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.db.access import session_rows
from poller.db.access.session_rows import StoredSession
from poller.presentation import formatting

_SOURCES = {session_rows.LOCAL: "password", session_rows.OIDC: "single sign-on"}


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One log-in of a browser."""

    id: str
    name: str
    role: str
    source: str
    address: str
    since: str
    seen: str
    end: str
    is_idle: bool  # it was not used for so long that the browser is asked again
    is_own: bool  # that of the browser which shows the page


def lines(
    found: Sequence[StoredSession], own_id: str, idle_ms: int, now_ms: int
) -> list[SessionLine]:
    """Return the lines of sessions. `own_id` is that of the present session, "" without one."""
    return [
        SessionLine(
            id=each.id,
            name=each.name,
            role=each.role.value,
            source=_SOURCES.get(each.source, each.source),
            address=each.address,
            since=formatting.instant(each.created_ms),
            seen=formatting.instant(each.seen_ms),
            end=formatting.instant(each.expires_ms),
            is_idle=each.seen_ms + idle_ms < now_ms,
            is_own=each.id == own_id,
        )
        for each in found
    ]
