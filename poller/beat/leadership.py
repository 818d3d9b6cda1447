"""Leadership of this process: takes the lock, renews it beside the ticks, gives it back.

A leader whose ticks make no progress stops renewing, so that a standby takes over. All decisions
use the monotonic clock of this process: a process that was paused knows at once that it lost.
"""

from __future__ import annotations

import threading
import time

from poller import errors, event_publisher
from poller.domain.record.event_kinds import Event, Kind
from poller.event_publisher import EventLog, LogOnly
from poller.metering import process_metrics
from poller.observability import logs
from poller.state.cluster.leader_lock import Leadership

log = logs.get(__name__)

#: A leader without progress for this long stops renewing.
STUCK_AFTER_S = 3.0


class Leader:
    """The leadership of one beat process; `leads` is cautious and never asks Redis."""

    def __init__(
        self,
        leadership: Leadership,
        renew_s: float,
        election: bool = True,
        events: EventLog | None = None,
    ) -> None:
        self.epoch = 0
        #: How often this process took the lead. Between two terms another beat may have led.
        self.terms = 0
        self._leadership = leadership
        self._renew_s = renew_s
        self._election = election
        self._events = events or LogOnly()
        self._announced = False  # a LEADERSHIP_TAKEN event has no counterpart yet
        self._stands_by = False  # and the log says so
        self._leads_until_mono = 0.0
        self._progress_mono = time.monotonic()
        self._has_failed = False  # the last tick failed
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._renew_until_stopped, name="leader-renewal", daemon=True
        )

    @property
    def name(self) -> str:
        """The name of this process for people."""
        return self._leadership.name

    @property
    def process(self) -> str:
        """host:pid, whatever its name."""
        return self._leadership.process

    @property
    def has_election(self) -> bool:
        """False: this process leads without a lock."""
        return self._election

    @property
    def token(self) -> str:
        """The token that board scripts check; "" without election."""
        return self._leadership.token if self._election else ""

    @property
    def leads(self) -> bool:
        """True while the lock is certainly ours."""
        return time.monotonic() < self._leads_until_mono

    def start(self) -> None:
        """Start the renewal thread."""
        if not self._election:
            log.warning(
                "leader_election_off", meaning="a second beat would schedule everything twice"
            )
        self._thread.start()

    def made_progress(self) -> None:
        """Allow the renewal to go on: a step of a tick is complete, most often one round trip.

        After a tick that failed only a whole tick counts: its first steps may always succeed.
        """
        if not self._has_failed:
            self._progress_mono = time.monotonic()

    def completed_tick(self) -> None:
        """Allow the renewal to go on, also after ticks that failed."""
        self._has_failed = False
        self._progress_mono = time.monotonic()

    def failed_tick(self) -> None:
        """Let only a whole tick count as progress from now on."""
        self._has_failed = True
        self._progress_mono = min(self._progress_mono, time.monotonic())  # see `allow`

    def allow(self, seconds: float) -> None:
        """Let the next step take this long: a library makes many round trips in it."""
        if not self._has_failed:
            self._progress_mono = time.monotonic() + seconds

    def try_to_lead(self) -> bool:
        """Take or keep the lock. Returns whether this process leads. Raises StoreUnavailable."""
        requested_mono = time.monotonic()
        epoch, newly_taken = self._leadership.take()
        if not epoch and self._election:
            self.step_down("another beat leads")
            return False

        if newly_taken or epoch != self.epoch or not self.terms:
            self.step_down("the lock ran out")
            self._start_term(epoch)
        self._extend(requested_mono)
        self.completed_tick()
        return True

    def stand_by(self, now_ms: int) -> None:
        """Register this process as a standby; the log says so once."""
        self._leadership.stand_by(now_ms)
        if not self._stands_by:
            self._stands_by = True
            log.info("standing_by", beat=self.name, meaning="another beat leads; this one waits")

    def step_down(self, reason: str) -> None:
        """Stop leading in this process, without giving back the lock."""
        self._leads_until_mono = 0.0
        if self._announced:
            self._announced = False
            process_metrics.leadership.add("lost")
            message = f"{self._leadership.name} does not lead any more: {reason}"
            self._record(Kind.LEADERSHIP_LOST, message, reason=reason)

    def stop(self) -> None:
        """Give back the lock, so that a standby leads at once."""
        self._stopping.set()
        was_leading = self.leads
        self._leads_until_mono = 0.0
        self._announced = False
        try:
            if self._leadership.resign() and was_leading:
                process_metrics.leadership.add("handed_over")
                message = f"{self._leadership.name} stopped and handed over"
                self._record(Kind.LEADERSHIP_HANDED_OVER, message)
        except errors.StoreError as error:
            log.warning("leadership_not_handed_over", error=str(error))

    def _start_term(self, epoch: int) -> None:
        self.epoch = epoch
        self.terms += 1
        self._stands_by = False
        self._announced = True
        process_metrics.leadership.add("taken")
        self._record(Kind.LEADERSHIP_TAKEN, f"{self._leadership.name} leads, epoch {epoch}")

    def _extend(self, requested_mono: float) -> None:
        """Lead until the lock ends, counted from before the request was sent."""
        if self._election:
            self._leads_until_mono = requested_mono + self._leadership.lock_ms / 1000
        else:
            self._leads_until_mono = float("inf")

    def _record(self, kind: Kind, message: str, **facts: str) -> None:
        event = Event(
            at_ms=event_publisher.now_ms(),
            kind=kind,
            message=message,
            data={"epoch": self.epoch, **facts, "beat": self._leadership.name},
        )
        self._events.record(event)

    def _renew_until_stopped(self) -> None:
        while not self._stopping.wait(self._renew_s):
            if self.leads and self._election:
                try:
                    self._renew()
                except Exception:  # door: the end of this thread; it must not die
                    log.exception("renewal_broke")

    def _renew(self) -> None:
        requested_mono = time.monotonic()
        stuck_s = requested_mono - self._progress_mono
        if stuck_s > STUCK_AFTER_S:
            log.error("renewal_suspended", reason="no tick completed", seconds=round(stuck_s, 1))
            return
        try:
            renewed = self._leadership.renew()
        except errors.StoreError as error:
            # If this goes on, `leads` becomes False by itself.
            log.warning("renewal_failed", error=str(error))
            return
        if renewed:
            self._extend(requested_mono)
        else:
            self.step_down("the lock is not ours any more")
