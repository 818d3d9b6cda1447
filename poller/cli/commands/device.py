"""`poller device`: what is in the network, one box at a time or as a whole file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion, interval_arguments, key_values
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.arguments.target_arguments import device_argument
from poller.cli.inventory import inventory_database, new_sites
from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.domain.inventory import draft
from poller.presentation import formatting

app = typer.Typer(no_args_is_help=True, help="Add, list, edit, import and export devices.")

NewName = Annotated[str, typer.Argument(metavar="NAME", help="The device's name.")]
Name = Annotated[str, device_argument("NAME")]
Site = Annotated[
    str | None,
    typer.Option(help="Where it is; made when it is new.", autocompletion=completion.sites),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="A word for filters. Repeat for more.")
]
Requires = Annotated[
    list[str] | None,
    typer.Option("--require", metavar="KEY=VALUE", help="A tag its workers must carry."),
]
CredentialName = Annotated[
    str | None,
    typer.Option(
        "--credential", help="Name of a stored credential.", autocompletion=completion.credentials
    ),
]
Interval = Annotated[
    str | None, typer.Option(help="Time from poll to poll: 60s, 5m, 1h30m. The base, if adaptive.")
]
Policy = Annotated[
    Literal["fixed", "adaptive"] | None,
    typer.Option(help="Always the same interval, or one that adapts."),
]
Min = Annotated[str | None, typer.Option("--min", help="Shortest interval of an adaptive target.")]
Max = Annotated[str | None, typer.Option("--max", help="Longest interval of an adaptive target.")]
Staleness = Annotated[
    str | None,
    typer.Option(help="What an adaptive target goes by: steady, age, change, or a plugin's."),
]
Timeout = Annotated[str | None, typer.Option(help="Longest time of one poll; below the interval.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the collector."),
]

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("ADDRESS", "address", fit=Fit.WHOLE),
    column("SITE", "site"),
    column("TAGS", "tags"),
    column("CREDENTIAL", "credential"),
    column("TARGETS", "targets", right=True),
    column("ENABLED", "enabled"),
)


@app.command("add")
def add(
    name: NewName,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="IP address or host name.")],
    site: Site = None,
    tag: Tags = None,
    require: Requires = None,
    credential: CredentialName = None,
    collector: Annotated[
        str | None,
        typer.Option(
            help="Also add a first target with this collector.",
            autocompletion=completion.collectors,
        ),
    ] = None,
    policy: Policy = None,
    interval: Interval = None,
    min_: Min = None,
    max_: Max = None,
    staleness: Staleness = None,
    timeout: Timeout = None,
    option: Options = None,
    as_json: Json = False,
) -> None:
    """Add a device, and with --collector its first target."""
    from poller.db.inventory import devices

    fields = {"name": name, "address": address, "site": site, "credential": credential}
    wanted = _device(fields, tag, require)
    engine = inventory_database.database()
    times = {
        "policy": policy,
        "interval": interval,
        "min": min_,
        "max": max_,
        "staleness": staleness,
    }
    first = _first_target(
        engine, {"collector": collector, **times, "timeout": timeout}, option, credential
    )
    made_sites = new_sites.of(engine, [wanted.site])
    made = devices.add(engine, wanted, first, inventory_database.wake_up())
    polled = "".join(f", polled with {t.collector}" for t in first)
    then = "" if first else f"poller target add {name} --collector snmp"
    render.changed(
        f"added device {name} ({made.address}){polled}",
        "poller.device/1",
        _item(made),
        as_json,
        then,
    )
    new_sites.tell(made_sites)


def _first_target(
    engine: Any, fields: dict[str, Any], option: Sequence[str] | None, credential: str | None
) -> list[draft.TargetDraft]:
    if fields["collector"] is not None:
        return [target_draft(engine, fields, option, credential)]
    given = [f"--{name}" for name, value in {**fields, "option": option}.items() if value]
    if given:
        verb = "belongs" if len(given) == 1 else "belong"
        raise errors.InvalidInput(
            f"{', '.join(given)} {verb} to a target", hint="add --collector, for example snmp"
        )
    return []


def target_draft(
    engine: Any, fields: dict[str, Any], option: Sequence[str] | None, credential: str | None
) -> draft.TargetDraft:
    """A checked target from what was typed; `credential` is the one it will use, if known."""
    from poller.db.inventory import credential_rows

    registry = bootstrap.services().registry
    collector = str(fields["collector"])
    fields = {
        **fields,
        "options": key_values.typed(
            registry.get(collector).Options, key_values.pairs(option or ())
        ),
    }
    wanted, problems = draft.target(
        fields,
        lambda *given: inventory_database.stored_options(registry, *given),
        interval_arguments.check_staleness,
        interval_arguments.defaults_of,
    )
    draft.raise_first(problems)
    kinds = [model.kind for model in registry.get(collector).credentials]
    needed = inventory_database.needs_credential(registry, collector, wanted.options or {})
    if credential and (needed or wanted.credential):
        inventory_database.check_kind(
            registry, collector, credential, credential_rows.kind(engine, credential)
        )
    elif needed:
        render.note(
            f"note: {collector} needs a credential ({' or '.join(kinds)}), and this target has none yet"
        )
    return wanted


def _device(
    fields: dict[str, Any], tag: Sequence[str] | None, require: Sequence[str] | None
) -> draft.DeviceDraft:
    wanted, problems = draft.device({**fields, "tags": tag, "requires": require})
    draft.raise_first(problems)
    return wanted


@app.command("list")
def list_(
    site: Annotated[
        str | None, typer.Option(help="Only devices of this site.", autocompletion=completion.sites)
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only devices with this tag.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    after: Annotated[str, typer.Option(help="Continue behind this name.")] = "",
    as_json: Json = False,
) -> None:
    """List devices by name."""
    from poller.db.inventory import devices

    engine = inventory_database.database()
    found = devices.listing(engine, site=site, tag=tag, limit=limit + 1, after=after)
    shown, more = found[:limit], len(found) > limit
    follow = shown[-1].name if more else None
    render.listing(
        "poller.device.list/1", [_item(d) for d in shown], _COLUMNS, as_json, next=follow
    )
    if more and not as_json:
        total = devices.count(engine, site=site, tag=tag)
        render.note(f"{total:,} devices in all; more with --after {follow} or --limit {total}")
    elif not found and not as_json:
        render.note(_nothing(site, tag, after))


def _nothing(site: str | None, tag: str | None, after: str) -> str:
    if after:
        return f"no more devices behind {after}"
    if site or tag:
        return "no device matches; `poller device list` without filters shows all"
    return "no devices yet: poller device add NAME ADDRESS, or poller device import FILE"


@app.command("show")
def show(name: Name, as_json: Json = False) -> None:
    """Show a device and its targets."""
    from poller.cli.commands.target import COLUMNS
    from poller.db.inventory import devices, targets

    engine = inventory_database.database()
    found = devices.show(engine, name)
    its_targets = interval_arguments.described(targets.of_device(engine, name))
    if as_json:
        render.document("poller.device/1", {**_item(found), "targets": its_targets})
        return
    render.record("poller.device/1", _item(found), as_json=False)
    render.echo("")
    render.listing("poller.target.list/1", its_targets, COLUMNS[1:], as_json=False)
    for target in its_targets:
        if target.get("why"):
            render.echo(f"{target['name']}: {target['why']}")


@app.command("edit")
def edit(
    name: Name,
    address: Annotated[str | None, typer.Option(help="New address.")] = None,
    rename: Annotated[str | None, typer.Option(metavar="NEW", help="New name.")] = None,
    site: Annotated[
        str | None, typer.Option(help='New site; "" for none.', autocompletion=completion.sites)
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="New tags, instead of all old ones.")
    ] = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Remove all tags.")] = False,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", metavar="KEY=VALUE", help="New requirements, all of them."),
    ] = None,
    no_requires: Annotated[
        bool, typer.Option("--no-requires", help="Remove all requirements.")
    ] = False,
    credential: Annotated[
        str | None,
        typer.Option(help='New credential; "" for none.', autocompletion=completion.credentials),
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Poll it or not.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a device. What is not given stays as it is."""
    from poller.db.inventory import devices

    fields = {"name": rename or name, "address": address, "site": site, "credential": credential}
    tags, requires = [] if no_tags else tag, [] if no_requires else require
    if all(value is None for value in (rename, address, site, credential, tags, requires, enabled)):
        raise errors.InvalidInput("nothing to change", hint="poller device edit --help")
    wanted = _device({**fields, "enabled": enabled}, tags, requires)
    engine = inventory_database.database()
    made_sites = new_sites.of(engine, [wanted.site])
    changed = devices.edit(engine, name, wanted, inventory_database.wake_up())
    render.changed(f"changed device {changed.name}", "poller.device/1", _item(changed), as_json)
    new_sites.tell(made_sites)


