"""`poller target`: what is polled on a device, with which collector and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion, key_values, schedule_options, target_arguments
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.schedule_options import ScheduleOptions
from poller.cli.arguments.target_arguments import TargetWord, device_argument, device_only
from poller.cli.inventory import inventory_database, target_draft
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.cli.output.render import Json, Limit
from poller.domain.inventory import draft, duration
from poller.domain.scheduling.schedule import Defaults

if TYPE_CHECKING:
    from poller.db.inventory.targets import Target

app = typer.Typer(no_args_is_help=True, help="What is polled on a device, and how often.")

Device = Annotated[str, device_argument("DEVICE")]
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]",
        help="The target's name, if it is not after a slash.",
        autocompletion=completion.targets,
    ),
]


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
    device_name: Device,
    *,
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
    as_json: Json = False,
) -> None:
    """Add a target to a device."""
    from poller.db.inventory import devices, targets

    engine = inventory_database.database()
    used = credential or devices.show(engine, device_name).credential
    fields = {
        "collector": collector,
        "name": name,
        "requires": require,
        "credential": credential,
        **schedule.fields(),
    }
    target = target_draft.checked(engine, fields, option, used)
    added = asdict(targets.add(engine, device_name, target, inventory_database.wake_up()))
    interval = schedule_options.interval_text(added)
    text = f"added target {device_name}/{added['name']}: {collector} every {interval}"
    render.changed(text, "poller.target/1", added, as_json)


@app.command("list")
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
    collector: Annotated[
        str | None,
        typer.Option(help="Only with this collector.", autocompletion=completion.collectors),
    ] = None,
    limit: Limit = 50,
    after: Annotated[
        str, typer.Option(metavar="DEVICE/TARGET", help="Start after this target.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List targets by device and name."""
    found = _listed(device_name, collector, limit + 1, _after(after))
    shown = found[:limit]
    last = f"{shown[-1].device}/{shown[-1].name}" if len(found) > limit else None
    described = schedule_options.described if as_json else _items
    items = described(shown)
    render.listing("poller.target.list/1", items, COLUMNS, as_json, next=last)

    if as_json:
        return
    if last:
        render.note(f"there are more: --after {last} or a higher --limit")
    elif not shown and (device_name or collector or after):
        render.note("no target matches")
    elif not shown:
        render.note("no targets yet: poller target add DEVICE --collector snmp")


def _items(targets: Sequence[Target]) -> list[dict[str, Any]]:
    return [asdict(target) for target in targets]


def _listed(
    device: str | None, collector: str | None, limit: int, after: tuple[str, str] | None
) -> list[Target]:
    """The targets of a device or of all devices, after the given one."""
    from poller.db.inventory import targets

    engine = inventory_database.database()
    if device is None:
        return targets.listing(engine, collector=collector, limit=limit, after=after)

    found = []
    for target in targets.of_device(engine, device):
        is_after = after is None or (target.device, target.name) > after
        if is_after and collector in (None, target.collector):
            found.append(target)

    return found


def _after(text: str) -> tuple[str, str] | None:
    """The device and target of `--after`."""
    if not text:
        return None

    device, slash, name = text.partition("/")
    if not slash:
        raise errors.InvalidInput(f'--after takes DEVICE/TARGET, not "{text}"')

    return device, name


@app.command("edit")
@expand_options
def edit(
    device_name: TargetWord,
    name: Name = None,
    *,
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
    as_json: Json = False,
) -> None:
    """Change a target. Fields without an option stay as they are."""
    from poller.db.inventory import credential_rows, targets

    fields: dict[str, Any] = {
        "name": rename,
        "requires": [] if no_requires else require,
        "credential": credential,
        "enabled": enabled,
        **schedule.fields(),
    }
    if option is None and all(value is None for value in fields.values()):
        raise errors.InvalidInput("nothing to change", hint="poller target edit --help")

    device_name, name = target_arguments.one_target(device_name, name)
    engine = inventory_database.database()
    old = targets.show(engine, device_name, name)
    fields["options"] = _merged_options(old, option)

    def defaults(_collector: str | None) -> Defaults:
        return schedule_options.defaults_of(old.collector)

    target, problems = draft.target(
        fields, _already_checked, schedule_options.check_staleness, defaults
    )
    draft.raise_first(problems)
    if credential:
        registry = bootstrap.services().registry
        kind = credential_rows.kind(engine, credential)
        inventory_database.check_kind(registry, old.collector, credential, kind)

    changed = targets.edit(engine, device_name, name, target, inventory_database.wake_up())
    text = f"changed target {device_name}/{changed.name}"
    render.changed(text, "poller.target/1", asdict(changed), as_json)


def _merged_options(old: Target, words: list[str] | None) -> dict[str, Any] | None:
    """The stored options with the given ones set or, when empty, removed; then checked."""
    if words is None:
        return None

    registry = bootstrap.services().registry
    given = key_values.pairs(words)
    texts = {key: text for key, text in given.items() if text}
    typed = key_values.typed(registry.get(old.collector).Options, texts)
    unchanged = {key: value for key, value in old.options.items() if key not in given}

    return inventory_database.stored_options(registry, old.collector, unchanged | typed)


def _already_checked(_collector: str, options: Any) -> Any:
    return options


@app.command("rm")
def remove(
    device_name: TargetWord, name: Name = None, yes: Yes = False, as_json: Json = False
) -> None:
    """Remove a target."""
    from poller.db.inventory import targets

    device_name, name = target_arguments.one_target(device_name, name)
    engine = inventory_database.database()
    targets.show(engine, device_name, name)  # an unknown name is refused before the question
    confirm(f"remove target {device_name}/{name}", 1, yes)
    targets.remove(engine, device_name, name, inventory_database.wake_up())
    text = f"removed target {device_name}/{name}"
    render.changed(text, "poller.target.rm/1", {"removed": 1}, as_json)
