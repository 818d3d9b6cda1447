"""One plain sentence for each cause. The table of situations in docs/why.md has an example each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from poller.domain.failures.quarantine import Trust
from poller.domain.scheduling import unroutable
from poller.domain.why import causes, phrases
from poller.domain.why.causes import Cause
from poller.domain.why.phrases import counted, joined, span
from poller.domain.why.target_facts import Flight, TargetFacts

#: A rule that opens later than this never opens.
_NEVER = 1_000_000


def sentence(cause: Cause, facts: TargetFacts) -> str:
    """The sentence of a cause that holds for these facts."""
    return joined(_PARTS[cause](facts))


def _redis_away(facts: TargetFacts) -> list[str]:
    error = phrases.without_dot(facts.stores.redis)
    return [f"Redis does not answer, so nothing is scheduled and no state is known: {error}"]


def _redis_refuses_writes(facts: TargetFacts) -> list[str]:
    return [phrases.takes_no_writes(facts.stores.write)]


def _database_away(facts: TargetFacts) -> list[str]:
    error = phrases.without_dot(facts.stores.sql)
    goes_on = "workers poll the targets that they know, and results wait on their disks"
    if facts.board is None:
        return [f"The database does not answer: {error}", goes_on]
    poll = f"{phrases.last_good(facts)}, {phrases.next_poll(facts)}"
    return [f"The database does not answer: {error}", goes_on, poll]


def _leader_missing(facts: TargetFacts) -> list[str]:
    clock_ms = facts.cluster.clock_ms
    if not clock_ms:
        return [phrases.NO_LEADER, "no leader has ever claimed a target"]
    return [phrases.NO_LEADER, f"the last claim was {span(facts.now_ms - clock_ms)} ago"]


def _disabled(facts: TargetFacts) -> list[str]:
    row = facts.inventory
    if row is None or row.target_enabled:
        return ["Not polled: the device is disabled"]
    if row.device_enabled:
        return ["Not polled: the target is disabled"]
    return ["Not polled: the device and the target are disabled"]


def _paused(facts: TargetFacts) -> list[str]:
    opening = facts.board.opening if facts.board else None
    if opening is None:
        return ["Not polled: its breaker was opened by hand"]
    since = span(facts.now_ms - opening.since_ms)
    remaining = span(opening.until_ms - facts.now_ms)
    opened = f"{opening.who} opened its breaker by hand {since} ago"
    return [f"Not polled: {opened}, for another {remaining}"]


def _not_on_board(facts: TargetFacts) -> list[str]:
    return ["Not scheduled yet: the leader has not put the target on the board"]


def _no_place(facts: TargetFacts) -> list[str]:
    return ["Not polled: the target is in no place of the board, which another program damaged"]


def _no_worker(facts: TargetFacts) -> list[str]:
    return [phrases.NO_WORKER, _overdue_part(facts)]


def _unroutable(facts: TargetFacts) -> list[str]:
    reason = unroutable.reason(facts.queue_name, facts.cluster.living)
    return [f"Not polled: no worker may take it, {reason}"]


def _workers_blocked(facts: TargetFacts) -> list[str]:
    workers = facts.serving
    error = phrases.without_dot(workers[0].store_error)
    if len(workers) == 1:
        return [f"Not polled: {workers[0].name}, the only worker that may take it, reports {error}"]
    return [f"Not polled: all {counted(len(workers), 'worker')} that may take it report {error}"]


def _quarantined(facts: TargetFacts) -> list[str]:
    collector = facts.inventory.collector if facts.inventory else "its collector"
    records = [each for each in facts.cluster.crashes.values() if each.trust is Trust.QUARANTINED]
    if not records:
        return [f"Not polled: collector {collector} is quarantined", "a person must release it"]
    newest = max(records, key=lambda each: each.since_ms)
    since = span(facts.now_ms - newest.since_ms)
    crashes = counted(len(newest.crashes_ms), "crash", "crashes")
    quarantined = f"collector {collector} was quarantined {since} ago after {crashes}"
    return [f"Not polled: {quarantined}", "a person must release it"]


def _site_dark(facts: TargetFacts) -> list[str]:
    name = facts.site.name or "its site"
    canaries = len(facts.site.outage.canaries) if facts.site.outage else 0
    held = f"Held: site {name} has been dark for {phrases.dark_for(facts)}"
    if not canaries:
        return [held, "its targets wait until a canary answers"]
    are = "is" if canaries == 1 else "are"
    return [held, f"{counted(canaries, 'canary', 'canaries')} {are} polled for it"]


def _canary(facts: TargetFacts) -> list[str]:
    dark = f"its site {facts.site.name} has been dark for {phrases.dark_for(facts)}"
    return [f"A canary: {dark}", phrases.next_poll(facts)]


def _dead_letter(facts: TargetFacts) -> list[str]:
    parked = f"parked for {span(facts.now_ms - facts.status.parked_ms)}"
    return [
        f"Needs a person: {phrases.last_polls(facts)}",
        f"{parked}, {phrases.next_poll(facts, 'slow retry')}",
        phrases.site(facts),
    ]


def _worker_lost(facts: TargetFacts) -> list[str]:
    flight = _flight(facts)
    lost = [worker for worker in facts.cluster.lost if worker.name == flight.holder]
    gone = "which is gone"
    if lost:
        gone = f"which was lost {span(facts.now_ms - lost[-1].seen_ms)} ago"
    return [f"In flight {_for(facts)} on {flight.holder}, {gone}", _lease(facts)]


def _lease_ended(facts: TargetFacts) -> list[str]:
    ended = span(facts.now_ms - _flight(facts).lease_ms)
    return [
        f"In flight {_for(facts)}, but its lease ended {ended} ago",
        "the leader brings the target back at its next check",
    ]


def _not_started(facts: TargetFacts) -> list[str]:
    wait = f"Claimed {span(causes.flight_ms(facts, _flight(facts)))} ago, and no worker has started"
    batches = facts.queue.batches
    if not batches:
        return [f"{wait} it", "its batch waits in a worker that is busy", _lease(facts)]
    waiting = counted(batches, "batch waits", "batches wait")
    workers = counted(len(facts.serving), "worker")
    return [f"{wait} it", f"{waiting} in its queue for {workers}", _lease(facts)]


def _long_in_flight(facts: TargetFacts) -> list[str]:
    flight = _flight(facts)
    limit = phrases.interval(facts.board.timeout_ms if facts.board else 0)
    holder = f" on {flight.holder}" if flight.holder else ""
    attempts = f"{flight.attempts:,} attempts" if flight.attempts > 1 else "its time limit"
    return [
        f"In flight {_for(facts)}{holder}, longer than {attempts} of {limit}",
        _lease(facts),
    ]


def _probing(facts: TargetFacts) -> list[str]:
    failures = phrases.last_polls(facts)
    probe = phrases.next_poll(facts, "probe")
    return [
        phrases.every(facts),
        f"{failures}, the breaker is half-open, {probe}",
        phrases.site(facts),
    ]


def _breaker_open(facts: TargetFacts) -> list[str]:
    failures = phrases.last_polls(facts)
    probe = phrases.next_poll(facts, "probe")
    return [
        phrases.every(facts),
        f"{failures}, the breaker is open, {probe}",
        phrases.site(facts),
    ]


def _clock_set_back(facts: TargetFacts) -> list[str]:
    last_ms = max(facts.status.finished_ms, facts.cluster.clock_ms)
    step = span(last_ms - facts.now_ms)
    return [
        phrases.every(facts),
        f"the clock of Redis was set back by {step} or more, so its last poll is in the future",
        phrases.next_poll(facts),
    ]


def _down(facts: TargetFacts) -> list[str]:
    number = max(1, facts.status.failures)
    polls = "the last poll" if number == 1 else f"the last {number:,} polls"
    return [
        phrases.every(facts),
        f"{polls} found it not well: {phrases.message(facts)}",
        f"it is polled at every slot, {phrases.next_poll(facts)}",
        phrases.site(facts),
    ]


def _failing(facts: TargetFacts) -> list[str]:
    return [
        phrases.every(facts),
        f"{phrases.last_polls(facts)}, {_opens(facts)}, {phrases.next_poll(facts)}",
        phrases.site(facts),
    ]


def _opens(facts: TargetFacts) -> str:
    """`the breaker opens after 2 more`, or `the breaker stays closed` for some codes."""
    rule = facts.rules.breaker.for_code(facts.status.code)
    if rule.after > _NEVER:
        return "the breaker stays closed"
    return f"the breaker opens after {max(1, rule.after - facts.status.failures):,} more"


def _overdue(facts: TargetFacts) -> list[str]:
    batches = facts.queue.batches
    waiting = counted(batches, "batch", "batches")
    targets = counted(max(1, facts.queue.overdue), "target")
    workers = counted(len(facts.serving), "worker does", "workers do")
    return [
        phrases.every(facts),
        _overdue_part(facts),
        f"{workers} not keep up: {waiting} and {targets} of its queue wait",
    ]


def _overdue_part(facts: TargetFacts) -> str:
    """`overdue by 3 m`; empty for a target that is not overdue."""
    board = facts.board
    if board is None or board.place not in ("due", "urgent") or not board.at_ms:
        return ""
    late_ms = facts.now_ms - board.at_ms
    return f"overdue by {span(late_ms)}" if late_ms >= 1000 else ""


def _poll_lost(facts: TargetFacts) -> list[str]:
    runner = facts.runs[0].runner if facts.runs else ""
    worker = f"worker {runner}" if runner else "the worker"
    return [
        phrases.every(facts),
        f"{worker} did not report back from the last poll",
        f"{phrases.last_good(facts)}, {phrases.next_poll(facts)}",
    ]


def _degraded(facts: TargetFacts) -> list[str]:
    return [
        phrases.every(facts),
        f"the last poll got only a part: {phrases.message(facts)}",
        phrases.next_poll(facts),
    ]


def _demanded(facts: TargetFacts) -> list[str]:
    return ["Demanded: the target goes before all others, as soon as the leader claims it"]


def _never_polled(facts: TargetFacts) -> list[str]:
    return [phrases.every(facts), f"not polled yet, {phrases.next_poll(facts)}"]


def _polling(facts: TargetFacts) -> list[str]:
    flight = _flight(facts)
    where = f"by {flight.holder}" if flight.holder else "waits for a worker"
    polled = f"its poll is in flight {_for(facts)}, {where}"
    return [phrases.every(facts), polled, phrases.last_good(facts)]


def _healthy(facts: TargetFacts) -> list[str]:
    ended = span(facts.now_ms - facts.status.finished_ms)
    return [phrases.every(facts), f"the last poll was good {ended} ago, {phrases.next_poll(facts)}"]


def _flight(facts: TargetFacts) -> Flight:
    """The flight of a target; an empty one for facts without."""
    flight = facts.board.flight if facts.board else None
    return flight or Flight("", facts.now_ms, 0, facts.now_ms)


def _for(facts: TargetFacts) -> str:
    return f"for {span(causes.flight_ms(facts, _flight(facts)))}"


def _lease(facts: TargetFacts) -> str:
    ahead_ms = _flight(facts).lease_ms - facts.now_ms
    return f"due again when its lease ends, in {span(ahead_ms)}" if ahead_ms > 0 else ""


_PARTS: Mapping[Cause, Callable[[TargetFacts], list[str]]] = {
    Cause.REDIS_AWAY: _redis_away,
    Cause.REDIS_REFUSES_WRITES: _redis_refuses_writes,
    Cause.DATABASE_AWAY: _database_away,
    Cause.LEADER_MISSING: _leader_missing,
    Cause.DISABLED: _disabled,
    Cause.PAUSED: _paused,
    Cause.NOT_ON_BOARD: _not_on_board,
    Cause.NO_PLACE: _no_place,
    Cause.NO_WORKER: _no_worker,
    Cause.UNROUTABLE: _unroutable,
    Cause.WORKERS_BLOCKED: _workers_blocked,
    Cause.QUARANTINED: _quarantined,
    Cause.SITE_DARK: _site_dark,
    Cause.CANARY: _canary,
    Cause.DEAD_LETTER: _dead_letter,
    Cause.WORKER_LOST: _worker_lost,
    Cause.LEASE_ENDED: _lease_ended,
    Cause.NOT_STARTED: _not_started,
    Cause.LONG_IN_FLIGHT: _long_in_flight,
    Cause.PROBING: _probing,
    Cause.BREAKER_OPEN: _breaker_open,
    Cause.CLOCK_SET_BACK: _clock_set_back,
    Cause.DOWN: _down,
    Cause.FAILING: _failing,
    Cause.OVERDUE: _overdue,
    Cause.POLL_LOST: _poll_lost,
    Cause.DEGRADED: _degraded,
    Cause.DEMANDED: _demanded,
    Cause.NEVER_POLLED: _never_polled,
    Cause.POLLING: _polling,
    Cause.HEALTHY: _healthy,
}
