"""The leader keeps the list of queues: looked at every second, and at once when the inventory changed."""

from __future__ import annotations

from poller.observability import logs
from poller.state.cluster.queue_list import Domains

log = logs.get(__name__)


def agree(domains: Domains, leader: str) -> None:
    """Queues nobody needs any more leave; the workers hear of it. Raises StoreError, NotLeader."""
    changes = domains.agree(leader)
    if changes.came or changes.went:
        log.info("domains_changed", came=changes.came, went=changes.went)
