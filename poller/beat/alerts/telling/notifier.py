"""The leader's notifier: makes notices of alerts, and has them sent.

The keeper of alerts wakes it after a change; without that it looks every few seconds. Everything it
knows is in SQL, so that a new leader goes on where the last one ended.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence

from poller import errors
from poller.alerts.receivers import registry
from poller.beat.alerts.telling.notice_maker import NoticeMaker
from poller.beat.alerts.telling.receiver_thread import ReceiverThread
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.alerts import delivery_rows, notified_alerts
from poller.domain.alerts.flow.sign import AHEAD_MS
from poller.domain.alerts.telling import notice, route_form
from poller.domain.alerts.telling.alert_route import Route
from poller.domain.alerts.telling.notice import ToldAlert
from poller.event_publisher import EventLog
from poller.observability import logs

log = logs.get(__name__)

#: The longest pause between two looks, also without a wake-up.
LOOK_EVERY_S = 5.0
#: The shortest pause, however often the keeper wakes the notifier.
_LEAST_PAUSE_S = 0.2
#: The pause after a look, in lengths of the look: thousands of alerts must not slow the ticks.
_PAUSE_SHARE = 3


class Notifier:
    """Tells people of alerts while this process leads. `wake` may be called by any thread."""

    def __init__(
        self, services: Services, leader: Leader, stopping: threading.Event, events: EventLog
    ) -> None:
        """Check receivers and routes. Raises InvalidSetting."""
        settings = services.settings
        self._engine = services.engine
        self._leader = leader
        self._stopping = stopping
        self._woken = threading.Event()
        self._web_url = settings.web_url
        made = {
            name: registry.make(name, settings.receiver, settings.web_url)
            for name in settings.receiver
        }
        self._routes = route_form.read(settings.route, made)
        self._maker = NoticeMaker(self._engine, self._routes, made, settings.web_url)
        self._threads = {
            name: ReceiverThread(each, self._engine, leader, events, stopping, self.told_firing)
            for name, each in made.items()
        }
        self._term = 0  # the leader's term in which SQL was read last
        self._token = ""  # of the leases of this term
        self._now_ms = 0  # the last look, by the clock of the database
        self._failure = ""  # the failure that was logged last and is not over
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Start the threads. Without receivers there is nothing to do."""
        if not self._threads:
            return
        for thread in self._threads.values():
            thread.start()
        self._thread.start()

    def wake(self) -> None:
        """Look at once: alerts have changed."""
        self._woken.set()

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stopping.is_set():
            self._woken.wait(pause_s)
            self._woken.clear()
            pause_s = LOOK_EVERY_S
            started_mono = time.monotonic()
            if self._stopping.is_set() or not self._leader.leads:
                continue
            try:
                pause_s = self.look()
                self._log_failure("")
            except errors.StoreConflict:
                pause_s = 1.0  # another leader told first, or wrote at the same time: read again
            except errors.StoreError as error:
                self._log_failure(str(error))
            except Exception:  # door: the end of this thread; it must not die
                log.exception("notifier_broke")
            took_s = time.monotonic() - started_mono
            self._stopping.wait(max(_LEAST_PAUSE_S, _PAUSE_SHARE * took_s))

    def look(self) -> float:
        """Make the notices that are due, and wake the receivers. Returns the pause until the next
        look, in seconds. Raises StoreError.
        """
        if self._term != self._leader.terms:
            self._begin_term()
        now_ms = database_clock.now_ms(self._engine)
        self._follow_clock(now_ms)
        number, look_ms = self._maker.make(now_ms)
        if number:
            log.info("notices_made", count=number)
        due, next_ms = delivery_rows.due_receivers(self._engine, now_ms)
        for name in due & self._threads.keys():
            self._threads[name].wake(self._token)
        instants = [at_ms for at_ms in (look_ms, next_ms) if at_ms]
        wait_s = (min(instants) - now_ms) / 1000 if instants else LOOK_EVERY_S
        return min(max(0.0, wait_s), LOOK_EVERY_S)

    def told_firing(self, receiver: str) -> Sequence[ToldAlert]:
        """The alerts that fire, suppressed or not, of which a receiver was told."""
        told, escalated = _routes_to(receiver, self._routes)
        with sql.reading(self._engine) as conn:
            found = notified_alerts.told_firing(conn, told, escalated)
        return [notice.told_alert(alert, web_url=self._web_url) for alert in found]

    def _begin_term(self) -> None:
        """Forget what another leader may have changed, and take over its deliveries at once."""
        self._token = secrets.token_hex(16)
        self._maker.forget()
        freed = delivery_rows.free_leases(self._engine, self._token)
        if freed:
            log.info("deliveries_taken_over", count=freed)
        now_ms = database_clock.now_ms(self._engine)
        lost = delivery_rows.close_unknown(self._engine, self._threads.keys(), now_ms)
        if lost:
            log.warning("deliveries_without_receiver", count=lost)
        self._term = self._leader.terms

    def _follow_clock(self, now_ms: int) -> None:
        """If the clock of the database was set back, go by what is in SQL, as a new leader does,
        and send what would wait for an instant of the wrong clock.
        """
        if now_ms < self._now_ms - AHEAD_MS:
            log.warning("clock_set_back", seconds=round((self._now_ms - now_ms) / 1000))
            self._maker.forget()
        if not self._now_ms or now_ms < self._now_ms - AHEAD_MS:
            delivery_rows.bring_near(self._engine, now_ms)
        self._now_ms = now_ms

    def _log_failure(self, failure: str) -> None:
        """Log a failure when it starts, changes or ends. "" is success."""
        if failure and failure != self._failure:
            log.error("notices_not_made", error=failure)
        elif self._failure and not failure:
            log.info("notices_made_again")
        self._failure = failure


def _routes_to(receiver: str, routes: Sequence[Route]) -> tuple[list[str], list[str]]:
    """The routes that tell a receiver at once, and those that tell it later."""
    at_once = [route.name for route in routes if receiver in route.receivers]
    later = [
        route.name
        for route in routes
        if receiver in route.escalate_to and receiver not in route.receivers
    ]
    return at_once, later
