"""Statements about fresh polls: the rows of `readings`."""

from __future__ import annotations

import sqlalchemy as sa

from poller.db.in_list import in_list
from poller.db.tables import readings, targets

_c = readings.c
_columns = (_c.target_id, _c.at_ms, _c.series_set_id, _c["values"])

_of_target = sa.select(_c.at_ms).where(_c.target_id == targets.c.id)
_nth = _of_target.order_by(_c.at_ms.desc()).limit(1).offset(sa.bindparam("nth"))
_before = _of_target.where(_c.at_ms < sa.bindparam("since")).order_by(_c.at_ms.desc()).limit(1)
# The first reading of each target, found by a seek in the key: the cost depends on what is read
# only.
_begins = (
    sa.select(
        targets.c.id.label("target_id"),
        sa.func.coalesce(_nth.scalar_subquery(), 0).label("nth"),
        sa.func.coalesce(_before.scalar_subquery(), 0).label("before"),
    )
    .where(in_list(targets.c.id, "ids"))
    .subquery()
)
#: The newest polls of targets `ids`: `nth` + 1 of each, not older than the last before `since`.
NEWEST = (
    sa.select(*_columns)
    .join(
        _begins,
        sa.and_(
            _c.target_id == _begins.c.target_id,
            _c.at_ms >= _begins.c.nth,
            _c.at_ms >= _begins.c.before,
        ),
    )
    .order_by(_c.target_id, _c.at_ms)
)

_is_target = _c.target_id == sa.bindparam("id")
#: The polls of the target `id` in [start, end), the oldest `limit` of them.
BETWEEN = (
    sa.select(*_columns)
    .where(_is_target, _c.at_ms >= sa.bindparam("start"), _c.at_ms < sa.bindparam("end"))
    .order_by(_c.at_ms)
    .limit(sa.bindparam("limit"))
)
#: The newest poll of the target `id` before `start`.
BEFORE = (
    sa.select(*_columns)
    .where(_is_target, _c.at_ms < sa.bindparam("start"))
    .order_by(_c.at_ms.desc())
    .limit(1)
)
#: The instant of the oldest poll of the target `id`.
OLDEST = sa.select(sa.func.min(_c.at_ms)).where(_is_target)
