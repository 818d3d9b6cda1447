"""The document of an explanation, for the command line, the API and the pages."""

from __future__ import annotations

from typing import Literal

from poller.domain.alerts.alert import Alert
from poller.domain.failures import error_codes
from poller.domain.record.run import Run
from poller.domain.why import due_time, run_parts, worker_fit
from poller.domain.why.explanation import Explanation
from poller.domain.why.target_facts import BoardRow, TargetFacts
from poller.presentation import formatting
from poller.presentation.alerts import alert_sentences
from poller.presentation.targets.why_types import (
    WhyAlert,
    WhyBoard,
    WhyBreaker,
    WhyCredential,
    WhyDeadLetter,
    WhyDocument,
    WhyItem,
    WhyLeader,
    WhyRun,
    WhySchedule,
    WhySite,
    WhyStatus,
    WhyStep,
    WhyStores,
    WhySummary,
    WhyWorker,
)


def document(found: Explanation) -> WhyDocument:
    """The whole document of one target."""
    as_of = _instant(found.facts.now_ms)
    return WhyDocument(as_of=as_of, **dict(item(found)))


def item(found: Explanation) -> WhyItem:
    """The explanation of one target, as an item of a list."""
    facts = found.facts
    row = facts.inventory
    return WhyItem(
        **dict(summary(found)),
        also=list(found.also),
        hint=found.hint,
        board=_board(facts),
        schedule=_schedule(facts),
        status=_status(facts),
        breaker=_breaker(facts),
        dead_letter=_dead_letter(facts),
        site=_site(facts),
        leader=_leader(facts),
        workers=[WhyWorker(**fit._asdict()) for fit in worker_fit.workers(facts)],
        collector=row.collector if row else None,
        credential=_credential(facts),
        options=dict(row.options) if row else None,
        alerts=[_alert(each, facts.now_ms) for each in facts.alerts],
        runs=[_run(run) for run in facts.runs],
        stores=WhyStores(redis=facts.stores.redis or facts.stores.write, sql=facts.stores.sql),
    )


def summary(found: Explanation) -> WhySummary:
    """The sentence, the state and the next poll of a target."""
    facts = found.facts
    row = facts.inventory
    at_ms = _next_ms(facts.board)
    ahead_ms = at_ms - facts.now_ms
    return WhySummary(
        target_id=facts.target_id or None,
        device=row.device if row else None,
        target=row.target if row else None,
        cause=found.cause.value,
        is_bad=found.cause.is_bad,
        sentence=found.sentence,
        state=facts.status.state.value if facts.board else None,
        place=facts.board.place if facts.board else None,
        next_poll=_instant(at_ms),
        next_poll_in_seconds=ahead_ms // 1000 if at_ms else None,
    )


def _board(facts: TargetFacts) -> WhyBoard | None:
    board = facts.board
    if board is None:
        return None
    flight = board.flight
    return WhyBoard(
        place=board.place,
        queue=board.queue,
        due=_instant(_next_ms(board)),
        holder=flight.holder if flight else "",
        claimed=_instant(flight.claimed_ms) if flight else None,
        planned=_instant(flight.plan_ms) if flight else None,
        attempt=flight.attempts if flight else None,
        lease_ends=_instant(flight.lease_ms) if flight else None,
        lease=flight.token if flight else "",
        batches_waiting=facts.queue.batches,
        targets_overdue=facts.queue.overdue,
    )


def _schedule(facts: TargetFacts) -> WhySchedule:
    row = facts.inventory
    computed = due_time.due_time(facts)
    steps = computed.steps if computed else ()
    return WhySchedule(
        policy=row.policy.value if row else None,
        interval_seconds=facts.interval_ms / 1000,
        timeout_seconds=row.timeout_ms / 1000 if row else None,
        rule=computed.rule if computed else None,
        next=_instant(computed.at_ms) if computed else None,
        steps=[
            WhyStep(name=each.name, text=each.text, seconds=_seconds(each.ms)) for each in steps
        ],
    )


