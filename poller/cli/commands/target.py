"""`poller target`: what is polled on a device, with which collector and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.actions import bulk_change
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import (
    completion,
    filter_options,
    schedule_options,
    target_arguments,
)
from poller.cli.arguments.filter_options import FilterOptions, Where
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.schedule_options import ScheduleOptions
from poller.cli.arguments.target_arguments import (
    OptionalTargetWord,
    device_argument,
    device_only,
)
from poller.cli.commands import target_edit
from poller.cli.commands.target_edit import Name, target_names
from poller.cli.inventory import inventory_database, target_draft
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.cli.output.render import Json, Limit
from poller.domain.inventory import duration
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.db.inventory.targets import Target

app = typer.Typer(no_args_is_help=True, help="What is polled on a device, and how often.")

OptionalDevice = Annotated[str | None, device_argument("[DEVICE]")]


def _timeout(item: Item) -> str:
    return duration.format_ms(item["timeout_ms"])


COLUMNS = (
    column("DEVICE", "device", fit=Fit.WHOLE),
    column("TARGET", "name", fit=Fit.WHOLE),
    column("COLLECTOR", "collector"),
    Column("POLICY", schedule_options.policy_text),
    Column("INTERVAL", schedule_options.interval_text, right=True),
    Column("TIMEOUT", _timeout, right=True),
    column("CREDENTIAL", "credential"),
    column("OPTIONS", "options"),
    column("ENABLED", "enabled"),
)


@app.command("add")
@expand_options
def add(
    device_name: OptionalDevice = None,
    *,
    where: Where = None,
    collector: Annotated[
        str,
        typer.Option(
            help="The collector that polls it, for example snmp.",
            autocompletion=completion.collectors,
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="Its name on the device.", show_default="the collector's")
    ] = None,
    schedule: ScheduleOptions,
    option: target_draft.Options = None,
    require: target_draft.Requires = None,
    credential: target_draft.CredentialName = None,
    bulk: BulkOptions,
    as_json: Json = False,
) -> None:
    """Add a target to a device, or to all devices that match --where and have none of its name."""
    filter_options.refuse_both(device_name, where is not None, "poller target add --help")
    fields = {
        "collector": collector,
        "name": name,
        "requires": require,
        "credential": credential,
        **schedule.fields(),
    }
    if device_name is None:
        _add_many(where, fields, option, bulk, as_json)
    else:
        _add_one(device_name, fields, option, bulk, as_json)


def _add_one(
    device_name: str,
    fields: Mapping[str, Any],
    option: list[str] | None,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    from poller.db.inventory import devices, targets

    engine = inventory_database.database()
    used = fields["credential"] or devices.show(engine, device_name).credential
    target = target_draft.checked(engine, fields, option, [used])
    if bulk.dry_run:
        bulk_change.agreed("add a target to 1 device", [device_name], bulk, as_json)
        return

    added = asdict(targets.add(engine, device_name, target, inventory_database.author()))
    interval = schedule_options.interval_text(added)
    text = f"added target {device_name}/{added['name']}: {added['collector']} every {interval}"
    render.changed(text, "poller.target/1", added, as_json)


def _add_many(
    where: str | None,
    fields: Mapping[str, Any],
    option: list[str] | None,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    from poller.db.inventory import bulk_edits

    services = bootstrap.services()
    engine = inventory_database.database(services)
    found = filter_options.matching_devices(services, filter_options.parse_where(where))
    ids = [each.id for each in found]
    own = fields["credential"]
    used = [own] if own else list(bulk_edits.credentials_of(engine, ids))
    target = target_draft.checked(engine, fields, option, used)
    action = f"add a target to {formatting.counted(len(found), 'device')}"
    if not bulk_change.agreed(action, [each.name for each in found], bulk, as_json):
        return

    added = bulk_edits.add_targets(engine, ids, target, inventory_database.author())
    present = len(found) - added
    text = f"added {formatting.counted(added, 'target')}"
    if present:
        text += f"; {formatting.counted(present, 'device')} had a target of that name already"
    body = {"added": added, "present": present}
    render.changed(text, "poller.target.add/1", body, as_json)


@app.command("list")
@expand_options
def list_(
    device_name: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEVICE]",
            help="Only of this device.",
            autocompletion=completion.devices,
            callback=device_only,
        ),
    ] = None,
    *,
    selection: FilterOptions,
    limit: Limit = 50,
    after: Annotated[
        str, typer.Option(metavar="DEVICE/TARGET", help="Start after this target.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List targets by device and name."""
    found = _listed(device_name, selection, limit + 1, _after(after))
    shown = found[:limit]
    last = f"{shown[-1].device}/{shown[-1].name}" if len(found) > limit else None
    described = schedule_options.described if as_json else _items
    items = described(shown)
    render.listing("poller.target.list/1", items, COLUMNS, as_json, next=last)

    if as_json:
        return
    if last:
        render.note(f"there are more: --after {last} or a higher --limit")
    elif not shown and (device_name or after or not selection.is_empty):
        render.note("no target matches")
    elif not shown:
        render.note("no targets yet: poller target add DEVICE --collector snmp")


def _items(targets: Sequence[Target]) -> list[dict[str, Any]]:
    return [asdict(target) for target in targets]


def _listed(
    device: str | None, selection: FilterOptions, limit: int, after: tuple[str, str] | None
) -> list[Target]:
    """The targets of a device or of all devices that match, after the given one."""
    from poller.db.inventory import targets

    services = bootstrap.services()
    engine = inventory_database.database(services)
    ids = selection.target_ids(services)
    if device is not None:
        named = {target.id for target in targets.of_device(engine, device)}
        ids = named if ids is None else ids & named

    return targets.listing(engine, ids=ids, limit=limit, after=after)


def _after(text: str) -> tuple[str, str] | None:
    """The device and target of `--after`."""
    if not text:
        return None

    device, slash, name = text.partition("/")
    if not slash:
        raise errors.InvalidInput(f'--after takes DEVICE/TARGET, not "{text}"')

    return device, name


app.command("edit")(target_edit.edit)


@app.command("rm")
@expand_options
def remove(
    device_name: OptionalTargetWord = None,
    name: Name = None,
    *,
    selection: FilterOptions,
    bulk: BulkOptions,
    as_json: Json = False,
) -> None:
    """Remove a target, or all that match a filter."""
    from poller.db.inventory import bulk_edits

    filter_options.refuse_both(device_name, not selection.is_empty, "poller target rm --help")
    services = bootstrap.services()
    engine = inventory_database.database(services)
    if device_name is None:
        found = filter_options.matching_targets(services, selection.parse())
        ids, names = [each.id for each in found], target_names(found)
    else:
        device, target = target_arguments.one_target(device_name, name)
        [target_id] = target_arguments.targets(engine, [f"{device}/{target}"])
        ids, names = [target_id], [f"{device}/{target}"]

    text = f"target {names[0]}" if len(ids) == 1 else f"{len(ids):,} targets"
    if not bulk_change.agreed(f"remove {text}", names, bulk, as_json):
        return

    removed = bulk_edits.remove_targets(engine, ids, inventory_database.author())
    render.changed(f"removed {text}", "poller.target.rm/1", {"removed": removed}, as_json)
