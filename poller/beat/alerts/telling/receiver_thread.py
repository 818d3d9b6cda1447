"""Sends the deliveries of one receiver. Each receiver has a thread: a dead one delays no other."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from sqlalchemy.engine import Engine

from poller import errors, plugins
from poller.alerts.receivers import api
from poller.alerts.receivers.registry import MadeReceiver
from poller.beat.leadership import Leader
from poller.db import database_clock
from poller.db.alerts import delivery_rows
from poller.domain.alerts.telling import delivery as ledger
from poller.domain.alerts.telling.delivery import Attempt, Delivery, DeliveryState
from poller.domain.alerts.telling.notice import ToldAlert
from poller.domain.failures import delivery_backoff, outcome
from poller.domain.record.event_kinds import Event, Kind
from poller.event_publisher import EventLog
from poller.metering import process_metrics
from poller.observability import logs

log = logs.get(__name__)

#: Longer than the longest time-out of a built-in receiver. A new leader ends leases of old ones.
LEASE_MS = 150_000
_ANSWER = 500
#: The wait after a failure of SQL.
_RETRY_S = 2.0

#: Returns the alerts that fire and of which this receiver was told.
Firing = Callable[[str], Sequence[ToldAlert]]


class ReceiverThread:
    """The sender of one receiver, while this process leads."""

    def __init__(
        self,
        made: MadeReceiver,
        engine: Engine,
        leader: Leader,
        events: EventLog,
        stopping: threading.Event,
        firing: Firing,
    ) -> None:
        self._made = made
        self._engine = engine
        self._leader = leader
        self._events = events
        self._stopping = stopping
        self._firing = firing
        self._token = ""
        self._failures = 0  # in a row
        self._resend_mono = 0.0
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"receiver-{made.name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self, token: str) -> None:
        """Send what is due, under leases of this token."""
        self._token = token
        self._woken.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.wait(self._pause_s())
            self._woken.clear()
            if self._stopping.is_set() or not self._leader.leads:
                continue
            try:
                if self._token:
                    self.send_due()
                self._resend()
            except errors.StoreError as error:
                log.warning("deliveries_not_read", receiver=self._made.name, error=str(error))
                self._stopping.wait(_RETRY_S)
            except Exception:  # door: the end of this thread; it must not die
                log.exception("receiver_thread_broke", receiver=self._made.name)
                self._stopping.wait(_RETRY_S)
        self._close()

    def _pause_s(self) -> float | None:
        """The time until everything is sent again; None for a receiver that keeps no state."""
        if not api.keeps_state(self._made.receiver):
            return None
        return max(0.1, self._resend_mono - time.monotonic())

    def send_due(self) -> None:
        """Send deliveries until none is due. After a failure wait, also with the others."""
        while self._leader.leads and not self._stopping.is_set():
            now_ms = database_clock.now_ms(self._engine)
            lease_ms = now_ms + LEASE_MS
            taken = delivery_rows.take(self._engine, self._made.name, self._token, now_ms, lease_ms)
            if taken is None:
                return
            attempt = self._attempt(taken)
            self._end(taken, attempt)
            if not attempt.is_sent and not attempt.is_refused:
                chance = random.random()  # noqa: S311  no secret
                wait_s = delivery_backoff.wait_s(self._failures, attempt.asked_s, chance)
                self._stopping.wait(wait_s)

    def _attempt(self, delivery: Delivery) -> Attempt:
        name = self._made.name
        with process_metrics.notification_seconds.timed(name):
            try:
                answer = self._made.receiver.send(delivery.notice, delivery.key)
                return Attempt(True, outcome.clean(str(answer), _ANSWER))
            except errors.StoreUnavailable as error:
                return Attempt(False, _text(error), asked_s=error.retry_after_s)
            except errors.StoreError as error:
                return Attempt(False, _text(error), is_refused=True)
            except errors.PollerError as error:
                return Attempt(False, _text(error))
            except BaseException as error:  # door: a plugin's receiver may raise SystemExit
                log.exception("receiver_broke", receiver=name)
                return Attempt(False, outcome.clean(plugins.error_text(error), _ANSWER))

    def _end(self, delivery: Delivery, attempt: Attempt) -> None:
        now_ms = database_clock.now_ms(self._engine)
        chance = random.random()  # noqa: S311  no secret
        step = ledger.next_step(delivery, attempt, self._made.give_up_ms, chance, now_ms)
        answer = attempt.answer
        is_mine = delivery_rows.end_attempt(
            self._engine, delivery, self._token, step, answer, now_ms
        )
        result = "sent" if attempt.is_sent else "failed"
        if step.state is DeliveryState.DEAD:
            result = "dead"
        process_metrics.notifications.add(self._made.name, result)
        if attempt.is_sent:
            if self._failures:
                delivery_rows.hurry(self._engine, self._made.name, now_ms)
                log.info("receiver_recovered", receiver=self._made.name)
            self._failures = 0
            return
        self._failures += 1
        log.warning("notice_not_sent", receiver=self._made.name, key=delivery.key, error=answer)
        if step.is_event and is_mine:
            self._events.record(_failed(delivery, step.state, answer, now_ms))

    def _resend(self) -> None:
        """Tell a receiver that keeps state again of all that fires, when its time has come."""
        receiver = self._made.receiver
        if not api.keeps_state(receiver) or time.monotonic() < self._resend_mono:
            return
        self._resend_mono = time.monotonic() + float(getattr(receiver, "resend_s", 60.0))
        firing = self._firing(self._made.name)
        if not firing:
            return
        try:
            receiver.resend(firing)
        except errors.PollerError as error:
            log.warning("alerts_not_sent_again", receiver=self._made.name, error=str(error))
        except BaseException:  # door: a plugin's receiver may raise SystemExit
            log.exception("receiver_broke", receiver=self._made.name)

    def _close(self) -> None:
        try:
            self._made.receiver.close()
        except BaseException:  # door: a plugin's receiver may raise SystemExit
            log.exception("receiver_not_closed", receiver=self._made.name)


def _text(error: errors.PollerError) -> str:
    hint = f"; try: {error.hint}" if error.hint else ""
    return outcome.clean(f"{error}{hint}", _ANSWER)


def _failed(delivery: Delivery, state: DeliveryState, answer: str, now_ms: int) -> Event:
    what = "was given up" if state is DeliveryState.DEAD else "fails and is tried again"
    return Event(
        at_ms=now_ms,
        kind=Kind.NOTIFICATION_FAILED,
        message=f"a notice of route {delivery.route} to {delivery.receiver} {what}: {answer}",
        data={
            "route": delivery.route,
            "receiver": delivery.receiver,
            "delivery": delivery.id,
            "state": state.value,
        },
    )
