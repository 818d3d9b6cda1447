"""The options of commands that add or change targets and devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from poller.cli.arguments import completion, key_values

Requires = Annotated[
    list[str] | None,
    typer.Option("--require", metavar="KEY=VALUE", help="A tag that its workers must have."),
]
NewRequires = Annotated[
    list[str] | None,
    typer.Option(
        "--require", metavar="KEY=VALUE", help="New requirements, instead of all old ones."
    ),
]
NoRequires = Annotated[bool, typer.Option("--no-requires", help="Remove all requirements.")]
CredentialName = Annotated[
    str | None,
    typer.Option(
        "--credential", help="Name of a stored credential.", autocompletion=completion.credentials
    ),
]
Enabled = Annotated[bool | None, typer.Option("--enable/--disable", help="Poll it or not.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the collector."),
]


def option_changes(words: Sequence[str] | None) -> dict[str, Any] | None:
    """The options that `KEY=VALUE` words set, and with None those that `KEY=` removes."""
    if words is None:
        return None
    return {key: text or None for key, text in key_values.pairs(words).items()}
