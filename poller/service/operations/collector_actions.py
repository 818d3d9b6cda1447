"""Release of a collector from isolation or quarantine, with its dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller import errors, event_publisher
from poller.db.record import dead_letter_rows
from poller.db.record.dead_letter_rows import Named, Wanted
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.quarantine import Record
from poller.domain.inventory import did_you_mean
from poller.domain.record.event_kinds import Event, Kind
from poller.presentation import collector_trust
from poller.service import action_audit
from poller.service.operations import letter_actions
from poller.service.operations.letter_actions import Requeued
from poller.state.cluster import quarantine_records
from poller.state.cluster.quarantine_records import Release

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class Held:
    """The evidence against a collector: crash records by release, and dead letters."""

    collector: str
    records: Mapping[Release, Record]
    letters: Sequence[Named]

    def releases(self) -> list[dict[str, Any]]:
        """Each release with its record, as JSON fields."""
        return [
            {"distribution": each.distribution, **collector_trust.describe_record(record)}
            for each, record in self.records.items()
        ]


@dataclass(frozen=True, slots=True)
class Released:
    """A collector that runs like any other again; its dead letters are polled soon."""

    held: Held
    requeued: Requeued
    note: str = ""


def held(services: Services, name: str) -> Held:
    """Return what is held against a collector. Raises NotFound if it is nothing."""
    found = quarantine_records.read(services.redis, services.keys)
    records = {each: record for each, record in found.items() if each.collector == name}
    letters = _letters(services, name)
    # After Redis was emptied there are dead letters without a record.
    if not records and not letters:
        known = {each.collector for each in found} | set(services.registry.collectors)
        did_you_mean.refuse_unknown("collector", name, known, "poller collectors")
        message = f"nothing is held against collector {name}"
        raise errors.NotFound(message, hint="poller collectors")
    return Held(name, records, letters)


def release(
    services: Services,
    actor: Actor,
    name: str,
    when_released: Callable[[Held], None] | None = None,
) -> Released:
    """Remove the crash records of a collector and requeue its dead letters. Raises NotFound.

    `when_released` is called between the two.
    """
    before = held(services, name)
    quarantine_records.release(services.redis, services.keys, name)
    letters = _letters(services, name)  # again: a poll may have been refused meanwhile
    now_ms = services.board.now_ms()
    events = [_event(each, record, now_ms, actor.name) for each, record in before.records.items()]
    event_publisher.publish(services, events)
    was = {each.distribution: record.trust.value for each, record in before.records.items()}
    entry = AuditEntry("collector.release", name, before=was, after={"requeued": len(letters)})
    note = action_audit.record(services, actor, entry)
    if when_released is not None:
        when_released(before)

    requeued = Requeued((), now_ms, 0, 0)
    if letters:
        subject = f"letters of collector {name}"
        requeued = letter_actions.requeue(services, actor, letters, subject)
    return Released(before, requeued, note or requeued.note)


def _letters(services: Services, name: str) -> list[Named]:
    """The dead letters whose reason is the collector's quarantine."""
    query = Wanted(reason=Reason.COLLECTOR_QUARANTINED, collector=name)
    return dead_letter_rows.listing(services.engine, query)


def _event(release: Release, record: Record, now_ms: int, who: str) -> Event:
    data = {
        "collector": release.collector,
        "distribution": release.distribution,
        "who": who,
        "was": record.trust.value,
    }
    message = f"{release} was released by {who}"
    return Event(now_ms, Kind.COLLECTOR_RELEASED, message, data=data)
