"""Actions on maintenances and silences: list, add, end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from poller import errors, event_publisher
from poller.db.alerts import maintenance_rows
from poller.db.alerts.maintenance_rows import MaintenanceQuery
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts import maintenance_check
from poller.domain.alerts.maintenance import Maintenance
from poller.domain.inventory import duration, target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service import site_limit, target_selection

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Rows that are read to fill a page for an actor of one site.
_SCANNED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceDraft:
    """The request of a person. Instants are UTC milliseconds; `starts_ms` None is now."""

    where: str = ""
    rule: str = ""
    reason: str = ""
    starts_ms: int | None = None
    ends_ms: int
    cron: str = ""
    time_zone: str = "UTC"
    length_ms: int = 0


@dataclass(frozen=True, slots=True)
class ShownMaintenance:
    """One maintenance. `state` is `active`, `waiting` for its next window, or `over`."""

    id: int
    state: str
    where: str
    rule: str
    alert: str  # the identity of the alert that it silences; "": none alone
    reason: str
    start: datetime | None
    end: datetime | None
    cron: str
    time_zone: str
    length_seconds: int
    active_until: datetime | None
    next_start: datetime | None
    created_by: str
    created: datetime | None


@dataclass(frozen=True, slots=True)
class MaintenancePage:
    """A page of maintenances, the newest first. `next_id` is None on the last page."""

    items: Sequence[ShownMaintenance]
    next_id: int | None


def page(
    services: Services, actor: Actor, over: bool, limit: int, before_id: int | None = None
) -> MaintenancePage:
    """Return maintenances, the newest first; those that are over if wanted. Raises StoreError.

    An actor of one site sees those that are limited to that site; such a page can be short.
    """
    now_ms = event_publisher.now_ms()
    rows = limit if actor.site is None else _SCANNED
    query = MaintenanceQuery(over, rows + 1, before_id)
    found = maintenance_rows.page(services.engine, query, now_ms)
    visible = [each for each in found[:rows] if _is_visible(actor, each)]
    items = [shown(each, now_ms) for each in visible[:limit]]
    if len(visible) > limit:
        return MaintenancePage(items, items[-1].id)
    return MaintenancePage(items, found[rows - 1].id if len(found) > rows else None)


def show(services: Services, actor: Actor, maintenance_id: int) -> ShownMaintenance:
    """Return one maintenance. Raises NotFound, StoreError."""
    return shown(_visible(services, actor, maintenance_id), event_publisher.now_ms())


def add(services: Services, actor: Actor, draft: MaintenanceDraft) -> ShownMaintenance:
    """Tell nobody of what matches, in the windows of the draft; monitoring goes on.

    Raises InvalidInput, UnknownName for a site, a collector or a rule that does not exist,
    NotAllowed for another site, StoreError.
    """
    now_ms = event_publisher.now_ms()
    checked = Maintenance(
        filter=_limited(services, actor, draft),
        rule=draft.rule,
        reason=draft.reason,
        starts_ms=now_ms if draft.starts_ms is None else draft.starts_ms,
        ends_ms=draft.ends_ms,
        cron=draft.cron,
        time_zone=draft.time_zone,
        length_ms=draft.length_ms,
        created_by=actor.name,
        created_ms=now_ms,
    )
    maintenance_check.check(checked, now_ms)
    if checked.rule:
        maintenance_rows.refuse_unknown_rule(services.engine, checked.rule)
    entry = AuditEntry("maintenance.add", _subject(checked), after=_fields(checked))
    stored_id = maintenance_rows.add(services.engine, checked, actor, entry)
    return show(services, actor, stored_id)


def end(services: Services, actor: Actor, maintenance_id: int) -> ShownMaintenance:
    """End a maintenance now. Raises InvalidInput if it is over, NotFound, StoreError."""
    now_ms = event_publisher.now_ms()
    found = _visible(services, actor, maintenance_id)
    entry = AuditEntry("maintenance.end", _subject(found), before=_fields(found))
    if not maintenance_rows.end(services.engine, maintenance_id, now_ms, actor, entry):
        ended = formatting.instant(found.ends_ms)
        hint = "poller maintenance list --over"
        text = f"maintenance {maintenance_id} is over since {ended}"
        raise errors.InvalidInput(text, hint=hint)
    return show(services, actor, maintenance_id)


def shown(of: Maintenance, now_ms: int) -> ShownMaintenance:
    """Return a maintenance as people and programs see it."""
    window = of.window(now_ms)
    following = of.next_window(now_ms)
    state = "active" if window else "waiting" if following else "over"
    return ShownMaintenance(
        id=of.id,
        state=state,
        where=of.filter,
        rule=of.rule,
        alert=of.alert_identity,
        reason=of.reason,
        start=formatting.moment(of.starts_ms),
        end=formatting.moment(of.ends_ms),
        cron=of.cron,
        time_zone=of.time_zone if of.recurs else "",
        length_seconds=of.length_ms // 1000,
        active_until=formatting.moment(window.until_ms) if window else None,
        next_start=formatting.moment(following.since_ms) if following else None,
        created_by=of.created_by,
        created=formatting.moment(of.created_ms),
    )


def _limited(services: Services, actor: Actor, draft: MaintenanceDraft) -> str:
    """Return the filter, with the actor's site. Raises InvalidInput, UnknownName, NotAllowed."""
    if not draft.where and actor.site is None:
        return ""
    wanted = target_filter.parse(draft.where)
    limited = site_limit.limited(actor, wanted)
    if draft.where:
        target_filter.parse_nonempty(draft.where, "where")
        target_selection.refuse_unknown_names(services, limited)
    return target_filter.text(limited)


def _visible(services: Services, actor: Actor, maintenance_id: int) -> Maintenance:
    found = maintenance_rows.by_id(services.engine, maintenance_id)
    if found is None or not _is_visible(actor, found):
        text = f"no maintenance has the id {maintenance_id}"
        raise errors.NotFound(text, hint="poller maintenance list")
    return found


def _is_visible(actor: Actor, of: Maintenance) -> bool:
    if actor.site is None:
        return True
    wanted = target_filter.parse(of.filter)
    return wanted.sites == TargetFilter(sites=(actor.site,)).sites


def _subject(of: Maintenance) -> str:
    parts = [of.filter, f"rule {of.rule}" if of.rule else "", of.alert_identity]
    return " ".join(part for part in parts if part)


def _fields(of: Maintenance) -> dict[str, str]:
    fields = {
        "reason": of.reason,
        "start": formatting.instant(of.starts_ms),
        "end": formatting.instant(of.ends_ms),
    }
    if of.recurs:
        length = duration.format_ms(of.length_ms)
        fields |= {"cron": of.cron, "time_zone": of.time_zone, "length": length}
    return fields
