"""The options of a target on the command line, and the check of a new target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap
from poller.cli.arguments import completion, key_values, schedule_options
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.domain.inventory import draft
from poller.domain.inventory.draft import TargetDraft

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

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


def checked(
    engine: Engine,
    fields: Mapping[str, Any],
    option: Sequence[str] | None,
    credentials: Sequence[str | None],
) -> TargetDraft:
    """A checked new target. `credentials` are those it will use: its own or the devices'.

    Raises InvalidInput. A needed credential that is missing is only noted: it may be added later.
    """
    from poller.db.inventory import credential_rows

    registry = bootstrap.services().registry
    collector = str(fields["collector"])
    options = key_values.option_values(registry.get(collector).Options, option or ())
    target, problems = draft.target(
        {**fields, "options": options},
        partial(inventory_database.stored_options, registry),
        schedule_options.check_staleness,
        schedule_options.defaults_of,
    )
    draft.raise_first(problems)

    needed = inventory_database.needs_credential(registry, collector, target.options or {})
    for credential in credentials:
        if credential and (needed or target.credential):
            kind = credential_rows.kind(engine, credential)
            inventory_database.check_kind(registry, collector, credential, kind)
    if needed and not all(credentials):
        kinds = " or ".join(model.kind for model in registry.get(collector).credentials)
        which = "this target has" if len(credentials) == 1 else "some of these devices have"
        render.note(f"note: {collector} needs a credential ({kinds}), and {which} none yet")

    return target
