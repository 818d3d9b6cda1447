"""The causes in the facts of a target, in the order in which a person must act on them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

from poller.domain.failures import error_codes, quarantine
from poller.domain.failures.circuit_breaker import BreakerState
from poller.domain.record import run
from poller.domain.record.overview import State, is_long_overdue
from poller.domain.why.target_facts import Flight, TargetFacts

#: A batch that waits for its start for longer is no usual wait in a busy queue.
LONG_WAIT_MS = 5_000
#: An instant that is further in the future was written before the clock was set back.
STEP_MS = 5_000


class Cause(enum.StrEnum):
    """Why a target is polled as it is. The order is that of `found`."""

    REDIS_AWAY = "redis_away"
    REDIS_REFUSES_WRITES = "redis_refuses_writes"
    DATABASE_AWAY = "database_away"
    LEADER_MISSING = "leader_missing"
    DISABLED = "disabled"
    PAUSED = "paused"  # its breaker was opened by hand
    NOT_ON_BOARD = "not_on_board"
    NO_PLACE = "no_place"  # the board is damaged
    NO_WORKER = "no_worker"
    UNROUTABLE = "unroutable"
    WORKERS_BLOCKED = "workers_blocked"  # a store is away for all workers that could take it
    QUARANTINED = "quarantined"
    SITE_DARK = "site_dark"
    CANARY = "canary"
    DEAD_LETTER = "dead_letter"
    WORKER_LOST = "worker_lost"
    LEASE_ENDED = "lease_ended"
    NOT_STARTED = "not_started"
    LONG_IN_FLIGHT = "long_in_flight"
    PROBING = "probing"  # the breaker is half-open
    BREAKER_OPEN = "breaker_open"
    CLOCK_SET_BACK = "clock_set_back"
    DOWN = "down"  # a finding: polled at every slot all the same
    FAILING = "failing"
    OVERDUE = "overdue"
    POLL_LOST = "poll_lost"  # the worker of the last poll did not report back
    DEGRADED = "degraded"
    DEMANDED = "demanded"
    NEVER_POLLED = "never_polled"
    POLLING = "polling"
    HEALTHY = "healthy"

    @property
    def is_store(self) -> bool:
        """Whether a store cannot be used."""
        return self in _STORES

    @property
    def is_bad(self) -> bool:
        """Whether something is wrong. A target that a person stopped, or a new one, is not."""
        return self not in _GOOD


_STORES = frozenset((Cause.REDIS_AWAY, Cause.REDIS_REFUSES_WRITES, Cause.DATABASE_AWAY))
_GOOD = frozenset(
    (
        Cause.DISABLED,
        Cause.PAUSED,
        Cause.NOT_ON_BOARD,
        Cause.DEMANDED,
        Cause.NEVER_POLLED,
        Cause.POLLING,
        Cause.HEALTHY,
    )
)
#: Of each group only the first cause counts.
_ONE_OF_EACH = (
    frozenset((Cause.WORKER_LOST, Cause.LEASE_ENDED, Cause.NOT_STARTED, Cause.LONG_IN_FLIGHT)),
    frozenset((Cause.DEAD_LETTER, Cause.PROBING, Cause.BREAKER_OPEN)),
    frozenset((Cause.QUARANTINED, Cause.DEAD_LETTER)),
)
#: Causes that leave every target overdue.
_STOPPED = frozenset(
    (
        Cause.REDIS_REFUSES_WRITES,
        Cause.LEADER_MISSING,
        Cause.NO_WORKER,
        Cause.UNROUTABLE,
        Cause.WORKERS_BLOCKED,
    )
)
#: Causes that say all there is: the others would follow from an old or a missing state.
_FINAL = frozenset((Cause.REDIS_AWAY, Cause.DISABLED, Cause.NOT_ON_BOARD))


def found(facts: TargetFacts) -> list[Cause]:
    """Every cause that holds, the first to act on first. There is always one."""
    causes = []
    for cause, holds in _CHECKS.items():
        if holds(facts):
            causes.append(cause)
            if cause in _FINAL:
                break
    return _without_consequences(causes) or [Cause.HEALTHY]


def _without_consequences(causes: Sequence[Cause]) -> list[Cause]:
    """The causes without those that only say the same once more."""
    kept: list[Cause] = []
    for cause in causes:
        if not any(cause in group and not group.isdisjoint(kept) for group in _ONE_OF_EACH):
            kept.append(cause)

    has_reason = not _STOPPED.isdisjoint(kept)
    if has_reason and Cause.OVERDUE in kept:
        kept.remove(Cause.OVERDUE)
    if len(kept) > 1 and Cause.POLLING in kept:
        kept.remove(Cause.POLLING)
    return kept


def is_quarantined(facts: TargetFacts) -> bool:
    """Whether the collector is quarantined on every living worker that could take the target."""
    row = facts.inventory
    if row is None or not facts.serving:
        return facts.status.code == error_codes.COLLECTOR_QUARANTINED
    releases = {worker.collectors.get(row.collector, "") for worker in facts.serving}
    records = [facts.cluster.crashes.get(release) for release in releases]
    return all(each and each.trust is quarantine.Trust.QUARANTINED for each in records)


def flight_ms(facts: TargetFacts, flight: Flight) -> int:
    """How long the target has been in flight."""
    return max(0, facts.now_ms - flight.claimed_ms)


def is_clock_set_back(facts: TargetFacts) -> bool:
    """Whether the last poll, or the last claim of a leader, is in the future."""
    last_ms = max(facts.status.finished_ms, facts.cluster.clock_ms)
    return last_ms > facts.now_ms + STEP_MS


def _is_disabled(facts: TargetFacts) -> bool:
    return facts.inventory is not None and not facts.inventory.enabled


def _flight(facts: TargetFacts) -> Flight | None:
    return facts.board.flight if facts.board else None


def _is_held(facts: TargetFacts) -> bool:
    return facts.board is not None and facts.board.place == "held"


def _is_canary(facts: TargetFacts) -> bool:
    outage = facts.site.outage
    return outage is not None and not _is_held(facts) and facts.target_id in outage.canaries


def _is_worker_lost(facts: TargetFacts) -> bool:
    flight = _flight(facts)
    if flight is None or not flight.holder:
        return False
    living = {run.holder_name(worker.name) for worker in facts.cluster.living}
    return flight.holder not in living


def _is_lease_ended(facts: TargetFacts) -> bool:
    flight = _flight(facts)
    return flight is not None and flight.lease_ms <= facts.now_ms


def _is_not_started(facts: TargetFacts) -> bool:
    flight = _flight(facts)
    if flight is None or flight.attempts:
        return False
    return flight_ms(facts, flight) > LONG_WAIT_MS


def _is_long_in_flight(facts: TargetFacts) -> bool:
    """Whether a started poll takes longer than the time limits of all its attempts."""
    flight = _flight(facts)
    if flight is None or not flight.attempts or facts.board is None:
        return False
    limit_ms = flight.attempts * facts.board.timeout_ms
    return flight_ms(facts, flight) > limit_ms + LONG_WAIT_MS


def _breaker_is(facts: TargetFacts, state: BreakerState) -> bool:
    if facts.board is None or facts.board.opening:
        return False
    return facts.board.breaker_state(facts.now_ms) is state


def _is_failing(facts: TargetFacts) -> bool:
    is_closed = not facts.status.breaker.trips
    return facts.status.state is State.FAILING and is_closed and not facts.status.reason


def _is_finding(facts: TargetFacts) -> bool:
    return _is_failing(facts) and facts.status.code in error_codes.FINDINGS


def _is_overdue(facts: TargetFacts) -> bool:
    board = facts.board
    if board is None or board.place not in ("due", "urgent") or not board.at_ms:
        return False
    return is_long_overdue(board.at_ms, facts.interval_ms or board.interval_ms, facts.now_ms)


def _is_poll_lost(facts: TargetFacts) -> bool:
    """Whether the newest run lost its lease, and no poll has ended since."""
    if not facts.runs or facts.runs[0].error_code != error_codes.LEASE_LOST:
        return False
    return facts.status.run_ms < facts.runs[0].plan_ms


def _is_demanded(facts: TargetFacts) -> bool:
    return facts.board is not None and facts.board.place == "urgent" and not facts.board.at_ms


def _is_blocked(facts: TargetFacts) -> bool:
    serving = facts.serving
    return bool(serving) and all(worker.store_error for worker in serving)


_CHECKS: Mapping[Cause, Callable[[TargetFacts], bool]] = {
    Cause.REDIS_AWAY: lambda facts: bool(facts.stores.redis),
    Cause.REDIS_REFUSES_WRITES: lambda facts: bool(facts.stores.write),
    Cause.DATABASE_AWAY: lambda facts: bool(facts.stores.sql),
    Cause.LEADER_MISSING: lambda facts: facts.cluster.leader is None,
    Cause.DISABLED: _is_disabled,
    Cause.PAUSED: lambda facts: facts.board is not None and facts.board.opening is not None,
    Cause.NOT_ON_BOARD: lambda facts: facts.board is None,
    Cause.NO_PLACE: lambda facts: facts.board is not None and not facts.board.place,
    Cause.NO_WORKER: lambda facts: not facts.cluster.living,
    Cause.UNROUTABLE: lambda facts: bool(facts.cluster.living) and not facts.serving,
    Cause.WORKERS_BLOCKED: _is_blocked,
    Cause.QUARANTINED: is_quarantined,
    Cause.SITE_DARK: _is_held,
    Cause.CANARY: _is_canary,
    Cause.DEAD_LETTER: lambda facts: facts.status.reason is not None,
    Cause.WORKER_LOST: _is_worker_lost,
    Cause.LEASE_ENDED: _is_lease_ended,
    Cause.NOT_STARTED: _is_not_started,
    Cause.LONG_IN_FLIGHT: _is_long_in_flight,
    Cause.PROBING: lambda facts: _breaker_is(facts, BreakerState.HALF_OPEN),
    Cause.BREAKER_OPEN: lambda facts: _breaker_is(facts, BreakerState.OPEN),
    Cause.CLOCK_SET_BACK: is_clock_set_back,
    Cause.DOWN: _is_finding,
    Cause.FAILING: lambda facts: _is_failing(facts) and not _is_finding(facts),
    Cause.OVERDUE: _is_overdue,
    Cause.POLL_LOST: _is_poll_lost,
    Cause.DEGRADED: lambda facts: facts.status.state is State.DEGRADED,
    Cause.DEMANDED: _is_demanded,
    Cause.NEVER_POLLED: lambda facts: (
        facts.board is not None and facts.status.state is State.UNKNOWN
    ),
    Cause.POLLING: lambda facts: _flight(facts) is not None,
}
