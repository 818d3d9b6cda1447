"""All that the page of one device begins with: why, targets, strip, attempts, newest events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from poller import errors, event_publisher
from poller.db.inventory.devices import Device
from poller.db.inventory.targets import Target
from poller.db.record import runs_by_slot
from poller.db.record.event_rows import RecordedEvent
from poller.db.record.run_pages import NamedRun
from poller.domain.access.actor import Actor
from poller.domain.failures.outcome import Result
from poller.domain.fleet.day_slots import SLOT_MS
from poller.domain.record import slot_strip
from poller.domain.record.slot_strip import StripSlot
from poller.domain.why.explanation import Explanation
from poller.presentation import device_state
from poller.presentation.device_state import DeviceState
from poller.service import target_explanation
from poller.service.alerts import alert_actions, shown_alerts
from poller.service.alerts.shown_alerts import ShownAlert
from poller.service.inventory import device_actions
from poller.service.record import event_listing, run_listing
from poller.service.record.event_listing import EventQuery
from poller.service.record.run_listing import RunQuery

if TYPE_CHECKING:
    from poller.bootstrap import Services

ATTEMPTS = 20
#: Attempts of one selected slot: half an hour of a poll every 20 seconds and more.
ATTEMPTS_OF_SLOT = 100
#: Outcomes for which a slot is selected.
_NOT_GOOD = (Result.FAILED, Result.REFUSED, Result.PARTIAL)
EVENTS = 8
#: Alerts of one device that are shown; a link leads to all.
ALERTS = 20


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """A device as it was read. `slots` are those of all its targets together."""

    device: Device
    targets: Sequence[Target]
    state: DeviceState
    explanations: Sequence[Explanation]  # the worst first
    slots: Sequence[StripSlot]
    slots_of: Mapping[int, Sequence[StripSlot]]  # by target id
    attempts: Sequence[NamedRun]
    events: Sequence[RecordedEvent]
    alerts: Sequence[ShownAlert]  # those that are open, the oldest first


def read(
    services: Services, actor: Actor, name: str, now_ms: int, slot_ms: int | None = None
) -> DeviceReport:
    """Read a device. `slot_ms`: attempts are those of this slot, not the newest.

    Raises NotFound, StoreError.
    """
    device, targets = device_actions.show(services, actor, name)
    ids = [target.id for target in targets]
    first_ms = slot_strip.first_slot_ms(now_ms)
    counts = runs_by_slot.counts(services.engine, ids, first_ms, now_ms)
    every = [count for counts_of_target in counts.values() for count in counts_of_target]
    return DeviceReport(
        device=device,
        targets=targets,
        state=device_state.read(services, name, ids),
        explanations=target_explanation.explain_device(services, name, with_runs=False),
        slots=slot_strip.strip(every, now_ms),
        slots_of={key: slot_strip.strip(found, now_ms) for key, found in counts.items()},
        attempts=_attempts(services, actor, name, slot_ms) if targets else [],
        events=newest_events(services, actor, name, EVENTS),
        alerts=open_alerts(services, actor, name),
    )


def open_alerts(services: Services, actor: Actor, name: str) -> Sequence[ShownAlert]:
    """Return the open alerts of a device and its targets, the oldest first."""
    now_ms = event_publisher.now_ms()
    found = alert_actions.of_device(services, actor, name)
    return [shown_alerts.alert(each, now_ms) for each in found[:ALERTS]]


def newest_events(
    services: Services, actor: Actor, name: str, limit: int
) -> Sequence[RecordedEvent]:
    """Return the newest events of a device; none for one without any."""
    wanted = event_listing.event_filter(services, actor, EventQuery(device=name))
    try:
        return event_listing.page(services, wanted, limit).events
    except errors.NotFound:
        return []


def _attempts(
    services: Services, actor: Actor, name: str, slot_ms: int | None
) -> Sequence[NamedRun]:
    """The newest attempts; of a slot with very many the newest, and those that were not good."""
    if slot_ms is None:
        return run_listing.newest(services, actor, RunQuery(device=name), ATTEMPTS)
    query = RunQuery(device=name, since_ms=slot_ms, until_ms=slot_ms + SLOT_MS)
    found = run_listing.newest(services, actor, query, ATTEMPTS_OF_SLOT)
    if len(found) < ATTEMPTS_OF_SLOT:
        return found
    bad = replace(query, outcomes=_NOT_GOOD)
    both = [*found, *run_listing.newest(services, actor, bad, ATTEMPTS_OF_SLOT)]
    by_key = {(each.run.plan_ms, each.run.target_id): each for each in both}
    return [by_key[key] for key in sorted(by_key, reverse=True)]
