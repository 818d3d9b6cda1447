"""Keeps the alerts: a thread of the leader that turns levels and time into alerts in SQL.

Each pass is one transaction, in which a leader that was replaced can write nothing. News are
forgotten after the commit, so a pass that was cut short is made again. A pass looks at what
changed; a full look every half a minute finds what no news told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from poller import errors, event_publisher
from poller.beat.alerts import alert_events, alert_memory
from poller.beat.alerts.alert_memory import AlertMemory
from poller.beat.alerts.device_facts import DeviceFacts
from poller.beat.alerts.level_reader import LevelReader, Look
from poller.beat.alerts.mark_restorer import MarkRestorer
from poller.beat.alerts.outage_surroundings import OutageSurroundings
from poller.beat.alerts.parent_polls import ParentPolls
from poller.beat.alerts.platform_watch import PlatformWatch
from poller.beat.alerts.refused_alerts import RefusedAlerts
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.alerts import alert_rows, rule_rows
from poller.db.alerts.alert_rows import TermOver
from poller.domain.alerts.alert import Alert
from poller.domain.alerts.flow import keeping
from poller.domain.alerts.flow.keeping import Kept, Pass
from poller.domain.alerts.flow.known_rules import KnownRules
from poller.domain.alerts.flow.outage_scene import Scene
from poller.domain.alerts.flow.sign import Signs, still_holding
from poller.observability import logs
from poller.settings import policies
from poller.state.board.alert_levels import AlertLevels, News
from poller.state.board.board_values import NotLeader

log = logs.get(__name__)

CHECK_EVERY_S = 1.0
#: How often everything is looked at, whatever the news are.
FULL_LOOK_S = 30.0
#: How often the rules and the maintenances are compared with SQL.
SETTINGS_S = 5.0
#: News of one pass; the others follow a second later.
MOST_NEWS = 5_000


class AlertKeeper:
    """The leader's alerts. `on_change` is called after each pass that changed an alert."""

    def __init__(
        self,
        services: Services,
        leader: Leader,
        stopping: threading.Event,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        limits = policies.site_limits(services.settings)
        self._services = services
        self._leader = leader
        self._stopping = stopping
        self._on_change = on_change
        self._facts = DeviceFacts(services.engine, limits)
        self._levels = AlertLevels(services.board)
        self._reader = LevelReader(services, self._facts)
        self._platform = PlatformWatch(services)
        self._surroundings = OutageSurroundings(services, self._facts)
        self._marks = MarkRestorer(services.board, leader)
        self._polls = ParentPolls(services.board, self._facts)
        self._refused = RefusedAlerts()
        self._rules = KnownRules(-1, ())
        self._memory: AlertMemory | None = None
        self._leader_term = 0  # the leader's term that the memory is of
        self._is_unsure = False  # whether SQL may have more than the memory
        self._full_look_mono = 0.0  # when the next one is due
        self._settings_mono = 0.0
        self._dark: set[str] = set()  # sites of the last pass
        self._failure = ""  # the failure that was logged last and is not over
        self._thread = threading.Thread(target=self._run, name="alert-keeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(CHECK_EVERY_S):
            try:
                if self._leader.leads:
                    self.check(self._services.board.now_ms())
                self._log_failure("")
            except (NotLeader, TermOver):
                self._memory = None  # a term begins again if this process leads after all
            except errors.StoreError as error:
                self._log_failure(str(error))
            except Exception:  # door: the end of this thread; it must not die
                log.exception("alert_keeper_broke")
                self._memory = None

    def check(self, now_ms: int) -> bool:
        """Make a pass if there is a reason for one. Returns whether there was.

        Raises StoreError, NotLeader, TermOver; the next check then makes the pass again.
        """
        memory = self._begin_term(now_ms)
        is_changed = self._follow_settings(memory, now_ms)
        news = self._levels.news(now_ms, MOST_NEWS)
        if time.monotonic() >= self._full_look_mono:
            self._pass(memory, news, now_ms, is_full=True)
            self._full_look_mono = time.monotonic() + FULL_LOOK_S
            return True
        is_due = is_changed or bool(news.entries) or now_ms >= memory.next_ms
        if is_due or self._reader.outages().keys() != self._dark:
            self._pass(memory, news, now_ms, is_full=False)
            return True
        return False

    def look_soon(self) -> None:
        """Look at everything in the next check, rules and maintenances among it."""
        self._full_look_mono = 0.0
        self._settings_mono = 0.0

    def _begin_term(self, now_ms: int) -> AlertMemory:
        if self._memory is not None and self._leader_term == self._leader.terms:
            if self._is_unsure:
                engine = self._services.engine
                self._memory = alert_memory.read_again(engine, self._memory, self._rules, now_ms)
                self._is_unsure = False
            return self._memory
        self._leader_term = self._leader.terms
        engine = self._services.engine
        self._read_rules()
        self._memory = alert_memory.read(engine, self._leader.name, self._rules, now_ms)
        self._is_unsure = False
        self._platform.begin_term(self._memory.term.before_ms, now_ms)
        self._reader.polling_since_ms = now_ms if self._platform.had_pause else 0
        self._surroundings.refresh_maintenances(now_ms)
        self.look_soon()
        return self._memory

    def _read_rules(self) -> bool:
        """Read the rules if they changed. Returns whether they did."""
        engine = self._services.engine
        if rule_rows.version(engine) == self._rules.version:
            return False
        stored = rule_rows.load(engine)
        self._rules = KnownRules(stored.version, stored.rules)
        return True

    def _follow_settings(self, memory: AlertMemory, now_ms: int) -> bool:
        """Follow rules and maintenances, and a board that was emptied. Returns whether alerts are
        to be looked at.
        """
        if self._marks.follow(self._rules, memory.open.values()):
            self._reader.marks_since_ms = now_ms
            self.look_soon()
        if time.monotonic() < self._settings_mono:
            return False
        self._settings_mono = time.monotonic() + SETTINGS_S
        self._facts.refresh()
        if self._read_rules():
            self.look_soon()
        is_changed = self._surroundings.refresh_maintenances(now_ms)
        return is_changed and bool(memory.open)

    def _pass(self, memory: AlertMemory, news: News, now_ms: int, *, is_full: bool) -> None:
        look = self._reader.look(memory.open, self._rules, None if is_full else news, now_ms)
        signs = self._with_platform(look.signs, memory, now_ms) if is_full else look.signs
        signs = signs.without(self._refused.paused())
        self._is_unsure = True  # until the memory follows what was committed
        kept = self._keep(memory, replace(look, signs=signs), now_ms)
        if (is_full or news.entries) and not kept.is_written:
            # News are forgotten by the keeper of the present term only.
            alert_rows.confirm(self._services.engine, memory.term.number, now_ms)
        memory.follow(kept, signs, self._rules, now_ms)
        self._is_unsure = kept.is_cut
        self._dark = set(look.outages)
        memory.next_ms = min(memory.next_ms, self._next_maintenance_ms(memory, now_ms))

        event_publisher.emit(self._services, list(alert_events.of_pass(kept)))
        if kept.written:
            self._on_change()
        self._levels.forget_news(news)
        self._polls.ask(kept.ask, now_ms)

    def _with_platform(self, signs: Signs, memory: AlertMemory, now_ms: int) -> Signs:
        look = self._platform.look(now_ms)
        own = {sign.identity: sign for sign in look.signs(self._rules, now_ms)}
        gone = look.gone(memory.open, self._rules, now_ms)
        return replace(signs, holding={**signs.holding, **own}, gone={**signs.gone, **gone})

    def _keep(self, memory: AlertMemory, look: Look, now_ms: int) -> Kept:
        """Decide, and write what is new and what changed. New alerts need their ids first."""
        begun, scene = self._surrounded(memory, look, now_ms)
        if not begun:
            kept = self._decide(memory, look, memory.open, scene, now_ms)
            if not kept.is_written:
                return kept
            with alert_rows.writing(self._services.engine, memory.term.number, now_ms) as rows:
                rows.write(kept)
            return self._without_refused(kept, memory.open, rows.refused, now_ms)
        with alert_rows.writing(self._services.engine, memory.term.number, now_ms) as rows:
            stored = {**memory.open, **rows.insert(begun)}
            kept = self._decide(memory, look, stored, scene, now_ms)
            rows.write(kept)
        return self._without_refused(kept, stored, rows.refused, now_ms)

    def _without_refused(
        self,
        kept: Kept,
        stored: Mapping[str, Alert],
        refused: Sequence[tuple[Alert, str]],
        now_ms: int,
    ) -> Kept:
        """Tell of alerts that SQL refused, and leave them alone for a while."""
        if not refused:
            return kept
        by_identity = {alert.subject.identity(alert.rule): (alert, why) for alert, why in refused}
        new = self._refused.add(list(by_identity))
        events = [alert_events.refused(*by_identity[name], now_ms) for name in new]
        event_publisher.emit(self._services, events)
        return kept.without({alert.id for alert, _ in refused if alert.id}, stored)

    def _surrounded(
        self, memory: AlertMemory, look: Look, now_ms: int
    ) -> tuple[dict[str, Alert], Scene]:
        """The alerts that begin, and all that is to be known of the surroundings."""
        rules = self._rules.by_name
        begun = keeping.begun(memory.open, look.signs)
        alerts = keeping.followed({**memory.open, **begun}, look.signs, now_ms)
        bare = self._surroundings.scene(look, alerts, now_ms)
        scene = keeping.with_causes(bare, alerts, rules, memory.past)
        for identity in keeping.not_worth_beginning(begun, scene, rules, now_ms):
            del begun[identity], alerts[identity]
        wanted = keeping.to_know(alerts, rules, scene, now_ms)
        return begun, replace(bare, reached=self._surroundings.reached(wanted))

    def _decide(
        self,
        memory: AlertMemory,
        look: Look,
        stored: Mapping[str, Alert],
        bare: Scene,
        now_ms: int,
    ) -> Kept:
        rules = self._rules.by_name
        alerts = keeping.followed(stored, look.signs, now_ms)
        this = Pass(
            rules=rules,
            scene=keeping.with_causes(bare, alerts, rules, memory.past),
            signs=look.signs,
            holding=still_holding(memory.holding, look.signs),
            past=memory.past,
            now_ms=now_ms,
        )
        paused = self._refused.paused() & stored.keys()
        tried = {name: alert for name, alert in alerts.items() if name not in paused}
        kept = this.keep(stored, tried)
        kept.open |= {name: stored[name] for name in paused}
        return kept

    def _next_maintenance_ms(self, memory: AlertMemory, now_ms: int) -> int:
        following = self._surroundings.next_maintenance_ms(now_ms) if memory.open else None
        return following or keeping.NEVER_MS

    def _log_failure(self, failure: str) -> None:
        """Log a failure when it starts, changes or ends, not at every retry. "" is success."""
        if failure and failure != self._failure:
            log.error("alerts_not_kept", error=failure)
        elif self._failure and not failure:
            log.info("alerts_kept_again")
        self._failure = failure
