"""`poller sinks`: installed sinks, those in use on this machine, and broken ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

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
    from poller.settings import load
    from poller.sinks import api, registry

    found = registry.survey()
    used = load().sinks
    items = [_item(name, found, name in used) for name in found.plugins]
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

    for name in used:
        if name not in found.plugins:
            render.note(
                f"note: the setting sinks names {name}, which cannot be used: no worker will start"
            )


def _item(name: str, found: Any, used: bool) -> dict[str, Any]:
    distribution, _, version = found.distributions[name].rpartition(" ")
    admitted = found.plugins[name]
    return {
        "name": name,
        "distribution": distribution,
        "version": version,
        "api_version": admitted.api_version,
        "used": used,
        "state": "deprecated API" if admitted.notice else "ok",
        "deprecated": admitted.notice,
    }
