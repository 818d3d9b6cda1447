"""`poller collectors`: which are installed here, what they take, which cannot be used, and which crash."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import errors
from poller.cli.arguments import completion
from poller.cli.command_tree import Listing
from poller.cli.commands import collectors_release
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, plain
from poller.cli.output.render import Json

if TYPE_CHECKING:
    from poller.collectors.api import Collector


def _state(item: Item) -> str:
    """What an operator should know first: that it is not trusted, else that its time will be over."""
    state = item["state"] or "unknown"
    return "deprecated API" if item["deprecated"] and state in ("ok", "unknown") else str(state)


_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    Column("FROM", lambda item: f"{item['distribution']} {item['version']}".rstrip()),
    Column("API", lambda item: "-".join(dict.fromkeys(map(str, item["api_versions"]))), right=True),
    Column("CREDENTIALS", lambda item: " or ".join(item["credentials"]) or "none"),
    Column("ABILITIES", lambda item: " ".join(item["abilities"]), fit=Fit.WRAP),
    Column("STATE", _state, fit=Fit.WHOLE),
)
_OPTIONS = (
    column("COLLECTOR", "collector"),
    Column(
        "OPTION",
        lambda item: f"{item['name']}={'' if item['required'] else _written(item['default'])}",
    ),
    Column("TYPE", lambda item: f"{item['type']}, required" if item["required"] else item["type"]),
    column("MEANING", "description", fit=Fit.WRAP),
)
_DEPRECATED = (
    column("DEPRECATED", "name", fit=Fit.WHOLE),
    Column("FROM", lambda item: f"{item['distribution']} {item['version']}".rstrip()),
    column("REASON", "deprecated", fit=Fit.WRAP),
)
_BROKEN = (
    column("BROKEN", "name", fit=Fit.WHOLE),
    column("FROM", "distribution"),
    column("STATE", "state", fit=Fit.WRAP),
    column("REASON", "reason", fit=Fit.WRAP),
    column("TRY", "hint", fit=Fit.WRAP),
)


app = typer.Typer(
    cls=Listing, help="What is installed, its options, and what becomes of those that crash."
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
    """Installed collectors, their abilities and options, those that failed to load, and those that crashed."""
    from dataclasses import asdict

    from poller.collectors import api, descriptions, registry

    found = registry.load()
    chosen = found.collectors if name is None else {name: found.get(name)}
    if schema:
        _print_schema(name, found.collectors)
        return
    known = collectors_release.read()
    items = [
        {**descriptions.describe(each, found), **known.of(each, found)} for each in chosen.values()
    ]
    doubted = [item for item in known.doubted() if name in (None, item["collector"])]
    broken = [asdict(each) for each in found.broken if name in (None, each.name)]
    if as_json:
        items = [{**item, "schema": descriptions.schema(chosen[item["name"]])} for item in items]
        more = {
            "api_version": api.API_VERSION,
            "api_served": sorted(api.SERVED),
            "items": items,
            "doubted": doubted,
            "broken": broken,
        }
        render.document("poller.collectors/1", more)
        return
    _show(items, doubted, broken)


@app.command("release")
def release(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.collectors)],
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the results.")
    ] = 0.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Forget the crashes of a collector: it runs like any other again, and its dead letters are tried again."""
    collectors_release.release(name, wait_s, dry_run, as_json)


def _show(
    items: list[dict[str, Any]], doubted: list[dict[str, Any]], broken: list[dict[str, Any]]
) -> None:
    """The collectors, their options (on a terminal a table for each, else one for all), and what is broken."""
    options = [
        [{"collector": item["name"], **option} for option in item["options"]] for item in items
    ]
    sections: list[tuple[list[dict[str, Any]], Sequence[Column]]] = [(items, _COLUMNS)]
    if sys.stdout.isatty():
        sections += [
            (group, (_titled(group[0]["collector"]), *_OPTIONS[2:])) for group in options if group
        ]
    else:
        sections.append(([option for group in options for option in group], _OPTIONS))
    sections += [([item for item in items if item["deprecated"]], _DEPRECATED)]
    sections += [(doubted, collectors_release.COLUMNS), (broken, _BROKEN)]
    for number, (rows, head) in enumerate(section for section in sections if section[0]):
        if number:
            render.echo("")
        render.listing("poller.collectors/1", rows, head, as_json=False)


def _print_schema(name: str | None, collectors: Mapping[str, Collector]) -> None:
    from poller.collectors import descriptions

    if name is None:
        raise errors.InvalidInput(
            "--schema is of one collector", hint="poller collectors list snmp --schema"
        )
    render.echo(json.dumps(descriptions.schema(collectors[name]), indent=2, ensure_ascii=False))


def _titled(collector: str) -> Column:
    return Column(f"OPTION OF {collector}", _OPTIONS[1].text)


def _written(value: Any) -> str:
    """A value as one types it behind `-o key=`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return (
        ",".join(map(str, value))
        if isinstance(value, list | tuple | set | frozenset)
        else plain(value)
    )
