"""After downtime a whole fleet is overdue. Each target is polled once, soon, and not all of them together."""

from __future__ import annotations

from poller.domain import plan
from poller.observability import logs
from poller.state.board import Board

log = logs.get(__name__)

#: What is overdue by less than this is polled at once: a failover, not an outage.
OVERDUE_MS = 15_000


def resume(board: Board, leader: str, now_ms: int) -> int:
    """Spread what is long overdue. Returns how many targets moved."""
    total = 0
    for queue in board.queues():
        while rows := board.overdue(queue, now_ms - OVERDUE_MS):
            moves = [(i, score, plan.resume_ms(i, interval, now_ms)) for i, score, interval in rows]
            moved = board.respread(leader, queue, moves)
            total += moved
            if not moved:
                break
    if total:
        log.info("fleet_resumed", targets=total, within_s=plan.RESUME_WITHIN_MS // 1000)
    return total
