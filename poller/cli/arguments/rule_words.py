"""A rule on the command line: `threshold metric=ifHCInOctets above=80`, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from poller import errors
from poller.cli.arguments import completion
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.rules.condition_form import KINDS

Condition = Annotated[
    list[str],
    typer.Argument(
        metavar="CONDITION [KEY=VALUE...]",
        help=f"One of {', '.join(KINDS)}, then its fields; labels.ifName=eth* for a label.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="FILTER", help="Only devices and targets that match."),
]
For = Annotated[
    str | None,
    typer.Option("--for", metavar="DURATION", help="It must hold so long before the alert fires."),
]
Keep = Annotated[
    str | None,
    typer.Option("--keep", metavar="DURATION", help="It must be gone so long before the end."),
]
SeverityWord = Annotated[
    str | None,
    typer.Option(
        "--severity",
        metavar="|".join(Severity),
        help="How urgent an alert is.",
        autocompletion=completion.severities,
    ),
]
Text = Annotated[
    str | None,
    typer.Option("--text", metavar="TEMPLATE", help='Such as "{device} {series}: {value}".'),
]
Disabled = Annotated[bool, typer.Option("--disabled", help="Save it without using it.")]

_LABEL = "labels."


def condition_words(
    words: Sequence[str], present: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the mapping `when` of words. Without a first word it is the present condition,
    changed; an empty value removes a field. Raises InvalidInput.
    """
    first = words[0]
    form: dict[str, Any] = {}
    if "=" in first and present is not None:
        form, rest = {**present, "labels": dict(present.get("labels", {}))}, words
    else:
        form, rest = {"is": first, "labels": {}}, words[1:]
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise errors.InvalidInput(
                f'"{word}" is not of the form key=value', hint="for example above=80"
            )
        _set(form, key, value)
    if not form["labels"]:
        del form["labels"]
    return form


def given_fields(
    where: str | None,
    for_: str | None,
    keep: str | None,
    severity: str | None,
    text: str | None,
) -> dict[str, Any]:
    """Return the fields of a rule whose options were given."""
    given = {"where": where, "for": for_, "keep": keep, "severity": severity, "text": text}
    return {name: value for name, value in given.items() if value is not None}


def _set(form: dict[str, Any], key: str, value: str) -> None:
    inside, name = form, key
    if key.startswith(_LABEL):
        inside, name = form["labels"], key.removeprefix(_LABEL)
    if not value:
        inside.pop(name, None)
    elif key == "codes":
        inside[name] = value.split(",")
    else:
        inside[name] = value
