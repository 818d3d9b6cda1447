"""`poller migrate`: move over from another program, with a look at the plan first."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.domain.inventory import duration
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.service.inventory.exporter_migration import Migration
    from poller.service.inventory.inventory_import import ImportResult

SCHEMA = "poller.migrate/1"

app = typer.Typer(no_args_is_help=True, help="Move over from another program.")

_JOBS = (
    column("JOB", "name", fit=Fit.WHOLE),
    column("TARGETS", "targets", right=True),
    column("MODULES", "modules", fit=Fit.WRAP),
    column("AUTHS", "auths"),
    column("INTERVAL", "interval"),
)
_CREDENTIALS = (
    column("CREDENTIAL", "name", fit=Fit.WHOLE),
    column("KIND", "kind"),
    column("TARGETS", "targets", right=True),
    column("STATE", "state"),
)
_MODULES = (
    column("MODULE", "name", fit=Fit.WHOLE),
    column("TARGETS", "targets", right=True),
    column("FROM", "source"),
)


@app.callback()
def _group() -> None:
    """Keep `snmp-exporter` a command of its own: more programs may follow."""


@app.command("snmp-exporter")
def snmp_exporter(
    prometheus: Annotated[
        Path, typer.Argument(metavar="PROMETHEUS.YML", help="The configuration of Prometheus.")
    ],
    snmp: Annotated[
        Path, typer.Argument(metavar="SNMP.YML", help="The configuration of snmp_exporter.")
    ],
    apply: Annotated[
        bool, typer.Option("--apply", help="Store the credentials and devices.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Change devices that exist already and differ.")
    ] = False,
    name_label: Annotated[
        str, typer.Option(metavar="LABEL", help="The label that becomes the device's name.")
    ] = "instance",
    site_label: Annotated[
        str, typer.Option(metavar="LABEL", help="The label that becomes the device's site.")
    ] = "site",
    as_json: Json = False,
) -> None:
    """Show what moving over from snmp_exporter takes: jobs, targets, auths, modules, intervals.

    Nothing is changed without --apply.
    """
    from poller.domain.migration.exporter_plan import Labelling
    from poller.service.inventory import exporter_migration
    from poller.service.inventory.exporter_migration import Files

    services = bootstrap.services()
    inventory_database.database(services, create=True)
    files = Files(prometheus, snmp, Labelling(name_label, site_label), update)
    author = inventory_database.author()
    found = exporter_migration.plan(services, files)
    act = exporter_migration.apply if apply else exporter_migration.check
    done = act(services, author, files, found)

    if as_json:
        render.document(SCHEMA, _body(found, done, apply))
        return
    _print(found)
    render.notes(found.notes)
    text = _summary(found, done)
    if done.counts.nothing and not _new_credentials(found):
        render.echo("everything is there already; nothing was changed")
    elif apply:
        render.changed(text, SCHEMA, {}, False, "poller status; then let Prometheus scrape /snmp")
    else:
        render.echo(f"would be done: {text}")
        render.note("nothing was changed; add --apply to do it")


def _print(found: Migration) -> None:
    for schema_items, columns in (
        (_jobs(found), _JOBS),
        (_credentials(found), _CREDENTIALS),
        ([asdict(each) for each in found.modules], _MODULES),
    ):
        render.listing(SCHEMA, schema_items, columns, as_json=False)
        render.echo("")


def _jobs(found: Migration) -> list[dict[str, Any]]:
    items = []
    for job in found.jobs:
        intervals = ", ".join(duration.format_ms(each) for each in job.intervals_ms)
        named = {"modules": ", ".join(job.modules), "auths": ", ".join(job.auths)}
        items.append({**asdict(job), **named, "interval": intervals})
    return items


def _credentials(found: Migration) -> list[dict[str, Any]]:
    items = []
    for each in found.credentials:
        state = "exists and stays as it is" if each.exists else "new"
        items.append({**asdict(each), "state": state})
    return items


def _new_credentials(found: Migration) -> int:
    return sum(not each.exists for each in found.credentials)


def _summary(found: Migration, done: ImportResult) -> str:
    counts = done.counts
    devices = formatting.counted(counts.added, "device")
    targets = formatting.counted(counts.targets_added, "target")
    parts = [
        f"{formatting.counted(_new_credentials(found), 'credential')} added",
        f"{devices} added, {counts.updated:,} changed",
        f"{targets} added, {counts.targets_updated:,} changed",
    ]
    if done.new_sites:
        parts.append(formatting.counted(len(done.new_sites), "new site"))
    return "; ".join(parts)


def _body(found: Migration, done: ImportResult, applied: bool) -> dict[str, Any]:
    return {
        "applied": applied,
        "jobs": [asdict(job) for job in found.jobs],
        "other_jobs": list(found.other_jobs),
        "credentials": [asdict(each) for each in found.credentials],
        "modules": [asdict(each) for each in found.modules],
        "devices": [device.row for device in found.plan.devices.values()],
        "notes": list(found.notes),
        **asdict(done.counts),
        "sites_added": len(done.new_sites),
    }
