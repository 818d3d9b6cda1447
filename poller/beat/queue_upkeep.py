"""The leader keeps the list of queues: looked at every second, and at once when the inventory changed."""

from __future__ import annotations

from poller.observability import logs
from poller.state.board.board_maintenance import BoardMaintenance

log = logs.get(__name__)


def agree(maintenance: BoardMaintenance, leader: str) -> None:
    """Queues nobody needs any more leave; the workers hear of it. Raises StoreError, NotLeader."""
    changes = maintenance.update_queues(leader)
    if changes.came or changes.went:
        log.info("domains_changed", came=changes.came, went=changes.went)
