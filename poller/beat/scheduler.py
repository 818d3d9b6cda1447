"""The scheduler of `celery beat`: RedBeat's, with polls claimed from the board in its tick.

A tick never raises and never claims without leadership. RedBeat's lock is the leadership (see
leadership.py); RedBeat's entries hold jobs and periodic tasks, never targets.
"""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

import redis
from celery.signals import beat_init
from kombu.exceptions import KombuError
from redbeat.schedulers import acquire_distributed_beat_lock

from poller import bootstrap, errors, wakeups
from poller.beat import node_name
from poller.beat.alerts.alert_keeper import AlertKeeper
from poller.beat.alerts.rule_file_watch import RuleFileWatch
from poller.beat.alerts.telling.dead_man_switch import DeadManSwitch
from poller.beat.alerts.telling.notifier import Notifier
from poller.beat.catch_up import CatchUp
from poller.beat.clock_steps import ClockSteps
from poller.beat.dispatch import Dispatcher
from poller.beat.event_recorder import EventRecorder
from poller.beat.jobs.due_entries import DueEntries
from poller.beat.jobs.job_clock import JobClock
from poller.beat.jobs.job_thread import JobThread, Tick
from poller.beat.jobs.plain_entries import PlainEntries
from poller.beat.jobs.standby_watch import StandbyWatch
from poller.beat.leadership import Leader
from poller.beat.round_opening import RoundOpening
from poller.beat.routing.batch_router import BatchRouter
from poller.beat.routing.session_hosts import SessionHosts
from poller.beat.site_outages import SiteOutages
from poller.beat.sql_thread import SqlThread
from poller.domain.record.overview import Worker
from poller.domain.scheduling import capacity
from poller.metering import process_metrics
from poller.observability import logs
from poller.state import redis_client, wrong_types
from poller.state.board.board_values import NotLeader
from poller.state.cluster import beat_registry, worker_registry
from poller.state.cluster.entry_records import EntryRecords
from poller.state.cluster.round_survey import Survey
from poller.state.publish_errors import broker_errors

log = logs.get(__name__)

# RedBeat would block here until it has the lock; a standby must still answer pings and stop.
beat_init.disconnect(acquire_distributed_beat_lock)

#: Pause of a standby, and after a tick that failed, before it tries to lead again.
STANDBY_S = 0.25
#: Celery's entry for result backends. We have none, and earlier releases stored it.
BACKEND_CLEANUP = "celery.backend_cleanup"
#: RedBeat and kombu make up to sixteen round trips in one step, which may take this long.
LIBRARY_STEP_S = 15.0
#: The longest wait for Redis at the end. A lock that was not given back runs out by itself.
CLOSE_S = 2.0
#: Failures of Redis and the broker: the next tick tries again.
STORE_FAILURES = (errors.StoreError, redis.RedisError, KombuError, OSError)


