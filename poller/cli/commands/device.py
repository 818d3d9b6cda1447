"""`poller device`: the devices of the network, one at a time or as a whole file."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.actions import bulk_change
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import completion, filter_options, key_values
from poller.cli.arguments.filter_options import FilterOptions, Where
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.schedule_options import ScheduleOptions
from poller.cli.arguments.tag_options import TagOptions
from poller.cli.arguments.target_arguments import device_argument
from poller.cli.commands import (
    device_files,
    device_list,
    device_parents,
    device_show,
    device_stats,
)
from poller.cli.inventory import inventory_database, site_notes, target_draft
from poller.cli.output import render
from poller.cli.output.render import Json
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.inventory.tag_change import TagChange
    from poller.service.inventory.bulk_plan import BulkPlan

app = typer.Typer(no_args_is_help=True, help="Add, list, edit, import and export devices.")

NewName = Annotated[str, typer.Argument(metavar="NAME", help="The device's name.")]
Name = Annotated[str, device_argument("NAME")]
OptionalName = Annotated[str | None, device_argument("[NAME]")]

#: Options that change one device, with the field of each.
_ONE_ONLY = {"--rename": "name", "--address": "address"}


@app.command("add")
@expand_options
def add(
    name: NewName,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS[:PORT]",
            help="IP address or host name; the port is an option of its target.",
        ),
    ],
    *,
    site: Annotated[
        str | None,
        typer.Option(
            help="The device's site; a new name makes a new site.",
            autocompletion=completion.sites,
        ),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A word for filters. Repeat for more.")
    ] = None,
    require: target_draft.Requires = None,
    credential: target_draft.CredentialName = None,
    parent: Annotated[
        str | None,
        typer.Option(
            help="The device through which it is reached.", autocompletion=completion.devices
        ),
    ] = None,
    collector: Annotated[
        str | None,
        typer.Option(
            help='The collector of its first target; "" for no target.',
            show_default="POLLER_DEFAULT_COLLECTOR",
            autocompletion=completion.collectors,
        ),
    ] = None,
    schedule: ScheduleOptions,
    option: target_draft.Options = None,
    as_json: Json = False,
) -> None:
    """Add a device and its first target."""
    from poller.service.inventory import device_actions

    fields = {
        "name": name,
        "address": address,
        "site": site,
        "credential": credential,
        "tags": tag,
        "requires": require,
        "parent": parent,
    }
    services = bootstrap.services()
    inventory_database.database(services, create=True)
    if collector is None:
        collector = services.settings.default_collector

    targets = []
    options = key_values.pairs(option or ())
    if collector:
        targets = [{"collector": collector, **schedule.fields(), "options": options}]
    else:
        _refuse_target_options({**schedule.fields(), "option": option})

    done = device_actions.add(services, inventory_database.author(), fields, targets)
    added = done.device
    text = f"added device {name} ({added.address})"
    if collector:
        text += f", polled with {collector}"

    then = "" if targets else f"poller target add {name} --collector snmp"
    render.notes(done.notes)
    render.changed(text, "poller.device/1", asdict(added), as_json, then)
    site_notes.print_notes(done.new_sites)


def _refuse_target_options(fields: dict[str, Any]) -> None:
    """Raise InvalidInput if an option of a target is given although no target is added."""
    given = [f"--{name}" for name, value in fields.items() if value]
    if given:
        verb = "belongs" if len(given) == 1 else "belong"
        raise errors.InvalidInput(
            f"{', '.join(given)} {verb} to a target", hint="add --collector, for example snmp"
        )


@app.command("edit")
@expand_options
def edit(
    name: OptionalName = None,
    *,
    where: Where = None,
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS[:PORT]", help="New address.")
    ] = None,
    rename: Annotated[str | None, typer.Option(metavar="NEW", help="New name.")] = None,
    site: Annotated[
        str | None, typer.Option(help='New site; "" for none.', autocompletion=completion.sites)
    ] = None,
    tags: TagOptions,
    require: target_draft.NewRequires = None,
    no_requires: target_draft.NoRequires = False,
    credential: Annotated[
        str | None,
        typer.Option(help='New credential; "" for none.', autocompletion=completion.credentials),
    ] = None,
    enabled: target_draft.Enabled = None,
    parent: Annotated[
        str | None,
        typer.Option(help='New parent; "" for none.', autocompletion=completion.devices),
    ] = None,
    bulk: BulkOptions,
    as_json: Json = False,
) -> None:
    """Change a device, or all that match --where. Fields without an option stay as they are."""
    filter_options.refuse_both(name, where is not None, "poller device edit --help")
    changes: dict[str, Any] = {
        "name": rename,
        "address": address,
        "site": site,
        "credential": credential,
        "tags": tags.replacement(),
        "requires": [] if no_requires else require,
        "enabled": enabled,
        "parent": parent,
    }
    if name is None:
        _edit_many(where, changes, tags.change(), bulk, as_json)
    else:
        _edit_one(name, changes, tags.change(), bulk, as_json)


def _edit_one(
    name: str,
    changes: dict[str, Any],
    tags: TagChange | None,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    from poller.service.inventory import device_actions

    services = bootstrap.services()
    inventory_database.database(services)
    author = inventory_database.author()
    if bulk.dry_run:
        checked = device_actions.check_edit(services, author, name, changes, tags)
        render.notes(checked.notes)
        bulk_change.agreed("change 1 device", [name], bulk, as_json)
        site_notes.print_notes(checked.new_sites, dry_run=True)
        return

    done = device_actions.edit(services, author, name, changes, tags)
    text = f"changed device {done.device.name}"
    render.notes(done.notes)
    render.changed(text, "poller.device/1", asdict(done.device), as_json)
    site_notes.print_notes(done.new_sites)


def _edit_many(
    where: str | None,
    changes: dict[str, Any],
    tags: TagChange | None,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    from poller.service.inventory import device_bulk

    given = [option for option, key in _ONE_ONLY.items() if changes[key] is not None]
    if given:
        raise errors.InvalidInput(
            f"{', '.join(given)} is for one device, not for all that match --where",
            hint="poller device edit NAME " + given[0],
        )

    services = bootstrap.services()
    inventory_database.database(services)
    wanted = filter_options.parse_where(where)
    plan = device_bulk.plan_edit(services, inventory_database.author(), wanted, changes, tags)
    action = f"change {formatting.counted(len(plan.names), 'device')}"
    if not bulk_change.agreed(action, plan.names, bulk, as_json):
        site_notes.print_notes(plan.new_sites, dry_run=True)
        return

    count = plan.carry_out().changed
    text = f"changed {formatting.counted(count, 'device')}"
    render.changed(text, "poller.device.edit/1", {"changed": count}, as_json)
    site_notes.print_notes(plan.new_sites)


@app.command("rm")
@expand_options
def remove(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help='Names, or "-" to read them from stdin.',
            autocompletion=completion.devices,
        ),
    ] = None,
    *,
    selection: FilterOptions,
    bulk: BulkOptions,
    as_json: Json = False,
) -> None:
    """Remove devices with their targets: by name, or all that match a filter."""
    filter_options.refuse_both(names, not selection.is_empty, "poller device rm --help")
    services = bootstrap.services()
    inventory_database.database(services)
    plan = _removal(services, names, selection)
    count = len(plan.names)
    text = f"device {plan.names[0]}" if count == 1 else f"{count:,} devices"
    whose = "its" if count == 1 else "their"
    action = f"remove {text} and all {whose} targets"
    if not bulk_change.agreed(action, plan.names, bulk, as_json):
        return

    done = plan.carry_out()
    text = f"removed {text} and {formatting.counted(done.targets_removed, 'target')}"
    body = {"removed": count, "targets_removed": done.targets_removed}
    render.changed(text, "poller.device.rm/1", body, as_json)


def _removal(services: Services, names: list[str] | None, selection: FilterOptions) -> BulkPlan:
    """The removal of the named devices, or of those that match. Raises NotFound."""
    from poller.service.inventory import device_bulk

    author = inventory_database.author()
    if not names:
        return device_bulk.plan_removal(services, author, selection.parse())
    if names == ["-"]:
        names = sys.stdin.read().split()
    return device_bulk.plan_removal_of(services, author, names)


app.command("list")(device_list.list_)
app.command("show")(device_show.show)
app.command("import")(device_files.import_)
app.command("export")(device_files.export)
app.command("stats")(device_stats.stats)
app.command("parent")(device_parents.parent)
app.command("parents")(device_parents.parents)
