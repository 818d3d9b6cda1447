"""`poller target edit`: changes one target, or all that match a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
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
from poller.cli.arguments.filter_options import Where
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.schedule_options import ScheduleOptions
from poller.cli.arguments.target_arguments import (
    OptionalTargetWord,
)
from poller.cli.inventory import inventory_database, target_draft
from poller.cli.output import render
from poller.cli.output.render import Json
from poller.domain.inventory import draft
from poller.domain.inventory.draft import TargetDraft
from poller.domain.scheduling.schedule import Defaults
from poller.presentation import formatting

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.inventory.filter_conditions import SelectedTarget

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
    if option is None and all(value is None for value in fields.values()):
        raise errors.InvalidInput("nothing to change", hint="poller target edit --help")

    if device_name is None:
        _edit_many(where, fields, option, bulk, as_json)
    else:
        named = target_arguments.one_target(device_name, name)
        _edit_one(named, fields, option, bulk, as_json)


def _edit_one(
    named: tuple[str, str],
    fields: dict[str, Any],
    option: list[str] | None,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    from poller.db.inventory import targets

    device_name, name = named
    engine = inventory_database.database()
    old = targets.show(engine, device_name, name)
    _check_credential(engine, fields["credential"], old.collector)
    target = _changes(fields, option, old.collector, old.options)
    if bulk.dry_run:
        bulk_change.agreed("change 1 target", [f"{device_name}/{name}"], bulk, as_json)
        return

    changed = targets.edit(engine, device_name, name, target, inventory_database.author())
    text = f"changed target {device_name}/{changed.name}"
    render.changed(text, "poller.target/1", asdict(changed), as_json)


def _edit_many(
    where: str | None,
    fields: dict[str, Any],
    option: list[str] | None,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    from poller.db.inventory import bulk_edits

    if fields["name"] is not None:
        raise errors.InvalidInput(
            "--rename is for one target, not for all that match --where",
            hint="poller target edit DEVICE/TARGET --rename NEW",
        )

    services = bootstrap.services()
    engine = inventory_database.database(services)
    found = filter_options.matching_targets(services, filter_options.parse_where(where))
    _refuse_mixed(found, option)
    for collector in {each.collector for each in found}:
        _check_credential(engine, fields["credential"], collector)

    draft_of = partial(_changes, fields, option)
    ids = [each.id for each in found]
    bulk_edits.check_target_edits(engine, ids, draft_of)
    action = f"change {formatting.counted(len(found), 'target')}"
    if not bulk_change.agreed(action, target_names(found), bulk, as_json):
        return

    count = bulk_edits.edit_targets(engine, ids, draft_of, inventory_database.author())
    text = f"changed {formatting.counted(count, 'target')}"
    render.changed(text, "poller.target.edit/1", {"changed": count}, as_json)


def _refuse_mixed(found: Sequence[SelectedTarget], option: list[str] | None) -> None:
    """Raise InvalidInput for options of a collector if targets of several collectors match."""
    collectors = sorted({each.collector for each in found})
    if option and len(collectors) > 1:
        raise errors.InvalidInput(
            f"--option is of one collector, and targets of {' and '.join(collectors)} match",
            hint=f"add collector:{collectors[0]} to --where",
        )


def target_names(found: Sequence[SelectedTarget]) -> list[str]:
    return [f"{each.device}/{each.name}" for each in found]


def _check_credential(engine: Engine, credential: str | None, collector: str) -> None:
    """Raise InvalidInput if the collector cannot use a credential of that kind."""
    from poller.db.inventory import credential_rows

    if credential:
        kind = credential_rows.kind(engine, credential)
        registry = bootstrap.services().registry
        inventory_database.check_kind(registry, collector, credential, kind)


def _changes(
    fields: Mapping[str, Any],
    option: list[str] | None,
    collector: str,
    stored_options: Mapping[str, Any],
) -> TargetDraft:
    """The checked changes of a target with this collector and these options."""

    def defaults(_collector: str | None) -> Defaults:
        return schedule_options.defaults_of(collector)

    options = _merged_options(collector, stored_options, option)
    target, problems = draft.target(
        {**fields, "options": options},
        _already_checked,
        schedule_options.check_staleness,
        defaults,
    )
    draft.raise_first(problems)
    return target


def _merged_options(
    collector: str, stored: Mapping[str, Any], words: list[str] | None
) -> dict[str, Any] | None:
    """The stored options with the given ones set or, when empty, removed; then checked."""
    if words is None:
        return None

    registry = bootstrap.services().registry
    given = key_values.pairs(words)
    texts = {key: text for key, text in given.items() if text}
    typed = key_values.typed(registry.get(collector).Options, texts)
    unchanged = {key: value for key, value in stored.items() if key not in given}

    return inventory_database.stored_options(registry, collector, unchanged | typed)


def _already_checked(_collector: str, options: Any) -> Any:
    return options