def _status(facts: TargetFacts) -> WhyStatus | None:
    if facts.board is None:
        return None
    status = facts.status
    return WhyStatus(
        state=status.state.value,
        since=_instant(status.since_ms),
        last_poll=_instant(status.finished_ms),
        last_good=_instant(status.ok_ms),
        failures=status.failures,
        missed_slots=status.missed,
        error_code=status.code,
        category=error_codes.category_of(status.code),
        message=status.message,
    )


def _breaker(facts: TargetFacts) -> WhyBreaker | None:
    board = facts.board
    if board is None:
        return None
    breaker = board.status.breaker
    opening = board.opening
    return WhyBreaker(
        state=board.breaker_state(facts.now_ms).value,
        trips=breaker.trips,
        since=_instant(opening.since_ms if opening else breaker.since_ms),
        probe=_instant(breaker.probe_ms),
        opened_by=opening.who if opening else "",
        opened_reason=opening.reason if opening else "",
        opened_until=_instant(opening.until_ms) if opening else None,
    )


def _dead_letter(facts: TargetFacts) -> WhyDeadLetter | None:
    status = facts.status
    if status.reason is None:
        return None
    is_parked = facts.board is not None and facts.board.place == "parked"
    return WhyDeadLetter(
        reason=status.reason.value,
        since=_instant(status.parked_ms),
        attempts=status.failures,
        next_retry=_instant(_next_ms(facts.board)) if is_parked else None,
    )


def _site(facts: TargetFacts) -> WhySite:
    site = facts.site
    outage = site.outage
    return WhySite(
        name=site.name,
        is_dark=outage is not None,
        dark_since=_instant(outage.since_ms) if outage else None,
        canaries=list(outage.canaries) if outage else [],
        neighbours=site.neighbours,
        neighbours_answering=site.answering,
        is_sample=site.is_sample,
    )


def _leader(facts: TargetFacts) -> WhyLeader | None:
    leader = facts.cluster.leader
    if leader is None:
        return None
    return WhyLeader(
        name=leader.name,
        epoch=leader.epoch,
        since=_instant(leader.since_ms),
        standbys=facts.cluster.standbys,
    )


def _credential(facts: TargetFacts) -> WhyCredential | None:
    row = facts.inventory
    if row is None or not row.credential:
        return None
    of: Literal["target", "device"] = "target" if row.credential_of == "target" else "device"
    return WhyCredential(name=row.credential, of=of)


def _alert(alert: Alert, now_ms: int) -> WhyAlert:
    given = alert_sentences.valid_acknowledgement(alert, now_ms)
    return WhyAlert(
        id=alert.id,
        rule=alert.rule,
        severity=alert.severity.value,
        state=alert.state.value,
        since=_instant(alert.since_ms),
        suppressed_by=alert.suppressed_by,
        acknowledged_by=given.by if given else "",
        text=alert.text,
        sentence=alert_sentences.sentence(alert, now_ms),
    )


def _run(run: Run) -> WhyRun:
    slowest = run_parts.slowest(run)
    return WhyRun(
        planned=_instant(run.plan_ms),
        outcome=run.outcome.value,
        error_code=run.error_code,
        message=run.message,
        runner=run.runner,
        attempt=run.attempt,
        samples=run.samples,
        late_seconds=_seconds(run.lateness_ms),
        took_seconds=run.duration_ms / 1000 if run.started_ms else None,
        slowest=slowest.name if slowest else "",
        slowest_seconds=slowest.ms / 1000 if slowest else None,
        parts={part.name: part.ms / 1000 for part in run_parts.parts(run)},
    )


def _next_ms(board: BoardRow | None) -> int:
    return board.at_ms if board else 0


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _instant(ms: int) -> str | None:
    return formatting.instant(ms) if ms else None
