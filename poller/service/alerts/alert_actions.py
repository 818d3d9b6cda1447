"""Actions on alerts: list, show, acknowledge, silence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors, event_publisher
from poller.db.alerts import acknowledgements, alert_listing, maintenance_rows
from poller.db.alerts.alert_listing import AlertsWanted
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts import alert_numbers, maintenance_check
from poller.domain.alerts.alert import Acknowledgement, Alert, AlertState
from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.alerts.maintenance import Maintenance
from poller.domain.alerts.rule import Severity
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import ANY, TargetFilter
from poller.presentation import formatting
from poller.presentation.alerts import alert_sentences
from poller.service import site_limit, target_selection
from poller.service.alerts import shown_alerts
from poller.service.alerts.shown_alerts import ShownAlert, ShownChange, ShownTelling

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: How long an acknowledgement lasts if nobody says: a shift. And the longest.
DEFAULT_MS = 8 * 3_600_000
LONGEST_MS = 31 * 86_400_000


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """Which alerts. An empty field selects all; no state selects those that are open."""

    states: Collection[AlertState] = ()
    severities: Collection[Severity] = ()
    rules: Collection[str] = ()
    suppressed: bool | None = None
    wanted: TargetFilter = ANY
    since_ms: int = 0  # open then or later


@dataclass(frozen=True, slots=True)
class AlertPage:
    """A page of alerts, the newest first. `next_id` is None on the last page."""

    items: Sequence[ShownAlert]
    next_id: int | None


@dataclass(frozen=True, slots=True)
class AlertDetails:
    """One alert, its history, and whom the platform told of it."""

    alert: ShownAlert
    changes: Sequence[ShownChange]
    tellings: Sequence[ShownTelling]


def page(
    services: Services, actor: Actor, query: AlertQuery, limit: int, before_id: int | None = None
) -> AlertPage:
    """Return alerts, the newest first.

    Raises UnknownName for a site or collector that does not exist, NotAllowed, StoreError.
    """
    wanted = _wanted(services, actor, query, limit + 1, before_id)
    found = alert_listing.page(services.engine, wanted)
    items = [_shown(services, each) for each in found[:limit]]
    return AlertPage(items, items[-1].id if len(found) > limit else None)


def numbers(services: Services, actor: Actor) -> AlertNumbers:
    """Return how many alerts are open. Raises StoreError."""
    return alert_numbers.of_counts(alert_listing.counts(services.engine, actor.site))


def show(services: Services, actor: Actor, alert_id: int) -> AlertDetails:
    """Return one alert with its history. Raises NotFound, StoreError."""
    found = _visible(services, actor, alert_id)
    changes = alert_listing.changes(services.engine, alert_id)
    tellings = alert_listing.tellings(services.engine, alert_id)
    return AlertDetails(
        _shown(services, found),
        [shown_alerts.change(each) for each in changes],
        [shown_alerts.telling(each) for each in tellings],
    )


def of_device(services: Services, actor: Actor, device: str) -> list[Alert]:
    """Return the open alerts of a device, the oldest first. Raises NotFound, StoreError."""
    found = site_limit.visible_device(services, actor, device)
    return alert_listing.open_of_device(services.engine, found.id)


def acknowledge(
    services: Services, actor: Actor, alert_id: int, note: str, until_ms: int | None = None
) -> ShownAlert:
    """Say that a person works on an open alert, until an instant: nobody else is called meanwhile.

    Raises InvalidInput, NotFound, StoreError.
    """
    now_ms = event_publisher.now_ms()
    ends_ms = now_ms + DEFAULT_MS if until_ms is None else until_ms
    _check_end(ends_ms, now_ms)
    if note:
        maintenance_check.check_reason(note, "note")
    found = _open(services, actor, alert_id)
    given = Acknowledgement(actor.name, note, now_ms, ends_ms)
    after = {"note": note, "until": formatting.instant(ends_ms)}
    entry = AuditEntry("alert.acknowledge", _name(found), after=after)
    if not acknowledgements.acknowledge(services.engine, alert_id, given, actor, entry):
        raise _over(found)
    return _again(services, alert_id)


def unacknowledge(services: Services, actor: Actor, alert_id: int) -> ShownAlert:
    """Take the acknowledgement of an open alert back. Raises InvalidInput, NotFound, StoreError."""
    now_ms = event_publisher.now_ms()
    found = _open(services, actor, alert_id)
    given = alert_sentences.valid_acknowledgement(found, now_ms)
    if given is None:
        hint = f"poller alerts ack {alert_id}"
        raise errors.InvalidInput(f"alert {alert_id} is not acknowledged", hint=hint)
    before = {"by": given.by, "note": given.note, "until": formatting.instant(given.until_ms)}
    entry = AuditEntry("alert.unacknowledge", _name(found), before=before)
    if not acknowledgements.unacknowledge(services.engine, alert_id, now_ms, actor, entry):
        raise _over(found)
    return _again(services, alert_id)


def silence(
    services: Services, actor: Actor, alert_id: int, until_ms: int, reason: str
) -> Maintenance:
    """Tell nobody of an alert until an instant, also if it ends and comes again.

    Raises InvalidInput, NotFound, StoreError.
    """
    now_ms = event_publisher.now_ms()
    found = _open(services, actor, alert_id)
    # The site limits what the silence of an actor of one site covers, and who sees it.
    wanted = TargetFilter(sites=(actor.site,)) if actor.site is not None else ANY
    draft = Maintenance(
        filter=target_filter.text(wanted),
        alert_identity=found.subject.identity(found.rule),
        reason=reason,
        starts_ms=now_ms,
        ends_ms=until_ms,
        created_by=actor.name,
        created_ms=now_ms,
    )
    maintenance_check.check(draft, now_ms)
    after = {"reason": reason, "until": formatting.instant(until_ms)}
    entry = AuditEntry("alert.silence", _name(found), after=after)
    stored_id = maintenance_rows.add(services.engine, draft, actor, entry, alert_id)
    stored = maintenance_rows.by_id(services.engine, stored_id)
    assert stored is not None
    return stored


def _wanted(
    services: Services, actor: Actor, query: AlertQuery, limit: int, before_id: int | None
) -> AlertsWanted:
    """Return a query in terms of SQL."""
    about = _about(services, actor, query.wanted)
    return AlertsWanted(
        states=[state.value for state in query.states or alert_listing.OPEN],
        severities=[severity.value for severity in query.severities],
        rules=query.rules,
        suppressed=query.suppressed,
        since_ms=query.since_ms,
        device_ids=about.device_ids,
        target_ids=about.target_ids,
        sites=about.sites,
        site=actor.site,
        before_id=before_id,
        limit=limit,
    )


@dataclass(frozen=True, slots=True)
class _About:
    device_ids: Collection[int] | None = None
    target_ids: Collection[int] | None = None
    sites: Collection[str] | None = None


def _about(services: Services, actor: Actor, wanted: TargetFilter) -> _About:
    """Return what the filter selects. A filter of sites alone selects alerts of sites, too."""
    if wanted.is_empty:
        return _About()
    limited = site_limit.limited(actor, wanted)
    if limited == TargetFilter(sites=limited.sites):
        target_selection.refuse_unknown_names(services, limited)
        return _About(sites=limited.sites)
    if not limited.selects_targets:
        found = target_selection.select_devices(services, limited)
        return _About(device_ids=[device.id for device in found])
    targets = target_selection.select_targets(services, limited)
    return _About({target.device_id for target in targets}, [target.id for target in targets])


def _visible(services: Services, actor: Actor, alert_id: int) -> Alert:
    found = alert_listing.by_id(services.engine, alert_id)
    if found is None or actor.site not in (None, found.subject.site):
        raise errors.NotFound(f"no alert has the id {alert_id}", hint="poller alerts")
    return found


def _open(services: Services, actor: Actor, alert_id: int) -> Alert:
    found = _visible(services, actor, alert_id)
    if not found.is_open:
        raise _over(found)
    return found


def _over(alert: Alert) -> errors.InvalidInput:
    ended = f" since {formatting.instant(alert.resolved_ms)}" if alert.resolved_ms else ""
    return errors.InvalidInput(
        f"alert {alert.id} is over{ended}", hint=f"poller alerts show {alert.id}"
    )


def _check_end(ends_ms: int, now_ms: int) -> None:
    if ends_ms <= now_ms:
        raise errors.InvalidInput("until: it has passed", hint="for example 4h", field="until")
    if ends_ms - now_ms > LONGEST_MS:
        days = LONGEST_MS // 86_400_000
        text = f"until: it is more than {days} days from now"
        hint = "acknowledge it again then, or make a maintenance"
        raise errors.InvalidInput(text, hint=hint, field="until")


def _again(services: Services, alert_id: int) -> ShownAlert:
    found = alert_listing.by_id(services.engine, alert_id)
    if found is None:
        raise errors.NotFound(f"alert {alert_id} was removed", hint="poller alerts")
    return _shown(services, found)


def _shown(services: Services, alert: Alert) -> ShownAlert:
    return shown_alerts.alert(alert, event_publisher.now_ms(), services.settings.web_url)


def _name(alert: Alert) -> str:
    return f"{alert.rule} {alert_sentences.about(alert)}"
