"""`poller collectors`: installed collectors, their options, and broken or crashed ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.command_tree import Listing
from poller.cli.output import render
from poller.cli.output.columns import (
    Column,
    Fit,
    Item,
    age_column,
    column,
    origin_column,
    plain,
)
from poller.cli.output.render import Json

if TYPE_CHECKING:
    from poller.collectors.api import Collector

SCHEMA = "poller.collectors/1"

Items = list[dict[str, Any]]


def _api_versions(item: Item) -> str:
    """`1`, or `1-2` for a collector that serves several versions."""
    versions = map(str, item["api_versions"])
    return "-".join(dict.fromkeys(versions))


def _credential_kinds(item: Item) -> str:
    return " or ".join(item["credentials"]) or "none"


def _abilities(item: Item) -> str:
    return " ".join(item["abilities"])


def _state(item: Item) -> str:
    """The state of a collector: isolated or quarantined first, a deprecated API second."""
    state = item["state"] or "unknown"
    if item["deprecated"] and state in ("ok", "unknown"):
        return "deprecated API"
    return str(state)


def _assignment(item: Item) -> str:
    """An option as it is typed, with its default: `port=161`."""
    default = "" if item["required"] else _default_text(item["default"])
    return f"{item['name']}={default}"


def _default_text(value: Any) -> str:
    """A default value as it is typed after `-o key=`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, value))
    return plain(value)


def _type(item: Item) -> str:
    """`integer 1 to 65535`, or `text, required`."""
    return f"{item['type']}, required" if item["required"] else str(item["type"])


_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    origin_column(),
    Column("API", _api_versions, right=True),
    Column("CREDENTIALS", _credential_kinds),
    Column("ABILITIES", _abilities, fit=Fit.WRAP),
    Column("STATE", _state, fit=Fit.WHOLE),
)
_OPTION_DETAILS = (
    Column("TYPE", _type),
    column("MEANING", "description", fit=Fit.WRAP),
)
_OPTIONS = (column("COLLECTOR", "collector"), Column("OPTION", _assignment), *_OPTION_DETAILS)
_DEPRECATED = (
    column("DEPRECATED", "name", fit=Fit.WHOLE),
    origin_column(),
    column("REASON", "deprecated", fit=Fit.WRAP),
)
_DOUBTED = (
    column("DOUBTED", "collector", fit=Fit.WHOLE),
    column("FROM", "distribution", fit=Fit.WHOLE),
    column("STATE", "state", fit=Fit.WHOLE),
    age_column("FOR", "since_seconds", fit=Fit.CUT),
    column("CRASHES", "crashes", right=True),
    column("LAST REASON", "reason", fit=Fit.WRAP),
)
_BROKEN = (
    column("BROKEN", "name", fit=Fit.WHOLE),
    column("FROM", "distribution"),
    column("STATE", "state", fit=Fit.WRAP),
    column("REASON", "reason", fit=Fit.WRAP),
    column("TRY", "hint", fit=Fit.WRAP),
)


app = typer.Typer(
    cls=Listing, help="Installed collectors, their options, and those that are broken or crash."
)


@app.command("list")
def list_(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only this one.", autocompletion=completion.collectors),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of its options, nothing else.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List collectors with abilities and options, and those that are broken or crashed."""
    from poller.collectors import api, registry
    from poller.service.cluster import collector_listing

    if schema:
        collectors = registry.load()
        chosen = collectors.collectors if name is None else {name: collectors.get(name)}
        _print_schema(name, chosen)
        return

    found = collector_listing.read(bootstrap.services())
    if found.redis_error:
        render.note(
            f"note: which collectors are isolated or quarantined is not known: {found.redis_error}"
        )
    items = found.items(name)
    recorded = found.trust.recorded_releases()
    doubted = [item for item in recorded if name in (None, item["collector"])]
    broken = [asdict(each) for each in found.registry.broken if name in (None, each.name)]
    if not as_json:
        _show(items, doubted, broken)
        return

    body = {
        "api_version": api.API_VERSION,
        "api_served": sorted(api.SERVED),
        "items": items,
        "doubted": doubted,
        "broken": broken,
    }
    render.document(SCHEMA, body)


@app.command("release")
def release(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.collectors)],
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the results.")
    ] = 0.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be done.")
    ] = False,
    as_json: Json = False,
) -> None:
    """End the isolation or quarantine of a collector and requeue its dead letters."""
    from poller.cli.actions import collector_release

    collector_release.release(name, wait_s, dry_run, as_json)


@app.command("stats")
def stats(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Only this one, with its slowest targets.",
            autocompletion=completion.collectors,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show who uses each collector, and how its polls of the last day went."""
    from poller.cli.actions import collector_statistics

    collector_statistics.show(name, as_json)


def _show(items: Items, doubted: Items, broken: Items) -> None:
    """Print the tables that have rows; on a terminal, one table of options per collector."""
    sections: list[tuple[Items, Sequence[Column]]] = [(items, _COLUMNS)]
    all_options: Items = []
    for item in items:
        options = [{"collector": item["name"], **option} for option in item["options"]]
        all_options += options
        if sys.stdout.isatty():
            title = Column(f"OPTION OF {item['name']}", _assignment)
            sections.append((options, (title, *_OPTION_DETAILS)))

    if not sys.stdout.isatty():
        sections.append((all_options, _OPTIONS))

    deprecated = [item for item in items if item["deprecated"]]
    sections += [(deprecated, _DEPRECATED), (doubted, _DOUBTED), (broken, _BROKEN)]

    separator = False
    for rows, columns in sections:
        if rows:
            if separator:
                render.echo("")
            render.listing(SCHEMA, rows, columns, as_json=False)
            separator = True


def _print_schema(name: str | None, collectors: Mapping[str, Collector]) -> None:
    from poller.collectors import descriptions

    if name is None:
        raise errors.InvalidInput(
            "--schema is of one collector", hint="poller collectors list snmp --schema"
        )

    schema = descriptions.schema(collectors[name])
    render.echo(json.dumps(schema, indent=2, ensure_ascii=False))
