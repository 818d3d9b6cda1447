"""How long until the next poll of an adaptive target? Gathers what the decision needs; domain/scheduling/interval.py makes it."""

from __future__ import annotations

import random
from collections.abc import Callable

from poller.collectors.staleness_registry import BadScore, Sources
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import ReadingSet
from poller.domain.record.target_status import Status
from poller.domain.scheduling import interval, staleness
from poller.domain.scheduling.interval import Adaptive, Decision, Inputs
from poller.domain.scheduling.staleness import Evidence
from poller.observability import logs
from poller.settings import Settings, policies
from poller.workers.batch.collection import Collected
from poller.workers.batch.target_cache import Known

log = logs.get(__name__)

#: Where a target's memory holds the readings of its last complete poll.
MEMORY = "poller.staleness"


class Pacer:
    """One per worker process: the numbers of the settings, the sources, and the one place where chance comes in."""

    def __init__(
        self, settings: Settings, sources: Sources, chance: Callable[[], float] = random.random
    ) -> None:
        self._numbers = policies.adaptive_interval(settings)
        self._batch_size = settings.batch_size
        self._sources = sources
        self._chance = chance
        self._complained: set[str] = set()
        for broken in sources.broken:
            log.error(
                "staleness_unusable",
                name=broken.name,
                distribution=broken.distribution,
                reason=broken.reason,
            )

    def decide(
        self, before: Status, after: Status, item: Collected, known: Known, overdue: int
    ) -> Decision:
        """The decision after a poll that led from one status to the next; `overdue` targets of its queue wait."""
        policy = self._policy(known.target)
        name = known.target.staleness or staleness.DEFAULT
        score, source = self._score(name, self._evidence(policy, after, item, known, name))
        inputs = Inputs(
            score=score,
            errors=after.failures,
            depth=-(-overdue // self._batch_size),
            previous_ms=before.decision.smoothed_ms if before.decision else None,
            chance=self._chance(),
            source=source,
        )
        return interval.adapt(policy, inputs)

    def _policy(self, target: PollTarget) -> Adaptive:
        base_ms = target.interval_ms
        return self._numbers.between(target.min_ms or base_ms, base_ms, target.max_ms or base_ms)

    def _evidence(
        self, policy: Adaptive, after: Status, item: Collected, known: Known, name: str
    ) -> Evidence:
        readings: ReadingSet | None = None
        last: ReadingSet | None = None
        if (
            self._sources.compares(name)
            and item.outcome.result is Result.OK
            and item.outcome.readings
        ):
            readings = item.outcome.readings
            last = known.memory.get(MEMORY)
            known.memory[MEMORY] = readings
        return Evidence(policy, after.finished_ms, after.ok_ms, readings, last)

    def _score(self, name: str, evidence: Evidence) -> tuple[float, str]:
        """The score and who gave it. A source that fails is reported once, and its targets stay steady."""
        try:
            return self._sources.score(name, evidence), name
        except BadScore as error:
            if name not in self._complained:
                self._complained.add(name)
                log.error(
                    "staleness_failed", source=name, error=str(error), instead=staleness.DEFAULT
                )
            return staleness.steady(evidence), staleness.DEFAULT
