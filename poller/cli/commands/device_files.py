"""`poller device import` and `poller device export`: the inventory as a file."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.inventory import inventory_database, new_sites
from poller.cli.output import render
from poller.cli.output.render import Json
from poller.presentation import formatting

Format = Literal["csv", "json", "yaml"]


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
        Format | None, typer.Option("--format", help="Needed if the file's name does not tell it.")
    ] = None,
    collector: Annotated[
        str | None,
        typer.Option(
            help='The collector of new devices, if the file names no targets; "" for no target.',
            show_default="POLLER_DEFAULT_COLLECTOR",
            autocompletion=completion.collectors,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a whole file of devices and targets: all of it or, naming every bad line, nothing."""
    from poller.cli.inventory import inventory_import

    services = bootstrap.services()
    engine = inventory_database.database(services, create=True)
    if collector is None:
        collector = services.settings.default_collector

    done = inventory_import.import_file(
        engine,
        file,
        form,
        collector=collector,
        update=update,
        dry_run=dry_run,
        author=inventory_database.author(),
    )
    counts = done.counts
    created = done.new_sites

    parts = [
        _counts("device", counts.added, counts.updated, counts.unchanged, update),
        _counts(
            "target",
            counts.targets_added,
            counts.targets_updated,
            counts.targets_unchanged,
            update,
        ),
    ]
    if created:
        parts.append(formatting.counted(len(created), "new site"))

    text = "; ".join(parts)
    message = f"would be done: {text}" if dry_run else text
    body = {**asdict(counts), "sites_added": len(created), "dry_run": dry_run}
    render.changed(message, "poller.device.import/1", body, as_json)
    new_sites.print_notes([site for site in created if site.near], dry_run)


def _counts(noun: str, added: int, changed: int, unchanged: int, update: bool) -> str:
    """`3 devices added, 1 changed, 7 unchanged`"""
    text = f"{formatting.counted(added, noun)} added"
    if update:
        text += f", {changed:,} changed, {unchanged:,} unchanged"
    return text


def export(
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Default: by the file's name, or csv."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", dir_okay=False, help="A file instead of stdout."),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="CSV for programs: no apostrophe before what a spreadsheet calculates."
        ),
    ] = False,
) -> None:
    """Write all devices and targets in a form that import reads."""
    from poller.cli.inventory import inventory_files
    from poller.db.inventory import exports

    chosen: str = form or "csv"
    if form is None and output is not None:
        chosen = inventory_files.form_of(output)
    if raw and chosen != "csv":
        raise errors.InvalidInput("--raw is for CSV", hint=f"leave it out with {chosen}")

    devices = exports.every_device(inventory_database.database())
    if output is None:
        inventory_files.write(sys.stdout, chosen, devices, raw)
        return

    try:
        with output.open("w", newline="", encoding="utf-8") as file:
            count = inventory_files.write(file, chosen, devices, raw)
    except OSError as error:
        raise errors.InvalidInput(
            f"--output: cannot write {output}", cause=error.strerror or ""
        ) from None

    render.note(f"wrote {count:,} devices to {output}")
