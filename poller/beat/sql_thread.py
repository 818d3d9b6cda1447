"""The leader's work with SQL, in a thread: a slow or absent database delays no tick.

Its moves on the board carry the leader's token and are refused when this process does not lead.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from poller import errors
from poller.beat import deadletter_sync, reconcile
from poller.beat.board_audit import BoardAudit
from poller.beat.leadership import Leader
from poller.beat.routing.session_hosts import SessionHosts
from poller.bootstrap import Services
from poller.db.record import dead_letter_rows, run_ledger
from poller.domain.record.run import Run
from poller.event_publisher import EventLog
from poller.metering import process_metrics
from poller.observability import logs
from poller.state.board import down_devices
from poller.state.board.board_maintenance import BoardMaintenance
from poller.state.board.board_values import NotLeader, QueueChanges

log = logs.get(__name__)

#: Pause after a failure, whatever wakes the thread.
RETRY_S = 2.0
#: Lost runs that may wait for the ledger; beyond that the oldest are dropped and logged.
MAX_LOST_RUNS = 100_000
#: How often the dead letters are compared with the board.
DEADLETTER_SYNC_S = 300.0


class SqlThread:
    """Reconciles the board, audits it, syncs dead letters and closes lost runs."""

    def __init__(
        self,
        services: Services,
        leader: Leader,
        hosts: SessionHosts,
        events: EventLog,
        stopping: threading.Event,
    ) -> None:
        self._services = services
        self._leader = leader
        self._hosts = hosts
        self._events = events
        self._stopping = stopping
        self._audit = BoardAudit(services.board, services.engine)
        self._maintenance = BoardMaintenance(services.board)
        self._wanted = threading.Event()
        self._lost_runs: deque[Run] = deque()
        self._deadletter_sync_mono = 0.0  # when the next sync is due
        self._failure = ""  # the failure that was logged last and is not over
        self._thread = threading.Thread(target=self._run, name="sql", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def run_soon(self) -> None:
        """Run without waiting for `reconcile_s`: the inventory or the board may have changed."""
        self._wanted.set()

    def close_lost(self, lost: Sequence[Run]) -> None:
        """Have lost runs closed in the ledger."""
        if not lost:
            return
        self._lost_runs.extend(lost)
        excess = len(self._lost_runs) - MAX_LOST_RUNS
        if excess > 0:
            for _ in range(excess):
                self._lost_runs.popleft()
            log.error("lost_leases_not_recorded", count=excess)
        self._wanted.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait(self._services.settings.reconcile_s)
            self._wanted.clear()
            try:
                if self._leader.leads:
                    self._do_leader_work()
                self._write_lost_runs()
                self._log_failure("")
            except NotLeader:
                continue  # the tick notices too, and wakes this thread in the next term
            except errors.StoreError as error:
                process_metrics.reconcile_errors.add(type(error).__name__)
                self._log_failure(str(error))
                self._stopping.wait(RETRY_S)
                self._wanted.set()
            except Exception:  # door: the end of this thread; it must not die
                process_metrics.reconcile_errors.add("Bug")
                log.exception("sql_thread_broke")
                self._stopping.wait(RETRY_S)

    def _do_leader_work(self) -> None:
        board = self._services.board
        engine = self._services.engine
        leader = self._leader.token

        with process_metrics.reconcile_seconds.timed():
            reconciled = reconcile.reconcile(board, engine, leader, board.now_ms())
        if reconciled.event:
            self._events.record(reconciled.event)
        if reconciled.changed:
            update_queues(self._maintenance, leader)
            dead_letter_rows.forget_absent(engine)
            down_devices.forget_absent(board, board.now_ms())

        self._hosts.refresh(engine)
        repair = self._audit.check(board.now_ms())
        if repair:
            self._events.record(repair)

        if time.monotonic() >= self._deadletter_sync_mono:
            deadletter_sync.sync(board, engine)
            self._deadletter_sync_mono = time.monotonic() + DEADLETTER_SYNC_S

    def _write_lost_runs(self) -> None:
        lost = list(self._lost_runs)
        if lost:
            run_ledger.close_lost(self._services.engine, lost)
            for _ in lost:
                self._lost_runs.popleft()

    def _log_failure(self, failure: str) -> None:
        """Log a failure when it starts, changes or ends, not at every retry. "" is success."""
        if failure and failure != self._failure:
            log.error("sql_work_failed", error=failure)
        elif self._failure and not failure:
            log.info("sql_work_recovered")
        self._failure = failure


def update_queues(maintenance: BoardMaintenance, leader: str) -> None:
    """Update the list of queues, which wakes the workers. Raises StoreError, NotLeader."""
    log_queues(maintenance.update_queues(leader))


def log_queues(changes: QueueChanges) -> None:
    """Log queues that came and went."""
    if changes.came or changes.went:
        log.info("domains_changed", came=changes.came, went=changes.went)
