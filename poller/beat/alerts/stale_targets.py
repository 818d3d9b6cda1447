"""Targets without a good poll: those that are not well, and those that no worker gets to."""

from __future__ import annotations

from collections.abc import Mapping

from poller.bootstrap import Services
from poller.domain.alerts.flow import level_signs
from poller.domain.alerts.flow.known_rules import KnownRules
from poller.domain.record.target_status import Status
from poller.state.board import failing_targets
from poller.state.board.alert_levels import AlertLevels
from poller.state.cluster import worker_registry

#: Targets that one look considers, the stalest first; and as many that never had a good poll.
MOST_STALE = 20_000
#: A queue with more stuck targets than this is short of workers: one alert of the platform says so,
#: and not one for each target.
MOST_STUCK = 100


class StaleTargets:
    """Reads the candidates of the rules about missing data. Every method raises StoreError."""

    def __init__(self, services: Services) -> None:
        self._board = services.board
        self._redis = services.redis
        self._keys = services.keys
        self._levels = AlertLevels(services.board)

    def read(self, rules: KnownRules, now_ms: int) -> dict[int, int]:
        """Return targets with the end of their last good poll in ms; 0: never."""
        wait_ms = level_signs.shortest_wait_ms(rules)
        if not wait_ms:
            return {}
        # A fleet that waits for its first worker must not hide those that were well before.
        never_good = self._levels.unwell_before(1, MOST_STALE)
        unwell = self._levels.unwell_before(now_ms - wait_ms, MOST_STALE, since_ms=1)
        found = {each.id: each.ok_ms for each in (*never_good, *unwell)}
        for target_id in self._never_polled(found):
            del found[target_id]
        stuck = self._stuck(now_ms)
        found.update(
            (target_id, status.ok_ms)
            for target_id, status in self._levels.statuses(stuck).items()
            if target_id not in found
        )
        return found

    def _never_polled(self, ok_ms: Mapping[int, int]) -> list[int]:
        """New targets: without a worker they wait, and that is no fault of theirs."""
        never_good = [target_id for target_id, instant_ms in ok_ms.items() if not instant_ms]
        statuses = self._levels.statuses(never_good)
        return [each for each in never_good if not _was_polled(statuses.get(each))]

    def _stuck(self, now_ms: int) -> list[int]:
        """Targets that have waited for long in a queue that a living worker serves."""
        found: list[int] = []
        living = worker_registry.living(self._redis, self._keys, now_ms)
        for queue in sorted({queue for worker in living for queue in worker.queues}):
            late = failing_targets.long_overdue(self._redis, self._keys, [queue], now_ms, pages=1)
            ids = [each.id for each in late]
            if len(ids) <= MOST_STUCK:
                found += ids
        return found


def _was_polled(status: Status | None) -> bool:
    return status is not None and status.finished_ms > 0
