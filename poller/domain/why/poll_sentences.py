"""Sentences of causes of the target itself: its flight, its breaker and its last polls.

Each function returns the parts of one sentence.
"""

from __future__ import annotations

from poller.domain.why import causes, phrases
from poller.domain.why.phrases import counted, span
from poller.domain.why.target_facts import Flight, TargetFacts

#: A rule that opens later than this never opens.
_NEVER = 1_000_000


def dead_letter(facts: TargetFacts) -> list[str]:
    parked = f"parked for {span(facts.now_ms - facts.status.parked_ms)}"
    return [
        f"Needs a person: {phrases.last_polls(facts)}",
        f"{parked}, {phrases.next_poll(facts, 'slow retry')}",
        phrases.site(facts),
    ]


def worker_lost(facts: TargetFacts) -> list[str]:
    flight = _flight(facts)
    lost = [worker for worker in facts.cluster.lost if worker.name == flight.holder]
    gone = "which is gone"
    if lost:
        gone = f"which was lost {span(facts.now_ms - lost[-1].seen_ms)} ago"
    return [f"In flight {_for(facts)} on {flight.holder}, {gone}", _lease(facts)]


def lease_ended(facts: TargetFacts) -> list[str]:
    ended = span(facts.now_ms - _flight(facts).lease_ms)
    return [
        f"In flight {_for(facts)}, but its lease ended {ended} ago",
        "the leader brings the target back at its next check",
    ]


def not_started(facts: TargetFacts) -> list[str]:
    wait = f"Claimed {span(causes.flight_ms(facts, _flight(facts)))} ago, and no worker has started"
    batches = facts.queue.batches
    if not batches:
        return [f"{wait} it", "its batch waits in a worker that is busy", _lease(facts)]
    waiting = counted(batches, "batch waits", "batches wait")
    workers = counted(len(facts.serving), "worker")
    return [f"{wait} it", f"{waiting} in its queue for {workers}", _lease(facts)]


def long_in_flight(facts: TargetFacts) -> list[str]:
    flight = _flight(facts)
    limit = phrases.interval(facts.board.timeout_ms if facts.board else 0)
    holder = f" on {flight.holder}" if flight.holder else ""
    attempts = f"{flight.attempts:,} attempts" if flight.attempts > 1 else "its time limit"
    return [
        f"In flight {_for(facts)}{holder}, longer than {attempts} of {limit}",
        _lease(facts),
    ]


def probing(facts: TargetFacts) -> list[str]:
    failures = phrases.last_polls(facts)
    probe = phrases.next_poll(facts, "probe")
    return [
        phrases.every(facts),
        f"{failures}, the breaker is half-open, {probe}",
        phrases.site(facts),
    ]


def breaker_open(facts: TargetFacts) -> list[str]:
    failures = phrases.last_polls(facts)
    probe = phrases.next_poll(facts, "probe")
    return [
        phrases.every(facts),
        f"{failures}, the breaker is open, {probe}",
        phrases.site(facts),
    ]


def clock_set_back(facts: TargetFacts) -> list[str]:
    last_ms = max(facts.status.finished_ms, facts.cluster.clock_ms)
    step = span(last_ms - facts.now_ms)
    return [
        phrases.every(facts),
        f"the clock of Redis was set back by {step} or more, so its last poll is in the future",
        phrases.next_poll(facts),
    ]


def down(facts: TargetFacts) -> list[str]:
    number = max(1, facts.status.failures)
    polls = "the last poll" if number == 1 else f"the last {number:,} polls"
    return [
        phrases.every(facts),
        f"{polls} found it not well: {phrases.message(facts)}",
        f"it is polled at every slot, {phrases.next_poll(facts)}",
        phrases.site(facts),
    ]


def failing(facts: TargetFacts) -> list[str]:
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


def overdue(facts: TargetFacts) -> list[str]:
    batches = facts.queue.batches
    waiting = counted(batches, "batch", "batches")
    targets = counted(max(1, facts.queue.overdue), "target")
    workers = counted(len(facts.serving), "worker does", "workers do")
    return [
        phrases.every(facts),
        phrases.overdue_by(facts),
        f"{workers} not keep up: {waiting} and {targets} of its queue wait",
    ]


def poll_lost(facts: TargetFacts) -> list[str]:
    runner = facts.runs[0].runner if facts.runs else ""
    worker = f"worker {runner}" if runner else "the worker"
    return [
        phrases.every(facts),
        f"{worker} did not report back from the last poll",
        f"{phrases.last_good(facts)}, {phrases.next_poll(facts)}",
    ]


def degraded(facts: TargetFacts) -> list[str]:
    return [
        phrases.every(facts),
        f"the last poll got only a part: {phrases.message(facts)}",
        phrases.next_poll(facts),
    ]


def demanded(facts: TargetFacts) -> list[str]:
    return ["Demanded: the target goes before all others, as soon as the leader claims it"]


def never_polled(facts: TargetFacts) -> list[str]:
    return [phrases.every(facts), f"not polled yet, {phrases.next_poll(facts)}"]


def polling(facts: TargetFacts) -> list[str]:
    flight = _flight(facts)
    where = f"by {flight.holder}" if flight.holder else "waits for a worker"
    polled = f"its poll is in flight {_for(facts)}, {where}"
    return [phrases.every(facts), polled, phrases.last_good(facts)]


def healthy(facts: TargetFacts) -> list[str]:
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
