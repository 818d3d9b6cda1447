"""The leader's work with SQL, in a thread of its own: a database that is slow, silent or gone stops no tick.

What it moves on the board carries the leader's token like everything else, so it is refused once we do not lead.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from poller import errors, event_publisher
from poller.beat import deadletter_sync, queue_upkeep, reconcile
from poller.beat.board_audit import Audit
from poller.beat.leadership import Leader
from poller.beat.session_hosts import Hosts
from poller.bootstrap import Services
from poller.db.record import dead_letter_rows, run_ledger
from poller.domain.record.run import Run
from poller.observability import logs
from poller.state.board.board_maintenance import BoardMaintenance
from poller.state.board.board_values import NotLeader

log = logs.get(__name__)

#: After a failure we look again this soon, and not at every note.
TRY_AGAIN_S = 2.0
#: Lost leases that wait to be recorded; beyond that the oldest are dropped, and said to be.
MOST_WAITING = 100_000
#: How often the dead letters are compared with the board.
LETTERS_EVERY_S = 300.0


class Bookkeeper:
    def __init__(
        self,
        services: Services,
        leader: Leader,
        stopping: threading.Event,
        note: event_publisher.Note = event_publisher.only_log,
        hosts: Hosts | None = None,
    ) -> None:
        self._services = services
        self._hosts = hosts or Hosts()
        self._note = note
        self._leader = leader
        self._stopping = stopping
        self._audit = Audit(services.board, services.engine, note)
        self._maintenance = BoardMaintenance(services.board)
        self._asked = threading.Event()
        self._lost: deque[Run] = deque()
        self._letters_at = 0.0
        self._said = ""  # what fails at the moment
        self._thread = threading.Thread(target=self._keep, name="bookkeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def reconcile_soon(self) -> None:
        """The inventory may have changed, or the board may be another one."""
        self._asked.set()

    def record_lost(self, lost: Sequence[Run]) -> None:
        """Have runs closed in the ledger whose leases ran out."""
        self._lost.extend(lost)
        if len(self._lost) > MOST_WAITING:
            dropped = [self._lost.popleft() for _ in range(len(self._lost) - MOST_WAITING)]
            log.error("lost_leases_not_recorded", count=len(dropped))
        if lost:
            self._asked.set()

    def _keep(self) -> None:
        while not self._stopping.is_set():
            self._asked.wait(self._services.settings.reconcile_s)
            self._asked.clear()
            try:
                self._work()
                self._trouble("")
            except NotLeader:
                continue  # the ticks notice as well, and ask again when we lead
            except errors.StoreError as error:
                self._trouble(str(error))
                self._stopping.wait(TRY_AGAIN_S)
                self._asked.set()
            except Exception:
                log.exception("bookkeeping_broke")
                self._stopping.wait(TRY_AGAIN_S)

    def _trouble(self, error: str) -> None:
        """Said when it begins, changes or ends, and not every two seconds."""
        if error and error != self._said:
            log.error("bookkeeping_failed", error=error)
        elif self._said and not error:
            log.info("bookkeeping_goes_on")
        self._said = error

    def _work(self) -> None:
        if self._leader.leads:
            board, engine = self._services.board, self._services.engine
            if reconcile.reconcile(board, engine, self._leader.token, board.now_ms(), self._note):
                queue_upkeep.agree(self._maintenance, self._leader.token)
                dead_letter_rows.forget_absent(engine)
            self._hosts.refresh(engine)
            self._audit.look(board.now_ms())
            if time.monotonic() >= self._letters_at:
                deadletter_sync.agree(board, engine)
                self._letters_at = time.monotonic() + LETTERS_EVERY_S
        waiting = list(self._lost)
        if waiting:
            run_ledger.close_lost(self._services.engine, waiting)
            for _ in waiting:
                self._lost.popleft()
