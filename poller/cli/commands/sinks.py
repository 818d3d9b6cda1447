"""`poller sinks`: where readings can go, where they go here, and which sinks cannot be used."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column
from poller.cli.output.render import Json

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    Column("FROM", lambda item: f"{item['distribution']} {item['version']}".rstrip()),
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
    """Installed sinks, which of them this machine's workers write to, and which cannot be used."""
    from poller.settings import load
    from poller.sinks import api, registry

    found, used = registry.survey(), load().sinks
    items = [_item(name, found, used) for name in found.plugins]
    broken = [asdict(each) for each in found.broken]
    if as_json:
        document = {
            "api_version": api.API_VERSION,
            "api_served": sorted(api.SERVED),
            "items": items,
            "broken": broken,
        }
        render.document("poller.sinks/1", document)
        return
    render.listing("poller.sinks/1", items, _COLUMNS, as_json=False)
    if broken:
        render.echo("")
        render.listing("poller.sinks/1", broken, _BROKEN, as_json=False)
    for name in [name for name in used if name not in found.plugins]:
        render.note(
            f"note: the setting sinks names {name}, which cannot be used: no worker will start"
        )


def _item(name: str, found: Any, used: Any) -> dict[str, Any]:
    distribution, _, version = found.distributions[name].rpartition(" ")
    admitted = found.plugins[name]
    return {
        "name": name,
        "distribution": distribution,
        "version": version,
        "api_version": admitted.api_version,
        "used": name in used,
        "state": "deprecated API" if admitted.notice else "ok",
        "deprecated": admitted.notice,
    }
