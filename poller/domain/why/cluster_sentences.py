"""Sentences of causes outside the target: stores, processes, people, its collector and its site.

Each function returns the parts of one sentence.
"""

from __future__ import annotations

from poller.domain.failures.quarantine import Trust
from poller.domain.scheduling import unroutable as missing
from poller.domain.why import phrases, required_tags
from poller.domain.why.phrases import counted, span
from poller.domain.why.target_facts import TargetFacts


def redis_away(facts: TargetFacts) -> list[str]:
    error = phrases.without_dot(facts.stores.redis)
    return [f"Redis does not answer, so nothing is scheduled and no state is known: {error}"]


def redis_refuses_writes(facts: TargetFacts) -> list[str]:
    return [phrases.takes_no_writes(facts.stores.write)]


def database_away(facts: TargetFacts) -> list[str]:
    error = phrases.without_dot(facts.stores.sql)
    goes_on = "workers poll the targets that they know, and results wait on their disks"
    if facts.board is None:
        return [f"The database does not answer: {error}", goes_on]
    poll = f"{phrases.last_good(facts)}, {phrases.next_poll(facts)}"
    return [f"The database does not answer: {error}", goes_on, poll]


def leader_missing(facts: TargetFacts) -> list[str]:
    clock_ms = facts.cluster.clock_ms
    if not clock_ms:
        return [phrases.NO_LEADER, "no leader has ever claimed a target"]
    return [phrases.NO_LEADER, f"the last claim was {span(facts.now_ms - clock_ms)} ago"]


def disabled(facts: TargetFacts) -> list[str]:
    row = facts.inventory
    if row is None or row.target_enabled:
        return ["Not polled: the device is disabled"]
    if row.device_enabled:
        return ["Not polled: the target is disabled"]
    return ["Not polled: the device and the target are disabled"]


def paused(facts: TargetFacts) -> list[str]:
    opening = facts.board.opening if facts.board else None
    if opening is None:
        return ["Not polled: its breaker was opened by hand"]
    since = span(facts.now_ms - opening.since_ms)
    remaining = span(opening.until_ms - facts.now_ms)
    opened = f"{opening.who} opened its breaker by hand {since} ago"
    why = f": {opening.reason.rstrip('.')}" if opening.reason else ""
    return [f"Not polled: {opened}, for another {remaining}{why}"]


def not_on_board(facts: TargetFacts) -> list[str]:
    return ["Not scheduled yet: the leader has not put the target on the board"]


def no_place(facts: TargetFacts) -> list[str]:
    return ["Not polled: the target is in no place of the board, which another program damaged"]


def no_worker(facts: TargetFacts) -> list[str]:
    return [phrases.NO_WORKER, phrases.overdue_by(facts)]


def unroutable(facts: TargetFacts) -> list[str]:
    reason = missing.reason(facts.queue_name, facts.cluster.living)
    return [f"Not polled: no worker may take it, {reason}", required_tags.origin(facts)]


def workers_blocked(facts: TargetFacts) -> list[str]:
    workers = facts.serving
    error = phrases.without_dot(workers[0].store_error)
    if len(workers) == 1:
        return [f"Not polled: {workers[0].name}, the only worker that may take it, reports {error}"]
    return [f"Not polled: all {counted(len(workers), 'worker')} that may take it report {error}"]


def quarantined(facts: TargetFacts) -> list[str]:
    collector = facts.inventory.collector if facts.inventory else "its collector"
    records = [each for each in facts.cluster.crashes.values() if each.trust is Trust.QUARANTINED]
    if not records:
        return [f"Not polled: collector {collector} is quarantined", "a person must release it"]
    newest = max(records, key=lambda each: each.since_ms)
    since = span(facts.now_ms - newest.since_ms)
    crashes = counted(len(newest.crashes_ms), "crash", "crashes")
    quarantined = f"collector {collector} was quarantined {since} ago after {crashes}"
    return [f"Not polled: {quarantined}", "a person must release it"]


def site_dark(facts: TargetFacts) -> list[str]:
    name = facts.site.name or "its site"
    canaries = len(facts.site.outage.canaries) if facts.site.outage else 0
    held = f"Held: site {name} has been dark for {phrases.dark_for(facts)}"
    if not canaries:
        return [held, "its targets wait until a canary answers"]
    are = "is" if canaries == 1 else "are"
    return [held, f"{counted(canaries, 'canary', 'canaries')} {are} polled for it"]


def canary(facts: TargetFacts) -> list[str]:
    dark = f"its site {facts.site.name} has been dark for {phrases.dark_for(facts)}"
    return [f"A canary: {dark}", phrases.next_poll(facts)]
