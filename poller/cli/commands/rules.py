"""`poller rules`: what is worth an alert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.arguments.rule_words import (
    Condition,
    Disabled,
    For,
    Keep,
    SeverityWord,
    Text,
    Where,
    condition_words,
    given_fields,
)
from poller.cli.command_tree import Listing
from poller.cli.commands import rules_test
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.cli.output.render import Json
from poller.presentation import formatting
from poller.presentation.alerts import rule_items
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.alerts.rules.owned_rules import Replaced
    from poller.service.alerts.rule_actions import Saved

_COLOURS = {"critical": "red", "warning": "yellow"}

app = typer.Typer(cls=Listing, help="What is worth an alert: rules, their files, and a test.")
app.command("test")(rules_test.command)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The rule's name.", autocompletion=completion.rules)
]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", autocompletion=completion.rules)]
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of rules in YAML.")]


def _state(found: Item) -> str:
    if found["fault"]:
        return "unusable"
    return "on" if found["enabled"] else "off"


def _style(found: Item) -> str:
    if found["fault"]:
        return "bold red"
    return _COLOURS.get(found["severity"], "") if found["enabled"] else "dim"


_COLUMNS = (
    column("RULE", "name", fit=Fit.WHOLE),
    Column("STATE", _state, fit=Fit.WHOLE, style=_style),
    column("SEVERITY", "severity", fit=Fit.WHOLE),
    column("CONDITION", "condition", fit=Fit.REST),
    column("OWNER", "owner", spare=1),
)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List rules with their state, severity, condition and owner."""
    from poller.service.alerts import rule_actions

    services = _services()
    stored = rule_actions.listing(services, command_actor.of_command())
    refused = rule_actions.refused_files(services)
    items = [_dumped(each) for each in stored]
    faults = [{"file": each.path, "fault": each.fault} for each in refused]
    render.listing(rule_items.LIST_SCHEMA, items, _COLUMNS, as_json, refused_files=faults)
    if as_json:
        return
    render.notes(f"{each.name}: {each.fault}" for each in stored if each.fault)
    render.notes(f"the leader refused {each.path}: {each.fault}" for each in refused)


@app.command("show")
def show(name: Name, as_json: Json = False) -> None:
    """Show one rule, every field."""
    from poller.service.alerts import rule_actions

    stored = rule_actions.show(_services(), command_actor.of_command(), name)
    render.record(rule_items.SCHEMA, _dumped(stored), as_json)


@app.command("check")
def check(files: Files, as_json: Json = False) -> None:
    """Check files of rules and save nothing. A name that no stored poll has is a warning."""
    from poller.service.alerts import rule_actions

    services = bootstrap.services()
    found = {path: rule_actions.check_file(services, path) for path in files}
    if as_json:
        items = [{"file": path, **asdict(checked)} for path, checked in found.items()]
        render.document(rule_items.CHECK_SCHEMA, {"files": items})
        return
    for path, checked in found.items():
        render.echo(f"{path}: {formatting.counted(checked.rules, 'rule')} can be applied")
        _warn(checked.warnings)
    render.warning(next((each.note for each in found.values() if each.note), ""))


@app.command("apply")
def apply(files: Files, as_json: Json = False) -> None:
    """Make the rules of files the rules of the platform; rules that left their file are removed."""
    from poller.service.alerts import rule_actions

    services = _services(create=True)
    actor = command_actor.of_command()
    applied = [rule_actions.apply(services, actor, path) for path in files]
    if as_json:
        items = [_applied(each.path, each.done, each.warnings) for each in applied]
        render.document(rule_items.APPLY_SCHEMA, {"files": items})
    for each in () if as_json else applied:
        render.echo(f"{each.path}: {_counts(each.done)}")
        _warn(each.warnings)
    render.warning(next((each.note for each in applied if each.note), ""))


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new rule's name.")],
    condition: Condition,
    where: Where = None,
    for_: For = None,
    keep: Keep = None,
    severity: SeverityWord = None,
    text: Text = None,
    disabled: Disabled = False,
    as_json: Json = False,
) -> None:
    """Add a rule: poller rules add full threshold metric=ifHCInOctets measure=rate above=1e9."""
    from poller.service.alerts import rule_actions

    fields = given_fields(where, for_, keep, severity, text)
    form = {"name": name, "when": condition_words(condition), **fields, "enabled": not disabled}
    saved = rule_actions.add(_services(create=True), command_actor.of_command(), form)
    _saved(f"added rule {name}", saved, as_json)