@app.command("rm")
def remove(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help='Names, or "-" to read them from stdin.',
            autocompletion=completion.devices,
        ),
    ],
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove devices with their targets."""
    from poller.db.inventory import devices

    wanted = sys.stdin.read().split() if names == ["-"] else names
    engine = inventory_database.database()
    if len(wanted) == 1:
        devices.show(engine, wanted[0])  # an unknown name is told before anything is asked
    count = len(dict.fromkeys(wanted))
    what = f"device {wanted[0]}" if count == 1 else f"{count:,} devices"
    confirm(f"remove {what} and all targets of it", count, yes)
    gone = devices.remove(engine, wanted, inventory_database.wake_up())
    body = {"removed": count, "targets_removed": gone}
    render.changed(
        f"removed {what} and {formatting.counted(gone, 'target')}",
        "poller.device.rm/1",
        body,
        as_json,
    )


@app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help='A .csv, .json or .yaml file; "-" is stdin.')
    ],
    update: Annotated[
        bool, typer.Option("--update", help="Change devices that exist already.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, change nothing.")
    ] = False,
    form: Annotated[
        Literal["csv", "json", "yaml"] | None, typer.Option("--format", help="If not by name.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a whole file of devices and targets: all of it or, naming every bad line, nothing."""
    from poller.cli.inventory import inventory_import

    engine = inventory_database.database()
    done, made = inventory_import.run(
        engine, file, form, update=update, dry_run=dry_run, notify=inventory_database.wake_up()
    )
    text = f"{_counts('device', done.added, done.updated, done.unchanged, update)}; "
    text += _counts(
        "target", done.targets_added, done.targets_updated, done.targets_unchanged, update
    )
    text += f"; {formatting.counted(len(made), 'new site')}" if made else ""
    message = f"would be done: {text}" if dry_run else text
    body = {**asdict(done), "sites_added": len(made), "dry_run": dry_run}
    render.changed(message, "poller.device.import/1", body, as_json)
    new_sites.tell([site for site in made if site.near], dry_run)


def _counts(noun: str, added: int, changed: int, unchanged: int, update: bool) -> str:
    new = f"{added:,} {noun}{'' if added == 1 else 's'} added"
    return f"{new}, {changed:,} changed, {unchanged:,} unchanged" if update else new


@app.command("export")
def export(
    form: Annotated[
        Literal["csv", "json", "yaml"] | None,
        typer.Option("--format", help="Else by file name, or csv."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", dir_okay=False, help="A file instead of stdout."),
    ] = None,
) -> None:
    """Write all devices and targets in a form that import reads."""
    from poller.cli.inventory import inventory_files
    from poller.db.inventory import exports

    chosen = form or (inventory_files.form_of(output) if output else "csv")
    every = exports.every_device(inventory_database.database())
    if output is None:
        inventory_files.write(sys.stdout, chosen, every)
        return
    try:
        with output.open("w", newline="", encoding="utf-8") as file:
            count = inventory_files.write(file, chosen, every)
    except OSError as error:
        raise errors.InvalidInput(
            f"--output: cannot write {output}", cause=error.strerror or ""
        ) from None
    render.note(f"wrote {count:,} devices to {output}")


def _item(device: Any) -> dict[str, Any]:
    return asdict(device)
