"""Returns targets whose lease ran out to due: a worker was killed, or a message was lost."""

from __future__ import annotations

from collections.abc import Sequence

from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run
from poller.metering import process_metrics
from poller.observability import logs
from poller.state.board.board_values import Reaped
from poller.state.board.housekeeping import PAGE
from poller.state.board.moves import Board

log = logs.get(__name__)


def reap(board: Board, leader: str, now_ms: int) -> list[Run]:
    """Reap all lost leases. Returns the lost runs, to be closed in the ledger."""
    return reap_rest(board, leader, board.reap(leader, PAGE, now_ms), now_ms)


def reap_rest(board: Board, leader: str, first: Sequence[Reaped], now_ms: int) -> list[Run]:
    """Reap the lost leases after the first page. Returns the lost runs of all pages."""
    reaped = list(first)
    page = first
    while len(page) == PAGE:
        page = board.reap(leader, PAGE, now_ms)
        reaped += page

    if reaped:
        started = sum(1 for item in reaped if item.attempts)
        process_metrics.leases_reaped.add("started", by=started)
        process_metrics.leases_reaped.add("unstarted", by=len(reaped) - started)
        log.warning("leases_lost", count=len(reaped), targets=[item.id for item in reaped[:10]])
    return [_lost_run(item, now_ms) for item in reaped if item.plan_ms]


def _lost_run(item: Reaped, now_ms: int) -> Run:
    if item.attempts:
        message = "the worker that polled the target did not report back"
    else:
        message = "no worker took the batch in time"
    return Run(
        target_id=item.id,
        plan_ms=item.plan_ms,
        outcome=Result.FAILED,
        attempt=max(1, item.attempts),
        error_code=error_codes.LEASE_LOST,
        message=message,
        finished_ms=now_ms,
        token=item.token,
    )
