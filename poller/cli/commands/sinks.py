"""`poller sinks`: installed sinks, those in use on this machine, and broken ones."""

from __future__ import annotations

from dataclasses import asdict

from poller.cli.output import render
from poller.cli.output.columns import Fit, column, origin_column
from poller.cli.output.render import Json

SCHEMA = "poller.sinks/1"
_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    origin_column(),
    column("API", "api_version", right=True),
    column("USED", "used"),
    column("STATE", "state", fit=Fit.WHOLE),
    column("NOTE", "deprecated", fit=Fit.WRAP),
)
_BROKEN = (
    column("BROKEN", "name", fit=Fit.WHOLE),
    column("FROM", "distribution"),
    column("STATE", "state", fit=Fit.WRAP),
    column("REASON", "reason", fit=Fit.WRAP),
)


def command(as_json: Json = False) -> None:
    """List installed sinks, whether the workers of this machine write to them, and broken ones."""
    from poller.service.cluster import sink_listing
    from poller.settings import load
    from poller.sinks import api

    found = sink_listing.read(load().sinks)
    items = [asdict(each) for each in found.sinks]
    broken = [asdict(each) for each in found.broken]

    if as_json:
        body = {
            "api_version": api.API_VERSION,
            "api_served": sorted(api.SERVED),
            "items": items,
            "broken": broken,
        }
        render.document(SCHEMA, body)
        return

    render.listing(SCHEMA, items, _COLUMNS, as_json=False)
    if broken:
        render.echo("")
        render.listing(SCHEMA, broken, _BROKEN, as_json=False)

    for name in found.unusable:
        render.note(
            f"note: the setting sinks names {name}, which cannot be used: no worker will start"
        )
