"""The scheduler: RedBeat's, with device polls claimed from the board in its tick.

A tick never raises and never runs without leadership. RedBeat's lock is the leadership (see
leadership.py); its entries carry jobs and control work, never devices.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import redis
from celery.signals import beat_init
from kombu.exceptions import KombuError
from redbeat.schedulers import RedBeatScheduler, acquire_distributed_beat_lock

from poller import bootstrap, errors, wakeups
from poller.beat import catch_up, queue_upkeep, reap
from poller.beat.clock_steps import Clock
from poller.beat.dispatch import Dispatcher
from poller.beat.event_recorder import Recorder
from poller.beat.leadership import Leader
from poller.beat.session_affinity import Homes
from poller.beat.session_hosts import Hosts
from poller.beat.site_outages import SiteWatch
from poller.beat.sql_thread import Bookkeeper
from poller.beat.worker_watch import Attendance
from poller.domain.scheduling import capacity
from poller.observability import logs
from poller.state.board import wrong_types
from poller.state.board.board_maintenance import BoardMaintenance
from poller.state.board.board_values import NotLeader
from poller.state.cluster import worker_registry

log = logs.get(__name__)

# RedBeat would block here until it has the lock; a standby must stay able to answer and to stop.
beat_init.disconnect(acquire_distributed_beat_lock)

STANDBY_S = 0.25
REAP_EVERY_S = 1.0
BROKEN_ENTRIES_S = 5.0
TROUBLE = (errors.StoreError, redis.RedisError, KombuError, OSError)


class PollScheduler(RedBeatScheduler):  # type: ignore[misc]
    def __init__(self, app: Any, **kwargs: Any) -> None:
        self._services = services = bootstrap.services()
        self._settings = services.settings
        self._board = services.board
        self._maintenance = BoardMaintenance(services.board)
        app.redbeat_redis = services.redis
        super().__init__(app, **kwargs)
        self.lock_key = None  # RedBeat's own tick must neither extend the lock nor fail without it
        self._stopping = threading.Event()
        self._recorder = Recorder(services, self._stopping)
        renew_s, election = self._settings.leader_renew_s, self._settings.leader_election
        self._leader = Leader(services.leadership, renew_s, election, self._recorder.note)
        self._clock = Clock()
        self._woken = threading.Event()
        hosts = Hosts()
        self._books = Bookkeeper(services, self._leader, self._stopping, self._recorder.note, hosts)
        self._homes = Homes(services, hosts, self._books.reconcile_soon)
        self._dispatcher = Dispatcher(services.board, self._settings, self._homes)
        self._attendance = Attendance(services, self._recorder.note)
        self._sites = SiteWatch(services, self._leader, self._stopping, self._recorder.note)
        self._reap_at = self._entries_at = self._trust_until = 0.0
        self._polled_at = 0.0  # by the monotonic clock: the last look at what is due
        self._last_rooms: dict[str, int] = {}
        self._step_ms = 0  # by which the clock was set, and nobody dealt with it yet
        self._reign = 0  # the one we are prepared for
        self._closed = False
        if not kwargs.get("lazy"):
            self._leader.start()
            self._books.start()
            self._sites.start()
            self._recorder.start(self._leader)
            wakeups.listen(services.redis, services.keys.wake, self._on_note, self._stopping)

    def setup_schedule(self) -> None:
        """Not at start, when a standby would overwrite the leader's entries: see `_begin_to_lead`."""

    def tick(self, *_: Any, **__: Any) -> float:
        """One round, then a pause that a note can cut short. Returns 0: the pause is over."""
        try:
            pause = self._round()
        except NotLeader:
            self._leader.step_down("the board does not know us as its leader")
            pause = 0.0
        except TROUBLE as error:
            log.error("tick_failed", error=str(error), kind=type(error).__name__)
            self._look_for_wrong_types(error)
            pause = STANDBY_S
        except Exception:
            log.exception("tick_broke")
            pause = self._settings.tick_s
        if not self._stopping.is_set() and pause > 0:
            self._woken.wait(pause)
        self._woken.clear()
        return 0

    def _look_for_wrong_types(self, error: Exception) -> None:
        """A key of another type would fail every tick from now on."""
        if "WRONGTYPE" not in str(error):
            return
        try:
            moved = wrong_types.set_aside(
                self._services.redis, self._services.keys, f"damaged-{time.time_ns()}"
            )
        except TROUBLE as trouble:
            log.error("wrong_types_not_set_aside", error=str(trouble))
            return
        log.error("wrong_types_set_aside", keys=moved)
        self._books.reconcile_soon()

    def stop(self, service: Any) -> None:
        """Finish the tick, then leave: a signal handler that raised here would strand a claim."""
        self._stopping.set()
        self._woken.set()
        service.stop()

    def close(self) -> None:
        """Called by Celery when the service ends, possibly twice."""
        if not self._closed:
            self._closed = True
            self._stopping.set()
            self._leader.stop()
            self._recorder.finish()
            super().close()

    def _round(self) -> float:
        leads = self._leader.leads or self._leader.try_to_lead()
        now_ms, began = self._board.now_ms(), time.monotonic()
        self._step_ms += self._clock.look(now_ms, began)
        if not leads:
            self._leader.stand_by(now_ms)
            return STANDBY_S
        if self._reign != self._leader.reigns:
            self._begin_to_lead(now_ms)
        if self._step_ms:
            known = (self._settings, self._leader.ticked, self._recorder.note)
            catch_up.settle(self._board, self._leader.token, now_ms, self._step_ms, *known)
            self._step_ms = 0
            self._trust_until = began + worker_registry.ALL_HEARTBEATS_RENEWED_S
        self._keep_house(now_ms)
        pause_s = self._poll_due()
        self._leader.ticked()
        return max(0.0, pause_s - (time.monotonic() - began))

    def _begin_to_lead(self, now_ms: int) -> None:
        self._dispatcher.forget()
        self._books.reconcile_soon()
        self._attendance.forget()
        known = (self._settings, self._leader.ticked, self._recorder.note)
        catch_up.resume(self._board, self._leader.token, now_ms, *known)
        try:
            super().setup_schedule()
        except Exception:  # an entry that somebody else wrote must not stop the polling
            log.exception("entries_not_set_up")
        self._reign = self._leader.reigns

    def _poll_due(self) -> float:
        """Claim and publish until nothing is due, there is no room, or somebody wants us to stop.

        Returns in how many seconds to do that again.
        """
        clock, targets = time.monotonic(), 0
        now_ms = self._clock.now_ms(clock)
        rooms = self._rooms(now_ms)
        while rooms and self._leader.leads and not self._stopping.is_set():
            claim = self._dispatcher.dispatch(
                self._leader.token, self._leader.epoch, self.producer, rooms, now_ms
            )
            targets += claim.targets
            if not claim.token or (
                not claim.repeated and claim.targets < self._settings.claim_limit
            ):
                break
            self._leader.ticked()
        rate, self._polled_at = targets / (clock - self._polled_at), clock
        return capacity.pause_s(self._settings.tick_s, rate, len(rooms), self._settings.batch_size)

    def _rooms(self, now_ms: int) -> dict[str, int]:
        """How many batches may wait in each queue; after a step of the clock the workers need a moment to be seen."""
        living = worker_registry.living(self._services.redis, self._services.keys, now_ms)
        self._homes.look(living, now_ms)
        rooms = capacity.batch_limits(living, self._settings.max_queue)
        self._dispatcher.resize(capacity.batch_sizes(living, self._settings.batch_size))
        if time.monotonic() < self._trust_until:
            rooms = {**self._last_rooms, **rooms}
        found = rooms.keys() - self._last_rooms.keys()
        if found:  # nobody served them for a while: what waited there comes one after the other
            few = self._settings.batch_size
            catch_up.spread(
                self._board, self._leader.token, now_ms, found, self._leader.ticked, at_once=few
            )
        self._last_rooms = rooms
        return rooms

    def _keep_house(self, now_ms: int) -> None:
        clock = time.monotonic()
        if clock >= self._reap_at:
            self._reap_at = clock + REAP_EVERY_S
            self._books.record_lost(reap.reap(self._board, self._leader.token, now_ms))
            self._board.unpark(self._leader.token, now_ms)
            queue_upkeep.agree(self._maintenance, self._leader.token)
            if self._board.version() is None:  # flushed, and nobody told us
                self._books.reconcile_soon()
                self._homes.forget()
            if clock >= self._trust_until:
                self._attendance.look(now_ms)
            forgotten = worker_registry.forget_lost(
                self._services.redis, self._services.keys, now_ms
            )
            if forgotten:
                log.warning("lost_workers_forgotten", names=forgotten)
        if clock >= self._entries_at:
            self._entries_at = clock + self._run_entries()

    def _run_entries(self) -> float:
        """RedBeat's own: jobs and control work. One that cannot be read must not stop the polling."""
        try:
            return float(super().tick())
        except TROUBLE:
            raise
        except Exception:
            log.exception("entries_broke")
            return BROKEN_ENTRIES_S

    def _on_note(self, note: str) -> None:
        if note in ("inventory", wakeups.RESUBSCRIBED):
            self._books.reconcile_soon()
        self._woken.set()


@beat_init.connect
def _stop_softly(sender: Any, **_: Any) -> None:
    """Celery's own handler raises in the middle of a tick; ours only sets flags."""
    scheduler = sender.scheduler
    if (
        isinstance(scheduler, PollScheduler)
        and threading.current_thread() is threading.main_thread()
    ):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: scheduler.stop(sender))
