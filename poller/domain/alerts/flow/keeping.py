"""One pass over all open alerts: signs and time make them begin, fire, fold, and end."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.flow import alert_change, alert_flow, covering, flap_damping
from poller.domain.alerts.flow.alert_change import AlertChange
from poller.domain.alerts.flow.covering import Covering
from poller.domain.alerts.flow.outage_scene import Scene, device_key, site_key
from poller.domain.alerts.flow.sign import Signs
from poller.domain.alerts.rule import Condition, NoData, Rule

Alerts = Mapping[str, Alert]  # by identity
#: How soon an alert that waits for a poll is looked at again.
WAIT_MS = 1_000
#: No alert changes by the time alone.
NEVER_MS = 2**62


@dataclass(frozen=True, slots=True)
class Past:
    """The memory of alerts that are over."""

    #: Instants at which alerts of an identity fired within the last hour and were told.
    fired_ms: Mapping[str, Sequence[int]] = field(default_factory=dict)
    #: Since when devices and sites are back that explained other alerts.
    back: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Kept:
    """The outcome of a pass: `written` are alerts whose rows change, `dropped` those that vanish,
    `over` those that ended, `ask` devices to poll now. A cut one lacks alerts that SQL refused.
    """

    open: dict[str, Alert] = field(default_factory=dict)
    written: list[Alert] = field(default_factory=list)
    dropped: list[Alert] = field(default_factory=list)
    changes: list[AlertChange] = field(default_factory=list)
    over: list[Alert] = field(default_factory=list)
    ask: set[int] = field(default_factory=set)
    next_ms: int = NEVER_MS
    is_cut: bool = False

    @property
    def is_written(self) -> bool:
        """Whether a row changes."""
        return bool(self.written or self.dropped)

    def without(self, refused: Collection[int], stored: Alerts) -> Kept:
        """Return the outcome of a pass of which SQL refused some alerts, by id: they are as they
        were stored before.
        """
        before = {name: alert for name, alert in stored.items() if alert.id in refused}
        return replace(
            self,
            open={**self.open, **before},
            written=[each for each in self.written if each.id not in refused],
            over=[each for each in self.over if each.id not in refused],
            changes=[each for each in self.changes if each.alert_id not in refused],
            is_cut=True,
        )


def begun(known: Alerts, signs: Signs) -> dict[str, Alert]:
    """Return the pending alerts of signs that are new."""
    new = signs.holding.keys() - known.keys()
    return {identity: alert_flow.begin(signs.holding[identity]) for identity in sorted(new)}


def followed(known: Alerts, signs: Signs, now_ms: int) -> dict[str, Alert]:
    """Return the alerts with what the signs say of each."""
    found = {}
    for identity, stored in known.items():
        alert = alert_flow.by_clock(stored, now_ms)
        if identity in signs.holding:
            found[identity] = alert_flow.note(alert, signs.holding[identity], now_ms)
        elif identity in signs.gone:
            found[identity] = alert_flow.wane(alert, signs.gone[identity])
        else:
            found[identity] = alert
    return found


def with_causes(scene: Scene, alerts: Alerts, rules: Mapping[str, Rule], past: Past) -> Scene:
    """Return a scene with the alerts that explain others, and those that no longer do."""
    causes: dict[str, Alert] = {}
    failing: dict[int, Alert] = {}
    back = dict(past.back)
    for alert in alerts.values():
        rule = rules.get(alert.rule)
        if rule is None:
            continue
        key = _cause_key(alert, rule.condition)
        if key and alert.gone_ms:
            back[key] = max(back.get(key, 0), alert.gone_ms)
        elif key and not _is_paused(scene, alert) and _is_older(alert, causes.get(key)):
            causes[key] = alert
        if covering.names_failure(rule.condition) and alert.subject.target_id and not alert.gone_ms:
            failing[alert.subject.target_id] = alert
    return replace(scene, causes=causes, back=back, failing=failing)


def _is_paused(scene: Scene, alert: Alert) -> bool:
    """Whether the device of an alert is not polled any more: no poll shows whether it is back, so
    that it would explain others for ever.
    """
    device = scene.devices.get(alert.subject.device_id or 0)
    return device is not None and not device.polled_ids


def _is_older(alert: Alert, other: Alert | None) -> bool:
    return other is None or alert.id < other.id


def to_know(alerts: Alerts, rules: Mapping[str, Rule], scene: Scene, now_ms: int) -> set[int]:
    """Return the devices whose last polls are needed to decide on alerts that nothing explains."""
    cover = Covering(scene, now_ms)
    found: set[int] = set()
    for alert in alerts.values():
        rule = rules.get(alert.rule)
        if rule is not None and (alert.state is AlertState.PENDING or alert.suppressed_by):
            found |= cover.to_know(alert, rule.condition)
    return found


@dataclass(frozen=True, slots=True)
class Pass:
    """All that a pass decides on. `holding` are identities whose last sign holds."""

    rules: Mapping[str, Rule]
    scene: Scene
    signs: Signs
    holding: Collection[str]
    past: Past
    now_ms: int

    def keep(self, stored: Alerts, alerts: Alerts) -> Kept:
        """Return what becomes of the alerts. `stored` are the same alerts as SQL has them."""
        kept = Kept()
        cover = Covering(self.scene, self.now_ms)
        for identity, alert in alerts.items():
            self._keep(kept, cover, identity, stored[identity], alert)
        return kept

    def _keep(
        self, kept: Kept, cover: Covering, identity: str, before: Alert, alert: Alert
    ) -> None:
        rule = self.rules.get(alert.rule)
        reason = "the rule was removed" if rule is None else self.signs.ended.get(identity, "")
        if rule is None or reason:
            alert = alert_flow.resolved(alert, self.now_ms)
        else:
            alert = self._advanced(kept, cover, identity, alert, rule)
        is_over = alert.state is AlertState.RESOLVED
        if alert_flow.is_dropped(alert) or (is_over and not alert.fired_ms):
            kept.dropped.append(alert)
            return
        if is_over:
            kept.over.append(alert)
        else:
            kept.open[identity] = alert
        if alert_change.is_stored_anew(before, alert):
            kept.written.append(alert)
            kept.changes += alert_change.changes(before, alert, self.now_ms, reason)

    def _advanced(
        self, kept: Kept, cover: Covering, identity: str, alert: Alert, rule: Rule
    ) -> Alert:
        if alert_flow.is_dropped(alert):
            return alert
        holds = identity in self.holding and not alert.gone_ms
        found = cover.decide(alert, rule.condition, holds=holds)
        kept.ask.update(found.ask)
        if (alert.suppressed_by, alert.held_until_ms) != (found.by, found.held_until_ms):
            alert = replace(alert, suppressed_by=found.by, held_until_ms=found.held_until_ms)
        before_ms = self.past.fired_ms.get(identity, ())
        alert = alert_flow.advance(alert, rule, self.now_ms, holds=holds, before_ms=before_ms)
        kept.next_ms = min(kept.next_ms, self._next_ms(alert, rule, holds))
        return alert

    def _next_ms(self, alert: Alert, rule: Rule, holds: bool) -> int:
        if alert.state is AlertState.RESOLVED:
            return NEVER_MS
        if alert.held_until_ms > self.now_ms:
            return self.now_ms + WAIT_MS
        if alert.state is AlertState.PENDING:
            return alert_flow.fires_ms(alert, rule) if holds else NEVER_MS
        return alert_flow.ends_ms(alert, rule) if alert.gone_ms else NEVER_MS


def remembered(past: Past, kept: Kept, rules: Mapping[str, Rule], now_ms: int) -> Past:
    """Return the past with what a pass ended, without what is older than an hour."""
    since_ms = now_ms - flap_damping.WINDOW_MS
    fired = {
        identity: [at_ms for at_ms in instants if at_ms > since_ms]
        for identity, instants in past.fired_ms.items()
    }
    back = dict(past.back)
    for alert in (*kept.over, *kept.dropped):
        if alert.fired_ms > since_ms and not alert.suppressed_by:
            fired.setdefault(alert.subject.identity(alert.rule), []).append(alert.fired_ms)
        rule = rules.get(alert.rule)
        key = _cause_key(alert, rule.condition) if rule else ""
        if key:
            back[key] = max(back.get(key, 0), alert.gone_ms)
    return Past(
        {identity: instants for identity, instants in fired.items() if instants},
        {key: min(at_ms, now_ms) for key, at_ms in back.items() if at_ms > since_ms},
    )


def past_of(over: Sequence[Alert], rules: Mapping[str, Rule], now_ms: int) -> Past:
    """Return the past that a new leader reads from alerts that ended within the last hour."""
    return remembered(Past(), Kept(over=list(over)), rules, now_ms)


def not_worth_beginning(
    new: Alerts, scene: Scene, rules: Mapping[str, Rule], now_ms: int
) -> list[str]:
    """Return the new alerts about missing data that an outage explains. They begin when it is over,
    if data are still missing: a dark site of a thousand targets needs no thousand rows.
    """
    cover = Covering(scene, now_ms)
    found = []
    for identity, alert in new.items():
        condition = rules[alert.rule].condition
        if isinstance(condition, NoData) and cover.root(alert, condition):
            found.append(identity)
    return found


def _cause_key(alert: Alert, condition: Condition) -> str:
    """The key of an alert that explains others; "" for all other alerts."""
    if not covering.explains(condition):
        return ""
    if alert.subject.device_id is not None:
        return device_key(alert.subject.device_id)
    return site_key(alert.subject.site)
