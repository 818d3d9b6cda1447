"""The first round trip of a leader's tick: it surveys the cluster and keeps the house.

Once a second the survey takes the housekeeping along: lost leases, dead letters due for a retry,
queues. Then the leader also looks for workers that came and went. Once an hour it copies the
counters of polls.
"""

from __future__ import annotations

import time

from poller.beat import reap, sql_thread
from poller.beat.clock_steps import STEP_MS
from poller.beat.leadership import Leader
from poller.beat.routing.batch_router import BatchRouter
from poller.beat.sql_thread import SqlThread
from poller.beat.worker_watch import WorkerWatch
from poller.bootstrap import Services
from poller.event_publisher import EventLog
from poller.observability import logs
from poller.state.board.housekeeping import Housekeeping, Kept
from poller.state.cluster import worker_registry
from poller.state.cluster.beat_registry import BeatInstance
from poller.state.cluster.round_survey import Survey, Surveyor
from poller.state.figures import hourly_totals

log = logs.get(__name__)

HOUSEKEEPING_S = 1.0


class RoundOpening:
    """Every method raises StoreError, NotLeader."""

    def __init__(
        self,
        services: Services,
        schedule_key: str,
        leader: Leader,
        router: BatchRouter,
        sql: SqlThread,
        events: EventLog,
    ) -> None:
        self._services = services
        self._leader = leader
        self._router = router
        self._sql = sql
        self._events = events
        self._surveyor = Surveyor(services.board, schedule_key)
        self._worker_watch = WorkerWatch(services)
        self._housekeeping_mono = 0.0  # when the next one is due
        self._entries = 0  # of RedBeat, as last seen
        self._totals_hour = 0  # the last hour whose counters were copied

    def forget(self) -> None:
        """Start a new term: another leader may have led."""
        self._worker_watch.forget()

    def survey(self, believed_ms: int | None) -> Survey:
        """Read all that a tick needs.

        `believed_ms` is the board's clock as this process knows it; None for a leader that has not
        prepared its term and keeps no house yet.
        """
        now_mono = time.monotonic()
        housekeeping = beat = None
        if believed_ms is not None and now_mono >= self._housekeeping_mono:
            self._housekeeping_mono = now_mono + HOUSEKEEPING_S
            scripts = self._services.board.scripts
            housekeeping = Housekeeping(scripts, self._leader.token, believed_ms, STEP_MS)
            beat = self._beat(believed_ms)

        survey = self._surveyor.survey(housekeeping, beat)
        self._entries = survey.entries
        self._leader.made_progress()
        self._router.use_survey(survey.own_depths)
        return survey

    def _beat(self, now_ms: int) -> BeatInstance:
        return BeatInstance(
            self._leader.name,
            leads=True,
            election=self._leader.has_election,
            jobs=self._entries,
            seen_ms=now_ms,
            process=self._leader.process,
        )

    def follow(self, survey: Survey, workers_unsure: bool) -> None:
        """Act on what the housekeeping found, if it was done. While `workers_unsure`, no worker
        counts as lost.
        """
        if survey.kept is None:
            return
        self._follow_housekeeping(survey.kept, survey.now_ms)
        if survey.is_empty:  # Redis was emptied
            self._sql.run_soon()
            self._router.forget()

        if not workers_unsure:
            workers = worker_registry.not_superseded(survey.workers)
            for event in self._worker_watch.check(workers, survey.now_ms):
                self._events.record(event)
        forgotten = worker_registry.forget_lost(
            self._services.redis, self._services.keys, survey.workers, survey.now_ms
        )
        if forgotten:
            log.warning("lost_workers_forgotten", names=forgotten)
        self._keep_totals(survey.now_ms)

    def _keep_totals(self, now_ms: int) -> None:
        hour = now_ms // hourly_totals.HOUR_MS
        if hour != self._totals_hour:
            hourly_totals.keep(self._services.redis, self._services.keys, now_ms)
            self._totals_hour = hour

    def _follow_housekeeping(self, kept: Kept, now_ms: int) -> None:
        board = self._services.board
        lost_runs = reap.reap_rest(board, self._leader.token, kept.reaped, now_ms)
        self._sql.close_lost(lost_runs)
        if kept.failure:
            raise kept.failure
        sql_thread.log_queues(kept.queues)
