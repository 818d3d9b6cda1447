"""Targets whose lease ran out (a worker was killed, a message was lost) are due again; the ledger shall say so."""

from __future__ import annotations

from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run
from poller.observability import logs
from poller.state.board.board_values import Reaped
from poller.state.board.moves import Board

log = logs.get(__name__)

AT_ONCE = 1000


def reap(board: Board, leader: str, now_ms: int) -> list[Run]:
    """One pass over the board. Returns the runs that nobody will finish, for the ledger."""
    reaped = board.reap(leader, AT_ONCE, now_ms)
    while len(reaped) % AT_ONCE == 0 and (more := board.reap(leader, AT_ONCE, now_ms)):
        reaped += more
    if reaped:
        log.warning("leases_lost", count=len(reaped), targets=[item.id for item in reaped[:10]])
    return [_lost(item, now_ms) for item in reaped if item.plan_ms]


def _lost(item: Reaped, now_ms: int) -> Run:
    never_started = "no worker took the batch in time"
    message = "the worker that polled it did not report back" if item.attempts else never_started
    return Run(
        item.id,
        item.plan_ms,
        Result.FAILED,
        max(1, item.attempts),
        error_codes.LEASE_LOST,
        message,
        finished_ms=now_ms,
        token=item.token,
    )
