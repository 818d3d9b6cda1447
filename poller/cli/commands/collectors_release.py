"""How far is each collector trusted? What `poller collectors` shows of crashes, and how one is released."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from poller import bootstrap, errors, event_publisher
from poller.cli.arguments import target_arguments
from poller.cli.commands import deadletter
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.quarantine import Record
from poller.domain.record.event_kinds import Event, Kind
from poller.presentation import collector_trust, formatting
from poller.presentation.collector_trust import Known
from poller.state.cluster import quarantine_records
from poller.state.cluster.quarantine_records import Release

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.record.dead_letter_rows import Named

COLUMNS = (
    column("DOUBTED", "collector", fit=Fit.WHOLE),
    column("FROM", "distribution", fit=Fit.WHOLE),
    column("STATE", "state", fit=Fit.WHOLE),
    Column(
        "FOR",
        lambda item: formatting.age(item["since_seconds"] * 1000) if item["since"] else "",
        right=True,
    ),
    column("CRASHES", "crashes", right=True),
    column("LAST REASON", "reason", fit=Fit.WRAP),
)


def read() -> Known:
    """Of a Redis that is away only a note is made: what is installed can be listed without it."""
    services = bootstrap.services()
    try:
        return collector_trust.read(services)
    except errors.StoreError as error:
        render.note(
            f"note: which collectors are isolated or quarantined is not known: {error.message}"
        )
        return Known(None, collector_trust.declared(services))


def release(name: str, wait_s: float, dry_run: bool, as_json: bool) -> None:
    services = bootstrap.services()
    held = {each: found for each, found in _read(services).items() if each.collector == name}
    letters = _letters(services, name)
    if not (held or letters):  # a Redis that was emptied forgets why its targets are dead letters
        _refuse(services, name)
    item: dict[str, Any] = {
        "collector": name,
        "released": [_told(each, found) for each, found in held.items()],
    }
    if dry_run:
        named = ", ".join(map(str, held)) or f"collector {name}"
        text = f"would release {named} and requeue {deadletter.spread(len(letters))}"
        render.changed(
            text,
            "poller.collectors.release/1",
            {**item, "dry_run": True, "letters": len(letters)},
            as_json,
        )
        return
    quarantine_records.release(services.redis, services.keys, name)
    letters = _letters(services, name)  # also what was refused until just now
    event_publisher.publish(
        services, [_event(services, each, found) for each, found in held.items()]
    )
    if held and not as_json:
        render.echo("\n".join(f"released {each}: it runs like any other again" for each in held))
    item |= (
        deadletter.try_again(services, letters, wait_s)
        if letters
        else {"requeued": 0, "barred": 0, "not_on_board": 0}
    )
    if letters or as_json:
        deadletter.say_requeued(item, "poller.collectors.release/1", as_json)
    deadletter.leave(item)


def _read(services: Services) -> dict[Release, Record]:
    return quarantine_records.read(services.redis, services.keys)


def _letters(services: Services, name: str) -> list[Named]:
    from poller.db.record import dead_letter_rows
    from poller.db.record.dead_letter_rows import Wanted

    wanted = replace(Wanted(), reason=Reason.COLLECTOR_QUARANTINED, collector=name)
    return dead_letter_rows.listing(inventory_database.database(services), wanted)


def _refuse(services: Services, name: str) -> None:
    known = {each.collector for each in _read(services)}
    if name not in services.registry.collectors:
        target_arguments.refuse_unknown(
            "collector",
            name,
            sorted(known | set(services.registry.collectors)),
            "poller collectors",
        )
    raise errors.NotFound(f"nothing is held against collector {name}", hint="poller collectors")


def _event(services: Services, release: Release, found: Record) -> Event:
    who = target_arguments.who()
    data = {
        "collector": release.collector,
        "distribution": release.distribution,
        "who": who,
        "was": found.trust.value,
    }
    return Event(
        services.board.now_ms(),
        Kind.COLLECTOR_RELEASED,
        f"{release} was released by {who}",
        data=data,
    )


def _told(release: Release, found: Record) -> dict[str, Any]:
    return {"distribution": release.distribution, **collector_trust.view(found)}
