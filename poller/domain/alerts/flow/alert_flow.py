"""The states of one alert: pending, firing, resolved. Pure: every step takes `now_ms`.

Being held back does not stop an alert: it fires and ends all the same, and is marked as suppressed.
Only `held_until_ms` keeps a pending alert from firing, while it is open what it is part of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.flow import flap_damping
from poller.domain.alerts.flow.sign import AHEAD_MS, Sign
from poller.domain.alerts.rule import Rule
from poller.domain.alerts.text_template import AlertFacts, render


def begin(sign: Sign) -> Alert:
    """Return the pending alert of a new sign."""
    return Alert(
        rule=sign.rule.name,
        severity=sign.rule.severity,
        subject=sign.subject,
        state=AlertState.PENDING,
        since_ms=sign.since_ms,
        seen_ms=sign.seen_ms,
        value=sign.value,
        labels=sign.labels,
        text=_text(sign),
    )


def note(alert: Alert, sign: Sign, now_ms: int) -> Alert:
    """Return an alert whose condition holds, also if it was gone for a while."""
    noted = replace(
        alert,
        severity=sign.rule.severity,
        subject=sign.subject,
        seen_ms=max(alert.seen_ms, sign.seen_ms),
        value=sign.value,
        labels=sign.labels,
        text=_text(sign),
        gone_ms=0,
    )
    if not alert.gone_ms:
        return noted
    if alert.state is AlertState.PENDING:
        return replace(noted, since_ms=sign.since_ms)
    return replace(noted, damped_until_ms=flap_damping.damped_until_ms(alert.flaps, now_ms))


def by_clock(alert: Alert, now_ms: int) -> Alert:
    """Return an alert without instants that are still to come, those of a clock that was ahead and
    was set back. They become the present: no poll could be later, and the alert would never end.
    """
    latest_ms = max(alert.since_ms, alert.seen_ms, alert.gone_ms, alert.fired_ms)
    quiet_ms = alert.damped_until_ms - flap_damping.QUIET_MS
    if max(latest_ms, quiet_ms) <= now_ms + AHEAD_MS:
        return alert
    return replace(
        alert,
        since_ms=min(alert.since_ms, now_ms),
        seen_ms=min(alert.seen_ms, now_ms),
        gone_ms=min(alert.gone_ms, now_ms),
        fired_ms=min(alert.fired_ms, now_ms),
        damped_until_ms=min(alert.damped_until_ms, now_ms + flap_damping.QUIET_MS),
    )


def wane(alert: Alert, gone_ms: int) -> Alert:
    """Return an alert whose condition is known to be gone since an instant."""
    return alert if alert.gone_ms else replace(alert, gone_ms=max(1, gone_ms))


def is_dropped(alert: Alert) -> bool:
    """Whether a pending alert went away before it fired: nobody is told of it."""
    return alert.state is AlertState.PENDING and alert.gone_ms > 0


def fires_ms(alert: Alert, rule: Rule) -> int:
    """Return when a pending alert fires if its condition goes on."""
    return max(alert.since_ms + rule.for_ms, alert.held_until_ms)


def ends_ms(alert: Alert, rule: Rule) -> int:
    """Return when a firing alert ends if its condition stays gone."""
    return max(alert.gone_ms + rule.keep_ms, alert.damped_until_ms)


def advance(
    alert: Alert, rule: Rule, now_ms: int, *, holds: bool, before_ms: Sequence[int]
) -> Alert:
    """Return the alert as the time that went by makes it: it may fire or end.

    `holds` is whether the condition is known to hold, `before_ms` the earlier firings of the same
    identity. A pending alert of which nothing is known does not fire.
    """
    if alert.state is AlertState.PENDING:
        may_fire = holds and now_ms >= fires_ms(alert, rule)
        return _fired(alert, now_ms, before_ms) if may_fire else alert
    if alert.gone_ms and now_ms >= ends_ms(alert, rule):
        return resolved(alert, now_ms)
    return alert


def resolved(alert: Alert, now_ms: int) -> Alert:
    """Return an alert that is over."""
    gone_ms = alert.gone_ms or now_ms
    return replace(alert, state=AlertState.RESOLVED, gone_ms=gone_ms, resolved_ms=now_ms)


def _fired(alert: Alert, now_ms: int, before_ms: Sequence[int]) -> Alert:
    flaps = flap_damping.firings(before_ms, now_ms)
    damped_ms = flap_damping.damped_until_ms(flaps, now_ms)
    return replace(
        alert, state=AlertState.FIRING, fired_ms=now_ms, flaps=flaps, damped_until_ms=damped_ms
    )


def _text(sign: Sign) -> str:
    return render(sign.rule, AlertFacts(sign.subject, sign.value, sign.labels))
