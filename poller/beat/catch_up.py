"""After downtime, or a step of the clock, a whole fleet is overdue or hours ahead. Each target is polled once,
soon, and not all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from poller import event_publisher
from poller.beat.clock_steps import STEP_MS
from poller.domain.inventory import duration
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.observability import logs
from poller.settings import Settings
from poller.state.board.board_maintenance import BoardMaintenance
from poller.state.board.moves import Board

log = logs.get(__name__)

#: What is overdue by less than this is polled at once: a failover, not an outage.
OVERDUE_MS = 15_000


def resume(
    board: Board,
    leader: str,
    now_ms: int,
    settings: Settings,
    progress: Callable[[], None],
    note: event_publisher.Note = event_publisher.only_log,
) -> int:
    """A leader begins, and nobody may have led for a while. Returns how many targets moved.

    If the clock stands before what the last leader saw, it was set back while nobody looked.
    """
    back_ms = now_ms - board.clock_ms()
    if back_ms < -STEP_MS:
        return settle(board, leader, now_ms, back_ms, settings, progress, note)
    return spread(board, leader, now_ms, board.queues(), progress)


def settle(
    board: Board,
    leader: str,
    now_ms: int,
    step_ms: int,
    settings: Settings,
    progress: Callable[[], None],
    note: event_publisher.Note = event_publisher.only_log,
) -> int:
    """The clock is not where it was. Nobody may poll at once, wait for hours, or lose a lease for that."""
    wait_ms, margin_ms = round(settings.queue_wait_s * 1000), round(settings.lease_margin_s * 1000)
    leases = BoardMaintenance(board).renew_leases(leader, now_ms, wait_ms, margin_ms)
    if step_ms > 0:
        moved = spread(board, leader, now_ms, board.queues(), progress)
    else:
        moved = BoardMaintenance(board).bring_nearer(leader, now_ms, progress)
    note(_moved(now_ms, step_ms, moved, leases))
    return moved


def _moved(now_ms: int, step_ms: int, moved: int, leases: int) -> Event:
    way = "forward" if step_ms > 0 else "back"
    message = f"the clock of Redis was set {way} by {duration.rounded_text(abs(step_ms))}"
    data = {"seconds": round(step_ms / 1000), "targets_moved": moved, "leases_renewed": leases}
    return Event(now_ms, Kind.CLOCK_MOVED, message, data=data)


def spread(
    board: Board,
    leader: str,
    now_ms: int,
    queues: Iterable[str],
    progress: Callable[[], None] = lambda: None,
    at_once: int = 0,
) -> int:
    """Give what is long overdue in these queues another instant. Returns how many targets moved.

    If there are no more than `at_once` in a queue, they are polled at once: that is no crowd.
    """
    total = 0
    for queue in queues:
        if (
            at_once
            and len(board.waiting(queue, "-inf", now_ms - OVERDUE_MS, at_once + 1)) <= at_once
        ):
            continue
        while rows := board.waiting(queue, "-inf", now_ms - OVERDUE_MS):
            moves = [
                (row.id, row.at_ms, slots.resume_ms(row.id, row.interval_ms, now_ms))
                for row in rows
            ]
            moved = BoardMaintenance(board).respread(leader, queue, moves)
            total += moved
            progress()
            if not moved:
                break
    if total:
        log.info("fleet_resumed", targets=total, within_s=slots.RESUME_WITHIN_MS // 1000)
    return total
