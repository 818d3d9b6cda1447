"""The document of `/api/v1/scheduler/health`: the scheduler as a whole, and a page of targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from poller.db.record.dead_letter_rows import Named
from poller.domain.record.overview import Lateness, Load, Overview, Worker
from poller.domain.scheduling import queue_routing
from poller.domain.why.target_health import TargetHealth
from poller.presentation import formatting, health, job_json, running_workers
from poller.presentation.cluster import sinks_json
from poller.presentation.health import Stores
from poller.presentation.targets import health_instances
from poller.presentation.targets.health_instances import instant
from poller.presentation.targets.health_types import (
    HealthBoard,
    HealthBreakers,
    HealthDocument,
    HealthDomain,
    HealthJobs,
    HealthLateness,
    HealthLeader,
    HealthLetter,
    HealthLetters,
    HealthQueue,
    HealthSinks,
    HealthStaleness,
    HealthStores,
    HealthThroughput,
    HealthUnroutable,
    HealthVerdict,
    HealthWorker,
)


@dataclass(frozen=True, slots=True)
class OverallHealth:
    """The values that were read about the scheduler as a whole."""

    overview: Overview
    stores: Stores
    sinks: Sequence[str] = ()
    not_closed: Sequence[TargetHealth] = ()
    newest_letters: Sequence[Named] = ()
    stalest: Sequence[TargetHealth] = ()
    #: Targets without a good poll, and without one for 5 minutes, an hour, a day.
    stale_counts: Sequence[int] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class InstancesPage:
    """One page of targets."""

    targets: Sequence[TargetHealth] = ()
    next: str | None = None
    scanned: int = 0
    error: str = ""  # why there are none


def document(overall: OverallHealth, page: InstancesPage) -> HealthDocument:
    """The whole document."""
    overview, stores = overall.overview, overall.stores
    verdict = health.judge(overview, stores)
    unroutable = running_workers.unroutable(overview)
    reasons = {each.queue: each.reason for each in unroutable}
    return HealthDocument(
        updated_at=formatting.instant(overview.as_of_ms),
        enabled=overview.leader is not None,
        verdict=HealthVerdict(
            level=verdict.level.value, text=verdict.text, reasons=list(verdict.reasons)
        ),
        leader=_leader(overview),
        queue=_queue(overall),
        lateness=_lateness(overview.lateness),
        throughput=HealthThroughput(
            polls_per_second=overview.polls_per_second,
            outcomes_last_5_min=dict(overview.outcomes),
        ),
        capacity=[_domain(load) for load in overview.loads],
        workers=[_worker(worker, overview) for worker in overview.workers],
        unroutable=[
            HealthUnroutable(
                queue=each.queue, targets=each.targets, needs=each.needs, reason=each.reason
            )
            for each in unroutable
        ],
        board=_board(overview),
        stores=HealthStores(redis=stores.redis_error or stores.write_error, sql=stores.sql_error),
        sinks=_sinks(overall),
        jobs=HealthJobs(**job_json.jsonable(job_json.attention(stores.jobs))),
        breakers=HealthBreakers(
            open=overview.breakers_open,
            opened_by_hand=overview.opened_by_hand,
            not_closed=[health_instances.not_closed(each) for each in overall.not_closed],
        ),
        dead_letters=_letters(overall),
        staleness=_staleness(overall),
        instances=[health_instances.item(each, reasons) for each in page.targets],
        instances_error=page.error,
        scanned=page.scanned,
        next=page.next,
    )


def _leader(overview: Overview) -> HealthLeader:
    leader = overview.leader
    return HealthLeader(
        present=leader is not None,
        name=leader.name if leader else "",
        since=instant(leader.since_ms) if leader else None,
        epoch=leader.epoch if leader else 0,
        standbys=overview.standbys,
    )


def _queue(overall: OverallHealth) -> HealthQueue:
    loads = overall.overview.loads
    waiting: Counter[str] = Counter()
    soon: Counter[str] = Counter()
    for load in loads:
        collector, _ = queue_routing.parse(load.queue)
        waiting[collector] += load.due
        soon[collector] += load.due_soon
    return HealthQueue(
        depth=overall.overview.due,
        due_within_12_seconds=soon.total(),
        overdue=overall.overview.overdue,
        batches_waiting=sum(load.waiting for load in loads),
        per_collector=dict(waiting),
        due_within_12_seconds_per_collector=dict(soon),
    )


def _lateness(found: Lateness) -> HealthLateness:
    values = [ms / 1000 for ms in (found.p50_ms, found.p99_ms, found.max_ms)]
    p50, p99, longest = values if found.count else [None, None, None]
    return HealthLateness(polls=found.count, p50_seconds=p50, p99_seconds=p99, max_seconds=longest)


def _domain(load: Load) -> HealthDomain:
    collector, requires = queue_routing.parse(load.queue)
    return HealthDomain(
        queue=load.queue,
        collector=collector,
        requires=requires,
        workers=load.workers,
        waiting=load.due,
        overdue=load.overdue,
        due_within_12_seconds=load.due_soon,
        batches_waiting=load.waiting,
        needed_per_second=load.needed_per_s,
        done_per_second=load.done_per_s,
        times_the_workers_needed=load.shortage,
    )


def _worker(worker: Worker, overview: Overview) -> HealthWorker:
    return HealthWorker(
        name=worker.name,
        instance=worker.instance,
        running=running_workers.is_running(worker, overview),
        seen=instant(worker.seen_ms),
        started=instant(worker.started_ms),
        last_poll=instant(worker.polled_ms),
        polls=worker.polls,
        in_flight=worker.in_flight,
        slots=worker.slots,
        memory_bytes=worker.rss_bytes,
        tags=dict(worker.tags),
        queues=list(worker.queues),
        store_error=worker.store_error,
        spool_waiting=worker.spool_waiting,
        spool_dropped=worker.spool_dropped,
    )


def _board(overview: Overview) -> HealthBoard:
    return HealthBoard(
        targets=overview.targets,
        waiting=overview.due,
        in_flight=overview.in_flight,
        not_started=overview.unstarted,
        parked=overview.parked,
        held=overview.held,
        long_overdue=overview.long_overdue,
        states={state.value: number for state, number in overview.states.items()},
        dark_sites=sorted(overview.dark),
    )


def _sinks(overall: OverallHealth) -> HealthSinks:
    workers = overall.overview.workers
    return HealthSinks(
        names=list(overall.sinks),
        spool_waiting=sum(worker.spool_waiting for worker in workers),
        spool_dropped=sum(worker.spool_dropped for worker in workers),
        by_name=sinks_json.summary(overall.overview),
    )


def _letters(overall: OverallHealth) -> HealthLetters:
    by_reason = overall.overview.dead_letters
    return HealthLetters(
        count=sum(by_reason.values()),
        by_reason=dict(by_reason),
        newest=[_letter(each) for each in overall.newest_letters],
    )


def _letter(named: Named) -> HealthLetter:
    letter = named.letter
    return HealthLetter(
        key=f"{named.device}/{named.target}",
        type=named.collector,
        site=named.site,
        reason=letter.reason.value if letter.reason else "",
        error_code=letter.error_code,
        message=formatting.visible(letter.message),
        parked=instant(letter.parked_ms),
        next_retry=instant(letter.next_ms),
        attempts=letter.attempts,
    )


def _staleness(overall: OverallHealth) -> HealthStaleness:
    never, minutes, hour, day = overall.stale_counts
    return HealthStaleness(
        never_good=never,
        older_than_5_min=minutes,
        older_than_1_hour=hour,
        older_than_1_day=day,
        stalest=[health_instances.stale(each) for each in overall.stalest],
    )
