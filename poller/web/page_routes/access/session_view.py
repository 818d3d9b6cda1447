"""The sessions that a page shows: which is that of the present browser, and which are idle."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fastapi import Request

from poller.db.access import session_rows
from poller.db.access.session_rows import StoredSession
from poller.security import token_values
from poller.web.api.contract.needs import Call
from poller.web.pages.access import session_lines
from poller.web.pages.access.session_lines import SessionLine

#: Sessions of one page.
LIMIT = 50
_HOUR_MS = 3_600_000


def lines(request: Request, call: Call, found: Sequence[StoredSession]) -> list[SessionLine]:
    """Return the lines of sessions for the browser that asks."""
    value = request.state.session_value
    own_id = token_values.digest(value)[: session_rows.SHOWN] if value else ""
    idle_ms = round(call.services.settings.session_idle_hours * _HOUR_MS)
    return session_lines.lines(found, own_id, idle_ms, time.time_ns() // 1_000_000)
