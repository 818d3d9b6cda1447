"""Plain rows of chosen series in SQL: replaced as wholes, so that late results correct them.

PostgreSQL only. The rows of a span are a function of its polls, like the roll-ups that they are
made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller.db import bulk
from poller.db.history.plain_tables import history_rows, history_series
from poller.db.record import stored_readings
from poller.domain.metrics.reading import Series
from poller.domain.metrics.series_identity import Identity

if TYPE_CHECKING:
    from poller.domain.rollups.rollup import Rollup
    from poller.domain.series.plain_points import PlainSeries


class PlainRows(NamedTuple):
    """The rows of a target over a span."""

    target_id: int
    start_ms: int
    end_ms: int
    series: Sequence[PlainSeries]


#: What identifies a series: its target, its metric, and the labels that it is known by.
_Key = tuple[int, str, str]


def of_rollup(
    conn: Connection,
    target_id: int,
    part: Rollup,
    by: Identity,
    selects: Callable[[Series], bool],
) -> PlainRows:
    """Return the selected series of a roll-up as plain rows. Raises StoreError."""
    from poller.domain.series.plain_points import plain_series
    from poller.domain.series.range_tables import RangeTables

    tables = RangeTables(part.buckets, by, selects)
    tables.add(part, stored_readings.shapes_in(conn, part.shape_ids))
    series = [plain_series(line) for line in tables.lines()]
    return PlainRows(target_id, part.buckets.start_ms, part.buckets.end_ms, series)


def replace(conn: Connection, parts: Sequence[PlainRows]) -> int:
    """Make the rows of these spans as given, in the transaction of `conn`. Returns their number."""
    if not parts:
        return 0
    ids = _series_ids(conn, parts)
    by_target: dict[int, list[int]] = {}
    for (target_id, *_), series_id in ids.items():
        by_target.setdefault(target_id, []).append(series_id)

    written = 0
    for part in sorted(parts, key=lambda part: part.target_id):
        rows = []
        for series in part.series:
            series_id = ids[_key(part.target_id, series)]
            rows += [(series_id, *point) for point in series.points]
        rows.sort(key=lambda row: row[:2])
        # Rows that stay as they are take no new room: a partition is never rewritten as a whole.
        bulk.insert(conn, history_rows, rows, _UPDATE_ROW)
        span = {
            "ids": by_target.get(part.target_id, []),
            "start": _instant(part.start_ms),
            "end": _instant(part.end_ms),
        }
        if conn.execute(_COUNT, span).scalar() != len(rows):
            left = {"series": [row[0] for row in rows], "times": [row[1] for row in rows]}
            conn.execute(_DELETE_OTHERS, {**span, **left})
        written += len(rows)
    return written


def _series_ids(conn: Connection, parts: Iterable[PlainRows]) -> dict[_Key, int]:
    """Return the id of every series of these targets; new ones are added, changed ones updated."""
    wanted = {
        _key(part.target_id, series): (
            part.target_id,
            series.metric,
            series.known_by,
            series.labels,
            series.kind,
        )
        for part in parts
        for series in part.series
    }
    target_ids = sorted({part.target_id for part in parts})
    ids, contents = _known(conn, target_ids)
    changed = [row for key, row in wanted.items() if contents.get(key) != row[3:]]
    if not changed:
        return ids
    changed.sort(key=lambda row: (row[0], row[1], json.dumps(row[2], sort_keys=True)))
    bulk.insert(conn, history_series, changed, _UPDATE, _COLUMNS)
    return _known(conn, target_ids)[0]


def _known(
    conn: Connection, target_ids: Sequence[int]
) -> tuple[dict[_Key, int], Mapping[_Key, tuple[dict[str, str], str]]]:
    """Return the ids of the stored series of targets, and their labels and kinds."""
    ids: dict[_Key, int] = {}
    contents = {}
    for row in conn.execute(_OF_TARGETS, {"ids": list(target_ids)}):
        key = (row.target_id, row.metric, _text(row.known_by))
        ids[key] = row.id
        contents[key] = (row.labels, row.kind)
    return ids, contents


def _key(target_id: int, series: PlainSeries) -> _Key:
    return target_id, series.metric, _text(series.known_by)


def _text(labels: Mapping[str, str]) -> str:
    return json.dumps(labels, sort_keys=True)


def _instant(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


_COLUMNS = ("target_id", "metric", "known_by", "labels", "kind")
_UPDATE = """ON CONFLICT (target_id, metric, md5(known_by::text))
DO UPDATE SET labels = excluded.labels, kind = excluded.kind"""
_OF_TARGETS = sa.select(history_series).where(
    history_series.c.target_id == sa.any_(sa.bindparam("ids", type_=sa.ARRAY(sa.BigInteger)))
)
_UPDATE_ROW = """ON CONFLICT (series_id, time) DO UPDATE SET value = excluded.value,
low = excluded.low, high = excluded.high, known_ms = excluded.known_ms,
averaged_ms = excluded.averaged_ms
WHERE (history_rows.value, history_rows.low, history_rows.high, history_rows.known_ms,
history_rows.averaged_ms) IS DISTINCT FROM (excluded.value, excluded.low, excluded.high,
excluded.known_ms, excluded.averaged_ms)"""
_SPAN = "FROM history_rows WHERE series_id = ANY (:ids) AND time >= :start AND time < :end"
_COUNT = sa.text(f"SELECT count(*) {_SPAN}")
_DELETE_OTHERS = sa.text(
    f"DELETE {_SPAN} AND (series_id, time) NOT IN"  # noqa: S608
    " (SELECT * FROM unnest(CAST(:series AS bigint[]), CAST(:times AS timestamptz[])))"
)
