"""Gather what the next interval of an adaptive target depends on; domain/scheduling/interval.py
decides it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from poller.collectors.staleness_registry import BadScore, Sources
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record.target_status import Status
from poller.domain.scheduling import interval, staleness
from poller.domain.scheduling.interval import Adaptive, Decision, Inputs
from poller.domain.scheduling.staleness import Evidence
from poller.observability import logs
from poller.settings import Settings, policies
from poller.workers.batch.finished_poll import FinishedPoll

log = logs.get(__name__)

#: The key in a target's memory for the readings of its last complete poll.
LAST_READINGS = "poller.staleness"


class AdaptivePace:
    """One per worker process."""

    def __init__(
        self, settings: Settings, sources: Sources, chance: Callable[[], float] = random.random
    ) -> None:
        self._policy = policies.adaptive_interval(settings)
        self._batch_size = settings.batch_size
        self._sources = sources
        self._chance = chance
        self._failed_sources: set[str] = set()
        for broken in sources.broken:
            log.error(
                "staleness_unusable",
                name=broken.name,
                distribution=broken.distribution,
                reason=broken.reason,
            )

    def decide(self, poll: FinishedPoll, after: Status, overdue: int) -> Decision:
        """Choose the next interval. `overdue` is the number of overdue targets in the queue."""
        policy = self._target_policy(poll.target)
        source = poll.target.staleness or staleness.DEFAULT
        evidence = self._evidence(policy, poll, after, source)
        try:
            score = self._sources.score(source, evidence)
        except BadScore as error:
            self._report_once(source, error)
            source = staleness.DEFAULT
            score = staleness.steady(evidence)

        before = poll.started.status
        inputs = Inputs(
            score=score,
            errors=after.failures,
            depth=-(-overdue // self._batch_size),
            previous_ms=before.decision.smoothed_ms if before.decision else None,
            chance=self._chance(),
            source=source,
        )
        return interval.adapt(policy, inputs)

    def _target_policy(self, target: PollTarget) -> Adaptive:
        base_ms = target.interval_ms
        return self._policy.with_bounds(target.min_ms or base_ms, base_ms, target.max_ms or base_ms)

    def _evidence(
        self, policy: Adaptive, poll: FinishedPoll, after: Status, source: str
    ) -> Evidence:
        readings = poll.outcome.readings
        is_complete = poll.outcome.result is Result.OK and readings
        if not is_complete or not self._sources.compares(source):
            return Evidence(policy, after.finished_ms, after.ok_ms, None, None)
        last = poll.cached.memory.get(LAST_READINGS)
        poll.cached.memory[LAST_READINGS] = readings
        return Evidence(policy, after.finished_ms, after.ok_ms, readings, last)

    def _report_once(self, source: str, error: BadScore) -> None:
        if source in self._failed_sources:
            return
        self._failed_sources.add(source)
        log.error("staleness_failed", source=source, error=str(error), instead=staleness.DEFAULT)
