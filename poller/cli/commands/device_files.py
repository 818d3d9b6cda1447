"""`poller device import` and `poller device export`: the inventory as a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.inventory import inventory_database, site_notes
from poller.cli.output import render
from poller.cli.output.render import Json
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.service.inventory_forms.file_forms import Form
    from poller.service.inventory_forms.inventory_rows import RawRow

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
    from poller.cli.inventory import inventory_files
    from poller.cli.output import progress
    from poller.service.inventory import inventory_import

    services = bootstrap.services()
    inventory_database.database(services, create=True)
    chosen: Form = form or inventory_files.form_of(file)
    to_import = inventory_import.ImportFile(
        content=inventory_files.content(file),
        form=chosen,
        name=inventory_files.display_name(file),
        update=update,
        dry_run=dry_run,
        collector=collector,
    )

    def track(rows: Sequence[RawRow]) -> Iterable[RawRow]:
        return progress.track(rows, len(rows), "checking")

    author = inventory_database.author()
    try:
        done = inventory_import.import_file(services, author, to_import, track)
    except errors.BadFile as error:
        command = f"poller device import {file}" + (" --update" if update else "")
        error.hint = f"correct them, then: {command}"
        raise
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
    render.notes(done.notes)
    render.changed(message, "poller.device.import/1", body, as_json)
    site_notes.print_notes([site for site in created if site.near], dry_run)


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
    from poller.service.inventory import inventory_export

    chosen: Form = form or "csv"
    if form is None and output is not None:
        chosen = inventory_files.form_of(output)
    inventory_export.check_raw(chosen, raw)
    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    if output is None:
        inventory_export.write(services, actor, sys.stdout, chosen, raw)
        return

    try:
        with output.open("w", newline="", encoding="utf-8") as file:
            count = inventory_export.write(services, actor, file, chosen, raw)
    except OSError as error:
        raise errors.InvalidInput(
            f"--output: cannot write {output}", cause=error.strerror or ""
        ) from None

    render.note(f"wrote {count:,} devices to {output}")
