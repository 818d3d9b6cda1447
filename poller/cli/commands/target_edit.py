"""`poller target edit`: changes one target, or all that match a filter."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.actions import bulk_change
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import completion, filter_options, target_arguments
from poller.cli.arguments.filter_options import Where
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.schedule_options import ScheduleOptions
from poller.cli.arguments.target_arguments import OptionalTargetWord
from poller.cli.inventory import inventory_database, target_draft
from poller.cli.output import render
from poller.cli.output.render import Json
from poller.presentation import formatting

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]",
        help="The target's name, if it is not after a slash.",
        autocompletion=completion.targets,
    ),
]


@expand_options
def edit(
    device_name: OptionalTargetWord = None,
    name: Name = None,
    *,
    where: Where = None,
    rename: Annotated[str | None, typer.Option(metavar="NEW", help="New name.")] = None,
    schedule: ScheduleOptions,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="Set an option; KEY= removes it."),
    ] = None,
    require: target_draft.NewRequires = None,
    no_requires: target_draft.NoRequires = False,
    credential: Annotated[
        str | None,
        typer.Option(
            help='New credential; "" for the device\'s.', autocompletion=completion.credentials
        ),
    ] = None,
    enabled: target_draft.Enabled = None,
    bulk: BulkOptions,
    as_json: Json = False,
) -> None:
    """Change a target, or all that match --where. Fields without an option stay as they are."""
    filter_options.refuse_both(device_name, where is not None, "poller target edit --help")
    fields: dict[str, Any] = {
        "name": rename,
        "requires": [] if no_requires else require,
        "credential": credential,
        "enabled": enabled,
        **schedule.fields(),
    }
    options = target_draft.option_changes(option)
    if device_name is None:
        _edit_many(where, fields, options, bulk, as_json)
    else:
        named = target_arguments.one_target(device_name, name)
        _edit_one(named, fields, options, bulk, as_json)


def _edit_one(
    named: tuple[str, str],
    fields: dict[str, Any],
    options: dict[str, Any] | None,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    from poller.service.inventory import target_actions

    device, name = named
    services = bootstrap.services()
    inventory_database.database(services)
    author = inventory_database.author()
    if bulk.dry_run:
        target_actions.check_edit(services, author, device, name, fields, options)
        bulk_change.agreed("change 1 target", [f"{device}/{name}"], bulk, as_json)
        return

    done = target_actions.edit(services, author, device, name, fields, options)
    changed = done.target
    render.notes(done.notes)
    text = f"changed target {changed.full_name}"
    render.changed(text, "poller.target/1", asdict(changed), as_json)


def _edit_many(
    where: str | None,
    fields: dict[str, Any],
    options: dict[str, Any] | None,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    from poller.service.inventory import target_bulk

    if fields["name"] is not None:
        raise errors.InvalidInput(
            "--rename is for one target, not for all that match --where",
            hint="poller target edit DEVICE/TARGET --rename NEW",
        )

    services = bootstrap.services()
    inventory_database.database(services)
    wanted = filter_options.parse_where(where)
    plan = target_bulk.plan_edit(services, inventory_database.author(), wanted, fields, options)
    action = f"change {formatting.counted(len(plan.names), 'target')}"
    if not bulk_change.agreed(action, plan.names, bulk, as_json):
        return

    count = plan.carry_out().changed
    text = f"changed {formatting.counted(count, 'target')}"
    render.changed(text, "poller.target.edit/1", {"changed": count}, as_json)
