"""The parts that all batches of a worker process share, and how they are made."""

from __future__ import annotations

from dataclasses import dataclass

from poller.bootstrap import Services
from poller.collectors.sessions import Sessions
from poller.db.bounded_reads import BoundedReads
from poller.settings import policies
from poller.workers.alerts.poll_judge import PollJudge
from poller.workers.alerts.rule_cache import RuleCache
from poller.workers.alerts.stored_before import StoredBefore
from poller.workers.batch.capacity_lending import CapacityLending
from poller.workers.batch.cold_start import ColdStartLimit
from poller.workers.batch.credential_cache import CredentialCache
from poller.workers.batch.event_loop import PollLoop
from poller.workers.batch.retries import Retries
from poller.workers.batch.retrying_board import RetryingBoard
from poller.workers.batch.running_batches import RunningBatches
from poller.workers.batch.target_cache import TargetCache
from poller.workers.batch.verdict import Judge
from poller.workers.ends.known_shapes import KnownShapes
from poller.workers.ends.overdue_sweep import OverdueSweep
from poller.workers.ends.sent_readings import SentReadings
from poller.workers.ends.series_ender import SeriesEnder
from poller.workers.ends.target_labels import TargetLabels
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.collector_incidents import CollectorIncidents
from poller.workers.guard.collector_threads import CollectorThreads, ThreadLimits
from poller.workers.guard.consumer_watchdog import StallEvents
from poller.workers.guard.isolation import Isolation
from poller.workers.guard.loop_watchdog import LoopWatchdog
from poller.workers.inventory.inventory_copy import InventoryCopy
from poller.workers.results.writers import Writers


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerParts:
    """Parts that all batches of a worker process share."""

    runner: str
    services: Services
    board: RetryingBoard
    running: RunningBatches
    cold_start: ColdStartLimit
    lending: CapacityLending
    reads: BoundedReads
    copy: InventoryCopy
    targets: TargetCache
    credentials: CredentialCache
    poll_loop: PollLoop
    black_box: BlackBox
    isolation: Isolation
    sessions: Sessions
    writers: Writers
    ender: SeriesEnder | None  # None: no sink takes ends of series
    retries: Retries
    judge: Judge
    rule_judge: PollJudge
    margin_ms: int
    queue_wait_ms: int


def make_parts(services: Services, runner: str, is_watched: bool) -> PollerParts:
    """Make the parts in the order in which they need each other."""
    settings = services.settings
    running = RunningBatches()
    black_box = BlackBox(settings.home, runner, services.registry.distributions)
    watchdog = None
    if is_watched:
        watchdog = LoopWatchdog(black_box, StallEvents(services, runner))
        black_box.enable_faulthandler()
    incidents = CollectorIncidents()
    limits = ThreadLimits(settings.blocking_threads, settings.stuck_threads)
    threads = CollectorThreads(limits, black_box.thread_marks, black_box.collector_of, incidents)
    poll_loop = PollLoop(black_box, threads, watchdog)
    isolation = Isolation(services, poll_loop, incidents)
    reads = BoundedReads()
    copy = InventoryCopy(services, running.stopping)
    retries = Retries(settings)
    writers = Writers(services.engine, services.sinks, settings, runner)
    return PollerParts(
        runner=runner,
        services=services,
        board=RetryingBoard(services.board, running.draining),
        running=running,
        cold_start=ColdStartLimit(running.draining),
        lending=CapacityLending(),
        reads=reads,
        copy=copy,
        targets=TargetCache(
            services.engine,
            services.registry,
            settings.target_cache,
            settings.stale_limit_s,
            reads,
            copy,
        ),
        credentials=CredentialCache(services, reads, copy),
        poll_loop=poll_loop,
        black_box=black_box,
        isolation=isolation,
        sessions=Sessions(policies.session_rules(settings)),
        writers=writers,
        ender=_make_ender(services, writers, reads, running) if writers.take_ends else None,
        retries=retries,
        judge=Judge(settings, services.staleness, retries),
        rule_judge=PollJudge(
            RuleCache(services.engine, reads), StoredBefore(services.engine, reads)
        ),
        margin_ms=round(settings.lease_margin_s * 1000),
        queue_wait_ms=round(settings.queue_wait_s * 1000),
    )


def _make_ender(
    services: Services, writers: Writers, reads: BoundedReads, running: RunningBatches
) -> SeriesEnder:
    sent = SentReadings()
    labels = TargetLabels(services.sinks)
    sweep = OverdueSweep(sent, labels, services.board, services.engine, writers, running.stopping)
    return SeriesEnder(KnownShapes(services.engine, reads), sent, labels, sweep)
