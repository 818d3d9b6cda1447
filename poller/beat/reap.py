"""Targets whose lease ran out (a worker was killed, a message was lost) are due again, and the ledger says so."""

from __future__ import annotations

from sqlalchemy.engine import Engine

from poller import errors
from poller.db import runs
from poller.domain.outcome import Result
from poller.domain.run import Run
from poller.observability import logs
from poller.state.board import Board, Reaped

log = logs.get(__name__)


def reap(board: Board, engine: Engine, leader: str, now_ms: int) -> int:
    """One pass. The board comes first: a ledger that does not answer must not keep targets from being polled."""
    reaped = board.reap(leader, now_ms=now_ms)
    if not reaped:
        return 0
    log.warning("leases_lost", count=len(reaped), targets=[item.id for item in reaped[:10]])
    try:
        runs.close_lost(engine, [_lost(item, now_ms) for item in reaped if item.plan_ms])
    except errors.StoreError as error:
        log.error("lost_leases_not_recorded", count=len(reaped), error=str(error))
    return len(reaped)


def _lost(item: Reaped, now_ms: int) -> Run:
    never_started = "no worker took the batch in time"
    message = "the worker that polled it did not report back" if item.attempts else never_started
    return Run(
        item.id,
        item.plan_ms,
        Result.FAILED,
        max(1, item.attempts),
        "lease_lost",
        message,
        finished_ms=now_ms,
        token=item.token,
    )
