"""`poller target`: what is polled on a device, with which collector and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.actions import bulk_change
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import (
    completion,
    filter_options,
    key_values,
    schedule_options,
    target_arguments,
)
from poller.cli.arguments.filter_options import FilterOptions, Where
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.schedule_options import ScheduleOptions
from poller.cli.arguments.target_arguments import (
    OptionalTargetWord,
    TargetWord,
    device_argument,
    device_only,
)
from poller.cli.commands import target_edit
from poller.cli.commands.target_edit import Name
from poller.cli.inventory import inventory_database, target_draft
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.cli.output.render import Json, Limit
from poller.domain.inventory import duration, key_position, target_filter
from poller.domain.inventory.key_position import Position
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.inventory.targets import Target
    from poller.domain.inventory.target_filter import TargetFilter
    from poller.service.inventory.target_actions import TargetPage

app = typer.Typer(no_args_is_help=True, help="What is polled on a device, and how often.")

OptionalDevice = Annotated[str | None, device_argument("[DEVICE]")]


def _timeout(item: Item) -> str:
    return duration.format_ms(item["timeout_ms"])


COLUMNS = (
    column("DEVICE", "device", fit=Fit.WHOLE),
    column("TARGET", "name", fit=Fit.WHOLE),
    column("COLLECTOR", "collector", fit=Fit.WHOLE),
    Column("POLICY", schedule_options.policy_text),
    Column("INTERVAL", schedule_options.interval_text, right=True, minimum=8),
    Column("TIMEOUT", _timeout, right=True),
    column("CREDENTIAL", "credential"),
    column("OPTIONS", "options"),
    column("ENABLED", "enabled"),
    column("ID", "id", right=True, fit=Fit.WHOLE, spare=1),
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
        "options": key_values.pairs(option or ()),
        **schedule.fields(),
    }
    if device_name is None:
        _add_many(where, fields, bulk, as_json)
    else:
        _add_one(device_name, fields, bulk, as_json)


def _add_one(device: str, fields: Mapping[str, Any], bulk: BulkOptions, as_json: bool) -> None:
    from poller.service.inventory import target_actions

    services = bootstrap.services()
    inventory_database.database(services)
    author = inventory_database.author()
    if bulk.dry_run:
        _, notes = target_actions.check_add(services, author, device, fields)
        render.notes(notes)
        bulk_change.agreed("add a target to 1 device", [device], bulk, as_json)
        return

    done = target_actions.add(services, author, device, fields)
    added = asdict(done.target)
    interval = schedule_options.interval_text(added)
    text = f"added target {device}/{added['name']}: {added['collector']} every {interval}"
    render.notes(done.notes)
    render.changed(text, "poller.target/1", added, as_json)


def _add_many(
    where: str | None, fields: Mapping[str, Any], bulk: BulkOptions, as_json: bool
) -> None:
    from poller.service.inventory import device_bulk

    services = bootstrap.services()
    inventory_database.database(services)
    wanted = filter_options.parse_where(where)
    plan = device_bulk.plan_targets(services, inventory_database.author(), wanted, fields)
    render.notes(plan.notes)
    action = f"add a target to {formatting.counted(len(plan.names), 'device')}"
    if not bulk_change.agreed(action, plan.names, bulk, as_json):
        return

    done = plan.carry_out()
    present = done.matched - done.changed
    text = f"added {formatting.counted(done.changed, 'target')}"
    if present:
        text += f"; {formatting.counted(present, 'device')} had a target of that name already"
    body = {"added": done.changed, "present": present}
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
    services = bootstrap.services()
    inventory_database.database(services)
    wanted = target_filter.ANY if selection.is_empty else selection.parse()
    found = _listed(services, device_name, wanted, limit, _after(after))
    last = found.last.text if found.last else None
    described = schedule_options.described if as_json else _items
    items = described(found.targets)
    render.listing("poller.target.list/1", items, COLUMNS, as_json, next=last)

    if as_json:
        return
    if last:
        render.note(f"there are more: --after {last} or a higher --limit")
    elif not items and (device_name or after or not selection.is_empty):
        render.note("no target matches")
    elif not items:
        render.note("no targets yet: poller target add DEVICE --collector snmp")


def _items(targets: Sequence[Target]) -> list[dict[str, Any]]:
    return [asdict(target) for target in targets]


def _listed(
    services: Services,
    device: str | None,
    wanted: TargetFilter,
    limit: int,
    after: Position | None,
) -> TargetPage:
    """The targets of a device, or of all devices that match, after the given one."""
    from poller.service.inventory import target_actions

    actor = command_actor.of_command()
    if device is None:
        return target_actions.page(services, actor, wanted, limit, after, fill=True)
    every = target_actions.of_device(services, actor, device, wanted)
    every.sort(key=attrgetter("name"))
    rest = [each for each in every if after is None or (each.device, each.name) > after]
    last = Position(device, rest[limit - 1].name) if len(rest) > limit else None
    return target_actions.TargetPage(rest[:limit], last)


def _after(text: str) -> Position | None:
    """The device and target of `--after`."""
    if not text:
        return None

    found = key_position.parse(text)
    if found.target is None:
        raise errors.InvalidInput(f'--after takes DEVICE/TARGET, not "{text}"')

    return found


@app.command("show")
def show(device_name: TargetWord, name: Name = None, as_json: Json = False) -> None:
    """Show one target, and why it is polled as it is."""
    from poller.service import target_explanation
    from poller.service.inventory import target_actions

    device, target = target_arguments.one_target(device_name, name)
    services = bootstrap.services()
    inventory_database.database(services)
    found = target_actions.show(services, command_actor.of_command(), device, target)
    [item] = schedule_options.described([found])
    if as_json:
        render.document("poller.target/1", item)
        return
    render.record("poller.target/1", _in_words(item), as_json=False)
    [why] = target_explanation.explain_device(services, device, target, with_runs=False)
    render.echo(f"\n{why.sentence}")
    render.note(f"all details: poller why {found.full_name}")


def _in_words(item: Item) -> dict[str, Any]:
    """A target with durations as people write them."""
    named = ("id", "device", "site", "name", "collector", "options", "credential", "requires")
    return {
        **{name: item[name] for name in named},
        "policy": schedule_options.policy_text(item),
        "interval": schedule_options.interval_text(item),
        "timeout": _timeout(item),
        "enabled": item["enabled"],
    }


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
    from poller.service.inventory import target_bulk

    filter_options.refuse_both(device_name, not selection.is_empty, "poller target rm --help")
    services = bootstrap.services()
    inventory_database.database(services)
    author = inventory_database.author()
    if device_name is None:
        plan = target_bulk.plan_removal(services, author, selection.parse())
    else:
        device, target = target_arguments.one_target(device_name, name)
        plan = target_bulk.plan_removal_of(services, author, device, target)

    count = len(plan.names)
    text = f"target {plan.names[0]}" if count == 1 else f"{count:,} targets"
    if not bulk_change.agreed(f"remove {text}", plan.names, bulk, as_json):
        return

    removed = plan.carry_out().changed
    render.changed(f"removed {text}", "poller.target.rm/1", {"removed": removed}, as_json)
