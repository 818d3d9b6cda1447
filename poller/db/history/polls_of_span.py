"""All stored polls of a span: blocks and fresh rows as one sequence, each poll once.

A poll is in a block, in `readings`, or for a while in both: the one in the block counts. Every
function reads one snapshot, so a poll that is moved meanwhile is neither missing nor doubled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.history import blocks, fresh_polls
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.history.poll_rows import RawPoll

if TYPE_CHECKING:
    from poller.domain.history.block import Block

#: Blocks of a target that are read at first; then twice as many.
_BLOCKS = 2
#: Polls that a block has at most, about.
_POLLS_OF_BLOCK = 60
#: Blocks of a target that are read by one statement at most.
_MOST_BLOCKS = 100
_ANY_MS = 2**62

Polls = dict[int, RawPoll]  # by instant


def newest(
    engine: Engine, target_ids: Iterable[int], polls: int, since_ms: int = 0
) -> dict[int, list[Stored]]:
    """Return the newest `polls` readings of each target, oldest first. A target without any is
    missing.

    With `since_ms` only readings from then on and the one before them: a rate takes two. Raises
    StoreError.
    """
    ids = list(target_ids)
    with sql.reading(engine) as conn:
        found = _newest_fresh(conn, ids, polls, since_ms)
        _add_blocks(conn, found, ids, polls, since_ms)
        rows = []
        for target_id in sorted(found):
            chosen = _wanted(found[target_id], since_ms)[-polls:]
            rows += [(target_id, *poll) for poll in chosen]
        stored = stored_readings.with_shapes(conn, rows)
    by_target: dict[int, list[Stored]] = {}
    for item in stored:
        by_target.setdefault(item.target_id, []).append(item)
    return by_target


def between(
    engine: Engine, target_id: int, start_ms: int, end_ms: int, limit: int = 10_000
) -> list[Stored]:
    """Return the readings of one target in [start, end), oldest first. Raises StoreError."""
    with sql.reading(engine) as conn:
        polls = _between(conn, target_id, start_ms, end_ms, limit)
        return stored_readings.with_shapes(conn, [(target_id, *poll) for poll in polls])


def oldest(conn: Connection, target_id: int) -> int | None:
    """Return the instant of the oldest stored poll of a target, or None."""
    found = (
        blocks.oldest(conn, target_id),
        conn.execute(fresh_polls.OLDEST, {"id": target_id}).scalar(),
    )
    return min((at_ms for at_ms in found if at_ms is not None), default=None)


def around(conn: Connection, target_id: int, start_ms: int, end_ms: int) -> list[Block]:
    """Return blocks with the polls of a target in [start, end) and the nearest before and after.

    They may hold more polls, but none twice. Raises StoreError.
    """
    found = blocks.first_since(conn, target_id, start_ms - 1, end_ms, _ANY_MS)
    last_ms = found[-1].start_ms if found else end_ms - 1
    found += blocks.starting_after(conn, target_id, last_ms, _ANY_MS, 1)

    values = {"id": target_id, "start": start_ms, "end": end_ms, "limit": _ANY_MS}
    after = {"id": target_id, "start": end_ms, "end": _ANY_MS, "limit": 1}
    fresh = [
        *_raw(conn.execute(fresh_polls.BEFORE, values).all()),
        *_raw(conn.execute(fresh_polls.BETWEEN, values).all()),
        *_raw(conn.execute(fresh_polls.BETWEEN, after).all()),
    ]
    if fresh:
        from poller.domain.history.block import from_polls

        known = {at_ms for block in found for at_ms in block.instants()}
        new = [poll for poll in fresh if poll.at_ms not in known]
        found += [from_polls(new)] if new else []
    return found


def _newest_fresh(
    conn: Connection, ids: Sequence[int], polls: int, since_ms: int
) -> dict[int, Polls]:
    values = {"ids": ids, "nth": polls - 1, "since": since_ms}
    found: dict[int, Polls] = {}
    for target_id, *poll in conn.execute(fresh_polls.NEWEST, values):
        row = RawPoll(*poll)
        found.setdefault(target_id, {})[row.at_ms] = row
    return found


def _add_blocks(
    conn: Connection, found: dict[int, Polls], ids: Sequence[int], polls: int, since_ms: int
) -> None:
    """Add the polls of blocks, as many blocks of each target as `polls` takes."""
    count = max(_BLOCKS, -(-polls // _POLLS_OF_BLOCK) + 1)
    lacking = list(ids)
    while lacking:
        read = blocks.newest(conn, lacking, count, since_ms)
        lacking = []
        for target_id, blocks_of_target in read.items():
            merged = {poll.at_ms: poll for block in blocks_of_target for poll in block.raw_polls()}
            known = found.setdefault(target_id, {})
            known.update(merged)
            # Fresh polls that are older came late: blocks between them and these are not read yet.
            first_ms = blocks_of_target[0].start_ms
            in_order = sum(1 for at_ms in known if at_ms >= first_ms)
            if in_order < polls and len(blocks_of_target) == count:
                lacking.append(target_id)
        count *= 2


def _wanted(found: Polls, since_ms: int) -> list[RawPoll]:
    """The polls since an instant and the newest one before, oldest first."""
    before = max((at_ms for at_ms in found if at_ms < since_ms), default=0)
    return sorted(poll for at_ms, poll in found.items() if at_ms >= before)


def _between(
    conn: Connection, target_id: int, start_ms: int, end_ms: int, limit: int
) -> list[RawPoll]:
    found: Polls = {}
    count = min(-(-limit // _POLLS_OF_BLOCK) + 1, _MOST_BLOCKS)
    read = blocks.first_since(conn, target_id, start_ms, end_ms, count)
    while read:
        for block in read:
            _add(found, (poll for poll in block.raw_polls() if start_ms <= poll.at_ms < end_ms))
        if len(read) < count or len(found) >= limit:
            break
        read = blocks.starting_after(conn, target_id, read[-1].start_ms, end_ms, count)
    values = {"id": target_id, "start": start_ms, "end": end_ms, "limit": limit}
    _add(found, _raw(conn.execute(fresh_polls.BETWEEN, values).all()))
    return sorted(found.values())[:limit]


def _raw(rows: Iterable[Sequence[object]]) -> Iterator[RawPoll]:
    for _, *poll in rows:
        yield RawPoll(*poll)  # type: ignore[arg-type]


def _add(found: Polls, polls: Iterable[RawPoll]) -> None:
    for poll in polls:
        found.setdefault(poll.at_ms, poll)
