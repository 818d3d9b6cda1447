"""Do the dead letters in SQL agree with the board? Workers write them; this mends what got lost on the way.

A worker's disk may fill up, Redis may be emptied, two workers' rows may arrive in the wrong order.
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


def agree(board: Board, engine: Engine) -> tuple[int, int]:
    """Add the letters that are missing, remove those of targets that answered since. Returns how many of each."""
    made = sum(_add(board, engine, dict(page)) for page in batched(board.parked(), _PAGE))
    cleared = sum(_clear(board, engine, page) for page in _pages(engine))
    absent = dead_letter_rows.forget_absent(engine)
    if made or cleared or absent:
        log.info("dead_letters_mended", made=made, cleared=cleared, absent=absent)
    return made, cleared + absent


def _add(board: Board, engine: Engine, parked: dict[int, int]) -> int:
    missing = sorted(parked.keys() - dead_letter_rows.known(engine, parked))
    statuses = board.statuses(missing)
    letters = [
        _letter(i, status, parked[i])
        for i, status in statuses.items()
        if status.parked_ms and status.reason
    ]
    dead_letter_rows.write(engine, letters)
    return len(letters)


def _clear(board: Board, engine: Engine, page: list[tuple[int, int]]) -> int:
    """A target that answered after its letter's last failure is well; one whose board is new is not known to be."""
    last = dict(page)
    statuses = board.statuses(list(last))
    well = [
        Letter(i, status.ok_ms)
        for i, status in statuses.items()
        if not status.parked_ms and status.ok_ms > last[i]
    ]
    dead_letter_rows.write(engine, well)
    return len(well)


def _pages(engine: Engine) -> Iterator[list[tuple[int, int]]]:
    after = 0
    while page := dead_letter_rows.page(engine, after, _PAGE):
        yield page
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