class PollScheduler(PlainEntries):
    """One beat process: a leader that dispatches, or a standby."""

    def __init__(self, app: Any, **kwargs: Any) -> None:
        services = bootstrap.services()
        app.redbeat_redis = services.redis
        super().__init__(app, **kwargs)
        self.lock_key = None  # RedBeat's tick must neither extend the lock nor fail without it

        settings = services.settings
        self._services = services
        self._settings = settings
        self._board = services.board
        self._stopping = threading.Event()
        self._wakeup = threading.Event()
        self._closed = False

        self._events = EventRecorder(services, self._stopping)
        self._leader = Leader(
            services.leadership,
            settings.leader_renew_s,
            settings.leader_election,
            self._events,
        )
        hosts = SessionHosts()
        self._sql = SqlThread(services, self._leader, hosts, self._events, self._stopping)
        self._sites = SiteOutages(services, self._leader, self._stopping, self._events)
        self._rule_files = RuleFileWatch(services, self._leader, self._stopping, self._events)
        self._notifier = Notifier(services, self._leader, self._stopping, self._events)
        self._alerts = AlertKeeper(services, self._leader, self._stopping, self._notifier.wake)
        self._dead_man_switch = DeadManSwitch(services, self._leader, self._stopping)
        self._router = BatchRouter(services, hosts)
        self._dispatcher = Dispatcher(
            services.board, settings, self._router, self._leader.made_progress
        )
        self._catch_up = CatchUp(services.board, self._leader, settings)
        self._job_clock = JobClock()
        self._records = EntryRecords(services.redis, services.keys)
        self._entries = DueEntries(app, self._records, self._job_clock, services.leadership.name)
        tick = Tick(self._wakeup.set, lambda: self._workers_unsure, self._repair_wrong_type)
        self._jobs = JobThread(
            app,
            services,
            self._leader,
            self._job_clock,
            self._entries,
            self._events,
            self._stopping,
            tick,
        )
        self._standby = StandbyWatch(self._records, services.leadership.name)
        self._opening = RoundOpening(
            services,
            app.redbeat_conf.schedule_key,
            self._leader,
            self._router,
            self._sql,
            self._events,
        )

        self._clock = ClockSteps()
        self._step_ms = 0  # step of the clock that is not dealt with yet
        self._term = 0  # the leader's term that `_take_over` prepared
        self._capacities: dict[str, int] = {}  # of the last tick
        self._is_connected = False  # the producer has been connected once
        self._dispatched_mono = 0.0
        self._workers_unsure_until_mono = 0.0
        if not kwargs.get("lazy"):
            self._start_threads()

    def _start_threads(self) -> None:
        self._leader.start()
        self._sql.start()
        self._jobs.start()
        self._sites.start()
        self._alerts.start()
        self._rule_files.start()
        self._notifier.start()
        self._dead_man_switch.start()
        self._events.start(self._leader)
        wakeups.listen(
            self._services.redis, self._services.keys.wake, self._on_wakeup, self._stopping
        )

    def setup_schedule(self) -> None:
        """Do nothing at start: a standby would overwrite the leader's entries. See `_take_over`."""

    def tick(self, *_: Any, **__: Any) -> float:
        """Lead or stand by once, then pause until the next tick or a wake-up.

        Returns 0, so that Celery calls the next tick at once.
        """
        try:
            pause_s = self._lead_or_stand_by()
        except NotLeader:
            self._leader.step_down("the board does not know us as its leader")
            pause_s = 0.0
        except STORE_FAILURES as error:
            process_metrics.tick_failures.add()
            log.error("tick_failed", error=str(error), kind=type(error).__name__)
            self._leader.failed_tick()
            self._repair_wrong_type(error)
            pause_s = STANDBY_S
        except Exception:  # door: Celery's loop, which ends the process at an exception
            process_metrics.tick_failures.add()
            log.exception("tick_broke")
            self._leader.failed_tick()
            pause_s = self._settings.tick_s

        if pause_s > 0 and not self._stopping.is_set():
            self._wakeup.wait(pause_s)
        self._wakeup.clear()
        return 0

    def _lead_or_stand_by(self) -> float:
        """Returns the pause until the next tick, in seconds."""
        leads = self._leader.leads or self._leader.try_to_lead()
        started_mono = time.monotonic()
        if not leads:
            now_ms = self._board.now_ms()
            self._step_ms += self._clock.check(now_ms, time.monotonic())
            self._leader.stand_by(now_ms)
            self._standby.check(now_ms)
            self._connect_producer()
            return STANDBY_S

        pause_s = self._lead_once()
        elapsed_s = time.monotonic() - started_mono
        process_metrics.tick_seconds.observe(elapsed_s)
        return min(max(0.0, pause_s - elapsed_s), self._entries.pause_s())

    def _lead_once(self) -> float:
        """The work of a leader in one tick. Returns the time until the next one, in seconds.

        A usual tick makes three round trips: survey with housekeeping, claim, publication.
        """
        survey = self._survey()
        if self._term != self._leader.terms:
            self._take_over(survey.now_ms)
        if self._step_ms:
            self._follow_clock_step(survey.now_ms)
        self._opening.follow(survey, self._workers_unsure)
        self._run_due_entries(survey.entry_s)
        pause_s = self._dispatch_due(survey.workers)
        self._leader.completed_tick()
        return pause_s

    def _survey(self) -> Survey:
        is_prepared = self._term == self._leader.terms
        believed_ms = self._clock.now_ms(time.monotonic()) if is_prepared else None
        survey = self._opening.survey(believed_ms)
        self._step_ms += self._clock.check(survey.now_ms, survey.read_mono)
        return survey

    def _take_over(self, now_ms: int) -> None:
        """Start a term: drop cached state, catch up after downtime, write RedBeat's entries."""
        self._dispatcher.forget()
        self._opening.forget()
        self._sql.run_soon()
        self._jobs.run_soon()

        event = self._catch_up.after_takeover(now_ms)
        if event:
            self._events.record(event)
        self._leader.allow(LIBRARY_STEP_S)
        self._connect_producer()
        self._leader.allow(LIBRARY_STEP_S)
        try:
            self._records.forget(BACKEND_CLEANUP)
            super().setup_schedule()
        except Exception:  # door: RedBeat's entries, which another program may have damaged
            log.exception("entries_not_set_up")
        self._leader.made_progress()
        self._term = self._leader.terms

    def _follow_clock_step(self, now_ms: int) -> None:
        """Correct the board. Until all heartbeats are renewed, no worker counts as lost."""
        event = self._catch_up.after_clock_step(now_ms, self._step_ms)
        self._events.record(event)
        self._step_ms = 0

        unsure_s = worker_registry.ALL_HEARTBEATS_RENEWED_S
        self._workers_unsure_until_mono = time.monotonic() + unsure_s

    def _connect_producer(self) -> None:
        """Connect to the broker before the first batch: it takes sixteen round trips."""
        if self._is_connected:
            return
        try:
            with broker_errors(), self.producer.channel.conn_or_acquire() as client:
                client.ping()
            self._is_connected = True
        except errors.PollerError as error:
            log.warning("broker_not_connected", error=str(error))

    def _run_due_entries(self, entry_s: float | None) -> None:
        """Fire due jobs and RedBeat's other due entries. `entry_s` is the first one's instant."""
        if self._entries.is_due(entry_s):
            self._leader.allow(LIBRARY_STEP_S)
            self._entries.run(self.producer, self.run_plain)
            self._leader.made_progress()

    def _dispatch_due(self, workers: Sequence[Worker]) -> float:
        """Claim and publish until no target is due, the queues are full, or beat stops.

        Returns the time until the next tick, in seconds; a large fleet has shorter ticks.
        """
        started_mono = time.monotonic()
        now_ms = self._clock.now_ms(started_mono)
        capacities = self._queue_capacities(workers, now_ms)
        targets = 0
        while capacities and self._leader.leads and not self._stopping.is_set():
            claim = self._dispatcher.dispatch(
                self._leader.token, self._leader.epoch, self.producer, capacities, now_ms
            )
            targets += claim.targets
            was_full = claim.repeated or claim.targets >= self._settings.claim_limit
            if not claim.token or not was_full:
                break
            self._leader.made_progress()

        targets_per_s = targets / (started_mono - self._dispatched_mono)
        self._dispatched_mono = started_mono
        wanted = capacity.targets_per_tick(
            map(self._router.destinations, capacities), self._settings.batch_size
        )
        return capacity.pause_s(self._settings.tick_s, targets_per_s, wanted)

    def _queue_capacities(self, workers: Sequence[Worker], now_ms: int) -> dict[str, int]:
        """How many batches may wait in each queue that a living worker serves."""
        registered = worker_registry.not_superseded(workers)
        living = [worker for worker in registered if worker_registry.is_alive(worker, now_ms)]
        needs_addresses = self._router.refresh(living, now_ms)
        if needs_addresses:
            self._sql.run_soon()
        batch_sizes = capacity.batch_sizes(living, self._settings.batch_size)
        self._dispatcher.set_batch_sizes(batch_sizes)

        capacities = capacity.batch_limits(living, self._settings.max_queue)
        if self._workers_unsure:
            capacities = {**self._capacities, **capacities}
        newly_served = capacities.keys() - self._capacities.keys()
        if newly_served:
            # Targets that waited for a worker are spread, unless they fit into one batch.
            one_batch = self._settings.batch_size
            self._catch_up.spread(newly_served, now_ms, unless_at_most=one_batch)
        self._capacities = capacities
        return capacities

    @property
    def _workers_unsure(self) -> bool:
        """After a step of the clock the heartbeats say nothing, until all are renewed."""
        return time.monotonic() < self._workers_unsure_until_mono

    def _on_wakeup(self, reason: str) -> None:
        if reason == wakeups.RESUBSCRIBED:
            gc.collect()  # lost connections are cycles: their files stay open until a collection
        if reason in ("inventory", wakeups.RESUBSCRIBED):
            self._sql.run_soon()
        if reason in ("jobs", "worker", wakeups.RESUBSCRIBED):
            self._jobs.run_soon()
        if reason in ("rules", wakeups.RESUBSCRIBED):
            self._alerts.look_soon()
        self._wakeup.set()

    def _repair_wrong_type(self, error: Exception) -> None:
        """Set aside a key of a wrong Redis type, which would fail every tick from now on."""
        if "WRONGTYPE" not in str(error):
            return
        suffix = f"damaged-{time.time_ns()}"
        try:
            moved = wrong_types.set_aside(self._services.redis, self._services.keys, suffix)
        except STORE_FAILURES as failure:
            log.error("wrong_types_not_set_aside", error=str(failure))
            return
        log.error("wrong_types_set_aside", keys=moved)
        self._sql.run_soon()
        if moved:
            self._jobs.run_soon()

    def stop(self, service: Any) -> None:
        """End after the running tick: an exception in its middle would strand a claim."""
        self._stopping.set()
        self._wakeup.set()
        service.stop()

    def close(self) -> None:
        """Hand over the leadership and publish the last events. Celery may call this twice."""
        if not self._closed:
            self._closed = True
            self._stopping.set()
            closing = threading.Thread(target=self._hand_over, name="closing", daemon=True)
            closing.start()
            closing.join(CLOSE_S)
            super().close()

    def _hand_over(self) -> None:
        self._leader.stop()
        self._events.close()
        try:
            beat_registry.leave(self._services.redis, self._services.keys, self._leader.name)
        except errors.StoreError as error:
            log.warning("beat_not_deregistered", error=str(error))

    def _ensure_connected(self) -> Any:
        """The connection of the producer, which connects at its first use.

        Celery would wait here for the broker for ever.
        """
        return self.connection


@beat_init.connect
def _install_signal_handlers(sender: Any, **_: Any) -> None:
    """Stop at the end of a tick. Celery's own handler raises in the middle of one."""
    scheduler = sender.scheduler
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not isinstance(scheduler, PollScheduler) or not in_main_thread:
        return

    def stop(*_: Any) -> None:
        scheduler.stop(sender)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


@beat_init.connect
def _name_node(sender: Any, **_: Any) -> None:
    server = redis_client.where(bootstrap.services().redis)
    node_name.name_beat(sender, server)
