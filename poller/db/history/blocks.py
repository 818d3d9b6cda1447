"""Blocks of polls in SQL: the table `history_blocks`.

numpy is imported with the first block, so that a command that finds none is quick.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller import errors
from poller.db import bulk
from poller.db.in_list import in_list
from poller.db.tables import history_blocks, targets
from poller.domain.history.poll_rows import BlockHead

if TYPE_CHECKING:
    from poller.domain.history.block import Block


def decoded(target_id: int, start_ms: int, data: bytes) -> Block:
    """Return the block of a row. Raises StoreError if it is damaged."""
    from poller.domain.history import block_codec

    try:
        return block_codec.decode(data)
    except block_codec.BlockError as error:
        message = f"the history of target {target_id} from {start_ms} on cannot be read"
        hint = "restore the row of history_blocks from a backup, or delete it"
        raise errors.StoreError(message, str(error), hint) from None


def heads(
    conn: Connection, ids: Collection[int], since_ms: int, until_ms: int
) -> dict[int, list[BlockHead]]:
    """Return the blocks of targets that start in [since, until], in order, without their bytes."""
    values = {"ids": list(ids), "since": since_ms, "until": until_ms}
    found: dict[int, list[BlockHead]] = {}
    for target_id, *head in conn.execute(_HEADS, values):
        found.setdefault(target_id, []).append(BlockHead(*head))
    return found


def load(conn: Connection, keys: Collection[tuple[int, int]]) -> dict[tuple[int, int], Block]:
    """Return blocks by target and start. Raises StoreError."""
    if not keys:
        return {}
    starts = [start_ms for _, start_ms in keys]
    values = {
        "ids": [target_id for target_id, _ in keys],
        "starts": starts,
        "since": min(starts),
        "until": max(starts),
    }
    found = {}
    for target_id, start_ms, data in conn.execute(_LOADED, values):
        if (target_id, start_ms) in keys:
            found[target_id, start_ms] = decoded(target_id, start_ms, data)
    return found


def write(conn: Connection, blocks: Mapping[int, Iterable[Block]]) -> int:
    """Store blocks of targets. A block with the same start is replaced. Returns their number."""
    from poller.domain.history import block_codec

    rows = []
    for target_id, blocks_of_target in blocks.items():
        for block in blocks_of_target:
            data = block_codec.encode(block)
            rows.append((target_id, block.start_ms, block.end_ms, block.polls, data))
    bulk.insert(conn, history_blocks, sorted(rows, key=_key), _REPLACE)
    return len(rows)


def newest(
    conn: Connection, ids: Collection[int], count: int, since_ms: int
) -> dict[int, list[Block]]:
    """Return the newest blocks of each target, oldest first, at most so many.

    The oldest of them may begin before `since_ms`: it then holds the newest poll before. Raises
    StoreError.
    """
    values = {"ids": list(ids), "nth": count - 1, "since": since_ms}
    found: dict[int, list[Block]] = {}
    for target_id, start_ms, data in conn.execute(_NEWEST, values):
        found.setdefault(target_id, []).append(decoded(target_id, start_ms, data))
    return found


def first_since(
    conn: Connection, target_id: int, since_ms: int, until_ms: int, count: int
) -> list[Block]:
    """Return blocks of a target in order, from the one that `since_ms` may be in, at most so many.

    All start before `until_ms`. Raises StoreError.
    """
    values = {"id": target_id, "since": since_ms, "until": until_ms, "count": count}
    rows: Sequence[Any] = conn.execute(_FIRST, values).all()
    return [decoded(target_id, start_ms, data) for start_ms, data in rows]


def oldest(conn: Connection, target_id: int) -> int | None:
    """Return the start of the oldest block of a target, or None."""
    found: int | None = conn.execute(_OLDEST, {"id": target_id}).scalar()
    return found


def starting_after(
    conn: Connection, target_id: int, after_ms: int, until_ms: int, count: int
) -> list[Block]:
    """Return blocks of a target that start in (after, until), in order, at most so many.

    Raises StoreError.
    """
    values = {"id": target_id, "after": after_ms, "until": until_ms, "count": count}
    rows: Sequence[Any] = conn.execute(_AFTER, values).all()
    return [decoded(target_id, start_ms, data) for start_ms, data in rows]


def _key(row: tuple[int, int, int, int, bytes]) -> tuple[int, int]:
    return row[0], row[1]


_REPLACE = """ON CONFLICT (target_id, start_ms) DO UPDATE SET
    end_ms = excluded.end_ms, polls = excluded.polls, data = excluded.data"""

_c = history_blocks.c
_HEADS = (
    sa.select(_c.target_id, _c.start_ms, _c.end_ms, _c.polls)
    .where(
        in_list(_c.target_id, "ids"),
        _c.start_ms >= sa.bindparam("since"),
        _c.start_ms <= sa.bindparam("until"),
    )
    .order_by(_c.target_id, _c.start_ms)
)
_LOADED = sa.select(_c.target_id, _c.start_ms, _c.data).where(
    in_list(_c.target_id, "ids"),
    in_list(_c.start_ms, "starts"),
    # For PostgreSQL, which then leaves out the partitions of other days.
    _c.start_ms >= sa.bindparam("since"),
    _c.start_ms <= sa.bindparam("until"),
)

_starts = sa.select(_c.start_ms).where(_c.target_id == targets.c.id)
_nth = _starts.order_by(_c.start_ms.desc()).limit(1).offset(sa.bindparam("nth"))
_before = _starts.where(_c.start_ms < sa.bindparam("since")).order_by(_c.start_ms.desc()).limit(1)
_begins = (
    sa.select(
        targets.c.id.label("target_id"),
        sa.func.coalesce(_nth.scalar_subquery(), 0).label("nth"),
        sa.func.coalesce(_before.scalar_subquery(), 0).label("before"),
    )
    .where(in_list(targets.c.id, "ids"))
    .subquery()
)
_NEWEST = (
    sa.select(_c.target_id, _c.start_ms, _c.data)
    .join(
        _begins,
        sa.and_(
            _c.target_id == _begins.c.target_id,
            _c.start_ms >= _begins.c.nth,
            _c.start_ms >= _begins.c.before,
        ),
    )
    .order_by(_c.target_id, _c.start_ms)
)

_of_target = _c.target_id == sa.bindparam("id", type_=sa.BigInteger)
_holding = (
    sa.select(_c.start_ms)
    .where(_of_target, _c.start_ms <= sa.bindparam("since", type_=sa.BigInteger))
    .order_by(_c.start_ms.desc())
    .limit(1)
    .scalar_subquery()
)
_FIRST = (
    sa.select(_c.start_ms, _c.data)
    .where(
        _of_target,
        _c.start_ms >= sa.func.coalesce(_holding, sa.bindparam("since", type_=sa.BigInteger)),
        _c.start_ms < sa.bindparam("until", type_=sa.BigInteger),
    )
    .order_by(_c.start_ms)
    .limit(sa.bindparam("count", type_=sa.BigInteger))
)
_AFTER = (
    sa.select(_c.start_ms, _c.data)
    .where(
        _of_target,
        _c.start_ms > sa.bindparam("after", type_=sa.BigInteger),
        _c.start_ms < sa.bindparam("until", type_=sa.BigInteger),
    )
    .order_by(_c.start_ms)
    .limit(sa.bindparam("count", type_=sa.BigInteger))
)
_OLDEST = sa.select(sa.func.min(_c.start_ms)).where(_of_target)
