"""Polls that are past their retention but not rolled up yet: these stay until they are.

Jobs that do not run, or a day that cannot be read, hold polls for a bounded time only.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import history_blocks, history_pending, readings

_DAY_MS = 86_400_000
#: Polls stay this long past their retention at most.
LONGEST_MS = 14 * _DAY_MS


def deletable_before(engine: Engine, table: sa.Table[Any], before_ms: int) -> int:
    """Return the instant before which polls may be deleted, at most `before_ms`.

    A row of `readings` is in no block yet, and so in no roll-up. Of blocks those of the oldest
    marked day stay, and those of the day before: a rate takes two polls. Raises StoreError.
    """
    if table is readings:
        return before_ms - LONGEST_MS
    if table is not history_blocks:
        return before_ms
    with sql.single_read(engine) as conn:
        oldest_ms: int | None = conn.execute(_OLDEST, {"since": before_ms - LONGEST_MS}).scalar()
    return before_ms if oldest_ms is None else min(before_ms, oldest_ms - _DAY_MS)


#: Days that are marked for longer do not count: what they lack is not coming any more.
_OLDEST = sa.select(sa.func.min(history_pending.c.day_ms)).where(
    history_pending.c.day_ms >= sa.bindparam("since")
)
