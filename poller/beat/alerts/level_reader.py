"""One look at the board: which alerts' conditions hold, and which are known to be over.

Statuses are read before levels. So a level that is missing was missing after the poll that serves
as the proof.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from poller.beat.alerts.device_facts import DeviceFacts
from poller.beat.alerts.stale_targets import StaleTargets
from poller.bootstrap import Services
from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.flow import known_rules, level_signs, recovery
from poller.domain.alerts.flow.keeping import Alerts
from poller.domain.alerts.flow.known_device import KnownDevice
from poller.domain.alerts.flow.known_rules import KnownRules
from poller.domain.alerts.flow.sign import Sign, Signs
from poller.domain.alerts.mark import Mark
from poller.domain.alerts.rule import (
    DeviceUnreachable,
    NoData,
    PlatformTrouble,
    Rule,
    SiteDark,
)
from poller.domain.failures.site_outage import Outage
from poller.domain.record.target_status import Status
from poller.state.board.alert_levels import AlertLevels, DownDevice, News
from poller.state.cluster import site_windows


@dataclass(frozen=True, slots=True)
class Look:
    """The levels that were seen. `down` and `outages` are complete at every look."""

    signs: Signs
    down: Mapping[int, DownDevice]
    outages: Mapping[str, Outage]


@dataclass(slots=True)
class _Found:
    holding: dict[str, Sign] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)

    def add(self, signs: Iterable[Sign]) -> None:
        for sign in signs:
            self.holding[sign.identity] = sign


@dataclass(frozen=True, slots=True)
class _Levels:
    statuses: Mapping[int, Status]
    outages: Mapping[str, Outage]
    down: Mapping[int, DownDevice]
    troubled: Collection[int]
    marks: Mapping[int, list[Mark]]


class LevelReader:
    """Reads the board for the rules and the open alerts. Every method raises StoreError."""

    def __init__(self, services: Services, facts: DeviceFacts) -> None:
        self._redis = services.redis
        self._keys = services.keys
        self._levels = AlertLevels(services.board)
        self._stale = StaleTargets(services)
        self._facts = facts
        #: Since when polls were made without a long pause: a pause of all is no target's fault.
        self.polling_since_ms = 0
        #: Since when the marks of the board are whole; Redis may have lost them before.
        self.marks_since_ms = 0

    def outages(self) -> dict[str, Outage]:
        """Return the dark sites."""
        return site_windows.dark(self._redis, self._keys)

    def look(self, alerts: Alerts, rules: KnownRules, news: News | None, now_ms: int) -> Look:
        """Look at what the news name; at everything if there are None."""
        self.marks_since_ms = min(self.marks_since_ms, now_ms)
        scope = self._scope(alerts, rules, news)
        statuses = self._statuses(scope.values())
        levels = self._read_levels(statuses, news, _marked_targets(scope.values(), rules))

        found = _Found()
        for outage in levels.outages.values():
            found.add(level_signs.dark(rules, outage))
        self._add_down(found, rules, levels, news)
        untold = {each for each in levels.outages if not rules.tell_of_site(each)}
        if news is None:
            self._add_silent(found, rules, levels, [levels.outages[each] for each in untold])
        self._add_failing(found, rules, levels, news)
        self._add_marked(found, rules, levels)
        if news is None:
            self._add_stale(found, rules, levels, levels.outages.keys() - untold, now_ms)
        for identity, alert in scope.items():
            if identity not in found.holding:
                self._judge(found, identity, alert, rules, levels)
        signs = Signs(found.holding, found.gone, found.ended, is_full=news is None)
        return Look(signs.by_clock(now_ms), levels.down, levels.outages)

    def _scope(self, alerts: Alerts, rules: KnownRules, news: News | None) -> dict[str, Alert]:
        """The alerts that the look is about: of the news, of sites, and alerts about missing data
        that may soon be told. No news tell of their end.
        """
        if news is None:
            return dict(alerts)
        device_ids, target_ids = set(news.device_ids), set(news.target_ids)
        found = {}
        for identity, alert in alerts.items():
            subject = alert.subject
            is_site = subject.device_id is None and bool(subject.site)
            is_named = subject.device_id in device_ids or subject.target_id in target_ids
            if is_site or is_named or _may_be_told_soon(alert, rules):
                found[identity] = alert
        return found

    def _statuses(self, scope: Iterable[Alert]) -> dict[int, Status]:
        """The statuses of the targets that can show that an alert is over."""
        whole: set[int] = set()  # devices of which every target counts
        parts: set[int] = set()
        target_ids: set[int] = set()
        for alert in scope:
            subject = alert.subject
            if subject.target_id is not None:
                parts.add(subject.device_id or 0)
                target_ids.add(subject.target_id)
            elif subject.device_id is not None:
                whole.add(subject.device_id)
            elif subject.site:
                whole.update(self._facts.of_site(subject.site))
        self._facts.read(whole | parts)
        target_ids.update(self._facts.polled_targets(whole))
        return self._levels.statuses(sorted(target_ids))

    def _read_levels(
        self, statuses: Mapping[int, Status], news: News | None, marked: Collection[int]
    ) -> _Levels:
        """Read the levels. `marked` are targets with alerts of marks: news of a device lead to
        them, too, and a mark that was not read is no proof of an end.
        """
        marks: dict[int, list[Mark]] = {}
        if news is not None:
            marks = self._levels.marks(sorted({*news.target_ids, *marked}))
        else:
            for page in self._levels.all_marks():
                marks |= page
        return _Levels(
            statuses=statuses,
            outages=self.outages(),
            down=self._levels.down_devices(),
            troubled=self._levels.troubled(),
            marks=marks,
        )

    def _add_down(
        self, found: _Found, rules: KnownRules, levels: _Levels, news: News | None
    ) -> None:
        ids = set(levels.down)
        if news is not None:
            ids &= set(news.device_ids)
        devices = self._facts.read(ids)
        for device_id in ids & devices.keys():
            since_ms = levels.down[device_id].since_ms
            found.add(level_signs.unreachable(rules, devices[device_id], since_ms))

    def _add_silent(
        self, found: _Found, rules: KnownRules, levels: _Levels, outages: Collection[Outage]
    ) -> None:
        """Devices that are silent in dark sites of which no rule tells. The board does not tell of
        them, so that nobody would be told of anything.
        """
        for outage in outages:
            ids = self._facts.of_site(outage.site)
            devices = self._facts.read(ids)
            statuses = self._levels.statuses(self._facts.polled_targets(ids))
            for device_id in devices.keys() & set(ids) - levels.down.keys():
                device = devices[device_id]
                own = [statuses[each] for each in device.polled_ids if each in statuses]
                last = recovery.reached(own)
                if last.is_silent and last.answered_ms < outage.since_ms:
                    found.add(level_signs.unreachable(rules, device, outage.since_ms))

    def _add_failing(
        self, found: _Found, rules: KnownRules, levels: _Levels, news: News | None
    ) -> None:
        ids = set(levels.troubled)
        if news is not None:
            ids &= set(news.target_ids)
        device_of = self._facts.devices_of(ids)
        devices = self._facts.read(set(device_of.values()))
        own = {each: of for each, of in device_of.items() if of not in levels.down}
        statuses = self._levels.statuses(sorted(own))
        for target_id, device in self._polled(own, devices):
            if target_id in statuses:
                status = statuses[target_id]
                found.add(level_signs.failing(rules, device, target_id, status))

    def _add_marked(self, found: _Found, rules: KnownRules, levels: _Levels) -> None:
        device_of = self._facts.devices_of(levels.marks)
        devices = self._facts.read(set(device_of.values()))
        for target_id, device in self._polled(device_of, devices):
            found.add(level_signs.marked(rules, device, target_id, levels.marks[target_id]))

    def _add_stale(
        self,
        found: _Found,
        rules: KnownRules,
        levels: _Levels,
        told_sites: Collection[str],
        now_ms: int,
    ) -> None:
        stale = self._stale.read(rules, now_ms)
        for down in levels.down.values():
            for target_id in down.target_ids:
                stale.pop(target_id, None)
        device_of = self._facts.devices_of(stale)
        devices = self._facts.read(set(device_of.values()))
        for target_id, device in self._polled(device_of, devices):
            if device.site not in told_sites and device.id not in levels.down:
                last_ms = max(stale[target_id], self.polling_since_ms)
                found.add(level_signs.no_data(rules, device, target_id, last_ms, now_ms))

    def _polled(
        self, device_of: Mapping[int, int], devices: Mapping[int, KnownDevice]
    ) -> Iterator[tuple[int, KnownDevice]]:
        """The targets that are polled, each with its device."""
        for target_id, device_id in device_of.items():
            device = devices.get(device_id)
            if device is not None and target_id in device.polled_ids:
                yield target_id, device

    def _judge(
        self, found: _Found, identity: str, alert: Alert, rules: KnownRules, levels: _Levels
    ) -> None:
        """Find out whether an alert without a sign is over."""
        rule = rules.by_name.get(alert.rule)
        if rule is None:
            found.ended[identity] = "the rule was removed or disabled"
            return
        if not known_rules.is_about(rule.condition, alert.subject):
            found.ended[identity] = "the rule has another condition now"
            return
        if known_rules.is_about_devices(rule.condition):
            device = self._facts.all.get(alert.subject.device_id or 0)
            if not rules.applies(alert.rule, device, alert.subject.target_id):
                found.ended[identity] = "the rule does not apply any more"
                return
        if isinstance(rule.condition, SiteDark) and not self._site_targets(alert.subject.site):
            found.ended[identity] = "no device of the site is polled any more"
            return
        gone_ms = self._gone_ms(alert, rule, levels)
        if gone_ms:
            found.gone[identity] = gone_ms

    def _gone_ms(self, alert: Alert, rule: Rule, levels: _Levels) -> int:
        condition, subject = rule.condition, alert.subject
        if isinstance(condition, PlatformTrouble):
            return 0  # see platform_watch.py
        if isinstance(condition, SiteDark):
            ids = self._site_targets(subject.site)
            seen = {each: levels.statuses[each] for each in ids if each in levels.statuses}
            return recovery.site_back_ms(alert, len(ids), seen)
        if isinstance(condition, DeviceUnreachable):
            if subject.device_id in levels.down:
                return 0
            ids = self._facts.polled_targets([subject.device_id or 0])
            statuses = [levels.statuses[each] for each in ids if each in levels.statuses]
            return recovery.device_back_ms(alert, statuses)
        target_id = subject.target_id or 0
        status = levels.statuses.get(target_id)
        if rule.is_judged_by_workers:
            marks = levels.marks.get(target_id, [])
            return recovery.unmarked_ms(alert, status, marks, self.marks_since_ms)
        return recovery.target_well_ms(alert, condition, status)

    def _site_targets(self, site: str) -> list[int]:
        return self._facts.polled_targets(self._facts.of_site(site))


def _marked_targets(alerts: Iterable[Alert], rules: KnownRules) -> set[int]:
    """The targets of alerts that workers' marks made."""
    found = set()
    for alert in alerts:
        rule = rules.by_name.get(alert.rule)
        if rule is not None and rule.is_judged_by_workers and alert.subject.target_id is not None:
            found.add(alert.subject.target_id)
    return found


def _may_be_told_soon(alert: Alert, rules: KnownRules) -> bool:
    """Whether an alert about missing data waits to be told."""
    rule = rules.by_name.get(alert.rule)
    waits = alert.state is AlertState.PENDING or bool(alert.suppressed_by)
    return waits and rule is not None and isinstance(rule.condition, NoData)
