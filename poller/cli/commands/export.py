"""`poller export`: the stored samples of a range, for other programs."""

from __future__ import annotations

import enum
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poller import bootstrap, errors
from poller.cli.arguments import option_group
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.domain.record import instant_text
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.domain.series.exported_polls import ExportedPolls


class ExportForm(enum.StrEnum):
    """The form of an export."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


@option_group.expand_options
def command(
    selection: FilterOptions,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="From then on: 2h, 30d, 2026-10-01.")
    ] = "1d",
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="The end of the range.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Only metrics whose name contains this.")
    ] = None,
    form: Annotated[
        ExportForm, typer.Option("--format", help="parquet needs the extra poller[parquet].")
    ] = ExportForm.CSV,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="A file instead of stdout.")
    ] = None,
) -> None:
    """Print every stored sample of a range: time, device, target, metric, labels, value, kind."""
    from poller.service.history import sample_export, traffic_report

    now_ms = time.time_ns() // 1_000_000
    start_ms = instant_text.parse_ms("--since", since, now_ms)
    end_ms = instant_text.parse_ms("--until", until, now_ms) if until else now_ms
    if end_ms <= start_ms:
        raise errors.InvalidInput("--until: the range is empty", hint="until must be after since")
    if form is ExportForm.PARQUET and output is None:
        raise errors.InvalidInput(
            "--format parquet needs a file", hint="add --output samples.parquet"
        )
    services = bootstrap.services()
    inventory_database.database(services)
    chosen = traffic_report.chosen(services, command_actor.of_command(), selection.parse())
    found = sample_export.polls(services, chosen, start_ms, end_ms, metric or "")
    if output is None:
        _write_text(found, form)
    else:
        _write_file(found, form, output)


def _write_text(found: Iterable[ExportedPolls], form: ExportForm) -> None:
    from poller.presentation.history import sample_text

    lines = sample_text.csv_lines if form is ExportForm.CSV else sample_text.json_lines
    for text in lines(found):
        sys.stdout.write(text)


def _write_file(found: Iterable[ExportedPolls], form: ExportForm, output: Path) -> None:
    """Write beside the file, then move: a file that is there is whole."""
    from poller.presentation.history import sample_parquet, sample_text

    part = output.with_name(output.name + ".part")
    try:
        if form is ExportForm.PARQUET:
            sample_parquet.write(part, found)
        else:
            lines = sample_text.csv_lines if form is ExportForm.CSV else sample_text.json_lines
            with part.open("w", encoding="utf-8", newline="") as file:
                file.writelines(lines(found))
        size = part.stat().st_size
        os.replace(part, output)
    except OSError as error:
        message = f"--output: {output} cannot be written: {error.strerror}"
        raise errors.InvalidInput(message, hint="name a file in a directory that you own") from None
    finally:
        part.unlink(missing_ok=True)
    render.note(f"{output}: {formatting.size(size)}")