@app.command("edit")
def edit(
    name: Name,
    condition: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CONDITION] [KEY=VALUE...]", help="The new condition, as in add."),
    ] = None,
    where: Where = None,
    for_: For = None,
    keep: Keep = None,
    severity: SeverityWord = None,
    text: Text = None,
    as_json: Json = False,
) -> None:
    """Change fields of a rule. KEY=VALUE alone changes these fields of the present condition."""
    from poller.service.alerts import rule_actions

    services, actor = _services(), command_actor.of_command()
    changes: dict[str, Any] = given_fields(where, for_, keep, severity, text)
    if condition:
        present = rule_actions.show(services, actor, name).body["when"]
        changes["when"] = condition_words(condition, present)
    if not changes:
        raise errors.InvalidInput("nothing to change", hint="poller rules edit --help")
    saved = rule_actions.edit(services, actor, name, changes)
    _saved(f"changed rule {name}", saved, as_json)


@app.command("rm")
def remove(name: Name, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a rule. One that replaced a built-in rule gives that one back."""
    from poller.service.alerts import rule_actions

    services = _services()
    confirm(f"remove rule {name}", 1, yes)
    is_back, note = rule_actions.remove(services, command_actor.of_command(), name)
    back = "; the built-in rule of that name is back" if is_back else ""
    body = {"removed": 1, "built_in_is_back": is_back}
    render.changed(f"removed rule {name}{back}", "poller.rules.rm/1", body, as_json)
    render.warning(note)


@app.command("enable")
def enable(names: Names, as_json: Json = False) -> None:
    """Enable rules."""
    _switch(names, enabled=True, as_json=as_json)


@app.command("disable")
def disable(names: Names, as_json: Json = False) -> None:
    """Disable rules. Their open alerts end."""
    _switch(names, enabled=False, as_json=as_json)


def _switch(names: Sequence[str], *, enabled: bool, as_json: bool) -> None:
    from poller.service.alerts import rule_actions

    actor = command_actor.of_command()
    changed, note = rule_actions.enable(_services(), actor, names, enabled)
    verb = "enabled" if enabled else "disabled"
    told = f"{verb} {', '.join(changed)}" if changed else f"they were {verb} before"
    body = {"changed": changed, "enabled": enabled}
    render.changed(told, "poller.rules.enable/1", body, as_json)
    render.warning(note)


def _services(*, create: bool = False) -> Services:
    services = bootstrap.services()
    inventory_database.database(services, create=create)
    return services


def _dumped(stored: Any) -> dict[str, Any]:
    return rule_items.item(stored).model_dump(by_alias=True)


def _saved(told: str, saved: Saved, as_json: bool) -> None:
    body = {**_dumped(saved.stored), "warnings": list(saved.warnings)}
    render.changed(told, rule_items.SCHEMA, body, as_json)
    if not as_json:
        render.notes(saved.warnings, "warning")
    render.warning(saved.note)


def _warn(warnings: Any) -> None:
    render.notes(
        (f"{name}: {text}" for name, texts in warnings.items() for text in texts), "warning"
    )


def _counts(done: Replaced) -> str:
    return (
        f"{len(done.added)} added, {len(done.changed)} changed, "
        f"{len(done.removed)} removed, {done.unchanged} unchanged"
    )


def _applied(path: str, done: Replaced, warnings: Any) -> dict[str, Any]:
    return {
        "file": path,
        "added": list(done.added),
        "changed": list(done.changed),
        "removed": list(done.removed),
        "unchanged": done.unchanged,
        "warnings": dict(warnings),
    }
