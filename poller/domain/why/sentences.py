"""One plain sentence for each cause. The table of situations in docs/why.md has an example each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from poller.domain.why import cluster_sentences, poll_sentences
from poller.domain.why.causes import Cause
from poller.domain.why.phrases import joined
from poller.domain.why.target_facts import TargetFacts


def sentence(cause: Cause, facts: TargetFacts) -> str:
    """The sentence of a cause that holds for these facts."""
    return joined(_PARTS[cause](facts))


_PARTS: Mapping[Cause, Callable[[TargetFacts], list[str]]] = {
    Cause.REDIS_AWAY: cluster_sentences.redis_away,
    Cause.REDIS_REFUSES_WRITES: cluster_sentences.redis_refuses_writes,
    Cause.DATABASE_AWAY: cluster_sentences.database_away,
    Cause.LEADER_MISSING: cluster_sentences.leader_missing,
    Cause.DISABLED: cluster_sentences.disabled,
    Cause.PAUSED: cluster_sentences.paused,
    Cause.NOT_ON_BOARD: cluster_sentences.not_on_board,
    Cause.NO_PLACE: cluster_sentences.no_place,
    Cause.NO_WORKER: cluster_sentences.no_worker,
    Cause.UNROUTABLE: cluster_sentences.unroutable,
    Cause.WORKERS_BLOCKED: cluster_sentences.workers_blocked,
    Cause.QUARANTINED: cluster_sentences.quarantined,
    Cause.SITE_DARK: cluster_sentences.site_dark,
    Cause.CANARY: cluster_sentences.canary,
    Cause.DEAD_LETTER: poll_sentences.dead_letter,
    Cause.WORKER_LOST: poll_sentences.worker_lost,
    Cause.LEASE_ENDED: poll_sentences.lease_ended,
    Cause.NOT_STARTED: poll_sentences.not_started,
    Cause.LONG_IN_FLIGHT: poll_sentences.long_in_flight,
    Cause.PROBING: poll_sentences.probing,
    Cause.BREAKER_OPEN: poll_sentences.breaker_open,
    Cause.CLOCK_SET_BACK: poll_sentences.clock_set_back,
    Cause.DOWN: poll_sentences.down,
    Cause.FAILING: poll_sentences.failing,
    Cause.OVERDUE: poll_sentences.overdue,
    Cause.POLL_LOST: poll_sentences.poll_lost,
    Cause.DEGRADED: poll_sentences.degraded,
    Cause.DEMANDED: poll_sentences.demanded,
    Cause.NEVER_POLLED: poll_sentences.never_polled,
    Cause.POLLING: poll_sentences.polling,
    Cause.HEALTHY: poll_sentences.healthy,
}
