"""Releases a collector from isolation or quarantine and requeues its dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from poller import bootstrap, errors, event_publisher
from poller.cli.actions import letter_requeue
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.quarantine import Record
from poller.domain.inventory import did_you_mean
from poller.domain.record.event_kinds import Event, Kind
from poller.presentation import collector_trust
from poller.service import command_actor
from poller.state.cluster import quarantine_records
from poller.state.cluster.quarantine_records import Release

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.record.dead_letter_rows import Named

SCHEMA = "poller.collectors.release/1"
_NO_LETTERS = {"requeued": 0, "opened_by_hand": 0, "not_on_board": 0}


def release(name: str, wait_s: float, dry_run: bool, as_json: bool) -> None:
    """Remove the crash records of a collector and requeue its dead letters. Raises NotFound."""
    services = bootstrap.services()
    records = _records(services, name)
    letters = _letters(services, name)

    # After Redis was emptied there are dead letters without a record.
    if not records and not letters:
        raise _nothing_to_release(services, name)

    item: dict[str, Any] = {
        "collector": name,
        "released": [_released(each, record) for each, record in records.items()],
    }
    if dry_run:
        _print_plan(name, records, letters, item, as_json)
        return

    quarantine_records.release(services.redis, services.keys, name)
    letters = _letters(services, name)  # again: a poll may have been refused meanwhile
    events = [_event(services, each, record) for each, record in records.items()]
    event_publisher.publish(services, events)

    if not as_json:
        for each in records:
            render.echo(f"released {each}: it runs like any other again")

    item |= letter_requeue.requeue(services, letters, wait_s) if letters else _NO_LETTERS
    if letters or as_json:
        letter_requeue.print_requeued(item, SCHEMA, as_json)

    letter_requeue.exit_unless_good(item)


def _print_plan(
    name: str,
    records: Mapping[Release, Record],
    letters: list[Named],
    item: dict[str, Any],
    as_json: bool,
) -> None:
    named = ", ".join(map(str, records)) or f"collector {name}"
    text = f"would release {named} and requeue {letter_requeue.spread_text(len(letters))}"
    plan = {**item, "dry_run": True, "letters": len(letters)}
    render.changed(text, SCHEMA, plan, as_json)


def _records(services: Services, name: str) -> dict[Release, Record]:
    """The crash records of every release of a collector."""
    records = quarantine_records.read(services.redis, services.keys)
    return {each: record for each, record in records.items() if each.collector == name}


def _letters(services: Services, name: str) -> list[Named]:
    """The dead letters whose reason is the collector's quarantine."""
    from poller.db.record import dead_letter_rows
    from poller.db.record.dead_letter_rows import Wanted

    query = Wanted(reason=Reason.COLLECTOR_QUARANTINED, collector=name)
    return dead_letter_rows.listing(inventory_database.database(services), query)


def _nothing_to_release(services: Services, name: str) -> errors.NotFound:
    """The error for a collector without records and letters.

    Raises NotFound for an unknown name.
    """
    installed = services.registry.collectors
    if name not in installed:
        records = quarantine_records.read(services.redis, services.keys)
        names = {each.collector for each in records} | set(installed)
        did_you_mean.refuse_unknown("collector", name, names, "poller collectors")

    return errors.NotFound(f"nothing is held against collector {name}", hint="poller collectors")


def _event(services: Services, release: Release, record: Record) -> Event:
    who = command_actor.operator_name()
    data = {
        "collector": release.collector,
        "distribution": release.distribution,
        "who": who,
        "was": record.trust.value,
    }
    now_ms = services.board.now_ms()
    message = f"{release} was released by {who}"

    return Event(now_ms, Kind.COLLECTOR_RELEASED, message, data=data)


def _released(release: Release, record: Record) -> dict[str, Any]:
    return {"distribution": release.distribution, **collector_trust.describe_record(record)}
