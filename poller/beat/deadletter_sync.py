"""Brings the dead letters in SQL into agreement with the board.

Workers write dead letters. A letter gets lost or outdated when a worker's disk is full, when Redis
is emptied, or when the rows of two workers arrive in the wrong order.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.engine import Engine

from poller.db.record import dead_letter_rows
from poller.domain.batched import batched
from poller.domain.failures.dead_letter import Letter
from poller.domain.record.target_status import Status
from poller.observability import logs
from poller.state.board.moves import Board

log = logs.get(__name__)

_PAGE = 1_000


def sync(board: Board, engine: Engine) -> tuple[int, int]:
    """Add missing letters, clear outdated ones. Returns how many of each. Raises StoreError."""
    added = 0
    for page in batched(board.parked(), _PAGE):
        added += _add_missing(board, engine, dict(page))
    cleared = 0
    for last_failures in _letter_pages(engine):
        cleared += _clear_answered(board, engine, last_failures)
    absent = dead_letter_rows.forget_absent(engine)

    if added or cleared or absent:
        log.info("dead_letters_synced", added=added, cleared=cleared, absent=absent)
    return added, cleared + absent


def _add_missing(board: Board, engine: Engine, parked: dict[int, int]) -> int:
    """`parked` holds the next poll of each parked target, in ms."""
    missing = sorted(parked.keys() - dead_letter_rows.known(engine, parked))
    letters = []
    for target_id, status in board.statuses(missing).items():
        if status.parked_ms and status.reason:
            letters.append(_letter(target_id, status, parked[target_id]))
    dead_letter_rows.write(engine, letters)
    return len(letters)


def _clear_answered(board: Board, engine: Engine, last_failures: dict[int, int]) -> int:
    """Clear the letter of a target that answered after its last failure.

    A rebuilt board has no answer on record, so its letters stay.
    """
    statuses = board.statuses(list(last_failures))
    clearances = []
    for target_id, status in statuses.items():
        if not status.parked_ms and status.ok_ms > last_failures[target_id]:
            clearances.append(Letter(target_id, status.ok_ms))
    dead_letter_rows.write(engine, clearances)
    return len(clearances)


def _letter_pages(engine: Engine) -> Iterator[dict[int, int]]:
    """Pages of target id -> instant of the last failure, of all letters."""
    after = 0
    while page := dead_letter_rows.page(engine, after, _PAGE):
        yield dict(page)
        after = page[-1][0]


def _letter(target_id: int, status: Status, next_ms: int) -> Letter:
    return Letter(
        target_id=target_id,
        last_ms=status.finished_ms,
        reason=status.reason,
        error_code=status.code,
        message=status.message,
        first_ms=status.since_ms,
        parked_ms=status.parked_ms,
        next_ms=next_ms,
        attempts=status.failures,
    )
