"""Do we lead right now? Renewal runs beside the ticks, and stops when ticks stop: a leader that does not
dispatch must lose its place. All judgements use this process's monotonic clock, so a process that was
paused knows that its time is over before it talks to anybody.
"""

from __future__ import annotations

import threading
import time

from poller import errors, event_publisher
from poller.domain.record.event_kinds import Event, Kind
from poller.observability import logs
from poller.state.cluster.leader_lock import Leadership

log = logs.get(__name__)

#: A leader whose ticks do not complete for this long stops renewing.
STUCK_AFTER_S = 3.0


class Leader:
    def __init__(
        self,
        leadership: Leadership,
        renew_s: float,
        election: bool = True,
        note: event_publisher.Note = event_publisher.only_log,
    ) -> None:
        self.epoch = 0
        self.reigns = (
            0  # how often we took the lead: between two of them anything may have happened
        )
        self._leadership = leadership
        self._renew_s = renew_s
        self._election = election
        self._note = note
        self._reigning = False  # said to lead, and not yet said to have stopped
        self._until = 0.0  # monotonic: our own, cautious idea of the lock's end
        self._ticked = time.monotonic()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._keep_renewing, name="leader-renewal", daemon=True
        )

    @property
    def token(self) -> str:
        """What board scripts check; empty when there is no election."""
        return self._leadership.token if self._election else ""

    @property
    def leads(self) -> bool:
        return time.monotonic() < self._until

    def start(self) -> None:
        if not self._election:
            log.warning(
                "leader_election_off", meaning="a second beat would schedule everything twice"
            )
        self._thread.start()

    def ticked(self) -> None:
        """A tick completed: renewal may go on."""
        self._ticked = time.monotonic()

    def try_to_lead(self) -> bool:
        """True if we lead now. Raises StoreUnavailable when Redis does not answer."""
        asked = time.monotonic()
        epoch, fresh = self._leadership.take()
        if not epoch and self._election:
            self.step_down("another beat leads")
            return False
        if fresh or epoch != self.epoch or not self.reigns:
            self.step_down("the lock ran out")
            self._begin(epoch)
        self._until = asked + self._leadership.lock_ms / 1000 if self._election else float("inf")
        self.ticked()
        return True

    def _begin(self, epoch: int) -> None:
        self.epoch = epoch
        self.reigns += 1
        self._reigning = True
        self._tell(Kind.LEADERSHIP_TAKEN, f"{self._leadership.name} leads, epoch {epoch}")

    def stop(self) -> None:
        """Hand over at once."""
        self._stopping.set()
        was_leading, self._until, self._reigning = self.leads, 0.0, False
        try:
            self._leadership.leave()
            if was_leading and self._leadership.resign():
                self._tell(
                    Kind.LEADERSHIP_HANDED_OVER, f"{self._leadership.name} stopped and handed over"
                )
        except errors.StoreError as error:
            log.warning("leadership_not_handed_over", error=str(error))

    def step_down(self, reason: str) -> None:
        """We do not lead any more, whatever we thought."""
        self._until = 0.0
        if self._reigning:
            self._reigning = False
            message = f"{self._leadership.name} does not lead any more: {reason}"
            self._tell(Kind.LEADERSHIP_LOST, message, reason=reason)

    def _tell(self, kind: Kind, message: str, **facts: str) -> None:
        facts |= {"beat": self._leadership.name}
        self._note(
            Event(event_publisher.now_ms(), kind, message, data={"epoch": self.epoch, **facts})
        )

    def stand_by(self, now_ms: int) -> None:
        self._leadership.stand_by(now_ms)

    def _keep_renewing(self) -> None:
        while not self._stopping.wait(self._renew_s):
            if self.leads and self._election:
                try:
                    self._renew()
                except Exception:
                    log.exception("renewal_broke")

    def _renew(self) -> None:
        asked = time.monotonic()
        if asked - self._ticked > STUCK_AFTER_S:
            log.error(
                "renewal_suspended",
                reason="no tick completed",
                seconds=round(asked - self._ticked, 1),
            )
            return
        try:
            if self._leadership.renew():
                self._until = asked + self._leadership.lock_ms / 1000
            else:
                self.step_down("the lock is not ours any more")
        except errors.StoreError as error:
            log.warning(
                "renewal_failed", error=str(error)
            )  # leadership ends by itself when it goes on
