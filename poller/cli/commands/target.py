"""`poller target`: what is polled on a device, with which collector and how often."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion, interval_arguments, key_values, target_arguments
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.arguments.target_arguments import One, device_argument, device_only
from poller.cli.commands import device
from poller.cli.commands.device import (
    CredentialName,
    Interval,
    Max,
    Min,
    Options,
    Policy,
    Requires,
    Staleness,
    Timeout,
)
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column
from poller.cli.output.render import Json
from poller.domain.inventory import draft, duration

app = typer.Typer(no_args_is_help=True, help="What is polled on a device, and how often.")

Device = Annotated[str, device_argument("DEVICE")]
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]",
        help="The target's name, if not behind a slash.",
        autocompletion=completion.targets,
    ),
]

COLUMNS = (
    column("DEVICE", "device", fit=Fit.WHOLE),
    column("TARGET", "name", fit=Fit.WHOLE),
    column("COLLECTOR", "collector"),
    Column("POLICY", interval_arguments.policy_word),
    Column("INTERVAL", interval_arguments.span, right=True),
    Column("TIMEOUT", lambda item: duration.format_ms(item["timeout_ms"]), right=True),
    column("CREDENTIAL", "credential"),
    column("OPTIONS", "options"),
    column("ENABLED", "enabled"),
)


@app.command("add")
def add(
    device_name: Device,
    collector: Annotated[
        str,
        typer.Option(help="What reads it, for example snmp.", autocompletion=completion.collectors),
    ],
    name: Annotated[
        str | None, typer.Option(help="Its name on the device.", show_default="the collector's")
    ] = None,
    policy: Policy = None,
    interval: Interval = None,
    min_: Min = None,
    max_: Max = None,
    staleness: Staleness = None,
    timeout: Timeout = None,
    option: Options = None,
    require: Requires = None,
    credential: CredentialName = None,
    as_json: Json = False,
) -> None:
    """Add a target to a device."""
    from poller.db.inventory import devices, targets

    engine = inventory_database.database()
    used = credential or devices.show(engine, device_name).credential
    fields: dict[str, Any] = {
        "collector": collector,
        "name": name,
        "requires": require,
        "credential": credential,
    }
    fields |= {
        "policy": policy,
        "interval": interval,
        "min": min_,
        "max": max_,
        "staleness": staleness,
    }
    fields |= {"timeout": timeout}
    wanted = device.target_draft(engine, fields, option, used)
    made = item(targets.add(engine, device_name, wanted, inventory_database.wake_up()))
    text = f"added target {device_name}/{made['name']}: {collector} every {interval_arguments.span(made)}"
    render.changed(text, "poller.target/1", made, as_json)


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
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    after: Annotated[
        str, typer.Option(metavar="DEVICE/TARGET", help="Continue behind this one.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List targets by device and name."""
    from poller.db.inventory import targets

    engine = inventory_database.database()
    if device_name is not None:
        found = targets.of_device(engine, device_name)
        behind = _place(after)
        found = [
            t
            for t in found
            if collector in (None, t.collector) and (not behind or (t.device, t.name) > behind)
        ]
    else:
        found = targets.listing(engine, collector=collector, limit=limit + 1, after=_place(after))
    shown = found[:limit]
    follow = f"{shown[-1].device}/{shown[-1].name}" if len(found) > limit else None
    items = interval_arguments.described(shown) if as_json else [item(t) for t in shown]
    render.listing("poller.target.list/1", items, COLUMNS, as_json, next=follow)
    if follow and not as_json:
        render.note(f"there are more: --after {follow} or a higher --limit")
    elif not shown and not as_json:
        filtered = device_name or collector or after
        render.note(
            "no target matches"
            if filtered
            else "no targets yet: poller target add DEVICE --collector snmp"
        )


def _place(after: str) -> tuple[str, str] | None:
    if not after:
        return None
    device_name, slash, name = after.partition("/")
    if not slash:
        raise errors.InvalidInput(f'--after takes DEVICE/TARGET, not "{after}"')
    return device_name, name


@app.command("edit")
def edit(
    device_name: One,
    name: Name = None,
    rename: Annotated[str | None, typer.Option(metavar="NEW", help="New name.")] = None,
    policy: Policy = None,
    interval: Interval = None,
    min_: Min = None,
    max_: Max = None,
    staleness: Staleness = None,
    timeout: Timeout = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="Set an option; KEY= removes it."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", metavar="KEY=VALUE", help="New requirements, all of them."),
    ] = None,
    no_requires: Annotated[
        bool, typer.Option("--no-requires", help="Remove all requirements.")
    ] = False,
    credential: Annotated[
        str | None,
        typer.Option(
            help='New credential; "" for the device\'s.', autocompletion=completion.credentials
        ),
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Poll it or not.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a target. What is not given stays as it is."""
    from poller.db.inventory import credential_rows, targets

    requires = [] if no_requires else require
    fields: dict[str, Any] = {"name": rename, "timeout": timeout, "requires": requires}
    fields |= {
        "policy": policy,
        "interval": interval,
        "min": min_,
        "max": max_,
        "staleness": staleness,
    }
    fields |= {"credential": credential, "enabled": enabled}
    if option is None and all(value is None for value in fields.values()):
        raise errors.InvalidInput("nothing to change", hint="poller target edit --help")
    device_name, name = target_arguments.target(device_name, name)
    engine = inventory_database.database()
    old = targets.show(engine, device_name, name)
    fields["options"] = _merged(old, option)
    wanted, problems = draft.target(
        fields,
        _unchecked,
        interval_arguments.check_staleness,
        lambda _: interval_arguments.defaults_of(old.collector),
    )
    draft.raise_first(problems)
    if credential:
        registry = bootstrap.services().registry
        inventory_database.check_kind(
            registry, old.collector, credential, credential_rows.kind(engine, credential)
        )
    changed = targets.edit(engine, device_name, name, wanted, inventory_database.wake_up())
    render.changed(
        f"changed target {device_name}/{changed.name}", "poller.target/1", item(changed), as_json
    )


def _merged(old: Any, option: list[str] | None) -> dict[str, Any] | None:
    """The stored options with the given ones set or, when empty, removed; checked by the collector."""
    if option is None:
        return None
    registry = bootstrap.services().registry
    given = key_values.pairs(option)
    typed = key_values.typed(
        registry.get(old.collector).Options, {k: v for k, v in given.items() if v}
    )
    kept = {key: value for key, value in old.options.items() if key not in given}
    return inventory_database.stored_options(registry, old.collector, kept | typed)


def _unchecked(collector: str, options: Any) -> Any:
    return options


@app.command("rm")
def remove(device_name: One, name: Name = None, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a target."""
    from poller.db.inventory import targets

    device_name, name = target_arguments.target(device_name, name)
    engine = inventory_database.database()
    targets.show(engine, device_name, name)
    confirm(f"remove target {device_name}/{name}", 1, yes)
    targets.remove(engine, device_name, name, inventory_database.wake_up())
    render.changed(
        f"removed target {device_name}/{name}", "poller.target.rm/1", {"removed": 1}, as_json
    )


def item(target: Any) -> dict[str, Any]:
    return asdict(target)
