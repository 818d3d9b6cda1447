"""An explanation as JSON, schema `poller.why/1`, for the command line, the API and the pages."""

from __future__ import annotations

from typing import Any

from poller.domain.failures import error_codes
from poller.domain.record.run import Run
from poller.domain.why import due_time, run_parts, worker_fit
from poller.domain.why.explanation import Explanation
from poller.domain.why.target_facts import BoardRow, TargetFacts
from poller.presentation import formatting

SCHEMA = "poller.why/1"
LIST_SCHEMA = "poller.why.list/1"


def document(found: Explanation) -> dict[str, Any]:
    """The whole document of one target. Instants are RFC 3339 in UTC; `as_of` is the cluster's
    clock, null while Redis is away.
    """
    return {"schema": SCHEMA, "as_of": _instant(found.facts.now_ms), **item(found)}


def item(found: Explanation) -> dict[str, Any]:
    """The explanation of one target, as an item of a list."""
    facts = found.facts
    return {
        **summary(found),
        "also": list(found.also),
        "try": found.hint,
        "board": _board(facts),
        "schedule": _schedule(facts),
        "status": _status(facts),
        "breaker": _breaker(facts),
        "dead_letter": _dead_letter(facts),
        "site": _site(facts),
        "leader": _leader(facts),
        "workers": [fit._asdict() for fit in worker_fit.workers(facts)],
        "collector": facts.inventory.collector if facts.inventory else None,
        "credential": _credential(facts),
        "options": dict(facts.inventory.options) if facts.inventory else None,
        "runs": [_run(run) for run in facts.runs],
        "stores": _stores(facts),
    }


def summary(found: Explanation) -> dict[str, Any]:
    """The few fields that a list of targets shows: the sentence, the state and the next poll."""
    facts = found.facts
    row = facts.inventory
    at_ms = _next_ms(facts.board)
    ahead_ms = at_ms - facts.now_ms
    return {
        "target_id": facts.target_id or None,
        "device": row.device if row else None,
        "target": row.target if row else None,
        "cause": found.cause.value,
        "is_bad": found.cause.is_bad,
        "sentence": found.sentence,
        "state": facts.status.state.value if facts.board else None,
        "place": facts.board.place if facts.board else None,
        "next_poll": _instant(at_ms),
        "next_poll_in_seconds": ahead_ms // 1000 if at_ms else None,
    }


def _board(facts: TargetFacts) -> dict[str, Any] | None:
    """Where the target is on the board, and who holds it."""
    board = facts.board
    if board is None:
        return None
    flight = board.flight
    return {
        "place": board.place,
        "queue": board.queue,
        "due": _instant(_next_ms(board)),
        "holder": flight.holder if flight else "",
        "claimed": _instant(flight.claimed_ms) if flight else None,
        "planned": _instant(flight.plan_ms) if flight else None,
        "attempt": flight.attempts if flight else None,
        "lease_ends": _instant(flight.lease_ms) if flight else None,
        "lease": flight.token if flight else "",
        "batches_waiting": facts.queue.batches,
        "targets_overdue": facts.queue.overdue,
    }


def _schedule(facts: TargetFacts) -> dict[str, Any]:
    """How the next due time was computed."""
    row = facts.inventory
    computed = due_time.due_time(facts)
    steps = computed.steps if computed else ()
    return {
        "policy": row.policy.value if row else None,
        "interval_seconds": facts.interval_ms / 1000,
        "timeout_seconds": row.timeout_ms / 1000 if row else None,
        "rule": computed.rule if computed else None,
        "next": _instant(computed.at_ms) if computed else None,
        "steps": [
            {"name": step.name, "text": step.text, "seconds": _seconds(step.ms)} for step in steps
        ],
    }


def _status(facts: TargetFacts) -> dict[str, Any] | None:
    if facts.board is None:
        return None
    status = facts.status
    return {
        "state": status.state.value,
        "since": _instant(status.since_ms),
        "last_poll": _instant(status.finished_ms),
        "last_good": _instant(status.ok_ms),
        "failures": status.failures,
        "missed_slots": status.missed,
        "error_code": status.code,
        "category": error_codes.category_of(status.code),
        "message": status.message,
    }


def _breaker(facts: TargetFacts) -> dict[str, Any] | None:
    board = facts.board
    if board is None:
        return None
    breaker = board.status.breaker
    opening = board.opening
    return {
        "state": board.breaker_state(facts.now_ms).value,
        "trips": breaker.trips,
        "since": _instant(opening.since_ms if opening else breaker.since_ms),
        "probe": _instant(breaker.probe_ms),
        "opened_by": opening.who if opening else "",
        "opened_until": _instant(opening.until_ms) if opening else None,
    }


def _dead_letter(facts: TargetFacts) -> dict[str, Any] | None:
    status = facts.status
    if status.reason is None:
        return None
    is_parked = facts.board is not None and facts.board.place == "parked"
    return {
        "reason": status.reason.value,
        "since": _instant(status.parked_ms),
        "attempts": status.failures,
        "next_retry": _instant(_next_ms(facts.board)) if is_parked else None,
    }


def _site(facts: TargetFacts) -> dict[str, Any]:
    site = facts.site
    outage = site.outage
    return {
        "name": site.name,
        "is_dark": outage is not None,
        "dark_since": _instant(outage.since_ms) if outage else None,
        "canaries": list(outage.canaries) if outage else [],
        "neighbours": site.neighbours,
        "neighbours_answering": site.answering,
        "is_sample": site.is_sample,
    }


def _leader(facts: TargetFacts) -> dict[str, Any] | None:
    leader = facts.cluster.leader
    if leader is None:
        return None
    return {
        "name": leader.name,
        "epoch": leader.epoch,
        "since": _instant(leader.since_ms),
        "standbys": facts.cluster.standbys,
    }


def _credential(facts: TargetFacts) -> dict[str, str] | None:
    """The name of the credential, never its secret; null for a target without one."""
    row = facts.inventory
    if row is None or not row.credential:
        return None
    return {"name": row.credential, "of": row.credential_of}


def _run(run: Run) -> dict[str, Any]:
    slowest = run_parts.slowest(run)
    late_ms = run.lateness_ms
    return {
        "planned": _instant(run.plan_ms),
        "outcome": run.outcome.value,
        "error_code": run.error_code,
        "message": run.message,
        "runner": run.runner,
        "attempt": run.attempt,
        "samples": run.samples,
        "late_seconds": _seconds(late_ms),
        "took_seconds": _seconds(run.duration_ms) if run.started_ms else None,
        "slowest": slowest.name if slowest else "",
        "slowest_seconds": _seconds(slowest.ms) if slowest else None,
        "parts": {part.name: _seconds(part.ms) for part in run_parts.parts(run)},
    }


def _stores(facts: TargetFacts) -> dict[str, str]:
    """The errors of the stores; an empty text for a store that works."""
    redis_error = facts.stores.redis or facts.stores.write
    return {"redis": redis_error, "sql": facts.stores.sql}


def _next_ms(board: BoardRow | None) -> int:
    return board.at_ms if board else 0


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _instant(ms: int) -> str | None:
    return formatting.instant(ms) if ms else None
