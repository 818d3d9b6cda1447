"""`poller collectors`: which are installed here, what they take, which cannot be used, and which crash."""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from poller.cli import completion, render, trust
from poller.cli.columns import Column, Fit, column, plain
from poller.cli.lazy import Listing
from poller.cli.render import Json

if TYPE_CHECKING:
    from poller.collectors.api import Collector
    from poller.collectors.registry import Registry

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    Column("FROM", lambda item: f"{item['distribution']} {item['version']}".rstrip()),
    column("API", "api_version", right=True),
    Column("CREDENTIALS", lambda item: " or ".join(item["credentials"]) or "none"),
    Column("STATE", lambda item: item["state"] or "unknown", fit=Fit.WHOLE),
)
_OPTIONS = (
    column("COLLECTOR", "collector"),
    Column("OPTION", lambda item: f"{item['name']}={'' if item['required'] else _written(item['default'])}"),
    Column("TYPE", lambda item: f"{item['type']}, required" if item["required"] else item["type"]),
    column("MEANING", "description", fit=Fit.WRAP),
)
_BROKEN = (
    column("BROKEN", "name"),
    column("FROM", "distribution"),
    column("REASON", "reason", fit=Fit.WRAP),
    column("TRY", "hint", fit=Fit.WRAP),
)

_WORDS = {int: "integer", float: "number", str: "text", bool: "true|false", type(None): "nothing"}
_LISTS = (list, tuple, set, frozenset)
_BOUNDS = {"ge": "", "gt": "above ", "le": "to ", "lt": "below "}


app = typer.Typer(cls=Listing, help="What is installed, its options, and what becomes of those that crash.")


@app.command("list")
def list_(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only this one.", autocompletion=completion.collectors),
    ] = None,
    as_json: Json = False,
) -> None:
    """Installed collectors, their options, those that failed to load, and those that crashed."""
    from dataclasses import asdict

    from poller.collectors import api, registry

    found = registry.load()
    chosen = found.collectors if name is None else {name: found.get(name)}
    known = trust.read()
    items = [{**_item(each, found), **known.of(each, found)} for each in chosen.values()]
    doubted = [item for item in known.doubted() if name in (None, item["collector"])]
    broken = [asdict(each) for each in found.broken if name in (None, each.name)]
    if as_json:
        more = {"api_version": api.API_VERSION, "items": items, "doubted": doubted, "broken": broken}
        render.document("poller.collectors/1", more)
        return
    _show(items, doubted, broken)


@app.command("release")
def release(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.collectors)],
    wait_s: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for the results.")] = 0.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: Json = False,
) -> None:
    """Forget the crashes of a collector: it runs like any other again, and its dead letters are tried again."""
    trust.release(name, wait_s, dry_run, as_json)


def _show(items: list[dict[str, Any]], doubted: list[dict[str, Any]], broken: list[dict[str, Any]]) -> None:
    """The collectors, their options (on a terminal a table for each, else one for all), and what is broken."""
    options = [[{"collector": item["name"], **option} for option in item["options"]] for item in items]
    sections: list[tuple[list[dict[str, Any]], Sequence[Column]]] = [(items, _COLUMNS)]
    if sys.stdout.isatty():
        sections += [(group, (_titled(group[0]["collector"]), *_OPTIONS[2:])) for group in options if group]
    else:
        sections.append(([option for group in options for option in group], _OPTIONS))
    sections += [(doubted, trust.COLUMNS), (broken, _BROKEN)]
    for number, (rows, head) in enumerate(section for section in sections if section[0]):
        if number:
            render.echo("")
        render.listing("poller.collectors/1", rows, head, as_json=False)


def _titled(collector: str) -> Column:
    return Column(f"OPTION OF {collector}", _OPTIONS[1].text)


def _item(collector: Collector, found: Registry) -> dict[str, Any]:
    distribution, _, version = found.distributions[collector.name].rpartition(" ")
    return {
        "name": collector.name,
        "distribution": distribution,
        "version": version,
        "api_version": collector.api_version,
        "credentials": [model.kind for model in collector.credentials],
        "options": list(_options(collector)),
    }


def _options(collector: Collector) -> Iterator[dict[str, Any]]:
    for name, field in collector.Options.model_fields.items():
        required = field.is_required()
        yield {
            "name": name,
            "type": _type(field.annotation) + _bounds(field.metadata),
            "default": None if required else field.get_default(call_default_factory=True, validated_data={}),
            "required": required,
            "description": field.description or "",
        }


def _type(annotation: Any) -> str:
    """An annotation as an operator reads it: `tuple[str, ...]` -> `list of text`, `int | None` -> `integer`."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return "|".join(map(str, parts))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return "|".join(str(each.value) for each in annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(part) for part in parts if part is not type(None))
    if origin is Annotated:
        return _type(parts[0])
    if origin in _LISTS:
        return f"list of {_type(parts[0])}"
    return _WORDS.get(annotation) or str(getattr(origin or annotation, "__name__", annotation))


def _bounds(metadata: list[Any]) -> str:
    """` 1 to 65535`, ` above 0 to 60`; nothing for what has no bounds."""
    given = {key: getattr(rule, key) for rule in metadata for key in _BOUNDS if getattr(rule, key, None) is not None}
    return "".join(f" {word}{given[key]}" for key, word in _BOUNDS.items() if key in given)


def _written(value: Any) -> str:
    """A value as one types it behind `-o key=`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, _LISTS) else plain(value)
