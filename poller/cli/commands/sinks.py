"""`poller sinks`: the sinks of the cluster and their state, and the installed kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.command_tree import Listing
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, option_text, origin_column
from poller.cli.output.render import Json
from poller.presentation import formatting
from poller.presentation.cluster import sinks_json

if TYPE_CHECKING:
    from poller.domain.record.overview import Overview

_COLOURS = {"ok": "green", "behind": "yellow", "refusing": "red", "down": "bold red"}

Items = Sequence[dict[str, Any]]


def _style(item: Item) -> str:
    return _COLOURS.get(item["state"], "dim")


def _state(item: Item) -> str:
    """`ok`, or `down 1/3` if one of three workers says so."""
    states = list(item["workers"].values())
    same = states.count(item["state"])
    state = str(item["state"])
    return state if same == len(states) else f"{state} {same}/{len(states)}"


def _polls(item: Item) -> str:
    return formatting.rate(item["polls_per_second"]) if item["workers"] else ""


def _samples(item: Item) -> str:
    return formatting.rate(item["samples_per_second"]) if item["workers"] else ""


def _lag(item: Item) -> str:
    return formatting.age(round(item["lag_seconds"]) * 1000) if item["workers"] else ""


def _spooled(item: Item) -> str:
    """`1,024 (3.1 MiB)`: polls on disk."""
    if not item["spooled_polls"]:
        return "0" if item["workers"] else ""
    return f"{formatting.count(item['spooled_polls'])} ({formatting.size(item['spooled_bytes'])})"


def _dropped(item: Item) -> str:
    """`0`, `64 polls`, `64 polls 3 samples`."""
    polls, samples = item["dropped_polls"], item["left_out_samples"]
    if not polls and not samples:
        return "0" if item["workers"] else ""
    parts = [formatting.count(polls) + " polls"] if polls else []
    parts += [formatting.count(samples) + " samples"] if samples else []
    return " ".join(parts)


def _last_error(item: Item) -> str:
    """The last error with its time, and the hint while it lasts."""
    error = item["last_error"]
    if error is None:
        return str(item["left_out_reason"])
    at = error["at"].strftime("%H:%M:%S") if error["at"] else ""
    hint = f"; try: {error['hint']}" if error["hint"] and item["state"] != "ok" else ""
    return f"{at} {error['text']}{hint}".strip()


def _lines(item: Item) -> Item:
    """The fields of one sink, with the parts of its last error in lines of their own."""
    error = item["last_error"] or {"text": "", "hint": "", "at": None}
    parts = {"last_error": error["text"], "try": error["hint"], "last_error_at": error["at"]}
    lines: dict[str, Any] = {}
    for key, value in item.items():
        lines |= parts if key == "last_error" else {key: value}
    return lines


def _type(item: Item) -> str:
    return f"{item['type']}, required" if item["required"] else str(item["type"])


def _default(item: Item) -> str:
    return "" if item["default"] is None else option_text(item["default"])


_COLUMNS = (
    column("SINK", "name", fit=Fit.WHOLE),
    column("KIND", "kind", fit=Fit.WHOLE, spare=2),
    Column("STATE", _state, fit=Fit.WHOLE, style=_style),
    Column("POLLS", _polls, right=True, fit=Fit.WHOLE, spare=1),
    Column("SAMPLES", _samples, right=True, fit=Fit.WHOLE),
    Column("LAG", _lag, right=True, fit=Fit.WHOLE),
    Column("SPOOLED", _spooled, right=True, fit=Fit.WHOLE),
    Column("DROPPED", _dropped, right=True, fit=Fit.WHOLE),
    Column("LAST ERROR", _last_error, fit=Fit.REST),
)
_INSTALLED = (
    column("INSTALLED", "name", fit=Fit.WHOLE),
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

_OPTIONS = (
    column("OPTION", "name", fit=Fit.WHOLE),
    Column("TYPE", _type),
    Column("DEFAULT", _default),
    column("MEANING", "description", fit=Fit.WRAP),
)

app = typer.Typer(cls=Listing, help="Where readings go: the state of every sink, and a test.")


@app.command("list")
def list_(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only this one, with every field.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List sinks with state, rate, lag and losses; then the installed kinds and broken ones."""
    from poller.service.cluster import sink_listing

    services = bootstrap.services()
    found = sink_listing.read(services.settings, _overview())
    if name is not None:
        item = found.sink(name).model_dump()
        render.record(sinks_json.SCHEMA, item if as_json else _lines(item), as_json)
        return

    items = [each.model_dump() for each in found.sinks]
    installed = [each.model_dump() for each in found.installed]
    broken = [asdict(each) for each in found.broken]
    if as_json:
        from poller.sinks import api

        body = {
            "api_version": api.API_VERSION,
            "api_served": sorted(api.SERVED),
            "items": items,
            "installed": installed,
            "broken": broken,
        }
        render.document(sinks_json.SCHEMA, body)
        return
    _show(items, installed, broken)
    for unusable in found.unusable:
        render.note(f"note: no worker will start: {unusable}")


@app.command("options")
def options(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="An installed kind of sink.")],
    as_json: Json = False,
) -> None:
    """List the options of a kind: the keys of its table in poller.toml."""
    from poller.service.cluster import sink_listing

    found = sink_listing.read(bootstrap.services().settings, None).kind(kind)
    items = [each.model_dump() for each in found.options]
    render.listing(sinks_json.OPTIONS_SCHEMA, items, _OPTIONS, as_json, kind=kind)
    if not items and not as_json:
        render.note(f"a sink of the kind {kind} takes no options")


@app.command("test")
def send_sample(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.sinks)],
    as_json: Json = False,
) -> None:
    """Send one marked sample (poller_sink_test) from here, and print what the store answered."""
    from poller.service import command_actor
    from poller.service.cluster import marked_sample

    result, note = marked_sample.send(bootstrap.services(), command_actor.of_command(), name)
    render.warning(note)
    if as_json:
        render.document(sinks_json.TEST_SCHEMA, result.model_dump())
    elif result.ok:
        took = formatting.duration(result.seconds * 1000)
        render.echo(f"{name} ({result.kind}) took one sample in {took}: {result.answer}")
    else:
        text = f"sink {name} ({result.kind}) did not take the sample"
        render.error(errors.StoreError(text, result.error, result.hint))
    if not result.ok:
        raise typer.Exit(1)


def _overview() -> Overview | None:
    """The overview, or None with a note while Redis cannot be read."""
    from poller.state.cluster import overview_reader

    services = bootstrap.services()
    try:
        return overview_reader.read(services.redis, services.keys)
    except errors.StoreError as error:
        render.note(f"note: what the workers report is not known: {error.message}")
        return None


def _show(items: Items, installed: Items, broken: Items) -> None:
    render.listing(sinks_json.SCHEMA, items, _COLUMNS, as_json=False)
    render.echo("")
    render.listing(sinks_json.SCHEMA, installed, _INSTALLED, as_json=False)
    if broken:
        render.echo("")
        render.listing(sinks_json.SCHEMA, broken, _BROKEN, as_json=False)
